/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Authorization keys. Endpoints exchange something only where they have a key in common, or
 * none. A key is known by a digest of 64 bits everywhere in the engine and on the wire; the key
 * itself stays with the front.
 *
 * Where a receive may name a key instead of a source, a key is a group: a source number from
 * HD_SRC_GROUPS on, which never changes. See rq/match.h. Everything here is called with the node's
 * lock, and blocks nowhere.
 */
#ifndef HD_ENGINE_KEY_H
#define HD_ENGINE_KEY_H

#include "engine/core/core.h"
#include "engine/name/state.h"

#define HD_SRC_GROUPS (UINT32_C(1) << 31) /* from here on sources of receives are groups */

/*
 * hd_key_group: the number that stands for all sources with this key in receive queues; 0 when
 * receives here name no such key.
 * hd_key_add: they do from now on, by this destination, which is the table's and is given to free()
 * with it. Its number, or 0 without memory.
 * hd_key_stand_in: that destination, or NULL. hd_keys_close: the node closes.
 */
uint32_t hd_key_group(const struct hd_node *node, uint64_t key);
uint32_t hd_key_add(struct hd_node *node, uint64_t key, struct hd_dest *sources);
struct hd_dest *hd_key_stand_in(const struct hd_node *node, uint64_t key);
void hd_keys_close(struct hd_node *node);

#endif
