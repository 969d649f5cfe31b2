/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Second paths of paired endpoints: the state machine of InfiniBand's path migration, ibv_modify_qp(3). Both ends are armed when both have
 * said that they are rearmed; when either migrates, so does the other.
 *
 *	MIGRATED ── rearm ──► REARM ── the other end too ──► ARMED ── asked to, the other end has, the first path is lost ──► MIGRATED
 *
 * A path is an address by which the other end is called. A link that stands carries on whatever the path is, so that nothing under way is
 * lost; the next one is made by the new address.
 */
#include "engine/core/core.h"
#include "engine/link/peer.h"
#include "engine/name/name.h"
#include "engine/qp/qp.h"

#include "base/sockaddr.h"

#include <errno.h>
#include <string.h>

static void path_tell(struct hd_qp *p, enum hd_path_word word)
{
	const struct hd_pkt pkt = { .kind = HD_PKT_PATH,
				    .gen = p->dest ? p->dest->gen : 0,
				    .dst = p->dest ? p->dest->remote : 0,
				    .src = p->ep->index,
				    .imm = word };

	p->path_pending = 0;
	if (hd_qp_is_bound(p)) {
		hd_peer_send(p->dest->peer, &pkt, NULL, 0);
		return;
	}
	p->path_pending = word;
	if (p->dest && p->dest->state == HD_DEST_IDLE && !p->unreached)
		(void)hd_dest_connect(p->dest); /* nobody may have said anything yet */
}

void hd_path_bound(struct hd_qp *p)
{
	if (p->path_pending)
		path_tell(p, p->path_pending);
}

/* The second path is the first from now on. */
static void migrate(struct hd_qp *p)
{
	p->path = HD_PATH_MIGRATED;
	p->path_other = false;
	p->path_moves = true;
	hd_qp_kick(p);
	hd_qp_event(p, HD_EV_EP_MIGRATED, 0);
}

/* Follow another destination, unless what we follow stands, and is another way to the same endpoint or the only one. */
static void path_move(struct hd_qp *p, struct hd_dest *to)
{
	if (p->dest == to || (hd_qp_is_bound(p) && !hd_dest_same(p->dest, to))) {
		hd_dest_unref(to);
		return;
	}
	LIST_REMOVE(&p->follow, entry);
	hd_dest_unref(p->dest);
	p->dest = to;
	hd_dest_follower(to, &p->follow);
}

void hd_path_run(struct hd_qp *p)
{
	struct hd_dest *to;

	if (!p->path_moves || !p->dest || hd_qp_has_failed(p))
		return;
	if (hd_dest_get(p->ep->node, (struct sockaddr *)&p->path_addr, &to))
		return;
	path_move(p, to);
	p->path_moves = p->dest != to; /* else when the link is lost */
}

bool hd_path_lost(struct hd_qp *p)
{
	bool armed = p->path == HD_PATH_ARMED;

	if (hd_qp_has_failed(p) || p->head != p->next || !(armed || p->path_moves))
		return false;
	if (armed) {
		migrate(p);
		p->path_pending = HD_PATH_SAYS_MIGRATE;
	}
	hd_qp_kick(p);
	return true;
}

int hd_ep_path_load(struct hd_ep *ep, const struct sockaddr *to)
{
	struct hd_qp *p = ep->qp;
	struct hd_name_key key;

	hd_assert_locked(ep->node);
	if (!p || !p->wqes || !hd_addr_key(to, &key))
		return -EINVAL;
	memset(&p->path_addr, 0, sizeof(p->path_addr));
	memcpy(&p->path_addr, to, hd_sockaddr_size(to));
	p->path_moves = false;
	return 0;
}

enum hd_path hd_ep_path(const struct hd_ep *ep)
{
	return ep->qp->path;
}

int hd_ep_path_set(struct hd_ep *ep, enum hd_path path)
{
	struct hd_qp *p = ep->qp;

	hd_assert_locked(ep->node);
	if (path != HD_PATH_MIGRATED && p->path_addr.ss_family == AF_UNSPEC)
		return -EINVAL;
	if (path == HD_PATH_MIGRATED && p->path == HD_PATH_ARMED) {
		migrate(p);
		path_tell(p, HD_PATH_SAYS_MIGRATE);
		return 0;
	}
	p->path = path;
	if (path == HD_PATH_REARM && p->path_other)
		p->path = HD_PATH_ARMED;
	if (path != HD_PATH_MIGRATED)
		path_tell(p, HD_PATH_SAYS_REARM);
	return 0;
}

/* The other end is ready to migrate: so are both, if we are. */
static void other_rearmed(struct hd_qp *p)
{
	bool known = p->path_other;

	p->path_other = true;
	if (p->path == HD_PATH_REARM)
		p->path = HD_PATH_ARMED;
	if (p->path == HD_PATH_ARMED && !known)
		path_tell(p, HD_PATH_SAYS_REARM); /* it may not have heard us */
}

int hd_path_heard(struct hd_link *link, const struct hd_pkt *pkt, const void *payload, size_t len)
{
	struct hd_ep *ep = hd_pkt_pair(link->node, pkt);
	struct hd_qp *p = ep ? ep->qp : NULL;

	if (len || (pkt->imm != HD_PATH_SAYS_REARM && pkt->imm != HD_PATH_SAYS_MIGRATE))
		return hd_link_broken(link, "malformed word about a path");
	if (!p || !p->wqes || hd_qp_has_failed(p) || !hd_qp_is_bound(p) || p->dest->peer != link->peer ||
	    p->dest->remote != pkt->src)
		return 0;
	if (pkt->imm == HD_PATH_SAYS_REARM)
		other_rearmed(p);
	else if (p->path == HD_PATH_ARMED)
		migrate(p);
	else if (p->path_addr.ss_family == AF_UNSPEC || !p->path_moves)
		hd_qp_event(p, HD_EV_EP_UNMIGRATED, 0);
	return 0;
}

void hd_path_reset(struct hd_qp *p)
{
	p->path = HD_PATH_MIGRATED;
	p->path_other = p->path_moves = false;
	p->path_pending = 0;
	p->path_addr.ss_family = AF_UNSPEC;
}
