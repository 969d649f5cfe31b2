/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Completion queues: a ring under the node's lock, and a list in memory for what it cannot take, so
 * that nothing is ever lost.
 */
#include "base/aligned.h"
#include "base/log.h"
#include "engine/core/core.h"
#include "engine/event/event.h"
#include "engine/event/waiters.h"

#include <errno.h>
#include <stdlib.h>

#define CQ_LEAST 64 /* where nobody counts on being told that there is no more room */
#define CQ_MOST (1u << 20)

static uint32_t ring_size(uint32_t wanted, bool overruns)
{
	uint32_t n = overruns ? 1 : CQ_LEAST;

	while (n < wanted && n < CQ_MOST)
		n *= 2;
	return n;
}

/*
 * As many entries as were asked for, or all that the ring takes, or an error, which nobody
 * should have to wait behind.
 */
static bool cq_ready(struct hd_waiters *w, uint64_t wanted)
{
	const struct hd_cq_ring *r = &hd_container(w, struct hd_cq, w)->r;
	uint32_t have = r->tail - r->head;

	if (have >= wanted || (have && r->overflowed))
		return true;
	for (uint32_t i = r->head; i != r->tail; i++)
		if (r->ring[i & r->mask].err)
			return true;
	return false;
}

int hd_cq_open(struct hd_node *node, const struct hd_cq_attr *attr, struct hd_cq **out)
{
	struct hd_cq *cq = calloc(1, sizeof(*cq));
	uint32_t n = ring_size(attr->size, attr->overruns);
	int rc;

	if (!cq)
		return -ENOMEM;
	cq->r.ring = hd_aligned_alloc(64, n * sizeof(*cq->r.ring));
	if (!cq->r.ring) {
		free(cq);
		return -ENOMEM;
	}
	cq->r.mask = n - 1;
	cq->r.gathering = &hd_core(node)->gathering;
	cq->node = node;
	cq->overruns = attr->overruns;
	cq->forgets = attr->forgets;
	cq->on_overrun = attr->on_overrun;
	cq->arg = attr->arg;
	cq->channel = attr->channel;
	cq->item = attr->item;
	cq->tells = attr->tells;
	cq->w.any_signal = attr->any_signal;
	STAILQ_INIT(&cq->overflow);
	rc = hd_waiters_init(&cq->w, node, &cq->r.armed, cq_ready, attr->waitable);
	if (rc < 0) {
		free(cq->r.ring);
		free(cq);
		return rc;
	}
	hd_events(node)->cqs++;
	*out = cq;
	return 0;
}

static void overflow_free(struct hd_overflow *o)
{
	if (o->read)
		o->read(o);
	free(o);
}

int hd_cq_close(struct hd_cq *cq)
{
	struct hd_overflow *o;

	if (cq->users)
		return -EBUSY;
	hd_timer_stop(cq->node, &cq->gather_timer);
	while ((o = STAILQ_FIRST(&cq->overflow))) {
		STAILQ_REMOVE_HEAD(&cq->overflow, entry);
		overflow_free(o);
	}
	hd_waiters_fini(&cq->w);
	hd_events(cq->node)->cqs--;
	free(cq->r.ring);
	free(cq);
	return 0;
}

/* ---- the node's own -------------------------------------------------------------------------- */

void hd_events_init(struct hd_node *node)
{
	TAILQ_INIT(&hd_events(node)->due);
}

/*
 * So that the data path tests no pointer. It is full: everything goes to
 * hd_cq_overflow, which swallows it.
 */
int hd_events_open(struct hd_node *node)
{
	struct hd_events *events = hd_events(node);
	int rc = hd_cq_open(node, &(struct hd_cq_attr){ .size = 1 }, &events->no_cq);

	if (rc)
		return rc;
	events->cqs--;
	events->no_cq->none = true;
	events->no_cq->r.head = 0;
	events->no_cq->r.tail = events->no_cq->r.mask + 1;
	return 0;
}

void hd_events_close(struct hd_node *node)
{
	if (!hd_events(node)->no_cq)
		return;
	hd_events(node)->cqs++;
	hd_cq_close(hd_events(node)->no_cq);
}

/* ---- notice ---------------------------------------------------------------------------------- */

static void notice(struct hd_cq *cq)
{
	cq->notice = HD_NOTICE_NONE;
	cq->gathered = 0;
	cq->told = cq->r.tail;
	hd_timer_stop(cq->node, &cq->gather_timer);
	hd_waiters_keep(&cq->w, false);
	hd_channel_post(cq->channel, cq->item);
}

static void gathered_enough(struct hd_timer *timer)
{
	notice(hd_container(timer, struct hd_cq, gather_timer));
}

/* The program is to be told of one more: not yet? */
static bool is_gathering(struct hd_cq *cq, const struct hd_cqe *e)
{
	if (cq->gather <= 1 || !cq->gather_us || e->err || ++cq->gathered >= cq->gather)
		return false;
	if (cq->gathered == 1)
		hd_timer_set(cq->node, &cq->gather_timer, (uint64_t)cq->gather_us * 1000);
	return true;
}

/* Somebody wants to know of this entry. */
static void pushed(struct hd_cq *cq, const struct hd_cqe *e)
{
	bool told = cq->notice == HD_NOTICE_ANY ||
		    (cq->notice == HD_NOTICE_SOLICITED && (e->err || e->flags & HD_C_SOLICITED));

	if (cq->tells && !cq->tells(cq->arg, e)) {
		if (cq->too_few)
			hd_wake(&cq->w);
		return;
	}
	if (told && !is_gathering(cq, e))
		notice(cq);
	hd_wake(&cq->w);
}

/* ---- what does not fit ----------------------------------------------------------------------- */

/* The program was to see to it that the ring is never full. What is in it stays to be read. */
static void overrun(struct hd_cq *cq)
{
	bool first = !cq->overrun;

	cq->overrun = cq->r.overflowed = true;
	if (first) {
		hd_warn("a completion queue of %u entries has been overrun, and is of no use any more: open it with as many "
			"entries as requests may be under way, or read it in time",
			cq->r.mask + 1);
		if (cq->on_overrun)
			cq->on_overrun(cq->arg);
	}
	if (cq->r.armed)
		hd_wake(&cq->w);
}

/* hd_cq_overflow: the ring is full: keep the completion in memory, in order. NULL: it is lost. */
struct hd_overflow *hd_cq_overflow(struct hd_cq *cq, const struct hd_cqe *e)
{
	struct hd_overflow *o;

	if (cq->none || cq->forgets)
		return NULL;
	if (cq->overruns) {
		overrun(cq);
		return NULL;
	}
	o = malloc(sizeof(*o));
	if (!o) {
		HD_LOG_EVERY_MS(
			1000, HD_LOG_ERROR,
			"a completion is lost: its queue of %u entries is full, and there is no memory: open it with more, or read it in time",
			cq->r.mask + 1);
		return NULL;
	}
	o->read = NULL;
	o->cqe = *e;
	STAILQ_INSERT_TAIL(&cq->overflow, o, entry);
	cq->r.overflowed = true;
	hd_cq_check(cq);
	if (cq->r.armed)
		pushed(cq, e);
	return o;
}

/* hd_cq_refill: an entry was read while others wait in memory: move what fits. */
void hd_cq_refill(struct hd_cq *cq)
{
	struct hd_cq_ring *r = &cq->r;
	struct hd_overflow *o;

	if (cq->overrun) {
		if (r->head == r->tail)
			r->ring[r->tail++ & r->mask] = (struct hd_cqe){ .err = HD_S_OVERRUN };
		return;
	}
	while (r->tail - r->head <= r->mask && (o = STAILQ_FIRST(&cq->overflow))) {
		STAILQ_REMOVE_HEAD(&cq->overflow, entry);
		r->ring[r->tail++ & r->mask] = o->cqe;
		overflow_free(o);
	}
	r->overflowed = !STAILQ_EMPTY(&cq->overflow) || hd_core(cq->node)->gate.dead;
	hd_cq_check(cq);
}

/* ---- being told ------------------------------------------------------------------------------ */

void hd_cq_moderate(struct hd_cq *cq, uint32_t count, uint32_t us)
{
	hd_assert_locked(cq->node);
	cq->gather = count;
	cq->gather_us = us;
	cq->gather_timer.fn = gathered_enough;
	if (cq->gathered)
		notice(cq);
}

/* hd_cq_pushed: somebody wants to know of the entry that was written last. */
void hd_cq_pushed(struct hd_cq *cq)
{
	pushed(cq, &cq->r.ring[(cq->r.tail - 1) & cq->r.mask]);
}

void hd_cq_set_channel(struct hd_cq *cq, struct hd_channel *channel, struct hd_channel_item *item)
{
	hd_assert_locked(cq->node);
	if (cq->notice != HD_NOTICE_NONE)
		hd_waiters_keep(&cq->w, false);
	cq->notice = HD_NOTICE_NONE;
	cq->gathered = 0;
	hd_timer_stop(cq->node, &cq->gather_timer);
	cq->channel = channel;
	cq->item = item;
}

void hd_cq_notify(struct hd_cq *cq, bool solicited)
{
	hd_assert_locked(cq->node);
	if (!cq->channel)
		return;
	if (cq->notice != HD_NOTICE_ANY)
		cq->notice = solicited ? HD_NOTICE_SOLICITED : HD_NOTICE_ANY;
	hd_waiters_keep(&cq->w, true);
	hd_channel_armed(cq->channel);
}

void hd_cq_notify_unread(struct hd_cq *cq, bool solicited)
{
	enum hd_cq_notice before = cq->notice;
	uint32_t i = cq->r.tail;

	hd_cq_notify(cq, solicited);
	if (cq->notice == before) /* what came since has been looked at */
		return;
	/*
	 * that of which the last event told is the program's to find; it is the newest but
	 * for those that came since
	 */
	for (; cq->channel && cq->notice != HD_NOTICE_NONE && i != cq->r.head && i != cq->told; i--)
		pushed(cq, &cq->r.ring[(i - 1) & cq->r.mask]);
}

/* ---- size ------------------------------------------------------------------------------------ */

uint32_t hd_cq_room(const struct hd_cq *cq)
{
	return cq->r.mask + 1;
}

uint32_t hd_cq_count(const struct hd_cq *cq)
{
	const struct hd_overflow *o;
	uint32_t n = cq->r.tail - cq->r.head;

	STAILQ_FOREACH(o, &cq->overflow, entry)
		n++;
	return n;
}

int hd_cq_resize(struct hd_cq *cq, uint32_t size)
{
	struct hd_cq_ring *r = &cq->r;
	uint32_t n = ring_size(size, cq->overruns), mask = n - 1;
	struct hd_cqe *ring;

	hd_assert_locked(cq->node);
	if (cq->overrun)
		return -EOVERFLOW;
	if (r->tail - r->head > n || r->overflowed)
		return -EINVAL;
	ring = hd_aligned_alloc(64, n * sizeof(*ring));
	if (!ring)
		return -ENOMEM;
	for (uint32_t i = r->head; i != r->tail; i++)
		ring[i & mask] = r->ring[i & r->mask];
	free(r->ring);
	r->ring = ring;
	r->mask = mask;
	hd_cq_check(cq);
	return 0;
}

void hd_cq_post(struct hd_cq *cq, const struct hd_cqe *e)
{
	struct hd_cqe *slot = hd_cq_slot(cq);

	if (cq->none)
		return;
	if (!slot) {
		hd_cq_overflow(cq, e);
		return;
	}
	*slot = *e;
	hd_cq_push(cq, slot);
}

void hd_cq_drop(struct hd_cq *cq, uint32_t ep)
{
	struct hd_cq_ring *r = &cq->r;
	struct hd_overflow *o, *next;
	uint32_t to = r->head, told = cq->told;

	for (uint32_t from = r->head; from != r->tail; from++)
		if (r->ring[from & r->mask].ep != ep)
			r->ring[to++ & r->mask] = r->ring[from & r->mask];
		else if ((int32_t)(cq->told - from) > 0)
			told--;
	r->tail = to;
	cq->told = told;
	for (o = STAILQ_FIRST(&cq->overflow); o; o = next) {
		next = STAILQ_NEXT(o, entry);
		if (o->cqe.ep != ep)
			continue;
		STAILQ_REMOVE(&cq->overflow, o, hd_overflow, entry);
		overflow_free(o);
	}
	if (r->overflowed)
		hd_cq_refill(cq);
}

bool hd_cq_has(const struct hd_cq *cq, uint32_t ep)
{
	const struct hd_cq_ring *r = &cq->r;
	const struct hd_overflow *o;

	for (uint32_t at = r->head; at != r->tail; at++)
		if (r->ring[at & r->mask].ep == ep)
			return true;
	STAILQ_FOREACH(o, &cq->overflow, entry)
		if (o->cqe.ep == ep)
			return true;
	return false;
}

uint32_t hd_cq_mark(const struct hd_cq *cq, uint32_t ep)
{
	const struct hd_cq_ring *r = &cq->r;
	const struct hd_overflow *o;
	/* what waits beside the ring gets the places behind it */
	uint32_t mark = r->head, at = r->tail;

	for (uint32_t i = r->head; i != r->tail; i++)
		if (r->ring[i & r->mask].ep == ep)
			mark = i + 1;
	STAILQ_FOREACH(o, &cq->overflow, entry) {
		at++;
		if (o->cqe.ep == ep)
			mark = at;
	}
	return mark;
}

bool hd_cq_is_past(const struct hd_cq *cq, uint32_t mark)
{
	return cq->r.head == cq->r.tail || (int32_t)(cq->r.head - mark) >= 0;
}

const struct hd_cqe *hd_cq_poll(struct hd_cq *cq)
{
	hd_assert_locked(cq->node);
	if (hd_unlikely(cq->r.armed))
		hd_waiters_disarm_fd(&cq->w);
	if (cq->r.head == cq->r.tail) {
		hd_node_poll(cq->node);
		if (cq->r.head == cq->r.tail)
			return NULL;
	}
	if (hd_unlikely(hd_core(cq->node)->gathering))
		hd_node_say(cq->node);
	return hd_cq_peek(cq);
}

int hd_cq_wait(struct hd_cq *cq, uint64_t wanted, int timeout_ms)
{
	uint64_t most = (uint64_t)cq->r.mask + 1;

	return hd_waiters_wait(&cq->w, cq_ready, wanted < most ? wanted : most, timeout_ms);
}

/* The same, and one of those that came since cq->mark is to be told of. */
static bool cq_told(struct hd_waiters *w, uint64_t wanted)
{
	struct hd_cq *cq = hd_container(w, struct hd_cq, w);
	const struct hd_cq_ring *r = &cq->r;
	bool enough = r->tail - r->head >= wanted, told = false;

	if (r->overflowed)
		return true;
	if ((int32_t)(cq->mark - r->head) < 0)
		cq->mark = r->head;
	for (uint32_t i = cq->mark; i != r->tail && !told; i++)
		told = !cq->tells || cq->tells(cq->arg, &r->ring[i & r->mask]);
	cq->too_few = told && !enough;
	return told && enough;
}

int hd_cq_wait_told(struct hd_cq *cq, uint64_t wanted, int timeout_ms)
{
	bool there;

	hd_node_lock(cq->node);
	if (wanted > cq->r.mask + UINT64_C(1))
		wanted = cq->r.mask + UINT64_C(1);
	cq->mark = cq->r.tail;
	cq->too_few = false;
	cq->w.interrupts = true;
	there = cq->r.overflowed || cq->r.tail - cq->r.head >= wanted;
	hd_node_unlock(cq->node);
	return there ? 0 : hd_waiters_wait(&cq->w, cq_told, wanted, timeout_ms);
}

int hd_cq_join(struct hd_cq *cq, struct hd_wset *set)
{
	return hd_waiters_join(&cq->w, set);
}

void hd_cq_leave(struct hd_cq *cq)
{
	hd_waiters_leave(&cq->w);
}

void hd_cq_signal(struct hd_cq *cq)
{
	hd_waiters_signal(&cq->w);
}

int hd_cq_fd(struct hd_cq *cq)
{
	return cq->w.epoll_fd;
}

int hd_cq_arm(struct hd_cq *cq)
{
	return hd_waiters_arm_fd(&cq->w);
}
