/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Data transfer operations of endpoints: dat_ep_post_send and the others. Nothing is allocated
 * here, and nothing blocks.
 */
#include "front/dat/post.h"

#include <dat2/dat_ib_extensions.h>
#include <errno.h>

/* ---- requests -------------------------------------------------------------------------------- */

DAT_RETURN hu_request_check_flags(const struct hu_ep *ep, const struct hu_request *r)
{
	if (hu_unlikely((unsigned)r->flags & ~HU_REQUEST_FLAGS))
		return hu_error(DAT_INVALID_PARAMETER,
				(DAT_RETURN_SUBTYPE)(DAT_INVALID_ARG1 + r->kind->flags_arg - 1));
	/* one that is told to nobody is meant for endpoints that were made for it */
	if (hu_unlikely(r->flags & DAT_COMPLETION_UNSIGNALLED_FLAG &&
			!(ep->attr.request_completion_flags & DAT_COMPLETION_UNSIGNALLED_FLAG)))
		return hu_error(DAT_INVALID_PARAMETER,
				(DAT_RETURN_SUBTYPE)(DAT_INVALID_ARG1 + r->kind->flags_arg - 1));
	return DAT_SUCCESS;
}

/* Requests go out when the endpoint is connected; when it has been, they are flushed. */
DAT_RETURN hu_request_check(const struct hu_ep *ep, const struct hu_request *r)
{
	if (hu_unlikely(ep->state != DAT_EP_STATE_CONNECTED && ep->state != DAT_EP_STATE_DISCONNECTED))
		return hu_ep_state_error(ep);
	return hu_request_check_flags(ep, r);
}

uint32_t hu_request_flags(const struct hu_request *r)
{
	return (r->flags & DAT_COMPLETION_SUPPRESS_FLAG ? 0 : HD_SEND_COMPLETE) |
	       (r->flags & DAT_COMPLETION_SOLICITED_WAIT_FLAG ? HD_SEND_SOLICITED : 0) |
	       (r->flags & DAT_COMPLETION_BARRIER_FENCE_FLAG ? HD_SEND_FENCE : 0);
}

uint64_t hu_request_tag(const struct hu_request *r)
{
	return (uint64_t)r->kind->operation | (r->flags & DAT_COMPLETION_UNSIGNALLED_FLAG ? HU_TAG_QUIET : 0);
}

DAT_RETURN hu_posted(struct hu_ep *ep, const struct hu_request *r, uint64_t bytes, int rc)
{
	if (hu_unlikely(rc))
		return hu_errno(rc);
	ep->counts[r->kind->counter]++;
	if (r->kind->counts_data)
		ep->counts[r->kind->counter + 1] += bytes;
	return DAT_SUCCESS;
}

static inline int dat_send_out(struct hu_ep *ep, const struct hu_request *r, struct hd_dest *to,
			       const struct hu_iov *v)
{
	uint32_t flags = hu_request_flags(r) | (r->takes_back ? HD_SEND_IMM | HD_SEND_TAKE_BACK : 0);

	if (hu_unlikely(hu_ep_is_ud(ep)))
		return hd_ud_send(ep->ep, to, v->iov, v->count, (struct hd_pkt_qp){ .qkey = HU_QKEY },
				  hu_request_tag(r), r->cookie.as_ptr, flags);
	return hd_sendv(ep->ep, to, v->iov, v->count, hu_request_tag(r), r->imm, r->cookie.as_ptr, flags);
}

DAT_RETURN hu_send(struct hu_ep *ep, const struct hu_request *r, struct hd_dest *to)
{
	const struct hu_local local = { ep->pz, r->iov, r->count, ep->attr.max_request_iov, false, 2 };
	struct hu_iov v;
	DAT_RETURN rc = hu_segments(ep->o.ia, &local, &v);

	if (hu_unlikely(rc))
		return rc;
	if (hu_unlikely(v.total > ep->attr.max_message_size))
		return hu_error(DAT_LENGTH_ERROR, DAT_NO_SUBTYPE);
	*hd_ep_regions(ep->ep) = v.count ? v.regions : NULL;
	return hu_posted(ep, r, v.total, dat_send_out(ep, r, to, &v));
}

/* A read is of the whole remote buffer, whatever more there is room for here. */
static void shorten(struct hu_iov *v, uint64_t len)
{
	v->count = 0;
	v->total = len;
	for (; len; len -= v->iov[v->count++].iov_len)
		if (v->iov[v->count].iov_len > len)
			v->iov[v->count].iov_len = len;
}

/*
 * Reads and writes: what is to be moved must fit where it is to go. This, and what is around it,
 * is one function in each call that posts: what the engine asks of the kernel makes each return
 * from there an expensive one.
 */
static inline __attribute__((always_inline)) DAT_RETURN reach(struct hu_ep *ep, const struct hu_request *r)
{
	bool reads = r->kind->operation == DAT_DTO_RDMA_READ;
	const struct hu_local local = {
		ep->pz, r->iov, r->count, reads ? ep->attr.max_rdma_read_iov : ep->attr.max_rdma_write_iov,
		reads,	2
	};
	struct hd_rma_seg seg;
	struct hu_iov v;
	DAT_RETURN rc = hu_segments(ep->o.ia, &local, &v);

	if (hu_unlikely(rc))
		return rc;
	if (hu_unlikely(!r->remote))
		return hu_error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG5);
	if (hu_unlikely(v.total != r->remote->segment_length)) {
		if (reads != (v.total > r->remote->segment_length))
			return hu_error(DAT_LENGTH_ERROR, DAT_NO_SUBTYPE);
		if (reads)
			shorten(&v, r->remote->segment_length);
	}
	if (hu_unlikely(v.total > ep->attr.max_rdma_size))
		return hu_error(DAT_LENGTH_ERROR, DAT_NO_SUBTYPE);
	*hd_ep_regions(ep->ep) = v.count ? v.regions : NULL;
	seg = (struct hd_rma_seg){ r->remote->virtual_address, v.total, r->remote->rmr_context };
	return hu_posted(ep, r, v.total,
			 hd_rma(ep->ep, *ep->to,
				&(struct hd_rma_args){ .op = reads ? HD_RMA_READ : HD_RMA_WRITE,
						       .iov = v.iov,
						       .count = v.count,
						       /* of nothing, the context does not count */
						       .seg_count = v.total != 0,
						       .segs = &seg,
						       .imm = r->imm,
						       .tag = hu_request_tag(r),
						       .ctx = r->cookie.as_ptr,
						       .flags = hu_request_flags(r) |
								(r->kind->with_imm ? HD_SEND_IMM : 0) }));
}

DAT_RETURN hu_reach(struct hu_ep *ep, const struct hu_request *r)
{
	return reach(ep, r);
}

static inline __attribute__((always_inline)) DAT_RETURN request(DAT_EP_HANDLE handle,
								const struct hu_request *r)
{
	struct hu_ep *ep = handle;
	DAT_RETURN rc;

	if (hu_unlikely(!hu_is(ep, DAT_HANDLE_TYPE_EP)))
		return hu_error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	if (hu_unlikely(!hu_enter(ep->o.ia)))
		return HU_DEAD;
	rc = hu_request_check(ep, r);
	if (hu_likely(!rc))
		rc = r->kind->operation == DAT_DTO_SEND ? hu_send(ep, r, *ep->to) : reach(ep, r);
	hu_leave(ep->o.ia);
	return rc;
}

DAT_RETURN hu_request(DAT_EP_HANDLE handle, const struct hu_request *r)
{
	return request(handle, r);
}

const struct hu_request_kind hu_sends = { DAT_DTO_SEND, 5, DCNT_EP_POST_SEND, true };

DAT_RETURN hu_ep_post_send(DAT_EP_HANDLE ep, DAT_COUNT count, DAT_LMR_TRIPLET *iov, DAT_DTO_COOKIE cookie,
			   DAT_COMPLETION_FLAGS flags)
{
	return request(ep, &(struct hu_request){ &hu_sends, iov, count, cookie, flags });
}

DAT_RETURN hu_ep_post_rdma_read(DAT_EP_HANDLE ep, DAT_COUNT count, DAT_LMR_TRIPLET *iov,
				DAT_DTO_COOKIE cookie, const DAT_RMR_TRIPLET *remote,
				DAT_COMPLETION_FLAGS flags)
{
	static const struct hu_request_kind reads = { DAT_DTO_RDMA_READ, 6, DCNT_EP_POST_READ, true };

	return request(ep, &(struct hu_request){ &reads, iov, count, cookie, flags, remote });
}

DAT_RETURN hu_ep_post_rdma_write(DAT_EP_HANDLE ep, DAT_COUNT count, DAT_LMR_TRIPLET *iov,
				 DAT_DTO_COOKIE cookie, const DAT_RMR_TRIPLET *remote,
				 DAT_COMPLETION_FLAGS flags)
{
	static const struct hu_request_kind writes = { DAT_DTO_RDMA_WRITE, 6, DCNT_EP_POST_WRITE, true };

	return request(ep, &(struct hu_request){ &writes, iov, count, cookie, flags, remote });
}

/* ---- receives -------------------------------------------------------------------------------- */

/* quiet: its completion notifies nobody; it comes back as HD_C_CLAIM. */
DAT_RETURN hu_receive(struct hd_ep *to, const struct hu_iov *v, DAT_DTO_COOKIE cookie, bool quiet)
{
	const struct hd_recv_args args = { .iov = v->iov,
					   .count = v->count,
					   .flags = HD_RECV_COMPLETE | (quiet ? HD_RECV_CLAIM : 0),
					   .ctx = cookie.as_ptr,
					   .region = v->count ? v->regions[0] : NULL,
					   .regions = v->regions };

	if (hu_likely(v->count == 1 && args.region && !quiet))
		return hu_errno(hd_recv_one(to, v->iov[0], args.region, args.ctx, SIZE_MAX));
	return hu_errno(hd_recv(to, &args));
}

static DAT_RETURN dat_post_receive(struct hu_ep *ep, const struct hu_local *local, DAT_DTO_COOKIE cookie,
				   DAT_COMPLETION_FLAGS flags)
{
	struct hu_iov v;
	DAT_RETURN rc;

	if (hu_unlikely(!ep->ep || ep->srq))
		return hu_ep_state_error(ep);
	if (hu_unlikely((unsigned)flags & ~(unsigned)DAT_COMPLETION_UNSIGNALLED_FLAG ||
			(flags && !(ep->attr.recv_completion_flags & DAT_COMPLETION_UNSIGNALLED_FLAG))))
		return hu_error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG5);
	if (hu_unlikely(hd_ep_posted(ep->ep) >= (size_t)ep->attr.max_recv_dtos))
		return hu_error(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_TEP);
	rc = hu_segments(ep->o.ia, local, &v);
	if (!rc)
		rc = hu_receive(ep->ep, &v, cookie, flags & DAT_COMPLETION_UNSIGNALLED_FLAG);
	if (hu_unlikely(rc))
		return rc;
	ep->counts[DCNT_EP_POST_RECV]++;
	ep->counts[DCNT_EP_POST_RECV_DATA] += v.total;
	return DAT_SUCCESS;
}

DAT_RETURN hu_ep_post_recv(DAT_EP_HANDLE handle, DAT_COUNT count, DAT_LMR_TRIPLET *iov, DAT_DTO_COOKIE cookie,
			   DAT_COMPLETION_FLAGS flags)
{
	struct hu_ep *ep = handle;
	DAT_RETURN rc;

	if (hu_unlikely(!hu_is(ep, DAT_HANDLE_TYPE_EP)))
		return hu_error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	if (hu_unlikely(!hu_enter(ep->o.ia)))
		return HU_DEAD;
	rc = dat_post_receive(ep, &(struct hu_local){ ep->pz, iov, count, ep->attr.max_recv_iov, true, 2 },
			      cookie, flags);
	hu_leave(ep->o.ia);
	return rc;
}
