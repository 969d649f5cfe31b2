/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Operations that were accepted before their destination was reached, or behind such ones. */
#include "engine/rdm/backlog.h"
#include "engine/link/link.h"
#include "engine/rdm/rdm.h"
#include "engine/xfer/xfer.h"

int hd_backlog_push(struct hd_peer *peer)
{
	struct hd_op *op;
	int n = 0;

	while ((op = TAILQ_FIRST(&peer->queue))) {
		hd_op_dequeue(op);
		if (hd_op_start(op) < 0) {
			hd_op_requeue(op);
			break;
		}
		n++;
	}
	return n;
}

void hd_backlog_bound(struct hd_dest *dest)
{
	struct hd_peer *peer = dest->peer;
	struct hd_op *op;

	TAILQ_FOREACH(op, &dest->waiting, at_dest)
		TAILQ_INSERT_TAIL(&peer->queue, op, entry);
	if (!TAILQ_EMPTY(&peer->queue))
		hd_peer_stall(peer, HD_STALL_QUEUED);
	hd_peer_busy(peer);
}

static void backlog_end(struct hd_op *op, enum hd_status status)
{
	hd_op_dequeue(op);
	hd_op_done(op, status);
}

void hd_backlog_ended(struct hd_peer *peer, enum hd_status status)
{
	struct hd_op *op;

	while ((op = TAILQ_FIRST(&peer->queue)))
		backlog_end(op, status);
	hd_fence_fail(peer, NULL, status);
}

/* It is held by who calls this (link/observers.h). */
void hd_backlog_unreached(struct hd_dest *dest, enum hd_status status)
{
	struct hd_op *op;

	while ((op = TAILQ_FIRST(&dest->waiting)))
		backlog_end(op, status);
	if (dest->state == HD_DEST_BOUND)
		hd_fence_fail(dest->peer, dest, status);
}
