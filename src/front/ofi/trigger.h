/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Triggered operations and deferred work, fi_trigger(3): calls whose arguments are
 * checked and taken over when they are made, and which are made to the engine when a
 * counter has reached a threshold.
 */
#ifndef HEDDLE_FRONT_OFI_TRIGGER_H
#define HEDDLE_FRONT_OFI_TRIGGER_H

#include "front/ofi/atomic.h"
#include "front/ofi/ep.h"

#include <rdma/fi_trigger.h>

/*
 * hd_fi_trigger_send and hd_fi_trigger_recv are the calls of fi_msg(3) and fi_tagged(3) with
 * FI_TRIGGER: the context is the program's struct fi_triggered_context. What they are given is
 * copied, segments too; data as well with FI_INJECT. flags of s and r: HD_SEND_TAGGED or
 * HD_RECV_TAGGED, or none; flags: the program's.
 */
ssize_t hd_fi_trigger_send(struct hd_fi_ep *ep, const struct hd_fi_send *s, const struct iovec *iov,
			   size_t count, uint64_t flags);
ssize_t hd_fi_trigger_recv(struct hd_fi_ep *ep, const struct hd_fi_recv *r, uint64_t flags);

/* hd_fi_trigger_rma: the same for fi_writemsg and fi_readmsg of fi_rma(3). */
ssize_t hd_fi_trigger_rma(struct hd_fi_ep *ep, const struct fi_msg_rma *msg, enum hd_rma_op op,
			  uint64_t flags);

/* hd_fi_trigger_atomic: the same for the calls of fi_atomic(3), whose flags are those of c. */
ssize_t hd_fi_trigger_atomic(struct hd_fi_ep *ep, const struct hd_fi_atomic *c);

/*
 * hd_fi_trigger_tables: calls without flags that op_flags have FI_TRIGGER for go to those with
 * flags (trigger_calls.c). Atomic operations look for themselves. hd_fi_op_flags_can_be: may these
 * be set for this direction, fi_ep_alias(3) and FI_SETOPSFLAG?
 */
void hd_fi_trigger_tables(struct hd_fi_ep *ep);
bool hd_fi_op_flags_can_be(const struct hd_fi_offer *offer, bool sends, uint64_t flags);

/*
 * hd_fi_trigger_cancel is fi_cancel(3) for a triggered operation that still waits: 0, or
 * -FI_ENOENT. hd_fi_triggered_drop forgets all that an endpoint has, waiting or under way, without
 * completions: it is being closed, and the engine's endpoint is gone. Caller holds the node's lock
 * for both.
 */
int hd_fi_trigger_cancel(struct hd_fi_ep *ep, const void *context);
void hd_fi_triggered_drop(struct hd_fi_ep *ep);

/* hd_fi_work_control is fi_control(3) of a domain: FI_QUEUE_WORK, FI_CANCEL_WORK, FI_FLUSH_WORK. */
int hd_fi_work_control(struct hd_fi_domain *domain, int command, void *arg);

#endif
