/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Views of an AV: the same addresses at the same indices, of endpoints with another authorization
 * key. Under the node's lock.
 */
#include "front/ofi/av.h"

#include <stdlib.h>

/* What is at this index of the AV is at that of the view, too. */
static int mirror(struct hd_fi_av *view, uint32_t index)
{
	struct hd_dest *dest;
	int rc = hd_dest_get_keyed(view->domain->node, &view->of->entry[index].addr.sa, view->key, &dest);

	if (rc)
		return hd_fi_ret(rc);
	rc = hd_fi_av_put_at(view, index, dest, hd_dest_id(dest), &view->of->entry[index].addr);
	if (rc)
		hd_dest_put(dest);
	return rc;
}

static void view_free(struct hd_fi_av *view)
{
	for (size_t i = 0; i < view->size; i++)
		hd_fi_av_forget(view, (uint32_t)i);
	hd_fi_av_free(view);
	free(view);
}

static struct hd_fi_av *view_make(struct hd_fi_av *av, uint64_t key)
{
	struct hd_fi_av *view = calloc(1, sizeof(*view));
	int rc = 0;

	if (!view)
		return NULL;
	view->domain = av->domain;
	view->type = av->type;
	view->context_bits = av->context_bits;
	view->table = av->table; /* which it then follows by itself */
	view->user_ids = av->user_ids;
	view->of = av;
	view->key = key;
	for (size_t i = 0; !av->table && i < av->size && !rc; i++)
		rc = av->dest[i] ? mirror(view, (uint32_t)i) : 0;
	if (rc) {
		view_free(view);
		return NULL;
	}
	LIST_INSERT_HEAD(&av->views, view, view);
	return view;
}

int hd_fi_av_view(struct hd_fi_av *av, uint64_t key, struct hd_fi_av **out)
{
	struct hd_fi_av *view, *whole = av->of ? av->of : av;

	if (whole->key == key) {
		*out = whole;
		return 0;
	}
	LIST_FOREACH(view, &whole->views, view)
		if (view->key == key)
			break;
	if (!view)
		view = view_make(whole, key);
	if (view)
		*out = view;
	return view ? 0 : hd_fi_no(FI_ENOMEM);
}

int hd_fi_av_views_add(struct hd_fi_av *av, uint32_t index)
{
	struct hd_fi_av *view;
	int rc = 0;

	LIST_FOREACH(view, &av->views, view)
		if (!rc)
			rc = mirror(view, index);
	if (rc)
		hd_fi_av_views_forget(av, index);
	return rc;
}

void hd_fi_av_views_forget(struct hd_fi_av *av, uint32_t index)
{
	struct hd_fi_av *view;

	LIST_FOREACH(view, &av->views, view)
		hd_fi_av_forget(view, index);
}

void hd_fi_av_views_close(struct hd_fi_av *av)
{
	struct hd_fi_av *view;

	while ((view = LIST_FIRST(&av->views))) {
		LIST_REMOVE(view, view);
		view_free(view);
	}
}
