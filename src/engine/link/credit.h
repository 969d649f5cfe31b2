/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Credit: what each end may leave waiting at the other, in units of HD_UNIT bytes (hd_units). Its
 * numbers are cumulative and may wrap.
 *
 *	ours at the peer        spent ──────────► limit
 *		we post while spent + units is within limit, the newest grant that we have seen
 *	the peer's here   freed ──────► rx_spent ──► rx_granted
 *		rx_granted is at most freed + window; `held` of what is between freed and rx_spent
 *		is messages that wait
 *
 * Windows, and what messages hold whose peer is gone or never was, are taken out of one store of
 * the node's, HEDDLE_UNEXPECTED_MAX, and counted for whose they are: budget.h.
 * Nobody but credit.h and credit.c touches these numbers. All is called with the node's
 * lock, and blocks nowhere.
 */
#ifndef HD_ENGINE_CREDIT_H
#define HD_ENGINE_CREDIT_H

#include "base/minus.h"
#include "engine/link/peer.h"

/* ---- ours at the peer ------------------------------------------------------------------------ */

/* hd_credit_look: is there enough by the newest grant, which costs a look at the link? */
bool hd_credit_look(struct hd_peer *peer, uint32_t units);

/*
 * hd_credit_left: what may be spent by the newest grant that we have seen. hd_credit_spent: what
 * has been in all; it wraps.
 */
static inline uint32_t hd_credit_left(const struct hd_peer *peer)
{
	return peer->credit.limit - peer->credit.spent;
}
static inline uint32_t hd_credit_spent(const struct hd_peer *peer)
{
	return peer->credit.spent;
}

/*
 * hd_credit_enough: may so much be spent now? hd_credit_spend: it is, there was enough.
 * hd_credit_take: both; false: nothing has happened.
 * hd_credit_give_back: what was taken has not been sent.
 * hd_credit_ran_out: there is not enough: is that news? Not until the peer has granted more.
 */
static inline bool hd_credit_enough(struct hd_peer *peer, uint32_t units)
{
	return hd_likely(hd_credit_left(peer) >= units) || hd_credit_look(peer, units);
}
static inline void hd_credit_spend(struct hd_peer *peer, uint32_t units)
{
	peer->credit.spent += units;
}
static inline bool hd_credit_take(struct hd_peer *peer, uint32_t units)
{
	if (!hd_credit_enough(peer, units))
		return false;
	hd_credit_spend(peer, units);
	return true;
}
static inline void hd_credit_give_back(struct hd_peer *peer, uint32_t units)
{
	peer->credit.spent -= units;
}
static inline bool hd_credit_ran_out(struct hd_peer *peer)
{
	bool news = !peer->ran_out;

	peer->ran_out = true;
	return news;
}

/*
 * hd_peer_post: spend `units` on a packet to a live peer, and send it. 0; -EAGAIN: no credit, or
 * the link is full; another negative: the link has just broken, or there is no memory. With an
 * error nothing has happened, and nothing is spent. hd_peer_postv: the same of `len` bytes in
 * segments.
 */
static inline int hd_peer_post(struct hd_peer *peer, const struct hd_pkt *pkt, const void *data, size_t len,
			       uint32_t units)
{
	int rc;

	if (!hd_credit_take(peer, units))
		return -EAGAIN;
	rc = hd_link_send(peer->link, pkt, data, len);
	if (hd_unlikely(rc < 0))
		hd_credit_give_back(peer, units);
	return rc;
}
static inline int hd_peer_postv(struct hd_peer *peer, const struct hd_pkt *pkt, const struct iovec *iov,
				int count, size_t len, uint32_t units)
{
	int rc;

	if (hd_likely(count == 1))
		return hd_peer_post(peer, pkt, iov->iov_base, len, units);
	if (!hd_credit_take(peer, units))
		return -EAGAIN;
	rc = hd_link_sendv(peer->link, pkt, iov, count, len);
	if (hd_unlikely(rc < 0))
		hd_credit_give_back(peer, units);
	return rc;
}

/* ---- the peer's here ------------------------------------------------------------------------- */

/*
 * hd_credit_regrant: publish how far the peer may spend now. hd_credit_grow: much of its window is
 * held; see hd_credit_hold.
 */
void hd_credit_regrant(struct hd_peer *peer);
void hd_credit_grow(struct hd_peer *peer);

/* hd_peer_can: may the peer spend `units` on messages to us? */
static inline bool hd_peer_can(const struct hd_peer *peer, uint32_t units)
{
	return peer->credit.rx_granted - peer->credit.rx_spent >= units;
}

/*
 * hd_peer_charge: the peer spends `units` on a message to us. False: more than it was granted.
 * rx_granted is what we have published, so the sum of all windows is what the memory for
 * waiting messages can grow to.
 */
static inline bool hd_peer_charge(struct hd_peer *peer, uint32_t units)
{
	if (hd_unlikely(!hd_peer_can(peer, units)))
		return false;
	peer->credit.rx_spent += units;
	return true;
}

/* hd_credit_uncharge: nothing has come of it, and the peer knows: it has not spent anything. */
static inline void hd_credit_uncharge(struct hd_peer *peer, uint32_t units)
{
	peer->credit.rx_spent -= units;
}

/*
 * hd_peer_free_units: what it had spent on a message is free again; it is told
 * when it is worth a word.
 */
static inline void hd_peer_free_units(struct hd_peer *peer, uint32_t units)
{
	struct hd_credit *c = &peer->credit;

	c->freed += units;
	if (hd_unlikely((uint32_t)(c->freed + c->window - c->rx_granted) >= c->step))
		hd_credit_regrant(peer);
}

/*
 * hd_credit_hold: a message that has been charged waits. With more than half of the window held the
 * window is doubled while the limits allow it; beyond that every unit is published as soon as it is
 * free, since the sender may be waiting for just that. hd_credit_unhold: it does not wait any more;
 * what it has spent is still to be freed. hd_credit_holds: does any?
 */
static inline void hd_credit_hold(struct hd_peer *peer, uint32_t units)
{
	peer->credit.held += units;
	if (hd_unlikely(peer->credit.held > peer->credit.window / 2))
		hd_credit_grow(peer);
}
static inline void hd_credit_unhold(struct hd_peer *peer, uint32_t units)
{
	peer->credit.held -= units;
}
static inline bool hd_credit_holds(const struct hd_peer *peer)
{
	return peer->credit.held;
}

/*
 * hd_credit_leave: the peer is about to go, and this stays here, though it is no message:
 * hd_credit_close leaves it taken.
 */
static inline void hd_credit_leave(struct hd_peer *peer, uint32_t units)
{
	struct hd_credit *c = &peer->credit;

	c->held += units;
}

/*
 * hd_credit_held: how much of its credit messages hold that wait. hd_credit_taken_in: what it has
 * spent here and not got back.
 */
static inline uint32_t hd_credit_held(const struct hd_peer *peer)
{
	return peer->credit.held;
}
static inline uint32_t hd_credit_taken_in(const struct hd_peer *peer)
{
	return peer->credit.rx_spent - peer->credit.freed;
}

/* hd_credit_window: how many units may wait here for the peer: its part of the node's store. */
static inline uint32_t hd_credit_window(const struct hd_peer *peer)
{
	return peer->credit.window;
}

/* ---- the life of both ------------------------------------------------------------------------ */

/*
 * hd_credit_first_window: what every new peer may have waiting here, in units; promised in HELLO.
 */
uint32_t hd_credit_first_window(const struct hd_node *node);

/*
 * hd_credit_open: the first window for a new peer, out of its budget and the node's store; called:
 * by us. False: there is no room for it. hd_credit_begin: the peer has promised so much in its
 * HELLO. hd_credit_promised: what it may spend in all, by ours. hd_credit_close: the peer goes;
 * what it leaves here waiting stays taken until it is freed: hd_share_release.
 */
bool hd_credit_open(struct hd_peer *peer, bool called);
void hd_credit_begin(struct hd_peer *peer, uint32_t limit);
uint32_t hd_credit_promised(const struct hd_peer *peer);
void hd_credit_close(struct hd_peer *peer);

/*
 * hd_credit_check: asserts in builds with assertions that the numbers agree.
 * hd_peer_check has the rest.
 */
#ifdef NDEBUG
static inline void hd_credit_check(const struct hd_peer *peer)
{
}
#else
void hd_credit_check(const struct hd_peer *peer);
#endif

/* ---- the node's store ------------------------------------------------------------------------ */

/* hd_credit_init: of a new node, by the settings. */
void hd_credit_init(struct hd_node *node);

/*
 * hd_credit_room: units left in the store, from which more may have been taken than there is:
 * beginnings of messages that are handed over (rdm/buffered.c). hd_credit_reserve: take some out,
 * whether there is room or not; hd_credit_release: they are back.
 */
static inline uint32_t hd_credit_room(const struct hd_node *node)
{
	return (uint32_t)hd_minus(hd_links(node)->window_max, hd_links(node)->window_units);
}
static inline void hd_credit_reserve(struct hd_node *node, uint32_t units)
{
	hd_links(node)->window_units += units;
}
static inline void hd_credit_release(struct hd_node *node, uint32_t units)
{
	assert(units <= hd_links(node)->window_units);
	hd_links(node)->window_units = (uint32_t)hd_minus(hd_links(node)->window_units, units);
}

#endif
