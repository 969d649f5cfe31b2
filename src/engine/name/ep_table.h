/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * The table of a node's endpoints, by index. An index is used again; its generation then is
 * another, and never 0, so that what was meant for the endpoint before is known. With the
 * node's lock; nothing blocks.
 */
#ifndef HD_ENGINE_EP_TABLE_H
#define HD_ENGINE_EP_TABLE_H

#include "engine/event/event.h"
#include "engine/name/state.h"

#include <assert.h>
#include <stddef.h>

struct hd_conn;
struct hd_arrived;
struct hd_msg;
struct hd_stream;
struct hd_op;
struct hd_poster;
struct hd_qp;
struct hd_transfer;
TAILQ_HEAD(hd_op_list, hd_op);

/* What bounds the operations under way: an endpoint's own, or one that several share. */
struct hd_txq {
	uint32_t ops, max;
	int users;
};

/*
 * What an endpoint wants done with what arrives, beside the usual: 0 for most, so that the path of
 * a message looks at one word only.
 */
enum hd_watch_bit {
	HD_WATCH_CONNECTED = 1 << 0, /* hd_ep.conn: takes messages of one other endpoint only */
	HD_WATCH_SERVICE = 1 << 1,   /* hd_ep.service: takes no messages */
	HD_WATCH_NAMELESS = 1 << 2,  /* takes no messages: nobody could know of it */
	/* hd_ep.key: takes messages of endpoints with the same key only */
	HD_WATCH_KEYED = 1 << 3,
	HD_WATCH_PAIRED = 1 << 4, /* hd_ep.qp: what comes is looked at in responder.c */
};

/*
 * What endpoints of a kind do in their own way: see ep/class.h. Upcalls, all with the
 * node's lock; no slot is empty.
 *
 * open: the endpoint has its queue, its name and its index, and nobody knows of it. 0 or a negative
 * errno; what it has made goes in free. It may post receives, but not send: counters, events and
 * owner are bound only afterwards.
 * close: the endpoint closes: before anything else of it is taken down, but its aliases. Nothing
 * completes, no event is posted. free: nothing of it is under way any more. Also of an endpoint
 * that did not come about, whether open was called or not. cast: a datagram has come that is for
 * this member of a group.
 * is_shown_to: which other end may reach its memory by itself, into `what`, where
 * only one may? False: nobody.
 */
struct hd_ep_class {
	int (*open)(struct hd_ep *ep, const struct hd_ep_attr *attr);
	void (*close)(struct hd_ep *ep);
	void (*free)(struct hd_ep *ep);
	void (*cast)(struct hd_group *group, const struct hd_arrived *what);
	bool (*is_shown_to)(const struct hd_ep *ep, struct hd_page_ep *what);
};

struct hd_ep {
	/* what a message looks at: set by ep as it opens */
	struct hd_node *node;
	struct hd_cq *tx_cq; /* neither is NULL: hd_events.no_cq stands for none */
	struct hd_cq *rx_cq;
	struct hd_rq *rq;
	uint32_t index; /* name's, as gen is */
	/* whom its messages name as their source: itself, or the endpoint whose name it shares */
	uint32_t src;
	uint16_t gen;
	uint16_t slot; /* of its place: name's */
	/* enum hd_watch_bit: hd_ep_watch_more: each is set by whose member it names */
	uint32_t watch;
	struct hd_ep_cntrs cntrs;
	uint32_t policy; /* qp takes HD_EP_DROP out */
	uint32_t pd;	 /* hd_ep_attr */
	struct hd_txq *tx;
	struct hd_qp *qp; /* HD_EP_NUMBERED */
	/* hd_ep_to: a connected one's other end, set by cm; else hd_links.nobody */
	struct hd_dest *to;
	const struct hd_poster *poster; /* rdm's; qp gives its own */
	/* the rest of ep's */
	const struct hd_ep_class *class;
	struct hd_evq *evq; /* of cm and of qp */
	void *owner;
	uint64_t key;		/* its authorization key; 0: none */
	struct hd_ep **aliases; /* aliases: the same endpoint with its other keys; see ep/alias.c */
	uint32_t alias_count;
	struct hd_txq own_tx;
	uint64_t serial; /* hd_ep_serial */
	uint64_t min_multi;
	bool own_rq : 1;
	bool is_kept : 1; /* hd_ep_set_kept */
	/* cm's and qp's */
	uint8_t rx_end; /* enum hd_rx_end */
	/* rdm's */
	/* rdm/order.h: a message is coming in for a receive with HD_RECV_ORDERED */
	bool rx_busy;
	bool rx_resuming; /* somebody sees to the deferred ones */
	/* name's, and what peers of this host see */
	/* what hd_page_ep.from must be for it: its index, and qp's HD_PAGE_LOSSY */
	uint32_t page_from;
	uint32_t page_epoch; /* and hd_page_ep.epoch: written by qp, else 0 */
	/* xfer's: hd_xfers.direct_pass when an operation was not done with its turn */
	uint32_t direct_pass;
	struct hd_bound_port *bound_port; /* where it is called; NULL: nowhere */
	/* rdm's: what messages have met, or are taken by FI_PEEK and not yet received */
	/* they have met their receives, and wait for those before */
	STAILQ_HEAD(, hd_msg) deferred;
	LIST_HEAD(hd_claims, hd_msg) claims;
	/* rq's */
	uint64_t unposted; /* receives that have left the queue for it without a message */
	/* xfer's */
	TAILQ_HEAD(hd_ep_transfers, hd_transfer)
	transfers; /* those under way, with any peer, and those that wait to be */
	/* NULL until something has to keep an order: xfer/send_lane.h */
	struct hd_ep_order *order;
	struct hd_transfer *framed; /* of those in order, the one whose frames leave */
	/*
	 * qp's: posted when a write that waited for a receive has met one;
	 * NULL: nobody wants to know
	 */
	struct hd_deferred *owed;
	/* xfer's: what comes in for it, each over a link of its own */
	LIST_HEAD(, hd_stream) streams;
	/*
	 * xfer's, of long operations under way: those that its messages must not overtake
	 * (HD_EP_SAW, HD_EP_SAR), or others (HD_EP_RMA_WHOLE)
	 */
	uint32_t send_fences, rma_fences;
	/* cm's */
	struct hd_conn *conn;	    /* HD_EP_MSG */
	struct hd_service *service; /* the service that is called by this name, or NULL */
};
static_assert(offsetof(struct hd_ep, cntrs.read) == 64, "what a message looks at takes more than a line");
static_assert(offsetof(struct hd_ep, qp) < 128, "what a send looks at takes more than two lines");
static_assert(sizeof(struct hd_ep) <= 336, "an idle endpoint takes more memory");

/*
 * What several rooms say of an endpoint they say here, so that one place writes it.
 *
 * hd_ep_watch_more: these bits of enum hd_watch_bit, too. hd_ep_set_receiving: messages for it take
 * receives of rq, complete in cq, and reach memory of this domain: as ep opens it, and while an XRC
 * target receives for another queue. hd_ep_set_poster: who posts its operations. hd_ep_set_policy:
 * as ep opens it, and what qp makes of it. hd_ep_set_to: the other end of a connection, or
 * hd_links.nobody. hd_ep_set_owner: whom its events are for, of ep and of a service.
 * hd_ep_set_rx_end: of cm and of qp.
 * hd_ep_set_lossy: peers that reach its memory know that it is of an unreliable queue pair.
 */
static inline void hd_ep_watch_more(struct hd_ep *ep, uint32_t bits)
{
	ep->watch |= bits;
}
static inline void hd_ep_set_receiving(struct hd_ep *ep, struct hd_rq *rq, struct hd_cq *cq, uint32_t pd)
{
	ep->rq = rq;
	ep->rx_cq = cq;
	ep->pd = pd;
}
static inline void hd_ep_set_poster(struct hd_ep *ep, const struct hd_poster *poster)
{
	ep->poster = poster;
}
static inline void hd_ep_set_policy(struct hd_ep *ep, uint32_t policy)
{
	ep->policy = policy;
}
static inline void hd_ep_set_to(struct hd_ep *ep, struct hd_dest *to)
{
	ep->to = to;
}
static inline void hd_ep_set_owner(struct hd_ep *ep, struct hd_evq *evq, void *owner)
{
	ep->evq = evq;
	ep->owner = owner;
}
static inline void hd_ep_set_rx_end(struct hd_ep *ep, uint8_t end)
{
	ep->rx_end = end;
}
static inline void hd_ep_set_lossy(struct hd_ep *ep)
{
	ep->page_from |= HD_PAGE_LOSSY;
}

/* hd_txq_take, hd_txq_give: one more operation is under way, or one less. */
static inline void hd_txq_take(struct hd_txq *tx)
{
	tx->ops++;
}
static inline void hd_txq_give(struct hd_txq *tx)
{
	tx->ops--;
}

/* hd_names_init, hd_names_fini: of a new node; of one that goes, with the table. */
void hd_names_init(struct hd_node *node);
void hd_names_fini(struct hd_node *node);

/*
 * hd_ep_index_take: the endpoint gets an index, the smallest that is free, and a generation: 0 or
 * -ENOMEM. hd_ep_index_give: they are nobody's.
 * hd_ep_gen_take: another generation, for one that begins anew.
 */
int hd_ep_index_take(struct hd_ep *ep);
void hd_ep_index_give(struct hd_ep *ep);
void hd_ep_gen_take(struct hd_ep *ep);

/*
 * hd_ep_alias: the endpoint itself or the alias of it that has this
 * authorization key (0: none), or NULL.
 */
struct hd_ep *hd_ep_alias(struct hd_ep *ep, uint64_t key);

/*
 * hd_ep_kind: of what kind it is, for people. hd_ep_number_shown: hd_ep_number, or the index of one
 * that has none. hd_ep_text: how lines of the log name it, as `heddle info` does: "queue pair
 * 0x8f2c02", "msg 3".
 */
struct hd_ep_text {
	char text[40];
};
const char *hd_ep_kind(const struct hd_ep *ep);
bool hd_ep_is_shared_rq(const struct hd_ep *ep); /* it stands for a shared receive queue */
uint32_t hd_ep_number_shown(const struct hd_ep *ep);
struct hd_ep_text hd_ep_text(const struct hd_ep *ep);

/* hd_pkt_named: the endpoint that a packet names, or NULL when it is gone. */
static inline struct hd_ep *hd_pkt_named(const struct hd_node *node, const struct hd_pkt *pkt)
{
	const struct hd_names *names = hd_names(node);
	struct hd_ep *ep = hd_likely(pkt->dst < names->ep_count) ? names->eps[pkt->dst] : NULL;

	return hd_likely(ep && ep->gen == pkt->gen) ? ep : NULL;
}

#endif
