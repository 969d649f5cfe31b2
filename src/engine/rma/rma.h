/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * One-sided and atomic operations: the initiator (hd_rma and hd_atomic of engine/api/rma.h, which
 * is told by the endpoint's struct hd_poster what its order allows) and the target
 * (hd_rma_request). rdm and qp call it when it is an operation's turn; it never calls them.
 *
 * With the node's lock; nothing blocks. Upcalls: struct hd_rma_server.
 */
#ifndef HD_ENGINE_RMA_H
#define HD_ENGINE_RMA_H

#include "engine/rma/atomic.h"
#include "engine/xfer/xfer.h"

/*
 * hd_rma_later: hd_rma of what takes more than a copy at once; by_packet: nobody
 * shall try to copy it here.
 */
int hd_rma_later(struct hd_ep *ep, struct hd_dest *dest, const struct hd_rma_args *args, bool by_packet);

/*
 * hd_rma_list_size: bytes of the list of `count` segments that begins the payload of a WRITE
 * or READ, without an offer.
 */
static inline size_t hd_rma_list_size(int count)
{
	return sizeof(struct hd_rma) + (size_t)count * sizeof(struct hd_rma_seg);
}

/* What begins the payload of a WRITE or READ, which the other end may change at any time. */
struct hd_rma_list {
	struct hd_rma head;
	struct hd_rma_seg seg[HD_RMA_SEGS];
	uint64_t sum; /* bytes of all segments */
	size_t size;  /* bytes of the payload that it takes itself */
	/* and what follows, and nothing else does: the offer, all of the data, or nothing */
	size_t rest;
};

/*
 * hd_rma_list_read: read it, once. False: it breaks the rules. hd_rma_list_of: that of a request,
 * read before or, into *own, now; NULL: it breaks the rules. hd_rma_list_data: the bytes of the
 * program's that a WRITE has with it. hd_rma_list_units: what the WRITE costs: as a message where
 * these are all. hd_rma_payload: the payload, as it has been read, for who keeps the request:
 * a->len bytes.
 */
bool hd_rma_list_read(struct hd_rma_list *list, const void *payload, size_t len);
void hd_rma_payload(const struct hd_arrival *a, void *to);
static inline const struct hd_rma_list *hd_rma_list_of(const struct hd_arrival *a, struct hd_rma_list *own)
{
	return a->list ? a->list : hd_rma_list_read(own, a->payload, a->len) ? own : NULL;
}
static inline size_t hd_rma_list_data(const struct hd_rma_list *list)
{
	return list->head.offer_len ? 0 : list->rest;
}
static inline uint32_t hd_rma_list_units(const struct hd_rma_list *list)
{
	return !list->head.offer_len && list->rest == list->sum ? hd_units(list->size + list->rest)
								: HD_UNITS_RMA;
}

/*
 * For whom the requests of others are carried out here: matched endpoints, or queue pairs.
 * Called with the node's lock.
 *
 * written: all of a write with immediate data that uses up a receive (HD_EP_IMM_RECV) is here:
 * complete that. It may use `units` of the peer's credit for as long as it has to wait; returns
 * what is left to be given back.
 * begin, end: a write that takes several turns comes in, has ended or was given up. turn: it is
 * here, or has failed with *status: may it end now, with *status as it is then? False: it is ended
 * by hd_transfer_end later. The three are NULL where there is no order. offended: memory that a
 * request led to is gone, which its initiator has been told as `status`. NULL: nobody else cares.
 */
struct hd_rma_server {
	uint32_t (*written)(struct hd_ep *ep, struct hd_peer *peer, const struct hd_cqe *e, uint32_t units);
	void (*begin)(struct hd_transfer *t);
	bool (*turn)(struct hd_transfer *t, enum hd_status *status);
	void (*end)(struct hd_transfer *t);
	void (*offended)(struct hd_ep *ep, enum hd_status status);
};

/*
 * hd_rma_request: carry out WRITE, PUT, READ, ATOMIC or FLUSH at a->ep. 0: it has been, or will be,
 * and answered. A status: it is refused, nothing has happened, and the caller answers
 * (hd_arrival_refuse). Negative: it breaks the rules, and the link is to go.
 */
int hd_rma_request(const struct hd_arrival *a, const struct hd_rma_server *server);
/*
 * hd_rma_may_join: of a WRITE: its data comes in frames, nobody is told at its end, and as things
 * are now it would not be refused.
 */
bool hd_rma_may_join(const struct hd_arrival *a);
/* hd_rma_tells: this transfer is such a write, which uses up a receive at its end. */
bool hd_rma_tells(struct hd_transfer *t);
/* hd_rma_taken_back: the peer no longer wants the data of its READ with this number. */
void hd_rma_taken_back(struct hd_peer *peer, uint32_t number);

#endif
