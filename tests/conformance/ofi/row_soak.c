/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Random lengths, tags and calls in all directions at once; every byte is checked. */
#include "ct.h"

#include <stdlib.h>
#include <string.h>

#define WINDOW 16
#define LONGEST (1u << 20)

struct lane { /* messages to or from one other rank */
	int from, to;
	bool tx;
	size_t n, posted, done;
	char *buf[WINDOW];
	bool seen[WINDOW];
};

/* What message i of a lane looks like: the same on both ends, from the seed alone. */
static uint64_t dice(const struct ct *ct, const struct lane *l, size_t i, uint64_t salt)
{
	struct ct c = { .rng = ct->conf->seed + ((uint64_t)(l->from * CT_PROCS + l->to) << 48) +
			       (salt << 40) + i };

	return ct_rand(&c);
}

static size_t lane_len(const struct ct *ct, const struct lane *l, size_t i)
{
	uint64_t d = dice(ct, l, i, 1);
	unsigned int bits = (unsigned int)(d % 64);

	/* Mostly small ones, with each power of two up to the longest now and then. */
	bits = bits < 44 ? bits % 11 : bits % 21;
	return (size_t)((d >> 8) & ((1u << bits) - 1)) + (bits == 20 && d >> 60 == 0);
}

static ssize_t lane_send(struct ct_ep *e, struct lane *l, size_t i, char *buf, size_t len, void *ctx)
{
	uint64_t tag = ((uint64_t)l->from << 32) | i;
	struct iovec iov[2] = { { buf, len / 3 }, { buf + len / 3, len - len / 3 } };
	fi_addr_t to = e->addr[l->to];

	switch (dice(e->ct, l, i, 2) % 3) {
	case 0:
		return fi_tsend(e->ep, buf, len, NULL, to, tag, ctx);
	case 1:
		return fi_tsendv(e->ep, iov, NULL, 2, to, tag, ctx);
	default:
		return fi_tsenddata(e->ep, buf, len, NULL, i & 0xff, to, tag, ctx);
	}
}

static ssize_t lane_recv(struct ct_ep *e, struct lane *l, size_t i, char *buf, void *ctx)
{
	uint64_t tag = ((uint64_t)l->from << 32) | i;
	struct iovec iov[2] = { { buf, 1000 }, { buf + 1000, LONGEST - 1000 } };

	if (dice(e->ct, l, i, 3) & 1)
		return fi_trecv(e->ep, buf, LONGEST, NULL, FI_ADDR_UNSPEC, tag, 0, ctx);
	return fi_trecvv(e->ep, iov, NULL, 2, FI_ADDR_UNSPEC, tag, 0, ctx);
}

static bool lane_post(struct ct_ep *e, struct lane *l, size_t index)
{
	size_t i = l->posted, len = lane_len(e->ct, l, i);
	char *buf = l->buf[i % WINDOW];
	void *ctx = CTX((index << 32) + i + 1);
	ssize_t rc;

	if (i == l->n || i - l->done == WINDOW)
		return false;
	if (l->tx) {
		ct_fill(buf, len, dice(e->ct, l, i, 4));
		rc = lane_send(e, l, i, buf, len, ctx);
	} else {
		rc = lane_recv(e, l, i, buf, ctx);
	}
	if (rc == -FI_EAGAIN)
		return false;
	CT_OK(e->ct, rc);
	l->posted++;
	return true;
}

static void lane_done(struct ct_ep *e, struct lane *lanes, const struct ct_comp *c)
{
	struct lane *l = &lanes[((uintptr_t)c->ctx - 1) >> 32];
	size_t i = ((uintptr_t)c->ctx - 1) & 0xffffffff;

	if (c->err)
		ct_fail(e->ct, "message %zu from %d to %d: %s", i, l->from, l->to, fi_strerror(c->err));
	CT_TRUE(e->ct, i >= l->done && i < l->posted && !l->seen[i % WINDOW]);
	if (!l->tx) {
		CT_EQ(e->ct, c->len, lane_len(e->ct, l, i));
		ct_verify(e->ct, l->buf[i % WINDOW], c->len, dice(e->ct, l, i, 4), "soak");
	}
	l->seen[i % WINDOW] = true;
	while (l->done < l->posted && l->seen[l->done % WINDOW])
		l->seen[l->done++ % WINDOW] = false;
}

static size_t lanes_open(struct ct *ct, struct lane *lanes, size_t n)
{
	size_t count = 0, s;
	int r, k;

	for (r = 0; r < ct->procs; r++) {
		for (k = 0; r != ct->rank && k < 2; k++) {
			struct lane *l = &lanes[count++];

			*l = (struct lane){
				.from = k ? r : ct->rank, .to = k ? ct->rank : r, .tx = !k, .n = n
			};
			for (s = 0; s < WINDOW; s++)
				l->buf[s] = ct_alloc(ct, LONGEST);
		}
	}
	return count;
}

/* arg: messages in each direction between each two ranks */
static void soak(struct ct *ct)
{
	struct lane lanes[2 * CT_PROCS];
	struct ct_dom dom;
	struct ct_comp c;
	struct ct_ep e;
	double end;
	size_t i, open, count;

	ct_start(ct, &dom, &e, NULL);
	if (dom.info->tx_attr->iov_limit < 2 || dom.info->rx_attr->iov_limit < 2)
		ct_unsupported(ct, "iov_limit is below 2");
	count = open = lanes_open(ct, lanes, ct->cs->arg);
	end = ct_deadline(ct);
	while (open) {
		bool any = false;

		/* Each rank goes through its lanes in an order of its own. */
		for (i = 0; i < count; i++) {
			size_t at = (i + ct_rand(ct) + (size_t)ct->rank) % count;

			any |= lane_post(&e, &lanes[at], at);
		}
		while (ct_poll(&e, &c)) {
			lane_done(&e, lanes, &c);
			any = true;
		}
		for (i = open = 0; i < count; i++)
			open += lanes[i].done < lanes[i].n;
		if (any)
			end = ct_deadline(ct);
		else
			ct_pause();
		ct_late(ct, end, "the soak to go on");
	}
	for (i = 0; i < count * WINDOW; i++)
		free(lanes[i / WINDOW].buf[i % WINDOW]);
	ct_finish(&e);
}

const struct ct_case ct_soak[] = {
	{ "SOAK", "two", { soak, soak }, .seconds = 150, .arg = 10000 },
	{ "SOAK", "four", { soak, soak, soak, soak }, .seconds = 150, .arg = 800, .slow = true },
	{ 0 }
};
