/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * What the attacks share: a stranger who speaks the wire by himself (engine/test/test_wire.h),
 * calls and is called, as any user of this host. One file an attack; docs/security.md says what
 * each of them must not achieve.
 */
#ifndef HD_ATTACK_H
#define HD_ATTACK_H

#include "engine/test/test_hostile.h"

#define STRANGER 54321 /* a user who is not the one that the tests run as */

/*
 * One node, and a stranger who has not called yet. attack_setup, attack_teardown: for
 * cmocka, *state is the scene.
 */
struct attack_scene {
	struct side a;
	struct wire *w;
};
int attack_setup(void **state);
int attack_teardown(void **state);

/*
 * attack_as: whatever sockets are made from here on are this user's, of the whole process; 0: ours
 * again. Only root may; false: the test is to be skipped.
 */
bool attack_as(unsigned uid);

/* attack_needs_root: skips the test where attack_as cannot work. */
void attack_needs_root(void);

/*
 * attack_hosts_open: this thread's network is a new one, with ATTACK_ADDR and two hosts beside it,
 * and nodes that open from here on are there and let them in. attack_needs_hosts: skips the test
 * where that could not be had. attack_from: who dials or listens from here on is on that one of
 * them, 0 or 1; -1: on this host. attack_hosts_close: all is as before.
 */
#define ATTACK_ADDR "10.77.0.1"
void attack_hosts_open(void);
void attack_needs_hosts(void);
void attack_hosts_close(void);
void attack_from(int host);

/*
 * attack_dial: as wire_dial, by this user. attack_greet: as wire_greet, with an
 * id that may be another's.
 */
void attack_dial(struct wire *w, struct side *s, unsigned uid);
void attack_greet(struct wire *w, struct side *s, unsigned uid, const struct hd_node_id *id);

/*
 * attack_listen: a socket of this user's that others can call, and its name. attack_accept: this
 * user takes a call; the caller's node makes progress.
 */
int attack_listen(unsigned uid, struct sockaddr_storage *name);
void attack_accept(struct wire *w, int fd, unsigned uid, struct hd_node *node);

/* attack_announce: say that the endpoint `index` can be called at this IPv4 address. */
void attack_announce(struct wire *w, uint32_t index, const struct sockaddr_storage *name);

/* attack_poll: all of these make progress for so many ms. */
void attack_poll(struct side **sides, int count, int ms);

#endif
