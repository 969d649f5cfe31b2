/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
#include "engine/test/test_ends.h"

#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

unsigned char *scene_mem, *scene_out;

/* ---- what is to be given back ---------------------------------------------------------------- */

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

void scene_count(const struct side *s, struct scene_counts *c)
{
	struct hd_node *node = s->node;
	struct hd_pool *pools[] = { &hd_xfers(node)->ops, &hd_rqs(node)->recvs, &hd_rqs(node)->iovs,
				    &hd_xfers(node)->send_places };

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

void scene_pools_warm(struct hd_node *node)
{
	struct hd_pool *pools[] = { &hd_xfers(node)->ops, &hd_rqs(node)->recvs, &hd_rqs(node)->iovs,
				    &hd_xfers(node)->send_places };

	for (size_t i = 0; i < sizeof(pools) / sizeof(pools[0]); i++)
		hd_pool_put(pools[i], hd_pool_get(pools[i]));
	for (int i = 0; i < (int)HD_BYTES_CLASSES; i++)
		hd_pool_put(&hd_rqs(node)->bytes.pool[i], hd_pool_get(&hd_rqs(node)->bytes.pool[i]));
}

void scene_asked(struct hd_ask *ask, int err)
{
	struct scene *sc = hd_container(ask, struct scene, ask);

	sc->told++;
	sc->err = err ? (int)hd_status_of(err) : 0;
}

static void scene_completions(struct scene *sc)
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

static void scene_heard(struct scene *sc)
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
static void scene_listen(struct scene *sc)
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
			scene_heard(sc);
	}
}

void scene_turn(struct scene *sc)
{
	hd_node_poll(sc->p.a.node);
	if (sc->p.b.node)
		hd_node_poll(sc->p.b.node);
	scene_listen(sc);
	scene_completions(sc);
}

struct hd_transfer *scene_op(const struct scene *sc)
{
	return hd_transfer_by_id(sc->s->node, sc->id);
}
int scene_state(struct hd_transfer *t)
{
	return t->state == HD_TRANSFER_IDLE ? (int)hd_op_of(t)->state : MOVES + (int)t->state;
}

void scene_settle(struct scene *sc, int told)
{
	uint64_t end = hd_now_ns() + PATIENCE;

	while (scene_op(sc) || sc->told < told) {
		scene_turn(sc);
		assert_true(hd_now_ns() < end);
	}
	for (struct settling s = settling(1); settling_on(&s);)
		scene_turn(sc);
}

void scene_wait(struct scene *sc, int state)
{
	uint64_t end = hd_now_ns() + PATIENCE;

	while (!scene_op(sc) || scene_state(scene_op(sc)) != state) {
		hd_node_poll(sc->p.a.node);
		if (sc->p.b.node)
			hd_node_poll(sc->p.b.node);
		assert_true(hd_now_ns() < end);
	}
}

struct hd_dest *scene_dest(struct side *s, uint16_t port)
{
	struct sockaddr_in in = { .sin_family = AF_INET,
				  .sin_port = htons(port),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct hd_dest *dest;

	assert_int_equal(hd_dest_get(s->node, (void *)&in, &dest), 0);
	return dest;
}

void scene_begin(struct scene *sc, uint32_t flags)
{
	memset(sc, 0, sizeof(*sc));
	sc->s = &sc->p.a;
	unsetenv("HEDDLE_TRANSPORT");
	sc->listener = -1;
	sc->flags = flags;
	vm_seam = (struct vm_seam){ 0 };
}

void scene_of_wire(struct scene *sc)
{
	const struct hd_announce own = { .index = 3, .gen = 1, .port = 4000 };

	side_open(sc->s);
	sc->s->ep->policy |= HD_EP_FENCE | RIGHTS;
	sc->w = calloc(1, sizeof(*sc->w));
	wire_greet(sc->w, sc->s);
	wire_say(sc->w, &(struct hd_pkt){ .kind = HD_PKT_ANNOUNCE }, &own, sizeof(own));
	wire_settle(sc->w);
	sc->s->to = scene_dest(sc->s, own.port);
	assert_int_equal(sc->s->to->state, HD_DEST_BOUND);
	scene_pools_warm(sc->s->node);
	scene_count(sc->s, &sc->before);
}

void scene_of_pair(struct scene *sc, const char *transport)
{
	unsigned char byte;

	pair_open(&sc->p, transport);
	side_post(&sc->p.b, &byte, 1, 1, 0, NULL, NULL);
	pair_push(&sc->p, &sc->p.a, "x", 1, 1, 0);
	assert_int_equal(pair_next(&sc->p, &sc->p.b).err, 0);
	pair_settle(&sc->p, 1);
	sc->p.a.ep->policy |= RIGHTS;
	sc->p.b.ep->policy |= RIGHTS;
	scene_pools_warm(sc->s->node);
	scene_count(sc->s, &sc->before);
}

void scene_end(struct scene *sc)
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
