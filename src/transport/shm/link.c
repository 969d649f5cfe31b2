/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* A link that works: packets that come in, credit, and its two tables of operations. */
#include "transport/shm/copy.h"

#include "base/clock.h"
#include "base/minus.h"
#include "base/proc.h"

/* looks for the next piece of a packet that is being written at this moment */
#define PIECE_SPINS 200

/* ---- credit ---- */

static void shm_link_grant(struct hd_link *link, uint32_t limit)
{
	struct hd_shm_link *l = hd_shm_link_of(link);

	if (link->down)
		return;
	atomic_store_explicit(&l->own->grant, limit, memory_order_release);
	hd_shm_wake_check(l, l->fenced); /* it may sleep for want of credit */
}

static uint32_t shm_link_granted(struct hd_link *link)
{
	struct hd_shm_link *l = hd_shm_link_of(link);

	if (!l->other)
		return 0;
	/* the grant lies in the same line, and is looked at before it more often than not */
	hd_shm_tx_time(&l->tx);
	l->grant_seen = atomic_load_explicit(&l->other->grant, memory_order_acquire);
	return l->grant_seen;
}

static void link_accept(struct hd_link *link, uint32_t row, uint64_t word)
{
	struct hd_shm_link *l = hd_shm_link_of(link);
	uint32_t seq;

	atomic_store_explicit(&l->accept[row], word, memory_order_release);
	seq = hd_shm_asleep(l, l->fenced);
	if (hd_unlikely(seq) && atomic_load_explicit(&l->peer.page->sleep_heeds, memory_order_relaxed))
		hd_shm_wake(l, seq);
}

static uint64_t link_accepted(struct hd_link *link, uint32_t row)
{
	struct hd_shm_link *l = hd_shm_link_of(link);

	/* acquire: what is done because it has been accepted is done after that */
	return atomic_load_explicit(&l->accepted[row], memory_order_acquire);
}

/* ---- in ---- */

static int garbage(struct hd_shm_link *l, const char *why)
{
	hd_shm_link_fail(l, -EPROTO, why);
	return -EPROTO;
}

/*
 * Publish how far we have read, when it is worth it; a producer that has run out of room may sleep.
 */
static void link_tell(struct hd_shm_link *l)
{
	if (!hd_shm_rx_tell(&l->rx))
		return;
	if (l->fenced)
		atomic_thread_fence(memory_order_seq_cst);
	else
		atomic_signal_fence(memory_order_seq_cst);
	if (hd_unlikely(atomic_load_explicit(&l->other->starved, memory_order_relaxed)))
		hd_shm_wake_check(l, false);
}

static __attribute__((noinline)) int take_own(struct hd_shm_link *l, const struct hd_pkt *pkt,
					      const void *payload, size_t len)
{
	if (pkt->kind == HD_SHM_PKT_FENCE && !len) {
		hd_shm_fence_met(l, pkt);
		return 0;
	}
	if (pkt->kind != HD_SHM_PKT_HELP || hd_shm_help_asked(l, pkt, payload, len) < 0)
		return garbage(l, "an impossible request of shared memory's own");
	return 0;
}

static inline int take_whole(struct hd_shm_link *l, const struct hd_pkt *pkt, const void *payload, size_t len)
{
	if (hd_unlikely(pkt->kind >= HD_PKT_TRANSPORT))
		return take_own(l, pkt, payload, len);
	return hd_deliver(&l->base, pkt, payload, len);
}

static __attribute__((noinline)) int take_piece(struct hd_shm_link *l, const struct hd_pkt *pkt, uint32_t len)
{
	uint32_t n;
	bool first;
	const uint8_t *data = hd_shm_rx_piece(&l->rx, len, l->base.send_max, &first, &n);
	int err = 0;

	if (!data || (first && l->rx.left && pkt->kind >= HD_PKT_TRANSPORT))
		return garbage(l, "a packet of impossible length");
	if (first && !l->rx.left) {
		err = take_whole(l, pkt, data, n);
	} else {
		if (first)
			err = hd_deliver_begin(&l->base, pkt, l->rx.total);
		if (!err && hd_unlikely(len & HD_SHM_VOID))
			hd_sink_void(&l->base.sink);
		if (!err)
			hd_sink_copy(&l->base.sink, data, n);
		if (!err && !l->rx.left)
			err = hd_deliver_end(&l->base);
	}
	if (!l->base.down)
		link_tell(l);
	return err;
}

/*
 * Take one slot. What is in it is copied before it is looked at: the signal fence keeps the
 * compiler from reading the shared copy a second time after the check.
 */
static inline int link_take(struct hd_shm_link *l, const struct hd_shm_slot *slot)
{
	struct hd_pkt pkt = slot->pkt;
	uint32_t len = slot->len;

	atomic_signal_fence(memory_order_seq_cst);
	if (hd_unlikely(len > HD_SHM_INLINE || l->rx.left))
		return take_piece(l, &pkt, len);
	l->rx.tail++;
	return take_whole(l, &pkt, slot->data, len);
}

/* The sender is in the middle of a packet, or has been interrupted there. */
static __attribute__((noinline)) struct hd_shm_slot *await_piece(struct hd_shm_link *l)
{
	for (int i = 0; i < PIECE_SPINS; i++) {
		struct hd_shm_slot *slot = hd_shm_rx_slot(&l->rx);

		if (slot)
			return slot;
		hd_cpu_relax();
	}
	return NULL;
}

/* Copy a portion. Clears link->attention when nothing is left to do. */
static int copy_poll(struct hd_shm_link *l)
{
	int n = hd_shm_help_poll(l);

	n += hd_shm_gets_poll(l);
	if (l->state == HD_SHM_LIVE)
		l->attention = !TAILQ_EMPTY(&l->copying.gets) || !TAILQ_EMPTY(&l->copying.helps) ||
			       !TAILQ_EMPTY(&l->copying.row);
	return n;
}

/* What is to be done besides looking at the ring. */
static __attribute__((noinline, cold)) int attend(struct hd_shm_link *l, int delivered)
{
	if (l->state == HD_SHM_ENDING) {
		/* else a row was to come first, which does not come any more */
		bool looked = l->portion > 0;

		l->portion = HD_SHM_PORTION;
		l->ending.drain = (uint32_t)hd_minus(l->ending.drain, (uint32_t)delivered);
		if ((!delivered && looked) || !l->ending.drain)
			hd_shm_link_fail(l, l->ending.err, l->ending.why);
		return 1;
	}
	return copy_poll(l);
}

/* The headers of what is there. Each is read once, and is not what is delivered. */
static __attribute__((noinline, cold)) void look_ahead(struct hd_shm_link *l)
{
	struct hd_pkt pkt[HD_AHEAD_MAX];
	uint32_t n;

	for (n = 0; n < HD_AHEAD_MAX && n < l->portion; n++) {
		const struct hd_shm_slot *slot = hd_shm_rx_ahead(&l->rx, n);

		if (!slot)
			break;
		pkt[n] = slot->pkt;
	}
	atomic_signal_fence(memory_order_seq_cst);
	hd_deliver_ahead(&l->base, pkt, (int)n);
}

int hd_shm_link_poll(struct hd_shm_link *l)
{
	struct hd_shm_slot *slot;
	int n = 0;

	if (hd_unlikely(l->base.down))
		return 0;
	if (hd_unlikely(l->base.is_deep))
		look_ahead(l);
	while ((uint32_t)n < l->portion) {
		slot = hd_shm_rx_slot(&l->rx);
		if (!slot && hd_unlikely(l->rx.left))
			slot = await_piece(l);
		if (!slot)
			break;
		if (n++)
			hd_shm_rx_near(&l->rx);
		if (hd_unlikely(link_take(l, slot) < 0 || l->base.down))
			return n;
	}
	if (n) {
		hd_shm_tx_answered(&l->tx);
		link_tell(l);
	}
	if (hd_unlikely(l->attention))
		n += attend(l, n);
	return n;
}

/* Is there a chunk to copy, or the end of a message to be seen? */
static bool copy_arm(struct hd_shm_link *l)
{
	return !TAILQ_EMPTY(&l->copying.helps) || hd_shm_gets_arm(l);
}

bool hd_shm_link_arm(struct hd_shm_link *l)
{
	uint32_t grant;

	if (l->base.down)
		return false;
	if (hd_shm_rx_slot(&l->rx) || l->state == HD_SHM_ENDING) {
		hd_shm_heat(l);
		return true;
	}
	grant = atomic_load_explicit(&l->other->grant, memory_order_acquire);
	if (grant != l->grant_seen) {
		l->grant_seen = grant;
		return true;
	}
	return (l->attention && copy_arm(l)) || hd_shm_room_made(l) || hd_shm_direct_arm(l);
}

/* ---- life ---- */

static void shm_link_close(struct hd_link *link)
{
	struct hd_shm_link *l = hd_shm_link_of(link);

	hd_shm_copy_end(l);
	hd_shm_direct_shut(l);
	hd_shm_link_missed(l);
}

/*
 * By the credentials of the UNIX socket (greet.c), and a word of its memory where that can be read.
 */
static int link_holder(struct hd_link *link, struct hd_holder *out)
{
	*out = (struct hd_holder){ .pid = hd_shm_link_of(link)->peer.pid };
	return out->pid > 0 ? 0 : -EOPNOTSUPP;
}

/* Two tables: who may leave the order between message and count to the sleeper, and who may not. */
#define LINK_OPS(send_fn, sendv_fn) \
	{ \
		.send = send_fn, .sendv = sendv_fn, .put = hd_shm_put, .unput = hd_shm_unput, \
		.warm = hd_shm_warm, .accept = link_accept, .accepted = link_accepted, \
		.grant = shm_link_grant, .granted = shm_link_granted, .offer = hd_shm_offer, \
		.unoffer = hd_shm_unoffer, .get = hd_shm_get, .unget = hd_shm_unget, \
		.settled = hd_shm_settled, .direct = hd_shm_direct, .fence = hd_shm_fence, \
		.passed = hd_shm_passed, .polls = hd_shm_polls, .holder = link_holder, \
		.close = shm_link_close, \
	}

const struct hd_link_ops hd_shm_link_ops[2] = {
	LINK_OPS(hd_shm_send, hd_shm_sendv),
	LINK_OPS(hd_shm_send_fenced, hd_shm_sendv_fenced),
};
