/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Messages that are fetched each by itself, chunk by chunk, with the sender's help (see copy.c). */
#include "transport/shm/get.h"

/* Open a free copy, or this get's own once more, from chunk `next` on. */
static bool copy_open(struct hd_shm_copying *c, struct hd_shm_fetch *pp, uint32_t next)
{
	if (pp->copy == HD_SHM_NO_COPY) {
		if (c->used == UINT32_MAX)
			return false;
		pp->copy = (uint8_t)__builtin_ctz(~c->used);
		c->used |= 1u << pp->copy;
	}
	atomic_store_explicit(&hd_shm_fetch_copy(c, pp)->claim, hd_shm_tagged(++c->gen[pp->copy], next),
			      memory_order_release);
	return true;
}

/* ---- one of them ---- */

static int get_chunk(struct hd_shm_link *l, struct hd_get *p, uint32_t k)
{
	struct iovec far[HD_SHM_OFFER_SEGS];

	hd_shm_fetch_far(hd_shm_fetch_of(p), far);
	return hd_shm_copy_chunk(l, p->iov, far, p->len, k, false);
}

/* Ask for help, where that is of use, and there is room for it. */
static void get_ask(struct hd_shm_link *l, struct hd_get *p)
{
	struct hd_shm_fetch *pp = hd_shm_fetch_of(p);
	struct hd_shm_seg seg[HD_SHM_SEGS];
	struct hd_pkt pkt;

	if (pp->after || (pp->flags & (HD_SHM_FETCH_ASKED | HD_SHM_FETCH_ALONE | HD_SHM_FETCH_LOST)) ||
	    (pp->copy == HD_SHM_NO_COPY && !copy_open(&l->copying, pp, pp->next)))
		return;
	for (int i = 0; i < p->count; i++)
		seg[i] = (struct hd_shm_seg){ (uintptr_t)p->iov[i].iov_base, p->iov[i].iov_len };
	pkt = (struct hd_pkt){ .kind = HD_SHM_PKT_HELP,
			       .dst = pp->copy,
			       .src = l->copying.gen[pp->copy],
			       .op = pp->number,
			       .tag = p->len };
	if (hd_shm_link_send(l, &pkt, seg, (size_t)p->count * sizeof(seg[0])) == 0)
		pp->flags |= HD_SHM_FETCH_ASKED;
}

static void aside_now(struct hd_shm_fetch *pp)
{
	pp->flags = (uint8_t)((pp->flags | HD_SHM_FETCH_ASIDE) & ~HD_SHM_FETCH_ASKED);
	pp->after = HD_SHM_AFTER_OPEN;
	pp->next = pp->ours = 0;
}

/* We could not copy: let the helper do everything from the beginning. false: it cannot either. */
static bool get_aside(struct hd_shm_link *l, struct hd_get *p)
{
	struct hd_shm_fetch *pp = hd_shm_fetch_of(p);

	if ((pp->flags & (HD_SHM_FETCH_ALONE | HD_SHM_FETCH_ASIDE)) || !hd_shm_they_can(l))
		return false;
	hd_shm_fetch_shut(l, p, HD_SHM_AFTER_ASIDE);
	if (hd_shm_fetch_leave(l, pp))
		aside_now(pp);
	return true;
}

/*
 * One that is shut goes on as soon as the helper is out of it. Returns whether somebody was told of
 * its end, who may have changed the list.
 */
static bool get_after(struct hd_shm_link *l, struct hd_get *p)
{
	static const int errors[] = {
		[HD_SHM_AFTER_DONE] = 0, [HD_SHM_AFTER_FAILED] = -EPERM, [HD_SHM_AFTER_WITHDRAWN] = -ECANCELED
	};
	struct hd_shm_fetch *pp = hd_shm_fetch_of(p);

	if (!hd_shm_fetch_leave(l, pp) || pp->after == HD_SHM_AFTER_LOST)
		return false;
	if (pp->after == HD_SHM_AFTER_ASIDE) {
		aside_now(pp);
		return false;
	}
	hd_shm_fetch_end(l, p);
	p->done(p, errors[pp->after]);
	return true;
}

/* The next chunk for us, if there is one. */
static bool get_take(struct hd_shm_copying *c, struct hd_get *p, uint32_t *k)
{
	struct hd_shm_fetch *pp = hd_shm_fetch_of(p);

	if (pp->after || pp->flags & (HD_SHM_FETCH_ASIDE | HD_SHM_FETCH_LOST))
		return false;
	if (pp->next >= hd_shm_chunks(p->len)) /* whatever the claim says */
		return false;
	if (pp->copy != HD_SHM_NO_COPY &&
	    !hd_shm_take_chunk(&hd_shm_fetch_copy(c, pp)->claim, c->gen[pp->copy], hd_shm_chunks(p->len)))
		return false;
	*k = pp->next++;
	pp->ours++;
	return true;
}

/* The chunk that the helper gives back, as it says it, or 0: none, or it has been taken back. */
static uint32_t get_returned(const struct hd_shm_copying *c, const struct hd_shm_fetch *pp)
{
	if (pp->copy == HD_SHM_NO_COPY || (pp->flags & HD_SHM_FETCH_ALONE))
		return 0;
	return hd_shm_fetch_word(c, pp, &hd_shm_fetch_copy(c, pp)->returned);
}

/* That one is ours now, if there is any. false: nobody can copy it, and this is said once. */
static bool get_take_back(struct hd_shm_link *l, struct hd_get *p)
{
	struct hd_shm_fetch *pp = hd_shm_fetch_of(p);
	uint32_t value = get_returned(&l->copying, pp);

	if (!value)
		return true;
	pp->flags |= HD_SHM_FETCH_ALONE;
	if (pp->flags & HD_SHM_FETCH_ASIDE)
		return false;
	if (value == HD_SHM_NO_CHUNK)
		return true;
	if (value > hd_shm_chunks(p->len) || get_chunk(l, p, value - 1))
		return false;
	pp->ours++;
	return true;
}

/*
 * What the end of a get is worth: does the offer still stand, now that everything has been copied?
 */
enum hd_shm_fetch_state hd_shm_fetch_verdict(const struct hd_shm_copying *c, const struct hd_shm_fetch *pp,
					     enum hd_shm_fetch_state state)
{
	atomic_thread_fence(memory_order_acquire); /* after everything that was copied */
	if (atomic_load_explicit(&c->offers_there[hd_shm_offer_index(pp->number)], memory_order_acquire) !=
	    pp->number)
		return HD_SHM_FETCH_WITHDRAWN;
	return state;
}

static bool sender_gone(const struct hd_shm_link *l)
{
	return l->state == HD_SHM_ENDING || atomic_load_explicit(&l->other->closed, memory_order_relaxed);
}

static bool is_copied(const struct hd_shm_copying *c, const struct hd_get *p)
{
	const struct hd_shm_fetch *pp = (const struct hd_shm_fetch *)p->priv;
	uint64_t helped = 0;

	if (pp->copy != HD_SHM_NO_COPY)
		helped = hd_shm_fetch_word(c, pp, &hd_shm_fetch_copy(c, pp)->helped);
	return pp->ours + helped >= hd_shm_chunks(p->len);
}

static enum hd_shm_fetch_state get_look(struct hd_shm_link *l, struct hd_get *p)
{
	const struct hd_shm_copying *c = &l->copying;
	struct hd_shm_fetch *pp = hd_shm_fetch_of(p);

	if (pp->after || pp->flags & HD_SHM_FETCH_LOST)
		return HD_SHM_FETCH_WAITS;
	if (!get_take_back(l, p))
		return hd_shm_fetch_verdict(c, pp, HD_SHM_FETCH_FAILED);
	return is_copied(c, p) ? hd_shm_fetch_verdict(c, pp, HD_SHM_FETCH_DONE) : HD_SHM_FETCH_WAITS;
}

/* Copy the next chunk that is left for us, if there is one; *worked says so. */
static enum hd_shm_fetch_state get_step(struct hd_shm_link *l, struct hd_get *p, bool *worked)
{
	uint32_t k;

	if (!get_take(&l->copying, p, &k))
		return HD_SHM_FETCH_WAITS;
	*worked = true;
	if (!get_chunk(l, p, k))
		return get_look(l, p);
	if (hd_shm_fetch_verdict(&l->copying, hd_shm_fetch_of(p), HD_SHM_FETCH_FAILED) ==
	    HD_SHM_FETCH_WITHDRAWN)
		return HD_SHM_FETCH_WITHDRAWN;
	return get_aside(l, p) ? HD_SHM_FETCH_WAITS : HD_SHM_FETCH_FAILED;
}

/*
 * The sender is gone and the engine will hear of it when the link goes down; until
 * then this get just waits.
 */
static void get_lose(struct hd_shm_link *l, struct hd_get *p)
{
	hd_shm_fetch_shut(l, p, HD_SHM_AFTER_LOST);
	hd_shm_fetch_of(p)->flags |= HD_SHM_FETCH_LOST;
}

static void get_list(struct hd_shm_link *l, struct hd_get *p, unsigned flags)
{
	hd_shm_fetch_of(p)->flags = (uint8_t)(HD_SHM_FETCH_LISTED | flags);
	TAILQ_INSERT_TAIL(&l->copying.gets, p, entry);
	l->attention = true;
	hd_shm_heat(l);
	hd_node_stir(l->base.node);
	get_ask(l, p);
}

/* At once, and without help. */
enum hd_shm_fetch_state hd_shm_fetch_alone(struct hd_shm_link *l, struct hd_get *p)
{
	struct iovec far[HD_SHM_OFFER_SEGS];
	bool failed;

	hd_shm_fetch_far(hd_shm_fetch_of(p), far);
	failed = hd_shm_copy_part(l, p->iov, far, 0, p->len, false);
	return hd_shm_fetch_verdict(&l->copying, hd_shm_fetch_of(p),
				    failed ? HD_SHM_FETCH_FAILED : HD_SHM_FETCH_DONE);
}

/*
 * It was tried at once, or could not be. 0: it is done, or goes on in the list;
 * negative: it has come to its end.
 */
int hd_shm_fetch_go_on(struct hd_shm_link *l, struct hd_get *p, enum hd_shm_fetch_state state)
{
	if (state == HD_SHM_FETCH_DONE)
		p->done(p, 0);
	else if (sender_gone(l))
		get_list(l, p, HD_SHM_FETCH_LOST);
	else if (state == HD_SHM_FETCH_WITHDRAWN)
		return -ECANCELED;
	else if (state == HD_SHM_FETCH_FAILED && !hd_shm_they_can(l))
		return -EPERM;
	else
		get_list(l, p,
			 (state == HD_SHM_FETCH_FAILED ? HD_SHM_FETCH_ASIDE : 0) |
				 (hd_shm_they_can(l) ? 0 : HD_SHM_FETCH_ALONE));
	return 0;
}

/* ---- progress ---- */

/* The get has come to its end. Returns whether somebody was told, who may have changed the list. */
static bool get_finish(struct hd_shm_link *l, struct hd_get *p, enum hd_shm_fetch_state state)
{
	static const enum hd_shm_fetch_after after[] = { [HD_SHM_FETCH_DONE] = HD_SHM_AFTER_DONE,
							 [HD_SHM_FETCH_FAILED] = HD_SHM_AFTER_FAILED,
							 [HD_SHM_FETCH_WITHDRAWN] = HD_SHM_AFTER_WITHDRAWN };

	if (state == HD_SHM_FETCH_WITHDRAWN && sender_gone(l)) {
		get_lose(l, p);
		return false;
	}
	hd_shm_fetch_shut(l, p, after[state]);
	return get_after(l, p);
}

/*
 * Is its next chunk in our half? That of the helper is left to it as long as there
 * is something else to do.
 */
static bool in_our_half(const struct hd_get *p)
{
	const struct hd_shm_fetch *pp = (const struct hd_shm_fetch *)p->priv;

	return pp->copy == HD_SHM_NO_COPY || pp->flags & HD_SHM_FETCH_ALONE ||
	       pp->next < (hd_shm_chunks(p->len) + 1) / 2;
}

/* There is nothing left in our own halves. */
static int gets_assist(struct hd_shm_link *l)
{
	bool worked = false;
	struct hd_get *p;

	TAILQ_FOREACH(p, &l->copying.gets, entry) {
		enum hd_shm_fetch_state state = get_step(l, p, &worked);

		if (state != HD_SHM_FETCH_WAITS)
			get_finish(l, p, state);
		if (worked)
			break;
	}
	return worked;
}

/* Every get is looked at, but only one chunk is copied. */
int hd_shm_chunks_poll(struct hd_shm_link *l)
{
	bool worked = false;
	struct hd_get *p;

	TAILQ_FOREACH(p, &l->copying.gets, entry) {
		enum hd_shm_fetch_state state;

		if (hd_shm_fetch_of(p)->after) {
			if (get_after(l, p))
				return 1;
			continue;
		}
		get_ask(l, p);
		if (l->base.down)
			break; /* and the list is empty */
		state = get_look(l, p);
		if (state == HD_SHM_FETCH_WAITS && !worked && in_our_half(p))
			state = get_step(l, p, &worked);
		if (state != HD_SHM_FETCH_WAITS && get_finish(l, p, state))
			return 1;
		if (hd_shm_fetch_of(p)->copy == HD_SHM_NO_COPY && worked)
			break; /* those behind it are not begun either */
	}
	return worked ? 1 : gets_assist(l);
}

/* Is there something for the next turn to do? It changes nothing, for nobody acts on it here. */
static bool get_arm(const struct hd_shm_link *l, const struct hd_get *p)
{
	const struct hd_shm_copying *c = &l->copying;
	const struct hd_shm_fetch *pp = (const struct hd_shm_fetch *)p->priv;
	uint32_t next = pp->next;

	if (pp->flags & HD_SHM_FETCH_LOST)
		return false;
	if (pp->after)
		return pp->copy == HD_SHM_NO_COPY || hd_shm_fetch_is_settled(l, pp);
	if (is_copied(c, p) || get_returned(c, pp))
		return true;
	if (pp->copy != HD_SHM_NO_COPY)
		next = (uint32_t)atomic_load_explicit(&hd_shm_fetch_copy(c, pp)->claim, memory_order_relaxed);
	else if (!(pp->flags & HD_SHM_FETCH_ALONE) && c->used != UINT32_MAX)
		return true; /* help can be asked for by now */
	return !(pp->flags & HD_SHM_FETCH_ASIDE) && next < hd_shm_chunks(p->len);
}

bool hd_shm_chunks_arm(struct hd_shm_link *l)
{
	struct hd_get *p;

	TAILQ_FOREACH(p, &l->copying.gets, entry)
		if (get_arm(l, p))
			return true;
	return false;
}
