/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Every state that an operation can be in, and every way in which it can end: there is one completion or none, with the right errno, the
 * other end is told where it waits for that, and everything that the operation had is given back.
 *
 * Most states are reached by a peer that says word for word what it likes; those in which a link copies by itself need a second node over shared
 * memory, those of a send queue a second queue pair.
 */
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

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LONG (8u << 20) /* more than the sockets and the link take */
#define SOME 100000u	/* long, and one frame */
#define SHORT 64u
#define KEY 77
#define ALL \
	(HD_ACCESS_REMOTE_READ | HD_ACCESS_REMOTE_WRITE | HD_ACCESS_REMOTE_ATOMIC | HD_ACCESS_REMOTE_FETCH)
#define THEIRS 4711 /* number of an operation of the peer */
#define RIGHTS (HD_EP_REMOTE_READ | HD_EP_REMOTE_WRITE)

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

static unsigned char *mem, *out; /* LONG bytes each */

/* ---- what is to be given back ------------------------------------------------------------------------------------------- */

struct counts {
	unsigned pool[5 + HD_BYTES_CLASSES]; /* objects that can be had without another slab */
	uint32_t ids, tx_ops, dest_refs, storing;
};

static unsigned pool_rest(struct hd_pool *pool)
{
	struct hd_pool_object *held = NULL;
	unsigned n = 0;

	while (pool->free || (size_t)(pool->end - pool->fresh) >= pool->stride) {
		struct hd_pool_object *o = hd_pool_get(pool);

		o->next = held;
		held = o;
		n++;
	}
	while (held) {
		struct hd_pool_object *o = held;

		held = o->next;
		hd_pool_put(pool, o);
	}
	return n;
}

static void count(const struct side *s, struct counts *c)
{
	struct hd_node *node = s->node;
	struct hd_pool *pools[] = { &hd_xfers(node)->ops, &hd_rqs(node)->recvs, &hd_rqs(node)->iovs,
				    &hd_xfers(node)->seats };

	memset(c, 0, sizeof(*c));
	for (size_t i = 0; i < sizeof(pools) / sizeof(pools[0]); i++)
		c->pool[i] = pool_rest(pools[i]);
	for (int i = 0; i < (int)HD_BYTES_CLASSES; i++)
		c->pool[5 + i] = pool_rest(&hd_rqs(node)->bytes.pool[i]);
	c->ids = hd_links_inspect(node).pending;
	c->tx_ops = hd_ep_inspect(s->ep).outstanding;
	c->dest_refs = s->to ? s->to->refs : 0;
	c->storing = (uint32_t)hd_core(node)->storing;
}

/* Every pool has its first slab, so that what is taken and given back can be counted. */
static void pools_warm(struct hd_node *node)
{
	struct hd_pool *pools[] = { &hd_xfers(node)->ops, &hd_rqs(node)->recvs, &hd_rqs(node)->iovs,
				    &hd_xfers(node)->seats };

	for (size_t i = 0; i < sizeof(pools) / sizeof(pools[0]); i++)
		hd_pool_put(pools[i], hd_pool_get(pools[i]));
	for (int i = 0; i < (int)HD_BYTES_CLASSES; i++)
		hd_pool_put(&hd_rqs(node)->bytes.pool[i], hd_pool_get(&hd_rqs(node)->bytes.pool[i]));
}

/* ---- the scene ---------------------------------------------------------------------------------------------------------- */

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
	struct counts before;
	/* what the wire hears */
	struct hd_tcp_frame frame;
	size_t have; /* bytes of frame */
	size_t skip; /* bytes of its payload that are still to come */
};

static void asked(struct hd_ask *ask, int err)
{
	struct scene *sc = hd_container(ask, struct scene, ask);

	sc->told++;
	sc->err = err ? (int)hd_status_of(err) : 0;
}

static void completions(struct scene *sc)
{
	const struct hd_cqe *e;

	while ((e = hd_cq_peek(sc->s->cq))) {
		if (e->ctx == sc) {
			sc->told++;
			sc->err = e->err;
		}
		hd_cq_pop(sc->s->cq);
	}
}

static void heard(struct scene *sc)
{
	sc->have = 0;
	sc->skip = sc->frame.len + hd_tcp_check_of(sc->frame.len);
	sc->w->ack = sc->frame.seq;
	if (sc->frame.pkt.kind != HD_PKT_FIN)
		return;
	sc->fins++;
	sc->fin = (int)sc->frame.pkt.imm;
}

/* What has come over the wire so far. */
static void listen_in(struct scene *sc)
{
	static unsigned char waste[1 << 16];
	ssize_t n;

	if (!sc->w || sc->w->fd < 0)
		return;
	for (;;) {
		void *to = sc->skip ? (void *)waste : (char *)&sc->frame + sc->have;
		size_t room = sc->skip ? (sc->skip < sizeof(waste) ? sc->skip : sizeof(waste))
				       : sizeof(sc->frame) - sc->have;

		n = recv(sc->w->fd, to, room, MSG_DONTWAIT);
		if (n <= 0)
			return;
		if (sc->skip)
			sc->skip -= (size_t)n;
		else if ((sc->have += (size_t)n) == sizeof(sc->frame))
			heard(sc);
	}
}

static void scene_turn(struct scene *sc)
{
	hd_node_poll(sc->p.a.node);
	if (sc->p.b.node)
		hd_node_poll(sc->p.b.node);
	listen_in(sc);
	completions(sc);
}

static struct hd_transfer *the_op(const struct scene *sc)
{
	return hd_transfer_by_id(sc->s->node, sc->id);
}

/* An enum hd_op_state, or MOVES and an enum hd_transfer_state. */
#define MOVES 100
static int state_of(struct hd_transfer *t)
{
	return t->state == HD_TRANSFER_IDLE ? (int)hd_op_of(t)->state : MOVES + (int)t->state;
}

/* Until it has ended, with so many completions, and for a while on. */
static void scene_settle(struct scene *sc, int told)
{
	uint64_t end = hd_now_ns() + PATIENCE;

	while (the_op(sc) || sc->told < told) {
		scene_turn(sc);
		assert_true(hd_now_ns() < end);
	}
	for (struct settling s = settling(1); settling_on(&s);)
		scene_turn(sc);
}

static void wait_for(struct scene *sc, int state)
{
	uint64_t end = hd_now_ns() + PATIENCE;

	while (!the_op(sc) || state_of(the_op(sc)) != state) {
		hd_node_poll(sc->p.a.node);
		if (sc->p.b.node)
			hd_node_poll(sc->p.b.node);
		assert_true(hd_now_ns() < end);
	}
}

static struct hd_dest *dest_of(struct side *s, uint16_t port)
{
	struct sockaddr_in in = { .sin_family = AF_INET,
				  .sin_port = htons(port),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct hd_dest *dest;

	assert_int_equal(hd_dest_get(s->node, (void *)&in, &dest), 0);
	return dest;
}

static void scene_begin(struct scene *sc, uint32_t flags)
{
	memset(sc, 0, sizeof(*sc));
	sc->s = &sc->p.a;
	unsetenv("HEDDLE_TRANSPORT");
	sc->listener = -1;
	sc->flags = flags;
	vm_seam = (struct vm_seam){ 0 };
}

/* A peer at the other end of a wire, whose endpoint is known by name. */
static void wire_scene(struct scene *sc)
{
	const struct hd_announce own = { .index = 3, .gen = 1, .port = 4000 };

	side_open(sc->s);
	sc->s->ep->policy |= HD_EP_FENCE | RIGHTS;
	sc->w = calloc(1, sizeof(*sc->w));
	wire_greet(sc->w, sc->s);
	wire_say(sc->w, &(struct hd_pkt){ .kind = HD_PKT_ANNOUNCE }, &own, sizeof(own));
	wire_settle(sc->w);
	sc->s->to = dest_of(sc->s, own.port);
	assert_int_equal(sc->s->to->state, HD_DEST_BOUND);
	pools_warm(sc->s->node);
	count(sc->s, &sc->before);
}

/* Two nodes that have talked to each other. */
static void pair_scene(struct scene *sc, const char *transport)
{
	unsigned char byte;

	pair_open(&sc->p, transport);
	side_post(&sc->p.b, &byte, 1, 1, 0, NULL, NULL);
	pair_push(&sc->p, &sc->p.a, "x", 1, 1, 0);
	assert_int_equal(pair_next(&sc->p, &sc->p.b).err, 0);
	pair_settle(&sc->p, 1);
	sc->p.a.ep->policy |= RIGHTS;
	sc->p.b.ep->policy |= RIGHTS;
	pools_warm(sc->s->node);
	count(sc->s, &sc->before);
}

static void scene_end(struct scene *sc)
{
	vm_seam = (struct vm_seam){ 0 };
	if (sc->mr)
		assert_int_equal(hd_mr_close(sc->mr), 0);
	if (sc->w)
		wire_hang_up(sc->w);
	if (sc->listener >= 0)
		close(sc->listener);
	for (struct side *s = &sc->p.a; s <= &sc->p.b; s++) {
		if (!s->node)
			continue;
		if (!s->ep)
			side_endpoint(s, HD_EP_RDM);
		side_close(s);
	}
	free(sc->w);
	unsetenv("HEDDLE_TRANSPORT");
}

/* ---- ours: how they get there ------------------------------------------------------------------------------------------- */

static void post_message(struct scene *sc, size_t len, uint32_t flags)
{
	assert_int_equal(hd_send(sc->s->ep, sc->s->to, out, len, 1, 0, sc,
				 TAGGED(flags | sc->flags | HD_SEND_COMPLETE)),
			 0);
}

static void hear(struct scene *sc, uint8_t kind)
{
	wire_hear_kind(sc->w, kind);
	sc->id = sc->w->pkt.op;
}

static void unresolved(struct scene *sc)
{
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(in);

	sc->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(sc->listener, (void *)&in, sizeof(in)), 0);
	assert_int_equal(listen(sc->listener, 5), 0);
	assert_int_equal(getsockname(sc->listener, (void *)&in, &len), 0);
	side_open(sc->s);
	sc->s->to = dest_of(sc->s, ntohs(in.sin_port));
	pools_warm(sc->s->node);
	count(sc->s, &sc->before);
	post_message(sc, SHORT, HD_SEND_INJECT);
	sc->id = TAILQ_FIRST(&sc->s->to->waiting)->t.pending.id;
}

static void acked(struct scene *sc)
{
	wire_scene(sc);
	post_message(sc, SHORT, HD_SEND_ACKED);
	hear(sc, HD_PKT_EAGER);
}

static void offered(struct scene *sc)
{
	wire_scene(sc);
	post_message(sc, LONG, HD_SEND_INJECT);
	hear(sc, HD_PKT_RTS);
}

static void clear_to_send(struct scene *sc, uint64_t want)
{
	offered(sc);
	wire_say(sc->w, &(struct hd_pkt){ .kind = HD_PKT_CTS, .op = sc->id, .imm = THEIRS, .tag = want },
		 NULL, 0);
}

static void framing(struct scene *sc)
{
	clear_to_send(sc, LONG);
	wait_for(sc, MOVES + HD_TRANSFER_FRAMES);
	for (int i = 0; i < 20; i++)
		hd_node_poll(sc->s->node);
}

static void all_frames_out(struct scene *sc)
{
	clear_to_send(sc, SHORT);
	wait_for(sc, MOVES + HD_TRANSFER_SENT);
}

/* A message that waits to be acknowledged is before it. */
static void fenced(struct scene *sc)
{
	wire_scene(sc);
	assert_int_equal(hd_send(sc->s->ep, sc->s->to, out, SHORT, 1, 0, NULL,
				 TAGGED(HD_SEND_ACKED | HD_SEND_GATED)),
			 0);
	wire_hear_kind(sc->w, HD_PKT_EAGER);
	post_message(sc, SHORT, HD_SEND_FENCE | HD_SEND_GATED | HD_SEND_INJECT);
	sc->id = TAILQ_FIRST(&sc->s->ep->order->fenced)->t.pending.id;
}

/* It has passed its fence, and there is no credit. */
static void queued(struct scene *sc)
{
	struct hd_peer *peer;

	fenced(sc);
	peer = sc->s->to->peer;
	peer->credit.limit = peer->credit.spent;
	wire_say(sc->w, &(struct hd_pkt){ .kind = HD_PKT_ACK, .op = sc->w->pkt.op }, NULL, 0);
	wait_for(sc, HD_OP_QUEUED);
}

static void post_rma(struct scene *sc, enum hd_rma_op op, size_t len)
{
	const struct hd_rma_seg seg = { 0, len, KEY };
	const struct iovec iov = { out, len };

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

static void reading(struct scene *sc)
{
	wire_scene(sc);
	post_rma(sc, HD_RMA_READ, SOME);
	hear(sc, HD_PKT_READ);
}

static void written_short(struct scene *sc)
{
	wire_scene(sc);
	post_rma(sc, HD_RMA_WRITE, SHORT);
	hear(sc, HD_PKT_PUT);
}

static void written_long(struct scene *sc)
{
	wire_scene(sc);
	sc->s->ep->policy |= HD_EP_SAW;
	post_rma(sc, HD_RMA_WRITE, LONG);
	hear(sc, HD_PKT_WRITE);
}

static void atomic(struct scene *sc)
{
	const struct hd_rma_seg seg = { 0, 8, KEY };
	const struct iovec iov = { out, 8 }, result = { out + 8, 8 };

	wire_scene(sc);
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

static void question(struct scene *sc)
{
	wire_scene(sc);
	sc->ask.told = asked;
	assert_int_equal(hd_ep_ask(sc->s->ep, sc->s->to, "?", 1, &sc->ask), 0);
	hear(sc, HD_PKT_ASK);
}

/* Over shared memory: it is in the list of those that we carry out ourselves. */
static void direct(struct scene *sc)
{
	pair_scene(sc, "shm");
	sc->mr = side_region(&sc->p.b, KEY, mem, LONG, ALL, 0);
	hd_ep_show(sc->p.b.ep);
	pair_settle(&sc->p, 1);
	usleep(1000);
	sc->s->ep->policy |= HD_EP_SAW;
	post_rma(sc, HD_RMA_WRITE, LONG);
	sc->id = TAILQ_FIRST(&sc->s->to->peer->direct_ops)->t.pending.id;
}

/* Over shared memory: the message is offered to be fetched. */
static void offered_memory(struct scene *sc)
{
	pair_scene(sc, "shm");
	post_message(sc, LONG, 0);
	sc->id = hd_transfers_first(sc->s->to->peer)->pending.id;
	assert_true(the_op(sc)->offered);
	pair_settle(&sc->p, 1);
}

/* ---- a peer's: how they get there --------------------------------------------------------------------------------------- */

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
	const struct iovec iov[2] = { { mem, sc->local ? LONG : LONG / 2 }, { mem + LONG / 2, LONG / 2 } };

	if (sc->local)
		sc->mr = local_region(sc->s, mem, LONG);
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

static void message_comes(struct scene *sc)
{
	struct hd_rts rts = { .len = SOME };
	struct hd_pkt pkt;

	wire_scene(sc);
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

static void request_comes(struct scene *sc, uint8_t kind, uint64_t len)
{
	struct {
		struct hd_rma head;
		struct hd_rma_seg seg;
	} body = { { .count = 1 }, { 0, len, KEY } };
	struct hd_pkt pkt;

	wire_scene(sc);
	sc->mr = side_region(sc->s, KEY, mem, LONG, ALL, 0);
	pkt = wire_eager(sc->w, len, 0);
	pkt.kind = kind;
	pkt.flags = 0;
	pkt.op = THEIRS;
	pkt.src = 3;
	wire_say(sc->w, &pkt, &body, sizeof(body));
}

static void write_comes(struct scene *sc)
{
	request_comes(sc, HD_PKT_WRITE, SOME);
	wire_hear_kind(sc->w, HD_PKT_CTS);
	sc->id = (uint32_t)sc->w->pkt.imm;
}

static void read_is_served(struct scene *sc)
{
	struct hd_peer *peer;

	request_comes(sc, HD_PKT_READ, LONG);
	peer = sc->s->to->peer;
	while (!hd_peer_inspect(peer).framing)
		hd_node_poll(sc->s->node);
	sc->id = TAILQ_FIRST(&peer->framing)->pending.id;
	for (int i = 0; i < 20; i++)
		hd_node_poll(sc->s->node);
}

/* Over shared memory: the link fetches a message of the other side's. */
static void fetched(struct scene *sc)
{
	struct hd_transfer *t = NULL;

	sc->s = &sc->p.b;
	pair_scene(sc, "shm");
	pair_push(&sc->p, &sc->p.b, "x", 1, 1, 0); /* so that both have a name for the other */
	pair_settle(&sc->p, 1);
	sc->local = !sc->flags;
	count(sc->s, &sc->before);
	post_receive(sc);
	pair_push(&sc->p, &sc->p.a, out, LONG, 1, 0);
	while (!t || t->state != HD_TRANSFER_GET) {
		hd_node_poll(sc->s->node);
		t = hd_transfers_first(sc->s->to->peer);
	}
	sc->id = t->pending.id;
}

/* ---- of a queue pair ---------------------------------------------------------------------------------------------------- */

/* Both have heard of each other, and each has received something. */
static void pairs_scene(struct scene *sc)
{
	qps_open(&sc->p, "tcp", RC);
	for (int i = 0; i < 2; i++) {
		struct side *from = i ? &sc->p.a : &sc->p.b, *to = i ? &sc->p.b : &sc->p.a;

		qp_recv(to, mem, SHORT, mem);
		qp_send(from, out, SHORT, out);
		qp_expect(&sc->p, to, mem, 0);
		qp_expect(&sc->p, from, out, 0);
	}
	pools_warm(sc->s->node);
	count(sc->s, &sc->before);
}

/* A message whose data is of a region. */
static void pair_sends(struct scene *sc)
{
	sc->mr = local_region(sc->s, out, LONG);
	*hd_ep_regions(sc->s->ep) = &sc->mr;
	qp_send(sc->s, out, LONG, sc);
	*hd_ep_regions(sc->s->ep) = NULL;
	pair_settle(&sc->p, 1);
}

static struct hd_peer *pair_peer(const struct scene *sc)
{
	return sc->s->ep->qp->life.dest->peer;
}

/* Nothing is posted at the other end, which keeps the request. */
static void pair_announced(struct scene *sc)
{
	pairs_scene(sc);
	pair_sends(sc);
	sc->id = hd_transfers_first(pair_peer(sc))->pending.id;
}

static void pair_waits(struct scene *sc)
{
	struct hd_op *op;

	pairs_scene(sc);
	hd_ep_pause(sc->s->ep, true);
	pair_sends(sc);
	assert_true(hd_sq_uses(sc->s->ep->qp, sc->mr, &op));
	sc->id = op->t.pending.id;
}

static void pair_receives(struct scene *sc)
{
	struct iovec iov = { mem, LONG };

	sc->s = &sc->p.b;
	pairs_scene(sc);
	sc->mr = local_region(sc->s, mem, LONG);
	assert_int_equal(hd_recv(sc->s->ep, &(struct hd_recv_args){ .iov = &iov,
								    .count = 1,
								    .flags = HD_RECV_COMPLETE,
								    .ctx = sc,
								    .region = sc->mr,
								    .regions = &sc->mr }),
			 0);
	qp_send(&sc->p.a, out, LONG, out);
	while (!hd_transfers_first(pair_peer(sc)))
		scene_turn(sc);
	sc->id = hd_transfers_first(pair_peer(sc))->pending.id;
}

static void pair_is_received(struct scene *sc)
{
	hd_ep_pause(sc->s->ep, false);
	qp_recv(&sc->p.b, mem, LONG, mem);
}

/* A receive that is too short. */
static void pair_is_refused(struct scene *sc)
{
	qp_recv(&sc->p.b, mem, SHORT, mem);
}

/* ---- how they end ------------------------------------------------------------------------------------------------------- */

static void say_fin(struct scene *sc, int err)
{
	wire_say(sc->w, &(struct hd_pkt){ .kind = HD_PKT_FIN, .op = sc->id, .imm = (uint64_t)err }, NULL, 0);
}

/* The other end takes the message of a pair over shared memory. */
static void taken(struct scene *sc)
{
	struct side *other = &sc->p.b;

	if (sc->s != other)
		side_post(other, mem, LONG, 1, 0, NULL, NULL);
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
	wire_say(sc->w, &(struct hd_pkt){ .kind = HD_PKT_DATA, .op = sc->id }, out, SOME);
}

static void say_result(struct scene *sc)
{
	wire_say(sc->w, &(struct hd_pkt){ .kind = HD_PKT_RESULT, .op = sc->id }, out, 8);
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

/* ---- the table ---------------------------------------------------------------------------------------------------------- */

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
	  unresolved,
	  NULL,
	  NULL,
	  HD_SEND_ORDERED,
	  { NO_PEER, NO_PEER, NO_PEER, NO_WORD, IS(HD_S_REFUSED), IS(HD_S_REFUSED), NO_REGION } },
	{ "a message without credit",
	  HD_OP_QUEUED,
	  queued,
	  say_done,
	  say_failed,
	  HD_SEND_ORDERED,
	  { IS(HD_S_PROTOCOL), IS(HD_S_PROTOCOL), IS(HD_S_CANCELLED), NO_WORD, IS(HD_S_LOST), IS(HD_S_LOST),
	    NO_REGION } },
	{ "a message behind a fence",
	  HD_OP_FENCED,
	  fenced,
	  say_done,
	  say_failed,
	  HD_SEND_ORDERED,
	  { IS(HD_S_PROTOCOL), IS(HD_S_PROTOCOL), IS(HD_S_CANCELLED), NO_WORD, IS(HD_S_LOST), IS(HD_S_LOST),
	    NO_REGION } },
	{ "a message to be acknowledged",
	  HD_OP_ACK,
	  acked,
	  say_ack,
	  say_failed,
	  HD_SEND_ORDERED,
	  { IS(0), IS(HD_S_ACCESS), IS(HD_S_CANCELLED), NO_WORD, IS(HD_S_LOST), IS(HD_S_LOST), NO_REGION } },
	{ "a long message, announced",
	  MOVES + HD_TRANSFER_OFFERED,
	  offered,
	  say_done,
	  say_failed,
	  HD_SEND_ORDERED,
	  { IS(0), IS(HD_S_ACCESS), IS(HD_S_CANCELLED), NO_WORD, IS(HD_S_LOST), IS(HD_S_LOST), NO_REGION } },
	{ "a long message, offered",
	  MOVES + HD_TRANSFER_OFFERED,
	  offered_memory,
	  taken,
	  other_closes,
	  HD_SEND_ORDERED,
	  { IS(0), IS(HD_S_REFUSED), IS(HD_S_CANCELLED), NO_WORD, IS(HD_S_LOST),
	    NEVER("it lies here; who fetches it is the one to notice, or the link is down"), NO_REGION } },
	{ "frames",
	  MOVES + HD_TRANSFER_FRAMES,
	  framing,
	  say_done,
	  say_failed,
	  HD_SEND_ORDERED,
	  { IS(0), IS(HD_S_ACCESS), SAYS(HD_S_CANCELLED, HD_S_CANCELLED), ONLY_SAYS(HD_S_CANCELLED),
	    IS(HD_S_LOST), IS(HD_S_LOST), NO_REGION } },
	{ "all frames out",
	  MOVES + HD_TRANSFER_SENT,
	  all_frames_out,
	  say_done,
	  say_failed,
	  HD_SEND_ORDERED,
	  { IS(0), IS(HD_S_ACCESS), IS(HD_S_CANCELLED), NO_WORD, IS(HD_S_LOST), IS(HD_S_LOST), NO_REGION } },
	{ "a short write",
	  HD_OP_ACK,
	  written_short,
	  say_done,
	  say_failed,
	  HD_SEND_ORDERED,
	  { IS(0), IS(HD_S_ACCESS), IS(HD_S_CANCELLED), NO_WORD, IS(HD_S_LOST), IS(HD_S_LOST), NO_REGION } },
	{ "a long write that messages wait for",
	  MOVES + HD_TRANSFER_OFFERED,
	  written_long,
	  say_done,
	  say_failed,
	  HD_SEND_ORDERED,
	  { IS(0), IS(HD_S_ACCESS), IS(HD_S_CANCELLED), NO_WORD, IS(HD_S_LOST), IS(HD_S_LOST), NO_REGION } },
	{ "a read",
	  MOVES + HD_TRANSFER_INTAKE,
	  reading,
	  say_data,
	  say_failed,
	  HD_SEND_ORDERED,
	  { IS(0), IS(HD_S_ACCESS), IS(HD_S_CANCELLED), ONLY_SAYS(HD_S_CANCELLED), IS(HD_S_LOST),
	    IS(HD_S_LOST), NO_REGION } },
	{ "an atomic operation",
	  HD_OP_ATOMIC,
	  atomic,
	  say_result,
	  say_failed,
	  HD_SEND_ORDERED,
	  { IS(0), IS(HD_S_ACCESS), IS(HD_S_CANCELLED), NO_WORD, IS(HD_S_LOST), IS(HD_S_LOST), NO_REGION } },
	{ "a question",
	  HD_OP_ASKED,
	  question,
	  say_told,
	  say_told_failed,
	  0,
	  { IS(0), IS(HD_S_ACCESS), IS(HD_S_CANCELLED), NO_WORD, IS(HD_S_LOST), IS(HD_S_LOST), NO_REGION } },
	{ "a write that we carry out ourselves",
	  HD_OP_DIRECT,
	  direct,
	  goes_on,
	  NULL,
	  HD_SEND_ORDERED,
	  { IS(0), BY_ITSELF, IS(HD_S_CANCELLED), NO_WORD, IS(HD_S_LOST), IS(HD_S_LOST), IS(HD_S_ACCESS) } },
	{ "a message that comes in frames",
	  MOVES + HD_TRANSFER_INTAKE,
	  message_comes,
	  say_data,
	  say_failed,
	  HD_RECV_ORDERED,
	  { IS(0), IS(HD_S_ACCESS), IS(HD_S_CANCELLED), ONLY_SAYS(HD_S_REFUSED), IS(HD_S_LOST), IS(HD_S_LOST),
	    SAYS(HD_S_PROTECTION, HD_S_OPERATIONAL) } },
	{ "a message that is fetched",
	  MOVES + HD_TRANSFER_GET,
	  fetched,
	  goes_on,
	  other_closes,
	  HD_RECV_ORDERED,
	  { IS(0), IS(HD_S_CANCELLED), IS(HD_S_CANCELLED), NO_WORD, IS(HD_S_LOST), IS(HD_S_LOST),
	    IS(HD_S_PROTECTION) } },
	{ "a peer's write",
	  MOVES + HD_TRANSFER_INTAKE,
	  write_comes,
	  say_data,
	  say_failed,
	  0,
	  { NO_WORD, NO_WORD, ONLY_SAYS(0), ONLY_SAYS(HD_S_REFUSED), NO_WORD, NO_WORD,
	    ONLY_SAYS(HD_S_ACCESS) } },
	{ "a peer's read",
	  MOVES + HD_TRANSFER_FRAMES,
	  read_is_served,
	  goes_on,
	  say_back,
	  0,
	  { NO_WORD, NO_WORD, ONLY_SAYS(HD_S_REFUSED), ONLY_SAYS(HD_S_REFUSED), NO_WORD, NO_WORD,
	    ONLY_SAYS(HD_S_ACCESS) } },
	{ "a queue pair's message, announced",
	  MOVES + HD_TRANSFER_OFFERED,
	  pair_announced,
	  pair_is_received,
	  pair_is_refused,
	  0,
	  { IS(0), IS(HD_S_LENGTH), IS(HD_S_CANCELLED), NO_WORD, IS(HD_S_LOST), NO_PROCESS,
	    IS(HD_S_PROTECTION) } },
	{ "a queue pair's message that waits",
	  HD_OP_QUEUED,
	  pair_waits,
	  pair_is_received,
	  NULL,
	  0,
	  { IS(0), NEVER("nobody has heard of it"), IS(HD_S_CANCELLED), NO_WORD,
	    NEVER("it waits for the next link"), NO_PROCESS, IS(HD_S_PROTECTION) } },
	{ "a message that a queue pair receives",
	  MOVES + HD_TRANSFER_INTAKE,
	  pair_receives,
	  goes_on,
	  other_closes,
	  0,
	  { IS(0), IS(HD_S_CANCELLED), IS(HD_S_CANCELLED), NO_WORD, IS(HD_S_LOST), NO_PROCESS,
	    IS(HD_S_PROTECTION) } },
};

/* ---- trying all of them ------------------------------------------------------------------------------------------------- */

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
	struct counts now;

	if (!sc->s->ep)
		side_endpoint(sc->s, HD_EP_RDM);
	count(sc->s, &now);
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
	assert_int_equal(hd_ep_inspect(sc->s->ep).seats, 0);
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
	assert_non_null(the_op(sc));
	assert_int_equal(state_of(the_op(sc)), row->state);
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
	mem = calloc(1, LONG);
	out = calloc(1, LONG);
	return mem && out ? 0 : -1;
}

static int bytes_put(void **state)
{
	free(mem);
	free(out);
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
