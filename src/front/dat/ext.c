/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* The InfiniBand extensions, dat_ib_extensions.h: dat_extension_op(3) calls one function with the operation and its arguments. */
#include "front/dat/post.h"
#include "front/dat/ud.h"

#include <dat2/dat_ib_extensions.h>
#include <stdarg.h>

/* ---- immediate data ------------------------------------------------------------------------------------------------------------------ */

static DAT_RETURN write_immed(DAT_EP_HANDLE ep, va_list args)
{
	struct hu_request r = { .operation = DAT_IB_DTO_RDMA_WRITE_IMMED, .with_imm = true, .flags_arg = 7 };

	r.count = va_arg(args, DAT_COUNT);
	r.iov = va_arg(args, DAT_LMR_TRIPLET *);
	r.cookie = va_arg(args, DAT_DTO_COOKIE);
	r.remote = va_arg(args, const DAT_RMR_TRIPLET *);
	r.imm = va_arg(args, DAT_UINT32);
	r.flags = va_arg(args, DAT_COMPLETION_FLAGS);
	return hu_request(ep, &r);
}

/* ---- atomic operations ------------------------------------------------------------------------------------------------------------------- */

struct atomic {
	struct hu_request r;
	uint64_t operand, compare;
};

/* With the lock. */
static DAT_RETURN change(struct hu_ep *ep, const struct atomic *a)
{
	bool swaps = a->r.operation == DAT_IB_DTO_CMP_SWAP;
	const struct iovec ours = { (void *)&a->operand, 8 }, compare = { (void *)&a->compare, 8 };
	struct hd_rma_seg seg;
	struct hu_iov v;
	DAT_RETURN rc = hu_request_check(ep, &a->r);

	if (!rc)
		rc = hu_segments(ep->o.ia, &(struct hu_local){ ep->pz, a->r.iov, 1, 1, true, 3 }, &v);
	if (rc)
		return rc;
	if (!a->r.remote)
		return hu_error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG5);
	if (v.total != 8 || a->r.remote->segment_length < 8)
		return hu_error(DAT_LENGTH_ERROR, DAT_NO_SUBTYPE);
	seg = (struct hd_rma_seg){ a->r.remote->virtual_address, 8, a->r.remote->rmr_context };
	return hu_errno(
		hd_atomic(ep->ep, *ep->to,
			  &(struct hd_atomic_args){ .how = swaps ? HD_ATOMIC_COMPARE : HD_ATOMIC_FETCH,
						    .op = swaps ? HD_ATOMIC_CSWAP : HD_ATOMIC_SUM,
						    .type = HD_ATOMIC_U64,
						    .iov = &ours,
						    .compare_iov = &compare,
						    .result_iov = v.iov,
						    .count = 1,
						    .compare_count = swaps,
						    .result_count = v.count,
						    .seg_count = 1,
						    .segs = &seg,
						    .tag = hu_request_tag(&a->r),
						    .ctx = a->r.cookie.as_ptr,
						    .flags = hu_request_flags(&a->r) }));
}

static DAT_RETURN atomic(DAT_EP_HANDLE handle, bool swaps, va_list args)
{
	struct atomic a = { .r = { .operation = swaps ? DAT_IB_DTO_CMP_SWAP : DAT_IB_DTO_FETCH_ADD,
				   .flags_arg = 7 } };
	struct hu_ep *ep = handle;
	DAT_RETURN rc;

	if (swaps)
		a.compare = va_arg(args, DAT_UINT64);
	a.operand = va_arg(args, DAT_UINT64);
	a.r.iov = va_arg(args, DAT_LMR_TRIPLET *);
	a.r.cookie = va_arg(args, DAT_DTO_COOKIE);
	a.r.remote = va_arg(args, const DAT_RMR_TRIPLET *);
	a.r.flags = va_arg(args, DAT_COMPLETION_FLAGS);
	if (!hu_is(ep, DAT_HANDLE_TYPE_EP))
		return hu_error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	if (!hu_enter(ep->o.ia))
		return HU_DEAD;
	rc = change(ep, &a);
	hu_leave(ep->o.ia);
	return rc;
}

/* ---- datagrams ---------------------------------------------------------------------------------------------------------------------------- */

static DAT_RETURN send_datagram(DAT_EP_HANDLE ep, va_list args)
{
	struct hu_request r = { .operation = DAT_IB_DTO_SEND_UD, .flags_arg = 7 };
	const DAT_IB_ADDR_HANDLE *to;

	r.count = va_arg(args, DAT_COUNT);
	r.iov = va_arg(args, DAT_LMR_TRIPLET *);
	to = va_arg(args, const DAT_IB_ADDR_HANDLE *);
	r.cookie = va_arg(args, DAT_DTO_COOKIE);
	r.flags = va_arg(args, DAT_COMPLETION_FLAGS);
	return hu_ud_send(ep, &r, to);
}

/* ---- the call ------------------------------------------------------------------------------------------------------------------------------- */

DAT_RETURN hu_handle_extendedop(DAT_HANDLE handle, DAT_EXTENDED_OP op, va_list args)
{
	switch ((DAT_IB_OP)op) {
	case DAT_IB_RDMA_WRITE_IMMED_OP:
		return write_immed(handle, args);
	case DAT_IB_FETCH_AND_ADD_OP:
		return atomic(handle, false, args);
	case DAT_IB_CMP_AND_SWAP_OP:
		return atomic(handle, true, args);
	case DAT_IB_UD_SEND_OP:
		return send_datagram(handle, args);
	case DAT_IB_UD_CM_FREE_OP:
		return hu_ud_cm_free(handle, va_arg(args, DAT_CONTEXT).as_ptr);
	case DAT_IB_UD_AH_FREE_OP:
		return hu_ud_ah_free(handle, va_arg(args, const DAT_IB_ADDR_HANDLE *));
	default: /* not among the attributes of the IA */
		return hu_error(DAT_NOT_IMPLEMENTED, DAT_NO_SUBTYPE);
	}
}
