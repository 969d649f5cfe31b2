/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Endpoints as the node page shows them to peers on this host, which may reach memory through
 * them by themselves (xfer/direct.c). One whose owner wants to be told of each access, by a
 * counter, is not shown for it.
 */
#include "engine/name/name.h"

/* What else an endpoint looks at, it looks at in packets. */
static bool is_open_to(const struct hd_ep *ep, struct hd_page_ep *what)
{
	if (!ep->watch)
		return true;
	/* whose memory it reaches depends on what an operation names */
	if (ep->policy & HD_EP_XRC)
		return false;
	return ep->class->is_shown_to(ep, what);
}

void hd_ep_show(const struct hd_ep *ep)
{
	struct hd_page_ep what = { .state = (uint32_t)ep->gen << 16 | HD_PAGE_EP_LIVE, .protection = ep->pd };
	bool open = is_open_to(ep, &what);

	if (open && ep->policy & HD_EP_REMOTE_READ && !ep->cntrs.remote_read)
		what.state |= HD_PAGE_EP_READ;
	if (open && ep->policy & HD_EP_REMOTE_WRITE && !ep->cntrs.remote_write)
		what.state |= HD_PAGE_EP_WRITE;
	hd_page_ep_show(ep->node, ep->index, &what);
}

void hd_ep_hide(const struct hd_ep *ep)
{
	hd_page_ep_show(ep->node, ep->index, &(struct hd_page_ep){ 0 });
}
