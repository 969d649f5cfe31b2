/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Deferred work: what is put off to the end of a turn of progress. Cross-thread work: what others hand in. */
#include "engine/core/core.h"

void hd_deferred_post(struct hd_node *node, struct hd_deferred *chore)
{
	hd_assert_locked(node);
	if (chore->posted)
		return;
	chore->posted = true;
	TAILQ_INSERT_TAIL(&hd_core(node)->deferred, chore, entry);
	hd_work_due(node, HD_WORK_DEFERRED);
	hd_node_stir(node);
}

/* In a forked child the list is gone. */
void hd_deferred_drop(struct hd_node *node, struct hd_deferred *chore)
{
	if (chore->posted && !hd_core(node)->dead)
		TAILQ_REMOVE(&hd_core(node)->deferred, chore, entry);
	chore->posted = false;
}

/* None of it counts as something that a poll has moved. */
int hd_deferred_run(struct hd_node *node)
{
	struct hd_deferred *chore;
	int n = 0;

	TAILQ_FOREACH(chore, &hd_core(node)->deferred, entry)
		n++;
	for (; n && (chore = TAILQ_FIRST(&hd_core(node)->deferred));
	     n--) { /* what is posted meanwhile has its turn in the next one */
		hd_deferred_drop(node, chore);
		chore->fn(chore);
	}
	return 0;
}

/* ---- cross-thread work -------------------------------------------------------------------------------------------------------- */

void hd_crosswork_send(struct hd_node *node, struct hd_crosswork *errand)
{
	struct hd_crosswork *first = atomic_load(&hd_core(node)->crosswork);

	do
		errand->next = first;
	while (!atomic_compare_exchange_weak(&hd_core(node)->crosswork, &first, errand));
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
