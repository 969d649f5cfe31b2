/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Connections of rsockets: rbind, rlisten, raccept, rconnect, rshutdown, and their names. */
#include "front/verbs/rs/rs.h"

#include <errno.h>
#include <string.h>

#define RESOLVE_MS 2000

/* ---- addresses ------------------------------------------------------------------------------- */

static int connect_bind_to(struct rs *rs, const struct sockaddr *addr, socklen_t addrlen)
{
	struct sockaddr_storage name;
	int rc = rs_name_in(rs->family, addr, addrlen, &name);

	if (rc)
		return rc;
	if (rs->type == SOCK_DGRAM)
		return rs_dgram_bind(rs, (struct sockaddr *)&name);
	return rdma_bind_addr(rs->id, (struct sockaddr *)&name) ? -errno : 0;
}

HV_PUBLIC int rbind(int socket, const struct sockaddr *addr, socklen_t addrlen)
{
	struct rs *rs = rs_enter(socket);

	return rs ? rs_leave(rs, connect_bind_to(rs, addr, addrlen)) : -1;
}

HV_PUBLIC int rgetsockname(int socket, struct sockaddr *addr, socklen_t *addrlen)
{
	struct rs *rs = rs_enter(socket);

	return rs ? rs_leave(rs, rs_name_out(rs->family, &rs->id->route.addr.src_addr, addr, addrlen)) : -1;
}

/* Also when the other end has closed, as a socket in CLOSE_WAIT has one, but not after a reset. */
static bool connect_has_peer(const struct rs_conn *conn)
{
	return conn->state == RS_CONNECTED || conn->state == RS_ACCEPTED ||
	       (conn->state == RS_OVER && conn->met && !conn->broken);
}

HV_PUBLIC int rgetpeername(int socket, struct sockaddr *addr, socklen_t *addrlen)
{
	struct rs *rs = rs_enter(socket);
	const struct sockaddr *peer = NULL;
	int rc;

	if (!rs)
		return -1;
	rs_step(rs);
	if (rs->type == SOCK_DGRAM)
		peer = rs_dgram_peer(rs->dgram);
	else if (connect_has_peer(&rs->conn))
		peer = &rs->id->route.addr.dst_addr;
	rc = peer ? rs_name_out(rs->family, peer, addr, addrlen) : -ENOTCONN;
	return rs_leave(rs, rc);
}

/* ---- being called ---------------------------------------------------------------------------- */

static int listen_for(struct rs *rs, int backlog)
{
	struct sockaddr_storage any = { .ss_family = (sa_family_t)rs->family };

	if (rs->conn.state == RS_LISTENING) {
		rs_callers_limit(rs, backlog);
		return rs->conn.shut_read ? -EINVAL : 0;
	}
	if (rs->conn.state != RS_OPEN)
		return rs->type == SOCK_DGRAM ? -EOPNOTSUPP : -EINVAL;
	if (!rs->id->route.addr.src_addr.sa_family &&
	    connect_bind_to(rs, (struct sockaddr *)&any, hv_sockaddr_size((struct sockaddr *)&any)))
		return -errno;
	return rs_callers_serve(rs, backlog);
}

HV_PUBLIC int rlisten(int socket, int backlog)
{
	struct rs *rs = rs_enter(socket);

	return rs ? rs_leave(rs, listen_for(rs, backlog)) : -1;
}

/* 0, or -errno. */
static int await_caller(struct rs *rs, struct rs **caller)
{
	int rc;

	if (rs->conn.state != RS_LISTENING)
		return rs->type == SOCK_DGRAM ? -EOPNOTSUPP : -EINVAL;
	do {
		if (rs->conn.shut_read)
			return -EINVAL;
		rc = rs_callers_take(rs, caller);
	} while (rc == -EAGAIN && !(rc = rs_wait(rs, true)));
	return rc;
}

HV_PUBLIC int raccept(int socket, struct sockaddr *addr, socklen_t *addrlen)
{
	struct rs *rs = rs_enter(socket), *caller;
	int rc;

	if (!rs)
		return -1;
	rc = await_caller(rs, &caller);
	if (!rc) {
		rc = caller->fd;
		if (addr && addrlen) /* whether he is there still or not */
			(void)rs_name_out(caller->family, &caller->id->route.addr.dst_addr, addr, addrlen);
	}
	return rs_leave(rs, rc);
}

/* ---- calling --------------------------------------------------------------------------------- */

/*
 * Until it is connected, or is not: 0, -EINPROGRESS, or what was wrong. The other end may have gone
 * again by then: that is for the next call.
 */
static int await_connection(struct rs *rs)
{
	int rc = 0;

	rs_step(rs);
	while (!rc && rs->conn.state != RS_CONNECTED && rs->conn.state != RS_OVER)
		rc = rs_wait(rs, true);
	if (rc)
		return rc == -EAGAIN ? -EINPROGRESS : rc;
	if (rs->conn.met)
		return 0;
	rc = -rs_conn_err(&rs->conn);
	return rc ? rc : -ECONNABORTED;
}

/* Of datagrams: with nobody any more. */
static bool is_nobody(const struct sockaddr *addr, socklen_t addrlen)
{
	return addrlen >= sizeof(addr->sa_family) && addr->sa_family == AF_UNSPEC;
}

/*
 * Who calls again has it as from librdmacm: while it is under way it is EINPROGRESS still, and when
 * it has succeeded 0; connect(2) has EALREADY and EISCONN. rsocket(7) does not say, but
 * librspreload takes these for a refusal, and calls by a socket of the kernel's then.
 */
static int connect_to(struct rs *rs, const struct sockaddr *addr, socklen_t addrlen)
{
	struct sockaddr_storage name;
	int rc;

	if (rs->type == SOCK_DGRAM && is_nobody(addr, addrlen))
		return rs_dgram_connect(rs, addr);
	rc = rs_name_in(rs->family, addr, addrlen, &name);
	if (rc)
		return rc;
	if (rs->type == SOCK_DGRAM)
		return rs_dgram_connect(rs, (struct sockaddr *)&name);
	rs_step(rs);
	switch (rs->conn.state) {
	case RS_OPEN:
		rc = rs_options_path(&rs->opt, rs->id, name.ss_family);
		if (rc)
			return rc;
		if (rdma_resolve_addr(rs->id, NULL, (struct sockaddr *)&name, RESOLVE_MS))
			return -errno;
		rs->conn.state = RS_ADDRESSING;
		return await_connection(rs);
	case RS_ADDRESSING:
	case RS_ROUTING:
	case RS_CONNECTING:
		return rs->nonblocking ? -EINPROGRESS : await_connection(rs);
	case RS_CONNECTED:
	case RS_ACCEPTED:
		return rs->conn.deaf ? -ENOTCONN : 0;
	case RS_OVER:
		if (rs->conn.met)
			return -ENOTCONN;
		return rs->conn.err ? await_connection(rs) : -EINVAL;
	default:
		return -EINVAL;
	}
}

HV_PUBLIC int rconnect(int socket, const struct sockaddr *addr, socklen_t addrlen)
{
	struct rs *rs = rs_enter(socket);

	return rs ? rs_leave(rs, connect_to(rs, addr, addrlen)) : -1;
}

/* ---- half of it ------------------------------------------------------------------------------ */

/*
 * Nobody is let in any more, and who waits for callers is told; an end to
 * writing means nothing there.
 */
static int shut_listener(struct rs *rs, int how)
{
	if (how == SHUT_WR || rs->conn.shut_read)
		return 0;
	hv_id_turn_away(hv_id_of(rs->id));
	rs->conn.shut_read = true;
	rs_changed(rs);
	rs_callers_stop(rs);
	return 0;
}

/* A place in the queue for it is always there: RS_CONTROL. */
static int connect_shut(struct rs *rs, int how)
{
	bool news;
	int rc = 0;

	if (rs->conn.state == RS_LISTENING)
		return shut_listener(rs, how);
	rs_step(rs);
	while (rs->conn.state == RS_ACCEPTED && !rc)
		rc = rs_wait(rs, true);
	if (rc)
		return rc;
	if (rs->conn.state != RS_CONNECTED && rs->conn.state != RS_OVER &&
	    !(rs->type == SOCK_DGRAM && rs_dgram_peer(rs->dgram)))
		return -ENOTCONN;
	news = how == SHUT_RD ? !rs->conn.shut_read && rs->conn.shut_write
			      : !rs->conn.shut_write || (how == SHUT_RDWR && !rs->conn.shut_read);
	rs->conn.shut_read |= how != SHUT_WR;
	rs->conn.shut_write |= how != SHUT_RD;
	if (news && rs->conn.state == RS_CONNECTED)
		rc = rs_tell(rs, RS_FIN, "", rs->conn.shut_read);
	rs_changed(rs);
	return rc;
}

HV_PUBLIC int rshutdown(int socket, int how)
{
	struct rs *rs = rs_enter(socket);

	if (!rs)
		return -1;
	if (how != SHUT_RD && how != SHUT_WR && how != SHUT_RDWR)
		return rs_leave(rs, -EINVAL);
	return rs_leave(rs, connect_shut(rs, how));
}
