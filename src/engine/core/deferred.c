/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Deferred work: what is put off to the end of a turn of progress. Cross-thread
 * work: what others hand in.
 */
#include "engine/core/core.h"

void hd_deferred_post(struct hd_node *node, struct hd_deferred *deferred)
{
	hd_assert_locked(node);
	if (deferred->posted)
		return;
	deferred->posted = true;
	TAILQ_INSERT_TAIL(&hd_core(node)->deferred, deferred, entry);
	hd_work_due(node, HD_WORK_DEFERRED);
	hd_node_stir(node);
}

/* In a forked child the list is gone. */
void hd_deferred_drop(struct hd_node *node, struct hd_deferred *deferred)
{
	if (deferred->posted && !hd_core(node)->gate.dead)
		TAILQ_REMOVE(&hd_core(node)->deferred, deferred, entry);
	deferred->posted = false;
}

/* None of it counts as something that a poll has moved. */
int hd_deferred_run(struct hd_node *node)
{
	struct hd_deferred *deferred;
	int n = 0;

	TAILQ_FOREACH(deferred, &hd_core(node)->deferred, entry)
		n++;
	for (; n && (deferred = TAILQ_FIRST(&hd_core(node)->deferred));
	     n--) { /* what is posted meanwhile has its turn in the next one */
		hd_deferred_drop(node, deferred);
		deferred->fn(deferred);
	}
	return 0;
}

/* ---- cross-thread work ----------------------------------------------------------------------- */

void hd_crosswork_send(struct hd_node *node, struct hd_crosswork *crosswork)
{
	struct hd_crosswork *first = atomic_load(&hd_core(node)->crosswork);

	do
		crosswork->next = first;
	while (!atomic_compare_exchange_weak(&hd_core(node)->crosswork, &first, crosswork));
	if (!first)
		hd_node_signal(node);
}

/* In the order in which they were handed in. */
void hd_crosswork_run(struct hd_node *node)
{
	struct hd_crosswork *latest = atomic_exchange(&hd_core(node)->crosswork, NULL), *e, *first = NULL;

	hd_assert_locked(node);
	while ((e = latest)) {
		latest = e->next;
		e->next = first;
		first = e;
	}
	while ((e = first)) {
		first = e->next;
		e->fn(e);
	}
}
