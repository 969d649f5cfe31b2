/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Row CM: addresses of a link (fe80::…%if), in a network of the case's own: two interfaces that
 * both have fe80::1, one with fe80::2 as well.
 */
#include "cmt.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>

static void same_network(struct ct *ct)
{
	cmt_network(ct, "for i in 0 1; do ip link add a$i type veth peer name b$i && ip link set b$i up && "
			"ip link set a$i up && ip address add fe80::1/64 dev a$i nodad || exit; done; "
			"ip address add fe80::2/64 dev a1 nodad");
}

/* "fe80::1%a0", or without an interface. */
static struct sockaddr_in6 at_link(const char *name, uint16_t port)
{
	struct sockaddr_in6 at = { .sin6_family = AF_INET6, .sin6_port = htons(port) };
	const char *interface = strchr(name, '%');
	char text[INET6_ADDRSTRLEN];

	snprintf(text, sizeof(text), "%.*s", (int)strcspn(name, "%"), name);
	inet_pton(AF_INET6, text, &at.sin6_addr);
	at.sin6_scope_id = interface ? if_nametoindex(interface + 1) : 0;
	return at;
}

static bool is_at(const struct sockaddr *addr, const char *name)
{
	struct sockaddr_in6 want = at_link(name, 0), got;

	memcpy(&got, addr, sizeof(got));
	return got.sin6_family == AF_INET6 && got.sin6_scope_id == want.sin6_scope_id &&
	       !memcmp(&got.sin6_addr, &want.sin6_addr, sizeof(got.sin6_addr));
}

/* ---- connections ----------------------------------------------------------------------------- */

static void listen_at(struct cmt *c, const struct sockaddr_in6 *at)
{
	memcpy(&c->at, at, sizeof(*at));
	c->listener = cmt_id(c);
	CMT_OK(c->ct, rdma_bind_addr(c->listener, cmt_at(c)));
	CMT_OK(c->ct, rdma_listen(c->listener, 4));
	cmt_set_port(&c->at, ntohs(rdma_get_src_port(c->listener)));
}

/* Rank 0 listens here, and rank 1 calls it by this name: both ends say so, and messages pass. */
static void called_by(struct ct *ct, const struct sockaddr_in6 *listen, const char *name)
{
	struct sockaddr_storage to = { 0 };
	struct sockaddr_in6 at;
	struct cmt c;

	cmt_open(ct, &c);
	if (!ct->rank) {
		listen_at(&c, listen);
		at = at_link(name, cmt_port(&c.at));
		memcpy(&to, &at, sizeof(at));
		ct_put(ct, 1, &to, sizeof(to));
	} else {
		cmt_find(&c);
	}
	cmt_join(&c);
	CT_TRUE(ct, is_at(rdma_get_local_addr(c.id), name));
	CT_TRUE(ct, is_at(rdma_get_peer_addr(c.id), name));
	cmt_pass(&c);
	cmt_close(&c);
	ct_sync(ct, NULL);
}

static void connections(struct ct *ct)
{
	const struct sockaddr_in6 any = { .sin6_family = AF_INET6 };
	struct sockaddr_in6 at;

	same_network(ct);
	at = at_link("fe80::1%a0", 0);
	called_by(ct, &at, "fe80::1%a0");
	called_by(ct, &any, "fe80::1%a0");
	at = at_link("fe80::1%a1", 0);
	called_by(ct, &at, "fe80::1%a1");
	called_by(ct, &any, "fe80::2%a1");
}

/*
 * Datagrams: the queue pair is found, and what is sent along the way that the event names arrives.
 */
static void datagrams(struct ct *ct)
{
	struct rdma_conn_param p = { 0 };
	static char buf[2][64];
	struct rdma_cm_event *e;
	struct sockaddr_in6 at;
	struct ibv_mr *mr;
	struct ibv_wc wc;
	struct ibv_ah *ah;
	struct cmt c;

	same_network(ct);
	at = at_link("fe80::1%a1", 0);
	cmt_open(ct, &c);
	c.ps = RDMA_PS_UDP;
	if (!ct->rank) {
		listen_at(&c, &at);
		ct_put(ct, 1, &c.at, sizeof(c.at));
		c.id = cmt_asked(&c);
	} else {
		cmt_find(&c);
		c.id = cmt_resolve(&c);
	}
	CT_TRUE(ct, is_at(rdma_get_peer_addr(c.id), "fe80::1%a1"));
	cmt_qp(&c, c.id);
	mr = rdma_reg_msgs(c.id, buf, sizeof(buf));
	CT_TRUE(ct, mr);
	if (!ct->rank) {
		CMT_OK(ct, rdma_post_recv(c.id, NULL, buf, sizeof(buf), mr));
		p.qp_num = c.id->qp->qp_num;
		CMT_OK(ct, rdma_accept(c.id, &p));
		CT_EQ(ct, rdma_get_recv_comp(c.id, &wc), 1);
		CT_EQ(ct, wc.status, IBV_WC_SUCCESS);
	} else {
		CMT_OK(ct, rdma_connect(c.id, &p));
		e = cmt_event(&c, RDMA_CM_EVENT_ESTABLISHED);
		ah = ibv_create_ah(c.id->pd, &e->param.ud.ah_attr);
		CT_TRUE(ct, ah);
		CMT_OK(ct, rdma_post_ud_send(c.id, NULL, buf, 20, mr, 0, ah, e->param.ud.qp_num));
		CT_EQ(ct, rdma_get_send_comp(c.id, &wc), 1);
		CT_EQ(ct, wc.status, IBV_WC_SUCCESS);
		CMT_OK(ct, rdma_ack_cm_event(e));
	}
	ct_sync(ct, NULL);
	if (ct->rank)
		CT_EQ(ct, ibv_destroy_ah(ah), 0);
	CT_EQ(ct, ibv_dereg_mr(mr), 0);
	cmt_close(&c);
}

/* ---- names ----------------------------------------------------------------------------------- */

/* Ports are of an address and its link; one without a link, or of another one, is nobody's. */
static void binding(struct ct *ct)
{
	struct sockaddr_in6 first, second, none;
	struct rdma_cm_id *id[3];
	struct cmt c;

	same_network(ct);
	first = at_link("fe80::1%a0", 7174);
	second = at_link("fe80::1%a1", 7174);
	none = at_link("fe80::1", 7174);
	cmt_open(ct, &c);
	for (int i = 0; i < 3; i++)
		id[i] = cmt_id(&c);
	CMT_ERR(ct, rdma_bind_addr(id[0], (struct sockaddr *)&none), EINVAL);
	none.sin6_scope_id = if_nametoindex("b0");
	CMT_ERR(ct, rdma_bind_addr(id[0], (struct sockaddr *)&none), EADDRNOTAVAIL);
	CMT_OK(ct, rdma_bind_addr(id[0], (struct sockaddr *)&first));
	CMT_ERR(ct, rdma_bind_addr(id[1], (struct sockaddr *)&first), EADDRINUSE);
	CMT_OK(ct, rdma_bind_addr(id[1], (struct sockaddr *)&second));
	CT_TRUE(ct, is_at(rdma_get_local_addr(id[1]), "fe80::1%a1") && id[1]->verbs);
	none = (struct sockaddr_in6){ .sin6_family = AF_INET6, .sin6_port = htons(7174) };
	CMT_ERR(ct, rdma_bind_addr(id[2], (struct sockaddr *)&none), EADDRINUSE);
	for (int i = 0; i < 3; i++)
		CMT_OK(ct, rdma_destroy_id(id[i]));
	cmt_close(&c);
}

/*
 * From where the way leads there, from a source that is named, and by what
 * rdma_getaddrinfo(3) finds.
 */
static void resolving(struct ct *ct)
{
	struct rdma_addrinfo want = { .ai_flags = RAI_NUMERICHOST, .ai_port_space = RDMA_PS_TCP }, *found;
	struct sockaddr_in6 to, from;
	struct rdma_cm_event *e;
	struct cmt c;

	same_network(ct);
	cmt_open(ct, &c);
	for (int i = 0; i < 2; i++) {
		from = at_link(i ? "fe80::1%a1" : "fe80::1%a0", 0);
		CT_EQ(ct, rdma_getaddrinfo(i ? "fe80::1%a1" : "fe80::1%a0", "4000", &want, &found), 0);
		for (int named = 0; named < 2; named++) {
			c.id = cmt_id(&c);
			CMT_OK(ct, rdma_resolve_addr(c.id, named ? (struct sockaddr *)&from : NULL,
						     found->ai_dst_addr, 2000));
			cmt_expect(&c, RDMA_CM_EVENT_ADDR_RESOLVED, c.id, 0);
			CT_TRUE(ct, is_at(rdma_get_local_addr(c.id), i ? "fe80::1%a1" : "fe80::1%a0"));
			CT_TRUE(ct, is_at(rdma_get_peer_addr(c.id), i ? "fe80::1%a1" : "fe80::1%a0"));
			CMT_OK(ct, rdma_resolve_route(c.id, 2000));
			cmt_expect(&c, RDMA_CM_EVENT_ROUTE_RESOLVED, c.id, 0);
			CMT_OK(ct, rdma_destroy_id(c.id));
		}
		rdma_freeaddrinfo(found);
	}
	to = at_link("fe80::1", 4000);
	c.id = cmt_id(&c);
	CMT_OK(ct, rdma_resolve_addr(c.id, NULL, (struct sockaddr *)&to, 100));
	e = cmt_event(&c, RDMA_CM_EVENT_ADDR_ERROR);
	CT_TRUE(ct, e->status < 0);
	CMT_OK(ct, rdma_ack_cm_event(e));
	cmt_close(&c);
}

const struct ct_case vt_cm_link[] = { { "CM", "link-addresses", CT_TWO(connections) },
				      { "CM", "link-addresses-datagrams", CT_TWO(datagrams) },
				      { "CM", "link-addresses-bind", { binding } },
				      { "CM", "link-addresses-resolve", { resolving } },
				      { 0 } };
