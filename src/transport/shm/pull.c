/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* The receiver's half of the cooperative copy (see copy.c): fetching what the sender has offered. */
#include "transport/shm/pull.h"

#include "base/clock.h"
#include "base/log.h"

#include <sched.h>
#include <time.h>

#define SETTLE_YIELDS \
	100 /* looks for a chunk that the helper is writing, before the wait is somebody's who has time */
#define SETTLE_TURNS \
	16 /* who has made so many turns of progress is in the middle of nothing that was before */
#define KEPT_NS (500 * HD_NS_PER_MS) /* after which the log says who keeps us waiting */
#define NO_COPY UINT8_MAX

/* ---- the copy that we share with the helper ---- */

static struct hd_shm_copy *copy_of(struct hd_shm_link *l, const struct hd_shm_fetch *pp)
{
	return &hd_shm_copies(l, true)[pp->copy];
}

/* Open a free copy, or this pull's own once more, from chunk `next` on. */
static bool copy_open(struct hd_shm_link *l, struct hd_shm_fetch *pp, uint32_t next)
{
	if (pp->copy == NO_COPY) {
		if (l->copy_used == UINT32_MAX)
			return false;
		pp->copy = (uint8_t)__builtin_ctz(~l->copy_used);
		l->copy_used |= 1u << pp->copy;
	}
	atomic_store_explicit(&copy_of(l, pp)->claim, hd_shm_tagged(++l->copy_gen[pp->copy], next),
			      memory_order_release);
	return true;
}

/* The low half of a word of the helper's, or 0 while it speaks of an earlier generation. */
static uint32_t copy_word(struct hd_shm_link *l, const struct hd_shm_fetch *pp, const _Atomic uint64_t *word)
{
	uint64_t value = atomic_load_explicit(word, memory_order_acquire);

	return value >> 32 == l->copy_gen[pp->copy] ? (uint32_t)value : 0;
}

/*
 * Has the helper finished, or given back, all the chunks that it has taken? It does so within the turn of progress in which it has taken them; so one
 * that has made others since says something wrong, and is not waited for.
 */
static bool is_settled(struct hd_shm_link *l, const struct hd_shm_fetch *pp)
{
	const struct hd_shm_copy *copy = copy_of(l, pp);

	return !(pp->flags & HD_SHM_FETCH_ASKED) || copy_word(l, pp, &copy->helped) >= pp->taken ||
	       copy_word(l, pp, &copy->returned) || hd_shm_turns(l) - pp->turns >= SETTLE_TURNS;
}

/* Shut the copy: no chunk is taken any more. `after`: what is to be done when the helper is out of it. */
static void copy_shut(struct hd_shm_link *l, struct hd_pull *p, enum hd_shm_fetch_after after)
{
	struct hd_shm_fetch *pp = hd_shm_fetch_of(p);
	bool is_shut = pp->after != HD_SHM_AFTER_OPEN;
	uint64_t claim;
	uint32_t taken;

	pp->after = (uint8_t)after;
	if (is_shut || pp->copy == NO_COPY)
		return;
	claim = atomic_exchange_explicit(&copy_of(l, pp)->claim,
					 hd_shm_tagged(l->copy_gen[pp->copy], UINT32_MAX),
					 memory_order_acquire);
	taken = (uint32_t)claim;
	pp->taken = taken <= hd_shm_chunks(p->len) && taken >= pp->ours ? taken - pp->ours
									: 0; /* else a lie */
	pp->turns = hd_shm_turns(l);
}

/* The helper keeps us waiting. */
static void copy_complain(struct hd_shm_link *l)
{
	uint64_t now = hd_now_ns();

	if (!l->kept_since)
		l->kept_since = now;
	else if (now - l->kept_since > KEPT_NS)
		HD_LOG_EVERY_MS(
			10000, HD_LOG_WARN,
			"process %d has been stopped in the middle of a copy to this process: the memory is kept until it goes on or is dead",
			(int)l->peer_pid);
}

/*
 * Is the helper out of a copy that is shut? The chunk that it was writing is in the kernel and will be out of it soon, or be killed: it takes some
 * ten microseconds, unless the helper has been put aside in the middle, or stopped. Then its chunk is still to be written, whenever that is, and
 * the buffer must not be the user's before. True: the copy is free again.
 */
static bool copy_leave(struct hd_shm_link *l, struct hd_shm_fetch *pp)
{
	if (pp->copy == NO_COPY)
		return true;
	if (!is_settled(l, pp) && !hd_shm_is_gone(l)) {
		copy_complain(l);
		return false;
	}
	l->kept_since = 0;
	l->copy_used &= ~(1u << pp->copy);
	pp->copy = NO_COPY;
	return true;
}

/* Between two looks, for those who have to wait here. */
static void copy_stand_by(int looks)
{
	const struct timespec while_aside = { .tv_nsec = HD_NS_PER_MS };

	if (looks < SETTLE_YIELDS)
		sched_yield();
	else
		nanosleep(&while_aside, NULL);
}

/* ---- pulls ---- */

static int blob_parse(const struct hd_pull *p, struct hd_shm_fetch *pp)
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
	*pp = (struct hd_shm_fetch){ .number = blob.number, .segs = (uint8_t)blob.count, .copy = NO_COPY };
	for (uint32_t i = 0; i < blob.count; i++) {
		if (blob.seg[i].len > UINT64_MAX - sum)
			return -EPROTO;
		sum += blob.seg[i].len;
		pp->seg[i] = blob.seg[i];
	}
	return !blob.count || sum >= p->len ? 0 : -EPROTO;
}

static int pull_chunk(struct hd_shm_link *l, struct hd_pull *p, uint32_t k)
{
	struct iovec far[HD_SHM_OFFER_SEGS];

	hd_shm_fetch_far(hd_shm_fetch_of(p), far);
	return hd_shm_copy_chunk(l, p->iov, far, p->len, k, false);
}

/* Ask for help, where that is of use, and there is room for it. */
static void pull_ask(struct hd_shm_link *l, struct hd_pull *p)
{
	struct hd_shm_fetch *pp = hd_shm_fetch_of(p);
	struct hd_shm_seg seg[HD_SHM_SEGS];
	struct hd_pkt pkt = { .kind = HD_SHM_PKT_HELP, .op = pp->number, .tag = p->len };

	if (pp->after || (pp->flags & (HD_SHM_FETCH_ASKED | HD_SHM_FETCH_ALONE | HD_SHM_FETCH_LOST)) ||
	    (pp->copy == NO_COPY && !copy_open(l, pp, pp->next)))
		return;
	for (int i = 0; i < p->count; i++)
		seg[i] = (struct hd_shm_seg){ (uintptr_t)p->iov[i].iov_base, p->iov[i].iov_len };
	pkt.dst = pp->copy;
	pkt.src = l->copy_gen[pp->copy];
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
static bool pull_aside(struct hd_shm_link *l, struct hd_pull *p)
{
	struct hd_shm_fetch *pp = hd_shm_fetch_of(p);

	if ((pp->flags & (HD_SHM_FETCH_ALONE | HD_SHM_FETCH_ASIDE)) || !hd_shm_they_can(l))
		return false;
	copy_shut(l, p, HD_SHM_AFTER_ASIDE);
	if (copy_leave(l, pp))
		aside_now(pp);
	return true;
}

void hd_shm_fetch_end(struct hd_shm_link *l, struct hd_pull *p)
{
	struct hd_shm_fetch *pp = hd_shm_fetch_of(p);

	if (pp->flags & HD_SHM_FETCH_IN_ROW)
		hd_shm_row_leave(l, p);
	else if (pp->flags & HD_SHM_FETCH_LISTED)
		TAILQ_REMOVE(&l->pulls, p, entry);
	pp->flags = 0;
}

/* One that is shut goes on as soon as the helper is out of it. Returns whether somebody was told of its end, who may have changed the list. */
static bool pull_after(struct hd_shm_link *l, struct hd_pull *p)
{
	static const int errors[] = {
		[HD_SHM_AFTER_DONE] = 0, [HD_SHM_AFTER_FAILED] = -EPERM, [HD_SHM_AFTER_WITHDRAWN] = -ECANCELED
	};
	struct hd_shm_fetch *pp = hd_shm_fetch_of(p);

	if (!copy_leave(l, pp) || pp->after == HD_SHM_AFTER_LOST)
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
static bool pull_take(struct hd_shm_link *l, struct hd_pull *p, uint32_t *k)
{
	struct hd_shm_fetch *pp = hd_shm_fetch_of(p);

	if (pp->after || pp->flags & (HD_SHM_FETCH_ASIDE | HD_SHM_FETCH_LOST))
		return false;
	if (pp->next >= hd_shm_chunks(p->len)) /* whatever the claim says */
		return false;
	if (pp->copy != NO_COPY &&
	    !hd_shm_take_chunk(&copy_of(l, pp)->claim, l->copy_gen[pp->copy], hd_shm_chunks(p->len)))
		return false;
	*k = pp->next++;
	pp->ours++;
	return true;
}

/* The chunk that the helper gives back, if it does. false: nobody can copy it. */
static bool pull_take_back(struct hd_shm_link *l, struct hd_pull *p)
{
	struct hd_shm_fetch *pp = hd_shm_fetch_of(p);
	uint32_t value;

	if (pp->copy == NO_COPY || (pp->flags & HD_SHM_FETCH_ALONE))
		return true;
	value = copy_word(l, pp, &copy_of(l, pp)->returned);
	if (!value)
		return true;
	pp->flags |= HD_SHM_FETCH_ALONE;
	if (pp->flags & HD_SHM_FETCH_ASIDE)
		return false;
	if (value == HD_SHM_NO_CHUNK)
		return true;
	if (value > hd_shm_chunks(p->len) || pull_chunk(l, p, value - 1))
		return false;
	pp->ours++;
	return true;
}

/* What the end of a pull is worth: does the offer still stand, now that everything has been copied? */
enum hd_shm_fetch_state hd_shm_fetch_verdict(struct hd_shm_link *l, const struct hd_shm_fetch *pp,
					     enum hd_shm_fetch_state state)
{
	atomic_thread_fence(memory_order_acquire); /* after everything that was copied */
	if (atomic_load_explicit(hd_shm_offer_word(l, false, pp->number), memory_order_acquire) != pp->number)
		return HD_SHM_FETCH_WITHDRAWN;
	return state;
}

static bool sender_gone(const struct hd_shm_link *l)
{
	return l->state == HD_SHM_ENDING || atomic_load_explicit(&l->other->closed, memory_order_relaxed);
}

static enum hd_shm_fetch_state pull_look(struct hd_shm_link *l, struct hd_pull *p)
{
	struct hd_shm_fetch *pp = hd_shm_fetch_of(p);
	uint64_t chunks = hd_shm_chunks(p->len), helped = 0;

	if (pp->after || pp->flags & HD_SHM_FETCH_LOST)
		return HD_SHM_FETCH_WAITS;
	if (!pull_take_back(l, p))
		return hd_shm_fetch_verdict(l, pp, HD_SHM_FETCH_FAILED);
	if (pp->copy != NO_COPY)
		helped = copy_word(l, pp, &copy_of(l, pp)->helped);
	return pp->ours + helped < chunks ? HD_SHM_FETCH_WAITS
					  : hd_shm_fetch_verdict(l, pp, HD_SHM_FETCH_DONE);
}

/* Copy the next chunk that is left for us, if there is one; *worked says so. */
static enum hd_shm_fetch_state pull_step(struct hd_shm_link *l, struct hd_pull *p, bool *worked)
{
	uint32_t k;

	if (!pull_take(l, p, &k))
		return HD_SHM_FETCH_WAITS;
	*worked = true;
	if (!pull_chunk(l, p, k))
		return pull_look(l, p);
	if (hd_shm_fetch_verdict(l, hd_shm_fetch_of(p), HD_SHM_FETCH_FAILED) == HD_SHM_FETCH_WITHDRAWN)
		return HD_SHM_FETCH_WITHDRAWN;
	return pull_aside(l, p) ? HD_SHM_FETCH_WAITS : HD_SHM_FETCH_FAILED;
}

/*
 * The sender is gone and the engine will hear of it when the link goes down; until then this pull just waits.
 */
static void pull_lose(struct hd_shm_link *l, struct hd_pull *p)
{
	copy_shut(l, p, HD_SHM_AFTER_LOST);
	hd_shm_fetch_of(p)->flags |= HD_SHM_FETCH_LOST;
}

static void pull_list(struct hd_shm_link *l, struct hd_pull *p, unsigned flags)
{
	hd_shm_fetch_of(p)->flags = (uint8_t)(HD_SHM_FETCH_LISTED | flags);
	TAILQ_INSERT_TAIL(&l->pulls, p, entry);
	l->attention = true;
	hd_shm_heat(l);
	hd_node_stir(l->base.node);
	pull_ask(l, p);
}

/* At once, and without help. */
enum hd_shm_fetch_state hd_shm_fetch_alone(struct hd_shm_link *l, struct hd_pull *p)
{
	struct iovec far[HD_SHM_OFFER_SEGS];
	bool failed;

	hd_shm_fetch_far(hd_shm_fetch_of(p), far);
	failed = hd_shm_copy_part(l, p->iov, far, 0, p->len, false);
	return hd_shm_fetch_verdict(l, hd_shm_fetch_of(p), failed ? HD_SHM_FETCH_FAILED : HD_SHM_FETCH_DONE);
}

/* By us alone, at once? What is not worth the request for help is, and what something else waits behind. */
static bool is_single(const struct hd_pull *p, const struct hd_shm_slot *next)
{
	return p->len <= HD_SHM_CHUNK_ONE || (p->len <= HD_SHM_SINGLE && next);
}

/* It was tried at once, or could not be. 0: it is done, or goes on in the list; negative: it has come to its end. */
int hd_shm_fetch_go_on(struct hd_shm_link *l, struct hd_pull *p, enum hd_shm_fetch_state state)
{
	if (state == HD_SHM_FETCH_DONE)
		p->done(p, 0);
	else if (sender_gone(l))
		pull_list(l, p, HD_SHM_FETCH_LOST);
	else if (state == HD_SHM_FETCH_WITHDRAWN)
		return -ECANCELED;
	else if (state == HD_SHM_FETCH_FAILED && !hd_shm_they_can(l))
		return -EPERM;
	else
		pull_list(l, p,
			  (state == HD_SHM_FETCH_FAILED ? HD_SHM_FETCH_ASIDE : 0) |
				  (hd_shm_they_can(l) ? 0 : HD_SHM_FETCH_ALONE));
	return 0;
}

int hd_shm_pull(struct hd_link *link, struct hd_pull *p)
{
	struct hd_shm_link *l = hd_shm_link_of(link);
	struct hd_shm_fetch *pp = hd_shm_fetch_of(p);
	enum hd_shm_fetch_state state = HD_SHM_FETCH_FAILED;

	if (link->down)
		return -ENOTCONN;
	if (p->len > HD_SHM_PULL_MAX)
		return -EMSGSIZE;
	if (blob_parse(p, pp) < 0) {
		hd_shm_link_fail(l, -EPROTO, "an impossible offer of a message");
		return -EPROTO;
	}
	if (hd_shm_we_can(l) && pp->segs) {
		const struct hd_shm_slot *next = hd_shm_rx_slot(&l->rx);

		if (hd_shm_row_takes(l, p, next)) {
			hd_shm_row_join(l, p);
			return 0;
		}
		state = is_single(p, next) ? hd_shm_fetch_alone(l, p) : HD_SHM_FETCH_WAITS;
	}
	return hd_shm_fetch_go_on(l, p, state);
}

int hd_shm_unpull(struct hd_link *link, struct hd_pull *p, bool wait)
{
	struct hd_shm_link *l = hd_shm_link_of(link);

	if (!(hd_shm_fetch_of(p)->flags & HD_SHM_FETCH_LISTED))
		return 0;
	copy_shut(l, p, HD_SHM_AFTER_WITHDRAWN);
	for (int looks = 0; !copy_leave(l, hd_shm_fetch_of(p)); looks++) {
		if (!wait && looks == SETTLE_YIELDS)
			return -EINPROGRESS;
		copy_stand_by(looks);
	}
	hd_shm_fetch_end(l, p);
	return 0;
}

/* ---- progress ---- */

/* The pull has come to its end. Returns whether somebody was told, who may have changed the list. */
static bool pull_finish(struct hd_shm_link *l, struct hd_pull *p, enum hd_shm_fetch_state state)
{
	static const enum hd_shm_fetch_after after[] = { [HD_SHM_FETCH_DONE] = HD_SHM_AFTER_DONE,
							 [HD_SHM_FETCH_FAILED] = HD_SHM_AFTER_FAILED,
							 [HD_SHM_FETCH_WITHDRAWN] = HD_SHM_AFTER_WITHDRAWN };

	if (state == HD_SHM_FETCH_WITHDRAWN && sender_gone(l)) {
		pull_lose(l, p);
		return false;
	}
	copy_shut(l, p, after[state]);
	return pull_after(l, p);
}

/* Is its next chunk in our half? That of the helper is left to it as long as there is something else to do. */
static bool in_our_half(const struct hd_pull *p)
{
	const struct hd_shm_fetch *pp = (const struct hd_shm_fetch *)p->priv;

	return pp->copy == NO_COPY || pp->flags & HD_SHM_FETCH_ALONE ||
	       pp->next < (hd_shm_chunks(p->len) + 1) / 2;
}

/* There is nothing left in our own halves. */
static int pulls_assist(struct hd_shm_link *l)
{
	bool worked = false;
	struct hd_pull *p;

	TAILQ_FOREACH(p, &l->pulls, entry) {
		enum hd_shm_fetch_state state = pull_step(l, p, &worked);

		if (state != HD_SHM_FETCH_WAITS)
			pull_finish(l, p, state);
		if (worked)
			break;
	}
	return worked;
}

/* Every pull is looked at, but only one chunk is copied. */
static int list_poll(struct hd_shm_link *l)
{
	bool worked = false;
	struct hd_pull *p;

	TAILQ_FOREACH(p, &l->pulls, entry) {
		enum hd_shm_fetch_state state;

		if (hd_shm_fetch_of(p)->after) {
			if (pull_after(l, p))
				return 1;
			continue;
		}
		pull_ask(l, p);
		if (l->base.down)
			break; /* and the list is empty */
		state = pull_look(l, p);
		if (state == HD_SHM_FETCH_WAITS && !worked && in_our_half(p))
			state = pull_step(l, p, &worked);
		if (state != HD_SHM_FETCH_WAITS && pull_finish(l, p, state))
			return 1;
		if (hd_shm_fetch_of(p)->copy == NO_COPY && worked)
			break; /* those behind it are not begun either */
	}
	return worked ? 1 : pulls_assist(l);
}

int hd_shm_pulls_poll(struct hd_shm_link *l)
{
	int n = TAILQ_EMPTY(&l->row) ? 0 : hd_shm_row_poll(l);

	return n + list_poll(l);
}

static bool pull_arm(struct hd_shm_link *l, struct hd_pull *p)
{
	const struct hd_shm_fetch *pp = hd_shm_fetch_of(p);
	uint32_t next = pp->next;

	if (pp->flags & HD_SHM_FETCH_LOST)
		return false;
	if (pp->after)
		return pp->copy == NO_COPY || is_settled(l, pp);
	if (pull_look(l, p) != HD_SHM_FETCH_WAITS)
		return true;
	if (pp->copy != NO_COPY)
		next = (uint32_t)atomic_load_explicit(&copy_of(l, pp)->claim, memory_order_relaxed);
	else if (!(pp->flags & HD_SHM_FETCH_ALONE) && l->copy_used != UINT32_MAX)
		return true; /* help can be asked for by now */
	return !(pp->flags & HD_SHM_FETCH_ASIDE) && next < hd_shm_chunks(p->len);
}

bool hd_shm_pulls_arm(struct hd_shm_link *l)
{
	struct hd_pull *p;

	if (!TAILQ_EMPTY(&l->row))
		return true;
	TAILQ_FOREACH(p, &l->pulls, entry)
		if (pull_arm(l, p))
			return true;
	return false;
}

/* Nobody is told. Those whose copy a helper is in the middle of stay. */
void hd_shm_pulls_stop(struct hd_shm_link *l)
{
	struct hd_pull *p, *next;

	while ((p = TAILQ_FIRST(&l->row)))
		hd_shm_fetch_end(l, p);
	for (p = TAILQ_FIRST(&l->pulls); p; p = next) {
		next = TAILQ_NEXT(p, entry);
		copy_shut(l, p, HD_SHM_AFTER_WITHDRAWN);
		if (copy_leave(l, hd_shm_fetch_of(p)))
			hd_shm_fetch_end(l, p);
	}
}

bool hd_shm_settled(struct hd_link *link)
{
	struct hd_shm_link *l = hd_shm_link_of(link);

	hd_shm_pulls_stop(l);
	return TAILQ_EMPTY(&l->pulls);
}

void hd_shm_pulls_end(struct hd_shm_link *l)
{
	for (int looks = 0; !hd_shm_settled(&l->base); looks++)
		copy_stand_by(looks);
}
