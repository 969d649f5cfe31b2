/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Connections that end: fi_shutdown(3), fi_close(3), and processes that die. Rank
 * 0 listens, rank 1 calls.
 */
#include "ends.h"

#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A send that was under way: the reason depends on what comes first. */
static void broken_off(struct ct_ep *e, void *ctx)
{
	struct ct_comp c;

	ct_of(e, ctx, &c);
	CT_TRUE(e->ct, c.err > 0);
}

/* ---- parting --------------------------------------------------------------------------------- */

static void shut_down(struct ct *ct)
{
	char in[3][16] = { "" }, *big = ct_alloc(ct, 1 << 20);
	struct end d;
	int i;

	end_join(ct, &d);
	for (i = 0; i < 3; i++)
		ct_recv(&d.e, in[i], 16, CTX(10 + i));
	if (!ct->rank) /* nobody takes it */
		CT_POST(&d.e, fi_tsend(d.e.ep, big, 1 << 20, NULL, 0, 1, CTX(2)));
	ct_sync(ct, &d.e);
	if (ct->rank) {
		CT_POST(&d.e, fi_send(d.e.ep, "last words", 10, NULL, 0, CTX(1)));
		ct_done(&d.e, CTX(1));
		CT_REFUSED(ct, fi_shutdown(d.e.ep, 1));
		CT_OK(ct, fi_shutdown(d.e.ep, 0));
		/* one for each endpoint, whoever it was */
		ct_expect(ct, d.eq, FI_SHUTDOWN, &d.e.ep->fid);
	} else {
		ct_done(&d.e, CTX(10));
		CT_TRUE(ct, !strcmp(in[0], "last words"));
		ct_expect(ct, d.eq, FI_SHUTDOWN, &d.e.ep->fid);
		end_cancelled(&d.e, CTX(2));
	}
	for (i = !ct->rank; i < 3; i++)
		end_cancelled(&d.e, CTX(10 + i));
	CT_EQ(ct, fi_send(d.e.ep, in[0], 8, NULL, 0, NULL), -FI_ENOTCONN);
	CT_EQ(ct, fi_tinject(d.e.ep, in[0], 8, 0, 1), -FI_ENOTCONN);
	CT_OK(ct, fi_shutdown(d.e.ep, 0)); /* who hears of the end may answer it */
	end_no_event(&d, 50);
	ct_quiet(&d.e, 20, "after the end");
	ct_sync(ct, &d.e);
	end_finish(&d);
	free(big);
}

static void killed(struct ct *ct)
{
	char in[2][16], *big = ct_alloc(ct, 4 << 20);
	struct end d;

	end_join(ct, &d);
	if (ct->rank) {
		ct_doomed(ct);
		ct_put(ct, 0, "k", 1);
		for (;;)
			pause();
	}
	ct_recv(&d.e, in[0], 16, CTX(1));
	ct_trecv(&d.e, in[1], 16, 5, 0, CTX(2));
	CT_POST(&d.e, fi_send(d.e.ep, big, 4 << 20, NULL, 0, CTX(3)));
	ct_get(ct, &d.e, 1, in[0], 1);
	CT_OK(ct, kill(ct->pid[1], SIGKILL));
	ct_expect(ct, d.eq, FI_SHUTDOWN, &d.e.ep->fid);
	end_cancelled(&d.e, CTX(1));
	end_cancelled(&d.e, CTX(2));
	broken_off(&d.e, CTX(3));
	CT_EQ(ct, fi_send(d.e.ep, big, 8, NULL, 0, NULL), -FI_ENOTCONN);
	end_finish(&d);
	free(big);
}

/* Closing with everything outstanding: silently here, FI_SHUTDOWN and errors there. */
static void close_outstanding(struct ct *ct)
{
	char in[16][32], *big = ct_alloc(ct, 1 << 20);
	struct end d;
	int i;

	end_join(ct, &d);
	for (i = 0; i < 16; i++)
		ct_trecv(&d.e, in[i], 32, 100 + (uint64_t)i, 0, CTX(100 + i));
	CT_POST(&d.e, fi_send(d.e.ep, big, 1 << 20, NULL, 0, CTX(1)));
	ct_sync(ct, &d.e);
	if (!ct->rank) {
		ct_expect(ct, d.eq, FI_SHUTDOWN, &d.e.ep->fid);
		broken_off(&d.e, CTX(1));
		for (i = 0; i < 16; i++)
			end_cancelled(&d.e, CTX(100 + i));
	}
	end_finish(&d);
	free(big);
}

static int descriptors(void)
{
	int n = 0, fd;
	char path[32];

	for (fd = 0; fd < 256; fd++) {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		n += access(path, F_OK) == 0;
	}
	return n;
}

/* One or the other leaves first; rank 0 must have heard of it before the next call. */
static void part(struct end *d, int i)
{
	char c = 'P';

	if (d->ct->rank && i & 1) {
		CT_OK(d->ct, fi_shutdown(d->e.ep, 0));
		if (i & 2) /* what is not read goes with the endpoint */
			ct_expect(d->ct, d->eq, FI_SHUTDOWN, &d->e.ep->fid);
		ct_get(d->ct, &d->e, 0, &c, 1);
	} else if (!d->ct->rank && i & 1) {
		ct_expect(d->ct, d->eq, FI_SHUTDOWN, &d->e.ep->fid);
		ct_put(d->ct, 1, &c, 1);
	} else if (d->ct->rank) {
		ct_expect(d->ct, d->eq, FI_SHUTDOWN, &d->e.ep->fid);
	}
	end_close_ep(&d->e);
}

/*
 * KiB of our own that are held; a link's rings are of a fixed size, and are touched as they fill.
 * What malloc keeps for later is given back first: how much that is depends on how much of the
 * connection before is still there when the next begins.
 */
static long held(struct ct *ct)
{
	malloc_trim(0);
	return ct_memory(ct, "Anonymous");
}

/* A thousand connections, one after the other, leave nothing behind. */
static void thousand(struct ct *ct)
{
	struct fi_info *info;
	struct end d;
	int i, before = 0;
	long kib = 0;

	end_open_dom(ct, &d);
	for (i = 0; i < 1000; i++) {
		if (ct->rank) {
			end_open_ep(&d, NULL, &d.e);
			CT_OK(ct, fi_connect(d.e.ep, d.name, NULL, 0));
		} else {
			info = end_request(&d);
			end_open_ep(&d, info, &d.e);
			fi_freeinfo(info);
			CT_OK(ct, fi_accept(d.e.ep, NULL, 0));
		}
		ct_expect(ct, d.eq, FI_CONNECTED, &d.e.ep->fid);
		part(&d, i);
		if (i == 10)
			before = descriptors();
		if (i == 100)
			kib = held(ct);
	}
	/* not even 150 bytes for each of the 900 after that */
	if (CT_OWN_MEMORY && held(ct) > kib + 128)
		ct_fail(ct, "%ld KiB after 100 connections, %ld after 1000", kib, held(ct));
	CT_TRUE(ct, descriptors() <= before + 4);
	ct_sync(ct, NULL);
	end_close_dom(&d);
}

const struct ct_case ct_parting[] = { { "CM", "shutdown", { shut_down, shut_down } },
				      { "CM", "killed", { killed, killed } },
				      { "CM", "close-outstanding", { close_outstanding, close_outstanding } },
				      { "CM", "thousand", { thousand, thousand }, .seconds = 120 },
				      { 0 } };
