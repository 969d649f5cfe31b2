/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
#include "cmt.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* ---- networks -------------------------------------------------------------------------------- */

/* It is that of the process of rank 0, which the others join. */
void cmt_network(struct ct *ct, const char *commands)
{
	char text[512];
	int fd;

	if (ct->rank) {
		ct_sync(ct, NULL);
		snprintf(text, sizeof(text), "/proc/%d/ns/net", (int)ct->pid[0]);
		fd = open(text, O_RDONLY | O_CLOEXEC);
		CT_TRUE(ct, fd >= 0 && setns(fd, CLONE_NEWNET) == 0);
		close(fd);
		return;
	}
	if (unshare(CLONE_NEWNET))
		ct_unsupported(ct, "run as root: it needs a network namespace");
	snprintf(text, sizeof(text), "exec 2>/dev/null && ip link set lo up && { %s; }", commands);
	if (system(text))
		ct_unsupported(ct, "install iproute2, and see `modprobe veth`");
	ct_sync(ct, NULL);
}

/* ---- addresses ------------------------------------------------------------------------------- */

void cmt_any(int family, uint16_t port, struct sockaddr_storage *out)
{
	memset(out, 0, sizeof(*out));
	out->ss_family = (sa_family_t)family;
	cmt_set_port(out, port);
}

void cmt_here(int family, uint16_t port, struct sockaddr_storage *out)
{
	cmt_any(family, port, out);
	if (family == AF_INET)
		((struct sockaddr_in *)out)->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	else
		((struct sockaddr_in6 *)out)->sin6_addr = in6addr_loopback;
}

uint16_t cmt_port(const struct sockaddr_storage *at)
{
	return ntohs(((const struct sockaddr_in *)at)->sin_port); /* at the same place in both */
}

void cmt_set_port(struct sockaddr_storage *at, uint16_t port)
{
	((struct sockaddr_in *)at)->sin_port = htons(port);
}

/* ---- ends ------------------------------------------------------------------------------------ */

void cmt_open(struct ct *ct, struct cmt *c)
{
	*c = (struct cmt){ .ct = ct, .family = ct->cs->arg == 6 ? AF_INET6 : AF_INET, .ps = RDMA_PS_TCP };
	c->ch = rdma_create_event_channel();
	CT_TRUE(ct, c->ch);
}

static void id_close(struct cmt *c, struct rdma_cm_id *id)
{
	if (!id)
		return;
	if (id->qp)
		rdma_destroy_qp(id);
	CMT_OK(c->ct, rdma_destroy_id(id));
}

void cmt_close(struct cmt *c)
{
	id_close(c, c->id);
	id_close(c, c->listener);
	rdma_destroy_event_channel(c->ch);
}

struct rdma_cm_id *cmt_id(struct cmt *c)
{
	struct rdma_cm_id *id;

	CMT_OK(c->ct, rdma_create_id(c->ch, &id, c, c->ps));
	return id;
}

void cmt_listen(struct cmt *c, int backlog)
{
	cmt_here(c->family, 0, &c->at);
	c->listener = cmt_id(c);
	CMT_OK(c->ct, rdma_bind_addr(c->listener, cmt_at(c)));
	CMT_OK(c->ct, rdma_listen(c->listener, backlog));
	cmt_set_port(&c->at, ntohs(rdma_get_src_port(c->listener)));
	CT_TRUE(c->ct, cmt_port(&c->at));
	for (int r = 1; r < c->ct->procs; r++)
		ct_put(c->ct, r, &c->at, sizeof(c->at));
}

void cmt_find(struct cmt *c)
{
	ct_get(c->ct, NULL, 0, &c->at, sizeof(c->at));
}

void cmt_serve(struct ct *ct, struct cmt *c)
{
	cmt_open(ct, c);
	if (ct->rank)
		cmt_find(c);
	else
		cmt_listen(c, 8);
}

/* ---- events ---------------------------------------------------------------------------------- */

struct rdma_cm_event *cmt_read(struct cmt *c)
{
	struct pollfd p = { .fd = c->ch->fd, .events = POLLIN };
	double end = ct_deadline(c->ct);
	struct rdma_cm_event *e;

	while (poll(&p, 1, 100) != 1)
		ct_late(c->ct, end, "an event");
	CMT_OK(c->ct, rdma_get_cm_event(c->ch, &e));
	return e;
}

struct rdma_cm_event *cmt_event(struct cmt *c, enum rdma_cm_event_type type)
{
	struct rdma_cm_event *e = cmt_read(c);

	if (e->event != type)
		ct_fail(c->ct, "%s (%d) instead of %s", rdma_event_str(e->event), e->status,
			rdma_event_str(type));
	return e;
}

void cmt_expect(struct cmt *c, enum rdma_cm_event_type type, struct rdma_cm_id *id, int status)
{
	struct rdma_cm_event *e = cmt_event(c, type);

	CT_TRUE(c->ct, e->id == id);
	CT_EQ(c->ct, e->status, status);
	CMT_OK(c->ct, rdma_ack_cm_event(e));
}

void cmt_quiet(struct cmt *c, int ms)
{
	struct pollfd p = { .fd = c->ch->fd, .events = POLLIN };
	struct rdma_cm_event *e;

	if (poll(&p, 1, ms) == 0)
		return;
	e = cmt_read(c);
	ct_fail(c->ct, "%s (%d), where nothing was to come", rdma_event_str(e->event), e->status);
}

/* ---- connections ----------------------------------------------------------------------------- */

struct rdma_cm_id *cmt_resolve(struct cmt *c)
{
	struct rdma_cm_id *id = cmt_id(c);

	CMT_OK(c->ct, rdma_resolve_addr(id, NULL, cmt_at(c), 2000));
	cmt_expect(c, RDMA_CM_EVENT_ADDR_RESOLVED, id, 0);
	CMT_OK(c->ct, rdma_resolve_route(id, 2000));
	cmt_expect(c, RDMA_CM_EVENT_ROUTE_RESOLVED, id, 0);
	return id;
}

struct rdma_cm_id *cmt_asked(struct cmt *c)
{
	struct rdma_cm_event *e = cmt_event(c, RDMA_CM_EVENT_CONNECT_REQUEST);
	struct rdma_cm_id *id = e->id;

	CT_TRUE(c->ct, e->listen_id == c->listener);
	CT_EQ(c->ct, e->status, 0);
	CMT_OK(c->ct, rdma_ack_cm_event(e));
	return id;
}

struct rdma_conn_param cmt_param(void *buf, uint8_t len, uint64_t seed)
{
	ct_fill(buf, len, seed);
	return (struct rdma_conn_param){ .private_data = buf,
					 .private_data_len = len,
					 .responder_resources = 1,
					 .initiator_depth = 1,
					 .retry_count = 7,
					 .rnr_retry_count = 7,
					 .qp_num = 0x123456 };
}

void cmt_said(struct cmt *c, const void *data, size_t shown, size_t len, size_t room, uint64_t seed)
{
	CT_EQ(c->ct, shown, room);
	ct_verify(c->ct, data, len, seed, "private data");
	CT_TRUE(c->ct, ct_untouched((const char *)data + len, room - len, 0));
}

void cmt_qp(struct cmt *c, struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr attr = { .cap = { 16, 16, 2, 2, 0 },
					 .qp_type = id->qp_type,
					 .sq_sig_all = 1 };

	CMT_OK(c->ct, rdma_create_qp(id, NULL, &attr));
	CT_TRUE(c->ct, id->qp && id->send_cq && id->recv_cq && id->send_cq_channel && id->recv_cq_channel);
}

void cmt_join(struct cmt *c)
{
	char none[1];
	struct rdma_conn_param p = cmt_param(none, 0, 0);

	c->id = c->ct->rank ? cmt_resolve(c) : cmt_asked(c);
	cmt_qp(c, c->id);
	if (c->ct->rank)
		CMT_OK(c->ct, rdma_connect(c->id, &p));
	else
		CMT_OK(c->ct, rdma_accept(c->id, &p));
	cmt_expect(c, RDMA_CM_EVENT_ESTABLISHED, c->id, 0);
}

enum {
	PASSED = 3000
};

void cmt_pass(struct cmt *c)
{
	static char buf[2][PASSED];
	struct ibv_mr *mr = rdma_reg_msgs(c->id, buf, sizeof(buf));
	uint64_t me = 20 + (uint64_t)c->ct->rank;
	struct ibv_wc wc;

	CT_TRUE(c->ct, mr);
	CMT_OK(c->ct, rdma_post_recv(c->id, NULL, buf[1], PASSED, mr));
	ct_fill(buf[0], PASSED, me);
	ct_sync(c->ct, NULL);
	CMT_OK(c->ct, rdma_post_send(c->id, NULL, buf[0], PASSED, mr, 0));
	CT_EQ(c->ct, rdma_get_send_comp(c->id, &wc), 1);
	CT_EQ(c->ct, wc.status, IBV_WC_SUCCESS);
	CT_EQ(c->ct, rdma_get_recv_comp(c->id, &wc), 1);
	CT_EQ(c->ct, wc.status, IBV_WC_SUCCESS);
	ct_verify(c->ct, buf[1], PASSED, 41 - me, "message");
	CT_EQ(c->ct, rdma_dereg_mr(mr), 0);
}

enum ibv_qp_state cmt_state(struct cmt *c, struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	CT_EQ(c->ct, ibv_query_qp(id->qp, &attr, IBV_QP_STATE, &init), 0);
	return attr.qp_state;
}
