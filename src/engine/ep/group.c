/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Groups: an endpoint's membership in a multicast group. Its datagrams belong to no link
 * and no peer, cost no credit, and are dropped where nothing is posted for them, whatever
 * kind of endpoint that is.
 */
#include "base/config.h"
#include "base/sockaddr.h"
#include "engine/ep/ep.h"
#include "engine/event/event.h"
#include "engine/link/link.h"
#include "engine/name/name.h"
#include "engine/qp/qp.h"
#include "engine/rdm/rdm.h"
#include "engine/rq/rq.h"
#include "engine/xfer/xfer.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#define CAST_FLAGS (HD_PKT_F_IMM | HD_PKT_F_SOLICITED)

static_assert(HD_CAST_MAX == HD_MAX_DGRAM + (HD_CAST_KEYS - 1) * sizeof(struct hd_cast_key),
	      "one limit for all datagrams");

struct hd_group {
	struct hd_ep *ep;
	struct hd_cast *cast;
	unsigned how;
	uint64_t word;
	bool not_own;
	void *owner;
	LIST_ENTRY(hd_group) entry; /* hd_eps.groups */
};

static bool is_multicast(const struct sockaddr *sa)
{
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)sa;
	const struct sockaddr_in *in = (const struct sockaddr_in *)sa;

	if (sa->sa_family == AF_INET)
		return IN_MULTICAST(ntohl(in->sin_addr.s_addr)) && in->sin_port;
	return sa->sa_family == AF_INET6 && IN6_IS_ADDR_MULTICAST(&in6->sin6_addr) && in6->sin6_port;
}

/*
 * The addresses that the endpoint can be called at, of the group's family: their
 * interfaces are those to use.
 */
static int interfaces(const struct hd_ep *ep, const struct hd_group_attr *attr, struct sockaddr_storage *out)
{
	int family = attr->addr->sa_family;
	bool bound = ep->bound_port && ep->bound_port->at_addr;
	const struct sockaddr_storage *all = bound ? &ep->bound_port->name : hd_names(ep->node)->addrs;
	int count = bound ? 1 : hd_names(ep->node)->addr_count, n = 0;

	if (attr->from && attr->from->sa_family == family) {
		memcpy(out, attr->from, hd_sockaddr_size(attr->from));
		return 1;
	}
	for (int i = 0; i < count; i++)
		if (all[i].ss_family == family)
			out[n++] = all[i];
	return n;
}

int hd_group_join(struct hd_ep *ep, const struct hd_group_attr *attr, struct hd_group **out)
{
	struct sockaddr_storage from[HD_HELLO_ADDRS];
	struct hd_cast_want want = {
		.group = attr->addr,
		.from = from,
		.sends = attr->how & HD_GROUP_SEND,
		.receives = attr->how & HD_GROUP_RECV,
	};
	struct hd_group *group;
	int rc;

	hd_assert_locked(ep->node);
	if (hd_core(ep->node)->gate.dead)
		return hd_refuse(ENOTRECOVERABLE, HD_OF_PARENT);
	if (!is_multicast(attr->addr) || !attr->how)
		return -EINVAL;
	if (hd_ep_aliases(ep) > HD_CAST_KEYS)
		return -E2BIG;
	want.from_count = interfaces(ep, attr, from);
	if (!want.from_count)
		return -EADDRNOTAVAIL;
	group = calloc(1, sizeof(*group));
	if (!group)
		return -ENOMEM;
	rc = hd_eps(ep->node)->caster->join(ep->node, &want, &group->cast);
	if (rc < 0) {
		free(group);
		return rc;
	}
	group->ep = ep;
	group->how = attr->how;
	group->word = attr->word;
	group->not_own = attr->not_own;
	group->owner = attr->owner;
	group->cast->group = group;
	LIST_INSERT_HEAD(&hd_eps(ep->node)->groups, group, entry);
	*out = group;
	return 0;
}

void hd_group_leave(struct hd_group *group)
{
	hd_assert_locked(group->ep->node);
	LIST_REMOVE(group, entry);
	group->cast->caster->leave(group->cast);
	free(group);
}

void hd_groups_forked(struct hd_node *node)
{
	struct hd_group *group;

	LIST_FOREACH(group, &hd_eps(node)->groups, entry)
		group->cast->caster->forked(group->cast);
}

/* ---- sending --------------------------------------------------------------------------------- */

/* One datagram has all keys of its sender, so that a member with several of them hears it once. */
static int further_keys(const struct hd_ep *ep, struct hd_cast_key *out)
{
	for (uint32_t i = 0; i < ep->alias_count; i++)
		out[i] = (struct hd_cast_key){ .key = ep->aliases[i]->key, .src = ep->aliases[i]->src };
	return (int)ep->alias_count;
}

/* Nobody answers, so it is over. A queue pair's completes in its line, and knows no groups then. */
static void said(struct hd_ep *ep, const struct hd_group_args *args)
{
	const struct hd_send_args told = { .tag = args->tag, .ctx = args->ctx, .flags = args->flags };
	const struct hd_ended how = { .ctx = args->ctx,
				      .len = hd_iov_len(args->iov, args->count),
				      .tag = args->tag,
				      .flags = args->flags,
				      .cqe_flags = HD_C_SEND | HD_C_MSG | HD_C_CAST,
				      .cntr = ep->cntrs.send };

	if (ep->poster == &hd_ud_poster)
		hd_ud_gone(ep, &told, how.len);
	else if (ep->qp || args->flags & HD_SEND_WORK)
		hd_send_finish(ep, &told, how.len);
	else
		hd_op_complete(ep, &how);
}

/* Its memory is gone. */
static int unsaid(struct hd_ep *ep, const struct hd_group_args *args)
{
	const struct hd_ended how = { .ctx = args->ctx,
				      .tag = args->tag,
				      .flags = args->flags,
				      .cqe_flags = HD_C_SEND | HD_C_MSG | HD_C_CAST,
				      .status = HD_S_PROTECTION,
				      .cntr = ep->cntrs.send };

	if (ep->poster == &hd_ud_poster)
		return hd_ud_failed(ep, &(struct hd_failed_args){ .tag = args->tag,
								  .ctx = args->ctx,
								  .flags = args->flags,
								  .status = HD_S_PROTECTION });
	hd_op_complete(ep, &how);
	return 0;
}

int hd_group_send(struct hd_group *group, const struct hd_group_args *args)
{
	struct hd_ep *ep = group->ep;
	struct hd_cast_key keys[HD_CAST_KEYS - 1];
	struct iovec iov[1 + HD_IOV_MAX] = { { keys, 0 } };
	struct hd_cast_head head = { .magic = HD_WIRE_MAGIC,
				     .version = HD_WIRE_VERSION,
				     .more = (uint16_t)ep->alias_count,
				     .node = hd_core(ep->node)->page->id,
				     .key = ep->key,
				     .pkt = { .kind = HD_PKT_EAGER,
					      .flags = args->flags & CAST_FLAGS,
					      .dst = hd_ep_number(ep),
					      .src = ep->src,
					      .cast_grh = { .traffic_class = args->grh.traffic_class,
							    .hop_limit = args->grh.hop_limit,
							    .global = args->grh.global,
							    .ipv6 = args->grh.ipv6 },
					      .tag = group->word,
					      .imm = args->imm } };

	hd_assert_locked(ep->node);
	if (hd_core(ep->node)->gate.dead)
		return hd_refuse(ENOTRECOVERABLE, HD_OF_PARENT);
	if (hd_cq_full(ep->tx_cq) || (ep->qp && !hd_ep_tx_left(ep)))
		return -EAGAIN;
	if (ep->qp)
		head.pkt.qp.qkey = args->qkey;
	iov[0].iov_len = (size_t)further_keys(ep, keys) * sizeof(keys[0]);
	memcpy(iov + 1, args->iov, (size_t)args->count * sizeof(*iov));
	if (group->cast->caster->cast(group->cast, &head, iov, 1 + args->count) == -EFAULT)
		return unsaid(ep, args);
	said(ep, args);
	return 0;
}

/* ---- arriving -------------------------------------------------------------------------------- */

static size_t keys_len(const struct hd_cast_head *head)
{
	return head->more * sizeof(struct hd_cast_key);
}

static bool is_valid(const struct hd_cast_head *head, size_t len)
{
	return head->magic == HD_WIRE_MAGIC && head->version == HD_WIRE_VERSION &&
	       head->more < HD_CAST_KEYS && len >= keys_len(head) && len - keys_len(head) <= HD_MAX_DGRAM &&
	       head->pkt.kind == HD_PKT_EAGER && !(head->pkt.flags & ~CAST_FLAGS);
}

/* Is it for this member, as far as keys do not matter? */
static bool group_is_meant(const struct hd_group *group, const struct hd_cast_head *head)
{
	const struct hd_ep *ep = group->ep;

	if (!(group->how & HD_GROUP_RECV) || head->pkt.tag != group->word)
		return false;
	return !group->not_own || head->pkt.src != ep->src ||
	       memcmp(&head->node, &hd_core(ep->node)->page->id, sizeof(head->node)) != 0;
}

static struct hd_cast_key key_at(const struct hd_arrived *what, uint32_t i)
{
	struct hd_cast_key key = { .key = what->head->key, .src = what->head->pkt.src };

	if (i)
		memcpy(&key, (const char *)what->payload + (i - 1) * sizeof(key), sizeof(key));
	return key;
}

/*
 * The sender's number here, if his node is a peer and has said so; anybody may
 * have written the datagram.
 */
static uint32_t group_source_of(struct hd_node *node, const struct hd_cast_head *head,
				const struct hd_cast_key *key)
{
	const struct hd_peer *peer = hd_peer_of_ours(node, &head->node);

	peer = peer ? peer : hd_peer_find(node, &head->node, HD_REALM_FAR);
	return peer && hd_remote_key(peer, key->src) == key->key ? hd_pkt_source(peer, key->src) : 0;
}

/*
 * How a member may take a datagram: as the endpoint that has one of its
 * keys, into a posted receive.
 */
struct taking {
	struct hd_ep *ep;
	struct hd_recv *r; /* NULL: not at all */
	uint32_t src;
};

/* Nobody that is known comes as one of those who have the key. */
static struct taking taking_as(struct hd_group *group, const struct hd_cast_head *head,
			       const struct hd_cast_key *key)
{
	struct taking t = { .ep = hd_ep_alias(group->ep, key->key) };
	struct hd_node *node = group->ep->node;

	if (!t.ep)
		return t;
	t.src = group_source_of(node, head, key);
	t.r = (struct hd_recv *)hd_match_peek_posted(&t.ep->rq->match[0], 0,
						     t.src ? t.src : hd_key_group(node, key->key));
	if (t.r && t.r->flags & HD_RECV_BUFFERED)
		t.r = NULL;
	return t;
}

/* The receive that was posted first, whichever of the keys it is for. */
static struct taking taking_first(struct hd_group *group, const struct hd_arrived *what)
{
	struct taking best = { 0 };

	for (uint32_t i = 0; i <= what->head->more; i++) {
		struct hd_cast_key key = key_at(what, i);
		struct taking t = taking_as(group, what->head, &key);

		if (t.r && (!best.r || t.r->m.seq < best.r->m.seq))
			best = t;
	}
	return best;
}

void hd_group_take(struct hd_group *group, const struct hd_arrived *what)
{
	struct taking best = taking_first(group, what);
	struct hd_pkt plain = what->head->pkt;
	size_t skip = keys_len(what->head);

	while (best.r && hd_recv_outgrown(best.r, what->len - skip)) {
		hd_recv_release(best.ep, best.r);
		best = taking_first(group, what);
	}
	if (!best.r)
		return;
	plain.tag = 0;
	hd_deliver_cast(best.ep, best.r, &plain, best.src, (const char *)what->payload + skip,
			what->len - skip);
}

void hd_group_hold(struct hd_group *group, const struct hd_arrived *what)
{
	const struct hd_cast_grh *grh = &what->head->pkt.cast_grh;
	const struct hd_sender from = { .number = what->head->pkt.dst & 0xffffff,
					.addr = what->from,
					.group = group->owner,
					.grh = { .traffic_class = grh->traffic_class,
						 .hop_limit = grh->hop_limit,
						 .global = grh->global,
						 .ipv6 = grh->ipv6 } };
	size_t skip = keys_len(what->head);

	if (what->head->key == group->ep->key)
		hd_resp_cast(group->ep, &what->head->pkt, &from, (const char *)what->payload + skip,
			     what->len - skip);
}

void hd_cast_arrived(struct hd_cast *cast, const struct hd_arrived *what)
{
	struct hd_group *group = cast->group;

	if (!is_valid(what->head, what->len) || !group_is_meant(group, what->head))
		return;
	group->ep->class->cast(group, what);
}
