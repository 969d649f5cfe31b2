/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Credit that a peer is owed until completions have been read which its messages have caused; they
 * stay counted when it is gone.
 */
#include "engine/link/link.h"

static void has_been_read(struct hd_overflow *o)
{
	LIST_REMOVE(o, owing);
	hd_peer_free_units(o->peer, o->units);
}

/* And its peer is gone. */
static void left_has_been_read(struct hd_overflow *o)
{
	LIST_REMOVE(o, owing);
	hd_share_release(o->share, o->units);
}

bool hd_owed_post(struct hd_cq *cq, const struct hd_cqe *e, struct hd_peer *peer, uint32_t units)
{
	struct hd_overflow *o;

	if (cq->none)
		return false;
	if (hd_cq_slot(cq)) {
		hd_cq_post(cq, e);
		return false;
	}
	o = hd_cq_overflow(cq, e);
	if (!o)
		return false;
	hd_overflow_set_read(o, has_been_read);
	o->peer = peer;
	o->units = units;
	LIST_INSERT_HEAD(&peer->owing, o, owing);
	return true;
}

void hd_owed_forget(struct hd_peer *peer)
{
	struct hd_overflow *o;

	while ((o = LIST_FIRST(&peer->owing))) {
		LIST_REMOVE(o, owing);
		hd_overflow_set_read(o, NULL);
		if (hd_core(peer->node)->closing)
			continue; /* the queue may be there longer than the node */
		hd_credit_leave(peer, o->units);
		o->share = hd_share_leave(peer->share);
		LIST_INSERT_HEAD(&o->share->owed, o, owing);
		hd_overflow_set_read(o, left_has_been_read);
	}
}
