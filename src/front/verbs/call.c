/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
#include "front/verbs/call.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct hv_call {
	struct hd_ask ask;
	struct hd_cq *cq; /* tells of the end */
	int err;
	bool over, left; /* left: nobody waits for it any more */
};

static void call_told(struct hd_ask *ask, int err)
{
	struct hv_call *call = hv_container(ask, struct hv_call, ask);

	call->err = err;
	call->over = true;
	if (call->left)
		free(call);
	else
		hd_cq_post(call->cq, &(struct hd_cqe){ .ctx = call });
}

int hv_call_start(struct hv_context *ctx, struct hd_ep *voice, struct hd_dest *to, const void *question,
		  size_t len, struct hv_call **out)
{
	const struct hd_cq_attr attr = { .size = 1, .waitable = true };
	struct hv_call *call = calloc(1, sizeof(*call));
	int rc = call ? hd_cq_open(ctx->node, &attr, &call->cq) : -ENOMEM;

	if (!rc) {
		call->ask.told = call_told;
		rc = hd_ep_ask(voice, to, question, len, &call->ask);
		if (rc)
			hd_cq_close(call->cq);
	}
	if (rc)
		free(call);
	else
		*out = call;
	return -rc;
}

/* With the lock. */
static int taken(struct hv_call *call, void *answer, size_t len)
{
	int err = call->err;

	if (call->over)
		hd_cq_pop(call->cq);
	hd_cq_close(call->cq);
	if (!call->over) {
		call->left = true;
		return ETIMEDOUT;
	}
	if (!err && call->ask.len != len)
		err = EPROTO;
	if (!err)
		memcpy(answer, call->ask.answer, len);
	free(call);
	return err;
}

int hv_call_end(struct hv_context *ctx, struct hv_call *call, void *answer, size_t len, int ms)
{
	int before, rc;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
	do
		rc = hd_cq_wait(call->cq, 1, ms);
	while (rc && rc != -ENOTRECOVERABLE && !(ms >= 0 && rc == -EAGAIN));
	pthread_setcancelstate(before, NULL);
	if (!hv_enter(ctx))
		return EIO; /* in a child, which has no more to do with it */
	rc = taken(call, answer, len);
	hv_leave(ctx);
	return rc;
}
