/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * XRC: ibv_open_xrcd(3), ibv_create_srq_ex(3), ibv_open_qp(3), and messages that name their queue.
 */
#include "xt.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define MESSAGES 4 /* of each queue */

/* ---- objects --------------------------------------------------------------------------------- */

static void open_all(struct ct *ct, struct xrc *x, const struct vt_want *want)
{
	struct vt_want all = want ? *want : (struct vt_want){ 0 };
	struct ibv_device_attr attr;

	all.type = IBV_QPT_XRC_SEND;
	all.size = QUEUES * MESSAGES * PLACE;
	*x = (struct xrc){ 0 };
	x->e.context = vt_context(ct);
	VT_OK(ct, ibv_query_device(x->e.context, &attr));
	VT_OK(ct, ibv_close_device(x->e.context));
	if (!(attr.device_cap_flags & IBV_DEVICE_XRC))
		ct_unsupported(ct, "the device has no XRC");
	vt_open(ct, &x->e, &all);
	x->xrcd = xt_domain(ct, x->e.context, -1, O_CREAT);
	CT_TRUE(ct, x->xrcd);
	for (int i = 0; i < QUEUES; i++) {
		x->cq[i] = ibv_create_cq(x->e.context, 64, NULL, NULL, 0);
		CT_TRUE(ct, x->cq[i]);
		x->srq[i] = xt_queue(x, x->xrcd, x->cq[i], x->e.pd);
		VT_OK(ct, ibv_get_srq_num(x->srq[i], &x->number[i]));
		CT_TRUE(ct, x->number[i] && x->number[i] < 1u << 24);
	}
	CT_TRUE(ct, x->number[0] != x->number[1]);
	x->recv = xt_receiver(x, x->xrcd);
}

static void close_all(struct xrc *x)
{
	struct ct *ct = x->e.ct;

	VT_OK(ct, ibv_destroy_qp(x->recv));
	for (int i = 0; i < QUEUES; i++) {
		if (x->srq[i])
			VT_OK(ct, ibv_destroy_srq(x->srq[i]));
		VT_OK(ct, ibv_destroy_cq(x->cq[i]));
	}
	VT_OK(ct, ibv_close_xrcd(x->xrcd));
	vt_close(&x->e);
}

/* Each rank's sender is connected to the other's receiver. */
static void start(struct ct *ct, struct xrc *x, const struct vt_want *want)
{
	struct vt_name sends, receives;

	open_all(ct, x, want);
	ct_put(ct, !ct->rank, x->number, sizeof(x->number));
	ct_get(ct, NULL, !ct->rank, x->theirs, sizeof(x->theirs));
	vt_exchange(&x->e);
	sends = x->e.peer[!ct->rank];
	x->e.me.qpn = x->recv->qp_num;
	vt_exchange(&x->e);
	receives = x->e.peer[!ct->rank];
	xt_receiver_connect(x, x->recv, &sends);
	xt_sender_connect(x, x->e.qp, &receives);
	ct_sync(ct, NULL);
}

static void finish(struct xrc *x)
{
	ct_sync(x->e.ct, &x->e);
	close_all(x);
}

/* ---- work ------------------------------------------------------------------------------------ */

static void post(struct xrc *x, int which, size_t at, uint32_t len, uint64_t id)
{
	struct ibv_sge sge = vt_sge(&x->e, at, len);
	struct ibv_recv_wr wr = { .wr_id = id, .sg_list = &sge, .num_sge = 1 }, *bad;

	VT_OK(x->e.ct, ibv_post_srq_recv(x->srq[which], &wr, &bad));
}

/*
 * Each receive has its own: a message may come while the one before the last
 * is still being looked at.
 */
static size_t place_of(int queue, uint32_t message)
{
	return PLACE * ((size_t)queue * MESSAGES + message);
}

/*
 * Messages, short and long, go to the queue that they name, in order; completions say which
 * queue pair they came by.
 */
static void messages(struct ct *ct)
{
	static const uint32_t lens[] = { 0, 8, 5000, LONG };
	struct ibv_wc wc;
	struct xrc x;

	start(ct, &x, NULL);
	for (uint32_t i = 0; ct->rank && i < MESSAGES; i++)
		for (int q = 0; q < QUEUES; q++)
			post(&x, q, place_of(q, i), PLACE, i);
	ct_sync(ct, &x.e);
	for (uint32_t i = 0; i < MESSAGES; i++)
		for (int q = 0; q < QUEUES; q++) {
			if (!ct->rank) {
				struct ibv_sge sge = vt_sge(&x.e, 0, lens[i]);
				struct ibv_send_wr wr =
					xt_request(&x, IBV_WR_SEND_WITH_IMM, &sge, i, x.theirs[q]);

				wr.imm_data = htonl(i);
				ct_fill(x.e.buf, lens[i], i * 2 + (uint32_t)q);
				vt_post(&x.e, &wr);
				vt_next(&x.e, i, IBV_WC_SUCCESS);
				continue;
			}
			xt_next(&x, x.cq[q], &wc);
			CT_EQ(ct, wc.status, IBV_WC_SUCCESS);
			CT_EQ(ct, wc.wr_id, i);
			CT_EQ(ct, wc.qp_num, x.recv->qp_num);
			CT_EQ(ct, wc.opcode, IBV_WC_RECV);
			CT_EQ(ct, wc.byte_len, lens[i]);
			CT_TRUE(ct, wc.wc_flags & IBV_WC_WITH_IMM && wc.imm_data == htonl(i));
			ct_verify(ct, x.e.buf + place_of(q, i), lens[i], i * 2 + (uint32_t)q, "message");
		}
	finish(&x);
}

/* Many that wait for their receives, for both queues mixed: each queue gets its own, in order. */
static void many(struct ct *ct)
{
	const struct vt_want want = { .send_wr = 128, .cqe = 256 };
	uint64_t got, last;
	struct ibv_wc wc;
	struct xrc x;

	start(ct, &x, &want);
	for (uint64_t i = 0; !ct->rank && i < 100; i++) {
		struct ibv_sge sge = vt_sge(&x.e, i * 64, 8);
		struct ibv_send_wr wr = xt_request(&x, IBV_WR_SEND, &sge, i, x.theirs[i % 3 == 0]);

		memcpy(x.e.buf + i * 64, &i, 8);
		vt_post(&x.e, &wr);
	}
	ct_sync(ct, &x.e);
	for (int q = 0; ct->rank && q < QUEUES; q++)
		for (uint64_t i = 0; i < 50; i++)
			post(&x, q, PLACE * (size_t)q + 64 * i, 64, i);
	for (int q = 0; ct->rank && q < QUEUES; q++) {
		last = 0;
		for (uint64_t i = 0; i < (q ? 34 : 50); i++) {
			xt_next(&x, x.cq[q], &wc);
			CT_EQ(ct, wc.status, IBV_WC_SUCCESS);
			CT_EQ(ct, wc.wr_id, i);
			memcpy(&got, x.e.buf + PLACE * (size_t)q + 64 * i, 8);
			CT_TRUE(ct, (got % 3 == 0) == q && got >= last);
			last = got + 1;
			if (!q && i < 16)
				post(&x, 0, 64 * (50 + i), 64, 50 + i);
		}
		if (!q)
			for (uint64_t i = 50; i < 66; i++) {
				xt_next(&x, x.cq[0], &wc);
				CT_EQ(ct, wc.wr_id, i);
			}
	}
	for (uint64_t i = 0; !ct->rank && i < 100; i++)
		vt_next(&x.e, i, IBV_WC_SUCCESS);
	finish(&x);
}

/*
 * One-sided operations reach the memory of the named queue's protection domain; a write with
 * immediate data takes one of its receives.
 */
static void one_sided(struct ct *ct)
{
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct ibv_wc wc;
	uint64_t word = 41;
	struct xrc x;

	start(ct, &x, NULL);
	if (ct->rank) {
		memcpy(x.e.buf + PLACE, &word, 8);
		post(&x, 1, 2 * PLACE, 8, 5);
		ct_sync(ct, &x.e);
		xt_next(&x, x.cq[1], &wc);
		CT_EQ(ct, wc.status, IBV_WC_SUCCESS);
		CT_EQ(ct, wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
		CT_TRUE(ct, wc.wr_id == 5 && wc.qp_num == x.recv->qp_num && wc.byte_len == LONG);
		ct_verify(ct, x.e.buf, LONG, 3, "written");
		memcpy(&word, x.e.buf + PLACE, 8);
		CT_EQ(ct, word, 42);
	} else {
		ct_sync(ct, &x.e);
		sge = vt_sge(&x.e, PLACE, 8);
		wr = xt_request(&x, IBV_WR_ATOMIC_FETCH_AND_ADD, &sge, 1, x.theirs[0]);
		wr.wr.atomic.compare_add = 1;
		vt_post(&x.e, &wr);
		vt_next(&x.e, 1, IBV_WC_SUCCESS);
		memcpy(&word, x.e.buf + PLACE, 8);
		CT_EQ(ct, word, 41);
		wr = xt_request(&x, IBV_WR_RDMA_READ, &sge, 2, x.theirs[1]);
		vt_post(&x.e, &wr);
		vt_next(&x.e, 2, IBV_WC_SUCCESS);
		memcpy(&word, x.e.buf + PLACE, 8);
		CT_EQ(ct, word, 42);
		ct_fill(x.e.buf, LONG, 3);
		sge = vt_sge(&x.e, 0, 100);
		wr = xt_request(&x, IBV_WR_RDMA_WRITE, &sge, 3, x.theirs[0]);
		vt_post(&x.e, &wr);
		vt_next(&x.e, 3, IBV_WC_SUCCESS);
		sge = vt_sge(&x.e, 0, LONG);
		wr = xt_request(&x, IBV_WR_RDMA_WRITE_WITH_IMM, &sge, 4, x.theirs[1]);
		vt_post(&x.e, &wr);
		vt_next(&x.e, 4, IBV_WC_SUCCESS);
	}
	finish(&x);
}

/* ibv_wr_*: the number is set beside the rest. */
static void builders(struct ct *ct)
{
	const struct vt_want want = { .send_ops = IBV_QP_EX_WITH_SEND };
	struct ibv_wc wc;
	struct xrc x;

	start(ct, &x, &want);
	if (ct->rank) {
		post(&x, 1, 0, 64, 7);
		ct_sync(ct, &x.e);
		xt_next(&x, x.cq[1], &wc);
		CT_EQ(ct, wc.wr_id, 7);
		CT_EQ(ct, x.e.buf[0], 'b');
	} else {
		struct ibv_qp_ex *qp = ibv_qp_to_qp_ex(x.e.qp);

		CT_TRUE(ct, qp);
		x.e.buf[0] = 'b';
		ct_sync(ct, &x.e);
		ibv_wr_start(qp);
		qp->wr_id = 8;
		qp->wr_flags = IBV_SEND_SIGNALED;
		ibv_wr_send(qp);
		ibv_wr_set_xrc_srqn(qp, x.theirs[1]);
		ibv_wr_set_sge(qp, x.e.mr->lkey, (uintptr_t)x.e.buf, 1);
		VT_OK(ct, ibv_wr_complete(qp));
		vt_next(&x.e, 8, IBV_WC_SUCCESS);
	}
	finish(&x);
}

/* ---- errors ---------------------------------------------------------------------------------- */

enum offence {
	UNKNOWN,  /* a number that nobody has */
	GONE,	  /* one that is no longer */
	DOMAIN,	  /* of another domain */
	MEMORY,	  /* of the region's protection domain it is not */
	TOO_LONG, /* for the receive */
	NO_RECEIVE
};

static enum ibv_wc_status status_of(enum offence offence)
{
	switch (offence) {
	case MEMORY:
		return IBV_WC_REM_ACCESS_ERR;
	case NO_RECEIVE:
		return IBV_WC_RNR_RETRY_EXC_ERR;
	default:
		return IBV_WC_REM_INV_REQ_ERR;
	}
}

static void expect_error_event(struct ct *ct, struct xrc *x)
{
	struct ibv_async_event event;
	double end = ct_deadline(ct);

	while (!vt_async(&x->e, 10, &event))
		ct_late(ct, end, "an event");
	CT_TRUE(ct, event.event_type == IBV_EVENT_QP_REQ_ERR || event.event_type == IBV_EVENT_QP_ACCESS_ERR);
	CT_TRUE(ct, event.element.qp == x->recv);
	ibv_ack_async_event(&event);
}

/* The sender learns what it has done wrong, and both queue pairs are in error; the queue is not. */
static void offend(struct ct *ct)
{
	enum offence offence = (enum offence)ct->cs->arg;
	const struct vt_want want = { .rnr_retry = offence == NO_RECEIVE ? 1 : 7 };
	struct ibv_xrcd *other;
	struct ibv_srq *strange;
	uint32_t number;
	struct ibv_pd *pd;
	struct xrc x;

	start(ct, &x, &want);
	other = xt_domain(ct, x.e.context, -1, O_CREAT);
	pd = ibv_alloc_pd(x.e.context);
	CT_TRUE(ct, other && pd);
	strange = xt_queue(&x, offence == DOMAIN ? other : x.xrcd, x.cq[1], offence == MEMORY ? pd : x.e.pd);
	VT_OK(ct, ibv_get_srq_num(strange, &number));
	if (offence == GONE) {
		VT_OK(ct, ibv_destroy_srq(strange));
		strange = NULL;
	}
	if (ct->rank) {
		ct_put(ct, 0, &number, sizeof(number));
		if (offence == TOO_LONG)
			post(&x, 0, 0, 8, 1);
		ct_sync(ct, &x.e);
		if (offence == TOO_LONG) {
			struct ibv_wc wc;

			xt_next(&x, x.cq[0], &wc);
			CT_EQ(ct, wc.status, IBV_WC_LOC_LEN_ERR);
		} else if (offence != NO_RECEIVE) {
			expect_error_event(ct, &x);
		}
		ct_sync(ct, &x.e);
		CT_TRUE(ct, offence == NO_RECEIVE || vt_state(&x.e, x.recv) == IBV_QPS_ERR);
	} else {
		struct ibv_sge sge = vt_sge(&x.e, 0, 64);
		struct ibv_send_wr wr;

		ct_get(ct, NULL, 1, &number, sizeof(number));
		if (offence == UNKNOWN)
			number = (number & ~0xffu) | 0xf7;
		else if (offence == TOO_LONG || offence == NO_RECEIVE)
			number = x.theirs[0];
		wr = xt_request(&x, offence == MEMORY ? IBV_WR_RDMA_WRITE : IBV_WR_SEND, &sge, 1, number);
		ct_sync(ct, &x.e);
		vt_post(&x.e, &wr);
		wr.wr_id = 2;
		vt_post(&x.e, &wr);
		vt_next(&x.e, 1, status_of(offence));
		vt_next(&x.e, 2, IBV_WC_WR_FLUSH_ERR);
		ct_sync(ct, &x.e);
		CT_EQ(ct, vt_state(&x.e, x.e.qp), IBV_QPS_ERR);
	}
	if (strange)
		VT_OK(ct, ibv_destroy_srq(strange));
	VT_OK(ct, ibv_close_xrcd(other));
	VT_OK(ct, ibv_dealloc_pd(pd));
	finish(&x);
}

/*
 * A queue goes while a message waits for one of its receives: that message is
 * refused, others are not touched.
 */
static void queue_goes(struct ct *ct)
{
	struct xrc x;

	start(ct, &x, NULL);
	if (ct->rank) {
		ct_sync(ct, &x.e);
		for (int i = 0; i < 20; i++) {
			/* it has come by then, or not: both must end alike */
			ct_progress(&x.e);
			ct_pause();
		}
		VT_OK(ct, ibv_destroy_srq(x.srq[0]));
		x.srq[0] = NULL;
		expect_error_event(ct, &x);
	} else {
		struct ibv_sge sge = vt_sge(&x.e, 0, 64);
		struct ibv_send_wr wr = xt_request(&x, IBV_WR_SEND, &sge, 1, x.theirs[0]);

		vt_post(&x.e, &wr);
		ct_sync(ct, &x.e);
		vt_next(&x.e, 1, IBV_WC_REM_INV_REQ_ERR);
	}
	finish(&x);
}

/* ---- what there is --------------------------------------------------------------------------- */

/* O_CREAT and O_EXCL, as for files; another context sees the inode's domain too. */
static void domains(struct ct *ct)
{
	char name[] = "/tmp/xrc-XXXXXX";
	int fd = mkstemp(name);
	struct ibv_context *context = vt_context(ct), *second = vt_context(ct);
	struct ibv_xrcd_init_attr bad = { .comp_mask = IBV_XRCD_INIT_ATTR_FD, .fd = fd, .oflags = O_CREAT };
	struct ibv_xrcd *a, *b;

	CT_TRUE(ct, fd >= 0);
	unlink(name);
	VT_NULL(ct, ibv_open_xrcd(context, &bad), EINVAL);
	VT_NULL(ct, xt_domain(ct, context, fd, 0), EAGAIN);
	VT_NULL(ct, xt_domain(ct, context, 999, O_CREAT), EBADF);
	a = xt_domain(ct, context, fd, O_CREAT | O_EXCL);
	CT_TRUE(ct, a && a->context == context);
	VT_NULL(ct, xt_domain(ct, context, fd, O_CREAT | O_EXCL), EINVAL);
	VT_NULL(ct, xt_domain(ct, second, fd, O_CREAT | O_EXCL), EINVAL);
	b = xt_domain(ct, second, fd, 0);
	CT_TRUE(ct, b);
	VT_OK(ct, ibv_close_xrcd(a));
	a = xt_domain(ct, context, fd, 0); /* the other one has it */
	CT_TRUE(ct, a);
	VT_OK(ct, ibv_close_xrcd(a));
	VT_OK(ct, ibv_close_xrcd(b));
	VT_NULL(ct, xt_domain(ct, context, fd, 0), EAGAIN);
	/* what else open(2) has is overlooked */
	a = xt_domain(ct, context, fd, O_CREAT | O_EXCL | O_RDWR | O_TRUNC);
	CT_TRUE(ct, a);
	VT_NULL(ct, xt_domain(ct, context, fd, O_EXCL), EINVAL);
	VT_OK(ct, ibv_close_xrcd(a));
	a = xt_domain(ct, context, -1, O_CREAT);
	b = xt_domain(ct, context, -1, O_CREAT | O_EXCL);
	CT_TRUE(ct, a && b && a != b);
	VT_OK(ct, ibv_close_xrcd(a));
	VT_OK(ct, ibv_close_xrcd(b));
	VT_OK(ct, ibv_close_device(second));
	VT_OK(ct, ibv_close_device(context));
	close(fd);
}

/*
 * An open domain keeps its inode: no file that is made later has the number, and with it the
 * domain. It keeps no lock of the file's.
 */
static void domain_keeps_inode(struct ct *ct)
{
	char name[] = "/tmp/xrc-XXXXXX";
	int fd = mkstemp(name);
	struct ibv_context *context = vt_context(ct);
	struct ibv_xrcd *domain;
	struct stat first, later;

	CT_TRUE(ct, fd >= 0 && !fstat(fd, &first) && !flock(fd, LOCK_EX));
	domain = xt_domain(ct, context, fd, O_CREAT);
	CT_TRUE(ct, domain);
	close(fd);
	fd = open(name, O_RDWR | O_CLOEXEC);
	CT_TRUE(ct, fd >= 0 && !flock(fd, LOCK_EX | LOCK_NB));
	unlink(name);
	close(fd);
	for (int i = 0; i < 64; i++) {
		char other[] = "/tmp/xrc-XXXXXX";

		fd = mkstemp(other);
		CT_TRUE(ct, fd >= 0 && !fstat(fd, &later));
		unlink(other);
		close(fd);
		CT_TRUE(ct, later.st_ino != first.st_ino);
	}
	VT_OK(ct, ibv_close_xrcd(domain));
	VT_OK(ct, ibv_close_device(context));
}

/* What belongs together must be there, what is in use stays, and a basic queue has no number. */
static void objects(struct ct *ct)
{
	struct ibv_qp_init_attr_ex no_domain = { .qp_type = IBV_QPT_XRC_RECV };
	struct ibv_srq_init_attr basic = { .attr = { 4, 1, 0 } };
	struct ibv_srq_init_attr_ex half = { .attr = { 4, 1, 0 },
					     .comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD,
					     .srq_type = IBV_SRQT_XRC };
	struct ibv_recv_wr recv = { .wr_id = 1 }, *bad_recv;
	struct ibv_send_wr send = { .wr_id = 1 }, *bad_send;
	struct ibv_srq *srq;
	uint32_t number;
	struct xrc x;

	open_all(ct, &x, NULL);
	half.pd = x.e.pd;
	VT_NULL(ct, ibv_create_srq_ex(x.e.context, &half), EINVAL);
	VT_NULL(ct, ibv_create_qp_ex(x.e.context, &no_domain), EINVAL);
	VT_ERR(ct, ibv_close_xrcd(x.xrcd), EBUSY);
	VT_ERR(ct, ibv_destroy_cq(x.cq[0]), EBUSY);
	srq = ibv_create_srq(x.e.pd, &basic);
	CT_TRUE(ct, srq);
	CT_TRUE(ct, ibv_get_srq_num(srq, &number) != 0);
	VT_OK(ct, ibv_destroy_srq(srq));
	VT_ERR(ct, ibv_post_recv(x.recv, &recv, &bad_recv), EINVAL);
	VT_ERR(ct, ibv_post_send(x.recv, &send, &bad_send), EINVAL);
	send.opcode = IBV_WR_SEND;
	xt_receiver_connect(&x, x.recv, &x.e.me);
	VT_ERR(ct, ibv_post_send(x.recv, &send, &bad_send), EINVAL);
	close_all(&x);
}

/* ibv_open_qp: further handles of one queue pair; it goes with the last. */
static void handles(struct ct *ct)
{
	struct ibv_qp_open_attr attr = { .comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD |
						      IBV_QP_OPEN_ATTR_CONTEXT | IBV_QP_OPEN_ATTR_TYPE,
					 .qp_type = IBV_QPT_XRC_RECV };
	struct ibv_xrcd *other;
	struct ibv_qp *qp;
	struct xrc x;

	start(ct, &x, NULL);
	other = xt_domain(ct, x.e.context, -1, O_CREAT);
	attr.qp_num = x.recv->qp_num;
	attr.qp_context = &x;
	attr.xrcd = other;
	VT_NULL(ct, ibv_open_qp(x.e.context, &attr), EINVAL);
	attr.xrcd = x.xrcd;
	attr.qp_type = IBV_QPT_RC;
	VT_NULL(ct, ibv_open_qp(x.e.context, &attr), EINVAL);
	attr.qp_type = IBV_QPT_XRC_RECV;
	attr.qp_num = x.e.qp->qp_num;
	VT_NULL(ct, ibv_open_qp(x.e.context, &attr), EINVAL);
	attr.qp_num = x.recv->qp_num;
	qp = ibv_open_qp(x.e.context, &attr);
	CT_TRUE(ct, qp && qp != x.recv && qp->qp_num == x.recv->qp_num && qp->qp_context == &x);
	CT_EQ(ct, vt_state(&x.e, qp), IBV_QPS_RTS);
	VT_OK(ct, ibv_destroy_qp(x.recv)); /* whoever has made it need not stay */
	x.recv = qp;
	if (ct->rank) {
		struct ibv_wc wc;

		post(&x, 0, 0, 64, 3);
		ct_sync(ct, &x.e);
		xt_next(&x, x.cq[0], &wc);
		CT_TRUE(ct, wc.status == IBV_WC_SUCCESS && wc.qp_num == qp->qp_num);
	} else {
		struct ibv_sge sge = vt_sge(&x.e, 0, 64);
		struct ibv_send_wr wr = xt_request(&x, IBV_WR_SEND, &sge, 1, x.theirs[0]);

		ct_sync(ct, &x.e);
		vt_post(&x.e, &wr);
		vt_next(&x.e, 1, IBV_WC_SUCCESS);
	}
	VT_OK(ct, ibv_close_xrcd(other));
	finish(&x);
}

/* ---- memory windows -------------------------------------------------------------------------- */

#define WINDOW 4096 /* bytes */

static void window_change(struct xrc *x, enum ibv_wr_opcode op, struct ibv_mw *mw,
			  const struct ibv_mw_bind_info *info)
{
	struct ibv_send_wr wr = { .wr_id = 5, .opcode = op, .send_flags = IBV_SEND_SIGNALED };

	wr.qp_type.xrc.remote_srqn = UINT32_MAX; /* it goes to nobody, so it need name no queue */
	if (op == IBV_WR_BIND_MW) {
		wr.bind_mw.mw = mw;
		wr.bind_mw.rkey = ibv_inc_rkey(mw->rkey);
		wr.bind_mw.bind_info = *info;
	} else {
		wr.invalidate_rkey = mw->rkey;
	}
	vt_post(&x->e, &wr);
	vt_next(&x->e, 5, IBV_WC_SUCCESS);
}

static void windows_owner(struct xrc *x)
{
	struct ct *ct = x->e.ct;
	struct ibv_mr *mr =
		ibv_reg_mr(x->e.pd, x->e.buf, WINDOW, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
	struct ibv_mw_bind bind = { .wr_id = 4,
				    .send_flags = IBV_SEND_SIGNALED,
				    .bind_info = { mr, (uintptr_t)x->e.buf, WINDOW,
						   IBV_ACCESS_REMOTE_WRITE } };
	struct ibv_mw *one = ibv_alloc_mw(x->e.pd, IBV_MW_TYPE_1),
		      *two = ibv_alloc_mw(x->e.pd, IBV_MW_TYPE_2);
	struct ibv_wc wc;

	CT_TRUE(ct, mr && one && two);
	VT_OK(ct, ibv_bind_mw(x->e.qp, one, &bind));
	vt_next(&x->e, 4, IBV_WC_SUCCESS);
	window_change(x, IBV_WR_BIND_MW, two, &bind.bind_info);
	VT_ERR(ct, ibv_dereg_mr(mr), EBUSY);
	ct_put(ct, 0, &one->rkey, sizeof(one->rkey));
	ct_sync(ct, &x->e);
	ct_verify(ct, x->e.buf, WINDOW, 3, "written through the window");
	VT_ERR(ct, ibv_bind_mw(x->recv, one, &bind), EINVAL);
	window_change(x, IBV_WR_LOCAL_INV, two, NULL);
	post(x, 0, PLACE, PLACE, 9);
	ct_sync(ct, &x->e);
	xt_next(x, x->cq[0], &wc);
	CT_EQ(ct, wc.status, IBV_WC_LOC_ACCESS_ERR);
	VT_OK(ct, ibv_dealloc_mw(one));
	VT_OK(ct, ibv_dealloc_mw(two));
	VT_OK(ct, ibv_dereg_mr(mr));
}

/*
 * What sends alone binds windows, too: those of type 1 are reached by all of the domain. None of
 * type 2 is a receiver's, which binds none, so what is to take one back fails.
 */
static void windows(struct ct *ct)
{
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct xrc x;

	start(ct, &x, NULL);
	if (ct->rank) {
		windows_owner(&x);
	} else {
		sge = vt_sge(&x.e, 0, WINDOW);
		wr = xt_request(&x, IBV_WR_RDMA_WRITE, &sge, 1, x.theirs[0]);
		ct_get(ct, NULL, 1, &wr.wr.rdma.rkey, sizeof(wr.wr.rdma.rkey));
		ct_fill(x.e.buf, WINDOW, 3);
		vt_post(&x.e, &wr);
		vt_next(&x.e, 1, IBV_WC_SUCCESS);
		ct_sync(ct, &x.e);
		wr.opcode = IBV_WR_SEND_WITH_INV;
		wr.invalidate_rkey = wr.wr.rdma.rkey;
		ct_sync(ct, &x.e);
		vt_post(&x.e, &wr);
		vt_next(&x.e, 1, IBV_WC_REM_ACCESS_ERR);
	}
	finish(&x);
}

const struct ct_case vt_xrc[] = { { "XRC", "messages", { messages, messages } },
				  { "XRC", "many", { many, many } },
				  { "XRC", "one-sided", { one_sided, one_sided } },
				  { "XRC", "builders", { builders, builders } },
				  { "XRC", "unknown", { offend, offend }, .arg = UNKNOWN },
				  { "XRC", "gone", { offend, offend }, .arg = GONE },
				  { "XRC", "domain", { offend, offend }, .arg = DOMAIN },
				  { "XRC", "memory", { offend, offend }, .arg = MEMORY },
				  { "XRC", "too-long", { offend, offend }, .arg = TOO_LONG },
				  { "XRC", "no-receive", { offend, offend }, .arg = NO_RECEIVE },
				  { "XRC", "queue-goes", { queue_goes, queue_goes } },
				  { "XRC", "domains", { domains } },
				  { "XRC", "domain-keeps-inode", { domain_keeps_inode } },
				  { "XRC", "objects", { objects } },
				  { "XRC", "handles", { handles, handles } },
				  { "XRC", "windows", { windows, windows } },
				  { NULL } };
