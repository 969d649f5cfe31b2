/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* The handshake of a connection that a key seals: seal.h. */
#include "transport/tcp/seal.h"

#include "base/clock.h"
#include "base/config.h"
#include "base/macros.h"
#include "transport/tcp/tcp.h"

#include <sys/epoll.h>

static_assert(HD_SEAL_ID == sizeof(struct hd_node_id), "a caller says which node it is");

int hd_seal_open(struct hd_tcp_port *port)
{
	return hd_sealer_open((const uint8_t *)hd_node_id(port->port.node), &port->seals, &port->sealer);
}

void hd_seal_close(struct hd_tcp_port *port)
{
	if (port->seals)
		port->seals->close(port->sealer);
	port->seals = NULL;
}

/* ---- the handshake ---- */

static void shake_expired(struct hd_timer *timer)
{
	struct hd_tcp_link *l = hd_container(timer, struct hd_tcp_link, timer);

	hd_tcp_link_down(
		l, -ETIMEDOUT,
		"the other end does not show that it has our key within HEDDLE_CONNECT_TIMEOUT: give both ends the same HEDDLE_KEY_FILE");
}

int hd_seal_begin(struct hd_tcp_link *l, bool calls)
{
	struct hd_tcp_port *port = tcp_port_of(l);

	l->seal = port->seals->begin(port->sealer, l->watch.fd, calls);
	if (!l->seal)
		return -ENOMEM;
	l->state = HD_TCP_SHAKING;
	l->calls = calls;
	l->timer.fn = shake_expired;
	hd_timer_set(l->link.node, &l->timer, hd_config_ms(HD_SET_CONNECT_TIMEOUT) * HD_NS_PER_MS);
	hd_seal_shake(l);
	return 0;
}

static const char *shake_failed(int err)
{
	switch (err) {
	case -EACCES:
		return "the other end has not our key: give both ends the same HEDDLE_KEY_FILE";
	case -ECONNRESET:
		return "the other end hangs up on us: perhaps it has no HEDDLE_KEY_FILE, or another one";
	default:
		return "the connection cannot be sealed";
	}
}

/*
 * Somebody may have sent us back what we had said (RFC 9257, 4.1). A node that calls itself is
 * fine, but its words come from an address of its own.
 */
static bool is_echo(const struct hd_tcp_link *l)
{
	return !l->calls && tcp_port_of((struct hd_tcp_link *)l)->seals->heard_self(l->seal) &&
	       !l->link.is_local;
}

void hd_seal_shake(struct hd_tcp_link *l)
{
	bool writes;
	int err = tcp_port_of(l)->seals->shake(l->seal, &writes);

	if (err == -EAGAIN)
		err = hd_tcp_link_watch(l, writes ? EPOLLIN | EPOLLOUT : EPOLLIN);
	else if (!err && is_echo(l))
		err = -EACCES;
	else if (!err)
		return hd_tcp_link_ready(l);
	if (err < 0)
		hd_tcp_link_down(l, err == -EACCES && !l->calls ? -EACCES : err, shake_failed(err));
}
