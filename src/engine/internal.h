/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * The engine's own structures; only src/engine includes this.
 *
 *	node ──┬── endpoints (by index) ── receive queue, CQs, counters
 *	       ├── destinations (by name, by id) ──► peer, remote endpoint index
 *	       ├── peers (by node id) ──► the link in use; credit; operations under way
 *	       ├── links (all of them, also those that still shake hands)
 *	       └── ports (one per transport), epoll set, timers, waker
 *
 * Everything is protected by the node's lock (struct hd_node.lock) unless its member says otherwise.
 */
#ifndef HD_ENGINE_INTERNAL_H
#define HD_ENGINE_INTERNAL_H

#include "base/biased.h"
#include "base/bytes.h"
#include "base/idmap.h"
#include "base/indices.h"
#include "base/look.h"
#include "base/pool.h"
#include "engine/core/state.h"
#include "engine/core/turn.h"
#include "engine/engine.h"
#include "engine/name/bound_port.h"
#include "engine/rq/match.h"
#include "engine/transport.h"

#include <pthread.h>
#include <uthash.h>

#define hd_likely(x) __builtin_expect(!!(x), 1)
#define hd_unlikely(x) __builtin_expect(!!(x), 0)
#define hd_container(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))

#define HD_MR_REST 64 /* closed regions whose keys are not given out again */

/* ---- what waits for the answer of a peer: link/pending.h --------------------------------------------------------------- */

struct hd_pending;

/* What its owner does with it; its address also tells whose it is. */
struct hd_pending_ops {
	/*
	 * The peer is gone, its link is down and reads none of our memory any more: end in error, a positive errno. It leaves its peer, and is freed
	 * or not, as the owner likes; it may end others, queue something for other peers, and complete.
	 */
	void (*lost)(struct hd_pending *pending, int err);
};

struct hd_pending {
	TAILQ_ENTRY(hd_pending) under; /* peer->pending */
	const struct hd_pending_ops *ops;
	struct hd_peer *
		peer; /* whom it waits for; NULL: it has not been sent. The owner sets it, or hd_pending_join */
	uint32_t id; /* in node->op_ids; 0: none */
};
TAILQ_HEAD(hd_pending_list, hd_pending);

struct hd_op;
TAILQ_HEAD(hd_op_list, hd_op);

/* ---- receive queue -------------------------------------------------------------------------------------------------------- */

/* A posted receive. */
struct hd_recv {
	struct hd_mnode m; /* first: tag, source, order */
	void *ctx;
	uint32_t flags; /* enum hd_recv_flag */
	int count;
	struct iovec iov; /* the only segment, or the first; multi-receive: what is left of it */
	union {
		struct iovec *more;    /* count above 1: all segments; from node->iovs */
		struct hd_recv *whole; /* HD_RECV_PART: the multi-receive buffer that this is a part of */
		uint32_t parts; /* HD_RECV_MULTI: parts of it that belong to messages that have not ended */
	};
	struct hd_ep *ep;     /* who posted it */
	struct hd_mr *region; /* hd_recv_args; those of several segments stand behind them: hd_recv_regions */
};

#define HD_SRC_GROUPS HD_MATCH_GROUPS /* from here on sources of receives are groups, see name/key.h */
#define HD_SRC_FORGOTTEN \
	UINT32_MAX /* source of a waiting message whose destination is no more: its number may be another's */

#define HD_SEND_WIRE 0x4f /* enum hd_send_flag: those that travel */

/* A message that waits for its receive. */
struct hd_msg {
	struct hd_wnode w;    /* first: tag, source (which may change while it waits), order of arrival */
	struct hd_ep *ep;     /* whom it came to */
	struct hd_peer *peer; /* whose credit it holds; NULL once that peer is gone */
	uint64_t imm;
	uint64_t len;		  /* of the message */
	uint32_t op;		  /* the sender's operation: RTS, or EAGER with HD_PKT_F_ACK */
	uint32_t room;		  /* bytes of data[] */
	uint32_t units;		  /* credit it holds */
	uint8_t kind;		  /* HD_PKT_EAGER or HD_PKT_RTS */
	uint8_t flags;		  /* enum hd_pkt_flag */
	bool arriving;		  /* data is still coming in through a sink */
	bool early;		  /* a datagram that is counted in hd_rq.early */
	bool claimed;		  /* taken out of the queue by hd_peek; in ep->claims */
	bool parked;		  /* in ep->parked */
	struct hd_recv *waiter;	  /* receive that matched it while it was arriving */
	struct hd_handle *handle; /* buffered.c: it is being handed over; claimed */
	LIST_ENTRY(hd_msg) claim_entry;
	union {
		STAILQ_ENTRY(hd_msg) park; /* parked */
		const void *name;	   /* claimed, and not yet received: hd_claim_name */
	};
	_Alignas(8) unsigned char data[]; /* EAGER: the payload; RTS: the offer */
};

struct hd_rq {
	struct hd_node *node;
	struct hd_match match[2];	    /* untagged, tagged */
	int users;			    /* endpoints */
	uint32_t early;			    /* what datagrams that wait here would take in a socket: bytes */
	struct hd_buffered *buffered;	    /* HD_EP_BUFFERED, or NULL */
	const struct hd_rq_keeper *keeper;  /* its, or NULL */
	TAILQ_HEAD(, hd_rq_waiter) waiters; /* who cannot go on until a receive is posted; by age */
	LIST_ENTRY(hd_rq) entry;	    /* node->rq_list */
	struct hd_rq_limit limit;	    /* least 0: none is armed */
	LIST_ENTRY(hd_rq) limited;	    /* node->limited, while one is */
	LIST_HEAD(, hd_mr) regions;	    /* that have been posted here alone */
};

/* What bounds the operations under way: an endpoint's own, or one that several share. */
struct hd_txq {
	uint32_t ops, max;
	int users;
};

/* ---- endpoints ------------------------------------------------------------------------------------------------------------ */

struct hd_conn; /* conn.h */
struct hd_qp;	/* qp.h */

/* What an endpoint wants done with what arrives, beside the usual: 0 for most, so that the path of a message looks at one word only. */
enum hd_watch_bit {
	HD_WATCH_CONNECTED = 1 << 0, /* hd_ep.conn: takes messages of one other endpoint only */
	HD_WATCH_SERVICE = 1 << 1,   /* hd_ep.service: takes no messages */
	HD_WATCH_NAMELESS = 1 << 2,  /* takes no messages: nobody could know of it */
	HD_WATCH_KEYED = 1 << 3,     /* hd_ep.key: takes messages of endpoints with the same key only */
	HD_WATCH_PAIRED = 1 << 4,    /* hd_ep.qp: what comes is looked at in responder.c */
};

struct hd_ep {
	struct hd_node *node;
	struct hd_cq *tx_cq; /* never NULL: node->no_cq stands for none */
	struct hd_cq *rx_cq;
	struct hd_cntr *tx_cntr, *rx_cntr;
	struct hd_rq *rq;
	uint32_t index;
	uint32_t src; /* whom its messages name as their source: itself, or the endpoint whose name it shares */
	uint16_t gen;
	uint16_t slot;	/* of its place */
	uint32_t watch; /* enum hd_watch_bit */
	uint32_t policy;
	struct hd_txq *tx;
	struct hd_qp *qp;   /* HD_EP_NUMBERED */
	struct hd_dest *to; /* hd_ep_to: a connected one's other end, set by cm; else node->nobody */
	struct hd_ep_cntrs cntrs;
	uint64_t min_multi;
	LIST_HEAD(hd_claims, hd_msg) claims; /* messages taken by FI_PEEK and not yet received */
	struct hd_op_list fenced;	     /* HD_OP_FENCED, in posting order; HD_EP_FENCE only */
	uint32_t reach_pass; /* hd_node.reach_pass when an operation of its was not done with its turn */
	uint32_t gates;	     /* long writes under way that messages must not overtake; HD_EP_SAW only */
	uint64_t serial;     /* hd_ep_serial */
	uint64_t unposted;   /* receives that have left the queue for it without a message */
	struct hd_deferred *
		owed; /* posted when a write that waited for a receive has met one; NULL: nobody wants to know */
	uint32_t pd; /* hd_ep_attr */
	bool own_rq;
	uint8_t rx_end; /* enum hd_rx_end: set by cm and qp */
	bool rx_busy;	/* rdm/order.h: a message is coming in for a receive with HD_RECV_ORDERED */
	bool rx_held;	/* somebody sees to the parked ones */
	TAILQ_HEAD(hd_seats, hd_seat)
	seats;			      /* HD_EP_TX_ORDERED: operations that have not been told of, by age */
	STAILQ_HEAD(, hd_msg) parked; /* messages that have met their receives, and wait for those before */
	struct hd_txq own_tx;
	struct hd_bound_port *place; /* where it is called; NULL: nowhere */
	const struct hd_ep_class *class;
	const struct hd_poster *poster;
	struct hd_op *
		framed; /* xfer/frames.c: of a send queue, the write whose frames leave, before those of others */
	uint32_t page_life;	    /* what hd_page_ep.life must be for it; written by qp, else 0 */
	uint32_t page_from;	    /* and hd_page_ep.from: its index, and HD_PAGE_LOSSY */
	struct hd_conn *conn;	    /* HD_EP_MSG */
	struct hd_asks *asks;	    /* cm/ask.c; NULL: nothing is answered */
	struct hd_service *service; /* the service that is called by this name, or NULL */
	struct hd_evq *evq;	    /* of the two */
	void (*tell)(void *owner, uint32_t code, int err); /* hd_ep_attr.tell */
	void *owner;
	uint64_t key;	       /* its authorization key; 0: none */
	struct hd_ep **others; /* aliases: the same endpoint with its other keys; see ep/alias.c */
	uint32_t other_count;
	/* which other end may reach it by itself, into `what`, where only one may: cm, qp. False, or NULL: nobody */
	bool (*is_shown_to)(const struct hd_ep *ep, struct hd_page_ep *what);
	struct hd_ep *main; /* of an alias: the endpoint; else NULL */
};

/* ---- destinations and peers ------------------------------------------------------------------------------------------------ */

struct hd_name_key {
	uint8_t addr[16]; /* IPv4 as mapped IPv6 */
	uint32_t port;
	uint32_t scope;
	uint64_t key; /* authorization key of whom it leads to; 0: none */
};

/* A name that leads to a destination; one destination may have several. */
struct hd_name {
	struct hd_name_key key;
	struct hd_dest *dest;
	LIST_ENTRY(hd_name) entry; /* dest->names */
	UT_hash_handle hh;	   /* node->names */
};

enum hd_dest_state {
	HD_DEST_IDLE,	    /* not reached yet, or no longer */
	HD_DEST_CONNECTING, /* a link is being made for it, or the peer it leads to is */
	HD_DEST_BOUND,	    /* peer, remote, gen are valid */
};

struct hd_dest {
	struct hd_peer *peer; /* node->nowhere unless bound */
	uint32_t remote;      /* endpoint index there */
	uint16_t gen;
	uint32_t id;
	enum hd_dest_state state;
	struct hd_node *node;
	struct sockaddr_storage addr; /* where to connect to; AF_UNSPEC for a source without a name */
	uint32_t refs;		      /* of fronts and of operations */
	bool awaits;		      /* in peer->awaiting */
	int tries;
	struct hd_op_list waiting; /* operations to start once bound */
	LIST_HEAD(, hd_name) names;
	LIST_ENTRY(hd_dest) entry; /* peer->dests while bound, peer->awaiting while that shakes hands */
	struct hd_link *link;	   /* while connecting: the link made for it */
	struct hd_timer retry;
	struct hd_timer overdue; /* dgram.c: datagrams have waited for it long enough; */
	bool is_overdue;	 /* others do not begin to until it is bound */
	LIST_HEAD(, hd_follow) followers;
	uint64_t key; /* authorization key of the endpoint there; 0: it has none */
};

/* A packet that could not be sent at once and must not be lost: answers and announcements. */
#define HD_CTL_MAX (16u << 20) /* bytes that wait for a peer who takes nothing in */
struct hd_ctl {
	TAILQ_ENTRY(hd_ctl) entry;
	struct hd_pkt pkt;
	uint32_t len;
	uint32_t units; /* credit that the peer gets back when it has left */
	unsigned char data[];
};

enum hd_peer_state {
	HD_PEER_SHAKING, /* HELLOs are under way */
	HD_PEER_LIVE,	 /* link is set */
	HD_PEER_DEAD,	 /* being taken apart */
};

/* What one endpoint of a peer is to us. */
struct hd_remote {
	uint32_t dest_id; /* 0: it has no name here */
	uint16_t gen;
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
	HD_STALL_GATED = 1 << 3,   /* peer->gates */
};

struct hd_peer {
	/* for every send */
	struct hd_link *link;
	int64_t eager_max; /* payload bytes that may go at once; -1: the slow path decides */
	struct hd_credit credit;
	uint32_t remote_count;
	struct hd_remote *remotes; /* by the peer's endpoint index */
	/* for every one-sided operation */
	struct hd_op_list reaching; /* HD_OP_DIRECT: one after the other for each endpoint */
	uint32_t requests;	    /* one-sided operations that were sent by packet, cumulative */
	/* of `spent` and `requests`: what the peer is known to have taken in; see direct.c */
	uint32_t spent_taken, requests_taken;
	/* the rest */
	uint64_t *remote_keys; /* their authorization keys, likewise; beside, so that sources are found as fast as without */
	enum hd_peer_state state;
	struct hd_node *node;
	struct hd_node_id id;
	uint64_t incarnation;
	struct hd_link *
		shaking; /* the first link, which carried the HELLO, until one is in use; at the caller, until it is closed */
	struct hd_link *joining; /* the better link that is being tried */
	uint32_t eager_limit;	 /* what eager_max is while nothing stalls it */
	uint32_t stalled;	 /* enum hd_stall */
	bool initiator;		 /* of `shaking` */
	bool busy;		 /* in node->pushing */
	bool is_local;
	bool ended;		    /* its process is dead, whoever has the sockets */
	struct hd_process *process; /* advert.c: the process is watched; NULL: it is not */
	uint8_t addr_count;
	uint8_t addr[HD_HELLO_ADDRS + 3][16]; /* where its endpoints can be called */
	struct hd_pending_list pending;	      /* everything under way */
	struct hd_op_list queue;	      /* HD_OP_QUEUED: accepted, to be started in order */
	struct hd_op_list framing;	      /* HD_OP_FRAMES: take turns, a frame each */
	TAILQ_HEAD(, hd_qp) stalled_sqs; /* queue pairs with something to send for which there was no room */
	uint32_t gates;			 /* long writes under way that close the short way: HD_EP_SAW */
	size_t ctl_bytes;		 /* of `ctl`: HD_CTL_MAX at most */
	TAILQ_HEAD(, hd_ctl) ctl;
	struct hd_timer silence;	/* qp/silence.c */
	LIST_HEAD(, hd_overflow) owing; /* completions that wait, and hold its credit */
	LIST_HEAD(, hd_dest) dests;
	LIST_HEAD(, hd_dest) awaiting;
	struct hd_push push; /* while busy */
	UT_hash_handle hh;   /* node->peers */
};

/* ---- CQ, counter ---------------------------------------------------------------------------------------------------------------- */

/*
 * What somebody may sleep on: a CQ or a counter. Threads that wait have an eventfd of their own, beside the one that programs poll, so
 * that neither takes the other's wake away.
 */
struct hd_waiters {
	struct hd_node *node;
	bool *armed; /* the flag that the writer of a completion looks at */
	_Atomic int
		wake_fd; /* eventfd for whoever polls epoll_fd, -1 until wanted; written under the lock, read by any thread */
	int epoll_fd;	    /* the node's epoll set and wake_fd in one, -1 until wanted */
	bool fd_armed;	    /* somebody polls epoll_fd */
	bool woken;	    /* wake_fd has been written and not drained */
	_Atomic int nap_fd; /* eventfd for threads, -1 until wanted; as wake_fd */
	int sleepers;	    /* threads that sleep or are about to */
	bool nap_woken;	    /* nap_fd has been written; stays readable until the last of to_wake is awake */
	bool nap_again;	    /* something has happened since, which those do not know who lay down later */
	int to_wake;	    /* threads that slept when it was written and have not noticed yet */
	uint32_t wakes;	    /* how often it was written */
	_Atomic uint32_t signals; /* hd_cq_signal; any thread */
	uint32_t signals_taken;	  /* those that a waiter has returned for */
	bool kept;		  /* the flag stays set for another reason: triggers */
	bool interrupts;	  /* a signal handler that is not to restart calls ends the wait */
	bool any_signal;	  /* each signal handler does */
	struct hd_look look;
	struct hd_wgroup *group; /* of the wait set that it is in, or NULL; set before the object is used */
	bool (*ready)(struct hd_waiters *w); /* in a wait set: is there something to read? */
	LIST_ENTRY(hd_waiters) member;
};

struct hd_overflow {
	STAILQ_ENTRY(hd_overflow) entry;
	void (*read)(struct hd_overflow *
			     o); /* somebody waits until it has been read, or its CQ is closed; may be NULL */
	struct hd_peer *peer;	 /* owed.c: whose credit it holds */
	uint32_t units;
	LIST_ENTRY(hd_overflow) owing; /* peer->owing */
	struct hd_cqe cqe;
};

struct hd_cq {
	struct hd_cq_ring r; /* first: engine.h reads it inline */
	struct hd_node *node;
	int users;
	bool none;     /* node->no_cq: swallows everything */
	bool overruns; /* hd_cq_attr */
	bool forgets;  /* likewise */
	bool overrun;  /* it has been */
	void (*on_overrun)(void *arg);
	void *arg;
	bool (*tells)(void *arg, const struct hd_cqe *e);
	uint32_t mark; /* hd_cq_wait_told: where the ring ended */
	bool too_few; /* the same: somebody is to be told as soon as there are enough, quiet ones among them */
	struct hd_channel *channel; /* hd_cq_notify */
	struct hd_channel_item *item;
	enum hd_cq_notice {
		HD_NOTICE_NONE,
		HD_NOTICE_SOLICITED,
		HD_NOTICE_ANY
	} notice;			      /* which completions it is to be told of */
	uint32_t gather, gathered, gather_us; /* hd_cq_moderate; how many since the last event */
	uint32_t told;			      /* where the ring ended then */
	struct hd_timer gather_timer;
	struct hd_waiters w;
	STAILQ_HEAD(, hd_overflow) overflow;
};

struct hd_cntr {
	_Atomic uint64_t value; /* relaxed: a program that reads it without the lock orders nothing by it */
	_Atomic uint64_t errors;
	bool armed;
	bool is_due; /* in node->due */
	struct hd_node *node;
	int users;
	struct hd_waiters w;
	uint64_t own, own_errors; /* the program's share of both values, which is nothing that has happened */
	uint64_t seen, seen_errors;			 /* values that the program knows; hd_cntr_arm */
	TAILQ_HEAD(hd_triggers, hd_trigger) triggers[2]; /* [with_errors]; by threshold, then by age */
	TAILQ_ENTRY(hd_cntr) due_entry;
};

/* ---- node ----------------------------------------------------------------------------------------------------------------------- */

#define HD_WASTE (64u << 10) /* bytes of hd_node.waste */

/* An address with its prefix: of an interface of this host, or of a subnet that may come. */
struct hd_allow_rule {
	uint8_t addr[16];
	uint8_t bits;
};

struct hd_node {
	struct hd_core core;
	/* every turn of progress */
	const struct hd_turn_ops *turn_ops;
	LIST_HEAD(, hd_publish) publishing;
	TAILQ_HEAD(, hd_push) pushing;
	unsigned work;		 /* 1 << enum hd_turn_work: what is due, or to be looked at once in a turn */
	uint32_t awaiting_count; /* of awaiting: somebody waits for what hd_turn_ops.look looks at */
	TAILQ_HEAD(, hd_link) fallen; /* links that are down and wait for close() */
	TAILQ_HEAD(, hd_cntr) due;    /* counters that have reached a trigger's threshold */
	struct hd_deferred callers;   /* hello.c: some may have gone */
	uint32_t gathering; /* links with something that would be lost with this process: hd_node_gathers */
	bool firing;	    /* triggers are being fired: what they make due waits its turn */
	bool locked;
	bool dead; /* forked child */
	bool closing;
	struct hd_ep **eps;		      /* by index */
	uint32_t ep_count;		      /* slots of eps */
	const struct hd_ep_class *ep_classes; /* ep/class.h */
	uint32_t pairs;			      /* queue pairs among them */
	struct hd_indices ep_indices;
	struct hd_biased lock;
	/* the rest */
	const struct hd_link_observers *observers; /* set as the node opens */
	struct hd_node_attr attr;
	struct hd_cq *no_cq;
	struct hd_peer *nowhere; /* stands for the peer of an unresolved destination */
	struct hd_dest *nobody;	 /* stands for the other end of an endpoint that is not connected */
	LIST_HEAD(, hd_service) services;
	uint32_t written; /* writes and atomic operations that have come by packet and been carried out, for watchdog.c */
	uint32_t storing;  /* how many of them are coming in */
	uint32_t requests; /* number of the last connection that was asked for */
	int answered;	   /* connections that wait for their callers: HD_CONN_ANSWERED */
	_Atomic int pins;  /* event queues that are about to take the lock; the node is not freed before */
	struct hd_peer *self;
	struct hd_port *ports[HD_MAX_PORTS];
	int port_count;
	unsigned transport_choice;
	struct hd_idmap op_ids; /* struct hd_pending by its id */
	struct hd_dest **dests; /* by id - 1 */
	uint32_t dest_count, dest_hint;
	struct hd_pool ops, recvs, iovs, seats;
	struct hd_bytes bytes;
	char *waste; /* where links read what is thrown away; nobody reads it */
	struct hd_name *names;
	struct hd_peer *peers;
	TAILQ_HEAD(, hd_link) links;
	LIST_HEAD(, hd_group) groups;
	const struct hd_caster *caster; /* what carries them */
	uint32_t *ep_gens;
	uint32_t window_units; /* granted to all peers together, and held by messages of those that are gone */
	uint32_t window_max, window_peer_max;
	int rqs, cqs, cntrs, mrs, ep_users, link_count;
	LIST_HEAD(, hd_rq) rq_list;
	LIST_HEAD(, hd_rq) limited;
	LIST_HEAD(, hd_qp) marked;
	TAILQ_HEAD(, hd_qp) awaiting; /* queue pairs whose messages wait to be accepted: ack.c */
	uint64_t looked_at;	      /* hd_ticks(): the last look for them */
	LIST_HEAD(, hd_bound_port) places;
	LIST_HEAD(, hd_bound_port) roomy; /* those of them that are shared, and have a slot to give */
	struct hd_rest *rests; /* bound_port.c: slots that were given back last, a ring; NULL: none was */
	uint32_t rest_next, rest_count;
	int listening; /* sockets, of all places */
	struct hd_mr *mr_table;
	void (*mr_leaves)(struct hd_mr *from,
			  struct hd_mr *to); /* hd_mr_move, for mr: a region closes, `to` NULL */
	struct hd_window *windows;	     /* by their keys, see window.h */
	bool keys_chosen;		     /* a region has, or had, a key that might be a window's */
	struct hd_key *keys;		     /* that receives here name; see name/key.h */
	uint32_t key_count;
	uint64_t mr_rest[HD_MR_REST]; /* keys of regions closed last: not to be drawn again yet */
	unsigned mr_rest_next;
	struct sockaddr_storage addrs[HD_HELLO_ADDRS];
	int addr_count;
	struct hd_allow_rule *allow;
	int allow_count;
	/* sleeping */
	int epoll_fd;
	int wake_fd;
	struct hd_allow_rule *own; /* addresses of this host, and how long their prefixes are */
	int own_count;
	int arms; /* reasons to be woken by peers; sleep_epoch is odd while above 0 */
	/* page */
	struct hd_node_page *page;
	int page_fd;
	bool rows_used[HD_PAGE_LINKS];
	uint32_t reach_pass;	       /* counts the turns of direct.c */
	bool mr_rows[HD_PAGE_MRS];     /* rows of regions in use, or not yet settled */
	struct hd_page_link spare_row; /* for links beyond the table */
	uint64_t probe_word;
	_Atomic uint64_t
		epoch; /* turns of progress made by the program: written with the lock, by plain stores */
	LIST_ENTRY(hd_node) all; /* of the process: for fork */
};

/*
 * hd_refuse(err, why): -err, and a line in the log at level debug that says why a call on the data path is refused: the fronts hand the errno on
 * as it is. Not for what the caller waits for: -EAGAIN.
 */
#define HD_OF_PARENT "what it is made on was opened by the process that has forked this one"
#define HD_NO_SUCH_KEY "the endpoint has no authorization key that its destination has"
int hd_refuse(int err, const char *why) __attribute__((cold));

/* hd_node_epoch: see there. Without the lock as well. */
static inline uint64_t hd_node_epoch(const struct hd_node *node)
{
	return atomic_load_explicit(&node->epoch, memory_order_relaxed);
}

/* hd_assert_locked: the first statement of what needs the node's lock; checked in builds with assertions. */
static inline void hd_assert_locked(struct hd_node *node)
{
#ifndef NDEBUG
	if (node->locked)
		assert(hd_biased_is_taken(&node->lock));
#else
	(void)node;
#endif
}

/* hd_ep_admits (link/admit.c): may endpoint `src` of this peer send messages to this endpoint, which watches who does (hd_ep.watch)? */
bool hd_ep_admits(const struct hd_ep *ep, const struct hd_peer *peer, uint32_t src);

/* hd_pkt_named: the endpoint that a packet names, or NULL when it is gone. */
static inline struct hd_ep *hd_pkt_named(const struct hd_node *node, const struct hd_pkt *pkt)
{
	struct hd_ep *ep = hd_likely(pkt->dst < node->ep_count) ? node->eps[pkt->dst] : NULL;

	return hd_likely(ep && ep->gen == pkt->gen) ? ep : NULL;
}

/* hd_pkt_target: the endpoint that a message or one-sided operation is for; NULL: it is gone, or takes none from this peer. */
static inline struct hd_ep *hd_pkt_target(const struct hd_link *link, const struct hd_pkt *pkt)
{
	struct hd_ep *ep = hd_pkt_named(link->node, pkt);

	return hd_unlikely(ep && ep->watch) && !hd_ep_admits(ep, link->peer, pkt->src) ? NULL : ep;
}

/* hd_pkt_source: hd_dest_id of the endpoint that sent a packet, 0 when it has no name here. */
static inline uint32_t hd_pkt_source(const struct hd_peer *peer, uint32_t index)
{
	return hd_likely(index < peer->remote_count) ? peer->remotes[index].dest_id : 0;
}

#endif
