/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* A completion of the engine in the formats of fi_cq(3). */
#ifndef HEDDLE_FRONT_OFI_CQ_ENTRY_H
#define HEDDLE_FRONT_OFI_CQ_ENTRY_H

#include "front/ofi/ofi.h"

/* The flags of messages, of which nearly every entry has some and few have others; */
#define HD_FI_MESSAGE_FLAGS(flags) \
	(((flags)&HD_C_SEND ? FI_SEND : 0) | ((flags)&HD_C_RECV ? FI_RECV : 0) | \
	 ((flags)&HD_C_MSG ? FI_MSG : 0) | ((flags)&HD_C_TAGGED ? FI_TAGGED : 0))
#define HD_FI_MESSAGE_BITS (HD_C_SEND | HD_C_RECV | HD_C_MSG | HD_C_TAGGED)
static_assert(HD_FI_MESSAGE_BITS == 15, "a table below has them all");

/* what a receive may have beside; */
#define HD_FI_RECEIVE_FLAGS(flags) \
	(((flags)&HD_C_IMM ? FI_REMOTE_CQ_DATA : 0) | ((flags)&HD_C_MULTI_RECV ? FI_MULTI_RECV : 0) | \
	 ((flags)&HD_C_CLAIM ? FI_CLAIM : 0) | ((flags)&HD_C_MORE ? FI_MORE : 0))
#define HD_FI_RECEIVE_BITS (HD_C_IMM | HD_C_MULTI_RECV | HD_C_SOLICITED | HD_C_CLAIM | HD_C_MORE)
static_assert(HD_FI_RECEIVE_BITS == 31 * HD_C_IMM, "a table below has them all");

/* operations on memory, theirs on ours or ours on theirs; */
#define HD_FI_MEMORY_READS(flags) ((flags)&HD_C_REMOTE ? FI_REMOTE_READ : FI_READ)
#define HD_FI_MEMORY_WRITES(flags) ((flags)&HD_C_REMOTE ? FI_REMOTE_WRITE : FI_WRITE)
#define HD_FI_MEMORY_FLAGS(flags) \
	((flags) & (HD_C_RMA | HD_C_ATOMIC) \
		 ? ((flags)&HD_C_ATOMIC ? FI_ATOMIC : FI_RMA) | \
			   ((flags)&HD_C_READ ? HD_FI_MEMORY_READS(flags) : HD_FI_MEMORY_WRITES(flags)) \
		 : 0)
#define HD_FI_MEMORY_BITS (HD_C_RMA | HD_C_READ | HD_C_WRITE | HD_C_ATOMIC | HD_C_REMOTE)
static_assert(HD_FI_MEMORY_BITS == 31 * HD_C_RMA, "a table below has them all");

/* and groups. */
#define HD_FI_GROUP_FLAGS(flags) \
	(((flags)&HD_C_CAST ? FI_MULTICAST : 0) | ((flags)&HD_C_COLLECTIVE ? FI_COLLECTIVE : 0))
#define HD_FI_GROUP_BITS (HD_C_CAST | HD_C_COLLECTIVE)
static_assert(HD_FI_GROUP_BITS == 3 * HD_C_CAST, "a table below has them all");

#define HD_FI_4_FLAGS(of, from, step) \
	of((from) * (step)), of(((from) + 1) * (step)), of(((from) + 2) * (step)), of(((from) + 3) * (step))
#define HD_FI_16_FLAGS(of, from, step) \
	HD_FI_4_FLAGS(of, from, step), HD_FI_4_FLAGS(of, (from) + 4, step), \
		HD_FI_4_FLAGS(of, (from) + 8, step), HD_FI_4_FLAGS(of, (from) + 12, step)
#define HD_FI_32_FLAGS(of, step) HD_FI_16_FLAGS(of, 0, step), HD_FI_16_FLAGS(of, 16, step)

HD_FI_INLINE uint64_t hd_fi_cqe_flags(uint32_t flags)
{
	static const struct {
		uint64_t message[16], receive[32], memory[32], group[4];
	} of = { .message = { HD_FI_16_FLAGS(HD_FI_MESSAGE_FLAGS, 0, 1) },
		 .receive = { HD_FI_32_FLAGS(HD_FI_RECEIVE_FLAGS, HD_C_IMM) },
		 .memory = { HD_FI_32_FLAGS(HD_FI_MEMORY_FLAGS, HD_C_RMA) },
		 .group = { HD_FI_4_FLAGS(HD_FI_GROUP_FLAGS, 0, HD_C_CAST) } };
	uint64_t out = of.message[flags & HD_FI_MESSAGE_BITS];

	if (hd_fi_rare(flags & ~HD_FI_MESSAGE_BITS)) {
		out |= of.receive[(flags & HD_FI_RECEIVE_BITS) / HD_C_IMM];
		out |= of.memory[(flags & HD_FI_MEMORY_BITS) / HD_C_RMA];
		out |= of.group[(flags & HD_FI_GROUP_BITS) / HD_C_CAST];
	}
	return out;
}

/*
 * hd_fi_cqe_size: bytes of an entry. A format that is a constant at the call makes
 * both of these a few moves.
 */
HD_FI_INLINE size_t hd_fi_cqe_size(enum fi_cq_format format)
{
	switch (format) {
	case FI_CQ_FORMAT_MSG:
		return sizeof(struct fi_cq_msg_entry);
	case FI_CQ_FORMAT_DATA:
		return sizeof(struct fi_cq_data_entry);
	case FI_CQ_FORMAT_TAGGED:
		return sizeof(struct fi_cq_tagged_entry);
	default:
		return sizeof(struct fi_cq_entry);
	}
}

/*
 * hd_fi_cqe_put writes e to `out` in that format; the shorter formats are beginnings of the longest
 * one. Length, tag and data are of what has come here, fi_cq(3); of what was sent there is 0, as
 * libfabric's providers have it.
 */
HD_FI_INLINE void hd_fi_cqe_put(const struct hd_cqe *e, enum fi_cq_format format, void *out)
{
	struct fi_cq_tagged_entry *entry = out;
	bool came;

	entry->op_context = e->ctx;
	if (format < FI_CQ_FORMAT_MSG)
		return;
	entry->flags = hd_fi_cqe_flags(e->flags);
	came = e->flags & (HD_C_RECV | HD_C_REMOTE);
	entry->len = came ? e->len : 0;
	if (format < FI_CQ_FORMAT_DATA)
		return;
	entry->buf = e->buf;
	entry->data = came && e->flags & HD_C_IMM ? e->imm : 0;
	if (format < FI_CQ_FORMAT_TAGGED)
		return;
	entry->tag = came && e->flags & HD_C_TAGGED ? e->tag : 0;
}

static_assert(offsetof(struct fi_cq_msg_entry, len) == offsetof(struct fi_cq_tagged_entry, len) &&
		      offsetof(struct fi_cq_data_entry, data) == offsetof(struct fi_cq_tagged_entry, data),
	      "the formats begin alike");

#endif
