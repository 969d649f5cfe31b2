/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Receive queues between the engine's rooms: who waits for a receive, how what is posted or waits
 * leaves otherwise than by meeting, and what receives use of regions. Single receives are in
 * recv.h. With the node's lock; nothing blocks.
 */
#ifndef HD_ENGINE_QUEUE_H
#define HD_ENGINE_QUEUE_H

#include "engine/mr/mr.h"
#include "engine/rq/match.h"
#include "engine/rq/state.h"

#include <assert.h>

#define HD_SEND_WIRE 0x4f /* enum hd_send_flag: those that travel */

/* A posted receive. */
struct hd_recv {
	struct hd_mnode m; /* first: tag, source, order */
	void *ctx;
	uint32_t flags; /* enum hd_recv_flag */
	int count;
	struct iovec iov; /* the only segment, or the first; multi-receive: what is left of it */
	union {
		struct iovec *more; /* count above 1: all segments; from hd_rqs.iovs */
		/* HD_RECV_PART: the multi-receive buffer that this is a part of */
		struct hd_recv *whole;
		/* HD_RECV_MULTI: parts of it that belong to messages that have not ended */
		uint32_t parts;
	};
	struct hd_ep *ep; /* who posted it */
	/* hd_recv_args; those of several segments stand behind them: hd_recv_regions */
	struct hd_mr *region;
};

/* hd_recv_regions: of its segments, where it has some. */
static inline struct hd_mr **hd_recv_regions(struct hd_recv *r)
{
	return r->count > 1 ? (struct hd_mr **)(void *)(r->more + HD_IOV_MAX) : &r->region;
}

/* A message that waits for its receive. */
struct hd_msg {
	/* first: tag, source (which may change while it waits), order of arrival */
	struct hd_wnode w;
	/*
	 * hd_dest.messages of whom it is from, or peer->kept, while peer is there; then
	 * share->left, if `left`. Its neighbours are mostly those of w, and so in the same line
	 */
	struct hd_ring kept;
	struct hd_ep *ep;	/* whom it came to */
	struct hd_peer *peer;	/* whose credit it holds; NULL once that peer is gone */
	struct hd_share *share; /* then: in which it is counted; NULL: it came from a group */
	uint64_t imm;
	uint64_t len;		  /* of the message */
	uint32_t op;		  /* the sender's operation: RTS, or EAGER with HD_PKT_F_ACK */
	uint32_t room;		  /* bytes of data[] */
	uint32_t units;		  /* credit it holds */
	uint8_t kind;		  /* HD_PKT_EAGER or HD_PKT_RTS */
	uint8_t flags;		  /* enum hd_pkt_flag */
	bool arriving;		  /* data is still coming in through a sink */
	bool early;		  /* a datagram that is counted in hd_rq.early */
	bool left;		  /* in share->left */
	bool claimed;		  /* taken out of the queue by hd_peek; in ep->claims */
	bool deferred;		  /* in ep->deferred */
	struct hd_recv *waiter;	  /* receive that matched it while it was arriving */
	struct hd_handle *handle; /* buffered.c: it is being handed over; claimed */
	LIST_ENTRY(hd_msg) claim_entry;
	union {
		STAILQ_ENTRY(hd_msg) defer; /* deferred */
		const void *name;	    /* claimed, and not yet received: hd_claim_name */
	};
	_Alignas(8) unsigned char data[]; /* EAGER: the payload; RTS: the offer */
};

struct hd_rq {
	struct hd_node *node;
	struct hd_match match[2]; /* untagged, tagged */
	int users;		  /* endpoints */
	/* what datagrams that wait here would take in a socket: bytes */
	uint32_t early;
	struct hd_buffered *buffered;	    /* HD_EP_BUFFERED, or NULL */
	const struct hd_rq_keeper *keeper;  /* its, or NULL */
	TAILQ_HEAD(, hd_rq_waiter) waiters; /* who cannot go on until a receive is posted; by age */
	TAILQ_ENTRY(hd_rq) entry;	    /* hd_rqs.rq_list */
	struct hd_rq_limit limit;	    /* least 0: none is armed */
	LIST_ENTRY(hd_rq) limited;	    /* hd_rqs.limited, while one is */
	LIST_HEAD(, hd_mr) regions;	    /* that have been posted here alone */
};

static_assert(HD_SRC_GROUPS == HD_MATCH_GROUPS, "keys and queues take different sources for groups");

/* hd_rqs_init, hd_rqs_fini: of a new node, of one that goes. */
void hd_rqs_init(struct hd_node *node);
void hd_rqs_fini(struct hd_node *node);

/*
 * Whoever cannot go on until a receive is posted. An upcall: posted is called after that with the
 * node's lock, for one after the other, by age, as long as there is a receive and the one before
 * has left the list, or has taken its place at the end. It may take receives, wait again, fail or
 * close what waits, but not the queue.
 *
 * hd_rq_wait: it is the last of this queue's. hd_rq_unwait: it waits no longer; nothing where it
 * does not. hd_rq_posted: a receive has been posted.
 */
struct hd_rq_waiter {
	TAILQ_ENTRY(hd_rq_waiter) entry; /* rq->waiters */
	struct hd_rq *rq;		 /* NULL: it does not wait */
	void (*posted)(struct hd_rq_waiter *w);
};
void hd_rq_wait(struct hd_rq *rq, struct hd_rq_waiter *w);
void hd_rq_unwait(struct hd_rq_waiter *w);
void hd_rq_posted(struct hd_rq *rq);

/*
 * hd_rq_check (check.c): asserts in builds with assertions that its halves, its limit and who waits
 * agree with what they count.
 */
#ifdef NDEBUG
static inline void hd_rq_check(struct hd_rq *rq)
{
}
#else
void hd_rq_check(struct hd_rq *rq);
#endif

/*
 * Who hands messages of this queue over instead of having them received. Upcalls: freed, a message
 * with a handle is about to be freed; closed, the queue closes, and has no endpoint any more.
 */
struct hd_rq_keeper {
	void (*freed)(struct hd_msg *m);
	void (*closed)(struct hd_rq *rq);
};

/* What becomes of receives that are posted to an endpoint: hd_ep.rx_end. */
enum hd_rx_end {
	HD_RX_OPEN,
	HD_RX_REFUSED, /* its connection is over: -ENOTCONN */
	HD_RX_FLUSHED, /* its queue pair has failed: HD_S_CANCELLED, in a queue of its own */
};

/*
 * hd_rq_drop_posted: forget what the endpoint (NULL: whoever) has posted, without completions.
 * hd_rq_drop_waiting: the endpoint closes: forget what waits for it.
 * hd_rq_flush: the endpoint is connected no longer: the receives in a queue of its own complete in
 * error, a status, and what was only promised to it is forgotten.
 */
void hd_rq_drop_posted(struct hd_rq *rq, struct hd_ep *ep);
void hd_rq_drop_waiting(struct hd_rq *rq, struct hd_ep *ep);
void hd_rq_flush(struct hd_ep *ep, enum hd_status status);
/*
 * hd_rqs_number: a source has several numbers (hd_source_next). Goes through the queues once in a
 * node's life. False: no receive here names a source.
 */
bool hd_rqs_number(struct hd_node *node);
/* link's observers, see link/observers.h */
void hd_rqs_ended(struct hd_peer *peer, enum hd_status status);
bool hd_rqs_forget(struct hd_node *node, uint32_t count);
void hd_rqs_forgo(struct hd_share *share);

/* Of hd_msg.flags and hd_received.flags, never of a packet: */
#define HD_MSG_WRITTEN (1u << 4) /* it stands for a write */
#define HD_MSG_CAST (1u << 5)	 /* it was sent to a group */

/*
 * waiting.c, of single messages that are in no queue. hd_msg_free: its credit goes back, to its
 * peer, or if that is gone, to whoever comes next.
 * hd_msg_orphan: its peer is gone, or has to do with it no longer. hd_msg_taken: out of its queue
 * by the program, so it is not dropped any more to make room.
 * hd_msg_answer: to its sender, if that is still there. hd_msg_discard: it is not wanted; its
 * sender is told, where it waits for an answer.
 */
#define HD_EARLY_MORE 768u /* what a datagram takes in a socket beside its bytes: hd_rq.early */

/*
 * hd_msg_mark_early: it is a datagram of so many bytes, which is counted in
 * hd_rq.early until it goes.
 */
static inline void hd_msg_mark_early(struct hd_msg *m, uint32_t len)
{
	m->early = true;
	m->ep->rq->early += len + HD_EARLY_MORE;
}
void hd_msg_free(struct hd_msg *m);
void hd_msg_orphan(struct hd_msg *m);
void hd_msg_taken(struct hd_msg *m);
void hd_msg_answer(struct hd_msg *m, uint8_t kind, enum hd_status status);
void hd_msg_discard(struct hd_msg *m, enum hd_status status);
void hd_rq_drop_requests(struct hd_ep *ep); /* for hd_rq_flush: what was only promised to it */

/*
 * regions.c. hd_rq_note_regions: this receive, with regions, has been posted to the queue.
 * hd_rq_leave_region: `from` goes, and `to`, or nothing (NULL), takes its place: receives that have
 * segments there move, or complete with the region's fault when a message takes them.
 */
void hd_rq_note_regions(struct hd_rq *rq, struct hd_recv *r);
void hd_rq_leave_region(struct hd_mr *from, struct hd_mr *to);
void hd_rq_regions_close(struct hd_rq *rq); /* rq.c's */

/*
 * hd_rq_inspect: what is in a queue, for tests and for who wants to show
 * it; [1] is the tagged half.
 */
struct hd_rq_view {
	size_t posted[2], waiting[2];
	uint32_t waiters; /* who cannot go on until a receive is posted */
	uint32_t early;	  /* bytes that datagrams which wait would take in a socket */
	uint32_t limit;	  /* below which somebody is told; 0: nobody */
	int users;
};
struct hd_rq_view hd_rq_inspect(const struct hd_rq *rq);

/* limit.c: look at all that are armed; returns how many were told of. */
int hd_limits_look(struct hd_node *node);

#endif
