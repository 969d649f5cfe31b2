/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * The join socket of a node: an abstract UNIX address, random, at which it listens once it has advertised that. Such an address leaves nothing
 * behind when its owner dies. Who comes in is a pending join until the link stands (greet.c).
 */
#include "transport/shm/shm.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/socket.h"

#include <stdio.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#define JOIN_BACKLOG 128
#define PENDING_JOINS 32	      /* half-made links of those that joined us */
#define PAUSE_NS (100 * HD_NS_PER_MS) /* in which nobody is let in when there are no descriptors left */

/* ---- addresses ---- */

static socklen_t join_address(struct sockaddr_un *sa, const uint8_t join_name[16])
{
	int n = 1; /* after the zero byte that makes it abstract */

	*sa = (struct sockaddr_un){ .sun_family = AF_UNIX };
	n += snprintf(sa->sun_path + n, sizeof(sa->sun_path) - 1, "heddle.");
	for (int i = 0; i < 16; i++)
		n += snprintf(sa->sun_path + n, sizeof(sa->sun_path) - (size_t)n, "%02x", join_name[i]);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + (size_t)n);
}

static int sock_open(void)
{
	int fd = hd_socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	return fd < 0 ? -errno : fd;
}

int hd_shm_join_request(const struct hd_shm_advert *advert)
{
	struct sockaddr_un sa;
	socklen_t len = join_address(&sa, advert->join_name);
	int fd = sock_open(), err;

	if (fd < 0 || connect(fd, (struct sockaddr *)&sa, len) == 0)
		return fd;
	err = -errno;
	close(fd);
	return err;
}

/* ---- who is there? ---- */

int hd_shm_who(int sock, struct ucred *out)
{
	socklen_t len = sizeof(*out);

	return getsockopt(sock, SOL_SOCKET, SO_PEERCRED, out, &len) < 0 ? -errno : 0;
}

int hd_shm_pidfd(pid_t pid)
{
	int fd = pid > 0 ? (int)syscall(SYS_pidfd_open, pid, 0) : -1;

	return fd >= 0 ? fd : pid > 0 ? -errno : -EINVAL; /* 0: it is in no namespace of ours */
}

/* The kernel keeps with a join socket who has begun to listen there, whoever has the socket by now. */
int hd_shm_join_process(const struct hd_shm_advert *advert)
{
	int sock = hd_shm_join_request(advert), err;
	struct ucred cred;

	if (sock < 0)
		return sock;
	err = hd_shm_who(sock, &cred);
	close(sock);
	return err ? err : hd_shm_pidfd(cred.pid);
}

/* ---- letting in ---- */

void hd_shm_pending_join_leave(struct hd_shm_link *l)
{
	struct hd_shm_port *port = hd_shm_port_of(l);

	TAILQ_REMOVE(&port->pending_joins, l, pending_join);
	if (port->pending_join_count-- == PENDING_JOINS)
		hd_watch_events(port->base.node, &port->join_watch, EPOLLIN);
}

static void on_join_timer(struct hd_timer *timer)
{
	struct hd_shm_port *port = hd_container(timer, struct hd_shm_port, join_timer);

	hd_watch_events(port->base.node, &port->join_watch, EPOLLIN);
}

/* Who waits at the join socket cannot be let in now; without a pause the node could not sleep any more. */
static void join_pause(struct hd_shm_port *port)
{
	HD_LOG_EVERY_MS(1000, HD_LOG_WARN, "cannot accept a connection of this host: %m%s",
			errno == EMFILE ? ": raise the limit of open files (ulimit -n)" : "");
	hd_watch_events(port->base.node, &port->join_watch, 0);
	hd_timer_set(port->base.node, &port->join_timer, PAUSE_NS);
}

static void on_join_request(struct hd_watch *watch, uint32_t events)
{
	struct hd_shm_port *port = hd_container(watch, struct hd_shm_port, join_watch);

	while (port->pending_join_count < PENDING_JOINS) {
		int fd = accept4(watch->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (fd < 0) {
			if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
				join_pause(port);
			return;
		}
		if (hd_shm_pending_join_add(port, fd) < 0)
			close(fd);
	}
	hd_watch_events(port->base.node, watch, 0); /* the others wait in the queue until somebody leaves */
}

static int join_listen(struct hd_shm_port *port, int fd)
{
	struct sockaddr_un sa;
	socklen_t len = join_address(&sa, port->advert.join_name);
	int err;

	if (bind(fd, (struct sockaddr *)&sa, len) < 0 || listen(fd, JOIN_BACKLOG) < 0)
		return -errno;
	port->join_watch = (struct hd_watch){ .fd = fd, .events = EPOLLIN, .fn = on_join_request };
	port->join_timer.fn = on_join_timer;
	err = hd_watch_add(port->base.node, &port->join_watch);
	if (err)
		port->join_watch.fd = -1;
	return err;
}

int hd_shm_join_open(struct hd_shm_port *port)
{
	uint8_t random[32];
	int fd, err;

	if (port->join_watch.fd >= 0)
		return 0;
	if (getrandom(random, sizeof(random), 0) != sizeof(random))
		return -EIO;
	port->advert = (struct hd_shm_advert){ .magic = HD_SHM_MAGIC, .version = HD_SHM_VERSION };
	memcpy(port->advert.join_name, random, 16);
	memcpy(port->advert.nonce, random + 16, 16);
	fd = sock_open();
	err = fd < 0 ? fd : join_listen(port, fd);
	if (err) {
		hd_warn("no shared memory: cannot listen on a UNIX socket: %s", strerror(-err));
		if (fd >= 0)
			close(fd);
	}
	return err;
}

void hd_shm_join_close(struct hd_shm_port *port)
{
	struct hd_shm_link *l;

	while ((l = TAILQ_FIRST(&port->pending_joins))) {
		hd_shm_pending_join_leave(l);
		hd_shm_link_free(l);
	}
	if (port->join_watch.fd < 0)
		return;
	hd_timer_stop(port->base.node, &port->join_timer);
	hd_watch_remove(port->base.node, &port->join_watch);
	close(port->join_watch.fd);
	port->join_watch.fd = -1;
}
