/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Interface adapters: dat_ia_open, dat_ia_close. An IA is a node of the engine. */
#include "front/dat/connect.h"
#include "front/dat/ud.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- opening --------------------------------------------------------------------------------- */

/* Programs read an address of the IPv4 family, where the host has one. */
static void find_address(struct hu_ia *ia)
{
	struct sockaddr_storage addr;

	for (int i = 0; hd_node_address(ia->node, i, &addr); i++) {
		if (i == 0)
			ia->addr = addr;
		if (addr.ss_family == AF_INET) {
			ia->addr = addr;
			return;
		}
	}
}

/* The program's own async EVD, of another instance, or one that is made for it. With the lock. */
static DAT_RETURN find_async(struct hu_ia *ia, DAT_COUNT qlen, DAT_EVD_HANDLE *handle)
{
	struct hu_evd *evd = *handle;
	DAT_RETURN rc;

	if (*handle == DAT_EVD_ASYNC_EXISTS)
		return DAT_SUCCESS;
	if (*handle != DAT_HANDLE_NULL) {
		if (!hu_is(evd, DAT_HANDLE_TYPE_EVD) || !(evd->flags & DAT_EVD_ASYNC_FLAG))
			return hu_error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EVD_ASYNC);
		hu_evd_hold(evd);
		ia->async = evd;
		return DAT_SUCCESS;
	}
	rc = hu_evd_make(ia, qlen, DAT_EVD_ASYNC_FLAG, &ia->async);
	if (!rc)
		hu_evd_make_elder(ia->async);
	return rc;
}

/* hd_evq_open_told's: whose it is, is told. */
static void ia_happened(void *ia, const struct hd_event *event)
{
	struct hu_object *owner = event->owner;

	if (owner->type == DAT_HANDLE_TYPE_EP)
		hu_ep_happened((struct hu_ep *)owner, event);
	else if (owner->type == HU_TYPE_HANDSHAKE)
		hu_ud_happened((struct hu_handshake *)owner, event);
	else if (event->code == HD_EV_REQUEST)
		hu_requested((struct hu_sp *)owner, event);
}

static DAT_RETURN open_up(struct hu_ia *ia, DAT_COUNT qlen, DAT_EVD_HANDLE *async)
{
	const struct hd_node_attr attr = { .front = "dat", .locked = true, .serve = true };
	DAT_RETURN rc = hu_errno(hd_node_open(&attr, &ia->node));

	if (rc)
		return rc;
	rc = hu_errno(hd_evq_open_told(ia_happened, ia, &ia->events));
	if (!rc) {
		hd_node_lock(ia->node);
		find_address(ia);
		rc = find_async(ia, qlen, async);
		hd_node_unlock(ia->node);
		if (rc)
			hd_evq_close(ia->events);
	}
	if (rc)
		hd_node_close(ia->node);
	return rc;
}

DAT_RETURN hu_ia_open_by(const DAT_PROVIDER *provider, bool thread_safe, const char *name, DAT_COUNT qlen,
			 DAT_EVD_HANDLE *async, DAT_IA_HANDLE *out)
{
	struct hu_ia *ia;
	DAT_RETURN rc;

	if (qlen < 0 || qlen > HU_MAX_EVENTS)
		return hu_error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	if (!async)
		return hu_error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	if (!out)
		return hu_error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG4);
	ia = calloc(1, sizeof(*ia));
	if (!ia)
		return hu_error(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
	ia->o = (struct hu_object){
		.provider = provider, .magic = HU_MAGIC, .type = DAT_HANDLE_TYPE_IA, .ia = ia
	};
	ia->thread_safe = thread_safe;
	(void)snprintf(ia->name, sizeof(ia->name), "%s", name);
	pthread_mutex_init(&ia->mutex, NULL);
	pthread_cond_init(&ia->left, NULL);
	rc = open_up(ia, qlen, async);
	if (rc) {
		free(ia);
		return rc;
	}
	if (ia->async)
		*async = ia->async;
	*out = ia;
	return DAT_SUCCESS;
}

/* ---- closing --------------------------------------------------------------------------------- */

/* no object: drop_all */
#define HU_TYPE_PLACE ((DAT_HANDLE_TYPE)(DAT_HANDLE_TYPE_EXTENSION_BASE + 18))

static void ia_drop(struct hu_object *o)
{
	switch (o->type) {
	case DAT_HANDLE_TYPE_CR:
		hu_cr_drop((struct hu_cr *)o);
		break;
	case DAT_HANDLE_TYPE_PSP:
	case DAT_HANDLE_TYPE_RSP:
	case DAT_HANDLE_TYPE_CSP:
		hu_sp_drop((struct hu_sp *)o);
		break;
	case DAT_HANDLE_TYPE_EP:
		hu_ep_drop((struct hu_ep *)o);
		break;
	case DAT_HANDLE_TYPE_SRQ:
		hu_srq_drop((struct hu_srq *)o);
		break;
	case DAT_HANDLE_TYPE_EVD:
		hu_evd_drop((struct hu_evd *)o);
		break;
	case DAT_HANDLE_TYPE_RMR:
		hu_rmr_drop((struct hu_rmr *)o);
		break;
	case DAT_HANDLE_TYPE_LMR:
		hu_region_drop(((struct hu_lmr *)o)->mr);
		hu_free(o);
		break;
	default:
		hu_free(o);
	}
}

/* What uses others goes before them; CNOs are left: hu_cnos_drop. */
static void drop_all(struct hu_ia *ia)
{
	static const DAT_HANDLE_TYPE order[] = { DAT_HANDLE_TYPE_CR,  DAT_HANDLE_TYPE_PSP,
						 DAT_HANDLE_TYPE_RSP, DAT_HANDLE_TYPE_CSP,
						 DAT_HANDLE_TYPE_EP,  DAT_HANDLE_TYPE_SRQ,
						 DAT_HANDLE_TYPE_RMR, DAT_HANDLE_TYPE_LMR,
						 DAT_HANDLE_TYPE_PZ,  DAT_HANDLE_TYPE_EVD };
	struct hu_object at = { .type = HU_TYPE_PLACE }, *o;

	/*
	 * the lock may be away meanwhile, so the place in the list is kept by
	 * something that nobody frees
	 */
	for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++) {
		LIST_INSERT_HEAD(&ia->objects, &at, entry);
		while ((o = LIST_NEXT(&at, entry))) {
			LIST_REMOVE(&at, entry);
			LIST_INSERT_AFTER(o, &at, entry);
			if (o->type == order[i])
				ia_drop(o);
		}
		LIST_REMOVE(&at, entry);
	}
}

static bool ia_is_in_use(const struct hu_ia *ia)
{
	const struct hu_object *o;

	LIST_FOREACH(o, &ia->objects, entry)
		if (!ia->async || o != &ia->async->o)
			return true;
	return false;
}

/* Those who wait for events are told to leave: DAT_ABORT, or of a CNO no EVD. With the lock. */
static void wake_waiters(struct hu_ia *ia)
{
	struct hu_object *o;

	ia->closing = true;
	LIST_FOREACH(o, &ia->objects, entry) {
		struct hu_evd *evd = (struct hu_evd *)o;

		if (o->type == DAT_HANDLE_TYPE_EVD && evd->waiter)
			hd_cq_signal(evd->cq);
		if (o->type == DAT_HANDLE_TYPE_CNO)
			hu_cno_unblock((struct hu_cno *)o, false);
	}
}

/*
 * Their dispatchers stay until they have left. In a forked child there are none. Without the lock.
 */
static void see_off_waiters(struct hu_ia *ia)
{
	if (hd_node_dead(ia->node))
		return;
	pthread_mutex_lock(&ia->mutex);
	while (ia->waiters)
		pthread_cond_wait(&ia->left, &ia->mutex);
	pthread_mutex_unlock(&ia->mutex);
}

DAT_RETURN hu_ia_close(DAT_IA_HANDLE handle, DAT_CLOSE_FLAGS flags)
{
	struct hu_ia *ia = handle;

	if (!hu_is(ia, DAT_HANDLE_TYPE_IA))
		return hu_error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
	if (flags != DAT_CLOSE_ABRUPT_FLAG && flags != DAT_CLOSE_GRACEFUL_FLAG)
		return hu_error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	hd_node_lock(ia->node); /* in a forked child as well: it only gives memory back */
	if (flags == DAT_CLOSE_GRACEFUL_FLAG && ia_is_in_use(ia)) {
		hd_node_unlock(ia->node);
		return hu_error(DAT_INVALID_STATE, DAT_INVALID_STATE_IA_IN_USE);
	}
	ia->o.magic = 0;
	wake_waiters(ia);
	hd_node_unlock(ia->node);
	see_off_waiters(ia);
	hu_cnos_silence(ia);
	hd_node_lock(ia->node);
	drop_all(ia);
	if (ia->async) /* another's: its own has been dropped */
		hu_evd_put(ia->async);
	hd_node_unlock(ia->node);
	hu_cnos_drop(ia);
	hd_evq_close(ia->events);
	(void)hd_node_close(ia->node); /* nothing of it is left */
	pthread_cond_destroy(&ia->left);
	pthread_mutex_destroy(&ia->mutex);
	free(ia->eps);
	free(ia);
	return DAT_SUCCESS;
}

DAT_RETURN hu_ia_ha_related(DAT_IA_HANDLE handle, const DAT_NAME_PTR provider, DAT_BOOLEAN *related)
{
	if (!hu_is(handle, DAT_HANDLE_TYPE_IA))
		return hu_error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
	if (!provider)
		return hu_error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	if (!related)
		return hu_error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	*related = DAT_FALSE; /* ha_supported says that there is nothing of the kind */
	return DAT_SUCCESS;
}
