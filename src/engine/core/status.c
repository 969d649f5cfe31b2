/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Statuses and the errnos that mean the same: see api/status.h. */
#include "engine/engine.h"

#include <errno.h>
#include <stddef.h>

static const int errnos[HD_STATUSES] = {
	[HD_S_CANCELLED] = ECANCELED,	[HD_S_LENGTH] = EMSGSIZE,	   [HD_S_ACCESS] = EACCES,
	[HD_S_RANGE] = ERANGE,		[HD_S_INVALID] = EINVAL,	   [HD_S_OPERATIONAL] = EREMOTEIO,
	[HD_S_RNR] = ENOBUFS,		[HD_S_TIMEOUT] = ETIMEDOUT,	   [HD_S_REFUSED] = ECONNREFUSED,
	[HD_S_LOST] = ECONNRESET,	[HD_S_UNREACHABLE] = EHOSTUNREACH, [HD_S_NO_MEMORY] = ENOMEM,
	[HD_S_PROTOCOL] = EPROTO,	[HD_S_PROTECTION] = EFAULT,	   [HD_S_LOCAL_LENGTH] = EBADRQC,
	[HD_S_LOCAL_OPERATION] = EBADR, [HD_S_NO_MESSAGE] = ENOMSG,	   [HD_S_OVERRUN] = EOVERFLOW,
};

int hd_status_errno(enum hd_status status)
{
	return (unsigned)status < HD_STATUSES ? errnos[status] : EPROTO;
}

enum hd_status hd_status_of(int err)
{
	err = err < 0 ? -err : err;
	for (size_t status = HD_S_OK; status < HD_STATUSES; status++)
		if (errnos[status] == err)
			return (enum hd_status)status;
	switch (err) {
	case ENETUNREACH:
	case EHOSTDOWN:
	case ENETDOWN:
		return HD_S_UNREACHABLE;
	case EIO:
		return HD_S_PROTOCOL;
	default:
		return HD_S_LOST;
	}
}
