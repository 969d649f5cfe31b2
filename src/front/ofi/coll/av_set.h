/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Sets of an AV's addresses, as programs have them. */
#ifndef HEDDLE_FRONT_OFI_COLL_AV_SET_H
#define HEDDLE_FRONT_OFI_COLL_AV_SET_H

#include "front/ofi/av.h"
#include "front/ofi/coll/set.h"

/* An fi_addr_t of a set, or of a group, has a bit that no index into an AV reaches. */
#define HD_FI_SET_BIT (UINT64_C(1) << 42)

struct hd_fi_av_set {
	struct fid_av_set fid;
	uint32_t magic;
	struct hd_fi_av *av;
	struct hd_fi_addrs members; /* under the node's lock */
	fi_addr_t addr;		    /* fi_av_set_addr; no two of a process have the same */
	LIST_ENTRY(hd_fi_av_set) entry;
	struct hd_fi_object object;
};

/* hd_fi_av_set_at: is this the address of a set of this AV? Caller holds the node's lock. */
bool hd_fi_av_set_at(const struct hd_fi_av *av, fi_addr_t addr);

#endif
