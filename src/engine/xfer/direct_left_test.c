/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * One-sided operations that the initiator cannot do, or not to the end: what it leaves to the
 * target, and what is an error.
 */
#include "base/guard.h"
#include "engine/core/core.h"
#include "engine/mr/mr.h"
#include "engine/name/name.h"
#include "engine/test/test_direct.h"
#include "engine/test/test_pair.h"
#include "engine/xfer/xfer.h"
#include "transport/vm_seam.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* ---- what the target is asked for ------------------------------------------------------------ */

static void what_is_not_permitted_is_the_targets_to_refuse(void **state)
{
	unsigned char mem[200] = { 0 };
	struct hd_mr_attr read_only = { .iov = &(struct iovec){ mem, 200 },
					.count = 1,
					.access = HD_ACCESS_REMOTE_READ,
					.flags = HD_MR_KEY,
					.key = KEY };
	struct hd_mr *mr;
	struct pair p;

	direct_open(&p, 0);
	direct_refused(&p, 0, 8, HD_S_ACCESS); /* no such key */
	mr = direct_region(&p.b, KEY, mem, 200, 0);
	direct_refused(&p, 193, 8, HD_S_RANGE);
	direct_refused(&p, 200, 8, HD_S_RANGE);
	direct_refused(&p, UINT64_MAX - 3, 8, HD_S_RANGE); /* its end would be inside again */
	hd_mr_disable(mr);
	direct_refused(&p, 0, 8, HD_S_ACCESS);
	assert_int_equal(hd_mr_close(mr), 0);
	assert_int_equal(hd_mr_open(p.b.node, &read_only, &mr), 0);
	direct_refused(&p, 0, 8, HD_S_ACCESS);
	assert_int_equal(hd_mr_close(mr), 0);
	mr = direct_region(&p.b, KEY, mem, 200, 0);
	p.b.ep->policy &= ~(uint32_t)HD_EP_REMOTE_WRITE;
	hd_ep_show(p.b.ep);
	direct_refused(&p, 0, 8, HD_S_ACCESS);
	assert_int_equal(hd_mr_close(mr), 0);
	for (int i = 0; i < 200; i++)
		assert_int_equal(mem[i], 0);
	direct_close(&p);
}

static void regions_of_one_endpoint(void **state)
{
	unsigned char mem[200] = { 0 }, mine[8] = { 1 };
	struct hd_ep *other;
	struct hd_mr *mr;
	struct pair p;

	direct_open(&p, 0);
	assert_int_equal(hd_ep_open(p.b.node, &(struct hd_ep_attr){ .type = HD_EP_RDM }, &other), 0);
	mr = direct_region(&p.b, KEY, mem, 200, 0);
	hd_mr_bind_ep(mr, other);
	direct_refused(&p, 0, 8, HD_S_ACCESS);
	hd_mr_bind_ep(mr, p.b.ep);
	pair_rest(&p); /* it was seen to poll */
	assert_int_equal(direct_post(&p, HD_RMA_WRITE, mine, 8, 0, DONE), 0);
	assert_int_equal(direct_alone(&p).err, 0);
	assert_int_equal(mem[0], 1);
	hd_ep_close(other);
	assert_int_equal(hd_mr_close(mr), 0);
	direct_close(&p);
}

/* Whoever counts what others do hears of it. */
static void what_is_counted_goes_by_packet(void **state)
{
	unsigned char mem[200] = { 0 }, mine[200] = { 1 };
	struct hd_cntr *cntr;
	struct hd_mr *mr;
	struct pair p;

	direct_open(&p, 0);
	assert_int_equal(hd_cntr_open(p.b.node, &cntr), 0);
	mr = direct_region(&p.b, KEY, mem, 200, 0);
	hd_mr_bind_cntrs(mr, NULL, cntr);
	assert_int_equal(direct_post(&p, HD_RMA_READ, mine, 200, 0, DONE), 0);
	assert_int_equal(direct_alone(&p).err, 0); /* reads are not counted */
	pair_rest(&p);
	vm_seam.calls = 0;
	assert_int_equal(direct_post(&p, HD_RMA_WRITE, mine, 200, 0, DONE), 0);
	assert_true(direct_nothing_done(&p));
	assert_int_equal(pair_next(&p, &p.a).err, 0);
	assert_int_equal(hd_cntr_read(cntr), 1);
	assert_int_equal(vm_seam.calls, 0);
	assert_int_equal(hd_mr_close(mr), 0);
	assert_int_equal(hd_cntr_close(cntr), 0);
	direct_close(&p);
}

/* More regions with one home than a window has rows: the rest are reached all the same. */
static void a_full_table_costs_no_region(void **state)
{
	enum {
		MANY = HD_PAGE_WINDOW + 4
	};
	static unsigned char mem[MANY][16], mine[16];
	struct hd_mr *mr[MANY];
	uint64_t key = 0;
	int shown = 0;
	struct pair p;

	direct_open(&p, 0);
	for (int i = 0; i < MANY; i++) {
		do
			key++;
		while (hd_page_mr_home(key) != 123);
		mr[i] = direct_region(&p.b, key, mem[i], 16, 0);
		shown += mr[i]->row >= 0;
	}
	assert_int_equal(shown, HD_PAGE_WINDOW);
	for (int i = 0; i < MANY; i++) {
		memset(mine, i + 1, 16);
		assert_int_equal(
			hd_rma(p.a.ep, p.a.to,
			       &(struct hd_rma_args){ .op = HD_RMA_WRITE,
						      .iov = &(struct iovec){ mine, 16 },
						      .count = 1,
						      .segs = &(struct hd_rma_seg){ 0, 16, mr[i]->key },
						      .seg_count = 1,
						      .flags = DONE }),
			0);
		assert_int_equal(pair_next(&p, &p.a).err, 0);
		assert_int_equal(mem[i][15], i + 1);
	}
	for (int i = 0; i < MANY; i++)
		assert_int_equal(hd_mr_close(mr[i]), 0);
	direct_close(&p);
}

/* ---- in the middle of it --------------------------------------------------------------------- */

/*
 * Mirrors how often each byte is written: the target adds one to what it finds, so
 * nothing may be written twice.
 */
static void the_rest_goes_by_packet_when_a_right_is_lost(void **state)
{
	unsigned char *mem = malloc(BIG), *mine = malloc(BIG);

	for (int op = HD_RMA_WRITE; op <= HD_RMA_READ; op++)
		for (int good = 0; good < 3; good++) {
			unsigned char *from = op == HD_RMA_WRITE ? mine : mem,
				      *to = op == HD_RMA_WRITE ? mem : mine;
			size_t before = (size_t)good * HD_DIRECT_SLICE;
			struct hd_mr *mr;
			struct pair p;

			direct_open(&p, HD_EP_SAW);
			mr = direct_region(&p.b, KEY, mem, BIG, 0);
			test_fill(from, BIG, 5);
			memset(to, 0, BIG);
			vm_seam.good = good;
			vm_seam.error = EPERM;
			assert_int_equal(direct_post(&p, op, mine, BIG, 0, DONE), 0);
			assert_true(direct_nothing_done(&p));
			vm_seam.error = 0;
			/* what was copied is the program's: it must not be copied again */
			test_check(to, before, 5);
			memset(to, 0x5a, before);
			assert_int_equal(pair_next(&p, &p.a).err, 0);
			for (size_t i = 0; i < before; i++)
				assert_int_equal(to[i], 0x5a);
			for (size_t i = before; i < BIG; i++)
				if (to[i] != from[i])
					fail_msg("byte %zu of %u differs", i, BIG);
			assert_int_equal(hd_ep_inspect(p.a.ep).outstanding, 0);
			assert_int_equal(hd_peer_inspect(p.a.to->peer).send_fences, 0);
			assert_int_equal(hd_mr_close(mr), 0);
			direct_close(&p);
		}
	free(mem);
	free(mine);
}

static void missing_memory_is_an_error_of_its_own(void **state)
{
	unsigned char *hole = mmap(NULL, BIG, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
		      *mine = malloc(BIG);
	const struct sigaction none = { .sa_handler = SIG_DFL };
	struct hd_mr *good, *bad;
	struct sigaction was;
	struct pair p;

	sigaction(SIGSEGV, &none, &was); /* cmocka's, which might open it */
	direct_open(&p, 0);
	bad = direct_region(&p.b, KEY, hole, BIG, 0);
	for (int op = HD_RMA_WRITE; op <= HD_RMA_READ; op++) {
		assert_int_equal(direct_post(&p, op, mine, 5000, 0, DONE), 0);
		assert_int_equal(direct_alone(&p).err, HD_S_ACCESS);
	}
	assert_int_equal(hd_mr_close(bad), 0);
	good = direct_region(&p.b, KEY, mine, BIG, 0);
	for (int op = HD_RMA_WRITE; op <= HD_RMA_READ; op++) {
		assert_int_equal(direct_post(&p, op, hole, 5000, 0, DONE), 0);
		assert_int_equal(direct_alone(&p).err, HD_S_PROTECTION);
		assert_int_equal(mprotect(hole, 1 << 20, PROT_READ | PROT_WRITE), 0);
		/* half of it is there */
		assert_int_equal(direct_post(&p, op, hole, BIG, 0, DONE), 0);
		assert_int_equal(direct_alone(&p).err, HD_S_PROTECTION);
		assert_int_equal(mprotect(hole, BIG, PROT_NONE), 0);
	}
	assert_int_equal(hd_ep_inspect(p.a.ep).outstanding, 0);
	assert_int_equal(hd_mr_close(good), 0);
	direct_close(&p);
	sigaction(SIGSEGV, &was, NULL);
	munmap(hole, BIG);
	free(mine);
}

/* ---- memory that the program opens itself ---------------------------------------------------- */

/* else no handler of the program's is called for what we copy */
#if HD_GUARDED && !defined(HD_GUARD_ASAN)
#define WITH_BARRIERS 1
static unsigned char *barrier;
static volatile sig_atomic_t barrier_hits;

/*
 * As a write barrier of the program's: mprotect(2) is not said to be safe here, and
 * those who do so rely on it.
 */
static void barrier_opens(int sig, siginfo_t *info, void *context)
{
	barrier_hits++;
	if (info->si_code != SEGV_ACCERR || mprotect(barrier, BIG, PROT_READ | PROT_WRITE) < 0)
		_exit(1);
}

/*
 * An operation with a barrier at the target (a write), or at who asks (a read): the program's
 * handler is called, and it goes well.
 */
static void over_a_barrier(enum hd_rma_op op, size_t len)
{
	unsigned char *other = malloc(BIG);
	bool far = op == HD_RMA_WRITE;
	struct hd_mr *mr;
	struct pair p;

	direct_open(&p, 0);
	memset(other, 0x5a, BIG);
	mr = direct_region(&p.b, KEY, far ? barrier : other, BIG, 0);
	assert_int_equal(mprotect(barrier, BIG, PROT_READ), 0);
	barrier_hits = 0;
	assert_int_equal(direct_post(&p, op, far ? other : barrier, len, 0, DONE), 0);
	assert_int_equal(pair_next(&p, &p.a).err, 0);
	assert_true(barrier_hits > 0);
	assert_memory_equal(barrier, other, len);
	memset(barrier, 0, BIG);
	assert_int_equal(hd_mr_close(mr), 0);
	direct_close(&p);
	free(other);
}

static void who_handles_faults_is_asked(void **state)
{
	const struct sigaction own = { .sa_sigaction = barrier_opens, .sa_flags = SA_SIGINFO };
	static const size_t lens[] = { 8, 5000, 70000, BIG };
	struct sigaction was;

	barrier = mmap(NULL, BIG, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_int_equal(sigaction(SIGSEGV, &own, &was), 0);
	assert_true(hd_guard_asks());
	for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		over_a_barrier(HD_RMA_WRITE, lens[i]);
		over_a_barrier(HD_RMA_READ, lens[i]);
	}
	assert_int_equal(sigaction(SIGSEGV, &was, NULL), 0);
	munmap(barrier, BIG);
}
#endif

/* ---- pages that lie -------------------------------------------------------------------------- */

/*
 * Whatever the target writes into its tables, only its own memory can be
 * hurt, and the operation ends.
 */
static void lies_harm_nobody_but_the_liar(void **state)
{
	static unsigned char mem[4096], mine[3][4096];
	static const struct hd_page_seg segs[] = {
		{ 0, 4096 },
		{ UINT64_MAX - 100, 4096 },
		{ 0, UINT64_MAX },
		{ UINT64_MAX, UINT64_MAX },
		{ 0xffff800000000000, 4096 },
		{ 4096, 0 },
	};
	static const uint32_t counts[] = { 1, 5, 6, UINT32_MAX, 0 };
	struct hd_page_mr *row;
	struct hd_mr *mr;
	struct pair p;

	direct_open(&p, 0);
	mr = direct_region(&p.b, KEY, mem, sizeof(mem), 0);
	row = &hd_page_tables(hd_core(p.b.node)->page)->mrs[hd_mr_inspect(mr).row];
	memset(mine, 7, sizeof(mine));
	for (unsigned i = 0; i < sizeof(segs) / sizeof(segs[0]); i++)
		for (unsigned k = 0; k < 5; k++)
			for (int op = HD_RMA_WRITE; op <= HD_RMA_READ; op++) {
				for (int s = 0; s < HD_PAGE_SEGS; s++)
					row->seg[s] = segs[i];
				row->count = counts[k];
				assert_int_equal(direct_post(&p, op, mine[1], 4096, 0, DONE), 0);
				pair_next(&p, &p.a); /* it ends, well or badly */
				for (int b = 0; b < 4096; b++)
					assert_true(mine[0][b] == 7 && mine[2][b] == 7);
			}
	assert_false(p.a.to->peer->link->down);
	row->count = 1;
	row->seg[0] = (struct hd_page_seg){ (uintptr_t)mem, 4096 };
	assert_int_equal(hd_mr_close(mr), 0);
	direct_close(&p);
}

/* An endpoint that is said to be there, and is not. */
static void an_endpoint_that_is_not_there(void **state)
{
	static unsigned char mem[64], mine[64];
	struct hd_page_ep *row;
	struct hd_mr *mr;
	struct pair p;

	direct_open(&p, 0);
	mr = direct_region(&p.b, KEY, mem, sizeof(mem), 0);
	row = &hd_page_tables(hd_core(p.b.node)->page)->eps[p.b.ep->index];
	/* of another generation */
	atomic_store(&row->state, atomic_load(&row->state) + (1u << 16));
	assert_int_equal(direct_post(&p, HD_RMA_WRITE, mine, 64, 0, DONE), 0);
	assert_true(direct_nothing_done(&p));
	assert_int_equal(vm_seam.calls, 0);
	assert_int_equal(pair_next(&p, &p.a).err, 0);
	hd_ep_show(p.b.ep);
	/* one that is open to another alone */
	row->node.word[0] = 1;
	assert_int_equal(direct_post(&p, HD_RMA_WRITE, mine, 64, 0, DONE), 0);
	assert_int_equal(vm_seam.calls, 0);
	assert_int_equal(pair_next(&p, &p.a).err, 0);
	p.a.to->remote = HD_PAGE_EPS; /* and one that the table has no row for */
	assert_int_equal(direct_post(&p, HD_RMA_WRITE, mine, 64, 0, DONE), 0);
	assert_int_equal(vm_seam.calls, 0);
	assert_int_equal(pair_next(&p, &p.a).err, HD_S_REFUSED);
	p.a.to->remote = 0;
	assert_int_equal(hd_mr_close(mr), 0);
	direct_close(&p);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_not_permitted_is_the_targets_to_refuse),
		cmocka_unit_test(regions_of_one_endpoint),
		cmocka_unit_test(what_is_counted_goes_by_packet),
		cmocka_unit_test(a_full_table_costs_no_region),
		cmocka_unit_test(the_rest_goes_by_packet_when_a_right_is_lost),
		cmocka_unit_test(missing_memory_is_an_error_of_its_own),
#ifdef WITH_BARRIERS
		cmocka_unit_test(who_handles_faults_is_asked),
#endif
		cmocka_unit_test(lies_harm_nobody_but_the_liar),
		cmocka_unit_test(an_endpoint_that_is_not_there),
	};

	return cmocka_run_group_tests_name("direct_left", tests, NULL, NULL);
}
