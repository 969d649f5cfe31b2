/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * CQ: events, their acknowledgement, and queues that go while events of theirs are about:
 * ibv_get_cq_event(3), ibv_get_async_event(3).
 */
#include "vt.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

static void self_open(struct ct *ct, struct ct_ep *e, const struct vt_want *want)
{
	vt_open(ct, e, want);
	vt_connect(e, e->qp, &e->me);
	e->peer[!ct->rank] = e->me;
}

static bool readable(int fd, int ms)
{
	return poll(&(struct pollfd){ fd, POLLIN, 0 }, 1, ms) == 1;
}

/* One request is one event, however often it is made, and the more that is asked for wins. */
static void once(struct ct *ct)
{
	const struct vt_want want = { .channel = true };
	struct ibv_cq *cq;
	void *context;
	struct ct_ep e;

	self_open(ct, &e, &want);
	VT_OK(ct, ibv_req_notify_cq(e.cq, 0));
	VT_OK(ct, ibv_req_notify_cq(e.cq, 1));
	VT_OK(ct, ibv_req_notify_cq(e.cq, 1));
	vt_recv(&e, 0, 64, 1);
	vt_send(&e, 4096, 8, 2); /* not solicited */
	VT_OK(ct, ibv_get_cq_event(e.channel, &cq, &context));
	CT_TRUE(ct, cq == e.cq && context == &e);
	vt_done(&e, 1, NULL);
	vt_done(&e, 2, NULL);
	CT_TRUE(ct, !readable(e.channel->fd, 5));
	ibv_ack_cq_events(cq, 1);
	vt_close(&e);
}

/*
 * Two queues have one channel: each has its events, and those of the one
 * that goes unread go with it.
 */
static void shared(struct ct *ct)
{
	const struct vt_want want = { .channel = true, .split = true };
	struct ibv_cq *cq;
	void *context;
	int sends = 0;
	struct ct_ep e;

	self_open(ct, &e, &want);
	for (int round = 0; round < 2; round++) {
		VT_OK(ct, ibv_req_notify_cq(e.cq, 0));
		VT_OK(ct, ibv_req_notify_cq(e.rcq, 0));
		vt_recv(&e, 0, 64, 1);
		vt_send(&e, 4096, 8, 2);
		vt_done(&e, 1, NULL);
		vt_done(&e, 2, NULL);
		if (round)
			break;
		for (int i = 0; i < 2; i++) {
			VT_OK(ct, ibv_get_cq_event(e.channel, &cq, &context));
			CT_TRUE(ct, cq == e.cq || cq == e.rcq);
			sends += cq == e.cq;
			ibv_ack_cq_events(cq, 1);
		}
		CT_EQ(ct, sends, 1);
		CT_TRUE(ct, !readable(e.channel->fd, 5));
	}
	VT_OK(ct, ibv_destroy_qp(e.qp));
	e.qp = NULL;
	VT_OK(ct, ibv_destroy_cq(e.rcq)); /* with an event that nobody has read */
	e.rcq = e.cq;
	VT_OK(ct, ibv_get_cq_event(e.channel, &cq, &context));
	CT_TRUE(ct, cq == e.cq);
	CT_TRUE(ct, !readable(e.channel->fd, 5));
	ibv_ack_cq_events(cq, 1);
	vt_close(&e);
}

/* ---- destroyed while events are out ---------------------------------------------------------- */

struct end {
	struct ct_ep *e;
	atomic_bool gone;
	int rc;
};

static void *end_cq(void *arg)
{
	struct end *end = arg;

	end->rc = ibv_destroy_cq(end->e->rcq);
	atomic_store(&end->gone, true);
	return NULL;
}

static void *end_qp(void *arg)
{
	struct end *end = arg;

	end->rc = ibv_destroy_qp(end->e->qp);
	atomic_store(&end->gone, true);
	return NULL;
}

/*
 * Two events of the queue have been read, and are acknowledged one after the other:
 * it goes with the second.
 */
static void waits(struct ct *ct)
{
	const struct vt_want want = { .channel = true, .split = true };
	struct end end = { .rc = -1 };
	pthread_t thread;
	struct ibv_cq *cq;
	void *context;
	struct ct_ep e;

	self_open(ct, &e, &want);
	end.e = &e;
	for (int i = 0; i < 2; i++) {
		VT_OK(ct, ibv_req_notify_cq(e.rcq, 0));
		vt_recv(&e, 0, 64, 1);
		vt_send(&e, 4096, 8, 2);
		vt_done(&e, 1, NULL);
		vt_done(&e, 2, NULL);
		VT_OK(ct, ibv_get_cq_event(e.channel, &cq, &context));
		CT_TRUE(ct, cq == e.rcq);
	}
	VT_OK(ct, ibv_destroy_qp(e.qp));
	e.qp = NULL;
	CT_EQ(ct, pthread_create(&thread, NULL, end_cq, &end), 0);
	ct_let_others_sleep();
	ibv_ack_cq_events(cq, 1);
	ct_let_others_sleep();
	CT_TRUE(ct, !atomic_load(&end.gone));
	ibv_ack_cq_events(cq, 1);
	CT_EQ(ct, pthread_join(thread, NULL), 0);
	CT_EQ(ct, end.rc, 0);
	e.rcq = e.cq;
	vt_close(&e);
}

/* So does a queue pair with an asynchronous event; one that has not been read goes along. */
static void waits_async(struct ct *ct)
{
	const struct vt_want want = { .srq = true };
	struct ibv_async_event event;
	struct end end = { .rc = -1 };
	struct ibv_qp *second;
	pthread_t thread;
	struct ct_ep e;

	self_open(ct, &e, &want);
	end.e = &e;
	second = vt_qp(&e);
	vt_connect(&e, second, &e.me);
	vt_to(&e, second, IBV_QPS_ERR);
	vt_to(&e, e.qp, IBV_QPS_ERR);
	VT_OK(ct, ibv_destroy_qp(second));
	VT_OK(ct, ibv_get_async_event(e.context, &event));
	CT_EQ(ct, event.event_type, IBV_EVENT_QP_LAST_WQE_REACHED);
	CT_TRUE(ct, event.element.qp == e.qp);
	CT_TRUE(ct, !readable(e.context->async_fd, 5));
	CT_EQ(ct, pthread_create(&thread, NULL, end_qp, &end), 0);
	ct_let_others_sleep();
	CT_TRUE(ct, !atomic_load(&end.gone));
	ibv_ack_async_event(&event);
	CT_EQ(ct, pthread_join(thread, NULL), 0);
	CT_EQ(ct, end.rc, 0);
	e.qp = NULL;
	vt_close(&e);
}

/* ---- more than fits -------------------------------------------------------------------------- */

/*
 * IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN: what does not fit may be lost, but the
 * queue is no worse for it.
 */
static void ignored(struct ct *ct)
{
	const struct vt_want want = { .recv_wr = 1000 };
	struct ibv_cq_init_attr_ex attr = { .cqe = 16,
					    .comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS,
					    .flags = IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN };
	struct ibv_cq *cq;
	struct ibv_wc wc;
	struct ct_ep e;
	int n, got = 0;

	vt_open(ct, &e, &want);
	VT_OK(ct, ibv_destroy_qp(e.qp));
	VT_OK(ct, ibv_destroy_cq(e.cq));
	cq = ibv_cq_ex_to_cq(ibv_create_cq_ex(e.context, &attr));
	CT_TRUE(ct, cq);
	e.cq = e.rcq = cq;
	e.qp = vt_qp(&e);
	e.me.qpn = e.qp->qp_num;
	e.peer[!ct->rank] = e.me;
	vt_connect(&e, e.qp, &e.me);
	for (uint64_t i = 0; i < 900; i++)
		vt_recv(&e, 0, 64, i);
	vt_to(&e, e.qp, IBV_QPS_ERR);
	CT_TRUE(ct, !readable(e.context->async_fd, 5)); /* no IBV_EVENT_CQ_ERR */
	while ((n = ibv_poll_cq(cq, 1, &wc)) > 0)
		got++;
	CT_EQ(ct, n, 0);
	CT_TRUE(ct, got >= 16 && got < 900);
	vt_to(&e, e.qp, IBV_QPS_RESET);
	vt_connect(&e, e.qp, &e.me);
	vt_recv(&e, 0, 64, 1);
	vt_send(&e, 4096, 8, 2);
	vt_done(&e, 1, NULL);
	vt_done(&e, 2, NULL);
	vt_close(&e);
}

/*
 * What has been accepted completes at its sender, who polls or sleeps, though the receiving program
 * makes no call any more. The receive is posted late, so that who sleeps does so by then.
 */
static void accepted(struct ct *ct)
{
	const struct vt_want want = { .channel = true };
	struct ibv_cq *cq;
	void *context;
	struct ct_ep e;

	vt_start(ct, &e, &want);
	for (uint64_t id = 1; id <= 20; id++) {
		bool sleeps = id % 2;

		if (ct->rank) {
			usleep(sleeps ? 3000 : 0);
			vt_recv(&e, 0, 64, id);
			vt_done(&e, id, NULL);
			ct_sync(ct, NULL);
			continue;
		}
		if (sleeps)
			VT_OK(ct, ibv_req_notify_cq(e.cq, 0));
		vt_send(&e, 4096, 8, id);
		if (sleeps) {
			VT_OK(ct, ibv_get_cq_event(e.channel, &cq, &context));
			ibv_ack_cq_events(cq, 1);
		}
		vt_done(&e, id, NULL);
		ct_sync(ct, NULL);
	}
	vt_finish(&e);
}

/* ---- how soon -------------------------------------------------------------------------------- */

/* seconds: enough to wake a sleeper, and less than it takes who looks for work now and then */
#define SOON 0.001

static void take_event(struct ct_ep *e, struct ibv_comp_channel *channel)
{
	struct ibv_cq *cq;
	void *context;

	VT_OK(e->ct, ibv_get_cq_event(channel, &cq, &context));
	ibv_ack_cq_events(cq, 1);
}

/*
 * Poll, ask for notice, and sleep without polling once more, until this request is
 * done; others do not matter.
 */
static void sleep_for(struct ct_ep *e, uint64_t id)
{
	struct ibv_wc wc = { .wr_id = ~id };

	while (wc.wr_id != id) {
		if (ibv_poll_cq(e->cq, 1, &wc)) {
			CT_EQ(e->ct, wc.status, IBV_WC_SUCCESS);
			continue;
		}
		VT_OK(e->ct, ibv_req_notify_cq(e->cq, 0));
		CT_TRUE(e->ct, readable(e->channel->fd, 10000));
		take_event(e, e->channel);
	}
}

/* Both do so in turn, and are woken at once. */
static void armed(struct ct *ct)
{
	const struct vt_want want = { .type = (enum ibv_qp_type)ct->cs->arg, .channel = true };
	double end = ct_deadline(ct), begun;
	int in_a_row = 0;
	struct ct_ep e;

	vt_start(ct, &e, &want);
	while (in_a_row < 8) {
		vt_recv(&e, 0, 64, 1);
		ct_sync(ct, NULL);
		begun = ct_now();
		if (!ct->rank)
			vt_send(&e, 4096, 8, 2);
		sleep_for(&e, 1);
		if (ct->rank)
			vt_send(&e, 4096, 8, 2);
		in_a_row = ct_now() - begun < SOON ? in_a_row + 1 : 0;
		if (ct->rank)
			ct_get(ct, &e, 0, &in_a_row, sizeof(in_a_row));
		else
			ct_put(ct, 1, &in_a_row, sizeof(in_a_row));
		ct_late(ct, end, "rounds in which both are woken at once");
	}
	vt_finish(&e);
}

/*
 * A thread that sleeps on a channel of its own while another one polls, which
 * goes away to compute then.
 */
struct sleeper {
	struct ct_ep *e;
	struct ibv_cq *cq;
	struct ibv_comp_channel *channel;
	atomic_bool stop, awake;
};

static void *sleeps(void *arg)
{
	struct sleeper *s = arg;
	struct ibv_wc wc;

	while (!atomic_load(&s->stop)) {
		VT_OK(s->e->ct, ibv_req_notify_cq(s->cq, 0));
		take_event(s->e, s->channel);
		while (ibv_poll_cq(s->cq, 1, &wc) > 0)
			CT_EQ(s->e->ct, wc.status, IBV_WC_SUCCESS);
		atomic_store(&s->awake, true);
	}
	return NULL;
}

/* Poll for a while, and then wait for the sleeper without a call. */
static bool wakes_soon(struct sleeper *s)
{
	struct ct *ct = s->e->ct;
	double begun, end = ct_now() + 0.005;
	struct ibv_wc wc;

	vt_recv(s->e, 0, 64, 1);
	atomic_store(&s->awake, false);
	while (ct_now() < end)
		CT_EQ(ct, ibv_poll_cq(s->e->cq, 1, &wc), 0);
	begun = ct_now();
	ct_put(ct, 1, "", 1);
	for (end = ct_deadline(ct); !atomic_load(&s->awake); ct_late(ct, end, "the sleeper"))
		ct_pause();
	return ct_now() - begun < SOON;
}

static void beside(struct ct *ct)
{
	const struct vt_want want = { .channel = true, .split = true };
	struct sleeper s = { .stop = false };
	double end = ct_deadline(ct);
	pthread_t thread;
	int in_a_row = 0;
	struct ct_ep e;

	vt_start(ct, &e, &want);
	s.e = &e;
	s.cq = e.rcq;
	s.channel = e.channel;
	CT_EQ(ct, pthread_create(&thread, NULL, sleeps, &s), 0);
	while (in_a_row < 12) {
		in_a_row = wakes_soon(&s) ? in_a_row + 1 : 0;
		ct_late(ct, end, "rounds in which the sleeper is woken at once");
	}
	atomic_store(&s.stop, true);
	wakes_soon(&s);
	CT_EQ(ct, pthread_join(thread, NULL), 0);
	ct_put(ct, 1, "x", 1);
	vt_finish(&e);
}

static void wakes(struct ct *ct)
{
	const struct vt_want want = { .channel = true };
	struct ct_ep e;
	char word;

	vt_start(ct, &e, &want);
	for (ct_get(ct, &e, 0, &word, 1); !word; ct_get(ct, &e, 0, &word, 1)) {
		vt_send(&e, 4096, 8, 2);
		vt_done(&e, 2, NULL);
	}
	vt_finish(&e);
}

const struct ct_case vt_notices[] = { { "CQ", "one-shot", { once } },
				      { "CQ", "one-channel", { shared } },
				      { "CQ", "destroy-waits", { waits } },
				      { "QP", "destroy-waits", { waits_async } },
				      { "CQ", "overrun-ignored", { ignored } },
				      { "CQ", "accepted", { accepted, accepted } },
				      { "CQ", "armed-rc", CT_TWO(armed), .arg = IBV_QPT_RC },
				      { "CQ", "armed-ud", CT_TWO(armed), .arg = IBV_QPT_UD },
				      { "CQ", "sleeper-beside", { beside, wakes } },
				      { NULL } };
