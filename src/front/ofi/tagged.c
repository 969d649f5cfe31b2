/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * fi_tagged(3). The calls that programs make most exist with and without the node's lock; those
 * with segments and flags look. FI_PEEK, FI_CLAIM and FI_DISCARD of fi_trecvmsg are at the end.
 */
#include "front/ofi/buffered.h"
#include "front/ofi/newer.h"
#include "front/ofi/trigger.h"

#define LOOK_FLAGS (FI_PEEK | FI_CLAIM | FI_DISCARD)
#define RECV_FLAGS (FI_COMPLETION | FI_MORE | FI_TRANSMIT_COMPLETE | LOOK_FLAGS)

HD_FI_INLINE ssize_t tagged_recv_one(struct fid_ep *fid, void *buf, size_t len, struct hd_fi_recv r,
				     bool locked)
{
	struct hd_fi_ep *ep = (struct hd_fi_ep *)fid;
	const struct iovec iov = { buf, hd_fi_rare(!buf) ? 0 : len }; /* hd_fi_check_room */

	r.iov = &iov;
	r.count = 1;
	r.flags = ep->call.trecv_flags;
	return hd_fi_post_recv(ep, r, locked);
}

HD_FI_INLINE ssize_t tagged_send_one(struct fid_ep *fid, struct hd_fi_send s, bool locked)
{
	struct hd_fi_ep *ep = (struct hd_fi_ep *)fid;

	s.flags |= ep->call.send_flags | HD_SEND_TAGGED;
	return hd_fi_post_send(ep, s, ep->call.max[HD_FI_OF_TAGGED].send, locked);
}

HD_FI_INLINE ssize_t tagged_inject_one(struct fid_ep *fid, struct hd_fi_send s, bool locked)
{
	struct hd_fi_ep *ep = (struct hd_fi_ep *)fid;

	s.flags |= ep->call.inject_flags | HD_SEND_TAGGED;
	s.context = hd_fi_no_context(ep);
	return hd_fi_injected(ep, hd_fi_post_send(ep, s, ep->call.max[HD_FI_OF_TAGGED].inject, locked));
}

#define TAGGED_CALLS(suffix, locked) \
	static ssize_t tagged_recv_##suffix(struct fid_ep *ep, void *buf, size_t len, void *desc, \
					    fi_addr_t src, uint64_t tag, uint64_t ignore, void *context) \
	{ \
		const struct hd_fi_recv r = { .src = src, .tag = tag, .ignore = ignore, .context = context }; \
		return tagged_recv_one(ep, buf, len, r, locked); \
	} \
	static ssize_t tagged_send_##suffix(struct fid_ep *ep, const void *buf, size_t len, void *desc, \
					    fi_addr_t dest, uint64_t tag, void *context) \
	{ \
		const struct hd_fi_send s = { \
			.buf = buf, .len = len, .dest = dest, .tag = tag, .context = context \
		}; \
		return tagged_send_one(ep, s, locked); \
	} \
	static ssize_t tagged_inject_##suffix(struct fid_ep *ep, const void *buf, size_t len, \
					      fi_addr_t dest, uint64_t tag) \
	{ \
		const struct hd_fi_send s = { .buf = buf, .len = len, .dest = dest, .tag = tag }; \
		return tagged_inject_one(ep, s, locked); \
	} \
	static ssize_t tagged_senddata_##suffix(struct fid_ep *ep, const void *buf, size_t len, void *desc, \
						uint64_t data, fi_addr_t dest, uint64_t tag, void *context) \
	{ \
		const struct hd_fi_send s = { .buf = buf, \
					      .len = len, \
					      .dest = dest, \
					      .tag = tag, \
					      .data = data, \
					      .context = context, \
					      .flags = HD_SEND_IMM }; \
		return tagged_send_one(ep, s, locked); \
	} \
	static ssize_t tagged_injectdata_##suffix(struct fid_ep *ep, const void *buf, size_t len, \
						  uint64_t data, fi_addr_t dest, uint64_t tag) \
	{ \
		const struct hd_fi_send s = { \
			.buf = buf, .len = len, .dest = dest, .tag = tag, .data = data, .flags = HD_SEND_IMM \
		}; \
		return tagged_inject_one(ep, s, locked); \
	}

TAGGED_CALLS(plain, false)
TAGGED_CALLS(locked, true)

static ssize_t tagged_sendv(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t count,
			    fi_addr_t dest, uint64_t tag, void *context)
{
	struct hd_fi_ep *ep = (struct hd_fi_ep *)fid;
	const struct hd_fi_send s = {
		.dest = dest, .tag = tag, .context = context, .flags = ep->call.send_flags | HD_SEND_TAGGED
	};

	return hd_fi_post_sendv(ep, iov, count, &s, ep->call.max[HD_FI_OF_TAGGED].send);
}

static ssize_t ofi_tagged_sendmsg(struct fid_ep *fid, const struct fi_msg_tagged *msg, uint64_t flags)
{
	struct hd_fi_ep *ep = (struct hd_fi_ep *)fid;
	struct hd_fi_send s;
	int rc;

	if (!msg)
		return hd_fi_no(FI_EINVAL, "fi_tsendmsg without a message");
	s = (struct hd_fi_send){
		.dest = msg->addr, .tag = msg->tag, .data = msg->data, .context = msg->context
	};
	rc = hd_fi_send_flags(ep, flags, &s.flags);
	if (rc) {
		s.flags = HD_SEND_TAGGED;
		return flags & FI_TRIGGER ? hd_fi_trigger_send(ep, &s, msg->msg_iov, msg->iov_count, flags)
					  : rc;
	}
	s.flags |= HD_SEND_TAGGED;
	return hd_fi_post_sendv(ep, msg->msg_iov, msg->iov_count, &s,
				hd_fi_send_max(&ep->call, HD_FI_OF_TAGGED, s.flags));
}

static ssize_t ofi_tagged_recvv(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t count,
				fi_addr_t src, uint64_t tag, uint64_t ignore, void *context)
{
	struct hd_fi_ep *ep = (struct hd_fi_ep *)fid;
	const struct hd_fi_recv r = { .iov = iov,
				      .count = count,
				      .src = src,
				      .tag = tag,
				      .ignore = ignore,
				      .context = context,
				      .flags = ep->call.trecv_flags };

	return hd_fi_post_recvv(ep, &r);
}

/* ---- looking at what waits ------------------------------------------------------------------- */

/*
 * A claimed message is remembered in the program's struct fi_context, which fi_tagged(3) gives us
 * for that: [0] the message, [1] a check, so that a context that holds none, or one of an endpoint
 * that has been closed, is refused. The struct fi_recv_context of buffered endpoints belongs to the
 * program: there the engine knows it by its address.
 */
static uintptr_t check_of(const struct hd_fi_ep *ep, const struct fi_context *context, const void *claim)
{
	return ((uintptr_t)context ^ (uintptr_t)claim) + hd_ep_serial(ep->ep) * UINT64_C(0x9e3779b97f4a7c15);
}

static void claim_keep(struct hd_fi_ep *ep, struct fi_context *context, struct hd_claim *claim)
{
	if (ep->call.buffered) {
		if (claim)
			hd_claim_name(claim, context);
		return;
	}
	context->internal[0] = claim;
	context->internal[1] = claim ? (void *)check_of(ep, context, claim) : NULL;
}

static struct hd_claim *claim_of(const struct hd_fi_ep *ep, const struct fi_context *context)
{
	struct hd_claim *claim = ep->call.buffered ? hd_claim_named(ep->ep, context) : context->internal[0];

	if (ep->call.buffered)
		return claim;
	return claim && (uintptr_t)context->internal[1] == check_of(ep, context, claim) ? claim : NULL;
}

/* Caller holds the node's lock. */
static int peek(struct hd_fi_ep *ep, struct hd_recv_args *args, fi_addr_t src, uint64_t flags)
{
	uint32_t how = (flags & FI_CLAIM ? HD_PEEK_CLAIM : 0) | (flags & FI_DISCARD ? HD_PEEK_DISCARD : 0);
	struct hd_claim *claim = NULL;
	int rc;

	if (flags & FI_CLAIM && claim_of(ep, args->ctx))
		/* it holds one that has not been received */
		return hd_fi_no(FI_EINVAL, "FI_CLAIM with a context that holds a message already");
	rc = hd_fi_recv_source(ep, src, flags & FI_AUTH_KEY, HD_FI_DIRECTED_TAGGED, &args->src);
	if (!rc)
		rc = hd_peek(ep->ep, args, how, &claim);
	if (!rc && flags & FI_CLAIM)
		claim_keep(ep, args->ctx, claim);
	return rc;
}

static int claim_recv(struct hd_fi_ep *ep, struct hd_recv_args *args, uint64_t flags)
{
	struct fi_context *context = args->ctx;
	struct hd_claim *claim = claim_of(ep, context);
	int rc = 0;

	if (!claim)
		return hd_fi_no(FI_EINVAL, "FI_CLAIM with a context that holds no message");
	if (ep->call.buffered) { /* as a message that was handed over */
		args->ctx = ((struct fi_recv_context *)(void *)context)->context;
		args->flags |= HD_RECV_CLAIM;
	}
	if (flags & FI_DISCARD) /* an operation of its own, which completes as such */
		hd_claim_discard(ep->ep, claim, args);
	else
		rc = hd_claim_recv(ep->ep, claim, args);
	if (!rc)
		claim_keep(ep, context, NULL);
	return rc;
}

/*
 * FI_PEEK alone or with one of the others, FI_CLAIM alone or with FI_DISCARD; a
 * claim needs its context.
 */
static bool look_allowed(const struct hd_fi_ep *ep, const struct fi_msg_tagged *msg, uint64_t flags)
{
	uint64_t look = flags & LOOK_FLAGS;

	if (flags & FI_AUTH_KEY && !hd_fi_ep_by_key(ep))
		return false;
	if (look & FI_CLAIM && !msg->context)
		return false;
	return look != FI_DISCARD && look != LOOK_FLAGS;
}

static bool look_copies(const struct hd_fi_calls *call, uint64_t flags)
{
	if (flags & FI_DISCARD)
		return false;
	return !(flags & FI_PEEK) || call->peek_copies;
}

ssize_t hd_fi_tagged_look(struct hd_fi_ep *ep, const struct fi_msg_tagged *msg, uint64_t flags)
{
	static const struct iovec nothing;
	bool completes = flags & FI_PEEK || ep->call.rx_always || flags & FI_COMPLETION;
	struct hd_recv_args args = { .flags = HD_RECV_TAGGED | ep->call.rx_base |
					      (completes ? HD_RECV_COMPLETE : 0),
				     .tag = msg->tag,
				     .ignore = msg->ignore,
				     .ctx = msg->context };
	int rc;

	if (!look_allowed(ep, msg, flags) || !ep->call.rx_asks)
		return hd_fi_no(
			FI_EINVAL,
			"FI_PEEK, FI_CLAIM and FI_DISCARD with other flags, or where nobody can be told");
	if (look_copies(&ep->call, flags)) {
		size_t count = msg->iov_count;

		rc = hd_fi_check_room(msg->msg_iov, &count, ep->attr.rx_iov);
		if (rc)
			return rc;
		args.iov = msg->msg_iov;
		args.count = (int)count;
	}
	if (!(flags & FI_PEEK) && !args.count) {
		args.iov = &nothing;
		args.count = 1;
	}
	hd_fi_lock(ep->domain);
	if (flags & FI_PEEK)
		rc = peek(ep, &args, msg->addr, flags);
	else
		rc = claim_recv(ep, &args, flags);
	hd_fi_unlock(ep->domain);
	return rc;
}

/* With flags that are not everyday. */
static ssize_t tagged_recv_otherwise(struct hd_fi_ep *ep, const struct fi_msg_tagged *msg, uint64_t flags)
{
	struct hd_fi_recv r = { .iov = msg->msg_iov,
				.count = msg->iov_count,
				.src = msg->addr,
				.tag = msg->tag,
				.ignore = msg->ignore,
				.context = msg->context,
				.flags = HD_RECV_TAGGED,
				.by_key = flags & FI_AUTH_KEY };

	if (flags & FI_TRIGGER)
		return hd_fi_trigger_recv(ep, &r, flags);
	if (flags & ~(RECV_FLAGS | FI_AUTH_KEY))
		return hd_fi_no(FI_EINVAL, "fi_trecvmsg with flags that it does not take");
	if (flags & LOOK_FLAGS)
		return hd_fi_tagged_look(ep, msg, flags);
	r.flags |= hd_fi_recv_completes(&ep->call, flags);
	return hd_fi_post_recvv(ep, &r);
}

static ssize_t ofi_tagged_recvmsg(struct fid_ep *fid, const struct fi_msg_tagged *msg, uint64_t flags)
{
	struct hd_fi_ep *ep = (struct hd_fi_ep *)fid;
	struct hd_fi_recv r;

	if (!msg)
		return hd_fi_no(FI_EINVAL, "fi_trecvmsg without a message");
	if (hd_fi_rare(flags & (LOOK_FLAGS | ~RECV_FLAGS)))
		return tagged_recv_otherwise(ep, msg, flags);
	r = (struct hd_fi_recv){ .iov = msg->msg_iov,
				 .count = msg->iov_count,
				 .src = msg->addr,
				 .tag = msg->tag,
				 .ignore = msg->ignore,
				 .context = msg->context,
				 .flags = HD_RECV_TAGGED | hd_fi_recv_completes(&ep->call, flags) };
	return hd_fi_post_recvv(ep, &r);
}

#define TABLE(suffix) \
	{ \
		.size = sizeof(struct fi_ops_tagged), .recv = tagged_recv_##suffix, \
		.recvv = ofi_tagged_recvv, .recvmsg = ofi_tagged_recvmsg, .send = tagged_send_##suffix, \
		.sendv = tagged_sendv, .sendmsg = ofi_tagged_sendmsg, .inject = tagged_inject_##suffix, \
		.senddata = tagged_senddata_##suffix, .injectdata = tagged_injectdata_##suffix \
	}

struct fi_ops_tagged hd_fi_tagged_ops[2] = { TABLE(plain), TABLE(locked) };
