/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * What comes soon is looked for the next time, before anybody sleeps: on a CQ,
 * a channel and a wait set.
 */
#include "engine/test/test_told.h"

#include "base/clock.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>

#define WAIT_MS 20000
#define SOON_US 20
#define PATIENCE_NS (20 * HD_NS_PER_S) /* others may have the processors */

/* How often something has been looked for. */
static int looks;
bool __real_hd_busy_poll_on(const struct hd_busy_poll *look, struct hd_busy_polling *wait, uint32_t least_us,
			    uint64_t now);
bool __wrap_hd_busy_poll_on(const struct hd_busy_poll *look, struct hd_busy_polling *wait, uint32_t least_us,
			    uint64_t now);
bool __wrap_hd_busy_poll_on(const struct hd_busy_poll *look, struct hd_busy_polling *wait, uint32_t least_us,
			    uint64_t now)
{
	looks += look->ticks && !least_us;
	return __real_hd_busy_poll_on(look, wait, least_us, now);
}

struct scene {
	struct told t;
	struct hd_wset *set;
	pthread_t thread;
	/* completions that the thread is to write; UINT32_MAX: it is to end */
	_Atomic uint32_t asked;
};

/* One completion for each that is asked for, a moment later. */
static void *answers(void *arg)
{
	struct scene *s = arg;
	uint32_t done = 0, asked;
	uint64_t due;

	while ((asked = atomic_load(&s->asked)) != UINT32_MAX) {
		if (asked == done) {
			sched_yield();
			continue;
		}
		for (due = hd_now_ns() + SOON_US * HD_NS_PER_US; hd_now_ns() < due;)
			hd_cpu_relax();
		hd_node_lock(s->t.node);
		hd_cq_post(s->t.cq, &(struct hd_cqe){ 0 });
		hd_node_unlock(s->t.node);
		done++;
	}
	return NULL;
}

static int setup(void **state)
{
	static struct scene s;

	s = (struct scene){ 0 };
	told_open(&s.t, &(struct hd_node_attr){ .front = "test", .locked = true },
		  (struct hd_cq_attr){ .size = 64, .waitable = true, .item = &s.t.item });
	assert_int_equal(hd_wset_open(&s.set), 0);
	assert_int_equal(hd_cq_join(s.t.cq, s.set), 0);
	assert_int_equal(pthread_create(&s.thread, NULL, answers, &s), 0);
	*state = &s;
	return 0;
}

static int teardown(void **state)
{
	struct scene *s = *state;

	atomic_store(&s->asked, UINT32_MAX);
	assert_int_equal(pthread_join(s->thread, NULL), 0);
	hd_cq_leave(s->t.cq);
	assert_int_equal(hd_wset_close(s->set), 0);
	return told_close(&s->t);
}

static void take_completion(struct scene *s)
{
	hd_node_lock(s->t.node);
	assert_non_null(hd_cq_peek(s->t.cq));
	hd_cq_pop(s->t.cq);
	hd_node_unlock(s->t.node);
}

/* It has to come within 200 us once, which it does soon on the busiest machine. */
static void comes_to_look(struct scene *s, void (*wait)(struct scene *s))
{
	uint64_t end = hd_now_ns() + PATIENCE_NS;

	looks = 0;
	while (!looks && hd_now_ns() < end) {
		wait(s);
		take_completion(s);
	}
	assert_true(looks > 0);
}

static void ask(struct scene *s)
{
	atomic_fetch_add(&s->asked, 1);
}

static void wait_for_cq(struct scene *s)
{
	ask(s);
	assert_int_equal(hd_cq_wait(s->t.cq, 1, WAIT_MS), 0);
}

static void wait_for_channel(struct scene *s)
{
	struct hd_channel_item *item;

	hd_node_lock(s->t.node);
	hd_cq_notify(s->t.cq, false); /* of what is there already nobody is told */
	hd_node_unlock(s->t.node);
	ask(s);
	assert_int_equal(hd_channel_wait(s->t.channel, WAIT_MS, NULL), 0);
	assert_int_equal(hd_channel_take(s->t.channel, &item), 0);
}

static void wait_for_set(struct scene *s)
{
	ask(s);
	assert_int_equal(hd_wset_wait(s->set, WAIT_MS), 0);
}

static void on_a_cq(void **state)
{
	comes_to_look(*state, wait_for_cq);
}

static void on_a_channel(void **state)
{
	comes_to_look(*state, wait_for_channel);
}

static void on_a_set(void **state)
{
	comes_to_look(*state, wait_for_set);
}

static void ignored(int number)
{
}

/* A signal that comes while we look would be seen by its handler alone. */
static void not_where_a_signal_is_to_end_the_wait(void **state)
{
	struct sigaction sa = { .sa_handler = ignored }, old;
	struct scene *s = *state;

	assert_int_equal(sigaction(SIGUSR1, &sa, &old), 0);
	looks = 0;
	for (int i = 0; i < 200; i++) {
		wait_for_channel(s);
		take_completion(s);
	}
	assert_int_equal(looks, 0);
	assert_int_equal(sigaction(SIGUSR1, &old, NULL), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(on_a_cq, setup, teardown),
		cmocka_unit_test_setup_teardown(on_a_channel, setup, teardown),
		cmocka_unit_test_setup_teardown(on_a_set, setup, teardown),
		cmocka_unit_test_setup_teardown(not_where_a_signal_is_to_end_the_wait, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
