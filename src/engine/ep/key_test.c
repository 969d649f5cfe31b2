/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Authorization keys: who hears whom, in messages, one-sided and atomic operations; endpoints with
 * several keys; receives by key.
 */
#include "engine/test/test_pair.h"
#include "engine/test/test_wire.h"

#include "engine/mr/mr.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define ALL \
	(HD_ACCESS_REMOTE_READ | HD_ACCESS_REMOTE_WRITE | HD_ACCESS_REMOTE_ATOMIC | HD_ACCESS_REMOTE_FETCH)
#define BIG (1u << 20)

static uint64_t key_of(const char *text)
{
	return hd_key_digest(text, strlen(text));
}

static struct hd_dest *name(struct side *s, const struct side *other, uint64_t key)
{
	struct sockaddr_storage at;
	struct hd_dest *dest;

	assert_int_equal(hd_ep_name(other->ep, AF_UNSPEC, &at), 0);
	assert_int_equal(hd_dest_get_keyed(s->node, (void *)&at, key, &dest), 0);
	return dest;
}

/* Two endpoints, of a key each (0: none), that call each other by their own key. */
static void open_with(struct pair *p, const char *transport, uint64_t a, uint64_t b, enum hd_ep_type type)
{
	memset(p, 0, sizeof(*p));
	setenv("HEDDLE_TRANSPORT", transport, 1);
	side_open(&p->a);
	side_open(&p->b);
	side_keys(&p->a, &a, a != 0, type);
	side_keys(&p->b, &b, b != 0, type);
	p->a.to = name(&p->a, &p->b, a);
	p->b.to = name(&p->b, &p->a, b);
}

static struct hd_mr *region(struct side *s, void *at, size_t len, const uint64_t *auth, uint32_t count)
{
	const struct iovec iov = { at, len };
	const struct hd_mr_attr attr = { .iov = &iov,
					 .count = 1,
					 .access = ALL,
					 .flags = HD_MR_KEY,
					 .key = 7,
					 .auth = auth,
					 .auth_count = count };
	struct hd_mr *mr;

	assert_int_equal(hd_mr_open(s->node, &attr, &mr), 0);
	return mr;
}

/* How a one-sided operation of a on region 7 of b ends. */
static int reach(struct pair *p, struct hd_dest *to, enum hd_rma_op op, void *buf, size_t len, uint32_t flags)
{
	const struct iovec iov = { buf, len };
	const struct hd_rma_seg seg = { 0, len, 7 };
	const struct hd_rma_args args = { .op = op,
					  .iov = &iov,
					  .count = 1,
					  .segs = &seg,
					  .seg_count = 1,
					  .ctx = buf,
					  .flags = HD_SEND_COMPLETE | flags };
	int rc;

	while ((rc = hd_rma(p->a.ep, to, &args)) == -EAGAIN)
		pair_settle(p, 1);
	return (int)(rc ? hd_status_of(rc) : pair_next(p, &p->a).err);
}

static int add_one(struct pair *p, struct hd_dest *to, uint32_t flags)
{
	uint64_t one = 1;
	const struct iovec iov = { &one, sizeof(one) };
	const struct hd_rma_seg seg = { 0, sizeof(one), 7 };
	const struct hd_atomic_args args = { .how = HD_ATOMIC_BASE,
					     .op = HD_ATOMIC_SUM,
					     .type = HD_ATOMIC_U64,
					     .iov = &iov,
					     .count = 1,
					     .segs = &seg,
					     .seg_count = 1,
					     .flags = HD_SEND_COMPLETE | flags };
	int rc = pair_atomic_to(p, to, &args);

	return (int)(rc ? hd_status_of(rc) : pair_next(p, &p->a).err);
}

static void digests_differ(void **state)
{
	assert_true(key_of("a") && key_of("b") && key_of("a") != key_of("b"));
	assert_true(hd_key_digest("a\0", 2) != key_of("a"));
	assert_true(hd_key_digest("", 0) != 0);
}

static void equal_keys_talk(void **state)
{
	unsigned char *out = malloc(BIG), *in = malloc(BIG);
	struct pair p;

	EACH_TRANSPORT(t)
	for (size_t len = 8; len <= BIG; len *= BIG / 8) {
		struct hd_mr *mr;
		struct hd_cqe e;

		open_with(&p, t, key_of("job"), key_of("job"), HD_EP_RDM);
		side_post(&p.b, in, BIG, 1, 0, p.b.to, in);
		test_fill(out, len, 4);
		pair_push(&p, &p.a, out, len, 1, HD_SEND_COMPLETE);
		e = pair_next(&p, &p.b);
		assert_int_equal(e.err, 0);
		assert_int_equal(e.src, hd_dest_id(p.b.to));
		test_check(in, len, 4);
		assert_int_equal(pair_next(&p, &p.a).err, 0);
		mr = region(&p.b, in, BIG, NULL, 0);
		test_fill(out, len, 5);
		assert_int_equal(reach(&p, p.a.to, HD_RMA_WRITE, out, len, 0), 0);
		test_check(in, len, 5);
		assert_int_equal(reach(&p, p.a.to, HD_RMA_READ, out, len, 0), 0);
		assert_int_equal(add_one(&p, p.a.to, 0), 0);
		assert_int_equal(hd_mr_close(mr), 0);
		pair_close(&p);
	}
	free(out);
	free(in);
}

/* Whichever key a has, what is not b's hears of an error, and b of nothing. */
static void other_keys_do_not(void **state)
{
	static const char *const keys[][2] = { { "one", "two" }, { "one", NULL }, { NULL, "two" } };
	unsigned char in[8] = "asis";
	uint64_t counter = 5;
	struct pair p;

	EACH_TRANSPORT(t)
	for (size_t i = 0; i < 3; i++) {
		struct hd_mr *mr;

		open_with(&p, t, keys[i][0] ? key_of(keys[i][0]) : 0, keys[i][1] ? key_of(keys[i][1]) : 0,
			  HD_EP_RDM);
		side_post(&p.b, in, sizeof(in), 0, UINT64_MAX, NULL, in);
		mr = region(&p.b, &counter, sizeof(counter), NULL, 0);
		pair_push(&p, &p.a, "mine", 4, 1, HD_SEND_COMPLETE);
		assert_int_equal(pair_next(&p, &p.a).err, HD_S_ACCESS);
		assert_int_equal(reach(&p, p.a.to, HD_RMA_WRITE, "overwrit", 8, 0), HD_S_ACCESS);
		assert_int_equal(add_one(&p, p.a.to, 0), HD_S_ACCESS);
		pair_settle(&p, 20);
		assert_null(hd_cq_peek(p.b.cq));
		assert_string_equal((char *)in, "asis");
		assert_int_equal(counter, 5);
		assert_int_equal(hd_mr_close(mr), 0);
		pair_close(&p);
	}
}

static void datagrams_of_other_keys_are_lost(void **state)
{
	unsigned char in[8];
	struct pair p;

	EACH_TRANSPORT(t)
	for (int same = 0; same < 2; same++) {
		open_with(&p, t, key_of("one"), same ? key_of("one") : key_of("two"), HD_EP_DGRAM);
		side_post(&p.b, in, sizeof(in), 0, UINT64_MAX, NULL, in);
		pair_push(&p, &p.a, "mine", 4, 1, 0);
		if (same)
			assert_int_equal(pair_next(&p, &p.b).len, 4);
		pair_settle(&p, 20);
		assert_null(hd_cq_peek(p.b.cq));
		pair_close(&p);
	}
}

/* A node that says it has no key, or another, and sends all the same. */
static void who_has_not_announced_it_is_refused(void **state)
{
	uint64_t key = key_of("mine");
	struct wire *w = malloc(sizeof(*w));
	struct side s;

	setenv("HEDDLE_TRANSPORT", "tcp", 1);
	for (int i = 0; i < 3; i++) {
		struct hd_announce a = { .index = 9, .gen = 1, .port = 77, .key = i == 2 ? key : key + 1 };
		unsigned char in[8];
		struct hd_pkt pkt;

		side_open(&s);
		wire_greet(w, &s);
		side_keys(&s, &key, 1, HD_EP_RDM);
		pkt = wire_eager(w, 3, HD_PKT_F_ACK | HD_PKT_F_TAGGED);
		pkt.dst = s.ep->index;
		pkt.gen = s.ep->gen;
		pkt.src = 9;
		side_post(&s, in, sizeof(in), 3, 0, NULL, in);
		if (i)
			wire_say(w, &(struct hd_pkt){ .kind = HD_PKT_ANNOUNCE }, &a, sizeof(a));
		wire_say(w, &pkt, "word", 4);
		wire_hear_kind(w, i == 2 ? HD_PKT_ACK : HD_PKT_FIN);
		assert_int_equal(w->pkt.imm, i == 2 ? 0 : HD_S_REFUSED);
		assert_true(!hd_cq_peek(s.cq) == (i < 2));
		wire_hang_up(w);
		side_close(&s);
	}
	free(w);
}

/* An endpoint that has been announced keeps its key. */
static void announced_keys_do_not_change(void **state)
{
	struct hd_announce a = { .index = 9, .gen = 1, .port = 77, .key = 5 };
	struct wire *w = malloc(sizeof(*w));
	struct side s;

	setenv("HEDDLE_TRANSPORT", "tcp", 1);
	side_open(&s);
	wire_greet(w, &s);
	wire_say(w, &(struct hd_pkt){ .kind = HD_PKT_ANNOUNCE }, &a, sizeof(a));
	wire_say(w, &(struct hd_pkt){ .kind = HD_PKT_ANNOUNCE }, &a, sizeof(a));
	wire_settle(w);
	a.key = 6;
	wire_say(w, &(struct hd_pkt){ .kind = HD_PKT_ANNOUNCE }, &a, sizeof(a));
	wire_gone(w);
	wire_hang_up(w);
	side_close(&s);
	free(w);
}

/* ---- several keys ---------------------------------------------------------------------------- */

struct two {
	struct pair p;
	uint64_t key[2];
	struct hd_dest *b[2]; /* of a: b with each key */
	struct hd_dest *a[2]; /* of b */
};

static void two_open(struct two *t, const char *transport)
{
	t->key[0] = key_of("first");
	t->key[1] = key_of("second");
	open_with(&t->p, transport, 0, 0, HD_EP_RDM);
	side_keys(&t->p.a, t->key, 2, HD_EP_RDM);
	side_keys(&t->p.b, t->key, 2, HD_EP_RDM);
	for (int i = 0; i < 2; i++) {
		t->b[i] = name(&t->p.a, &t->p.b, t->key[i]);
		t->a[i] = name(&t->p.b, &t->p.a, t->key[i]);
	}
}

static void two_close(struct two *t)
{
	for (int i = 0; i < 2; i++) {
		hd_dest_put(t->b[i]);
		hd_dest_put(t->a[i]);
	}
	pair_close(&t->p);
}

static void two_send(struct two *t, int with, const void *buf, size_t len, uint64_t tag)
{
	struct hd_dest *own = t->p.a.to;

	t->p.a.to = t->b[with];
	pair_push(&t->p, &t->p.a, buf, len, tag, HD_SEND_KEYED);
	t->p.a.to = own;
}

static void each_key_is_a_source_of_its_own(void **state)
{
	unsigned char *out = malloc(BIG), *in[2] = { malloc(BIG), malloc(BIG) };
	struct two t;

	EACH_TRANSPORT(transport)
	for (size_t len = 4; len <= BIG; len *= BIG / 4) {
		two_open(&t, transport);
		assert_int_equal(hd_ep_aliases(t.p.b.ep), 2);
		for (int i = 0; i < 2; i++)
			side_post(&t.p.b, in[i], BIG, 0, UINT64_MAX, t.a[i], in[i]);
		for (int i = 1; i >= 0; i--) {
			struct hd_cqe e;

			two_send(&t, i, out, len, (unsigned)i);
			e = pair_next(&t.p, &t.p.b);
			assert_int_equal(e.err, 0);
			assert_int_equal(e.tag, i);
			assert_ptr_equal(e.ctx, in[i]);
			assert_int_equal(e.src, hd_dest_id(t.a[i]));
			assert_int_equal(e.ep, hd_ep_index(hd_ep_alias_at(t.p.b.ep, (unsigned)i)));
		}
		two_close(&t);
	}
	free(out);
	free(in[0]);
	free(in[1]);
}

static void receives_by_key_take_their_turn(void **state)
{
	const struct hd_dest *by[2];
	unsigned char in[6][8];
	struct two t;

	EACH_TRANSPORT(transport)
	{
		/* by key 1, any, by source, by key 0, by key 1: what each of these messages gets */
		static const int with[] = { 0, 1, 1, 0, 0, 1 }, got[] = { 1, 0, 2, 4, 5, 3 };
		const struct hd_dest *src[6];

		two_open(&t, transport);
		for (int i = 0; i < 2; i++) {
			by[i] = hd_key_sources(t.p.b.node, t.key[i]);
			assert_non_null(by[i]);
			assert_ptr_equal(by[i], hd_key_sources(t.p.b.node, t.key[i]));
		}
		src[0] = by[1];
		src[1] = NULL;
		src[2] = t.a[1];
		src[3] = by[1];
		src[4] = by[0];
		src[5] = by[0];
		for (int i = 0; i < 6; i++)
			side_post(&t.p.b, in[i], sizeof(in[i]), 7, i == 5 ? 8 : 0, src[i], in[i]);
		for (int i = 0; i < 6; i++) {
			two_send(&t, with[i], "word", 4, 7);
			assert_ptr_equal(pair_next(&t.p, &t.p.b).ctx, in[got[i]]);
		}
		/* the other way round: messages wait */
		for (int i = 0; i < 4; i++)
			two_send(&t, i & 1, "word", 4, (unsigned)i);
		pair_settle(&t.p, 20);
		assert_null(hd_cq_peek(t.p.b.cq));
		side_post(&t.p.b, in[0], 8, 0, UINT64_MAX, by[1], in[0]);
		assert_int_equal(pair_next(&t.p, &t.p.b).tag, 1);
		side_post(&t.p.b, in[0], 8, 2, 0, by[0], in[0]);
		assert_int_equal(pair_next(&t.p, &t.p.b).tag, 2);
		side_post(&t.p.b, in[0], 8, 2, 0, by[0], in[0]);
		pair_settle(&t.p, 5);
		assert_null(hd_cq_peek(t.p.b.cq));
		assert_int_equal(hd_cancel(t.p.b.ep, in[0]), 0);
		assert_int_equal(pair_next(&t.p, &t.p.b).err, HD_S_CANCELLED);
		side_post(&t.p.b, in[0], 8, 3, 0, t.a[1], in[0]);
		assert_int_equal(pair_next(&t.p, &t.p.b).tag, 3);
		side_post(&t.p.b, in[0], 8, 0, UINT64_MAX, NULL, in[0]);
		assert_int_equal(pair_next(&t.p, &t.p.b).tag, 0);
		two_close(&t);
	}
}

/* One of the keys is enough; a key that an endpoint has not got is refused at the call. */
static void one_common_key_is_enough(void **state)
{
	uint64_t other = key_of("third");
	struct hd_dest *nowhere;
	unsigned char in[8];
	struct two t;

	EACH_TRANSPORT(transport)
	{
		two_open(&t, transport);
		side_keys(&t.p.b, &t.key[1], 1, HD_EP_RDM);
		hd_dest_put(t.b[1]);
		t.b[1] = name(&t.p.a, &t.p.b, t.key[1]);
		nowhere = name(&t.p.a, &t.p.b, other);
		side_post(&t.p.b, in, sizeof(in), 1, 0, NULL, in);
		two_send(&t, 1, "word", 4, 1);
		assert_int_equal(pair_next(&t.p, &t.p.b).len, 4);
		assert_int_equal(hd_send(t.p.a.ep, nowhere, "word", 4, 1, 0, NULL, TAGGED(HD_SEND_KEYED)),
				 -EACCES);
		assert_int_equal(reach(&t.p, nowhere, HD_RMA_WRITE, in, 4, HD_SEND_KEYED), HD_S_ACCESS);
		assert_int_equal(add_one(&t.p, nowhere, HD_SEND_KEYED), HD_S_ACCESS);
		hd_dest_put(nowhere);
		two_close(&t);
	}
}

static void regions_have_keys(void **state)
{
	uint64_t counter = 0, value = 3;
	struct hd_mr *mr;
	struct two t;

	EACH_TRANSPORT(transport)
	{
		two_open(&t, transport);
		mr = region(&t.p.b, &counter, sizeof(counter), &t.key[1], 1);
		assert_int_equal(reach(&t.p, t.b[0], HD_RMA_WRITE, &value, 8, HD_SEND_KEYED), HD_S_ACCESS);
		assert_int_equal(add_one(&t.p, t.b[0], HD_SEND_KEYED), HD_S_ACCESS);
		assert_int_equal(counter, 0);
		assert_int_equal(reach(&t.p, t.b[1], HD_RMA_WRITE, &value, 8, HD_SEND_KEYED), 0);
		assert_int_equal(add_one(&t.p, t.b[1], HD_SEND_KEYED), 0);
		assert_int_equal(counter, 4);
		assert_int_equal(reach(&t.p, t.b[1], HD_RMA_READ, &value, 8, HD_SEND_KEYED), 0);
		assert_int_equal(value, 4);
		assert_int_equal(hd_mr_close(mr), 0);
		mr = region(&t.p.b, &counter, sizeof(counter), t.key, 2);
		for (int i = 0; i < 2; i++)
			assert_int_equal(reach(&t.p, t.b[i], HD_RMA_READ, &value, 8, HD_SEND_KEYED), 0);
		assert_int_equal(hd_mr_close(mr), 0);
		counter = 0;
		value = 3;
		two_close(&t);
	}
}

/*
 * A region with a key is not shown to peers that would copy by themselves, and an
 * endpoint without it is refused.
 */
static void a_region_with_a_key_at_an_endpoint_without(void **state)
{
	uint64_t counter = 0, value = 3, key = key_of("region");
	struct hd_mr *mr;
	struct pair p;

	EACH_TRANSPORT(transport)
	{
		open_with(&p, transport, 0, 0, HD_EP_RDM);
		mr = region(&p.b, &counter, sizeof(counter), &key, 1);
		assert_int_equal(hd_mr_inspect(mr).row, -1);
		assert_int_equal(reach(&p, p.a.to, HD_RMA_WRITE, &value, 8, 0), HD_S_ACCESS);
		assert_int_equal(hd_mr_close(mr), 0);
		mr = region(&p.b, &counter, sizeof(counter), NULL, 0);
		assert_int_equal(reach(&p, p.a.to, HD_RMA_WRITE, &value, 8, 0), 0);
		assert_int_equal(hd_mr_close(mr), 0);
		pair_close(&p);
	}
}

/* ---- with other things ----------------------------------------------------------------------- */

static void two_push(struct two *t, struct hd_ep *from, struct hd_dest *to, const void *buf, uint32_t flags)
{
	int rc;

	while ((rc = hd_send(from, to, buf, 4, 5, 0, NULL, HD_SEND_KEYED | flags)) == -EAGAIN)
		pair_settle(&t->p, 1);
	assert_int_equal(rc, 0);
	pair_settle(&t->p, 20);
}

/*
 * Nobody is told before there is a queue to tell; then of all, at the face that each came to;
 * without the queue handles are nothing.
 */
static void early_messages_of_all_aliases_are_told(void **state)
{
	struct hd_ep_attr attr = { .type = HD_EP_RDM,
				   .policy = HD_EP_DIRECTED | HD_EP_BY_KEY | HD_EP_BUFFERED,
				   .buffered = { .owner = &attr, .limit = 64 },
				   .key_count = 2 };
	struct hd_handed *handed[2];
	struct two t;

	EACH_TRANSPORT(transport)
	{
		two_open(&t, transport);
		attr.keys = t.key;
		attr.rx_cq = NULL;
		hd_ep_close(t.p.b.ep);
		assert_int_equal(hd_ep_open(t.p.b.node, &attr, &t.p.b.ep), 0);
		for (int i = 0; i < 2; i++) {
			hd_dest_put(t.b[i]);
			t.b[i] = name(&t.p.a, &t.p.b, t.key[i]);
		}
		for (int i = 1; i >= 0; i--)
			two_push(&t, t.p.a.ep, t.b[i], "word", 0);
		attr.rx_cq = t.p.b.cq;
		hd_ep_rebind(t.p.b.ep, &attr);
		for (int i = 1; i >= 0; i--) {
			struct hd_cqe e = pair_next(&t.p, &t.p.b);

			handed[i] = e.ctx;
			assert_int_equal(e.len, 4);
			assert_int_equal(e.src, hd_dest_id(t.a[i]));
			assert_int_equal(e.ep, hd_ep_index(hd_ep_alias_at(t.p.b.ep, (unsigned)i)));
			assert_true(hd_handed_is(t.p.b.ep, handed[i]));
		}
		attr.rx_cq = NULL;
		hd_ep_rebind(t.p.b.ep, &attr);
		for (int i = 0; i < 2; i++)
			assert_false(hd_handed_is(t.p.b.ep, handed[i]));
		two_close(&t);
	}
}

/*
 * What a nameless endpoint sends comes from the face that has the key, of the
 * one that it stands beside.
 */
static void a_nameless_one_sends_for_each_alias(void **state)
{
	struct hd_ep_attr attr = { .type = HD_EP_RDM, .policy = HD_EP_NAMELESS, .key_count = 2 };
	const uint64_t strange = key_of("third");
	struct hd_ep *sender, *none = NULL;
	unsigned char in[2][8];
	struct two t;

	EACH_TRANSPORT(transport)
	{
		two_open(&t, transport);
		attr.beside = t.p.a.ep;
		attr.keys = t.key;
		assert_int_equal(hd_ep_open(t.p.a.node, &attr, &sender), 0);
		assert_int_equal(hd_ep_aliases(sender), 2);
		for (int i = 0; i < 2; i++)
			side_post(&t.p.b, in[i], sizeof(in[i]), 5, 0, t.a[i], in[i]);
		for (int i = 1; i >= 0; i--) {
			struct hd_cqe e;

			two_push(&t, sender, t.b[i], "word", HD_SEND_TAGGED);
			e = pair_next(&t.p, &t.p.b);
			assert_ptr_equal(e.ctx, in[i]);
			assert_int_equal(e.src, hd_dest_id(t.a[i]));
		}
		hd_ep_close(sender);
		attr.keys = &strange;
		attr.key_count = 1;
		assert_int_equal(hd_ep_open(t.p.a.node, &attr, &none), -EINVAL);
		attr.key_count = 2;
		attr.keys = (uint64_t[]){ t.key[1], strange };
		assert_int_equal(hd_ep_open(t.p.a.node, &attr, &none), -EINVAL);
		assert_null(none);
		two_close(&t);
	}
}

/* Several endpoints with both keys, one queue. */
static void a_shared_queue_is_matched_by_key(void **state)
{
	struct hd_ep_attr attr = { .type = HD_EP_RDM, .key_count = 2 };
	const struct hd_ep_attr nameless = { .type = HD_EP_RDM, .policy = HD_EP_NAMELESS };
	struct hd_ep_attr poster;
	unsigned char in[2][8];
	struct hd_ep *ep[2];
	struct hd_dest *to;
	struct hd_rq *rq;
	struct side at;
	struct two t;

	EACH_TRANSPORT(transport)
	{
		two_open(&t, transport);
		assert_int_equal(hd_rq_open(t.p.b.node, true, &rq), 0);
		hd_rq_group(rq);
		poster = nameless;
		poster.rq = attr.rq = rq;
		attr.rx_cq = t.p.b.cq;
		attr.keys = t.key;
		at = t.p.b;
		assert_int_equal(hd_ep_open(t.p.b.node, &poster, &at.ep), 0);
		for (int i = 0; i < 2; i++)
			assert_int_equal(hd_ep_open(t.p.b.node, &attr, &ep[i]), 0);
		for (int n = 0; n < 4; n++) {
			int k = n % 2;
			struct side b = { .ep = ep[n / 2] };
			struct hd_cqe e;

			to = name(&t.p.a, &b, t.key[k]);
			for (int i = 0; i < 2 && !k; i++) /* by key 1 first */
				side_post(&at, in[i], 8, 5, 0, hd_key_sources(t.p.b.node, t.key[1 - i]),
					  in[i]);
			two_push(&t, t.p.a.ep, to, "word", HD_SEND_TAGGED);
			e = pair_next(&t.p, &t.p.b);
			assert_ptr_equal(e.ctx, in[1 - k]);
			assert_int_equal(e.ep, hd_ep_index(hd_ep_alias_at(ep[n / 2], (unsigned)k)));
			hd_dest_put(to);
		}
		assert_int_equal(hd_rq_close(rq), -EBUSY);
		for (int i = 0; i < 2; i++)
			hd_ep_close(ep[i]);
		hd_ep_close(at.ep);
		assert_int_equal(hd_rq_close(rq), 0);
		two_close(&t);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(digests_differ),
		cmocka_unit_test(equal_keys_talk),
		cmocka_unit_test(other_keys_do_not),
		cmocka_unit_test(datagrams_of_other_keys_are_lost),
		cmocka_unit_test(who_has_not_announced_it_is_refused),
		cmocka_unit_test(announced_keys_do_not_change),
		cmocka_unit_test(each_key_is_a_source_of_its_own),
		cmocka_unit_test(receives_by_key_take_their_turn),
		cmocka_unit_test(one_common_key_is_enough),
		cmocka_unit_test(regions_have_keys),
		cmocka_unit_test(a_region_with_a_key_at_an_endpoint_without),
		cmocka_unit_test(early_messages_of_all_aliases_are_told),
		cmocka_unit_test(a_nameless_one_sends_for_each_alias),
		cmocka_unit_test(a_shared_queue_is_matched_by_key),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
