/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * fi_msg(3). The calls that programs make most exist with and without the node's lock; those with
 * segments and flags look.
 */
#include "front/ofi/mc.h"
#include "front/ofi/newer.h"
#include "front/ofi/trigger.h"

#define RECV_FLAGS (FI_COMPLETION | FI_MORE | FI_MULTI_RECV | FI_TRANSMIT_COMPLETE)

HD_FI_INLINE ssize_t msg_recv_one(struct fid_ep *fid, void *buf, size_t len, fi_addr_t src, void *context,
				  bool locked)
{
	struct hd_fi_ep *ep = (struct hd_fi_ep *)fid;
	const struct iovec iov = { buf, hd_fi_rare(!buf) ? 0 : len }; /* hd_fi_check_room */
	const struct hd_fi_recv r = {
		.iov = &iov, .count = 1, .src = src, .context = context, .flags = ep->call.recv_flags
	};

	return hd_fi_post_recv(ep, r, locked);
}

HD_FI_INLINE ssize_t msg_send_one(struct fid_ep *fid, struct hd_fi_send s, bool locked)
{
	struct hd_fi_ep *ep = (struct hd_fi_ep *)fid;

	s.flags |= ep->call.send_flags;
	return hd_fi_post_send(ep, s, ep->call.max[HD_FI_OF_MSG].send, locked);
}

HD_FI_INLINE ssize_t msg_inject_one(struct fid_ep *fid, struct hd_fi_send s, bool locked)
{
	struct hd_fi_ep *ep = (struct hd_fi_ep *)fid;

	s.flags |= ep->call.inject_flags;
	s.context = hd_fi_no_context(ep);
	return hd_fi_injected(ep, hd_fi_post_send(ep, s, ep->call.max[HD_FI_OF_MSG].inject, locked));
}

#define MSG_CALLS(suffix, locked) \
	static ssize_t msg_recv_##suffix(struct fid_ep *ep, void *buf, size_t len, void *desc, \
					 fi_addr_t src, void *context) \
	{ \
		return msg_recv_one(ep, buf, len, src, context, locked); \
	} \
	static ssize_t msg_send_##suffix(struct fid_ep *ep, const void *buf, size_t len, void *desc, \
					 fi_addr_t dest, void *context) \
	{ \
		const struct hd_fi_send s = { .buf = buf, .len = len, .dest = dest, .context = context }; \
		return msg_send_one(ep, s, locked); \
	} \
	static ssize_t msg_inject_##suffix(struct fid_ep *ep, const void *buf, size_t len, fi_addr_t dest) \
	{ \
		const struct hd_fi_send s = { .buf = buf, .len = len, .dest = dest }; \
		return msg_inject_one(ep, s, locked); \
	} \
	static ssize_t msg_senddata_##suffix(struct fid_ep *ep, const void *buf, size_t len, void *desc, \
					     uint64_t data, fi_addr_t dest, void *context) \
	{ \
		const struct hd_fi_send s = { .buf = buf, \
					      .len = len, \
					      .dest = dest, \
					      .data = data, \
					      .context = context, \
					      .flags = HD_SEND_IMM }; \
		return msg_send_one(ep, s, locked); \
	} \
	static ssize_t msg_injectdata_##suffix(struct fid_ep *ep, const void *buf, size_t len, \
					       uint64_t data, fi_addr_t dest) \
	{ \
		const struct hd_fi_send s = { \
			.buf = buf, .len = len, .dest = dest, .data = data, .flags = HD_SEND_IMM \
		}; \
		return msg_inject_one(ep, s, locked); \
	}

MSG_CALLS(plain, false)
MSG_CALLS(locked, true)

static ssize_t msg_sendv(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t count,
			 fi_addr_t dest, void *context)
{
	struct hd_fi_ep *ep = (struct hd_fi_ep *)fid;
	const struct hd_fi_send s = { .dest = dest, .context = context, .flags = ep->call.send_flags };

	return hd_fi_post_sendv(ep, iov, count, &s, ep->call.max[HD_FI_OF_MSG].send);
}

static ssize_t ofi_msg_sendmsg(struct fid_ep *fid, const struct fi_msg *msg, uint64_t flags)
{
	struct hd_fi_ep *ep = (struct hd_fi_ep *)fid;
	struct hd_fi_send s;
	int rc;

	if (!msg)
		return hd_fi_no(FI_EINVAL, "fi_sendmsg without a message");
	s = (struct hd_fi_send){ .dest = msg->addr, .data = msg->data, .context = msg->context };
	rc = hd_fi_send_flags(ep, flags, &s.flags);
	if (rc) {
		s.flags = 0;
		if (flags & FI_TRIGGER)
			return hd_fi_trigger_send(ep, &s, msg->msg_iov, msg->iov_count, flags);
		return flags & FI_MULTICAST ? hd_fi_mc_send(ep, msg, flags) : rc;
	}
	return hd_fi_post_sendv(ep, msg->msg_iov, msg->iov_count, &s,
				hd_fi_send_max(&ep->call, HD_FI_OF_MSG, s.flags));
}

static ssize_t ofi_msg_recvv(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t count,
			     fi_addr_t src, void *context)
{
	struct hd_fi_ep *ep = (struct hd_fi_ep *)fid;
	const struct hd_fi_recv r = {
		.iov = iov, .count = count, .src = src, .context = context, .flags = ep->call.recv_flags
	};

	return hd_fi_post_recvv(ep, &r);
}

/* With flags that are not everyday. */
static ssize_t msg_recv_otherwise(struct hd_fi_ep *ep, struct hd_fi_recv *r, uint64_t flags)
{
	if (flags & FI_TRIGGER)
		return hd_fi_trigger_recv(ep, r, flags);
	if (flags & ~(RECV_FLAGS | FI_AUTH_KEY))
		return hd_fi_no(FI_EINVAL, "fi_recvmsg with flags that it does not take");
	r->by_key = flags & FI_AUTH_KEY;
	r->flags = hd_fi_recv_completes(&ep->call, flags) | (flags & FI_MULTI_RECV ? HD_RECV_MULTI : 0);
	return hd_fi_post_recvv(ep, r);
}

static ssize_t ofi_msg_recvmsg(struct fid_ep *fid, const struct fi_msg *msg, uint64_t flags)
{
	struct hd_fi_ep *ep = (struct hd_fi_ep *)fid;
	struct hd_fi_recv r;

	if (!msg)
		return hd_fi_no(FI_EINVAL, "fi_recvmsg without a message");
	r = (struct hd_fi_recv){
		.iov = msg->msg_iov, .count = msg->iov_count, .src = msg->addr, .context = msg->context
	};
	if (hd_fi_rare(flags & ~RECV_FLAGS))
		return msg_recv_otherwise(ep, &r, flags);
	r.flags = hd_fi_recv_completes(&ep->call, flags) | (flags & FI_MULTI_RECV ? HD_RECV_MULTI : 0);
	return hd_fi_post_recvv(ep, &r);
}

#define TABLE(suffix) \
	{ \
		.size = sizeof(struct fi_ops_msg), .recv = msg_recv_##suffix, .recvv = ofi_msg_recvv, \
		.recvmsg = ofi_msg_recvmsg, .send = msg_send_##suffix, .sendv = msg_sendv, \
		.sendmsg = ofi_msg_sendmsg, .inject = msg_inject_##suffix, \
		.senddata = msg_senddata_##suffix, .injectdata = msg_injectdata_##suffix \
	}

struct fi_ops_msg hd_fi_msg_ops[2] = { TABLE(plain), TABLE(locked) };
