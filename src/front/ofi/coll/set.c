/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Ordered sets of addresses. */
#include "front/ofi/coll/set.h"

#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>

ptrdiff_t hd_fi_addrs_find(const struct hd_fi_addrs *set, fi_addr_t addr)
{
	for (size_t i = 0; i < set->count; i++)
		if (set->at[i] == addr)
			return (ptrdiff_t)i;
	return -1;
}

int hd_fi_addrs_add(struct hd_fi_addrs *set, fi_addr_t addr)
{
	if (hd_fi_addrs_find(set, addr) >= 0)
		return 0;
	if (set->count == set->room) {
		size_t room = set->room ? set->room * 2 : 16;
		fi_addr_t *more = reallocarray(set->at, room, sizeof(*more));

		if (!more)
			return -FI_ENOMEM;
		set->at = more;
		set->room = room;
	}
	set->at[set->count++] = addr;
	return 0;
}

bool hd_fi_addrs_remove(struct hd_fi_addrs *set, fi_addr_t addr)
{
	ptrdiff_t i = hd_fi_addrs_find(set, addr);

	if (i < 0)
		return false;
	set->count--;
	memmove(&set->at[i], &set->at[i + 1], (set->count - (size_t)i) * sizeof(*set->at));
	return true;
}

int hd_fi_addrs_union(struct hd_fi_addrs *set, const struct hd_fi_addrs *src)
{
	const size_t before = set->count, more = src->count;

	for (size_t i = 0; i < more; i++)
		if (hd_fi_addrs_add(set, src->at[i])) {
			set->count = before;
			return -FI_ENOMEM;
		}
	return 0;
}

void hd_fi_addrs_keep(struct hd_fi_addrs *set, const struct hd_fi_addrs *src, bool inside)
{
	size_t kept = 0;

	if (set == src) {
		set->count = inside ? set->count : 0;
		return;
	}
	for (size_t i = 0; i < set->count; i++)
		if ((hd_fi_addrs_find(src, set->at[i]) >= 0) == inside)
			set->at[kept++] = set->at[i];
	set->count = kept;
}
