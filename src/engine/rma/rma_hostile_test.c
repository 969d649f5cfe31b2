/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * A peer whose requests of one-sided operations are not what they say: it is cut off
 * before a byte is touched.
 */
#include "engine/rma/rma.h"
#include "engine/test/test_hostile.h"

#include <stdlib.h>
#include <string.h>

#define KEY 77
#define ROOM 64

/* A WRITE to one segment of this length, which brings so many bytes. */
static bool write_is_taken(uint64_t says, uint32_t brings)
{
	unsigned char mem[ROOM], body[sizeof(struct hd_rma) + sizeof(struct hd_rma_seg) + 2 * ROOM];
	const struct hd_rma head = { .count = 1 };
	const struct hd_rma_seg seg = { .addr = 0, .len = says, .key = KEY };
	const uint32_t list = sizeof(head) + sizeof(seg);
	struct wire *w = malloc(sizeof(*w));
	struct hd_pkt pkt;
	struct hd_mr *mr;
	struct side s;
	bool taken;

	memset(mem, 2, sizeof(mem));
	side_open(&s);
	s.ep->policy |= HD_EP_REMOTE_WRITE;
	mr = side_region(&s, KEY, mem, sizeof(mem), HD_ACCESS_REMOTE_WRITE, 0);
	wire_greet(w, &s);
	pkt = wire_eager(w, 0, 0);
	pkt.kind = HD_PKT_WRITE;
	pkt.flags = 0;
	memset(body, 1, sizeof(body));
	memcpy(body, &head, sizeof(head));
	memcpy(body + sizeof(head), &seg, sizeof(seg));
	log_lines = 0;
	wire_say(w, &pkt, body, list + brings);
	if (says == brings) {
		wire_hear_kind(w, HD_PKT_FIN);
		assert_int_equal(w->pkt.imm, 0);
	} else {
		wire_gone(w);
		assert_int_equal(log_lines, 1);
	}
	taken = mem[0] == 1;
	for (uint64_t i = 0; i < ROOM; i++)
		assert_int_equal(mem[i], taken && i < says ? 1 : 2);
	wire_hang_up(w);
	hd_mr_close(mr);
	side_close(&s);
	free(w);
	return taken;
}

static void a_write_brings_what_it_says(void **state)
{
	listen_to_the_log(true);
	assert_true(write_is_taken(ROOM, ROOM));
	for (uint32_t len = 1; len <= 9; len++)
		assert_true(write_is_taken(len, len));
	assert_false(write_is_taken(ROOM, 8));
	assert_false(write_is_taken(8, ROOM));
	assert_false(write_is_taken(ROOM, ROOM + 1));
	listen_to_the_log(false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_write_brings_what_it_says),
	};

	setenv("HEDDLE_TRANSPORT", "tcp", 1);
	return cmocka_run_group_tests_name("rma_hostile", tests, NULL, NULL);
}
