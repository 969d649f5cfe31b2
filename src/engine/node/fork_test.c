/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * A program forks in the middle of its traffic. In the child every call says at once that the node
 * is of no use there; the parent does not notice anything. A child does not assert: its exit status
 * tells the line that went wrong, or 0.
 */
#include "base/log.h"
#include "engine/test/test_pair.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define LONG_ONE (4u << 20)

/* Child: leave with a status that is not 0, of which the parent prints the line. */
#define MUST(what) \
	do { \
		if (!(what)) { \
			dprintf(STDERR_FILENO, "# child, line %d: %s\n", __LINE__, #what); \
			_exit(1); \
		} \
	} while (0)

/* What a node has done is its parent's to tell. */
static bool no_last_lines(void *arg, enum hd_log_level level, const char *room, const char *message)
{
	MUST(!strstr(message, " ends: "));
	return true;
}

static void expect_child(pid_t pid)
{
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WIFSIGNALED(status))
		fail_msg("the child died of signal %d", WTERMSIG(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

/* ---- in the child ---------------------------------------------------------------------------- */

static void sending_fails(struct side *s)
{
	static char buf[LONG_ONE];
	struct iovec iov[2] = { { buf, 4 }, { buf, 4 } };
	struct sockaddr_in elsewhere = { .sin_family = AF_INET,
					 .sin_port = htons(9),
					 .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct hd_dest *new;

	MUST(hd_send(s->ep, s->to, buf, 8, 1, 0, NULL, TAGGED(HD_SEND_COMPLETE)) == -ENOTRECOVERABLE);
	MUST(hd_send(s->ep, s->to, buf, sizeof(buf), 1, 0, NULL, TAGGED(HD_SEND_COMPLETE)) ==
	     -ENOTRECOVERABLE);
	MUST(hd_sendv(s->ep, s->to, iov, 2, 1, 0, NULL, TAGGED(HD_SEND_COMPLETE)) == -ENOTRECOVERABLE);
	MUST(hd_dest_get(s->node, (void *)&elsewhere, &new) == 0);
	MUST(hd_send(s->ep, new, buf, 8, 1, 0, NULL, TAGGED(HD_SEND_COMPLETE)) == -ENOTRECOVERABLE);
	hd_dest_put(new);
}

static void receiving_fails(struct side *s)
{
	char buf[8];
	struct iovec iov = { buf, sizeof(buf) };
	struct hd_recv_args args = {
		.iov = &iov, .count = 1, .flags = HD_RECV_TAGGED | HD_RECV_COMPLETE, .ignore = UINT64_MAX
	};
	struct hd_claim *claim;

	MUST(hd_recv(s->ep, &args) == -ENOTRECOVERABLE);
	MUST(hd_peek(s->ep, &args, HD_PEEK_CLAIM, &claim) == -ENOTRECOVERABLE);
	MUST(!hd_cq_peek(s->cq));
}

static void waiting_fails(struct side *s)
{
	struct hd_cntr *c;

	for (int i = 0; i < 100; i++) {
		MUST(hd_node_poll(s->node) == 0);
		MUST(!hd_cq_poll(s->cq));
	}
	hd_cq_signal(s->cq);
	hd_node_signal(s->node);
	MUST(hd_cq_arm(s->cq) == -ENOTRECOVERABLE);
	hd_node_unlock(s->node);
	MUST(hd_cq_wait(s->cq, 1, -1) == -ENOTRECOVERABLE);
	hd_node_lock(s->node);
	MUST(hd_cntr_open(s->node, &c) == 0);
	hd_node_unlock(s->node);
	MUST(hd_cntr_wait(c, 1, -1) == -ENOTRECOVERABLE);
	hd_node_lock(s->node);
	MUST(hd_cntr_close(c) == 0);
}

static void closing_works(struct side *s)
{
	struct hd_ep *ep;

	MUST(hd_ep_open(s->node, &(struct hd_ep_attr){ .type = HD_EP_RDM }, &ep) == -ENOTRECOVERABLE);
	hd_dest_put(s->to);
	hd_ep_close(s->ep);
	MUST(hd_cq_close(s->cq) == 0);
	hd_node_unlock(s->node);
	hd_log_set_sink(no_last_lines, NULL);
	hd_log_raise(HD_LOG_INFO);
	MUST(hd_node_close(s->node) == 0);
	hd_log_raise(HD_LOG_ERROR);
	hd_log_set_sink(NULL, NULL);
}

static void use_dead_side(struct side *s, bool closes)
{
	MUST(hd_node_dead(s->node));
	hd_node_lock(s->node);
	while (hd_cq_peek(s->cq)) /* what was here when the parent forked */
		hd_cq_pop(s->cq);
	sending_fails(s);
	receiving_fails(s);
	waiting_fails(s);
	if (closes)
		closing_works(s);
	else
		hd_node_unlock(s->node);
}

/* A child may begin anew with nodes of its own. */
static void use_new_pair(void)
{
	uint64_t end = hd_now_ns() + PATIENCE;
	char in[8], out[8] = "anew";
	struct pair p;

	pair_open(&p, "auto");
	side_post(&p.b, in, 8, 1, 0, NULL, in);
	MUST(hd_send(p.a.ep, p.a.to, out, 8, 1, 0, NULL, TAGGED(0)) == 0);
	while (!hd_cq_peek(p.b.cq)) {
		hd_node_poll(p.a.node);
		hd_node_poll(p.b.node);
		MUST(hd_now_ns() < end);
	}
	MUST(!hd_cq_peek(p.b.cq)->err && !strcmp(in, "anew"));
	pair_close(&p);
}

static pid_t fork_child_of(struct pair *p, bool closes)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid)
		return pid;
	signal(SIGSEGV, SIG_DFL); /* or the child would go on with the next test */
	alarm(20);		  /* never a hang */
	use_dead_side(&p->a, closes);
	use_dead_side(&p->b, closes);
	use_new_pair();
	_exit(0);
}

/* ---- in the parent --------------------------------------------------------------------------- */

static void exchange(struct pair *p, int count, size_t len, unsigned char *out, unsigned char *in)
{
	for (int i = 0; i < count; i++) {
		struct side *from = i % 2 ? &p->b : &p->a, *to = i % 2 ? &p->a : &p->b;

		test_fill(out, len, (unsigned)i);
		side_post(to, in, len, 1, 0, NULL, in);
		pair_push(p, from, out, len, 1, HD_SEND_COMPLETE);
		assert_int_equal(pair_next(p, to).err, 0);
		assert_int_equal(pair_next(p, from).err, 0);
		test_check(in, len, (unsigned)i);
	}
}

/* Forks at many moments of short and long messages; now and then the child closes everything. */
static void parent_goes_on(void **state)
{
	unsigned char *out = malloc(LONG_ONE), *in = malloc(LONG_ONE);
	struct pair p;
	int fds = 0;
	pid_t pid;

	EACH_TRANSPORT(t)
	for (int direct = 0; direct < 2; direct++) {
		setenv("HEDDLE_DIRECT_COPY", direct ? "yes" : "no", 1);
		pair_open(&p, t);
		for (int i = 0; i < 8; i++) {
			size_t len = i % 4 ? LONG_ONE : 100;

			test_fill(out, len, (unsigned)i);
			side_post(&p.b, in, len, 1, 0, NULL, in);
			pair_push(&p, &p.a, out, len, 1, HD_SEND_COMPLETE);
			for (int turn = 0; turn < 3 * i; turn++)
				hd_node_poll(turn % 2 ? p.a.node : p.b.node);
			pid = fork_child_of(&p, i % 2);
			assert_int_equal(pair_next(&p, &p.b).err, 0);
			assert_int_equal(pair_next(&p, &p.a).err, 0);
			test_check(in, len, (unsigned)i);
			expect_child(pid);
			exchange(&p, 20, 100, out, in);
			if (i <= 1) /* the first long one opens the other's memory, for good */
				fds = test_fds();
			assert_int_equal(test_fds(), fds);
		}
		exchange(&p, 2, LONG_ONE, out, in);
		pair_close(&p);
	}
	unsetenv("HEDDLE_DIRECT_COPY");
	free(out);
	free(in);
}

/* The parent has armed a descriptor: the child reads nothing from under it. */
static void armed_parent_is_woken_all_the_same(void **state)
{
	char in[8], out[8] = "wake up";
	struct pollfd fd;
	struct pair p;
	pid_t pid;

	EACH_TRANSPORT(t)
	{
		pair_open(&p, t);
		exchange(&p, 2, 8, (unsigned char *)out, (unsigned char *)in);
		fd = (struct pollfd){ .fd = hd_cq_fd(p.b.cq), .events = POLLIN };
		while (hd_cq_arm(p.b.cq) == -EAGAIN)
			hd_node_poll(p.a.node);
		pid = fork_child_of(&p, true);
		expect_child(pid);
		assert_int_equal(poll(&fd, 1, 0), 0);
		side_post(&p.b, in, 8, 1, 0, NULL, in);
		assert_int_equal(hd_send(p.a.ep, p.a.to, out, 8, 1, 0, NULL, TAGGED(0)), 0);
		pid = fork_child_of(&p, true);
		expect_child(pid);
		assert_int_equal(poll(&fd, 1, 5000), 1);
		assert_int_equal(pair_next(&p, &p.b).err, 0);
		pair_close(&p);
	}
}

/* pair_open of nodes with threads of their own. */
static void threaded_open(struct pair *p, const char *transport)
{
	const struct hd_node_attr attr = { .front = "test", .auto_progress = true };

	setenv("HEDDLE_TRANSPORT", transport, 1);
	side_open_with(&p->a, &attr);
	side_open_with(&p->b, &attr);
	side_names(&p->a, &p->b);
	side_names(&p->b, &p->a);
}

/* Nodes with threads of their own, in the middle of whatever it is as the program forks. */
static void nodes_with_threads_are_dead_in_the_child(void **state)
{
	unsigned char *out = calloc(1, LONG_ONE), *in = malloc(LONG_ONE);
	const struct hd_cqe *e;
	struct pair p;
	pid_t pid;

	EACH_TRANSPORT(t)
	{
		memset(&p, 0, sizeof(p));
		threaded_open(&p, t);
		for (int i = 0; i < 10; i++) {
			hd_node_lock(p.b.node);
			side_post(&p.b, in, LONG_ONE, 1, 0, NULL, in);
			hd_node_unlock(p.b.node);
			hd_node_lock(p.a.node);
			assert_int_equal(hd_send(p.a.ep, p.a.to, out, LONG_ONE, 1, 0, NULL, TAGGED(0)), 0);
			hd_node_unlock(p.a.node);
			usleep(100 * i);
			pid = fork_child_of(&p, i % 2);
			do {
				assert_int_equal(hd_cq_wait(p.b.cq, 1, 20000), 0);
				hd_node_lock(p.b.node);
				e = hd_cq_peek(p.b.cq);
				if (e) {
					assert_int_equal(e->err, 0);
					hd_cq_pop(p.b.cq);
				}
				hd_node_unlock(p.b.node);
			} while (!e);
			expect_child(pid);
		}
		side_close(&p.a);
		side_close(&p.b);
	}
	unsetenv("HEDDLE_TRANSPORT");
	free(out);
	free(in);
}

/* ---- what another thread is changing --------------------------------------------------------- */

#define FORKS 30

/* A thread of the parent's, and its traffic. */
struct busy {
	struct pair p;
	pthread_t thread;
	atomic_bool over;
	unsigned rounds, posted;
};

static unsigned busy_drain(struct side *s)
{
	unsigned n = 0;

	hd_node_lock(s->node);
	for (; hd_cq_peek(s->cq); n++)
		hd_cq_pop(s->cq);
	hd_node_unlock(s->node);
	return n;
}

/* Short messages, expected and not, and names that come and go. Nothing here asserts. */
static void busy_round(struct busy *b, const char *out, char *in)
{
	struct sockaddr_in name = { .sin_family = AF_INET,
				    .sin_port = htons((uint16_t)(1 + b->rounds++ % 1000)),
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct iovec iov = { in, 8 };
	struct hd_recv_args args = {
		.iov = &iov, .count = 1, .flags = HD_RECV_TAGGED | HD_RECV_COMPLETE, .ignore = UINT64_MAX
	};
	struct hd_dest *new;

	for (int i = 0; i < 2; i++) {
		hd_node_lock(b->p.b.node);
		b->posted += b->posted < 64 && !hd_recv(b->p.b.ep, &args);
		hd_node_unlock(b->p.b.node);
		hd_node_lock(b->p.a.node);
		hd_send(b->p.a.ep, b->p.a.to, out, 8, 1, 0, NULL, TAGGED(HD_SEND_COMPLETE));
		if (!hd_dest_get(b->p.a.node, (void *)&name, &new))
			hd_dest_put(new);
		hd_node_unlock(b->p.a.node);
	}
	b->posted -= busy_drain(&b->p.b);
	busy_drain(&b->p.a);
}

static void *busy_run(void *arg)
{
	static char in[8], out[8] = "busy";
	struct busy *b = arg;

	while (!atomic_load(&b->over))
		busy_round(b, out, in);
	return NULL;
}

/* A child that closes everything finds lists that are whole, whoever was at them. */
static void what_others_change_is_whole(void **state)
{
	EACH_TRANSPORT(t)
	{
		struct busy b = { .over = false };

		threaded_open(&b.p, t);
		assert_int_equal(pthread_create(&b.thread, NULL, busy_run, &b), 0);
		for (int i = 0; i < FORKS; i++)
			expect_child(fork_child_of(&b.p, true));
		atomic_store(&b.over, true);
		assert_int_equal(pthread_join(b.thread, NULL), 0);
		side_close(&b.p.a);
		side_close(&b.p.b);
	}
	unsetenv("HEDDLE_TRANSPORT");
}

/*
 * The thread sanitizer sees that somebody could wait for ever if two threads forked at once, one of
 * them like this.
 */
static void fork_with_the_list(struct pair *p)
{
#ifndef __SANITIZE_THREAD__
	hd_nodes_hold();
	expect_child(fork_child_of(p, true));
	assert_false(hd_nodes_try());
	hd_nodes_release();
#endif
}

/* A signal's handler forks, in a thread that is in the middle of a call, or sees to its nodes. */
static void who_has_a_lock_may_fork(void **state)
{
	unsigned char in[8], out[8];

	EACH_TRANSPORT(t)
	for (int favourite = 0; favourite < 2; favourite++) {
		struct pair p = { 0 };

		threaded_open(&p, t);
		hd_node_lock(p.a.node);
		if (favourite)
			hd_biased_prefer(&hd_core(p.a.node)->gate.lock);
		expect_child(fork_child_of(&p, true));
		assert_true(hd_biased_is_taken(&hd_core(p.a.node)->gate.lock));
		hd_node_unlock(p.a.node);
		fork_with_the_list(&p);
		hd_node_lock(p.a.node);
		hd_node_lock(p.b.node);
		exchange(&p, 4, sizeof(out), out, in);
		hd_node_unlock(p.b.node);
		hd_node_unlock(p.a.node);
		side_close(&p.a);
		side_close(&p.b);
	}
	unsetenv("HEDDLE_TRANSPORT");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parent_goes_on),
		cmocka_unit_test(armed_parent_is_woken_all_the_same),
		cmocka_unit_test(nodes_with_threads_are_dead_in_the_child),
		cmocka_unit_test(what_others_change_is_whole),
		cmocka_unit_test(who_has_a_lock_may_fork),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
