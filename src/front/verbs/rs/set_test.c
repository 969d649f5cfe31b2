/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* What a set tells of its rsockets: when something is there, and with EPOLLET when it is new. */
#include "front/verbs/rs/rs.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cmocka.h>

/* A listener without an id: what comes the test says. */
struct member {
	struct rs rs;
	struct rs_set *set;
	int fd; /* the set's */
};

static void last(struct rs *rs)
{
	(void)rs;
}

static int setup(void **state)
{
	static struct member m;

	m = (struct member){
		.rs = { .type = SOCK_STREAM, .conn.state = RS_LISTENING, .users = 1, .last = last }
	};
	m.rs.forks = rs_forks();
	m.rs.fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	assert_true(m.rs.fd >= 0);
	assert_int_equal(rs_table_add(&m.rs), 0);
	m.fd = rs_set_open(true);
	m.set = rs_set_get(m.fd);
	assert_non_null(m.set);
	*state = &m;
	return 0;
}

static int teardown(void **state)
{
	struct member *m = *state;

	rs_set_put(m->set);
	assert_true(rs_set_close(m->fd));
	assert_false(rs_set_close(m->fd));
	assert_int_equal(m->rs.sets, 0);
	assert_int_equal(m->rs.users, 1);
	rs_drop(&m->rs);
	return close(m->rs.fd);
}

static int change(struct member *m, int op, uint32_t events)
{
	const struct epoll_event e = { .events = events, .data.u64 = 7 };

	return rs_set_change(m->set, op, &m->rs, &e);
}

static uint32_t look(struct member *m)
{
	struct epoll_event e = { 0 };
	int n = rs_set_look(m->set, &e, 1, NULL);

	assert_int_equal(n, e.events != 0);
	assert_int_equal(e.data.u64, n ? 7 : 0);
	return e.events;
}

/* It stays as it is: somebody waits, a listener's news. */
static void comes(struct member *m)
{
	m->rs.callers.err = 1;
	m->rs.wait.came++;
}

static void what_is_there_is_told_as_long_as_it_is(void **state)
{
	struct member *m = *state;

	assert_int_equal(change(m, EPOLL_CTL_ADD, EPOLLIN), 0);
	assert_int_equal(look(m), 0);
	comes(m);
	assert_int_equal(look(m), EPOLLIN);
	assert_int_equal(look(m), EPOLLIN);
	m->rs.callers.err = 0;
	assert_int_equal(look(m), 0);
}

static void edges_are_told_once_each(void **state)
{
	struct member *m = *state;

	assert_int_equal(change(m, EPOLL_CTL_ADD, EPOLLIN | EPOLLET), 0);
	comes(m);
	assert_int_equal(look(m), EPOLLIN);
	assert_int_equal(look(m), 0);
	comes(m);
	assert_int_equal(look(m), EPOLLIN);
	assert_int_equal(look(m), 0);
	m->rs.callers.err = 0; /* taken, and another one comes before the next look */
	comes(m);
	assert_int_equal(look(m), EPOLLIN);
	m->rs.callers.err = 0;
	assert_int_equal(look(m), 0);
	comes(m);
	assert_int_equal(look(m), EPOLLIN);
	assert_int_equal(change(m, EPOLL_CTL_MOD, EPOLLIN | EPOLLET), 0);
	assert_int_equal(look(m), EPOLLIN);
	assert_int_equal(look(m), 0);
}

/* A send found no room, and there is room again by the next look. */
static void room_is_told_to_who_found_none(void **state)
{
	struct member *m = *state;

	m->rs.conn.shut_read = true; /* as a listener that is shut says */
	assert_int_equal(change(m, EPOLL_CTL_ADD, EPOLLOUT | EPOLLET), 0);
	assert_int_equal(look(m), EPOLLOUT | EPOLLHUP);
	assert_int_equal(look(m), 0);
	m->rs.wait.refused++;
	assert_int_equal(look(m), EPOLLOUT | EPOLLHUP);
	assert_int_equal(look(m), 0);
}

static void one_shot_is_one(void **state)
{
	struct member *m = *state;

	assert_int_equal(change(m, EPOLL_CTL_ADD, EPOLLIN | EPOLLONESHOT), 0);
	comes(m);
	assert_int_equal(look(m), EPOLLIN);
	comes(m);
	assert_int_equal(look(m), 0);
	assert_int_equal(change(m, EPOLL_CTL_MOD, EPOLLIN | EPOLLONESHOT), 0);
	assert_int_equal(look(m), EPOLLIN);
	assert_int_equal(look(m), 0);
}

static void who_closes_is_a_member_no_longer(void **state)
{
	struct member *m = *state;

	assert_int_equal(change(m, EPOLL_CTL_ADD, EPOLLIN), 0);
	assert_int_equal(m->rs.users, 2);
	comes(m);
	m->rs.closing = true;
	assert_int_equal(look(m), 0);
	rs_sets_leave(&m->rs);
	assert_int_equal(m->rs.users, 1);
	assert_int_equal(change(m, EPOLL_CTL_MOD, EPOLLIN), -ENOENT);
	assert_int_equal(change(m, EPOLL_CTL_DEL, 0), -ENOENT);
}

/* Who is slept for is counted among the users meanwhile. */
static void a_look_before_sleep_enters_who_is_slept_for(void **state)
{
	struct member *m = *state;
	struct rs_watched on[1];
	struct rs_watch w = { .rs = on };
	struct epoll_event e;

	assert_int_equal(change(m, EPOLL_CTL_ADD, EPOLLIN), 0);
	assert_int_equal(rs_set_look(m->set, &e, 1, &w), 0);
	assert_int_equal(w.count, 1);
	assert_ptr_equal(on[0].rs, &m->rs);
	assert_int_equal(m->rs.users, 3);
	rs_put(&m->rs);
	assert_int_equal(change(m, EPOLL_CTL_DEL, 0), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_is_there_is_told_as_long_as_it_is, setup, teardown),
		cmocka_unit_test_setup_teardown(edges_are_told_once_each, setup, teardown),
		cmocka_unit_test_setup_teardown(room_is_told_to_who_found_none, setup, teardown),
		cmocka_unit_test_setup_teardown(one_shot_is_one, setup, teardown),
		cmocka_unit_test_setup_teardown(who_closes_is_a_member_no_longer, setup, teardown),
		cmocka_unit_test_setup_teardown(a_look_before_sleep_enters_who_is_slept_for, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
