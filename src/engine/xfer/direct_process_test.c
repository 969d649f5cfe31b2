/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * One-sided operations on the memory of another process: one that is stopped, and one that
 * is killed in the middle.
 */
#include "engine/mr/mr.h"
#include "engine/name/name.h"
#include "engine/test/test_pair.h"
#include "engine/xfer/xfer.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define BIG (4u << 20)
#define KEY 77
#define UNDER_WAY 8

struct scene {
	struct side s;
	pid_t pid;
	unsigned char *theirs; /* the region, which both processes see */
	unsigned char *mine;
};

static void permit(struct side *s)
{
	s->ep->policy |= HD_EP_REMOTE_READ | HD_EP_REMOTE_WRITE;
	hd_ep_show(s->ep);
}

/* The target: a process with a region, which polls for as long as it may. */
static void target(unsigned char *region, int tell)
{
	struct iovec iov = { region, BIG };
	struct hd_mr_attr attr = { .iov = &iov,
				   .count = 1,
				   .access = HD_ACCESS_REMOTE_READ | HD_ACCESS_REMOTE_WRITE,
				   .flags = HD_MR_KEY,
				   .key = KEY };
	struct sockaddr_storage name;
	struct hd_mr *mr;
	struct side s;

	side_open(&s);
	permit(&s);
	if (hd_mr_open(s.node, &attr, &mr) || hd_ep_name(s.ep, AF_UNSPEC, &name) ||
	    write(tell, &name, sizeof(name)) != sizeof(name))
		_exit(1);
	while (getppid() != 1)
		hd_node_poll(s.node);
	_exit(0);
}

static void scene_open(struct scene *sc)
{
	struct sockaddr_storage name;
	int pipe_ends[2];

	setenv("HEDDLE_TRANSPORT", "shm", 1);
	sc->theirs = mmap(NULL, BIG, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	sc->mine = malloc(BIG);
	assert_true(sc->theirs != MAP_FAILED && sc->mine);
	assert_int_equal(pipe(pipe_ends), 0);
	sc->pid = fork();
	assert_true(sc->pid >= 0);
	if (sc->pid == 0)
		target(sc->theirs, pipe_ends[1]);
	assert_int_equal(read(pipe_ends[0], &name, sizeof(name)), sizeof(name));
	close(pipe_ends[0]);
	close(pipe_ends[1]);
	side_open(&sc->s);
	assert_int_equal(hd_dest_get(sc->s.node, (void *)&name, &sc->s.to), 0);
}

static void scene_close(struct scene *sc)
{
	kill(sc->pid, SIGKILL);
	assert_int_equal(waitpid(sc->pid, NULL, 0), sc->pid);
	side_close(&sc->s);
	munmap(sc->theirs, BIG);
	free(sc->mine);
	unsetenv("HEDDLE_TRANSPORT");
}

static int post(struct scene *sc, enum hd_rma_op op, size_t len)
{
	const struct hd_rma_seg seg = { 0, len, KEY };
	const struct iovec iov = { sc->mine, len };

	return hd_rma(sc->s.ep, sc->s.to,
		      &(struct hd_rma_args){ .op = op,
					     .iov = &iov,
					     .count = 1,
					     .segs = &seg,
					     .seg_count = 1,
					     .flags = HD_SEND_COMPLETE });
}

/* The next completion's error; it comes within `ms`. */
static int next(struct scene *sc, int ms)
{
	uint64_t end = hd_now_ns() + (uint64_t)ms * HD_NS_PER_MS;
	const struct hd_cqe *e;
	int err;

	while (!(e = hd_cq_peek(sc->s.cq))) {
		hd_node_poll(sc->s.node);
		assert_true(hd_now_ns() < end);
	}
	err = e->err;
	hd_cq_pop(sc->s.cq);
	return err;
}

static void wait_stopped(pid_t pid)
{
	int status;

	assert_int_equal(kill(pid, SIGSTOP), 0);
	assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
	assert_true(WIFSTOPPED(status));
	usleep(1000); /* it was seen to poll a moment ago */
}

static void a_stopped_target_is_read_and_written(void **state)
{
	static const size_t sizes[] = { 8, 4096, 300000, BIG };
	struct scene sc;

	scene_open(&sc);
	assert_int_equal(post(&sc, HD_RMA_WRITE, 1), 0); /* a link stands */
	assert_int_equal(next(&sc, 30000), 0);
	wait_stopped(sc.pid);
	for (unsigned i = 0; i < 4; i++) {
		test_fill(sc.mine, sizes[i], i);
		assert_int_equal(post(&sc, HD_RMA_WRITE, sizes[i]), 0);
		assert_int_equal(next(&sc, 30000), 0);
		test_check(sc.theirs, sizes[i], i);
		test_fill(sc.theirs, sizes[i], i + 10);
		assert_int_equal(post(&sc, HD_RMA_READ, sizes[i]), 0);
		assert_int_equal(next(&sc, 30000), 0);
		test_check(sc.mine, sizes[i], i + 10);
	}
	assert_int_equal(kill(sc.pid, SIGCONT), 0);
	scene_close(&sc);
}

/* At any moment: what was done is done, the rest ends in error, and nothing is left behind. */
static void a_target_is_killed_in_the_middle(void **state)
{
	for (int turns = 0; turns < 40; turns += 3) {
		struct scene sc;
		int failed = 0;

		scene_open(&sc);
		assert_int_equal(post(&sc, HD_RMA_WRITE, 1), 0);
		assert_int_equal(next(&sc, 30000), 0);
		for (int i = 0; i < UNDER_WAY; i++)
			assert_int_equal(post(&sc, i & 1 ? HD_RMA_READ : HD_RMA_WRITE, BIG), 0);
		for (int i = 0; i < turns; i++)
			hd_node_poll(sc.s.node);
		assert_int_equal(kill(sc.pid, SIGKILL), 0);
		for (int i = 0; i < UNDER_WAY; i++) {
			int err = next(&sc, 10000);

			if (err != 0 && err != HD_S_LOST)
				fail_msg("%d: %s", i, strerror(err));
			assert_true(err || !failed); /* in their order */
			failed += err != 0;
		}
		assert_int_equal(hd_ep_inspect(sc.s.ep).outstanding, 0);
		scene_close(&sc);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_stopped_target_is_read_and_written),
		cmocka_unit_test(a_target_is_killed_in_the_middle),
	};

	return cmocka_run_group_tests_name("direct_process", tests, NULL, NULL);
}
