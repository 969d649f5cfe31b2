/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* See ep_table.h. */
#include "engine/name/ep_table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* 0 is no generation: others take it for an endpoint that they know nothing of. */
void hd_ep_gen_take(struct hd_ep *ep)
{
	uint32_t *gens = &ep->node->ep_gens[ep->index];

	if (!(uint16_t)++ * gens)
		++*gens;
	ep->gen = (uint16_t)*gens;
}

static int ep_table_grow(struct hd_node *node)
{
	uint32_t n = node->ep_count ? node->ep_count * 2 : 64;
	struct hd_ep **eps = realloc(node->eps, n * sizeof(*eps));
	uint32_t *gens;

	if (!eps)
		return -ENOMEM;
	node->eps = eps;
	gens = realloc(node->ep_gens, n * sizeof(*gens));
	if (!gens)
		return -ENOMEM;
	node->ep_gens = gens;
	memset(eps + node->ep_count, 0, (n - node->ep_count) * sizeof(*eps));
	memset(gens + node->ep_count, 0, (n - node->ep_count) * sizeof(*gens));
	if (hd_indices_grow(&node->ep_indices, n) < 0)
		return -ENOMEM;
	node->ep_count = n;
	return 0;
}

/* The smallest, since only the first ones have rows in what peers look at. */
int hd_ep_index_take(struct hd_ep *ep)
{
	struct hd_node *node = ep->node;
	uint32_t i = hd_indices_take(&node->ep_indices);

	if (i == node->ep_indices.count) {
		if (ep_table_grow(node) < 0)
			return -ENOMEM;
		i = hd_indices_take(&node->ep_indices);
	}
	node->eps[i] = ep;
	ep->index = ep->page_from = i;
	hd_ep_gen_take(ep);
	return 0;
}

void hd_ep_index_give(struct hd_ep *ep)
{
	ep->node->eps[ep->index] = NULL;
	hd_indices_put(&ep->node->ep_indices, ep->index);
}

struct hd_ep *hd_ep_alias(struct hd_ep *ep, uint64_t key)
{
	if (ep->key == key)
		return ep;
	for (uint32_t i = 0; i < ep->other_count; i++)
		if (ep->others[i]->key == key)
			return ep->others[i];
	return NULL;
}
