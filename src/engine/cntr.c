/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Counters of completions. Written under the node's lock, read by anybody. */
#include "engine/waiters.h"

#include <errno.h>
#include <stdlib.h>

int hd_cntr_open(struct hd_node *node, struct hd_cntr **out)
{
	struct hd_cntr *c = calloc(1, sizeof(*c));
	int rc;

	if (!c)
		return -ENOMEM;
	c->node = node;
	rc = hd_waiters_init(&c->w, node, &c->armed, true);
	if (rc < 0) {
		free(c);
		return rc;
	}
	node->cntrs++;
	*out = c;
	return 0;
}

int hd_cntr_close(struct hd_cntr *c)
{
	if (c->users)
		return -EBUSY;
	hd_waiters_fini(&c->w);
	c->node->cntrs--;
	free(c);
	return 0;
}

uint64_t hd_cntr_read(struct hd_cntr *c)
{
	return atomic_load_explicit(&c->value, memory_order_relaxed);
}

uint64_t hd_cntr_readerr(struct hd_cntr *c)
{
	return atomic_load_explicit(&c->errors, memory_order_relaxed);
}

static void store(struct hd_cntr *c, _Atomic uint64_t *at, uint64_t v)
{
	atomic_store_explicit(at, v, memory_order_relaxed);
	if (c->armed)
		hd_wake(&c->w);
}

void hd_cntr_add(struct hd_cntr *c, uint64_t n)
{
	store(c, &c->value, hd_cntr_read(c) + n);
}

void hd_cntr_adderr(struct hd_cntr *c, uint64_t n)
{
	store(c, &c->errors, hd_cntr_readerr(c) + n);
}

void hd_cntr_set(struct hd_cntr *c, uint64_t v)
{
	store(c, &c->value, v);
}

void hd_cntr_seterr(struct hd_cntr *c, uint64_t v)
{
	store(c, &c->errors, v);
}

void hd_cntr_count_error(struct hd_cntr *c)
{
	if (c)
		hd_cntr_adderr(c, 1);
}

struct cntr_goal {
	uint64_t threshold, errors;
};

static bool cntr_ready(struct hd_waiters *w, uint64_t arg)
{
	struct hd_cntr *c = hd_container(w, struct hd_cntr, w);
	const struct cntr_goal *goal = (const struct cntr_goal *)(uintptr_t)arg;

	return hd_cntr_read(c) >= goal->threshold || hd_cntr_readerr(c) != goal->errors;
}

int hd_cntr_wait(struct hd_cntr *c, uint64_t threshold, int timeout_ms)
{
	struct cntr_goal goal = { threshold, hd_cntr_readerr(c) };
	int rc = hd_waiters_wait(&c->w, cntr_ready, (uint64_t)(uintptr_t)&goal, timeout_ms);

	if (hd_cntr_read(c) >= threshold)
		return 0;
	if (hd_cntr_readerr(c) != goal.errors)
		return -EIO;
	return rc == -EAGAIN ? -ETIMEDOUT : rc;
}

int hd_cntr_fd(struct hd_cntr *c)
{
	return c->w.epoll_fd;
}

static bool never(struct hd_waiters *w, uint64_t arg)
{
	return false;
}

int hd_cntr_arm(struct hd_cntr *c)
{
	return hd_waiters_arm_fd(&c->w, never, 0);
}
