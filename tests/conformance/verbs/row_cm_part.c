/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Row CM: connections end: rdma_disconnect(3), rdma_destroy_id(3), TIMEWAIT_EXIT, the death of the
 * other end; data passes before.
 */
#include "cmt.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

/* ---- data ------------------------------------------------------------------------------------ */

enum {
	LEN = 1000
};

struct region {
	char buf[2 * LEN];
	struct ibv_mr *mr;
};

static void region_open(struct cmt *c, struct region *r)
{
	memset(r->buf, 0, sizeof(r->buf));
	r->mr = rdma_reg_msgs(c->id, r->buf, sizeof(r->buf));
	CT_TRUE(c->ct, r->mr);
}

static void post_recv(struct cmt *c, struct region *r)
{
	CMT_OK(c->ct, rdma_post_recv(c->id, r, r->buf + LEN, LEN, r->mr));
}

static void exchange(struct cmt *c, struct region *r)
{
	struct ibv_wc wc;

	ct_fill(r->buf, LEN, 10 + (uint64_t)c->ct->rank);
	CMT_OK(c->ct, rdma_post_send(c->id, r, r->buf, LEN, r->mr, 0));
	CT_EQ(c->ct, rdma_get_send_comp(c->id, &wc), 1);
	CT_EQ(c->ct, wc.status, IBV_WC_SUCCESS);
	CT_EQ(c->ct, rdma_get_recv_comp(c->id, &wc), 1);
	CT_EQ(c->ct, wc.status, IBV_WC_SUCCESS);
	ct_verify(c->ct, r->buf + LEN, LEN, 10 + (uint64_t)!c->ct->rank, "message");
}

/* What is posted completes with a flush error, and the queue pair is in the error state. */
static void is_flushed(struct cmt *c)
{
	struct ibv_wc wc;

	CT_EQ(c->ct, rdma_get_recv_comp(c->id, &wc), 1);
	CT_EQ(c->ct, wc.status, IBV_WC_WR_FLUSH_ERR);
	CT_EQ(c->ct, cmt_state(c, c->id), IBV_QPS_ERR);
}

/* Connected, one message each way, and one receive more is posted. */
static void talk(struct ct *ct, struct cmt *c, struct region *r)
{
	char none[1];
	struct rdma_conn_param p = cmt_param(none, 0, 0);

	cmt_serve(ct, c);
	c->id = ct->rank ? cmt_resolve(c) : cmt_asked(c);
	cmt_qp(c, c->id);
	region_open(c, r);
	post_recv(c, r); /* before there is a connection */
	if (ct->rank)
		CMT_OK(ct, rdma_connect(c->id, &p));
	else
		CMT_OK(ct, rdma_accept(c->id, &p));
	cmt_expect(c, RDMA_CM_EVENT_ESTABLISHED, c->id, 0);
	exchange(c, r);
	post_recv(c, r);
	ct_sync(ct, NULL);
}

static void end(struct cmt *c, struct region *r)
{
	CT_EQ(c->ct, rdma_dereg_mr(r->mr), 0);
	ct_sync(c->ct, NULL);
	cmt_close(c);
}

/* ---- one after the other --------------------------------------------------------------------- */

static void leaves_first(struct ct *ct, int who)
{
	struct region r;
	struct cmt c;

	talk(ct, &c, &r);
	if (ct->rank == who) {
		CMT_OK(ct, rdma_disconnect(c.id));
		CT_EQ(ct, cmt_state(&c, c.id), IBV_QPS_ERR);
	}
	cmt_expect(&c, RDMA_CM_EVENT_DISCONNECTED, c.id, 0);
	if (ct->rank != who) {
		ct_sync(ct, NULL);
		CMT_OK(ct, rdma_disconnect(c.id));
	} else {
		cmt_expect(&c, RDMA_CM_EVENT_TIMEWAIT_EXIT, c.id, 0);
		ct_sync(ct, NULL);
	}
	is_flushed(&c);
	CMT_OK(ct, rdma_disconnect(c.id)); /* nothing is left to be done */
	if (ct->rank != who)
		cmt_expect(&c, RDMA_CM_EVENT_TIMEWAIT_EXIT, c.id, 0);
	cmt_quiet(&c, 20);
	end(&c, &r);
}

static void the_caller_leaves(struct ct *ct)
{
	leaves_first(ct, 1);
}

static void the_called_leaves(struct ct *ct)
{
	leaves_first(ct, 0);
}

static void both_leave(struct ct *ct)
{
	struct region r;
	struct cmt c;

	talk(ct, &c, &r);
	CMT_OK(ct, rdma_disconnect(c.id));
	cmt_expect(&c, RDMA_CM_EVENT_DISCONNECTED, c.id, 0);
	is_flushed(&c);
	cmt_expect(&c, RDMA_CM_EVENT_TIMEWAIT_EXIT, c.id, 0);
	cmt_quiet(&c, 20);
	end(&c, &r);
}

/* Destroying an id that is connected tells the other end. */
static void one_is_destroyed(struct ct *ct)
{
	struct region r;
	struct cmt c;

	talk(ct, &c, &r);
	if (ct->rank) {
		rdma_destroy_qp(c.id);
		CMT_OK(ct, rdma_destroy_id(c.id));
		c.id = NULL;
	} else {
		cmt_expect(&c, RDMA_CM_EVENT_DISCONNECTED, c.id, 0);
		CMT_OK(ct, rdma_disconnect(c.id));
		is_flushed(&c);
	}
	end(&c, &r);
}

/* An id may go while its RDMA_CM_EVENT_TIMEWAIT_EXIT is still to come. */
static void destroyed_in_timewait(struct ct *ct)
{
	struct region r;
	struct cmt c;

	talk(ct, &c, &r);
	CMT_OK(ct, rdma_disconnect(c.id));
	cmt_expect(&c, RDMA_CM_EVENT_DISCONNECTED, c.id, 0);
	is_flushed(&c);
	rdma_destroy_qp(c.id);
	CMT_OK(ct, rdma_destroy_id(c.id));
	c.id = NULL;
	cmt_quiet(&c, 1000);
	end(&c, &r);
}

/*
 * Who is told of the end destroys the queue pair, and with it what has not been read: so that is
 * given time to be read first, however often the event is asked for. A program that sleeps on the
 * channel instead is woken when the time is over.
 */
static void completions_come_first(struct ct *ct)
{
	struct rdma_cm_event *e;
	double left;
	struct region r;
	struct cmt c;

	talk(ct, &c, &r);
	if (ct->rank) {
		CMT_OK(ct, rdma_post_send(c.id, &r, r.buf, LEN, r.mr, 0));
		left = ct_now();
		CMT_OK(ct, rdma_disconnect(c.id));
		ct_put(ct, 0, &left, sizeof(left));
		cmt_expect(&c, RDMA_CM_EVENT_DISCONNECTED, c.id, 0);
	} else {
		struct pollfd p = { .fd = c.ch->fd, .events = POLLIN };
		double end = ct_deadline(ct), read;
		struct ibv_wc wc;

		fcntl(c.ch->fd, F_SETFL, O_NONBLOCK);
		while (rdma_get_cm_event(c.ch, &e)) {
			CT_EQ(ct, errno, EAGAIN);
			if (ct->cs->arg == 1)
				poll(&p, 1, 100);
			ct_late(ct, end, "the end");
		}
		read = ct_now();
		CT_EQ(ct, e->event, RDMA_CM_EVENT_DISCONNECTED);
		CMT_OK(ct, rdma_ack_cm_event(e));
		ct_get(ct, NULL, 1, &left, sizeof(left));
		CT_TRUE(ct, read - left >= 0.02);
		CT_EQ(ct, rdma_get_recv_comp(c.id, &wc), 1);
		CT_EQ(ct, wc.status, IBV_WC_SUCCESS);
	}
	end(&c, &r);
}

/*
 * What is sent after the other end has left is tried again for as long as its retries take, seconds
 * here; who leaves as well by then has it flushed. The other end has its queue pair still, has
 * destroyed it, or is dead.
 */
enum {
	LEFT,
	DESTROYED,
	DEAD
};

static void leaves_for_good(struct cmt *c)
{
	CMT_OK(c->ct, rdma_disconnect(c->id));
	cmt_expect(c, RDMA_CM_EVENT_DISCONNECTED, c->id, 0);
	if (c->ct->cs->arg == DESTROYED)
		rdma_destroy_qp(c->id);
}

static void sent_to_who_has_left(struct ct *ct)
{
	struct region r;
	struct ibv_wc wc;
	struct cmt c;

	talk(ct, &c, &r);
	if (ct->rank && ct->cs->arg == DEAD) {
		ct_doomed(ct);
		kill(getpid(), SIGKILL);
	}
	if (ct->rank) {
		leaves_for_good(&c);
		ct_sync(ct, NULL);
	} else {
		cmt_expect(&c, RDMA_CM_EVENT_DISCONNECTED, c.id, 0);
		if (ct->cs->arg != DEAD)
			ct_sync(ct, NULL);
		CMT_OK(ct, rdma_post_send(c.id, &r, r.buf, LEN, r.mr, 0));
		/* whether it has been noticed that nobody is there: either will do */
		usleep(50000);
		CMT_OK(ct, rdma_post_send(c.id, &r, r.buf, LEN, r.mr, 0));
		CMT_OK(ct, rdma_disconnect(c.id));
		for (int i = 0; i < 2; i++) {
			CT_EQ(ct, rdma_get_send_comp(c.id, &wc), 1);
			CT_EQ(ct, wc.status, IBV_WC_WR_FLUSH_ERR);
		}
		is_flushed(&c);
	}
	CT_EQ(ct, rdma_dereg_mr(r.mr), 0);
	if (ct->cs->arg != DEAD)
		ct_sync(ct, NULL);
	cmt_close(&c);
}

/* ---- the other end dies ---------------------------------------------------------------------- */

static void killed(struct ct *ct, int who)
{
	struct region r;
	struct cmt c;

	talk(ct, &c, &r);
	if (ct->rank == who) {
		ct_doomed(ct);
		ct_sync(ct, NULL);
		kill(getpid(), SIGKILL);
	}
	ct_sync(ct, NULL);
	cmt_expect(&c, RDMA_CM_EVENT_DISCONNECTED, c.id, 0);
	CMT_OK(ct, rdma_disconnect(c.id));
	is_flushed(&c);
	CT_EQ(ct, rdma_dereg_mr(r.mr), 0);
	cmt_close(&c);
}

static void the_caller_dies(struct ct *ct)
{
	killed(ct, 1);
}

static void the_called_dies(struct ct *ct)
{
	killed(ct, 0);
}

/* Who has been asked dies before it answers. */
static void nobody_answers(struct ct *ct)
{
	struct rdma_cm_event *e;
	struct cmt c;

	cmt_serve(ct, &c);
	if (!ct->rank) {
		c.id = cmt_asked(&c);
		ct_doomed(ct);
		kill(getpid(), SIGKILL);
	}
	c.id = cmt_resolve(&c);
	CMT_OK(ct, rdma_connect(c.id, NULL));
	e = cmt_event(&c, RDMA_CM_EVENT_UNREACHABLE);
	CT_TRUE(ct, e->id == c.id && e->status < 0);
	CMT_OK(ct, rdma_ack_cm_event(e));
	cmt_close(&c);
}

/* ---- acknowledging --------------------------------------------------------------------------- */

static void *destroy(void *id)
{
	rdma_destroy_id(id);
	return NULL;
}

/* rdma_destroy_id waits until the events of its id have been acknowledged. */
static void events_hold_their_id(struct ct *ct)
{
	struct rdma_cm_event *e;
	pthread_t thread;
	struct cmt c;

	cmt_open(ct, &c);
	cmt_here(AF_INET, 4000, &c.at);
	c.id = cmt_id(&c);
	CMT_OK(ct, rdma_resolve_addr(c.id, NULL, cmt_at(&c), 1000));
	e = cmt_event(&c, RDMA_CM_EVENT_ADDR_RESOLVED);
	CT_EQ(ct, pthread_create(&thread, NULL, destroy, c.id), 0);
	ct_let_others_sleep();
	CT_EQ(ct, pthread_tryjoin_np(thread, NULL), EBUSY);
	CT_TRUE(ct, e->id == c.id);
	CMT_OK(ct, rdma_ack_cm_event(e));
	CT_EQ(ct, pthread_join(thread, NULL), 0);
	c.id = NULL;
	CMT_ERR(ct, rdma_ack_cm_event(NULL), EINVAL);
	cmt_close(&c);
}

/*
 * Before there is a connection nobody is told, and the queue pair is given up: what the other end
 * says then comes to nothing.
 */
static void too_early(struct ct *ct)
{
	struct cmt c;

	cmt_serve(ct, &c);
	if (ct->rank) {
		c.id = cmt_resolve(&c);
		CMT_ERR(ct, rdma_disconnect(c.id), EINVAL); /* nothing has begun */
		cmt_qp(&c, c.id);
		CMT_OK(ct, rdma_connect(c.id, NULL));
		CMT_OK(ct, rdma_disconnect(c.id));
		CT_EQ(ct, cmt_state(&c, c.id), IBV_QPS_ERR);
		ct_sync(ct, NULL);
		cmt_expect(&c, RDMA_CM_EVENT_REJECTED, c.id, CMT_CONSUMER);
	} else {
		c.id = cmt_asked(&c);
		cmt_qp(&c, c.id);
		CMT_OK(ct, rdma_disconnect(c.id));
		CT_EQ(ct, cmt_state(&c, c.id), IBV_QPS_ERR);
		cmt_quiet(&c, 20);
		ct_sync(ct, NULL);
		CMT_OK(ct, rdma_reject(c.id, NULL, 0));
	}
	ct_sync(ct, NULL);
	cmt_close(&c);
}

const struct ct_case vt_cm_part[] = {
	{ "CM", "disconnect-by-caller", CT_TWO(the_caller_leaves), .arg = 4 },
	{ "CM", "disconnect-by-caller-ipv6", CT_TWO(the_caller_leaves), .arg = 6, .slow = true },
	{ "CM", "disconnect-by-called", CT_TWO(the_called_leaves), .slow = true },
	{ "CM", "disconnect-by-both", CT_TWO(both_leave) },
	{ "CM", "disconnect-too-early", CT_TWO(too_early) },
	{ "CM", "destroyed-while-connected", CT_TWO(one_is_destroyed) },
	{ "CM", "destroyed-in-timewait", CT_TWO(destroyed_in_timewait), .slow = true },
	{ "CM", "completions-before-disconnect", CT_TWO(completions_come_first) },
	{ "CM", "completions-before-disconnect-asleep", CT_TWO(completions_come_first), .arg = 1 },
	{ "CM", "sent-to-who-has-left", CT_TWO(sent_to_who_has_left), .arg = LEFT },
	{ "CM", "sent-to-who-has-no-queue-pair", CT_TWO(sent_to_who_has_left), .arg = DESTROYED },
	{ "CM", "sent-to-the-dead", CT_TWO(sent_to_who_has_left), .arg = DEAD },
	{ "CM", "caller-killed", CT_TWO(the_caller_dies) },
	{ "CM", "called-killed", CT_TWO(the_called_dies) },
	{ "CM", "killed-before-answer", CT_TWO(nobody_answers) },
	{ "CM", "acknowledge", { events_hold_their_id } },
	{ 0 },
};
