/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Packets, and who of the engine's rooms they are for. */
#ifndef HD_ENGINE_DISPATCH_H
#define HD_ENGINE_DISPATCH_H

#include "engine/internal.h"

/*
 * Both: payload has len bytes, and is read once; it may lie in memory that the other end can write to. 0, or negative: the link is down. With
 * the node's lock; nothing blocks.
 *
 * hd_dispatch: a packet that has come whole: is it one that may come now? Then it goes to whom it is for. hd_dispatch_kind: carry it out by the
 * rules of its kind, which is a known one: a queue pair has let it in (hd_node.admitted).
 */
int hd_dispatch(struct hd_link *link, const struct hd_pkt *pkt, const void *payload, size_t len);
int hd_dispatch_kind(struct hd_link *link, const struct hd_pkt *pkt, const void *payload, size_t len);

#endif
