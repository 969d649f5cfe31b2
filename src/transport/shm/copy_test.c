/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Long messages that both ends may copy: every length and shape, who copies
 * what, how many at a time.
 */
#include "base/config.h"
#include "forbid.h"
#include "transport/shm/copy.h"
#include "transport/shm_duo.h"
#include "transport/shm_message.h"

/* ---- both sides may copy ---- */

static void every_length_in_any_number_of_segments(void **state)
{
	static const int segments[] = { 1, 2, 5, 6, HD_IOV_MAX };
	struct duo d;

	duo_open(&d);
	for (unsigned i = 0; i < SIZES; i++)
		for (unsigned from = 0; from < 5; from++)
			for (unsigned to = 0; to < 5; to++)
				assert_true(transfer(&d, sizes[i], segments[from], segments[to]));
	duo_close(&d);
}

/* Where the next packet waits already, and the message is not too long for that. */
static void one_end_copies_where_many_come(void **state)
{
	static const size_t lens[] = { HD_SHM_CHUNK_ONE + 1, 48u << 10, HD_SHM_SINGLE, HD_SHM_SINGLE + 1 };
	struct duo d;

	duo_open(&d);
	for (int i = 0; i < 4; i++)
		for (int waits = 0; waits < 2; waits++) {
			struct message m;

			message_make(&m, &d, lens[i], 2, 3);
			d.end[0]->plan = (struct rig_plan){
				.packets = (uint32_t)waits, .most = 8, .least = 8, .how = RIG_SEND
			};
			rig_poll(d.node[0]);
			assert_int_equal(message_get(&m, &d), 0);
			assert_int_equal(m.done, waits && i < 3);
			while (!m.done)
				duo_turns(&d, 1);
			assert_int_equal(m.err, 0);
			assert_memory_equal(m.sent, m.received, lens[i]);
			duo_turns(&d, 2);
			message_free(&m, &d);
		}
	duo_close(&d);
}

/* ---- a row of requests ---- */

static void both_ends_copy(void **state)
{
	struct message m;
	struct duo d;

	duo_open(&d);
	message_make(&m, &d, BIG, 1, 1);
	assert_int_equal(message_get(&m, &d), 0);
	rig_poll(d.node[0]); /* HELP comes, and the last chunk is written */
	assert_false(TAILQ_EMPTY(&d.link[0]->copying.helps));
	assert_int_equal(TAILQ_FIRST(&d.link[0]->copying.helps)->helped, 1);
	assert_true(rig_same(m.received + LAST_CHUNK, LAST_CHUNK, BIG - LAST_CHUNK, 77));
	assert_false(rig_same(m.received, 0, hd_shm_chunk(BIG), 77));
	rig_poll(d.node[1]); /* and the first one is read */
	assert_true(rig_same(m.received, 0, hd_shm_chunk(BIG), 77));
	while (!m.done)
		duo_turns(&d, 1);
	assert_int_equal(m.err, 0);
	assert_memory_equal(m.sent, m.received, BIG);
	message_free(&m, &d);
	duo_close(&d);
}

/* Its own half of all messages comes before the other half of the first. */
static void each_end_begins_with_its_own_half(void **state)
{
	const uint32_t chunks = (uint32_t)hd_shm_chunks(BIG);
	struct hd_shm_help *h;
	struct message m[2];
	struct duo d;

	duo_open(&d);
	for (int i = 0; i < 2; i++) {
		message_make(&m[i], &d, BIG, 1, 1);
		assert_int_equal(message_get(&m[i], &d), 0);
	}
	for (uint32_t i = 0; i < chunks; i++)
		rig_poll(d.node[0]);
	h = TAILQ_FIRST(&d.link[0]->copying.helps);
	assert_int_equal(h->helped, chunks / 2);
	assert_int_equal(TAILQ_NEXT(h, entry)->helped, chunks / 2);
	rig_poll(d.node[0]); /* but then it does what is left */
	assert_int_equal(h->helped, chunks / 2 + 1);
	while (!m[0].done || !m[1].done)
		rig_poll(d.node[1]);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(m[i].err, 0);
		assert_memory_equal(m[i].sent, m[i].received, BIG);
		message_free(&m[i], &d);
	}
	duo_close(&d);
}

/*
 * Both may write the claim: a helper that counts it down has the receiver copy
 * everything, and nothing beyond.
 */
static void a_claim_that_goes_back_does_no_harm(void **state)
{
	struct message m;
	struct duo d;

	duo_open(&d);
	message_make(&m, &d, BIG, 1, 1);
	assert_int_equal(message_get(&m, &d), 0);
	for (uint64_t i = 0; i < hd_shm_chunks(BIG) && !m.done; i++) {
		atomic_store(&d.link[1]->copying.ours[0].claim, hd_shm_tagged(d.link[1]->copying.gen[0], 0));
		rig_poll(d.node[1]);
	}
	assert_true(m.done);
	assert_int_equal(m.err, 0);
	assert_memory_equal(m.sent, m.received, BIG);
	message_free(&m, &d);
	duo_close(&d);
}

static void either_end_can_do_it_all(void **state)
{
	struct message m;
	struct duo d;

	duo_open(&d);
	for (int alone = 0; alone < 2; alone++) {
		int last = 0;

		message_make(&m, &d, BIG, 2, 3);
		assert_int_equal(message_get(&m, &d), 0);
		for (; last < 200 && !m.done; last++)
			rig_poll(d.node[last < 100 ? alone : 1]);
		assert_int_equal(m.done, 1);
		assert_memory_equal(m.sent, m.received, BIG);
		duo_turns(&d, 5);
		message_free(&m, &d);
	}
	duo_close(&d);
}

static void more_messages_than_copies(void **state)
{
	enum {
		MESSAGES = 3 * HD_SHM_COPIES
	};
	static struct message m[MESSAGES];
	struct duo d;

	duo_open(&d);
	for (int i = 0; i < MESSAGES; i++) {
		message_make(&m[i], &d, 200000, 1 + i % 7, 1 + i % 3);
		assert_int_equal(message_get(&m[i], &d), 0);
	}
	duo_turns(&d, MESSAGES * 6);
	for (int i = 0; i < MESSAGES; i++) {
		assert_int_equal(m[i].done, 1);
		assert_int_equal(m[i].err, 0);
		assert_memory_equal(m[i].sent, m[i].received, m[i].len);
		message_free(&m[i], &d);
	}
	assert_int_equal(d.link[1]->copying.used, 0);
	duo_close(&d);
}

static void offers_are_bounded_and_come_back(void **state)
{
	static struct message m[HD_SHM_OFFERS + 10];
	int made = 0;
	struct duo d;

	duo_open(&d);
	for (int round = 0; round < 3; round++) {
		for (made = 0; made < (int)HD_SHM_OFFERS + 10; made++) {
			message_make(&m[made], &d, 8, 1, 1);
			if (!m[made].blob_len)
				break;
		}
		assert_in_range(made, HD_SHM_OFFERS / 2, HD_SHM_OFFERS);
		assert_true(message_arrives(&m[made - 1], &d));
		for (int i = 0; i <= made; i++)
			message_free(&m[i], &d);
	}
	assert_true(transfer(&d, BIG, 1, 1));
	duo_close(&d);
}

/*
 * One thread sleeps with the node, another posts the receive that begins to fetch:
 * the sleeper has to copy.
 */
static void a_sleeper_is_stirred_to_copy(void **state)
{
	struct message m;
	struct duo d;
	uint64_t n;

	duo_open(&d);
	duo_turns(&d, 20);
	message_make(&m, &d, BIG, 1, 1);
	for (int i = 0; i < 3 && rig_arm(d.node[1]); i++)
		rig_disarm(d.node[1]);
	assert_int_equal(read(d.node[1]->wake_fd, &n, sizeof(n)), -1);
	assert_int_equal(message_get(&m, &d), 0);
	assert_int_equal(read(d.node[1]->wake_fd, &n, sizeof(n)), sizeof(n));
	rig_disarm(d.node[1]);
	for (int i = 0; i < 200 && !m.done; i++)
		duo_turns(&d, 1);
	assert_memory_equal(m.sent, m.received, BIG);
	message_free(&m, &d);
	duo_close(&d);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_length_in_any_number_of_segments),
		cmocka_unit_test(one_end_copies_where_many_come),
		cmocka_unit_test(both_ends_copy),
		cmocka_unit_test(each_end_begins_with_its_own_half),
		cmocka_unit_test(a_claim_that_goes_back_does_no_harm),
		cmocka_unit_test(either_end_can_do_it_all),
		cmocka_unit_test(more_messages_than_copies),
		cmocka_unit_test(offers_are_bounded_and_come_back),
		cmocka_unit_test(a_sleeper_is_stirred_to_copy),
	};

	return cmocka_run_group_tests_name("shm_copy", tests, NULL, NULL);
}
