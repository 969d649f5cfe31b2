/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * The receive queue: an object of its own; an endpoint's own queue is one with a single user. What waits in it and what is posted to it
 * leaves here otherwise than by meeting: dropped, cancelled, flushed.
 */
#include "engine/link/peer.h"
#include "engine/mr/mr.h"
#include "engine/name/key.h"
#include "engine/qp/local.h"
#include "engine/qp/qp.h"
#include "engine/rq/queue.h"
#include "engine/rq/recv.h"

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

static uint32_t rq_source_group(void *node, uint32_t src)
{
	const struct hd_dest *dest = hd_dest_by_id(node, src);

	return dest ? hd_key_group(node, dest->key) : 0;
}

static uint32_t rq_message_group(const struct hd_wnode *w)
{
	const struct hd_ep *ep = hd_container(w, struct hd_msg, w)->ep;

	return hd_key_group(ep->node, ep->key);
}

int hd_rq_group(struct hd_rq *rq)
{
	const struct hd_match_groups groups = { rq_source_group, rq_message_group, rq->node };

	for (int i = 0; i < 2; i++)
		if (hd_match_group(&rq->match[i], &groups) < 0)
			return -ENOMEM;
	return 0;
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
	if (hd_unlikely(m->early))
		hd_dgram_taken(m);
	if (m->peer) {
		m->peer->rx_held -= m->units;
		hd_peer_free_units(m->peer, m->units);
	} else {
		node->window_units -= m->units;
	}
	hd_bytes_put(&node->bytes, m, sizeof(*m) + m->room);
}

/* A message is not wanted: the sender is told where it waits for an answer. */
void hd_msg_discard(struct hd_msg *m, int err)
{
	if (m->kind == HD_PKT_RTS)
		hd_msg_answer(m, HD_PKT_FIN, err);
	else if (hd_msg_is_unanswered(m))
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

static void rq_drop_peer(struct hd_rq *rq, struct hd_peer *peer)
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

/* hd_rqs_ended: the peer is gone. What it has sent whole stays to be received; what it only promised is forgotten. */
void hd_rqs_ended(struct hd_peer *peer, int err)
{
	struct hd_rq *rq;

	LIST_FOREACH(rq, &peer->node->rq_list, entry)
		rq_drop_peer(rq, peer);
}

int hd_rq_close(struct hd_rq *rq)
{
	if (rq->users)
		return -EBUSY;
	hd_rq_drop_posted(rq, NULL);
	LIST_REMOVE(rq, entry);
	hd_local_close_rq(rq);
	if (rq->limit.least)
		LIST_REMOVE(rq, limited);
	for (int i = 0; i < 2; i++)
		hd_match_fini(&rq->match[i]);
	hd_buffered_close(rq);
	rq->node->rqs--;
	free(rq);
	return 0;
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
void hd_recv_unpost(struct hd_ep *ep, int half, struct hd_recv *r, int err)
{
	struct hd_taken t;

	hd_match_unpost(&ep->rq->match[half], &r->m);
	hd_qp_took(ep);
	hd_recv_taken(r, hd_ep_speaker(ep), &t);
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
		hd_recv_unpost(ep, i, hd_container(arg.oldest, struct hd_recv, m), ECANCELED);
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
		hd_recv_unpost(ep, half, a.list[i], err);
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

/* hd_rqs_rekey: the destination old_id turned out to be another name of new_id. */
void hd_rqs_rekey(struct hd_peer *peer, uint32_t old_id, uint32_t new_id)
{
	struct hd_node *node = peer->node;
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
