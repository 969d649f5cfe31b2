/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* A completion of the engine in the formats of fi_cq(3). */
#ifndef HEDDLE_FRONT_OFI_CQ_ENTRY_H
#define HEDDLE_FRONT_OFI_CQ_ENTRY_H

#include "front/ofi/ofi.h"

/* Operations on memory: theirs on ours, or ours on theirs. */
HD_FI_INLINE uint64_t hd_fi_rma_flags(uint32_t flags)
{
	uint64_t kind = flags & HD_C_ATOMIC ? FI_ATOMIC : FI_RMA;

	if (flags & HD_C_REMOTE)
		return kind | (flags & HD_C_READ ? FI_REMOTE_READ : FI_REMOTE_WRITE);
	return kind | (flags & HD_C_READ ? FI_READ : FI_WRITE);
}

/* The flags of messages, of which nearly every entry has some and no others. */
#define HD_FI_MESSAGE_FLAGS(flags) \
	(((flags)&HD_C_SEND ? FI_SEND : 0) | ((flags)&HD_C_RECV ? FI_RECV : 0) | \
	 ((flags)&HD_C_MSG ? FI_MSG : 0) | ((flags)&HD_C_TAGGED ? FI_TAGGED : 0))
#define HD_FI_FOUR_FLAGS(from) \
	HD_FI_MESSAGE_FLAGS(from), HD_FI_MESSAGE_FLAGS((from) + 1), HD_FI_MESSAGE_FLAGS((from) + 2), \
		HD_FI_MESSAGE_FLAGS((from) + 3)
static_assert((HD_C_SEND | HD_C_RECV | HD_C_MSG | HD_C_TAGGED) == 15, "the table below has them all");

HD_FI_INLINE uint64_t hd_fi_cqe_flags(uint32_t flags)
{
	static const uint64_t message[16] = { HD_FI_FOUR_FLAGS(0), HD_FI_FOUR_FLAGS(4), HD_FI_FOUR_FLAGS(8),
					      HD_FI_FOUR_FLAGS(12) };
	uint64_t out = message[flags & 15];

	if (hd_fi_rare(flags > 15))
		out |= (flags & HD_C_IMM ? FI_REMOTE_CQ_DATA : 0) |
		       (flags & HD_C_MULTI_RECV ? FI_MULTI_RECV : 0) | (flags & HD_C_CLAIM ? FI_CLAIM : 0) |
		       (flags & HD_C_MORE ? FI_MORE : 0) | (flags & HD_C_CAST ? FI_MULTICAST : 0) |
		       (flags & HD_C_COLLECTIVE ? FI_COLLECTIVE : 0) |
		       (flags & (HD_C_RMA | HD_C_ATOMIC) ? hd_fi_rma_flags(flags) : 0);
	return out;
}

/*
 * hd_fi_cqe_size: bytes of an entry. A format that is a constant at the call makes both of these a few moves.
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
 * hd_fi_cqe_put writes e to `out` in that format; the shorter formats are beginnings of the longest one. Length, tag and data are of what has
 * come here, fi_cq(3); of what was sent there is 0, as libfabric's providers have it.
 */
HD_FI_INLINE void hd_fi_cqe_put(const struct hd_cqe *e, enum fi_cq_format format, void *out)
{
	const bool came = e->flags & (HD_C_RECV | HD_C_REMOTE);
	struct fi_cq_tagged_entry *entry = out;

	entry->op_context = e->ctx;
	if (format < FI_CQ_FORMAT_MSG)
		return;
	entry->flags = hd_fi_cqe_flags(e->flags);
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
