/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* What programs send and receive through a stream. */
#include "front/verbs/qp.h"
#include "front/verbs/rs/rs.h"

#include <errno.h>

/* Must the other end's program read before this one's can send? `heddle info` shows it. */
static void show_kept(struct rs *rs, bool is_kept)
{
	struct hv_qp *qp = hv_qp_of(rs->v.qp);

	if (!hv_enter(qp->ctx))
		return;
	hd_ep_set_kept(qp->ep, is_kept);
	hv_leave(qp->ctx);
	rs->out.is_kept = is_kept;
}

/* One message of it: bytes, or a negative errno; 0: not now. */
static ssize_t send_some(struct rs *rs, struct rs_piece *p, size_t left)
{
	uint32_t block = rs->out.peer_block, len;
	char small[RS_SMALL], *to = small;
	bool is_small = left <= RS_SMALL;
	int rc = rs_sendable(&rs->conn);

	if (rc || !rs_may_send(rs))
		return rc;
	if (is_small)
		block = RS_SMALL < block ? RS_SMALL : block;
	else
		to = rs_block(&rs->out);
	len = rs_gather(p, to, block);
	rc = rs_post(rs, &(struct rs_message){ RS_DATA, to, len, !is_small, NULL });
	if (rc)
		return rc;
	if (!is_small)
		rs_block_used(&rs->out);
	if (hv_unlikely(rs->out.is_kept))
		show_kept(rs, false);
	return len;
}

static int stream_stopped(struct rs *rs, int flags)
{
	rs->wait.refused++;
	if (rs->conn.state == RS_CONNECTED && !rs->out.credit && !rs->out.is_kept)
		show_kept(rs, true);
	return rs_wait(rs, !(flags & MSG_DONTWAIT));
}

ssize_t rs_stream_send(struct rs *rs, const struct iovec *iov, int count, int flags)
{
	size_t total = rs_total(iov, count), done = 0;
	struct rs_piece p = { iov, count, 0 };
	ssize_t rc = 0;

	rs_step(rs);
	if (!total)
		return rs_sendable(&rs->conn);
	while (done < total && rc >= 0) {
		rc = send_some(rs, &p, total - done);
		if (rc > 0)
			done += (size_t)rc;
		else if (rc == 0)
			rc = stream_stopped(rs, flags);
	}
	return done ? (ssize_t)done : rc;
}

/* Without data: 0 at the end, or what is wrong; -EAGAIN: wait. */
static int unreadable(struct rs_conn *conn)
{
	int err;

	if (conn->state == RS_OPEN || conn->state == RS_LISTENING)
		return -ENOTCONN;
	err = rs_conn_err(conn);
	if (err)
		return -err;
	return conn->eof || conn->shut_read || conn->state == RS_OVER ? 0 : -EAGAIN;
}

ssize_t rs_stream_receive(struct rs *rs, const struct iovec *iov, int count, int flags)
{
	size_t total = rs_total(iov, count), done = 0;
	int rc = 0;

	rs_step(rs);
	for (;;) {
		done += rs_scatter(rs, iov, count, done, flags);
		if (rs->conn.state == RS_CONNECTED)
			rs_return_credit(rs);
		if (done == total || (done && !(flags & MSG_WAITALL)))
			return (ssize_t)done;
		rc = unreadable(&rs->conn);
		if (rc == -EAGAIN)
			rc = rs_wait(rs, !(flags & MSG_DONTWAIT));
		else
			return done ? (ssize_t)done : rc;
		if (rc)
			return done ? (ssize_t)done : rc;
	}
}
