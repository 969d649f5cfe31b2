/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* See ep_table.h. */
#include "engine/name/ep_table.h"

#include "engine/name/bound_port.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void hd_names_init(struct hd_node *node)
{
	hd_names(node)->page_fd = -1;
}

void hd_names_fini(struct hd_node *node)
{
	struct hd_names *names = hd_names(node);

	free(names->eps);
	hd_indices_fini(&names->ep_indices);
	free(names->ep_gens);
}

/* 0 is no generation: others take it for an endpoint that they know nothing of. */
void hd_ep_gen_take(struct hd_ep *ep)
{
	uint32_t *gen = &hd_names(ep->node)->ep_gens[ep->index];

	*gen += 1;
	if (!(uint16_t)*gen)
		*gen += 1;
	ep->gen = (uint16_t)*gen;
}

static int ep_table_grow(struct hd_node *node)
{
	uint32_t n = hd_names(node)->ep_count ? hd_names(node)->ep_count * 2 : 64;
	struct hd_ep **eps = realloc(hd_names(node)->eps, n * sizeof(*eps));
	uint32_t *gens;

	if (!eps)
		return -ENOMEM;
	hd_names(node)->eps = eps;
	gens = realloc(hd_names(node)->ep_gens, n * sizeof(*gens));
	if (!gens)
		return -ENOMEM;
	hd_names(node)->ep_gens = gens;
	memset(eps + hd_names(node)->ep_count, 0, (n - hd_names(node)->ep_count) * sizeof(*eps));
	memset(gens + hd_names(node)->ep_count, 0, (n - hd_names(node)->ep_count) * sizeof(*gens));
	if (hd_indices_grow(&hd_names(node)->ep_indices, n) < 0)
		return -ENOMEM;
	hd_names(node)->ep_count = n;
	return 0;
}

/* The smallest, since only the first ones have rows in what peers look at. */
int hd_ep_index_take(struct hd_ep *ep)
{
	struct hd_node *node = ep->node;
	uint32_t i = hd_indices_take(&hd_names(node)->ep_indices);

	if (i == hd_names(node)->ep_indices.count) {
		if (ep_table_grow(node) < 0)
			return -ENOMEM;
		i = hd_indices_take(&hd_names(node)->ep_indices);
	}
	hd_names(node)->eps[i] = ep;
	ep->index = ep->page_from = i;
	hd_ep_gen_take(ep);
	return 0;
}

void hd_ep_index_give(struct hd_ep *ep)
{
	hd_names(ep->node)->eps[ep->index] = NULL;
	hd_indices_put(&hd_names(ep->node)->ep_indices, ep->index);
}

struct hd_ep *hd_ep_alias(struct hd_ep *ep, uint64_t key)
{
	if (ep->key == key)
		return ep;
	for (uint32_t i = 0; i < ep->alias_count; i++)
		if (ep->aliases[i]->key == key)
			return ep->aliases[i];
	return NULL;
}

/* That by which receives are posted to a shared queue stands for it. */
bool hd_ep_is_shared_rq(const struct hd_ep *ep)
{
	return !ep->own_rq && ep->policy & (HD_EP_NAMELESS | HD_EP_XRC_QUEUE);
}

const char *hd_ep_kind(const struct hd_ep *ep)
{
	if (ep->service)
		return "listener";
	if (ep->qp && ep->conn) /* of rdma_cm and uDAPL: the queue pair is another one */
		return "connection";
	if (hd_ep_is_shared_rq(ep))
		return "shared receive queue";
	if (ep->qp)
		return !(ep->policy & HD_EP_PAIRED) ? "datagram queue pair"
		       : ep->policy & HD_EP_DROP    ? "unreliable queue pair"
						    : "queue pair";
	if (ep->watch & HD_WATCH_CONNECTED)
		return "msg";
	return ep->policy & HD_EP_DROP ? "dgram" : "rdm";
}

uint32_t hd_ep_number(const struct hd_ep *ep)
{
	return ep->policy & HD_EP_NUMBERED && ep->bound_port ? (uint32_t)ep->bound_port->port << 8 | ep->slot
							     : 0;
}

uint32_t hd_ep_number_shown(const struct hd_ep *ep)
{
	uint32_t number = hd_ep_number(ep);

	return number ? number : ep->index;
}

struct hd_ep_text hd_ep_text(const struct hd_ep *ep)
{
	struct hd_ep_text text;

	snprintf(text.text, sizeof(text.text), ep->qp ? "%s 0x%06x" : "%s %u", hd_ep_kind(ep),
		 hd_ep_number_shown(ep));
	return text;
}
