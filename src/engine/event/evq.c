/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Event queues: their life, and the events in them. Nodes and sleeping are in evq_nodes.c. */
#include "base/epoll.h"
#include "engine/event/event.h"
#include "engine/event/waiters.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct hd_evq_entry {
	TAILQ_ENTRY(hd_evq_entry) entry;
	struct hd_node_id node; /* hd_evq_post_of; all zero: of none */
	struct hd_event event;
	unsigned char data[];
};

static LIST_HEAD(, hd_evq) evqs = LIST_HEAD_INITIALIZER(evqs);
HD_LOCK_DEFINE(evqs_lock);

/* ---- life ------------------------------------------------------------------------------------ */

static int fds_open(struct hd_evq *evq)
{
	struct epoll_event ev = { .events = EPOLLIN };

	evq->wake_fd = eventfd(0, EFD_CLOEXEC); /* read only when it is readable */
	evq->epoll_fd = hd_epoll_create();
	if (evq->wake_fd < 0 || evq->epoll_fd < 0 ||
	    hd_epoll_ctl(evq->epoll_fd, EPOLL_CTL_ADD, evq->wake_fd, &ev) < 0)
		return hd_fds_missing("an event queue", -errno);
	return 0;
}

static bool is_empty(const struct hd_evq *evq)
{
	return TAILQ_EMPTY(&evq->events) && !evq->overrun;
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
 * The descriptors are those of the parent, who would miss what is read here and wake for what is
 * written: the child has its own, under the same numbers, which the program may know. All locks
 * were held at the fork, so lists and queues are whole.
 */
static void evq_fork_child(void)
{
	struct hd_evq *evq;

	LIST_FOREACH(evq, &evqs, all) {
		struct epoll_event ev = { .events = EPOLLIN };

		replace(eventfd(is_empty(evq) ? 0 : 1, EFD_CLOEXEC), evq->wake_fd);
		replace(hd_epoll_create(), evq->epoll_fd);
		hd_epoll_ctl(evq->epoll_fd, EPOLL_CTL_ADD, evq->wake_fd, &ev);
	}
}

static void evq_fork_watch(void)
{
	pthread_atfork(NULL, NULL, evq_fork_child);
}

static void evq_list(struct hd_evq *evq)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, evq_fork_watch);
	hd_lock_take(&evqs_lock);
	LIST_INSERT_HEAD(&evqs, evq, all);
	hd_lock_give(&evqs_lock);
}

static void evq_free(struct hd_evq *evq)
{
	struct hd_evq_entry *e;

	while ((e = TAILQ_FIRST(&evq->events))) {
		TAILQ_REMOVE(&evq->events, e, entry);
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
	TAILQ_INIT(&evq->events);
	TAILQ_INIT(&evq->hooks);
	evq->size = size ? size : 1;
	evq->wake_fd = evq->epoll_fd = -1;
	rc = fds_open(evq);
	if (rc) {
		evq_free(evq);
		return rc;
	}
	evq_list(evq);
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

int hd_evq_fd(struct hd_evq *evq)
{
	return evq->epoll_fd;
}

int hd_evq_event_fd(struct hd_evq *evq)
{
	evq->served = true;
	return evq->wake_fd;
}

/* ---- events ---------------------------------------------------------------------------------- */

bool hd_evq_has(struct hd_evq *evq)
{
	bool there;

	hd_lock_take(&evq->lock);
	there = !is_empty(evq);
	hd_lock_give(&evq->lock);
	return there;
}

static struct hd_evq_entry *entry_make(const struct hd_event *event)
{
	struct hd_evq_entry *e = malloc(sizeof(*e) + event->len);

	if (!e)
		return NULL;
	e->event = *event;
	e->event.data = e->data;
	if (event->len)
		memcpy(e->data, event->data, event->len);
	return e;
}

/*
 * Append the entry, or free it, which overruns the evq, unless it is one whose readers know of no
 * such thing: those would find its descriptor readable, and nothing to be read, for ever. NULL:
 * there was no memory for it. Caller holds the lock.
 */
static int evq_append(struct hd_evq *evq, struct hd_evq_entry *e)
{
	int rc = e ? 0 : -ENOMEM;
	bool was_empty = is_empty(evq);

	if (evq->overrun || evq->count == evq->size)
		rc = -EOVERFLOW;
	if (rc) {
		evq->overrun |= !evq->served;
		free(e);
	} else {
		TAILQ_INSERT_TAIL(&evq->events, e, entry);
		if (e->event.unread)
			*e->event.unread = e;
		evq->count++;
	}
	if (was_empty && !is_empty(evq))
		(void)eventfd_write(evq->wake_fd, 1);
	return rc;
}

int hd_evq_post(struct hd_evq *evq, const struct hd_event *event)
{
	return hd_evq_post_of(evq, event, &(struct hd_node_id){ 0 });
}

int hd_evq_post_of(struct hd_evq *evq, const struct hd_event *event, const struct hd_node_id *node)
{
	struct hd_evq_entry *e;
	int rc;

	if (evq->tell) {
		evq->tell(evq->arg, event);
		return 0;
	}
	e = entry_make(event);
	if (e)
		e->node = *node;
	hd_lock_take(&evq->lock);
	rc = evq_append(evq, e);
	hd_lock_give(&evq->lock);
	return rc;
}

/* Caller holds the lock. */
static void remove_entry(struct hd_evq *evq, struct hd_evq_entry *e)
{
	eventfd_t n;

	TAILQ_REMOVE(&evq->events, e, entry);
	if (e->event.unread)
		*e->event.unread = NULL;
	evq->count--;
	if (is_empty(evq) && poll(&(struct pollfd){ .fd = evq->wake_fd, .events = POLLIN }, 1, 0) > 0)
		(void)eventfd_read(evq->wake_fd, &n);
}

/* What has this owner, or this ctx. */
static void evq_forget(struct hd_evq *evq, const void *what, bool is_ctx)
{
	struct hd_evq_entry *e, *next;

	hd_lock_take(&evq->lock);
	for (e = TAILQ_FIRST(&evq->events); e; e = next) {
		next = TAILQ_NEXT(e, entry);
		if ((is_ctx ? e->event.ctx : e->event.owner) != what)
			continue;
		remove_entry(evq, e);
		free(e);
	}
	hd_lock_give(&evq->lock);
}

void hd_evq_forget(struct hd_evq *evq, const void *owner)
{
	evq_forget(evq, owner, false);
}

void hd_evq_forget_ctx(struct hd_evq *evq, const void *ctx)
{
	evq_forget(evq, ctx, true);
}

void hd_evq_move(struct hd_evq *from, struct hd_evq *to, const void *owner)
{
	TAILQ_HEAD(, hd_evq_entry) moving = TAILQ_HEAD_INITIALIZER(moving);
	struct hd_evq_entry *e, *next;

	hd_lock_take(&from->lock);
	for (e = TAILQ_FIRST(&from->events); e; e = next) {
		next = TAILQ_NEXT(e, entry);
		if (e->event.owner != owner)
			continue;
		remove_entry(from, e);
		TAILQ_INSERT_TAIL(&moving, e, entry);
	}
	hd_lock_give(&from->lock);
	hd_lock_take(&to->lock);
	while ((e = TAILQ_FIRST(&moving))) {
		TAILQ_REMOVE(&moving, e, entry);
		evq_append(to, e);
	}
	hd_lock_give(&to->lock);
}

/*
 * hd_evq_drop: the request is void before its event was read: true; false when the
 * front knows of it already.
 */
bool hd_evq_drop(struct hd_evq *evq, struct hd_evq_entry **unread)
{
	struct hd_evq_entry *e;

	hd_lock_take(&evq->lock);
	e = *unread;
	if (e)
		remove_entry(evq, e);
	hd_lock_give(&evq->lock);
	free(e);
	return e != NULL;
}

/* ---- reading --------------------------------------------------------------------------------- */

static bool is_request(const struct hd_evq_entry *e)
{
	return e && e->event.code == HD_EV_REQUEST && !e->event.err;
}

/*
 * A connection with the node that this request comes from, or the request
 * itself. Caller holds the lock.
 */
static struct hd_evq_entry *earlier(struct hd_evq_entry *request)
{
	struct hd_evq_entry *e;

	for (e = TAILQ_NEXT(request, entry); e; e = TAILQ_NEXT(e, entry))
		if (e->event.code == HD_EV_UP && !e->event.err &&
		    !memcmp(&e->node, &request->node, sizeof(e->node)))
			return e;
	return request;
}

/* The oldest event, or the oldest error entry. Caller holds the lock. */
static struct hd_evq_entry *oldest(const struct hd_evq *evq, bool error)
{
	struct hd_evq_entry *e;

	TAILQ_FOREACH(e, &evq->events, entry)
		if (!error || e->event.err)
			break;
	return !error && is_request(e) ? earlier(e) : e;
}

/*
 * Is a request next? What its caller has said before, elsewhere, has come then,
 * and has to be looked at.
 */
static bool begins_with_request(struct hd_evq *evq)
{
	bool yes;

	hd_lock_take(&evq->lock);
	yes = is_request(TAILQ_FIRST(&evq->events));
	hd_lock_give(&evq->lock);
	return yes;
}

/*
 * Take the event away; the data of an error entry stays until the next read. Caller holds the lock.
 */
static void consume(struct hd_evq *evq, struct hd_evq_entry *e)
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
	struct hd_evq_entry *e = oldest(evq, how & HD_EVQ_ERROR);
	ssize_t rc;

	free(evq->given);
	evq->given = NULL;
	if (!e && !(evq->overrun && TAILQ_EMPTY(&evq->events)))
		return -EAGAIN;
	if (!(how & HD_EVQ_ERROR) && (!e || e->event.err))
		return -EIO;
	rc = take(e ? &e->event : &lost, arg);
	if (e && rc >= 0 && !(how & HD_EVQ_PEEK))
		consume(evq, e);
	if (e && rc < 0)
		(void)eventfd_write(evq->wake_fd, 1); /* news again, to who waits for an edge */
	return rc;
}

ssize_t hd_evq_read(struct hd_evq *evq, unsigned how, hd_event_fn take, void *arg)
{
	ssize_t rc;

	if (!hd_evq_has(evq))
		hd_evq_turn(evq);
	if (begins_with_request(evq))
		hd_evq_look_answered(evq);
	hd_evq_arm_fd(evq, false);
	hd_lock_take(&evq->lock);
	rc = read_locked(evq, how, take, arg);
	hd_lock_give(&evq->lock);
	return rc;
}

/* ---- what holds of it ------------------------------------------------------------------------ */

#ifndef NDEBUG

#define CHECKED 256u /* longer lists are not walked through */

static void evq_events_check(const struct hd_evq *evq)
{
	const struct hd_evq_entry *e;
	size_t n = 0;

	TAILQ_FOREACH(e, &evq->events, entry) {
		if (n++ == CHECKED)
			return;
		assert(!e->event.unread || *e->event.unread == e);
	}
	assert(n == evq->count);
}

static void evq_hooks_check(const struct hd_evq *evq)
{
	const struct hd_evq_hook *h;
	unsigned n = 0;
	int users = 0;

	TAILQ_FOREACH(h, &evq->hooks, entry) {
		if (n++ == CHECKED)
			return;
		assert(h->users > 0);
		users += h->users;
	}
	assert(users <= evq->users);
}

void hd_evq_check(struct hd_evq *evq)
{
	hd_lock_take(&evq->lock);
	assert(evq->count <= evq->size && (!evq->tell || !evq->count));
	assert(!evq->given || evq->given->event.err);
	assert(evq->sleepers >= 0);
	evq_events_check(evq);
	evq_hooks_check(evq);
	hd_lock_give(&evq->lock);
}

#endif
