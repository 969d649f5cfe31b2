/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * What a queue pair is made of: attr, life and parts (qp.h tells how they work together). Only the
 * files of this room look inside; others see it through qp.h's functions and hd_qp_inspect.
 */
#ifndef HD_ENGINE_QP_PARTS_H
#define HD_ENGINE_QP_PARTS_H

#include "engine/qp/state.h"
#include "engine/qp/xrc/proxy.h"
#include "engine/rq/rq.h"
#include "engine/xfer/xfer.h"

#include <errno.h>

enum hd_wqe_state {
	HD_WQE_WAITS, /* op is to be started */
	HD_WQE_SENT,  /* an eager message, answered by its number; no op */
	HD_WQE_UNDER, /* op is under way */
	HD_WQE_ENDED, /* status says how */
};

enum hd_wqe_way {		 /* what others have to know of one under way */
	HD_WAY_ORDERED = 1 << 0, /* the other end carries it out, in order */
	HD_WAY_READS = 1 << 1,	 /* a fence waits for it */
	HD_WAY_DIRECT = 1 << 2,	 /* we carry it out: nothing may overtake it */
};

struct hd_wqe {
	void *ctx;
	union {
		struct hd_op *op;
		struct hd_ud_waiting *waiting; /* ud.c */
	};
	uint64_t len, tag;
	uint32_t flags, cqe_flags; /* enum hd_send_flag, enum hd_cqe_flag */
	enum hd_status status;
	uint16_t units; /* its part of hd_sq.units */
	uint8_t state, way;
};

struct hd_queued;
struct hd_held_off;
struct hd_ud_waiting;

enum hd_ack_pending { /* that messages are accepted: ack.c */
	HD_ACK_PENDING_NO,
	/* in hd_qps.awaiting; when the node last went to sleep nobody waited for it */
	HD_ACK_PENDING_SILENT,
	HD_ACK_PENDING,	      /* in hd_qps.awaiting */
	HD_ACK_PENDING_NEVER, /* nothing is answered */
};

enum hd_holdoff_state {
	HD_HOLDOFF_NONE,
	HD_HOLDOFF_RUNS,
	HD_HOLDOFF_OVER
};

#define HD_QP_HEAD 64	      /* hd_ep_attr.head at most */
#define HD_LANE_WIDTH 16      /* long messages that come in at the same time */
#define HD_QP_SETTLE_NS 20000 /* how often to look whether somebody still copies through a window */

/*
 * What a post of the fronts has as `imm`: immediate data, and the number of a queue in the upper
 * half. hd_qp_head: what a header says of it.
 * hd_qp_imm_of: the other way round.
 */
static inline struct hd_pkt_qp hd_qp_head(uint64_t imm, struct hd_pkt_epoch epoch, uint32_t msn)
{
	return (struct hd_pkt_qp){
		.msn = msn, .queue = (uint32_t)(imm >> 32), .imm = (uint32_t)imm, .epoch = epoch
	};
}

static inline uint64_t hd_qp_imm_of(const struct hd_pkt_qp *head)
{
	return (uint64_t)head->queue << 32 | head->imm;
}

/* The send queue: sq.c. What a post touches stands first. */
struct hd_sq {
	uint32_t head, next, tail;
	/* not beside each other: the compiler would load as one what has just been stored as two */
	uint32_t units;	  /* of credit, by the lengths of what travels unanswered: sq.c bounds it */
	uint32_t reading; /* under way, by enum hd_wqe_way */
	uint32_t ordered;
	uint32_t direct;
	struct hd_pkt_epoch epoch; /* of what is sent */
	bool pushing;
	bool drain_all; /* it is to be told when all that is posted has ended: hd_ep_drain */
	/*
	 * somebody copies to memory that is to be let go first, and `settle`
	 * looks again: hd_qp_settle
	 */
	bool settles;
	uint32_t psn, base; /* the packet sequence number of WQE `base` */
	/* `next` and 1 when it was told that it is stalled: to get no further again is no news */
	uint32_t stalled_at;
	struct hd_timer settle;
	/* in its stalled_sqs, because its link or its credit was short; or NULL */
	struct hd_peer *stalled_on;
	TAILQ_ENTRY(hd_qp) stalled_entry;
};

/* What the other end has accepted of it: ack.c. */
struct hd_ack {
	enum hd_ack_pending pending;
	uint64_t look_due; /* hd_ticks(): not before that */
	uint64_t row_seen; /* what the other end's row said when we last looked */
	TAILQ_ENTRY(hd_qp) entry;
};

/* What has been accepted here: ack.c, and responder.c where a packet says so. */
struct hd_accepted {
	/* the newest message accepted and its endpoint, while `due` or `pending` */
	uint32_t op, to;
	bool due;		   /* a packet is to say so */
	bool pending;		   /* our row says so, and no message has carried it yet */
	uint32_t units;		   /* of the messages that our row is to say so of */
	struct hd_link *link;	   /* our row of this link is to say so; NULL: it does */
	struct hd_publish publish; /* in hd_core.publishing while `link` */
};

/* Whom requests are taken from: responder.c, in which epoch: epoch.c. */
struct hd_responder {
	/*
	 * `from` of from_peer may come: what it sends is looked at no longer. NULL:
	 * nobody yet, or no longer
	 */
	const struct hd_peer *from_peer;
	uint32_t from;
	/* number that the requests of the other end's epoch begin with, when hd_qp.taken is */
	uint32_t psn;
	uint64_t base; /* this */
	/*
	 * generation (hd_remote.gen) that we are synchronised with, for our answers; 0: with none
	 */
	uint16_t epoch_gen;
	/*
	 * a request of this endpoint in this generation has been given up, so that
	 * all behind it is refused
	 */
	uint16_t broken_gen;
	uint32_t broken_src;
	uint64_t broken_peer; /* hd_peer.serial, as it may be gone meanwhile; 0: nobody */
	/* the other end has been asked where it stands; it stands at told_psn */
	bool epoch_asked, epoch_told;
	uint32_t told_psn;
	uint32_t qkey, rnr_timer_us;
};

/*
 * Long ones that are coming in, in order: beside.c. What is behind them is held,
 * but for further messages.
 */
struct hd_qp_lane {
	uint32_t transfers;    /* in the lane, and those whose sender has gone: holdoff.c */
	enum hd_status status; /* the last one of them to end has failed */
	struct hd_lane order;  /* of hd_transfer.place */
};

/* The other end has gone: holdoff.c. */
struct hd_holdoff {
	uint32_t ms; /* hd_qp_attr */
	enum hd_holdoff_state state;
	struct hd_timer timer;
	STAILQ_HEAD(, hd_held_off) receives; /* whose sender has gone */
};

/*
 * silence.c: WQE `seq` has been the first one since then, by hd_now_ns(); 0: nothing was under way.
 */
struct hd_silence {
	uint32_t seq;
	uint64_t since;
};

/* The second path: path.c. */
struct hd_qp_path {
	struct sockaddr_storage addr; /* AF_UNSPEC: there is none */
	enum hd_path state;
	enum hd_path_word pending; /* to be said when the other end is reached; 0: nothing */
	bool other;		   /* the other end is rearmed */
	bool moves;		   /* the second is the first as soon as that can be */
};

/* HD_EP_XRC: whose queue, CQ and protection domain the endpoint has now: xrc/target.c. */
struct hd_xrc {
	struct hd_qp *target;	 /* NULL: its own */
	LIST_ENTRY(hd_qp) entry; /* target->xrc_users */
	struct hd_rq *own_rq;	 /* what it has of its own, while there is a target */
	struct hd_cq *own_cq;
	uint32_t own_pd;
};

/*
 * A request of a peer's that has come and is not answered: it waits in a responder queue, or is on
 * its way to another node (xrc/proxied.c).
 */
struct hd_held {
	LIST_ENTRY(hd_held) entry;	     /* peer->held_back */
	void (*ended)(struct hd_held *held); /* the peer is gone: it leaves the list */
};

/*
 * The responder queue: respq.c. It outlives an epoch, as what waits may be
 * for the one that follows.
 */
struct hd_respq {
	TAILQ_HEAD(, hd_queued) queue;
	struct hd_timer timer;	      /* of the first held one */
	struct hd_rq_waiter rnr_wait; /* the first that is held needs a receive */
	uint8_t retries;	      /* how often its sender tries, while `rnr_wait` and `timer` */
	/* the first that is held waits until nobody copies through the window that it takes back */
	bool taking;
};

/* What was asked for when it was opened: a reset leaves it. */
struct hd_qp_asked {
	/* of the ring of WQEs: its places are mask + 1, of which max are used */
	uint32_t mask, max;
	/* HD_EP_DROP was asked for: nothing is answered, no error of the other end counts */
	bool lossy;
	uint8_t wire_flags; /* enum hd_pkt_flag that each message has, and */
	/* HD_PKT_F_QUEUE: each thing that is sent names a queue, HD_EP_XRC; or 0 */
	uint8_t wire_queue;
	/* it has one other end, no name of a queue and no space in front of what it receives */
	bool plain;
	uint32_t head_len;
	uint64_t domain; /* hd_ep_attr */
	uint64_t (*head_fill)(void *owner, const struct hd_sender *from, void *at);
};

/*
 * One epoch: a reset ends it (hd_qp_end_life), and begins another by one
 * assignment (hd_qp_begin_life).
 */
struct hd_qp_life {
	enum hd_qp_state state; /* states.c alone sets it */
	enum hd_status status;	/* ERR: why; else 0 */
	struct hd_dest *dest;	/* the other end, referenced and followed; or NULL */
	struct hd_sq sq;
	struct hd_ack ack;
	struct hd_accepted accepted;
	struct hd_responder resp;
	struct hd_qp_lane lane;
	struct hd_follow follow; /* of dest */
	bool unreached;		 /* nobody answered when the other end was called */
	struct hd_holdoff holdoff;
	struct hd_silence silence;
	struct hd_xrc xrc;
	struct hd_qp_path path;
};

struct hd_qp {
	struct hd_ep *ep;
	struct hd_wqe *wqes; /* NULL: it does not send, or nothing has had to wait (ud.c) */
	struct hd_qp_asked attr;
	struct hd_qp_life life;
	/* over all epochs */
	struct hd_respq respq;
	uint64_t taken; /* receives, by what has arrived: see hd_qp_taken */
	/* our own since we were opened: older packets are for another endpoint */
	uint16_t first_gen;
	struct hd_mr *const *regions; /* hd_ep_regions */
	struct hd_deferred deferred;  /* hd_qp_kick */
	struct hd_ep_mark mark;	      /* mark.c */
	LIST_ENTRY(hd_qp) marked;     /* hd_qps.marked, while mark.passed */
	LIST_HEAD(, hd_qp) xrc_users; /* HD_EP_XRC_QUEUE */
	/*
	 * xrc/proxy.c: its requests for queues of others, or NULL; what leaves by it, and the way
	 * that it is part of, or NULL
	 */
	struct hd_xrc_proxy *xrc_proxy;
	struct hd_proxied *proxied;
	struct hd_route *route;
	void (*tell)(void *owner, uint32_t code, int err); /* hd_ep_attr.tell */
	/* cm's, see cm/ask.c; NULL: nothing is answered */
	struct hd_asks *asks;
};

/*
 * A post reads and writes these, and a usual arrival the next ones: each within two lines of the
 * cache, from the beginning of the part on.
 */
static_assert(offsetof(struct hd_qp, life.sq.pushing) <= 128, "what a post touches is at the beginning");
static_assert(offsetof(struct hd_responder, from) < 16 && offsetof(struct hd_qp_lane, transfers) == 0,
	      "what an arrival looks at is at the beginning of its part");
static_assert(sizeof(struct hd_qp) <= 888, "memory of an idle queue pair");

#define HD_PSN_MASK 0xffffffu

/*
 * hd_patience_set: how often and how long the target of what is sent is to wait. hd_patience_ms:
 * how long that is, 0: without end.
 */
static inline void hd_patience_set(struct hd_pkt_epoch *epoch, uint32_t rnr_retry, uint32_t timeout_ms)
{
	/*
	 * to a power of two, downwards: who asks for the longest time that is
	 * allowed does not get more
	 */
	uint32_t code = timeout_ms ? 32 - (uint32_t)__builtin_clz(timeout_ms) : 0;

	epoch->rnr_retry = rnr_retry < 7 ? rnr_retry : 7;
	epoch->timeout = code < 31 ? code : 31;
}

static inline uint32_t hd_patience_ms(struct hd_pkt_epoch epoch)
{
	return epoch.timeout ? 1u << (epoch.timeout - 1) : 0;
}

/*
 * hd_page_epoch: an epoch as rows of the node's page name it: its PSN, and the
 * generation in which it began.
 */
static inline uint32_t hd_page_epoch(uint32_t psn, uint16_t gen)
{
	return psn << 8 | (gen & 0xff);
}

/*
 * The upper half of a row's word (hd_link_ops.accept): the endpoint that the answer is
 * for, in which of its epochs.
 */
#define HD_ROW_EPOCH 20 /* bits of an index */
static inline uint32_t hd_row_for(uint32_t index, uint16_t gen)
{
	return (uint32_t)gen << HD_ROW_EPOCH | index;
}

#endif
