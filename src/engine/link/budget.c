/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* See budget.h. */
#include "base/clock.h"
#include "base/config.h"
#include "base/files.h"
#include "base/minus.h"
#include "base/realm.h"
#include "base/sockaddr.h"
#include "engine/link/link.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define EIGHTHS 8u

/* Of HEDDLE_UNEXPECTED_MAX. */
#define ONE_GROWS 2u
#define ONE_BEGINS 4u
#define ALL_GROW 4u
#define ALL_BEGIN 6u
#define OURS_GROWS 7u

/* Of the descriptors. */
#define ONE_OPENS 4u
#define ALL_OPEN 5u

#define OURS UINT64_MAX /* in the place of a realm: whoever has our key, or is of our user */

/* ---- what is asked of the kernel for them ---------------------------------------------------- */

#define ASK_NS (50 * HD_NS_PER_MS) /* at first */
#define ASK_PART 20u

static void asking_pay(struct hd_asking *a, uint64_t now)
{
	a->ns = hd_minus(a->ns, (now - a->at) / ASK_PART);
	a->at = now;
}

bool hd_budget_ask(struct hd_budget *b, uint64_t now)
{
	asking_pay(&b->asking, now);
	return b->asking.ns < ASK_NS;
}

void hd_budget_asked(struct hd_budget *b, uint64_t since)
{
	b->asking.ns += hd_now_ns() - since;
}

/* Who goes and comes again has not paid by that. */
static void asking_leave(struct hd_budget *b)
{
	struct hd_asking *left = &hd_links(b->node)->asked;
	uint64_t now = hd_now_ns();

	asking_pay(&b->asking, now);
	asking_pay(left, now);
	if (left->ns < b->asking.ns)
		*left = b->asking;
}

/* ---- whose it is ----------------------------------------------------------------------------- */

static void budget_key_of(const struct hd_link *link, struct hd_budget_key *key)
{
	*key = (struct hd_budget_key){ .realm = OURS };
	if (!link || link->is_sealed || hd_realm_is_own(link->realm))
		return;
	key->realm = link->realm;
	if (key->realm == HD_REALM_FAR)
		hd_sockaddr_host((const struct sockaddr *)&link->where, key->host);
}

static struct hd_budget *budget_find(struct hd_node *node, const struct hd_budget_key *key)
{
	unsigned hash = hd_links_hash(node, key, sizeof(*key));
	struct hd_budget *b;

	HASH_FIND_BYHASHVALUE(hh, hd_links(node)->budgets, key, sizeof(*key), hash, b);
	if (b)
		return b;
	b = calloc(1, sizeof(*b));
	if (!b)
		return NULL;
	b->node = node;
	b->key = *key;
	b->is_ours = key->realm == OURS;
	b->asking = hd_links(node)->asked;
	TAILQ_INIT(&b->gone);
	HASH_ADD_BYHASHVALUE(hh, hd_links(node)->budgets, key, sizeof(*key), hash, b);
	if (hd_is_in_table(&b->hh))
		return b;
	free(b);
	return NULL;
}

struct hd_share *hd_share_open(struct hd_node *node, const struct hd_link *link)
{
	struct hd_share *share = calloc(1, sizeof(*share));
	struct hd_budget_key key;

	if (!share)
		return NULL;
	budget_key_of(link, &key);
	share->budget = budget_find(node, &key);
	if (!share->budget) {
		free(share);
		return NULL;
	}
	hd_ring_init(&share->left);
	share->refs = 1;
	/* of a process of this host it is watched whether it lives */
	share->files = link && link->is_local ? 2 : 1;
	share->budget->shares++;
	return share;
}

static void share_unref(struct hd_share *share)
{
	struct hd_budget *b = share->budget;

	if (--share->refs)
		return;
	if (share->may_go) {
		TAILQ_REMOVE(&b->gone, share, entry);
		TAILQ_REMOVE(&hd_links(b->node)->gone, share, of_all);
	}
	free(share);
	if (--b->shares)
		return;
	assert(!b->units && !b->files);
	asking_leave(b);
	HASH_DEL(hd_links(b->node)->budgets, b);
	free(b);
}

/* ---- how much it is -------------------------------------------------------------------------- */

void hd_budget_take(struct hd_budget *b, uint32_t units)
{
	hd_credit_reserve(b->node, units);
	if (b->is_ours)
		return;
	b->units += units;
	hd_links(b->node)->others_units += units;
}

void hd_budget_give(struct hd_budget *b, uint32_t units)
{
	hd_credit_release(b->node, units);
	if (b->is_ours)
		return;
	b->units = (uint32_t)hd_minus(b->units, units);
	hd_links(b->node)->others_units = (uint32_t)hd_minus(hd_links(b->node)->others_units, units);
}

/* What is left of so many eighths of the store when this has been taken. */
static uint32_t left_of(const struct hd_node *node, uint32_t eighths, uint32_t taken)
{
	uint64_t limit = (uint64_t)hd_links(node)->window_max * eighths / EIGHTHS;

	if (limit < hd_credit_first_window(node))
		limit = hd_credit_first_window(node);
	return (uint32_t)hd_minus(limit, taken);
}

static uint32_t least(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

uint32_t hd_budget_room(const struct hd_budget *b)
{
	const struct hd_links *links = hd_links(b->node);
	uint32_t room = hd_credit_room(b->node);

	if (b->is_ours)
		return least(room, left_of(b->node, OURS_GROWS, links->window_units));
	room = least(room, left_of(b->node, ALL_GROW, links->others_units));
	return least(room, left_of(b->node, ONE_GROWS, b->units));
}

uint32_t hd_budget_cast_room(const struct hd_node *node)
{
	return left_of(node, ALL_BEGIN, hd_links(node)->window_units);
}

bool hd_budget_keep(struct hd_budget *b, uint32_t units)
{
	if (b->is_ours)
		return true;
	if (hd_budget_room(b) < units)
		return false;
	hd_budget_take(b, units);
	return true;
}

void hd_budget_unkeep(struct hd_budget *b, uint32_t units)
{
	if (!b->is_ours)
		hd_budget_give(b, units);
}

/* ---- a new peer ------------------------------------------------------------------------------ */

/* What the oldest has left gives way, unless it has not been there for long. */
static bool gives_way(struct hd_share *old)
{
	uint64_t ns = hd_config_ms(HD_SET_ANSWER_TIMEOUT) * HD_NS_PER_MS;
	struct hd_links *links;

	if (!old || hd_now_ns() - old->since < ns)
		return false;
	links = hd_links(old->budget->node);
	TAILQ_REMOVE(&old->budget->gone, old, entry);
	TAILQ_REMOVE(&links->gone, old, of_all);
	old->may_go = false;
	HD_LOG_EVERY_MS(
		1000, HD_LOG_WARN,
		"messages of a peer that is gone have waited for more than %u ms and are dropped: others come, and "
		"HEDDLE_UNEXPECTED_MAX is spent: raise it, or post receives in time",
		(unsigned)(ns / HD_NS_PER_MS));
	links->observers->forgo(old);
	return true;
}

static bool one_has_room(const struct hd_budget *b, uint32_t units)
{
	return left_of(b->node, ONE_BEGINS, b->units) >= units;
}

static bool all_have_room(const struct hd_budget *b, uint32_t units)
{
	return hd_credit_room(b->node) >= units &&
	       (b->is_ours || left_of(b->node, ALL_BEGIN, hd_links(b->node)->others_units) >= units);
}

static bool files_left(const struct hd_share *share)
{
	uint64_t max = hd_files_max();

	return share->budget->files + share->files <= max / EIGHTHS * ONE_OPENS &&
	       hd_links(share->budget->node)->others_files + share->files <= max / EIGHTHS * ALL_OPEN;
}

bool hd_share_admit(struct hd_share *share, uint32_t units, bool called)
{
	struct hd_budget *b = share->budget;
	struct hd_links *links = hd_links(b->node);
	bool bounded = !b->is_ours && !called;

	if (bounded && !files_left(share))
		return false;
	while (bounded && !one_has_room(b, units))
		if (!gives_way(TAILQ_FIRST(&b->gone)))
			return false;
	while (bounded ? !all_have_room(b, units) : hd_credit_room(b->node) < units)
		if (!gives_way(TAILQ_FIRST(&links->gone)))
			return false;
	hd_budget_take(b, units);
	if (b->is_ours)
		share->files = 0;
	b->files += share->files;
	links->others_files += share->files;
	hd_budget_check(b);
	return true;
}

/* ---- a peer goes ----------------------------------------------------------------------------- */

void hd_share_close(struct hd_share *share, uint32_t units)
{
	struct hd_budget *b = share->budget;
	struct hd_links *links = hd_links(b->node);

	hd_budget_give(b, units);
	b->files -= share->files;
	links->others_files -= share->files;
	share->since = hd_now_ns();
	if (!b->is_ours && !hd_ring_is_empty(&share->left)) {
		share->may_go = true;
		TAILQ_INSERT_TAIL(&b->gone, share, entry);
		TAILQ_INSERT_TAIL(&links->gone, share, of_all);
	}
	hd_budget_check(b);
	share_unref(share);
}

void hd_share_release(struct hd_share *share, uint32_t units)
{
	hd_budget_give(share->budget, units);
	share_unref(share);
}
