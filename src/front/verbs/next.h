/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
#ifndef HEDDLE_FRONT_VERBS_NEXT_H
#define HEDDLE_FRONT_VERBS_NEXT_H

#include <dlfcn.h>

/*
 * HV_NEXT: the function of that name of the C library, for the preload, which has one of its own.
 * Looked up with each first use.
 */
#define HV_NEXT(name) \
	({ \
		static void *_Atomic found; \
		if (!found) \
			found = dlsym(RTLD_NEXT, #name); \
		(__typeof__(&(name)))found; \
	})

#endif
