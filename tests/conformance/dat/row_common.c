/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * D8: service points that sockets' addresses lead to: dat_csp_create,
 * dat_ep_common_connect of uDAPL 2.0.
 */
#include "dt.h"

#include <netinet/in.h>
#include <string.h>
#include <unistd.h>

static struct sockaddr_in address(const struct dt *d, uint16_t port)
{
	struct sockaddr_in sin;

	memcpy(&sin, d->addr, sizeof(sin));
	sin.sin_port = htons(port);
	return sin;
}

/* Their functions are found in the provider's table alone. */
static DAT_RETURN create(struct dt *d, const DAT_COMM *comm, struct sockaddr_in *at, DAT_CSP_HANDLE *csp)
{
	return DT_VIA(d->pz)->csp_create_func(dt_own(d), (DAT_COMM *)comm, (DAT_IA_ADDRESS_PTR)at, d->cr,
					      csp);
}

static const DAT_COMM stream = { AF_INET, SOCK_STREAM, 0 };

static uint16_t port_of(struct dt *d, DAT_CSP_HANDLE csp)
{
	struct sockaddr_in sin;
	DAT_CSP_PARAM param;

	DT_OK(d->ct, DT_VIA(csp)->csp_query_func(csp, DAT_CSP_FIELD_ALL, &param));
	CT_TRUE(d->ct, param.evd_handle == d->cr && param.ia_handle == d->ia);
	CT_EQ(d->ct, param.comm->domain, AF_INET);
	CT_EQ(d->ct, param.comm->type, SOCK_STREAM);
	CT_EQ(d->ct, param.address_ptr->sa_family, AF_INET);
	memcpy(&sin, param.address_ptr, sizeof(sin));
	return ntohs(sin.sin_port);
}

static DAT_RETURN common_connect(struct dt *a, struct sockaddr_in *to, DAT_COUNT len, void *priv)
{
	return DT_VIA(a->ep)->ep_common_connect_func(a->ep, (DAT_IA_ADDRESS_PTR)to, DT_FOREVER, len, priv);
}

/* A call from the address to an accepted connection, with private data; and a message over it. */
static void connects(struct ct *ct)
{
	for (int wild = 0; wild < 2; wild++) {
		DAT_CR_ARRIVAL_EVENT_DATA arrival;
		struct sockaddr_in at;
		DAT_HANDLE_TYPE type;
		DAT_CR_PARAM param;
		DAT_CSP_HANDLE csp;
		char priv[64];
		struct dt_pair p;

		dt_pair_make(ct, &p);
		at = address(&p.b, 0);
		if (wild)
			at.sin_addr.s_addr = INADDR_ANY;
		DT_OK(ct, create(&p.b, &stream, &at, &csp));
		DT_OK(ct, dat_get_handle_type(csp, &type));
		CT_EQ(ct, type, DAT_HANDLE_TYPE_CSP);
		at = address(&p.b, port_of(&p.b, csp));
		CT_TRUE(ct, at.sin_port);
		ct_fill(priv, sizeof(priv), 3);
		DT_OK(ct, common_connect(&p.a, &at, sizeof(priv), priv));
		arrival =
			dt_event(&p.b, p.b.cr, DAT_CONNECTION_REQUEST_EVENT).event_data.cr_arrival_event_data;
		CT_TRUE(ct, arrival.sp_handle.csp_handle == csp);
		CT_EQ(ct, arrival.conn_qual, ntohs(at.sin_port));
		DT_OK(ct, dat_cr_query(arrival.cr_handle, DAT_CR_FIELD_ALL, &param));
		CT_EQ(ct, param.private_data_size, sizeof(priv));
		ct_verify(ct, param.private_data, sizeof(priv), 3, "to the called");
		DT_OK(ct, dat_cr_accept(arrival.cr_handle, p.b.ep, 0, NULL));
		dt_conn(&p.a, p.a.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
		dt_conn(&p.b, p.b.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
		DT_OK(ct, DT_VIA(csp)->csp_free_func(csp));
		dt_recv(&p.b, p.b.ep, 0, 8, 1);
		dt_send(&p.a, p.a.ep, 0, 8, 2, DAT_COMPLETION_DEFAULT_FLAG);
		dt_dto(&p.b, p.b.recv, p.b.ep, 1, DAT_DTO_SUCCESS);
		dt_pair_close(&p);
	}
}

/*
 * A port that was given up is had again, by the other IA. Whoever else is on this host may be
 * quicker to have it, so a few are tried.
 */
static void ports_again(struct ct *ct, struct dt_pair *p)
{
	DAT_RETURN rc = DAT_PORT_IN_USE;
	struct sockaddr_in at;
	DAT_CSP_HANDLE csp;

	for (int i = 0; i < 5 && DAT_GET_TYPE(rc) == DAT_PORT_IN_USE; i++) {
		at = address(&p->b, 0);
		DT_OK(ct, create(&p->b, &stream, &at, &csp));
		at = address(&p->b, port_of(&p->b, csp));
		DT_OK(ct, DT_VIA(csp)->csp_free_func(csp));
		rc = create(&p->a, &stream, &at, &csp);
	}
	DT_OK(ct, rc);
	CT_EQ(ct, port_of(&p->a, csp), ntohs(at.sin_port));
	DT_OK(ct, DT_VIA(csp)->csp_free_func(csp));
}

/*
 * A port is taken once on the host; when its service point is gone, nobody is there,
 * and it may be had again.
 */
static void ports(struct ct *ct)
{
	DAT_CSP_HANDLE csp, other, any;
	struct sockaddr_in at;
	struct dt_pair p;

	dt_pair_make(ct, &p);
	at = address(&p.b, 0);
	DT_OK(ct, create(&p.b, &stream, &at, &csp));
	DT_OK(ct, create(&p.b, &stream, &at, &any));
	CT_TRUE(ct, port_of(&p.b, csp) != port_of(&p.b, any));
	at = address(&p.b, port_of(&p.b, csp));
	DT_TYPE(ct, create(&p.b, &stream, &at, &other), DAT_PORT_IN_USE);
	DT_TYPE(ct, create(&p.a, &stream, &at, &other), DAT_PORT_IN_USE);
	DT_OK(ct, DT_VIA(csp)->csp_free_func(csp));
	DT_OK(ct, common_connect(&p.a, &at, 0, NULL));
	dt_conn(&p.a, p.a.ep, DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
	ports_again(ct, &p);
	DT_OK(ct, DT_VIA(any)->csp_free_func(any));
	dt_pair_close(&p);
}

static void errors(struct ct *ct)
{
	const DAT_COMM datagrams = { AF_INET, SOCK_DGRAM, 0 }, local = { AF_UNIX, SOCK_STREAM, 0 },
		       sctp = { AF_INET, SOCK_STREAM, IPPROTO_SCTP }, six = { AF_INET6, SOCK_STREAM, 0 };
	struct sockaddr_in at;
	DAT_CSP_PARAM param;
	DAT_CSP_HANDLE csp;
	struct dt d;

	dt_open(ct, &d, NULL);
	at = address(&d, 0);
	DT_TYPE(ct, create(&d, &datagrams, &at, &csp), DAT_COMM_NOT_SUPPORTED);
	DT_TYPE(ct, create(&d, &local, &at, &csp), DAT_COMM_NOT_SUPPORTED);
	DT_TYPE(ct, create(&d, &sctp, &at, &csp), DAT_COMM_NOT_SUPPORTED);
	DT_TYPE(ct, create(&d, &six, &at, &csp), DAT_INVALID_PARAMETER);
	DT_TYPE(ct, create(&d, NULL, &at, &csp), DAT_INVALID_PARAMETER);
	DT_TYPE(ct, create(&d, &stream, NULL, &csp), DAT_INVALID_PARAMETER);
	DT_TYPE(ct, create(&d, &stream, &at, NULL), DAT_INVALID_PARAMETER);
	DT_TYPE(ct,
		DT_VIA(d.pz)->csp_create_func(dt_own(&d), (DAT_COMM *)&stream, (DAT_IA_ADDRESS_PTR)&at,
					      d.recv, &csp),
		DAT_INVALID_HANDLE);
	at.sin_addr.s_addr = htonl(0x08080808); /* not ours */
	DT_TYPE(ct, create(&d, &stream, &at, &csp), DAT_CONN_QUAL_UNAVAILABLE);
	at = address(&d, 0);
	DT_OK(ct, create(&d, &stream, &at, &csp));
	DT_TYPE(ct, DT_VIA(csp)->csp_query_func(csp, (DAT_CSP_PARAM_MASK)0x100, &param),
		DAT_INVALID_PARAMETER);
	DT_TYPE(ct, DT_VIA(csp)->csp_query_func(csp, DAT_CSP_FIELD_ALL, NULL), DAT_INVALID_PARAMETER);
	DT_ERR(ct, DT_VIA(csp)->csp_free_func(d.ep), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CSP);
	DT_TYPE(ct, dat_psp_free(csp), DAT_INVALID_HANDLE);
	DT_ERR(ct, dat_evd_free(d.cr), DAT_INVALID_STATE, DAT_INVALID_STATE_EVD_IN_USE);
	DT_OK(ct, DT_VIA(csp)->csp_free_func(csp));
	dt_close(&d);
}

const struct ct_case dt_common[] = {
	{ "D8", "common connect", { connects } },
	{ "D8", "common ports", { ports } },
	{ "D8", "common errors", { errors } },
	{ NULL },
};
