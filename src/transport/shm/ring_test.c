/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* The ring alone, both ends in one thread. */
#include "transport/shm/ring.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#define MOST (128u << 10)

struct both {
	struct hd_shm_mem *mem;
	struct hd_shm_tx tx;
	struct hd_shm_rx rx;
};

/* The counters begin where the test wants them, as if so many packets had passed before. */
static void both_open(struct both *b, uint32_t slots, uint32_t bulk)
{
	b->mem = aligned_alloc(4096, sizeof(*b->mem));
	assert_non_null(b->mem);
	memset(b->mem, 0, sizeof(*b->mem));
	b->tx = (struct hd_shm_tx){
		.slot = b->mem->slot[0],
		.bulk = b->mem->bulk[0],
		.reader = &b->mem->side[1],
		.head = slots,
		.limit = slots + HD_SHM_SLOTS,
		.bulk_head = bulk,
		.bulk_read = bulk,
	};
	b->rx = (struct hd_shm_rx){
		.slot = b->mem->slot[0],
		.bulk = b->mem->bulk[0],
		.own = &b->mem->side[1],
		.tail = slots,
		.told = slots,
		.bulk_tail = bulk,
		.bulk_told = bulk,
	};
	atomic_store(&b->mem->side[1].read, (uint64_t)bulk << 32 | slots);
}

static void both_close(struct both *b)
{
	free(b->mem);
}

static uint8_t content(uint32_t number, uint32_t at)
{
	return (uint8_t)(number * 31 + at * 7 + (at >> 8));
}

static bool put_small(struct both *b, uint64_t tag)
{
	struct hd_shm_slot *slot = hd_shm_tx_slot(&b->tx);

	if (b->tx.head == b->tx.limit && (!hd_shm_tx_look(&b->tx) || b->tx.head == b->tx.limit))
		return false;
	slot->len = 0;
	slot->pkt = (struct hd_pkt){ .tag = tag };
	hd_shm_tx_publish(&b->tx, slot);
	return true;
}

static int put_long(struct both *b, uint32_t number, uint32_t len)
{
	static uint8_t payload[MOST];
	struct iovec iov[2] = { { payload, len / 3 }, { payload + len / 3, len - len / 3 } };
	struct hd_shm_from from = { .iov = iov };
	int err = hd_shm_tx_room(&b->tx, len);

	if (err)
		return err;
	for (uint32_t i = 0; i < len; i++)
		payload[i] = content(number, i);
	hd_shm_tx_pieces(&b->tx, &(struct hd_pkt){ .tag = number }, &from, len);
	return 0;
}

/*
 * Take one slot and check it against what put_long has written. Returns
 * whether a packet is complete.
 */
static bool take_piece(struct both *b, uint32_t number)
{
	struct hd_shm_slot *slot = hd_shm_rx_slot(&b->rx);
	uint32_t before = b->rx.left ? b->rx.total - b->rx.left : 0, n = 0;
	const uint8_t *data;
	bool first;

	assert_non_null(slot);
	data = hd_shm_rx_piece(&b->rx, slot->len, MOST, &first, &n);
	assert_non_null(data);
	assert_int_equal(first, before == 0);
	if (first)
		assert_int_equal(slot->pkt.tag, number);
	assert_true(data >= b->mem->bulk[0] && data + n <= b->mem->bulk[0] + HD_SHM_BULK);
	for (uint32_t i = 0; i < n; i++)
		assert_int_equal(data[i], content(number, before + i));
	return !b->rx.left;
}

/* ---- slots ---- */

static void a_slot_is_seen_once_it_is_published(void **state)
{
	struct both b;

	both_open(&b, 0, 0);
	assert_null(hd_shm_rx_slot(&b.rx));
	hd_shm_tx_slot(&b.tx)->len = 5;
	assert_null(hd_shm_rx_slot(&b.rx));
	assert_true(put_small(&b, 42));
	assert_non_null(hd_shm_rx_slot(&b.rx));
	b.rx.tail++;
	assert_null(hd_shm_rx_slot(&b.rx));
	both_close(&b);
}

static void fill_and_empty(struct both *b)
{
	uint64_t put = 0, got = 0;

	for (int lap = 0; lap < 5; lap++) {
		while (put_small(b, put))
			put++;
		assert_int_equal(put - got, HD_SHM_SLOTS - (b->rx.tail - b->rx.told));
		for (struct hd_shm_slot *slot; (slot = hd_shm_rx_slot(&b->rx)); got++) {
			assert_int_equal(slot->pkt.tag, got);
			b->rx.tail++;
			hd_shm_rx_tell(&b->rx);
		}
		assert_int_equal(put, got);
		assert_in_range(b->rx.tail - b->rx.told, 0, HD_SHM_SLOTS / 8 - 1);
	}
}

static void a_full_ring_takes_no_more_and_goes_on_when_read(void **state)
{
	static const uint32_t starts[] = {
		0, 1, HD_SHM_SLOTS - 1, UINT32_MAX - 2000, UINT32_MAX - 1, UINT32_MAX,
	};

	for (unsigned i = 0; i < sizeof(starts) / sizeof(starts[0]); i++) {
		struct both b;

		both_open(&b, starts[i], 0);
		fill_and_empty(&b);
		both_close(&b);
	}
}

/* ---- payloads in pieces ---- */

static void long_payloads_cross_the_ends_of_ring_and_counters(void **state)
{
	static const uint32_t starts[] = { 0, HD_SHM_BULK - 64, UINT32_MAX - 63,
					   UINT32_MAX - 3 * HD_SHM_BULK + 1 };
	uint32_t random = 1;

	for (unsigned i = 0; i < sizeof(starts) / sizeof(starts[0]); i++) {
		struct both b;

		both_open(&b, UINT32_MAX - 100, starts[i]);
		for (uint32_t number = 0; number < 400; number++) {
			uint32_t len;

			random = random * 1664525 + 1013904223;
			len = HD_SHM_INLINE + 1 + (random >> 8) % (number % 4 ? 9000 : MOST - HD_SHM_INLINE);
			assert_int_equal(put_long(&b, number, len), 0);
			while (!take_piece(&b, number))
				;
			hd_shm_rx_tell(&b.rx);
		}
		assert_int_equal(b.tx.bulk_head, b.rx.bulk_tail);
		both_close(&b);
	}
}

static void what_has_room_is_always_readable(void **state)
{
	struct both b;
	uint32_t put = 0, got = 0;

	both_open(&b, 0, 0);
	for (int lap = 0; lap < 40; lap++) {
		uint32_t len = 1000 + 3777 * (uint32_t)lap % MOST;
		int err;

		while ((err = put_long(&b, put, len)) == 0)
			put++;
		assert_int_equal(err, -EAGAIN);
		assert_in_range(put - got, 1, HD_SHM_SLOTS);
		while (got < put)
			got += take_piece(&b, got);
		hd_shm_rx_tell(&b.rx);
		assert_null(hd_shm_rx_slot(&b.rx));
	}
	both_close(&b);
}

/*
 * The longest packet must fit whenever the ring is empty, whatever the consumer has not told yet.
 */
static void the_longest_packet_fits_in_an_empty_ring(void **state)
{
	struct both b;

	both_open(&b, 0, 0);
	for (uint32_t number = 0; number < 3000; number++) {
		assert_int_equal(put_long(&b, number, number % 3 ? 64 * (number % 511) + 25 : MOST), 0);
		while (!take_piece(&b, number))
			;
		hd_shm_rx_tell(&b.rx);
	}
	both_close(&b);
}

/* ---- what the other side must not say ---- */

static void impossible_lengths_are_refused(void **state)
{
	static const uint32_t lengths[] = { MOST + 1, UINT32_MAX, HD_SHM_MORE | 100, 0x7fffffff };
	bool first;
	uint32_t n;

	for (unsigned i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		struct both b;

		both_open(&b, 0, 0);
		assert_null(hd_shm_rx_piece(&b.rx, lengths[i], MOST, &first, &n));
		both_close(&b);
	}
}

static void a_piece_that_does_not_continue_its_packet_is_refused(void **state)
{
	static const uint32_t lengths[] = { 0,
					    30,
					    20000 - HD_SHM_PIECE,
					    HD_SHM_MORE | 20000,
					    HD_SHM_MORE | (20000 - HD_SHM_PIECE + 1),
					    HD_SHM_MORE };
	bool first;
	uint32_t n;

	for (unsigned i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		struct both b;

		both_open(&b, 0, 0);
		assert_non_null(hd_shm_rx_piece(&b.rx, 20000, MOST, &first, &n));
		assert_null(hd_shm_rx_piece(&b.rx, lengths[i], MOST, &first, &n));
		both_close(&b);
	}
}

static void more_than_the_ring_holds_is_refused(void **state)
{
	struct both b;
	uint32_t n, sum = 0;
	bool first;

	both_open(&b, 0, 0);
	while (hd_shm_rx_piece(&b.rx, HD_SHM_PIECE, MOST, &first, &n))
		sum += n;
	assert_int_equal(sum, HD_SHM_BULK);
	both_close(&b);
}

static void impossible_read_positions_are_refused(void **state)
{
	static const struct {
		uint32_t slots, bulk;
		bool fine;
	} cases[] = {
		{ 0, 0, true },
		{ 100, 6400, true },
		{ 50, 128, true },
		{ 101, 0, false },
		{ 0, 6401, false },
		{ UINT32_MAX, 0, true },
		{ 100 - HD_SHM_SLOTS, 0, true },
		{ 99 - HD_SHM_SLOTS, 0, false },
		{ 0, 6399 - HD_SHM_BULK, false },
	};

	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct both b;

		both_open(&b, 0, 0);
		b.tx.head = 100;
		b.tx.bulk_head = 6400;
		atomic_store(&b.mem->side[1].read, (uint64_t)cases[i].bulk << 32 | cases[i].slots);
		assert_int_equal(hd_shm_tx_look(&b.tx), cases[i].fine);
		both_close(&b);
	}
}

/* ---- how far away the reader is ---- */

/* Whichever way payloads are written, the reader finds them; segments begin where they like. */
static void payloads_written_past_the_cache_arrive(void **state)
{
	struct both b;

	both_open(&b, 0, 0);
	for (uint32_t far = 0; far <= HD_SHM_FAR_MAX; far++)
		for (uint32_t len = 25; len < 3 * HD_SHM_PIECE; len += 997) {
			b.tx.far = far;
			assert_int_equal(put_long(&b, len, len), 0);
			while (!take_piece(&b, len))
				;
			hd_shm_rx_tell(&b.rx);
		}
	both_close(&b);
}

static void where_the_reader_is_decides_what_goes_past_the_cache(void **state)
{
	struct both b;

	both_open(&b, 0, 0);
	hd_shm_tx_answered(&b.tx);
	b.tx.far = 0;
	assert_false(hd_shm_tx_past(&b.tx, HD_SHM_PIECE - 1));
	assert_true(hd_shm_tx_past(&b.tx, HD_SHM_PIECE));
	b.tx.head += HD_SHM_ROW + 1; /* a stream */
	assert_false(hd_shm_tx_past(&b.tx, HD_SHM_PIECE / 2 - 1));
	assert_true(hd_shm_tx_past(&b.tx, HD_SHM_PIECE / 2));
	b.tx.far = HD_SHM_FAR_MAX;
	assert_false(hd_shm_tx_past(&b.tx, HD_COPY_WIDE - 1));
	assert_true(hd_shm_tx_past(&b.tx, HD_COPY_WIDE));
	both_close(&b);
}

/*
 * Our own cache has the line all the time. Who is called away by the kernel now and
 * then is not far for that.
 */
static void a_line_at_hand_says_nothing(void **state)
{
	uint32_t told = 0;
	struct both b;

	both_open(&b, 0, 0);
	for (int i = 0; i < 10000; i++) {
		b.tx.far = i % 2 ? HD_SHM_FAR_MAX : 0;
		hd_shm_tx_look(&b.tx);
		told += b.tx.far != (i % 2 ? HD_SHM_FAR_MAX : 0);
	}
	assert_in_range(told, 0, 2000);
	both_close(&b);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_slot_is_seen_once_it_is_published),
		cmocka_unit_test(a_full_ring_takes_no_more_and_goes_on_when_read),
		cmocka_unit_test(long_payloads_cross_the_ends_of_ring_and_counters),
		cmocka_unit_test(what_has_room_is_always_readable),
		cmocka_unit_test(the_longest_packet_fits_in_an_empty_ring),
		cmocka_unit_test(impossible_lengths_are_refused),
		cmocka_unit_test(a_piece_that_does_not_continue_its_packet_is_refused),
		cmocka_unit_test(more_than_the_ring_holds_is_refused),
		cmocka_unit_test(impossible_read_positions_are_refused),
		cmocka_unit_test(payloads_written_past_the_cache_arrive),
		cmocka_unit_test(where_the_reader_is_decides_what_goes_past_the_cache),
		cmocka_unit_test(a_line_at_hand_says_nothing),
	};

	return cmocka_run_group_tests_name("shm_ring", tests, NULL, NULL);
}
