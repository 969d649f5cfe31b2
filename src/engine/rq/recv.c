/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Receives: what they complete with, and the parts of multi-receive buffers. The queue
 * that they are in is in rq.c.
 */
#include "engine/rq/recv.h"
#include "base/minus.h"
#include "engine/event/event.h"
#include "engine/mr/mr.h"

/* ---- completing ------------------------------------------------------------------------------ */

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
			    .olen = hd_minus(m->len, t->room),
			    .src = m->src,
			    .ep = t->ep->index,
			    .flags = hd_received_flags(m->flags) | (t->flags & HD_RECV_CLAIM) |
				     (hd_recv_releases(t) ? HD_C_MULTI_RECV : 0),
			    .err = m->status ? m->status : HD_S_LENGTH };

	if (m->status)
		e.len = e.olen = 0;
	if (t->flags & HD_RECV_WORK) {
		recv_tell_work(t, &e);
		return;
	}
	hd_cntr_count_error(t->ep->cntrs.recv);
	hd_cq_post(t->ep->rx_cq, &e);
}

__attribute__((cold)) void hd_recv_gone(struct hd_ep *ep, struct hd_recv *r, const struct hd_received *m)
{
	struct hd_taken t;

	hd_recv_taken(r, ep, &t);
	hd_recv_complete_error(&t, m);
	hd_recv_free(ep->node, r);
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

/*
 * Who reports what happens to a receive or search that no endpoint has taken: of a shared queue,
 * the first that has a CQ.
 */
struct hd_ep *hd_ep_speaker(struct hd_ep *ep)
{
	struct hd_node *node = ep->node;

	if (!(ep->policy & HD_EP_NAMELESS) || !ep->rx_cq->none)
		return ep;
	for (uint32_t i = 0; i < hd_names(node)->ep_count; i++)
		if (hd_names(node)->eps[i] && hd_names(node)->eps[i]->rq == ep->rq &&
		    !hd_names(node)->eps[i]->rx_cq->none)
			return hd_names(node)->eps[i];
	return ep;
}

void hd_recv_post(struct hd_node *node, const struct hd_cqe *e)
{
	struct hd_ep *by = hd_ep_speaker(hd_names(node)->eps[e->ep]);
	struct hd_cqe filled = *e;

	filled.ep = by->index;
	hd_cq_post(by->rx_cq, &filled);
}

/* ---- taking out of the queue ----------------------------------------------------------------- */

bool hd_recv_segments(struct hd_recv *r, const struct hd_recv_args *a)
{
	if (a->count == 0) {
		r->iov = (struct iovec){ NULL, 0 };
		return true;
	}
	r->more = hd_pool_get(&hd_rqs(r->ep->node)->iovs);
	if (!r->more)
		return false;
	memcpy(r->more, a->iov, sizeof(*a->iov) * a->count);
	r->count = a->count;
	if (a->region)
		memcpy(hd_recv_regions(r), a->regions, sizeof(*a->regions) * a->count);
	return true;
}

/*
 * hd_recv_detach: the posted receive r gets a message of len bytes that cannot be handed over at
 * once. Returns a receive that is in no queue: r itself, or for a multi-receive buffer one for the
 * part that the message gets. NULL: no memory, nothing has happened.
 */
struct hd_recv *hd_recv_detach(struct hd_ep *ep, struct hd_recv *r, uint64_t len)
{
	struct hd_recv *part;
	struct hd_taken t;

	HD_TRACE_MATCH(ep->index, r->ctx, 0, len);
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
