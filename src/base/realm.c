/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* See realm.h. */
#include "base/realm.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

#define OVERFLOW_UID 65534u /* user_namespaces(7), where the kernel does not tell */
#define ALL_UIDS 4294967295u

static uid_t overflow_uid_read(void)
{
	FILE *f = fopen("/proc/sys/kernel/overflowuid", "re");
	unsigned uid = OVERFLOW_UID;

	if (!f)
		return uid;
	if (fscanf(f, "%u", &uid) != 1)
		uid = OVERFLOW_UID;
	fclose(f);
	return uid;
}

/* Read once in a process: this is asked for each name that a peer announces. */
static uid_t overflow_uid(void)
{
	static _Atomic int64_t known = -1; /* relaxed: whoever reads it finds the same */
	int64_t uid = atomic_load_explicit(&known, memory_order_relaxed);

	if (uid < 0) {
		uid = overflow_uid_read();
		atomic_store_explicit(&known, uid, memory_order_relaxed);
	}
	return (uid_t)uid;
}

/* Has our user namespace a number for every user? Then the overflow uid is a user as any other. */
static bool all_are_known(void)
{
	FILE *f = fopen("/proc/self/uid_map", "re");
	unsigned inside, outside, count;
	bool all;

	if (!f)
		return false;
	all = fscanf(f, "%u %u %u", &inside, &outside, &count) == 3 && !inside && count == ALL_UIDS;
	fclose(f);
	return all;
}

uint64_t hd_realm_of_user(uid_t uid)
{
	if (uid == overflow_uid() && !all_are_known())
		return HD_REALM_NOBODY;
	return (uint64_t)HD_REALM_USER + uid;
}

uint64_t hd_realm_own(void)
{
	return hd_realm_of_user(geteuid());
}

bool hd_realm_is_own(uint64_t realm)
{
	return realm >= HD_REALM_USER && realm == hd_realm_own();
}
