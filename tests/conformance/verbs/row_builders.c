/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* WR: ibv_wr_post(3). CQ: ibv_create_cq_ex(3). */
#include "vt.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

#define ALL \
	(IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM | IBV_QP_EX_WITH_RDMA_WRITE | \
	 IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | \
	 IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD)

static void build(struct ct_ep *e, struct ibv_qp_ex *qp)
{
	const struct vt_name *to = &e->peer[1];
	char text[] = "inline";

	ibv_wr_start(qp);
	qp->wr_id = 1;
	qp->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_send(qp);
	ibv_wr_set_sge(qp, e->mr->lkey, (uintptr_t)e->buf, 100);
	qp->wr_id = 2;
	ibv_wr_send_imm(qp, htobe32(77));
	ibv_wr_set_inline_data(qp, text, sizeof(text));
	memset(text, 0, sizeof(text));
	qp->wr_id = 3;
	ibv_wr_rdma_write(qp, to->rkey, to->addr + 4096);
	ibv_wr_set_sge_list(qp, 2, (struct ibv_sge[]){ vt_sge(e, 0, 60), vt_sge(e, 60, 40) });
	qp->wr_id = 4;
	ibv_wr_atomic_fetch_add(qp, to->rkey, to->addr + 8192, 5);
	ibv_wr_set_sge(qp, e->mr->lkey, (uintptr_t)e->buf + 8192, 8);
	qp->wr_id = 5;
	ibv_wr_atomic_cmp_swp(qp, to->rkey, to->addr + 8192, 15, 30);
	ibv_wr_set_sge(qp, e->mr->lkey, (uintptr_t)e->buf + 8200, 8);
	qp->wr_id = 6;
	ibv_wr_rdma_read(qp, to->rkey, to->addr + 4096);
	ibv_wr_set_sge(qp, e->mr->lkey, (uintptr_t)e->buf + 12288, 100);
	qp->wr_id = 7;
	ibv_wr_rdma_write_imm(qp, to->rkey, to->addr + 16384, htobe32(78));
	ibv_wr_set_sge(qp, e->mr->lkey, (uintptr_t)e->buf, 8);
}

static void builders(struct ct *ct)
{
	const struct vt_want want = { .send_ops = ALL, .sig_none = 1 };
	struct ct_ep e;
	struct ibv_qp_ex *qp;
	struct ibv_wc wc;
	uint64_t word = 10;

	vt_start(ct, &e, &want);
	qp = ibv_qp_to_qp_ex(e.qp);
	CT_TRUE(ct, qp);
	if (ct->rank) {
		memcpy(e.buf + 8192, &word, 8);
		for (uint64_t i = 1; i <= 3; i++)
			vt_recv(&e, i * 1024, 512, i);
		ct_sync(ct, NULL);
		vt_done(&e, 1, NULL);
		ct_verify(ct, e.buf + 1024, 100, 1, "built");
		vt_done(&e, 2, &wc);
		CT_EQ(ct, be32toh(wc.imm_data), 77);
		CT_TRUE(ct, !strcmp(e.buf + 2048, "inline"));
		vt_done(&e, 3, &wc);
		CT_EQ(ct, wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
		CT_EQ(ct, be32toh(wc.imm_data), 78);
		ct_verify(ct, e.buf + 4096, 100, 1, "written");
		memcpy(&word, e.buf + 8192, 8);
		CT_EQ(ct, word, 30);
	} else {
		ct_fill(e.buf, 100, 1);
		ct_sync(ct, NULL);
		build(&e, qp);
		ibv_wr_abort(qp); /* nothing happens */
		build(&e, qp);
		VT_OK(ct, ibv_wr_complete(qp));
		for (uint64_t i = 1; i <= 7; i++)
			vt_next(&e, i, IBV_WC_SUCCESS);
		ct_verify(ct, e.buf + 12288, 100, 1, "read");
		memcpy(&word, e.buf + 8192, 8);
		CT_EQ(ct, word, 10);
		memcpy(&word, e.buf + 8200, 8);
		CT_EQ(ct, word, 15);
	}
	vt_finish(&e);
}

/*
 * IBV_SEND_INLINE is none of wr_flags: how data is taken the setter says, so a list by address may
 * be as long as any, and be filled.
 */
static void inline_flag(struct ct *ct)
{
	const struct vt_want want = { .send_ops = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_READ };
	const struct vt_name *to;
	struct ibv_qp_ex *qp;
	struct ct_ep e;

	vt_start(ct, &e, &want);
	if (!ct->rank) {
		to = &e.peer[1];
		qp = ibv_qp_to_qp_ex(e.qp);
		ct_fill(e.buf, 65536, 1);
		ibv_wr_start(qp);
		qp->wr_flags = IBV_SEND_INLINE | IBV_SEND_SIGNALED;
		qp->wr_id = 1;
		ibv_wr_rdma_write(qp, to->rkey, to->addr);
		ibv_wr_set_sge(qp, e.mr->lkey, (uintptr_t)e.buf, 65536);
		qp->wr_id = 2;
		ibv_wr_rdma_read(qp, to->rkey, to->addr);
		ibv_wr_set_sge(qp, e.mr->lkey, (uintptr_t)e.buf + 65536, 65536);
		VT_OK(ct, ibv_wr_complete(qp));
		vt_next(&e, 1, IBV_WC_SUCCESS);
		vt_next(&e, 2, IBV_WC_SUCCESS);
		ct_verify(ct, e.buf + 65536, 65536, 1, "written and read");
	}
	vt_finish(&e);
}

/* One that is wrong, and none is posted. */
static void wrong(struct ct *ct)
{
	const struct vt_want want = { .send_ops = IBV_QP_EX_WITH_SEND, .inline_data = 64 };
	struct ibv_qp_init_attr_ex attr = { .qp_type = IBV_QPT_UD,
					    .comp_mask = IBV_QP_INIT_ATTR_PD |
							 IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
					    .send_ops_flags = IBV_QP_EX_WITH_RDMA_READ,
					    .cap = { 1, 1, 1, 1, 0 } };
	static char big[1u << 16];
	struct ibv_qp_ex *qp;
	struct ct_ep e;

	vt_start(ct, &e, &want);
	qp = ibv_qp_to_qp_ex(e.qp);
	ibv_wr_start(qp);
	qp->wr_id = 1;
	qp->wr_flags = 0;
	ibv_wr_send(qp);
	ibv_wr_set_sge(qp, e.mr->lkey, (uintptr_t)e.buf, 8);
	ibv_wr_send(qp);
	ibv_wr_set_inline_data(qp, big, sizeof(big));
	CT_TRUE(ct, ibv_wr_complete(qp) != 0);
	vt_quiet(&e, 10, "nothing was posted");
	attr.pd = e.pd;
	attr.send_cq = attr.recv_cq = e.cq;
	VT_NULL(ct, ibv_create_qp_ex(e.context, &attr), EOPNOTSUPP); /* not for UD */
	vt_finish(&e);
}

/* IBV_WR_ATOMIC_WRITE: 8 bytes at once, which need no right to other atomic operations. */
static void atomic_write(struct ct *ct)
{
	const struct vt_want want = { .send_ops = IBV_QP_EX_WITH_ATOMIC_WRITE,
				      .access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE,
				      .qp_access = IBV_ACCESS_REMOTE_WRITE };
	const uint64_t values[] = { UINT64_C(0x0123456789abcdef), 4711, 4712 };
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct ct_ep e;
	struct ibv_wc wc;

	vt_start(ct, &e, &want);
	if (!ct->rank) {
		struct ibv_qp_ex *qp = ibv_qp_to_qp_ex(e.qp);

		ibv_wr_start(qp);
		qp->wr_id = 0;
		qp->wr_flags = 0;
		ibv_wr_atomic_write(qp, e.peer[1].rkey, e.peer[1].addr + 4096, values);
		VT_OK(ct, ibv_wr_complete(qp));
		memcpy(e.buf, values, sizeof(values));
		for (uint32_t i = 1; i <= 2; i++) {
			sge = vt_sge(&e, 8 * i, 8);
			wr = vt_wr(&e, IBV_WR_ATOMIC_WRITE, &sge, i);
			wr.send_flags = i == 2 ? IBV_SEND_INLINE : 0;
			wr.wr.rdma.remote_addr = e.peer[1].addr + 4096 + 8 * i;
			vt_post(&e, &wr);
		}
		for (uint64_t i = 0; i <= 2; i++) {
			vt_done(&e, i, &wc);
			CT_EQ(ct, wc.opcode, IBV_WC_ATOMIC_WRITE);
		}
	}
	ct_sync(ct, &e);
	if (ct->rank)
		CT_TRUE(ct, !memcmp(e.buf + 4096, values, sizeof(values)));
	vt_finish(&e);
}

/*
 * IBV_ODP_SUPPORT_ATOMIC_WRITE, of younger headers: what is on demand may be written so, over
 * the transport that has it.
 */
static void atomic_write_on_demand(struct ct *ct)
{
	const uint32_t has = 1 << 7;
	const struct vt_want want = { .access = VT_ACCESS | IBV_ACCESS_ON_DEMAND };
	struct ibv_device_attr_ex dev;
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct ct_ep e;

	vt_start(ct, &e, &want);
	VT_OK(ct, ibv_query_device_ex(e.context, NULL, &dev));
	CT_TRUE(ct, dev.odp_caps.per_transport_caps.rc_odp_caps & has);
	CT_TRUE(ct, !((dev.odp_caps.per_transport_caps.uc_odp_caps |
		       dev.odp_caps.per_transport_caps.ud_odp_caps | dev.xrc_odp_caps) &
		      has));
	if (!ct->rank) {
		sge = vt_sge(&e, 0, 8);
		wr = vt_wr(&e, IBV_WR_ATOMIC_WRITE, &sge, 1);
		memset(e.buf, 'x', 8);
		wr.wr.rdma.remote_addr = e.peer[1].addr + 4096;
		vt_post(&e, &wr);
		vt_next(&e, 1, IBV_WC_SUCCESS);
	}
	ct_sync(ct, &e);
	if (ct->rank)
		CT_TRUE(ct, e.buf[4096] == 'x' && e.buf[4103] == 'x');
	vt_finish(&e);
}

/* One of another length, to where no such word is, or to where nobody may write. */
static void atomic_write_wrong(struct ct *ct)
{
	const struct vt_want want = {
		.send_ops = IBV_QP_EX_WITH_ATOMIC_WRITE,
		.access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_ATOMIC |
			  (ct->cs->arg == IBV_WC_REM_ACCESS_ERR ? 0 : IBV_ACCESS_REMOTE_WRITE)
	};
	enum ibv_wc_status status = (enum ibv_wc_status)ct->cs->arg;
	struct ct_ep e;

	vt_start(ct, &e, &want);
	if (!ct->rank) {
		struct ibv_sge sge = vt_sge(&e, 0, status == IBV_WC_LOC_LEN_ERR ? 4 : 8);
		struct ibv_send_wr wr = vt_wr(&e, IBV_WR_ATOMIC_WRITE, &sge, 1);

		memset(e.buf, 'x', 8);
		wr.wr.rdma.remote_addr += 4096 + (status == IBV_WC_REM_INV_REQ_ERR ? 4 : 0);
		vt_post(&e, &wr);
		vt_next(&e, 1, status);
		CT_EQ(ct, vt_state(&e, e.qp), IBV_QPS_ERR);
	}
	ct_sync(ct, &e);
	if (ct->rank)
		for (int i = 0; i < 16; i++)
			CT_EQ(ct, e.buf[4096 + i], 0);
	vt_finish(&e);
}

#define STAMPS (IBV_WC_EX_WITH_COMPLETION_TIMESTAMP | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK)

/* Cycles of the clock that completions are stamped by, where all drivers have them. */
static uint64_t raw_clock(struct ct_ep *e)
{
	struct ibv_values_ex now = { .comp_mask = IBV_VALUES_MASK_RAW_CLOCK };

	VT_OK(e->ct, ibv_query_rt_values_ex(e->context, &now));
	CT_EQ(e->ct, now.raw_clock.tv_sec, 0);
	return (uint64_t)now.raw_clock.tv_nsec;
}

static void expect_stamp(struct ct_ep *e, struct ibv_cq_ex *cq, uint64_t *before)
{
	uint64_t stamp = ibv_wc_read_completion_ts(cq), now = raw_clock(e);
	uint64_t wall = ibv_wc_read_completion_wallclock_ns(cq);

	CT_TRUE(e->ct, stamp >= *before && stamp <= now);
	CT_TRUE(e->ct, ibv_wc_read_completion_ts(cq) == stamp);
	CT_TRUE(e->ct, wall && ibv_wc_read_completion_wallclock_ns(cq) == wall);
	*before = now;
}

/* The same queue pair with an extended completion queue, connected. */
static struct ibv_cq_ex *with_extended(struct ct_ep *e, struct ibv_cq_init_attr_ex *attr)
{
	struct ct *ct = e->ct;
	struct ibv_cq_ex *cq;

	VT_OK(ct, ibv_destroy_qp(e->qp));
	VT_OK(ct, ibv_destroy_cq(e->cq));
	cq = ibv_create_cq_ex(e->context, attr);
	CT_TRUE(ct, cq);
	e->cq = e->rcq = ibv_cq_ex_to_cq(cq);
	e->qp = vt_qp(e);
	e->me.qpn = e->qp->qp_num;
	vt_exchange(e);
	vt_connect(e, e->qp, &e->peer[!ct->rank]);
	return cq;
}

/* A CQ that is read piece by piece; posting in between is allowed. */
static void extended(struct ct *ct)
{
	struct ibv_cq_init_attr_ex attr = { .cqe = 64,
					    .wc_flags = IBV_WC_STANDARD_FLAGS | (ct->cs->arg ? STAMPS : 0) };
	struct ibv_poll_cq_attr poll = { 0 };
	struct ibv_cq_ex *cq;
	struct ct_ep e;
	uint64_t before;

	vt_open(ct, &e, NULL);
	before = raw_clock(&e);
	cq = with_extended(&e, &attr);
	CT_EQ(ct, ibv_start_poll(cq, &poll), ENOENT);
	for (uint64_t i = 0; i < 4; i++)
		vt_recv(&e, i * 64, 64, i);
	ct_sync(ct, NULL);
	for (uint64_t i = 0; i < 20; i++) {
		double end = ct_deadline(ct);
		int rc, recvs = 0, sends = 0;
		struct ibv_sge sge = vt_sge(&e, 4096, 8);
		struct ibv_send_wr wr = vt_wr(&e, IBV_WR_SEND_WITH_IMM, &sge, 100);

		ct_fill(e.buf + 4096, 8, i);
		wr.imm_data = htobe32((uint32_t)i);
		vt_post(&e, &wr);
		while (!recvs || !sends) {
			while ((rc = ibv_start_poll(cq, &poll)) == ENOENT)
				ct_late(ct, end, "a completion");
			for (; !rc; rc = ibv_next_poll(cq)) {
				CT_EQ(ct, cq->status, IBV_WC_SUCCESS);
				CT_EQ(ct, ibv_wc_read_qp_num(cq), e.qp->qp_num);
				if (ct->cs->arg)
					expect_stamp(&e, cq, &before);
				if (ibv_wc_read_opcode(cq) == IBV_WC_SEND) {
					CT_EQ(ct, cq->wr_id, 100);
					sends++;
					continue;
				}
				CT_EQ(ct, ibv_wc_read_opcode(cq), IBV_WC_RECV);
				CT_EQ(ct, cq->wr_id, i % 4);
				CT_EQ(ct, ibv_wc_read_byte_len(cq), 8);
				CT_EQ(ct, ibv_wc_read_wc_flags(cq), IBV_WC_WITH_IMM);
				CT_EQ(ct, be32toh(ibv_wc_read_imm_data(cq)), i);
				ct_verify(ct, e.buf + i % 4 * 64, 8, i, "message");
				vt_recv(&e, i % 4 * 64, 64, i % 4);
				recvs++;
			}
			CT_EQ(ct, rc, ENOENT);
			ibv_end_poll(cq);
		}
		ct_sync(ct, NULL);
	}
	vt_finish(&e);
}

/*
 * A datagram tells as much of its sender as ibv_poll_cq does; what is no
 * matter of these devices is 0.
 */
static void extended_datagram(struct ct *ct)
{
	const struct vt_want want = { .type = IBV_QPT_UD };
	struct ibv_cq_init_attr_ex attr = { .cqe = 64,
					    .wc_flags = IBV_CREATE_CQ_SUP_WC_FLAGS & ~(uint64_t)(STAMPS) };
	struct ibv_poll_cq_attr poll = { 0 };
	struct ibv_ah_attr av;
	struct ibv_cq_ex *cq;
	double end;
	struct ct_ep e;

	vt_open(ct, &e, &want);
	cq = with_extended(&e, &attr);
	av = vt_av(&e, &e.peer[!ct->rank]);
	e.ah = ibv_create_ah(e.pd, &av);
	CT_TRUE(ct, e.ah);
	if (ct->rank) {
		vt_recv(&e, 0, 4096, 1);
		ct_sync(ct, NULL);
	} else {
		ct_sync(ct, NULL);
		vt_send(&e, 0, 64, 2);
	}
	for (end = ct_deadline(ct); ibv_start_poll(cq, &poll) == ENOENT;)
		ct_late(ct, end, "a completion");
	CT_EQ(ct, cq->status, IBV_WC_SUCCESS);
	CT_EQ(ct, ibv_wc_read_vendor_err(cq), 0);
	if (ct->rank) {
		CT_EQ(ct, ibv_wc_read_src_qp(cq), e.peer[0].qpn);
		CT_EQ(ct, ibv_wc_read_slid(cq), e.peer[0].lid);
		CT_EQ(ct, ibv_wc_read_byte_len(cq), 104);
		CT_EQ(ct, ibv_wc_read_dlid_path_bits(cq), 0);
		if (e.me.lid) /* over Ethernet drivers tell there what kind of header came */
			CT_EQ(ct, ibv_wc_read_sl(cq), 0);
		CT_EQ(ct, ibv_wc_read_cvlan(cq) | ibv_wc_read_flow_tag(cq), 0);
	}
	ibv_end_poll(cq);
	vt_finish(&e);
}

/* What the devices do not have refuses its list, and nothing of the list is posted. */
static void segmented(struct ct *ct)
{
	const struct vt_want want = { .send_ops = IBV_QP_EX_WITH_SEND };
	struct ibv_qp_ex *qp;
	struct ct_ep e;

	vt_open(ct, &e, &want);
	vt_connect(&e, e.qp, &e.me);
	vt_recv(&e, 0, 64, 1);
	qp = ibv_qp_to_qp_ex(e.qp);
	CT_TRUE(ct, qp);
	ibv_wr_start(qp);
	qp->wr_id = 2;
	qp->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_send(qp);
	ibv_wr_set_sge(qp, e.mr->lkey, (uintptr_t)e.buf + 4096, 8);
	ibv_wr_send_tso(qp, e.buf, 8, 8);
	CT_EQ(ct, ibv_wr_complete(qp), EOPNOTSUPP);
	vt_quiet(&e, 20, "of a list that was refused");
	vt_close(&e);
}

const struct ct_case vt_builders[] = {
	{ "WR", "builders", { builders, builders } },
	{ "WR", "inline-flag", { inline_flag, inline_flag } },
	{ "WR", "wrong", { wrong, wrong } },
	{ "WR", "segmentation", { segmented } },
	{ "WR", "atomic-write", { atomic_write, atomic_write } },
	{ "WR", "atomic-write-on-demand", { atomic_write_on_demand, atomic_write_on_demand } },
	{ "WR", "atomic-write-short", { atomic_write_wrong, atomic_write_wrong }, .arg = IBV_WC_LOC_LEN_ERR },
	{ "WR",
	  "atomic-write-odd",
	  { atomic_write_wrong, atomic_write_wrong },
	  .arg = IBV_WC_REM_INV_REQ_ERR },
	{ "WR",
	  "atomic-write-rights",
	  { atomic_write_wrong, atomic_write_wrong },
	  .arg = IBV_WC_REM_ACCESS_ERR },
	{ "CQ", "extended", { extended, extended } },
	{ "CQ", "extended-datagram", { extended_datagram, extended_datagram } },
	{ "CQ", "extended-timestamps", { extended, extended }, .arg = 1 },
	{ NULL }
};
