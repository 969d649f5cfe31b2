/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Endpoints: they open, close and join groups (engine/api/endpoint.h), each in the way of its class
 * (class.h, which has the upcalls). For cm and dispatch is here what they need beside the calls of
 * fronts. With the node's lock; nothing blocks.
 */
#ifndef HD_ENGINE_EP_EP_H
#define HD_ENGINE_EP_EP_H

#include "engine/ep/class.h"
#include "engine/ep/state.h"

/*
 * hd_eps_init: of a new node: its endpoints are of these classes, by enum hd_ep_classes, and groups
 * are carried by `caster`.
 */
void hd_eps_init(struct hd_node *node, const struct hd_ep_class *classes, const struct hd_caster *caster);

/*
 * hd_ep_ops_end: end what the endpoint has under way with this peer (NULL: with any, and what waits
 * to be): in error, a status, or without completions when that is 0.
 */
void hd_ep_ops_end(struct hd_ep *ep, struct hd_peer *peer, enum hd_status status);

/*
 * hd_ep_inspect (inspect.c): how it stands with an endpoint, for tests and for who wants to show
 * it; its receive queue and queue pair have inspectors of their own. It changes nothing.
 */
struct hd_ep_view {
	uint32_t outstanding; /* operations that count against its bound: begun, and not told of */
	uint32_t fenced;      /* of these, those that wait behind a fence */
	uint32_t send_places; /* and those whose completions keep an order */
	/* long writes and reads under way that its messages must not overtake */
	uint32_t send_fences;
	uint32_t rma_fences; /* those that its one-sided operations must not overtake */
	bool framing;	     /* one of those in order leaves, a frame each */
	bool coming_in;	     /* a message comes in for a receive whose order counts */
	uint32_t deferred;   /* messages that have met their receives, and wait for that one */
	uint32_t claimed;    /* messages that are taken, and not yet received */
};
struct hd_ep_view hd_ep_inspect(const struct hd_ep *ep);

#endif
