/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * How a link is made. A node that has said by an advert how it can be joined listens on an abstract UNIX
 * address; such an address leaves nothing behind when its owner dies. Three records follow:
 *
 *	side 0 (joins)                                     side 1 (is joined)
 *	make the link's memory
 *	JOIN: node page, eventfd, memory, pidfd  ------>   check all of them, map, probe
 *	check, map, probe                        <------   WELCOME: node page, eventfd, pidfd
 *	READY                                    ------>
 *	hd_link_up                                         hd_link_accepted
 *
 * The socket then stays open and silent: its hang-up tells that the other side has closed the link or died,
 * and the pidfd tells the latter where a forked child keeps the socket open.
 */
#include "transport/shm/shm.h"

#include "base/clock.h"
#include "base/config.h"
#include "base/log.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#define DOOR_BACKLOG 128
#define DOOR_GUESTS 32		      /* half-made links of those that joined us */
#define KNOCK_NS (2 * HD_NS_PER_MS)   /* between two attempts while the door's queue is full */
#define PAUSE_NS (100 * HD_NS_PER_MS) /* in which nobody is let in when there are no descriptors left */

enum {
	FD_PAGE,
	FD_WAKE,
	FD_MEM
}; /* order of the descriptors of JOIN; WELCOME has no memory */

struct record {
	struct hd_shm_hello hello;
	int fd[HD_SHM_HELLO_FDS];
	int fds;
};

static void on_sock(struct hd_watch *watch, uint32_t events);
static void on_timer(struct hd_timer *timer);
static void give_up(struct hd_shm_link *l, int err, const char *why);

/* ---- records ---- */

static int record_send(int sock, const struct record *r)
{
	union {
		struct cmsghdr hdr;
		char room[CMSG_SPACE(HD_SHM_HELLO_FDS * sizeof(int))];
	} control = { 0 };
	struct iovec iov = { (void *)&r->hello, sizeof(r->hello) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	ssize_t n;

	if (r->fds) {
		msg.msg_control = &control;
		msg.msg_controllen = CMSG_SPACE((size_t)r->fds * sizeof(int));
		control.hdr.cmsg_level = SOL_SOCKET;
		control.hdr.cmsg_type = SCM_RIGHTS;
		control.hdr.cmsg_len = CMSG_LEN((size_t)r->fds * sizeof(int));
		memcpy(CMSG_DATA(&control.hdr), r->fd, (size_t)r->fds * sizeof(int));
	}
	do {
		n = sendmsg(sock, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	return 0;
}

static void record_take_fds(struct record *r, struct msghdr *msg)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
		int count = (int)((c->cmsg_len - CMSG_LEN(0)) / sizeof(int));

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		for (int i = 0; i < count && r->fds < HD_SHM_HELLO_FDS; i++)
			memcpy(&r->fd[r->fds++], CMSG_DATA(c) + (size_t)i * sizeof(int), sizeof(int));
	}
}

static void record_close_fds(struct record *r)
{
	for (int i = 0; i < r->fds; i++)
		if (r->fd[i] >= 0)
			close(r->fd[i]);
	r->fds = 0;
}

/*
 * 0; -EAGAIN: nothing there; -ECONNRESET: the other side has hung up; -EPROTO: not a record; -EMFILE: not all
 * of its descriptors could be taken. Those that were are the caller's.
 */
static int record_recv(int sock, struct record *r)
{
	union {
		struct cmsghdr hdr;
		char room[CMSG_SPACE(HD_SHM_HELLO_FDS * sizeof(int))];
	} control;
	struct iovec iov = { &r->hello, sizeof(r->hello) };
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	ssize_t n;

	r->fds = 0;
	do {
		n = recvmsg(sock, &msg, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	record_take_fds(r, &msg);
	if (n == 0)
		return -ECONNRESET;
	if (msg.msg_flags & MSG_CTRUNC)
		return -EMFILE; /* more than there is room for, be it here or in our table of descriptors */
	return n == sizeof(r->hello) && !(msg.msg_flags & MSG_TRUNC) ? 0 : -EPROTO;
}

/* What every record must satisfy; min descriptors, and the pidfd if it says so. */
static int record_check(const struct record *r, enum hd_shm_hello_step step, int min, const uint8_t nonce[16])
{
	const struct hd_shm_hello *h = &r->hello;

	if (h->magic != HD_SHM_MAGIC || h->version != HD_SHM_VERSION || h->step != step)
		return -EPROTO;
	if (r->fds != min + !!(h->flags & HD_SHM_F_PIDFD))
		return -EPROTO;
	return memcmp(h->nonce, nonce, sizeof(h->nonce)) == 0 ? 0 : -EACCES;
}

static int hello_send(struct hd_shm_link *l, enum hd_shm_hello_step step, const uint8_t nonce[16])
{
	struct hd_shm_port *port = hd_shm_port_of(l);
	struct hd_node *node = port->base.node;
	struct record r = {
		.hello = { .magic = HD_SHM_MAGIC, .version = HD_SHM_VERSION, .step = (uint8_t)step }
	};
	int pidfd = -1, err;

	memcpy(r.hello.nonce, nonce, sizeof(r.hello.nonce));
	r.hello.id = *hd_node_id(node);
	if (port->barrier)
		r.hello.flags |= HD_SHM_F_BARRIER;
	if (step != HD_SHM_READY) {
		r.fd[r.fds++] = hd_node_page_fd(node);
		r.fd[r.fds++] = hd_node_wake_fd(node);
		if (step == HD_SHM_JOIN)
			r.fd[r.fds++] = l->mem_fd;
		pidfd = (int)syscall(SYS_pidfd_open, getpid(), 0);
	}
	if (pidfd >= 0) {
		r.hello.flags |= HD_SHM_F_PIDFD;
		r.fd[r.fds++] = pidfd;
	}
	err = record_send(l->sock.fd, &r);
	if (pidfd >= 0)
		close(pidfd);
	return err;
}

/* ---- the two descriptors that tell the end ---- */

static int watch_begin(struct hd_shm_link *l, struct hd_watch *watch, int fd,
		       void (*fn)(struct hd_watch *, uint32_t))
{
	int err;

	*watch = (struct hd_watch){ .fd = fd, .events = EPOLLIN, .fn = fn };
	err = hd_watch_add(l->base.port->node, watch);
	if (err)
		watch->fd = -1;
	return err;
}

static void watch_end(struct hd_shm_link *l, struct hd_watch *watch)
{
	if (watch->fd >= 0 && watch->events)
		hd_watch_remove(l->base.port->node, watch);
	watch->events = 0;
}

/*
 * shutdown() reaches the other side even where a forked child of ours keeps the descriptor. The pidfd still
 * has its use.
 */
void hd_shm_hang_up(struct hd_shm_link *l)
{
	watch_end(l, &l->pidfd);
	if (l->sock.fd < 0)
		return;
	shutdown(l->sock.fd, SHUT_RDWR);
	watch_end(l, &l->sock);
	close(l->sock.fd);
	l->sock.fd = -1;
}

static void on_pidfd(struct hd_watch *watch, uint32_t events)
{
	struct hd_shm_link *l = hd_container(watch, struct hd_shm_link, pidfd);

	if (l->state >= HD_SHM_LIVE)
		hd_shm_link_end(l, -ECONNRESET, "the process has ended");
	else
		give_up(l, -ECONNRESET, "the process has ended");
}

/* ---- who is there? ---- */

/*
 * The kernel's word on who is at the other end. Another user's process gets TCP: it might not be allowed what
 * we share.
 */
static int check_creds(struct hd_shm_link *l, int sock)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);

	if (getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &cred, &len) < 0)
		return -errno;
	if (cred.uid != geteuid()) {
		hd_info("process %d belongs to user %u: no shared memory with it", (int)cred.pid, cred.uid);
		return -EACCES;
	}
	l->peer_pid = cred.pid;
	return 0;
}

/*
 * The socket tells nothing of the other process's death where somebody else has it open, such as a child that was made without the
 * handlers of fork. So until a pidfd comes from the process itself, which no other can have got the number of meanwhile, this one tells.
 */
static int watch_process(struct hd_shm_link *l)
{
	int fd = l->peer_pid > 0 ? (int)syscall(SYS_pidfd_open, l->peer_pid, 0) : -1;

	if (fd < 0)
		return l->peer_pid > 0 && errno == ESRCH ? -ECONNRESET : 0;
	if (watch_begin(l, &l->pidfd, fd, on_pidfd))
		close(fd);
	return 0;
}

static void unwatch_process(struct hd_shm_link *l)
{
	watch_end(l, &l->pidfd);
	if (l->pidfd.fd >= 0)
		close(l->pidfd.fd);
	l->pidfd.fd = -1;
}

/*
 * Something to write to that neither blocks nor signals: what an eventfd is and a file, a pipe or a socket is
 * not.
 */
static int check_eventfd(int fd)
{
	struct stat st;
	int flags = fcntl(fd, F_GETFL);

	if (flags < 0 || fstat(fd, &st) < 0)
		return -errno;
	return (st.st_mode & S_IFMT) == 0 && (flags & O_NONBLOCK) ? 0 : -EPROTO;
}

/* Take over what JOIN and WELCOME have in common. Each descriptor that is kept is taken out of the record. */
static int take_peer(struct hd_shm_link *l, struct record *r)
{
	uint8_t both = hd_shm_port_of(l)->barrier ? r->hello.flags : 0;
	int err = check_eventfd(r->fd[FD_WAKE]);

	if (err)
		return err;
	err = hd_shm_page_map(r->fd[FD_PAGE], &r->hello.id, &l->page);
	if (err)
		return err;
	l->peer_wake = r->fd[FD_WAKE];
	r->fd[FD_WAKE] = -1;
	l->fenced = !(both & HD_SHM_F_BARRIER);
	unwatch_process(l);
	if (!(r->hello.flags & HD_SHM_F_PIDFD))
		return 0;
	err = watch_begin(l, &l->pidfd, r->fd[r->fds - 1], on_pidfd);
	if (!err)
		r->fd[r->fds - 1] = -1;
	return err;
}

/* ---- the states, and what makes each go on ---- */

static int on_welcome(struct hd_shm_link *l, struct record *r)
{
	int err = record_check(r, HD_SHM_WELCOME, FD_WAKE + 1, l->advert.nonce);

	if (err)
		return err;
	err = take_peer(l, r);
	if (err)
		return err;
	hd_shm_probe(l);
	err = hello_send(l, HD_SHM_READY, l->advert.nonce);
	if (err)
		return err;
	close(l->mem_fd);
	l->mem_fd = -1;
	hd_timer_stop(l->base.port->node, &l->timer);
	hd_shm_link_live(l);
	return 0;
}

static int on_join(struct hd_shm_link *l, struct record *r)
{
	struct hd_shm_port *port = hd_shm_port_of(l);
	int err = record_check(r, HD_SHM_JOIN, FD_MEM + 1, port->advert.nonce);

	if (err)
		return err;
	if (!hd_node_knows(port->base.node, &r->hello.id))
		return -EACCES;
	err = hd_shm_mem_map(r->fd[FD_MEM], &l->mem);
	if (err)
		return err;
	hd_shm_link_ready(l);
	err = take_peer(l, r);
	if (err)
		return err;
	hd_shm_probe(l);
	l->state = HD_SHM_WAITING;
	return hello_send(l, HD_SHM_WELCOME, port->advert.nonce);
}

static void guest_leave(struct hd_shm_link *l)
{
	struct hd_shm_port *port = hd_shm_port_of(l);

	TAILQ_REMOVE(&port->guests, l, guest);
	if (port->guest_count-- == DOOR_GUESTS)
		hd_watch_events(port->base.node, &port->door, EPOLLIN);
}

static int on_ready(struct hd_shm_link *l, struct record *r)
{
	struct hd_shm_port *port = hd_shm_port_of(l);
	int err = record_check(r, HD_SHM_READY, 0, port->advert.nonce);

	if (err)
		return err;
	guest_leave(l);
	hd_timer_stop(port->base.node, &l->timer);
	hd_link_init(&l->base, &port->base, &hd_shm_link_ops);
	hd_shm_link_live(l);
	return 0;
}

static const struct {
	const char *name;
	int (*on_record)(struct hd_shm_link *l, struct record *r); /* NULL: nothing may come */
	const char *late; /* why the link is given up when time is over */
} states[HD_SHM_STATES] = {
	[HD_SHM_KNOCKING] = { "knocking", NULL, "the other process does not accept connections" },
	[HD_SHM_JOINING] = { "joining", on_welcome, "the other process does not answer" },
	[HD_SHM_GREETING] = { "greeting", on_join, "the other process says nothing" },
	[HD_SHM_WAITING] = { "waiting", on_ready, "the other process does not go on" },
	[HD_SHM_LIVE] = { "live", NULL, NULL },
	[HD_SHM_ENDING] = { "ending", NULL, NULL },
};

static bool is_guest(const struct hd_shm_link *l)
{
	return l->state == HD_SHM_GREETING || l->state == HD_SHM_WAITING;
}

/* The link has not come about. The engine knows nothing of a guest, but waits for a link that it began. */
static void give_up(struct hd_shm_link *l, int err, const char *why)
{
	if (!is_guest(l)) {
		hd_timer_stop(l->base.port->node, &l->timer);
		hd_shm_link_fail(l, err, why);
		return;
	}
	HD_LOG_EVERY_MS(1000, err == -EPROTO ? HD_LOG_WARN : HD_LOG_INFO,
			"process %d wanted to share memory and was sent away while %s: %s (%s)",
			(int)l->peer_pid, states[l->state].name, why, strerror(-err));
	guest_leave(l);
	hd_shm_link_free(l);
}

static const char *reason(int err)
{
	switch (err) {
	case -EPROTO:
		return "it sent something that is not heddle's, or of another version: check what runs there";
	case -EACCES:
		return "it is not allowed to";
	case -ECONNRESET:
		return "it hung up";
	case -EMFILE:
		return "descriptors were lost: too many came, or too few are allowed here (ulimit -n)";
	default:
		return "setting up shared memory failed";
	}
}

static void on_sock(struct hd_watch *watch, uint32_t events)
{
	struct hd_shm_link *l = hd_container(watch, struct hd_shm_link, sock);
	struct record r;
	int err = record_recv(watch->fd, &r);

	if (err == -EAGAIN)
		return;
	if (l->state >= HD_SHM_LIVE) {
		record_close_fds(&r);
		hd_shm_link_end(l, err ? err : -EPROTO,
				err == -ECONNRESET ? "the other side has closed the link"
						   : "garbage on its UNIX socket");
		return;
	}
	if (!err)
		err = states[l->state].on_record(l, &r);
	record_close_fds(&r);
	if (err)
		give_up(l, err, reason(err));
}

/* ---- joining ---- */

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
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	return fd < 0 ? -errno : fd;
}

/* The door has opened: say who we are. */
static int enter(struct hd_shm_link *l, int fd)
{
	int err = check_creds(l, fd);

	if (!err)
		err = watch_process(l);
	if (!err)
		err = watch_begin(l, &l->sock, fd, on_sock);
	if (err) {
		close(fd);
		return err;
	}
	l->state = HD_SHM_JOINING;
	return hello_send(l, HD_SHM_JOIN, l->advert.nonce);
}

/* A UNIX socket connects at once or not at all; -EAGAIN means that too many wait at the door. */
static int knock(struct hd_shm_link *l)
{
	struct sockaddr_un sa;
	socklen_t len = door_address(&sa, l->advert.door);
	uint64_t now = hd_now_ns();
	int fd = sock_open(), err = 0;

	if (fd < 0)
		return fd;
	if (connect(fd, (struct sockaddr *)&sa, len) < 0)
		err = -errno;
	if (!err)
		err = enter(l, fd);
	else
		close(fd);
	if (err == -EAGAIN && l->state == HD_SHM_KNOCKING)
		hd_timer_set(l->base.port->node, &l->timer, KNOCK_NS);
	else if (!err)
		hd_timer_set(l->base.port->node, &l->timer, l->deadline > now ? l->deadline - now : 0);
	else
		return err;
	return 0;
}

static void on_timer(struct hd_timer *timer)
{
	struct hd_shm_link *l = hd_container(timer, struct hd_shm_link, timer);
	int err;

	if (l->state != HD_SHM_KNOCKING || hd_now_ns() >= l->deadline) {
		give_up(l, -ETIMEDOUT, states[l->state].late);
		return;
	}
	err = knock(l);
	if (err)
		give_up(l, err, reason(err));
}

int hd_shm_join(struct hd_shm_port *port, const struct hd_shm_advert *advert, struct hd_shm_link **out)
{
	struct hd_shm_link *l = hd_shm_link_make(port);
	int err;

	if (!l)
		return -ENOMEM;
	l->state = HD_SHM_KNOCKING;
	l->advert = *advert;
	l->timer.fn = on_timer;
	l->deadline = hd_now_ns() + hd_config_ms(HD_SET_CONNECT_TIMEOUT) * HD_NS_PER_MS;
	err = hd_shm_mem_make(&l->mem, &l->mem_fd);
	if (!err) {
		hd_shm_link_ready(l);
		err = knock(l);
	}
	if (err) {
		hd_shm_link_free(l);
		return err;
	}
	hd_link_init(&l->base, &port->base, &hd_shm_link_ops);
	*out = l;
	return 0;
}

/* ---- being joined ---- */

static int guest_add(struct hd_shm_port *port, int fd)
{
	struct hd_shm_link *l = hd_shm_link_make(port);
	int err;

	if (!l)
		return -ENOMEM;
	l->side = 1;
	l->state = HD_SHM_GREETING;
	l->timer.fn = on_timer;
	l->deadline = hd_now_ns() + hd_config_ms(HD_SET_CONNECT_TIMEOUT) * HD_NS_PER_MS;
	err = check_creds(l, fd);
	if (!err)
		err = watch_process(l);
	if (!err)
		err = watch_begin(l, &l->sock, fd, on_sock);
	if (err) {
		hd_shm_link_free(l);
		return err;
	}
	hd_timer_set(port->base.node, &l->timer, hd_config_ms(HD_SET_CONNECT_TIMEOUT) * HD_NS_PER_MS);
	TAILQ_INSERT_TAIL(&port->guests, l, guest);
	port->guest_count++;
	return 0;
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
		if (guest_add(port, fd) < 0)
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
		guest_leave(l);
		hd_shm_link_free(l);
	}
	if (port->door.fd < 0)
		return;
	hd_timer_stop(port->base.node, &port->door_timer);
	hd_watch_remove(port->base.node, &port->door);
	close(port->door.fd);
	port->door.fd = -1;
}
