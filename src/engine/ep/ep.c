/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Endpoints: how they come, what they are bound to, and how they go away. Where they are
 * called is in bound_port.c.
 */
#include "engine/ep/ep.h"
#include "base/minus.h"
#include "engine/ep/alias.h"
#include "engine/ep/class.h"
#include "engine/event/event.h"
#include "engine/link/link.h"
#include "engine/mr/mr.h"
#include "engine/name/name.h"
#include "engine/qp/qp.h"
#include "engine/rdm/rdm.h"
#include "engine/xfer/xfer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define TX_DEFAULT 4096

void hd_eps_init(struct hd_node *node, const struct hd_ep_class *classes, const struct hd_caster *caster)
{
	hd_eps(node)->ep_classes = classes;
	hd_eps(node)->caster = caster;
}

/* ---- opening --------------------------------------------------------------------------------- */

/* The CQs and counters have one user more, or one less. */
static void bind_all(struct hd_ep *ep, int by)
{
	struct hd_cntr *all[] = { ep->cntrs.send,  ep->cntrs.recv,	  ep->cntrs.read,
				  ep->cntrs.write, ep->cntrs.remote_read, ep->cntrs.remote_write };

	ep->tx_cq->users += by;
	ep->rx_cq->users += by;
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (all[i])
			hd_cntr_used(all[i], by);
}

static void announce_all(struct hd_ep *ep)
{
	struct hd_peer *peer, *next;

	HASH_ITER(hh, hd_links(ep->node)->peers, peer, next)
		if (peer->state == HD_PEER_LIVE)
			hd_peer_announce(peer, ep);
}

static void bindings_take(struct hd_ep *ep, const struct hd_ep_attr *attr)
{
	hd_ep_set_policy(ep, attr->policy | (attr->type == HD_EP_DGRAM ? HD_EP_DROP : 0));
	ep->tx_cq = attr->tx_cq ? attr->tx_cq : hd_events(ep->node)->no_cq;
	hd_ep_set_receiving(ep, ep->rq, attr->rx_cq ? attr->rx_cq : hd_events(ep->node)->no_cq, ep->pd);
	ep->min_multi = attr->min_multi_recv;
	ep->cntrs = attr->cntrs;
}

static enum hd_ep_classes ep_class_of(const struct hd_ep_attr *attr)
{
	if (attr->policy & HD_EP_NUMBERED)
		return attr->type == HD_EP_MSG ? HD_EP_CLASS_CONNECTED_NUMBERED : HD_EP_CLASS_NUMBERED;
	return attr->type == HD_EP_MSG ? HD_EP_CLASS_CONNECTED : HD_EP_CLASS_UNCONNECTED;
}

static struct hd_ep *ep_make(struct hd_node *node, const struct hd_ep_attr *attr)
{
	static _Atomic uint64_t serials;
	struct hd_ep *ep = calloc(1, sizeof(*ep));

	if (!ep)
		return NULL;
	ep->serial = atomic_fetch_add(&serials, 1) + 1;
	ep->node = node;
	ep->class = &hd_eps(node)->ep_classes[ep_class_of(attr)];
	hd_ep_set_poster(ep, &hd_rdm_poster);
	hd_ep_set_receiving(ep, attr->rq, NULL, attr->pd);
	bindings_take(ep, attr);
	ep->own_tx.max = attr->tx_size ? attr->tx_size : TX_DEFAULT;
	ep->tx = attr->txq ? attr->txq : &ep->own_tx;
	ep->key = attr->key_count ? attr->keys[0] : 0;
	hd_ep_set_to(ep, hd_links(node)->nobody);
	LIST_INIT(&ep->claims);
	STAILQ_INIT(&ep->deferred);
	TAILQ_INIT(&ep->transfers);
	return ep;
}

/* Where it is called, and what its messages name as their source. */
static int ep_name_take(struct hd_ep *ep, const struct hd_ep_attr *attr)
{
	const struct hd_ep *from = attr->beside ? hd_ep_alias(attr->beside, ep->key) : ep;
	int rc = from ? 0 : -EINVAL;

	if (!rc && attr->main)
		hd_bound_share(ep, attr->main);
	else if (!rc && !(attr->policy & HD_EP_NAMELESS))
		rc = attr->beside ? hd_bound_join(attr->beside->bound_port, attr->slot, ep)
		     : attr->held ? hd_bound_join(attr->held, 0, ep)
				  : hd_bound_find(ep, attr->bind);
	if (!rc)
		rc = hd_ep_index_take(ep);
	if (rc)
		return rc;
	ep->src = attr->beside ? from->src : ep->index;
	hd_ep_watch_more(ep, (attr->policy & HD_EP_NAMELESS ? HD_WATCH_NAMELESS : 0) |
				     (ep->key ? HD_WATCH_KEYED : 0));
	return 0;
}

/* Take back what hd_ep_open did before it failed. */
static void unopen(struct hd_ep *ep)
{
	struct hd_node *node = ep->node;

	if (ep->index < hd_names(node)->ep_count && hd_names(node)->eps[ep->index] == ep)
		hd_ep_index_give(ep);
	ep->class->free(ep);
	hd_bound_leave(ep);
	if (ep->own_rq)
		hd_rq_close(ep->rq);
	free(ep->order);
	free(ep);
}

/* A receive queue of its own. */
static int rq_make(struct hd_ep *ep, const struct hd_ep_attr *attr)
{
	int rc = hd_rq_open(ep->node, attr->policy & HD_EP_DIRECTED, &ep->rq);

	ep->own_rq = rc == 0;
	if (!rc && attr->policy & HD_EP_BY_KEY)
		hd_rq_group(ep->rq);
	if (!rc && attr->policy & HD_EP_BUFFERED)
		rc = hd_buffered_open(ep->rq, &attr->buffered);
	if (!rc && attr->policy & HD_EP_BUFFERED)
		hd_buffered_rebind(ep->rq, &attr->buffered, attr->rx_cq);
	return rc;
}

int hd_ep_open(struct hd_node *node, const struct hd_ep_attr *attr, struct hd_ep **out)
{
	struct hd_ep *ep;
	int rc;

	hd_assert_locked(node);
	if (hd_core(node)->gate.dead)
		return -ENOTRECOVERABLE;
	ep = ep_make(node, attr);
	if (!ep)
		return -ENOMEM;
	rc = ep->rq ? 0 : rq_make(ep, attr);
	if (!rc)
		rc = ep_name_take(ep, attr);
	if (!rc)
		rc = ep->class->open(ep, attr);
	if (!rc && attr->evq)
		rc = hd_evq_attach(attr->evq, node);
	if (rc) {
		unopen(ep);
		return rc;
	}
	hd_ep_set_owner(ep, attr->evq, attr->owner);
	ep->rq->users++;
	ep->tx->users++;
	bind_all(ep, 1);
	hd_eps_used(node, 1);
	hd_ep_show(ep);
	announce_all(ep);
	rc = hd_aliases_open(ep, attr);
	if (rc) {
		hd_ep_close(ep);
		return rc;
	}
	*out = ep;
	return 0;
}

/* ---- closing --------------------------------------------------------------------------------- */

/* Who sends something learns of the end in his own way. */
static void ep_transfer_end(struct hd_transfer *t, enum hd_status status)
{
	if (!status)
		hd_transfer_drop(t);
	else if (hd_transfer_comes_in(t))
		hd_transfer_end(t, status);
	else
		hd_transfer_cancel(t, status);
}

static bool is_queued(struct hd_transfer *t)
{
	const struct hd_op *op = hd_op_of(t);

	return op && op->state == HD_OP_QUEUED;
}

static void queued_end(struct hd_op *op, enum hd_status status)
{
	struct hd_peer *peer = op->dest->state == HD_DEST_BOUND ? op->dest->peer : NULL;

	hd_op_dequeue(op);
	ep_transfer_end(&op->t, status);
	if (peer)
		hd_peer_settle(peer);
}

void hd_ep_ops_end(struct hd_ep *ep, struct hd_peer *peer, enum hd_status status)
{
	struct hd_transfer *t, *next;

	HD_EP_TRANSFERS_FOREACH(t, next, ep)
		if (!is_queued(t) && (!peer || t->pending.peer == peer))
			ep_transfer_end(t, status);
	HD_EP_TRANSFERS_FOREACH(t, next, ep)
		if (is_queued(t) && (!peer || hd_op_of(t)->dest->peer == peer))
			queued_end(hd_op_of(t), status);
}

/*
 * A peer that is being greeted may have been answered that it is there; the next of its
 * index would be taken for it.
 */
static void tell_gone(struct hd_ep *ep, struct hd_peer *peer)
{
	struct hd_pkt pkt = { .kind = HD_PKT_GONE, .src = ep->index, .gen = ep->gen };

	hd_peer_forewarn(peer, &pkt);
}

/* Everything that is under way on the endpoint is forgotten, so that nothing calls back. */
static void quiesce(struct hd_ep *ep, bool all)
{
	hd_streams_forget(ep);
	hd_send_lane_drop(ep);
	hd_order_drop(ep);
	hd_fence_abandon(ep);			 /* first: what ends now must not let it go */
	if (all || !hd_buffered_is_deaf(ep->rq)) /* what waits until somebody is told stays */
		hd_claims_drop(ep);
	hd_rq_drop_posted(ep->rq, ep);
	hd_ep_ops_end(ep, NULL, 0);
}

/* Everything that names the endpoint forgets it. */
static void detach(struct hd_ep *ep)
{
	struct hd_node *node = ep->node;
	struct hd_peer *peer, *next;
	struct hd_link *link;

	TAILQ_FOREACH(link, &hd_links(node)->links, entry)
		if (link->shake.ep == ep && !link->peer)
			hd_link_down(link, -ECONNREFUSED, NULL);
	quiesce(ep, true);
	hd_ep_hide(ep);
	hd_mrs_drop_ep(ep);
	hd_rq_drop_waiting(ep->rq, ep);
	HASH_ITER(hh, hd_links(node)->peers, peer, next)
		if (ep->bound_port)
			tell_gone(ep, peer);
}

/*
 * Nothing is posted or under way, and its generation is another. Others are told so, but
 * not that it has gone, for what they send to it before they have heard may be meant for
 * the new one; see qp/respq.c.
 */
void hd_ep_reset(struct hd_ep *ep)
{
	hd_assert_locked(ep->node);
	hd_qp_end_life(ep->qp);
	quiesce(ep, true);
	hd_rq_drop_waiting(ep->rq, ep);
	hd_ep_gen_take(ep);
	announce_all(ep);
	hd_qp_begin_life(ep->qp);
}

static void rebind_alias(struct hd_ep *ep, const struct hd_ep_attr *attr)
{
	quiesce(ep, false);
	bind_all(ep, -1);
	bindings_take(ep, attr);
	bind_all(ep, 1);
	hd_ep_show(ep);
}

/* The queue last: from then on messages are told, at whichever alias they came to. */
void hd_ep_rebind(struct hd_ep *ep, const struct hd_ep_attr *attr)
{
	hd_assert_locked(ep->node);
	for (uint32_t i = 0; i < hd_ep_aliases(ep); i++)
		rebind_alias(hd_ep_alias_at(ep, i), attr);
	if (ep->rq->buffered)
		hd_buffered_rebind(ep->rq, &attr->buffered, attr->rx_cq);
}

static void add_cntr(struct hd_cntr **have, struct hd_cntr *cntr)
{
	if (!*have)
		*have = cntr;
}

void hd_ep_add_cntrs(struct hd_ep *ep, const struct hd_ep_cntrs *cntrs)
{
	hd_assert_locked(ep->node);
	for (uint32_t i = 0; i < hd_ep_aliases(ep); i++) {
		struct hd_ep *alias = hd_ep_alias_at(ep, i);

		bind_all(alias, -1);
		add_cntr(&alias->cntrs.send, cntrs->send);
		add_cntr(&alias->cntrs.recv, cntrs->recv);
		add_cntr(&alias->cntrs.read, cntrs->read);
		add_cntr(&alias->cntrs.write, cntrs->write);
		add_cntr(&alias->cntrs.remote_read, cntrs->remote_read);
		add_cntr(&alias->cntrs.remote_write, cntrs->remote_write);
		bind_all(alias, 1);
		hd_ep_show(alias);
	}
}

int hd_ep_set_txq(struct hd_ep *ep, struct hd_txq *txq)
{
	hd_assert_locked(ep->node);
	if (ep->tx->ops)
		return -EBUSY;
	for (uint32_t i = 0; i < hd_ep_aliases(ep); i++) {
		struct hd_ep *alias = hd_ep_alias_at(ep, i);

		alias->tx->users--;
		alias->tx = txq;
		txq->users++;
	}
	return 0;
}

/* True: ask again. Messages of other endpoints that come into a queue of XRC's go with it. */
static bool ep_stop(struct hd_ep *ep)
{
	struct hd_qp *user;
	bool any = false;

	if (ep->qp)
		LIST_FOREACH(user, &ep->qp->xrc_users, life.xrc.entry)
			if (user->life.lane.transfers && hd_transfers_stop(user->ep))
				return true;
	for (uint32_t i = 0; i < hd_ep_aliases(ep); i++)
		if (hd_transfers_stop(hd_ep_alias_at(ep, i)))
			any = true;
	return any;
}

void hd_ep_settle(struct hd_ep *ep)
{
	hd_assert_locked(ep->node);
	for (int round = 0; ep_stop(ep); round++)
		hd_mr_stand_back(ep->node, round);
}

static bool waits_unseen(struct hd_transfer *t)
{
	const struct hd_op *op = is_queued(t) ? hd_op_of(t) : NULL;

	return op && op->dest && op->dest->state == HD_DEST_CONNECTING && op->flags & HD_SEND_INJECT &&
	       !(op->flags & (HD_SEND_COMPLETE | HD_SEND_WORK));
}

static bool any_waits_unseen(const struct hd_ep *ep)
{
	struct hd_transfer *t;

	TAILQ_FOREACH(t, &ep->transfers, of_ep)
		if (waits_unseen(t))
			return true;
	return false;
}

/*
 * A call ends by itself: in a link, or in vain. The turn after that pushes what has waited for it.
 */
void hd_ep_send_off(struct hd_ep *ep)
{
	struct hd_node *node = ep->node;

	hd_assert_locked(node);
	for (bool more = any_waits_unseen(ep); more;) {
		more = any_waits_unseen(ep);
		hd_node_poll(node);
		hd_node_unlock(node);
		hd_node_rest(node); /* who is called may want this processor */
		hd_node_lock(node);
	}
}

void hd_ep_close(struct hd_ep *ep)
{
	struct hd_node *node = ep->node;

	hd_assert_locked(node);
	hd_aliases_close(ep);
	ep->class->close(ep);
	detach(ep);
	ep->class->free(ep);
	hd_bound_leave(ep);
	hd_ep_index_give(ep);
	ep->rq->users--;
	ep->tx->users--;
	if (ep->own_rq)
		hd_rq_close(ep->rq);
	bind_all(ep, -1);
	if (ep->evq) {
		hd_evq_forget(ep->evq, ep->owner);
		hd_evq_detach(ep->evq, node);
	}
	hd_eps_used(node, -1);
	free(ep->order);
	free(ep);
}

int hd_ep_set_evq(struct hd_ep *ep, struct hd_evq *evq)
{
	struct hd_evq *old = ep->evq;
	int rc;

	hd_assert_locked(ep->node);
	if (!old || old == evq)
		return 0;
	rc = hd_evq_attach(evq, ep->node);
	if (rc)
		return rc;
	hd_ep_set_owner(ep, evq, ep->owner);
	hd_evq_move(old, evq, ep->owner);
	hd_evq_detach(old, ep->node);
	return 0;
}

bool hd_ep_is_named(const struct hd_ep *ep, const struct sockaddr *name)
{
	hd_assert_locked(ep->node);
	return ep->bound_port && hd_bound_is_named(ep->bound_port, ep->slot, name);
}

/* ---- small things ---------------------------------------------------------------------------- */

uint32_t hd_ep_tx_left(const struct hd_ep *ep)
{
	if (ep->qp && ep->qp->wqes)
		return hd_sq_left(ep->qp);
	return (uint32_t)hd_minus(ep->tx->max, ep->tx->ops);
}

/* Who asks again and again need not have anybody else look. */
bool hd_ep_tx_idle(struct hd_ep *ep)
{
	struct hd_qp *p = ep->qp;

	hd_assert_locked(ep->node);
	if (!p || !p->wqes)
		return !ep->tx->ops;
	hd_ack_look(p);
	return p->life.sq.head == p->life.sq.tail;
}

size_t hd_ep_posted(const struct hd_ep *ep)
{
	return ep->rq->match[0].posted + ep->rq->match[1].posted;
}

uint64_t hd_ep_serial(const struct hd_ep *ep)
{
	return ep->serial;
}

uint32_t hd_ep_index(const struct hd_ep *ep)
{
	return ep->index;
}

int hd_ep_name(const struct hd_ep *ep, int family, struct sockaddr_storage *out)
{
	return ep->bound_port ? hd_bound_name(ep->bound_port, ep->slot, family, out) : -ENOENT;
}

void hd_ep_set_kept(struct hd_ep *ep, bool is_kept)
{
	hd_assert_locked(ep->node);
	ep->is_kept = is_kept;
}

void hd_ep_set_min_multi_recv(struct hd_ep *ep, uint64_t bytes)
{
	ep->min_multi = bytes;
}

struct hd_dest **hd_ep_to(struct hd_ep *ep)
{
	return &ep->to;
}

/* ---- shared transmit queues ------------------------------------------------------------------ */

int hd_txq_open(struct hd_node *node, uint32_t size, struct hd_txq **out)
{
	struct hd_txq *q = calloc(1, sizeof(*q));

	hd_assert_locked(node);
	if (!q)
		return -ENOMEM;
	q->max = size ? size : TX_DEFAULT;
	*out = q;
	return 0;
}

int hd_txq_close(struct hd_txq *q)
{
	if (q->users)
		return -EBUSY;
	free(q);
	return 0;
}
