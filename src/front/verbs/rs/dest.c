/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Whom datagram rsockets talk with: asking services for queue pairs, and answering who asks. */
#include "front/verbs/rs/dgram.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define RESOLVE_MS 2000

/* ---- the table ------------------------------------------------------------------------------- */

bool rs_dest_is_same(const struct sockaddr_storage *a, const struct sockaddr *b)
{
	uint8_t ours[16], theirs[16];

	hv_sockaddr_map((const struct sockaddr *)a, ours);
	hv_sockaddr_map(b, theirs);
	return hv_sockaddr_port((const struct sockaddr *)a) == hv_sockaddr_port(b) &&
	       !memcmp(ours, theirs, sizeof(ours));
}

void rs_dest_forget(struct rs_dgram *dgram, struct rs_dest *d)
{
	TAILQ_REMOVE(&dgram->dests, d, entry);
	dgram->dest_count--;
	if (d->id) {
		dgram->asking--;
		rdma_destroy_id(d->id);
	}
	if (d->ah)
		hv_ibv_destroy_ah(d->ah);
	free(d);
}

void rs_dests_drop(struct rs_dgram *dgram)
{
	while (!TAILQ_EMPTY(&dgram->dests))
		rs_dest_forget(dgram, TAILQ_FIRST(&dgram->dests));
}

static struct rs_dest *known(struct rs_dgram *dgram, const struct sockaddr *addr)
{
	struct rs_dest *d;

	TAILQ_FOREACH(d, &dgram->dests, entry)
		if (rs_dest_is_same(&d->addr, addr))
			break;
	if (d && d != TAILQ_FIRST(&dgram->dests)) {
		TAILQ_REMOVE(&dgram->dests, d, entry);
		TAILQ_INSERT_HEAD(&dgram->dests, d, entry);
	}
	return d;
}

static struct rs_dest *dest_make(struct rs_dgram *dgram, const struct sockaddr *addr)
{
	struct rs_dest *d = calloc(1, sizeof(*d));

	if (!d)
		return hv_fail(ENOMEM);
	memcpy(&d->addr, addr, hv_sockaddr_size(addr));
	TAILQ_INSERT_HEAD(&dgram->dests, d, entry);
	if (++dgram->dest_count > RS_DGRAM_DESTS)
		rs_dest_forget(dgram, TAILQ_LAST(&dgram->dests, rs_dest_list));
	return d;
}

/* ---- asking ---------------------------------------------------------------------------------- */

static int dest_ask(struct rs_dgram *dgram, struct rdma_event_channel *ch, struct rs_dest *d)
{
	if (rdma_create_id(ch, &d->id, d, RDMA_PS_UDP))
		return -errno;
	dgram->asking++;
	return rdma_resolve_addr(d->id, NULL, (struct sockaddr *)&d->addr, RESOLVE_MS) ? -errno : 0;
}

struct rs_dest *rs_dest_find(struct rs_dgram *dgram, struct rdma_event_channel *ch,
			     const struct sockaddr *addr)
{
	struct rs_dest *d = known(dgram, addr);
	int rc;

	if (d)
		return d;
	d = dest_make(dgram, addr);
	if (!d)
		return NULL;
	rc = dest_ask(dgram, ch, d);
	if (!rc)
		return d;
	rs_dest_forget(dgram, d);
	return hv_fail(rc);
}

/* What is known of it now. */
static int dest_learn(struct ibv_pd *pd, struct rs_dest *d, struct ibv_ah_attr *attr, uint32_t qpn,
		      uint32_t qkey)
{
	struct ibv_ah *ah = hv_ibv_create_ah(pd, attr);

	if (!ah)
		return -errno;
	if (d->ah)
		hv_ibv_destroy_ah(d->ah);
	d->ah = ah;
	d->qpn = qpn;
	d->qkey = qkey;
	d->nobody = false;
	return 0;
}

static void dest_refused(struct rs *rs)
{
	rs->conn.err = ECONNREFUSED;
	rs->wait.came++;
}

static void dest_answered(struct rs *rs, struct rs_dest *d, const struct rdma_cm_event *e)
{
	struct ibv_ah_attr attr = e->param.ud.ah_attr;

	hv_sockaddr_map(&d->id->route.addr.src_addr, d->own);
	if (dest_learn(rs->v.pd, d, &attr, e->param.ud.qp_num, e->param.ud.qkey))
		dest_refused(rs);
}

/* One step of asking. True: it is over; without an address handle nobody has been found. */
static bool dest_step(struct rs *rs, struct rs_dest *d, const struct rdma_cm_event *e)
{
	struct rdma_conn_param none = { 0 };

	switch (e->event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		return rdma_resolve_route(d->id, RESOLVE_MS);
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		return rdma_connect(d->id, &none);
	case RDMA_CM_EVENT_ESTABLISHED:
		dest_answered(rs, d, e);
		return true;
	default:
		return true;
	}
}

bool rs_dest_is_peer(const struct rs_dgram *dgram, const struct rs_dest *d)
{
	return dgram->peer.ss_family && rs_dest_is_same(&dgram->peer, (const struct sockaddr *)&d->addr);
}

/* It has been asked. As with UDP, only who has connected hears that nobody is there. */
static void asked(struct rs *rs, struct rs_dest *d)
{
	rdma_destroy_id(d->id);
	d->id = NULL;
	rs->dgram->asking--;
	if (d->ah)
		return;
	d->nobody = true;
	if (rs_dest_is_peer(rs->dgram, d))
		dest_refused(rs);
}

/* ---- answering ------------------------------------------------------------------------------- */

static void dest_answer(const struct rs_verbs *v, struct rdma_cm_id *id)
{
	struct rdma_conn_param p = { .qp_num = v->qp->qp_num };

	rdma_accept(id, &p);
	rdma_destroy_id(id);
}

void rs_dgram_events(struct rs *rs)
{
	struct rdma_cm_event *e;

	while (!rdma_get_cm_event(rs->ch, &e)) {
		struct rdma_cm_id *id = e->id;
		struct rs_dest *d = id->context;
		bool asks = e->event == RDMA_CM_EVENT_CONNECT_REQUEST, over = false;

		if (!asks && id != rs->id)
			over = dest_step(rs, d, e);
		rdma_ack_cm_event(e);
		if (asks)
			dest_answer(&rs->v, id);
		else if (over)
			asked(rs, d);
		rs_changed(rs);
	}
}

/* ---- senders --------------------------------------------------------------------------------- */

struct rs_dest *rs_dest_from(struct rs *rs, const struct ibv_wc *wc, char *block)
{
	struct ibv_grh *grh = (struct ibv_grh *)(void *)block;
	struct sockaddr_storage from;
	struct rs_dgram_head head;
	struct ibv_ah_attr attr;
	struct rs_dest *d;

	memcpy(&head, block + HV_GRH, sizeof(head));
	hv_sockaddr_unmap(head.from, be16toh(head.port), (struct sockaddr *)&from);
	d = known(rs->dgram, (struct sockaddr *)&from);
	if (!d)
		d = dest_make(rs->dgram, (struct sockaddr *)&from);
	if (!d || d->id || (d->ah && d->qpn == wc->src_qp))
		return d;
	memcpy(d->own, head.to, sizeof(d->own));
	if (hv_ibv_init_ah_from_wc(rs->v.cq->context, 1, (struct ibv_wc *)(uintptr_t)wc, grh, &attr) ||
	    dest_learn(rs->v.pd, d, &attr, wc->src_qp, RDMA_UDP_QKEY)) {
		rs_dest_forget(rs->dgram, d);
		return NULL;
	}
	return d;
}
