/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * What holds of services and connections whenever nothing of them is being changed, counted anew
 * in builds with assertions.
 */
#include "engine/cm/conn.h"
#include "engine/event/event.h"

#include <assert.h>

#ifndef NDEBUG

#define CHECKED 256u /* longer lists are not walked through */

static void requests_check(const struct hd_service *s)
{
	const struct hd_request *r;
	uint32_t n = 0;

	LIST_FOREACH(r, &s->requests, entry) {
		if (n++ == CHECKED)
			return;
		assert(r->service == s && r->share->refs);
		assert(!r->of_peer.list == !r->peer && !r->of_call.list == !r->peer);
	}
	assert(n == s->pending);
}

void hd_service_check(const struct hd_service *s)
{
	assert(!s->ep || s->ep->service == s);
	assert(!s->ep || !s->evq || s->ep->evq == s->evq);
	assert(s->ep || (!s->evq && s->claim < 0));
	requests_check(s);
}

void hd_conn_check(const struct hd_conn *c)
{
	const struct hd_ep *ep = c->ep;
	bool is_up = c->state == HD_CONN_UP;

	assert(ep->conn == c && ep->watch & HD_WATCH_CONNECTED);
	assert(ep->to == (is_up ? c->dest : hd_links(ep->node)->nobody));
	assert(c->dest || (!is_up && c->state != HD_CONN_AGREED));
	assert(!c->caller == (c->state != HD_CONN_ANSWERED));
	assert(!c->asked.peer == (c->state != HD_CONN_ASKED));
	assert(c->priv.len <= sizeof(c->priv.data));
}

void hd_conns_check(const struct hd_node *node)
{
	const struct hd_service *s;
	unsigned n = 0;

	LIST_FOREACH(s, &hd_conns(node)->services, entry)
		if (n++ < CHECKED)
			hd_service_check(s);
}

#endif
