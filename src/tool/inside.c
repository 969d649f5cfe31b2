/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* What a node of a running program is doing; see nodes.h. */
#include "tool/host.h"
#include "tool/nodes.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include "engine/node_page.h"

struct inside {
	struct hd_seen_node *node;
	int error; /* of the last read that failed */
};

static bool inside_get(void *arg, uint64_t addr, void *to, size_t len)
{
	struct inside *in = arg;
	struct iovec here = { to, len }, there = { (void *)(uintptr_t)addr, len };

	if (process_vm_readv(in->node->pid, &here, 1, &there, 1, 0) == (ssize_t)len)
		return true;
	in->error = errno;
	return false;
}

/* One more in a list: zeroed, or NULL without memory, and then it is not shown. */
static void *one_more(void **list, unsigned *count, size_t size)
{
	void *grown = realloc(*list, (*count + 1) * size);

	if (!grown)
		return NULL;
	*list = grown;
	return memset((char *)grown + size * (*count)++, 0, size);
}

static void inside_ep(void *arg, const struct hd_view_ep *ep)
{
	struct hd_seen_node *node = ((struct inside *)arg)->node;
	struct hd_seen_ep *seen = one_more((void **)&node->eps, &node->ep_count, sizeof(*seen));

	if (!seen)
		return;
	seen->kind = ep->kind;
	seen->state = ep->state;
	seen->receives = ep->receives;
	seen->sends = ep->sends;
	seen->waiting = ep->waiting;
	seen->unread = ep->unread;
	seen->cause = ep->cause;
	/* as verbs programs print queue pairs, and libfabric nothing */
	snprintf(seen->number, sizeof(seen->number), ep->is_qp ? "0x%06x" : "%u", ep->number);
	memcpy(seen->waits_for, ep->waits_for, sizeof(seen->waits_for));
	if (ep->answers.word[0] || ep->answers.word[1])
		hd_node_id_text(&ep->answers, seen->answers, sizeof(seen->answers));
}

static void inside_peer(void *arg, const struct hd_view_peer *peer)
{
	struct hd_seen_node *node = ((struct inside *)arg)->node;
	struct hd_seen_peer *seen = one_more((void **)&node->peers, &node->peer_count, sizeof(*seen));

	if (!seen)
		return;
	hd_node_id_text(&peer->id, seen->id, sizeof(seen->id));
	seen->state = peer->state;
	seen->credit = peer->credit;
	seen->held = peer->held;
	memcpy(seen->waits_for, peer->waits_for, sizeof(seen->waits_for));
}

void hd_inside_read(struct hd_seen_node *node, const struct hd_node_page *page)
{
	struct inside in = { .node = node };
	const struct hd_view_reader reader = { inside_get, &in };
	const struct hd_view_calls calls = { inside_ep, inside_peer, &in };
	struct hd_view_progress progress;

	if (page->node_layout != hd_view_layout())
		snprintf(node->unseen, sizeof(node->unseen),
			 "it runs another build of Heddle: use the heddle beside its libraries");
	else if (hd_view_progress(&reader, page->node_addr, &progress) ||
		 hd_view_node(&reader, page->node_addr, &calls))
		hd_host_unread(in.error, node->unseen, sizeof(node->unseen));
	if (*node->unseen)
		return;
	node->at = page->node_addr;
	node->turns = progress.turns;
	node->threads = progress.threads;
}

bool hd_inside_progress(struct hd_seen_node *node, struct hd_view_progress *out)
{
	struct inside in = { .node = node };

	return !hd_view_progress(&(struct hd_view_reader){ inside_get, &in }, node->at, out);
}

void hd_inside_free(struct hd_seen_node *node)
{
	free(node->eps);
	free(node->peers);
}
