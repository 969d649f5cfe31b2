/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Data calls of endpoints whose info had FI_MSG_PREFIX: the program keeps HD_FI_PREFIX bytes free
 * in front of every buffer. Nothing is put there: these calls step over the space and hand on to
 * the usual ones, and cq.c counts it again. Limits are for what is behind it, fi_getinfo(3).
 */
#include "front/ofi/ep.h"

static const struct fi_ops_msg *msg_ops(const struct fid_ep *fid)
{
	return &hd_fi_msg_ops[((const struct hd_fi_ep *)fid)->domain->locked];
}

static const struct fi_ops_tagged *tagged_ops(const struct fid_ep *fid)
{
	return &hd_fi_tagged_ops[((const struct hd_fi_ep *)fid)->domain->locked];
}

static bool has_prefix(const void *buf, size_t len)
{
	return buf && len >= HD_FI_PREFIX;
}

int hd_fi_prefix_step(const struct iovec *iov, size_t count, struct iovec *out)
{
	if (!iov || !count || count > HD_MAX_IOV || !has_prefix(iov->iov_base, iov->iov_len))
		return hd_fi_no(FI_EINVAL,
				"a message whose first segment has no room for the prefix (FI_MSG_PREFIX)");
	for (size_t i = 0; i < count; i++)
		out[i] = iov[i];
	out->iov_base = (char *)out->iov_base + HD_FI_PREFIX;
	out->iov_len -= HD_FI_PREFIX;
	return 0;
}

#define AFTER(buf) ((char *)(uintptr_t)(buf) + HD_FI_PREFIX)
#define REST(len) ((len)-HD_FI_PREFIX)
#define CHECK(buf, len) \
	do { \
		if (!has_prefix(buf, len)) \
			return hd_fi_no(FI_EINVAL, "a buffer without room for the prefix (FI_MSG_PREFIX)"); \
	} while (0)

/* ---- untagged -------------------------------------------------------------------------------- */

static ssize_t prefix_msg_recv(struct fid_ep *ep, void *buf, size_t len, void *desc, fi_addr_t src,
			       void *context)
{
	CHECK(buf, len);
	return msg_ops(ep)->recv(ep, AFTER(buf), REST(len), desc, src, context);
}

static ssize_t prefix_msg_recvv(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count,
				fi_addr_t src, void *context)
{
	struct iovec rest[HD_MAX_IOV];
	int rc = hd_fi_prefix_step(iov, count, rest);

	return rc ? rc : msg_ops(ep)->recvv(ep, rest, desc, count, src, context);
}

static ssize_t prefix_msg_recvmsg(struct fid_ep *ep, const struct fi_msg *msg, uint64_t flags)
{
	struct iovec rest[HD_MAX_IOV];
	struct fi_msg moved;
	int rc = msg && !(flags & FI_MULTI_RECV)
			 ? hd_fi_prefix_step(msg->msg_iov, msg->iov_count, rest)
			 : hd_fi_no(FI_EINVAL,
				    "fi_recvmsg without a message, or FI_MULTI_RECV with FI_MSG_PREFIX");

	if (rc)
		return rc;
	moved = *msg;
	moved.msg_iov = rest;
	return msg_ops(ep)->recvmsg(ep, &moved, flags);
}

static ssize_t prefix_msg_send(struct fid_ep *ep, const void *buf, size_t len, void *desc, fi_addr_t dest,
			       void *context)
{
	CHECK(buf, len);
	return msg_ops(ep)->send(ep, AFTER(buf), REST(len), desc, dest, context);
}

static ssize_t prefix_msg_sendv(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count,
				fi_addr_t dest, void *context)
{
	struct iovec rest[HD_MAX_IOV];
	int rc = hd_fi_prefix_step(iov, count, rest);

	return rc ? rc : msg_ops(ep)->sendv(ep, rest, desc, count, dest, context);
}

static ssize_t prefix_msg_sendmsg(struct fid_ep *ep, const struct fi_msg *msg, uint64_t flags)
{
	struct iovec rest[HD_MAX_IOV];
	struct fi_msg moved;
	int rc = msg ? hd_fi_prefix_step(msg->msg_iov, msg->iov_count, rest)
		     : hd_fi_no(FI_EINVAL, "fi_sendmsg without a message");

	if (rc)
		return rc;
	moved = *msg;
	moved.msg_iov = rest;
	return msg_ops(ep)->sendmsg(ep, &moved, flags);
}

static ssize_t prefix_msg_inject(struct fid_ep *ep, const void *buf, size_t len, fi_addr_t dest)
{
	CHECK(buf, len);
	return msg_ops(ep)->inject(ep, AFTER(buf), REST(len), dest);
}

static ssize_t prefix_msg_senddata(struct fid_ep *ep, const void *buf, size_t len, void *desc, uint64_t data,
				   fi_addr_t dest, void *context)
{
	CHECK(buf, len);
	return msg_ops(ep)->senddata(ep, AFTER(buf), REST(len), desc, data, dest, context);
}

static ssize_t prefix_msg_injectdata(struct fid_ep *ep, const void *buf, size_t len, uint64_t data,
				     fi_addr_t dest)
{
	CHECK(buf, len);
	return msg_ops(ep)->injectdata(ep, AFTER(buf), REST(len), data, dest);
}

struct fi_ops_msg hd_fi_prefix_msg_ops = {
	.size = sizeof(struct fi_ops_msg),
	.recv = prefix_msg_recv,
	.recvv = prefix_msg_recvv,
	.recvmsg = prefix_msg_recvmsg,
	.send = prefix_msg_send,
	.sendv = prefix_msg_sendv,
	.sendmsg = prefix_msg_sendmsg,
	.inject = prefix_msg_inject,
	.senddata = prefix_msg_senddata,
	.injectdata = prefix_msg_injectdata,
};

/* ---- tagged ---------------------------------------------------------------------------------- */

static ssize_t prefix_tagged_recv(struct fid_ep *ep, void *buf, size_t len, void *desc, fi_addr_t src,
				  uint64_t tag, uint64_t ignore, void *context)
{
	CHECK(buf, len);
	return tagged_ops(ep)->recv(ep, AFTER(buf), REST(len), desc, src, tag, ignore, context);
}

static ssize_t prefix_tagged_recvv(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count,
				   fi_addr_t src, uint64_t tag, uint64_t ignore, void *context)
{
	struct iovec rest[HD_MAX_IOV];
	int rc = hd_fi_prefix_step(iov, count, rest);

	return rc ? rc : tagged_ops(ep)->recvv(ep, rest, desc, count, src, tag, ignore, context);
}

/* Who looks may bring no buffer, and who discards brings none. */
static bool takes_no_buffer(const struct fi_msg_tagged *msg, uint64_t flags)
{
	return flags & FI_DISCARD || (flags & FI_PEEK && !msg->iov_count);
}

static ssize_t prefix_tagged_recvmsg(struct fid_ep *ep, const struct fi_msg_tagged *msg, uint64_t flags)
{
	struct iovec rest[HD_MAX_IOV];
	struct fi_msg_tagged moved;
	int rc;

	if (!msg || takes_no_buffer(msg, flags))
		return tagged_ops(ep)->recvmsg(ep, msg, flags);
	rc = hd_fi_prefix_step(msg->msg_iov, msg->iov_count, rest);
	if (rc)
		return rc;
	moved = *msg;
	moved.msg_iov = rest;
	return tagged_ops(ep)->recvmsg(ep, &moved, flags);
}

static ssize_t prefix_tagged_send(struct fid_ep *ep, const void *buf, size_t len, void *desc, fi_addr_t dest,
				  uint64_t tag, void *context)
{
	CHECK(buf, len);
	return tagged_ops(ep)->send(ep, AFTER(buf), REST(len), desc, dest, tag, context);
}

static ssize_t prefix_tagged_sendv(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count,
				   fi_addr_t dest, uint64_t tag, void *context)
{
	struct iovec rest[HD_MAX_IOV];
	int rc = hd_fi_prefix_step(iov, count, rest);

	return rc ? rc : tagged_ops(ep)->sendv(ep, rest, desc, count, dest, tag, context);
}

static ssize_t prefix_tagged_sendmsg(struct fid_ep *ep, const struct fi_msg_tagged *msg, uint64_t flags)
{
	struct iovec rest[HD_MAX_IOV];
	struct fi_msg_tagged moved;
	int rc = msg ? hd_fi_prefix_step(msg->msg_iov, msg->iov_count, rest)
		     : hd_fi_no(FI_EINVAL, "fi_tsendmsg without a message");

	if (rc)
		return rc;
	moved = *msg;
	moved.msg_iov = rest;
	return tagged_ops(ep)->sendmsg(ep, &moved, flags);
}

static ssize_t prefix_tagged_inject(struct fid_ep *ep, const void *buf, size_t len, fi_addr_t dest,
				    uint64_t tag)
{
	CHECK(buf, len);
	return tagged_ops(ep)->inject(ep, AFTER(buf), REST(len), dest, tag);
}

static ssize_t prefix_tagged_senddata(struct fid_ep *ep, const void *buf, size_t len, void *desc,
				      uint64_t data, fi_addr_t dest, uint64_t tag, void *context)
{
	CHECK(buf, len);
	return tagged_ops(ep)->senddata(ep, AFTER(buf), REST(len), desc, data, dest, tag, context);
}

static ssize_t prefix_tagged_injectdata(struct fid_ep *ep, const void *buf, size_t len, uint64_t data,
					fi_addr_t dest, uint64_t tag)
{
	CHECK(buf, len);
	return tagged_ops(ep)->injectdata(ep, AFTER(buf), REST(len), data, dest, tag);
}

struct fi_ops_tagged hd_fi_prefix_tagged_ops = {
	.size = sizeof(struct fi_ops_tagged),
	.recv = prefix_tagged_recv,
	.recvv = prefix_tagged_recvv,
	.recvmsg = prefix_tagged_recvmsg,
	.send = prefix_tagged_send,
	.sendv = prefix_tagged_sendv,
	.sendmsg = prefix_tagged_sendmsg,
	.inject = prefix_tagged_inject,
	.senddata = prefix_tagged_senddata,
	.injectdata = prefix_tagged_injectdata,
};
