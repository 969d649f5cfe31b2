/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * D8: waiting, by several threads and for several dispatchers: dat_evd_wait(3DAT),
 * dat_cno_wait(3DAT) and what they are woken by.
 */
#include "dt.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct sleeper { /* a thread in dat_cno_wait */
	struct ct *ct;
	pthread_t thread;
	DAT_CNO_HANDLE cno;
	DAT_RETURN rc;
	DAT_EVD_HANDLE evd;
	_Atomic pid_t about; /* its thread's id */
	_Atomic bool done;
};

static void *sleep_there(void *arg)
{
	struct sleeper *s = arg;

	s->about = gettid();
	s->rc = dat_cno_wait(s->cno, DAT_TIMEOUT_INFINITE, &s->evd);
	s->done = true;
	return NULL;
}

static void start(struct ct *ct, struct sleeper *s, DAT_CNO_HANDLE cno)
{
	double end = ct_deadline(ct);

	*s = (struct sleeper){ .ct = ct, .cno = cno, .evd = cno /* anything but NULL */ };
	CT_EQ(ct, pthread_create(&s->thread, NULL, sleep_there, s), 0);
	while (!s->about || !ct_let_sleep(s->about))
		ct_late(ct, end, "a thread to wait");
	CT_TRUE(ct, !s->done);
}

static void join(struct sleeper *s)
{
	double end = ct_deadline(s->ct);

	while (!s->done) {
		ct_late(s->ct, end, "a thread to be woken");
		dt_sleep(1);
	}
	CT_EQ(s->ct, pthread_join(s->thread, NULL), 0);
}

static void post(struct dt *d, DAT_EVD_HANDLE evd)
{
	DAT_EVENT event = { .event_number = DAT_SOFTWARE_EVENT };

	DT_OK(d->ct, dat_evd_post_se(evd, &event));
}

static DAT_CNO_HANDLE new_cno(struct dt *d)
{
	DAT_CNO_HANDLE cno;

	DT_OK(d->ct, dat_cno_create(d->ia, DAT_OS_WAIT_PROXY_AGENT_NULL, &cno));
	return cno;
}

/* An event wakes one of those who wait; one who waits keeps the object from being freed. */
static void cno_waiters(struct ct *ct)
{
	struct sleeper s[2];
	bool seen[2] = { false, false };
	DAT_CNO_HANDLE cno;
	DAT_EVD_HANDLE evd, who;
	DAT_EVENT event;
	struct dt d;

	dt_open(ct, &d, NULL);
	cno = new_cno(&d);
	who = cno;
	DT_TYPE(ct, dat_cno_wait(cno, 1000, &who), DAT_QUEUE_EMPTY);
	CT_TRUE(ct, who == DAT_HANDLE_NULL);
	evd = dt_evd(&d, 8, cno, DAT_EVD_SOFTWARE_FLAG);
	for (int i = 0; i < 2; i++)
		start(ct, &s[i], cno);
	DT_ERR(ct, dat_cno_free(cno), DAT_INVALID_STATE, DAT_INVALID_STATE_CNO_IN_USE);
	for (int i = 0; i < 2; i++) {
		struct sleeper *first;

		post(&d, evd);
		while (!(first = s[0].done && !seen[0] ? &s[0] : s[1].done && !seen[1] ? &s[1] : NULL))
			dt_sleep(1);
		seen[first - s] = true;
		join(first);
		CT_TRUE(ct, first->rc == DAT_SUCCESS && first->evd == evd);
		DT_OK(ct, dat_evd_dequeue(evd, &event));
	}
	DT_OK(ct, dat_evd_free(evd));
	DT_OK(ct, dat_cno_free(cno));
	dt_close(&d);
}

/* The adapter is closed: they get DAT_HANDLE_NULL. */
static void cno_closed(struct ct *ct)
{
	struct sleeper s[3];
	DAT_CNO_HANDLE cno;
	struct dt d;

	dt_open(ct, &d, NULL);
	cno = new_cno(&d);
	dt_evd(&d, 8, cno, DAT_EVD_SOFTWARE_FLAG);
	for (int i = 0; i < 3; i++)
		start(ct, &s[i], cno);
	DT_OK(ct, dat_ia_close(d.ia, DAT_CLOSE_ABRUPT_FLAG));
	for (int i = 0; i < 3; i++) {
		join(&s[i]);
		CT_TRUE(ct, s[i].evd == DAT_HANDLE_NULL);
	}
	free(d.buf);
}

/* Its last dispatcher is freed: likewise. */
static void cno_orphaned(struct ct *ct)
{
	DAT_EVD_HANDLE evd[2];
	struct sleeper s;
	DAT_CNO_HANDLE cno;
	struct dt d;

	dt_open(ct, &d, NULL);
	cno = new_cno(&d);
	for (int i = 0; i < 2; i++)
		evd[i] = dt_evd(&d, 8, cno, DAT_EVD_SOFTWARE_FLAG);
	start(ct, &s, cno);
	DT_OK(ct, dat_evd_free(evd[0]));
	dt_waits_on(ct, &s.done);
	DT_OK(ct, dat_evd_free(evd[1]));
	join(&s);
	CT_TRUE(ct, s.evd == DAT_HANDLE_NULL);
	DT_OK(ct, dat_cno_free(cno));
	dt_close(&d);
}

struct calls { /* what an agent was told of */
	_Atomic int n, nobody;
	_Atomic(DAT_EVD_HANDLE) last;
};

static void count_call(DAT_PVOID arg, DAT_EVD_HANDLE evd)
{
	struct calls *c = arg;

	c->last = evd;
	c->nobody += evd == DAT_HANDLE_NULL;
	c->n++;
}

static void await_calls(struct ct *ct, const struct calls *c, int n)
{
	double end = ct_deadline(ct);

	while (c->n < n) {
		ct_late(ct, end, "an agent to be called");
		dt_sleep(1);
	}
	CT_EQ(ct, c->n, n);
}

/*
 * An agent is called for each dispatcher that has something, as long as it is the agent; at the
 * end with DAT_HANDLE_NULL.
 */
static void agents(struct ct *ct)
{
	struct calls first = { 0 }, second = { 0 };
	DAT_OS_WAIT_PROXY_AGENT agent = { &first, count_call };
	DAT_CNO_PARAM param;
	DAT_CNO_HANDLE cno;
	DAT_EVD_HANDLE evd[2];
	DAT_EVENT event;
	struct dt d;

	dt_open(ct, &d, NULL);
	DT_OK(ct, dat_cno_create(d.ia, agent, &cno));
	for (int i = 0; i < 2; i++) {
		evd[i] = dt_evd(&d, 8, cno, DAT_EVD_SOFTWARE_FLAG);
		post(&d, evd[i]);
		await_calls(ct, &first, i + 1);
		CT_TRUE(ct, first.last == evd[i]);
		DT_OK(ct, dat_evd_dequeue(evd[i], &event));
	}
	agent.instance_data = &second;
	DT_OK(ct, dat_cno_modify_agent(cno, agent));
	DT_OK(ct, dat_cno_query(cno, DAT_CNO_FIELD_ALL, &param));
	CT_TRUE(ct, param.proxy_type == DAT_PROXY_TYPE_AGENT && param.proxy.agent.instance_data == &second);
	post(&d, evd[0]);
	await_calls(ct, &second, 1);
	DT_OK(ct, dat_evd_free(evd[0]));
	CT_EQ(ct, second.nobody, 0);
	DT_OK(ct, dat_evd_free(evd[1]));
	await_calls(ct, &second, 2);
	CT_EQ(ct, second.nobody, 1);
	DT_OK(ct, dat_ia_close(d.ia, DAT_CLOSE_ABRUPT_FLAG));
	await_calls(ct, &second, 3);
	CT_EQ(ct, second.nobody, 2);
	CT_EQ(ct, first.n, 2);
	free(d.buf);
}

/* A disabled dispatcher tells nobody; enabled again, it tells of what comes, and of what it has. */
static void enabling(struct ct *ct)
{
	DAT_EVD_PARAM param;
	DAT_CNO_HANDLE cno;
	DAT_EVD_HANDLE evd, who;
	struct sleeper s;
	DAT_EVENT event;
	struct dt d;

	dt_open(ct, &d, NULL);
	cno = new_cno(&d);
	evd = dt_evd(&d, 8, cno, DAT_EVD_SOFTWARE_FLAG);
	DT_OK(ct, dat_evd_disable(evd));
	DT_OK(ct, dat_evd_query(evd, DAT_EVD_FIELD_ALL, &param));
	CT_TRUE(ct, param.evd_state & DAT_EVD_STATE_DISABLED && param.cno_handle == cno);
	start(ct, &s, cno);
	post(&d, evd);
	dt_waits_on(ct, &s.done);
	DT_OK(ct, dat_evd_dequeue(evd, &event)); /* of that it knows nothing */
	DT_OK(ct, dat_evd_enable(evd));
	DT_OK(ct, dat_evd_query(evd, DAT_EVD_FIELD_ALL, &param));
	CT_TRUE(ct, param.evd_state & DAT_EVD_STATE_ENABLED);
	post(&d, evd);
	join(&s);
	CT_TRUE(ct, s.rc == DAT_SUCCESS && s.evd == evd);
	DT_OK(ct, dat_evd_dequeue(evd, &event));
	/*
	 * what waits there when a dispatcher gets a notification object is not told
	 * again, and nothing is lost
	 */
	DT_OK(ct, dat_evd_modify_cno(evd, DAT_HANDLE_NULL));
	post(&d, evd);
	DT_TYPE(ct, dat_cno_wait(cno, 20000, &who), DAT_QUEUE_EMPTY);
	DT_OK(ct, dat_evd_dequeue(evd, &event));
	DT_OK(ct, dat_evd_free(evd));
	DT_OK(ct, dat_cno_free(cno));
	dt_close(&d);
}

/*
 * Completions, connections and requests come by a notification object just as software events do.
 */
static void cno_streams(struct ct *ct)
{
	DAT_EVD_HANDLE who;
	DAT_CNO_HANDLE cno;
	struct dt_pair p;

	dt_pair_make(ct, &p);
	cno = new_cno(&p.b);
	DT_OK(ct, dat_evd_modify_cno(p.b.recv, cno));
	DT_OK(ct, dat_evd_modify_cno(p.b.request, cno));
	dt_join(&p.a, p.a.ep, &p.b, p.b.ep);
	for (uint64_t i = 0; i < 50; i++) {
		dt_recv(&p.b, p.b.ep, 0, 8, i);
		dt_send(&p.a, p.a.ep, 0, 8, i, DAT_COMPLETION_SUPPRESS_FLAG);
		DT_OK(ct, dat_cno_wait(cno, DT_FOREVER, &who));
		CT_TRUE(ct, who == p.b.recv);
		dt_dto(&p.b, p.b.recv, p.b.ep, i, DAT_DTO_SUCCESS);
	}
	DT_OK(ct, dat_evd_modify_cno(p.b.recv, DAT_HANDLE_NULL));
	DT_OK(ct, dat_evd_modify_cno(p.b.request, DAT_HANDLE_NULL));
	DT_OK(ct, dat_cno_free(cno));
	dt_pair_close(&p);
}

/* ---- dispatchers ----------------------------------------------------------------------------- */

/*
 * A second waiter, a dequeue and a free meet the first; the states of its queue for who may wait.
 */
static void busy(struct ct *ct)
{
	DAT_EVD_PARAM param;
	DAT_EVD_HANDLE evd;
	struct dt_waiter w;
	DAT_EVENT event;
	DAT_COUNT more;
	struct dt d;

	evd = dt_open_software(ct, &d);
	dt_waiter_start(&d, &w, evd, 1);
	DT_ERR(ct, dat_evd_wait(evd, 0, 1, &event, &more), DAT_INVALID_STATE, DAT_INVALID_STATE_EVD_WAITER);
	DT_TYPE(ct, dat_evd_dequeue(evd, &event), DAT_INVALID_STATE);
	DT_ERR(ct, dat_evd_free(evd), DAT_INVALID_STATE, DAT_INVALID_STATE_EVD_WAITER);
	DT_OK(ct, dat_evd_resize(evd, 100));
	post(&d, evd);
	dt_waiter_ok(&d, &w);
	CT_EQ(ct, w.more, 0);
	dt_waiter_start(&d, &w, evd, 1);
	DT_OK(ct, dat_evd_set_unwaitable(evd));
	dt_waiter_join(&d, &w);
	DT_ERR(ct, w.rc, DAT_INVALID_STATE, DAT_INVALID_STATE_EVD_UNWAITABLE);
	DT_OK(ct, dat_evd_set_unwaitable(evd)); /* it is already */
	DT_OK(ct, dat_evd_query(evd, DAT_EVD_FIELD_ALL, &param));
	CT_TRUE(ct,
		param.evd_state & DAT_EVD_STATE_UNWAITABLE && !(param.evd_state & DAT_EVD_STATE_WAITABLE));
	DT_OK(ct, dat_evd_clear_unwaitable(evd));
	DT_TYPE(ct, dat_evd_wait(evd, 0, 1, &event, &more), DAT_TIMEOUT_EXPIRED);
	DT_OK(ct, dat_evd_free(evd));
	dt_close(&d);
}

struct poster {
	struct dt *d;
	DAT_EVD_HANDLE evd;
	pthread_t thread;
	uintptr_t first;
	DAT_RETURN rc;
};

enum {
	POSTERS = 4,
	EACH = 2000
};

static void *post_many(void *arg)
{
	struct poster *p = arg;
	DAT_EVENT event = { .event_number = DAT_SOFTWARE_EVENT };

	for (uintptr_t i = 0; i < EACH;) {
		event.event_data.software_event_data.pointer = (void *)(p->first + i);
		p->rc = dat_evd_post_se(p->evd, &event);
		if (p->rc == DAT_SUCCESS)
			i++;
		else if (DAT_GET_TYPE(p->rc) == DAT_QUEUE_FULL)
			ct_pause();
		else
			break;
	}
	return NULL;
}

/*
 * Several threads post to a queue that is too short for them: none is lost, and
 * each one's come in order.
 */
static void posters(struct ct *ct)
{
	struct poster p[POSTERS];
	uintptr_t seen[POSTERS] = { 0 };
	DAT_EVD_HANDLE evd;
	struct dt d;

	dt_open(ct, &d, NULL);
	evd = dt_evd(&d, 16, DAT_HANDLE_NULL, DAT_EVD_SOFTWARE_FLAG);
	for (uintptr_t i = 0; i < POSTERS; i++) {
		p[i] = (struct poster){ .d = &d, .evd = evd, .first = i << 16 };
		CT_EQ(ct, pthread_create(&p[i].thread, NULL, post_many, &p[i]), 0);
	}
	for (int n = 0; n < POSTERS * EACH; n++) {
		DAT_EVENT event = dt_event(&d, evd, DAT_SOFTWARE_EVENT);
		uintptr_t value = (uintptr_t)event.event_data.software_event_data.pointer;

		CT_TRUE(ct, value >> 16 < POSTERS);
		CT_EQ(ct, value & 0xffff, seen[value >> 16]++);
	}
	for (int i = 0; i < POSTERS; i++) {
		CT_EQ(ct, pthread_join(p[i].thread, NULL), 0);
		DT_OK(ct, p[i].rc);
	}
	dt_quiet(&d, evd, 10, "each once");
	DT_OK(ct, dat_evd_free(evd));
	dt_close(&d);
}

static void thresholds(struct ct *ct)
{
	DAT_EVD_HANDLE evd;
	struct dt_waiter w;
	DAT_EVD_PARAM param;
	DAT_EVENT event;
	DAT_COUNT more = 0;
	struct dt d;

	evd = dt_open_software(ct, &d);
	DT_OK(ct, dat_evd_query(evd, DAT_EVD_FIELD_ALL, &param));
	DT_TYPE(ct, dat_evd_wait(evd, 0, param.evd_qlen + 1, &event, &more), DAT_INVALID_PARAMETER);
	dt_waiter_start(&d, &w, evd, param.evd_qlen);
	for (int i = 0; i < param.evd_qlen - 1; i++)
		post(&d, evd);
	dt_waits_on(ct, &w.done);
	post(&d, evd);
	dt_waiter_ok(&d, &w);
	CT_EQ(ct, w.more, param.evd_qlen - 1);
	/*
	 * those are there for a waiter who comes later, and a higher threshold takes none of them
	 */
	DT_TYPE(ct, dat_evd_wait(evd, 1000, param.evd_qlen, &event, &more), DAT_TIMEOUT_EXPIRED);
	CT_EQ(ct, more, param.evd_qlen - 1);
	for (int left = param.evd_qlen - 2; left >= 0; left--) {
		DT_OK(ct, dat_evd_wait(evd, 0, 1, &event, &more));
		CT_EQ(ct, more, left);
	}
	DT_OK(ct, dat_evd_free(evd));
	dt_close(&d);
}

/* which takes what a cancelled thread had on its stack for still in use there */
#ifndef __SANITIZE_ADDRESS__
static void cancel(struct ct *ct, pthread_t thread)
{
	void *result;

	CT_EQ(ct, pthread_cancel(thread), 0);
	CT_EQ(ct, pthread_join(thread, &result), 0);
	CT_TRUE(ct, result == PTHREAD_CANCELED);
}

/* A thread that is cancelled where it waits leaves things as if it had never waited there. */
static void cancelled_waiters(struct ct *ct)
{
	DAT_EVD_HANDLE evd, who;
	DAT_CNO_HANDLE cno;
	struct dt_waiter w;
	struct sleeper s;
	DAT_EVENT event;
	DAT_COUNT more;
	struct dt d;

	evd = dt_open_software(ct, &d);
	dt_waiter_start(&d, &w, evd, 1);
	cancel(ct, w.thread);
	DT_TYPE(ct, dat_evd_wait(evd, 0, 1, &event, &more), DAT_TIMEOUT_EXPIRED);
	dt_waiter_start(&d, &w, evd, 1);
	post(&d, evd);
	dt_waiter_ok(&d, &w);
	DT_OK(ct, dat_evd_free(evd));
	cno = new_cno(&d);
	start(ct, &s, cno);
	cancel(ct, s.thread);
	DT_TYPE(ct, dat_cno_wait(cno, 0, &who), DAT_QUEUE_EMPTY);
	DT_OK(ct, dat_cno_free(cno));
	dt_close(&d);
}
#endif

/*
 * More completions than the queue was made for: it grows, or says that it did not; what
 * is there stays in order.
 */
static void overflow(struct ct *ct)
{
	const struct dt_want want = { .evd = 8, .dtos = 64 };
	struct dt_pair p;

	dt_pair_open(ct, &p, &want);
	for (uint64_t i = 0; i < 60; i++) {
		dt_recv(&p.b, p.b.ep, 0, 8, i);
		dt_send(&p.a, p.a.ep, 0, 8, i, DAT_COMPLETION_DEFAULT_FLAG);
	}
	for (uint64_t i = 0; i < 60; i++) {
		if (i == 30) { /* while it holds more than it has room for */
			DAT_RETURN rc = dat_evd_resize(p.b.recv, 4);

			CT_TRUE(ct, !rc || DAT_GET_TYPE(rc) == DAT_INVALID_STATE);
			DT_OK(ct, dat_evd_resize(p.b.recv, 16));
			DT_OK(ct, dat_evd_resize(p.a.request, 400));
		}
		dt_dto(&p.b, p.b.recv, p.b.ep, i, DAT_DTO_SUCCESS);
		dt_dto(&p.a, p.a.request, p.a.ep, i, DAT_DTO_SUCCESS);
	}
	dt_quiet(&p.b, p.b.async, 10, "no overflow");
	dt_pair_close(&p);
}

/* Endpoints that report to nobody: their work is done nevertheless. */
static void no_dispatchers(struct ct *ct)
{
	DAT_EP_ATTR attr;
	struct dt_pair p;
	DAT_EP_HANDLE mute;
	DAT_EVD_HANDLE none = DAT_HANDLE_NULL;

	dt_pair_make(ct, &p);
	attr = dt_attr(&p.a);
	DT_OK(ct, dat_ep_create(p.a.ia, p.a.pz, none, none, p.a.connect, &attr, &mute));
	dt_join(&p.a, mute, &p.b, p.b.ep);
	for (uint64_t i = 0; i < 100; i++) {
		dt_recv(&p.b, p.b.ep, 0, 8, i);
		dt_recv(&p.a, mute, 64, 8, i);
		dt_send(&p.a, mute, 0, 8, i, DAT_COMPLETION_DEFAULT_FLAG);
		dt_dto(&p.b, p.b.recv, p.b.ep, i, DAT_DTO_SUCCESS);
		memcpy(p.b.buf + 128, &i, sizeof(i));
		dt_send(&p.b, p.b.ep, 128, 8, i, DAT_COMPLETION_DEFAULT_FLAG);
		dt_dto(&p.b, p.b.request, p.b.ep, i, DAT_DTO_SUCCESS);
		CT_EQ(ct, memcmp(p.a.buf + 64, &i, sizeof(i)), 0);
	}
	dt_part(&p.a, mute, &p.b, p.b.ep);
	DT_OK(ct, dat_ep_free(mute));
	dt_pair_close(&p);
}

const struct ct_case dt_notify[] = {
	{ "D8", "notification waiters", { cno_waiters } },
	{ "D8", "notification closed", { cno_closed } },
	{ "D8", "notification orphaned", { cno_orphaned } },
	{ "D8", "notification of agents", { agents } },
	{ "D8", "notification enabled", { enabling } },
	{ "D8", "notification of streams", { cno_streams } },
	{ "D8", "dispatcher busy", { busy } },
	{ "D8", "dispatcher posters", { posters } },
	{ "D8", "dispatcher thresholds", { thresholds } },
#ifndef __SANITIZE_ADDRESS__
	{ "D8", "waiters cancelled", { cancelled_waiters } },
#endif
	{ "D8", "dispatcher overflow", { overflow } },
	{ "D8", "dispatcher none", { no_dispatchers } },
	{ NULL },
};
