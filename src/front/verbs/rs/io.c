/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* rsend, rrecv and their variants. */
#include "front/verbs/rs/rs.h"

#include <errno.h>
#include <limits.h>

/*
 * There is no urgent data, nor a queue of errors. Flags that mean nothing for rsockets
 * are passed over, as by TCP.
 */
#define REFUSED (MSG_OOB | MSG_ERRQUEUE)

/* rs_leave returns an int. */
static ssize_t io_leave(struct rs *rs, ssize_t rc)
{
	if (rc < 0)
		return rs_leave(rs, (int)rc);
	rs_leave(rs, 0);
	return rc;
}

/* ---- receiving ------------------------------------------------------------------------------- */

/* Where it came from: of a stream nothing is said, as of TCP. */
static ssize_t io_receive(int socket, struct rs_incoming *in)
{
	struct rs *rs = rs_enter(socket);
	ssize_t rc;

	if (!rs)
		return -1;
	if (in->flags & REFUSED)
		rc = -EOPNOTSUPP;
	else if (in->count > IOV_MAX)
		rc = -EINVAL;
	else if (rs->type == SOCK_DGRAM)
		rc = rs_dgram_receive(rs, in);
	else
		rc = rs_stream_receive(rs, in->iov, (int)in->count, in->flags);
	if (rc >= 0 && rs->type == SOCK_STREAM && in->from && in->from_len)
		*in->from_len = 0;
	return io_leave(rs, rc);
}

HV_PUBLIC ssize_t rrecvfrom(int socket, void *buf, size_t len, int flags, struct sockaddr *src_addr,
			    socklen_t *addrlen)
{
	const struct iovec iov = { buf, len };

	return io_receive(socket, &(struct rs_incoming){ &iov, 1, flags, src_addr, addrlen, false });
}

HV_PUBLIC ssize_t rrecv(int socket, void *buf, size_t len, int flags)
{
	return rrecvfrom(socket, buf, len, flags, NULL, NULL);
}

HV_PUBLIC ssize_t rrecvmsg(int socket, struct msghdr *msg, int flags)
{
	struct rs_incoming in = { .flags = flags };
	ssize_t rc;

	if (!msg)
		return hv_cm_ret(-EFAULT);
	in.iov = msg->msg_iov;
	in.count = msg->msg_iovlen;
	in.from = msg->msg_name;
	in.from_len = &msg->msg_namelen;
	rc = io_receive(socket, &in);
	if (rc >= 0) {
		msg->msg_controllen = 0;
		msg->msg_flags = in.truncated ? MSG_TRUNC : 0;
	}
	return rc;
}

HV_PUBLIC ssize_t rread(int socket, void *buf, size_t count)
{
	return rrecv(socket, buf, count, 0);
}

HV_PUBLIC ssize_t rreadv(int socket, const struct iovec *iov, int iovcnt)
{
	return io_receive(socket, &(struct rs_incoming){ iov, (size_t)iovcnt, 0, NULL, NULL, false });
}

/* ---- sending --------------------------------------------------------------------------------- */

struct outgoing {
	const struct iovec *iov;
	size_t count;
	int flags;
	const struct sockaddr *to; /* may be NULL */
	socklen_t to_len;
};

static ssize_t io_send_datagram(struct rs *rs, const struct outgoing *out)
{
	struct sockaddr_storage to;
	int rc = out->to ? rs_name_in(rs->family, out->to, out->to_len, &to) : 0;

	if (rc)
		return rc;
	return rs_dgram_send(rs, out->iov, (int)out->count, out->to ? (struct sockaddr *)&to : NULL,
			     out->flags);
}

/* As with TCP, where a stream goes is not said again. */
static ssize_t send_out(int socket, const struct outgoing *out)
{
	struct rs *rs = rs_enter(socket);
	ssize_t rc;

	if (!rs)
		return -1;
	if (out->flags & REFUSED)
		rc = -EOPNOTSUPP;
	else if (out->count > IOV_MAX)
		rc = -EINVAL;
	else if (rs->type == SOCK_DGRAM)
		rc = io_send_datagram(rs, out);
	else
		rc = rs_stream_send(rs, out->iov, (int)out->count, out->flags);
	return io_leave(rs, rc);
}

HV_PUBLIC ssize_t rsendto(int socket, const void *buf, size_t len, int flags,
			  const struct sockaddr *dest_addr, socklen_t addrlen)
{
	const struct iovec iov = { (void *)(uintptr_t)buf, len };

	return send_out(socket, &(struct outgoing){ &iov, 1, flags, dest_addr, addrlen });
}

HV_PUBLIC ssize_t rsend(int socket, const void *buf, size_t len, int flags)
{
	return rsendto(socket, buf, len, flags, NULL, 0);
}

HV_PUBLIC ssize_t rsendmsg(int socket, const struct msghdr *msg, int flags)
{
	if (!msg)
		return hv_cm_ret(-EFAULT);
	if (msg->msg_control && msg->msg_controllen)
		return hv_cm_ret(-EOPNOTSUPP);
	return send_out(socket, &(struct outgoing){ msg->msg_iov, msg->msg_iovlen, flags, msg->msg_name,
						    msg->msg_namelen });
}

HV_PUBLIC ssize_t rwrite(int socket, const void *buf, size_t count)
{
	return rsend(socket, buf, count, 0);
}

HV_PUBLIC ssize_t rwritev(int socket, const struct iovec *iov, int iovcnt)
{
	return send_out(socket, &(struct outgoing){ iov, (size_t)iovcnt, 0, NULL, 0 });
}
