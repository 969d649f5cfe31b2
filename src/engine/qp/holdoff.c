/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * The other end has gone, and something of ours was under way: hd_qp_attr.holdoff_ms. A card learns
 * of that by hearing nothing for as long as it tries, and the receiving end not at all, while we
 * are told at once. Programs that have all they need leave, with requests of the other end still
 * under way; that one is about to leave as well, and shall not find an error beside the last
 * answers that it waits for.
 *
 * Requests stay in their WQEs: the first of them that is lost holds up what is behind it
 * (hd_sq_retire). Receives whose messages were coming in are kept here, until the endpoint fails or
 * is reset: nobody who receives is told that the other end has gone, and one that were told to be
 * flushed would say that this end has failed.
 */
#include "engine/qp/holdoff.h"
#include "base/clock.h"
#include "engine/rq/rq.h"

#include <errno.h>
#include <stdlib.h>

struct hd_held_off {
	struct hd_taken taken;
	struct hd_received received;
	STAILQ_ENTRY(hd_held_off) entry;
};

/* HD_S_CANCELLED: so the other end has said of a message that it has begun to send. */
static bool is_gone(enum hd_status status)
{
	return status == HD_S_CANCELLED || status == HD_S_REFUSED || status == HD_S_LOST;
}

/* Those that were coming in complete with this error; HD_S_OK: not at all. */
static void held_complete(struct hd_qp *p, enum hd_status status)
{
	struct hd_held_off *held;

	while ((held = STAILQ_FIRST(&p->life.holdoff.receives))) {
		STAILQ_REMOVE_HEAD(&p->life.holdoff.receives, entry);
		if (!p->attr.lossy && !--p->life.lane.transfers)
			p->life.lane.status = 0;
		held->received.status = status;
		if (status)
			hd_recv_complete(&held->taken, &held->received);
		free(held);
	}
}

static void holdoff_over(struct hd_timer *timer)
{
	struct hd_qp *p = hd_container(timer, struct hd_qp, life.holdoff.timer);

	p->life.holdoff.state = HD_HOLDOFF_OVER;
	hd_sq_retire(p);
	p->life.holdoff.state = HD_HOLDOFF_NONE;
	hd_qp_kick(p);
}

static void holdoff_begin(struct hd_qp *p)
{
	if (p->life.holdoff.state != HD_HOLDOFF_NONE)
		return;
	p->life.holdoff.state = HD_HOLDOFF_RUNS;
	p->life.holdoff.timer.fn = holdoff_over;
	if (p->life.holdoff.ms != HD_HOLDOFF_EVER)
		hd_timer_set(p->ep->node, &p->life.holdoff.timer,
			     p->life.holdoff.ms * (uint64_t)HD_NS_PER_MS);
}

/* Or it has not been heard of any more. Who receives does not hear of that either. */
static bool is_lost(enum hd_status status)
{
	return is_gone(status) || status == HD_S_TIMEOUT || status == HD_S_UNREACHABLE ||
	       status == HD_S_PROTOCOL;
}

/*
 * The same errors come from an end that is there, and has waited for long enough: so the
 * whole peer has to be lost.
 */
static bool applies(const struct hd_qp *p, enum hd_status status)
{
	bool fits = is_gone(status) ||
		    (is_lost(status) && p->life.dest && p->life.dest->peer->state == HD_PEER_DEAD);

	return p->life.holdoff.ms && p->life.holdoff.state != HD_HOLDOFF_OVER && !hd_qp_has_failed(p) && fits;
}

bool hd_holdoff_send(struct hd_qp *p, enum hd_status status)
{
	if (!applies(p, status))
		return false;
	hd_qp_step(p, HD_QP_STEP_PEND); /* whoever has that name next is another */
	holdoff_begin(p);
	return true;
}

bool hd_holdoff_receive(struct hd_qp *p, const struct hd_taken *taken, const struct hd_received *received)
{
	struct hd_held_off *held;

	if (hd_qp_has_failed(p) || !is_lost(received->status) || !(p->attr.lossy || p->life.holdoff.ms))
		return false;
	if (p->attr.lossy &&
	    !p->ep->own_rq) /* the next message takes another, which may be all that others have */
		return false;
	held = malloc(sizeof(*held));
	if (!held)
		return false;
	held->taken = *taken;
	held->received = *received;
	STAILQ_INSERT_TAIL(&p->life.holdoff.receives, held, entry);
	if (!p->attr.lossy)
		/* what comes behind it waits, so that receives complete in order */
		p->life.lane.transfers++;
	return true;
}

void hd_holdoff_end(struct hd_qp *p, enum hd_status status)
{
	if (p->life.holdoff.state == HD_HOLDOFF_RUNS)
		hd_timer_stop(p->ep->node, &p->life.holdoff.timer);
	p->life.holdoff.state = HD_HOLDOFF_NONE;
	held_complete(p, status);
}

uint32_t hd_holdoff_count(const struct hd_qp *p)
{
	const struct hd_held_off *held;
	uint32_t n = 0;

	STAILQ_FOREACH(held, &p->life.holdoff.receives, entry)
		n++;
	return n;
}
