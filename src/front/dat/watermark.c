/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Buffers that an endpoint has taken from its receive queue: dat_ep_recv_query(3DAT),
 * dat_ep_set_watermark(3DAT).
 *
 * An endpoint owns a buffer from when a message meets it until the program reads its completion.
 * The engine counts those that are taken, reading counts them back; so the most that it has ever
 * owned is seen by looking before each reading, and in each turn of progress.
 */
#include "front/dat/dat_front.h"

#define INFINITE DAT_WATERMARK_INFINITE

static uint64_t owned(const struct hu_ep *ep)
{
	return ep->ep && ep->recv ? hd_ep_taken(ep->ep) - ep->reaped : 0;
}

static bool is_passed(const struct hu_ep *ep, DAT_COUNT mark)
{
	return mark != INFINITE && owned(ep) > (uint64_t)mark;
}

static bool watermark_is_connected(const struct hu_ep *ep)
{
	return ep->state == DAT_EP_STATE_CONNECTED || ep->state == DAT_EP_STATE_DISCONNECT_PENDING;
}

static void watermark_look(struct hu_ep *ep)
{
	if (is_passed(ep, ep->soft)) {
		ep->soft = INFINITE; /* once for each setting */
		hu_notify_async(ep->o.ia, DAT_ASYNC_ERROR_PROVIDER_INTERNAL_ERROR, ep,
				DAT_SRQ_SOFT_HIGH_WATERMARK_EVENT);
	}
	if (watermark_is_connected(ep) && is_passed(ep, ep->hard))
		hu_ep_part(ep, DAT_CONNECTION_EVENT_BROKEN);
}

/* The engine's: out of a turn of progress. */
static void passed(void *owner)
{
	struct hu_ep *ep = owner;

	watermark_look(ep);
	hu_marks_arm(ep);
}

void hu_marks_arm(struct hu_ep *ep)
{
	DAT_COUNT hard = watermark_is_connected(ep) ? ep->hard : INFINITE;
	DAT_COUNT first = hard == INFINITE || (ep->soft != INFINITE && ep->soft < hard) ? ep->soft : hard;

	if (!ep->ep)
		return;
	ep->marked = first != INFINITE;
	hd_ep_set_mark(ep->ep,
		       ep->marked ? &(struct hd_ep_mark){ ep->reaped + (uint64_t)first, passed, ep } : NULL);
}

void hu_ep_reaped_marked(struct hu_ep *ep)
{
	watermark_look(ep);
	ep->reaped++;
	hu_marks_arm(ep);
}

DAT_COUNT hu_srq_owned(const struct hu_srq *srq)
{
	const struct hu_ia *ia = srq->o.ia;
	uint64_t n = 0;

	for (uint32_t i = 0; i < ia->ep_size; i++)
		if (ia->eps[i] && ia->eps[i]->srq == srq)
			n += owned(ia->eps[i]);
	return (DAT_COUNT)n;
}

/* ---- the calls ------------------------------------------------------------------------------- */

/*
 * Allocated: for which no completion has been made. In a queue of its own all that is
 * posted is; of a shared one, what messages are coming into. These come in without gaps, so
 * they are the span as well.
 */
DAT_RETURN hu_ep_recv_query(DAT_EP_HANDLE handle, DAT_COUNT *allocated, DAT_COUNT *span)
{
	DAT_RETURN rc;
	struct hu_ep *ep = hu_begin(handle, DAT_HANDLE_TYPE_EP, DAT_INVALID_HANDLE_EP, &rc);
	DAT_COUNT filling, posted;

	if (!ep)
		return rc;
	filling = ep->ep ? (DAT_COUNT)hd_ep_filling(ep->ep) : 0;
	posted = ep->ep && !ep->srq ? (DAT_COUNT)hd_ep_posted(ep->ep) : 0;
	if (allocated)
		*allocated = filling + posted;
	if (span)
		*span = filling;
	hu_leave(ep->o.ia);
	return DAT_SUCCESS;
}

/* What is passed already is told of before the call returns. */
DAT_RETURN hu_ep_set_watermark(DAT_EP_HANDLE handle, DAT_COUNT soft, DAT_COUNT hard)
{
	DAT_RETURN rc;
	struct hu_ep *ep;

	if (soft < INFINITE)
		return hu_error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	if (hard < INFINITE)
		return hu_error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	ep = hu_begin(handle, DAT_HANDLE_TYPE_EP, DAT_INVALID_HANDLE_EP, &rc);
	if (!ep)
		return rc;
	ep->attr.srq_soft_hw = ep->soft = soft;
	ep->hard = hard;
	watermark_look(ep);
	hu_marks_arm(ep);
	hu_leave(ep->o.ia);
	return DAT_SUCCESS;
}
