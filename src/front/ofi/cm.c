/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* fi_cm(3) on active endpoints: names, and the calls that connect. */
#include "front/ofi/cm.h"
#include "front/ofi/mc.h"
#include "front/ofi/stubs.h"

#include <string.h>

/* ---- names ----------------------------------------------------------------------------------- */

static int cm_family_of(const struct hd_fi_ep *ep)
{
	return hd_fi_family(ep->domain->addr_format);
}

static int ep_setname(fid_t fid, void *addr, size_t addrlen)
{
	struct hd_fi_ep *ep = hd_fi_ep_whole((struct hd_fi_ep *)fid);
	union hd_fi_addr name;
	int rc = 0;

	if (!addr || hd_fi_addr_copy(addr, addrlen, cm_family_of(ep), &name))
		return hd_fi_no(FI_EINVAL, "fi_setname without an address of the endpoint's format");
	if (ep->ep)
		return hd_fi_no(FI_EOPBADSTATE, "fi_setname after fi_enable");
	if (!hd_fi_ep_request(ep)) /* else it has the port that was called */
		rc = hd_fi_name_hold(ep->domain, &ep->attr.addr, &name, &ep->named);
	if (rc)
		return rc;
	ep->attr.addr = name;
	ep->attr.has_addr = !hd_fi_addr_is_any(&name);
	return 0;
}

/*
 * The name that is known before fi_enable: that which was called, or which its info has
 * whole, address and port.
 */
static const struct sockaddr *name_given(const struct hd_fi_ep *ep)
{
	const union hd_fi_addr *own = &ep->attr.addr;

	if (ep->connected && ep->connected->called.sa.sa_family != AF_UNSPEC)
		return &ep->connected->called.sa;
	return !ep->ep && ep->attr.has_addr && hd_fi_addr_is_whole(own) ? &own->sa : NULL;
}

/*
 * Else it is the port that the endpoint listens on, or that its passive one did: there
 * is none before fi_enable.
 */
static int ep_getname(fid_t fid, void *addr, size_t *addrlen)
{
	struct hd_fi_ep *ep = hd_fi_ep_whole((struct hd_fi_ep *)fid);
	const struct sockaddr *given = name_given(ep);
	struct sockaddr_storage name;
	int rc;

	if (!addrlen)
		return hd_fi_no(FI_EINVAL, "fi_getname without a length");
	if (ep->named)
		return hd_fi_name_tell(ep->domain, ep->named, addr, addrlen);
	if (given)
		return hd_fi_addr_out(given, addr, addrlen);
	if (!ep->ep)
		return hd_fi_no(FI_EOPBADSTATE,
				"fi_getname before fi_enable, of an endpoint without an address and port");
	hd_fi_lock(ep->domain);
	rc = hd_ep_name(ep->ep, cm_family_of(ep), &name);
	hd_fi_unlock(ep->domain);
	return rc ? hd_fi_ret(rc, "the endpoint has no such address")
		  : hd_fi_addr_out((struct sockaddr *)&name, addr, addrlen);
}

static int ep_getpeer(struct fid_ep *fid, void *addr, size_t *addrlen)
{
	struct hd_fi_ep *ep = (struct hd_fi_ep *)fid;
	struct sockaddr_storage name;
	int rc;

	if (!addrlen)
		return hd_fi_no(FI_EINVAL, "fi_getpeer without a length");
	if (!ep->ep)
		return hd_fi_no(FI_ENOTCONN, "fi_getpeer before the endpoint is connected");
	hd_fi_lock(ep->domain);
	rc = hd_ep_peer_name(ep->ep, &name);
	hd_fi_unlock(ep->domain);
	return rc ? hd_fi_ret(rc, "the endpoint has no such address")
		  : hd_fi_addr_out((struct sockaddr *)&name, addr, addrlen);
}

/* ---- connecting ------------------------------------------------------------------------------ */

int hd_fi_cm_data_size(void *optval, size_t *optlen)
{
	const size_t size = HD_CM_DATA;
	size_t room;

	if (!optval || !optlen)
		return hd_fi_no(FI_EINVAL, "fi_getopt without room for the option");
	room = *optlen;
	*optlen = sizeof(size);
	if (room < sizeof(size))
		return -FI_ETOOSMALL;
	memcpy(optval, &size, sizeof(size));
	return 0;
}

int hd_fi_cm_data(const void *param, size_t paramlen, struct hd_cm_data *out)
{
	if (!param && paramlen)
		return hd_fi_no(FI_EINVAL, "data for the other end at NULL");
	*out = (struct hd_cm_data){ .data = param, .len = paramlen < HD_CM_DATA ? paramlen : HD_CM_DATA };
	return 0;
}

/* Both calls enable an endpoint that is not yet. */
static int cm_begin(struct fid_ep *fid, const void *param, size_t paramlen, struct hd_cm_data *data)
{
	int rc = hd_fi_cm_data(param, paramlen, data);

	return rc ? rc : fi_enable(fid);
}

static int ep_connect(struct fid_ep *fid, const void *addr, const void *param, size_t paramlen)
{
	struct hd_fi_ep *ep = (struct hd_fi_ep *)fid;
	struct hd_connect_args args = { 0 };
	union hd_fi_addr to;
	size_t size = addr ? hd_sockaddr_size(addr) : 0;
	int rc;

	if (!size || hd_fi_addr_copy(addr, size, cm_family_of(ep), &to) || hd_fi_ep_request(ep))
		return hd_fi_no(
			FI_EINVAL,
			"fi_connect without an address of the endpoint's format, or of an endpoint that is to accept");
	args.to = &to.sa;
	rc = cm_begin(fid, param, paramlen, &args.data);
	if (rc)
		return rc;
	hd_fi_lock(ep->domain);
	rc = hd_ep_connect(ep->ep, &args);
	hd_fi_unlock(ep->domain);
	return hd_fi_ret(rc, "fi_connect");
}

static int ep_accept(struct fid_ep *fid, const void *param, size_t paramlen)
{
	struct hd_fi_ep *ep = (struct hd_fi_ep *)fid;
	struct hd_cm_data data;
	int rc;

	if (!hd_fi_ep_request(ep))
		return hd_fi_no(FI_EINVAL,
				"fi_accept of an endpoint that was not opened with a connection request");
	rc = cm_begin(fid, param, paramlen, &data);
	return rc ? rc : hd_fi_answer(ep, &data);
}

/*
 * Who was connected gets one FI_SHUTDOWN: for this call, or, if it comes too late, for the other
 * end's. Programs answer that with a call of their own, which libfabric's providers take.
 */
static int ep_shutdown(struct fid_ep *fid, uint64_t flags)
{
	struct hd_fi_ep *ep = (struct hd_fi_ep *)fid;
	struct sockaddr_storage peer;
	bool up;
	int rc;

	if (flags)
		return hd_fi_no(FI_EBADFLAGS, "fi_shutdown takes no flags");
	if (!ep->ep)
		return hd_fi_no(FI_ENOTCONN, "fi_shutdown of an endpoint that is not connected");
	hd_fi_lock(ep->domain);
	up = !hd_ep_peer_name(ep->ep, &peer);
	rc = hd_ep_is_over(ep->ep) ? 0 : hd_ep_disconnect(ep->ep, NULL);
	if (!rc && up)
		hd_evq_post(hd_fi_eq_evq(ep->bound.eq),
			    &(struct hd_event){ .code = HD_EV_DOWN, .owner = (void *)&ep->fid });
	hd_fi_unlock(ep->domain);
	return hd_fi_ret(rc, "fi_shutdown");
}

struct fi_ops_cm hd_fi_cm_ops = {
	.size = sizeof(struct fi_ops_cm),
	.setname = ep_setname,
	.getname = ep_getname,
	.getpeer = hd_fi_no_getpeer,
	.connect = hd_fi_no_connect,
	.listen = hd_fi_no_listen,
	.accept = hd_fi_no_accept,
	.reject = hd_fi_no_reject,
	.shutdown = hd_fi_no_shutdown,
	.join = hd_fi_join,
};

struct fi_ops_cm hd_fi_conn_cm_ops = {
	.size = sizeof(struct fi_ops_cm),
	.setname = ep_setname,
	.getname = ep_getname,
	.getpeer = ep_getpeer,
	.connect = ep_connect,
	.listen = hd_fi_no_listen,
	.accept = ep_accept,
	.reject = hd_fi_no_reject,
	.shutdown = ep_shutdown,
	.join = hd_fi_no_join,
};
