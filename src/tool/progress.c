/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Which nodes of running programs make progress; see nodes.h. One that does moves on between two
 * looks, or sleeps so that peers wake it.
 */
#include "tool/nodes.h"

#include "base/clock.h"

#include <poll.h>

#define WATCH_MS 500
#define LOOK_MS 5

/* Something waits there. */
static bool has_waiting(const struct hd_seen_node *node)
{
	bool waits = false;

	for (unsigned i = 0; i < node->ep_count; i++)
		waits |= *node->eps[i].waits_for;
	for (unsigned i = 0; i < node->peer_count; i++)
		waits |= *node->peers[i].waits_for;
	return waits;
}

static void progress_ask(struct hd_seen_node *node)
{
	if (node && node->at && !node->stopped && node->progress == HD_PROGRESS_UNKNOWN)
		node->progress = HD_PROGRESS_NONE; /* until it does */
}

/* Of this node, and of those that what waits there may wait for. */
static void progress_ask_around(const struct hd_seen_nodes *nodes, struct hd_seen_node *node)
{
	progress_ask(node);
	for (unsigned i = 0; i < node->peer_count; i++)
		progress_ask(hd_node_by_id(nodes, node->peers[i].id));
}

/* Once more; true: it has not moved. */
static bool progress_look(struct hd_seen_node *node)
{
	struct hd_view_progress now;

	if (node->progress != HD_PROGRESS_NONE)
		return false;
	if (!hd_inside_progress(node, &now))
		node->progress = HD_PROGRESS_UNKNOWN;
	else if (now.sleeps || now.turns != node->turns)
		node->progress = HD_PROGRESS_MADE;
	return node->progress == HD_PROGRESS_NONE;
}

void hd_progress_watch(struct hd_seen_nodes *nodes)
{
	const uint64_t due = hd_deadline_ns(WATCH_MS);
	struct hd_seen_node *node;
	bool stands;

	STAILQ_FOREACH(node, nodes, entry)
		if (has_waiting(node))
			progress_ask_around(nodes, node);
	do {
		stands = false;
		STAILQ_FOREACH(node, nodes, entry)
			stands |= progress_look(node);
		if (stands)
			poll(NULL, 0, LOOK_MS);
	} while (stands && hd_left_ms(due));
}
