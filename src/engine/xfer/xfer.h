/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Bytes on the move, for whoever owns them: transfers (transfer.h), operations (op.h), the two
 * halves of a long message (rndv.h), packets that come in pieces (stream.h), direct RMA (direct.h),
 * fences and completions in order (fence.h, send_lane.h), lanes of what ends in order (lane.h), how
 * a send is reported (sent.h).
 *
 * Called by rma, rdm and qp with the node's lock; nothing blocks. Upcalls: struct
 * hd_transfer_owner, of whatever has a transfer; struct hd_op_kind, of each kind of operation;
 * struct hd_poster, how an endpoint posts and hears of ends; struct hd_stream_kind. Each is the
 * caller's last act on the object; what they may free stands there.
 */
#ifndef HD_ENGINE_XFER_H
#define HD_ENGINE_XFER_H

#include "engine/xfer/direct.h"
#include "engine/xfer/fence.h"
#include "engine/xfer/lane.h"
#include "engine/xfer/op.h"
#include "engine/xfer/rndv.h"
#include "engine/xfer/send_lane.h"
#include "engine/xfer/sent.h"
#include "engine/xfer/state.h"
#include "engine/xfer/stream.h"
#include "engine/xfer/transfer.h"

#endif
