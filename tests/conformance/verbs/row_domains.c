/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * PD: ibv_alloc_parent_domain(3), ibv_alloc_td(3): a parent domain is as good as the domain it
 * stands for, wherever one is asked for.
 */
#include "vt.h"

#include <errno.h>
#include <string.h>

static struct ibv_pd *parent(struct ct_ep *e, struct ibv_pd *pd, struct ibv_td *td)
{
	struct ibv_parent_domain_init_attr attr = { .pd = pd, .td = td };
	struct ibv_pd *made = ibv_alloc_parent_domain(e->context, &attr);

	CT_TRUE(e->ct, made && made != pd && made->context == e->context);
	return made;
}

/*
 * What is in use stays: the domain under its parent, the thread domain under that, the parent
 * under what was made with it.
 */
static void life(struct ct *ct)
{
	struct ibv_parent_domain_init_attr attr = { 0 };
	struct ibv_cq_init_attr_ex init = { .cqe = 4, .comp_mask = IBV_CQ_INIT_ATTR_MASK_PD };
	struct ibv_td_init_attr none = { 0 };
	struct ibv_pd *first, *second;
	struct ibv_cq_ex *cq;
	struct ibv_td *td;
	struct ct_ep e;

	vt_open(ct, &e, NULL);
	VT_NULL(ct, ibv_alloc_parent_domain(e.context, &attr), EINVAL); /* of no domain */
	attr = (struct ibv_parent_domain_init_attr){ .pd = e.pd, .comp_mask = 1u << 20 };
	VT_NULL(ct, ibv_alloc_parent_domain(e.context, &attr), EINVAL);
	td = ibv_alloc_td(e.context, &none);
	CT_TRUE(ct, td && td->context == e.context);
	none.comp_mask = 1u << 30;
	CT_TRUE(ct, !ibv_alloc_td(e.context, &none));
	first = parent(&e, e.pd, td);
	second = parent(&e, first, NULL);
	VT_ERR(ct, ibv_dealloc_td(td), EBUSY);
	VT_OK(ct, ibv_destroy_qp(e.qp));
	e.qp = NULL;
	VT_OK(ct, ibv_dereg_mr(e.mr));
	VT_ERR(ct, ibv_dealloc_pd(e.pd), EBUSY);
	e.mr = ibv_reg_mr(second, e.buf, 4096, VT_ACCESS);
	CT_TRUE(ct, e.mr && e.mr->pd == second);
	VT_ERR(ct, ibv_dealloc_pd(second), EBUSY);
	init.parent_domain = first;
	cq = ibv_create_cq_ex(e.context, &init);
	CT_TRUE(ct, cq);
	VT_ERR(ct, ibv_dealloc_pd(first), EBUSY);
	VT_OK(ct, ibv_destroy_cq(ibv_cq_ex_to_cq(cq)));
	init.parent_domain = e.pd; /* which is none */
	VT_NULL(ct, ibv_create_cq_ex(e.context, &init), EINVAL);
	init.parent_domain = NULL;
	VT_NULL(ct, ibv_create_cq_ex(e.context, &init), EINVAL);
	VT_OK(ct, ibv_dereg_mr(e.mr));
	VT_OK(ct, ibv_dealloc_pd(second));
	VT_OK(ct, ibv_dealloc_pd(first));
	VT_OK(ct, ibv_dealloc_td(td));
	e.mr = ibv_reg_mr(e.pd, e.buf, 4096, VT_ACCESS);
	CT_TRUE(ct, e.mr);
	vt_close(&e);
}

/*
 * e's queue pair is of the parent domain, its address handle and its region of the other;
 * and the other way round.
 */
static void datagrams(struct ct *ct)
{
	for (int i = 0; i < 2; i++) {
		const struct vt_want want = { .type = IBV_QPT_UD };
		struct ibv_pd *own, *up;
		struct ibv_ah_attr av;
		struct ct_ep e;

		vt_open(ct, &e, &want);
		own = e.pd;
		up = parent(&e, own, NULL);
		VT_OK(ct, ibv_destroy_qp(e.qp));
		e.pd = i ? own : up;
		e.qp = vt_qp(&e);
		CT_TRUE(ct, e.qp->pd == e.pd);
		e.me.qpn = e.qp->qp_num;
		e.peer[!ct->rank] = e.me;
		vt_connect(&e, e.qp, &e.me);
		av = vt_av(&e, &e.me);
		e.ah = ibv_create_ah(i ? up : own, &av);
		CT_TRUE(ct, e.ah);
		vt_recv(&e, 0, 4096, 1);
		ct_fill(e.buf + 8192, 100, 1);
		vt_send(&e, 8192, 100, 2);
		vt_done(&e, 2, NULL);
		vt_done(&e, 1, NULL);
		ct_verify(ct, e.buf + 40, 100, 1, "datagram");
		VT_OK(ct, ibv_destroy_ah(e.ah));
		e.ah = NULL;
		VT_OK(ct, ibv_destroy_qp(e.qp));
		e.qp = NULL;
		VT_OK(ct, ibv_dealloc_pd(up));
		e.pd = own;
		vt_close(&e);
	}
}

/* A window of one domain and a queue pair of the other: what is bound is reached. */
static void windows(struct ct *ct)
{
	struct ibv_mw_bind bind = { .wr_id = 1, .send_flags = IBV_SEND_SIGNALED };
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct ibv_pd *up;
	struct ibv_mr *mr;
	struct ibv_mw *mw;
	struct ct_ep e;

	vt_open(ct, &e, NULL);
	e.peer[!ct->rank] = e.me;
	vt_connect(&e, e.qp, &e.me);
	up = parent(&e, e.pd, NULL);
	mr = ibv_reg_mr(up, e.buf, 4096, VT_ACCESS | IBV_ACCESS_MW_BIND);
	mw = ibv_alloc_mw(up, IBV_MW_TYPE_1);
	CT_TRUE(ct, mr && mw);
	bind.bind_info = (struct ibv_mw_bind_info){ mr, (uintptr_t)e.buf, 4096, IBV_ACCESS_REMOTE_WRITE };
	VT_OK(ct, ibv_bind_mw(e.qp, mw, &bind));
	vt_done(&e, 1, NULL);
	ct_fill(e.buf + 8192, 64, 3);
	sge = vt_sge(&e, 8192, 64);
	wr = vt_wr(&e, IBV_WR_RDMA_WRITE, &sge, 2);
	wr.wr.rdma.remote_addr = (uintptr_t)e.buf + 100;
	wr.wr.rdma.rkey = mw->rkey;
	vt_post(&e, &wr);
	vt_done(&e, 2, NULL);
	ct_verify(ct, e.buf + 100, 64, 3, "through the window");
	VT_OK(ct, ibv_dealloc_mw(mw));
	VT_OK(ct, ibv_dereg_mr(mr));
	VT_OK(ct, ibv_dealloc_pd(up));
	vt_close(&e);
}

/* A region goes from one domain to another, with its rights, and back. */
static void moved(struct ct *ct)
{
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct ibv_qp *other;
	struct vt_name name;
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	struct ct_ep e;
	uint32_t key;

	vt_open(ct, &e, NULL);
	other = vt_qp(&e); /* which is offended, and not the one that asks */
	name = e.me;
	name.qpn = other->qp_num;
	e.peer[!ct->rank] = name;
	pd = ibv_alloc_pd(e.context);
	mr = ibv_reg_mr(e.pd, e.buf, 4096, VT_ACCESS);
	CT_TRUE(ct, pd && mr);
	key = mr->rkey;
	ct_fill(e.buf + 8192, 64, 3);
	sge = vt_sge(&e, 8192, 64);
	wr = vt_wr(&e, IBV_WR_RDMA_WRITE, &sge, 1);
	wr.wr.rdma.remote_addr = (uintptr_t)e.buf;
	for (int i = 0; i < 4; i++) {
		struct ibv_pd *to = i == 1 ? pd : e.pd;
		int flags = IBV_REREG_MR_CHANGE_PD | IBV_REREG_MR_CHANGE_ACCESS;

		VT_OK(ct, ibv_rereg_mr(mr, flags, to, NULL, 0, i == 2 ? IBV_ACCESS_LOCAL_WRITE : VT_ACCESS));
		CT_TRUE(ct, mr->pd == to && mr->addr == e.buf && mr->length == 4096);
		CT_TRUE(ct, mr->rkey == key && mr->lkey == key);
		vt_connect(&e, other, &e.me);
		vt_connect(&e, e.qp, &name);
		wr.wr.rdma.rkey = mr->rkey;
		vt_post(&e, &wr);
		vt_status(&e, 1, i == 1 || i == 2 ? IBV_WC_REM_ACCESS_ERR : IBV_WC_SUCCESS);
		vt_to(&e, e.qp, IBV_QPS_RESET);
		vt_to(&e, other, IBV_QPS_RESET);
	}
	VT_OK(ct, ibv_destroy_qp(other));
	VT_OK(ct, ibv_dealloc_pd(pd));
	VT_OK(ct, ibv_dereg_mr(mr));
	vt_close(&e);
}

const struct ct_case vt_domains[] = { { "PD", "parent", { life } },
				      { "PD", "parent-datagrams", { datagrams } },
				      { "PD", "parent-windows", { windows } },
				      { "PD", "region-moves", { moved } },
				      { NULL } };
