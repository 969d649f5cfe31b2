/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Memory regions: which operation of a peer reaches which bytes, and what ends when a region goes.
 */
#include "engine/mr/mr.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static char memory[4096];

static int setup(void **state)
{
	const struct hd_node_attr attr = { .front = "test" };

	return hd_node_open(&attr, (struct hd_node **)state);
}

static int teardown(void **state)
{
	return hd_node_close(*state); /* -EBUSY when a test leaves a region */
}

/* Three segments, the last two touch: [0, 100), [1000, 1200), [1200, 1500). */
static const struct iovec three[] = { { memory, 100 }, { memory + 1000, 200 }, { memory + 1200, 300 } };

static struct hd_mr *region(struct hd_node *node, uint32_t flags, uint64_t key)
{
	const struct hd_mr_attr attr = {
		.iov = three, .count = 3, .access = HD_ACCESS_REMOTE_READ, .flags = flags, .key = key
	};
	struct hd_mr *mr = NULL;

	assert_int_equal(hd_mr_open(node, &attr, &mr), 0);
	return mr;
}

struct found {
	struct iovec iov[HD_MAX_IOV];
	int count, rc;
	struct hd_mr *mr;
};

static struct found reach(struct hd_mr *mr, uint64_t addr, uint64_t len)
{
	const struct hd_mr_want want = {
		.key = hd_mr_inspect(mr).key, .addr = addr, .len = len, .access = HD_ACCESS_REMOTE_READ
	};
	struct found f;

	f.rc = hd_mr_reach(mr->node, &want, f.iov, &f.count, &f.mr);
	return f;
}

#define at(f, i, base, len) \
	do { \
		assert_ptr_equal((f).iov[i].iov_base, base); \
		assert_int_equal((f).iov[i].iov_len, len); \
	} while (0)

static void offsets_run_through_the_segments(void **state)
{
	struct hd_mr *mr = region(*state, HD_MR_KEY, 7);
	struct found f = reach(mr, 0, 600);

	assert_int_equal(f.rc, 0);
	assert_int_equal(f.count, 3);
	assert_ptr_equal(f.mr, mr);
	f = reach(mr, 90, 20);
	assert_int_equal(f.count, 2);
	at(f, 0, memory + 90, 10);
	at(f, 1, memory + 1000, 10);
	f = reach(mr, 599, 1);
	at(f, 0, memory + 1499, 1);
	assert_int_equal(reach(mr, 600, 1).rc, -ERANGE);
	assert_int_equal(reach(mr, 599, 2).rc, -ERANGE);
	assert_int_equal(reach(mr, 1, UINT64_MAX).rc, -ERANGE);
	assert_int_equal(reach(mr, UINT64_MAX, 1).rc, -ERANGE);
	hd_mr_close(mr);
}

static void virtual_addresses_stay_in_touching_segments(void **state)
{
	struct hd_mr *mr = region(*state, HD_MR_KEY | HD_MR_VIRTUAL, 7);
	uint64_t base = (uintptr_t)memory;
	struct found f = reach(mr, base + 1100, 200);

	assert_int_equal(f.rc, 0);
	assert_int_equal(f.count, 2);
	at(f, 0, memory + 1100, 100);
	at(f, 1, memory + 1200, 100);
	assert_int_equal(reach(mr, base, 100).rc, 0);
	assert_int_equal(reach(mr, base, 101).rc, -ERANGE);
	assert_int_equal(reach(mr, base - 1, 2).rc, -ERANGE);
	assert_int_equal(reach(mr, base + 1500, 1).rc, -ERANGE);
	assert_int_equal(reach(mr, base + 1000, UINT64_MAX).rc, -ERANGE);
	assert_int_equal(reach(mr, 0, 1).rc, -ERANGE);
	hd_mr_close(mr);
}

static void nothing_is_reached_by_length_zero(void **state)
{
	struct hd_mr *mr = region(*state, HD_MR_KEY, 7);
	struct found f = reach(mr, UINT64_MAX, 0);

	assert_int_equal(f.rc, 0);
	assert_int_equal(f.count, 0);
	assert_null(f.mr);
	hd_mr_close(mr);
}

static void rights_are_needed_all_of_them(void **state)
{
	struct hd_mr *mr = region(*state, HD_MR_KEY, 7);
	struct hd_mr_want want = { .key = 7, .len = 1, .access = HD_ACCESS_REMOTE_READ };
	struct found f;

	want.access |= HD_ACCESS_REMOTE_WRITE;
	assert_int_equal(hd_mr_reach(*state, &want, f.iov, &f.count, NULL), -EACCES);
	want.access = HD_ACCESS_REMOTE_READ;
	want.key = 8;
	assert_int_equal(hd_mr_reach(*state, &want, f.iov, &f.count, NULL), -EACCES);
	hd_mr_disable(mr);
	assert_int_equal(reach(mr, 0, 1).rc, -EACCES);
	hd_mr_enable(mr);
	assert_int_equal(reach(mr, 0, 1).rc, 0);
	hd_mr_close(mr);
	want.key = 7;
	assert_int_equal(hd_mr_reach(*state, &want, f.iov, &f.count, NULL), -EACCES);
}

static void a_region_may_wait_for_its_enabling(void **state)
{
	struct hd_mr *mr = region(*state, HD_MR_KEY | HD_MR_DISABLED, 7);

	assert_int_equal(reach(mr, 0, 1).rc, -EACCES);
	hd_mr_enable(mr);
	assert_int_equal(reach(mr, 0, 1).rc, 0);
	hd_mr_close(mr);
}

static void an_endpoint_takes_its_regions_along(void **state)
{
	const struct hd_ep_attr attr = { .type = HD_EP_RDM };
	struct hd_mr *mr = region(*state, HD_MR_KEY, 7);
	struct hd_mr_want want = { .key = 7, .len = 1, .access = HD_ACCESS_REMOTE_READ };
	struct hd_ep *own, *other;
	struct found f;

	assert_int_equal(hd_ep_open(*state, &attr, &own), 0);
	assert_int_equal(hd_ep_open(*state, &attr, &other), 0);
	hd_mr_bind_ep(mr, own);
	want.ep = other;
	assert_int_equal(hd_mr_reach(*state, &want, f.iov, &f.count, NULL), -EACCES);
	want.ep = own;
	assert_int_equal(hd_mr_reach(*state, &want, f.iov, &f.count, NULL), 0);
	hd_ep_close(other);
	assert_int_equal(hd_mr_reach(*state, &want, f.iov, &f.count, NULL), 0);
	hd_ep_close(own);
	want.ep = NULL;
	assert_int_equal(hd_mr_reach(*state, &want, f.iov, &f.count, NULL), -EACCES);
	hd_mr_close(mr);
}

static void keys_are_ours_or_the_callers(void **state)
{
	struct hd_mr_attr attr = { .iov = three, .count = 1 };
	struct hd_mr *mr[3];

	assert_int_equal(hd_mr_open(*state, &attr, &mr[0]), 0);
	assert_int_equal(hd_mr_open(*state, &attr, &mr[1]), 0);
	assert_true(hd_mr_key(mr[0]) != hd_mr_key(mr[1]));
	assert_true(hd_mr_key(mr[0]) >> 16 != 0); /* wrong once in 2^48 runs */
	attr.flags = HD_MR_KEY;
	attr.key = hd_mr_key(mr[0]);
	assert_int_equal(hd_mr_open(*state, &attr, &mr[2]), -ENOKEY);
	hd_mr_close(mr[0]);
	assert_int_equal(hd_mr_open(*state, &attr, &mr[2]), 0);
	assert_true(hd_mr_key(mr[2]) == attr.key);
	hd_mr_close(mr[1]);
	hd_mr_close(mr[2]);
}

/* One byte: 254 keys, none of them out of the last 64 that were closed. */
static void short_keys_rest_before_they_return(void **state)
{
	const struct hd_mr_attr attr = { .iov = three, .count = 1, .key_bytes = 1 };
	struct hd_mr *mr[254 - HD_MR_REST], *more;
	uint64_t closed[HD_MR_REST];

	for (int i = 0; i < HD_MR_REST; i++) {
		assert_int_equal(hd_mr_open(*state, &attr, &more), 0);
		closed[i] = hd_mr_key(more);
		assert_in_range(closed[i], 1, 254);
		for (int k = 0; k < i; k++)
			assert_true(closed[k] != closed[i]);
		hd_mr_close(more);
	}
	for (size_t i = 0; i < sizeof(mr) / sizeof(mr[0]); i++)
		assert_int_equal(hd_mr_open(*state, &attr, &mr[i]), 0);
	assert_int_equal(hd_mr_open(*state, &attr, &more), -ENOSPC);
	for (size_t i = 0; i < sizeof(mr) / sizeof(mr[0]); i++)
		hd_mr_close(mr[i]);
}

static int ended;

static void end(struct hd_mr_hold *hold)
{
	hd_mr_drop(hold);
	ended++;
}

static void closing_ends_what_holds_it(void **state)
{
	struct hd_mr *mr = region(*state, HD_MR_KEY, 7);
	struct hd_mr_hold a = { 0 }, b = { 0 }, c = { 0 };

	ended = 0;
	hd_mr_hold(mr, &a, end);
	hd_mr_hold(mr, &b, end);
	hd_mr_hold(mr, &c, end);
	hd_mr_drop(&b);
	hd_mr_drop(&b);
	hd_mr_disable(mr);
	assert_int_equal(ended, 2);
	hd_mr_hold(mr, &b, end);
	hd_mr_close(mr);
	assert_int_equal(ended, 3);
}

static void counters_count_by_kind_and_are_in_use(void **state)
{
	struct hd_mr *mr = region(*state, HD_MR_KEY, 7);
	struct hd_cntr *read, *write;

	assert_int_equal(hd_cntr_open(*state, &read), 0);
	assert_int_equal(hd_cntr_open(*state, &write), 0);
	hd_mr_touched(mr, HD_ACCESS_REMOTE_READ, 8);
	hd_mr_bind_cntrs(mr, read, write);
	assert_int_equal(hd_cntr_close(read), -EBUSY);
	hd_mr_touched(mr, HD_ACCESS_REMOTE_READ, 8);
	hd_mr_touched(mr, HD_ACCESS_REMOTE_WRITE, 8);
	hd_mr_touched(mr, HD_ACCESS_REMOTE_ATOMIC, 8);
	assert_int_equal(hd_cntr_read(read), 1);
	assert_int_equal(hd_cntr_read(write), 2);
	hd_mr_close(mr);
	assert_int_equal(hd_cntr_close(read), 0);
	assert_int_equal(hd_cntr_close(write), 0);
}

/*
 * Regions of another protection id than the endpoint's are not there; and offsets may
 * begin where the caller likes.
 */
static void zones_and_bases(void **state)
{
	struct hd_node *node = *state;
	const struct iovec iov = { memory, 100 };
	struct hd_mr_attr attr = {
		.iov = &iov, .count = 1, .access = HD_ACCESS_REMOTE_READ, .pd = 5, .base = 1000
	};
	struct hd_ep ep = { .pd = 5 };
	struct hd_mr_want want = { .addr = 1090, .len = 10, .access = HD_ACCESS_REMOTE_READ, .ep = &ep };
	struct iovec found[HD_MAX_IOV];
	struct hd_mr *mr;
	int count;

	attr.owner = &attr;
	assert_int_equal(hd_mr_open(node, &attr, &mr), 0);
	want.key = hd_mr_key(mr);
	assert_ptr_equal(hd_mr_find(node, want.key), &attr);
	assert_null(hd_mr_find(node, want.key + 1));
	assert_int_equal(hd_mr_reach(node, &want, found, &count, NULL), 0);
	assert_ptr_equal(found[0].iov_base, memory + 90);
	want.addr = 1091;
	assert_int_equal(hd_mr_reach(node, &want, found, &count, NULL), -ERANGE);
	want.addr = 90;
	assert_int_equal(hd_mr_reach(node, &want, found, &count, NULL), -ERANGE);
	want.addr = 1000;
	ep.pd = 6;
	assert_int_equal(hd_mr_reach(node, &want, found, &count, NULL), -EACCES);
	ep.pd = 0;
	assert_int_equal(hd_mr_reach(node, &want, found, &count, NULL), -EACCES);
	assert_int_equal(hd_mr_close(mr), 0);
}

/* The destination that alone reaches a region is there for as long as the region is. */
static void a_region_keeps_its_destination(void **state)
{
	const struct sockaddr_in at = { .sin_family = AF_INET,
					.sin_port = htons(9),
					.sin_addr = { htonl(INADDR_LOOPBACK) } };
	const struct hd_mr_attr attr = { .iov = three, .count = 1, .access = HD_ACCESS_REMOTE_READ };
	struct hd_mr_attr his = attr;
	struct hd_dest *dest;
	struct hd_mr *mr;

	assert_int_equal(hd_dest_get(*state, (const void *)&at, &dest), 0);
	his.from = dest;
	assert_int_equal(hd_mr_open(*state, &his, &mr), 0);
	assert_int_equal(dest->refs, 2);
	hd_dest_put(dest);
	assert_int_equal(dest->refs, 1);
	assert_int_equal(hd_mr_close(mr), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		T(offsets_run_through_the_segments),
		T(virtual_addresses_stay_in_touching_segments),
		T(nothing_is_reached_by_length_zero),
		T(rights_are_needed_all_of_them),
		T(a_region_may_wait_for_its_enabling),
		T(an_endpoint_takes_its_regions_along),
		T(keys_are_ours_or_the_callers),
		T(short_keys_rest_before_they_return),
		T(closing_ends_what_holds_it),
		T(zones_and_bases),
		T(counters_count_by_kind_and_are_in_use),
		T(a_region_keeps_its_destination),
#undef T
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
