/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* The table of transitions; the required ones are those of ibv_modify_qp(3). */
#include "front/verbs/qp_state.h"

#include <stddef.h>

enum kind {
	RC,
	UC,
	UD,
	KINDS
};

#define EVERYWHERE (IBV_QP_STATE | IBV_QP_CUR_STATE)

/* What INIT takes, in INIT, and on the way there. */
#define INIT_CONNECTED (IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS)
#define INIT_UD (IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY)
#define RTR_UC (IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN)
#define RTR_RC (RTR_UC | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER)
#define RTS_UC IBV_QP_SQ_PSN
#define RTS_RC (RTS_UC | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC)
#define READY_UC (IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_PATH_MIG_STATE)
#define READY_RC (READY_UC | IBV_QP_MIN_RNR_TIMER)
#define DRAINED_UC (READY_UC | IBV_QP_AV | IBV_QP_PKEY_INDEX)
#define DRAINED_RC \
	(DRAINED_UC | IBV_QP_PORT | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | \
	 IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER)

struct step {
	bool none[KINDS]; /* this transport has no such transition */
	int required[KINDS], optional[KINDS];
};

/* From every state to RESET and to ERR there is a way that takes nothing; see hv_qp_state_step. */
static const struct {
	enum ibv_qp_state from, to;
	struct step step;
} steps[] = {
	{ IBV_QPS_RESET,
	  IBV_QPS_INIT,
	  { .required = { [RC] = INIT_CONNECTED, [UC] = INIT_CONNECTED, [UD] = INIT_UD } } },
	{ IBV_QPS_INIT,
	  IBV_QPS_INIT,
	  { .optional = { [RC] = INIT_CONNECTED, [UC] = INIT_CONNECTED, [UD] = INIT_UD } } },
	{ IBV_QPS_INIT,
	  IBV_QPS_RTR,
	  { .required = { [RC] = RTR_RC, [UC] = RTR_UC },
	    .optional = { [RC] = IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX,
			  [UC] = IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX,
			  [UD] = IBV_QP_PKEY_INDEX | IBV_QP_QKEY } } },
	{ IBV_QPS_RTR,
	  IBV_QPS_RTS,
	  { .required = { [RC] = RTS_RC, [UC] = RTS_UC, [UD] = IBV_QP_SQ_PSN },
	    .optional = { [RC] = READY_RC, [UC] = READY_UC, [UD] = IBV_QP_QKEY } } },
	{ IBV_QPS_RTS, IBV_QPS_RTS, { .optional = { [RC] = READY_RC, [UC] = READY_UC, [UD] = IBV_QP_QKEY } } },
	{ IBV_QPS_RTS,
	  IBV_QPS_SQD,
	  { .optional = { [RC] = IBV_QP_EN_SQD_ASYNC_NOTIFY,
			  [UC] = IBV_QP_EN_SQD_ASYNC_NOTIFY,
			  [UD] = IBV_QP_EN_SQD_ASYNC_NOTIFY } } },
	{ IBV_QPS_SQD, IBV_QPS_RTS, { .optional = { [RC] = READY_RC, [UC] = READY_UC, [UD] = IBV_QP_QKEY } } },
	{ IBV_QPS_SQD,
	  IBV_QPS_SQD,
	  { .optional = { [RC] = DRAINED_RC, [UC] = DRAINED_UC, [UD] = IBV_QP_PKEY_INDEX | IBV_QP_QKEY } } },
	{ IBV_QPS_SQE,
	  IBV_QPS_RTS,
	  { .none = { [RC] = true }, .optional = { [UC] = IBV_QP_ACCESS_FLAGS, [UD] = IBV_QP_QKEY } } },
};

static const struct step *find(enum ibv_qp_state from, enum ibv_qp_state to)
{
	static const struct step bare;

	if (from >= IBV_QPS_UNKNOWN)
		return NULL;
	if (to == IBV_QPS_RESET || to == IBV_QPS_ERR)
		return &bare;
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++)
		if (steps[i].from == from && steps[i].to == to)
			return &steps[i].step;
	return NULL;
}

bool hv_qp_state_step(enum ibv_qp_type type, enum ibv_qp_state from, enum ibv_qp_state to, int mask)
{
	const struct step *step = find(from, to);
	enum kind kind = type == IBV_QPT_RC ? RC : type == IBV_QPT_UC ? UC : UD;

	if (!step || step->none[kind])
		return false;
	if ((mask & step->required[kind]) != step->required[kind])
		return false;
	return !(mask & ~(EVERYWHERE | step->required[kind] | step->optional[kind]));
}
