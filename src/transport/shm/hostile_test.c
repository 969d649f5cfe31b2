/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* A peer that writes into the shared memory, or says on the socket, what no engine would. */
#include "base/clock.h"
#include "base/config.h"
#include "transport/shm_duo.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>

/* Node 1 has been hit by what node 0 has written, and goes on living. */
static void hit(struct duo *d, struct rig_end *victim)
{
	duo_turns(d, 3);
	assert_true(victim->was_down);
	assert_int_equal(victim->err, -EPROTO);
	duo_turns(d, 10);
	assert_true(d->end[0]->closed && d->end[1]->closed);
	d->node[0]->complaint[0] = d->node[1]->complaint[0] = '\0';
	duo_join(d);
	duo_close(d);
}

static void publish(struct hd_shm_link *l, uint32_t len, uint8_t kind)
{
	struct hd_shm_slot *slot = hd_shm_tx_slot(&l->tx);

	slot->len = len;
	slot->pkt = (struct hd_pkt){ .kind = kind };
	hd_shm_tx_publish(&l->tx, slot);
}

static void impossible_lengths_end_the_link(void **state)
{
	static const uint32_t lengths[] = { HD_FRAME_MAX + 1, INT32_MAX, UINT32_MAX, HD_SHM_MORE,
					    HD_SHM_MORE | 30 };

	for (unsigned i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		struct duo d;

		duo_open(&d);
		publish(d.link[0], lengths[i], HD_PKT_EAGER);
		hit(&d, d.end[1]);
	}
}

static void kinds_that_nobody_sends_end_the_link(void **state)
{
	static const uint8_t kinds[] = { HD_SHM_PKT_FENCE + 1, 0xff };

	for (unsigned i = 0; i < sizeof(kinds); i++)
		for (uint32_t len = 0; len < 20000; len = len * 19 + 1) {
			struct duo d;

			duo_open(&d);
			publish(d.link[0], len, kinds[i]);
			hit(&d, d.end[1]);
		}
}

static void impossible_read_positions_end_the_link(void **state)
{
	struct hd_pkt pkt = { .kind = HD_PKT_EAGER };
	struct duo d;

	for (int bulk = 0; bulk < 2; bulk++) {
		static uint8_t payload[100000];
		int rc = 0;

		duo_open(&d);
		atomic_store(&d.link[1]->own->read, bulk ? UINT64_C(1) << 63 : 7000);
		for (int i = 0; i < 2000 && !rc; i++)
			rc = d.link[0]->base.ops->send(&d.link[0]->base, &pkt, payload,
						       bulk ? sizeof(payload) : 8);
		assert_int_equal(rc, -ENOTCONN);
		assert_true(d.end[0]->was_down);
		hit(&d, d.end[0]);
	}
}

static void garbage_on_the_socket_ends_the_link(void **state)
{
	struct duo d;

	duo_open(&d);
	assert_int_equal(send(d.link[0]->sock.fd, "hello", 5, 0), 5);
	hit(&d, d.end[1]);
}

/* Whatever a peer writes into the memory: the victim lives on, and its other links too. */
static void random_memory_does_no_harm(void **state)
{
	uint64_t random = hd_now_ns();

	print_message("# seed %#llx\n", (unsigned long long)random);
	for (int round = 0; round < 60; round++) {
		struct rig_plan plan = { .packets = 200, .most = 3000, .how = RIG_SEND | RIG_PUT };
		struct duo d;
		uint8_t *mem;

		duo_open(&d);
		mem = (uint8_t *)d.link[0]->mem;
		d.end[0]->plan = plan;
		for (int i = 0; i < 30; i++) {
			size_t at =
				rig_between(&random, 0, round % 3 ? sizeof(struct hd_shm_mem) - 9 : 0x1000);

			if (round % 3 == 1)
				at = offsetof(struct hd_shm_mem, slot) +
				     at % sizeof(d.link[0]->mem->slot[0]) / 64 * 64 + at % 8;
			rig_fill(mem + at, 0, rig_between(&random, 1, 8), random);
			duo_turns(&d, 1);
			if (d.end[0]->closed || d.end[1]->closed)
				break;
		}
		d.node[0]->complaint[0] = d.node[1]->complaint[0] = '\0';
		rig_end_close(d.end[0], -ECONNABORTED);
		duo_turns(&d, 300);
		assert_true(d.end[0]->closed && d.end[1]->closed);
		d.node[0]->complaint[0] = d.node[1]->complaint[0] = '\0';
		duo_join(&d);
		duo_close(&d);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(impossible_lengths_end_the_link),
		cmocka_unit_test(kinds_that_nobody_sends_end_the_link),
		cmocka_unit_test(impossible_read_positions_end_the_link),
		cmocka_unit_test(garbage_on_the_socket_ends_the_link),
		cmocka_unit_test(random_memory_does_no_harm),
	};

	setenv("HEDDLE_LOG", "error", 0);
	return cmocka_run_group_tests_name("shm_hostile", tests, NULL, NULL);
}
