/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * fi_atomic(3). All calls end in one: atomic_post(). The target carries the operation out and
 * answers, so that every completion has the strongest level there is.
 */
#include "front/ofi/atomic.h"
#include "front/ofi/trigger.h"

static_assert((int)FI_MIN == (int)HD_ATOMIC_MIN && (int)FI_BXOR == (int)HD_ATOMIC_BXOR &&
		      (int)FI_ATOMIC_READ == (int)HD_ATOMIC_READ &&
		      (int)FI_ATOMIC_WRITE == (int)HD_ATOMIC_WRITE && (int)FI_CSWAP == (int)HD_ATOMIC_CSWAP &&
		      (int)FI_MSWAP == (int)HD_ATOMIC_MSWAP && (int)FI_ATOMIC_OP_LAST == (int)HD_ATOMIC_OPS,
	      "operations are the engine's");
static_assert((int)FI_INT8 == (int)HD_ATOMIC_I8 && (int)FI_UINT64 == (int)HD_ATOMIC_U64 &&
		      (int)FI_FLOAT == (int)HD_ATOMIC_F && (int)FI_DOUBLE_COMPLEX == (int)HD_ATOMIC_DC &&
		      (int)FI_LONG_DOUBLE_COMPLEX == (int)HD_ATOMIC_LDC &&
		      (int)FI_INT128 == (int)HD_ATOMIC_I128 && (int)FI_UINT128 == (int)HD_ATOMIC_U128,
	      "types are the engine's");

/* ---- posting --------------------------------------------------------------------------------- */

/* One list of local elements: as many of them as the target has. */
static int take_local(const struct fi_ioc *ioc, size_t count, size_t limit, size_t size, size_t elements,
		      struct iovec *out)
{
	size_t left = elements;

	if (!ioc || count > limit)
		return hd_fi_no(FI_EINVAL,
				"more local elements' segments than iov_limit, or no list of them");
	for (size_t i = 0; i < count; i++) {
		if (ioc[i].count > left || (ioc[i].count && !ioc[i].addr))
			return hd_fi_no(FI_EINVAL,
					"more local elements than remote ones, or elements at NULL");
		left -= ioc[i].count;
		out[i] = (struct iovec){ ioc[i].addr, ioc[i].count * size };
	}
	return left ? hd_fi_no(FI_EINVAL, "fewer local elements than remote ones") : 0;
}

/* The target's list: between one element and as many as fit one operation. */
static int take_remote(const struct hd_fi_atomic *c, size_t size, struct hd_rma_seg *out, size_t *elements)
{
	size_t most = HD_ATOMIC_BYTES / size, sum = 0;

	if (!c->remote)
		return hd_fi_no(FI_EINVAL, "an atomic operation without a list of remote elements");
	for (size_t i = 0; i < c->remote_count; i++) {
		if (c->remote[i].count > most - sum)
			return hd_fi_no(
				FI_EMSGSIZE,
				"more elements than one atomic operation takes: fi_atomicvalid tells how many");
		sum += c->remote[i].count;
		out[i] = (struct hd_rma_seg){ .addr = c->remote[i].addr,
					      .len = c->remote[i].count * size,
					      .key = c->remote[i].key };
	}
	*elements = sum;
	return sum ? 0 : hd_fi_no(FI_EINVAL, "an atomic operation on no element");
}

static int take_lists(const struct hd_fi_ep *ep, const struct hd_fi_atomic *c, struct hd_fi_atomic_lists *l)
{
	size_t size = hd_atomic_size(c->type), elements;
	int rc = c->remote_count > ep->attr.rma_iov
			 ? hd_fi_no(FI_EINVAL, "more remote segments than rma_iov_limit")
			 : take_remote(c, size, l->seg, &elements);

	if (!rc && c->op != HD_ATOMIC_READ)
		rc = take_local(c->ioc, c->count, ep->attr.tx_iov, size, elements, l->iov);
	if (!rc && c->how == HD_ATOMIC_COMPARE)
		rc = take_local(c->comparev, c->compare_count, ep->attr.tx_iov, size, elements, l->compare);
	if (!rc && c->how != HD_ATOMIC_BASE)
		rc = take_local(c->resultv, c->result_count, ep->attr.tx_iov, size, elements, l->result);
	if (!rc && elements * size > hd_fi_send_max(&ep->call, HD_FI_OF_ATOMIC, c->flags))
		rc = hd_fi_no(
			FI_EMSGSIZE,
			"an atomic operation on more bytes than there may be, or than inject_size where it is injected");
	return rc;
}

static int atomic_check(const struct hd_fi_ep *ep, const struct hd_fi_atomic *c)
{
	if (!ep->ep)
		return hd_fi_no(FI_EOPBADSTATE, "an atomic operation before fi_enable");
	if (!(ep->bound.tx.caps & FI_ATOMIC) ||
	    !(ep->bound.tx.caps & (c->how == HD_ATOMIC_BASE ? FI_WRITE : FI_READ)))
		return hd_fi_no(FI_EOPNOTSUPP,
				"the endpoint was not opened with FI_ATOMIC, or not for that direction");
	return hd_atomic_can(c->how, c->op, c->type)
		       ? 0
		       : hd_fi_no(FI_EOPNOTSUPP,
				  "an atomic operation, or a datatype of it, that there is not");
}

int hd_fi_atomic_take(const struct hd_fi_ep *ep, const struct hd_fi_atomic *c, struct hd_fi_atomic_lists *l)
{
	int rc = atomic_check(ep, c);

	return rc ? rc : take_lists(ep, c, l);
}

ssize_t hd_fi_atomic_post(struct hd_fi_ep *ep, const struct hd_fi_atomic *c,
			  const struct hd_fi_atomic_lists *l)
{
	const struct hd_atomic_args args = {
		.how = c->how,
		.op = c->op,
		.type = c->type,
		.iov = l->iov,
		.count = c->op != HD_ATOMIC_READ ? (int)c->count : 0,
		.compare_iov = l->compare,
		.compare_count = c->how == HD_ATOMIC_COMPARE ? (int)c->compare_count : 0,
		.result_iov = l->result,
		.result_count = c->how != HD_ATOMIC_BASE ? (int)c->result_count : 0,
		.segs = l->seg,
		.seg_count = (int)c->remote_count,
		.ctx = c->context,
		.flags = c->flags,
	};
	struct hd_dest *dest = hd_fi_ep_dest(ep, c->dest);

	return dest ? hd_atomic(ep->ep, dest, &args)
		    : hd_fi_no(FI_EINVAL, "an address that is not in the address vector");
}

static ssize_t atomic_post(struct fid_ep *fid, const struct hd_fi_atomic *c)
{
	struct hd_fi_ep *ep = (struct hd_fi_ep *)fid;
	struct hd_fi_atomic_lists l;
	ssize_t rc;

	if (hd_fi_rare(c->usual && ep->bound.tx.op_flags & FI_TRIGGER))
		return hd_fi_trigger_atomic(ep, c);
	rc = hd_fi_atomic_take(ep, c, &l);

	if (rc)
		return rc;
	hd_fi_lock(ep->domain);
	rc = hd_fi_atomic_post(ep, c, &l);
	hd_fi_unlock(ep->domain);
	return rc;
}

/* ---- calls without flags --------------------------------------------------------------------- */

/* A call by its lists; those of one element each are lists, too. */
#define IOC(address, elements) \
	(&(const struct fi_ioc){ .addr = (void *)(uintptr_t)(address), .count = (elements) })
#define REMOTE(address, elements, mr_key) \
	(&(const struct fi_rma_ioc){ .addr = (address), .count = (elements), .key = (mr_key) })

static uint32_t usual_flags(struct fid_ep *fid)
{
	return ((struct hd_fi_ep *)fid)->call.send_flags;
}

static size_t sum_of(const struct fi_ioc *ioc, size_t count)
{
	size_t sum = 0;

	for (size_t i = 0; ioc && i < count; i++)
		if (__builtin_add_overflow(sum, ioc[i].count, &sum))
			return SIZE_MAX;
	return sum;
}

static ssize_t write_v(struct fid_ep *ep, const struct fi_ioc *iov, void **desc, size_t count, fi_addr_t dest,
		       uint64_t addr, uint64_t key, enum fi_datatype datatype, enum fi_op op, void *context)
{
	return atomic_post(ep, &(struct hd_fi_atomic){ .how = HD_ATOMIC_BASE,
						       .op = op,
						       .type = datatype,
						       .ioc = iov,
						       .count = count,
						       .remote = REMOTE(addr, sum_of(iov, count), key),
						       .remote_count = 1,
						       .dest = dest,
						       .context = context,
						       .flags = usual_flags(ep),
						       .usual = true });
}

static ssize_t atomic_write_one(struct fid_ep *ep, const void *buf, size_t count, void *desc, fi_addr_t dest,
				uint64_t addr, uint64_t key, enum fi_datatype datatype, enum fi_op op,
				void *context)
{
	return write_v(ep, IOC(buf, count), NULL, 1, dest, addr, key, datatype, op, context);
}

/* No completion on success, whatever is bound. */
static ssize_t atomic_inject(struct fid_ep *fid, const void *buf, size_t count, fi_addr_t dest, uint64_t addr,
			     uint64_t key, enum fi_datatype datatype, enum fi_op op)
{
	struct hd_fi_ep *ep = (struct hd_fi_ep *)fid;
	const struct hd_fi_atomic c = { .how = HD_ATOMIC_BASE,
					.op = op,
					.type = datatype,
					.ioc = IOC(buf, count),
					.count = 1,
					.remote = REMOTE(addr, count, key),
					.remote_count = 1,
					.dest = dest,
					.context = hd_fi_no_context(ep),
					.flags = (usual_flags(fid) & ~(uint32_t)HD_SEND_COMPLETE) |
						 ep->call.inject_flags };

	return hd_fi_injected(ep, atomic_post(fid, &c));
}

/* The results say how many elements there are: reading has no operands. */
static ssize_t fetch_v(struct fid_ep *ep, const struct fi_ioc *iov, void **desc, size_t count,
		       struct fi_ioc *resultv, void **result_desc, size_t result_count, fi_addr_t dest,
		       uint64_t addr, uint64_t key, enum fi_datatype datatype, enum fi_op op, void *context)
{
	return atomic_post(ep,
			   &(struct hd_fi_atomic){ .how = HD_ATOMIC_FETCH,
						   .op = op,
						   .type = datatype,
						   .ioc = iov,
						   .count = count,
						   .resultv = resultv,
						   .result_count = result_count,
						   .remote = REMOTE(addr, sum_of(resultv, result_count), key),
						   .remote_count = 1,
						   .dest = dest,
						   .context = context,
						   .flags = usual_flags(ep),
						   .usual = true });
}

static ssize_t fetch_one(struct fid_ep *ep, const void *buf, size_t count, void *desc, void *result,
			 void *result_desc, fi_addr_t dest, uint64_t addr, uint64_t key,
			 enum fi_datatype datatype, enum fi_op op, void *context)
{
	struct fi_ioc to = { .addr = result, .count = count };

	return fetch_v(ep, IOC(buf, count), NULL, 1, &to, NULL, 1, dest, addr, key, datatype, op, context);
}

static ssize_t compare_v(struct fid_ep *ep, const struct fi_ioc *iov, void **desc, size_t count,
			 const struct fi_ioc *comparev, void **compare_desc, size_t compare_count,
			 struct fi_ioc *resultv, void **result_desc, size_t result_count, fi_addr_t dest,
			 uint64_t addr, uint64_t key, enum fi_datatype datatype, enum fi_op op, void *context)
{
	return atomic_post(ep, &(struct hd_fi_atomic){ .how = HD_ATOMIC_COMPARE,
						       .op = op,
						       .type = datatype,
						       .ioc = iov,
						       .count = count,
						       .comparev = comparev,
						       .compare_count = compare_count,
						       .resultv = resultv,
						       .result_count = result_count,
						       .remote = REMOTE(addr, sum_of(iov, count), key),
						       .remote_count = 1,
						       .dest = dest,
						       .context = context,
						       .flags = usual_flags(ep),
						       .usual = true });
}

static ssize_t compare_one(struct fid_ep *ep, const void *buf, size_t count, void *desc, const void *compare,
			   void *compare_desc, void *result, void *result_desc, fi_addr_t dest, uint64_t addr,
			   uint64_t key, enum fi_datatype datatype, enum fi_op op, void *context)
{
	struct fi_ioc to = { .addr = result, .count = count };

	return compare_v(ep, IOC(buf, count), NULL, 1, IOC(compare, count), NULL, 1, &to, NULL, 1, dest, addr,
			 key, datatype, op, context);
}

/* ---- calls with flags ------------------------------------------------------------------------ */

/*
 * Flags replace the endpoint's; there are no tagged buffers to change, and
 * nothing is told to the target.
 */
int hd_fi_atomic_msg(const struct hd_fi_ep *ep, const struct fi_msg_atomic *msg, uint64_t flags,
		     struct hd_fi_atomic *c)
{
	int rc;

	if (flags & FI_TAGGED)
		return hd_fi_no(FI_EOPNOTSUPP, "an atomic operation with FI_TAGGED");
	if (!msg || flags & FI_REMOTE_CQ_DATA)
		return hd_fi_no(FI_EINVAL,
				"an atomic operation without a message, or with FI_REMOTE_CQ_DATA");
	rc = hd_fi_send_flags(ep, flags, &c->flags);
	if (rc)
		return rc;
	c->op = msg->op;
	c->type = msg->datatype;
	c->ioc = msg->msg_iov;
	c->count = msg->iov_count;
	c->remote = msg->rma_iov;
	c->remote_count = msg->rma_iov_count;
	c->dest = msg->addr;
	c->context = msg->context;
	return 0;
}

static ssize_t post_msg(struct fid_ep *fid, const struct fi_msg_atomic *msg, struct hd_fi_atomic *c,
			uint64_t flags)
{
	int rc = hd_fi_atomic_msg((struct hd_fi_ep *)fid, msg, flags & ~FI_TRIGGER, c);

	if (rc)
		return rc;
	return flags & FI_TRIGGER ? hd_fi_trigger_atomic((struct hd_fi_ep *)fid, c) : atomic_post(fid, c);
}

static ssize_t write_msg(struct fid_ep *ep, const struct fi_msg_atomic *msg, uint64_t flags)
{
	return post_msg(ep, msg, &(struct hd_fi_atomic){ .how = HD_ATOMIC_BASE }, flags);
}

static ssize_t fetch_msg(struct fid_ep *ep, const struct fi_msg_atomic *msg, struct fi_ioc *resultv,
			 void **result_desc, size_t result_count, uint64_t flags)
{
	struct hd_fi_atomic c = { .how = HD_ATOMIC_FETCH, .resultv = resultv, .result_count = result_count };

	return post_msg(ep, msg, &c, flags);
}

static ssize_t compare_msg(struct fid_ep *ep, const struct fi_msg_atomic *msg, const struct fi_ioc *comparev,
			   void **compare_desc, size_t compare_count, struct fi_ioc *resultv,
			   void **result_desc, size_t result_count, uint64_t flags)
{
	struct hd_fi_atomic c = { .how = HD_ATOMIC_COMPARE,
				  .comparev = comparev,
				  .compare_count = compare_count,
				  .resultv = resultv,
				  .result_count = result_count };

	return post_msg(ep, msg, &c, flags);
}

/* ---- what there is --------------------------------------------------------------------------- */

static int valid(enum hd_atomic_how how, enum fi_datatype datatype, enum fi_op op, size_t *count)
{
	if (!hd_atomic_can(how, op, datatype))
		return hd_fi_no(FI_EOPNOTSUPP, "an atomic operation, or a datatype of it, that there is not");
	if (count)
		*count = HD_ATOMIC_BYTES / hd_atomic_size(datatype);
	return 0;
}

static int ep_valid(struct fid_ep *ep, enum hd_atomic_how how, enum fi_datatype datatype, enum fi_op op,
		    size_t *count)
{
	return ((struct hd_fi_ep *)ep)->bound.tx.caps & FI_ATOMIC
		       ? valid(how, datatype, op, count)
		       : hd_fi_no(FI_EOPNOTSUPP, "the endpoint was not opened with FI_ATOMIC");
}

static int write_valid(struct fid_ep *ep, enum fi_datatype datatype, enum fi_op op, size_t *count)
{
	return ep_valid(ep, HD_ATOMIC_BASE, datatype, op, count);
}

static int fetch_valid(struct fid_ep *ep, enum fi_datatype datatype, enum fi_op op, size_t *count)
{
	return ep_valid(ep, HD_ATOMIC_FETCH, datatype, op, count);
}

static int compare_valid(struct fid_ep *ep, enum fi_datatype datatype, enum fi_op op, size_t *count)
{
	return ep_valid(ep, HD_ATOMIC_COMPARE, datatype, op, count);
}

int hd_fi_query_atomic(struct fid_domain *domain, enum fi_datatype datatype, enum fi_op op,
		       struct fi_atomic_attr *attr, uint64_t flags)
{
	enum hd_atomic_how how = HD_ATOMIC_BASE;

	if (flags & FI_TAGGED)
		return hd_fi_no(FI_EOPNOTSUPP, "fi_query_atomic with FI_TAGGED");
	if (!attr || (flags & FI_FETCH_ATOMIC && flags & FI_COMPARE_ATOMIC))
		return hd_fi_no(
			FI_EINVAL,
			"fi_query_atomic without room for the answer, or for fetching and comparing at once");
	if (flags & ~(FI_FETCH_ATOMIC | FI_COMPARE_ATOMIC))
		return hd_fi_no(FI_EBADFLAGS, "fi_query_atomic with flags that it does not take");
	if (flags)
		how = flags & FI_FETCH_ATOMIC ? HD_ATOMIC_FETCH : HD_ATOMIC_COMPARE;
	attr->size = hd_atomic_size(datatype);
	return valid(how, datatype, op, &attr->count);
}

struct fi_ops_atomic hd_fi_atomic_ops = {
	.size = sizeof(struct fi_ops_atomic),
	.write = atomic_write_one,
	.writev = write_v,
	.writemsg = write_msg,
	.inject = atomic_inject,
	.readwrite = fetch_one,
	.readwritev = fetch_v,
	.readwritemsg = fetch_msg,
	.compwrite = compare_one,
	.compwritev = compare_v,
	.compwritemsg = compare_msg,
	.writevalid = write_valid,
	.readwritevalid = fetch_valid,
	.compwritevalid = compare_valid,
};
