/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Completion queues: formats, source addresses, blocking and wait objects; fi_cq(3), fi_poll(3). */
#include "ct.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#define DATA 0x77

/* arg: the format.  Several entries are read at once, and none beyond the count is written. */
static void format(struct ct *ct)
{
	struct ct_want want = { .format = (enum fi_cq_format)ct->cs->arg, .msg_order = FI_ORDER_SAS };
	struct ct_dom dom;
	struct ct_comp c;
	struct ct_ep e;
	char buf[5][64];
	size_t i;

	ct_start(ct, &dom, &e, &want);
	for (i = 0; i < 5; i++) {
		if (ct->rank)
			ct_trecv(&e, buf[i], 64, i, 0, CTX(i + 1));
		else
			CT_POST(&e, fi_tsenddata(e.ep, buf[i], 10 * i, NULL, DATA, e.addr[1], i, CTX(i + 1)));
	}
	for (i = 0; i < 5; i++) {
		ct_of(&e, CTX(i + 1), &c);
		CT_EQ(ct, c.err, 0);
		if (want.format == FI_CQ_FORMAT_CONTEXT)
			continue;
		CT_TRUE(ct, c.flags & (ct->rank ? FI_RECV : FI_SEND));
		if (!ct->rank)
			continue;
		CT_EQ(ct, c.len, 10 * i);
		if (want.format == FI_CQ_FORMAT_MSG)
			continue;
		CT_EQ(ct, c.data, DATA);
		if (want.format == FI_CQ_FORMAT_TAGGED)
			CT_EQ(ct, c.tag, i);
	}
	ct_finish(&e);
}

/* fi_cq_read with room for many gives what there is, up to the count, and writes nothing behind. */
static void many(struct ct *ct)
{
	struct fi_cq_tagged_entry t[8];
	struct ct_dom dom;
	struct ct_ep e;
	size_t i, got = 0;
	ssize_t n;
	char c[1];

	ct_start(ct, &dom, &e, NULL);
	for (i = 0; i < 20; i++) {
		if (ct->rank)
			ct_trecv(&e, c, 1, i, 0, CTX(i + 1));
		else
			ct_tsend(&e, 1, c, 1, i, CTX(i + 1));
	}
	/* What was kept on the way counts too. */
	got = e.tail - e.head;
	double end = ct_deadline(ct);

	while (got < 20) {
		memset(t, 0x55, sizeof(t));
		n = fi_cq_read(e.txcq, t, 7);
		ct_late(ct, end, "20 completions");
		if (n == -FI_EAGAIN)
			n = 0;
		CT_TRUE(ct, n >= 0 && n <= 7);
		CT_TRUE(ct, ct_untouched((unsigned char *)&t[n], sizeof(t[0]) * (size_t)(8 - n), 0x55));
		got += (size_t)n;
	}
	CT_EQ(ct, got, 20);
	CT_EQ(ct, fi_cq_read(e.txcq, t, 8), -FI_EAGAIN);
	/* A count of 0 is a call for progress only. */
	n = fi_cq_read(e.txcq, NULL, 0);
	CT_TRUE(ct, n == 0 || n == -FI_EAGAIN);
	ct_finish(&e);
}

static void source(struct ct *ct)
{
	struct ct_want want = { .caps = FI_MSG | FI_TAGGED | FI_SOURCE,
				.av_type = (enum fi_av_type)ct->cs->arg };
	struct ct_dom dom;
	struct ct_comp c;
	struct ct_ep e;
	int i, from[3] = { 0 };
	char buf[8] = { 0 };

	ct_start(ct, &dom, &e, &want);
	if (ct->rank) {
		buf[0] = (char)ct->rank;
		for (i = 0; i < 10; i++) {
			if (i & 1)
				ct_send(&e, 0, buf, sizeof(buf), CTX(1));
			else
				ct_tsend(&e, 0, buf, sizeof(buf), 1, CTX(1));
			ct_done(&e, CTX(1));
		}
	}
	for (i = 0; !ct->rank && i < 20; i++) {
		if (i & 1)
			ct_recv(&e, buf, sizeof(buf), CTX(1));
		else
			ct_trecv(&e, buf, sizeof(buf), 1, 0, CTX(1));
		ct_of(&e, CTX(1), &c);
		CT_TRUE(ct, !c.err && (buf[0] == 1 || buf[0] == 2));
		CT_EQ(ct, c.src, e.addr[(int)buf[0]]);
		from[(int)buf[0]]++;
	}
	CT_TRUE(ct, ct->rank || (from[1] == 10 && from[2] == 10));
	ct_finish(&e);
}

/* A sender that is in no AV of the receiver: no address to tell. */
static void source_unknown(struct ct *ct)
{
	struct ct_want want = { .caps = FI_MSG | FI_TAGGED | FI_SOURCE };
	char buf[8] = { 0 }, name[CT_NAME];
	struct ct_dom dom;
	struct ct_comp c;
	struct ct_ep e;

	ct_open(ct, &dom, &want);
	ct_ep_open(&dom, &e);
	if (!ct->rank) {
		ct_put(ct, 1, e.name, sizeof(e.name));
		ct_recv(&e, buf, sizeof(buf), CTX(1));
		ct_of(&e, CTX(1), &c);
		CT_EQ(ct, c.err, 0);
		CT_EQ(ct, c.src, FI_ADDR_NOTAVAIL);
	} else {
		ct_get(ct, NULL, 0, name, sizeof(name));
		e.addr[0] = ct_insert(&e, name);
		ct_send(&e, 0, buf, sizeof(buf), CTX(1));
		ct_done(&e, CTX(1));
	}
	ct_finish(&e);
}

/*
 * FI_SOURCE_ERR: a message from a stranger is an error entry with his address, which can be
 * inserted and answered. arg: the program has no room for that, and gets it in the provider's.
 */
static void source_err(struct ct *ct)
{
	const bool lent = ct->cs->arg;
	struct ct_want want = { .caps = FI_MSG | FI_SOURCE | FI_SOURCE_ERR };
	char buf[8] = { 0 }, name[CT_NAME];
	struct fi_cq_err_entry err = { .err_data = name, .err_data_size = lent ? 0 : sizeof(name) };
	struct fi_cq_tagged_entry entry;
	struct ct_dom dom;
	struct ct_ep e;
	ssize_t rc;

	ct_open(ct, &dom, &want);
	ct_ep_open(&dom, &e);
	if (!ct->rank) {
		double end = ct_deadline(ct);

		CT_TRUE(ct,
			dom.info->caps & FI_SOURCE_ERR && dom.info->domain_attr->max_err_data >= e.namelen);
		ct_put(ct, 1, e.name, sizeof(e.name));
		ct_recv(&e, buf, sizeof(buf), CTX(1));
		while ((rc = fi_cq_read(e.rxcq, &entry, 1)) == -FI_EAGAIN) {
			ct_late(ct, end, "a message");
			ct_pause();
		}
		CT_EQ(ct, rc, -FI_EAVAIL);
		/* it stays until it is read */
		CT_EQ(ct, fi_cq_read(e.rxcq, &entry, 1), -FI_EAVAIL);
		CT_EQ(ct, fi_cq_readerr(e.rxcq, &err, 0), 1);
		CT_EQ(ct, err.err, FI_EADDRNOTAVAIL);
		CT_EQ(ct, err.len, 5);
		CT_TRUE(ct, err.op_context == CTX(1) && err.flags & FI_RECV && !strcmp(buf, "who?"));
		CT_TRUE(ct, lent == (err.err_data != name) && err.err_data_size == e.namelen);
		if (lent)
			memcpy(name, err.err_data, e.namelen);
		CT_EQ(ct, fi_cq_read(e.rxcq, &entry, 1), -FI_EAGAIN);
		e.addr[1] = ct_insert(&e, name);
		ct_recv(&e, buf, sizeof(buf), CTX(2));
		ct_send(&e, 1, "you", 4, CTX(3));
	} else {
		ct_get(ct, NULL, 0, name, sizeof(name));
		e.addr[0] = ct_insert(&e, name);
		ct_recv(&e, buf, sizeof(buf), CTX(2));
		ct_send(&e, 0, "who?", 5, CTX(3));
	}
	ct_done(&e, CTX(3));
	if (!ct->rank)
		ct_sync(ct, &e);
	else {
		CT_EQ(ct, ct_done(&e, CTX(2)), 4);
		ct_send(&e, 0, "me", 3, CTX(4));
		ct_done(&e, CTX(4));
		ct_sync(ct, &e);
	}
	if (!ct->rank) {
		struct ct_comp c;

		ct_of(&e, CTX(2), &c);
		CT_EQ(ct, c.err, 0);
		CT_EQ(ct, c.src, e.addr[1]);
	}
	ct_finish(&e);
}

/* ---- blocking ---- */

static ssize_t sread(struct ct_ep *e, struct fi_cq_tagged_entry *t, int ms)
{
	ssize_t n = fi_cq_sread(e->rxcq, t, 1, NULL, ms);

	if (n == -FI_ENOSYS)
		ct_unsupported(e->ct, "fi_cq_sread: %s", fi_strerror((int)-n));
	return n;
}

/*
 * arg: the wait object. The receiver sleeps for a second: it must take the
 * message, and next to no CPU.
 */
static void sread_sleeps(struct ct *ct)
{
	struct ct_want want = { .wait = (enum fi_wait_obj)ct->cs->arg };
	struct fi_cq_tagged_entry t;
	struct ct_dom dom;
	struct ct_ep e;
	char buf[8] = { 0 };
	double cpu, end;
	ssize_t n;

	ct_start(ct, &dom, &e, &want);
	ct_ping(&e, !ct->rank);
	ct_sync(ct, &e);
	if (ct->rank) {
		ct_trecv(&e, buf, sizeof(buf), 4, 0, CTX(1));
		end = ct_deadline(ct);
		cpu = ct_cpu();
		while ((n = sread(&e, &t, 20000)) == -FI_EAGAIN)
			ct_late(ct, end, "fi_cq_sread");
		cpu = ct_cpu() - cpu;
		CT_EQ(ct, n, 1);
		CT_TRUE(ct, t.op_context == CTX(1));
		/* A second of waiting: spinning would have used most of it. */
		if (cpu > 0.2)
			ct_fail(ct, "fi_cq_sread used %.0f ms of CPU while it waited for a second",
				cpu * 1e3);
	} else {
		usleep(1000000);
		ct_tsend(&e, 1, buf, sizeof(buf), 4, CTX(1));
		ct_done(&e, CTX(1));
	}
	ct_finish(&e);
}

static void sread_timeout(struct ct *ct)
{
	struct ct_want want = { .wait = FI_WAIT_UNSPEC };
	struct fi_cq_tagged_entry t;
	struct ct_dom dom;
	struct ct_ep e;
	double start;

	ct_start(ct, &dom, &e, &want);
	ct_ping(&e, !ct->rank);
	ct_sync(ct, &e);
	start = ct_now();
	CT_EQ(ct, sread(&e, &t, 300), -FI_EAGAIN);
	/* Not much before its time, if nobody signals. */
	CT_TRUE(ct, ct_now() - start > 0.25);
	start = ct_now();
	CT_EQ(ct, sread(&e, &t, 0), -FI_EAGAIN);
	ct_ping(&e, !ct->rank);
	ct_finish(&e);
}

/* Large messages move while both sides do nothing but sleep in fi_cq_sread. */
static void sread_large(struct ct *ct)
{
	struct ct_want want = { .wait = FI_WAIT_UNSPEC };
	struct fi_cq_tagged_entry t;
	size_t len = 4 << 20;
	struct ct_dom dom;
	struct ct_ep e;
	char *buf = ct_alloc(ct, len);
	double end;
	ssize_t n;
	int i;

	ct_start(ct, &dom, &e, &want);
	for (i = 0; i < 10; i++) {
		end = ct_deadline(ct);
		if (ct->rank)
			CT_POST(&e, fi_trecv(e.ep, buf, len, NULL, FI_ADDR_UNSPEC, 4, 0, CTX(i + 1)));
		else
			ct_fill(buf, len, (uint64_t)i);
		if (!ct->rank)
			CT_POST(&e, fi_tsend(e.ep, buf, len, NULL, e.addr[1], 4, CTX(i + 1)));
		if (e.tail != e.head) {
			ct_done(&e, CTX(i + 1));
		} else {
			while ((n = sread(&e, &t, 20000)) == -FI_EAGAIN)
				ct_late(ct, end, "fi_cq_sread to move a large message");
			CT_EQ(ct, n, 1);
			CT_TRUE(ct, t.op_context == CTX(i + 1));
		}
		if (ct->rank)
			ct_verify(ct, buf, len, (uint64_t)i, "sread");
	}
	free(buf);
	ct_finish(&e);
}

struct sleeper {
	struct ct_ep *e;
	ssize_t rc;
	volatile pid_t tid;
	volatile bool back;
};

static void *sleep_in_cq(void *arg)
{
	struct sleeper *s = arg;
	struct fi_cq_tagged_entry t;

	s->tid = gettid();
	s->rc = fi_cq_sread(s->e->rxcq, &t, 1, NULL, -1);
	__atomic_store_n(&s->back, true, __ATOMIC_RELEASE);
	return NULL;
}

static void signal_wakes(struct ct *ct)
{
	struct ct_want want = { .wait = FI_WAIT_UNSPEC };
	struct fi_cq_tagged_entry t;
	struct sleeper s = { 0 };
	struct ct_dom dom;
	struct ct_ep e;
	pthread_t th;
	double end;

	/* Two threads on one CQ need safe threading. */
	if (ct->conf->threading && ct->conf->threading != FI_THREAD_SAFE)
		ct_unsupported(ct, "runs with -H safe only");
	ct_open(ct, &dom, &want);
	ct_ep_open(&dom, &e);
	CT_EQ(ct, sread(&e, &t, 0), -FI_EAGAIN);
	s.e = &e;
	CT_OK(ct, pthread_create(&th, NULL, sleep_in_cq, &s));
	end = ct_deadline(ct);
	while (!s.tid || !ct_let_sleep(s.tid))
		ct_late(ct, end, "a thread to sleep in fi_cq_sread");
	CT_TRUE(ct, !__atomic_load_n(&s.back, __ATOMIC_ACQUIRE));
	CT_OK(ct, fi_cq_signal(e.rxcq));
	while (!__atomic_load_n(&s.back, __ATOMIC_ACQUIRE)) {
		ct_late(ct, end, "fi_cq_signal to wake fi_cq_sread");
		usleep(1000);
	}
	CT_OK(ct, pthread_join(th, NULL));
	CT_EQ(ct, s.rc, -FI_EAGAIN);
	ct_ep_close(&e);
	ct_close(&dom);
}

static void alarmed(int sig)
{
	(void)sig;
}

/*
 * Whoever sleeps without end comes back when a signal's handler has run, with nothing, whether
 * calls are restarted or not.
 */
static void sread_signalled(struct ct *ct)
{
	struct itimerval often = { { 0, 20000 }, { 0, 20000 } }, off = { { 0 } };
	struct sigaction sa = { .sa_handler = alarmed, .sa_flags = SA_RESTART };
	struct ct_want want = { .wait = FI_WAIT_UNSPEC };
	struct fi_cq_tagged_entry t;
	struct ct_dom dom;
	struct ct_ep e;

	ct_start_up(ct, &dom, &e, &want);
	for (int i = 0; i < 10; i++) {
		sigaction(SIGALRM, &sa, NULL);
		setitimer(ITIMER_REAL, &often, NULL);
		CT_EQ(ct, sread(&e, &t, -1), -FI_EAGAIN);
		setitimer(ITIMER_REAL, &off, NULL);
		sa.sa_flags ^= SA_RESTART;
	}
	ct_finish_quiet(&e);
}

static void sread_refused(struct ct *ct)
{
	struct fi_cq_tagged_entry t;
	struct ct_dom dom;
	struct ct_ep e;

	ct_open(ct, &dom, NULL);
	ct_ep_open(&dom, &e);
	/* A CQ without wait object must not be slept in, fi_cq(3). */
	CT_REFUSED(ct, fi_cq_sread(e.rxcq, &t, 1, NULL, 100));
	ct_ep_close(&e);
	ct_close(&dom);
}

/* ---- FI_WAIT_FD ---- */

static int wait_fd(struct ct_ep *e)
{
	int fd = -1, rc = fi_control(&e->rxcq->fid, FI_GETWAIT, &fd);

	CT_OK(e->ct, rc);
	CT_TRUE(e->ct, fd >= 0);
	return fd;
}

/*
 * fi_trywait, then poll; returns how often poll had to be called before the completion was there.
 */
static int poll_until(struct ct_ep *e, int fd, void *ctx)
{
	struct fid *fids[] = { &e->rxcq->fid };
	struct pollfd pfd = { .fd = fd, .events = POLLIN };
	double end = ct_deadline(e->ct);
	int rc, polls = 0;

	for (;;) {
		ct_progress(e);
		if (e->head != e->tail) {
			ct_done(e, ctx);
			return polls;
		}
		ct_late(e->ct, end, "FI_WAIT_FD");
		rc = fi_trywait(e->dom->fabric, fids, 1);
		if (rc == -FI_EAGAIN)
			continue;
		CT_OK(e->ct, rc);
		polls++;
		if (poll(&pfd, 1, 20000) == 0)
			ct_fail(e->ct, "poll on the CQ's descriptor slept through a message");
	}
}

static void fd_sleeps(struct ct *ct)
{
	struct ct_want want = { .wait = FI_WAIT_FD };
	struct ct_dom dom;
	struct ct_ep e;
	char buf[8] = { 0 };
	int fd, i;

	ct_start(ct, &dom, &e, &want);
	ct_ping(&e, !ct->rank);
	fd = wait_fd(&e);
	for (i = 0; i < 200; i++) {
		if (ct->rank)
			ct_trecv(&e, buf, sizeof(buf), 4, 0, CTX(1));
		if (!ct->rank && i % 50 == 0)
			ct_let_sleep(ct->pid[1]);
		if (!ct->rank)
			ct_tsend(&e, 1, buf, sizeof(buf), 4, CTX(1));
		poll_until(&e, fd, CTX(1));
		if (i % 7 == 0)
			ct_ping(&e, !ct->rank);
	}
	ct_finish(&e);
}

/* Large both ways while everybody sleeps on descriptors. */
static void fd_large(struct ct *ct)
{
	struct ct_want want = { .wait = FI_WAIT_FD };
	size_t len = 3 << 20;
	struct ct_dom dom;
	struct ct_ep e;
	char *buf = ct_alloc(ct, len);
	int fd, i;

	ct_start(ct, &dom, &e, &want);
	fd = wait_fd(&e);
	for (i = 0; i < 10; i++) {
		if ((i & 1) == ct->rank) {
			ct_fill(buf, len, (uint64_t)i);
			ct_tsend(&e, !ct->rank, buf, len, 4, CTX(1));
		} else {
			ct_trecv(&e, buf, len, 4, 0, CTX(1));
		}
		poll_until(&e, fd, CTX(1));
		ct_verify(ct, buf, len, (uint64_t)i, "over a wait descriptor");
	}
	free(buf);
	ct_finish(&e);
}

/*
 * While nothing happens, trywait agrees and the descriptor stays quiet: no
 * busy loop, next to no CPU.
 */
static void fd_idle(struct ct *ct)
{
	struct ct_want want = { .wait = FI_WAIT_FD };
	struct ct_dom dom;
	struct ct_ep e;
	double cpu, end;
	int fd, rounds = 0;

	ct_start(ct, &dom, &e, &want);
	ct_ping(&e, !ct->rank);
	ct_sync(ct, &e);
	fd = wait_fd(&e);
	cpu = ct_cpu();
	end = ct_now() + 1;
	while (ct_now() < end) {
		struct fid *fids[] = { &e.rxcq->fid };
		struct pollfd pfd = { .fd = fd, .events = POLLIN };

		ct_progress(&e);
		if (fi_trywait(dom.fabric, fids, 1) == FI_SUCCESS)
			poll(&pfd, 1, 200);
		rounds++;
	}
	cpu = ct_cpu() - cpu;
	if (cpu > 0.2)
		ct_fail(ct, "a second of idle waiting took %.0f ms of CPU and %d rounds", cpu * 1e3, rounds);
	ct_finish(&e);
}

/* With a completion in the queue it is not safe to block: fi_trywait says so. */
static void trywait_full(struct ct *ct)
{
	struct ct_want want = { .wait = FI_WAIT_FD };
	struct fid *fids[1];
	struct ct_dom dom;
	struct ct_ep e;
	char buf[8] = { 0 };
	double end;

	ct_start(ct, &dom, &e, &want);
	ct_ping(&e, !ct->rank);
	ct_sync(ct, &e);
	if (ct->rank) {
		ct_trecv(&e, buf, sizeof(buf), 4, 0, CTX(1));
		ct_sync(ct, NULL);
		fids[0] = &e.rxcq->fid;
		end = ct_deadline(ct);
		while (fi_trywait(dom.fabric, fids, 1) == FI_SUCCESS)
			ct_late(ct, end, "fi_trywait to see that something is there");
		ct_done(&e, CTX(1));
	} else {
		ct_sync(ct, NULL);
		ct_tsend(&e, 1, buf, sizeof(buf), 4, CTX(1));
		ct_done(&e, CTX(1));
	}
	ct_finish(&e);
}

static void open_bad(struct ct *ct)
{
	struct fi_cq_attr attr = { .format = (enum fi_cq_format)99 };
	struct fid_cq *cq = NULL;
	struct ct_dom dom;

	ct_open(ct, &dom, NULL);
	CT_REFUSED(ct, fi_cq_open(dom.domain, &attr, &cq, NULL));
	attr = (struct fi_cq_attr){ .format = FI_CQ_FORMAT_CONTEXT, .wait_obj = (enum fi_wait_obj)99 };
	CT_REFUSED(ct, fi_cq_open(dom.domain, &attr, &cq, NULL));
	ct_close(&dom);
}

/* Errors have a text, and there is no error entry when there was no error. */
static void errors(struct ct *ct)
{
	struct fi_cq_err_entry err = { 0 };
	struct ct_dom dom;
	struct ct_ep e;
	char buf[8], text[64] = "";
	struct fi_cq_tagged_entry t;
	double end = ct_deadline(ct);
	ssize_t n;

	ct_open(ct, &dom, NULL);
	ct_ep_open(&dom, &e);
	CT_EQ(ct, fi_cq_readerr(e.rxcq, &err, 0), -FI_EAGAIN);
	ct_trecv(&e, buf, sizeof(buf), 1, 0, CTX(1));
	CT_OK(ct, fi_cancel(&e.ep->fid, CTX(1)));
	while ((n = fi_cq_read(e.rxcq, &t, 1)) == -FI_EAGAIN)
		ct_late(ct, end, "the cancelled receive");
	CT_EQ(ct, n, -FI_EAVAIL);
	/* It stays until it is read. */
	CT_EQ(ct, fi_cq_read(e.rxcq, &t, 1), -FI_EAVAIL);
	CT_EQ(ct, fi_cq_readerr(e.rxcq, &err, 0), 1);
	CT_EQ(ct, err.err, FI_ECANCELED);
	CT_TRUE(ct, err.op_context == CTX(1));
	CT_TRUE(ct, fi_cq_strerror(e.rxcq, err.prov_errno, err.err_data, text, sizeof(text)) != NULL);
	CT_EQ(ct, fi_cq_readerr(e.rxcq, &err, 0), -FI_EAGAIN);
	CT_EQ(ct, fi_cq_read(e.rxcq, &t, 1), -FI_EAGAIN);
	ct_ep_close(&e);
	ct_close(&dom);
}

/* More operations than the CQ has entries: with resource management none is lost, fi_domain(3). */
static void small(struct ct *ct)
{
	struct ct_want want = { .cq_size = 4, .msg_order = FI_ORDER_SAS };
	struct ct_dom dom;
	struct ct_ep e;
	size_t done = 0, posted = 0, n = 500;
	char buf[8] = { 0 };

	ct_start(ct, &dom, &e, &want);
	while (done < n) {
		/* As many as are accepted, without reading in between. */
		while (posted < n) {
			ssize_t rc = ct->rank ? fi_recv(e.ep, buf, 8, NULL, FI_ADDR_UNSPEC, CTX(posted + 1))
					      : fi_send(e.ep, buf, 8, NULL, e.addr[1], CTX(posted + 1));

			if (rc == -FI_EAGAIN)
				break;
			CT_OK(ct, rc);
			posted++;
		}
		if (posted > done)
			ct_done(&e, CTX(++done));
		else
			ct_idle(&e, 1);
	}
	ct_finish(&e);
}

/* What a completion says that it is of: the direction, and which kind of message, fi_cq(3). */
static void kind_of_message(struct ct *ct)
{
	struct ct_comp c;
	struct ct_dom dom;
	struct ct_ep e;
	char buf[8] = "kind";

	ct_start(ct, &dom, &e, NULL);
	for (int i = 0; i < 2; i++) {
		uint64_t kind = i ? FI_TAGGED : FI_MSG, all = FI_SEND | FI_RECV | FI_MSG | FI_TAGGED;

		if (i && ct->rank)
			ct_trecv(&e, buf, 8, 1, 0, CTX(1));
		else if (ct->rank)
			ct_recv(&e, buf, 8, CTX(1));
		ct_sync(ct, &e);
		if (i && !ct->rank)
			ct_tsend(&e, 1, buf, 8, 1, CTX(1));
		else if (!ct->rank)
			ct_send(&e, 1, buf, 8, CTX(1));
		ct_of(&e, CTX(1), &c);
		CT_EQ(ct, c.err, 0);
		CT_EQ(ct, c.flags & all, kind | (ct->rank ? FI_RECV : FI_SEND));
		ct_sync(ct, &e);
	}
	ct_finish(&e);
}

const struct ct_case ct_cq[] = {
	{ "CQ", "kind-of-message", CT_TWO(kind_of_message) },
	{ "CQ", "format-context", CT_TWO(format), .arg = FI_CQ_FORMAT_CONTEXT },
	{ "CQ", "format-msg", CT_TWO(format), .arg = FI_CQ_FORMAT_MSG },
	{ "CQ", "format-data", CT_TWO(format), .arg = FI_CQ_FORMAT_DATA },
	{ "CQ", "format-tagged", CT_TWO(format), .arg = FI_CQ_FORMAT_TAGGED },
	{ "CQ", "read-many", CT_TWO(many) },
	{ "CQ", "small", CT_TWO(small) },
	{ "CQ", "source-map", { source, source, source }, .arg = FI_AV_MAP },
	{ "CQ", "source-table", { source, source, source }, .arg = FI_AV_TABLE },
	{ "CQ", "source-unknown", CT_TWO(source_unknown) },
	{ "CQ", "source-err", CT_TWO(source_err) },
	{ "CQ", "source-err-without-room", CT_TWO(source_err), .arg = 1 },
	{ "CQ", "sread-sleeps", CT_TWO(sread_sleeps), .arg = FI_WAIT_UNSPEC, .slow = true },
	{ "CQ", "sread-sleeps-fd", CT_TWO(sread_sleeps), .arg = FI_WAIT_FD, .slow = true },
	{ "CQ", "sread-timeout", CT_TWO(sread_timeout) },
	{ "CQ", "sread-large", CT_TWO(sread_large) },
	{ "CQ", "sread-signalled", CT_TWO(sread_signalled) },
	{ "CQ", "sread-without-wait-object", { sread_refused } },
	{ "CQ", "signal", { signal_wakes } },
	{ "CQ", "fd-sleeps", CT_TWO(fd_sleeps) },
	{ "CQ", "fd-large", CT_TWO(fd_large) },
	{ "CQ", "fd-idle", CT_TWO(fd_idle), .slow = true },
	{ "CQ", "trywait-full", CT_TWO(trywait_full) },
	{ "CQ", "open-bad", { open_bad } },
	{ "CQ", "errors", { errors } },
	{ 0 }
};
