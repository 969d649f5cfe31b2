/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Sleeping for an rsocket: in poll(2) on the descriptor of its completion channel, that of its id's
 * events, and rs.fd. One thread may take in what another sleeps for, and the descriptor that told
 * of it with it; so whoever changes something while others sleep writes rs.fd. That stays readable
 * until the last of those who slept then has got up. Who lies down later looks first, and is not
 * counted; should something have happened since, it is rung for once more by then.
 */
#include "base/clock.h"
#include "front/verbs/ops.h"
#include "front/verbs/rs/rs.h"

#include <errno.h>

struct hd_node *rs_node(const struct rs *rs)
{
	const struct hv_id *id = rs->id ? hv_id_of(rs->id) : NULL;

	if (rs->v.cq)
		return hv_context_of(rs->v.cq->context)->node;
	if (!id || rs->conn.state == RS_OPEN)
		return NULL;
	return id->ctx ? id->ctx->node : id->listener ? id->listener->ctx->node : NULL;
}

/* What told of completions has told. */
static void forget_notices(struct rs_verbs *v)
{
	struct hd_channel_item *item;

	while (!hd_channel_take(hv_channel_of(v->channel)->channel, &item)) {
		hv_ibv_ack_cq_events(v->cq, 1);
		v->armed = false;
	}
}

/* The next completion makes the channel's descriptor readable. */
static void wait_arm(struct rs_verbs *v, bool tend)
{
	struct hv_context *ctx = hv_context_of(v->cq->context);

	forget_notices(v);
	if ((v->armed && v->tended == tend) || !hv_enter(ctx))
		return;
	hd_channel_tend(hv_channel_of(v->channel)->channel, tend);
	hd_cq_notify(hv_cq_of(v->cq)->cq, false);
	hv_leave(ctx);
	v->armed = true;
	v->tended = tend;
}

int rs_lie_down(struct rs *rs, struct hd_node *node, uint32_t seen, struct pollfd *p, uint32_t *heard)
{
	int n = 0;

	if (rs->v.cq)
		wait_arm(&rs->v, node == rs_node(rs));
	rs_step(rs);
	if (rs->wait.changes != seen || rs->closed)
		return 0;
	p[n++] = (struct pollfd){ .fd = rs->fd, .events = POLLIN };
	/* whose events are for the thread that lets callers in */
	if (rs->ch && rs->conn.state != RS_LISTENING)
		p[n++] = (struct pollfd){ .fd = rs->ch->fd, .events = POLLIN };
	if (rs->v.channel)
		p[n++] = (struct pollfd){ .fd = rs->v.channel->fd, .events = POLLIN };
	rs->wait.sleepers++;
	*heard = rs->wait.rings;
	return n;
}

/* ---- one rsocket ----------------------------------------------------------------------------- */

static int sleep_for(struct rs *rs, int ms)
{
	struct pollfd p[RS_WATCHED + 1];
	struct hd_node *node = rs_node(rs);
	uint32_t heard;
	int n, rc;

	n = rs_lie_down(rs, node, rs->wait.changes, p, &heard);
	if (!n)
		return 0;
	pthread_mutex_unlock(&rs->lock);
	if (node) {
		rc = hd_node_sleep(node, p, (unsigned long)n, ms, false);
	} else {
		rc = poll(p, (nfds_t)n, ms);
		if (rc < 0)
			rc = -errno;
	}
	pthread_mutex_lock(&rs->lock);
	rs_get_up(rs, heard);
	rs_step(rs);
	return rc > 0 ? 0 : rc == 0 ? -ETIMEDOUT : rc == -ENOTRECOVERABLE ? -EIO : rc;
}

void rs_sleep_aside(struct rs *rs, bool calls)
{
	struct pollfd p[RS_WATCHED + 1];
	uint32_t heard;
	int n = rs_lie_down(rs, NULL, rs->wait.changes, p, &heard);

	if (!n)
		return;
	if (calls)
		p[n++] = (struct pollfd){ .fd = rs->ch->fd, .events = POLLIN };
	pthread_mutex_unlock(&rs->lock);
	(void)poll(p, (nfds_t)n, -1);
	pthread_mutex_lock(&rs->lock);
	rs_get_up(rs, heard);
}

/*
 * Look for a while before it sleeps, since what it waits for often comes at once. Others may
 * have the lock in between.
 */
static bool wait_look(struct rs *rs, struct hd_busy_polling *looking)
{
	uint32_t before = rs->wait.changes;

	for (;;) {
		rs_step(rs);
		if (rs->wait.changes != before || rs->closed)
			return true;
		if (!rs_look_on(&rs->wait, looking))
			return false;
		pthread_mutex_unlock(&rs->lock);
		hd_busy_poll_pause(looking);
		pthread_mutex_lock(&rs->lock);
	}
}

int rs_wait_for(struct rs *rs, int ms)
{
	struct hd_busy_polling looking = { 0 };
	int rc = 0;

	if (!wait_look(rs, &looking))
		rc = ms ? sleep_for(rs, ms) : -ETIMEDOUT;
	hd_busy_polled(&rs->wait.look, &looking);
	return rs->closed ? -EBADF : rc;
}

int rs_wait(struct rs *rs, bool may_wait)
{
	if (!may_wait || rs->nonblocking)
		return -EAGAIN;
	return rs_wait_for(rs, -1);
}
