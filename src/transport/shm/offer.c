/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * The sender's half of the cooperative copy (see copy.c): what it offers, and
 * how it helps to fetch it.
 */
#include "transport/shm/copy.h"

#include <stdlib.h>

/* ---- offers ---- */

size_t hd_shm_offer(struct hd_link *link, struct hd_offer *o, void *out)
{
	struct hd_shm_link *l = hd_shm_link_of(link);
	struct hd_shm_blob blob = { .count = o->count <= (int)HD_SHM_OFFER_SEGS ? (uint32_t)o->count : 0 };

	if (link->down || !(hd_shm_we_can(l) || (hd_shm_they_can(l) && blob.count)))
		return 0;
	/* the map lets that many slots rest, so an index stays below HD_SHM_OFFERS */
	if (l->copying.offers.count >= HD_SHM_OFFERS - HD_IDMAP_REST ||
	    hd_idmap_add(&l->copying.offers, o, &blob.number) < 0)
		return 0;
	o->priv[0] = blob.number;
	atomic_store_explicit(&l->copying.offered[hd_shm_offer_index(blob.number)], blob.number,
			      memory_order_relaxed); /* the RTS publishes it */
	for (uint32_t i = 0; i < blob.count; i++)
		blob.seg[i] = (struct hd_shm_seg){ (uintptr_t)o->iov[i].iov_base, o->iov[i].iov_len };
	memcpy(out, &blob, HD_SHM_BLOB_LEN(blob.count));
	return HD_SHM_BLOB_LEN(blob.count);
}

/* ---- help ---- */

static void offer_give_up(struct hd_shm_link *l, uint32_t index, uint32_t gen, uint32_t chunk)
{
	uint32_t value = chunk == HD_SHM_NO_CHUNK ? chunk : chunk + 1;

	atomic_store_explicit(&l->copying.theirs[index].returned, hd_shm_tagged(gen, value),
			      memory_order_release);
	hd_shm_wake_check(l, l->fenced);
}

void hd_shm_unoffer(struct hd_link *link, struct hd_offer *o)
{
	struct hd_shm_link *l = hd_shm_link_of(link);
	struct hd_shm_help *h, *next;

	if (link->down)
		atomic_store_explicit(&l->own->closed, 1, memory_order_relaxed);
	atomic_store_explicit(&l->copying.offered[hd_shm_offer_index((uint32_t)o->priv[0])], 0,
			      memory_order_release);
	atomic_thread_fence(memory_order_release); /* before whatever the memory is used for now */
	hd_idmap_remove(&l->copying.offers, (uint32_t)o->priv[0]);
	for (h = TAILQ_FIRST(&l->copying.helps); h; h = next) {
		next = TAILQ_NEXT(h, entry);
		if (h->offer != o)
			continue;
		offer_give_up(l, (uint32_t)(h - l->copying.help), h->gen, HD_SHM_NO_CHUNK);
		hd_shm_help_end(&l->copying, h);
	}
}

/*
 * The segments of the other side's buffer, which must hold len bytes. Their
 * addresses are its own business.
 */
static int help_segments(struct hd_shm_help *h, const void *payload, size_t len)
{
	struct hd_shm_seg seg[HD_SHM_SEGS];
	uint64_t sum = 0;

	if (len > sizeof(seg) || len % sizeof(seg[0]))
		return -EPROTO;
	memcpy(seg, payload, len);
	atomic_signal_fence(memory_order_seq_cst); /* read once */
	h->count = (int)(len / sizeof(seg[0]));
	for (int i = 0; i < h->count; i++) {
		if (seg[i].len > UINT64_MAX - sum)
			return -EPROTO;
		sum += seg[i].len;
		h->iov[i] = (struct iovec){ (void *)(uintptr_t)seg[i].addr, seg[i].len };
	}
	return sum >= h->len ? 0 : -EPROTO;
}

int hd_shm_help_asked(struct hd_shm_link *l, const struct hd_pkt *pkt, const void *payload, size_t len)
{
	struct hd_offer *o = hd_idmap_get(&l->copying.offers, pkt->op);
	struct hd_shm_help *h;

	if (pkt->dst >= HD_SHM_COPIES)
		return -EPROTO;
	if (!l->copying.help)
		l->copying.help = calloc(HD_SHM_COPIES, sizeof(*l->copying.help));
	if (!o || !l->copying.help || !hd_shm_we_can(l)) {
		/* the offer may have been withdrawn since */
		offer_give_up(l, pkt->dst, pkt->src, HD_SHM_NO_CHUNK);
		return 0;
	}
	h = &l->copying.help[pkt->dst];
	if (h->offer) /* the other side has taken the copy back and uses it anew */
		hd_shm_help_end(&l->copying, h);
	h->len = pkt->tag;
	h->gen = pkt->src;
	h->helped = 0;
	if (!h->len || h->len > o->len || hd_shm_chunks(h->len) >= UINT32_MAX ||
	    help_segments(h, payload, len) < 0)
		return -EPROTO;
	h->offer = o;
	TAILQ_INSERT_TAIL(&l->copying.helps, h, entry);
	l->attention = true;
	return 0;
}

/*
 * Copy our next chunk of this message. False: there is none left, and it is no longer in the list.
 */
static bool help_step(struct hd_shm_link *l, struct hd_shm_help *h)
{
	uint32_t index = (uint32_t)(h - l->copying.help), k;
	struct hd_shm_copy *copy = &l->copying.theirs[index];
	uint64_t chunks = hd_shm_chunks(h->len);

	if (h->helped == chunks || !hd_shm_take_chunk(&copy->claim, h->gen, chunks)) {
		hd_shm_help_end(&l->copying, h);
		return false;
	}
	k = (uint32_t)chunks - 1 - h->helped;
	if (hd_shm_copy_chunk(l, h->offer->iov, h->iov, h->len, k, true)) {
		offer_give_up(l, index, h->gen, k);
		hd_shm_help_end(&l->copying, h);
		return true;
	}
	atomic_store_explicit(&copy->helped, hd_shm_tagged(h->gen, ++h->helped), memory_order_release);
	hd_shm_wake_check(l, l->fenced);
	return true;
}

/*
 * Copy one chunk: of our half of the oldest message, or where all of these are done, of what the
 * receiver has left of the oldest.
 */
int hd_shm_help_poll(struct hd_shm_link *l)
{
	struct hd_shm_help *h, *next;

	for (int all = 0; all < 2; all++)
		for (h = TAILQ_FIRST(&l->copying.helps); h; h = next) {
			next = TAILQ_NEXT(h, entry);
			if ((all || h->helped < hd_shm_chunks(h->len) / 2) && help_step(l, h))
				return 1;
		}
	return 0;
}
