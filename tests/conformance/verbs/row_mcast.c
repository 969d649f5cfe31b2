/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* V6: datagrams to multicast groups. ibv_attach_mcast(3), ibv_create_qp_ex(3). */
#include "vt.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>

#define LID 0xc001
#define GROUP_QPN 0xffffff
#define LEN 1000
#define WELL_LONG 30 /* ms, in which a datagram would have come */

enum form {
	INFINIBAND, /* ff12:… as InfiniBand makes them */
	IPV6,
	IPV4
};

/* One that no other run of these cases has: the first rank draws it. */
static union ibv_gid draw(struct ct *ct, enum form form)
{
	union ibv_gid gid = { .raw = { 0xff, form == IPV6 ? 0x15 : 0x12, 0x40, 0x1b, 0xff, 0xff } };
	uint32_t own = (uint32_t)ct->pid[0] * 4 + (uint32_t)form;

	if (form == IPV4) {
		memset(gid.raw, 0, 10);
		gid.raw[10] = gid.raw[11] = 0xff;
	}
	gid.raw[12] = 239;
	gid.raw[13] = (uint8_t)(own >> 16);
	gid.raw[14] = (uint8_t)(own >> 8);
	gid.raw[15] = (uint8_t)own;
	if (ct->rank)
		ct_get(ct, NULL, 0, &gid, sizeof(gid));
	for (int r = 1; !ct->rank && r < ct->procs; r++)
		ct_put(ct, r, &gid, sizeof(gid));
	return gid;
}

static void vt_ready(struct ct_ep *e, struct ibv_qp *qp)
{
	vt_connect(e, qp, &e->me);
}

static struct ibv_ah *ah_of(struct ct_ep *e, const union ibv_gid *gid)
{
	struct ibv_ah_attr av = { .is_global = 1,
				  .dlid = e->me.lid ? LID : 0,
				  .port_num = 1,
				  .grh = { .dgid = *gid, .hop_limit = 1 } };
	struct ibv_ah *ah = ibv_create_ah(e->pd, &av);

	CT_TRUE(e->ct, ah);
	return ah;
}

static void cast(struct ct_ep *e, struct ibv_ah *ah, char what, uint32_t qkey)
{
	struct ibv_sge sge = vt_sge(e, 0, 8);
	struct ibv_send_wr wr = { .wr_id = 99,
				  .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_SEND,
				  .wr.ud = { ah, GROUP_QPN, qkey } };

	e->buf[0] = what;
	vt_post(e, &wr);
	vt_done(e, 99, NULL);
}

static void open_ready(struct ct *ct, struct ct_ep *e)
{
	const struct vt_want want = { .type = IBV_QPT_UD };

	vt_open(ct, e, &want);
	vt_ready(e, e->qp);
}

/* ---- who hears it ---------------------------------------------------------------------------- */

/*
 * The header in front: from whom to whom. With IPv4 at both ends a RoCE device may leave an IPv4
 * header in the last 20 bytes.
 */
static void check_head(struct ct_ep *e, const char *at, const union ibv_gid *to)
{
	struct ibv_grh grh;

	memcpy(&grh, at, sizeof(grh));
	if (!(ntohl(grh.version_tclass_flow) >> 28)) {
		CT_TRUE(e->ct,
			!memcmp(at + 32, e->peer[0].gid.raw + 12, 4) && !memcmp(at + 36, to->raw + 12, 4));
		return;
	}
	CT_EQ(e->ct, ntohl(grh.version_tclass_flow) >> 28, 6);
	CT_TRUE(e->ct, !memcmp(&grh.dgid, to, sizeof(*to)));
	CT_TRUE(e->ct, !memcmp(&grh.sgid, &e->peer[0].gid, sizeof(grh.sgid)));
}

static void hear(struct ct_ep *e, uint64_t id, size_t at, const struct ibv_qp *qp, const union ibv_gid *gid)
{
	struct ct *ct = e->ct;
	struct ibv_wc wc;

	vt_done(e, id, &wc);
	CT_EQ(ct, wc.opcode, IBV_WC_RECV);
	CT_EQ(ct, wc.qp_num, qp->qp_num);
	CT_EQ(ct, wc.src_qp, e->peer[0].qpn);
	CT_EQ(ct, wc.byte_len, LEN + 40);
	CT_TRUE(ct, wc.wc_flags & IBV_WC_GRH && wc.wc_flags & IBV_WC_WITH_IMM && wc.imm_data == htonl(4711));
	check_head(e, e->buf + at, gid);
	ct_verify(ct, e->buf + at + 40, LEN, 7, "what was sent to the group");
}

/*
 * Every queue pair that is attached hears it: in the sender's process, in others, two in
 * one; also the sender itself.
 */
static void everybody(struct ct *ct)
{
	const struct vt_want want = { .type = IBV_QPT_UD };
	struct ibv_qp *qp[2];
	union ibv_gid gid;
	struct ct_ep e;

	vt_open(ct, &e, &want);
	vt_exchange(&e);
	e.peer[ct->rank] = e.me;
	gid = draw(ct, (enum form)ct->cs->arg);
	qp[0] = e.qp;
	qp[1] = vt_qp(&e);
	for (uint64_t i = 0; i < 2; i++) {
		struct ibv_sge sge = vt_sge(&e, 8192 * (i + 1), 4136);
		struct ibv_recv_wr wr = { .wr_id = i, .sg_list = &sge, .num_sge = 1 }, *bad;

		vt_ready(&e, qp[i]);
		VT_OK(ct, ibv_attach_mcast(qp[i], &gid, e.me.lid ? LID : 0));
		VT_OK(ct, ibv_post_recv(qp[i], &wr, &bad));
	}
	ct_sync(ct, &e);
	if (!ct->rank) {
		struct ibv_ah *ah = ah_of(&e, &gid);
		struct ibv_sge sge = vt_sge(&e, 0, LEN);
		struct ibv_send_wr wr = { .wr_id = 9,
					  .sg_list = &sge,
					  .num_sge = 1,
					  .opcode = IBV_WR_SEND_WITH_IMM,
					  .imm_data = htonl(4711),
					  .wr.ud = { ah, GROUP_QPN, VT_QKEY } };

		ct_fill(e.buf, LEN, 7);
		vt_post(&e, &wr);
		vt_done(&e, 9, NULL);
		VT_OK(ct, ibv_destroy_ah(ah));
	}
	for (uint64_t i = 0; i < 2; i++)
		hear(&e, i, 8192 * (i + 1), qp[i], &gid);
	ct_sync(ct, &e);
	vt_quiet(&e, WELL_LONG, "heard twice");
	for (int i = 0; i < 2; i++)
		VT_OK(ct, ibv_detach_mcast(qp[i], &gid, e.me.lid ? LID : 0));
	VT_OK(ct, ibv_destroy_qp(qp[1]));
	vt_finish(&e);
}

/*
 * One with another Q_Key is dropped, and so is one to another group; without a receive it is lost.
 */
static void others(struct ct *ct)
{
	union ibv_gid gid = draw(ct, INFINIBAND), other = gid;
	struct ibv_ah *ah, *to_other;
	struct ct_ep e;

	other.raw[5] ^= 1;
	open_ready(ct, &e);
	if (ct->rank) {
		VT_OK(ct, ibv_attach_mcast(e.qp, &gid, LID));
		ct_sync(ct, &e);
		ct_sync(ct, &e);
		vt_quiet(&e, WELL_LONG, "without a receive");
		vt_recv(&e, 0, 4096, 1);
		ct_sync(ct, &e);
		vt_next(&e, 1, IBV_WC_SUCCESS);
		CT_EQ(ct, e.buf[40], 'd');
		VT_OK(ct, ibv_detach_mcast(e.qp, &gid, LID));
	} else {
		ah = ah_of(&e, &gid);
		to_other = ah_of(&e, &other);
		ct_sync(ct, &e);
		cast(&e, ah, 'a', VT_QKEY);
		ct_sync(ct, &e);
		ct_sync(ct, &e);
		cast(&e, ah, 'b', VT_QKEY + 1);
		cast(&e, to_other, 'c', VT_QKEY);
		cast(&e, ah, 'd', VT_QKEY);
		VT_OK(ct, ibv_destroy_ah(ah));
		VT_OK(ct, ibv_destroy_ah(to_other));
	}
	vt_finish(&e);
}

/*
 * IBV_QP_CREATE_BLOCK_SELF_MCAST_LB: this queue pair does not hear itself;
 * another of the process does.
 */
static void not_itself(struct ct *ct)
{
	const struct vt_want want = { .type = IBV_QPT_UD };
	struct ibv_qp_init_attr_ex attr = { .qp_type = IBV_QPT_UD,
					    .cap = { 8, 8, 1, 1, 0 },
					    .sq_sig_all = 1,
					    .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS,
					    .create_flags = IBV_QP_CREATE_BLOCK_SELF_MCAST_LB };
	union ibv_gid gid = draw(ct, INFINIBAND);
	struct ibv_qp *hears;
	struct ibv_ah *ah;
	struct ct_ep e;
	struct ibv_wc wc;

	vt_open(ct, &e, &want);
	hears = e.qp;
	attr.pd = e.pd;
	attr.send_cq = attr.recv_cq = e.cq;
	e.qp = ibv_create_qp_ex(e.context, &attr);
	if (!e.qp && errno == EOPNOTSUPP)
		ct_unsupported(ct, "the device always loops back");
	CT_TRUE(ct, e.qp);
	vt_ready(&e, e.qp);
	vt_ready(&e, hears);
	VT_OK(ct, ibv_attach_mcast(e.qp, &gid, LID));
	VT_OK(ct, ibv_attach_mcast(hears, &gid, LID));
	vt_recv(&e, 4096, 4096, 1);
	{
		struct ibv_sge sge = vt_sge(&e, 8192, 4096);
		struct ibv_recv_wr wr = { .wr_id = 2, .sg_list = &sge, .num_sge = 1 }, *bad;

		VT_OK(ct, ibv_post_recv(hears, &wr, &bad));
	}
	ah = ah_of(&e, &gid);
	cast(&e, ah, 'x', VT_QKEY);
	vt_done(&e, 2, &wc);
	CT_EQ(ct, wc.src_qp, e.qp->qp_num);
	vt_quiet(&e, WELL_LONG, "what it sent itself");
	VT_OK(ct, ibv_destroy_ah(ah));
	VT_OK(ct, ibv_detach_mcast(e.qp, &gid, LID));
	VT_OK(ct, ibv_detach_mcast(hears, &gid, LID));
	VT_OK(ct, ibv_destroy_qp(hears));
	vt_close(&e);
}

/*
 * From ::1: a loopback has no route for groups of IPv6, and what its GID sends reaches the members
 * on this host all the same.
 */
static void loopback(struct ct *ct)
{
	union ibv_gid gid = draw(ct, IPV6), own;
	struct ibv_ah_attr av = { .is_global = 1, .port_num = 1, .grh = { .dgid = gid, .hop_limit = 1 } };
	struct ibv_port_attr port;
	struct ct_ep e;
	struct ibv_wc wc;
	int i = 0;

	open_ready(ct, &e);
	VT_OK(ct, ibv_query_port(e.context, 1, &port));
	while (i < port.gid_tbl_len &&
	       (ibv_query_gid(e.context, 1, i, &own) || memcmp(&own, &in6addr_loopback, sizeof(own)) != 0))
		i++;
	if (i == port.gid_tbl_len)
		ct_unsupported(ct, "the device has no GID ::1");
	av.grh.sgid_index = (uint8_t)i;
	e.ah = ibv_create_ah(e.pd, &av);
	CT_TRUE(ct, e.ah);
	VT_OK(ct, ibv_attach_mcast(e.qp, &gid, 0));
	vt_recv(&e, 4096, 4096, 1);
	cast(&e, e.ah, 'x', VT_QKEY);
	vt_done(&e, 1, &wc);
	CT_EQ(ct, wc.src_qp, e.qp->qp_num);
	CT_EQ(ct, e.buf[4096 + 40], 'x');
	VT_OK(ct, ibv_detach_mcast(e.qp, &gid, 0));
	vt_close(&e);
}

/* ---- attaching and detaching ----------------------------------------------------------------- */

/*
 * Who is detached hears no more. Twice attached is attached once; a queue
 * pair that is attached stays.
 */
static void detach(struct ct *ct)
{
	union ibv_gid gid = draw(ct, INFINIBAND), other = draw(ct, IPV6);
	struct ibv_ah *ah;
	struct ct_ep e;

	open_ready(ct, &e);
	VT_OK(ct, ibv_attach_mcast(e.qp, &gid, LID));
	VT_OK(ct, ibv_attach_mcast(e.qp, &gid, LID));
	VT_OK(ct, ibv_attach_mcast(e.qp, &other, LID));
	VT_ERR(ct, ibv_destroy_qp(e.qp), EBUSY);
	VT_ERR(ct, ibv_detach_mcast(e.qp, &gid, LID + 1), EINVAL);
	VT_OK(ct, ibv_detach_mcast(e.qp, &gid, LID));
	VT_ERR(ct, ibv_detach_mcast(e.qp, &gid, LID), EINVAL);
	ah = ah_of(&e, &gid);
	vt_recv(&e, 4096, 4096, 1);
	cast(&e, ah, 'a', VT_QKEY);
	vt_quiet(&e, WELL_LONG, "detached");
	VT_OK(ct, ibv_attach_mcast(e.qp, &gid, LID));
	cast(&e, ah, 'b', VT_QKEY);
	vt_done(&e, 1, NULL);
	CT_EQ(ct, e.buf[4096 + 40], 'b');
	VT_OK(ct, ibv_destroy_ah(ah));
	VT_OK(ct, ibv_detach_mcast(e.qp, &gid, LID));
	VT_OK(ct, ibv_detach_mcast(e.qp, &other, LID));
	vt_close(&e);
}

/* A queue pair in error, or not ready, takes nothing. */
static void states(struct ct *ct)
{
	const struct vt_want want = { .type = IBV_QPT_UD };
	union ibv_gid gid = draw(ct, INFINIBAND);
	struct ibv_qp *sends;
	struct ibv_ah *ah;
	struct ct_ep e;

	vt_open(ct, &e, &want);
	sends = e.qp;
	vt_ready(&e, sends);
	e.qp = vt_qp(&e);
	VT_OK(ct, ibv_attach_mcast(e.qp, &gid, LID)); /* in RESET */
	ah = ah_of(&e, &gid);
	for (int i = 0; i < 3; i++) {
		struct ibv_sge sge = vt_sge(&e, 0, 8);
		struct ibv_send_wr wr = { .wr_id = 5,
					  .sg_list = &sge,
					  .num_sge = 1,
					  .opcode = IBV_WR_SEND,
					  .wr.ud = { ah, GROUP_QPN, VT_QKEY } },
				   *bad;

		if (i == 1) {
			vt_ready(&e, e.qp);
			vt_recv(&e, 4096, 4096, 1);
			vt_recv(&e, 4096, 4096, 2);
		}
		if (i == 2) {
			vt_to(&e, e.qp, IBV_QPS_ERR);
			vt_next(&e, 2, IBV_WC_WR_FLUSH_ERR);
		}
		VT_OK(ct, ibv_post_send(sends, &wr, &bad));
		vt_done(&e, 5, NULL);
		if (i == 1)
			vt_done(&e, 1, NULL);
		else
			vt_quiet(&e, WELL_LONG, "in RESET or ERR");
	}
	VT_OK(ct, ibv_destroy_ah(ah));
	VT_OK(ct, ibv_detach_mcast(e.qp, &gid, LID));
	VT_OK(ct, ibv_destroy_qp(sends));
	vt_close(&e);
}

/* What is no group, no datagram queue pair, no handle to a group. */
static void wrong(struct ct *ct)
{
	const struct vt_want rc = { .type = IBV_QPT_RC };
	union ibv_gid gid = draw(ct, INFINIBAND);
	struct ibv_device_attr attr;
	struct ibv_send_wr wr;
	struct ibv_ah_attr av;
	struct ibv_sge sge;
	struct ct_ep e;

	vt_open(ct, &e, &rc);
	VT_OK(ct, ibv_query_device(e.context, &attr));
	CT_TRUE(ct,
		attr.max_mcast_grp > 0 && attr.max_mcast_qp_attach > 0 && attr.max_total_mcast_qp_attach > 0);
	VT_ERR(ct, ibv_attach_mcast(e.qp, &gid, LID), EINVAL);
	VT_ERR(ct, ibv_detach_mcast(e.qp, &gid, LID), EINVAL);
	vt_close(&e);
	open_ready(ct, &e);
	VT_ERR(ct, ibv_attach_mcast(e.qp, &e.me.gid, LID), EINVAL);
	e.ah = ah_of(&e, &gid);
	sge = vt_sge(&e, 0, 8);
	wr = (struct ibv_send_wr){
		.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND, .wr.ud = { e.ah, e.qp->qp_num, VT_QKEY }
	};
	vt_post(&e, &wr); /* one queue pair of a group: nobody */
	vt_next(&e, 0, IBV_WC_SUCCESS);
	VT_OK(ct, ibv_destroy_ah(e.ah));
	av = vt_av(&e, &e.me);
	e.ah = ibv_create_ah(e.pd, &av);
	CT_TRUE(ct, e.ah);
	wr.wr.ud.ah = e.ah;
	wr.wr.ud.remote_qpn = GROUP_QPN; /* a group that is none */
	vt_post(&e, &wr);
	vt_next(&e, 0, IBV_WC_SUCCESS);
	vt_close(&e);
}

const struct ct_case vt_mcast[] = {
	{ "V6", "mcast-infiniband", { everybody, everybody, everybody }, .arg = INFINIBAND },
	{ "V6", "mcast-ipv6", { everybody, everybody, everybody }, .arg = IPV6 },
	{ "V6", "mcast-ipv4", { everybody, everybody, everybody }, .arg = IPV4 },
	{ "V6", "mcast-others", { others, others } },
	{ "V6", "mcast-not-itself", { not_itself } },
	{ "V6", "mcast-loopback", { loopback } },
	{ "V6", "mcast-detach", { detach } },
	{ "V6", "mcast-states", { states } },
	{ "V6", "mcast-wrong", { wrong } },
	{ NULL }
};
