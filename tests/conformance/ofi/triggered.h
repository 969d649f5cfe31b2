/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Counters that trigger, fi_trigger(3). */
#ifndef CT_TRIGGERED_H
#define CT_TRIGGERED_H

#include "region.h"

#include <rdma/fi_rma.h>
#include <rdma/fi_trigger.h>

#define MANY 8

static const struct ct_want triggering = { .caps = FI_MSG | FI_TAGGED | FI_TRIGGER, .counters = true };

/* tr_cntr: a counter of this domain. tr_when: the condition that it has reached this. */
struct fid_cntr *tr_cntr(struct ct_dom *dom);
void tr_when(struct fi_triggered_context *ctx, struct fid_cntr *c, size_t threshold);

#endif
