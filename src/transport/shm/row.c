/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * A row of messages, which we fetch without the sender's help: as many of them as fit in one call.
 */
#include "transport/shm/get.h"

#define ROW_SEGS 32 /* segments at either side of one call, at least those of any message */
#define ROW_NEXT 4  /* requests of the next row, which are fetched while this one is copied */
static_assert(ROW_SEGS >= HD_IOV_MAX && ROW_SEGS >= HD_SHM_OFFER_SEGS, "a call takes any message");
static_assert(HD_SHM_SINGLE <= HD_SHM_CHUNK_MAX, "and at least one of them");

/* One call. */
struct row_call {
	struct iovec here[ROW_SEGS], there[ROW_SEGS];
	int heres, theres;
};

/*
 * Is it better copied by us alone, together with others? So are those behind which the next request
 * waits already, up to a length that one call copies as fast as two ends do it that have to meet:
 * what they gain in time for one message, they lose in many. And so is the last one of such a row.
 */
bool hd_shm_row_takes(const struct hd_shm_copying *c, const struct hd_get *p, const struct hd_shm_slot *next)
{
	return p->len <= HD_SHM_SINGLE && (!TAILQ_EMPTY(&c->row) || (next && next->pkt.kind == HD_PKT_RTS));
}

void hd_shm_row_join(struct hd_shm_link *l, struct hd_get *p)
{
	hd_shm_fetch_of(p)->flags = HD_SHM_FETCH_LISTED | HD_SHM_FETCH_IN_ROW;
	TAILQ_INSERT_TAIL(&l->copying.row, p, entry);
	l->copying.row_bytes += p->len;
	if (l->copying.row_bytes + HD_SHM_SINGLE > HD_SHM_CHUNK_MAX)
		l->portion = 0; /* first what is there */
	l->attention = true;
	hd_shm_heat(l);
	hd_node_stir(l->base.node);
}

/*
 * As many of the first ones as a call takes, and the bytes of each turn of
 * progress allow; at least one.
 */
static void row_take(struct hd_shm_copying *copying, struct row_call *c)
{
	uint64_t bytes = 0;
	struct hd_get *p;

	c->heres = c->theres = 0;
	TAILQ_FOREACH(p, &copying->row, entry) {
		struct hd_shm_fetch *f = hd_shm_fetch_of(p);
		struct iovec far[HD_SHM_OFFER_SEGS];

		bytes += p->len;
		if (bytes > HD_SHM_CHUNK_MAX || c->heres + p->count > ROW_SEGS ||
		    c->theres + f->segs > ROW_SEGS)
			break;
		/* it is looked at afterwards */
		__builtin_prefetch(&copying->offers_there[hd_shm_offer_index(f->number)]);
		hd_shm_fetch_far(f, far);
		c->heres += hd_shm_slice(p->iov, 0, p->len, c->here + c->heres);
		c->theres += hd_shm_slice(far, 0, p->len, c->there + c->theres);
		f->flags |= HD_SHM_FETCH_TRIED;
	}
}

/*
 * Those which the call has copied whole, the first ones, are done; the others are tried one by one,
 * which tells what is wrong.
 */
static void row_mark(struct hd_shm_copying *copying, uint64_t copied)
{
	struct hd_get *p;

	TAILQ_FOREACH(p, &copying->row, entry) {
		if (!(hd_shm_fetch_of(p)->flags & HD_SHM_FETCH_TRIED) || copied < p->len)
			break;
		hd_shm_fetch_of(p)->flags |= HD_SHM_FETCH_COPIED;
		copied -= p->len;
	}
}

/* Whoever is told may take others out of the row, and put new ones at its end. */
int hd_shm_row_poll(struct hd_shm_link *l)
{
	struct row_call c;
	struct hd_get *p;
	ssize_t copied;
	int n = 0;

	row_take(&l->copying, &c);
	for (uint32_t i = 0; i < ROW_NEXT; i++)
		__builtin_prefetch(&l->rx.slot[(l->rx.tail + i) & (HD_SHM_SLOTS - 1)]);
	copied = hd_shm_copy_call(&l->peer, c.here, c.heres, c.there, c.theres, false);
	if (copied > 0)
		hd_shm_copied(l, (uint64_t)copied, false);
	row_mark(&l->copying, copied > 0 ? (uint64_t)copied : 0);
	while (!l->base.down && (p = TAILQ_FIRST(&l->copying.row)) &&
	       hd_shm_fetch_of(p)->flags & HD_SHM_FETCH_TRIED) {
		const struct hd_shm_fetch *f = hd_shm_fetch_of(p);
		bool whole = f->flags & HD_SHM_FETCH_COPIED;
		int rc;

		hd_shm_fetch_end(l, p);
		rc = hd_shm_fetch_go_on(l, p,
					whole ? hd_shm_fetch_verdict(&l->copying, f, HD_SHM_FETCH_DONE)
					      : hd_shm_fetch_alone(l, p));
		if (rc < 0)
			p->done(p, rc);
		n++;
	}
	return n;
}
