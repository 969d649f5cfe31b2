/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * ibv_open_qp(3) of a queue pair that is in another context of the host, and of the same inode's
 * domain. It stays there, and lives until the last handle has gone, wherever that is; what is done
 * to it through a handle here is a question that its context answers. When that context goes, the
 * queue pair is in error for all who have it.
 */
#include "front/verbs/call.h"

#include "base/random.h"
#include "front/verbs/xrc/xrc.h"

#include <errno.h>
#include <stdlib.h>

struct asking {
	struct hv_ask_head head; /* number: the queue pair's */
	uint64_t secret;	 /* which of those who have it asks */
	int32_t mask;		 /* HV_ASK_MODIFY; HV_ASK_EVENT: enum ibv_event_type */
	int32_t zero;
	struct ibv_qp_attr attr;
};

struct telling {
	int32_t err; /* a positive errno */
	uint32_t qp_state;
	struct ibv_qp_attr attr;
	struct ibv_qp_cap cap;
	int32_t sq_sig_all;
};

static_assert(sizeof(struct asking) <= HD_ASK_MAX && sizeof(struct telling) <= HD_ASK_MAX,
	      "questions and answers find room");

/* ---- who has a handle ------------------------------------------------------------------------ */

struct hv_far {
	LIST_ENTRY(hv_far) entry; /* hv_context.fars */
	struct hv_domain *domain;
	struct hv_qp *handle; /* NULL: it is not made yet */
	uint64_t secret;
	uint32_t number;
	struct hd_dest *to;
	struct hd_follow follow;
	bool gone; /* the queue pair is no more */
};

/*
 * 0 or a positive errno: *err that of the question, else that of its answer, which is in *t.
 * Without the lock; no point of cancellation.
 */
static int far_call(struct hv_far *far, struct asking *q, struct telling *t, int *err)
{
	struct hv_context *ctx = far->domain->ctx;
	struct hv_call *c;

	q->head.number = far->number;
	q->head.domain = far->domain->number;
	q->secret = far->secret;
	*err = EIO;
	if (!hv_enter(ctx))
		return EIO;
	*err = -hv_domain_voice(far->domain);
	if (!*err)
		*err = hv_call_start(ctx, far->domain->voice, far->to, q, sizeof(*q), &c);
	hv_leave(ctx);
	if (!*err)
		*err = hv_call_end(ctx, c, t, sizeof(*t), -1);
	return *err ? *err : t->err;
}

/* ---- opening and closing --------------------------------------------------------------------- */

/* The queue pair, or its context, is no more. With the lock. */
static void far_lost(struct hd_follow *follow, int err)
{
	struct hv_far *far = hv_container(follow, struct hv_far, follow);
	struct ibv_async_event event = { .event_type = IBV_EVENT_QP_FATAL };

	if (!err || far->gone)
		return;
	far->gone = true;
	if (!far->handle)
		return;
	event.element.qp = &far->handle->pub.qp_base;
	hv_event_post(far->domain->ctx, &event, &far->handle->target);
}

static void far_free(struct hv_far *far)
{
	LIST_REMOVE(far, entry);
	hd_dest_unfollow(far->to, &far->follow);
	hd_dest_put(far->to);
	free(far);
}

/* With the lock. 0 or -errno. */
static int far_make(struct hv_domain *d, uint32_t number, struct hv_far **out)
{
	struct hv_far *far = calloc(1, sizeof(*far));
	int rc = far ? hv_domain_dest(d, number, &far->to) : -ENOMEM;

	if (rc) {
		free(far);
		return rc;
	}
	if (hd_random(&far->secret, sizeof(far->secret))) {
		hd_dest_put(far->to);
		free(far);
		return -EIO;
	}
	far->domain = d;
	far->number = number;
	far->follow.fn = far_lost;
	hd_dest_follow(far->to, &far->follow);
	LIST_INSERT_HEAD(&d->ctx->fars, far, entry);
	*out = far;
	return 0;
}

/* The handle; NULL: no memory. With the lock. */
static struct hv_qp *far_handle_make(struct hv_far *far, struct hv_xrcd *xrcd, void *qp_context,
				     enum ibv_qp_state state)
{
	struct hv_qp *handle = hv_xrc_handle(NULL, xrcd, qp_context);

	if (!handle)
		return NULL;
	handle->pub.qp_base.qp_num = far->number;
	handle->pub.qp_base.state = state;
	handle->far = far;
	far->handle = handle;
	return handle;
}

struct ibv_qp *hv_far_open(struct hv_xrcd *xrcd, uint32_t number, void *qp_context)
{
	struct asking q = { .head.what = HV_ASK_OPEN };
	struct hv_context *ctx = xrcd->ctx;
	struct hv_qp *handle = NULL;
	struct hv_far *far = NULL;
	struct telling t;
	int rc, err;

	if (!hv_enter(ctx))
		return hv_fail(EIO);
	rc = -far_make(xrcd->domain, number, &far);
	hv_leave(ctx);
	if (rc)
		return hv_fail(rc == ENOMEM ? ENOMEM : EINVAL);
	rc = far_call(far, &q, &t, &err) ? EINVAL : 0;
	if (!rc && !hv_enter(ctx))
		return hv_fail(EIO);
	if (!rc) {
		handle = far_handle_make(far, xrcd, qp_context, t.qp_state);
		hv_leave(ctx);
		rc = handle ? 0 : ENOMEM;
	}
	if (!rc)
		return &handle->pub.qp_base;
	q.head.what = HV_ASK_CLOSE;
	if (rc == ENOMEM)
		far_call(far, &q, &t, &err);
	if (hv_enter(ctx)) {
		far_free(far);
		hv_leave(ctx);
	}
	return hv_fail(rc);
}

void hv_far_close(struct hv_qp *handle)
{
	struct asking q = { .head.what = HV_ASK_CLOSE };
	struct hv_context *ctx = handle->ctx;
	struct telling t;
	int err;

	if (!handle->far->gone)
		far_call(handle->far, &q, &t, &err);
	if (!hv_enter(ctx))
		return;
	far_free(handle->far);
	handle->far = NULL;
	hv_leave(ctx);
}

/* ---- what is done to it ---------------------------------------------------------------------- */

int hv_far_modify(struct hv_qp *handle, const struct ibv_qp_attr *attr, int mask)
{
	struct asking q = { .head.what = HV_ASK_MODIFY, .mask = mask, .attr = *attr };
	struct telling t;
	int err, rc = far_call(handle->far, &q, &t, &err);

	if (err)
		return EIO; /* it is gone */
	if (!rc)
		hv_qp_show(&handle->pub.qp_base, attr, mask);
	return rc;
}

int hv_far_query(struct hv_qp *handle, struct ibv_qp_attr *attr, int mask, struct ibv_qp_init_attr *init)
{
	struct asking q = { .head.what = HV_ASK_QUERY };
	struct ibv_qp *pub = &handle->pub.qp_base;
	struct telling t;
	int err;

	if (far_call(handle->far, &q, &t, &err))
		t = (struct telling){ .qp_state = IBV_QPS_ERR, .attr.qp_state = IBV_QPS_ERR };
	*attr = t.attr;
	*init = (struct ibv_qp_init_attr){ .qp_context = pub->qp_context,
					   .cap = t.cap,
					   .qp_type = IBV_QPT_XRC_RECV,
					   .sq_sig_all = t.sq_sig_all };
	hv_qp_show(pub, attr, mask);
	return 0;
}

/* ---- the queue pair's side ------------------------------------------------------------------- */

struct hv_sharer {
	LIST_ENTRY(hv_sharer) entry; /* hv_qp.sharers */
	struct hv_qp *real;
	uint64_t secret;
	struct hd_dest *from;
	struct hd_follow follow;
	bool over, asking;
	uint32_t events; /* to be told, a bit for each enum ibv_event_type */
	struct hd_ask ask;
	struct hd_deferred deferred;
};

static void sharer_free(struct hv_sharer *s)
{
	struct hv_qp *real = s->real;

	hd_deferred_drop(real->ctx->node, &s->deferred);
	LIST_REMOVE(s, entry);
	hd_dest_unfollow(s->from, &s->follow);
	free(s);
	if (!hv_xrc_is_held(real))
		hv_qp_gone(real);
}

static void kick(struct hv_sharer *s)
{
	hd_deferred_post(s->real->ctx->node, &s->deferred);
}

static void event_told(struct hd_ask *ask, int err)
{
	struct hv_sharer *s = hv_container(ask, struct hv_sharer, ask);

	s->asking = false;
	kick(s);
}

static void event_ask(struct hv_sharer *s)
{
	int type = __builtin_ctz(s->events);
	const struct asking q = { .head = { HV_ASK_EVENT, s->real->pub.qp_base.qp_num,
					    s->real->domain->number },
				  .secret = s->secret,
				  .mask = type };

	s->events &= ~(1u << type);
	s->ask.told = event_told;
	s->asking = !hv_domain_voice(s->real->domain) &&
		    !hd_ep_ask(s->real->domain->voice, s->from, &q, sizeof(q), &s->ask);
}

static void sharer_run(struct hd_deferred *deferred)
{
	struct hv_sharer *s = hv_container(deferred, struct hv_sharer, deferred);

	if (s->asking)
		return;
	if (s->over)
		sharer_free(s);
	else if (s->events)
		event_ask(s);
}

static void sharer_lost(struct hd_follow *follow, int err)
{
	struct hv_sharer *s = hv_container(follow, struct hv_sharer, follow);

	if (!err)
		return;
	s->over = true;
	kick(s);
}

void hv_far_event(struct hv_qp *real, enum ibv_event_type type)
{
	struct hv_sharer *s;

	LIST_FOREACH(s, &real->sharers, entry) {
		s->events |= 1u << type;
		kick(s);
	}
}

static int far_share(struct hv_qp *real, const struct hd_question *q)
{
	const struct asking *a = q->data;
	struct hv_sharer *s = calloc(1, sizeof(*s));

	if (!s)
		return ENOMEM;
	s->real = real;
	s->secret = a->secret;
	s->from = q->from;
	s->deferred.fn = sharer_run;
	s->follow.fn = sharer_lost;
	hd_dest_follow(s->from, &s->follow);
	LIST_INSERT_HEAD(&real->sharers, s, entry);
	return 0;
}

static struct hv_sharer *sharer_of(const struct hv_qp *real, const struct hd_question *q)
{
	const struct asking *a = q->data;
	struct hv_sharer *s;

	LIST_FOREACH(s, &real->sharers, entry)
		if (s->secret == a->secret && s->from == q->from && !s->over)
			return s;
	return NULL;
}

static int far_carry_out(struct hv_qp *real, const struct hd_question *q)
{
	const struct asking *a = q->data;
	struct hv_sharer *s = sharer_of(real, q);

	if (a->head.what == HV_ASK_OPEN)
		return s ? EINVAL : far_share(real, q);
	if (!s)
		return EINVAL;
	if (a->head.what == HV_ASK_CLOSE) {
		s->over = true;
		kick(s);
	}
	return a->head.what == HV_ASK_MODIFY ? hv_qp_modify(real, &a->attr, a->mask) : 0;
}

int hv_far_asked(void *owner, const struct hd_question *q)
{
	struct hv_qp *real = owner;
	const struct asking *a = q->data;
	struct telling t = { .err = EINVAL };

	if (q->len != sizeof(*a) || !hv_ask_is_right(real->domain, q, a->head.what, sizeof(*a)) ||
	    a->head.what < HV_ASK_OPEN || a->head.what > HV_ASK_CLOSE)
		return -EINVAL;
	t.err = far_carry_out(real, q);
	t.attr = real->attr;
	t.qp_state = t.attr.qp_state = t.attr.cur_qp_state = hv_qp_look(real);
	hv_qp_psns(real, &t.attr);
	t.cap = t.attr.cap = real->cap;
	t.sq_sig_all = real->init.sq_sig_all;
	memcpy(q->answer, &t, sizeof(t));
	return sizeof(t);
}

/* ---- events ---------------------------------------------------------------------------------- */

/* The events of a queue pair that receives. */
static bool is_told(enum ibv_event_type type)
{
	return type == IBV_EVENT_QP_FATAL || type == IBV_EVENT_QP_REQ_ERR ||
	       type == IBV_EVENT_QP_ACCESS_ERR || type == IBV_EVENT_QP_LAST_WQE_REACHED ||
	       type == IBV_EVENT_COMM_EST;
}

int hv_far_told(void *owner, const struct hd_question *q)
{
	struct hv_domain *d = owner;
	const struct asking *a = q->data;
	struct ibv_async_event event = { .event_type = 0 };
	struct hv_far *far;

	if (!hv_ask_is_right(d, q, HV_ASK_EVENT, sizeof(*a)))
		return -EINVAL;
	event.event_type = (enum ibv_event_type)a->mask;
	if (!is_told(event.event_type))
		return -EINVAL;
	LIST_FOREACH(far, &d->ctx->fars, entry)
		if (far->secret == a->secret && far->number == a->head.number && far->handle) {
			event.element.qp = &far->handle->pub.qp_base;
			hv_event_post(d->ctx, &event, &far->handle->target);
		}
	return 0;
}
