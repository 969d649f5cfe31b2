/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * What the files of engine_fuzz share: the scene of a run, the fake transports (engine_fake.c),
 * and the program's steps.
 */
#ifndef HD_TESTS_ENGINE_FUZZ_H
#define HD_TESTS_ENGINE_FUZZ_H

#include "fuzz/fuzz.h"

#include "engine/engine.h"
#include "engine/transport.h"

#define LINKS 8
#define EPS 2
#define CONNS 2
#define DESTS 4
#define CLAIMS 4
#define BUFFERS 64
#define REGIONS 4
#define REGION_LEN 600
#define RECENT 8
#define PAIRS 6
#define GROUPS 4
#define SEND_MAX (64u << 10)

/* ---- the transports -------------------------------------------------------------------------- */

struct fake_link {
	struct hd_link base; /* first */
	bool up, open;	     /* open: a packet has begun and not ended */
	bool again;	     /* answers -EAGAIN */
	bool offers_nothing, puts_stay;
	int offers;
	TAILQ_HEAD(, hd_put) puts;
	TAILQ_HEAD(, hd_get) gets;
};

/* A packet that the engine has sent, so that it can be answered. */
struct said {
	struct hd_pkt pkt;
	struct fake_link *link; /* NULL: closed */
	uint64_t first;		/* word of the payload: RTS: length of the message */
	uint64_t at;		/* CTS: bytes sent so far */
};

struct fake_link *link_make(struct hd_port *port); /* NULL: there are enough */
void link_up(struct fake_link *l);

/* ---- the program ----------------------------------------------------------------------------- */

/* Memory that the peer may reach: given back as soon as its region is closed. */
struct region {
	struct hd_mr *mr; /* NULL: none; its key is its place + 1 */
	unsigned char *at;
};

/*
 * A buffer, gone as soon as a completion says that it is free, or its queue
 * pair is reset or closed.
 */
struct buffer {
	int place, count;
	int pair;   /* whose queue pair's alone it is; -1: none's */
	bool multi; /* takes many messages: free when a completion says so */
	struct iovec iov[3];
};

/* A membership of an endpoint, or of queue pair `pair`. */
struct member {
	struct hd_group *group; /* NULL: none */
	struct hd_ep *ep;
};

struct fuzz {
	struct input in;
	struct hd_node *node;
	struct hd_port *port[2]; /* called, joined */
	struct fake_link *link[LINKS];
	struct hd_listener *listener[(EPS + CONNS + 1 + PAIRS + 2) * 4];
	struct hd_ep *ep[EPS];
	struct hd_ep *conn[CONNS]; /* connected endpoints, or to be */
	struct hd_service *service;
	struct hd_evq *evq;
	struct hd_request *request; /* the one that was read last */
	uint64_t token;		    /* of the last ACCEPT */
	unsigned asker;		    /* place of the link of the last CONNECT */
	uint32_t asker_src;
	uint16_t conn_gen[CONNS];
	struct hd_dest *dest[DESTS];
	struct hd_cq *cq;
	struct hd_claim *claim[CLAIMS];
	struct buffer *buffer[BUFFERS];
	struct region region[REGIONS];
	/* engine_pairs.c */
	struct hd_ep *pair[PAIRS];
	struct hd_rq *shared; /* a receive queue of some of them */
	struct hd_ep *poster; /* posts there */
	struct hd_ep *named;  /* a queue that XRC messages name */
	struct hd_rq *named_rq;
	struct hd_cq *pair_cq;
	struct region bindable;
	struct hd_mr *window[2];
	struct member member[GROUPS];
	struct hd_cast *cast[GROUPS];
	/* what was sent */
	struct said recent[RECENT];
	unsigned recents;
	int links;
	uint16_t next_port;
	unsigned char bytes[SEND_MAX];
	unsigned sum; /* of everything read, so that it is read */
};
extern struct fuzz f;

struct buffer *buffer_make(size_t len); /* NULL: there are enough */
void buffer_free(struct buffer *b);
void drain(void); /* read all completions */

/*
 * pick_len: a length up to limit, often an odd one. pick_link: a link, or NULL.
 * may_speak: it takes a packet now.
 */
size_t pick_len(size_t limit);
struct fake_link *pick_link(void);
bool may_speak(const struct fake_link *l);

/* pick_pkt: one whose fields are often right. pick_ep: one of f.ep. */
struct hd_pkt pick_pkt(void);
struct hd_ep *pick_ep(void);

/* deliver: a packet with its payload in memory of exactly its size; in pieces: begins it. */
void deliver(struct fake_link *l, const struct hd_pkt *pkt, const void *from, size_t len);
void deliver_some(struct fake_link *l, const struct hd_pkt *pkt, size_t len, bool whole);

/* ---- memory, engine_memory.c ----------------------------------------------------------------- */

/*
 * wanted_*: the payload, in f.bytes, of a READ or WRITE with `bytes` bytes, of an ATOMIC; its
 * length. pick_segs: often right; how many.
 */
size_t wanted_body(unsigned how, uint64_t bytes);
size_t wanted_atomic_body(void);
int pick_segs(struct hd_rma_seg *seg, uint64_t bytes, uint64_t unit);

void region_open(unsigned place, unsigned how);
void region_close(struct region *r);
void step_region(void);
void step_wanted(void);
void step_wanted_put(void);
void step_wanted_atomic(void);
void step_want(void);
void step_want_atomic(void);

/* ---- connections, engine_conns.c ------------------------------------------------------------- */

void connections_begin(void);
void connections_end(void);
void step_connection(void);

/* ---- queue pairs and groups, engine_pairs.c -------------------------------------------------- */

void pairs_begin(void);
void pairs_end(void);
void pairs_ready(void);			   /* each for endpoint i % 3 of a peer that has settled */
void groups_leave(const struct hd_ep *ep); /* NULL: all */
void step_pair_state(void);
void step_pair_recv(void);
void step_pair_post(void);
void step_pair_wanted(void);
void step_pair_answer(void);
void step_group(void);

#endif
