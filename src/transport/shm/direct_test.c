/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * One-sided operations: what is copied and in which order, what is no longer copied once a region
 * was taken back, and who waits for whom.
 */
#include "base/test_page.h"
#include "transport/shm/copy.h"
#include "transport/shm_direct.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

/* ---- copying ---- */

static const size_t sizes[] = { 1, 7, 8, 9, 64, 4095, 4096, 4097, 70000, HD_DIRECT_SLICE };
#define SIZES (sizeof(sizes) / sizeof(sizes[0]))

static void every_length_goes_both_ways(void **state)
{
	uint8_t *near = malloc(HD_DIRECT_SLICE), *far = malloc(HD_DIRECT_SLICE + 1);
	struct duo d;

	direct_scene(&d);
	for (unsigned i = 0; i < SIZES; i++)
		for (int out = 0; out < 2; out++) {
			uint8_t *from = out ? near : far, *to = out ? far : near;

			rig_fill(from, 0, sizes[i], 5 + i);
			memset(to, 0xee, sizes[i]);
			far[sizes[i]] = 0x77;
			assert_int_equal(direct_one(&d, near, far, sizes[i], out), sizes[i]);
			assert_true(rig_same(to, 0, sizes[i], 5 + i));
			assert_int_equal(far[sizes[i]], 0x77);
		}
	duo_close(&d);
	free(near);
	free(far);
}

static void segments_of_ours_follow_each_other(void **state)
{
	uint8_t near[4096], far[4096];
	struct iovec iov[HD_IOV_MAX];
	struct duo d;

	direct_scene(&d);
	for (int i = 0; i < HD_IOV_MAX; i++)
		iov[i] = (struct iovec){ near + i * 256, 256 };
	rig_fill(near, 0, sizeof(near), 9);
	assert_int_equal(direct_reach(&d, iov, HD_IOV_MAX, far, true), sizeof(far));
	assert_true(rig_same(far, 0, sizeof(far), 9));
	rig_fill(far, 0, sizeof(far), 10);
	assert_int_equal(direct_reach(&d, iov, HD_IOV_MAX, far, false), sizeof(far));
	assert_true(rig_same(near, 0, sizeof(near), 10));
	duo_close(&d);
}

/*
 * The kernel copies segments in their order, so the last one must be the last
 * eight bytes, and be there.
 */
static void the_last_bytes_are_written_last(void **state)
{
	static const size_t lens[] = { 9, 16, 100, 4096 };
	uint8_t near[4096] = { 1 }, far[4096];
	struct duo d;

	direct_scene(&d);
	for (unsigned i = 0; i < 4; i++) {
		const struct vm_call *c = &vm_seam.last;
		const struct iovec *last;

		assert_int_equal(direct_one(&d, near, far, lens[i], true), lens[i]);
		last = &c->near[c->near_count - 1];
		assert_true(c->out);
		assert_int_equal(last->iov_len, 8);
		assert_ptr_equal(last->iov_base, near + lens[i] - 8);
		assert_int_equal(c->far_count, 1);
	}
	/* nobody polls what is only read, nor the middle of a write */
	assert_int_equal(direct_one(&d, near, far, 4096, false), 4096);
	assert_int_equal(vm_seam.last.near_count, 1);
	duo_close(&d);
}

static void what_is_cut_short_says_so(void **state)
{
	uint8_t near[100], far[100];
	struct duo d;

	direct_scene(&d);
	vm_seam.most = 60;
	assert_int_equal(direct_one(&d, near, far, 100, false), 60);
	assert_int_equal(direct_one(&d, near, far, 100, true), 60);
	duo_close(&d);
}

/*
 * What is written as one word goes by the short way, and what is read within one page; nothing else
 * does. And by the other where the file is another process's, or may not be opened.
 */
static void what_is_brief_takes_the_short_way(void **state)
{
	static const struct {
		size_t at, len;
		bool write, read; /* by the short way? */
	} how[] = { { 0, 1, true, true },	{ 4088, 8, true, true },    { 0, 9, false, true },
		    { 100, 3996, false, true }, { 0, 4096, false, true },   { 4095, 1, true, true },
		    { 4092, 8, true, false },	{ 1, 4096, false, false },  { 4000, 97, false, false },
		    { 0, 4097, false, false },	{ 4096, 4096, false, true } };
	uint8_t *far = mmap(NULL, 12288, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint8_t near[4097];
	struct duo d;

	for (int file = 0; file < 3; file++) {
		direct_scene(&d);
		if (file == 1) {
			d.node[1]->page->probe_value++;
			assert_false(hd_shm_poke_is_open(&d.link[0]->peer));
			d.node[1]->page->probe_value--;
		}
		if (file == 2)
			d.link[0]->peer.poke_tried = true;
		for (unsigned i = 0; i < sizeof(how) / sizeof(how[0]); i++)
			for (int out = 0; out < 2; out++) {
				uint8_t *to = out ? far + how[i].at : near;

				vm_seam.calls = vm_seam.pokes = 0;
				rig_fill(out ? near : far + how[i].at, 0, how[i].len, 5 + i);
				memset(to, 0xee, how[i].len);
				assert_int_equal(direct_one(&d, near, far + how[i].at, how[i].len, out),
						 how[i].len);
				assert_true(rig_same(to, 0, how[i].len, 5 + i));
				assert_in_range(vm_seam.calls, 1, HD_STORES_IN_ORDER || !out ? 1 : 2);
				assert_int_equal(vm_seam.pokes,
						 !file && (out ? how[i].write && !hd_shm_poke_forces()
							       : how[i].read));
			}
		duo_close(&d);
	}
	munmap(far, 12288);
}

/* Half of it is in a page that is not there: the other call tells. */
static void a_word_that_is_cut_is_told_of(void **state)
{
	uint8_t *half = mmap(NULL, 2 * TEST_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint8_t near[8] = { 1, 2, 3, 4, 5, 6, 7, 8 };
	struct duo d;

	direct_scene(&d);
	half[0] = 0;
	assert_int_equal(munmap(half + TEST_PAGE, TEST_PAGE), 0);
	assert_int_equal(direct_one(&d, near, half + TEST_PAGE - 4, 8, true), 4);
	assert_memory_equal(half + TEST_PAGE - 4, near, 4);
	assert_int_equal(direct_one(&d, near, half + TEST_PAGE, 8, true), -EREMOTEIO);
	assert_int_equal(direct_one(&d, near, half + TEST_PAGE - 8, 8, true), 8);
	duo_close(&d);
	munmap(half, TEST_PAGE);
}

/* ---- errors ---- */

/*
 * Every length is refused, the word that is written as a whole too, and whether it is
 * mapped, or protected later.
 */
static void what_may_be_read_alone_is_not_written(void **state)
{
	uint8_t *far = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint8_t near[4096], seen[4096];
	struct duo d;

	direct_scene(&d);
	memset(far, 7, 8192);
	memset(near, 1, sizeof(near));
	memset(seen, 7, sizeof(seen));
	assert_int_equal(mprotect(far, 8192, PROT_READ), 0);
	for (size_t len = 1; len <= 4096; len *= 2) {
		assert_int_equal(direct_one(&d, near, far, len, true), -EREMOTEIO);
		assert_memory_equal(far, seen, len);
		assert_int_equal(direct_one(&d, near, far, len, false), len);
		memset(near, 1, sizeof(near));
	}
	duo_close(&d);
	munmap(far, 8192);
}

static void memory_that_is_not_there_is_blamed_on_its_owner(void **state)
{
	uint8_t *hole = mmap(NULL, 65536, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint8_t *half = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint8_t *good = malloc(65536);
	struct duo d;

	direct_scene(&d);
	memset(good, 1, 65536);
	memset(half, 1, 65536);
	assert_int_equal(munmap(half + 32768, 32768), 0);
	for (int out = 0; out < 2; out++) {
		assert_int_equal(direct_one(&d, hole, good, 5000, out), -EFAULT);
		assert_int_equal(direct_one(&d, good, hole, 5000, out), -EREMOTEIO);
		/* what is there is copied, and then the next byte is to blame */
		assert_int_equal(direct_one(&d, half, good, 40000, out), 32768);
		assert_int_equal(direct_one(&d, half + 32768, good, 100, out), -EFAULT);
		assert_int_equal(direct_one(&d, good, half + 32768, 100, out), -EREMOTEIO);
		assert_int_equal(direct_one(&d, good, good + 100, 100, out), 100);
	}
	assert_int_equal(d.link[0]->base.row->direct_out, HD_DIRECT_YES);
	duo_close(&d);
	munmap(hole, 65536);
	munmap(half, 32768);
	free(good);
}

static void a_right_that_is_lost_is_lost_for_good(void **state)
{
	static const int errors[] = { EPERM, ENOSYS, EACCES };
	uint8_t near[64] = { 0 }, far[64] = { 1 };

	for (int i = 0; i < 3; i++) {
		struct duo d;

		direct_scene(&d);
		assert_int_equal(direct_one(&d, near, far, 64, false), 64);
		vm_seam.error = errors[i];
		assert_int_equal(direct_one(&d, near, far, 64, false), -EOPNOTSUPP);
		vm_seam.error = 0;
		assert_int_equal(direct_one(&d, near, far, 64, false), -EOPNOTSUPP);
		assert_int_equal(d.link[0]->base.row->direct_out, HD_DIRECT_REFUSED);
		assert_int_equal(d.link[0]->base.row->direct_out_errno, errors[i]);
		assert_int_equal(atomic_load(&d.link[0]->own->direct_word), 0);
		duo_close(&d);
	}
}

static void want_of_memory_passes(void **state)
{
	uint8_t near[64] = { 0 }, far[64] = { 1 };
	struct duo d;

	direct_scene(&d);
	vm_seam.error = ENOMEM;
	assert_int_equal(direct_one(&d, near, far, 64, false), -EAGAIN);
	vm_seam.error = 0;
	assert_int_equal(direct_one(&d, near, far, 64, false), 64);
	duo_close(&d);
}

/* ---- regions that go ---- */

static void what_has_changed_is_not_touched(void **state)
{
	uint8_t near[64] = { 0 }, far[64] = { 1 };
	struct duo d;

	direct_scene(&d);
	atomic_store(&direct_tables(&d)->mrs[MR_ROW].state, MR_STATE + 1);
	assert_int_equal(direct_one(&d, near, far, 64, false), -ESTALE);
	atomic_store(&direct_tables(&d)->mrs[MR_ROW].state, MR_STATE);
	atomic_store(&direct_tables(&d)->eps[EP_ROW].state, EP_STATE + (1u << 16));
	assert_int_equal(direct_one(&d, near, far, 64, true), -ESTALE);
	assert_int_equal(vm_seam.calls, 0);
	assert_int_equal(atomic_load(&d.link[0]->own->direct_word), 0);
	duo_close(&d);
}

struct settling {
	struct duo *d;
	int this_one, another;
};

static void settle_within(void *arg)
{
	struct settling *s = arg;
	struct hd_port *port = &s->d->port[1]->base;

	atomic_store(&direct_tables(s->d)->mrs[MR_ROW].state, MR_STATE + 1);
	s->this_one = port->transport->settle(port, MR_ROW);
	s->another = port->transport->settle(port, MR_ROW + 1);
}

static void who_copies_is_waited_for(void **state)
{
	uint8_t near[64] = { 0 }, far[64] = { 1 };
	struct settling s = { .this_one = 1, .another = 1 };
	struct duo d;

	for (int out = 0; out < 2; out++) {
		direct_scene(&d);
		s.d = &d;
		vm_seam.before = settle_within;
		vm_seam.arg = &s;
		assert_int_equal(direct_one(&d, near, far, 64, out), 64);
		assert_int_equal(s.this_one, -EAGAIN);
		assert_int_equal(s.another, 0);
		assert_int_equal(d.port[1]->base.transport->settle(&d.port[1]->base, MR_ROW), 0);
		assert_int_equal(direct_one(&d, near, far, 64, out), -ESTALE);
		duo_close(&d);
	}
}

static void nothing_is_kept_where_nothing_is_shown(void **state)
{
	struct duo d;

	direct_scene(&d);
	direct_tables(&d)->mr_count = 0;
	atomic_store(&d.link[0]->own->direct_word, 1);
	rig_end_close(d.end[1], -ECONNABORTED);
	rig_poll(d.node[1]);
	assert_true(LIST_EMPTY(&d.port[1]->late));
	duo_turns(&d, 10);
	duo_close(&d);
}

/* ---- order ---- */

static void a_fence_is_passed_when_what_is_before_it_is(void **state)
{
	const struct hd_link_ops *ops;
	struct hd_link *link;
	uint32_t first, again, second;
	struct duo d;

	direct_scene(&d);
	link = &d.link[0]->base;
	ops = link->ops;
	duo_turns(&d, 5);
	d.end[0]->plan = (struct rig_plan){ .packets = 20, .most = 3000, .least = 3000, .how = RIG_SEND };
	rig_poll(d.node[0]);
	assert_int_equal(d.end[0]->plan.packets, 0);
	assert_int_equal(ops->fence(link, &first), 0);
	assert_int_equal(ops->fence(link, &again), 0);
	assert_int_equal(first, again);
	assert_false(ops->passed(link, first));
	rig_poll(d.node[0]);
	assert_false(ops->passed(link, first));
	while (d.end[1]->rx < 20) /* among them what it had before */
		rig_poll(d.node[1]);
	rig_poll(d.node[1]);
	assert_true(ops->passed(link, first));
	d.end[0]->plan.packets = 1;
	rig_poll(d.node[0]);
	assert_int_equal(ops->fence(link, &second), 0);
	assert_int_not_equal(first, second);
	assert_false(ops->passed(link, second));
	assert_true(ops->passed(link, first));
	rig_poll(d.node[1]);
	assert_true(ops->passed(link, second));
	duo_close(&d);
}

/* Who waits for the answer sleeps, and is woken by it. */
static void the_answer_wakes_who_waits(void **state)
{
	struct hd_link *link;
	uint32_t token;
	struct duo d;
	uint64_t n;

	direct_scene(&d);
	link = &d.link[0]->base;
	duo_turns(&d, 5);
	d.end[0]->plan = (struct rig_plan){ .packets = 1, .most = 8, .least = 8, .how = RIG_SEND };
	rig_poll(d.node[0]);
	assert_int_equal(link->ops->fence(link, &token), 0);
	assert_false(link->ops->passed(link, token));
	for (int i = 0; i < 3 && rig_arm(d.node[0]); i++)
		rig_disarm(d.node[0]);
	assert_int_equal(read(d.node[0]->wake_fd, &n, sizeof(n)), -1);
	rig_poll(d.node[1]);
	assert_int_equal(read(d.node[0]->wake_fd, &n, sizeof(n)), sizeof(n));
	rig_disarm(d.node[0]);
	assert_true(link->ops->passed(link, token));
	/* an answer that came before he lay down keeps him awake */
	d.end[0]->plan.packets = 1;
	rig_poll(d.node[0]);
	assert_int_equal(link->ops->fence(link, &token), 0);
	assert_false(link->ops->passed(link, token));
	rig_poll(d.node[1]);
	assert_true(rig_arm(d.node[0]));
	rig_disarm(d.node[0]);
	duo_close(&d);
}

static void a_full_ring_takes_no_fence(void **state)
{
	struct hd_link *link;
	uint32_t token = 0;
	struct duo d;

	direct_scene(&d);
	link = &d.link[0]->base;
	d.end[0]->plan = (struct rig_plan){ .packets = 5000, .most = 0, .how = RIG_SEND };
	for (int i = 0; i < 10; i++)
		rig_poll(d.node[0]);
	assert_int_not_equal(d.end[0]->plan.packets, 0);
	assert_int_equal(link->ops->fence(link, &token), -EAGAIN);
	while (d.end[0]->plan.packets)
		duo_turns(&d, 1);
	duo_turns(&d, 100);
	assert_int_equal(link->ops->fence(link, &token), 0);
	duo_turns(&d, 2);
	assert_true(link->ops->passed(link, token));
	duo_close(&d);
}

/* ---- does it poll? ---- */

static bool polls(struct duo *d)
{
	return d->link[0]->base.ops->polls(&d->link[0]->base);
}

/*
 * The rig does not count turns, so the test does. What is judged is time: a millisecond is longer
 * than LIVELY_US, and LOOK_US.
 */
static void who_moves_is_taken_for_polling(void **state)
{
	struct duo d;

	direct_scene(&d);
	duo_turns(&d, 5);
	usleep(1000);
	polls(&d);
	usleep(1000);
	assert_false(polls(&d)); /* nothing has moved */
	atomic_fetch_add(&direct_tables(&d)->turns, 8);
	usleep(1000);
	assert_false(polls(&d)); /* it has moved, but that may have been long ago */
	for (int i = 0; i < 1000 && !polls(&d); i++)
		atomic_fetch_add(&direct_tables(&d)->turns, 8);
	assert_true(polls(&d));
	atomic_store(&d.node[1]->page->sleep_seq, 1);
	assert_false(polls(&d));
	atomic_store(&d.node[1]->page->sleep_seq, 2);
	usleep(1000);
	assert_false(polls(&d));
	duo_close(&d);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_length_goes_both_ways),
		cmocka_unit_test(segments_of_ours_follow_each_other),
		cmocka_unit_test(the_last_bytes_are_written_last),
		cmocka_unit_test(what_is_cut_short_says_so),
		cmocka_unit_test(what_is_brief_takes_the_short_way),
		cmocka_unit_test(a_word_that_is_cut_is_told_of),
		cmocka_unit_test(what_may_be_read_alone_is_not_written),
		cmocka_unit_test(memory_that_is_not_there_is_blamed_on_its_owner),
		cmocka_unit_test(a_right_that_is_lost_is_lost_for_good),
		cmocka_unit_test(want_of_memory_passes),
		cmocka_unit_test(what_has_changed_is_not_touched),
		cmocka_unit_test(who_copies_is_waited_for),
		cmocka_unit_test(nothing_is_kept_where_nothing_is_shown),
		cmocka_unit_test(a_fence_is_passed_when_what_is_before_it_is),
		cmocka_unit_test(the_answer_wakes_who_waits),
		cmocka_unit_test(a_full_ring_takes_no_fence),
		cmocka_unit_test(who_moves_is_taken_for_polling),
	};

	return cmocka_run_group_tests_name("shm direct RMA", tests, NULL, NULL);
}
