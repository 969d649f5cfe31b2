/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* fi_collective(3): the operations, which all end in one: collective(). */
#include "front/ofi/coll/run.h"

#include <stdlib.h>

static_assert((int)FI_MIN == (int)HD_ATOMIC_MIN && (int)FI_BXOR == (int)HD_ATOMIC_BXOR &&
		      (int)FI_BXOR < (int)FI_ATOMIC_READ,
	      "operations are the engine's");

#define CALL_FLAGS (FI_COMPLETION | FI_MORE | HD_FI_LEVELS | FI_COLLECTIVE)

/* A call as the program made it. */
struct call {
	enum fi_collective_op coll;
	const void *buf;
	void *result;
	size_t count;
	fi_addr_t group, root;
	enum fi_datatype type;
	enum fi_op op;
	uint64_t flags;
	void *context;
};

/* ---- what kinds there are -------------------------------------------------------------------- */

static const struct kind {
	bool data, reduces, rooted;
	/* count is of one slice: where all are together there are as many as members */
	bool sliced;
} kinds[] = {
	[FI_BARRIER] = { 0 },
	[FI_BROADCAST] = { .data = true, .rooted = true },
	[FI_ALLTOALL] = { .data = true, .sliced = true },
	[FI_ALLREDUCE] = { .data = true, .reduces = true },
	[FI_ALLGATHER] = { .data = true, .sliced = true },
	[FI_REDUCE_SCATTER] = { .data = true, .reduces = true, .sliced = true },
	[FI_REDUCE] = { .data = true, .reduces = true, .rooted = true },
	[FI_SCATTER] = { .data = true, .rooted = true, .sliced = true },
	[FI_GATHER] = { .data = true, .rooted = true, .sliced = true },
};
#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

static int check_kind(const struct kind *kind, enum fi_datatype type, enum fi_op op)
{
	if (kind->data && !hd_atomic_size(type))
		return hd_fi_no(FI_EOPNOTSUPP, "a collective operation with a datatype that there is not");
	return !kind->reduces || (op <= FI_BXOR && hd_atomic_can(HD_ATOMIC_BASE, op, type))
		       ? 0
		       : hd_fi_no(FI_EOPNOTSUPP,
				  "a reduction that there is not for this datatype: FI_MIN to FI_BXOR are");
}

int hd_fi_query_collective(struct fid_domain *domain, enum fi_collective_op coll,
			   struct fi_collective_attr *attr, uint64_t flags)
{
	int rc;

	if (flags && flags != FI_SCATTER)
		return hd_fi_no(FI_EBADFLAGS, "fi_query_collective with flags that it does not take");
	if (!attr || attr->mode)
		return hd_fi_no(FI_EINVAL, "fi_query_collective without attributes, or with a mode");
	if ((size_t)coll >= KINDS)
		return hd_fi_no(FI_EOPNOTSUPP, "fi_query_collective of what is no collective operation");
	rc = check_kind(flags ? &kinds[FI_REDUCE_SCATTER] : &kinds[coll], attr->datatype, attr->op);
	if (rc)
		return rc;
	attr->datatype_attr.size = kinds[coll].data ? hd_atomic_size(attr->datatype) : 0;
	attr->datatype_attr.count = kinds[coll].data ? HD_MAX_MSG / attr->datatype_attr.size : 0;
	attr->max_members = HD_FI_MEMBERS_MAX;
	return 0;
}

/* ---- the end of one -------------------------------------------------------------------------- */

/* As an atomic operation that the endpoint has started: fi_collective(3). */
static void collective_ended(struct hd_fi_run *run, enum hd_status status)
{
	const struct hd_fi_ep *ep = run->group->ep;
	const struct hd_fi_cntr *cntr = ep->bound.cntrs[HD_FI_CNTR_WRITE];
	const struct hd_cqe e = {
		.ctx = run->context, .ep = hd_ep_index(ep->ep), .flags = HD_C_COLLECTIVE, .err = status
	};

	ep->coll->under_way--;
	if (ep->bound.tx.cq && (run->reports || status))
		hd_cq_post(ep->bound.tx.cq->cq, &e);
	if (cntr && status)
		hd_cntr_event_error(cntr->cntr);
	else if (cntr)
		/* of collectives no bytes are counted: fi_cntr(3) */
		hd_cntr_completed(cntr->cntr, 0);
}

/* ---- beginning one --------------------------------------------------------------------------- */

/* Elements that the operation has together, or UINT64_MAX. */
static int check_size(const struct hd_fi_group *group, const struct call *c)
{
	const size_t slices = kinds[c->coll].sliced ? group->count : 1;
	size_t bytes;

	return __builtin_mul_overflow(c->count, hd_atomic_size(c->type), &bytes) ||
			       __builtin_mul_overflow(bytes, slices, &bytes) || bytes > HD_MAX_MSG
		       ? hd_fi_no(FI_EMSGSIZE, "a collective operation of more elements than there can be")
		       : 0;
}

/* The operand and the result are there where this member has them. */
static int check_buffers(const struct call *c, bool is_root)
{
	const bool reads = c->coll != FI_SCATTER || is_root, writes = !kinds[c->coll].rooted || is_root;
	const bool has_result = c->coll != FI_BROADCAST && (writes || c->coll == FI_SCATTER);

	return c->count && ((reads && !c->buf) || (has_result && !c->result))
		       ? hd_fi_no(FI_EINVAL, "a collective operation with elements at NULL")
		       : 0;
}

static int find_root(const struct hd_fi_group *group, fi_addr_t addr, uint32_t *rank)
{
	for (uint32_t i = 0; i < group->count; i++)
		if (group->member[i].addr == addr) {
			*rank = i;
			return 0;
		}
	return hd_fi_no(FI_EINVAL, "a collective operation whose root is no member of the group");
}

static int check_group(const struct hd_fi_group *group)
{
	if (!group || !(group->joined || hd_fi_group_broken(group)))
		return hd_fi_no(FI_EINVAL,
				"a collective operation in a group that the endpoint has not joined");
	if (hd_fi_group_broken(group))
		return hd_fi_no(FI_ECONNABORTED,
				"a collective operation in a group that has failed: a member is gone");
	return 0;
}

static int take_args(const struct hd_fi_group *group, const struct call *c, struct hd_fi_plan_args *args)
{
	int rc = check_group(group);

	if (rc)
		return rc;
	*args = (struct hd_fi_plan_args){ .coll = c->coll,
					  .members = group->count,
					  .rank = group->rank,
					  .count = c->count,
					  .size = kinds[c->coll].data ? hd_atomic_size(c->type) : 0 };
	if (kinds[c->coll].rooted)
		rc = find_root(group, c->root, &args->root);
	if (!rc && kinds[c->coll].data)
		rc = check_size(group, c);
	if (!rc && kinds[c->coll].data)
		rc = check_buffers(c, args->root == group->rank);
	return rc;
}

/* The flags of a call replace the endpoint's, fi_endpoint(3). */
static bool call_reports(const struct hd_fi_calls *call, uint64_t flags)
{
	return call->tx_always || flags & FI_COMPLETION;
}

/* Caller holds the node's lock. */
static int collective_locked(const struct hd_fi_ep *as, struct hd_fi_ep *ep, const struct call *c)
{
	struct hd_fi_group *group = hd_fi_group_at(ep, c->group);
	struct hd_fi_plan_args args;
	struct hd_fi_plan plan;
	struct hd_fi_run *run;
	int rc = take_args(group, c, &args);

	if (rc)
		return rc;
	if (ep->coll->under_way >= (ep->attr.tx_size ? ep->attr.tx_size : HD_FI_DEFAULT_SIZE))
		return -FI_EAGAIN;
	if (hd_fi_plan_make(&plan, &args))
		return hd_fi_no(FI_ENOMEM);
	run = hd_fi_run_make(group, &plan, args.size);
	if (!run)
		return hd_fi_no(FI_ENOMEM);
	run->space[HD_FI_BUF] = (char *)(uintptr_t)c->buf;
	run->space[HD_FI_RESULT] = c->result;
	run->op = c->op;
	run->type = c->type;
	run->context = c->context;
	run->reports = call_reports(&as->call, c->flags);
	run->ended = collective_ended;
	ep->coll->under_way++;
	hd_fi_run_start(run);
	return 0;
}

static ssize_t collective(struct fid_ep *fid, const struct call *c)
{
	struct hd_fi_ep *as = (struct hd_fi_ep *)fid, *ep = as->parent ? as->parent : as;
	int rc;

	if (!ep->ep)
		return hd_fi_no(FI_EOPBADSTATE, "a collective operation before fi_enable");
	if (c->flags & ~CALL_FLAGS)
		return hd_fi_no(FI_EBADFLAGS, "a collective operation with flags that it does not take");
	rc = check_kind(&kinds[c->coll], c->type, c->op);
	if (rc)
		return rc;
	hd_fi_lock(ep->domain);
	rc = collective_locked(as, ep, c);
	hd_fi_unlock(ep->domain);
	return rc;
}

/* ---- the calls ------------------------------------------------------------------------------- */

static ssize_t coll_barrier2(struct fid_ep *ep, fi_addr_t group, uint64_t flags, void *context)
{
	return collective(
		ep, &(struct call){ .coll = FI_BARRIER, .group = group, .flags = flags, .context = context });
}

static ssize_t coll_barrier(struct fid_ep *ep, fi_addr_t group, void *context)
{
	const uint64_t usual = ((struct hd_fi_ep *)ep)->bound.tx.op_flags & FI_COMPLETION;

	return coll_barrier2(ep, group, usual, context);
}

static ssize_t coll_broadcast(struct fid_ep *ep, void *buf, size_t count, void *desc, fi_addr_t group,
			      fi_addr_t root, enum fi_datatype type, uint64_t flags, void *context)
{
	return collective(ep, &(struct call){ FI_BROADCAST, buf, NULL, count, group, root, type, 0, flags,
					      context });
}

static ssize_t coll_alltoall(struct fid_ep *ep, const void *buf, size_t count, void *desc, void *result,
			     void *result_desc, fi_addr_t group, enum fi_datatype type, uint64_t flags,
			     void *context)
{
	return collective(ep, &(struct call){ FI_ALLTOALL, buf, result, count, group, 0, type, 0, flags,
					      context });
}

static ssize_t coll_allreduce(struct fid_ep *ep, const void *buf, size_t count, void *desc, void *result,
			      void *result_desc, fi_addr_t group, enum fi_datatype type, enum fi_op op,
			      uint64_t flags, void *context)
{
	return collective(ep, &(struct call){ FI_ALLREDUCE, buf, result, count, group, 0, type, op, flags,
					      context });
}

static ssize_t coll_allgather(struct fid_ep *ep, const void *buf, size_t count, void *desc, void *result,
			      void *result_desc, fi_addr_t group, enum fi_datatype type, uint64_t flags,
			      void *context)
{
	return collective(ep, &(struct call){ FI_ALLGATHER, buf, result, count, group, 0, type, 0, flags,
					      context });
}

static ssize_t coll_reduce_scatter(struct fid_ep *ep, const void *buf, size_t count, void *desc, void *result,
				   void *result_desc, fi_addr_t group, enum fi_datatype type, enum fi_op op,
				   uint64_t flags, void *context)
{
	return collective(ep, &(struct call){ FI_REDUCE_SCATTER, buf, result, count, group, 0, type, op,
					      flags, context });
}

static ssize_t coll_reduce(struct fid_ep *ep, const void *buf, size_t count, void *desc, void *result,
			   void *result_desc, fi_addr_t group, fi_addr_t root, enum fi_datatype type,
			   enum fi_op op, uint64_t flags, void *context)
{
	return collective(ep, &(struct call){ FI_REDUCE, buf, result, count, group, root, type, op, flags,
					      context });
}

static ssize_t coll_scatter(struct fid_ep *ep, const void *buf, size_t count, void *desc, void *result,
			    void *result_desc, fi_addr_t group, fi_addr_t root, enum fi_datatype type,
			    uint64_t flags, void *context)
{
	return collective(ep, &(struct call){ FI_SCATTER, buf, result, count, group, root, type, 0, flags,
					      context });
}

static ssize_t coll_gather(struct fid_ep *ep, const void *buf, size_t count, void *desc, void *result,
			   void *result_desc, fi_addr_t group, fi_addr_t root, enum fi_datatype type,
			   uint64_t flags, void *context)
{
	return collective(ep, &(struct call){ FI_GATHER, buf, result, count, group, root, type, 0, flags,
					      context });
}

/* By lists of one segment each: the operations take no more. */
static ssize_t coll_msg(struct fid_ep *ep, const struct fi_msg_collective *msg, struct fi_ioc *resultv,
			void **result_desc, size_t result_count, uint64_t flags)
{
	struct call c = { .flags = flags };

	if (!msg || (size_t)msg->coll >= KINDS || msg->iov_count > 1 || result_count > 1 ||
	    (msg->iov_count && !msg->msg_iov) || (result_count && !resultv))
		return hd_fi_no(FI_EINVAL,
				"a collective operation of more than one segment, or without a message");
	c.coll = msg->coll;
	c.buf = msg->iov_count ? msg->msg_iov->addr : NULL;
	c.count = msg->iov_count ? msg->msg_iov->count : 0;
	if (result_count) {
		c.result = resultv->addr;
		if (!msg->iov_count)
			c.count = resultv->count;
	}
	c.group = msg->coll_addr;
	c.root = msg->root_addr;
	c.type = msg->datatype;
	c.op = msg->op;
	c.context = msg->context;
	return collective(ep, &c);
}

struct fi_ops_collective hd_fi_collective_ops = {
	.size = sizeof(struct fi_ops_collective),
	.barrier = coll_barrier,
	.broadcast = coll_broadcast,
	.alltoall = coll_alltoall,
	.allreduce = coll_allreduce,
	.allgather = coll_allgather,
	.reduce_scatter = coll_reduce_scatter,
	.reduce = coll_reduce,
	.scatter = coll_scatter,
	.gather = coll_gather,
	.msg = coll_msg,
	.barrier2 = coll_barrier2,
};
