/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* The opcodes of ibv_post_send(3) by transport: a table. */
#ifndef HEDDLE_FRONT_VERBS_OPCODE_H
#define HEDDLE_FRONT_VERBS_OPCODE_H

#include "front/verbs/qp.h"

enum hv_opcode_kind {
	HV_OP_SEND,
	HV_OP_WRITE,
	HV_OP_READ,
	HV_OP_ATOMIC,
	HV_OP_ATOMIC_WRITE,
	HV_OP_FLUSH, /* this and what follows has no local segments */
	/* nothing but our own memory has to do with these */
	HV_OP_BIND,
	HV_OP_INVALIDATE,
};

struct hv_opcode {
	uint8_t transports; /* enum hv_transport: where it is; 0: nowhere */
	uint8_t kind;	    /* enum hv_opcode_kind */
	bool inlines;	    /* takes IBV_SEND_INLINE */
	bool fills;	    /* writes to its local segments */
	uint8_t wc;	    /* enum ibv_wc_opcode of its completion */
	uint32_t flags;	    /* enum hd_send_flag */
	uint64_t build;	    /* enum ibv_qp_create_send_ops_flags */
};

#define HV_OPCODES (IBV_WR_ATOMIC_WRITE + 1)
extern const struct hv_opcode hv_opcodes[HV_OPCODES];

#endif
