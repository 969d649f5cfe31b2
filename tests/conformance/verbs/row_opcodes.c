/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* V4, V6: the table of opcodes by transport in ibv_post_send(3), and what each does. */
#include "vt.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

#define RC (1 << IBV_QPT_RC)
#define UC (1 << IBV_QPT_UC)
#define UD (1 << IBV_QPT_UD)

static const struct {
	enum ibv_wr_opcode op;
	int types;
	enum ibv_wc_opcode wc;
	bool arrives; /* uses up a receive */
} table[] = {
	{ IBV_WR_SEND, UD | UC | RC, IBV_WC_SEND, true },
	{ IBV_WR_SEND_WITH_IMM, UD | UC | RC, IBV_WC_SEND, true },
	{ IBV_WR_RDMA_WRITE, UC | RC, IBV_WC_RDMA_WRITE, false },
	{ IBV_WR_RDMA_WRITE_WITH_IMM, UC | RC, IBV_WC_RDMA_WRITE, true },
	{ IBV_WR_RDMA_READ, RC, IBV_WC_RDMA_READ, false },
	{ IBV_WR_ATOMIC_CMP_AND_SWP, RC, IBV_WC_COMP_SWAP, false },
	{ IBV_WR_ATOMIC_FETCH_AND_ADD, RC, IBV_WC_FETCH_ADD, false },
};

#define IMM 0x11223344
#define AT (1u << 19)

/* The sender's half of one opcode: refused, or done as it should be. */
static void issue(struct ct_ep *e, size_t i, uint32_t len)
{
	struct ct *ct = e->ct;
	bool atomic = table[i].op >= IBV_WR_ATOMIC_CMP_AND_SWP, there = table[i].types & 1 << e->qp->qp_type;
	struct ibv_sge sge = vt_sge(e, AT, atomic ? 8 : len);
	struct ibv_send_wr wr = vt_wr(e, table[i].op, &sge, 1000 + i), *bad = NULL;
	uint64_t before = 40 + i;
	struct ibv_wc wc;

	ct_fill(e->buf + AT, len, i);
	wr.imm_data = htobe32(IMM);
	if (atomic) {
		wr.wr.atomic.compare_add = table[i].op == IBV_WR_ATOMIC_CMP_AND_SWP ? before : 7;
		wr.wr.atomic.swap = 99;
	}
	if (!there && e->qp->qp_type == IBV_QPT_UD) {
		/* as cards do: it is taken, and says in its turn that it is none */
		vt_post(e, &wr);
		vt_next(e, 1000 + i, IBV_WC_LOC_QP_OP_ERR);
		CT_EQ(ct, vt_state(e, e->qp), IBV_QPS_SQE);
		vt_to(e, e->qp, IBV_QPS_RTS);
		return;
	}
	if (!there) {
		VT_ERR(ct, ibv_post_send(e->qp, &wr, &bad), EINVAL);
		CT_TRUE(ct, bad == &wr);
		return;
	}
	vt_post(e, &wr);
	vt_done(e, 1000 + i, &wc);
	CT_EQ(ct, wc.opcode, table[i].wc);
	CT_EQ(ct, wc.qp_num, e->qp->qp_num);
	if (table[i].op == IBV_WR_RDMA_READ) {
		ct_verify(ct, e->buf + AT, len, 500 + i, "read");
		CT_EQ(ct, wc.byte_len, len);
	}
	if (atomic) {
		CT_TRUE(ct, !memcmp(e->buf + AT, &before, 8));
		CT_EQ(ct, wc.byte_len, 8);
	}
}

static void judge(struct ct_ep *e, size_t i, uint32_t len)
{
	struct ct *ct = e->ct;
	bool writes = table[i].op == IBV_WR_RDMA_WRITE || table[i].op == IBV_WR_RDMA_WRITE_WITH_IMM;
	bool datagram = e->qp->qp_type == IBV_QPT_UD;
	struct ibv_wc wc;
	uint64_t now;

	if (table[i].arrives) {
		vt_done(e, i, &wc);
		CT_EQ(ct, wc.opcode, writes ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV);
		CT_EQ(ct, wc.byte_len, len + (datagram ? 40 : 0));
		CT_EQ(ct, !!(wc.wc_flags & IBV_WC_WITH_IMM), table[i].op != IBV_WR_SEND);
		if (wc.wc_flags & IBV_WC_WITH_IMM)
			CT_EQ(ct, be32toh(wc.imm_data), IMM);
		CT_EQ(ct, wc.qp_num, e->qp->qp_num);
		if (datagram)
			CT_EQ(ct, wc.src_qp, e->peer[0].qpn);
		if (!writes)
			ct_verify(ct, e->buf + (datagram ? 40 : 0), len, i, "message");
	}
	if (writes) /* one without immediate data is over when its sender says so */
		ct_verify(ct, e->buf + AT, len, i, "written");
	if (table[i].op >= IBV_WR_ATOMIC_CMP_AND_SWP) {
		memcpy(&now, e->buf + AT, 8);
		CT_EQ(ct, now, table[i].op == IBV_WR_ATOMIC_CMP_AND_SWP ? 99 : 47 + i);
	}
}

static void opcodes(struct ct *ct)
{
	static const uint32_t lens[] = { 0, 1, 8, 1000, 4096, 65537, 300000 };
	const struct vt_want want = { .type = (enum ibv_qp_type)ct->cs->arg };
	struct ct_ep e;

	vt_start(ct, &e, &want);
	for (size_t l = 0; l < CT_COUNT(lens); l++) {
		uint32_t len = lens[l];

		if (want.type == IBV_QPT_UD && len > 4096)
			continue;
		for (size_t i = 0; i < CT_COUNT(table); i++) {
			uint64_t word = 40 + i;
			bool there = table[i].types & 1 << want.type;

			if (ct->rank) {
				if (table[i].arrives && there)
					vt_recv(&e, 0, AT, i);
				if (table[i].op == IBV_WR_RDMA_READ)
					ct_fill(e.buf + AT, len, 500 + i);
				else if (table[i].op >= IBV_WR_ATOMIC_CMP_AND_SWP)
					memcpy(e.buf + AT, &word, 8);
			}
			ct_sync(ct, &e);
			if (!ct->rank)
				issue(&e, i, len);
			ct_sync(ct, &e);
			if (ct->rank && there)
				judge(&e, i, len);
			ct_sync(ct, &e);
		}
	}
	vt_finish(&e);
}

/* Sends of every length that a connected one may have, scattered and gathered. */
static void lengths(struct ct *ct)
{
	const struct vt_want want = { .type = (enum ibv_qp_type)ct->cs->arg, .size = 8u << 20 };
	struct ct_ep e;

	vt_start(ct, &e, &want);
	for (int i = 0; i < 60; i++) {
		uint32_t len = i < 40 ? (uint32_t)1 << i / 2 : (uint32_t)ct_range(ct, 3u << 20);
		uint32_t cut = (uint32_t)ct_range(ct, len + 1);
		struct ibv_sge sge[3] = { vt_sge(&e, 0, cut), vt_sge(&e, 0, 0),
					  vt_sge(&e, 4u << 20, len - cut) };

		if (ct->rank) {
			struct ibv_recv_wr wr = { .wr_id = 1, .sg_list = sge, .num_sge = 3 }, *bad;
			struct ibv_wc wc;

			VT_OK(ct, ibv_post_recv(e.qp, &wr, &bad));
			ct_sync(ct, &e);
			vt_done(&e, 1, &wc);
			CT_EQ(ct, wc.byte_len, len);
			CT_TRUE(ct, ct_match(e.buf, cut, (uint64_t)i, 0));
			CT_TRUE(ct, ct_match(e.buf + (4u << 20), len - cut, (uint64_t)i, cut));
		} else {
			ct_fill(e.buf, len, (uint64_t)i);
			memcpy(e.buf + (4u << 20), e.buf + cut, len - cut);
			ct_sync(ct, &e);
			struct ibv_send_wr wr = vt_wr(&e, IBV_WR_SEND, sge, 2);

			wr.num_sge = 3;
			vt_post(&e, &wr);
			vt_done(&e, 2, NULL);
		}
	}
	vt_finish(&e);
}

/* A thousand each, in order, by both at once. */
static void many(struct ct *ct)
{
	struct ct_ep e;
	uint64_t sent = 0, got = 0, done = 0, next = 0;

	vt_start(ct, &e, NULL);
	for (; next < 64; next++)
		vt_recv(&e, next * 64, 64, next);
	ct_sync(ct, &e);
	while (done < 1000 || got < 1000) {
		struct ibv_wc wc;

		while (sent < 1000 && sent - done < 64) {
			memcpy(e.buf + AT + sent % 64 * 8, &sent, 8);
			vt_send(&e, AT + sent % 64 * 8, 8, 1u << 20 | sent);
			sent++;
		}
		vt_any(&e, &wc);
		CT_EQ(ct, wc.status, IBV_WC_SUCCESS);
		if (wc.opcode == IBV_WC_SEND) {
			CT_EQ(ct, wc.wr_id, 1u << 20 | done);
			done++;
			continue;
		}
		CT_EQ(ct, wc.wr_id, got);
		CT_TRUE(ct, !memcmp(e.buf + got % 64 * 64, &got, 8));
		got++;
		vt_recv(&e, next % 64 * 64, 64, next);
		next++;
	}
	vt_finish(&e);
}

const struct ct_case vt_opcodes[] = { { "V4", "rc", { opcodes, opcodes }, .arg = IBV_QPT_RC },
				      { "V4", "uc", { opcodes, opcodes }, .arg = IBV_QPT_UC },
				      { "V4", "ud", { opcodes, opcodes }, .arg = IBV_QPT_UD },
				      { "V4", "lengths-rc", { lengths, lengths }, .arg = IBV_QPT_RC },
				      { "V4", "lengths-uc", { lengths, lengths }, .arg = IBV_QPT_UC },
				      { "V4", "many", { many, many } },
				      { NULL } };
