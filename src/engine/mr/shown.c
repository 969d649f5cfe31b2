/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * What peers on this host may reach by themselves (direct.c), shown in the node page: regions
 * (endpoints are in name/ep_page.c). Those whose owner wants to be told of each access, by a
 * counter or an event, are not shown for it. A region that is taken back is hidden, and kept until
 * nobody copies from or to it any more.
 */
#include "engine/mr/shown.h"
#include "engine/core/core.h"
#include "engine/name/name.h"

#include "base/clock.h"

#include <errno.h>
#include <sched.h>
#include <time.h>

#define SETTLE_NAP_US 20

/* ---- what we show ---------------------------------------------------------------------------- */

static void row_describe(const struct hd_mr *mr, struct hd_page_mr *what)
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
	what->protection = mr->pd;
	what->ep = mr->ep ? mr->ep->index + 1 : 0;
	for (int i = 0; i < mr->count; i++)
		what->seg[i] = (struct hd_page_seg){ (uintptr_t)mr->iov[i].iov_base, mr->iov[i].iov_len };
}

void hd_mr_show(struct hd_mr *mr)
{
	struct hd_page_mr what = { 0 };

	if (mr->row >= 0)
		hd_page_mr_hide(mr->node, mr->row);
	if (!mr->enabled || mr->count < 1 || mr->count > HD_PAGE_SEGS || mr->key_count || mr->from)
		return;
	row_describe(mr, &what);
	if (!what.access)
		return;
	if (mr->row < 0)
		mr->row = hd_page_mr_take(mr->node, mr->key);
	if (mr->row >= 0)
		hd_page_mr_show(mr->node, mr->row, &what);
}

static bool row_is_settled(struct hd_node *node, uint32_t row)
{
	bool all = true;

	for (int i = 0; i < hd_core(node)->port_count; i++)
		if (hd_core(node)->ports[i]->transport->settle)
			all &= hd_core(node)->ports[i]->transport->settle(hd_core(node)->ports[i], row) == 0;
	return all;
}

/*
 * A copy takes some ten microseconds; but who copies may have been put aside in the middle of it.
 */
void hd_mr_stand_back(struct hd_node *node, int round)
{
	hd_node_unlock(node);
	if (round < 8)
		sched_yield();
	else
		hd_pause_us(SETTLE_NAP_US);
	hd_node_lock(node);
}

bool hd_mr_settled(struct hd_mr *mr)
{
	struct hd_node *node = mr->node;

	if (!LIST_EMPTY(&mr->kept) && !hd_core(node)->gate.dead)
		return false;
	while (!LIST_EMPTY(&mr->kept))
		hd_mr_drop(LIST_FIRST(&mr->kept));
	if (mr->row < 0)
		return true;
	if (!hd_core(node)->gate.dead && !row_is_settled(node, (uint32_t)mr->row))
		return false;
	hd_page_mr_put(node, mr->row);
	mr->row = -1;
	return true;
}

bool hd_mrs_settled(struct hd_node *node)
{
	struct hd_mr *mr, *next;
	bool all = true;

	HASH_ITER(hh, hd_regions(node)->mr_table, mr, next)
		if (!mr->enabled)
			all &= hd_mr_settled(mr);
	return all;
}

int hd_mr_await(struct hd_mr *mr, bool (*over)(struct hd_mr *mr))
{
	struct hd_node *node = mr->node;
	uint64_t end = 0;

	hd_assert_locked(node);
	for (int round = 0; !over(mr); round++) {
		if (!end)
			end = hd_now_ns() + HD_MR_SETTLE_NS;
		else if (hd_now_ns() > end)
			return -EBUSY;
		hd_mr_stand_back(node, round);
		if (!LIST_EMPTY(&mr->kept) || mr->row < 0)
			hd_node_poll(node); /* which ends requests here, where nobody else does */
	}
	return 0;
}
