/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Ordered sets of addresses, each once; what fi_av_set(3) does with them. They know no AV. */
#ifndef HEDDLE_FRONT_OFI_COLL_SET_H
#define HEDDLE_FRONT_OFI_COLL_SET_H

#include <rdma/fabric.h>
#include <stdbool.h>
#include <stddef.h>

struct hd_fi_addrs {
	fi_addr_t *at;
	size_t count, room;
};

/*
 * hd_fi_addrs_find: its place, or -1. hd_fi_addrs_add puts it at the end, where it is not there
 * already: 0 or -FI_ENOMEM.
 */
ptrdiff_t hd_fi_addrs_find(const struct hd_fi_addrs *set, fi_addr_t addr);
int hd_fi_addrs_add(struct hd_fi_addrs *set, fi_addr_t addr);
bool hd_fi_addrs_remove(struct hd_fi_addrs *set, fi_addr_t addr);

/*
 * hd_fi_addrs_union: those of src that are not in set go to its end; 0, or -FI_ENOMEM, and set
 * is as it was. hd_fi_addrs_keep: only those stay that are in src (inside), or that are not.
 * Both may be the same set.
 */
int hd_fi_addrs_union(struct hd_fi_addrs *set, const struct hd_fi_addrs *src);
void hd_fi_addrs_keep(struct hd_fi_addrs *set, const struct hd_fi_addrs *src, bool inside);

#endif
