/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * A caller that has gone before it came to whom has accepted. Where that one is of another node
 * than the service, there is no link to it yet: it is called, as the caller would have called it,
 * and told. Only for calls that were really made, for an acceptance says whom to call.
 */
#include "engine/cm/call.h"
#include "engine/core/core.h"
#include "engine/link/link.h"

#include <stdlib.h>

/* One that is called to be told. */
struct hd_decline {
	struct hd_dest *dest; /* referenced and followed */
	struct hd_follow follow;
	struct hd_node_id node;
	struct hd_pkt leave;
	LIST_ENTRY(hd_decline) entry; /* hd_conns.declines */
};

static void decline_end(struct hd_decline *d)
{
	LIST_REMOVE(d, entry);
	hd_dest_unfollow(d->dest, &d->follow);
	free(d);
}

static void decline_tell(const struct hd_dest *dest, const struct hd_node_id *node,
			 const struct hd_pkt *leave)
{
	if (!memcmp(&dest->peer->id, node, sizeof(*node)))
		/* else it is gone, and another has its place */
		hd_peer_send(dest->peer, leave, NULL, 0);
}

static void decline_followed(struct hd_follow *follow, int err)
{
	struct hd_decline *d = hd_container(follow, struct hd_decline, follow);

	if (!err)
		decline_tell(d->dest, &d->node, &d->leave);
	decline_end(d);
}

/* Takes the reference to dest over. */
static void decline_begin(struct hd_node *node, const struct hd_node_id *id, const struct hd_pkt *leave,
			  struct hd_dest *dest)
{
	struct hd_decline *d = dest->state == HD_DEST_BOUND ? NULL : calloc(1, sizeof(*d));

	if (!d) { /* bound; or for want of memory he waits until he has waited long enough */
		if (dest->state == HD_DEST_BOUND)
			decline_tell(dest, id, leave);
		hd_dest_unref(dest);
		return;
	}
	d->dest = dest;
	d->node = *id;
	d->leave = *leave;
	d->follow.fn = decline_followed;
	hd_dest_follower(dest, &d->follow);
	LIST_INSERT_HEAD(&hd_conns(node)->declines, d, entry);
	if (dest->state == HD_DEST_IDLE && hd_dest_connect(dest) < 0)
		decline_end(d);
}

static struct hd_pkt leave_for(const struct hd_announce *to, uint32_t from)
{
	return (struct hd_pkt){ .kind = HD_PKT_LEAVE, .dst = to->index, .gen = to->gen, .src = from };
}

void hd_call_withdrawn(struct hd_conn *c)
{
	struct hd_conns *conns = hd_conns(c->ep->node);
	struct hd_withdrawn *w = &conns->withdrawn[conns->next_withdrawn % HD_WITHDRAWN];
	const struct hd_pkt leave = leave_for(&c->other, c->ep->index);

	if (hd_core(c->ep->node)->gate.dead) /* a forked child's: the parent goes on */
		return;
	if (c->state == HD_CONN_ASKED) {
		*w = (struct hd_withdrawn){
			.node = c->asked.peer->id, .number = c->number, .key = c->ep->key, .at = c->at
		};
		conns->next_withdrawn++;
	} else if (c->state == HD_CONN_REACHING && c->dest) {
		hd_dest_ref(c->dest);
		decline_begin(c->ep->node, &c->node, &leave, c->dest);
	}
}

/* The call of ours that this answers, or NULL. It is answered once. */
static struct hd_withdrawn *withdrawn_find(struct hd_link *link, uint32_t number)
{
	struct hd_conns *conns = hd_conns(link->node);

	for (struct hd_withdrawn *w = conns->withdrawn; w < conns->withdrawn + HD_WITHDRAWN; w++)
		if (number && w->number == number && !memcmp(&w->node, &link->peer->id, sizeof(w->node)))
			return w;
	return NULL;
}

void hd_call_decline(struct hd_link *link, const struct hd_pkt *accept, const struct hd_accept *body)
{
	const struct hd_pkt leave = leave_for(&body->ep, accept->dst);
	struct sockaddr_storage name;
	struct hd_withdrawn *w;
	struct hd_dest *dest;

	if (!memcmp(&body->node, &link->peer->id, sizeof(body->node))) {
		hd_peer_send(link->peer, &leave, NULL, 0);
		return;
	}
	w = withdrawn_find(link, accept->op);
	if (!w)
		return;
	w->number = 0;
	hd_call_acceptor_name(&w->at, &body->ep, &name);
	if (w->key == body->ep.key &&
	    hd_dest_get_keyed(link->node, (struct sockaddr *)&name, w->key, &dest) == 0)
		decline_begin(link->node, &body->node, &leave, dest);
}

void hd_declines_end(struct hd_node *node)
{
	struct hd_decline *d;

	while ((d = LIST_FIRST(&hd_conns(node)->declines)))
		decline_end(d);
}
