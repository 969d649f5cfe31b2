/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * What comes soon is looked for the next time, before anybody sleeps: on a CQ, a channel, a wait
 * set, and by the node's thread for a program that sleeps on a channel's descriptor.
 */
#include "engine/test/test_told.h"

#include "engine/test/test_pair.h"

#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>

#define WAIT_MS 20000
#define SOON_US 20
#define PATIENCE_NS (20 * HD_NS_PER_S) /* others may have the processors */

/* How often something has been looked for. */
static atomic_int looks;
bool __real_hd_busy_poll_on(const struct hd_busy_poll *look, struct hd_busy_polling *wait, uint32_t least_us,
			    uint64_t now);
bool __wrap_hd_busy_poll_on(const struct hd_busy_poll *look, struct hd_busy_polling *wait, uint32_t least_us,
			    uint64_t now);
bool __wrap_hd_busy_poll_on(const struct hd_busy_poll *look, struct hd_busy_polling *wait, uint32_t least_us,
			    uint64_t now)
{
	atomic_fetch_add(&looks, look->ticks && !least_us);
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

/* ---- a program that sleeps on the descriptor, and a node with a thread ----------------------- */

struct far {
	struct told t;
	struct side here, there; /* here: of t, with an endpoint */
	pthread_t thread;
	_Atomic uint32_t asked; /* as in struct scene: messages */
	unsigned char in[8];
};

/* One message for each that is asked for, a moment later. */
static void *sends(void *arg)
{
	struct far *f = arg;
	uint32_t done = 0, asked;
	uint64_t due;

	while ((asked = atomic_load(&f->asked)) != UINT32_MAX) {
		side_poll(&f->there);
		if (asked == done)
			continue;
		for (due = hd_now_ns() + SOON_US * HD_NS_PER_US; hd_now_ns() < due;)
			hd_cpu_relax();
		while (hd_send(f->there.ep, f->there.to, "message", 8, 1, 0, NULL, TAGGED(HD_SEND_INJECT)) ==
		       -EAGAIN)
			side_poll(&f->there);
		done++;
	}
	return NULL;
}

static int setup_far(void **state)
{
	static struct far f;

	f = (struct far){ 0 };
	setenv("HEDDLE_TRANSPORT", "shm", 1);
	told_open(&f.t, &(struct hd_node_attr){ .front = "test", .auto_progress = true },
		  (struct hd_cq_attr){ .size = 64, .waitable = true, .item = &f.t.item });
	f.here = (struct side){ .node = f.t.node, .cq = f.t.cq };
	hd_node_lock(f.t.node);
	side_endpoint(&f.here, HD_EP_RDM);
	hd_node_unlock(f.t.node);
	side_open(&f.there);
	side_names(&f.there, &f.here);
	assert_int_equal(pthread_create(&f.thread, NULL, sends, &f), 0);
	*state = &f;
	return 0;
}

static int teardown_far(void **state)
{
	struct far *f = *state;

	atomic_store(&f->asked, UINT32_MAX);
	assert_int_equal(pthread_join(f->thread, NULL), 0);
	side_close(&f->there);
	hd_node_lock(f->t.node);
	hd_ep_close(f->here.ep);
	hd_node_unlock(f->t.node);
	return told_close(&f->t);
}

static void receive_one(struct far *f)
{
	hd_node_lock(f->t.node);
	side_post(&f->here, f->in, sizeof(f->in), 1, 0, NULL, NULL);
	hd_node_unlock(f->t.node);
	atomic_fetch_add(&f->asked, 1);
}

/* As programs of verbs do. */
static void sleep_for_one(struct far *f)
{
	struct pollfd p = { .fd = hd_channel_fd(f->t.channel), .events = POLLIN };
	struct hd_channel_item *item;

	hd_node_lock(f->t.node);
	hd_cq_notify(f->t.cq, false);
	hd_node_unlock(f->t.node);
	receive_one(f);
	assert_int_equal(poll(&p, 1, WAIT_MS), 1);
	assert_int_equal(hd_channel_take(f->t.channel, &item), 0);
	assert_true(side_poll(&f->here));
}

static void by_the_thread(void **state)
{
	uint64_t end = hd_now_ns() + PATIENCE_NS;
	struct far *f = *state;

	atomic_store(&looks, 0);
	while (!atomic_load(&looks) && hd_now_ns() < end)
		sleep_for_one(f);
	assert_true(atomic_load(&looks) > 0);
}

/* No turn of the program's: what the thread has done is there. */
static bool take_what_is_there(struct far *f)
{
	bool there;

	hd_node_lock(f->t.node);
	there = hd_cq_peek(f->t.cq) != NULL;
	if (there)
		hd_cq_pop(f->t.cq);
	hd_node_unlock(f->t.node);
	return there;
}

/* That one computes: it wants its processor, and has not said that it waits. */
static void not_for_a_program_that_has_not_asked(void **state)
{
	uint64_t end = hd_now_ns() + PATIENCE_NS;
	struct far *f = *state;

	atomic_store(&looks, 0);
	for (int i = 0; i < 1000; i++) {
		receive_one(f);
		while (!take_what_is_there(f) && hd_now_ns() < end)
			sched_yield();
	}
	assert_int_equal(atomic_load(&looks), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(on_a_cq, setup, teardown),
		cmocka_unit_test_setup_teardown(on_a_channel, setup, teardown),
		cmocka_unit_test_setup_teardown(on_a_set, setup, teardown),
		cmocka_unit_test_setup_teardown(not_where_a_signal_is_to_end_the_wait, setup, teardown),
		cmocka_unit_test_setup_teardown(by_the_thread, setup_far, teardown_far),
		cmocka_unit_test_setup_teardown(not_for_a_program_that_has_not_asked, setup_far,
						teardown_far),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
