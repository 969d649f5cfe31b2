/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Buffered receives: what is handed over, in which order, for how long, and which
 * handles stand for nothing.
 */
#include "engine/rq/rq.h"
#include "engine/test/test_pair.h"

#include <stdlib.h>

#define LIMIT 1000u
#define MIN 200u
#define LONG (256u << 10)
#define MANY 200 /* more than a page has handles */

static char owner; /* what handles of untagged messages name */

/* a sends, b has its messages handed over. */
static void buffered_open(struct pair *p, const char *transport)
{
	pair_open(p, transport);
	hd_ep_close(p->b.ep);
	assert_int_equal(hd_ep_open(p->b.node,
				    &(struct hd_ep_attr){
					    .type = HD_EP_RDM,
					    .policy = HD_EP_BUFFERED,
					    .tx_cq = p->b.cq,
					    .rx_cq = p->b.cq,
					    .buffered = { .owner = &owner, .limit = LIMIT, .min = MIN } },
				    &p->b.ep),
			 0);
	hd_dest_put(p->a.to);
	side_names(&p->a, &p->b);
}

/* What was held for messages and their beginnings has been given back. */
static void buffered_close(struct pair *p)
{
	pair_settle(p, 5);
	assert_null(hd_cq_peek(p->b.cq));
	pair_close(p);
}

static void say(struct pair *p, const void *buf, size_t len, uint64_t imm, uint32_t flags)
{
	uint64_t end = hd_now_ns() + PATIENCE;
	int rc;

	while ((rc = hd_send(p->a.ep, p->a.to, buf, len, 0, imm, NULL, flags | HD_SEND_IMM)) == -EAGAIN) {
		pair_settle(p, 1);
		assert_true(hd_now_ns() < end);
	}
	assert_int_equal(rc, 0);
}

/* The next message handed over at b, with this immediate value. */
static struct hd_handed *handed(struct pair *p, uint64_t imm, struct hd_cqe *e)
{
	*e = pair_next(p, &p->b);
	assert_int_equal(e->err, 0);
	assert_int_equal(e->imm, imm);
	assert_true(hd_handed_is(p->b.ep, e->ctx));
	return e->ctx;
}

static int claim(struct pair *p, struct hd_handed *h, void *buf, size_t len, uint32_t flags)
{
	struct iovec iov = { buf, len };

	return hd_handed_recv(
		p->b.ep, h,
		&(struct hd_recv_args){ .iov = &iov, .count = 1, .flags = HD_RECV_COMPLETE | flags });
}

static void tells_where_it_lies_until_it_is_claimed(void **state)
{
	unsigned char out[3][LIMIT], in[LIMIT];
	struct hd_handed *h[3];
	struct hd_cqe e[3], done;
	struct pair p;

	EACH_TRANSPORT(t)
	{
		buffered_open(&p, t);
		for (unsigned i = 0; i < 3; i++) {
			test_fill(out[i], LIMIT, i);
			say(&p, out[i], LIMIT - i, i, HD_SEND_INJECT);
			h[i] = handed(&p, i, &e[i]);
			assert_ptr_equal(h[i]->owner, &owner);
			assert_null(h[i]->ctx);
			assert_int_equal(e[i].len, LIMIT - i);
			assert_false(e[i].flags & HD_C_MORE);
		}
		for (unsigned k = 3; k-- > 0;) { /* in whatever order */
			test_check(e[k].buf, LIMIT - k, k);
			h[k]->ctx = &in[k];
			assert_int_equal(claim(&p, h[k], in, sizeof(in), 0), 0);
			done = pair_next(&p, &p.b);
			assert_ptr_equal(done.ctx, &in[k]);
			assert_true(done.flags & HD_C_CLAIM);
			assert_int_equal(done.len, LIMIT - k);
			test_check(in, LIMIT - k, k);
		}
		buffered_close(&p);
	}
}

static void a_handle_stands_for_one_message_once(void **state)
{
	struct hd_handed *h[2], nobody = { NULL, NULL };
	unsigned char out[64] = { 0 }, in[64];
	struct hd_cqe e;
	struct pair p;

	EACH_TRANSPORT(t)
	{
		buffered_open(&p, t);
		assert_false(hd_handed_is(p.b.ep, NULL));
		assert_int_equal(claim(&p, &nobody, in, sizeof(in), 0), -EINVAL);
		assert_int_equal(hd_handed_discard(p.b.ep, NULL), -EINVAL);
		for (unsigned i = 0; i < 2; i++) {
			say(&p, out, sizeof(out), i, 0);
			h[i] = handed(&p, i, &e);
		}
		/* beside one, beyond the last one, and as a message of the other kind */
		assert_int_equal(hd_handed_discard(p.b.ep, (void *)((char *)h[0] + 8)), -EINVAL);
		assert_int_equal(hd_handed_discard(p.b.ep, (void *)((uintptr_t)h[0] ^ 0xfc0)), -EINVAL);
		assert_int_equal(claim(&p, h[0], in, sizeof(in), HD_RECV_TAGGED), -EINVAL);
		/* not buffered at all */
		assert_int_equal(hd_handed_discard(p.a.ep, h[0]), -EINVAL);
		assert_int_equal(hd_handed_discard(p.b.ep, h[0]), 0);
		assert_int_equal(hd_handed_discard(p.b.ep, h[0]), -EINVAL);
		assert_int_equal(claim(&p, h[0], in, sizeof(in), 0), -EINVAL);
		assert_int_equal(claim(&p, h[1], in, sizeof(in), 0), 0);
		assert_int_equal(pair_next(&p, &p.b).err, 0);
		assert_int_equal(claim(&p, h[1], in, sizeof(in), 0), -EINVAL);
		assert_int_equal(hd_handed_discard(p.b.ep, h[1]), -EINVAL);
		/* it is not used again at once, so that this is noticed a while later as well */
		say(&p, out, sizeof(out), 2, 0);
		assert_ptr_not_equal(handed(&p, 2, &e), h[0]);
		assert_int_equal(hd_handed_discard(p.b.ep, h[0]), -EINVAL);
		assert_int_equal(hd_handed_discard(p.b.ep, e.ctx), 0);
		buffered_close(&p);
	}
}

static void of_long_ones_the_beginning_is_told(void **state)
{
	unsigned char *out = malloc(LONG), *in = malloc(LONG);
	static const uint32_t lens[] = { LIMIT + 1, 100000, LONG };
	struct hd_cqe e;
	struct pair p;

	test_fill(out, LONG, 3);
	EACH_TRANSPORT(t)
	{
		buffered_open(&p, t);
		for (unsigned i = 0; i < 3; i++)
			for (unsigned how = 0; how < 3; how++) {
				size_t room = how ? LONG : 10;
				struct hd_handed *h;

				say(&p, out, lens[i], i, HD_SEND_DELIVERED);
				h = handed(&p, i, &e);
				assert_int_equal(e.len, lens[i]);
				assert_true(e.flags & HD_C_MORE);
				test_check(e.buf, MIN, 3);
				if (how == 2) {
					assert_int_equal(hd_handed_discard(p.b.ep, h), 0);
					continue;
				}
				assert_int_equal(claim(&p, h, in, room, 0), 0);
				e = pair_next(&p, &p.b);
				assert_int_equal(e.err, how ? 0 : HD_S_LENGTH);
				test_check(in, how ? lens[i] : room, 3);
			}
		buffered_close(&p);
	}
	free(out);
	free(in);
}

/* The beginning of the first is still on its way when the second is here, whole. */
static void order_is_kept_while_a_beginning_is_fetched(void **state)
{
	unsigned char *out = calloc(1, LONG), small[8] = { 0 };
	struct hd_cqe e;
	struct pair p;

	EACH_TRANSPORT(t)
	{
		buffered_open(&p, t);
		for (unsigned i = 0; i < 10; i++)
			say(&p, i % 3 ? small : out, i % 3 ? sizeof(small) : LONG, i,
			    HD_SEND_INJECT * !!(i % 3));
		for (unsigned i = 0; i < 10; i++) {
			handed(&p, i, &e);
			assert_int_equal(!!(e.flags & HD_C_MORE), i % 3 == 0);
			if (i % 2)
				assert_int_equal(hd_handed_discard(p.b.ep, e.ctx), 0);
		}
		buffered_close(&p); /* with some that nobody has given back */
	}
	free(out);
}

static int listen_for(struct pair *p, void *ctx)
{
	return hd_recv(p->b.ep, &(struct hd_recv_args){
					.flags = HD_RECV_TAGGED | HD_RECV_BUFFERED, .tag = 7, .ctx = ctx });
}

static void tagged_ones_wait_for_their_tag(void **state)
{
	unsigned char *out = malloc(LONG), in[64];
	static const size_t lens[] = { 64, LONG };
	struct hd_handed *h;
	struct hd_cqe e;
	struct pair p;

	test_fill(out, LONG, 9);
	EACH_TRANSPORT(t)
	for (unsigned i = 0; i < 2; i++) {
		buffered_open(&p, t);
		pair_push(&p, &p.a, out, lens[i], 7, 0);
		pair_settle(&p, 20);
		assert_null(hd_cq_peek(p.b.cq));
		assert_int_equal(listen_for(&p, &p), 0);
		h = handed(&p, 0, &e);
		assert_null(h->owner);
		assert_ptr_equal(h->ctx, &p);
		assert_int_equal(e.tag, 7);
		test_check(e.buf, 64, 9);
		assert_int_equal(claim(&p, h, in, sizeof(in), 0), -EINVAL); /* as an untagged one */
		assert_int_equal(claim(&p, h, in, sizeof(in), HD_RECV_TAGGED), 0);
		e = pair_next(&p, &p.b);
		assert_int_equal(e.err, i ? HD_S_LENGTH : 0);
		test_check(in, sizeof(in), 9);
		buffered_close(&p);
	}
	free(out);
}

static void more_than_a_page_of_handles(void **state)
{
	struct hd_handed *h[MANY];
	struct hd_cqe e;
	struct pair p;

	EACH_TRANSPORT(t)
	{
		buffered_open(&p, t);
		for (int round = 0; round < 3; round++) {
			for (unsigned i = 0; i < MANY; i++) {
				say(&p, &i, sizeof(i), i, HD_SEND_INJECT);
				h[i] = handed(&p, i, &e);
				assert_memory_equal(e.buf, &i, sizeof(i));
			}
			for (unsigned i = 0; i < MANY; i++) /* not in the order of their memory */
				assert_int_equal(hd_handed_discard(p.b.ep, h[i * 77 % MANY]), 0);
		}
		buffered_close(&p);
	}
}

/*
 * Beginnings take room of their own: when it is gone, the next ones come as the
 * program gives some back.
 */
static void beginnings_wait_for_room(void **state)
{
	unsigned char *out = calloc(1, LONG);
	unsigned told;
	struct hd_cqe e;
	struct pair p;

	EACH_TRANSPORT(t)
	{
		buffered_open(&p, t);
		say(&p, out, 1, 0, 0);
		handed(&p, 0, &e);
		hd_links(p.b.node)->window_max = hd_links(p.b.node)->window_units + 3 * hd_units(MIN);
		for (unsigned i = 0; i < 12; i++)
			say(&p, out, LONG, i, 0);
		for (told = 0; told < 3; told++)
			handed(&p, told, &e);
		pair_settle(&p, 50);
		assert_null(hd_cq_peek(p.b.cq));
		for (; told < 12; told++) {
			assert_int_equal(hd_handed_discard(p.b.ep, e.ctx), 0);
			handed(&p, told, &e);
			assert_true(hd_links(p.b.node)->window_units <= hd_links(p.b.node)->window_max);
		}
		buffered_close(&p);
	}
	free(out);
}

/*
 * One whose beginning has not been fetched when its sender goes: as if it had not come, but
 * where a receive has taken it by its tag, which fails. The first of the three takes the
 * room that the others want.
 */
static void unfetched_ones_go_with_their_sender(void **state)
{
	unsigned char *out = calloc(1, LONG);
	struct hd_cqe e;
	struct pair p;

	EACH_TRANSPORT(t)
	{
		buffered_open(&p, t);
		say(&p, out, 1, 0, 0);
		assert_int_equal(hd_handed_discard(p.b.ep, handed(&p, 0, &e)), 0);
		assert_int_equal(listen_for(&p, &p), 0);
		hd_links(p.b.node)->window_max = hd_links(p.b.node)->window_units + hd_units(MIN);
		say(&p, out, LONG, 1, 0);
		handed(&p, 1, &e);
		say(&p, out, LONG, 2, 0);
		pair_push(&p, &p.a, out, LONG, 7, TAGGED(0));
		pair_settle(&p, 20);
		assert_null(hd_cq_peek(p.b.cq));
		side_close(&p.a);
		side_open(&p.a); /* another node */
		pair_settle(&p, 50);
		assert_int_equal(hd_handed_discard(p.b.ep, e.ctx), 0);
		e = pair_next(&p, &p.b);
		assert_int_equal(e.err, HD_S_LOST);
		assert_int_equal(e.len, 0);
		assert_null(e.buf);
		buffered_close(&p);
	}
	free(out);
}

/* Whole ones stay; of the others there is no more than what was told, and claiming says so. */
static void what_remains_when_the_sender_has_gone(void **state)
{
	unsigned char *out = malloc(LONG), *in = malloc(LONG);
	struct hd_handed *small, *big;
	struct hd_cqe e;
	struct pair p;

	test_fill(out, LONG, 1);
	EACH_TRANSPORT(t)
	for (int how = 0; how < 2; how++) {
		buffered_open(&p, t);
		say(&p, out, 64, 0, HD_SEND_INJECT);
		small = handed(&p, 0, &e);
		say(&p, out, LONG, 1, 0);
		big = handed(&p, 1, &e);
		side_close(&p.a);
		side_open(&p.a); /* another node */
		pair_settle(&p, 50);
		test_check(e.buf, MIN, 1);
		assert_int_equal(how ? hd_handed_discard(p.b.ep, big) : claim(&p, big, in, LONG, 0), 0);
		if (!how)
			assert_int_not_equal(pair_next(&p, &p.b).err, 0);
		assert_int_equal(claim(&p, small, in, LONG, 0), 0);
		assert_int_equal(pair_next(&p, &p.b).err, 0);
		test_check(in, 64, 1);
		buffered_close(&p);
	}
	free(out);
	free(in);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tells_where_it_lies_until_it_is_claimed),
		cmocka_unit_test(a_handle_stands_for_one_message_once),
		cmocka_unit_test(of_long_ones_the_beginning_is_told),
		cmocka_unit_test(order_is_kept_while_a_beginning_is_fetched),
		cmocka_unit_test(tagged_ones_wait_for_their_tag),
		cmocka_unit_test(more_than_a_page_of_handles),
		cmocka_unit_test(beginnings_wait_for_room),
		cmocka_unit_test(unfetched_ones_go_with_their_sender),
		cmocka_unit_test(what_remains_when_the_sender_has_gone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
