/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* The node's lock, and what every call asks of a node first: is it dead, and what it says when it refuses. */
#include "base/log.h"
#include "engine/core/core.h"

#include <string.h>

void hd_node_share(struct hd_node *node)
{
	hd_core(node)->locked = true;
}

void hd_node_lock(struct hd_node *node)
{
	if (hd_core(node)->locked)
		hd_biased_take(&hd_core(node)->lock);
}

bool hd_node_enter(struct hd_node *node)
{
	if (hd_unlikely(hd_core(node)->dead))
		return false;
	if (hd_likely(hd_core(node)->locked))
		hd_biased_take(&hd_core(node)->lock);
	return true;
}

void hd_node_unlock(struct hd_node *node)
{
	if (hd_core(node)->locked)
		hd_biased_give(&hd_core(node)->lock);
}

int hd_refuse(int err, const char *why)
{
	hd_debug("a call is refused: %s: %s", strerror(err), why);
	return -err;
}

bool hd_node_dead(const struct hd_node *node)
{
	return hd_core(node)->dead;
}
