/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * One-sided operations by the initiator itself. A node shows its endpoints and regions in its page
 * (node_page.h); a peer on the same host finds there what an operation wants, and its link copies
 * (hd_link_ops.direct), a slice in each turn of progress.
 *
 * Only success is decided here. What is not in the tables, is forbidden there, or cannot be copied
 * goes by packets, and the target, which then hears of it, refuses it or does it: so a violation is
 * always known at both ends, and there is one place that judges.
 *
 * Order. Operations that are executed here go one after the other for each endpoint. One of them
 * waits until the target has taken in all requests that went by packet before it, and, where
 * HD_EP_WAS promises it, all messages, of whatever endpoint: the token of hd_link_ops.fence, drawn
 * when the operation is posted. What goes by packets waits for those of its endpoint that are under
 * way here.
 */
#include "engine/xfer/direct.h"
#include "base/guard.h"
#include "base/log.h"
#include "engine/link/link.h"
#include "engine/name/name.h"
#include "engine/xfer/op.h"

#include <errno.h>
#include <string.h>

#define OPS_OF_A_TURN 16 /* finished in one, at most */

/* ---- what we find there: nothing of it is trusted -------------------------------------------- */

/* A target, and what is wanted of it. */
struct want {
	struct hd_page_tables *tables;
	uint32_t ep, ep_state; /* row of the endpoint */
	struct hd_page_ep row; /* what is in it, but for the state */
	uint32_t access;       /* HD_PAGE_MR_READ or HD_PAGE_MR_WRITE */
};

/* Where the bytes from some place on are, as far as one segment of a region has them. */
struct place {
	uint32_t mr, mr_state;
	uint64_t far, len;
	uint64_t before, all; /* bytes of that segment in front of it, and in all */
};

static bool find_ep(struct want *w, const struct hd_ep *ep, const struct hd_dest *dest)
{
	uint32_t flag = w->access & HD_PAGE_MR_READ ? HD_PAGE_EP_READ : HD_PAGE_EP_WRITE;
	const struct hd_page_ep *row;

	if (dest->remote >= HD_PAGE_EPS)
		return false;
	w->ep = dest->remote;
	row = &w->tables->eps[w->ep];
	w->ep_state = atomic_load_explicit(&row->state, memory_order_acquire);
	if (w->ep_state >> 16 != dest->gen || !(w->ep_state & flag))
		return false;
	memcpy((char *)&w->row + sizeof(row->state), (const char *)row + sizeof(row->state),
	       sizeof(*row) - sizeof(row->state));
	/* the state is looked at again before anything is done */
	atomic_thread_fence(memory_order_acquire);
	if (!(w->row.node.word[0] | w->row.node.word[1]))
		return true;
	return w->row.epoch == ep->page_epoch && w->row.from == ep->page_from &&
	       !memcmp(&w->row.node, hd_node_id(dest->node), sizeof(w->row.node));
}

/* A private copy of a row, if it is valid, and was while it was copied. */
static bool direct_read_row(const struct hd_page_mr *row, struct hd_page_mr *copy, uint32_t *state)
{
	*state = atomic_load_explicit(&row->state, memory_order_acquire);
	if (!(*state & 1))
		return false;
	memcpy((char *)copy + sizeof(copy->state), (const char *)row + sizeof(row->state),
	       sizeof(*copy) - sizeof(copy->state));
	atomic_thread_fence(memory_order_acquire);
	return atomic_load_explicit(&row->state, memory_order_relaxed) == *state;
}

static bool permits(const struct hd_page_mr *mr, const struct want *w, uint64_t key)
{
	return mr->key == key && mr->access & w->access && mr->protection == w->row.protection &&
	       (!mr->ep || mr->ep - 1 == w->ep) && mr->count <= HD_PAGE_SEGS;
}

/* The piece of [addr, addr + len) that begins at addr. Addresses are the target's own business. */
static bool find_piece(const struct hd_page_mr *mr, uint64_t addr, uint64_t len, struct place *p)
{
	uint64_t start = mr->base;

	for (uint32_t i = 0; i < mr->count; i++) {
		uint64_t at = addr - (mr->access & HD_PAGE_MR_VIRTUAL ? mr->seg[i].addr : start);

		if (at < mr->seg[i].len) {
			p->far = mr->seg[i].addr + at;
			p->before = at;
			p->all = mr->seg[i].len;
			p->len = mr->seg[i].len - at < len ? mr->seg[i].len - at : len;
			return true;
		}
		start += mr->seg[i].len;
	}
	return false;
}

/* Where `len` bytes from byte `at` of the segment on begin. */
static bool direct_find_place(const struct want *w, const struct hd_rma_seg *seg, uint64_t at,
			      struct place *p)
{
	uint32_t home = hd_page_mr_home(seg->key);
	struct hd_page_mr mr;

	if (seg->len > UINT64_MAX - seg->addr)
		return false;
	for (uint32_t i = 0; i < HD_PAGE_WINDOW; i++) {
		p->mr = (home + i) & (HD_PAGE_MRS - 1);
		if (direct_read_row(&w->tables->mrs[p->mr], &mr, &p->mr_state) && permits(&mr, w, seg->key))
			return find_piece(&mr, seg->addr + at, seg->len - at, p);
	}
	return false;
}

/* ---- whether an operation can be executed here ----------------------------------------------- */

static bool want_make(struct want *w, const struct hd_ep *ep, const struct hd_dest *dest, bool read)
{
	struct hd_node_page *page = dest->peer->link->page;

	if (!page)
		return false;
	w->tables = hd_page_tables(page);
	w->access = read ? HD_PAGE_MR_READ : HD_PAGE_MR_WRITE;
	return find_ep(w, ep, dest);
}

static bool direct_covers(const struct want *w, const struct hd_rma_seg *seg)
{
	struct place p;

	for (uint64_t at = 0; at < seg->len; at += p.len)
		if (!direct_find_place(w, seg, at, &p))
			return false;
	return true;
}

/* Nothing is begun that the target would refuse a part of. */
bool hd_direct_can(const struct hd_op *op)
{
	const struct hd_rma_run *run = hd_op_rma(op);
	struct want w;

	if (!op->t.len || !want_make(&w, op->t.ep, op->dest, hd_op_is_read(op)))
		return false;
	for (int i = 0; i < run->count; i++)
		if (!direct_covers(&w, &run->seg[i]))
			return false;
	return true;
}

bool hd_direct_before(const struct hd_op *op)
{
	const struct hd_op *o;

	TAILQ_FOREACH(o, &op->dest->peer->direct_ops, entry)
		if (o->t.ep == op->t.ep)
			return true;
	return false;
}

/* ---- order ----------------------------------------------------------------------------------- */

/*
 * Draw a token, unless everything before it is known to have arrived. -EAGAIN:
 * there is no room to ask.
 */
static int draw_token(struct hd_op *op, struct hd_peer *peer)
{
	if (op->flags & HD_SEND_WQE) /* its send queue sees to the order */
		return 0;
	if (op->has_token || hd_direct_all_taken(op->t.ep, peer))
		return 0;
	if (peer->link->ops->fence(peer->link, &op->token) < 0)
		return -EAGAIN;
	op->has_token = true;
	op->token_spent = hd_credit_spent(peer);
	op->token_requests = peer->requests;
	return 0;
}

static bool has_passed(struct hd_op *op, struct hd_peer *peer)
{
	if (!op->has_token)
		return true;
	if (!peer->link->ops->passed(peer->link, op->token))
		return false;
	op->has_token = false;
	if ((int32_t)(op->token_requests - peer->requests_taken) >=
	    0) { /* else a later answer has come since */
		peer->requests_taken = op->token_requests;
		peer->spent_taken = op->token_spent;
	}
	return true;
}

/* ---- copying --------------------------------------------------------------------------------- */

/* The next slice: as much as is in one segment of a region. */
static bool next_place(const struct hd_op *op, const struct want *w, struct place *p)
{
	const struct hd_rma_run *run = hd_op_rma(op);
	uint64_t at = op->t.at;

	for (int i = 0; i < run->count; i++) {
		if (at < run->seg[i].len)
			return direct_find_place(w, &run->seg[i], at, p);
		at -= run->seg[i].len;
	}
	return false;
}

/*
 * Does nobody else wait for this turn: no thread for the lock, no other peer, nothing that
 * the peer is to be sent, no operation of another endpoint? The kernel copies 4 MiB in one
 * call 4 % faster than in eight.
 */
static bool is_alone(const struct hd_ep *ep, const struct hd_peer *peer)
{
	const struct hd_push *busy = TAILQ_FIRST(&hd_core(ep->node)->pushing);
	const struct hd_op *first = TAILQ_FIRST(&peer->direct_ops);

	if (hd_core(ep->node)->gate.locked || (busy && (busy != &peer->push || TAILQ_NEXT(busy, entry))))
		return false;
	if (!TAILQ_EMPTY(&peer->queue) || !TAILQ_EMPTY(&peer->ctl) || !TAILQ_EMPTY(&peer->framing))
		return false;
	return !first || (first->t.ep == ep && TAILQ_LAST(&peer->direct_ops, hd_op_list)->t.ep == ep);
}

uint64_t hd_direct_most(const struct hd_ep *ep, const struct hd_peer *peer)
{
	return is_alone(ep, peer) ? HD_DIRECT_SLICE : HD_DIRECT_SHARE;
}

/* The last eight bytes are in one slice, for programs poll them; where one segment has them. */
static uint64_t slice_len(const struct hd_op *op, uint64_t len)
{
	uint64_t max, left;

	if (len <= HD_DIRECT_SHARE)
		return len;
	max = hd_direct_most(op->t.ep, op->dest->peer);
	if (len <= max)
		return len;
	left = op->t.len - op->t.at - max;
	return left < 8 ? max - 8 : max;
}

static void direct_aim(struct hd_direct *r, const struct want *w, const struct place *p)
{
	r->mr = p->mr;
	r->mr_state = p->mr_state;
	r->ep = w->ep;
	r->ep_state = w->ep_state;
	r->far = p->far;
}

static int64_t copy_slice(const struct hd_op *op)
{
	struct hd_link *link = op->dest->peer->link;
	struct iovec near[HD_IOV_MAX];
	struct hd_direct r = { .near = near, .out = !hd_op_is_read(op) };
	struct place p;
	struct want w;

	if (!want_make(&w, op->t.ep, op->dest, hd_op_is_read(op)) || !next_place(op, &w, &p))
		return -EOPNOTSUPP;
	direct_aim(&r, &w, &p);
	r.len = slice_len(op, p.len);
	r.last = op->t.at + r.len == op->t.len;
	r.count = hd_iov_slice(op->iov, op->t.count, op->t.at, r.len, near);
	return link->ops->direct(link, &r);
}

/*
 * A region that has changed since it was looked up is looked up once more, and then
 * is the target's business.
 */
static int64_t copy_some(const struct hd_op *op)
{
	int64_t n = copy_slice(op);

	return n == -ESTALE ? copy_slice(op) : n;
}

/* ---- the rest by packets --------------------------------------------------------------------- */

/* For people: why packets carry what might have been copied. */
static const char *why_packets(int err)
{
	switch (err) {
	case -ENOENT:
		return "its page does not show that memory, or not to us";
	case -ESTALE:
		return "the region has changed";
	case -EFAULT:
	case -EREMOTEIO:
		return "a handler of faults may open that memory";
	default:
		return "`heddle info --links` says why it is not possible";
	}
}

/* It may have to be begun again, for credit: that is told once. */
static void say_packets(struct hd_op *op, int err)
{
	if (op->told || !op->t.len || !op->dest->peer->link->page)
		return;
	op->told = true;
	hd_event("%s: no direct copy of %llu bytes of a %s at peer " HD_PEER_ID ", but packets: %s",
		 hd_ep_text(op->t.ep).text, (unsigned long long)(op->t.len - op->t.at),
		 hd_op_is_read(op) ? "read" : "write", HD_PEER_ID_OF(op->dest->peer), why_packets(err));
}

/* -EOPNOTSUPP: it goes by packets, for this reason. */
static int not_by_us(struct hd_op *op, int err)
{
	if (hd_unlikely(hd_log_on(HD_LOG_DEBUG)))
		say_packets(op, err);
	return -EOPNOTSUPP;
}

/* Cut off what has been copied, so that nothing is done twice. -ENOMEM: nothing has happened. */
static int trim(struct hd_op *op)
{
	struct hd_rma_run *run = op->extra;
	uint64_t left = op->t.len - op->t.at, at = op->t.at;
	struct iovec rest[HD_IOV_MAX];
	void *copy = NULL;

	if (op->copy && left) {
		copy = hd_bytes_get(&hd_rqs(op->t.ep->node)->bytes, left);
		if (!copy)
			return -ENOMEM;
		memcpy(copy, (char *)op->copy + at, left);
	}
	op->t.count = hd_iov_slice(op->iov, op->t.count, at, left, rest);
	memcpy(op->iov, rest, sizeof(rest[0]) * (size_t)op->t.count);
	if (op->copy)
		hd_bytes_put(&hd_rqs(op->t.ep->node)->bytes, op->copy, op->t.len);
	op->copy = copy;
	if (copy)
		op->iov[0].iov_base = copy;
	run->done += at;
	for (int i = 0; i < run->count && at; i++) {
		uint64_t n = run->seg[i].len < at ? run->seg[i].len : at;

		run->seg[i].addr += n;
		run->seg[i].len -= n;
		at -= n;
	}
	op->t.len = left;
	op->t.at = 0;
	op->by_packet = true;
	return 0;
}

/* Those behind it draw new tokens: its packets go before them. */
static void follow_packets(struct hd_peer *peer, const struct hd_op *op)
{
	for (struct hd_op *o = TAILQ_NEXT(op, entry); o; o = TAILQ_NEXT(o, entry))
		o->redraw |= o->t.ep == op->t.ep;
}

static void list_enter(struct hd_op *op)
{
	hd_op_under(op, HD_OP_DIRECT);
	TAILQ_INSERT_TAIL(&op->t.pending.peer->direct_ops, op, entry);
	hd_op_fences(op);
	hd_peer_busy(op->t.pending.peer);
	/* what else is queued for the peer may wait for credit, which this does not need */
	hd_node_stir(op->t.ep->node);
}

/*
 * Leave the list for packets. 0: they are on their way; negative: not yet, and
 * it stands where it stood.
 */
static int go_by_packet(struct hd_op *op)
{
	struct hd_peer *peer = op->t.pending.peer;
	struct hd_op *next = TAILQ_NEXT(op, entry);
	int rc;

	if (!op->by_packet && trim(op) < 0)
		return -EAGAIN;
	follow_packets(peer, op);
	TAILQ_REMOVE(&peer->direct_ops, op, entry);
	hd_transfer_leave(&op->t);
	rc = op->kind->start(op);
	if (!rc)
		return 0;
	op->state = HD_OP_DIRECT;
	hd_transfer_join(&op->t, peer);
	if (next)
		TAILQ_INSERT_BEFORE(next, op, entry);
	else
		TAILQ_INSERT_TAIL(&peer->direct_ops, op, entry);
	return rc;
}

/* ---- progress -------------------------------------------------------------------------------- */

/*
 * Where memory is protected by a program that handles faults, the copies of packets ask it to open
 * that, as an access of its own does.
 */
static bool may_be_opened(const struct hd_op *op, int64_t failed)
{
	const struct hd_node_page *page = op->dest->peer->link->page;

	if (failed == -EFAULT)
		return hd_guard_asks();
	return page && atomic_load_explicit(&page->handles_faults, memory_order_relaxed);
}

enum step {
	STEP_WAITS, /* nothing could be done */
	STEP_MORE,  /* a slice is done */
	STEP_ENDED, /* the operation is not ours any more */
	STEP_PACKET /* the rest has to go by packets */
};

static bool may_go(struct hd_op *op, struct hd_peer *peer)
{
	if (hd_op_rma_fenced(op->t.ep, peer))
		return false;
	if (op->redraw) {
		op->has_token = false;
		if (draw_token(op, peer) < 0)
			return false;
		op->redraw = false;
	}
	return has_passed(op, peer);
}

static enum step direct_step(struct hd_op *op, struct hd_peer *peer)
{
	int64_t n;

	if (hd_unlikely(op->dest->peer != peer)) { /* the target's endpoint has closed */
		hd_op_done(op, HD_S_REFUSED);
		return STEP_ENDED;
	}
	if (op->by_packet)
		return STEP_PACKET;
	if (!may_go(op, peer))
		return STEP_WAITS;
	n = copy_some(op);
	if (n > 0)
		op->t.at += (uint64_t)n;
	if (op->t.at == op->t.len) {
		if (op->flags & HD_SEND_IMM)
			return STEP_PACKET;
		hd_op_done(op, 0);
		return STEP_ENDED;
	}
	if (n > 0)
		return STEP_MORE;
	if (n == -EAGAIN || n == -ENOTCONN)
		return STEP_WAITS;
	if ((n != -EFAULT && n != -EREMOTEIO) || may_be_opened(op, n)) {
		not_by_us(op, (int)n);
		return STEP_PACKET;
	}
	hd_op_done(op, n == -EFAULT ? HD_S_PROTECTION : HD_S_ACCESS);
	return STEP_ENDED;
}

int hd_direct_push(struct hd_peer *peer)
{
	uint32_t pass = ++hd_xfers(peer->node)->direct_pass;
	struct hd_op *op, *next;
	int n = 0;

	for (op = TAILQ_FIRST(&peer->direct_ops); op && n < OPS_OF_A_TURN && !peer->link->down; op = next) {
		struct hd_ep *ep = op->t.ep;
		enum step did;

		next = TAILQ_NEXT(op, entry);
		if (ep->direct_pass == pass)
			continue; /* one before it is not done */
		did = direct_step(op, peer);
		if (did == STEP_PACKET)
			did = go_by_packet(op) < 0 ? STEP_WAITS : STEP_ENDED;
		if (did != STEP_ENDED)
			ep->direct_pass = pass;
		n += did != STEP_WAITS;
		if (did == STEP_MORE)
			break; /* a slice is enough for one turn */
	}
	hd_xfer_check(peer);
	return n;
}

/* ---- beginning ------------------------------------------------------------------------------- */

/* It cannot end in the call: keep it. Its buffer may have been promised back. */
static int direct_keep(struct hd_op *op)
{
	int rc = hd_op_take_over(op);

	if (rc < 0) {
		if (!op->t.at && rc != -EFAULT)
			return -EAGAIN;
		hd_op_done(op, rc == -EFAULT ? HD_S_PROTECTION : HD_S_NO_MEMORY);
		return 0;
	}
	list_enter(op);
	return 0;
}

static int direct_begin(struct hd_op *op)
{
	int64_t at;

	if (!has_passed(op, op->dest->peer))
		return direct_keep(op);
	at = copy_some(op);
	if (at == -ENOTCONN)
		return (int)at;
	if (at == -EOPNOTSUPP || at == -ESTALE)
		return not_by_us(op, (int)at);
	if (at == -EFAULT || at == -EREMOTEIO) {
		if (may_be_opened(op, at))
			return not_by_us(op, (int)at);
		hd_op_done(op, at == -EFAULT ? HD_S_PROTECTION : HD_S_ACCESS);
		return 0;
	}
	op->t.at = at > 0 ? (uint64_t)at : 0;
	if (op->t.at < op->t.len)
		return direct_keep(op);
	if (!(op->flags & HD_SEND_IMM)) {
		hd_op_done(op, 0);
		return 0;
	}
	list_enter(op);
	go_by_packet(op); /* or soon */
	return 0;
}

int hd_direct_try(struct hd_op *op)
{
	struct hd_peer *peer = op->dest->peer;
	bool behind = !TAILQ_EMPTY(&peer->direct_ops) && hd_direct_before(op);

	if (op->by_packet)
		return -EOPNOTSUPP;
	if (!behind && op->t.len <= HD_DIRECT_SHORT && peer->link->ops->polls(peer->link))
		return -EOPNOTSUPP;
	if (!hd_direct_can(op))
		return behind ? -EAGAIN : not_by_us(op, -ENOENT);
	if (draw_token(op, peer) < 0)
		return -EAGAIN;
	op->t.at = 0;
	return behind ? direct_keep(op) : direct_begin(op);
}

/* ---- for those that end in one call ---------------------------------------------------------- */

bool hd_direct_find(struct hd_direct_seen *s, const struct hd_ep *ep, const struct hd_dest *dest,
		    const struct hd_rma_seg *seg, uint32_t access)
{
	struct place p;
	struct want w;

	hd_direct_seen_not(s);
	if (!want_make(&w, ep, dest, access == HD_PAGE_MR_READ) || !direct_find_place(&w, seg, 0, &p) ||
	    p.len != seg->len)
		return false;
	*s = (struct hd_direct_seen){ .key = seg->key,
				      .start = seg->addr - p.before,
				      .far = p.far - p.before,
				      .len = p.all,
				      .mr = p.mr,
				      .mr_state = p.mr_state,
				      .ep = w.ep,
				      .ep_state = w.ep_state,
				      .by = ep->index,
				      .epoch = ep->page_epoch,
				      .access = access,
				      .row = w.row };
	return true;
}
