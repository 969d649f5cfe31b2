/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Receives under way: what of them is the same for matched endpoints and for queue pairs. */
#include "engine/xfer/rndv.h"
#include "engine/link/link.h"
#include "engine/mr/mr.h"

#include <errno.h>

void hd_rndv_describe(struct hd_rndv *v, enum hd_status status, struct hd_taken *t, struct hd_received *m)
{
	hd_recv_taken(v->recv, v->t.ep, t);
	*m = v->msg;
	m->status = status;
}

static void rndv_put(struct hd_rndv *v)
{
	hd_transfer_fini(&v->t);
	hd_bytes_put(&hd_rqs(v->t.ep->node)->bytes, v, sizeof(*v));
}

void hd_rndv_free(struct hd_rndv *v)
{
	hd_transfer_release(&v->t); /* which stand in the receive */
	hd_recv_free(v->t.ep->node, v->recv);
	rndv_put(v);
}

void hd_rndv_drop(struct hd_rndv *v)
{
	hd_transfer_release(&v->t);
	hd_recv_drop(v->t.ep->node, v->recv);
	rndv_put(v);
}

static struct hd_rndv *rndv_make(struct hd_ep *ep, struct hd_recv *r, const struct hd_msg *m,
				 const struct hd_transfer_owner *owner)
{
	struct hd_rndv *v = hd_bytes_get(&hd_rqs(ep->node)->bytes, sizeof(*v));
	uint64_t room = hd_recv_room(r);

	if (!v)
		return NULL;
	if (hd_transfer_init(&v->t, ep, owner) < 0) {
		hd_bytes_put(&hd_rqs(ep->node)->bytes, v, sizeof(*v));
		return NULL;
	}
	v->recv = r;
	hd_msg_describe(ep->node, m, &v->msg);
	v->t.remote = m->op;
	v->t.len = m->len;
	v->t.want = m->len < room ? m->len : room;
	v->t.iov = hd_recv_iov(r);
	v->t.count = r->count;
	v->t.ascends = r->flags & HD_RECV_ASCENDING;
	if (hd_unlikely(r->region != NULL))
		hd_transfer_hold(&v->t, hd_recv_regions(r));
	return v;
}

static void fail_at_once(struct hd_ep *ep, struct hd_recv *r, const struct hd_msg *m, enum hd_status status)
{
	struct hd_taken t = {
		.ep = ep, .ctx = r->ctx, .flags = r->flags, .whole = r->flags & HD_RECV_PART ? r->whole : NULL
	};
	struct hd_received what;

	hd_msg_describe(ep->node, m, &what);
	what.status = status;
	hd_recv_complete(&t, &what);
	hd_recv_free(ep->node, r);
}

struct hd_rndv *hd_rndv_take(struct hd_ep *ep, struct hd_peer *peer, struct hd_recv *r,
			     const struct hd_msg *m, const struct hd_transfer_owner *owner)
{
	struct hd_rndv *v = peer ? rndv_make(ep, r, m, owner) : NULL;

	if (v)
		return v;
	fail_at_once(ep, r, m, peer ? HD_S_NO_MEMORY : HD_S_LOST);
	if (peer)
		hd_answer_op(peer, HD_PKT_FIN, m->op, HD_S_NO_MEMORY);
	return NULL;
}
