/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* One-way bandwidth and message rate. At most `window` messages are under way: the server keeps
 * that many receives posted and acknowledges every `ack` messages, so the pipe never runs dry and
 * no message is ever unexpected. */
#include <stdio.h>

#include "fi_bench.h"

#define WINDOW_BYTES (64ull << 20)
#define ACK_SIZE 4

static double stream(struct hd_bench *b, const struct hd_cmd *cmd)
{
	struct hd_side *s = &b->side;
	uint64_t sent = 0, base = s->rx_done, acks = (cmd->count + cmd->ack - 1) / cmd->ack;
	uint64_t posted = 0, got, start;

	for (; posted < 4 && posted < acks; posted++)
		hd_side_recv(s, ACK_SIZE, HD_TAG_ACK, posted & 3);
	hd_bench_order(b, cmd);
	start = hd_now_ns();
	while ((got = s->rx_done - base) < acks || !hd_side_idle(s)) {
		uint64_t limit = got * cmd->ack + cmd->window;

		if (limit > cmd->count)
			limit = cmd->count;
		while (sent < limit && HD_SIDE_TX - s->tx_nfree < cmd->window &&
		       hd_side_try_send(s, s->peer, cmd->size, HD_TAG_DATA))
			sent++;
		for (; posted < acks && posted < got + 4; posted++)
			hd_side_recv(s, ACK_SIZE, HD_TAG_ACK, posted & 3);
		hd_side_reap(s);
	}
	return (double)(hd_now_ns() - start);
}

void hd_stream_server(struct hd_bench *b, const struct hd_cmd *cmd)
{
	struct hd_side *s = &b->side;
	uint64_t base = s->rx_done, bytes = s->rx_bytes, posted = 0, acked = 0, got;
	uint64_t acks = (cmd->count + cmd->ack - 1) / cmd->ack;

	for (; posted < cmd->window && posted < cmd->count; posted++)
		hd_side_recv(s, cmd->size, HD_TAG_DATA, posted);
	hd_bench_ready(b);
	while (acked < acks || !hd_side_idle(s)) {
		hd_side_reap(s);
		got = s->rx_done - base;
		while (posted < cmd->count && posted < got + cmd->window &&
		       hd_side_try_recv(s, 0, cmd->size, HD_TAG_DATA, posted % s->rx_depth))
			posted++;
		if (acked < acks && (got >= (acked + 1) * cmd->ack || got == cmd->count) &&
		    hd_side_try_send(s, s->peer, ACK_SIZE, HD_TAG_ACK))
			acked++;
	}
	if (s->rx_bytes - bytes != cmd->count * cmd->size)
		hd_give_up("wrong length: %llu bytes arrived in a stream",
			   (unsigned long long)(s->rx_bytes - bytes));
}

void hd_stream_client(struct hd_bench *b, const char *test, size_t size)
{
	struct hd_cmd cmd = { .op = HD_OP_STREAM, .size = size, .window = (uint32_t)b->window };
	struct hd_samples rate = { .n = 0 };
	double best, median;

	while (cmd.window > 1 && cmd.window * size > WINDOW_BYTES)
		cmd.window /= 2;
	cmd.ack = b->ack && b->ack < cmd.window ? (uint32_t)b->ack
		  : b->ack			? cmd.window
						: (cmd.window + 1) / 2;
	cmd.count = hd_bench_calibrate(b, &cmd, stream);
	for (long i = 0; i < b->reps; i++)
		hd_samples_add(&rate, (double)cmd.count / stream(b, &cmd) * 1e9);
	best = hd_samples_high(&rate);
	median = hd_samples_median(&rate);
	hd_bench_begin(b, test);
	printf(" size=%zu iters=%llu window=%u ack=%u idle=%ld best_gb_s=%.6f median_gb_s=%.6f best_mmsg_s=%.4f"
	       " median_mmsg_s=%.4f\n",
	       size, (unsigned long long)cmd.count, cmd.window, cmd.ack, b->nidle, best * (double)size / 1e9,
	       median * (double)size / 1e9, best / 1e6, median / 1e6);
}
