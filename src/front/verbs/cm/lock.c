/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* The lock of ids, and how functions of rdma_cm answer. */
#include "base/lock.h"
#include "front/verbs/cm/cm.h"

#include <errno.h>

struct hd_lock hv_cm_lock;

__attribute__((constructor)) static void cm_lock_init(void)
{
	hd_lock_init(&hv_cm_lock, HD_LOCK_OUTER);
}

int hv_cm_ret(int rc)
{
	if (rc >= 0)
		return 0;
	errno = -rc;
	return -1;
}
