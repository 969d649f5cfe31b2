/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Consumer notification objects: dat_cno_create and the others. One is a channel, in which EVDs wait that have something to read. */
#include "front/dat/dat_front.h"

#include <errno.h>

/* ---- life ---------------------------------------------------------------------------------------------------------------------------- */

static DAT_RETURN make(struct hu_ia *ia, DAT_PROXY_TYPE proxy, struct hu_cno **out)
{
	struct hu_cno *cno;
	int rc;

	if (!hu_enter(ia))
		return HU_DEAD;
	cno = hu_make(ia, DAT_HANDLE_TYPE_CNO, sizeof(*cno));
	rc = cno ? hd_channel_open(ia->node, &cno->channel) : -ENOMEM;
	if (rc && cno)
		hu_free(&cno->o);
	else if (!rc)
		cno->proxy = proxy;
	hu_leave(ia);
	*out = cno;
	return hu_errno(rc);
}

static DAT_RETURN start_agent(struct hu_cno *cno, DAT_OS_WAIT_PROXY_AGENT agent)
{
	cno->agent = agent;
	cno->proxy = agent.proxy_agent_func ? DAT_PROXY_TYPE_AGENT : DAT_PROXY_TYPE_NONE;
	return DAT_SUCCESS;
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
	rc = make(ia, DAT_PROXY_TYPE_NONE, &cno);
	if (rc)
		return rc;
	start_agent(cno, agent);
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
	rc = make(ia, DAT_PROXY_TYPE_FD, &cno);
	if (rc)
		return rc;
	*fd = hd_channel_fd(cno->channel);
	*out = cno;
	return DAT_SUCCESS;
}

void hu_cno_drop(struct hu_cno *cno)
{
	hd_channel_close(cno->channel);
	hu_free(&cno->o);
}

DAT_RETURN hu_cno_free(DAT_CNO_HANDLE handle)
{
	struct hu_cno *cno = handle;
	struct hu_ia *ia;
	bool used;

	if (!hu_is(cno, DAT_HANDLE_TYPE_CNO))
		return hu_error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CNO);
	ia = cno->o.ia;
	if (!hu_enter(ia))
		return HU_DEAD;
	used = cno->o.users || cno->waiter;
	if (!used)
		hu_cno_drop(cno);
	hu_leave(ia);
	return used ? hu_error(DAT_INVALID_STATE, DAT_INVALID_STATE_CNO_IN_USE) : DAT_SUCCESS;
}

DAT_RETURN hu_cno_modify_agent(DAT_CNO_HANDLE handle, DAT_OS_WAIT_PROXY_AGENT agent)
{
	struct hu_cno *cno = handle;

	if (!hu_is(cno, DAT_HANDLE_TYPE_CNO))
		return hu_error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CNO);
	return start_agent(cno, agent);
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
	*param = (DAT_CNO_PARAM){ .ia_handle = cno->o.ia, .proxy_type = cno->proxy };
	if (cno->proxy == DAT_PROXY_TYPE_FD)
		param->proxy.fd = hd_channel_fd(cno->channel);
	else if (cno->proxy == DAT_PROXY_TYPE_AGENT)
		param->proxy.agent = cno->agent;
	return DAT_SUCCESS;
}

/* ---- waiting ---------------------------------------------------------------------------------------------------------------------------- */

/* The EVD that has waited longest; it is watched for what comes next. NULL: none. */
static struct hu_evd *take(struct hu_cno *cno)
{
	struct hd_channel_item *item;
	struct hu_evd *evd = NULL;

	hd_node_lock(cno->o.ia->node);
	if (!hd_channel_take(cno->channel, &item)) {
		evd = item->owner;
		if (!evd->disabled)
			hd_cq_notify(evd->cq, false);
	}
	hd_node_unlock(cno->o.ia->node);
	return evd;
}

static DAT_RETURN set_waiter(struct hu_cno *cno, bool waiter)
{
	DAT_RETURN rc = DAT_SUCCESS;

	if (!hu_enter(cno->o.ia))
		return HU_DEAD;
	if (waiter && cno->waiter)
		rc = hu_error(DAT_INVALID_STATE, DAT_INVALID_STATE_CNO_IN_USE);
	else
		cno->waiter = waiter;
	hu_leave(cno->o.ia);
	return rc;
}

DAT_RETURN hu_cno_wait(DAT_CNO_HANDLE handle, DAT_TIMEOUT timeout, DAT_EVD_HANDLE *evd)
{
	struct hu_cno *cno = handle;
	DAT_RETURN rc;
	int why = 0;

	if (!hu_is(cno, DAT_HANDLE_TYPE_CNO))
		return hu_error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CNO);
	if (!evd)
		return hu_error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	*evd = DAT_HANDLE_NULL;
	rc = set_waiter(cno, true);
	if (rc)
		return rc;
	while (!why && !(*evd = take(cno)))
		why = hd_channel_wait_for(cno->channel, hu_timeout_ms(timeout));
	set_waiter(cno, false);
	if (!why)
		return DAT_SUCCESS;
	if (why == -ETIMEDOUT || why == -EAGAIN)
		return hu_error(DAT_TIMEOUT_EXPIRED, DAT_NO_SUBTYPE);
	return why == -EINTR ? hu_error(DAT_INTERRUPTED_CALL, DAT_NO_SUBTYPE) : HU_DEAD;
}

DAT_RETURN hu_cno_trigger(DAT_CNO_HANDLE handle, DAT_EVD_HANDLE *evd)
{
	struct hu_cno *cno = handle;

	if (!hu_is(cno, DAT_HANDLE_TYPE_CNO))
		return hu_error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CNO);
	if (!evd)
		return hu_error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	*evd = take(cno);
	return *evd ? DAT_SUCCESS : hu_error(DAT_QUEUE_EMPTY, DAT_NO_SUBTYPE);
}
