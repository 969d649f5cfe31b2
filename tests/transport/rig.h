/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * A stand-in for the engine: everything that engine/transport.h says the engine provides, and a
 * watchful eye on the transport. Nodes of one process may be driven by turns from one thread, or
 * each by a thread of its own.
 *
 * Traffic is a plan of the sending end; rig_poll carries it out, so that with threads both sides
 * really work at once. Every packet tells its number in the direction, a checksum of its header and
 * the seed of its payload, so the receiving end needs no plan: it checks that nothing is lost,
 * repeated, out of order or changed. What is wrong is kept as the node's complaint, for the test to
 * look at; callbacks may run in a thread that cannot fail a test.
 */
#ifndef HD_TESTS_RIG_H
#define HD_TESTS_RIG_H

#include <pthread.h>
#include <stdatomic.h>

#include "engine/transport.h"

#define RIG_PORTS 2
#define RIG_EVENTS 32

/* How an end's packets travel; several may be set, then each packet draws one. */
enum rig_how {
	RIG_SEND = 1 << 0,
	RIG_SENDV = 1 << 1,
	RIG_PUT = 1 << 2,
	RIG_RTS = 1 << 3,   /* offer memory, the other end gets it and answers FIN */
	RIG_UNGET = 1 << 4, /* with RTS: now and then the other end gives up in the middle */
	RIG_ECHO = 1 << 5,  /* each packet that comes in adds one to be sent */
	RIG_UNPUT = 1 << 6, /* with PUT: now and then the payload is taken back before it is done */
};

struct rig_plan {
	uint64_t packets;      /* still to be sent */
	uint32_t least, most;  /* payload bytes; cut to what the way of sending takes */
	uint32_t burst;	       /* packets in one turn, at most; 0: no limit */
	unsigned how;	       /* enum rig_how */
	uint64_t message_most; /* RTS: bytes of the messages offered, from 1 */
	/* what comes in piece by piece, or is fetched, may find too small a buffer */
	bool truncates;
	/* the other end may close, so a get may fail; it must not succeed with wrong content */
	bool may_fail;
};

/* the place that the engine has in a link, which the rig uses for its own record */
#define rig_end hd_stream

/* One end of a link. It outlives the link, so that a test can ask afterwards. */
struct rig_end {
	struct hd_node *node;
	struct hd_link *link;	      /* NULL once closed */
	struct rig_end *other;	      /* the other end, if it is in this process and has greeted */
	struct hd_listener *listener; /* that was hit; NULL */
	uint64_t serial;	      /* of this end, never 0 */
	uint64_t random;
	bool up, accepted, greeted; /* greeted: its first packet has come */
	bool was_down, closed;
	int err; /* why it is down */
	struct rig_plan plan;
	uint64_t tx, rx;	  /* packets sent and received */
	uint64_t rx_bytes, again; /* payload received; times that -EAGAIN was answered */
	uint64_t fetched, unget, not_offered, unput;
	unsigned puts, offers, gets;	/* under way */
	uint32_t grant_out, grant_sent; /* what we have granted, and told the link */
	uint32_t grant_in;		/* newest seen */
	uint32_t grant_step;		/* added to grant_out for each packet received */
	struct rig_stream *stream;	/* a packet that comes piece by piece */
	TAILQ_HEAD(, rig_put) put_list;
	TAILQ_HEAD(, rig_offer) offer_list;
	TAILQ_HEAD(, rig_get) get_list;
	TAILQ_HEAD(, rig_fin) fin_list;
	TAILQ_ENTRY(rig_end) entry;
};

struct hd_node {
	/* protects everything below and the transport's objects, when the node has a thread */
	pthread_mutex_t lock;
	/* threads that wait for the lock; the node's own thread lets them go first */
	_Atomic int wanted;
	_Atomic bool stop;
	pthread_t thread;
	bool threaded;
	bool paused; /* does not poll */
	bool sleepy; /* with a thread: sleeps whenever a turn found nothing to do */
	bool allows; /* answer of hd_allowed */
	bool knows;  /* answer of hd_node_knows */
	bool in_send;
	bool armed;    /* sleeps, or is about to */
	int gathering; /* links with something gathered */
	/* -EAGAIN was answered in this turn: some later poll makes room, so it must not sleep */
	bool stuck;
	struct hd_node_id id;
	struct hd_node_page *page;
	int page_fd, wake_fd, epoll_fd;
	uint64_t probe;
	struct hd_watch wake;
	struct hd_port *port[RIG_PORTS];
	int port_count;
	struct epoll_event *events;
	int event_count;
	uint64_t turns, sleeps, slept_out; /* slept_out: sleeps that ended by time-out */
	uint64_t wakes;			   /* writes to wake_fd that were found */
	TAILQ_HEAD(, hd_link) links, fallen;
	struct hd_timers timers;
	TAILQ_HEAD(, rig_end) ends;
	unsigned opened, closed; /* links */
	unsigned rows;
	char complaint[256]; /* the first thing that was wrong, or empty */
};

/* ---- nodes ---- */

/* rig_node_open makes a node without ports, or ends the program. */
struct hd_node *rig_node_open(void);

/*
 * rig_node_close stops its thread, closes links and ports and frees it; listeners must be gone.
 * false: there was a complaint, which it has printed.
 */
bool rig_node_close(struct hd_node *node);

/* rig_forked does what the engine does in a child that was just forked. */
void rig_forked(struct hd_node *node);

/* rig_port_open gives the node a port of this transport; a complaint and NULL when that fails. */
struct hd_port *rig_port_open(struct hd_node *node, const struct hd_transport *transport);

/*
 * rig_lock, rig_unlock: around everything that touches a node which may have a
 * thread. Nothing otherwise.
 */
void rig_lock(struct hd_node *node);
void rig_unlock(struct hd_node *node);

/* rig_thread_start lets a thread of its own drive the node from now on; rig_node_close ends it. */
void rig_thread_start(struct hd_node *node);

/* rig_kick wakes a thread that sleeps with its node, after its plan was changed. */
void rig_kick(struct hd_node *node);

/*
 * rig_poll makes one turn of progress with the lock held: ports, descriptors, timers, plans; frees
 * links that are down. Returns how much was done.
 */
int rig_poll(struct hd_node *node);

/*
 * rig_sleep arms, waits in epoll for up to `ms` and disarms, with the lock held except while
 * waiting. 1: there was something or something came; 0: time is up.
 */
int rig_sleep(struct hd_node *node, int ms);

/* rig_arm, rig_disarm: the parts of rig_sleep. rig_arm is true when something is there already. */
bool rig_arm(struct hd_node *node);
void rig_disarm(struct hd_node *node);

/* rig_complain keeps the first complaint. */
void rig_complain(struct hd_node *node, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* ---- links ---- */

/* rig_connect starts a link; 0 and the end, or what connect() answered. */
int rig_connect(struct hd_port *port, const void *where, size_t len, struct rig_end **out);

/* rig_end_close declares the link broken, as the engine does to close it. */
void rig_end_close(struct rig_end *end, int err);

/* rig_pump sends what the plan of this end says, as much as the link takes; part of rig_poll. */
int rig_pump(struct rig_end *end);

/*
 * rig_receive checks a packet whose payload is complete: `have` bytes of `len` were kept. 0 or
 * -EPROTO. Part of hd_deliver.
 */
int rig_receive(struct rig_end *end, const struct hd_pkt *pkt, const void *payload, size_t have, size_t len);

/*
 * rig_end_drop takes back everything that is under way on a link that is down, before it is closed.
 */
void rig_end_drop(struct rig_end *end);

/* rig_end_idle: everything planned has been sent, and nothing is under way from this end. */
bool rig_end_idle(const struct rig_end *end);

/* ---- content ---- */

uint64_t rig_mix(uint64_t x);
uint64_t rig_draw(uint64_t *random);
uint64_t rig_between(uint64_t *random, uint64_t least, uint64_t most);

/*
 * rig_fill writes bytes [at, at + n) of the endless content that belongs to a seed; rig_same
 * tells whether they are those.
 */
void rig_fill(void *buf, uint64_t at, size_t n, uint64_t seed);
bool rig_same(const void *buf, uint64_t at, size_t n, uint64_t seed);

/*
 * rig_segments cuts n bytes at buf into segments of odd sizes, some of them empty, at most `max`;
 * returns their number. 0 bytes may give no segment.
 */
int rig_segments(uint64_t *random, void *buf, size_t n, struct iovec *iov, int max);

#endif
