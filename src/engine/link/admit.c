/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Who may send to endpoints that look at it: hd_ep.watch. */
#include "engine/link/link.h"

bool hd_ep_admits(const struct hd_ep *ep, const struct hd_peer *peer, uint32_t src)
{
	if (ep->watch & (HD_WATCH_SERVICE | HD_WATCH_NAMELESS | HD_WATCH_PAIRED))
		return false; /* queue pairs find out by themselves: qp/responder.c */
	if (ep->watch & HD_WATCH_KEYED && hd_remote_key(peer, src) != ep->key)
		return false;
	if (!(ep->watch & HD_WATCH_CONNECTED))
		return true;
	return ep->to->peer == peer &&
	       ep->to->remote == src; /* while there is no connection it leads nowhere */
}
