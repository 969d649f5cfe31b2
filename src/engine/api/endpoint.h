/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Endpoints, and whom they reach. Rules that hold for all calls: engine.h. */
#ifndef HD_ENGINE_API_ENDPOINT_H
#define HD_ENGINE_API_ENDPOINT_H

#include "engine/api/types.h"

/* ---- destinations ---------------------------------------------------------------------------- */

/*
 * hd_dest_get: the destination named by a socket address (AF_INET or AF_INET6), made or referenced;
 * nothing is sent yet. -EINVAL for another family, a port of 0 or a wildcard address. hd_dest_put
 * gives the reference back.
 * hd_dest_get_keyed: the endpoint there that has this authorization key; 0: that
 * has none, as hd_dest_get.
 * hd_dest_id: a small dense number, the same for the life of the destination,
 * as in hd_cqe.src; never 0.
 *
 * Endpoints that share a port differ in the slot of their names (hd_ep_attr.beside).
 * hd_name_set_slot writes one, below 65536, into a socket address, where the kernel looks past it;
 * hd_name_slot reads it: 0 where none was written. The port must be there already.
 */
void hd_name_set_slot(struct sockaddr *name, uint32_t slot);
uint32_t hd_name_slot(const struct sockaddr *name);

int hd_dest_get(struct hd_node *node, const struct sockaddr *name, struct hd_dest **out);
int hd_dest_get_keyed(struct hd_node *node, const struct sockaddr *name, uint64_t key, struct hd_dest **out);
void hd_dest_put(struct hd_dest *dest);
uint32_t hd_dest_id(const struct hd_dest *dest);

/*
 * hd_dest_holder: on the kernel's word, which process is at the other end of the link to this
 * destination (base/proc.h). 0; -ENOTCONN: there is no link; -EOPNOTSUPP: that cannot be known,
 * or it is another host's.
 */
struct hd_holder;
int hd_dest_holder(const struct hd_dest *dest, struct hd_holder *out);

/*
 * hd_source_next: who has been called by several names has several numbers, and hd_cqe.src is one
 * of them: the next one of the endpoint that has this one, in a walk that begins with zeros; 0: it
 * has no more. With the node's lock until the walk is over.
 */
struct hd_source_walk {
	const struct hd_dest *first, *at;
	unsigned former; /* of `at`, how many of those that it had before have been told */
	bool begun;
};
uint32_t hd_source_next(const struct hd_node *node, uint32_t src, struct hd_source_walk *walk);

/*
 * hd_source_name: a name of this family (AF_UNSPEC: any) by which the sender that hd_cqe.src tells
 * of can be called. -ENOENT.
 */
int hd_source_name(struct hd_node *node, uint32_t src, int family, struct sockaddr_storage *out);

/*
 * hd_dest_follow: fn is called with 0 when the destination is bound to an endpoint, with a negative
 * errno when it cannot be, or is no longer: that endpoint has closed, or its node is gone. It is
 * the front's memory, and the destination is referenced, until hd_dest_unfollow, which fn may call
 * for itself. fn has the node's lock, out of the middle of the engine: it may post nothing (see
 * hd_deferred_post).
 */
struct hd_follow {
	void (*fn)(struct hd_follow *follow, int err);
	LIST_ENTRY(hd_follow) entry; /* the engine's */
	/* likewise: it has come since the call was made that is under way */
	bool late;
};
void hd_dest_follow(struct hd_dest *dest, struct hd_follow *follow);
void hd_dest_unfollow(struct hd_dest *dest, struct hd_follow *follow);

/* ---- authorization keys ---------------------------------------------------------------------- */

/*
 * Only endpoints with a key in common exchange anything, and those without a key only among
 * themselves: what is sent to an endpoint without the key completes with HD_S_ACCESS. The engine
 * knows keys by their digests, which also travel.
 *
 * hd_key_digest: what stands for a key; never 0. Any thread, no lock.
 * hd_key_sources: what stands for all endpoints with this key in hd_recv_args.src, at endpoints
 * with HD_EP_BY_KEY; the node's, valid until it closes. NULL: no memory.
 * hd_ep_aliases, hd_ep_alias_at: an endpoint with several keys has so many endpoints of the engine
 * behind it, one for each key, the first of which is itself. Completions name their indexes.
 */
uint64_t hd_key_digest(const void *key, size_t size);
const struct hd_dest *hd_key_sources(struct hd_node *node, uint64_t key);
uint32_t hd_ep_aliases(const struct hd_ep *ep);
struct hd_ep *hd_ep_alias_at(struct hd_ep *ep, uint32_t i);

/* ---- endpoints ------------------------------------------------------------------------------- */

enum hd_ep_type {
	HD_EP_RDM = 1, /* connectionless, reliable, in order between each two endpoints */
	HD_EP_MSG,     /* connected to one other, reliable, in order: see «Connections» */
	HD_EP_DGRAM,   /* connectionless, unreliable: HD_EP_DROP goes with it */
};

/* what the fronts differ in; those of queue pairs are told in docs/queue-pairs.md */
enum hd_ep_policy {
	HD_EP_DIRECTED = 1 << 0, /* receives may name their source */
	HD_EP_FENCE = 1 << 1,	 /* operations may be fenced: all of them carry HD_SEND_GATED */
	HD_EP_DROP = 1 << 2,	 /* unreliable: see «Unreliable endpoints» in docs/messages.md */
	/* messages are handed over in the engine's memory: «Buffered receives» */
	HD_EP_BUFFERED = 1 << 3,
	HD_EP_VARIABLE = 1 << 4, /* messages may be longer than HD_MAX_MSG */
	/* with HD_EP_DIRECTED: receives may name a key instead, hd_key_sources */
	HD_EP_BY_KEY = 1 << 5,
	HD_EP_REMOTE_READ = 1 << 8,  /* others may read through it what regions allow */
	HD_EP_REMOTE_WRITE = 1 << 9, /* the same for writing */
	HD_EP_SAW = 1 << 10,	     /* its messages do not overtake its writes */
	HD_EP_IMM_RECV = 1 << 11,    /* a write with immediate data consumes one of its receives */
	HD_EP_WAS = 1 << 12,	     /* its one-sided operations do not overtake its messages */
	/* what it sends to one endpoint completes in order: all carries HD_SEND_ORDERED */
	HD_EP_TX_ORDERED = 1 << 13,
	HD_EP_SAR = 1 << 14, /* its messages do not overtake its reads */
	/* its one-sided operations find memory in their order, whatever their length */
	HD_EP_RMA_WHOLE = 1 << 15,
	/* nobody can call it: it only sends, or posts receives for others of its queue */
	HD_EP_NAMELESS = 1 << 16,
	/* receives without HD_RECV_COMPLETE complete silently; see HD_RECV_SHARED */
	HD_EP_RX_SELECTIVE = 1 << 17,
	/* its name is a port, even where descriptors are short: others will stand beside it */
	HD_EP_OWN_PORT = 1 << 18,
	/* queue pairs: see «Queue pairs» below */
	/* it shares ports with others, and its name fits 24 bits: hd_ep_number */
	HD_EP_NUMBERED = 1 << 20,
	/* talks with one other endpoint: hd_ep_pair; with HD_EP_DROP unreliably */
	HD_EP_PAIRED = 1 << 21,
	/* an error of either end's doing fails the endpoint: hd_ep_fail */
	HD_EP_STRICT = 1 << 22,
	HD_EP_REMOTE_ATOMIC = 1 << 23, /* paired: others may change through it what regions allow */
	/* paired: each of its messages names the queue that it is for: «Named queues» */
	HD_EP_XRC = 1 << 24,
	HD_EP_XRC_QUEUE = 1 << 25,    /* the queue that it posts to can be named by its number */
	HD_EP_REMOTE_FLUSH = 1 << 26, /* paired: others may flush through it what regions allow */
};

struct hd_ep_cntrs { /* any may be NULL */
	struct hd_cntr *send, *recv, *read, *write;
	/* what others have done through this endpoint */
	struct hd_cntr *remote_read, *remote_write;
};

/*
 * Buffered receives, fi_msg(3). owner: what handles of untagged messages name. limit: messages up
 * to so many bytes are handed over whole, at most HD_BUFFERED_MAX; min: of longer ones so many
 * bytes at least, no more than that.
 */
#define HD_BUFFERED_MAX (1u << 20)
struct hd_buffered_attr {
	void *owner;
	uint32_t limit, min;
};

/* Whose message is being received. */
struct hd_sender {
	uint32_t number;	     /* hd_ep_number; 0: not known */
	const struct sockaddr *addr; /* where it is; the port means nothing. NULL: not known */
	/* all addresses of its node that are known, those of IPv4 mapped: so many */
	const uint8_t (*addrs)[16];
	unsigned addr_count;
	void *group; /* hd_group_attr.owner, of what came to a group; else NULL */
	/* of a datagram: what its sender says for the header in front */
	struct hd_pkt_grh grh;
};

struct hd_question;

struct hd_ep_attr {
	enum hd_ep_type type;
	uint32_t policy;
	uint32_t tx_size;    /* operations under way at most; 0: default */
	struct hd_cq *tx_cq; /* may be NULL: then completions are only counted */
	struct hd_cq *rx_cq; /* likewise */
	struct hd_rq *rq;    /* NULL: one of its own */
	struct hd_txq *txq;  /* NULL: one of its own, of tx_size */
	/*
	 * An endpoint of this node, which outlives the new one. Its name is the new one's too, but
	 * for the slot; or, for a nameless one, messages come from there.
	 */
	struct hd_ep *beside;
	uint32_t slot;
	struct hd_ep_cntrs cntrs;
	/* where to listen; NULL or port 0: HEDDLE_ADDR, HEDDLE_PORTS */
	const struct sockaddr *bind;
	/* hd_bound_hold: where it listens instead; NULL: nowhere else */
	struct hd_bound_port *held;
	/* HD_EP_BUFFERED with a queue of its own; nothing is told before it has a rx_cq */
	struct hd_buffered_attr buffered;
	/* multi-receive buffers are released when less than this is left */
	uint64_t min_multi_recv;
	uint32_t pd; /* protection domain: regions of another are not reached through it; 0: none */
	/* HD_EP_XRC, HD_EP_XRC_QUEUE: who is of another does not find the queue; 0: nobody does */
	uint64_t domain;
	/* HD_EP_NUMBERED with HD_EP_DROP: bytes that are left free before each message */
	uint32_t head;
	/*
	 * writes them, `head` bytes, with the node's lock; returns hd_cqe.tag of the
	 * completion. NULL: nobody does.
	 */
	uint64_t (*head_fill)(void *owner, const struct hd_sender *from, void *at);
	struct hd_evq *evq; /* where its events go; bound until hd_ep_close */
	/*
	 * takes the events of an endpoint that is not HD_EP_MSG, with the node's lock, out of the
	 * middle of the engine: it may post nothing
	 */
	void (*tell)(void *owner, uint32_t code, int err);
	void *owner; /* hd_event.owner of its events */
	/*
	 * Its authorization keys; copied. Several only where it is connectionless; then, and
	 * wherever it may be given a destination with a key that it has not got, all its sends and
	 * one-sided operations carry HD_SEND_KEYED: they go by the key of their destination, and
	 * are answered by -EACCES when it is none of these. One beside another has keys of that one
	 * only, else hd_ep_open answers -EINVAL.
	 */
	const uint64_t *keys;
	uint32_t key_count;
	/*
	 * HD_EP_NUMBERED: answers what other endpoints ask, see «Questions»; NULL: all of it is
	 * refused with ECONNREFUSED
	 */
	int (*asked)(void *owner, const struct hd_question *q);
	/*
	 * HD_EP_XRC: a request names a queue that this node does not have, see
	 * hd_ep_proxy; NULL: it is refused
	 */
	void (*stray)(void *owner, uint32_t number);
	struct hd_ep *main; /* the engine's: the endpoint that this is an alias of */
};

/*
 * hd_ep_open: enable an endpoint: it listens, has a name, may send and receive. -EADDRINUSE,
 * -EADDRNOTAVAIL, -EMFILE, -ENOMEM. (A front keeps what the program binds and sets until its enable
 * call.) The CQs and counters are bound until hd_ep_close.
 * hd_ep_close: cancels everything posted without completions, frees; peers are told.
 * hd_ep_rebind: cancels everything posted without completions; what waits for it stays, and policy,
 * CQs, counters and min_multi_recv are those in *attr from now on.
 */
int hd_ep_open(struct hd_node *node, const struct hd_ep_attr *attr, struct hd_ep **out);
void hd_ep_close(struct hd_ep *ep);

/*
 * hd_ep_settle: before hd_ep_close, hd_ep_rebind, hd_ep_fail and hd_ep_reset, from a call of the
 * program's, never from an upcall: a process that has been stopped in the middle of a copy to
 * memory of this endpoint's receives may write there when it goes on, so it is waited for, and the
 * log says for whom. The node's lock, which the caller has once, is given away meanwhile. Those
 * four would wait too, but with the lock. One of them has to follow, before the lock is given back.
 */
void hd_ep_settle(struct hd_ep *ep);

/*
 * hd_ep_send_off: before hd_ep_settle of an endpoint that is closed, from a call of the program's:
 * no completion says of an injected message whether it has left, so those that wait for a link
 * which is being made leave first, or are lost with the call for it. Makes turns, between which the
 * node's lock, which the caller has once, is given away.
 */
void hd_ep_send_off(struct hd_ep *ep);
void hd_ep_rebind(struct hd_ep *ep, const struct hd_ep_attr *attr);
uint32_t hd_ep_index(const struct hd_ep *ep);
/*
 * hd_ep_tx_left: operations that may be posted before the bound is reached. hd_ep_tx_idle: has all
 * that was posted ended? With the lock; of a queue pair it may complete what has been accepted.
 * hd_ep_posted: receives that wait in its queue.
 */
uint32_t hd_ep_tx_left(const struct hd_ep *ep);
bool hd_ep_tx_idle(struct hd_ep *ep);
size_t hd_ep_posted(const struct hd_ep *ep);
/* no two endpoints that this process ever opens have the same */
uint64_t hd_ep_serial(const struct hd_ep *ep);
void hd_ep_set_min_multi_recv(struct hd_ep *ep, uint64_t bytes);

/*
 * hd_ep_set_kept: from now on its program cannot send until the other end's has read, or can: of a
 * front that has credit of its own. For people who look (view.h); nothing else depends on it.
 */
void hd_ep_set_kept(struct hd_ep *ep, bool is_kept);
/*
 * hd_ep_add_cntrs: from now on it counts with these too, where it has had none of the kind.
 * hd_ep_set_txq: what it sends is bounded by this queue from now on; -EBUSY while something is
 * under way. Both are bound until hd_ep_close.
 */
void hd_ep_add_cntrs(struct hd_ep *ep, const struct hd_ep_cntrs *cntrs);
int hd_ep_set_txq(struct hd_ep *ep, struct hd_txq *txq);

/*
 * hd_ep_name: the best name by which others reach it. family AF_UNSPEC, AF_INET or AF_INET6;
 * -EAFNOSUPPORT. -ENOENT: it is nameless. When listening takes too many of the process's
 * descriptors, names have a slot: the whole socket address is the name.
 */
int hd_ep_name(const struct hd_ep *ep, int family, struct sockaddr_storage *out);

/* hd_ep_is_named: is this one of the names by which it is called? */
bool hd_ep_is_named(const struct hd_ep *ep, const struct sockaddr *name);

/*
 * hd_bound_hold: where an endpoint is to listen that is not open yet: nobody else gets that port,
 * and who calls it is refused. bind: as in struct hd_ep_attr, whose `held` it may be then. Answers
 * as hd_ep_open. hd_bound_drop: it is held no longer; an endpoint that listens there goes on.
 * hd_bound_name: as hd_ep_name, of this slot.
 */
struct hd_bound_port;
int hd_bound_hold(struct hd_node *node, const struct sockaddr *bind, struct hd_bound_port **out);
void hd_bound_drop(struct hd_bound_port *held);
int hd_bound_name(const struct hd_bound_port *bound, uint32_t slot, int family, struct sockaddr_storage *out);

#endif
