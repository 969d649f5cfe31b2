/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Queues of an inode's domain that messages name although they come by a queue pair of another
 * context. Its context asks the queue's for a guest, and pairs an endpoint of its own with it, by
 * which the engine sends on what names that queue:
 *
 *	sender ──► queue pair ─┈ hv_via ──────────► hv_guest ─► queue
 *
 * A guest has the number of the queue pair, so that is what completions say.
 */
#include "front/verbs/xrc/xrc.h"

#include <errno.h>
#include <stdlib.h>

#define NAMING (HD_EP_NUMBERED | HD_EP_PAIRED | HD_EP_STRICT | HD_EP_XRC)

struct lend {
	struct hv_ask_head head; /* number: the queue's */
	uint32_t via;		 /* number of the endpoint that wants to be paired */
	uint32_t qpn, dest_qpn;	 /* of the queue pair: its own, its other end's */
	uint32_t rnr_timer_us;
};

/* ---- the queue pair's side ------------------------------------------------------------------- */

struct hv_via {
	LIST_ENTRY(hv_via) entry; /* hv_domain.vias */
	struct hv_domain *domain;
	struct hv_qp *qp; /* NULL: it wants it no longer */
	uint32_t number;
	struct hd_ep *ep;
	struct hd_dest *to; /* the queue */
	bool asking;
	int err;
	struct hd_ask ask;
	struct hd_deferred deferred; /* the answer has come */
};

static void via_free(struct hv_via *via)
{
	hd_deferred_drop(via->domain->ctx->node, &via->deferred);
	LIST_REMOVE(via, entry);
	hd_ep_close(via->ep);
	hd_dest_put(via->to);
	free(via);
}

static int guest_number(const struct hv_via *via, uint32_t *out)
{
	if (via->err || via->ask.len != sizeof(*out))
		return -ENOENT;
	memcpy(out, via->ask.answer, sizeof(*out));
	return 0;
}

/* The way is there, or there is none. */
static void lend_answered(struct hd_deferred *deferred)
{
	struct hv_via *via = hv_container(deferred, struct hv_via, deferred);
	struct hd_qp_attr attr = { .rnr_retry = 7, .rnr_timer_us = 10000 };
	struct sockaddr_storage name;
	uint32_t number;
	int rc;

	if (!via->qp) {
		via_free(via);
		return;
	}
	rc = guest_number(via, &number);
	if (!rc && !hd_node_address(via->domain->ctx->node, 0, &name))
		rc = -ENOENT;
	if (!rc) {
		hd_name_set_number((struct sockaddr *)&name, number);
		attr.to = (struct sockaddr *)&name;
		rc = hd_ep_pair(via->ep, &attr);
	}
	hd_ep_proxy(via->qp->ep, via->number, rc ? NULL : via->ep);
	if (rc)
		via_free(via);
}

static void lend_told(struct hd_ask *ask, int err)
{
	struct hv_via *via = hv_container(ask, struct hv_via, ask);

	via->asking = false;
	via->err = err;
	via->deferred.fn = lend_answered;
	hd_deferred_post(via->domain->ctx->node, &via->deferred);
}

static int via_open(struct hv_via *via)
{
	const struct hd_ep_attr attr = { .type = HD_EP_RDM, .policy = NAMING, .tx_size = 4 };
	struct hv_domain *d = via->domain;
	int rc = hv_domain_voice(d);

	if (!rc)
		rc = hd_ep_open(d->ctx->node, &attr, &via->ep);
	if (rc)
		return rc;
	rc = hv_domain_dest(d, via->number, &via->to);
	if (rc)
		hd_ep_close(via->ep);
	return rc;
}

static int via_ask(struct hv_via *via)
{
	const struct lend q = { .head = { HV_ASK_LEND, via->number, via->domain->number },
				.via = hd_ep_number(via->ep),
				.qpn = via->qp->pub.qp_base.qp_num,
				.dest_qpn = via->qp->attr.dest_qp_num,
				.rnr_timer_us = hv_rnr_timer_us(via->qp->attr.min_rnr_timer) };

	via->ask.told = lend_told;
	via->asking = true;
	return hd_ep_ask(via->domain->voice, via->to, &q, sizeof(q), &via->ask);
}

/* What has failed, or is to be found anew. */
static void lend_forget(struct hv_qp *real, const uint32_t *number)
{
	struct hv_via *via, *next;

	for (via = LIST_FIRST(&real->domain->vias); via; via = next) {
		next = LIST_NEXT(via, entry);
		if (via->qp != real || (number && via->number != *number))
			continue;
		via->qp = NULL;
		if (!via->asking)
			via_free(via);
	}
}

void hv_lend_stray(void *owner, uint32_t number)
{
	struct hv_qp *real = owner;
	struct hv_via *via = calloc(1, sizeof(*via));
	int rc = -ENOMEM;

	lend_forget(real, &number);
	if (via) {
		via->domain = real->domain;
		via->qp = real;
		via->number = number;
		rc = via_open(via);
	}
	if (rc) {
		free(via);
		hd_ep_proxy(real->ep, number, NULL);
		return;
	}
	LIST_INSERT_HEAD(&real->domain->vias, via, entry);
	if (via_ask(via)) {
		via_free(via);
		hd_ep_proxy(real->ep, number, NULL);
	}
}

void hv_lend_forget(struct hv_qp *real)
{
	lend_forget(real, NULL);
}

/* ---- the queue's side ------------------------------------------------------------------------ */

struct hv_guest {
	LIST_ENTRY(hv_guest) entry; /* hv_domain.guests */
	struct hv_domain *domain;
	struct hv_qp qp;
	struct hd_dest *from; /* who sends by it */
	struct hd_follow follow;
	bool over;
	struct hd_deferred deferred;
};

static void guest_free(struct hv_guest *g)
{
	struct hv_context *ctx = g->domain->ctx;

	hd_deferred_drop(ctx->node, &g->deferred);
	LIST_REMOVE(g, entry);
	hd_dest_unfollow(g->from, &g->follow);
	hd_dest_put(g->from);
	hd_ep_close(g->qp.ep);
	hv_xrc_drop(ctx, g->qp.index);
	((struct hv_qps *)ctx->qps)->at[g->qp.index] = NULL;
	free(g);
}

/* Those that nobody sends by, and whose completions have been polled. */
static void lend_sweep(struct hv_domain *d)
{
	struct hv_guest *g, *next;

	for (g = LIST_FIRST(&d->guests); g; g = next) {
		next = LIST_NEXT(g, entry);
		if (g->over && !hv_xrc_has(d->ctx, g->qp.index))
			guest_free(g);
	}
}

static void lend_over(struct hd_deferred *deferred)
{
	lend_sweep(hv_container(deferred, struct hv_guest, deferred)->domain);
}

static void lend_followed(struct hd_follow *follow, int err)
{
	struct hv_guest *g = hv_container(follow, struct hv_guest, follow);

	if (!err)
		return;
	g->over = true;
	g->deferred.fn = lend_over;
	hd_deferred_post(g->domain->ctx->node, &g->deferred);
}

/*
 * Its endpoint, which the queue pair's context vouches for; it is found by its
 * completions from now on.
 */
static int guest_open(struct hv_guest *g)
{
	const struct hd_ep_attr attr = {
		.type = HD_EP_RDM, .policy = NAMING, .tx_size = 4, .domain = g->domain->number
	};
	int rc = hd_ep_open(g->domain->ctx->node, &attr, &g->qp.ep);

	if (rc)
		return rc;
	hd_ep_allow(g->qp.ep, HD_EP_REMOTE_READ | HD_EP_REMOTE_WRITE | HD_EP_REMOTE_ATOMIC);
	rc = hv_qp_enter(&g->qp);
	if (rc)
		hd_ep_close(g->qp.ep);
	return rc;
}

static int guest_pair(struct hv_guest *g, const struct hd_question *q, const struct lend *l)
{
	struct hd_node *node = g->domain->ctx->node;
	struct hd_qp_attr attr = { .rnr_timer_us = l->rnr_timer_us, .rnr_retry = 7 };
	struct sockaddr_storage name;
	int rc = hd_source_name(node, hd_dest_id(q->from), AF_UNSPEC, &name);

	if (rc)
		return rc;
	hd_name_set_number((struct sockaddr *)&name, l->via);
	attr.to = (struct sockaddr *)&name;
	rc = hd_dest_get(node, attr.to, &g->from);
	if (rc)
		return rc;
	rc = hd_ep_pair(g->qp.ep, &attr);
	if (rc)
		hd_dest_put(g->from);
	return rc;
}

static int lend(struct hv_domain *d, const struct hd_question *q, struct hv_guest *g)
{
	const struct lend *l = q->data;
	int rc;

	g->domain = d;
	g->qp.ctx = d->ctx;
	g->qp.transport = HV_XRC_RECV;
	g->qp.pub.qp_base.qp_num = l->qpn;
	g->qp.pub.qp_base.qp_type = IBV_QPT_XRC_RECV;
	g->qp.attr.dest_qp_num = l->dest_qpn;
	rc = guest_open(g);
	if (rc)
		return rc;
	rc = guest_pair(g, q, l);
	if (rc) {
		((struct hv_qps *)d->ctx->qps)->at[g->qp.index] = NULL;
		hd_ep_close(g->qp.ep);
		return rc;
	}
	g->follow.fn = lend_followed;
	hd_dest_follow(g->from, &g->follow);
	LIST_INSERT_HEAD(&d->guests, g, entry);
	return 0;
}

int hv_lend_asked(void *owner, const struct hd_question *q)
{
	struct hv_srq *srq = owner;
	struct hv_domain *d = srq->xrcd->domain;
	struct hv_guest *g;
	uint32_t number;
	int rc;

	if (!hv_ask_is_right(d, q, HV_ASK_LEND, sizeof(struct lend)))
		return -EINVAL;
	lend_sweep(d);
	g = calloc(1, sizeof(*g));
	if (!g)
		return -ENOMEM;
	rc = lend(d, q, g);
	if (rc) {
		free(g);
		return rc;
	}
	number = hd_ep_number(g->qp.ep);
	memcpy(q->answer, &number, sizeof(number));
	return sizeof(number);
}

void hv_lend_close(struct hv_domain *d)
{
	while (!LIST_EMPTY(&d->guests))
		guest_free(LIST_FIRST(&d->guests));
	if (d->voice && !LIST_EMPTY(&d->vias)) {
		hd_ep_close(d->voice); /* nobody answers any more */
		d->voice = NULL;
	}
	while (!LIST_EMPTY(&d->vias))
		via_free(LIST_FIRST(&d->vias));
}
