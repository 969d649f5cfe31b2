/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Of the preload alone: pthread_cancel(3), so that cancel.c knows when it is for the first time. */
#include "front/verbs/cancel.h"

#include <dlfcn.h>
#include <errno.h>

int hv_pthread_cancel(pthread_t thread)
{
	static int (*_Atomic next)(pthread_t);

	if (!next)
		next = (int (*)(pthread_t))dlsym(RTLD_NEXT, "pthread_cancel");
	hv_cancel_begins();
	return next ? next(thread) : ENOSYS;
}

HV_PUBLIC int pthread_cancel(pthread_t thread) __attribute__((alias("hv_pthread_cancel")));
