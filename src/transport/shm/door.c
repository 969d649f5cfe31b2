/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * The door of a node: an abstract UNIX address, random, at which it listens once it has advertised that. Such an address leaves nothing
 * behind when its owner dies. Who comes in is a guest until the link stands (greet.c).
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

#define DOOR_BACKLOG 128
#define DOOR_GUESTS 32		      /* half-made links of those that joined us */
#define PAUSE_NS (100 * HD_NS_PER_MS) /* in which nobody is let in when there are no descriptors left */

/* ---- addresses ---- */

static socklen_t door_address(struct sockaddr_un *sa, const uint8_t door[16])
{
	int n = 1; /* after the zero byte that makes it abstract */

	*sa = (struct sockaddr_un){ .sun_family = AF_UNIX };
	n += snprintf(sa->sun_path + n, sizeof(sa->sun_path) - 1, "heddle.");
	for (int i = 0; i < 16; i++)
		n += snprintf(sa->sun_path + n, sizeof(sa->sun_path) - (size_t)n, "%02x", door[i]);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + (size_t)n);
}

static int sock_open(void)
{
	int fd = hd_socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	return fd < 0 ? -errno : fd;
}

int hd_shm_knock(const struct hd_shm_advert *advert)
{
	struct sockaddr_un sa;
	socklen_t len = door_address(&sa, advert->door);
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

/* The kernel keeps with a door who has begun to listen there, whoever has the socket by now. */
int hd_shm_door_process(const struct hd_shm_advert *advert)
{
	int sock = hd_shm_knock(advert), err;
	struct ucred cred;

	if (sock < 0)
		return sock;
	err = hd_shm_who(sock, &cred);
	close(sock);
	return err ? err : hd_shm_pidfd(cred.pid);
}

/* ---- letting in ---- */

void hd_shm_guest_leave(struct hd_shm_link *l)
{
	struct hd_shm_port *port = hd_shm_port_of(l);

	TAILQ_REMOVE(&port->guests, l, guest);
	if (port->guest_count-- == DOOR_GUESTS)
		hd_watch_events(port->base.node, &port->door, EPOLLIN);
}

static void on_door_timer(struct hd_timer *timer)
{
	struct hd_shm_port *port = hd_container(timer, struct hd_shm_port, door_timer);

	hd_watch_events(port->base.node, &port->door, EPOLLIN);
}

/* Who waits at the door cannot be let in now; without a pause the node could not sleep any more. */
static void door_pause(struct hd_shm_port *port)
{
	HD_LOG_EVERY_MS(1000, HD_LOG_WARN, "cannot accept a connection of this host: %m%s",
			errno == EMFILE ? ": raise the limit of open files (ulimit -n)" : "");
	hd_watch_events(port->base.node, &port->door, 0);
	hd_timer_set(port->base.node, &port->door_timer, PAUSE_NS);
}

static void on_door(struct hd_watch *watch, uint32_t events)
{
	struct hd_shm_port *port = hd_container(watch, struct hd_shm_port, door);

	while (port->guest_count < DOOR_GUESTS) {
		int fd = accept4(watch->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (fd < 0) {
			if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
				door_pause(port);
			return;
		}
		if (hd_shm_guest_add(port, fd) < 0)
			close(fd);
	}
	hd_watch_events(port->base.node, watch, 0); /* the others wait in the queue until somebody leaves */
}

static int door_listen(struct hd_shm_port *port, int fd)
{
	struct sockaddr_un sa;
	socklen_t len = door_address(&sa, port->advert.door);
	int err;

	if (bind(fd, (struct sockaddr *)&sa, len) < 0 || listen(fd, DOOR_BACKLOG) < 0)
		return -errno;
	port->door = (struct hd_watch){ .fd = fd, .events = EPOLLIN, .fn = on_door };
	port->door_timer.fn = on_door_timer;
	err = hd_watch_add(port->base.node, &port->door);
	if (err)
		port->door.fd = -1;
	return err;
}

int hd_shm_door_open(struct hd_shm_port *port)
{
	uint8_t random[32];
	int fd, err;

	if (port->door.fd >= 0)
		return 0;
	if (getrandom(random, sizeof(random), 0) != sizeof(random))
		return -EIO;
	port->advert = (struct hd_shm_advert){ .magic = HD_SHM_MAGIC, .version = HD_SHM_VERSION };
	memcpy(port->advert.door, random, 16);
	memcpy(port->advert.nonce, random + 16, 16);
	fd = sock_open();
	err = fd < 0 ? fd : door_listen(port, fd);
	if (err) {
		hd_warn("no shared memory: cannot listen on a UNIX socket: %s", strerror(-err));
		if (fd >= 0)
			close(fd);
	}
	return err;
}

void hd_shm_door_close(struct hd_shm_port *port)
{
	struct hd_shm_link *l;

	while ((l = TAILQ_FIRST(&port->guests))) {
		hd_shm_guest_leave(l);
		hd_shm_link_free(l);
	}
	if (port->door.fd < 0)
		return;
	hd_timer_stop(port->base.node, &port->door_timer);
	hd_watch_remove(port->base.node, &port->door);
	close(port->door.fd);
	port->door.fd = -1;
}
