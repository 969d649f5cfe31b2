/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Event queues. One belongs to no node, as a program may read events of many nodes from it: it has a lock of its own, under which no
 * other is taken, so that an event can be posted wherever it happens.
 *
 *	evq ── events, oldest first
 *	    └─ hooks: the nodes that have objects bound to it. Reading makes progress there; sleeping arms them
 *
 * A hook comes and goes under its node's lock and the evq's; whoever walks along them holds neither while he goes from one node to the
 * next, but has the node pinned: a node is not freed while it is.
 */
#include "base/clock.h"
#include "base/lock.h"
#include "engine/event/event.h"
#include "engine/memory/mr.h"
#include "engine/node/node.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct entry {
	STAILQ_ENTRY(entry) entry;
	struct hd_event event;
	unsigned char data[];
};

/* A node with objects that are bound to this evq. */
struct hook {
	TAILQ_ENTRY(hook) entry;
	struct hd_node *node;
	int users;  /* objects */
	bool armed; /* under the node's lock: this evq is a reason for the node to be woken */
};

struct hd_evq {
	struct hd_lock lock;
	LIST_ENTRY(hd_evq) all; /* of the process: for fork */
	STAILQ_HEAD(, entry) events;
	size_t count, size;
	bool overrun;	     /* an event was lost: stays so */
	struct entry *given; /* the error entry that was read last, whose data the program may look at */
	TAILQ_HEAD(, hook) hooks;
	uint32_t changes; /* of hooks */
	int users;	  /* objects bound, here and in fronts */
	int sleepers;	  /* threads that sleep or are about to */
	bool fd_armed;	  /* a program polls epoll_fd */
	bool served;	  /* a program polls wake_fd: nodes make progress by themselves */
	void (*tell)(void *arg, const struct hd_event *event); /* who gets them instead; constant */
	void *arg;
	int wake_fd;  /* eventfd: readable while there is something to read */
	int epoll_fd; /* wake_fd and the nodes' epoll sets in one */
};

static LIST_HEAD(, hd_evq) evqs = LIST_HEAD_INITIALIZER(evqs);
HD_LOCK_DEFINE(evqs_lock)

/* ---- life -------------------------------------------------------------------------------------------------------------- */

static int fds_open(struct hd_evq *evq)
{
	struct epoll_event ev = { .events = EPOLLIN };

	evq->wake_fd = eventfd(0, EFD_CLOEXEC); /* read only when it is readable */
	evq->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (evq->wake_fd < 0 || evq->epoll_fd < 0 ||
	    epoll_ctl(evq->epoll_fd, EPOLL_CTL_ADD, evq->wake_fd, &ev) < 0)
		return -errno;
	return 0;
}

static bool is_empty(const struct hd_evq *evq)
{
	return STAILQ_EMPTY(&evq->events) && !evq->overrun;
}

/* The number means what `fresh` is, and the child has no more to do with what it was. */
static void replace(int fresh, int fd)
{
	if (fresh < 0 || dup3(fresh, fd, O_CLOEXEC) < 0)
		close(fd);
	if (fresh >= 0)
		close(fresh);
}

/*
 * The descriptors are those of the parent, who would miss what is read here and wake for what is written: the child has its own, under
 * the same numbers, which the program may know. All locks were held at the fork, so lists and queues are whole.
 */
static void fork_child(void)
{
	struct hd_evq *evq;

	LIST_FOREACH(evq, &evqs, all) {
		struct epoll_event ev = { .events = EPOLLIN };

		replace(eventfd(is_empty(evq) ? 0 : 1, EFD_CLOEXEC), evq->wake_fd);
		replace(epoll_create1(EPOLL_CLOEXEC), evq->epoll_fd);
		epoll_ctl(evq->epoll_fd, EPOLL_CTL_ADD, evq->wake_fd, &ev);
	}
}

static void fork_watch(void)
{
	pthread_atfork(NULL, NULL, fork_child);
}

static void list(struct hd_evq *evq)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, fork_watch);
	hd_lock_take(&evqs_lock);
	LIST_INSERT_HEAD(&evqs, evq, all);
	hd_lock_give(&evqs_lock);
}

static void evq_free(struct hd_evq *evq)
{
	struct entry *e;

	while ((e = STAILQ_FIRST(&evq->events))) {
		STAILQ_REMOVE_HEAD(&evq->events, entry);
		free(e);
	}
	free(evq->given);
	if (evq->wake_fd >= 0)
		close(evq->wake_fd);
	if (evq->epoll_fd >= 0)
		close(evq->epoll_fd);
	hd_lock_fini(&evq->lock);
	free(evq);
}

int hd_evq_open(size_t size, struct hd_evq **out)
{
	struct hd_evq *evq = calloc(1, sizeof(*evq));
	int rc;

	if (!evq)
		return -ENOMEM;
	hd_lock_init(&evq->lock, HD_LOCK_LEAF);
	STAILQ_INIT(&evq->events);
	TAILQ_INIT(&evq->hooks);
	evq->size = size ? size : 1;
	evq->wake_fd = evq->epoll_fd = -1;
	rc = fds_open(evq);
	if (rc) {
		evq_free(evq);
		return rc;
	}
	list(evq);
	*out = evq;
	return 0;
}

int hd_evq_open_told(void (*tell)(void *arg, const struct hd_event *event), void *arg, struct hd_evq **out)
{
	int rc = hd_evq_open(1, out);

	if (rc)
		return rc;
	(*out)->tell = tell;
	(*out)->arg = arg;
	return 0;
}

bool hd_evq_is_used(struct hd_evq *evq)
{
	bool used;

	hd_lock_take(&evq->lock);
	used = evq->users > 0;
	hd_lock_give(&evq->lock);
	return used;
}

int hd_evq_close(struct hd_evq *evq)
{
	if (hd_evq_is_used(evq))
		return -EBUSY;
	hd_lock_take(&evqs_lock);
	LIST_REMOVE(evq, all);
	hd_lock_give(&evqs_lock);
	evq_free(evq);
	return 0;
}

void hd_evq_use(struct hd_evq *evq, int by)
{
	hd_lock_take(&evq->lock);
	evq->users += by;
	hd_lock_give(&evq->lock);
}

/* ---- events ------------------------------------------------------------------------------------------------------------ */

bool hd_evq_has(struct hd_evq *evq)
{
	bool there;

	hd_lock_take(&evq->lock);
	there = !is_empty(evq);
	hd_lock_give(&evq->lock);
	return there;
}

static struct entry *entry_make(const struct hd_event *event)
{
	struct entry *e = malloc(sizeof(*e) + event->len);

	if (!e)
		return NULL;
	e->event = *event;
	e->event.data = e->data;
	if (event->len)
		memcpy(e->data, event->data, event->len);
	return e;
}

/* Append the entry, or free it, which overruns the evq. NULL: there was no memory for it. Caller holds the lock. */
static int append(struct hd_evq *evq, struct entry *e)
{
	int rc = e ? 0 : -ENOMEM;
	bool was_empty = is_empty(evq);

	if (evq->overrun || evq->count == evq->size)
		rc = -EOVERFLOW;
	if (rc) {
		evq->overrun = true;
		free(e);
	} else {
		STAILQ_INSERT_TAIL(&evq->events, e, entry);
		evq->count++;
	}
	if (was_empty)
		(void)eventfd_write(evq->wake_fd, 1);
	return rc;
}

int hd_evq_post(struct hd_evq *evq, const struct hd_event *event)
{
	struct entry *e;
	int rc;

	if (evq->tell) {
		evq->tell(evq->arg, event);
		return 0;
	}
	e = entry_make(event);
	hd_lock_take(&evq->lock);
	rc = append(evq, e);
	hd_lock_give(&evq->lock);
	return rc;
}

/* Caller holds the lock. */
static void remove_entry(struct hd_evq *evq, struct entry *e)
{
	eventfd_t n;

	STAILQ_REMOVE(&evq->events, e, entry, entry);
	evq->count--;
	if (is_empty(evq) && poll(&(struct pollfd){ .fd = evq->wake_fd, .events = POLLIN }, 1, 0) > 0)
		(void)eventfd_read(evq->wake_fd, &n);
}

/* What has this owner, or this ctx. */
static void forget(struct hd_evq *evq, const void *what, bool is_ctx)
{
	struct entry *e, *next;

	hd_lock_take(&evq->lock);
	for (e = STAILQ_FIRST(&evq->events); e; e = next) {
		next = STAILQ_NEXT(e, entry);
		if ((is_ctx ? e->event.ctx : e->event.owner) != what)
			continue;
		remove_entry(evq, e);
		free(e);
	}
	hd_lock_give(&evq->lock);
}

void hd_evq_forget(struct hd_evq *evq, const void *owner)
{
	forget(evq, owner, false);
}

void hd_evq_forget_ctx(struct hd_evq *evq, const void *ctx)
{
	forget(evq, ctx, true);
}

void hd_evq_move(struct hd_evq *from, struct hd_evq *to, const void *owner)
{
	STAILQ_HEAD(, entry) moving = STAILQ_HEAD_INITIALIZER(moving);
	struct entry *e, *next;

	hd_lock_take(&from->lock);
	for (e = STAILQ_FIRST(&from->events); e; e = next) {
		next = STAILQ_NEXT(e, entry);
		if (e->event.owner != owner)
			continue;
		remove_entry(from, e);
		STAILQ_INSERT_TAIL(&moving, e, entry);
	}
	hd_lock_give(&from->lock);
	hd_lock_take(&to->lock);
	while ((e = STAILQ_FIRST(&moving))) {
		STAILQ_REMOVE_HEAD(&moving, entry);
		append(to, e);
	}
	hd_lock_give(&to->lock);
}

/* hd_evq_drop: the request is void before its event was read: true; false when the front knows of it already. */
bool hd_evq_drop(struct hd_evq *evq, const struct hd_request *request)
{
	struct entry *e;

	hd_lock_take(&evq->lock);
	STAILQ_FOREACH(e, &evq->events, entry)
		if (e->event.request == request)
			break;
	if (e)
		remove_entry(evq, e);
	hd_lock_give(&evq->lock);
	free(e);
	return e != NULL;
}

/* ---- hooks ------------------------------------------------------------------------------------------------------------- */

static struct hook *hook_of(struct hd_evq *evq, const struct hd_node *node)
{
	struct hook *h;

	TAILQ_FOREACH(h, &evq->hooks, entry)
		if (h->node == node)
			break;
	return h;
}

/*
 * hd_evq_attach: an object of this node is bound to the evq: reading it makes progress in the node from now on. hd_evq_detach: it is
 * bound no more. Caller holds the node's lock.
 */
int hd_evq_attach(struct hd_evq *evq, struct hd_node *node)
{
	struct hook *h, *made = calloc(1, sizeof(*made));
	struct epoll_event ev = { .events = EPOLLIN };
	bool asleep;
	int rc = 0;

	hd_assert_locked(node);
	if (!made)
		return -ENOMEM;
	made->node = node;
	if (evq->served)
		rc = hd_auto_serve(node);
	if (rc) {
		free(made);
		return rc;
	}
	hd_lock_take(&evq->lock);
	h = hook_of(evq, node);
	if (!h && epoll_ctl(evq->epoll_fd, EPOLL_CTL_ADD, node->epoll_fd, &ev) < 0)
		rc = -errno;
	if (!h && !rc) {
		h = made;
		made = NULL;
		TAILQ_INSERT_TAIL(&evq->hooks, h, entry);
		evq->changes++;
	}
	if (!rc) {
		h->users++;
		evq->users++;
	}
	asleep = evq->sleepers || evq->fd_armed;
	hd_lock_give(&evq->lock);
	free(made);
	if (!rc && asleep && !h->armed) { /* who sleeps already sleeps on this node as well */
		h->armed = true;
		if (hd_sleep_arm(node) > 0)
			hd_node_signal(node);
		hd_timer_fd_set(node);
	}
	return rc;
}

void hd_evq_detach(struct hd_evq *evq, struct hd_node *node)
{
	struct hook *h;

	hd_assert_locked(node);
	hd_lock_take(&evq->lock);
	h = hook_of(evq, node);
	evq->users--;
	if (--h->users > 0) {
		h = NULL;
	} else {
		TAILQ_REMOVE(&evq->hooks, h, entry);
		evq->changes++;
		if (!node->dead) /* the set is the parent's as well */
			epoll_ctl(evq->epoll_fd, EPOLL_CTL_DEL, node->epoll_fd, NULL);
	}
	hd_lock_give(&evq->lock);
	if (h && h->armed)
		hd_sleep_disarm(node);
	free(h);
}

/* The n-th node, pinned, or NULL. */
static struct hd_node *pin(struct hd_evq *evq, unsigned n)
{
	struct hd_node *node = NULL;
	struct hook *h;

	hd_lock_take(&evq->lock);
	TAILQ_FOREACH(h, &evq->hooks, entry)
		if (n-- == 0)
			break;
	if (h) {
		node = h->node;
		atomic_fetch_add(&node->pins, 1);
	}
	hd_lock_give(&evq->lock);
	return node;
}

static uint32_t changes(struct hd_evq *evq)
{
	uint32_t n;

	hd_lock_take(&evq->lock);
	n = evq->changes;
	hd_lock_give(&evq->lock);
	return n;
}

/*
 * Call fn for every node, with its lock held; a node may be met twice when hooks come and go meanwhile. Returns whether any fn said
 * that there was something.
 */
static bool each_node(struct hd_evq *evq, bool (*fn)(struct hd_evq *evq, struct hd_node *node))
{
	struct hd_node *node;
	bool any = false;
	uint32_t before;

	do {
		before = changes(evq);
		for (unsigned n = 0; (node = pin(evq, n)); n++) {
			hd_node_lock(node);
			if (!node->dead)
				any |= fn(evq, node);
			hd_node_unlock(node);
			atomic_fetch_sub(&node->pins, 1);
		}
	} while (changes(evq) != before);
	return any;
}

/* ---- progress and sleep -------------------------------------------------------------------------------------------------- */

static bool turn(struct hd_evq *evq, struct hd_node *node)
{
	return hd_node_poll(node) > 0;
}

/* Descriptors and timers of a node are looked at in every eighth turn only; somebody who is about to sleep looks at all. */
static bool look(struct hd_evq *evq, struct hd_node *node)
{
	int moved = 0;

	node->slow_due = 0;
	for (int i = 0; i < 8; i++)
		moved += hd_node_poll(node);
	return moved > 0;
}

/* Be woken by this node, or no longer, as it is wanted now; true: there is something to be done first. */
static bool settle(struct hd_evq *evq, struct hd_node *node)
{
	struct hook *h;
	bool wanted, there = false;

	hd_lock_take(&evq->lock);
	h = hook_of(evq, node); /* stays as long as we hold the node's lock */
	wanted = evq->sleepers || evq->fd_armed;
	hd_lock_give(&evq->lock);
	if (!h)
		return false;
	if (wanted) {
		there = hd_sleep_arm(node) > 0;
		if (h->armed)
			hd_sleep_disarm(node); /* once is enough: this was to look */
		h->armed = true;
		hd_timer_fd_set(node);
	} else if (h->armed) {
		h->armed = false;
		node->slow_due = 0;
		hd_sleep_disarm(node);
	}
	return there;
}

static void sleepers_add(struct hd_evq *evq, int by)
{
	hd_lock_take(&evq->lock);
	evq->sleepers += by;
	hd_lock_give(&evq->lock);
}

static void wake_up(void *arg)
{
	struct hd_evq *evq = arg;

	sleepers_add(evq, -1);
	each_node(evq, settle);
}

/* 0, -EINTR. */
static int nap(struct hd_evq *evq, int ms)
{
	struct pollfd p = { .fd = evq->epoll_fd, .events = POLLIN };
	int rc = 0;

	sleepers_add(evq, 1);
	if (!each_node(evq, settle) && !hd_evq_has(evq))
		hd_sleep_on(&p, 1, ms, wake_up, evq, &rc);
	wake_up(evq);
	return rc;
}

static int left_ms(uint64_t end)
{
	uint64_t now = hd_now_ns();

	return now >= end ? 0 : (int)((end - now + HD_NS_PER_MS - 1) / HD_NS_PER_MS);
}

/* Until there is something: 0, -EAGAIN: it is time, -EINTR. end: 0 for never. */
static int wait_until(struct hd_evq *evq, uint64_t end)
{
	int rc = 0;

	while (!rc && !hd_evq_has(evq)) {
		bool moved = each_node(evq, look);
		int ms = end ? left_ms(end) : -1;

		if (hd_evq_has(evq))
			break;
		if (ms == 0)
			rc = -EAGAIN;
		else if (moved)
			sched_yield();
		else
			rc = nap(evq, ms);
	}
	return rc;
}

int hd_evq_wait(struct hd_evq *evq, int timeout_ms)
{
	uint64_t end = timeout_ms < 0 ? 0 : hd_now_ns() + (uint64_t)timeout_ms * HD_NS_PER_MS;
	int rc, state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	rc = wait_until(evq, end);
	pthread_setcancelstate(state, NULL);
	return rc;
}

int hd_evq_fd(struct hd_evq *evq)
{
	return evq->epoll_fd;
}

int hd_evq_event_fd(struct hd_evq *evq)
{
	evq->served = true;
	return evq->wake_fd;
}

static void arm_fd(struct hd_evq *evq, bool armed)
{
	bool was;

	hd_lock_take(&evq->lock);
	was = evq->fd_armed;
	evq->fd_armed = armed;
	hd_lock_give(&evq->lock);
	if (was && !armed)
		each_node(evq, settle);
}

int hd_evq_arm(struct hd_evq *evq)
{
	if (hd_evq_has(evq) || each_node(evq, look) || hd_evq_has(evq))
		return -EAGAIN;
	arm_fd(evq, true);
	if (!each_node(evq, settle) && !hd_evq_has(evq))
		return 0;
	arm_fd(evq, false);
	return -EAGAIN;
}

bool hd_evq_watched(struct hd_evq *evq, bool on)
{
	sleepers_add(evq, on ? 1 : -1);
	return each_node(evq, settle) || hd_evq_has(evq);
}

/* ---- reading ------------------------------------------------------------------------------------------------------------- */

/* The oldest event, or the oldest error entry. Caller holds the lock. */
static struct entry *oldest(const struct hd_evq *evq, bool error)
{
	struct entry *e;

	STAILQ_FOREACH(e, &evq->events, entry)
		if (!error || e->event.err)
			break;
	return e;
}

/* Take the event away; the data of an error entry stays until the next read. Caller holds the lock. */
static void consume(struct hd_evq *evq, struct entry *e)
{
	remove_entry(evq, e);
	if (e->event.err)
		evq->given = e;
	else
		free(e);
}

/* Caller holds the lock. */
static ssize_t read_locked(struct hd_evq *evq, unsigned how, hd_event_fn take, void *arg)
{
	static const struct hd_event lost = { .code = HD_EV_FRONT, .err = EOVERFLOW, .data = "" };
	struct entry *e = oldest(evq, how & HD_EVQ_ERROR);
	ssize_t rc;

	free(evq->given);
	evq->given = NULL;
	if (!e && !(evq->overrun && STAILQ_EMPTY(&evq->events)))
		return -EAGAIN;
	if (!(how & HD_EVQ_ERROR) && (!e || e->event.err))
		return -EIO;
	rc = take(e ? &e->event : &lost, arg);
	if (e && rc >= 0 && !(how & HD_EVQ_PEEK))
		consume(evq, e);
	return rc;
}

ssize_t hd_evq_read(struct hd_evq *evq, unsigned how, hd_event_fn take, void *arg)
{
	ssize_t rc;

	if (!hd_evq_has(evq))
		each_node(evq, turn);
	arm_fd(evq, false);
	hd_lock_take(&evq->lock);
	rc = read_locked(evq, how, take, arg);
	hd_lock_give(&evq->lock);
	return rc;
}
