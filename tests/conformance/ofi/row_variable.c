/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * M18, T9: variable-length messages, «Variable Length Messages» of fi_msg(3) and fi_tagged(3). What
 * they share with buffered receives is tested by the same functions, in row_buffered.c.
 */
#include "buffered.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define TILE ((size_t)16 << 20)
#define BEYOND (((size_t)4 << 30) + TILE + 12345) /* more than 32 bits count */
#define MIN 64

/* Address space for `len` bytes, all of it the same TILE bytes of memory over and over. */
static char *tiled(struct ct *ct, size_t len)
{
	size_t i, n = (len + TILE - 1) / TILE;
	int fd = memfd_create("tile", 0);
	char *at = mmap(NULL, n * TILE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	CT_TRUE(ct, fd >= 0 && at != MAP_FAILED);
	CT_OK(ct, ftruncate(fd, (off_t)TILE));
	for (i = 0; i < n; i++)
		CT_TRUE(ct, mmap(at + i * TILE, TILE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd,
				 0) != MAP_FAILED);
	close(fd);
	return at;
}

/*
 * Longer than an endpoint's max_msg_size, which the program has set small, and longer
 * than 4 GiB: every offset of the source ends up at the same offset of the destination,
 * or the tiles would not match.
 */
static void beyond(struct ct *ct)
{
	struct ct_want want = bf_want(ct);
	char *buf = tiled(ct, BEYOND);
	struct fi_recv_context *context;
	struct ct_dom dom;
	struct ct_comp c;
	struct ct_ep e;

	bf_start(ct, &dom, &e, &want, MIN, MIN);
	if (!ct->rank) {
		ct_fill(buf, TILE, 7);
		bf_send(&e, 1, buf, BEYOND, 1, CTX(1));
		ct_done(&e, CTX(1));
	} else {
		bf_expect(&e, CTX(1));
		context = bf_told(&e, CTX(1), &c);
		CT_EQ(ct, c.len, BEYOND);
		CT_TRUE(ct, c.flags & FI_MORE);
		ct_verify(ct, c.buf, MIN, 7, "the beginning");
		bf_claim(&e, context, buf, BEYOND, CTX(2), &c);
		CT_EQ(ct, c.err, 0);
		CT_EQ(ct, c.len, BEYOND);
		ct_verify(ct, buf, TILE, 7, "beyond 4 GiB");
	}
	ct_finish(&e);
}

/* A long one is cut to a short buffer, and a long one is dropped: neither has to travel. */
static void cut_and_dropped(struct ct *ct)
{
	struct ct_want want = bf_want(ct);
	char *buf = tiled(ct, BEYOND), small[1000];
	struct ct_dom dom;
	struct ct_comp c;
	struct ct_ep e;
	int i;

	bf_start(ct, &dom, &e, &want, MIN, MIN);
	for (i = 0; i < 2; i++) {
		if (!ct->rank) {
			ct_fill(buf, TILE, 8);
			bf_send(&e, 1, buf, BEYOND, 1, CTX(1));
			ct_done(&e, CTX(1));
			continue;
		}
		bf_expect(&e, CTX(1));
		bf_told(&e, CTX(1), &c);
		CT_EQ(ct, c.len, BEYOND);
		if (i) {
			bf_discard(&e, c.ctx);
			continue;
		}
		bf_claim(&e, c.ctx, small, sizeof(small), CTX(2), &c);
		CT_EQ(ct, c.err, FI_ETRUNC);
		CT_EQ(ct, c.olen, BEYOND - sizeof(small));
		ct_verify(ct, small, sizeof(small), 8, "cut");
	}
	ct_finish(&e);
}

/* max_msg_size bounds other messages, and not these. */
static void over_max_msg_size(struct ct *ct)
{
	bool variable = ct->cs->arg & BF_VARIABLE;
	struct ct_want want = { .caps = FI_MSG | FI_TAGGED | (variable ? FI_VARIABLE_MSG : 0),
				.disabled = true };
	char *buf = ct_alloc(ct, 100000);
	struct ct_dom dom;
	struct ct_comp c;
	struct ct_ep e;

	ct_open(ct, &dom, &want);
	dom.info->ep_attr->max_msg_size = 50000;
	ct_ep_open(&dom, &e);
	ct_ep_enable(&e);
	ct_join(&e);
	if (!variable) {
		CT_EQ(ct, fi_send(e.ep, buf, 50001, NULL, e.addr[!ct->rank], CTX(1)), -FI_EMSGSIZE);
	} else if (!ct->rank) {
		bf_send(&e, 1, buf, 100000, 0, CTX(1));
		ct_done(&e, CTX(1));
	} else {
		bf_claim(&e, bf_told(&e, NULL, &c), buf, 100000, CTX(2), &c);
		CT_EQ(ct, c.err, 0);
		CT_EQ(ct, c.len, 100000);
	}
	free(buf);
	ct_finish(&e);
}

/* Who asks for it gets it; there is no posted buffer that could take many messages then. */
static void capability(struct ct *ct)
{
	struct ct_want want = { .caps = FI_MSG | FI_VARIABLE_MSG };
	struct fi_info *hints = ct_hints(ct, &want), *info;

	if (ct_getinfo(ct, hints, &info))
		ct_unsupported(ct, "FI_VARIABLE_MSG is not offered");
	CT_TRUE(ct, info->caps & FI_VARIABLE_MSG);
	CT_TRUE(ct, !(info->caps & FI_MULTI_RECV));
	fi_freeinfo(info);
	hints->caps = FI_MSG;
	CT_OK(ct, ct_getinfo(ct, hints, &info));
	CT_TRUE(ct, !(info->caps & FI_VARIABLE_MSG));
	fi_freeinfo(info);
	fi_freeinfo(hints);
}

const struct ct_case ct_variable[] = {
	{ "M18", "variable-capability", { capability } },
	{ "M18", "max-msg-size", CT_TWO(over_max_msg_size) },
	{ "M18", "variable-max-msg-size", CT_TWO(over_max_msg_size), .arg = BF_VARIABLE },
	{ "M18", "variable-beyond-4GiB", CT_TWO(beyond), .arg = BF_VARIABLE, .seconds = 120, .slow = true },
	{ "T9", "variable-beyond-4GiB-tagged", CT_TWO(beyond), .arg = BF_VARIABLE | BF_TAGGED, .seconds = 120,
	  .slow = true },
	{ "M18", "variable-cut-and-dropped", CT_TWO(cut_and_dropped), .arg = BF_VARIABLE },
	{ "T9", "variable-cut-and-dropped-tagged", CT_TWO(cut_and_dropped), .arg = BF_VARIABLE | BF_TAGGED },
	{ 0 },
};
