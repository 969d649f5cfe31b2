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
		TAILQ_REMOVE(&peer->queue, op, entry);
		if (hd_op_start(op) < 0) {
			TAILQ_INSERT_HEAD(&peer->queue, op, entry);
			break;
		}
		n++;
	}
	return n;
}

void hd_backlog_bound(struct hd_dest *dest)
{
	struct hd_peer *peer = dest->peer;

	TAILQ_CONCAT(&peer->queue, &dest->waiting, entry);
	if (!TAILQ_EMPTY(&peer->queue))
		hd_peer_stall(peer, HD_STALL_QUEUED);
	hd_peer_busy(peer);
}

/* dest NULL: for any. */
static void backlog_fail(struct hd_peer *peer, struct hd_dest *dest, enum hd_status status)
{
	struct hd_op *op, *next;

	for (op = TAILQ_FIRST(&peer->queue); op; op = next) {
		next = TAILQ_NEXT(op, entry);
		if (dest && op->dest != dest)
			continue;
		TAILQ_REMOVE(&peer->queue, op, entry);
		hd_op_done(op, status);
	}
	hd_fence_fail(peer, dest, status);
}

void hd_backlog_ended(struct hd_peer *peer, enum hd_status status)
{
	backlog_fail(peer, NULL, status);
}

void hd_backlog_unreached(struct hd_dest *dest, enum hd_status status)
{
	struct hd_op *op;

	if (dest->state == HD_DEST_BOUND)
		backlog_fail(dest->peer, dest, status);
	while ((op = TAILQ_FIRST(&dest->waiting))) {
		TAILQ_REMOVE(&dest->waiting, op, entry);
		hd_op_done(op, status);
	}
}
