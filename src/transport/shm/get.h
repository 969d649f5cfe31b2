/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Two ways of fetching a message that the other side has offered: chunk.c each by itself, with the
 * sender's help; row.c those that arrive close together, several in one call. Both keep what they
 * know in hd_get.priv, which is this; fetch.c brings it to its end, and get.c, above all, chooses
 * the way.
 */
#ifndef HD_SHM_GET_H
#define HD_SHM_GET_H

#include "transport/shm/copy.h"

struct hd_shm_fetch {
	uint32_t number; /* of the offer */
	uint32_t next;	 /* the next chunk: ours are the first ones */
	uint32_t ours;	 /* chunks that we have taken, and copied before anybody looks */
	uint8_t copy;	 /* index of the copy that the two share, or that of none */
	uint8_t segs;
	uint8_t flags;	/* enum hd_shm_fetch_flag */
	uint8_t after;	/* enum hd_shm_fetch_after */
	uint32_t taken; /* chunks that the helper had taken when the copy was shut, */
	uint32_t turns; /* and its count of turns of progress */
	struct hd_shm_seg seg[HD_SHM_OFFER_SEGS];
};
#define HD_SHM_NO_COPY UINT8_MAX
static_assert(sizeof(struct hd_shm_fetch) <= sizeof(((struct hd_get *)0)->priv),
	      "the state of a get fits in its private part");

enum hd_shm_fetch_flag {
	HD_SHM_FETCH_LISTED = 1 << 0, /* in link->gets */
	HD_SHM_FETCH_ASKED = 1 << 1,  /* HELP is sent */
	HD_SHM_FETCH_ASIDE = 1 << 2,  /* we may not: the helper does everything */
	HD_SHM_FETCH_ALONE = 1 << 3,  /* the helper may not: we do everything */
	HD_SHM_FETCH_LOST = 1 << 4,   /* the sender has given up the link; we shall hear of it */
	HD_SHM_FETCH_IN_ROW = 1 << 5, /* in link->row instead */
	HD_SHM_FETCH_TRIED = 1 << 6,  /* and the call that was to copy it has been made: */
	HD_SHM_FETCH_COPIED = 1 << 7, /* it did */
};

/* A copy is open, or shut: then this is to be done as soon as the helper is out of it. */
enum hd_shm_fetch_after {
	HD_SHM_AFTER_OPEN,
	HD_SHM_AFTER_DONE, /* tell that it is done, */
	HD_SHM_AFTER_FAILED,
	HD_SHM_AFTER_WITHDRAWN,
	HD_SHM_AFTER_ASIDE, /* begin anew, and let the helper do everything */
	HD_SHM_AFTER_LOST,  /* nothing: the link goes down */
};

enum hd_shm_fetch_state {
	HD_SHM_FETCH_WAITS,
	HD_SHM_FETCH_DONE,
	HD_SHM_FETCH_FAILED,
	HD_SHM_FETCH_WITHDRAWN, /* by the sender */
};

static inline struct hd_shm_fetch *hd_shm_fetch_of(struct hd_get *p)
{
	return (struct hd_shm_fetch *)p->priv;
}

/*
 * hd_shm_fetch_far: where the message is in the other process; far has HD_SHM_OFFER_SEGS entries.
 */
static inline void hd_shm_fetch_far(const struct hd_shm_fetch *f, struct iovec *far)
{
	for (int i = 0; i < f->segs; i++)
		far[i] = (struct iovec){ (void *)(uintptr_t)f->seg[i].addr, f->seg[i].len };
}

/* ---- fetch.c ---- */

/* hd_shm_fetch_copy: the copy that we share with the helper; there is one. */
static inline struct hd_shm_copy *hd_shm_fetch_copy(const struct hd_shm_copying *c,
						    const struct hd_shm_fetch *f)
{
	return &c->ours[f->copy];
}

/*
 * hd_shm_fetch_word: the low half of a word of the helper's there, or 0 while it speaks
 * of an earlier generation.
 */
static inline uint32_t hd_shm_fetch_word(const struct hd_shm_copying *c, const struct hd_shm_fetch *f,
					 const _Atomic uint64_t *word)
{
	uint64_t value = atomic_load_explicit(word, memory_order_acquire);

	return value >> 32 == c->gen[f->copy] ? (uint32_t)value : 0;
}

/*
 * hd_shm_fetch_is_settled: has the helper finished, or given back, all the chunks that it has taken
 * of a copy that is shut? It does so within the turn of progress in which it has taken them; so one
 * that has made others since says something wrong, and is not waited for.
 */
/* who has made so many is in the middle of nothing that was before */
#define HD_SHM_SETTLE_TURNS 16
static inline bool hd_shm_fetch_is_settled(const struct hd_shm_link *l, const struct hd_shm_fetch *f)
{
	const struct hd_shm_copying *c = &l->copying;
	const struct hd_shm_copy *copy = hd_shm_fetch_copy(c, f);

	return !(f->flags & HD_SHM_FETCH_ASKED) || hd_shm_fetch_word(c, f, &copy->helped) >= f->taken ||
	       hd_shm_fetch_word(c, f, &copy->returned) ||
	       hd_shm_turns(&l->peer) - f->turns >= HD_SHM_SETTLE_TURNS;
}

/*
 * hd_shm_fetch_shut: no chunk is taken any more; `after` is to be done when
 * the helper is out of it.
 */
void hd_shm_fetch_shut(struct hd_shm_link *l, struct hd_get *p, enum hd_shm_fetch_after after);

/*
 * hd_shm_fetch_leave: is the helper out of a copy that is shut? The chunk that it was writing is in
 * the kernel and will be out of it soon, or be killed: it takes some ten microseconds, unless the
 * helper has been put aside in the middle, or stopped. Then its chunk is still to be written,
 * whenever that is, and the buffer must not be the user's before. True: the copy is free again.
 * hd_shm_fetch_complain: the helper keeps us waiting.
 */
void hd_shm_fetch_complain(struct hd_shm_copying *c, pid_t helper);
static inline bool hd_shm_fetch_leave(struct hd_shm_link *l, struct hd_shm_fetch *f)
{
	if (f->copy == HD_SHM_NO_COPY)
		return true;
	if (!hd_shm_fetch_is_settled(l, f) && !hd_shm_is_gone(&l->peer)) {
		hd_shm_fetch_complain(&l->copying, l->peer.pid);
		return false;
	}
	l->copying.kept_since = 0;
	l->copying.used &= ~(1u << f->copy);
	f->copy = HD_SHM_NO_COPY;
	return true;
}

/*
 * hd_shm_fetch_end: out of its list; no helper is in the middle of it.
 * hd_shm_row_leave: that is the row.
 */
void hd_shm_row_leave(struct hd_shm_link *l, struct hd_get *p);
static inline void hd_shm_fetch_end(struct hd_shm_link *l, struct hd_get *p)
{
	struct hd_shm_fetch *pp = hd_shm_fetch_of(p);

	if (pp->flags & HD_SHM_FETCH_IN_ROW)
		hd_shm_row_leave(l, p);
	else if (pp->flags & HD_SHM_FETCH_LISTED)
		TAILQ_REMOVE(&l->copying.gets, p, entry);
	pp->flags = 0;
}

/* ---- chunk.c ---- */

/*
 * hd_shm_fetch_verdict: what the end of a get is worth, now that everything has been copied:
 * WITHDRAWN when the offer does not stand any more, else the state that was given.
 */
enum hd_shm_fetch_state hd_shm_fetch_verdict(const struct hd_shm_copying *c, const struct hd_shm_fetch *f,
					     enum hd_shm_fetch_state state);

/* hd_shm_fetch_alone: copy it at once, and without help. DONE, FAILED or WITHDRAWN. */
enum hd_shm_fetch_state hd_shm_fetch_alone(struct hd_shm_link *l, struct hd_get *p);

/*
 * hd_shm_fetch_go_on: it was tried at once with this result, or could not be, and is in no list. 0:
 * it is done, and has been told so, or goes on in link->gets; negative: it has come to its end with
 * this errno, of which nobody has been told.
 */
int hd_shm_fetch_go_on(struct hd_shm_link *l, struct hd_get *p, enum hd_shm_fetch_state state);

/*
 * hd_shm_chunks_poll: copy one chunk. Returns the number of events. hd_shm_chunks_arm: as
 * hd_shm_gets_arm, of link->gets.
 */
int hd_shm_chunks_poll(struct hd_shm_link *l);
bool hd_shm_chunks_arm(struct hd_shm_link *l);

/* ---- row.c ---- */

/*
 * hd_shm_row_takes: is this get better copied in a row? `next` is the packet behind its RTS, or
 * NULL: there is none yet.
 */
bool hd_shm_row_takes(const struct hd_shm_copying *c, const struct hd_get *p, const struct hd_shm_slot *next);

/* hd_shm_row_join: put it at the end of the row; hd_shm_fetch_end takes it out. */
void hd_shm_row_join(struct hd_shm_link *l, struct hd_get *p);

/*
 * hd_shm_row_poll: copy as much of a row that is not empty as one call takes. Returns how many were
 * told of, who may have changed the lists.
 */
int hd_shm_row_poll(struct hd_shm_link *l);

#endif
