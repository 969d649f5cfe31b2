/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * The states of a queue pair (enum hd_qp_state of api/qp.h) and the transitions between them: one
 * table, and nothing else sets hd_qp.state.
 *
 *	RESET ──► INIT ──► RTR ──► RTS ◄──► SQD ──► SQD_DRAINED	fronts ask for these; a queue pair
 *	                            │        │			drains by itself
 *	                     RTS_PENDING  SQD_PENDING		something was wrong; what is before
 *	                            ▼        ▼			it is still to end
 *	                           SQE   SQD_SQE		of those that are not reliable; the
 *								others fail
 *
 *	any ──► ERR_FALLING ──► ERR, and any ──► RESET
 */
#include "engine/qp/qp.h"

#define TO(state) (HD_QP_##state + 1) /* 0: there is no such transition */

static const uint8_t table[HD_QP_STEPS][HD_QP_STATES] = {
	[HD_QP_STEP_INIT] = { [HD_QP_RESET] = TO(INIT) },
	[HD_QP_STEP_PAIR] = { [HD_QP_RESET] = TO(RTR), [HD_QP_INIT] = TO(RTR) },
	[HD_QP_STEP_START] = { [HD_QP_RTR] = TO(RTS) },
	[HD_QP_STEP_PAUSE] = { [HD_QP_RTS] = TO(SQD),
			       [HD_QP_RTS_PENDING] = TO(SQD_PENDING),
			       [HD_QP_SQD] = TO(SQD),
			       [HD_QP_SQD_PENDING] = TO(SQD_PENDING),
			       [HD_QP_SQD_DRAINED] = TO(SQD) },
	[HD_QP_STEP_DRAINED] = { [HD_QP_SQD] = TO(SQD_DRAINED), [HD_QP_SQD_PENDING] = TO(SQD_DRAINED) },
	[HD_QP_STEP_RESUME] = { [HD_QP_SQD] = TO(RTS),
				[HD_QP_SQD_PENDING] = TO(RTS_PENDING),
				[HD_QP_SQD_DRAINED] = TO(RTS),
				[HD_QP_SQD_SQE] = TO(SQE) },
	[HD_QP_STEP_PEND] = { [HD_QP_RTS] = TO(RTS_PENDING),
			      [HD_QP_RTS_PENDING] = TO(RTS_PENDING),
			      [HD_QP_SQD] = TO(SQD_PENDING),
			      [HD_QP_SQD_PENDING] = TO(SQD_PENDING),
			      [HD_QP_SQD_DRAINED] = TO(SQD_PENDING) }, /* nobody can be reached */
	[HD_QP_STEP_SQE] = { [HD_QP_RTS] = TO(SQE),
			     [HD_QP_RTS_PENDING] = TO(SQE),
			     [HD_QP_SQD] = TO(SQD_SQE),
			     [HD_QP_SQD_PENDING] = TO(SQD_SQE),
			     [HD_QP_SQD_DRAINED] = TO(SQD_SQE),
			     [HD_QP_SQD_SQE] = TO(SQD_SQE),
			     [HD_QP_SQE] = TO(SQE) },
	[HD_QP_STEP_GO_ON] = { [HD_QP_SQD_SQE] = TO(SQD_DRAINED), [HD_QP_SQE] = TO(RTS) },
	[HD_QP_STEP_FAIL] = { [HD_QP_RESET... HD_QP_SQE] = TO(ERR_FALLING) },
	[HD_QP_STEP_FLUSH] = { [HD_QP_RESET... HD_QP_ERR_FALLING] = TO(ERR) },
	[HD_QP_STEP_RESET] = { [HD_QP_RESET... HD_QP_ERR] = TO(RESET) },
};

const char *hd_qp_state_name(enum hd_qp_state state)
{
	static const char *const names[HD_QP_STATES] = {
		[HD_QP_RESET] = "RESET",
		[HD_QP_INIT] = "INIT",
		[HD_QP_RTR] = "RTR",
		[HD_QP_RTS] = "RTS",
		[HD_QP_RTS_PENDING] = "RTS, failing",
		[HD_QP_SQD] = "SQD, draining",
		[HD_QP_SQD_PENDING] = "SQD, failing",
		[HD_QP_SQD_DRAINED] = "SQD",
		[HD_QP_SQD_SQE] = "SQD, then SQE",
		[HD_QP_SQE] = "SQE",
		[HD_QP_ERR_FALLING] = "ERR, to be flushed",
		[HD_QP_ERR] = "ERR",
	};

	return state < HD_QP_STATES ? names[state] : "?";
}

bool hd_qp_may(const struct hd_qp *p, enum hd_qp_step step)
{
	return table[step][p->life.state] != 0;
}

void hd_qp_step(struct hd_qp *p, enum hd_qp_step step)
{
	uint8_t to = table[step][p->life.state];

	assert(to);
	if (!to)
		return;
	if (p->life.state + 1u != to)
		hd_event("%s: %s, was %s", hd_ep_text(p->ep).text,
			 hd_qp_state_name((enum hd_qp_state)(to - 1)), hd_qp_state_name(p->life.state));
	p->life.state = (enum hd_qp_state)(to - 1);
}

/* Nobody is told of those that were never used: who only asks what there is has many. */
void hd_qp_shut(struct hd_qp *p)
{
	if (p->life.state != HD_QP_RESET)
		hd_event("%s: closed, was %s", hd_ep_text(p->ep).text, hd_qp_state_name(p->life.state));
	p->life.state = HD_QP_ERR;
}

int hd_qp_ask(struct hd_qp *p, enum hd_qp_step step)
{
	if (!hd_qp_may(p, step))
		return -EINVAL;
	hd_qp_step(p, step);
	return 0;
}

/* ---- what fronts ask for --------------------------------------------------------------------- */

const enum hd_qp_state *hd_ep_state(const struct hd_ep *ep)
{
	return &ep->qp->life.state;
}

int hd_ep_init(struct hd_ep *ep)
{
	hd_assert_locked(ep->node);
	return hd_qp_ask(ep->qp, HD_QP_STEP_INIT);
}

int hd_ep_start(struct hd_ep *ep)
{
	int rc;

	hd_assert_locked(ep->node);
	rc = hd_qp_ask(ep->qp, HD_QP_STEP_START);
	if (!rc)
		hd_sq_push(ep->qp);
	return rc;
}

int hd_ep_pause(struct hd_ep *ep, bool on)
{
	struct hd_qp *p = ep->qp;
	int rc;

	hd_assert_locked(ep->node);
	rc = hd_qp_ask(p, on ? HD_QP_STEP_PAUSE : HD_QP_STEP_RESUME);
	if (rc)
		return rc;
	if (on)
		hd_sq_drain(p);
	else
		hd_sq_push(p);
	hd_qp_check(p);
	return 0;
}

int hd_ep_go_on(struct hd_ep *ep)
{
	int rc;

	hd_assert_locked(ep->node);
	rc = hd_qp_ask(ep->qp, HD_QP_STEP_GO_ON);
	if (!rc)
		hd_sq_push(ep->qp);
	return rc;
}

void hd_ep_drain(struct hd_ep *ep)
{
	hd_assert_locked(ep->node);
	ep->qp->life.sq.drain_all = true;
	hd_sq_drain(ep->qp);
}
