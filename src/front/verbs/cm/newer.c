/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * What librdmacm got after release 44, whose header may be what this front is built with:
 * rdma_resolve_addrinfo(3), rdma_query_addrinfo(3), rdma_write_cm_event(3). A header that declares
 * them does so under other names than these here (cm/names.h), so it does not matter.
 */
#include "base/lock.h"
#include "front/verbs/cm/cm.h"

#include <errno.h>
#include <netdb.h>

HV_PUBLIC int hv_rdma_resolve_addrinfo(struct rdma_cm_id *pub, const char *node, const char *service,
				       const struct rdma_addrinfo *hints);
HV_PUBLIC int hv_rdma_query_addrinfo(struct rdma_cm_id *pub, struct rdma_addrinfo **info);
HV_PUBLIC int hv_rdma_write_cm_event(struct rdma_cm_id *pub, enum rdma_cm_event_type event, int status,
				     uint64_t arg);

/* ---- names, told by an event ----------------------------------------------------------------- */

/* One at a time for each id, until what has been found is fetched. */
static bool info_begin(struct hv_id *id)
{
	bool first;

	hd_lock_take(&hv_cm_lock);
	first = !id->resolving;
	id->resolving = true;
	hd_lock_give(&hv_cm_lock);
	return first;
}

static void info_end(struct hv_id *id, struct rdma_addrinfo *found)
{
	hd_lock_take(&hv_cm_lock);
	id->resolving = found;
	id->info = found;
	hd_lock_give(&hv_cm_lock);
}

/*
 * What getaddrinfo says that is about the name, and so the answer to a question that could be
 * asked: a negative errno, else 0.
 */
static int info_status(int code)
{
	switch (code) {
	case EAI_NONAME:
	case EAI_FAIL:
	case EAI_NODATA:
	case EAI_ADDRFAMILY:
		return -ENOENT;
	case EAI_AGAIN:
		return -EAGAIN;
	case EAI_SYSTEM:
		return -errno;
	default:
		return 0;
	}
}

/*
 * It is looked up in the call, which waits for a server of names where it has to: so does the
 * library that everybody has.
 */
static int info_resolve(struct hv_id *id, const char *node, const char *service,
			const struct rdma_addrinfo *hints)
{
	struct rdma_addrinfo *found = NULL;
	int code = rdma_getaddrinfo(node, service, hints, &found), status = info_status(code), rc;

	if (code && !status)
		return code == EAI_MEMORY ? -ENOMEM : -EINVAL;
	info_end(id, found); /* before it is told: whoever reads of it fetches it */
	rc = hv_cm_post(id, code ? HV_EVENT_ADDRINFO_ERROR : HV_EVENT_ADDRINFO_RESOLVED, status, NULL);
	if (rc && found) {
		info_end(id, NULL);
		rdma_freeaddrinfo(found);
	}
	return rc;
}

int hv_rdma_resolve_addrinfo(struct rdma_cm_id *pub, const char *node, const char *service,
			     const struct rdma_addrinfo *hints)
{
	struct hv_id *id = hv_id_of(pub);
	bool sync;
	int rc;

	if (!pub)
		return hv_cm_ret(-EINVAL);
	/* there is no subnet administration to be asked */
	if (hints && hints->ai_flags & HV_RAI_SA)
		return hv_cm_ret(-ENOTSUP);
	if (!info_begin(id))
		return hv_cm_ret(-EBUSY);
	sync = id->sync;
	rc = info_resolve(id, node, service, hints);
	if (!rc)
		return hv_id_wait(id, sync);
	info_end(id, NULL);
	return hv_cm_ret(rc);
}

int hv_rdma_query_addrinfo(struct rdma_cm_id *pub, struct rdma_addrinfo **info)
{
	struct hv_id *id = hv_id_of(pub);
	struct rdma_addrinfo *found;

	if (!pub || !info)
		return hv_cm_ret(-EINVAL);
	hd_lock_take(&hv_cm_lock);
	found = id->info;
	id->info = NULL;
	if (found)
		id->resolving = false;
	hd_lock_give(&hv_cm_lock);
	if (!found)
		return hv_cm_ret(-ENOENT);
	*info = found;
	return 0;
}

/* ---- events of the program's own ------------------------------------------------------------- */

int hv_rdma_write_cm_event(struct rdma_cm_id *pub, enum rdma_cm_event_type event, int status, uint64_t arg)
{
	if (!pub || (int)event != HV_EVENT_USER)
		return hv_cm_ret(-EINVAL);
	return hv_cm_ret(
		hv_cm_post(hv_id_of(pub), (enum rdma_cm_event_type)event, status, (void *)(uintptr_t)arg));
}
