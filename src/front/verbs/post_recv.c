/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* ibv_post_recv(3), ibv_post_srq_recv(3). */
#include "front/verbs/ops.h"
#include "front/verbs/qp.h"
#include "front/verbs/qp_state.h"
#include "front/verbs/status.h"

#include <errno.h>

const char hv_bad_key[1];

/* Where receives go. */
struct queue {
	struct hv_context *ctx;
	struct hd_ep *ep;
	const struct hv_pd *pd;
	const uint32_t *max_wr, *max_sge;
};

/*
 * Something is wrong with the memory. What is before that can be received into; a message that goes
 * beyond fails. *total gets how much it is; the number of segments.
 */
static int cut(const struct queue *q, const struct ibv_recv_wr *wr, struct iovec *iov, struct hd_mr **regions,
	       uint64_t *total)
{
	int n = 0;

	*total = 0;
	for (bool whole = true; whole && n < wr->num_sge; n++) {
		struct ibv_sge sge = wr->sg_list[n];

		whole = hv_local(q->ctx, q->pd, &sge, true, &iov[n], &regions[n]);
		if (!whole) {
			sge.length = hv_local_room(q->ctx, &sge);
			if (!sge.length || !hv_local(q->ctx, q->pd, &sge, true, &iov[n], &regions[n]))
				break;
		}
		*total += sge.length;
	}
	if (!*total)
		iov[0] = (struct iovec){ (void *)hv_bad_key, 0 };
	return *total ? n : 1;
}

static inline int to_recv_errno(int rc)
{
	return hv_likely(!rc) ? 0 : rc == -EAGAIN ? ENOMEM : -rc;
}

/*
 * 0, or a positive errno and nothing has been posted. A key that is wrong is found out when a
 * message comes that has data for it: until then the receive is in line.
 */
static __attribute__((noinline)) int post_recv_other(const struct queue *q, const struct ibv_recv_wr *wr)
{
	struct hd_mr *regions[HV_MAX_SGE];
	struct iovec iov[HV_MAX_SGE];
	struct hd_recv_args args = { .iov = iov,
				     .count = wr->num_sge,
				     .flags = HD_RECV_COMPLETE,
				     .ctx = (void *)(uintptr_t)wr->wr_id };
	uint64_t total;

	if (hv_unlikely(wr->num_sge < 0 || (uint32_t)wr->num_sge > *q->max_sge))
		return EINVAL;
	if (hv_unlikely(hd_ep_posted(q->ep) >= *q->max_wr))
		return ENOMEM;
	if (hv_unlikely(hv_sge(q->ctx, q->pd, wr->sg_list, wr->num_sge, true, iov, regions, &total))) {
		args.count = cut(q, wr, iov, regions, &total);
		args.flags |= HD_RECV_FAULT;
	}
	if (hv_likely(total != 0)) {
		for (int i = 0; !args.region; i++)
			args.region = regions[i];
		args.regions = regions;
	}
	return to_recv_errno(hd_recv(q->ep, &args));
}

/* The usual one: a segment of a region that was used just now. */
static inline __attribute__((always_inline)) int post_recv_post_one(const struct queue *q,
								    const struct ibv_recv_wr *wr)
{
	const struct ibv_sge *sge = wr->sg_list;
	const struct hv_mr *mr;
	struct hd_mr *region;
	struct iovec iov;

	if (hv_unlikely(wr->num_sge != 1 || !*q->max_sge || !(mr = hv_mr_near(q->ctx, sge)) ||
			!hv_mr_locate(mr, q->pd, sge, true, &iov, &region)))
		return post_recv_other(&(struct queue){ q->ctx, q->ep, q->pd, q->max_wr, q->max_sge }, wr);
	return to_recv_errno(hd_recv_one(q->ep, iov, region, (void *)(uintptr_t)wr->wr_id, *q->max_wr));
}

static inline __attribute__((always_inline)) int post_list(const struct queue *q, struct ibv_recv_wr *wr,
							   struct ibv_recv_wr **bad_wr)
{
	int rc = 0;

	for (; wr && !rc; wr = wr->next) {
		rc = post_recv_post_one(q, wr);
		if (hv_unlikely(rc)) {
			*bad_wr = wr;
			errno = rc;
		}
	}
	return rc;
}

int hv_post_recv(struct ibv_qp *pub, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
	struct hv_qp *qp = hv_qp_of(pub);
	const struct queue q = { qp->ctx, qp->ep, qp->pd, &qp->cap.max_recv_wr, &qp->cap.max_recv_sge };
	int rc;

	if (!hv_enter(qp->ctx)) {
		*bad_wr = wr;
		return hv_tell(EIO);
	}
	if (hv_qp_state_receives(*qp->state) && !qp->srq) {
		rc = post_list(&q, wr, bad_wr);
	} else {
		*bad_wr = wr;
		rc = hv_tell(EINVAL);
	}
	hv_leave(qp->ctx);
	return rc;
}

int hv_post_srq_recv(struct ibv_srq *pub, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
	struct hv_srq *srq = hv_srq_of(pub);
	const struct queue q = { srq->ctx, srq->poster, srq->pd, &srq->max_wr, &srq->max_sge };
	int rc;

	if (!hv_enter(srq->ctx)) {
		*bad_wr = wr;
		return hv_tell(EIO);
	}
	rc = post_list(&q, wr, bad_wr);
	hv_leave(srq->ctx);
	return rc;
}
