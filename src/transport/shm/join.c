/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * The join socket of a node, at which it listens once it has advertised that, and lets in whoever
 * asks (request.c). Who comes in is a pending join until the link stands (greet.c).
 */
#include "transport/shm/shm.h"

#include "base/advice.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/random.h"
#include <sys/epoll.h>
#include <sys/un.h>
#include <unistd.h>

#define JOIN_BACKLOG 128
/* in one turn, let in or sent away: whoever calls faster does not keep the node */
#define JOINS_AT_ONCE 32
/* in which nobody is let in when there are no descriptors left */
#define PAUSE_NS (100 * HD_NS_PER_MS)

static void on_join_timer(struct hd_timer *timer)
{
	struct hd_shm_port *port = hd_container(timer, struct hd_shm_port, join_timer);

	hd_watch_events(port->base.node, &port->join_watch, EPOLLIN);
}

/*
 * Who waits at the join socket cannot be let in now; without a pause the node
 * could not sleep any more.
 */
static void join_pause(struct hd_shm_port *port)
{
	HD_LOG_EVERY_MS(1000, HD_LOG_WARN, "cannot accept a connection of this host: %m%s", hd_advice(errno));
	hd_watch_events(port->base.node, &port->join_watch, 0);
	hd_timer_set(port->base.node, &port->join_timer, PAUSE_NS);
}

static void on_join_request(struct hd_watch *watch, uint32_t events)
{
	struct hd_shm_port *port = hd_container(watch, struct hd_shm_port, join_watch);

	for (int n = 0; n < JOINS_AT_ONCE && port->pending_join_count < HD_SHM_PENDING_JOINS; n++) {
		int fd = accept4(watch->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (fd < 0) {
			if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
				join_pause(port);
			return;
		}
		if (hd_shm_pending_join_add(port, fd) < 0)
			close(fd);
	}
	if (port->pending_join_count < HD_SHM_PENDING_JOINS)
		/* the socket is looked at again in the next turn */
		return;
	/* the others wait in the queue until somebody leaves */
	hd_watch_events(port->base.node, watch, 0);
}

static int join_listen(struct hd_shm_port *port, int fd)
{
	struct sockaddr_un sa;
	socklen_t len = hd_shm_join_address(&sa, port->advert.join_name);
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
	if (hd_random(random, sizeof(random)))
		return -EIO;
	port->advert = (struct hd_shm_advert){ .magic = HD_SHM_MAGIC, .version = HD_SHM_VERSION };
	memcpy(port->advert.join_name, random, 16);
	memcpy(port->advert.nonce, random + 16, 16);
	fd = hd_shm_join_socket();
	err = fd < 0 ? fd : join_listen(port, fd);
	if (err) {
		hd_warn("no shared memory: cannot listen on a UNIX socket: %s%s; going on over TCP",
			strerror(-err), hd_advice(-err));
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
