/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */

/*
 * calls.def with its kinds of lines made one: HV_CALL(type, name, (parameters), (arguments), ours,
 * answer when nobody can, what is done with our answer).
 */
#define HV_INT(ret, name, params, args, ours) HV_CALL(ret, name, params, args, ours, ENOSYS, hv_tell)
#define HV_MINUS(ret, name, params, args, ours) HV_CALL(ret, name, params, args, ours, -1, )
#define HV_LONG(ret, name, params, args, ours) HV_CALL(ret, name, params, args, ours, -ENOSYS, )
#define HV_GUID(ret, name, params, args, ours) HV_CALL(ret, name, params, args, ours, 0, )
#define HV_PTR(ret, name, params, args, ours) HV_CALL(ret, name, params, args, ours, NULL, )
#define HV_VOID(name, params, args, ours) HV_CALL(void, name, params, args, ours, (void)0, )
#include "front/verbs/calls.def"
#undef HV_INT
#undef HV_MINUS
#undef HV_LONG
#undef HV_GUID
#undef HV_PTR
#undef HV_VOID
