/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Triggers: what a front wants done when a counter reaches a threshold. They are fired at the top
 * of progress, never in the call that counts: that may be deep inside a transport. A counter that
 * has reached one is put on the node's list of those that are due.
 */
#include "engine/event/event.h"
#include "engine/event/waiters.h"

#include <errno.h>

static uint64_t value_for(struct hd_cntr *c, bool with_errors)
{
	return hd_cntr_read(c) + (with_errors ? hd_cntr_readerr(c) : 0);
}

static bool trigger_reached(struct hd_cntr *c)
{
	for (int i = 0; i < 2; i++) {
		struct hd_trigger *t = TAILQ_FIRST(&c->triggers[i]);

		if (t && t->threshold <= value_for(c, i))
			return true;
	}
	return false;
}

static void update(struct hd_cntr *c)
{
	hd_waiters_keep(&c->w, !TAILQ_EMPTY(&c->triggers[0]) || !TAILQ_EMPTY(&c->triggers[1]));
}

static void trigger_due(struct hd_cntr *c)
{
	struct hd_node *node = c->node;

	hd_work_due(node, HD_WORK_FIRE);
	if (c->is_due)
		return;
	c->is_due = true;
	TAILQ_INSERT_TAIL(&hd_events(node)->due, c, due_entry);
}

/* hd_triggers_look: the counter has changed. */
void hd_triggers_look(struct hd_cntr *c)
{
	if (c->is_due || !trigger_reached(c))
		return;
	trigger_due(c);
	hd_node_stir(c->node);
}

static void trigger_insert(struct hd_cntr *c, struct hd_trigger *t)
{
	struct hd_triggers *list = &c->triggers[t->with_errors];
	struct hd_trigger *at;

	TAILQ_FOREACH_REVERSE(at, list, hd_triggers, entry)
	if (at->threshold <= t->threshold)
		break;
	if (at)
		TAILQ_INSERT_AFTER(list, at, t, entry);
	else
		TAILQ_INSERT_HEAD(list, t, entry);
}

void hd_cntr_trigger(struct hd_cntr *c, struct hd_trigger *t)
{
	hd_assert_locked(c->node);
	t->cntr = c;
	trigger_insert(c, t);
	update(c);
	if (!trigger_reached(c))
		return;
	trigger_due(c);
	hd_triggers_run(c->node);
}

void hd_trigger_cancel(struct hd_trigger *t)
{
	struct hd_cntr *c = t->cntr;

	hd_assert_locked(c->node);
	TAILQ_REMOVE(&c->triggers[t->with_errors], t, entry);
	t->cntr = NULL;
	update(c);
}

/* Fire those of one kind whose threshold is reached, up to one that has to wait. True: one has. */
static bool event_trigger_fire(struct hd_cntr *c, bool with_errors, int *fired)
{
	struct hd_triggers *list = &c->triggers[with_errors];
	struct hd_trigger *t;

	while ((t = TAILQ_FIRST(list)) && t->threshold <= value_for(c, with_errors)) {
		TAILQ_REMOVE(list, t, entry);
		t->cntr = NULL;
		if (t->fire(t) == -EAGAIN) {
			t->cntr = c;
			TAILQ_INSERT_HEAD(list, t, entry);
			return true;
		}
		++*fired;
	}
	return false;
}

/*
 * hd_triggers_run: fire what is due; returns how many were fired. Those that find no room stay due,
 * and are tried again in the next turn. A trigger that makes others due does not fire them by
 * itself: it is called from here.
 */
int hd_triggers_run(struct hd_node *node)
{
	TAILQ_HEAD(, hd_cntr) stuck = TAILQ_HEAD_INITIALIZER(stuck);
	struct hd_cntr *c;
	int fired = 0;

	if (hd_events(node)->firing || TAILQ_EMPTY(&hd_events(node)->due))
		return 0;
	hd_events(node)->firing = true;
	while ((c = TAILQ_FIRST(&hd_events(node)->due))) {
		bool waits;

		TAILQ_REMOVE(&hd_events(node)->due, c, due_entry);
		c->is_due = false;
		waits = event_trigger_fire(c, false, &fired);
		waits |= event_trigger_fire(c, true, &fired);
		update(c);
		if (!waits)
			continue;
		if (c->is_due) /* it was counted meanwhile */
			TAILQ_REMOVE(&hd_events(node)->due, c, due_entry);
		c->is_due = true;
		TAILQ_INSERT_TAIL(&stuck, c, due_entry);
	}
	TAILQ_CONCAT(&hd_events(node)->due, &stuck, due_entry);
	if (!TAILQ_EMPTY(&hd_events(node)->due))
		hd_work_due(node, HD_WORK_FIRE);
	hd_events(node)->firing = false;
	return fired;
}

void hd_triggers_forked(struct hd_node *node)
{
	TAILQ_INIT(&hd_events(node)->due);
}
