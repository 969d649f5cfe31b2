/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Who has called, and is nobody's link yet: he may have said nothing at all, and holds a
 * descriptor. There are so many of them at most; then the one that waits longest of the host and
 * user that has most is closed, so that who calls many times shuts out only himself. The table's
 * hash has a key that nobody else knows.
 */
#include "base/files.h"
#include "base/macros.h"
#include "base/random.h"
#include "base/siphash.h"
#include "base/sockaddr.h"
#include "base/table.h"
#include "transport/tcp/tcp.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SHARE 4u /* part of the descriptors that they may have */
#define LEAST 16u
#define MOST 1024u

struct hd_tcp_caller {
	struct caller_key {
		uint64_t realm;
		uint8_t host[16];
	} key;
	TAILQ_HEAD(, hd_tcp_link) links; /* by age */
	struct hd_rank rank;		 /* how many */
	UT_hash_handle hh;
};

void hd_tcp_callers_open(struct hd_tcp_callers *callers)
{
	uint64_t max = hd_files_max() / SHARE;

	callers->max = max < MOST ? (unsigned)max : MOST;
	if (callers->max < LEAST)
		callers->max = LEAST;
	if (hd_random(callers->secret, sizeof(callers->secret)))
		/* a hash that can be chosen is a hash all the same */
		memset(callers->secret, 0, sizeof(callers->secret));
}

void hd_tcp_callers_close(struct hd_tcp_callers *callers)
{
	hd_ranks_close(&callers->ranks);
}

static struct hd_tcp_caller *caller_get(struct hd_tcp_callers *callers, struct hd_tcp_link *l)
{
	struct caller_key key = { .realm = hd_tcp_realm(&l->link) };
	struct hd_tcp_caller *caller;
	unsigned hash;

	if (!l->link.is_local)
		hd_sockaddr_host((const struct sockaddr *)&l->link.where, key.host);
	hash = (unsigned)hd_siphash(callers->secret, &key, sizeof(key));
	HASH_FIND_BYHASHVALUE(hh, callers->table, &key, sizeof(key), hash, caller);
	if (caller)
		return caller;
	caller = calloc(1, sizeof(*caller));
	if (!caller)
		return NULL;
	caller->key = key;
	TAILQ_INIT(&caller->links);
	HASH_ADD_BYHASHVALUE(hh, callers->table, key, sizeof(key), hash, caller);
	if (hd_is_in_table(&caller->hh))
		return caller;
	free(caller);
	return NULL;
}

void hd_tcp_caller_leave(struct hd_tcp_link *l)
{
	struct hd_tcp_callers *callers = &tcp_port_of(l)->callers;
	struct hd_tcp_caller *caller = l->caller;

	if (!caller)
		return;
	l->caller = NULL;
	TAILQ_REMOVE(&caller->links, l, caller_entry);
	callers->count--;
	hd_rank_down(&callers->ranks, &caller->rank);
	if (caller->rank.count)
		return;
	HASH_DEL(callers->table, caller);
	free(caller);
}

/*
 * The one that waits longest of who has most goes: one that has become a peer's
 * meanwhile is no caller any more.
 */
static void oldest_of_most(struct hd_tcp_callers *callers)
{
	struct hd_tcp_caller *most = hd_container(hd_ranks_most(&callers->ranks), struct hd_tcp_caller, rank);
	struct hd_tcp_link *l = TAILQ_FIRST(&most->links);

	if (hd_link_is_a_peers(&l->link))
		hd_tcp_caller_leave(l);
	else
		hd_tcp_link_down(l, -ECONNABORTED, "too many have called and said nothing yet");
}

int hd_tcp_caller_add(struct hd_tcp_link *l)
{
	struct hd_tcp_callers *callers = &tcp_port_of(l)->callers;

	if (!callers->ranks.with && hd_ranks_open(&callers->ranks, callers->max) < 0)
		return -ENOMEM;
	if (callers->count >= callers->max)
		oldest_of_most(callers);
	l->caller = caller_get(callers, l);
	if (!l->caller)
		return -ENOMEM;
	TAILQ_INSERT_TAIL(&l->caller->links, l, caller_entry);
	hd_rank_up(&callers->ranks, &l->caller->rank);
	callers->count++;
	return 0;
}
