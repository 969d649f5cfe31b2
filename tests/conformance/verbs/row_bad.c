/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * BAD: arguments that are wrong, one by one, each with its errno; afterwards everything is as it
 * was. What belongs to a row of its own is there: states and masks in QP, keys and lengths of
 * requests in V7, lists in V1.
 */
#include "vt.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

/* Everything of a second context of the same device: handles that are right, but not here. */
struct others {
	struct ibv_context *context;
	struct ibv_comp_channel *channel;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_srq *srq;
};

static void others_open(struct ct *ct, struct others *o)
{
	struct ibv_srq_init_attr srq = { NULL, { 1, 1, 0 } };

	o->context = vt_context(ct);
	o->channel = ibv_create_comp_channel(o->context);
	o->pd = ibv_alloc_pd(o->context);
	o->cq = ibv_create_cq(o->context, 1, NULL, NULL, 0);
	o->srq = ibv_create_srq(o->pd, &srq);
	CT_TRUE(ct, o->channel && o->pd && o->cq && o->srq);
}

/* Nothing of what was refused has kept any of it. */
static void others_close(struct ct *ct, struct others *o)
{
	VT_OK(ct, ibv_destroy_srq(o->srq));
	VT_OK(ct, ibv_destroy_cq(o->cq));
	VT_OK(ct, ibv_dealloc_pd(o->pd));
	VT_OK(ct, ibv_destroy_comp_channel(o->channel));
	VT_OK(ct, ibv_close_device(o->context));
}

/* ---- handles --------------------------------------------------------------------------------- */

static struct ibv_qp_init_attr usual(struct ct_ep *e)
{
	return (struct ibv_qp_init_attr){ NULL, e->cq, e->cq, NULL, { 4, 4, 1, 1, 0 }, IBV_QPT_RC, 1 };
}

static void foreign_queues(struct ct_ep *e, const struct others *o)
{
	struct ibv_qp_init_attr a = usual(e);

	a.send_cq = o->cq;
	VT_NULL(e->ct, ibv_create_qp(e->pd, &a), EINVAL);
	a = usual(e);
	a.recv_cq = o->cq;
	VT_NULL(e->ct, ibv_create_qp(e->pd, &a), EINVAL);
	a = usual(e);
	a.srq = o->srq;
	VT_NULL(e->ct, ibv_create_qp(e->pd, &a), EINVAL);
	a = usual(e);
	VT_NULL(e->ct, ibv_create_qp(o->pd, &a), EINVAL);
	VT_NULL(e->ct, ibv_create_cq(e->context, 1, NULL, o->channel, 0), EINVAL);
}

/* An address handle of another domain, or none. */
static void foreign_handles(struct ct_ep *e)
{
	struct ibv_pd *pd = ibv_alloc_pd(e->context);
	struct ibv_ah_attr av = vt_av(e, &e->me);
	struct ibv_ah *ah = ibv_create_ah(pd, &av);
	struct ibv_send_wr wr = vt_wr(e, IBV_WR_SEND, NULL, 1), *bad = NULL;

	CT_TRUE(e->ct, ah);
	wr.wr.ud.ah = NULL;
	VT_ERR(e->ct, ibv_post_send(e->qp, &wr, &bad), EINVAL);
	CT_TRUE(e->ct, bad == &wr);
	wr.wr.ud.ah = ah;
	vt_post(e, &wr);
	vt_next(e, 1, IBV_WC_LOC_QP_OP_ERR);
	vt_to(e, e->qp, IBV_QPS_RTS);
	VT_ERR(e->ct, ibv_dealloc_pd(pd), EBUSY);
	VT_OK(e->ct, ibv_destroy_ah(ah));
	VT_OK(e->ct, ibv_dealloc_pd(pd));
}

static void handles(struct ct *ct)
{
	const struct vt_want want = { .type = IBV_QPT_UD };
	struct others o;
	struct ct_ep e;

	vt_open(ct, &e, &want);
	others_open(ct, &o);
	foreign_queues(&e, &o);
	vt_connect(&e, e.qp, &e.me);
	e.peer[!ct->rank] = e.me;
	e.ah = ibv_create_ah(e.pd, &(struct ibv_ah_attr){ .dlid = e.me.lid,
							  .port_num = 1,
							  .is_global = !e.me.lid,
							  .grh = { .dgid = e.me.gid } });
	CT_TRUE(ct, e.ah);
	foreign_handles(&e);
	vt_recv(&e, 0, 64, 1); /* it works as before */
	vt_send(&e, 4096, 8, 2);
	vt_done(&e, 2, NULL);
	vt_done(&e, 1, NULL);
	others_close(ct, &o);
	vt_close(&e);
}

/* ---- errno: an error number that a call answers is there too, which is what programs print --- */

#define TOLD(ct, call, want) \
	do { \
		errno = 0; \
		VT_ERR(ct, call, want); \
		CT_EQ(ct, errno, want); \
	} while (0)

static void told(struct ct *ct)
{
	struct ibv_modify_cq_attr moderate = { .attr_mask = 1u << 30 };
	struct ibv_recv_wr rwr = { .num_sge = -1 }, *rbad;
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTS };
	struct ibv_port_attr port;
	struct ibv_send_wr wr, *bad;
	struct ct_ep e;

	vt_open(ct, &e, NULL);
	wr = vt_wr(&e, IBV_WR_SEND, NULL, 1);
	TOLD(ct, ibv_dealloc_pd(e.pd), EBUSY);
	TOLD(ct, ibv_destroy_cq(e.cq), EBUSY);
	TOLD(ct, ibv_resize_cq(e.cq, 0), EINVAL);
	TOLD(ct, ibv_query_port(e.context, 77, &port), EINVAL);
	TOLD(ct, ibv_modify_qp(e.qp, &attr, IBV_QP_STATE), EINVAL);
	TOLD(ct, ibv_modify_cq(e.cq, &moderate), EINVAL); /* by the table in the context */
	TOLD(ct, ibv_post_send(e.qp, &wr, &bad), EINVAL);
	TOLD(ct, ibv_post_recv(e.qp, &rwr, &rbad), EINVAL);
	vt_close(&e);
}

/* ---- addresses ------------------------------------------------------------------------------- */

static void addresses(struct ct *ct)
{
	struct ibv_ah_attr good, av;
	struct ibv_port_attr port;
	struct ibv_wc wc = { .wc_flags = 0 };
	struct ibv_grh grh = { 0 };
	struct ct_ep e;

	vt_open(ct, &e, NULL);
	VT_OK(ct, ibv_query_port(e.context, 1, &port));
	good = vt_av(&e, &e.me);
	av = good;
	av.port_num = 0;
	VT_NULL(ct, ibv_create_ah(e.pd, &av), EINVAL);
	av.port_num = 2;
	VT_NULL(ct, ibv_create_ah(e.pd, &av), EINVAL);
	av = good;
	av.is_global = 1;
	av.grh.dgid = e.me.gid;
	av.grh.sgid_index = (uint8_t)port.gid_tbl_len;
	VT_NULL(ct, ibv_create_ah(e.pd, &av), EINVAL);
	av = good;
	av.dlid = 0;
	av.is_global = 0; /* nowhere: no LID, and no GID either */
	VT_NULL(ct, ibv_create_ah(e.pd, &av), EINVAL);
	VT_NULL(ct, ibv_create_ah_from_wc(e.pd, &wc, &grh, 0), EINVAL);
	vt_close(&e);
}

/* ---- tables of the port ---------------------------------------------------------------------- */

static void tables(struct ct *ct)
{
	struct ibv_context *c = vt_context(ct);
	struct ibv_gid_entry entry;
	struct ibv_port_attr port;
	union ibv_gid gid;
	uint16_t pkey;

	VT_OK(ct, ibv_query_port(c, 1, &port));
	CT_EQ(ct, ibv_query_gid(c, 1, -1, &gid), -1);
	CT_EQ(ct, ibv_query_gid(c, 0, 0, &gid), -1);
	CT_EQ(ct, ibv_query_pkey(c, 1, -1, &pkey), -1);
	CT_EQ(ct, ibv_query_pkey(c, 2, 0, &pkey), -1);
	CT_EQ(ct, ibv_get_pkey_index(c, 2, 0xffff), -1);
	VT_ERR(ct, ibv_query_gid_ex(c, 2, 0, &entry, 0), EINVAL);
	VT_ERR(ct, ibv_query_gid_ex(c, 1, (uint32_t)port.gid_tbl_len, &entry, 0), EINVAL);
	VT_ERR(ct, ibv_query_gid_ex(c, 1, 0, &entry, 1), EOPNOTSUPP);
	VT_OK(ct, ibv_query_gid_ex(c, 1, 0, &entry, 0));
	CT_TRUE(ct, ibv_query_gid_table(c, &entry, 1, 1) < 0);
	VT_OK(ct, ibv_close_device(c));
}

/* ---- regions --------------------------------------------------------------------------------- */

static void regions(struct ct *ct)
{
	struct ibv_mr *empty;
	struct others o;
	struct ct_ep e;
	uint32_t key;

	vt_open(ct, &e, NULL);
	others_open(ct, &o);
	key = e.mr->rkey;
	VT_NULL(ct, ibv_reg_mr(e.pd, NULL, 4096, 0), EFAULT);
	VT_NULL(ct, ibv_reg_mr(e.pd, NULL, SIZE_MAX, IBV_ACCESS_ON_DEMAND | IBV_ACCESS_LOCAL_WRITE), EINVAL);
	empty = ibv_reg_mr(e.pd, e.buf, 0, VT_ACCESS); /* a region of nothing is one */
	CT_TRUE(ct, empty && !empty->length);
	VT_OK(ct, ibv_dereg_mr(empty));
	/* libibverbs finds these out: the region stays what it was */
	CT_EQ(ct, ibv_rereg_mr(e.mr, 0, NULL, NULL, 0, 0), IBV_REREG_MR_ERR_INPUT);
	CT_EQ(ct, ibv_rereg_mr(e.mr, 1 << 10, NULL, NULL, 0, 0), IBV_REREG_MR_ERR_INPUT);
	errno = 0;
	CT_EQ(ct, ibv_rereg_mr(e.mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, NULL, 64, 0),
	      IBV_REREG_MR_ERR_INPUT);
	CT_EQ(ct, errno, EINVAL);
	CT_EQ(ct, ibv_rereg_mr(e.mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, e.buf, 0, 0),
	      IBV_REREG_MR_ERR_INPUT);
	CT_TRUE(ct, ibv_rereg_mr(e.mr, IBV_REREG_MR_CHANGE_PD, o.pd, NULL, 0, 0) != 0);
	CT_TRUE(ct,
		e.mr->rkey == key && e.mr->pd == e.pd && e.mr->addr == e.buf && e.mr->length == e.want.size);
	vt_connect(&e, e.qp, &e.me);
	e.peer[!ct->rank] = e.me;
	vt_recv(&e, 0, 64, 1);
	vt_send(&e, 4096, 64, 2);
	vt_done(&e, 2, NULL);
	vt_done(&e, 1, NULL);
	others_close(ct, &o);
	vt_close(&e);
}

/* ---- attributes of queues -------------------------------------------------------------------- */

static void extended(struct ct *ct)
{
	struct ibv_cq_init_attr_ex cq = { .cqe = 4, .comp_mask = 1u << 30 };
	struct ibv_qp_init_attr_ex qp = { .qp_type = IBV_QPT_RC, .cap = { 1, 1, 1, 1, 0 } };
	struct ibv_srq_init_attr_ex srq = { .attr = { 1, 1, 0 } };
	struct ibv_query_device_ex_input input = { .comp_mask = 1 };
	struct ibv_device_attr_ex attr;
	struct ct_ep e;

	vt_open(ct, &e, NULL);
	CT_TRUE(ct, ibv_create_cq_ex(e.context, &cq) == NULL);
	cq.comp_mask = 0;
	cq.wc_flags = UINT64_C(1) << 40;
	CT_TRUE(ct, ibv_create_cq_ex(e.context, &cq) == NULL);
	qp.send_cq = qp.recv_cq = e.cq;
	qp.pd = e.pd; /* but the mask does not say so */
	VT_NULL(ct, ibv_create_qp_ex(e.context, &qp), EINVAL);
	qp.comp_mask = IBV_QP_INIT_ATTR_PD | 1u << 30;
	CT_TRUE(ct, ibv_create_qp_ex(e.context, &qp) == NULL);
	srq.comp_mask = IBV_SRQ_INIT_ATTR_PD | 1u << 30;
	srq.pd = e.pd;
	CT_TRUE(ct, ibv_create_srq_ex(e.context, &srq) == NULL);
	VT_ERR(ct, ibv_query_device_ex(e.context, &input, &attr), EINVAL);
	vt_close(&e);
}

/* ---- requests -------------------------------------------------------------------------------- */

static void refused(struct ct_ep *e, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad = NULL;

	VT_ERR(e->ct, ibv_post_send(e->qp, wr, &bad), EINVAL);
	CT_TRUE(e->ct, bad == wr);
}

static void requests(struct ct *ct)
{
	const struct vt_want want = { .sge = 2, .inline_data = 16 };
	struct ibv_sge sges[64], big;
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct ibv_recv_wr rwr = { .wr_id = 1, .sg_list = sges, .num_sge = -1 }, *rbad = NULL;
	struct ibv_send_wr wr;
	struct ct_ep e;

	vt_open(ct, &e, &want);
	vt_connect(&e, e.qp, &e.me);
	e.peer[!ct->rank] = e.me;
	VT_OK(ct, ibv_query_qp(e.qp, &attr, IBV_QP_CAP, &init));
	for (int i = 0; i < 64; i++)
		sges[i] = vt_sge(&e, 0, 8);
	wr = vt_wr(&e, IBV_WR_SEND, sges, 1);
	wr.num_sge = (int)attr.cap.max_send_sge + 1;
	refused(&e, &wr);
	wr.num_sge = -1;
	refused(&e, &wr);
	big = vt_sge(&e, 0, attr.cap.max_inline_data + 1);
	wr = vt_wr(&e, IBV_WR_SEND, &big, 1);
	wr.send_flags = IBV_SEND_INLINE;
	refused(&e, &wr);
	wr = vt_wr(&e, IBV_WR_RDMA_READ, sges, 1);
	wr.send_flags = IBV_SEND_INLINE;
	refused(&e, &wr);
	wr = vt_wr(&e, (enum ibv_wr_opcode) - 1, sges, 1);
	refused(&e, &wr);
	VT_ERR(ct, ibv_post_recv(e.qp, &rwr, &rbad), EINVAL);
	CT_TRUE(ct, rbad == &rwr);
	CT_EQ(ct, vt_state(&e, e.qp), IBV_QPS_RTS);
	vt_quiet(&e, 5, "what was refused");
	vt_close(&e);
}

/* ---- nothing to read ------------------------------------------------------------------------- */

static void nothing(struct ct *ct)
{
	const struct vt_want want = { .channel = true };
	struct ibv_async_event event;
	struct ibv_wc wc;
	struct ibv_cq *cq;
	struct ct_ep e;
	void *context;

	vt_open(ct, &e, &want);
	CT_TRUE(ct, fcntl(e.context->async_fd, F_SETFL, O_NONBLOCK) == 0);
	CT_TRUE(ct, fcntl(e.channel->fd, F_SETFL, O_NONBLOCK) == 0);
	errno = 0;
	CT_TRUE(ct, ibv_get_async_event(e.context, &event) == -1 && errno == EAGAIN);
	errno = 0;
	CT_TRUE(ct, ibv_get_cq_event(e.channel, &cq, &context) == -1 && errno == EAGAIN);
	CT_EQ(ct, ibv_poll_cq(e.cq, 0, &wc), 0);
	vt_close(&e);
}

/* Words that there are none for still are words. */
static void words(struct ct *ct)
{
	CT_TRUE(ct,
		ibv_wc_status_str((enum ibv_wc_status) - 1) && ibv_wc_status_str((enum ibv_wc_status)9999));
	CT_TRUE(ct, ibv_event_type_str((enum ibv_event_type) - 1) &&
			    ibv_event_type_str((enum ibv_event_type)9999));
	CT_TRUE(ct,
		ibv_port_state_str((enum ibv_port_state)9999) && ibv_node_type_str((enum ibv_node_type)9999));
	CT_EQ(ct, ibv_rate_to_mult((enum ibv_rate)9999), -1);
	CT_EQ(ct, mult_to_ibv_rate(9999), IBV_RATE_MAX);
	CT_EQ(ct, ibv_rate_to_mbps((enum ibv_rate)9999), -1);
}

const struct ct_case vt_bad[] = { { "BAD", "handles", { handles } },	 { "BAD", "told", { told } },
				  { "BAD", "addresses", { addresses } }, { "BAD", "tables", { tables } },
				  { "BAD", "regions", { regions } },	 { "BAD", "extended", { extended } },
				  { "BAD", "requests", { requests } },	 { "BAD", "nothing", { nothing } },
				  { "BAD", "words", { words } },	 { NULL } };
