/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * What each room does in a turn of progress, beside what it has put into the lists of its phases.
 */
#include "engine/node/turn.h"

#include "engine/core/core.h"
#include "engine/event/event.h"
#include "engine/link/link.h"
#include "engine/node/process.h"
#include "engine/qp/qp.h"
#include "engine/rq/rq.h"

static int links_reap(struct hd_node *node)
{
	hd_links_reap(node);
	return 0;
}

const struct hd_turn_ops hd_turn_ops = {
	.look = hd_acks_look,
	.look_arm = hd_acks_arm,
	.work = {
		[HD_WORK_REAP] = links_reap,
		[HD_WORK_DEFERRED] = hd_deferred_run,
		[HD_WORK_FIRE] = hd_triggers_run,
		[HD_WORK_LIMITS] = hd_limits_look,
		[HD_WORK_MARKS] = hd_marks_look,
	},
	.check = hd_node_check,
	.forked = hd_node_forked,
};
