/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* What is known of memory that one end lets the other write: see iomap.c. */
#include "front/verbs/ops.h"
#include "front/verbs/rs/rs.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

void rs_mapped(struct rs_maps *maps, uint32_t most, const void *data, uint32_t len)
{
	struct rs_map_wire wire;

	if (len != sizeof(wire))
		return;
	memcpy(&wire, data, sizeof(wire));
	if (be32toh(wire.index) >= most)
		return;
	maps->theirs[be32toh(wire.index)] = (struct rs_map){ .offset = be64toh(wire.offset),
							     .addr = be64toh(wire.addr),
							     .len = be64toh(wire.len),
							     .key = be32toh(wire.key) };
}

void rs_unmap_all(struct rs_maps *maps)
{
	for (uint32_t i = 0; maps->ours && i < maps->count; i++)
		if (maps->ours[i].mr)
			hv_ibv_dereg_mr(maps->ours[i].mr);
	for (uint32_t i = 0; i < maps->local_count; i++)
		if (maps->locals[i].mr)
			hv_ibv_dereg_mr(maps->locals[i].mr);
	free(maps->ours);
	free(maps->locals);
}
