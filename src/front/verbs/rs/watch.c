/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * What has happened to an rsocket, as poll(2) says it, and sleeping for several of them, and the
 * kernel's descriptors, at once.
 */
#include "front/verbs/rs/rs.h"

#include <errno.h>

short rs_events(struct rs *rs)
{
	short ev = 0;

	switch (rs->conn.state) {
	case RS_OPEN:
		return POLLOUT | POLLHUP;
	case RS_LISTENING:
		if (rs->conn.shut_read)
			return POLLOUT | POLLHUP;
		return rs->callers.first || rs->callers.err ? POLLIN : 0;
	case RS_DATAGRAM:
		return (short)((rs->in.count || rs->conn.shut_read ? POLLIN | POLLRDNORM : 0) |
			       (rs_dgram_may_send(rs) ? POLLOUT | POLLWRNORM : 0) |
			       (rs->conn.err ? POLLERR : 0));
	default:
		break;
	}
	if (rs->in.count || rs->conn.eof || rs->conn.shut_read)
		ev |= POLLIN | POLLRDNORM;
	if (rs_may_send(rs) || rs->conn.state == RS_OVER || rs->conn.shut_write || rs->conn.deaf)
		ev |= POLLOUT | POLLWRNORM;
	if (rs->conn.eof)
		ev |= POLLRDHUP;
	if (rs->conn.err)
		ev |= POLLERR;
	if (rs->conn.broken || ((rs->conn.eof || rs->conn.shut_read) && rs->conn.shut_write))
		ev |= POLLHUP;
	return ev;
}

/* False: something has happened to one of them. */
static bool watch_lie_down(struct rs_watch *w, nfds_t *total)
{
	bool still = true;

	*total = w->kernels;
	for (size_t i = 0; i < w->count && still; i++) {
		struct rs_watched *on = &w->rs[i];
		int n;

		if (!on->rs)
			continue;
		pthread_mutex_lock(&on->rs->lock);
		n = rs_lie_down(on->rs, w->node, on->seen, &w->on[*total], &on->ring);
		pthread_mutex_unlock(&on->rs->lock);
		on->down = n > 0;
		*total += (nfds_t)n;
		still = n > 0;
	}
	return still;
}

static void watch_get_up(struct rs_watch *w)
{
	for (size_t i = 0; i < w->count; i++) {
		struct rs_watched *on = &w->rs[i];

		if (!on->rs || !on->down)
			continue;
		pthread_mutex_lock(&on->rs->lock);
		rs_get_up(on->rs, on->ring);
		pthread_mutex_unlock(&on->rs->lock);
		on->down = false;
	}
}

int rs_watch_sleep(struct rs_watch *w, int ms)
{
	int rc = 0, most = rs_wake_up_ms();
	nfds_t total;

	if (most >= 0 && (ms < 0 || ms > most))
		ms = most;
	if (watch_lie_down(w, &total)) {
		if (w->node)
			rc = hd_node_sleep(w->node, w->on, total, ms, true);
		else if (poll(w->on, total, ms) < 0)
			rc = -errno;
	}
	watch_get_up(w);
	return rc < 0 ? rc : 0;
}
