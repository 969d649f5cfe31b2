/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Receives, and the queues that they wait in. Rules that hold for all calls: engine.h. */
#ifndef HD_ENGINE_API_RECEIVE_H
#define HD_ENGINE_API_RECEIVE_H

#include "engine/api/types.h"

enum hd_recv_flag {
	HD_RECV_TAGGED = 1 << 0,
	HD_RECV_COMPLETE = 1 << 1, /* write a completion on success */
	HD_RECV_MULTI = 1 << 2,	   /* one segment takes many messages; untagged */
	/* a tag to be told of: HD_EP_BUFFERED; segments are not looked at */
	HD_RECV_BUFFERED = 1 << 3,
	HD_RECV_CLAIM = 1 << 7, /* the completion says so; must equal HD_C_CLAIM */
	/* ctx is a struct hd_work; not with HD_RECV_COMPLETE or HD_RECV_MULTI */
	HD_RECV_WORK = 1 << 8,
	/*
	 * HD_RECV_ORDERED: completes in the order in which the endpoint's messages met receives
	 * that have this flag. HD_RECV_ASCENDING, with it: no byte is written before all that come
	 * before it, in this message and in those before.
	 */
	HD_RECV_ORDERED = 1 << 9,
	HD_RECV_ASCENDING = 1 << 10,
	/*
	 * paired endpoints: it has not the room that was meant, because its memory is wrong: what
	 * is longer fails, here with HD_S_PROTECTION, there with HD_S_OPERATIONAL
	 */
	HD_RECV_FAULT = 1 << 11,
	/* completes on success unless the endpoint that takes it is HD_EP_RX_SELECTIVE */
	HD_RECV_SHARED = 1 << 15,
};

struct hd_recv_args {
	const struct iovec *iov; /* count 1 to HD_MAX_IOV; copied */
	int count;
	uint32_t flags;
	uint64_t tag, ignore;
	const struct hd_dest *src; /* NULL: any source */
	void *ctx;
	/*
	 * queue pairs: the region of the segment, or the first that there is of several; NULL:
	 * none. And of each of several; see hd_mr_move
	 */
	struct hd_mr *region, *const *regions;
};

/*
 * hd_rq_open: a receive queue for several endpoints: what is posted to it through any of them, or
 * through a nameless one, goes to the first message that matches, whichever of them it comes to,
 * and completes at that one: its CQ, its counter, its index. directed: as HD_EP_DIRECTED.
 * hd_rq_group: a new one, directed: receives may name keys as well, as HD_EP_BY_KEY. hd_rq_close:
 * -EBUSY while endpoints use it.
 * hd_txq_open: one bound on operations under way for several endpoints together.
 * hd_txq_close: -EBUSY likewise.
 */
int hd_rq_open(struct hd_node *node, bool directed, struct hd_rq **out);
void hd_rq_group(struct hd_rq *rq);
int hd_rq_close(struct hd_rq *rq);
/*
 * hd_rq_set_limit: below() once, at once or from a turn of progress, when fewer than `least`
 * receives are posted, and then never again until it is set anew; 0: not at all. It has the node's
 * lock and may post. hd_rq_get_limit: what is armed.
 */
struct hd_rq_limit {
	uint32_t least;
	void (*below)(void *owner);
	void *owner;
};
void hd_rq_set_limit(struct hd_rq *rq, const struct hd_rq_limit *limit);
uint32_t hd_rq_get_limit(const struct hd_rq *rq);

/*
 * Of queue pairs. hd_ep_taken: receives that have left their queue for this endpoint since it was
 * opened, for a message or because it has failed; each completes. hd_ep_filling: those whose
 * messages are still coming in.
 * hd_ep_set_mark: passed() once, from a turn of progress, when more than `most` have been taken,
 * and then never again until it is set anew; NULL: not at all. It has the node's lock and may post.
 */
uint64_t hd_ep_taken(const struct hd_ep *ep);
uint32_t hd_ep_filling(const struct hd_ep *ep);
struct hd_ep_mark {
	uint64_t most;
	void (*passed)(void *owner);
	void *owner;
};
void hd_ep_set_mark(struct hd_ep *ep, const struct hd_ep_mark *mark);
/*
 * hd_rq_buffer: what comes to the endpoints of this queue is handed over; before it has any. Again,
 * before it has any: with other limits. 0 or -ENOMEM.
 */
int hd_rq_buffer(struct hd_rq *rq, const struct hd_buffered_attr *attr);
int hd_txq_open(struct hd_node *node, uint32_t size, struct hd_txq **out);
int hd_txq_close(struct hd_txq *txq);

/*
 * hd_recv: post a receive to the endpoint's queue. 0, -EAGAIN, -ENOMEM. May
 * complete before it returns.
 */
int hd_recv(struct hd_ep *ep, const struct hd_recv_args *args);

/*
 * hd_recv_one: the usual receive of a queue pair: one segment, of a region, with HD_RECV_COMPLETE
 * and nothing else. As hd_recv; and -EAGAIN if the queue has `most` already.
 */
int hd_recv_one(struct hd_ep *ep, struct iovec iov, struct hd_mr *region, void *ctx, size_t most);

/*
 * hd_peek: look for a waiting message, also after a turn of progress. Writes exactly one completion
 * to the endpoint's receive CQ: the message's length, tag, imm, source and ctx; err HD_S_NO_MESSAGE
 * when there is none. CLAIM takes it out of the queue and stores it in *claim (kept by the front
 * until hd_claim or hd_claim_discard); DISCARD drops it. Copies up to the size of the segments
 * given; buf is then the first.
 * hd_claim_name, hd_claim_named: the front calls a claim by an address that is its own affair, and
 * finds it again; NULL: there is none. hd_claim_discard drops a claimed message; a completion tells
 * of its length, tag, imm and source where args (else NULL) ask for one.
 */
enum hd_peek_flag {
	HD_PEEK_CLAIM = 1 << 0,
	HD_PEEK_DISCARD = 1 << 1
};
struct hd_claim;
int hd_peek(struct hd_ep *ep, const struct hd_recv_args *args, uint32_t peek, struct hd_claim **claim);
void hd_claim_name(struct hd_claim *claim, const void *name);
struct hd_claim *hd_claim_named(const struct hd_ep *ep, const void *name);
int hd_claim_recv(struct hd_ep *ep, struct hd_claim *claim, const struct hd_recv_args *args);
void hd_claim_discard(struct hd_ep *ep, struct hd_claim *claim, const struct hd_recv_args *args);

/*
 * Buffered receives. At an endpoint with HD_EP_BUFFERED nothing untagged is posted, and tagged
 * receives (HD_RECV_BUFFERED) are tags only. A message makes a completion whose ctx is a handle;
 * buf is where it lies, whole or (HD_C_MORE) at least the beginning, in the engine's memory; len is
 * its length. So it stays until the program gives it back by exactly one of these calls, after
 * which neither may be touched:
 *
 * hd_handed_recv: receive it after all: args without tag, ignore, src; the completion carries
 * HD_C_CLAIM and what handed->ctx says now. 0, -EAGAIN, -ENOMEM; -EINVAL: no message is
 * handed over under this handle.
 * hd_handed_discard: drop it; no completion. 0, -EINVAL likewise.
 * hd_handed_is: is it a handle that could be given to those two?
 *
 * A tagged message that comes to nothing before it could be told of makes a completion in error,
 * with a handle all the same.
 */
struct hd_handed {
	void *owner; /* hd_buffered_attr.owner; tagged: NULL */
	void *ctx;   /* NULL, and the program's to set; tagged: of the receive that it matched */
};
int hd_handed_recv(struct hd_ep *ep, struct hd_handed *handed, const struct hd_recv_args *args);
int hd_handed_discard(struct hd_ep *ep, struct hd_handed *handed);
bool hd_handed_is(const struct hd_ep *ep, const void *handed);

/*
 * hd_recv_post: write a completion of the front's own where receives of the endpoint e->ep
 * complete; for a nameless one where its hd_cancel does, which e.ep then names.
 */
void hd_recv_post(struct hd_node *node, const struct hd_cqe *e);

/*
 * hd_cancel: cancel the oldest posted receive with this ctx: completes with HD_S_CANCELLED. 0, or
 * -ENOENT when there is none.
 */
int hd_cancel(struct hd_ep *ep, void *ctx);

#endif
