/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * FAULT: last words. What a completion, or a counter, has said of a send arrives, though the
 * process is gone at once and its peer has not looked since: fi_endpoint(3), whatever has been
 * transmitted is no more the sender's business.
 */
#include "ct.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WORDS 40
#define AWAY_MS 30 /* for how long the other end does not look */

enum how {
	EXIT,
	EXIT_AT_ONCE, /* _exit(2): nobody of this process is asked once more */
	COUNTED = 2   /* it looks at its counter alone */
};

static const size_t lens[] = { 8, 600, 64, 0 };

static size_t len_of(const struct ct_ep *e, int word)
{
	size_t len = lens[(size_t)word % CT_COUNT(lens)];

	return e->dom->info->ep_attr->type != FI_EP_DGRAM && word % 10 == 5 ? 6000 : len;
}

static void speak(struct ct_ep *e)
{
	char *out = ct_alloc(e->ct, 6000 * WORDS);

	for (int i = 0; i < WORDS; i++) {
		ct_fill(out + i * 6000, 6000, (uint64_t)i);
		ct_send(e, 1, out + i * 6000, len_of(e, i), CTX(100 + i));
	}
}

static void __attribute__((noreturn)) go(const struct ct *ct)
{
	if (ct->cs->arg & EXIT_AT_ONCE)
		_exit(0);
	exit(0);
}

/* Read just as many completions: not one call more, which would make progress. */
static void hear_of(struct ct_ep *e)
{
	struct ct_comp c;

	for (int i = 0; i < WORDS; i++) {
		while (!ct_read_cq(e, e->txcq, &c))
			;
		CT_EQ(e->ct, c.err, 0);
		CT_EQ(e->ct, (uintptr_t)c.ctx, 100 + i);
	}
}

static void __attribute__((noreturn)) speaker(struct ct_ep *e)
{
	ct_sync(e->ct, e);
	ct_doomed(e->ct);
	speak(e);
	if (e->ct->cs->arg & COUNTED)
		while (fi_cntr_read(e->txcntr) < WORDS)
			;
	else
		hear_of(e);
	go(e->ct);
}

static void listener(struct ct_ep *e)
{
	char *in = ct_alloc(e->ct, 6000 * WORDS);

	for (int i = 0; i < WORDS; i++)
		ct_recv(e, in + i * 6000, 6000, CTX(200 + i));
	ct_sync(e->ct, e);
	usleep(AWAY_MS * 1000);
	for (int i = 0; i < WORDS; i++) {
		CT_EQ(e->ct, ct_done(e, CTX(200 + i)), len_of(e, i));
		ct_verify(e->ct, in + i * 6000, len_of(e, i), (uint64_t)i, "last words");
	}
	free(in);
}

static void last_words(struct ct *ct)
{
	struct ct_want want = { .counters = ct->cs->arg & COUNTED };
	struct ct_dom dom;
	struct ct_ep e;

	ct_start_up(ct, &dom, &e, &want);
	if (!ct->rank)
		speaker(&e);
	listener(&e);
	ct_ep_close(&e);
	ct_close(&dom);
}

const struct ct_case ct_words[] = {
	{ "FAULT", "last-words", CT_TWO(last_words), .arg = EXIT },
	{ "FAULT", "last-words-at-once", CT_TWO(last_words), .arg = EXIT_AT_ONCE },
	{ "FAULT", "last-words-counted", CT_TWO(last_words), .arg = EXIT | COUNTED },
	{ "FAULT", "last-words-counted-at-once", CT_TWO(last_words), .arg = EXIT_AT_ONCE | COUNTED },
	{ NULL },
};
