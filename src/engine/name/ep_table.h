/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * The table of a node's endpoints, by index. An index is used again; its generation then is another, and never 0, so that what was meant for
 * the endpoint before is known. With the node's lock; nothing blocks.
 */
#ifndef HD_ENGINE_EP_TABLE_H
#define HD_ENGINE_EP_TABLE_H

#include "engine/internal.h"

/*
 * hd_ep_index_take: the endpoint gets an index, the smallest that is free, and a generation: 0 or -ENOMEM. hd_ep_index_give: they are nobody's.
 * hd_ep_gen_take: another generation, for one that begins anew.
 */
int hd_ep_index_take(struct hd_ep *ep);
void hd_ep_index_give(struct hd_ep *ep);
void hd_ep_gen_take(struct hd_ep *ep);

/* hd_ep_alias: the endpoint itself or the alias of it that has this authorization key (0: none), or NULL. */
struct hd_ep *hd_ep_alias(struct hd_ep *ep, uint64_t key);

#endif
