/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * The InfiniBand extensions, dat_ib_extensions.h: dat_extension_op(3) calls one function with the
 * operation and its arguments.
 */
#include "front/dat/post.h"
#include "front/dat/ud.h"

#include <dat2/dat_ib_extensions.h>
#include <stdarg.h>

/* ---- immediate data -------------------------------------------------------------------------- */

static DAT_RETURN write_immed(DAT_EP_HANDLE ep, va_list args)
{
	static const struct hu_request_kind writes = { DAT_IB_DTO_RDMA_WRITE_IMMED, 7, DCNT_EP_POST_WRITE_IMM,
						       true, true };
	struct hu_request r = { &writes };

	r.count = va_arg(args, DAT_COUNT);
	r.iov = va_arg(args, DAT_LMR_TRIPLET *);
	r.cookie = va_arg(args, DAT_DTO_COOKIE);
	r.remote = va_arg(args, const DAT_RMR_TRIPLET *);
	r.imm = va_arg(args, DAT_UINT32);
	r.flags = va_arg(args, DAT_COMPLETION_FLAGS);
	return hu_request(ep, &r);
}

/* ---- atomic operations ----------------------------------------------------------------------- */

static const struct hu_request_kind swap = { DAT_IB_DTO_CMP_SWAP, 7, DCNT_EP_POST_CMP_SWAP };
static const struct hu_request_kind add = { DAT_IB_DTO_FETCH_ADD, 7, DCNT_EP_POST_FETCH_ADD };

struct atomic {
	struct hu_request r;
	uint64_t operand, compare;
};

/* With the lock. */
static DAT_RETURN ext_change(struct hu_ep *ep, const struct atomic *a)
{
	bool swaps = a->r.kind == &swap;
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
	*hd_ep_regions(ep->ep) = v.regions;
	seg = (struct hd_rma_seg){ a->r.remote->virtual_address, 8, a->r.remote->rmr_context };
	return hu_posted(
		ep, &a->r, 8,
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

static DAT_RETURN ext_atomic(DAT_EP_HANDLE handle, const struct hu_request_kind *kind, va_list args)
{
	struct atomic a = { .r = { kind } };
	struct hu_ep *ep = handle;
	DAT_RETURN rc;

	if (kind == &swap)
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
	rc = ext_change(ep, &a);
	hu_leave(ep->o.ia);
	return rc;
}

/* ---- datagrams ------------------------------------------------------------------------------- */

static DAT_RETURN ext_send_datagram(DAT_EP_HANDLE ep, va_list args)
{
	static const struct hu_request_kind sends = { DAT_IB_DTO_SEND_UD, 7, DCNT_EP_POST_SEND_UD, true };
	struct hu_request r = { &sends };
	const DAT_IB_ADDR_HANDLE *to;

	r.count = va_arg(args, DAT_COUNT);
	r.iov = va_arg(args, DAT_LMR_TRIPLET *);
	to = va_arg(args, const DAT_IB_ADDR_HANDLE *);
	r.cookie = va_arg(args, DAT_DTO_COOKIE);
	r.flags = va_arg(args, DAT_COMPLETION_FLAGS);
	return hu_ud_send(ep, &r, to);
}

/* ---- looking at an adapter that is not open -------------------------------------------------- */

const DAT_PROVIDER *hu_found_by_name;

/* libdat2 has found us by the adapter's name. Until dat_ib_close_query. */
static DAT_RETURN open_query(va_list args)
{
	DAT_IA_HANDLE *out = va_arg(args, DAT_IA_HANDLE *), ia;
	DAT_IA_ATTR_MASK ia_mask = va_arg(args, DAT_IA_ATTR_MASK);
	DAT_IA_ATTR *ia_attr = va_arg(args, DAT_IA_ATTR *);
	DAT_PROVIDER_ATTR_MASK provider_mask = va_arg(args, DAT_PROVIDER_ATTR_MASK);
	DAT_PROVIDER_ATTR *provider_attr = va_arg(args, DAT_PROVIDER_ATTR *);
	DAT_EVD_HANDLE async = DAT_EVD_ASYNC_EXISTS;
	DAT_RETURN rc;

	if (!out)
		return hu_error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG4);
	rc = hu_ia_open_by(hu_found_by_name, false, "heddle", 0, &async, &ia);
	if (rc)
		return rc;
	rc = hu_ia_query(ia, NULL, ia_mask, ia_attr, provider_mask, provider_attr);
	if (rc)
		hu_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG);
	else
		*out = ia;
	return rc;
}

static DAT_RETURN query_counters(DAT_HANDLE handle, va_list args)
{
	int which = va_arg(args, int);
	DAT_UINT64 *out = va_arg(args, DAT_UINT64 *);

	return hu_counters_query(handle, which, out, va_arg(args, int));
}

static DAT_RETURN print_counters(DAT_HANDLE handle, va_list args)
{
	int which = va_arg(args, int);

	return hu_counters_print(handle, which, va_arg(args, int));
}

/* ---- the call -------------------------------------------------------------------------------- */

DAT_RETURN hu_handle_extendedop(DAT_HANDLE handle, DAT_EXTENDED_OP op, va_list args)
{
	switch ((DAT_IB_OP)op) {
	case DAT_IB_RDMA_WRITE_IMMED_OP:
		return write_immed(handle, args);
	case DAT_IB_FETCH_AND_ADD_OP:
		return ext_atomic(handle, &add, args);
	case DAT_IB_CMP_AND_SWAP_OP:
		return ext_atomic(handle, &swap, args);
	case DAT_IB_UD_SEND_OP:
		return ext_send_datagram(handle, args);
	case DAT_IB_UD_CM_FREE_OP:
		return hu_ud_cm_free(handle, va_arg(args, DAT_CONTEXT).as_ptr);
	case DAT_IB_UD_AH_FREE_OP:
		return hu_ud_ah_free(handle, va_arg(args, const DAT_IB_ADDR_HANDLE *));
	case DAT_IB_QUERY_COUNTERS_OP:
		return query_counters(handle, args);
	case DAT_IB_PRINT_COUNTERS_OP:
		return print_counters(handle, args);
	case DAT_IB_START_COUNTERS_OP:
	case DAT_IB_STOP_COUNTERS_OP:
		return hu_counters_sample(handle, va_arg(args, int));
	case DAT_IB_OPEN_QUERY_OP:
		return open_query(args);
	case DAT_IB_CLOSE_QUERY_OP:
		return hu_ia_close(handle, DAT_CLOSE_ABRUPT_FLAG);
	default: /* collectives; not among the attributes of the IA */
		return hu_error(DAT_NOT_IMPLEMENTED, DAT_NO_SUBTYPE);
	}
}
