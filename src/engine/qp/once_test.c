/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * The other end may write to a packet in shared memory at any time. What the dispatcher has judged
 * a request by is read once: here the other end changes it right after that, and what comes of the
 * request is what it said before, whether it is carried out at once, beside another, or kept for
 * later. And what is kept takes no more memory than it has credit for.
 */
#include "engine/mr/mr.h"
#include "engine/qp/qp.h"
#include "engine/rma/rma.h"
#include "engine/test/test_qp.h"

#include <stdlib.h>
#include <string.h>

#define LONG (300u << 10)
#define SHORT 64

int __real_hd_deliver(struct hd_link *link, const struct hd_pkt *pkt, const void *payload, size_t len);
int __wrap_hd_deliver(struct hd_link *link, const struct hd_pkt *pkt, const void *payload, size_t len);
int __real_hd_resp_request(const struct hd_arrival *a);
int __wrap_hd_resp_request(const struct hd_arrival *a);

static void *shared;   /* the payload that has come */
static uint8_t spoils; /* requests of this kind are spoilt; 0: none */
static size_t bytes;   /* so much of the beginning of the payload */
static int spoilt;

int __wrap_hd_deliver(struct hd_link *link, const struct hd_pkt *pkt, const void *payload, size_t len)
{
	shared = (void *)payload;
	return __real_hd_deliver(link, pkt, payload, len);
}

int __wrap_hd_resp_request(const struct hd_arrival *a)
{
	if (a->pkt->kind == spoils) {
		memset(shared, 0xff, bytes);
		spoilt++;
	}
	return __real_hd_resp_request(a);
}

static unsigned char *from, *to;

/* A region whose accesses are counted, so that they come by packets. */
static struct hd_mr *counted_region(struct side *s, struct hd_cntr **cntr)
{
	struct hd_mr *mr = qp_region(s, to, LONG, 0);

	hd_node_lock(s->node);
	assert_int_equal(hd_cntr_open(s->node, cntr), 0);
	hd_mr_bind_cntrs(mr, NULL, *cntr);
	hd_node_unlock(s->node);
	return mr;
}

static void region_end(struct side *s, struct hd_mr *mr, struct hd_cntr *cntr)
{
	hd_node_lock(s->node);
	assert_int_equal(hd_mr_close(mr), 0);
	assert_int_equal(hd_cntr_close(cntr), 0);
	hd_node_unlock(s->node);
}

static void spoil(uint8_t kind, size_t n)
{
	spoils = kind;
	bytes = n;
	spoilt = 0;
}

/* It comes before the queue pair that it is for is ready, or after that. */
static void a_write_goes_where_it_said(void **state)
{
	for (int kept = 0; kept < 2; kept++) {
		struct hd_cntr *cntr;
		struct hd_mr *mr;
		struct pair p;

		qps_new(&p, "shm", RC);
		mr = counted_region(&p.b, &cntr);
		qp_ready(&p.a, &p.b, NULL);
		if (!kept)
			qp_ready(&p.b, &p.a, NULL);
		memset(to, 0, LONG);
		test_fill(from, SHORT, 5);
		spoil(HD_PKT_WRITE, hd_rma_list_size(1));
		qp_rma(&p.a, HD_RMA_WRITE, from, SHORT, hd_mr_key(mr), to + 1000, &p, 0);
		while (!spoilt) {
			hd_node_poll(p.a.node);
			hd_node_poll(p.b.node);
		}
		if (kept) {
			assert_int_equal(hd_qp_inspect(p.b.ep->qp).queued, 1);
			qp_ready(&p.b, &p.a, NULL);
		}
		qp_expect(&p, &p.a, &p, 0);
		test_check(to + 1000, SHORT, 5);
		spoil(0, 0);
		region_end(&p.b, mr, cntr);
		pair_close(&p);
	}
}

/* A message that is announced while another comes in is let in beside it for what it has said. */
static void a_message_is_as_long_as_it_said(void **state)
{
	static char first, second;
	struct pair p;

	qps_open(&p, "shm", RC);
	test_fill(from, LONG, 7);
	qp_recv(&p.b, to, LONG, &first);
	qp_recv(&p.b, to + LONG, LONG, &second);
	spoil(HD_PKT_RTS, sizeof(uint64_t));
	qp_send(&p.a, from, LONG, &first);
	qp_send(&p.a, from, LONG, &second);
	qp_expect(&p, &p.b, &first, 0);
	qp_expect(&p, &p.b, &second, 0);
	assert_int_equal(spoilt, 2);
	spoil(0, 0);
	test_check(to, LONG, 7);
	test_check(to + LONG, LONG, 7);
	qp_expect(&p, &p.a, &first, 0);
	qp_expect(&p, &p.a, &second, 0);
	pair_close(&p);
}

/* What costs as little as a request without data has none. */
static void a_write_costs_what_it_brings(void **state)
{
	struct {
		struct hd_rma head;
		struct hd_rma_seg seg;
		unsigned char data[4096];
	} w = { .head = { .count = 1 }, .seg = { .len = SHORT } };
	struct hd_rma_list list;
	size_t size = hd_rma_list_size(1);

	assert_true(hd_rma_list_read(&list, &w, size + SHORT));
	assert_int_equal(hd_rma_list_units(&list), hd_units(size + SHORT));
	assert_true(hd_rma_list_read(&list, &w, size));
	assert_int_equal(hd_rma_list_units(&list), HD_UNITS_RMA);
	assert_false(hd_rma_list_read(&list, &w, sizeof(w)));
	assert_false(hd_rma_list_read(&list, &w, size + SHORT - 1));
	w.head.offer_len = 40;
	assert_true(hd_rma_list_read(&list, &w, size + 40));
	assert_int_equal(hd_rma_list_units(&list), HD_UNITS_RMA);
	assert_false(hd_rma_list_read(&list, &w, sizeof(w)));
	assert_false(hd_rma_list_read(&list, &w, size));
	w.seg.len = 0;
	assert_false(hd_rma_list_read(&list, &w, size + 40));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_write_goes_where_it_said),
		cmocka_unit_test(a_message_is_as_long_as_it_said),
		cmocka_unit_test(a_write_costs_what_it_brings),
	};
	int rc;

	from = calloc(1, LONG);
	to = calloc(2, LONG);
	rc = from && to ? cmocka_run_group_tests_name("once", tests, NULL, NULL) : 1;
	free(from);
	free(to);
	return rc;
}
