/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * What a wait set consists of: the members of each node, and event queues; and
 * how all of them are armed.
 */
#include "engine/core/core.h"
#include "engine/event/evq.h"
#include "engine/event/waiters.h"
#include "engine/event/wset.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>

/* ---- arming ---------------------------------------------------------------------------------- */

static void update_members(struct hd_wgroup *g)
{
	struct hd_waiters *w;

	LIST_FOREACH(w, &g->members, member)
		hd_waiters_update(w);
}

bool hd_wgroup_ready(struct hd_wgroup *g)
{
	struct hd_waiters *w;

	LIST_FOREACH(w, &g->members, member)
		if (w->ready(w, 1))
			return true;
	return false;
}

/*
 * From now on whatever comes for the group makes the set's epoll set readable. True:
 * something is there already.
 */
static bool wset_members_arm(struct hd_wgroup *g, int reason)
{
	bool again = g->reasons & reason;
	bool there;

	g->reasons |= reason;
	update_members(g);
	there = hd_sleep_arm(g->node) > 0;
	if (again)
		hd_sleep_disarm(g->node);
	hd_timer_fd_set(g->node);
	return there || hd_wgroup_ready(g);
}

void hd_wgroup_disarm(struct hd_wgroup *g, int reason)
{
	if (!(g->reasons & reason) || hd_core(g->node)->gate.dead)
		return;
	g->reasons &= ~reason;
	update_members(g);
	hd_node_hurry(g->node);
	hd_sleep_disarm(g->node);
}

/* An event queue arms its nodes by itself; when that has been done, once more to look. */
static bool evq_arm(struct hd_wevq *e, int reason)
{
	bool again = e->reasons & reason;
	bool there = hd_evq_watched(e->evq, true);

	if (again)
		hd_evq_watched(e->evq, false);
	e->reasons |= reason;
	return there;
}

static void evq_disarm(struct hd_wevq *e, int reason)
{
	if (e->reasons & reason)
		hd_evq_watched(e->evq, false);
	e->reasons &= ~reason;
}

bool hd_wset_arm_all(struct hd_wset *set, int reason)
{
	struct hd_wgroup *g;
	struct hd_wevq *e;
	bool there = false;

	LIST_FOREACH(e, &set->evqs, entry)
		there |= evq_arm(e, reason);
	LIST_FOREACH(g, &set->groups, entry) {
		hd_node_lock(g->node);
		there |= wset_members_arm(g, reason);
		hd_node_unlock(g->node);
	}
	return there;
}

void hd_wset_disarm_all(struct hd_wset *set, int reason)
{
	struct hd_wgroup *g;
	struct hd_wevq *e;

	LIST_FOREACH(e, &set->evqs, entry)
		evq_disarm(e, reason);
	LIST_FOREACH(g, &set->groups, entry) {
		hd_node_lock(g->node);
		hd_wgroup_disarm(g, reason);
		hd_node_unlock(g->node);
	}
}

/* ---- members --------------------------------------------------------------------------------- */

static struct hd_wgroup *group_of(struct hd_wset *set, struct hd_node *node)
{
	struct hd_wgroup *g;

	LIST_FOREACH(g, &set->groups, entry)
		if (g->node == node)
			return g;
	return NULL;
}

static int group_make(struct hd_wset *set, struct hd_node *node, struct hd_wgroup **out)
{
	struct hd_wgroup *g = calloc(1, sizeof(*g));
	int rc;

	if (!g)
		return -ENOMEM;
	rc = hd_wset_watch(set, EPOLL_CTL_ADD, hd_core(node)->epoll_fd);
	if (rc) {
		free(g);
		return rc;
	}
	g->set = set;
	g->node = node;
	LIST_INSERT_HEAD(&set->groups, g, entry);
	*out = g;
	return 0;
}

/*
 * hd_waiters_join: without the node's lock. Threads that sleep on the set lie down anew,
 * on the new member as well.
 */
int hd_waiters_join(struct hd_waiters *w, struct hd_wset *set)
{
	struct hd_wgroup *g;
	int rc = 0;

	if (!hd_wset_is_ours(set) || hd_core(w->node)->gate.dead)
		return -ENOTRECOVERABLE;
	hd_lock_take(&set->lock);
	g = group_of(set, w->node);
	if (!g)
		rc = group_make(set, w->node, &g);
	if (!rc) {
		hd_node_lock(w->node);
		w->group = g;
		LIST_INSERT_HEAD(&g->members, w, member);
		hd_waiters_update(w);
		hd_node_unlock(w->node);
		if (set->sleepers)
			hd_wset_wake(set);
	}
	hd_lock_give(&set->lock);
	return rc;
}

static void group_free(struct hd_wgroup *g)
{
	struct hd_node *node = g->node;

	hd_node_lock(node);
	hd_wgroup_disarm(g, HD_WSET_BY_THREADS);
	hd_wgroup_disarm(g, HD_WSET_BY_FD);
	hd_node_unlock(node);
	if (hd_wset_is_ours(g->set))
		hd_wset_watch(g->set, EPOLL_CTL_DEL, hd_core(node)->epoll_fd);
	LIST_REMOVE(g, entry);
	free(g);
}

/* hd_waiters_leave: without the node's lock. */
void hd_waiters_leave(struct hd_waiters *w)
{
	struct hd_wgroup *g = w->group;
	struct hd_wset *set;

	if (!g)
		return;
	set = g->set;
	hd_lock_take(&set->lock);
	hd_node_lock(w->node);
	LIST_REMOVE(w, member);
	w->group = NULL;
	hd_waiters_update(w);
	hd_node_unlock(w->node);
	if (LIST_EMPTY(&g->members))
		group_free(g);
	hd_lock_give(&set->lock);
}

int hd_evq_join(struct hd_evq *evq, struct hd_wset *set)
{
	struct hd_wevq *e = calloc(1, sizeof(*e));
	int rc;

	if (!e)
		return -ENOMEM;
	e->evq = evq;
	hd_lock_take(&set->lock);
	rc = hd_wset_is_ours(set) ? hd_wset_watch(set, EPOLL_CTL_ADD, hd_evq_fd(evq)) : -ENOTRECOVERABLE;
	if (!rc)
		LIST_INSERT_HEAD(&set->evqs, e, entry);
	if (!rc && set->sleepers)
		hd_wset_wake(set);
	hd_lock_give(&set->lock);
	if (rc)
		free(e);
	return rc;
}

void hd_evq_leave(struct hd_evq *evq, struct hd_wset *set)
{
	struct hd_wevq *e;

	hd_lock_take(&set->lock);
	LIST_FOREACH(e, &set->evqs, entry)
		if (e->evq == evq)
			break;
	if (e) {
		if (hd_wset_is_ours(set))
			hd_wset_watch(set, EPOLL_CTL_DEL, hd_evq_fd(evq));
		evq_disarm(e, HD_WSET_BY_THREADS);
		evq_disarm(e, HD_WSET_BY_FD);
		LIST_REMOVE(e, entry);
	}
	hd_lock_give(&set->lock);
	free(e);
}
