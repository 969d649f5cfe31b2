/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * What the tests of hd-bench stand on: orders and answers between its two processes,
 * and how often to repeat.
 */
#include <stdio.h>
#include <unistd.h>

#include "ctl.h"
#include "fi_bench.h"

void hd_bench_order(struct hd_bench *b, const struct hd_cmd *cmd)
{
	char ready;

	alarm((unsigned int)(b->timeout + b->sleep_s));
	hd_ctl_put(b->ctl, cmd, sizeof(*cmd));
	hd_ctl_get(b->ctl, &ready, 1, hd_side_turn, &b->side);
}

void hd_bench_ready(struct hd_bench *b)
{
	char ready = 1;

	hd_ctl_put(b->ctl, &ready, 1);
}

void hd_bench_ask(struct hd_bench *b, struct hd_answer *a)
{
	hd_ctl_get(b->ctl, a, sizeof(*a), hd_side_turn, &b->side);
}

void hd_bench_tell(struct hd_bench *b, const struct hd_answer *a)
{
	hd_ctl_put(b->ctl, a, sizeof(*a));
}

void hd_bench_begin(const struct hd_bench *b, const char *test)
{
	printf("test=%s provider=%s mode=%s%s", test, b->open.prov, b->open.tagged ? "tagged" : "untagged",
	       b->side.inject_max ? "+inject" : "");
}

uint64_t hd_bench_calibrate(struct hd_bench *b, const struct hd_cmd *cmd,
			    double (*run)(struct hd_bench *b, const struct hd_cmd *cmd))
{
	struct hd_cmd c = *cmd;
	double want = (double)b->rep_ms * 1e6, t;

	for (c.count = 4;; c.count *= 4) {
		t = run(b, &c);
		if (t > want / 8)
			break;
	}
	c.count = (uint64_t)((double)c.count * want / t) + 1;
	return c.count < 4 ? 4 : c.count;
}
