/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * What arrives for a queue pair. Requests are carried out one after the other; one that cannot be
 * yet is held (respq.c), and so is all behind it. Only long messages that fit need not wait for
 * those before them: they come in at the same time, and complete in order (beside.c). Unreliable
 * endpoints drop instead.
 */
#include "engine/mr/mr.h"
#include "engine/qp/holdoff.h"
#include "engine/qp/respq.h"
#include "engine/rma/rma.h"
#include "engine/rq/rq.h"
#include "engine/xfer/xfer.h"

#include <stddef.h>

#define USUAL_FLAGS (HD_PKT_F_QUEUE | HD_PKT_F_ACK | HD_PKT_F_DELIVERED | HD_PKT_F_INVALIDATE | HD_PKT_F_SSN)

/* ---- answers --------------------------------------------------------------------------------- */

static inline void flag_ack(struct hd_qp *p, struct hd_link *link, const struct hd_pkt *pkt, uint32_t units)
{
	if (hd_likely(hd_ack_soon(p, link, pkt, units)))
		return;
	if (p->life.accepted.due && p->life.accepted.to != pkt->src)
		hd_resp_ack(p);
	p->life.accepted.op = pkt->op;
	p->life.accepted.to = pkt->src;
	p->life.accepted.due = true;
	hd_qp_kick(p);
}

void hd_resp_ack(struct hd_qp *p)
{
	const struct hd_pkt pkt = { .kind = HD_PKT_ACK,
				    .flags = HD_PKT_F_SSN,
				    .gen = p->life.resp.epoch_gen,
				    .dst = p->life.accepted.to,
				    .op = p->life.accepted.op };

	hd_ack_publish(p);
	if (p->life.accepted.due && hd_qp_is_bound(p)) {
		struct hd_peer *peer = p->life.dest->peer;

		hd_peer_send(peer, &pkt, NULL, 0);
		if (peer->link->ops->warm) /* the program may have an answer as well */
			peer->link->ops->warm(peer->link);
	}
	p->life.accepted.due = false;
}

void hd_resp_refuse(struct hd_peer *peer, const struct hd_pkt *pkt, uint32_t units, enum hd_status status)
{
	if (pkt->kind != HD_PKT_EAGER || pkt->flags & (HD_PKT_F_ACK | HD_PKT_F_DELIVERED))
		hd_answer(peer, pkt, HD_PKT_FIN, status);
	hd_peer_free_units(peer, units);
}

/* ---- whether it can be carried out ----------------------------------------------------------- */

static bool needs_receive(const struct hd_pkt *pkt)
{
	return pkt->kind == HD_PKT_EAGER || pkt->kind == HD_PKT_RTS ||
	       (pkt->kind == HD_PKT_WRITE && pkt->flags & HD_PKT_F_IMM);
}

static struct hd_recv *receive_of(const struct hd_qp *p)
{
	return (struct hd_recv *)hd_match_peek_posted(&p->ep->rq->match[0], 0, 0);
}

/*
 * Is it a request of another kind of queue pair? Reliable ones want messages to be answered, and
 * read. A card drops it, and who waits for an answer to it tries in vain: so it is refused, as by
 * an end that is not there.
 */
static bool is_of_other_kind(const struct hd_qp *p, const struct hd_pkt *pkt)
{
	if (pkt->kind == HD_PKT_EAGER || pkt->kind == HD_PKT_RTS)
		return p->attr.lossy == !!(pkt->flags & HD_PKT_F_ACK);
	if (pkt->kind == HD_PKT_WRITE)
		return p->attr.lossy && pkt->flags & HD_PKT_F_ACK;
	return p->attr.lossy &&
	       (pkt->kind == HD_PKT_READ || pkt->kind == HD_PKT_ATOMIC || pkt->kind == HD_PKT_FLUSH);
}

/* An unreliable endpoint for everybody. */
static enum hd_wait open_to(const struct hd_qp *p, const struct hd_pkt *pkt)
{
	bool ok = hd_qp_is_ready(p) && pkt->qp.qkey == p->life.resp.qkey && !(pkt->flags & HD_PKT_F_QUEUE) &&
		  p->ep->rq->match[0].posted;

	if (pkt->kind != HD_PKT_EAGER || pkt->flags & (HD_PKT_F_ACK | HD_PKT_F_DELIVERED))
		return HD_WAIT_NEVER;
	return ok ? HD_WAIT_NOT : HD_WAIT_DROP;
}

/* What follows is that of somebody whom this epoch has not let in yet. */
static enum hd_wait from_stranger(struct hd_qp *p, struct hd_peer *peer, const struct hd_pkt *pkt)
{
	/* who has begun anew after a failure may have been faster than we are */
	bool is_over = hd_qp_has_failed(p) && hd_epoch_known(p, peer, pkt->src) != HD_EPOCH_BEFORE;

	if (is_over || (pkt->flags & HD_PKT_F_TAGGED) != p->attr.wire_queue)
		return HD_WAIT_NEVER;
	if (is_of_other_kind(p, pkt))
		return p->attr.lossy ? HD_WAIT_NEVER : HD_WAIT_DROP;
	if (!hd_qp_is_ready(p))
		return p->attr.lossy ? HD_WAIT_DROP : HD_WAIT_READY;
	if (!hd_qp_is_bound(p)) {
		if (p->life.dest->state == HD_DEST_IDLE &&
		    !p->life.unreached) /* it may be called by a name that it does not know of */
			(void)hd_dest_connect(p->life.dest);
		if (!hd_qp_is_bound(p))
			return HD_WAIT_READY;
	}
	if (p->life.dest->peer != peer || p->life.dest->remote != pkt->src ||
	    hd_respq_is_broken(p, peer, pkt->src))
		return HD_WAIT_NEVER;
	/* this epoch ends with the message that has been cut off */
	if (!p->attr.lossy && !STAILQ_EMPTY(&p->life.holdoff.receives))
		return HD_WAIT_READY;
	return hd_epoch_sync(p, peer, pkt) ? HD_WAIT_NOT : HD_WAIT_READY;
}

static inline enum hd_wait from_whom(struct hd_qp *p, struct hd_peer *peer, const struct hd_pkt *pkt)
{
	if (hd_likely(p->life.resp.from_peer == peer && p->life.resp.from == pkt->src))
		return (pkt->flags & HD_PKT_F_TAGGED) == p->attr.wire_queue ? HD_WAIT_NOT : HD_WAIT_NEVER;
	return from_stranger(p, peer, pkt);
}

/*
 * May it come in beside what is coming in already? Its failure, where it does not fit,
 * would be told before that has ended; so would that of a window that it takes back, or of
 * a write that is not allowed.
 */
static __attribute__((noinline)) bool joins(const struct hd_qp *p, const struct hd_arrival *a)
{
	uint64_t len;

	if (a->pkt->kind == HD_PKT_WRITE)
		return hd_beside_lets(p, true) && hd_rma_may_join(a);
	if (a->pkt->kind != HD_PKT_RTS || a->pkt->flags & HD_PKT_F_INVALIDATE || !receive_of(p) ||
	    !hd_beside_lets(p, false))
		return false;
	memcpy(&len, (const char *)a->payload + offsetof(struct hd_rts, len), sizeof(len));
	return len <= hd_recv_room(receive_of(p));
}

static inline enum hd_wait for_receive(const struct hd_qp *p, const struct hd_pkt *pkt)
{
	if (!needs_receive(pkt) || p->ep->rq->match[0].posted)
		return HD_WAIT_NOT;
	return p->attr.lossy ? HD_WAIT_DROP : HD_WAIT_RECEIVE;
}

static bool takes_back(const struct hd_pkt *pkt)
{
	return pkt->flags & HD_PKT_F_INVALIDATE && pkt->flags & HD_PKT_F_IMM &&
	       (pkt->kind == HD_PKT_EAGER || pkt->kind == HD_PKT_RTS);
}

/*
 * It names this queue, which may be another node's: what takes back a window must be for one that
 * is bound to p, and none is bound to a target.
 */
static enum hd_wait to_queue(struct hd_qp *p, const struct hd_pkt *pkt, uint32_t number)
{
	int rc;

	if (hd_xrc_target_set(p, number))
		return for_receive(p, pkt);
	if (takes_back(pkt))
		return HD_WAIT_WRONG;
	rc = hd_xrc_proxy_way(p, number);
	return !rc ? HD_WAIT_PROXY : rc == -EAGAIN ? HD_WAIT_BUSY : HD_WAIT_WRONG;
}

/* Of endpoints that are not paired, and of those whose messages name their queue. */
static enum hd_wait what_else(struct hd_qp *p, struct hd_peer *peer, const struct hd_pkt *pkt)
{
	uint32_t number = pkt->qp.queue;
	enum hd_wait w;

	if (p->ep->policy & HD_EP_XRC_QUEUE || pkt->kind == HD_PKT_FLUSH) /* which RC alone has */
		return HD_WAIT_NEVER;
	if (!(p->ep->policy & HD_EP_PAIRED))
		return open_to(p, pkt);
	w = from_whom(p, peer, pkt);
	if (w != HD_WAIT_NOT)
		return w;
	/* it needs the queue that it has */
	if (p->life.lane.transfers || hd_xrc_proxy_is_busy(p) || hd_xrc_target_is_owed(p, number))
		return HD_WAIT_BUSY;
	return to_queue(p, pkt, number);
}

/* As the first one. */
static inline enum hd_wait what_for(struct hd_qp *p, const struct hd_arrival *a)
{
	enum hd_wait w;

	if (hd_unlikely(a->pkt->kind == HD_PKT_PUT)) /* no queue pair of ours sends one */
		return HD_WAIT_NEVER;
	if (hd_unlikely((p->ep->policy & (HD_EP_PAIRED | HD_EP_XRC)) != HD_EP_PAIRED))
		return what_else(p, a->peer, a->pkt);
	w = from_whom(p, a->peer, a->pkt);
	if (w != HD_WAIT_NOT)
		return w;
	if (p->life.lane.transfers && !joins(p, a))
		return HD_WAIT_BUSY;
	return for_receive(p, a->pkt);
}

/* It never will be carried out. */
static void resp_reject(struct hd_qp *p, const struct hd_arrival *a, enum hd_wait w)
{
	hd_resp_refuse(a->peer, a->pkt, a->units,
		       w == HD_WAIT_NEVER   ? HD_S_REFUSED
		       : w == HD_WAIT_WRONG ? HD_S_INVALID
					    : 0);
	if (w == HD_WAIT_WRONG)
		hd_qp_offended(p->ep, HD_S_INVALID);
}

static enum hd_wait take_back(struct hd_qp *p, const struct hd_pkt *pkt)
{
	int rc = hd_window_take_back(p->ep, pkt->qp.imm, &p->respq.taking);

	if (rc == -EAGAIN)
		return HD_WAIT_WINDOW;
	p->respq.taking = false;
	if (!rc)
		return HD_WAIT_NOT;
	return p->attr.lossy ? HD_WAIT_DROP : HD_WAIT_FAULT;
}

/* As the first one, which is carried out now if it can be. */
static enum hd_wait resp_admit(struct hd_qp *p, const struct hd_arrival *a)
{
	enum hd_wait w = what_for(p, a);

	if (hd_likely(w != HD_WAIT_NOT || !takes_back(a->pkt)) || !hd_qp_is_paired(p))
		return w;
	return take_back(p, a->pkt);
}

/* ---- carrying out ---------------------------------------------------------------------------- */

/* Where the message goes to begins behind space for the front. */
static void into_headed(struct hd_qp *p, struct hd_recv *r, const struct hd_pkt *pkt,
			const struct hd_sender *from, uint32_t src, const void *payload, size_t len)
{
	struct hd_received m = { .len = len + p->attr.head_len,
				 .imm = pkt->qp.imm,
				 .src = src,
				 .flags = pkt->flags & HD_SEND_WIRE };
	const struct iovec *iov = hd_recv_iov(r);
	unsigned char head[HD_QP_HEAD] = { 0 };
	struct hd_taken t = {
		.ep = p->ep, .ctx = r->ctx, .buf = iov->iov_base, .room = hd_recv_room(r), .flags = r->flags
	};
	bool gone;

	p->taken++;
	hd_match_unpost(&p->ep->rq->match[0], &r->m);
	if (p->attr.head_fill)
		m.tag = p->attr.head_fill(p->ep->owner, from, head);
	if (hd_likely(r->count == 1)) /* there is room for all of it */
		gone = hd_copy(iov->iov_base, head, p->attr.head_len) ||
		       (len && hd_copy((char *)iov->iov_base + p->attr.head_len, payload, len));
	else
		gone = hd_iov_fill(iov, r->count, head, p->attr.head_len) ||
		       hd_iov_fill_at(iov, r->count, p->attr.head_len, payload, len);
	m.status = hd_unlikely(gone) ? HD_S_PROTECTION : HD_S_OK;
	hd_recv_complete(&t, &m);
	hd_recv_free(p->ep->node, r);
}

static uint64_t imm_for(const struct hd_pkt *pkt)
{
	return pkt->qp.imm | (hd_unlikely(takes_back(pkt)) ? HD_IMM_TAKEN_BACK : 0);
}

/* The receive that a message would have got completes in error: for truncation, or `err`. */
static void receive_fail(struct hd_qp *p, uint32_t src, const struct hd_pkt *pkt, uint64_t len,
			 enum hd_status status)
{
	struct hd_recv *r = receive_of(p);
	const struct hd_received m = { .len = len,
				       .imm = imm_for(pkt),
				       .src = src,
				       .flags = pkt->flags & HD_SEND_WIRE & ~HD_SEND_TAGGED,
				       .status = status };
	struct hd_taken t = { .ep = p->ep,
			      .ctx = r->ctx,
			      .buf = hd_recv_iov(r)->iov_base,
			      .room = hd_recv_room(r),
			      .flags = r->flags };

	p->taken++;
	hd_match_unpost(&p->ep->rq->match[0], &r->m);
	hd_recv_complete(&t, &m);
	hd_recv_free(p->ep->node, r);
}

/*
 * A message that its receive cannot take: both ends fail. Returns what its sender is told, or
 * 0: there is room for it.
 */
static enum hd_status misfit(struct hd_qp *p, uint32_t src, const struct hd_pkt *pkt, uint64_t len)
{
	const struct hd_recv *r = receive_of(p);
	bool fault = r->flags & HD_RECV_FAULT;
	enum hd_status status = fault ? HD_S_OPERATIONAL : HD_S_LENGTH;

	if (len <= hd_recv_room(r))
		return 0;
	receive_fail(p, src, pkt, len, fault ? HD_S_PROTECTION : 0);
	if (p->ep->policy & HD_EP_STRICT)
		hd_qp_fail_soon(p, status);
	return status;
}

/*
 * The memory of its receive is gone, which has told of it: as where the region of one is (misfit).
 */
static __attribute__((noinline, cold)) void message_gone(struct hd_qp *p, struct hd_peer *peer,
							 const struct hd_pkt *pkt, uint32_t units)
{
	hd_resp_refuse(peer, pkt, units, HD_S_OPERATIONAL);
	if (p->ep->policy & HD_EP_STRICT)
		hd_qp_fail_soon(p, HD_S_OPERATIONAL);
}

static void take_message(struct hd_qp *p, const struct hd_arrival *a)
{
	const struct hd_pkt *pkt = a->pkt;
	struct hd_recv *r = receive_of(p);
	struct hd_pkt plain = *pkt;

	if (hd_unlikely(a->len + p->attr.head_len > hd_recv_room(r))) {
		hd_resp_refuse(a->peer, pkt, a->units, misfit(p, a->src, pkt, a->len + p->attr.head_len));
		return;
	}
	if (pkt->flags & HD_PKT_F_MSN)
		hd_ack_piggybacked(p, pkt);
	plain.tag = 0;
	plain.imm = imm_for(pkt);
	plain.flags &= (uint8_t)~HD_PKT_F_QUEUE;
	if (hd_unlikely(p->attr.head_len)) {
		struct hd_sender from;

		hd_sender_of(p->ep->node, a->src, &from);
		from.grh = pkt->qp.grh;
		into_headed(p, r, pkt, &from, a->src, a->payload, a->len);
	} else {
		p->taken++;
		if (hd_unlikely(!hd_deliver_into(p->ep, r, &plain, a->src, a->payload, a->len))) {
			message_gone(p, a->peer, pkt, a->units);
			return;
		}
	}
	if (pkt->flags & HD_PKT_F_SSN && pkt->flags & HD_PKT_F_ACK)
		flag_ack(p, a->peer->link, pkt, a->units);
	else if (pkt->flags & (HD_PKT_F_ACK | HD_PKT_F_DELIVERED))
		hd_answer(a->peer, pkt, HD_PKT_ACK, 0);
	hd_peer_free_units(a->peer, a->units);
}

void hd_resp_cast(struct hd_ep *ep, const struct hd_pkt *pkt, const struct hd_sender *from,
		  const void *payload, size_t len)
{
	struct hd_qp *p = ep->qp;

	if (open_to(p, pkt) != HD_WAIT_NOT || misfit(p, 0, pkt, len + p->attr.head_len))
		return;
	into_headed(p, receive_of(p), pkt, from, 0, payload, len);
}

/* A long message has ended. Whoever receives is not told at once that its sender has gone. */
static void resp_received(struct hd_transfer *t, enum hd_status status)
{
	struct hd_rndv *v = hd_rndv_of(t);
	struct hd_taken taken;
	struct hd_received m;

	hd_rndv_describe(v, status, &taken, &m);
	if (!status || !hd_holdoff_receive(t->ep->qp, &taken, &m))
		hd_recv_complete(&taken, &m);
	if (!status)
		hd_answer_op(t->pending.peer, HD_PKT_FIN, t->remote, 0);
	if (status == HD_S_PROTECTION && t->ep->policy & HD_EP_STRICT)
		hd_qp_fail_soon(t->ep->qp, HD_S_OPERATIONAL);
	hd_beside_end(t);
	hd_rndv_free(v);
}

static void resp_dropped(struct hd_transfer *t)
{
	hd_beside_end(t);
	hd_rndv_drop(hd_rndv_of(t));
}

const struct hd_transfer_owner hd_qp_receives = {
	.done = resp_received,
	.dropped = resp_dropped,
	.turn = hd_beside_turn,
	.refusal = HD_S_OPERATIONAL,
};

static uint32_t resp_written(struct hd_ep *ep, struct hd_peer *peer, const struct hd_cqe *e, uint32_t units)
{
	ep->qp->taken++;
	return hd_deliver_written(ep, peer, e, units);
}

static const struct hd_rma_server in_order = {
	.written = resp_written,
	.begin = hd_beside_begin,
	.turn = hd_beside_turn,
	.end = hd_beside_end,
	.offended = hd_qp_offended,
};

/* The request as it is without what queue pairs say in it beside. */
static struct hd_pkt plain_of(const struct hd_pkt *pkt)
{
	struct hd_pkt plain = *pkt;

	plain.tag = 0;
	plain.flags &= (uint8_t) ~(HD_PKT_F_QUEUE | HD_PKT_F_INVALIDATE);
	plain.imm = imm_for(pkt);
	return plain;
}

/*
 * A write is refused: if it brings immediate data, the receive that it would
 * have used up fails as well.
 */
static void written_fail(struct hd_qp *p, const struct hd_arrival *a, enum hd_status status)
{
	if (!p->attr.lossy && a->pkt->flags & HD_PKT_F_IMM && receive_of(p))
		receive_fail(p, a->src, a->pkt, 0, status);
}

static int take_one_sided(struct hd_qp *p, const struct hd_arrival *a)
{
	const struct hd_pkt plain = plain_of(a->pkt);
	struct hd_arrival request = *a;
	int err;

	request.pkt = &plain;
	err = hd_rma_request(&request, &in_order);
	if (err < 0)
		return hd_link_broken(a->peer->link, "malformed one-sided operation for a queue pair");
	if (!err)
		return 0;
	if (err != HD_S_NO_MEMORY) {
		if (plain.kind == HD_PKT_WRITE)
			written_fail(p, &request, err);
		hd_qp_offended(p->ep, err);
	}
	hd_arrival_refuse(a, err);
	return 0;
}

static int take_rts(struct hd_qp *p, const struct hd_arrival *a)
{
	const struct hd_pkt plain = plain_of(a->pkt);
	struct hd_msg m = { .imm = plain.imm, .op = plain.op, .flags = plain.flags & HD_SEND_WIRE };
	struct hd_recv *r;
	struct hd_rts body;
	struct hd_rndv *v;
	int err;

	memcpy(&body, a->payload, a->len); /* the dispatcher has looked at len */
	err = misfit(p, a->src, a->pkt, body.len);
	if (!err && body.len > HD_MAX_MSG)
		err = HD_S_LENGTH;
	if (err) {
		hd_resp_refuse(a->peer, a->pkt, a->units, err);
		return 0;
	}
	p->taken++;
	r = hd_recv_detach(p->ep, receive_of(p), body.len);
	if (!r)
		return hd_link_without_memory(a->peer->link, "a receive");
	m.len = body.len;
	m.w.by_src.src = a->src;
	hd_peer_free_units(a->peer, a->units);
	v = hd_rndv_take(p->ep, a->peer, r, &m, &hd_qp_receives);
	if (!v)
		return 0;
	hd_beside_begin(&v->t);
	hd_intake_begin(&v->t, a->peer, body.offer, a->len - offsetof(struct hd_rts, offer));
	return 0;
}

/* Negative: the link is to go. */
static int carry_out(struct hd_qp *p, const struct hd_arrival *a)
{
	if (hd_likely(a->pkt->kind == HD_PKT_EAGER)) {
		take_message(p, a);
		return 0;
	}
	if (p->life.sq.ordered) /* what the other end had accepted before is known before */
		hd_ack_look(p);
	return a->pkt->kind == HD_PKT_RTS ? take_rts(p, a) : take_one_sided(p, a);
}

/* HD_WAIT_FAULT. */
static void fault(struct hd_qp *p, const struct hd_arrival *a)
{
	hd_resp_ack(p);
	receive_fail(p, a->src, a->pkt, 0, HD_S_ACCESS);
	hd_resp_refuse(a->peer, a->pkt, a->units, HD_S_ACCESS);
	hd_qp_offended(p->ep, HD_S_ACCESS);
}

/* ---- arriving -------------------------------------------------------------------------------- */

/* Neither carried out nor waiting. */
static void turn_off(struct hd_qp *p, const struct hd_arrival *a, enum hd_wait w)
{
	if (w == HD_WAIT_PROXY) {
		hd_resp_ack(p);
		hd_xrc_proxy_take(p, a);
	} else if (w == HD_WAIT_FAULT) {
		fault(p, a);
	} else {
		resp_reject(p, a, w);
	}
}

static __attribute__((noinline)) int not_now(struct hd_qp *p, const struct hd_arrival *a, enum hd_wait w)
{
	hd_ack_publish(p);
	if (w < HD_WAIT_PROXY)
		return hd_respq_put(p, a);
	turn_off(p, a, w);
	return 0;
}

static __attribute__((noinline)) int resp_arrived(struct hd_qp *p, const struct hd_arrival *a)
{
	enum hd_wait w = TAILQ_EMPTY(&p->respq.queue) ? resp_admit(p, a) : HD_WAIT_BUSY;

	return hd_likely(w == HD_WAIT_NOT) ? carry_out(p, a) : not_now(p, a, w);
}

int hd_resp_request(const struct hd_arrival *a)
{
	return resp_arrived(a->ep->qp, a);
}

/*
 * The usual message: of the one whom we know, with nothing before it, for a receive that takes all
 * of it. What the rest of this file finds out step by step is known of it at once. False: it is
 * another, and nothing has happened.
 */
static inline bool take_usual(struct hd_qp *p, struct hd_peer *peer, const struct hd_pkt *pkt,
			      const struct iovec data)
{
	uint32_t units = hd_units(data.iov_len);
	struct hd_ep *ep = p->ep;
	struct hd_mnode **slot;
	struct hd_received m;
	struct hd_recv *r;
	struct hd_cqe *e;

	if (p->life.resp.from_peer != peer || p->life.resp.from != pkt->src || !p->attr.plain ||
	    p->life.lane.transfers || !TAILQ_EMPTY(&p->respq.queue) ||
	    (pkt->flags & USUAL_FLAGS) != p->attr.wire_flags)
		return false;
	if (pkt->flags & HD_PKT_F_MSN) /* which completes in front of this one */
		hd_ack_piggybacked(p, pkt);
	r = (struct hd_recv *)hd_match_look_posted(&ep->rq->match[0], 0, 0, &slot);
	if (!r || !hd_recv_is_usual(r, data.iov_len) || !(e = hd_cq_slot(ep->rx_cq)))
		return false;
	p->taken++;
	hd_match_unpost_at(&ep->rq->match[0], &r->m, slot);
	m = (struct hd_received){ .len = data.iov_len,
				  .imm = pkt->qp.imm,
				  .src = hd_pkt_source(peer, pkt->src),
				  .flags = pkt->flags & HD_SEND_WIRE };
	if (hd_unlikely(!hd_recv_usual(ep, r, e, m, data.iov_base))) {
		hd_resp_ack(p);
		message_gone(p, peer, pkt, units);
		return true;
	}
	if (hd_likely(!p->attr.lossy))
		flag_ack(p, peer->link, pkt, units);
	hd_peer_free_units(peer, units);
	return true;
}

int hd_resp_message(struct hd_peer *peer, struct hd_ep *ep, const struct hd_pkt *pkt, const void *payload,
		    size_t len)
{
	if (hd_likely(take_usual(ep->qp, peer, pkt, (struct iovec){ (void *)payload, len })))
		return 0;
	return resp_arrived(ep->qp, &(struct hd_arrival){ .peer = peer,
							  .ep = ep,
							  .pkt = pkt,
							  .payload = payload,
							  .len = len,
							  .units = hd_units(len),
							  .src = hd_pkt_source(peer, pkt->src) });
}

/* ---- what has been held ---------------------------------------------------------------------- */

bool hd_resp_is_rnr(struct hd_qp *p, const struct hd_arrival *a)
{
	return what_for(p, a) == HD_WAIT_RECEIVE;
}

enum hd_wait hd_resp_again(struct hd_qp *p, const struct hd_arrival *a)
{
	enum hd_wait w = resp_admit(p, a);

	if (w >= HD_WAIT_PROXY)
		turn_off(p, a, w);
	return w;
}

void hd_resp_now(struct hd_qp *p, const struct hd_arrival *a)
{
	carry_out(p, a);
}
