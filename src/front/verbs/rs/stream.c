/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * The sending half of stream rsockets, and what both halves stand on: blocks, queue pair, greeting.
 */
#include "front/verbs/ops.h"
#include "front/verbs/rs/rs.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#define KIND_SHIFT 28
#define CREDIT_MASK 0xffffu
#define LEAST_BLOCK 512 /* of another end's that is believed */

/* ---- equipment ------------------------------------------------------------------------------- */

static uint32_t stream_within(int wanted, uint32_t least, uint32_t most)
{
	uint32_t n = wanted > 0 ? (uint32_t)wanted : 0;

	return n < least ? least : n > most ? most : n;
}

static int stream_memory_open(struct rs *rs)
{
	size_t size;

	rs->in.blocks = stream_within(rs->opt.rcvbuf / RS_BLOCK, RS_LEAST_BLOCKS,
				      stream_within(rs->opt.rq_size, RS_LEAST_BLOCKS, RS_MOST_BLOCKS));
	rs->out.blocks = stream_within(rs->opt.sndbuf / RS_BLOCK, RS_LEAST_BLOCKS, RS_MOST_BLOCKS);
	rs->in.posts = rs->in.blocks + RS_CONTROL;
	rs->out.free = rs->out.blocks;
	size = (size_t)(rs->in.posts + rs->out.blocks) * RS_BLOCK;
	rs->in.mem = malloc(size);
	rs->in.arrived = calloc(rs->in.posts, sizeof(*rs->in.arrived));
	rs->maps.theirs = calloc((size_t)rs->opt.iomaps + 1, sizeof(*rs->maps.theirs));
	if (!rs->in.mem || !rs->in.arrived || !rs->maps.theirs)
		return -ENOMEM;
	rs->out.mem = rs->in.mem + (size_t)rs->in.posts * RS_BLOCK;
	rs->v.pd = rs->id->pd;
	rs->v.mr = hv_ibv_reg_mr_iova2(rs->v.pd, rs->in.mem, size, (uintptr_t)rs->in.mem,
				       IBV_ACCESS_LOCAL_WRITE);
	return rs->v.mr ? 0 : -errno;
}

static int stream_qp_open(struct rs *rs)
{
	struct ibv_qp_init_attr attr = { .qp_type = IBV_QPT_RC };

	rs->out.places = stream_within(rs->opt.sq_size, RS_LEAST_BLOCKS, HV_MAX_WR - RS_CONTROL);
	attr.cap = (struct ibv_qp_cap){ rs->out.places + RS_CONTROL, rs->in.posts, 1, 1, RS_SMALL };
	rs->v.channel = hv_ibv_create_comp_channel(rs->id->verbs);
	if (!rs->v.channel)
		return -errno;
	rs->v.cq = hv_ibv_create_cq(rs->id->verbs, (int)(attr.cap.max_send_wr + attr.cap.max_recv_wr), rs,
				    rs->v.channel, 0);
	if (!rs->v.cq)
		return -errno;
	attr.send_cq = attr.recv_cq = rs->v.cq;
	if (rdma_create_qp(rs->id, NULL, &attr))
		return -errno;
	rs->v.qp = rs->id->qp;
	return 0;
}

int rs_equip(struct rs *rs)
{
	int rc = stream_memory_open(rs);

	if (!rc)
		rc = stream_qp_open(rs);
	for (uint32_t i = 0; !rc && i < rs->in.posts; i++)
		rc = rs_post_block(rs, i);
	return rc;
}

void rs_unequip(struct rs *rs)
{
	rs_unmap_all(&rs->maps);
	if (rs->id && rs->id->qp)
		rdma_destroy_qp(rs->id);
	if (rs->v.cq)
		hv_ibv_destroy_cq(rs->v.cq);
	if (rs->v.channel)
		hv_ibv_destroy_comp_channel(rs->v.channel);
	if (rs->v.mr)
		hv_ibv_dereg_mr(rs->v.mr);
	if (rs->type == SOCK_DGRAM && rs->v.pd)
		hv_ibv_dealloc_pd(rs->v.pd);
	free(rs->in.mem);
	free(rs->in.arrived);
	free(rs->maps.theirs);
	rs->v = (struct rs_verbs){ 0 };
	rs->in.mem = rs->out.mem = NULL;
	rs->in.arrived = NULL;
	rs->maps.theirs = NULL;
}

/* ---- greeting -------------------------------------------------------------------------------- */

/*
 * 0 "hrs1" 4 bytes of a block 8 messages of data that it takes 10 mappings of ours that it
 * remembers; network byte order
 */
struct hello {
	char mark[4];
	__be32 block;
	__be16 credit, maps;
};
static_assert(sizeof(struct hello) == RS_HELLO, "without padding");

void rs_hello_put(const struct rs *rs, uint8_t *to)
{
	const struct hello h = { .mark = "hrs1",
				 .block = htobe32(RS_BLOCK),
				 .credit = htobe16((uint16_t)rs->in.blocks),
				 .maps = htobe16((uint16_t)rs->opt.iomaps) };

	memcpy(to, &h, sizeof(h));
}

bool rs_hello_get(struct rs_hello *hello, const struct rdma_conn_param *p)
{
	struct hello h;

	if (p->private_data_len < sizeof(h))
		return false;
	memcpy(&h, p->private_data, sizeof(h));
	if (memcmp(h.mark, "hrs1", sizeof(h.mark)) || be32toh(h.block) < LEAST_BLOCK || !h.credit)
		return false;
	*hello = (struct rs_hello){ .block = be32toh(h.block),
				    .credit = be16toh(h.credit),
				    .maps = be16toh(h.maps) };
	return true;
}

void rs_hello_heed(struct rs *rs, const struct rs_hello *hello)
{
	rs->out.peer_block = hello->block < RS_BLOCK ? hello->block : RS_BLOCK;
	rs->out.credit = hello->credit;
	rs->maps.count = hello->maps;
}

/* ---- posting --------------------------------------------------------------------------------- */

/*
 * Of those that need no block every so manieth tells of all before it, which is enough for
 * the places that they take.
 */
static bool tells(struct rs_outbound *out, const struct rs_message *m)
{
	if (!m->block && m->kind == RS_DATA && ++out->untold < out->places / 4)
		return false;
	out->untold = 0;
	return true;
}

int rs_post(struct rs *rs, const struct rs_message *m)
{
	struct ibv_sge sge = { (uintptr_t)m->from, m->len, rs->v.mr->lkey };
	struct ibv_send_wr wr = { .wr_id = RS_SEND | (m->block ? RS_FROM_BLOCK : 0) | rs->out.sent,
				  .sg_list = &sge,
				  .num_sge = m->len ? 1 : 0,
				  .opcode = IBV_WR_SEND_WITH_IMM,
				  .send_flags = (m->block ? 0 : IBV_SEND_INLINE) |
						(tells(&rs->out, m) ? IBV_SEND_SIGNALED : 0),
				  .imm_data = htobe32((uint32_t)m->kind << KIND_SHIFT | rs->in.owed) },
			   *bad;
	int rc;

	if (m->far) {
		wr.opcode = IBV_WR_RDMA_WRITE;
		wr.wr.rdma.remote_addr = m->far->addr;
		wr.wr.rdma.rkey = m->far->key;
	}
	rc = -hv_post_send(rs->v.qp, &wr, &bad);
	if (rc)
		return rc;
	rs->out.sent++;
	if (m->far)
		return 0;
	rs->in.owed = 0;
	if (m->kind == RS_DATA)
		rs->out.credit--;
	return 0;
}

int rs_tell(struct rs *rs, enum rs_kind kind, const void *data, uint32_t len)
{
	return rs_post(rs, &(struct rs_message){ .kind = kind, .from = data, .len = len });
}

/*
 * The other end may wait for it: half of what it has makes a message worth while. Without a place
 * it goes with the next that leaves.
 */
void rs_return_credit(struct rs *rs)
{
	if (rs->in.owed * 2 >= rs->in.blocks && rs->out.sent - rs->out.done < rs->out.places + RS_CONTROL)
		(void)rs_tell(rs, RS_CREDIT, NULL, 0);
}

void rs_fail(struct rs *rs, int err)
{
	if (!rs->conn.err)
		rs->conn.err = err;
	rs->conn.broken = err;
	rs->conn.eof = true;
	rs->wait.came++;
	rs->conn.state = RS_OVER;
	rs_changed(rs);
}

static void stream_lost(struct rs *rs)
{
	if (rs->conn.state != RS_OVER)
		rs_fail(rs, rs->conn.eof ? 0 : ECONNRESET);
}

void rs_completed(struct rs *rs, const struct ibv_wc *wc)
{
	if (wc->wr_id & RS_SEND)
		rs_sent(&rs->out, wc->wr_id);
	if (wc->status != IBV_WC_SUCCESS) {
		stream_lost(rs);
	} else if (!(wc->wr_id & RS_SEND)) {
		uint32_t imm = wc->wc_flags & IBV_WC_WITH_IMM ? be32toh(wc->imm_data) : 0;

		rs->out.credit += imm & CREDIT_MASK;
		rs_arrived(rs, (uint32_t)wc->wr_id, imm >> KIND_SHIFT, wc->byte_len);
	}
}

/* ---- what the program sends ------------------------------------------------------------------ */

uint32_t rs_gather(struct rs_piece *p, char *to, uint32_t room)
{
	uint32_t done = 0;

	while (p->count && done < room) {
		size_t n = p->iov->iov_len - p->at;

		n = n < room - done ? n : room - done;
		if (n) /* an empty segment may be nowhere */
			memcpy(to + done, (const char *)p->iov->iov_base + p->at, n);
		done += (uint32_t)n;
		p->at += n;
		if (p->at < p->iov->iov_len)
			break;
		p->iov++;
		p->count--;
		p->at = 0;
	}
	return done;
}

size_t rs_total(const struct iovec *iov, int count)
{
	size_t n = 0;

	for (int i = 0; i < count; i++)
		n += iov[i].iov_len;
	return n;
}

int rs_sendable(struct rs_conn *conn)
{
	int err = rs_conn_err(conn);

	if (err)
		return -err;
	if (conn->shut_write || conn->deaf || conn->state == RS_OVER)
		return -EPIPE;
	return conn->state == RS_OPEN || conn->state == RS_LISTENING ? -ENOTCONN : 0;
}

bool rs_may_send(const struct rs *rs)
{
	return rs->conn.state == RS_CONNECTED && rs->out.credit && rs->out.free && rs_has_place(&rs->out);
}
