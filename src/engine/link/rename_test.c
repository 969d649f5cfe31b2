/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * A peer's endpoint gets another name while something of it is on its way: whatever ends afterwards
 * is from the destination that stands for the endpoint then. The peer says its messages word for
 * word, so that each can be caught in the middle.
 */
#include "engine/test/test_wire.h"

#include <stdlib.h>

#define LEN 4000u
#define HALF 1000u
#define THEIRS 321 /* number of their operation */
#define KEY 7
#define INDEX 3 /* of their endpoint */

struct scene {
	struct side s;
	struct wire w;
	struct hd_mr *mr;
	struct hd_dest *now; /* the endpoint by its second name */
	uint32_t before;     /* what its messages were from */
	unsigned char in[LEN], out[LEN];
};

static const struct hd_cqe *next(struct scene *sc)
{
	uint64_t end = hd_now_ns() + PATIENCE;

	while (!hd_cq_peek(sc->s.cq)) {
		hd_node_poll(sc->s.node);
		assert_true(hd_now_ns() < end);
	}
	return hd_cq_peek(sc->s.cq);
}

static struct hd_pkt theirs(const struct scene *sc, uint8_t kind)
{
	struct hd_pkt pkt = wire_eager(&sc->w, 1, 0);

	pkt.kind = kind;
	pkt.src = INDEX;
	pkt.op = THEIRS;
	return pkt;
}

/* A message has come from the endpoint, which nobody here has named. */
static struct scene *scene_open(void)
{
	const struct hd_announce own = { .index = INDEX, .gen = 1, .port = 4000 };
	struct scene *sc = calloc(1, sizeof(*sc));
	struct hd_pkt pkt;

	side_open(&sc->s);
	sc->s.ep->policy |= HD_EP_REMOTE_WRITE;
	wire_greet(&sc->w, &sc->s);
	wire_say(&sc->w, &(struct hd_pkt){ .kind = HD_PKT_ANNOUNCE }, &own, sizeof(own));
	pkt = theirs(sc, HD_PKT_EAGER);
	side_post(&sc->s, sc->in, 8, 1, 0, NULL, NULL);
	wire_say(&sc->w, &pkt, "x", 1);
	sc->before = next(sc)->src;
	assert_int_not_equal(sc->before, 0);
	hd_cq_pop(sc->s.cq);
	test_fill(sc->out, LEN, 5);
	return sc;
}

/* The program names somebody, of whom nothing is known yet. */
static void name_it(struct scene *sc)
{
	sc->now = hd_dest_make(sc->s.node);
	assert_non_null(sc->now);
	sc->now->refs++;
}

static void rename_it(struct scene *sc)
{
	const struct hd_dest *old = hd_dest_by_id(sc->s.node, sc->before);

	wire_settle(&sc->w);
	assert_null(hd_cq_peek(sc->s.cq));
	assert_int_equal(old->refs, 0);
	if (!sc->now)
		name_it(sc);
	hd_dest_bind(sc->now, old->peer, old->remote, old->gen);
	assert_ptr_equal(hd_dest_by_id(sc->s.node, sc->before), sc->now);
}

/* The end of what was on its way, from the destination with this number; `in` has it. */
static void scene_end_from(struct scene *sc, uint32_t number)
{
	const struct hd_cqe *e = next(sc);

	assert_int_equal(e->err, 0);
	assert_int_equal(e->len, LEN);
	assert_int_equal(side_number(&sc->s, e->src, 0), number);
	test_check(sc->in, LEN, 5);
	hd_cq_pop(sc->s.cq);
	hd_dest_put(sc->now);
	if (sc->mr)
		assert_int_equal(hd_mr_close(sc->mr), 0);
	wire_hang_up(&sc->w);
	side_close(&sc->s);
	free(sc);
}

static void scene_end(struct scene *sc)
{
	scene_end_from(sc, hd_dest_id(sc->now));
}

static void begin(struct scene *sc)
{
	const struct hd_pkt pkt = theirs(sc, HD_PKT_EAGER);

	wire_head(&sc->w, &pkt, LEN);
	wire_raw(&sc->w, sc->out, HALF);
	wire_settle(&sc->w);
}

static void rest(struct scene *sc)
{
	wire_raw(&sc->w, sc->out + HALF, LEN - HALF);
	wire_check(&sc->w, LEN);
}

static void receive(struct scene *sc)
{
	side_post(&sc->s, sc->in, LEN, 1, 0, NULL, NULL);
}

/* ---- messages -------------------------------------------------------------------------------- */

static void in_pieces_into_a_receive(void **state)
{
	struct scene *sc = scene_open();

	receive(sc);
	begin(sc);
	rename_it(sc);
	rest(sc);
	scene_end(sc);
}

static void in_pieces_before_a_receive(void **state)
{
	struct scene *sc = scene_open();

	begin(sc);
	rename_it(sc);
	receive(sc);
	rest(sc);
	scene_end(sc);
}

static void in_pieces_for_a_receive_that_waits(void **state)
{
	struct scene *sc = scene_open();

	begin(sc);
	receive(sc);
	rename_it(sc);
	rest(sc);
	scene_end(sc);
}

static void kept(struct scene *sc)
{
	const struct hd_pkt pkt = theirs(sc, HD_PKT_EAGER);

	wire_say(&sc->w, &pkt, sc->out, LEN);
	wire_settle(&sc->w);
}

/* Who asks for the new name's alone gets it. */
static void in_the_queue(void **state)
{
	struct scene *sc = scene_open();

	kept(sc);
	rename_it(sc);
	side_post(&sc->s, sc->in, LEN, 1, 0, sc->now, NULL);
	scene_end(sc);
}

/* So does who has asked before it came, when it was not known yet whom the name means. */
static void asked_for_before(void **state)
{
	struct scene *sc = scene_open();

	name_it(sc);
	side_post(&sc->s, sc->in, LEN, 1, 0, sc->now, NULL);
	kept(sc);
	rename_it(sc);
	scene_end(sc);
}

/*
 * A receive for one name of the endpoint gets what comes under the other, before the second one is
 * known and afterwards; the oldest first.
 */
static void by_two_names(void **state)
{
	struct scene *sc = scene_open();
	struct hd_dest *first = hd_dest_by_id(sc->s.node, sc->before);
	char got[3];

	first->refs++; /* the program has named it so */
	name_it(sc);
	for (int i = 0; i < 3; i++)
		side_post(&sc->s, got + i, 1, 1, 0, sc->now, NULL);
	for (int i = 0; i < 2; i++) {
		const struct hd_pkt pkt = theirs(sc, HD_PKT_EAGER);

		wire_say(&sc->w, &pkt, i ? "b" : "a", 1);
	}
	wire_settle(&sc->w);
	assert_null(hd_cq_peek(sc->s.cq));
	hd_dest_bind(sc->now, first->peer, first->remote, first->gen);
	for (int i = 0; i < 3; i++) {
		const struct hd_pkt pkt = theirs(sc, HD_PKT_EAGER);
		const struct hd_cqe *e;

		if (i == 2)
			wire_say(&sc->w, &pkt, "c", 1);
		e = next(sc);
		assert_int_equal(e->src, sc->before);
		assert_int_equal(got[i], 'a' + i);
		hd_cq_pop(sc->s.cq);
	}
	assert_int_equal(side_number(&sc->s, sc->before, 1), hd_dest_id(sc->now));
	assert_int_equal(side_number(&sc->s, hd_dest_id(sc->now), 1), sc->before);
	assert_int_equal(side_number(&sc->s, sc->before, 2), 0);
	kept(sc);
	side_post(&sc->s, sc->in, LEN, 1, 0, sc->now, NULL);
	hd_dest_put(first);
	scene_end_from(sc, sc->before);
}

/* Whatever has been met meanwhile, what is left is still met in the order in which it came. */
static void by_three_names(void **state)
{
	static const uint64_t tags[] = { 1, 1, 2 };
	struct scene *sc = scene_open();
	struct hd_dest *first = hd_dest_by_id(sc->s.node, sc->before), *third;
	char got[3];

	first->refs++;
	name_it(sc);
	third = sc->now;
	name_it(sc);
	side_post(&sc->s, &got[0], 1, 1, 0, sc->now, NULL);
	for (int i = 1; i < 3; i++)
		side_post(&sc->s, &got[i], 1, 0, UINT64_MAX, third, NULL);
	for (int i = 0; i < 3; i++) {
		struct hd_pkt pkt = theirs(sc, HD_PKT_EAGER);

		pkt.tag = tags[i];
		wire_say(&sc->w, &pkt, &"abc"[i], 1);
	}
	wire_settle(&sc->w);
	hd_dest_bind(sc->now, first->peer, first->remote, first->gen);
	hd_dest_bind(third, first->peer, first->remote, first->gen);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(next(sc)->src, sc->before);
		assert_int_equal(got[i], 'a' + i);
		hd_cq_pop(sc->s.cq);
	}
	kept(sc);
	side_post(&sc->s, sc->in, LEN, 1, 0, third, NULL);
	hd_dest_put(third);
	hd_dest_put(first);
	scene_end_from(sc, sc->before);
}

/*
 * What has been sent by a name that leads elsewhere now is still from whom it is said to be from.
 */
static void after_it_has_gone(void **state)
{
	struct scene *sc = scene_open();

	kept(sc);
	rename_it(sc);
	hd_dest_unbind(sc->now);
	side_post(&sc->s, sc->in, LEN, 1, 0, sc->now, NULL);
	scene_end(sc);
}

/* Of who has taken the place of many, the last numbers are known. */
static void only_so_many_numbers(void **state)
{
	struct scene *sc = scene_open();
	struct hd_dest *old = hd_dest_by_id(sc->s.node, sc->before);
	struct hd_peer *peer = old->peer;
	uint32_t numbers[HD_DEST_FORMER + 2];

	name_it(sc);
	for (unsigned i = 0; i < HD_DEST_FORMER + 2; i++) {
		if (i) {
			hd_dest_unbind(sc->now);
			old = hd_dest_at(peer, INDEX, 1);
			assert_non_null(old);
			old->refs--;
		}
		numbers[i] = hd_dest_id(old);
		hd_dest_bind(sc->now, peer, INDEX, 1);
	}
	for (unsigned i = 0; i < HD_DEST_FORMER + 2; i++)
		assert_ptr_equal(hd_dest_by_id(sc->s.node, numbers[i]), i < 2 ? NULL : sc->now);
	kept(sc);
	receive(sc);
	scene_end(sc);
}

/*
 * However many generations of an endpoint are connected to, one after the other,
 * while an earlier one is held.
 */
static void generations_take_the_place_of_each_other(void **state)
{
	struct scene *sc = scene_open();
	struct hd_dest *first = hd_dest_by_id(sc->s.node, sc->before), *d;
	struct hd_peer *peer = first->peer;

	sc->now = hd_dest_at(peer, INDEX, 1);
	assert_ptr_equal(sc->now, first);
	for (uint16_t gen = 2; gen < 100; gen++) {
		d = hd_dest_at(peer, INDEX, gen);
		assert_non_null(d);
		assert_ptr_not_equal(d, first);
		assert_int_equal(d->gen, gen);
		assert_ptr_equal(hd_dest_at(peer, INDEX, gen), d);
		hd_dest_put(d);
		hd_dest_put(d);
	}
	assert_int_equal(first->gen, 1);
	assert_int_equal(peer->dest_count, 2);
	kept(sc);
	receive(sc);
	scene_end(sc);
}

static void claimed(void **state)
{
	struct scene *sc = scene_open();
	struct iovec iov = { sc->in, LEN };
	const struct hd_recv_args args = {
		.iov = &iov, .count = 1, .flags = HD_RECV_TAGGED | HD_RECV_COMPLETE, .tag = 1
	};
	struct hd_claim *claim;

	kept(sc);
	assert_int_equal(hd_peek(sc->s.ep, &args, HD_PEEK_CLAIM, &claim), 0);
	assert_int_equal(next(sc)->src, sc->before);
	hd_cq_pop(sc->s.cq);
	rename_it(sc);
	assert_int_equal(hd_claim_recv(sc->s.ep, claim, &args), 0);
	scene_end(sc);
}

/* ---- what is asked for piece by piece -------------------------------------------------------- */

static void data(struct scene *sc)
{
	struct hd_pkt pkt = { .kind = HD_PKT_DATA };

	wire_hear_kind(&sc->w, HD_PKT_CTS);
	pkt.op = (uint32_t)sc->w.pkt.imm;
	wire_say(&sc->w, &pkt, sc->out, HALF);
	rename_it(sc);
	pkt.tag = HALF;
	wire_say(&sc->w, &pkt, sc->out + HALF, LEN - HALF);
}

static void a_rendezvous(void **state)
{
	struct scene *sc = scene_open();
	const struct hd_pkt pkt = theirs(sc, HD_PKT_RTS);
	const struct hd_rts rts = { .len = LEN };

	receive(sc);
	wire_say(&sc->w, &pkt, &rts, offsetof(struct hd_rts, offer));
	data(sc);
	scene_end(sc);
}

static void a_write_with_data_for_the_queue(void **state)
{
	struct scene *sc = scene_open();
	const struct {
		struct hd_rma head;
		struct hd_rma_seg seg;
	} body = { { .count = 1 }, { 0, LEN, KEY } };
	struct hd_pkt pkt = theirs(sc, HD_PKT_WRITE);

	sc->mr = side_region(&sc->s, KEY, sc->in, LEN, HD_ACCESS_REMOTE_WRITE, 0);
	pkt.flags = HD_PKT_F_IMM;
	pkt.tag = LEN;
	wire_say(&sc->w, &pkt, &body, sizeof(body));
	data(sc);
	scene_end(sc);
}

/* ---- whatever happens, as a plain list of each would have it --------------------------------- */

#define NAMES 4
#define STEPS 3000

struct heard {
	uint64_t tag;
	uint32_t src;
	bool is_there, is_old; /* old: the name that it came under has led elsewhere since */
};

struct asked {
	uint64_t tag, ignore;
	uint32_t src;
	uint16_t got, want; /* 0: none */
	bool is_there;
};

struct model {
	struct scene *sc;
	struct hd_peer *peer;
	struct hd_dest *name[NAMES];
	struct heard heard[STEPS + 1];
	struct asked asked[STEPS + 1];
	uint16_t said, posted;
	unsigned seed;
};

static bool agree(struct model *m, const struct asked *a, const struct heard *h)
{
	struct hd_source_walk walk = { 0 };
	uint32_t n;

	if ((a->tag ^ h->tag) & ~a->ignore)
		return false;
	if (!a->src || a->src == h->src)
		return true;
	while ((n = hd_source_next(m->sc->s.node, h->src, &walk)))
		if (n == a->src)
			return true;
	return false;
}

static bool meets_asked(struct model *m, uint16_t h)
{
	for (uint16_t i = 1; i <= m->posted; i++)
		if (m->asked[i].is_there && agree(m, &m->asked[i], &m->heard[h])) {
			m->asked[i].is_there = m->heard[h].is_there = false;
			m->asked[i].want = h;
			return true;
		}
	return false;
}

/* A number that is nobody's comes back one day, for somebody who has sent nothing of this. */
static void model_lose(struct model *m)
{
	for (uint16_t h = 1; h <= m->said; h++)
		if (m->heard[h].src && !hd_dest_by_id(m->sc->s.node, m->heard[h].src))
			m->heard[h].src = 0;
}

static void model_say(struct model *m)
{
	struct hd_pkt pkt = theirs(m->sc, HD_PKT_EAGER);
	uint16_t what = ++m->said;

	pkt.tag = (uint64_t)rand_r(&m->seed) % 3;
	wire_say(&m->sc->w, &pkt, &what, sizeof(what));
	wire_settle(&m->sc->w);
	m->heard[what] = (struct heard){ pkt.tag, hd_remote_source(m->peer, INDEX), true, false };
	meets_asked(m, what);
}

static void model_post(struct model *m)
{
	unsigned who = (unsigned)rand_r(&m->seed) % (NAMES + 1);
	const struct hd_dest *src = who < NAMES ? m->name[who] : NULL;
	uint16_t i = ++m->posted;
	struct asked *a = &m->asked[i];

	*a = (struct asked){ (uint64_t)rand_r(&m->seed) % 3,
			     rand_r(&m->seed) % 3 ? 0 : UINT64_MAX,
			     src ? hd_dest_id(src) : 0,
			     0,
			     0,
			     true };
	side_post(&m->sc->s, &a->got, sizeof(a->got), a->tag, a->ignore, src, NULL);
	for (uint16_t h = 1; h <= m->said; h++)
		if (m->heard[h].is_there && agree(m, a, &m->heard[h])) {
			a->is_there = m->heard[h].is_there = false;
			a->want = h;
			return;
		}
}

static void model_bind(struct model *m, struct hd_dest *d)
{
	hd_dest_bind(d, m->peer, INDEX, 1);
	model_lose(m);
	for (uint16_t h = 1; h <= m->said; h++) {
		struct hd_dest *of = hd_dest_by_id(m->sc->s.node, m->heard[h].src);

		if (m->heard[h].is_there && !m->heard[h].is_old && of && of->state == HD_DEST_BOUND)
			meets_asked(m, h);
	}
}

static void model_unbind(struct model *m, struct hd_dest *d)
{
	for (uint16_t h = 1; h <= m->said; h++)
		if (hd_dest_by_id(m->sc->s.node, m->heard[h].src) == d)
			m->heard[h].is_old = true;
	hd_dest_unbind(d);
	model_lose(m);
}

/* The program gives a name back, and has another one. */
static void model_forget(struct model *m, unsigned k)
{
	for (uint16_t i = 1; i <= m->posted; i++)
		if (m->asked[i].is_there && m->asked[i].src == hd_dest_id(m->name[k]))
			return;
	hd_dest_put(m->name[k]);
	model_lose(m);
	m->name[k] = hd_dest_make(m->sc->s.node);
	assert_non_null(m->name[k]);
	m->name[k]->refs++;
}

static void model_check(struct model *m)
{
	while (hd_cq_peek(m->sc->s.cq)) {
		assert_int_equal(hd_cq_peek(m->sc->s.cq)->err, 0);
		hd_cq_pop(m->sc->s.cq);
	}
	for (uint16_t i = 1; i <= m->posted; i++)
		assert_int_equal(m->asked[i].got, m->asked[i].want);
}

static void as_the_lists_have_it(void **state)
{
	const char *given = getenv("HD_TEST_SEED");
	struct model *m = calloc(1, sizeof(*m));

	m->seed = given ? (unsigned)strtoul(given, NULL, 0) : (unsigned)hd_now_ns();
	print_message("# HD_TEST_SEED=%u\n", m->seed);
	m->sc = scene_open();
	m->peer = hd_dest_by_id(m->sc->s.node, m->sc->before)->peer;
	for (unsigned k = 0; k < NAMES; k++) {
		m->name[k] = hd_dest_make(m->sc->s.node);
		assert_non_null(m->name[k]);
		m->name[k]->refs++;
	}
	for (unsigned i = 0; i < STEPS; i++) {
		unsigned k = (unsigned)rand_r(&m->seed) % NAMES, what = (unsigned)rand_r(&m->seed) % 16;

		if (what < 6)
			model_say(m);
		else if (what < 12)
			model_post(m);
		else if (what == 12)
			model_forget(m, k);
		else if (m->name[k]->state == HD_DEST_BOUND)
			model_unbind(m, m->name[k]);
		else
			model_bind(m, m->name[k]);
		model_check(m);
	}
	for (unsigned k = 0; k < NAMES; k++)
		hd_dest_put(m->name[k]);
	wire_hang_up(&m->sc->w);
	side_close(&m->sc->s);
	free(m->sc);
	free(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(in_pieces_into_a_receive),
		cmocka_unit_test(in_pieces_before_a_receive),
		cmocka_unit_test(in_pieces_for_a_receive_that_waits),
		cmocka_unit_test(in_the_queue),
		cmocka_unit_test(asked_for_before),
		cmocka_unit_test(by_two_names),
		cmocka_unit_test(by_three_names),
		cmocka_unit_test(after_it_has_gone),
		cmocka_unit_test(only_so_many_numbers),
		cmocka_unit_test(generations_take_the_place_of_each_other),
		cmocka_unit_test(claimed),
		cmocka_unit_test(a_rendezvous),
		cmocka_unit_test(a_write_with_data_for_the_queue),
		cmocka_unit_test(as_the_lists_have_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
