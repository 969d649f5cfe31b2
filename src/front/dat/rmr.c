/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Remote memory regions: dat_rmr_create, dat_rmr_bind and the others. One is a
 * memory window of the engine's.
 */
#include "front/dat/post.h"

#include <dat2/dat_ib_extensions.h>
#include <errno.h>

#define REMOTE ((unsigned)DAT_MEM_PRIV_REMOTE_READ_FLAG | (unsigned)DAT_MEM_PRIV_REMOTE_WRITE_FLAG)

/* ---- life ------------------------------------------------------------------------------------ */

/* single: for one endpoint at a time, which may free it with dat_ep_post_send_with_invalidate. */
static DAT_RETURN rmr_create(DAT_PZ_HANDLE handle, bool single, DAT_RMR_HANDLE *out)
{
	struct hu_pz *pz = handle;
	struct hu_rmr *rmr;
	struct hu_ia *ia;
	int rc = -ENOMEM;

	if (!hu_is(pz, DAT_HANDLE_TYPE_PZ))
		return hu_error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_PZ);
	if (!out)
		return hu_error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	ia = pz->o.ia;
	if (!hu_enter(ia))
		return HU_DEAD;
	rmr = hu_make(ia, DAT_HANDLE_TYPE_RMR, sizeof(*rmr));
	if (rmr)
		rc = hd_window_open(ia->node, pz->number, single, &rmr->mr);
	if (!rc) {
		hd_window_own(rmr->mr, rmr);
		rmr->pz = pz;
		pz->o.users++;
		rmr->param = (DAT_RMR_PARAM){ .pz_handle = pz,
					      .rmr_context = (DAT_RMR_CONTEXT)hd_mr_key(rmr->mr),
					      .rmr_scope = single ? DAT_RMR_SCOPE_EP : DAT_RMR_SCOPE_PZ };
	} else if (rmr) {
		hu_unmake(&rmr->o);
	}
	hu_leave(ia);
	if (rc)
		return rc == -ENOMEM ? hu_errno(rc)
				     : hu_error(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY_REGION);
	*out = rmr;
	return DAT_SUCCESS;
}

DAT_RETURN hu_rmr_create(DAT_PZ_HANDLE pz, DAT_RMR_HANDLE *out)
{
	return rmr_create(pz, false, out);
}

DAT_RETURN hu_rmr_create_for_ep(DAT_PZ_HANDLE pz, DAT_RMR_HANDLE *out)
{
	return rmr_create(pz, true, out);
}

DAT_RETURN hu_rmr_query(DAT_RMR_HANDLE handle, DAT_RMR_PARAM_MASK mask, DAT_RMR_PARAM *param)
{
	const struct hu_rmr *rmr = handle;

	if (!hu_is(rmr, DAT_HANDLE_TYPE_RMR))
		return hu_error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_RMR);
	if ((unsigned)mask & ~(unsigned)DAT_RMR_FIELD_ALL)
		return hu_error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	if (!param)
		return hu_error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	*param = rmr->param;
	param->ia_handle = hu_ia_handle(rmr->o.ia);
	return DAT_SUCCESS;
}

void hu_region_drop(struct hd_mr *mr)
{
	while (hd_mr_close(mr) < 0)
		continue; /* a process has been stopped in the middle of a copy from or to it */
}

void hu_rmr_drop(struct hu_rmr *rmr)
{
	hu_region_drop(rmr->mr);
	rmr->pz->o.users--;
	hu_free(&rmr->o);
}

DAT_RETURN hu_rmr_free(DAT_RMR_HANDLE handle)
{
	struct hu_rmr *rmr = handle;
	struct hu_ia *ia;

	if (!hu_is(rmr, DAT_HANDLE_TYPE_RMR))
		return hu_error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_RMR);
	ia = rmr->o.ia;
	if (!hu_enter(ia))
		return HU_DEAD;
	hu_rmr_drop(rmr);
	hu_leave(ia);
	return DAT_SUCCESS;
}

/* ---- binding --------------------------------------------------------------------------------- */

/* What is to be bound: to nothing, where the segment has no length. */
struct binding {
	struct hu_rmr *rmr;
	struct hu_lmr *lmr;
	const DAT_LMR_TRIPLET *triplet;
	unsigned privileges;
	DAT_VA_TYPE va_type;
	struct hu_request r;
};

static DAT_RETURN check_region(const struct binding *b, const struct hu_ep *ep)
{
	const struct hu_lmr *lmr = b->lmr;
	uint64_t from;

	if (b->rmr->pz != ep->pz || lmr->pz != ep->pz)
		return hu_error(DAT_PROTECTION_VIOLATION, DAT_NO_SUBTYPE);
	if (b->triplet->lmr_context != lmr->param.lmr_context)
		return hu_error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	from = b->triplet->virtual_address -
	       (lmr->param.va_type == DAT_VA_TYPE_VA ? lmr->param.registered_address : 0);
	if (from > lmr->param.length || b->triplet->segment_length > lmr->param.length - from)
		return hu_error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	if (b->privileges & DAT_MEM_PRIV_REMOTE_WRITE_FLAG &&
	    !(lmr->param.mem_priv & DAT_MEM_PRIV_LOCAL_WRITE_FLAG))
		return hu_error(DAT_PRIVILEGES_VIOLATION, DAT_PRIVILEGES_RDMA_WRITE);
	return DAT_SUCCESS;
}

/*
 * The next context: the last byte is the program's to count in, and old ones are
 * not to be guessed from it.
 */
static DAT_RMR_CONTEXT next_context(DAT_RMR_CONTEXT old)
{
	return (old & ~0xffu) | ((old + 1) & 0xff);
}

/* With the lock. */
static DAT_RETURN bind_window(struct hu_ep *ep, const struct binding *b, DAT_RMR_CONTEXT *context)
{
	bool frees = !b->triplet->segment_length;
	struct hd_bind_args args = { .key = next_context(b->rmr->param.rmr_context),
				     .access = hu_access(b->privileges & REMOTE),
				     .from_zero = b->va_type == DAT_VA_TYPE_ZB,
				     .tag = hu_request_tag(&b->r) | hu_tag_object(b->rmr),
				     .ctx = b->r.cookie.as_ptr,
				     .flags = hu_request_flags(&b->r) };
	DAT_RETURN rc = hu_request_check(ep, &b->r);

	if (!rc && !frees)
		rc = check_region(b, ep);
	if (rc)
		return rc;
	if (!frees) {
		args.region = b->lmr->mr;
		args.addr = b->triplet->virtual_address;
		args.len = b->triplet->segment_length;
	}
	rc = hu_errno(hd_window_bind(ep->ep, &args));
	if (rc)
		return rc;
	b->rmr->param.lmr_triplet = *b->triplet;
	b->rmr->param.mem_priv = (DAT_MEM_PRIV_FLAGS)b->privileges;
	b->rmr->param.va_type = b->va_type;
	b->rmr->param.rmr_context = (DAT_RMR_CONTEXT)args.key;
	b->rmr->ep = ep;
	if (context)
		*context = (DAT_RMR_CONTEXT)args.key;
	return DAT_SUCCESS;
}

DAT_RETURN hu_rmr_bind(DAT_RMR_HANDLE rmr, DAT_LMR_HANDLE lmr, const DAT_LMR_TRIPLET *triplet,
		       DAT_MEM_PRIV_FLAGS privileges, DAT_VA_TYPE va_type, DAT_EP_HANDLE ep_handle,
		       DAT_RMR_COOKIE cookie, DAT_COMPLETION_FLAGS flags, DAT_RMR_CONTEXT *context)
{
	static const struct hu_request_kind binds = { DAT_DTO_BIND_MW, 8 };
	struct binding b = {
		.rmr = rmr, .lmr = lmr, .triplet = triplet, .privileges = privileges, .va_type = va_type
	};
	struct hu_ep *ep = ep_handle;
	DAT_RETURN rc;

	b.r = (struct hu_request){ .kind = &binds, .cookie = cookie, .flags = flags };
	if (!hu_is(rmr, DAT_HANDLE_TYPE_RMR))
		return hu_error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_RMR);
	if (!triplet)
		return hu_error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	if (triplet->segment_length && !hu_is(lmr, DAT_HANDLE_TYPE_LMR))
		return hu_error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_LMR);
	if (b.privileges & ~(unsigned)DAT_MEM_PRIV_ALL_FLAG)
		return hu_error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG4);
	if (va_type != DAT_VA_TYPE_VA && va_type != DAT_VA_TYPE_ZB)
		return hu_error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG5);
	if (!hu_is(ep, DAT_HANDLE_TYPE_EP) || ep->o.ia != b.rmr->o.ia)
		return hu_error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	if (triplet->segment_length && !context) /* of nothing, nobody needs one */
		return hu_error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG9);
	if (!hu_enter(ep->o.ia))
		return HU_DEAD;
	rc = bind_window(ep, &b, context);
	hu_leave(ep->o.ia);
	return rc;
}

/* ---- operations that name one ---------------------------------------------------------------- */

DAT_RETURN hu_ep_post_send_with_invalidate(DAT_EP_HANDLE ep, DAT_COUNT count, DAT_LMR_TRIPLET *iov,
					   DAT_DTO_COOKIE cookie, DAT_COMPLETION_FLAGS flags,
					   DAT_BOOLEAN invalidates, DAT_RMR_CONTEXT context)
{
	bool takes_back = invalidates == DAT_TRUE;

	return hu_request(ep,
			  &(struct hu_request){ &hu_sends, iov, count, cookie, flags,
						.imm = takes_back ? context : 0, .takes_back = takes_back });
}

/* ---- reads into one -------------------------------------------------------------------------- */

/*
 * The segment of local memory behind a context of a region; DAT_PRIVILEGES_VIOLATION: there is none
 * that may be written to like this.
 */
static DAT_RETURN of_region(struct hu_ep *ep, const DAT_RMR_TRIPLET *local, DAT_LMR_TRIPLET *out)
{
	const struct hu_lmr *lmr = hd_mr_find(ep->o.ia->node, local->rmr_context);

	if (!lmr || lmr->o.type != DAT_HANDLE_TYPE_LMR ||
	    !(lmr->param.mem_priv & DAT_MEM_PRIV_REMOTE_WRITE_FLAG))
		return hu_error(DAT_PRIVILEGES_VIOLATION, DAT_PRIVILEGES_RDMA_WRITE);
	*out = (DAT_LMR_TRIPLET){ local->virtual_address, local->segment_length, lmr->param.lmr_context };
	return DAT_SUCCESS;
}

/* The same of a window: what was bound last, though it may not have been its turn yet. */
static DAT_RETURN of_window(const struct hu_ep *ep, const struct hu_rmr *rmr, const DAT_RMR_TRIPLET *local,
			    DAT_LMR_TRIPLET *out)
{
	const DAT_RMR_PARAM *p = &rmr->param;
	uint64_t from = local->virtual_address;

	if (p->rmr_context != local->rmr_context || !p->lmr_triplet.segment_length ||
	    !(p->mem_priv & DAT_MEM_PRIV_REMOTE_WRITE_FLAG))
		return hu_error(DAT_PRIVILEGES_VIOLATION, DAT_PRIVILEGES_RDMA_WRITE);
	if (rmr->pz != ep->pz || (p->rmr_scope == DAT_RMR_SCOPE_EP && rmr->ep != ep))
		return hu_error(DAT_PROTECTION_VIOLATION, DAT_PROTECTION_RDMA_WRITE);
	if (p->va_type == DAT_VA_TYPE_VA)
		from -= p->lmr_triplet.virtual_address;
	if (from > p->lmr_triplet.segment_length ||
	    local->segment_length > p->lmr_triplet.segment_length - from)
		return hu_error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	*out = (DAT_LMR_TRIPLET){ p->lmr_triplet.virtual_address + from, local->segment_length,
				  p->lmr_triplet.lmr_context };
	return DAT_SUCCESS;
}

/* With the lock. */
static DAT_RETURN read_into(struct hu_ep *ep, const DAT_RMR_TRIPLET *local, struct hu_request *r)
{
	DAT_LMR_TRIPLET seg;
	bool lost;
	const struct hu_rmr *rmr = hd_window_find(ep->o.ia->node, local->rmr_context, &lost);
	DAT_RETURN rc = hu_request_check(ep, r);

	if (rc)
		return rc;
	if (lost)
		return hu_error(DAT_PRIVILEGES_VIOLATION, DAT_PRIVILEGES_RDMA_WRITE);
	rc = rmr ? of_window(ep, rmr, local, &seg) : of_region(ep, local, &seg);
	if (rc)
		return rc;
	r->iov = &seg;
	r->count = 1;
	return hu_reach(ep, r);
}

/* As dat_ep_post_rdma_read, into memory that is named as others name it. */
DAT_RETURN hu_ep_post_rdma_read_to_rmr(DAT_EP_HANDLE handle, const DAT_RMR_TRIPLET *local,
				       DAT_DTO_COOKIE cookie, const DAT_RMR_TRIPLET *remote,
				       DAT_COMPLETION_FLAGS flags)
{
	static const struct hu_request_kind reads = { DAT_DTO_RDMA_READ, 5, DCNT_EP_POST_READ, true };
	struct hu_request r = { &reads, .cookie = cookie, .flags = flags, .remote = remote };
	struct hu_ep *ep;
	DAT_RETURN rc;

	if (!local)
		return hu_error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	if (!remote)
		return hu_error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG4);
	ep = hu_begin(handle, DAT_HANDLE_TYPE_EP, DAT_INVALID_HANDLE_EP, &rc);
	if (!ep)
		return rc;
	rc = read_into(ep, local, &r);
	hu_leave(ep->o.ia);
	return rc;
}
