/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* See ranks.h. */
#include "base/ranks.h"

#include <errno.h>
#include <stdlib.h>

int hd_ranks_open(struct hd_ranks *ranks, unsigned max)
{
	*ranks = (struct hd_ranks){ .with = calloc((size_t)max + 1, sizeof(*ranks->with)) };
	return ranks->with ? 0 : -ENOMEM;
}

void hd_ranks_close(struct hd_ranks *ranks)
{
	free(ranks->with);
	ranks->with = NULL;
}

static void rank_move(struct hd_ranks *ranks, struct hd_rank *owner, unsigned count)
{
	if (owner->count)
		LIST_REMOVE(owner, entry);
	owner->count = count;
	if (count)
		LIST_INSERT_HEAD(&ranks->with[count], owner, entry);
}

void hd_rank_up(struct hd_ranks *ranks, struct hd_rank *owner)
{
	rank_move(ranks, owner, owner->count + 1);
	if (ranks->most < owner->count)
		ranks->most = owner->count;
}

void hd_rank_down(struct hd_ranks *ranks, struct hd_rank *owner)
{
	rank_move(ranks, owner, owner->count - 1);
	if (LIST_EMPTY(&ranks->with[ranks->most]) && ranks->most)
		ranks->most--; /* where he is now */
}

struct hd_rank *hd_ranks_most(const struct hd_ranks *ranks)
{
	return LIST_FIRST(&ranks->with[ranks->most]);
}
