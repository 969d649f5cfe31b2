/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* M14, M25: FI_FENCE, fi_msg(3) and fi_getinfo(3). */
#include "ct.h"

#include <stdlib.h>
#include <string.h>

#define BIG (1 << 20)

static const struct ct_want fencing = { .caps = FI_MSG | FI_TAGGED | FI_FENCE };

/* One message with flags to rank `to`, tagged or not; its context is its tag. */
static ssize_t send_flagged(struct ct_ep *e, int to, void *buf, size_t len, uint64_t tag, uint64_t flags)
{
	struct iovec iov = { buf, len };
	struct fi_msg m = { .msg_iov = &iov, .iov_count = 1, .addr = e->addr[to], .context = CTX(tag) };
	struct fi_msg_tagged t = {
		.msg_iov = &iov, .iov_count = 1, .addr = e->addr[to], .tag = tag, .context = CTX(tag)
	};

	return e->ct->cs->arg ? fi_sendmsg(e->ep, &m, flags) : fi_tsendmsg(e->ep, &t, flags);
}

static void next_is(struct ct_ep *e, uint64_t ctx)
{
	struct ct_comp c;

	ct_any(e, &c);
	CT_EQ(e->ct, c.err, 0);
	CT_EQ(e->ct, (uintptr_t)c.ctx, ctx);
}

/*
 * A long message that nobody has asked for is not complete: what is fenced, and what comes after
 * it, must not arrive before it has been taken.
 */
static void fence(struct ct *ct)
{
	char *big = ct_alloc(ct, BIG), small[3][64];
	struct ct_want want = fencing;
	struct ct_dom dom;
	struct ct_ep e;

	want.msg_order = FI_ORDER_SAS;
	ct_start(ct, &dom, &e, &want);
	if (!ct->rank) {
		ct_fill(big, BIG, 1);
		ct_fill(small[0], 64, 2);
		ct_fill(small[1], 64, 3);
		ct_tsend(&e, 1, big, BIG, 1, CTX(1));
		CT_POST(&e, send_flagged(&e, 1, small[0], 64, 2, FI_FENCE | FI_INJECT | FI_COMPLETION));
		memset(small[0], 0, 64);
		CT_POST(&e, send_flagged(&e, 1, small[1], 64, 3, FI_COMPLETION));
		ct_quiet(&e, 50, "a fence");
		ct_sync(ct, &e);
		next_is(&e, 1);
		next_is(&e, 2);
		next_is(&e, 3);
	} else {
		for (uint64_t i = 0; i < 2; i++) {
			if (ct->cs->arg)
				ct_recv(&e, small[i], 64, CTX(2 + i));
			else
				ct_trecv(&e, small[i], 64, 2 + i, 0, CTX(2 + i));
		}
		ct_quiet(&e, 50, "messages behind a fence");
		ct_sync(ct, &e);
		ct_trecv(&e, big, BIG, 1, 0, CTX(1));
		next_is(&e, 1);
		next_is(&e, 2);
		next_is(&e, 3);
		ct_verify(ct, big, BIG, 1, "before the fence");
		ct_verify(ct, small[0], 64, 2, "fenced");
		ct_verify(ct, small[1], 64, 3, "after the fence");
	}
	free(big);
	ct_finish(&e);
}

/*
 * Only the same remote endpoint is meant: rank 2 gets its fenced message
 * while rank 1 takes nothing.
 */
static void fence_one_peer(struct ct *ct)
{
	char *big = ct_alloc(ct, BIG), small[64];
	struct ct_dom dom;
	struct ct_ep e;

	ct_start(ct, &dom, &e, &fencing);
	if (!ct->rank) {
		ct_tsend(&e, 1, big, BIG, 1, CTX(1));
		CT_POST(&e, send_flagged(&e, 2, small, 64, 2, FI_FENCE | FI_COMPLETION));
		ct_done(&e, CTX(2));
	} else if (ct->rank == 2) {
		ct_trecv(&e, small, 64, 2, 0, CTX(2));
		CT_EQ(ct, ct_done(&e, CTX(2)), 64);
	}
	ct_sync(ct, &e);
	if (ct->rank == 1) {
		ct_trecv(&e, big, BIG, 1, 0, CTX(1));
		CT_EQ(ct, ct_done(&e, CTX(1)), BIG);
	} else if (!ct->rank) {
		ct_done(&e, CTX(1));
	}
	free(big);
	ct_finish(&e);
}

/*
 * Every message fenced, of all sizes: nothing is lost, and they come in order
 * whatever order is promised.
 */
static void fence_all(struct ct *ct)
{
	static const size_t lens[] = { 0, 8, 4000, 20000, 100000, 600000 };
	char *buf = ct_alloc(ct, 600000);
	struct ct_dom dom;
	struct ct_ep e;
	int i;

	ct_start(ct, &dom, &e, &fencing);
	for (i = 0; i < 300; i++) {
		size_t len = lens[ct_range(ct, CT_COUNT(lens))];

		if (!ct->rank) {
			CT_POST(&e, send_flagged(&e, 1, buf, len, 5, FI_FENCE | FI_COMPLETION));
			continue;
		}
		if (ct->cs->arg)
			ct_recv(&e, buf, 600000, CTX(1));
		else
			ct_trecv(&e, buf, 600000, 5, 0, CTX(1));
		CT_EQ(ct, ct_done(&e, CTX(1)), len);
	}
	for (i = 0; !ct->rank && i < 300; i++)
		ct_done(&e, CTX(5));
	free(buf);
	ct_finish(&e);
}

/* An endpoint that was not opened with the capability has no such flag. */
static void fence_not_asked_for(struct ct *ct)
{
	struct ct_want want = { .caps = FI_MSG | FI_TAGGED };
	struct ct_dom dom;
	struct ct_ep e;
	char buf[8] = "";

	ct_start(ct, &dom, &e, &want);
	if (dom.info->caps & FI_FENCE)
		ct_unsupported(ct, "FI_FENCE comes without being asked for");
	if (!ct->rank)
		CT_REFUSED(ct, send_flagged(&e, 1, buf, 8, 1, FI_FENCE));
	ct_ping(&e, !ct->rank);
	ct_finish(&e);
}

/* Message n of 5: the first two are long; each is in a place of its own. */
static char *place(char *room, uint64_t n)
{
	return room + (n - 1) * BIG;
}

static size_t size_of(uint64_t n)
{
	return n < 3 ? BIG : 64;
}

static void came(struct ct_ep *e, char *room, uint64_t n)
{
	CT_EQ(e->ct, ct_done(e, CTX(n)), size_of(n));
	ct_verify(e->ct, place(room, n), size_of(n), n, "around two fences");
}

/* Whether anything of message n and what is behind it has come. */
static void not_yet(struct ct_ep *e, char *room, uint64_t n)
{
	ct_idle(e, 50);
	for (size_t i = e->head; i < e->tail; i++)
		CT_TRUE(e->ct, (uintptr_t)e->stash[i].ctx < n);
	for (; e->ct->rank && n <= 5; n++)
		CT_TRUE(e->ct, ct_untouched(place(room, n), size_of(n), 0));
}

static void send_five(struct ct_ep *e, char *room)
{
	for (uint64_t n = 1; n <= 5; n++) {
		const bool fenced = n == 2 || n == 4 || (n == 3 && e->ct->cs->arg);
		struct ct_one o = { .buf = place(room, n),
				    .len = size_of(n),
				    .ctx = CTX(n),
				    .to = 1,
				    .flags = FI_COMPLETION,
				    .tagged = true,
				    .tag = n };

		o.flags |= fenced ? FI_FENCE : 0;
		ct_fill(o.buf, o.len, n);
		CT_POST(e, ct_send_one(e, &o));
	}
}

/*
 * The long ones complete when they are asked for. 2 and 4 are fenced, and where arg says so 3 is
 * too: the first fence keeps 2 to 5 behind 1, the second 4 and 5 behind 2 and 3. Whether 3 waits
 * for 2 without a fence of its own is a matter of order, and not looked at.
 */
static void two_fences(struct ct *ct)
{
	char *room = ct_alloc(ct, (size_t)5 * BIG);
	struct ct_dom dom;
	struct ct_ep e;

	ct_start(ct, &dom, &e, &fencing);
	if (!ct->rank)
		send_five(&e, room);
	for (uint64_t n = 3; ct->rank && n <= 5; n++)
		ct_trecv(&e, place(room, n), 64, n, 0, CTX(n));
	not_yet(&e, room, 1);
	for (uint64_t n = 1; n <= 2; n++) {
		ct_sync(ct, &e);
		if (ct->rank)
			ct_trecv(&e, place(room, n), BIG, n, 0, CTX(n));
		if (ct->rank)
			came(&e, room, n);
		else
			ct_done(&e, CTX(n));
		if (n == 1)
			not_yet(&e, room, ct->cs->arg ? 3 : 4);
	}
	for (uint64_t n = 3; n <= 5; n++) {
		if (ct->rank)
			came(&e, room, n);
		else
			ct_done(&e, CTX(n));
	}
	free(room);
	ct_finish(&e);
}

/* Two fences for one peer, while another, with two of its own, takes everything. */
static void fences_for_two(struct ct *ct)
{
	char *room = ct_alloc(ct, (size_t)5 * BIG);
	struct ct_dom dom;
	struct ct_ep e;

	ct_start(ct, &dom, &e, &fencing);
	for (uint64_t n = 1; !ct->rank && n <= 8; n++) {
		struct ct_one o = { .buf = room,
				    .len = n < 3 ? BIG : 64,
				    .ctx = CTX(n),
				    .to = n % 2 ? 2 : 1,
				    .flags = FI_COMPLETION | (n > 2 ? FI_FENCE : 0),
				    .tagged = true,
				    .tag = n };

		CT_POST(&e, ct_send_one(&e, &o));
	}
	for (uint64_t n = 1; ct->rank && n <= 8; n++)
		if (n % 2 == (ct->rank == 2) && (ct->rank == 2 || n > 2))
			ct_trecv(&e, place(room, 1 + n / 2), BIG, n, 0, CTX(n));
	for (uint64_t n = 1; ct->rank != 1 && n <= 8; n += 2)
		ct_done(&e, CTX(n));
	ct_idle(&e, 20);
	CT_TRUE(ct, e.head == e.tail); /* the first one has nothing */
	ct_sync(ct, &e);
	if (ct->rank == 1)
		ct_trecv(&e, place(room, 1), BIG, 2, 0, CTX(2));
	for (uint64_t n = 2; ct->rank != 2 && n <= 8; n += 2)
		ct_done(&e, CTX(n));
	free(room);
	ct_finish(&e);
}

const struct ct_case ct_fence[] = {
	{ "M14", "fence", CT_TWO(fence) },
	{ "M14", "fence-untagged", CT_TWO(fence), .arg = 1 },
	{ "M14", "fence-one-peer", { fence_one_peer, fence_one_peer, fence_one_peer } },
	{ "M14", "fence-all", CT_TWO(fence_all) },
	{ "M14", "fence-all-untagged", CT_TWO(fence_all), .arg = 1 },
	{ "M14", "fence-not-asked-for", CT_TWO(fence_not_asked_for) },
	{ "M25", "two-fences", CT_TWO(two_fences) },
	{ "M25", "two-fences-and-one-between", CT_TWO(two_fences), .arg = 1 },
	{ "M25", "two-fences-for-each-of-two", CT_THREE(fences_for_two) },
	{ 0 },
};
