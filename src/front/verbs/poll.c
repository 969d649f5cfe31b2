/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* ibv_poll_cq(3), and the reading half of ibv_create_cq_ex(3). */
#include "base/clock.h"
#include "front/verbs/ops.h"
#include "front/verbs/qp.h"
#include "front/verbs/status.h"

#include <errno.h>
#include <time.h>

/* ---- translating ----------------------------------------------------------------------------- */

/* What only a datagram has. */
static void datagram(const struct hd_cqe *e, struct ibv_wc *wc)
{
	wc->src_qp = (uint32_t)e->tag & HV_QPN_MAX;
	wc->slid = (uint16_t)(e->tag >> HV_FROM_LID);
	wc->sl = e->tag >> HV_FROM_SL & 0xf;
	if (e->tag & HV_FROM_GRH)
		wc->wc_flags |= IBV_WC_GRH;
}

static void poll_received(const struct hv_qp *qp, const struct hd_cqe *e, struct ibv_wc *wc)
{
	if (hv_unlikely(e->flags & HD_C_RMA))
		wc->byte_len = (uint32_t)e->tag;
	if (e->flags & HD_C_IMM) {
		wc->wc_flags = hv_unlikely(e->imm & HD_IMM_TAKEN_BACK) ? IBV_WC_WITH_INV : IBV_WC_WITH_IMM;
		wc->imm_data = (uint32_t)e->imm; /* or invalidated_rkey, which is the same place */
	}
	wc->src_qp = qp->attr.dest_qp_num;
	if (qp->transport == HV_UD)
		datagram(e, wc);
}

/* False: it belongs to nobody any more. */
static inline bool translate(const struct hv_context *ctx, const struct hd_cqe *e, struct ibv_wc *wc)
{
	struct hv_qp *qp = hv_qp_at(ctx, e->ep);

	if (hv_unlikely(!qp))
		return false;
	*wc = (struct ibv_wc){ .wr_id = (uintptr_t)e->ctx,
			       .status = IBV_WC_SUCCESS,
			       .opcode = hv_wc_opcode(e->flags, e->tag),
			       .byte_len = (uint32_t)e->len,
			       .qp_num = qp->pub.qp_base.qp_num };
	if (hv_unlikely(e->err)) {
		wc->status = hv_wc_status(e->flags, e->err);
		wc->vendor_err = (uint32_t)hd_status_errno(e->err);
	}
	if (e->flags & HD_C_RECV)
		poll_received(qp, e, wc);
	else if (hv_word_ahead(e->tag, qp->polled) > 0)
		qp->polled += (uint32_t)hv_word_ahead(e->tag, qp->polled);
	return true;
}

/* ---- ibv_poll_cq ----------------------------------------------------------------------------- */

int hv_poll_cq(struct ibv_cq *pub, int count, struct ibv_wc *wc)
{
	struct hv_cq *front = hv_cq_of(pub);
	struct hv_context *ctx = front->ctx;
	struct hd_cq *cq = front->cq;
	const struct hd_cqe *e;
	int n = 0;

	if (hv_unlikely(!hv_enter(ctx)))
		return -EIO;
	e = hd_cq_poll(cq);
	while (e && n < count) {
		if (hv_unlikely(e->err == HD_S_OVERRUN && !e->ctx))
			break;
		n += translate(ctx, e, &wc[n]);
		hd_cq_pop(cq);
		e = hd_cq_peek(cq);
	}
	if (hv_unlikely(e && !n && count > 0))
		n = -EIO; /* it was overrun, and all that it had has been read */
	hv_leave(ctx);
	if (!n)
		hd_node_rest(ctx->node);
	return n;
}

/* ---- ibv_start_poll … ------------------------------------------------------------------------ */

/*
 * Each entry is taken out when it is looked at: programs post and destroy between
 * ibv_start_poll and ibv_end_poll, so the node's lock is not held there. The CQ's own is,
 * unless only one thread uses it.
 */
static int next_poll(struct ibv_cq_ex *pub)
{
	struct hv_cq *cq = hv_cq_of_ex(pub);
	int n = hv_poll_cq((struct ibv_cq *)pub, 1, &cq->wc);

	if (n <= 0)
		return n ? -n : ENOENT;
	cq->taken = cq->taken_wall = 0;
	pub->status = cq->wc.status;
	pub->wr_id = cq->wc.wr_id;
	return 0;
}

static int start_poll(struct ibv_cq_ex *pub, struct ibv_poll_cq_attr *attr)
{
	struct hv_cq *cq = hv_cq_of_ex(pub);
	int rc;

	if (attr && attr->comp_mask)
		return EINVAL;
	pthread_mutex_lock(&cq->polling);
	rc = next_poll(pub);
	if (rc)
		pthread_mutex_unlock(&cq->polling);
	return rc;
}

static void end_poll(struct ibv_cq_ex *pub)
{
	struct hv_cq *cq = hv_cq_of_ex(pub);

	pthread_mutex_unlock(&cq->polling);
}

#define WC_READ(type, name, value) \
	static type read_##name(struct ibv_cq_ex *pub) \
	{ \
		return hv_cq_of_ex(pub)->wc.value; \
	}

WC_READ(enum ibv_wc_opcode, opcode, opcode)
WC_READ(uint32_t, vendor_err, vendor_err)
WC_READ(uint32_t, byte_len, byte_len)
WC_READ(__be32, imm_data, imm_data)
WC_READ(uint32_t, qp_num, qp_num)
WC_READ(uint32_t, src_qp, src_qp)
WC_READ(unsigned int, wc_flags, wc_flags)
WC_READ(uint32_t, slid, slid)
WC_READ(uint8_t, sl, sl)
WC_READ(uint8_t, dlid_path_bits, dlid_path_bits)

/*
 * When it was taken out of the CQ: nanoseconds of the clock that ibv_query_rt_values_ex(3) reads.
 */
static uint64_t read_completion_ts(struct ibv_cq_ex *pub)
{
	struct hv_cq *cq = hv_cq_of_ex(pub);

	if (!cq->taken)
		cq->taken = hd_now_ns();
	return cq->taken;
}

static uint64_t read_wallclock(struct ibv_cq_ex *pub)
{
	struct hv_cq *cq = hv_cq_of_ex(pub);
	if (!cq->taken_wall)
		cq->taken_wall = hd_wall_ns();
	return cq->taken_wall;
}

/* Of what hardware for Ethernet and tag matching knows, nothing. */
static uint16_t read_cvlan(struct ibv_cq_ex *pub)
{
	return 0;
}

static uint32_t read_flow_tag(struct ibv_cq_ex *pub)
{
	return 0;
}

static void read_tm_info(struct ibv_cq_ex *pub, struct ibv_wc_tm_info *info)
{
	*info = (struct ibv_wc_tm_info){ 0 };
}

int hv_cq_ex_fill(struct hv_cq *cq, uint64_t wc_flags)
{
	struct ibv_cq_ex *pub = &cq->pub;

	if (wc_flags & ~(uint64_t)IBV_CREATE_CQ_SUP_WC_FLAGS)
		return EOPNOTSUPP;
	pub->start_poll = start_poll;
	pub->next_poll = next_poll;
	pub->end_poll = end_poll;
	pub->read_opcode = read_opcode;
	pub->read_vendor_err = read_vendor_err;
	pub->read_byte_len = read_byte_len;
	pub->read_imm_data = read_imm_data;
	pub->read_qp_num = read_qp_num;
	pub->read_src_qp = read_src_qp;
	pub->read_wc_flags = read_wc_flags;
	pub->read_slid = read_slid;
	pub->read_sl = read_sl;
	pub->read_dlid_path_bits = read_dlid_path_bits;
	pub->read_completion_ts = read_completion_ts;
	pub->read_cvlan = read_cvlan;
	pub->read_flow_tag = read_flow_tag;
	pub->read_tm_info = read_tm_info;
	pub->read_completion_wallclock_ns = read_wallclock;
	return 0;
}
