/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * What the engine's tests share: two nodes in one process, each with an
 * endpoint and a completion queue.
 */
#ifndef HD_ENGINE_TEST_PAIR_H
#define HD_ENGINE_TEST_PAIR_H

#include "base/clock.h"
#include "engine/link/link.h"
#include "engine/node/node.h"
#include "engine/rq/rq.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define PATIENCE (30 * HD_NS_PER_S) /* oversubscribed machines are slow */
#define TAGGED(flags) ((flags) | HD_SEND_TAGGED)

struct side {
	struct hd_node *node;
	struct hd_cq *cq;
	struct hd_ep *ep;
	struct hd_dest *to; /* the other side */
};

struct pair {
	struct side a, b;
};

extern const char *const test_transports[2];

/*
 * settling: for a loop in which nodes are polled for so many ms: for (struct settling s =
 * settling(ms); settling_on(&s);). It goes on until they have had the turns for it, whoever else
 * has the processor: a node looks at its descriptors in every eighth turn at most, and not twice
 * within 50 us.
 */
struct settling {
	uint64_t end, next; /* of all; of this look */
	int turns, looks;
};
struct settling settling(int ms);
bool settling_on(struct settling *s);

/* The statement that follows runs once for each transport, whose name is in `name`. */
#define EACH_TRANSPORT(name) \
	for (int name##_i = 0; name##_i < 2; name##_i++) \
		for (const char *name = test_transports[name##_i]; name; name = NULL)

/* All of them fail the test when something is not as it should be. */

/*
 * side_open: a node without a lock; side_open_with: one with these attributes.
 * side_close also gives s->to back.
 */
void side_open(struct side *s);
void side_open_with(struct side *s, const struct hd_node_attr *attr);
void side_close(struct side *s);

/* side_endpoint: s->ep is an endpoint of this type from now on, and has another name. */
void side_endpoint(struct side *s, enum hd_ep_type type);

/*
 * side_keys: the same, with these authorization keys; several can be named in
 * receives, and regions reached.
 */
void side_keys(struct side *s, const uint64_t *keys, uint32_t count, enum hd_ep_type type);

/* side_region: memory of s that others reach by this key: HD_ACCESS_*, HD_MR_*. */
struct hd_mr *side_region(struct side *s, uint64_t key, void *at, size_t len, uint32_t access,
			  uint32_t flags);

/*
 * side_poll: the program of this side polls, as a front does it: has it a completion? It is taken.
 */
bool side_poll(struct side *s);

/*
 * side_number: the i-th number of an endpoint that side s knows by this one, from
 * 0 on; 0: it has no more.
 */
uint32_t side_number(const struct side *s, uint32_t src, unsigned i);

/* side_names: s->to is the other side from now on. */
void side_names(struct side *s, struct side *other);

/*
 * pair_open: two nodes that know each other by name, over this transport (HEDDLE_TRANSPORT is set).
 */
void pair_open(struct pair *p, const char *transport);
void pair_close(struct pair *p);

/*
 * pair_lie_down: turns of both, until this one's node is armed, as by a thread that sleeps.
 * side_wakes: is it woken within so many ms?
 */
void pair_lie_down(struct pair *p, struct side *s);
bool side_wakes(const struct side *s, int ms);

/*
 * pair_next: the next completion of side s, while both sides make progress. pair_settle: both
 * make progress for a while.
 */
struct hd_cqe pair_next(struct pair *p, struct side *s);
void pair_settle(struct pair *p, int ms);

/*
 * pair_rest: nobody makes progress until a takes b for one whose program does not poll: what is
 * short is not sent as a packet then.
 */
void pair_rest(struct pair *p);

/*
 * side_post: a tagged receive. pair_push: a tagged send from side s, with progress until there
 * is room; its ctx is buf.
 */
void side_post(struct side *s, void *buf, size_t len, uint64_t tag, uint64_t ignore,
	       const struct hd_dest *src, void *ctx);
void pair_push(struct pair *p, struct side *s, const void *buf, size_t len, uint64_t tag, uint32_t flags);

/*
 * pair_atomic: an atomic operation of a, with progress until there is room: 0, or what it was
 * refused with. pair_atomic_to: to whom it says.
 */
int pair_atomic(struct pair *p, const struct hd_atomic_args *args);
int pair_atomic_to(struct pair *p, struct hd_dest *to, const struct hd_atomic_args *args);

/* test_fill, test_check: a pattern that differs by seed and place. */
void test_fill(unsigned char *at, size_t len, unsigned seed);
void test_check(const unsigned char *at, size_t len, unsigned seed);

/* test_fds: how many descriptors this process has, and a few more, always the same. */
int test_fds(void);

#endif
