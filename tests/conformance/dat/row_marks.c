/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * D1, D5: how many buffers an endpoint has, and high watermarks: dat_ep_recv_query(3DAT),
 * dat_ep_set_watermark(3DAT).
 */
#include "dt.h"

#define INFINITE DAT_WATERMARK_INFINITE

static const struct dt_want shared = { .srq = true };

static void send_one(struct dt_pair *p)
{
	dt_send(&p->a, p->a.ep, 0, 8, 7, DAT_COMPLETION_DEFAULT_FLAG);
	dt_dto(&p->a, p->a.request, p->a.ep, 7, DAT_DTO_SUCCESS);
}

static void buffers(struct dt *d, int allocated, int span)
{
	DAT_COUNT a = -5, s = -5;

	DT_OK(d->ct, dat_ep_recv_query(d->ep, &a, &s));
	CT_EQ(d->ct, a, allocated);
	CT_EQ(d->ct, s, span);
	DT_OK(d->ct, dat_ep_recv_query(d->ep, &a, NULL));
	DT_OK(d->ct, dat_ep_recv_query(d->ep, NULL, &s));
}

static void expect_soft(struct dt *d)
{
	DAT_ASYNCH_ERROR_EVENT_DATA data = dt_any(d, d->async).event_data.asynch_error_event_data;

	CT_TRUE(d->ct, data.dat_handle == d->ep);
	CT_EQ(d->ct, data.reason, DAT_SRQ_SOFT_HIGH_WATERMARK_EVENT);
}

/* ---- how many -------------------------------------------------------------------------------- */

/* What is posted to an endpoint's own queue is its own; of a shared one, what it takes. */
static void counts(struct ct *ct)
{
	DAT_PROVIDER_ATTR attr;
	struct dt_pair p;

	dt_pair_open(ct, &p, NULL);
	DT_OK(ct, dat_ia_query(p.a.ia, NULL, 0, NULL, DAT_PROVIDER_FIELD_ALL, &attr));
	CT_TRUE(ct, attr.ep_recv_info_supported && attr.srq_info_supported);
	buffers(&p.b, 0, 0);
	for (uint64_t i = 0; i < 3; i++)
		dt_recv(&p.b, p.b.ep, 64 * i, 64, i);
	buffers(&p.b, 3, 0);
	send_one(&p);
	buffers(&p.b, 2, 0);
	dt_dto(&p.b, p.b.recv, p.b.ep, 0, DAT_DTO_SUCCESS);
	buffers(&p.b, 2, 0);
	DT_TYPE(ct, dat_ep_recv_query(p.b.pz, NULL, NULL), DAT_INVALID_HANDLE);
	dt_part(&p.a, p.a.ep, &p.b, p.b.ep);
	buffers(&p.b, 0, 0);
	dt_pair_close(&p);
	dt_pair_open(ct, &p, &shared);
	for (uint64_t i = 0; i < 3; i++)
		dt_srq_recv(&p.b, 64 * i, 64, i);
	buffers(&p.b, 0, 0);
	send_one(&p);
	buffers(&p.b, 0, 0); /* it has completed */
	dt_dto(&p.b, p.b.recv, p.b.ep, 0, DAT_DTO_SUCCESS);
	dt_pair_close(&p);
}

/* Taken from a shared queue, until its completion is read. */
static void outstanding(struct ct *ct)
{
	struct dt_pair p;

	dt_pair_open(ct, &p, &shared);
	for (uint64_t i = 0; i < 6; i++)
		dt_srq_recv(&p.b, 64 * i, 64, i);
	for (int i = 0; i < 4; i++)
		send_one(&p);
	for (int left = 6; left > 2; left--) {
		DAT_SRQ_PARAM q;

		DT_OK(ct, dat_srq_query(p.b.srq, DAT_SRQ_FIELD_ALL, &q));
		CT_EQ(ct, q.available_dto_count, 2);
		CT_EQ(ct, q.outstanding_dto_count, left);
		dt_event(&p.b, p.b.recv, DAT_DTO_COMPLETION_EVENT);
	}
	dt_pair_close(&p);
}

/* ---- soft ------------------------------------------------------------------------------------ */

/*
 * Once for each setting, when there are more than that; in the call, where there are more already;
 * again when some were given back.
 */
static void soft(struct ct *ct)
{
	DAT_EP_PARAM param;
	struct dt_pair p;

	dt_pair_open(ct, &p, &shared);
	for (uint64_t i = 0; i < 12; i++)
		dt_srq_recv(&p.b, 64 * i, 64, i);
	DT_OK(ct, dat_ep_set_watermark(p.b.ep, 2, INFINITE));
	DT_OK(ct, dat_ep_query(p.b.ep, DAT_EP_FIELD_EP_ATTR_SRQ_SOFT_HW, &param));
	CT_EQ(ct, param.ep_attr.srq_soft_hw, 2);
	send_one(&p);
	send_one(&p);
	dt_quiet(&p.b, p.b.async, 20, "two are not more than two");
	send_one(&p);
	expect_soft(&p.b);
	send_one(&p);
	dt_quiet(&p.b, p.b.async, 20, "only once");
	DT_OK(ct, dat_ep_set_watermark(p.b.ep, 3, INFINITE)); /* four */
	expect_soft(&p.b);
	DT_OK(ct, dat_ep_set_watermark(p.b.ep, 4, INFINITE));
	for (uint64_t i = 0; i < 4; i++)
		dt_dto(&p.b, p.b.recv, p.b.ep, i, DAT_DTO_SUCCESS);
	for (int i = 0; i < 4; i++)
		send_one(&p);
	dt_quiet(&p.b, p.b.async, 20, "what has been read counts no more");
	send_one(&p);
	expect_soft(&p.b);
	DT_OK(ct, dat_ep_set_watermark(p.b.ep, 5, INFINITE));
	DT_OK(ct, dat_ep_set_watermark(p.b.ep, INFINITE, INFINITE));
	send_one(&p);
	dt_quiet(&p.b, p.b.async, 20, "it is not wanted any more");
	dt_quiet(&p.b, p.b.connect, 1, "the connection stands");
	dt_pair_close(&p);
}

/*
 * Seen even where nobody makes progress between taking and reading: posting a buffer lets in a
 * message that waited for it.
 */
static void waited(struct ct *ct)
{
	struct dt_pair p;

	dt_pair_open(ct, &p, &shared);
	DT_OK(ct, dat_ep_set_watermark(p.b.ep, 2, INFINITE));
	for (int i = 0; i < 3; i++)
		dt_send(&p.a, p.a.ep, 0, 8, 7, DAT_COMPLETION_DEFAULT_FLAG);
	dt_sleep(20); /* they come, with no buffer that would tell */
	for (uint64_t i = 0; i < 3; i++)
		dt_srq_recv(&p.b, 64 * i, 64, i);
	for (uint64_t i = 0; i < 3; i++)
		dt_dto(&p.b, p.b.recv, p.b.ep, i, DAT_DTO_SUCCESS);
	expect_soft(&p.b);
	dt_pair_close(&p);
}

/* As an attribute, for an endpoint that is not connected yet, and one with a queue of its own. */
static void attribute(struct ct *ct)
{
	DAT_EP_PARAM param;
	struct dt_pair p;

	dt_pair_make(ct, &p);
	param.ep_attr.srq_soft_hw = 1;
	DT_OK(ct, dat_ep_modify(p.b.ep, DAT_EP_FIELD_EP_ATTR_SRQ_SOFT_HW, &param));
	dt_join(&p.a, p.a.ep, &p.b, p.b.ep);
	for (uint64_t i = 0; i < 4; i++)
		dt_recv(&p.b, p.b.ep, 64 * i, 64, i);
	send_one(&p);
	dt_quiet(&p.b, p.b.async, 20, "one is not more than one");
	send_one(&p);
	expect_soft(&p.b);
	param.ep_attr.srq_soft_hw = -7;
	DT_TYPE(ct, dat_ep_modify(p.b.ep, DAT_EP_FIELD_EP_ATTR_SRQ_SOFT_HW, &param), DAT_INVALID_PARAMETER);
	dt_pair_close(&p);
}

/* ---- hard ------------------------------------------------------------------------------------ */

/*
 * The connection breaks; what was taken is received, what was not stays in the queue, and the
 * endpoint may connect again.
 */
static void hard(struct ct *ct)
{
	struct dt_pair p;
	DAT_SRQ_PARAM q;

	dt_pair_open(ct, &p, &shared);
	DT_OK(ct, dat_ep_set_watermark(p.b.ep, 1, 2));
	for (uint64_t i = 0; i < 8; i++)
		dt_srq_recv(&p.b, 64 * i, 64, i);
	for (int i = 0; i < 3; i++)
		dt_send(&p.a, p.a.ep, 0, 8, 7, DAT_COMPLETION_SUPPRESS_FLAG);
	dt_conn(&p.b, p.b.ep, DAT_CONNECTION_EVENT_BROKEN);
	dt_conn(&p.a, p.a.ep, DAT_CONNECTION_EVENT_BROKEN);
	expect_soft(&p.b);
	for (uint64_t i = 0; i < 3; i++)
		dt_dto(&p.b, p.b.recv, p.b.ep, i, DAT_DTO_SUCCESS);
	DT_OK(ct, dat_srq_query(p.b.srq, DAT_SRQ_FIELD_ALL, &q));
	CT_EQ(ct, q.available_dto_count, 5);
	CT_EQ(ct, q.outstanding_dto_count, 5);
	DT_OK(ct, dat_ep_reset(p.a.ep));
	DT_OK(ct, dat_ep_reset(p.b.ep));
	dt_join(&p.a, p.a.ep, &p.b, p.b.ep);
	send_one(&p);
	send_one(&p);
	dt_quiet(&p.b, p.b.connect, 20, "two are not more than two");
	DT_OK(ct, dat_ep_set_watermark(p.b.ep, INFINITE, 1)); /* it has two */
	dt_conn(&p.b, p.b.ep, DAT_CONNECTION_EVENT_BROKEN);
	CT_EQ(ct, dt_state(&p.b, p.b.ep), DAT_EP_STATE_DISCONNECTED);
	dt_conn(&p.a, p.a.ep, DAT_CONNECTION_EVENT_BROKEN);
	dt_pair_close(&p);
}

static void errors(struct ct *ct)
{
	DAT_PROVIDER_ATTR attr;
	struct dt d;

	dt_open(ct, &d, &shared);
	DT_OK(ct, dat_ia_query(d.ia, NULL, 0, NULL, DAT_PROVIDER_FIELD_ALL, &attr));
	CT_TRUE(ct, attr.srq_watermarks_supported);
	DT_OK(ct, dat_ep_set_watermark(d.ep, 0, 0)); /* in all states; it has none */
	DT_TYPE(ct, dat_ep_set_watermark(d.ep, -2, 1), DAT_INVALID_PARAMETER);
	DT_TYPE(ct, dat_ep_set_watermark(d.ep, 1, -2), DAT_INVALID_PARAMETER);
	DT_TYPE(ct, dat_ep_set_watermark(d.srq, 1, 1), DAT_INVALID_HANDLE);
	dt_quiet(&d, d.async, 20, "it has no buffers");
	dt_close(&d);
}

const struct ct_case dt_marks[] = {
	{ "D1", "buffers of an endpoint", { counts } },
	{ "D1", "outstanding buffers", { outstanding } },
	{ "D1", "soft high watermark", { soft } },
	{ "D1", "watermark of what waited", { waited } },
	{ "D1", "watermark as an attribute", { attribute } },
	{ "D5", "hard high watermark", { hard } },
	{ "D1", "watermark errors", { errors } },
	{ NULL },
};
