/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* A question to the front of another context (engine.h, «Questions») whose answer is waited for. */
#ifndef HEDDLE_FRONT_VERBS_CALL_H
#define HEDDLE_FRONT_VERBS_CALL_H

#include "front/verbs/verbs_front.h"

struct hv_call;

/*
 * hv_call_start: this endpoint of the context's asks that one: 0 and *out, or a
 * positive errno. With the lock.
 * hv_call_end: the answer, of exactly this length: 0 or a positive errno; ETIMEDOUT: there was none
 * for so many ms (negative: it is waited for as long as the other lives). Without the lock; no
 * point of cancellation. Frees the call.
 */
int hv_call_start(struct hv_context *ctx, struct hd_ep *voice, struct hd_dest *to, const void *question,
		  size_t len, struct hv_call **out);
int hv_call_end(struct hv_context *ctx, struct hv_call *call, void *answer, size_t len, int ms);

#endif
