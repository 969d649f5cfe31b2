/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Sending, to one and to groups. Rules that hold for all calls: engine.h. */
#ifndef HD_ENGINE_API_SEND_H
#define HD_ENGINE_API_SEND_H

#include "engine/api/types.h"

/* ---- sending --------------------------------------------------------------------------------- */

enum hd_send_flag {
	HD_SEND_TAGGED = 1 << 0, /* must equal HD_PKT_F_TAGGED */
	HD_SEND_IMM = 1 << 1,	 /* must equal HD_PKT_F_IMM */
	/*
	 * must equal HD_PKT_F_ACK: completes once matched and delivered (or
	 * discarded) at the target
	 */
	HD_SEND_ACKED = 1 << 2,
	HD_SEND_SOLICITED = 1 << 3, /* must equal HD_PKT_F_SOLICITED */
	/*
	 * must equal HD_PKT_F_DELIVERED: completes once it is at the target
	 * endpoint, matched or not
	 */
	HD_SEND_DELIVERED = 1 << 6,
	HD_SEND_COMPLETE = 1 << 4, /* write a completion on success; errors always complete */
	HD_SEND_INJECT = 1 << 5,   /* the buffer is free on return; len at most HD_MAX_INJECT */
	/*
	 * HD_SEND_GATED: set on every operation of an endpoint with HD_EP_FENCE, whatever its kind,
	 * and on no other. HD_SEND_FENCE, with it: this operation and those after it to the same
	 * remote endpoint wait until all before it are complete (fi_msg(3)).
	 */
	HD_SEND_FENCE = 1 << 7,
	HD_SEND_GATED = 1 << 8,
	HD_SEND_WORK = 1 << 9,	 /* ctx is a struct hd_work */
	HD_SEND_KEYED = 1 << 10, /* its endpoint has several keys */
	/* set on every operation of an endpoint with HD_EP_TX_ORDERED, and on no other */
	HD_SEND_ORDERED = 1 << 11,
	/*
	 * paired endpoints, with IMM: imm is the key of a window of the other end, which takes
	 * it back: «Memory windows»
	 */
	HD_SEND_TAKE_BACK = 1 << 12,
	/*
	 * With INJECT, and nothing that tells of its end: it is not kept until its destination is
	 * reached, for the program may not come back to make progress: -EAGAIN, and the destination
	 * is called. One that could not be reached has been called in vain: then it is kept, and
	 * its error told.
	 */
	HD_SEND_TRY = 1 << 13,
};

/*
 * Work: an operation whose end is told to whoever posted it, instead of a CQ and the endpoint's
 * counters. done is called once, with the node's lock held, out of the middle of the engine, with a
 * small send before hd_send returns: it may write completions and count, and free the work, but
 * post nothing. What is to go on from there goes on by hd_deferred_post. An endpoint that has
 * nothing else needs no CQ. *e has no ctx. It is not called for what an endpoint has under way when
 * it is closed.
 */
struct hd_work {
	void (*done)(struct hd_work *work, const struct hd_cqe *e);
};

/*
 * hd_send: send one contiguous message. 0: accepted, completes as flags say (small messages before
 * the call returns); -EAGAIN: no room, make progress and try again; nothing was posted. Other
 * negative: refused, nothing was posted. The front has checked sizes.
 * hd_sendv: the same with segments (count at most HD_MAX_IOV).
 */
int hd_send(struct hd_ep *ep, struct hd_dest *dest, const void *buf, size_t len, uint64_t tag, uint64_t imm,
	    void *ctx, uint32_t flags);
int hd_sendv(struct hd_ep *ep, struct hd_dest *dest, const struct iovec *iov, int count, uint64_t tag,
	     uint64_t imm, void *ctx, uint32_t flags);

/* ---- groups ---------------------------------------------------------------------------------- */

enum hd_group_how {
	HD_GROUP_SEND = 1 << 0,
	HD_GROUP_RECV = 1 << 1
};

/*
 * hd_group_join: the endpoint becomes a member of the multicast group at this address and port, by
 * IP, on the interfaces that its own name has. -EINVAL: no such address; -EADDRNOTAVAIL: no
 * interface of that family; -E2BIG: it has more than 64 keys; -ENODEV, -EMFILE, … Members receive,
 * as well as others, what they send themselves; and what is sent by whoever has one of their keys,
 * once. hd_group_leave: before hd_ep_close.
 */
struct hd_group_attr {
	const struct sockaddr *addr;
	unsigned how; /* enum hd_group_how */
	/* an address of this host: that interface only; NULL: all of the endpoint's name */
	const struct sockaddr *from;
	uint64_t word; /* tells groups at one address apart: members hear those who have the same */
	bool not_own;  /* what the endpoint itself sends it does not hear */
	void *owner;   /* hd_sender.group */
};
int hd_group_join(struct hd_ep *ep, const struct hd_group_attr *attr, struct hd_group **out);
void hd_group_leave(struct hd_group *group);

/*
 * hd_group_send: to all members, unreliable even where the endpoint is not: it goes or is lost, has
 * completed when the call returns, and is dropped by members that have nothing posted for it. At
 * most HD_MAX_DGRAM bytes. 0, or -EAGAIN when the CQ is full.
 */
struct hd_group_args {
	const struct iovec *iov;
	int count;
	uint64_t imm;	       /* of a queue pair: the lower 32 bits travel */
	uint32_t qkey;	       /* of a queue pair, as what follows */
	struct hd_pkt_grh grh; /* but for the mark */
	uint64_t tag;	       /* hd_cqe.tag of the completion */
	void *ctx;
	/* enum hd_send_flag: IMM, SOLICITED, COMPLETE, WORK; the others mean nothing here */
	uint32_t flags;
};
int hd_group_send(struct hd_group *group, const struct hd_group_args *args);

#endif
