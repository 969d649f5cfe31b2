/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* D1: one shared receive queue of 1,000 endpoints. */
#include "dt.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum {
	MANY = 1000,
	BUFFERS = 64,
	KILOBYTES_EACH = 64
};

/*
 * All are connected and all receive, into fewer buffers than there are endpoints; a connection
 * costs two endpoints in this process.
 */
static void many(struct ct *ct)
{
	const struct dt_want want = { .srq = true, .srq_dtos = BUFFERS, .dtos = 16, .evd = 4096 };
	DAT_EP_HANDLE *from = ct_alloc(ct, MANY * sizeof(*from)), *to = ct_alloc(ct, MANY * sizeof(*to));
	bool *seen = ct_alloc(ct, MANY);
	struct dt_pair p;
	long before;

	dt_pair_open(ct, &p, &want);
	before = ct_memory(ct, "Rss");
	for (int i = 0; i < MANY; i++) {
		from[i] = dt_ep(&p.a), to[i] = dt_ep(&p.b);
		dt_join(&p.a, from[i], &p.b, to[i]);
		DT_OK(ct, dat_set_consumer_context(to[i], (DAT_CONTEXT){ .as_64 = (DAT_UINT64)i }));
	}
	if (CT_OWN_MEMORY && ct_memory(ct, "Rss") - before > MANY * KILOBYTES_EACH)
		ct_fail(ct, "%ld KiB for a connection", (ct_memory(ct, "Rss") - before) / MANY);
	for (uint64_t i = 0; i < BUFFERS; i++)
		dt_srq_recv(&p.b, i * 8, 8, i);
	for (int i = 0; i < MANY; i++)
		dt_send(&p.a, from[i], 0, 8, (uint64_t)i, DAT_COMPLETION_SUPPRESS_FLAG);
	for (int i = 0; i < MANY; i++) {
		DAT_EVENT event = dt_event(&p.b, p.b.recv, DAT_DTO_COMPLETION_EVENT);
		const DAT_DTO_COMPLETION_EVENT_DATA *dto = &event.event_data.dto_completion_event_data;
		DAT_CONTEXT who;

		CT_EQ(ct, dto->status, DAT_DTO_SUCCESS);
		DT_OK(ct, dat_get_consumer_context(dto->ep_handle, &who));
		CT_TRUE(ct, who.as_64 < MANY && !seen[who.as_64]);
		seen[who.as_64] = true;
		dt_srq_recv(&p.b, dto->user_cookie.as_64 * 8, 8, dto->user_cookie.as_64);
	}
	for (int i = 0; i < MANY; i++) {
		DT_OK(ct, dat_ep_free(from[i]));
		DT_OK(ct, dat_ep_free(to[i]));
	}
	dt_pair_close(&p);
	free(from);
	free(to);
	free(seen);
}

const struct ct_case dt_many[] = {
	{ "D1", "many endpoints", { many }, .seconds = 180, .slow = true },
	{ NULL },
};
