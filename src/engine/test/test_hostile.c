/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
#include "engine/test/test_hostile.h"

#include "base/log.h"
#include "engine/test/test_wire.h"

#include "transport/tcp/frame.h"

#include <stdlib.h>
#include <string.h>

unsigned log_lines;
char log_last_line[HD_LOG_MAX];

static bool count_line(void *arg, enum hd_log_level level, const char *room, const char *message)
{
	if (level <= HD_LOG_WARN) {
		log_lines++;
		strcpy(log_last_line, message);
	}
	return true;
}

void listen_to_the_log(bool on)
{
	log_lines = 0;
	hd_log_set_sink(on ? count_line : NULL, NULL);
}

void serves(struct side *s)
{
	struct wire *w = malloc(sizeof(*w));
	struct hd_pkt pkt;
	char in[8];

	wire_greet(w, s);
	side_post(s, in, sizeof(in), 4711, 0, NULL, in);
	pkt = wire_eager(w, 4711, HD_PKT_F_ACK);
	wire_say(w, &pkt, "hello", 6);
	wire_hear_kind(w, HD_PKT_ACK);
	assert_int_equal(hd_cq_peek(s->cq)->err, 0);
	assert_string_equal(in, "hello");
	hd_cq_pop(s->cq);
	wire_hang_up(w);
	free(w);
}

void until_alone(struct side *s)
{
	uint64_t end = hd_now_ns() + PATIENCE;

	while (hd_links_inspect(s->node).links) {
		hd_node_poll(s->node);
		assert_true(hd_now_ns() < end);
	}
	assert_null(hd_links(s->node)->peers);
}
