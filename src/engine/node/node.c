/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Nodes: what a front opens, put together of what the rooms have, and taken apart. */
#include "base/config.h"
#include "base/log.h"
#include "engine/core/core.h"
#include "engine/link/peer.h"
#include "engine/name/key.h"
#include "engine/name/name.h"
#include "engine/node/ep_classes.h"
#include "engine/node/observers.h"
#include "engine/node/process.h"
#include "engine/node/transports.h"
#include "engine/node/turn.h"
#include "engine/xfer/op.h"
#include "engine/xfer/seat.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

/* ---- opening ---------------------------------------------------------------------------------------------------------------------------- */

static uint32_t units_of(uint64_t bytes)
{
	uint64_t units = bytes / HD_UNIT;

	return units > INT32_MAX ? INT32_MAX : (uint32_t)units;
}

static int ports_open(struct hd_node *node)
{
	for (int i = 0; hd_transports[i] && node->port_count < HD_MAX_PORTS; i++) {
		int rc = hd_transports[i]->open(node, &node->ports[node->port_count]);

		if (rc < 0 && hd_transports[i]->addressed) {
			hd_error("transport %s cannot be opened: %s", hd_transports[i]->name, strerror(-rc));
			return rc;
		}
		if (rc < 0)
			hd_warn("transport %s cannot be opened: %s; going without it", hd_transports[i]->name,
				strerror(-rc));
		else
			node->port_count++;
	}
	return 0;
}

static void ports_close(struct hd_node *node)
{
	for (int i = node->port_count - 1; i >= 0 && !node->dead; i--)
		node->ports[i]->transport->close(node->ports[i]);
}

static void windows_set(struct hd_node *node)
{
	node->window_max = units_of(hd_config_size(HD_SET_UNEXPECTED_MAX));
	node->window_peer_max = units_of(hd_config_size(HD_SET_UNEXPECTED_PEER));
	if (node->window_peer_max > node->window_max)
		node->window_peer_max = node->window_max;
}

/* What needs nothing else, and cannot fail. */
static int tables_open(struct hd_node *node)
{
	node->observers = &hd_link_observers;
	node->caster = hd_caster;
	node->turn_ops = &hd_turn_ops;
	node->mr_leaves = hd_mr_move;
	node->ep_classes = hd_ep_classes;
	node->transport_choice = hd_config_choice(HD_SET_TRANSPORT);
	windows_set(node);
	node->page_fd = -1;
	TAILQ_INIT(&node->fallen);
	TAILQ_INIT(&node->due);
	TAILQ_INIT(&node->awaiting);
	TAILQ_INIT(&node->links);
	hd_pool_init(&node->ops, sizeof(struct hd_op), 64);
	hd_pool_init(&node->recvs, sizeof(struct hd_recv), 256);
	hd_pool_init(&node->iovs, (sizeof(struct iovec) + sizeof(struct hd_mr *)) * HD_IOV_MAX, 64);
	hd_seats_init(node);
	hd_bytes_init(&node->bytes);
	hd_idmap_init(&node->op_ids);
	return 0;
}

static void tables_close(struct hd_node *node)
{
	free(node->eps);
	hd_indices_fini(&node->ep_indices);
	free(node->ep_gens);
	hd_idmap_fini(&node->op_ids);
	hd_bytes_fini(&node->bytes);
	hd_pool_fini(&node->seats);
	hd_pool_fini(&node->iovs);
	hd_pool_fini(&node->recvs);
	hd_pool_fini(&node->ops);
}

/* Stand-ins, so that the data path tests no pointers: a peer for destinations without one, a CQ for endpoints without one. */
static int stand_ins_make(struct hd_node *node)
{
	int rc = hd_cq_open(node, &(struct hd_cq_attr){ .size = 1 }, &node->no_cq);

	if (rc)
		return rc;
	node->cqs--;
	node->no_cq->none = true;
	node->no_cq->r.head = 0;
	node->no_cq->r.tail =
		node->no_cq->r.mask + 1; /* full: everything goes to hd_cq_overflow, which swallows it */
	node->nowhere = calloc(1, sizeof(*node->nowhere));
	if (!node->nowhere)
		return -ENOMEM;
	node->nowhere->node = node;
	node->nowhere->state = HD_PEER_DEAD;
	hd_peer_stall(node->nowhere, HD_STALL_DOWN);
	node->nobody = calloc(1, sizeof(*node->nobody));
	node->waste = malloc(HD_WASTE);
	if (!node->nobody || !node->waste)
		return -ENOMEM;
	hd_dest_stand_in(node->nobody, node);
	return 0;
}

static void stand_ins_free(struct hd_node *node)
{
	if (node->no_cq) {
		node->cqs++;
		hd_cq_close(node->no_cq);
	}
	free(node->waste);
	free(node->nobody);
	free(node->nowhere);
}

/* A node's parts, in the order in which they are opened; closed from the last to the first, those that were not opened too. */
static const struct node_part {
	int (*open)(struct hd_node *node);
	void (*close)(struct hd_node *node);
} parts[] = {
	{ .open = tables_open, .close = tables_close },
	{ .open = hd_page_open, .close = hd_page_close },
	{ .open = hd_core_open, .close = hd_core_close },
	{ .open = hd_addr_init, .close = hd_addr_fini },
	{ .open = stand_ins_make, .close = stand_ins_free },
	{ .close = hd_keys_close },
	{ .close = hd_dests_close },
	{ .open = ports_open, .close = ports_close },
};
#define PARTS ((int)(sizeof(parts) / sizeof(parts[0])))

static int parts_open(struct hd_node *node)
{
	int rc = 0;

	for (int i = 0; i < PARTS && !rc; i++)
		if (parts[i].open)
			rc = parts[i].open(node);
	return rc;
}

static void node_free(struct hd_node *node)
{
	for (int i = PARTS - 1; i >= 0; i--)
		parts[i].close(node);
	free(node);
}

int hd_node_open(const struct hd_node_attr *attr, struct hd_node **out)
{
	struct hd_node *node = calloc(1, sizeof(*node));
	int rc;

	if (!node)
		return -ENOMEM;
	hd_config_load();
	node->attr = *attr;
	rc = parts_open(node); /* nobody else knows the node: no lock is taken */
	node->locked = attr->locked || attr->auto_progress || attr->serve;
	if (!rc && attr->auto_progress)
		rc = hd_auto_start(node);
	if (rc) {
		if (rc == -EMFILE)
			HD_LOG_EVERY_MS(
				1000, HD_LOG_ERROR,
				"no descriptors left to open a node: raise the limit with `ulimit -n`");
		node_free(node);
		return rc;
	}
	hd_process_join(node);
	*out = node;
	return 0;
}

/* ---- closing ---------------------------------------------------------------------------------------------------------------------------- */

static void links_end(struct hd_node *node)
{
	struct hd_link *link;

	TAILQ_FOREACH(link, &node->links, entry)
		hd_link_down(link, -ESHUTDOWN, NULL);
}

static void peers_end(struct hd_node *node)
{
	struct hd_peer *peer, *next;

	HASH_ITER(hh, node->peers, peer, next)
		hd_peer_drop(peer, -ESHUTDOWN);
}

/* What comes to its end while the node is whole, in this order, with its lock. */
static void (*const ends[])(struct hd_node *node) = {
	links_end,	  hd_places_close, hd_links_reap, peers_end, /* those that no link has taken along */
	hd_crosswork_run,
};

int hd_node_close(struct hd_node *node)
{
	hd_node_lock(node);
	if (node->ep_users || node->rqs || node->cqs || node->cntrs || node->mrs) {
		hd_node_unlock(node);
		return -EBUSY;
	}
	node->closing = true;
	hd_node_unlock(node);
	while (atomic_load(&node->pins)) /* for a turn of progress, at most */
		sched_yield();
	hd_auto_stop(node);
	hd_process_leave(node);
	hd_node_lock(node);
	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
		ends[i](node);
	hd_node_unlock(node);
	node->locked = false;
	node_free(node);
	return 0;
}
