/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
#include "engine/test/test_ends.h"

#include <arpa/inet.h>
#include <netinet/in.h>

/* ---- ours: how they get there ---------------------------------------------------------------- */

static void post_message(struct scene *sc, size_t len, uint32_t flags)
{
	assert_int_equal(hd_send(sc->s->ep, sc->s->to, scene_out, len, 1, 0, sc,
				 TAGGED(flags | sc->flags | HD_SEND_COMPLETE)),
			 0);
}

static void hear(struct scene *sc, uint8_t kind)
{
	wire_hear_kind(sc->w, kind);
	sc->id = sc->w->pkt.op;
}

void at_unresolved(struct scene *sc)
{
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(in);

	sc->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(sc->listener, (void *)&in, sizeof(in)), 0);
	assert_int_equal(listen(sc->listener, 5), 0);
	assert_int_equal(getsockname(sc->listener, (void *)&in, &len), 0);
	side_open(sc->s);
	sc->s->to = scene_dest(sc->s, ntohs(in.sin_port));
	scene_pools_warm(sc->s->node);
	scene_count(sc->s, &sc->before);
	post_message(sc, SHORT, HD_SEND_INJECT);
	sc->id = TAILQ_FIRST(&sc->s->to->waiting)->t.pending.id;
}

void at_acked(struct scene *sc)
{
	scene_of_wire(sc);
	post_message(sc, SHORT, HD_SEND_ACKED);
	hear(sc, HD_PKT_EAGER);
}

void at_offered(struct scene *sc)
{
	scene_of_wire(sc);
	post_message(sc, LONG, HD_SEND_INJECT);
	hear(sc, HD_PKT_RTS);
}

static void at_clear_to_send(struct scene *sc, uint64_t want)
{
	at_offered(sc);
	wire_say(sc->w, &(struct hd_pkt){ .kind = HD_PKT_CTS, .op = sc->id, .imm = THEIRS, .tag = want },
		 NULL, 0);
}

void at_framing(struct scene *sc)
{
	at_clear_to_send(sc, LONG);
	scene_wait(sc, MOVES + HD_TRANSFER_FRAMES);
	for (int i = 0; i < 20; i++)
		hd_node_poll(sc->s->node);
}

void at_all_frames_out(struct scene *sc)
{
	at_clear_to_send(sc, SHORT);
	scene_wait(sc, MOVES + HD_TRANSFER_SENT);
}

/* A message that waits to be acknowledged is before it. */
void at_fenced(struct scene *sc)
{
	scene_of_wire(sc);
	assert_int_equal(hd_send(sc->s->ep, sc->s->to, scene_out, SHORT, 1, 0, NULL,
				 TAGGED(HD_SEND_ACKED | HD_SEND_GATED)),
			 0);
	wire_hear_kind(sc->w, HD_PKT_EAGER);
	post_message(sc, SHORT, HD_SEND_FENCE | HD_SEND_GATED | HD_SEND_INJECT);
	sc->id = TAILQ_FIRST(&sc->s->ep->order->fenced)->t.pending.id;
}

/* It has passed its fence, and there is no credit. */
void at_queued(struct scene *sc)
{
	struct hd_peer *peer;

	at_fenced(sc);
	peer = sc->s->to->peer;
	peer->credit.limit = peer->credit.spent;
	wire_say(sc->w, &(struct hd_pkt){ .kind = HD_PKT_ACK, .op = sc->w->pkt.op }, NULL, 0);
	scene_wait(sc, HD_OP_QUEUED);
}

static void post_rma(struct scene *sc, enum hd_rma_op op, size_t len)
{
	const struct hd_rma_seg seg = { 0, len, KEY };
	const struct iovec iov = { scene_out, len };

	assert_int_equal(hd_rma(sc->s->ep, sc->s->to,
				&(struct hd_rma_args){ .op = op,
						       .iov = &iov,
						       .count = 1,
						       .segs = &seg,
						       .seg_count = 1,
						       .ctx = sc,
						       .flags = HD_SEND_COMPLETE | sc->flags }),
			 0);
}

void at_reading(struct scene *sc)
{
	scene_of_wire(sc);
	post_rma(sc, HD_RMA_READ, SOME);
	hear(sc, HD_PKT_READ);
}

void at_written_short(struct scene *sc)
{
	scene_of_wire(sc);
	post_rma(sc, HD_RMA_WRITE, SHORT);
	hear(sc, HD_PKT_PUT);
}

void at_written_long(struct scene *sc)
{
	scene_of_wire(sc);
	sc->s->ep->policy |= HD_EP_SAW;
	post_rma(sc, HD_RMA_WRITE, LONG);
	hear(sc, HD_PKT_WRITE);
}

void at_atomic(struct scene *sc)
{
	const struct hd_rma_seg seg = { 0, 8, KEY };
	const struct iovec iov = { scene_out, 8 }, result = { scene_out + 8, 8 };

	scene_of_wire(sc);
	assert_int_equal(hd_atomic(sc->s->ep, sc->s->to,
				   &(struct hd_atomic_args){ .how = HD_ATOMIC_FETCH,
							     .op = HD_ATOMIC_SUM,
							     .type = HD_ATOMIC_U64,
							     .iov = &iov,
							     .count = 1,
							     .result_iov = &result,
							     .result_count = 1,
							     .segs = &seg,
							     .seg_count = 1,
							     .ctx = sc,
							     .flags = HD_SEND_COMPLETE | sc->flags }),
			 0);
	hear(sc, HD_PKT_ATOMIC);
}

void at_question(struct scene *sc)
{
	scene_of_wire(sc);
	sc->ask.told = scene_asked;
	assert_int_equal(hd_ep_ask(sc->s->ep, sc->s->to, "?", 1, &sc->ask), 0);
	hear(sc, HD_PKT_ASK);
}

/* Over shared memory: it is in the list of those that we carry out ourselves. */
void at_direct(struct scene *sc)
{
	scene_of_pair(sc, "shm");
	sc->mr = side_region(&sc->p.b, KEY, scene_mem, LONG, ALL, 0);
	hd_ep_show(sc->p.b.ep);
	pair_settle(&sc->p, 1);
	pair_rest(&sc->p);
	sc->s->ep->policy |= HD_EP_SAW;
	post_rma(sc, HD_RMA_WRITE, LONG);
	sc->id = TAILQ_FIRST(&sc->s->to->peer->direct_ops)->t.pending.id;
}

/* Over shared memory: the message is offered to be fetched. */
void at_offered_memory(struct scene *sc)
{
	scene_of_pair(sc, "shm");
	post_message(sc, LONG, 0);
	sc->id = hd_transfers_first(sc->s->to->peer)->pending.id;
	assert_true(scene_op(sc)->offered);
	pair_settle(&sc->p, 1);
}

/* ---- a peer's: how they get there ------------------------------------------------------------ */

static const struct hd_mr_fault fault = { NULL, HD_S_PROTECTION };

static struct hd_mr *local_region(struct side *s, void *at, size_t len)
{
	const struct iovec iov = { at, len };
	struct hd_mr *mr;

	assert_int_equal(hd_mr_open(s->node,
				    &(struct hd_mr_attr){ .iov = &iov,
							  .count = 1,
							  .access = HD_ACCESS_LOCAL_WRITE,
							  .flags = HD_MR_VIRTUAL,
							  .fault = &fault },
				    &mr),
			 0);
	return mr;
}

/* A receive of LONG bytes, in two segments or, of a region, in one. */
static void post_receive(struct scene *sc)
{
	const struct iovec iov[2] = { { scene_mem, sc->local ? LONG : LONG / 2 },
				      { scene_mem + LONG / 2, LONG / 2 } };

	if (sc->local)
		sc->mr = local_region(sc->s, scene_mem, LONG);
	assert_int_equal(hd_recv(sc->s->ep, &(struct hd_recv_args){ .iov = iov,
								    .count = sc->local ? 1 : 2,
								    .flags = HD_RECV_COMPLETE |
									     HD_RECV_TAGGED | sc->flags,
								    .tag = 1,
								    .region = sc->mr,
								    .regions = sc->local ? &sc->mr : NULL,
								    .ctx = sc }),
			 0);
}

void at_message_comes(struct scene *sc)
{
	struct hd_rts rts = { .len = SOME };
	struct hd_pkt pkt;

	scene_of_wire(sc);
	sc->local = !sc->flags;
	post_receive(sc);
	pkt = wire_eager(sc->w, 1, 0);
	pkt.kind = HD_PKT_RTS;
	pkt.op = THEIRS;
	pkt.src = 3;
	wire_say(sc->w, &pkt, &rts, offsetof(struct hd_rts, offer));
	wire_hear_kind(sc->w, HD_PKT_CTS);
	sc->id = (uint32_t)sc->w->pkt.imm;
}

static void at_request_comes(struct scene *sc, uint8_t kind, uint64_t len)
{
	struct {
		struct hd_rma head;
		struct hd_rma_seg seg;
	} body = { { .count = 1 }, { 0, len, KEY } };
	struct hd_pkt pkt;

	scene_of_wire(sc);
	sc->mr = side_region(sc->s, KEY, scene_mem, LONG, ALL, 0);
	pkt = wire_eager(sc->w, len, 0);
	pkt.kind = kind;
	pkt.flags = 0;
	pkt.op = THEIRS;
	pkt.src = 3;
	wire_say(sc->w, &pkt, &body, sizeof(body));
}

void at_write_comes(struct scene *sc)
{
	at_request_comes(sc, HD_PKT_WRITE, SOME);
	wire_hear_kind(sc->w, HD_PKT_CTS);
	sc->id = (uint32_t)sc->w->pkt.imm;
}

void at_read_is_served(struct scene *sc)
{
	struct hd_peer *peer;

	at_request_comes(sc, HD_PKT_READ, LONG);
	peer = sc->s->to->peer;
	while (!hd_peer_inspect(peer).framing)
		hd_node_poll(sc->s->node);
	sc->id = TAILQ_FIRST(&peer->framing)->pending.id;
	for (int i = 0; i < 20; i++)
		hd_node_poll(sc->s->node);
}

/* Over shared memory: the link fetches a message of the other side's. */
void at_fetched(struct scene *sc)
{
	struct hd_transfer *t = NULL;

	sc->s = &sc->p.b;
	scene_of_pair(sc, "shm");
	pair_push(&sc->p, &sc->p.b, "x", 1, 1, 0); /* so that both have a name for the other */
	pair_settle(&sc->p, 1);
	sc->local = !sc->flags;
	scene_count(sc->s, &sc->before);
	post_receive(sc);
	pair_push(&sc->p, &sc->p.a, scene_out, LONG, 1, 0);
	while (!t || t->state != HD_TRANSFER_GET) {
		hd_node_poll(sc->s->node);
		t = hd_transfers_first(sc->s->to->peer);
	}
	sc->id = t->pending.id;
}

/* ---- of a queue pair ------------------------------------------------------------------------- */

/* Both have heard of each other, and each has received something. */
static void pairs_scene(struct scene *sc)
{
	qps_open(&sc->p, "tcp", RC);
	for (int i = 0; i < 2; i++) {
		struct side *from = i ? &sc->p.a : &sc->p.b, *to = i ? &sc->p.b : &sc->p.a;

		qp_recv(to, scene_mem, SHORT, scene_mem);
		qp_send(from, scene_out, SHORT, scene_out);
		qp_expect(&sc->p, to, scene_mem, 0);
		qp_expect(&sc->p, from, scene_out, 0);
	}
	scene_pools_warm(sc->s->node);
	scene_count(sc->s, &sc->before);
}

/* A message whose data is of a region. */
static void pair_sends(struct scene *sc)
{
	sc->mr = local_region(sc->s, scene_out, LONG);
	*hd_ep_regions(sc->s->ep) = &sc->mr;
	qp_send(sc->s, scene_out, LONG, sc);
	*hd_ep_regions(sc->s->ep) = NULL;
	pair_settle(&sc->p, 1);
}

static struct hd_peer *pair_peer(const struct scene *sc)
{
	return sc->s->ep->qp->life.dest->peer;
}

/* Nothing is posted at the other end, which keeps the request. */
void at_pair_announced(struct scene *sc)
{
	pairs_scene(sc);
	pair_sends(sc);
	sc->id = hd_transfers_first(pair_peer(sc))->pending.id;
}

void at_pair_waits(struct scene *sc)
{
	struct hd_op *op;

	pairs_scene(sc);
	hd_ep_pause(sc->s->ep, true);
	pair_sends(sc);
	assert_true(hd_sq_uses(sc->s->ep->qp, sc->mr, &op));
	sc->id = op->t.pending.id;
}

void at_pair_receives(struct scene *sc)
{
	struct iovec iov = { scene_mem, LONG };

	sc->s = &sc->p.b;
	pairs_scene(sc);
	sc->mr = local_region(sc->s, scene_mem, LONG);
	assert_int_equal(hd_recv(sc->s->ep, &(struct hd_recv_args){ .iov = &iov,
								    .count = 1,
								    .flags = HD_RECV_COMPLETE,
								    .ctx = sc,
								    .region = sc->mr,
								    .regions = &sc->mr }),
			 0);
	qp_send(&sc->p.a, scene_out, LONG, scene_out);
	while (!hd_transfers_first(pair_peer(sc)))
		scene_turn(sc);
	sc->id = hd_transfers_first(pair_peer(sc))->pending.id;
}

void at_pair_is_received(struct scene *sc)
{
	hd_ep_pause(sc->s->ep, false);
	qp_recv(&sc->p.b, scene_mem, LONG, scene_mem);
}

/* A receive that is too short. */
void at_pair_is_refused(struct scene *sc)
{
	qp_recv(&sc->p.b, scene_mem, SHORT, scene_mem);
}
