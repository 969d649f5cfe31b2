/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * The shared part of a link's life, whatever its transport: it begins, is down, and is taken apart;
 * in a forked child it is dead.
 */
#include "engine/link/link.h"
#include "base/advice.h"
#include "base/clock.h"
#include "base/config.h"
#include "base/log.h"
#include "base/random.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SETTLE_NS (5 * HD_NS_PER_MS) /* between two looks at links that are not settled */

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
	TAILQ_INSERT_TAIL(&hd_links(node)->links, link, entry);
	hd_links(node)->link_count++;
}

/* Of those who called and became nobody a line each is written only while they are few. */
#define STRANGER_LINES 64 /* in a second */
static bool is_worth_a_line(const struct hd_link *link, enum hd_log_level level)
{
	struct hd_links *links = hd_links(link->node);
	uint64_t now;

	if (!hd_log_on(level) || hd_link_is_a_peers(link) || link->shake.initiator)
		return hd_log_on(level);
	now = hd_now_ns();
	if (now - links->strangers_since > HD_NS_PER_S) {
		links->strangers_since = now;
		links->strangers = 0;
	}
	return links->strangers++ < STRANGER_LINES ||
	       hd_log_within(&links->strangers_log, 1, 1000, level, HD_LOG_ROOM);
}

/* For people. */
static const char *link_why(int err, const char *why)
{
	if (why)
		return why;
	return err == -ESHUTDOWN ? "closed at this end" : strerror(-err);
}

/* Whom it leads to, as far as that is known: by address, by peer, or by process. */
struct hd_link_text hd_link_text(const struct hd_link *link)
{
	const struct hd_peer *peer = link->peer ? link->peer : link->shake.peer;
	bool own_row = link->row != &hd_names(link->node)->spare_row;
	struct hd_link_text text = { "an unnamed process" };
	char addr[80];

	if (link->where.ss_family != AF_UNSPEC && peer)
		snprintf(text.text, sizeof(text.text), "%s (peer " HD_PEER_ID ")",
			 hd_addr_text((void *)&link->where, addr, sizeof(addr)), HD_PEER_ID_OF(peer));
	else if (link->where.ss_family != AF_UNSPEC)
		hd_addr_text((void *)&link->where, text.text, sizeof(text.text));
	else if (peer)
		snprintf(text.text, sizeof(text.text), "peer " HD_PEER_ID, HD_PEER_ID_OF(peer));
	else if (own_row && link->row->peer_pid)
		snprintf(text.text, sizeof(text.text), "process %d", (int)link->row->peer_pid);
	return text;
}

/* It has ended by an error, and the other end had not closed all that it had. */
static void count_end(const struct hd_link *link, int err)
{
	if (!link->peer || !err || err == -ESHUTDOWN || hd_peer_has_left(link->peer) ||
	    hd_links(link->node)->leaving)
		return;
	hd_count(link->node, link->peer->exits && err != -EPROTO ? HD_COUNT_LEFT : HD_COUNT_BROKEN);
}

void hd_link_down(struct hd_link *link, int err, const char *why)
{
	enum hd_log_level level = err == -EPROTO || hd_is_short(-err) ? HD_LOG_WARN : HD_LOG_INFO;

	hd_assert_locked(link->node);
	if (link->down)
		return;
	hd_publish(link->node);
	link->down = true;
	link->down_err = err;
	count_end(link, err);
	/*
	 * A link that ends is everyday, and the program gets its errors; what somebody
	 * did wrong is worth a line.
	 */
	if (is_worth_a_line(link, level))
		HD_LOG(level, "%s link to %s closed: %s%s", link->port->transport->name,
		       hd_link_text(link).text, link_why(err, why), hd_advice(-err));
	TAILQ_INSERT_TAIL(&hd_links(link->node)->fallen, link, fallen);
	hd_work_due(link->node, HD_WORK_REAP);
	hd_node_stir(link->node); /* it may be a call that has found out, and no turn */
}

static void link_take_apart(struct hd_link *link)
{
	struct hd_node *node = link->node;

	TAILQ_REMOVE(&hd_links(node)->fallen, link, fallen);
	hd_links(node)->observers->broken(link, link->down_err ? hd_status_of(link->down_err) : HD_S_LOST);
	if (link->peer && link->peer->link == link)
		hd_peer_fail(link->peer, link->down_err);
	else
		hd_hello_fallen(link);
	hd_timer_stop(node, &link->shake.timer);
	hd_page_row_put(node, link->row);
	TAILQ_REMOVE(&hd_links(node)->links, link, entry);
	hd_links(node)->link_count--;
	link->ops->close(link);
}

/* The first of those over which nobody writes into memory here any more. */
static struct hd_link *link_settled(struct hd_node *node)
{
	struct hd_link *link;

	TAILQ_FOREACH(link, &hd_links(node)->fallen, fallen)
		if (!link->ops->settled || link->ops->settled(link))
			break;
	return link;
}

static void links_look_again(struct hd_timer *timer)
{
	hd_work_due(hd_node_of(timer, struct hd_links, settles), HD_WORK_REAP);
}

void hd_links_reap(struct hd_node *node)
{
	struct hd_link *link;

	while ((link = link_settled(node)))
		link_take_apart(link);
	if (TAILQ_EMPTY(&hd_links(node)->fallen))
		return;
	hd_links(node)->settles.fn = links_look_again;
	hd_timer_set(node, &hd_links(node)->settles, SETTLE_NS);
}

void hd_links_reap_all(struct hd_node *node)
{
	hd_links_reap(node);
	assert(TAILQ_EMPTY(&hd_links(node)->fallen));
	hd_timer_stop(node, &hd_links(node)->settles);
}

/* ---- the node's ------------------------------------------------------------------------------ */

void hd_links_init(struct hd_node *node, const struct hd_link_observers *observers)
{
	struct hd_links *links = hd_links(node);

	links->observers = observers;
	links->transport_choice = hd_config_choice(HD_SET_TRANSPORT);
	TAILQ_INIT(&links->fallen);
	TAILQ_INIT(&links->links);
	TAILQ_INIT(&links->gone);
	hd_idmap_init(&links->op_ids);
	hd_credit_init(node);
}

void hd_links_fini(struct hd_node *node)
{
	hd_idmap_fini(&hd_links(node)->op_ids);
}

/* So that the data path tests no pointers. */
int hd_links_open(struct hd_node *node)
{
	struct hd_links *links = hd_links(node);

	links->nowhere = calloc(1, sizeof(*links->nowhere));
	links->nobody = calloc(1, sizeof(*links->nobody));
	if (!links->nowhere || !links->nobody)
		return -ENOMEM;
	if (hd_random(links->secret, sizeof(links->secret)))
		return -EIO;
	links->nowhere->node = node;
	links->nowhere->state = HD_PEER_DEAD;
	hd_peer_stall(links->nowhere, HD_STALL_DOWN);
	hd_dest_stand_in(links->nobody, node);
	return 0;
}

void hd_links_close(struct hd_node *node)
{
	free(hd_links(node)->nobody);
	free(hd_links(node)->nowhere);
}

void hd_links_end(struct hd_node *node)
{
	struct hd_link *link;

	TAILQ_FOREACH(link, &hd_links(node)->links, entry)
		hd_link_down(link, -ESHUTDOWN, NULL);
}

/* ---- fork ------------------------------------------------------------------------------------ */

static int dead_link_send(struct hd_link *link, const struct hd_pkt *pkt, const void *buf, size_t len)
{
	return -ENOTCONN;
}

static int dead_link_sendv(struct hd_link *link, const struct hd_pkt *pkt, const struct iovec *iov, int count,
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
	.send = dead_link_send,
	.sendv = dead_link_sendv,
	.put = dead_put,
	.unput = dead_unput,
	.grant = dead_grant,
	.granted = dead_granted,
	HD_LINK_NO_OFFER,
	HD_LINK_NO_DIRECT,
	.close = link_dead_close,
};

void hd_links_forked(struct hd_node *node)
{
	struct hd_peer *peer, *next;
	struct hd_link *link;

	TAILQ_INIT(&hd_links(node)->fallen);
	HASH_ITER(hh, hd_links(node)->peers, peer, next)
		hd_peer_stall(peer, HD_STALL_DOWN);
	TAILQ_FOREACH(link, &hd_links(node)->links, entry) {
		link->ops = &dead_ops;
		link->row = &hd_names(node)->spare_row; /* the page is not mapped here */
	}
}

struct hd_links_view hd_links_inspect(const struct hd_node *node)
{
	const struct hd_links *l = hd_links(node);
	struct hd_links_view view = { .peers = HASH_COUNT(l->peers),
				      .links = (uint32_t)l->link_count,
				      .dest_room = l->dest_count,
				      .pending = l->op_ids.count,
				      .units = l->window_units,
				      .units_max = l->window_max };

	for (uint32_t i = 0; i < l->dest_count; i++)
		view.dests += l->dests[i] != NULL;
	return view;
}
