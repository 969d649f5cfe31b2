/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* D1, D2, D4, D5: shared receive queues, dat_srq_create(3DAT) and the others. */
#include "dt.h"

#include <string.h>

static const struct dt_want shared = { .srq = true };

static DAT_SRQ_PARAM query(struct dt *d)
{
	DAT_SRQ_PARAM p;

	DT_OK(d->ct, dat_srq_query(d->srq, DAT_SRQ_FIELD_ALL, &p));
	return p;
}

/* ---- D1 -------------------------------------------------------------------------------------- */

/* The example of dat_srq_query(3DAT): available 3, 2, 2; outstanding 3, 3, 2, or unknown. */
static void counts(struct ct *ct)
{
	static const int available[] = { 3, 2, 2 }, outstanding[] = { 3, 3, 2 };
	struct dt_pair p;

	dt_pair_open(ct, &p, &shared);
	for (uint64_t i = 0; i < 3; i++)
		dt_srq_recv(&p.b, 64 * i, 64, i);
	for (int step = 0; step < 3; step++) {
		DAT_SRQ_PARAM q = query(&p.b);

		CT_TRUE(ct, q.pz_handle == p.b.pz);
		CT_EQ(ct, q.srq_state, DAT_SRQ_STATE_OPERATIONAL);
		CT_TRUE(ct, q.max_recv_dtos >= 64 && q.max_recv_iov >= 4);
		CT_EQ(ct, q.available_dto_count, available[step]);
		CT_TRUE(ct, q.outstanding_dto_count == outstanding[step] ||
				    q.outstanding_dto_count == DAT_VALUE_UNKNOWN);
		if (step == 0) {
			dt_send(&p.a, p.a.ep, 0, 8, 7, DAT_COMPLETION_DEFAULT_FLAG);
			dt_dto(&p.a, p.a.request, p.a.ep, 7, DAT_DTO_SUCCESS);
		} else if (step == 1) {
			dt_dto(&p.b, p.b.recv, p.b.ep, 0, DAT_DTO_SUCCESS);
		}
	}
	dt_pair_close(&p);
}

static void expect_low(struct dt *d)
{
	DAT_EVENT event = dt_any(d, d->async);

	CT_TRUE(d->ct, event.event_number >= DAT_ASYNC_ERROR_EVD_OVERFLOW &&
			       event.event_number <= DAT_ASYNC_ERROR_PROVIDER_INTERNAL_ERROR);
	CT_TRUE(d->ct, event.event_data.asynch_error_event_data.dat_handle == d->srq);
	CT_EQ(d->ct, event.event_data.asynch_error_event_data.reason, DAT_SRQ_LOW_WATERMARK_EVENT);
}

static void take(struct dt_pair *p, uint64_t cookie)
{
	dt_send(&p->a, p->a.ep, 0, 8, cookie, DAT_COMPLETION_SUPPRESS_FLAG);
	dt_any(&p->b, p->b.recv);
}

/*
 * Once for each setting, when there are fewer than that; in the call, where
 * there are fewer already.
 */
static void low_watermark(struct ct *ct)
{
	struct dt_pair p;

	dt_pair_open(ct, &p, &shared);
	dt_quiet(&p.b, p.b.async, 20, "a new queue is below nothing");
	for (uint64_t i = 0; i < 8; i++)
		dt_srq_recv(&p.b, 64 * i, 64, i);
	DT_OK(ct, dat_srq_set_lw(p.b.srq, 6));
	CT_EQ(ct, query(&p.b).low_watermark, 6);
	take(&p, 1);
	take(&p, 2);
	dt_quiet(&p.b, p.b.async, 20, "six are not fewer than six");
	take(&p, 3);
	expect_low(&p.b);
	take(&p, 4);
	dt_quiet(&p.b, p.b.async, 20, "only once");
	DT_OK(ct, dat_srq_set_lw(p.b.srq, 5)); /* four are left */
	expect_low(&p.b);
	DT_OK(ct, dat_srq_set_lw(p.b.srq, 2));
	DT_OK(ct, dat_srq_set_lw(p.b.srq, DAT_SRQ_LW_DEFAULT));
	take(&p, 5);
	take(&p, 6);
	take(&p, 7);
	dt_quiet(&p.b, p.b.async, 20, "it is not wanted any more");
	DT_TYPE(ct, dat_srq_set_lw(p.b.srq, query(&p.b).max_recv_dtos + 1), DAT_INVALID_PARAMETER);
	DT_TYPE(ct, dat_srq_set_lw(p.b.srq, -1), DAT_INVALID_PARAMETER);
	dt_pair_close(&p);
}

/* One that is created with a low watermark is below it at once. */
static void low_from_the_start(struct ct *ct)
{
	DAT_SRQ_ATTR attr = { 8, 2, 3 };
	struct dt d;

	dt_open(ct, &d, NULL);
	DT_OK(ct, dat_srq_create(d.ia, d.pz, &attr, &d.srq));
	CT_EQ(ct, query(&d).low_watermark, 3);
	expect_low(&d);
	DT_OK(ct, dat_srq_free(d.srq));
	d.srq = NULL;
	dt_close(&d);
}

/*
 * Buffers whose completions have not been read count as well:
 * dat_srq_resize(3DAT). Nothing is posted.
 */
static void unread(struct dt_pair *p)
{
	dt_srq_recv(&p->b, 0, 8, 1);
	dt_srq_recv(&p->b, 0, 8, 2);
	dt_send(&p->a, p->a.ep, 0, 8, 3, DAT_COMPLETION_DEFAULT_FLAG);
	dt_dto(&p->a, p->a.request, p->a.ep, 3, DAT_DTO_SUCCESS);
	CT_EQ(p->a.ct, query(&p->b).outstanding_dto_count, 2);
	DT_TYPE(p->a.ct, dat_srq_resize(p->b.srq, 1), DAT_INVALID_STATE);
	CT_EQ(p->a.ct, query(&p->b).max_recv_dtos, 16);
	dt_dto(&p->b, p->b.recv, p->b.ep, 1, DAT_DTO_SUCCESS);
	DT_OK(p->a.ct, dat_srq_resize(p->b.srq, 1));
	take(p, 4);
	for (int i = 0; i < 2; i++) {
		dt_srq_recv(&p->b, 0, 8, 5);
		dt_send(&p->a, p->a.ep, 0, 8, 6, DAT_COMPLETION_DEFAULT_FLAG);
		dt_dto(&p->a, p->a.request, p->a.ep, 6, DAT_DTO_SUCCESS);
	}
	dt_srq_recv(&p->b, 0, 8, 2);
	/* larger than it was, though there are more that nobody has read */
	DT_OK(p->a.ct, dat_srq_resize(p->b.srq, 2));
	for (int i = 0; i < 2; i++)
		dt_dto(&p->b, p->b.recv, p->b.ep, 5, DAT_DTO_SUCCESS);
	take(p, 4);
	DT_OK(p->a.ct, dat_srq_resize(p->b.srq, 16));
}

/* Full, larger, smaller; not below what is posted or the low watermark. */
static void resize(struct ct *ct)
{
	const struct dt_want want = { .srq = true, .srq_dtos = 4 };
	struct dt_pair p;
	DAT_LMR_TRIPLET seg;

	dt_pair_open(ct, &p, &want);
	seg = dt_seg(&p.b, 0, 8);
	for (uint64_t i = 0; i < (uint64_t)query(&p.b).max_recv_dtos; i++)
		dt_srq_recv(&p.b, 0, 8, i);
	DT_TYPE(ct, dat_srq_post_recv(p.b.srq, 1, &seg, dt_cookie(9)), DAT_INSUFFICIENT_RESOURCES);
	DT_OK(ct, dat_srq_resize(p.b.srq, 16));
	CT_TRUE(ct, query(&p.b).max_recv_dtos >= 16);
	for (uint64_t i = 4; i < 16; i++)
		dt_srq_recv(&p.b, 0, 8, i);
	DT_TYPE(ct, dat_srq_resize(p.b.srq, 8), DAT_INVALID_STATE);
	CT_TRUE(ct, query(&p.b).max_recv_dtos >= 16);
	for (uint64_t i = 0; i < 16; i++)
		take(&p, i); /* none is lost */
	unread(&p);
	DT_OK(ct, dat_srq_set_lw(p.b.srq, 6));
	DT_TYPE(ct, dat_srq_resize(p.b.srq, 5), DAT_INVALID_STATE);
	DT_TYPE(ct, dat_srq_resize(p.b.srq, 0), DAT_INVALID_PARAMETER);
	DT_TYPE(ct, dat_srq_resize(p.b.srq, -4), DAT_INVALID_PARAMETER);
	dt_pair_close(&p);
}

static void objects(struct ct *ct)
{
	DAT_SRQ_ATTR attr = { 8, 2, DAT_SRQ_LW_DEFAULT };
	DAT_SRQ_HANDLE srq;
	DAT_SRQ_PARAM param;
	DAT_PZ_HANDLE pz;
	DAT_EP_ATTR ep_attr;
	DAT_EP_HANDLE ep;
	struct dt d;

	dt_open(ct, &d, &shared);
	DT_OK(ct, dat_srq_create(d.ia, d.pz, &attr, &srq));
	DT_TYPE(ct, dat_srq_query(srq, (DAT_SRQ_PARAM_MASK)0x1000, &param), DAT_INVALID_PARAMETER);
	DT_ERR(ct, dat_pz_free(d.pz), DAT_INVALID_STATE, DAT_INVALID_STATE_PZ_IN_USE);
	DT_OK(ct, dat_srq_free(srq));
	DT_ERR(ct, dat_srq_free(d.srq), DAT_INVALID_STATE, DAT_INVALID_STATE_SRQ_IN_USE);
	DT_TYPE(ct, dat_srq_create(d.pz, d.pz, &attr, &srq), DAT_INVALID_HANDLE);
	DT_TYPE(ct, dat_srq_create(d.ia, d.ia, &attr, &srq), DAT_INVALID_HANDLE);
	attr.max_recv_dtos = 0;
	DT_TYPE(ct, dat_srq_create(d.ia, d.pz, &attr, &srq), DAT_INVALID_PARAMETER);
	attr = (DAT_SRQ_ATTR){ 8, 1 << 20, DAT_SRQ_LW_DEFAULT };
	DT_TYPE(ct, dat_srq_create(d.ia, d.pz, &attr, &srq), DAT_INVALID_PARAMETER);
	/*
	 * the zones of a queue and of its endpoints are the same here, and endpoints
	 * with one have attributes
	 */
	DT_OK(ct, dat_pz_create(d.ia, &pz));
	ep_attr = dt_attr(&d);
	DT_TYPE(ct, dat_ep_create_with_srq(d.ia, pz, d.recv, d.request, d.connect, d.srq, &ep_attr, &ep),
		DAT_INVALID_PARAMETER);
	DT_TYPE(ct, dat_ep_create_with_srq(d.ia, d.pz, d.recv, d.request, d.connect, d.srq, NULL, &ep),
		DAT_INVALID_PARAMETER);
	DT_OK(ct, dat_pz_free(pz));
	dt_close(&d);
}

/* ---- D2 -------------------------------------------------------------------------------------- */

/*
 * Messages of all lengths around three segments of 100 bytes, apart from one another: all full but
 * the last used, nothing behind it.
 */
static void segments(struct ct *ct)
{
	static const DAT_SEG_LENGTH lengths[] = { 0, 1, 99, 100, 101, 199, 200, 201, 299, 300 };
	struct dt_pair p;

	dt_pair_open(ct, &p, &shared);
	for (size_t i = 0; i < CT_COUNT(lengths); i++) {
		DAT_LMR_TRIPLET seg[3] = { dt_seg(&p.b, 0, 100), dt_seg(&p.b, 1000, 100),
					   dt_seg(&p.b, 500, 100) };
		static const size_t at[] = { 0, 1000, 500 };
		DAT_SEG_LENGTH left = lengths[i];

		memset(p.b.buf, 0xee, 2000);
		ct_fill(p.a.buf, lengths[i], i);
		DT_OK(ct, dat_srq_post_recv(p.b.srq, 3, seg, dt_cookie(77)));
		memset(seg, 0, sizeof(seg)); /* iov_ownership_on_return: it is ours again */
		dt_send(&p.a, p.a.ep, 0, lengths[i], i, DAT_COMPLETION_SUPPRESS_FLAG);
		CT_EQ(ct, dt_dto(&p.b, p.b.recv, p.b.ep, 77, DAT_DTO_SUCCESS), lengths[i]);
		for (int s = 0; s < 3; s++) {
			DAT_SEG_LENGTH n = left < 100 ? left : 100;

			CT_TRUE(ct, ct_match(p.b.buf + at[s], n, i, (size_t)s * 100));
			CT_TRUE(ct, ct_untouched(p.b.buf + at[s] + n, 400 - n, 0xee));
			left -= n;
		}
	}
	dt_pair_close(&p);
}

/*
 * Neither segments nor a vector: for a message of nothing. A segment of no length may be anything.
 * Cookies are NULL, or the same.
 */
static void nothing(struct ct *ct)
{
	DAT_LMR_TRIPLET odd = { 12345, 0, 0xdead };
	struct dt_pair p;

	dt_pair_open(ct, &p, &shared);
	DT_OK(ct, dat_srq_post_recv(p.b.srq, 0, NULL, dt_cookie(0)));
	DT_OK(ct, dat_srq_post_recv(p.b.srq, 1, &odd, dt_cookie(UINT64_MAX)));
	DT_OK(ct, dat_srq_post_recv(p.b.srq, 0, NULL, dt_cookie(UINT64_MAX)));
	for (int i = 0; i < 3; i++)
		DT_OK(ct, dat_ep_post_send(p.a.ep, 0, NULL, dt_cookie(0), DAT_COMPLETION_DEFAULT_FLAG));
	for (int i = 0; i < 3; i++) {
		CT_EQ(ct, dt_dto(&p.b, p.b.recv, p.b.ep, i ? UINT64_MAX : 0, DAT_DTO_SUCCESS), 0);
		dt_dto(&p.a, p.a.request, p.a.ep, 0, DAT_DTO_SUCCESS);
	}
	dt_pair_close(&p);
}

/* A message that is longer than its buffer: a length error there, and the connection has broken. */
static void too_long(struct ct *ct)
{
	struct dt_pair p;

	dt_pair_open(ct, &p, &shared);
	dt_srq_recv(&p.b, 0, 100, 5);
	memset(p.b.buf, 0xee, 1000);
	dt_send(&p.a, p.a.ep, 0, 101, 6, DAT_COMPLETION_DEFAULT_FLAG);
	dt_dto(&p.b, p.b.recv, p.b.ep, 5, DAT_DTO_ERR_LOCAL_LENGTH);
	CT_TRUE(ct, ct_untouched(p.b.buf + 100, 900, 0xee));
	CT_TRUE(ct, dt_any(&p.a, p.a.request).event_data.dto_completion_event_data.status != DAT_DTO_SUCCESS);
	dt_pair_ended(&p);
	dt_pair_close(&p);
}

/* ---- D4, D5 ---------------------------------------------------------------------------------- */

/* Two connections into one queue: each in the order of its sends, into whichever buffers. */
static void order(struct ct *ct)
{
	enum {
		MESSAGES = 300,
		BUFFERS = 32
	};
	struct dt_pair p;
	DAT_EP_HANDLE from[2], to[2];
	uint64_t sent = 0, seen[2] = { 0, 0 };

	dt_pair_open(ct, &p, &(struct dt_want){ .srq = true, .dtos = 512 });
	from[0] = p.a.ep, to[0] = p.b.ep;
	from[1] = dt_ep(&p.a), to[1] = dt_ep(&p.b);
	dt_join(&p.a, from[1], &p.b, to[1]);
	for (uint64_t i = 0; i < BUFFERS; i++)
		dt_srq_recv(&p.b, i * 8, 8, i);
	for (int got = 0; got < 2 * MESSAGES; got++) {
		DAT_DTO_COMPLETION_EVENT_DATA dto;
		uint64_t value;
		int k;

		for (; sent < MESSAGES && sent < (uint64_t)got / 2 + BUFFERS / 2; sent++)
			for (k = 0; k < 2; k++) {
				memcpy(p.a.buf + (sent % 64 * 2 + (uint64_t)k) * 8, &sent, 8);
				dt_send(&p.a, from[k], (sent % 64 * 2 + (uint64_t)k) * 8, 8, 0,
					DAT_COMPLETION_SUPPRESS_FLAG);
			}
		dto = dt_event(&p.b, p.b.recv, DAT_DTO_COMPLETION_EVENT).event_data.dto_completion_event_data;
		CT_EQ(ct, dto.status, DAT_DTO_SUCCESS);
		k = dto.ep_handle == to[1];
		CT_TRUE(ct, dto.ep_handle == to[k] && dto.user_cookie.as_64 < BUFFERS);
		memcpy(&value, p.b.buf + dto.user_cookie.as_64 * 8, 8);
		CT_EQ(ct, value, seen[k]++);
		dt_srq_recv(&p.b, dto.user_cookie.as_64 * 8, 8, dto.user_cookie.as_64);
	}
	DT_OK(ct, dat_ep_free(from[1]));
	dt_conn(&p.b, to[1], DAT_CONNECTION_EVENT_DISCONNECTED);
	DT_OK(ct, dat_ep_free(to[1]));
	dt_pair_close(&p);
}

/*
 * Endpoints that are not connected, or no longer, take nothing, and the queue's buffers
 * are not theirs to flush.
 */
static void only_connected(struct ct *ct)
{
	struct dt_pair p;
	DAT_EP_HANDLE idle;

	dt_pair_open(ct, &p, &shared);
	idle = dt_ep(&p.b);
	for (uint64_t i = 0; i < 4; i++)
		dt_srq_recv(&p.b, i * 8, 8, i);
	take(&p, 1);
	dt_part(&p.a, p.a.ep, &p.b, p.b.ep);
	dt_quiet(&p.b, p.b.recv, 30, "nothing was taken");
	CT_EQ(ct, query(&p.b).available_dto_count, 3);
	DT_OK(ct, dat_ep_reset(p.a.ep));
	dt_join(&p.a, p.a.ep, &p.b, idle);
	dt_send(&p.a, p.a.ep, 0, 8, 2, DAT_COMPLETION_DEFAULT_FLAG);
	dt_dto(&p.b, p.b.recv, idle, 1, DAT_DTO_SUCCESS);
	DT_OK(ct, dat_ep_free(idle));
	CT_EQ(ct, query(&p.b).available_dto_count, 2);
	/* receives of an endpoint with a shared queue are posted there */
	DT_TYPE(ct, dat_ep_post_recv(p.b.ep, 0, NULL, dt_cookie(0), DAT_COMPLETION_DEFAULT_FLAG),
		DAT_INVALID_STATE);
	dt_pair_close(&p);
}

const struct ct_case dt_srq[] = {
	{ "D1", "query counts", { counts } },
	{ "D1", "low watermark", { low_watermark } },
	{ "D1", "low watermark from the start", { low_from_the_start } },
	{ "D1", "resize", { resize } },
	{ "D1", "create and free", { objects } },
	{ "D2", "segments", { segments } },
	{ "D2", "nothing", { nothing } },
	{ "D2", "too long", { too_long } },
	{ "D4", "order", { order } },
	{ "D5", "only connected", { only_connected } },
	{ NULL },
};
