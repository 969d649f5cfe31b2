/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Endpoints: they open, close and join groups (engine/api/endpoint.h), each in the way of its class (class.h, which has the upcalls). For cm and dispatch
 * is here what they need beside the calls of fronts. With the node's lock; nothing blocks.
 */
#ifndef HD_ENGINE_EP_EP_H
#define HD_ENGINE_EP_EP_H

#include "engine/ep/class.h"
#include "engine/ep/state.h"

/* hd_eps_init: of a new node: its endpoints are of these classes, by enum hd_ep_classes, and groups are carried by `caster`. */
void hd_eps_init(struct hd_node *node, const struct hd_ep_class *classes, const struct hd_caster *caster);

/* hd_ep_ops_end: end what the endpoint has under way with this peer: in error, a status, or without completions when that is 0. */
void hd_ep_ops_end(struct hd_ep *ep, struct hd_peer *peer, enum hd_status status);

#endif
