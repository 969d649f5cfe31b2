/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Queue pairs, ibv_modify_qp(3): endpoints that have a number, and most of them one other endpoint.
 * What they send is in sq.c, what comes to them in responder.c.
 *
 * To fail, to go on and to acknowledge is put off to the end of a turn of progress
 * (hd_qp_kick): so one acknowledgement covers all that came in that turn, and nobody's list
 * changes while it is walked.
 */
#include "engine/qp/qp.h"
#include "engine/core/core.h"
#include "engine/link/link.h"
#include "engine/name/name.h"
#include "engine/qp/holdoff.h"
#include "engine/rq/rq.h"
#include "engine/xfer/xfer.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/random.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#define FALL_NS HD_NS_PER_MS /* between two looks at who copies to one that is to fail */

/* ---- numbers --------------------------------------------------------------------------------- */

void hd_sender_of(const struct hd_node *node, uint32_t src, struct hd_sender *out)
{
	const struct hd_dest *dest = hd_dest_by_id((struct hd_node *)node, src);
	uint32_t slot;

	*out = (struct hd_sender){ 0 };
	if (!dest || dest->addr.ss_family == AF_UNSPEC)
		return;
	out->addr = (const struct sockaddr *)&dest->addr;
	if (dest->state == HD_DEST_BOUND) { /* what has waited may be of a peer that has gone */
		out->addrs = (const uint8_t(*)[16])dest->peer->addr;
		out->addr_count = dest->peer->addr_count;
	}
	slot = hd_name_slot(out->addr);
	/* the port is at the same place in both families */
	if (slot <= 254)
		out->number = (uint32_t)ntohs(((const struct sockaddr_in *)(const void *)out->addr)->sin_port)
				      << 8 |
			      slot;
}

void hd_name_set_number(struct sockaddr *name, uint32_t number)
{
	/* the port is at the same place in both families */
	((struct sockaddr_in *)(void *)name)->sin_port = htons((uint16_t)(number >> 8));
	hd_name_set_slot(name, number & 0xff);
}

/* ---- what is put off ------------------------------------------------------------------------- */

void hd_qp_kick(struct hd_qp *p)
{
	hd_deferred_post(p->ep->node, &p->deferred);
}

void hd_qp_fail_soon(struct hd_qp *p, enum hd_status status)
{
	if (hd_qp_has_failed(p))
		return;
	hd_qp_step(p, HD_QP_STEP_FAIL);
	p->life.status = status;
	hd_epoch_no_more(p);
	hd_qp_kick(p);
}

static void qp_settled(struct hd_timer *timer)
{
	struct hd_qp *p = hd_container(timer, struct hd_qp, life.sq.settle);

	p->life.sq.settles = false;
	if (hd_qp_has_failed(p))
		hd_qp_kick(p);
	else
		hd_sq_push(p);
}

void hd_qp_settle(struct hd_qp *p, uint64_t ns)
{
	if (p->life.sq.settles)
		return;
	p->life.sq.settles = true;
	p->life.sq.settle.fn = qp_settled;
	hd_timer_set(p->ep->node, &p->life.sq.settle, ns);
}

void hd_qp_settle_end(struct hd_qp *p)
{
	if (p->life.sq.settles)
		hd_timer_stop(p->ep->node, &p->life.sq.settle);
	p->life.sq.settles = false;
}

void hd_qp_event(const struct hd_qp *p, uint32_t code, enum hd_status status)
{
	const struct hd_event e = { .code = code, .err = status, .owner = p->ep->owner };

	if (p->tell)
		p->tell(e.owner, code, status);
	else if (p->ep->evq)
		hd_evq_post(p->ep->evq, &e);
}

void hd_qp_offended(struct hd_ep *ep, enum hd_status status)
{
	struct hd_qp *p = ep->qp;

	if (p->attr.lossy || hd_qp_has_failed(p) || !(ep->policy & HD_EP_STRICT))
		return;
	hd_qp_fail_soon(p, status);
	hd_qp_event(p, HD_EV_EP_FAILED, status);
}

/* ---- failing --------------------------------------------------------------------------------- */

/*
 * Long transfers of the other end's that are executed here: it is told, and what had
 * met a receive completes.
 */
static void transfers_end(struct hd_ep *ep)
{
	struct hd_transfer *t, *next;

	HD_EP_TRANSFERS_FOREACH(t, next, ep) {
		if (hd_op_of(t))
			continue;
		if (hd_transfer_comes_in(t))
			/* the receives behind it are flushed in a moment */
			hd_intake_stop(t, true);
		hd_transfer_cancel(t, HD_S_CANCELLED);
	}
}

/* It has failed: everything ends, in order. */
static void qp_flush(struct hd_qp *p)
{
	struct hd_ep *ep = p->ep;

	if (p->life.state == HD_QP_ERR)
		return;
	hd_qp_step(p, HD_QP_STEP_FLUSH);
	hd_ep_set_rx_end(ep, HD_RX_FLUSHED);
	hd_ep_show(ep);
	hd_resp_ack(p);
	hd_respq_over(p, false);
	hd_xrc_proxy_clear(p);
	if (p->wqes) {
		hd_ack_look(p);
		hd_sq_drop(p, HD_S_CANCELLED);
	}
	hd_qp_settle_end(p);
	hd_streams_forget(ep);
	hd_holdoff_end(p, HD_S_CANCELLED); /* they came before those that are still coming in */
	transfers_end(ep);
	hd_xrc_target_home(p);
	hd_xrc_target_forget(p);
	hd_rq_flush(ep, HD_S_CANCELLED);
	hd_rq_drop_waiting(ep->rq, ep);
	if (!ep->own_rq)
		hd_qp_event(p, HD_EV_RQ_LAST, 0);
	hd_respq_resume(p); /* what is kept has a time */
}

void hd_ep_fail(struct hd_ep *ep)
{
	struct hd_qp *p = ep->qp;

	hd_assert_locked(ep->node);
	if (!p->life.status)
		p->life.status = HD_S_CANCELLED;
	hd_epoch_no_more(p);
	qp_flush(p);
	hd_marks_stir(ep->node);
	hd_qp_check(p);
}

bool hd_ep_fall(struct hd_ep *ep)
{
	hd_assert_locked(ep->node);
	if (hd_transfers_stop(ep)) {
		hd_qp_fail_soon(ep->qp, HD_S_CANCELLED);
		return false;
	}
	hd_ep_fail(ep);
	return true;
}

/* True: ask again. */
static bool qps_stop(struct hd_node *node)
{
	bool any = false;

	for (uint32_t i = 0; i < hd_names(node)->ep_count; i++) {
		struct hd_ep *ep = hd_names(node)->eps[i];

		if (ep && ep->qp && hd_transfers_stop(ep))
			any = true;
	}
	return any;
}

void hd_node_retire(struct hd_node *node)
{
	struct hd_mr *mr, *next;

	hd_assert_locked(node);
	for (int round = 0; qps_stop(node); round++)
		hd_mr_stand_back(node, round);
	for (uint32_t i = 0; i < hd_names(node)->ep_count; i++)
		if (hd_names(node)->eps[i] && hd_names(node)->eps[i]->qp)
			hd_ep_fail(hd_names(node)->eps[i]);
	HASH_ITER(hh, hd_regions(node)->mr_table, mr, next)
		hd_mr_disable(mr);
	for (int round = 0; !hd_mrs_settled(node); round++) {
		hd_mr_stand_back(node, round);
		hd_node_poll(node); /* which ends requests here, where nobody else does */
	}
}

/*
 * Everything ends, unless a process is in the middle of a copy to it: a turn of
 * progress waits for nobody.
 */
static void qp_fall(struct hd_qp *p)
{
	if (hd_transfers_stop(p->ep)) {
		hd_qp_settle(p, FALL_NS);
		return;
	}
	qp_flush(p);
	hd_qp_check(p);
	hd_qp_event(p, HD_EV_EP_OVER, p->life.status);
}

static void qp_run(struct hd_deferred *deferred)
{
	struct hd_qp *p = hd_container(deferred, struct hd_qp, deferred);

	hd_resp_ack(p);
	if (hd_qp_has_failed(p)) {
		if (p->life.state != HD_QP_ERR)
			qp_fall(p);
		return;
	}
	hd_beside_finish(p);
	if (p->xrc_proxy)
		hd_xrc_proxy_run(p);
	if (hd_unlikely(p->life.path.moves))
		hd_path_run(p);
	hd_respq_resume(p);
	hd_resp_ack(p);
	if (p->wqes)
		hd_sq_push(p);
	hd_qp_check(p);
}

/* ---- the other end --------------------------------------------------------------------------- */

bool hd_qp_is_bound(const struct hd_qp *p)
{
	return p->life.dest && p->life.dest->state == HD_DEST_BOUND;
}

static bool qp_is_open(const struct hd_qp *p)
{
	return hd_qp_is_ready(p) && hd_qp_is_bound(p) &&
	       !hd_respq_is_broken(p, p->life.dest->peer, p->life.dest->remote);
}

bool hd_qp_is_shown_to(const struct hd_ep *ep, struct hd_page_ep *what)
{
	const struct hd_qp *p = ep->qp;

	if (ep->watch != HD_WATCH_PAIRED || !qp_is_open(p))
		return false;
	what->node = p->life.dest->peer->id;
	what->from = p->life.dest->remote | (p->attr.lossy ? HD_PAGE_LOSSY : 0);
	what->epoch = hd_epoch_row(p);
	return true;
}

static void qp_followed(struct hd_follow *follow, int err)
{
	struct hd_qp *p = hd_container(follow, struct hd_qp, life.follow);

	hd_ack_publish(p);
	p->life.accepted.due = p->life.accepted.pending = false;
	if (err)
		hd_ack_look(p);
	hd_epoch_no_more(p);
	if (err && hd_unlikely(p->life.path.addr.ss_family != AF_UNSPEC) && hd_path_lost(p)) {
		p->life.resp.broken_peer = 0;
		hd_sq_leave(p);
		return;
	}
	/* as it was when we were told */
	p->life.unreached = err && p->life.dest->state != HD_DEST_BOUND;
	if (p->life.unreached)
		hd_sq_unreached(p, hd_status_of(err));
	if (err) {
		p->life.resp.broken_peer = 0; /* whoever comes under this name is another */
		hd_sq_leave(p);
		hd_sq_lost(p, hd_status_of(err));
	}
	hd_qp_kick(p);
	if (!err) {
		hd_ep_show(p->ep);
		hd_path_bound(p);
	}
}

struct hd_qp *hd_qp_following(struct hd_follow *follow)
{
	return follow->fn == qp_followed ? hd_container(follow, struct hd_qp, life.follow) : NULL;
}

static void unfollow(struct hd_qp *p)
{
	struct hd_dest *dest = p->life.dest;

	if (!dest)
		return;
	LIST_REMOVE(&p->life.follow, entry);
	p->life.dest = NULL;
	hd_dest_unref(dest);
}

void hd_ep_pair_tune(struct hd_ep *ep, const struct hd_qp_attr *attr)
{
	struct hd_qp *p = ep->qp;

	p->life.resp.rnr_timer_us = attr->rnr_timer_us;
	hd_patience_set(&p->life.sq.epoch, attr->rnr_retry, attr->timeout_ms);
	p->life.holdoff.ms = p->attr.lossy ? 0 : attr->holdoff_ms;
}

void hd_ep_set_psn(struct hd_ep *ep, uint32_t psn)
{
	struct hd_qp *p = ep->qp;

	hd_assert_locked(ep->node);
	p->life.sq.psn = psn;
	p->life.sq.base = p->life.sq.next;
	hd_epoch_publish(p);
}

void hd_ep_psns(const struct hd_ep *ep, uint32_t *sq_psn, uint32_t *rq_psn)
{
	const struct hd_qp *p = ep->qp;

	*sq_psn = (p->life.sq.psn + (hd_qp_is_paired(p) ? p->life.sq.next - p->life.sq.base : 0)) &
		  HD_PSN_MASK;
	*rq_psn = (p->life.resp.psn + (uint32_t)(hd_qp_taken(p) - p->life.resp.base)) & HD_PSN_MASK;
}

/*
 * We are calling somebody: whoever is there will announce all of its names, and a call for each of
 * them would be one too many.
 */
static bool is_calling(const struct hd_node *node)
{
	const struct hd_link *link;

	TAILQ_FOREACH(link, &hd_links(node)->links, entry)
		if (link->shake.initiator && link->shake.dest)
			return true;
	return false;
}

int hd_ep_pair(struct hd_ep *ep, const struct hd_qp_attr *attr)
{
	struct hd_qp *p = ep->qp;
	int rc = 0;

	hd_assert_locked(ep->node);
	if (!p || (hd_qp_is_paired(p) && !attr->to))
		return -EINVAL;
	if (!hd_qp_may(p, HD_QP_STEP_PAIR))
		return p->life.state < HD_QP_ERR_FALLING ? -EISCONN : -EINVAL;
	if (hd_qp_is_paired(p))
		rc = hd_dest_get(ep->node, attr->to, &p->life.dest);
	if (rc)
		return rc;
	if (p->life.dest) {
		p->life.follow.fn = qp_followed;
		hd_dest_follower(p->life.dest, &p->life.follow);
	}
	hd_ep_pair_tune(ep, attr);
	hd_ep_set_psn(ep, 0);
	p->life.resp.psn = attr->rq_psn;
	p->life.resp.base = hd_qp_taken(p);
	hd_qp_step(p, HD_QP_STEP_PAIR);
	if (!attr->only_receives)
		hd_qp_step(p, HD_QP_STEP_START);
	hd_ep_show(ep);
	hd_respq_resume(p);
	/*
	 * so that its first request need not wait for that, nor goes by packet where nobody is
	 * known yet; it calls again if this fails
	 */
	if (p->life.dest && p->life.dest->state == HD_DEST_IDLE && !is_calling(ep->node))
		(void)hd_dest_connect(p->life.dest);
	hd_qp_check(p);
	return 0;
}

struct hd_mr *const **hd_ep_regions(struct hd_ep *ep)
{
	return &ep->qp->regions;
}

void hd_ep_allow(struct hd_ep *ep, uint32_t policy)
{
	const uint32_t rights = HD_EP_REMOTE_READ | HD_EP_REMOTE_WRITE | HD_EP_REMOTE_ATOMIC |
				HD_EP_REMOTE_FLUSH;

	hd_assert_locked(ep->node);
	hd_ep_set_policy(ep, (ep->policy & ~rights) | (policy & rights));
	hd_ep_show(ep);
}

void hd_ep_set_qkey(struct hd_ep *ep, uint32_t qkey)
{
	ep->qp->life.resp.qkey = qkey;
}

/* ---- epochs ---------------------------------------------------------------------------------- */

static int sq_make(struct hd_qp *p, uint32_t max)
{
	uint32_t n = 16;

	while (n < max)
		n *= 2;
	p->attr.max = max;
	p->attr.mask = n - 1;
	/* numbers of an earlier endpoint at this index stand for nothing */
	return hd_random(&p->life.sq.tail, sizeof(p->life.sq.tail));
}

int hd_sq_ring(struct hd_qp *p)
{
	if (!p->wqes)
		p->wqes = calloc((size_t)p->attr.mask + 1, sizeof(*p->wqes));
	return p->wqes ? 0 : -ENOMEM;
}

/* A new epoch. Numbers of WQEs run on over all of them, so that what is late stands for none. */
static void life_begin(struct hd_qp *p)
{
	const uint32_t seq = p->life.sq.tail;

	p->life = (struct hd_qp_life){
		.sq = { .head = seq, .next = seq, .tail = seq, .base = seq },
		.ack.pending = p->attr.lossy ? HD_ACK_PENDING_NEVER : HD_ACK_PENDING_NO,
		.resp.base = hd_qp_taken(p),
	};
	hd_lane_init(&p->life.lane.order, NULL);
	STAILQ_INIT(&p->life.holdoff.receives);
}

/* It sends to anybody. */
static int ud_open(struct hd_qp *p)
{
	int rc = sq_make(p, p->ep->own_tx.max);

	hd_ep_set_poster(p->ep, &hd_ud_poster);
	life_begin(p);
	return rc;
}

int hd_qp_open(struct hd_ep *ep, const struct hd_ep_attr *attr)
{
	struct hd_qp *p;
	/* what is posted leaves, and what comes is answered, without the program */
	int rc = hd_auto_serve(ep->node);

	if (rc < 0)
		return rc;
	p = calloc(1, sizeof(*p));
	if (!p)
		return -ENOMEM;
	ep->qp = p;
	hd_qps(ep->node)->pairs++;
	hd_ep_watch_more(ep, HD_WATCH_PAIRED);
	p->ep = ep;
	p->deferred.fn = qp_run;
	p->respq.rnr_wait.posted = hd_respq_posted;
	ep->owed = &p->deferred;
	p->tell = attr->tell;
	p->first_gen = ep->gen;
	p->attr.head_len = attr->head < HD_QP_HEAD ? attr->head : HD_QP_HEAD;
	p->attr.head_fill = attr->head_fill;
	p->attr.domain = attr->domain;
	TAILQ_INIT(&p->respq.queue);
	life_begin(p);
	rc = hd_xrc_proxy_open(p, attr->stray);
	if (rc)
		return rc;
	if (!(ep->policy & HD_EP_PAIRED))
		return ep->policy & HD_EP_DROP ? ud_open(p) : 0;
	hd_ep_set_poster(ep, &hd_qp_poster);
	p->attr.lossy = ep->policy & HD_EP_DROP;
	if (p->attr.lossy)
		hd_ep_set_lossy(ep);
	p->attr.wire_queue = ep->policy & HD_EP_XRC ? HD_PKT_F_TAGGED : 0;
	p->attr.wire_flags = (p->attr.lossy ? 0 : HD_PKT_F_ACK) | HD_PKT_F_SSN | p->attr.wire_queue;
	p->attr.plain = !p->attr.wire_queue && !p->attr.head_len;
	hd_ep_set_policy(ep, (ep->policy & ~(uint32_t)HD_EP_DROP) | HD_EP_IMM_RECV);
	rc = sq_make(p, ep->own_tx.max);
	life_begin(p);
	return rc ? rc : hd_sq_ring(p);
}

/* What it was, it is no longer; nothing completes. */
static void qp_clear(struct hd_qp *p)
{
	hd_resp_ack(p);
	hd_xrc_proxy_clear(p);
	hd_xrc_target_home(p);
	hd_xrc_target_forget(p);
	if (p->wqes)
		hd_sq_drop(p, 0);
	hd_qp_settle_end(p);
	hd_holdoff_end(p, HD_S_OK);
	hd_ack_leave(p);
	p->life.accepted.pending = false;
	unfollow(p);
	hd_epoch_no_more(p);
	hd_deferred_drop(p->ep->node, &p->deferred);
}

void hd_qp_end_life(struct hd_qp *p)
{
	hd_resp_ack(p);
	hd_respq_over(p, true);
	qp_clear(p);
}

void hd_qp_begin_life(struct hd_qp *p)
{
	struct hd_ep *ep = p->ep;

	if ((uint16_t)(ep->gen - p->first_gen) >
	    INT16_MAX) /* what is as old as that comes no more; else the count would wrap */
		p->first_gen = (uint16_t)(ep->gen - INT16_MAX);
	hd_qp_step(p, HD_QP_STEP_RESET);
	hd_qp_check_over(p);
	life_begin(p);
	hd_ep_set_rx_end(ep, HD_RX_OPEN);
	hd_ep_show(ep);
	hd_respq_resume(p); /* which checks it */
}

void hd_qp_close(struct hd_ep *ep)
{
	struct hd_qp *p = ep->qp;

	hd_ep_set_mark(ep, NULL);
	hd_respq_refuse_all(p);
	qp_clear(p);
	hd_xrc_target_gone(p);
	hd_qp_shut(p);
	p->life.status = HD_S_REFUSED;
}

void hd_qp_free(struct hd_ep *ep)
{
	if (!ep->qp)
		return;
	hd_respq_refuse_all(ep->qp);
	hd_xrc_proxy_close(ep->qp);
	hd_deferred_drop(ep->node, &ep->qp->deferred);
	free(ep->qp->wqes);
	free(ep->qp);
	ep->qp = NULL;
	ep->owed = NULL;
	hd_qps(ep->node)->pairs--;
}
