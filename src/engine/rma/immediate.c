/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * One-sided operations that are over when the call returns: what our link copies by
 * itself (xfer/direct.c) in one call. Whatever is not as simple as most operations are
 * becomes an operation (rma.c).
 *
 * After a system call little of this is in the processor's first cache, and the places to return to
 * are forgotten. So this is one function in front of the link's, and looks at as little as it can:
 * what the last operation has found is kept.
 */
#include "engine/link/link.h"
#include "engine/rma/rma.h"
#include "engine/xfer/xfer.h"

#include <errno.h>
#include <string.h>

#define SIMPLE \
	(HD_SEND_COMPLETE | HD_SEND_INJECT | HD_SEND_TRY | \
	 HD_SEND_DELIVERED) /* flags that need nothing more */

static __attribute__((noinline)) int check_segments(const struct hd_rma_args *args)
{
	uint64_t len = 0;

	if (args->count < 0 || args->count > HD_MAX_IOV || args->seg_count < 0 ||
	    args->seg_count > HD_RMA_SEGS)
		return hd_refuse(EINVAL, "a read or write of more segments than there may be");
	for (int i = 0; i < args->seg_count; i++)
		if (__builtin_add_overflow(len, args->segs[i].len, &len) || len > HD_MAX_MSG)
			return hd_refuse(EMSGSIZE, "a read or write of more bytes than max_msg_size");
	if (len != hd_iov_len(args->iov, args->count))
		return hd_refuse(EINVAL,
				 "a read or write whose local and remote segments are not equally long");
	return 0;
}

/*
 * One segment here and one there, as much as one call may copy, and nothing
 * but the copy to be done.
 */
static inline bool is_simple(const struct hd_rma_args *a)
{
	return a->count == 1 && a->seg_count == 1 && a->segs->len == a->iov->iov_len &&
	       a->segs->len - 1 < HD_DIRECT_SLICE && !(a->flags & ~(uint32_t)SIMPLE);
}

/* Nothing of ours is before it at the target, or under way. */
static inline bool immediate_is_open(const struct hd_ep *ep, const struct hd_dest *dest, uint64_t len)
{
	const struct hd_peer *peer = dest->peer;

	return dest->state == HD_DEST_BOUND && TAILQ_EMPTY(&peer->direct_ops) &&
	       hd_direct_all_taken(ep, peer) && (len <= HD_DIRECT_SHARE || len <= hd_direct_most(ep, peer));
}

/*
 * Is this where the last operation that came here found its region, and the target's endpoint what
 * it was? Of the region's row the state is enough, which has another number after any change;
 * whoever copies compares it. So does he with that of the endpoint's row, but there the rest may
 * change and the state be the same again.
 */
static inline bool immediate_is_known(const struct hd_direct_seen *s, const struct hd_ep *ep,
				      const struct hd_dest *dest, const struct hd_rma_seg *seg,
				      uint32_t access)
{
	uint64_t at = seg->addr - s->start;

	return s->access == access && s->key == seg->key && at < s->len && seg->len <= s->len - at &&
	       s->ep == dest->remote && s->ep_state >> 16 == dest->gen && s->by == ep->index &&
	       s->epoch == ep->page_epoch &&
	       hd_page_ep_same(&hd_page_tables(dest->peer->link->page)->eps[s->ep], &s->row);
}

static inline enum hd_direct_outcome immediate_now(const struct hd_ep *ep, const struct hd_dest *dest,
						   const struct hd_rma_args *a)
{
	uint32_t access = a->op == HD_RMA_READ ? HD_PAGE_MR_READ : HD_PAGE_MR_WRITE;
	const struct hd_rma_seg *seg = a->segs;
	struct hd_link *link = dest->peer->link;
	struct hd_direct_seen *s;
	struct hd_direct r;
	int64_t n;

	if (!immediate_is_open(ep, dest, seg->len))
		return HD_DIRECT_NOT;
	if (seg->len <= HD_DIRECT_SHORT && link->ops->polls(link))
		return HD_DIRECT_PACKET;
	s = hd_direct_seen_of(link, dest->remote, access);
	if (hd_unlikely(!immediate_is_known(s, ep, dest, seg, access)) &&
	    !hd_direct_find(s, ep, dest, seg, access))
		return HD_DIRECT_NOT;
	r = (struct hd_direct){ .mr = s->mr,
				.mr_state = s->mr_state,
				.ep = s->ep,
				.ep_state = s->ep_state,
				.near = a->iov,
				.count = 1,
				.far = s->far + (seg->addr - s->start),
				.len = seg->len,
				.out = access == HD_PAGE_MR_WRITE,
				.last = true };
	n = link->ops->direct(link, &r);
	if (hd_unlikely(n == -ESTALE))
		hd_direct_seen_not(s);
	return n == (int64_t)seg->len ? HD_DIRECT_DONE : HD_DIRECT_NOT;
}

int hd_rma(struct hd_ep *ep, struct hd_dest *dest, const struct hd_rma_args *args)
{
	enum hd_direct_outcome outcome = HD_DIRECT_NOT;
	const struct hd_dest *to = dest;
	bool simple = is_simple(args), reads = args->op == HD_RMA_READ;
	int rc = 0;

	hd_assert_locked(ep->node);
	HD_TRACE_POST(ep->index, reads ? HD_TRACE_READ : HD_TRACE_WRITE, args->segs->len, args->ctx);
	if (hd_unlikely(args->flags & HD_SEND_KEYED) && !(ep = hd_ep_alias(ep, dest->key)))
		return hd_refuse(EACCES, HD_NO_SUCH_KEY);
	if (hd_unlikely(ep->policy & HD_EP_DROP))
		return hd_refuse(EOPNOTSUPP, "endpoints for datagrams have no reads and writes");
	if (ep->policy & HD_EP_PAIRED)
		to = ep->poster->idle(ep);
	if (!simple)
		rc = check_segments(args);
	if (!rc && (to == dest || !to))
		rc = hd_op_room(ep, dest);
	if (hd_unlikely(rc))
		return rc;
	if (simple && to)
		outcome = immediate_now(ep, to, args);
	if (hd_unlikely(outcome != HD_DIRECT_DONE))
		return hd_rma_later(ep, dest, args, outcome == HD_DIRECT_PACKET && to == dest);
	if (args->flags & HD_SEND_COMPLETE)
		hd_sent_complete(ep, args->ctx, HD_C_RMA | (reads ? HD_C_READ : HD_C_WRITE), args->segs->len,
				 args->tag, 0);
	hd_cntr_count(reads ? ep->cntrs.read : ep->cntrs.write, args->segs->len);
	return 0;
}
