/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Carrying out a schedule: steps are taken until one waits for what has been begun. The last
 * message that ends lets it go on, when the turn of progress is over; so does each turn where
 * there was no room for one.
 */
#include "front/ofi/coll/run.h"

#include "base/copy.h"

#include <stdlib.h>

/* ---- messages -------------------------------------------------------------------------------- */

static void flight_done(struct hd_work *work, const struct hd_cqe *e)
{
	struct hd_fi_flight *flight =
		(struct hd_fi_flight *)((char *)work - offsetof(struct hd_fi_flight, work));
	struct hd_fi_run *run = flight->run;

	flight->under_way = false;
	run->outstanding--;
	if (e->err)
		hd_fi_group_fail(run->group, e->err);
	else if (flight->receives && e->len != flight->len)
		hd_fi_group_fail(run->group, HD_S_LENGTH); /* the members do not mean the same */
	else if (run->waits && !run->outstanding)
		hd_deferred_post(run->group->ep->node, &run->go);
}

static struct hd_fi_flight *flight_begin(struct hd_fi_run *run, const struct hd_fi_step *step)
{
	struct hd_fi_flight *flight = &run->flight[run->at];

	flight->work.done = flight_done;
	flight->run = run;
	flight->rank = step->rank;
	flight->len = step->len;
	flight->receives = step->kind == HD_FI_STEP_RECV;
	flight->under_way = true;
	run->outstanding++;
	return flight;
}

static int run_send(struct hd_fi_run *run, const struct hd_fi_step *step, struct hd_fi_flight *flight,
		    const struct hd_fi_tie *tie)
{
	const uint32_t flags = hd_fi_coll_send_flags(&run->group->ep->call) |
			       (run->plan.acked ? HD_SEND_ACKED : 0);
	const char *from = run->space[step->from.space] + (step->len ? step->from.at : 0);

	return hd_send(run->group->own, tie->to, from, step->len, run->tag, 0, &flight->work, flags);
}

static int run_recv(struct hd_fi_run *run, const struct hd_fi_step *step, struct hd_fi_flight *flight,
		    const struct hd_fi_tie *tie)
{
	const struct iovec iov = { run->space[step->to.space] + (step->len ? step->to.at : 0), step->len };
	const struct hd_recv_args args = { .iov = &iov,
					   .count = 1,
					   .flags = HD_RECV_TAGGED | HD_RECV_WORK,
					   .tag = run->tag,
					   .src = tie->from,
					   .ctx = &flight->work };
	int rc = hd_recv(run->group->own, &args);

	if (!rc && flight->under_way && tie->gone) /* what waited for it would have met it now */
		hd_fi_group_fail(run->group, HD_S_LOST);
	return rc;
}

static int run_message(struct hd_fi_run *run, const struct hd_fi_step *step)
{
	const struct hd_fi_tie *tie = hd_fi_group_tie(run->group, step->rank);
	struct hd_fi_flight *flight;
	int rc;

	if (!tie)
		return -ENOMEM;
	if (tie->gone && step->kind == HD_FI_STEP_SEND)
		return -ECONNRESET;
	flight = flight_begin(run, step);
	rc = flight->receives ? run_recv(run, step, flight, tie) : run_send(run, step, flight, tie);
	if (rc) {
		flight->under_way = false;
		run->outstanding--;
	}
	return rc;
}

/* ---- steps ----------------------------------------------------------------------------------- */

static int run_local(const struct hd_fi_run *run, const struct hd_fi_step *step)
{
	const char *from = run->space[step->from.space] + step->from.at;
	char *to = run->space[step->to.space] + step->to.at;

	if (step->kind == HD_FI_STEP_REDUCE)
		hd_atomic_apply(run->op, run->type, to, from, step->len / run->size);
	else if (to != from)
		return hd_copy(to, from, step->len);
	return 0;
}

/* 0, or why not: -EAGAIN and -ENOMEM pass. */
static int run_step(struct hd_fi_run *run, const struct hd_fi_step *step)
{
	switch (step->kind) {
	case HD_FI_STEP_SEND:
	case HD_FI_STEP_RECV:
		return run_message(run, step);
	case HD_FI_STEP_WAIT:
		return run->outstanding ? -EINPROGRESS : 0;
	default:
		return run_local(run, step);
	}
}

static void run_go(struct hd_deferred *deferred)
{
	struct hd_fi_run *run = (struct hd_fi_run *)((char *)deferred - offsetof(struct hd_fi_run, go));
	int rc = 0;

	run->waits = false;
	while (run->at < run->plan.count && !hd_fi_group_broken(run->group)) {
		rc = run_step(run, &run->plan.step[run->at]);
		if (rc)
			break;
		run->at++;
	}
	if (hd_fi_group_broken(run->group))
		return; /* which ends it */
	if (!rc)
		hd_fi_run_end(run, HD_S_OK);
	else if (rc == -EINPROGRESS)
		run->waits = true;
	else if (rc == -EAGAIN || rc == -ENOMEM)
		hd_deferred_post(run->group->ep->node, &run->go);
	else
		hd_fi_group_fail(run->group, rc == -EFAULT ? HD_S_PROTECTION : hd_status_of(rc));
}

/* ---- life ------------------------------------------------------------------------------------ */

struct hd_fi_run *hd_fi_run_make(struct hd_fi_group *group, struct hd_fi_plan *plan, size_t size)
{
	struct hd_fi_run *run = calloc(1, sizeof(*run) + plan->count * sizeof(*run->flight));
	char *tmp = plan->tmp ? malloc(plan->tmp) : NULL;

	if (!run || (plan->tmp && !tmp)) {
		hd_fi_plan_free(plan);
		free(tmp);
		free(run);
		return NULL;
	}
	run->group = group;
	run->plan = *plan;
	run->go.fn = run_go;
	run->size = size;
	run->space[HD_FI_TMP] = tmp;
	return run;
}

void hd_fi_run_start(struct hd_fi_run *run)
{
	struct hd_fi_group *group = run->group;

	run->tag = group->operations++;
	TAILQ_INSERT_TAIL(&group->runs, run, entry);
	run_go(&run->go);
}
