/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Row CM: calls that come twice, too early or after something else has gone wrong; what
 * waits for acknowledgements.
 */
#include "cmt.h"

#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

/* ---- addresses ------------------------------------------------------------------------------- */

/* After RDMA_CM_EVENT_ADDR_ERROR an id is what it was before, and may try another address. */
static void another_address(struct ct *ct)
{
	struct sockaddr_in nowhere = { .sin_family = AF_INET,
				       .sin_port = htons(4000),
				       .sin_addr.s_addr = INADDR_BROADCAST };
	struct rdma_cm_event *e;
	struct cmt c;

	cmt_open(ct, &c);
	cmt_here(AF_INET, 4000, &c.at);
	c.id = cmt_id(&c);
	CMT_OK(ct, rdma_resolve_addr(c.id, NULL, (struct sockaddr *)&nowhere, 100));
	e = cmt_event(&c, RDMA_CM_EVENT_ADDR_ERROR);
	CT_TRUE(ct, e->id == c.id && e->status < 0);
	CMT_OK(ct, rdma_ack_cm_event(e));
	CMT_ERR(ct, rdma_resolve_route(c.id, 100), EINVAL);
	CMT_OK(ct, rdma_resolve_addr(c.id, NULL, cmt_at(&c), 100));
	cmt_expect(&c, RDMA_CM_EVENT_ADDR_RESOLVED, c.id, 0);
	CT_TRUE(ct, !memcmp(rdma_get_peer_addr(c.id), &c.at, sizeof(struct sockaddr_in)));
	CT_EQ(ct, ntohs(rdma_get_dst_port(c.id)), 4000);
	cmt_close(&c);
}

/* One that is bound calls within its family; before it is, it has neither port nor address. */
static void families(struct ct *ct)
{
	struct sockaddr_storage own, zero = { 0 };
	struct cmt c;

	cmt_open(ct, &c);
	c.id = cmt_id(&c);
	CT_EQ(ct, rdma_get_src_port(c.id), 0);
	CT_EQ(ct, rdma_get_dst_port(c.id), 0);
	CT_TRUE(ct, !memcmp(rdma_get_local_addr(c.id), &zero, sizeof(struct sockaddr_in6)));
	CT_TRUE(ct, !memcmp(rdma_get_peer_addr(c.id), &zero, sizeof(struct sockaddr_in6)));
	cmt_here(AF_INET, 0, &own);
	cmt_here(AF_INET6, 4000, &c.at);
	CMT_OK(ct, rdma_bind_addr(c.id, (struct sockaddr *)&own));
	CMT_ERR(ct, rdma_resolve_addr(c.id, NULL, cmt_at(&c), 100), EINVAL);
	cmt_quiet(&c, 0);
	cmt_here(AF_INET, 4000, &c.at);
	CMT_OK(ct, rdma_resolve_addr(c.id, NULL, cmt_at(&c), 100));
	cmt_expect(&c, RDMA_CM_EVENT_ADDR_RESOLVED, c.id, 0);
	cmt_close(&c);
}

/*
 * A family that the hints name is the family of what is found, with or without RAI_FAMILY; a
 * scope stays with its address.
 */
static void hints(struct ct *ct)
{
	struct rdma_addrinfo want = { .ai_family = AF_INET6, .ai_port_space = RDMA_PS_TCP }, *res;
	const struct sockaddr_in6 *in6;

	if (!rdma_getaddrinfo("localhost", "4000", &want, &res)) { /* which need not have both */
		CT_EQ(ct, res->ai_family, AF_INET6);
		rdma_freeaddrinfo(res);
	}
	CT_TRUE(ct, rdma_getaddrinfo("127.0.0.1", "4000", &want, &res) != 0);
	want.ai_family = AF_INET;
	CT_EQ(ct, rdma_getaddrinfo("localhost", "4000", &want, &res), 0);
	CT_EQ(ct, res->ai_family, AF_INET);
	rdma_freeaddrinfo(res);
	want.ai_flags = RAI_PASSIVE;
	CT_EQ(ct, rdma_getaddrinfo(NULL, "4000", &want, &res), 0);
	CT_EQ(ct, res->ai_family, AF_INET);
	CT_EQ(ct, ((struct sockaddr_in *)res->ai_src_addr)->sin_addr.s_addr, htonl(INADDR_ANY));
	rdma_freeaddrinfo(res);
	want = (struct rdma_addrinfo){ .ai_flags = RAI_NUMERICHOST };
	CT_EQ(ct, rdma_getaddrinfo("fe80::1%lo", "4000", &want, &res), 0);
	in6 = (const struct sockaddr_in6 *)res->ai_dst_addr;
	CT_TRUE(ct, in6->sin6_family == AF_INET6 && in6->sin6_scope_id != 0 && in6->sin6_port == htons(4000));
	rdma_freeaddrinfo(res);
	CT_TRUE(ct, rdma_getaddrinfo("127.0.0.1", "no-such-service", &want, &res) != 0);
}

/* rdma_get_devices(3): each of our devices that ibv_get_device_list(3) has is there, and open. */
static void device_list(struct ct *ct)
{
	int count = -1;
	struct ibv_context **open = rdma_get_devices(&count);
	struct ibv_device **all = ibv_get_device_list(NULL);

	CT_TRUE(ct, open && all && count >= 0 && !open[count]);
	for (int i = 0; all[i]; i++) {
		struct ibv_pd *pd;
		int at = 0;

		if (strncmp(ibv_get_device_name(all[i]), "heddle", 6) !=
		    0) /* a card's, which ids are not bound to */
			continue;
		while (at < count && open[at]->device != all[i])
			at++;
		CT_TRUE(ct, at < count);
		pd = ibv_alloc_pd(open[at]);
		CT_TRUE(ct, pd);
		CT_EQ(ct, ibv_dealloc_pd(pd), 0);
	}
	rdma_free_devices(open);
	CT_TRUE(ct, (open = rdma_get_devices(NULL)) != NULL); /* nobody needs the count */
	rdma_free_devices(open);
	ibv_free_device_list(all);
}

/* ---- too often ------------------------------------------------------------------------------- */

static void twice(struct ct *ct)
{
	struct ibv_qp_init_attr attr = { .cap = { 1, 1, 1, 1, 0 }, .qp_type = IBV_QPT_RC };
	struct ibv_context **devices;
	struct ibv_pd *pd = NULL;
	struct cmt c;

	cmt_serve(ct, &c);
	if (ct->rank) {
		c.id = cmt_resolve(&c);
		devices = rdma_get_devices(NULL);
		CT_TRUE(ct, devices && devices[0] == c.id->verbs && devices[1] && !devices[2]);
		pd = ibv_alloc_pd(devices[0]); /* another domain of the same device will do */
		CT_TRUE(ct, pd);
		CMT_OK(ct, rdma_create_qp(c.id, pd, &attr));
		CT_TRUE(ct, c.id->qp->pd == pd && c.id->pd == pd && attr.cap.max_send_wr >= 1);
		rdma_free_devices(devices);
		CMT_OK(ct, rdma_connect(c.id, NULL));
		CMT_ERR(ct, rdma_connect(c.id, NULL), EINVAL);
		cmt_expect(&c, RDMA_CM_EVENT_ESTABLISHED, c.id, 0);
		CMT_ERR(ct, rdma_connect(c.id, NULL), EINVAL);
		CMT_ERR(ct, rdma_accept(c.id, NULL), EINVAL);
		CMT_ERR(ct, rdma_listen(c.id, 1), EINVAL);
		CMT_ERR(ct, rdma_establish(c.id), EINVAL); /* it has a queue pair */
	} else {
		c.id = cmt_asked(&c);
		cmt_qp(&c, c.id);
		CMT_ERR(ct, rdma_connect(c.id, NULL), EINVAL);
		CMT_ERR(ct, rdma_resolve_addr(c.id, NULL, cmt_at(&c), 10), EINVAL);
		CMT_OK(ct, rdma_accept(c.id, NULL));
		CMT_ERR(ct, rdma_accept(c.id, NULL), EINVAL);
		CMT_ERR(ct, rdma_reject(c.id, NULL, 0), EINVAL);
		cmt_expect(&c, RDMA_CM_EVENT_ESTABLISHED, c.id, 0);
		CMT_ERR(ct, rdma_listen(c.listener, 3), EINVAL);
		CMT_ERR(ct, rdma_accept(c.listener, NULL), EINVAL);
		CMT_ERR(ct, rdma_disconnect(c.listener), EINVAL);
		CMT_ERR(ct, rdma_notify(c.id, IBV_EVENT_COMM_EST), EISCONN);
		CMT_ERR(ct, rdma_notify(c.id, IBV_EVENT_QP_FATAL), EINVAL);
		CMT_OK(ct, rdma_notify(c.id, IBV_EVENT_PATH_MIG));
	}
	ct_sync(ct, NULL);
	if (ct->rank) {
		CMT_OK(ct, rdma_disconnect(c.id));
		CT_EQ(ct, cmt_state(&c, c.id), IBV_QPS_ERR);
		CMT_OK(ct, rdma_disconnect(c.id)); /* as programs do that read of the end */
		rdma_destroy_qp(c.id);
		CT_EQ(ct, ibv_dealloc_pd(pd), 0);
	}
	cmt_expect(&c, RDMA_CM_EVENT_DISCONNECTED, c.id, 0);
	CMT_OK(ct, rdma_disconnect(c.id));
	cmt_expect(&c, RDMA_CM_EVENT_TIMEWAIT_EXIT, c.id, 0);
	CMT_OK(ct, rdma_disconnect(c.id));
	cmt_quiet(&c, 20);
	ct_sync(ct, NULL);
	cmt_close(&c);
}

/* ---- answers --------------------------------------------------------------------------------- */

/*
 * Whoever accepts is told by its queue pair that the other end is there, and says so (rdma_notify):
 * then it is connected, whether or not the other program ever completes the connection. As much as
 * there is (RDMA_MAX_…) is what was asked for.
 */
static void notified(struct ct *ct)
{
	char none[1];
	struct rdma_conn_param p = cmt_param(none, 0, 0);
	struct rdma_cm_event *e;
	struct cmt c;

	cmt_serve(ct, &c);
	c.id = ct->rank ? cmt_resolve(&c) : cmt_asked(&c);
	if (ct->rank) {
		p.responder_resources = 2;
		p.initiator_depth = 3;
		CMT_OK(ct, rdma_connect(c.id, &p));
		e = cmt_event(&c, RDMA_CM_EVENT_CONNECT_RESPONSE);
		CT_EQ(ct, e->param.conn.responder_resources, 2);
		CT_EQ(ct, e->param.conn.initiator_depth, 3);
		CMT_OK(ct, rdma_ack_cm_event(e));
		ct_sync(ct, NULL);
		ct_sync(ct, NULL);
		CMT_OK(ct, rdma_establish(c.id));
		ct_sync(ct, NULL);
		CMT_OK(ct, rdma_disconnect(c.id));
	} else {
		p.responder_resources = RDMA_MAX_RESP_RES;
		p.initiator_depth = RDMA_MAX_INIT_DEPTH;
		CMT_OK(ct, rdma_accept(c.id, &p));
		ct_sync(ct, NULL);
		CMT_OK(ct, rdma_notify(c.id, IBV_EVENT_COMM_EST));
		cmt_expect(&c, RDMA_CM_EVENT_ESTABLISHED, c.id, 0);
		CMT_ERR(ct, rdma_notify(c.id, IBV_EVENT_COMM_EST), EISCONN);
		ct_sync(ct, NULL);
		cmt_quiet(&c, 50);
		ct_sync(ct, NULL);
	}
	cmt_expect(&c, RDMA_CM_EVENT_DISCONNECTED, c.id, 0);
	ct_sync(ct, NULL);
	cmt_close(&c);
}

/* What the id has of the two CQs is its own, what it was given is not. */
static void half_the_queues(struct ct *ct)
{
	struct ibv_qp_init_attr attr = { .cap = { 4, 4, 1, 1, 0 }, .qp_type = IBV_QPT_RC };
	struct sockaddr_storage own;
	struct ibv_cq *cq;
	struct cmt c;

	cmt_open(ct, &c);
	cmt_here(AF_INET, 0, &own);
	c.id = cmt_id(&c);
	CMT_OK(ct, rdma_bind_addr(c.id, (struct sockaddr *)&own));
	cq = ibv_create_cq(c.id->verbs, 8, NULL, NULL, 0);
	CT_TRUE(ct, cq);
	attr.send_cq = cq;
	CMT_OK(ct, rdma_create_qp(c.id, NULL, &attr));
	CT_TRUE(ct, c.id->send_cq == cq && !c.id->send_cq_channel && c.id->recv_cq && c.id->recv_cq != cq &&
			    c.id->recv_cq_channel && attr.recv_cq == c.id->recv_cq);
	rdma_destroy_qp(c.id);
	CT_TRUE(ct, !c.id->qp && !c.id->send_cq && !c.id->recv_cq);
	CT_EQ(ct, ibv_destroy_cq(cq), 0);
	cmt_close(&c);
}

/* ---- listeners that go ----------------------------------------------------------------------- */

/* A request that has been read outlives its listener; one that has not is rejected with it. */
static void listener_goes(struct ct *ct)
{
	struct cmt c;

	cmt_serve(ct, &c);
	if (ct->rank) {
		struct rdma_cm_id *second;

		c.id = cmt_resolve(&c);
		CMT_OK(ct, rdma_connect(c.id, NULL));
		ct_sync(ct, NULL); /* read */
		second = cmt_resolve(&c);
		CMT_OK(ct, rdma_connect(second, NULL));
		ct_sync(ct, NULL);
		cmt_expect(&c, RDMA_CM_EVENT_REJECTED, second, CMT_CONSUMER);
		ct_sync(ct, NULL);
		cmt_expect(&c, RDMA_CM_EVENT_CONNECT_RESPONSE, c.id, 0);
		CMT_OK(ct, rdma_establish(c.id));
		CMT_OK(ct, rdma_destroy_id(second));
	} else {
		struct pollfd p = { .fd = c.ch->fd, .events = POLLIN };

		c.id = cmt_asked(&c);
		ct_sync(ct, NULL);
		while (poll(&p, 1, 100) != 1)
			;
		ct_sync(ct, NULL);
		CMT_OK(ct, rdma_destroy_id(c.listener));
		c.listener = NULL;
		cmt_quiet(&c, 0);
		ct_sync(ct, NULL);
		CMT_OK(ct, rdma_accept(c.id, NULL));
		cmt_expect(&c, RDMA_CM_EVENT_ESTABLISHED, c.id, 0);
	}
	ct_sync(ct, NULL);
	cmt_close(&c);
}

/* rdma_get_request: a queue pair that cannot be had is an error of that request alone. */
static void hopeless_request(struct ct *ct)
{
	struct rdma_addrinfo want = { .ai_flags = RAI_PASSIVE, .ai_port_space = RDMA_PS_TCP }, *res;
	struct ibv_qp_init_attr attr = { .cap = { 1u << 30, 4, 1, 1, 0 } };
	struct rdma_cm_id *listener, *id;
	struct cmt c;

	cmt_open(ct, &c);
	if (ct->rank) {
		cmt_find(&c);
		for (int i = 0; i < 2; i++) {
			c.id = cmt_resolve(&c);
			CMT_OK(ct, rdma_connect(c.id, NULL));
			cmt_expect(&c, RDMA_CM_EVENT_REJECTED, c.id, CMT_CONSUMER);
			CMT_OK(ct, rdma_destroy_id(c.id));
		}
		c.id = NULL;
	} else {
		CT_EQ(ct, rdma_getaddrinfo("127.0.0.1", "0", &want, &res), 0);
		CMT_OK(ct, rdma_create_ep(&listener, res, NULL, &attr));
		rdma_freeaddrinfo(res);
		CMT_OK(ct, rdma_listen(listener, 4));
		cmt_here(AF_INET, ntohs(rdma_get_src_port(listener)), &c.at);
		ct_put(ct, 1, &c.at, sizeof(c.at));
		for (int i = 0; i < 2; i++)
			CMT_ERR(ct, rdma_get_request(listener, &id), EINVAL);
		rdma_destroy_ep(listener);
	}
	ct_sync(ct, NULL);
	cmt_close(&c);
}

/* ---- events that are out --------------------------------------------------------------------- */

struct mover {
	struct rdma_cm_id *id;
	struct rdma_event_channel *to;
	atomic_bool done;
	int rc;
};

static void *move(void *arg)
{
	struct mover *m = arg;

	m->rc = rdma_migrate_id(m->id, m->to);
	atomic_store(&m->done, true);
	return NULL;
}

/* rdma_migrate_id waits until what has been read of the old channel is acknowledged. */
static void migration_waits(struct ct *ct)
{
	struct mover m = { .rc = -1 };
	struct rdma_cm_event *e;
	pthread_t thread;
	struct cmt c;

	cmt_open(ct, &c);
	cmt_here(AF_INET, 4000, &c.at);
	c.id = cmt_id(&c);
	CMT_OK(ct, rdma_resolve_addr(c.id, NULL, cmt_at(&c), 100));
	e = cmt_event(&c, RDMA_CM_EVENT_ADDR_RESOLVED);
	m.id = c.id;
	m.to = rdma_create_event_channel();
	CT_TRUE(ct, m.to);
	CT_EQ(ct, pthread_create(&thread, NULL, move, &m), 0);
	ct_let_others_sleep();
	CT_TRUE(ct, !atomic_load(&m.done));
	CMT_OK(ct, rdma_ack_cm_event(e));
	CT_EQ(ct, pthread_join(thread, NULL), 0);
	CT_EQ(ct, m.rc, 0);
	CT_TRUE(ct, c.id->channel == m.to);
	rdma_destroy_event_channel(c.ch);
	c.ch = m.to;
	CMT_OK(ct, rdma_resolve_route(c.id, 100));
	cmt_expect(&c, RDMA_CM_EVENT_ROUTE_RESOLVED, c.id, 0);
	cmt_close(&c);
}

/*
 * A queue pair for which no protection domain is named is of the default one, whichever its
 * shared receive queue is of.
 */
static void default_domain(struct ct *ct)
{
	struct ibv_qp_init_attr attr = { .cap = { 4, 4, 1, 1, 0 }, .qp_type = IBV_QPT_RC, .sq_sig_all = 1 };
	struct ibv_srq_init_attr srq = { .attr = { 4, 1, 0 } };
	struct ibv_pd *own, *common;
	struct cmt c;

	cmt_open(ct, &c);
	cmt_here(AF_INET, 0, &c.at);
	c.id = cmt_id(&c);
	CMT_OK(ct, rdma_bind_addr(c.id, cmt_at(&c)));
	common = c.id->pd;
	own = ibv_alloc_pd(c.id->verbs);
	CT_TRUE(ct, common && own);
	CMT_OK(ct, rdma_create_srq(c.id, own, &srq));
	CT_TRUE(ct, c.id->srq->pd == own && c.id->pd == common);
	CMT_OK(ct, rdma_create_qp(c.id, NULL, &attr));
	CT_TRUE(ct, c.id->qp->pd == common && c.id->qp->srq == c.id->srq);
	rdma_destroy_qp(c.id);
	rdma_destroy_srq(c.id);
	CT_EQ(ct, ibv_dealloc_pd(own), 0);
	cmt_close(&c);
}

/* The address of all is this host, as with connect(2). */
static void any_destination(struct ct *ct)
{
	struct cmt c;

	cmt_serve(ct, &c);
	if (ct->rank)
		cmt_any(c.family, cmt_port(&c.at), &c.at);
	cmt_join(&c);
	cmt_pass(&c);
	ct_sync(ct, NULL);
	cmt_close(&c);
}

const struct ct_case vt_cm_edges[] = { { "CM", "another-address", { another_address } },
				       { "CM", "any-destination", CT_TWO(any_destination) },
				       { "CM", "any-destination-ipv6", CT_TWO(any_destination), .arg = 6 },
				       { "CM", "families", { families } },
				       { "CM", "getaddrinfo-hints", { hints } },
				       { "CM", "device-list", { device_list } },
				       { "CM", "twice", CT_TWO(twice) },
				       { "CM", "notified", CT_TWO(notified) },
				       { "CM", "half-the-queues", { half_the_queues } },
				       { "CM", "listener-goes", CT_TWO(listener_goes) },
				       { "CM", "hopeless-request", CT_TWO(hopeless_request) },
				       { "CM", "migration-waits", { migration_waits } },
				       { "CM", "default-domain", { default_domain } },
				       { 0 } };
