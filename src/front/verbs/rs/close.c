/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* The end of rsockets: rclose. */
#include "front/verbs/rs/rs.h"

#include "base/clock.h"

#include <errno.h>
#include <limits.h>

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

/*
 * Until what has been written is at the other end, or it is too late for that. One that has called
 * has to hear of its success first.
 */
static void say_goodbye(struct rs *rs)
{
	const struct linger *linger = &rs->opt.linger;
	int s = (unsigned)linger->l_linger < INT_MAX / 1000 ? linger->l_linger : INT_MAX / 1000;
	uint64_t due = hd_deadline_ns(linger->l_onoff ? s * 1000 : RS_CLOSE_MS);
	int rc = 0;

	rs_step(rs);
	if (linger->l_onoff && !linger->l_linger)
		return;
	while (!rc && rs->conn.state == RS_ACCEPTED)
		rc = rs_await(rs, due);
	if (!rc && rs->conn.state == RS_CONNECTED && !(rs->conn.shut_write && rs->conn.shut_read))
		rc = rs_tell(rs, RS_FIN, "", 1);
	rs->conn.shut_write = true;
	while (!rc && rs->conn.state == RS_CONNECTED && rs->out.done != rs->out.sent)
		rc = rs_await(rs, due);
}

HV_PUBLIC int rclose(int socket)
{
	bool set = rs_set_close(socket), member;
	struct rs *rs = set ? NULL : rs_enter(socket);

	if (set)
		return 0;
	if (!rs)
		return errno == EIO ? close_inherited(socket) : -1;
	rs->closing = true;
	say_goodbye(rs);
	rs->closed = true;
	if (rs->conn.state == RS_CONNECTED || rs->conn.state == RS_ACCEPTED)
		rdma_disconnect(rs->id);
	rs_changed(rs);
	rs_callers_stop(rs);
	member = rs->sets;
	pthread_mutex_unlock(&rs->lock);
	if (member)
		rs_sets_leave(rs);
	rs_drop(rs);
	rs_put(rs);
	return 0;
}
