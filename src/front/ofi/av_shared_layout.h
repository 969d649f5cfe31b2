/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * What lies in the table of a shared address vector: av_shared.c and av_shared_key.c alone know it.
 */
#ifndef HEDDLE_FRONT_OFI_AV_SHARED_LAYOUT_H
#define HEDDLE_FRONT_OFI_AV_SHARED_LAYOUT_H

#include "base/shared.h"
#include "front/ofi/av_shared.h"

#define HD_FI_TABLE_MAGIC UINT64_C(0x7661656c64646568) /* "heddleav" */
#define HD_FI_TABLE_LAYOUT 3

/*
 * One address. Its bytes are written while gen is even, so that a writer who
 * dies leaves nothing half.
 */
struct hd_fi_table_entry {
	_Atomic uint32_t gen;
	unsigned char addr[sizeof(struct sockaddr_in6)];
	uint32_t key; /* slot of the key that it was inserted with, from 1 on; 0: none */
};
static_assert(sizeof(struct hd_fi_table_entry) == 36, "an entry has no holes");

/*
 * One authorization key, in the same way. One that has been removed stays for as
 * long as entries name it.
 */
struct hd_fi_table_slot {
	_Atomic uint32_t gen;
	_Atomic uint32_t live; /* not removed */
	uint32_t size;
	unsigned char bytes[HD_FI_AUTH_MAX];
	unsigned char rest[320 - 12 - HD_FI_AUTH_MAX];
};

struct hd_fi_table_head {
	uint64_t magic;
	uint32_t layout;
	uint32_t capacity;
	uint64_t unused;
	char name[256];
	_Atomic uint64_t version;
	_Atomic uint32_t used;
	uint32_t lowest; /* no index below it is free; a hint */
	uint32_t keyed;	 /* FI_AV_AUTH_KEY: every entry has a key; else none has */
	unsigned char rest[4096 - 300];
	struct hd_fi_table_slot slot[HD_FI_AUTH_KEYS];
	struct hd_fi_table_entry entry[];
};
static_assert(sizeof(struct hd_fi_table_head) == 4096 + 5 * 4096, "entries begin on a page");

struct hd_fi_table {
	struct hd_fi_table_head *head;
	uint32_t capacity; /* ours: what was mapped */
	size_t size;
	struct hd_shared shared;
	bool read_only;
};

/*
 * hd_fi_table_lock: writers take turns, and so do those who hold keys. 0, -FI_EBUSY:
 * somebody has kept it for seconds. hd_fi_table_unlock gives it back; changed: the
 * others see that something has.
 */
int hd_fi_table_lock(const struct hd_fi_table *table);
void hd_fi_table_unlock(const struct hd_fi_table *table, bool changed);

#endif
