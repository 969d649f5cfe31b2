/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * What of a queue pair happens side by side: long messages, and transfers that
 * wait to be copied directly.
 */
#include "engine/qp/qp.h"
#include "engine/test/test_qp.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MANY 40
#define ROOM (600u << 10)
#define MIDDLE (64u << 10)

static unsigned char *out[MANY], *in[MANY], memory[1 << 20];

static int buffers_make(void **state)
{
	for (int i = 0; i < MANY; i++) {
		out[i] = malloc(ROOM);
		in[i] = malloc(ROOM);
		test_fill(out[i], ROOM, (unsigned)i);
	}
	return 0;
}

static int buffers_free(void **state)
{
	for (int i = 0; i < MANY; i++) {
		free(out[i]);
		free(in[i]);
	}
	return 0;
}

/*
 * The first ones are the longest, so that those behind them are here first;
 * a short one now and then.
 */
static size_t length(int i)
{
	return i % 10 == 9 ? 8 : ROOM - (size_t)(i % 10) * 60000;
}

static struct hd_qp *pair_of(const struct side *s)
{
	return s->ep->qp;
}

/* ---- long messages --------------------------------------------------------------------------- */

static void complete_in_order(void **state)
{
	struct pair p;

	EACH_TRANSPORT(t)
	{
		qps_open(&p, t, RC);
		for (int i = 0; i < MANY; i++)
			qp_recv(&p.b, in[i], ROOM, in[i]);
		for (int i = 0; i < MANY; i++)
			qp_send(&p.a, out[i], length(i), out[i]);
		for (int i = 0; i < MANY; i++) {
			assert_int_equal(qp_expect(&p, &p.b, in[i], 0).len, length(i));
			test_check(in[i], length(i), (unsigned)i);
		}
		for (int i = 0; i < MANY; i++)
			qp_expect(&p, &p.a, out[i], 0);
		assert_int_equal(hd_qp_inspect(pair_of(&p.b)).coming_in, 0);
		pair_close(&p);
	}
}

/* Over TCP they are all begun before the first has ended. */
static void come_side_by_side(void **state)
{
	uint32_t most = 0;
	struct pair p;

	qps_open(&p, "tcp", RC);
	for (int i = 0; i < MANY; i++)
		qp_recv(&p.b, in[i], ROOM, in[i]);
	for (int i = 0; i < MANY; i++)
		qp_send(&p.a, out[i], ROOM, out[i]);
	while (!hd_cq_peek(p.b.cq)) {
		hd_node_poll(p.a.node);
		hd_node_poll(p.b.node);
		most = hd_qp_inspect(pair_of(&p.b)).coming_in > most ? hd_qp_inspect(pair_of(&p.b)).coming_in
								     : most;
	}
	assert_int_equal(most, HD_LANE_WIDTH);
	pair_close(&p);
}

/*
 * The region of one that is not the first closes while both come in: nothing
 * is written there any more.
 */
static void a_region_closes(void **state)
{
	static const struct hd_mr_fault fault = { memory, HD_S_ACCESS };
	const struct iovec iov = { in[1], ROOM };
	struct hd_mr *mr;
	struct pair p;

	qps_open(&p, "tcp", RC);
	hd_node_lock(p.b.node);
	assert_int_equal(hd_mr_open(p.b.node,
				    &(struct hd_mr_attr){ .iov = &iov,
							  .count = 1,
							  .access = HD_ACCESS_LOCAL_WRITE,
							  .flags = HD_MR_VIRTUAL,
							  .fault = &fault },
				    &mr),
			 0);
	hd_node_unlock(p.b.node);
	qp_recv(&p.b, in[0], ROOM, in[0]);
	hd_node_lock(p.b.node);
	assert_int_equal(hd_recv(p.b.ep, &(struct hd_recv_args){ .iov = &iov,
								 .count = 1,
								 .flags = HD_RECV_COMPLETE,
								 .ctx = in[1],
								 .region = mr,
								 .regions = &mr }),
			 0);
	hd_node_unlock(p.b.node);
	for (int i = 0; i < 2; i++)
		qp_send(&p.a, out[i], ROOM, out[i]);
	while (hd_qp_inspect(pair_of(&p.b)).coming_in < 2) {
		hd_node_poll(p.a.node);
		hd_node_poll(p.b.node);
	}
	for (int i = 0; i < 20; i++)
		hd_node_poll(p.a.node); /* as much of them as there is room for is on its way */
	hd_node_lock(p.b.node);
	assert_int_equal(hd_mr_close(mr), 0);
	hd_node_unlock(p.b.node);
	memset(in[1], 0x55, ROOM);
	while (hd_cq_count(p.b.cq) < 2)
		pair_settle(&p, 1);
	for (size_t i = 0; i < ROOM; i++)
		assert_int_equal(in[1][i], 0x55);
	pair_close(&p);
}

/* Those that could go eagerly as well, with short ones between them. */
static void middling_side_by_side(const char *transport, uint32_t policy)
{
	uint32_t most = 0;
	struct pair p;
	int told = 0;

	qps_open(&p, transport, policy);
	for (int i = 0; i < MANY; i++)
		qp_recv(&p.b, in[i], ROOM, in[i]);
	for (int i = 0; i < MANY; i++)
		qp_send(&p.a, out[i], i % 10 == 9 ? 8 : MIDDLE - (size_t)i, out[i]);
	while (told < MANY) {
		hd_node_poll(p.a.node);
		hd_node_poll(p.b.node);
		most = hd_qp_inspect(pair_of(&p.b)).coming_in > most ? hd_qp_inspect(pair_of(&p.b)).coming_in
								     : most;
		for (; hd_cq_peek(p.b.cq); told++)
			assert_ptr_equal(qp_expect(&p, &p.b, in[told], 0).ctx, in[told]);
	}
	for (int i = 0; i < MANY; i++) {
		qp_expect(&p, &p.a, out[i], 0);
		test_check(in[i], i % 10 == 9 ? 8 : MIDDLE - (size_t)i, (unsigned)i);
	}
	assert_true(strcmp(transport, "tcp") != 0 || most > 2);
	assert_int_equal(hd_qp_inspect(pair_of(&p.a)).units, 0);
	pair_close(&p);
}

/*
 * A reliable pair's are announced behind two that went, an unreliable one's behind those that
 * the link's credit lets go.
 */
static void middling_ones_come_side_by_side(void **state)
{
	EACH_TRANSPORT(t)
	{
		middling_side_by_side(t, RC);
		middling_side_by_side(t, UC);
	}
}

/* One that is too long fails both ends, but not before those before it are in. */
static void a_failure_waits_for_those_before_it(void **state)
{
	struct pair p;

	EACH_TRANSPORT(t)
	{
		qps_open(&p, t, RC);
		for (int i = 0; i < 5; i++)
			qp_recv(&p.b, in[i], i == 3 ? 100000 : ROOM, in[i]);
		for (int i = 0; i < 5; i++)
			qp_send(&p.a, out[i], 300000, out[i]);
		for (int i = 0; i < 5; i++)
			qp_expect(&p, &p.b, in[i], i < 3 ? 0 : i == 3 ? HD_S_LENGTH : HD_S_CANCELLED);
		for (int i = 0; i < 3; i++)
			test_check(in[i], 300000, (unsigned)i);
		for (int i = 0; i < 5; i++)
			qp_expect(&p, &p.a, out[i], i < 3 ? 0 : i == 3 ? HD_S_LENGTH : HD_S_CANCELLED);
		pair_close(&p);
	}
}

/*
 * However far they have come, each receive is told of once, in order, and nothing good behind
 * something bad. Returns whether any was bad.
 */
static bool check_end(struct pair *p, int count)
{
	bool bad = false;

	for (int i = 0; i < count; i++) {
		struct hd_cqe e = pair_next(p, &p->b);

		assert_ptr_equal(e.ctx, in[i]);
		assert_false(bad && !e.err);
		bad |= e.err != 0;
		if (!bad)
			test_check(in[i], length(i), (unsigned)i);
	}
	return bad;
}

static void send_and_turn(struct pair *p, int count, int turns)
{
	for (int i = 0; i < count; i++)
		qp_recv(&p->b, in[i], ROOM, in[i]);
	for (int i = 0; i < count; i++)
		qp_send(&p->a, out[i], length(i), out[i]);
	while (!hd_qp_inspect(pair_of(&p->b)).coming_in && !hd_cq_peek(p->b.cq)) {
		hd_node_poll(p->a.node);
		hd_node_poll(p->b.node);
	}
	for (int i = 0; i < turns; i++) {
		hd_node_poll(p->a.node);
		hd_node_poll(p->b.node);
	}
}

static void fail_while_they_come(void **state)
{
	bool bad = false;
	struct pair p;

	EACH_TRANSPORT(t)
	{
		for (int turns = 0; turns < 8; turns++) {
			qps_open(&p, t, RC);
			send_and_turn(&p, 9, turns);
			if (turns & 1)
				hd_ep_fail(p.b.ep);
			else
				hd_ep_fail(p.a.ep), hd_ep_fail(p.b.ep);
			bad |= check_end(&p, 9);
			for (int i = 0; i < 9; i++)
				assert_ptr_equal(pair_next(&p, &p.a).ctx, out[i]);
			assert_int_equal(hd_qp_inspect(pair_of(&p.b)).coming_in, 0);
			pair_close(&p);
		}
	}
	assert_true(bad); /* the soonest ones come too soon for all to be in */
}

static void the_other_end_goes_while_they_come(void **state)
{
	bool bad = false;
	struct pair p;

	EACH_TRANSPORT(t)
	{
		for (int turns = 0; turns < 4; turns++) {
			qps_open(&p, t, RC);
			send_and_turn(&p, 9, turns);
			side_close(&p.a);
			side_open(&p.a);
			pair_settle(&p, 5);
			hd_ep_fail(p.b.ep);
			bad |= check_end(&p, 9);
			pair_close(&p);
		}
	}
	assert_true(bad); /* the soonest ones come too soon for all to be in */
}

static void reset_and_close_while_they_come(void **state)
{
	struct pair p;

	EACH_TRANSPORT(t)
	{
		for (int turns = 0; turns < 4; turns++) {
			qps_open(&p, t, RC);
			send_and_turn(&p, 9, turns);
			if (turns & 1)
				hd_ep_reset(p.b.ep);
			else
				qp_open(&p.b, RC | ALL_RIGHTS, NULL);
			pair_settle(&p, 5);
			pair_close(&p);
		}
	}
}

/* ---- transfers that wait to be copied directly ----------------------------------------------- */

static uint32_t requests(const struct pair *p)
{
	return pair_of(&p->a)->life.dest->peer->requests;
}

/* A link stands, and one message is under way that nothing receives yet. */
static struct hd_mr *behind_a_message(struct pair *p, const char *t)
{
	struct hd_mr *mr;

	qps_open(p, t, RC);
	mr = qp_region(&p->b, memory, sizeof(memory), 0);
	memset(memory, 0, sizeof(memory));
	qp_recv(&p->b, in[0], ROOM, in[0]);
	qp_send(&p->a, out[0], 8, out[0]);
	qp_expect(p, &p->b, in[0], 0);
	qp_expect(p, &p->a, out[0], 0);
	qp_send(&p->a, out[0], 8, out[0]);
	pair_settle(p, 2);
	return mr;
}

static void wait_to_be_copied(void **state)
{
	struct hd_mr *mr;
	struct pair p;

	EACH_TRANSPORT(t)
	{
		uint32_t before;

		mr = behind_a_message(&p, t);
		before = requests(&p);
		for (int i = 1; i < 9; i++)
			qp_rma(&p.a, HD_RMA_WRITE, out[i], MIDDLE, hd_mr_key(mr), memory + i * MIDDLE, out[i],
			       0);
		qp_rma(&p.a, HD_RMA_READ, in[9], MIDDLE, hd_mr_key(mr), memory + 8 * MIDDLE, in[9], 0);
		qp_silence(&p, &p.a, 5);
		for (size_t i = 0; i < sizeof(memory); i++)
			assert_int_equal(memory[i], 0);
		qp_recv(&p.b, in[0], ROOM, in[0]);
		qp_expect(&p, &p.b, in[0], 0);
		qp_expect(&p, &p.a, out[0], 0);
		for (int i = 1; i < 9; i++) {
			qp_expect(&p, &p.a, out[i], 0);
			test_check(memory + i * MIDDLE, MIDDLE, (unsigned)i);
		}
		qp_expect(&p, &p.a, in[9], 0);
		test_check(in[9], MIDDLE, 8);
		assert_int_equal(requests(&p) != before, t[0] == 't');
		hd_mr_close(mr);
		pair_close(&p);
	}
}

/*
 * Of requests that are posted before the other end has heard of us, the first goes by
 * packet, and brings that about.
 */
static void all_but_the_first_of_a_life_are_copied(void **state)
{
	struct hd_mr *mr;
	struct pair p;

	for (int reads = 0; reads < 2; reads++) {
		qps_open(&p, "shm", RC);
		mr = qp_region(&p.b, memory, sizeof(memory), 0);
		for (int i = 0; i < 9; i++)
			qp_rma(&p.a, reads ? HD_RMA_READ : HD_RMA_WRITE, reads ? in[i] : out[i], MIDDLE,
			       hd_mr_key(mr), memory + i * MIDDLE, reads ? in[i] : out[i], 0);
		for (int i = 0; i < 9; i++)
			qp_expect(&p, &p.a, reads ? in[i] : out[i], 0);
		assert_true(requests(&p) <= 1);
		hd_mr_close(mr);
		pair_close(&p);
	}
}

static void the_key_goes_while_they_wait(void **state)
{
	struct hd_mr *mr;
	struct pair p;

	EACH_TRANSPORT(t)
	{
		mr = behind_a_message(&p, t);
		qp_rma(&p.a, HD_RMA_WRITE, out[1], MIDDLE, hd_mr_key(mr), memory, out[1], 0);
		qp_rma(&p.a, HD_RMA_WRITE, out[2], MIDDLE, hd_mr_key(mr), memory, out[2], 0);
		qp_silence(&p, &p.a, 2);
		hd_mr_close(mr);
		qp_recv(&p.b, in[0], ROOM, in[0]);
		qp_expect(&p, &p.a, out[0], 0);
		qp_expect(&p, &p.a, out[1], HD_S_ACCESS);
		qp_expect(&p, &p.a, out[2], HD_S_CANCELLED);
		for (size_t i = 0; i < sizeof(memory); i++)
			assert_int_equal(memory[i], 0);
		pair_close(&p);
	}
}

static void the_target_dies_while_they_wait(void **state)
{
	struct pair p;

	EACH_TRANSPORT(t)
	{
		struct hd_mr *mr = behind_a_message(&p, t);

		qp_rma(&p.a, HD_RMA_WRITE, out[1], MIDDLE, hd_mr_key(mr), memory, out[1], 0);
		qp_rma(&p.a, HD_RMA_READ, in[2], MIDDLE, hd_mr_key(mr), memory, in[2], 0);
		qp_silence(&p, &p.a, 2);
		hd_mr_close(mr);
		side_close(&p.b);
		side_open(&p.b);
		assert_true(pair_next(&p, &p.a).err);
		qp_expect(&p, &p.a, out[1], HD_S_CANCELLED);
		qp_expect(&p, &p.a, in[2], HD_S_CANCELLED);
		pair_close(&p);
	}
}

/* ---- writes ---------------------------------------------------------------------------------- */

/*
 * They come side by side, whether they are long or could go with their request; the last one to the
 * same place is what stays there.
 */
static void writes_come_side_by_side(void **state)
{
	static const size_t lengths[] = { ROOM, MIDDLE - 100 };

	for (int k = 0; k < 2; k++) {
		uint32_t most = 0;
		struct hd_mr *mr;
		struct pair p;

		qps_open(&p, "tcp", RC);
		mr = qp_region(&p.b, memory, sizeof(memory), 0);
		for (int i = 0; i < MANY; i++)
			qp_rma(&p.a, HD_RMA_WRITE, out[i], lengths[k] - (size_t)i % 3 * 20000, hd_mr_key(mr),
			       memory + (size_t)i % 3 * 20000, out[i], 0);
		for (int told = 0; told < MANY;) {
			hd_node_poll(p.a.node);
			hd_node_poll(p.b.node);
			most = hd_qp_inspect(pair_of(&p.b)).coming_in > most
				       ? hd_qp_inspect(pair_of(&p.b)).coming_in
				       : most;
			for (; hd_cq_peek(p.a.cq); told++)
				qp_expect(&p, &p.a, out[told], 0);
		}
		assert_true(most > 2);
		test_check(memory, 20000, MANY - 1);
		assert_int_equal((MANY - 1) % 3, 0);
		assert_int_equal(hd_qp_inspect(pair_of(&p.b)).coming_in, 0);
		assert_false(hd_ep_inspect(p.a.ep).framing);
		hd_mr_close(mr);
		pair_close(&p);
	}
}

/* When the last bytes of one are there, all of those before it are. */
static void writes_are_there_in_order(void **state)
{
	enum {
		COUNT = 4,
		LEN = 200000
	};
	struct hd_mr *mr;
	struct pair p;

	qps_open(&p, "tcp", RC);
	mr = qp_region(&p.b, memory, sizeof(memory), 0);
	memset(memory, 0, sizeof(memory));
	for (int i = 0; i < COUNT; i++) {
		memset(out[i], i + 1, LEN);
		qp_rma(&p.a, HD_RMA_WRITE, out[i], LEN, hd_mr_key(mr), memory + i * LEN, out[i], 0);
	}
	for (int seen = 0; seen < COUNT;) {
		hd_node_poll(p.a.node);
		hd_node_poll(p.b.node);
		for (int i = COUNT - 1; i >= seen; i--)
			if (memory[(i + 1) * LEN - 1]) {
				for (int at = 0; at < (i + 1) * LEN; at++)
					assert_int_equal(memory[at], at / LEN + 1);
				seen = i + 1;
			}
	}
	for (int i = 0; i < COUNT; i++) {
		qp_expect(&p, &p.a, out[i], 0);
		test_fill(out[i], ROOM, (unsigned)i);
	}
	hd_mr_close(mr);
	pair_close(&p);
}

/*
 * A long write that uses up a receive at its end, and a long message behind it: the
 * first receive is the write's.
 */
static void a_message_waits_behind_a_write_that_tells(void **state)
{
	struct hd_mr *mr;
	struct pair p;

	EACH_TRANSPORT(t)
	{
		qps_open(&p, t, RC);
		mr = qp_region(&p.b, memory, sizeof(memory), 0);
		qp_recv(&p.b, in[0], ROOM, in[0]);
		qp_recv(&p.b, in[1], ROOM, in[1]);
		qp_rma(&p.a, HD_RMA_WRITE, out[0], ROOM, hd_mr_key(mr), memory, out[0], HD_SEND_IMM);
		qp_send(&p.a, out[1], ROOM, out[1]);
		assert_true(qp_expect(&p, &p.b, in[0], 0).flags & HD_C_IMM);
		qp_expect(&p, &p.b, in[1], 0);
		test_check(memory, ROOM, 0);
		test_check(in[1], ROOM, 1);
		qp_expect(&p, &p.a, out[0], 0);
		qp_expect(&p, &p.a, out[1], 0);
		hd_mr_close(mr);
		pair_close(&p);
	}
}

/*
 * The region of the second of three closes: its memory stays as it is, and nothing
 * behind it is written well.
 */
static void a_region_closes_while_writes_come(void **state)
{
	struct hd_mr *mr[2];
	struct pair p;

	qps_open(&p, "tcp", RC);
	mr[0] = qp_region(&p.b, in[0], ROOM, 0);
	mr[1] = qp_region(&p.b, in[1], ROOM, 0);
	for (int i = 0; i < 3; i++)
		qp_rma(&p.a, HD_RMA_WRITE, out[i], ROOM, hd_mr_key(mr[i == 1]), in[i == 1], out[i], 0);
	while (hd_qp_inspect(pair_of(&p.b)).coming_in < 3) {
		hd_node_poll(p.a.node);
		hd_node_poll(p.b.node);
	}
	hd_node_lock(p.b.node);
	assert_int_equal(hd_mr_close(mr[1]), 0);
	hd_node_unlock(p.b.node);
	memset(in[1], 0x55, ROOM);
	qp_expect(&p, &p.a, out[0], 0);
	qp_expect(&p, &p.a, out[1], HD_S_ACCESS);
	assert_int_not_equal(pair_next(&p, &p.a).err, 0);
	pair_settle(&p, 2);
	for (size_t i = 0; i < ROOM; i++)
		assert_int_equal(in[1][i], 0x55);
	assert_int_equal(hd_qp_inspect(pair_of(&p.b)).coming_in, 0);
	hd_node_lock(p.b.node);
	hd_mr_close(mr[0]);
	hd_node_unlock(p.b.node);
	pair_close(&p);
}

/* One that is not allowed fails its sender, but not before those before it are in. */
static void a_write_that_is_refused_waits_for_those_before_it(void **state)
{
	struct hd_mr *mr;
	struct pair p;

	qps_open(&p, "tcp", RC);
	mr = qp_region(&p.b, memory, ROOM, 0);
	for (int i = 0; i < 3; i++)
		qp_rma(&p.a, HD_RMA_WRITE, out[i], ROOM, hd_mr_key(mr), memory + (i == 2), out[i], 0);
	for (int i = 0; i < 3; i++)
		qp_expect(&p, &p.a, out[i], i < 2 ? 0 : HD_S_RANGE);
	test_check(memory, ROOM, 1);
	hd_mr_close(mr);
	pair_close(&p);
}

static void write_and_turn(struct pair *p, struct hd_mr **mr, int turns)
{
	qps_open(p, "tcp", RC);
	*mr = qp_region(&p->b, memory, sizeof(memory), 0);
	for (int i = 0; i < 9; i++)
		qp_rma(&p->a, HD_RMA_WRITE, out[i], ROOM, hd_mr_key(*mr), memory, out[i], 0);
	for (int i = 0; i < turns * 4; i++) {
		hd_node_poll(p->a.node);
		hd_node_poll(p->b.node);
	}
}

/*
 * Either end fails, resets or goes while they come: all of them end, once and in order, and
 * nothing of them is left.
 */
static void either_end_goes_while_writes_come(void **state)
{
	for (int turns = 0; turns < 12; turns++) {
		struct hd_mr *mr;
		struct pair p;

		write_and_turn(&p, &mr, turns);
		if (turns % 4 == 0)
			hd_ep_fail(p.b.ep);
		else if (turns % 4 == 1)
			hd_ep_fail(p.a.ep);
		else if (turns % 4 == 2)
			hd_ep_reset(p.b.ep);
		if (turns % 4 < 2)
			for (int i = 0; i < 9; i++)
				assert_ptr_equal(pair_next(&p, &p.a).ctx, out[i]);
		pair_settle(&p, 5);
		assert_true(turns % 4 == 3 || hd_qp_inspect(pair_of(&p.b)).coming_in == 0);
		hd_node_lock(p.b.node);
		hd_mr_close(mr);
		hd_node_unlock(p.b.node);
		if (turns % 4 == 3) {
			side_close(&p.a);
			side_open(&p.a);
		}
		pair_close(&p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(complete_in_order),
		cmocka_unit_test(come_side_by_side),
		cmocka_unit_test(a_region_closes),
		cmocka_unit_test(middling_ones_come_side_by_side),
		cmocka_unit_test(a_failure_waits_for_those_before_it),
		cmocka_unit_test(fail_while_they_come),
		cmocka_unit_test(the_other_end_goes_while_they_come),
		cmocka_unit_test(reset_and_close_while_they_come),
		cmocka_unit_test(wait_to_be_copied),
		cmocka_unit_test(all_but_the_first_of_a_life_are_copied),
		cmocka_unit_test(writes_come_side_by_side),
		cmocka_unit_test(writes_are_there_in_order),
		cmocka_unit_test(a_message_waits_behind_a_write_that_tells),
		cmocka_unit_test(a_region_closes_while_writes_come),
		cmocka_unit_test(a_write_that_is_refused_waits_for_those_before_it),
		cmocka_unit_test(either_end_goes_while_writes_come),
		cmocka_unit_test(the_key_goes_while_they_wait),
		cmocka_unit_test(the_target_dies_while_they_wait),
	};

	return cmocka_run_group_tests(tests, buffers_make, buffers_free);
}
