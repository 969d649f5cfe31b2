/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Receives: posting them, what they complete with, and how one meets a message that waited. The queue that they are in is in rq.c;
 * looking at what waits is in claim.c; what a message does when it comes, in deliver.c.
 */
#include "engine/rq/recv.h"
#include "engine/cm/conn.h"
#include "engine/event/event.h"
#include "engine/mr/mr.h"
#include "engine/qp/local.h"
#include "engine/qp/qp.h"
#include "engine/rdm/message.h"
#include "engine/rdm/order.h"
#include "engine/rq/queue.h"

#include <stdlib.h>

/* ---- completing ------------------------------------------------------------------------------------------------------------------ */

static void recv_tell_work(const struct hd_taken *t, struct hd_cqe *e)
{
	struct hd_work *work = t->ctx;

	e->ctx = NULL;
	work->done(work, e);
}

/* hd_recv_complete_work: a receive with HD_RECV_WORK has got its message. */
void hd_recv_complete_work(const struct hd_taken *t, const struct hd_received *m)
{
	struct hd_cqe e = { .buf = t->buf,
			    .len = m->len,
			    .tag = m->tag,
			    .imm = m->imm,
			    .src = m->src,
			    .ep = t->ep->index,
			    .flags = hd_received_flags(m->flags) };

	recv_tell_work(t, &e);
}

void hd_recv_complete_error(const struct hd_taken *t, const struct hd_received *m)
{
	struct hd_cqe e = { .ctx = t->ctx,
			    .buf = t->buf,
			    .len = m->len < t->room ? m->len : t->room,
			    .tag = m->tag,
			    .imm = m->imm,
			    .olen = m->len > t->room ? m->len - t->room : 0,
			    .src = m->src,
			    .ep = t->ep->index,
			    .flags = hd_received_flags(m->flags) | (t->flags & HD_RECV_CLAIM) |
				     (hd_recv_releases(t) ? HD_C_MULTI_RECV : 0),
			    .err = m->err ? m->err : EMSGSIZE };

	if (m->err)
		e.len = e.olen = 0;
	if (t->flags & HD_RECV_WORK) {
		recv_tell_work(t, &e);
		return;
	}
	hd_cntr_count_error(t->ep->rx_cntr);
	hd_cq_post(t->ep->rx_cq, &e);
}

/* The part of a multi-receive buffer that a message of len bytes gets; see recv.h. */
void hd_recv_take_multi(struct hd_rq *rq, struct hd_recv *r, uint64_t len, struct hd_taken *t,
			struct iovec *iov)
{
	uint64_t used = len < r->iov.iov_len ? len : r->iov.iov_len;
	uint64_t step = (used + 7) & ~UINT64_C(7); /* the next message begins aligned */
	uint64_t least = r->ep->min_multi ? r->ep->min_multi : 1;

	if (step > r->iov.iov_len)
		step = r->iov.iov_len;
	*iov = (struct iovec){ r->iov.iov_base, used };
	*t = (struct hd_taken){
		.ctx = r->ctx, .buf = r->iov.iov_base, .room = used, .flags = r->flags, .ep = r->ep, .whole = r
	};
	r->parts++;
	r->flags |= HD_RECV_USED;
	r->iov.iov_base = (char *)r->iov.iov_base + step;
	r->iov.iov_len -= step;
	if (r->iov.iov_len < least)
		hd_match_unpost(hd_rq_match(rq, r->flags), &r->m);
}

void hd_recv_release(struct hd_ep *ep, struct hd_recv *r)
{
	const struct hd_cqe e = { .ctx = r->ctx, .ep = ep->index, .flags = HD_C_MULTI_RECV };

	hd_match_unpost(hd_rq_match(ep->rq, r->flags), &r->m);
	if (r->parts)
		return;
	hd_cq_post(ep->rx_cq, &e);
	hd_recv_free(ep->node, r);
}

struct hd_recv *hd_recv_next_fitting(struct hd_ep *ep, struct hd_recv *r, uint64_t tag, uint32_t src,
				     uint64_t len)
{
	while (r && hd_recv_outgrown(r, len)) {
		struct hd_match *match = hd_rq_match(ep->rq, r->flags);

		hd_recv_release(ep, r);
		r = (struct hd_recv *)hd_match_peek_posted(match, tag, src);
	}
	return r;
}

/* ---- a message that waited meets its receive ------------------------------------------------------------------------------------ */

void hd_msg_describe(const struct hd_msg *m, struct hd_received *out)
{
	*out = (struct hd_received){ .len = m->len,
				     .tag = hd_wnode_tag(&m->w),
				     .imm = m->imm,
				     .src = hd_msg_source(m),
				     .flags = m->flags };
	if (m->flags & HD_MSG_WRITTEN && m->room == sizeof(out->tag)) /* see hd_deliver_written */
		memcpy(&out->tag, m->data, sizeof(out->tag));
}

void hd_recv_taken(struct hd_recv *r, struct hd_ep *ep, struct hd_taken *t)
{
	*t = (struct hd_taken){ .ep = ep,
				.ctx = r->ctx,
				.buf = hd_recv_iov(r)->iov_base,
				.room = hd_recv_room(r),
				.flags = r->flags,
				.whole = r->flags & HD_RECV_PART ? r->whole : NULL };
}

/* Give an eager message that is all here, and out of the queue, to a receive that is in none. Consumes both. */
static void recv_hand_over(struct hd_recv *r, struct hd_msg *m)
{
	struct hd_node *node = m->ep->node;
	struct hd_received what;
	struct hd_taken t;

	hd_msg_describe(m, &what);
	hd_recv_taken(r, m->ep, &t);
	if (hd_unlikely(r->flags & HD_RECV_ASCENDING))
		hd_iov_fill_ascending(hd_recv_iov(r), r->count, 0, m->data, m->len);
	else
		hd_iov_fill(hd_recv_iov(r), r->count, m->data, m->len);
	hd_recv_complete(&t, &what);
	hd_recv_free(node, r);
	if (m->flags & HD_PKT_F_ACK)
		hd_msg_answer(m, HD_PKT_ACK, 0);
	if (hd_unlikely(m->flags & HD_MSG_WRITTEN &&
			m->ep->qp)) /* which may turn to another queue now: hd_xrc_target_is_owed */
		hd_qp_kick(m->ep->qp);
	hd_msg_free(m);
}

void hd_recv_meet(struct hd_recv *r, struct hd_msg *m)
{
	struct hd_peer *peer = m->peer;
	struct hd_ep *ep = m->ep;

	if (m->kind == HD_PKT_EAGER && m->arriving) {
		m->waiter = r;
	} else if (m->kind == HD_PKT_EAGER) {
		recv_hand_over(r, m);
	} else {
		unsigned char offer[HD_OFFER_MAX];
		struct hd_msg local = *m;
		size_t offer_len;

		if (hd_buffered_is_broken(m))
			peer = NULL;
		offer_len = peer ? m->room : 0;
		memcpy(offer, m->data, offer_len);
		hd_msg_free(m);
		hd_rndv_begin(ep, peer, r, &local, offer, offer_len);
	}
}

/* The receive r, in no queue, gets the message m, in no queue. */
void hd_recv_give(struct hd_recv *r, struct hd_msg *m)
{
	if (hd_unlikely(r->flags & HD_RECV_ORDERED))
		hd_order_meet(r, m);
	else
		hd_recv_meet(r, m);
}

/* hd_msg_arrived: the last byte of a message that came in pieces is here. */
void hd_msg_arrived(struct hd_msg *m)
{
	m->arriving = false;
	if (m->handle)
		hd_buffered_arrived(m, 0);
	else if (m->parked)
		hd_order_next(m->ep);
	else if (m->waiter)
		recv_hand_over(m->waiter, m);
}

/* hd_msg_forget: the endpoint closes, and the message had met a receive while it was coming in: forget both. */
void hd_msg_forget(struct hd_msg *m)
{
	if (m->parked)
		hd_order_forget(m);
	hd_recv_drop(m->ep->node, m->waiter);
	hd_msg_discard(m, ECONNREFUSED);
}

void hd_recv_fail(struct hd_recv *r, struct hd_msg *m, int err)
{
	struct hd_received what;
	struct hd_taken t;

	hd_msg_describe(m, &what);
	what.err = err;
	hd_recv_taken(r, m->ep, &t);
	hd_recv_complete(&t, &what);
	hd_recv_free(m->ep->node, r);
}

/* hd_msg_broken: it will never be whole. */
void hd_msg_broken(struct hd_msg *m, int err)
{
	if (m->waiter && !m->parked) {
		hd_recv_fail(m->waiter, m, err);
	} else if (!m->claimed) {
		hd_match_remove_waiting(hd_rq_match(m->ep->rq, m->flags), &m->w);
	} else {
		m->arriving =
			false; /* the claim is kept by the program: it gets an error instead of the message */
		m->kind = HD_PKT_RTS;
		m->peer = NULL;
		if (m->handle)
			hd_buffered_arrived(m, err);
		else if (m->parked)
			hd_order_next(m->ep);
		return;
	}
	hd_msg_free(m);
}

/* Who reports what happens to a receive or search that no endpoint has taken: of a shared queue, the first that has a CQ. */
struct hd_ep *hd_ep_speaker(struct hd_ep *ep)
{
	struct hd_node *node = ep->node;

	if (!(ep->policy & HD_EP_NAMELESS) || !ep->rx_cq->none)
		return ep;
	for (uint32_t i = 0; i < node->ep_count; i++)
		if (node->eps[i] && node->eps[i]->rq == ep->rq && !node->eps[i]->rx_cq->none)
			return node->eps[i];
	return ep;
}

void hd_ep_post(struct hd_ep *ep, const struct hd_cqe *e)
{
	struct hd_ep *by = hd_ep_speaker(ep);
	struct hd_cqe filled = *e;

	filled.ep = by->index;
	hd_cq_post(by->rx_cq, &filled);
}

/* ---- posting ------------------------------------------------------------------------------------------------------------------------ */

struct hd_recv *hd_recv_make(struct hd_ep *ep, const struct hd_recv_args *a)
{
	struct hd_recv *r = hd_pool_get(&ep->node->recvs);

	if (hd_unlikely(!r))
		return NULL;
	r->ctx = a->ctx;
	r->flags = a->flags;
	r->ep = ep;
	r->m.role = 0;
	r->count = 1;
	r->more = NULL; /* no parts, no whole */
	r->region = a->region;
	if (hd_likely(a->count == 1)) {
		r->iov = a->iov[0];
	} else if (a->count == 0) {
		r->iov = (struct iovec){ NULL, 0 };
	} else {
		r->more = hd_pool_get(&ep->node->iovs);
		if (!r->more) {
			hd_pool_put(&ep->node->recvs, r);
			return NULL;
		}
		memcpy(r->more, a->iov, sizeof(*a->iov) * a->count);
		r->count = a->count;
		if (a->region)
			memcpy(hd_recv_regions(r), a->regions, sizeof(*a->regions) * a->count);
	}
	return r;
}

/*
 * hd_recv_detach: the posted receive r gets a message of len bytes that cannot be handed over at once. Returns a receive that is in
 * no queue: r itself, or for a multi-receive buffer one for the part that the message gets. NULL: no memory, nothing has happened.
 */
struct hd_recv *hd_recv_detach(struct hd_ep *ep, struct hd_recv *r, uint64_t len)
{
	struct hd_recv *part;
	struct hd_taken t;

	if (!(r->flags & HD_RECV_MULTI)) {
		hd_match_unpost(hd_rq_match(ep->rq, r->flags), &r->m);
		return r;
	}
	part = hd_recv_make(
		ep, &(struct hd_recv_args){ .iov = &r->iov, .count = 1, .flags = r->flags, .ctx = r->ctx });
	if (!part)
		return NULL;
	hd_recv_take_multi(ep->rq, r, len, &t, &part->iov);
	part->flags |= HD_RECV_PART;
	part->whole = r;
	return part;
}

/* Let a new multi-receive buffer, posted already, take what waits for it. */
static void multi_drain(struct hd_ep *ep, struct hd_recv *r, uint32_t src)
{
	struct hd_match *match = hd_rq_match(ep->rq, r->flags);
	struct hd_wnode *w;
	bool more = true;

	while (more && (w = hd_match_find_waiting(match, 0, UINT64_MAX, src))) {
		struct hd_msg *m = hd_container(w, struct hd_msg, w);
		struct hd_recv *part;

		if (hd_recv_outgrown(r, m->len)) {
			hd_recv_release(m->ep, r);
			return;
		}
		part = hd_recv_detach(ep, r, m->len);
		if (!part)
			return;
		more = hd_mnode_is_posted(&r->m); /* else it may be gone after the next call but one */
		hd_match_remove_waiting(match, w);
		hd_recv_give(part, m);
	}
}

/* A tag of buffered receives finds a message that waits. */
static int tag_meets(struct hd_match *match, struct hd_recv *r, struct hd_msg *m)
{
	struct hd_node *node = m->ep->node;
	int rc = hd_buffered_take(m, r->ctx);

	if (!rc)
		hd_match_remove_waiting(match, &m->w);
	hd_recv_free(node, r);
	return rc;
}

/* Nobody may take it any more, or a queue pair may wait for it. */
static inline int post_watched(struct hd_ep *ep, struct hd_match *match, struct hd_recv *r,
			       const struct hd_recv_args *a, uint32_t src)
{
	struct hd_rq *rq = ep->rq;

	if (hd_unlikely(ep->conn && hd_conn_is_over(ep))) {
		hd_recv_free(ep->node, r);
		return hd_refuse(ENOTCONN, "a receive on a connection that is over");
	}
	hd_match_post(match, &r->m, a->tag, a->ignore, src);
	if (r->region)
		hd_local_posted(rq, r);
	if (hd_unlikely(ep->qp && ep->qp->collapsed && ep->own_rq))
		hd_recv_unpost(ep, 0, r, ECANCELED);
	else if (hd_unlikely(!TAILQ_EMPTY(&rq->starved)))
		hd_respq_posted(rq);
	return 0;
}

int hd_recv(struct hd_ep *ep, const struct hd_recv_args *a)
{
	struct hd_match *match = hd_rq_match(ep->rq, a->flags);
	uint32_t src = hd_recv_source(a);
	struct hd_wnode *w;
	struct hd_recv *r;

	hd_assert_locked(ep->node);
	if (hd_unlikely(hd_cq_full(ep->rx_cq))) /* so it is in a forked child */
		return ep->node->dead ? -ENOTRECOVERABLE : -EAGAIN;
	r = hd_recv_make(ep, a);
	if (hd_unlikely(!r))
		return -ENOMEM;
	w = hd_match_find_waiting(match, a->tag, a->ignore, src);
	if (hd_unlikely(w != NULL)) {
		if (a->flags & HD_RECV_MULTI) {
			hd_match_post(match, &r->m, a->tag, a->ignore, src);
			multi_drain(ep, r, src);
			return 0;
		}
		if (a->flags & HD_RECV_BUFFERED)
			return tag_meets(match, r, hd_container(w, struct hd_msg, w));
		hd_match_remove_waiting(match, w);
		hd_recv_give(r, hd_container(w, struct hd_msg, w));
		return 0;
	}
	if (hd_unlikely(ep->watch))
		return post_watched(ep, match, r, a, src);
	hd_match_post(match, &r->m, a->tag, a->ignore, src);
	return 0;
}
