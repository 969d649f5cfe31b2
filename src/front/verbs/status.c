/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Errors of the engine, translated in this one place. */
#include "front/verbs/status.h"

#include <errno.h>

/* A receive: what is wrong is wrong here. */
static enum ibv_wc_status status_received(int err)
{
	switch (err) {
	case EMSGSIZE:
		return IBV_WC_LOC_LEN_ERR;
	case EFAULT:
	case HV_ERR_PROT:
		return IBV_WC_LOC_PROT_ERR;
	case EACCES:
	case ERANGE:
	case EINVAL:
		return IBV_WC_LOC_ACCESS_ERR;
	default: /* whoever promised it is gone, or it was taken back */
		return IBV_WC_WR_FLUSH_ERR;
	}
}

/* What the other end has said of ours, or has not. */
static enum ibv_wc_status status_answered(int err)
{
	switch (err) {
	case EFAULT:
	case HV_ERR_PROT:
		return IBV_WC_LOC_PROT_ERR;
	case HV_ERR_LEN:
		return IBV_WC_LOC_LEN_ERR;
	case HV_ERR_OP:
		return IBV_WC_LOC_QP_OP_ERR;
	case EACCES:
	case ERANGE:
		return IBV_WC_REM_ACCESS_ERR;
	case EMSGSIZE:
	case EINVAL:
		return IBV_WC_REM_INV_REQ_ERR;
	case ENOBUFS:
		return IBV_WC_RNR_RETRY_EXC_ERR;
	case ECONNRESET:
	case ECONNREFUSED:
	case ECONNABORTED:
	case ETIMEDOUT:
	case EHOSTUNREACH:
	case ENETUNREACH:
	case EHOSTDOWN:
	case ENETDOWN:
	case ENOTCONN:
	case EPIPE:
	case ESHUTDOWN:
		return IBV_WC_RETRY_EXC_ERR;
	default:
		return IBV_WC_REM_OP_ERR;
	}
}

enum ibv_wc_status hv_wc_status(uint32_t flags, int err)
{
	if (!err)
		return IBV_WC_SUCCESS;
	if (err == ECANCELED)
		return IBV_WC_WR_FLUSH_ERR;
	if (flags & HD_C_LOCAL)
		return IBV_WC_MW_BIND_ERR;
	return flags & HD_C_RECV ? status_received(err) : status_answered(err);
}
