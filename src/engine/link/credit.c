/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Credit between two nodes: windows that grow, and grants. */
#include "engine/link/link.h"

#include "base/config.h"

#include <assert.h>

#define WINDOW_FIRST (HD_WINDOW_FIRST / HD_UNIT)

/*
 * A grant is published when it is worth so much of the window. While at most half of the window is
 * held, the peer then has three eighths left at least: enough for its longest eager message, which
 * is a quarter of the first window and a header.
 */
#define STEP(window) ((window) / 8)

bool hd_credit_look(struct hd_peer *peer, uint32_t units)
{
	uint32_t limit = peer->link->ops->granted(peer->link);

	if ((int32_t)(limit - peer->credit.limit) > 0) {
		peer->credit.limit = limit;
		peer->ran_out = false;
	}
	return hd_credit_left(peer) >= units;
}

void hd_credit_regrant(struct hd_peer *peer)
{
	struct hd_credit *c = &peer->credit;
	uint32_t limit = c->freed + c->window;

	hd_credit_check(peer);
	if (limit == c->rx_granted || peer->state != HD_PEER_LIVE)
		return;
	c->rx_granted = limit;
	if (c->held < c->window / 2)
		c->step = STEP(c->window); /* whatever hd_credit_grow has made of it */
	peer->link->ops->grant(peer->link, limit);
}

void hd_credit_grow(struct hd_peer *peer)
{
	struct hd_node *node = peer->node;
	struct hd_credit *c = &peer->credit;
	uint32_t more = c->window;

	if (more > hd_budget_room(peer->share->budget))
		more = hd_budget_room(peer->share->budget);
	if (more > hd_minus(hd_links(node)->window_peer_max, c->window))
		more = (uint32_t)hd_minus(hd_links(node)->window_peer_max, c->window);
	c->window += more;
	hd_budget_take(peer->share->budget, more);
	c->step = c->held > c->window / 2 ? 1 : STEP(c->window);
	hd_credit_regrant(peer);
}

uint32_t hd_credit_first_window(const struct hd_node *node)
{
	return WINDOW_FIRST < hd_links(node)->window_peer_max ? WINDOW_FIRST
							      : hd_links(node)->window_peer_max;
}

bool hd_credit_open(struct hd_peer *peer, bool called)
{
	uint32_t window = hd_credit_first_window(peer->node);

	if (!hd_share_admit(peer->share, window, called))
		return false;
	peer->credit = (struct hd_credit){ .window = window, .rx_granted = window, .step = STEP(window) };
	return true;
}

void hd_credit_begin(struct hd_peer *peer, uint32_t limit)
{
	peer->credit.limit = limit;
}

uint32_t hd_credit_promised(const struct hd_peer *peer)
{
	return peer->credit.rx_granted;
}

void hd_credit_close(struct hd_peer *peer)
{
	hd_share_close(peer->share, (uint32_t)hd_minus(peer->credit.window, peer->credit.held));
}

#ifndef NDEBUG
void hd_credit_check(const struct hd_peer *peer)
{
	const struct hd_credit *c = &peer->credit;
	uint32_t out = c->rx_spent - c->freed; /* what the peer has here */

	/* nothing is freed twice, or lost */
	assert(out <= c->window);
	/* no more is granted than there is */
	assert(c->freed + c->window - c->rx_granted <= c->window);
}
#endif

/* ---- the node's store ------------------------------------------------------------------------ */

static uint32_t units_of(uint64_t bytes)
{
	uint64_t units = bytes / HD_UNIT;

	return units > INT32_MAX ? INT32_MAX : (uint32_t)units;
}

void hd_credit_init(struct hd_node *node)
{
	struct hd_links *links = hd_links(node);

	links->window_max = units_of(hd_config_size(HD_SET_UNEXPECTED_MAX));
	links->window_peer_max = units_of(hd_config_size(HD_SET_UNEXPECTED_PEER));
	if (links->window_peer_max > links->window_max)
		links->window_peer_max = links->window_max;
}
