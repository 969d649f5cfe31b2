/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* D3: who is told of a completion, and where it goes. */
#include "dt.h"

static void pass_one(struct dt_pair *p, DAT_COMPLETION_FLAGS flags)
{
	dt_send(&p->a, p->a.ep, 0, 8, 0,
		(DAT_COMPLETION_FLAGS)((unsigned)flags | DAT_COMPLETION_SUPPRESS_FLAG));
}

/* How many completions are in the queue: a wait for nothing tells. */
static void await_count(struct dt *d, DAT_EVD_HANDLE evd, DAT_COUNT n)
{
	double end = ct_deadline(d->ct);
	DAT_SRQ_PARAM q;

	do {
		ct_late(d->ct, end, "messages to come");
		DT_OK(d->ct, dat_srq_query(d->srq, DAT_SRQ_FIELD_ALL, &q));
		dt_sleep(1);
	} while (q.available_dto_count > 16 - n);
}

static void open_with(struct ct *ct, struct dt_pair *p, DAT_COMPLETION_FLAGS recv_flags)
{
	const struct dt_want want = { .srq = true, .recv_flags = recv_flags };

	dt_pair_open(ct, p, &want);
	for (uint64_t i = 0; i < 16; i++)
		dt_srq_recv(&p->b, i * 8, 8, i);
}

/* The usual for endpoints with a shared queue: each completion is told of. */
static void unsignalled(struct ct *ct)
{
	struct dt_waiter w;
	struct dt_pair p;

	open_with(ct, &p, DAT_COMPLETION_UNSIGNALLED_FLAG);
	dt_waiter_start(&p.b, &w, p.b.recv, 1);
	pass_one(&p, DAT_COMPLETION_DEFAULT_FLAG);
	dt_waiter_ok(&p.b, &w);
	CT_EQ(ct, w.event.event_data.dto_completion_event_data.user_cookie.as_64, 0);
	dt_pair_close(&p);
}

/*
 * The waiter sleeps on until the sender asks for it; then it gets the first,
 * and the others are there.
 */
static void solicited(struct ct *ct)
{
	struct dt_waiter w;
	struct dt_pair p;

	open_with(ct, &p, DAT_COMPLETION_SOLICITED_WAIT_FLAG);
	dt_waiter_start(&p.b, &w, p.b.recv, 1);
	pass_one(&p, DAT_COMPLETION_DEFAULT_FLAG);
	pass_one(&p, DAT_COMPLETION_DEFAULT_FLAG);
	await_count(&p.b, p.b.recv, 2);
	dt_waits_on(ct, &w.done);
	pass_one(&p, DAT_COMPLETION_SOLICITED_WAIT_FLAG);
	dt_waiter_ok(&p.b, &w);
	CT_EQ(ct, w.event.event_data.dto_completion_event_data.user_cookie.as_64, 0);
	CT_EQ(ct, w.more, 2);
	for (uint64_t i = 1; i < 3; i++)
		dt_dto(&p.b, p.b.recv, p.b.ep, i, DAT_DTO_SUCCESS);
	dt_pair_close(&p);
}

/* Flushed receives and other errors are told of even so. */
static void solicited_error(struct ct *ct)
{
	struct dt_waiter w;
	struct dt_pair p;

	open_with(ct, &p, DAT_COMPLETION_SOLICITED_WAIT_FLAG);
	dt_waiter_start(&p.b, &w, p.b.recv, 1);
	dt_send(&p.a, p.a.ep, 0, 9, 0, DAT_COMPLETION_SUPPRESS_FLAG);
	dt_waiter_ok(&p.b, &w);
	CT_EQ(ct, w.event.event_data.dto_completion_event_data.status, DAT_DTO_ERR_LOCAL_LENGTH);
	dt_ended(&p.b, p.b.ep);
	dt_pair_close(&p);
}

static void threshold(struct ct *ct)
{
	struct dt_waiter w;
	struct dt_pair p;

	open_with(ct, &p, DAT_COMPLETION_EVD_THRESHOLD_FLAG);
	dt_waiter_start(&p.b, &w, p.b.recv, 4);
	for (int i = 0; i < 3; i++)
		pass_one(&p, DAT_COMPLETION_DEFAULT_FLAG);
	await_count(&p.b, p.b.recv, 3);
	dt_waits_on(ct, &w.done);
	pass_one(&p, DAT_COMPLETION_DEFAULT_FLAG);
	dt_waiter_ok(&p.b, &w);
	CT_TRUE(ct, w.more >= 3);
	for (uint64_t i = 1; i < 4; i++)
		dt_dto(&p.b, p.b.recv, p.b.ep, i, DAT_DTO_SUCCESS);
	dt_pair_close(&p);
}

/* A threshold is for queues in which every completion is told of. */
static void threshold_controlled(struct ct *ct)
{
	const struct dt_want want = { .recv_flags = DAT_COMPLETION_SOLICITED_WAIT_FLAG,
				      .request_flags = DAT_COMPLETION_UNSIGNALLED_FLAG };
	DAT_COUNT more;
	DAT_EVENT event;
	struct dt d;

	dt_open(ct, &d, &want);
	DT_TYPE(ct, dat_evd_wait(d.recv, 1000, 2, &event, &more), DAT_INVALID_STATE);
	DT_TYPE(ct, dat_evd_wait(d.request, 1000, 2, &event, &more), DAT_INVALID_STATE);
	DT_TYPE(ct, dat_evd_wait(d.recv, 1000, 1, &event, &more), DAT_TIMEOUT_EXPIRED);
	DT_TYPE(ct, dat_evd_wait(d.connect, 1000, 2, &event, &more), DAT_TIMEOUT_EXPIRED);
	DT_OK(ct, dat_ep_free(d.ep));
	d.ep = NULL;
	DT_TYPE(ct, dat_evd_wait(d.recv, 1000, 2, &event, &more), DAT_TIMEOUT_EXPIRED);
	dt_close(&d);
}

/* Two endpoints of one queue with queues of their own for completions. */
static void whose(struct ct *ct)
{
	struct dt_pair p;
	DAT_EVD_HANDLE first, other;
	DAT_EP_HANDLE from, to;

	open_with(ct, &p, DAT_COMPLETION_DEFAULT_FLAG);
	first = p.b.recv;
	other = p.b.recv = dt_evd(&p.b, 16, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG);
	to = dt_ep(&p.b);
	p.b.recv = first;
	from = dt_ep(&p.a);
	dt_join(&p.a, from, &p.b, to);
	dt_send(&p.a, from, 0, 8, 1, DAT_COMPLETION_DEFAULT_FLAG);
	dt_dto(&p.b, other, to, 0, DAT_DTO_SUCCESS);
	dt_send(&p.a, p.a.ep, 0, 8, 2, DAT_COMPLETION_DEFAULT_FLAG);
	dt_dto(&p.b, first, p.b.ep, 1, DAT_DTO_SUCCESS);
	dt_quiet(&p.b, other, 20, "that was not its endpoint's");
	DT_OK(ct, dat_ep_free(from));
	DT_OK(ct, dat_ep_free(to));
	DT_OK(ct, dat_evd_free(other));
	dt_pair_close(&p);
}

/* Requests: suppressed, unsignalled, and what an endpoint was not made for. */
static void requests(struct ct *ct)
{
	const struct dt_want want = { .request_flags = DAT_COMPLETION_UNSIGNALLED_FLAG,
				      .recv_flags = DAT_COMPLETION_UNSIGNALLED_FLAG };
	struct dt_waiter w;
	struct dt_pair p;

	dt_pair_open(ct, &p, &want);
	for (uint64_t i = 0; i < 3; i++)
		DT_OK(ct, dat_ep_post_recv(p.b.ep, 0, NULL, dt_cookie(i),
					   i < 2 ? DAT_COMPLETION_UNSIGNALLED_FLAG : 0));
	dt_waiter_start(&p.a, &w, p.a.request, 1);
	dt_send(&p.a, p.a.ep, 0, 0, 1, DAT_COMPLETION_SUPPRESS_FLAG);
	dt_send(&p.a, p.a.ep, 0, 0, 2, DAT_COMPLETION_UNSIGNALLED_FLAG);
	dt_waits_on(ct, &w.done);
	dt_send(&p.a, p.a.ep, 0, 0, 3, DAT_COMPLETION_DEFAULT_FLAG);
	dt_waiter_ok(&p.a, &w);
	CT_EQ(ct, w.event.event_data.dto_completion_event_data.user_cookie.as_64, 2);
	dt_dto(&p.a, p.a.request, p.a.ep, 3, DAT_DTO_SUCCESS);
	for (uint64_t i = 0; i < 3; i++)
		dt_dto(&p.b, p.b.recv, p.b.ep, i, DAT_DTO_SUCCESS);
	dt_pair_close(&p);
}

static void not_made_for(struct ct *ct)
{
	struct dt_pair p;

	dt_pair_open(ct, &p, NULL);
	DT_TYPE(ct, dat_ep_post_send(p.a.ep, 0, NULL, dt_cookie(0), DAT_COMPLETION_UNSIGNALLED_FLAG),
		DAT_INVALID_PARAMETER);
	DT_TYPE(ct, dat_ep_post_recv(p.a.ep, 0, NULL, dt_cookie(0), DAT_COMPLETION_UNSIGNALLED_FLAG),
		DAT_INVALID_PARAMETER);
	DT_TYPE(ct, dat_ep_post_recv(p.a.ep, 0, NULL, dt_cookie(0), DAT_COMPLETION_SUPPRESS_FLAG),
		DAT_INVALID_PARAMETER);
	DT_TYPE(ct, dat_ep_post_send(p.a.ep, 0, NULL, dt_cookie(0), (DAT_COMPLETION_FLAGS)0x100),
		DAT_INVALID_PARAMETER);
	dt_pair_close(&p);
}

const struct ct_case dt_flags[] = {
	{ "D3", "unsignalled", { unsignalled } },
	{ "D3", "solicited wait", { solicited } },
	{ "D3", "solicited wait error", { solicited_error } },
	{ "D3", "threshold", { threshold } },
	{ "D3", "threshold refused", { threshold_controlled } },
	{ "D3", "whose queue", { whose } },
	{ "D3", "requests", { requests } },
	{ "D3", "flags refused", { not_made_for } },
	{ NULL },
};
