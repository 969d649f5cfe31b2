/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * The receive queue: an object of its own; an endpoint's own queue is one with a single user. What
 * is posted to it leaves here otherwise than by meeting a message: dropped, cancelled, flushed.
 */
#include "engine/link/link.h"
#include "engine/mr/mr.h"
#include "engine/name/name.h"
#include "engine/rq/queue.h"
#include "engine/rq/recv.h"

#include <stdlib.h>

void hd_rqs_init(struct hd_node *node)
{
	hd_pool_init(&hd_rqs(node)->recvs, sizeof(struct hd_recv), 256);
	hd_pool_init(&hd_rqs(node)->iovs, (sizeof(struct iovec) + sizeof(struct hd_mr *)) * HD_IOV_MAX, 64);
	hd_bytes_init(&hd_rqs(node)->bytes);
	TAILQ_INIT(&hd_rqs(node)->rq_list);
}

void hd_rqs_fini(struct hd_node *node)
{
	hd_bytes_fini(&hd_rqs(node)->bytes);
	hd_pool_fini(&hd_rqs(node)->iovs);
	hd_pool_fini(&hd_rqs(node)->recvs);
}

/* ---- the object ------------------------------------------------------------------------------ */

static uint32_t rq_source_next(void *node, uint32_t src, struct hd_source_walk *walk)
{
	return hd_source_next(node, src, walk);
}

/* Its receives name sources, which may have several numbers. */
static void rq_number(struct hd_rq *rq)
{
	const struct hd_match_numbers numbers = { rq_source_next, rq->node };

	for (int i = 0; i < 2; i++)
		hd_match_number(&rq->match[i], &numbers);
}

bool hd_rqs_number(struct hd_node *node)
{
	struct hd_rq *first = TAILQ_FIRST(&hd_rqs(node)->rq_list), *rq;

	for (rq = first; !hd_rqs(node)->numbered && rq && rq->match[0].directed; rq = TAILQ_NEXT(rq, entry))
		rq_number(rq);
	hd_rqs(node)->numbered = true;
	return first && first->match[0].directed;
}

int hd_rq_open(struct hd_node *node, bool directed, struct hd_rq **out)
{
	struct hd_rq *rq = calloc(1, sizeof(*rq));

	if (!rq)
		return -ENOMEM;
	rq->node = node;
	TAILQ_INIT(&rq->waiters);
	for (int i = 0; i < 2; i++)
		hd_match_init(&rq->match[i], directed);
	if (directed && hd_rqs(node)->numbered)
		rq_number(rq);
	if (directed)
		TAILQ_INSERT_HEAD(&hd_rqs(node)->rq_list, rq, entry);
	else
		TAILQ_INSERT_TAIL(&hd_rqs(node)->rq_list, rq, entry);
	hd_rqs(node)->rqs++;
	*out = rq;
	return 0;
}

static uint32_t rq_source_group(void *node, uint32_t src)
{
	const struct hd_dest *dest = hd_dest_by_id(node, src);

	return dest ? hd_key_group(node, dest->key) : 0;
}

static uint32_t rq_message_group(const struct hd_wnode *w)
{
	const struct hd_ep *ep = hd_container(w, struct hd_msg, w)->ep;

	return hd_key_group(ep->node, ep->key);
}

void hd_rq_group(struct hd_rq *rq)
{
	const struct hd_match_groups groups = { rq_source_group, rq_message_group, rq->node };

	for (int i = 0; i < 2; i++)
		hd_match_group(&rq->match[i], &groups);
}

struct drop_posted_arg {
	struct hd_rq *rq;
	struct hd_match *match;
	const struct hd_ep *ep;
};

static bool drop_posted(struct hd_mnode *n, void *arg)
{
	const struct drop_posted_arg *a = arg;
	struct hd_recv *r = hd_container(n, struct hd_recv, m);

	if (a->ep && r->ep != a->ep)
		return false;
	hd_match_unpost(a->match, n);
	if (!(r->flags & HD_RECV_MULTI) || !r->parts) /* else with its last part */
		hd_recv_free(a->rq->node, r);
	return false;
}

void hd_rq_drop_posted(struct hd_rq *rq, struct hd_ep *ep)
{
	for (int i = 0; i < 2; i++) {
		struct drop_posted_arg arg = { rq, &rq->match[i], ep };

		hd_match_each_posted(&rq->match[i], drop_posted, &arg);
	}
}

int hd_rq_close(struct hd_rq *rq)
{
	if (rq->users)
		return -EBUSY;
	hd_rq_drop_posted(rq, NULL);
	TAILQ_REMOVE(&hd_rqs(rq->node)->rq_list, rq, entry);
	hd_rq_regions_close(rq);
	if (rq->limit.least)
		LIST_REMOVE(rq, limited);
	for (int i = 0; i < 2; i++)
		hd_match_fini(&rq->match[i]);
	if (rq->keeper)
		rq->keeper->closed(rq);
	hd_rqs(rq->node)->rqs--;
	free(rq);
	return 0;
}

/* ---- who waits for a receive ----------------------------------------------------------------- */

void hd_rq_wait(struct hd_rq *rq, struct hd_rq_waiter *w)
{
	TAILQ_INSERT_TAIL(&rq->waiters, w, entry);
	w->rq = rq;
}

void hd_rq_unwait(struct hd_rq_waiter *w)
{
	if (w->rq)
		TAILQ_REMOVE(&w->rq->waiters, w, entry);
	w->rq = NULL;
}

/*
 * Whoever has waited longest, unless that one has turned out to wait for
 * something else: then the next.
 */
void hd_rq_posted(struct hd_rq *rq)
{
	struct hd_rq_waiter *w;

	while ((w = TAILQ_FIRST(&rq->waiters)) && rq->match[0].posted) {
		w->posted(w);
		if (TAILQ_FIRST(&rq->waiters) == w)
			break;
	}
	hd_rq_check(rq);
}

struct hd_rq_view hd_rq_inspect(const struct hd_rq *rq)
{
	struct hd_rq_view view = {
		.posted = { rq->match[0].posted, rq->match[1].posted },
		.waiting = { rq->match[0].waiting, rq->match[1].waiting },
		.early = rq->early,
		.limit = hd_rq_get_limit(rq),
		.users = rq->users,
	};
	const struct hd_rq_waiter *w;

	TAILQ_FOREACH(w, &rq->waiters, entry)
		view.waiters++;
	return view;
}

/* ---- cancelling ------------------------------------------------------------------------------ */

struct cancel_arg {
	const void *ctx;
	struct hd_mnode *oldest;
};

static bool cancel_find(struct hd_mnode *n, void *arg)
{
	struct cancel_arg *a = arg;

	if (hd_container(n, struct hd_recv, m)->ctx == a->ctx && (!a->oldest || n->seq < a->oldest->seq))
		a->oldest = n;
	return false;
}

/* A posted receive completes in error, a status. */
void hd_recv_unpost(struct hd_ep *ep, int half, struct hd_recv *r, enum hd_status status)
{
	struct hd_taken t;

	hd_match_unpost(&ep->rq->match[half], &r->m);
	ep->unposted++;
	hd_recv_taken(r, hd_ep_speaker(ep), &t);
	if (r->flags & HD_RECV_MULTI) { /* what is left of it is its last part */
		t.whole = r;
		r->parts++;
	}
	hd_recv_complete_error(&t, &(struct hd_received){ .flags = half, .status = status, .tag = r->m.tag });
	if (!t.whole)
		hd_recv_free(ep->node, r);
}

int hd_cancel(struct hd_ep *ep, void *ctx)
{
	for (int i = 1; i >= 0; i--) {
		struct cancel_arg arg = { ctx, NULL };

		hd_match_each_posted(&ep->rq->match[i], cancel_find, &arg);
		if (!arg.oldest)
			continue;
		hd_recv_unpost(ep, i, hd_container(arg.oldest, struct hd_recv, m), HD_S_CANCELLED);
		return 0;
	}
	return -ENOENT;
}

/* ---- flushing -------------------------------------------------------------------------------- */

struct flush_arg {
	const struct hd_ep *ep;
	struct hd_recv **list; /* NULL: only count */
	size_t count;
};

static bool flush_find(struct hd_mnode *n, void *arg)
{
	struct flush_arg *a = arg;
	struct hd_recv *r = hd_container(n, struct hd_recv, m);

	if (r->ep == a->ep && a->list)
		a->list[a->count] = r;
	a->count += r->ep == a->ep;
	return false;
}

static int by_age(const void *a, const void *b)
{
	uint64_t x = (*(struct hd_recv *const *)a)->m.seq, y = (*(struct hd_recv *const *)b)->m.seq;

	return x < y ? -1 : x > y;
}

/* Complete what the endpoint has posted to one half of its queue, oldest first. */
static void flush_posted(struct hd_ep *ep, int half, enum hd_status status)
{
	struct hd_match *match = &ep->rq->match[half];
	struct flush_arg a = { .ep = ep };

	hd_match_each_posted(match, flush_find, &a);
	if (!a.count)
		return;
	a.list = calloc(a.count, sizeof(struct hd_recv *));
	if (!a.list)
		return; /* they stay until the endpoint closes */
	a.count = 0;
	hd_match_each_posted(match, flush_find, &a);
	qsort(a.list, a.count, sizeof(struct hd_recv *), by_age);
	for (size_t i = 0; i < a.count; i++)
		hd_recv_unpost(ep, half, a.list[i], status);
	free(a.list);
}

void hd_rq_flush(struct hd_ep *ep, enum hd_status status)
{
	hd_rq_drop_requests(ep);
	for (int half = 0; half < 2 && ep->own_rq; half++)
		flush_posted(ep, half, status);
}
