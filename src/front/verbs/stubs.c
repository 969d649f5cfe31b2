/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * What no file of the front answers is not supported. The definitions here are weak: one that is
 * written elsewhere takes the place of that of the same name.
 */
#include "front/verbs/entry.h"
#include "front/verbs/ops.h"

#include <errno.h>

#define HV_WEAK __attribute__((weak))

#define HV_INT(ret, name, params, args, ours) \
	HV_WEAK ret hv_##name params \
	{ \
		return EOPNOTSUPP; \
	}
#define HV_MINUS(ret, name, params, args, ours) \
	HV_WEAK ret hv_##name params \
	{ \
		errno = EOPNOTSUPP; \
		return -1; \
	}
#define HV_LONG(ret, name, params, args, ours) \
	HV_WEAK ret hv_##name params \
	{ \
		return -EOPNOTSUPP; \
	}
#define HV_GUID(ret, name, params, args, ours) \
	HV_WEAK ret hv_##name params \
	{ \
		return 0; \
	}
#define HV_PTR(ret, name, params, args, ours) \
	HV_WEAK ret hv_##name params \
	{ \
		return hv_fail(EOPNOTSUPP); \
	}
#define HV_VOID(name, params, args, ours) \
	HV_WEAK void hv_##name params \
	{ \
	}
#include "front/verbs/calls.def"

#define HV_OP_INT(member, params, args) \
	HV_WEAK int hv_##member params \
	{ \
		return EOPNOTSUPP; \
	}
#define HV_OP_PTR(ret, member, params) \
	HV_WEAK ret hv_##member params \
	{ \
		return hv_fail(EOPNOTSUPP); \
	}
#include "front/verbs/ops.def"
