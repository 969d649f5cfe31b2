/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* The receiving half of stream rsockets. */
#include "front/verbs/ops.h"
#include "front/verbs/rs/rs.h"

#include <errno.h>
#include <string.h>

/* bytes of a message that are rather moved behind those before it than keep a block */
#define MOVED 2048

int rs_post_receive(const struct rs_verbs *v, uint32_t number, char *to, uint32_t len)
{
	struct ibv_sge sge = { (uintptr_t)to, len, v->mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = number, .sg_list = &sge, .num_sge = 1 }, *bad;

	return -hv_post_recv(v->qp, &wr, &bad);
}

static char *receive_block_at(const struct rs_inbound *in, uint32_t block)
{
	return in->mem + (size_t)block * RS_BLOCK;
}

int rs_post_block(struct rs *rs, uint32_t block)
{
	return rs_post_receive(&rs->v, block, receive_block_at(&rs->in, block), RS_BLOCK);
}

/* It may be sent to again. A queue pair that has failed takes no receive, and needs none. */
static void receive_give_back(struct rs *rs, uint32_t block)
{
	if (!rs_post_block(rs, block))
		rs->in.owed++;
}

/* ---- arriving -------------------------------------------------------------------------------- */

/* Small messages that nobody reads share a block, or they would soon use up all. */
static bool receive_joined(struct rs_inbound *in, uint32_t block, uint32_t len)
{
	struct rs_arrived *last = &in->arrived[(in->first + in->count - 1) % in->posts];

	if (!in->count || len > MOVED || last->len + len > RS_BLOCK)
		return false;
	memcpy(receive_block_at(in, last->block) + last->len, receive_block_at(in, block), len);
	last->len += len;
	return true;
}

static void receive_take_data(struct rs *rs, uint32_t block, uint32_t len)
{
	rs->wait.came += len > 0;
	if (rs->conn.shut_read || !len || receive_joined(&rs->in, block, len))
		receive_give_back(rs, block);
	else
		rs->in.arrived[(rs->in.first + rs->in.count++) % rs->in.posts] =
			(struct rs_arrived){ block, len };
}

void rs_arrived(struct rs *rs, uint32_t block, uint32_t kind, uint32_t len)
{
	switch (kind) {
	case RS_DATA:
		receive_take_data(rs, block, len);
		return;
	case RS_FIN:
		rs->wait.came++;
		rs->conn.eof = true;
		rs->conn.deaf |= len > 0;
		break;
	case RS_MAP:
		rs_mapped(&rs->maps, (uint32_t)rs->opt.iomaps, receive_block_at(&rs->in, block), len);
		break;
	default:
		break;
	}
	(void)rs_post_block(rs, block); /* it was none of those that are counted */
}

/* ---- reading --------------------------------------------------------------------------------- */

/* The oldest block has been read. */
static void drop_oldest(struct rs *rs)
{
	uint32_t block = rs->in.arrived[rs->in.first].block;

	rs->in.first = (rs->in.first + 1) % rs->in.posts;
	rs->in.count--;
	rs->in.taken = 0;
	receive_give_back(rs, block);
}

/*
 * Copy what there is, up to len bytes; MSG_PEEK: without taking it, from byte `skip` on; MSG_TRUNC:
 * without copying it, as tcp(7) says.
 */
static size_t receive_copy_out(struct rs *rs, char *to, size_t len, int flags, size_t skip)
{
	bool peek = flags & MSG_PEEK, copies = !(flags & MSG_TRUNC);
	uint32_t i = 0, taken = rs->in.taken;
	size_t done = 0;

	while (done < len && i < rs->in.count) {
		const struct rs_arrived *a = &rs->in.arrived[(rs->in.first + i) % rs->in.posts];
		size_t there = a->len - taken, pass = skip < there ? skip : there;
		size_t n = there - pass < len - done ? there - pass : len - done;

		if (copies)
			memcpy(to + done, receive_block_at(&rs->in, a->block) + taken + pass, n);
		skip -= pass;
		done += n;
		taken += (uint32_t)(pass + n);
		if (taken < a->len)
			break;
		taken = 0;
		if (peek)
			i++;
		else
			drop_oldest(rs);
	}
	if (!peek)
		rs->in.taken = taken;
	return done;
}

/* Into all segments from byte `at` of them on; returns how much. */
size_t rs_scatter(struct rs *rs, const struct iovec *iov, int count, size_t at, int flags)
{
	size_t done = 0, begin = 0;

	for (int i = 0; i < count; begin += iov[i++].iov_len) {
		size_t from = at + done > begin ? at + done - begin : 0, n;

		if (from >= iov[i].iov_len)
			continue;
		n = receive_copy_out(rs, (char *)iov[i].iov_base + from, iov[i].iov_len - from, flags,
				     flags & MSG_PEEK ? at + done : 0);
		done += n;
		if (n < iov[i].iov_len - from)
			break;
	}
	return done;
}
