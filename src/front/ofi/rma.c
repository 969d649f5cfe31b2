/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * fi_rma(3). The calls that programs make most exist with and without the node's lock; those with
 * segments and flags look. Every write is complete when its data is in the target's memory, so that
 * all completion levels beyond FI_INJECT_COMPLETE are one.
 */
#include "front/ofi/trigger.h"

static_assert(sizeof(struct fi_rma_iov) == sizeof(struct hd_rma_seg) &&
		      offsetof(struct fi_rma_iov, len) == offsetof(struct hd_rma_seg, len) &&
		      offsetof(struct fi_rma_iov, key) == offsetof(struct hd_rma_seg, key),
	      "remote segments are the engine's");

/* One operation: a constant at its call site but for what the program gave. */
struct rma {
	enum hd_rma_op op;
	fi_addr_t peer;
	uint64_t addr, key, data;
	void *context;
	uint32_t flags; /* enum hd_send_flag */
};

/* args: all but the flags, imm and ctx, which r has. */
HD_FI_INLINE ssize_t ofi_rma_post(struct hd_fi_ep *ep, const struct rma *r, struct hd_rma_args args,
				  bool locked)
{
	struct hd_dest *dest;
	ssize_t rc;

	args.op = r->op;
	args.imm = r->data;
	args.ctx = r->context;
	args.flags = r->flags;
	if (locked)
		hd_node_lock(ep->node);
	dest = hd_fi_ep_dest(ep, r->peer);
	rc = dest ? hd_rma(ep->ep, dest, &args)
		  : hd_fi_no(FI_EINVAL, "an address that is not in the address vector");
	if (locked)
		hd_node_unlock(ep->node);
	return rc;
}

HD_FI_INLINE ssize_t rma_one(struct hd_fi_ep *ep, const struct rma r, const struct iovec iov, uint64_t max,
			     bool locked)
{
	const struct hd_rma_seg seg = { .addr = r.addr, .len = iov.iov_len, .key = r.key };

	if (hd_fi_rare(iov.iov_len > max))
		return hd_fi_no(FI_EMSGSIZE,
				"longer than max_msg_size, or than inject_size where it is injected");
	if (hd_fi_rare(!iov.iov_base && iov.iov_len))
		return hd_fi_no(FI_EINVAL, "bytes at NULL");
	return ofi_rma_post(ep, &r,
			    (struct hd_rma_args){ .iov = &iov, .count = 1, .segs = &seg, .seg_count = 1 },
			    locked);
}

HD_FI_INLINE ssize_t rma_read_one(struct fid_ep *fid, struct rma r, const struct iovec iov, bool locked)
{
	struct hd_fi_ep *ep = (struct hd_fi_ep *)fid;

	r.op = HD_RMA_READ;
	r.flags = ep->call.read_flags;
	return rma_one(ep, r, iov, ep->call.longest[HD_FI_OF_RMA], locked);
}

HD_FI_INLINE ssize_t rma_write_one(struct fid_ep *fid, struct rma r, const struct iovec iov, bool locked)
{
	struct hd_fi_ep *ep = (struct hd_fi_ep *)fid;

	r.op = HD_RMA_WRITE;
	r.flags |= ep->call.send_flags;
	return rma_one(ep, r, iov, ep->call.max[HD_FI_OF_RMA].send, locked);
}

HD_FI_INLINE ssize_t rma_inject_one(struct fid_ep *fid, struct rma r, const struct iovec iov, bool locked)
{
	struct hd_fi_ep *ep = (struct hd_fi_ep *)fid;

	r.op = HD_RMA_WRITE;
	r.flags |= ep->call.inject_flags;
	r.context = hd_fi_no_context(ep);
	return hd_fi_injected(ep, rma_one(ep, r, iov, ep->call.max[HD_FI_OF_RMA].inject, locked));
}

#define OURS ((const struct iovec){ (void *)buf, len })

#define RMA_CALLS(suffix, locked) \
	static ssize_t rma_read_##suffix(struct fid_ep *ep, void *buf, size_t len, void *desc, \
					 fi_addr_t src, uint64_t addr, uint64_t key, void *context) \
	{ \
		const struct rma r = { .peer = src, .addr = addr, .key = key, .context = context }; \
		return rma_read_one(ep, r, OURS, locked); \
	} \
	static ssize_t rma_write_##suffix(struct fid_ep *ep, const void *buf, size_t len, void *desc, \
					  fi_addr_t dest, uint64_t addr, uint64_t key, void *context) \
	{ \
		const struct rma r = { .peer = dest, .addr = addr, .key = key, .context = context }; \
		return rma_write_one(ep, r, OURS, locked); \
	} \
	static ssize_t rma_inject_##suffix(struct fid_ep *ep, const void *buf, size_t len, fi_addr_t dest, \
					   uint64_t addr, uint64_t key) \
	{ \
		const struct rma r = { .peer = dest, .addr = addr, .key = key }; \
		return rma_inject_one(ep, r, OURS, locked); \
	} \
	static ssize_t rma_writedata_##suffix(struct fid_ep *ep, const void *buf, size_t len, void *desc, \
					      uint64_t data, fi_addr_t dest, uint64_t addr, uint64_t key, \
					      void *context) \
	{ \
		const struct rma r = { .peer = dest, \
				       .addr = addr, \
				       .key = key, \
				       .data = data, \
				       .context = context, \
				       .flags = HD_SEND_IMM }; \
		return rma_write_one(ep, r, OURS, locked); \
	} \
	static ssize_t rma_injectdata_##suffix(struct fid_ep *ep, const void *buf, size_t len, \
					       uint64_t data, fi_addr_t dest, uint64_t addr, uint64_t key) \
	{ \
		const struct rma r = { \
			.peer = dest, .addr = addr, .key = key, .data = data, .flags = HD_SEND_IMM \
		}; \
		return rma_inject_one(ep, r, OURS, locked); \
	}

RMA_CALLS(plain, false)
RMA_CALLS(locked, true)

/* ---- segments and flags ---------------------------------------------------------------------- */

static ssize_t check_ours(const struct hd_fi_ep *ep, const struct iovec *iov, size_t count, uint64_t max)
{
	ssize_t rc = hd_fi_check_iov(iov, count, ep->attr.tx_iov);

	if (rc)
		return rc;
	return hd_fi_iov_total(iov, count) > max
		       ? hd_fi_no(FI_EMSGSIZE,
				  "longer than max_msg_size, or than inject_size where it is injected")
		       : 0;
}

/* One remote segment, as long as ours together. */
static ssize_t rma_v(struct hd_fi_ep *ep, const struct iovec *iov, size_t count, const struct rma *r,
		     uint64_t max)
{
	ssize_t rc = check_ours(ep, iov, count, max);
	const struct hd_rma_seg seg = { .addr = r->addr,
					.len = rc ? 0 : hd_fi_iov_total(iov, count),
					.key = r->key };

	if (rc)
		return rc;
	return ofi_rma_post(
		ep, r, (struct hd_rma_args){ .iov = iov, .count = (int)count, .segs = &seg, .seg_count = 1 },
		ep->domain->locked);
}

static ssize_t rma_readv(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t count,
			 fi_addr_t src, uint64_t addr, uint64_t key, void *context)
{
	struct hd_fi_ep *ep = (struct hd_fi_ep *)fid;
	const struct rma r = { .op = HD_RMA_READ,
			       .peer = src,
			       .addr = addr,
			       .key = key,
			       .context = context,
			       .flags = ep->call.read_flags };

	return rma_v(ep, iov, count, &r, ep->call.longest[HD_FI_OF_RMA]);
}

static ssize_t rma_writev(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t count,
			  fi_addr_t dest, uint64_t addr, uint64_t key, void *context)
{
	struct hd_fi_ep *ep = (struct hd_fi_ep *)fid;
	const struct rma r = {
		.peer = dest, .addr = addr, .key = key, .context = context, .flags = ep->call.send_flags
	};

	return rma_v(ep, iov, count, &r, ep->call.max[HD_FI_OF_RMA].send);
}

ssize_t hd_fi_check_rma(const struct hd_fi_ep *ep, const struct fi_msg_rma *msg, uint32_t flags)
{
	ssize_t rc =
		check_ours(ep, msg->msg_iov, msg->iov_count, hd_fi_send_max(&ep->call, HD_FI_OF_RMA, flags));

	if (rc)
		return rc;
	if (msg->rma_iov_count > ep->attr.rma_iov || (msg->rma_iov_count && !msg->rma_iov))
		return hd_fi_no(FI_EINVAL, "more remote segments than rma_iov_limit, or no list of them");
	return 0;
}

/*
 * Lengths on both sides must agree; the engine looks. It looks at the first remote segment
 * also where there is none.
 */
ssize_t hd_fi_post_rma(struct hd_fi_ep *ep, const struct fi_msg_rma *msg, enum hd_rma_op op, uint32_t flags,
		       bool locked)
{
	static const struct fi_rma_iov nothing;
	const struct fi_rma_iov *there = msg->rma_iov_count ? msg->rma_iov : &nothing;
	const struct rma r = {
		.op = op, .peer = msg->addr, .data = msg->data, .context = msg->context, .flags = flags
	};

	return ofi_rma_post(ep, &r,
			    (struct hd_rma_args){ .iov = msg->msg_iov,
						  .count = (int)msg->iov_count,
						  .segs = (const struct hd_rma_seg *)there,
						  .seg_count = (int)msg->rma_iov_count },
			    locked);
}

static ssize_t rma_msg(struct hd_fi_ep *ep, const struct fi_msg_rma *msg, enum hd_rma_op op, uint32_t flags)
{
	ssize_t rc = hd_fi_check_rma(ep, msg, flags);

	return rc ? rc : hd_fi_post_rma(ep, msg, op, flags, ep->domain->locked);
}

static ssize_t rma_readmsg(struct fid_ep *fid, const struct fi_msg_rma *msg, uint64_t flags)
{
	struct hd_fi_ep *ep = (struct hd_fi_ep *)fid;
	uint32_t wanted;

	if (!msg || flags & (FI_INJECT | FI_REMOTE_CQ_DATA))
		return hd_fi_no(FI_EINVAL,
				"fi_readmsg without a message, or with FI_INJECT or FI_REMOTE_CQ_DATA");
	if (hd_fi_send_flags(ep, flags, &wanted))
		return flags & FI_TRIGGER
			       ? hd_fi_trigger_rma(ep, msg, HD_RMA_READ, flags)
			       : hd_fi_no(FI_EINVAL, "fi_readmsg with flags that it does not take");
	return rma_msg(ep, msg, HD_RMA_READ, wanted);
}

static ssize_t rma_writemsg(struct fid_ep *fid, const struct fi_msg_rma *msg, uint64_t flags)
{
	struct hd_fi_ep *ep = (struct hd_fi_ep *)fid;
	uint32_t wanted;

	if (!msg)
		return hd_fi_no(FI_EINVAL, "fi_writemsg without a message");
	if (hd_fi_send_flags(ep, flags, &wanted))
		return flags & FI_TRIGGER
			       ? hd_fi_trigger_rma(ep, msg, HD_RMA_WRITE, flags)
			       : hd_fi_no(FI_EINVAL, "fi_writemsg with flags that it does not take");
	return rma_msg(ep, msg, HD_RMA_WRITE, wanted);
}

#define TABLE(suffix) \
	{ \
		.size = sizeof(struct fi_ops_rma), .read = rma_read_##suffix, .readv = rma_readv, \
		.readmsg = rma_readmsg, .write = rma_write_##suffix, .writev = rma_writev, \
		.writemsg = rma_writemsg, .inject = rma_inject_##suffix, \
		.writedata = rma_writedata_##suffix, .injectdata = rma_injectdata_##suffix \
	}

struct fi_ops_rma hd_fi_rma_ops[2] = { TABLE(plain), TABLE(locked) };
