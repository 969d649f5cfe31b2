/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * D6, D8: DAT_INVALID_PARAMETER and its like: masks, lengths, flags, limits, and places to
 * answer into that are none.
 */
#include "dt.h"

#include <limits.h>
#include <string.h>
#include <sys/mman.h>

#define BAD(call) DT_TYPE(ct, call, DAT_INVALID_PARAMETER)

/* Masks with bits that are none, and nowhere to answer to. */
static void queries(struct ct *ct)
{
	DAT_PROVIDER_ATTR provider;
	DAT_EVD_PARAM evd;
	DAT_SRQ_PARAM srq;
	DAT_LMR_PARAM lmr;
	DAT_IA_ATTR ia;
	DAT_EP_PARAM ep;
	DAT_PZ_PARAM pz;
	struct dt d;

	dt_open(ct, &d, &(struct dt_want){ .srq = true });
	BAD(dat_ep_query(d.ep, DAT_EP_FIELD_ALL, NULL));
	BAD(dat_ep_query(d.ep, DAT_EP_FIELD_ALL + 1, &ep));
	BAD(dat_evd_query(d.recv, DAT_EVD_FIELD_ALL, NULL));
	BAD(dat_evd_query(d.recv, (DAT_EVD_PARAM_MASK)0x100, &evd));
	BAD(dat_srq_query(d.srq, DAT_SRQ_FIELD_ALL, NULL));
	BAD(dat_srq_query(d.srq, (DAT_SRQ_PARAM_MASK)0x100, &srq));
	BAD(dat_lmr_query(d.lmr, DAT_LMR_FIELD_ALL, NULL));
	BAD(dat_lmr_query(d.lmr, (DAT_LMR_PARAM_MASK)0x800, &lmr));
	BAD(dat_pz_query(d.pz, DAT_PZ_FIELD_ALL, NULL));
	BAD(dat_pz_query(d.pz, (DAT_PZ_PARAM_MASK)2, &pz));
	BAD(dat_ia_query(d.ia, NULL, DAT_IA_FIELD_ALL, NULL, 0, NULL));
	BAD(dat_ia_query(d.ia, NULL, 0, NULL, DAT_PROVIDER_FIELD_ALL, NULL));
	BAD(dat_ia_query(d.ia, NULL, DAT_IA_FIELD_ALL + 1, &ia, 0, NULL));
	BAD(dat_ia_query(d.ia, NULL, 0, NULL, DAT_PROVIDER_FIELD_ALL + 1, &provider));
	dt_close(&d);
}

static void points(struct ct *ct)
{
	DAT_CONN_QUAL q = dt_qualifier();
	DAT_PSP_PARAM psp_param;
	DAT_RSP_PARAM rsp_param;
	DAT_CR_PARAM cr_param;
	DAT_PSP_HANDLE psp;
	DAT_RSP_HANDLE rsp;
	DAT_EP_HANDLE ep;
	DAT_CR_HANDLE cr;
	struct dt d;

	dt_open(ct, &d, NULL);
	BAD(dat_psp_create(d.ia, q, d.cr, DAT_PSP_CONSUMER_FLAG, NULL));
	BAD(dat_psp_create(d.ia, q, d.cr, (DAT_PSP_FLAGS)2, &psp));
	BAD(dat_psp_create_any(d.ia, NULL, d.cr, DAT_PSP_CONSUMER_FLAG, &psp));
	BAD(dat_rsp_create(d.ia, q, d.ep, d.cr, NULL));
	CT_EQ(ct, dt_state(&d, d.ep), DAT_EP_STATE_UNCONNECTED);
	DT_OK(ct, dat_psp_create(d.ia, q, d.cr, DAT_PSP_CONSUMER_FLAG, &psp));
	BAD(dat_psp_query(psp, DAT_PSP_FIELD_ALL, NULL));
	BAD(dat_psp_query(psp, (DAT_PSP_PARAM_MASK)0x10, &psp_param));
	/* the qualifier is taken, for either kind of point */
	DT_TYPE(ct, dat_rsp_create(d.ia, q, d.ep, d.cr, &rsp), DAT_CONN_QUAL_IN_USE);
	CT_EQ(ct, dt_state(&d, d.ep), DAT_EP_STATE_UNCONNECTED);
	ep = dt_ep(&d);
	dt_call(&d, ep, &d, q);
	cr = dt_request(&d);
	BAD(dat_cr_query(cr, DAT_CR_FIELD_ALL, NULL));
	BAD(dat_cr_query(cr, (DAT_CR_PARAM_MASK)0x20, &cr_param));
	BAD(dat_cr_accept(cr, d.ep, -1, NULL));
	BAD(dat_cr_accept(cr, d.ep, 8, NULL));
	BAD(dat_cr_reject(cr, -1, NULL));
	BAD(dat_cr_reject(cr, 8, NULL));
	BAD(dat_cr_reject(cr, INT_MAX, &cr));
	/* a public point has no endpoint of its own */
	DT_TYPE(ct, dat_cr_accept(cr, DAT_HANDLE_NULL, 0, NULL), DAT_INVALID_HANDLE);
	CT_EQ(ct, dt_state(&d, d.ep), DAT_EP_STATE_UNCONNECTED);
	DT_OK(ct, dat_cr_reject(cr, 0, NULL));
	dt_conn(&d, ep, DAT_CONNECTION_EVENT_PEER_REJECTED);
	DT_OK(ct, dat_ep_free(ep));
	DT_OK(ct, dat_psp_free(psp));
	DT_OK(ct, dat_rsp_create(d.ia, q, d.ep, d.cr, &rsp));
	BAD(dat_rsp_query(rsp, DAT_RSP_FIELD_ALL, NULL));
	BAD(dat_rsp_query(rsp, (DAT_RSP_PARAM_MASK)0x10, &rsp_param));
	DT_OK(ct, dat_rsp_query(rsp, DAT_RSP_FIELD_ALL, &rsp_param));
	CT_TRUE(ct, rsp_param.ep_handle == d.ep && rsp_param.evd_handle == d.cr && rsp_param.conn_qual == q);
	DT_OK(ct, dat_rsp_free(rsp));
	dt_close(&d);
}

static void dispatchers(struct ct *ct)
{
	DAT_CNO_PARAM cno_param;
	DAT_CNO_HANDLE cno;
	DAT_EVD_HANDLE evd, async = NULL;
	DAT_IA_HANDLE ia;
	DAT_IA_ATTR attr;
	DAT_EVENT event = { .event_number = DAT_SOFTWARE_EVENT };
	DAT_COUNT more;
	struct dt d;

	dt_open(ct, &d, NULL);
	DT_OK(ct, dat_ia_query(d.ia, NULL, DAT_IA_FIELD_ALL, &attr, 0, NULL));
	BAD(dat_evd_create(d.ia, 0, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG, &evd));
	BAD(dat_evd_create(d.ia, -1, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG, &evd));
	BAD(dat_evd_create(d.ia, 8, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG, NULL));
	BAD(dat_evd_create(d.ia, 8, DAT_HANDLE_NULL, (DAT_EVD_FLAGS)0, &evd));
	BAD(dat_evd_create(d.ia, 8, DAT_HANDLE_NULL, (DAT_EVD_FLAGS)0x4000, &evd));
	CT_TRUE(ct, dat_evd_create(d.ia, INT_MAX, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG, &evd) != DAT_SUCCESS);
	evd = dt_evd(&d, 8, DAT_HANDLE_NULL, DAT_EVD_SOFTWARE_FLAG);
	BAD(dat_evd_resize(evd, -1));
	if (attr.max_evd_qlen < INT_MAX)
		CT_TRUE(ct, dat_evd_resize(evd, attr.max_evd_qlen + 1) != DAT_SUCCESS);
	DT_OK(ct, dat_evd_post_se(evd, &event));
	BAD(dat_evd_post_se(evd, NULL));
	BAD(dat_evd_dequeue(evd, NULL));
	BAD(dat_evd_wait(evd, 0, 1, NULL, &more));
	BAD(dat_evd_wait(evd, 0, 1, &event, NULL));
	BAD(dat_evd_wait(evd, 0, -1, &event, &more));
	DT_OK(ct, dat_evd_wait(evd, 0, 1, &event, &more)); /* it was not lost */
	BAD(dat_cno_create(d.ia, DAT_OS_WAIT_PROXY_AGENT_NULL, NULL));
	DT_OK(ct, dat_cno_create(d.ia, DAT_OS_WAIT_PROXY_AGENT_NULL, &cno));
	BAD(dat_cno_query(cno, DAT_CNO_FIELD_ALL, NULL));
	DT_OK(ct, dat_cno_query(cno, DAT_CNO_FIELD_ALL, &cno_param));
	CT_EQ(ct, cno_param.proxy_type, DAT_PROXY_TYPE_NONE);
	BAD(dat_cno_wait(cno, 0, NULL));
	DT_OK(ct, dat_cno_free(cno));
	DT_OK(ct, dat_evd_free(evd));
	CT_TRUE(ct, dat_ia_open((DAT_NAME_PTR)ct->conf->provider, 8, &async, NULL) !=
			    DAT_SUCCESS); /* by libdat2 */
	BAD(dat_ia_open((DAT_NAME_PTR)ct->conf->provider, 8, NULL, &ia));
	BAD(dat_ia_open((DAT_NAME_PTR)ct->conf->provider, -1, &async, &ia));
	dt_close(&d);
}

/* ---- endpoints ------------------------------------------------------------------------------- */

static DAT_RETURN create(struct dt *d, const DAT_EP_ATTR *attr)
{
	DAT_EP_HANDLE ep = NULL;
	DAT_RETURN rc;

	if (d->srq)
		rc = dat_ep_create_with_srq(d->ia, d->pz, d->recv, d->request, d->connect, d->srq, attr, &ep);
	else
		rc = dat_ep_create(d->ia, d->pz, d->recv, d->request, d->connect, attr, &ep);
	if (rc == DAT_SUCCESS)
		DT_OK(d->ct, dat_ep_free(ep));
	return rc;
}

/* Each attribute beyond what the adapter has, below nothing, or of no known value. */
static void attributes(struct ct *ct)
{
	DAT_EP_ATTR good, a;
	DAT_IA_ATTR ia;
	struct dt d;

	dt_open(ct, &d, &(struct dt_want){ .srq = ct->cs->arg });
	DT_OK(ct, dat_ia_query(d.ia, NULL, DAT_IA_FIELD_ALL, &ia, 0, NULL));
	good = dt_attr(&d);
	DT_OK(ct, create(&d, &good));
#define WRONG(field, value) \
	do { \
		a = good; \
		a.field = value; \
		if (create(&d, &a) == DAT_SUCCESS) \
			ct_fail(ct, "line %d: %s of %s", __LINE__, #field, #value); \
	} while (0)
	WRONG(service_type, (DAT_SERVICE_TYPE)77);
	WRONG(max_message_size, ia.max_message_size + 1);
	WRONG(max_rdma_size, ia.max_rdma_size + 1);
	WRONG(recv_completion_flags, DAT_COMPLETION_SUPPRESS_FLAG);
	WRONG(recv_completion_flags, DAT_COMPLETION_BARRIER_FENCE_FLAG);
	WRONG(recv_completion_flags, (DAT_COMPLETION_FLAGS)0x1000);
	WRONG(request_completion_flags, (DAT_COMPLETION_FLAGS)0x1000);
	WRONG(max_request_dtos, ia.max_dto_per_ep + 1);
	WRONG(max_request_dtos, -1);
	WRONG(max_request_iov, ia.max_iov_segments_per_dto + 1);
	WRONG(max_request_iov, -1);
	WRONG(max_rdma_read_in, ia.max_rdma_read_per_ep_in + 1);
	WRONG(max_rdma_read_out, ia.max_rdma_read_per_ep_out + 1);
	WRONG(max_rdma_read_in, -1);
	WRONG(max_rdma_read_out, -1);
	WRONG(max_rdma_read_iov, ia.max_iov_segments_per_rdma_read + 1);
	WRONG(max_rdma_write_iov, ia.max_iov_segments_per_rdma_write + 1);
	if (!d.srq) { /* they are the queue's, there */
		WRONG(max_recv_dtos, ia.max_dto_per_ep + 1);
		WRONG(max_recv_dtos, -1);
		WRONG(max_recv_iov, ia.max_iov_segments_per_dto + 1);
		WRONG(max_recv_iov, -1);
	}
#undef WRONG
	BAD(dat_ep_create(d.ia, d.pz, d.recv, d.request, d.connect, &good, NULL));
	dt_close(&d);
}

/* What cannot be modified, and values that cannot be had; the endpoint keeps what it had. */
static void modify(struct ct *ct)
{
	static const DAT_EP_PARAM_MASK never[] = {
		DAT_EP_FIELD_IA_HANDLE,
		DAT_EP_FIELD_EP_STATE,
		DAT_EP_FIELD_LOCAL_IA_ADDRESS_PTR,
		DAT_EP_FIELD_LOCAL_PORT_QUAL,
		DAT_EP_FIELD_REMOTE_IA_ADDRESS_PTR,
		DAT_EP_FIELD_REMOTE_PORT_QUAL,
		DAT_EP_FIELD_ALL + 1,
		DAT_EP_FIELD_SRQ_HANDLE,
	};
	DAT_EP_PARAM is, want;
	struct dt d;

	dt_open(ct, &d, NULL);
	DT_OK(ct, dat_ep_query(d.ep, DAT_EP_FIELD_ALL, &is));
	want = is;
	for (size_t i = 0; i < CT_COUNT(never); i++)
		BAD(dat_ep_modify(d.ep, never[i], &want));
	BAD(dat_ep_modify(d.ep, DAT_EP_FIELD_EP_ATTR_MAX_MESSAGE_SIZE, NULL));
	want.ep_attr.max_recv_dtos = INT_MAX;
	want.ep_attr.max_request_iov = 3;
	CT_TRUE(ct,
		dat_ep_modify(d.ep, DAT_EP_FIELD_EP_ATTR_MAX_RECV_DTOS | DAT_EP_FIELD_EP_ATTR_MAX_REQUEST_IOV,
			      &want) != DAT_SUCCESS);
	want.recv_evd_handle = d.connect; /* no completions go there */
	DT_ERR(ct, dat_ep_modify(d.ep, DAT_EP_FIELD_RECV_EVD_HANDLE, &want), DAT_INVALID_HANDLE,
	       DAT_INVALID_HANDLE_EVD_RECV);
	want.request_evd_handle = d.connect;
	DT_ERR(ct, dat_ep_modify(d.ep, DAT_EP_FIELD_REQUEST_EVD_HANDLE, &want), DAT_INVALID_HANDLE,
	       DAT_INVALID_HANDLE_EVD_REQUEST);
	want.connect_evd_handle = d.recv;
	DT_ERR(ct, dat_ep_modify(d.ep, DAT_EP_FIELD_CONNECT_EVD_HANDLE, &want), DAT_INVALID_HANDLE,
	       DAT_INVALID_HANDLE_EVD_CONN);
	DT_OK(ct, dat_ep_query(d.ep, DAT_EP_FIELD_ALL, &want));
	CT_EQ(ct, memcmp(&is.ep_attr, &want.ep_attr, sizeof(is.ep_attr)), 0);
	CT_TRUE(ct, is.recv_evd_handle == want.recv_evd_handle &&
			    is.connect_evd_handle == want.connect_evd_handle);
	dt_close(&d);
}

/* ---- memory ---------------------------------------------------------------------------------- */

static DAT_RETURN lmr(struct dt *d, DAT_MEM_TYPE type, DAT_REGION_DESCRIPTION r, DAT_VLEN len, DAT_VA_TYPE va)
{
	DAT_LMR_CONTEXT local;
	DAT_LMR_HANDLE made;
	DAT_RETURN rc = dat_lmr_create(d->ia, type, r, len, d->pz, DT_PRIVILEGES, va, &made, &local, NULL,
				       NULL, NULL);

	if (rc == DAT_SUCCESS)
		DT_OK(d->ct, dat_lmr_free(made));
	return rc;
}

static void memory(struct ct *ct)
{
	DAT_REGION_DESCRIPTION r = { .for_va = NULL };
	DAT_LMR_HANDLE made;
	DAT_LMR_CONTEXT local;
	DAT_LMR_TRIPLET seg;
	DAT_PZ_HANDLE pz;
	struct dt d;

	dt_open(ct, &d, NULL);
	r.for_va = d.buf;
	BAD(lmr(&d, (DAT_MEM_TYPE)9, r, 8, DAT_VA_TYPE_VA));
	BAD(lmr(&d, DAT_MEM_TYPE_VIRTUAL, r, 8, (DAT_VA_TYPE)9));
	/* round the end of memory */
	BAD(lmr(&d, DAT_MEM_TYPE_VIRTUAL, r, UINT64_MAX, DAT_VA_TYPE_VA));
	BAD(dat_lmr_create(d.ia, DAT_MEM_TYPE_VIRTUAL, r, 8, d.pz, DT_PRIVILEGES, DAT_VA_TYPE_VA, NULL,
			   &local, NULL, NULL, NULL));
	r.for_lmr_handle = d.pz;
	DT_TYPE(ct, lmr(&d, DAT_MEM_TYPE_LMR, r, 8, DAT_VA_TYPE_VA), DAT_INVALID_HANDLE);
	/* neither privileges nor a zone that a region may lack */
	r.for_va = d.buf;
	DT_OK(ct, dat_lmr_create(d.ia, DAT_MEM_TYPE_VIRTUAL, r, 8, d.pz, DAT_MEM_PRIV_NONE_FLAG,
				 DAT_VA_TYPE_VA, &made, &local, NULL, NULL, NULL));
	DT_OK(ct, dat_lmr_free(made));
	BAD(dat_pz_create(d.ia, NULL));
	BAD(dat_rmr_create(d.pz, NULL));
	DT_OK(ct, dat_pz_create(d.ia, &pz));
	DT_OK(ct, dat_pz_free(pz));
	/* memory is in step always; but these are regions of this adapter, or none */
	seg = dt_seg(&d, 0, 64);
	DT_OK(ct, dat_lmr_sync_rdma_read(d.ia, &seg, 1));
	DT_OK(ct, dat_lmr_sync_rdma_write(d.ia, &seg, 1));
	BAD(dat_lmr_sync_rdma_read(d.ia, NULL, 1));
	BAD(dat_lmr_sync_rdma_write(d.ia, NULL, 1));
	dt_close(&d);
}

/* ---- windows --------------------------------------------------------------------------------- */

static DAT_RETURN bind_it(struct dt *d, DAT_RMR_HANDLE rmr, DAT_LMR_HANDLE lmr, const DAT_LMR_TRIPLET *seg,
			  DAT_MEM_PRIV_FLAGS priv, DAT_COMPLETION_FLAGS flags)
{
	DAT_RMR_CONTEXT context;

	return dat_rmr_bind(rmr, lmr, seg, priv, DAT_VA_TYPE_VA, d->ep, dt_cookie(1), flags, &context);
}

/*
 * Of another zone than the endpoint's; of a region of another; without the region's privilege;
 * flags that are not for it.
 */
static void binding(struct ct *ct)
{
	DAT_RMR_HANDLE rmr, strange;
	DAT_REGION_DESCRIPTION r;
	DAT_LMR_HANDLE lmr, poor;
	DAT_LMR_TRIPLET seg, other;
	DAT_LMR_CONTEXT context;
	DAT_PZ_HANDLE pz;
	struct dt_pair p;
	struct dt *d = &p.a;

	dt_pair_open(ct, &p, NULL);
	DT_OK(ct, dat_pz_create(d->ia, &pz));
	DT_OK(ct, dat_rmr_create(d->pz, &rmr));
	DT_OK(ct, dat_rmr_create(pz, &strange));
	r.for_va = d->buf;
	other = seg = dt_seg(d, 0, 64);
	DT_OK(ct, dat_lmr_create(d->ia, 0, r, 4096, pz, DT_PRIVILEGES, 0, &lmr, &other.lmr_context, NULL,
				 NULL, NULL));
	DT_OK(ct, dat_lmr_create(d->ia, 0, r, 4096, d->pz, DAT_MEM_PRIV_LOCAL_READ_FLAG, 0, &poor, &context,
				 NULL, NULL, NULL));
	DT_TYPE(ct, bind_it(d, strange, d->lmr, &seg, DAT_MEM_PRIV_ALL_FLAG, 0), DAT_PROTECTION_VIOLATION);
	DT_TYPE(ct, bind_it(d, rmr, lmr, &other, DAT_MEM_PRIV_ALL_FLAG, 0), DAT_PROTECTION_VIOLATION);
	seg.lmr_context = context;
	DT_TYPE(ct, bind_it(d, rmr, poor, &seg, DAT_MEM_PRIV_REMOTE_WRITE_FLAG, 0), DAT_PRIVILEGES_VIOLATION);
	seg = dt_seg(d, 0, 64);
	BAD(bind_it(d, rmr, d->lmr, NULL, DAT_MEM_PRIV_ALL_FLAG, 0));
	BAD(bind_it(d, rmr, d->lmr, &seg, (DAT_MEM_PRIV_FLAGS)0x4000, 0));
	BAD(bind_it(d, rmr, d->lmr, &seg, DAT_MEM_PRIV_ALL_FLAG, DAT_COMPLETION_UNSIGNALLED_FLAG));
	BAD(bind_it(d, rmr, d->lmr, &seg, DAT_MEM_PRIV_ALL_FLAG, (DAT_COMPLETION_FLAGS)0x100));
	dt_quiet(d, d->request, 10, "nothing was posted");
	/* none of a bound one's region, nor of its zone, is freed under it */
	DT_OK(ct, bind_it(d, rmr, d->lmr, &seg, DAT_MEM_PRIV_ALL_FLAG, DAT_COMPLETION_SUPPRESS_FLAG));
	DT_ERR(ct, dat_lmr_free(d->lmr), DAT_INVALID_STATE, DAT_INVALID_STATE_LMR_IN_USE);
	DT_OK(ct, dat_lmr_free(lmr));
	DT_OK(ct, dat_lmr_free(poor));
	DT_ERR(ct, dat_pz_free(pz), DAT_INVALID_STATE, DAT_INVALID_STATE_PZ_IN_USE);
	DT_OK(ct, dat_rmr_free(strange));
	DT_OK(ct, dat_pz_free(pz));
	/* bound to nothing, it has no context that anybody needs */
	DT_ERR(ct,
	       dat_rmr_bind(rmr, d->lmr, &seg, DAT_MEM_PRIV_ALL_FLAG, DAT_VA_TYPE_VA, d->ep, dt_cookie(0),
			    DAT_COMPLETION_SUPPRESS_FLAG, NULL),
	       DAT_INVALID_PARAMETER, DAT_INVALID_ARG9);
	seg.segment_length = 0;
	DT_OK(ct, dat_rmr_bind(rmr, DAT_HANDLE_NULL, &seg, DAT_MEM_PRIV_ALL_FLAG, DAT_VA_TYPE_VA, d->ep,
			       dt_cookie(0), DAT_COMPLETION_SUPPRESS_FLAG, NULL));
	seg.segment_length = 64;
	DT_OK(ct, bind_it(d, rmr, d->lmr, &seg, DAT_MEM_PRIV_ALL_FLAG, DAT_COMPLETION_SUPPRESS_FLAG));
	DT_OK(ct, dat_rmr_free(rmr)); /* bound ones too */
	dt_pair_close(&p);
}

/* ---- requests -------------------------------------------------------------------------------- */

/*
 * More segments than the endpoint was made for; longer than its messages may be; flags
 * that are not of its kind.
 */
static void requests(struct ct *ct)
{
	DAT_LMR_TRIPLET seg[8];
	DAT_RMR_TRIPLET there;
	DAT_EP_PARAM param;
	DAT_EP_ATTR attr;
	struct dt_pair p;
	DAT_COUNT n;

	dt_pair_make(ct, &p);
	DT_OK(ct, dat_ep_free(p.a.ep));
	attr = dt_attr(&p.a);
	attr.max_message_size = attr.max_rdma_size = 4096;
	attr.max_rdma_read_iov = 1; /* it may be given more of all of these */
	DT_OK(ct, dat_ep_create(p.a.ia, p.a.pz, p.a.recv, p.a.request, p.a.connect, &attr, &p.a.ep));
	dt_join(&p.a, p.a.ep, &p.b, p.b.ep);
	DT_OK(ct, dat_ep_query(p.a.ep, DAT_EP_FIELD_ALL, &param));
	CT_TRUE(ct, param.ep_attr.max_message_size >= 4096 && param.ep_attr.max_rdma_read_iov >= 1);
	for (n = 0; n < 8; n++)
		seg[n] = dt_seg(&p.a, (size_t)n * 4096, 1024);
	there = (DAT_RMR_TRIPLET){ (uintptr_t)p.b.buf, 8192, p.b.remote };
	BAD(dat_ep_post_send(p.a.ep, 5, seg, dt_cookie(1), 0));
	BAD(dat_ep_post_recv(p.a.ep, 5, seg, dt_cookie(1), 0));
	BAD(dat_ep_post_rdma_read(p.a.ep, param.ep_attr.max_rdma_read_iov + 1, seg, dt_cookie(1), &there, 0));
	BAD(dat_ep_post_rdma_write(p.a.ep, 5, seg, dt_cookie(1), &there, 0));
	BAD(dat_ep_post_rdma_write(p.a.ep, 1, seg, dt_cookie(1), NULL, 0));
	seg[0].segment_length = 4096;
	BAD(dat_ep_post_rdma_read(p.a.ep, 1, seg, dt_cookie(1), &there, DAT_COMPLETION_UNSIGNALLED_FLAG));
	BAD(dat_ep_post_rdma_write(p.a.ep, 1, seg, dt_cookie(1), &there, DAT_COMPLETION_UNSIGNALLED_FLAG));
	BAD(dat_ep_post_rdma_write(p.a.ep, 1, seg, dt_cookie(1), &there, (DAT_COMPLETION_FLAGS)0x80));
	BAD(dat_ep_post_recv(p.a.ep, 1, seg, dt_cookie(1), DAT_COMPLETION_SOLICITED_WAIT_FLAG));
	BAD(dat_ep_post_recv(p.a.ep, 1, seg, dt_cookie(1), DAT_COMPLETION_BARRIER_FENCE_FLAG));
	dt_quiet(&p.a, p.a.request, 10, "nothing was posted");
	dt_recv(&p.b, p.b.ep, 0, 4096, 2);
	DT_OK(ct, dat_ep_post_send(p.a.ep, 1, seg, dt_cookie(1), 0));
	CT_EQ(ct, dt_dto(&p.b, p.b.recv, p.b.ep, 2, DAT_DTO_SUCCESS), 4096);
	dt_dto(&p.a, p.a.request, p.a.ep, 1, DAT_DTO_SUCCESS);
	dt_pair_close(&p);
}

/* Longer than any message may be, of memory that is not there yet. */
static void too_long(struct ct *ct)
{
	const DAT_SEG_LENGTH len = 1u << 30;
	DAT_REGION_DESCRIPTION r;
	DAT_LMR_TRIPLET seg[4];
	DAT_RMR_TRIPLET there;
	DAT_LMR_CONTEXT local;
	DAT_LMR_HANDLE lmr;
	struct dt_pair p;
	void *much =
		mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	CT_TRUE(ct, much != MAP_FAILED);
	dt_pair_open(ct, &p, NULL);
	r.for_va = much;
	DT_OK(ct,
	      dat_lmr_create(p.a.ia, 0, r, len, p.a.pz, DT_PRIVILEGES, 0, &lmr, &local, NULL, NULL, NULL));
	for (int i = 0; i < 4; i++)
		seg[i] = (DAT_LMR_TRIPLET){ (uintptr_t)much, len, local };
	there = (DAT_RMR_TRIPLET){ (uintptr_t)p.b.buf, UINT32_MAX, p.b.remote };
	DT_TYPE(ct, dat_ep_post_send(p.a.ep, 2, seg, dt_cookie(1), 0), DAT_LENGTH_ERROR);
	DT_TYPE(ct, dat_ep_post_send(p.a.ep, 4, seg, dt_cookie(1), 0), DAT_LENGTH_ERROR);
	DT_TYPE(ct, dat_ep_post_rdma_write(p.a.ep, 3, seg, dt_cookie(1), &there, 0), DAT_LENGTH_ERROR);
	DT_TYPE(ct, dat_ep_post_rdma_read(p.a.ep, 4, seg, dt_cookie(1), &there, 0), DAT_LENGTH_ERROR);
	dt_quiet(&p.a, p.a.request, 10, "nothing was posted");
	DT_OK(ct, dat_lmr_free(lmr));
	dt_pair_close(&p);
	munmap(much, len);
}

/* Nothing has to be aligned. */
static void unaligned(struct ct *ct)
{
	DAT_RMR_TRIPLET there;
	struct dt_pair p;

	dt_pair_open(ct, &p, NULL);
	for (size_t at = 1; at < 8; at += 2) {
		ct_fill(p.a.buf + at, 3001, at);
		dt_recv(&p.b, p.b.ep, 10000 + 2 * at + 1, 3001, at);
		dt_send(&p.a, p.a.ep, at, 3001, at, DAT_COMPLETION_SUPPRESS_FLAG);
		dt_dto(&p.b, p.b.recv, p.b.ep, at, DAT_DTO_SUCCESS);
		ct_verify(ct, p.b.buf + 10000 + 2 * at + 1, 3001, at, "at an odd place");
		there = (DAT_RMR_TRIPLET){ (uintptr_t)p.b.buf + 20003 + at, 3001, p.b.remote };
		dt_write(&p.a, at, &there, at);
		dt_dto(&p.a, p.a.request, p.a.ep, at, DAT_DTO_SUCCESS);
		ct_verify(ct, p.b.buf + 20003 + at, 3001, at, "written to an odd place");
	}
	dt_pair_close(&p);
}

const struct ct_case dt_param[] = {
	{ "D6", "parameters of queries", { queries } },
	{ "D6", "parameters of service points", { points } },
	{ "D6", "parameters of dispatchers", { dispatchers } },
	{ "D6", "parameters of endpoints", { attributes } },
	{ "D6", "parameters of endpoints with a shared queue", { attributes }, .arg = 1 },
	{ "D6", "parameters of modify", { modify } },
	{ "D6", "parameters of memory", { memory } },
	{ "D6", "parameters of windows", { binding } },
	{ "D6", "parameters of requests", { requests } },
	{ "D6", "parameters too long", { too_long } },
	{ "D7", "unaligned", { unaligned } },
	{ NULL },
};
