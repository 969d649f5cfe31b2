/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Counters, fi_cntr(3). */
#include "region.h"

#include <rdma/fi_atomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MSGS 50

/*
 * Sends, injects and receives all count, tagged or not, whether they write
 * completions or not (arg).
 */
static void counts(struct ct *ct)
{
	struct ct_want want = { .counters = true };
	struct ct_dom dom;
	struct ct_ep e;
	char buf[8] = { 0 };
	size_t i;

	if (ct->cs->arg)
		want.tx_bind = want.rx_bind = FI_SELECTIVE_COMPLETION;
	ct_start(ct, &dom, &e, &want);
	for (i = 0; i < MSGS; i++) {
		if (ct->rank && i & 1)
			ct_trecv(&e, buf, 8, 1, 0, CTX(1));
		else if (ct->rank)
			ct_recv(&e, buf, 8, CTX(1));
		else if (i % 4 == 0)
			ct_send(&e, 1, buf, 8, CTX(1));
		else if (i % 4 == 1)
			ct_tsend(&e, 1, buf, 8, 1, CTX(1));
		else if (i % 4 == 2)
			CT_POST(&e, fi_inject(e.ep, buf, 8, e.addr[1]));
		else
			CT_POST(&e, fi_tinject(e.ep, buf, 8, e.addr[1], 1));
	}
	ct_reaches(&e, ct->rank ? e.rxcntr : e.txcntr, MSGS);
	CT_EQ(ct, fi_cntr_read(ct->rank ? e.txcntr : e.rxcntr), 0);
	ct_finish(&e);
}

static void settle(struct ct *ct, struct fid_cntr *c, uint64_t value, uint64_t err)
{
	double end = ct_deadline(ct);

	/* Changes may show after a small delay, fi_cntr(3). */
	while (fi_cntr_read(c) != value || fi_cntr_readerr(c) != err)
		ct_late(ct, end, "a counter to show what was set");
}

static void add_set(struct ct *ct)
{
	struct ct_want want = { .counters = true };
	struct ct_dom dom;
	struct ct_ep e;

	ct_open(ct, &dom, &want);
	ct_ep_open(&dom, &e);
	settle(ct, e.txcntr, 0, 0);
	CT_OK(ct, fi_cntr_add(e.txcntr, 5));
	settle(ct, e.txcntr, 5, 0);
	CT_OK(ct, fi_cntr_adderr(e.txcntr, 3));
	settle(ct, e.txcntr, 5, 3);
	CT_OK(ct, fi_cntr_set(e.txcntr, 1ull << 40));
	settle(ct, e.txcntr, 1ull << 40, 3);
	CT_OK(ct, fi_cntr_seterr(e.txcntr, 0));
	settle(ct, e.txcntr, 1ull << 40, 0);
	settle(ct, e.rxcntr, 0, 0);
	ct_ep_close(&e);
	ct_close(&dom);
}

/* An operation that fails raises the error value, not the other one. */
static void error_value(struct ct *ct)
{
	struct ct_want want = { .counters = true };
	struct ct_dom dom;
	struct ct_comp c;
	struct ct_ep e;
	char buf[8] = { 0 };
	double end;

	ct_start(ct, &dom, &e, &want);
	if (ct->rank) {
		ct_recv(&e, buf, 4, CTX(1));
		ct_of(&e, CTX(1), &c);
		CT_EQ(ct, c.err, FI_ETRUNC);
		end = ct_deadline(ct);
		while (!fi_cntr_readerr(e.rxcntr))
			ct_late(ct, end, "the error value");
		CT_EQ(ct, fi_cntr_readerr(e.rxcntr), 1);
		CT_EQ(ct, fi_cntr_read(e.rxcntr), 0);
	} else {
		ct_send(&e, 1, buf, 8, CTX(1));
		ct_done(&e, CTX(1));
	}
	ct_finish(&e);
}

static int wait_for(struct ct_ep *e, struct fid_cntr *c, uint64_t value, int ms)
{
	int rc = fi_cntr_wait(c, value, ms);

	if (rc == -FI_ENOSYS)
		ct_unsupported(e->ct, "fi_cntr_wait: %s", fi_strerror(-rc));
	return rc;
}

/* Waits asleep for messages that take their time, and moves them. */
static void wait_sleeps(struct ct *ct)
{
	struct ct_want want = { .counters = true, .wait = FI_WAIT_UNSPEC };
	size_t i, len = 1 << 20;
	struct ct_dom dom;
	struct ct_ep e;
	char *buf = ct_alloc(ct, len);
	double cpu;

	ct_start(ct, &dom, &e, &want);
	ct_ping(&e, !ct->rank);
	ct_sync(ct, &e);
	if (ct->rank) {
		ct_trecv(&e, buf, len, 2, 0, CTX(1));
		ct_trecv(&e, buf, len, 2, 0, CTX(2));
		cpu = ct_cpu();
		CT_OK(ct, wait_for(&e, e.rxcntr, 3, 30000));
		cpu = ct_cpu() - cpu;
		if (cpu > 0.2)
			ct_fail(ct, "fi_cntr_wait used %.0f ms of CPU in a second", cpu * 1e3);
	}
	for (i = 0; !ct->rank && i < 2; i++) {
		usleep(500000); /* for the other one's time of waiting, see above */
		ct_tsend(&e, 1, buf, len, 2, CTX(i + 1));
		ct_done(&e, CTX(i + 1));
	}
	free(buf);
	ct_finish(&e);
}

/* fi_cntr(3) forbids programs to wait on a counter with FI_WAIT_NONE. Some do. */
static void wait_none(struct ct *ct)
{
	struct ct_want want = { .counters = true };
	char buf[8] = { 0 };
	struct ct_dom dom;
	struct ct_ep e;

	ct_start(ct, &dom, &e, &want);
	CT_OK(ct, fi_cntr_wait(e.rxcntr, 0, -1));
	CT_EQ(ct, fi_cntr_wait(e.rxcntr, 1, 50), -FI_ETIMEDOUT);
	if (ct->rank) {
		ct_recv(&e, buf, 8, CTX(1));
		CT_OK(ct, fi_cntr_wait(e.rxcntr, 1, 30000));
		CT_EQ(ct, fi_cntr_read(e.rxcntr), 1);
	} else {
		ct_let_sleep(ct->pid[1]);
		ct_send(&e, 1, buf, 8, CTX(1));
	}
	ct_done(&e, CTX(1));
	ct_finish(&e);
}

static void wait_timeout(struct ct *ct)
{
	struct ct_want want = { .counters = true, .wait = FI_WAIT_UNSPEC };
	struct ct_dom dom;
	struct ct_ep e;
	double start;

	ct_open(ct, &dom, &want);
	ct_ep_open(&dom, &e);
	start = ct_now();
	CT_EQ(ct, wait_for(&e, e.rxcntr, 1, 50), -FI_ETIMEDOUT);
	CT_TRUE(ct, ct_now() - start > 0.04);
	CT_OK(ct, wait_for(&e, e.rxcntr, 0, 0));
	ct_ep_close(&e);
	ct_close(&dom);
}

/*
 * Any change of the error value ends the wait; the threshold is not reached, so it is no success.
 */
static void wait_error(struct ct *ct)
{
	struct ct_want want = { .counters = true, .wait = FI_WAIT_UNSPEC };
	struct ct_dom dom;
	struct ct_comp c;
	struct ct_ep e;
	char buf[64] = { 0 };
	double start;

	ct_start(ct, &dom, &e, &want);
	ct_ping(&e, !ct->rank);
	ct_sync(ct, &e);
	if (ct->rank) {
		ct_trecv(&e, buf, 8, 2, 0, CTX(1));
		start = ct_now();
		CT_TRUE(ct, wait_for(&e, e.rxcntr, 2, 30000) < 0);
		CT_TRUE(ct, ct_now() - start < 20);
		ct_of(&e, CTX(1), &c);
		CT_EQ(ct, c.err, FI_ETRUNC);
	} else {
		ct_let_sleep(ct->pid[1]);
		ct_tsend(&e, 1, buf, sizeof(buf), 2, CTX(1));
		ct_done(&e, CTX(1));
	}
	ct_finish(&e);
}

static void open_bad(struct ct *ct)
{
	struct fi_cntr_attr attr = { .events = (enum fi_cntr_events)99 };
	struct fid_cntr *c = NULL;
	struct ct_dom dom;

	ct_open(ct, &dom, NULL);
	CT_REFUSED(ct, fi_cntr_open(dom.domain, &attr, &c, NULL));
	attr = (struct fi_cntr_attr){ .events = FI_CNTR_EVENTS_COMP, .flags = 1 };
	CT_REFUSED(ct, fi_cntr_open(dom.domain, &attr, &c, NULL));
	ct_close(&dom);
}

/* One counter for the sends of two endpoints and one for their receives. */
static void several(struct ct *ct)
{
	struct ct_want want = { .disabled = true };
	char name[CT_NAME], buf[8] = { 0 };
	struct fid_cntr *tx = NULL, *rx = NULL;
	struct ct_ep e[2];
	struct ct_dom dom;

	ct_open(ct, &dom, &want);
	for (int i = 0; i < 2; i++) {
		ct_ep_open(&dom, &e[i]);
		if (!i) {
			tx = ct_cntr_bind(&e[0], FI_SEND);
			rx = ct_cntr_bind(&e[0], FI_RECV);
		} else {
			CT_OK(ct, fi_ep_bind(e[1].ep, &tx->fid, FI_SEND));
			CT_OK(ct, fi_ep_bind(e[1].ep, &rx->fid, FI_RECV));
		}
		ct_ep_enable(&e[i]);
		ct_put(ct, !ct->rank, e[i].name, sizeof(name));
	}
	for (int i = 0; i < 2; i++) {
		ct_get(ct, NULL, !ct->rank, name, sizeof(name));
		e[i].addr[!ct->rank] = ct_insert(&e[i], name);
	}
	for (int i = 0; i < MSGS && ct->rank; i++)
		ct_recv(&e[i % 2], buf, 8, CTX(1));
	ct_sync(ct, &e[0]);
	for (int i = 0; i < MSGS && !ct->rank; i++) {
		ct_send(&e[i % 3 > 0], 1, buf, 8, CTX(1)); /* one more than the other */
		ct_progress(&e[i % 3 == 0]);
	}
	if (ct->rank) { /* MSGS / 2 at the one, the rest waits for a receive at the other */
		for (int i = 0; i < MSGS; i++)
			ct_recv(&e[1], buf, 8, CTX(1));
		ct_reaches(&e[0], rx, MSGS);
	} else {
		ct_reaches(&e[1], tx, MSGS);
	}
	CT_EQ(ct, fi_cntr_read(ct->rank ? tx : rx), 0);
	ct_sync(ct, &e[0]);
	CT_EQ(ct, fi_close(&tx->fid), -FI_EBUSY);
	ct_ep_close(&e[0]);
	CT_EQ(ct, fi_close(&tx->fid), -FI_EBUSY); /* the other has it still */
	ct_ep_close(&e[1]);
	CT_OK(ct, fi_close(&tx->fid));
	CT_OK(ct, fi_close(&rx->fid));
	ct_close(&dom);
}

/* FI_CNTR_EVENTS_BYTES, which libfabric has named since 1.22. */
static struct fid_cntr *byte_counter(struct ct_ep *e, uint64_t what)
{
	struct fi_cntr_attr attr = { .events = (enum fi_cntr_events)1 };
	struct fid_cntr *cntr;
	int rc = fi_cntr_open(e->dom->domain, &attr, &cntr, NULL);

	if (rc)
		ct_unsupported(e->ct, "FI_CNTR_EVENTS_BYTES: %s", fi_strerror(-rc));
	CT_OK(e->ct, fi_ep_bind(e->ep, &cntr->fid, what));
	return cntr;
}

#define BYTES_LONG ((size_t)1 << 20)
#define BYTES_SMALL ((size_t)24)

/* Messages that are short, empty, long, injected and cut off. */
static void bytes_of_messages(struct ct_ep *e, char *buf)
{
	struct ct_comp c;

	if (e->ct->rank) {
		ct_recv(e, buf, BYTES_LONG, CTX(1));
		ct_trecv(e, buf, BYTES_LONG, 1, 0, CTX(2));
		ct_recv(e, buf, BYTES_LONG, CTX(3));
		ct_recv(e, buf, BYTES_LONG, CTX(4));
		ct_trecv(e, buf, BYTES_SMALL - 1, 2, 0, CTX(5));
		for (uintptr_t i = 1; i < 5; i++)
			ct_done(e, CTX(i));
		ct_of(e, CTX(5), &c);
		CT_EQ(e->ct, c.err, FI_ETRUNC);
		return;
	}
	ct_send(e, 1, buf, BYTES_SMALL, CTX(1));
	ct_tsend(e, 1, buf, BYTES_LONG, 1, CTX(2));
	ct_send(e, 1, buf, 0, CTX(3));
	CT_POST(e, fi_inject(e->ep, buf, BYTES_SMALL, e->addr[1]));
	ct_tsend(e, 1, buf, BYTES_SMALL, 2, CTX(4));
	for (uintptr_t i = 1; i < 5; i++)
		ct_done(e, CTX(i));
}

/*
 * A counter of bytes grows by what is sent and received; what fails counts
 * once, in the other value.
 */
static void bytes(struct ct *ct)
{
	struct ct_want want = { .disabled = true };
	uint64_t all = BYTES_LONG + 2 * BYTES_SMALL;
	char *buf = ct_alloc(ct, BYTES_LONG);
	struct fid_cntr *cntr;
	struct ct_dom dom;
	struct ct_ep e;
	double end = ct_deadline(ct);

	ct_open(ct, &dom, &want);
	ct_ep_open(&dom, &e);
	cntr = byte_counter(&e, ct->rank ? FI_RECV : FI_SEND);
	ct_ep_enable(&e);
	ct_join(&e);
	bytes_of_messages(&e, buf);
	if (ct->rank) {
		while (fi_cntr_read(cntr) < all || !fi_cntr_readerr(cntr))
			ct_late(ct, end, "the bytes to be counted");
		CT_EQ(ct, fi_cntr_read(cntr), all);
		CT_EQ(ct, fi_cntr_readerr(cntr), 1);
	} else {
		ct_reaches(&e, cntr, all + BYTES_SMALL);
	}
	CT_OK(ct, fi_cntr_set(cntr, 5));
	CT_EQ(ct, fi_cntr_read(cntr), 5);
	free(buf);
	ct_sync(ct, &e);
	ct_ep_close(&e);
	CT_OK(ct, fi_close(&cntr->fid));
	ct_close(&dom);
}

/* At both ends of one-sided operations: atomic operations count what is changed. */
static void bytes_one_sided(struct ct *ct)
{
	struct ct_want want = { .caps = FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_RMA_EVENT,
				.disabled = true };
	struct fid_cntr *read, *write;
	struct ct_region r;
	struct ct_place at;
	struct ct_dom dom;
	struct ct_ep e;
	char *buf = ct_alloc(ct, BYTES_LONG);
	uint64_t two[2] = { 1, 2 }, old[2];

	ct_open(ct, &dom, &want);
	ct_ep_open(&dom, &e);
	read = byte_counter(&e, ct->rank ? FI_REMOTE_READ : FI_READ);
	write = byte_counter(&e, ct->rank ? FI_REMOTE_WRITE : FI_WRITE);
	ct_ep_enable(&e);
	ct_join(&e);
	ct_offer(&e, &r, BYTES_LONG, FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE, &at);
	if (!ct->rank) {
		CT_POST(&e, fi_read(e.ep, buf, BYTES_LONG, NULL, e.addr[1], at.addr, at.key, CTX(1)));
		CT_POST(&e, fi_read(e.ep, buf, BYTES_SMALL, NULL, e.addr[1], at.addr, at.key, CTX(1)));
		CT_POST(&e, fi_write(e.ep, buf, BYTES_LONG, NULL, e.addr[1], at.addr, at.key, CTX(1)));
		CT_POST(&e, fi_inject_write(e.ep, buf, BYTES_SMALL, e.addr[1], at.addr, at.key));
		CT_POST(&e,
			fi_atomic(e.ep, two, 2, NULL, e.addr[1], at.addr, at.key, FI_UINT64, FI_SUM, CTX(1)));
		CT_POST(&e, fi_fetch_atomic(e.ep, two, 2, NULL, old, NULL, e.addr[1], at.addr, at.key,
					    FI_UINT64, FI_SUM, CTX(1)));
	}
	ct_reaches(&e, read, BYTES_LONG + BYTES_SMALL + sizeof(two));
	ct_reaches(&e, write, BYTES_LONG + BYTES_SMALL + sizeof(two));
	free(buf);
	ct_sync(ct, &e);
	if (ct->rank)
		ct_region_close(&e, &r);
	ct_sync(ct, &e);
	ct_ep_close(&e);
	CT_OK(ct, fi_close(&read->fid));
	CT_OK(ct, fi_close(&write->fid));
	ct_close(&dom);
}

const struct ct_case ct_cntr[] = { { "CNTR", "counts", CT_TWO(counts), .arg = 0 },
				   { "CNTR", "counts-selective", CT_TWO(counts), .arg = 1 },
				   { "CNTR", "add-set", { add_set } },
				   { "CNTR", "error-value", CT_TWO(error_value) },
				   { "CNTR", "wait-sleeps", CT_TWO(wait_sleeps), .slow = true },
				   { "CNTR", "wait-without-an-object", CT_TWO(wait_none) },
				   { "CNTR", "wait-timeout", { wait_timeout } },
				   { "CNTR", "wait-error", CT_TWO(wait_error) },
				   { "CNTR", "open-bad", { open_bad } },
				   { "CNTR", "several-endpoints", CT_TWO(several) },
				   { "CNTR", "bytes", CT_TWO(bytes) },
				   { "CNTR", "bytes-one-sided", CT_TWO(bytes_one_sided) },
				   { 0 } };
