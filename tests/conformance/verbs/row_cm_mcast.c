/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Row CM: groups: rdma_join_multicast(3), rdma_join_multicast_ex(3), rdma_leave_multicast(3). */
#include "cmt.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#define LEN 64
#define HEAD 40

static void group_at(int family, unsigned which, struct sockaddr_storage *out)
{
	memset(out, 0, sizeof(*out));
	out->ss_family = (sa_family_t)family;
	if (family == AF_INET)
		((struct sockaddr_in *)out)->sin_addr.s_addr = htonl(0xefc83700 + which);
	else
		inet_pton(AF_INET6, which == 1 ? "ff18::4844:1" : "ff18::4844:2",
			  &((struct sockaddr_in6 *)out)->sin6_addr);
}

/*
 * An address of this host that is not of the loopback interface, where that has no
 * groups; else that of it.
 */
static void own_address(struct cmt *c, struct sockaddr_storage *out)
{
	struct ibv_context **devices = rdma_get_devices(NULL);
	union ibv_gid gid;

	CT_TRUE(c->ct, devices && devices[0]);
	cmt_here(c->family, 0, out);
	for (int i = 0; c->family == AF_INET6 && !ibv_query_gid(devices[0], 1, i, &gid); i++) {
		const struct in6_addr *in6 = (const struct in6_addr *)&gid;

		if (IN6_IS_ADDR_V4MAPPED(in6) || IN6_IS_ADDR_LOOPBACK(in6))
			continue;
		((struct sockaddr_in6 *)out)->sin6_addr = *in6;
		break;
	}
	rdma_free_devices(devices);
}

/* An id of datagrams, with a queue pair of its own. */
static void datagram_open(struct ct *ct, struct cmt *c)
{
	struct sockaddr_storage own;

	cmt_open(ct, c);
	c->ps = RDMA_PS_UDP;
	own_address(c, &own);
	c->id = cmt_id(c);
	CMT_OK(ct, rdma_bind_addr(c->id, (struct sockaddr *)&own));
	cmt_qp(c, c->id);
}

/* The event of a join, and where what is sent to the group goes. */
static struct ibv_ah *joined(struct cmt *c, void *context, uint32_t *qpn, uint32_t *qkey)
{
	struct rdma_cm_event *e = cmt_event(c, RDMA_CM_EVENT_MULTICAST_JOIN);
	struct ibv_ah *ah;

	CT_TRUE(c->ct, e->id == c->id && !e->status && e->param.ud.private_data == context);
	CT_EQ(c->ct, e->param.ud.qp_num, 0xffffff);
	ah = ibv_create_ah(c->id->pd, &e->param.ud.ah_attr);
	CT_TRUE(c->ct, ah);
	*qpn = e->param.ud.qp_num;
	*qkey = e->param.ud.qkey;
	CMT_OK(c->ct, rdma_ack_cm_event(e));
	return ah;
}

/* Rank 0 hears what rank 1 says, which sends only; and nothing after it has left. */
static void members(struct ct *ct)
{
	struct rdma_cm_join_mc_attr_ex attr = { .comp_mask = RDMA_CM_JOIN_MC_ATTR_ADDRESS |
							     RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS,
						.join_flags = RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER };
	static char buf[3][LEN + HEAD];
	struct sockaddr_storage group;
	struct ibv_mr *mr;
	struct ibv_ah *ah;
	uint32_t qpn, qkey;
	struct ibv_wc wc;
	struct cmt c;

	datagram_open(ct, &c);
	group_at(c.family, 1, &group);
	mr = rdma_reg_msgs(c.id, buf, sizeof(buf));
	CT_TRUE(ct, mr);
	for (int i = 0; i < 3; i++)
		CMT_OK(ct, rdma_post_recv(c.id, NULL, buf[i], sizeof(buf[i]), mr));
	attr.addr = (struct sockaddr *)&group;
	if (ct->rank)
		CMT_OK(ct, rdma_join_multicast_ex(c.id, &attr, &c));
	else
		CMT_OK(ct, rdma_join_multicast(c.id, (struct sockaddr *)&group, &c));
	ah = joined(&c, &c, &qpn, &qkey);
	ct_sync(ct, NULL);
	if (ct->rank) {
		static char text[LEN];
		struct ibv_mr *own = rdma_reg_msgs(c.id, text, sizeof(text));

		for (int i = 0; i < 2; i++) {
			struct ibv_sge sge = { (uintptr_t)text, LEN, own->lkey };
			struct ibv_send_wr wr = { .sg_list = &sge,
						  .num_sge = 1,
						  .opcode = IBV_WR_SEND,
						  .wr.ud = { ah, qpn, qkey } },
					   *bad;

			ct_fill(text, LEN, (uint64_t)i);
			CT_EQ(ct, ibv_post_send(c.id->qp, &wr, &bad), 0);
			CT_EQ(ct, rdma_get_send_comp(c.id, &wc), 1);
			CT_EQ(ct, wc.status, IBV_WC_SUCCESS);
			ct_sync(ct, NULL);
			ct_sync(ct, NULL);
		}
		/* it does not hear, not even itself */
		CT_EQ(ct, ibv_poll_cq(c.id->recv_cq, 1, &wc), 0);
		CT_EQ(ct, rdma_dereg_mr(own), 0);
	} else {
		ct_sync(ct, NULL);
		CT_EQ(ct, rdma_get_recv_comp(c.id, &wc), 1);
		CT_TRUE(ct,
			wc.status == IBV_WC_SUCCESS && wc.byte_len == LEN + HEAD && wc.wc_flags & IBV_WC_GRH);
		ct_verify(ct, buf[0] + HEAD, LEN, 0, "said to the group");
		CMT_OK(ct, rdma_leave_multicast(c.id, (struct sockaddr *)&group));
		CMT_ERR(ct, rdma_leave_multicast(c.id, (struct sockaddr *)&group), EADDRNOTAVAIL);
		ct_sync(ct, NULL);
		ct_sync(ct, NULL);
		for (int i = 0; i < 5; i++, ct_pause())
			CT_EQ(ct, ibv_poll_cq(c.id->recv_cq, 1, &wc), 0);
		ct_sync(ct, NULL);
	}
	CT_EQ(ct, ibv_destroy_ah(ah), 0);
	ct_sync(ct, NULL);
	rdma_destroy_qp(c.id);
	CT_EQ(ct, rdma_dereg_mr(mr), 0);
	cmt_close(&c);
}

/*
 * From an address of a loopback that is not ::1: the kernel has no route for groups of IPv6 there.
 */
static void of_loopback(struct ct *ct)
{
	cmt_network(ct, "ip address add fd00::5/128 dev lo nodad");
	members(ct);
}

/*
 * A join that is left before anybody has read of it is none; the id may go with
 * groups that it has not left.
 */
static void left(struct ct *ct)
{
	struct sockaddr_storage one, two;
	uint32_t qpn, qkey;
	struct ibv_ah *ah;
	int context;
	struct cmt c;

	datagram_open(ct, &c);
	group_at(c.family, 1, &one);
	group_at(c.family, 2, &two);
	CMT_OK(ct, rdma_join_multicast(c.id, (struct sockaddr *)&one, NULL));
	CMT_OK(ct, rdma_leave_multicast(c.id, (struct sockaddr *)&one));
	cmt_quiet(&c, 0); /* nor is its channel readable */
	CMT_OK(ct, rdma_join_multicast(c.id, (struct sockaddr *)&one, NULL));
	CMT_OK(ct, rdma_join_multicast(c.id, (struct sockaddr *)&two, &context));
	CMT_OK(ct, rdma_leave_multicast(c.id, (struct sockaddr *)&one));
	ah = joined(&c, &context, &qpn, &qkey);
	CT_EQ(ct, ibv_destroy_ah(ah), 0);
	cmt_quiet(&c, 0);
	CMT_OK(ct, rdma_leave_multicast(c.id, (struct sockaddr *)&two));
	/* again, and unread */
	CMT_OK(ct, rdma_join_multicast(c.id, (struct sockaddr *)&one, NULL));
	rdma_destroy_qp(c.id);
	cmt_close(&c);
}

static void wrongs(struct ct *ct)
{
	struct rdma_cm_join_mc_attr_ex attr = { .comp_mask = RDMA_CM_JOIN_MC_ATTR_ADDRESS };
	struct sockaddr_storage group, own;
	struct rdma_cm_id *id;
	struct cmt c;

	datagram_open(ct, &c);
	group_at(c.family, 1, &group);
	cmt_here(c.family, 0, &own);
	attr.addr = (struct sockaddr *)&group;
	/* no group */
	CMT_ERR(ct, rdma_join_multicast(c.id, (struct sockaddr *)&own, NULL), EINVAL);
	CMT_ERR(ct, rdma_join_multicast(c.id, NULL, NULL), EINVAL);
	CMT_ERR(ct, rdma_join_multicast(c.id, &(struct sockaddr){ .sa_family = AF_UNIX }, NULL), EINVAL);
	CMT_ERR(ct, rdma_join_multicast_ex(c.id, &attr, NULL), EINVAL); /* no flags */
	attr.comp_mask |= RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS;
	attr.join_flags = RDMA_MC_JOIN_FLAG_RESERVED;
	CMT_ERR(ct, rdma_join_multicast_ex(c.id, &attr, NULL), EINVAL);
	attr.join_flags = RDMA_MC_JOIN_FLAG_FULLMEMBER;
	attr.comp_mask |= 1u << 20;
	CMT_ERR(ct, rdma_join_multicast_ex(c.id, &attr, NULL), ENOTSUP);
	CMT_ERR(ct, rdma_leave_multicast(c.id, (struct sockaddr *)&group), EADDRNOTAVAIL);
	CMT_ERR(ct, rdma_leave_multicast(c.id, NULL), EINVAL);
	id = cmt_id(&c); /* bound to no device */
	CMT_ERR(ct, rdma_join_multicast(id, (struct sockaddr *)&group, NULL), EINVAL);
	CMT_OK(ct, rdma_destroy_id(id));
	c.ps = RDMA_PS_TCP; /* has no groups */
	id = cmt_id(&c);
	CMT_OK(ct, rdma_bind_addr(id, (struct sockaddr *)&own));
	CMT_ERR(ct, rdma_join_multicast(id, (struct sockaddr *)&group, NULL), EINVAL);
	CMT_OK(ct, rdma_destroy_id(id));
	cmt_quiet(&c, 0);
	cmt_close(&c);
}

const struct ct_case vt_cm_mcast[] = { { "CM", "groups", { members, members }, .arg = 4 },
				       { "CM", "groups-ipv6", { members, members }, .arg = 6 },
				       { "CM", "groups-of-loopback", CT_TWO(of_loopback), .arg = 6 },
				       { "CM", "groups-left", { left }, .arg = 4 },
				       { "CM", "groups-wrong", { wrongs }, .arg = 4 },
				       { 0 } };
