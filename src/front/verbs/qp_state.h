/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * The states of a queue pair, and what ibv_modify_qp(3) must and may say on the way from
 * one to the next: a table.
 */
#ifndef HEDDLE_FRONT_VERBS_QP_STATE_H
#define HEDDLE_FRONT_VERBS_QP_STATE_H

#include "engine/engine.h"

#include <infiniband/verbs.h>

#include <stdbool.h>

/*
 * hv_qp_state_step: may a queue pair of this transport go from state `from` to state `to` with the
 * attributes in mask (enum ibv_qp_attr_mask, with or without IBV_QP_STATE)? False: there is no such
 * transition, an attribute that it requires is missing, or one is given that it does not take. Any
 * thread, no lock.
 */
bool hv_qp_state_step(enum ibv_qp_type type, enum ibv_qp_state from, enum ibv_qp_state to, int mask);

/* hv_qp_state_of: what verbs calls this state of the engine's. */
enum ibv_qp_state hv_qp_state_of(enum hd_qp_state state);

/* What a state permits: ibv_post_recv(3), ibv_post_send(3). */
static inline bool hv_qp_state_receives(enum hd_qp_state state)
{
	return state != HD_QP_RESET;
}
static inline bool hv_qp_state_sends(enum hd_qp_state state)
{
	return state >= HD_QP_RTS;
}

#endif
