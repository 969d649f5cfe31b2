/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Progress: what is active is polled in every turn; descriptors and timers every now and then,
 * or when the node wakes. Sleeping is arming: after hd_sleep_arm whatever happens makes the
 * node's epoll set readable.
 */
#include "base/clock.h"
#include "base/epoll.h"
#include "base/log.h"
#include "engine/core/core.h"

#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define HD_EVENTS 32 /* of one epoll_wait */
#define SLOW_US 50   /* descriptors and timers of a busy node are looked at this often */

/* ---- watches --------------------------------------------------------------------------------- */

static int watch_ctl(struct hd_node *node, int op, struct hd_watch *w)
{
	struct epoll_event ev = { .events = w->events, .data.ptr = w };

	if (hd_core(node)->gate.dead) /* the set is shared with the parent: hands off */
		return 0;
	return hd_epoll_ctl(hd_core(node)->epoll_fd, op, w->fd, &ev) < 0 ? -errno : 0;
}

int hd_watch_add(struct hd_node *node, struct hd_watch *watch)
{
	hd_assert_locked(node);
	return watch_ctl(node, EPOLL_CTL_ADD, watch);
}

int hd_watch_events(struct hd_node *node, struct hd_watch *watch, uint32_t events)
{
	if (watch->events == events)
		return 0;
	watch->events = events;
	return watch_ctl(node, EPOLL_CTL_MOD, watch);
}

void hd_watch_remove(struct hd_node *node, struct hd_watch *watch)
{
	hd_assert_locked(node);
	for (int i = 0; i < hd_core(node)->batch_count; i++)
		if (hd_core(node)->batch[i] == watch)
			hd_core(node)->batch[i] = NULL;
	watch_ctl(node, EPOLL_CTL_DEL, watch);
}

static int watches_run(struct hd_node *node)
{
	struct hd_watch *batch[HD_EVENTS];
	struct epoll_event ev[HD_EVENTS];
	int n = hd_epoll_look(hd_core(node)->epoll_fd, ev, HD_EVENTS), ran = 0;

	if (n <= 0)
		return 0;
	for (int i = 0; i < n; i++)
		batch[i] = ev[i].data.ptr;
	hd_core(node)->batch = batch;
	hd_core(node)->batch_count = n;
	for (int i = 0; i < n; i++)
		if (batch[i]) {
			batch[i]->fn(batch[i], ev[i].events);
			ran++;
		}
	hd_core(node)->batch_count = 0;
	return ran;
}

/* ---- timers ---------------------------------------------------------------------------------- */

void hd_timer_stop(struct hd_node *node, struct hd_timer *timer)
{
	hd_assert_locked(node);
	if (timer->due)
		hd_timers_remove(&hd_core(node)->timers, timer);
	timer->due = 0;
}

void hd_timer_set(struct hd_node *node, struct hd_timer *timer, uint64_t ns)
{
	struct hd_timers *timers = &hd_core(node)->timers;

	hd_timer_stop(node, timer);
	timer->due = hd_now_ns() + ns;
	hd_timers_add(timers, timer);
	if (timers->first == timer &&
	    hd_core(node)->arms) /* sleepers know of the timers of their time only */
		hd_timer_fd_set(node);
}

static int timers_run(struct hd_node *node)
{
	struct hd_timer *t = hd_core(node)->timers.first;
	uint64_t now;
	int ran = 0;

	if (!t)
		return 0;
	now = hd_now_ns();
	while ((t = hd_core(node)->timers.first) && t->due <= now) {
		hd_timer_stop(node, t);
		t->fn(t);
		ran++;
	}
	return ran;
}

/* hd_timer_next_ms: until the next timer, rounded up; -1: there is none. */
int hd_timer_next_ms(struct hd_node *node)
{
	struct hd_timer *t = hd_core(node)->timers.first;
	uint64_t now = t ? hd_now_ns() : 0;

	if (!t)
		return -1;
	return t->due <= now ? 0 : (int)((t->due - now) / HD_NS_PER_MS) + 1;
}

/*
 * hd_timer_fd_set: the program is about to poll a descriptor of ours: let the
 * next timer make it readable.
 */
void hd_timer_fd_set(struct hd_node *node)
{
	struct hd_timer *t = hd_core(node)->timers.first;
	struct itimerspec at = { 0 };

	if (hd_core(node)->gate.dead || (!t && !hd_core(node)->timer_fd_set))
		return;
	if (t) {
		at.it_value.tv_sec = t->due / HD_NS_PER_S;
		at.it_value.tv_nsec = t->due % HD_NS_PER_S;
	}
	hd_core(node)->timer_fd_set = t != NULL;
	timerfd_settime(hd_core(node)->timer_watch.fd, TFD_TIMER_ABSTIME, &at, NULL);
}

static void timer_fd_fired(struct hd_watch *watch, uint32_t events)
{
	struct hd_node *node = hd_node_of(watch, struct hd_core, timer_watch);
	uint64_t n;

	if (read(watch->fd, &n, sizeof(n)) > 0) /* or another thread has read it */
		hd_core(node)->timer_fd_set = false;
}

/* ---- a turn ---------------------------------------------------------------------------------- */

void hd_port_active(struct hd_port *port, bool on)
{
	struct hd_node *node = port->node;
	int i = 0;

	hd_assert_locked(node);
	port->active += on ? 1 : -1;
	if (on && port->active == 1) {
		hd_core(node)->active[hd_core(node)->active_count++] = port;
	} else if (!on && port->active == 0) {
		while (hd_core(node)->active[i] != port)
			i++;
		hd_core(node)->active[i] = hd_core(node)->active[--hd_core(node)->active_count];
		hd_core(node)->active[hd_core(node)->active_count] = NULL;
	}
}

void hd_publish_run(struct hd_node *node)
{
	struct hd_publish *publish;

	while ((publish = LIST_FIRST(&hd_core(node)->publishing)))
		publish->fn(publish);
}

static __attribute__((noinline)) int push_run(struct hd_node *node)
{
	struct hd_push *push, *next;
	int n = 0;

	for (push = TAILQ_FIRST(&hd_core(node)->pushing); push; push = next) {
		next = TAILQ_NEXT(push, entry);
		n += push->fn(push);
	}
	return n;
}

/* Where somebody waits for it. */
static int look_run(struct hd_node *node, bool all)
{
	return hd_core(node)->awaiting_count ? hd_core(node)->turn_ops->look(node, all) : 0;
}

/* One kind of it, where it is due. */
static int work_on(struct hd_node *node, enum hd_turn_work kind)
{
	if (!(hd_core(node)->work & 1u << kind))
		return 0;
	hd_core(node)->work &= ~(1u << kind);
	return hd_core(node)->turn_ops->work[kind](node);
}

static __attribute__((noinline)) int work_run(struct hd_node *node)
{
	int n = 0;

	for (int kind = 0; kind < HD_WORKS; kind++)
		n += work_on(node, kind);
	return n;
}

static __attribute__((noinline)) int slow_run(struct hd_node *node)
{
	bool set = hd_core(node)->timer_fd_set;
	int n;

	hd_core(node)->slow_due = hd_ticks() + hd_core(node)->slow_step;
	hd_witness_renew(&hd_core(node)->page->witness);
	n = watches_run(node);
	n += timers_run(node);
	if (hd_unlikely(set && !hd_core(node)->timer_fd_set && hd_core(node)->arms))
		/* who sleeps may not have seen that it was readable, and waits for the next one */
		hd_timer_fd_set(node);
	return n;
}

/*
 * Every eighth turn. Peers see by the count that we poll; a relaxed store, for
 * it is no more than a hint.
 */
static __attribute__((noinline)) int now_and_then(struct hd_node *node)
{
	uint64_t now;
	int n;

	if (hd_core(node)->gate.dead)
		return 0;
	atomic_store_explicit(&hd_page_tables(hd_core(node)->page)->turns, hd_core(node)->turns,
			      memory_order_relaxed);
	n = look_run(node, false);
	now = hd_ticks();
	atomic_store_explicit(&hd_core(node)->poller, hd_thread_self(), memory_order_relaxed);
	if (hd_unlikely(now >= hd_core(node)->offer_look))
		hd_offer_look(node, now);
	return n + (now >= hd_core(node)->slow_due ? slow_run(node) : 0);
}

static inline void turn_check(struct hd_node *node, int moved)
{
#ifndef NDEBUG
	if (moved && !hd_core(node)->gate.dead)
		hd_core(node)->turn_ops->check(node);
#endif
}

/* hd_turn: one turn of progress, whoever makes it. */
int hd_turn(struct hd_node *node)
{
	struct hd_port **port = hd_core(node)->active;
	int n = 0;

	for (; *port; port++) /* one may leave its place meanwhile, to another */
		n += (*port)->transport->poll(*port);
	hd_publish(node);
	if (hd_unlikely(!TAILQ_EMPTY(&hd_core(node)->pushing)))
		n += push_run(node);
	if (hd_unlikely(!n && hd_core(node)->awaiting_count))
		n = hd_core(node)->turn_ops->look(node, false);
	if (n)
		hd_core(node)->news = true;
	if (hd_unlikely((++hd_core(node)->turns & HD_EIGHTH) == 0))
		n += now_and_then(node);
	if (hd_unlikely(hd_core(node)->work))
		n += work_run(node);
	turn_check(node, n);
	return n;
}

int hd_node_poll(struct hd_node *node)
{
	hd_assert_locked(node);
	atomic_store_explicit(&hd_core(node)->program_turns, hd_node_program_turns(node) + 1,
			      memory_order_relaxed);
	if (hd_unlikely(hd_core(node)->worker.asks))
		return hd_auto_poll(node);
	return hd_turn(node);
}

/* ---- sleeping -------------------------------------------------------------------------------- */

static void sleep_step(struct hd_node *node, uint32_t by)
{
	/*
	 * release: a peer that sees the node awake again sees all that it did before.
	 * That a peer's message is seen by us, or our sleep by the peer, is the business
	 * of the transport's arm().
	 */
	atomic_store_explicit(&hd_core(node)->page->sleep_seq,
			      atomic_load_explicit(&hd_core(node)->page->sleep_seq, memory_order_relaxed) +
				      by,
			      memory_order_release);
}

static bool ports_arm(struct hd_node *node)
{
	bool there = false;

	hd_core(node)->arming = true;
	for (int i = 0; i < hd_core(node)->port_count; i++)
		there |= hd_core(node)->ports[i]->transport->arm(hd_core(node)->ports[i]) > 0;
	hd_core(node)->arming = false;
	return there;
}

/*
 * Is there anything to be done before the node may sleep? A peer for which something is queued is
 * no reason to stay awake while it waits for room or credit: it has just been tried, so that what
 * it lacks is what the ports have to look out for. They do so once more, for it may not have lacked
 * that when they were armed. So it is with a triggered operation that finds no room.
 */
static bool anything_there(struct hd_node *node)
{
	bool there = ports_arm(node);

	there |= look_run(node, true) > 0 &&
		 atomic_load_explicit(&hd_core(node)->page->sleep_heeds, memory_order_relaxed);
	if (!there && (!TAILQ_EMPTY(&hd_core(node)->pushing) || hd_core(node)->work & 1u << HD_WORK_FIRE))
		there = work_on(node, HD_WORK_FIRE) + push_run(node) > 0 || ports_arm(node);
	return there || hd_core(node)->work & HD_WORK_AWAKE;
}

/*
 * hd_sleep_arm: from now on whatever comes makes the epoll set readable, until as
 * many hd_sleep_disarm. Returns 0, or a positive number when something is there
 * already (armed all the same).
 */
int hd_sleep_arm(struct hd_node *node)
{
	hd_assert_locked(node);
	if (hd_core(node)->gate.dead)
		return 1;
	hd_offer_anew(node);
	hd_core(node)->turn_ops->look_arm(node);
	if (hd_core(node)->arms++ == 0)
		sleep_step(node, 1);
	return anything_there(node);
}

void hd_sleep_disarm(struct hd_node *node)
{
	if (hd_core(node)->gate.dead || --hd_core(node)->arms > 0)
		return;
	sleep_step(node, 1);
	for (int i = 0; i < hd_core(node)->port_count; i++)
		hd_core(node)->ports[i]->transport->disarm(hd_core(node)->ports[i]);
}

/*
 * The descriptor is drained while others sleep on it: those may not have noticed that it
 * was readable, and a peer wakes but once in a sleep. So begin a new one, and look at what
 * was sent in the old one.
 */
static void stay_armed(struct hd_node *node)
{
	hd_core(node)->turn_ops->look_arm(node);
	sleep_step(node, 2); /* odd as before */
	if (anything_there(node))
		hd_node_signal(node);
}

static void woken(struct hd_watch *watch, uint32_t events)
{
	struct hd_node *node = hd_node_of(watch, struct hd_core, wake_watch);
	eventfd_t n;

	(void)eventfd_read(watch->fd, &n);
	hd_crosswork_run(node);
	if (hd_core(node)->arms)
		stay_armed(node);
	else
		look_run(node, true);
}

void hd_node_signal(struct hd_node *node)
{
	if (!hd_core(node)->gate.dead) /* it is the parent's */
		(void)eventfd_write(hd_core(node)->wake_fd, 1);
}

void hd_node_stir(struct hd_node *node)
{
	hd_assert_locked(node);
	if (hd_unlikely(hd_core(node)->arms) && !hd_core(node)->arming)
		hd_node_signal(node);
}

void hd_node_gathers(struct hd_node *node, int links)
{
	hd_assert_locked(node);
	hd_core(node)->gathering += (uint32_t)links;
}

/*
 * hd_node_say: the program is about to be told what is over: it may be gone after that, but
 * what it has sent must not.
 */
void hd_node_say(struct hd_node *node)
{
	for (int i = 0; i < hd_core(node)->active_count; i++)
		if (hd_core(node)->active[i]->transport->say)
			hd_core(node)->active[i]->transport->say(hd_core(node)->active[i]);
}

/* ---- open, close, fork ----------------------------------------------------------------------- */

static void phases_init(struct hd_node *node)
{
	LIST_INIT(&hd_core(node)->publishing);
	TAILQ_INIT(&hd_core(node)->pushing);
	TAILQ_INIT(&hd_core(node)->deferred);
	hd_core(node)->work = 0;
	hd_core(node)->awaiting_count = 0;
}

static int processors(void)
{
	cpu_set_t own;

	if (sched_getaffinity(0, sizeof(own), &own) < 0)
		return CPU_SETSIZE; /* more than one can tell */
	return CPU_COUNT(&own);
}

void hd_core_init(struct hd_node *node, const struct hd_node_attr *attr, const struct hd_turn_ops *ops)
{
	struct hd_core *core = hd_core(node);

	core->attr = *attr;
	core->turn_ops = ops;
	core->processors = processors();
	phases_init(node);
	hd_biased_init(&core->gate.lock);
	hd_auto_init(node);
	core->epoll_fd = core->wake_fd = core->timer_watch.fd = -1;
}

void hd_core_show(struct hd_node *node, struct hd_node_page *page)
{
	hd_core(node)->page = page;
}

void hd_core_port(struct hd_node *node, struct hd_port *port)
{
	hd_core(node)->ports[hd_core(node)->port_count++] = port;
}

void hd_core_lock(struct hd_node *node, bool locked)
{
	hd_core(node)->gate.locked = locked;
}

void hd_core_closing(struct hd_node *node)
{
	hd_core(node)->closing = true;
}

int hd_core_open(struct hd_node *node)
{
	int rc;

	hd_core(node)->slow_step = SLOW_US * hd_ticks_per_us();
	hd_node_hurry(node);
	hd_core(node)->epoll_fd = hd_epoll_create();
	hd_core(node)->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	hd_core(node)->wake_watch =
		(struct hd_watch){ .fd = hd_core(node)->wake_fd, .events = EPOLLIN, .fn = woken };
	hd_core(node)->timer_watch = (struct hd_watch){ .events = EPOLLIN, .fn = timer_fd_fired };
	hd_core(node)->timer_watch.fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	if (hd_core(node)->epoll_fd < 0 || hd_core(node)->wake_fd < 0 || hd_core(node)->timer_watch.fd < 0)
		return -errno;
	rc = watch_ctl(node, EPOLL_CTL_ADD, &hd_core(node)->wake_watch);
	return rc ? rc : watch_ctl(node, EPOLL_CTL_ADD, &hd_core(node)->timer_watch);
}

/* Where it was not opened whole as well. In a child the sleeper of its thread is the parent's. */
void hd_core_close(struct hd_node *node)
{
	if (hd_core(node)->epoll_fd >= 0)
		close(hd_core(node)->epoll_fd);
	if (hd_core(node)->wake_fd >= 0)
		close(hd_core(node)->wake_fd);
	if (hd_core(node)->timer_watch.fd >= 0)
		close(hd_core(node)->timer_watch.fd);
	if (!hd_core(node)->gate.dead)
		pthread_cond_destroy(&hd_core(node)->worker.wake);
	pthread_mutex_destroy(&hd_core(node)->worker.lock);
	hd_biased_fini(&hd_core(node)->gate.lock);
}

void hd_core_forked(struct hd_node *node)
{
	hd_core(node)->gate.dead = true;
	hd_core(node)->worker.runs = false;
	hd_core(node)->active_count = 0;
	hd_core(node)->active[0] = NULL;
	hd_core(node)->slow_due = UINT64_MAX;
	phases_init(node);
	if (hd_core(node)->gate.locked) /* whoever held it is not here */
		hd_biased_init(&hd_core(node)->gate.lock);
}
