/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Second paths of paired endpoints: the state machine of InfiniBand's path migration,
 * ibv_modify_qp(3). Both ends are armed when both have said that they are rearmed; when either
 * migrates, so does the other.
 *
 *	MIGRATED ── rearm ──► REARM ── the other end too ──► ARMED
 *	ARMED ── asked to, the other end has, the first path is lost ──► MIGRATED
 *
 * A path is an address by which the other end is called. A link that stands carries on whatever the
 * path is, so that nothing under way is lost; the next one is made by the new address.
 */
#include "engine/core/core.h"
#include "engine/link/link.h"
#include "engine/name/name.h"
#include "engine/qp/qp.h"

#include "base/sockaddr.h"

#include <errno.h>
#include <string.h>

static void path_tell(struct hd_qp *p, enum hd_path_word word)
{
	const struct hd_pkt pkt = { .kind = HD_PKT_PATH,
				    .gen = p->life.dest ? p->life.dest->gen : 0,
				    .dst = p->life.dest ? p->life.dest->remote : 0,
				    .src = p->ep->index,
				    .imm = word };

	p->life.path.pending = 0;
	if (hd_qp_is_bound(p)) {
		hd_peer_send(p->life.dest->peer, &pkt, NULL, 0);
		return;
	}
	p->life.path.pending = word;
	if (p->life.dest && p->life.dest->state == HD_DEST_IDLE && !p->life.unreached)
		(void)hd_dest_connect(p->life.dest); /* nobody may have said anything yet */
}

void hd_path_bound(struct hd_qp *p)
{
	if (p->life.path.pending)
		path_tell(p, p->life.path.pending);
}

/* The second path is the first from now on. */
static void migrate(struct hd_qp *p)
{
	p->life.path.state = HD_PATH_MIGRATED;
	p->life.path.other = false;
	p->life.path.moves = true;
	hd_qp_kick(p);
	hd_qp_event(p, HD_EV_EP_MIGRATED, 0);
}

/*
 * Follow another destination, unless what we follow stands, and is another way to the same
 * endpoint or the only one.
 */
static void path_move(struct hd_qp *p, struct hd_dest *to)
{
	if (p->life.dest == to || (hd_qp_is_bound(p) && !hd_dest_same(p->life.dest, to))) {
		hd_dest_unref(to);
		return;
	}
	LIST_REMOVE(&p->life.follow, entry);
	hd_dest_unref(p->life.dest);
	p->life.dest = to;
	hd_dest_follower(to, &p->life.follow);
}

void hd_path_run(struct hd_qp *p)
{
	struct hd_dest *to;

	if (!p->life.path.moves || !p->life.dest || hd_qp_has_failed(p))
		return;
	if (hd_dest_get(p->ep->node, (struct sockaddr *)&p->life.path.addr, &to))
		return;
	path_move(p, to);
	p->life.path.moves = p->life.dest != to; /* else when the link is lost */
}

bool hd_path_lost(struct hd_qp *p)
{
	bool armed = p->life.path.state == HD_PATH_ARMED;

	if (hd_qp_has_failed(p) || p->life.sq.head != p->life.sq.next || !(armed || p->life.path.moves))
		return false;
	if (armed) {
		migrate(p);
		p->life.path.pending = HD_PATH_SAYS_MIGRATE;
	}
	hd_qp_kick(p);
	return true;
}

int hd_ep_path_load(struct hd_ep *ep, const struct sockaddr *to)
{
	struct hd_qp *p = ep->qp;
	struct hd_name_key key;

	hd_assert_locked(ep->node);
	if (!p || !hd_qp_is_paired(p) || !hd_addr_key(to, &key))
		return -EINVAL;
	memset(&p->life.path.addr, 0, sizeof(p->life.path.addr));
	memcpy(&p->life.path.addr, to, hd_sockaddr_size(to));
	p->life.path.moves = false;
	return 0;
}

enum hd_path hd_ep_path(const struct hd_ep *ep)
{
	return ep->qp->life.path.state;
}

int hd_ep_path_set(struct hd_ep *ep, enum hd_path path)
{
	struct hd_qp *p = ep->qp;

	hd_assert_locked(ep->node);
	if (path != HD_PATH_MIGRATED && p->life.path.addr.ss_family == AF_UNSPEC)
		return -EINVAL;
	if (path == HD_PATH_MIGRATED && p->life.path.state == HD_PATH_ARMED) {
		migrate(p);
		path_tell(p, HD_PATH_SAYS_MIGRATE);
		return 0;
	}
	p->life.path.state = path;
	if (path == HD_PATH_REARM && p->life.path.other)
		p->life.path.state = HD_PATH_ARMED;
	if (path != HD_PATH_MIGRATED)
		path_tell(p, HD_PATH_SAYS_REARM);
	return 0;
}

/* The other end is ready to migrate: so are both, if we are. */
static void other_rearmed(struct hd_qp *p)
{
	bool known = p->life.path.other;

	p->life.path.other = true;
	if (p->life.path.state == HD_PATH_REARM)
		p->life.path.state = HD_PATH_ARMED;
	if (p->life.path.state == HD_PATH_ARMED && !known)
		path_tell(p, HD_PATH_SAYS_REARM); /* it may not have heard us */
}

int hd_path_heard(struct hd_link *link, const struct hd_pkt *pkt, const void *payload, size_t len)
{
	struct hd_ep *ep = hd_pkt_pair(link->node, pkt);
	struct hd_qp *p = ep ? ep->qp : NULL;

	if (len || (pkt->imm != HD_PATH_SAYS_REARM && pkt->imm != HD_PATH_SAYS_MIGRATE))
		return hd_link_broken(link, "malformed word about a path");
	if (!p || hd_qp_has_failed(p) || !hd_qp_is_bound(p) || p->life.dest->peer != link->peer ||
	    p->life.dest->remote != pkt->src)
		return 0;
	if (pkt->imm == HD_PATH_SAYS_REARM)
		other_rearmed(p);
	else if (p->life.path.state == HD_PATH_ARMED)
		migrate(p);
	else if (p->life.path.addr.ss_family == AF_UNSPEC || !p->life.path.moves)
		hd_qp_event(p, HD_EV_EP_UNMIGRATED, 0);
	return 0;
}
