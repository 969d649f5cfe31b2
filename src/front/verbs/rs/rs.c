/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* The life of rsockets, and how programs come to one: rsocket. */
#include "front/verbs/rs/rs.h"

#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/select.h>
#include <unistd.h>

#define ABOVE 256

/* ---- life ------------------------------------------------------------------------------------ */

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
	rs_route_drop(&rs->route);
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

/*
 * Its number, well above the lowest that is free, so above one that the program has just opened for
 * it, whatever other threads have closed since: librspreload 44 looks after select(2) for the
 * program's from 0 on, and takes the first that it does not know to be another's, so ours, if that
 * is lower. But one for a set of select, while there are such.
 */
static int make_descriptor(void)
{
	int fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC), high;

	if (fd < 0)
		return -errno;
	high = fcntl(fd, F_DUPFD_CLOEXEC, fd + ABOVE);
	if (high < 0)
		return fd;
	close(high < FD_SETSIZE ? fd : high);
	return high < FD_SETSIZE ? high : fd;
}

int rs_number(struct rs *rs)
{
	int fd = make_descriptor(), rc;

	if (fd < 0)
		return fd;
	rs->fd = fd;
	rc = rs_table_add(rs);
	if (rc) {
		close(rs->fd);
		rs->fd = -1;
	}
	return rc;
}

static int rs_make(struct rs *rs, struct rdma_cm_id *id)
{
	int rc, fd;

	if (id)
		return id_open(rs, id);
	fd = make_descriptor();
	if (fd < 0)
		return fd;
	rs->fd = fd;
	rc = id_open(rs, NULL);
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
	rs->fd = -1;
	rs_defaults(&rs->opt);
	rc = rs_make(rs, id);
	if (!rc)
		return rs;
	rs_free(rs);
	return hv_fail(rc);
}

/* ---- rsocket --------------------------------------------------------------------------------- */

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
