/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* turn.c: what each room does in a turn of progress. */
#ifndef HD_ENGINE_NODE_TURN_H
#define HD_ENGINE_NODE_TURN_H

#include "engine/core/core.h"

extern const struct hd_turn_ops hd_turn_ops;

/*
 * hd_node_check (check.c): asserts in builds with assertions that what each room
 * keeps agrees with itself.
 */
void hd_node_check(struct hd_node *node);

#endif
