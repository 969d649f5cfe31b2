/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Deferred work, fi_trigger(3). */
#include "region.h"
#include "triggered.h"

#include <rdma/fi_rma.h>
#include <rdma/fi_trigger.h>
#include <stdlib.h>
#include <string.h>

static void queue(struct ct_ep *e, struct fi_deferred_work *w)
{
	int rc = fi_control(&e->dom->domain->fid, FI_QUEUE_WORK, w);

	if (rc == -FI_ENOSYS)
		ct_unsupported(e->ct, "FI_QUEUE_WORK: %s", fi_strerror(-rc));
	CT_OK(e->ct, rc);
}

/* A message of deferred work: its structures, which live until it has ended. */
struct item {
	struct fi_deferred_work work;
	union {
		struct fi_op_msg msg;
		struct fi_op_tagged tagged;
		struct fi_op_cntr cntr;
	} op;
	struct iovec iov;
};

static void message(struct item *it, struct ct_ep *e, enum fi_op_type type, void *buf, size_t len,
		    uint64_t flags)
{
	bool receives = type == FI_OP_RECV || type == FI_OP_TRECV;
	fi_addr_t addr = receives ? FI_ADDR_UNSPEC : e->addr[!e->ct->rank];

	memset(it, 0, sizeof(*it));
	it->iov = (struct iovec){ buf, len };
	it->work.op_type = type;
	if (type == FI_OP_SEND || type == FI_OP_RECV) {
		it->op.msg = (struct fi_op_msg){ .ep = e->ep, .flags = flags };
		it->op.msg.msg =
			(struct fi_msg){ .msg_iov = &it->iov, .iov_count = 1, .addr = addr, .context = it };
		it->work.op.msg = &it->op.msg;
	} else {
		it->op.tagged = (struct fi_op_tagged){ .ep = e->ep, .flags = flags };
		it->op.tagged.msg = (struct fi_msg_tagged){
			.msg_iov = &it->iov, .iov_count = 1, .addr = addr, .tag = 1, .context = it
		};
		it->work.op.tagged = &it->op.tagged;
	}
}

static void number(struct item *it, enum fi_op_type type, struct fid_cntr *c, uint64_t value)
{
	memset(it, 0, sizeof(*it));
	it->work.op_type = type;
	it->op.cntr = (struct fi_op_cntr){ .cntr = c, .value = value };
	it->work.op.cntr = &it->op.cntr;
}

static void submit(struct ct_ep *e, struct item *it, struct fid_cntr *trigger, uint64_t threshold,
		   struct fid_cntr *done)
{
	it->work.triggering_cntr = trigger;
	it->work.threshold = threshold;
	it->work.completion_cntr = done;
	queue(e, &it->work);
}

/*
 * Messages of both kinds and ways: only the completion counter moves, unless
 * FI_COMPLETION asks for more.
 */
static void work(struct ct *ct)
{
	static const enum fi_op_type types[2][2] = { { FI_OP_SEND, FI_OP_TSEND },
						     { FI_OP_RECV, FI_OP_TRECV } };
	size_t len = ct->cs->arg;
	char *buf = ct_alloc(ct, 4 * len);
	struct fid_cntr *trigger, *done;
	struct item item[4];
	struct ct_dom dom;
	struct ct_ep e;
	size_t i;

	ct_start(ct, &dom, &e, &triggering);
	trigger = tr_cntr(&dom);
	done = tr_cntr(&dom);
	for (i = 0; i < 4; i++) {
		if (!ct->rank)
			ct_fill(buf + i * len, len, i);
		message(&item[i], &e, types[ct->rank][i % 2], buf + i * len, len, i < 2 ? 0 : FI_COMPLETION);
		submit(&e, &item[i], trigger, 1 + i / 2, done);
	}
	ct_quiet(&e, 30, "deferred work");
	CT_EQ(ct, fi_cntr_read(done), 0);
	ct_sync(ct, &e);
	CT_OK(ct, fi_cntr_add(trigger, 1));
	ct_reaches(&e, done, 2);
	ct_quiet(&e, 30, "work without FI_COMPLETION");
	CT_OK(ct, fi_cntr_adderr(trigger, 1)); /* errors count as well */
	ct_reaches(&e, done, 4);
	for (i = 2; i < 4; i++)
		ct_done(&e, &item[i]);
	CT_EQ(ct, fi_cntr_read(ct->rank ? e.rxcntr : e.txcntr), 0);
	for (i = 0; ct->rank && i < 4; i++)
		ct_verify(ct, buf + i * len, len, i, "deferred work");
	ct_ping(&e, !ct->rank);
	CT_OK(ct, fi_close(&trigger->fid));
	CT_OK(ct, fi_close(&done->fid));
	free(buf);
	ct_finish(&e);
}

/* Counters that change counters: a chain, and a send at its end. */
static void chain(struct ct *ct)
{
	struct fid_cntr *c[MANY + 1];
	struct item item[MANY + 1];
	struct ct_dom dom;
	struct ct_ep e;
	char buf[8] = "end";
	int i;

	ct_start(ct, &dom, &e, &triggering);
	if (!ct->rank) {
		for (i = 0; i <= MANY; i++)
			c[i] = tr_cntr(&dom);
		for (i = 0; i < MANY; i++) {
			number(&item[i], i % 2 ? FI_OP_CNTR_SET : FI_OP_CNTR_ADD, c[i + 1], 10);
			submit(&e, &item[i], c[i], 10, NULL);
		}
		message(&item[MANY], &e, FI_OP_TSEND, buf, 8, FI_COMPLETION);
		submit(&e, &item[MANY], c[MANY], 10, NULL);
		CT_OK(ct, fi_cntr_set(c[0], 10));
		ct_done(&e, &item[MANY]);
		for (i = 0; i <= MANY; i++) {
			CT_EQ(ct, fi_cntr_read(c[i]), 10);
			CT_OK(ct, fi_close(&c[i]->fid));
		}
	} else {
		ct_trecv(&e, buf, 8, 1, 0, CTX(1));
		ct_done(&e, CTX(1));
	}
	ct_finish(&e);
}

/*
 * A triggered write, and a read as deferred work, of the memory of rank 0,
 * which only makes progress.
 */
static void one_sided(struct ct *ct)
{
	struct ct_want want = { .caps = FI_MSG | FI_TAGGED | FI_RMA | FI_TRIGGER, .counters = true };
	struct fi_triggered_context ctx;
	struct fi_deferred_work work = { .op_type = FI_OP_READ };
	struct fi_op_rma op = { 0 };
	struct fi_rma_iov there;
	struct fid_cntr *c, *done;
	struct iovec iov;
	size_t len = ct->cs->arg;
	char *buf = ct_alloc(ct, len), *back = ct_alloc(ct, len);
	struct fid_mr *mr;
	struct ct_dom dom;
	struct ct_ep e;

	ct_start(ct, &dom, &e, &want);
	if (!ct->rank) {
		CT_OK(ct,
		      fi_mr_reg(dom.domain, buf, len, FI_REMOTE_WRITE | FI_REMOTE_READ, 0, 7, 0, &mr, NULL));
		there = (struct fi_rma_iov){ .len = len, .key = fi_mr_key(mr) };
		if (dom.info->domain_attr->mr_mode & FI_MR_VIRT_ADDR)
			there.addr = (uintptr_t)buf;
		ct_put(ct, 1, &there, sizeof(there));
		ct_sync(ct, &e);
		ct_verify(ct, buf, len, 3, "a triggered write");
		CT_OK(ct, fi_close(&mr->fid));
		ct_finish(&e);
		free(buf);
		free(back);
		return;
	}
	ct_get(ct, &e, 0, &there, sizeof(there));
	c = tr_cntr(&dom);
	done = tr_cntr(&dom);
	ct_fill(buf, len, 3);
	iov = (struct iovec){ buf, len };
	op.ep = e.ep;
	op.msg = (struct fi_msg_rma){ .msg_iov = &iov,
				      .iov_count = 1,
				      .addr = e.addr[0],
				      .rma_iov = &there,
				      .rma_iov_count = 1,
				      .context = &ctx };
	tr_when(&ctx, c, 1);
	CT_OK(ct, fi_writemsg(e.ep, &op.msg, FI_TRIGGER | FI_COMPLETION | FI_DELIVERY_COMPLETE));
	ct_quiet(&e, 30, "the trigger of a write");
	CT_OK(ct, fi_cntr_add(c, 1));
	ct_done(&e, &ctx);
	iov.iov_base = back;
	work.op.rma = &op;
	work.triggering_cntr = c;
	work.completion_cntr = done;
	work.threshold = 2;
	queue(&e, &work);
	CT_OK(ct, fi_cntr_add(c, 1));
	ct_reaches(&e, done, 1);
	ct_verify(ct, back, len, 3, "a deferred read");
	ct_quiet(&e, 30, "deferred work");
	ct_sync(ct, &e);
	CT_OK(ct, fi_close(&c->fid));
	CT_OK(ct, fi_close(&done->fid));
	ct_finish(&e);
	free(buf);
	free(back);
}

/* An addition that is triggered, then one that fetches as deferred work, at a word of rank 0. */
static void atomics(struct ct *ct)
{
	struct ct_want want = { .caps = FI_MSG | FI_TAGGED | FI_ATOMIC | FI_TRIGGER, .counters = true };
	struct fi_deferred_work work = { .op_type = FI_OP_FETCH_ATOMIC };
	uint64_t word = 100, operand = 5, result = 0;
	struct fi_op_fetch_atomic op = { 0 };
	struct fi_triggered_context ctx;
	struct fi_rma_ioc there;
	struct fid_cntr *c, *done;
	struct fi_ioc ioc = { &operand, 1 }, to = { &result, 1 };
	struct fid_mr *mr;
	struct ct_dom dom;
	struct ct_ep e;

	ct_start(ct, &dom, &e, &want);
	if (!ct->rank) {
		CT_OK(ct,
		      fi_mr_reg(dom.domain, &word, 8, FI_REMOTE_WRITE | FI_REMOTE_READ, 0, 7, 0, &mr, NULL));
		there = (struct fi_rma_ioc){ .count = 1, .key = fi_mr_key(mr) };
		if (dom.info->domain_attr->mr_mode & FI_MR_VIRT_ADDR)
			there.addr = (uintptr_t)&word;
		ct_put(ct, 1, &there, sizeof(there));
		ct_sync(ct, &e);
		CT_EQ(ct, word, 112);
		CT_OK(ct, fi_close(&mr->fid));
		ct_finish(&e);
		return;
	}
	ct_get(ct, &e, 0, &there, sizeof(there));
	c = tr_cntr(&dom);
	done = tr_cntr(&dom);
	op.ep = e.ep;
	op.msg = (struct fi_msg_atomic){ .msg_iov = &ioc,
					 .iov_count = 1,
					 .addr = e.addr[0],
					 .rma_iov = &there,
					 .rma_iov_count = 1,
					 .datatype = FI_UINT64,
					 .op = FI_SUM,
					 .context = &ctx };
	tr_when(&ctx, c, 1);
	CT_OK(ct, fi_atomicmsg(e.ep, &op.msg, FI_TRIGGER | FI_COMPLETION | FI_INJECT));
	operand = 7; /* injected: the 5 is theirs */
	ct_quiet(&e, 30, "the trigger of an atomic operation");
	CT_OK(ct, fi_cntr_add(c, 1));
	ct_done(&e, &ctx);
	op.fetch = (struct fi_msg_fetch){ .msg_iov = &to, .iov_count = 1 };
	work.op.fetch_atomic = &op;
	work.triggering_cntr = c;
	work.completion_cntr = done;
	work.threshold = 2;
	queue(&e, &work);
	CT_OK(ct, fi_cntr_add(c, 1));
	ct_reaches(&e, done, 1);
	CT_EQ(ct, result, 105);
	ct_quiet(&e, 30, "deferred work");
	ct_sync(ct, &e);
	CT_OK(ct, fi_close(&c->fid));
	CT_OK(ct, fi_close(&done->fid));
	ct_finish(&e);
}

/*
 * Two that compare, as deferred work: the first finds what it compares with,
 * and the second does not.
 */
static void compares(struct ct *ct)
{
	static const uint64_t expect[2] = { 0, 5 };
	struct ct_want want = { .caps = FI_MSG | FI_TAGGED | FI_ATOMIC | FI_TRIGGER, .counters = true };
	uint64_t operand[2] = { 7, 9 }, old[2] = { 77, 77 };
	struct ct_region r;
	struct ct_place at;
	struct ct_dom dom;
	struct ct_ep e;

	ct_start(ct, &dom, &e, &want);
	ct_offer(&e, &r, 8, FI_REMOTE_READ | FI_REMOTE_WRITE, &at);
	if (!ct->rank) {
		struct fid_cntr *c = tr_cntr(&dom), *done = tr_cntr(&dom);
		struct fi_rma_ioc there = { at.addr, 1, at.key };
		struct fi_op_compare_atomic op[2];
		struct fi_deferred_work work[2];
		struct fi_ioc with[2], give[2], get[2];

		for (int i = 0; i < 2; i++) {
			give[i] = (struct fi_ioc){ &operand[i], 1 };
			with[i] = (struct fi_ioc){ (void *)&expect[i], 1 };
			get[i] = (struct fi_ioc){ &old[i], 1 };
			op[i] = (struct fi_op_compare_atomic){
				.ep = e.ep,
				.msg = { .msg_iov = &give[i],
					 .iov_count = 1,
					 .addr = e.addr[1],
					 .rma_iov = &there,
					 .rma_iov_count = 1,
					 .datatype = FI_UINT64,
					 .op = FI_CSWAP },
				.fetch = { .msg_iov = &get[i], .iov_count = 1 },
				.compare = { .msg_iov = &with[i], .iov_count = 1 },
			};
			work[i] = (struct fi_deferred_work){ .op_type = FI_OP_COMPARE_ATOMIC,
							     .op.compare_atomic = &op[i],
							     .triggering_cntr = i ? done : c,
							     .completion_cntr = done,
							     .threshold = 1 };
			queue(&e, &work[i]);
		}
		ct_quiet(&e, 30, "what is deferred");
		CT_EQ(ct, old[0], 77);
		CT_OK(ct, fi_cntr_add(c, 1));
		ct_reaches(&e, done, 2);
		CT_EQ(ct, old[0], 0);
		CT_EQ(ct, old[1], 7);
		CT_OK(ct, fi_close(&c->fid));
		CT_OK(ct, fi_close(&done->fid));
	}
	ct_sync(ct, &e);
	if (ct->rank)
		CT_EQ(ct, *(uint64_t *)r.mem, 7);
	ct_take_back(&e, &r);
}

static int control(struct ct_dom *dom, int command, void *arg)
{
	return fi_control(&dom->domain->fid, command, arg);
}

/* What is cancelled or flushed never happens, and its counters can be closed. */
static void undo(struct ct *ct)
{
	struct fid_cntr *trigger, *other, *target;
	struct item item[3];
	struct ct_dom dom;
	struct ct_ep e;

	ct_open(ct, &dom, &triggering);
	ct_ep_open(&dom, &e);
	trigger = tr_cntr(&dom);
	other = tr_cntr(&dom);
	target = tr_cntr(&dom);
	for (int i = 0; i < 3; i++) {
		number(&item[i], FI_OP_CNTR_ADD, target, 1);
		submit(&e, &item[i], i < 2 ? trigger : other, 1, NULL);
	}
	CT_OK(ct, control(&dom, FI_CANCEL_WORK, &item[0].work));
	CT_REFUSED(ct, control(&dom, FI_CANCEL_WORK, &item[0].work));
	CT_EQ(ct, fi_close(&trigger->fid), -FI_EBUSY);
	CT_EQ(ct, fi_close(&target->fid), -FI_EBUSY);
	CT_OK(ct, fi_cntr_add(trigger, 1));
	ct_reaches(&e, target, 1);
	CT_OK(ct, control(&dom, FI_FLUSH_WORK, NULL));
	CT_OK(ct, fi_cntr_add(other, 1));
	CT_EQ(ct, fi_cntr_read(target), 1);
	CT_OK(ct, fi_close(&trigger->fid));
	CT_OK(ct, fi_close(&other->fid));
	CT_OK(ct, fi_close(&target->fid));
	ct_ep_close(&e);
	ct_close(&dom);
}

/* What is wrong is refused at the call; a counter operation completes nothing. */
static void work_refused(struct ct *ct)
{
	struct fid_cntr *c;
	struct item it;
	struct ct_dom dom;
	struct ct_ep e;
	char buf[8];

	ct_open(ct, &dom, &triggering);
	ct_ep_open(&dom, &e);
	c = tr_cntr(&dom);
	e.addr[!ct->rank] = ct_insert(&e, e.name);
	number(&it, FI_OP_CNTR_ADD, c, 1);
	submit(&e, &it, c, 99, NULL); /* is it there at all? */
	CT_OK(ct, control(&dom, FI_CANCEL_WORK, &it.work));
	it.work.triggering_cntr = NULL;
	CT_REFUSED(ct, control(&dom, FI_QUEUE_WORK, &it.work));
	it.work.triggering_cntr = c;
	it.work.completion_cntr = c; /* none is meant to be there, and it stays as it is */
	it.work.threshold = 0;
	CT_OK(ct, control(&dom, FI_QUEUE_WORK, &it.work));
	ct_reaches(&e, c, 1);
	message(&it, &e, FI_OP_SEND, buf, dom.info->ep_attr->max_msg_size + 1, 0);
	it.work.triggering_cntr = c;
	CT_REFUSED(ct, control(&dom, FI_QUEUE_WORK, &it.work));
	it.work.op_type = (enum fi_op_type)99;
	CT_REFUSED(ct, control(&dom, FI_QUEUE_WORK, &it.work));
	it.work.op_type = FI_OP_SEND;
	it.work.op.msg = NULL;
	CT_REFUSED(ct, control(&dom, FI_QUEUE_WORK, &it.work));
	CT_OK(ct, fi_close(&c->fid));
	ct_ep_close(&e);
	ct_close(&dom);
}

/*
 * An endpoint is closed with work that waits and work under way, whose buffers
 * are the program's again.
 */
static void work_close(struct ct *ct)
{
	struct fid_cntr *trigger, *done;
	struct item item[2];
	struct ct_dom dom;
	struct ct_ep e;
	char buf[2][8];

	ct_open(ct, &dom, &triggering);
	ct_ep_open(&dom, &e);
	trigger = tr_cntr(&dom);
	done = tr_cntr(&dom);
	for (uint64_t i = 0; i < 2; i++) {
		message(&item[i], &e, FI_OP_TRECV, buf[i], 8, 0);
		submit(&e, &item[i], trigger, i, done);
	}
	CT_EQ(ct, fi_close(&done->fid), -FI_EBUSY);
	ct_ep_close(&e);
	CT_OK(ct, fi_close(&trigger->fid));
	CT_OK(ct, fi_close(&done->fid));
	ct_close(&dom);
}

/*
 * Space in front of every buffer, FI_MSG_PREFIX: also for calls that are made
 * later. arg: by deferred work
 */
static void prefixed(struct ct *ct)
{
	static const enum fi_op_type types[2][2] = { { FI_OP_SEND, FI_OP_TSEND },
						     { FI_OP_RECV, FI_OP_TRECV } };
	struct ct_want want = triggering;
	struct fi_triggered_context ctx[2];
	struct item item[2];
	struct ct_dom dom;
	struct ct_ep e;
	struct fid_cntr *c, *done;
	size_t p, len = 100;
	char *buf;

	want.mode = FI_MSG_PREFIX;
	ct_start(ct, &dom, &e, &want);
	c = tr_cntr(&dom);
	done = tr_cntr(&dom);
	p = dom.info->ep_attr->msg_prefix_size;
	buf = ct_alloc(ct, 2 * (p + len));
	for (int i = 0; i < 2; i++) {
		char *at = buf + (size_t)i * (p + len);

		if (!ct->rank)
			ct_fill(at + p, len, 60 + i);
		message(&item[i], &e, types[ct->rank][i], at, p + len, FI_COMPLETION);
		tr_when(&ctx[i], c, 1);
		item[i].op.msg.msg.context = ct->cs->arg ? (void *)&item[i] : (void *)&ctx[i];
		if (i)
			item[i].op.tagged.msg.context = ct->cs->arg ? (void *)&item[i] : (void *)&ctx[i];
		if (ct->cs->arg)
			submit(&e, &item[i], c, 1, done);
		else if (i && ct->rank)
			CT_OK(ct, fi_trecvmsg(e.ep, &item[i].op.tagged.msg, FI_TRIGGER | FI_COMPLETION));
		else if (i)
			CT_OK(ct, fi_tsendmsg(e.ep, &item[i].op.tagged.msg, FI_TRIGGER | FI_COMPLETION));
		else if (ct->rank)
			CT_OK(ct, fi_recvmsg(e.ep, &item[i].op.msg.msg, FI_TRIGGER | FI_COMPLETION));
		else
			CT_OK(ct, fi_sendmsg(e.ep, &item[i].op.msg.msg, FI_TRIGGER | FI_COMPLETION));
	}
	if (ct->cs->arg) { /* no room for the prefix */
		struct item bad;

		message(&bad, &e, types[ct->rank][0], buf, p - 1, 0);
		bad.work.triggering_cntr = c;
		CT_EQ(ct, fi_control(&dom.domain->fid, FI_QUEUE_WORK, &bad.work), -FI_EINVAL);
	}
	CT_OK(ct, fi_cntr_add(c, 1));
	for (int i = 0; i < 2; i++) {
		size_t n = ct_done(&e, ct->cs->arg ? (void *)&item[i] : (void *)&ctx[i]);

		if (ct->rank)
			CT_EQ(ct, n, p + len);
		ct_verify(ct, buf + (size_t)i * (p + len) + p, len, 60 + i, "a message behind a prefix");
	}
	ct_sync(ct, &e);
	CT_OK(ct, fi_close(&c->fid));
	CT_OK(ct, fi_close(&done->fid));
	free(buf);
	ct_finish(&e);
}

const struct ct_case ct_work[] = {
	{ "TRIGGER", "prefix", CT_TWO(prefixed), .arg = 0 },
	{ "TRIGGER", "prefix-work", CT_TWO(prefixed), .arg = 1 },
	{ "TRIGGER", "work", CT_TWO(work), .arg = 64 },
	{ "TRIGGER", "work-large", CT_TWO(work), .arg = 1 << 20 },
	{ "TRIGGER", "chain", CT_TWO(chain) },
	{ "TRIGGER", "one-sided", CT_TWO(one_sided), .arg = 64 },
	{ "TRIGGER", "one-sided-large", CT_TWO(one_sided), .arg = 3 << 20 },
	{ "TRIGGER", "atomics", CT_TWO(atomics) },
	{ "TRIGGER", "compares", CT_TWO(compares) },
	{ "TRIGGER", "undo", { undo } },
	{ "TRIGGER", "work-refused", { work_refused } },
	{ "TRIGGER", "work-close", { work_close } },
	{ 0 },
};
