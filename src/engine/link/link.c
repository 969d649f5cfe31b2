/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* The shared part of a link's life, whatever its transport: it begins, is down, and is taken apart; in a forked child it is dead. */
#include "base/log.h"
#include "engine/core/core.h"
#include "engine/link/observers.h"
#include "engine/link/peer.h"
#include "engine/name/name.h"

#include <errno.h>
#include <string.h>

void hd_link_init(struct hd_link *link, struct hd_port *port, const struct hd_link_ops *ops)
{
	struct hd_node *node = port->node;

	hd_assert_locked(node);
	link->ops = ops;
	link->port = port;
	link->node = node;
	link->beside_min = UINT32_MAX;
	link->row = hd_page_row_get(node);
	link->shake.link = link;
	TAILQ_INSERT_TAIL(&node->links, link, entry);
	node->link_count++;
}

void hd_link_down(struct hd_link *link, int err, const char *why)
{
	char text[80];

	hd_assert_locked(link->node);
	if (link->down)
		return;
	hd_publish(link->node);
	link->down = true;
	link->down_err = err;
	/* A link that ends is everyday, and the program gets its errors; what somebody did wrong is worth a line. */
	HD_LOG(err == -EPROTO || err == -ENOMEM || err == -ENOBUFS ? HD_LOG_WARN : HD_LOG_INFO,
	       "%s link to %s closed: %s", link->port->transport->name,
	       hd_addr_text((void *)&link->where, text, sizeof(text)), why ? why : strerror(-err));
	TAILQ_INSERT_TAIL(&link->node->fallen, link, fallen);
	link->node->work |= 1u << HD_WORK_REAP;
}

void hd_links_reap(struct hd_node *node)
{
	struct hd_link *link;

	while ((link = TAILQ_FIRST(&node->fallen))) {
		TAILQ_REMOVE(&node->fallen, link, fallen);
		node->observers->broken(link, link->down_err ? -link->down_err : ECONNRESET);
		if (link->peer && link->peer->link == link)
			hd_peer_fail(link->peer, link->down_err);
		else
			hd_hello_fallen(link);
		hd_timer_stop(node, &link->shake.timer);
		hd_page_row_put(node, link->row);
		TAILQ_REMOVE(&node->links, link, entry);
		node->link_count--;
		link->ops->close(link);
	}
}

/* ---- fork --------------------------------------------------------------------------------------------------------------------------- */

static int dead_send(struct hd_link *link, const struct hd_pkt *pkt, const void *buf, size_t len)
{
	return -ENOTCONN;
}

static int dead_sendv(struct hd_link *link, const struct hd_pkt *pkt, const struct iovec *iov, int count,
		      size_t len)
{
	return -ENOTCONN;
}

static int dead_put(struct hd_link *link, const struct hd_pkt *pkt, const struct iovec *iov, int count,
		    size_t len, struct hd_put *put)
{
	return -ENOTCONN;
}

static int dead_unput(struct hd_link *link, struct hd_put *put)
{
	return 0;
}

static void dead_grant(struct hd_link *link, uint32_t limit)
{
}

static uint32_t dead_granted(struct hd_link *link)
{
	return 0;
}

static void link_dead_close(struct hd_link *link)
{
}

/* Links of a forked child: their memory is not mapped there, and their sockets are the parent's. */
static const struct hd_link_ops dead_ops = {
	.send = dead_send,
	.sendv = dead_sendv,
	.put = dead_put,
	.unput = dead_unput,
	.grant = dead_grant,
	.granted = dead_granted,
	HD_LINK_NO_OFFER,
	HD_LINK_NO_REACH,
	.close = link_dead_close,
};

void hd_links_forked(struct hd_node *node)
{
	struct hd_peer *peer, *next;
	struct hd_link *link;

	TAILQ_INIT(&node->fallen);
	HASH_ITER(hh, node->peers, peer, next)
		hd_peer_stall(peer, HD_STALL_DOWN);
	TAILQ_FOREACH(link, &node->links, entry) {
		link->ops = &dead_ops;
		link->row = &node->spare_row; /* the page is not mapped here */
	}
}
