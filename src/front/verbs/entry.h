/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Two answers to every function of libibverbs: ours, hv_<name>, and that of the real library, which
 * is found when it is first needed.
 */
#ifndef HEDDLE_FRONT_VERBS_ENTRY_H
#define HEDDLE_FRONT_VERBS_ENTRY_H

#include "front/verbs/verbs_front.h"

#include <sys/types.h>

struct _compat_ibv_port_attr; /* the first 48 bytes of struct ibv_port_attr */

/* Ours. Each follows the manual page of the function whose name it bears. */
#define HV_CALL(ret, name, params, args, ours, fail, tell) ret hv_##name params;
#include "front/verbs/calls.h"
#undef HV_CALL

/* Exported functions that the public header does not declare, or did not always. */
const char *ibv_get_sysfs_path(void);
int ibv_read_sysfs_file(const char *dir, const char *file, char *buf, size_t size);
int ibv_dontfork_range(void *base, size_t size);
int ibv_dofork_range(void *base, size_t size);
int ibv_query_gid_type(struct ibv_context *context, uint8_t port, unsigned int index, int *type);
const char *ibv_wr_opcode_str(enum ibv_wr_opcode opcode);
void ibv_register_driver(const char *name, void *init);

/*
 * hv_real_find: this function of the real library ("libibverbs.so.1", "librdmacm.so.1"), which the
 * program has brought along or which is loaded now; NULL: there is none. Never one of Heddle's own,
 * by whatever name it was loaded. Any thread.
 */
void *hv_real_find(const char *library, const char *name);

/* HV_REAL(ibv_open_device): the real function, or NULL. Found once. */
#define HV_CALL(ret, name, params, args, ours, fail, tell) HV_REAL_##name,
enum hv_real_call {
#include "front/verbs/calls.h"
	HV_REAL_ibv_get_device_list,
	HV_REAL_ibv_free_device_list,
	HV_REAL_ibv_ack_async_event,
	HV_REAL_ibv_import_device,
	HV_REAL_ibv_fork_init,
	HV_REAL_ibv_is_fork_initialized,
	HV_REAL_ibv_dontfork_range,
	HV_REAL_ibv_dofork_range,
	HV_REAL_ibv_register_driver,
	HV_REAL_CALLS
};
#undef HV_CALL
void *hv_real(enum hv_real_call call);
#define HV_REAL(name) ((__typeof__(&(name)))hv_real(HV_REAL_##name))

#endif
