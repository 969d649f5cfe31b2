/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* What programs send and receive by datagram rsockets. */
#include "front/verbs/ops.h"
#include "front/verbs/rs/dgram.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

/*
 * How often a sender that waits to be told of a queue pair looks for those who
 * ask others of its process.
 */
#define OTHERS_MS 2

/* ---- sending --------------------------------------------------------------------------------- */

static int dgram_post(struct rs *rs, const struct rs_dest *d, char *from, uint32_t len, bool block)
{
	bool tells = block || ++rs->out.untold >= rs->out.places / 4;
	struct ibv_sge sge = { (uintptr_t)from, len, rs->v.mr->lkey };
	struct ibv_send_wr wr = { .wr_id = RS_SEND | (block ? RS_FROM_BLOCK : 0) | rs->out.sent,
				  .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_SEND,
				  .send_flags = (block ? 0 : IBV_SEND_INLINE) |
						(tells ? IBV_SEND_SIGNALED : 0),
				  .wr.ud = { .ah = d->ah, .remote_qpn = d->qpn, .remote_qkey = d->qkey } },
			   *bad;
	int rc = -hv_post_send(rs->v.qp, &wr, &bad);

	if (rc)
		return rc;
	if (tells)
		rs->out.untold = 0;
	rs->out.sent++;
	return 0;
}

/* Who it is for is known: bytes, -errno, or -EAGAIN: there is no place. */
static ssize_t dgram_send_to(struct rs *rs, const struct rs_dest *d, const struct iovec *iov, int count)
{
	struct rs_dgram_head head = { .port = htobe16(hv_sockaddr_port(&rs->id->route.addr.src_addr)) };
	struct rs_piece p = { iov, count, 0 };
	char small[RS_SMALL], *to = small;
	size_t len = rs_total(iov, count);
	bool block = len + RS_DGRAM_HEAD > RS_SMALL;
	int rc;

	if (!rs->out.free || !rs_has_place(&rs->out))
		return -EAGAIN;
	if (block)
		to = rs_dgram_block_at(rs->out.mem, rs->out.block);
	memcpy(head.from, d->own, sizeof(head.from));
	hv_sockaddr_map((const struct sockaddr *)&d->addr, head.to);
	memcpy(to, &head, sizeof(head));
	rs_gather(&p, to + RS_DGRAM_HEAD, RS_DGRAM_MOST);
	rc = dgram_post(rs, d, to, (uint32_t)(len + RS_DGRAM_HEAD), block);
	if (rc)
		return rc;
	if (block)
		rs_block_used(&rs->out);
	return (ssize_t)len;
}

/* NULL: not yet; *rc: 0, or -errno; 1: nobody is there, which nobody is told. */
static struct rs_dest *dgram_find(struct rs *rs, const struct sockaddr *to, int *rc)
{
	struct rs_dest *d = rs_dest_find(rs->dgram, rs->ch, to);

	*rc = d ? d->nobody : -errno;
	if (*rc == 1)
		rs_dest_forget(rs->dgram, d);
	return *rc || !d->ah ? NULL : d;
}

static int dgram_pending(struct rs_conn *conn)
{
	int err = rs_conn_err(conn);

	return conn->shut_write ? -EPIPE : -err;
}

/*
 * Whoever asks this process's others is told now: their program may be the one that waits here. Our
 * own lock is given up meanwhile.
 */
static void answer_for_others(struct rs *rs)
{
	struct rs *other;

	pthread_mutex_unlock(&rs->lock);
	for (int fd = 0; (other = rs_next(&fd)); rs_leave(other, 0))
		if (other != rs && other->dgram && other->v.cq)
			rs_step(other);
	pthread_mutex_lock(&rs->lock);
}

/* Until more is known of who has been asked, or others may have been: 0, -errno. */
static int await_answer(struct rs *rs, bool may_wait)
{
	int rc;

	if (!may_wait || rs->nonblocking)
		return -EAGAIN;
	answer_for_others(rs);
	rc = rs_wait_for(rs, OTHERS_MS);
	return rc == -ETIMEDOUT ? 0 : rc;
}

ssize_t rs_dgram_send(struct rs *rs, const struct iovec *iov, int count, const struct sockaddr *to, int flags)
{
	size_t len = rs_total(iov, count);
	struct rs_dest *d;
	ssize_t sent = -EAGAIN;
	int rc = rs_dgram_bind(rs, NULL);

	if (!to)
		to = rs_dgram_peer(rs->dgram);
	if (!rc && (!to || len > RS_DGRAM_MOST))
		rc = to ? -EMSGSIZE : -EDESTADDRREQ;
	while (!rc && sent == -EAGAIN) {
		rs_step(rs);
		rc = dgram_pending(&rs->conn);
		d = rc ? NULL : dgram_find(rs, to, &rc);
		if (d)
			sent = dgram_send_to(rs, d, iov, count);
		rs->wait.refused += !rc && sent == -EAGAIN;
		if (!rc && !d)
			rc = await_answer(rs, !(flags & MSG_DONTWAIT));
		else if (!rc && sent == -EAGAIN)
			rc = rs_wait(rs, !(flags & MSG_DONTWAIT));
	}
	return rc < 0 ? rc : rc > 0 ? (ssize_t)len : sent;
}

/* ---- receiving ------------------------------------------------------------------------------- */

/* The oldest: its length, and what there was room for in *got. */
static size_t dgram_take(struct rs *rs, const struct iovec *iov, int count, bool peek, size_t *got)
{
	struct rs_arrived a = rs->in.arrived[rs->in.first];
	const char *from = rs_dgram_block_at(rs->in.mem, a.block) + HV_GRH + RS_DGRAM_HEAD;

	*got = 0;
	for (int i = 0; i < count && *got < a.len; i++) {
		size_t n = iov[i].iov_len < a.len - *got ? iov[i].iov_len : a.len - *got;

		if (n)
			memcpy(iov[i].iov_base, from + *got, n);
		*got += n;
	}
	if (peek)
		return a.len;
	rs->in.first = (rs->in.first + 1) % rs->in.posts;
	rs->in.count--;
	(void)rs_dgram_post_receive(rs, a.block);
	return a.len;
}

ssize_t rs_dgram_receive(struct rs *rs, struct rs_incoming *in)
{
	size_t len, got;
	int rc = 0;

	rs_step(rs);
	while (!rs->in.count) {
		rc = -rs_conn_err(&rs->conn);
		if (rs->conn.shut_read)
			rc = 1;
		if (!rc)
			rc = rs_wait(rs, !(in->flags & MSG_DONTWAIT));
		if (rc)
			return rc > 0 ? 0 : rc;
	}
	if (in->from && in->from_len)
		rc = rs_name_out(rs->family, (struct sockaddr *)&rs->in.senders[rs->in.first], in->from,
				 in->from_len);
	if (rc)
		return rc;
	len = dgram_take(rs, in->iov, (int)in->count, in->flags & MSG_PEEK, &got);
	in->truncated = got < len;
	return (ssize_t)(in->flags & MSG_TRUNC ? len : got);
}
