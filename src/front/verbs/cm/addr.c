/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Addresses and routes: rdma_bind_addr(3), rdma_resolve_addr(3), rdma_resolve_route(3). The
 * kernel's routing tables say what there is.
 */
#include "front/verbs/addr.h"
#include "base/lock.h"
#include "base/random.h"
#include "base/socket.h"
#include "front/verbs/cm/cm.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FIRST_OWN_PORT 32768 /* ports that programs get which do not ask for one, as those of TCP */
#define OWN_PORTS 28232
#define BIND_TRIES 64

static void copy_addr(struct sockaddr_storage *to, const struct sockaddr *from)
{
	memset(to, 0, sizeof(*to));
	memcpy(to, from, hv_sockaddr_size(from));
}

static uint16_t some_port(void)
{
	uint32_t r;
	bool drawn = !hd_random(&r, sizeof(r));

	return (uint16_t)(FIRST_OWN_PORT + (drawn ? r % OWN_PORTS : 0));
}

/* ---- binding --------------------------------------------------------------------------------- */

int hv_id_only_family(const struct hv_id *id)
{
	int family = id->pub.route.addr.src_addr.sa_family;

	return family == AF_INET || (family == AF_INET6 && id->af_only) ? family : 0;
}

/* Have the service's name, without being called yet. */
static int service_take(struct hv_id *id, struct hv_context *ctx)
{
	const struct sockaddr *addr = &id->pub.route.addr.src_addr;
	struct sockaddr_storage ip;
	const struct hd_service_attr attr = { .bind = (struct sockaddr *)&ip,
					      .space = id->pub.ps,
					      .number = hv_sockaddr_port(addr),
					      .family = hv_id_only_family(id) };
	struct hv_listener *l = calloc(1, sizeof(*l));
	int rc;

	if (!l)
		return -ENOMEM;
	rc = hv_sockaddr_ip(addr, &ip);
	if (!rc && !hv_enter(ctx))
		rc = -EIO;
	if (!rc) {
		rc = hd_service_open(ctx->node, &attr, &l->service);
		hv_leave(ctx);
	}
	if (rc) {
		free(l);
		return rc;
	}
	l->ctx = ctx;
	l->users = 1;
	id->listener = l;
	return 0;
}

int hv_id_take_port(struct hv_id *id)
{
	struct sockaddr *addr = &id->pub.route.addr.src_addr;
	struct hv_context *ctx = hv_cm_context();
	bool any = !hv_sockaddr_port(addr);
	int rc = -EADDRINUSE;

	if (!ctx)
		return -errno;
	if (id->listener)
		return 0;
	for (int i = 0; i < (any ? BIND_TRIES : 1) && rc == -EADDRINUSE; i++) {
		if (any)
			hv_sockaddr_set_port(addr, some_port());
		rc = service_take(id, ctx);
	}
	return rc;
}

/* An address of a link names nothing without its interface. */
static bool lacks_scope(const struct sockaddr *addr)
{
	return hd_sockaddr_is_of_link(addr) && !hd_sockaddr_scope(addr);
}

/* Does this host have the address, whatever devices it has? */
static bool host_has(const struct sockaddr *addr)
{
	int fd = hd_socket(addr->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_storage any_port;

	if (fd < 0)
		return false;
	copy_addr(&any_port, addr);
	hv_sockaddr_set_port((struct sockaddr *)&any_port, 0);
	bool has = bind(fd, (struct sockaddr *)&any_port, hd_sockaddr_size(addr)) == 0;
	close(fd);
	return has;
}

/*
 * What the kernel says of an address that cannot be bound to: programs go on by TCP where no device
 * has it, and give up where nobody has.
 */
static int bind_error(const struct sockaddr *addr, int rc)
{
	if (rc != -ENODEV && rc != -EADDRNOTAVAIL)
		return rc;
	return addr->sa_family == AF_IB || host_has(addr) ? -ENODEV : -EADDRNOTAVAIL;
}

/* Caller holds no lock; nothing has changed when it fails. */
static int addr_bind_to(struct hv_id *id, const struct sockaddr *addr)
{
	int rc = 0;

	copy_addr(&id->pub.route.addr.src_storage, addr);
	hv_sockaddr_set_space(&id->pub.route.addr.src_addr, id->pub.ps);
	if (!hv_sockaddr_is_any(addr))
		rc = hv_id_bind(id, addr);
	/* two that both may share their port need it only to listen */
	if (!rc && !(id->reuse && hv_sockaddr_port(addr)))
		rc = hv_id_take_port(id);
	if (rc) {
		memset(&id->pub.route.addr.src_storage, 0, sizeof(id->pub.route.addr.src_storage));
		id->ctx = NULL;
		id->pub.verbs = NULL;
		id->pub.pd = NULL;
		return bind_error(addr, rc);
	}
	id->state = HV_ID_BOUND;
	return 0;
}

HV_PUBLIC int rdma_bind_addr(struct rdma_cm_id *pub, struct sockaddr *addr)
{
	struct hv_id *id = hv_id_of(pub);

	if (!pub || !addr || id->state != HV_ID_IDLE)
		return hv_cm_ret(-EINVAL);
	if (!hv_sockaddr_size(addr) || !hv_sockaddr_fits(addr, id->pub.ps) || lacks_scope(addr))
		return hv_cm_ret(-EINVAL);
	return hv_cm_ret(addr_bind_to(id, addr));
}

/* ---- resolving ------------------------------------------------------------------------------- */

/* The address from which the kernel would go there. */
static int route(const struct sockaddr *to, struct sockaddr_storage *from)
{
	socklen_t len = sizeof(*from);
	int rc = 0, fd = hd_socket(to->sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	if (connect(fd, to, hd_sockaddr_size(to)) || getsockname(fd, (struct sockaddr *)from, &len))
		rc = -errno;
	close(fd);
	return rc;
}

/* The same as an address of this family: of native ones that of the device whose GID is called. */
static int own_address(const struct hv_id *id, const struct sockaddr *to, struct sockaddr_storage *from)
{
	struct sockaddr_storage target;
	struct hv_context *ctx;
	union ibv_gid gid;
	int rc = hv_sockaddr_ip(to, &target);

	if (rc)
		return rc;
	hv_sockaddr_set_port((struct sockaddr *)&target, 9); /* nothing is sent */
	rc = route((struct sockaddr *)&target, from);
	if (rc || to->sa_family != AF_IB)
		return rc;
	hv_gid_of_address((struct sockaddr *)from, &gid);
	if (hv_sockaddr_is_infiniband(to)) {
		ctx = hv_cm_context_of(HV_INFINIBAND);
		if (!ctx)
			return -errno;
		gid = ctx->port.gids[0].gid;
	}
	hv_sockaddr_native(gid.raw, id->pub.ps, 0, (struct sockaddr *)from);
	return 0;
}

/* The id's own address and device, for this way. */
static int source(struct hv_id *id, const struct sockaddr *dst)
{
	struct sockaddr *own = &id->pub.route.addr.src_addr;
	uint16_t port = own->sa_family ? hv_sockaddr_port(own) : 0;
	struct sockaddr_storage from;
	int rc;

	if (!own->sa_family || hv_sockaddr_is_any(own)) {
		rc = own_address(id, dst, &from);
		if (rc)
			return rc;
		copy_addr(&id->pub.route.addr.src_storage, (struct sockaddr *)&from);
		hv_sockaddr_set_port(own, port ? port : some_port());
	} else if (!port) {
		hv_sockaddr_set_port(own, some_port());
	}
	return hv_id_bind(id, own);
}

/* Does everything that can fail at once, and tells of the rest by an event. */
static int resolve(struct hv_id *id, const struct sockaddr *src, const struct sockaddr *dst)
{
	int rc;

	if (!hv_sockaddr_size(dst) || !hv_sockaddr_fits(dst, id->pub.ps) ||
	    (dst->sa_family == AF_IB && hv_sockaddr_is_any(dst)))
		return -EINVAL;
	if (src && (!hv_sockaddr_size(src) || src->sa_family != dst->sa_family || lacks_scope(src)))
		return -EINVAL;
	if (id->state == HV_ID_BOUND && id->pub.route.addr.src_addr.sa_family != dst->sa_family)
		return -EINVAL;
	if (id->state == HV_ID_BOUND)
		src = NULL; /* it has its address */
	if (src && !hv_sockaddr_is_any(src)) {
		rc = hv_id_bind(id, src);
		if (rc)
			return bind_error(src, rc);
	}
	if (src)
		copy_addr(&id->pub.route.addr.src_storage, src);
	copy_addr(&id->pub.route.addr.dst_storage, dst);
	hv_sockaddr_set_space(&id->pub.route.addr.dst_addr, id->pub.ps);
	if (hv_sockaddr_is_any(dst)) { /* this host, as with sockets */
		struct sockaddr_storage here = { .ss_family = dst->sa_family };

		if (dst->sa_family == AF_INET)
			((struct sockaddr_in *)&here)->sin_addr.s_addr = htobe32(INADDR_LOOPBACK);
		else
			((struct sockaddr_in6 *)&here)->sin6_addr = in6addr_loopback;
		hv_sockaddr_set_port((struct sockaddr *)&here, hv_sockaddr_port(dst));
		id->pub.route.addr.dst_storage = here;
	}
	rc = source(id, &id->pub.route.addr.dst_addr);
	if (!rc)
		id->state = HV_ID_ADDRESSED;
	return hv_cm_post(id, rc ? RDMA_CM_EVENT_ADDR_ERROR : RDMA_CM_EVENT_ADDR_RESOLVED, rc, NULL);
}

HV_PUBLIC int rdma_resolve_addr(struct rdma_cm_id *pub, struct sockaddr *src_addr, struct sockaddr *dst_addr,
				int timeout_ms)
{
	struct hv_id *id = hv_id_of(pub);
	bool sync = pub && id->sync;

	if (!pub || !dst_addr || (id->state != HV_ID_IDLE && id->state != HV_ID_BOUND))
		return hv_cm_ret(-EINVAL);
	if (hv_cm_ret(resolve(id, src_addr, dst_addr)))
		return -1;
	return hv_id_wait(id, sync);
}

/* ---- routes ---------------------------------------------------------------------------------- */

/* Whoever reads of it may go on at once, in another thread. */
static int routed(struct hv_id *id)
{
	int rc;

	id->state = HV_ID_ROUTED;
	rc = hv_cm_post(id, RDMA_CM_EVENT_ROUTE_RESOLVED, 0, NULL);
	if (rc)
		id->state = HV_ID_ADDRESSED;
	return rc;
}

/* One path as it is asked for, or the first of several. */
int hv_id_set_path(struct hv_id *id, const void *data, size_t len)
{
	const struct ibv_path_data *given = data;
	int rc;

	if (len < sizeof(*given) || len % sizeof(*given) || id->state != HV_ID_ADDRESSED)
		return -EINVAL;
	rc = hv_cm_path_make(id);
	if (rc)
		return rc;
	id->pub.route.path_rec->traffic_class = given->path.tclass;
	return routed(id);
}

HV_PUBLIC int rdma_resolve_route(struct rdma_cm_id *pub, int timeout_ms)
{
	struct hv_id *id = hv_id_of(pub);
	bool sync = pub && id->sync;
	int rc;

	if (!pub || id->state != HV_ID_ADDRESSED)
		return hv_cm_ret(-EINVAL);
	rc = hv_cm_path_make(id);
	if (!rc)
		rc = routed(id);
	return rc ? hv_cm_ret(rc) : hv_id_wait(id, sync);
}
