/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Queue pairs: endpoints that have a number. */
#include "engine/internal.h"

#include <errno.h>
#include <netinet/in.h>

uint32_t hd_ep_number(const struct hd_ep *ep)
{
	return ep->policy & HD_EP_NUMBERED ? (uint32_t)ep->place->port << 8 | ep->slot : 0;
}

int hd_dest_name(const struct hd_node *node, uint32_t src, struct sockaddr_storage *out)
{
	const struct hd_dest *dest = hd_dest_by_id((struct hd_node *)node, src);

	if (!dest || dest->addr.ss_family == AF_UNSPEC)
		return -ENOENT;
	*out = dest->addr;
	return 0;
}

uint32_t hd_dest_number(const struct hd_node *node, uint32_t src)
{
	struct sockaddr_storage name;
	uint32_t slot;

	if (hd_dest_name(node, src, &name) < 0)
		return 0;
	slot = hd_name_slot((void *)&name);
	/* the port is at the same place in both families */
	return slot > 254 ? 0 : (uint32_t)ntohs(((struct sockaddr_in *)(void *)&name)->sin_port) << 8 | slot;
}
