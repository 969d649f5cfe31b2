/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * An endpoint, and what the data calls of msg.c, tagged.c and rma.c share. Everything that flags
 * and attributes decide is worked out when the endpoint is enabled or changed, so that a send is:
 * compare the length, load the destination, call the engine.
 */
#ifndef HEDDLE_FRONT_OFI_EP_H
#define HEDDLE_FRONT_OFI_EP_H

#include "front/ofi/av.h"

struct hd_fi_mc;   /* mc.c */
struct hd_fi_coll; /* coll/group.h */

/* How one direction is bound. */
struct hd_fi_dir {
	struct hd_fi_cq *cq;
	bool selective;	   /* FI_SELECTIVE_COMPLETION */
	uint64_t op_flags; /* defaults of calls without flags */
	uint64_t caps;	   /* FI_MSG, FI_TAGGED and others, of this direction */
};

enum hd_fi_cntr_kind {
	HD_FI_CNTR_SEND,
	HD_FI_CNTR_RECV,
	HD_FI_CNTR_READ,
	HD_FI_CNTR_WRITE,
	HD_FI_CNTR_REMOTE_READ,
	HD_FI_CNTR_REMOTE_WRITE,
	HD_FI_CNTR_KINDS
};

/* The authorization keys of an endpoint; see auth.h. */
struct hd_fi_auth {
	uint64_t own; /* hd_key_digest() of its key, or its domain's; 0: none */
	/* FI_AV_AUTH_KEY: those that it was enabled with, and their digests */
	struct hd_fi_key **keys;
	uint64_t *digests;
	uint32_t count;
};

/* What there is a longest one of: as in the options of fi_endpoint(3). */
enum hd_fi_limit {
	HD_FI_OF_MSG,
	HD_FI_OF_TAGGED,
	HD_FI_OF_RMA,
	HD_FI_OF_ATOMIC,
	HD_FI_LIMITS
};

/* What calls of data go by; hd_fi_ep_settle works it out. An alias has one of its own. */
struct hd_fi_calls {
	fi_addr_t addr_mask; /* all ones; FI_EP_MSG: 0, so that any address means the other end */
	struct {
		uint64_t send, inject; /* bytes at most, of calls without flags, and injected */
	} max[HD_FI_LIMITS];
	uint32_t send_flags; /* enum hd_send_flag, of calls without flags */
	uint32_t read_flags; /* the same for reads of remote memory */
	uint32_t levels;     /* enum hd_send_flag: completion levels that the engine is told of */
	/* HD_SEND_GATED where FI_FENCE may be used, HD_SEND_ORDERED; in all of them */
	uint32_t gate;
	/*
	 * of fi_inject and its like: gate, HD_SEND_INJECT, HD_SEND_TRY where the
	 * program makes all progress
	 */
	uint32_t inject_flags;
	uint32_t recv_flags; /* enum hd_recv_flag, the same for untagged receives */
	uint32_t trecv_flags;
	uint8_t directed; /* receives name their source: enum hd_fi_directed */
	bool tx_always;	  /* every send completes, whatever its flags */
	bool rx_always;
	bool buffered;	  /* FI_BUFFERED_RECV or FI_VARIABLE_MSG: receiving is in buffered.c */
	bool rx_asks;	  /* receives complete when FI_COMPLETION asks for it */
	uint32_t rx_base; /* enum hd_recv_flag of every receive */
	bool peek_copies; /* the CQ's format has a place to say so */
	/* bytes of one call at most, but where it is injected */
	uint64_t longest[HD_FI_LIMITS];
};

/* What has been bound to it: bind.c. */
struct hd_fi_bound {
	struct hd_fi_dir tx, rx;
	struct hd_fi_cntr *cntrs[HD_FI_CNTR_KINDS]; /* by enum hd_fi_cntr_kind */
	struct hd_fi_eq *eq;
};

/* What its info and its options say: hd_fi_ep_take_info, options.c. */
struct hd_fi_ep_attr {
	/* what fi_setopt may make of those limits of calls: as the info has it */
	struct {
		uint64_t longest[HD_FI_LIMITS], inject;
	} most;
	size_t prefix;	   /* FI_MSG_PREFIX: bytes in front of every message */
	uint64_t tx_order; /* FI_ORDER_SAS … */
	bool tx_strict;	   /* comp_order */
	bool rma_whole;	   /* max_order_raw_size and its like are more than is offered */
	uint32_t rx_order; /* the same: enum hd_recv_flag */
	uint32_t tx_size, tx_iov, rx_iov, rma_iov;
	uint64_t min_multi_recv;
	uint32_t buffered_limit, buffered_min;
	size_t rx_size;
	bool has_addr;
	union hd_fi_addr addr; /* where to listen */
};

/* The groups that it has joined: mc.c. */
struct hd_fi_groups {
	/* FI_MULTICAST: of the endpoint, since receive contexts do not name it */
	bool may;
	struct hd_fi_mc **all; /* by slot; under the node's lock */
	uint32_t count;	       /* slots */
};

/* FI_EP_MSG: what it is connected to, cm.c. */
struct hd_fi_connected {
	struct hd_fi_av other; /* the other end, at index 0 */
	/* opened for a request: where that was called, which is its name */
	union hd_fi_addr called;
	struct fid *request; /* that it was opened for: see cm.h; NULL: none */
	uint64_t number;     /* of the request */
};

/* What it shares with others, or lets them share: ctx.h. */
struct hd_fi_sharing {
	_Atomic int users;	   /* aliases, endpoints that share it: they are closed before it */
	bool wants_srx, wants_stx; /* FI_SHARED_CONTEXT: must be bound */
	struct hd_fi_ep *srx;	   /* receive context that it shares */
	struct hd_fi_stx *stx;
	/* of a shared receive context */
	struct hd_rq *rq;
	int sharers;	 /* enabled endpoints */
	bool peek_plain; /* one of them has a CQ format without room for data */
};

/* Tables of its own, where one direction is not asked for. */
struct hd_fi_own_ops {
	struct fi_ops_msg msg;
	struct fi_ops_tagged tagged;
	struct fi_ops_rma rma;
};

struct hd_fi_ep {
	struct fid_ep fid;
	struct hd_ep *ep;    /* NULL until enabled */
	struct hd_fi_av *av; /* FI_EP_MSG: that of `connected` */
	struct hd_node *node;
	struct hd_fi_calls call;
	/* the rest is not for calls of data */
	uint32_t magic;
	struct hd_fi_domain *domain;
	const struct hd_fi_offer *offer; /* the row of its info */
	/* it has been given this name, and is not enabled: named.c; or NULL */
	struct hd_bound_port *named;
	struct hd_fi_ep_attr attr;
	struct hd_fi_bound bound;
	struct hd_fi_groups groups;
	struct hd_fi_connected *connected; /* NULL of other types; an alias has its endpoint's */
	struct hd_fi_sharing sharing;
	struct hd_fi_own_ops own;
	struct hd_fi_auth auth;
	/* calls that wait, work under way; under the node's lock */
	LIST_HEAD(, hd_fi_triggered) triggered;
	LIST_HEAD(, hd_fi_mr) regions; /* bound to it, under domain->lock */
	bool collective;	       /* FI_COLLECTIVE */
	/* what it has for that; NULL before fi_enable, and of contexts */
	struct hd_fi_coll *coll;
	struct hd_fi_ep *parent;		    /* alias: of whom */
	LIST_HEAD(hd_fi_aliases, hd_fi_ep) aliases; /* under the node's lock */
	LIST_ENTRY(hd_fi_ep) sibling;
	struct hd_fi_sep *sep; /* context: of whom */
	uint32_t index;	       /* context: which */
	struct hd_fi_object object;
};

/* hd_fi_ep_as: the endpoint behind a handle, whole or a context (ctx.h), or NULL. */
struct hd_fi_ep *hd_fi_ep_as(const void *handle);

/*
 * hd_fi_ep_settle works out the members for data calls from what is bound and set. Caller holds the
 * node's lock, or is alone.
 */
void hd_fi_ep_settle(struct hd_fi_ep *ep);

/* hd_fi_ep_recount: a counter has been bound to an enabled endpoint. */
void hd_fi_ep_recount(struct hd_fi_ep *ep);

/* hd_fi_ep_tables points fid.msg and fid.tagged where an enabled endpoint's calls go. */
void hd_fi_ep_tables(struct hd_fi_ep *ep);

/*
 * hd_fi_ep_bind is fi_ep_bind(3); hd_fi_ep_default_eq binds the domain's event queue, where there
 * is one, to an endpoint that is enabled and has none, as fi_domain(3) says; hd_fi_ep_unbind lets
 * go of everything bound, when the endpoint is closed (bind.c).
 */
int hd_fi_ep_bind(struct fid *fid, struct fid *bfid, uint64_t flags);
void hd_fi_ep_default_eq(struct hd_fi_ep *ep);
void hd_fi_ep_unbind(struct hd_fi_ep *ep);

extern struct fi_ops_ep hd_fi_ep_ops; /* options.c */
extern struct fi_ops_cm hd_fi_cm_ops; /* cm.c */

/* hd_fi_ep_connects tells whether it is an FI_EP_MSG. */
bool hd_fi_ep_connects(const struct hd_fi_ep *ep);

/* hd_fi_ep_request: the request for a connection that it was opened for, or NULL. */
HD_FI_INLINE struct fid *hd_fi_ep_request(const struct hd_fi_ep *ep)
{
	return ep->connected ? ep->connected->request : NULL;
}

/*
 * hd_fi_ep_dest: the destination that a data call means by an address, or NULL.
 * Caller holds the node's lock.
 */
HD_FI_INLINE struct hd_dest *hd_fi_ep_dest(const struct hd_fi_ep *ep, fi_addr_t addr)
{
	return hd_fi_av_dest(ep->av, addr & ep->call.addr_mask);
}

/* ---- what data calls share ------------------------------------------------------------------- */

/* One send of either kind; a constant at its call site but for what the program gave. */
struct hd_fi_send {
	const void *buf;
	size_t len;
	fi_addr_t dest;
	uint64_t tag, data;
	void *context;
	uint32_t flags; /* enum hd_send_flag */
};

/*
 * hd_fi_no_context: what an error names where the call takes no context,
 * fi_endpoint(3): the endpoint's own.
 */
HD_FI_INLINE void *hd_fi_no_context(const struct hd_fi_ep *ep)
{
	return ep->fid.fid.context;
}

/* hd_fi_post_far: the send to an address that is no plain index. Caller holds the node's lock. */
ssize_t hd_fi_post_far(struct hd_fi_ep *ep, const struct hd_fi_send *s);

HD_FI_INLINE ssize_t hd_fi_post_send(struct hd_fi_ep *ep, const struct hd_fi_send s, uint64_t max,
				     bool locked)
{
	struct hd_dest *dest;
	ssize_t rc;

	if (hd_fi_rare(s.len > max))
		return hd_fi_no(
			FI_EMSGSIZE,
			"a message longer than max_msg_size, or than inject_size where it is injected");
	if (hd_fi_rare(!s.buf && s.len))
		return hd_fi_no(FI_EINVAL, "a send of bytes from NULL");
	if (locked)
		hd_node_lock(ep->node);
	dest = hd_fi_av_near(ep->av, s.dest & ep->call.addr_mask);
	if (hd_fi_rare(!dest)) {
		const struct hd_fi_send copy =
			s; /* whose address is given away: s itself stays in registers */

		rc = hd_fi_post_far(ep, &copy);
	} else {
		rc = hd_send(ep->ep, dest, s.buf, s.len, s.tag, s.data, s.context, s.flags);
	}
	if (locked)
		hd_node_unlock(ep->node);
	return rc;
}

/*
 * hd_fi_injected: what an inject call has answered. Who only tries again makes a turn of
 * progress by that, as with libfabric's tcp: a link may have to be made first. Without the
 * lock where there is one.
 */
ssize_t hd_fi_inject_again(struct hd_fi_ep *ep);
HD_FI_INLINE ssize_t hd_fi_injected(struct hd_fi_ep *ep, ssize_t rc)
{
	return hd_fi_rare(rc == -FI_EAGAIN) ? hd_fi_inject_again(ep) : rc;
}

/*
 * hd_fi_prefix_step: the same segments without the prefix, which must lie in the first; at most
 * HD_MAX_IOV. 0 or -FI_EINVAL.
 */
int hd_fi_prefix_step(const struct iovec *iov, size_t count, struct iovec *out);

/* hd_fi_post_sendv: the same with segments. s.buf and s.len are not used. */
ssize_t hd_fi_post_sendv(struct hd_fi_ep *ep, const struct iovec *iov, size_t count,
			 const struct hd_fi_send *s, uint64_t max);

/*
 * hd_fi_post_sendv in two steps: what may be wrong with its arguments, 0 or the errno; and the
 * send. Caller holds the node's lock for the second.
 */
int hd_fi_check_sendv(const struct hd_fi_ep_attr *attr, const struct iovec *iov, size_t count, uint64_t max);
ssize_t hd_fi_start_sendv(struct hd_fi_ep *ep, const struct iovec *iov, size_t count,
			  const struct hd_fi_send *s);

/*
 * hd_fi_check_rma and hd_fi_post_rma are fi_writemsg and fi_readmsg of fi_rma(3) in two steps
 * (rma.c). flags: enum hd_send_flag. Not locked: the caller holds the node's lock.
 */
ssize_t hd_fi_check_rma(const struct hd_fi_ep *ep, const struct fi_msg_rma *msg, uint32_t flags);
ssize_t hd_fi_post_rma(struct hd_fi_ep *ep, const struct fi_msg_rma *msg, enum hd_rma_op op, uint32_t flags,
		       bool locked);

/* hd_fi_level translates completion levels: the strongest that is asked for. */
HD_FI_INLINE uint32_t hd_fi_level(uint64_t flags)
{
	if (flags & FI_MATCH_COMPLETE)
		return HD_SEND_ACKED;
	return flags & HD_FI_ARRIVED_LEVELS ? HD_SEND_DELIVERED : 0;
}

/* hd_fi_send_flags translates the flags of fi_sendmsg and fi_tsendmsg. 0 or -FI_EINVAL. */
int hd_fi_send_flags(const struct hd_fi_ep *ep, uint64_t flags, uint32_t *out);

HD_FI_INLINE uint64_t hd_fi_send_max(const struct hd_fi_calls *call, enum hd_fi_limit of, uint32_t flags)
{
	return flags & HD_SEND_INJECT ? call->max[of].inject : call->longest[of];
}

/*
 * hd_fi_ep_whole: the endpoint that this one is an alias of, or itself: it has
 * what an alias is a copy of.
 */
HD_FI_INLINE struct hd_fi_ep *hd_fi_ep_whole(struct hd_fi_ep *ep)
{
	return ep->parent ? ep->parent : ep;
}

/* hd_fi_recv_completes: how a receive with these flags completes, enum hd_recv_flag. */
HD_FI_INLINE uint32_t hd_fi_recv_completes(const struct hd_fi_calls *call, uint64_t flags)
{
	return call->rx_base |
	       (call->rx_always || (flags & FI_COMPLETION && call->rx_asks) ? HD_RECV_COMPLETE : 0);
}

/* One receive of either kind. */
struct hd_fi_recv {
	const struct iovec *iov;
	size_t count;
	fi_addr_t src;
	uint64_t tag, ignore;
	void *context;
	uint32_t flags; /* enum hd_recv_flag */
	bool by_key;	/* FI_AUTH_KEY: src is the address of a key */
};

/*
 * hd_fi_auth_source: where a receive with FI_AUTH_KEY is meant to come from: what stands for all
 * with the key at this address, NULL for any. -FI_EINVAL: no such key, or hd_fi_ep_by_key says no:
 * it is valid with FI_AV_AUTH_KEY and FI_DIRECTED_RECV alone, fi_msg(3). Caller holds the node's
 * lock (auth.c).
 */
int hd_fi_auth_source(const struct hd_fi_ep *ep, fi_addr_t src, const struct hd_dest **out);

static inline bool hd_fi_ep_by_key(const struct hd_fi_ep *ep)
{
	return ep->call.directed && ep->domain->av_keys;
}

/*
 * hd_fi_recv_source finds the destination that a receive is meant to come from: NULL for any.
 * -FI_EINVAL for an address that is not in the AV. by_key: as in struct hd_fi_recv; kind:
 * HD_FI_DIRECTED_*. Caller holds the node's lock.
 */
HD_FI_INLINE int hd_fi_recv_source(const struct hd_fi_ep *ep, fi_addr_t src, bool by_key, unsigned kind,
				   const struct hd_dest **out)
{
	if (by_key)
		return hd_fi_auth_source(ep, src, out);
	*out = NULL;
	if (!(ep->call.directed & kind))
		return 0;
	if (src == FI_ADDR_UNSPEC)
		return ep->call.directed & HD_FI_DIRECTED_EXACT
			       ? hd_fi_no(FI_EINVAL, "a receive from anybody, with FI_EXACT_DIRECTED_RECV")
			       : 0;
	*out = hd_fi_av_sender(ep->av, src);
	return *out ? 0 : hd_fi_no(FI_EINVAL, "a receive from an address that is not in the address vector");
}

HD_FI_INLINE unsigned hd_fi_recv_kind(uint32_t flags)
{
	return flags & HD_RECV_TAGGED ? HD_FI_DIRECTED_TAGGED : HD_FI_DIRECTED_MSG;
}

HD_FI_INLINE ssize_t hd_fi_post_recv(struct hd_fi_ep *ep, const struct hd_fi_recv r, bool locked)
{
	struct hd_recv_args args = { .iov = r.iov,
				     .count = (int)r.count,
				     .flags = r.flags,
				     .tag = r.tag,
				     .ignore = r.ignore,
				     .ctx = r.context };
	ssize_t rc;

	if (locked)
		hd_node_lock(ep->node);
	rc = hd_fi_recv_source(ep, r.src, r.by_key, hd_fi_recv_kind(r.flags), &args.src);
	if (!rc)
		rc = hd_recv(ep->ep, &args);
	if (locked)
		hd_node_unlock(ep->node);
	return rc;
}

/*
 * hd_fi_post_recvv: the same after checking the segments; none at all are one of no bytes.
 * hd_fi_check_recvv is the check: 0, or -FI_EINVAL.
 */
int hd_fi_check_recvv(const struct hd_fi_ep_attr *attr, struct hd_fi_recv *r);
ssize_t hd_fi_post_recvv(struct hd_fi_ep *ep, const struct hd_fi_recv *r);

/*
 * hd_fi_check_iov: 0, or -FI_EINVAL for segments that cannot be. hd_fi_check_room: those of a
 * receive. NULL is no place, so *count becomes that of the segments before the first one there:
 * programs post such buffers for messages without bytes, and longer ones are cut off.
 */
int hd_fi_check_iov(const struct iovec *iov, size_t count, size_t limit);
int hd_fi_check_room(const struct iovec *iov, size_t *count, size_t limit);

/* hd_fi_iov_total: the sum of the segments, or UINT64_MAX where it does not fit. */
uint64_t hd_fi_iov_total(const struct iovec *iov, size_t count);

/*
 * named.c. hd_fi_name_hold: this is where the endpoint will be called, and nobody else has it from
 * now on: a port that is 0 becomes one that is free. *was: where it was to be until now, if it has
 * a name. 0, or a negative fabric errno, and it keeps that. hd_fi_name_free, with the node's lock:
 * no longer, or it had none. hd_fi_name_tell: as fi_getname(3).
 */
int hd_fi_name_hold(const struct hd_fi_domain *domain, const union hd_fi_addr *was, union hd_fi_addr *addr,
		    struct hd_bound_port **named);
void hd_fi_name_free(struct hd_bound_port **named);
int hd_fi_name_tell(const struct hd_fi_domain *domain, const struct hd_bound_port *named, void *addr,
		    size_t *addrlen);

#endif
