/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * D8: requests that are handed on, dat_cr_handoff(3DAT), and endpoints that are made for
 * them, dat_psp_create(3DAT).
 */
#include "dt.h"

#include <stdlib.h>

static DAT_PSP_HANDLE listen_at(struct dt *d, DAT_CONN_QUAL q, DAT_PSP_FLAGS flags)
{
	DAT_PSP_HANDLE psp;

	DT_OK(d->ct, dat_psp_create(d->ia, q, d->cr, flags, &psp));
	return psp;
}

static void message(struct dt *a, DAT_EP_HANDLE from, struct dt *b, DAT_EP_HANDLE to)
{
	dt_recv(b, to, 0, 8, 1);
	dt_send(a, from, 0, 8, 2, DAT_COMPLETION_DEFAULT_FLAG);
	dt_dto(b, b->recv, to, 1, DAT_DTO_SUCCESS);
	dt_dto(a, a->request, from, 2, DAT_DTO_SUCCESS);
}

/* ---- handed on ------------------------------------------------------------------------------- */

/*
 * To a service of another instance: the request is the same there, and the caller does not notice.
 */
static void handed_on(struct ct *ct)
{
	DAT_CONN_QUAL first = dt_qualifier(), second = dt_qualifier();
	DAT_PSP_HANDLE psp, other;
	DAT_CR_PARAM param;
	DAT_EP_PARAM state;
	DAT_CR_HANDLE cr;
	char priv[100];
	struct dt_pair p;
	struct dt c;

	dt_pair_make(ct, &p);
	dt_open(ct, &c, NULL);
	psp = listen_at(&p.b, first, DAT_PSP_CONSUMER_FLAG);
	other = listen_at(&c, second, DAT_PSP_CONSUMER_FLAG);
	ct_fill(priv, sizeof(priv), 7);
	DT_OK(ct, dat_ep_connect(p.a.ep, p.b.addr, first, DT_FOREVER, sizeof(priv), priv, DAT_QOS_BEST_EFFORT,
				 DAT_CONNECT_DEFAULT_FLAG));
	DT_OK(ct, dat_cr_handoff(dt_request(&p.b), second));
	cr = dt_request(&c);
	DT_OK(ct, dat_cr_query(cr, DAT_CR_FIELD_ALL, &param));
	CT_EQ(ct, param.private_data_size, sizeof(priv));
	ct_verify(ct, param.private_data, sizeof(priv), 7, "of the request");
	CT_EQ(ct, dt_state(&p.a, p.a.ep), DAT_EP_STATE_ACTIVE_CONNECTION_PENDING);
	DT_OK(ct, dat_cr_accept(cr, c.ep, 0, NULL));
	dt_conn(&p.a, p.a.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
	dt_conn(&c, c.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
	message(&p.a, p.a.ep, &c, c.ep);
	DT_OK(ct, dat_ep_query(p.a.ep, DAT_EP_FIELD_ALL, &state));
	CT_EQ(ct, state.remote_port_qual, first); /* what it asked for */
	dt_quiet(&p.b, p.b.cr, 1, "it is another's");
	DT_OK(ct, dat_psp_free(psp));
	DT_OK(ct, dat_psp_free(other));
	dt_part(&p.a, p.a.ep, &c, c.ep);
	dt_pair_close(&p);
	dt_close(&c);
}

/* To nobody; on and on; to one who does not answer; and one that its caller withdraws. */
static void in_vain(struct ct *ct)
{
	DAT_CONN_QUAL q = dt_qualifier(), nobody = dt_qualifier();
	DAT_PSP_HANDLE psp;
	struct dt_pair p;

	dt_pair_make(ct, &p);
	psp = listen_at(&p.b, q, DAT_PSP_CONSUMER_FLAG);
	dt_call(&p.a, p.a.ep, &p.b, q);
	DT_OK(ct, dat_cr_handoff(dt_request(&p.b), nobody));
	dt_turned_away(&p.a, p.a.ep, DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
	dt_call(&p.a, p.a.ep, &p.b, q);
	for (int i = 0; i < 17; i++)
		DT_OK(ct, dat_cr_handoff(dt_request(&p.b), q));
	dt_conn(&p.a, p.a.ep, DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
	dt_quiet(&p.b, p.b.cr, 10, "there is an end");
	DT_OK(ct, dat_ep_reset(p.a.ep));
	DT_OK(ct, dat_ep_connect(p.a.ep, p.b.addr, q, 300000, 0, NULL, DAT_QOS_BEST_EFFORT,
				 DAT_CONNECT_DEFAULT_FLAG));
	DT_OK(ct, dat_cr_handoff(dt_request(&p.b), q));
	dt_conn(&p.a, p.a.ep, DAT_CONNECTION_EVENT_TIMED_OUT);
	DT_OK(ct, dat_cr_reject(dt_request(&p.b), 0, NULL));
	DT_OK(ct, dat_ep_reset(p.a.ep));
	dt_call(&p.a, p.a.ep, &p.b, q);
	DT_OK(ct, dat_cr_handoff(dt_request(&p.b), q));
	DT_OK(ct, dat_ep_disconnect(p.a.ep, DAT_CLOSE_ABRUPT_FLAG));
	dt_conn(&p.a, p.a.ep, DAT_CONNECTION_EVENT_DISCONNECTED);
	DT_TYPE(ct, dat_cr_handoff(p.b.ep, q), DAT_INVALID_HANDLE);
	DT_OK(ct, dat_psp_free(psp));
	DT_OK(ct, dat_ia_close(p.b.ia, DAT_CLOSE_ABRUPT_FLAG)); /* a request may stand there */
	free(p.b.buf);
	dt_close(&p.a);
}

/* ---- endpoints for requests ------------------------------------------------------------------ */

#define HANDLES \
	(DAT_EP_FIELD_PZ_HANDLE | DAT_EP_FIELD_RECV_EVD_HANDLE | DAT_EP_FIELD_REQUEST_EVD_HANDLE | \
	 DAT_EP_FIELD_CONNECT_EVD_HANDLE)

static void configure(struct dt *d, DAT_EP_HANDLE ep)
{
	const DAT_EP_PARAM param = { .pz_handle = d->pz,
				     .recv_evd_handle = d->recv,
				     .request_evd_handle = d->request,
				     .connect_evd_handle = d->connect };

	DT_OK(d->ct, dat_ep_modify(ep, HANDLES, (DAT_EP_PARAM *)&param));
}

static DAT_EP_HANDLE endpoint_of(struct dt *d, DAT_CR_HANDLE cr)
{
	DAT_CR_PARAM param;

	DT_OK(d->ct, dat_cr_query(cr, DAT_CR_FIELD_ALL, &param));
	CT_TRUE(d->ct, param.local_ep_handle);
	return param.local_ep_handle;
}

/*
 * It has nothing when it comes, and cannot accept before it has what it needs;
 * then it is the program's.
 */
static void made(struct ct *ct)
{
	DAT_CONN_QUAL q = dt_qualifier();
	DAT_PROVIDER_ATTR attr;
	DAT_PSP_PARAM param;
	DAT_PSP_HANDLE psp;
	DAT_EP_HANDLE ep;
	DAT_CR_HANDLE cr;
	struct dt_pair p;

	dt_pair_make(ct, &p);
	DT_OK(ct, dat_ia_query(p.b.ia, NULL, 0, NULL, DAT_PROVIDER_FIELD_ALL, &attr));
	CT_EQ(ct, attr.ep_creator, DAT_PSP_CREATES_EP_IFASKED);
	psp = listen_at(&p.b, q, DAT_PSP_PROVIDER_FLAG);
	DT_OK(ct, dat_psp_query(psp, DAT_PSP_FIELD_ALL, &param));
	CT_EQ(ct, param.psp_flags, DAT_PSP_PROVIDER_FLAG);
	dt_call(&p.a, p.a.ep, &p.b, q);
	cr = dt_request(&p.b);
	ep = endpoint_of(&p.b, cr);
	CT_EQ(ct, dt_state(&p.b, ep), DAT_EP_STATE_UNCONFIGURED_TENTATIVE);
	DT_ERR(ct, dat_cr_accept(cr, DAT_HANDLE_NULL, 0, NULL), DAT_INVALID_STATE,
	       DAT_INVALID_STATE_EP_UNCONFTENTATIVE);
	/* that one, and no other */
	DT_TYPE(ct, dat_cr_accept(cr, p.b.ep, 0, NULL), DAT_INVALID_HANDLE);
	DT_TYPE(ct, dat_ep_free(ep), DAT_INVALID_STATE);
	configure(&p.b, ep);
	CT_EQ(ct, dt_state(&p.b, ep), DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING);
	DT_OK(ct, dat_cr_accept(cr, DAT_HANDLE_NULL, 0, NULL));
	dt_conn(&p.a, p.a.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
	dt_conn(&p.b, ep, DAT_CONNECTION_EVENT_ESTABLISHED);
	message(&p.a, p.a.ep, &p.b, ep);
	dt_part(&p.a, p.a.ep, &p.b, ep);
	DT_OK(ct, dat_ep_free(ep));
	DT_OK(ct, dat_psp_free(psp));
	dt_pair_close(&p);
}

/* With its request, when that is rejected or handed on; and when the adapter is closed. */
static void unmade(struct ct *ct)
{
	DAT_CONN_QUAL q = dt_qualifier();
	DAT_EP_PARAM before, after;
	DAT_PSP_HANDLE psp;
	struct dt_pair p;

	dt_pair_make(ct, &p);
	psp = listen_at(&p.b, q, DAT_PSP_PROVIDER_FLAG);
	dt_call(&p.a, p.a.ep, &p.b, q);
	DT_OK(ct, dat_cr_handoff(dt_request(&p.b), q));
	DT_OK(ct, dat_cr_reject(dt_request(&p.b), 0, NULL));
	dt_conn(&p.a, p.a.ep, DAT_CONNECTION_EVENT_PEER_REJECTED);
	DT_OK(ct, dat_ep_reset(p.a.ep));
	dt_call(&p.a, p.a.ep, &p.b, q);
	configure(&p.b, endpoint_of(&p.b, dt_request(&p.b)));
	DT_OK(ct, dat_ep_query(p.b.ep, DAT_EP_FIELD_ALL, &before));
	DT_OK(ct, dat_psp_free(psp));
	DT_OK(ct, dat_ep_query(p.b.ep, DAT_EP_FIELD_ALL, &after));
	CT_EQ(ct, before.ep_state, after.ep_state);
	DT_TYPE(ct, dat_ia_close(p.b.ia, DAT_CLOSE_GRACEFUL_FLAG), DAT_INVALID_STATE);
	DT_OK(ct, dat_ia_close(p.b.ia, DAT_CLOSE_ABRUPT_FLAG));
	free(p.b.buf);
	dt_conn(&p.a, p.a.ep, DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
	dt_close(&p.a);
}

/* A reserved endpoint may get what it needs when its request has come. */
static void reserved(struct ct *ct)
{
	DAT_CONN_QUAL q = dt_qualifier();
	DAT_RSP_HANDLE rsp;
	DAT_EP_HANDLE ep;
	DAT_CR_HANDLE cr;
	struct dt_pair p;

	dt_pair_make(ct, &p);
	DT_OK(ct, dat_ep_create(p.b.ia, DAT_HANDLE_NULL, DAT_HANDLE_NULL, DAT_HANDLE_NULL, DAT_HANDLE_NULL,
				NULL, &ep));
	DT_OK(ct, dat_rsp_create(p.b.ia, q, ep, p.b.cr, &rsp));
	CT_EQ(ct, dt_state(&p.b, ep), DAT_EP_STATE_UNCONFIGURED_RESERVED);
	dt_call(&p.a, p.a.ep, &p.b, q);
	cr = dt_request(&p.b);
	CT_EQ(ct, dt_state(&p.b, ep), DAT_EP_STATE_UNCONFIGURED_PASSIVE);
	DT_TYPE(ct, dat_cr_accept(cr, DAT_HANDLE_NULL, 0, NULL), DAT_INVALID_STATE);
	configure(&p.b, ep);
	CT_EQ(ct, dt_state(&p.b, ep), DAT_EP_STATE_PASSIVE_CONNECTION_PENDING);
	DT_OK(ct, dat_cr_accept(cr, DAT_HANDLE_NULL, 0, NULL));
	dt_conn(&p.a, p.a.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
	dt_conn(&p.b, ep, DAT_CONNECTION_EVENT_ESTABLISHED);
	message(&p.a, p.a.ep, &p.b, ep);
	DT_OK(ct, dat_rsp_free(rsp));
	DT_OK(ct, dat_ep_free(ep));
	dt_ended(&p.a, p.a.ep);
	dt_pair_close(&p);
}

const struct ct_case dt_requests[] = {
	{ "D8", "handed on", { handed_on } },
	{ "D8", "handed on in vain", { in_vain } },
	{ "D8", "endpoint made for a request", { made } },
	{ "D8", "endpoint unmade", { unmade } },
	{ "D8", "reserved and unconfigured", { reserved } },
	{ NULL },
};
