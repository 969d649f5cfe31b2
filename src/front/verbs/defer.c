/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Of the drop-in alone: in a program that has the preload too, this copy of the front stands back,
 * so that there are no two, and what one library made is known to the other: the preload's
 * functions are the real ones for it, and it has no device of its own.
 */
#include "front/verbs/real.h"

#include <dlfcn.h>
#include <stddef.h>

static const char here[] = "in this library";

/* Loaded last, if at all: so what was there before is known. */
__attribute__((constructor)) static void defer(void)
{
	const void *marker = dlsym(RTLD_DEFAULT, "heddle_verbs_marker");
	Dl_info other, own;
	void *handle;

	if (!marker || !dladdr(marker, &other) || !dladdr(here, &own) || other.dli_fbase == own.dli_fbase)
		return;
	handle = dlopen(other.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
	if (!handle)
		return;
	hv_elsewhere = handle;
	hv_cm_defer(handle);
}
