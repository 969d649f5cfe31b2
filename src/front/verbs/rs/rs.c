/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* The life of rsockets: rsocket, rclose. */
#include "front/verbs/rs/rs.h"

#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* ---- life ------------------------------------------------------------------------------------------------------------------- */

/* Of a parent's nothing is touched but the descriptor, which is the child's as well. */
static void rs_free(struct rs *rs)
{
	struct sockaddr_storage name = { 0 };

	if (rs->fd >= 0)
		close(rs->fd);
	if (rs->forks != rs_forks())
		return;
	rs_dgram_close(rs);
	rs_unequip(rs);
	rs_route_drop(rs);
	free(rs->dgram);
	if (rs->id && rs->type == SOCK_DGRAM && rs->opt.reuse)
		name = rs->id->route.addr.src_storage;
	if (rs->id)
		rdma_destroy_id(rs->id);
	if (rs->ch)
		rdma_destroy_event_channel(rs->ch);
	pthread_mutex_destroy(&rs->lock);
	free(rs);
	if (name.ss_family)
		rs_dgram_left((struct sockaddr *)&name);
}

static int id_open(struct rs *rs, struct rdma_cm_id *id)
{
	rs->ch = rdma_create_event_channel();
	if (!rs->ch)
		return -errno;
	fcntl(rs->ch->fd, F_SETFL, fcntl(rs->ch->fd, F_GETFL) | O_NONBLOCK);
	if (!id)
		return rdma_create_id(rs->ch, &rs->id, rs, rs->type == SOCK_DGRAM ? RDMA_PS_UDP : RDMA_PS_TCP)
			       ? -errno
			       : 0;
	return rdma_migrate_id(id, rs->ch) ? -errno : 0;
}

static int rs_make(struct rs *rs, struct rdma_cm_id *id)
{
	int rc;

	rs->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (rs->fd < 0)
		return -errno;
	rc = id_open(rs, id);
	if (!rc && rs->type == SOCK_DGRAM)
		rc = rs_dgram_open(rs);
	return rc ? rc : rs_table_add(rs);
}

struct rs *rs_open(int family, int type, struct rdma_cm_id *id)
{
	struct rs *rs = calloc(1, sizeof(*rs));
	int rc;

	if (!rs)
		return hv_fail(ENOMEM);
	pthread_mutex_init(&rs->lock, NULL);
	rs->users = 1;
	rs->forks = rs_forks();
	rs->last = rs_free;
	rs->family = family;
	rs->type = type;
	rs->id = id;
	rs_defaults(&rs->opt);
	rc = rs_make(rs, id);
	if (!rc)
		return rs;
	rs_free(rs);
	return hv_fail(rc);
}

/* ---- rsocket, rclose ------------------------------------------------------------------------------------------------------- */

HV_PUBLIC int rsocket(int domain, int type, int protocol)
{
	int kind = type & ~(SOCK_NONBLOCK | SOCK_CLOEXEC);
	struct rs *rs;

	if (domain != AF_INET && domain != AF_INET6 && domain != AF_IB)
		return hv_cm_ret(-EAFNOSUPPORT);
	if (kind != SOCK_STREAM && (kind != SOCK_DGRAM || domain == AF_IB))
		return hv_cm_ret(-EPROTONOSUPPORT);
	if (protocol && protocol != (kind == SOCK_STREAM ? IPPROTO_TCP : IPPROTO_UDP))
		return hv_cm_ret(-EPROTONOSUPPORT);
	rs = rs_open(domain, kind, NULL);
	if (!rs)
		return -1;
	rs->nonblocking = type & SOCK_NONBLOCK;
	rs->cloexec = type & SOCK_CLOEXEC;
	return rs->fd;
}

/* A parent's: the child has it no longer; it stays what it is. */
static int close_inherited(int fd)
{
	struct rs *rs = rs_get(fd);

	if (!rs)
		return hv_cm_ret(-EBADF);
	rs_drop(rs);
	rs_put(rs);
	return 0;
}

static int rs_await(struct rs *rs, uint64_t due)
{
	int rc = rs_wait_for(rs, hd_left_ms(due));

	return rc == -EINTR ? 0 : rc;
}

/* Until what has been written is at the other end, or it is too late for that. One that has called has to hear of its success first. */
static void say_goodbye(struct rs *rs)
{
	const struct linger *linger = &rs->opt.linger;
	int s = (unsigned)linger->l_linger < INT_MAX / 1000 ? linger->l_linger : INT_MAX / 1000;
	uint64_t due = hd_deadline_ns(linger->l_onoff ? s * 1000 : RS_CLOSE_MS);
	int rc = 0;

	rs_step(rs);
	if (linger->l_onoff && !linger->l_linger)
		return;
	while (!rc && rs->state == RS_ACCEPTED)
		rc = rs_await(rs, due);
	if (!rc && rs->state == RS_CONNECTED && !rs->end.shut_write)
		rc = rs_tell(rs, RS_FIN, NULL, 0);
	rs->end.shut_write = true;
	while (!rc && rs->state == RS_CONNECTED && rs->out.done != rs->out.sent)
		rc = rs_await(rs, due);
}

HV_PUBLIC int rclose(int socket)
{
	struct rs *rs = rs_enter(socket);

	if (!rs)
		return errno == EIO ? close_inherited(socket) : -1;
	if (rs->closing) /* another thread has it under way, and may have given up the lock in it */
		return rs_leave(rs, -EBADF);
	rs->closing = true;
	say_goodbye(rs);
	rs->closed = true;
	if (rs->state == RS_CONNECTED || rs->state == RS_ACCEPTED)
		rdma_disconnect(rs->id);
	rs_changed(rs);
	pthread_mutex_unlock(&rs->lock);
	rs_drop(rs);
	rs_put(rs);
	return 0;
}
