/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * XRC domains of an inode, over the processes that have them open, ibv_open_xrcd(3): rank 0 sends
 * to a queue pair of rank 1, and names a queue of rank 2. ibv_open_qp(3) of another process's.
 */
#include "xt.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	SENDER,
	DOOR,  /* has the queue pair that receives */
	OWNER, /* has a queue */
};

/* The domain of a file that is made for this case, in the two ranks behind the first. */
static void shared_domain(struct ct *ct, struct xrc *x)
{
	char name[] = "/tmp/xrc-XXXXXX";
	int fd;

	if (ct->rank == DOOR) {
		fd = mkstemp(name);
		CT_TRUE(ct, fd >= 0);
		x->xrcd = xt_domain(ct, x->e.context, fd, O_CREAT | O_EXCL);
		ct_put(ct, OWNER, name, sizeof(name));
		ct_get(ct, NULL, OWNER, name, sizeof(name));
		unlink(name);
	} else {
		ct_get(ct, NULL, DOOR, name, sizeof(name));
		fd = open(name, O_RDONLY);
		CT_TRUE(ct, fd >= 0);
		x->xrcd = xt_domain(ct, x->e.context, fd, 0);
		ct_put(ct, DOOR, name, sizeof(name));
	}
	close(fd);
	CT_TRUE(ct, x->xrcd);
}

static bool same(const char *a, const char *b)
{
	return a == b || (a && b && !strcmp(a, b));
}

/* theirs[0] is the owner's queue then, everywhere; theirs[1] that of rank 1. */
static void open_three(struct ct *ct, struct xrc *x, const struct vt_want *want)
{
	struct vt_want all = want ? *want : (struct vt_want){ 0 };
	struct ibv_device_attr attr;

	if (!same(ct->conf->space[DOOR], ct->conf->space[OWNER]))
		ct_unsupported(ct, "a domain is one host's");
	all.type = ct->rank ? IBV_QPT_RC : IBV_QPT_XRC_SEND;
	all.size = 4 * PLACE;
	*x = (struct xrc){ 0 };
	vt_open(ct, &x->e, &all);
	VT_OK(ct, ibv_query_device(x->e.context, &attr));
	if (!(attr.device_cap_flags & IBV_DEVICE_XRC))
		ct_unsupported(ct, "the device has no XRC");
	if (ct->rank != SENDER) {
		shared_domain(ct, x);
		x->cq[0] = ibv_create_cq(x->e.context, 64, NULL, NULL, 0);
		CT_TRUE(ct, x->cq[0]);
		x->srq[0] = xt_queue(x, x->xrcd, x->cq[0], x->e.pd);
		VT_OK(ct, ibv_get_srq_num(x->srq[0], &x->number[0]));
	}
	if (ct->rank == DOOR) {
		x->recv = xt_receiver(x, x->xrcd);
		x->e.me.qpn = x->recv->qp_num;
	}
	vt_exchange(&x->e);
	for (int r = DOOR; r <= OWNER; r++) {
		uint32_t *at = &x->theirs[OWNER - r];

		*at = x->number[0];
		for (int to = 0; ct->rank == r && to < ct->procs; to++)
			if (to != r)
				ct_put(ct, to, at, sizeof(*at));
		if (ct->rank != r)
			ct_get(ct, NULL, r, at, sizeof(*at));
	}
}

static void connect_three(struct ct *ct, struct xrc *x)
{
	if (ct->rank == SENDER)
		xt_sender_connect(x, x->e.qp, &x->e.peer[DOOR]);
	if (ct->rank == DOOR)
		xt_receiver_connect(x, x->recv, &x->e.peer[SENDER]);
	ct_sync(ct, NULL);
}

static void close_three(struct xrc *x)
{
	struct ct *ct = x->e.ct;

	if (x->recv)
		VT_OK(ct, ibv_destroy_qp(x->recv));
	if (x->srq[0])
		VT_OK(ct, ibv_destroy_srq(x->srq[0]));
	if (x->cq[0])
		VT_OK(ct, ibv_destroy_cq(x->cq[0]));
	if (x->xrcd)
		VT_OK(ct, ibv_close_xrcd(x->xrcd));
	vt_close(&x->e);
}

static void post(struct xrc *x, size_t at, uint32_t len, uint64_t id)
{
	struct ibv_sge sge = vt_sge(&x->e, at, len);
	struct ibv_recv_wr wr = { .wr_id = id, .sg_list = &sge, .num_sge = 1 }, *bad;

	VT_OK(x->e.ct, ibv_post_srq_recv(x->srq[0], &wr, &bad));
}

static void send_to(struct xrc *x, uint32_t number, uint32_t len, uint64_t id)
{
	struct ibv_sge sge = vt_sge(&x->e, 0, len);
	struct ibv_send_wr wr = xt_request(x, IBV_WR_SEND, &sge, id, number);

	vt_post(&x->e, &wr);
}

/*
 * A message that is to take back a window meets none of the queue pair's that it came to, wherever
 * its queue is: nobody gets it.
 */
static void takes_back(struct ct *ct)
{
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct xrc x;

	open_three(ct, &x, NULL);
	connect_three(ct, &x);
	if (ct->rank == OWNER)
		post(&x, 0, PLACE, 1);
	ct_sync(ct, NULL);
	if (ct->rank == SENDER) {
		sge = vt_sge(&x.e, 0, 8);
		wr = xt_request(&x, IBV_WR_SEND_WITH_INV, &sge, 1, x.theirs[0]);
		wr.invalidate_rkey = x.e.mr->rkey;
		vt_post(&x.e, &wr);
		vt_next(&x.e, 1, IBV_WC_REM_INV_REQ_ERR);
	}
	ct_sync(ct, &x.e);
	if (ct->rank == OWNER) {
		struct ibv_wc wc;

		CT_EQ(ct, ibv_poll_cq(x.cq[0], 1, &wc), 0);
	}
	ct_sync(ct, NULL);
	close_three(&x);
}

/*
 * To both queues in turn, by one queue pair, whose number the completions have in either process.
 */
static void messages(struct ct *ct)
{
	static const uint32_t lens[] = { 8, 5000, 0, LONG };
	struct ibv_wc wc;
	struct xrc x;

	open_three(ct, &x, NULL);
	connect_three(ct, &x);
	for (uint32_t i = 0; i < 4; i++) {
		if (ct->rank == SENDER) {
			ct_fill(x.e.buf, lens[i], i);
			for (int q = 0; q < 2; q++) {
				send_to(&x, x.theirs[q], lens[i], i);
				vt_next(&x.e, i, IBV_WC_SUCCESS);
			}
			continue;
		}
		post(&x, PLACE * (size_t)(i & 1), PLACE, i);
		xt_next(&x, x.cq[0], &wc);
		CT_EQ(ct, wc.status, IBV_WC_SUCCESS);
		CT_EQ(ct, wc.wr_id, i);
		CT_EQ(ct, wc.byte_len, lens[i]);
		CT_EQ(ct, wc.qp_num, ct->rank == DOOR ? x.recv->qp_num : x.e.peer[DOOR].qpn);
		CT_EQ(ct, wc.src_qp, x.e.peer[SENDER].qpn);
		ct_verify(ct, x.e.buf + PLACE * (size_t)(i & 1), lens[i], i, "message");
	}
	ct_sync(ct, &x.e);
	close_three(&x);
}

/* The memory of the queue's process, by keys of that. */
static void one_sided(struct ct *ct)
{
	uint64_t word = 41;
	struct xrc x;

	open_three(ct, &x, NULL);
	connect_three(ct, &x);
	if (ct->rank == OWNER)
		memcpy(x.e.buf + PLACE, &word, 8);
	ct_sync(ct, NULL);
	if (ct->rank == SENDER) {
		const struct vt_name *to = &x.e.peer[OWNER];
		struct ibv_sge sge = vt_sge(&x.e, PLACE, 8);
		struct ibv_send_wr wr = xt_request(&x, IBV_WR_ATOMIC_FETCH_AND_ADD, &sge, 1, x.theirs[0]);

		wr.wr.atomic.remote_addr = to->addr + PLACE;
		wr.wr.atomic.rkey = to->rkey;
		wr.wr.atomic.compare_add = 1;
		vt_post(&x.e, &wr);
		vt_next(&x.e, 1, IBV_WC_SUCCESS);
		memcpy(&word, x.e.buf + PLACE, 8);
		CT_EQ(ct, word, 41);
		ct_fill(x.e.buf, LONG, 3);
		sge = vt_sge(&x.e, 0, LONG);
		for (int i = 0; i < 2; i++) {
			wr = xt_request(&x, i ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE, &sge, 2, x.theirs[0]);
			wr.wr.rdma.remote_addr = to->addr;
			wr.wr.rdma.rkey = to->rkey;
			vt_post(&x.e, &wr);
			vt_next(&x.e, 2, IBV_WC_SUCCESS);
			ct_verify(ct, x.e.buf, LONG, 3, "read");
			memset(x.e.buf, 0, LONG);
		}
	}
	ct_sync(ct, &x.e);
	if (ct->rank == OWNER) {
		ct_verify(ct, x.e.buf, LONG, 3, "written");
		memcpy(&word, x.e.buf + PLACE, 8);
		CT_EQ(ct, word, 42);
	}
	ct_sync(ct, &x.e);
	close_three(&x);
}

enum end {
	NOBODY, /* no queue has the number */
	NO_RECEIVE,
	OWNER_DIES,   /* while a message waits for a receive of its */
	OWNER_LEAVES, /* the queue is destroyed meanwhile */
	DOOR_DIES,
};

/*
 * One that waits for a receive gets there first, so that the way is known and
 * something is outstanding.
 */
static void outstanding(struct ct *ct, struct xrc *x)
{
	struct ibv_wc wc;

	if (ct->rank == OWNER) {
		post(x, 0, 64, 1);
		xt_next(x, x->cq[0], &wc);
		CT_EQ(ct, wc.status, IBV_WC_SUCCESS);
	} else if (ct->rank == SENDER) {
		send_to(x, x->theirs[0], 64, 1);
		vt_next(&x->e, 1, IBV_WC_SUCCESS);
		send_to(x, x->theirs[0], 64, 2);
	}
	ct_sync(ct, NULL);
}

static enum ibv_wc_status status_of(enum end end)
{
	return end == NO_RECEIVE  ? IBV_WC_RNR_RETRY_EXC_ERR
	       : end == DOOR_DIES ? IBV_WC_RETRY_EXC_ERR
				  : IBV_WC_REM_INV_REQ_ERR;
}

/*
 * The sender gets an error, and no queue pair is left that would take more,
 * but for want of a receive.
 */
static void ends(struct ct *ct)
{
	enum end end = (enum end)ct->cs->arg;
	const struct vt_want want = { .rnr_retry = end == NO_RECEIVE ? 1 : 7 };
	int dies = end == OWNER_DIES ? OWNER : end == DOOR_DIES ? DOOR : -1;
	struct xrc x;

	open_three(ct, &x, &want);
	connect_three(ct, &x);
	if (end == NOBODY || end == NO_RECEIVE) {
		if (ct->rank == SENDER)
			send_to(&x, end == NOBODY ? (x.theirs[0] & ~0xffu) | 0xf7 : x.theirs[0], 64, 2);
	} else {
		outstanding(ct, &x);
	}
	if (ct->rank == dies) {
		ct_doomed(ct);
		raise(SIGKILL);
	}
	if (ct->rank == OWNER && end == OWNER_LEAVES) {
		VT_OK(ct, ibv_destroy_srq(x.srq[0]));
		x.srq[0] = NULL;
	}
	if (ct->rank == SENDER) {
		vt_next(&x.e, 2, status_of(end));
		CT_EQ(ct, vt_state(&x.e, x.e.qp), IBV_QPS_ERR);
		for (int r = DOOR; r <= OWNER; r++)
			if (r != dies)
				ct_put(ct, r, &end, sizeof(end));
	} else {
		ct_get(ct, NULL, SENDER, &end, sizeof(end));
	}
	if (ct->rank == DOOR && end != NO_RECEIVE)
		CT_EQ(ct, vt_state(&x.e, x.recv), IBV_QPS_ERR);
	close_three(&x);
}

/* ---- ibv_open_qp ----------------------------------------------------------------------------- */

static struct ibv_qp *opened(struct xrc *x, uint32_t number)
{
	struct ibv_qp_open_attr attr = { .comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD |
						      IBV_QP_OPEN_ATTR_CONTEXT | IBV_QP_OPEN_ATTR_TYPE,
					 .qp_num = number,
					 .xrcd = x->xrcd,
					 .qp_context = x,
					 .qp_type = IBV_QPT_XRC_RECV };

	return ibv_open_qp(x->e.context, &attr);
}

/* It is found, connected and asked by another process, and stays as long as that has it. */
static void handles(struct ct *ct)
{
	struct ibv_qp *qp = NULL;
	struct xrc x;

	open_three(ct, &x, NULL);
	if (ct->rank == OWNER) {
		const uint32_t number = x.e.peer[DOOR].qpn;

		VT_NULL(ct, opened(&x, x.theirs[1]), EINVAL);
		VT_NULL(ct, opened(&x, (number & ~0xffu) | 0xf7), EINVAL);
		qp = opened(&x, number);
		CT_TRUE(ct, qp && qp->qp_num == number && qp->qp_context == &x && qp->state == IBV_QPS_RESET);
		xt_receiver_connect(&x, qp, &x.e.peer[SENDER]);
		CT_EQ(ct, vt_state(&x.e, qp), IBV_QPS_RTS);
		VT_ERR(ct, ibv_modify_qp(qp, &(struct ibv_qp_attr){ .qp_state = IBV_QPS_INIT }, IBV_QP_STATE),
		       EINVAL);
	} else if (ct->rank == SENDER) {
		xt_sender_connect(&x, x.e.qp, &x.e.peer[DOOR]);
	}
	ct_sync(ct, NULL);
	if (ct->rank == DOOR) {
		CT_EQ(ct, x.recv->state, IBV_QPS_RESET); /* it has not asked since */
		CT_EQ(ct, vt_state(&x.e, x.recv), IBV_QPS_RTS);
		CT_EQ(ct, x.recv->state, IBV_QPS_RTS);
		VT_OK(ct, ibv_destroy_qp(x.recv));
		x.recv = NULL;
	}
	ct_sync(ct, NULL);
	if (ct->rank == OWNER) {
		struct ibv_wc wc;

		post(&x, 0, 64, 4);
		xt_next(&x, x.cq[0], &wc);
		CT_TRUE(ct, wc.status == IBV_WC_SUCCESS && wc.qp_num == qp->qp_num);
		VT_OK(ct, ibv_destroy_qp(qp));
		VT_NULL(ct, opened(&x, x.e.peer[DOOR].qpn), EINVAL);
	} else if (ct->rank == SENDER) {
		send_to(&x, x.theirs[0], 64, 2);
		vt_next(&x.e, 2, IBV_WC_SUCCESS);
	}
	ct_sync(ct, NULL);
	close_three(&x);
}

/*
 * Whoever has it is told of its errors. What is left of one whose process has died is a handle in
 * error, which can be destroyed.
 */
static void handle_events(struct ct *ct)
{
	struct ibv_qp_attr got, attr = { .qp_state = IBV_QPS_RESET };
	struct ibv_qp_init_attr init;
	struct ibv_qp *qp = NULL;
	struct xrc x;
	char go;

	open_three(ct, &x, NULL);
	connect_three(ct, &x);
	if (ct->rank == OWNER) {
		qp = opened(&x, x.e.peer[DOOR].qpn);
		CT_TRUE(ct, qp && qp->state == IBV_QPS_RTS);
	}
	ct_sync(ct, NULL);
	if (ct->rank == SENDER) {
		send_to(&x, (x.theirs[0] & ~0xffu) | 0xf7, 64, 2);
		vt_next(&x.e, 2, IBV_WC_REM_INV_REQ_ERR);
	} else {
		vt_event(&x.e, IBV_EVENT_QP_REQ_ERR, ct->rank == DOOR ? x.recv : qp);
	}
	if (ct->rank == OWNER) {
		VT_OK(ct, ibv_query_qp(qp, &got, IBV_QP_CAP, &init));
		CT_EQ(ct, qp->state, IBV_QPS_RTS); /* nobody has asked for it */
		CT_EQ(ct, vt_state(&x.e, qp), IBV_QPS_ERR);
		CT_EQ(ct, qp->state, IBV_QPS_ERR);
	}
	ct_sync(ct, NULL);
	if (ct->rank == DOOR) {
		ct_doomed(ct);
		raise(SIGKILL);
	}
	if (ct->rank == OWNER) {
		vt_event(&x.e, IBV_EVENT_QP_FATAL, qp);
		CT_EQ(ct, vt_state(&x.e, qp), IBV_QPS_ERR);
		CT_TRUE(ct, ibv_modify_qp(qp, &attr, IBV_QP_STATE) != 0);
		VT_OK(ct, ibv_destroy_qp(qp));
		ct_put(ct, SENDER, "", 1);
	} else {
		ct_get(ct, NULL, OWNER, &go, 1);
	}
	close_three(&x);
}

/*
 * Who has it besides dies, after he has been told of an error: then it has nobody, and is no more.
 */
static void handle_dies(struct ct *ct)
{
	double end = ct_now() + 20;
	struct ibv_qp *qp = NULL;
	uint32_t number;
	struct xrc x;
	char go;

	open_three(ct, &x, NULL);
	connect_three(ct, &x);
	number = ct->rank == DOOR ? x.recv->qp_num : x.e.peer[DOOR].qpn;
	if (ct->rank == OWNER)
		CT_TRUE(ct, (qp = opened(&x, number)) != NULL);
	ct_sync(ct, NULL);
	if (ct->rank == SENDER) {
		send_to(&x, (x.theirs[0] & ~0xffu) | 0xf7, 64, 2);
		vt_next(&x.e, 2, IBV_WC_REM_INV_REQ_ERR);
	} else {
		vt_event(&x.e, IBV_EVENT_QP_REQ_ERR, ct->rank == DOOR ? x.recv : qp);
	}
	ct_sync(ct, NULL);
	if (ct->rank == DOOR) {
		VT_OK(ct, ibv_destroy_qp(x.recv));
		x.recv = NULL;
		CT_TRUE(ct, (qp = opened(&x, number)) != NULL); /* he has it */
		VT_OK(ct, ibv_destroy_qp(qp));
	}
	ct_sync(ct, NULL);
	if (ct->rank == OWNER) {
		ct_doomed(ct);
		raise(SIGKILL);
	}
	if (ct->rank == DOOR) {
		while ((qp = opened(&x, number))) {
			VT_OK(ct, ibv_destroy_qp(qp));
			CT_TRUE(ct, ct_now() < end);
			ct_pause();
		}
		CT_EQ(ct, errno, EINVAL);
		ct_put(ct, SENDER, "", 1);
	} else {
		ct_get(ct, NULL, DOOR, &go, 1);
	}
	close_three(&x);
}

const struct ct_case vt_xrc_shared[] = {
	{ "XRC", "shared-messages", CT_THREE(messages) },
	{ "XRC", "shared-takes-back", CT_THREE(takes_back) },
	{ "XRC", "shared-one-sided", CT_THREE(one_sided) },
	{ "XRC", "shared-nobody", CT_THREE(ends), .arg = NOBODY },
	{ "XRC", "shared-no-receive", CT_THREE(ends), .arg = NO_RECEIVE },
	{ "XRC", "shared-owner-dies", CT_THREE(ends), .arg = OWNER_DIES },
	{ "XRC", "shared-owner-leaves", CT_THREE(ends), .arg = OWNER_LEAVES },
	{ "XRC", "shared-door-dies", CT_THREE(ends), .arg = DOOR_DIES, .slow = true },
	{ "XRC", "shared-handles", CT_THREE(handles) },
	{ "XRC", "shared-events", CT_THREE(handle_events) },
	{ "XRC", "shared-handle-dies", CT_THREE(handle_dies) },
	{ NULL }
};
