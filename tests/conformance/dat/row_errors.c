/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* D6: errors at the call, with nothing posted. */
#include "dt.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct post { /* a way to name local segments */
	struct dt *d;
	enum {
		TO_SRQ,
		TO_EP,
		SEND,
		WRITE,
		READ
	} how;
	DAT_RMR_TRIPLET remote;
};

static DAT_RETURN do_post(struct post *p, DAT_COUNT n, DAT_LMR_TRIPLET *seg)
{
	switch (p->how) {
	case TO_SRQ:
		return dat_srq_post_recv(p->d->srq, n, seg, dt_cookie(1));
	case TO_EP:
		return dat_ep_post_recv(p->d->ep, n, seg, dt_cookie(1), DAT_COMPLETION_DEFAULT_FLAG);
	case SEND:
		return dat_ep_post_send(p->d->ep, n, seg, dt_cookie(1), DAT_COMPLETION_DEFAULT_FLAG);
	case WRITE:
		return dat_ep_post_rdma_write(p->d->ep, n, seg, dt_cookie(1), &p->remote,
					      DAT_COMPLETION_DEFAULT_FLAG);
	default:
		return dat_ep_post_rdma_read(p->d->ep, n, seg, dt_cookie(1), &p->remote,
					     DAT_COMPLETION_DEFAULT_FLAG);
	}
}

static bool writes_there(const struct post *p)
{
	return p->how == TO_SRQ || p->how == TO_EP || p->how == READ;
}

static DAT_LMR_CONTEXT region(struct dt *d, DAT_PZ_HANDLE pz, DAT_MEM_PRIV_FLAGS privileges,
			      DAT_LMR_HANDLE *lmr)
{
	DAT_REGION_DESCRIPTION r = { .for_va = d->buf };
	DAT_LMR_CONTEXT context;
	DAT_VADDR at;
	DAT_VLEN len;

	DT_OK(d->ct, dat_lmr_create(d->ia, DAT_MEM_TYPE_VIRTUAL, r, 4096, pz, privileges, DAT_VA_TYPE_VA, lmr,
				    &context, NULL, &len, &at));
	return context;
}

/* Vectors that are none, or outside of their region. */
static void wrong_vectors(struct ct *ct, struct post *p)
{
	DAT_LMR_TRIPLET seg[32];

	for (int i = 0; i < 32; i++)
		seg[i] = dt_seg(p->d, 0, 8);
	DT_TYPE(ct, do_post(p, -1, seg), DAT_INVALID_PARAMETER);
	DT_TYPE(ct, do_post(p, 32, seg), DAT_INVALID_PARAMETER);
	DT_TYPE(ct, do_post(p, 1, NULL), DAT_INVALID_PARAMETER);
	seg[1].virtual_address = (uintptr_t)p->d->buf + p->d->want.size - 4;
	DT_TYPE(ct, do_post(p, 2, seg), DAT_INVALID_PARAMETER);
	seg[1].virtual_address = (uintptr_t)p->d->buf - 1;
	DT_TYPE(ct, do_post(p, 2, seg), DAT_INVALID_PARAMETER);
	seg[1].virtual_address = UINT64_MAX - 3;
	DT_TYPE(ct, do_post(p, 2, seg), DAT_INVALID_PARAMETER);
}

/* Regions of another zone, without the privilege, freed, never made. */
static void wrong_regions(struct ct *ct, struct post *p)
{
	DAT_LMR_TRIPLET seg[2] = { dt_seg(p->d, 0, 8), dt_seg(p->d, 0, 8) };
	bool writes = writes_there(p);
	DAT_LMR_HANDLE lmr;
	DAT_PZ_HANDLE pz;

	DT_OK(ct, dat_pz_create(p->d->ia, &pz));
	seg[1].lmr_context = region(p->d, pz, DT_PRIVILEGES, &lmr);
	DT_ERR(ct, do_post(p, 2, seg), DAT_PROTECTION_VIOLATION,
	       writes ? DAT_PROTECTION_WRITE : DAT_PROTECTION_READ);
	DT_OK(ct, dat_lmr_free(lmr));
	DT_OK(ct, dat_pz_free(pz));
	DT_ERR(ct, do_post(p, 2, seg), DAT_PRIVILEGES_VIOLATION,
	       writes ? DAT_PRIVILEGES_WRITE : DAT_PRIVILEGES_READ);
	seg[1].lmr_context = p->d->local ^ 0x5a5a5a5a;
	DT_TYPE(ct, do_post(p, 2, seg), DAT_PRIVILEGES_VIOLATION);
	seg[1].lmr_context = region(p->d, p->d->pz, DAT_MEM_PRIV_LOCAL_READ_FLAG, &lmr);
	if (writes)
		DT_ERR(ct, do_post(p, 2, seg), DAT_PRIVILEGES_VIOLATION, DAT_PRIVILEGES_WRITE);
	DT_OK(ct, dat_lmr_free(lmr));
}

/* Afterwards everything is as before: two receives and two sends find one another. */
static void nothing_posted(struct ct *ct, struct dt_pair *p)
{
	DAT_BOOLEAN idle_recv, idle_request;

	DT_OK(ct, dat_ep_get_status(p->a.ep, NULL, &idle_recv, &idle_request));
	CT_EQ(ct, idle_request, DAT_TRUE);
	if (!p->b.srq) {
		DT_OK(ct, dat_ep_get_status(p->b.ep, NULL, &idle_recv, &idle_request));
		CT_EQ(ct, idle_recv, DAT_TRUE);
	}
	dt_quiet(&p->a, p->a.request, 10, "nothing was posted");
	dt_quiet(&p->b, p->b.recv, 10, "nothing was posted");
	if (p->b.srq)
		dt_srq_recv(&p->b, 0, 8, 50);
	else
		dt_recv(&p->b, p->b.ep, 0, 8, 50);
	dt_send(&p->a, p->a.ep, 0, 8, 51, DAT_COMPLETION_DEFAULT_FLAG);
	dt_dto(&p->b, p->b.recv, p->b.ep, 50, DAT_DTO_SUCCESS);
	dt_dto(&p->a, p->a.request, p->a.ep, 51, DAT_DTO_SUCCESS);
}

static void segments(struct ct *ct)
{
	const struct dt_want want = { .srq = ct->cs->arg == TO_SRQ };
	struct post post = { .how = (int)ct->cs->arg };
	struct dt_pair p;

	dt_pair_open(ct, &p, &want);
	post.d = post.how == TO_SRQ || post.how == TO_EP ? &p.b : &p.a;
	post.remote = (DAT_RMR_TRIPLET){ (uintptr_t)p.b.buf, 4096, p.b.remote };
	wrong_vectors(ct, &post);
	wrong_regions(ct, &post);
	nothing_posted(ct, &p);
	dt_pair_close(&p);
}

/*
 * dat_lmr_free(3): what uses the region afterwards fails and reports a protection violation;
 * its memory is not touched.
 */
static void freed(struct ct *ct)
{
	const struct dt_want want = { .srq = ct->cs->arg != 0 };
	DAT_LMR_TRIPLET seg;
	DAT_LMR_HANDLE lmr;
	struct dt_pair p;

	dt_pair_open(ct, &p, &want);
	seg = dt_seg(&p.b, 0, 64);
	seg.lmr_context = region(&p.b, p.b.pz, DT_PRIVILEGES, &lmr);
	if (want.srq)
		DT_OK(ct, dat_srq_post_recv(p.b.srq, 1, &seg, dt_cookie(1)));
	else
		DT_OK(ct, dat_ep_post_recv(p.b.ep, 1, &seg, dt_cookie(1), 0));
	DT_OK(ct, dat_lmr_free(lmr));
	p.a.buf[0] = 'a';
	p.b.buf[0] = 'b';
	dt_send(&p.a, p.a.ep, 0, 8, 2, 0);
	dt_dto(&p.b, p.b.recv, p.b.ep, 1, DAT_DTO_ERR_LOCAL_PROTECTION);
	dt_dto(&p.a, p.a.request, p.a.ep, 2, DAT_DTO_ERR_REMOTE_RESPONDER);
	CT_EQ(ct, p.b.buf[0], 'b');
	dt_pair_ended(&p);
	dt_pair_close(&p);
}

/*
 * Memory that nobody may touch any more while a region has it: what is to be sent of it, or written
 * to it, fails here, and nothing comes of it there.
 */
static void gone(struct ct *ct)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE), len = 16 * page;
	bool reads = ct->cs->arg;
	DAT_REGION_DESCRIPTION place;
	DAT_RMR_TRIPLET from;
	DAT_LMR_TRIPLET seg;
	DAT_LMR_HANDLE lmr;
	struct dt_pair p;

	dt_pair_open(ct, &p, NULL);
	place.for_va = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CT_TRUE(ct, place.for_va != MAP_FAILED);
	DT_OK(ct, dat_lmr_create(p.a.ia, DAT_MEM_TYPE_VIRTUAL, place, len, p.a.pz, DT_PRIVILEGES,
				 DAT_VA_TYPE_VA, &lmr, &seg.lmr_context, NULL, NULL, NULL));
	seg.virtual_address = (uintptr_t)place.for_va;
	seg.segment_length = len;
	from = (DAT_RMR_TRIPLET){ (uintptr_t)p.b.buf, len, p.b.remote };
	dt_recv(&p.b, p.b.ep, 0, len, 1);
	/* unmapped, the place may be somebody's again */
	CT_TRUE(ct, !mprotect(place.for_va, len, PROT_NONE));
	if (reads)
		DT_OK(ct, dat_ep_post_rdma_read(p.a.ep, 1, &seg, dt_cookie(2), &from, 0));
	else
		DT_OK(ct, dat_ep_post_send(p.a.ep, 1, &seg, dt_cookie(2), 0));
	dt_dto(&p.a, p.a.request, p.a.ep, 2, DAT_DTO_ERR_LOCAL_PROTECTION);
	dt_dto(&p.b, p.b.recv, p.b.ep, 1, DAT_DTO_ERR_FLUSHED);
	dt_pair_ended(&p);
	DT_OK(ct, dat_lmr_free(lmr));
	munmap(place.for_va, len);
	dt_pair_close(&p);
}

/*
 * dat_ep_connect(3): addresses that are nobody's, or of no kind that there is; the
 * endpoint stays as it is.
 */
static void addresses(struct ct *ct)
{
	struct sockaddr_in any = { .sin_family = AF_INET }, group = any, all = any;
	struct sockaddr_in6 any6 = { .sin6_family = AF_INET6 }, group6 = any6;
	struct sockaddr_in other = { .sin_family = AF_UNIX };
	const struct {
		void *to;
		DAT_RETURN_SUBTYPE why;
	} wrong[] = {
		{ NULL, DAT_INVALID_ADDRESS_MALFORMED },      { &any, DAT_INVALID_ADDRESS_MALFORMED },
		{ &any6, DAT_INVALID_ADDRESS_MALFORMED },     { &group, DAT_INVALID_ADDRESS_UNSUPPORTED },
		{ &group6, DAT_INVALID_ADDRESS_UNSUPPORTED }, { &all, DAT_INVALID_ADDRESS_UNSUPPORTED },
		{ &other, DAT_INVALID_ADDRESS_UNSUPPORTED }
	};
	struct dt d;

	inet_pton(AF_INET, "224.0.0.1", &group.sin_addr);
	inet_pton(AF_INET, "255.255.255.255", &all.sin_addr);
	inet_pton(AF_INET6, "ff02::1", &group6.sin6_addr);
	dt_open(ct, &d, NULL);
	for (size_t i = 0; i < CT_COUNT(wrong); i++) {
		DT_ERR(ct,
		       dat_ep_connect(d.ep, wrong[i].to, 4000, DT_FOREVER, 0, NULL, DAT_QOS_BEST_EFFORT,
				      DAT_CONNECT_DEFAULT_FLAG),
		       DAT_INVALID_ADDRESS, wrong[i].why);
		CT_EQ(ct, dt_state(&d, d.ep), DAT_EP_STATE_UNCONNECTED);
	}
	DT_TYPE(ct,
		dat_ep_connect(d.ep, d.addr, 4000, DT_FOREVER, 0, NULL, DAT_QOS_BEST_EFFORT,
			       DAT_CONNECT_MULTIPATH_REQUIRED_FLAG),
		DAT_MODEL_NOT_SUPPORTED);
	dt_quiet(&d, d.connect, 5, "calls that were refused");
	dt_close(&d);
}

/* More than there is room for, and longer than the other side. */
static void too_many(struct ct *ct)
{
	const struct dt_want want = { .dtos = 8 };
	struct dt_pair p;
	DAT_EP_PARAM param;
	DAT_LMR_TRIPLET seg;
	DAT_RMR_TRIPLET remote;
	DAT_RETURN rc;
	int n;

	dt_pair_open(ct, &p, &want);
	seg = dt_seg(&p.b, 0, 8);
	DT_OK(ct, dat_ep_query(p.b.ep, DAT_EP_FIELD_ALL, &param));
	for (n = 0; n < param.ep_attr.max_recv_dtos; n++)
		dt_recv(&p.b, p.b.ep, 0, 8, (uint64_t)n);
	DT_TYPE(ct, dat_ep_post_recv(p.b.ep, 1, &seg, dt_cookie(9), 0), DAT_INSUFFICIENT_RESOURCES);
	seg = dt_seg(&p.a, 0, 64);
	remote = (DAT_RMR_TRIPLET){ (uintptr_t)p.b.buf, 63, p.b.remote };
	DT_TYPE(ct, dat_ep_post_rdma_write(p.a.ep, 1, &seg, dt_cookie(9), &remote, 0), DAT_LENGTH_ERROR);
	remote.segment_length = 65;
	DT_TYPE(ct, dat_ep_post_rdma_read(p.a.ep, 1, &seg, dt_cookie(9), &remote, 0), DAT_LENGTH_ERROR);
	DT_TYPE(ct, dat_ep_post_rdma_read(p.a.ep, 1, &seg, dt_cookie(9), NULL, 0), DAT_INVALID_PARAMETER);
	/* in the other direction nobody receives, so requests stay */
	for (n = 0; !(rc = dat_ep_post_send(p.b.ep, 0, NULL, dt_cookie(0), 0)); n++)
		CT_TRUE(ct, n < 1000);
	DT_TYPE(ct, rc, DAT_INSUFFICIENT_RESOURCES);
	CT_TRUE(ct, n >= 8);
	dt_pair_close(&p);
}

/* ---- handles --------------------------------------------------------------------------------- */

/*
 * What is no handle of the kind: another kind's of this adapter. (libdat2
 * itself looks for NULL only.)
 */
static void handles(struct ct *ct)
{
	union {
		DAT_EP_PARAM ep;
		DAT_EVD_PARAM evd;
		DAT_LMR_PARAM lmr;
		DAT_RMR_PARAM rmr;
		DAT_PZ_PARAM pz;
		DAT_PSP_PARAM psp;
		DAT_RSP_PARAM rsp;
		DAT_CR_PARAM cr;
		DAT_CNO_PARAM cno;
		DAT_SRQ_PARAM srq;
	} out;
	DAT_HANDLE_TYPE type;
	DAT_EVENT event;
	DAT_COUNT more;
	struct dt d;

	dt_open(ct, &d, NULL);
	DT_ERR(ct, dat_ep_query(d.pz, 0, &out.ep), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	DT_ERR(ct, dat_ep_free(d.pz), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	DT_ERR(ct, dat_ep_reset(d.pz), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	DT_ERR(ct, dat_ep_disconnect(d.pz, 0), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	DT_ERR(ct, dat_ep_post_send(d.pz, 0, NULL, dt_cookie(0), 0), DAT_INVALID_HANDLE,
	       DAT_INVALID_HANDLE_EP);
	DT_ERR(ct, dat_ep_post_recv(d.pz, 0, NULL, dt_cookie(0), 0), DAT_INVALID_HANDLE,
	       DAT_INVALID_HANDLE_EP);
	DT_ERR(ct, dat_srq_post_recv(d.pz, 0, NULL, dt_cookie(0)), DAT_INVALID_HANDLE,
	       DAT_INVALID_HANDLE_SRQ);
	DT_ERR(ct, dat_srq_free(d.ep), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_SRQ);
	DT_ERR(ct, dat_srq_resize(d.ep, 4), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_SRQ);
	DT_ERR(ct, dat_srq_set_lw(d.ep, 4), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_SRQ);
	DT_ERR(ct, dat_srq_query(d.ep, 0, &out.srq), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_SRQ);
	DT_ERR(ct, dat_lmr_query(d.ep, 0, &out.lmr), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_LMR);
	DT_ERR(ct, dat_lmr_free(d.ep), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_LMR);
	DT_ERR(ct, dat_rmr_query(d.ep, 0, &out.rmr), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_RMR);
	DT_ERR(ct, dat_rmr_free(d.ep), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_RMR);
	DT_ERR(ct, dat_pz_query(d.ep, 0, &out.pz), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_PZ);
	DT_ERR(ct, dat_pz_free(d.ep), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_PZ);
	DT_ERR(ct, dat_psp_query(d.ep, 0, &out.psp), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_PSP);
	DT_ERR(ct, dat_psp_free(d.ep), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_PSP);
	DT_ERR(ct, dat_rsp_query(d.ep, 0, &out.rsp), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_RSP);
	DT_ERR(ct, dat_rsp_free(d.ep), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_RSP);
	DT_ERR(ct, dat_cr_query(d.ep, 0, &out.cr), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CR);
	DT_ERR(ct, dat_cr_accept(d.ep, d.ep, 0, NULL), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CR);
	DT_ERR(ct, dat_cr_reject(d.ep, 0, NULL), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CR);
	DT_ERR(ct, dat_cno_query(d.ep, 0, &out.cno), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CNO);
	DT_ERR(ct, dat_cno_free(d.ep), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CNO);
	DT_TYPE(ct, dat_evd_query(d.ep, 0, &out.evd), DAT_INVALID_HANDLE);
	DT_TYPE(ct, dat_evd_free(d.ep), DAT_INVALID_HANDLE);
	DT_TYPE(ct, dat_evd_dequeue(d.ep, &event), DAT_INVALID_HANDLE);
	DT_TYPE(ct, dat_evd_wait(d.ep, 0, 1, &event, &more), DAT_INVALID_HANDLE);
	DT_TYPE(ct, dat_evd_resize(d.ep, 9), DAT_INVALID_HANDLE);
	DT_TYPE(ct, dat_ep_query(DAT_HANDLE_NULL, 0, &out.ep), DAT_INVALID_HANDLE);
	DT_OK(ct, dat_get_handle_type(d.lmr, &type));
	CT_EQ(ct, type, DAT_HANDLE_TYPE_LMR);
	DT_OK(ct, dat_get_handle_type(d.ia, &type));
	CT_EQ(ct, type, DAT_HANDLE_TYPE_IA);
	dt_close(&d);
}

/* Requests of endpoints in states that have none. */
static void states(struct ct *ct)
{
	struct dt d;
	DAT_RMR_TRIPLET remote = { 0, 8, 1 };
	DAT_LMR_TRIPLET seg;

	dt_open(ct, &d, NULL);
	seg = dt_seg(&d, 0, 8);
	DT_ERR(ct, dat_ep_post_send(d.ep, 1, &seg, dt_cookie(0), 0), DAT_INVALID_STATE,
	       DAT_INVALID_STATE_EP_UNCONNECTED);
	DT_ERR(ct, dat_ep_post_rdma_write(d.ep, 1, &seg, dt_cookie(0), &remote, 0), DAT_INVALID_STATE,
	       DAT_INVALID_STATE_EP_UNCONNECTED);
	DT_ERR(ct, dat_ep_disconnect(d.ep, DAT_CLOSE_ABRUPT_FLAG), DAT_INVALID_STATE,
	       DAT_INVALID_STATE_EP_UNCONNECTED);
	DT_TYPE(ct, dat_ep_disconnect(d.ep, (DAT_CLOSE_FLAGS)7), DAT_INVALID_PARAMETER);
	DT_OK(ct, dat_ep_reset(d.ep)); /* does nothing */
	dt_close(&d);
}

const struct ct_case dt_errors[] = {
	{ "D6", "segments of a shared queue", { segments }, .arg = TO_SRQ },
	{ "D6", "segments of receives", { segments }, .arg = TO_EP },
	{ "D6", "segments of sends", { segments }, .arg = SEND },
	{ "D6", "segments of writes", { segments }, .arg = WRITE },
	{ "D6", "segments of reads", { segments }, .arg = READ },
	{ "D6", "too many and too long", { too_many } },
	{ "D6", "region freed", { freed } },
	{ "D6", "region of an SRQ freed", { freed }, .arg = 1 },
	{ "D6", "memory to be sent is gone", { gone } },
	{ "D6", "memory to be read into is gone", { gone }, .arg = 1 },
	{ "D6", "addresses", { addresses } },
	{ "D6", "handles", { handles } },
	{ "D6", "states", { states } },
	{ NULL },
};
