/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * What the target of a one-sided operation does for all kinds of them: read the request and
 * find its memory; and responses: requests of peers that are carried out here in several turns.
 * All with the node's lock.
 */
#ifndef HD_ENGINE_RESPONSE_H
#define HD_ENGINE_RESPONSE_H

#include "engine/mr/mr.h"
#include "engine/rma/rma.h"

#define HD_RMA_PIECES (HD_RMA_SEGS * HD_MAX_IOV) /* segments of ours that a request can lead to */

/* A request, checked as far as it can be without looking at our memory. */
struct hd_rma_request {
	const struct hd_arrival *a;
	const struct hd_rma_server *server;
	uint64_t len;  /* to be transferred */
	uint64_t done; /* was before */
	int count;
	const struct hd_rma_seg *seg;
	const void *rest; /* payload behind the list: the offer, or all the data */
	size_t rest_len;
	bool offers;
	struct hd_rma_list own; /* read here, where nobody has before */
};

/* Where it leads to. */
struct hd_rma_found {
	uint32_t access;
	int pieces, regions;
	struct iovec iov[HD_RMA_PIECES];
	struct hd_mr *mr[HD_RMA_SEGS];
	uint64_t lens[HD_RMA_SEGS]; /* of what is asked for in each of them */
};

/* A region that a response reads from, or stores into. */
struct hd_rma_held {
	struct hd_mr_hold hold;
	struct hd_response *response;
	uint64_t len; /* of what is asked for there */
};

struct hd_response {
	struct hd_transfer t; /* first */
	const struct hd_rma_server *server;
	uint32_t access;	   /* of its regions: HD_ACCESS_REMOTE_* */
	uint32_t units;		   /* credit that it holds */
	uint32_t src;		   /* hd_dest_id of who asks */
	struct hd_of_peer of_peer; /* HD_OF_PEER_READ, of one that is served */
	uint8_t flags;		   /* enum hd_pkt_flag of the request */
	uint64_t imm;
	uint64_t done;	   /* bytes that were transferred before */
	void *copy;	   /* of all bytes: what a short READ found when it came; or NULL */
	size_t size;	   /* of the allocation */
	struct iovec *iov; /* its pieces, behind held[] */
	int regions;
	struct hd_rma_held held[];
};

/*
 * hd_rma_parse: read a request, whose bytes are the peer's, into *r. -EPROTO: it breaks the rules.
 */
int hd_rma_parse(const struct hd_arrival *a, struct hd_rma_request *r);

/*
 * hd_rma_find: find the memory of all segments; access: HD_ACCESS_REMOTE_*; policy: what the
 * endpoint must allow. HD_S_OK, or a status for the initiator.
 */
enum hd_status hd_rma_find(const struct hd_rma_request *r, uint32_t access, uint32_t policy,
			   struct hd_rma_found *f);

/* hd_atomic_carry_out: as hd_rma_request, of an ATOMIC. */
enum hd_status hd_atomic_carry_out(const struct hd_arrival *a);

/* hd_rma_touched: count it here, at the endpoint and in each region. */
void hd_rma_touched(struct hd_ep *ep, const struct hd_rma_found *f);

static inline struct hd_response *hd_response_of(struct hd_transfer *t)
{
	return hd_container(t, struct hd_response, t);
}

/*
 * hd_response_make: one that carries out a request in several turns, holds its regions and
 * HD_UNITS_RMA of the peer's credit, and is about to begin. NULL without memory. hd_response_count:
 * it has been carried out. hd_response_free: with what it holds. hd_response_copy: it needs its
 * regions' bytes as they are now. -ENOMEM; -EFAULT: they are gone.
 * hd_response_dropped: as hd_transfer_owner.dropped.
 */
struct hd_response *hd_response_make(const struct hd_rma_request *r, const struct hd_rma_found *f,
				     const struct hd_transfer_owner *owner);
void hd_response_count(const struct hd_response *r);
void hd_response_free(struct hd_response *r);
int hd_response_copy(struct hd_response *r);
void hd_response_dropped(struct hd_transfer *t);

#endif
