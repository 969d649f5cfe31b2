/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Queue pairs of all types: qp.c who talks with whom, and how that ends; docs/queue-pairs.md tells
 * the whole. Called by dispatch, cm, ep and node; rdm does not know it. With the node's lock;
 * nothing blocks. It has no upcalls but the front's: hd_qp_asked.head_fill, and hd_ep_attr.stray.
 *
 *	sending		sq.c the send queue; sq_end.c how its requests end; ud.c that of datagrams;
 *			ack.c what the other end has accepted; bind.c, failed.c requests that need
 *			nobody else
 *	arriving	responder.c what is carried out now; respq.c the responder queue: what has
 *			to wait; beside.c what ends in order
 *	states		states.c the table of transitions
 *	epochs		epoch.c which of the two ends' epochs belong together
 *	failing		holdoff.c the other end goes; silence.c its host goes; path.c another path
 *			leads there
 *	XRC		xrc/target.c whose queue is used; xrc/proxy.c, xrc/proxied.c queues of other
 *			nodes
 *
 * The send queue of a paired endpoint is a ring of WQEs, what has been posted and not been
 * completed, by numbers that run on:
 *
 *	head ────────── next ────────── tail
 *	 under way, or    wait to be
 *	 ended            started
 *
 * An eager message that has left is a WQE and nothing else: its number is the packet's `op`, and
 * one answer (HD_PKT_F_SSN) stands for all up to that number. A WQE's place is free when it and all
 * before it have ended: hd_sq_retire completes them in order.
 *
 * Of an unpaired one it has what could not leave at once: each WQE from `next` on waits for its own
 * destination, or has ended behind one that does (ud.c).
 *
 * What arrives is carried out one request after the other. What cannot be yet keeps its packet,
 * payload and credit in `queue`, and so does all behind it; only long messages and writes that fit
 * come in beside each other, and end in order.
 *
 * Whatever changes lists that a caller may be walking along is put off to the end
 * of the turn: hd_qp_kick.
 */
#ifndef HD_ENGINE_QP_H
#define HD_ENGINE_QP_H

#include "engine/qp/parts.h"

/*
 * All that follows is called with the node's lock, and blocks nowhere; errors are negative errnos;
 * how something has ended is a status.
 */

/*
 * The queue pair that this is for, if it is for one. Since that was opened its
 * generation may have changed.
 */
static inline struct hd_ep *hd_pkt_pair(const struct hd_node *node, const struct hd_pkt *pkt)
{
	struct hd_ep *ep = pkt->dst < hd_names(node)->ep_count ? hd_names(node)->eps[pkt->dst] : NULL;

	if (!ep || !ep->qp)
		return NULL;
	return (uint16_t)(ep->gen - pkt->gen) <= (uint16_t)(ep->gen - ep->qp->first_gen) ? ep : NULL;
}

/* ---- qp.c ---- */

/*
 * hd_qp_open: with the endpoint: 0, or negative, and what there is goes with it. hd_qp_close:
 * before anything else of it is taken down. hd_qp_free: after that; nothing where there is none.
 * hd_qp_end_life, hd_qp_begin_life: hd_ep_reset: what it was, it is no longer; and it begins anew,
 * with another generation.
 */
int hd_qp_open(struct hd_ep *ep, const struct hd_ep_attr *attr);
void hd_qp_close(struct hd_ep *ep);
void hd_qp_free(struct hd_ep *ep);
bool hd_qp_is_shown_to(const struct hd_ep *ep,
		       struct hd_page_ep *what); /* of its class: for the other end alone */
void hd_qp_end_life(struct hd_qp *p);
void hd_qp_begin_life(struct hd_qp *p);

/* ---- states.c ---- */

/* The transitions between states of a queue pair, and who asks for them. */
enum hd_qp_step {
	HD_QP_STEP_INIT,    /* hd_ep_init */
	HD_QP_STEP_PAIR,    /* hd_ep_pair */
	HD_QP_STEP_START,   /* hd_ep_pair, hd_ep_start */
	HD_QP_STEP_PAUSE,   /* hd_ep_pause */
	HD_QP_STEP_DRAINED, /* what was under way has ended */
	HD_QP_STEP_RESUME,  /* hd_ep_pause */
	/* a request has failed, and those before it have not ended, or its error is held off */
	HD_QP_STEP_PEND,
	HD_QP_STEP_SQE,	  /* it has completed in error, at one that is not reliable */
	HD_QP_STEP_GO_ON, /* hd_ep_go_on */
	HD_QP_STEP_FAIL,  /* something has failed it */
	HD_QP_STEP_FLUSH, /* the turn is over, or hd_ep_fail */
	HD_QP_STEP_RESET, /* hd_ep_reset */
	HD_QP_STEPS
};

/*
 * hd_qp_may: is there such a transition from its state? hd_qp_step: make it, for there is.
 * hd_qp_ask: the same for a front that asks: 0, or -EINVAL and nothing has changed.
 * hd_qp_shut: it closes, and is ERR for what comes in while the rest is taken down.
 */
bool hd_qp_may(const struct hd_qp *p, enum hd_qp_step step);
const char *hd_qp_state_name(enum hd_qp_state state); /* for people */
void hd_qp_step(struct hd_qp *p, enum hd_qp_step step);
void hd_qp_shut(struct hd_qp *p);
int hd_qp_ask(struct hd_qp *p, enum hd_qp_step step);

/*
 * hd_qp_is_ready: what arrives is carried out. hd_qp_has_failed: ERR. hd_qp_flushes: what is posted
 * is. hd_qp_is_draining: SQD, not yet drained.
 */
static inline bool hd_qp_is_ready(const struct hd_qp *p)
{
	return p->life.state >= HD_QP_RTR && p->life.state <= HD_QP_SQE;
}
static inline bool hd_qp_has_failed(const struct hd_qp *p)
{
	return p->life.state >= HD_QP_ERR_FALLING;
}
static inline bool hd_qp_flushes(const struct hd_qp *p)
{
	return p->life.state >= HD_QP_SQD_SQE;
}
static inline bool hd_qp_is_draining(const struct hd_qp *p)
{
	return p->life.state == HD_QP_SQD || p->life.state == HD_QP_SQD_PENDING;
}

/* ---- qp.c, what it does at the end of a turn ---- */

/*
 * hd_qp_kick: have it looked at when this turn of progress is over. hd_qp_fail_soon: and have it
 * fail then, if it has not.
 */
void hd_qp_kick(struct hd_qp *p);
void hd_qp_fail_soon(struct hd_qp *p, enum hd_status status);

/*
 * hd_qp_settle: somebody copies: look again in so many ns whether the next WQE can be started, or,
 * of one that has failed, whether that can end (hd_qp_kick). hd_qp_settle_end: no longer.
 */
void hd_qp_settle(struct hd_qp *p, uint64_t ns);
void hd_qp_settle_end(struct hd_qp *p);

/*
 * hd_qp_event: tell the front. hd_qp_offended: the other end did what it may not: the front is
 * told, and the pair fails (HD_EP_STRICT).
 */
void hd_qp_event(const struct hd_qp *p, uint32_t code, enum hd_status status);
void hd_qp_offended(struct hd_ep *ep, enum hd_status status);

/* hd_qp_is_bound: the other end is known, and a link leads to it. */
bool hd_qp_is_bound(const struct hd_qp *p);

/*
 * hd_qp_following: the queue pair whose other end a follower follows; NULL: it is somebody else's.
 */
struct hd_qp *hd_qp_following(struct hd_follow *follow);

/* hd_qp_taken: how many receives have left their queue for it. */
static inline uint64_t hd_qp_taken(const struct hd_qp *p)
{
	return p->taken + p->ep->unposted;
}

/* hd_sender_of: who a message came from, by hd_cqe.src. */
void hd_sender_of(const struct hd_node *node, uint32_t src, struct hd_sender *out);

/*
 * check.c, in builds with assertions. hd_qp_check: what its state says of it is so, and its counts
 * agree with what they count. hd_qp_check_over: nothing of the epoch that ends is left.
 */
#ifdef NDEBUG
static inline void hd_qp_check(const struct hd_qp *p)
{
}
static inline void hd_qp_check_over(const struct hd_qp *p)
{
}
#else
void hd_qp_check(const struct hd_qp *p);
void hd_qp_check_over(const struct hd_qp *p);
#endif

/*
 * hd_qp_inspect (inspect.c): how it stands with a queue pair, for tests and for who wants to
 * show it. It changes nothing.
 */
enum hd_qp_waits {	     /* why the send queue starts nothing at the moment */
	HD_QP_WAITS_NOT,     /* all that is posted has been started */
	HD_QP_WAITS_READY,   /* it is not ready to send, or has no other end */
	HD_QP_WAITS_DRAINED, /* SQD: it is to start nothing */
	HD_QP_WAITS_LINK,    /* the other end has not been reached yet */
	HD_QP_WAITS_WINDOW,  /* somebody copies through a window that is taken back */
	HD_QP_WAITS_CREDIT,  /* the credit, or the room in the link, is short */
	HD_QP_WAITS_ORDER,   /* for what is under way before it, or for the next turn */
};

struct hd_qp_view {
	enum hd_qp_state state;
	enum hd_status status; /* ERR: why */
	enum hd_qp_waits waits;
	uint32_t posted;  /* WQEs that have not completed */
	uint32_t started; /* of these the first ones, which have left or ended */
	uint32_t units;	  /* of credit that they have taken */
	uint32_t ordered; /* of these that are under way, those in order */
	/* the responder's */
	uint32_t coming_in; /* long messages and writes */
	uint32_t held_off;  /* receives whose sender has gone */
	uint32_t queued;    /* requests that cannot be carried out yet */
	bool rnr_wait;	    /* the first of them needs a receive */
	uint64_t due;	    /* when that is given up, by hd_now_ns(); 0: never */
};
struct hd_qp_view hd_qp_inspect(const struct hd_qp *p);

/*
 * hd_qp_is_paired: it has one other end; else, if it has a send queue, its WQEs have a
 * destination each (ud.c).
 */
static inline bool hd_qp_is_paired(const struct hd_qp *p)
{
	return p->ep->policy & HD_EP_PAIRED;
}

/* hd_sq_ring (qp.c): it has room for WQEs from now on; 0 or -ENOMEM. */
int hd_sq_ring(struct hd_qp *p);

/* ---- sq.c ---- */

/* hd_wqe_at: the WQE with this number. */
static inline struct hd_wqe *hd_wqe_at(const struct hd_qp *p, uint32_t seq)
{
	return &p->wqes[seq & p->attr.mask];
}

/*
 * hd_sq_append: one more, for which there is room. hd_sq_flush: the same where it has failed, or is
 * in SQE: it completes with HD_S_CANCELLED.
 */
struct hd_wqe *hd_sq_append(struct hd_qp *p, const struct hd_wqe *what);
void hd_sq_flush(struct hd_qp *p, const struct hd_wqe *what);

/* hd_sq_room: 0; -EAGAIN: the send queue is full; -ENOTCONN: the other end has not been named, and
 * it has not failed; -ENOTRECOVERABLE: in a child. */
int hd_sq_room(const struct hd_ep *ep);

/* hd_sq_left: how many more it takes. */
static inline uint32_t hd_sq_left(const struct hd_qp *p)
{
	return p->attr.max - (p->life.sq.tail - p->life.sq.head);
}

/* hd_qp_poster: how those post that are paired. */
extern const struct hd_poster hd_qp_poster;

/*
 * hd_sq_send: as hd_send. hd_sq_post: take over an operation, which is freed where it fails: 0,
 * -EAGAIN. Either may start it, or end it, before it returns.
 */
int hd_sq_send(struct hd_ep *ep, const struct hd_send_args *a);
int hd_sq_post(struct hd_op *op);

/* hd_sq_fail: it is to fail with status in its turn, if it has not left yet, else at once. */
void hd_sq_fail(struct hd_op *op, enum hd_status status);
/* failed.c: what it is until then; the status is its t.status */
extern const struct hd_op_kind hd_failed_kind;

/*
 * hd_sq_push: start what can be. hd_sqs_push: of all that wait for this peer's link or credit; how
 * many have started something.
 */
void hd_sq_push(struct hd_qp *p);
int hd_sqs_push(struct hd_peer *peer);

/*
 * hd_sq_stall: its next one waits for this peer's link or credit, unless it waits for another's.
 * hd_sq_leave: for none any more.
 */
void hd_sq_stall(struct hd_qp *p, struct hd_peer *peer);
void hd_sq_leave(struct hd_qp *p);

/* hd_sq_unreached: who is called does not answer: what has not been started fails. */
void hd_sq_unreached(struct hd_qp *p, enum hd_status status);

/* ---- sq_end.c ---- */

/*
 * hd_wqe_count: this one is under way as its `way` says, or (by -1) no longer.
 * hd_wqe_end: it has ended; it completes when it is its turn. hd_sq_retire: tell of what
 * has ended and has nothing before it.
 */
void hd_wqe_count(struct hd_qp *p, const struct hd_wqe *s, int by);
void hd_wqe_end(struct hd_qp *p, struct hd_wqe *s, enum hd_status status);
void hd_sq_retire(struct hd_qp *p);

/* hd_sq_ended: one of the send queue's operations has ended, and is freed after this. */
void hd_sq_ended(struct hd_op *op, enum hd_status status);

/*
 * hd_sq_accepted: messages up to number `last` have been accepted, but that one has not unless
 * status is HD_S_OK; true: that is news.
 * hd_sq_answered: a packet says so, as hd_deliver.
 */
bool hd_sq_accepted(struct hd_qp *p, uint32_t last, enum hd_status status);
int hd_sq_answered(struct hd_link *link, const struct hd_pkt *pkt);

/*
 * hd_sq_lost: the other end has gone, and answers nothing any more. hd_sq_overdue: the
 * first WQE fails for want of an answer. hd_sq_drop: forget all; unless status is HD_S_OK
 * each is told of with it.
 */
void hd_sq_lost(struct hd_qp *p, enum hd_status status);
void hd_sq_overdue(struct hd_qp *p);
void hd_sq_drop(struct hd_qp *p, enum hd_status status);

/* hd_sq_drain: SQD: tell when nothing is under way; hd_ep_drain: when nothing is posted. */
void hd_sq_drain(struct hd_qp *p);

/* ---- ud.c ---- */

/* hd_ud_poster: how those post that send and are not paired. */
extern const struct hd_poster hd_ud_poster;

/*
 * hd_ud_gone: something of len bytes has gone, or is lost, that waits for nobody; there was room
 * for it. It completes when those before it have.
 * hd_ud_failed: hd_send_failed. hd_ud_push: hd_sq_push where something waits. hd_ud_forget: a WQE
 * of len bytes is to wait no more.
 */
void hd_ud_gone(struct hd_ep *ep, const struct hd_send_args *a, size_t len);
int hd_ud_failed(struct hd_ep *ep, const struct hd_failed_args *args);
void hd_ud_push(struct hd_qp *p);
void hd_ud_forget(struct hd_ud_waiting *w, size_t len);

/* ---- local.c ---- */

/*
 * hd_sq_uses: is there a request with a segment of this region in the send queue? *op is the first
 * such; it stays the queue's.
 */
bool hd_sq_uses(const struct hd_qp *p, const struct hd_mr *mr, struct hd_op **op);

/* ---- ack.c ---- */

/*
 * hd_ack_soon: this is the newest message that has been accepted: true: our row says so at the end
 * of what is polled now, or by hd_ack_publish, or when there are so many that their sender may be
 * waiting; false: there is none, so a packet has to. hd_ack_publish: now.
 */
#define HD_ACK_UNITS 128u /* a sixteenth of what may have left and not been accepted: see sq.c */
bool hd_ack_first(struct hd_qp *p, struct hd_link *link, const struct hd_pkt *pkt, uint32_t units);
void hd_ack_publish_now(struct hd_qp *p);
static inline bool hd_ack_soon(struct hd_qp *p, struct hd_link *link, const struct hd_pkt *pkt,
			       uint32_t units)
{
	if (p->life.accepted.link != link || p->life.accepted.to != pkt->src)
		return hd_ack_first(p, link, pkt, units);
	p->life.accepted.op = pkt->op;
	p->life.accepted.pending = true;
	p->life.accepted.units += units;
	if (hd_unlikely(p->life.accepted.units >= HD_ACK_UNITS))
		hd_ack_publish_now(p);
	return true;
}

static inline void hd_ack_publish(struct hd_qp *p)
{
	if (hd_unlikely(p->life.accepted.link != NULL))
		hd_ack_publish_now(p);
}

/*
 * hd_ack_expect: a message with these flags (enum hd_send_flag) is about to leave. hd_ack_leave: no
 * answer is pending any more.
 * hd_ack_want: what has left already is waited for from now on, by something
 * that has come behind it.
 */
void hd_ack_join(struct hd_qp *p, uint32_t flags);
static inline void hd_ack_expect(struct hd_qp *p, uint32_t flags)
{
	if (hd_unlikely(p->life.ack.pending < HD_ACK_PENDING))
		hd_ack_join(p, flags);
}
void hd_ack_leave(struct hd_qp *p);
void hd_ack_want_now(struct hd_qp *p);
static inline void hd_ack_want(struct hd_qp *p)
{
	if (hd_unlikely(p->life.ack.pending == HD_ACK_PENDING_SILENT))
		hd_ack_want_now(p);
}

/*
 * hd_ack_piggybacked: the other end's message says in passing what it has accepted. hd_ack_look: at
 * what its row says; true: there was news. hd_acks_look: at all rows that somebody waits for, or
 * some of them; how many had news. hd_acks_arm: the node is about to sleep: its page says whether
 * that is to be woken for them.
 */
void hd_ack_piggybacked(struct hd_qp *p, const struct hd_pkt *pkt);
bool hd_ack_look(struct hd_qp *p);
int hd_acks_look(struct hd_node *node, bool all);
void hd_acks_arm(struct hd_node *node);
void hd_qps_init(struct hd_node *node);	   /* of a new node */
void hd_acks_forked(struct hd_node *node); /* in a child nobody waits */

/*
 * hd_sq_idle: the other end, if nothing is under way to it, so that what needs no packet may be
 * done at once; else NULL.
 */
static inline struct hd_dest *hd_sq_idle(struct hd_qp *p)
{
	if (hd_unlikely(p->life.sq.ordered))
		hd_ack_look(p);
	return p->life.sq.head == p->life.sq.tail && p->life.state == HD_QP_RTS ? p->life.dest : NULL;
}

/* ---- responder.c ---- */

/*
 * hd_resp_request: a message or request for a queue pair: 0, or negative: the link is down.
 * hd_resp_message: the same of an eager message that has been charged. hd_resp_cast: a datagram to
 * a group that the endpoint is a member of.
 */
int hd_resp_request(const struct hd_arrival *a);
int hd_resp_message(struct hd_peer *peer, struct hd_ep *ep, const struct hd_pkt *pkt, const void *payload,
		    size_t len);
void hd_resp_cast(struct hd_ep *ep, const struct hd_pkt *pkt, const struct hd_sender *from,
		  const void *payload, size_t len);

/* hd_qp_receives: whose transfers long messages for a queue pair are (struct hd_rndv). */
extern const struct hd_transfer_owner hd_qp_receives;

/*
 * hd_resp_ack: send the acknowledgement that is due. hd_resp_refuse: a request is answered with
 * this status, and its credit goes back.
 */
void hd_resp_ack(struct hd_qp *p);
void hd_resp_refuse(struct hd_peer *peer, const struct hd_pkt *pkt, uint32_t units, enum hd_status status);

/* ---- beside.c ---- */

/*
 * hd_beside_begin, hd_beside_end: a transfer into the memory of its endpoint, a queue pair, is
 * about to begin, has ended.
 */
void hd_beside_begin(struct hd_transfer *t);
void hd_beside_end(struct hd_transfer *t);

/*
 * hd_beside_lets: may another message, or write, come in beside those that do? Not behind a write
 * that will use up a receive at its end; no write beside what is copied in no order.
 */
bool hd_beside_lets(const struct hd_qp *p, bool a_write);

/*
 * hd_beside_turn: a message or write has come in, or failed with *status: may it end, with *status
 * as it is then? False: those before it first; hd_beside_finish completes it when they have.
 */
bool hd_beside_turn(struct hd_transfer *t, enum hd_status *status);
void hd_beside_finish(struct hd_qp *p);

/* ---- respq.c ---- */

/* hd_respq_resume: let in what was held, as far as that can be now. */
void hd_respq_resume(struct hd_qp *p);

/* hd_respq_posted: hd_qp.rnr_wait's. hd_respq_timed: hd_qp.timer's. */
void hd_respq_posted(struct hd_rq_waiter *w);
void hd_respq_timed(struct hd_timer *timer);

/*
 * What is held is let in no more. hd_respq_refuse_all: nothing of it. hd_respq_over: our epoch has
 * ended, and what came for it is refused; `reset`: the next one has begun. hd_respqs_ended: the
 * peer is gone, and with it what it had sent. hd_respq_outdated: the peer's endpoint begins anew,
 * or has ended: it knows nothing any more of what nobody has let in, by this queue pair (NULL: by
 * any).
 */
void hd_respq_refuse_all(struct hd_qp *p);
void hd_respq_over(struct hd_qp *p, bool reset);
void hd_respqs_ended(struct hd_peer *peer, enum hd_status status);
void hd_respq_outdated(const struct hd_qp *p, struct hd_peer *peer, uint32_t src);

/*
 * hd_respq_end: one that was let in is answered with this status, with what follows for the
 * endpoint: it fails, or (HD_S_RNR, HD_S_TIMEOUT) refuses what its sender has sent behind it.
 * hd_respq_is_broken: was something of this sender given up, and has it not begun anew since?
 */
void hd_respq_end(struct hd_qp *p, struct hd_peer *peer, const struct hd_pkt *pkt, uint32_t units,
		  enum hd_status status);
bool hd_respq_is_broken(const struct hd_qp *p, const struct hd_peer *peer, uint32_t src);

/* ---- qp/xrc/target.c ---- */

/*
 * hd_xrc_target_set: the endpoint receives from the queue with this number from now on, until
 * something else is named: nothing is coming in meanwhile. False: there is none, or it is of
 * another domain. hd_xrc_target_home: from its own; what it holds back is to be looked at again.
 * hd_xrc_target_is_owed: something of what it has brought to its queue waits there, so that number
 * must not be its target yet. It is kicked when that has been received.
 * hd_xrc_target_gone: an endpoint that can be named closes: whoever has it as its target goes home,
 * and fails if something is coming in.
 */
bool hd_xrc_target_set(struct hd_qp *p, uint32_t number);
bool hd_xrc_target_is_owed(const struct hd_qp *p, uint32_t number);
void hd_xrc_target_home(struct hd_qp *p);
void hd_xrc_target_forget(struct hd_qp *p);
void hd_xrc_target_gone(struct hd_qp *p);

/* ---- epoch.c ---- */

/* hd_epoch_known: have we agreed with the epoch that `src` of this peer has? */
enum hd_epoch_known {
	HD_EPOCH_NEVER,
	HD_EPOCH_NOW,
	HD_EPOCH_BEFORE, /* the other end has begun anew since */
};
enum hd_epoch_known hd_epoch_known(const struct hd_qp *p, const struct hd_peer *peer, uint32_t src);

/*
 * hd_epoch_sync: may what `src` of this peer sends come in, the first of it that this epoch sees?
 * True: it may, and all that follows. False: not yet, perhaps never. hd_epoch_no_more: nobody may.
 */
bool hd_epoch_sync(struct hd_qp *p, struct hd_peer *peer, const struct hd_pkt *pkt);
void hd_epoch_no_more(struct hd_qp *p);

/*
 * hd_epoch_publish: our own epoch to the other end begins with the next request that has not been
 * answered. hd_epoch_row: hd_page_ep.epoch.
 */
void hd_epoch_publish(struct hd_qp *p);
uint32_t hd_epoch_row(const struct hd_qp *p);

/*
 * hd_epoch_renewed: an endpoint of the peer's has begun anew, hd_remote.gen says so, or has ended,
 * and nobody is bound to it.
 * hd_epoch_heard: EPOCH has come, as hd_deliver.
 */
void hd_epoch_renewed(struct hd_peer *peer, uint32_t index);
int hd_epoch_heard(struct hd_link *link, const struct hd_pkt *pkt, const void *payload, size_t len);

/* ---- path.c ---- */

/*
 * hd_path_heard: PATH has come, as hd_deliver. hd_path_bound: the other end has been reached.
 * hd_path_lost: it is lost, or cannot be reached: true: nothing was under way, and it is called by
 * the other path next. hd_path_run: a turn of progress is over.
 */
int hd_path_heard(struct hd_link *link, const struct hd_pkt *pkt, const void *payload, size_t len);
void hd_path_bound(struct hd_qp *p);
bool hd_path_lost(struct hd_qp *p);
void hd_path_run(struct hd_qp *p);

/*
 * mark.c. hd_marks_look: tell those whose mark has been passed: the work phase of a turn.
 * Returns how many were told. hd_marks_stir: receives have been taken in a call, which
 * perhaps no turn follows.
 */
int hd_marks_look(struct hd_node *node);
void hd_marks_stir(struct hd_node *node);

#endif
