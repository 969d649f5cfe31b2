/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* One-sided operations that the initiator carries out by itself, without the target's help: no link can do that. */
#include "engine/internal.h"

#include <errno.h>

int hd_reach_try(struct hd_op *op)
{
	return -EOPNOTSUPP;
}
