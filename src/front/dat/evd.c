/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Event dispatchers: dat_evd_create and the others. Completions and notices are in the
 * order in which they happened.
 */
#include "base/lock.h"
#include "front/dat/dat_front.h"

#include <errno.h>
#include <stdlib.h>

#define FLAGS \
	((unsigned)DAT_EVD_DEFAULT_FLAG | (unsigned)DAT_EVD_SOFTWARE_FLAG | \
	 (unsigned)DAT_IB_EVD_EXTENSION_FLAG)

/* ---- life ------------------------------------------------------------------------------------ */

/*
 * Who is told of a receive is said by the endpoint, or if that asks for it, by the sender; of a
 * request, by whoever posted it.
 */
static bool evd_tells(void *arg, const struct hd_cqe *e)
{
	const struct hu_evd *evd = arg;
	const struct hu_ep *ep;

	if (e->err || !e->flags)
		return true;
	if (!(e->flags & HD_C_RECV))
		return !(e->tag & HU_TAG_QUIET);
	ep = hu_ep_of(evd->o.ia, e->ep);
	if (ep && ep->attr.recv_completion_flags & DAT_COMPLETION_SOLICITED_WAIT_FLAG)
		return e->flags & HD_C_SOLICITED;
	return !(e->flags & HD_C_CLAIM); /* the mark of a quiet receive: post.c */
}

DAT_RETURN hu_evd_make(struct hu_ia *ia, DAT_COUNT qlen, DAT_EVD_FLAGS flags, struct hu_evd **out)
{
	struct hu_evd *evd = hu_make(ia, DAT_HANDLE_TYPE_EVD, sizeof(*evd));
	struct hd_cq_attr attr = { .size = (uint32_t)qlen, .tells = evd_tells, .arg = evd };
	int rc;

	if (!evd)
		return hu_error(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
	evd->flags = flags;
	rc = hd_cq_open(ia->node, &attr, &evd->cq);
	if (rc) {
		hu_unmake(&evd->o);
		return rc == -ENOMEM ? hu_errno(rc) : hu_error(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_TEVD);
	}
	evd->qlen = (DAT_COUNT)hd_cq_room(evd->cq);
	evd->item = (struct hd_channel_item){ .owner = evd, .taken = &evd->taken };
	*out = evd;
	return DAT_SUCCESS;
}

static DAT_RETURN evd_attach(struct hu_evd *evd, struct hu_cno *cno)
{
	if (evd->cno) {
		hd_channel_forget(evd->cno->channel, &evd->taken, NULL);
		evd->cno->o.users--;
	}
	evd->cno = cno;
	if (cno)
		cno->o.users++;
	hd_cq_set_channel(evd->cq, cno ? cno->channel : NULL, &evd->item);
	hu_evd_watch(evd);
	return DAT_SUCCESS;
}

static bool is_cno_of(const struct hu_ia *ia, DAT_CNO_HANDLE cno)
{
	return !cno || (hu_is(cno, DAT_HANDLE_TYPE_CNO) && ((struct hu_cno *)cno)->o.ia == ia);
}

DAT_RETURN hu_evd_create(DAT_IA_HANDLE ia_handle, DAT_COUNT qlen, DAT_CNO_HANDLE cno, DAT_EVD_FLAGS flags,
			 DAT_EVD_HANDLE *out)
{
	struct hu_ia *ia = ia_handle;
	struct hu_evd *evd;
	DAT_RETURN rc;

	if (!hu_is(ia, DAT_HANDLE_TYPE_IA))
		return hu_error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
	if (qlen <= 0 || qlen > HU_MAX_EVENTS)
		return hu_error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	if (!is_cno_of(ia, cno))
		return hu_error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CNO);
	if (!flags || (unsigned)flags & ~FLAGS)
		return hu_error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG4);
	if (!out)
		return hu_error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG5);
	if (!hu_enter(ia))
		return HU_DEAD;
	rc = hu_evd_make(ia, qlen, flags, &evd);
	if (!rc && cno)
		evd_attach(evd, cno);
	hu_leave(ia);
	if (!rc)
		*out = evd;
	return rc;
}

/* Whether an EVD has an IA (hu_evd.o.ia), and how many hold it: of interest to other IAs. */
HD_LOCK_DEFINE(homes);

void hu_evd_hold(struct hu_evd *evd)
{
	hd_lock_take(&homes);
	evd->o.users++;
	hd_lock_give(&homes);
}

void hu_evd_put(struct hu_evd *evd)
{
	bool last;

	hd_lock_take(&homes);
	last = --evd->o.users == 0 && !evd->o.ia;
	hd_lock_give(&homes);
	if (last)
		hu_release(&evd->o);
}

/* Async EVDs that IAs have made, the oldest first; under the lock of the homes. */
static LIST_HEAD(, hu_evd) elders = LIST_HEAD_INITIALIZER(elders);

void hu_evd_make_elder(struct hu_evd *evd)
{
	struct hu_evd *last, *next;

	hd_lock_take(&homes);
	last = LIST_FIRST(&elders);
	while (last && (next = LIST_NEXT(last, elder)))
		last = next;
	if (last)
		LIST_INSERT_AFTER(last, evd, elder);
	else
		LIST_INSERT_HEAD(&elders, evd, elder);
	evd->is_elder = true;
	hd_lock_give(&homes);
}

/* It is a handle no longer. */
static void leave_home(struct hu_evd *evd)
{
	bool last;

	hu_count_freed(evd->o.ia, DAT_HANDLE_TYPE_EVD);
	LIST_REMOVE(&evd->o, entry);
	evd->o.magic = 0;
	hd_lock_take(&homes);
	if (evd->is_elder)
		LIST_REMOVE(evd, elder);
	evd->o.ia = NULL;
	last = evd->o.users == 0;
	hd_lock_give(&homes);
	if (last)
		hu_release(&evd->o);
}

void hu_evd_drop(struct hu_evd *evd)
{
	const struct hd_cqe *e;
	struct hu_cno *cno = evd->cno;

	evd_attach(evd, NULL);
	if (cno && !cno->o.users) /* nothing can wake them any more */
		hu_cno_unblock(cno, true);
	for (; (e = hd_cq_peek(evd->cq)); hd_cq_pop(evd->cq))
		if (!e->flags)
			free(e->ctx);
	if (evd->o.ia->async == evd)
		evd->o.ia->async = NULL;
	hd_cq_close(evd->cq);
	leave_home(evd);
}

DAT_RETURN hu_evd_free(DAT_EVD_HANDLE handle)
{
	DAT_RETURN rc;
	struct hu_evd *evd = hu_begin(handle, DAT_HANDLE_TYPE_EVD, DAT_INVALID_HANDLE1, &rc);
	struct hu_ia *ia = evd ? evd->o.ia : NULL;

	if (!evd)
		return rc;
	if (evd->waiter)
		rc = hu_error(DAT_INVALID_STATE, DAT_INVALID_STATE_EVD_WAITER);
	else if (evd->o.users || ia->async == evd) /* the IA's own goes with it */
		rc = hu_error(DAT_INVALID_STATE, DAT_INVALID_STATE_EVD_IN_USE);
	else
		hu_evd_drop(evd);
	hu_leave(ia);
	return rc;
}

/* ---- what it is, and is to be ---------------------------------------------------------------- */

/*
 * How who waits there is woken: by all that comes, by what others or the program wish,
 * or by how much there is.
 */
static DAT_EVD_STATE configuration(const struct hu_evd *evd)
{
	return evd->controlled	 ? DAT_EVD_STATE_CONFIG_SOLICITED
	       : evd->thresholds ? DAT_EVD_STATE_CONFIG_THRESHOLD
				 : DAT_EVD_STATE_CONFIG_NOTIFY;
}

DAT_RETURN hu_evd_query(DAT_EVD_HANDLE handle, DAT_EVD_PARAM_MASK mask, DAT_EVD_PARAM *param)
{
	DAT_RETURN rc;
	struct hu_evd *evd;

	if ((unsigned)mask & ~(unsigned)DAT_EVD_FIELD_ALL)
		return hu_error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	if (!param)
		return hu_error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	evd = hu_begin(handle, DAT_HANDLE_TYPE_EVD, DAT_INVALID_HANDLE1, &rc);
	if (!evd)
		return rc;
	*param = (DAT_EVD_PARAM){
		.ia_handle = hu_ia_handle(evd->o.ia),
		.evd_qlen = evd->qlen,
		.evd_state =
			(DAT_EVD_STATE)((evd->disabled ? DAT_EVD_STATE_DISABLED : DAT_EVD_STATE_ENABLED) |
					(evd->unwaitable ? DAT_EVD_STATE_UNWAITABLE
							 : DAT_EVD_STATE_WAITABLE) |
					configuration(evd)),
		.cno_handle = evd->cno,
		.evd_flags = evd->flags,
	};
	hu_leave(evd->o.ia);
	return DAT_SUCCESS;
}

DAT_RETURN hu_evd_modify_cno(DAT_EVD_HANDLE handle, DAT_CNO_HANDLE cno)
{
	DAT_RETURN rc;
	struct hu_evd *evd = hu_begin(handle, DAT_HANDLE_TYPE_EVD, DAT_INVALID_HANDLE1, &rc);

	if (!evd)
		return rc;
	rc = is_cno_of(evd->o.ia, cno) ? evd_attach(evd, cno)
				       : hu_error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CNO);
	hu_leave(evd->o.ia);
	return rc;
}

DAT_RETURN hu_evd_resize(DAT_EVD_HANDLE handle, DAT_COUNT qlen)
{
	DAT_RETURN rc;
	struct hu_evd *evd;

	if (qlen <= 0 || qlen > HU_MAX_EVENTS)
		return hu_error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	evd = hu_begin(handle, DAT_HANDLE_TYPE_EVD, DAT_INVALID_HANDLE1, &rc);
	if (!evd)
		return rc;
	switch (-hd_cq_resize(evd->cq, (uint32_t)qlen)) {
	case 0:
		evd->qlen = (DAT_COUNT)hd_cq_room(evd->cq);
		break;
	case EINVAL: /* more events are in it */
		rc = hu_error(DAT_INVALID_STATE, DAT_NO_SUBTYPE);
		break;
	default:
		rc = hu_error(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
	}
	hu_leave(evd->o.ia);
	return rc;
}

/* hu_evd_watch: the next event is told of; what is there already, at once. */
void hu_evd_watch(struct hu_evd *evd)
{
	if (!evd->cno || evd->disabled)
		return;
	if (hd_cq_peek(evd->cq))
		hd_channel_post(evd->cno->channel, &evd->item);
	else
		hd_cq_notify(evd->cq, false);
}

static DAT_RETURN set_disabled(DAT_EVD_HANDLE handle, bool disabled)
{
	DAT_RETURN rc;
	struct hu_evd *evd = hu_begin(handle, DAT_HANDLE_TYPE_EVD, DAT_INVALID_HANDLE1, &rc);

	if (!evd)
		return rc;
	if (evd->disabled != disabled) {
		evd->disabled = disabled;
		if (evd->cno)
			evd_attach(evd, evd->cno);
	}
	hu_leave(evd->o.ia);
	return DAT_SUCCESS;
}

DAT_RETURN hu_evd_enable(DAT_EVD_HANDLE handle)
{
	return set_disabled(handle, false);
}

DAT_RETURN hu_evd_disable(DAT_EVD_HANDLE handle)
{
	return set_disabled(handle, true);
}

static DAT_RETURN set_unwaitable(DAT_EVD_HANDLE handle, bool unwaitable)
{
	DAT_RETURN rc;
	struct hu_evd *evd = hu_begin(handle, DAT_HANDLE_TYPE_EVD, DAT_INVALID_HANDLE1, &rc);

	if (!evd)
		return rc;
	evd->unwaitable = unwaitable;
	if (unwaitable && evd->waiter)
		hd_cq_signal(evd->cq);
	hu_leave(evd->o.ia);
	return DAT_SUCCESS;
}

DAT_RETURN hu_evd_set_unwaitable(DAT_EVD_HANDLE handle)
{
	return set_unwaitable(handle, true);
}

DAT_RETURN hu_evd_clear_unwaitable(DAT_EVD_HANDLE handle)
{
	return set_unwaitable(handle, false);
}

/* ---- events ---------------------------------------------------------------------------------- */

static bool is_of_connection(DAT_EVENT_NUMBER number)
{
	return (number >= DAT_CONNECTION_REQUEST_EVENT && number <= DAT_CONNECTION_EVENT_UNREACHABLE) ||
	       (number >= (DAT_EVENT_NUMBER)DAT_IB_UD_CONNECTION_REQUEST_EVENT &&
		number <= (DAT_EVENT_NUMBER)DAT_IB_UD_CONNECTION_ERROR_EVENT);
}

static void evd_append(struct hu_evd *evd, const DAT_EVENT *event)
{
	struct hu_notice *notice = malloc(sizeof(*notice));

	if (!notice)
		return;
	evd->counts[DCNT_EVD_CONN_CALLBACK] += is_of_connection(event->event_number);
	notice->event = *event;
	notice->event.evd_handle = evd;
	hd_cq_post(evd->cq, &(struct hd_cqe){ .ctx = notice, .ep = UINT32_MAX });
}

/* An event on its way to another IA, by way of that one's progress. */
struct letter {
	struct hd_crosswork crosswork;
	struct hu_evd *evd;
	DAT_EVENT event;
};

static void deliver(struct hd_crosswork *crosswork)
{
	struct letter *letter = hu_container(crosswork, struct letter, crosswork);

	if (letter->evd->o.ia)
		evd_append(letter->evd, &letter->event);
	hu_evd_put(letter->evd);
	free(letter);
}

/* With the lock of the homes, so that this one is not closed. */
static void send_home(struct hu_evd *evd, const DAT_EVENT *event)
{
	struct letter *letter = malloc(sizeof(*letter));

	if (!letter)
		return;
	*letter = (struct letter){ .crosswork.fn = deliver, .evd = evd, .event = *event };
	evd->o.users++;
	hd_crosswork_send(evd->o.ia->node, &letter->crosswork);
}

void hu_notify(struct hu_ia *from, struct hu_evd *evd, const DAT_EVENT *event)
{
	struct hu_ia *home;

	if (!evd)
		return;
	hd_lock_take(&homes);
	home = evd->o.ia;
	if (home && home != from)
		send_home(evd, event);
	hd_lock_give(&homes);
	if (home == from)
		evd_append(evd, event);
}

/* It is never of the IA that asks: that has none. */
static void notify_eldest(const DAT_EVENT *event)
{
	hd_lock_take(&homes);
	if (!LIST_EMPTY(&elders))
		send_home(LIST_FIRST(&elders), event);
	hd_lock_give(&homes);
}

void hu_notify_async(struct hu_ia *ia, DAT_EVENT_NUMBER number, void *object, DAT_COUNT reason)
{
	DAT_EVENT event = { .event_number = number };

	event.event_data.asynch_error_event_data = (DAT_ASYNCH_ERROR_EVENT_DATA){ object, reason };
	hu_count(ia, DCNT_IA_ASYNC_ERROR);
	if (((struct hu_object *)object)->type == DAT_HANDLE_TYPE_EP)
		hu_count(ia, DCNT_IA_ASYNC_QP_ERROR);
	if (ia->async)
		hu_notify(ia, ia->async, &event);
	else
		notify_eldest(&event);
}
