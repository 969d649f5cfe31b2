/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * V11: ibv_post_send(3) and ibv_post_srq_recv(3): buffers and address handles belong to the library
 * until a completion has been read. Here programs change, unmap and destroy them before. Whoever
 * does that may get wrong bytes, errors, and even die; nobody else may.
 */
#include "vt.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define OLD 0x11
#define NEW 0x22
#define BLANK 0x33
#define LONG (300u << 10)
#define PLACES 3 /* of LONG bytes in the buffer */

static size_t place(size_t i)
{
	return i % PLACES * LONG;
}

/* Only bytes of before and after, and nothing behind them. */
static void is_ours(struct ct *ct, const char *mem, size_t len, size_t room)
{
	for (size_t i = 0; i < len; i++)
		if (mem[i] != OLD && mem[i] != NEW)
			ct_fail(ct, "byte %zu of %zu is %#x, which nobody sent", i, len, mem[i]);
	CT_TRUE(ct, ct_untouched(mem + len, room - len, BLANK));
}

/* ---- buffers that change --------------------------------------------------------------------- */

#define ROUNDS 30

static const enum ibv_wr_opcode ops[] = { IBV_WR_SEND, IBV_WR_RDMA_WRITE, IBV_WR_SEND_WITH_IMM,
					  IBV_WR_RDMA_WRITE_WITH_IMM };

static bool is_received(enum ibv_wr_opcode op)
{
	return op != IBV_WR_RDMA_WRITE;
}

static void change_while_sent(struct ct_ep *e, enum ibv_wr_opcode op, size_t at, uint32_t len)
{
	struct ibv_sge sge = vt_sge(e, at, len);
	struct ibv_send_wr wr = vt_wr(e, op, &sge, 1);

	memset(e->buf + at, OLD, len);
	vt_post(e, &wr);
	do
		memset(e->buf + at, NEW, len);
	while (!ct_progress(e));
	vt_done(e, 1, NULL);
	is_ours(e->ct, e->buf + at, len, len); /* what is sent is not written */
}

/*
 * arg: the length. What arrives is as long as it should be, of bytes that have been in the
 * buffer, and in its place.
 */
static void changed(struct ct *ct)
{
	const uint32_t len = (uint32_t)ct->cs->arg;
	struct ct_ep e;

	vt_start(ct, &e, NULL);
	for (size_t i = 0; i < ROUNDS; i++) {
		enum ibv_wr_opcode op = ops[i % CT_COUNT(ops)];

		if (ct->rank)
			memset(e.buf + place(i), BLANK, LONG);
		if (ct->rank && is_received(op))
			vt_recv(&e, place(i), LONG, 2);
		ct_sync(ct, &e);
		if (!ct->rank)
			change_while_sent(&e, op, place(i), len);
		else if (is_received(op))
			vt_done(&e, 2, NULL);
		ct_sync(ct, &e);
		if (ct->rank)
			is_ours(ct, e.buf + place(i), len, LONG);
	}
	vt_finish(&e);
}

/*
 * Write over what is being received until it is; that may have been while the
 * ranks waited for one another.
 */
static void write_over(struct ct_ep *e, size_t at)
{
	while (e->head == e->tail && !ct_progress(e))
		memset(e->buf + at, NEW, LONG);
}

/*
 * The memory of a receive, or of a read, is written to by its program as well:
 * the other's is as it was.
 */
static void written_over(struct ct *ct)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr;
	struct ct_ep e;

	vt_start(ct, &e, NULL);
	for (size_t i = 0; i < ROUNDS; i++) {
		memset(e.buf, ct->rank ? BLANK : OLD, VT_SIZE);
		if (ct->rank)
			vt_recv(&e, place(i), LONG, 1);
		ct_sync(ct, &e);
		if (ct->rank) {
			write_over(&e, place(i));
			vt_done(&e, 1, NULL);
			is_ours(ct, e.buf + place(i), LONG, LONG);
			sge = vt_sge(&e, place(i), LONG);
			wr = vt_wr(&e, IBV_WR_RDMA_READ, &sge, 2);
			vt_post(&e, &wr);
			write_over(&e, place(i));
			vt_done(&e, 2, NULL);
		} else {
			vt_send(&e, place(i), LONG, 3);
			vt_done(&e, 3, NULL);
		}
		ct_sync(ct, &e);
		if (!ct->rank)
			CT_TRUE(ct, ct_untouched(e.buf, VT_SIZE, OLD));
	}
	vt_finish(&e);
}

/* ---- address handles that go ----------------------------------------------------------------- */

#define SAID 20

static struct ibv_ah *handle_of(struct ct_ep *e, int rank)
{
	struct ibv_ah_attr av = vt_av(e, &e->peer[rank]);
	struct ibv_ah *ah = ibv_create_ah(e->pd, &av);

	CT_TRUE(e->ct, ah);
	return ah;
}

static void say(struct ct_ep *e, int rank, struct ibv_ah *ah, uint64_t id)
{
	const size_t at = (size_t)rank * 64;
	struct ibv_sge sge = vt_sge(e, at, 64);
	struct ibv_send_wr wr = vt_wr(e, IBV_WR_SEND, &sge, id);

	memset(e->buf + at, rank, 64);
	wr.wr.ud.ah = ah;
	wr.wr.ud.remote_qpn = e->peer[rank].qpn;
	vt_post(e, &wr);
}

/*
 * Datagrams to rank 1 by a handle that is destroyed at once; the next one, for rank 2, has its
 * memory perhaps. Each request completes, rank 2 gets what it was sent and nothing else, and
 * rank 1 is as well as before.
 */
static void handle_destroyed(struct ct *ct)
{
	const struct vt_want want = { .type = IBV_QPT_UD };
	struct ct_ep e;

	vt_open(ct, &e, &want);
	vt_exchange(&e);
	vt_connect(&e, e.qp, &e.peer[(ct->rank + 1) % 3]);
	for (uint64_t i = 0; ct->rank && i < 2 * SAID; i++)
		vt_recv(&e, i * 128, 128, i);
	ct_sync(ct, &e);
	for (uint64_t i = 0; !ct->rank && i < SAID; i++) {
		for (int rank = 1; rank <= 2; rank++) {
			struct ibv_ah *ah = handle_of(&e, rank);

			say(&e, rank, ah, i);
			VT_OK(ct, ibv_destroy_ah(ah));
			if (rank == 2)
				vt_of(&e, i, NULL);
		}
		vt_of(&e, i, NULL);
	}
	ct_sync(ct, &e);
	if (!ct->rank) { /* to show that all are well */
		for (int rank = 1; rank <= 2; rank++) {
			e.ah = handle_of(&e, rank);
			say(&e, rank, e.ah, 100);
			vt_done(&e, 100, NULL);
			if (rank == 1)
				VT_OK(ct, ibv_destroy_ah(e.ah));
		}
	} else {
		struct ibv_wc wc;

		vt_any(&e, &wc);
		CT_EQ(ct, wc.status, IBV_WC_SUCCESS);
		CT_EQ(ct, wc.byte_len, 40 + 64);
		CT_TRUE(ct, ct_untouched(e.buf + wc.wr_id * 128 + 40, 64, (unsigned char)ct->rank));
	}
	ct_sync(ct, &e);
	while (ct->rank && e.head < e.tail) {
		struct ibv_wc wc;

		vt_any(&e, &wc);
		CT_TRUE(ct, ct_untouched(e.buf + wc.wr_id * 128 + 40, 64, (unsigned char)ct->rank));
	}
	vt_finish(&e);
}

/* ---- memory that goes ------------------------------------------------------------------------ */

enum gone {
	SENDS,
	RECEIVES,
	WRITES,
	READS,
	IS_WRITTEN,
	IS_READ
};

/*
 * Rank 0: memory of its own, registered, for a request of its own or of rank
 * 1; and then there is none.
 */
static void lose_memory(struct ct_ep *e, enum gone how)
{
	char *mem = mmap(NULL, LONG, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ibv_mr *mr;
	struct ibv_sge sge;
	struct ibv_send_wr wr;
	struct ibv_recv_wr rwr = { .wr_id = 1, .sg_list = &sge, .num_sge = 1 }, *bad;

	CT_TRUE(e->ct, mem != MAP_FAILED);
	memset(mem, OLD, LONG);
	mr = ibv_reg_mr(e->pd, mem, LONG, VT_ACCESS);
	CT_TRUE(e->ct, mr);
	sge = (struct ibv_sge){ (uintptr_t)mem, LONG, mr->lkey };
	wr = vt_wr(e,
		   how == SENDS	   ? IBV_WR_SEND
		   : how == WRITES ? IBV_WR_RDMA_WRITE
				   : IBV_WR_RDMA_READ,
		   &sge, 1);
	wr.wr.rdma.remote_addr = e->peer[1].addr;
	e->me.addr = (uintptr_t)mem;
	e->me.rkey = mr->rkey;
	ct_doomed(e->ct);
	if (how == RECEIVES)
		VT_OK(e->ct, ibv_post_recv(e->qp, &rwr, &bad));
	else if (how < IS_WRITTEN)
		vt_post(e, &wr);
	munmap(mem, LONG); /* it does not even say so */
	ct_put(e->ct, 1, &e->me, sizeof(e->me));
	for (;;) {
		ct_progress(e);
		ct_pause();
	}
}

/* Rank 1 has a queue pair with each of the others. */
static void meet_both(struct ct_ep *e, struct ibv_qp **other)
{
	struct ct *ct = e->ct;
	uint32_t second = 0;

	*other = NULL;
	vt_exchange(e);
	if (ct->rank == 1) {
		*other = vt_qp(e);
		second = (*other)->qp_num;
		ct_put(ct, 2, &second, sizeof(second));
	} else if (ct->rank == 2) {
		ct_get(ct, NULL, 1, &second, sizeof(second));
		e->peer[1].qpn = second;
	}
	vt_connect(e, e->qp, &e->peer[ct->rank == 1 ? 0 : 1]);
	if (*other)
		vt_connect(e, *other, &e->peer[2]);
	ct_sync(ct, NULL);
}

/*
 * What rank 1 does about it, as the other end. How its own requests end is open, but they end; a
 * receive that nothing comes for, and whose sender may have ended in error or died, waits until its
 * queue pair fails, as on hardware.
 */
static void other_end(struct ct_ep *e, enum gone how)
{
	struct ibv_sge sge = vt_sge(e, 0, LONG);
	struct ibv_send_wr wr;
	double end;

	if (how == SENDS)
		vt_recv(e, 0, LONG, 1);
	ct_get(e->ct, e, 0, &e->peer[0], sizeof(e->peer[0]));
	wr = vt_wr(e,
		   how == RECEIVES  ? IBV_WR_SEND
		   : how == IS_READ ? IBV_WR_RDMA_READ
				    : IBV_WR_RDMA_WRITE,
		   &sge, 1);
	wr.wr.rdma.remote_addr = e->peer[0].addr;
	wr.wr.rdma.rkey = e->peer[0].rkey;
	if (how == RECEIVES || how >= IS_WRITTEN) {
		vt_post(e, &wr);
		vt_of(e, 1, NULL);
		return;
	}
	for (end = ct_now() + 0.3; ct_now() < end; ct_pause())
		ct_progress(e);
	if (how == SENDS) {
		vt_to(e, e->qp, IBV_QPS_ERR);
		vt_of(e, 1, NULL);
	}
}

/*
 * Rank 0 loses what a request uses, rank 1 is at the other end of it, and goes on to talk with
 * rank 2. arg: what the memory is for.
 */
static void unmapped(struct ct *ct)
{
	const enum gone how = (enum gone)ct->cs->arg;
	struct ibv_qp *other;
	struct ct_ep e;

	vt_open(ct, &e, NULL);
	meet_both(&e, &other);
	if (!ct->rank)
		lose_memory(&e, how);
	if (ct->rank == 1) {
		struct ibv_qp *lost = e.qp;
		char c;

		other_end(&e, how);
		e.qp = other;
		vt_recv(&e, 0, 64, 7);
		ct_put(ct, 2, &how, 1);
		vt_done(&e, 7, NULL);
		CT_TRUE(ct, ct_untouched(e.buf, 64, NEW));
		/* its request has completed: nobody owes the other anything */
		ct_get(ct, &e, 2, &c, 1);
		VT_OK(ct, ibv_destroy_qp(lost));
	} else {
		char c;

		ct_get(ct, &e, 1, &c, 1);
		memset(e.buf, NEW, 64);
		vt_send(&e, 0, 64, 8);
		vt_done(&e, 8, NULL);
		ct_put(ct, 1, &c, 1);
	}
	vt_close(&e);
}

/* ---- regions that go in order ---------------------------------------------------------------- */

#define MANY 1000
#define DATAGRAM 4096

/*
 * ibv_dereg_mr(3) succeeds while datagrams of the region wait: the other end's program does
 * nothing, and more are sent than there is room for on the way. The memory goes, the program goes
 * on, and every request completes.
 */
static void datagrams_outlive_their_region(struct ct *ct)
{
	const struct vt_want want = { .type = IBV_QPT_UD, .send_wr = MANY, .cqe = MANY };
	char *mem = mmap(NULL, DATAGRAM, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ct_ep e;

	CT_TRUE(ct, mem != MAP_FAILED);
	memset(mem, OLD, DATAGRAM);
	vt_start(ct, &e, &want);
	if (!ct->rank) {
		struct ibv_mr *mr = ibv_reg_mr(e.pd, mem, DATAGRAM, 0);
		struct ibv_sge sge = { (uintptr_t)mem, DATAGRAM, mr ? mr->lkey : 0 };

		CT_TRUE(ct, mr);
		for (uint64_t i = 0; i < MANY; i++) {
			struct ibv_send_wr wr = vt_wr(&e, IBV_WR_SEND, &sge, i);

			vt_post(&e, &wr);
		}
		VT_OK(ct, ibv_dereg_mr(mr));
		CT_EQ(ct, munmap(mem, DATAGRAM), 0);
		for (uint64_t i = 0; i < MANY; i++)
			vt_done(&e, i, NULL);
	}
	vt_finish(&e);
}

/* ---- regions that go before the completion --------------------------------------------------- */

/*
 * Posts one request from a region of its own, which goes with what is in it
 * before it has completed.
 */
static void post_and_forget(struct ct_ep *e, enum ibv_wr_opcode op, int byte, uint32_t len)
{
	char *mem = malloc(len);
	struct ibv_mr *mr;
	struct ibv_sge sge;
	struct ibv_send_wr wr;

	CT_TRUE(e->ct, mem);
	memset(mem, byte, len);
	mr = ibv_reg_mr(e->pd, mem, len, 0);
	CT_TRUE(e->ct, mr);
	sge = (struct ibv_sge){ (uintptr_t)mem, len, mr->lkey };
	wr = vt_wr(e, op, &sge, 1);
	wr.wr.rdma.remote_addr = e->peer[1].addr;
	vt_post(e, &wr);
	VT_OK(e->ct, ibv_dereg_mr(mr));
	memset(mem, OLD, len);
	free(mem);
	vt_done(e, 1, NULL);
}

/*
 * A card has read what a short request sends by the time that its region can have gone, and
 * programs do so: it succeeds, with the bytes that were there when it was posted, the first of a
 * queue pair too. arg: how many.
 */
static void forgotten(struct ct *ct)
{
	const uint32_t len = (uint32_t)ct->cs->arg;
	struct ct_ep e;

	vt_start(ct, &e, NULL);
	for (int i = 0; i < ROUNDS; i++) {
		enum ibv_wr_opcode op = ops[i % CT_COUNT(ops)];

		if (ct->rank)
			memset(e.buf, BLANK, len);
		if (ct->rank && is_received(op))
			vt_recv(&e, 0, len, 2);
		ct_sync(ct, &e);
		if (!ct->rank)
			post_and_forget(&e, op, 100 + i, len);
		else if (is_received(op))
			vt_done(&e, 2, NULL);
		ct_sync(ct, &e);
		if (ct->rank)
			CT_TRUE(ct, ct_untouched(e.buf, len, (char)(100 + i)));
	}
	vt_finish(&e);
}

#define GONE(name, how) \
	{ \
		"V11", name, CT_THREE(unmapped), .arg = how \
	}

const struct ct_case vt_owner[] = {
	{ "V11", "changed-short", CT_TWO(changed), .arg = 64 },
	{ "V11", "changed-page", CT_TWO(changed), .arg = 5000 },
	{ "V11", "changed-long", CT_TWO(changed), .arg = LONG },
	{ "V11", "written-over", CT_TWO(written_over) },
	{ "V11", "region-gone-short", CT_TWO(forgotten), .arg = 4 },
	{ "V11", "region-gone-page", CT_TWO(forgotten), .arg = 5000 },
	{ "V11", "handle-destroyed", CT_THREE(handle_destroyed) },
	{ "V11", "datagrams-outlive-region", CT_TWO(datagrams_outlive_their_region) },
	GONE("unmapped-that-is-sent", SENDS),
	GONE("unmapped-that-receives", RECEIVES),
	GONE("unmapped-that-is-written-from", WRITES),
	GONE("unmapped-that-is-read-into", READS),
	GONE("unmapped-that-others-write", IS_WRITTEN),
	GONE("unmapped-that-others-read", IS_READ),
	{ NULL },
};
