/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Event queues by themselves: order, errors, overrun, sleeping, and the nodes that hang on them. */
#include "asleep.h"
#include "engine/test/test_pair.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct got {
	struct hd_event event;
	char data[64];
};

static ssize_t take(const struct hd_event *e, void *arg)
{
	struct got *g = arg;

	g->event = *e;
	assert_in_range(e->len, 0, sizeof(g->data) - 1);
	memset(g->data, 0, sizeof(g->data));
	memcpy(g->data, e->data, e->len);
	return 7;
}

static ssize_t refuse(const struct hd_event *e, void *arg)
{
	return -ENOSPC;
}

static struct hd_evq *evq_of(size_t size)
{
	struct hd_evq *evq;

	assert_int_equal(hd_evq_open(size, &evq), 0);
	return evq;
}

static void post(struct hd_evq *evq, uint64_t word, int err, const char *text)
{
	const struct hd_event e = {
		.code = HD_EV_FRONT, .word = word, .err = err, .data = text, .len = text ? strlen(text) : 0
	};

	assert_int_equal(hd_evq_post(evq, &e), 0);
}

static bool readable(struct hd_evq *evq, int ms)
{
	struct pollfd p = { .fd = hd_evq_fd(evq), .events = POLLIN };

	return poll(&p, 1, ms) == 1;
}

static void events_keep_their_order(void **state)
{
	struct hd_evq *evq = evq_of(100);
	struct got g;

	assert_int_equal(hd_evq_read(evq, 0, take, &g), -EAGAIN);
	assert_false(readable(evq, 0));
	for (uint64_t i = 0; i < 100; i++)
		post(evq, i, 0, i & 1 ? "odd" : NULL);
	assert_true(readable(evq, 0));
	for (uint64_t i = 0; i < 100; i++) {
		/* what is refused stays */
		assert_int_equal(hd_evq_read(evq, 0, refuse, &g), -ENOSPC);
		assert_int_equal(hd_evq_read(evq, HD_EVQ_PEEK, take, &g), 7);
		assert_int_equal(hd_evq_read(evq, 0, take, &g), 7);
		assert_int_equal(g.event.word, i);
		assert_string_equal(g.data, i & 1 ? "odd" : "");
	}
	assert_int_equal(hd_evq_read(evq, 0, take, &g), -EAGAIN);
	assert_false(readable(evq, 0));
	assert_int_equal(hd_evq_close(evq), 0);
}

/* An error entry must be asked for; its data is there until the next read. */
static void errors_are_read_apart(void **state)
{
	struct hd_evq *evq = evq_of(10);
	struct got g;

	post(evq, 1, 0, NULL);
	post(evq, 2, ECONNREFUSED, "because");
	post(evq, 3, 0, NULL);
	assert_int_equal(hd_evq_read(evq, 0, take, &g), 7);
	assert_int_equal(hd_evq_read(evq, 0, take, &g), -EIO);
	assert_int_equal(hd_evq_read(evq, HD_EVQ_ERROR | HD_EVQ_PEEK, take, &g), 7);
	assert_int_equal(hd_evq_read(evq, HD_EVQ_ERROR, take, &g), 7);
	assert_int_equal(g.event.err, ECONNREFUSED);
	assert_memory_equal(g.event.data, "because", 7); /* the queue's own */
	assert_int_equal(hd_evq_read(evq, HD_EVQ_ERROR, take, &g), -EAGAIN);
	assert_int_equal(hd_evq_read(evq, 0, take, &g), 7);
	assert_int_equal(g.event.word, 3);
	assert_int_equal(hd_evq_close(evq), 0);
}

/* What fits is kept; then there is one error that never ends. */
static void overrun_is_for_good(void **state)
{
	struct hd_evq *evq = evq_of(2);
	struct got g;

	post(evq, 1, 0, NULL);
	post(evq, 2, 0, NULL);
	assert_int_equal(hd_evq_post(evq, &(struct hd_event){ .code = HD_EV_FRONT }), -EOVERFLOW);
	for (uint64_t i = 1; i < 3; i++) {
		assert_int_equal(hd_evq_read(evq, HD_EVQ_ERROR, take, &g), -EAGAIN);
		assert_int_equal(hd_evq_read(evq, 0, take, &g), 7);
		assert_int_equal(g.event.word, i);
	}
	for (int i = 0; i < 3; i++) {
		assert_int_equal(hd_evq_read(evq, 0, take, &g), -EIO);
		assert_int_equal(hd_evq_read(evq, HD_EVQ_ERROR, take, &g), 7);
		assert_int_equal(g.event.err, EOVERFLOW);
		assert_int_equal(hd_evq_post(evq, &(struct hd_event){ .code = HD_EV_FRONT }), -EOVERFLOW);
	}
	assert_true(readable(evq, 0));
	assert_int_equal(hd_evq_close(evq), 0);
}

static bool no_memory;
void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);

void *__wrap_malloc(size_t size)
{
	return no_memory ? NULL : __real_malloc(size);
}

/* One event more, for which there is no memory. */
static int lose(struct hd_evq *evq)
{
	int rc;

	no_memory = true;
	rc = hd_evq_post(evq, &(struct hd_event){ .code = HD_EV_FRONT });
	no_memory = false;
	return rc;
}

/* Who only knows of events is told of the next ones, and of none that is not there. */
static void memory_comes_back(void **state)
{
	struct hd_evq *evq = evq_of(INT_MAX), *told = evq_of(10);
	struct pollfd p = { .fd = hd_evq_event_fd(evq), .events = POLLIN };
	struct got g;

	assert_int_equal(lose(evq), -ENOMEM);
	assert_int_equal(poll(&p, 1, 0), 0);
	assert_int_equal(hd_evq_read(evq, HD_EVQ_ERROR, take, &g), -EAGAIN);
	post(evq, 1, 0, "a");
	assert_int_equal(lose(evq), -ENOMEM);
	post(evq, 2, 0, "b");
	for (uint64_t i = 1; i < 3; i++) {
		assert_int_equal(poll(&p, 1, 0), 1);
		assert_int_equal(hd_evq_read(evq, 0, take, &g), 7);
		assert_int_equal(g.event.word, i);
	}
	assert_int_equal(poll(&p, 1, 0), 0);
	assert_int_equal(hd_evq_read(evq, 0, take, &g), -EAGAIN);
	assert_int_equal(hd_evq_close(evq), 0);
	assert_int_equal(lose(told), -ENOMEM);
	assert_int_equal(hd_evq_read(told, 0, take, &g), -EIO); /* he knows of it */
	assert_int_equal(hd_evq_close(told), 0);
}

static void owners_are_forgotten(void **state)
{
	struct hd_evq *evq = evq_of(10);
	struct got g;
	int a, b;

	for (int i = 0; i < 6; i++)
		assert_int_equal(
			hd_evq_post(evq, &(struct hd_event){ .code = HD_EV_DOWN, .owner = i & 1 ? &a : &b }),
			0);
	hd_evq_forget(evq, &a);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(hd_evq_read(evq, 0, take, &g), 7);
		assert_ptr_equal(g.event.owner, &b);
	}
	assert_int_equal(hd_evq_read(evq, 0, take, &g), -EAGAIN);
	hd_evq_use(evq, 1);
	assert_int_equal(hd_evq_close(evq), -EBUSY);
	hd_evq_use(evq, -1);
	assert_int_equal(hd_evq_close(evq), 0);
}

/* ---- sleeping -------------------------------------------------------------------------------- */

static void *post_later(void *arg)
{
	let_sleep(getpid()); /* who waits */
	post(arg, 1, 0, NULL);
	return NULL;
}

static void sleepers_are_woken(void **state)
{
	struct hd_evq *evq = evq_of(10);
	pthread_t thread;
	struct got g;

	assert_int_equal(hd_evq_wait(evq, 0, false), -EAGAIN);
	assert_int_equal(hd_evq_wait(evq, 10, false), -EAGAIN);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(pthread_create(&thread, NULL, post_later, evq), 0);
		assert_int_equal(hd_evq_wait(evq, i ? 30000 : -1, false), 0);
		assert_int_equal(hd_evq_read(evq, 0, take, &g), 7);
		assert_int_equal(pthread_join(thread, NULL), 0);
	}
	assert_int_equal(hd_evq_arm(evq), 0);
	assert_int_equal(pthread_create(&thread, NULL, post_later, evq), 0);
	assert_true(readable(evq, 30000));
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(hd_evq_arm(evq), -EAGAIN);
	assert_int_equal(hd_evq_close(evq), 0);
}

/*
 * A node of the queue is woken by its peer over shared memory, and progress
 * is made by whoever reads.
 */
struct caller {
	struct hd_node *node;
	struct hd_ep *ep;
	struct hd_evq *evq;
	struct sockaddr_storage to;
};

static void *call_later(void *arg)
{
	struct caller *c = arg;
	struct got g;

	let_sleep(getpid()); /* who waits */
	hd_node_lock(c->node);
	assert_int_equal(hd_ep_connect(c->ep, &(struct hd_connect_args){ .to = (void *)&c->to }), 0);
	hd_node_unlock(c->node);
	assert_int_equal(hd_evq_wait(c->evq, 30000, false), 0);
	assert_int_equal(hd_evq_read(c->evq, HD_EVQ_ERROR, take, &g), 7);
	assert_int_equal(g.event.err, ECONNREFUSED);
	return NULL;
}

static void on_signal(int sig)
{
}

/*
 * As a read(2) in its place would be: interrupted, unless the handler is to restart calls; or as
 * poll(2), by any handler.
 */
static void signals_interrupt(void **state)
{
	struct sigaction sa = { .sa_handler = on_signal, .sa_flags = SA_RESTART }, old;
	struct hd_evq *evq = evq_of(4);

	assert_int_equal(sigaction(SIGALRM, &sa, &old), 0);
	ualarm(5000, 5000);
	assert_int_equal(hd_evq_wait(evq, 50, false), -EAGAIN);
	assert_int_equal(hd_evq_wait(evq, -1, true), -EINTR);
	sa.sa_flags = 0;
	assert_int_equal(sigaction(SIGALRM, &sa, NULL), 0);
	assert_int_equal(hd_evq_wait(evq, -1, false), -EINTR);
	ualarm(0, 0);
	sigaction(SIGALRM, &old, NULL);
	assert_int_equal(hd_evq_close(evq), 0);
}

/* which ends the program when the stack of a cancelled thread is unwound */
#ifndef __SANITIZE_ADDRESS__
static void *wait_for_ever(void *evq)
{
	hd_evq_wait(evq, -1, false);
	return NULL;
}

/* A thread that waits can be cancelled, and the queue is as before. */
static void waits_are_cancelled(void **state)
{
	struct hd_evq *evq = evq_of(4);
	pthread_t thread;
	void *result;

	assert_int_equal(pthread_create(&thread, NULL, wait_for_ever, evq), 0);
	let_others_sleep();
	assert_int_equal(pthread_cancel(thread), 0);
	assert_int_equal(pthread_join(thread, &result), 0);
	assert_ptr_equal(result, PTHREAD_CANCELED);
	post(evq, 1, 0, "");
	assert_int_equal(hd_evq_wait(evq, -1, false), 0);
	assert_int_equal(hd_evq_close(evq), 0);
}
#endif

static void a_call_wakes(void **state)
{
	EACH_TRANSPORT(transport)
	{
		const struct hd_node_attr attr = { .front = "test", .locked = true };
		struct hd_listen_args args = { .evq = evq_of(10), .backlog = 4 };
		struct caller c = { .evq = evq_of(10) };
		struct hd_service *service;
		struct hd_node *node;
		pthread_t thread;
		struct got g;

		setenv("HEDDLE_TRANSPORT", transport, 1);
		assert_int_equal(hd_node_open(&attr, &node), 0);
		assert_int_equal(hd_node_open(&attr, &c.node), 0);
		hd_node_lock(node);
		assert_int_equal(hd_service_open(node, &(struct hd_service_attr){ 0 }, &service), 0);
		assert_int_equal(hd_service_listen(service, &args), 0);
		assert_int_equal(hd_service_listen(service, &args), -EISCONN);
		assert_int_equal(hd_service_name(service, AF_INET, &c.to), 0);
		hd_node_unlock(node);
		assert_int_equal(hd_evq_close(args.evq), -EBUSY);
		for (int i = 0; i < 3; i++) {
			hd_node_lock(c.node);
			assert_int_equal(hd_ep_open(c.node,
						    &(struct hd_ep_attr){ .type = HD_EP_MSG, .evq = c.evq },
						    &c.ep),
					 0);
			hd_node_unlock(c.node);
			assert_int_equal(pthread_create(&thread, NULL, call_later, &c), 0);
			if (i == 0)
				assert_int_equal(hd_evq_wait(args.evq, 30000, false), 0);
			while (hd_evq_read(args.evq, 0, take, &g) == -EAGAIN)
				if (hd_evq_arm(args.evq) == 0)
					assert_true(readable(args.evq, 30000));
			assert_int_equal(g.event.code, HD_EV_REQUEST);
			hd_node_lock(node);
			hd_request_reject(g.event.request, NULL);
			hd_node_unlock(node);
			hd_evq_wait(args.evq, 20, false);
			assert_int_equal(pthread_join(thread, NULL), 0);
			hd_node_lock(c.node);
			hd_ep_close(c.ep);
			hd_node_unlock(c.node);
		}
		hd_node_lock(node);
		hd_service_close(service);
		hd_node_unlock(node);
		assert_int_equal(hd_node_close(node), 0);
		assert_int_equal(hd_node_close(c.node), 0);
		assert_int_equal(hd_evq_close(c.evq), 0);
		assert_int_equal(hd_evq_close(args.evq), 0);
	}
	unsetenv("HEDDLE_TRANSPORT");
}

/* The event is there, and only once; true when all is as it should be. */
static bool read_inherited(struct hd_evq *evq)
{
	struct got g;

	if (!readable(evq, 0) || hd_evq_wait(evq, 0, false) != 0 || hd_evq_read(evq, 0, take, &g) != 7)
		return false;
	return !readable(evq, 0) && hd_evq_read(evq, 0, take, &g) == -EAGAIN;
}

static bool post_inherited(struct hd_evq *evq)
{
	const struct hd_event e = { .code = HD_EV_FRONT };

	return !readable(evq, 0) && hd_evq_post(evq, &e) == 0 && readable(evq, 0) &&
	       hd_evq_wait(evq, 0, false) == 0;
}

static void in_a_child(struct hd_evq *evq, bool (*use)(struct hd_evq *evq))
{
	pid_t pid = fork();
	int status;

	if (!pid)
		_exit(!use(evq));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/* What a forked child does with its copy of the queue is not noticed by the parent. */
static void a_child_has_its_own(void **state)
{
	struct hd_evq *evq = evq_of(10);
	struct got g;

	post(evq, 5, 0, "for both");
	in_a_child(evq, read_inherited);
	assert_true(readable(evq, 0));
	assert_int_equal(hd_evq_read(evq, 0, take, &g), 7);
	in_a_child(evq, post_inherited);
	assert_false(readable(evq, 0));
	assert_int_equal(hd_evq_close(evq), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(events_keep_their_order),
		cmocka_unit_test(errors_are_read_apart),
		cmocka_unit_test(overrun_is_for_good),
		cmocka_unit_test(owners_are_forgotten),
		cmocka_unit_test(memory_comes_back),
		cmocka_unit_test(sleepers_are_woken),
		cmocka_unit_test(a_call_wakes),
		cmocka_unit_test(signals_interrupt),
#ifndef __SANITIZE_ADDRESS__
		cmocka_unit_test(waits_are_cancelled),
#endif
		cmocka_unit_test(a_child_has_its_own),
	};

	return cmocka_run_group_tests_name("evq", tests, NULL, NULL);
}
