/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
#include "triggered.h"

#include "region.h"

#include <rdma/fi_rma.h>
#include <rdma/fi_trigger.h>
#include <string.h>

struct fid_cntr *tr_cntr(struct ct_dom *dom)
{
	struct fi_cntr_attr attr = { .events = FI_CNTR_EVENTS_COMP };
	struct fid_cntr *c;

	CT_OK(dom->ct, fi_cntr_open(dom->domain, &attr, &c, NULL));
	return c;
}

void tr_when(struct fi_triggered_context *ctx, struct fid_cntr *c, size_t threshold)
{
	memset(ctx, 0, sizeof(*ctx));
	ctx->event_type = FI_TRIGGER_THRESHOLD;
	ctx->trigger.threshold.cntr = c;
	ctx->trigger.threshold.threshold = threshold;
}
