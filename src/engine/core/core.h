/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * What runs a node: its lock, turns of progress and their phases, timers, deferred and cross-thread
 * work, sleeping, the thread of automatic progress. It knows transports by engine/transport.h, and
 * no object of the rooms above.
 *
 * Called by every room. With the node's lock, but for what takes it, sleeping (hd_block, which
 * gives it back meanwhile), hd_poll_openly and hd_sleep_on. Upcalls: turn.h says what a turn calls,
 * and timers, watches and deferred work call their fn. All with the lock, outside of a walk along
 * anything of core's; they may start and stop any of the same, themselves included, and block
 * nowhere.
 */
#ifndef HD_ENGINE_CORE_H
#define HD_ENGINE_CORE_H

#include "base/macros.h"
#include "engine/core/state.h"

/*
 * hd_refuse(err, why): -err, and a line in the log at level debug that says why a call on
 * the data path is refused: the fronts hand the errno on as it is. Not for what the
 * caller waits for: -EAGAIN.
 */
#define HD_OF_PARENT "what it is made on was opened by the process that has forked this one"
#define HD_NO_SUCH_KEY "the endpoint has no authorization key that its destination has"
int hd_refuse(int err, const char *why) __attribute__((cold));

/* hd_node_program_turns: see there. Without the lock as well. */
static inline uint64_t hd_node_program_turns(const struct hd_node *node)
{
	return atomic_load_explicit(&hd_core(node)->program_turns, memory_order_relaxed);
}

/*
 * hd_assert_locked: the first statement of what needs the node's lock; checked
 * in builds with assertions.
 */
static inline void hd_assert_locked(struct hd_node *node)
{
#ifndef NDEBUG
	if (hd_core(node)->gate.locked)
		assert(hd_biased_is_taken(&hd_core(node)->gate.lock));
#else
	(void)node;
#endif
}

/*
 * hd_publish: the phase of this name, now: before something is done that must come
 * behind what has been accepted.
 */
void hd_publish_run(struct hd_node *node);
static inline void hd_publish(struct hd_node *node)
{
	if (hd_unlikely(!LIST_EMPTY(&hd_core(node)->publishing)))
		hd_publish_run(node);
}

/* hd_node_hurry: the next turn looks at descriptors and timers too. */
static inline void hd_node_hurry(struct hd_node *node)
{
	hd_core(node)->slow_due = 0;
	hd_core(node)->turns |= HD_EIGHTH;
}

/* hd_work_due: there is work of this kind, for the work phase of the next turn. */
static inline void hd_work_due(struct hd_node *node, enum hd_turn_work kind)
{
	hd_core(node)->work |= 1u << kind;
}

/*
 * hd_publish_join: publish->fn is called in the publish phase. hd_push_join, hd_push_leave:
 * push->fn in each push phase, from now on or no longer; who joins keeps a flag, for it is not to
 * join twice. It wakes nobody: outside of a turn hd_node_stir (transport.h) does.
 */
static inline void hd_publish_join(struct hd_node *node, struct hd_publish *publish)
{
	LIST_INSERT_HEAD(&hd_core(node)->publishing, publish, entry);
}
static inline void hd_push_join(struct hd_node *node, struct hd_push *push)
{
	TAILQ_INSERT_TAIL(&hd_core(node)->pushing, push, entry);
}
static inline void hd_push_leave(struct hd_node *node, struct hd_push *push)
{
	TAILQ_REMOVE(&hd_core(node)->pushing, push, entry);
}

/*
 * hd_await_join, hd_await_leave: one more waits for a word that the look
 * phase looks at, or one less.
 */
static inline void hd_await_join(struct hd_node *node)
{
	hd_core(node)->awaiting_count++;
}
static inline void hd_await_leave(struct hd_node *node)
{
	hd_core(node)->awaiting_count--;
}

/*
 * hd_target_wrote: a write or atomic operation of a peer has been carried out. hd_target_stores: by
 * how many more of them are coming in.
 */
static inline void hd_target_wrote(struct hd_node *node)
{
	hd_core(node)->written++;
}
static inline void hd_target_stores(struct hd_node *node, int by)
{
	hd_core(node)->storing += (uint32_t)by;
}

/*
 * progress.c: epoll, watches, timers, sleeping. hd_core_init: nothing of it can fail, and it comes
 * before all else of the node. hd_core_show: others see the node by this page. hd_core_port: this
 * port is the node's, the best one yet. hd_core_lock: the lock is taken from now on, or not.
 * hd_core_closing: the node closes.
 */
void hd_core_init(struct hd_node *node, const struct hd_node_attr *attr, const struct hd_turn_ops *ops);
void hd_core_show(struct hd_node *node, struct hd_node_page *page);
void hd_core_port(struct hd_node *node, struct hd_port *port);
void hd_core_lock(struct hd_node *node, bool locked);
void hd_core_closing(struct hd_node *node);
int hd_core_open(struct hd_node *node);
void hd_core_close(struct hd_node *node);
/* in a child: it is dead, and what was to be done is forgotten */
void hd_core_forked(struct hd_node *node);
int hd_turn(struct hd_node *node);
void hd_node_say(struct hd_node *node);
void hd_timer_fd_set(struct hd_node *node);
int hd_sleep_arm(struct hd_node *node);
void hd_sleep_disarm(struct hd_node *node);
int hd_timer_next_ms(struct hd_node *node);

/*
 * block.c. hd_is_interrupted: is there a handler that is not to restart calls? To be asked
 * when poll(2) has said EINTR.
 * hd_poll_openly: poll(2), where the thread may be cancelled, unless its program has forbidden
 * that: 0, or -EINTR: a handler ran that is not to restart calls. hd_sleep_on: the same as *rc;
 * on_cancel puts back what the wait has changed, if the thread is cancelled.
 * hd_block_turn: a turn before that. Of one who leaves the node to another it does not count as one
 * of a program that polls: the other one may leave it to us, and both would look every few
 * milliseconds from then on. hd_block: sleep once, on these descriptors and on whatever concerns
 * the node, whose lock is held before and after.
 */
struct pollfd;
struct hd_poll {
	struct pollfd *fds;
	unsigned long count;
	int ms; /* at most; negative: no end */
	/* pthread_setcancelstate(3): as the program had it, which is put off all around */
	int cancel;
	bool any_signal; /* interrupts, with -EINTR */
};
/* Threads that sleep at an object, and hd_ticks() when the wait of the last one began. */
struct hd_asleep {
	int threads;
	uint64_t since;
};
struct hd_block {
	struct hd_poll on;    /* fds with room for one more than count */
	struct hd_node *node; /* hd_block sets it */
	/* where it counts as asleep meanwhile, for who looks in, since this time; NULL: nowhere */
	struct hd_asleep *at;
	uint64_t since;
	/* another thread of the program makes progress there: that is left out */
	bool beside;
	bool told; /* false at first: the node's thread knows of this wait */
};
int hd_block_turn(struct hd_node *node, bool beside);
int hd_block(struct hd_node *node, struct hd_block *how);
bool hd_is_interrupted(void);
int hd_poll_openly(const struct hd_poll *on);
void hd_sleep_on(const struct hd_poll *on, void (*on_cancel)(void *arg), void *arg, int *rc);

/* thread.c */
int hd_auto_start(struct hd_node *node);
int hd_auto_serve(struct hd_node *node);
void hd_auto_stop(struct hd_node *node);
void hd_auto_leave(struct hd_node *node);
void hd_auto_init(struct hd_node *node);
void hd_auto_notify(struct hd_node *node);
void hd_auto_back(struct hd_node *node);
int hd_auto_poll(struct hd_node *node);

/*
 * offer.c: hd_offer_look: it is hd_core.offer_look, or later: have turns brought something since
 * the last call? now: hd_ticks(). With the lock.
 */
void hd_offer_look(struct hd_node *node, uint64_t now);
/*
 * hd_offer_anew: the caller's thread sleeps, or has asked for notice and may: it gives its
 * processor away by that, and has not polled in vain. With the lock.
 */
void hd_offer_anew(struct hd_node *node);
/*
 * hd_node_meets: a greeting has got on, and the other end is to take its next step: for a second
 * the processor is offered soon, whatever earlier offers have taught. hd_node_crowd: so many nodes
 * of this host more, or fewer, have a link with this one: with as many as there are processors it
 * is so all the time. With the lock.
 */
void hd_node_meets(struct hd_node *node);
void hd_node_crowd(struct hd_node *node, int by);

/*
 * nodes.c: the nodes of this process, in hd_all_nodes, for who holds the list: hd_nodes_hold waits
 * for it, hd_nodes_try does not, hd_nodes_release gives it back. The child of a fork(2) finds it
 * free, and all of them have been told (hd_turn_ops.forked). hd_nodes_join and hd_nodes_leave:
 * without the node's lock. hd_nodes_are_several: has the process more than one?
 *
 * hd_nodes_help: a poll of own has found nothing: a turn of all others that the calling thread was
 * the last to poll. How much has moved. Without any lock.
 */
LIST_HEAD(hd_all_nodes, hd_core);
extern struct hd_all_nodes hd_all_nodes;
void hd_nodes_hold(void);
bool hd_nodes_try(void);
void hd_nodes_release(void);
void hd_nodes_join(struct hd_node *node);
void hd_nodes_leave(struct hd_node *node);
bool hd_nodes_are_several(void);
int hd_nodes_help(const struct hd_node *own);

/* watchdog.c */
void hd_watchdog_begin(struct hd_node *node);
void hd_watchdog_polled(struct hd_node *node, int moved);
void hd_watchdog_serve(struct hd_node *node);
int hd_watchdog_turn(struct hd_node *node);

/* deferred.c */
int hd_deferred_run(struct hd_node *node);
void hd_crosswork_run(struct hd_node *node);

#endif
