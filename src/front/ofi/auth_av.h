/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* An authorization key in an AV: auth.c and auth_av.c. Under the node's lock. */
#ifndef HEDDLE_FRONT_OFI_AUTH_AV_H
#define HEDDLE_FRONT_OFI_AUTH_AV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Removed keys stay for as long as addresses were inserted with them, for fi_av_lookup_auth_key. */
struct hd_fi_key {
	uint64_t digest;
	uint32_t slot;	/* of hd_fi_av.keys */
	uint32_t addrs; /* inserted with it */
	uint32_t eps;	/* enabled with it */
	bool live;	/* not removed */
	size_t size;
	uint8_t bytes[];
};

#endif
