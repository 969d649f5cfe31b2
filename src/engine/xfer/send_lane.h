/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * The order of completions, for endpoints that ask for it (fi_endpoint(3), comp_order), and of
 * datagrams that wait. Everything here needs the node's lock; nothing here is called for others.
 */
#ifndef HD_ENGINE_SEND_LANE_H
#define HD_ENGINE_SEND_LANE_H

#include "engine/rq/rq.h"
#include "engine/xfer/lane.h"
#include "engine/xfer/op.h"
#include "engine/xfer/state.h"

/*
 * What few endpoints have: operations that wait for their turn. Made when the first
 * does: only the flags of a send say that it is ordered, and an endpoint that sends none
 * keeps a pointer and no more.
 */
struct hd_ep_order {
	struct hd_op_list fenced; /* HD_OP_FENCED, in posting order */
	struct hd_lane lane;	  /* operations that have not been told of: send_lane.c */
};

/* hd_ep_order_make: it has one from now on, which goes with it. False: no memory. */
bool hd_ep_order_make(struct hd_ep *ep);

/*
 * Each operation with HD_SEND_ORDERED has a place in the endpoint's lane with what its completion
 * says. That is written, and counted, in its turn: once none before it to the same remote endpoint
 * is outstanding. A place keeps its place in the bound of operations until then.
 *
 * hd_send_lanes_init: with the node. hd_send_place_take: for a new operation; false: no memory.
 * hd_send_place_done: it has ended; op->send_place is NULL if that has been told.
 * hd_send_place_leave: the operation is about to be freed.
 * hd_send_lane_drop: the endpoint closes: nothing is told any more. hd_send_lane_is_open: nothing
 * outstanding is before a new operation to this destination.
 */
void hd_send_lanes_init(struct hd_node *node);
bool hd_send_place_take(struct hd_op *op);
void hd_send_place_done(struct hd_op *op, uint32_t cqe_flags, enum hd_status status);
bool hd_send_place_leave(struct hd_op *op);
void hd_send_lane_drop(struct hd_ep *ep);
bool hd_send_lane_is_open(struct hd_ep *ep, struct hd_dest *dest);

/*
 * hd_ep_order_check (check.c): assert in builds with assertions what holds of both after a turn: by
 * hd_send_lane_check (send_lane.c), that all whose turn it was have been told of, and
 * hd_fence_check (fence.c), that each fence waits for as many as are under way.
 */
#ifdef NDEBUG
static inline void hd_ep_order_check(const struct hd_ep *ep)
{
}
#else
void hd_ep_order_check(const struct hd_ep *ep);
void hd_send_lane_check(const struct hd_ep *ep);
#endif

#endif
