/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* What the cases of buffered receives and of variable-length messages share. */
#ifndef CT_BUFFERED_H
#define CT_BUFFERED_H

#include "ct.h"

#include <rdma/fi_tagged.h>

enum bf_arg { /* ct_case.arg, a set */
	BF_TAGGED = 1 << 0,
	BF_VARIABLE = 1 << 1, /* FI_VARIABLE_MSG instead of FI_BUFFERED_RECV */
};

#define BF_TAG 0xb0ff

/* bf_want: an endpoint that buffers as the case's argument says. */
struct ct_want bf_want(const struct ct *ct);

/* bf_start is ct_start with the two options set before the endpoints are enabled. */
void bf_start(struct ct *ct, struct ct_dom *dom, struct ct_ep *e, const struct ct_want *want, size_t limit,
	      size_t min);

/* bf_send: one message with data, tagged (BF_TAG) or not. */
void bf_send(struct ct_ep *e, int rank, const void *buf, size_t len, uint64_t data, void *ctx);

/* bf_expect posts the tag where the case is a tagged one, with a buffer that cannot be. */
void bf_expect(struct ct_ep *e, void *ctx);

/*
 * bf_told waits until a message is handed over, and checks what its completion and its context say.
 */
struct fi_recv_context *bf_told(struct ct_ep *e, void *ctx, struct ct_comp *c);

/*
 * bf_take calls fi_recvmsg or fi_trecvmsg, as the case has it, with these flags; the call's answer.
 */
ssize_t bf_take(struct ct_ep *e, struct fi_recv_context *context, void *buf, size_t len, uint64_t flags);

/* bf_claim claims a message as operation `ctx` and waits for it; bf_discard drops one. */
void bf_claim(struct ct_ep *e, struct fi_recv_context *context, void *buf, size_t len, void *ctx,
	      struct ct_comp *c);
void bf_discard(struct ct_ep *e, struct fi_recv_context *context);

#endif
