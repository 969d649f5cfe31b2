/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Row CM: calls that wait: rdma_create_ep(3), rdma_get_request(3),
 * rdma_getaddrinfo(3), ids without a channel.
 */
#include "cmt.h"

#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>

enum {
	LEN = 100
};

/* ---- names ----------------------------------------------------------------------------------- */

static void look(struct ct *ct, const char *node, const char *port, struct rdma_addrinfo *hints,
		 struct rdma_addrinfo **res)
{
	int rc = rdma_getaddrinfo(node, port, hints, res);

	if (rc)
		ct_fail(ct, "rdma_getaddrinfo: %d, %s", rc,
			rc > 0 || rc < -1 ? gai_strerror(rc) : strerror(errno));
}

static void names(struct ct *ct)
{
	struct rdma_addrinfo hints = { .ai_port_space = RDMA_PS_TCP }, *res;
	struct sockaddr_in src = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };

	look(ct, "127.0.0.1", "4000", NULL, &res);
	CT_EQ(ct, res->ai_family, AF_INET);
	CT_EQ(ct, res->ai_port_space, RDMA_PS_TCP);
	CT_EQ(ct, res->ai_qp_type, IBV_QPT_RC);
	CT_EQ(ct, res->ai_src_len, 0);
	CT_EQ(ct, res->ai_dst_len, sizeof(struct sockaddr_in));
	CT_EQ(ct, ((struct sockaddr_in *)res->ai_dst_addr)->sin_port, htons(4000));
	rdma_freeaddrinfo(res);
	hints.ai_flags = RAI_PASSIVE;
	look(ct, NULL, "4000", &hints, &res);
	CT_EQ(ct, res->ai_dst_len, 0);
	CT_TRUE(ct, res->ai_src_len && res->ai_src_addr);
	rdma_freeaddrinfo(res);
	hints.ai_flags = RAI_NUMERICHOST | RAI_NOROUTE;
	look(ct, "::1", "4000", &hints, &res);
	CT_EQ(ct, res->ai_family, AF_INET6);
	rdma_freeaddrinfo(res);
	CT_EQ(ct, rdma_getaddrinfo("localhost", "4000", &hints, &res), EAI_NONAME);
	hints.ai_flags = RAI_FAMILY;
	hints.ai_family = AF_INET6;
	CT_TRUE(ct, rdma_getaddrinfo("127.0.0.1", "4000", &hints, &res) != 0);
	look(ct, "::1", "4000", &hints, &res);
	rdma_freeaddrinfo(res);
	hints = (struct rdma_addrinfo){ .ai_qp_type = IBV_QPT_UD };
	look(ct, "127.0.0.1", "4000", &hints, &res);
	CT_EQ(ct, res->ai_port_space, RDMA_PS_UDP);
	rdma_freeaddrinfo(res);
	hints.ai_port_space = RDMA_PS_TCP; /* which has no datagrams */
	CT_EQ(ct, rdma_getaddrinfo("127.0.0.1", "4000", &hints, &res), EAI_SOCKTYPE);
	hints = (struct rdma_addrinfo){ .ai_flags = 1 << 20 };
	CT_EQ(ct, rdma_getaddrinfo("127.0.0.1", "4000", &hints, &res), EAI_BADFLAGS);
	hints = (struct rdma_addrinfo){ .ai_family = AF_UNIX, .ai_flags = RAI_FAMILY };
	CT_EQ(ct, rdma_getaddrinfo("127.0.0.1", "4000", &hints, &res), EAI_FAMILY);
	CMT_ERR(ct, rdma_getaddrinfo(NULL, NULL, NULL, &res), EINVAL);
	/* addresses that the hints bring along */
	hints = (struct rdma_addrinfo){ .ai_src_addr = (struct sockaddr *)&src, .ai_src_len = sizeof(src) };
	look(ct, "127.0.0.1", "4000", &hints, &res);
	CT_EQ(ct, res->ai_src_len, sizeof(src));
	CT_TRUE(ct, !memcmp(res->ai_src_addr, &src, sizeof(src)) && res->ai_src_addr != (void *)&src);
	rdma_freeaddrinfo(res);
	hints.ai_dst_addr = (struct sockaddr *)&src;
	hints.ai_dst_len = sizeof(src);
	look(ct, NULL, NULL, &hints, &res);
	CT_EQ(ct, res->ai_dst_len, sizeof(src));
	rdma_freeaddrinfo(res);
}

/* ---- endpoints ------------------------------------------------------------------------------- */

static struct ibv_qp_init_attr wanted(void)
{
	return (struct ibv_qp_init_attr){ .cap = { 4, 4, 1, 1, 0 }, .sq_sig_all = 1 };
}

static struct rdma_cm_id *ep_at(struct ct *ct, const char *port, int flags, struct ibv_qp_init_attr *attr)
{
	struct rdma_addrinfo hints = { .ai_flags = flags, .ai_port_space = RDMA_PS_TCP }, *res;
	struct rdma_cm_id *id;

	look(ct, ct->cs->arg == 6 ? "::1" : "127.0.0.1", port, &hints, &res);
	CMT_OK(ct, rdma_create_ep(&id, res, NULL, attr));
	rdma_freeaddrinfo(res);
	return id;
}

/* A listener by rdma_create_ep, and its port. */
static struct rdma_cm_id *listener(struct ct *ct, struct ibv_qp_init_attr *attr)
{
	struct rdma_cm_id *id = ep_at(ct, "0", RAI_PASSIVE, attr);
	char port[8];

	CT_TRUE(ct, !id->qp);
	CMT_OK(ct, rdma_listen(id, 0));
	snprintf(port, sizeof(port), "%u", ntohs(rdma_get_src_port(id)));
	ct_put(ct, 1, port, sizeof(port));
	return id;
}

static void learn_port(struct ct *ct, char port[8])
{
	ct_get(ct, NULL, 0, port, 8);
}

static void say(struct ct *ct, struct rdma_cm_id *id, char *buf, struct ibv_mr *mr)
{
	struct ibv_wc wc;

	ct_fill(buf, LEN, (uint64_t)ct->rank + 1);
	CMT_OK(ct, rdma_post_send(id, NULL, buf, LEN, mr, 0));
	CT_EQ(ct, rdma_get_send_comp(id, &wc), 1);
	CT_EQ(ct, wc.status, IBV_WC_SUCCESS);
	CT_EQ(ct, rdma_get_recv_comp(id, &wc), 1);
	CT_EQ(ct, wc.status, IBV_WC_SUCCESS);
	CT_EQ(ct, wc.byte_len, LEN);
	ct_verify(ct, buf + LEN, LEN, (uint64_t)!ct->rank + 1, "message");
}

/*
 * A message each way over an id with its queue pair; a receive must be there before the
 * other end can know of it.
 */
static void exchange(struct ct *ct, struct rdma_cm_id *id,
		     int (*go)(struct rdma_cm_id *, struct rdma_conn_param *))
{
	char buf[2 * LEN];
	struct ibv_mr *mr = rdma_reg_msgs(id, buf, sizeof(buf));

	CT_TRUE(ct, mr);
	CMT_OK(ct, rdma_post_recv(id, NULL, buf + LEN, LEN, mr));
	CMT_OK(ct, go(id, NULL));
	CT_EQ(ct, id->event->event, RDMA_CM_EVENT_ESTABLISHED);
	say(ct, id, buf, mr);
	ct_sync(ct, NULL);
	CMT_OK(ct, rdma_disconnect(id));
	CT_EQ(ct, rdma_dereg_mr(mr), 0);
	rdma_destroy_ep(id);
}

static void endpoints(struct ct *ct)
{
	struct ibv_qp_init_attr attr = wanted();
	struct rdma_cm_id *listening, *id;
	char port[8];

	if (ct->rank) {
		learn_port(ct, port);
		id = ep_at(ct, port, 0, &attr);
		CT_TRUE(ct, id->qp && id->qp->qp_type == IBV_QPT_RC);
		CT_TRUE(ct, attr.cap.max_recv_wr >= 4);
		exchange(ct, id, rdma_connect);
		return;
	}
	listening = listener(ct, &attr);
	CMT_OK(ct, rdma_get_request(listening, &id));
	CT_TRUE(ct, id->qp && id->event && id->event->event == RDMA_CM_EVENT_CONNECT_REQUEST);
	CT_TRUE(ct, id->event->listen_id == listening);
	exchange(ct, id, rdma_accept);
	rdma_destroy_ep(listening);
}

/*
 * What goes wrong comes as the errno of the call that waits; an id that asks for
 * nothing has no queue pair.
 */
static void refused(struct ct *ct)
{
	struct rdma_conn_param p = { .private_data = "hello", .private_data_len = 6 };
	struct rdma_addrinfo bad = { .ai_qp_type = 77, .ai_port_space = RDMA_PS_TCP };
	struct rdma_cm_id *listening, *id, *again;
	char port[8];

	CMT_ERR(ct, rdma_create_ep(&id, &bad, NULL, NULL), EINVAL);
	if (ct->rank) {
		learn_port(ct, port);
		id = ep_at(ct, port, 0, NULL);
		CT_TRUE(ct, !id->qp && id->verbs);
		CMT_ERR(ct, rdma_connect(id, &p), ECONNREFUSED);
		CT_EQ(ct, id->event->event, RDMA_CM_EVENT_REJECTED);
		CT_TRUE(ct, !strcmp(id->event->param.conn.private_data, "no"));
		rdma_destroy_ep(id);
		ct_sync(ct, NULL);
		id = ep_at(ct, port, 0, NULL); /* nobody is there any more */
		CMT_ERR(ct, rdma_connect(id, NULL), ECONNREFUSED);
		rdma_destroy_ep(id);
		ct_sync(ct, NULL);
		return;
	}
	listening = listener(ct, NULL);
	CMT_OK(ct, rdma_get_request(listening, &id));
	CT_TRUE(ct, !id->qp);
	CT_TRUE(ct, !strcmp(id->event->param.conn.private_data, "hello"));
	CMT_ERR(ct, rdma_get_request(id, &again), EINVAL);
	CMT_OK(ct, rdma_reject(id, "no", 3));
	rdma_destroy_ep(id);
	rdma_destroy_ep(listening);
	ct_sync(ct, NULL);
	ct_sync(ct, NULL);
}

/* What goes with the address: data that the program's own follows, once, and a path. */
static void brought_along(struct ct *ct)
{
	struct rdma_conn_param p = { .private_data = "world" };
	struct rdma_addrinfo hints = { .ai_port_space = RDMA_PS_TCP }, *res;
	struct ibv_path_data *path;
	struct rdma_cm_id *listening, *id;
	char port[8];

	if (!ct->rank) {
		listening = listener(ct, NULL);
		CMT_OK(ct, rdma_get_request(listening, &id));
		CT_TRUE(ct, !strcmp(id->event->param.conn.private_data, "hello, world"));
		CMT_OK(ct, rdma_reject(id, NULL, 0));
		rdma_destroy_ep(id);
		rdma_destroy_ep(listening);
		ct_sync(ct, NULL); /* who ends with bad luck may take the rejection along */
		return;
	}
	learn_port(ct, port);
	look(ct, "127.0.0.1", port, &hints, &res);
	path = calloc(1, sizeof(*path));
	CT_TRUE(ct, path);
	path->path.tclass = 12;
	res->ai_route = path;
	res->ai_route_len = sizeof(*path);
	res->ai_connect = strdup("hello, ");
	res->ai_connect_len = 7;
	CMT_OK(ct, rdma_create_ep(&id, res, NULL, NULL));
	rdma_freeaddrinfo(res);
	CT_EQ(ct, id->event->event, RDMA_CM_EVENT_ROUTE_RESOLVED);
	CT_EQ(ct, id->route.path_rec->traffic_class, 12);
	p.private_data_len = 56 - 7 + 1;
	CMT_ERR(ct, rdma_connect(id, &p), EINVAL);
	p.private_data_len = 6;
	CMT_ERR(ct, rdma_connect(id, &p), ECONNREFUSED);
	ct_sync(ct, NULL);
	rdma_destroy_ep(id);
}

/* rdma_create_ep, and from there on with a channel. */
static void asynchronous(struct ct *ct)
{
	struct ibv_qp_init_attr attr = wanted();
	struct rdma_conn_param p = { .rnr_retry_count = 7, .retry_count = 7 };
	struct rdma_cm_id *got;
	char port[8];
	struct cmt c;

	cmt_open(ct, &c);
	if (ct->rank) {
		learn_port(ct, port);
		c.id = ep_at(ct, port, 0, &attr);
		CMT_OK(ct, rdma_migrate_id(c.id, c.ch));
		CMT_OK(ct, rdma_connect(c.id, &p));
	} else {
		c.listener = listener(ct, NULL);
		CMT_OK(ct, rdma_migrate_id(c.listener, c.ch));
		CMT_ERR(ct, rdma_get_request(c.listener, &got), EINVAL);
		c.id = cmt_asked(&c);
		cmt_qp(&c, c.id);
		CMT_OK(ct, rdma_accept(c.id, &p));
	}
	cmt_expect(&c, RDMA_CM_EVENT_ESTABLISHED, c.id, 0);
	ct_sync(ct, NULL);
	cmt_close(&c);
}

/* Without a channel every step waits, and leaves its event behind. */
static void steps(struct ct *ct)
{
	struct cmt c;

	cmt_serve(ct, &c);
	if (!ct->rank) {
		cmt_join(&c);
		cmt_expect(&c, RDMA_CM_EVENT_DISCONNECTED, c.id, 0);
		ct_sync(ct, NULL);
		cmt_close(&c);
		return;
	}
	CMT_OK(ct, rdma_create_id(NULL, &c.id, NULL, RDMA_PS_TCP));
	CT_TRUE(ct, c.id->channel);
	CMT_OK(ct, rdma_resolve_addr(c.id, NULL, cmt_at(&c), 1000));
	CT_EQ(ct, c.id->event->event, RDMA_CM_EVENT_ADDR_RESOLVED);
	CMT_OK(ct, rdma_resolve_route(c.id, 1000));
	CT_EQ(ct, c.id->event->event, RDMA_CM_EVENT_ROUTE_RESOLVED);
	cmt_qp(&c, c.id);
	CMT_OK(ct, rdma_connect(c.id, NULL));
	CT_EQ(ct, c.id->event->event, RDMA_CM_EVENT_ESTABLISHED);
	CMT_OK(ct, rdma_disconnect(c.id));
	CT_EQ(ct, c.id->event->event, RDMA_CM_EVENT_DISCONNECTED);
	ct_sync(ct, NULL);
	cmt_close(&c);
}

const struct ct_case vt_cm_sync[] = {
	{ "CM", "getaddrinfo", { names } },
	{ "CM", "create-ep", CT_TWO(endpoints), .arg = 4 },
	{ "CM", "create-ep-ipv6", CT_TWO(endpoints), .arg = 6 },
	{ "CM", "create-ep-refused", CT_TWO(refused) },
	{ "CM", "create-ep-brings-data", CT_TWO(brought_along) },
	{ "CM", "create-ep-asynchronous", CT_TWO(asynchronous) },
	{ "CM", "synchronous", CT_TWO(steps) },
	{ 0 },
};
