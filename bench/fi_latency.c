/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Ping-pong, and the check that a message of each size arrives whole before
 * anything of that size is timed.
 */
#include <stdio.h>
#include <string.h>

#include "fi_bench.h"

static unsigned char pattern(size_t i, size_t size, unsigned char salt)
{
	return (unsigned char)(i * 31 + (i >> 8) + size + salt);
}

static void fill(char *buf, size_t size, unsigned char salt)
{
	for (size_t i = 0; i < size; i++)
		buf[i] = (char)pattern(i, size, salt);
}

static void check_filled(const char *buf, size_t size, unsigned char salt)
{
	for (size_t i = 0; i < size; i++)
		if ((unsigned char)buf[i] != pattern(i, size, salt))
			hd_give_up("wrong data: byte %zu of a message of %zu", i, size);
}

static void wait_message(struct hd_side *s, uint64_t target, uint64_t bytes)
{
	while (s->rx_done < target || !hd_side_idle(s))
		hd_side_reap_one(s);
	if (s->rx_bytes != bytes)
		hd_give_up("wrong length: %llu bytes arrived, not %llu", (unsigned long long)s->rx_bytes,
			   (unsigned long long)bytes);
}

void hd_verify_client(struct hd_bench *b, size_t size)
{
	struct hd_cmd cmd = { .op = HD_OP_VERIFY, .size = size, .count = 1 };
	struct hd_side *s = &b->side;
	uint64_t target = s->rx_done + 1, bytes = s->rx_bytes + size;

	fill(s->tx_buf, size, 1);
	hd_side_recv(s, size, HD_TAG_DATA, 0);
	hd_bench_order(b, &cmd);
	hd_side_send(s, s->peer, size, HD_TAG_DATA);
	wait_message(s, target, bytes);
	check_filled(s->rx_buf, size, 2);
}

void hd_verify_server(struct hd_bench *b, const struct hd_cmd *cmd)
{
	struct hd_side *s = &b->side;
	uint64_t target = s->rx_done + 1, bytes = s->rx_bytes + cmd->size;

	fill(s->tx_buf, cmd->size, 2);
	hd_side_recv(s, cmd->size, HD_TAG_DATA, 0);
	hd_bench_ready(b);
	wait_message(s, target, bytes);
	hd_side_send(s, s->peer, cmd->size, HD_TAG_DATA);
	while (!hd_side_idle(s))
		hd_side_reap_one(s);
	check_filled(s->rx_buf, cmd->size, 1);
}

/* Both halves keep one receive posted ahead, so that every message finds its buffer, and post the
 * next one behind the send, where it costs no latency. */
static double pingpong(struct hd_bench *b, const struct hd_cmd *cmd)
{
	struct hd_side *s = &b->side;
	uint64_t target = s->rx_done, n = cmd->count, start;

	for (uint64_t i = 0; i < 2 && i < n; i++)
		hd_side_recv(s, cmd->size, HD_TAG_DATA, i);
	hd_bench_order(b, cmd);
	start = hd_now_ns();
	for (uint64_t i = 0; i < n; i++) {
		hd_side_send(s, s->peer, cmd->size, HD_TAG_DATA);
		if (i && i + 1 < n)
			hd_side_recv(s, cmd->size, HD_TAG_DATA, (i + 1) & 1);
		target++;
		while (s->rx_done < target || !hd_side_idle(s))
			hd_side_reap_one(s);
	}
	return (double)(hd_now_ns() - start);
}

void hd_lat_server(struct hd_bench *b, const struct hd_cmd *cmd)
{
	struct hd_side *s = &b->side;
	uint64_t target = s->rx_done, n = cmd->count;

	for (uint64_t i = 0; i < 2 && i < n; i++)
		hd_side_recv(s, cmd->size, HD_TAG_DATA, i);
	hd_bench_ready(b);
	for (uint64_t i = 0; i < n; i++) {
		target++;
		while (s->rx_done < target)
			hd_side_reap_one(s);
		hd_side_send(s, s->peer, cmd->size, HD_TAG_DATA);
		if (i + 2 < n)
			hd_side_recv(s, cmd->size, HD_TAG_DATA, i & 1);
		while (!hd_side_idle(s))
			hd_side_reap_one(s);
	}
}

void hd_lat_client(struct hd_bench *b, size_t size)
{
	struct hd_cmd cmd = { .op = HD_OP_LAT, .size = size };
	struct hd_samples us = { .n = 0 };

	cmd.count = hd_bench_calibrate(b, &cmd, pingpong);
	for (long i = 0; i < b->reps; i++)
		hd_samples_add(&us, pingpong(b, &cmd) / 2e3 / (double)cmd.count);
	hd_bench_begin(b, "lat");
	printf(" size=%zu iters=%llu idle=%ld best_us=%.4f median_us=%.4f\n", size,
	       (unsigned long long)cmd.count, b->nidle, hd_samples_low(&us), hd_samples_median(&us));
}
