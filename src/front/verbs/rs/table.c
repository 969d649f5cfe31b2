/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* The table of rsockets, by number, and who is in a call on one. */
#include "base/lock.h"
#include "front/verbs/rs/rs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

HD_LOCK_DEFINE(table_lock);
static struct rs **table; /* by number */
static int table_size;
static uint32_t forks; /* how often this process is a child of one with rsockets */

static void forked(void)
{
	forks++;
}

static void table_watch_forks(void)
{
	pthread_atfork(NULL, NULL, forked);
}

uint32_t rs_forks(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, table_watch_forks);
	return forks;
}

/* The table's lock is held. */
static struct rs *at(int fd)
{
	return fd >= 0 && fd < table_size ? table[fd] : NULL;
}

bool rs_is(int fd)
{
	bool is;

	hd_lock_take(&table_lock);
	is = at(fd) != NULL;
	hd_lock_give(&table_lock);
	return is;
}

struct rs *rs_get(int fd)
{
	struct rs *rs;

	hd_lock_take(&table_lock);
	rs = at(fd);
	if (rs)
		rs->users++;
	hd_lock_give(&table_lock);
	return rs;
}

static int table_grow(int size)
{
	struct rs **more = realloc(table, (size_t)size * sizeof(struct rs *));

	if (!more)
		return -ENOMEM;
	memset(more + table_size, 0, (size_t)(size - table_size) * sizeof(struct rs *));
	table = more;
	table_size = size;
	return 0;
}

int rs_table_add(struct rs *rs)
{
	int rc = 0;

	hd_lock_take(&table_lock);
	if (rs->fd >= table_size)
		rc = table_grow(rs->fd + 64);
	if (!rc)
		table[rs->fd] = rs;
	hd_lock_give(&table_lock);
	return rc;
}

void rs_put(struct rs *rs)
{
	int users;

	hd_lock_take(&table_lock);
	users = --rs->users;
	hd_lock_give(&table_lock);
	if (!users)
		rs->last(rs);
}

void rs_drop(struct rs *rs)
{
	hd_lock_take(&table_lock);
	if (at(rs->fd) == rs)
		table[rs->fd] = NULL;
	hd_lock_give(&table_lock);
	rs_put(rs);
}

int rs_leave(struct rs *rs, int rc)
{
	pthread_mutex_unlock(&rs->lock);
	rs_put(rs);
	if (rc >= 0)
		return rc;
	errno = -rc;
	return -1;
}

struct rs *rs_enter(int fd)
{
	struct rs *rs = rs_get(fd);

	if (!rs)
		return hv_fail(EBADF);
	if (rs->forks != forks) {
		rs_put(rs);
		return hv_fail(EIO);
	}
	pthread_mutex_lock(&rs->lock);
	if (!rs->closing)
		return rs;
	rs_leave(rs, 0);
	return hv_fail(EBADF);
}

struct rs *rs_next(int *fd)
{
	struct rs *rs = NULL;
	int end;

	do {
		hd_lock_take(&table_lock);
		end = table_size;
		hd_lock_give(&table_lock);
		if (*fd < end)
			rs = rs_enter((*fd)++);
	} while (!rs && *fd < end);
	return rs;
}
