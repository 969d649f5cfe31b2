/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * One direction of a link: a ring with a single producer and a single consumer, in two processes.
 * See layout.h for what lies where.
 *
 *	producer                                   consumer
 *	--------                                   --------
 *	fill slot and bulk bytes (plain)           seq: load, acquire; ours when it is tail + 1
 *	seq = head + 1: store, release  ------->   read slot and bulk bytes (plain, once)
 *	                                           …
 *	room: load `read`, acquire      <-------   `read`: store, release; each eighth of the ring
 *
 * The release of seq orders everything in the slot and its bulk bytes before it, and the acquire
 * pairs with it. The release of `read` orders the consumer's reads before the producer's next
 * writes to the same place. Nothing else is ordered, and nothing is a read-modify-write: in the
 * steady state each packet costs one cache line, moved once.
 *
 * The producer keeps its own idea of how far the consumer has read and looks again only when that
 * says "full"; the consumer publishes it only when an eighth of the ring has been read since, so at
 * least seven eighths are always known to be free when the ring is empty. Both are checked against
 * what is possible, because the other side is not trusted: an index never leaves the ring whatever
 * is written there.
 */
#ifndef HD_SHM_RING_H
#define HD_SHM_RING_H

#include "base/clock.h"
#include "base/copy.h"
#include "transport/shm/layout.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/uio.h>

#define hd_likely(x) __builtin_expect(!!(x), 1)
#define hd_unlikely(x) __builtin_expect(!!(x), 0)

/* The producer's end, private to its process. */
struct hd_shm_tx {
	struct hd_shm_slot *slot;
	uint8_t *bulk;
	const struct hd_shm_side *reader; /* the other side */
	uint32_t head;			  /* slots written */
	uint32_t limit;			  /* slots that may be written, as far as we know */
	uint32_t bulk_head;		  /* bulk bytes written, gaps included */
	uint32_t bulk_read;		  /* bulk bytes read, as far as we know */
	/* slots beyond this one are a row of packets that nothing has come back for */
	uint32_t row;
	/* 0 to HD_SHM_FAR_MAX: how sure we are that the reader shares no cache with us */
	uint32_t far;
};

/* The consumer's end, private to its process. */
struct hd_shm_rx {
	struct hd_shm_slot *slot;
	const uint8_t *bulk;
	struct hd_shm_side *own;
	uint32_t tail;	    /* slots read */
	uint32_t bulk_tail; /* bulk bytes read, gaps included */
	uint32_t told;	    /* what has been published of the two */
	uint32_t bulk_told;
	uint32_t total; /* length of the payload that comes in pieces */
	uint32_t left;	/* bytes of it that are still to come; 0: no packet is open */
};

/*
 * hd_shm_tx_time: look at the reader's words, and how long their line takes to come. Processors of
 * one host may share a cache or not, and a hypervisor moves them from one moment to the next: a
 * line takes 50 ns or 150 here. From afar the lines of a payload come faster if they lie in memory
 * and not in our cache (hd_copy_past). A line that we have already takes next to nothing, and tells
 * nothing. Once in a while: it waits for all loads before it and for its own.
 */
#define HD_SHM_FAR_MAX 3u
#define HD_SHM_FAR_NS \
	100u /* longer than any line takes that comes from a cache of both, or of the same chip */
#define HD_SHM_HAD_NS 40u /* less is no line that came from anywhere */
static inline uint64_t hd_shm_tx_time(struct hd_shm_tx *tx)
{
	uint64_t begin = hd_ticks_strict(), read, ns;

	read = atomic_load_explicit(&tx->reader->read, memory_order_acquire);
	ns = (hd_ticks_strict() - begin) * 1000 / hd_ticks_per_us();
	if (ns > HD_SHM_FAR_NS)
		tx->far += tx->far < HD_SHM_FAR_MAX;
	else if (ns > HD_SHM_HAD_NS)
		tx->far -= tx->far > 0;
	return read;
}

/*
 * Slots beyond tx->row in which nothing has come back: this is a stream, and not one end that asks
 * and the other that answers.
 */
#define HD_SHM_ROW 2
static inline bool hd_shm_tx_in_row(const struct hd_shm_tx *tx)
{
	return (int32_t)(tx->head - tx->row) > HD_SHM_ROW;
}

/*
 * hd_shm_tx_past: is a payload of len bytes to be written past our cache? For a reader far away any
 * that hd_copy_past is of use for. For one that shares a cache with us those that fill a piece, and
 * half of that in a stream: having back the lines that the reader has copies of costs more than
 * their way through memory.
 */
static inline bool hd_shm_tx_past(const struct hd_shm_tx *tx, uint32_t len)
{
	if (tx->far > HD_SHM_FAR_MAX / 2)
		return len >= HD_COPY_WIDE;
	return len >= (hd_shm_tx_in_row(tx) ? HD_SHM_PIECE / 2 : HD_SHM_PIECE);
}

/* hd_shm_tx_look: look how far the consumer has read. false: it says what cannot be. */
static inline bool hd_shm_tx_look(struct hd_shm_tx *tx)
{
	uint64_t read = hd_shm_tx_time(tx);
	uint32_t slots = (uint32_t)read, bulk = (uint32_t)(read >> 32);

	if (tx->head - slots > HD_SHM_SLOTS || tx->bulk_head - bulk > HD_SHM_BULK)
		return false;
	tx->limit = slots + HD_SHM_SLOTS;
	tx->bulk_read = bulk;
	return true;
}

/*
 * hd_shm_tx_seen: the consumer's position as hd_shm_tx_look found it last, in the
 * form of hd_shm_side.read.
 */
static inline uint64_t hd_shm_tx_seen(const struct hd_shm_tx *tx)
{
	return (uint64_t)tx->bulk_read << 32 | (uint32_t)(tx->limit - HD_SHM_SLOTS);
}

/* hd_shm_tx_publish: the slot at the head is complete, the consumer may have it. */
static inline void hd_shm_tx_publish(struct hd_shm_tx *tx, struct hd_shm_slot *slot)
{
	tx->head++;
	atomic_store_explicit(&slot->seq, tx->head, memory_order_release);
}

static inline struct hd_shm_slot *hd_shm_tx_slot(const struct hd_shm_tx *tx)
{
	return &tx->slot[tx->head & (HD_SHM_SLOTS - 1)];
}

/*
 * hd_shm_tx_room: 0 when a payload of len bytes that does not fit in a slot has room in all its
 * pieces; -EAGAIN when it has not, -EPROTO when the consumer claims the impossible. The gap at the
 * ring's end is reckoned with at its largest.
 */
static inline int hd_shm_tx_room(struct hd_shm_tx *tx, uint32_t len)
{
	uint32_t slots = len / hd_shm_piece(len, 0) + 1;
	uint32_t bytes = hd_shm_lines(len) + hd_shm_piece(len, 0);

	for (int look = 0; look < 2; look++) {
		if (tx->limit - tx->head >= slots && HD_SHM_BULK - (tx->bulk_head - tx->bulk_read) >= bytes)
			return 0;
		if (!look && !hd_shm_tx_look(tx))
			return -EPROTO;
	}
	return -EAGAIN;
}

/* Where a payload comes from: segments and the place that has been reached in them. */
struct hd_shm_from {
	const struct iovec *iov;
	size_t at;
};

/* hd_shm_from_copy: the next n bytes. 0, or -EFAULT: not all of them are there. */
static inline int hd_shm_from_copy(struct hd_shm_from *from, uint8_t *to, size_t n, bool past)
{
	int err = 0;

	while (n) {
		size_t here = from->iov->iov_len - from->at;

		if (here > n)
			here = n;
		if (here && past) /* an empty segment may have no address */
			err = hd_copy_past(to, (const uint8_t *)from->iov->iov_base + from->at, here);
		else if (here)
			err = hd_copy(to, (const uint8_t *)from->iov->iov_base + from->at, here);
		if (hd_unlikely(err))
			return err;
		to += here;
		n -= here;
		from->at += here;
		if (from->at == from->iov->iov_len) {
			from->iov++;
			from->at = 0;
		}
	}
	return 0;
}

static inline void hd_shm_prefetch_write(const void *line)
{
#if defined(__x86_64__)
	/*
	 * __builtin_prefetch means the read prefetch on plain x86-64. Where the processor lacks
	 * this one, it does nothing.
	 */
	__asm__ volatile("prefetchw %0" : : "m"(*(const char *)line));
#else
	__builtin_prefetch(line, 1, 3);
#endif
}

/*
 * hd_shm_tx_warm: get hold of the bulk lines that the next payload will be written to, which the
 * consumer's cache has had since the last lap. The next payload is likely to be as long as this
 * one. It costs 4 KiB messages a quarter of their latency to take the lines one by one while
 * writing; now nobody waits for us. (Of the slots only those of a row are, by hd_shm_tx_ahead: the
 * consumer looks at the next one all the time and would only take it away again. And what is
 * written past our cache needs none of them.)
 */
static inline void hd_shm_tx_warm(const struct hd_shm_tx *tx, uint32_t len)
{
	uint32_t n = len < HD_SHM_PIECE ? len : HD_SHM_PIECE;

	if (hd_shm_tx_past(tx, len))
		return;
	for (uint32_t at = 0; at < n; at += HD_SHM_LINE)
		hd_shm_prefetch_write(tx->bulk + ((tx->bulk_head + at) & (HD_SHM_BULK - 1)));
}

/*
 * hd_shm_tx_ahead: in a row of packets, get hold of the slot after the next one, so that the lines
 * come while others are written. Who asks and is answered writes one line at a time, and this one
 * more would only be in its way: hd_shm_tx_answered says so.
 */
static inline void hd_shm_tx_ahead(const struct hd_shm_tx *tx)
{
	if (hd_shm_tx_in_row(tx))
		hd_shm_prefetch_write(&tx->slot[(tx->head + 2) & (HD_SHM_SLOTS - 1)]);
}

static inline void hd_shm_tx_answered(struct hd_shm_tx *tx)
{
	tx->row = tx->head;
}

/*
 * hd_shm_tx_pieces: write a payload of len bytes piece by piece, for which there is room. 0, or
 * -EFAULT: not all of it could be read, and the reader has got nothing, or so much that it has to
 * be told that this is nothing.
 */
static inline int hd_shm_tx_pieces(struct hd_shm_tx *tx, const struct hd_pkt *pkt, struct hd_shm_from *from,
				   uint32_t len)
{
	bool past = hd_shm_tx_past(tx, len);
	int err = 0;

	for (uint32_t at = 0, n; at < len; at += n) {
		struct hd_shm_slot *slot = hd_shm_tx_slot(tx);
		uint32_t pos;

		n = hd_shm_piece(len, at);
		pos = hd_shm_place(tx->bulk_head, n);
		if (hd_likely(!err))
			err = hd_shm_from_copy(from, tx->bulk + (pos & (HD_SHM_BULK - 1)), n, past);
		if (hd_unlikely(err) && !at)
			break;
		tx->bulk_head = pos + hd_shm_lines(n);
		slot->len = at ? HD_SHM_MORE | (err ? HD_SHM_VOID : 0) | (len - at) : len;
		if (!at)
			hd_pkt_put(&slot->pkt, pkt);
		hd_shm_tx_publish(tx, slot);
	}
	return err;
}

/*
 * hd_shm_rx_near: there is more than one: the producer is ahead, and what he has written comes
 * while what is here is taken. Not the next one, which is on its way: those behind it.
 */
#define HD_SHM_NEAR 6
static inline void hd_shm_rx_near(const struct hd_shm_rx *rx)
{
	__builtin_prefetch(&rx->slot[(rx->tail + HD_SHM_NEAR) & (HD_SHM_SLOTS - 1)]);
}

/*
 * hd_shm_rx_slot: the next slot, or NULL while the producer has not published it.
 * hd_shm_rx_ahead: the n-th after it.
 */
static inline struct hd_shm_slot *hd_shm_rx_ahead(const struct hd_shm_rx *rx, uint32_t n)
{
	struct hd_shm_slot *slot = &rx->slot[(rx->tail + n) & (HD_SHM_SLOTS - 1)];

	return atomic_load_explicit(&slot->seq, memory_order_acquire) == rx->tail + n + 1 ? slot : NULL;
}
static inline struct hd_shm_slot *hd_shm_rx_slot(const struct hd_shm_rx *rx)
{
	return hd_shm_rx_ahead(rx, 0);
}

/*
 * hd_shm_rx_piece: take the slot, whose length word is `len`, as the next piece of a payload in the
 * bulk ring. *first says whether a packet begins; rx->total and rx->left describe the packet, *n
 * the piece. HD_SHM_VOID in the word is the caller's business. NULL: this cannot have been sent.
 */
static inline const uint8_t *hd_shm_rx_piece(struct hd_shm_rx *rx, uint32_t len, uint32_t max, bool *first,
					     uint32_t *n)
{
	uint32_t pos;

	*first = !rx->left;
	if (*first) {
		if (len > max)
			return NULL;
		rx->total = rx->left = len;
	} else if ((len & ~HD_SHM_VOID) != (HD_SHM_MORE | rx->left)) {
		return NULL;
	}
	*n = hd_shm_piece(rx->total, rx->total - rx->left);
	pos = hd_shm_place(rx->bulk_tail, *n);
	rx->bulk_tail = pos + hd_shm_lines(*n);
	if (rx->bulk_tail - rx->bulk_told > HD_SHM_BULK)
		return NULL;
	rx->left -= *n;
	rx->tail++;
	return rx->bulk + (pos & (HD_SHM_BULK - 1));
}

/* hd_shm_rx_tell: publish how far we have read when that is worth a cache line. true: published. */
static inline bool hd_shm_rx_tell(struct hd_shm_rx *rx)
{
	if (rx->tail - rx->told < HD_SHM_SLOTS / 8 && rx->bulk_tail - rx->bulk_told < HD_SHM_BULK / 8)
		return false;
	rx->told = rx->tail;
	rx->bulk_told = rx->bulk_tail;
	atomic_store_explicit(&rx->own->read, (uint64_t)rx->bulk_tail << 32 | rx->tail, memory_order_release);
	return true;
}

#endif
