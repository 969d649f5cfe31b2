/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * In whose hands something is, as the kernel says: another host's, or a user's of this one. Nodes
 * of different realms are different nodes, whatever they call themselves. Any thread.
 */
#ifndef HEDDLE_BASE_REALM_H
#define HEDDLE_BASE_REALM_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum hd_realm {
	HD_REALM_FAR,  /* another host's, or another network namespace's */
	HD_REALM_HERE, /* this host's; the kernel does not say which user's */
	HD_REALM_GONE, /* of a socket: nobody's any more */
	/*
	 * of a user for whom our user namespace has no number, and who is told from no other such
	 */
	HD_REALM_NOBODY,
	HD_REALM_USER, /* and from here on: of the user with this number less HD_REALM_USER */
};

/*
 * hd_realm_of_user: the overflow uid is everybody's whom our user namespace has no number for, so
 * it is nobody's: HD_REALM_NOBODY.
 * hd_realm_own: that of this process (its effective user). hd_realm_is_own: is it our user's?
 * Nothing is where that has no number.
 */
uint64_t hd_realm_of_user(uid_t uid);
uint64_t hd_realm_own(void);
bool hd_realm_is_own(uint64_t realm);

#endif
