/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * How a link is made. A node that has said by an advert how it can be joined has a join socket
 * (join.c). Three records follow behind it:
 *
 *	side 0 (joins)                                     side 1 (is joined)
 *	make the link's memory
 *	JOIN: node page, eventfd, memory, pidfd  ------>   check all of them, map, probe
 *	check, map, probe                        <------   WELCOME: node page, eventfd, pidfd
 *	READY                                    ------>
 *	hd_link_up                                         hd_link_accepted
 *
 * The socket then stays open and silent: its hang-up tells that the other side has closed the link
 * or died, and the pidfd tells the latter where a forked child keeps the socket open.
 */
#include "transport/shm/shm.h"

#include "base/advice.h"
#include "base/clock.h"
#include "base/config.h"
#include "base/log.h"
#include "base/minus.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* between two attempts while the join socket's queue is full */
#define JOIN_REQUEST_NS (2 * HD_NS_PER_MS)

enum {
	FD_PAGE,
	FD_WAKE,
	FD_MEM
}; /* order of the descriptors of JOIN; WELCOME has no memory */

static void on_sock(struct hd_watch *watch, uint32_t events);
static void on_timer(struct hd_timer *timer);
static void greet_give_up(struct hd_shm_link *l, int err, const char *why);

static int hello_send(struct hd_shm_link *l, enum hd_shm_hello_step step, const uint8_t nonce[16])
{
	struct hd_shm_port *port = hd_shm_port_of(l);
	struct hd_node *node = port->base.node;
	struct hd_shm_record r = {
		.hello = { .magic = HD_SHM_MAGIC, .version = HD_SHM_VERSION, .step = (uint8_t)step }
	};
	int pidfd = -1, err;

	memcpy(r.hello.nonce, nonce, sizeof(r.hello.nonce));
	r.hello.id = *hd_node_id(node);
	if (step == HD_SHM_JOIN)
		r.hello.whom = l->setup.whose;
	if (port->barrier)
		r.hello.flags |= HD_SHM_F_BARRIER;
	if (step != HD_SHM_READY) {
		r.fd[r.fds++] = hd_node_page_fd(node);
		r.fd[r.fds++] = hd_node_wake_fd(node);
		if (step == HD_SHM_JOIN)
			r.fd[r.fds++] = l->setup.mem_fd;
		pidfd = (int)syscall(SYS_pidfd_open, getpid(), 0);
	}
	if (pidfd >= 0) {
		r.hello.flags |= HD_SHM_F_PIDFD;
		r.fd[r.fds++] = pidfd;
	}
	err = hd_shm_record_send(l->sock.fd, &r);
	if (pidfd >= 0)
		close(pidfd);
	return err;
}

static const char *greet_reason(int err)
{
	switch (err) {
	case -EPROTO:
		return "it sent something that is not heddle's, or of another version: check what runs there";
	case -EACCES:
		return "it is not allowed to";
	case -ECONNRESET:
		return "it hung up";
	case -ESRCH:
		return "the process has ended";
	case -EMFILE:
		return "descriptors were lost: too many came, or too few are allowed here";
	default:
		return "setting up shared memory failed";
	}
}

static void on_pidfd(struct hd_watch *watch, uint32_t events);

/* ---- who is there? ---- */

/*
 * The kernel's word on who is at the other end. Another user's process gets TCP: it might not
 * be allowed what we share.
 */
static int check_creds(struct hd_shm_peer *peer, int sock)
{
	struct ucred cred;
	int err = hd_shm_who(sock, &cred);

	if (err)
		return err;
	if (!hd_realm_is_own(hd_realm_of_user(cred.uid))) {
		HD_LOG_EVERY_MS(
			1000, HD_LOG_INFO,
			"process %d belongs to user %u: no shared memory with it; run both ends as one user",
			(int)cred.pid, cred.uid);
		return -EACCES;
	}
	peer->pid = cred.pid;
	return 0;
}

/*
 * The socket tells nothing of the other process's death where somebody else has it open, such as a
 * child that was made without the handlers of fork. So until a pidfd comes from the process itself,
 * which no other can have got the number of meanwhile, this one tells.
 */
static int watch_process(struct hd_shm_peer *peer, struct hd_node *node)
{
	int fd = hd_shm_pidfd(peer->pid);

	if (fd == -ESRCH)
		return fd;
	if (fd >= 0 && hd_shm_watch_begin(node, &peer->pidfd, fd, on_pidfd))
		close(fd);
	if (peer->pidfd.fd < 0)
		peer->born = hd_shm_born(peer->pid);
	return 0;
}

static void unwatch_process(struct hd_shm_peer *peer, struct hd_node *node)
{
	hd_shm_watch_end(node, &peer->pidfd);
	if (peer->pidfd.fd >= 0)
		close(peer->pidfd.fd);
	peer->pidfd.fd = -1;
}

/*
 * Something to write to that neither blocks nor signals: what an eventfd is and a file, a
 * pipe or a socket is not.
 */
static int check_eventfd(int fd)
{
	struct stat st;
	int flags = fcntl(fd, F_GETFL);

	if (flags < 0 || fstat(fd, &st) < 0)
		return -errno;
	return (st.st_mode & S_IFMT) == 0 && (flags & O_NONBLOCK) ? 0 : -EPROTO;
}

/*
 * Take over what JOIN and WELCOME have in common. Each descriptor that is kept is
 * taken out of the record.
 */
static int take_peer(struct hd_shm_link *l, struct hd_shm_record *r)
{
	uint8_t both = hd_shm_port_of(l)->barrier ? r->hello.flags : 0;
	int err = check_eventfd(r->fd[FD_WAKE]);

	if (err)
		return err;
	err = hd_shm_page_map(r->fd[FD_PAGE], &r->hello.id, &l->peer.page);
	if (err)
		return err;
	l->peer.wake = r->fd[FD_WAKE];
	r->fd[FD_WAKE] = -1;
	l->fenced = !(both & HD_SHM_F_BARRIER);
	if (!(r->hello.flags & HD_SHM_F_PIDFD))
		return 0; /* ours is better than none */
	unwatch_process(&l->peer, l->base.port->node);
	err = hd_shm_watch_begin(l->base.port->node, &l->peer.pidfd, r->fd[r->fds - 1], on_pidfd);
	if (!err)
		r->fd[r->fds - 1] = -1;
	return err;
}

/*
 * A pidfd that we have opened by number is not the other process's where
 * another one has that number.
 */
static void greet_probe(struct hd_shm_link *l, const struct hd_shm_record *r)
{
	if (!hd_shm_probe(l) && !(r->hello.flags & HD_SHM_F_PIDFD))
		unwatch_process(&l->peer, l->base.port->node);
}

/* ---- the states, and what makes each go on ---- */

/* An advert can be passed on by others: who follows it says, and looks, whom it leads to. */
static bool greet_is_meant(const struct hd_node_id *whom, const struct hd_node_id *id)
{
	return !(whom->word[0] | whom->word[1]) || memcmp(whom, id, sizeof(*id)) == 0;
}

static int on_welcome(struct hd_shm_link *l, struct hd_shm_record *r)
{
	int err = hd_shm_record_check(r, HD_SHM_WELCOME, FD_WAKE + 1, l->setup.advert.nonce);

	if (err)
		return err;
	if (!greet_is_meant(&l->setup.whose, &r->hello.id))
		return -EACCES;
	err = take_peer(l, r);
	if (err)
		return err;
	greet_probe(l, r);
	err = hello_send(l, HD_SHM_READY, l->setup.advert.nonce);
	if (err)
		return err;
	close(l->setup.mem_fd);
	l->setup.mem_fd = -1;
	hd_timer_stop(l->base.port->node, &l->setup.timer);
	hd_shm_link_live(l);
	return 0;
}

static int on_join(struct hd_shm_link *l, struct hd_shm_record *r)
{
	struct hd_shm_port *port = hd_shm_port_of(l);
	int err = hd_shm_record_check(r, HD_SHM_JOIN, FD_MEM + 1, port->advert.nonce);

	if (err)
		return err;
	if (!hd_node_knows(port->base.node, &r->hello.id) ||
	    !greet_is_meant(&r->hello.whom, hd_node_id(port->base.node)))
		return -EACCES;
	err = hd_shm_mem_map(r->fd[FD_MEM], &l->mem);
	if (err)
		return err;
	hd_shm_link_ready(l);
	err = take_peer(l, r);
	if (err)
		return err;
	greet_probe(l, r);
	l->setup.join_id = r->hello.id;
	l->state = HD_SHM_WAITING;
	return hello_send(l, HD_SHM_WELCOME, port->advert.nonce);
}

void hd_shm_pending_join_leave(struct hd_shm_link *l)
{
	struct hd_shm_port *port = hd_shm_port_of(l);

	TAILQ_REMOVE(&port->pending_joins, l, pending_join);
	if (port->pending_join_count-- == HD_SHM_PENDING_JOINS)
		hd_watch_events(port->base.node, &port->join_watch, EPOLLIN);
}

static int on_ready(struct hd_shm_link *l, struct hd_shm_record *r)
{
	struct hd_shm_port *port = hd_shm_port_of(l);
	int err = hd_shm_record_check(r, HD_SHM_READY, 0, port->advert.nonce);

	if (err)
		return err;
	hd_shm_pending_join_leave(l);
	TAILQ_INSERT_TAIL(&port->unmet, l, unmet_entry);
	l->unmet = true;
	hd_timer_stop(port->base.node, &l->setup.timer);
	hd_link_init(&l->base, &port->base, port->link_ops);
	hd_shm_link_live(l);
	return 0;
}

static const struct {
	const char *name;
	/* NULL: nothing may come */
	int (*on_record)(struct hd_shm_link *l, struct hd_shm_record *r);
	const char *late; /* why the link is given up when time is over */
} states[HD_SHM_STATES] = {
	[HD_SHM_REQUESTING] = { "requesting", NULL, "the other process does not accept connections" },
	[HD_SHM_JOINING] = { "joining", on_welcome, "the other process does not answer" },
	[HD_SHM_GREETING] = { "greeting", on_join, "the other process says nothing" },
	[HD_SHM_WAITING] = { "waiting", on_ready, "the other process does not go on" },
	[HD_SHM_LIVE] = { "live", NULL, NULL },
	[HD_SHM_ENDING] = { "ending", NULL, NULL },
};

static bool is_pending_join(const struct hd_shm_link *l)
{
	return l->state == HD_SHM_GREETING || l->state == HD_SHM_WAITING;
}

/*
 * What the other process does is everyday; what it sends that is not ours, and what is
 * short here, is worth a line.
 */
static enum hd_log_level greet_level(int err)
{
	switch (err) {
	case -EACCES:
	case -ECONNRESET:
	case -EPIPE:
	case -ESRCH:
	case -ETIMEDOUT:
		return HD_LOG_INFO;
	default:
		return HD_LOG_WARN;
	}
}

/*
 * The link has not come about. The engine knows nothing of a pending join, but waits
 * for a link that it began.
 */
static void greet_give_up(struct hd_shm_link *l, int err, const char *why)
{
	if (!is_pending_join(l)) {
		hd_timer_stop(l->base.port->node, &l->setup.timer);
		hd_shm_link_fail(l, err, why);
		return;
	}
	/*
	 * who wants to know of us, and no more (hd_shm_join_process), hangs up
	 * before he has said a word
	 */
	if (l->state != HD_SHM_GREETING || err != -ECONNRESET)
		HD_LOG_EVERY_MS(1000, greet_level(err),
				"process %d wanted to share memory and was sent away while %s: %s (%s)%s",
				(int)l->peer.pid, states[l->state].name, why, strerror(-err),
				hd_advice(-err));
	hd_shm_pending_join_leave(l);
	hd_shm_link_missed(l);
}

/* Take what the socket has. False: nothing has come. */
static bool record_take(struct hd_shm_link *l)
{
	struct hd_shm_record r;
	int err = hd_shm_record_recv(l->sock.fd, &r);

	if (err == -EAGAIN)
		return false;
	if (l->state >= HD_SHM_LIVE) {
		hd_shm_record_close_fds(&r);
		hd_shm_link_end(l, err ? err : -EPROTO,
				err == -ECONNRESET ? "the other side has closed the link"
						   : "garbage on its UNIX socket");
		return true;
	}
	if (!err)
		err = states[l->state].on_record(l, &r);
	hd_shm_record_close_fds(&r);
	if (err)
		greet_give_up(l, err, greet_reason(err));
	return true;
}

static void on_sock(struct hd_watch *watch, uint32_t events)
{
	record_take(hd_container(watch, struct hd_shm_link, sock));
}

/*
 * What it has said before it died counts: the link may have worked at its end, with messages in it.
 */
static void on_pidfd(struct hd_watch *watch, uint32_t events)
{
	struct hd_shm_link *l = hd_container(watch, struct hd_shm_link, peer.pidfd);

	if (l->state >= HD_SHM_LIVE)
		hd_shm_link_end(l, -ECONNRESET, "the process has ended");
	else if (!record_take(l))
		greet_give_up(l, -ESRCH, greet_reason(-ESRCH));
}

/* ---- joining ---- */

/* The join socket has opened: say who we are. */
static int greet_enter(struct hd_shm_link *l, int fd)
{
	int err = check_creds(&l->peer, fd);

	if (!err)
		err = watch_process(&l->peer, l->base.port->node);
	if (!err)
		err = hd_shm_watch_begin(l->base.port->node, &l->sock, fd, on_sock);
	if (err) {
		close(fd);
		return err;
	}
	l->state = HD_SHM_JOINING;
	return hello_send(l, HD_SHM_JOIN, l->setup.advert.nonce);
}

/*
 * A UNIX socket connects at once or not at all; -EAGAIN means that too many
 * wait at the join socket.
 */
static int join_ask(struct hd_shm_link *l)
{
	uint64_t now = hd_now_ns();
	int fd = hd_shm_join_request(&l->setup.advert), err = fd;

	if (fd >= 0)
		err = greet_enter(l, fd);
	if (err == -EAGAIN && l->state == HD_SHM_REQUESTING)
		hd_timer_set(l->base.port->node, &l->setup.timer, JOIN_REQUEST_NS);
	else if (!err)
		hd_timer_set(l->base.port->node, &l->setup.timer, hd_minus(l->setup.patience.end, now));
	else
		return err;
	return 0;
}

static uint64_t greet_connect_ns(void)
{
	return hd_config_ms(HD_SET_CONNECT_TIMEOUT) * HD_NS_PER_MS;
}

static void on_timer(struct hd_timer *timer)
{
	struct hd_shm_link *l = hd_container(timer, struct hd_shm_link, setup.timer);
	bool asks = l->state == HD_SHM_REQUESTING;
	uint64_t more;
	int err;

	if (asks && hd_now_ns() < l->setup.patience.end) {
		err = join_ask(l);
		if (err)
			greet_give_up(l, err, greet_reason(err));
		return;
	}
	more = hd_patience_more(&l->setup.patience, greet_connect_ns());
	if (more)
		hd_timer_set(l->base.port->node, timer, asks ? JOIN_REQUEST_NS : more);
	else
		greet_give_up(l, -ETIMEDOUT, states[l->state].late);
}

int hd_shm_join(struct hd_shm_port *port, const struct hd_shm_advert *advert, const struct hd_node_id *whose,
		struct hd_shm_link **out)
{
	struct hd_shm_link *l = hd_shm_link_make(port);
	int err;

	if (!l)
		return -ENOMEM;
	l->state = HD_SHM_REQUESTING;
	l->setup.advert = *advert;
	if (whose)
		l->setup.whose = *whose;
	l->setup.timer.fn = on_timer;
	hd_patience_begin(&l->setup.patience, greet_connect_ns());
	err = hd_shm_mem_make(&l->mem, &l->setup.mem_fd);
	if (!err) {
		hd_shm_link_ready(l);
		err = join_ask(l);
	}
	if (err) {
		hd_shm_link_free(l);
		return err;
	}
	hd_link_init(&l->base, &port->base, port->link_ops);
	*out = l;
	return 0;
}

/* ---- being joined ---- */

int hd_shm_pending_join_add(struct hd_shm_port *port, int fd)
{
	struct hd_shm_link *l = hd_shm_link_make(port);
	int err;

	if (!l)
		return -ENOMEM;
	l->side = 1;
	l->state = HD_SHM_GREETING;
	l->setup.timer.fn = on_timer;
	hd_patience_begin(&l->setup.patience, greet_connect_ns());
	err = check_creds(&l->peer, fd);
	if (!err)
		err = watch_process(&l->peer, l->base.port->node);
	if (!err)
		err = hd_shm_watch_begin(l->base.port->node, &l->sock, fd, on_sock);
	if (err) {
		hd_shm_link_free(l);
		return err;
	}
	hd_timer_set(port->base.node, &l->setup.timer, greet_connect_ns());
	TAILQ_INSERT_TAIL(&port->pending_joins, l, pending_join);
	port->pending_join_count++;
	return 0;
}
