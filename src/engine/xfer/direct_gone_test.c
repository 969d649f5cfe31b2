/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * One-sided operations by the initiator when an endpoint, a link or a region goes:
 * nobody touches what is gone.
 */
#include "engine/core/core.h"
#include "engine/mr/mr.h"
#include "engine/test/test_direct.h"
#include "engine/test/test_pair.h"
#include "engine/xfer/xfer.h"
#include "transport/vm_seam.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- in the middle of it --------------------------------------------------------------------- */

/* Three long writes from `mine` to `mem`, none of which has ended. */
static struct hd_mr *three_under_way(struct pair *p, void *mem, void *mine)
{
	struct hd_mr *mr;

	direct_open(p, HD_EP_SAW);
	mr = direct_region(&p->b, KEY, mem, BIG, 0);
	for (int i = 0; i < 3; i++)
		assert_int_equal(direct_post(p, HD_RMA_WRITE, mine, BIG, 0, DONE), 0);
	return mr;
}

static void the_endpoint_may_close_with_operations_under_way(void **state)
{
	unsigned char *mem = malloc(BIG), *mine = calloc(1, BIG);
	struct hd_mr *mr;
	struct pair p;

	mr = three_under_way(&p, mem, mine);
	assert_true(hd_peer_inspect(p.a.to->peer).direct);
	hd_ep_close(p.a.ep);
	assert_false(hd_peer_inspect(p.a.to->peer).direct);
	memset(mem, 0x33, BIG);
	direct_turns(&p.a, 100);
	for (size_t i = 0; i < BIG; i++)
		assert_int_equal(mem[i], 0x33);
	assert_int_equal(
		hd_ep_open(p.a.node,
			   &(struct hd_ep_attr){ .type = HD_EP_RDM, .tx_cq = p.a.cq, .rx_cq = p.a.cq },
			   &p.a.ep),
		0);
	assert_int_equal(hd_mr_close(mr), 0);
	direct_close(&p);
	free(mem);
	free(mine);
}

/* The target's: what has not been written is refused, as it is where it goes by packets. */
static void the_target_may_close_with_operations_under_way(void **state)
{
	unsigned char *mem = malloc(BIG), *mine = calloc(1, BIG);
	struct hd_mr *mr;
	struct pair p;

	mr = three_under_way(&p, mem, mine);
	direct_turns(&p.a, 1);
	hd_ep_close(p.b.ep);
	p.b.ep = NULL;
	memset(mem, 0x33, BIG);
	for (int i = 0; i < 3; i++)
		assert_int_equal(pair_next(&p, &p.a).err, HD_S_REFUSED);
	assert_int_equal(hd_ep_inspect(p.a.ep).outstanding, 0);
	for (size_t i = 0; i < BIG; i++)
		assert_int_equal(mem[i], 0x33);
	side_endpoint(&p.b, HD_EP_RDM);
	assert_int_equal(hd_mr_close(mr), 0);
	direct_close(&p);
	free(mem);
	free(mine);
}

static void a_broken_link_ends_them_in_error(void **state)
{
	unsigned char *mem = malloc(BIG), *mine = calloc(1, BIG);
	struct hd_mr *mr;
	struct pair p;

	mr = three_under_way(&p, mem, mine);
	vm_seam.error = ESRCH; /* the process has gone */
	for (int i = 0; i < 3; i++)
		assert_int_equal(direct_alone(&p).err, HD_S_LOST);
	assert_int_equal(hd_ep_inspect(p.a.ep).outstanding, 0);
	vm_seam.error = 0;
	assert_int_equal(hd_mr_close(mr), 0);
	direct_close(&p);
	free(mem);
	free(mine);
}

/* ---- regions that go ------------------------------------------------------------------------- */

struct closer {
	struct hd_mr *mr;
	struct hd_node *node;
	pthread_t thread;
	_Atomic bool begun, done;
	int rc;
};

static void *close_region(void *arg)
{
	struct closer *c = arg;

	hd_node_lock(c->node);
	atomic_store(&c->begun, true);
	c->rc = hd_mr_close(c->mr);
	atomic_store(&c->done, true);
	hd_node_unlock(c->node);
	return NULL;
}

/* We are about to copy: the owner begins to close the region, and has to wait. */
static void close_within(void *arg)
{
	struct closer *c = arg;

	assert_int_equal(pthread_create(&c->thread, NULL, close_region, c), 0);
	while (!atomic_load(&c->begun))
		usleep(100);
	usleep(20000); /* that it waits is told by nothing but time */
	assert_false(atomic_load(&c->done));
}

static void a_region_is_not_gone_while_it_is_copied(void **state)
{
	static unsigned char mem[70000], mine[70000];
	struct closer c = { 0 };
	struct pair p;

	for (int op = HD_RMA_WRITE; op <= HD_RMA_READ; op++) {
		c = (struct closer){ 0 };
		direct_open(&p, 0);
		hd_core(p.b.node)->gate.locked = true;
		hd_node_lock(p.b.node);
		c.node = p.b.node;
		c.mr = direct_region(&p.b, KEY, mem, sizeof(mem), 0);
		hd_node_unlock(p.b.node);
		vm_seam.before = close_within;
		vm_seam.arg = &c;
		assert_int_equal(direct_post(&p, op, mine, sizeof(mine), 0, DONE), 0);
		assert_int_equal(pthread_join(c.thread, NULL), 0);
		assert_int_equal(c.rc, 0);
		assert_int_equal(direct_alone(&p).err, 0);
		hd_core(p.b.node)->gate.locked = false;
		direct_close(&p);
	}
}

/*
 * Slices of one operation: those after the region has gone are refused by the
 * target, and write nothing.
 */
static void nothing_is_written_once_it_is_closed(void **state)
{
	unsigned char *mem = malloc(BIG), *mine = calloc(1, BIG);
	struct hd_mr *mr;
	struct pair p;

	direct_open(&p, 0);
	mr = direct_region(&p.b, KEY, mem, BIG, 0);
	assert_int_equal(direct_post(&p, HD_RMA_WRITE, mine, BIG, 0, DONE), 0);
	direct_turns(&p.a, 1);
	assert_int_equal(hd_mr_close(mr), 0);
	memset(mem, 0x44, BIG);
	assert_int_equal(pair_next(&p, &p.a).err, HD_S_ACCESS);
	pair_settle(&p, 5);
	for (size_t i = 0; i < BIG; i++)
		assert_int_equal(mem[i], 0x44);
	direct_close(&p);
	free(mem);
	free(mine);
}

/*
 * A peer that is stopped in the middle of a copy would go on some day: the region
 * stays, and nobody begins anew.
 */
static void close_by_the_one_that_copies(void *arg)
{
	struct closer *c = arg;
	uint64_t began = hd_now_ns();

	c->rc = hd_mr_close(c->mr);
	assert_in_range(hd_now_ns() - began, 500 * HD_NS_PER_MS, PATIENCE);
}

static void a_stopped_peer_is_told_of(void **state)
{
	static unsigned char mem[64], mine[64];
	struct closer c = { 0 };
	struct pair p;

	direct_open(&p, 0);
	c.mr = direct_region(&p.b, KEY, mem, sizeof(mem), 0);
	vm_seam.before = close_by_the_one_that_copies;
	vm_seam.arg = &c;
	assert_int_equal(direct_post(&p, HD_RMA_WRITE, mine, 64, 0, DONE), 0);
	assert_int_equal(c.rc, -EBUSY);
	assert_int_equal(direct_alone(&p).err, 0);
	direct_refused(&p, 0, 8, HD_S_ACCESS);
	assert_int_equal(hd_mr_close(c.mr), 0);
	direct_close(&p);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_endpoint_may_close_with_operations_under_way),
		cmocka_unit_test(the_target_may_close_with_operations_under_way),
		cmocka_unit_test(a_broken_link_ends_them_in_error),
		cmocka_unit_test(a_region_is_not_gone_while_it_is_copied),
		cmocka_unit_test(nothing_is_written_once_it_is_closed),
		cmocka_unit_test(a_stopped_peer_is_told_of),
	};

	return cmocka_run_group_tests_name("direct_gone", tests, NULL, NULL);
}
