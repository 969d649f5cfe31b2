/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Row RS: sets of rsockets and other descriptors: rsocket(7) of rdma-core 65, epoll(7). Rank 0 has
 * the set, rank 1 does what it tells of.
 */
#include "rst.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MANY 40 /* more than a wait has room for at hand */

static int (*create)(int flags);
static int (*control)(int set, int op, int fd, struct epoll_event *event);
static int (*await)(int set, struct epoll_event *events, int most, int ms);

static void find(struct ct *ct)
{
	*(void **)&create = dlsym(RTLD_DEFAULT, "repoll_create");
	*(void **)&control = dlsym(RTLD_DEFAULT, "repoll_ctl");
	*(void **)&await = dlsym(RTLD_DEFAULT, "repoll_wait");
	if (!create || !control || !await)
		ct_fail(ct, "the library has no repoll_create, repoll_ctl or repoll_wait");
}

static int open_set(struct ct *ct)
{
	int set;

	find(ct);
	set = create(EPOLL_CLOEXEC);
	CT_TRUE(ct, set >= 0);
	return set;
}

/* EPOLL_CTL_ADD or EPOLL_CTL_MOD; what is told of it is its number. */
static int change(int set, int op, int fd, uint32_t events)
{
	struct epoll_event e = { .events = events, .data.fd = fd };

	return control(set, op, fd, &e);
}

/* One thing is told, these events of this descriptor. */
static void one(struct ct *ct, int set, int fd, uint32_t events)
{
	struct epoll_event e[4] = { { 0 } };

	CT_EQ(ct, await(set, e, 4, RST_PATIENCE), 1);
	CT_EQ(ct, e[0].data.fd, fd);
	CT_EQ(ct, e[0].events, events);
}

/* Nothing is told, in this time. */
static void none(struct ct *ct, int set, int ms)
{
	struct epoll_event e;

	CT_EQ(ct, await(set, &e, 1, ms), 0);
}

static int plain(struct ct *ct)
{
	int s = rsocket(AF_INET, SOCK_STREAM, 0);

	CT_TRUE(ct, s >= 0);
	return s;
}

/* ---- errors ---------------------------------------------------------------------------------- */

static void wrong_sets(struct ct *ct, int set, int s, int fd)
{
	struct epoll_event e = { .events = EPOLLIN };
	int file = open("/dev/null", O_RDONLY | O_CLOEXEC), other = create(0);

	CMT_ERR(ct, create(EPOLL_CLOEXEC | EPOLLIN), EINVAL);
	CMT_ERR(ct, control(-1, EPOLL_CTL_ADD, s, &e), EBADF);
	CMT_ERR(ct, control(100000, EPOLL_CTL_ADD, s, &e), EBADF);
	CMT_ERR(ct, control(fd, EPOLL_CTL_ADD, s, &e), EINVAL);
	CMT_ERR(ct, control(s, EPOLL_CTL_ADD, fd, &e), EINVAL);
	CMT_ERR(ct, control(set, EPOLL_CTL_ADD, set, &e), EINVAL);
	CMT_ERR(ct, control(set, EPOLL_CTL_ADD, other, &e), EPERM);
	CMT_ERR(ct, control(set, EPOLL_CTL_ADD, file, &e), EPERM);
	CMT_ERR(ct, control(set, EPOLL_CTL_ADD, -1, &e), EBADF);
	CMT_ERR(ct, control(set, EPOLL_CTL_ADD, 100000, &e), EBADF);
	CMT_ERR(ct, await(-1, &e, 1, 0), EBADF);
	CMT_ERR(ct, await(fd, &e, 1, 0), EINVAL);
	CMT_ERR(ct, await(s, &e, 1, 0), EINVAL);
	CMT_ERR(ct, await(set, &e, 0, 0), EINVAL);
	CMT_ERR(ct, await(set, &e, -1, 0), EINVAL);
	CMT_ERR(ct, await(set, NULL, 1, 0), EFAULT);
	CMT_OK(ct, rclose(other));
	CMT_ERR(ct, await(other, &e, 1, 0), EBADF);
	CMT_ERR(ct, rclose(other), EBADF);
	close(file);
}

/* The same of an rsocket and of a descriptor of the kernel's. */
static void wrong_members(struct ct *ct, int set, int fd)
{
	CMT_ERR(ct, change(set, EPOLL_CTL_MOD, fd, EPOLLIN), ENOENT);
	CMT_ERR(ct, control(set, EPOLL_CTL_DEL, fd, NULL), ENOENT);
	CMT_ERR(ct, change(set, 77, fd, EPOLLIN), EINVAL);
	CMT_ERR(ct, control(set, EPOLL_CTL_ADD, fd, NULL), EFAULT);
	CMT_OK(ct, change(set, EPOLL_CTL_ADD, fd, EPOLLIN));
	CMT_ERR(ct, change(set, EPOLL_CTL_ADD, fd, EPOLLIN), EEXIST);
	CMT_ERR(ct, control(set, EPOLL_CTL_MOD, fd, NULL), EFAULT);
	CMT_ERR(ct, change(set, EPOLL_CTL_MOD, fd, EPOLLIN | EPOLLEXCLUSIVE), EINVAL);
	CMT_OK(ct, control(set, EPOLL_CTL_DEL, fd, NULL));
	CMT_ERR(ct, control(set, EPOLL_CTL_DEL, fd, NULL), ENOENT);
	CMT_ERR(ct, change(set, EPOLL_CTL_ADD, fd, EPOLLIN | EPOLLEXCLUSIVE | EPOLLONESHOT), EINVAL);
	CMT_OK(ct, change(set, EPOLL_CTL_ADD, fd, EPOLLIN | EPOLLEXCLUSIVE));
	CMT_ERR(ct, change(set, EPOLL_CTL_MOD, fd, EPOLLIN), EINVAL);
	CMT_OK(ct, control(set, EPOLL_CTL_DEL, fd, NULL));
}

static void sets_refuse(struct ct *ct)
{
	int set = open_set(ct), s = plain(ct), p[2];
	struct timespec a, b;

	CMT_OK(ct, pipe(p));
	wrong_sets(ct, set, s, p[0]);
	wrong_members(ct, set, p[0]);
	wrong_members(ct, set, s);
	CT_EQ(ct, rfcntl(set, F_GETFD), FD_CLOEXEC);
	none(ct, set, 0);
	clock_gettime(CLOCK_MONOTONIC, &a);
	none(ct, set, 30);
	clock_gettime(CLOCK_MONOTONIC, &b);
	CT_TRUE(ct, (b.tv_sec - a.tv_sec) * 1000 + (b.tv_nsec - a.tv_nsec) / 1000000 >= 29);
	CMT_OK(ct, rclose(set));
	CMT_OK(ct, rclose(s));
}

/* ---- what is told ---------------------------------------------------------------------------- */

/* Rank 1 sends a byte whenever the others say so, so often. */
static void sends(struct ct *ct, struct rst *r, int times)
{
	for (int i = 0; i < times; i++) {
		ct_sync(ct, NULL);
		CT_EQ(ct, rsend(r->s, "x", 1, 0), 1);
	}
	ct_sync(ct, NULL);
	rst_close(r);
}

/* As long as it is so; an rsocket, a pipe and both. */
static void level(struct ct *ct)
{
	struct rst r = { 0 };
	struct epoll_event e[4];
	int set, p[2];
	char c;

	rst_pair(ct, &r);
	if (ct->rank) {
		sends(ct, &r, 1);
		return;
	}
	set = open_set(ct);
	CMT_OK(ct, pipe(p));
	CMT_OK(ct, change(set, EPOLL_CTL_ADD, r.s, EPOLLOUT));
	one(ct, set, r.s, EPOLLOUT);
	one(ct, set, r.s, EPOLLOUT);
	CMT_OK(ct, change(set, EPOLL_CTL_MOD, r.s, EPOLLIN));
	CMT_OK(ct, change(set, EPOLL_CTL_ADD, p[0], EPOLLIN));
	none(ct, set, 5);
	ct_sync(ct, NULL);
	one(ct, set, r.s, EPOLLIN);
	one(ct, set, r.s, EPOLLIN);
	CT_EQ(ct, write(p[1], "y", 1), 1);
	CT_EQ(ct, await(set, e, 4, RST_PATIENCE), 2);
	CT_TRUE(ct, e[0].data.fd != e[1].data.fd && e[0].events == EPOLLIN && e[1].events == EPOLLIN);
	CT_EQ(ct, rrecv(r.s, &c, 1, 0), 1);
	one(ct, set, p[0], EPOLLIN);
	CT_EQ(ct, read(p[0], &c, 1), 1);
	none(ct, set, 5);
	CMT_OK(ct, change(set, EPOLL_CTL_MOD, r.s, EPOLLIN | EPOLLOUT));
	one(ct, set, r.s, EPOLLOUT);
	CMT_OK(ct, control(set, EPOLL_CTL_DEL, r.s, NULL));
	none(ct, set, 5);
	ct_sync(ct, NULL);
	CMT_OK(ct, rclose(set));
	rst_close(&r);
}

/* Once for each time that something comes, and once when there is room again. */
static void edges(struct ct *ct)
{
	struct rst r = { 0 };
	static char buf[65536];
	size_t sent = 0;
	ssize_t rc;
	int set;

	rst_pair(ct, &r);
	if (ct->rank) {
		for (int i = 0; i < 2; i++) {
			ct_sync(ct, NULL);
			CT_EQ(ct, rsend(r.s, "xy", 2, 0), 2);
		}
		ct_get(ct, NULL, 0, &sent, sizeof(sent));
		for (size_t n = 0; n < sent; n += (size_t)rc)
			if ((rc = rrecv(r.s, buf, sizeof(buf), 0)) <= 0)
				ct_fail(ct, "rrecv after %zu of %zu: %zd", n, sent, rc);
		ct_sync(ct, NULL);
		rst_close(&r);
		return;
	}
	set = open_set(ct);
	rst_await(&r, r.s, POLLOUT);
	CMT_OK(ct, change(set, EPOLL_CTL_ADD, r.s, EPOLLIN | EPOLLOUT | EPOLLET));
	one(ct, set, r.s, EPOLLOUT);
	none(ct, set, 5);
	for (int i = 0; i < 2; i++) {
		ct_sync(ct, NULL);
		one(ct, set, r.s, EPOLLIN | EPOLLOUT);
		none(ct, set, 5);
		CT_EQ(ct, rrecv(r.s, buf, 1, 0), 1); /* not all */
		none(ct, set, 5);
	}
	/* what is there is new again */
	CMT_OK(ct, change(set, EPOLL_CTL_MOD, r.s, EPOLLIN | EPOLLET));
	one(ct, set, r.s, EPOLLIN);
	CMT_OK(ct, change(set, EPOLL_CTL_MOD, r.s, EPOLLOUT | EPOLLET));
	one(ct, set, r.s, EPOLLOUT);
	rst_nonblocking(&r, r.s, true);
	while ((rc = rsend(r.s, buf, sizeof(buf), 0)) > 0)
		sent += (size_t)rc;
	CT_EQ(ct, errno, EAGAIN);
	none(ct, set, 5);
	ct_put(ct, 1, &sent, sizeof(sent));
	one(ct, set, r.s, EPOLLOUT);
	ct_sync(ct, NULL);
	CMT_OK(ct, rclose(set));
	rst_close(&r);
}

static void oneshot(struct ct *ct)
{
	struct rst r = { 0 };
	int set;
	char c;

	rst_pair(ct, &r);
	if (ct->rank) {
		sends(ct, &r, 2);
		return;
	}
	set = open_set(ct);
	CMT_OK(ct, change(set, EPOLL_CTL_ADD, r.s, EPOLLIN | EPOLLONESHOT));
	ct_sync(ct, NULL);
	one(ct, set, r.s, EPOLLIN);
	none(ct, set, 5);
	CT_EQ(ct, rrecv(r.s, &c, 1, 0), 1);
	ct_sync(ct, NULL);
	rst_await(&r, r.s, POLLIN);
	none(ct, set, 5);
	CMT_OK(ct, change(set, EPOLL_CTL_MOD, r.s, EPOLLIN | EPOLLONESHOT));
	one(ct, set, r.s, EPOLLIN);
	none(ct, set, 5);
	ct_sync(ct, NULL);
	CMT_OK(ct, rclose(set));
	rst_close(&r);
}

/* A listener that is called, and the other end's end; who is closed is a member no longer. */
static void ends(struct ct *ct)
{
	struct rst r = { 0 };
	int set;
	char c;

	rst_open(ct, &r);
	if (ct->rank) {
		r.s = rst_call(&r, false);
		ct_sync(ct, NULL);
		rst_close(&r);
		ct_sync(ct, NULL);
		return;
	}
	set = open_set(ct);
	CMT_OK(ct, change(set, EPOLL_CTL_ADD, r.listener, EPOLLIN | EPOLLET));
	one(ct, set, r.listener, EPOLLIN);
	none(ct, set, 5);
	r.s = raccept(r.listener, NULL, NULL);
	CT_TRUE(ct, r.s >= 0);
	CMT_OK(ct, change(set, EPOLL_CTL_ADD, r.s, EPOLLIN | EPOLLRDHUP));
	ct_sync(ct, NULL);
	one(ct, set, r.s, EPOLLIN | EPOLLRDHUP);
	CT_EQ(ct, rrecv(r.s, &c, 1, 0), 0);
	one(ct, set, r.s, EPOLLIN | EPOLLRDHUP);
	CMT_OK(ct, rclose(r.s));
	none(ct, set, 5);
	CMT_ERR(ct, change(set, EPOLL_CTL_MOD, r.s, EPOLLIN), EBADF);
	r.s = plain(ct);
	CMT_ERR(ct, change(set, EPOLL_CTL_MOD, r.s, EPOLLIN), ENOENT);
	CMT_OK(ct, change(set, EPOLL_CTL_ADD, r.s, 0));
	one(ct, set, r.s, EPOLLHUP);	/* whether it is asked for or not, as epoll_ctl(2) says */
	CMT_OK(ct, rclose(r.listener)); /* its port is free at once, though the set is there */
	r.listener = plain(ct);
	CMT_OK(ct, rbind(r.listener, (struct sockaddr *)&r.at, rst_size(&r)));
	ct_sync(ct, NULL);
	CMT_OK(ct, rclose(set));
	rst_close(&r);
}

/* Each has its turn, however few are asked for at a time; and pipes too. */
static void turns(struct ct *ct)
{
	int set = open_set(ct), s[MANY + 1], p[2], seen[MANY + 1] = { 0 };
	struct epoll_event e[3];

	CMT_OK(ct, pipe(p));
	CT_EQ(ct, write(p[1], "x", 1), 1);
	for (int i = 0; i <= MANY; i++) {
		struct epoll_event add = { .events = EPOLLOUT | EPOLLIN, .data.u64 = (uint64_t)i };

		s[i] = i ? plain(ct) : p[0];
		CMT_OK(ct, control(set, EPOLL_CTL_ADD, s[i], &add));
	}
	for (int most = 1; most <= 3; most += 2) {
		for (int i = 0; i <= MANY; i += most) {
			int n = await(set, e, most, 0);

			CT_TRUE(ct, n > 0 && n <= most);
			for (int k = 0; k < n; k++)
				seen[e[k].data.u64]++;
		}
	}
	for (int i = 0; i <= MANY; i++)
		CT_TRUE(ct, seen[i] >= 1 && seen[i] <= 3);
	for (int i = 1; i <= MANY; i += 2)
		CMT_OK(ct, rclose(s[i]));
	CMT_OK(ct, rclose(set));
	for (int i = 2; i <= MANY; i += 2)
		CMT_OK(ct, rclose(s[i]));
}

/* ---- sleeping -------------------------------------------------------------------------------- */

struct sleeper {
	struct ct *ct;
	int set, rc, err;
	struct epoll_event e;
	pthread_t thread;
	atomic_bool told;
};

static void *sleep_on(void *arg)
{
	struct sleeper *d = arg;

	d->rc = await(d->set, &d->e, 1, RST_PATIENCE);
	d->err = errno;
	d->told = true;
	return NULL;
}

static void begin(struct sleeper *d)
{
	CT_EQ(d->ct, pthread_create(&d->thread, NULL, sleep_on, d), 0);
	ct_let_others_sleep();
}

static void end(struct sleeper *d, int rc, int fd)
{
	CT_EQ(d->ct, pthread_join(d->thread, NULL), 0);
	CT_EQ(d->ct, d->rc, rc);
	if (rc > 0)
		CT_EQ(d->ct, d->e.data.fd, fd);
}

static void nothing(int sig)
{
	(void)sig;
}

/*
 * Who sleeps is woken by what comes, members that come, signals, and the set's end; with more of
 * them than there is room for at hand.
 */
static void set_sleeps(struct ct *ct)
{
	const struct sigaction act = { .sa_handler = nothing };
	struct rst r = { 0 };
	struct sleeper d = { .ct = ct };
	int p[2], s[MANY];
	char c;

	rst_pair(ct, &r);
	if (ct->rank) {
		sends(ct, &r, 2);
		return;
	}
	d.set = open_set(ct);
	CMT_OK(ct, pipe(p));
	for (int i = 0; i < MANY; i++) {
		s[i] = rsocket(AF_INET, SOCK_DGRAM, 0);
		CT_TRUE(ct, s[i] >= 0);
	}
	begin(&d);
	CMT_OK(ct, change(d.set, EPOLL_CTL_ADD, r.s, EPOLLOUT));
	end(&d, 1, r.s);
	CMT_OK(ct, change(d.set, EPOLL_CTL_MOD, r.s, EPOLLIN));
	for (int turn = 0; turn < 2; turn++) { /* alone, and among many */
		begin(&d);
		ct_sync(ct, NULL);
		end(&d, 1, r.s);
		CT_EQ(ct, rrecv(r.s, &c, 1, 0), 1);
		begin(&d);
		CMT_OK(ct, change(d.set, EPOLL_CTL_MOD, r.s, EPOLLOUT));
		end(&d, 1, r.s);
		CMT_OK(ct, change(d.set, EPOLL_CTL_MOD, r.s, EPOLLIN));
		for (int i = 0; !turn && i < MANY; i++)
			CMT_OK(ct, change(d.set, EPOLL_CTL_ADD, s[i], EPOLLIN));
	}
	begin(&d);
	CMT_OK(ct, change(d.set, EPOLL_CTL_ADD, p[1], EPOLLOUT | EPOLLONESHOT));
	end(&d, 1, p[1]);
	CMT_OK(ct, sigaction(SIGUSR1, &act, NULL));
	begin(&d);
	CT_EQ(ct, pthread_kill(d.thread, SIGUSR1), 0);
	end(&d, -1, 0);
	CT_EQ(ct, d.err, EINTR);
	begin(&d);
	CMT_OK(ct, rclose(s[0])); /* which ends for nobody else */
	CMT_OK(ct, rclose(d.set));
	end(&d, -1, 0);
	CT_EQ(ct, d.err, EBADF);
	for (int i = 1; i < MANY; i++)
		CMT_OK(ct, rclose(s[i]));
	ct_sync(ct, NULL);
	rst_close(&r);
}

/* Of two threads at one set one is told. */
static void two_threads(struct ct *ct)
{
	struct rst r = { 0 };
	struct sleeper d[2] = { { .ct = ct }, { .ct = ct } };

	rst_pair(ct, &r);
	if (ct->rank) {
		sends(ct, &r, 1);
		return;
	}
	d[0].set = d[1].set = open_set(ct);
	CMT_OK(ct, change(d[0].set, EPOLL_CTL_ADD, r.s, EPOLLIN | EPOLLET));
	begin(&d[0]);
	begin(&d[1]);
	ct_sync(ct, NULL);
	while (!(d[0].told || d[1].told))
		usleep(1000);
	usleep(50000); /* the other one is not told: nothing says so but time */
	CT_EQ(ct, d[0].told + d[1].told, 1);
	CMT_OK(ct, change(d[0].set, EPOLL_CTL_MOD, r.s, EPOLLIN | EPOLLET));
	end(&d[0], 1, r.s);
	end(&d[1], 1, r.s);
	ct_sync(ct, NULL);
	CMT_OK(ct, rclose(d[0].set));
	rst_close(&r);
}

/* ---- datagrams, fork ------------------------------------------------------------------------- */

static void set_datagrams(struct ct *ct)
{
	struct rst r = { .type = SOCK_DGRAM };
	int set;
	char c;

	rst_open(ct, &r);
	if (ct->rank) {
		r.s = rsocket(AF_INET, SOCK_DGRAM, 0);
		CT_TRUE(ct, r.s >= 0);
		for (int i = 0; i < 2; i++) {
			CT_EQ(ct, rsendto(r.s, "x", 1, 0, (struct sockaddr *)&r.at, rst_size(&r)), 1);
			ct_sync(ct, NULL);
		}
		rst_close(&r);
		return;
	}
	set = open_set(ct);
	CMT_OK(ct, change(set, EPOLL_CTL_ADD, r.listener, EPOLLIN | EPOLLET));
	one(ct, set, r.listener, EPOLLIN);
	none(ct, set, 5);
	ct_sync(ct, NULL);
	one(ct, set, r.listener, EPOLLIN);
	CT_EQ(ct, rrecv(r.listener, &c, 1, 0), 1);
	CT_EQ(ct, rrecv(r.listener, &c, 1, 0), 1);
	none(ct, set, 5);
	ct_sync(ct, NULL);
	CMT_OK(ct, rclose(set));
	rst_close(&r);
}

/* A set is its process's, as rsockets are; a child can have its own. */
static int in_child(int set, int fd)
{
	struct epoll_event e = { .events = EPOLLIN };
	int own = create(0);

	if (await(set, &e, 1, 0) != -1 || errno != EIO || control(set, EPOLL_CTL_DEL, fd, NULL) != -1 ||
	    errno != EIO)
		return 1;
	if (rclose(set) || rclose(set) != -1 || errno != EBADF)
		return 2;
	return own < 0 || control(own, EPOLL_CTL_ADD, fd, &e) || await(own, &e, 1, RST_PATIENCE) != 1;
}

static void set_forks(struct ct *ct)
{
	int set = open_set(ct), p[2], status = -1;
	pid_t pid;

	CMT_OK(ct, pipe(p));
	CT_EQ(ct, write(p[1], "x", 1), 1);
	CMT_OK(ct, change(set, EPOLL_CTL_ADD, p[0], EPOLLIN));
	pid = fork();
	if (!pid)
		_exit(in_child(set, p[0]));
	CT_EQ(ct, waitpid(pid, &status, 0), pid);
	CT_EQ(ct, status, 0);
	one(ct, set, p[0], EPOLLIN);
	CMT_OK(ct, rclose(set));
}

const struct ct_case vt_rs_epoll[] = {
	{ "RS", "sets-refuse", { sets_refuse } },
	{ "RS", "set-level", CT_TWO(level) },
	{ "RS", "set-edges", CT_TWO(edges) },
	{ "RS", "set-oneshot", CT_TWO(oneshot) },
	{ "RS", "set-ends", CT_TWO(ends) },
	{ "RS", "set-turns", { turns } },
	{ "RS", "set-sleeps", CT_TWO(set_sleeps) },
	{ "RS", "set-two-threads", CT_TWO(two_threads) },
	{ "RS", "set-datagrams", CT_TWO(set_datagrams) },
	{ "RS", "set-fork", { set_forks } },
	{ 0 },
};
