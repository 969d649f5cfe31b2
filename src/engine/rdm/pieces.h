/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Eager messages that come in pieces: see xfer/stream.h. */
#ifndef HD_ENGINE_PIECES_H
#define HD_ENGINE_PIECES_H

#include "engine/xfer/xfer.h"

/*
 * hd_pieces_message: the stream's packet, which has been charged, is a message for ep. 0, or
 * negative: the link is down.
 */
int hd_pieces_message(struct hd_link *link, struct hd_stream *s, struct hd_ep *ep);

#endif
