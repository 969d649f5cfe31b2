/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* The transport's table, and its turns: which sockets are read and written, and when. */
#include "base/clock.h"
#include "transport/tcp/tcp.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

/* a full socket is left alone for so long: trying all the time only fights for its lock */
#define FULL_US 10
/* polls with traffic without a sleep, after which a link leaves the epoll set */
#define UNWATCH 256
#define COOL_LOOKS 64 /* silent polls between two looks at the clock */
#define COOL_US 2000  /* a link that was silent for so long is left to the epoll set */

static int tcp_port_open(struct hd_node *node, struct hd_port **out)
{
	struct hd_tcp_port *p = calloc(1, sizeof(*p));
	int rc;

	if (!p)
		return -ENOMEM;
	p->port.transport = &hd_tcp_transport;
	p->port.node = node;
	TAILQ_INIT(&p->links);
	TAILQ_INIT(&p->hot);
	TAILQ_INIT(&p->waiting);
	TAILQ_INIT(&p->parting);
	hd_tcp_callers_open(&p->callers);
	p->turn = 16; /* what a new link has of turns, which is zeros, is some turns ago */
	rc = hd_seal_open(p);
	if (rc < 0) {
		free(p);
		return rc;
	}
	p->reserve = open("/dev/null", O_RDONLY | O_CLOEXEC);
	*out = &p->port;
	return 0;
}

static void tcp_port_close(struct hd_port *port)
{
	struct hd_tcp_port *p = tcp_port(port);

	hd_tcp_part_all(p);
	if (p->reserve >= 0)
		close(p->reserve);
	hd_seal_close(p);
	hd_tcp_callers_close(&p->callers);
	free(p);
}

/* A child that kept the sockets open would keep the connections alive beyond the parent's death. */
static void tcp_port_forked(struct hd_port *port)
{
	struct hd_tcp_port *p = tcp_port(port);
	struct hd_tcp_listener *tl;
	struct hd_tcp_link *l;

	TAILQ_FOREACH(l, &p->links, entry)
		close(l->watch.fd);
	LIST_FOREACH(tl, &p->listeners, entry)
		close(tl->watch.fd);
	if (p->reserve >= 0)
		close(p->reserve);
}

/* Write what the links have gathered; sockets that were full are tried again when `again`. */
static void write_waiting(struct hd_tcp_port *p, bool again)
{
	struct hd_tcp_link *l, *next;

	for (l = TAILQ_FIRST(&p->waiting); l; l = next) {
		next = TAILQ_NEXT(l, waiting_entry);
		if (again && l->tx.full && hd_ticks() - l->tx.full_at >= FULL_US * hd_ticks_per_us())
			l->tx.full = false;
		hd_tcp_tx_flush(l);
		if (!hd_tcp_tx_pending(&l->tx)) {
			TAILQ_REMOVE(&p->waiting, l, waiting_entry);
			l->waiting = false;
			hd_node_gathers(p->port.node, -1);
		}
	}
}

static void port_say(struct hd_port *port)
{
	write_waiting(tcp_port(port), false);
}

/* A link that was silent in this poll: has it been so for long? */
static void cool_down(struct hd_tcp_link *l)
{
	uint64_t now;

	if (++l->quiet % COOL_LOOKS)
		return;
	now = hd_ticks();
	if (l->quiet == COOL_LOOKS)
		l->quiet_since = now;
	if (l->quiet == COOL_LOOKS || now - l->quiet_since <= COOL_US * hd_ticks_per_us())
		return;
	hd_link_idle(&l->link);
	if (!hd_tcp_link_busy(l))
		hd_tcp_link_cool(l);
}

static int port_link_poll(struct hd_tcp_link *l)
{
	bool dry;
	int n;

	if (l->link.down) {
		hd_tcp_link_quiet(l);
		return 0;
	}
	n = hd_tcp_tx_done(l);
	if (l->link.down)
		return n;
	n += hd_tcp_rx(l, &dry);
	if (l->link.down)
		return n;
	if (l->tx.err && dry) {
		hd_tcp_link_down(l, l->tx.err, "cannot write");
		return n;
	}
	hd_tcp_tx_grant(l, false);
	if (!n) {
		cool_down(l);
		return 0;
	}
	l->quiet = 0;
	if (++l->traffic >= UNWATCH && !tcp_port_of(l)->armed)
		hd_tcp_link_unwatch(l);
	return n;
}

static int tcp_port_poll(struct hd_port *port)
{
	struct hd_tcp_port *p = tcp_port(port);
	struct hd_tcp_link *l, *next;
	int n = 0;

	p->turn++;
	write_waiting(p, true);
	/*
	 * what a callback heats goes to the end; only cooling takes a link out, and only the link
	 * itself is cooled in its own turn
	 */
	for (l = TAILQ_FIRST(&p->hot); l; l = next) {
		next = TAILQ_NEXT(l, hot_entry);
		n += port_link_poll(l);
	}
	/*
	 * answers that were gathered meanwhile do not wait for the next poll: the
	 * program may be about to compute
	 */
	p->turn++;
	write_waiting(p, false);
	return n;
}

/* Is this link in want of more polls, whatever arrives? */
static bool arm_link(struct hd_tcp_link *l)
{
	if (l->link.down) {
		hd_tcp_link_quiet(l);
		return false;
	}
	hd_link_idle(&l->link);
	hd_tcp_tx_grant(l, true);
	hd_tcp_tx_flush(l);
	if (l->tx.err || l->tx.put_done != l->tx.put_sent || l->rx.more)
		return true;
	if (hd_tcp_tx_pending(&l->tx))
		return hd_tcp_link_watch(l, EPOLLIN | EPOLLOUT) < 0;
	hd_tcp_link_cool(l);
	return l->hot;
}

/* Nobody waits for room to write any more. */
static void watch_reading(struct hd_tcp_port *p)
{
	struct hd_tcp_link *l;

	TAILQ_FOREACH(l, &p->hot, hot_entry) {
		if (l->watched && !l->link.down)
			hd_tcp_link_watch(l, EPOLLIN);
	}
}

static void tcp_port_disarm(struct hd_port *port)
{
	tcp_port(port)->armed = false;
	watch_reading(tcp_port(port));
}

/* The epoll set is level-triggered: it reports what has arrived already, too. */
static int tcp_port_arm(struct hd_port *port)
{
	struct hd_tcp_port *p = tcp_port(port);
	struct hd_tcp_link *l, *next;
	int busy = 0;

	p->armed = true;
	p->turn++;
	write_waiting(p, true);
	for (l = TAILQ_FIRST(&p->hot); l; l = next) {
		next = TAILQ_NEXT(l, hot_entry);
		busy += arm_link(l);
	}
	if (busy)
		watch_reading(p);
	return busy;
}

/* Whoever has armed the port hears of everything anyway. */
static int port_watchdog(struct hd_port *port, bool on)
{
	struct hd_tcp_port *p = tcp_port(port);
	struct hd_tcp_link *l;
	int n = 0;

	if (p->armed)
		return 0;
	TAILQ_FOREACH(l, &p->hot, hot_entry)
		if (!l->link.down && l->state == HD_TCP_UP)
			n += hd_tcp_link_watch(l, on ? EPOLLIN : 0) == 0;
	return n;
}

/* Nobody joins a transport that is called by address. */
static size_t tcp_port_advertise(struct hd_port *port, void *advert, size_t room)
{
	return 0;
}

const struct hd_transport hd_tcp_transport = {
	.name = "tcp",
	.number = HD_TNUM_TCP,
	.addressed = true,
	.open = tcp_port_open,
	.close = tcp_port_close,
	.forked = tcp_port_forked,
	.poll = tcp_port_poll,
	.say = port_say,
	.last = hd_tcp_last,
	.arm = tcp_port_arm,
	.disarm = tcp_port_disarm,
	.watchdog = port_watchdog,
	.listen = hd_tcp_listen,
	.unlisten = hd_tcp_unlisten,
	.advertise = tcp_port_advertise,
	.connect = hd_tcp_connect,
	.realm_at = hd_tcp_realm_at,
};
