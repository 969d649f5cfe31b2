/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * What the files of this room share.
 *
 *	port.c     the transport's table; which links are polled
 *	listen.c   listeners, accept, running out of descriptors
 *	callers.c  who has called, and is nobody's link yet
 *	connect.c  calling, with a time-out
 *	link.c     birth and death of a link, its watch
 *	tx.c       what waits to be written: small packets gathered, long payloads in place
 *	rx.c       frames out of the byte stream
 *	owner.c    whose the other end is, within this host
 *	part.c     last words of a node that closes
 *	seal.c     connections that a key seals, and their handshake
 *	sock.c     socket options and addresses
 *
 * A link is hot while it has traffic or something to write: then every poll reads its socket, and
 * no epoll is on that path. After some hundred reads it even leaves the epoll set, because being
 * watched costs every arriving segment 0.15 µs. Otherwise it is cold, and the epoll set tells when
 * to heat it; so it comes back there when it cools, or when the node goes to sleep.
 */
#ifndef HD_TCP_TCP_H
#define HD_TCP_TCP_H

#include "base/ranks.h"
#include "base/sockaddr.h"
#include "engine/transport.h"
#include "transport/tcp/frame.h"
#include "transport/tcp/seal.h"

#define HD_TCP_HEAD sizeof(struct hd_tcp_frame)
#define HD_TCP_STAGE (64u << 10) /* bytes read ahead at once */
#define HD_TCP_PUTS 8		 /* long payloads that wait in place, per link */

enum hd_tcp_state {
	HD_TCP_CONNECTING, /* connect(2) is in progress: EPOLLOUT and the timer are awaited */
	HD_TCP_SHAKING,	   /* connected; the two ends prove to each other that they have the key */
	HD_TCP_UP,
	HD_TCP_LAST, /* the process ends: hd_tcp_last alone writes, and reads and forgets */
	HD_TCP_DEAD, /* the socket is of no more use; the link is down */
};

/* A frame whose header is in the buffer and whose payload is the engine's. */
struct hd_tcp_put {
	struct hd_put *put; /* NULL: the engine wants to hear no more of it */
	/* our copy of the rest, once the payload is not the engine's any more */
	void *own;
	/* the payload comes before the byte of this stream position (see hd_tcp_tx.base) */
	uint64_t at;
	size_t left;
	int cur, count;
	bool is_void; /* its memory was gone: zeros stand for the rest, and its check says so */
	struct iovec iov[HD_IOV_MAX];
};

/*
 * What waits to be written, in order:
 *
 *	buf:  | written | bytes of frames … header |        | more frames … | free |
 *	               head                        ^at                      tail   cap
 *	put[sent % PUTS]:                           payload
 */
struct hd_tcp_tx {
	uint8_t *buf;
	size_t cap, head, tail;
	size_t sealed; /* bytes that have been sealed and wait for the socket in struct hd_seal */
	uint64_t base; /* position of buf[0] in the stream of buffered bytes */
	/* puts told the engine ≤ written ≤ queued; at most HD_TCP_PUTS apart */
	unsigned put_done, put_sent, put_next;
	uint32_t seq;	      /* of the last frame queued */
	uint32_t acked;	      /* of the last frame that the other end has taken in */
	uint32_t turn;	      /* port's turn of the last write */
	uint32_t written_seq; /* newest frame that has been offered to the socket */
	bool streams;	      /* many were, in the last write */
	uint32_t put_turn;    /* port's turn of the last put */
	bool full;	      /* the socket took less than it was offered, at hd_ticks() full_at */
	uint64_t full_at;
	int err; /* writing is over: negative errno; the link goes down once everything is read */
	/* newest credit for the other end; the one that the last frame carried */
	uint32_t grant, grant_sent;
	unsigned grant_polls; /* polls that saw that they differ */
	struct hd_tcp_put put[HD_TCP_PUTS];
};

struct hd_tcp_rx {
	uint32_t seq;	 /* of the last frame taken in */
	uint32_t grant;	 /* newest credit from the other end */
	bool in_payload; /* between hd_deliver_begin and hd_deliver_end */
	bool bulk;	 /* the last frame was long: read no further ahead than a header */
	/*
	 * sealed: there may be bytes that have been read ahead, of which the socket tells nothing
	 */
	bool more;
	unsigned have; /* bytes of the next header in `head` */
	uint8_t head[HD_TCP_HEAD];
	/* in_payload: bytes of its check that are still to come; the others said */
	uint8_t check_left;
	bool is_void; /* that it is */
};

struct hd_tcp_caller;
struct hd_tcp_callers {
	struct hd_tcp_caller *table; /* by whose they are */
	struct hd_ranks ranks;	     /* by how many each has; opened with the first */
	unsigned count, max;
	uint64_t secret[2];
};

struct hd_tcp_port {
	struct hd_port port;
	TAILQ_HEAD(, hd_tcp_link) links;
	TAILQ_HEAD(, hd_tcp_link) hot;
	/* those of the hot ones with something gathered or unwritten */
	TAILQ_HEAD(, hd_tcp_link) waiting;
	TAILQ_HEAD(, hd_tcp_link)
	parting; /* the engine has closed them, and their last words are not delivered */
	/* the first packet of a link in a turn is written at once, others are gathered */
	uint32_t turn;
	/* somebody sleeps on the epoll set, perhaps while others poll: no link leaves it */
	bool armed;
	const struct hd_seal_module *seals; /* NULL: there is no key, connections are plain */
	struct hd_sealer *sealer;
	struct hd_tcp_callers callers;
	int reserve; /* descriptor kept to turn callers away with when there is no other, or -1 */
	LIST_HEAD(, hd_tcp_listener) listeners;
	uint8_t stage[HD_TCP_STAGE]; /* nothing stays in it from one read to the next */
};

struct hd_tcp_link {
	struct hd_link link;
	TAILQ_ENTRY(hd_tcp_link) hot_entry;
	TAILQ_ENTRY(hd_tcp_link) waiting_entry;
	struct hd_watch watch;
	enum hd_tcp_state state;
	bool hot, waiting;
	bool calls;	      /* our end has connected */
	bool spoken_to;	      /* parting, or the last words: something has come in since */
	bool watched;	      /* in the epoll set */
	unsigned traffic;     /* polls that found some since the watch was set */
	unsigned quiet;	      /* polls that found none since the last that did */
	uint64_t quiet_since; /* hd_ticks() at the first of them that looked */
	struct hd_tcp_rx rx;
	struct hd_tcp_tx tx;
	struct hd_timer timer;	/* until it is up */
	struct hd_seal *seal;	/* NULL: plain */
	struct hd_listener *at; /* HD_TCP_SHAKING, called: where */
	/* its host is asked often whether it is there: hd_link_ops.silence */
	bool probed;
	/* hd_now_ns() when it had acknowledged everything, as far as we have looked */
	uint64_t settled_at;
	TAILQ_ENTRY(hd_tcp_link) entry;
	struct hd_tcp_caller *caller; /* NULL: it is none */
	TAILQ_ENTRY(hd_tcp_link) caller_entry;
};

struct hd_tcp_listener {
	struct hd_tcp_port *port;
	struct hd_listener *l;
	struct hd_watch watch;
	struct hd_timer timer; /* set while accepting pauses */
	LIST_ENTRY(hd_tcp_listener) entry;
};

static inline struct hd_tcp_port *tcp_port(struct hd_port *port)
{
	return (struct hd_tcp_port *)port;
}

static inline struct hd_tcp_link *tcp_link(struct hd_link *link)
{
	return (struct hd_tcp_link *)link;
}

static inline struct hd_tcp_port *tcp_port_of(struct hd_tcp_link *l)
{
	return (struct hd_tcp_port *)l->link.port;
}

/* Everything below runs under the node's lock and does not block; see engine/transport.h. */

/*
 * hd_tcp_link_new: a link around a connected or connecting socket, which it owns from then on;
 * watched, cold. NULL: no memory, or what errno says.
 */
struct hd_tcp_link *hd_tcp_link_new(struct hd_tcp_port *port, int fd, enum hd_tcp_state state,
				    const struct sockaddr *where);

/*
 * hd_tcp_link_down: the socket is of no more use: err a negative errno, why for the log. The
 * engine closes the link later.
 */
void hd_tcp_link_down(struct hd_tcp_link *l, int err, const char *why);

/*
 * hd_tcp_caller_add: this link has been accepted; another that is nobody's may be down
 * afterwards. 0 or -ENOMEM.
 * hd_tcp_caller_leave: it is down, or has become a peer's. Idempotent. What each costs does not
 * grow with how many have called.
 */
void hd_tcp_callers_open(struct hd_tcp_callers *callers);
void hd_tcp_callers_close(struct hd_tcp_callers *callers);
int hd_tcp_caller_add(struct hd_tcp_link *l);
void hd_tcp_caller_leave(struct hd_tcp_link *l);

/* hd_tcp_link_ready: it can carry frames: tell the engine. The link may be down afterwards. */
void hd_tcp_link_ready(struct hd_tcp_link *l);

/* hd_tcp_link_heat: read its socket in every poll. */
void hd_tcp_link_heat(struct hd_tcp_link *l);

/* hd_tcp_link_cool: leave it to the epoll set; it stays hot when that has no room. */
void hd_tcp_link_cool(struct hd_tcp_link *l);

/*
 * hd_tcp_link_watch: have the epoll set tell of these events (EPOLLIN, perhaps
 * EPOLLOUT). Negative errno.
 */
int hd_tcp_link_watch(struct hd_tcp_link *l, uint32_t events);

/* hd_tcp_link_unwatch: take it out of the epoll set. Idempotent. */
void hd_tcp_link_unwatch(struct hd_tcp_link *l);

/*
 * hd_tcp_link_quiet: take a link that is down off every list and out of the epoll set. Idempotent.
 */
void hd_tcp_link_quiet(struct hd_tcp_link *l);

/*
 * hd_tcp_link_free: close its socket and give its memory back; it is on no list but
 * those of hd_tcp_link_quiet.
 */
void hd_tcp_link_free(struct hd_tcp_link *l);

/*
 * hd_tcp_part: write what waits, say that this is the end, read and forget what has come. true:
 * there is more to be delivered, and the node is closing, so that somebody will wait for that:
 * hd_tcp_part_all does, for up to a second, and frees the port's parting links. The latter blocks,
 * and is called when nobody has the node any more.
 */
bool hd_tcp_part(struct hd_tcp_link *l);
void hd_tcp_part_all(struct hd_tcp_port *p);

/* hd_tcp_last: as hd_transport.last. */
bool hd_tcp_last(struct hd_port *port, bool only_look);

/*
 * hd_tcp_connected: EPOLLOUT on a connecting socket. Ends in hd_link_up or hd_link_down, or in
 * nothing when it was too early.
 */
void hd_tcp_connected(struct hd_tcp_link *l);

int hd_tcp_connect(struct hd_port *port, const void *where, size_t len, const struct hd_node_id *whose,
		   struct hd_link **out);
int hd_tcp_listen(struct hd_port *port, struct hd_listener *l);
void hd_tcp_unlisten(struct hd_port *port, struct hd_listener *l);

/* Members of struct hd_link_ops, and of struct hd_transport. */
uint64_t hd_tcp_realm(struct hd_link *link);
int hd_tcp_holder(struct hd_link *link, struct hd_holder *out); /* as hd_link_ops.holder */
uint64_t hd_tcp_realm_at(struct hd_port *port, const struct sockaddr *addr);
int hd_tcp_send(struct hd_link *link, const struct hd_pkt *pkt, const void *buf, size_t len);
int hd_tcp_sendv(struct hd_link *link, const struct hd_pkt *pkt, const struct iovec *iov, int count,
		 size_t len);
int hd_tcp_put(struct hd_link *link, const struct hd_pkt *pkt, const struct iovec *iov, int count, size_t len,
	       struct hd_put *put);
int hd_tcp_unput(struct hd_link *link, struct hd_put *put);

static inline bool hd_tcp_tx_pending(const struct hd_tcp_tx *tx)
{
	return tx->head != tx->tail || tx->put_sent != tx->put_next || tx->sealed;
}

/* hd_tcp_link_busy: is there something to do for this link even if nothing arrives? */
static inline bool hd_tcp_link_busy(const struct hd_tcp_link *l)
{
	return hd_tcp_tx_pending(&l->tx) || l->tx.put_done != l->tx.put_sent ||
	       l->tx.grant != l->tx.grant_sent || l->tx.err;
}

/*
 * hd_tcp_tx_flush: write what waits, as far as the socket takes it. An error ends writing
 * (tx.err), the link stays up.
 */
void hd_tcp_tx_flush(struct hd_tcp_link *l);

/*
 * hd_tcp_tx_done: tell the engine of every put that is written. Returns their number. The
 * link may be down afterwards.
 */
int hd_tcp_tx_done(struct hd_tcp_link *l);

/*
 * hd_tcp_tx_grant: let a pending grant leave in a frame of its own, when there is room; at once, or
 * when it is worth one or due.
 */
void hd_tcp_tx_grant(struct hd_tcp_link *l, bool now);

/* hd_tcp_tx_trim: give back what only a busy link needs; there may be thousands of idle ones. */
void hd_tcp_tx_trim(struct hd_tcp_tx *tx);

/*
 * hd_tcp_tx_free: give the memory back; what waits is lost. hd_tcp_tx_close: the copies of payloads
 * too; the link is about to go.
 */
void hd_tcp_tx_close(struct hd_tcp_tx *tx);
void hd_tcp_tx_free(struct hd_tcp_tx *tx);

/*
 * hd_tcp_rx: take in what has arrived, a bounded portion. Returns the number of packets and pieces.
 * The link may be down afterwards. *dry: the socket had no more.
 */
int hd_tcp_rx(struct hd_tcp_link *l, bool *dry);

/*
 * hd_tcp_sock_open: a non-blocking stream socket for this family, closed on exec. Negative errno.
 */
int hd_tcp_sock_open(int family);

/*
 * hd_tcp_sock_tune: the options of a connected socket: no delay, keepalive, user time-out. They
 * cannot fail in a way that matters.
 */
void hd_tcp_sock_tune(int fd);

/*
 * hd_tcp_sock_probe: ask the other host every second (`often`) whether it is there while nothing
 * moves, or as HEDDLE_KEEPALIVE says; not at all where that is 0. hd_tcp_sock_owed: has it
 * something to acknowledge? *heard_ms: how long it has not been heard of.
 */
void hd_tcp_sock_probe(int fd, bool often);
bool hd_tcp_sock_owed(int fd, uint32_t *heard_ms);

/* hd_tcp_sock_local: is the other end of this socket, at `peer`, on this host? */
bool hd_tcp_sock_local(int fd, const struct sockaddr *peer);

/*
 * hd_tcp_sock_to_self: has a connect to a port nobody listens on met itself? (It drew
 * that very port as its own.)
 */
bool hd_tcp_sock_to_self(int fd);

/* hd_tcp_addr_plain: turn an IPv4 address in IPv6 clothes into an IPv4 one, in place. */
void hd_tcp_addr_plain(struct sockaddr_storage *addr);

/*
 * hd_tcp_lacks: one log line, now and then, when `err` says what this host lacks for that:
 * descriptors, memory, a port, or permission; with what to do (base/advice.h).
 */
void hd_tcp_lacks(int err, const char *doing, const char *advice);

extern const struct hd_transport hd_tcp_transport;
extern const struct hd_link_ops hd_tcp_link_ops;

#endif
