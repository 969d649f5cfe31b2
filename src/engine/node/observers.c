/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* The order in which rooms are told of what happens below them. */
#include "engine/node/observers.h"
#include "engine/cm/cm.h"
#include "engine/link/link.h"
#include "engine/qp/qp.h"
#include "engine/rdm/rdm.h"
#include "engine/rq/rq.h"
#include "engine/xfer/xfer.h"

const struct hd_link_observers hd_link_observers = {
	.broken = hd_stream_broken,
	/*
	 * connections first, so that what they had under way ends as theirs; what was queued before
	 * what had begun; then what has come
	 */
	.ended = { hd_callers_ended, hd_backlog_ended, hd_pendings_ended, hd_rqs_ended, hd_claims_ended,
		   hd_respqs_ended },
	.bound = hd_backlog_bound,
	.unreached = hd_backlog_unreached,
	.joined = hd_recvs_joined,
	.forgotten = hd_rqs_forget,
	.forgo = hd_rqs_forgo,
	.renewed = hd_epoch_renewed,
	/*
	 * by age: what was accepted before its peer could take it; requests of queue pairs;
	 * long messages, a frame each
	 */
	.push = { hd_backlog_push, hd_sqs_push, hd_frames_push },
	.push_direct = hd_direct_push,
};
