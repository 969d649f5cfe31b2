/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * What receives use of regions that may go while they are posted: ibv_dereg_mr(3), ibv_rereg_mr(3).
 *
 * Nothing is counted where messages pass. A receive says to its region in which queue it is, and
 * behind how many: while all that is posted there is younger, there is nothing to be looked for,
 * and a program may register and close a region for each message.
 */
#include "engine/mr/mr.h"
#include "engine/rq/queue.h"
#include "engine/rq/recv.h"

static void region_posted(struct hd_mr *mr, struct hd_rq *rq, uint64_t seq)
{
	if (mr->posted_to != rq && !mr->posted_often) {
		if (mr->posted_to)
			LIST_REMOVE(mr, posted_entry);
		mr->posted_often = mr->posted_to != NULL;
		mr->posted_to = mr->posted_often ? NULL : rq;
		if (mr->posted_to)
			LIST_INSERT_HEAD(&rq->regions, mr, posted_entry);
	}
	hd_mr_posted(mr, seq);
}

void hd_rq_note_regions(struct hd_rq *rq, struct hd_recv *r)
{
	struct hd_mr **regions = hd_recv_regions(r);

	for (int i = 0; i < r->count; i++)
		if (regions[i])
			region_posted(regions[i], rq, r->m.seq);
}

void hd_rq_regions_close(struct hd_rq *rq)
{
	struct hd_mr *mr;

	while ((mr = LIST_FIRST(&rq->regions))) {
		LIST_REMOVE(mr, posted_entry);
		mr->posted_to = NULL;
	}
}

struct leaving {
	struct hd_mr *from, *to;
	struct hd_rq *rq;
};

/* A posted receive: of those of its segments. */
static bool recv_leave(struct hd_mnode *node, void *arg)
{
	struct hd_recv *r = hd_container(node, struct hd_recv, m);
	const struct leaving *l = arg;
	struct iovec *iov = r->count > 1 ? r->more : &r->iov;
	struct hd_mr **regions = hd_recv_regions(r);
	bool stays = true;

	for (int i = 0; r->region && i < r->count; i++) {
		if (regions[i] != l->from)
			continue;
		stays &= hd_mr_moved(l->from, l->to, &iov[i], true);
		regions[i] = l->to;
		if (l->to)
			region_posted(l->to, l->rq, r->m.seq);
	}
	if (r->region == l->from)
		r->region = l->to;
	if (stays)
		return false;
	if (r->count > 1)
		hd_pool_put(&hd_rqs(l->rq->node)->iovs, r->more);
	r->count = 1;
	r->more = NULL;
	r->region = NULL;
	r->iov = (struct iovec){ l->from->fault->buf, 0 };
	r->flags |= HD_RECV_FAULT;
	return false;
}

static void queue_leave(struct hd_rq *rq, struct leaving *l)
{
	const struct hd_mnode *oldest = hd_match_peek_posted(&rq->match[0], 0, 0);

	if (!oldest || (!l->from->posted_often && oldest->seq > l->from->posted_seq))
		return;
	l->rq = rq;
	hd_match_each_posted(&rq->match[0], recv_leave, l);
}

void hd_rq_leave_region(struct hd_mr *from, struct hd_mr *to)
{
	struct leaving l = { .from = from, .to = to };
	struct hd_rq *rq;

	if (from->posted_to)
		queue_leave(from->posted_to, &l);
	else if (from->posted_often)
		TAILQ_FOREACH(rq, &hd_rqs(from->node)->rq_list, entry)
			queue_leave(rq, &l);
	if (from->posted_to)
		LIST_REMOVE(from, posted_entry);
	from->posted_to = NULL;
	from->posted_often = false;
}
