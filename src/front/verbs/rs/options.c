/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Options of rsockets: rsetsockopt, rgetsockopt, rfcntl. */
#include "front/verbs/rs/dgram.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <string.h>

/* ---- options that are a number --------------------------------------------------------------- */

enum {
	EARLY = 1,  /* before it is connected */
	SWITCH = 2, /* on, whatever it is that is not 0 */
	COUNT = 4,  /* 0 is none */
};

static const struct option {
	int level, name;
	size_t at; /* in struct rs_options */
	int most, kind;
} options[] = {
#define OPTION(level, name, field, ...) \
	{ \
		level, name, offsetof(struct rs_options, field), __VA_ARGS__ \
	}
	OPTION(SOL_SOCKET, SO_SNDBUF, sndbuf, INT_MAX),
	OPTION(SOL_SOCKET, SO_RCVBUF, rcvbuf, INT_MAX),
	OPTION(SOL_SOCKET, SO_REUSEADDR, reuse, 1, SWITCH),
	OPTION(SOL_SOCKET, SO_KEEPALIVE, keepalive, 1, SWITCH),
	OPTION(SOL_SOCKET, SO_OOBINLINE, oob_inline, 1, SWITCH),
	OPTION(SOL_SOCKET, SO_BROADCAST, broadcast, 1, SWITCH),
	OPTION(IPPROTO_TCP, TCP_NODELAY, nodelay, 1, SWITCH),
	OPTION(IPPROTO_TCP, TCP_KEEPIDLE, keep_idle, INT_MAX, COUNT),
	OPTION(IPPROTO_TCP, TCP_KEEPCNT, keep_count, INT_MAX, COUNT),
	OPTION(IPPROTO_TCP, TCP_KEEPINTVL, keep_interval, INT_MAX, COUNT),
	OPTION(IPPROTO_TCP, TCP_MAXSEG, maxseg, RS_BLOCK),
	OPTION(IPPROTO_IPV6, IPV6_V6ONLY, v6only, 1, SWITCH | EARLY),
	OPTION(SOL_RDMA, RDMA_SQSIZE, sq_size, HV_MAX_WR, EARLY),
	OPTION(SOL_RDMA, RDMA_RQSIZE, rq_size, HV_MAX_WR, EARLY),
	OPTION(SOL_RDMA, RDMA_INLINE, inline_size, INT_MAX, EARLY),
	OPTION(SOL_RDMA, RDMA_IOMAPSIZE, iomaps, RS_MOST_MAPS, EARLY),
#undef OPTION
};

static const struct option *option_of(const struct rs *rs, int level, int name)
{
	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
		const struct option *o = &options[i];

		if (o->level != level || o->name != name)
			continue;
		if ((level == IPPROTO_TCP && rs->type != SOCK_STREAM) ||
		    (level == IPPROTO_IPV6 && rs->family != AF_INET6))
			break;
		return o;
	}
	return NULL;
}

static int *place_of(struct rs_options *opt, const struct option *o)
{
	return (int *)(void *)((char *)opt + o->at);
}

/* Those that the id has to know. */
static int apply(struct rs *rs, const struct option *o, int value)
{
	int option;

	if (o->level == SOL_SOCKET && o->name == SO_REUSEADDR && rs->type == SOCK_DGRAM) {
		/* at any time, as of UDP: its service listens from when it is bound */
		hv_id_of(rs->id)->reuse = value;
		return 0;
	}
	if (o->level == SOL_SOCKET && o->name == SO_REUSEADDR)
		option = RDMA_OPTION_ID_REUSEADDR;
	else if (o->level == IPPROTO_IPV6)
		option = RDMA_OPTION_ID_AFONLY;
	else
		return 0;
	if (!rdma_set_option(rs->id, RDMA_OPTION_ID, option, &value, sizeof(value)))
		return 0;
	/*
	 * socket(7) has SO_REUSEADDR at any time, though it changes nothing of what is
	 * bound or listens already
	 */
	return option == RDMA_OPTION_ID_REUSEADDR && errno == EINVAL ? 0 : -errno;
}

/* It has not been connected yet. */
static bool is_early(const struct rs_conn *conn)
{
	return conn->state == RS_OPEN || conn->state == RS_LISTENING || conn->state == RS_DATAGRAM;
}

static int set_number(struct rs *rs, const struct option *o, const void *optval, socklen_t optlen)
{
	int value, rc;

	if (optlen < sizeof(value))
		return -EINVAL;
	memcpy(&value, optval, sizeof(value));
	if (o->kind & SWITCH)
		value = value != 0;
	if (value < (o->kind & COUNT ? 1 : 0))
		return -EINVAL;
	if (o->kind & EARLY && !is_early(&rs->conn))
		return -EINVAL;
	if (value > o->most)
		value = o->most;
	rc = apply(rs, o, value);
	if (!rc)
		*place_of(&rs->opt, o) = value;
	return rc;
}

/* ---- the kind of traffic: ip(7), ipv6(7) ----------------------------------------------------- */

/* The lowest two bits are a stream's own. */
static int of_traffic(int type, int value)
{
	return value & (type == SOCK_STREAM ? 0xfc : 0xff);
}

int rs_options_path(const struct rs_options *opt, struct rdma_cm_id *id, int family)
{
	uint8_t byte = (uint8_t)(family == AF_INET6 ? opt->tclass : opt->tos);

	return rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &byte, 1) ? -errno : 0;
}

/* An int, or the byte that it is; more of an int than a byte is left out. */
static int set_tos(struct rs *rs, const void *optval, socklen_t optlen)
{
	int value = 0;

	if (optlen >= sizeof(value))
		memcpy(&value, optval, sizeof(value));
	else if (optlen)
		value = *(const uint8_t *)optval;
	rs->opt.tos = of_traffic(rs->type, value);
	return rs_options_path(&rs->opt, rs->id, rs->family);
}

/* -1: what it was at first. */
static int set_tclass(struct rs *rs, const void *optval, socklen_t optlen)
{
	int value;

	if (optlen < sizeof(value))
		return -EINVAL;
	memcpy(&value, optval, sizeof(value));
	if (value < -1 || value > UINT8_MAX)
		return -EINVAL;
	rs->opt.tclass = value < 0 ? 0 : of_traffic(rs->type, value);
	return rs_options_path(&rs->opt, rs->id, rs->family);
}

static bool is_tos(int family, int level, int name)
{
	return level == IPPROTO_IP && name == IP_TOS && (family == AF_INET || family == AF_INET6);
}

static bool is_tclass(int family, int level, int name)
{
	return level == IPPROTO_IPV6 && name == IPV6_TCLASS && family == AF_INET6;
}

/* ---- the others ------------------------------------------------------------------------------ */

static bool is_route(int type, int level, int name)
{
	return level == SOL_RDMA && name == RDMA_ROUTE && type == SOCK_STREAM;
}

static int set_option(struct rs *rs, int level, int name, const void *optval, socklen_t optlen)
{
	const struct option *o = option_of(rs, level, name);

	if (!optval)
		return -EFAULT;
	if (o)
		return set_number(rs, o, optval, optlen);
	if (is_tos(rs->family, level, name))
		return set_tos(rs, optval, optlen);
	if (is_tclass(rs->family, level, name))
		return set_tclass(rs, optval, optlen);
	if (is_route(rs->type, level, name))
		return is_early(&rs->conn) ? rs_route_set(&rs->route, optval, optlen) : -EINVAL;
	if (level != SOL_SOCKET || name != SO_LINGER)
		return -ENOPROTOOPT;
	if (optlen < sizeof(rs->opt.linger))
		return -EINVAL;
	memcpy(&rs->opt.linger, optval, sizeof(rs->opt.linger));
	return 0;
}

HV_PUBLIC int rsetsockopt(int socket, int level, int optname, const void *optval, socklen_t optlen)
{
	struct rs *rs = rs_enter(socket);

	return rs ? rs_leave(rs, set_option(rs, level, optname, optval, optlen)) : -1;
}

static int options_put(const void *from, size_t size, void *optval, socklen_t *optlen)
{
	memcpy(optval, from, size < *optlen ? size : *optlen);
	if (size < *optlen)
		*optlen = (socklen_t)size;
	return 0;
}

/* Whoever has room for less than an int gets the byte. */
static int put_tos(const struct rs_options *opt, void *optval, socklen_t *optlen)
{
	const uint8_t byte = (uint8_t)opt->tos;

	return *optlen < sizeof(int) ? options_put(&byte, 1, optval, optlen)
				     : options_put(&opt->tos, sizeof(int), optval, optlen);
}

static int pending_error(struct rs *rs)
{
	rs_step(rs);
	return rs_conn_err(&rs->conn);
}

/* Those that can only be asked for. 0, -ENOPROTOOPT. */
static int get_fact(struct rs *rs, int level, int name, int *value)
{
	if (level != SOL_SOCKET)
		return -ENOPROTOOPT;
	switch (name) {
	case SO_ERROR:
		*value = pending_error(rs);
		return 0;
	case SO_TYPE:
		*value = rs->type;
		return 0;
	case SO_DOMAIN:
		*value = rs->family;
		return 0;
	case SO_PROTOCOL:
		*value = rs->type == SOCK_STREAM ? IPPROTO_TCP : IPPROTO_UDP;
		return 0;
	case SO_ACCEPTCONN:
		*value = rs->conn.state == RS_LISTENING && !rs->conn.shut_read;
		return 0;
	default:
		return -ENOPROTOOPT;
	}
}

static uint8_t tcp_state(const struct rs_conn *conn)
{
	switch (conn->state) {
	case RS_LISTENING:
		return conn->shut_read ? TCP_CLOSE : TCP_LISTEN;
	case RS_CONNECTING:
		return TCP_SYN_SENT;
	case RS_ACCEPTED:
		return TCP_SYN_RECV;
	case RS_CONNECTED:
		return conn->eof ? TCP_CLOSE_WAIT : TCP_ESTABLISHED;
	default:
		return TCP_CLOSE;
	}
}

/*
 * What programs print of a connection: nothing is ever sent again, and what may be under way is
 * the other end's receives.
 */
static int get_tcp_info(struct rs *rs, void *optval, socklen_t *optlen)
{
	struct tcp_info info = { .tcpi_state = tcp_state(&rs->conn) };

	if (rs->type != SOCK_STREAM)
		return -ENOPROTOOPT;
	info.tcpi_rcv_mss = info.tcpi_advmss = info.tcpi_snd_mss = RS_BLOCK;
	if (rs->conn.state == RS_CONNECTED) {
		info.tcpi_snd_mss = rs->out.peer_block;
		info.tcpi_unacked = rs->out.sent - rs->out.done;
		info.tcpi_snd_cwnd = rs->out.credit + info.tcpi_unacked;
		info.tcpi_rcv_space = rs->in.blocks * RS_BLOCK;
	}
	return options_put(&info, sizeof(info), optval, optlen);
}

static int get_option(struct rs *rs, int level, int name, void *optval, socklen_t *optlen)
{
	const struct option *o = option_of(rs, level, name);
	int value = 0, rc;

	if (!optval || !optlen)
		return -EFAULT;
	if (level == SOL_SOCKET && name == SO_LINGER)
		return options_put(&rs->opt.linger, sizeof(rs->opt.linger), optval, optlen);
	if (o)
		return options_put(place_of(&rs->opt, o), sizeof(int), optval, optlen);
	if (is_tos(rs->family, level, name))
		return put_tos(&rs->opt, optval, optlen);
	if (is_tclass(rs->family, level, name))
		return options_put(&rs->opt.tclass, sizeof(int), optval, optlen);
	if (is_route(rs->type, level, name))
		return rs_route_get(&rs->route, rs->id, optval, optlen);
	if (level == IPPROTO_TCP && name == TCP_INFO)
		return get_tcp_info(rs, optval, optlen);
	rc = get_fact(rs, level, name, &value);
	return rc ? rc : options_put(&value, sizeof(value), optval, optlen);
}

HV_PUBLIC int rgetsockopt(int socket, int level, int optname, void *optval, socklen_t *optlen)
{
	struct rs *rs = rs_enter(socket);

	return rs ? rs_leave(rs, get_option(rs, level, optname, optval, optlen)) : -1;
}

/* ---- rfcntl ---------------------------------------------------------------------------------- */

static int options_control(struct rs *rs, int cmd, int arg)
{
	switch (cmd) {
	case F_GETFL:
		return O_RDWR | (rs->nonblocking ? O_NONBLOCK : 0);
	case F_SETFL:
		rs->nonblocking = arg & O_NONBLOCK;
		return 0;
	case F_GETFD:
		return rs->cloexec ? FD_CLOEXEC : 0;
	case F_SETFD:
		rs->cloexec = arg & FD_CLOEXEC;
		return 0;
	default:
		return -EINVAL;
	}
}

/* A set's number is a descriptor of the kernel's that is what it seems. */
HV_PUBLIC int rfcntl(int socket, int cmd, ...)
{
	struct rs *rs;
	int arg;
	va_list ap;

	va_start(ap, cmd);
	arg = cmd == F_SETFL || cmd == F_SETFD ? va_arg(ap, int) : 0;
	va_end(ap);
	if (rs_set_is(socket))
		return fcntl(socket, cmd, arg);
	rs = rs_enter(socket);
	if (!rs)
		return -1;
	return rs_leave(rs, options_control(rs, cmd, arg));
}
