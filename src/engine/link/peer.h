/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Other nodes between the engine's files. A peer is the other node: its id, the link in use, the
 * credit in both directions, and all that is under way with it. There is one peer for each other
 * node, and one link in use for each peer, whatever endpoints talk with each other.
 *
 *	SHAKING ── hd_peer_establish ──► LIVE ── hd_peer_fail ──► DEAD, and freed
 *	        └─ hd_peer_drop: the greeting came to nothing
 *
 * What is queued for a peer, in the order in which it leaves: `ctl`, answers and announcements,
 * which are lost only with the link; `queue`, operations that could not start; `stalled_sqs`, queue
 * pairs with something to send; `framing`, long messages, a frame each; and `direct_ops`, direct
 * RMA, which needs no packets. While one of them is not empty the peer is pushed in every turn
 * (hd_peer_busy). Where messages would overtake something their short way is shut (hd_peer_stall).
 *
 * A peer that ends is dead before anybody is told (link/observers.h): what was under way completes
 * in error, whole messages that wait stay, destinations become idle, and are connected anew by the
 * next send. docs/links.md tells the greeting.
 */
#ifndef HD_ENGINE_PEER_H
#define HD_ENGINE_PEER_H

#include "engine/core/core.h"
#include "engine/link/dest.h"
#include "engine/name/name.h"

#include <assert.h>
#include <stddef.h>

struct hd_held;
struct hd_msg;
struct hd_pending;
struct hd_share;
TAILQ_HEAD(hd_pending_list, hd_pending);

/* A packet that could not be sent at once and must not be lost: answers and announcements. */
#define HD_CTL_MAX (16u << 20) /* bytes that wait for a peer who takes nothing in */
struct hd_ctl {
	TAILQ_ENTRY(hd_ctl) entry;
	struct hd_pkt pkt;
	uint32_t len;
	uint32_t units; /* credit that the peer gets back when it has left */
	unsigned char data[];
};

#define HD_CTL_UNITS(len) \
	((uint32_t)((sizeof(struct hd_ctl) + (len) + HD_UNIT - 1) / HD_UNIT)) /* of a budget */

enum hd_peer_state {
	HD_PEER_SHAKING, /* HELLOs are under way */
	HD_PEER_LIVE,	 /* link is set */
	HD_PEER_DEAD,	 /* being taken apart */
};

/* What one endpoint of a peer is to us. */
struct hd_remote {
	uint32_t dest_id; /* 0: it has no name here */
	uint16_t gen;	  /* 0: not known */
	uint16_t gone;	  /* the last that has been closed; 0: none */
};

/* Credit in both directions: link/credit.h, which alone touches it. */
struct hd_credit {
	uint32_t spent; /* units that we have spent at the peer, cumulative */
	uint32_t limit; /* how far we may spend: newest grant seen */
	/* for every receive */
	uint32_t rx_spent;   /* units that the peer has spent here */
	uint32_t freed;	     /* of these, given back */
	uint32_t rx_granted; /* limit published last */
	uint32_t step;	     /* publish when this many units can be granted */
	uint32_t window;     /* units that may be held for this peer */
	uint32_t held;	     /* units of messages that wait */
};

/* Why a message may not go the short way: it must not overtake. See hd_peer_stall. */
enum hd_stall {
	HD_STALL_DOWN = 1 << 0,	   /* the peer is not live, or the node was forked */
	HD_STALL_ANSWERS = 1 << 1, /* peer->ctl is not empty */
	HD_STALL_QUEUED = 1 << 2,  /* peer->queue is not */
	HD_STALL_FENCE = 1 << 3,   /* peer->send_fences */
};

/* What rooms above keep of a peer and find again by a key: of_peer.h. */
enum hd_of_peer_kind {
	HD_OF_PEER_ASKED, /* cm's: struct hd_request, by the caller's endpoint and its generation */
	HD_OF_PEER_CALL,  /* the same, by that and the number of the call */
	HD_OF_PEER_HELD,  /* qp's: struct hd_queued, by the sender's endpoint */
	HD_OF_PEER_READ,  /* rma's: a read that is served, by its initiator's number for it */
	HD_OF_PEER_KINDS
};

/* Everything is link's, and written by it alone, where nothing else is said. */
struct hd_peer {
	/* for every send */
	struct hd_link *link;
	int64_t eager_max; /* payload bytes that may go at once; -1: the slow path decides */
	struct hd_credit credit;
	/* by the peer's endpoint index; their keys lie behind them: remotes.c */
	struct hd_remote *remotes;
	uint32_t remote_count;
	/* for every one-sided operation: xfer's */
	uint32_t requests;	      /* that were sent by packet, cumulative: counted by rma */
	struct hd_op_list direct_ops; /* HD_OP_DIRECT: one after the other for each endpoint */
	/* for every message: who sends or takes one counts it, for the last lines of the log */
	struct hd_traffic traffic;
	/* of `spent` and `requests`: what the peer is known to have taken in; see direct.c */
	uint32_t spent_taken, requests_taken;
	/* the rest */
	struct hd_far_remote *far; /* endpoints that are beyond the table */
	struct hd_node *node;
	struct hd_node_id id; /* with realm, as struct hd_peer_key */
	/* whose it is; what calls itself the same and is another's is another peer */
	uint64_t realm;
	/* of this node's peers: who keeps it knows this one again when it may be gone. Never 0 */
	uint64_t serial;
	/*
	 * the first link, which carried the HELLO, until one is in use; at the
	 * caller, until it is closed
	 */
	struct hd_link *shaking;
	struct hd_link *joining; /* the better link that is being tried */
	uint32_t eager_limit;	 /* what eager_max is while nothing stalls it */
	uint32_t dest_count;	 /* of `dests` */
	uint32_t ctl_bytes;	 /* of `ctl`: HD_CTL_MAX at most */
	/* xfer's: long writes and reads under way that close the short way: HD_EP_SAW, HD_EP_SAR */
	uint32_t send_fences;
	enum hd_peer_state state : 8;
	uint32_t stalled : 8; /* enum hd_stall */
	bool busy;	      /* in hd_core.pushing */
	bool initiator : 1;   /* of `shaking` */
	bool is_local : 1;
	bool crowds : 1;    /* hd_node_crowd counts it */
	bool is_sealed : 1; /* it has proved that it has the key of HEDDLE_KEY_FILE */
	bool ended : 1;	    /* its process is dead, whoever has the sockets */
	bool doubted : 1;   /* it has announced a name that is not believed without a call */
	bool exits : 1;	    /* hd_peer_exits */
	bool ran_out : 1;   /* credit's: there was not enough, and it has granted no more since */
	uint8_t addr_count;
	/* which of `addr` its first link comes from; has none: one that is all zero */
	uint8_t link_addr;
	uint32_t link_scope;	    /* hd_sockaddr_scope of where its first link comes from */
	struct hd_share *share;	    /* of what its address or user may have us keep: budget.h */
	struct hd_process *process; /* advert.c: the process is watched; NULL: it is not */
	struct hd_push push;	    /* while busy */
	TAILQ_HEAD(, hd_ctl) ctl;
	LIST_HEAD(, hd_overflow) owing; /* completions that wait, and hold its credit */
	LIST_HEAD(, hd_dest) dests;
	LIST_HEAD(, hd_dest) awaiting;
	UT_hash_handle hh;		/* hd_links.peers */
	struct hd_pending_list pending; /* everything under way */
	/* where its endpoints can be called */
	uint8_t addr[HD_HELLO_ADDRS + 3][16];
	LIST_HEAD(, hd_of_peer_list) keyed[HD_OF_PEER_KINDS]; /* of_peer.c */
	/* xfer's */
	TAILQ_HEAD(, hd_transfer) framing; /* HD_TRANSFER_FRAMES: take turns, a frame each */
	/* HD_OP_QUEUED: accepted, to be started in order; rdm starts them */
	struct hd_op_list queue;
	/* rq's */
	/*
	 * messages that wait, and hold its credit, of no endpoint that is known:
	 * others are in hd_dest.messages
	 */
	struct hd_ring kept;
	/* qp's */
	/* its requests that queue pairs of ours have not answered */
	LIST_HEAD(, hd_held) held_back;
	/* those with something to send for which there was no room */
	TAILQ_HEAD(, hd_qp) stalled_sqs;
	struct hd_timer silence; /* silence.c; goes with the peer */
};
/* How lines of the log name it: as `heddle info` does, by the beginning of its id. */
#define HD_PEER_ID "%08x"
#define HD_PEER_ID_OF(peer) ((unsigned)((peer)->id.word[0] >> 32))

/* What a peer is found by. */
struct hd_peer_key {
	struct hd_node_id id;
	uint64_t realm;
};
static_assert(offsetof(struct hd_peer, realm) ==
		      offsetof(struct hd_peer, id) + offsetof(struct hd_peer_key, realm),
	      "a peer is found by its id and realm");
static_assert(offsetof(struct hd_peer, remote_count) < 64, "what a send looks at takes more than a line");
static_assert(sizeof(struct hd_peer) <= 808, "a peer takes more memory");

/*
 * All that follows is called with the node's lock, and blocks nowhere; int results are 0 or a
 * negative errno where nothing else is said.
 */

/*
 * hd_remote_at: what is known of the peer's endpoint `index`; NULL: nothing. It stays there until
 * another becomes known. hd_remote_source: its hd_dest_id, 0: it has no name here. hd_remote_far:
 * of one that is beyond the table; hd_remote_far_key likewise.
 */
struct hd_remote *hd_remote_far(const struct hd_peer *peer, uint32_t index);
uint64_t hd_remote_far_key(const struct hd_peer *peer, uint32_t index);
static inline struct hd_remote *hd_remote_at(const struct hd_peer *peer, uint32_t index)
{
	return hd_likely(index < peer->remote_count) ? &peer->remotes[index] : hd_remote_far(peer, index);
}
static inline uint32_t hd_remote_source(const struct hd_peer *peer, uint32_t index)
{
	const struct hd_remote *remote = hd_remote_at(peer, index);

	return hd_likely(remote != NULL) ? remote->dest_id : 0;
}

/*
 * hd_remote_keys: the authorization keys of `remotes`, behind them, so that a source is
 * found as fast as without.
 */
static inline uint64_t *hd_remote_keys(const struct hd_peer *peer)
{
	static_assert(sizeof(struct hd_remote) % sizeof(uint64_t) == 0, "keys lie behind them");
	return (void *)(peer->remotes + peer->remote_count);
}

/*
 * hd_remote_key: the authorization key of the peer's endpoint `index`, 0: none, or it is not known.
 */
static inline uint64_t hd_remote_key(const struct hd_peer *peer, uint32_t index)
{
	return index < peer->remote_count ? hd_remote_keys(peer)[index] : hd_remote_far_key(peer, index);
}

/*
 * hd_ep_admits (link/admit.c): may endpoint `src` of this peer send messages to this endpoint,
 * which watches who does (hd_ep.watch)?
 */
bool hd_ep_admits(const struct hd_ep *ep, const struct hd_peer *peer, uint32_t src);

/*
 * hd_pkt_target: the endpoint that a message or one-sided operation is for; NULL: it is gone, or
 * takes none from this peer.
 */
static inline struct hd_ep *hd_pkt_target(const struct hd_link *link, const struct hd_pkt *pkt)
{
	struct hd_ep *ep = hd_pkt_named(link->node, pkt);

	return hd_unlikely(ep && ep->watch) && !hd_ep_admits(ep, link->peer, pkt->src) ? NULL : ep;
}

/* hd_pkt_source: hd_dest_id of the endpoint that sent a packet, 0 when it has no name here. */
static inline uint32_t hd_pkt_source(const struct hd_peer *peer, uint32_t index)
{
	return hd_remote_source(peer, index);
}

/* ---- peer.c ---- */

/*
 * hd_peers_past: adds to *past what has gone by this port to peers that are
 * there, and come from them.
 */
void hd_peers_past(const struct hd_port *port, struct hd_port_past *past);

/*
 * hd_peer_make: a peer that shakes hands over this link, NULL: ourselves, with its first window.
 * NULL: memory, or there is no room for it (budget.h). hd_peer_find: the one with this id in this
 * realm (base/realm.h), or NULL; hd_peer_of_ours: in that of this process's user.
 */
struct hd_peer *hd_peer_make(struct hd_node *node, const struct hd_node_id *id, const struct hd_link *link);
struct hd_peer *hd_peer_find(struct hd_node *node, const struct hd_node_id *id, uint64_t realm);
struct hd_peer *hd_peer_of_ours(struct hd_node *node, const struct hd_node_id *id);

/* hd_peer_drop: the greeting with this peer came to nothing. */
void hd_peer_drop(struct hd_peer *peer, int err);

/*
 * hd_peer_self: the peer that stands for this node itself, over the loop
 * transport; NULL without memory.
 */
struct hd_peer *hd_peer_self(struct hd_node *node);

/*
 * hd_peer_remote: make room for what is known of endpoint `index` of the peer.
 * Negative: out of range or memory.
 */
int hd_peer_remote(struct hd_peer *peer, uint32_t index);

/*
 * hd_remote_set_key: of one that there is room for. hd_remote_forget: it is no more; a destination
 * that is left leads to the next one of this index.
 * hd_remote_has_gone: this generation of it has been closed, though who was called has just said
 * that it listens: he said so before. hd_remotes_free: the peer goes.
 */
void hd_remote_set_key(struct hd_peer *peer, uint32_t index, uint64_t key);
void hd_remote_forget(struct hd_peer *peer, uint32_t index);
bool hd_remote_has_gone(const struct hd_peer *peer, uint32_t index, uint16_t gen);
void hd_remotes_free(struct hd_peer *peer);

/*
 * hd_peer_establish: the greeting is over: this link carries the data. The names of our endpoints
 * go first, then what waited.
 */
void hd_peer_establish(struct hd_peer *peer, struct hd_link *link);

/*
 * hd_peer_fail: the peer's link is down for good: everything under way completes in error (err
 * negative), waiting messages stay, destinations become idle. Frees the peer.
 */
void hd_peer_fail(struct hd_peer *peer, int err);

/*
 * hd_peer_answer: an answer or announcement: sent now, or kept until it can be. Lost only with the
 * link. The request's credit goes back when the answer has left, so that who takes no answers has
 * no more requests. Some cost no credit: who makes us say them and never reads loses the link.
 */
void hd_peer_answer(struct hd_peer *peer, const struct hd_pkt *pkt, const void *data, size_t len,
		    uint32_t units);

/*
 * hd_peer_send: the same for what no credit was spent on. hd_peer_forewarn: the same, and while
 * it is being greeted: then it is said as soon as the peer is live, before what is announced to
 * it, or the greeting fails.
 */
void hd_peer_send(struct hd_peer *peer, const struct hd_pkt *pkt, const void *data, size_t len);
void hd_peer_forewarn(struct hd_peer *peer, const struct hd_pkt *pkt);

/* hd_peer_busy: push what is queued for the peer in every turn until nothing is any more. */
void hd_peer_busy(struct hd_peer *peer);

/*
 * The short way of sends is open while nothing stalls it; hd_send and its like look at
 * peer->eager_max alone. hd_peer_stall: close it for this reason.
 * hd_peer_unstall: the reason is gone. Whoever owns what is waited for calls both; answers and
 * the queue are link's own.
 */
static inline void hd_peer_stall(struct hd_peer *peer, enum hd_stall why)
{
	peer->stalled |= why;
	peer->eager_max = -1;
}
static inline void hd_peer_unstall(struct hd_peer *peer, enum hd_stall why)
{
	peer->stalled &= ~(uint32_t)why;
	if (!peer->stalled)
		peer->eager_max = (int64_t)peer->eager_limit;
}

/*
 * hd_peer_settle: operations have been taken out of hd_peer.queue otherwise than by
 * `push` of link/observers.h.
 */
void hd_peer_settle(struct hd_peer *peer);

/*
 * hd_peer_check (check.c): asserts in builds with assertions that what stalls it, what is queued
 * and what it owes agree, and its credit.
 */
#ifdef NDEBUG
static inline void hd_peer_check(const struct hd_peer *peer)
{
}
#else
void hd_peer_check(const struct hd_peer *peer);
#endif

/*
 * hd_peer_inspect: how it stands with a peer, for tests and for who wants to show it. All
 * amounts are units of credit.
 */
struct hd_peer_view {
	enum hd_peer_state state;
	uint32_t stalled; /* enum hd_stall */
	uint32_t pending; /* answers that are awaited */
	uint32_t answers; /* and those that wait for room in the link */
	uint32_t left;	  /* what we may spend there by the newest grant that we have seen */
	/*
	 * what it has spent here and not got back: of messages that wait, and of what is under way
	 */
	uint32_t taken_in;
	uint32_t held;	      /* of this, messages that wait */
	uint32_t window;      /* what may wait here for it */
	int64_t eager;	      /* payload bytes that may go at once; -1: nothing may */
	uint32_t eager_limit; /* the same while nothing stalls it */
	uint32_t send_fences; /* long writes and reads that messages must not overtake */
	bool queued;	      /* operations wait to be started */
	bool framing;	      /* long messages leave, a frame each */
	bool direct;	      /* direct RMA is under way */
};
struct hd_peer_view hd_peer_inspect(const struct hd_peer *peer);

/*
 * hd_peer_has_left: it has closed each endpoint that it had told of, so that a link that ends does
 * so in order.
 */
bool hd_peer_has_left(const struct hd_peer *peer);

/*
 * hd_peers_leave: this process ends in order, with what the program has left open: tell who is
 * live. hd_peer_exits: a peer has told so: the end of its link is no fault. It may still be
 * sending.
 */
void hd_peers_leave(struct hd_node *node);
void hd_peer_exits(struct hd_peer *peer);

/* hd_peer_announce: tell the peer the names of our endpoints, of all or of one. */
void hd_peer_announce(struct hd_peer *peer, const struct hd_ep *only);

/* hd_ep_describe: what others have to know of an endpoint to call it. */
void hd_ep_describe(const struct hd_ep *ep, struct hd_announce *out);

/* hd_remote_gen: the generation of the peer's endpoint `index`; 0: not known. */
static inline uint16_t hd_remote_gen(const struct hd_peer *peer, uint32_t index)
{
	const struct hd_remote *remote = hd_remote_at(peer, index);

	return remote ? remote->gen : 0;
}

/* ---- owed.c ---- */

/*
 * hd_owed_post: post a completion that uses up nothing of the program's, so that only the peer's
 * credit bounds how many there are. True: it waits beside the ring and has taken over these units,
 * which go back when it is read. hd_owed_forget: the peer goes; it is owed nothing.
 */
bool hd_owed_post(struct hd_cq *cq, const struct hd_cqe *e, struct hd_peer *peer, uint32_t units);
void hd_owed_forget(struct hd_peer *peer);

/* ---- advert.c ---- */

/*
 * hd_adverts_write: the adverts of our own HELLO, of HD_HELLO_ADVERT bytes at most; returns their
 * length. hd_advert_find: the first of our transports that this HELLO advertises and that may carry
 * data, with its advert, which lies in the HELLO; NULL: none.
 *
 * hd_process_watch: the peer whose HELLO this is is on this host, perhaps: have its links orphaned
 * when its process is dead. Nothing happens where that cannot be known, or is watched for already.
 * hd_process_forget: no longer.
 */
struct hd_advert {
	const uint8_t *at;
	size_t len;
};
uint16_t hd_adverts_write(struct hd_node *node, uint8_t *out);
struct hd_port *hd_advert_find(struct hd_node *node, const struct hd_hello *h, struct hd_advert *out);
void hd_process_watch(struct hd_peer *peer, const struct hd_hello *h);
void hd_process_forget(struct hd_peer *peer);

/* ---- hello.c ---- */

/* hd_hello_initiate: a link has been begun for this destination. */
void hd_hello_initiate(struct hd_link *link, struct hd_dest *dest);

/*
 * hd_hello_detach: the destination that this link is being made for is bound
 * already, by other means.
 */
void hd_hello_detach(struct hd_link *link);

/* hd_hello_choose: the caller decides: this link carries the data. */
void hd_hello_choose(struct hd_peer *peer, struct hd_link *link);

/*
 * hd_hello_finish: greeting over, on either side. The first link, if it is not the one, is closed
 * by the called end: only that end knows that the choice has arrived, and until then the loss of
 * the first link means the loss of the peer. So the caller keeps it for as long as that may take,
 * which is its peer's life at most.
 */
void hd_hello_finish(struct hd_peer *peer, struct hd_link *link);

/*
 * hd_hello_end: the peer goes. The first link goes with it, where the called
 * end has not closed it yet.
 */
void hd_hello_end(struct hd_peer *peer);

/*
 * hd_hello_is_missed: is it a caller who is heard of no more, neither over the link that he called
 * by nor over a better one?
 */
bool hd_hello_is_missed(const struct hd_peer *peer);

/* hd_hello_deliver: HELLO or USE has come over this link. */
int hd_hello_deliver(struct hd_link *link, const struct hd_pkt *pkt, const void *payload, size_t len);

/* hd_hello_fallen: a link that never became a peer's is down. */
void hd_hello_fallen(struct hd_link *link);

/*
 * ---- the node's ----
 *
 * hd_links_init: of a new node, whose rooms above are told what happens by this table.
 * hd_links_open: what stands for the peer and the destination of those who have none: 0 or -ENOMEM;
 * hd_links_close: it is there no longer. hd_links_fini: of one that goes.
 */
void hd_links_init(struct hd_node *node, const struct hd_link_observers *observers);
int hd_links_open(struct hd_node *node);
void hd_links_close(struct hd_node *node);
void hd_links_fini(struct hd_node *node);
void hd_links_end(struct hd_node *node); /* the node closes: all are down */
void hd_peers_end(struct hd_node *node); /* and those whom no link has taken along go */

/*
 * hd_links_inspect: how many there are of what link keeps of a node, and how much of the store of
 * credit is out. It changes nothing.
 */
struct hd_links_view {
	uint32_t peers, links;
	uint32_t dests;		   /* that somebody holds */
	uint32_t dest_room;	   /* for so many there is a table */
	uint32_t pending;	   /* answers that are awaited, of all peers */
	uint32_t units, units_max; /* of credit: granted and held; what there is */
};
struct hd_links_view hd_links_inspect(const struct hd_node *node);

/*
 * hd_links_check (check.c): asserts in builds with assertions that peers, budgets and destinations
 * are as their own checks say, and that what the node counts of all is their sum. Of many
 * destinations it looks at some, from that place of the table on.
 */
#ifdef NDEBUG
static inline void hd_links_check(const struct hd_node *node, uint32_t from)
{
}
#else
void hd_links_check(const struct hd_node *node, uint32_t from);
#endif

/* ---- links (link.c); the rest of their life is in engine/transport.h ---- */

/* hd_link_text: whom it leads to, for lines of the log. */
struct hd_link_text {
	char text[128];
};
struct hd_link_text hd_link_text(const struct hd_link *link);

/*
 * hd_links_reap: take the links apart that are down, and settled (hd_link_ops.settled).
 * From the top of progress only. hd_links_reap_all: of a node without endpoints, where
 * nothing comes in: so all are.
 */
void hd_links_reap(struct hd_node *node);
void hd_links_reap_all(struct hd_node *node);
/*
 * hd_links_forked: in a child, where their memory is not mapped and their sockets are the parent's:
 * every call of theirs is refused, and no send goes the short way.
 */
void hd_links_forked(struct hd_node *node);

#endif
