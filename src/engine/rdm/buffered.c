/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Buffered receives, fi_msg(3): a message is handed to the program where it lies, in the engine's
 * memory, and stays there until it is claimed (received into a buffer after all) or discarded. What
 * the program gets is a handle, struct hd_handed.
 *
 *	 arrives ──► whole: ready ──────────────────────────► told (completion)
 *	        └──► request to send: unfetched ─► fetching ─►┘ └──► claimed, discarded: freed
 *
 * Fetching: the beginning is fetched, as much as was asked for.
 *
 * Programs are told in the order in which messages came, so one that is not ready keeps those
 * behind it waiting, in `line`. Fetched beginnings are no part of the credit that their peers have
 * spent; they are counted where windows are, and wait while those have taken everything.
 *
 * Handles come from pages of their own which stay until the queue is closed, so that a
 * stale one can be looked at; they are used again in the order in which they came back, so
 * that it is noticed for a while.
 */
#include "base/aligned.h"
#include "base/log.h"
#include "engine/event/event.h"
#include "engine/rdm/unexpected.h"
#include "engine/rq/rq.h"
#include "engine/xfer/xfer.h"

#include <stdlib.h>
#include <string.h>

enum handle_state {
	HANDLE_FREE,
	HANDLE_READY, /* all that shall be told of is here, once the message has arrived */
	HANDLE_UNFETCHED,
	HANDLE_FETCHING,
	HANDLE_TOLD,
};

struct hd_handle {
	struct hd_handed pub; /* first: what programs see */
	struct hd_msg *msg;
	void *front;	     /* the beginning of a message that was announced */
	struct fetch *fetch; /* HANDLE_FETCHING */
	uint32_t want;	     /* bytes of front */
	uint16_t status;     /* enum hd_status: the message came to nothing */
	uint8_t state;
	TAILQ_ENTRY(hd_handle) entry; /* line, or unused */
};
static_assert(sizeof(struct hd_handle) == 64, "a handle is a cache line");

/* The beginning of an announced message comes in. */
struct fetch {
	struct hd_transfer t; /* first */
	struct hd_msg *msg;
	struct iovec iov; /* its handle's front */
};

#define PAGE 4096u
#define PER_PAGE (PAGE / sizeof(struct hd_handle))
#define KEEP_FREE 32u /* handles that wait at least before one is used again */

TAILQ_HEAD(hd_handles, hd_handle);

struct hd_buffered {
	struct hd_node *node;
	struct hd_buffered_attr attr;
	struct hd_handles line;	  /* messages that the program has not been told of, in order */
	struct hd_handles unused; /* oldest first */
	size_t unused_count;
	struct hd_handle *unfetched; /* the first in line whose beginning has not been asked for */
	uint64_t fetched;	     /* units of beginnings that are here or on their way */
	int paused;		     /* go_on is at work, or an endpoint is being closed, or deaf */
	bool deaf;		     /* nobody reads yet what the program would be told */
	bool again;
	struct hd_handle **pages; /* by address */
	size_t page_count;
};

/* ---- handles --------------------------------------------------------------------------------- */

static void buffered_close(struct hd_rq *rq)
{
	struct hd_buffered *b = rq->buffered;

	for (size_t i = 0; i < b->page_count; i++)
		free(b->pages[i]);
	free(b->pages);
	free(b);
	rq->buffered = NULL;
}

/* The first page that does not lie before this address. */
static size_t page_find(const struct hd_buffered *b, uintptr_t at)
{
	size_t low = 0, high = b->page_count;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if ((uintptr_t)b->pages[middle] < at)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static bool page_add(struct hd_buffered *b)
{
	struct hd_handle **pages = realloc(b->pages, (b->page_count + 1) * sizeof(struct hd_handle *));
	struct hd_handle *page;
	size_t at;

	if (!pages)
		return false;
	b->pages = pages;
	page = hd_aligned_alloc(PAGE, PAGE);
	if (!page)
		return false;
	at = page_find(b, (uintptr_t)page);
	memmove(&pages[at + 1], &pages[at], (b->page_count - at) * sizeof(struct hd_handle *));
	pages[at] = page;
	b->page_count++;
	memset(page, 0, PAGE);
	for (size_t i = 0; i < PER_PAGE; i++)
		TAILQ_INSERT_TAIL(&b->unused, &page[i], entry);
	b->unused_count += PER_PAGE;
	return true;
}

static struct hd_handle *handle_get(struct hd_buffered *b)
{
	struct hd_handle *h;

	if (hd_unlikely(b->unused_count < KEEP_FREE) && !page_add(b) && !b->unused_count)
		return NULL;
	h = TAILQ_FIRST(&b->unused);
	TAILQ_REMOVE(&b->unused, h, entry);
	b->unused_count--;
	return h;
}

static void handle_put(struct hd_buffered *b, struct hd_handle *h)
{
	h->msg->handle = NULL;
	h->msg = NULL;
	h->state = HANDLE_FREE;
	TAILQ_INSERT_TAIL(&b->unused, h, entry);
	b->unused_count++;
}

static struct hd_msg *buffered_find(const struct hd_rq *rq, const void *handed)
{
	const struct hd_buffered *b = rq->buffered;
	uintptr_t at = (uintptr_t)handed, page = at & ~(uintptr_t)(PAGE - 1);
	const struct hd_handle *h = handed;
	size_t i;

	if (!b || at % sizeof(struct hd_handle))
		return NULL;
	i = page_find(b, page);
	if (i == b->page_count || (uintptr_t)b->pages[i] != page || h->state != HANDLE_TOLD)
		return NULL;
	return h->msg;
}

/* ---- telling --------------------------------------------------------------------------------- */

static bool is_tagged(const struct hd_msg *m)
{
	return m->flags & HD_PKT_F_TAGGED;
}

static bool is_ready(const struct hd_handle *h)
{
	return h->state == HANDLE_READY && !h->msg->arriving;
}

/* A message that nobody asked for by tag and that will never be whole: as if it had not come. */
static void buffered_forget(struct hd_msg *m)
{
	hd_msg_unclaim(m);
	hd_msg_free(m);
}

static void buffered_tell_failure(struct hd_msg *m, const struct hd_cqe *told)
{
	struct hd_cqe e = *told;

	e.err = m->handle->status;
	e.len = 0;
	e.buf = NULL;
	e.flags &= ~(uint32_t)HD_C_MORE;
	hd_cntr_count_error(m->ep->cntrs.recv);
	hd_cq_post(m->ep->rx_cq, &e);
}

static void buffered_describe(const struct hd_buffered *b, const struct hd_handle *h, struct hd_cqe *e)
{
	const struct hd_msg *m = h->msg;
	bool more = m->len > (m->kind == HD_PKT_RTS ? h->want : b->attr.limit);

	e->ctx = (void *)&h->pub;
	e->buf = h->want ? h->front : (void *)m->data;
	e->len = m->len;
	e->tag = hd_wnode_tag(&m->w);
	e->imm = m->imm;
	e->olen = 0;
	e->src = hd_msg_source(m->ep->node, m);
	e->ep = m->ep->index;
	e->flags = hd_received_flags(m->flags) | (more ? HD_C_MORE : 0);
	e->err = 0;
}

static void buffered_tell(struct hd_buffered *b, struct hd_handle *h)
{
	struct hd_msg *m = h->msg;
	struct hd_cq *cq = m->ep->rx_cq;
	struct hd_cqe *e, spare;

	h->state = HANDLE_TOLD;
	if (hd_unlikely(h->status)) {
		buffered_describe(b, h, &spare);
		if (is_tagged(m))
			buffered_tell_failure(m, &spare);
		else
			buffered_forget(m);
		return;
	}
	hd_cntr_count(m->ep->cntrs.recv, m->len);
	e = hd_cq_slot(cq);
	buffered_describe(b, h, hd_likely(e != NULL) ? e : &spare);
	if (hd_likely(e != NULL))
		hd_cq_push(cq, e);
	else
		hd_cq_overflow(cq, &spare);
	if (hd_unlikely(m->flags & HD_PKT_F_ACK && m->kind == HD_PKT_EAGER)) {
		hd_msg_answer(m, HD_PKT_ACK, 0);
		m->flags &= (uint8_t)~HD_PKT_F_ACK;
	}
}

/* ---- beginnings ------------------------------------------------------------------------------ */

static void unfetched_next(struct hd_buffered *b)
{
	do
		b->unfetched = TAILQ_NEXT(b->unfetched, entry);
	while (b->unfetched && b->unfetched->state != HANDLE_UNFETCHED);
}

/* Whose it is, and stays when its peer is gone. */
static struct hd_budget *budget_of(const struct hd_msg *m)
{
	return (m->peer ? m->peer->share : m->share)->budget;
}

/* Is there room for its beginning? Of others' no more than their windows may grow by. */
static bool has_front_room(const struct hd_handle *h)
{
	const struct hd_budget *budget = budget_of(h->msg);

	return (budget->is_ours ? hd_credit_room(budget->node) : hd_budget_room(budget)) >= hd_units(h->want);
}

static void front_put(struct hd_buffered *b, struct hd_handle *h)
{
	uint32_t units = hd_units(h->want);

	hd_bytes_put(&hd_rqs(b->node)->bytes, h->front, h->want);
	h->front = NULL;
	b->fetched -= units;
	hd_budget_give(budget_of(h->msg), units);
}

static bool front_get(struct hd_buffered *b, struct hd_handle *h)
{
	uint32_t units = hd_units(h->want);

	h->front = hd_bytes_get(&hd_rqs(b->node)->bytes, h->want);
	if (!h->front)
		return false;
	b->fetched += units;
	hd_budget_take(budget_of(h->msg), units);
	return true;
}

static void buffered_fetched(struct hd_msg *m, enum hd_status status)
{
	m->handle->state = HANDLE_READY;
	hd_buffered_arrived(m, status);
}

static struct fetch *fetch_of(struct hd_transfer *t)
{
	return hd_container(t, struct fetch, t);
}

static void fetch_free(struct fetch *f)
{
	f->msg->handle->fetch = NULL;
	hd_transfer_fini(&f->t);
	hd_bytes_put(&hd_rqs(f->t.ep->node)->bytes, f, sizeof(*f));
}

static void fetch_done(struct hd_transfer *t, enum hd_status status)
{
	struct hd_msg *m = fetch_of(t)->msg;

	fetch_free(fetch_of(t));
	buffered_fetched(m, status);
}

static void fetch_dropped(struct hd_transfer *t)
{
	fetch_free(fetch_of(t));
}

static const struct hd_transfer_owner fetches = { .done = fetch_done, .dropped = fetch_dropped };

static struct fetch *fetch_make(struct hd_handle *h)
{
	struct hd_msg *m = h->msg;
	struct hd_bytes *bytes = &hd_rqs(m->ep->node)->bytes;
	struct fetch *f = hd_bytes_get(bytes, sizeof(*f));

	if (!f)
		return NULL;
	if (hd_transfer_init(&f->t, m->ep, &fetches) < 0) {
		hd_bytes_put(bytes, f, sizeof(*f));
		return NULL;
	}
	f->msg = m;
	f->iov = (struct iovec){ h->front, h->want };
	f->t.remote = m->op;
	f->t.len = m->len;
	f->t.want = h->want;
	f->t.iov = &f->iov;
	f->t.count = 1;
	f->t.part = true;
	return f;
}

static void fetch_begin(struct hd_handle *h)
{
	struct hd_msg *m = h->msg;

	h->state = HANDLE_FETCHING;
	h->fetch = fetch_make(h);
	if (!h->fetch) {
		buffered_fetched(m, HD_S_NO_MEMORY);
		return;
	}
	hd_intake_begin(&h->fetch->t, m->peer, m->data, m->room);
}

/*
 * Ask for the next beginning. False when there is none, or no room while others are here
 * that will be given back.
 */
static bool fetch_next(struct hd_buffered *b)
{
	struct hd_handle *h = b->unfetched;

	if (!h || (b->fetched && !has_front_room(h)))
		return false;
	unfetched_next(b);
	h->state = HANDLE_READY;
	if (!h->msg->peer) {
		h->status = HD_S_LOST;
	} else if (!front_get(b, h)) {
		h->status = HD_S_NO_MEMORY;
	} else {
		fetch_begin(h);
	}
	return true;
}

/* Nothing here calls itself: what happens meanwhile is seen to in a further round. */
static void go_on(struct hd_buffered *b)
{
	struct hd_handle *h;

	b->again = true;
	if (b->paused)
		return;
	b->paused++;
	while (b->again) {
		b->again = false;
		while (fetch_next(b))
			;
		while ((h = TAILQ_FIRST(&b->line)) && is_ready(h)) {
			TAILQ_REMOVE(&b->line, h, entry);
			buffered_tell(b, h);
		}
	}
	b->paused--;
}

void hd_buffered_pause(struct hd_rq *rq, bool on)
{
	struct hd_buffered *b = rq->buffered;

	if (!b)
		return;
	b->paused += on ? 1 : -1;
	if (!b->paused)
		go_on(b);
}

/* ---- messages -------------------------------------------------------------------------------- */

static uint32_t buffered_wanted(const struct hd_buffered *b, const struct hd_msg *m)
{
	uint64_t n = m->len <= b->attr.limit || m->len < b->attr.min ? m->len : b->attr.min;

	return m->kind == HD_PKT_RTS ? (uint32_t)n : 0;
}

int hd_buffered_take(struct hd_msg *m, void *ctx)
{
	struct hd_buffered *b = m->ep->rq->buffered;
	struct hd_handle *h = handle_get(b);

	if (!h)
		return -ENOMEM;
	h->pub.owner = is_tagged(m) ? NULL : b->attr.owner;
	h->pub.ctx = ctx;
	h->msg = m;
	h->front = NULL;
	h->fetch = NULL;
	h->want = buffered_wanted(b, m);
	h->status = 0;
	h->state = h->want ? HANDLE_UNFETCHED : HANDLE_READY;
	m->handle = h;
	hd_msg_claim(m);
	if (hd_likely(TAILQ_EMPTY(&b->line) && is_ready(h) && !b->deaf)) {
		buffered_tell(b, h);
		return 0;
	}
	TAILQ_INSERT_TAIL(&b->line, h, entry);
	if (h->want && !b->unfetched)
		b->unfetched = h;
	go_on(b);
	return 0;
}

void hd_buffered_arrived(struct hd_msg *m, enum hd_status status)
{
	m->handle->status = (int16_t)status;
	go_on(m->ep->rq->buffered);
}

bool hd_buffered_is_broken(const struct hd_msg *m)
{
	return m->handle && m->handle->status;
}

static void buffered_freed(struct hd_msg *m)
{
	struct hd_buffered *b = m->ep->rq->buffered;
	struct hd_handle *h = m->handle;

	if (h->fetch) {
		hd_transfer_forget(&h->fetch->t);
		fetch_free(h->fetch);
	}
	if (h->front)
		front_put(b, h);
	if (h->state != HANDLE_TOLD) {
		if (b->unfetched == h)
			unfetched_next(b);
		TAILQ_REMOVE(&b->line, h, entry);
	}
	handle_put(b, h);
	if (hd_unlikely(!TAILQ_EMPTY(&b->line)))
		go_on(b);
}

static const struct hd_rq_keeper keeper = { buffered_freed, buffered_close };

int hd_buffered_open(struct hd_rq *rq, const struct hd_buffered_attr *attr)
{
	struct hd_buffered *b = calloc(1, sizeof(*b));

	if (!b)
		return -ENOMEM;
	b->node = rq->node;
	b->attr = *attr;
	TAILQ_INIT(&b->line);
	TAILQ_INIT(&b->unused);
	rq->buffered = b;
	rq->keeper = &keeper;
	return 0;
}

int hd_rq_buffer(struct hd_rq *rq, const struct hd_buffered_attr *attr)
{
	hd_assert_locked(rq->node);
	if (!rq->buffered)
		return hd_buffered_open(rq, attr);
	rq->buffered->attr = *attr;
	return 0;
}

bool hd_buffered_is_deaf(const struct hd_rq *rq)
{
	return rq->buffered && rq->buffered->deaf;
}

/* What came early was entered with other limits, and for nobody. */
static void enter_anew(struct hd_buffered *b)
{
	struct hd_handle *h;

	b->unfetched = NULL;
	TAILQ_FOREACH(h, &b->line, entry) {
		h->pub.owner = is_tagged(h->msg) ? NULL : b->attr.owner;
		if (h->status)
			continue;
		h->want = buffered_wanted(b, h->msg);
		h->state = h->want ? HANDLE_UNFETCHED : HANDLE_READY;
		if (h->want && !b->unfetched)
			b->unfetched = h;
	}
}

void hd_buffered_rebind(struct hd_rq *rq, const struct hd_buffered_attr *attr, bool heard)
{
	struct hd_buffered *b = rq->buffered;

	b->attr = *attr;
	if (heard == !b->deaf)
		return;
	b->deaf = !heard;
	if (heard)
		enter_anew(b);
	hd_buffered_pause(rq, !heard);
}

/* ---- the calls ------------------------------------------------------------------------------- */

int hd_handed_recv(struct hd_ep *ep, struct hd_handed *handed, const struct hd_recv_args *args)
{
	struct hd_msg *m = buffered_find(ep->rq, handed);
	struct hd_recv_args a = *args;

	hd_assert_locked(ep->node);
	if (!m || is_tagged(m) != !!(args->flags & HD_RECV_TAGGED))
		return hd_core(ep->node)->gate.dead ? -ENOTRECOVERABLE : -EINVAL;
	if (hd_cq_full(m->ep->rx_cq))
		return -EAGAIN;
	a.ctx = handed->ctx;
	a.flags |= HD_RECV_CLAIM;
	return hd_claim_recv(ep, (struct hd_claim *)m, &a);
}

int hd_handed_discard(struct hd_ep *ep, struct hd_handed *handed)
{
	struct hd_msg *m = buffered_find(ep->rq, handed);

	hd_assert_locked(ep->node);
	if (!m)
		return hd_core(ep->node)->gate.dead ? -ENOTRECOVERABLE : -EINVAL;
	hd_claim_discard(ep, (struct hd_claim *)m, NULL);
	return 0;
}

bool hd_handed_is(const struct hd_ep *ep, const void *handed)
{
	return buffered_find(ep->rq, handed);
}
