/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Questions of fronts: a few bytes there, a few bytes back.
 *
 *	who asks                          who is asked
 *	  ASK {question}   ──────────►    kept until the turn of progress is over; then the
 *	                                  endpoint's front answers
 *	                   ◄──────────    TOLD {answer}, or an errno
 *
 * A question is paid for as a message is, until its answer has left. Questions and answers are
 * between processes of one user on one host: what they bring is known to nobody else, and what they
 * name is opened and mapped.
 */
#include "engine/cm/ask.h"
#include "base/realm.h"
#include "engine/cm/state.h"
#include "engine/link/link.h"
#include "engine/qp/qp.h"
#include "engine/rdm/rdm.h"
#include "engine/xfer/xfer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static bool ask_is_of_ours(const struct hd_peer *peer)
{
	return peer == hd_links(peer->node)->self || hd_realm_is_own(peer->realm);
}

/* ---- who asks -------------------------------------------------------------------------------- */

static int ask_start(struct hd_op *op)
{
	struct hd_peer *peer = op->dest->peer;
	struct hd_pkt pkt;
	int rc;

	if (!ask_is_of_ours(peer)) {
		hd_op_under(op, HD_OP_ASKED);
		hd_op_done(op, HD_S_ACCESS);
		return 0;
	}
	hd_op_header(op, HD_PKT_ASK, &pkt);
	rc = hd_peer_post(peer, &pkt, op->copy, op->t.len, hd_units(op->t.len));
	if (rc < 0)
		return rc;
	hd_op_under(op, HD_OP_ASKED);
	return 0;
}

static const struct hd_op_kind questions = { .start = ask_start };

static void ask_told(struct hd_work *work, const struct hd_cqe *e)
{
	struct hd_ask *ask = hd_container(work, struct hd_ask, work);

	int err = e->err ? hd_status_errno(e->err) : ask->err;

	ask->len = err ? 0 : e->tag;
	ask->told(ask, err);
}

/* It waits with others for its turn, or for a link. */
static int ask_post(struct hd_op *op)
{
	struct hd_peer *peer = op->dest->peer;

	if (op->dest->state != HD_DEST_BOUND)
		return hd_op_later(op);
	hd_op_enqueue(peer, op);
	return 0;
}

int hd_ep_ask(struct hd_ep *ep, struct hd_dest *dest, const void *question, size_t len, struct hd_ask *ask)
{
	const struct iovec iov = { (void *)question, len };
	const struct hd_send_args send = { .iov = &iov, .count = 1, .ctx = &ask->work, .flags = HD_SEND_WORK };
	struct hd_op *op;

	hd_assert_locked(ep->node);
	if (!len || len > HD_ASK_MAX || ep->policy & (HD_EP_PAIRED | HD_EP_DROP))
		return -EINVAL;
	if (hd_core(ep->node)->gate.dead)
		return -ENOTRECOVERABLE;
	op = hd_op_make(ep, dest, &send);
	if (!op)
		return -ENOMEM;
	hd_op_set_kind(op, &questions);
	hd_op_set_extra(op, ask);
	ask->work.done = ask_told;
	ask->err = 0;
	if (hd_op_copy(op) < 0) {
		hd_op_free(op);
		return -ENOMEM;
	}
	return ask_post(op);
}

int hd_ask_told(struct hd_link *link, const struct hd_pkt *pkt, const void *payload, size_t len)
{
	struct hd_op *op = hd_op_by_id(link->node, pkt->op);
	struct hd_ask *ask;

	if (!op)
		return 0; /* given up meanwhile */
	if (op->t.pending.peer != link->peer || op->state != HD_OP_ASKED || len > HD_ASK_MAX)
		return hd_link_broken(link, "answer to no question");
	ask = op->extra;
	ask->err = pkt->imm <= 4095 ? (int)pkt->imm : EIO;
	hd_op_set_tag(op, len);
	if (len)
		memcpy(ask->answer, payload, len);
	hd_op_done(op, HD_S_OK);
	return 0;
}

/* ---- who is asked ---------------------------------------------------------------------------- */

struct hd_asked {
	TAILQ_ENTRY(hd_asked) entry; /* hd_asks.waiting */
	struct hd_peer *peer;
	uint32_t op, src;
	size_t len;
	_Alignas(8) unsigned char data[HD_ASK_MAX];
};

/* What has been asked of an endpoint and not answered. */
struct hd_asks {
	struct hd_ep *ep;
	LIST_ENTRY(hd_asks) entry; /* hd_conns.asks */
	int (*asked)(void *owner, const struct hd_question *q);
	struct hd_deferred deferred;
	TAILQ_HEAD(, hd_asked) waiting;
};

static void ask_answer(struct hd_peer *peer, uint32_t op, const void *data, int rc, uint32_t units)
{
	const struct hd_pkt pkt = { .kind = HD_PKT_TOLD, .op = op, .imm = rc < 0 ? (uint64_t)-rc : 0 };

	hd_peer_answer(peer, &pkt, data, rc > 0 ? (size_t)rc : 0, units);
}

/* Its name, where it has one by which it can be called. */
static struct hd_dest *ask_whose(const struct hd_asked *a)
{
	return hd_dest_by_id(a->peer->node, hd_pkt_source(a->peer, a->src));
}

static void ask_one(struct hd_asks *asks, struct hd_asked *a)
{
	_Alignas(8) unsigned char data[HD_ASK_MAX];
	const struct hd_question q = { .data = a->data, .len = a->len, .from = ask_whose(a), .answer = data };
	int rc = q.from ? asks->asked(asks->ep->owner, &q) : -ENOENT;

	ask_answer(a->peer, a->op, data, rc, hd_units(a->len));
	free(a);
}

static void ask_run(struct hd_deferred *deferred)
{
	struct hd_asks *asks = hd_container(deferred, struct hd_asks, deferred);
	struct hd_asked *a = TAILQ_FIRST(&asks->waiting);

	if (!a)
		return;
	TAILQ_REMOVE(&asks->waiting, a, entry);
	if (!TAILQ_EMPTY(&asks->waiting))
		hd_deferred_post(asks->ep->node, deferred);
	ask_one(asks, a); /* the front may close the endpoint, and with it what this function has */
}

int hd_asked(struct hd_link *link, const struct hd_pkt *pkt, const void *payload, size_t len)
{
	struct hd_ep *ep = hd_pkt_named(link->node, pkt);
	struct hd_asks *asks = ep && ep->qp ? ep->qp->asks : NULL;
	struct hd_asked *a = NULL;
	int rc = -ECONNREFUSED;

	if (!len || len > HD_ASK_MAX || !hd_peer_charge(link->peer, hd_units(len)))
		return hd_link_broken(link, "malformed or uncredited question");
	if (asks && !ask_is_of_ours(link->peer)) {
		rc = -EACCES;
	} else if (asks) {
		a = malloc(sizeof(*a));
		rc = -ENOMEM;
	}
	if (!a) {
		ask_answer(link->peer, pkt->op, NULL, rc, hd_units(len));
		return 0;
	}
	a->peer = link->peer;
	a->op = pkt->op;
	a->src = pkt->src;
	a->len = len;
	memcpy(a->data, payload, len);
	TAILQ_INSERT_TAIL(&asks->waiting, a, entry);
	hd_deferred_post(ep->node, &asks->deferred);
	return 0;
}

int hd_asks_open(struct hd_ep *ep, int (*asked)(void *owner, const struct hd_question *q))
{
	struct hd_asks *asks;

	if (!asked)
		return 0;
	asks = calloc(1, sizeof(*asks));
	if (!asks)
		return -ENOMEM;
	asks->ep = ep;
	asks->asked = asked;
	asks->deferred.fn = ask_run;
	TAILQ_INIT(&asks->waiting);
	LIST_INSERT_HEAD(&hd_conns(ep->node)->asks, asks, entry);
	ep->qp->asks = asks;
	return 0;
}

static void asks_forget(struct hd_asks *asks, const struct hd_peer *peer)
{
	struct hd_asked *a, *next;

	for (a = TAILQ_FIRST(&asks->waiting); a; a = next) {
		next = TAILQ_NEXT(a, entry);
		if (a->peer != peer)
			continue;
		TAILQ_REMOVE(&asks->waiting, a, entry);
		free(a);
	}
}

void hd_asks_orphan(const struct hd_peer *peer)
{
	struct hd_asks *asks;

	LIST_FOREACH(asks, &hd_conns(peer->node)->asks, entry)
		asks_forget(asks, peer);
}

void hd_asks_close(struct hd_ep *ep)
{
	struct hd_asks *asks = ep->qp ? ep->qp->asks : NULL;
	struct hd_asked *a;

	if (!asks)
		return;
	while ((a = TAILQ_FIRST(&asks->waiting))) {
		TAILQ_REMOVE(&asks->waiting, a, entry);
		ask_answer(a->peer, a->op, NULL, -ECONNREFUSED, hd_units(a->len));
		free(a);
	}
	hd_deferred_drop(ep->node, &asks->deferred);
	LIST_REMOVE(asks, entry);
	free(asks);
	ep->qp->asks = NULL;
}
