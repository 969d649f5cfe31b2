/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * The table of an address vector that has a name, fi_av(3): processes of one user on one host see
 * the same addresses at the same indices. It lies in a memfd that they find as base/shared.h says.
 *
 *	memfd:  head │ keys │ entry 0 │ entry 1 │ …    an entry's generation is odd while it holds
 *	                                               an address, and grows with each change
 *
 * Writers take turns by flock(2), which a process that dies gives back. Readers take no lock. What
 * is read is checked: the other processes are not trusted beyond being of the same user.
 */
#ifndef HEDDLE_FRONT_OFI_AV_SHARED_H
#define HEDDLE_FRONT_OFI_AV_SHARED_H

#include "front/ofi/auth.h"

struct hd_fi_table;

struct hd_fi_table_attr {
	const char *name;
	size_t count;	/* addresses expected, at least */
	bool read_only; /* it must exist */
	bool keyed;	/* FI_AV_AUTH_KEY: its addresses have keys */
};

/*
 * hd_fi_table_open: find or make the table of this name. 0; -FI_ENOENT: read_only, and there is
 * none; -FI_EBUSY: somebody has been opening it for seconds; -FI_EINVAL: a name of more than 255
 * bytes, or one of the other kind with keys; errors of the system. Blocks for a moment.
 * hd_fi_table_close: the last one to close it ends it.
 */
int hd_fi_table_open(const struct hd_fi_table_attr *attr, struct hd_fi_table **out);
void hd_fi_table_close(struct hd_fi_table *table);

/*
 * hd_fi_table_map_addr: what fi_av_attr.map_addr is told to be: in this process, the fi_addr_t of
 * each index. hd_fi_table_read_only.
 */
void *hd_fi_table_map_addr(const struct hd_fi_table *table);
bool hd_fi_table_read_only(const struct hd_fi_table *table);

/*
 * hd_fi_table_insert: put an address, and the slot of its key from 1 on (0: none), at the lowest
 * free index, which is returned; -FI_EACCES: opened for reading; -FI_ENOSPC; -FI_EBUSY: a writer
 * has kept others out for seconds. hd_fi_table_remove: 0, -FI_EINVAL: nothing there.
 */
int64_t hd_fi_table_insert(struct hd_fi_table *table, const union hd_fi_addr *addr, uint32_t key);
int hd_fi_table_remove(struct hd_fi_table *table, uint64_t index);

/*
 * hd_fi_table_version: moves with every change of any process; one load. hd_fi_table_used: no index
 * from here on holds anything.
 * hd_fi_table_get: the generation of an entry, odd when it holds an address, which is then in *addr
 * and *key: copies, not checked.
 */
uint64_t hd_fi_table_version(const struct hd_fi_table *table);
size_t hd_fi_table_used(const struct hd_fi_table *table);
uint32_t hd_fi_table_get(const struct hd_fi_table *table, size_t index, union hd_fi_addr *addr,
			 uint32_t *key);

/*
 * Keys (av_shared_key.c), in slots below HD_FI_AUTH_KEYS. hd_fi_table_key_insert: 1 to
 * HD_FI_AUTH_MAX bytes; the slot, the same one for the same bytes, or -FI_EACCES, -FI_ENOSPC,
 * -FI_EBUSY as above. hd_fi_table_key_remove: 0, -FI_EINVAL: none there, -FI_EBUSY: another process
 * holds it. hd_fi_table_key_hold: we do from now on, if it is there in this generation (else
 * -FI_EINVAL), or no longer.
 * hd_fi_table_key_get: as hd_fi_table_get; odd as well for one that has been removed and is
 * still named by addresses.
 */
struct hd_fi_table_key {
	bool live; /* not removed */
	uint32_t size;
	unsigned char bytes[HD_FI_AUTH_MAX];
};
int hd_fi_table_key_insert(struct hd_fi_table *table, const void *bytes, size_t size);
int hd_fi_table_key_remove(struct hd_fi_table *table, uint32_t slot);
int hd_fi_table_key_hold(struct hd_fi_table *table, uint32_t slot, uint32_t gen, bool on);
uint32_t hd_fi_table_key_get(const struct hd_fi_table *table, uint32_t slot, struct hd_fi_table_key *out);

#endif
