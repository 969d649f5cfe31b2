/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * What programs do with the events of a dispatcher: dat_evd_dequeue, dat_evd_post_se, dat_evd_wait.
 */
#include "front/dat/dat_front.h"

#include <errno.h>

/*
 * There is nothing: of completions that is no error, as OFA's providers have it; programs
 * compare with the bare type.
 */
static DAT_RETURN evd_read_nothing(const struct hu_evd *evd, DAT_RETURN_TYPE type)
{
	return evd->flags & (DAT_EVD_DTO_FLAG | DAT_EVD_RMR_BIND_FLAG) ? (DAT_RETURN)type
								       : hu_error(type, DAT_NO_SUBTYPE);
}

/* The oldest event; false: there is none. With the lock. */
static bool evd_read_take(struct hu_evd *evd, DAT_EVENT *event)
{
	const struct hd_cqe *e;
	bool told = false;

	while (!told && (e = hd_cq_poll(evd->cq))) {
		evd->counts[DCNT_EVD_DTO_CALLBACK] += e->flags != 0;
		told = hu_event_fill(evd, e, event);
		hd_cq_pop(evd->cq);
	}
	evd->counts[DCNT_EVD_DEQUEUE_POLL]++;
	evd->counts[DCNT_EVD_DEQUEUE_POLL_FOUND] += told;
	return told;
}

DAT_RETURN hu_evd_dequeue(DAT_EVD_HANDLE handle, DAT_EVENT *event)
{
	struct hu_evd *evd = handle;
	bool there;

	if (!hu_is(evd, DAT_HANDLE_TYPE_EVD))
		return hu_error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE1);
	if (!event)
		return hu_error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	if (!hu_enter(evd->o.ia))
		return HU_DEAD;
	if (hu_unlikely(evd->waiter)) {
		hu_leave(evd->o.ia);
		return hu_error(DAT_INVALID_STATE, DAT_INVALID_STATE_EVD_WAITER);
	}
	there = evd_read_take(evd, event);
	evd->counts[DCNT_EVD_DEQUEUE]++;
	evd->counts[there ? DCNT_EVD_DEQUEUE_FOUND : DCNT_EVD_DEQUEUE_NOT_FOUND]++;
	hu_leave(evd->o.ia);
	if (!there)
		hd_node_rest(evd->o.ia->node);
	return there ? DAT_SUCCESS : evd_read_nothing(evd, DAT_QUEUE_EMPTY);
}

DAT_RETURN hu_evd_post_se(DAT_EVD_HANDLE handle, const DAT_EVENT *event)
{
	DAT_RETURN rc;
	struct hu_evd *evd = hu_begin(handle, DAT_HANDLE_TYPE_EVD, DAT_INVALID_HANDLE1, &rc);

	if (!evd)
		return rc;
	if (!event || event->event_number != DAT_SOFTWARE_EVENT)
		rc = hu_error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	else if (!(evd->flags & DAT_EVD_SOFTWARE_FLAG))
		rc = hu_error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG1);
	else if (hd_cq_count(evd->cq) >= (uint32_t)evd->qlen)
		rc = hu_error(DAT_QUEUE_FULL, DAT_NO_SUBTYPE);
	else
		hu_notify(evd->o.ia, evd, event);
	hu_leave(evd->o.ia);
	return rc;
}

/* ---- waiting --------------------------------------------------------------------------------- */

static DAT_RETURN begin_wait(struct hu_evd *evd, DAT_COUNT threshold)
{
	DAT_RETURN rc = DAT_SUCCESS;

	if (!hu_enter(evd->o.ia))
		return HU_DEAD;
	if (evd->o.ia->closing)
		rc = hu_error(DAT_ABORT, DAT_NO_SUBTYPE);
	else if (evd->unwaitable)
		rc = hu_error(DAT_INVALID_STATE, DAT_INVALID_STATE_EVD_UNWAITABLE);
	else if (evd->waiter)
		rc = hu_error(DAT_INVALID_STATE, DAT_INVALID_STATE_EVD_WAITER);
	else if (threshold > 1 && evd->controlled)
		rc = hu_error(DAT_INVALID_STATE, DAT_INVALID_STATE_EVD_CONFIG_SOLICITED);
	else
		evd->waiter = true;
	evd->counts[DCNT_EVD_WAIT]++;
	evd->blocked = !rc && hd_cq_count(evd->cq) < (uint32_t)threshold;
	evd->counts[DCNT_EVD_WAIT_BLOCKED] += evd->blocked;
	hu_leave(evd->o.ia);
	return rc;
}

static DAT_RETURN end_wait(struct hu_evd *evd, int why, DAT_EVENT *event, DAT_COUNT *more)
{
	DAT_RETURN rc = DAT_SUCCESS;

	if (!hu_enter(evd->o.ia))
		return HU_DEAD;
	evd->waiter = false;
	evd->counts[DCNT_EVD_WAIT_NOTIFY] += evd->blocked && !why;
	if (evd->o.ia->closing)
		rc = hu_error(DAT_ABORT, DAT_NO_SUBTYPE);
	else if (evd->unwaitable)
		rc = hu_error(DAT_INVALID_STATE, DAT_INVALID_STATE_EVD_UNWAITABLE);
	else if (why == -EAGAIN)
		rc = evd_read_nothing(evd, DAT_TIMEOUT_EXPIRED);
	else if (why == -EINTR)
		rc = hu_error(DAT_INTERRUPTED_CALL, DAT_NO_SUBTYPE);
	else if (why)
		rc = HU_DEAD;
	else if (!evd_read_take(evd, event))
		/* it was of an endpoint that is gone */
		rc = evd_read_nothing(evd, DAT_TIMEOUT_EXPIRED);
	*more = (DAT_COUNT)hd_cq_count(evd->cq);
	hu_leave(evd->o.ia);
	return rc;
}

static bool is_sent_away(const struct hu_evd *evd)
{
	bool away;

	hd_node_lock(evd->o.ia->node);
	away = evd->o.ia->closing || evd->unwaitable;
	hd_node_unlock(evd->o.ia->node);
	return away;
}

/*
 * A signal may have been for a waiter who had just left: that is none for us, and so rare that
 * the time may begin anew.
 */
static int evd_read_await(struct hu_evd *evd, DAT_COUNT threshold, int ms)
{
	int why;

	do
		why = hd_cq_wait_told(evd->cq, (uint64_t)threshold, ms);
	while (hu_unlikely(why == -ECANCELED) && !is_sent_away(evd));
	return why;
}

/*
 * The thread ends where it waits: it is none of those who wait any more, and
 * nobody is told of what comes.
 */
static void evd_read_cancelled(void *arg)
{
	struct hu_evd *evd = arg;
	struct hu_ia *ia = evd->o.ia;

	hd_node_lock(ia->node);
	evd->waiter = false;
	hd_node_unlock(ia->node);
	hu_waiters_add(ia, -1);
}

static DAT_RETURN wait_begun(struct hu_evd *evd, DAT_COUNT threshold, int ms, DAT_EVENT *event,
			     DAT_COUNT *more)
{
	int why;

	pthread_cleanup_push(evd_read_cancelled, evd);
	why = evd_read_await(evd, threshold, ms);
	pthread_cleanup_pop(0);
	return end_wait(evd, why, event, more);
}

DAT_RETURN hu_evd_wait(DAT_EVD_HANDLE handle, DAT_TIMEOUT timeout, DAT_COUNT threshold, DAT_EVENT *event,
		       DAT_COUNT *more)
{
	struct hu_evd *evd = handle;
	struct hu_ia *ia;
	DAT_RETURN rc;

	if (!hu_is(evd, DAT_HANDLE_TYPE_EVD))
		return hu_error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE1);
	if (threshold <= 0 || threshold > evd->qlen)
		return hu_error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	if (!event)
		return hu_error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG4);
	if (!more)
		return hu_error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG5);
	ia = evd->o.ia;
	hu_waiters_add(ia, 1);
	rc = begin_wait(evd, threshold);
	if (!rc)
		rc = wait_begun(evd, threshold, hu_timeout_ms(timeout), event, more);
	hu_waiters_add(ia, -1);
	return rc;
}
