/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * See engine/api/view.h. All that is copied here is of another process: no
 * pointer in it leads anywhere.
 */
#include "base/clock.h"
#include "engine/engine.h"
#include "engine/ep/ep.h"
#include "engine/event/event.h"
#include "engine/link/link.h"
#include "engine/node/node.h"
#include "engine/qp/qp.h"

#include <inttypes.h>
#include <stdio.h>

#define VIEW_EPS 65536 /* of one node; more are not shown */
#define VIEW_PEERS 65536

#define VIEW_MIX(sum, n) ((sum)*1000003u ^ (uint64_t)(n))

/* Of the build: where things stand in what is read. */
uint64_t hd_view_layout(void)
{
	static const size_t stands[] = {
		sizeof(struct hd_node),
		sizeof(struct hd_ep),
		sizeof(struct hd_qp),
		sizeof(struct hd_conn),
		sizeof(struct hd_service),
		sizeof(struct hd_peer),
		sizeof(struct hd_rq),
		sizeof(struct hd_cq),
		sizeof(struct hd_cntr),
		sizeof(struct hd_channel),
		sizeof(struct hd_evq),
		sizeof(struct hd_wset),
		sizeof(struct hd_transfer),
		sizeof(struct hd_dest),
		offsetof(struct hd_core, arms),
		offsetof(struct hd_core, worker.besides),
		offsetof(struct hd_evq, since),
		offsetof(struct hd_channel, asleep),
		offsetof(struct hd_ep, transfers),
		offsetof(struct hd_names, eps),
		offsetof(struct hd_links, peers),
		offsetof(struct hd_ep, qp),
		offsetof(struct hd_ep, conn),
		offsetof(struct hd_qp, life.state),
		offsetof(struct hd_qp, respq),
		offsetof(struct hd_conn, state),
		offsetof(struct hd_conn, carries),
		offsetof(struct hd_service, pending),
		offsetof(struct hd_peer, hh),
		offsetof(struct hd_rq, match[1]),
		HD_WIRE_VERSION,
		HD_PAGE_VERSION,
		HD_QP_STATES,
		HD_CONN_STATES,
	};
	uint64_t sum = 1;

	for (size_t i = 0; i < sizeof(stands) / sizeof(stands[0]); i++)
		sum = VIEW_MIX(sum, stands[i]);
	return sum;
}

static bool view_get(const struct hd_view_reader *r, const void *at, void *to, size_t len)
{
	return at && r->read(r->arg, (uint64_t)(uintptr_t)at, to, len);
}

/* ---- endpoints ------------------------------------------------------------------------------- */

/* One endpoint with what it points to, all of it copied. */
struct view_parts {
	struct hd_ep ep;
	struct hd_rq rq;
	struct hd_cq rx_cq, tx_cq;
	struct hd_txq tx;
	struct hd_qp qp;
	struct hd_conn conn; /* idle: there is none */
	struct hd_service service;
	struct hd_bound_port port;
	/* on whose credit or room the send queue waits; state DEAD: on nobody's */
	struct hd_peer peer;
	struct hd_node_id answers; /* the node whose answer its sends wait for; zero: not known */
	/* of a counter that somebody waits for: where it is and shall be; equal: there is none */
	uint64_t counted, wanted;
	bool triggers; /* who waits is a triggered operation */
	/* at its queues of completions and events; how == NULL: nobody is known to sleep there */
	struct view_sleep {
		const char *what, *how;
		uint64_t since; /* hd_ticks(); 0: not known */
	} sleep;
};

/* One by which a front hears what other processes ask: no program has opened it. */
static bool is_voice(const struct hd_ep *ep)
{
	return ep->policy & HD_EP_XRC_QUEUE && ep->own_rq;
}

static const char *state_of(const struct view_parts *v)
{
	if (v->ep.conn)
		return hd_conn_state_name(v->conn.state);
	return v->ep.qp && !hd_ep_is_shared_rq(&v->ep) ? hd_qp_state_name(v->qp.life.state) : "open";
}

/* What a connection under way waits for; NULL: there is none. */
static const char *conn_waits_for(const struct hd_conn *c)
{
	switch (c->state) {
	case HD_CONN_CALLING:
	case HD_CONN_REACHING:
		return "the other end to be reached";
	case HD_CONN_ASKED:
		return "the other end to accept (fi_accept, rdma_accept, dat_cr_accept)";
	case HD_CONN_AGREED:
		return "this program to confirm";
	case HD_CONN_ANSWERED:
		return "the other end to confirm";
	default:
		return NULL;
	}
}

/* A request waits for a receive: how many of the tries that its sender allows are over. */
static void say_rnr(const struct view_parts *v, char *text, size_t size)
{
	const struct hd_respq *q = &v->qp.respq;
	const uint32_t timer_us = v->qp.life.resp.rnr_timer_us;
	const bool shared = !v->ep.own_rq || v->ep.policy & HD_EP_XRC;
	const char *where = shared ? "to a shared receive queue" : "here";
	const uint64_t now = hd_now_ns(), each = (uint64_t)timer_us * 1000;
	uint64_t left;

	if (!q->timer.due || !each) {
		snprintf(text, size, "a receive to be posted %s (RNR, tried without end)", where);
		return;
	}
	left = q->timer.due > now ? (q->timer.due - now + each - 1) / each : 0;
	snprintf(text, size, "a receive to be posted %s (RNR, %" PRIu64 " of %u)", where,
		 left < q->retries ? q->retries - left : 0, q->retries);
}

/* many: 0: it is not known how many. */
static void say_answer(const struct view_parts *v, struct hd_view_ep *shown, uint32_t many)
{
	char to[16] = "";

	if (many)
		snprintf(to, sizeof(to), " to %u", many);
	snprintf(shown->waits_for, sizeof(shown->waits_for), "the other end's answer%s", to);
	shown->answers = v->answers;
}

static void say_queue_pair(const struct view_parts *v, struct hd_view_ep *shown)
{
	const struct hd_qp_life *l = &v->qp.life;
	const size_t size = sizeof(shown->waits_for);
	char *text = shown->waits_for;

	if (v->qp.respq.rnr_wait.rq)
		say_rnr(v, text, size);
	else if (v->qp.respq.queue.tqh_first && l->state < HD_QP_RTR)
		snprintf(text, size, "this program to make it RTR (ibv_modify_qp): something has come");
	else if (l->sq.head == l->sq.tail && v->ep.is_kept)
		snprintf(text, size, "the other end's program to read what has been sent (rrecv)");
	else if (l->sq.head == l->sq.tail)
		return;
	else if (l->sq.stalled_on && v->peer.state == HD_PEER_LIVE && !v->peer.stalled)
		snprintf(text, size, "credit: the other end has not taken in what was sent");
	else if (l->sq.stalled_on)
		snprintf(text, size, "room in the link: the other end does not make progress");
	else if (l->sq.next != l->sq.head)
		say_answer(v, shown, l->sq.next - l->sq.head);
	else
		snprintf(text, size, "%s",
			 l->state == HD_QP_RTS ? "the other end to be reached"
					       : "this program to make it RTS (ibv_modify_qp)");
}

static uint32_t unread_in(const struct hd_cq *cq)
{
	return cq->none ? 0 : cq->r.tail - cq->r.head;
}

static bool queue_is_full(const struct hd_cq *cq)
{
	return !cq->none && (cq->r.overflowed || cq->r.tail - cq->r.head > cq->r.mask);
}

static enum hd_view_cause cause_of(const struct view_parts *v, uint32_t waiting)
{
	if (queue_is_full(&v->rx_cq))
		return HD_VIEW_UNREAD;
	return (v->ep.qp ? v->qp.respq.rnr_wait.rq != NULL : waiting != 0) ? HD_VIEW_NO_RECEIVE
									   : HD_VIEW_ELSE;
}

/* A thread that sleeps is no fault: it is what an idle program does. */
static void say_sleep(const struct view_sleep *sleep, char *text, size_t size)
{
	const uint64_t now = hd_ticks(),
		       us = now > sleep->since ? (now - sleep->since) / hd_ticks_per_us() : 0;

	if (sleep->since)
		snprintf(text, size, "%s, %.1f s so far (%s)", sleep->what, (double)us / 1e6, sleep->how);
	else if (sleep->how)
		snprintf(text, size, "%s (%s)", sleep->what, sleep->how);
}

static void say_ep(const struct view_parts *v, struct hd_view_ep *shown)
{
	const char *peer = conn_waits_for(&v->conn);
	const size_t size = sizeof(shown->waits_for);
	char *text = shown->waits_for;

	if (shown->cause == HD_VIEW_UNREAD || queue_is_full(&v->tx_cq))
		snprintf(text, size, "its completion queue to be read: it is full");
	else if (peer && v->conn.carries)
		snprintf(text, size, "%s, for queue pair 0x%06x", peer, v->conn.carries);
	else if (peer)
		snprintf(text, size, "%s", peer);
	else if (v->service.pending)
		snprintf(text, size, "this program to accept or reject calls (%u)", v->service.pending);
	else if (v->ep.qp)
		say_queue_pair(v, shown);
	else if (shown->cause == HD_VIEW_NO_RECEIVE)
		snprintf(text, size, "a receive to be posted here: no receive that fits is");
	else if (shown->sends)
		say_answer(v, shown, 0);
	else if (v->counted < v->wanted)
		snprintf(text, size, "its counter, %" PRIu64 " of %" PRIu64 " (%s)", v->counted, v->wanted,
			 v->triggers ? "a triggered operation" : "fi_cntr_wait");
	if (!*text)
		say_sleep(&v->sleep, text, size);
}

/* What is waited for of this counter, if anything is. */
static bool view_counter_get(const struct hd_view_reader *r, const struct hd_cntr *at, struct view_parts *v)
{
	struct hd_trigger trigger;
	struct hd_cntr c;

	if (!view_get(r, at, &c, sizeof(c)))
		return false;
	v->counted = c.value;
	v->triggers = view_get(r, c.triggers[0].tqh_first, &trigger, sizeof(trigger)) ||
		      view_get(r, c.triggers[1].tqh_first, &trigger, sizeof(trigger));
	if (v->triggers && trigger.with_errors)
		v->counted += c.errors;
	v->wanted = v->triggers ? trigger.threshold : c.w.sleepers ? c.wanted : v->counted;
	return v->counted < v->wanted;
}

static void view_counters_get(const struct hd_view_reader *r, struct view_parts *v)
{
	const struct hd_ep_cntrs *c = &v->ep.cntrs;
	const struct hd_cntr *const all[] = { c->send,	c->recv,	c->read,
					      c->write, c->remote_read, c->remote_write };

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (view_counter_get(r, all[i], v))
			return;
}

/* Threads in a wait set, where the queue is in one. */
static bool view_wset_get(const struct hd_view_reader *r, const struct hd_waiters *w, struct hd_wset *set)
{
	struct hd_wgroup group;

	return view_get(r, w->group, &group, sizeof(group)) && view_get(r, group.set, set, sizeof(*set)) &&
	       set->sleepers > 0;
}

static struct view_sleep sleep_at_cq(const struct hd_view_reader *r, const struct hd_cq *cq)
{
	struct hd_channel channel;
	struct hd_wset set;

	if (cq->none)
		return (struct view_sleep){ 0 };
	if (cq->w.sleepers > 0)
		return (struct view_sleep){ "a completion", "fi_cq_sread, dat_evd_wait", cq->w.since };
	if (view_wset_get(r, &cq->w, &set))
		return (struct view_sleep){ "a completion", "fi_cq_sread, fi_wait", set.since };
	if (view_get(r, cq->channel, &channel, sizeof(channel)) && channel.asleep.threads > 0)
		return (struct view_sleep){ cq->notice == HD_NOTICE_NONE
						    ? "an event, which is not asked for (ibv_req_notify_cq)"
						    : "an event of its completion queue",
					    "ibv_get_cq_event, dat_cno_wait", channel.asleep.since };
	if (cq->w.fd_armed)
		return (struct view_sleep){ "a completion, at its queue's descriptor", "fi_trywait", 0 };
	return (struct view_sleep){ 0 };
}

static void view_sleep_get(const struct hd_view_reader *r, struct view_parts *v)
{
	struct hd_evq evq;

	v->sleep = sleep_at_cq(r, &v->rx_cq);
	if (!v->sleep.how)
		v->sleep = sleep_at_cq(r, &v->tx_cq);
	if (v->sleep.how || !view_get(r, v->ep.evq, &evq, sizeof(evq)))
		return;
	if (evq.sleepers > 0)
		v->sleep = (struct view_sleep){ "an event", "fi_eq_sread, rdma_get_cm_event", evq.since };
	else if (evq.fd_armed)
		v->sleep = (struct view_sleep){ "an event, at its queue's descriptor", "fi_trywait", 0 };
}

/* Whom the first of its sends that are under way is for. */
static void view_answers_get(const struct hd_view_reader *r, struct view_parts *v)
{
	struct hd_transfer transfer;
	struct hd_dest dest;
	struct hd_peer peer;
	const struct hd_peer *at = NULL;

	if (v->ep.qp && view_get(r, v->qp.life.dest, &dest, sizeof(dest)))
		at = dest.peer;
	else if (view_get(r, v->ep.transfers.tqh_first, &transfer, sizeof(transfer)))
		at = transfer.pending.peer;
	if (view_get(r, at, &peer, sizeof(peer)))
		v->answers = peer.id;
}

static bool view_parts_get(const struct hd_view_reader *r, const struct hd_ep *at, struct view_parts *v)
{
	memset(v, 0, sizeof(*v));
	v->peer.state = HD_PEER_DEAD;
	if (!view_get(r, at, &v->ep, sizeof(v->ep)) || !view_get(r, v->ep.rx_cq, &v->rx_cq, sizeof(v->rx_cq)))
		return false;
	/* what is missing of these is shown as nothing */
	view_get(r, v->ep.rq, &v->rq, sizeof(v->rq));
	view_get(r, v->ep.tx, &v->tx, sizeof(v->tx));
	v->ep.bound_port = view_get(r, v->ep.bound_port, &v->port, sizeof(v->port)) ? &v->port : NULL;
	view_get(r, v->ep.conn, &v->conn, sizeof(v->conn));
	view_get(r, v->ep.service, &v->service, sizeof(v->service));
	view_get(r, v->ep.tx_cq, &v->tx_cq, sizeof(v->tx_cq));
	view_counters_get(r, v);
	if (v->ep.qp && !view_get(r, v->ep.qp, &v->qp, sizeof(v->qp)))
		return false;
	view_sleep_get(r, v);
	view_get(r, v->qp.life.sq.stalled_on, &v->peer, sizeof(v->peer));
	view_answers_get(r, v);
	return true;
}

static void view_ep(const struct hd_view_reader *r, const struct hd_ep *at, const struct hd_view_calls *calls)
{
	struct hd_view_ep shown;
	struct view_parts v;

	if (!view_parts_get(r, at, &v) || is_voice(&v.ep))
		return;
	shown = (struct hd_view_ep){
		.number = hd_ep_number_shown(&v.ep),
		.is_qp = v.ep.qp != NULL,
		.kind = hd_ep_kind(&v.ep),
		.state = state_of(&v),
		.receives = (uint32_t)(v.rq.match[0].posted + v.rq.match[1].posted),
		.sends = v.ep.qp && v.qp.wqes ? v.qp.life.sq.tail - v.qp.life.sq.head : v.tx.ops,
		.waiting = (uint32_t)(v.rq.match[0].waiting + v.rq.match[1].waiting),
		.unread = unread_in(&v.rx_cq) + (v.ep.tx_cq != v.ep.rx_cq ? unread_in(&v.tx_cq) : 0),
	};
	shown.cause = cause_of(&v, shown.waiting);
	say_ep(&v, &shown);
	calls->ep(calls->arg, &shown);
}

static int view_eps(const struct hd_view_reader *r, const struct hd_names *names,
		    const struct hd_view_calls *calls)
{
	struct hd_ep *at;

	for (uint32_t i = 0; i < names->ep_count && i < VIEW_EPS; i++) {
		if (!view_get(r, names->eps + i, &at, sizeof(at)))
			return -EIO;
		if (at)
			view_ep(r, at, calls);
	}
	return 0;
}

/* ---- peers ----------------------------------------------------------------------------------- */

/*
 * room: bytes of credit that are left: where that is not enough for any send, nothing needs to wait
 * here for the program to wait for it.
 */
static void say_peer(const struct hd_peer *p, bool sends_wait, uint64_t room, char *text, size_t size)
{
	text[0] = '\0';
	if (p->state == HD_PEER_SHAKING)
		snprintf(text, size, "its greeting");
	else if (p->stalled & HD_STALL_DOWN)
		snprintf(text, size, "a link");
	else if (p->stalled & HD_STALL_ANSWERS)
		snprintf(text, size, "room in the link: it does not make progress");
	else if (room < (uint64_t)hd_units(HD_MAX_INJECT) * HD_UNIT ||
		 (sends_wait && (room < p->eager_limit || p->eager_max < 0)))
		snprintf(text, size, "credit: it has not taken in what was sent");
}

static void view_peer(const struct hd_peer *p, const struct hd_view_calls *calls)
{
	static const char *const words[] = {
		[HD_PEER_SHAKING] = "greeting", [HD_PEER_LIVE] = "live", [HD_PEER_DEAD] = "ended"
	};
	const uint32_t left = p->credit.limit - p->credit.spent;
	struct hd_view_peer shown = {
		.id = p->id,
		.state = p->state <= HD_PEER_DEAD ? words[p->state] : "?",
		.credit = (uint64_t)((int32_t)left > 0 ? left : 0) * HD_UNIT,
		.held = (uint64_t)p->credit.held * HD_UNIT,
		.sends_wait = p->queue.tqh_first || p->stalled_sqs.tqh_first,
	};

	say_peer(p, shown.sends_wait, shown.credit, shown.waits_for, sizeof(shown.waits_for));
	calls->peer(calls->arg, &shown);
}

static int view_peers(const struct hd_view_reader *r, const struct hd_links *links,
		      const struct hd_view_calls *calls)
{
	const struct hd_peer *at = links->peers;
	struct hd_peer p;

	for (int i = 0; at && i < VIEW_PEERS; i++, at = p.hh.next) {
		if (!view_get(r, at, &p, sizeof(p)))
			return -EIO;
		view_peer(&p, calls);
	}
	return 0;
}

int hd_view_progress(const struct hd_view_reader *reader, uint64_t at, struct hd_view_progress *out)
{
	struct hd_core core;

	if (!view_get(reader, (const void *)(uintptr_t)at, &core, sizeof(core)))
		return -EIO;
	*out = (struct hd_view_progress){ .turns = core.turns,
					  .sleeps = core.arms > 0,
					  .threads = (uint32_t)(core.worker.sleepers + core.worker.besides) };
	return 0;
}

int hd_view_node(const struct hd_view_reader *reader, uint64_t at, const struct hd_view_calls *calls)
{
	struct hd_node *node = malloc(sizeof(*node));
	int rc = -EIO;

	if (!node)
		return -ENOMEM;
	if (view_get(reader, (const void *)(uintptr_t)at, node, sizeof(*node))) {
		rc = view_eps(reader, hd_names(node), calls);
		if (!rc)
			rc = view_peers(reader, hd_links(node), calls);
	}
	free(node);
	return rc;
}
