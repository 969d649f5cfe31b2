/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* What is known of a one-sided operation of ours, for those who carry it out. */
#ifndef HD_ENGINE_RMA_H
#define HD_ENGINE_RMA_H

#include "engine/internal.h"

/* hd_op.extra of one of ours: where it goes to, or comes from. */
struct hd_rma_run {
	int count;
	uint64_t done; /* bytes that have been cut off in front, since they were copied */
	struct hd_rma_seg seg[];
};

static inline const struct hd_rma_run *hd_op_rma(const struct hd_op *op)
{
	return op->extra;
}

/* hd_op_is_read: of ours, a read; else it is a write. */
extern const struct hd_op_kind hd_rma_writes, hd_rma_reads;
static inline bool hd_op_is_read(const struct hd_op *op)
{
	return op->kind == &hd_rma_reads;
}

/* hd_rma_later: hd_rma of what takes more than a copy at once; by_packet: nobody shall try to copy it here. */
int hd_rma_later(struct hd_ep *ep, struct hd_dest *dest, const struct hd_rma_args *args, bool by_packet);

/* hd_rma_list_size: bytes of the list of `count` segments that begins the payload of a WRITE or READ, without an offer. */
static inline size_t hd_rma_list_size(int count)
{
	return sizeof(struct hd_rma) + (size_t)count * sizeof(struct hd_rma_seg);
}

/* hd_rma_take_back: a READ of ours is given up, while its data is awaited: tell the target to send no more of it. */
void hd_rma_take_back(const struct hd_op *op);

/* rma_target.c: one-sided operations that others ask for. They take a packet in; negative: it broke the rules, the link is to go. */
int hd_rma_write(struct hd_link *link, const struct hd_pkt *pkt, const void *payload, size_t len);
/*
 * hd_rma_may_join: of a WRITE to the queue pair ep: its data comes in frames, nobody is told at its end, and as things are now it would not be refused.
 */
bool hd_rma_may_join(struct hd_link *link, struct hd_ep *ep, const struct hd_pkt *pkt, const void *payload,
		     size_t len);
int hd_rma_put(struct hd_link *link, const struct hd_pkt *pkt, const void *payload, size_t len);
int hd_rma_read(struct hd_link *link, const struct hd_pkt *pkt, const void *payload, size_t len);
/* hd_rma_taken_back: the peer no longer wants the data of its READ with this number. */
void hd_rma_taken_back(struct hd_peer *peer, uint32_t number);

#endif
