/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * What comes in: the link fetches it by itself where it can (get), else the sender is
 * asked for frames (CTS, DATA).
 */
#include "base/log.h"
#include "engine/link/link.h"
#include "engine/xfer/stream.h"
#include "engine/xfer/transfer.h"

#include <errno.h>
#include <string.h>

/* What might have been fetched comes in frames. */
static void say_frames(const struct hd_transfer *t, int err)
{
	hd_event("%s: no direct copy of %llu bytes from peer " HD_PEER_ID ", but frames: %s",
		 hd_ep_text(t->ep).text, (unsigned long long)t->want, HD_PEER_ID_OF(t->pending.peer),
		 strerror(-err));
}

static void ask_for_frames(struct hd_transfer *t)
{
	const struct hd_pkt pkt = { .kind = HD_PKT_CTS,
				    .flags = t->part ? HD_CTS_F_PART : 0,
				    .op = t->remote,
				    .imm = t->pending.id,
				    .tag = t->want };

	t->state = HD_TRANSFER_INTAKE;
	t->at = 0;
	hd_peer_send(t->pending.peer, &pkt, NULL, 0);
}

static void intake_got(struct hd_get *get, int err)
{
	struct hd_transfer *t = hd_container(get, struct hd_transfer, get);

	if (t->state == HD_TRANSFER_STOPPED) {
		t->get.done = NULL;
		return;
	}
	if (t->state == HD_TRANSFER_CLOSING) {
		t->state = HD_TRANSFER_HERE;
		hd_transfer_end(t, t->status);
		return;
	}
	if (err) {
		say_frames(t, err);
		ask_for_frames(t);
		return;
	}
	hd_transfer_end(t, 0);
}

void hd_intake_begin(struct hd_transfer *t, struct hd_peer *peer, const void *offer, size_t offer_len)
{
	struct hd_link *link = peer->link;
	int rc;

	hd_transfer_begin(t, peer, HD_TRANSFER_INTAKE);
	if (!t->want) {
		hd_transfer_end(t, 0);
		return;
	}
	if (offer_len && hd_intake_sinks(t)) {
		t->get = (struct hd_get){ .iov = t->iov,
					  .count = t->count,
					  .len = t->want,
					  .offer = offer,
					  .offer_len = offer_len,
					  .done = intake_got };
		t->state = HD_TRANSFER_GET;
		rc = link->ops->get(link, &t->get);
		if (!rc)
			return;
		say_frames(t, rc);
	}
	ask_for_frames(t);
}

int hd_intake_find(struct hd_link *link, const struct hd_pkt *pkt, size_t len, struct hd_transfer **out)
{
	struct hd_transfer *t;

	*out = NULL;
	if (!link->peer || link->peer->link != link)
		return -EPROTO;
	t = hd_transfer_by_id(link->node, pkt->op);
	if (!t || (t->pending.peer == link->peer && t->state == HD_TRANSFER_HERE))
		return 0; /* or it has failed, and waits for those before it to say so */
	if (t->pending.peer != link->peer || t->state != HD_TRANSFER_INTAKE || pkt->tag != t->at ||
	    len > t->want - t->at || !len)
		return -EPROTO;
	*out = t;
	return 0;
}

void hd_intake_arrived(struct hd_transfer *t, size_t len)
{
	t->at += len;
	hd_transfer_check(t);
	if (t->at == t->want)
		hd_transfer_end(t, 0);
}

static bool intake_is_get(const struct hd_transfer *t)
{
	return t->state == HD_TRANSFER_GET || t->state == HD_TRANSFER_CLOSING ||
	       t->state == HD_TRANSFER_STOPPED;
}

/* The link forgets it. False: it must not yet. */
static bool get_ends(struct hd_transfer *t, bool wait)
{
	struct hd_link *link = t->pending.peer->link;

	if (t->get.done && link->ops->unget(link, &t->get, wait) < 0)
		return false;
	t->get.done = NULL;
	return true;
}

bool hd_intake_pause(struct hd_transfer *t)
{
	if (!intake_is_get(t))
		return true;
	if (t->state == HD_TRANSFER_GET)
		t->state = HD_TRANSFER_STOPPED;
	return get_ends(t, false);
}

bool hd_intake_stop(struct hd_transfer *t, bool wait)
{
	bool gets = intake_is_get(t);

	if (gets && !get_ends(t, wait)) {
		t->state = HD_TRANSFER_CLOSING;
		return false;
	}
	if (!gets)
		hd_stream_forget(t->pending.peer->link, t);
	t->state = HD_TRANSFER_HERE;
	return true;
}
