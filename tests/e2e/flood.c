/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Floods of messages that nobody receives: memory stays under the cap, and nothing is lost. */
#include "e2e.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CAP ((size_t)32 << 20)
#define SLACK ((size_t)48 << 20) /* rings, buffers, the test's own memory */
#define QUIET 1.5		 /* seconds without an accepted message: the sender is held back */
#define MOST 3000000		 /* messages that a sender tries at the most */

struct flood { /* what rank 0 must get from a sender */
	uint64_t sent;
	uint64_t held_back; /* -FI_EAGAIN was what stopped it */
};

/* arg: bytes a message, 1 standing for a mixture of all kinds */
static size_t len_of(const struct ct *ct, uint64_t i)
{
	static const size_t mixed[] = { 0, 8, 0, 1000, 0, 17000, 64, 400000, 0, 3 };

	return ct->cs->arg == 1 ? mixed[i % CT_COUNT(mixed)] : ct->cs->arg;
}

static void settings(struct ct *ct)
{
	char cap[32];

	snprintf(cap, sizeof(cap), "%zuM", CAP >> 20);
	e2e_set(ct, "HEDDLE_UNEXPECTED_MAX", cap);
	e2e_set(ct, "HEDDLE_UNEXPECTED_PEER", cap);
}

/* Sends until nothing has been accepted for a while; counts what was. */
static void flood(struct ct *ct, struct ct_ep *e, struct flood *f, char *buf, uint64_t *ended)
{
	double last = ct_now();
	struct ct_comp c;

	*f = (struct flood){ 0 };
	*ended = 0;
	while (f->sent < MOST && ct_now() - last < QUIET) {
		ssize_t rc = fi_tsend(e->ep, buf, len_of(ct, f->sent), NULL, e->addr[0], f->sent, CTX(1));

		if (!rc) {
			f->sent++;
			last = ct_now();
		} else {
			CT_EQ(ct, rc, -FI_EAGAIN);
			f->held_back = 1;
			ct_pause();
		}
		while (ct_poll(e, &c)) {
			CT_EQ(ct, c.err, 0);
			++*ended;
			last = ct_now();
		}
	}
}

static void flooder(struct ct *ct)
{
	struct ct_dom dom;
	struct ct_ep e;
	struct ct_comp c;
	struct flood f;
	char *buf = ct_alloc(ct, 1 << 20);
	uint64_t ended;

	settings(ct);
	ct_start(ct, &dom, &e, NULL);
	/* All messages of a sender are alike, for they share one buffer. */
	ct_fill(buf, 1 << 20, (uint64_t)ct->rank);
	flood(ct, &e, &f, buf, &ended);
	ct_put(ct, 0, &f, sizeof(f));
	/* As soon as rank 0 takes them, all that were accepted get through. */
	for (; ended < f.sent; ended++) {
		ct_any(&e, &c);
		CT_EQ(ct, c.err, 0);
	}
	free(buf);
	ct_finish(&e);
}

/* Makes progress until that sender's report is there, watching its own size. */
static size_t wait_report(struct ct *ct, struct ct_ep *e, int rank, struct flood *f, size_t rss)
{
	ct_get(ct, e, rank, f, sizeof(*f));
	if (e2e_rss(ct) > rss)
		rss = e2e_rss(ct);
	return rss;
}

static void drain(struct ct *ct, struct ct_ep *e, int rank, uint64_t i, char *buf)
{
	size_t len = len_of(ct, i);

	CT_POST(e, fi_trecv(e->ep, buf, 1 << 20, NULL, e->addr[rank], i, 0, CTX(7)));
	CT_EQ(ct, ct_done(e, CTX(7)), len);
	ct_verify(ct, buf, len, (uint64_t)rank, "after a flood");
}

static void flooded(struct ct *ct)
{
	struct ct_want want = { .caps = FI_MSG | FI_TAGGED | FI_DIRECTED_RECV };
	struct flood f[3] = { { 0 } };
	struct ct_dom dom;
	struct ct_ep e;
	size_t start, peak = 0;
	char *buf = ct_alloc(ct, 1 << 20);
	uint64_t i;
	int r;

	settings(ct);
	ct_start(ct, &dom, &e, &want);
	start = e2e_rss(ct);
	for (r = 1; r < 3; r++)
		peak = wait_report(ct, &e, r, &f[r], peak);
	if (peak > start + CAP + SLACK)
		ct_fail(ct, "grew by %zu MiB with a cap of %zu MiB", (peak - start) >> 20, CAP >> 20);
	for (r = 1; r < 3; r++)
		if (!f[r].held_back && f[r].sent == MOST)
			ct_fail(ct, "rank %d was never held back", r);
	/* From both in turn, so that neither has to wait for the other's end. */
	for (i = 0; i < f[1].sent || i < f[2].sent; i++)
		for (r = 1; r < 3; r++)
			if (i < f[r].sent)
				drain(ct, &e, r, i, buf);
	ct_quiet(&e, 50, "more than was sent");
	free(buf);
	ct_finish(&e);
}

#define FLOOD(bytes) { flooded, flooder, flooder }, .seconds = 150, .arg = (bytes)

const struct ct_case e2e_flood[] = {
	{ "FLOOD", "zero-bytes", FLOOD(0) }, { "FLOOD", "small", FLOOD(100) },
	{ "FLOOD", "medium", FLOOD(10000) }, { "FLOOD", "large", FLOOD(1 << 20), .slow = true },
	{ "FLOOD", "mixed", FLOOD(1) },	     { 0 }
};
