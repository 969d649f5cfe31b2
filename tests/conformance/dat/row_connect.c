/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * D8: connections, dat_ep_connect(3DAT), dat_cr_accept(3DAT),
 * dat_ep_disconnect(3DAT) and the others.
 */
#include "dt.h"

#include <string.h>

#define PRIVATE 192

static DAT_PSP_HANDLE listen_at(struct dt *b, DAT_CONN_QUAL q)
{
	DAT_PSP_HANDLE psp;

	DT_OK(b->ct, dat_psp_create(b->ia, q, b->cr, DAT_PSP_CONSUMER_FLAG, &psp));
	return psp;
}

static DAT_RETURN call(struct dt *a, struct dt *b, DAT_CONN_QUAL q, DAT_TIMEOUT us, DAT_COUNT len, void *priv)
{
	return dat_ep_connect(a->ep, b->addr, q, us, len, priv, DAT_QOS_BEST_EFFORT,
			      DAT_CONNECT_DEFAULT_FLAG);
}

/* Twice the whole way: states, events, and as much private data as there may be, both ways. */
static void whole_way(struct ct *ct)
{
	DAT_CONN_QUAL q = dt_qualifier();
	DAT_CONNECTION_EVENT_DATA data;
	char priv[PRIVATE + 1];
	DAT_CR_PARAM param;
	DAT_PSP_HANDLE psp;
	DAT_CR_HANDLE cr;
	struct dt_pair p;

	dt_pair_make(ct, &p);
	psp = listen_at(&p.b, q);
	for (uint64_t round = 0; round < 2; round++) {
		CT_EQ(ct, dt_state(&p.a, p.a.ep), DAT_EP_STATE_UNCONNECTED);
		ct_fill(priv, sizeof(priv), round);
		DT_TYPE(ct, call(&p.a, &p.b, q, DT_FOREVER, PRIVATE + 1, priv), DAT_INVALID_PARAMETER);
		DT_OK(ct, call(&p.a, &p.b, q, DT_FOREVER, PRIVATE, priv));
		CT_EQ(ct, dt_state(&p.a, p.a.ep), DAT_EP_STATE_ACTIVE_CONNECTION_PENDING);
		DT_TYPE(ct, call(&p.a, &p.b, q, DT_FOREVER, 0, NULL), DAT_INVALID_STATE);
		cr = dt_request(&p.b);
		DT_OK(ct, dat_cr_query(cr, DAT_CR_FIELD_ALL, &param));
		CT_EQ(ct, param.private_data_size, PRIVATE);
		ct_verify(ct, param.private_data, PRIVATE, round, "to the called");
		CT_TRUE(ct, param.local_ep_handle == DAT_HANDLE_NULL);
		ct_fill(priv, sizeof(priv), 10 + round);
		DT_TYPE(ct, dat_cr_accept(cr, p.b.ep, PRIVATE + 1, priv), DAT_INVALID_PARAMETER);
		DT_OK(ct, dat_cr_accept(cr, p.b.ep, PRIVATE, priv));
		data = dt_conn(&p.a, p.a.ep, DAT_CONNECTION_EVENT_ESTABLISHED).event_data.connect_event_data;
		CT_EQ(ct, data.private_data_size, PRIVATE);
		ct_verify(ct, data.private_data, PRIVATE, 10 + round, "to the caller");
		data = dt_conn(&p.b, p.b.ep, DAT_CONNECTION_EVENT_ESTABLISHED).event_data.connect_event_data;
		CT_EQ(ct, data.private_data_size, 0);
		CT_EQ(ct, dt_state(&p.a, p.a.ep), DAT_EP_STATE_CONNECTED);
		CT_EQ(ct, dt_state(&p.b, p.b.ep), DAT_EP_STATE_CONNECTED);
		DT_TYPE(ct, dat_ep_reset(p.a.ep), DAT_INVALID_STATE);
		dt_part(&p.a, p.a.ep, &p.b, p.b.ep);
		CT_EQ(ct, dt_state(&p.b, p.b.ep), DAT_EP_STATE_DISCONNECTED);
		DT_OK(ct, dat_ep_disconnect(p.b.ep, DAT_CLOSE_GRACEFUL_FLAG)); /* does nothing */
		DT_OK(ct, dat_ep_reset(p.a.ep));
		DT_OK(ct, dat_ep_reset(p.b.ep));
	}
	dt_quiet(&p.a, p.a.connect, 20, "each event comes once");
	dt_quiet(&p.b, p.b.connect, 20, "each event comes once");
	DT_OK(ct, dat_psp_free(psp));
	dt_pair_close(&p);
}

/* The peer says no, with a reason; what was posted is flushed, and the endpoint may try again. */
static void reject(struct ct *ct)
{
	DAT_CONN_QUAL q = dt_qualifier();
	DAT_CONNECTION_EVENT_DATA data;
	char priv[PRIVATE];
	DAT_PSP_HANDLE psp;
	struct dt_pair p;

	dt_pair_make(ct, &p);
	psp = listen_at(&p.b, q);
	ct_fill(priv, sizeof(priv), 3);
	dt_recv(&p.a, p.a.ep, 0, 8, 4);
	dt_call(&p.a, p.a.ep, &p.b, q);
	DT_OK(ct, dat_cr_reject(dt_request(&p.b), PRIVATE, priv));
	data = dt_conn(&p.a, p.a.ep, DAT_CONNECTION_EVENT_PEER_REJECTED).event_data.connect_event_data;
	CT_EQ(ct, data.private_data_size, PRIVATE);
	ct_verify(ct, data.private_data, PRIVATE, 3, "of a rejection");
	CT_EQ(ct, dt_state(&p.a, p.a.ep), DAT_EP_STATE_DISCONNECTED);
	dt_dto(&p.a, p.a.recv, p.a.ep, 4, DAT_DTO_ERR_FLUSHED);
	DT_OK(ct, dat_ep_reset(p.a.ep));
	DT_OK(ct, dat_psp_free(psp));
	dt_join(&p.a, p.a.ep, &p.b, p.b.ep);
	dt_pair_close(&p);
}

/* Nobody listens; nobody answers in time, and the called learns of that when it accepts. */
static void in_vain(struct ct *ct)
{
	DAT_CONN_QUAL q = dt_qualifier();
	DAT_PSP_HANDLE psp;
	DAT_CR_HANDLE cr;
	struct dt_pair p;

	dt_pair_make(ct, &p);
	dt_call(&p.a, p.a.ep, &p.b, q);
	dt_turned_away(&p.a, p.a.ep, DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
	psp = listen_at(&p.b, q);
	dt_recv(&p.b, p.b.ep, 0, 8, 5);
	DT_OK(ct, call(&p.a, &p.b, q, 500000, 0, NULL));
	cr = dt_request(&p.b);
	dt_conn(&p.a, p.a.ep, DAT_CONNECTION_EVENT_TIMED_OUT);
	/*
	 * nothing tells who is called that the caller has given up, but
	 * what comes of the acceptance
	 */
	dt_sleep(50);
	DT_OK(ct, dat_cr_accept(cr, p.b.ep, 0, NULL));
	dt_conn(&p.b, p.b.ep, DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR);
	CT_EQ(ct, dt_state(&p.b, p.b.ep), DAT_EP_STATE_DISCONNECTED);
	dt_dto(&p.b, p.b.recv, p.b.ep, 5, DAT_DTO_ERR_FLUSHED);
	DT_OK(ct, dat_psp_free(psp));
	dt_pair_close(&p);
}

/* Giving up before the answer, by either flag; wrong arguments. */
static void give_up(struct ct *ct)
{
	DAT_CONN_QUAL q = dt_qualifier();
	DAT_PSP_HANDLE psp, other;
	DAT_EVENT event;
	struct dt_pair p;

	dt_pair_make(ct, &p);
	psp = listen_at(&p.b, q);
	for (int flags = 0; flags < 2; flags++) {
		dt_recv(&p.a, p.a.ep, 0, 8, 6);
		dt_call(&p.a, p.a.ep, &p.b, q);
		DT_OK(ct, dat_ep_disconnect(p.a.ep, (DAT_CLOSE_FLAGS)flags));
		dt_conn(&p.a, p.a.ep, DAT_CONNECTION_EVENT_DISCONNECTED);
		dt_dto(&p.a, p.a.recv, p.a.ep, 6, DAT_DTO_ERR_FLUSHED);
		DT_OK(ct, dat_ep_reset(p.a.ep));
	}
	DT_TYPE(ct, call(&p.a, &p.b, q, 0, 0, NULL), DAT_INVALID_PARAMETER);
	DT_TYPE(ct, call(&p.a, &p.b, q, DT_FOREVER, -1, NULL), DAT_INVALID_PARAMETER);
	DT_TYPE(ct, call(&p.a, &p.b, q, DT_FOREVER, 5, NULL), DAT_INVALID_PARAMETER);
	DT_TYPE(ct, dat_ep_connect(p.a.ep, NULL, q, DT_FOREVER, 0, NULL, 0, 0), DAT_INVALID_ADDRESS);
	DT_TYPE(ct, dat_ep_connect(p.a.ep, p.b.addr, q, DT_FOREVER, 0, NULL, DAT_QOS_PREMIUM, 0),
		DAT_MODEL_NOT_SUPPORTED);
	DT_TYPE(ct, dat_psp_create(p.b.ia, q, p.b.cr, DAT_PSP_CONSUMER_FLAG, &other), DAT_CONN_QUAL_IN_USE);
	DT_TYPE(ct, dat_psp_create(p.b.ia, q, p.b.connect, DAT_PSP_CONSUMER_FLAG, &other),
		DAT_INVALID_HANDLE);
	DT_OK(ct, dat_psp_free(psp));
	/* those that came before they were given up are there to be answered */
	while (!dat_evd_dequeue(p.b.cr, &event))
		DT_OK(ct, dat_cr_reject(event.event_data.cr_arrival_event_data.cr_handle, 0, NULL));
	dt_pair_close(&p);
}

/*
 * Graceful: what was posted is done first. Abrupt: what is posted is flushed, at both ends; what
 * is posted later at once.
 */
static void disconnect(struct ct *ct)
{
	const DAT_SEG_LENGTH len = 100000;
	struct dt_pair p;

	dt_pair_open(ct, &p, NULL);
	ct_fill(p.a.buf, len, 1);
	for (uint64_t i = 0; i < 8; i++)
		dt_recv(&p.b, p.b.ep, i * len, len, i);
	dt_recv(&p.b, p.b.ep, 0, 8, 8);
	for (uint64_t i = 0; i < 8; i++)
		dt_send(&p.a, p.a.ep, 0, len, i, DAT_COMPLETION_DEFAULT_FLAG);
	DT_OK(ct, dat_ep_disconnect(p.a.ep, DAT_CLOSE_GRACEFUL_FLAG));
	dt_conn(&p.a, p.a.ep, DAT_CONNECTION_EVENT_DISCONNECTED);
	for (uint64_t i = 0; i < 8; i++) {
		dt_dto(&p.a, p.a.request, p.a.ep, i, DAT_DTO_SUCCESS);
		dt_dto(&p.b, p.b.recv, p.b.ep, i, DAT_DTO_SUCCESS);
		ct_verify(ct, p.b.buf + i * len, len, 1, "before the end");
	}
	dt_conn(&p.b, p.b.ep, DAT_CONNECTION_EVENT_DISCONNECTED);
	dt_dto(&p.b, p.b.recv, p.b.ep, 8, DAT_DTO_ERR_FLUSHED);
	DT_OK(ct, dat_ep_reset(p.a.ep));
	DT_OK(ct, dat_ep_reset(p.b.ep));
	dt_join(&p.a, p.a.ep, &p.b, p.b.ep);
	dt_recv(&p.a, p.a.ep, 0, 8, 1);
	for (uint64_t i = 0; i < 4; i++)
		/* nobody receives these */
		dt_send(&p.a, p.a.ep, 0, 8, i, DAT_COMPLETION_SUPPRESS_FLAG);
	dt_part(&p.a, p.a.ep, &p.b, p.b.ep);
	dt_dto(&p.a, p.a.recv, p.a.ep, 1, DAT_DTO_ERR_FLUSHED);
	for (uint64_t i = 0; i < 4; i++)
		dt_dto(&p.a, p.a.request, p.a.ep, i, DAT_DTO_ERR_FLUSHED);
	dt_recv(&p.b, p.b.ep, 0, 8, 11);
	dt_dto(&p.b, p.b.recv, p.b.ep, 11, DAT_DTO_ERR_FLUSHED);
	dt_send(&p.b, p.b.ep, 0, 8, 12, DAT_COMPLETION_DEFAULT_FLAG);
	dt_dto(&p.b, p.b.request, p.b.ep, 12, DAT_DTO_ERR_FLUSHED);
	dt_pair_close(&p);
}

/* A reserved service point: its endpoint's states, one request, and who may free what. */
static void reserved(struct ct *ct)
{
	DAT_CONN_QUAL q = dt_qualifier();
	DAT_RSP_HANDLE rsp;
	DAT_CR_PARAM param;
	DAT_CR_HANDLE cr;
	DAT_EP_HANDLE late;
	struct dt_pair p;

	dt_pair_make(ct, &p);
	for (int round = 0; round < 3; round++) {
		DT_OK(ct, dat_rsp_create(p.b.ia, q, p.b.ep, p.b.cr, &rsp));
		CT_EQ(ct, dt_state(&p.b, p.b.ep), DAT_EP_STATE_RESERVED);
		DT_ERR(ct, dat_ep_free(p.b.ep), DAT_INVALID_STATE, DAT_INVALID_STATE_EP_RESERVED);
		DT_TYPE(ct, dat_ep_disconnect(p.b.ep, 0), DAT_INVALID_STATE);
		if (round == 2)
			break;
		dt_call(&p.a, p.a.ep, &p.b, q);
		cr = dt_request(&p.b);
		CT_EQ(ct, dt_state(&p.b, p.b.ep), DAT_EP_STATE_PASSIVE_CONNECTION_PENDING);
		DT_ERR(ct, dat_ep_free(p.b.ep), DAT_INVALID_STATE, DAT_INVALID_STATE_EP_PASSCONNPENDING);
		DT_TYPE(ct, dat_ep_disconnect(p.b.ep, 0), DAT_INVALID_STATE);
		DT_OK(ct, dat_cr_query(cr, DAT_CR_FIELD_ALL, &param));
		CT_TRUE(ct, param.local_ep_handle == p.b.ep);
		late = dt_ep(&p.a);
		dt_call(&p.a, late, &p.b, q);
		dt_conn(&p.a, late, DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
		DT_OK(ct, dat_ep_free(late));
		if (round == 0) {
			DT_OK(ct, dat_cr_reject(cr, 0, NULL));
			dt_conn(&p.a, p.a.ep, DAT_CONNECTION_EVENT_PEER_REJECTED);
			CT_EQ(ct, dt_state(&p.b, p.b.ep), DAT_EP_STATE_UNCONNECTED);
		} else {
			DT_OK(ct, dat_cr_accept(cr, DAT_HANDLE_NULL, 0, NULL));
			dt_conn(&p.a, p.a.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
			dt_conn(&p.b, p.b.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
			dt_part(&p.b, p.b.ep, &p.a, p.a.ep);
			DT_OK(ct, dat_ep_reset(p.b.ep));
		}
		DT_OK(ct, dat_rsp_free(rsp));
		DT_OK(ct, dat_ep_reset(p.a.ep));
	}
	DT_OK(ct, dat_rsp_free(rsp));
	CT_EQ(ct, dt_state(&p.b, p.b.ep), DAT_EP_STATE_UNCONNECTED);
	dt_pair_close(&p);
}

/* To where another endpoint is connected; and at a qualifier that the provider has chosen. */
static void duplicate(struct ct *ct)
{
	DAT_PSP_HANDLE psp;
	DAT_PSP_PARAM param;
	DAT_CONN_QUAL q = 0;
	DAT_EP_HANDLE from, to;
	struct dt_pair p;

	dt_pair_make(ct, &p);
	DT_OK(ct, dat_psp_create_any(p.b.ia, &q, p.b.cr, DAT_PSP_CONSUMER_FLAG, &psp));
	DT_OK(ct, dat_psp_query(psp, DAT_PSP_FIELD_ALL, &param));
	CT_TRUE(ct, param.conn_qual == q && param.evd_handle == p.b.cr);
	from = dt_ep(&p.a), to = dt_ep(&p.b);
	DT_TYPE(ct, dat_ep_dup_connect(from, p.a.ep, DT_FOREVER, 0, NULL, DAT_QOS_BEST_EFFORT),
		DAT_INVALID_STATE);
	dt_call(&p.a, p.a.ep, &p.b, q);
	DT_OK(ct, dat_cr_accept(dt_request(&p.b), p.b.ep, 0, NULL));
	dt_conn(&p.a, p.a.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
	dt_conn(&p.b, p.b.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
	DT_OK(ct, dat_ep_dup_connect(from, p.a.ep, DT_FOREVER, 0, NULL, DAT_QOS_BEST_EFFORT));
	DT_OK(ct, dat_cr_accept(dt_request(&p.b), to, 0, NULL));
	dt_conn(&p.a, from, DAT_CONNECTION_EVENT_ESTABLISHED);
	dt_conn(&p.b, to, DAT_CONNECTION_EVENT_ESTABLISHED);
	DT_OK(ct, dat_ep_free(from));
	dt_conn(&p.b, to, DAT_CONNECTION_EVENT_DISCONNECTED);
	DT_OK(ct, dat_ep_free(to));
	DT_OK(ct, dat_psp_free(psp));
	dt_pair_close(&p);
}

const struct ct_case dt_connect[] = {
	{ "D8", "connect whole way", { whole_way } }, { "D8", "connect reject", { reject } },
	{ "D8", "connect in vain", { in_vain } },     { "D8", "connect give up", { give_up } },
	{ "D8", "disconnect", { disconnect } },	      { "D8", "connect reserved", { reserved } },
	{ "D8", "connect duplicate", { duplicate } }, { NULL },
};
