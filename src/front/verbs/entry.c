/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * What the linker finds: each function of libibverbs, which hands over to
 * us or to the real library.
 */
#include "front/verbs/entry.h"

#include <errno.h>

#define HV_CALL(ret, name, params, args, ours, fail, tell) \
	HV_PUBLIC ret name params \
	{ \
		__typeof__(&(name)) real; \
\
		if (ours) \
			return tell(hv_##name args); \
		real = (__typeof__(&(name)))hv_real(HV_REAL_##name); \
		if (real) \
			return real args; \
		errno = ENOSYS; \
		return fail; \
	}
#include "front/verbs/calls.h"
#undef HV_CALL
