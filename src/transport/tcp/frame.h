/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * What stands on a TCP connection: one frame after the other, in both directions, from the
 * first byte on. Nothing else is in this file; docs/wire.md tells it in prose. All
 * integers are little endian.
 *
 *	 0                                  4                                  8
 *	+-----------------------------------+----------------------------------+
 *	| len: bytes of payload             | seq: number of this frame, from 1|
 *	+-----------------------------------+----------------------------------+
 *	| ack: newest frame taken in        | grant: units that you may have   |
 *	|      from you                     |        spent in all              |
 *	+-----------------------------------+----------------------------------+
 *	| struct hd_pkt, 32 bytes                                              |
 *	+----------------------------------------------------------------------+
 *	| len bytes of payload …
 *	+-----------------------------------+
 *	| check: 0, or the payload is void  |   behind more than HD_TCP_COPIED bytes alone
 *	+-----------------------------------+
 *
 * A long payload is sent from where it is, when the header is on its way already. Where its memory
 * is gone by then, zeros stand for it, and the check says that nothing shall come of the frame.
 */
#ifndef HD_TCP_FRAME_H
#define HD_TCP_FRAME_H

#include "engine/wire.h"

#include <stddef.h>

struct hd_tcp_frame {
	uint32_t len;
	uint32_t seq;	/* counts frames of this direction and wraps */
	uint32_t ack;	/* between the last ack and the newest frame sent the other way */
	uint32_t grant; /* cumulative, wraps, never goes back; 0 until the first */
	struct hd_pkt pkt;
};
static_assert(sizeof(struct hd_tcp_frame) == 48, "the header of a frame is 48 bytes");
static_assert(offsetof(struct hd_tcp_frame, pkt) == 16, "the packet follows the four words of the frame");

/*
 * The longest payload of any frame: the most that HEDDLE_EAGER_TCP can be set to, so that both
 * ends need not agree on it.
 */
#define HD_TCP_LEN_MAX (1u << 30)
#define HD_TCP_COPIED \
	(4u << 10) /* payloads up to this size are copied before anything of their frame leaves */
#define HD_TCP_CHECK sizeof(uint32_t)

/* hd_tcp_check_of: bytes of the check behind a payload of len bytes. */
static inline uint32_t hd_tcp_check_of(uint32_t len)
{
	return len > HD_TCP_COPIED ? HD_TCP_CHECK : 0;
}
static_assert(HD_TCP_LEN_MAX >= HD_FRAME_MAX, "a DATA frame fits");

/* Packets of this transport's own. */
enum hd_tcp_pkt_kind {
	/* no payload: it carries only the words of the frame */
	HD_TCP_PKT_GRANT = HD_PKT_TRANSPORT,
};

#endif
