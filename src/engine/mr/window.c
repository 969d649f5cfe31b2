/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Memory windows, ibv_alloc_mw(3). A window is a region of its own to everybody who reaches it: its
 * key is found in the same table, and shown in the same page. What it opens is a part of another
 * region, which it keeps from being closed; to bind it and to take it back are operations of a
 * queue pair (qp/bind.c), which end when nobody copies by what was before.
 *
 * Its keys share all but the last byte, which is the program's to choose; so no region gets a
 * key with these upper bytes.
 */
#include "engine/mr/window.h"
#include "engine/mr/shown.h"

#include <errno.h>
#include <stdlib.h>

#define KEYS HD_WINDOW_KEYS /* of a window */
#define DRAWS 4096	    /* attempts at so many that are free */

/* ---- keys ------------------------------------------------------------------------------------ */

static struct hd_window *window_find(const struct hd_node *node, uint64_t key)
{
	uint64_t keys = key / KEYS;
	struct hd_window *w;

	HASH_FIND(hh, hd_regions(node)->windows, &keys, sizeof(keys), w);
	return w;
}

bool hd_window_owns(const struct hd_node *node, uint64_t key)
{
	return hd_regions(node)->windows && window_find(node, key);
}

/* No region is given such a key but by those who choose it themselves. */
static bool all_free(const struct hd_node *node, uint64_t first)
{
	if (hd_window_owns(node, first))
		return false;
	for (int i = 0; i < HD_MR_REST; i++)
		if (hd_regions(node)->mr_rest[i] / KEYS == first / KEYS)
			return false;
	for (uint64_t i = 0; i < KEYS && hd_regions(node)->keys_chosen; i++)
		if (!hd_mr_key_is_free(node, first + i))
			return false;
	return true;
}

static int window_draw(struct hd_node *node, uint64_t *key)
{
	for (int i = 0; i < DRAWS; i++) {
		int rc = hd_mr_key_draw(node, 4, key);

		if (rc < 0)
			return rc;
		*key |= HD_WINDOW_KEYS;
		if (*key != UINT32_MAX && all_free(node, *key & ~(uint64_t)(KEYS - 1)))
			return 0;
	}
	return -ENOSPC;
}

/* ---- life ------------------------------------------------------------------------------------ */

int hd_window_open(struct hd_node *node, uint32_t pd, bool single, struct hd_mr **out)
{
	const struct iovec none = { 0 };
	struct hd_mr_attr attr = { .iov = &none, .count = 1, .flags = HD_MR_KEY | HD_MR_DISABLED, .pd = pd };
	struct hd_window *w = calloc(1, sizeof(*w));
	bool chosen = hd_regions(node)->keys_chosen;
	int rc;

	hd_assert_locked(node);
	if (!w)
		return -ENOMEM;
	rc = window_draw(node, &attr.key);
	if (!rc)
		rc = hd_mr_open(node, &attr, &w->mr);
	hd_regions(node)->keys_chosen = chosen; /* this one is drawn */
	if (rc) {
		free(w);
		return rc;
	}
	w->single = single;
	w->keys = attr.key / KEYS;
	w->mr->window = w;
	HASH_ADD(hh, hd_regions(node)->windows, keys, sizeof(w->keys), w);
	if (!hd_is_in_table(&w->hh)) {
		w->mr->window = NULL;
		hd_mr_close(w->mr);
		free(w);
		return -ENOMEM;
	}
	*out = w->mr;
	return 0;
}

void hd_window_own(struct hd_mr *window, void *owner)
{
	window->window->owner = owner;
}

void *hd_window_find(const struct hd_node *node, uint64_t key, bool *lost)
{
	const struct hd_window *w = window_find(node, key);

	*lost = w && w->mr->key == key && !w->bound;
	return w ? w->owner : NULL;
}

void hd_window_gone(struct hd_mr *mr)
{
	struct hd_window *w = mr->window;

	hd_window_free(w); /* nobody copies: so this ends it */
	HASH_DEL(hd_regions(mr->node)->windows, w);
	free(w);
	mr->window = NULL;
}

bool hd_window_free(struct hd_window *w)
{
	w->bound = false;
	hd_mr_disable(w->mr);
	w->mr->ep = NULL;
	if (!hd_mr_settled(w->mr))
		return false;
	if (w->region)
		LIST_REMOVE(w, entry);
	w->region = NULL;
	return true;
}

bool hd_mr_has_windows(const struct hd_mr *mr)
{
	const struct hd_window *w;

	LIST_FOREACH(w, &mr->windows, entry)
		if (w->bound)
			return true;
	return false;
}

/* There are none any more, or the next one is bound. */
static bool windows_have_left(struct hd_mr *region)
{
	struct hd_window *w;

	while ((w = LIST_FIRST(&region->windows)) && !w->bound)
		if (!hd_window_free(w))
			return false;
	return true;
}

int hd_windows_leave(struct hd_mr *region)
{
	int rc = hd_mr_await(region, windows_have_left);

	return rc < 0 || LIST_EMPTY(&region->windows) ? rc : -EBUSY;
}

/* ---- taking back ----------------------------------------------------------------------------- */

int hd_window_take_back(struct hd_ep *ep, uint64_t key, bool *begun)
{
	struct hd_window *w = window_find(ep->node, key);

	if (*begun) /* and others may have done with it what they like */
		return !w || w->bound || hd_window_free(w) ? 0 : -EAGAIN;
	if (!w || !w->single || !w->bound || w->mr->key != key || w->mr->ep != ep || w->mr->pd != ep->pd)
		return HD_S_ACCESS;
	*begun = true;
	return hd_window_free(w) ? 0 : -EAGAIN;
}

/* ---- binding --------------------------------------------------------------------------------- */

/* The part of the region that is wanted. HD_S_OK or a status. */
static int window_part(const struct hd_mr *region, const struct hd_binding *b, struct iovec *out)
{
	uint64_t base = region->virtual ? (uintptr_t)region->iov[0].iov_base : region->base;
	uint64_t at = b->addr - base;

	if (region->count != 1)
		return HD_S_INVALID;
	if (at > region->iov[0].iov_len || b->len > region->iov[0].iov_len - at)
		return HD_S_RANGE;
	*out = (struct iovec){ (char *)region->iov[0].iov_base + at, b->len };
	return 0;
}

/* May it be bound like this? */
static int permitted(const struct hd_ep *ep, const struct hd_window *w, const struct hd_mr *region,
		     const struct hd_binding *b)
{
	const uint32_t changes = HD_ACCESS_REMOTE_WRITE | HD_ACCESS_REMOTE_ATOMIC;

	if (w->single && (b->to_nothing || w->bound))
		return HD_S_INVALID;
	if (b->to_nothing)
		return 0;
	if (!region || !region->enabled || region->window || region->pd != ep->pd)
		return HD_S_ACCESS;
	if (!(region->access & HD_ACCESS_BIND))
		return HD_S_ACCESS;
	return b->access & changes && !(region->access & HD_ACCESS_LOCAL_WRITE) ? HD_S_ACCESS : 0;
}

static int window_attach(struct hd_ep *ep, struct hd_window *w, struct hd_mr *region,
			 const struct hd_binding *b, const struct iovec *where)
{
	struct hd_mr *mr = w->mr;

	if (hd_mr_rekey(mr, b->key) < 0)
		return HD_S_ACCESS;
	if (b->to_nothing)
		return 0;
	mr->iov[0] = *where;
	mr->access = b->access & HD_ACCESS_REMOTE;
	mr->base = b->from_zero ? 0 : b->addr;
	mr->ep = w->single ? ep : NULL;
	w->region = region;
	w->bound = true;
	LIST_INSERT_HEAD(&region->windows, w, entry);
	hd_mr_enable(mr);
	return 0;
}

int hd_window_change(struct hd_ep *ep, const struct hd_binding *b)
{
	struct hd_window *w = window_find(ep->node, b->key);
	struct hd_mr *region = b->to_nothing ? NULL : hd_mr_at(ep->node, b->region);
	struct iovec where = { 0 };
	int err;

	if (!w || w->mr->pd != ep->pd)
		return HD_S_ACCESS;
	err = permitted(ep, w, region, b);
	if (!err && region)
		err = window_part(region, b, &where);
	if (err)
		return err;
	if (!hd_window_free(w))
		return -EAGAIN;
	return window_attach(ep, w, region, b, &where);
}
