/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Birth and death of a link, and its watch. */
#include "base/clock.h"
#include "base/config.h"
#include "transport/tcp/tcp.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#define BESIDE_MIN (16u << 10)

void hd_tcp_link_heat(struct hd_tcp_link *l)
{
	l->quiet = 0;
	if (l->hot)
		return;
	l->hot = true;
	TAILQ_INSERT_TAIL(&tcp_port_of(l)->hot, l, hot_entry);
	hd_port_active(l->link.port, true);
}

static void leave_hot(struct hd_tcp_link *l)
{
	if (!l->hot)
		return;
	l->hot = false;
	TAILQ_REMOVE(&tcp_port_of(l)->hot, l, hot_entry);
	hd_port_active(l->link.port, false);
}

void hd_tcp_link_cool(struct hd_tcp_link *l)
{
	if (hd_tcp_link_watch(l, EPOLLIN) < 0)
		return;
	leave_hot(l);
	hd_tcp_tx_trim(&l->tx);
}

int hd_tcp_link_watch(struct hd_tcp_link *l, uint32_t events)
{
	int err = 0;

	l->traffic = 0;
	if (!l->watched) {
		l->watch.events = events;
		err = hd_watch_add(l->link.node, &l->watch);
		l->watched = !err;
	} else if (l->watch.events != events) {
		err = hd_watch_events(l->link.node, &l->watch, events);
	}
	return err;
}

void hd_tcp_link_unwatch(struct hd_tcp_link *l)
{
	if (l->watched)
		hd_watch_remove(l->link.node, &l->watch);
	l->watched = false;
}

void hd_tcp_link_quiet(struct hd_tcp_link *l)
{
	hd_tcp_caller_leave(l);
	leave_hot(l);
	if (l->waiting) {
		TAILQ_REMOVE(&tcp_port_of(l)->waiting, l, waiting_entry);
		hd_node_gathers(l->link.node, -1);
	}
	l->waiting = false;
	hd_tcp_link_unwatch(l);
	hd_timer_stop(l->link.node, &l->timer);
}

void hd_tcp_link_down(struct hd_tcp_link *l, int err, const char *why)
{
	l->state = HD_TCP_DEAD;
	hd_tcp_link_quiet(l);
	hd_link_down(&l->link, err, why);
}

static void link_event(struct hd_watch *watch, uint32_t events)
{
	struct hd_tcp_link *l = (struct hd_tcp_link *)((char *)watch - offsetof(struct hd_tcp_link, watch));

	if (l->link.down)
		hd_tcp_link_quiet(l); /* or it would be reported for ever */
	else if (l->state == HD_TCP_CONNECTING)
		hd_tcp_connected(l);
	else if (l->state == HD_TCP_SHAKING)
		hd_seal_shake(l);
	else
		hd_tcp_link_heat(l);
}

void hd_tcp_link_ready(struct hd_tcp_link *l)
{
	int err = hd_tcp_link_watch(l, EPOLLIN);

	if (err < 0) {
		hd_tcp_link_down(l, err, "its socket cannot be watched");
		return;
	}
	hd_timer_stop(l->link.node, &l->timer);
	l->state = HD_TCP_UP;
	l->rx.more = l->link.is_sealed = l->seal != NULL;
	hd_tcp_link_heat(l);
	if (l->calls)
		hd_link_up(&l->link);
	else
		hd_link_accepted(&l->link, l->at);
}

struct hd_tcp_link *hd_tcp_link_new(struct hd_tcp_port *port, int fd, enum hd_tcp_state state,
				    const struct sockaddr *where)
{
	struct hd_tcp_link *l = calloc(1, sizeof(*l));
	uint64_t eager = hd_config_size(HD_SET_EAGER_TCP);
	int err;

	if (!l)
		return NULL;
	l->state = state;
	l->watch.fd = fd;
	l->watch.events = state == HD_TCP_CONNECTING ? EPOLLOUT : EPOLLIN;
	l->watch.fn = link_event;
	err = hd_watch_add(port->port.node, &l->watch);
	if (err < 0) {
		free(l);
		errno = -err;
		return NULL;
	}
	l->watched = true;
	TAILQ_INSERT_TAIL(&port->links, l, entry);
	hd_link_init(&l->link, &port->port, &hd_tcp_link_ops);
	memcpy(&l->link.where, where, hd_sockaddr_size(where));
	l->link.eager_max = (uint32_t)(eager < HD_TCP_LEN_MAX ? eager : HD_TCP_LEN_MAX);
	l->link.beside_min = BESIDE_MIN;
	l->link.send_max = l->link.eager_max > HD_FRAME_MAX ? l->link.eager_max : HD_FRAME_MAX;
	return l;
}

void hd_tcp_link_free(struct hd_tcp_link *l)
{
	hd_tcp_link_quiet(l);
	if (l->seal)
		tcp_port_of(l)->seals->end(l->seal);
	close(l->watch.fd);
	hd_tcp_tx_close(&l->tx);
	free(l);
}

static void tcp_link_close(struct hd_link *link)
{
	struct hd_tcp_link *l = tcp_link(link);
	bool stays = hd_tcp_part(l);

	TAILQ_REMOVE(&tcp_port_of(l)->links, l, entry);
	hd_tcp_link_quiet(l);
	if (stays)
		TAILQ_INSERT_TAIL(&tcp_port_of(l)->parting, l, entry);
	else
		hd_tcp_link_free(l);
}

/*
 * It leaves with the next frame, or alone, soon (hd_tcp_tx_grant); at once where the next turn may
 * be a sleeper's, who knows nothing of it.
 */
static void tcp_link_grant(struct hd_link *link, uint32_t limit)
{
	struct hd_tcp_link *l = tcp_link(link);

	l->tx.grant = limit;
	if (l->state != HD_TCP_UP || link->down)
		return;
	hd_tcp_link_heat(l);
	if (tcp_port_of(l)->armed)
		hd_tcp_tx_grant(l, true);
}

static uint32_t tcp_link_granted(struct hd_link *link)
{
	return tcp_link(link)->rx.grant;
}

/* From here on reading finds an end behind what has come, as if the other end had closed. */
static void tcp_link_orphan(struct hd_link *link)
{
	struct hd_tcp_link *l = tcp_link(link);

	shutdown(l->watch.fd, SHUT_RD);
	if (l->state != HD_TCP_LAST)
		hd_tcp_link_heat(l);
}

/*
 * What the other host's kernel has to acknowledge, its program need not be awake for: data that has
 * left, or probes for a connection where nothing moves, of which one may be on its way.
 */
static uint32_t link_silence(struct hd_link *link, bool more)
{
	struct hd_tcp_link *l = tcp_link(link);
	uint64_t now = hd_now_ns();
	uint32_t heard_ms;

	if (l->state != HD_TCP_UP)
		return 0;
	if (l->probed != more)
		hd_tcp_sock_probe(l->watch.fd, more);
	if (!l->probed || !hd_tcp_sock_owed(l->watch.fd, &heard_ms))
		l->settled_at = now;
	l->probed = more;
	if (!more || l->settled_at == now)
		return 0;
	now = (now - l->settled_at) / HD_NS_PER_MS;
	return now < heard_ms ? (uint32_t)now : heard_ms;
}

const struct hd_link_ops hd_tcp_link_ops = {
	.send = hd_tcp_send,
	.sendv = hd_tcp_sendv,
	.put = hd_tcp_put,
	.unput = hd_tcp_unput,
	.grant = tcp_link_grant,
	.granted = tcp_link_granted,
	HD_LINK_NO_OFFER, /* memory of another host cannot be fetched */
	HD_LINK_NO_DIRECT,
	.silence = link_silence,
	.realm = hd_tcp_realm,
	.holder = hd_tcp_holder,
	.orphan = tcp_link_orphan,
	.close = tcp_link_close,
};
