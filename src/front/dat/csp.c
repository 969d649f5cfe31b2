/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Common service points: dat_csp_create and the others of uDAPL 2.0. One is called by a
 * socket address, dat_ep_common_connect; its port is its connection qualifier, so nobody
 * else on the host has that.
 */
#include "front/dat/connect.h"

#include <string.h>

/* Ports for who asks for none, as those that systems give to sockets. */
#define ANY_FIRST 49152
#define ANY_LAST 65535

/* Streams of either family, and no other protocol than that of such sockets. */
static bool is_supported(const DAT_COMM *comm)
{
	return (comm->domain == AF_INET || comm->domain == AF_INET6) && comm->type == SOCK_STREAM &&
	       (!comm->protocol || comm->protocol == IPPROTO_TCP);
}

/* The port is at the same place in both families. */
static in_port_t *csp_port_of(struct sockaddr_storage *address)
{
	return &((struct sockaddr_in *)(void *)address)->sin_port;
}

/* With the lock. */
static DAT_RETURN csp_make(struct hu_ia *ia, struct hu_sp *like, DAT_CONN_QUAL port, struct hu_sp **out)
{
	like->qualifier = port;
	*csp_port_of(&like->address) = htons((uint16_t)port);
	return hu_sp_make(ia, DAT_HANDLE_TYPE_CSP, like, out);
}

/* With the lock. */
static DAT_RETURN make_any(struct hu_ia *ia, struct hu_sp *like, struct hu_sp **out)
{
	DAT_RETURN rc = hu_error(DAT_CONN_QUAL_IN_USE, DAT_NO_SUBTYPE);

	for (DAT_CONN_QUAL port = ANY_FIRST; port <= ANY_LAST && DAT_GET_TYPE(rc) == DAT_CONN_QUAL_IN_USE;
	     port++)
		rc = csp_make(ia, like, port, out);
	return rc;
}

DAT_RETURN hu_csp_create(DAT_IA_HANDLE ia_handle, DAT_COMM *comm, DAT_IA_ADDRESS_PTR address,
			 DAT_EVD_HANDLE evd, DAT_CSP_HANDLE *out)
{
	struct hu_ia *ia = ia_handle;
	struct hu_sp like = { .evd = evd }, *sp = NULL;
	in_port_t port;
	DAT_RETURN rc;

	if (!hu_is(ia, DAT_HANDLE_TYPE_IA))
		return hu_error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
	if (!comm)
		return hu_error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	if (!is_supported(comm))
		return hu_error(DAT_COMM_NOT_SUPPORTED, DAT_NO_SUBTYPE);
	if (!address || address->sa_family != comm->domain)
		return hu_error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	if (!hu_sp_takes_requests(ia, evd))
		return hu_error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EVD_CR);
	if (!out)
		return hu_error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG5);
	like.comm = *comm;
	hu_address_copy(&like.address, address);
	port = ntohs(*csp_port_of(&like.address));
	if (!hu_enter(ia))
		return HU_DEAD;
	rc = port ? csp_make(ia, &like, port, &sp) : make_any(ia, &like, &sp);
	hu_leave(ia);
	if (!rc)
		*out = sp;
	return DAT_GET_TYPE(rc) == DAT_CONN_QUAL_IN_USE ? hu_error(DAT_PORT_IN_USE, DAT_NO_SUBTYPE) : rc;
}

DAT_RETURN hu_csp_query(DAT_CSP_HANDLE handle, DAT_CSP_PARAM_MASK mask, DAT_CSP_PARAM *param)
{
	struct hu_sp *sp = handle;

	if (!hu_is(sp, DAT_HANDLE_TYPE_CSP))
		return hu_error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CSP);
	if ((unsigned)mask & ~(unsigned)DAT_CSP_FIELD_ALL)
		return hu_error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	if (!param)
		return hu_error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	*param = (DAT_CSP_PARAM){ hu_ia_handle(sp->o.ia), &sp->comm, (DAT_IA_ADDRESS_PTR)&sp->address,
				  sp->evd };
	return DAT_SUCCESS;
}

DAT_RETURN hu_csp_free(DAT_CSP_HANDLE handle)
{
	return hu_sp_free(handle, DAT_HANDLE_TYPE_CSP, DAT_INVALID_HANDLE_CSP);
}
