/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Operations: what a program has posted that is not over at once, and what its completion says. All
 * with the node's lock; nothing blocks; operations end with a status (api/status.h), results of
 * functions are negative errnos.
 */
#ifndef HD_ENGINE_OP_H
#define HD_ENGINE_OP_H

#include "engine/xfer/transfer.h"

enum hd_op_state {
	HD_OP_QUEUED, /* accepted, and not begun: hd_op_await, or HD_SEND_WQE */
	HD_OP_FENCED, /* waits behind a fence, in ep->order->fenced */
	/* under way: among what waits for its peer */
	HD_OP_DIRECT,	/* executed here, in peer->direct_ops: see direct.c */
	HD_OP_ACK,	/* eager message or short write sent, waits for ACK, or FIN */
	HD_OP_ATOMIC,	/* ATOMIC sent, waits for RESULT or an error */
	HD_OP_ASKED,	/* ASK sent, waits for TOLD */
	HD_OP_TRANSFER, /* what it is, its transfer says */
};

struct hd_op;

/* What operations other than messages do in their own way. */
struct hd_op_kind {
	bool reads, writes;		/* memory of the target */
	uint32_t cqe_flags;		/* enum hd_cqe_flag of the completion */
	int (*start)(struct hd_op *op); /* as hd_op_start */
	/* instead of start, of queue pairs: needs nobody else. 0, a status; -EAGAIN: not yet */
	int (*here)(struct hd_op *op);
	/* bytes that the program has asked for, for its completion; NULL: t.len */
	uint64_t (*bytes)(const struct hd_op *op);
	void (*free)(struct hd_op *op); /* gives extra back; may be NULL */
};

struct hd_op {
	struct hd_transfer t;	    /* first. Its segments are iov[] and regions[] */
	TAILQ_ENTRY(hd_op) entry;   /* of the list that its state names */
	TAILQ_ENTRY(hd_op) at_dest; /* of dest->waiting or dest->fenced, by its state */
	enum hd_op_state state;
	uint32_t flags;		       /* enum hd_send_flag */
	const struct hd_op_kind *kind; /* NULL: a message */
	struct hd_cntr *cntr;	       /* counts it, may be NULL */
	struct hd_dest *dest;	       /* referenced */
	void *ctx;
	union { /* what its header says beside */
		struct {
			uint64_t tag, imm;
		};
		struct hd_pkt_qp head; /* of queue pairs */
	};
	/* HD_SEND_ORDERED: its place in the order of completions */
	struct hd_send_place *send_place;
	void *copy;  /* of the payload: t.len bytes */
	void *extra; /* its kind's */
	/* HD_OP_FENCED, of a fenced one: operations that it waits for still */
	uint32_t fence_count;
	uint32_t wqe; /* HD_SEND_WQE: its number in the send queue */
	/* direct.c */
	bool by_packet; /* what is left of it has to go by packets */
	bool has_token; /* it waits for `token` */
	bool redraw;	/* something has gone before it since */
	bool told;	/* the log has it that packets carry what might have been copied */
	/* a write of a queue pair behind another one: its data comes in beside that, in frames */
	bool beside;
	/* counted in the endpoint's and the peer's send_fences */
	bool send_fence;
	bool rma_fence;			      /* counted in the endpoint's rma_fences */
	uint32_t token;			      /* hd_link_ops.fence */
	uint32_t token_spent, token_requests; /* what had been sent when it was drawn */
	struct iovec iov[HD_IOV_MAX];
	struct hd_mr *regions[HD_IOV_MAX];
};

/*
 * hd_xfers_init, hd_xfers_fini: of a new node, of one that goes. hd_xfers_open: 0 or -ENOMEM;
 * hd_xfers_close undoes it, and nothing where it was not.
 */
void hd_xfers_init(struct hd_node *node);
void hd_xfers_fini(struct hd_node *node);
int hd_xfers_open(struct hd_node *node);
void hd_xfers_close(struct hd_node *node);

/* What one send asks for. */
struct hd_send_args {
	const struct iovec *iov;
	int count;
	uint64_t tag, imm;
	void *ctx;
	uint32_t flags; /* enum hd_send_flag */
};
#define HD_SEND_SILENT (1u << 16) /* has been completed already: ends without a word */
/* in the send queue of a queue pair, which completes it: hd_op.wqe */
#define HD_SEND_WQE (1u << 17)

/*
 * hd_op_of: the operation whose transfer this is, or NULL: it is another's. hd_op_by_id: the one
 * that a peer names, or NULL.
 */
extern const struct hd_transfer_owner hd_op_owner;
static inline struct hd_op *hd_op_of(struct hd_transfer *t)
{
	return t->owner == &hd_op_owner ? hd_container(t, struct hd_op, t) : NULL;
}
static inline struct hd_op *hd_op_by_id(const struct hd_node *node, uint32_t id)
{
	struct hd_transfer *t = hd_transfer_by_id(node, id);

	return t ? hd_op_of(t) : NULL;
}

/*
 * How an endpoint posts: matched ones (rdm/send.c), or queue pairs, which have a send queue
 * (qp/sq.c, qp/ud.c). Called with the node's lock.
 *
 * send: hd_send of datagrams, and of queue pairs, where it does not go the short way; of paired
 * ones, dest is nobody. room: may another operation to this destination be made? 0, -EAGAIN,
 * -ENOTRECOVERABLE, -ENOTCONN. post: start it, or keep it until that can be. 0; negative: refused,
 * and the operation is freed. idle: the destination, if nothing is under way to it that an
 * operation done at once would overtake; else NULL. Only where there is a send queue. ended: one
 * with HD_SEND_WQE has ended; it is freed after this.
 */
struct hd_poster {
	int (*send)(struct hd_ep *ep, struct hd_dest *dest, const struct hd_send_args *a);
	int (*room)(struct hd_ep *ep, struct hd_dest *dest);
	int (*post)(struct hd_op *op);
	struct hd_dest *(*idle)(struct hd_ep *ep);
	void (*ended)(struct hd_op *op, enum hd_status status);
};

/*
 * hd_op_make: an operation of ours that is in no list yet, and holds its destination, with what its
 * completion needs left to be filled in. NULL: no memory.
 */
struct hd_op *hd_op_make(struct hd_ep *ep, struct hd_dest *dest, const struct hd_send_args *a);

/*
 * What the room says that makes one. hd_op_set_kind, hd_op_set_extra, hd_op_set_cntr,
 * hd_op_set_by_packet, hd_op_set_flags, hd_op_set_tag: see its members.
 * hd_op_set_copy: it has these bytes, from hd_rqs.bytes, for what it has to say. hd_op_queue: it is
 * in a send queue, for this destination; its own was nobody.
 */
static inline void hd_op_set_kind(struct hd_op *op, const struct hd_op_kind *kind)
{
	op->kind = kind;
}
static inline void hd_op_set_extra(struct hd_op *op, void *extra)
{
	op->extra = extra;
}
static inline void hd_op_set_cntr(struct hd_op *op, struct hd_cntr *cntr)
{
	op->cntr = cntr;
}
static inline void hd_op_set_by_packet(struct hd_op *op, bool by_packet)
{
	op->by_packet = by_packet;
}
static inline void hd_op_set_flags(struct hd_op *op, uint32_t flags)
{
	op->flags = flags;
}
static inline void hd_op_set_tag(struct hd_op *op, uint64_t tag)
{
	op->tag = tag;
}
static inline void hd_op_set_copy(struct hd_op *op, void *copy, uint64_t len)
{
	op->t.len = len;
	op->copy = copy;
}
static inline void hd_op_queue(struct hd_op *op, struct hd_dest *dest)
{
	op->dest = hd_dest_ref_instead(op->dest, dest);
	op->state = HD_OP_QUEUED;
}

/* hd_send_finish: a send of len bytes has gone as far as it has to. */
void hd_send_finish(struct hd_ep *ep, const struct hd_send_args *a, uint64_t len);

/*
 * op.c, message_out.c; for all kinds of operations:
 *
 * hd_op_room, hd_op_post: see struct hd_poster.
 */
static inline int hd_op_room(struct hd_ep *ep, struct hd_dest *dest)
{
	return ep->poster->room(ep, dest);
}
static inline int hd_op_post(struct hd_op *op)
{
	return op->t.ep->poster->post(op);
}

/* hd_op_is_read, hd_op_is_write: a one-sided operation that is one. */
static inline bool hd_op_is_read(const struct hd_op *op)
{
	return op->kind && op->kind->reads;
}
static inline bool hd_op_is_write(const struct hd_op *op)
{
	return op->kind && op->kind->writes;
}

/*
 * hd_op_under: it is under way at its peer, in this state, which is none of its transfer's.
 * hd_op_transfers: it is a transfer from now on, in this state.
 */
void hd_op_under(struct hd_op *op, enum hd_op_state state);
void hd_op_transfers(struct hd_op *op, enum hd_transfer_state state);

static inline uint64_t hd_op_bytes(const struct hd_op *op)
{
	return op->kind && op->kind->bytes ? op->kind->bytes(op) : op->t.len;
}

/*
 * hd_op_complete: one of the endpoint's operations, or what never became one, has ended like this:
 * complete and count it, or tell the work that it is done for.
 */
struct hd_ended {
	void *ctx;
	uint64_t len, tag;
	uint32_t flags, cqe_flags; /* enum hd_send_flag, enum hd_cqe_flag */
	enum hd_status status;
	struct hd_cntr *cntr;
};
void hd_op_complete(struct hd_ep *ep, const struct hd_ended *how);

/*
 * hd_op_fences: a long write or read is under way: what its endpoint sends to this peer waits until
 * it is done where HD_EP_SAW or HD_EP_SAR says so, and what else it does to memory there where
 * HD_EP_RMA_WHOLE does. Once is enough. hd_op_send_fenced, hd_op_rma_fenced: it has to wait.
 */
void hd_op_fences(struct hd_op *op);
bool hd_op_rma_fence_at(const struct hd_ep *ep, const struct hd_peer *peer);
static inline bool hd_op_send_fenced(const struct hd_ep *ep, const struct hd_peer *peer)
{
	return hd_unlikely(ep->send_fences) && peer->send_fences;
}
static inline bool hd_op_rma_fenced(const struct hd_ep *ep, const struct hd_peer *peer)
{
	return hd_unlikely(ep->rma_fences) && hd_op_rma_fence_at(ep, peer);
}

/* hd_send_wire: what the flags of a send (enum hd_send_flag) are in a header. */
static inline uint8_t hd_send_wire(uint32_t flags)
{
	static_assert(HD_SEND_TAKE_BACK >> 8 == HD_PKT_F_INVALIDATE, "one shift");

	return (uint8_t)((flags & HD_SEND_WIRE) | (flags & HD_SEND_TAKE_BACK) >> 8);
}

/* hd_op_check (check.c): assert in builds with assertions that its members agree with its state. */
#ifdef NDEBUG
static inline void hd_op_check(const struct hd_op *op)
{
}
#else
void hd_op_check(const struct hd_op *op);
#endif

/* hd_op_header: the head of a packet of this kind about it. */
void hd_op_header(const struct hd_op *op, uint8_t kind, struct hd_pkt *pkt);

/*
 * Those that cannot start yet, by where they go and by endpoint, so that what ends looks at its own
 * alone. hd_op_await: it is to start when its destination is bound. hd_op_enqueue: that is, to this
 * peer, and it starts in its turn: `push` of link/observers.h. hd_op_requeue: it could not, and is
 * the first still. hd_op_dequeue: it is in none of these lists any more; the peer's short way is
 * settled by the caller (hd_peer_settle).
 */
void hd_op_await(struct hd_op *op);
void hd_op_enqueue(struct hd_peer *peer, struct hd_op *op);
void hd_op_requeue(struct hd_op *op);
void hd_op_dequeue(struct hd_op *op);

/* hd_op_free: forget an operation that is in no list any more. */
void hd_op_free(struct hd_op *op);

/*
 * hd_op_copy: copy the payload, so that the caller's buffer is free. 0, -ENOMEM, or -EFAULT: it is
 * not there. hd_op_take_over: where HD_SEND_INJECT has promised so, and once; it cannot leave now.
 * hd_op_not_now: one that is in no list could not start for want of memory or room, or (rc -EFAULT)
 * because its own memory is gone. It ends with that, and the answer is 0; else it is rc.
 */
int hd_op_copy(struct hd_op *op);
static inline int hd_op_take_over(struct hd_op *op)
{
	return op->flags & HD_SEND_INJECT && !op->copy ? hd_op_copy(op) : 0;
}

int hd_op_gone(struct hd_op *op);
static inline int hd_op_not_now(struct hd_op *op, int rc)
{
	return hd_unlikely(rc == -EFAULT) ? hd_op_gone(op) : rc;
}

/*
 * hd_op_hold_regions: its segments are of these regions, as many as it has,
 * each of which may be NULL.
 */
void hd_op_hold_regions(struct hd_op *op, struct hd_mr *const *regions);

/*
 * hd_op_done: one that is no transfer has ended: completes it as asked for and frees it.
 * It is in no queue (peer->queue, dest->waiting, ep->order->fenced) any more. Of a
 * transfer it is hd_transfer_end.
 */
void hd_op_done(struct hd_op *op, enum hd_status status);

/*
 * hd_op_stop: end it without a completion, and its send queue knows it no longer. In any state, but
 * in no queue, as hd_op_done. Else hd_transfer_drop and hd_transfer_cancel.
 */
void hd_op_stop(struct hd_op *op);

/*
 * message_out.c. hd_message_start: send what opens the protocol of a message that has nothing to
 * wait for: whole, or announced. 0: under way, or done and freed already; -EAGAIN: nothing has
 * happened, try again; -ENOTCONN: the link has just broken, -ENOMEM: likewise nothing has happened.
 * The destination is bound. hd_op_announce: the same, announced however short it is.
 */
int hd_message_start(struct hd_op *op);
int hd_op_announce(struct hd_op *op);

#endif
