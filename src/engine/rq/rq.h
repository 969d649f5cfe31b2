/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Receives: queues of what is posted and of messages that wait (queue.h), one receive and
 * its completion (recv.h), matching (match.h). What a message becomes that finds no
 * receive is rdm's and qp's.
 *
 * Called by xfer, rdm and qp with the node's lock; nothing blocks. Upcalls: struct hd_rq_waiter, a
 * receive has been posted; struct hd_rq_keeper, a message that is handed over is freed, or its
 * queue closes: queue.h says what they may do.
 */
#ifndef HD_ENGINE_RQ_H
#define HD_ENGINE_RQ_H

#include "engine/rq/match.h"
#include "engine/rq/queue.h"
#include "engine/rq/recv.h"
#include "engine/rq/state.h"

#endif
