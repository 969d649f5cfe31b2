/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* The nodes of this process, for fork and exit. Both without the node's lock, and what is said at the end. */
#ifndef HD_ENGINE_PROCESS_H
#define HD_ENGINE_PROCESS_H

#include "engine/node/node.h"

void hd_process_join(struct hd_node *node);
void hd_process_leave(struct hd_node *node);

/* hd_past_say (past.c): what the node has done, into the log at the level info, once. With its lock. */
void hd_past_say(struct hd_node *node);

#endif
