/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * What peers on this host may reach by themselves (reach.c), shown in the node page: endpoints and regions. Those whose owner wants to
 * be told of each access, by a counter or an event, are not shown for it. A region that is taken back is hidden, and kept until
 * nobody copies from or to it any more.
 */
#include "engine/memory/reach.h"
#include "engine/node/node.h"

#include "base/clock.h"
#include "engine/conn/conn.h"
#include "engine/pair/pair.h"

#include <errno.h>
#include <sched.h>
#include <time.h>

#define SETTLE_NAP_NS 20000

/* ---- what we show: endpoints -------------------------------------------------------------------------------------------- */

/* A connected endpoint is there for the other end alone. What else an endpoint looks at, it looks at in packets. */
static bool is_open_to(const struct hd_ep *ep, struct hd_page_ep *what)
{
	if (!ep->watch)
		return true;
	/* whose memory it reaches depends on what an operation names */
	if (ep->policy & HD_EP_NAMES)
		return false;
	if (ep->watch == HD_WATCH_PAIRED && hd_pair_is_open(ep->pair)) {
		what->node = ep->pair->dest->peer->id;
		what->from = ep->pair->dest->remote;
		what->life = hd_agree_row(ep->pair);
		return true;
	}
	if (ep->watch != HD_WATCH_CONNECTED || !ep->conn || ep->conn->state != HD_CONN_UP)
		return false;
	what->node = ep->conn->node;
	what->from = ep->conn->other.index;
	return true;
}

void hd_reach_ep(const struct hd_ep *ep)
{
	struct hd_page_ep what = { .state = (uint32_t)ep->gen << 16 | HD_PAGE_EP_LIVE,
				   .protection = ep->zone };
	bool open = is_open_to(ep, &what);

	if (open && ep->policy & HD_EP_REMOTE_READ && !ep->cntrs.remote_read)
		what.state |= HD_PAGE_EP_READ;
	if (open && ep->policy & HD_EP_REMOTE_WRITE && !ep->cntrs.remote_write)
		what.state |= HD_PAGE_EP_WRITE;
	hd_page_ep_show(ep->node, ep->index, &what);
}

void hd_reach_ep_gone(const struct hd_ep *ep)
{
	hd_page_ep_show(ep->node, ep->index, &(struct hd_page_ep){ 0 });
}

/* ---- what we show: regions ---------------------------------------------------------------------------------------------- */

static void describe(const struct hd_mr *mr, struct hd_page_mr *what)
{
	*what = (struct hd_page_mr){ .key = mr->key, .count = (uint32_t)mr->count };
	if (mr->access & HD_ACCESS_REMOTE_READ && !mr->read)
		what->access |= HD_PAGE_MR_READ;
	if (mr->access & HD_ACCESS_REMOTE_WRITE && !mr->write)
		what->access |= HD_PAGE_MR_WRITE;
	if (!what->access)
		return;
	what->access |= mr->virtual ? HD_PAGE_MR_VIRTUAL : 0;
	what->base = mr->base;
	what->protection = mr->zone;
	what->ep = mr->ep ? mr->ep->index + 1 : 0;
	for (int i = 0; i < mr->count; i++)
		what->seg[i] = (struct hd_page_seg){ (uintptr_t)mr->iov[i].iov_base, mr->iov[i].iov_len };
}

void hd_reach_show(struct hd_mr *mr)
{
	struct hd_page_mr what = { 0 };

	if (mr->row >= 0)
		hd_page_mr_hide(mr->node, mr->row);
	if (!mr->enabled || mr->count < 1 || mr->count > HD_PAGE_SEGS || mr->key_count || mr->from)
		return;
	describe(mr, &what);
	if (!what.access)
		return;
	if (mr->row < 0)
		mr->row = hd_page_mr_take(mr->node, mr->key);
	if (mr->row >= 0)
		hd_page_mr_show(mr->node, mr->row, &what);
}

static bool settled(struct hd_node *node, uint32_t row)
{
	bool all = true;

	for (int i = 0; i < node->port_count; i++)
		if (node->ports[i]->transport->settle)
			all &= node->ports[i]->transport->settle(node->ports[i], row) == 0;
	return all;
}

/* A copy takes some ten microseconds; but who copies may have been put aside in the middle of it. */
void hd_reach_stand_back(struct hd_node *node, int round)
{
	const struct timespec nap = { .tv_nsec = SETTLE_NAP_NS };

	hd_node_unlock(node);
	if (round < 8)
		sched_yield();
	else
		nanosleep(&nap, NULL);
	hd_node_lock(node);
}

bool hd_reach_settled(struct hd_mr *mr)
{
	struct hd_node *node = mr->node;

	if (mr->row < 0)
		return true;
	if (!node->dead && !settled(node, (uint32_t)mr->row))
		return false;
	hd_page_mr_put(node, mr->row);
	mr->row = -1;
	return true;
}

int hd_reach_settle(struct hd_mr *mr)
{
	struct hd_node *node = mr->node;
	uint64_t end = 0;

	hd_assert_locked(node);
	for (int round = 0; !hd_reach_settled(mr); round++) {
		if (!end)
			end = hd_now_ns() + HD_REACH_SETTLE_NS;
		else if (hd_now_ns() > end)
			return -EBUSY;
		hd_reach_stand_back(node, round);
	}
	return 0;
}
