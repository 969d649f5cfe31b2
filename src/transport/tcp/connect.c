/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Calling another node. */
#include "base/advice.h"
#include "base/clock.h"
#include "base/config.h"
#include "transport/tcp/tcp.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

static void connect_expired(struct hd_timer *timer)
{
	struct hd_tcp_link *l = (struct hd_tcp_link *)((char *)timer - offsetof(struct hd_tcp_link, timer));

	hd_tcp_link_down(
		l, -ETIMEDOUT,
		"no answer within HEDDLE_CONNECT_TIMEOUT: is that host up, and does its firewall let HEDDLE_PORTS in?");
}

static int socket_error(int fd)
{
	int err = 0;
	socklen_t len = sizeof(err);

	return getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &len) < 0 ? -errno : -err;
}

void hd_tcp_connected(struct hd_tcp_link *l)
{
	struct sockaddr_storage peer;
	socklen_t len = sizeof(peer);
	int fd = l->watch.fd;
	int err = socket_error(fd);

	if (!err && getpeername(fd, (struct sockaddr *)&peer, &len) < 0) {
		if (errno == ENOTCONN)
			return; /* woken too early */
		err = -errno;
	}
	if (!err && hd_tcp_sock_to_self(fd))
		err = -ECONNREFUSED;
	l->calls = true;
	if (!err) {
		l->link.is_local = hd_tcp_sock_local(fd, (struct sockaddr *)&l->link.where);
		if (!tcp_port_of(l)->seals)
			hd_tcp_link_ready(l);
		else
			err = hd_seal_begin(l, true);
	}
	if (err < 0)
		hd_tcp_link_down(l, err,
				 err == -ECONNREFUSED ? "nobody listens there: start the other program first"
						      : NULL);
}

/*
 * What is wrong here, and not at the other end or on the way there, of which
 * programs are told everyday.
 */
static bool is_of_this_host(int err)
{
	return hd_is_short(err) || err == EADDRNOTAVAIL || err == EAGAIN || err == EPERM;
}

/* A socket on its way to this address, or a negative errno. *now: it is there already. */
static int connect_start(const struct sockaddr *to, bool *now)
{
	int fd = hd_tcp_sock_open(to->sa_family);
	int err;

	if (fd < 0)
		return fd;
	hd_tcp_sock_tune(fd);
	*now = connect(fd, to, hd_sockaddr_size(to)) == 0;
	err = errno;
	/* interrupted or not, it goes on by itself */
	if (*now || err == EINPROGRESS || err == EINTR)
		return fd;
	close(fd);
	return -err;
}

/* There is no socket, or no link for it, as errno says. */
static int connect_failed(int fd)
{
	int err = fd < 0 ? -fd : errno;

	if (fd >= 0)
		close(fd);
	if (is_of_this_host(err))
		hd_tcp_lacks(err, "cannot connect", hd_advice_call(err));
	return -err;
}

int hd_tcp_connect(struct hd_port *port, const void *where, size_t len, const struct hd_node_id *whose,
		   struct hd_link **out)
{
	struct sockaddr_storage to = { .ss_family = AF_UNSPEC };
	struct hd_tcp_link *l;
	bool now;
	int fd;

	memcpy(&to, where, len < sizeof(to) ? len : sizeof(to));
	if (!hd_sockaddr_size((struct sockaddr *)&to))
		return -EAFNOSUPPORT;
	if (len < hd_sockaddr_size((struct sockaddr *)&to))
		return -EINVAL;
	hd_tcp_addr_plain(&to);
	fd = connect_start((struct sockaddr *)&to, &now);
	l = fd < 0 ? NULL : hd_tcp_link_new(tcp_port(port), fd, HD_TCP_CONNECTING, (struct sockaddr *)&to);
	if (!l)
		return connect_failed(fd);
	*out = &l->link;
	l->timer.fn = connect_expired;
	hd_timer_set(port->node, &l->timer, hd_config_ms(HD_SET_CONNECT_TIMEOUT) * HD_NS_PER_MS);
	if (now)
		hd_tcp_connected(l);
	return 0;
}
