/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Event queues, fi_eq(3), and the events of address vectors, fi_av(3). */
#include "connect.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#pragma GCC diagnostic ignored \
	"-Wdeprecated-declarations" /* newer headers warn of fi_av_bind, which programs still use */

struct queue {
	struct ct *ct;
	struct ct_dom dom;
	struct fid_eq *eq;
};

static void open_queue(struct ct *ct, struct queue *q, enum fi_wait_obj wait)
{
	struct fi_eq_attr attr = { .flags = FI_WRITE, .wait_obj = wait };
	int rc;

	q->ct = ct;
	ct_open(ct, &q->dom, NULL);
	rc = fi_eq_open(q->dom.fabric, &attr, &q->eq, NULL);
	if (rc == -FI_ENOSYS)
		ct_unsupported(ct, "fi_eq_open refuses wait object %d", wait);
	CT_OK(ct, rc);
}

static void close_queue(struct queue *q)
{
	CT_OK(q->ct, fi_close(&q->eq->fid));
	ct_close(&q->dom);
}

static void put(struct queue *q, uint32_t event, uint64_t data)
{
	struct fi_eq_entry entry = { .fid = &q->dom.domain->fid, .data = data };

	CT_EQ(q->ct, fi_eq_write(q->eq, event, &entry, sizeof(entry), 0), sizeof(entry));
}

static void get(struct queue *q, uint32_t wanted, uint64_t data)
{
	struct fi_eq_entry entry = { 0 };
	uint32_t event = 0;

	CT_EQ(q->ct, fi_eq_read(q->eq, &event, &entry, sizeof(entry), 0), sizeof(entry));
	CT_EQ(q->ct, event, wanted);
	CT_EQ(q->ct, entry.data, data);
}

/*
 * What is written is read, in order; a look leaves it there, and so does a
 * buffer that is too small.
 */
static void written(struct ct *ct)
{
	struct fi_eq_entry entry = { 0 };
	struct fi_eq_err_entry err = { 0 };
	uint32_t event = 0;
	struct queue q;

	open_queue(ct, &q, FI_WAIT_UNSPEC);
	CT_EQ(ct, fi_eq_read(q.eq, &event, &entry, sizeof(entry), 0), -FI_EAGAIN);
	CT_EQ(ct, fi_eq_readerr(q.eq, &err, 0), -FI_EAGAIN);
	put(&q, 1000, 1);
	put(&q, UINT32_MAX, 2);
	CT_EQ(ct, fi_eq_read(q.eq, &event, &entry, sizeof(entry), FI_PEEK), sizeof(entry));
	CT_EQ(ct, entry.data, 1);
	CT_EQ(ct, fi_eq_read(q.eq, &event, &entry, 4, 0), -FI_ETOOSMALL);
	get(&q, 1000, 1);
	get(&q, UINT32_MAX, 2);
	CT_EQ(ct, fi_eq_read(q.eq, &event, &entry, sizeof(entry), 0), -FI_EAGAIN);
	CT_REFUSED(ct, fi_eq_read(q.eq, NULL, &entry, sizeof(entry), 0));
	CT_REFUSED(ct, fi_eq_write(q.eq, 1, NULL, 8, 0));
	CT_EQ(ct, fi_eq_sread(q.eq, &event, &entry, sizeof(entry), 10, 0), -FI_EAGAIN);
	close_queue(&q);
}

/* An overrun queue gives what it has, and from then on an error. */
static void overrun(struct ct *ct)
{
	struct fi_eq_entry entry = { 0 };
	struct fi_eq_err_entry err = { 0 };
	uint32_t event, n = 0, k;
	struct queue q;
	ssize_t rc;

	open_queue(ct, &q, FI_WAIT_UNSPEC);
	while ((rc = fi_eq_write(q.eq, n, &entry, sizeof(entry), 0)) == sizeof(entry))
		if (++n == 1 << 20)
			ct_unsupported(ct, "a million events do not overrun it");
	CT_EQ(ct, rc, -FI_EOVERRUN);
	for (k = 0; k < n; k++)
		get(&q, k, 0);
	CT_EQ(ct, fi_eq_read(q.eq, &event, &entry, sizeof(entry), 0), -FI_EAVAIL);
	CT_EQ(ct, fi_eq_readerr(q.eq, &err, 0), sizeof(err));
	CT_EQ(ct, err.err, FI_EOVERRUN);
	CT_EQ(ct, fi_eq_write(q.eq, 1, &entry, sizeof(entry), 0), -FI_EOVERRUN);
	close_queue(&q);
}

static void *write_later(void *arg)
{
	ct_let_sleep(getpid());
	put(arg, 7, 7);
	return NULL;
}

static void wakes(struct ct *ct)
{
	struct fi_eq_entry entry;
	struct pollfd pfd = { .events = POLLIN };
	uint32_t event = 0;
	pthread_t thread;
	struct queue q;
	struct fid *fid;

	open_queue(ct, &q, FI_WAIT_FD);
	CT_EQ(ct, pthread_create(&thread, NULL, write_later, &q), 0);
	CT_EQ(ct, fi_eq_sread(q.eq, &event, &entry, sizeof(entry), -1, 0), sizeof(entry));
	CT_EQ(ct, event, 7);
	CT_EQ(ct, pthread_join(thread, NULL), 0);
	CT_OK(ct, fi_control(&q.eq->fid, FI_GETWAIT, &pfd.fd));
	fid = &q.eq->fid;
	CT_OK(ct, fi_trywait(q.dom.fabric, &fid, 1));
	CT_EQ(ct, poll(&pfd, 1, 0), 0);
	CT_EQ(ct, pthread_create(&thread, NULL, write_later, &q), 0);
	CT_EQ(ct, poll(&pfd, 1, 30000), 1);
	CT_EQ(ct, pthread_join(thread, NULL), 0);
	CT_EQ(ct, fi_trywait(q.dom.fabric, &fid, 1), -FI_EAGAIN);
	get(&q, 7, 7);
	CT_OK(ct, fi_trywait(q.dom.fabric, &fid, 1));
	close_queue(&q);
}

static volatile sig_atomic_t ticks;

static void tick(int sig)
{
	ticks++;
}

/*
 * fi_eq(3): whoever is signalled returns to the caller, whatever the handler says of restarting
 * calls. What has come by then is read.
 */
static void signalled(struct ct *ct)
{
	const struct itimerval later = { .it_value.tv_usec = 20000 };
	struct fi_eq_entry entry;
	uint32_t event = 0;
	struct queue q;
	ssize_t rc;

	open_queue(ct, &q, FI_WAIT_UNSPEC);
	for (int i = 0; i < 2; i++) {
		const struct sigaction sa = { .sa_handler = tick, .sa_flags = i ? SA_RESTART : 0 };

		ticks = 0;
		CT_EQ(ct, sigaction(SIGALRM, &sa, NULL), 0);
		CT_EQ(ct, setitimer(ITIMER_REAL, &later, NULL), 0);
		rc = fi_eq_sread(q.eq, &event, &entry, sizeof(entry), -1, 0);
		CT_TRUE(ct, rc == -FI_EAGAIN || rc == -FI_EINTR);
		CT_EQ(ct, ticks, 1);
	}
	put(&q, 3, 3);
	CT_EQ(ct, fi_eq_sread(q.eq, &event, &entry, sizeof(entry), -1, 0), sizeof(entry));
	close_queue(&q);
}

/* The condition is signalled while the program waits for it with the mutex that belongs to it. */
static void condition(struct ct *ct)
{
	struct fi_mutex_cond mc;
	pthread_t thread;
	struct queue q;
	struct fid *fid;
	int rc;

	open_queue(ct, &q, FI_WAIT_MUTEX_COND);
	fid = &q.eq->fid;
	CT_OK(ct, fi_control(fid, FI_GETWAIT, &mc));
	CT_EQ(ct, pthread_create(&thread, NULL, write_later, &q), 0);
	pthread_mutex_lock(mc.mutex);
	while (!(rc = fi_trywait(q.dom.fabric, &fid, 1)))
		pthread_cond_wait(mc.cond, mc.mutex);
	pthread_mutex_unlock(mc.mutex);
	CT_EQ(ct, rc, -FI_EAGAIN);
	CT_EQ(ct, pthread_join(thread, NULL), 0);
	get(&q, 7, 7);
	close_queue(&q);
}

/* ---- address vectors ------------------------------------------------------------------------- */

static void insertions(struct ct *ct)
{
	struct fi_av_attr attr = { .type = FI_AV_MAP, .flags = FI_EVENT };
	struct { /* the second names nobody */
		char at[3][16];
	} names = { 0 };
	struct fi_eq_err_entry err = { 0 };
	struct fi_eq_entry entry = { 0 };
	char name[CT_NAME];
	size_t len = sizeof(name);
	fi_addr_t addr[3];
	struct fid_av *av;
	struct queue q;
	struct ct_ep e;
	uint32_t event;
	int rc;

	open_queue(ct, &q, FI_WAIT_UNSPEC);
	ct_ep_open(&q.dom, &e);
	CT_OK(ct, fi_getname(&e.ep->fid, name, &len));
	if (len != sizeof(names.at[0]))
		ct_unsupported(ct, "names of %zu bytes", len);
	rc = fi_av_open(q.dom.domain, &attr, &av, NULL);
	if (rc == -FI_ENOSYS)
		ct_unsupported(ct, "no address vectors with FI_EVENT");
	CT_OK(ct, rc);
	memcpy(names.at[0], name, len);
	memcpy(names.at[2], name, len);
	CT_EQ(ct, fi_av_insert(av, &names, 1, addr, 0, CTX(5)), -FI_ENOEQ);
	CT_OK(ct, fi_av_bind(av, &q.eq->fid, 0));
	CT_EQ(ct, fi_close(&q.eq->fid), -FI_EBUSY);
	CT_OK(ct, fi_av_insert(av, &names, 3, addr, 0, CTX(6)));
	CT_EQ(ct, ct_event(ct, q.eq, &event, &entry, sizeof(entry)), -FI_EAVAIL);
	CT_EQ(ct, fi_eq_readerr(q.eq, &err, 0), sizeof(err));
	CT_TRUE(ct, err.fid == &av->fid && err.context == CTX(6) && err.data == 1 && err.err > 0);
	CT_EQ(ct, ct_event(ct, q.eq, &event, &entry, sizeof(entry)), sizeof(entry));
	CT_EQ(ct, event, FI_AV_COMPLETE);
	CT_TRUE(ct, entry.fid == &av->fid && entry.context == CTX(6));
	CT_EQ(ct, entry.data, 2);
	CT_TRUE(ct,
		addr[0] != FI_ADDR_NOTAVAIL && addr[1] == FI_ADDR_NOTAVAIL && addr[2] != FI_ADDR_NOTAVAIL);
	CT_OK(ct, fi_close(&av->fid));
	ct_ep_close(&e);
	close_queue(&q);
}

/* What an endpoint of the domain has bound, or not, before it is enabled. */
static void open_on(struct queue *q, struct fid_eq *own, struct fi_info *info, struct ct_ep *e)
{
	struct fi_cq_attr attr = { .format = FI_CQ_FORMAT_TAGGED };

	memset(e, 0, sizeof(*e));
	e->ct = q->ct;
	e->dom = &q->dom;
	CT_OK(q->ct, fi_cq_open(q->dom.domain, &attr, &e->txcq, NULL));
	e->rxcq = e->txcq;
	CT_OK(q->ct, fi_endpoint(q->dom.domain, info, &e->ep, NULL));
	CT_OK(q->ct, fi_ep_bind(e->ep, &e->txcq->fid, FI_TRANSMIT | FI_RECV));
	if (own)
		CT_OK(q->ct, fi_ep_bind(e->ep, &own->fid, 0));
	CT_OK(q->ct, fi_enable(e->ep));
}

static void close_on(struct ct_ep *e)
{
	CT_OK(e->ct, fi_close(&e->ep->fid));
	CT_OK(e->ct, fi_close(&e->txcq->fid));
}

/* The called one's queue is that of its domain, the caller's its own where it has bound one. */
static void by_domain(struct ct *ct, bool own)
{
	const struct ct_want want = { .type = FI_EP_MSG };
	struct fid_pep *pep = NULL;
	struct fi_eq_cm_entry cm;
	struct fi_info *info;
	char name[CT_NAME];
	struct fid_eq *eq;
	struct ct_ep e;
	uint32_t event;
	size_t len;
	struct queue q = { .ct = ct };

	ct_open(ct, &q.dom, &want);
	ct_eq_open(&q.dom, &q.eq);
	ct_eq_open(&q.dom, &eq);
	CT_OK(ct, fi_domain_bind(q.dom.domain, &q.eq->fid, 0));
	if (ct->rank) {
		ct_get(ct, NULL, 0, name, sizeof(name));
		open_on(&q, own ? eq : NULL, q.dom.info, &e);
		CT_OK(ct, fi_connect(e.ep, name, NULL, 0));
	} else {
		pep = ct_listen(&q.dom, eq, name, &len);
		ct_put(ct, 1, name, sizeof(name));
		info = ct_request(ct, eq, pep, NULL, NULL);
		open_on(&q, NULL, info, &e);
		fi_freeinfo(info);
		CT_OK(ct, fi_accept(e.ep, NULL, 0));
	}
	ct_expect(ct, ct->rank && own ? eq : q.eq, FI_CONNECTED, &e.ep->fid);
	if (own)
		CT_EQ(ct, fi_eq_read(ct->rank ? q.eq : eq, &event, &cm, sizeof(cm), 0), -FI_EAGAIN);
	ct_sync(ct, &e);
	if (ct->rank)
		CT_OK(ct, fi_shutdown(e.ep, 0));
	else
		ct_expect(ct, q.eq, FI_SHUTDOWN, &e.ep->fid);
	ct_sync(ct, &e);
	close_on(&e);
	if (pep)
		CT_OK(ct, fi_close(&pep->fid));
	CT_OK(ct, fi_close(&eq->fid));
	CT_EQ(ct, fi_close(&q.eq->fid), -FI_EBUSY); /* the domain has it yet */
	CT_OK(ct, fi_close(&q.dom.domain->fid));
	CT_OK(ct, fi_close(&q.eq->fid));
	CT_OK(ct, fi_close(&q.dom.fabric->fid));
	fi_freeinfo(q.dom.info);
}

/*
 * fi_domain(3): an event queue bound to a domain is the default one of the endpoints opened on it,
 * connection events included.
 */
static void of_domain(struct ct *ct)
{
	by_domain(ct, false);
}

/* And endpoints may direct their events to another, by binding that. */
static void own_beside(struct ct *ct)
{
	by_domain(ct, true);
}

const struct ct_case ct_events[] = { { "EQ", "written", { written } },
				     { "EQ", "overrun", { overrun } },
				     { "EQ", "wakes", { wakes } },
				     { "EQ", "signalled", { signalled } },
				     { "EQ", "condition", { condition } },
				     { "EQ", "insertions", { insertions } },
				     { "EQ", "of-domain", { of_domain, of_domain } },
				     { "EQ", "own-beside-domain", { own_beside, own_beside } },
				     { 0 } };
