/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * What the ends of a connection tell each other in front of the private data, and socket addresses. Integers in network byte order:
 *
 *	0  "hv", version 1, qp_type, responder_resources, initiator_depth, retry_count, rnr_retry_count
 *	8  qp_num   12  psn   16  qkey   20  src_port   22  flow_control   23  srq   24  zero   28  src   44  dst
 */
#include "front/verbs/cm.h"

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
				  .srq = (uint8_t)more };
	memcpy(head->src, from + 28, 16);
	memcpy(head->dst, from + 44, 16);
	return true;
}

/* ---- socket addresses --------------------------------------------------------------------------------------------------- */

size_t hv_sockaddr_size(const struct sockaddr *addr)
{
	switch (addr->sa_family) {
	case AF_INET:
		return sizeof(struct sockaddr_in);
	case AF_INET6:
		return sizeof(struct sockaddr_in6);
	default:
		return 0;
	}
}

uint16_t hv_sockaddr_port(const struct sockaddr *addr)
{
	return be16toh(addr->sa_family == AF_INET ? ((const struct sockaddr_in *)addr)->sin_port
						  : ((const struct sockaddr_in6 *)addr)->sin6_port);
}

void hv_sockaddr_set_port(struct sockaddr *addr, uint16_t port)
{
	if (addr->sa_family == AF_INET)
		((struct sockaddr_in *)addr)->sin_port = htobe16(port);
	else
		((struct sockaddr_in6 *)addr)->sin6_port = htobe16(port);
}

bool hv_sockaddr_is_any(const struct sockaddr *addr)
{
	if (addr->sa_family == AF_INET)
		return ((const struct sockaddr_in *)addr)->sin_addr.s_addr == INADDR_ANY;
	return IN6_IS_ADDR_UNSPECIFIED(&((const struct sockaddr_in6 *)addr)->sin6_addr);
}

void hv_sockaddr_map(const struct sockaddr *addr, uint8_t out[16])
{
	if (addr->sa_family == AF_INET6) {
		memcpy(out, &((const struct sockaddr_in6 *)addr)->sin6_addr, 16);
		return;
	}
	memset(out, 0, 10);
	memset(out + 10, 0xff, 2);
	memcpy(out + 12, &((const struct sockaddr_in *)addr)->sin_addr, 4);
}

void hv_sockaddr_unmap(const uint8_t addr[16], uint16_t port, struct sockaddr *out)
{
	struct in6_addr in6;

	memcpy(&in6, addr, 16);
	memset(out, 0, sizeof(struct sockaddr_storage));
	if (IN6_IS_ADDR_V4MAPPED(&in6)) {
		out->sa_family = AF_INET;
		memcpy(&((struct sockaddr_in *)out)->sin_addr, addr + 12, 4);
	} else {
		out->sa_family = AF_INET6;
		((struct sockaddr_in6 *)out)->sin6_addr = in6;
	}
	hv_sockaddr_set_port(out, port);
}
