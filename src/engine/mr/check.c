/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* What holds of a region whenever nothing of it is being changed, in builds with assertions. */
#include "engine/mr/mr.h"
#include "engine/mr/window.h"
#include "engine/node_page.h"

#ifndef NDEBUG

#define CHECKED 256u /* longer lists are not walked through */

static void holds_check(const struct hd_mr *mr)
{
	const struct hd_mr_hold *hold;
	unsigned n = 0;

	assert(mr->enabled || LIST_EMPTY(&mr->holds));
	LIST_FOREACH(hold, &mr->holds, entry) {
		if (n++ > CHECKED)
			return;
		assert(hold->mr == mr && hold->end);
	}
}

static void windows_check(const struct hd_mr *mr)
{
	const struct hd_window *w;
	unsigned n = 0;

	LIST_FOREACH(w, &mr->windows, entry) {
		if (n++ > CHECKED)
			return;
		assert(w->region == mr && w->mr != mr && w->mr->window == w);
	}
}

void hd_mr_check(const struct hd_mr *mr)
{
	assert(!hd_is_in_table(&mr->hh) || hd_mr_at(mr->node, mr->key) == mr);
	assert(mr->row == -1 ||
	       (mr->row >= 0 && mr->row < HD_PAGE_MRS && hd_names(mr->node)->mr_rows[mr->row]));
	assert(!mr->key_count == !mr->keys);
	assert(!mr->posted_to || (!mr->posted_often && *mr->posted_entry.le_prev == mr));
	holds_check(mr);
	windows_check(mr);
}

#endif
