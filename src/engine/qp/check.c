/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * What holds of a queue pair whenever nothing of it is being changed, counted anew in builds with assertions: at the borders of this room, and in
 * the units.
 */
#include "engine/qp/holdoff.h"
#include "engine/qp/qp.h"

#ifndef NDEBUG

#define CHECKED \
	64u /* a longer send queue is not walked through: it would take as long for every request in it */

struct sums {
	uint32_t units, ordered, reading, direct;
};

static void wqe_add(struct sums *sums, const struct hd_wqe *s)
{
	sums->units += s->units;
	sums->ordered += !!(s->way & HD_WAY_ORDERED);
	sums->reading += !!(s->way & HD_WAY_READS);
	sums->direct += !!(s->way & HD_WAY_DIRECT);
}

static void sq_check(const struct hd_qp *p)
{
	const uint32_t posted = p->tail - p->head, started = p->next - p->head;
	struct sums sums = { 0 };

	assert(started <= posted && posted <= p->mask + 1);
	if (posted > CHECKED)
		return;
	for (uint32_t seq = p->head; seq != p->tail; seq++) {
		const struct hd_wqe *s = &p->wqes[seq & p->mask];

		wqe_add(&sums, s);
		assert(seq - p->head >= started || s->state != HD_WQE_WAITS || p->pushing);
		assert(!s->op || s->op->t.ep == p->ep);
	}
	assert(sums.units == p->units);
	assert(sums.ordered == p->ordered && sums.reading == p->reading && sums.direct == p->direct);
}

/* Long transfers that come in, and those whose sender has gone (holdoff.c), which a reliable queue pair counts with them. */
static void lane_check(const struct hd_qp *p)
{
	uint32_t n = p->lossy ? 0 : hd_holdoff_count(p);

	assert(p->lane_next - p->lane_first <= HD_LANE_WIDTH);
	for (uint32_t seq = p->lane_first; seq != p->lane_next; seq++)
		n += p->lane[seq % HD_LANE_WIDTH] != NULL;
	assert(n == p->transfers);
	assert(p->lane_first == p->lane_next || p->lane[p->lane_first % HD_LANE_WIDTH]);
}

void hd_qp_check(const struct hd_qp *p)
{
	if (p->wqes)
		sq_check(p);
	lane_check(p);
	assert(!p->stalled_on || p->dest);
}

#endif
