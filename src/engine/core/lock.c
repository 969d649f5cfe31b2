/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * A node that gets a lock, and what is said of a node that is dead, and of calls that are refused.
 */
#include "base/log.h"
#include "engine/core/core.h"

#include <string.h>

void hd_node_share(struct hd_node *node)
{
	hd_core(node)->gate.locked = true;
}

int hd_refuse(int err, const char *why)
{
	hd_event("a call is refused: %s: %s", strerror(err), why);
	return -err;
}

bool hd_node_dead(const struct hd_node *node)
{
	return hd_core(node)->gate.dead;
}
