/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Memory that is unmapped, protected, or of a file that has been shortened while it is
 * registered or posted: that operation fails alone, the link lives, and the next one of the
 * same two endpoints succeeds.
 */
#include "base/guard.h"
#include "engine/rma/rma.h"
#include "engine/test/test_qp.h"
#include "engine/test/test_rma.h"
#include "engine/test/vanished.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define ATOMIC (HD_ACCESS_REMOTE_ATOMIC | HD_ACCESS_REMOTE_FETCH)

/* In a line, copied, in a piece, in several pieces or from where it is, and announced. */
static const size_t lengths[] = { 1, 8, 24, 700, 4096, 6000, 30000, 300000, 3u << 20 };
#define EACH_LENGTH(len) \
	for (size_t len##_i = 0, len; \
	     len##_i < sizeof(lengths) / sizeof(lengths[0]) && (len = lengths[len##_i]); len##_i++)

/* Two nodes over a transport, and two endpoints of one node. */
#define ITSELF "auto"
static const char *const pairs[] = { "shm", "tcp", ITSELF };
#define EACH_PAIR(name) \
	for (int name##_i = 0; name##_i < 3; name##_i++) \
		for (const char *name = pairs[name##_i]; name; name = NULL)

static bool is_one_node(const struct pair *p)
{
	return p->a.node == p->b.node;
}

static void one_node_open(struct pair *p)
{
	memset(p, 0, sizeof(*p));
	side_open(&p->a);
	p->b.node = p->a.node;
	assert_int_equal(hd_cq_open(p->b.node, &(struct hd_cq_attr){ .size = 256 }, &p->b.cq), 0);
	side_endpoint(&p->b, HD_EP_RDM);
	side_names(&p->a, &p->b);
	side_names(&p->b, &p->a);
	p->a.ep->policy |= HD_EP_REMOTE_READ | HD_EP_REMOTE_WRITE;
	p->b.ep->policy |= HD_EP_REMOTE_READ | HD_EP_REMOTE_WRITE;
}

static void vanish_open(struct pair *p, const char *transport)
{
	vanish_begin();
	if (strcmp(transport, ITSELF))
		rma_open(p, transport);
	else
		one_node_open(p);
}

static void vanish_close(struct pair *p)
{
	if (!is_one_node(p)) {
		pair_close(p);
		return;
	}
	hd_dest_put(p->b.to);
	hd_ep_close(p->b.ep);
	assert_int_equal(hd_cq_close(p->b.cq), 0);
	side_close(&p->a);
}

/* A message, and the same link as before. */
static void still_works(struct pair *p, size_t len)
{
	unsigned char *out = malloc(len), *in = malloc(len);

	test_fill(out, len, 3);
	memset(in, 0, len);
	side_post(&p->b, in, len, 9, 0, NULL, in);
	pair_push(p, &p->a, out, len, 9, TAGGED(HD_SEND_COMPLETE));
	assert_int_equal(pair_next(p, &p->a).err, 0);
	assert_int_equal(pair_next(p, &p->b).err, 0);
	test_check(in, len, 3);
	free(out);
	free(in);
}

static void begins(struct pair *p, const char *name, struct hd_link **link)
{
	vanish_open(p, name);
	still_works(p, 8);
	*link = p->a.to->peer->link;
}

static void ends(struct pair *p, struct hd_link *link)
{
	pair_settle(p, 5);
	assert_null(hd_cq_peek(p->a.cq));
	assert_null(hd_cq_peek(p->b.cq));
	assert_ptr_equal(p->a.to->peer->link, link);
	assert_false(link->down);
	assert_int_equal(hd_ep_inspect(p->a.ep).outstanding, 0);
	vanish_close(p);
}

/* ---- messages -------------------------------------------------------------------------------- */

static void send_from(struct pair *p, unsigned char *gone, size_t len, uint32_t flags)
{
	struct hd_cqe e;

	pair_push(p, &p->a, gone, len, 9, TAGGED(HD_SEND_COMPLETE | flags));
	e = pair_next(p, &p->a);
	assert_ptr_equal(e.ctx, gone);
	assert_int_equal(e.err, HD_S_PROTECTION);
}

/*
 * Where so much has gone that a receive has been taken for it, that one fails; any
 * other gets the next message.
 */
static void sends(enum way how, uint32_t flags)
{
	EACH_PAIR(name)
	{
		struct hd_link *link;
		struct pair p;

		begins(&p, name, &link);
		EACH_LENGTH(len)
		{
			unsigned char *gone = vanishing(how, len), *in = malloc(len);

			side_post(&p.b, in, len, 9, 0, NULL, in);
			send_from(&p, gone, len, flags);
			pair_settle(&p, 2);
			if (hd_cq_peek(p.b.cq)) {
				assert_int_equal(hd_cq_peek(p.b.cq)->err, HD_S_CANCELLED);
				hd_cq_pop(p.b.cq);
			} else {
				test_fill(in, len, 4);
				pair_push(&p, &p.a, in, 0, 9, TAGGED(HD_SEND_COMPLETE));
				assert_int_equal(pair_next(&p, &p.a).err, 0);
				assert_int_equal(pair_next(&p, &p.b).err, 0);
				test_check(in, len, 4);
			}
			still_works(&p, len);
			vanished_free();
			free(in);
		}
		ends(&p, link);
	}
}

static void sends_fail_alone(void **state)
{
	sends(UNMAPPED, 0);
	sends(SHORTENED, 0);
	sends(PROTECTED, HD_SEND_DELIVERED);
}

/* Nothing is posted: what has come of it must not wait for a receive. */
static void unexpected_sends_leave_nothing(void **state)
{
	EACH_TRANSPORT(name)
	{
		struct hd_link *link;
		struct pair p;

		begins(&p, name, &link);
		for (int i = 0; i < 200; i++) {
			unsigned char *gone = vanishing(PROTECTED, 30000);

			send_from(&p, gone, 30000, 0);
			vanished_free();
		}
		pair_settle(&p, 5);
		still_works(&p, 30000);
		still_works(&p, 300000);
		assert_true(hd_peer_inspect(p.a.to->peer).left >=
			    hd_peer_inspect(p.a.to->peer).window / 8 * 7 - 1);
		ends(&p, link);
	}
}

static void receives(enum way how, uint32_t flags, bool unexpected)
{
	EACH_PAIR(name)
	{
		struct hd_link *link;
		struct pair p;

		begins(&p, name, &link);
		EACH_LENGTH(len)
		{
			unsigned char *gone = vanishing(how, len), *out = calloc(1, len);
			bool answered = flags || len > hd_peer_inspect(p.a.to->peer).eager_limit;
			struct hd_cqe e;

			if (unexpected) {
				pair_push(&p, &p.a, out, len, 9, TAGGED(HD_SEND_COMPLETE | flags));
				pair_settle(&p, 2);
			}
			side_post(&p.b, gone, len, 9, 0, NULL, gone);
			if (!unexpected)
				pair_push(&p, &p.a, out, len, 9, TAGGED(HD_SEND_COMPLETE | flags));
			e = pair_next(&p, &p.b);
			assert_ptr_equal(e.ctx, gone);
			assert_int_equal(e.err, HD_S_PROTECTION);
			assert_int_equal(pair_next(&p, &p.a).err, answered ? HD_S_OPERATIONAL : HD_S_OK);
			still_works(&p, len);
			vanished_free();
			free(out);
		}
		ends(&p, link);
	}
}

static void receives_fail_alone(void **state)
{
	receives(UNMAPPED, 0, false);
	receives(READ_ALONE, 0, false);
	receives(SHORTENED, HD_SEND_DELIVERED, false);
	receives(PROTECTED, 0, true);
}

/* ---- one-sided ------------------------------------------------------------------------------- */

static void one_sided(enum way how, bool far)
{
	EACH_PAIR(name)
	{
		struct hd_link *link;
		struct pair p;

		begins(&p, name, &link);
		EACH_LENGTH(len)
		{
			for (enum hd_rma_op op = HD_RMA_WRITE; op <= HD_RMA_READ; op++) {
				unsigned char *gone, *mine = calloc(1, len), *good = calloc(1, len);
				struct hd_mr *mr;

				if (how == READ_ALONE && far != (op == HD_RMA_WRITE)) {
					free(mine);
					free(good);
					continue;
				}
				gone = vanishing(how, len);
				mr = rma_region(&p.b, KEY, far ? gone : good, len, ALL);
				rma_go(&p, op, far ? mine : gone, len, 0, DONE);
				rma_expect(&p, op, far ? mine : gone, far ? HD_S_ACCESS : HD_S_PROTECTION);
				still_works(&p, len);
				assert_int_equal(hd_mr_close(mr), 0);
				mr = rma_region(&p.b, KEY, good, len, ALL);
				rma_go(&p, op, mine, len, 0, DONE);
				rma_expect(&p, op, mine, 0);
				assert_int_equal(hd_mr_close(mr), 0);
				vanished_free();
				free(mine);
				free(good);
			}
		}
		ends(&p, link);
	}
}

static void gone_regions_fail_their_operation(void **state)
{
	one_sided(UNMAPPED, true);
	one_sided(READ_ALONE, true);
	one_sided(SHORTENED, true);
}

static void gone_buffers_fail_their_operation(void **state)
{
	one_sided(UNMAPPED, false);
	one_sided(READ_ALONE, false);
	one_sided(SHORTENED, false);
}

static void fetch_add(struct pair *p, void *result, int err)
{
	static const uint64_t one = 1;
	const struct hd_rma_seg seg = { 0, sizeof(one), KEY };
	const struct iovec add = { (void *)&one, sizeof(one) }, back = { result, sizeof(one) };
	const struct hd_atomic_args args = { .how = HD_ATOMIC_FETCH,
					     .op = HD_ATOMIC_SUM,
					     .type = HD_ATOMIC_U64,
					     .iov = &add,
					     .count = 1,
					     .result_iov = &back,
					     .result_count = 1,
					     .segs = &seg,
					     .seg_count = 1,
					     .ctx = result,
					     .flags = HD_SEND_COMPLETE };
	struct hd_cqe e;

	assert_int_equal(hd_atomic(p->a.ep, p->a.to, &args), 0);
	e = pair_next(p, &p->a);
	assert_ptr_equal(e.ctx, result);
	assert_int_equal(e.err, err);
}

static void atomics_fail_alone(void **state)
{
	EACH_PAIR(name)
	{
		struct hd_link *link;
		struct pair p;

		begins(&p, name, &link);
		for (enum way how = UNMAPPED; how <= READ_ALONE; how++) {
			unsigned char *gone = vanishing(how, 0);
			uint64_t counter = 5, old = 0;
			struct hd_mr *mr = rma_region(&p.b, KEY, gone, sizeof(counter), ALL | ATOMIC);

			fetch_add(&p, &old, HD_S_ACCESS);
			assert_int_equal(hd_mr_close(mr), 0);
			mr = rma_region(&p.b, KEY, &counter, sizeof(counter), ALL | ATOMIC);
			fetch_add(&p, gone, HD_S_PROTECTION);
			fetch_add(&p, &old, 0);
			assert_int_equal(old, 6);
			assert_int_equal(counter, 7);
			assert_int_equal(hd_mr_close(mr), 0);
			still_works(&p, 8);
			vanished_free();
		}
		ends(&p, link);
	}
}

/* ---- while it is on its way ------------------------------------------------------------------ */

/* The socket, or the ring, is full of the beginning, and the rest goes. */
static void what_goes_in_the_middle_ends_it(void **state)
{
	EACH_PAIR(name)
	{
		for (size_t keep = 0; keep < 64u << 20; keep = keep ? keep * 8 : 1 << 20) {
			size_t len = 64u << 20;
			unsigned char *in = mmap(NULL, len, PROT_READ | PROT_WRITE,
						 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
				      *out = mmap(VANISHED_AT, len, PROT_READ | PROT_WRITE,
						  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
			struct hd_link *link;
			struct hd_cqe e;
			struct pair p;

			begins(&p, name, &link);
			side_post(&p.b, in, len, 9, 0, NULL, in);
			pair_push(&p, &p.a, out, len, 9, TAGGED(HD_SEND_COMPLETE));
			for (int i = 0; i < 4; i++) {
				hd_node_poll(p.b.node);
				hd_node_poll(p.a.node);
			}
			assert_int_equal(munmap(out + keep, len - keep), 0);
			e = pair_next(&p, &p.b);
			assert_true(e.err == HD_S_CANCELLED || e.err == HD_S_OK);
			assert_int_equal(pair_next(&p, &p.a).err, e.err ? HD_S_PROTECTION : HD_S_OK);
			still_works(&p, 300000);
			ends(&p, link);
			munmap(in, len);
			munmap(out, len);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		BOTH(sends_fail_alone),
		BOTH(unexpected_sends_leave_nothing),
		BOTH(receives_fail_alone),
		BOTH(gone_regions_fail_their_operation),
		BOTH(gone_buffers_fail_their_operation),
		BOTH(atomics_fail_alone),
		BOTH(what_goes_in_the_middle_ends_it),
	};

	if (!HD_GUARDED) {
		print_message(
			"1..0 # SKIP build for x86-64 or 64-bit ARM, by clang or gcc 11, without the thread sanitizer\n");
		return 77;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
