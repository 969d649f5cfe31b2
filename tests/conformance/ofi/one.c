/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* One message by the calls that take flags. */
#include "ct.h"

ssize_t ct_send_one(struct ct_ep *e, const struct ct_one *o)
{
	struct iovec iov = { o->buf, o->len };
	struct fi_msg m = {
		.msg_iov = &iov, .iov_count = 1, .addr = e->addr[o->to], .context = o->ctx, .data = o->data
	};
	struct fi_msg_tagged t = { .msg_iov = &iov,
				   .iov_count = 1,
				   .addr = e->addr[o->to],
				   .tag = o->tag,
				   .context = o->ctx,
				   .data = o->data };

	return o->tagged ? fi_tsendmsg(e->ep, &t, o->flags) : fi_sendmsg(e->ep, &m, o->flags);
}

ssize_t ct_recv_one(struct ct_ep *e, const struct ct_one *o)
{
	struct iovec iov = { o->buf, o->len };
	fi_addr_t from = o->from ? *o->from : FI_ADDR_UNSPEC;
	struct fi_msg m = { .msg_iov = &iov, .iov_count = 1, .addr = from, .context = o->ctx };
	struct fi_msg_tagged t = { .msg_iov = &iov,
				   .iov_count = 1,
				   .addr = from,
				   .tag = o->tag,
				   .ignore = o->ignore,
				   .context = o->ctx };

	return o->tagged ? fi_trecvmsg(e->ep, &t, o->flags) : fi_recvmsg(e->ep, &m, o->flags);
}

void ct_recv_kind(struct ct_ep *e, bool tagged, void *buf, size_t len, void *ctx)
{
	if (tagged)
		ct_trecv(e, buf, len, CT_TAG, 0, ctx);
	else
		ct_recv(e, buf, len, ctx);
}

char *ct_inject_room(struct ct_ep *e, size_t more, size_t *max)
{
	*max = e->dom->info->tx_attr->inject_size;
	return ct_alloc(e->ct, *max + more);
}
