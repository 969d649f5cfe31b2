/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Memory regions: a key and what it opens. Registering touches no page. Keys that we choose are
 * random, so that none is guessed, and one that has been closed is not given out again soon
 * even where keys are short.
 */
#include "engine/mr/mr.h"

#include "base/random.h"
#include "engine/core/core.h"
#include "engine/link/link.h"
#include "engine/mr/shown.h"
#include "engine/mr/window.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* attempts at a key that is free: enough for one byte of them, nearly all in use */
#define DRAWS 4096

/*
 * Keys are ours or our program's, no peer's, and found for each one-sided operation: one
 * multiplication is enough.
 */
static unsigned key_hash(uint64_t key)
{
	return (unsigned)((key * UINT64_C(0x9e3779b97f4a7c15)) >> 32);
}

static struct hd_mr *mr_find(const struct hd_node *node, uint64_t key)
{
	struct hd_mr *mr;

	HASH_FIND_BYHASHVALUE(hh, hd_regions(node)->mr_table, &key, sizeof(key), key_hash(key), mr);
	return mr;
}

/* ---- keys ------------------------------------------------------------------------------------ */

static bool key_rests(const struct hd_node *node, uint64_t key)
{
	for (int i = 0; i < HD_MR_REST; i++)
		if (hd_regions(node)->mr_rest[i] == key)
			return true;
	return false;
}

static void key_retire(struct hd_node *node, uint64_t key)
{
	hd_regions(node)->mr_rest[hd_regions(node)->mr_rest_next++ % HD_MR_REST] = key;
}

bool hd_mr_key_is_free(const struct hd_node *node, uint64_t key)
{
	return !key_rests(node, key) && !mr_find(node, key) && !hd_window_owns(node, key);
}

/* 0 and all ones are never drawn: they mean something to the interfaces above. */
int hd_mr_key_draw(struct hd_node *node, unsigned bytes, uint64_t *key)
{
	uint64_t mask = bytes && bytes < sizeof(*key) ? (UINT64_C(1) << 8 * bytes) - 1 : UINT64_MAX;

	for (int i = 0; i < DRAWS; i++) {
		if (hd_random(key, sizeof(*key)))
			return -EIO;
		*key &= mask & ~(uint64_t)HD_WINDOW_KEYS;
		if (*key && *key != mask && hd_mr_key_is_free(node, *key))
			return 0;
	}
	return -ENOSPC;
}

struct hd_mr *hd_mr_at(struct hd_node *node, uint64_t key)
{
	return mr_find(node, key);
}

static int mr_table_add(struct hd_mr *mr)
{
	HASH_ADD_BYHASHVALUE(hh, hd_regions(mr->node)->mr_table, key, sizeof(mr->key), key_hash(mr->key), mr);
	return hd_is_in_table(&mr->hh) ? 0 : -ENOMEM;
}

static void mr_table_leave(struct hd_mr *mr)
{
	if (hd_is_in_table(&mr->hh)) /* not where rekeying it failed */
		HASH_DEL(hd_regions(mr->node)->mr_table, mr);
}

int hd_mr_rekey(struct hd_mr *mr, uint64_t key)
{
	mr_table_leave(mr);
	mr->key = key;
	return mr_table_add(mr);
}

int hd_mr_rename(struct hd_mr *mr, uint64_t key)
{
	int rc;

	hd_assert_locked(mr->node);
	if (mr_find(mr->node, key) || hd_window_owns(mr->node, key))
		return -ENOKEY;
	hd_regions(mr->node)->keys_chosen |= (key & HD_WINDOW_KEYS) != 0;
	rc = hd_mr_rekey(mr, key);
	hd_mr_show(mr);
	return rc;
}

/* ---- the node's ------------------------------------------------------------------------------ */

void hd_regions_init(struct hd_node *node, bool (*leaves)(struct hd_mr *from, struct hd_mr *to))
{
	hd_regions(node)->mr_leaves = leaves;
}

/* ---- life ------------------------------------------------------------------------------------ */

/* Who may reach it. */
static int auth_take(struct hd_mr *mr, const struct hd_mr_attr *attr)
{
	if (attr->auth_count) {
		mr->keys = reallocarray(NULL, attr->auth_count, sizeof(*mr->keys));
		if (!mr->keys)
			return -ENOMEM;
		memcpy(mr->keys, attr->auth, attr->auth_count * sizeof(*mr->keys));
		mr->key_count = attr->auth_count;
	}
	mr->from = attr->from;
	if (mr->from)
		hd_dest_ref(mr->from);
	return 0;
}

int hd_mr_open(struct hd_node *node, const struct hd_mr_attr *attr, struct hd_mr **out)
{
	uint64_t key = attr->key;
	struct hd_mr *mr;
	int rc = 0;

	hd_assert_locked(node);
	if (attr->count < 0 || attr->count > HD_MAX_IOV)
		return -EINVAL;
	if (attr->flags & HD_MR_KEY) {
		rc = mr_find(node, key) ? -ENOKEY : 0;
		hd_regions(node)->keys_chosen |= (key & HD_WINDOW_KEYS) != 0;
	} else {
		rc = hd_mr_key_draw(node, attr->key_bytes, &key);
	}
	if (!rc && attr->access & HD_ACCESS_REMOTE)
		rc = hd_auto_serve(node);
	if (rc)
		return rc;
	mr = calloc(1, sizeof(*mr) + (size_t)attr->count * sizeof(mr->iov[0]));
	if (!mr)
		return -ENOMEM;
	mr->node = node;
	mr->key = key;
	if (mr_table_add(mr) < 0 || auth_take(mr, attr) < 0) {
		mr_table_leave(mr);
		free(mr);
		return -ENOMEM;
	}
	mr->access = attr->access;
	mr->virtual = attr->flags & HD_MR_VIRTUAL;
	mr->base = mr->virtual ? 0 : attr->base;
	mr->pd = attr->pd;
	mr->owner = attr->owner;
	mr->row = -1;
	mr->fault = attr->fault;
	mr->count = attr->count;
	for (int i = 0; i < attr->count; i++)
		mr->iov[i] = attr->iov[i];
	LIST_INIT(&mr->holds);
	LIST_INIT(&mr->kept);
	LIST_INIT(&mr->windows);
	hd_regions(node)->mrs++;
	if (!(attr->flags & HD_MR_DISABLED))
		hd_mr_enable(mr);
	*out = mr;
	return 0;
}

void hd_mr_enable(struct hd_mr *mr)
{
	hd_assert_locked(mr->node);
	mr->enabled = true;
	hd_mr_show(mr);
	hd_mr_check(mr);
}

void hd_mr_disable(struct hd_mr *mr)
{
	struct hd_mr_hold *hold;

	hd_assert_locked(mr->node);
	mr->enabled = false;
	hd_mr_show(mr);
	while ((hold = LIST_FIRST(&mr->holds)))
		hold->end(hold); /* it is another's, or kept, from then on */
	hd_mr_check(mr);
}

void hd_mr_bind_ep(struct hd_mr *mr, struct hd_ep *ep)
{
	hd_assert_locked(mr->node);
	mr->ep = ep;
	hd_mr_show(mr);
	hd_mr_check(mr);
}

static void cntr_swap(struct hd_cntr **slot, struct hd_cntr *cntr)
{
	if (*slot)
		hd_cntr_used(*slot, -1);
	if (cntr)
		hd_cntr_used(cntr, 1);
	*slot = cntr;
}

void hd_mr_bind_cntrs(struct hd_mr *mr, struct hd_cntr *read, struct hd_cntr *write)
{
	hd_assert_locked(mr->node);
	cntr_swap(&mr->read, read);
	cntr_swap(&mr->write, write);
	hd_mr_show(mr);
}

/* No request of our own uses it any more. */
static bool mr_is_left(struct hd_mr *mr)
{
	return hd_regions(mr->node)->mr_leaves(mr, NULL) || hd_core(mr->node)->gate.dead;
}

int hd_mr_close(struct hd_mr *mr)
{
	struct hd_node *node = mr->node;

	if (hd_windows_leave(mr) < 0)
		return -EBUSY;
	hd_mr_disable(mr);
	if (hd_mr_await(mr, hd_mr_settled) < 0 || hd_mr_await(mr, mr_is_left) < 0)
		return -EBUSY;
	if (mr->window)
		hd_window_gone(mr);
	hd_mr_bind_cntrs(mr, NULL, NULL);
	mr_table_leave(mr);
	key_retire(node, mr->key);
	hd_regions(node)->mrs--;
	if (mr->from)
		hd_dest_unref(mr->from);
	free(mr->keys);
	free(mr);
	return 0;
}

void hd_mrs_drop_ep(struct hd_ep *ep)
{
	struct hd_mr *mr, *next;

	HASH_ITER(hh, hd_regions(ep->node)->mr_table, mr, next) {
		if (mr->ep != ep)
			continue;
		if (mr->window)
			hd_window_free(mr->window);
		hd_mr_disable(mr);
		mr->ep = NULL;
	}
}

struct hd_mr_view hd_mr_inspect(const struct hd_mr *mr)
{
	struct hd_mr_view view = {
		.key = mr->key, .access = mr->access, .enabled = mr->enabled, .row = mr->row, .ops = mr->ops
	};
	const struct hd_mr_hold *hold;
	const struct hd_window *w;

	LIST_FOREACH(hold, &mr->holds, entry)
		view.holds++;
	LIST_FOREACH(w, &mr->windows, entry)
		view.windows++;
	return view;
}

uint64_t hd_mr_key(const struct hd_mr *mr)
{
	return mr->key;
}

void *hd_mr_find(struct hd_node *node, uint64_t key)
{
	const struct hd_mr *mr = mr_find(node, key);

	return mr ? mr->owner : NULL;
}

/* ---- reaching -------------------------------------------------------------------------------- */

/*
 * The part of [addr, addr + len) that begins at addr and lies in one segment; 0 when none has it.
 */
static uint64_t part_virtual(const struct hd_mr *mr, uint64_t addr, uint64_t len)
{
	for (int i = 0; i < mr->count; i++) {
		uint64_t at = addr - (uintptr_t)mr->iov[i].iov_base;
		uint64_t left = mr->iov[i].iov_len - at;

		if (at < mr->iov[i].iov_len)
			return left < len ? left : len;
	}
	return 0;
}

/* Virtual addresses: segments may touch each other, in any order. */
static int mr_at_virtual(const struct hd_mr *mr, uint64_t addr, uint64_t len, struct iovec *iov, int *count)
{
	int n = 0;

	while (len) {
		uint64_t part = n < HD_MAX_IOV ? part_virtual(mr, addr, len) : 0;

		if (!part)
			return -ERANGE;
		iov[n++] = (struct iovec){ (void *)(uintptr_t)addr, part };
		addr += part;
		len -= part;
	}
	*count = n;
	return 0;
}

static int mr_at_offset(const struct hd_mr *mr, uint64_t addr, uint64_t len, struct iovec *iov, int *count)
{
	uint64_t room = hd_iov_len(mr->iov, mr->count);

	if (addr > room || len > room - addr)
		return -ERANGE;
	*count = hd_iov_slice(mr->iov, mr->count, addr, len, iov);
	return 0;
}

/*
 * May who has sent this reach the region? It came to an endpoint that has one key of its own, if
 * any, and that is the sender's.
 */
static bool is_authorized(const struct hd_mr *mr, const struct hd_mr_want *want)
{
	bool ok = !mr->key_count;

	for (uint32_t i = 0; i < mr->key_count && !ok; i++)
		ok = mr->keys[i] == want->ep->key;
	return ok && (!mr->from || hd_dest_source_id(mr->from) == want->from);
}

/* The region that this operation names, or NULL: it may not reach it. */
static inline struct hd_mr *mr_open_to(const struct hd_node *node, const struct hd_mr_want *want)
{
	struct hd_mr *mr = mr_find(node, want->key);

	if (!mr || !mr->enabled || (want->access & ~mr->access) || (mr->ep && mr->ep != want->ep) ||
	    mr->pd != (want->ep ? want->ep->pd : 0))
		return NULL;
	return hd_unlikely(mr->key_count || mr->from) && !is_authorized(mr, want) ? NULL : mr;
}

int hd_mr_reach(struct hd_node *node, const struct hd_mr_want *want, struct iovec *iov, int *count,
		struct hd_mr **out)
{
	struct hd_mr *mr;

	hd_assert_locked(node);
	*count = 0;
	if (out)
		*out = NULL;
	if (!want->len)
		return 0;
	mr = mr_open_to(node, want);
	if (!mr)
		return -EACCES;
	if (out)
		*out = mr;
	if (mr->virtual)
		return mr_at_virtual(mr, want->addr, want->len, iov, count);
	return mr_at_offset(mr, want->addr - mr->base, want->len, iov, count);
}

int hd_mr_flushable(struct hd_node *node, const struct hd_mr_want *want)
{
	struct iovec iov[HD_MAX_IOV];
	int count;

	return mr_open_to(node, want) ? hd_mr_reach(node, want, iov, &count, NULL) : -EACCES;
}

void hd_mr_hold(struct hd_mr *mr, struct hd_mr_hold *hold, void (*end)(struct hd_mr_hold *hold))
{
	hd_assert_locked(mr->node);
	hold->mr = mr;
	hold->end = end;
	LIST_INSERT_HEAD(&mr->holds, hold, entry);
}

void hd_mr_drop(struct hd_mr_hold *hold)
{
	if (!hold->mr)
		return;
	LIST_REMOVE(hold, entry);
	hold->mr = NULL;
}

void hd_mr_keep(struct hd_mr_hold *hold)
{
	if (!hold->mr)
		return;
	LIST_REMOVE(hold, entry);
	LIST_INSERT_HEAD(&hold->mr->kept, hold, entry);
}

/* ---- segments of our own requests ------------------------------------------------------------ */

static uint64_t first_address(const struct hd_mr *mr)
{
	return mr->virtual ? (uintptr_t)mr->iov[0].iov_base : mr->base;
}

bool hd_mr_moved(const struct hd_mr *from, const struct hd_mr *to, struct iovec *iov, bool filled)
{
	uint64_t at;

	if (!to || to->pd != from->pd || (filled && !(to->access & HD_ACCESS_LOCAL_WRITE)))
		return false;
	at = (uintptr_t)iov->iov_base - (uintptr_t)from->iov[0].iov_base + first_address(from) -
	     first_address(to);
	if (at > to->iov[0].iov_len || iov->iov_len > to->iov[0].iov_len - at)
		return false;
	iov->iov_base = (char *)to->iov[0].iov_base + at;
	return true;
}
