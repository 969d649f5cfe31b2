/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * What the ends of a connection tell each other in front of the private data.
 * Integers in network byte order:
 *
 *	0   "hv", version 1, qp_type, responder_resources, initiator_depth, retry_count,
 *	    rnr_retry_count
 *	8   qp_num   12  psn   16  qkey   20  src_port   22  flow_control   23  srq
 *	24  native   25  zero   28  src   44  dst
 */
#include "front/verbs/cm/cm.h"

#include <endian.h>
#include <string.h>

static const uint8_t mark[3] = { 'h', 'v', 1 };

static void put32(uint8_t *to, uint32_t v)
{
	v = htobe32(v);
	memcpy(to, &v, sizeof(v));
}

static uint32_t get32(const uint8_t *from)
{
	uint32_t v;

	memcpy(&v, from, sizeof(v));
	return be32toh(v);
}

size_t hv_head_put(const struct hv_head *head, const void *priv, size_t len, uint8_t *to)
{
	memset(to, 0, HV_HEAD);
	memcpy(to, mark, sizeof(mark));
	to[3] = head->qp_type;
	to[4] = head->responder_resources;
	to[5] = head->initiator_depth;
	to[6] = head->retry_count;
	to[7] = head->rnr_retry_count;
	put32(to + 8, head->qp_num);
	put32(to + 12, head->psn);
	put32(to + 16, head->qkey);
	put32(to + 20, (uint32_t)head->src_port << 16 | (uint32_t)head->flow_control << 8 | head->srq);
	to[24] = head->native;
	memcpy(to + 28, head->src, 16);
	memcpy(to + 44, head->dst, 16);
	if (len)
		memcpy(to + HV_HEAD, priv, len);
	return HV_HEAD + len;
}

bool hv_head_get(struct hv_head *head, const uint8_t *from, size_t len)
{
	uint32_t more;

	if (len < HV_HEAD || memcmp(from, mark, sizeof(mark)))
		return false;
	more = get32(from + 20);
	*head = (struct hv_head){ .qp_type = from[3],
				  .responder_resources = from[4],
				  .initiator_depth = from[5],
				  .retry_count = from[6] & 7,
				  .rnr_retry_count = from[7] & 7,
				  .qp_num = get32(from + 8) & 0xffffff,
				  .psn = get32(from + 12) & 0xffffff,
				  .qkey = get32(from + 16),
				  .src_port = (uint16_t)(more >> 16),
				  .flow_control = (uint8_t)(more >> 8),
				  .srq = (uint8_t)more,
				  .native = from[24] };
	memcpy(head->src, from + 28, 16);
	memcpy(head->dst, from + 44, 16);
	return true;
}
