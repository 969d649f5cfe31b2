/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* D6, D8: what an endpoint's state permits, and DAT_INVALID_STATE with the state for the rest. */
#include "dt.h"

#include <string.h>

enum {
	UNCONNECTED,
	RESERVED,
	PASSIVE, /* a request has come for it */
	ACTIVE,	 /* it has called */
	CONNECTED,
	PARTING, /* disconnect pending */
	ENDED,	 /* disconnected */
	STATES
};

static const struct {
	DAT_EP_STATE state;
	int answer;
	const char *name;
} about[STATES] = {
	{ DAT_EP_STATE_UNCONNECTED, DAT_INVALID_STATE_EP_UNCONNECTED, "unconnected" },
	{ DAT_EP_STATE_RESERVED, DAT_INVALID_STATE_EP_RESERVED, "reserved" },
	{ DAT_EP_STATE_PASSIVE_CONNECTION_PENDING, DAT_INVALID_STATE_EP_PASSCONNPENDING, "passive" },
	{ DAT_EP_STATE_ACTIVE_CONNECTION_PENDING, DAT_INVALID_STATE_EP_ACTCONNPENDING, "active" },
	{ DAT_EP_STATE_CONNECTED, DAT_INVALID_STATE_EP_CONNECTED, "connected" },
	{ DAT_EP_STATE_DISCONNECT_PENDING, DAT_INVALID_STATE_EP_DISCPENDING, "parting" },
	{ DAT_EP_STATE_DISCONNECTED, DAT_INVALID_STATE_EP_DISCONNECTED, "disconnected" },
};

struct scene {
	struct dt d;
	DAT_EP_HANDLE of[STATES]; /* an endpoint in each state */
	DAT_EP_HANDLE peer[STATES], spare, caller;
	DAT_RSP_HANDLE rsp[2];
	DAT_PSP_HANDLE psp;
	DAT_CR_HANDLE passive, active; /* requests: for of[PASSIVE], of of[ACTIVE] */
	DAT_CONN_QUAL q;
	DAT_RMR_HANDLE rmr;
};

static void set_points(struct scene *s)
{
	struct ct *ct = s->d.ct;
	DAT_CONN_QUAL q = dt_qualifier();

	DT_OK(ct, dat_rsp_create(s->d.ia, dt_qualifier(), s->of[RESERVED], s->d.cr, &s->rsp[0]));
	DT_OK(ct, dat_rsp_create(s->d.ia, q, s->of[PASSIVE], s->d.cr, &s->rsp[1]));
	s->caller = dt_ep(&s->d);
	dt_call(&s->d, s->caller, &s->d, q);
	s->passive = dt_request(&s->d);
	s->q = dt_qualifier();
	DT_OK(ct, dat_psp_create(s->d.ia, s->q, s->d.cr, DAT_PSP_CONSUMER_FLAG, &s->psp));
	dt_call(&s->d, s->of[ACTIVE], &s->d, s->q);
	s->active = dt_request(&s->d);
}

/* One that parts gracefully has a message under way that nobody receives. */
static void set_scene(struct ct *ct, struct scene *s)
{
	memset(s, 0, sizeof(*s));
	dt_open(ct, &s->d, NULL);
	s->spare = s->d.ep;
	for (int i = 0; i < STATES; i++)
		s->of[i] = dt_ep(&s->d);
	for (int i = CONNECTED; i < STATES; i++) {
		s->peer[i] = dt_ep(&s->d);
		dt_join(&s->d, s->of[i], &s->d, s->peer[i]);
	}
	dt_send(&s->d, s->of[PARTING], 0, 8, 99, DAT_COMPLETION_SUPPRESS_FLAG);
	DT_OK(ct, dat_ep_disconnect(s->of[PARTING], DAT_CLOSE_GRACEFUL_FLAG));
	dt_part(&s->d, s->of[ENDED], &s->d, s->peer[ENDED]);
	set_points(s);
	DT_OK(ct, dat_rmr_create(s->d.pz, &s->rmr));
	for (int i = 0; i < STATES; i++)
		CT_EQ(ct, dt_state(&s->d, s->of[i]), about[i].state);
}

/* Nothing has changed; and all can be freed in their ways. */
static void strike(struct scene *s)
{
	struct ct *ct = s->d.ct;

	for (int i = 0; i < STATES; i++)
		CT_EQ(ct, dt_state(&s->d, s->of[i]), about[i].state);
	DT_ERR(ct, dat_ep_free(s->of[RESERVED]), DAT_INVALID_STATE, DAT_INVALID_STATE_EP_RESERVED);
	DT_ERR(ct, dat_ep_free(s->of[PASSIVE]), DAT_INVALID_STATE, DAT_INVALID_STATE_EP_PASSCONNPENDING);
	DT_OK(ct, dat_rsp_free(s->rsp[0]));
	DT_OK(ct, dat_cr_reject(s->passive, 0, NULL));
	DT_OK(ct, dat_rsp_free(s->rsp[1]));
	for (int i = 0; i < STATES; i++)
		DT_OK(ct, dat_ep_free(s->of[i]));
	for (int i = CONNECTED; i < STATES; i++)
		DT_OK(ct, dat_ep_free(s->peer[i]));
	DT_OK(ct, dat_ep_free(s->caller));
	DT_OK(ct, dat_cr_reject(s->active, 0, NULL));
	DT_OK(ct, dat_psp_free(s->psp));
	DT_OK(ct, dat_rmr_free(s->rmr));
	dt_close(&s->d);
}

/* ---- what may be done ------------------------------------------------------------------------ */

#define BIT(state) (1u << (state))
#define BEFORE (BIT(UNCONNECTED) | BIT(RESERVED) | BIT(PASSIVE))

static DAT_RETURN do_connect(struct scene *s, DAT_EP_HANDLE ep)
{
	return dat_ep_connect(ep, s->d.addr, s->q, DT_FOREVER, 0, NULL, 0, 0);
}

static DAT_RETURN do_dup_connect(struct scene *s, DAT_EP_HANDLE ep)
{
	return dat_ep_dup_connect(ep, s->of[CONNECTED], DT_FOREVER, 0, NULL, 0);
}

static DAT_RETURN do_dup_of(struct scene *s, DAT_EP_HANDLE ep)
{
	return dat_ep_dup_connect(s->spare, ep, DT_FOREVER, 0, NULL, 0);
}

static DAT_RETURN do_disconnect(struct scene *s, DAT_EP_HANDLE ep)
{
	return dat_ep_disconnect(ep, DAT_CLOSE_GRACEFUL_FLAG);
}

static DAT_RETURN do_reset(struct scene *s, DAT_EP_HANDLE ep)
{
	return dat_ep_reset(ep);
}

static DAT_RETURN do_send(struct scene *s, DAT_EP_HANDLE ep)
{
	return dat_ep_post_send(ep, 0, NULL, dt_cookie(1), 0);
}

static DAT_RETURN do_send_invalidate(struct scene *s, DAT_EP_HANDLE ep)
{
	return DT_VIA(ep)->ep_post_send_with_invalidate_func(ep, 0, NULL, dt_cookie(1), 0, DAT_FALSE, 0);
}

static DAT_RETURN do_write(struct scene *s, DAT_EP_HANDLE ep)
{
	DAT_RMR_TRIPLET there = { (uintptr_t)s->d.buf, 8, s->d.remote };
	DAT_LMR_TRIPLET seg = dt_seg(&s->d, 64, 8);

	return dat_ep_post_rdma_write(ep, 1, &seg, dt_cookie(1), &there, 0);
}

static DAT_RETURN do_read(struct scene *s, DAT_EP_HANDLE ep)
{
	DAT_RMR_TRIPLET there = { (uintptr_t)s->d.buf, 8, s->d.remote };
	DAT_LMR_TRIPLET seg = dt_seg(&s->d, 64, 8);

	return dat_ep_post_rdma_read(ep, 1, &seg, dt_cookie(1), &there, 0);
}

static DAT_RETURN do_bind(struct scene *s, DAT_EP_HANDLE ep)
{
	DAT_LMR_TRIPLET seg = dt_seg(&s->d, 64, 8);
	DAT_RMR_CONTEXT context;

	return dat_rmr_bind(s->rmr, s->d.lmr, &seg, DAT_MEM_PRIV_ALL_FLAG, DAT_VA_TYPE_VA, ep, dt_cookie(1),
			    0, &context);
}

static DAT_RETURN do_recv(struct scene *s, DAT_EP_HANDLE ep)
{
	return dat_ep_post_recv(ep, 0, NULL, dt_cookie(1), 0);
}

static DAT_RETURN modify(struct scene *s, DAT_EP_HANDLE ep, DAT_EP_PARAM_MASK mask)
{
	DAT_EP_PARAM param = { .pz_handle = s->d.pz,
			       .recv_evd_handle = s->d.recv,
			       .request_evd_handle = s->d.request,
			       .connect_evd_handle = s->d.connect,
			       .ep_attr = dt_attr(&s->d) };

	return dat_ep_modify(ep, mask, &param);
}

static DAT_RETURN do_modify_pz(struct scene *s, DAT_EP_HANDLE ep)
{
	return modify(s, ep, DAT_EP_FIELD_PZ_HANDLE);
}

static DAT_RETURN do_modify_evds(struct scene *s, DAT_EP_HANDLE ep)
{
	return modify(s, ep,
		      DAT_EP_FIELD_RECV_EVD_HANDLE | DAT_EP_FIELD_REQUEST_EVD_HANDLE |
			      DAT_EP_FIELD_CONNECT_EVD_HANDLE);
}

static DAT_RETURN do_modify_attr(struct scene *s, DAT_EP_HANDLE ep)
{
	return modify(s, ep, DAT_EP_FIELD_EP_ATTR_MAX_MESSAGE_SIZE | DAT_EP_FIELD_EP_ATTR_MAX_RECV_DTOS);
}

static DAT_RETURN do_reserve(struct scene *s, DAT_EP_HANDLE ep)
{
	DAT_RSP_HANDLE rsp;

	return dat_rsp_create(s->d.ia, dt_qualifier(), ep, s->d.cr, &rsp);
}

static DAT_RETURN do_accept(struct scene *s, DAT_EP_HANDLE ep)
{
	return dat_cr_accept(s->active, ep, 0, NULL);
}

/* `allowed`: the states in which it may be done. It is done only in those of `harmless`. */
static const struct {
	const char *name;
	DAT_RETURN (*call)(struct scene *s, DAT_EP_HANDLE ep);
	unsigned allowed, harmless;
} calls[] = {
	{ "connect", do_connect, BIT(UNCONNECTED), 0 },
	{ "dup_connect", do_dup_connect, BIT(UNCONNECTED), 0 },
	{ "dup_connect of", do_dup_of, BIT(CONNECTED), 0 },
	{ "disconnect", do_disconnect, BIT(ACTIVE) | BIT(CONNECTED) | BIT(PARTING) | BIT(ENDED),
	  BIT(PARTING) | BIT(ENDED) },
	{ "reset", do_reset, BIT(UNCONNECTED) | BIT(ENDED), BIT(UNCONNECTED) },
	{ "send", do_send, BIT(CONNECTED) | BIT(ENDED), 0 },
	{ "send_with_invalidate", do_send_invalidate, BIT(CONNECTED) | BIT(ENDED), 0 },
	{ "rdma_write", do_write, BIT(CONNECTED) | BIT(ENDED), 0 },
	{ "rdma_read", do_read, BIT(CONNECTED) | BIT(ENDED), 0 },
	{ "rmr_bind", do_bind, BIT(CONNECTED) | BIT(ENDED), 0 },
	{ "recv", do_recv, BIT(STATES) - 1, BIT(STATES) - 1 },
	{ "modify pz", do_modify_pz, BIT(UNCONNECTED), BIT(UNCONNECTED) },
	{ "modify evds", do_modify_evds, BEFORE, BEFORE },
	{ "modify attributes", do_modify_attr, BEFORE, BEFORE },
	{ "rsp_create", do_reserve, BIT(UNCONNECTED), 0 },
	{ "cr_accept", do_accept, BIT(UNCONNECTED), 0 },
};

static void permitted(struct ct *ct)
{
	struct scene s;

	set_scene(ct, &s);
	for (size_t c = 0; c < CT_COUNT(calls); c++)
		for (int i = 0; i < STATES; i++) {
			bool may = calls[c].allowed & BIT(i);
			DAT_RETURN rc;

			if (may && !(calls[c].harmless & BIT(i)))
				continue;
			rc = calls[c].call(&s, s.of[i]);
			if (may ? rc != DAT_SUCCESS
				: DAT_GET_TYPE(rc) != DAT_INVALID_STATE ||
					    DAT_GET_SUBTYPE(rc) != (DAT_RETURN)about[i].answer)
				ct_fail(ct, "%s when %s: 0x%x", calls[c].name, about[i].name, rc);
		}
	/* of "recv": at once, this one alone */
	dt_dto(&s.d, s.d.recv, s.of[ENDED], 1, DAT_DTO_ERR_FLUSHED);
	dt_quiet(&s.d, s.d.request, 20, "nothing was posted");
	strike(&s);
}

/* What is posted to an endpoint that has ended is flushed, in its order, each kind of it. */
static void flushed(struct ct *ct)
{
	DAT_EVENT event;
	DAT_RMR_TRIPLET there;
	struct scene s;

	set_scene(ct, &s);
	there = (DAT_RMR_TRIPLET){ (uintptr_t)s.d.buf, 8, s.d.remote };
	s.d.ep = s.of[ENDED];
	for (uint64_t i = 0; i < 4; i++) {
		dt_send(&s.d, s.of[ENDED], 0, 8, 4 * i, DAT_COMPLETION_SUPPRESS_FLAG);
		dt_write(&s.d, 64, &there, 4 * i + 1);
		dt_read(&s.d, 64, &there, 4 * i + 2);
		dt_recv(&s.d, s.of[ENDED], 0, 8, i);
		DT_OK(ct, do_bind(&s, s.of[ENDED]));
	}
	s.d.ep = s.spare;
	for (uint64_t i = 0; i < 16; i++) {
		if (i % 4 < 3) {
			dt_dto(&s.d, s.d.request, s.of[ENDED], i, DAT_DTO_ERR_FLUSHED);
			continue;
		}
		event = dt_event(&s.d, s.d.request, DAT_RMR_BIND_COMPLETION_EVENT);
		CT_TRUE(ct, event.event_data.rmr_completion_event_data.rmr_handle == s.rmr);
		CT_EQ(ct, event.event_data.rmr_completion_event_data.status, DAT_DTO_ERR_FLUSHED);
	}
	for (uint64_t i = 0; i < 4; i++)
		dt_dto(&s.d, s.d.recv, s.of[ENDED], i, DAT_DTO_ERR_FLUSHED);
	dt_quiet(&s.d, s.d.request, 20, "each once");
	strike(&s);
}

/* ---- parting --------------------------------------------------------------------------------- */

static void is_parting(struct dt_pair *p)
{
	CT_EQ(p->a.ct, dt_state(&p->a, p->a.ep), DAT_EP_STATE_DISCONNECT_PENDING);
	dt_quiet(&p->a, p->a.connect, 30, "it has work under way");
}

/*
 * Gracefully: it waits until the other end has received; receives may be
 * posted, and requests may not.
 */
static void parting(struct ct *ct)
{
	struct dt_pair p;

	dt_pair_open(ct, &p, NULL);
	for (uint64_t i = 0; i < 3; i++)
		dt_send(&p.a, p.a.ep, 0, 8, i, DAT_COMPLETION_DEFAULT_FLAG);
	DT_OK(ct, dat_ep_disconnect(p.a.ep, DAT_CLOSE_GRACEFUL_FLAG));
	is_parting(&p);
	DT_ERR(ct, dat_ep_post_send(p.a.ep, 0, NULL, dt_cookie(9), 0), DAT_INVALID_STATE,
	       DAT_INVALID_STATE_EP_DISCPENDING);
	dt_recv(&p.a, p.a.ep, 0, 8, 50);
	/* it receives yet */
	dt_send(&p.b, p.b.ep, 0, 8, 51, DAT_COMPLETION_DEFAULT_FLAG);
	dt_dto(&p.a, p.a.recv, p.a.ep, 50, DAT_DTO_SUCCESS);
	dt_dto(&p.b, p.b.request, p.b.ep, 51, DAT_DTO_SUCCESS);
	for (uint64_t i = 0; i < 3; i++) {
		is_parting(&p);
		dt_recv(&p.b, p.b.ep, 0, 8, 60 + i);
		dt_dto(&p.b, p.b.recv, p.b.ep, 60 + i, DAT_DTO_SUCCESS);
		dt_dto(&p.a, p.a.request, p.a.ep, i, DAT_DTO_SUCCESS);
	}
	dt_conn(&p.a, p.a.ep, DAT_CONNECTION_EVENT_DISCONNECTED);
	dt_conn(&p.b, p.b.ep, DAT_CONNECTION_EVENT_DISCONNECTED);
	dt_quiet(&p.a, p.a.connect, 20, "each event comes once");
	dt_pair_close(&p);
}

static void unsuccessful(struct dt *d, uint64_t cookie, bool by_us)
{
	DAT_EVENT event = dt_event(d, d->request, DAT_DTO_COMPLETION_EVENT);
	const DAT_DTO_COMPLETION_EVENT_DATA *dto = &event.event_data.dto_completion_event_data;

	CT_EQ(d->ct, dto->user_cookie.as_64, cookie);
	CT_TRUE(d->ct,
		dto->status == DAT_DTO_ERR_FLUSHED || (!by_us && dto->status == DAT_DTO_ERR_TRANSPORT));
}

/*
 * The patience ends: an abrupt disconnect, the other end's, or its death by ours. All that
 * was posted ends, in order.
 */
static void parting_abruptly(struct ct *ct)
{
	for (int how = 0; how < 3; how++) {
		struct dt_pair p;

		dt_pair_open(ct, &p, NULL);
		for (uint64_t i = 0; i < 3; i++)
			dt_send(&p.a, p.a.ep, 0, 8, i, DAT_COMPLETION_SUPPRESS_FLAG);
		for (uint64_t i = 0; i < 3; i++)
			dt_recv(&p.a, p.a.ep, 0, 8, 10 + i);
		DT_OK(ct, dat_ep_disconnect(p.a.ep, DAT_CLOSE_GRACEFUL_FLAG));
		is_parting(&p);
		if (how == 0)
			DT_OK(ct, dat_ep_disconnect(p.a.ep, DAT_CLOSE_ABRUPT_FLAG));
		else if (how == 1)
			DT_OK(ct, dat_ep_disconnect(p.b.ep, DAT_CLOSE_ABRUPT_FLAG));
		else
			DT_OK(ct, dat_ep_free(p.b.ep));
		dt_conn(&p.a, p.a.ep, DAT_CONNECTION_EVENT_DISCONNECTED);
		/* what was on its way may fail for what the other end did */
		for (uint64_t i = 0; i < 3; i++)
			unsuccessful(&p.a, i, how == 0);
		for (uint64_t i = 0; i < 3; i++)
			dt_dto(&p.a, p.a.recv, p.a.ep, 10 + i, DAT_DTO_ERR_FLUSHED);
		if (how == 2)
			p.b.ep = NULL;
		else
			dt_conn(&p.b, p.b.ep, DAT_CONNECTION_EVENT_DISCONNECTED);
		dt_pair_close(&p);
	}
}

/* One EVD for everything: what succeeds comes before the end of the connection. */
static void one_dispatcher(struct ct *ct)
{
	const DAT_EVD_FLAGS all =
		(DAT_EVD_FLAGS)(DAT_EVD_DTO_FLAG | DAT_EVD_CONNECTION_FLAG | DAT_EVD_RMR_BIND_FLAG);
	DAT_EVD_HANDLE own[3];
	struct dt_pair p;

	dt_pair_make(ct, &p);
	own[0] = p.a.recv, own[1] = p.a.request, own[2] = p.a.connect;
	DT_OK(ct, dat_ep_free(p.a.ep));
	p.a.recv = p.a.request = p.a.connect = dt_evd(&p.a, 128, DAT_HANDLE_NULL, all);
	p.a.ep = dt_ep(&p.a);
	dt_join(&p.a, p.a.ep, &p.b, p.b.ep);
	for (uint64_t i = 0; i < 20; i++) {
		dt_recv(&p.b, p.b.ep, 0, 8, i);
		dt_send(&p.a, p.a.ep, 0, 8, i, DAT_COMPLETION_DEFAULT_FLAG);
	}
	DT_OK(ct, dat_ep_disconnect(p.a.ep, DAT_CLOSE_GRACEFUL_FLAG));
	for (uint64_t i = 0; i < 20; i++)
		dt_dto(&p.a, p.a.request, p.a.ep, i, DAT_DTO_SUCCESS);
	dt_conn(&p.a, p.a.ep, DAT_CONNECTION_EVENT_DISCONNECTED);
	dt_conn(&p.b, p.b.ep, DAT_CONNECTION_EVENT_DISCONNECTED);
	DT_OK(ct, dat_ep_free(p.a.ep));
	DT_OK(ct, dat_evd_free(p.a.recv));
	p.a.ep = NULL;
	p.a.recv = own[0], p.a.request = own[1], p.a.connect = own[2];
	dt_pair_close(&p);
}

const struct ct_case dt_states[] = {
	{ "D6", "states permit", { permitted } },
	{ "D5", "states flush", { flushed } },
	{ "D8", "parting", { parting } },
	{ "D8", "parting abruptly", { parting_abruptly } },
	{ "D8", "parting in one queue", { one_dispatcher } },
	{ NULL },
};
