/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* What fork and exit do to the nodes of this process, and what is said at the end. */
#ifndef HD_ENGINE_PROCESS_H
#define HD_ENGINE_PROCESS_H

#include "engine/node/node.h"

/* hd_node_forked: this is a child that fork(2) has just made. Async-signal-safe. */
void hd_node_forked(struct hd_node *node);

/*
 * hd_past_say (past.c): what the node has done, into the log at the level
 * info, once. With its lock.
 */
void hd_past_say(struct hd_node *node);

#endif
