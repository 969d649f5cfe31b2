/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
#include "buffered.h"

static bool is_tagged(const struct ct *ct)
{
	return ct->cs->arg & BF_TAGGED;
}

struct ct_want bf_want(const struct ct *ct)
{
	struct ct_want want = { .caps = FI_MSG | FI_TAGGED | FI_SOURCE, .msg_order = FI_ORDER_SAS };

	if (ct->cs->arg & BF_VARIABLE)
		want.caps |= FI_VARIABLE_MSG;
	else
		want.mode = FI_BUFFERED_RECV;
	return want;
}

void bf_start(struct ct *ct, struct ct_dom *dom, struct ct_ep *e, const struct ct_want *wanted, size_t limit,
	      size_t min)
{
	struct ct_want want = *wanted;

	want.disabled = true;
	ct_open(ct, dom, &want);
	ct_ep_open(dom, e);
	CT_OK(ct, fi_setopt(&e->ep->fid, FI_OPT_ENDPOINT, FI_OPT_BUFFERED_LIMIT, &limit, sizeof(limit)));
	CT_OK(ct, fi_setopt(&e->ep->fid, FI_OPT_ENDPOINT, FI_OPT_BUFFERED_MIN, &min, sizeof(min)));
	ct_ep_enable(e);
	ct_join(e);
}

void bf_send(struct ct_ep *e, int rank, const void *buf, size_t len, uint64_t data, void *ctx)
{
	if (is_tagged(e->ct))
		CT_POST(e, fi_tsenddata(e->ep, buf, len, NULL, data, e->addr[rank], BF_TAG, ctx));
	else
		CT_POST(e, fi_senddata(e->ep, buf, len, NULL, data, e->addr[rank], ctx));
}

void bf_expect(struct ct_ep *e, void *ctx)
{
	if (is_tagged(e->ct))
		CT_POST(e, fi_trecv(e->ep, NULL, 1000, NULL, FI_ADDR_UNSPEC, BF_TAG, 0, ctx));
}

struct fi_recv_context *bf_told(struct ct_ep *e, void *ctx, struct ct_comp *c)
{
	struct fi_recv_context *context;
	struct ct *ct = e->ct;

	ct_any(e, c);
	CT_EQ(ct, c->err, 0);
	CT_TRUE(ct, c->flags & FI_RECV);
	CT_TRUE(ct, c->flags & (is_tagged(ct) ? FI_TAGGED : FI_MSG));
	CT_TRUE(ct, !(c->flags & FI_CLAIM));
	context = c->ctx;
	CT_TRUE(ct, context);
	CT_TRUE(ct, context->ep == (is_tagged(ct) ? NULL : e->ep));
	CT_TRUE(ct, context->context == (is_tagged(ct) ? ctx : NULL));
	if (is_tagged(ct))
		CT_EQ(ct, c->tag, BF_TAG);
	return context;
}

ssize_t bf_take(struct ct_ep *e, struct fi_recv_context *context, void *buf, size_t len, uint64_t flags)
{
	struct iovec iov = { buf, len };
	struct fi_msg m = { .msg_iov = &iov, .iov_count = 1, .addr = FI_ADDR_UNSPEC, .context = context };
	struct fi_msg_tagged t = {
		.msg_iov = &iov, .iov_count = 1, .addr = FI_ADDR_UNSPEC, .context = context
	};

	return is_tagged(e->ct) ? fi_trecvmsg(e->ep, &t, flags) : fi_recvmsg(e->ep, &m, flags);
}

void bf_claim(struct ct_ep *e, struct fi_recv_context *context, void *buf, size_t len, void *ctx,
	      struct ct_comp *c)
{
	context->context = ctx;
	CT_POST(e, bf_take(e, context, buf, len, FI_CLAIM));
	ct_of(e, ctx, c);
	if (!c->err)
		CT_TRUE(e->ct, c->flags & FI_CLAIM && c->flags & FI_RECV && !(c->flags & FI_MORE));
}

/* Its buffer is ignored, so an impossible one will do. */
void bf_discard(struct ct_ep *e, struct fi_recv_context *context)
{
	CT_POST(e, bf_take(e, context, NULL, 1000, FI_DISCARD));
}
