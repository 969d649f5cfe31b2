/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Unpaired queue pairs (UD), the sending half. A datagram goes at once and has completed before its
 * post returns, or it waits in the send queue: for its destination to be reached, for its link or
 * credit, or for SQD to be over. Then it is a copy, as its region may be gone by the time it
 * leaves.
 *
 * Each WQE has a destination of its own. One that is being called holds up what goes there, and not
 * what goes to others; one whose link is full holds up all that is behind it, as a card would.
 * Completions are in posting order, whoever they are for. A datagram to where nobody can be is
 * lost, which its program is not told.
 */
#include "engine/event/event.h"
#include "engine/link/link.h"
#include "engine/qp/qp.h"
#include "engine/xfer/xfer.h"

#include <errno.h>

/* What a WQE waits with. */
struct hd_ud_waiting {
	struct hd_follow follow; /* of dest */
	struct hd_qp *qp;
	struct hd_dest *dest; /* referenced */
	struct hd_pkt_qp head;
	unsigned char data[]; /* hd_wqe.len bytes */
};

/* ---- leaving --------------------------------------------------------------------------------- */

static inline struct hd_pkt ud_header(const struct hd_ep *ep, const struct hd_dest *dest,
				      struct hd_pkt_qp head, uint32_t flags)
{
	uint8_t wire = flags & HD_SEND_WIRE & ~HD_SEND_ANSWERED;

	return (struct hd_pkt){ .to = hd_pkt_to(HD_PKT_EAGER, wire, dest->gen, dest->remote),
				.from = hd_pkt_from(ep->src, 0),
				.qp = head };
}

static bool ud_is_reached(const struct hd_dest *dest)
{
	return dest->state == HD_DEST_BOUND && dest->peer->state == HD_PEER_LIVE;
}

/*
 * Its destination is reached. 0: it has left, or is lost for good; -EAGAIN: its link is full, or
 * something waits for that already; -EFAULT: its memory is gone.
 */
static int ud_leave(struct hd_ep *ep, struct hd_dest *dest, struct hd_pkt_qp head,
		    const struct hd_send_args *a, size_t len)
{
	const struct hd_pkt pkt = ud_header(ep, dest, head, a->flags);
	struct hd_peer *peer = dest->peer;
	int rc;

	if (!TAILQ_EMPTY(&peer->queue) || !TAILQ_EMPTY(&peer->ctl))
		return -EAGAIN;
	if (len > peer->link->send_max)
		return 0;
	rc = hd_peer_postv(peer, &pkt, a->iov, a->count, len, hd_units(len));
	if (rc >= 0)
		hd_traffic_out(&peer->traffic, len);
	return rc == -EAGAIN || rc == -EFAULT ? rc : 0;
}

/* ---- waiting --------------------------------------------------------------------------------- */

void hd_ud_forget(struct hd_ud_waiting *w, size_t len)
{
	struct hd_node *node = w->qp->ep->node;

	LIST_REMOVE(&w->follow, entry);
	hd_dest_unref(w->dest);
	hd_bytes_put(&hd_rqs(node)->bytes, w, sizeof(*w) + len);
}

/* It has gone, or is lost. */
static void ud_end(struct hd_wqe *s)
{
	struct hd_ud_waiting *w = s->waiting;

	s->waiting = NULL;
	s->state = HD_WQE_ENDED;
	hd_ud_forget(w, s->len);
}

/* Complete what has ended, and has nothing before it. */
static void ud_retire(struct hd_qp *p)
{
	while (p->life.sq.next != p->life.sq.tail && hd_wqe_at(p, p->life.sq.next)->state == HD_WQE_ENDED)
		p->life.sq.next++;
	hd_sq_retire(p);
}

static bool ud_waits(const struct hd_qp *p, uint32_t seq)
{
	return hd_wqe_at(p, seq)->state == HD_WQE_WAITS;
}

/*
 * One of those who are being called can be sent to, or the one that held up the others has gone:
 * what waits leaves in the peer's turn.
 */
static void ud_due(struct hd_qp *p)
{
	for (uint32_t seq = p->life.sq.next; seq != p->life.sq.tail; seq++)
		if (ud_waits(p, seq) && ud_is_reached(hd_wqe_at(p, seq)->waiting->dest)) {
			hd_sq_stall(p, hd_wqe_at(p, seq)->waiting->dest->peer);
			return;
		}
}

static void ud_lose(struct hd_qp *p, const struct hd_dest *dest)
{
	for (uint32_t seq = p->life.sq.next; seq != p->life.sq.tail; seq++)
		if (ud_waits(p, seq) && hd_wqe_at(p, seq)->waiting->dest == dest)
			ud_end(hd_wqe_at(p, seq));
	hd_sq_leave(p);
	ud_due(p);
	ud_retire(p);
}

/* As struct hd_follow: its destination is bound, or cannot be reached, or is gone. */
static void ud_followed(struct hd_follow *follow, int err)
{
	struct hd_ud_waiting *w = hd_container(follow, struct hd_ud_waiting, follow);
	struct hd_dest *dest = w->dest;

	if (!err) {
		hd_sq_stall(w->qp, dest->peer);
		return;
	}
	hd_dest_ref(dest);
	ud_lose(w->qp, dest);
	hd_dest_unref(dest);
}

/* Its memory is gone. */
static int ud_gone(struct hd_ep *ep, const struct hd_send_args *a)
{
	return hd_ud_failed(
		ep, &(struct hd_failed_args){
			    .status = HD_S_PROTECTION, .tag = a->tag, .ctx = a->ctx, .flags = a->flags });
}

/* Behind what waits, as a copy. -EAGAIN: no memory. */
static int ud_wait(struct hd_qp *p, struct hd_dest *dest, struct hd_pkt_qp head, const struct hd_send_args *a,
		   size_t len)
{
	struct hd_wqe what = { .ctx = a->ctx, .len = len, .tag = a->tag, .flags = a->flags };
	struct hd_ud_waiting *w;

	if (hd_sq_ring(p) < 0)
		return -EAGAIN;
	w = hd_bytes_get(&hd_rqs(p->ep->node)->bytes, sizeof(*w) + len);
	if (!w)
		return -EAGAIN;
	*w = (struct hd_ud_waiting){ .follow.fn = ud_followed, .qp = p, .dest = dest, .head = head };
	if (hd_iov_drain(a->iov, a->count, w->data, len)) {
		hd_bytes_put(&hd_rqs(p->ep->node)->bytes, w, sizeof(*w) + len);
		return ud_gone(p->ep, a);
	}
	hd_dest_ref(dest);
	hd_dest_follower(dest, &w->follow);
	what.waiting = w;
	what.cqe_flags = hd_sent_flags(a->flags);
	hd_sq_append(p, &what);
	if (dest->state == HD_DEST_IDLE && hd_dest_connect(dest) < 0)
		ud_lose(p, dest);
	else if (ud_is_reached(dest))
		hd_sq_stall(p, dest->peer);
	return 0;
}

static int ud_start(struct hd_qp *p, struct hd_wqe *s)
{
	struct hd_ud_waiting *w = s->waiting;
	const struct iovec iov = { w->data, s->len };
	const struct hd_send_args a = { .iov = &iov, .count = 1, .tag = s->tag, .flags = s->flags };

	if (!ud_is_reached(w->dest))
		return 0;
	if (ud_leave(p->ep, w->dest, w->head, &a, s->len) < 0) {
		hd_sq_stall(p, w->dest->peer);
		return -EAGAIN;
	}
	ud_end(s);
	return 0;
}

void hd_ud_push(struct hd_qp *p)
{
	if (p->life.state != HD_QP_RTS && p->life.state != HD_QP_RTS_PENDING)
		return;
	hd_sq_leave(p);
	p->life.sq.pushing = true;
	for (uint32_t seq = p->life.sq.next; seq != p->life.sq.tail; seq++) {
		struct hd_wqe *s = hd_wqe_at(p, seq);

		if (s->state == HD_WQE_WAITS && ud_start(p, s) < 0)
			break;
		if (hd_unlikely(s->status)) { /* what is behind it will be flushed */
			hd_qp_step(p, HD_QP_STEP_PEND);
			break;
		}
	}
	p->life.sq.pushing = false;
	ud_retire(p);
	hd_qp_check(p);
}

/* ---- posting --------------------------------------------------------------------------------- */

static int ud_room(struct hd_ep *ep, struct hd_dest *dest)
{
	return hd_cq_full(ep->tx_cq) ? -EAGAIN : hd_sq_room(ep);
}

void hd_ud_gone(struct hd_ep *ep, const struct hd_send_args *a, size_t len)
{
	struct hd_qp *p = ep->qp;
	const struct hd_wqe what = { .ctx = a->ctx,
				     .len = len,
				     .tag = a->tag,
				     .flags = a->flags,
				     .cqe_flags = hd_sent_flags(a->flags),
				     .state = HD_WQE_ENDED };

	if (hd_likely(p->life.sq.head == p->life.sq.tail))
		hd_send_finish(ep, a, len);
	else
		hd_sq_append(p, &what);
}

/* dest NULL: it is lost. */
static int ud_post(struct hd_ep *ep, struct hd_dest *dest, struct hd_pkt_qp head,
		   const struct hd_send_args *a)
{
	size_t len = hd_iov_len(a->iov, a->count);
	struct hd_qp *p = ep->qp;
	int rc = ud_room(ep, dest);

	if (rc < 0)
		return rc;
	if (hd_qp_flushes(p)) {
		if (hd_sq_ring(p) < 0)
			return -EAGAIN;
		hd_sq_flush(p, &(struct hd_wqe){ .ctx = a->ctx,
						 .len = len,
						 .tag = a->tag,
						 .flags = a->flags,
						 .cqe_flags = hd_sent_flags(a->flags) });
		return 0;
	}
	if (dest) {
		bool waits = p->life.state != HD_QP_RTS || p->life.sq.stalled_on || !ud_is_reached(dest);

		rc = waits ? -EAGAIN : ud_leave(ep, dest, head, a, len);
	}
	if (rc < 0)
		return rc == -EFAULT ? ud_gone(ep, a) : ud_wait(p, dest, head, a, len);
	hd_ud_gone(ep, a, len);
	return 0;
}

/* Datagrams are all that it sends. */
static int ud_refuse(struct hd_op *op)
{
	hd_op_free(op);
	return -EINVAL;
}
static int ud_refuse_message(struct hd_ep *ep, struct hd_dest *dest, const struct hd_send_args *a)
{
	return -EINVAL;
}

const struct hd_poster hd_ud_poster = { .send = ud_refuse_message, .room = ud_room, .post = ud_refuse };

static __attribute__((noinline)) int ud_send_slow(struct hd_ep *ep, struct hd_dest *dest,
						  struct hd_pkt_qp head, const struct hd_send_args *a)
{
	HD_TRACE_POST(ep->index, HD_TRACE_SEND, hd_iov_len(a->iov, a->count), a->ctx);
	return ud_post(ep, dest, head, a);
}

/* Can a datagram leave at once, with nothing before it? */
static inline bool ud_is_open(const struct hd_ep *ep, const struct hd_peer *peer, size_t len, uint32_t flags)
{
	const struct hd_qp *p = ep->qp;

	return (int64_t)len <= peer->eager_max && hd_credit_left(peer) >= hd_units(len) &&
	       !(flags & HD_SEND_WORK) && p->life.sq.head == p->life.sq.tail && p->life.state == HD_QP_RTS &&
	       !hd_cq_full(ep->tx_cq);
}

int hd_ud_send(struct hd_ep *ep, struct hd_dest *dest, const struct iovec *iov, int count,
	       struct hd_pkt_qp head, uint64_t tag, void *ctx, uint32_t flags)
{
	static const struct iovec none;
	struct hd_peer *peer = dest->peer;

	hd_assert_locked(ep->node);
	if (hd_unlikely(!count)) {
		iov = &none;
		count = 1;
	}
	if (hd_likely(count == 1) && hd_likely(ud_is_open(ep, peer, iov->iov_len, flags))) {
		const struct hd_pkt pkt = ud_header(ep, dest, head, flags);
		size_t len = iov->iov_len;

		if (hd_likely(hd_link_send(peer->link, &pkt, iov->iov_base, len) >= 0)) {
			HD_TRACE_POST(ep->index, HD_TRACE_SEND, len, ctx);
			hd_credit_spend(peer, hd_units(len));
			hd_traffic_out(&peer->traffic, len);
			hd_sent_finish(ep, ctx, flags, len, tag);
			return 0;
		}
	}
	return ud_send_slow(
		ep, dest, head,
		&(struct hd_send_args){ .iov = iov, .count = count, .tag = tag, .ctx = ctx, .flags = flags });
}

int hd_ud_lost(struct hd_ep *ep, uint64_t tag, void *ctx, uint32_t flags)
{
	hd_assert_locked(ep->node);
	return ud_post(ep, NULL, (struct hd_pkt_qp){ 0 },
		       &(struct hd_send_args){ .tag = tag, .ctx = ctx, .flags = flags });
}

int hd_ud_failed(struct hd_ep *ep, const struct hd_failed_args *args)
{
	const struct hd_wqe what = { .ctx = args->ctx,
				     .tag = args->tag,
				     .flags = args->flags,
				     .cqe_flags = hd_failed_kind.cqe_flags,
				     .status = args->status,
				     .state = HD_WQE_ENDED };
	struct hd_qp *p = ep->qp;
	int rc = hd_sq_room(ep);

	if (rc < 0)
		return rc;
	if (hd_sq_ring(p) < 0)
		return -EAGAIN;
	if (hd_qp_flushes(p)) {
		hd_sq_flush(p, &what);
		return 0;
	}
	hd_sq_append(p, &what);
	if (p->life.state == HD_QP_RTS && p->life.sq.tail - p->life.sq.next > 1)
		hd_qp_step(p, HD_QP_STEP_PEND);
	ud_retire(p);
	return 0;
}
