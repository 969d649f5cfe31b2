/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Nodes: what a front opens, put together of what the rooms have, and taken apart. */
#include "engine/node/node.h"
#include "base/advice.h"
#include "base/config.h"
#include "base/guard.h"
#include "base/log.h"
#include "engine/ep/ep.h"
#include "engine/node/ep_classes.h"
#include "engine/node/observers.h"
#include "engine/node/process.h"
#include "engine/node/transports.h"
#include "engine/node/turn.h"
#include "engine/qp/qp.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

/* ---- opening --------------------------------------------------------------------------------- */

static int ports_open(struct hd_node *node)
{
	for (int i = 0; hd_transports[i] && hd_core(node)->port_count < HD_MAX_PORTS; i++) {
		struct hd_port *port;
		int rc = hd_transports[i]->open(node, &port);

		if (rc < 0 && hd_transports[i]->addressed) {
			hd_error(
				"transport %s, which gives endpoints their addresses, cannot be opened: %s: `heddle info` shows the addresses and "
				"settings that it goes by",
				hd_transports[i]->name, strerror(-rc));
			return rc;
		}
		if (rc < 0 && rc != -EOPNOTSUPP)
			hd_warn("transport %s cannot be opened: %s%s; going without it",
				hd_transports[i]->name, strerror(-rc), hd_advice(-rc));
		else if (!rc)
			hd_core_port(node, port);
	}
	return 0;
}

static void ports_close(struct hd_node *node)
{
	for (int i = hd_core(node)->port_count - 1; i >= 0 && !hd_core(node)->gate.dead; i--)
		hd_core(node)->ports[i]->transport->close(hd_core(node)->ports[i]);
}

/* What needs nothing else, and cannot fail: each room's own, from the lowest to the highest. */
static void rooms_init(struct hd_node *node, const struct hd_node_attr *attr)
{
	hd_core_init(node, attr, &hd_turn_ops);
	hd_events_init(node);
	hd_names_init(node);
	hd_links_init(node, &hd_link_observers);
	hd_regions_init(node, hd_mr_move);
	hd_rqs_init(node);
	hd_xfers_init(node);
	hd_qps_init(node);
	hd_eps_init(node, hd_ep_classes, hd_caster);
}

static void rooms_fini(struct hd_node *node)
{
	hd_xfers_fini(node);
	hd_rqs_fini(node);
	hd_links_fini(node);
	hd_names_fini(node);
}

/*
 * A node's parts, in the order in which they are opened; closed from the last to the first, those
 * that were not opened too.
 */
static const struct node_part {
	int (*open)(struct hd_node *node);
	void (*close)(struct hd_node *node);
	const char *what; /* it needs, to say so; NULL: it says itself what is wrong */
} parts[] = {
	{ .close = rooms_fini },
	{ .open = hd_page_open,
	  .close = hd_page_close,
	  .what = "the page that others see of it (mmap, getrandom)" },
	{ .open = hd_core_open,
	  .close = hd_core_close,
	  .what = "what it sleeps on (epoll, eventfd, timerfd)" },
	{ .open = hd_addr_init, .close = hd_addr_fini },
	{ .open = hd_events_open,
	  .close = hd_events_close,
	  .what = "its first completion queue (eventfd, epoll)" },
	{ .open = hd_links_open, .close = hd_links_close, .what = "a random number (getrandom)" },
	{ .open = hd_xfers_open, .close = hd_xfers_close, .what = "memory" },
	{ .close = hd_keys_close },
	{ .close = hd_dests_close },
	{ .open = ports_open, .close = ports_close },
};
#define PARTS ((int)(sizeof(parts) / sizeof(parts[0])))

static void cannot_open(const char *what, int rc)
{
	HD_LOG_EVERY_MS(1000, HD_LOG_ERROR, "a node cannot be opened for want of %s: %s%s", what,
			strerror(-rc), hd_advice(-rc));
}

static int parts_open(struct hd_node *node)
{
	for (int i = 0; i < PARTS; i++) {
		int rc = parts[i].open ? parts[i].open(node) : 0;

		if (rc && parts[i].what)
			cannot_open(parts[i].what, rc);
		if (rc)
			return rc;
	}
	return 0;
}

static void node_free(struct hd_node *node)
{
	for (int i = PARTS - 1; i >= 0; i--)
		parts[i].close(node);
	free(node);
}

/* Who may read our memory finds the node: view.c. */
static void show_node(struct hd_node *node)
{
	struct hd_node_page *page = hd_core(node)->page;

	page->node_addr = (uint64_t)(uintptr_t)node;
	page->node_layout = hd_view_layout();
}

int hd_node_open(const struct hd_node_attr *attr, struct hd_node **out)
{
	struct hd_node *node = calloc(1, sizeof(*node));
	int rc;

	if (!node)
		return -ENOMEM;
	hd_config_load();
	hd_guard_open();
	rooms_init(node, attr);
	rc = parts_open(node); /* nobody else knows the node: no lock is taken */
	if (!rc)
		show_node(node);
	hd_core_lock(node, attr->locked || attr->auto_progress || attr->serve);
	if (!rc && attr->auto_progress)
		rc = hd_auto_start(node);
	if (rc) {
		node_free(node);
		return rc;
	}
	hd_nodes_join(node);
	*out = node;
	return 0;
}

/* ---- closing --------------------------------------------------------------------------------- */

/* What comes to its end while the node is whole, in this order, with its lock. */
static void (*const ends[])(struct hd_node *node) = {
	hd_declines_end,   hd_links_end, hd_bound_ports_close,
	hd_links_reap_all, hd_peers_end, hd_crosswork_run,
};

int hd_node_close(struct hd_node *node)
{
	hd_node_lock(node);
	if (hd_eps(node)->ep_users || hd_rqs(node)->rqs || hd_events(node)->cqs || hd_events(node)->cntrs ||
	    hd_regions(node)->mrs) {
		hd_node_unlock(node);
		return -EBUSY;
	}
	hd_core_closing(node);
	hd_node_unlock(node);
	while (atomic_load(&hd_core(node)->pins)) /* for a turn of progress, at most */
		sched_yield();
	hd_auto_stop(node);
	hd_nodes_leave(node);
	hd_node_lock(node);
	hd_past_say(node);
	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
		ends[i](node);
	hd_node_unlock(node);
	hd_core_lock(node, false);
	node_free(node);
	return 0;
}
