/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Packets that go out. */
#include "transport/shm/shm.h"

/* The ring is full: the consumer shall wake us when it has made room, if we go to sleep over it. */
static int starve(struct hd_shm_link *l)
{
	if (!l->starved) {
		atomic_store_explicit(&l->own->starved, 1, memory_order_relaxed);
		/* room may have been made since: who sleeps looks, behind a barrier */
		hd_node_stir(l->base.node);
	}
	l->starved = true;
	return -EAGAIN;
}

static void unstarve(struct hd_shm_link *l)
{
	atomic_store_explicit(&l->own->starved, 0, memory_order_relaxed);
	l->starved = false;
}

/*
 * Has the other side read something since the ring was found full? Told once; who finds
 * it full again asks again.
 */
bool hd_shm_room_made(struct hd_shm_link *l)
{
	uint64_t read = atomic_load_explicit(&l->other->read, memory_order_acquire);

	if (!l->starved || read == hd_shm_tx_seen(&l->tx))
		return false;
	unstarve(l);
	return true;
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
	hd_pkt_put(&slot->pkt, pkt);
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

int hd_shm_send(struct hd_link *link, const struct hd_pkt *pkt, const void *buf, size_t len)
{
	return send_any(link, pkt, buf, len, false);
}

int hd_shm_sendv(struct hd_link *link, const struct hd_pkt *pkt, const struct iovec *iov, int count,
		 size_t len)
{
	return sendv_any(link, pkt, iov, len, false);
}

int hd_shm_send_fenced(struct hd_link *link, const struct hd_pkt *pkt, const void *buf, size_t len)
{
	return send_any(link, pkt, buf, len, true);
}

int hd_shm_sendv_fenced(struct hd_link *link, const struct hd_pkt *pkt, const struct iovec *iov, int count,
			size_t len)
{
	return sendv_any(link, pkt, iov, len, true);
}

/* The payload is copied into the ring, so it is free again at once. */
int hd_shm_put(struct hd_link *link, const struct hd_pkt *pkt, const struct iovec *iov, int count, size_t len,
	       struct hd_put *put)
{
	int err = sendv_any(link, pkt, iov, len, hd_shm_link_of(link)->fenced);

	return err ? err : 1;
}

int hd_shm_unput(struct hd_link *link, struct hd_put *put)
{
	return 0;
}

int hd_shm_link_send(struct hd_shm_link *l, const struct hd_pkt *pkt, const void *buf, size_t len)
{
	return send_any(&l->base, pkt, buf, len, l->fenced);
}

/*
 * The consumer has another packet to look at first, so the slot behind that stays
 * here until it is written.
 */
void hd_shm_warm(struct hd_link *link)
{
	struct hd_shm_link *l = hd_shm_link_of(link);

	if (!link->down)
		hd_shm_prefetch_write(hd_shm_tx_slot(&l->tx));
}
