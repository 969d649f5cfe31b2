/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Several threads of a program on the same objects, as verbs permits it for all calls: posting,
 * polling, sleeping, failing, destroying. Two contexts in one process; through the public calls
 * alone. Under the thread sanitizer this is where qp.c, sq.c and responder.c of engine/qp are
 * looked at.
 */
#include <infiniband/verbs.h>

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define THREADS 4
#define ROUNDS 1200
#define DEPTH 16
#define PIECE 8192u
#define RECVS 512
#define RIGHTS \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)

/* cmocka's checks are for its own thread; these are for all. */
#define MUST(what) \
	do { \
		if (!(what)) { \
			fprintf(stderr, "# line %d: %s\n", __LINE__, #what); \
			abort(); \
		} \
	} while (0)

struct side {
	struct ibv_context *context;
	struct ibv_comp_channel *channel;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_srq *srq;
	struct ibv_mr *mr;
	uint16_t lid;
	/*
	 * what is sent and read, what it is read into, what the other end writes, what it
	 * counts in, what is received
	 */
	unsigned char source[PIECE], sink[THREADS][PIECE], target[THREADS][PIECE], in[RECVS][PIECE];
	uint64_t counter[THREADS], old[THREADS];
};

static struct side sides[2];
static atomic_uint done[THREADS], received,
	failed; /* completions: of each thread's requests, of receives, that are errors */
static atomic_bool stop;

static void open_side(struct side *s)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_srq_init_attr srq = { NULL, { RECVS, 1, 0 } };
	struct ibv_port_attr port;

	s->context = ibv_open_device(list[0]);
	MUST(s->context);
	ibv_free_device_list(list);
	MUST(!ibv_query_port(s->context, 1, &port));
	s->lid = port.lid;
	s->channel = ibv_create_comp_channel(s->context);
	s->pd = ibv_alloc_pd(s->context);
	s->cq = ibv_create_cq(s->context, 4096, NULL, s->channel, 0);
	s->srq = ibv_create_srq(s->pd, &srq);
	s->mr = ibv_reg_mr(s->pd, s, sizeof(*s), RIGHTS);
	MUST(s->channel && s->pd && s->cq && s->srq && s->mr);
}

static void close_side(struct side *s)
{
	assert_int_equal(ibv_dereg_mr(s->mr), 0);
	assert_int_equal(ibv_destroy_srq(s->srq), 0);
	assert_int_equal(ibv_destroy_cq(s->cq), 0);
	assert_int_equal(ibv_destroy_comp_channel(s->channel), 0);
	assert_int_equal(ibv_dealloc_pd(s->pd), 0);
	assert_int_equal(ibv_close_device(s->context), 0);
}

static void open_world(const char *transport)
{
	setenv("HEDDLE_TRANSPORT", transport, 1);
	for (int i = 0; i < THREADS; i++)
		atomic_store(&done[i], 0);
	atomic_store(&received, 0);
	atomic_store(&failed, 0);
	atomic_store(&stop, false);
	open_side(&sides[0]);
	open_side(&sides[1]);
}

static void close_world(void)
{
	close_side(&sides[0]);
	close_side(&sides[1]);
}

static struct ibv_qp *make_qp(struct side *s)
{
	struct ibv_qp_init_attr init = { NULL, s->cq, s->cq, s->srq, { DEPTH, 0, 1, 0, 0 }, IBV_QPT_RC, 1 };
	struct ibv_qp *qp = ibv_create_qp(s->pd, &init);

	MUST(qp);
	return qp;
}

static void connect_to(struct ibv_qp *qp, const struct side *other, uint32_t number)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_INIT,
				 .port_num = 1,
				 .qp_access_flags = RIGHTS,
				 .path_mtu = IBV_MTU_1024,
				 .dest_qp_num = number,
				 .max_dest_rd_atomic = 4,
				 .max_rd_atomic = 4,
				 .min_rnr_timer = 1,
				 .timeout = 14,
				 .retry_cnt = 7,
				 .rnr_retry = 7,
				 .ah_attr = { .dlid = other->lid, .port_num = 1 } };

	MUST(!ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS));
	a.qp_state = IBV_QPS_RTR;
	MUST(!ibv_modify_qp(qp, &a,
			    IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				    IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER));
	a.qp_state = IBV_QPS_RTS;
	MUST(!ibv_modify_qp(qp, &a,
			    IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_RETRY_CNT |
				    IBV_QP_RNR_RETRY | IBV_QP_TIMEOUT));
}

static void make_pair(struct ibv_qp *qp[2])
{
	qp[0] = make_qp(&sides[0]);
	qp[1] = make_qp(&sides[1]);
	connect_to(qp[0], &sides[1], qp[1]->qp_num);
	connect_to(qp[1], &sides[0], qp[0]->qp_num);
}

/* Whoever polls counts for all: requests have their thread's number as id, receives one above. */
static unsigned poll_side(struct side *s)
{
	struct ibv_wc wc[8];
	int n = ibv_poll_cq(s->cq, 8, wc);

	MUST(n >= 0);
	for (int i = 0; i < n; i++) {
		if (wc[i].status != IBV_WC_SUCCESS)
			atomic_fetch_add(&failed, 1);
		if (wc[i].wr_id < THREADS)
			atomic_fetch_add(&done[wc[i].wr_id], 1);
		else
			atomic_fetch_add(&received, 1);
	}
	return (unsigned)n;
}

static void poll_both(void)
{
	if (poll_side(&sides[0]) + poll_side(&sides[1]) == 0)
		sched_yield();
}

/* The next buffer for it. They are many more than are posted at a time. */
static void post_recv(struct side *s)
{
	static atomic_uint next;
	unsigned i = atomic_fetch_add(&next, 1) % RECVS;
	struct ibv_sge sge = { (uintptr_t)s->in[i], PIECE, s->mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = THREADS, .sg_list = &sge, .num_sge = 1 }, *bad;

	while (ibv_post_srq_recv(s->srq, &wr, &bad))
		poll_both();
}

static struct ibv_sge local(enum ibv_wr_opcode op, unsigned thread, uint32_t len)
{
	struct side *s = &sides[0];
	void *at = op == IBV_WR_RDMA_READ	       ? s->sink[thread]
		   : op == IBV_WR_ATOMIC_FETCH_AND_ADD ? (void *)&s->old[thread]
						       : s->source;

	return (struct ibv_sge){ (uintptr_t)at, len, s->mr->lkey };
}

/* One of everything, by turns. Answers as ibv_post_send. */
static int try_post(struct ibv_qp *qp, unsigned thread, unsigned round, const struct ibv_mr *theirs)
{
	static const enum ibv_wr_opcode ops[] = { IBV_WR_SEND, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ,
						  IBV_WR_ATOMIC_FETCH_AND_ADD };
	enum ibv_wr_opcode op = ops[round % 4];
	struct ibv_sge sge = local(op, thread,
				   op == IBV_WR_ATOMIC_FETCH_AND_ADD ? 8
				   : round % 3			     ? 64
								     : PIECE);
	struct ibv_send_wr wr = { .wr_id = thread, .sg_list = &sge, .num_sge = 1, .opcode = op }, *bad;

	if (op == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = (uintptr_t)&sides[1].counter[thread];
		wr.wr.atomic.rkey = theirs->rkey;
		wr.wr.atomic.compare_add = 1;
	} else {
		wr.wr.rdma.remote_addr = op == IBV_WR_RDMA_READ ? (uintptr_t)sides[1].source
								: (uintptr_t)sides[1].target[thread];
		wr.wr.rdma.rkey = theirs->rkey;
	}
	return ibv_post_send(qp, &wr, &bad);
}

static void post(struct ibv_qp *qp, unsigned thread, unsigned round)
{
	int rc;

	if (round % 4 == 0)
		post_recv(&sides[1]);
	while ((rc = try_post(qp, thread, round, sides[1].mr))) {
		MUST(rc == ENOMEM);
		poll_both();
	}
}

static void await_done(unsigned thread, unsigned count)
{
	while (atomic_load(&done[thread]) < count)
		poll_both();
}

/* Each request was carried out once. */
static void check_counters(void)
{
	for (int i = 0; i < THREADS; i++) {
		assert_int_equal(atomic_load(&done[i]), ROUNDS);
		assert_int_equal(sides[1].counter[i], ROUNDS / 4);
		sides[1].counter[i] = 0;
	}
}

struct worker {
	pthread_t thread;
	unsigned number;
	struct ibv_qp *qp[2];
};

static void run(void *(*fn)(void *), struct worker *w, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		w[i].number = i;
		assert_int_equal(pthread_create(&w[i].thread, NULL, fn, &w[i]), 0);
	}
	for (unsigned i = 0; i < count; i++)
		pthread_join(w[i].thread, NULL);
}

/* ---- a queue pair each, the rest in common --------------------------------------------------- */

static void *own_pair(void *arg)
{
	struct worker *w = arg;

	make_pair(w->qp);
	for (unsigned i = 0; i < ROUNDS; i++) {
		post(w->qp[0], w->number, i);
		if (i % 5 == 0)
			poll_both();
	}
	await_done(w->number, ROUNDS);
	return NULL;
}

static void queues_are_shared(void **state)
{
	for (int t = 0; t < 2; t++) {
		struct worker w[THREADS];

		open_world(t ? "tcp" : "shm");
		run(own_pair, w, THREADS);
		while (atomic_load(&received) < THREADS * ROUNDS / 4)
			poll_both();
		assert_int_equal(atomic_load(&failed), 0);
		check_counters();
		for (int i = 0; i < THREADS; i++)
			for (int k = 0; k < 2; k++)
				assert_int_equal(ibv_destroy_qp(w[i].qp[k]), 0);
		close_world();
	}
}

/* ---- one queue pair for all ------------------------------------------------------------------ */

static struct ibv_qp *common[2];

static void *in_common(void *arg)
{
	struct worker *w = arg;

	for (unsigned i = 0; i < ROUNDS; i++)
		post(common[0], w->number, i);
	await_done(w->number, ROUNDS);
	return NULL;
}

static void a_queue_pair_is_shared(void **state)
{
	for (int t = 0; t < 2; t++) {
		struct worker w[THREADS];

		open_world(t ? "tcp" : "shm");
		make_pair(common);
		run(in_common, w, THREADS);
		assert_int_equal(atomic_load(&failed), 0);
		check_counters();
		for (int k = 0; k < 2; k++)
			assert_int_equal(ibv_destroy_qp(common[k]), 0);
		close_world();
	}
}

/* ---- destroyed with work under way ----------------------------------------------------------- */

static void *comes_and_goes(void *arg)
{
	struct worker *w = arg;

	for (unsigned i = 0; i < ROUNDS / 4; i++) {
		make_pair(w->qp);
		for (unsigned k = 0; k < DEPTH / 2; k++)
			try_post(w->qp[0], w->number, i + k, sides[1].mr);
		if (i % 3)
			poll_both();
		MUST(!ibv_destroy_qp(w->qp[i & 1]));
		MUST(!ibv_destroy_qp(w->qp[!(i & 1)]));
	}
	return NULL;
}

static void queue_pairs_come_and_go(void **state)
{
	for (int t = 0; t < 2; t++) {
		struct worker w[THREADS];

		open_world(t ? "tcp" : "shm");
		for (int i = 0; i < 200; i++)
			post_recv(&sides[1]);
		run(comes_and_goes, w, THREADS);
		close_world();
	}
}

/* ---- failed while others post ---------------------------------------------------------------- */

static void *posts_on(void *arg)
{
	struct worker *w = arg;

	while (!atomic_load(&stop)) {
		int rc = try_post(common[0], w->number, 0, sides[1].mr);

		MUST(rc == 0 || rc == ENOMEM || rc == EINVAL); /* EINVAL: in RESET */
		poll_both();
	}
	return NULL;
}

static void *fails_it(void *arg)
{
	struct ibv_qp_attr error = { .qp_state = IBV_QPS_ERR }, reset = { .qp_state = IBV_QPS_RESET };

	for (unsigned i = 0; i < ROUNDS / 4; i++) {
		for (unsigned k = 0; k < 8; k++)
			post_recv(&sides[1]);
		poll_both();
		MUST(!ibv_modify_qp(common[i & 1], &error, IBV_QP_STATE));
		poll_both();
		MUST(!ibv_modify_qp(common[0], &reset, IBV_QP_STATE));
		MUST(!ibv_modify_qp(common[1], &reset, IBV_QP_STATE));
		connect_to(common[1], &sides[0], common[0]->qp_num);
		connect_to(common[0], &sides[1], common[1]->qp_num);
	}
	atomic_store(&stop, true);
	return NULL;
}

static void *posts_or_fails(void *arg)
{
	return ((struct worker *)arg)->number ? posts_on(arg) : fails_it(arg);
}

static void a_queue_pair_fails_meanwhile(void **state)
{
	for (int t = 0; t < 2; t++) {
		struct worker w[THREADS];

		open_world(t ? "tcp" : "shm");
		make_pair(common);
		run(posts_or_fails, w, THREADS);
		for (int k = 0; k < 2; k++)
			assert_int_equal(ibv_destroy_qp(common[k]), 0);
		close_world();
	}
}

/* ---- asleep ---------------------------------------------------------------------------------- */

static void *sleeps(void *arg)
{
	struct side *s = arg;
	struct ibv_cq *cq;
	void *context;

	while (!atomic_load(&stop)) {
		MUST(!ibv_req_notify_cq(s->cq, 0));
		while (poll_side(s))
			;
		if (atomic_load(&stop))
			break;
		MUST(!ibv_get_cq_event(s->channel, &cq, &context));
		ibv_ack_cq_events(cq, 1);
	}
	return NULL;
}

/*
 * Nobody polls but who has slept; the last message of each side's wakes its
 * sleeper when it is to end.
 */
static void *posts_slowly(void *arg)
{
	struct worker *w = arg;

	make_pair(w->qp);
	for (unsigned i = 0; i < ROUNDS / 2; i++) {
		if (i % 4 == 0)
			post_recv(&sides[1]);
		while (try_post(w->qp[0], w->number, i, sides[1].mr))
			sched_yield();
	}
	while (atomic_load(&done[w->number]) < ROUNDS / 2)
		sched_yield();
	return NULL;
}

static void sleepers_are_woken(void **state)
{
	for (int t = 0; t < 2; t++) {
		struct worker w[THREADS];
		pthread_t sleeper[2];

		open_world(t ? "tcp" : "shm");
		for (int i = 0; i < 2; i++)
			assert_int_equal(pthread_create(&sleeper[i], NULL, sleeps, &sides[i]), 0);
		run(posts_slowly, w, THREADS);
		while (atomic_load(&received) < THREADS * ROUNDS / 8)
			sched_yield();
		assert_int_equal(atomic_load(&failed), 0);
		atomic_store(&stop, true);
		post_recv(&sides[1]);
		while (try_post(w[0].qp[0], 0, 0, sides[1].mr))
			sched_yield();
		for (int i = 0; i < 2; i++)
			pthread_join(sleeper[i], NULL);
		for (int i = 0; i < THREADS; i++)
			for (int k = 0; k < 2; k++)
				assert_int_equal(ibv_destroy_qp(w[i].qp[k]), 0);
		close_world();
	}
}

/* ---- regions that go while they are written -------------------------------------------------- */

static void *loses_its_region(void *arg)
{
	struct ibv_qp_attr reset = { .qp_state = IBV_QPS_RESET };
	struct worker *w = arg;
	unsigned posted = 0;

	make_pair(w->qp);
	for (unsigned i = 0; i < ROUNDS / 4; i++) {
		struct ibv_mr *mr = ibv_reg_mr(sides[1].pd, &sides[1], sizeof(sides[1]), RIGHTS);

		MUST(mr);
		for (unsigned k = 0; k < DEPTH / 2; k++)
			posted += !try_post(w->qp[0], w->number, 1 + (i + k) % 3, mr);
		MUST(!ibv_dereg_mr(mr));
		await_done(w->number, posted);
		for (int k = 0; k < 2; k++)
			MUST(!ibv_modify_qp(w->qp[k], &reset, IBV_QP_STATE));
		connect_to(w->qp[1], &sides[0], w->qp[0]->qp_num);
		connect_to(w->qp[0], &sides[1], w->qp[1]->qp_num);
	}
	return NULL;
}

static void regions_go_meanwhile(void **state)
{
	for (int t = 0; t < 2; t++) {
		struct worker w[THREADS];

		open_world(t ? "tcp" : "shm");
		run(loses_its_region, w, THREADS);
		for (int i = 0; i < THREADS; i++)
			for (int k = 0; k < 2; k++)
				assert_int_equal(ibv_destroy_qp(w[i].qp[k]), 0);
		close_world();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(queues_are_shared),	   cmocka_unit_test(a_queue_pair_is_shared),
		cmocka_unit_test(queue_pairs_come_and_go), cmocka_unit_test(a_queue_pair_fails_meanwhile),
		cmocka_unit_test(sleepers_are_woken),	   cmocka_unit_test(regions_go_meanwhile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
