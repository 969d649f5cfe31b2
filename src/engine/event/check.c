/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * What holds of a completion queue whenever nothing of it is being changed,
 * in builds with assertions.
 */
#include "engine/event/event.h"

#ifndef NDEBUG

#define CHECKED 256u /* entries of a longer list are not looked at */

/* What waits beside the ring does so because that is full. */
static void overflow_check(const struct hd_cq *cq)
{
	const struct hd_overflow *o;
	unsigned n = 0;

	if (STAILQ_EMPTY(&cq->overflow))
		return;
	assert(cq->r.overflowed && !cq->overruns && !cq->forgets);
	assert(cq->r.tail - cq->r.head == cq->r.mask + 1);
	STAILQ_FOREACH(o, &cq->overflow, entry) {
		if (n++ > CHECKED)
			return;
		assert(!o->read || (o->peer && *o->owing.le_prev == o));
		assert(STAILQ_NEXT(o, entry) || cq->overflow.stqh_last == &STAILQ_NEXT(o, entry));
	}
}

void hd_cq_check(const struct hd_cq *cq)
{
	const struct hd_cq_ring *r = &cq->r;

	assert(cq->users >= 0);
	assert(!(r->mask & (r->mask + 1)) && r->tail - r->head <= r->mask + 1);
	assert(!r->overflowed || cq->overrun || hd_core(cq->node)->gate.dead || !STAILQ_EMPTY(&cq->overflow));
	assert(!cq->overrun || (cq->overruns && r->overflowed));
	overflow_check(cq);
	assert(cq->notice == HD_NOTICE_NONE || cq->channel);
	assert(!cq->gathered || cq->gather > cq->gathered);
	assert((int32_t)(r->tail - cq->told) >= 0);
	assert(cq->w.to_wake >= 0 && cq->w.to_wake <= cq->w.sleepers);
}

#endif
