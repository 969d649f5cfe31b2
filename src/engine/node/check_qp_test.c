/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Queue pairs check themselves in builds with assertions: hd_node_check sees when what is counted
 * of one, or what its state says, is wrong.
 */
#include "engine/node/turn.h"
#include "engine/qp/qp.h"
#include "engine/test/test_noticed.h"
#include "engine/test/test_qp.h"

#include <stdlib.h>

#define BIG (16u << 20)
#define TURNS 1000000

/* A long message of a's comes in at b, and a short one waits there for it, or for a receive. */
struct scene {
	struct pair p;
	struct hd_qp *a, *b;
	char *out, *in;
};

static void scene_open(struct scene *s, const char *transport)
{
	struct hd_qp_view v = { 0 };

	qps_open(&s->p, transport, RC);
	s->a = s->p.a.ep->qp;
	s->b = s->p.b.ep->qp;
	s->out = calloc(1, BIG);
	s->in = calloc(1, BIG);
	qp_recv(&s->p.b, s->in, BIG, s->in);
	qp_send(&s->p.a, s->out, BIG, s->out);
	qp_send(&s->p.a, s->out, 8, s->out);
	for (int i = 0; i < TURNS && !(v.coming_in && v.queued); i++) {
		hd_node_poll(s->p.a.node);
		hd_node_poll(s->p.b.node);
		v = hd_qp_inspect(s->b);
	}
	assert_int_equal(v.coming_in, 1);
	assert_int_equal(v.queued, 1);
	assert_int_equal(hd_qp_inspect(s->a).started, 2);
}

static void scene_close(struct scene *s)
{
	pair_close(&s->p);
	free(s->out);
	free(s->in);
}

/* ---- the send queue -------------------------------------------------------------------------- */

static struct hd_wqe *first(struct scene *s)
{
	return hd_wqe_at(s->a, s->a->life.sq.head);
}

static void more_is_posted_than_there_is_room_for(struct scene *s)
{
	s->a->life.sq.tail = s->a->life.sq.head + s->a->attr.mask + 2;
}

static void more_is_started_than_posted(struct scene *s)
{
	s->a->life.sq.next = s->a->life.sq.tail + 1;
}

static void started_waits(struct scene *s)
{
	first(s)->state = HD_WQE_WAITS;
}

static void operation_is_anothers(struct scene *s)
{
	first(s)->op->t.ep = s->p.b.ep;
}

static void credit_is_miscounted(struct scene *s)
{
	s->a->life.sq.units++;
}

static void ordered_are_miscounted(struct scene *s)
{
	s->a->life.sq.ordered--;
}

static void reads_are_miscounted(struct scene *s)
{
	s->a->life.sq.reading++;
}

static void direct_are_miscounted(struct scene *s)
{
	s->a->life.sq.direct++;
}

/* ---- what comes in --------------------------------------------------------------------------- */

static struct hd_lane_place *place(struct scene *s)
{
	return TAILQ_FIRST(&s->b->life.lane.order.places);
}

static void lane_is_miscounted(struct scene *s)
{
	s->b->life.lane.order.count++;
	s->b->life.lane.transfers++;
}

static void transfers_are_miscounted(struct scene *s)
{
	s->b->life.lane.transfers++;
}

static void place_is_still_to_come(struct scene *s)
{
	place(s)->seq = s->b->life.lane.order.next;
}

static void first_place_has_ended(struct scene *s)
{
	place(s)->done = true;
}

static void transfer_is_anothers(struct scene *s)
{
	hd_transfer_at(place(s))->ep = s->p.a.ep;
}

static void window_is_awaited_by_nothing(struct scene *s)
{
	TAILQ_INIT(&s->b->respq.queue);
	s->b->respq.taking = true;
}

/* ---- its state ------------------------------------------------------------------------------- */

static void has_failed_of_nothing(struct scene *s)
{
	s->a->life.state = HD_QP_ERR_FALLING;
}

static void goes_on_with_a_status(struct scene *s)
{
	s->a->life.status = HD_S_LOST;
}

static void flushes_what_is_posted(struct scene *s)
{
	s->a->life.state = HD_QP_SQE;
}

static void has_drained_too_early(struct scene *s)
{
	s->a->life.state = HD_QP_SQD_DRAINED;
}

static void is_ready_for_nobody(struct scene *s)
{
	s->b->life.dest = NULL;
}

static void takes_before_it_is_ready(struct scene *s)
{
	s->b->life.state = HD_QP_INIT;
}

static void is_held_off_while_all_is_well(struct scene *s)
{
	s->a->life.holdoff.state = HD_HOLDOFF_RUNS;
}

/* ---- do they notice? ------------------------------------------------------------------------- */

static void (*const wrong[])(struct scene *s) = {
	more_is_posted_than_there_is_room_for,
	more_is_started_than_posted,
	started_waits,
	operation_is_anothers,
	credit_is_miscounted,
	ordered_are_miscounted,
	reads_are_miscounted,
	direct_are_miscounted,
	lane_is_miscounted,
	transfers_are_miscounted,
	place_is_still_to_come,
	first_place_has_ended,
	transfer_is_anothers,
	window_is_awaited_by_nothing,
	has_failed_of_nothing,
	goes_on_with_a_status,
	flushes_what_is_posted,
	has_drained_too_early,
	is_ready_for_nobody,
	takes_before_it_is_ready,
	is_held_off_while_all_is_well,
};

NOTICED_SCENE(wrong)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_is_noticed),
	};

	return cmocka_run_group_tests_name("check_qp", tests, NULL, NULL);
}
