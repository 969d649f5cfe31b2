/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Wait sets. A thread does not assert: it counts what went wrong. A wait that ends at its time-out
 * was not woken, and is a lost one even if there is something by then.
 */
#include "asleep.h"
#include "cpu.h"
#include "engine/test/test_pair.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WAIT_MS 20000
#define SIDES 3

static const struct hd_node_attr locked = { .front = "test", .locked = true };
static const struct hd_node_attr automatic = { .front = "test", .auto_progress = true };

/* Receivers in nodes of their own, all in one set, and one sender. */
struct scene {
	struct side to[SIDES], from[SIDES];
	struct hd_wset *set;
};

static void scene_open(struct scene *s, const char *transport, const struct hd_node_attr *attr)
{
	setenv("HEDDLE_TRANSPORT", transport, 1);
	assert_int_equal(hd_wset_open(&s->set), 0);
	for (int i = 0; i < SIDES; i++) {
		side_open_with(&s->to[i], attr);
		side_open_with(&s->from[i], &automatic);
		side_names(&s->from[i], &s->to[i]);
		assert_int_equal(hd_cq_join(s->to[i].cq, s->set), 0);
	}
}

static void scene_close(struct scene *s)
{
	for (int i = 0; i < SIDES; i++) {
		assert_int_equal(hd_wset_close(s->set), -EBUSY);
		hd_cq_leave(s->to[i].cq);
		side_close(&s->to[i]);
		side_close(&s->from[i]);
	}
	assert_int_equal(hd_wset_close(s->set), 0);
	unsetenv("HEDDLE_TRANSPORT");
}

static void say(struct side *s)
{
	static char text[8] = "text";
	uint64_t end = hd_now_ns() + PATIENCE;
	int rc;

	do {
		hd_node_lock(s->node);
		rc = hd_send(s->ep, s->to, text, 8, 1, 0, NULL, TAGGED(0));
		hd_node_unlock(s->node);
	} while (rc == -EAGAIN && hd_now_ns() < end);
	assert_int_equal(rc, 0);
}

/* Nobody looks at what came; nodes have locks of their own, so each wants a buffer of its own. */
static void post(struct scene *scene, int i)
{
	static char in[SIDES][8];
	struct side *s = &scene->to[i];

	hd_node_lock(s->node);
	side_post(s, in[i], 8, 1, 0, NULL, in[i]);
	hd_node_unlock(s->node);
}

/* Take what is there. */
static int take(struct side *s)
{
	int n = 0;

	hd_node_lock(s->node);
	while (hd_cq_poll(s->cq)) {
		hd_cq_pop(s->cq);
		n++;
	}
	hd_node_unlock(s->node);
	return n;
}

/* Not even the sender's lock is taken here: it says what it was told before it slept. */
struct late {
	pthread_t thread;
	struct side *from;
	int count;
};

static void *say_late(void *arg)
{
	struct late *l = arg;

	for (int i = 0; i < l->count; i++) {
		usleep(i % 4 ? 300 : 3000);
		say(l->from);
	}
	return NULL;
}

static void wakes_for_each_of_several_nodes(void **state)
{
	struct scene s;

	EACH_TRANSPORT(t)
	for (int kind = 0; kind < 2; kind++) {
		scene_open(&s, t, kind ? &automatic : &locked);
		for (int i = 0; i < 40 * SIDES; i++) {
			struct late late = { .from = &s.from[i % SIDES], .count = 1 };
			uint64_t begin = hd_now_ns();

			post(&s, i % SIDES);
			pthread_create(&late.thread, NULL, say_late, &late);
			do
				assert_int_equal(hd_wset_wait(s.set, WAIT_MS), 0);
			while (!take(&s.to[i % SIDES]));
			pthread_join(late.thread, NULL);
			assert_in_range(hd_now_ns() - begin, 0, WAIT_MS / 2 * HD_NS_PER_MS);
		}
		scene_close(&s);
	}
}

static void times_out_asleep_and_takes_signals(void **state)
{
	struct scene s;
	uint64_t begin, used;

	EACH_TRANSPORT(t)
	{
		scene_open(&s, t, &locked);
		assert_int_equal(hd_wset_wait(s.set, 0), -EAGAIN);
		begin = hd_now_ns();
		used = cpu_ns();
		assert_int_equal(hd_wset_wait(s.set, 300), -EAGAIN);
		assert_in_range(hd_now_ns() - begin, 290 * HD_NS_PER_MS, 20 * HD_NS_PER_S);
		assert_in_range(cpu_ns() - used, 0, 60 * HD_NS_PER_MS);
		hd_cq_signal(s.to[1].cq);
		assert_int_equal(hd_wset_wait(s.set, WAIT_MS), -ECANCELED);
		assert_int_equal(hd_wset_wait(s.set, 0), -EAGAIN);
		scene_close(&s);
	}
}

/* ---- several threads in one set -------------------------------------------------------------- */

struct sleeper {
	pthread_t thread;
	struct scene *scene;
	_Atomic int *left; /* messages that nobody has taken yet */
	int wrong;
};

static void *take_some(void *arg)
{
	struct sleeper *me = arg;

	while (atomic_load(me->left) > 0 && !me->wrong) {
		int rc = hd_wset_wait(me->scene->set, WAIT_MS);

		if (rc == -ECANCELED)
			break;
		me->wrong += rc != 0;
		for (int i = 0; i < SIDES; i++) {
			int taken = take(&me->scene->to[i]);

			me->wrong += atomic_fetch_sub(me->left, taken) < taken;
		}
	}
	hd_wset_signal(me->scene->set); /* the others need not wait */
	return NULL;
}

static void several_threads_share_a_set(void **state)
{
	enum {
		EACH = 200
	};
	struct sleeper sleepers[3];
	struct late late[SIDES];
	_Atomic int left;
	struct scene s;

	EACH_TRANSPORT(t)
	{
		scene_open(&s, t, &locked);
		left = EACH * SIDES;
		for (int i = 0; i < SIDES; i++)
			for (int n = 0; n < EACH; n++)
				post(&s, i);
		for (int i = 0; i < 3; i++) {
			sleepers[i] = (struct sleeper){ .scene = &s, .left = &left };
			pthread_create(&sleepers[i].thread, NULL, take_some, &sleepers[i]);
		}
		for (int i = 0; i < SIDES; i++) {
			late[i] = (struct late){ .from = &s.from[i], .count = EACH };
			pthread_create(&late[i].thread, NULL, say_late, &late[i]);
		}
		for (int i = 0; i < SIDES; i++)
			pthread_join(late[i].thread, NULL);
		for (int i = 0; i < 3; i++) {
			pthread_join(sleepers[i].thread, NULL);
			assert_int_equal(sleepers[i].wrong, 0);
		}
		assert_int_equal(left, 0);
		scene_close(&s);
	}
}

/* ---- the descriptor -------------------------------------------------------------------------- */

static void descriptor_becomes_readable(void **state)
{
	struct scene s;

	EACH_TRANSPORT(t)
	{
		struct pollfd p = { .events = POLLIN };

		scene_open(&s, t, &locked);
		p.fd = hd_wset_fd(s.set);
		for (int i = 0; i < 60; i++) {
			struct late late = { .from = &s.from[i % SIDES], .count = 1 };

			post(&s, i % SIDES);
			pthread_create(&late.thread, NULL, say_late, &late);
			do {
				if (hd_wset_arm(s.set) == 0)
					assert_int_equal(poll(&p, 1, WAIT_MS), 1);
			} while (!take(&s.to[i % SIDES]));
			pthread_join(late.thread, NULL);
		}
		while (hd_wset_arm(s.set))
			;
		assert_int_equal(poll(&p, 1, 100), 0);
		scene_close(&s);
	}
}

static void event_queues_wake_as_well(void **state)
{
	const struct hd_event e = { .code = HD_EV_FRONT };
	struct hd_evq *evq;
	struct scene s;

	scene_open(&s, "shm", &locked);
	assert_int_equal(hd_evq_open(4, &evq), 0);
	assert_int_equal(hd_evq_join(evq, s.set), 0);
	assert_int_equal(hd_wset_wait(s.set, 0), -EAGAIN);
	assert_int_equal(hd_evq_post(evq, &e), 0);
	assert_int_equal(hd_wset_wait(s.set, WAIT_MS), 0);
	assert_int_equal(hd_wset_arm(s.set), -EAGAIN);
	hd_evq_leave(evq, s.set);
	assert_int_equal(hd_wset_wait(s.set, 0), -EAGAIN);
	assert_int_equal(hd_evq_close(evq), 0);
	scene_close(&s);
}

/* ---- members that come and go, counters ------------------------------------------------------ */

static void *wait_once(void *arg)
{
	struct sleeper *me = arg;

	me->wrong = hd_wset_wait(me->scene->set, WAIT_MS) != 0;
	return NULL;
}

/* A counter joins while a thread sleeps, is told of, leaves again. */
static void members_come_while_somebody_sleeps(void **state)
{
	struct hd_cntr *c;
	struct scene s;

	scene_open(&s, "shm", &locked);
	for (int i = 0; i < 50; i++) {
		struct sleeper me = { .scene = &s };
		/* of which the set has no member yet */
		struct hd_node *node = s.from[i % SIDES].node;

		pthread_create(&me.thread, NULL, wait_once, &me);
		usleep(i % 2 ? 2000 : 0);
		hd_node_lock(node);
		assert_int_equal(hd_cntr_open(node, &c), 0);
		hd_node_unlock(node);
		assert_int_equal(hd_cntr_join(c, s.set), 0);
		hd_node_lock(node);
		hd_cntr_add(c, 1);
		hd_node_unlock(node);
		pthread_join(me.thread, NULL);
		assert_int_equal(me.wrong, 0);
		assert_int_equal(hd_wset_wait(s.set, 0), 0); /* nobody has read it */
		hd_node_lock(node);
		hd_cntr_poll(c);
		hd_node_unlock(node);
		assert_int_equal(hd_wset_wait(s.set, 0), -EAGAIN);
		hd_cntr_leave(c);
		hd_node_lock(node);
		assert_int_equal(hd_cntr_close(c), 0);
		hd_node_unlock(node);
	}
	scene_close(&s);
}

/* No peer writes a descriptor for them. */
static void expect_none_armed(const struct scene *s)
{
	for (int i = 0; i < SIDES; i++) {
		struct hd_node *node = s->to[i].node;

		hd_node_lock(node);
		assert_int_equal(hd_core(node)->arms, 0);
		hd_node_unlock(node);
	}
}

static void who_is_awake_leaves_nothing_armed(void **state)
{
	struct scene s;

	scene_open(&s, "shm", &locked);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(hd_wset_wait(s.set, 5), -EAGAIN);
		expect_none_armed(&s);
	}
	scene_close(&s);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) /* as in channel_test */
static void *wait_for_ever(void *arg)
{
	struct scene *s = arg;

	hd_wset_wait(s->set, -1);
	return NULL;
}

static void who_sleeps_may_be_cancelled(void **state)
{
	pthread_t thread;
	struct scene s;
	void *result;

	scene_open(&s, "shm", &locked);
	assert_int_equal(pthread_create(&thread, NULL, wait_for_ever, &s), 0);
	let_others_sleep();
	assert_int_equal(pthread_cancel(thread), 0);
	pthread_join(thread, &result);
	assert_ptr_equal(result, PTHREAD_CANCELED);
	expect_none_armed(&s);
	scene_close(&s); /* nobody waits for it */
}
#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(wakes_for_each_of_several_nodes),
		cmocka_unit_test(times_out_asleep_and_takes_signals),
		cmocka_unit_test(several_threads_share_a_set),
		cmocka_unit_test(descriptor_becomes_readable),
		cmocka_unit_test(event_queues_wake_as_well),
		cmocka_unit_test(members_come_while_somebody_sleeps),
		cmocka_unit_test(who_is_awake_leaves_nothing_armed),
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
		cmocka_unit_test(who_sleeps_may_be_cancelled),
#endif
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
