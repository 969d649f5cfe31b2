/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * A process that is really stopped, by SIGSTOP, when it is about to copy from or to memory of ours:
 * it copies when it goes on. What would give that memory back waits for it, or answers that it
 * cannot, and others go on.
 */
#include "engine/mr/mr.h"
#include "engine/name/name.h"
#include "engine/test/test_qp.h"
#include "engine/xfer/xfer.h"

#include "transport/stopped.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define LONG (64u << 20)
#define KEY 77

/* Both processes see it. */
struct shared {
	struct sockaddr_storage names[2]; /* of their endpoint, of ours */
	atomic_int named[2];
	struct stopped stopped;
};

struct scene;

/* What they do, and what is closed. */
struct kind {
	uint32_t policy; /* of a queue pair; 0: it is none */
	enum hd_rma_op op;
	bool messages, writes;
	bool counted; /* the region counts what is done to it, so that they ask us, and help */
	int (*close)(struct scene *sc);
};

static struct scene {
	const struct kind *kind;
	struct shared *sh;
	pid_t pid;
	struct side s;
	struct hd_mr *mr;
	unsigned char *memory;
	struct hd_cntr *cntr;
	atomic_bool began, closed;
	int rc;
	bool written; /* when it was closed, all of that copy */
} scene;

/* ---- they ------------------------------------------------------------------------------------ */

static void they_post(struct side *s, void *buf)
{
	const struct hd_rma_seg seg = { 0, LONG, KEY };
	const struct iovec iov = { buf, LONG };
	int rc;

	if (scene.kind->messages)
		rc = hd_send(s->ep, s->to, buf, LONG, 7, 0, NULL,
			     HD_SEND_COMPLETE | (scene.kind->policy ? 0 : HD_SEND_TAGGED));
	else
		rc = hd_rma(s->ep, s->to,
			    &(struct hd_rma_args){ .op = scene.kind->op,
						   .iov = &iov,
						   .count = 1,
						   .segs = &seg,
						   .seg_count = 1,
						   .flags = HD_SEND_COMPLETE });
	if (rc)
		_exit(1);
}

static void name_ours(struct side *s, int who)
{
	if (scene.kind->policy)
		qp_open(s, scene.kind->policy | ALL_RIGHTS, NULL);
	else
		s->ep->policy |= HD_EP_REMOTE_READ | HD_EP_REMOTE_WRITE;
	hd_node_lock(s->node);
	hd_ep_show(s->ep);
	assert_int_equal(hd_ep_name(s->ep, AF_UNSPEC, &scene.sh->names[who]), 0);
	hd_node_unlock(s->node);
	atomic_store(&scene.sh->named[who], 1);
}

static void find_other(struct side *s, int who)
{
	struct sockaddr_storage *name = &scene.sh->names[!who];
	struct hd_qp_attr attr = qp_attr();

	while (!atomic_load(&scene.sh->named[!who]))
		usleep(100);
	hd_node_lock(s->node);
	assert_int_equal(hd_dest_get(s->node, (void *)name, &s->to), 0);
	attr.to = (void *)name;
	if (scene.kind->policy)
		assert_int_equal(hd_ep_pair(s->ep, &attr), 0);
	hd_node_unlock(s->node);
}

/*
 * They do it again and again, until they have been stopped, and make progress until they may end.
 */
static void they(void)
{
	unsigned char *buf = malloc(LONG);
	struct side s;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	memset(buf, THEIRS, LONG);
	side_open(&s);
	name_ours(&s, 0);
	find_other(&s, 0);
	stopped_wait(&scene.sh->stopped);
	they_post(&s, buf);
	while (!atomic_load(&scene.sh->stopped.over)) {
		hd_node_poll(s.node);
		while (hd_cq_peek(s.cq)) {
			hd_cq_pop(s.cq);
			if (!scene.sh->stopped.len)
				they_post(&s, buf);
		}
	}
	_exit(0);
}

/* ---- we -------------------------------------------------------------------------------------- */

static void post(void)
{
	const struct iovec iov = { scene.memory, LONG };

	if (!scene.kind->messages)
		return;
	if (scene.kind->policy) {
		qp_recv(&scene.s, scene.memory, LONG, scene.memory);
		return;
	}
	hd_node_lock(scene.s.node);
	side_post(&scene.s, iov.iov_base, iov.iov_len, 7, 0, NULL, NULL);
	hd_node_unlock(scene.s.node);
}

/* Until they are stopped; what has ended before that is done anew. */
static void get_stopped(void)
{
	while (!stopped_is(&scene.sh->stopped, scene.pid, scene.memory, LONG)) {
		const struct hd_cqe *e;

		hd_node_lock(scene.s.node);
		hd_node_poll(scene.s.node);
		e = hd_cq_peek(scene.s.cq);
		if (e) {
			assert_int_equal(e->err, 0);
			hd_cq_pop(scene.s.cq);
		}
		hd_node_unlock(scene.s.node);
		if (e)
			post();
	}
}

static void region_open(void)
{
	hd_node_lock(scene.s.node);
	scene.mr = side_region(&scene.s, KEY, scene.memory, LONG,
			       HD_ACCESS_REMOTE_READ | HD_ACCESS_REMOTE_WRITE, 0);
	if (scene.kind->counted) {
		assert_int_equal(hd_cntr_open(scene.s.node, &scene.cntr), 0);
		hd_mr_bind_cntrs(scene.mr, scene.cntr, scene.cntr);
	}
	hd_node_unlock(scene.s.node);
}

static void scene_open(const struct kind *kind)
{
	setenv("HEDDLE_TRANSPORT", "shm", 1);
	memset(&scene, 0, sizeof(scene));
	scene.kind = kind;
	scene.sh = mmap(NULL, sizeof(*scene.sh), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(scene.sh, MAP_FAILED);
	scene.sh->stopped.writes = kind->writes;
	scene.pid = fork();
	assert_true(scene.pid >= 0);
	if (!scene.pid)
		they();
	scene.memory = calloc(1, LONG);
	side_open_with(&scene.s, &(struct hd_node_attr){ .front = "test", .locked = true });
	if (!kind->messages)
		region_open();
	name_ours(&scene.s, 1);
	find_other(&scene.s, 1);
	post();
	get_stopped();
}

/* It is the program's again, and all that they were in the middle of is over. */
static void ours_again(void)
{
	scene.written = stopped_has_written(&scene.sh->stopped);
	memset(scene.memory, OURS, LONG);
}

static void *closes(void *arg)
{
	hd_node_lock(scene.s.node);
	atomic_store(&scene.began, true);
	scene.rc = scene.kind->close(&scene);
	if (!scene.rc)
		ours_again();
	atomic_store(&scene.closed, true);
	hd_node_unlock(scene.s.node);
	return NULL;
}

/* Other calls of the program's, which take as long as ever. */
static void others_go_on(int calls)
{
	struct side other = scene.s;

	while (!atomic_load(&scene.began))
		sched_yield();
	for (int i = 0; i < calls; i++) {
		hd_node_lock(other.node);
		other.ep = NULL;
		side_endpoint(&other, HD_EP_RDM);
		hd_ep_close(other.ep);
		hd_node_poll(other.node);
		hd_node_unlock(other.node);
	}
}

/* They are told to end, and have done all that they were in the middle of. */
static void scene_close(void)
{
	stopped_end(&scene.sh->stopped, scene.pid);
	assert_true(is_all(scene.memory, LONG, OURS));
	hd_node_lock(scene.s.node);
	if (scene.mr)
		assert_int_equal(hd_mr_close(scene.mr), 0);
	if (scene.cntr)
		assert_int_equal(hd_cntr_close(scene.cntr), 0);
	hd_node_unlock(scene.s.node);
	side_close(&scene.s);
	munmap(scene.sh, sizeof(*scene.sh));
	free(scene.memory);
	unsetenv("HEDDLE_TRANSPORT");
}

/* ---- an endpoint, a queue pair --------------------------------------------------------------- */

static int ep_closes(struct scene *sc)
{
	hd_ep_settle(sc->s.ep);
	side_endpoint(&sc->s, HD_EP_RDM);
	return 0;
}

static int qp_fails(struct scene *sc)
{
	hd_ep_settle(sc->s.ep);
	hd_ep_fail(sc->s.ep);
	return 0;
}

static int qp_resets(struct scene *sc)
{
	hd_ep_settle(sc->s.ep);
	hd_ep_reset(sc->s.ep);
	return 0;
}

static pthread_t begin(const struct kind *kind)
{
	pthread_t thread;

	scene_open(kind);
	rescue_after(scene.pid, PATIENCE / HD_NS_PER_S);
	assert_int_equal(pthread_create(&thread, NULL, closes, NULL), 0);
	return thread;
}

static void waits(const struct kind *kind)
{
	pthread_t thread = begin(kind);

	others_go_on(1000);
	assert_false(atomic_load(&scene.closed) || rescued);
	alarm(0);
	kill(scene.pid, SIGCONT);
	pthread_join(thread, NULL);
	assert_true(scene.written);
	scene_close();
}

static void a_message_comes_in(void **state)
{
	static const struct kind kinds[] = {
		{ .messages = true, .writes = true, .close = ep_closes },
		{ .policy = RC, .messages = true, .writes = true, .close = qp_fails },
		{ .policy = RC, .messages = true, .writes = true, .close = qp_resets },
	};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		waits(&kinds[i]);
}

/* ---- a region -------------------------------------------------------------------------------- */

static int mr_closes(struct scene *sc)
{
	return hd_mr_close(sc->mr);
}

static int closed_now(void)
{
	int rc;

	hd_node_lock(scene.s.node);
	hd_node_poll(scene.s.node);
	rc = hd_mr_close(scene.mr);
	if (!rc) {
		scene.mr = NULL;
		ours_again();
	}
	hd_node_unlock(scene.s.node);
	return rc;
}

/* Others go on while it waits; and it answers, and can be closed later. */
static void is_busy(const struct kind *kind)
{
	pthread_t thread = begin(kind);
	int calls = 0;

	for (; !atomic_load(&scene.closed); calls++)
		others_go_on(1);
	pthread_join(thread, NULL);
	assert_int_equal(scene.rc, -EBUSY);
	assert_false(rescued);
	assert_true(calls > 1);
	alarm(0);
	kill(scene.pid, SIGCONT);
	while (closed_now())
		sched_yield();
	assert_true(scene.written || !kind->writes);
	scene_close();
}

static void a_region_is_copied(void **state)
{
	static const struct kind kinds[] = {
		{ .op = HD_RMA_WRITE, .writes = true, .close = mr_closes },
		{ .op = HD_RMA_READ, .close = mr_closes },
		{ .op = HD_RMA_WRITE, .writes = true, .counted = true, .close = mr_closes },
	};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		is_busy(&kinds[i]);
}

/* ---- all of a node's ------------------------------------------------------------------------- */

static int node_retires(struct scene *sc)
{
	hd_node_retire(sc->s.node);
	return 0;
}

static void a_node_retires(void **state)
{
	static const struct kind kinds[] = {
		{ .policy = RC, .messages = true, .writes = true, .close = node_retires },
		{ .op = HD_RMA_WRITE, .writes = true, .close = node_retires },
		{ .op = HD_RMA_WRITE, .writes = true, .counted = true, .close = node_retires },
	};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		waits(&kinds[i]);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_message_comes_in),
		cmocka_unit_test(a_region_is_copied),
		cmocka_unit_test(a_node_retires),
	};

	return cmocka_run_group_tests_name("stopped", tests, NULL, NULL);
}
