/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Shared receive queues: dat_srq_create(3DAT), dat_srq_post_recv(3DAT) and the others. */
#include "front/dat/post.h"

#include <errno.h>

/* ---- the low watermark ----------------------------------------------------------------------- */

/* Once for each setting: out of a turn of progress, or in the call. */
static void srq_below(void *owner)
{
	struct hu_srq *srq = owner;

	hu_notify_async(srq->o.ia, DAT_ASYNC_ERROR_PROVIDER_INTERNAL_ERROR, srq, DAT_SRQ_LOW_WATERMARK_EVENT);
}

static void set_low(struct hu_srq *srq, uint32_t low)
{
	srq->attr.low_watermark = (DAT_COUNT)low;
	hd_rq_set_limit(srq->rq, &(struct hd_rq_limit){ low, srq_below, srq });
}

/* ---- life ------------------------------------------------------------------------------------ */

static bool attr_is_right(const DAT_SRQ_ATTR *a)
{
	return a->max_recv_dtos > 0 && a->max_recv_dtos <= HU_MAX_SRQ_DTOS && a->max_recv_iov >= 0 &&
	       a->max_recv_iov <= HU_MAX_IOV && a->low_watermark >= 0 && a->low_watermark <= a->max_recv_dtos;
}

static int open_queue(struct hu_srq *srq)
{
	struct hd_ep_attr attr = { .type = HD_EP_RDM, .policy = HD_EP_NAMELESS };
	int rc = hd_rq_open(srq->o.ia->node, false, &srq->rq);

	if (rc)
		return rc;
	attr.rq = srq->rq;
	rc = hd_ep_open(srq->o.ia->node, &attr, &srq->poster);
	if (rc)
		hd_rq_close(srq->rq);
	return rc;
}

/* With the lock. */
static DAT_RETURN srq_make(struct hu_ia *ia, struct hu_pz *pz, const DAT_SRQ_ATTR *attr, struct hu_srq **out)
{
	struct hu_srq *srq = hu_make(ia, DAT_HANDLE_TYPE_SRQ, sizeof(*srq));
	int rc;

	if (!srq)
		return hu_error(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
	rc = open_queue(srq);
	if (rc) {
		hu_unmake(&srq->o);
		return rc == -ENOMEM ? hu_errno(rc) : hu_error(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_SRQ);
	}
	srq->pz = pz;
	pz->o.users++;
	srq->attr = *attr;
	*out = srq;
	return DAT_SUCCESS;
}

DAT_RETURN hu_srq_create(DAT_IA_HANDLE ia_handle, DAT_PZ_HANDLE pz, DAT_SRQ_ATTR *attr, DAT_SRQ_HANDLE *out)
{
	struct hu_ia *ia = ia_handle;
	struct hu_srq *srq = NULL;
	DAT_RETURN rc;

	if (!hu_is(ia, DAT_HANDLE_TYPE_IA))
		return hu_error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
	if (!hu_is(pz, DAT_HANDLE_TYPE_PZ) || ((struct hu_pz *)pz)->o.ia != ia)
		return hu_error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_PZ);
	if (!attr || !attr_is_right(attr))
		return hu_error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	if (!out)
		return hu_error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG4);
	if (!hu_enter(ia))
		return HU_DEAD;
	rc = srq_make(ia, pz, attr, &srq);
	if (!rc) {
		*out = srq;
		/* an empty queue is below it at once */
		set_low(srq, (uint32_t)attr->low_watermark);
	}
	hu_leave(ia);
	return rc;
}

void hu_srq_drop(struct hu_srq *srq)
{
	hd_ep_close(srq->poster);
	hd_rq_close(srq->rq);
	srq->pz->o.users--;
	hu_free(&srq->o);
}

DAT_RETURN hu_srq_free(DAT_SRQ_HANDLE handle)
{
	DAT_RETURN rc;
	struct hu_srq *srq = hu_begin(handle, DAT_HANDLE_TYPE_SRQ, DAT_INVALID_HANDLE_SRQ, &rc);
	struct hu_ia *ia = srq ? srq->o.ia : NULL;

	if (!srq)
		return rc;
	if (srq->o.users)
		rc = hu_error(DAT_INVALID_STATE, DAT_INVALID_STATE_SRQ_IN_USE);
	else
		hu_srq_drop(srq);
	hu_leave(ia);
	return rc;
}

/* ---- what it is, and is to be ---------------------------------------------------------------- */

DAT_RETURN hu_srq_query(DAT_SRQ_HANDLE handle, DAT_SRQ_PARAM_MASK mask, DAT_SRQ_PARAM *param)
{
	DAT_COUNT available;
	DAT_RETURN rc;
	struct hu_srq *srq;

	if ((unsigned)mask & ~(unsigned)DAT_SRQ_FIELD_ALL)
		return hu_error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	if (!param)
		return hu_error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	srq = hu_begin(handle, DAT_HANDLE_TYPE_SRQ, DAT_INVALID_HANDLE_SRQ, &rc);
	if (!srq)
		return rc;
	available = (DAT_COUNT)hd_ep_posted(srq->poster);
	*param = (DAT_SRQ_PARAM){ .ia_handle = hu_ia_handle(srq->o.ia),
				  .srq_state = DAT_SRQ_STATE_OPERATIONAL,
				  .pz_handle = srq->pz,
				  .max_recv_dtos = srq->attr.max_recv_dtos,
				  .max_recv_iov = srq->attr.max_recv_iov,
				  .low_watermark = srq->attr.low_watermark,
				  .available_dto_count = available,
				  .outstanding_dto_count = available + hu_srq_owned(srq) };
	hu_leave(srq->o.ia);
	return DAT_SUCCESS;
}

DAT_RETURN hu_srq_resize(DAT_SRQ_HANDLE handle, DAT_COUNT max)
{
	DAT_RETURN rc;
	struct hu_srq *srq;

	if (max <= 0 || max > HU_MAX_SRQ_DTOS)
		return hu_error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	srq = hu_begin(handle, DAT_HANDLE_TYPE_SRQ, DAT_INVALID_HANDLE_SRQ, &rc);
	if (!srq)
		return rc;
	if (max < srq->attr.max_recv_dtos &&
	    ((size_t)max < hd_ep_posted(srq->poster) + (size_t)hu_srq_owned(srq) ||
	     max < srq->attr.low_watermark))
		rc = hu_error(DAT_INVALID_STATE, DAT_INVALID_STATE_SRQ_IN_USE);
	else
		srq->attr.max_recv_dtos = max;
	hu_leave(srq->o.ia);
	return rc;
}

DAT_RETURN hu_srq_set_lw(DAT_SRQ_HANDLE handle, DAT_COUNT low)
{
	DAT_RETURN rc;
	struct hu_srq *srq = hu_begin(handle, DAT_HANDLE_TYPE_SRQ, DAT_INVALID_HANDLE_SRQ, &rc);

	if (!srq)
		return rc;
	if (low < 0 || low > srq->attr.max_recv_dtos)
		rc = hu_error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	else
		set_low(srq, (uint32_t)low);
	hu_leave(srq->o.ia);
	return rc;
}

/* ---- posting --------------------------------------------------------------------------------- */

DAT_RETURN hu_srq_post_recv(DAT_SRQ_HANDLE handle, DAT_COUNT count, DAT_LMR_TRIPLET *iov,
			    DAT_DTO_COOKIE cookie)
{
	DAT_RETURN rc;
	struct hu_srq *srq = hu_begin(handle, DAT_HANDLE_TYPE_SRQ, DAT_INVALID_HANDLE_SRQ, &rc);
	struct hu_iov v;

	if (hu_unlikely(!srq))
		return rc;
	rc = hu_segments(srq->o.ia,
			 &(struct hu_local){ srq->pz, iov, count, srq->attr.max_recv_iov, true, 2 }, &v);
	if (!rc && hu_unlikely(hd_ep_posted(srq->poster) >= (size_t)srq->attr.max_recv_dtos))
		rc = hu_error(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_SRQ);
	if (!rc)
		rc = hu_receive(srq->poster, &v, cookie, false);
	hu_leave(srq->o.ia);
	return rc;
}
