/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Posting receives, and how one meets a message that waited. What receives are and the
 * queue that they are in is rq's; looking at what waits is in claim.c; what a message does
 * when it comes, in deliver.c.
 */
#include "engine/core/core.h"
#include "engine/rdm/order.h"
#include "engine/rdm/rdm.h"
#include "engine/rdm/unexpected.h"
#include "engine/rq/rq.h"

/* ---- a message that waited meets its receive ------------------------------------------------- */

/* 0 or -EFAULT. */
static inline int msg_store(const struct hd_msg *m, const struct hd_recv *r)
{
	if (hd_unlikely(r->flags & HD_RECV_ASCENDING))
		return hd_iov_fill_ascending(hd_recv_iov(r), r->count, 0, m->data, m->len);
	if (hd_likely(r->count == 1 && m->len <= HD_COPY_SMALL && m->len <= r->iov.iov_len))
		return hd_copy_small_in(r->iov.iov_base, m->data, m->len) ? 0 : -EFAULT;
	return hd_iov_fill(hd_recv_iov(r), r->count, m->data, m->len);
}

/*
 * Give an eager message that is all here, and out of the queue, to a receive that
 * is in none. Consumes both.
 */
static void recv_hand_over(struct hd_recv *r, struct hd_msg *m)
{
	struct hd_node *node = m->ep->node;
	struct hd_received what;
	struct hd_taken t;
	int err;

	HD_TRACE_MATCH(m->ep->index, r->ctx, hd_wnode_tag(&m->w), m->len);
	hd_msg_describe(m->ep->node, m, &what);
	hd_recv_taken(r, m->ep, &t);
	err = msg_store(m, r);
	what.status = hd_unlikely(err) ? HD_S_PROTECTION : HD_S_OK;
	hd_recv_complete(&t, &what);
	hd_recv_free(node, r);
	if (m->flags & HD_PKT_F_ACK)
		hd_msg_answer(m, err ? HD_PKT_FIN : HD_PKT_ACK, err ? HD_S_OPERATIONAL : HD_S_OK);
	if (hd_unlikely(m->flags & HD_MSG_WRITTEN &&
			m->ep->owed)) /* it may turn to another queue now: hd_xrc_target_is_owed */
		hd_deferred_post(node, m->ep->owed);
	hd_msg_free(m);
}

/* A request to send. */
static __attribute__((noinline)) void recv_begin(struct hd_recv *r, struct hd_msg *m)
{
	struct hd_peer *peer = hd_buffered_is_broken(m) ? NULL : m->peer;
	size_t offer_len = peer ? m->room : 0;
	unsigned char offer[HD_OFFER_MAX];
	struct hd_msg local = *m;

	memcpy(offer, m->data, offer_len);
	hd_msg_free(m);
	hd_matched_begin(local.ep, peer, r, &local, offer, offer_len);
}

void hd_recv_meet(struct hd_recv *r, struct hd_msg *m)
{
	if (m->kind != HD_PKT_EAGER)
		recv_begin(r, m);
	else if (m->arriving)
		m->waiter = r;
	else
		recv_hand_over(r, m);
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
	else if (m->deferred)
		hd_order_next(m->ep);
	else if (m->waiter)
		recv_hand_over(m->waiter, m);
}

/*
 * hd_msg_forget: the endpoint closes, and the message had met a receive while it
 * was coming in: forget both.
 */
void hd_msg_forget(struct hd_msg *m)
{
	if (m->deferred)
		hd_order_forget(m);
	hd_recv_drop(m->ep->node, m->waiter);
	hd_msg_discard(m, HD_S_REFUSED);
}

void hd_recv_fail(struct hd_recv *r, struct hd_msg *m, enum hd_status status)
{
	struct hd_received what;
	struct hd_taken t;

	hd_msg_describe(m->ep->node, m, &what);
	what.status = status;
	hd_recv_taken(r, m->ep, &t);
	hd_recv_complete(&t, &what);
	hd_recv_free(m->ep->node, r);
}

/* hd_msg_broken: it will never be whole. */
void hd_msg_broken(struct hd_msg *m, enum hd_status status)
{
	if (m->waiter && !m->deferred) {
		hd_recv_fail(m->waiter, m, status);
	} else if (!m->claimed) {
		hd_match_remove_waiting(hd_rq_match(m->ep->rq, m->flags), &m->w);
	} else {
		/* the claim is kept by the program: it gets an error instead of the message */
		m->arriving = false;
		m->kind = HD_PKT_RTS;
		hd_msg_orphan(m);
		if (m->handle)
			hd_buffered_arrived(m, status);
		else if (m->deferred)
			hd_order_next(m->ep);
		return;
	}
	hd_msg_free(m);
}

/* ---- whom it is from turns out later --------------------------------------------------------- */

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

/* It waits, and a receive that it matches, perhaps, is posted all the same. */
static void meet_posted(struct hd_msg *m)
{
	struct hd_ep *ep = m->ep;
	struct hd_match *match = hd_rq_match(ep->rq, m->flags);
	uint64_t tag = hd_wnode_tag(&m->w);
	uint32_t src = hd_wnode_src(&m->w);
	struct hd_recv *r = (struct hd_recv *)hd_match_peek_posted(match, tag, src);

	r = hd_recv_fitting(ep, r, tag, src, m->len);
	if (!r)
		return;
	if (hd_unlikely(r->flags & HD_RECV_BUFFERED)) {
		if (hd_buffered_take(m, r->ctx) < 0)
			return; /* without memory both stay, as when the message is to be kept */
		hd_match_remove_waiting(match, &m->w);
		hd_match_unpost(match, &r->m);
		hd_recv_free(ep->node, r);
		return;
	}
	r = hd_recv_detach(ep, r, m->len);
	if (!r)
		return;
	hd_match_remove_waiting(match, &m->w);
	hd_recv_give(r, m);
}

/*
 * In the order in which they came, which those that stay keep. What is given away may take others
 * with it that were in their turn.
 */
static void meet_all(struct hd_ring *messages)
{
	struct hd_ring *at, unmet;

	hd_ring_init(&unmet);
	hd_ring_take(&unmet, messages);
	while ((at = hd_ring_first(&unmet))) {
		struct hd_msg *m = hd_container(at, struct hd_msg, kept);

		hd_ring_leave(at);
		hd_ring_add(messages, at);
		if (!m->claimed && !m->waiter)
			meet_posted(m);
	}
}

void hd_recvs_joined(struct hd_dest *dest)
{
	struct hd_dest *d = dest;

	if (!hd_rqs_number(dest->node))
		return;
	/*
	 * of one generation: these leave together, so the next time it comes nothing of what
	 * was here is looked at again
	 */
	do {
		if (d->gen == dest->gen)
			meet_all(&d->messages);
		d = d->alike;
	} while (d != dest);
}

/* ---- posting --------------------------------------------------------------------------------- */

/* Let a new multi-receive buffer, posted already, take what waits for it. */
static void recv_drain(struct hd_ep *ep, struct hd_recv *r, uint32_t src)
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
		/* else it may be gone after the next call but one */
		more = hd_mnode_is_posted(&r->m);
		hd_match_remove_waiting(match, w);
		hd_recv_give(part, m);
	}
}

/* Nobody may take it any more, or a queue pair may wait for it. */
static inline int post_watched(struct hd_ep *ep, struct hd_match *match, struct hd_recv *r,
			       const struct hd_recv_args *a, uint32_t src)
{
	struct hd_rq *rq = ep->rq;

	if (hd_unlikely(ep->rx_end == HD_RX_REFUSED)) {
		hd_recv_free(ep->node, r);
		return hd_refuse(ENOTCONN, "a receive on a connection that is over");
	}
	hd_match_post(match, &r->m, a->tag, a->ignore, src);
	if (r->region)
		hd_rq_note_regions(rq, r);
	if (hd_unlikely(ep->rx_end == HD_RX_FLUSHED && ep->own_rq))
		hd_recv_unpost(ep, 0, r, HD_S_CANCELLED);
	else if (hd_unlikely(!TAILQ_EMPTY(&rq->waiters)))
		hd_rq_posted(rq);
	return 0;
}

/*
 * Nothing waits for it, nobody else is to be told of it, and the region is posted to this queue
 * alone, as it was the last time.
 */
static inline bool is_quiet(const struct hd_ep *ep, const struct hd_mr *region)
{
	const struct hd_rq *rq = ep->rq;

	return !rq->match[0].waiting && ep->rx_end == HD_RX_OPEN && TAILQ_EMPTY(&rq->waiters) &&
	       region->posted_to == rq && !hd_cq_full(ep->rx_cq);
}

static __attribute__((noinline)) int recv_one_loud(struct hd_ep *ep, struct iovec iov, struct hd_mr *region,
						   void *ctx)
{
	return hd_recv(ep, &(struct hd_recv_args){ .iov = &iov,
						   .count = 1,
						   .flags = HD_RECV_COMPLETE,
						   .ctx = ctx,
						   .region = region,
						   .regions = &region });
}

int hd_recv_one(struct hd_ep *ep, struct iovec iov, struct hd_mr *region, void *ctx, size_t most)
{
	struct hd_match *match = &ep->rq->match[0];
	struct hd_recv *r;

	hd_assert_locked(ep->node);
	if (hd_unlikely(match->posted >= most))
		return -EAGAIN;
	if (hd_unlikely(!is_quiet(ep, region)))
		return recv_one_loud(ep, iov, region, ctx);
	HD_TRACE_POST(ep->index, HD_TRACE_RECV, 0, ctx);
	r = hd_pool_get(&hd_rqs(ep->node)->recvs);
	if (hd_unlikely(!r))
		return -ENOMEM;
	hd_recv_fill(r, ep, iov, region, ctx, HD_RECV_COMPLETE);
	hd_match_post(match, &r->m, 0, 0, HD_MATCH_ANY);
	hd_mr_posted(region, r->m.seq);
	return 0;
}

int hd_recv(struct hd_ep *ep, const struct hd_recv_args *a)
{
	struct hd_match *match = hd_rq_match(ep->rq, a->flags);
	uint32_t src = hd_recv_source(a);
	struct hd_wnode *w;
	struct hd_recv *r;

	hd_assert_locked(ep->node);
	HD_TRACE_POST(ep->index, HD_TRACE_RECV, 0, a->ctx);
	if (hd_unlikely(hd_cq_full(ep->rx_cq))) /* so it is in a forked child */
		return hd_core(ep->node)->gate.dead ? -ENOTRECOVERABLE : -EAGAIN;
	r = hd_recv_make(ep, a);
	if (hd_unlikely(!r))
		return -ENOMEM;
	w = hd_match_find_waiting(match, a->tag, a->ignore, src);
	if (hd_unlikely(w != NULL)) {
		if (a->flags & HD_RECV_MULTI) {
			hd_match_post(match, &r->m, a->tag, a->ignore, src);
			recv_drain(ep, r, src);
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
