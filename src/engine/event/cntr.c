/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Counters of completions. Written under the node's lock, read by anybody. */
#include "engine/core/core.h"
#include "engine/event/event.h"
#include "engine/event/waiters.h"

#include <errno.h>
#include <stdlib.h>

/* Has it changed since the program has read it? */
static bool cntr_is_news(struct hd_waiters *w, uint64_t arg)
{
	struct hd_cntr *c = hd_container(w, struct hd_cntr, w);

	return hd_cntr_read(c) != c->seen || hd_cntr_readerr(c) != c->seen_errors;
}

int hd_cntr_open(struct hd_node *node, struct hd_cntr **out)
{
	struct hd_cntr *c = calloc(1, sizeof(*c));
	int rc;

	if (!c)
		return -ENOMEM;
	c->node = node;
	TAILQ_INIT(&c->triggers[0]);
	TAILQ_INIT(&c->triggers[1]);
	rc = hd_waiters_init(&c->w, node, &c->armed, cntr_is_news, false);
	if (rc < 0) {
		free(c);
		return rc;
	}
	c->w.any_signal = true;
	hd_events(node)->cntrs++;
	*out = c;
	return 0;
}

void hd_cntr_by_bytes(struct hd_cntr *c)
{
	c->counts_bytes = true;
}

int hd_cntr_close(struct hd_cntr *c)
{
	if (c->users || !TAILQ_EMPTY(&c->triggers[0]) || !TAILQ_EMPTY(&c->triggers[1]))
		return -EBUSY;
	if (c->is_due && !hd_core(c->node)->gate.dead) /* its triggers were cancelled */
		TAILQ_REMOVE(&hd_events(c->node)->due, c, due_entry);
	hd_waiters_fini(&c->w);
	hd_events(c->node)->cntrs--;
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

/* Somebody waits for that, asleep or with a trigger. */
static void cntr_changed(struct hd_cntr *c)
{
	hd_wake(&c->w);
	hd_triggers_look(c);
}

static void cntr_store(struct hd_cntr *c, _Atomic uint64_t *at, uint64_t v)
{
	hd_assert_locked(c->node);
	atomic_store_explicit(at, v, memory_order_relaxed);
	if (c->armed)
		cntr_changed(c);
}

/* What the program has changed by itself. That may reach thresholds, and we are at the top here. */
static void store_own(struct hd_cntr *c, _Atomic uint64_t *at, uint64_t *own, uint64_t v)
{
	*own += v - atomic_load_explicit(at, memory_order_relaxed);
	cntr_store(c, at, v);
	hd_triggers_run(c->node);
}

void hd_cntr_add(struct hd_cntr *c, uint64_t n)
{
	store_own(c, &c->value, &c->own, hd_cntr_read(c) + n);
}

void hd_cntr_adderr(struct hd_cntr *c, uint64_t n)
{
	store_own(c, &c->errors, &c->own_errors, hd_cntr_readerr(c) + n);
}

void hd_cntr_set(struct hd_cntr *c, uint64_t v)
{
	store_own(c, &c->value, &c->own, v);
}

void hd_cntr_seterr(struct hd_cntr *c, uint64_t v)
{
	store_own(c, &c->errors, &c->own_errors, v);
}

void hd_cntr_event(struct hd_cntr *c, uint64_t n)
{
	cntr_store(c, &c->value, hd_cntr_read(c) + n);
}

void hd_cntr_completed(struct hd_cntr *c, uint64_t bytes)
{
	hd_assert_locked(c->node);
	atomic_store_explicit(&c->value, hd_cntr_read(c) + (c->counts_bytes ? bytes : 1),
			      memory_order_relaxed);
	if (hd_unlikely(c->armed))
		cntr_changed(c);
}

void hd_cntr_event_set(struct hd_cntr *c, uint64_t v)
{
	cntr_store(c, &c->value, v);
}

void hd_cntr_event_error(struct hd_cntr *c)
{
	cntr_store(c, &c->errors, hd_cntr_readerr(c) + 1);
}

uint64_t hd_cntr_events(struct hd_cntr *c)
{
	return hd_cntr_read(c) - c->own + hd_cntr_readerr(c) - c->own_errors;
}

void hd_cntr_count_error(struct hd_cntr *c)
{
	if (c)
		hd_cntr_event_error(c);
}

void hd_cntr_poll(struct hd_cntr *c)
{
	hd_assert_locked(c->node);
	if (c->armed)
		hd_waiters_disarm_fd(&c->w);
	hd_node_poll(c->node);
	if (hd_unlikely(hd_core(c->node)->gathering))
		hd_node_say(c->node);
	c->seen = hd_cntr_read(c);
	c->seen_errors = hd_cntr_readerr(c);
}

struct cntr_goal {
	uint64_t threshold, errors;
};

static bool cntr_ready(struct hd_waiters *w, uint64_t arg)
{
	struct hd_cntr *c = hd_container(w, struct hd_cntr, w);
	const struct cntr_goal *goal = (const struct cntr_goal *)(uintptr_t)arg;

	c->wanted = goal->threshold;
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
	return hd_waiters_fd(&c->w);
}

/* A change is told once: whoever is told has to read. */
int hd_cntr_arm(struct hd_cntr *c)
{
	int rc = hd_waiters_arm_fd(&c->w);

	c->seen = hd_cntr_read(c);
	c->seen_errors = hd_cntr_readerr(c);
	return rc;
}

int hd_cntr_join(struct hd_cntr *c, struct hd_wset *set)
{
	return hd_waiters_join(&c->w, set);
}

void hd_cntr_leave(struct hd_cntr *c)
{
	hd_waiters_leave(&c->w);
}
