/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * The log at the level debug: one line for each transition and none for what stays as it is, with
 * the names that `heddle info` prints; and what a program does without end is told of for a while.
 */
#include "base/log.h"
#include "engine/mr/mr.h"
#include "engine/qp/qp.h"
#include "engine/test/test_qp.h"
#include "engine/test/test_rma.h"

#include <errno.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LINES 8192
#define LONG 100000

static char lines[LINES][160];
static int line_count;

static bool line_keep(void *arg, enum hd_log_level level, const char *room, const char *message)
{
	if (line_count < LINES)
		snprintf(lines[line_count++], sizeof(lines[0]), "%s", message);
	return true;
}

static int log_begin(void **state)
{
	line_count = 0;
	hd_log_set_sink(line_keep, NULL);
	hd_log_raise(HD_LOG_DEBUG);
	return 0;
}

static int log_end(void **state)
{
	hd_log_raise(HD_LOG_ERROR);
	hd_log_set_sink(NULL, NULL);
	return unsetenv("HEDDLE_DIRECT_COPY");
}

static int said(const char *pattern)
{
	regex_t compiled;
	int n = 0;

	assert_int_equal(regcomp(&compiled, pattern, REG_EXTENDED | REG_NOSUB), 0);
	for (int i = 0; i < line_count; i++)
		n += !regexec(&compiled, lines[i], 0, NULL, 0);
	regfree(&compiled);
	return n;
}

#define QP "^queue pair 0x[0-9a-f]{6}: "

static void what_nobody_used_goes_without_a_word(void **state)
{
	struct pair p;

	qps_new(&p, "tcp", RC);
	pair_close(&p);
	assert_int_equal(said(QP), 0);
	qps_open(&p, "tcp", RC);
	pair_close(&p);
	assert_int_equal(said(QP "closed, was RTS$"), 2);
}

static void what_stays_is_no_transition(void **state)
{
	struct pair p;

	qps_open(&p, "tcp", RC);
	qp_send(&p.a, "hello", 5, NULL); /* for which there is no receive: it drains for long */
	pair_settle(&p, 10);
	assert_int_equal(hd_ep_pause(p.a.ep, true), 0);
	assert_int_equal(hd_ep_pause(p.a.ep, true), 0);
	assert_int_equal(said(QP "SQD, draining, was RTS$"), 1);
	assert_int_equal(said(QP "SQD"), 1);
	pair_close(&p);
}

/* What a queue pair has for an end that takes nothing in waits once, however often it is tried. */
static void a_send_queue_waits_once(void **state)
{
	static unsigned char from[LONG];
	struct pair p;

	setenv("HEDDLE_UNEXPECTED_PEER", "64K", 1);
	qps_open(&p, "tcp", RC);
	for (intptr_t i = 0; i < 40; i++)
		qp_send(&p.a, from, 4096, (void *)i);
	pair_settle(&p, 100);
	assert_in_range(said(QP "[0-9]+ wait for credit or room at peer [0-9a-f]{8}$"), 1, 8);
	pair_close(&p);
	unsetenv("HEDDLE_UNEXPECTED_PEER");
}

static void credit_runs_out_once(void **state)
{
	static unsigned char from[4096];
	struct pair p;

	setenv("HEDDLE_UNEXPECTED_PEER", "64K", 1);
	pair_open(&p, "tcp");
	for (int refused = 0; refused < 500;) {
		refused += hd_send(p.a.ep, p.a.to, from, sizeof(from), 1, 0, NULL, HD_SEND_TAGGED) == -EAGAIN;
		hd_node_poll(p.a.node);
		hd_node_poll(p.b.node);
	}
	assert_in_range(said("^rdm 0: no credit for 4096 bytes at peer [0-9a-f]{8}$"), 1, 8);
	pair_close(&p);
	unsetenv("HEDDLE_UNEXPECTED_PEER");
}

static void a_write_that_goes_by_packets_says_why(void **state)
{
	static unsigned char from[LONG], to[LONG];
	struct hd_mr *mr;
	struct pair p;

	setenv("HEDDLE_DIRECT_COPY", "no", 1);
	rma_open(&p, "shm");
	mr = rma_region(&p.b, KEY, to, LONG, ALL);
	rma_go(&p, HD_RMA_WRITE, from, LONG, 0, DONE);
	rma_expect(&p, HD_RMA_WRITE, from, 0);
	assert_int_equal(said("^rdm 0: no direct copy of 100000 bytes of a write at peer [0-9a-f]{8}, "
			      "but packets: "),
			 1);
	hd_mr_close(mr);
	pair_close(&p);
}

/* It is known by its peer as soon as there is one; shared memory has no address. */
static void a_link_is_named_by_whom_it_leads_to(void **state)
{
	struct pair p;

	pair_open(&p, "shm");
	pair_push(&p, &p.a, "hello", 5, 1, HD_SEND_ACKED);
	pair_settle(&p, 10);
	pair_close(&p);
	assert_int_equal(said("shm link to peer [0-9a-f]{8}: up$"), 1);
	assert_int_equal(said("shm link from process [0-9]+: up$"), 1);
	assert_true(said("^tcp link to [^ ]+ port [0-9]+: up$") > 0);
	assert_true(said("^peer [0-9a-f]{8}: greeting, over the tcp link (to|from) [^ ]+ port [0-9]+$") > 1);
	assert_int_equal(said("unnamed"), 0);
}

static void refusals_are_told_for_a_while(void **state)
{
	for (int i = 0; i < 4000; i++)
		assert_int_equal(hd_refuse(EINVAL, "a test"), -EINVAL);
	/* the second may end meanwhile */
	assert_in_range(said("^a call is refused: .*: a test$"), 1, 2 * HD_LOG_EVENTS + 2);
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, log_begin, log_end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(what_nobody_used_goes_without_a_word),
		CASE(what_stays_is_no_transition),
		CASE(a_send_queue_waits_once),
		CASE(credit_runs_out_once),
		CASE(a_write_that_goes_by_packets_says_why),
		CASE(a_link_is_named_by_whom_it_leads_to),
		CASE(refusals_are_told_for_a_while),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
