/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Several threads that sleep for one rsocket: each is woken by what happens after it has looked,
 * whoever gets up in between.
 */
#include "base/clock.h"
#include "front/verbs/rs/rs.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static int setup(void **state)
{
	static struct rs rs;

	rs = (struct rs){ .type = SOCK_STREAM, .conn.state = RS_OPEN };
	rs.fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	assert_true(rs.fd >= 0);
	*state = &rs;
	return 0;
}

static int teardown(void **state)
{
	const struct rs *rs = *state;

	return close(rs->fd);
}

static uint32_t lie_down(struct rs *rs)
{
	struct pollfd p[RS_WATCHED];
	uint32_t ring = 0;

	assert_int_equal(rs_lie_down(rs, NULL, rs->wait.changes, p, &ring), 1);
	assert_int_equal(p[0].fd, rs->fd);
	return ring;
}

static bool would_wake(const struct rs *rs)
{
	struct pollfd p = { .fd = rs->fd, .events = POLLIN };

	return poll(&p, 1, 0) == 1;
}

static void all_who_slept_are_woken(void **state)
{
	struct rs *rs = *state;
	uint32_t a = lie_down(rs), b = lie_down(rs);

	assert_false(would_wake(rs));
	rs_changed(rs);
	rs_get_up(rs, a);
	assert_true(would_wake(rs));
	rs_get_up(rs, b);
	assert_false(would_wake(rs));
	rs_changed(rs);
	assert_false(would_wake(rs));
}

static void who_gets_up_by_itself_wakes_nobody(void **state)
{
	struct rs *rs = *state;
	uint32_t a = lie_down(rs), b = lie_down(rs);

	rs_get_up(rs, b);
	assert_false(would_wake(rs));
	rs_changed(rs);
	assert_true(would_wake(rs));
	rs_get_up(rs, a);
	assert_false(would_wake(rs));
}

/* It lies down while another has been woken and is not up yet; then something happens. */
static void who_lies_down_later_is_woken(void **state)
{
	struct rs *rs = *state;
	uint32_t a = lie_down(rs), b;

	rs_changed(rs);
	b = lie_down(rs);
	rs_changed(rs);
	rs_get_up(rs, a);
	assert_true(would_wake(rs));
	rs_get_up(rs, b);
	assert_false(would_wake(rs));
}

static void nothing_happened_to_who_lies_down_later(void **state)
{
	struct rs *rs = *state;
	uint32_t a = lie_down(rs), b;

	rs_changed(rs);
	b = lie_down(rs);
	rs_get_up(rs, a);
	assert_false(would_wake(rs));
	rs_changed(rs);
	assert_true(would_wake(rs));
	rs_get_up(rs, b);
	assert_false(would_wake(rs));
}

/* rpoll gives up the lock between looking and lying down; what happens then rings for nobody. */
static void who_has_not_seen_it_stays_up(void **state)
{
	struct rs *rs = *state;
	struct pollfd p[RS_WATCHED];
	uint32_t ring, seen = rs->wait.changes;

	rs_changed(rs);
	assert_int_equal(rs_lie_down(rs, NULL, seen, p, &ring), 0);
}

#define TRIES 10000 /* others may have the processors */

/* Something happens again and again. */
static void *changes(void *arg)
{
	struct rs *rs = arg;
	bool closed = false;

	while (!closed) {
		for (int i = 0; i < 2000; i++)
			hd_cpu_relax();
		pthread_mutex_lock(&rs->lock);
		closed = rs->closed;
		rs_changed(rs);
		pthread_mutex_unlock(&rs->lock);
	}
	return NULL;
}

static void what_comes_soon_is_looked_for(void **state)
{
	struct rs *rs = *state;
	struct hd_busy_poll seen = { 0 };
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, changes, rs), 0);
	pthread_mutex_lock(&rs->lock);
	for (int i = 0; i < TRIES && !seen.ticks; i++) {
		assert_int_equal(rs_wait_for(rs, -1), 0);
		seen = rs->wait.look;
	}
	rs->closed = true;
	pthread_mutex_unlock(&rs->lock);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_true(seen.ticks > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(all_who_slept_are_woken, setup, teardown),
		cmocka_unit_test_setup_teardown(who_gets_up_by_itself_wakes_nobody, setup, teardown),
		cmocka_unit_test_setup_teardown(who_lies_down_later_is_woken, setup, teardown),
		cmocka_unit_test_setup_teardown(nothing_happened_to_who_lies_down_later, setup, teardown),
		cmocka_unit_test_setup_teardown(who_has_not_seen_it_stays_up, setup, teardown),
		cmocka_unit_test_setup_teardown(what_comes_soon_is_looked_for, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
