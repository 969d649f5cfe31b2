/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Threads that use nodes, each with an endpoint and a CQ of its own. */
#ifndef HD_TEST_WORKER_H
#define HD_TEST_WORKER_H

#include "engine/test/test_pair.h"

#define THREADS 3
#define WAIT_MS 20000
#define LONGEST (200u << 10) /* bytes of `in` and `out` */

struct worker {
	pthread_t thread;
	struct side s; /* whose node it uses, with an endpoint and a CQ of its own */
	struct worker *other;
	int first; /* sends first */
	int rounds;
	int wrong;
	int rc;
	uint64_t cpu_ns; /* what it has used */
	/*
	 * its longest wait: one that ends at its time-out was not woken, even
	 * if it then finds something
	 */
	uint64_t asleep_ns;
	unsigned char *out, *in;
};

/* A node with a lock, one without, one that makes progress by itself. */
extern const struct hd_node_attr node_locked, node_alone, node_automatic;

/*
 * worker_open: an endpoint and a CQ more on a node that stands. worker_start: let it do this.
 * worker_finish: it has, and nothing went wrong. In its thread: worker_asleep: hd_cq_wait.
 * worker_await: the next completion, asleep until it comes; false: it did not, or with an error.
 * worker_post: a receive into w->in.
 */
void worker_start(struct worker *w, void *(*fn)(void *));
void worker_finish(struct worker *w);
int worker_asleep(struct worker *w);
void worker_open(struct worker *w, struct hd_node *node);
void worker_close(struct worker *w);
bool worker_await(struct worker *w, struct hd_cqe *out);
int worker_post(struct worker *w);

#endif
