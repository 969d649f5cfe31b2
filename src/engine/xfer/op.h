/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Operations: what becomes of a send that is not over at once, of a message that is fetched, of a request of a peer that takes several turns. All with
 * the node's lock; nothing blocks; errors of completions are positive errnos, results of functions negative ones.
 */
#ifndef HD_ENGINE_OP_H
#define HD_ENGINE_OP_H

#include "base/iov.h"
#include "engine/link/pending.h"
#include "engine/rq/queue.h"
#include "engine/xfer/state.h"

enum hd_op_state {
	HD_OP_QUEUED,  /* accepted before its destination was reached: in dest->waiting or peer->queue */
	HD_OP_ACK,     /* eager message sent, waits for ACK */
	HD_OP_OFFERED, /* RTS sent, waits for CTS or FIN */
	HD_OP_FRAMES,  /* CTS came: frames are being sent, in peer->framing */
	HD_OP_FIN,     /* all frames handed to the link, waits for FIN */
	HD_OP_PULL,    /* receiver: the link fetches the message */
	HD_OP_INTAKE,  /* receiver: CTS sent, frames come in. A read of ours: the same without a CTS */
	HD_OP_DIRECT,  /* executed here, in peer->reaching: see direct.c */
	HD_OP_FENCED,  /* waits behind a fence, in ep->fenced */
	HD_OP_ATOMIC,  /* ATOMIC sent, waits for RESULT or an error */
	HD_OP_ASKED,   /* ASK sent, waits for TOLD */
};

struct hd_op;

/* What operations other than messages do in their own way. */
struct hd_op_kind {
	bool reads, writes;		/* ours: memory of the target */
	uint32_t cqe_flags;		/* ours: enum hd_cqe_flag of the completion */
	int (*start)(struct hd_op *op); /* ours: as hd_op_start */
	/* ours, instead of start, of queue pairs: needs nobody else. 0, a positive errno; -EAGAIN: not yet */
	int (*here)(struct hd_op *op);
	void (*end)(
		struct hd_op *op,
		int err); /* a peer's, executed here: it has ended, err 0 or a positive errno; no completion */
	void (*free)(struct hd_op *op); /* gives extra and more back; may be NULL */
	/* ours, a read, may be NULL: it is given up while its data comes in */
	void (*stop)(struct hd_op *op);
	/* a peer's, may be NULL: it is here, or has failed with *err: may it end now, with *err as it is then? */
	bool (*turn)(struct hd_op *op, int *err);
};

struct hd_op {
	struct hd_pending pending; /* first. Its peer is NULL while queued at an unresolved destination */
	TAILQ_ENTRY(hd_op) entry;  /* of the list that its state names */
	enum hd_op_state state;
	uint32_t flags;		       /* enum hd_send_flag, or enum hd_recv_flag of the receive */
	const struct hd_op_kind *kind; /* NULL: a message that is sent */
	struct hd_cntr *cntr;	       /* ours: counts it, may be NULL */
	struct hd_ep *ep;
	struct hd_dest *dest; /* sends: referenced */
	void *ctx;
	union { /* what its header says beside */
		struct {
			uint64_t tag, imm;
		};
		struct hd_pkt_qp head; /* of queue pairs */
	};
	uint64_t len;	       /* of the whole message */
	uint64_t want;	       /* bytes that travel: less than len when the buffer is smaller */
	uint64_t at;	       /* frames: next offset to send; bytes that came in */
	uint32_t remote;       /* the other end's operation */
	uint32_t src;	       /* receives: hd_dest_id of the sender */
	uint32_t cqe_flags;    /* receives: flags of the completion */
	struct hd_recv *whole; /* receives: the multi-receive buffer that the message gets a part of, or NULL */
	uint32_t before; /* HD_OP_FENCED, of a fenced one: operations that it waits for still; see also HD_SEND_WQE, hd_qp.lane */
	struct hd_msg *msg;   /* receives: only its beginning is fetched, for a handle */
	struct hd_seat *seat; /* ours, HD_SEND_ORDERED: its place in the order of completions */
	int puts;	      /* frames whose payload the link still reads */
	bool offered;	      /* offer must be undone */
	bool part;	      /* HD_OP_FRAMES: CTS will come again */
	bool answered; /* FIN came while puts > 0; a message or write of a pair is here, and those before it are not */
	int answer;	    /* what it said */
	void *copy;	    /* inject: our copy of the payload */
	void *extra;	    /* its kind's */
	struct iovec *more; /* its kind's: all segments, where they are more than iov[] takes */
	bool by_packet;	    /* direct.c: what is left of it has to go by packets */
	bool ticketed;	    /* direct.c: it waits for `ticket` */
	bool redraw;	    /* direct.c: something has gone before it since */
	uint32_t ticket;    /* hd_link_ops.mark */
	uint32_t ticket_spent, ticket_requests; /* what had been sent when it was drawn */
	bool beside; /* a write of a queue pair behind another one: its data comes in beside that, in frames, though it may be short */
	bool gates;  /* counted in ep->gates and peer->gates */
	struct hd_put put;
	struct hd_offer offer;
	struct hd_pull pull;
	int count;
	int region_count; /* in regions[]: 0, or count */
	struct iovec iov[HD_IOV_MAX];
	struct hd_mr *regions[HD_IOV_MAX]; /* of the segments: see local.c; NULL: of none */
};

/*
 * hd_xfers_init, hd_xfers_fini: of a new node, of one that goes. hd_xfers_open: 0 or -ENOMEM; hd_xfers_close undoes it, and nothing where it was not.
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
#define HD_SEND_UNTOLD (1u << 16) /* has been completed already: ends without a word */
#define HD_SEND_WQE \
	(1u << 17) /* in the line of a queue pair, which tells of it; `before` is its number there */

/*
 * Operations among what waits for answers (link/pending.h). hd_op_number: its number; negative: none. hd_op_by_id: the one that a peer names, or NULL.
 * HD_OPS_FOREACH: those under way with a peer, by age.
 */
extern const struct hd_pending_ops hd_op_pending;
static inline struct hd_op *hd_op_of(struct hd_pending *pending)
{
	return hd_container(pending, struct hd_op, pending);
}
static inline int hd_op_number(struct hd_node *node, struct hd_op *op)
{
	return hd_pending_number(node, &op->pending, &hd_op_pending);
}
static inline struct hd_op *hd_op_by_id(const struct hd_node *node, uint32_t id)
{
	struct hd_pending *pending = hd_pending_find(node, id, &hd_op_pending);

	return pending ? hd_op_of(pending) : NULL;
}
static inline struct hd_op *hd_op_among(struct hd_pending *pending)
{
	while (pending && pending->ops != &hd_op_pending)
		pending = TAILQ_NEXT(pending, under);
	return pending ? hd_op_of(pending) : NULL;
}
static inline struct hd_op *hd_ops_first(const struct hd_peer *peer)
{
	return hd_op_among(TAILQ_FIRST(&peer->pending));
}
static inline struct hd_op *hd_ops_next(const struct hd_op *op)
{
	return hd_op_among(TAILQ_NEXT(&op->pending, under));
}
#define HD_OPS_FOREACH(op, peer) for (op = hd_ops_first(peer); op; op = hd_ops_next(op))

/*
 * How an endpoint posts: matched ones (rdm/send.c), or queue pairs, which have a send queue (qp/sq.c). Called with the node's lock.
 *
 * send: hd_send of what does not go the short way. room: may another operation to this destination be made? 0, -EAGAIN, -ENOTRECOVERABLE, -ENOTCONN.
 * post: start it, or keep it until that can be. 0; negative: refused, and the operation is freed.
 * idle: the destination, if nothing is under way to it that an operation done at once would overtake; else NULL. Only where there is a send queue.
 * ended: one with HD_SEND_WQE has ended; it is freed after this.
 */
struct hd_poster {
	int (*send)(struct hd_ep *ep, const struct hd_send_args *a);
	int (*room)(struct hd_ep *ep, struct hd_dest *dest);
	int (*post)(struct hd_op *op);
	struct hd_dest *(*idle)(struct hd_ep *ep);
	void (*ended)(struct hd_op *op, int err);
};

/*
 * hd_op_make: an operation of ours that is in no list yet, and holds its destination, with what its completion needs left to be filled in. NULL:
 * no memory.
 */
struct hd_op *hd_op_make(struct hd_ep *ep, struct hd_dest *dest, const struct hd_send_args *a);

/* hd_send_finish: a send of len bytes has gone as far as it has to. */
void hd_send_finish(struct hd_ep *ep, const struct hd_send_args *a, uint64_t len);

/*
 * op.c, message_out.c; for all kinds of operations:
 *
 * hd_op_room, hd_op_post: see struct hd_poster.
 * hd_op_iov: its segments, op->count of them.
 */
static inline int hd_op_room(struct hd_ep *ep, struct hd_dest *dest)
{
	return ep->poster->room(ep, dest);
}
static inline int hd_op_post(struct hd_op *op)
{
	return op->ep->poster->post(op);
}
static inline const struct iovec *hd_op_iov(const struct hd_op *op)
{
	return op->more ? op->more : op->iov;
}

/* hd_op_ascends: a long message whose receive has HD_RECV_ASCENDING. */
static inline bool hd_op_ascends(const struct hd_op *op)
{
	return !op->dest && !op->msg && op->flags & HD_RECV_ASCENDING;
}

/* hd_op_is_read, hd_op_is_write: a one-sided operation of ours that is one. */
static inline bool hd_op_is_read(const struct hd_op *op)
{
	return op->kind && op->kind->reads;
}
static inline bool hd_op_is_write(const struct hd_op *op)
{
	return op->kind && op->kind->writes;
}

/* hd_op_under: it is under way at its peer, in this state. */
void hd_op_under(struct hd_op *op, enum hd_op_state state);

/* hd_complete_now: what never became an operation has been done. */
struct hd_done {
	void *ctx;
	uint64_t len;
	uint64_t tag;
	uint32_t flags, cqe_flags; /* enum hd_send_flag, enum hd_cqe_flag */
	struct hd_cntr *cntr;
};
void hd_complete_now(struct hd_ep *ep, const struct hd_done *d);

/*
 * hd_op_complete: one of the endpoint's operations has ended like this, err 0 or a positive errno: complete and count it. hd_op_complete_work: the
 * same of one with HD_SEND_WORK.
 */
struct hd_ended {
	void *ctx;
	uint64_t len, tag;
	uint32_t flags, cqe_flags; /* enum hd_send_flag, enum hd_cqe_flag */
	int err;
	struct hd_cntr *cntr;
};
void hd_op_complete(struct hd_ep *ep, const struct hd_ended *how);
void hd_op_complete_work(struct hd_ep *ep, const struct hd_ended *how);
/* hd_op_gate: a write that is under way: messages of its endpoint wait until it is done, where HD_EP_SAW says so. Once is enough. */
void hd_op_gate(struct hd_op *op);

/* hd_send_wire: what the flags of a send (enum hd_send_flag) are in a header. */
static inline uint8_t hd_send_wire(uint32_t flags)
{
	static_assert(HD_SEND_TAKE_BACK >> 8 == HD_PKT_F_INVALIDATE, "one shift");

	return (uint8_t)((flags & HD_SEND_WIRE) | (flags & HD_SEND_TAKE_BACK) >> 8);
}

/* hd_op_header: the head of a packet of this kind about it. */
void hd_op_header(const struct hd_op *op, uint8_t kind, struct hd_pkt *pkt);

/* hd_op_enqueue: one that cannot start yet is to, in its turn: `push` of link/observers.h. */
void hd_op_enqueue(struct hd_peer *peer, struct hd_op *op);

/* hd_op_free: forget an operation that is in no list any more: one of ours, or a peer's that is not a message. */
void hd_op_free(struct hd_op *op);

/* hd_op_copy: take the payload over, so that the caller's buffer is free: inject while nothing can be sent. 0 or -ENOMEM. */
int hd_op_copy(struct hd_op *op);

/*
 * hd_op_done: an operation has ended, err 0 or a positive errno: completes it as asked for and frees it. It may be in any state
 * but HD_OP_QUEUED (whoever takes it out of that queue sets another).
 */
void hd_op_done(struct hd_op *op, int err);

/* hd_op_abandon: the endpoint closes: end the operation without a completion. */
void hd_op_abandon(struct hd_op *op);

/* hd_op_stop: the same for one of ours in any state, also while what it reads comes in. */
void hd_op_stop(struct hd_op *op);

/* hd_op_cancel: the endpoint is connected no longer: end the operation in error, a positive errno. */
void hd_op_cancel(struct hd_op *op, int err);

/*
 * message_out.c. hd_message_start: send what opens the protocol of a message that has nothing to wait for: whole, or announced. 0: under way, or done and
 * freed already; -EAGAIN: nothing has happened, try again; -ENOTCONN: the link has just broken, -ENOMEM: likewise nothing has happened. The
 * destination is bound. hd_op_announce: the same, announced however short it is.
 */
int hd_message_start(struct hd_op *op);
int hd_op_announce(struct hd_op *op);

/* hd_op_answered: ACK or FIN for one of our operations. Negative: not one that could be answered now. */
int hd_op_answered(struct hd_link *link, const struct hd_pkt *pkt);

#endif
