/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * FAULT: the other process is killed with work outstanding, and comes again;
 * completion queues overrun.
 */
#include "vt.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define LIVES 6		  /* victims in a case */
#define RECVS 100	  /* that each end keeps posted */
#define RECV (1ull << 40) /* ids of receives have this bit */
#define ROOM 300000u
/* seconds in which all must have ended: well above the time-outs that vt_rts sets */
#define TOLD 10.0

enum work {
	SENDS,
	WRITES,
	READS,
	ATOMICS,
	MIXED,
	ONLY_RECEIVES, /* until it has died */
	WORK = 7,
	SRQ = 8, /* both ends receive by one */
	/* it stands still before it dies, so that what needs it is outstanding for certain */
	STOPPED = 16
};

static enum work work_of(const struct ct *ct)
{
	return ct->cs->arg & WORK;
}

static const uint32_t lens[] = { 8, 0, 5000, 64, ROOM, 20000 };

/* ---- one that will be killed ----------------------------------------------------------------- */

/* Sends to the survivor, and takes from it, until the end. */
static void __attribute__((noreturn)) live(struct ct *ct, const struct vt_want *want)
{
	pid_t me = getpid();
	struct ibv_wc wc;
	struct ct_ep e;
	uint64_t sent = 0;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	vt_open(ct, &e, want);
	vt_exchange(&e);
	vt_connect(&e, e.qp, &e.peer[0]);
	for (uint64_t i = 0; i < RECVS; i++)
		vt_recv(&e, 0, ROOM, RECV);
	ct_put(ct, 0, &me, sizeof(me));
	for (;;) {
		struct ibv_sge sge = vt_sge(&e, VT_SIZE / 2, lens[sent % CT_COUNT(lens)]);
		struct ibv_send_wr wr = vt_wr(&e, IBV_WR_SEND, &sge, 1), *bad;

		sent += !ibv_post_send(e.qp, &wr, &bad);
		ct_progress(&e);
		while (e.tail > e.head) {
			vt_any(&e, &wc);
			if (wc.wr_id & RECV)
				vt_recv(&e, 0, ROOM, RECV);
		}
	}
}

static void victims(struct ct *ct, const struct vt_want *want)
{
	for (int i = 0; i < LIVES; i++) {
		pid_t pid = fork();

		if (!pid)
			live(ct, want);
		CT_TRUE(ct, pid > 0 && waitpid(pid, NULL, 0) == pid);
	}
}

/* ---- one that goes on ------------------------------------------------------------------------ */

struct tally {
	uint64_t posted, ended; /* requests: they end in the order of posting */
	uint64_t recvs;		/* posted and not completed */
	bool failed;		/* the error has been seen, the rest is flushed */
};

static bool post(struct ct_ep *e, enum work work, uint64_t id)
{
	static const enum ibv_wr_opcode ops[] = { IBV_WR_SEND, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ,
						  IBV_WR_ATOMIC_FETCH_AND_ADD };
	enum ibv_wr_opcode op = ops[work == MIXED	    ? id * 7 % CT_COUNT(ops)
				    : work == ONLY_RECEIVES ? 0
							    : work];
	bool atomic = op == IBV_WR_ATOMIC_FETCH_AND_ADD;
	struct ibv_sge sge = vt_sge(e, VT_SIZE / 2, atomic ? 8 : lens[id % CT_COUNT(lens)]);
	struct ibv_send_wr wr = vt_wr(e, op, &sge, id), *bad;
	int rc;

	if (atomic)
		wr.wr.atomic.compare_add = 1;
	rc = ibv_post_send(e->qp, &wr, &bad);
	CT_TRUE(e->ct, rc == 0 || rc == ENOMEM);
	return !rc;
}

/*
 * A receive ends well or is flushed; of the requests one has the error, and those before it none.
 */
static void ended(struct ct_ep *e, struct tally *t, const struct ibv_wc *wc)
{
	struct ct *ct = e->ct;

	if (wc->wr_id & RECV) {
		t->recvs--;
		CT_TRUE(ct, wc->status == IBV_WC_SUCCESS || wc->status == IBV_WC_WR_FLUSH_ERR);
		return;
	}
	CT_EQ(ct, wc->wr_id, t->ended);
	t->ended++;
	if (t->failed)
		CT_EQ(ct, wc->status, IBV_WC_WR_FLUSH_ERR);
	else if (wc->status != IBV_WC_SUCCESS)
		CT_EQ(ct, wc->status, IBV_WC_RETRY_EXC_ERR);
	t->failed |= wc->status != IBV_WC_SUCCESS;
}

static void look(struct ct_ep *e, struct tally *t, bool more)
{
	struct ibv_wc wc;

	ct_progress(e);
	while (e->tail > e->head) {
		vt_any(e, &wc);
		ended(e, t, &wc);
	}
	while (more && t->recvs < RECVS) {
		vt_recv(e, 0, ROOM, RECV);
		t->recvs++;
	}
}

/* It works until `end`, or until it cannot post more and `full` says that this is enough. */
static void work_until(struct ct_ep *e, struct tally *t, double end, bool full)
{
	enum work work = work_of(e->ct);

	while (ct_now() < end) {
		if (work != ONLY_RECEIVES && post(e, work, t->posted))
			t->posted++;
		else if (full)
			return;
		look(e, t, true);
	}
}

/*
 * Of what the requester itself finds out there is no event; only an SRQ's queue pair
 * says that it takes no more.
 */
static void check_events(struct ct_ep *e)
{
	struct ibv_async_event event;

	if (e->srq)
		vt_event(e, IBV_EVENT_QP_LAST_WQE_REACHED, e->qp);
	CT_TRUE(e->ct, !vt_async(e, 0, &event));
}

static void outlive(struct ct_ep *e, struct tally *t)
{
	struct ct *ct = e->ct;
	double killed, end = ct_deadline(ct);
	pid_t victim;

	vt_exchange(e);
	vt_connect(e, e->qp, &e->peer[1]);
	look(e, t, true);
	ct_get(ct, e, 1, &victim, sizeof(victim));
	if (ct->cs->arg & STOPPED)
		CT_EQ(ct, kill(victim, SIGSTOP), 0);
	work_until(e, t, ct_now() + 1e-3 * (double)ct_range(ct, 40), ct->cs->arg & STOPPED);
	CT_EQ(ct, kill(victim, SIGKILL), 0);
	killed = ct_now();
	while (!t->failed) { /* it may have done all that there was */
		if (post(e, work_of(ct), t->posted))
			t->posted++;
		look(e, t, false);
		ct_late(ct, end, "an error after the other end was killed");
	}
	while (t->ended < t->posted || (!e->srq && t->recvs)) {
		look(e, t, false);
		ct_late(ct, end, "the rest to be flushed");
	}
	if (ct_now() - killed > TOLD * ct->conf->scale)
		ct_fail(ct, "it took %.1f s to learn of a death", ct_now() - killed);
	CT_EQ(ct, vt_state(e, e->qp), IBV_QPS_ERR);
	check_events(e);
	/* all that took a receive has completed by that event, but in the other queue */
	look(e, t, false);
	vt_quiet(e, 2, "after the flush");
}

/* Again and again, by the same queue pair and with the same receives, if they are an SRQ's. */
static void killed(struct ct *ct)
{
	const struct vt_want want = { .srq = ct->cs->arg & SRQ, .split = ct->cs->arg & SRQ };
	struct tally t = { 0 };
	struct ct_ep e;

	if (ct->rank) {
		victims(ct, &want);
		return;
	}
	vt_open(ct, &e, &want);
	for (int i = 0; i < LIVES; i++) {
		t = (struct tally){ .recvs = e.srq ? t.recvs : 0 };
		outlive(&e, &t);
		vt_to(&e, e.qp, IBV_QPS_RESET);
	}
	vt_close(&e);
}

/* Nobody answers a datagram, or what UC sends: the end of the other end is not told. */
static void unnoticed(struct ct *ct)
{
	const struct vt_want want = { .type = (enum ibv_qp_type)ct->cs->arg };
	struct ct_ep e;

	vt_start(ct, &e, &want);
	if (ct->rank) {
		vt_recv(&e, 0, 4096, 1);
		ct_sync(ct, NULL);
		vt_of(&e, 1, NULL);
		ct_doomed(ct);
		raise(SIGKILL);
	}
	ct_sync(ct, &e);
	for (uint64_t i = 0; i < 200; i++) {
		vt_send(&e, 0, 1000, i);
		vt_next(&e, i, IBV_WC_SUCCESS);
		if (i == 1) {
			char c;

			CT_EQ(ct, recv(ct->chan[1], &c, 1, 0), 0); /* it is no more */
		}
	}
	CT_EQ(ct, vt_state(&e, e.qp), IBV_QPS_RTS);
	vt_close(&e);
}

/*
 * A message is cut off in the middle. Its receiver hears nothing of that: its queue
 * pair stands, and the receive ends with it, in its turn. Where it comes in whole after
 * all, the next one may not.
 */
#define LONG_MESSAGE (128u << 20)

static bool is_cut(struct ct_ep *e)
{
	struct ct *ct = e->ct;
	volatile char *first = e->buf;
	double end = ct_deadline(ct);
	char go = 1;

	*first = 0;
	vt_recv(e, 0, LONG_MESSAGE, 0);
	vt_recv(e, 0, LONG_MESSAGE, 1);
	ct_sync(ct, NULL);
	while (!*first) {
		ct_progress(e);
		ct_late(ct, end, "the first bytes of a message");
	}
	ct_put(ct, 1, &go, 1);
	ct_sync(ct, e);
	ct_progress(e);
	if (e->tail > e->head) {
		vt_next(e, 0, IBV_WC_SUCCESS);
		return false;
	}
	vt_quiet(e, ct->cs->slow ? 1500 : 50, "of a message that was cut off");
	CT_EQ(ct, vt_state(e, e->qp), IBV_QPS_RTS);
	vt_to(e, e->qp, IBV_QPS_ERR);
	vt_next(e, 0, IBV_WC_WR_FLUSH_ERR);
	vt_next(e, 1, IBV_WC_WR_FLUSH_ERR);
	return true;
}

static void cuts(struct ct_ep *e)
{
	char go;

	memset(e->buf, 1, LONG_MESSAGE);
	ct_sync(e->ct, NULL);
	vt_send(e, 0, LONG_MESSAGE, 0);
	ct_get(e->ct, e, 0, &go, 1);
	vt_to(e, e->qp, e->ct->cs->arg & 1 ? IBV_QPS_RESET : IBV_QPS_ERR);
	ct_sync(e->ct, NULL);
}

static void cut_off(struct ct *ct)
{
	const struct vt_want want = { .size = LONG_MESSAGE,
				      .type = ct->cs->arg & 2 ? IBV_QPT_UC : IBV_QPT_RC };
	struct ct_ep e;
	char over = 0;

	vt_open(ct, &e, &want);
	vt_exchange(&e);
	for (int i = 0; i < 50 && !over; i++) {
		vt_to(&e, e.qp, IBV_QPS_RESET);
		e.head = e.tail = 0;
		vt_connect(&e, e.qp, &e.peer[!ct->rank]);
		if (ct->rank) {
			cuts(&e);
			ct_get(ct, &e, 0, &over, 1);
		} else {
			over = is_cut(&e);
			ct_put(ct, 1, &over, 1);
		}
	}
	if (!over)
		ct_unsupported(ct, "every message comes in whole");
	vt_finish(&e);
}

/* ---- completion queues that are too small ---------------------------------------------------- */

#define FLOOD 800

static void await_event(struct ct_ep *e, enum ibv_event_type type)
{
	struct pollfd fd = { e->context->async_fd, POLLIN, 0 };
	double end = ct_deadline(e->ct);
	struct ibv_async_event event;

	do {
		while (poll(&fd, 1, 10) != 1)
			ct_late(e->ct, end, ibv_event_type_str(type));
		VT_OK(e->ct, ibv_get_async_event(e->context, &event));
		ibv_ack_async_event(&event);
	} while (event.event_type != type);
	CT_TRUE(e->ct, type != IBV_EVENT_CQ_ERR || event.element.cq == e->rcq);
}

/* Another process fills it; that one does not hang, and with a new queue all goes on. */
static void flooded(struct ct *ct)
{
	const struct vt_want want = { .recv_wr = ct->rank ? FLOOD : 1,
				      .cqe = ct->rank ? 16 : 0,
				      .split = ct->rank };
	struct ibv_wc wc;
	struct ct_ep e;
	int n;

	vt_start(ct, &e, &want);
	if (ct->rank) {
		CT_TRUE(ct, e.rcq->cqe < FLOOD);
		for (uint64_t i = 0; i < FLOOD; i++)
			vt_recv(&e, 0, 64, i);
		ct_sync(ct, NULL);
		await_event(&e, IBV_EVENT_CQ_ERR);
		while ((n = ibv_poll_cq(e.rcq, 1, &wc)) > 0)
			CT_EQ(ct, wc.status, IBV_WC_SUCCESS);
		CT_TRUE(ct, n < 0);
	} else {
		ct_sync(ct, NULL);
		for (uint64_t i = 0; i < FLOOD && vt_state(&e, e.qp) == IBV_QPS_RTS; i++) {
			vt_send(&e, 0, 8, i);
			vt_of(&e, i, NULL); /* well or not: it ends */
		}
	}
	ct_sync(ct, NULL);
	vt_close(&e);
	vt_start(ct, &e, &(const struct vt_want){ 0 });
	if (ct->rank)
		vt_recv(&e, 0, 64, 1);
	else
		vt_send(&e, 0, 64, 1);
	vt_done(&e, 1, NULL);
	vt_finish(&e);
}

const struct ct_case vt_fault[] = {
	{ "FAULT", "killed-sends", { killed, killed }, .arg = SENDS, .slow = true },
	{ "FAULT", "killed-writes", { killed, killed }, .arg = WRITES, .slow = true },
	{ "FAULT", "killed-reads", { killed, killed }, .arg = READS, .slow = true },
	{ "FAULT", "killed-atomics", { killed, killed }, .arg = ATOMICS, .slow = true },
	{ "FAULT", "killed-mixed", { killed, killed }, .arg = MIXED, .slow = true },
	{ "FAULT", "killed-receives", { killed, killed }, .arg = ONLY_RECEIVES, .slow = true },
	{ "FAULT", "killed-srq", { killed, killed }, .arg = MIXED | SRQ, .slow = true },
	{ "FAULT", "killed-receives-srq", { killed, killed }, .arg = ONLY_RECEIVES | SRQ, .slow = true },
	{ "FAULT", "stopped-sends", { killed, killed }, .arg = SENDS | STOPPED, .slow = true },
	{ "FAULT", "stopped-atomics", { killed, killed }, .arg = ATOMICS | STOPPED, .slow = true },
	{ "FAULT", "stopped-mixed", { killed, killed }, .arg = MIXED | SRQ | STOPPED, .slow = true },
	{ "FAULT", "cut-off", { cut_off, cut_off } },
	{ "FAULT", "cut-off-reset", { cut_off, cut_off }, .arg = 1, .slow = true },
	{ "FAULT", "cut-off-uc", { cut_off, cut_off }, .arg = 2, .slow = true },
	{ "FAULT", "unnoticed-uc", { unnoticed, unnoticed }, .arg = IBV_QPT_UC },
	{ "FAULT", "unnoticed-ud", { unnoticed, unnoticed }, .arg = IBV_QPT_UD },
	{ "FAULT", "flooded", { flooded, flooded } },
	{ NULL }
};
