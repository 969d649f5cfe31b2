/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Consumer notification objects: dat_cno_create and the others. One is a channel, in which EVDs
 * wait that have something to read.
 */
#include "base/clock.h"
#include "front/dat/dat_front.h"

#include <errno.h>

/* ---- life ------------------------------------------------------------------------------------ */

/* The channel comes first, and goes last: for that the lock may not be held. */
static DAT_RETURN cno_make(struct hu_ia *ia, DAT_PROXY_TYPE proxy, struct hu_cno **out)
{
	struct hd_channel *channel;
	struct hu_cno *cno = NULL;
	int rc = hd_channel_open(ia->node, &channel);

	if (rc)
		return hu_errno(rc);
	if (hu_enter(ia)) {
		cno = hu_make(ia, DAT_HANDLE_TYPE_CNO, sizeof(*cno));
		hu_leave(ia);
		rc = -ENOMEM;
	} else {
		rc = -ENOTRECOVERABLE;
	}
	if (!cno) {
		hd_channel_close(channel);
		return hu_errno(rc);
	}
	cno->channel = channel;
	cno->proxy = proxy;
	cno->unblock.taken = &cno->unblocked;
	*out = cno;
	return DAT_SUCCESS;
}

/*
 * The EVD that has waited longest, which is watched for what comes next, or NULL, for who is to
 * wait no longer. False: there is neither. With the lock.
 */
static bool cno_take(struct hu_cno *cno, struct hu_evd **out)
{
	struct hd_channel_item *item;
	struct hu_evd *evd;

	*out = NULL;
	if (hd_channel_take(cno->channel, &item))
		return false;
	*out = evd = item->owner;
	if (evd && !evd->disabled)
		hd_cq_notify(evd->cq, false);
	return true;
}

static bool enter_and_take(struct hu_cno *cno, struct hu_evd **out)
{
	bool there;

	hd_node_lock(cno->o.ia->node);
	there = cno_take(cno, out);
	hd_node_unlock(cno->o.ia->node);
	return there;
}

void hu_cno_unblock(struct hu_cno *cno, bool agent)
{
	for (int n = cno->waiters + (agent && cno->herald); n > 0; n--)
		hd_channel_post(cno->channel, &cno->unblock);
}

/* By the herald. The CNO may be gone when the agent returns. */
static void call_agent(void *arg)
{
	struct hu_cno *cno = arg;
	DAT_OS_WAIT_PROXY_AGENT agent = cno->agent; /* does not change while it has a herald */
	struct hu_evd *evd;

	if (enter_and_take(cno, &evd))
		agent.proxy_agent_func(agent.instance_data, evd);
}

/* What was there before is called no more. */
static DAT_RETURN set_agent(struct hu_cno *cno, const DAT_OS_WAIT_PROXY_AGENT *agent)
{
	struct hd_notifier *old;
	int rc = 0;

	if (!hu_enter(cno->o.ia))
		return HU_DEAD;
	old = cno->herald;
	cno->herald = NULL;
	hu_leave(cno->o.ia);
	if (old)
		hd_notifier_close(old);
	cno->agent = *agent;
	cno->proxy = agent->proxy_agent_func ? DAT_PROXY_TYPE_AGENT : DAT_PROXY_TYPE_NONE;
	if (agent->proxy_agent_func)
		rc = hd_notifier_open(cno->channel, call_agent, cno, &cno->herald);
	if (rc)
		cno->proxy = DAT_PROXY_TYPE_NONE;
	return rc ? hu_error(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY) : DAT_SUCCESS;
}

/* With nobody else about. */
static void unmake(struct hu_cno *cno)
{
	if (cno->herald)
		hd_notifier_close(cno->herald);
	hd_channel_close(cno->channel);
}

DAT_RETURN hu_cno_create(DAT_IA_HANDLE ia_handle, DAT_OS_WAIT_PROXY_AGENT agent, DAT_CNO_HANDLE *out)
{
	struct hu_ia *ia = ia_handle;
	struct hu_cno *cno;
	DAT_RETURN rc;

	if (!hu_is(ia, DAT_HANDLE_TYPE_IA))
		return hu_error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
	if (!out)
		return hu_error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	rc = cno_make(ia, DAT_PROXY_TYPE_NONE, &cno);
	if (rc)
		return rc;
	rc = set_agent(cno, &agent);
	if (rc) {
		hu_cno_free(cno);
		return rc;
	}
	*out = cno;
	return DAT_SUCCESS;
}

DAT_RETURN hu_cno_fd_create(DAT_IA_HANDLE ia_handle, DAT_FD *fd, DAT_CNO_HANDLE *out)
{
	struct hu_ia *ia = ia_handle;
	struct hu_cno *cno;
	DAT_RETURN rc;

	if (!hu_is(ia, DAT_HANDLE_TYPE_IA))
		return hu_error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
	if (!fd)
		return hu_error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	if (!out)
		return hu_error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	rc = cno_make(ia, DAT_PROXY_TYPE_FD, &cno);
	if (rc)
		return rc;
	*fd = hd_channel_fd(cno->channel);
	*out = cno;
	return DAT_SUCCESS;
}

void hu_cnos_silence(struct hu_ia *ia)
{
	struct hu_object *o;

	LIST_FOREACH(o, &ia->objects, entry) {
		struct hu_cno *cno = (struct hu_cno *)o;

		if (o->type != DAT_HANDLE_TYPE_CNO || !cno->herald)
			continue;
		hd_notifier_close(cno->herald);
		cno->herald = NULL;
		/* the last time */
		cno->agent.proxy_agent_func(cno->agent.instance_data, DAT_HANDLE_NULL);
	}
}

void hu_cnos_drop(struct hu_ia *ia)
{
	struct hu_object *o, *next;

	for (o = LIST_FIRST(&ia->objects); o; o = next) {
		next = LIST_NEXT(o, entry);
		if (o->type != DAT_HANDLE_TYPE_CNO)
			continue;
		unmake((struct hu_cno *)o);
		hu_free(o);
	}
}

/*
 * The lock may not be held when its herald and its channel go; nobody may use it any more, as
 * nothing has it for its own.
 */
DAT_RETURN hu_cno_free(DAT_CNO_HANDLE handle)
{
	struct hu_cno *cno = handle;
	struct hu_ia *ia;

	if (!hu_is(cno, DAT_HANDLE_TYPE_CNO))
		return hu_error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CNO);
	ia = cno->o.ia;
	if (!hu_enter(ia))
		return HU_DEAD;
	if (cno->o.users || cno->waiters) {
		hu_leave(ia);
		return hu_error(DAT_INVALID_STATE, DAT_INVALID_STATE_CNO_IN_USE);
	}
	hu_leave(ia);
	unmake(cno);
	hd_node_lock(ia->node);
	hu_free(&cno->o);
	hd_node_unlock(ia->node);
	return DAT_SUCCESS;
}

DAT_RETURN hu_cno_modify_agent(DAT_CNO_HANDLE handle, DAT_OS_WAIT_PROXY_AGENT agent)
{
	struct hu_cno *cno = handle;

	if (!hu_is(cno, DAT_HANDLE_TYPE_CNO))
		return hu_error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CNO);
	if (cno->proxy == DAT_PROXY_TYPE_FD) /* it has a descriptor for that */
		return hu_error(DAT_MODEL_NOT_SUPPORTED, DAT_NO_SUBTYPE);
	return set_agent(cno, &agent);
}

DAT_RETURN hu_cno_query(DAT_CNO_HANDLE handle, DAT_CNO_PARAM_MASK mask, DAT_CNO_PARAM *param)
{
	const struct hu_cno *cno = handle;

	if (!hu_is(cno, DAT_HANDLE_TYPE_CNO))
		return hu_error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CNO);
	if ((unsigned)mask & ~7u)
		return hu_error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	if (!param)
		return hu_error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	*param = (DAT_CNO_PARAM){ .ia_handle = hu_ia_handle(cno->o.ia), .proxy_type = cno->proxy };
	if (cno->proxy == DAT_PROXY_TYPE_FD)
		param->proxy.fd = hd_channel_fd(cno->channel);
	else if (cno->proxy == DAT_PROXY_TYPE_AGENT)
		param->proxy.agent = cno->agent;
	return DAT_SUCCESS;
}

/* ---- waiting --------------------------------------------------------------------------------- */

/*
 * With the lock. Those who are sent away are counted; what was meant for one who has
 * left before is nobody's.
 */
static void cno_leave(struct hu_cno *cno)
{
	if (!--cno->waiters && !cno->herald)
		hd_channel_forget(cno->channel, &cno->unblocked, NULL);
}

static void cno_depart(struct hu_cno *cno)
{
	hd_node_lock(cno->o.ia->node);
	cno_leave(cno);
	hd_node_unlock(cno->o.ia->node);
}

/* The thread ends where it waits. */
static void cno_cancelled(void *arg)
{
	struct hu_cno *cno = arg;
	struct hu_ia *ia = cno->o.ia;

	cno_depart(cno);
	hu_waiters_add(ia, -1);
}

/* Until then; 0: for ever. Without the lock. */
static int cno_await(struct hu_cno *cno, uint64_t due, struct hu_evd **evd)
{
	uint64_t now;
	int ms, rc = 0;

	while (!rc && !enter_and_take(cno, evd)) {
		now = due ? hd_now_ns() : 0;
		ms = !due ? -1 : due > now ? (int)((due - now) / HD_NS_PER_MS) + 1 : 0;
		rc = hd_channel_wait(cno->channel, ms, NULL);
	}
	return rc;
}

static DAT_RETURN wait_answer(int why)
{
	switch (-why) {
	case 0:
		return DAT_SUCCESS;
	case ETIMEDOUT:
	case EAGAIN:
		return (DAT_RETURN)DAT_QUEUE_EMPTY; /* no error, as OFA's providers have it */
	case EINTR:
		return hu_error(DAT_INTERRUPTED_CALL, DAT_NO_SUBTYPE);
	default:
		return HU_DEAD;
	}
}

/* Between counting itself in and out it is waited for by who closes the IA. */
static DAT_RETURN wait_counted(struct hu_cno *cno, DAT_TIMEOUT timeout, struct hu_evd **evd)
{
	int ms = hu_timeout_ms(timeout);
	uint64_t due = ms < 0 ? 0 : hd_now_ns() + (uint64_t)ms * HD_NS_PER_MS;
	bool closing;
	int why = 0;

	if (!hu_enter(cno->o.ia))
		return HU_DEAD;
	closing = cno->o.ia->closing;
	cno->waiters += !closing;
	hu_leave(cno->o.ia);
	if (closing)
		return DAT_SUCCESS;
	pthread_cleanup_push(cno_cancelled, cno);
	why = cno_await(cno, due, evd);
	pthread_cleanup_pop(0);
	cno_depart(cno);
	return wait_answer(why);
}

DAT_RETURN hu_cno_wait(DAT_CNO_HANDLE handle, DAT_TIMEOUT timeout, DAT_EVD_HANDLE *out)
{
	struct hu_cno *cno = handle;
	struct hu_evd *evd = NULL;
	struct hu_ia *ia;
	DAT_RETURN rc;

	if (!hu_is(cno, DAT_HANDLE_TYPE_CNO))
		return hu_error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CNO);
	if (!out)
		return hu_error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	ia = cno->o.ia;
	hu_waiters_add(ia, 1);
	rc = wait_counted(cno, timeout, &evd);
	hu_waiters_add(ia, -1);
	*out = evd;
	return rc;
}

DAT_RETURN hu_cno_trigger(DAT_CNO_HANDLE handle, DAT_EVD_HANDLE *out)
{
	struct hu_cno *cno = handle;
	struct hu_evd *evd;

	if (!hu_is(cno, DAT_HANDLE_TYPE_CNO))
		return hu_error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CNO);
	if (!out)
		return hu_error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	enter_and_take(cno, &evd);
	*out = evd;
	return evd ? DAT_SUCCESS : hu_error(DAT_QUEUE_EMPTY, DAT_NO_SUBTYPE);
}
