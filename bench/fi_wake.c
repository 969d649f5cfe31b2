/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* A server asleep in fi_cq_sread: how long until its answer arrives, and what its sleep costs.
 * raw_wake.c measures a bare eventfd in the same structure. */
#include <stdio.h>
#include <sys/resource.h>

#include "fi_bench.h"

#define PAUSE_NS 2000000

static void pause_ns(long ns)
{
	struct timespec t = { ns / 1000000000, ns % 1000000000 };

	nanosleep(&t, NULL);
}

void hd_wake_client(struct hd_bench *b)
{
	struct hd_cmd cmd = { .op = HD_OP_WAKE, .size = 8, .count = (uint64_t)b->wakes };
	struct hd_side *s = &b->side;
	struct hd_samples us = { .n = 0 };
	uint64_t target = s->rx_done, start;

	hd_bench_order(b, &cmd);
	for (uint64_t i = 0; i < cmd.count; i++) {
		hd_side_recv(s, cmd.size, HD_TAG_DATA, i & 1);
		target++;
		pause_ns(PAUSE_NS);
		start = hd_now_ns();
		hd_side_send(s, s->peer, cmd.size, HD_TAG_DATA);
		while (s->rx_done < target)
			hd_side_reap_one(s);
		hd_samples_add(&us, (double)(hd_now_ns() - start) / 1e3);
		while (!hd_side_idle(s))
			hd_side_reap_one(s);
	}
	hd_bench_begin(b, "wake");
	printf(" iters=%ld best_us=%.3f median_us=%.3f\n", b->wakes, hd_samples_low(&us),
	       hd_samples_median(&us));
}

/* Sleep until a message has been received; completions of sends may end a sleep too. */
static void sleep_for_message(struct hd_side *s, uint64_t target)
{
	struct fi_cq_tagged_entry e;
	ssize_t n;

	while (s->rx_done < target) {
		n = fi_cq_sread(s->cq, &e, 1, NULL, -1);
		if (n > 0)
			hd_side_account(s, &e);
		else if (n != -FI_EAGAIN && n != -FI_EINTR && n != 0)
			hd_side_cq_failed(s, n);
	}
}

void hd_wake_server(struct hd_bench *b, const struct hd_cmd *cmd)
{
	struct hd_side *s = &b->side;
	uint64_t target = s->rx_done;

	hd_side_recv(s, cmd->size, HD_TAG_DATA, 0);
	hd_bench_ready(b);
	for (uint64_t i = 0; i < cmd->count; i++) {
		sleep_for_message(s, ++target);
		if (i + 1 < cmd->count)
			hd_side_recv(s, cmd->size, HD_TAG_DATA, (i + 1) & 1);
		hd_side_send(s, s->peer, cmd->size, HD_TAG_DATA);
	}
	while (!hd_side_idle(s))
		hd_side_reap_one(s);
}

static double cpu_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

void hd_sleep_client(struct hd_bench *b)
{
	struct hd_cmd cmd = { .op = HD_OP_SLEEP, .size = 8, .count = 1 };
	struct hd_side *s = &b->side;
	uint64_t target = s->rx_done + 1;
	struct hd_answer a;

	hd_side_recv(s, cmd.size, HD_TAG_DATA, 0);
	hd_bench_order(b, &cmd);
	pause_ns(b->sleep_s * 1000000000);
	hd_side_send(s, s->peer, cmd.size, HD_TAG_DATA);
	while (s->rx_done < target || !hd_side_idle(s))
		hd_side_reap_one(s);
	hd_bench_ask(b, &a);
	hd_bench_begin(b, "sleep");
	printf(" seconds=%ld cpu_us_per_s=%.1f switches=%llu\n", b->sleep_s, a.value / (double)b->sleep_s,
	       (unsigned long long)a.switches);
}

/* The CPU time is that of the whole process, a provider's own threads included. */
void hd_sleep_server(struct hd_bench *b, const struct hd_cmd *cmd)
{
	struct hd_side *s = &b->side;
	struct rusage before, after;
	struct hd_answer a;
	uint64_t target = s->rx_done + 1;

	hd_side_recv(s, cmd->size, HD_TAG_DATA, 0);
	hd_bench_ready(b);
	getrusage(RUSAGE_SELF, &before);
	a.value = cpu_us();
	sleep_for_message(s, target);
	a.value = cpu_us() - a.value;
	getrusage(RUSAGE_SELF, &after);
	a.switches = (uint64_t)(after.ru_nvcsw - before.ru_nvcsw);
	hd_side_send(s, s->peer, cmd->size, HD_TAG_DATA);
	while (!hd_side_idle(s))
		hd_side_reap_one(s);
	hd_bench_tell(b, &a);
}
