/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Requests to send that come in a row, and are fetched together. */
#include "base/config.h"
#include "forbid.h"
#include "transport/shm/copy.h"
#include "transport/shm_duo.h"
#include "transport/shm_message.h"

#include <errno.h>
#include <sys/mman.h>

enum {
	ROW = 7
};

/*
 * Node 1 has so many messages to fetch, of so many segments at its end, and sees that the
 * next request waits already.
 */
static void row_make(struct message m[ROW], struct duo *d, size_t len, int segs)
{
	d->end[0]->plan = (struct rig_plan){ .packets = 1, .how = RIG_RTS, .message_most = 100 };
	rig_poll(d->node[0]);
	for (int i = 0; i < ROW; i++) {
		message_make(&m[i], d, len, 1, segs);
		assert_int_equal(message_get(&m[i], d), 0);
		assert_int_equal(m[i].done, 0);
	}
	assert_false(TAILQ_EMPTY(&d->link[1]->copying.row));
	assert_true(TAILQ_EMPTY(&d->link[1]->copying.gets));
}

static void row_free(struct message m[ROW], struct duo *d)
{
	duo_turns(d, 4);
	for (int i = 0; i < ROW; i++)
		message_free(&m[i], d);
}

static void requests_in_a_row_are_fetched_together(void **state)
{
	static const struct {
		size_t len;
		int segs, calls;
	} how[] = { { 8192, 1, 1 }, { HD_SHM_SINGLE, 1, 2 }, { 30000, HD_IOV_MAX, 4 } };
	struct message m[ROW];
	struct duo d;

	duo_open(&d);
	for (unsigned k = 0; k < 3; k++) {
		row_make(m, &d, how[k].len, how[k].segs);
		for (int i = 0; i < how[k].calls; i++) {
			assert_false(m[ROW - 1].done);
			rig_poll(d.node[1]);
		}
		for (int i = 0; i < ROW; i++) {
			assert_int_equal(m[i].done, 1);
			assert_int_equal(m[i].err, 0);
			assert_memory_equal(m[i].sent, m[i].received, how[k].len);
		}
		row_free(m, &d);
		assert_true(TAILQ_EMPTY(&d.link[1]->copying.row));
		assert_int_equal(d.link[1]->copying.row_bytes, 0);
		assert_int_equal(d.link[1]->portion, HD_SHM_PORTION);
	}
	duo_close(&d);
}

/*
 * What is wrong with one of them is its own affair: its memory is not there, it is
 * withdrawn, it is given up.
 */
static void others_of_a_row_arrive(void **state)
{
	enum {
		HOLE,
		WITHDRAWN,
		GIVEN_UP,
		KINDS
	};
	uint8_t *hole = mmap(NULL, 40000, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct message m[ROW];
	struct duo d;

	duo_open(&d);
	for (int kind = 0; kind < KINDS; kind++)
		for (int which = 0; which < ROW; which++) {
			row_make(m, &d, 40000, 1);
			if (kind == HOLE)
				m[which].to[0].iov_base = hole;
			else if (kind == WITHDRAWN)
				d.link[0]->base.ops->unoffer(&d.link[0]->base, &m[which].offer);
			else
				d.link[1]->base.ops->unget(&d.link[1]->base, &m[which].get, true);
			m[which].blob_len = kind == WITHDRAWN ? 0 : m[which].blob_len;
			duo_turns(&d, 20);
			for (int i = 0; i < ROW; i++) {
				assert_int_equal(m[i].done, i != which || kind != GIVEN_UP);
				assert_int_equal(m[i].err != 0, i == which && kind != GIVEN_UP);
				assert_true(i == which || !memcmp(m[i].sent, m[i].received, 40000));
			}
			for (int i = 0; kind == GIVEN_UP && i < 40000; i++)
				assert_int_equal(m[which].received[i], 0);
			row_free(m, &d);
		}
	duo_close(&d);
	munmap(hole, 40000);
}

/* A link that ends takes its row with it. */
static void a_row_goes_with_its_link(void **state)
{
	struct message m[ROW];
	struct duo d;

	duo_open(&d);
	row_make(m, &d, 40000, 1);
	hd_shm_link_fail(d.link[1], -ECONNRESET, "a test");
	duo_turns(&d, 4);
	for (int i = 0; i < ROW; i++) {
		assert_int_equal(m[i].done, 0);
		m[i].blob_len = 0;
		message_free(&m[i], &d);
	}
	duo_close(&d);
}

/*
 * But what had been sent behind it is delivered before, although it was kept waiting for the row.
 */
static void what_waits_behind_a_row_is_delivered_at_the_end(void **state)
{
	struct message m[ROW];
	struct duo d;

	duo_open(&d);
	row_make(m, &d, HD_SHM_SINGLE, 1);
	assert_int_equal(d.link[1]->portion, 0);
	d.end[0]->plan = (struct rig_plan){ .packets = 3, .how = RIG_SEND, .most = 8, .may_fail = true };
	rig_poll(d.node[0]);
	hd_shm_link_end(d.link[1], -ECONNRESET, "a test");
	for (int i = 0; i < 10; i++)
		rig_poll(d.node[1]);
	assert_true(d.end[1]->was_down);
	assert_int_equal(d.end[1]->rx, d.end[0]->tx);
	duo_turns(&d, 4);
	for (int i = 0; i < ROW; i++) {
		m[i].blob_len = 0;
		message_free(&m[i], &d);
	}
	duo_close(&d);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(requests_in_a_row_are_fetched_together),
		cmocka_unit_test(others_of_a_row_arrive),
		cmocka_unit_test(a_row_goes_with_its_link),
		cmocka_unit_test(what_waits_behind_a_row_is_delivered_at_the_end),
	};

	return cmocka_run_group_tests_name("shm_row", tests, NULL, NULL);
}
