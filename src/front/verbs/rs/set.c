/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Sets of rsockets and of the kernel's descriptors, as epoll(7) has them. The latter are in a set
 * of the kernel's, which does for them all that epoll(7) says; its descriptor is the number of
 * ours. Of rsockets what is there is looked at. With EPOLLET one is told of when it has more than
 * at the last look, when news have come for who reads, or when there is room since a send found
 * none.
 */
#include "base/epoll.h"
#include "base/lock.h"
#include "front/verbs/rs/rs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/eventfd.h>

#define READING (EPOLLIN | EPOLLRDNORM | EPOLLRDHUP | EPOLLERR | EPOLLHUP)
#define WRITING (EPOLLOUT | EPOLLWRNORM)
#define MODES (EPOLLET | EPOLLONESHOT | EPOLLWAKEUP | EPOLLEXCLUSIVE)
#define WITH_EXCLUSIVE (EPOLLIN | EPOLLOUT | EPOLLERR | EPOLLHUP | EPOLLWAKEUP | EPOLLET | EPOLLEXCLUSIVE)

HD_LOCK_DEFINE(sets_lock);
static struct rs_set *sets;

/* ---- the sets -------------------------------------------------------------------------------- */

static struct rs_set **set_place(int fd)
{
	struct rs_set **at = &sets;

	while (*at && (*at)->fd != fd)
		at = &(*at)->after;
	return at;
}

/*
 * Who gives back the last user has it alone. Of a parent's nothing is touched but the descriptors,
 * which are the child's as well.
 */
void rs_set_put(struct rs_set *set)
{
	int users;

	hd_lock_take(&sets_lock);
	users = --set->users;
	hd_lock_give(&sets_lock);
	if (users)
		return;
	if (set->bell >= 0)
		close(set->bell);
	if (set->fd >= 0)
		close(set->fd);
	if (set->forks != rs_forks())
		return;
	pthread_mutex_destroy(&set->lock);
	free(set->members);
	free(set);
}

int rs_set_open(bool cloexec)
{
	struct rs_set *set = calloc(1, sizeof(*set));
	int fd, rc;

	if (!set)
		return -ENOMEM;
	pthread_mutex_init(&set->lock, NULL);
	set->users = 1;
	set->forks = rs_forks();
	set->bell = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	set->fd = fd = set->bell < 0 ? -1 : hd_epoll_create();
	if (fd < 0 || (!cloexec && fcntl(fd, F_SETFD, 0) < 0)) {
		rc = -errno;
		rs_set_put(set);
		return rc;
	}
	hd_lock_take(&sets_lock);
	set->after = sets;
	sets = set;
	hd_lock_give(&sets_lock);
	return fd;
}

static struct rs_set *set_find(int fd)
{
	struct rs_set *set;

	hd_lock_take(&sets_lock);
	set = *set_place(fd);
	if (set)
		set->users++;
	hd_lock_give(&sets_lock);
	return set;
}

struct rs_set *rs_set_get(int fd)
{
	struct rs_set *set = set_find(fd);

	if (!set)
		return hv_fail(fcntl(fd, F_GETFD) < 0 ? EBADF : EINVAL);
	if (set->forks == rs_forks())
		return set;
	rs_set_put(set);
	return hv_fail(EIO);
}

bool rs_set_is(int fd)
{
	bool is;

	hd_lock_take(&sets_lock);
	is = *set_place(fd);
	hd_lock_give(&sets_lock);
	return is;
}

/* ---- members --------------------------------------------------------------------------------- */

static struct rs_member *set_member(struct rs_set *set, const struct rs *rs)
{
	for (size_t i = 0; i < set->count; i++)
		if (set->members[i].rs == rs)
			return &set->members[i];
	return NULL;
}

/* The order of the others stays, so that those who come last have their turn. */
static void set_take_out(struct rs_set *set, struct rs_member *m)
{
	size_t at = (size_t)(m - set->members);

	m->rs->sets--;
	for (size_t i = at; i + 1 < set->count; i++)
		set->members[i] = set->members[i + 1];
	set->count--;
	if (set->next > at)
		set->next--;
}

static void set_drop(struct rs_set *set, struct rs_member *m)
{
	struct rs *rs = m->rs;

	pthread_mutex_lock(&rs->lock);
	set_take_out(set, m);
	rs_leave(rs, 0);
}

bool rs_set_close(int fd)
{
	struct rs_set **at, *set;

	hd_lock_take(&sets_lock);
	at = set_place(fd);
	set = *at;
	if (set)
		*at = set->after;
	hd_lock_give(&sets_lock);
	if (!set)
		return false;
	if (set->forks == rs_forks()) {
		pthread_mutex_lock(&set->lock);
		set->closed = true;
		while (set->count)
			set_drop(set, &set->members[set->count - 1]);
		rs_bell_changed(&set->wait, set->bell);
		pthread_mutex_unlock(&set->lock);
	}
	rs_set_put(set);
	return true;
}

/* The set with the least number from *fd on, with a user more; *fd is the number behind it then. */
static struct rs_set *set_next(int *fd)
{
	struct rs_set *next = NULL;

	hd_lock_take(&sets_lock);
	for (struct rs_set *set = sets; set; set = set->after)
		if (set->fd >= *fd && set->forks == rs_forks() && (!next || set->fd < next->fd))
			next = set;
	if (next) {
		next->users++;
		*fd = next->fd + 1;
	}
	hd_lock_give(&sets_lock);
	return next;
}

void rs_sets_leave(struct rs *rs)
{
	struct rs_set *set;
	struct rs_member *m;

	for (int fd = 0; (set = set_next(&fd)); rs_set_put(set)) {
		pthread_mutex_lock(&set->lock);
		m = set_member(set, rs);
		if (m)
			set_drop(set, m);
		pthread_mutex_unlock(&set->lock);
	}
}

static int set_grow(struct rs_set *set)
{
	size_t room = set->room ? set->room * 2 : 8;
	struct rs_member *more = realloc(set->members, room * sizeof(*more));

	if (!more)
		return -ENOMEM;
	set->members = more;
	set->room = room;
	return 0;
}

/* The set is a user of it from now on. */
static int set_enter(struct rs_set *set, struct rs *rs, struct rs_member **m)
{
	if (set->count == set->room && set_grow(set))
		return -ENOMEM;
	if (!rs_get(rs->fd))
		return -EBADF;
	*m = &set->members[set->count++];
	**m = (struct rs_member){ .rs = rs };
	rs->sets++;
	return 0;
}

/*
 * epoll_ctl(2): EPOLLEXCLUSIVE is for EPOLL_CTL_ADD and with few others, and
 * what has it is not changed.
 */
static bool is_exclusive_wrong(int op, uint32_t events, const struct rs_member *m)
{
	if (m && m->events & EPOLLEXCLUSIVE)
		return true;
	return events & EPOLLEXCLUSIVE && (op != EPOLL_CTL_ADD || events & ~(uint32_t)WITH_EXCLUSIVE);
}

int rs_set_change(struct rs_set *set, int op, struct rs *rs, const struct epoll_event *event)
{
	struct rs_member *m = set_member(set, rs);
	int rc = op == EPOLL_CTL_ADD ? (m ? -EEXIST : 0) : (m ? 0 : -ENOENT);

	if (op != EPOLL_CTL_ADD && op != EPOLL_CTL_MOD && op != EPOLL_CTL_DEL)
		return -EINVAL;
	if (op == EPOLL_CTL_DEL) {
		if (!m)
			return rc;
		set_take_out(set, m);
		rs_put(rs);
		return 0;
	}
	if (!event)
		return -EFAULT;
	if (is_exclusive_wrong(op, event->events, m))
		rc = rc ? rc : -EINVAL;
	if (!rc && !m)
		rc = set_enter(set, rs, &m);
	if (rc)
		return rc;
	m->events = event->events;
	m->data = event->data;
	m->there = 0;
	m->told = false;
	rs_bell_changed(&set->wait, set->bell);
	return 0;
}

/* ---- looking --------------------------------------------------------------------------------- */

/* What is to be told of it. With its lock. */
static uint32_t set_news(struct rs_member *m)
{
	const struct rs_waiting *wait = &m->rs->wait;
	uint32_t there = (uint16_t)rs_events(m->rs) & ((m->events & ~(uint32_t)MODES) | EPOLLERR | EPOLLHUP);
	uint32_t news = there & ~m->there;

	if (m->told || m->rs->closing)
		return 0;
	if (m->came != wait->came)
		news |= there & READING;
	if (m->refused != wait->refused)
		news |= there & WRITING;
	m->there = there;
	return news || !(m->events & EPOLLET) ? there : 0;
}

static void set_tell(struct rs_member *m, uint32_t events, struct epoll_event *to)
{
	m->came = m->rs->wait.came;
	m->refused = m->rs->wait.refused;
	m->told = m->events & EPOLLONESHOT;
	*to = (struct epoll_event){ .events = events, .data = m->data };
}

/* rs_leave gives back what rs_watch gets. */
static void set_watch(struct rs_watch *w, struct rs *rs)
{
	if (rs->closing || !rs_get(rs->fd))
		return;
	if (!w->node)
		w->node = rs_node(rs);
	w->rs[w->count++] = (struct rs_watched){ .rs = rs, .seen = rs->wait.changes };
}

static int set_look_at(struct rs_member *m, struct epoll_event *to, struct rs_watch *watch)
{
	uint32_t events;

	pthread_mutex_lock(&m->rs->lock);
	rs_step(m->rs);
	events = set_news(m);
	if (events)
		set_tell(m, events, to);
	else if (watch)
		set_watch(watch, m->rs);
	pthread_mutex_unlock(&m->rs->lock);
	return events != 0;
}

static int set_look_kernel(const struct rs_set *set, struct epoll_event *to, int most)
{
	int n = hd_epoll_look(set->fd, to, most);

	return n < 0 ? 0 : n;
}

int rs_set_look(struct rs_set *set, struct epoll_event *events, int most, struct rs_watch *watch)
{
	size_t all = set->count + 1, i;
	int n = 0;

	for (i = 0; i < all && n < most; i++) {
		size_t at = (set->next + i) % all;

		n += at < set->count ? set_look_at(&set->members[at], &events[n], watch)
				     : set_look_kernel(set, &events[n], most - n);
	}
	set->next = (set->next + i) % all;
	return n;
}
