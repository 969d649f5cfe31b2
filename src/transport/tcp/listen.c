/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Being called by other nodes. */
#include "base/advice.h"
#include "base/clock.h"
#include "transport/tcp/tcp.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#define ACCEPTS_PER_TURN 16
#define PAUSE_NS (100 * HD_NS_PER_MS)

static struct hd_tcp_listener *tcp_listen_listener_of(struct hd_watch *watch)
{
	return (struct hd_tcp_listener *)((char *)watch - offsetof(struct hd_tcp_listener, watch));
}

static void pause_over(struct hd_timer *timer)
{
	struct hd_tcp_listener *tl =
		(struct hd_tcp_listener *)((char *)timer - offsetof(struct hd_tcp_listener, timer));

	hd_watch_events(tl->port->port.node, &tl->watch, EPOLLIN);
}

/* A caller who cannot be taken in stays readable: look away for a while instead of spinning. */
static void pause_accepting(struct hd_tcp_listener *tl)
{
	hd_watch_events(tl->port->port.node, &tl->watch, 0);
	hd_timer_set(tl->port->port.node, &tl->timer, PAUSE_NS);
}

/*
 * Turn the caller away with the descriptor kept for this, so that it learns it at
 * once instead of hanging.
 */
static bool turn_away(struct hd_tcp_listener *tl)
{
	struct hd_tcp_port *p = tl->port;
	int fd;

	if (p->reserve < 0)
		return false;
	close(p->reserve);
	fd = accept4(tl->watch.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd >= 0)
		close(fd);
	p->reserve = open("/dev/null", O_RDONLY | O_CLOEXEC);
	return fd >= 0;
}

static void welcome(struct hd_tcp_listener *tl, int fd, struct sockaddr_storage *from)
{
	struct hd_tcp_link *l = NULL;

	hd_tcp_addr_plain(from);
	if (hd_allowed(tl->port->port.node, (struct sockaddr *)from)) {
		l = hd_tcp_link_new(tl->port, fd, HD_TCP_UP, (struct sockaddr *)from);
		if (!l)
			hd_tcp_lacks(errno, "cannot take a call", hd_advice(errno));
	}
	if (!l) {
		close(fd);
		return;
	}
	hd_tcp_sock_tune(fd);
	l->link.is_local = hd_tcp_sock_local(fd, (struct sockaddr *)from);
	l->at = tl->l;
	if (hd_tcp_caller_add(l) < 0)
		hd_tcp_link_down(l, -ENOMEM, "no memory to take the call");
	else if (!tl->port->seals)
		hd_tcp_link_ready(l);
	else if (hd_seal_begin(l, false) < 0)
		hd_tcp_link_down(l, -ENOMEM, "no memory to seal it");
}

/* accept(2) failed. Is it worth asking again in this turn? */
static bool accept_failed(struct hd_tcp_listener *tl, int err)
{
	switch (err) {
	case EAGAIN:
		return false;
	case EMFILE:
	case ENFILE:
		hd_tcp_lacks(err, "cannot take a call", hd_advice(err));
		if (turn_away(tl))
			return true;
		pause_accepting(tl);
		return false;
	case ENOBUFS:
	case ENOMEM:
		hd_tcp_lacks(err, "cannot take a call", hd_advice(err));
		pause_accepting(tl);
		return false;
	default: /* this caller is gone already: accept(2), "Error handling" */
		return true;
	}
}

static void listener_event(struct hd_watch *watch, uint32_t events)
{
	struct hd_tcp_listener *tl = tcp_listen_listener_of(watch);

	for (int i = 0; i < ACCEPTS_PER_TURN; i++) {
		struct sockaddr_storage from = { .ss_family = AF_UNSPEC };
		socklen_t len = sizeof(from);
		int fd = accept4(watch->fd, (struct sockaddr *)&from, &len, SOCK_CLOEXEC | SOCK_NONBLOCK);

		if (fd >= 0)
			welcome(tl, fd, &from);
		else if (!accept_failed(tl, errno))
			return;
	}
}

/* Wildcard IPv6 listens for IPv4 too. */
static int set_families(int fd, const struct sockaddr_storage *addr)
{
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)addr;
	int only;

	if (addr->ss_family != AF_INET6)
		return 0;
	only = !IN6_IS_ADDR_UNSPECIFIED(&in6->sin6_addr);
	return setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &only, sizeof(only));
}

/*
 * A port that is asked for may still be cooling from the connections of our predecessor. That helps
 * only if he had set the option as well, so it is set in every case; but for port 0 not before
 * bind(2), for the kernel is to look for a port that nobody uses at all.
 */
static int bind_reusing(int fd, const struct sockaddr_storage *addr, socklen_t len)
{
	const struct sockaddr_in *in =
		(const struct sockaddr_in *)addr; /* the port stands there in both families */
	const int one = 1;

	if (in->sin_port && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) < 0)
		return -1;
	if (bind(fd, (const struct sockaddr *)addr, len) < 0)
		return -1;
	return setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
}

/* A listening socket at *addr, which is set to the bound address, or a negative errno. */
static int listening_socket(struct sockaddr_storage *addr)
{
	socklen_t len = hd_sockaddr_size((struct sockaddr *)addr);
	int fd, err;

	if (!len)
		return -EAFNOSUPPORT;
	fd = hd_tcp_sock_open(addr->ss_family);
	if (fd < 0) {
		if (fd == -EMFILE || fd == -ENFILE)
			hd_tcp_lacks(-fd, "cannot listen", hd_advice(-fd));
		return fd;
	}
	if (!set_families(fd, addr) && !bind_reusing(fd, addr, len) && !listen(fd, SOMAXCONN) &&
	    !getsockname(fd, (struct sockaddr *)addr, &len))
		return fd;
	err = -errno;
	close(fd);
	return err;
}

int hd_tcp_listen(struct hd_port *port, struct hd_listener *l)
{
	struct hd_tcp_listener *tl = calloc(1, sizeof(*tl));
	int fd, err;

	if (!tl)
		return -ENOMEM;
	fd = listening_socket(&l->addr);
	if (fd < 0) {
		free(tl);
		return fd;
	}
	tl->port = tcp_port(port);
	tl->l = l;
	tl->timer.fn = pause_over;
	tl->watch = (struct hd_watch){ .fd = fd, .events = EPOLLIN, .fn = listener_event };
	err = hd_watch_add(port->node, &tl->watch);
	if (err < 0) {
		close(fd);
		free(tl);
		return err;
	}
	LIST_INSERT_HEAD(&tl->port->listeners, tl, entry);
	l->priv = tl;
	return 0;
}

/* Those who have called and not shown yet that they have the key. */
static void shaking_gone(const struct hd_tcp_listener *tl)
{
	struct hd_tcp_link *l;

	TAILQ_FOREACH(l, &tl->port->links, entry)
		if (l->at == tl->l && l->state == HD_TCP_SHAKING)
			hd_tcp_link_down(l, -ECONNREFUSED, NULL);
}

void hd_tcp_unlisten(struct hd_port *port, struct hd_listener *l)
{
	struct hd_tcp_listener *tl = l->priv;

	l->priv = NULL;
	hd_timer_stop(port->node, &tl->timer);
	hd_watch_remove(port->node, &tl->watch);
	LIST_REMOVE(tl, entry);
	shaking_gone(tl);
	close(tl->watch.fd);
	free(tl);
}
