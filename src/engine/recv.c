/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * The receive queue: posting, looking at and claiming what waits, cancelling. A queue is an object of its own; an endpoint's own
 * queue is one with a single user. What a message does when it comes is in deliver.c.
 */
#include "engine/recv.h"
#include "engine/conn.h"
#include "engine/order.h"
#include "engine/pair.h"

#include <stdlib.h>

/* ---- the object ---------------------------------------------------------------------------------------------------------------- */

int hd_rq_open(struct hd_node *node, bool directed, struct hd_rq **out)
{
	struct hd_rq *rq = calloc(1, sizeof(*rq));

	if (!rq)
		return -ENOMEM;
	rq->node = node;
	TAILQ_INIT(&rq->starved);
	for (int i = 0; i < 2; i++)
		hd_match_init(&rq->match[i], directed);
	LIST_INSERT_HEAD(&node->rq_list, rq, entry);
	node->rqs++;
	*out = rq;
	return 0;
}

int hd_rq_group(struct hd_rq *rq)
{
	const struct hd_match_groups groups = { hd_key_source_group, hd_key_message_group, rq->node };

	for (int i = 0; i < 2; i++)
		if (hd_match_group(&rq->match[i], &groups) < 0)
			return -ENOMEM;
	return 0;
}

static struct hd_match *match_of(struct hd_rq *rq, uint32_t flags)
{
	static_assert((int)HD_RECV_TAGGED == (int)HD_PKT_F_TAGGED && (int)HD_RECV_TAGGED == 1,
		      "the flag is the index");
	return &rq->match[flags & HD_RECV_TAGGED];
}

void hd_msg_answer(struct hd_msg *m, uint8_t kind, int err)
{
	struct hd_pkt pkt = { .kind = kind, .op = m->op, .imm = err };

	if (m->peer)
		hd_peer_send(m->peer, &pkt, NULL, 0);
}

/* Free a message that is out of the queue, and give its credit back: to its peer, or if that is gone, to whoever comes next. */
void hd_msg_free(struct hd_msg *m)
{
	struct hd_node *node = m->ep->node;

	if (hd_unlikely(m->handle != NULL))
		hd_buffered_freed(m);
	if (m->peer) {
		m->peer->rx_held -= m->units;
		hd_peer_free_units(m->peer, m->units);
	} else {
		node->window_units -= m->units;
	}
	hd_bytes_put(&node->bytes, m, sizeof(*m) + m->room);
}

/* Does the sender of an eager message wait for an answer still? DELIVERED alone has been answered once all of it was here. */
static bool is_unanswered(const struct hd_msg *m)
{
	return m->flags & HD_PKT_F_ACK || (m->flags & HD_PKT_F_DELIVERED && m->arriving);
}

/* A message is not wanted: the sender is told where it waits for an answer. */
void hd_msg_discard(struct hd_msg *m, int err)
{
	if (m->kind == HD_PKT_RTS)
		hd_msg_answer(m, HD_PKT_FIN, err);
	else if (is_unanswered(m))
		hd_msg_answer(m, err ? HD_PKT_FIN : HD_PKT_ACK, err);
	hd_msg_free(m);
}

static void drop_waiting(struct hd_rq *rq, bool (*pick)(const struct hd_msg *m, const void *arg),
			 const void *arg, int err)
{
	for (int i = 0; i < 2; i++) {
		struct hd_wnode *w = hd_match_first_waiting(&rq->match[i]), *next;

		for (; w; w = next) {
			struct hd_msg *m = hd_container(w, struct hd_msg, w);

			next = hd_match_next_waiting(w);
			if (!pick(m, arg))
				continue;
			hd_match_remove_waiting(&rq->match[i], w);
			hd_msg_discard(m, err);
		}
	}
}

struct drop_posted_arg {
	struct hd_rq *rq;
	struct hd_match *match;
	const struct hd_ep *ep;
};

static bool drop_posted(struct hd_mnode *n, void *arg)
{
	const struct drop_posted_arg *a = arg;
	struct hd_recv *r = hd_container(n, struct hd_recv, m);

	if (a->ep && r->ep != a->ep)
		return false;
	hd_match_unpost(a->match, n);
	if (!(r->flags & HD_RECV_MULTI) || !r->parts) /* else with its last part */
		hd_recv_free(a->rq->node, r);
	return false;
}

static bool msg_is_of_ep(const struct hd_msg *m, const void *ep)
{
	return m->ep == ep;
}

/* hd_rq_drop_posted: forget what the endpoint (NULL: whoever) has posted, without completions. */
void hd_rq_drop_posted(struct hd_rq *rq, struct hd_ep *ep)
{
	for (int i = 0; i < 2; i++) {
		struct drop_posted_arg arg = { rq, &rq->match[i], ep };

		hd_match_each_posted(&rq->match[i], drop_posted, &arg);
	}
}

/* hd_rq_drop_waiting: the endpoint closes: forget what waits for it. */
void hd_rq_drop_waiting(struct hd_rq *rq, struct hd_ep *ep)
{
	drop_waiting(rq, msg_is_of_ep, ep, ECONNREFUSED);
}

static bool msg_is_request_of(const struct hd_msg *m, const void *peer)
{
	return m->peer == peer && m->kind == HD_PKT_RTS;
}

/*
 * hd_rq_drop_peer: the peer is gone. What it has sent whole stays to be received; what it only promised is forgotten.
 */
void hd_rq_drop_peer(struct hd_rq *rq, struct hd_peer *peer)
{
	drop_waiting(rq, msg_is_request_of, peer, 0);
	for (int i = 0; i < 2; i++)
		for (struct hd_wnode *w = hd_match_first_waiting(&rq->match[i]); w;
		     w = hd_match_next_waiting(w)) {
			struct hd_msg *m = hd_container(w, struct hd_msg, w);

			if (m->peer == peer)
				m->peer = NULL;
		}
}

int hd_rq_close(struct hd_rq *rq)
{
	if (rq->users)
		return -EBUSY;
	hd_rq_drop_posted(rq, NULL);
	LIST_REMOVE(rq, entry);
	if (rq->limit.least)
		LIST_REMOVE(rq, limited);
	for (int i = 0; i < 2; i++)
		hd_match_fini(&rq->match[i]);
	hd_buffered_close(rq);
	rq->node->rqs--;
	free(rq);
	return 0;
}

/* ---- completing ------------------------------------------------------------------------------------------------------------------ */

static void tell_work(const struct hd_taken *t, struct hd_cqe *e)
{
	struct hd_work *work = t->ctx;

	e->ctx = NULL;
	work->done(work, e);
}

/* hd_recv_complete_work: a receive with HD_RECV_WORK has got its message. */
void hd_recv_complete_work(const struct hd_taken *t, const struct hd_received *m)
{
	struct hd_cqe e = { .buf = t->buf,
			    .len = m->len,
			    .tag = m->tag,
			    .imm = m->imm,
			    .src = m->src,
			    .ep = t->ep->index,
			    .flags = hd_received_flags(m->flags) };

	tell_work(t, &e);
}

void hd_recv_complete_error(const struct hd_taken *t, const struct hd_received *m)
{
	struct hd_cqe e = { .ctx = t->ctx,
			    .buf = t->buf,
			    .len = m->len < t->room ? m->len : t->room,
			    .tag = m->tag,
			    .imm = m->imm,
			    .olen = m->len > t->room ? m->len - t->room : 0,
			    .src = m->src,
			    .ep = t->ep->index,
			    .flags = hd_received_flags(m->flags) | (t->flags & HD_RECV_CLAIM) |
				     (hd_recv_releases(t) ? HD_C_MULTI_RECV : 0),
			    .err = m->err ? m->err : EMSGSIZE };

	if (m->err)
		e.len = e.olen = 0;
	if (t->flags & HD_RECV_WORK) {
		tell_work(t, &e);
		return;
	}
	hd_cntr_count_error(t->ep->rx_cntr);
	hd_cq_post(t->ep->rx_cq, &e);
}

/* The part of a multi-receive buffer that a message of len bytes gets; see recv.h. */
void hd_recv_take_multi(struct hd_rq *rq, struct hd_recv *r, uint64_t len, struct hd_taken *t,
			struct iovec *iov)
{
	uint64_t used = len < r->iov.iov_len ? len : r->iov.iov_len;
	uint64_t step = (used + 7) & ~UINT64_C(7); /* the next message begins aligned */
	uint64_t least = r->ep->min_multi ? r->ep->min_multi : 1;

	if (step > r->iov.iov_len)
		step = r->iov.iov_len;
	*iov = (struct iovec){ r->iov.iov_base, used };
	*t = (struct hd_taken){
		.ctx = r->ctx, .buf = r->iov.iov_base, .room = used, .flags = r->flags, .ep = r->ep, .whole = r
	};
	r->parts++;
	r->iov.iov_base = (char *)r->iov.iov_base + step;
	r->iov.iov_len -= step;
	if (r->iov.iov_len < least)
		hd_match_unpost(match_of(rq, r->flags), &r->m);
}

/* ---- a message that waited meets its receive ------------------------------------------------------------------------------------ */

static void describe(const struct hd_msg *m, struct hd_received *out)
{
	*out = (struct hd_received){ .len = m->len,
				     .tag = hd_wnode_tag(&m->w),
				     .imm = m->imm,
				     .src = hd_msg_source(m),
				     .flags = m->flags };
	if (m->flags & HD_MSG_WRITTEN && m->room == sizeof(out->tag)) /* see hd_deliver_written */
		memcpy(&out->tag, m->data, sizeof(out->tag));
}

static void take(struct hd_recv *r, struct hd_ep *ep, struct hd_taken *t)
{
	*t = (struct hd_taken){ .ep = ep,
				.ctx = r->ctx,
				.buf = hd_recv_iov(r)->iov_base,
				.room = hd_recv_room(r),
				.flags = r->flags,
				.whole = r->flags & HD_RECV_PART ? r->whole : NULL };
}

/* Give an eager message that is all here, and out of the queue, to a receive that is in none. Consumes both. */
static void hand_over(struct hd_recv *r, struct hd_msg *m)
{
	struct hd_node *node = m->ep->node;
	struct hd_received what;
	struct hd_taken t;

	describe(m, &what);
	take(r, m->ep, &t);
	if (hd_unlikely(r->flags & HD_RECV_ASCENDING))
		hd_fill_ascending(hd_recv_iov(r), r->count, 0, m->data, m->len);
	else
		hd_iov_fill(hd_recv_iov(r), r->count, m->data, m->len);
	hd_recv_complete(&t, &what);
	hd_recv_free(node, r);
	if (m->flags & HD_PKT_F_ACK)
		hd_msg_answer(m, HD_PKT_ACK, 0);
	hd_msg_free(m);
}

void hd_recv_meet(struct hd_recv *r, struct hd_msg *m)
{
	struct hd_peer *peer = m->peer;
	struct hd_ep *ep = m->ep;

	if (m->kind == HD_PKT_EAGER && m->arriving) {
		m->waiter = r;
	} else if (m->kind == HD_PKT_EAGER) {
		hand_over(r, m);
	} else {
		unsigned char offer[HD_OFFER_MAX];
		struct hd_msg local = *m;
		size_t offer_len;

		if (hd_buffered_is_broken(m))
			peer = NULL;
		offer_len = peer ? m->room : 0;
		memcpy(offer, m->data, offer_len);
		hd_msg_free(m);
		hd_rndv_begin(ep, peer, r, &local, offer, offer_len);
	}
}

/* The receive r, in no queue, gets the message m, in no queue. */
static void meet(struct hd_recv *r, struct hd_msg *m)
{
	if (hd_unlikely(r->flags & HD_RECV_ORDERED))
		hd_order_meet(r, m);
	else
		hd_recv_meet(r, m);
}

/* hd_msg_arrived: the last byte of a message that came in pieces is here. */
void hd_msg_arrived(struct hd_msg *m)
{
	m->arriving = false;
	if (m->handle)
		hd_buffered_arrived(m, 0);
	else if (m->parked)
		hd_order_next(m->ep);
	else if (m->waiter)
		hand_over(m->waiter, m);
}

/* hd_msg_forget: the endpoint closes, and the message had met a receive while it was coming in: forget both. */
void hd_msg_forget(struct hd_msg *m)
{
	if (m->parked)
		hd_order_forget(m);
	hd_recv_drop(m->ep->node, m->waiter);
	hd_msg_discard(m, ECONNREFUSED);
}

void hd_recv_fail(struct hd_recv *r, struct hd_msg *m, int err)
{
	struct hd_received what;
	struct hd_taken t;

	describe(m, &what);
	what.err = err;
	take(r, m->ep, &t);
	hd_recv_complete(&t, &what);
	hd_recv_free(m->ep->node, r);
}

/* hd_msg_broken: it will never be whole. */
void hd_msg_broken(struct hd_msg *m, int err)
{
	if (m->waiter && !m->parked) {
		hd_recv_fail(m->waiter, m, err);
	} else if (!m->claimed) {
		hd_match_remove_waiting(match_of(m->ep->rq, m->flags), &m->w);
	} else {
		m->arriving =
			false; /* the claim is kept by the program: it gets an error instead of the message */
		m->kind = HD_PKT_RTS;
		m->peer = NULL;
		if (m->handle)
			hd_buffered_arrived(m, err);
		else if (m->parked)
			hd_order_next(m->ep);
		return;
	}
	hd_msg_free(m);
}

static void unpost_with(struct hd_ep *ep, int half, struct hd_recv *r, int err);

/* ---- posting ------------------------------------------------------------------------------------------------------------------------ */

static uint32_t wanted_source(const struct hd_recv_args *a)
{
	return a->src ? hd_dest_source_id(a->src) : HD_MATCH_ANY;
}

static struct hd_recv *recv_make(struct hd_ep *ep, const struct hd_recv_args *a)
{
	struct hd_recv *r = hd_pool_get(&ep->node->recvs);

	if (hd_unlikely(!r))
		return NULL;
	r->ctx = a->ctx;
	r->flags = a->flags;
	r->ep = ep;
	r->m.role = 0;
	r->count = 1;
	r->more = NULL; /* no parts, no whole */
	if (hd_likely(a->count == 1)) {
		r->iov = a->iov[0];
	} else if (a->count == 0) {
		r->iov = (struct iovec){ NULL, 0 };
	} else {
		r->more = hd_pool_get(&ep->node->iovs);
		if (!r->more) {
			hd_pool_put(&ep->node->recvs, r);
			return NULL;
		}
		memcpy(r->more, a->iov, sizeof(*a->iov) * a->count);
		r->count = a->count;
	}
	return r;
}

/*
 * hd_recv_detach: the posted receive r gets a message of len bytes that cannot be handed over at once. Returns a receive that is in
 * no queue: r itself, or for a multi-receive buffer one for the part that the message gets. NULL: no memory, nothing has happened.
 */
struct hd_recv *hd_recv_detach(struct hd_ep *ep, struct hd_recv *r, uint64_t len)
{
	struct hd_recv *part;
	struct hd_taken t;

	if (!(r->flags & HD_RECV_MULTI)) {
		hd_match_unpost(match_of(ep->rq, r->flags), &r->m);
		return r;
	}
	part = recv_make(
		ep, &(struct hd_recv_args){ .iov = &r->iov, .count = 1, .flags = r->flags, .ctx = r->ctx });
	if (!part)
		return NULL;
	hd_recv_take_multi(ep->rq, r, len, &t, &part->iov);
	part->flags |= HD_RECV_PART;
	part->whole = r;
	return part;
}

/* Let a new multi-receive buffer, posted already, take what waits for it. */
static void multi_drain(struct hd_ep *ep, struct hd_recv *r, uint32_t src)
{
	struct hd_match *match = match_of(ep->rq, r->flags);
	struct hd_wnode *w;
	bool more = true;

	while (more && (w = hd_match_find_waiting(match, 0, UINT64_MAX, src))) {
		struct hd_msg *m = hd_container(w, struct hd_msg, w);
		struct hd_recv *part = hd_recv_detach(ep, r, m->len);

		if (!part)
			return;
		more = hd_mnode_is_posted(&r->m); /* else it may be gone after the next call but one */
		hd_match_remove_waiting(match, w);
		meet(part, m);
	}
}

/* A tag of buffered receives finds a message that waits. */
static int tag_meets(struct hd_match *match, struct hd_recv *r, struct hd_msg *m)
{
	struct hd_node *node = m->ep->node;
	int rc = hd_buffered_take(m, r->ctx);

	if (!rc)
		hd_match_remove_waiting(match, &m->w);
	hd_recv_free(node, r);
	return rc;
}

/* Nobody may take it any more, or a queue pair may wait for it. */
static int post_watched(struct hd_ep *ep, struct hd_recv *r, const struct hd_recv_args *a)
{
	if (hd_conn_is_over(ep)) {
		hd_recv_free(ep->node, r);
		return -ENOTCONN;
	}
	hd_match_post(match_of(ep->rq, a->flags), &r->m, a->tag, a->ignore, wanted_source(a));
	if (ep->pair && ep->pair->collapsed && ep->own_rq)
		unpost_with(ep, 0, r, ECANCELED);
	else
		hd_hold_posted(ep->rq);
	return 0;
}

int hd_recv(struct hd_ep *ep, const struct hd_recv_args *a)
{
	struct hd_match *match = match_of(ep->rq, a->flags);
	uint32_t src = wanted_source(a);
	struct hd_wnode *w;
	struct hd_recv *r;

	hd_assert_locked(ep->node);
	if (hd_unlikely(hd_cq_full(ep->rx_cq))) /* so it is in a forked child */
		return ep->node->dead ? -ENOTRECOVERABLE : -EAGAIN;
	r = recv_make(ep, a);
	if (hd_unlikely(!r))
		return -ENOMEM;
	w = hd_match_find_waiting(match, a->tag, a->ignore, src);
	if (hd_unlikely(w != NULL)) {
		if (a->flags & HD_RECV_MULTI) {
			hd_match_post(match, &r->m, a->tag, a->ignore, src);
			multi_drain(ep, r, src);
			return 0;
		}
		if (a->flags & HD_RECV_BUFFERED)
			return tag_meets(match, r, hd_container(w, struct hd_msg, w));
		hd_match_remove_waiting(match, w);
		meet(r, hd_container(w, struct hd_msg, w));
		return 0;
	}
	if (hd_unlikely(ep->watch))
		return post_watched(ep, r, a);
	hd_match_post(match, &r->m, a->tag, a->ignore, src);
	return 0;
}

/* ---- peeking and claiming -------------------------------------------------------------------------------------------------------- */

/* Who reports what happens to a receive or search that no endpoint has taken: of a shared queue, the first that has a CQ. */
static struct hd_ep *speaker(struct hd_ep *ep)
{
	struct hd_node *node = ep->node;

	if (!(ep->policy & HD_EP_NAMELESS) || !ep->rx_cq->none)
		return ep;
	for (uint32_t i = 0; i < node->ep_count; i++)
		if (node->eps[i] && node->eps[i]->rq == ep->rq && !node->eps[i]->rx_cq->none)
			return node->eps[i];
	return ep;
}

void hd_ep_post(struct hd_ep *ep, const struct hd_cqe *e)
{
	struct hd_ep *by = speaker(ep);
	struct hd_cqe filled = *e;

	filled.ep = by->index;
	hd_cq_post(by->rx_cq, &filled);
}

static void peek_report(struct hd_ep *ep, const struct hd_recv_args *a, struct hd_msg *m)
{
	struct hd_cqe e = { .ctx = a->ctx, .ep = ep->index, .tag = a->tag, .err = ENOMSG };

	e.flags = hd_received_flags(a->flags & HD_RECV_TAGGED);
	if (m) {
		e.len = m->len;
		e.tag = hd_wnode_tag(&m->w);
		e.imm = m->imm;
		e.src = hd_msg_source(m);
		e.flags = hd_received_flags(m->flags);
		e.err = 0;
		if (a->count && m->kind == HD_PKT_EAGER && !m->arriving) {
			hd_iov_fill(a->iov, a->count, m->data, m->len);
			e.buf = a->iov[0].iov_base;
		}
	}
	hd_cq_post(ep->rx_cq, &e);
}

int hd_peek(struct hd_ep *ep, const struct hd_recv_args *a, uint32_t peek, struct hd_claim **claim)
{
	struct hd_match *match = match_of(ep->rq, a->flags);
	struct hd_wnode *w;
	struct hd_msg *m;
	struct hd_ep *by;

	hd_assert_locked(ep->node);
	if (ep->node->dead)
		return -ENOTRECOVERABLE;
	if (hd_cq_full(ep->rx_cq))
		return -EAGAIN;
	w = hd_match_find_waiting(match, a->tag, a->ignore, wanted_source(a));
	m = w ? hd_container(w, struct hd_msg, w) : NULL;
	if (claim)
		*claim = NULL;
	if (m && m->arriving && peek & HD_PEEK_DISCARD)
		m = NULL; /* not here yet in full: look again */
	by = m ? m->ep : speaker(ep);
	if (by->rx_cq->none && by->policy & HD_EP_NAMELESS)
		return -EINVAL;
	peek_report(by, a, m);
	if (!m || !peek)
		return 0;
	hd_match_remove_waiting(match, w);
	if (peek & HD_PEEK_DISCARD) {
		hd_msg_discard(m, 0);
	} else {
		m->claimed = true;
		*claim = (struct hd_claim *)m;
		LIST_INSERT_HEAD(&ep->claims, m, claim_entry);
	}
	return 0;
}

void hd_msg_claim(struct hd_msg *m)
{
	m->claimed = true;
	LIST_INSERT_HEAD(&m->ep->claims, m, claim_entry);
}

void hd_msg_unclaim(struct hd_msg *m)
{
	LIST_REMOVE(m, claim_entry);
	m->claimed = false;
}

static struct hd_msg *unclaim(struct hd_claim *claim)
{
	struct hd_msg *m = (struct hd_msg *)claim;

	hd_msg_unclaim(m);
	return m;
}

int hd_claim_recv(struct hd_ep *ep, struct hd_claim *claim, const struct hd_recv_args *a)
{
	struct hd_recv *r = recv_make(ep, a);
	struct hd_msg *m;

	hd_assert_locked(ep->node);
	if (!r)
		return -ENOMEM;
	m = unclaim(claim);
	m->ep = speaker(m->ep); /* the claim may have lost its endpoint */
	meet(r, m);
	return 0;
}

void hd_claim_discard(struct hd_ep *ep, struct hd_claim *claim, const struct hd_recv_args *args)
{
	struct hd_msg *m = unclaim(claim);
	struct hd_received what;

	hd_assert_locked(ep->node);
	describe(m, &what);
	what.len = 0;
	if (args)
		hd_recv_complete(&(struct hd_taken){ .ep = ep, .ctx = args->ctx, .flags = args->flags },
				 &what);
	if (m->arriving)
		hd_stream_forget(m->peer->link, NULL, NULL, m);
	hd_msg_discard(m, 0);
}

/* The endpoint that the message came to closes, while another one of its queue holds the claim: what it gets for it is an error. */
static void claim_orphan(struct hd_msg *m, struct hd_ep *holder)
{
	if (m->kind == HD_PKT_RTS || is_unanswered(m))
		hd_msg_answer(m, HD_PKT_FIN, ECONNREFUSED);
	if (m->peer) {
		m->peer->rx_held -= m->units;
		hd_peer_free_units(m->peer, m->units);
		m->units = 0;
	}
	m->peer = NULL;
	m->arriving = false;
	m->kind = HD_PKT_RTS; /* of nobody */
	m->flags &= (uint8_t) ~(HD_PKT_F_ACK | HD_PKT_F_DELIVERED);
	m->ep = holder;
}

/* hd_claims_drop: the endpoint closes, and nothing comes in for it any more: refuse what was claimed and not received. */
void hd_claims_drop(struct hd_ep *ep)
{
	struct hd_node *node = ep->node;
	struct hd_msg *m;

	hd_buffered_pause(ep->rq, true);
	while ((m = LIST_FIRST(&ep->claims))) {
		unclaim((struct hd_claim *)m);
		hd_msg_discard(m, ECONNREFUSED);
	}
	hd_buffered_pause(ep->rq, false);
	for (uint32_t i = 0; i < node->ep_count && ep->rq->users > 1; i++)
		if (node->eps[i] && node->eps[i]->rq == ep->rq)
			LIST_FOREACH(m, &node->eps[i]->claims, claim_entry)
				if (m->ep == ep)
					claim_orphan(m, node->eps[i]);
}

/* ---- cancelling -------------------------------------------------------------------------------------------------------------------- */

struct cancel_arg {
	const void *ctx;
	struct hd_mnode *oldest;
};

static bool cancel_find(struct hd_mnode *n, void *arg)
{
	struct cancel_arg *a = arg;

	if (hd_container(n, struct hd_recv, m)->ctx == a->ctx && (!a->oldest || n->seq < a->oldest->seq))
		a->oldest = n;
	return false;
}

/* A posted receive completes in error, a positive errno. */
static void unpost_with(struct hd_ep *ep, int half, struct hd_recv *r, int err)
{
	struct hd_taken t;

	hd_match_unpost(&ep->rq->match[half], &r->m);
	take(r, speaker(ep), &t);
	if (r->flags & HD_RECV_MULTI) { /* what is left of it is its last part */
		t.whole = r;
		r->parts++;
	}
	hd_recv_complete_error(&t, &(struct hd_received){ .flags = half, .err = err, .tag = r->m.tag });
	if (!t.whole)
		hd_recv_free(ep->node, r);
}

int hd_cancel(struct hd_ep *ep, void *ctx)
{
	for (int i = 1; i >= 0; i--) {
		struct cancel_arg arg = { ctx, NULL };

		hd_match_each_posted(&ep->rq->match[i], cancel_find, &arg);
		if (!arg.oldest)
			continue;
		unpost_with(ep, i, hd_container(arg.oldest, struct hd_recv, m), ECANCELED);
		return 0;
	}
	return -ENOENT;
}

/* ---- flushing ---------------------------------------------------------------------------------------------------------------------- */

struct flush_arg {
	const struct hd_ep *ep;
	struct hd_recv **list; /* NULL: only count */
	size_t count;
};

static bool flush_find(struct hd_mnode *n, void *arg)
{
	struct flush_arg *a = arg;
	struct hd_recv *r = hd_container(n, struct hd_recv, m);

	if (r->ep == a->ep && a->list)
		a->list[a->count] = r;
	a->count += r->ep == a->ep;
	return false;
}

static int by_age(const void *a, const void *b)
{
	uint64_t x = (*(struct hd_recv *const *)a)->m.seq, y = (*(struct hd_recv *const *)b)->m.seq;

	return x < y ? -1 : x > y;
}

/* Complete what the endpoint has posted to one half of its queue, oldest first. */
static void flush_posted(struct hd_ep *ep, int half, int err)
{
	struct hd_match *match = &ep->rq->match[half];
	struct flush_arg a = { .ep = ep };

	hd_match_each_posted(match, flush_find, &a);
	if (!a.count)
		return;
	a.list = calloc(a.count, sizeof(struct hd_recv *));
	if (!a.list)
		return; /* they stay until the endpoint closes */
	a.count = 0;
	hd_match_each_posted(match, flush_find, &a);
	qsort(a.list, a.count, sizeof(struct hd_recv *), by_age);
	for (size_t i = 0; i < a.count; i++)
		unpost_with(ep, half, a.list[i], err);
	free(a.list);
}

static bool msg_is_request_to(const struct hd_msg *m, const void *ep)
{
	return m->ep == ep && m->kind == HD_PKT_RTS;
}

/*
 * hd_rq_flush: the endpoint is connected no longer: the receives in a queue of its own complete in error, a positive errno, and what was
 * only promised to it is forgotten. What has come whole stays.
 */
void hd_rq_flush(struct hd_ep *ep, int err)
{
	drop_waiting(ep->rq, msg_is_request_to, ep, ECANCELED);
	for (int half = 0; half < 2 && ep->own_rq; half++)
		flush_posted(ep, half, err);
}

/* Messages that are claimed are in no queue. */
static void claims_rekey(struct hd_ep *ep, uint32_t old_id, uint32_t new_id)
{
	struct hd_msg *m;

	LIST_FOREACH(m, &ep->claims, claim_entry)
		if (hd_wnode_src(&m->w) == old_id)
			m->w.by_src.src = new_id;
}

/* hd_rq_rekey: the destination old_id turned out to be another name of new_id. */
void hd_rq_rekey(struct hd_node *node, uint32_t old_id, uint32_t new_id)
{
	struct hd_rq *rq;

	LIST_FOREACH(rq, &node->rq_list, entry)
		for (int k = 0; k < 2; k++)
			hd_match_rekey(&rq->match[k], old_id, new_id);
	for (uint32_t i = 0; i < node->ep_count; i++)
		if (node->eps[i])
			claims_rekey(node->eps[i], old_id, new_id);
}

/* hd_rq_forget: the destination id is freed, and the number given to another some day: messages that wait must not become its. */
void hd_rq_forget(struct hd_node *node, uint32_t id)
{
	struct hd_rq *rq;

	LIST_FOREACH(rq, &node->rq_list, entry)
		for (int k = 0; k < 2; k++)
			if (rq->match[k].waiting)
				hd_match_rekey(&rq->match[k], id, HD_SRC_FORGOTTEN);
	for (uint32_t i = 0; i < node->ep_count; i++)
		if (node->eps[i])
			claims_rekey(node->eps[i], id, HD_SRC_FORGOTTEN);
}
