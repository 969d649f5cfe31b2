/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* An authorization key in an AV: auth.c and auth_av.c. Under the node's lock. */
#ifndef HEDDLE_FRONT_OFI_AUTH_AV_H
#define HEDDLE_FRONT_OFI_AUTH_AV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hd_fi_av;

/*
 * Removed keys stay for as long as addresses were inserted with them, for fi_av_lookup_auth_key.
 * Those of a shared AV follow its table; one that is no longer there is in no slot, and stays
 * for as long as it is used.
 */
struct hd_fi_key {
	struct hd_fi_av *av;
	uint64_t digest;
	uint32_t slot;	/* of hd_fi_av.keys */
	uint32_t gen;	/* shared AV: of the table's slot that this follows */
	uint32_t addrs; /* inserted with it */
	uint32_t eps;	/* enabled with it */
	bool live;	/* not removed */
	size_t size;
	uint8_t bytes[];
};

#endif
