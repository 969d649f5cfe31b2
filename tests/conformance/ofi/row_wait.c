/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Wait sets and wait objects, fi_poll(3), fi_cq(3), fi_cntr(3). */
#include "ct.h"

#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#pragma GCC diagnostic ignored \
	"-Wdeprecated-declarations" /* newer headers warn of wait sets, which programs still use */

#define DOMS 3
#define ROUNDS 60

static struct fid_wait *open_set(struct ct_dom *dom, enum fi_wait_obj obj)
{
	struct fi_wait_attr attr = { .wait_obj = obj };
	struct fid_wait *set;
	int rc = fi_wait_open(dom->fabric, &attr, &set);

	if (rc == -FI_ENOSYS)
		ct_unsupported(dom->ct, "fi_wait_open: %s", fi_strerror(-rc));
	CT_OK(dom->ct, rc);
	return set;
}

/* ---- many queues of several domains in one set ----------------------------------------------- */

struct many {
	struct ct_dom dom[DOMS];
	struct ct_ep e[DOMS];
	struct fid_wait *set;
};

/*
 * Rank 1 has endpoints in domains of their own, all in one set; rank 0 has one, and knows them all.
 */
static void many_open(struct ct *ct, struct many *m, enum fi_wait_obj obj)
{
	struct ct_want want = { .split = true, .counters = true };
	char name[CT_NAME];

	ct_open(ct, &m->dom[0], &want);
	if (ct->rank) {
		m->set = open_set(&m->dom[0], obj);
		m->dom[0].want.wait = FI_WAIT_SET;
		m->dom[0].want.wait_set = m->set;
	}
	for (int i = 0; i < (ct->rank ? DOMS : 1); i++) {
		if (i) {
			m->dom[i] = m->dom[0];
			CT_OK(ct, fi_domain(m->dom[0].fabric, m->dom[0].info, &m->dom[i].domain, NULL));
		}
		ct_ep_open(&m->dom[i], &m->e[i]);
	}
	for (int i = 0; i < DOMS; i++) {
		if (ct->rank) {
			ct_put(ct, 0, m->e[i].name, CT_NAME);
		} else {
			ct_get(ct, NULL, 1, name, CT_NAME);
			m->e[0].addr[i] = ct_insert(&m->e[0], name);
		}
	}
}

static void many_close(struct many *m)
{
	struct ct *ct = m->dom[0].ct;
	int count = ct->rank ? DOMS : 1;

	ct_sync(ct, &m->e[0]);
	for (int i = count - 1; i >= 0; i--) {
		ct_ep_close(&m->e[i]);
		if (i)
			CT_OK(ct, fi_close(&m->dom[i].domain->fid));
	}
	if (m->set)
		CT_OK(ct, fi_close(&m->set->fid));
	ct_close(&m->dom[0]);
}

static bool has_come(struct many *m, int i)
{
	struct ct_ep *e = &m->e[i];

	ct_progress(e); /* whoever is woken reads all there is */
	fi_cntr_read(e->rxcntr);
	fi_cntr_read(e->txcntr);
	if (e->head == e->tail)
		return false;
	ct_done(e, CTX(1));
	return true;
}

static void speak(struct many *m, int round)
{
	char word = 'a';

	if (round % 3 == 0)
		usleep(20000); /* they all sleep by then, or most do: else some are about to */
	CT_POST(&m->e[0], fi_tinject(m->e[0].ep, &word, 1, m->e[0].addr[round % DOMS], 1));
}

/* Rank 1 posts a receive, and rank 0 sends what it takes. True: this one is to wait for it. */
static bool begin_round(struct ct *ct, struct many *m, int i, char *buf)
{
	if (ct->rank)
		CT_OK(ct, fi_trecv(m->e[i % DOMS].ep, buf, 1, NULL, FI_ADDR_UNSPEC, 1, 0, CTX(1)));
	ct_sync(ct, ct->rank ? NULL : &m->e[0]);
	if (!ct->rank)
		speak(m, i);
	return ct->rank;
}

/* Waits in fi_wait; asleep, since the CPU time of a second is next to none. */
static void set_wakes(struct ct *ct)
{
	struct many m = { 0 };
	double cpu;
	char buf;

	many_open(ct, &m, (enum fi_wait_obj)ct->cs->arg);
	for (int i = 0; i < ROUNDS; i++) {
		double end = ct_deadline(ct);

		if (!begin_round(ct, &m, i, &buf))
			continue;
		while (!has_come(&m, i % DOMS)) {
			int rc = fi_wait(m.set, 20000);

			if (rc)
				ct_fail(ct, "fi_wait in round %d: %s", i, fi_strerror(-rc));
			ct_late(ct, end, "fi_wait to be of use");
		}
	}
	if (ct->rank) {
		double end = ct_deadline(ct);

		while (fi_wait(m.set, 0) == 0) {
			for (int i = 0; i < DOMS; i++)
				CT_TRUE(ct, !has_come(&m, i));
			ct_late(ct, end, "a wait set with nothing new");
		}
		cpu = ct_cpu();
		CT_EQ(ct, fi_wait(m.set, 1000), -FI_ETIMEDOUT);
		cpu = ct_cpu() - cpu;
		if (cpu > 0.2)
			ct_fail(ct, "fi_wait used %.0f ms of CPU in a second", cpu * 1e3);
	}
	many_close(&m);
}

/* fi_poll(3), FI_WAIT_POLLFD: as many descriptors as there are, or how many they would be. */
static struct pollfd polled(struct ct *ct, struct fid_wait *set)
{
	struct fi_wait_pollfd told = { .nfds = 0 };
	struct pollfd p = { .fd = -1 };

	CT_EQ(ct, fi_control(&set->fid, FI_GETWAIT, &told), -FI_ETOOSMALL);
	CT_EQ(ct, told.nfds, 1);
	told.fd = &p;
	CT_OK(ct, fi_control(&set->fid, FI_GETWAIT, &told));
	CT_EQ(ct, told.nfds, 1);
	CT_TRUE(ct, p.fd >= 0 && p.events & POLLIN);
	return p;
}

/* The same with the set's descriptor, after fi_trywait. arg: the wait object. */
static void set_descriptor(struct ct *ct)
{
	struct many m = { 0 };
	struct pollfd p = { .fd = -1, .events = POLLIN };
	char buf;

	many_open(ct, &m, (enum fi_wait_obj)ct->cs->arg);
	if (ct->rank && ct->cs->arg == FI_WAIT_POLLFD)
		p = polled(ct, m.set);
	else if (ct->rank)
		CT_OK(ct, fi_control(&m.set->fid, FI_GETWAIT, &p.fd));
	for (int i = 0; i < ROUNDS; i++) {
		double end = ct_deadline(ct);

		if (!begin_round(ct, &m, i, &buf))
			continue;
		while (!has_come(&m, i % DOMS)) {
			struct fid *fid = &m.set->fid;
			int rc = fi_trywait(m.dom[0].fabric, &fid, 1);

			if (rc == FI_SUCCESS && poll(&p, 1, 20000) != 1)
				ct_fail(ct, "the descriptor slept through message %d", i);
			if (rc != -FI_EAGAIN)
				CT_OK(ct, rc);
			ct_late(ct, end, "fi_trywait on a wait set");
		}
	}
	many_close(&m);
}

/* ---- an event queue beside a completion queue ------------------------------------------------ */

static void *write_late(void *arg)
{
	struct fi_eq_entry entry = { .data = 42 };

	ct_let_sleep(getpid());
	fi_eq_write(arg, FI_NOTIFY, &entry, sizeof(entry), 0);
	return NULL;
}

static void set_events(struct ct *ct)
{
	struct fi_eq_attr attr = { .flags = FI_WRITE, .wait_obj = FI_WAIT_SET };
	struct ct_want want = { .wait = FI_WAIT_SET };
	struct fi_eq_entry entry;
	struct fid_wait *set;
	struct fid_eq *eq;
	struct ct_dom dom;
	struct ct_ep e;
	pthread_t thread;
	uint32_t event;
	char buf;

	ct_open(ct, &dom, &want);
	set = attr.wait_set = dom.want.wait_set = open_set(&dom, FI_WAIT_UNSPEC);
	CT_OK(ct, fi_eq_open(dom.fabric, &attr, &eq, NULL));
	ct_ep_open(&dom, &e);
	e.addr[0] = ct_insert(&e, e.name);
	for (int i = 0; i < 10; i++) {
		CT_EQ(ct, pthread_create(&thread, NULL, write_late, eq), 0);
		CT_OK(ct, fi_wait(set, 20000));
		CT_EQ(ct, fi_eq_read(eq, &event, &entry, sizeof(entry), 0), sizeof(entry));
		CT_TRUE(ct, event == FI_NOTIFY && entry.data == 42);
		pthread_join(thread, NULL);
		CT_OK(ct, fi_trecv(e.ep, &buf, 1, NULL, FI_ADDR_UNSPEC, 1, 0, CTX(1)));
		CT_POST(&e, fi_tinject(e.ep, "a", 1, e.addr[0], 1));
		while (!ct_progress(&e))
			CT_OK(ct, fi_wait(set, 20000));
		ct_done(&e, CTX(1));
		CT_EQ(ct, fi_eq_read(eq, &event, &entry, sizeof(entry), 0), -FI_EAGAIN);
	}
	CT_EQ(ct, fi_wait(set, 50), -FI_ETIMEDOUT);
	ct_ep_close(&e);
	CT_OK(ct, fi_close(&eq->fid));
	CT_OK(ct, fi_close(&set->fid));
	ct_close(&dom);
}

/* ---- mutex and condition --------------------------------------------------------------------- */

static void mutex_cond(struct ct *ct)
{
	struct ct_want want = { .wait = FI_WAIT_MUTEX_COND };
	struct fi_mutex_cond mc = { 0 };
	struct ct_dom dom;
	struct ct_ep e;
	char buf;

	ct_start(ct, &dom, &e, &want);
	CT_OK(ct, fi_control(&e.rxcq->fid, FI_GETWAIT, &mc));
	CT_TRUE(ct, mc.mutex && mc.cond);
	for (int i = 0; i < ROUNDS; i++) {
		struct fid *fid = &e.rxcq->fid;

		if (ct->rank)
			ct_trecv(&e, &buf, 1, 1, 0, CTX(1));
		ct_sync(ct, ct->rank ? NULL : &e);
		if (!ct->rank) {
			usleep(i % 3 ? 0 : 10000); /* it sleeps, or is about to */
			CT_POST(&e, fi_tinject(e.ep, "a", 1, e.addr[1], 1));
			continue;
		}
		while (!ct_progress(&e)) {
			struct timespec at;
			int rc = 0;

			clock_gettime(CLOCK_REALTIME, &at);
			at.tv_sec += 20;
			pthread_mutex_lock(mc.mutex);
			if (fi_trywait(dom.fabric, &fid, 1) == FI_SUCCESS)
				rc = pthread_cond_timedwait(mc.cond, mc.mutex, &at);
			pthread_mutex_unlock(mc.mutex);
			if (rc)
				ct_fail(ct, "the condition slept through message %d", i);
		}
		ct_done(&e, CTX(1));
	}
	ct_finish(&e);
}

/* ---- one object ------------------------------------------------------------------------------ */

/* A counter's descriptor: a change between reading and fi_trywait is not slept over. */
static void counter_descriptor(struct ct *ct)
{
	struct ct_want want = { .wait = FI_WAIT_FD, .counters = true };
	struct pollfd p = { .events = POLLIN };
	struct ct_dom dom;
	struct ct_ep e;
	struct fid *fid;
	int rc;

	ct_open(ct, &dom, &want);
	ct_ep_open(&dom, &e);
	fid = &e.rxcntr->fid;
	CT_OK(ct, fi_control(fid, FI_GETWAIT, &p.fd));
	for (uint64_t i = 0; i < 20; i++) {
		double end = ct_deadline(ct);

		CT_EQ(ct, fi_cntr_read(e.rxcntr), i);
		while ((rc = fi_trywait(dom.fabric, &fid, 1)) == -FI_EAGAIN)
			ct_late(ct, end, "a counter that stands still");
		CT_OK(ct, rc);
		CT_EQ(ct, poll(&p, 1, 0), 0);
		CT_OK(ct, fi_cntr_add(e.rxcntr, 1));
		CT_EQ(ct, poll(&p, 1, 20000), 1);
		fi_cntr_read(e.rxcntr);
		CT_OK(ct, fi_cntr_adderr(e.rxcntr, 1));
		CT_EQ(ct, fi_trywait(dom.fabric, &fid, 1), -FI_EAGAIN);
		CT_EQ(ct, fi_cntr_readerr(e.rxcntr), i + 1);
	}
	ct_ep_close(&e);
	ct_close(&dom);
}

/* A threshold is a hint; that everything comes is not. An error does not wait for it. */
static void threshold(struct ct *ct)
{
	struct ct_want want = { .wait = FI_WAIT_UNSPEC, .cond = FI_CQ_COND_THRESHOLD };
	struct fi_cq_tagged_entry got[8];
	/* the condition is the number */
	const void *four = (void *)4, *two = (void *)2, *many = (void *)100;
	size_t count = 0;
	struct ct_dom dom;
	struct ct_ep e;
	char buf[8][8];

	ct_start(ct, &dom, &e, &want);
	for (int i = 0; ct->rank && i < 5; i++)
		ct_trecv(&e, buf[i], i == 4 ? 1 : 8, 1, 0, CTX(i + 1));
	ct_sync(ct, &e);
	if (!ct->rank) {
		for (int i = 0; i < 5; i++) {
			ct_let_sleep(ct->pid[1]);
			CT_POST(&e, fi_tinject(e.ep, "12345678", 8, e.addr[1], 1));
		}
	} else {
		double start = ct_now();
		ssize_t rc;

		while (count < 4) {
			rc = fi_cq_sread(e.rxcq, got, 8, four, 20000);
			CT_TRUE(ct, rc > 0);
			count += (size_t)rc;
		}
		CT_EQ(ct, count, 4);
		do /* one that is too long comes alone */
			rc = fi_cq_sread(e.rxcq, got, 8, four, 20000);
		while (rc == -FI_EAGAIN && ct_now() - start < 15);
		CT_EQ(ct, rc, -FI_EAVAIL);
		CT_TRUE(ct, ct_now() - start < 15);
		CT_TRUE(ct, ct_progress(&e));
		CT_EQ(ct, fi_cq_sread(e.rxcq, got, 8, two, 100), -FI_EAGAIN);
		ct_trecv(&e, buf[5], 8, 2, 0, CTX(6));
	}
	ct_sync(ct, &e);
	if (!ct->rank) {
		CT_POST(&e, fi_tinject(e.ep, "12345678", 8, e.addr[1], 2));
	} else { /* no more than there is room for */
		CT_EQ(ct, fi_cq_sread(e.rxcq, got, 1, many, 20000), 1);
		CT_TRUE(ct, got[0].op_context == CTX(6));
	}
	ct_finish(&e);
}

/* ---- what is refused ------------------------------------------------------------------------- */

static void objects_tell(struct ct *ct, struct ct_dom *dom, enum fi_wait_obj obj)
{
	struct fid_wait *set = open_set(dom, obj);
	enum fi_wait_obj told = FI_WAIT_NONE;

	CT_OK(ct, fi_control(&set->fid, FI_GETWAITOBJ, &told));
	CT_EQ(ct, told, obj);
	CT_OK(ct, fi_close(&set->fid));
}

static void refused(struct ct *ct)
{
	struct fi_wait_attr bad = { .wait_obj = FI_WAIT_FD, .flags = 1 };
	struct fi_cq_attr attr = { .format = FI_CQ_FORMAT_CONTEXT, .wait_obj = FI_WAIT_SET };
	struct fi_cntr_attr counting = { .events = FI_CNTR_EVENTS_COMP, .wait_obj = FI_WAIT_SET };
	struct fid_wait *set, *none;
	struct fi_cq_entry entry;
	struct fid_cntr *cntr;
	struct ct_dom dom;
	struct fid_cq *cq;
	struct fid *fid;

	ct_open(ct, &dom, NULL);
	set = open_set(&dom, FI_WAIT_FD);
	CT_REFUSED(ct, fi_wait_open(dom.fabric, &bad, &none));
	attr.wait_set = counting.wait_set = set;
	CT_OK(ct, fi_cq_open(dom.domain, &attr, &cq, NULL));
	CT_OK(ct, fi_cntr_open(dom.domain, &counting, &cntr, NULL));
	CT_REFUSED(ct, fi_cq_sread(cq, &entry, 1, NULL, 0));
	CT_REFUSED(ct, fi_cntr_wait(cntr, 1, 0));
	fid = &dom.domain->fid;
	CT_REFUSED(ct, fi_trywait(dom.fabric, &fid, 1));
	CT_EQ(ct, fi_close(&set->fid), -FI_EBUSY);
	CT_OK(ct, fi_close(&cq->fid));
	CT_EQ(ct, fi_close(&set->fid), -FI_EBUSY);
	CT_OK(ct, fi_close(&cntr->fid));
	CT_OK(ct, fi_close(&set->fid));
	objects_tell(ct, &dom, FI_WAIT_FD);
	ct_close(&dom);
}

const struct ct_case ct_wait[] = {
	{ "WAIT", "set-unspec", CT_TWO(set_wakes), .arg = FI_WAIT_UNSPEC, .slow = true },
	{ "WAIT", "set-fd", CT_TWO(set_wakes), .arg = FI_WAIT_FD, .slow = true },
	{ "WAIT", "set-yield", CT_TWO(set_wakes), .arg = FI_WAIT_YIELD, .slow = true },
	{ "WAIT", "set-descriptor", CT_TWO(set_descriptor), .arg = FI_WAIT_FD },
	{ "WAIT", "set-descriptors", CT_TWO(set_descriptor), .arg = FI_WAIT_POLLFD },
	{ "WAIT", "set-events", { set_events } },
	{ "WAIT", "mutex-cond", CT_TWO(mutex_cond) },
	{ "WAIT", "counter-descriptor", { counter_descriptor } },
	{ "WAIT", "threshold", CT_TWO(threshold) },
	{ "WAIT", "refused", { refused } },
	{ 0 },
};
