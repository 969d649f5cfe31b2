/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Carrying out a schedule. */
#ifndef HEDDLE_FRONT_OFI_COLL_RUN_H
#define HEDDLE_FRONT_OFI_COLL_RUN_H

#include "front/ofi/coll/group.h"

/*
 * hd_fi_run_make: an operation with this schedule, which it takes over in any case, of elements of
 * size bytes; to be filled in, but for HD_FI_TMP. NULL: no memory. hd_fi_run_start: it begins, and
 * may be over, and gone, when this returns. The caller holds the node's lock, in a call of the
 * program's or in deferred work.
 */
struct hd_fi_run *hd_fi_run_make(struct hd_fi_group *group, struct hd_fi_plan *plan, size_t size);
void hd_fi_run_start(struct hd_fi_run *run);

#endif
