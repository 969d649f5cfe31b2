/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Row CM: native addresses, AF_IB: a GID of either device and a service id. */
#include "cmt.h"

#include <arpa/inet.h>
#include <endian.h>
#include <infiniband/ib.h>

/* GID number 0 of a device: heddle0 when the case's argument is 0. */
static union ibv_gid gid_of(struct ct *ct)
{
	const char *name = ct->cs->arg ? "heddle1" : "heddle0";
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context = NULL;
	union ibv_gid gid;

	for (int i = 0; list && list[i] && !context; i++)
		if (!strcmp(ibv_get_device_name(list[i]), name))
			context = ibv_open_device(list[i]);
	if (!context)
		ct_unsupported(ct, "there is no %s", name);
	CT_EQ(ct, ibv_query_gid(context, 1, 0, &gid), 0);
	ibv_free_device_list(list);
	CT_EQ(ct, ibv_close_device(context), 0);
	return gid;
}

static struct sockaddr_ib native(const union ibv_gid *gid, enum rdma_port_space ps, uint16_t port)
{
	struct sockaddr_ib at = { .sib_family = AF_IB,
				  .sib_pkey = htobe16(0xffff),
				  .sib_sid = htobe64((uint64_t)ps << 16 | port),
				  .sib_sid_mask = htobe64(RDMA_IB_IP_PS_MASK | RDMA_IB_IP_PORT_MASK) };

	if (gid)
		memcpy(at.sib_addr.sib_raw, gid, sizeof(*gid));
	return at;
}

/* Private data is longer than over IP addresses, which need room for themselves; then as always. */
static void connects(struct ct *ct, bool any)
{
	union ibv_gid gid = gid_of(ct);
	struct rdma_cm_event *e;
	struct sockaddr_ib at;
	char buf[92];
	struct rdma_conn_param p = cmt_param(buf, sizeof(buf), 1);
	struct cmt c;

	cmt_open(ct, &c);
	c.ps = RDMA_PS_IB;
	if (ct->rank) {
		cmt_find(&c);
		c.id = cmt_resolve(&c);
		CT_EQ(ct, rdma_get_local_addr(c.id)->sa_family, AF_IB);
		CT_TRUE(ct, rdma_get_src_port(c.id));
		CT_TRUE(ct, !memcmp(&c.id->route.addr.addr.ibaddr.dgid, &gid, sizeof(gid)));
		cmt_qp(&c, c.id);
		CMT_OK(ct, rdma_connect(c.id, &p));
	} else {
		at = native(any ? NULL : &gid, c.ps, 0);
		c.listener = cmt_id(&c);
		CMT_OK(ct, rdma_bind_addr(c.listener, (struct sockaddr *)&at));
		CMT_OK(ct, rdma_listen(c.listener, 0));
		at = native(&gid, c.ps, ntohs(rdma_get_src_port(c.listener)));
		memcpy(&c.at, &at, sizeof(at));
		ct_put(ct, 1, &c.at, sizeof(c.at));
		e = cmt_event(&c, RDMA_CM_EVENT_CONNECT_REQUEST);
		c.id = e->id;
		cmt_said(&c, e->param.conn.private_data, e->param.conn.private_data_len, 92, 92, 1);
		CT_EQ(ct, rdma_get_peer_addr(c.id)->sa_family, AF_IB);
		CT_EQ(ct, rdma_get_src_port(c.id), rdma_get_src_port(c.listener));
		CMT_OK(ct, rdma_ack_cm_event(e));
		cmt_qp(&c, c.id);
		CMT_OK(ct, rdma_accept(c.id, NULL));
	}
	CT_TRUE(ct, !strcmp(ibv_get_device_name(c.id->verbs->device), ct->cs->arg ? "heddle1" : "heddle0"));
	cmt_expect(&c, RDMA_CM_EVENT_ESTABLISHED, c.id, 0);
	cmt_pass(&c);
	ct_sync(ct, NULL);
	if (ct->rank)
		CMT_OK(ct, rdma_disconnect(c.id));
	cmt_expect(&c, RDMA_CM_EVENT_DISCONNECTED, c.id, 0);
	cmt_close(&c);
}

static void connections(struct ct *ct)
{
	connects(ct, false);
}

static void wildcard(struct ct *ct)
{
	connects(ct, true);
}

static void names(struct ct *ct)
{
	union ibv_gid gid = gid_of(ct);
	struct rdma_addrinfo hints = { .ai_flags = RAI_NUMERICHOST | RAI_FAMILY,
				       .ai_family = AF_IB,
				       .ai_port_space = RDMA_PS_IB },
			     *res;
	struct sockaddr_ib want = native(&gid, RDMA_PS_IB, 4000), *got;
	char text[INET6_ADDRSTRLEN];
	struct cmt c;

	CT_TRUE(ct, inet_ntop(AF_INET6, &gid, text, sizeof(text)));
	CT_EQ(ct, rdma_getaddrinfo(text, "4000", &hints, &res), 0);
	CT_EQ(ct, res->ai_family, AF_IB);
	CT_EQ(ct, res->ai_dst_len, sizeof(want));
	got = (struct sockaddr_ib *)res->ai_dst_addr;
	CT_TRUE(ct, !memcmp(got, &want, sizeof(want)));
	rdma_freeaddrinfo(res);
	CT_TRUE(ct, rdma_getaddrinfo("localhost", "4000", &hints, &res) != 0);
	cmt_open(ct, &c);
	c.id = cmt_id(&c); /* of another port space than the address is */
	CMT_ERR(ct, rdma_bind_addr(c.id, (struct sockaddr *)&want), EINVAL);
	CMT_ERR(ct, rdma_resolve_addr(c.id, NULL, (struct sockaddr *)&want, 1000), EINVAL);
	want = native(&gid, RDMA_PS_TCP, 4000);
	want.sib_addr.sib_raw[15] ^= 0x55; /* of no device here */
	want.sib_addr.sib_raw[13] ^= 0x55;
	CMT_ERR(ct, rdma_bind_addr(c.id, (struct sockaddr *)&want), ENODEV);
	want = native(NULL, RDMA_PS_TCP, 4000);
	CMT_ERR(ct, rdma_resolve_addr(c.id, NULL, (struct sockaddr *)&want, 1000), EINVAL);
	cmt_close(&c);
}

const struct ct_case vt_cm_native[] = {
	{ "CM", "native-address-heddle0", CT_TWO(connections), .arg = 0 },
	{ "CM", "native-address-heddle1", CT_TWO(connections), .arg = 1 },
	{ "CM", "native-wildcard-heddle0", CT_TWO(wildcard), .arg = 0 },
	{ "CM", "native-wildcard-heddle1", CT_TWO(wildcard), .arg = 1 },
	{ "CM", "native-names-heddle0", { names }, .arg = 0 },
	{ "CM", "native-names-heddle1", { names }, .arg = 1 },
	{ 0 },
};
