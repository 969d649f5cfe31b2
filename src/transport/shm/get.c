/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * The receiver's half of the cooperative copy (see copy.c): which way a message is fetched
 * that the sender has offered, at once and by us alone, in a row (row.c), or chunk by chunk
 * with his help (chunk.c).
 */
#include "transport/shm/get.h"

static int blob_parse(const struct hd_get *p, struct hd_shm_fetch *pp)
{
	struct hd_shm_blob blob;
	uint64_t sum = 0;

	if (p->offer_len < HD_SHM_BLOB_LEN(0) || p->offer_len > sizeof(blob))
		return -EPROTO;
	memcpy(&blob, p->offer, p->offer_len);
	if (blob.count > HD_SHM_OFFER_SEGS || p->offer_len != HD_SHM_BLOB_LEN(blob.count))
		return -EPROTO;
	if (blob.count == 1)
		blob.seg[0].len = p->len;
	*pp = (struct hd_shm_fetch){ .number = blob.number,
				     .segs = (uint8_t)blob.count,
				     .copy = HD_SHM_NO_COPY };
	for (uint32_t i = 0; i < blob.count; i++) {
		if (blob.seg[i].len > UINT64_MAX - sum)
			return -EPROTO;
		sum += blob.seg[i].len;
		pp->seg[i] = blob.seg[i];
	}
	return !blob.count || sum >= p->len ? 0 : -EPROTO;
}

/*
 * By us alone, at once? What is not worth the request for help is, and what
 * something else waits behind.
 */
static bool is_single(const struct hd_get *p, const struct hd_shm_slot *next)
{
	return p->len <= HD_SHM_CHUNK_ONE || (p->len <= HD_SHM_SINGLE && next);
}

int hd_shm_get(struct hd_link *link, struct hd_get *p)
{
	struct hd_shm_link *l = hd_shm_link_of(link);
	struct hd_shm_fetch *pp = hd_shm_fetch_of(p);
	enum hd_shm_fetch_state state = HD_SHM_FETCH_FAILED;

	if (link->down)
		return -ENOTCONN;
	if (p->len > HD_SHM_GET_MAX)
		return -EMSGSIZE;
	if (blob_parse(p, pp) < 0) {
		hd_shm_link_fail(l, -EPROTO, "an impossible offer of a message");
		return -EPROTO;
	}
	if (hd_shm_we_can(l) && pp->segs) {
		const struct hd_shm_slot *next = hd_shm_rx_slot(&l->rx);

		if (hd_shm_row_takes(&l->copying, p, next)) {
			hd_shm_row_join(l, p);
			return 0;
		}
		state = is_single(p, next) ? hd_shm_fetch_alone(l, p) : HD_SHM_FETCH_WAITS;
	}
	return hd_shm_fetch_go_on(l, p, state);
}

int hd_shm_gets_poll(struct hd_shm_link *l)
{
	int n = TAILQ_EMPTY(&l->copying.row) ? 0 : hd_shm_row_poll(l);

	return n + hd_shm_chunks_poll(l);
}

bool hd_shm_gets_arm(struct hd_shm_link *l)
{
	return !TAILQ_EMPTY(&l->copying.row) || hd_shm_chunks_arm(l);
}
