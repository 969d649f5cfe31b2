/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Errors of the engine, translated in this one place. */
#include "front/verbs/status.h"

/* A receive: what is wrong is wrong here. */
static enum ibv_wc_status status_received(enum hd_status err)
{
	switch (err) {
	case HD_S_LENGTH:
		return IBV_WC_LOC_LEN_ERR;
	case HD_S_PROTECTION:
		return IBV_WC_LOC_PROT_ERR;
	case HD_S_ACCESS:
	case HD_S_RANGE:
	case HD_S_INVALID:
		return IBV_WC_LOC_ACCESS_ERR;
	default: /* whoever promised it is gone, or it was taken back */
		return IBV_WC_WR_FLUSH_ERR;
	}
}

/* What the other end has said of ours, or has not. */
static enum ibv_wc_status status_answered(enum hd_status err)
{
	switch (err) {
	case HD_S_PROTECTION:
		return IBV_WC_LOC_PROT_ERR;
	case HD_S_LOCAL_LENGTH:
		return IBV_WC_LOC_LEN_ERR;
	case HD_S_LOCAL_OPERATION:
		return IBV_WC_LOC_QP_OP_ERR;
	case HD_S_ACCESS:
	case HD_S_RANGE:
		return IBV_WC_REM_ACCESS_ERR;
	case HD_S_LENGTH:
	case HD_S_INVALID:
		return IBV_WC_REM_INV_REQ_ERR;
	case HD_S_RNR:
		return IBV_WC_RNR_RETRY_EXC_ERR;
	case HD_S_LOST:
	case HD_S_REFUSED:
	case HD_S_TIMEOUT:
	case HD_S_UNREACHABLE:
		return IBV_WC_RETRY_EXC_ERR;
	default:
		return IBV_WC_REM_OP_ERR;
	}
}

enum ibv_wc_status hv_wc_status(uint32_t flags, enum hd_status err)
{
	if (!err)
		return IBV_WC_SUCCESS;
	if (err == HD_S_CANCELLED)
		return IBV_WC_WR_FLUSH_ERR;
	if (flags & HD_C_LOCAL)
		return IBV_WC_MW_BIND_ERR;
	return flags & HD_C_RECV ? status_received(err) : status_answered(err);
}
