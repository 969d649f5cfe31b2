/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Every state that an operation can be in, and every way in which it can end: there is one
 * completion or none, with the right errno, the other end is told where it waits for that, and
 * everything that the operation had is given back.
 *
 * Most states are reached by a peer that says word for word what it likes; those in
 * which a link copies by itself need a second node over shared memory, those of a send
 * queue a second queue pair.
 */
#include "engine/test/test_ends.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

enum event {
	ANSWERED,
	FAILED,	   /* answered with HD_S_ACCESS */
	CANCELLED, /* the endpoint is connected no longer */
	CLOSED,	   /* the endpoint closes */
	DOWN,	   /* the link is down */
	DIED,	   /* the other process is gone */
	REGION,	   /* the region that it uses closes */
	EVENTS
};
static const char *const event_names[EVENTS] = { "answered", "failed", "cancelled", "closed",
						 "down",     "died",   "region" };

/* ---- how they end ---------------------------------------------------------------------------- */

static void say_fin(struct scene *sc, int err)
{
	wire_say(sc->w, &(struct hd_pkt){ .kind = HD_PKT_FIN, .op = sc->id, .imm = (uint64_t)err }, NULL, 0);
}

/* The other end takes the message of a pair over shared memory. */
static void taken(struct scene *sc)
{
	struct side *other = &sc->p.b;

	if (sc->s != other)
		side_post(other, scene_mem, LONG, 1, 0, NULL, NULL);
}

static void say_ack(struct scene *sc)
{
	wire_say(sc->w, &(struct hd_pkt){ .kind = HD_PKT_ACK, .op = sc->id }, NULL, 0);
}

static void say_done(struct scene *sc)
{
	say_fin(sc, 0);
}

static void say_data(struct scene *sc)
{
	wire_say(sc->w, &(struct hd_pkt){ .kind = HD_PKT_DATA, .op = sc->id }, scene_out, SOME);
}

static void say_result(struct scene *sc)
{
	wire_say(sc->w, &(struct hd_pkt){ .kind = HD_PKT_RESULT, .op = sc->id }, scene_out, 8);
}

static void say_told(struct scene *sc)
{
	wire_say(sc->w, &(struct hd_pkt){ .kind = HD_PKT_TOLD, .op = sc->id }, "!", 1);
}

static void goes_on(struct scene *sc)
{
}

static void say_failed(struct scene *sc)
{
	say_fin(sc, HD_S_ACCESS);
}

static void say_told_failed(struct scene *sc)
{
	wire_say(sc->w, &(struct hd_pkt){ .kind = HD_PKT_TOLD, .op = sc->id, .imm = EACCES }, NULL, 0);
}

static void say_back(struct scene *sc)
{
	wire_say(sc->w,
		 &(struct hd_pkt){
			 .kind = HD_PKT_FIN, .flags = HD_FIN_F_BACK, .op = THEIRS, .imm = HD_S_CANCELLED },
		 NULL, 0);
}

static void other_closes(struct scene *sc)
{
	struct side *other = sc->s == &sc->p.a ? &sc->p.b : &sc->p.a;

	hd_ep_close(other->ep);
	other->ep = NULL;
}

static void region_closes(struct scene *sc)
{
	struct hd_mr *mr = sc->mr;

	sc->mr = NULL;
	assert_int_equal(hd_mr_close(mr), 0);
	if (sc->s->ep->qp) /* it completes in its turn */
		hd_ep_pause(sc->s->ep, false);
}

static void process_dies(struct scene *sc)
{
	if (sc->w)
		wire_hang_up(sc->w);
	if (sc->listener >= 0)
		close(sc->listener);
	sc->listener = -1;
	vm_seam.error = sc->w ? 0 : ESRCH;
}

static void link_goes_down(struct scene *sc)
{
	if (sc->listener >= 0) /* so that nobody answers when it is tried again */
		close(sc->listener);
	sc->listener = -1;
	hd_link_down(TAILQ_FIRST(&hd_links(sc->s->node)->links), -ECONNRESET, "test");
}

static void cancelled(struct scene *sc)
{
	struct hd_dest *dest = sc->s->to;

	if (sc->s->ep->qp) {
		hd_ep_fail(sc->s->ep);
		return;
	}
	hd_fence_fail(dest->peer, dest, HD_S_CANCELLED);
	hd_ep_ops_end(sc->s->ep, dest->peer, HD_S_CANCELLED);
}

static void closed(struct scene *sc)
{
	hd_ep_close(sc->s->ep);
	sc->s->ep = NULL;
}

/* ---- the table ------------------------------------------------------------------------------- */

/* What comes of it. */
struct cell {
	int told;	 /* completions here; -1: it cannot happen */
	int err;	 /* of the completion */
	int fin;	 /* errno of the FIN that the peer is sent; 0: none, or there is no wire */
	const char *why; /* it cannot happen */
};
#define IS(e) \
	{ \
		.told = 1, .err = (e) \
	}
#define SAYS(e, f) \
	{ \
		.told = 1, .err = (e), .fin = (f) \
	}
#define NO_WORD \
	{ \
		.told = 0 \
	}
#define ONLY_SAYS(f) \
	{ \
		.told = 0, .fin = (f) \
	}
#define NEVER(reason) \
	{ \
		.told = -1, .why = (reason) \
	}

#define NO_PEER NEVER("there is no peer that could")
#define NO_REGION NEVER("matched endpoints say of no region that it is of their sends")
#define NO_PROCESS NEVER("over TCP the process is gone when the link is down")
#define BY_ITSELF NEVER("nobody answers what we carry out ourselves")

struct row {
	const char *name;
	int state; /* see state_of */
	void (*begin)(struct scene *sc);
	void (*answered)(struct scene *sc);
	void (*failed)(struct scene *sc);
	uint32_t ordered; /* the flag with which it is tried once more; 0: not */
	struct cell cells[EVENTS];
};

static const struct row rows[] = {
	{ "a message for somebody who is not reached",
	  HD_OP_QUEUED,
	  at_unresolved,
	  NULL,
	  NULL,
	  HD_SEND_ORDERED,
	  { NO_PEER, NO_PEER, NO_PEER, NO_WORD, IS(HD_S_REFUSED), IS(HD_S_REFUSED), NO_REGION } },
	{ "a message without credit",
	  HD_OP_QUEUED,
	  at_queued,
	  say_done,
	  say_failed,
	  HD_SEND_ORDERED,
	  { IS(HD_S_PROTOCOL), IS(HD_S_PROTOCOL), IS(HD_S_CANCELLED), NO_WORD, IS(HD_S_LOST), IS(HD_S_LOST),
	    NO_REGION } },
	{ "a message behind a fence",
	  HD_OP_FENCED,
	  at_fenced,
	  say_done,
	  say_failed,
	  HD_SEND_ORDERED,
	  { IS(HD_S_PROTOCOL), IS(HD_S_PROTOCOL), IS(HD_S_CANCELLED), NO_WORD, IS(HD_S_LOST), IS(HD_S_LOST),
	    NO_REGION } },
	{ "a message to be acknowledged",
	  HD_OP_ACK,
	  at_acked,
	  say_ack,
	  say_failed,
	  HD_SEND_ORDERED,
	  { IS(0), IS(HD_S_ACCESS), IS(HD_S_CANCELLED), NO_WORD, IS(HD_S_LOST), IS(HD_S_LOST), NO_REGION } },
	{ "a long message, announced",
	  MOVES + HD_TRANSFER_OFFERED,
	  at_offered,
	  say_done,
	  say_failed,
	  HD_SEND_ORDERED,
	  { IS(0), IS(HD_S_ACCESS), IS(HD_S_CANCELLED), NO_WORD, IS(HD_S_LOST), IS(HD_S_LOST), NO_REGION } },
	{ "a long message, offered",
	  MOVES + HD_TRANSFER_OFFERED,
	  at_offered_memory,
	  taken,
	  other_closes,
	  HD_SEND_ORDERED,
	  { IS(0), IS(HD_S_REFUSED), IS(HD_S_CANCELLED), NO_WORD, IS(HD_S_LOST),
	    NEVER("it lies here; who fetches it is the one to notice, or the link is down"), NO_REGION } },
	{ "frames",
	  MOVES + HD_TRANSFER_FRAMES,
	  at_framing,
	  say_done,
	  say_failed,
	  HD_SEND_ORDERED,
	  { IS(0), IS(HD_S_ACCESS), SAYS(HD_S_CANCELLED, HD_S_CANCELLED), ONLY_SAYS(HD_S_CANCELLED),
	    IS(HD_S_LOST), IS(HD_S_LOST), NO_REGION } },
	{ "all frames out",
	  MOVES + HD_TRANSFER_SENT,
	  at_all_frames_out,
	  say_done,
	  say_failed,
	  HD_SEND_ORDERED,
	  { IS(0), IS(HD_S_ACCESS), IS(HD_S_CANCELLED), NO_WORD, IS(HD_S_LOST), IS(HD_S_LOST), NO_REGION } },
	{ "a short write",
	  HD_OP_ACK,
	  at_written_short,
	  say_done,
	  say_failed,
	  HD_SEND_ORDERED,
	  { IS(0), IS(HD_S_ACCESS), IS(HD_S_CANCELLED), NO_WORD, IS(HD_S_LOST), IS(HD_S_LOST), NO_REGION } },
	{ "a long write that messages wait for",
	  MOVES + HD_TRANSFER_OFFERED,
	  at_written_long,
	  say_done,
	  say_failed,
	  HD_SEND_ORDERED,
	  { IS(0), IS(HD_S_ACCESS), IS(HD_S_CANCELLED), NO_WORD, IS(HD_S_LOST), IS(HD_S_LOST), NO_REGION } },
	{ "a read",
	  MOVES + HD_TRANSFER_INTAKE,
	  at_reading,
	  say_data,
	  say_failed,
	  HD_SEND_ORDERED,
	  { IS(0), IS(HD_S_ACCESS), IS(HD_S_CANCELLED), ONLY_SAYS(HD_S_CANCELLED), IS(HD_S_LOST),
	    IS(HD_S_LOST), NO_REGION } },
	{ "an atomic operation",
	  HD_OP_ATOMIC,
	  at_atomic,
	  say_result,
	  say_failed,
	  HD_SEND_ORDERED,
	  { IS(0), IS(HD_S_ACCESS), IS(HD_S_CANCELLED), NO_WORD, IS(HD_S_LOST), IS(HD_S_LOST), NO_REGION } },
	{ "a question",
	  HD_OP_ASKED,
	  at_question,
	  say_told,
	  say_told_failed,
	  0,
	  { IS(0), IS(HD_S_ACCESS), IS(HD_S_CANCELLED), NO_WORD, IS(HD_S_LOST), IS(HD_S_LOST), NO_REGION } },
	{ "a write that we carry out ourselves",
	  HD_OP_DIRECT,
	  at_direct,
	  goes_on,
	  NULL,
	  HD_SEND_ORDERED,
	  { IS(0), BY_ITSELF, IS(HD_S_CANCELLED), NO_WORD, IS(HD_S_LOST), IS(HD_S_LOST), IS(HD_S_ACCESS) } },
	{ "a message that comes in frames",
	  MOVES + HD_TRANSFER_INTAKE,
	  at_message_comes,
	  say_data,
	  say_failed,
	  HD_RECV_ORDERED,
	  { IS(0), IS(HD_S_ACCESS), IS(HD_S_CANCELLED), ONLY_SAYS(HD_S_REFUSED), IS(HD_S_LOST), IS(HD_S_LOST),
	    SAYS(HD_S_PROTECTION, HD_S_OPERATIONAL) } },
	{ "a message that is fetched",
	  MOVES + HD_TRANSFER_GET,
	  at_fetched,
	  goes_on,
	  other_closes,
	  HD_RECV_ORDERED,
	  { IS(0), IS(HD_S_CANCELLED), IS(HD_S_CANCELLED), NO_WORD, IS(HD_S_LOST), IS(HD_S_LOST),
	    IS(HD_S_PROTECTION) } },
	{ "a peer's write",
	  MOVES + HD_TRANSFER_INTAKE,
	  at_write_comes,
	  say_data,
	  say_failed,
	  0,
	  { NO_WORD, NO_WORD, ONLY_SAYS(0), ONLY_SAYS(HD_S_REFUSED), NO_WORD, NO_WORD,
	    ONLY_SAYS(HD_S_ACCESS) } },
	{ "a peer's read",
	  MOVES + HD_TRANSFER_FRAMES,
	  at_read_is_served,
	  goes_on,
	  say_back,
	  0,
	  { NO_WORD, NO_WORD, ONLY_SAYS(HD_S_REFUSED), ONLY_SAYS(HD_S_REFUSED), NO_WORD, NO_WORD,
	    ONLY_SAYS(HD_S_ACCESS) } },
	{ "a queue pair's message, announced",
	  MOVES + HD_TRANSFER_OFFERED,
	  at_pair_announced,
	  at_pair_is_received,
	  at_pair_is_refused,
	  0,
	  { IS(0), IS(HD_S_LENGTH), IS(HD_S_CANCELLED), NO_WORD, IS(HD_S_LOST), NO_PROCESS,
	    IS(HD_S_PROTECTION) } },
	{ "a queue pair's message that waits",
	  HD_OP_QUEUED,
	  at_pair_waits,
	  at_pair_is_received,
	  NULL,
	  0,
	  { IS(0), NEVER("nobody has heard of it"), IS(HD_S_CANCELLED), NO_WORD,
	    NEVER("it waits for the next link"), NO_PROCESS, IS(HD_S_PROTECTION) } },
	{ "a message that a queue pair receives",
	  MOVES + HD_TRANSFER_INTAKE,
	  at_pair_receives,
	  goes_on,
	  other_closes,
	  0,
	  { IS(0), IS(HD_S_CANCELLED), IS(HD_S_CANCELLED), NO_WORD, IS(HD_S_LOST), NO_PROCESS,
	    IS(HD_S_PROTECTION) } },
};

/* ---- trying all of them ---------------------------------------------------------------------- */

static void happens(struct scene *sc, const struct row *row, enum event event)
{
	static void (*const always[EVENTS])(struct scene * sc) = { [CANCELLED] = cancelled,
								   [CLOSED] = closed,
								   [DOWN] = link_goes_down,
								   [DIED] = process_dies,
								   [REGION] = region_closes };

	if (event == ANSWERED)
		row->answered(sc);
	else if (event == FAILED)
		row->failed(sc);
	else
		always[event](sc);
}

static void nothing_is_left_at(struct hd_peer *peer)
{
	assert_false(hd_peer_inspect(peer).pending);
	assert_false(hd_peer_inspect(peer).queued);
	assert_false(hd_peer_inspect(peer).framing);
	assert_false(hd_peer_inspect(peer).direct);
	assert_false(hd_peer_inspect(peer).answers);
	assert_int_equal(hd_peer_inspect(peer).send_fences, 0);
	assert_int_equal(hd_peer_inspect(peer).stalled, 0);
	assert_int_equal(hd_peer_inspect(peer).taken_in, 0);
	assert_int_equal(hd_peer_inspect(peer).held, 0);
	hd_credit_check(peer);
	hd_xfer_check(peer);
}

static void nothing_is_left(struct scene *sc)
{
	struct hd_node *node = sc->s->node;
	struct hd_peer *peer, *next;
	struct scene_counts now;

	if (!sc->s->ep)
		side_endpoint(sc->s, HD_EP_RDM);
	scene_count(sc->s, &now);
	for (size_t i = 0; i < sizeof(now.pool) / sizeof(now.pool[0]); i++)
		if (now.pool[i] != sc->before.pool[i])
			fail_msg("%u of pool %zu, where there were %u", now.pool[i], i, sc->before.pool[i]);
	assert_int_equal(now.ids, sc->before.ids);
	assert_int_equal(now.tx_ops, sc->before.tx_ops);
	assert_int_equal(now.dest_refs, sc->before.dest_refs);
	assert_int_equal(now.storing, 0);
	assert_int_equal(hd_ep_inspect(sc->s->ep).send_fences, 0);
	assert_false(hd_ep_inspect(sc->s->ep).coming_in);
	assert_int_equal(hd_ep_inspect(sc->s->ep).fenced, 0);
	assert_int_equal(hd_ep_inspect(sc->s->ep).send_places, 0);
	if (sc->s->to)
		assert_true(TAILQ_EMPTY(&sc->s->to->waiting));
	if (sc->mr) {
		assert_int_equal(hd_mr_inspect(sc->mr).ops, 0);
		assert_false(hd_mr_inspect(sc->mr).holds);
	}
	HASH_ITER(hh, hd_links(node)->peers, peer, next)
		nothing_is_left_at(peer);
}

static void try_cell(const struct row *row, enum event event, uint32_t flags)
{
	const struct cell *cell = &row->cells[event];
	struct scene *sc = calloc(1, sizeof(*sc));

	print_message("# %s, %s%s\n", row->name, event_names[event], flags ? ", in order" : "");
	scene_begin(sc, flags);
	row->begin(sc);
	assert_non_null(scene_op(sc));
	assert_int_equal(scene_state(scene_op(sc)), row->state);
	assert_int_equal(sc->told, 0);
	if (event == REGION && !sc->mr) { /* a receive in two segments */
		scene_end(sc);
		free(sc);
		return;
	}
	happens(sc, row, event);
	scene_settle(sc, cell->told);
	assert_int_equal(sc->told, cell->told);
	if (cell->told)
		assert_int_equal(sc->err, cell->err);
	if (sc->w && cell->fin) {
		assert_int_equal(sc->fins, 1);
		assert_int_equal(sc->fin, cell->fin);
	}
	nothing_is_left(sc);
	scene_end(sc);
	free(sc);
}

static void every_end(void **state)
{
	const struct row *row = *state;

	for (enum event e = 0; e < EVENTS; e++) {
		if (row->cells[e].told < 0)
			continue;
		try_cell(row, e, 0);
		if (row->ordered)
			try_cell(row, e, row->ordered);
	}
}

static int bytes_get(void **state)
{
	scene_mem = calloc(1, LONG);
	scene_out = calloc(1, LONG);
	return scene_mem && scene_out ? 0 : -1;
}

static int bytes_put(void **state)
{
	free(scene_mem);
	free(scene_out);
	return 0;
}

int main(void)
{
	struct CMUnitTest tests[sizeof(rows) / sizeof(rows[0])];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		tests[i] = (struct CMUnitTest){ .name = rows[i].name,
						.test_func = every_end,
						.initial_state = (void *)&rows[i] };
	return cmocka_run_group_tests(tests, bytes_get, bytes_put);
}
