/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * A program that has an epoll_create1 of its own and its like, as librspreload has: the engine's
 * sets are the kernel's all the same.
 */
#include "engine/test/test_pair.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>

static int asked;

static int not_ours(void)
{
	asked++;
	errno = ENOSYS;
	return -1;
}

int epoll_create1(int flags)
{
	(void)flags;
	return not_ours();
}

int epoll_ctl(int set, int op, int fd, struct epoll_event *event)
{
	(void)set, (void)op, (void)fd, (void)event;
	return not_ours();
}

int epoll_wait(int set, struct epoll_event *events, int most, int ms)
{
	(void)set, (void)events, (void)most, (void)ms;
	return not_ours();
}

/*
 * Both ends of each transport get what the other one has sent, by sockets, eventfds and sets
 * that a thread sleeps on.
 */
static void test_sets_are_the_kernels(void **state)
{
	struct hd_wset *set;

	(void)state;
	EACH_TRANSPORT(transport)
	{
		struct pair p;
		char to = 'a', got = 0;

		pair_open(&p, transport);
		assert_int_equal(hd_wset_open(&set), 0);
		assert_int_equal(hd_cq_join(p.b.cq, set), 0);
		side_post(&p.b, &got, 1, 7, 0, NULL, &got);
		pair_push(&p, &p.a, &to, 1, 7, HD_SEND_TAGGED);
		assert_ptr_equal(pair_next(&p, &p.b).ctx, &got);
		assert_int_equal(got, to);
		hd_cq_leave(p.b.cq);
		assert_int_equal(hd_wset_close(set), 0);
		pair_close(&p);
	}
	assert_int_equal(asked, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sets_are_the_kernels),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
