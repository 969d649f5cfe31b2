/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * The contract between the engine and a transport. A transport can be written from this header, and
 * what it includes, alone.
 *
 *	struct hd_transport   what a transport is: one constant table each, listed in
 *	                      engine/node/transports.c
 *	struct hd_port        its presence in one node        (transport embeds it as first member)
 *	struct hd_link        its way to one other node       (transport embeds it as first member)
 *	struct hd_listener    a place where it can be called  (owned by the engine)
 *
 * Threads: every function here, in both directions, runs with the node's lock held (or on the one
 * thread of a node that has none). Nothing blocks. A transport has no thread, no lock and no timer
 * of its own: it uses hd_watch and hd_timer.
 *
 * Life of a link: a transport makes it in connect(), or when somebody calls, and tells the engine
 * by hd_link_up() or hd_link_accepted(). Either side may then declare it broken with
 * hd_link_down(), any number of times. The engine answers, later and from the top of its progress,
 * never from inside a call of the transport, with exactly one close(), which frees it. Between down
 * and close the transport delivers nothing and send() answers -ENOTCONN.
 *
 * A link that is slow is not down. Once greeted it may be stalled for as long as it likes: send()
 * answers -EAGAIN, put->done is not called, and between hd_deliver_begin and hd_deliver_end any
 * time passes. The engine keeps what waits, and takes a peer for dead only when its link has gone
 * down. So a transport that mends its connections does so beneath this contract, with the same
 * link: it keeps what the other end has not acknowledged, so that put->done comes with the
 * acknowledgement (elsewhere it says no more than that the payload is free), and goes on in the
 * sink where it stopped: what has been put there stays there, and nothing is begun anew. What is
 * down does not come back: over each link there is a greeting, HELLO begins a peer, and resumes
 * none.
 *
 * Trust: what arrives is hostile until checked. A transport checks its own framing and hands over
 * headers in private memory; the engine checks what is inside. A negative answer of a deliver
 * function means that the link is down already.
 */
#ifndef HD_ENGINE_TRANSPORT_H
#define HD_ENGINE_TRANSPORT_H

#include "base/clock.h"
#include "base/iov.h"
#include "base/realm.h"
#include "base/timers.h"
#include "base/trace.h"
#include "engine/api/status.h"
#include "engine/node_page.h"
#include "engine/wire.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <sys/uio.h>

struct hd_node;
struct hd_peer;
struct hd_ep;
struct hd_link;
struct hd_port;
struct hd_listener;
struct hd_bound_port;
struct hd_put;
struct hd_get;
struct hd_offer;
struct hd_dest;
struct hd_group;
struct hd_direct;

/* ---- what a transport provides --------------------------------------------------------------- */

enum hd_tnum { /* also names adverts on the wire: never renumber */
	HD_TNUM_TCP = 1,
	HD_TNUM_SHM = 2,
	HD_TNUM_LOOP = 3,
};

/*
 * Messages, and requests for one-sided operations; and the bytes of the program's in them that went
 * by packet. What is counted together does not stand side by side: compilers make one addition of
 * two words of it, which costs more.
 */
struct hd_traffic {
	uint64_t out, in, bytes_out, bytes_in;
};

/* hd_traffic_out, hd_traffic_in: one more, with so many bytes. */
static inline void hd_traffic_out(struct hd_traffic *t, size_t bytes)
{
	t->out++;
	t->bytes_out += bytes;
}
static inline void hd_traffic_in(struct hd_traffic *t, size_t bytes)
{
	t->in++;
	t->bytes_in += bytes;
}

/*
 * hd_traffic_more_out, hd_traffic_more_in: so many bytes more of what has been counted.
 * hd_traffic_add: all that t says, too.
 */
static inline void hd_traffic_more_out(struct hd_traffic *t, size_t bytes)
{
	t->bytes_out += bytes;
}
static inline void hd_traffic_more_in(struct hd_traffic *t, size_t bytes)
{
	t->bytes_in += bytes;
}
static inline void hd_traffic_add(struct hd_traffic *sum, const struct hd_traffic *t)
{
	sum->out += t->out;
	sum->in += t->in;
	sum->bytes_out += t->bytes_out;
	sum->bytes_in += t->bytes_in;
}

/*
 * What a port has done since it was opened, for the last lines of the log. Under the node's lock.
 */
struct hd_port_past {
	struct hd_traffic traffic; /* with peers that are gone: the engine's */
	uint64_t calls_out, calls_in, bytes_out,
		bytes_in; /* the transport's: writes and reads, or copies between processes */
};

struct hd_transport {
	const char *name;
	uint8_t number; /* enum hd_tnum */
	/*
	 * An addressed transport is called by socket address: it has listen(), and connect() takes
	 * a struct sockaddr. The others are joined after a HELLO over an addressed one: connect()
	 * takes what advertise() wrote at the other node.
	 */
	bool addressed;

	/*
	 * open: make the port of this node. *out is owned by the engine until close(), which it
	 * calls after the last link is gone, when nobody has the node any more: it may block for a
	 * second, where links that went down with -ESHUTDOWN have last words. -EOPNOTSUPP: it
	 * cannot be here, which has been said; of other errors the engine says that it goes
	 * without.
	 */
	int (*open)(struct hd_node *node, struct hd_port **out);
	void (*close)(struct hd_port *port);

	/*
	 * forked: this is a child that fork(2) has just made, and the node is dead in it. Close the
	 * descriptors of the port, its links and its listeners, so that the other ends notice the
	 * parent's death and a restart can listen again; change nothing else, for all of it is the
	 * parent's. Another thread may have been in the middle of anything. NULL: nothing to do.
	 */
	void (*forked)(struct hd_port *port);

	/*
	 * poll: take in what has arrived on active links, in bounded portions, and push out what
	 * waits. Called in every turn of progress while the port is active (hd_port_active).
	 * Returns how many packets or events it handled.
	 */
	int (*poll)(struct hd_port *port);

	/*
	 * say: a program is about to be told that what it has sent is over, and may be gone a
	 * moment later: give the kernel what has been gathered (hd_node_gathers), as far as it
	 * takes it. NULL: nothing ever is.
	 */
	void (*say)(struct hd_port *port);

	/*
	 * last: the process ends with the port open. Write out what waits, without blocking, or
	 * only look. True: something waits still; it is asked again for a second. NULL: nothing
	 * ever does, for what has been sent is where the other end finds it.
	 */
	bool (*last)(struct hd_port *port, bool only_look);

	/*
	 * arm: the node is about to sleep in epoll. Make sure that whatever arrives from now on
	 * makes one of the port's watched descriptors readable. Returns a positive number when
	 * something is there already: then the node does not sleep. disarm: it is awake again.
	 */
	int (*arm)(struct hd_port *port);
	void (*disarm)(struct hd_port *port);

	/*
	 * watchdog: make what arrives on active links show in the epoll set, where the node's
	 * thread sleeps though the program may poll as well, or (not `on`) no longer. Returns how
	 * many links there are of that kind. NULL: none.
	 */
	int (*watchdog)(struct hd_port *port, bool on);

	/*
	 * listen: bind and listen at l->addr (port 0: any), write the bound address back.
	 * -EADDRINUSE and the like.
	 */
	int (*listen)(struct hd_port *port, struct hd_listener *l);
	void (*unlisten)(struct hd_port *port, struct hd_listener *l);

	/*
	 * advertise: write what a node needs to join this one, at most `room` bytes; 0: nothing,
	 * this transport cannot be joined.
	 */
	size_t (*advertise)(struct hd_port *port, void *advert, size_t room);

	/*
	 * connect: start a link to a socket address or an advert. 0 and *out on success:
	 * hd_link_up() or hd_link_down() follows, perhaps before connect returns. Its own time-out
	 * (HEDDLE_CONNECT_TIMEOUT) is the transport's duty. A transport that is joined may find
	 * that the process which wrote the advert is dead: -ESRCH, here or from hd_link_down().
	 * `whose`: an advert's: the node that has shown it; when it leads to another the link goes
	 * down, for somebody has passed the advert of a third one on. NULL for addresses.
	 */
	int (*connect)(struct hd_port *port, const void *where, size_t len, const struct hd_node_id *whose,
		       struct hd_link **out);

	/*
	 * realm_at: whose it is that listens at this address of this host: enum hd_realm, or the
	 * user's. NULL: cannot be known.
	 */
	uint64_t (*realm_at)(struct hd_port *port, const struct sockaddr *addr);

	/*
	 * process: a pidfd of the process that wrote this advert, the caller's to close,
	 * on the kernel's word; -ESRCH: it is dead; another negative errno: that cannot
	 * be known. NULL likewise.
	 */
	int (*process)(struct hd_port *port, const void *advert, size_t len);

	/*
	 * joining: has somebody of this node come so far into joining us that the link may work at
	 * its end already, though its HELLO has not been delivered here? hd_link_missed() tells
	 * when that has come to nothing. NULL: nobody ever has.
	 */
	bool (*joining)(struct hd_port *port, const struct hd_node_id *id);

	/*
	 * settle: what stood in row `row` of our table of regions has been hidden. 0: no peer acts
	 * on it any more, and none will; -EAGAIN: one does at this moment, or has been stopped
	 * while it did: ask again. NULL: nobody reaches memory over this transport without the
	 * engine.
	 */
	int (*settle)(struct hd_port *port, uint32_t row);
};

struct hd_holder;

struct hd_link_ops {
	/*
	 * send, sendv: one packet of at most link->send_max payload bytes, all or nothing. The
	 * payload has been copied when they return. Packets arrive once each and in order. -EAGAIN:
	 * no room now, some later poll makes some; -ENOTCONN: down; -EFAULT: the payload's memory
	 * is gone (base/guard.h): nothing has been sent, or only what the other end takes for
	 * nothing (hd_sink_void).
	 */
	int (*send)(struct hd_link *link, const struct hd_pkt *pkt, const void *buf, size_t len);
	int (*sendv)(struct hd_link *link, const struct hd_pkt *pkt, const struct iovec *iov, int count,
		     size_t len);

	/*
	 * put: one packet whose payload (at most HD_FRAME_MAX bytes) may stay where it is. 1: the
	 * payload is free again already; 0: put->done is called when it is (never after
	 * hd_link_down: the engine takes all puts of a link back then); -EAGAIN and -EFAULT as for
	 * send. `iov` itself is copied. The same hd_put may be given several times: done is called
	 * as often; with put->gone where memory of that payload was, so that nothing has come of
	 * the packet.
	 */
	int (*put)(struct hd_link *link, const struct hd_pkt *pkt, const struct iovec *iov, int count,
		   size_t len, struct hd_put *put);

	/*
	 * unput: the payloads of a put whose done has not been called for all of them are about to
	 * go away. Keep a copy of what is still to be sent; done is not called any more. -ENOMEM:
	 * it could not be kept: the engine takes the link down.
	 */
	int (*unput)(struct hd_link *link, struct hd_put *put);

	/*
	 * warm: a short packet is likely to follow the one that has just been sent: prepare for it.
	 * NULL: there is nothing to prepare.
	 */
	void (*warm)(struct hd_link *link);

	/*
	 * accept: put `word` into row `row` (below HD_ACK_ROWS) of what the other end can look at
	 * any time, and look to it that a sleeper does who wants to (hd_node_page.sleep_heeds).
	 * accepted: what the other end has put there, 0 at first; also of a link that is down.
	 * NULL: there are no rows.
	 */
	void (*accept)(struct hd_link *link, uint32_t row, uint64_t word);
	uint64_t (*accepted)(struct hd_link *link, uint32_t row);

	/*
	 * grant: the other end may have spent `limit` units in all. granted: the newest limit
	 * that the other end gave us.
	 */
	void (*grant)(struct hd_link *link, uint32_t limit);
	uint32_t (*granted)(struct hd_link *link);

	/*
	 * offer: make the memory in o fetchable for the other end until unoffer(); writes up to
	 * HD_OFFER_MAX bytes into blob, which travels in the RTS, and returns their number; 0: this
	 * link cannot fetch, use frames. unoffer follows exactly when offer answered more than 0.
	 *
	 * get: fetch an offered message. 0: get->done is called later with 0, or with a negative
	 * errno when the memory cannot be reached (the buffer's content is undefined then, and the
	 * engine asks for frames). May call done before it returns. A negative answer: not started,
	 * use frames. unget: forget it (the link stays). 0: nobody writes to the buffer any more,
	 * and done is not called. -EINPROGRESS, but not with `wait`, which waits for that: the
	 * other process has been stopped in the middle of writing there. done follows with
	 * -ECANCELED when it is out of it or dead, unless unget has answered 0 by then.
	 */
	size_t (*offer)(struct hd_link *link, struct hd_offer *o, void *blob);
	void (*unoffer)(struct hd_link *link, struct hd_offer *o);
	int (*get)(struct hd_link *link, struct hd_get *get);
	int (*unget)(struct hd_link *link, struct hd_get *get, bool wait);

	/*
	 * settled: the link is down. Does nobody write to buffers of its gets any more, nor
	 * will? False: ask again in a while: nothing that is under way over the link ends
	 * before. NULL: nobody ever does.
	 */
	bool (*settled)(struct hd_link *link);

	/*
	 * direct: copy at once, without the other end's help, between our memory and a region of
	 * the other node, as r says; link->page is set where this works. Returns the bytes copied,
	 * the first ones of what was asked for and perhaps not all; -ESTALE: the region or the
	 * endpoint is not what r says any more; -EFAULT: our memory is not there; -EREMOTEIO:
	 * theirs is not; -EAGAIN: not now; -EOPNOTSUPP: not possible (any more), use packets;
	 * -ENOTCONN: down.
	 *
	 * fence: ask the other end to say when its engine has taken in everything sent over this
	 * link so far. 0 and a token, or -EAGAIN: no room to ask. passed: it has said so; it may
	 * also be asked about a token more than once. Until then nothing keeps a sleeper awake, and
	 * the answer wakes him.
	 *
	 * polls: the other end's program makes progress all the time, as far as can be known: a
	 * packet is dealt with at once.
	 */
	int64_t (*direct)(struct hd_link *link, const struct hd_direct *r);
	int (*fence)(struct hd_link *link, uint32_t *token);
	bool (*passed)(struct hd_link *link, uint32_t token);
	bool (*polls)(struct hd_link *link);

	/*
	 * silence: for how many ms the other host has acknowledged nothing, though it has something
	 * to acknowledge; 0: it has not, or does. `more`: that will be asked again before long, so
	 * its host may be asked whether it is there, as long as that wakes nobody; false: no
	 * longer. NULL: it is this host, or cannot be known.
	 */
	uint32_t (*silence)(struct hd_link *link, bool more);

	/*
	 * orphan: the process at the other end is dead, whoever has its descriptors.
	 * Take in what it has sent, then hd_link_down() with -ECONNRESET. NULL: the
	 * transport sees to that by itself.
	 */
	void (*orphan)(struct hd_link *link);

	/*
	 * realm: whose the other end is, which has said something: enum hd_realm, or the
	 * user's. NULL: HD_REALM_FAR.
	 */
	uint64_t (*realm)(struct hd_link *link);

	/*
	 * holder: on the kernel's word, which process of this host is at the other end. 0, or
	 * -EOPNOTSUPP: cannot be known, as where this is NULL.
	 */
	int (*holder)(struct hd_link *link, struct hd_holder *out);

	/*
	 * close: free the link, with everything that waits in it; what can be written
	 * still is, without waiting.
	 */
	void (*close)(struct hd_link *link);
};

/* ---- what the two share ---------------------------------------------------------------------- */

struct hd_port {
	const struct hd_transport *transport;
	struct hd_node *node;
	int active; /* users of hd_port_active; polled while above 0 */
	struct hd_port_past past;
};

/* Where the bytes of the packet that a link is receiving piece by piece go. */
struct hd_sink {
	struct iovec iov[HD_IOV_MAX];
	int count, cur; /* segments; the one being filled */
	size_t room;	/* bytes left in the segments */
	/* bytes to throw away after those: the message is longer than its buffer */
	uint64_t discard;
	/* the engine's: what has become of the packet so far, HD_S_OK or another status */
	enum hd_status status;
};

/* The engine's: the greeting, while a link does not belong to a live peer. */
struct hd_handshake {
	struct hd_link *link;
	/* initiator: whom it is made for; NULL once handed over, or for a joined link */
	struct hd_dest *dest;
	/* called end: where it was called; NULL for a joined link */
	struct hd_bound_port *bound_port;
	uint32_t slot;	  /* caller: the slot of the name that it calls */
	uint64_t key;	  /* caller: the authorization key that it calls with */
	struct hd_ep *ep; /* called end: who was called, once HELLO has come */
	uint16_t ep_gen;
	/* known once HELLO has come; NULL again when the link is no longer wanted for it */
	struct hd_peer *peer;
	bool up;    /* the transport has reported it up */
	bool ready; /* initiator: we know what it is for */
	bool initiator;
	bool joined;		     /* over a transport that is joined, not called */
	bool greeted;		     /* the other end's HELLO has come */
	struct hd_patience patience; /* until the greeting must be over */
	struct hd_timer timer;
};

/*
 * Where a region of the other node lies, as the engine has found it in the node page: immediate.c.
 */
struct hd_direct_seen {
	uint64_t key;
	/* of a segment: its first address as peers say it, and in the other process; bytes */
	uint64_t start, far, len;
	uint32_t mr, mr_state; /* row of the region */
	uint32_t ep, ep_state; /* row of the endpoint that it is reached through */
	/* index of the endpoint of ours that may, and hd_page_ep.epoch of it */
	uint32_t by, epoch;
	uint32_t access;       /* HD_PAGE_MR_READ or HD_PAGE_MR_WRITE; 0: nothing is known */
	struct hd_page_ep row; /* the endpoint's, but for the state */
};
#define HD_DIRECT_SEEN 8 /* a power of two */

struct hd_link {
	const struct hd_link_ops *ops;
	struct hd_port *port;
	struct hd_node *node;
	struct hd_peer *peer; /* the engine's; NULL until the HELLOs are exchanged */
	/* payload bytes that send() takes, set by the transport before up/accepted */
	uint32_t send_max;
	/* payload bytes up to which copying twice is the faster way; at most send_max */
	uint32_t eager_max;
	/* above it, messages of a queue pair come in faster side by side; UINT32_MAX: none */
	uint32_t beside_min;
	bool down;
	/*
	 * the engine's: messages have found their receives among very many of late:
	 * hd_deliver_ahead is of use
	 */
	bool is_deep;
	bool is_local;	/* the other end is a process of this host */
	uint64_t realm; /* the engine's: of the other end, once it has greeted */
	bool is_sealed; /* the other end has proved that it has the key of HEDDLE_KEY_FILE */
	/* the other node's, read-only and not to be trusted, where reach() works; else NULL */
	struct hd_node_page *page;
	/* address of the other end as this transport sees it, AF_UNSPEC when it has none */
	struct sockaddr_storage where;
	/* this link's row of the node page; the transport keeps pid and direct_* true */
	struct hd_page_link *row;
	/* valid between hd_deliver_begin and hd_deliver_end */
	struct hd_sink sink;
	struct hd_handshake shake;		    /* the engine's */
	struct hd_stream *stream;		    /* the engine's: what the sink belongs to */
	struct hd_direct_seen seen[HD_DIRECT_SEEN]; /* the engine's */
	/* the engine's: why it is down, a negative errno */
	int down_err;
	TAILQ_ENTRY(hd_link) entry;  /* the engine's: list of all links */
	TAILQ_ENTRY(hd_link) fallen; /* the engine's: list of those to be closed */
};

/* hd_port_wrote, hd_port_read: one call has moved so many bytes out of this process, or in. */
static inline void hd_port_wrote(struct hd_port *port, size_t n)
{
	port->past.calls_out++;
	port->past.bytes_out += n;
}
static inline void hd_port_read(struct hd_port *port, size_t n)
{
	port->past.calls_in++;
	port->past.bytes_in += n;
}

/*
 * hd_link_send, hd_link_sendv, hd_link_put: the calls of hd_link_ops, where
 * those who trace see them.
 */
static inline hd_traced int hd_link_send(struct hd_link *link, const struct hd_pkt *pkt, const void *buf,
					 size_t len)
{
	HD_TRACE_OUT(link, pkt, len);
	return link->ops->send(link, pkt, buf, len);
}
static inline hd_traced int hd_link_sendv(struct hd_link *link, const struct hd_pkt *pkt,
					  const struct iovec *iov, int count, size_t len)
{
	HD_TRACE_OUT(link, pkt, len);
	return link->ops->sendv(link, pkt, iov, count, len);
}
static inline hd_traced int hd_link_put(struct hd_link *link, const struct hd_pkt *pkt,
					const struct iovec *iov, int count, size_t len, struct hd_put *put)
{
	HD_TRACE_OUT(link, pkt, len);
	return link->ops->put(link, pkt, iov, count, len, put);
}

/*
 * hd_link_is_a_peers: has the other end said who it is, so that this is the link of
 * a peer, or may become it?
 */
static inline bool hd_link_is_a_peers(const struct hd_link *link)
{
	return link->peer || link->shake.peer;
}

struct hd_listener {
	struct sockaddr_storage addr; /* in: where; out: where really */
	/* the engine's: whose it is; transports pass the listener on */
	struct hd_bound_port *bound_port;
	void *priv; /* the transport's */
};

struct hd_put {
	void (*done)(struct hd_put *put);
	/* memory of the payload was, of the last one that done is called for */
	bool gone;
	struct hd_link *link;	   /* set by the engine */
	TAILQ_ENTRY(hd_put) entry; /* the transport's */
};

struct hd_offer {
	const struct iovec *iov; /* stays valid until unoffer */
	int count;
	uint64_t len;
	uint64_t priv[4]; /* the transport's */
};

/*
 * A copy that hd_link_ops.direct makes. Rows and states are those that were read
 * from the other node's page.
 */
struct hd_direct {
	uint32_t mr, mr_state;	  /* row of the region */
	uint32_t ep, ep_state;	  /* row of the endpoint that it is for */
	const struct iovec *near; /* ours: at least len bytes */
	int count;
	uint64_t far; /* theirs: an address in the other process, in one segment of the region */
	uint64_t len; /* above 0, at most HD_DIRECT_SLICE */
	bool out;     /* from us to them */
	/* out: the last 8 bytes must not be there before the others, because programs poll them */
	bool last;
};
#define HD_DIRECT_SLICE (4u << 20) /* bytes that are copied in one turn of progress, at most */

struct hd_get {
	const struct iovec *iov; /* buffer; stays valid until done */
	int count;
	uint64_t len;	   /* bytes to fetch: the smaller of message and buffer, above 0 */
	const void *offer; /* blob of the RTS, in private memory, valid during the call only */
	size_t offer_len;
	void (*done)(struct hd_get *get, int err);
	uint64_t priv[13];	   /* the transport's */
	TAILQ_ENTRY(hd_get) entry; /* the transport's */
};

/*
 * HD_LINK_NO_OFFER: what links have in their tables which offer nothing to be fetched, so that long
 * messages come in frames.
 */
static inline size_t hd_link_no_offer(struct hd_link *link, struct hd_offer *o, void *blob)
{
	return 0;
}
static inline void hd_link_no_unoffer(struct hd_link *link, struct hd_offer *o)
{
}
static inline int hd_link_no_get(struct hd_link *link, struct hd_get *get)
{
	return -EOPNOTSUPP;
}
static inline int hd_link_no_unget(struct hd_link *link, struct hd_get *get, bool wait)
{
	return 0;
}
#define HD_LINK_NO_OFFER \
	.offer = hd_link_no_offer, .unoffer = hd_link_no_unoffer, .get = hd_link_no_get, \
	.unget = hd_link_no_unget

/*
 * HD_LINK_NO_DIRECT: what links without direct() have in their tables. Their page is
 * NULL, so that nobody asks.
 */
static inline int64_t hd_link_no_direct(struct hd_link *link, const struct hd_direct *r)
{
	return -EOPNOTSUPP;
}
static inline int hd_link_no_fence(struct hd_link *link, uint32_t *token)
{
	return -EAGAIN;
}
static inline bool hd_link_no_passed(struct hd_link *link, uint32_t token)
{
	return false;
}
static inline bool hd_link_no_polls(struct hd_link *link)
{
	return false;
}
#define HD_LINK_NO_DIRECT \
	.direct = hd_link_no_direct, .fence = hd_link_no_fence, .passed = hd_link_no_passed, \
	.polls = hd_link_no_polls

/*
 * hd_direct_stands: are region and endpoint what r says? Looked at after the
 * announcement that r is acted on.
 */
static inline bool hd_direct_stands(struct hd_node_page *page, const struct hd_direct *r)
{
	struct hd_page_tables *t = hd_page_tables(page);

	/* acquire: nothing that is done because of it is done before it */
	return atomic_load_explicit(&t->mrs[r->mr].state, memory_order_acquire) == r->mr_state &&
	       atomic_load_explicit(&t->eps[r->ep].state, memory_order_acquire) == r->ep_state;
}

/* ---- groups: unreliable, and without links --------------------------------------------------- */

struct hd_cast;

struct hd_cast_want {
	const struct sockaddr *group; /* a multicast address and port */
	/* addresses of this host whose interfaces are used; sends leave by the first */
	const struct sockaddr_storage *from;
	int from_count; /* above 0 */
	bool sends, receives;
};

/*
 * A way to talk to groups: one constant table, named in engine/node/transports.c. The
 * rules above hold here too.
 */
struct hd_caster {
	const char *name;

	/*
	 * join: *out is a membership, which the caster embeds; arrivals are told by
	 * hd_cast_arrived(). Negative errno.
	 */
	int (*join)(struct hd_node *node, const struct hd_cast_want *want, struct hd_cast **out);

	/*
	 * cast: one datagram of at most HD_CAST_MAX bytes behind its head, in up to HD_IOV_MAX + 1
	 * pieces; lost if it cannot leave now. It is copied. 0, or -EFAULT: memory of it is gone
	 * (base/guard.h), and nothing has left.
	 */
	int (*cast)(struct hd_cast *cast, const struct hd_cast_head *head, const struct iovec *iov,
		    int count);
	void (*leave)(struct hd_cast *cast);
	void (*forked)(struct hd_cast *cast); /* as in struct hd_transport */
};

struct hd_cast {
	const struct hd_caster *caster;
	struct hd_node *node;
	struct hd_group *group; /* the engine's; set after join */
};

/* further keys, and payload */
#define HD_CAST_MAX ((16u << 10) + (HD_CAST_KEYS - 1) * sizeof(struct hd_cast_key))

/*
 * hd_cast_arrived: a datagram for the group, from somebody who may come (hd_allowed). All
 * of it is private memory.
 */
struct hd_arrived {
	const struct hd_cast_head *head;
	const struct sockaddr *from;
	const void *payload;
	size_t len;
};
void hd_cast_arrived(struct hd_cast *cast, const struct hd_arrived *what);

#include "engine/transport_calls.h" /* what the engine provides */

#endif
