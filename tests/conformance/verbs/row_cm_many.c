/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Row CM: a thousand connections, one after the other: neither memory nor descriptors grow. */
#include "cmt.h"

#include <dirent.h>
#include <malloc.h>
#include <stdio.h>
#include <unistd.h>

enum {
	ROUNDS = 1000,
	SETTLED = 200, /* pools and tables have their size by then */
	SLACK = 512,   /* KiB: less than one for every other round */
};

/* Without what malloc keeps for later. */
static long resident_kib(struct ct *ct)
{
	malloc_trim(0);
	return ct_memory(ct, "Rss");
}

static int descriptors(void)
{
	DIR *d = opendir("/proc/self/fd");
	int n = 0;

	while (d && readdir(d))
		n++;
	if (d)
		closedir(d);
	return n;
}

/* The thread sanitizer keeps a history. */
#ifdef __SANITIZE_THREAD__
#define MEMORY_IS_OURS false
#else
#define MEMORY_IS_OURS CT_OWN_MEMORY
#endif

/* ports of numbers that rest before they are used again, 256 numbers each */
#define RESTING (2048 / 256)

/*
 * What the process holds, after so many rounds; after all of them it must
 * be the same, more or less.
 */
struct held {
	long kib;
	int fds;
};

static void look(struct ct *ct, struct held *held, int round)
{
	if (round == SETTLED)
		*held = (struct held){ resident_kib(ct), descriptors() };
	if (round != ROUNDS - 1)
		return;
	if (descriptors() > held->fds + RESTING)
		ct_fail(ct, "%d descriptors after %d connections, %d after %d", held->fds, SETTLED,
			descriptors(), ROUNDS);
	if (MEMORY_IS_OURS && resident_kib(ct) > held->kib + SLACK)
		ct_fail(ct, "%ld KiB after %d connections, %ld after %d", held->kib, SETTLED,
			resident_kib(ct), ROUNDS);
}

/* Connect, disconnect by one or the other, and destroy everything. */
static void once(struct cmt *c, int round)
{
	cmt_join(c);
	if ((round & 1) == c->ct->rank)
		CMT_OK(c->ct, rdma_disconnect(c->id));
	cmt_expect(c, RDMA_CM_EVENT_DISCONNECTED, c->id, 0);
	if ((round & 1) != c->ct->rank)
		CMT_OK(c->ct, rdma_disconnect(c->id));
	rdma_destroy_qp(c->id);
	CMT_OK(c->ct, rdma_destroy_id(c->id));
	c->id = NULL;
}

static void thousand(struct ct *ct)
{
	struct held held = { 0 };
	struct cmt c;

	cmt_serve(ct, &c);
	for (int i = 0; i < ROUNDS; i++) {
		once(&c, i);
		look(ct, &held, i);
	}
	ct_sync(ct, NULL);
	cmt_close(&c);
}

/* The same with calls that wait, each id with a channel of its own. */
static void thousand_synchronous(struct ct *ct)
{
	struct rdma_cm_id *id;
	struct held held = { 0 };
	struct cmt c;

	cmt_open(ct, &c);
	if (!ct->rank) {
		cmt_listen(&c, 8);
		CMT_OK(ct, rdma_migrate_id(c.listener, NULL));
	} else {
		cmt_find(&c);
	}
	ct_sync(ct, NULL);
	for (int i = 0; i < ROUNDS; i++) {
		if (ct->rank) {
			CMT_OK(ct, rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP));
			CMT_OK(ct, rdma_resolve_addr(id, NULL, cmt_at(&c), 2000));
			CMT_OK(ct, rdma_resolve_route(id, 2000));
			cmt_qp(&c, id);
			CMT_OK(ct, rdma_connect(id, NULL));
		} else {
			CMT_OK(ct, rdma_get_request(c.listener, &id));
			cmt_qp(&c, id);
			CMT_OK(ct, rdma_accept(id, NULL));
		}
		CMT_OK(ct, rdma_disconnect(id));
		rdma_destroy_ep(id);
		look(ct, &held, i);
	}
	ct_sync(ct, NULL);
	cmt_close(&c);
}

const struct ct_case vt_cm_many[] = {
	{ "CM", "thousand-connections", CT_TWO(thousand), .seconds = 120, .slow = true },
	{ "CM", "thousand-synchronous-connections", CT_TWO(thousand_synchronous), .seconds = 120 },
	{ 0 },
};
