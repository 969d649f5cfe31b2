/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Objects and their tables: what may be bound, enabled and closed when, and what is left
 * of them in a forked child.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/log.h"
#include "front/ofi/ofi.h"

#include <arpa/inet.h>
#include <rdma/fi_trigger.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

struct world {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_cntr *cntr;
	struct fid_ep *ep;
	fi_addr_t self;
};

static void open_domain(struct world *w, enum fi_threading threading)
{
	struct fi_info *hints = fi_allocinfo();

	memset(w, 0, sizeof(*w));
	hints->caps = FI_MSG | FI_TAGGED;
	hints->domain_attr->threading = threading;
	assert_int_equal(hd_fi_getinfo(HD_FI_OLDEST, "127.0.0.1", NULL, FI_SOURCE, hints, &w->info), 0);
	fi_freeinfo(hints);
	assert_int_equal(hd_fi_fabric_open(w->info->fabric_attr, &w->fabric, NULL), 0);
	assert_int_equal(fi_domain(w->fabric, w->info, &w->domain, NULL), 0);
}

static void open_queues(struct world *w)
{
	struct fi_av_attr av = { .type = FI_AV_TABLE };
	struct fi_cq_attr cq = { .format = FI_CQ_FORMAT_TAGGED, .wait_obj = FI_WAIT_FD };

	assert_int_equal(fi_av_open(w->domain, &av, &w->av, NULL), 0);
	assert_int_equal(fi_cq_open(w->domain, &cq, &w->cq, NULL), 0);
	assert_int_equal(fi_cntr_open(w->domain, NULL, &w->cntr, NULL), 0);
	assert_int_equal(fi_endpoint(w->domain, w->info, &w->ep, NULL), 0);
}

/* flags: of the binding of the CQ, beside both directions. */
static void enable_with(struct world *w, uint64_t flags)
{
	char name[64];
	size_t len = sizeof(name);

	assert_int_equal(fi_ep_bind(w->ep, &w->av->fid, 0), 0);
	assert_int_equal(fi_ep_bind(w->ep, &w->cq->fid, FI_TRANSMIT | FI_RECV | flags), 0);
	assert_int_equal(fi_enable(w->ep), 0);
	assert_int_equal(fi_getname(&w->ep->fid, name, &len), 0);
	assert_int_equal(fi_av_insert(w->av, name, 1, &w->self, 0, NULL), 1);
}

static void enable(struct world *w)
{
	enable_with(w, 0);
}

static void close_world(struct world *w)
{
	/* each begins with its fid, and may be NULL */
	struct fid *fids[] = { (void *)w->ep, (void *)w->cntr,	 (void *)w->cq,
			       (void *)w->av, (void *)w->domain, (void *)w->fabric };

	for (size_t i = 0; i < sizeof(fids) / sizeof(fids[0]); i++)
		if (fids[i])
			assert_int_equal(fi_close(fids[i]), 0);
	fi_freeinfo(w->info);
}

/*
 * How long a table is up to this function: newer headers may have more, which callers take for not
 * offered where it is empty.
 */
#define UP_TO(table, last) (offsetof(struct table, last) + sizeof(void *))

/* A table begins with its size and is functions from there on. */
static void check_slots(const char *what, const void *table, size_t least)
{
	if (*(const size_t *)table < least)
		fail_msg("%s: the table is too short", what);
	for (size_t at = sizeof(size_t); at < least; at += sizeof(void *))
		if (!*(void *const *)((const char *)table + at))
			fail_msg("%s: slot at %zu is empty", what, at);
}

static void check_ep_slots(const struct fid_ep *ep)
{
	check_slots("endpoint fid", ep->fid.ops, sizeof(struct fi_ops));
	check_slots("endpoint", ep->ops, UP_TO(fi_ops_ep, tx_size_left));
	check_slots("cm", ep->cm, sizeof(struct fi_ops_cm));
	check_slots("msg", ep->msg, sizeof(struct fi_ops_msg));
	check_slots("tagged", ep->tagged, sizeof(struct fi_ops_tagged));
	check_slots("rma", ep->rma, sizeof(struct fi_ops_rma));
	check_slots("atomic", ep->atomic, sizeof(struct fi_ops_atomic));
	check_slots("collective", ep->collective, sizeof(struct fi_ops_collective));
}

static void check_other_slots(const struct world *w)
{
	check_slots("domain fid", w->domain->fid.ops, sizeof(struct fi_ops));
	check_slots("domain", w->domain->ops, UP_TO(fi_ops_domain, query_collective));
	check_slots("mr", w->domain->mr, sizeof(struct fi_ops_mr));
	check_slots("av fid", w->av->fid.ops, sizeof(struct fi_ops));
	check_slots("av", w->av->ops, UP_TO(fi_ops_av, av_set) + 2 * sizeof(void *));
	check_slots("cq fid", w->cq->fid.ops, sizeof(struct fi_ops));
	check_slots("cq", w->cq->ops, UP_TO(fi_ops_cq, strerror));
	check_slots("cntr fid", w->cntr->fid.ops, sizeof(struct fi_ops));
	check_slots("cntr", w->cntr->ops, UP_TO(fi_ops_cntr, seterr));
}

static void no_slot_is_empty(void **state)
{
	struct fid_mr *mr;
	struct fid_eq *eq;
	struct world w;
	char buf[8];

	for (enum fi_threading t = FI_THREAD_SAFE; t <= FI_THREAD_ENDPOINT; t++) {
		open_domain(&w, t);
		open_queues(&w);
		check_ep_slots(w.ep);
		enable(&w);
		check_ep_slots(w.ep);
		check_other_slots(&w);
		check_slots("fabric fid", w.fabric->fid.ops, sizeof(struct fi_ops));
		check_slots("fabric", w.fabric->ops, sizeof(struct fi_ops_fabric));
		assert_int_equal(fi_eq_open(w.fabric, NULL, &eq, NULL), 0);
		check_slots("eq fid", eq->fid.ops, sizeof(struct fi_ops));
		check_slots("eq", eq->ops, sizeof(struct fi_ops_eq));
		assert_int_equal(fi_mr_reg(w.domain, buf, sizeof(buf), FI_SEND, 0, 1, 0, &mr, NULL), 0);
		check_slots("mr fid", mr->fid.ops, sizeof(struct fi_ops));
		assert_int_equal(fi_close(&mr->fid), 0);
		assert_int_equal(fi_close(&eq->fid), 0);
		close_world(&w);
	}
}

static void enabling_needs_what_was_promised(void **state)
{
	struct world w;
	char buf[8];

	open_domain(&w, FI_THREAD_SAFE);
	open_queues(&w);
	assert_int_equal(fi_enable(w.ep), -FI_ENOAV);
	assert_int_equal(fi_ep_bind(w.ep, &w.av->fid, 0), 0);
	assert_int_equal(fi_enable(w.ep), -FI_ENOCQ);
	assert_int_equal(fi_ep_bind(w.ep, &w.cq->fid, FI_RECV), 0);
	assert_int_equal(fi_enable(w.ep), -FI_ENOCQ);
	assert_int_equal(fi_recv(w.ep, buf, sizeof(buf), NULL, FI_ADDR_UNSPEC, NULL), -FI_EOPBADSTATE);
	assert_int_equal(fi_tsend(w.ep, buf, sizeof(buf), NULL, 0, 0, NULL), -FI_EOPBADSTATE);
	assert_int_equal(fi_ep_bind(w.ep, &w.cq->fid, FI_TRANSMIT), 0);
	assert_int_equal(fi_enable(w.ep), 0);
	assert_int_equal(fi_enable(w.ep), 0);
	assert_int_equal(fi_ep_bind(w.ep, &w.cntr->fid, FI_SEND), 0);
	assert_int_equal(fi_ep_bind(w.ep, &w.cq->fid, FI_RECV), -FI_EOPBADSTATE);
	assert_int_equal(fi_ep_bind(w.ep, &w.av->fid, 0), -FI_EOPBADSTATE);
	close_world(&w);
}

static void bindings_are_checked(void **state)
{
	struct fid_eq *eq, *stranger;
	struct fid_fabric *fabric;
	struct world w, other;

	open_domain(&w, FI_THREAD_SAFE);
	open_queues(&w);
	open_domain(&other, FI_THREAD_SAFE);
	open_queues(&other);
	assert_int_equal(fi_ep_bind(w.ep, &other.cq->fid, FI_TRANSMIT), -FI_EDOMAIN);
	assert_int_equal(fi_ep_bind(w.ep, &other.av->fid, 0), -FI_EDOMAIN);
	assert_int_equal(fi_ep_bind(w.ep, &other.cntr->fid, FI_SEND), -FI_EDOMAIN);
	assert_int_equal(fi_ep_bind(w.ep, NULL, 0), -FI_EINVAL);
	assert_int_equal(fi_ep_bind(w.ep, &w.domain->fid, 0), -FI_EINVAL);
	assert_int_equal(fi_ep_bind(w.ep, &w.cq->fid, 0), -FI_EINVAL);
	assert_int_equal(fi_ep_bind(w.ep, &w.cq->fid, FI_SELECTIVE_COMPLETION), -FI_EINVAL);
	assert_int_equal(fi_ep_bind(w.ep, &w.cq->fid, FI_TRANSMIT | FI_MORE), -FI_EBADFLAGS);
	assert_int_equal(fi_ep_bind(w.ep, &w.cntr->fid, FI_REMOTE_WRITE), 0);
	assert_int_equal(fi_ep_bind(w.ep, &w.cntr->fid, 0), -FI_EINVAL);
	assert_int_equal(fi_ep_bind(w.ep, &w.av->fid, 1), -FI_EBADFLAGS);
	assert_int_equal(fi_ep_bind(w.ep, &w.cq->fid, FI_TRANSMIT), 0);
	assert_int_equal(fi_ep_bind(w.ep, &w.cq->fid, FI_TRANSMIT | FI_RECV), -FI_EINVAL);
	assert_int_equal(fi_ep_bind(w.ep, &w.cntr->fid, FI_SEND | FI_RECV), 0);
	assert_int_equal(fi_ep_bind(w.ep, &w.cntr->fid, FI_RECV), -FI_EINVAL);
	assert_int_equal(hd_fi_fabric_open(w.info->fabric_attr, &fabric, NULL), 0);
	assert_int_equal(fi_eq_open(fabric, NULL, &stranger, NULL), 0);
	assert_int_equal(fi_eq_open(w.fabric, NULL, &eq, NULL), 0);
	assert_int_equal(fi_ep_bind(w.ep, &stranger->fid, 0), -FI_EINVAL);
	assert_int_equal(fi_ep_bind(w.ep, &eq->fid, 0), 0);
	assert_int_equal(fi_close(&eq->fid), -FI_EBUSY);
	assert_int_equal(fi_close(&w.ep->fid), 0);
	w.ep = NULL;
	assert_int_equal(fi_close(&eq->fid), 0);
	assert_int_equal(fi_close(&fabric->fid), -FI_EBUSY);
	assert_int_equal(fi_close(&stranger->fid), 0);
	assert_int_equal(fi_close(&fabric->fid), 0);
	close_world(&w);
	close_world(&other);
}

static char said[4096];

static bool hear(void *arg, enum hd_log_level level, const char *room, const char *message)
{
	strncat(said, message, sizeof(said) - strlen(said) - 1);
	return true;
}

/* Programs print an errno, or nothing: the log says where it came from. */
static void refusals_are_told_of(void **state)
{
	struct world w;
	char buf[8];

	open_domain(&w, FI_THREAD_SAFE);
	open_queues(&w);
	hd_log_set_sink(hear, NULL);
	hd_log_raise(HD_LOG_DEBUG);
	said[0] = '\0';
	assert_int_equal(fi_ep_bind(w.ep, &w.cq->fid, FI_TRANSMIT | FI_MORE), -FI_EBADFLAGS);
	assert_non_null(strstr(said, "bind_cq"));
	assert_non_null(strstr(said, fi_strerror(FI_EBADFLAGS)));
	assert_int_equal(fi_recv(w.ep, buf, sizeof(buf), NULL, FI_ADDR_UNSPEC, NULL), -FI_EOPBADSTATE);
	assert_non_null(strstr(said, "idle_recv"));
	hd_log_set_sink(NULL, NULL);
	close_world(&w);
}

static void what_is_in_use_stays_open(void **state)
{
	struct world w;

	open_domain(&w, FI_THREAD_SAFE);
	open_queues(&w);
	assert_int_equal(fi_ep_bind(w.ep, &w.cntr->fid, FI_RECV), 0);
	enable(&w);
	assert_int_equal(fi_close(&w.av->fid), -FI_EBUSY);
	assert_int_equal(fi_close(&w.cq->fid), -FI_EBUSY);
	assert_int_equal(fi_close(&w.cntr->fid), -FI_EBUSY);
	assert_int_equal(fi_close(&w.domain->fid), -FI_EBUSY);
	assert_int_equal(fi_close(&w.fabric->fid), -FI_EBUSY);
	close_world(&w);
}

static void counters_alone_are_enough(void **state)
{
	uint64_t waited = 0;
	struct world w;
	char out = 'x', in = 0;
	char name[64];
	size_t len = sizeof(name);

	open_domain(&w, FI_THREAD_DOMAIN);
	open_queues(&w);
	assert_int_equal(fi_ep_bind(w.ep, &w.av->fid, 0), 0);
	assert_int_equal(fi_ep_bind(w.ep, &w.cntr->fid, FI_SEND | FI_RECV), 0);
	assert_int_equal(fi_enable(w.ep), 0);
	assert_int_equal(fi_getname(&w.ep->fid, name, &len), 0);
	assert_int_equal(fi_av_insert(w.av, name, 1, &w.self, 0, NULL), 1);
	assert_int_equal(fi_recv(w.ep, &in, 1, NULL, FI_ADDR_UNSPEC, NULL), 0);
	assert_int_equal(fi_send(w.ep, &out, 1, NULL, w.self, NULL), 0);
	while (fi_cntr_read(w.cntr) < 2 && waited++ < 1000000)
		;
	assert_int_equal(fi_cntr_read(w.cntr), 2);
	assert_int_equal(in, 'x');
	close_world(&w);
}

/* One direction alone: the other's calls are not there. */
static void a_direction_not_asked_for_is_not_offered(void **state)
{
	struct world w;
	char buf[8];

	open_domain(&w, FI_THREAD_SAFE);
	w.info->caps &= ~(FI_RECV | FI_TAGGED);
	w.info->tx_attr->caps = w.info->rx_attr->caps = 0;
	open_queues(&w);
	enable(&w);
	check_ep_slots(w.ep);
	assert_int_equal(fi_recv(w.ep, buf, 8, NULL, FI_ADDR_UNSPEC, NULL), -FI_ENOSYS);
	assert_int_equal(fi_tsend(w.ep, buf, 8, NULL, w.self, 1, NULL), -FI_ENOSYS);
	assert_int_equal(fi_trecv(w.ep, buf, 8, NULL, FI_ADDR_UNSPEC, 1, 0, NULL), -FI_ENOSYS);
	assert_int_equal(fi_send(w.ep, buf, 8, NULL, w.self, NULL), 0);
	close_world(&w);
}

static void handles_of_others_are_refused(void **state)
{
	struct fi_cq_attr cq_attr = { 0 };
	struct fi_av_attr av_attr = { 0 };
	struct fid_cq *cq;
	struct fid_av *av;
	struct fid_ep *ep;
	struct fid_mr *mr;
	struct world w;
	char buf[8];

	open_domain(&w, FI_THREAD_SAFE);
	open_queues(&w);
	/* calls that reach us through a right table with a wrong handle in it */
	assert_int_equal(w.domain->ops->cq_open((struct fid_domain *)w.cq, &cq_attr, &cq, NULL), -FI_EINVAL);
	assert_int_equal(w.domain->ops->av_open((struct fid_domain *)w.cq, &av_attr, &av, NULL), -FI_EINVAL);
	assert_int_equal(w.domain->ops->endpoint((struct fid_domain *)w.cq, w.info, &ep, NULL), -FI_EINVAL);
	assert_int_equal(w.domain->mr->reg(&w.cq->fid, buf, 8, FI_SEND, 0, 0, 0, &mr, NULL), -FI_EINVAL);
	assert_int_equal(w.fabric->ops->domain((struct fid_fabric *)w.cq, w.info, &w.domain, NULL),
			 -FI_EINVAL);
	close_world(&w);
}

/* ---- the child ------------------------------------------------------------------------------- */

#define CHILD(cond) \
	do { \
		if (!(cond)) \
			_exit(__LINE__ % 250 + 1); \
	} while (0)

static void in_child(struct world *w)
{
	struct fi_cq_tagged_entry entry;
	fi_addr_t addr;
	struct fid_ep *ep;
	char name[64], buf[8];
	size_t len = sizeof(name);

	alarm(10); /* a hang fails too */
	CHILD(fi_tsend(w->ep, buf, 8, NULL, w->self, 1, NULL) == -FI_EOPBADSTATE);
	CHILD(fi_send(w->ep, buf, 8, NULL, w->self, NULL) == -FI_EOPBADSTATE);
	CHILD(fi_inject(w->ep, buf, 8, w->self) == -FI_EOPBADSTATE);
	CHILD(fi_recv(w->ep, buf, 8, NULL, FI_ADDR_UNSPEC, NULL) == -FI_EOPBADSTATE);
	CHILD(fi_cancel(&w->ep->fid, NULL) == -FI_EOPBADSTATE);
	CHILD(fi_getname(&w->ep->fid, name, &len) == -FI_EOPBADSTATE);
	CHILD(fi_cq_read(w->cq, &entry, 1) == -FI_EOPBADSTATE);
	CHILD(fi_cq_readfrom(w->cq, &entry, 1, &addr) == -FI_EOPBADSTATE);
	CHILD(fi_cq_sread(w->cq, &entry, 1, NULL, -1) == -FI_EOPBADSTATE);
	CHILD(fi_cntr_wait(w->cntr, 1, -1) == -FI_EOPBADSTATE);
	CHILD(fi_cntr_read(w->cntr) == 0);
	CHILD(fi_av_insert(w->av, buf, 1, &addr, 0, NULL) == -FI_EOPBADSTATE);
	CHILD(fi_endpoint(w->domain, w->info, &ep, NULL) == -FI_EOPBADSTATE);
	CHILD(fi_trywait(w->fabric, (struct fid *[]){ &w->cq->fid }, 1) == -FI_EOPBADSTATE);
	CHILD(fi_close(&w->ep->fid) == -FI_EOPBADSTATE);
	CHILD(fi_close(&w->domain->fid) == -FI_EOPBADSTATE);
	_exit(0);
}

static void a_forked_child_gets_errors(void **state)
{
	static const enum fi_threading kinds[] = { FI_THREAD_SAFE, FI_THREAD_DOMAIN };

	for (size_t i = 0; i < 2; i++) {
		struct fi_cq_tagged_entry entry;
		struct world w;
		int status, got;
		char in = 0, out = 'y';
		pid_t child;

		open_domain(&w, kinds[i]);
		open_queues(&w);
		enable(&w);
		child = fork();
		assert_true(child >= 0);
		if (!child)
			in_child(&w);
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_true(WIFEXITED(status));
		assert_int_equal(WEXITSTATUS(status), 0);
		/* the parent has noticed nothing */
		assert_int_equal(fi_trecv(w.ep, &in, 1, NULL, FI_ADDR_UNSPEC, 1, 0, NULL), 0);
		while ((got = (int)fi_tinject(w.ep, &out, 1, w.self, 1)) == -FI_EAGAIN)
			; /* there is no link yet */
		assert_int_equal(got, 0);
		while ((got = (int)fi_cq_read(w.cq, &entry, 1)) == -FI_EAGAIN)
			;
		assert_int_equal(got, 1);
		assert_int_equal(in, 'y');
		close_world(&w);
	}
}

/* How many addresses are expected is a hint: none takes memory before it comes. */
static void many_addresses_are_expected(void **state)
{
	struct fi_av_attr attr = {
		.type = FI_AV_TABLE, .count = 1u << 26, .ep_per_node = 1u << 20, .flags = FI_SYMMETRIC
	};
	struct rusage before, after;
	struct world w;

	open_domain(&w, FI_THREAD_SAFE);
	assert_int_equal(getrusage(RUSAGE_SELF, &before), 0);
	assert_int_equal(fi_av_open(w.domain, &attr, &w.av, NULL), 0);
	assert_int_equal(getrusage(RUSAGE_SELF, &after), 0);
	assert_in_range(after.ru_maxrss - before.ru_maxrss, 0, 64 << 10); /* KiB */
	close_world(&w);
}

/*
 * What the child of the next does: one message to who reads at `names`, and everything is closed.
 * By its flag, which does not wait for a link.
 */
static void inject_and_close(int names)
{
	struct iovec iov = { "y", 1 };
	struct fi_msg_tagged msg = { .msg_iov = &iov, .iov_count = 1, .tag = 1 };
	struct world w;
	char name[64];

	if (read(names, name, sizeof(name)) != sizeof(name))
		_exit(1);
	open_domain(&w, FI_THREAD_DOMAIN);
	open_queues(&w);
	enable_with(&w, FI_SELECTIVE_COMPLETION);
	CHILD(fi_av_insert(w.av, name, 1, &msg.addr, 0, NULL) == 1);
	CHILD(fi_tsendmsg(w.ep, &msg, FI_INJECT) == 0);
	close_world(&w);
	_exit(0);
}

/*
 * No completion says of it whether it has left: it is not lost with the endpoint, though
 * nobody had been called before.
 */
static void what_was_injected_outlives_its_endpoint(void **state)
{
	struct fi_cq_tagged_entry entry;
	int names[2], status, got = -FI_EAGAIN;
	struct world w;
	char name[64] = "", in = 0;
	size_t len = sizeof(name);
	pid_t child, ended = 0;

	assert_int_equal(pipe(names), 0);
	child = fork();
	assert_true(child >= 0);
	if (!child)
		inject_and_close(names[0]);
	open_domain(&w, FI_THREAD_DOMAIN);
	open_queues(&w);
	enable(&w);
	assert_int_equal(fi_getname(&w.ep->fid, name, &len), 0);
	assert_int_equal(fi_trecv(w.ep, &in, 1, NULL, FI_ADDR_UNSPEC, 1, 0, NULL), 0);
	assert_int_equal(write(names[1], name, sizeof(name)), sizeof(name));
	/* it has left when its sender has closed, and is found by one of the looks after that */
	for (int looks = 0; got == -FI_EAGAIN && looks < 100000; looks += ended != 0) {
		got = (int)fi_cq_read(w.cq, &entry, 1);
		if (!ended)
			ended = waitpid(child, &status, WNOHANG);
	}
	assert_int_equal(got, 1);
	assert_int_equal(in, 'y');
	assert_true(ended || waitpid(child, &status, 0) == child);
	assert_int_equal(status, 0);
	close_world(&w);
	close(names[0]);
	close(names[1]);
}

/*
 * What cannot be received by a call cannot be deferred: the buffers of one that shares a
 * receive context are that one's.
 */
static void deferred_receives_are_refused_as_others(void **state)
{
	static const uint64_t kinds[] = { FI_OP_RECV, FI_OP_TRECV };
	struct fid_ep *srx;
	struct world w;
	char buf[8];
	struct iovec iov = { buf, sizeof(buf) };

	open_domain(&w, FI_THREAD_SAFE);
	w.info->ep_attr->rx_ctx_cnt = FI_SHARED_CONTEXT;
	open_queues(&w);
	assert_int_equal(fi_srx_context(w.domain, w.info->rx_attr, &srx, NULL), 0);
	assert_int_equal(fi_ep_bind(w.ep, &srx->fid, 0), 0);
	enable(&w);
	for (int i = 0; i < 2; i++) {
		struct fi_op_msg msg = { .ep = w.ep, .msg = { .msg_iov = &iov, .iov_count = 1 } };
		struct fi_op_tagged tagged = { .ep = w.ep, .msg = { .msg_iov = &iov, .iov_count = 1 } };
		struct fi_deferred_work work = { .threshold = 1,
						 .triggering_cntr = w.cntr,
						 .completion_cntr = w.cntr,
						 .op_type = (enum fi_op_type)kinds[i],
						 .op.msg = &msg };

		if (i)
			work.op.tagged = &tagged;
		assert_int_equal(i ? fi_trecvmsg(w.ep, &tagged.msg, 0) : fi_recvmsg(w.ep, &msg.msg, 0),
				 -FI_ENOSYS);
		assert_int_equal(fi_control(&w.domain->fid, FI_QUEUE_WORK, &work), -FI_ENOSYS);
	}
	assert_int_equal(fi_close(&w.ep->fid), 0);
	w.ep = NULL;
	assert_int_equal(fi_close(&srx->fid), 0);
	close_world(&w);
}

static void counters_have_flags_to_be_asked_for(void **state)
{
	uint64_t flags = FI_COMPLETION;
	struct world w;

	open_domain(&w, FI_THREAD_SAFE);
	open_queues(&w);
	assert_int_equal(fi_control(&w.cntr->fid, FI_SETOPSFLAG, &flags), -FI_EBADFLAGS);
	assert_int_equal(fi_control(&w.cntr->fid, FI_GETOPSFLAG, NULL), -FI_EINVAL);
	assert_int_equal(fi_control(&w.cntr->fid, FI_GETOPSFLAG, &flags), 0);
	assert_int_equal(flags, 0);
	assert_int_equal(fi_control(&w.cntr->fid, FI_SETOPSFLAG, &flags), 0);
	close_world(&w);
}

/* Flags of fi_av(3) that ask nothing of a provider are taken. */
static void addresses_come_with_hints(void **state)
{
	const struct sockaddr_in there = { .sin_family = AF_INET,
					   .sin_port = htons(7471),
					   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct world w;
	fi_addr_t addr;

	open_domain(&w, FI_THREAD_SAFE);
	open_queues(&w);
	assert_int_equal(fi_av_insert(w.av, &there, 1, &addr, FI_MORE | FI_FIREWALL_ADDR, NULL), 1);
	assert_int_equal(fi_av_insert(w.av, &there, 1, &addr, FI_REMOTE_READ, NULL), -FI_EBADFLAGS);
	close_world(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_slot_is_empty),
		cmocka_unit_test(enabling_needs_what_was_promised),
		cmocka_unit_test(bindings_are_checked),
		cmocka_unit_test(refusals_are_told_of),
		cmocka_unit_test(what_is_in_use_stays_open),
		cmocka_unit_test(counters_alone_are_enough),
		cmocka_unit_test(a_direction_not_asked_for_is_not_offered),
		cmocka_unit_test(handles_of_others_are_refused),
		cmocka_unit_test(many_addresses_are_expected),
		cmocka_unit_test(what_was_injected_outlives_its_endpoint),
		cmocka_unit_test(a_forked_child_gets_errors),
		cmocka_unit_test(deferred_receives_are_refused_as_others),
		cmocka_unit_test(addresses_come_with_hints),
		cmocka_unit_test(counters_have_flags_to_be_asked_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
