/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* What a match costs when many receives are posted, or many messages wait, each with
 * an exact tag of its own.
 *
 * posted: the server posts `batch` receives, then the messages arrive in the given order. Timed
 * from the first completion to the last, so neither the posting nor the first message's journey
 * counts. waiting: `batch` messages arrive with tags in rising order, then a marker; then the
 * receives are posted in the given order. Timed from the first post to the last completion.
 *
 * The cost with one is measured in the same way in batches of BASE_BATCH messages that all carry
 * one tag, so that each match is the first entry looked at: a sustained rate, not a round trip. */
#include <stdio.h>
#include <string.h>

#include "fi_bench.h"

#define SLOT 8 /* bytes of a message; each receive has its own */
#define BASE_BATCH 256
#define BASE_TOTAL 131072
#define REAP_EVERY 16

enum hd_order {
	ORDER_ONE_TAG,
	ORDER_RISING,
	ORDER_REVERSE,
	ORDER_RANDOM
};

static const char *const order_names[] = { "one-tag", "rising", "reverse", "random" };

static uint32_t *make_order(uint64_t n, enum hd_order order)
{
	uint32_t *tags = calloc(n, sizeof(*tags));
	/* xorshift64, the same seed each time: runs are comparable */
	uint64_t x = 88172645463325252ull;

	if (!tags)
		hd_give_up("no memory for %llu tags", (unsigned long long)n);
	for (uint64_t i = 0; i < n && order != ORDER_ONE_TAG; i++)
		tags[i] = (uint32_t)(order == ORDER_REVERSE ? n - 1 - i : i);
	for (uint64_t i = n - 1; i > 0 && order == ORDER_RANDOM; i--) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		uint64_t j = x % (i + 1);
		uint32_t t = tags[i];

		tags[i] = tags[j];
		tags[j] = t;
	}
	return tags;
}

/* Read completions; with one tag per receive, each must name the receive that asked for its tag. */
static size_t reap_checked(struct hd_side *s, bool one_tag)
{
	struct fi_cq_tagged_entry e[HD_SIDE_REAP];
	size_t n = hd_side_read(s, e, HD_SIDE_REAP), received = 0;

	for (size_t i = 0; i < n; i++) {
		hd_side_account(s, &e[i]);
		if (!(e[i].flags & FI_RECV) || e[i].tag >= HD_TAG_DATA)
			continue;
		received++;
		if (!one_tag && e[i].op_context != &s->rx_ctx[e[i].tag])
			hd_give_up("the message of tag %llu completed another receive",
				   (unsigned long long)e[i].tag);
	}
	return received;
}

struct receiver {
	struct hd_side *s;
	const uint32_t *tags; /* in the order of posting */
	uint64_t batch, done;
	bool one_tag;
};

static void post_all(struct receiver *r)
{
	for (uint64_t i = 0; i < r->batch; i++) {
		size_t slot = r->one_tag ? i : r->tags[i];

		while (!hd_side_try_recv(r->s, slot * SLOT, SLOT, r->tags[i], slot))
			r->done += reap_checked(r->s, r->one_tag);
		if (i % REAP_EVERY == REAP_EVERY - 1)
			r->done += reap_checked(r->s, r->one_tag);
	}
}

static void control_send(struct hd_side *s, uint64_t tag)
{
	hd_side_send(s, s->peer, SLOT, tag);
	while (!hd_side_idle(s))
		hd_side_reap(s);
}

/* One batch with the receives ahead. Returns nanoseconds per message. */
static double batch_posted(struct receiver *r)
{
	uint64_t start, first;

	r->done = 0;
	post_all(r);
	hd_side_send(r->s, r->s->peer, SLOT, HD_TAG_ACK); /* go */
	while (!r->done)
		r->done = reap_checked(r->s, r->one_tag);
	first = r->done;
	start = hd_now_ns();
	while (r->done < r->batch)
		r->done += reap_checked(r->s, r->one_tag);
	start = hd_now_ns() - start;
	while (!hd_side_idle(r->s))
		hd_side_reap(r->s);
	return first < r->batch ? (double)start / (double)(r->batch - first) : 0;
}

/*
 * One batch with the messages ahead. The marker arrives behind them, so all of
 * them wait when it completes.
 */
static double batch_waiting(struct receiver *r)
{
	uint64_t start, marker = r->s->rx_done + 1;

	r->done = 0;
	hd_side_recv(r->s, SLOT, HD_TAG_MARKER, r->s->rx_depth - 1);
	control_send(r->s, HD_TAG_ACK);
	while (r->s->rx_done < marker)
		hd_side_reap(r->s);
	start = hd_now_ns();
	post_all(r);
	while (r->done < r->batch)
		r->done += reap_checked(r->s, r->one_tag);
	return (double)(hd_now_ns() - start) / (double)r->batch;
}

void hd_match_server(struct hd_bench *b, const struct hd_cmd *cmd)
{
	enum hd_order order = (enum hd_order)cmd->order;
	/* What is posted ahead has rising tags; the worst order is that of what comes second. */
	uint32_t *tags = make_order(cmd->batch, cmd->waiting || !order ? order : ORDER_RISING);
	struct receiver r = { &b->side, tags, cmd->batch, 0, order == ORDER_ONE_TAG };
	struct hd_samples ns = { .n = 0 };
	struct hd_answer a = { 0 };
	double t;

	hd_bench_ready(b);
	for (uint64_t i = 0; i < cmd->count; i++) {
		t = cmd->waiting ? batch_waiting(&r) : batch_posted(&r);
		if (t > 0)
			hd_samples_add(&ns, t);
	}
	free(tags);
	if (!ns.n)
		hd_give_up("the match test is too short to time: every batch completed at once");
	a.value = hd_samples_median(&ns);
	hd_bench_tell(b, &a);
}

static double match(struct hd_bench *b, const struct hd_cmd *cmd)
{
	enum hd_order order = (enum hd_order)cmd->order;
	uint32_t *tags = make_order(cmd->batch, cmd->waiting && order ? ORDER_RISING : order);
	struct hd_side *s = &b->side;
	uint64_t go = s->rx_done;
	struct hd_answer a;

	hd_bench_order(b, cmd);
	for (uint64_t k = 0; k < cmd->count; k++) {
		hd_side_recv(s, SLOT, HD_TAG_ACK, k & 1);
		go++;
		while (s->rx_done < go)
			hd_side_reap_one(s);
		for (uint64_t i = 0; i < cmd->batch; i++) {
			hd_side_send(s, s->peer, SLOT, tags[i]);
			if (i % REAP_EVERY == 0)
				hd_side_reap(s);
		}
		if (cmd->waiting)
			hd_side_send(s, s->peer, SLOT, HD_TAG_MARKER);
		while (!hd_side_idle(s))
			hd_side_reap(s);
	}
	free(tags);
	hd_bench_ask(b, &a);
	return a.value;
}

static void one_kind(struct hd_bench *b, bool waiting, enum hd_order order)
{
	struct hd_cmd base = { .op = HD_OP_MATCH,
			       .batch = BASE_BATCH,
			       .count = BASE_TOTAL / BASE_BATCH,
			       .waiting = waiting,
			       .order = ORDER_ONE_TAG };
	struct hd_cmd deep = { .op = HD_OP_MATCH,
			       .batch = (uint64_t)b->match,
			       .count = 1,
			       .waiting = waiting,
			       .order = (int)order };
	struct hd_samples one = { .n = 0 }, ns = { .n = 0 }, ratio = { .n = 0 };

	for (long i = 0; i < b->reps; i++) {
		double x = match(b, &base), y = match(b, &deep);

		hd_samples_add(&one, x);
		hd_samples_add(&ns, y);
		hd_samples_add(&ratio, y / x);
	}
	hd_bench_begin(b, "match");
	printf(" kind=%s order=%s n=%ld best_ns=%.2f median_ns=%.2f one_best_ns=%.2f one_median_ns=%.2f"
	       " best_ratio=%.3f median_ratio=%.3f\n",
	       waiting ? "waiting" : "posted", order_names[order], b->match, hd_samples_low(&ns),
	       hd_samples_median(&ns), hd_samples_low(&one), hd_samples_median(&one), hd_samples_low(&ratio),
	       hd_samples_median(&ratio));
}

void hd_match_client(struct hd_bench *b)
{
	one_kind(b, false, ORDER_REVERSE);
	one_kind(b, false, ORDER_RANDOM);
	one_kind(b, true, ORDER_REVERSE);
	one_kind(b, true, ORDER_RANDOM);
}
