/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Calls that are to be made later: checked and taken over now, and how each is made then. */
#include "front/ofi/mc.h"
#include "front/ofi/newer.h"
#include "front/ofi/triggered.h"

#include <stdlib.h>
#include <string.h>

/* ---- what is done ---------------------------------------------------------------------------- */

static int start_send(struct hd_fi_triggered *t)
{
	return (int)hd_fi_start_sendv(t->ep, t->iov, t->iov_count, &t->send);
}

static int start_cast(struct hd_fi_triggered *t)
{
	return hd_fi_mc_start(t->ep, t->iov, t->iov_count, &t->send);
}

static int start_recv(struct hd_fi_triggered *t)
{
	return (int)hd_fi_post_recv(t->ep, t->recv, false);
}

static int start_rma(struct hd_fi_triggered *t)
{
	return (int)hd_fi_post_rma(t->ep, &t->rma.msg, t->rma.op, t->rma.flags, false);
}

static int start_atomic(struct hd_fi_triggered *t)
{
	return (int)hd_fi_atomic_post(t->ep, &t->atomic.call, &t->atomic.lists);
}

/* ---- taking calls over ----------------------------------------------------------------------- */

static int take_iov(struct hd_fi_triggered *t, const struct iovec *iov, size_t count)
{
	memcpy(t->iov, iov, count * sizeof(*iov));
	t->iov_count = count;
	return 0;
}

/* The data too, because the program may write over it as soon as the call returns. */
static int trigger_take_take_data(struct hd_fi_triggered *t)
{
	size_t len = 0;
	char *at;

	for (size_t i = 0; i < t->iov_count; i++)
		len += t->iov[i].iov_len;
	t->copy = malloc(len + 1);
	if (!t->copy)
		return hd_fi_no(FI_ENOMEM);
	at = t->copy;
	for (size_t i = 0; i < t->iov_count; at += t->iov[i++].iov_len)
		if (t->iov[i].iov_len)
			memcpy(at, t->iov[i].iov_base, t->iov[i].iov_len);
	t->iov[0] = (struct iovec){ t->copy, len };
	t->iov_count = 1;
	return 0;
}

/* s.flags: tagged or not, on entry. */
int hd_fi_take_send(struct hd_fi_triggered *t, const struct hd_fi_send *s, const struct iovec *iov,
		    size_t count, uint64_t flags)
{
	bool casts = flags & FI_MULTICAST && !(s->flags & HD_SEND_TAGGED);
	int rc;

	t->send = *s;
	t->kind = HD_FI_CNTR_SEND;
	t->what = HD_C_SEND | (s->flags & HD_SEND_TAGGED ? HD_C_TAGGED : HD_C_MSG);
	t->tag = s->tag;
	if (casts) {
		rc = hd_fi_mc_take(t->ep, iov, count, flags, &t->send);
	} else {
		rc = hd_fi_send_flags(t->ep, flags, &t->send.flags);
		t->send.flags |= s->flags;
		if (!rc)
			rc = hd_fi_check_sendv(&t->ep->attr, iov, count,
					       hd_fi_send_max(&t->ep->call,
							      s->flags & HD_SEND_TAGGED ? HD_FI_OF_TAGGED
											: HD_FI_OF_MSG,
							      t->send.flags));
	}
	if (!rc)
		rc = take_iov(t, iov, count);
	if (!rc && !t->asked && t->send.flags & HD_SEND_INJECT)
		rc = trigger_take_take_data(t);
	if (t->asked) {
		t->send.flags = (t->send.flags & ~(uint32_t)HD_SEND_COMPLETE) | HD_SEND_WORK;
		t->send.context = &t->work;
	}
	t->start = casts ? start_cast : start_send;
	return rc;
}

#define RECV_FLAGS (FI_COMPLETION | FI_MORE | FI_TRANSMIT_COMPLETE | FI_AUTH_KEY)

static int check_source(struct hd_fi_ep *ep, const struct hd_fi_recv *r)
{
	const struct hd_dest *src;
	int rc;

	hd_fi_lock(ep->domain);
	rc = hd_fi_recv_source(ep, r->src, r->by_key, hd_fi_recv_kind(r->flags), &src);
	hd_fi_unlock(ep->domain);
	return rc;
}

int hd_fi_take_recv(struct hd_fi_triggered *t, const struct hd_fi_recv *r, uint64_t flags)
{
	bool multi = flags & FI_MULTI_RECV && !(r->flags & HD_RECV_TAGGED);
	int rc;

	if (flags & ~(RECV_FLAGS | (multi ? FI_MULTI_RECV : 0)))
		return hd_fi_no(FI_EINVAL, "a triggered receive with flags that it does not take");
	if (multi && t->asked) /* it has many ends */
		return hd_fi_no(FI_ENOSYS, "deferred work with FI_MULTI_RECV");
	t->recv = *r;
	t->kind = HD_FI_CNTR_RECV;
	t->what = HD_C_RECV | (r->flags & HD_RECV_TAGGED ? HD_C_TAGGED : HD_C_MSG);
	t->tag = r->tag;
	if (multi)
		t->recv.flags |= HD_RECV_MULTI;
	t->recv.by_key = flags & FI_AUTH_KEY;
	rc = hd_fi_check_recvv(&t->ep->attr, &t->recv);
	if (!rc)
		rc = check_source(t->ep, &t->recv);
	if (rc)
		return rc;
	take_iov(t, t->recv.iov, t->recv.count);
	t->recv.iov = t->iov;
	if (t->asked) {
		t->recv.flags |= HD_RECV_WORK;
		t->recv.context = &t->work;
	} else {
		t->recv.flags |= hd_fi_recv_completes(&t->ep->call, flags);
	}
	t->start = start_recv;
	return 0;
}

int hd_fi_take_rma(struct hd_fi_triggered *t, const struct fi_msg_rma *msg, enum hd_rma_op op, uint64_t flags)
{
	struct fi_msg_rma *mine = &t->rma.msg;
	int rc = hd_fi_send_flags(t->ep, flags, &t->rma.flags);

	if (rc || (op == HD_RMA_READ && flags & (FI_INJECT | FI_REMOTE_CQ_DATA)))
		return hd_fi_no(FI_EINVAL, "a triggered read or write with flags that it does not take");
	rc = (int)hd_fi_check_rma(t->ep, msg, t->rma.flags);
	if (!rc)
		rc = take_iov(t, msg->msg_iov, msg->iov_count);
	if (!rc && !t->asked && t->rma.flags & HD_SEND_INJECT)
		rc = trigger_take_take_data(t);
	if (rc)
		return rc;
	if (msg->rma_iov_count)
		memcpy(t->rma.segs, msg->rma_iov, msg->rma_iov_count * sizeof(*msg->rma_iov));
	*mine = *msg;
	mine->msg_iov = t->iov;
	mine->iov_count = t->iov_count;
	mine->rma_iov = t->rma.segs;
	if (t->asked) {
		t->rma.flags = (t->rma.flags & ~(uint32_t)HD_SEND_COMPLETE) | HD_SEND_WORK;
		mine->context = &t->work;
	}
	t->rma.op = op;
	t->kind = op == HD_RMA_READ ? HD_FI_CNTR_READ : HD_FI_CNTR_WRITE;
	t->what = HD_C_RMA | (op == HD_RMA_READ ? HD_C_READ : HD_C_WRITE);
	t->start = start_rma;
	return 0;
}

static int take_operands(struct hd_fi_triggered *t)
{
	struct hd_fi_atomic *call = &t->atomic.call;
	int rc = take_iov(t, t->atomic.lists.iov, call->count);

	if (!rc)
		rc = trigger_take_take_data(t);
	t->atomic.lists.iov[0] = t->iov[0];
	call->count = 1;
	return rc;
}

int hd_fi_take_atomic(struct hd_fi_triggered *t, const struct hd_fi_atomic *c)
{
	struct hd_fi_atomic *mine = &t->atomic.call;
	int rc = hd_fi_atomic_take(t->ep, c, &t->atomic.lists);

	*mine = *c;
	if (!rc && !t->asked && c->flags & HD_SEND_INJECT && c->op != HD_ATOMIC_READ)
		rc = take_operands(t);
	if (t->asked) {
		mine->flags = (mine->flags & ~(uint32_t)HD_SEND_COMPLETE) | HD_SEND_WORK;
		mine->context = &t->work;
	}
	t->kind = c->how == HD_ATOMIC_BASE ? HD_FI_CNTR_WRITE : HD_FI_CNTR_READ;
	t->what = HD_C_ATOMIC | (c->how == HD_ATOMIC_BASE ? HD_C_WRITE : HD_C_READ);
	t->start = start_atomic;
	return rc;
}
