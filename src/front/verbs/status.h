/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* What the engine says of an operation, in the words of ibv_poll_cq(3). */
#ifndef HEDDLE_FRONT_VERBS_STATUS_H
#define HEDDLE_FRONT_VERBS_STATUS_H

#include "engine/engine.h"

#include <infiniband/verbs.h>

/*
 * hv_wc_status: of a completion with these flags (enum hd_cqe_flag) and this
 * error, 0 or a positive errno.
 */
enum ibv_wc_status hv_wc_status(uint32_t flags, enum hd_status err);

/*
 * Errors that the front itself gives to operations which it refuses when they are posted, and which
 * complete in error in their turn: errnos that the engine has no use for.
 */

/*
 * hv_bad_key: where a receive whose keys are wrong from the first segment on has its
 * data put: it has no room.
 */
extern const char hv_bad_key[];

/*
 * hv_wc_opcode: of a completion with these flags. word: of what was sent, what
 * hv_post_send gave to it.
 */
static inline enum ibv_wc_opcode hv_wc_opcode(uint32_t flags, uint64_t word)
{
	if (flags & HD_C_RECV || flags & HD_C_REMOTE)
		return flags & HD_C_RMA ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV;
	return (enum ibv_wc_opcode)(word & 0xff);
}

/*
 * hv_word: what a work request is known by: the lower 24 bits of its number in its send queue,
 * and its opcode. hv_word_ahead: how far its number is beyond that one; they are less than 2^23
 * apart, as no queue holds more.
 */
static inline uint64_t hv_word(uint32_t number, uint8_t opcode)
{
	return number << 8 | opcode;
}
static inline int32_t hv_word_ahead(uint64_t word, uint32_t number)
{
	return (int32_t)(((uint32_t)word & ~0xffu) - (number << 8)) >> 8;
}

#endif
