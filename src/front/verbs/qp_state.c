/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* The table of transitions; the required ones are those of ibv_modify_qp(3). */
#include "front/verbs/qp_state.h"

#include <stddef.h>

enum kind {
	RC,
	UC,
	UD,
	XS, /* XRC_SEND */
	XR, /* XRC_RECV */
	KINDS
};

/* What INIT takes, in INIT, and on the way there. */
#define INIT_CONNECTED (IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS)
#define INIT_UD (IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY)
#define RTR_UC (IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN)
#define RTR_RC (RTR_UC | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER)
#define OPTIONAL_RTR (IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX)
#define RTS_UC IBV_QP_SQ_PSN
#define RTS_RC (RTS_UC | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC)
/*
 * Who only sends says nothing of what it does for others, who only receives nothing of tries. As
 * the kernel's table has it.
 */
#define RTS_XR (IBV_QP_TIMEOUT | IBV_QP_SQ_PSN)
#define READY_UC (IBV_QP_CUR_STATE | IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_PATH_MIG_STATE)
#define READY_UD (IBV_QP_CUR_STATE | IBV_QP_QKEY)
#define READY_RC (READY_UC | IBV_QP_MIN_RNR_TIMER)
#define DRAINED_UC ((READY_UC & ~IBV_QP_CUR_STATE) | IBV_QP_AV | IBV_QP_PKEY_INDEX)
#define DRAINED_RC \
	(DRAINED_UC | IBV_QP_PORT | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | \
	 IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER)

#define DRAINED_XS \
	(DRAINED_UC | IBV_QP_PORT | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | \
	 IBV_QP_MAX_QP_RD_ATOMIC)
#define DRAINED_XR \
	(DRAINED_UC | IBV_QP_PORT | IBV_QP_TIMEOUT | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER)

struct step {
	bool none[KINDS]; /* this transport has no such transition */
	int required[KINDS], optional[KINDS];
};

/* Of all kinds, what several transitions have in common. */
#define INIT_ALL \
	{ \
		INIT_CONNECTED, INIT_CONNECTED, INIT_UD, INIT_CONNECTED, INIT_CONNECTED \
	}
#define READY_ALL \
	{ \
		READY_RC, READY_UC, READY_UD, READY_UC, READY_RC \
	}

/*
 * From every state to RESET, and to ERR but from RESET, there is a way that takes
 * nothing; see hv_qp_state_step.
 */
static const struct {
	enum ibv_qp_state from, to;
	struct step step;
} steps[] = {
	{ IBV_QPS_RESET, IBV_QPS_INIT, { .required = INIT_ALL } },
	{ IBV_QPS_INIT, IBV_QPS_INIT, { .optional = INIT_ALL } },
	{ IBV_QPS_INIT,
	  IBV_QPS_RTR,
	  { .required = { [RC] = RTR_RC, [UC] = RTR_UC, [XS] = RTR_UC, [XR] = RTR_RC },
	    .optional = { [RC] = OPTIONAL_RTR,
			  [UC] = OPTIONAL_RTR,
			  [UD] = IBV_QP_PKEY_INDEX | IBV_QP_QKEY,
			  [XS] = OPTIONAL_RTR,
			  [XR] = OPTIONAL_RTR } } },
	{ IBV_QPS_RTR,
	  IBV_QPS_RTS,
	  { .required = { [RC] = RTS_RC, [UC] = RTS_UC, [UD] = IBV_QP_SQ_PSN, [XS] = RTS_RC, [XR] = RTS_XR },
	    .optional = READY_ALL } },
	{ IBV_QPS_RTS, IBV_QPS_RTS, { .optional = READY_ALL } },
	{ IBV_QPS_RTS, IBV_QPS_SQD, { .optional = { [0 ... KINDS - 1] = IBV_QP_EN_SQD_ASYNC_NOTIFY } } },
	{ IBV_QPS_SQD, IBV_QPS_RTS, { .optional = READY_ALL } },
	{ IBV_QPS_SQD,
	  IBV_QPS_SQD,
	  { .optional = { [RC] = DRAINED_RC,
			  [UC] = DRAINED_UC,
			  [UD] = IBV_QP_PKEY_INDEX | IBV_QP_QKEY,
			  [XS] = DRAINED_XS,
			  [XR] = DRAINED_XR } } },
	{ IBV_QPS_SQE,
	  IBV_QPS_RTS,
	  { .none = { [RC] = true, [XS] = true, [XR] = true },
	    .optional = { [UC] = IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS, [UD] = READY_UD } } },
};

enum ibv_qp_state hv_qp_state_of(enum hd_qp_state state)
{
	static const enum ibv_qp_state states[HD_QP_STATES] = {
		[HD_QP_RESET] = IBV_QPS_RESET,	   [HD_QP_INIT] = IBV_QPS_INIT,
		[HD_QP_RTR] = IBV_QPS_RTR,	   [HD_QP_RTS] = IBV_QPS_RTS,
		[HD_QP_RTS_PENDING] = IBV_QPS_RTS, [HD_QP_SQD] = IBV_QPS_SQD,
		[HD_QP_SQD_PENDING] = IBV_QPS_SQD, [HD_QP_SQD_DRAINED] = IBV_QPS_SQD,
		[HD_QP_SQD_SQE] = IBV_QPS_SQD,	   [HD_QP_SQE] = IBV_QPS_SQE,
		[HD_QP_ERR_FALLING] = IBV_QPS_ERR, [HD_QP_ERR] = IBV_QPS_ERR,
	};

	return states[state];
}

static const struct step *qp_state_find(enum ibv_qp_state from, enum ibv_qp_state to)
{
	static const struct step bare;

	if (from >= IBV_QPS_UNKNOWN)
		return NULL;
	if (to == IBV_QPS_RESET || (to == IBV_QPS_ERR && from != IBV_QPS_RESET))
		return &bare;
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++)
		if (steps[i].from == from && steps[i].to == to)
			return &steps[i].step;
	return NULL;
}

static enum kind qp_state_kind_of(enum ibv_qp_type type)
{
	switch (type) {
	case IBV_QPT_RC:
		return RC;
	case IBV_QPT_UC:
		return UC;
	case IBV_QPT_XRC_SEND:
		return XS;
	case IBV_QPT_XRC_RECV:
		return XR;
	default:
		return UD;
	}
}

bool hv_qp_state_step(enum ibv_qp_type type, enum ibv_qp_state from, enum ibv_qp_state to, int mask)
{
	const struct step *step = qp_state_find(from, to);
	enum kind kind = qp_state_kind_of(type);

	if (!step || step->none[kind])
		return false;
	if ((mask & step->required[kind]) != step->required[kind])
		return false;
	return !(mask & ~(IBV_QP_STATE | step->required[kind] | step->optional[kind]));
}
