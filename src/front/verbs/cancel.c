/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Threads that are cancelled, pthread_cancel(3). What progress asks of the kernel is a point of
 * cancellation, and a thread that ended there would take the node's lock with it. To keep that out
 * costs two calls for each of ours (hv_enter), which nearly no program needs: so it begins with the
 * first pthread_cancel of the process, where we are there to see that one.
 */
#include "front/verbs/cancel.h"
#include "base/lock.h"

#include <dlfcn.h>
#include <sched.h>

atomic_bool hv_shields = true;

static LIST_HEAD(, hv_context) contexts = LIST_HEAD_INITIALIZER(contexts);
static bool begun;   /* somebody is about to cancel a thread */
static bool cancels; /* and nobody is inside without a shield any more */
HD_LOCK_DEFINE(contexts_lock);

/*
 * Do the program's calls of pthread_cancel come here? Those of a process that has
 * only the drop-in do not.
 */
static bool sees_cancels(void)
{
	return hv_pthread_cancel && dlsym(RTLD_DEFAULT, "pthread_cancel") == (void *)hv_pthread_cancel;
}

void hv_cancel_watch(struct hv_context *ctx)
{
	hd_lock_take(&contexts_lock);
	LIST_INSERT_HEAD(&contexts, ctx, entry);
	if (!begun && sees_cancels())
		atomic_store_explicit(&hv_shields, false, memory_order_relaxed);
	hd_lock_give(&contexts_lock);
}

void hv_cancel_forget(struct hv_context *ctx)
{
	hd_lock_take(&contexts_lock);
	while (ctx->pins) {
		hd_lock_give(&contexts_lock);
		sched_yield();
		hd_lock_take(&contexts_lock);
	}
	LIST_REMOVE(ctx, entry);
	hd_lock_give(&contexts_lock);
}

/*
 * Wait until its lock has been given back by who has it now. contexts_lock, which is held, is not
 * under a node's: it goes meanwhile.
 */
static void pass_through(struct hv_context *ctx)
{
	ctx->pins++;
	hd_lock_give(&contexts_lock);
	hd_node_lock(ctx->node);
	hd_node_unlock(ctx->node);
	hd_lock_take(&contexts_lock);
	ctx->pins--;
}

/*
 * Who had a lock when the flag was set may be without a shield: wait until it has been given back.
 * The next one sees the flag.
 */
void hv_cancel_begins(void)
{
	struct hv_context *ctx;

	hd_lock_take(&contexts_lock);
	if (!cancels) {
		begun = true;
		atomic_store_explicit(&hv_shields, true, memory_order_relaxed);
		LIST_FOREACH(ctx, &contexts, entry)
			if (!hd_node_dead(ctx->node))
				pass_through(ctx);
		cancels = true; /* several threads may have come so far */
	}
	hd_lock_give(&contexts_lock);
}
