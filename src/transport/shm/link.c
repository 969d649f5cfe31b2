/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* A link that works: packets out and in, credit, and its end. */
#include "transport/shm/shm.h"

#include "base/clock.h"
#include "base/config.h"
#include "base/log.h"
#include "base/minus.h"
#include "base/proc.h"

#include <sys/epoll.h>

#define PIECE_SPINS 200 /* looks for the next piece of a packet that is being written at this moment */

/* ---- out ---- */

/* The ring is full: the consumer shall wake us when it has made room, if we go to sleep over it. */
static int starve(struct hd_shm_link *l)
{
	if (!l->starved)
		atomic_store_explicit(&l->own->starved, 1, memory_order_relaxed);
	l->starved = true;
	return -EAGAIN;
}

static void unstarve(struct hd_shm_link *l)
{
	atomic_store_explicit(&l->own->starved, 0, memory_order_relaxed);
	l->starved = false;
}

static int impossible(struct hd_shm_link *l)
{
	hd_shm_link_fail(l, -EPROTO, "the other side says that it has read what was never written");
	return -ENOTCONN;
}

/* Is there a slot? Looks at the other side only when it seems that there is none. */
static __attribute__((noinline, cold)) int slot_wait(struct hd_shm_link *l)
{
	if (!hd_shm_tx_look(&l->tx))
		return impossible(l);
	if (l->tx.head == l->tx.limit)
		return starve(l);
	if (l->starved)
		unstarve(l);
	return 0;
}

static int send_pieces(struct hd_shm_link *l, const struct hd_pkt *pkt, const struct iovec *iov, size_t len,
		       bool fenced)
{
	struct hd_shm_from from = { .iov = iov };
	int err;

	if (hd_unlikely(len > l->base.send_max))
		return -EMSGSIZE;
	err = hd_shm_tx_room(&l->tx, (uint32_t)len);
	if (hd_unlikely(err))
		return err == -EAGAIN ? starve(l) : impossible(l);
	if (hd_unlikely(l->starved))
		unstarve(l);
	err = hd_shm_tx_pieces(&l->tx, pkt, &from, (uint32_t)len);
	hd_shm_wake_check(l, fenced);
	hd_shm_tx_warm(&l->tx, (uint32_t)len);
	return err;
}

/* What every send begins with: 0 when a small packet can go out at once. */
static inline int send_begin(struct hd_shm_link *l)
{
	if (hd_unlikely(l->base.down))
		return -ENOTCONN;
	if (hd_unlikely(!l->hot))
		hd_shm_heat(l); /* an answer is likely */
	if (hd_unlikely(l->tx.head == l->tx.limit))
		return slot_wait(l);
	return 0;
}

static inline __attribute__((always_inline)) int send_inline(struct hd_shm_link *l, const struct hd_pkt *pkt,
							     const void *buf, size_t len, bool fenced)
{
	struct hd_shm_slot *slot = hd_shm_tx_slot(&l->tx);

	slot->len = (uint32_t)len;
	slot->pkt = *pkt;
	if (hd_unlikely(!hd_copy_small_out(slot->data, buf, len)))
		return -EFAULT;
	hd_shm_tx_publish(&l->tx, slot);
	hd_shm_tx_ahead(&l->tx);
	hd_shm_wake_check(l, fenced);
	return 0;
}

static inline int send_any(struct hd_link *base, const struct hd_pkt *pkt, const void *buf, size_t len,
			   bool fenced)
{
	struct hd_shm_link *l = hd_shm_link_of(base);
	int err = send_begin(l);

	if (hd_unlikely(err))
		return err;
	if (hd_likely(len <= HD_SHM_INLINE))
		return send_inline(l, pkt, buf, len, fenced);
	return send_pieces(l, pkt, &(struct iovec){ (void *)buf, len }, len, fenced);
}

static inline int sendv_any(struct hd_link *base, const struct hd_pkt *pkt, const struct iovec *iov,
			    size_t len, bool fenced)
{
	struct hd_shm_link *l = hd_shm_link_of(base);
	uint8_t small[HD_SHM_INLINE];
	int err = send_begin(l);

	if (hd_unlikely(err))
		return err;
	if (len > HD_SHM_INLINE)
		return send_pieces(l, pkt, iov, len, fenced);
	err = hd_shm_from_copy(&(struct hd_shm_from){ .iov = iov }, small, len, false);
	return hd_unlikely(err) ? err : send_inline(l, pkt, small, len, fenced);
}

static int link_send(struct hd_link *link, const struct hd_pkt *pkt, const void *buf, size_t len)
{
	return send_any(link, pkt, buf, len, false);
}

static int link_sendv(struct hd_link *link, const struct hd_pkt *pkt, const struct iovec *iov, int count,
		      size_t len)
{
	return sendv_any(link, pkt, iov, len, false);
}

static int fenced_send(struct hd_link *link, const struct hd_pkt *pkt, const void *buf, size_t len)
{
	return send_any(link, pkt, buf, len, true);
}

static int fenced_sendv(struct hd_link *link, const struct hd_pkt *pkt, const struct iovec *iov, int count,
			size_t len)
{
	return sendv_any(link, pkt, iov, len, true);
}

/* The payload is copied into the ring, so it is free again at once. */
static int link_put(struct hd_link *link, const struct hd_pkt *pkt, const struct iovec *iov, int count,
		    size_t len, struct hd_put *put)
{
	int err = sendv_any(link, pkt, iov, len, hd_shm_link_of(link)->fenced);

	return err ? err : 1;
}

static int link_unput(struct hd_link *link, struct hd_put *put)
{
	return 0;
}

int hd_shm_link_send(struct hd_shm_link *l, const struct hd_pkt *pkt, const void *buf, size_t len)
{
	return send_any(&l->base, pkt, buf, len, l->fenced);
}

/* The consumer has another packet to look at first, so the slot behind that stays here until it is written. */
static void link_warm(struct hd_link *link)
{
	struct hd_shm_link *l = hd_shm_link_of(link);

	if (!link->down)
		hd_shm_prefetch_write(hd_shm_tx_slot(&l->tx));
}

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
	hd_shm_tx_time(
		&l->tx); /* the grant lies in the same line, and is looked at before it more often than not */
	l->grant_seen = atomic_load_explicit(&l->other->grant, memory_order_acquire);
	return l->grant_seen;
}

static void link_accept(struct hd_link *link, uint32_t row, uint64_t word)
{
	struct hd_shm_link *l = hd_shm_link_of(link);
	uint32_t epoch;

	atomic_store_explicit(&l->accept[row], word, memory_order_release);
	epoch = hd_shm_asleep(l, l->fenced);
	if (hd_unlikely(epoch) && atomic_load_explicit(&l->page->sleep_heeds, memory_order_relaxed))
		hd_shm_wake(l, epoch);
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

/* Publish how far we have read, when it is worth it; a producer that has run out of room may sleep. */
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
 * Take one slot. What is in it is copied before it is looked at: the signal fence keeps the compiler from
 * reading the shared copy a second time after the check.
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

/* What is to be done besides looking at the ring. */
static __attribute__((noinline, cold)) int attend(struct hd_shm_link *l, int delivered)
{
	if (l->state == HD_SHM_ENDING) {
		bool looked = l->portion > 0; /* else a row was to come first, which does not come any more */

		l->portion = HD_SHM_PORTION;
		l->drain = (uint32_t)hd_minus(l->drain, (uint32_t)delivered);
		if ((!delivered && looked) || !l->drain)
			hd_shm_link_fail(l, l->end_err, l->end_why);
		return 1;
	}
	return hd_shm_copy_poll(l);
}

int hd_shm_link_poll(struct hd_shm_link *l)
{
	struct hd_shm_slot *slot;
	int n = 0;

	if (hd_unlikely(l->base.down))
		return 0;
	while ((uint32_t)n < l->portion) {
		slot = hd_shm_rx_slot(&l->rx);
		if (!slot && hd_unlikely(l->rx.left))
			slot = await_piece(l);
		if (!slot)
			break;
		n++;
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

/*
 * Has the other side read something since the ring was found full? Told once; who finds it full again asks
 * again.
 */
static bool room_made(struct hd_shm_link *l)
{
	uint64_t read = atomic_load_explicit(&l->other->read, memory_order_acquire);

	if (!l->starved || read == hd_shm_tx_seen(&l->tx))
		return false;
	unstarve(l);
	return true;
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
	return (l->attention && hd_shm_copy_arm(l)) || room_made(l) || hd_shm_direct_arm(l);
}

/* ---- life ---- */

static void shm_link_close(struct hd_link *link)
{
	struct hd_shm_link *l = hd_shm_link_of(link);

	hd_shm_copy_end(l);
	hd_shm_direct_shut(l);
	hd_shm_link_free(l);
}

/* By the credentials of the UNIX socket (greet.c), and a word of its memory where that can be read. */
static int link_holder(struct hd_link *link, struct hd_holder *out)
{
	*out = (struct hd_holder){ .pid = hd_shm_link_of(link)->peer_pid };
	return out->pid > 0 ? 0 : -EOPNOTSUPP;
}

/* Two tables: who may leave the order between message and epoch to the sleeper, and who may not. */
#define LINK_OPS(send_fn, sendv_fn) \
	{ \
		.send = send_fn, .sendv = sendv_fn, .put = link_put, .unput = link_unput, .warm = link_warm, \
		.accept = link_accept, .accepted = link_accepted, .grant = shm_link_grant, \
		.granted = shm_link_granted, .offer = hd_shm_offer, .unoffer = hd_shm_unoffer, \
		.pull = hd_shm_pull, .unpull = hd_shm_unpull, .settled = hd_shm_settled, \
		.reach = hd_shm_direct, .fence = hd_shm_fence, .passed = hd_shm_passed, \
		.polls = hd_shm_polls, .holder = link_holder, .close = shm_link_close, \
	}

const struct hd_link_ops hd_shm_link_ops = LINK_OPS(link_send, link_sendv);
static const struct hd_link_ops fenced_ops = LINK_OPS(fenced_send, fenced_sendv);

static const _Atomic uint32_t awake; /* nobody to be woken */

void hd_shm_link_ready(struct hd_shm_link *l)
{
	int in = !l->side;

	l->own = &l->mem->side[l->side];
	l->other = &l->mem->side[in];
	l->tx = (struct hd_shm_tx){
		.slot = l->mem->slot[l->side],
		.bulk = l->mem->bulk[l->side],
		.reader = l->other,
		.limit = HD_SHM_SLOTS,
	};
	l->rx = (struct hd_shm_rx){
		.slot = l->mem->slot[in],
		.bulk = l->mem->bulk[in],
		.own = l->own,
	};
	l->accept = l->mem->accept[l->side];
	l->accepted = l->mem->accept[in];
	l->peer_sleep = l->page ? &l->page->sleep_epoch : &awake;
}

void hd_shm_link_live(struct hd_shm_link *l)
{
	uint64_t eager = hd_config_size(HD_SET_EAGER_SHM);

	l->state = HD_SHM_LIVE;
	l->peer_sleep = &l->page->sleep_epoch;
	if (l->fenced)
		l->base.ops = &fenced_ops;
	l->base.is_local = true;
	l->base.page = l->page;
	l->base.send_max = HD_FRAME_MAX;
	l->base.eager_max = eager < HD_FRAME_MAX ? (uint32_t)eager : HD_FRAME_MAX;
	hd_shm_direct_look(l);
	hd_shm_poll_add(l);
	if (l->side == 0)
		hd_link_up(&l->base);
	else
		hd_link_accepted(&l->base, NULL);
	hd_shm_link_show(l);
}

void hd_shm_link_end(struct hd_shm_link *l, int err, const char *why)
{
	if (l->base.down || l->state == HD_SHM_ENDING)
		return;
	l->state = HD_SHM_ENDING;
	hd_shm_direct_look(l);
	l->end_err = err;
	l->end_why = why;
	l->drain = 2 * HD_SHM_SLOTS;
	l->attention = true;
	hd_shm_hang_up(l);
	hd_shm_heat(l);
}

void hd_shm_link_fail(struct hd_shm_link *l, int err, const char *why)
{
	hd_shm_copy_stop(l);
	hd_shm_hang_up(l);
	hd_link_down(&l->base, err, why);
}

static uint8_t row_direct(uint32_t direct, uint16_t *error)
{
	static const uint8_t shown[] = {
		[HD_SHM_DIRECT_UNKNOWN] = HD_DIRECT_NA,
		[HD_SHM_DIRECT_YES] = HD_DIRECT_YES,
		[HD_SHM_DIRECT_OFF] = HD_DIRECT_OFF,
		[HD_SHM_DIRECT_REFUSED] = HD_DIRECT_REFUSED,
	};
	uint32_t what = direct & 0xff;

	*error = (uint16_t)(direct >> 8);
	return what < sizeof(shown) ? shown[what] : HD_DIRECT_NA;
}

void hd_shm_link_show(struct hd_shm_link *l)
{
	struct hd_page_link *row = l->base.row;
	uint32_t ours, theirs;

	if (!row || !l->own)
		return;
	ours = atomic_load_explicit(&l->own->direct, memory_order_relaxed);
	theirs = atomic_load_explicit(&l->other->direct, memory_order_relaxed);
	if (ours == HD_SHM_DIRECT_OFF || theirs == HD_SHM_DIRECT_OFF)
		ours = theirs = HD_SHM_DIRECT_OFF; /* one side's wish is enough */
	row->peer_pid = l->peer_pid;
	row->direct_out = row_direct(ours, &row->direct_out_errno);
	row->direct_in = row_direct(theirs, &row->direct_in_errno);
}
