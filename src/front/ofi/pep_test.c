/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Passive endpoints that are closed while who has called waits for an answer; both
 * ends are in this process.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/clock.h"
#include "front/ofi/cm.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#define PATIENCE (30 * HD_NS_PER_S)
#define MANY 64 /* one of so many new ones has the memory of one that has just been freed */

struct side {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_eq *eq;
	struct side *other;
};

struct both {
	struct side a, b; /* caller, called */
	struct fid_pep *pep;
	struct sockaddr_in at;
	struct fid_ep *caller;
	struct fi_info *called; /* the request */
};

int __real_hd_fi_called_info(const struct hd_fi_called *called, bool keep, struct fi_info **out);
int __wrap_hd_fi_called_info(const struct hd_fi_called *called, bool keep, struct fi_info **out);

/* done by another thread when one has taken the event of a request */
static void (*meanwhile)(void);

int __wrap_hd_fi_called_info(const struct hd_fi_called *called, bool keep, struct fi_info **out)
{
	if (meanwhile)
		meanwhile();
	return __real_hd_fi_called_info(called, keep, out);
}

static void side_open(struct side *s)
{
	struct fi_info *hints = fi_allocinfo();

	hints->ep_attr->type = FI_EP_MSG;
	assert_int_equal(hd_fi_getinfo(HD_FI_OLDEST, "127.0.0.1", NULL, FI_SOURCE, hints, &s->info), 0);
	fi_freeinfo(hints);
	assert_int_equal(hd_fi_fabric_open(s->info->fabric_attr, &s->fabric, NULL), 0);
	assert_int_equal(fi_domain(s->fabric, s->info, &s->domain, NULL), 0);
	assert_int_equal(
		fi_eq_open(s->fabric, &(struct fi_eq_attr){ .wait_obj = FI_WAIT_NONE }, &s->eq, NULL), 0);
}

static void side_close(struct side *s)
{
	assert_int_equal(fi_close(&s->eq->fid), 0);
	s->eq = NULL;
	assert_int_equal(fi_close(&s->domain->fid), 0);
	assert_int_equal(fi_close(&s->fabric->fid), 0);
	fi_freeinfo(s->info);
}

static struct fid_ep *ep_open(struct side *s, struct fi_info *info)
{
	struct fid_ep *ep;
	struct fid_cq *cq;

	assert_int_equal(fi_endpoint(s->domain, info, &ep, NULL), 0);
	assert_int_equal(fi_cq_open(s->domain, &(struct fi_cq_attr){ .format = FI_CQ_FORMAT_MSG }, &cq, ep),
			 0);
	assert_int_equal(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV), 0);
	assert_int_equal(fi_ep_bind(ep, &s->eq->fid, 0), 0);
	ep->fid.context = cq;
	return ep;
}

static void ep_shut(struct fid_ep *ep)
{
	struct fid_cq *cq = ep->fid.context;

	assert_int_equal(fi_close(&ep->fid), 0);
	assert_int_equal(fi_close(&cq->fid), 0);
}

/* The next event of one side; the other one makes progress, too. */
static ssize_t event(struct side *s, uint32_t *what, struct fi_eq_cm_entry *entry)
{
	uint64_t until = hd_now_ns() + PATIENCE;
	struct fi_eq_cm_entry peeked;
	uint32_t other;
	ssize_t n;

	do {
		if (s->other->eq)
			fi_eq_read(s->other->eq, &other, &peeked, sizeof(peeked), FI_PEEK);
		n = fi_eq_read(s->eq, what, entry, sizeof(*entry), 0);
		assert_true(hd_now_ns() < until);
	} while (n == -FI_EAGAIN);
	return n;
}

static void expect(struct side *s, uint32_t what, struct fid_ep *ep)
{
	struct fi_eq_cm_entry entry;
	uint32_t got = 0;

	assert_int_equal(event(s, &got, &entry), sizeof(entry));
	assert_int_equal(got, what);
	assert_ptr_equal(entry.fid, &ep->fid);
}

static void expect_error(struct side *s, int err)
{
	struct fi_eq_err_entry entry = { 0 };
	struct fi_eq_cm_entry none;
	uint32_t got;

	assert_int_equal(event(s, &got, &none), -FI_EAVAIL);
	assert_int_equal(fi_eq_readerr(s->eq, &entry, 0), sizeof(entry));
	assert_int_equal(entry.err, err);
}

static void call(struct both *b)
{
	size_t len = sizeof(b->at);

	memset(b, 0, sizeof(*b));
	side_open(&b->a);
	side_open(&b->b);
	b->a.other = &b->b;
	b->b.other = &b->a;
	assert_int_equal(fi_passive_ep(b->b.fabric, b->b.info, &b->pep, NULL), 0);
	assert_int_equal(fi_pep_bind(b->pep, &b->b.eq->fid, 0), 0);
	assert_int_equal(fi_listen(b->pep), 0);
	assert_int_equal(fi_getname(&b->pep->fid, &b->at, &len), 0);
	b->caller = ep_open(&b->a, b->a.info);
	assert_int_equal(fi_connect(b->caller, &b->at, NULL, 0), 0);
}

/* Somebody has called, been read of, and the passive endpoint is closed. */
static void both_open(struct both *b)
{
	struct fi_eq_cm_entry entry;
	uint32_t what = 0;

	call(b);
	assert_int_equal(event(&b->b, &what, &entry), sizeof(entry));
	assert_int_equal(what, FI_CONNREQ);
	b->called = entry.info;
	assert_int_equal(fi_close(&b->pep->fid), 0);
}

static void both_close(struct both *b)
{
	ep_shut(b->caller);
	fi_freeinfo(b->called);
	side_close(&b->a);
}

static void the_fabric_refuses_who_is_left(void **state)
{
	struct both b;

	both_open(&b);
	side_close(&b.b); /* nothing of it is in use */
	expect_error(&b.a, FI_ECONNREFUSED);
	both_close(&b);
}

/* Another fabric's end is nothing to it; and an acceptor has the name that was called. */
static void the_program_answers(void **state)
{
	struct sockaddr_in name;
	size_t len = sizeof(name);
	struct side other;
	struct fid_ep *ep;
	struct both b;

	both_open(&b);
	side_open(&other);
	side_close(&other);
	ep = ep_open(&b.b, b.called);
	assert_int_equal(fi_getname(&ep->fid, &name, &len), 0);
	assert_int_equal(name.sin_port, b.at.sin_port);
	assert_int_equal(fi_accept(ep, NULL, 0), 0);
	expect(&b.a, FI_CONNECTED, b.caller);
	expect(&b.b, FI_CONNECTED, ep);
	ep_shut(ep);
	expect(&b.a, FI_SHUTDOWN, b.caller);
	side_close(&b.b);
	both_close(&b);
}

/* The event queue, too, may be closed meanwhile, and another one be the acceptor's. */
static void the_event_queue_is_free(void **state)
{
	struct fid_ep *ep;
	struct both b;

	both_open(&b);
	assert_int_equal(fi_close(&b.b.eq->fid), 0);
	assert_int_equal(
		fi_eq_open(b.b.fabric, &(struct fi_eq_attr){ .wait_obj = FI_WAIT_NONE }, &b.b.eq, NULL), 0);
	ep = ep_open(&b.b, b.called);
	assert_int_equal(fi_accept(ep, NULL, 0), 0);
	expect(&b.a, FI_CONNECTED, b.caller);
	expect(&b.b, FI_CONNECTED, ep);
	ep_shut(ep);
	side_close(&b.b);
	both_close(&b);
}

static struct both *rival;
static struct fid_pep *others[MANY];

/* Another thread closes the passive endpoint, and opens others, one of which has its memory. */
static void its_memory_is_anothers(void)
{
	const struct fid_pep *was = rival->pep;
	int i = 0;

	meanwhile = NULL;
	assert_int_equal(fi_close(&rival->pep->fid), 0);
	do
		assert_int_equal(fi_passive_ep(rival->b.fabric, rival->b.info, &others[i], NULL), 0);
	while (others[i] != was && ++i < MANY);
}

static void who_closes_meanwhile_refuses(void **state)
{
	struct fi_eq_cm_entry entry;
	struct both b;
	uint32_t what;

	call(&b);
	rival = &b;
	meanwhile = its_memory_is_anothers;
	while (meanwhile) {
		fi_eq_read(b.a.eq, &what, &entry, sizeof(entry), 0);
		assert_int_equal(fi_eq_read(b.b.eq, &what, &entry, sizeof(entry), 0), -FI_EAGAIN);
	}
	expect_error(&b.a, FI_ECONNREFUSED);
	for (int i = 0; i < MANY && others[i]; i++)
		assert_int_equal(fi_close(&others[i]->fid), 0);
	side_close(&b.b);
	both_close(&b);
}

static void expect_name(struct fid_pep *pep, const struct sockaddr_in *name)
{
	struct sockaddr_in now;
	size_t len = sizeof(now);

	assert_int_equal(fi_getname(&pep->fid, &now, &len), 0);
	assert_int_equal(len, sizeof(now));
	assert_memory_equal(&now, name, len);
}

/* Another one's port, an address that is not this host's, and that with the port that it has. */
static void a_name_that_is_refused_changes_nothing(void **state)
{
	struct sockaddr_in name = { 0 }, taken = { 0 };
	size_t len = sizeof(name);
	struct fid_pep *pep;
	struct both b;

	both_open(&b);
	assert_int_equal(fi_passive_ep(b.b.fabric, b.b.info, &b.pep, NULL), 0);
	assert_int_equal(fi_passive_ep(b.b.fabric, b.b.info, &pep, NULL), 0);
	assert_int_equal(fi_getname(&b.pep->fid, &taken, &len), 0);
	assert_int_equal(fi_getname(&pep->fid, &name, &len), 0);
	assert_int_equal(fi_setname(&pep->fid, &taken, len), -FI_EADDRINUSE);
	expect_name(pep, &name);
	taken.sin_addr.s_addr = inet_addr("192.0.2.1");
	assert_int_equal(fi_setname(&pep->fid, &taken, len), -FI_EADDRNOTAVAIL);
	expect_name(pep, &name);
	taken.sin_port = name.sin_port;
	assert_int_equal(fi_setname(&pep->fid, &taken, len), -FI_EADDRNOTAVAIL);
	expect_name(pep, &name);
	assert_int_equal(fi_setname(&pep->fid, &name, len), 0);
	expect_name(pep, &name);
	assert_int_equal(fi_close(&pep->fid), 0);
	assert_int_equal(fi_close(&b.pep->fid), 0);
	side_close(&b.b);
	both_close(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_fabric_refuses_who_is_left),
		cmocka_unit_test(the_program_answers),
		cmocka_unit_test(the_event_queue_is_free),
		cmocka_unit_test(who_closes_meanwhile_refuses),
		cmocka_unit_test(a_name_that_is_refused_changes_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
