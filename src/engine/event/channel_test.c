/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Channels: a descriptor that is readable exactly while something waits, and CQs that tell of
 * their completions by it.
 */
#include "asleep.h"
#include "engine/test/test_told.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

static void on_overrun(void *arg)
{
	((struct told *)arg)->overruns++;
}

static int setup(void **state)
{
	static struct told s;

	s = (struct told){ 0 };
	*state = &s;
	told_open(
		&s, &(struct hd_node_attr){ .front = "test", .locked = true, .serve = true },
		(struct hd_cq_attr){
			.size = 64, .overruns = true, .on_overrun = on_overrun, .arg = &s, .item = &s.item });
	return 0;
}

static int teardown(void **state)
{
	return told_close(*state);
}

static bool is_readable(const struct told *s)
{
	struct pollfd p = { .fd = hd_channel_fd(s->channel), .events = POLLIN };

	return poll(&p, 1, 0) == 1;
}

static void complete(struct told *s, uint32_t flags, int err)
{
	struct hd_cqe e = { .flags = flags, .err = err };

	hd_node_lock(s->node);
	hd_cq_post(s->cq, &e);
	hd_node_unlock(s->node);
}

static void ask(struct told *s, bool solicited)
{
	hd_node_lock(s->node);
	hd_cq_notify(s->cq, solicited);
	hd_node_unlock(s->node);
}

static void take(struct told *s)
{
	struct hd_channel_item *item;

	assert_true(is_readable(s));
	assert_int_equal(hd_channel_take(s->channel, &item), 0);
	assert_ptr_equal(item->owner, s);
}

static void counts_follow_the_items(void **state)
{
	struct told *s = *state;
	struct hd_channel_item *item, other = { .taken = &(uint32_t){ 0 } };

	assert_false(is_readable(s));
	assert_int_equal(hd_channel_take(s->channel, &item), -EAGAIN);
	hd_channel_post(s->channel, &s->item);
	hd_channel_post(s->channel, &other);
	hd_channel_post(s->channel, &s->item);
	take(s);
	assert_int_equal(hd_channel_take(s->channel, &item), 0);
	assert_ptr_equal(item, &other);
	take(s);
	assert_false(is_readable(s));
	assert_int_equal(s->taken, 2);
}

static int dropped;
static void drop(struct hd_channel_item *item)
{
	dropped++;
}

static void what_goes_is_forgotten(void **state)
{
	struct told *s = *state;

	hd_channel_post(s->channel, &s->item);
	take(s);
	hd_channel_post(s->channel, &s->item);
	hd_channel_post(s->channel, &s->item);
	dropped = 0;
	assert_int_equal(hd_channel_forget(s->channel, &s->taken, drop), 1);
	assert_int_equal(dropped, 1);
	assert_false(is_readable(s));
}

static void a_waiter_that_may_not_block(void **state)
{
	struct told *s = *state;

	assert_int_equal(fcntl(hd_channel_fd(s->channel), F_SETFL, O_NONBLOCK), 0);
	assert_int_equal(hd_channel_wait(s->channel, -1, NULL), -EAGAIN);
	hd_channel_post(s->channel, &s->item);
	assert_int_equal(hd_channel_wait(s->channel, -1, NULL), 0);
	take(s);
}

static void *post_later(void *arg)
{
	struct told *s = arg;

	let_sleep(getpid()); /* who waits */
	complete(s, HD_C_RECV, 0);
	return NULL;
}

static void a_waiter_sleeps_until_a_completion(void **state)
{
	struct told *s = *state;
	pthread_t thread;

	for (int i = 0; i < 3; i++) {
		ask(s, false);
		assert_int_equal(pthread_create(&thread, NULL, post_later, s), 0);
		assert_int_equal(hd_channel_wait(s->channel, -1, NULL), 0);
		take(s);
		pthread_join(thread, NULL);
	}
}

/*
 * The descriptor of a channel beside one that the engine knows nothing of; either ends
 * the sleep, and time does.
 */
static void sleeps_on_descriptors(void **state)
{
	struct told *s = *state;
	int ends[2];
	struct pollfd p[3] = { { .fd = hd_channel_fd(s->channel), .events = POLLIN }, { .events = POLLIN } };
	pthread_t thread;

	assert_int_equal(pipe(ends), 0);
	p[1].fd = ends[0];
	hd_node_lock(s->node);
	hd_channel_tend(s->channel, true);
	hd_node_unlock(s->node);
	assert_int_equal(hd_node_sleep(s->node, p, 2, 20, false), 0);
	ask(s, false);
	assert_int_equal(pthread_create(&thread, NULL, post_later, s), 0);
	assert_int_equal(hd_node_sleep(s->node, p, 2, -1, false), 1);
	assert_int_equal(p[0].revents, POLLIN);
	take(s);
	pthread_join(thread, NULL);
	assert_int_equal(write(ends[1], "x", 1), 1);
	assert_int_equal(hd_node_sleep(s->node, p, 2, -1, true), 1);
	assert_int_equal(p[1].revents, POLLIN);
	assert_int_equal(hd_core(s->node)->worker.sleepers, 0);
	close(ends[0]);
	close(ends[1]);
}

/*
 * The address sanitizer ends the program when the stack of a cancelled thread is unwound, and the
 * thread sanitizer sees no lock of a thread any more that has been cancelled in poll(2).
 */
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
/*
 * A thread that waits, which is cancelled: what it has changed of the node
 * for its sleep is put back.
 */
static void *wait_for_ever(void *arg)
{
	struct told *s = arg;

	hd_channel_wait(s->channel, -1, NULL);
	return NULL;
}

static void *sleep_for_ever(void *arg)
{
	struct told *s = arg;

	hd_channel_sleep(s->channel);
	return NULL;
}

static void *wait_for_completions(void *arg)
{
	struct told *s = arg;

	hd_cq_wait(s->cq, 1, -1);
	return NULL;
}

static void sleepers_may_be_cancelled(void **state)
{
	struct told *s = *state;
	void *(*const ways[])(void *) = { wait_for_ever, sleep_for_ever, wait_for_completions };

	for (int i = 0; i < 3; i++) {
		pthread_t thread;
		void *result;

		assert_int_equal(pthread_create(&thread, NULL, ways[i], s), 0);
		let_others_sleep();
		assert_int_equal(pthread_cancel(thread), 0);
		pthread_join(thread, &result);
		assert_ptr_equal(result, PTHREAD_CANCELED);
		hd_node_lock(s->node); /* is free */
		assert_int_equal(hd_core(s->node)->worker.sleepers, 0);
		assert_int_equal(s->cq->w.sleepers, 0);
		assert_false(hd_core(s->node)->arms &&
			     !hd_core(s->node)->worker.runs); /* its thread may sleep */
		hd_node_unlock(s->node);
	}
}

static void *wait_shielded(void *arg)
{
	struct told *s = arg;
	int before;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
	hd_channel_wait(s->channel, -1, NULL);
	pthread_setcancelstate(before, NULL);
	return arg;
}

/* Not while their program has forbidden it. */
static void sleepers_may_be_shielded(void **state)
{
	struct told *s = *state;
	pthread_t thread;
	void *result;

	assert_int_equal(pthread_create(&thread, NULL, wait_shielded, s), 0);
	let_others_sleep();
	assert_int_equal(pthread_cancel(thread), 0);
	let_others_sleep();
	hd_channel_post(s->channel, &s->item);
	pthread_join(thread, &result);
	assert_ptr_equal(result, s);
}
#endif

static int signals;
static void on_signal(int sig)
{
	signals++;
}

static void *disturb_and_post(void *arg)
{
	let_sleep(getpid());
	kill(getpid(), SIGALRM); /* which goes to the first thread, where it can */
	return post_later(arg);
}

/* Handlers that restart read(2) restart a wait, others end it. */
static void signals_interrupt_as_they_do_elsewhere(void **state)
{
	struct told *s = *state;
	struct sigaction restart = { .sa_handler = on_signal, .sa_flags = SA_RESTART }, old,
			 stop = { .sa_handler = on_signal };

	signals = 0;
	assert_int_equal(sigaction(SIGALRM, &restart, &old), 0);
	for (int i = 0; i < 2; i++) {
		pthread_t thread;
		int rc;

		assert_int_equal(pthread_create(&thread, NULL, disturb_and_post, s), 0);
		ask(s, false);
		rc = i ? hd_channel_sleep(s->channel) : hd_channel_wait(s->channel, -1, NULL);
		pthread_join(thread, NULL);
		assert_int_equal(rc, 0);
		take(s);
	}
	assert_int_equal(signals, 2);
	sigaction(SIGALRM, &stop, NULL);
	ualarm(10000, 10000);
	assert_int_equal(hd_channel_wait(s->channel, -1, NULL), -EINTR);
	assert_int_equal(hd_channel_sleep(s->channel), -EINTR);
	ualarm(0, 0);
	sigaction(SIGALRM, &old, NULL);
}

static void one_notice_for_each_request(void **state)
{
	struct told *s = *state;

	complete(s, HD_C_RECV, 0);
	assert_false(is_readable(s));
	ask(s, false);
	assert_false(is_readable(s)); /* what was there before counts for nothing */
	complete(s, HD_C_SEND, 0);
	complete(s, HD_C_SEND, 0);
	take(s);
	assert_false(is_readable(s));
}

static void solicited_only(void **state)
{
	struct told *s = *state;

	ask(s, true);
	complete(s, HD_C_RECV, 0);
	assert_false(is_readable(s));
	complete(s, HD_C_RECV | HD_C_SOLICITED, 0);
	take(s);
	ask(s, true);
	complete(s, HD_C_SEND, HD_S_CANCELLED);
	take(s);
	ask(s, true);
	ask(s, false); /* both: any */
	ask(s, true);
	complete(s, HD_C_SEND, 0);
	take(s);
}

static void resized_queues_keep_what_they_have(void **state)
{
	struct told *s = *state;

	for (uint64_t i = 0; i < 150; i++) { /* the positions are beyond the first lap */
		struct hd_cqe e = { .len = i };

		hd_node_lock(s->node);
		hd_cq_post(s->cq, &e);
		if (i < 100)
			hd_cq_pop(s->cq);
		hd_node_unlock(s->node);
	}
	hd_node_lock(s->node);
	assert_int_equal(hd_cq_resize(s->cq, 1000), 0);
	assert_int_equal(hd_cq_room(s->cq), 1024);
	for (uint64_t i = 100; i < 125; i++) {
		assert_int_equal(hd_cq_peek(s->cq)->len, i);
		hd_cq_pop(s->cq);
	}
	assert_int_equal(hd_cq_resize(s->cq, 16), -EINVAL);
	assert_int_equal(hd_cq_resize(s->cq, 25), 0);
	assert_int_equal(hd_cq_room(s->cq), 32);
	for (uint64_t i = 125; i < 150; i++) {
		assert_int_equal(hd_cq_peek(s->cq)->len, i);
		hd_cq_pop(s->cq);
	}
	assert_null(hd_cq_peek(s->cq));
	assert_int_equal(hd_cq_resize(s->cq, 1), 0);
	assert_int_equal(hd_cq_room(s->cq), 1);
	hd_node_unlock(s->node);
}

static void moderate(struct told *s, uint32_t count, uint32_t us)
{
	hd_node_lock(s->node);
	hd_cq_moderate(s->cq, count, us);
	hd_node_unlock(s->node);
}

#define MINUTE 60000000

static void events_gather_completions(void **state)
{
	struct told *s = *state;

	moderate(s, 3, MINUTE);
	for (int round = 0; round < 2; round++) {
		ask(s, false);
		complete(s, 0, 0);
		complete(s, 0, 0);
		assert_false(is_readable(s));
		complete(s, 0, 0);
		take(s);
		complete(s, 0, 0); /* nobody has asked */
		assert_false(is_readable(s));
	}
	ask(s, true);
	complete(s, HD_C_SOLICITED, 0);
	for (int i = 0; i < 5; i++)
		complete(s, 0, 0); /* these do not count */
	complete(s, HD_C_SOLICITED, 0);
	assert_false(is_readable(s));
	complete(s, 0, HD_S_PROTOCOL); /* errors do not wait */
	take(s);
	ask(s, false);
	complete(s, 0, 0);
	moderate(s, 0, 0); /* what has been gathered is told of now */
	take(s);
	ask(s, false);
	complete(s, 0, 0);
	take(s);
	moderate(s, 100, 2000);
	ask(s, false);
	complete(s, 0, 0);
	while (!is_readable(s)) {
		hd_node_lock(s->node);
		hd_node_poll(s->node);
		hd_node_unlock(s->node);
	}
	take(s);
	moderate(s, 100, MINUTE);
	ask(s, false);
	complete(s, 0, 0); /* and it closes like this */
}

static void overruns_are_told_once(void **state)
{
	struct told *s = *state;

	hd_node_lock(s->node);
	assert_int_equal(hd_cq_resize(s->cq, 128), 0);
	hd_node_unlock(s->node);
	for (int i = 0; i < 128; i++)
		complete(s, HD_C_SEND, 0);
	hd_node_lock(s->node);
	assert_int_equal(hd_cq_resize(s->cq, 64), -EINVAL);
	hd_node_unlock(s->node);
	assert_int_equal(s->overruns, 0);
	complete(s, HD_C_SEND, 0);
	complete(s, HD_C_SEND, 0);
	assert_int_equal(s->overruns, 1);
	hd_node_lock(s->node);
	assert_int_equal(hd_cq_resize(s->cq, 1024), -EOVERFLOW);
	hd_node_unlock(s->node);
}

/*
 * The program has asked for notice, and may poll the descriptor: the node's thread must be
 * there, without anybody's help.
 */
static void the_thread_takes_over(void **state)
{
	struct told *s = *state;
	bool before = hd_core(s->node)->worker.runs, after;

	ask(s, false);
	hd_node_lock(s->node);
	after = hd_core(s->node)->worker.runs;
	hd_node_unlock(s->node);
	assert_false(before);
	assert_true(after);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		CASE(counts_follow_the_items),
		CASE(what_goes_is_forgotten),
		CASE(a_waiter_that_may_not_block),
		CASE(a_waiter_sleeps_until_a_completion),
		CASE(sleeps_on_descriptors),
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
		CASE(sleepers_may_be_cancelled),
		CASE(sleepers_may_be_shielded),
#endif
		CASE(signals_interrupt_as_they_do_elsewhere),
		CASE(one_notice_for_each_request),
		CASE(solicited_only),
		CASE(resized_queues_keep_what_they_have),
		CASE(events_gather_completions),
		CASE(overruns_are_told_once),
		CASE(the_thread_takes_over),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
