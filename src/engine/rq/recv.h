/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Receives: how they are made and how they end: shared by the short way of a message, by posting,
 * by rendezvous and by queue pairs.
 */
#ifndef HD_ENGINE_RECV_H
#define HD_ENGINE_RECV_H

#include "base/copy.h"
#include "base/iov.h"
#include "engine/event/event.h"
#include "engine/link/link.h"
#include "engine/rq/queue.h"

#include <errno.h>
#include <string.h>

/* What is told of a received message. */
struct hd_received {
	uint64_t len; /* of the message */
	uint64_t tag, imm;
	uint32_t src;
	uint32_t flags;	       /* enum hd_pkt_flag of the message */
	enum hd_status status; /* but for truncation */
};

/* hd_message_flags: enum hd_cqe_flag of a message that has come, by the flags of its packet. */
static inline uint32_t hd_message_flags(uint32_t pkt_flags)
{
	return HD_C_RECV | (pkt_flags & HD_PKT_F_TAGGED ? HD_C_TAGGED : HD_C_MSG) |
	       (pkt_flags & HD_PKT_F_IMM ? HD_C_IMM : 0) |
	       (pkt_flags & HD_PKT_F_SOLICITED ? HD_C_SOLICITED : 0);
}

static inline uint32_t hd_received_flags(uint32_t pkt_flags)
{
	return hd_message_flags(pkt_flags) |
	       (pkt_flags & HD_MSG_WRITTEN ? HD_C_RMA | HD_C_REMOTE | HD_C_WRITE : 0) |
	       (pkt_flags & HD_MSG_CAST ? HD_C_CAST : 0);
}

static inline uint64_t hd_recv_room(const struct hd_recv *r)
{
	return hd_likely(r->count == 1) ? r->iov.iov_len : hd_iov_len(r->more, r->count);
}

static inline const struct iovec *hd_recv_iov(const struct hd_recv *r)
{
	return hd_likely(r->count == 1) ? &r->iov : r->more;
}

/* hd_msg_source: what a completion names as the source of a message that waited. */
static inline uint32_t hd_msg_source(const struct hd_node *node, const struct hd_msg *m)
{
	uint32_t src = hd_wnode_src(&m->w);

	return hd_dest_by_id(node, src) ? src : 0;
}

/*
 * hd_msg_describe (waiting.c): what the completion of its receive tells of a message that
 * waited, or was announced.
 */
void hd_msg_describe(const struct hd_node *node, const struct hd_msg *m, struct hd_received *out);

/* What a completion of a receive takes from the receive. */
struct hd_taken {
	struct hd_ep *ep; /* whom the message came to */
	void *ctx;
	void *buf;
	uint64_t room;
	uint32_t flags; /* enum hd_recv_flag */
	/* the multi-receive buffer that the message got a part of, or NULL */
	struct hd_recv *whole;
};

/* hd_recv_free: give a receive that is posted nowhere back. */
static inline void hd_recv_free(struct hd_node *node, struct hd_recv *r)
{
	if (hd_unlikely(r->count > 1))
		hd_pool_put(&hd_rqs(node)->iovs, r->more);
	hd_pool_put(&hd_rqs(node)->recvs, r);
}

/*
 * hd_recv_part_end: a message that got a part of this multi-receive buffer has ended, or was given
 * up. True, and the buffer is freed, when that was the last one and it takes no more: not before is
 * the memory the program's again.
 */
static inline bool hd_recv_part_end(struct hd_node *node, struct hd_recv *whole)
{
	if (--whole->parts || hd_mnode_is_posted(&whole->m))
		return false;
	hd_recv_free(node, whole);
	return true;
}

static inline bool hd_recv_releases(const struct hd_taken *t)
{
	return hd_unlikely(t->whole != NULL) && hd_recv_part_end(t->ep->node, t->whole);
}

/*
 * hd_recv_ep_decides: a receive that did not say so itself completes, because the endpoint that
 * took it completes everything.
 */
static inline bool hd_recv_ep_decides(const struct hd_taken *t)
{
	return t->flags & HD_RECV_SHARED && !(t->ep->policy & HD_EP_RX_SELECTIVE);
}

static_assert((int)HD_RECV_CLAIM == (int)HD_C_CLAIM, "completions take it from the receive");

/* hd_recv_complete: count and report one received message as the receive asked for. */
void hd_recv_complete_error(const struct hd_taken *t, const struct hd_received *m);
void hd_recv_complete_work(const struct hd_taken *t, const struct hd_received *m);
static inline void hd_recv_complete(const struct hd_taken *t, const struct hd_received *m)
{
	struct hd_ep *ep = t->ep;
	struct hd_cqe *e;
	bool releases;

	if (hd_unlikely(m->len > t->room || m->status)) {
		hd_recv_complete_error(t, m);
		return;
	}
	if (!(t->flags & HD_RECV_COMPLETE) && hd_unlikely(t->flags & HD_RECV_WORK)) {
		hd_recv_complete_work(t, m);
		return;
	}
	hd_cntr_count(ep->cntrs.recv, m->len);
	releases = hd_recv_releases(t);
	if (!(t->flags & HD_RECV_COMPLETE) && !releases && !hd_recv_ep_decides(t))
		return;
	struct hd_cqe spare;

	e = hd_cq_slot(ep->rx_cq);
	if (hd_unlikely(!e))
		e = &spare;
	e->ctx = t->ctx;
	e->buf = t->buf;
	e->len = m->len;
	e->tag = m->tag;
	e->imm = m->imm;
	e->olen = 0;
	e->src = m->src;
	e->ep = ep->index;
	e->flags = hd_received_flags(m->flags) | (t->flags & HD_RECV_CLAIM) |
		   (releases ? HD_C_MULTI_RECV : 0);
	e->err = 0;
	if (hd_likely(e != &spare))
		hd_cq_push(ep->rx_cq, e);
	else
		hd_cq_overflow(ep->rx_cq, e);
}

/* hd_rq_match: the half of the queue that receives with these flags are in. */
static inline struct hd_match *hd_rq_match(struct hd_rq *rq, uint32_t flags)
{
	static_assert((int)HD_RECV_TAGGED == (int)HD_PKT_F_TAGGED && (int)HD_RECV_TAGGED == 1,
		      "the flag is the index");
	return &rq->match[flags & HD_RECV_TAGGED];
}

/*
 * Does the sender of an eager message wait for an answer still? DELIVERED alone has been answered
 * once all of it was here.
 */
static inline bool hd_msg_is_unanswered(const struct hd_msg *m)
{
	return m->flags & HD_PKT_F_ACK || (m->flags & HD_PKT_F_DELIVERED && m->arriving);
}

/* hd_recv_source: whom the receive wants its message from. */
static inline uint32_t hd_recv_source(const struct hd_recv_args *a)
{
	return a->src ? a->src->id : HD_MATCH_ANY;
}

/*
 * hd_ep_speaker: who reports what happens to a receive or search that no endpoint has taken.
 * hd_recv_unpost (rq.c): a posted receive, tagged or not, completes in error, a status.
 */
struct hd_ep *hd_ep_speaker(struct hd_ep *ep);
void hd_recv_unpost(struct hd_ep *ep, int half, struct hd_recv *r, enum hd_status status);

#define HD_RECV_PART (1u << 16) /* a part of a multi-receive buffer, hd_recv.whole */
#define HD_RECV_USED (1u << 17) /* a multi-receive buffer that has given parts of itself away */

/* hd_recv_segments: no segments, or several: false without memory for them. */
bool hd_recv_segments(struct hd_recv *r, const struct hd_recv_args *a);

/* hd_recv_fill: a new receive of one segment, which is in no queue. */
static inline void hd_recv_fill(struct hd_recv *r, struct hd_ep *ep, const struct iovec iov,
				struct hd_mr *region, void *ctx, uint32_t flags)
{
	r->ctx = ctx;
	r->flags = flags;
	r->ep = ep;
	r->m.role = HD_MNODE_OUT;
	r->count = 1;
	r->more = NULL; /* no parts, no whole */
	r->region = region;
	r->iov = iov;
}

/* hd_recv_make: a receive that is in no queue; NULL: no memory. */
static inline struct hd_recv *hd_recv_make(struct hd_ep *ep, const struct hd_recv_args *a)
{
	struct hd_recv *r = hd_pool_get(&hd_rqs(ep->node)->recvs);

	if (hd_unlikely(!r))
		return NULL;
	hd_recv_fill(r, ep, hd_likely(a->count == 1) ? a->iov[0] : (struct iovec){ NULL, 0 }, a->region,
		     a->ctx, a->flags);
	if (hd_unlikely(a->count != 1) && !hd_recv_segments(r, a)) {
		hd_pool_put(&hd_rqs(ep->node)->recvs, r);
		return NULL;
	}
	return r;
}

/* hd_recv_taken: what its completion for a message of ep takes from r. */
static inline void hd_recv_taken(struct hd_recv *r, struct hd_ep *ep, struct hd_taken *t)
{
	*t = (struct hd_taken){ .ep = ep,
				.ctx = r->ctx,
				.buf = hd_recv_iov(r)->iov_base,
				.room = hd_recv_room(r),
				.flags = r->flags,
				.whole = r->flags & HD_RECV_PART ? r->whole : NULL };
}

/* hd_recv_drop: give back a receive that is posted nowhere and completes no more. */
static inline void hd_recv_drop(struct hd_node *node, struct hd_recv *r)
{
	if (r->flags & HD_RECV_PART)
		hd_recv_part_end(node, r->whole);
	hd_recv_free(node, r);
}

/*
 * hd_recv_take_multi: the posted multi-receive buffer r gives a part of itself to a message of len
 * bytes: *iov is where it goes, *t what its completion needs. r leaves the queue when less than the
 * minimum is left, and is freed when its last part has ended.
 */
void hd_recv_take_multi(struct hd_rq *rq, struct hd_recv *r, uint64_t len, struct hd_taken *t,
			struct iovec *iov);

struct hd_recv *hd_recv_detach(struct hd_ep *ep, struct hd_recv *r, uint64_t len);

/*
 * hd_recv_outgrown: a message of len bytes is longer than what others have left of
 * this multi-receive buffer.
 */
static inline bool hd_recv_outgrown(const struct hd_recv *r, uint64_t len)
{
	return r->flags & HD_RECV_USED && len > r->iov.iov_len;
}

/*
 * hd_recv_release: the posted multi-receive buffer r, which has given parts away, takes no more: it
 * is told, at the endpoint whose message did not fit, when the last of them has ended.
 * hd_recv_fitting: do that until a message of len bytes matches a receive that it has not outgrown;
 * r is the first that it matches. NULL: there is none.
 */
void hd_recv_release(struct hd_ep *ep, struct hd_recv *r);
struct hd_recv *hd_recv_next_fitting(struct hd_ep *ep, struct hd_recv *r, uint64_t tag, uint32_t src,
				     uint64_t len);
static inline struct hd_recv *hd_recv_fitting(struct hd_ep *ep, struct hd_recv *r, uint64_t tag, uint32_t src,
					      uint64_t len)
{
	return r && hd_unlikely(hd_recv_outgrown(r, len)) ? hd_recv_next_fitting(ep, r, tag, src, len) : r;
}

/* hd_received_of: what is told of the message in pkt. */
static inline void hd_received_of(struct hd_received *m, const struct hd_pkt *pkt, uint32_t src, uint64_t len)
{
	*m = (struct hd_received){
		.len = len, .tag = pkt->tag, .imm = pkt->imm, .src = src, .flags = pkt->flags & HD_SEND_WIRE
	};
}

/*
 * The usual receive: one segment with room for all of the message, which completes, and nothing
 * else. hd_recv_usual: it has been taken out of its queue, and gets the message: what that needs of
 * deliver.c is here once more, on the way from packet to completion, without a stop in memory.
 * False: its memory is gone, and it has completed with that (hd_recv_gone, recv.c).
 */
static inline bool hd_recv_is_usual(const struct hd_recv *r, size_t len)
{
	return (r->flags & (HD_RECV_COMPLETE | HD_RECV_MULTI | HD_RECV_BUFFERED | HD_RECV_CLAIM |
			    HD_RECV_ORDERED)) == HD_RECV_COMPLETE &&
	       r->count == 1 && len <= r->iov.iov_len;
}

void hd_recv_gone(struct hd_ep *ep, struct hd_recv *r, const struct hd_received *m);
static inline hd_traced bool hd_recv_usual(struct hd_ep *ep, struct hd_recv *r, struct hd_cqe *e,
					   const struct hd_received m, const void *data)
{
	HD_TRACE_MATCH(ep->index, r->ctx, m.tag, m.len);
	if (hd_likely(m.len <= HD_COPY_SMALL) ? hd_unlikely(!hd_copy_small_in(r->iov.iov_base, data, m.len))
					      : hd_unlikely(hd_copy(r->iov.iov_base, data, m.len))) {
		hd_recv_gone(ep, r,
			     &(struct hd_received){ m.len, m.tag, m.imm, m.src, m.flags, HD_S_PROTECTION });
		return false;
	}
	e->ctx = r->ctx;
	e->buf = r->iov.iov_base;
	e->len = m.len;
	e->tag = m.tag;
	e->imm = m.imm;
	e->olen = 0;
	e->src = m.src;
	e->ep = ep->index;
	e->flags = hd_message_flags(m.flags);
	e->err = 0;
	hd_pool_put(&hd_rqs(ep->node)->recvs, r);
	hd_cq_push(ep->rx_cq, e);
	hd_cntr_count(ep->cntrs.recv, m.len);
	return true;
}

/*
 * into.c. hd_recv_into: what comes whole, and is told of as *m says, meets the posted receive r,
 * which hands nothing over. hd_deliver_into: the same of a message as its packet says. False: its
 * memory is gone, and it has completed with that.
 * hd_msg_make: a message in the engine's memory, in no queue; data NULL: it comes through the sink;
 * peer NULL: it came from a group, nobody has paid for it, and it is counted with those whose peer
 * is gone. hd_msg_keep: nothing was posted for it: it waits. NULL: no memory, or not for that.
 * hd_deliver_written: a write with immediate data is done, to an endpoint that uses up a receive
 * for it: to the queue it is an empty message. The request has been charged to the peer; returns
 * what is left of `units` to be given back.
 */
bool hd_recv_into(struct hd_ep *ep, struct hd_recv *r, const struct hd_received *m, const void *payload);
bool hd_deliver_into(struct hd_ep *ep, struct hd_recv *r, const struct hd_pkt *pkt, uint32_t src,
		     const void *payload, size_t len);
struct hd_msg *hd_msg_make(struct hd_ep *ep, struct hd_peer *peer, const struct hd_pkt *pkt, uint32_t src,
			   const void *data, size_t room);
struct hd_msg *hd_msg_keep(struct hd_ep *ep, struct hd_peer *peer, const struct hd_pkt *pkt, uint32_t src,
			   const void *data, size_t room);
uint32_t hd_deliver_written(struct hd_ep *ep, struct hd_peer *peer, const struct hd_cqe *written,
			    uint32_t units);

#endif
