/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * The stage of ends_test: a node with one operation in one of its states, and an other end, which
 * is a wire, a second node, or nobody. test_ends.c has what they share, test_ends_begin.c brings
 * operations into their states.
 */
#ifndef HD_ENGINE_TEST_ENDS_H
#define HD_ENGINE_TEST_ENDS_H

#include "engine/ep/ep.h"
#include "engine/link/link.h"
#include "engine/mr/mr.h"
#include "engine/name/name.h"
#include "engine/qp/qp.h"
#include "engine/rma/rma.h"
#include "engine/test/test_pair.h"
#include "engine/test/test_qp.h"
#include "engine/test/test_wire.h"
#include "engine/xfer/xfer.h"
#include "transport/tcp/frame.h"
#include "transport/vm_seam.h"

#define LONG (8u << 20) /* more than the sockets and the link take */
#define SOME 100000u	/* long, and one frame */
#define SHORT 64u
#define KEY 77
#define ALL \
	(HD_ACCESS_REMOTE_READ | HD_ACCESS_REMOTE_WRITE | HD_ACCESS_REMOTE_ATOMIC | HD_ACCESS_REMOTE_FETCH)
#define THEIRS 4711 /* number of an operation of the peer */
#define RIGHTS (HD_EP_REMOTE_READ | HD_EP_REMOTE_WRITE)

extern unsigned char *scene_mem, *scene_out; /* LONG bytes each */

struct scene_counts {
	unsigned pool[5 + HD_BYTES_CLASSES]; /* objects that can be had without another slab */
	uint32_t ids, tx_ops, dest_refs, storing;
};

struct scene {
	struct pair p;
	struct side *s; /* whom we look at: p.a; or p.b, where that receives */
	struct wire *w; /* the other end, or NULL: that is the other side of the pair */
	int listener;	/* somebody who takes calls and says nothing; -1: nobody */
	uint32_t flags; /* of what is posted */
	struct hd_mr *mr;
	bool local; /* mr is of our own segments */
	struct hd_ask ask;
	uint32_t id; /* the operation's number */
	int told;    /* completions of it */
	int err;     /* of the last */
	int fins;    /* that the wire has heard */
	int fin;     /* errno of the last */
	struct scene_counts before;
	/* what the wire hears */
	struct hd_tcp_frame frame;
	size_t have; /* bytes of frame */
	size_t skip; /* bytes of its payload that are still to come */
};

/*
 * scene_begin: nothing is there yet. scene_of_wire: a peer at the other end of a wire, whose
 * endpoint is known by name. scene_of_pair: two nodes that have talked to each other.
 */
void scene_begin(struct scene *sc, uint32_t flags);
void scene_of_wire(struct scene *sc);
void scene_of_pair(struct scene *sc, const char *transport);
void scene_end(struct scene *sc);

/*
 * scene_op: the operation, while there is one. scene_state: an enum hd_op_state, or MOVES and an
 * enum hd_transfer_state. scene_wait: until it is in this one.
 */
#define MOVES 100
struct hd_transfer *scene_op(const struct scene *sc);
int scene_state(struct hd_transfer *t);
void scene_wait(struct scene *sc, int state);

/*
 * scene_turn: a look at all. scene_settle: until it has ended, with so many completions, and for a
 * while on. scene_asked: its question has been answered.
 */
void scene_turn(struct scene *sc);
void scene_settle(struct scene *sc, int told);
void scene_asked(struct hd_ask *ask, int err);

/*
 * scene_count: what can be given back. scene_pools_warm: every pool has its first slab, so that
 * what is taken and given back can be counted.
 */
void scene_count(const struct side *s, struct scene_counts *c);
void scene_pools_warm(struct hd_node *node);

/* scene_dest: the endpoint of this port. */
struct hd_dest *scene_dest(struct side *s, uint16_t port);

/* ---- how they get into their states: test_ends_begin.c --------------------------------------- */

void at_unresolved(struct scene *sc);
void at_acked(struct scene *sc);
void at_offered(struct scene *sc);
void at_framing(struct scene *sc);
void at_all_frames_out(struct scene *sc);
void at_fenced(struct scene *sc);
void at_queued(struct scene *sc);
void at_reading(struct scene *sc);
void at_written_short(struct scene *sc);
void at_written_long(struct scene *sc);
void at_atomic(struct scene *sc);
void at_question(struct scene *sc);
void at_direct(struct scene *sc);
void at_offered_memory(struct scene *sc);
void at_message_comes(struct scene *sc);
void at_write_comes(struct scene *sc);
void at_read_is_served(struct scene *sc);
void at_fetched(struct scene *sc);
void at_pair_announced(struct scene *sc);
void at_pair_waits(struct scene *sc);
void at_pair_receives(struct scene *sc);
void at_pair_is_received(struct scene *sc);
void at_pair_is_refused(struct scene *sc);

#endif
