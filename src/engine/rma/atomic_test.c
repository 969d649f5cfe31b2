/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Atomic operations between nodes: every operation and type, segments on all sides, one order, and
 * what the target refuses.
 */
#include "engine/test/test_pair.h"

#include "engine/mr/mr.h"
#include "engine/rma/rma.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define KEY 77
#define ALL (HD_ACCESS_REMOTE_ATOMIC | HD_ACCESS_REMOTE_FETCH)
#define REMOTE (HD_EP_REMOTE_READ | HD_EP_REMOTE_WRITE)

/* The initiator is p.a; the target is p.b, or p.a itself. */
struct scene {
	struct pair p;
	struct side *target;
};

static bool scene_open(struct scene *s, int way)
{
	bool loop = way == 2;

	pair_open(&s->p, loop ? "auto" : test_transports[way]);
	s->target = loop ? &s->p.a : &s->p.b;
	if (loop) {
		hd_dest_put(s->p.a.to);
		side_names(&s->p.a, &s->p.a);
	}
	s->p.a.ep->policy |= REMOTE;
	s->p.b.ep->policy |= REMOTE;
	return true;
}

/*
 * The statement that follows runs for each way to the target: both transports, and (ways 3) loop.
 */
#define EACH_WAY(s, ways) for (int way = 0; way < (ways) && scene_open(&(s), way); pair_close(&(s).p), way++)

static struct hd_mr *region(struct scene *s, uint64_t key, const struct iovec *iov, int count,
			    uint32_t access)
{
	const struct hd_mr_attr attr = {
		.iov = iov, .count = count, .access = access, .flags = HD_MR_KEY, .key = key
	};
	struct hd_mr *mr;

	assert_int_equal(hd_mr_open(s->target->node, &attr, &mr), 0);
	return mr;
}

static struct hd_mr *region_of(struct scene *s, void *at, size_t len, uint32_t access)
{
	return region(s, KEY, &(struct iovec){ at, len }, 1, access);
}

static int post(struct scene *s, const struct hd_atomic_args *args)
{
	return pair_atomic(&s->p, args);
}

static void expect(struct scene *s, uint32_t how, void *ctx, int err)
{
	struct hd_cqe e = pair_next(&s->p, &s->p.a);

	assert_int_equal(e.err, err);
	assert_ptr_equal(e.ctx, ctx);
	assert_int_equal(e.flags, HD_C_ATOMIC | (how == HD_ATOMIC_BASE ? HD_C_WRITE : HD_C_READ));
}

/* One list each, at an offset of the region KEY; completed or not. */
struct simple {
	uint32_t how, op, type;
	size_t bytes;
	const void *operands, *compares;
	void *results;
	uint64_t addr;
};

static void start(struct scene *s, const struct simple *c)
{
	const struct iovec iov = { (void *)c->operands, c->bytes },
			   compares = { (void *)c->compares, c->bytes };
	const struct iovec results = { c->results, c->bytes };
	const struct hd_rma_seg seg = { c->addr, c->bytes, KEY };

	assert_int_equal(post(s, &(struct hd_atomic_args){ .how = c->how,
							   .op = c->op,
							   .type = c->type,
							   .iov = &iov,
							   .count = c->op != HD_ATOMIC_READ,
							   .compare_iov = &compares,
							   .compare_count = c->how == HD_ATOMIC_COMPARE,
							   .result_iov = &results,
							   .result_count = c->how != HD_ATOMIC_BASE,
							   .segs = &seg,
							   .seg_count = 1,
							   .ctx = s,
							   .flags = HD_SEND_COMPLETE }),
			 0);
}

static void run(struct scene *s, const struct simple *c, int err)
{
	start(s, c);
	expect(s, c->how, s, err);
}

/* ---- every operation, every type ------------------------------------------------------------- */

#define THREE (3 * 32) /* bytes of three elements of the longest type */

/* Bytes that are small numbers in every type now and then, and anything else at other times. */
static void some_values(unsigned char *at, size_t size, unsigned seed)
{
	test_fill(at, THREE, seed * 7);
	for (size_t i = 0; i < 3; i++)
		if ((seed >> i) & 1)
			memset(at + i * size, seed & 8 ? 0 : 1, size);
}

/* What the same operation does here is the test of atomic_ops. */
static void compare_with_here(struct scene *s, unsigned char *mem, uint32_t how, uint32_t op, uint32_t type)
{
	size_t size = hd_atomic_size(type), n = 3 * size;
	_Alignas(32) unsigned char here[THREE];
	unsigned char operands[THREE], compares[THREE], results[THREE + 1], old[THREE];

	some_values(mem + 64, size, op + type);
	some_values(operands, size, op + 1);
	some_values(compares, size, op % 3 ? type : op + type);
	memcpy(here, mem + 64, n);
	memset(results, 0x5a, sizeof(results));
	hd_atomic_run(&(struct hd_atomic_run){ op, type, 3, here, operands, compares, old });
	run(s,
	    &(struct simple){ .how = how,
			      .op = op,
			      .type = type,
			      .bytes = n,
			      .operands = operands,
			      .compares = compares,
			      .results = results,
			      .addr = 64 },
	    0);
	assert_memory_equal(mem + 64, here, n);
	if (how != HD_ATOMIC_BASE)
		assert_memory_equal(results, old, n);
	assert_int_equal(results[how != HD_ATOMIC_BASE ? n : 0], 0x5a);
}

static void every_operation_and_type(void **state)
{
	static _Alignas(64) unsigned char mem[256];
	struct scene s;
	int done = 0;

	EACH_WAY(s, 3)
	{
		struct hd_mr *mr = region_of(&s, mem, sizeof(mem), ALL);

		for (uint32_t how = 0; how < HD_ATOMIC_HOWS; how++)
			for (uint32_t op = 0; op < HD_ATOMIC_OPS; op++)
				for (uint32_t type = 0; type < HD_ATOMIC_TYPES; type++)
					if (hd_atomic_can(how, op, type)) {
						compare_with_here(&s, mem, how, op, type);
						done++;
					}
		hd_mr_close(mr);
	}
	assert_int_equal(done,
			 3 * (10 * 11 + 3 * 8 + 3 * 6 + 10 * 12 + 3 * 9 + 3 * 7 + 10 * 7 + 3 * 6 + 3 * 2));
}

/* ---- shapes ---------------------------------------------------------------------------------- */

/* As many segments as there may be, everywhere, and as many bytes. */
static void segments_on_all_sides(void **state)
{
	enum {
		N = HD_ATOMIC_BYTES / sizeof(uint64_t)
	};
	static uint64_t mem[2 * N], operands[N], compares[N], results[N];
	struct scene s;

	EACH_WAY(s, 3)
	{
		struct iovec parts[HD_MAX_IOV], iov[HD_MAX_IOV], cmp[HD_MAX_IOV], res[HD_MAX_IOV];
		struct hd_rma_seg seg[HD_RMA_SEGS];
		struct hd_mr *mr;

		for (int i = 0; i < HD_MAX_IOV; i++) {
			parts[i] = (struct iovec){ mem + 2 * N / HD_MAX_IOV * i, 2 * N / HD_MAX_IOV * 8 };
			iov[i] = (struct iovec){ operands + N / HD_MAX_IOV * i, N / HD_MAX_IOV * 8 };
			cmp[i] = (struct iovec){ compares + N / HD_MAX_IOV * i, N / HD_MAX_IOV * 8 };
			res[i] = (struct iovec){ results + N / HD_MAX_IOV * i, N / HD_MAX_IOV * 8 };
		}
		iov[0].iov_len += 3; /* where ours are cut does not matter */
		iov[1].iov_base = (char *)iov[1].iov_base + 3;
		iov[1].iov_len -= 3;
		/* every other piece of the region, the last first */
		for (int i = 0; i < HD_RMA_SEGS; i++)
			seg[i] = (struct hd_rma_seg){ (uint64_t)(HD_RMA_SEGS - 1 - i) * 2 * N / HD_RMA_SEGS *
							      8,
						      N / HD_RMA_SEGS * 8, KEY };
		mr = region(&s, KEY, parts, HD_MAX_IOV, ALL);
		for (size_t i = 0; i < 2 * N; i++)
			mem[i] = i;
		for (size_t i = 0; i < N; i++) {
			operands[i] = 1000000 + i;
			compares[i] = i % 3 ? mem[seg[i / (N / HD_RMA_SEGS)].addr / 8 + i % (N / HD_RMA_SEGS)]
					    : 0;
		}
		assert_int_equal(post(&s, &(struct hd_atomic_args){ .how = HD_ATOMIC_COMPARE,
								    .op = HD_ATOMIC_CSWAP,
								    .type = HD_ATOMIC_U64,
								    .iov = iov,
								    .count = HD_MAX_IOV,
								    .compare_iov = cmp,
								    .compare_count = HD_MAX_IOV,
								    .result_iov = res,
								    .result_count = HD_MAX_IOV,
								    .segs = seg,
								    .seg_count = HD_RMA_SEGS,
								    .ctx = &s,
								    .flags = HD_SEND_COMPLETE }),
				 0);
		memset(iov, 0xff, sizeof(iov)); /* it was taken over */
		expect(&s, HD_ATOMIC_COMPARE, &s, 0);
		for (size_t i = 0; i < N; i++) {
			size_t at = seg[i / (N / HD_RMA_SEGS)].addr / 8 + i % (N / HD_RMA_SEGS);

			assert_true(results[i] == at);
			assert_true(mem[at] == (compares[i] == at ? operands[i] : at));
			assert_true(mem[at + N / HD_RMA_SEGS] == at + N / HD_RMA_SEGS);
		}
		hd_mr_close(mr);
	}
}

/* ---- order ----------------------------------------------------------------------------------- */

#define MANY 300

/*
 * Each finds what its predecessors have made, from the first, which waits for the connection, on.
 */
static void one_after_the_other(void **state)
{
	static uint64_t word, seen[MANY];
	struct scene s;

	EACH_WAY(s, 3)
	{
		struct hd_mr *mr = region_of(&s, &word, sizeof(word), ALL);
		const uint64_t three = 3;
		struct simple c = { .type = HD_ATOMIC_U64, .bytes = 8, .operands = &three };
		int completions = 0;

		word = 0;
		for (int i = 0; i < MANY; i++) {
			c.how = i % 3 ? HD_ATOMIC_FETCH : HD_ATOMIC_BASE;
			c.op = i % 3 == 2 ? HD_ATOMIC_READ : HD_ATOMIC_SUM;
			c.results = &seen[i];
			start(&s, &c);
			while (hd_cq_peek(s.p.a.cq)) {
				assert_int_equal(pair_next(&s.p, &s.p.a).err, 0);
				completions++;
			}
		}
		for (; completions < MANY; completions++)
			assert_int_equal(pair_next(&s.p, &s.p.a).err, 0);
		for (int i = 0; i < MANY; i++)
			if (i % 3)
				assert_true(seen[i] == (uint64_t)(i / 3) * 6 + (uint64_t)(i % 3) * 3);
		assert_true(word == MANY / 3 * 6);
		hd_mr_close(mr);
	}
}

static _Atomic uint64_t target_word;
static _Atomic bool stop;

static void *program(void *arg)
{
	uint64_t *n = arg;

	for (; !atomic_load(&stop); ++*n)
		atomic_fetch_add(&target_word, 1u << 20);
	return NULL;
}

/*
 * Two nodes and the program of the third add to one word: nothing is lost, and
 * no two see the same value.
 */
static void initiators_and_the_program_share_a_word(void **state)
{
	static uint64_t seen[2][MANY];
	struct scene s, other = { 0 };

	EACH_WAY(s, 2)
	{
		const uint64_t one = 1;
		uint64_t added = 0;
		struct hd_mr *mr;
		pthread_t thread;

		other.target = s.target;
		side_open(&other.p.a);
		other.p.b = s.p.b;
		side_names(&other.p.a, &s.p.b);
		mr = region_of(&s, &target_word, sizeof(target_word), ALL);
		atomic_store(&target_word, 0);
		atomic_store(&stop, false);
		assert_int_equal(pthread_create(&thread, NULL, program, &added), 0);
		for (int i = 0; i < MANY; i++) {
			struct simple c = { .how = HD_ATOMIC_FETCH,
					    .type = HD_ATOMIC_U64,
					    .op = HD_ATOMIC_SUM,
					    .bytes = 8,
					    .operands = &one };

			c.results = &seen[0][i];
			start(&s, &c);
			c.results = &seen[1][i];
			start(&other, &c);
			expect(&s, HD_ATOMIC_FETCH, &s, 0);
			expect(&other, HD_ATOMIC_FETCH, &other, 0);
		}
		atomic_store(&stop, true);
		pthread_join(thread, NULL);
		assert_true(atomic_load(&target_word) == 2 * MANY + (added << 20));
		for (int i = 1; i < MANY; i++) {
			assert_true((seen[0][i] & 0xfffff) > (seen[0][i - 1] & 0xfffff));
			assert_true((seen[1][i] & 0xfffff) > (seen[1][i - 1] & 0xfffff));
		}
		for (int i = 0; i < MANY; i++)
			assert_true((seen[0][i] & 0xfffff) != (seen[1][i] & 0xfffff));
		hd_mr_close(mr);
		side_close(&other.p.a);
	}
}

/* ---- what is refused ------------------------------------------------------------------------- */

static void add(struct scene *s, uint64_t addr, int err)
{
	static const uint64_t one = 1;

	run(s,
	    &(struct simple){
		    .op = HD_ATOMIC_SUM, .type = HD_ATOMIC_U64, .bytes = 8, .operands = &one, .addr = addr },
	    err);
}

static void fetch(struct scene *s, uint32_t op, int err)
{
	static const uint64_t one = 1;
	uint64_t old = 99;

	run(s,
	    &(struct simple){ .how = HD_ATOMIC_FETCH,
			      .op = op,
			      .type = HD_ATOMIC_U64,
			      .bytes = 8,
			      .operands = &one,
			      .results = &old },
	    err);
	if (err)
		assert_true(old == 99);
}

static void rights_are_checked(void **state)
{
	static uint64_t words[2];
	struct scene s;

	EACH_WAY(s, 3)
	{
		struct hd_mr *mr;

		memset(words, 0, sizeof(words));
		add(&s, 0, HD_S_ACCESS); /* no such key */
		mr = region_of(&s, words, sizeof(words), HD_ACCESS_REMOTE_FETCH);
		add(&s, 0, HD_S_ACCESS);
		fetch(&s, HD_ATOMIC_SUM, HD_S_ACCESS);
		fetch(&s, HD_ATOMIC_READ, 0);
		hd_mr_close(mr);
		mr = region_of(&s, words, sizeof(words), HD_ACCESS_REMOTE_ATOMIC);
		fetch(&s, HD_ATOMIC_SUM, HD_S_ACCESS);
		fetch(&s, HD_ATOMIC_READ, HD_S_ACCESS);
		assert_true(words[0] == 0);
		add(&s, 8, 0);
		add(&s, 16, HD_S_RANGE);
		add(&s, 9, HD_S_RANGE);
		add(&s, UINT64_MAX, HD_S_RANGE);
		assert_true(words[0] == 0 && words[1] == 1);
		hd_mr_close(mr);
		add(&s, 0, HD_S_ACCESS);

		mr = region_of(&s, words, sizeof(words), ALL);
		s.target->ep->policy &= ~(uint32_t)HD_EP_REMOTE_WRITE;
		add(&s, 0, HD_S_ACCESS);
		fetch(&s, HD_ATOMIC_READ, 0);
		s.target->ep->policy ^= REMOTE;
		fetch(&s, HD_ATOMIC_READ, HD_S_ACCESS);
		fetch(&s, HD_ATOMIC_SUM, HD_S_ACCESS);
		add(&s, 0, 0);
		assert_true(words[0] == 1);
		hd_mr_close(mr);
	}
}

/*
 * A bad segment keeps the good ones before it from being changed; so does an element
 * that lies in two places.
 */
static void all_or_nothing(void **state)
{
	static uint64_t words[4];
	struct scene s;

	EACH_WAY(s, 3)
	{
		const struct iovec parts[] = { { words, 12 }, { (char *)words + 16, 12 } };
		struct hd_mr *mr = region(&s, KEY, parts, 2, ALL);
		const uint64_t ones[2] = { 1, 1 };
		struct hd_rma_seg seg[] = { { 0, 8, KEY }, { 0, 8, KEY + 1 } };
		const struct iovec iov = { (void *)ones, sizeof(ones) };
		const struct hd_atomic_args args = { .op = HD_ATOMIC_SUM,
						     .type = HD_ATOMIC_U64,
						     .iov = &iov,
						     .count = 1,
						     .segs = seg,
						     .seg_count = 2,
						     .ctx = &s };

		memset(words, 0, sizeof(words));
		assert_int_equal(post(&s, &args), 0);
		expect(&s, HD_ATOMIC_BASE, &s, HD_S_ACCESS); /* errors complete, asked for or not */
		seg[1] = (struct hd_rma_seg){ 8, 8, KEY };
		assert_int_equal(post(&s, &args), 0);
		expect(&s, HD_ATOMIC_BASE, &s, HD_S_INVALID);
		assert_true(!words[0] && !words[1] && !words[2] && !words[3]);
		seg[1].addr = 12;
		assert_int_equal(post(&s, &args), 0);
		pair_settle(&s.p, 20);
		assert_null(hd_cq_peek(s.p.a.cq));
		assert_true(words[0] == 1 && words[2] == 1);
		hd_mr_close(mr);
	}
}

/* ---- counting -------------------------------------------------------------------------------- */

static struct hd_cntr *counter(struct hd_node *node)
{
	struct hd_cntr *cntr;

	assert_int_equal(hd_cntr_open(node, &cntr), 0);
	return cntr;
}

static void reopen(struct side *s, struct hd_ep_cntrs cntrs)
{
	hd_ep_close(s->ep);
	assert_int_equal(hd_ep_open(s->node,
				    &(struct hd_ep_attr){ .type = HD_EP_RDM,
							  .policy = REMOTE,
							  .tx_cq = s->cq,
							  .rx_cq = s->cq,
							  .cntrs = cntrs },
				    &s->ep),
			 0);
}

static void both_ends_count(void **state)
{
	static uint64_t words[2];
	struct scene s;

	EACH_WAY(s, 2)
	{
		struct hd_cntr *c[6];
		struct hd_mr *mr;

		for (int i = 0; i < 6; i++)
			c[i] = counter(i < 2 ? s.p.a.node : s.p.b.node);
		reopen(&s.p.a, (struct hd_ep_cntrs){ .read = c[0], .write = c[1] });
		reopen(&s.p.b, (struct hd_ep_cntrs){ .remote_read = c[2], .remote_write = c[3] });
		hd_dest_put(s.p.a.to);
		side_names(&s.p.a, &s.p.b);
		mr = region_of(&s, words, sizeof(words), ALL);
		hd_mr_bind_cntrs(mr, c[4], c[5]);
		add(&s, 0, 0);
		add(&s, 8, 0);
		add(&s, 16, HD_S_RANGE);
		fetch(&s, HD_ATOMIC_SUM, 0);
		fetch(&s, HD_ATOMIC_READ, 0);
		assert_int_equal(hd_cntr_read(c[0]), 2);
		assert_int_equal(hd_cntr_read(c[1]), 2);
		assert_int_equal(hd_cntr_readerr(c[1]), 1);
		assert_int_equal(hd_cntr_read(c[2]), 2);
		assert_int_equal(hd_cntr_read(c[3]), 2);
		assert_int_equal(hd_cntr_read(c[4]), 2);
		assert_int_equal(hd_cntr_read(c[5]), 3); /* what fetches may change, too */
		hd_mr_close(mr);
		reopen(&s.p.a, (struct hd_ep_cntrs){ 0 });
		reopen(&s.p.b, (struct hd_ep_cntrs){ 0 });
		for (int i = 0; i < 6; i++)
			assert_int_equal(hd_cntr_close(c[i]), 0);
	}
}

/* ---- ends ------------------------------------------------------------------------------------ */

/* The target's endpoint closes; the initiator's does with operations under way; the link breaks. */
static void ends_with_either_side(void **state)
{
	static uint64_t word, old;
	const uint64_t one = 1;
	const struct simple c = { .how = HD_ATOMIC_FETCH,
				  .op = HD_ATOMIC_SUM,
				  .type = HD_ATOMIC_U64,
				  .bytes = 8,
				  .operands = &one,
				  .results = &old };
	struct scene s;

	for (int whose = 0; whose < 3; whose++)
		EACH_WAY(s, 2)
		{
			struct hd_mr *mr;

			mr = region_of(&s, &word, sizeof(word), ALL);
			run(&s, &c, 0);
			old = 99;
			if (whose == 0)
				reopen(&s.p.b, (struct hd_ep_cntrs){ 0 });
			start(&s, &c);
			if (whose == 1)
				reopen(&s.p.a, (struct hd_ep_cntrs){ 0 });
			if (whose == 2)
				hd_link_down(s.p.a.to->peer->link, -ECONNRESET, "test");
			if (whose != 1)
				assert_int_not_equal(pair_next(&s.p, &s.p.a).err, 0);
			pair_settle(&s.p, 20); /* a late result finds nobody */
			assert_null(hd_cq_peek(s.p.a.cq));
			assert_int_equal(hd_ep_inspect(s.p.a.ep).outstanding, 0);
			assert_true(old == 99);
			hd_mr_close(mr);
		}
}

/* A fence holds them back like messages. */
static void a_fence_holds_them(void **state)
{
	static uint64_t word;
	unsigned char text[16] = { 0 };
	struct scene s;

	EACH_WAY(s, 2)
	{
		const uint64_t one = 1;
		const struct iovec iov = { (void *)&one, 8 };
		const struct hd_rma_seg seg = { 0, 8, KEY };
		struct hd_mr *mr;

		s.p.a.ep->policy |= HD_EP_FENCE;
		word = 0;
		mr = region_of(&s, &word, sizeof(word), ALL);
		pair_push(&s.p, &s.p.a, text, sizeof(text), 1,
			  HD_SEND_ACKED | HD_SEND_GATED | HD_SEND_COMPLETE);
		assert_int_equal(post(&s, &(struct hd_atomic_args){ .op = HD_ATOMIC_SUM,
								    .type = HD_ATOMIC_U64,
								    .iov = &iov,
								    .count = 1,
								    .segs = &seg,
								    .seg_count = 1,
								    .ctx = &s,
								    .flags = HD_SEND_COMPLETE |
									     HD_SEND_GATED | HD_SEND_FENCE }),
				 0);
		pair_settle(&s.p, 20);
		assert_true(word == 0);
		side_post(&s.p.b, text, sizeof(text), 1, 0, NULL, NULL);
		assert_int_equal(pair_next(&s.p, &s.p.b).err, 0);
		assert_ptr_equal(pair_next(&s.p, &s.p.a).ctx, text);
		expect(&s, HD_ATOMIC_BASE, &s, 0);
		assert_true(word == 1);
		hd_mr_close(mr);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_operation_and_type),
		cmocka_unit_test(segments_on_all_sides),
		cmocka_unit_test(one_after_the_other),
		cmocka_unit_test(initiators_and_the_program_share_a_word),
		cmocka_unit_test(rights_are_checked),
		cmocka_unit_test(all_or_nothing),
		cmocka_unit_test(both_ends_count),
		cmocka_unit_test(ends_with_either_side),
		cmocka_unit_test(a_fence_holds_them),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
