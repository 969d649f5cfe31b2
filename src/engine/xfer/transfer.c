/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* How transfers are made, answered, ended and given up. */
#include "engine/xfer/transfer.h"
#include "engine/link/link.h"
#include "engine/mr/mr.h"

#include <errno.h>
#include <string.h>

/* ---- the object ------------------------------------------------------------------------------ */

int hd_transfer_init(struct hd_transfer *t, struct hd_ep *ep, const struct hd_transfer_owner *owner)
{
	memset(t, 0, offsetof(struct hd_transfer, put));
	t->owner = owner;
	t->ep = ep;
	return hd_pending_number(ep->node, &t->pending, &hd_transfer_pending);
}

void hd_transfer_fini(struct hd_transfer *t)
{
	hd_transfer_release(t);
	hd_pending_forget(t->ep->node, &t->pending);
}

void hd_transfer_begin(struct hd_transfer *t, struct hd_peer *peer, enum hd_transfer_state state)
{
	t->state = state;
	hd_transfer_join(t, peer);
	hd_transfer_check(t);
}

void hd_transfer_hold(struct hd_transfer *t, struct hd_mr **regions)
{
	t->regions = regions;
	t->region_count = t->count;
	for (int i = 0; i < t->count; i++)
		if (regions[i])
			regions[i]->ops++;
}

void hd_transfer_release_now(struct hd_transfer *t)
{
	for (int i = 0; i < t->region_count; i++)
		if (t->regions[i])
			t->regions[i]->ops--;
	t->region_count = 0;
}

bool hd_transfer_uses(const struct hd_transfer *t, const struct hd_mr *mr)
{
	for (int i = 0; i < t->region_count; i++)
		if (t->regions[i] == mr)
			return true;
	return false;
}

/* ---- the end --------------------------------------------------------------------------------- */

/* Undo what it has at its peer and its link. */
static void transfer_leave(struct hd_transfer *t)
{
	struct hd_link *link = t->pending.peer->link;

	if (t->offered)
		link->ops->unoffer(link, &t->offer);
	t->offered = false;
	if (t->state == HD_TRANSFER_FRAMES)
		hd_frames_leave(t);
	t->state = HD_TRANSFER_IDLE;
	hd_transfer_leave(t);
}

/*
 * No more of it moves. Its memory is its owner's again, so the link keeps a copy of the frame that
 * it is in the middle of. False: it is not yet, as hd_intake_stop says.
 */
static bool transfer_stop(struct hd_transfer *t, bool wait)
{
	struct hd_peer *peer = t->pending.peer;

	if (hd_transfer_comes_in(t))
		return hd_intake_stop(t, wait);
	if (t->puts && peer->link->ops->unput(peer->link, &t->put) < 0)
		hd_link_down(peer->link, -ENOMEM, "no memory for the rest of a message that was given up");
	t->puts = 0;
	return true;
}

/*
 * The peer waits for frames, or for the answer to what it has announced, or sends what
 * a READ of ours asks for.
 */
static void tell_given_up(struct hd_transfer *t, enum hd_status why)
{
	bool ours = t->reads || (!hd_transfer_comes_in(t) && !t->unanswered);
	const struct hd_pkt fin = { .kind = HD_PKT_FIN,
				    .flags = t->reads ? HD_FIN_F_BACK : 0,
				    .op = t->reads ? t->pending.id : t->remote,
				    .imm = why	  ? why
					   : ours ? HD_S_CANCELLED
						  : HD_S_REFUSED };

	if (t->state == HD_TRANSFER_FRAMES || hd_transfer_comes_in(t))
		hd_peer_send(t->pending.peer, &fin, NULL, 0);
}

static void transfer_finish(struct hd_transfer *t, enum hd_status status)
{
	if (t->state != HD_TRANSFER_IDLE) {
		if (hd_transfer_comes_in(t)) {
			t->state = HD_TRANSFER_HERE;
			t->status = status;
			if (t->owner->turn && !t->owner->turn(t, &status))
				return;
		}
		transfer_leave(t);
	}
	t->owner->done(t, status);
}

void hd_transfer_end(struct hd_transfer *t, enum hd_status status)
{
	if (t->state != HD_TRANSFER_IDLE && status && !transfer_stop(t, false))
		t->status = status;
	else
		transfer_finish(t, status);
}

void hd_transfer_quit(struct hd_transfer *t, enum hd_status status)
{
	if (t->state != HD_TRANSFER_IDLE)
		transfer_stop(t, true);
	transfer_finish(t, status);
}

void hd_transfer_cancel(struct hd_transfer *t, enum hd_status status)
{
	if (t->state == HD_TRANSFER_CLOSING) /* the peer has been told */
		return;
	if (t->state != HD_TRANSFER_IDLE) {
		transfer_stop(t, false);
		tell_given_up(t, HD_S_OK);
	}
	hd_transfer_end(t, status);
}

void hd_transfer_fail(struct hd_transfer *t, enum hd_status status)
{
	if (t->state == HD_TRANSFER_CLOSING)
		return;
	if (t->state != HD_TRANSFER_IDLE) {
		transfer_stop(t, false);
		if (status == HD_S_PROTECTION)
			tell_given_up(t, t->owner->refusal);
		else if (t->reads) /* the target's region is what cannot be read */
			status = HD_S_ACCESS;
	}
	hd_transfer_end(t, status);
}

void hd_transfer_drop(struct hd_transfer *t)
{
	bool told = t->state == HD_TRANSFER_CLOSING;

	if (t->state != HD_TRANSFER_IDLE) {
		transfer_stop(t, true);
		if (!told)
			tell_given_up(t, HD_S_OK);
		transfer_leave(t);
	}
	t->owner->dropped(t);
}

void hd_transfer_forget(struct hd_transfer *t)
{
	if (t->state == HD_TRANSFER_IDLE)
		return;
	transfer_stop(t, true);
	transfer_leave(t);
}

/* One that has been given up before ends when it can, and with it perhaps others. */
bool hd_transfers_stop(struct hd_ep *ep)
{
	struct hd_transfer *t, *next;
	bool any = false;

	HD_EP_TRANSFERS_FOREACH(t, next, ep) {
		if (!hd_transfer_comes_in(t))
			continue;
		if (!hd_intake_pause(t)) {
			any = true;
		} else if (t->state == HD_TRANSFER_CLOSING) {
			hd_transfer_end(t, t->status);
			return true;
		}
	}
	return any;
}

static void transfer_lost(struct hd_pending *pending, enum hd_status status)
{
	struct hd_transfer *t = hd_transfer_of(pending);

	t->puts = 0; /* the link reads nothing any more, and its gets are settled */
	if (status)
		hd_transfer_quit(t, status);
	else
		hd_transfer_end(t, status);
}

const struct hd_pending_ops hd_transfer_pending = { .lost = transfer_lost };

/* ---- answers --------------------------------------------------------------------------------- */

static void answered(struct hd_transfer *t)
{
	if (t->owner->answered)
		t->owner->answered(t);
}

/* What we take in has failed at the other end. Only a READ of nothing is answered without data. */
static int intake_answered(struct hd_transfer *t, uint8_t kind, enum hd_status status)
{
	if (kind != HD_PKT_FIN || (!status && (!t->reads || t->want)))
		return -EPROTO;
	if (t->state == HD_TRANSFER_CLOSING)
		return 0;
	answered(t);
	hd_transfer_end(t, status);
	return 0;
}

static int sent_answered(struct hd_transfer *t, uint8_t kind, enum hd_status status)
{
	if (t->unanswered || kind == HD_PKT_ACK)
		return -EPROTO;
	answered(t);
	if (!t->puts) {
		hd_transfer_end(t, status);
		return 0;
	}
	if (t->state == HD_TRANSFER_FRAMES)
		hd_frames_leave(t);
	t->state = HD_TRANSFER_ENDING;
	t->status = status;
	return 0;
}

int hd_transfer_answered(struct hd_link *link, const struct hd_pkt *pkt)
{
	struct hd_transfer *t = hd_transfer_by_id(link->node, pkt->op);
	enum hd_status status = hd_status_heard(pkt->imm);

	if (!t)
		return 0; /* given up meanwhile */
	if (t->pending.peer != link->peer)
		return -EPROTO;
	if (t->state == HD_TRANSFER_IDLE)
		return t->owner->idle_answered ? t->owner->idle_answered(t, pkt->kind, status) : -EPROTO;
	hd_transfer_check(t);
	return hd_transfer_comes_in(t) ? intake_answered(t, pkt->kind, status)
				       : sent_answered(t, pkt->kind, status);
}
