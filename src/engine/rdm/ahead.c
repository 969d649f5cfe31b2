/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Messages that are about to find their receives among very many: each looks at a bucket, a receive
 * and its buffer, of which none is in a cache, and each tells where the next is. For a row of
 * messages the memory is fetched side by side: all buckets, then all receives, then all buffers.
 */
#include "engine/link/link.h"
#include "engine/rq/rq.h"

struct ahead {
	struct hd_mnode *const *begins;
	const struct hd_mnode *n; /* of it */
	uint64_t tag;
	uint32_t src;
};

/* A receive is two lines. */
static void bring_receive(const struct hd_mnode *n)
{
	const char *r = (const char *)n;

	__builtin_prefetch(r, 1);
	__builtin_prefetch(r + 64, 1);
}

/* False: it is no usual message, or its queue is not deep. */
static bool ahead_begin(struct ahead *s, const struct hd_link *link, const struct hd_pkt *pkt)
{
	const struct hd_ep *ep = pkt->kind == HD_PKT_EAGER ? hd_pkt_named(link->node, pkt) : NULL;
	const struct hd_match *match;

	if (!ep || ep->watch)
		return false;
	match = &ep->rq->match[pkt->flags & HD_PKT_F_TAGGED];
	if (match->posted < HD_MATCH_DEEP)
		return false;
	s->src = hd_pkt_source(link->peer, pkt->src);
	s->begins = hd_match_begins(match, pkt->tag, s->src);
	if (!s->begins)
		return false;
	s->tag = pkt->tag & match->active[0]->mask;
	s->src &= match->active[0]->src_mask;
	__builtin_prefetch(s->begins);
	return true;
}

/* What is second in its chain is looked at, what is behind that comes when it does. */
static void ahead_second(struct ahead *s)
{
	if (!s->n || hd_mnode_has_key(s->n, s->tag, s->src))
		return;
	s->n = s->n->chain;
	if (s->n)
		bring_receive(s->n);
}

void hd_deliver_ahead(struct hd_link *link, const struct hd_pkt *pkts, int count)
{
	struct ahead next[HD_AHEAD_MAX];
	int n = 0;

	hd_assert_locked(link->node);
	for (int i = 0; i < count && link->peer; i++)
		n += ahead_begin(&next[n], link, &pkts[i]);
	link->is_deep = n > 0;
	for (int i = 0; i < n; i++) {
		next[i].n = *next[i].begins;
		if (next[i].n)
			bring_receive(next[i].n);
	}
	for (int i = 0; i < n; i++)
		ahead_second(&next[i]);
	for (int i = 0; i < n; i++)
		if (next[i].n && hd_mnode_has_key(next[i].n, next[i].tag, next[i].src))
			__builtin_prefetch(((const struct hd_recv *)next[i].n)->iov.iov_base, 1);
}
