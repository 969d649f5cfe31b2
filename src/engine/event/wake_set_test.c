/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Bells: whoever waits for the condition is woken for what comes, once for each time that it asked,
 * and not for what was there before.
 */
#include "asleep.h"
#include "engine/test/test_pair.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#define ROUNDS 60
#define WAIT_S 20

static const struct hd_node_attr locked = { .front = "test", .locked = true };
static const struct hd_node_attr automatic = { .front = "test", .auto_progress = true };

struct scene {
	struct side to, from;
	struct hd_wset *set;
	struct hd_wake_set *wake_set;
	pthread_mutex_t *mutex;
	pthread_cond_t *cond;
	char in[8];
};

static void scene_open(struct scene *s, const char *transport)
{
	setenv("HEDDLE_TRANSPORT", transport, 1);
	assert_int_equal(hd_wset_open(&s->set), 0);
	side_open_with(&s->to, &locked);
	side_open_with(&s->from, &automatic);
	side_names(&s->from, &s->to);
	assert_int_equal(hd_cq_join(s->to.cq, s->set), 0);
	assert_int_equal(hd_wake_set_open(s->set, &s->wake_set), 0);
	hd_wake_set_get(s->wake_set, &s->mutex, &s->cond);
}

static void scene_close(struct scene *s)
{
	hd_wake_set_close(s->wake_set);
	hd_cq_leave(s->to.cq);
	side_close(&s->to);
	side_close(&s->from);
	assert_int_equal(hd_wset_close(s->set), 0);
	unsetenv("HEDDLE_TRANSPORT");
}

/*
 * Runs in a thread of its own too, where nothing can be asserted: what was refused never comes, and
 * is noticed by whoever waits.
 */
static void *say(void *arg)
{
	struct scene *s = arg;
	uint64_t end = hd_now_ns() + PATIENCE;
	int rc;

	do {
		hd_node_lock(s->from.node);
		rc = hd_send(s->from.ep, s->from.to, "text", 5, 1, 0, NULL, TAGGED(0));
		hd_node_unlock(s->from.node);
	} while (rc == -EAGAIN && hd_now_ns() < end);
	return NULL;
}

static void *say_late(void *arg)
{
	usleep(500); /* before, while or after the other one falls asleep: whichever, he wakes */
	return say(arg);
}

static void post(struct scene *s)
{
	hd_node_lock(s->to.node);
	side_post(&s->to, s->in, sizeof(s->in), 1, 0, NULL, s->in);
	hd_node_unlock(s->to.node);
}

/* The completion that has come; nobody made progress for it but the wake set. */
static bool take(struct scene *s)
{
	bool any;

	hd_node_lock(s->to.node);
	any = hd_cq_peek(s->to.cq);
	if (any)
		hd_cq_pop(s->to.cq);
	hd_node_unlock(s->to.node);
	return any;
}

/* False: nobody has rung within so many milliseconds. With the mutex held. */
static bool rung(struct scene *s, int ms)
{
	struct timespec end;
	int rc;

	clock_gettime(CLOCK_REALTIME, &end);
	end.tv_sec += ms / 1000;
	end.tv_nsec += (long)(ms % 1000) * 1000000;
	end.tv_sec += end.tv_nsec / 1000000000;
	end.tv_nsec %= 1000000000;
	rc = pthread_cond_timedwait(s->cond, s->mutex, &end);
	assert_true(rc == 0 || rc == ETIMEDOUT);
	return rc == 0;
}

static void rings_for_what_comes(void **state)
{
	struct scene s;

	EACH_TRANSPORT(t)
	{
		scene_open(&s, t);
		for (int i = 0; i < ROUNDS; i++) {
			pthread_t thread;

			post(&s);
			assert_int_equal(pthread_create(&thread, NULL, i % 2 ? say_late : say, &s), 0);
			pthread_mutex_lock(s.mutex);
			while (!take(&s))
				if (!hd_wake_set_arm(s.wake_set))
					assert_true(rung(&s, WAIT_S * 1000));
			pthread_mutex_unlock(s.mutex);
			pthread_join(thread, NULL);
		}
		scene_close(&s);
	}
}

static void what_is_there_needs_no_wake_set(void **state)
{
	uint64_t end = hd_now_ns() + PATIENCE;
	struct scene s;

	EACH_TRANSPORT(t)
	{
		scene_open(&s, t);
		post(&s);
		say(&s);
		pthread_mutex_lock(s.mutex);
		while (hd_wake_set_arm(s.wake_set) != -EAGAIN) {
			assert_true(hd_now_ns() < end);
			rung(&s, 10);
		}
		/* it stays there until it is taken */
		assert_int_equal(hd_wake_set_arm(s.wake_set), -EAGAIN);
		assert_true(take(&s));
		pthread_mutex_unlock(s.mutex);
		scene_close(&s);
	}
}

/*
 * Who does not ask is not told: the thread that makes progress in its place would
 * take the program's turns.
 */
static void nobody_asked_nobody_rings(void **state)
{
	struct scene s;

	EACH_TRANSPORT(t)
	{
		scene_open(&s, t);
		post(&s);
		pthread_mutex_lock(s.mutex);
		say(&s);
		assert_false(rung(&s, 50));
		assert_false(take(&s));
		pthread_mutex_unlock(s.mutex);
		scene_close(&s);
	}
}

/* Asked, and nothing comes: the thread is asleep in the set and ends all the same. */
static void closes_while_somebody_would_wait(void **state)
{
	struct scene s;
	uint64_t begin;

	EACH_TRANSPORT(t)
	for (int pause = 0; pause < 2; pause++) {
		scene_open(&s, t);
		pthread_mutex_lock(s.mutex);
		assert_int_equal(hd_wake_set_arm(s.wake_set), 0);
		assert_false(rung(&s, 20));
		assert_int_equal(hd_wake_set_arm(s.wake_set), 0); /* twice is once */
		pthread_mutex_unlock(s.mutex);
		if (pause)
			let_others_sleep();
		begin = hd_now_ns();
		scene_close(&s);
		assert_in_range(hd_now_ns() - begin, 0, WAIT_S * HD_NS_PER_S);
	}
}

/* The end of a wait by somebody else's hand: rung once, and the one who waited asks again. */
static void a_signal_of_the_set_rings(void **state)
{
	struct scene s;

	scene_open(&s, "shm");
	pthread_mutex_lock(s.mutex);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(hd_wake_set_arm(s.wake_set), 0);
		hd_wset_signal(s.set);
		assert_true(rung(&s, WAIT_S * 1000));
	}
	pthread_mutex_unlock(s.mutex);
	scene_close(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rings_for_what_comes),
		cmocka_unit_test(what_is_there_needs_no_wake_set),
		cmocka_unit_test(nobody_asked_nobody_rings),
		cmocka_unit_test(closes_while_somebody_would_wait),
		cmocka_unit_test(a_signal_of_the_set_rings),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
