/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Row CM: connections come about, and do not: rdma_connect(3), rdma_accept(3), rdma_reject(3),
 * rdma_establish(3), rdma_get_cm_event(3).
 */
#include "cmt.h"

#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

/* ---- what one end says, the other hears ------------------------------------------------------ */

static void asks(struct cmt *c)
{
	char buf[56];
	struct rdma_conn_param p = cmt_param(buf, sizeof(buf), 1);
	struct rdma_cm_event *e;

	c->id = cmt_resolve(c);
	CT_TRUE(c->ct, c->id->verbs && c->id->pd);
	CT_EQ(c->ct, c->id->port_num, 1);
	CT_EQ(c->ct, c->id->route.num_paths, 1);
	CT_EQ(c->ct, ntohs(rdma_get_dst_port(c->id)), cmt_port(&c->at));
	p.responder_resources = 3;
	p.initiator_depth = 2;
	p.retry_count = 5;
	p.rnr_retry_count = 6;
	p.flow_control = 1;
	p.srq = 1;
	CMT_OK(c->ct, rdma_connect(c->id, &p));
	e = cmt_event(c, RDMA_CM_EVENT_CONNECT_RESPONSE);
	CT_TRUE(c->ct, e->id == c->id);
	CT_EQ(c->ct, e->status, 0);
	cmt_said(c, e->param.conn.private_data, e->param.conn.private_data_len, 196, 196, 2);
	CT_EQ(c->ct, e->param.conn.qp_num, 0x654321);
	CT_EQ(c->ct, e->param.conn.rnr_retry_count, 4);
	CT_EQ(c->ct, e->param.conn.responder_resources, 1);
	CT_EQ(c->ct, e->param.conn.initiator_depth, 2);
	CT_EQ(c->ct, e->param.conn.srq, 1);
	CMT_OK(c->ct, rdma_ack_cm_event(e));
	ct_sync(c->ct, NULL); /* the other end has heard nothing yet */
	ct_sync(c->ct, NULL);
	CMT_OK(c->ct, rdma_establish(c->id));
	cmt_quiet(c, 20);
}

static void answers(struct cmt *c)
{
	struct rdma_cm_event *e = cmt_event(c, RDMA_CM_EVENT_CONNECT_REQUEST);
	const struct rdma_conn_param *in = &e->param.conn;
	char buf[196];
	struct rdma_conn_param p = cmt_param(buf, sizeof(buf), 2);
	const struct ibv_sa_path_rec *path;

	c->id = e->id;
	CT_TRUE(c->ct, e->listen_id == c->listener && c->id != c->listener);
	CT_TRUE(c->ct, c->id->context == c && c->id->channel == c->ch && c->id->verbs);
	CT_EQ(c->ct, e->status, 0);
	CT_EQ(c->ct, c->id->ps, c->ps);
	CT_EQ(c->ct, c->id->route.num_paths, 1); /* that of the request, from here */
	path = c->id->route.path_rec;
	CT_TRUE(c->ct, path && path->mtu == IBV_MTU_4096 && path->pkey == htons(0xffff));
	CT_TRUE(c->ct, !memcmp(&path->sgid, &c->id->route.addr.addr.ibaddr.sgid, sizeof(path->sgid)));
	CT_TRUE(c->ct, !memcmp(&path->dgid, &c->id->route.addr.addr.ibaddr.dgid, sizeof(path->dgid)));
	cmt_said(c, in->private_data, in->private_data_len, 56, 56, 1);
	CT_EQ(c->ct, in->initiator_depth, 3); /* theirs, seen from here */
	CT_EQ(c->ct, in->responder_resources, 2);
	CT_EQ(c->ct, in->retry_count, 5);
	CT_EQ(c->ct, in->rnr_retry_count, 6);
	CT_EQ(c->ct, in->flow_control, 1);
	CT_EQ(c->ct, in->srq, 1);
	CT_EQ(c->ct, in->qp_num, 0x123456);
	CMT_OK(c->ct, rdma_ack_cm_event(e));
	p.qp_num = 0x654321;
	p.rnr_retry_count = 4;
	p.responder_resources = 2;
	p.initiator_depth = 1;
	p.srq = 1;
	CMT_OK(c->ct, rdma_accept(c->id, &p));
	ct_sync(c->ct, NULL);
	cmt_quiet(c, 50);
	ct_sync(c->ct, NULL);
	cmt_expect(c, RDMA_CM_EVENT_ESTABLISHED, c->id, 0);
}

static void compare_names(struct cmt *c)
{
	struct sockaddr_storage own = { 0 }, theirs;
	size_t len = c->family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
	int other = !c->ct->rank;

	memcpy(&own, rdma_get_local_addr(c->id), len);
	ct_put(c->ct, other, &own, sizeof(own));
	ct_get(c->ct, NULL, other, &theirs, sizeof(theirs));
	CT_EQ(c->ct, rdma_get_peer_addr(c->id)->sa_family, c->family);
	CT_TRUE(c->ct, !memcmp(rdma_get_peer_addr(c->id), &theirs, len));
	CT_TRUE(c->ct, cmt_port(&own));
}

static void request_and_answer(struct ct *ct)
{
	struct cmt c;

	cmt_serve(ct, &c);
	if (ct->rank)
		asks(&c);
	else
		answers(&c);
	compare_names(&c);
	ct_sync(ct, NULL);
	cmt_close(&c);
}

/*
 * With queue pairs: ESTABLISHED has what the answer says, and they are in RTS. Without parameters,
 * what was asked for is granted.
 */
static void with_queue_pairs(struct ct *ct)
{
	struct rdma_conn_param none = { 0 };
	struct rdma_cm_event *e;
	struct cmt c;

	cmt_serve(ct, &c);
	c.id = ct->rank ? cmt_resolve(&c) : cmt_asked(&c);
	cmt_qp(&c, c.id);
	CT_EQ(ct, cmt_state(&c, c.id), IBV_QPS_INIT);
	if (ct->rank)
		CMT_OK(ct, rdma_connect(c.id, NULL));
	else
		CMT_OK(ct, rdma_accept(c.id, NULL));
	e = cmt_event(&c, RDMA_CM_EVENT_ESTABLISHED);
	if (ct->rank) {
		CT_TRUE(ct, e->param.conn.qp_num);
		CT_TRUE(ct, e->param.conn.responder_resources && e->param.conn.initiator_depth);
	}
	CMT_OK(ct, rdma_ack_cm_event(e));
	CT_EQ(ct, cmt_state(&c, c.id), IBV_QPS_RTS);
	CMT_ERR(ct, rdma_connect(c.id, &none), EINVAL);
	CMT_ERR(ct, rdma_accept(c.id, &none), EINVAL);
	CMT_ERR(ct, rdma_establish(c.id), EINVAL);
	CMT_ERR(ct, rdma_notify(c.id, IBV_EVENT_COMM_EST), EISCONN);
	ct_sync(ct, NULL);
	cmt_close(&c);
}

static void too_long(struct ct *ct)
{
	static char buf[255];
	struct rdma_conn_param p = cmt_param(buf, 57, 1);
	struct cmt c;

	cmt_serve(ct, &c);
	if (ct->rank) {
		c.id = cmt_resolve(&c);
		CMT_ERR(ct, rdma_connect(c.id, &p), EINVAL);
		p.private_data_len = 56;
		p.private_data = NULL;
		CMT_ERR(ct, rdma_connect(c.id, &p), EINVAL);
		p.private_data = buf;
		CMT_OK(ct, rdma_connect(c.id, &p));
		cmt_expect(&c, RDMA_CM_EVENT_CONNECT_RESPONSE, c.id, 0);
	} else {
		c.id = cmt_asked(&c);
		CMT_ERR(ct, rdma_reject(c.id, buf, 149), EINVAL);
		p.private_data_len = 197;
		CMT_ERR(ct, rdma_accept(c.id, &p), EINVAL);
		p.private_data_len = 0;
		p.responder_resources = 254; /* more than the device has */
		CMT_ERR(ct, rdma_accept(c.id, &p), EINVAL);
		p.responder_resources = 1;
		CMT_OK(ct, rdma_accept(c.id, &p));
	}
	ct_sync(ct, NULL);
	cmt_close(&c);
}

/* ---- no -------------------------------------------------------------------------------------- */

static void is_rejected(struct cmt *c, int status, size_t len, uint64_t seed)
{
	char none[1];
	struct rdma_conn_param p = cmt_param(none, 0, 0);
	struct rdma_cm_id *id = cmt_resolve(c);
	struct rdma_cm_event *e;

	CMT_OK(c->ct, rdma_connect(id, &p));
	e = cmt_event(c, RDMA_CM_EVENT_REJECTED);
	CT_TRUE(c->ct, e->id == id);
	CT_EQ(c->ct, e->status, status);
	cmt_said(c, e->param.conn.private_data, e->param.conn.private_data_len, len, 148, seed);
	CMT_OK(c->ct, rdma_ack_cm_event(e));
	CMT_OK(c->ct, rdma_disconnect(id)); /* changes nothing */
	cmt_quiet(c, 0);
	CMT_OK(c->ct, rdma_destroy_id(id));
}

static void rejections(struct ct *ct)
{
	struct cmt c;
	char buf[148];

	cmt_serve(ct, &c);
	if (ct->rank) {
		is_rejected(&c, CMT_CONSUMER, 148, 1);
		is_rejected(&c, CMT_CONSUMER, 0, 0);
		is_rejected(&c, CMT_CONSUMER, 0, 0);
		is_rejected(&c, CMT_VENDOR, 5, 2);
	} else {
		ct_fill(buf, sizeof(buf), 1);
		for (int i = 0; i < 4; i++) {
			struct rdma_cm_id *id = cmt_asked(&c);

			if (i < 2)
				CMT_OK(ct, rdma_reject(id, i ? NULL : buf, i ? 0 : 148));
			ct_fill(buf, 5, 2);
			if (i == 3)
				CMT_OK(ct, rdma_reject_ece(id, buf, 5));
			if (i != 2) { /* the third one goes without a word */
				CMT_ERR(ct, rdma_reject(id, NULL, 0), EINVAL);
				CMT_ERR(ct, rdma_accept(id, NULL), EINVAL);
				CMT_OK(ct, rdma_disconnect(id)); /* changes nothing */
			}
			CMT_OK(ct, rdma_destroy_id(id));
		}
	}
	ct_sync(ct, NULL);
	cmt_close(&c);
}

/*
 * The caller does not like the answer: it knows, and has been in no connection, nor does the
 * called id leave a timewait state, which it never was in. The slow case waits for longer
 * than that would have taken.
 */
static void the_answer_is_rejected(struct ct *ct)
{
	int quiet = ct->cs->slow ? 700 : 50;
	size_t len = (size_t)ct->cs->arg;
	char none[1], buf[148];
	struct rdma_conn_param p = cmt_param(none, 0, 0);
	struct rdma_cm_event *e;
	struct cmt c;

	cmt_serve(ct, &c);
	c.id = ct->rank ? cmt_resolve(&c) : cmt_asked(&c);
	if (ct->rank) {
		CMT_OK(ct, rdma_connect(c.id, &p));
		cmt_expect(&c, RDMA_CM_EVENT_CONNECT_RESPONSE, c.id, 0);
		ct_fill(buf, len, 9);
		CMT_ERR(ct, rdma_reject(c.id, buf, 149), EINVAL);
		if (ct->cs->arg == 5)
			CMT_OK(ct, rdma_reject_ece(c.id, buf, (uint8_t)len));
		else
			CMT_OK(ct, rdma_reject(c.id, buf, (uint8_t)len));
		cmt_quiet(&c, quiet);
	} else {
		CMT_OK(ct, rdma_accept(c.id, &p));
		e = cmt_event(&c, RDMA_CM_EVENT_REJECTED);
		CT_TRUE(ct, e->id == c.id);
		CT_EQ(ct, e->status, ct->cs->arg == 5 ? CMT_VENDOR : CMT_CONSUMER);
		cmt_said(&c, e->param.conn.private_data, e->param.conn.private_data_len, len, 148, 9);
		CMT_OK(ct, rdma_ack_cm_event(e));
		CMT_OK(ct, rdma_disconnect(c.id));
		cmt_quiet(&c, quiet);
	}
	ct_sync(ct, NULL);
	cmt_close(&c);
}

/*
 * Nobody listens there: at no port of this space, after the listener has
 * gone, and in another space.
 */
static void nobody(struct ct *ct)
{
	struct cmt c, other;

	cmt_serve(ct, &c);
	other = c;
	if (ct->rank) {
		c.ps = RDMA_PS_IB;
		is_rejected(&c, CMT_NOBODY, 0, 0);
		c.ps = RDMA_PS_TCP;
		ct_sync(ct, NULL);
		ct_sync(ct, NULL);
		is_rejected(&c, CMT_NOBODY, 0, 0);
	} else {
		ct_sync(ct, NULL);
		CMT_OK(ct, rdma_destroy_id(c.listener));
		c.listener = NULL;
		ct_sync(ct, NULL);
	}
	ct_sync(ct, NULL);
	cmt_quiet(&other, 0);
	cmt_close(&c);
}

/*
 * No way there is, or no answer ever comes: an error event with a negative errno, and
 * the id can be destroyed.
 */
static void no_such_host(struct ct *ct)
{
	struct rdma_cm_event *e;
	struct cmt c;

	setenv("HEDDLE_CONNECT_TIMEOUT", "200", 1);
	cmt_open(ct, &c);
	cmt_any(AF_INET6, 4000, &c.at);
	((struct sockaddr_in6 *)&c.at)->sin6_addr.s6_addr[0] =
		1; /* 100::/64, where everything is discarded */
	c.id = cmt_id(&c);
	CMT_OK(ct, rdma_resolve_addr(c.id, NULL, cmt_at(&c), 1000));
	e = cmt_read(&c);
	if (e->event == RDMA_CM_EVENT_ADDR_RESOLVED) {
		CMT_OK(ct, rdma_ack_cm_event(e));
		CMT_OK(ct, rdma_resolve_route(c.id, 1000));
		cmt_expect(&c, RDMA_CM_EVENT_ROUTE_RESOLVED, c.id, 0);
		CMT_OK(ct, rdma_connect(c.id, NULL));
		e = cmt_event(&c, RDMA_CM_EVENT_UNREACHABLE);
	}
	CT_TRUE(ct, e->event == RDMA_CM_EVENT_ADDR_ERROR || e->event == RDMA_CM_EVENT_UNREACHABLE);
	CT_TRUE(ct, e->id == c.id && e->status < 0);
	CMT_OK(ct, rdma_ack_cm_event(e));
	CMT_ERR(ct, rdma_connect(c.id, NULL), EINVAL);
	cmt_close(&c);
}

/*
 * More callers than the backlog has room for wait for their turn: the program may read all of them
 * before it answers the first.
 */
static void backlog(struct ct *ct)
{
	enum {
		ROOM = 2,
		CALLERS = 12
	};
	struct rdma_cm_id *id[CALLERS];
	char none[1];
	struct rdma_conn_param p = cmt_param(none, 0, 0);
	struct cmt c;

	cmt_open(ct, &c);
	if (!ct->rank)
		cmt_listen(&c, ROOM);
	else
		cmt_find(&c);
	for (int i = 0; ct->rank && i < CALLERS; i++)
		id[i] = cmt_resolve(&c);
	for (int i = 0; ct->rank && i < CALLERS; i++)
		CMT_OK(ct, rdma_connect(id[i], &p));
	if (ct->rank)
		cmt_quiet(&c, 50);
	ct_sync(ct, NULL);
	for (int i = 0; !ct->rank && i < CALLERS; i++)
		id[i] = cmt_asked(&c);
	for (int i = 0; !ct->rank && i < CALLERS; i++)
		CMT_OK(ct, rdma_accept(id[i], &p));
	for (int i = 0; ct->rank && i < CALLERS; i++)
		CMT_OK(ct, rdma_ack_cm_event(cmt_event(&c, RDMA_CM_EVENT_CONNECT_RESPONSE)));
	ct_sync(ct, NULL);
	for (int i = 0; i < CALLERS; i++)
		CMT_OK(ct, rdma_destroy_id(id[i]));
	cmt_close(&c);
}

/*
 * Whoever is called by several at once, as nobody has called before, hears of them in the order
 * in which they have called.
 */
static void in_turn(struct ct *ct)
{
	enum {
		CALLERS = 8
	};
	struct rdma_cm_id *id[CALLERS];
	struct cmt c;

	cmt_serve(ct, &c);
	for (int i = 0; ct->rank && i < CALLERS; i++)
		id[i] = cmt_resolve(&c);
	for (uint8_t i = 0; ct->rank && i < CALLERS; i++) {
		struct rdma_conn_param p = { .private_data = &i, .private_data_len = 1, .qp_num = 1 };

		CMT_OK(ct, rdma_connect(id[i], &p));
	}
	for (int i = 0; !ct->rank && i < CALLERS; i++) {
		struct rdma_cm_event *e = cmt_event(&c, RDMA_CM_EVENT_CONNECT_REQUEST);

		CT_EQ(ct, *(const uint8_t *)e->param.conn.private_data, i);
		id[i] = e->id;
		CMT_OK(ct, rdma_ack_cm_event(e));
	}
	ct_sync(ct, NULL);
	for (int i = 0; i < CALLERS; i++)
		CMT_OK(ct, rdma_destroy_id(id[i]));
	cmt_close(&c);
}

/* The caller goes before it is answered: accepting says so. */
static void the_caller_goes(struct ct *ct)
{
	struct cmt c;

	cmt_serve(ct, &c);
	c.id = ct->rank ? cmt_resolve(&c) : NULL;
	if (ct->rank) {
		CMT_OK(ct, rdma_connect(c.id, NULL));
		ct_sync(ct, NULL);
		CMT_OK(ct, rdma_destroy_id(c.id));
		c.id = NULL;
		ct_sync(ct, NULL);
	} else {
		c.id = cmt_asked(&c);
		ct_sync(ct, NULL);
		ct_sync(ct, NULL); /* it has gone; nothing tells whether that has come here */
		usleep(20000);
		if (rdma_accept(c.id, NULL) == 0) /* it was on its way still */
			CMT_OK(ct, rdma_ack_cm_event(cmt_event(&c, RDMA_CM_EVENT_UNREACHABLE)));
		else
			CT_EQ(ct, errno, ECONNABORTED);
	}
	ct_sync(ct, NULL);
	cmt_close(&c);
}

/*
 * The same before the program, which knows from the descriptor that there is an event, has read
 * it: reading does not wait.
 */
static void the_caller_goes_unread(struct ct *ct)
{
	struct cmt c;

	cmt_serve(ct, &c);
	c.id = ct->rank ? cmt_resolve(&c) : NULL;
	if (ct->rank) {
		CMT_OK(ct, rdma_connect(c.id, NULL));
		ct_sync(ct, NULL);
		CMT_OK(ct, rdma_destroy_id(c.id));
		c.id = NULL;
		ct_sync(ct, NULL);
	} else {
		struct pollfd p = { .fd = c.ch->fd, .events = POLLIN };

		CT_EQ(ct, poll(&p, 1, -1), 1);
		ct_sync(ct, NULL);
		ct_sync(ct, NULL);
		usleep(20000); /* it may be noticed, or not yet */
		c.id = cmt_asked(&c);
		CMT_OK(ct, rdma_reject(c.id, NULL, 0));
	}
	ct_sync(ct, NULL);
	cmt_close(&c);
}

/* ---- ECE ------------------------------------------------------------------------------------- */

static void ece(struct ct *ct)
{
	struct ibv_ece own = { .vendor_id = 0x1000u + (unsigned)ct->rank, .options = 7 }, other;
	char none[1];
	struct rdma_conn_param p = cmt_param(none, 0, 0);
	struct cmt c;

	cmt_serve(ct, &c);
	c.id = ct->rank ? cmt_resolve(&c) : cmt_asked(&c);
	CMT_ERR(ct, rdma_set_local_ece(c.id, &(struct ibv_ece){ 0 }), EINVAL);
	CMT_OK(ct, rdma_set_local_ece(c.id, &own));
	if (ct->rank) {
		CMT_OK(ct, rdma_connect(c.id, &p));
		cmt_expect(&c, RDMA_CM_EVENT_CONNECT_RESPONSE, c.id, 0);
	}
	CMT_OK(ct, rdma_get_remote_ece(c.id, &other));
	CT_EQ(ct, other.vendor_id, 0x1000 + !ct->rank);
	CT_EQ(ct, other.options, 7);
	CT_EQ(ct, other.comp_mask, 0);
	if (ct->rank)
		CMT_OK(ct, rdma_establish(c.id));
	else
		CMT_OK(ct, rdma_accept(c.id, &p));
	if (!ct->rank)
		cmt_expect(&c, RDMA_CM_EVENT_ESTABLISHED, c.id, 0);
	ct_sync(ct, NULL);
	cmt_close(&c);
}

const struct ct_case vt_cm_connect[] = {
	{ "CM", "request-and-answer", CT_TWO(request_and_answer), .arg = 4 },
	{ "CM", "request-and-answer-ipv6", CT_TWO(request_and_answer), .arg = 6 },
	{ "CM", "with-queue-pairs", CT_TWO(with_queue_pairs), .arg = 4 },
	{ "CM", "with-queue-pairs-ipv6", CT_TWO(with_queue_pairs), .arg = 6 },
	{ "CM", "private-data-too-long", CT_TWO(too_long) },
	{ "CM", "reject", CT_TWO(rejections), .arg = 4 },
	{ "CM", "reject-ipv6", CT_TWO(rejections), .arg = 6 },
	{ "CM", "reject-the-answer", CT_TWO(the_answer_is_rejected) },
	{ "CM", "reject-the-answer-data", CT_TWO(the_answer_is_rejected), .arg = 148 },
	{ "CM", "reject-the-answer-vendor", CT_TWO(the_answer_is_rejected), .arg = 5 },
	{ "CM", "reject-the-answer-timewait", CT_TWO(the_answer_is_rejected), .slow = true },
	{ "CM", "nobody-listens", CT_TWO(nobody), .arg = 4 },
	{ "CM", "nobody-listens-ipv6", CT_TWO(nobody), .arg = 6 },
	{ "CM", "no-such-host", { no_such_host } },
	{ "CM", "backlog", CT_TWO(backlog) },
	{ "CM", "in-turn", CT_TWO(in_turn) },
	{ "CM", "caller-goes", CT_TWO(the_caller_goes) },
	{ "CM", "caller-goes-unread", CT_TWO(the_caller_goes_unread) },
	{ "CM", "ece", CT_TWO(ece) },
	{ 0 },
};
