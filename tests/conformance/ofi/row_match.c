/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* M4, M5 and T2: which message goes to which receive. */
#include "ct.h"

#include <stdlib.h>
#include <string.h>

#define MANY 200

/* Lengths that take an eager and a rendezvous path in turn. */
static size_t len_of(size_t i)
{
	static const size_t lens[] = { 16, 3000, 100, 120000, 8, 20000, 600000, 1 };

	return lens[i % CT_COUNT(lens)];
}

static void send_many(struct ct_ep *e, bool tagged, size_t n)
{
	char **buf = ct_alloc(e->ct, n * sizeof(*buf));
	size_t i;

	for (i = 0; i < n; i++) {
		buf[i] = ct_alloc(e->ct, len_of(i));
		ct_fill(buf[i], len_of(i), i);
		if (tagged)
			ct_tsend(e, 1, buf[i], len_of(i), 9, CTX(i + 1));
		else
			ct_send(e, 1, buf[i], len_of(i), CTX(i + 1));
	}
	for (i = 0; i < n; i++) {
		ct_done(e, CTX(i + 1));
		free(buf[i]);
	}
	free(buf);
}

static void recv_many(struct ct_ep *e, bool tagged, size_t n, bool late)
{
	char **buf = ct_alloc(e->ct, n * sizeof(*buf));
	size_t i;

	for (i = 0; i < n; i++) {
		buf[i] = ct_alloc(e->ct, 600000);
		if (tagged)
			ct_trecv(e, buf[i], 600000, 9, 0, CTX(i + 1));
		else
			ct_recv(e, buf[i], 600000, CTX(i + 1));
	}
	if (!late)
		ct_sync(e->ct, e);
	for (i = 0; i < n; i++) {
		CT_EQ(e->ct, ct_done(e, CTX(i + 1)), len_of(i));
		ct_verify(e->ct, buf[i], len_of(i), i, "posting order");
		free(buf[i]);
	}
	free(buf);
}

/* The i-th message goes to the i-th buffer: receives posted first, and messages sent first. */
static void posting_order(struct ct *ct)
{
	struct ct_want want = { .msg_order = FI_ORDER_SAS };
	struct ct_dom dom;
	struct ct_ep e;
	int i;

	ct_start(ct, &dom, &e, &want);
	for (i = 0; i < 4; i++) {
		bool tagged = i & 1, late = i & 2;

		if (ct->rank == 0) {
			if (!late)
				ct_sync(ct, &e);
			send_many(&e, tagged, MANY / 2);
		} else {
			if (late)
				ct_idle(&e, 50);
			recv_many(&e, tagged, MANY / 2, late);
		}
		ct_sync(ct, &e);
	}
	ct_finish(&e);
}

static void completion_order(struct ct *ct)
{
	struct ct_want want = { .msg_order = FI_ORDER_SAS,
				.tx_comp_order = FI_ORDER_STRICT,
				.rx_comp_order = FI_ORDER_STRICT };
	struct ct_dom dom;
	struct ct_comp c;
	struct ct_ep e;
	char *buf;
	uint64_t order;
	size_t i;

	ct_start(ct, &dom, &e, &want);
	order = ct->rank ? dom.info->rx_attr->comp_order : dom.info->tx_attr->comp_order;
	order |= ct->rank ? 0 : dom.info->rx_attr->comp_order;
	buf = ct_alloc(ct, 600000);
	if (!(order & FI_ORDER_STRICT))
		ct_unsupported(ct, "the endpoint promises no completion order");
	order = ct->rank ? dom.info->rx_attr->comp_order : dom.info->tx_attr->comp_order;
	for (i = 0; i < MANY; i++) {
		/* All into one buffer: only the order of the completions is looked at. */
		if (ct->rank)
			ct_recv(&e, buf, 600000, CTX(i + 1));
		else
			ct_send(&e, 1, buf, len_of(i), CTX(i + 1));
	}
	for (i = 0; i < MANY; i++) {
		ct_any(&e, &c);
		CT_EQ(ct, c.err, 0);
		if (order & FI_ORDER_STRICT)
			CT_EQ(ct, (uintptr_t)c.ctx, i + 1);
	}
	free(buf);
	ct_finish(&e);
}

/* ---- M5: ranks 1 and 2 send, rank 0 chooses ---- */

static void say(struct ct_ep *e, bool tagged, uint64_t seed, size_t len)
{
	char *buf = ct_alloc(e->ct, len);

	ct_fill(buf, len, seed);
	if (tagged)
		ct_tsend(e, 0, buf, len, 1, CTX(99));
	else
		ct_send(e, 0, buf, len, CTX(99));
	ct_done(e, CTX(99));
	free(buf);
}

static void hear(struct ct_ep *e, bool tagged, void *buf, fi_addr_t from, uintptr_t ctx)
{
	if (tagged)
		CT_POST(e, fi_trecv(e->ep, buf, 4096, NULL, from, 1, 0, CTX(ctx)));
	else
		CT_POST(e, fi_recv(e->ep, buf, 4096, NULL, from, CTX(ctx)));
}

static void heard(struct ct_ep *e, const void *buf, uintptr_t ctx, uint64_t seed)
{
	CT_EQ(e->ct, ct_done(e, CTX(ctx)), 1000);
	ct_verify(e->ct, buf, 1000, seed, "directed");
}

static void directed_posted(struct ct_ep *e, bool tagged, char *buf)
{
	struct ct *ct = e->ct;

	if (!ct->rank) {
		hear(e, tagged, buf, e->addr[2], 1);
		hear(e, tagged, buf + 4096, e->addr[1], 2);
		hear(e, tagged, buf + 8192, FI_ADDR_UNSPEC, 3);
	}
	ct_sync(ct, e);
	/* Rank 1 comes first, but the first receive is not for it. */
	if (ct->rank == 1) {
		say(e, tagged, 11, 1000);
		say(e, tagged, 12, 1000);
	} else if (!ct->rank) {
		heard(e, buf + 4096, 2, 11);
		heard(e, buf + 8192, 3, 12);
		ct_quiet(e, 50, "a receive directed at rank 2");
	}
	ct_sync(ct, e);
	if (ct->rank == 2)
		say(e, tagged, 21, 1000);
	else if (!ct->rank)
		heard(e, buf, 1, 21);
	ct_sync(ct, e);
}

static void directed_waiting(struct ct_ep *e, bool tagged, char *buf)
{
	struct ct *ct = e->ct;

	if (ct->rank)
		say(e, tagged, 10 * (uint64_t)ct->rank, 1000);
	else
		ct_idle(e, 50);
	if (!ct->rank) {
		hear(e, tagged, buf, e->addr[2], 1);
		heard(e, buf, 1, 20);
		hear(e, tagged, buf, e->addr[2], 1);
		ct_quiet(e, 50, "a receive directed at rank 2");
		hear(e, tagged, buf + 4096, e->addr[1], 2);
		heard(e, buf + 4096, 2, 10);
	}
	ct_sync(ct, e);
	if (ct->rank == 2)
		say(e, tagged, 22, 1000);
	else if (!ct->rank)
		heard(e, buf, 1, 22);
	ct_sync(ct, e);
}

static void directed(struct ct *ct)
{
	struct ct_want want = { .caps = FI_MSG | FI_TAGGED | FI_DIRECTED_RECV, .msg_order = FI_ORDER_SAS };
	struct ct_dom dom;
	struct ct_ep e;
	char *buf = ct_alloc(ct, 3 * 4096);
	int tagged;

	ct_start(ct, &dom, &e, &want);
	for (tagged = 0; tagged < 2; tagged++) {
		directed_posted(&e, tagged, buf);
		directed_waiting(&e, tagged, buf);
	}
	free(buf);
	ct_finish(&e);
}

/* Without the capability the source address of a receive does not count. */
static void directed_ignored(struct ct *ct)
{
	struct ct_dom dom;
	struct ct_ep e;
	char *buf = ct_alloc(ct, 4096);
	int tagged;

	ct_start(ct, &dom, &e, NULL);
	if (dom.info->caps & FI_DIRECTED_RECV)
		ct_unsupported(ct, "FI_DIRECTED_RECV is on though it was not asked for");
	for (tagged = 0; tagged < 2; tagged++) {
		if (!ct->rank)
			hear(&e, tagged, buf, e.addr[2], 1);
		ct_sync(ct, &e);
		if (ct->rank == 1)
			say(&e, tagged, 11, 1000);
		else if (!ct->rank)
			heard(&e, buf, 1, 11);
		ct_sync(ct, &e);
	}
	free(buf);
	ct_finish(&e);
}

/* ---- T2: a model of the matching rule, held against the provider ---- */

struct wish {
	uint64_t tag, ignore;
};

/*
 * Receives prefer the oldest message, messages the oldest receive. With one order on either side
 * there is exactly one stable outcome, so the result does not depend on when which of them came.
 */
static void model(const struct wish *recv, size_t nr, const uint64_t *msg, size_t nm, int *got)
{
	bool used[MANY] = { false };
	size_t r, m;

	for (r = 0; r < nr; r++) {
		got[r] = -1;
		for (m = 0; m < nm && got[r] < 0; m++) {
			if (!used[m] && (msg[m] & ~recv[r].ignore) == (recv[r].tag & ~recv[r].ignore)) {
				used[m] = true;
				got[r] = (int)m;
			}
		}
	}
}

struct game {
	size_t nr, nm;
	struct wish recv[MANY];
	uint64_t msg[MANY];
	int got[MANY];
};

static size_t game_len(uint64_t tag, size_t m)
{
	return (tag ^ m) % 11 ? 40 + m : 70000 + m;
}

static void game_send(struct ct_ep *e, const struct game *g)
{
	char **buf = ct_alloc(e->ct, g->nm * sizeof(*buf));
	size_t m;

	for (m = 0; m < g->nm; m++) {
		size_t len = game_len(g->msg[m], m);

		buf[m] = ct_alloc(e->ct, len);
		ct_fill(buf[m], len, m);
		ct_tsend(e, 1, buf[m], len, g->msg[m], CTX(m + 1));
	}
	ct_sync(e->ct, e);
	ct_sync(e->ct, e);
	for (m = 0; m < g->nm; m++) {
		ct_done(e, CTX(m + 1));
		free(buf[m]);
	}
	free(buf);
}

static void game_check(struct ct_ep *e, const struct game *g, size_t r, const char *buf)
{
	struct ct *ct = e->ct;
	struct ct_comp c;
	size_t len;

	if (g->got[r] < 0)
		return;
	ct_of(e, CTX(r + 1), &c);
	CT_EQ(ct, c.err, 0);
	CT_EQ(ct, c.tag, g->msg[g->got[r]]);
	len = game_len(c.tag, (size_t)g->got[r]);
	if (c.len != len || !ct_match(buf, len, (uint64_t)g->got[r], 0))
		ct_fail(ct, "receive %zu (tag 0x%llx, ignore 0x%llx) did not get message %d", r,
			(unsigned long long)g->recv[r].tag, (unsigned long long)g->recv[r].ignore, g->got[r]);
}

/* Takes what the game left over: receives without a message, and messages without a receive. */
static void game_clear(struct ct_ep *e, const struct game *g, char *buf)
{
	size_t r, taken = 0;
	struct ct_comp c;

	for (r = 0; r < g->nr; r++)
		taken += g->got[r] >= 0;
	for (r = 0; r < g->nr; r++) {
		if (g->got[r] >= 0)
			continue;
		CT_OK(e->ct, fi_cancel(&e->ep->fid, CTX(r + 1)));
		ct_of(e, CTX(r + 1), &c);
		CT_EQ(e->ct, c.err, FI_ECANCELED);
	}
	for (; taken < g->nm; taken++) {
		ct_trecv(e, buf, 80000, 0, ~0ull, CTX(5000));
		ct_done(e, CTX(5000));
	}
}

static void game_recv(struct ct_ep *e, const struct game *g, size_t first)
{
	char **buf = ct_alloc(e->ct, (g->nr + 1) * sizeof(*buf));
	size_t r;

	for (r = 0; r <= g->nr; r++)
		buf[r] = ct_alloc(e->ct, 80000);
	for (r = 0; r < g->nr; r++) {
		/* The receives from here on meet messages that wait already. */
		if (r == first)
			ct_sync(e->ct, e);
		ct_trecv(e, buf[r], 80000, g->recv[r].tag, g->recv[r].ignore, CTX(r + 1));
	}
	if (first >= g->nr)
		ct_sync(e->ct, e);
	for (r = 0; r < g->nr; r++)
		game_check(e, g, r, buf[r]);
	game_clear(e, g, buf[g->nr]);
	ct_sync(e->ct, e);
	for (r = 0; r <= g->nr; r++)
		free(buf[r]);
	free(buf);
}

static void play(struct ct_ep *e, struct game *g, size_t first)
{
	model(g->recv, g->nr, g->msg, g->nm, g->got);
	if (e->ct->rank)
		game_recv(e, g, first);
	else
		game_send(e, g);
}

/* Both ranks draw the same game. */
static void draw(struct ct *ct, struct game *g, uint64_t tags, unsigned int wild)
{
	static const uint64_t masks[] = { ~0ull, 1, 2, 3, 0xf0, 0x8000000000000001ull };
	size_t i;

	g->nr = 1 + ct_range(ct, 40);
	g->nm = 1 + ct_range(ct, 40);
	for (i = 0; i < g->nr; i++) {
		g->recv[i].tag = ct_range(ct, tags) | (ct_range(ct, 2) << 63);
		g->recv[i].ignore = ct_range(ct, 100) < wild ? masks[ct_range(ct, CT_COUNT(masks))] : 0;
	}
	for (i = 0; i < g->nm; i++)
		g->msg[i] = ct_range(ct, tags) | (ct_range(ct, 2) << 63);
}

static void random_games(struct ct *ct)
{
	/* arg: how many receives in a hundred are wildcards */
	struct ct_want want = { .msg_order = FI_ORDER_SAS };
	struct game *g = ct_alloc(ct, sizeof(*g));
	struct ct_dom dom;
	struct ct_ep e;
	int i;

	ct_start(ct, &dom, &e, &want);
	for (i = 0; i < 60; i++) {
		draw(ct, g, i & 1 ? 4 : 20, (unsigned int)ct->cs->arg);
		play(&e, g, ct_range(ct, g->nr + 1));
	}
	free(g);
	ct_finish(&e);
}

/*
 * Wildcards and exact receives for the same tag alternate: the older one wins, whatever its kind.
 */
static void interleave(struct ct *ct)
{
	struct ct_want want = { .msg_order = FI_ORDER_SAS };
	struct game *g = ct_alloc(ct, sizeof(*g));
	struct ct_dom dom;
	struct ct_ep e;
	size_t i;

	ct_start(ct, &dom, &e, &want);
	g->nr = g->nm = MANY;
	for (i = 0; i < MANY; i++) {
		g->recv[i] = (struct wish){ 7, i & 1 ? ~0ull : 0 };
		g->msg[i] = i % 3 ? 7 : 8;
	}
	play(&e, g, MANY);
	play(&e, g, MANY / 2);
	play(&e, g, 0);
	free(g);
	ct_finish(&e);
}

/*
 * The same tag again and again: in posting order and in arrival order. arg:
 * receives posted first or last
 */
static void same_tag(struct ct *ct)
{
	struct ct_want want = { .msg_order = FI_ORDER_SAS };
	struct game *g = ct_alloc(ct, sizeof(*g));
	struct ct_dom dom;
	struct ct_ep e;
	size_t i;

	ct_start(ct, &dom, &e, &want);
	g->nr = g->nm = MANY;
	for (i = 0; i < MANY; i++) {
		g->recv[i] = (struct wish){ i % 2, 0 };
		g->msg[i] = (i / 2) % 2;
	}
	play(&e, g, ct->cs->arg ? MANY : 0);
	free(g);
	ct_finish(&e);
}

/* Tagged and untagged messages do not match each other's receives. */
static void apart(struct ct *ct)
{
	struct ct_dom dom;
	struct ct_ep e;
	char a[8] = { 0 }, b[8] = { 0 }, out[8];

	ct_start(ct, &dom, &e, NULL);
	if (ct->rank) {
		ct_trecv(&e, a, 8, 0, ~0ull, CTX(1));
		ct_recv(&e, b, 8, CTX(2));
	}
	ct_sync(ct, &e);
	if (!ct->rank) {
		ct_fill(out, 8, 1);
		ct_send(&e, 1, out, 8, CTX(1));
		ct_done(&e, CTX(1));
		ct_sync(ct, &e);
		ct_fill(out, 8, 2);
		ct_tsend(&e, 1, out, 8, 0, CTX(1));
		ct_done(&e, CTX(1));
	} else {
		ct_done(&e, CTX(2));
		ct_verify(ct, b, 8, 1, "untagged");
		ct_quiet(&e, 30, "the tagged receive");
		ct_sync(ct, &e);
		ct_done(&e, CTX(1));
		ct_verify(ct, a, 8, 2, "tagged");
	}
	ct_finish(&e);
}

/* ---- T2: among many that are posted ---- */

/*
 * more than a cache has room for; every 16th has the tag of the one before
 * it, every 32nd is cancelled
 */
#define CROWD 20000
#define CROWD_ROW 64

static uint64_t crowd_tag(size_t i)
{
	return (i % 16 == 15 ? i - 1 : i) << 8;
}

static bool crowd_gone(size_t i)
{
	return i % 32 == 5;
}

/* What the receive is to get: the first message of its tag, or the second. */
static uint64_t crowd_data(size_t i)
{
	return crowd_tag(i) + (i % 16 == 15);
}

static void crowd_send(struct ct_ep *e)
{
	uint64_t *data = ct_alloc(e->ct, CROWD_ROW * sizeof(*data));
	bool *before = ct_alloc(e->ct, CROWD * sizeof(*before));
	size_t sent = 0, done = 0;

	/* 7,919 is a prime that does not divide CROWD: all of them, far from each other */
	for (size_t k = 0; k < CROWD; k++) {
		size_t i = k * 7919 % CROWD, first = crowd_tag(i) >> 8;

		if (crowd_gone(i))
			continue;
		data[sent % CROWD_ROW] = crowd_tag(i) + before[first];
		before[first] = true;
		ct_tsend(e, 1, &data[sent % CROWD_ROW], sizeof(*data), crowd_tag(i),
			 CTX(1 + sent % CROWD_ROW));
		if (++sent % CROWD_ROW)
			continue;
		for (; done < sent; done++)
			ct_done(e, CTX(1 + done % CROWD_ROW));
	}
	for (; done < sent; done++)
		ct_done(e, CTX(1 + done % CROWD_ROW));
	free(before);
	free(data);
}

static void crowd_post(struct ct_ep *e, uint64_t *data)
{
	struct ct_comp c;

	for (size_t i = 0; i < CROWD; i++)
		ct_trecv(e, &data[i], sizeof(*data), crowd_tag(i), 0, CTX(i + 1));
	for (size_t i = 0; i < CROWD; i++) {
		if (!crowd_gone(i))
			continue;
		CT_OK(e->ct, fi_cancel(&e->ep->fid, CTX(i + 1)));
		ct_of(e, CTX(i + 1), &c);
		CT_EQ(e->ct, c.err, FI_ECANCELED);
	}
}

static void crowd(struct ct *ct)
{
	struct ct_want want = { .msg_order = FI_ORDER_SAS, .cq_size = CROWD, .rx_size = CROWD };
	uint64_t *data = ct_alloc(ct, CROWD * sizeof(*data));
	struct ct_dom dom;
	struct ct_comp c;
	struct ct_ep e;
	size_t i;

	ct_start(ct, &dom, &e, &want);
	if (ct->rank)
		crowd_post(&e, data);
	ct_sync(ct, &e);
	if (!ct->rank)
		crowd_send(&e);
	for (size_t n = 0; ct->rank && n < CROWD - CROWD / 32; n++) {
		ct_any(&e, &c);
		i = (uintptr_t)c.ctx - 1;
		CT_EQ(ct, c.err, 0);
		CT_TRUE(ct, i < CROWD && !crowd_gone(i));
		CT_EQ(ct, c.tag, crowd_tag(i));
		CT_EQ(ct, data[i], crowd_data(i));
	}
	free(data);
	ct_finish(&e);
}

const struct ct_case ct_match_cases[] = {
	{ "M4", "posting-order", { posting_order, posting_order } },
	{ "M4", "completion-order", { completion_order, completion_order } },
	{ "M5", "directed", { directed, directed, directed } },
	{ "M5", "directed-ignored", { directed_ignored, directed_ignored, directed_ignored } },
	{ "T2", "wildcard-order", { random_games, random_games }, .arg = 60 },
	{ "T2", "exact-order", { random_games, random_games }, .arg = 0 },
	{ "T2", "interleave", { interleave, interleave } },
	{ "T2", "posting-order", { same_tag, same_tag }, .arg = 1 },
	{ "T2", "arrival-order", { same_tag, same_tag }, .arg = 0 },
	{ "T2", "tagged-apart", { apart, apart } },
	{ "T2", "among-many", CT_TWO(crowd) },
	{ 0 }
};
