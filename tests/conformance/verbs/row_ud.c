/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * V3, V6: datagrams: address handles, Q_Keys, the 40 bytes in front. ibv_create_ah(3),
 * ibv_create_ah_from_wc(3).
 */
#include "vt.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

/* The first 40 bytes, which may span segments, are not data. */
static void header(struct ct *ct)
{
	const struct vt_want want = { .type = IBV_QPT_UD, .srq = ct->cs->arg };
	struct ct_ep e;

	vt_start(ct, &e, &want);
	if (ct->rank) {
		struct ibv_sge sge[3] = { vt_sge(&e, 0, 13), vt_sge(&e, 100, 30), vt_sge(&e, 200, 4096) };
		struct ibv_recv_wr wr = { .wr_id = 1, .sg_list = sge, .num_sge = 3 }, *bad;
		struct ibv_wc wc;

		memset(e.buf, 0x55, 8192);
		VT_OK(ct, e.srq ? ibv_post_srq_recv(e.srq, &wr, &bad) : ibv_post_recv(e.qp, &wr, &bad));
		ct_sync(ct, &e);
		vt_done(&e, 1, &wc);
		CT_EQ(ct, wc.byte_len, 1040);
		CT_EQ(ct, wc.src_qp, e.peer[0].qpn);
		CT_TRUE(ct, ct_match(e.buf + 127, 3, 7, 0) && ct_match(e.buf + 200, 997, 7, 3));
		CT_TRUE(ct, ct_untouched(e.buf + 13, 87, 0x55) && ct_untouched(e.buf + 1197, 1000, 0x55));
	} else {
		ct_fill(e.buf, 1000, 7);
		ct_sync(ct, &e);
		vt_send(&e, 0, 1000, 2);
		vt_done(&e, 2, NULL);
	}
	vt_finish(&e);
}

/* One with another key is dropped; one with the highest bit set stands for the sender's own. */
static void qkey(struct ct *ct)
{
	const struct vt_want want = { .type = IBV_QPT_UD };
	struct ct_ep e;

	vt_start(ct, &e, &want);
	if (ct->rank) {
		vt_recv(&e, 0, 4096, 1);
		vt_recv(&e, 8192, 4096, 2);
		ct_sync(ct, &e);
		vt_next(&e, 1, IBV_WC_SUCCESS);
		CT_EQ(ct, e.buf[40], 'b');
		vt_next(&e, 2, IBV_WC_SUCCESS);
		CT_EQ(ct, e.buf[8192 + 40], 'c');
	} else {
		struct ibv_sge sge = vt_sge(&e, 0, 8);
		struct ibv_send_wr wr = vt_wr(&e, IBV_WR_SEND, &sge, 1);

		ct_sync(ct, &e);
		for (int i = 0; i < 3; i++) {
			e.buf[0] = (char)('a' + i);
			wr.wr.ud.remote_qkey = i == 0 ? VT_QKEY + 1 : i == 1 ? VT_QKEY : 0x80000000u;
			vt_post(&e, &wr);
			vt_next(&e, 1, IBV_WC_SUCCESS);
		}
	}
	vt_finish(&e);
}

/*
 * RoCE has no service levels. Cards that speak RoCE v2 tell in their place that a datagram came by
 * UDP (8), and by what (1: IPv6, 2: IPv4): programs that compare its destination with their own GID
 * look there. An InfiniBand link layer has level 0.
 */
static void level(struct ct *ct, const struct ct_ep *e, const struct ibv_wc *wc, const char *header)
{
	struct ibv_port_attr port;

	VT_OK(ct, ibv_query_port(e->context, 1, &port));
	if (port.link_layer != IBV_LINK_LAYER_ETHERNET) {
		CT_EQ(ct, wc->sl, 0);
		return;
	}
	CT_EQ(ct, wc->sl, header[0] >> 4 == 6 ? 9 : 10);
	if (wc->sl == 10)
		CT_EQ(ct, header[20], 0x45);
}

/* The answer goes where the completion and the header say. */
static void answer(struct ct *ct)
{
	const struct vt_want want = { .type = IBV_QPT_UD };
	struct ct_ep e;
	struct ibv_wc wc;

	vt_start(ct, &e, &want);
	vt_recv(&e, 0, 4096, 1);
	ct_sync(ct, &e);
	if (ct->rank) {
		struct ibv_sge sge = vt_sge(&e, 40, 8);
		struct ibv_send_wr wr = vt_wr(&e, IBV_WR_SEND, &sge, 3);
		struct ibv_ah_attr av;

		vt_done(&e, 1, &wc);
		level(ct, &e, &wc, e.buf);
		VT_OK(ct, ibv_init_ah_from_wc(e.context, 1, &wc, (struct ibv_grh *)e.buf, &av));
		CT_EQ(ct, av.port_num, 1);
		/* another port has none of these GIDs */
		CT_EQ(ct, ibv_init_ah_from_wc(e.context, 2, &wc, (struct ibv_grh *)e.buf, &av),
		      wc.wc_flags & IBV_WC_GRH ? -1 : 0);
		wr.wr.ud.ah = ibv_create_ah_from_wc(e.pd, &wc, (struct ibv_grh *)e.buf, 1);
		CT_TRUE(ct, wr.wr.ud.ah);
		wr.wr.ud.remote_qpn = wc.src_qp;
		vt_post(&e, &wr);
		vt_done(&e, 3, NULL);
		VT_OK(ct, ibv_destroy_ah(wr.wr.ud.ah));
	} else {
		ct_fill(e.buf + 8192, 8, 5);
		vt_send(&e, 8192, 8, 2);
		vt_done(&e, 2, NULL);
		vt_done(&e, 1, &wc);
		CT_EQ(ct, wc.src_qp, e.peer[1].qpn);
		ct_verify(ct, e.buf + 40, 8, 5, "answer");
	}
	vt_finish(&e);
}

/* Longer than the MTU: a completion in error. What is wrong with a request is refused. */
static void wrong(struct ct *ct)
{
	const struct vt_want want = { .type = IBV_QPT_UD };
	struct ibv_send_wr wr, *bad;
	struct ibv_sge sge;
	struct ct_ep e;

	vt_start(ct, &e, &want);
	if (!ct->rank) {
		sge = vt_sge(&e, 0, 8);
		wr = vt_wr(&e, IBV_WR_SEND, &sge, 1);
		wr.wr.ud.ah = NULL;
		VT_ERR(ct, ibv_post_send(e.qp, &wr, &bad), EINVAL);
		CT_TRUE(ct, bad == &wr);
		wr.wr.ud.ah = e.ah;
		sge.length = 4097;
		vt_post(&e, &wr);
		vt_next(&e, 1, IBV_WC_LOC_LEN_ERR);
		CT_TRUE(ct, vt_state(&e, e.qp) == IBV_QPS_ERR || vt_state(&e, e.qp) == IBV_QPS_SQE);
	}
	vt_finish(&e);
}

static void wrong_ah(struct ct *ct)
{
	struct ibv_ah_attr av;
	struct ct_ep e;

	vt_open(ct, &e, NULL);
	av = vt_av(&e, &e.me);
	av.port_num = 0;
	VT_NULL(ct, ibv_create_ah(e.pd, &av), EINVAL);
	av.port_num = 2;
	VT_NULL(ct, ibv_create_ah(e.pd, &av), EINVAL);
	av = vt_av(&e, &e.me);
	av.is_global = 1;
	av.grh.sgid_index = 200;
	VT_NULL(ct, ibv_create_ah(e.pd, &av), EINVAL);
	av = (struct ibv_ah_attr){ .port_num = 1 };
	VT_NULL(ct, ibv_create_ah(e.pd, &av), EINVAL);
	vt_close(&e);
}

/* ibv_resolve_eth_l2_from_gid: of a port of Ethernet, and for a GID that can be somebody's. */
static void link_address(struct ct *ct)
{
	struct ibv_port_attr port;
	struct ibv_ah_attr av;
	uint8_t mac[6];
	uint16_t vlan = 0;
	struct ct_ep e;

	vt_open(ct, &e, NULL);
	av = vt_av(&e, &e.me);
	VT_OK(ct, ibv_query_port(e.context, 1, &port));
	if (port.link_layer == IBV_LINK_LAYER_ETHERNET) {
		VT_OK(ct, ibv_resolve_eth_l2_from_gid(e.context, &av, mac, &vlan));
		CT_EQ(ct, vlan, 0xffff); /* none */
		VT_OK(ct, ibv_resolve_eth_l2_from_gid(e.context, &av, mac, NULL));
		memset(&av.grh.dgid, 0, sizeof(av.grh.dgid));
	}
	CT_EQ(ct, ibv_resolve_eth_l2_from_gid(e.context, &av, mac, &vlan), -1);
	vt_close(&e);
}

/* To nobody: it is lost, and the others are not. */
static void nobody(struct ct *ct)
{
	const struct vt_want want = { .type = IBV_QPT_UD };
	struct ct_ep e;

	vt_start(ct, &e, &want);
	if (ct->rank) {
		vt_recv(&e, 0, 4096, 1);
		ct_sync(ct, &e);
		vt_done(&e, 1, NULL);
		CT_EQ(ct, e.buf[40], 'b');
	} else {
		struct ibv_sge sge = vt_sge(&e, 0, 8);
		struct ibv_send_wr wr = vt_wr(&e, IBV_WR_SEND, &sge, 1);

		ct_sync(ct, &e);
		e.buf[0] = 'a';
		wr.wr.ud.remote_qpn = (e.peer[1].qpn & ~0xffu) | ((e.peer[1].qpn + 100) & 0x7f);
		vt_post(&e, &wr);
		vt_next(&e, 1, IBV_WC_SUCCESS);
		e.buf[0] = 'b';
		vt_send(&e, 0, 8, 2);
		vt_next(&e, 2, IBV_WC_SUCCESS);
	}
	vt_finish(&e);
}

/*
 * Numbers that no queue pair ever has: they are sent, and nobody hears of them.
 * Of a number 24 bits count.
 */
static void no_number(struct ct *ct)
{
	const struct vt_want want = { .type = IBV_QPT_UD };
	const uint32_t none[] = { 0, 1, 2, 0xffffff, 0xff000000 };
	struct ct_ep e;

	vt_start(ct, &e, &want);
	if (ct->rank) {
		vt_recv(&e, 0, 4096, 1);
		ct_sync(ct, &e);
		vt_done(&e, 1, NULL);
		CT_EQ(ct, e.buf[40], 'b');
	} else {
		struct ibv_sge sge = vt_sge(&e, 0, 8);
		struct ibv_send_wr wr = vt_wr(&e, IBV_WR_SEND, &sge, 1);

		ct_sync(ct, &e);
		e.buf[0] = 'a';
		for (size_t i = 0; i < CT_COUNT(none); i++) {
			wr.wr.ud.remote_qpn = none[i];
			vt_post(&e, &wr);
			vt_next(&e, 1, IBV_WC_SUCCESS);
		}
		sge.lkey ^= 0x100; /* what is wrong with it is found out all the same */
		vt_post(&e, &wr);
		vt_next(&e, 1, IBV_WC_LOC_PROT_ERR);
		vt_to(&e, e.qp, IBV_QPS_RTS);
		e.buf[0] = 'b';
		sge.lkey ^= 0x100;
		wr.wr.ud.remote_qpn = e.peer[1].qpn | 0xab000000;
		vt_post(&e, &wr);
		vt_next(&e, 1, IBV_WC_SUCCESS);
	}
	vt_finish(&e);
}

/* A datagram along this path, when the other end has its receive. */
static void send_by(struct ct_ep *e, struct ibv_ah_attr *path)
{
	struct ibv_sge sge = vt_sge(e, 0, 8);
	struct ibv_send_wr wr = vt_wr(e, IBV_WR_SEND, &sge, 1);
	struct ibv_ah *ah = ibv_create_ah(e->pd, path);

	CT_TRUE(e->ct, ah);
	ct_sync(e->ct, e);
	wr.wr.ud.ah = ah;
	vt_post(e, &wr);
	vt_done(e, 1, NULL);
	VT_OK(e->ct, ibv_destroy_ah(ah));
}

/*
 * The header in front says the traffic class and the hop limit that the
 * sender's address handle has.
 */
static void header_says(struct ct *ct)
{
	const struct vt_want want = { .type = IBV_QPT_UD };
	struct ct_ep e;

	vt_start(ct, &e, &want);
	if (ct->rank) {
		const unsigned char *at = (unsigned char *)e.buf;
		struct ibv_ah_attr back;
		struct ibv_wc wc;

		vt_recv(&e, 0, 4096, 1);
		ct_sync(ct, &e);
		vt_done(&e, 1, &wc);
		CT_TRUE(ct, wc.wc_flags & IBV_WC_GRH);
		if (at[0] >> 4 == 6) {
			CT_EQ(ct, (at[0] << 8 | at[1]) >> 4 & 0xff, 0xb8);
			CT_EQ(ct, at[7], 33);
		} else {
			CT_EQ(ct, at[21], 0xb8);
			CT_EQ(ct, at[28], 33);
		}
		VT_OK(ct, ibv_init_ah_from_wc(e.context, 1, &wc, (struct ibv_grh *)e.buf, &back));
		CT_EQ(ct, back.grh.traffic_class, 0xb8);
		CT_EQ(ct, back.grh.hop_limit, 33);
	} else {
		struct ibv_ah_attr av = { .is_global = 1, .port_num = 1, .dlid = e.peer[1].lid };

		av.grh.dgid = e.peer[1].gid;
		av.grh.traffic_class = 0xb8;
		av.grh.hop_limit = 33;
		send_by(&e, &av);
	}
	vt_finish(&e);
}

static bool is_ipv6(const union ibv_gid *gid)
{
	return !IN6_IS_ADDR_V4MAPPED((const struct in6_addr *)gid->raw) && gid->global.interface_id;
}

/*
 * The first GID of the port that is no address of IPv4: both ends are on one host, and have the
 * same. Answers its index.
 */
static int ipv6_gid(struct ct_ep *e, union ibv_gid *out)
{
	struct ibv_port_attr port;

	VT_OK(e->ct, ibv_query_port(e->context, 1, &port));
	for (int i = 0; i < port.gid_tbl_len; i++)
		if (!ibv_query_gid(e->context, 1, i, out) && is_ipv6(out))
			return i;
	ct_unsupported(e->ct, "the device has no GID of IPv6: give the loopback ::1");
}

/*
 * Who sends from a GID of IPv6 sends IPv6 (RoCE v2), though both hosts have IPv4: so says the
 * header, and so is it answered. InfiniBand's always is.
 */
static void header_ipv6(struct ct *ct)
{
	const struct vt_want want = { .type = IBV_QPT_UD };
	union ibv_gid gid;
	struct ct_ep e;
	int index;

	vt_start(ct, &e, &want);
	index = ipv6_gid(&e, &gid);
	if (ct->rank) {
		struct ibv_grh grh;
		struct ibv_ah_attr back;
		struct ibv_wc wc;

		vt_recv(&e, 0, 4096, 1);
		ct_sync(ct, &e);
		vt_done(&e, 1, &wc);
		memcpy(&grh, e.buf, sizeof(grh));
		CT_EQ(ct, ntohl(grh.version_tclass_flow) >> 20, 6 << 8 | 0xb8);
		CT_TRUE(ct, is_ipv6(&grh.sgid) && is_ipv6(&grh.dgid));
		VT_OK(ct, ibv_init_ah_from_wc(e.context, 1, &wc, (struct ibv_grh *)e.buf, &back));
		CT_TRUE(ct, is_ipv6(&back.grh.dgid));
		CT_EQ(ct, back.grh.sgid_index, index);
	} else {
		struct ibv_ah_attr av = { .is_global = 1, .port_num = 1 };

		av.grh.dgid = gid;
		av.grh.sgid_index = (uint8_t)index;
		av.grh.traffic_class = 0xb8;
		send_by(&e, &av);
	}
	vt_finish(&e);
}

/*
 * The header names the GID that was addressed, of all that the port has: who answers the handle
 * made of it does so from there. Both ends are on one host.
 */
static void header_addressed(struct ct *ct)
{
	const struct vt_want want = { .type = IBV_QPT_UD };
	struct ibv_port_attr port;
	struct ct_ep e;

	vt_start(ct, &e, &want);
	VT_OK(ct, ibv_query_port(e.context, 1, &port));
	for (int i = 0; i < port.gid_tbl_len; i++) {
		struct ibv_ah_attr av = { .is_global = 1, .port_num = 1, .grh.sgid_index = (uint8_t)i };
		union ibv_gid named;
		struct ibv_wc wc;

		VT_OK(ct, ibv_query_gid(e.context, 1, i, &av.grh.dgid));
		if (!ct->rank) {
			send_by(&e, &av);
			continue;
		}
		vt_recv(&e, 0, 4096, 1);
		ct_sync(ct, &e);
		vt_done(&e, 1, &wc);
		CT_TRUE(ct, wc.wc_flags & IBV_WC_GRH);
		named = av.grh.dgid;
		VT_OK(ct, ibv_init_ah_from_wc(e.context, 1, &wc, (struct ibv_grh *)e.buf, &av));
		VT_OK(ct, ibv_query_gid(e.context, 1, av.grh.sgid_index, &av.grh.dgid));
		CT_TRUE(ct, !memcmp(&named, &av.grh.dgid, sizeof(named)));
	}
	vt_finish(&e);
}

const struct ct_case vt_ud[] = { { "V3", "header-ipv6", { header_ipv6, header_ipv6 } },
				 { "V3", "header-addressed", { header_addressed, header_addressed } },
				 { "V3", "header-says", { header_says, header_says } },
				 { "V6", "no-number", { no_number, no_number } },
				 { "V3", "header", { header, header } },
				 { "V3", "header-srq", { header, header }, .arg = 1 },
				 { "V6", "qkey", { qkey, qkey } },
				 { "V6", "answer", { answer, answer } },
				 { "V6", "wrong", { wrong, wrong } },
				 { "V6", "wrong-ah", { wrong_ah } },
				 { "V6", "link-address", { link_address } },
				 { "V6", "nobody", { nobody, nobody } },
				 { NULL } };
