/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Atomic operations: fi_atomic(3). Rank 0 changes the memory of rank 1, which does no more than
 * wait in ct_sync, where it makes progress.
 */
#include "region.h"

#include <rdma/fi_atomic.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define LEN 8192
#define ALL (FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE)
#define WRITE_ORDER (FI_ORDER_WAW | FI_ORDER_RAW | FI_ORDER_WAR | FI_ORDER_RAR)

static const struct ct_want atomics = { .caps = FI_MSG | FI_TAGGED | FI_ATOMIC };

/* One operation on elements that lie one behind the other, with everything that a call may need. */
struct op {
	enum fi_datatype type;
	enum fi_op op;
	size_t count;
	const void *buf, *compare;
	void *result;
};

static bool is_compare(enum fi_op op)
{
	return op >= FI_CSWAP;
}

/* Base, fetching or comparing, as the operation and its result ask for. */
static ssize_t start(struct ct_ep *e, const struct op *o, struct ct_place at, void *ctx)
{
	if (is_compare(o->op))
		return fi_compare_atomic(e->ep, o->buf, o->count, NULL, o->compare, NULL, o->result, NULL,
					 e->addr[1], at.addr, at.key, o->type, o->op, ctx);
	if (o->result)
		return fi_fetch_atomic(e->ep, o->buf, o->count, NULL, o->result, NULL, e->addr[1], at.addr,
				       at.key, o->type, o->op, ctx);
	return fi_atomic(e->ep, o->buf, o->count, NULL, e->addr[1], at.addr, at.key, o->type, o->op, ctx);
}

static void ended(struct ct_ep *e, const struct op *o, void *ctx)
{
	uint64_t what = FI_ATOMIC | (o->result ? FI_READ : FI_WRITE);
	struct ct_comp c;

	ct_of(e, ctx, &c);
	CT_EQ(e->ct, c.err, 0);
	CT_EQ(e->ct, c.flags & (FI_ATOMIC | FI_RMA | FI_READ | FI_WRITE | FI_SEND), what);
}

static void perform(struct ct_ep *e, const struct op *o, struct ct_place at)
{
	CT_POST(e, start(e, o, at, CTX(1)));
	ended(e, o, CTX(1));
}

static uint64_t fetch(struct ct_ep *e, struct ct_place at)
{
	uint64_t old = 0;

	perform(e, &(struct op){ FI_UINT64, FI_ATOMIC_READ, 1, NULL, NULL, &old }, at);
	return old;
}

static void store(struct ct_ep *e, struct ct_place at, uint64_t value)
{
	perform(e, &(struct op){ FI_UINT64, FI_ATOMIC_WRITE, 1, &value, NULL, NULL }, at);
}

/* ---- what each operation does ---------------------------------------------------------------- */

/* The page's own words, in one type each. */
#define EXPECT(T, a, b, c, integer) \
	switch (op) { \
	case FI_MIN: \
		return b < a ? b : a; \
	case FI_MAX: \
		return b > a ? b : a; \
	case FI_SUM: \
		return (T)(a + b); \
	case FI_PROD: \
		return (T)(a * b); \
	case FI_LOR: \
		return a || b; \
	case FI_LAND: \
		return a && b; \
	case FI_LXOR: \
		return (a && !b) || (!a && b); \
	case FI_ATOMIC_READ: \
		return a; \
	case FI_ATOMIC_WRITE: \
		return b; \
	case FI_CSWAP: \
		return c == a ? b : a; \
	case FI_CSWAP_NE: \
		return c != a ? b : a; \
	case FI_CSWAP_LE: \
		return c <= a ? b : a; \
	case FI_CSWAP_LT: \
		return c < a ? b : a; \
	case FI_CSWAP_GE: \
		return c >= a ? b : a; \
	case FI_CSWAP_GT: \
		return c > a ? b : a; \
		integer default : abort(); \
	}

#define BITS(T, a, b, c) \
	case FI_BOR: \
		return (T)(a | b); \
	case FI_BAND: \
		return (T)(a & b); \
	case FI_BXOR: \
		return (T)(a ^ b); \
	case FI_MSWAP: \
		return (T)((b & c) | (a & ~c));

/* Three elements between two others, with small values that make every branch happen. */
#define CHECK_TYPE(T, TYPE, integer) \
	static T T##_expected(enum fi_op op, T a, T b, T c) \
	{ \
		EXPECT(T, a, b, c, integer) \
	} \
	static void T##_operation(struct ct_ep *e, enum fi_op op, bool result, struct ct_place at, \
				  unsigned salt) \
	{ \
		T before[5], after[5], buf[3], compare[3], old[3] = { 0 }; \
		struct op o = { TYPE, op, 3, buf, compare, result ? old : NULL }; \
		struct op all = { TYPE, FI_ATOMIC_WRITE, 5, before, NULL, NULL }; \
		struct ct_place inner = { at.addr + sizeof(T), at.key }; \
		for (unsigned i = 0; i < 5; i++) \
			before[i] = (T)((salt * 7 + i * 5) % 4); \
		for (unsigned i = 0; i < 3; i++) { \
			buf[i] = (T)((salt + i) % 3); \
			compare[i] = (T)((salt * 3 + i) % 4); \
		} \
		perform(e, &all, at); \
		perform(e, &o, inner); \
		perform(e, &(struct op){ TYPE, FI_ATOMIC_READ, 5, NULL, NULL, after }, at); \
		CT_TRUE(e->ct, after[0] == before[0] && after[4] == before[4]); \
		for (unsigned i = 0; i < 3; i++) { \
			if (after[i + 1] != T##_expected(op, before[i + 1], buf[i], compare[i])) \
				ct_fail(e->ct, "%s on %s: wrong result", fi_tostr(&op, FI_TYPE_ATOMIC_OP), \
					#T); \
			CT_TRUE(e->ct, !result || old[i] == before[i + 1]); \
		} \
	}

CHECK_TYPE(int8_t, FI_INT8, BITS(int8_t, a, b, c))
CHECK_TYPE(uint16_t, FI_UINT16, BITS(uint16_t, a, b, c))
CHECK_TYPE(int32_t, FI_INT32, BITS(int32_t, a, b, c))
CHECK_TYPE(uint64_t, FI_UINT64, BITS(uint64_t, a, b, c))
CHECK_TYPE(float, FI_FLOAT, )
CHECK_TYPE(double, FI_DOUBLE, )

static const struct {
	enum fi_datatype type;
	void (*run)(struct ct_ep *e, enum fi_op op, bool result, struct ct_place at, unsigned salt);
} checks[] = {
	{ FI_INT8, int8_t_operation },	   { FI_UINT16, uint16_t_operation }, { FI_INT32, int32_t_operation },
	{ FI_UINT64, uint64_t_operation }, { FI_FLOAT, float_operation },     { FI_DOUBLE, double_operation },
};

static bool has(struct ct_ep *e, enum fi_datatype type, enum fi_op op, bool result)
{
	size_t n = 0;

	if (is_compare(op))
		return result && !fi_compare_atomicvalid(e->ep, type, op, &n) && n >= 3;
	if (result)
		return !fi_fetch_atomicvalid(e->ep, type, op, &n) && n >= 3;
	return !fi_atomicvalid(e->ep, type, op, &n) && n >= 3;
}

/* arg: whether results come back. */
static void operations(struct ct *ct)
{
	bool result = ct->cs->arg;
	struct ct_rig x;
	unsigned done = 0;

	ct_rig_open(&x, ct, &atomics, LEN, ALL);
	for (size_t t = 0; !ct->rank && t < CT_COUNT(checks); t++) {
		if (!has(&x.e, checks[t].type, FI_ATOMIC_WRITE, false) ||
		    !has(&x.e, checks[t].type, FI_ATOMIC_READ, true))
			continue;
		for (int op = FI_MIN; op < FI_ATOMIC_OP_LAST; op++)
			for (unsigned salt = 0; salt < 12 && has(&x.e, checks[t].type, op, result); salt++) {
				checks[t].run(&x.e, op, result, x.at, salt);
				done++;
			}
	}
	if (!ct->rank && !done)
		ct_unsupported(ct, "no operation on three elements of any type");
	ct_take_back(&x.e, &x.r);
}

/* All that are offered take their greatest count; what is offered here is offered by the domain. */
static void counts(struct ct *ct)
{
	static char buf[65536], result[65536];
	struct ct_rig x;

	ct_rig_open(&x, ct, &atomics, sizeof(buf), ALL);
	for (int type = 0; !ct->rank && type < FI_DATATYPE_LAST; type++)
		for (int op = FI_MIN; op < FI_ATOMIC_OP_LAST; op++) {
			struct fi_atomic_attr attr;
			uint64_t flags = is_compare(op) ? FI_COMPARE_ATOMIC : FI_FETCH_ATOMIC;
			int rc = fi_query_atomic(x.dom.domain, type, op, &attr, flags);
			struct op o = { type, op, 0, buf, buf, result };

			CT_EQ(ct, rc,
			      is_compare(op) ? fi_compare_atomicvalid(x.e.ep, type, op, &o.count)
					     : fi_fetch_atomicvalid(x.e.ep, type, op, &o.count));
			if (rc) {
				CT_EQ(ct, rc, -FI_EOPNOTSUPP);
				CT_EQ(ct,
				      start(&x.e, &(struct op){ type, op, 1, buf, buf, result }, x.at, NULL),
				      -FI_EOPNOTSUPP);
				continue;
			}
			CT_EQ(ct, attr.count, o.count);
			CT_TRUE(ct, attr.size && o.count && o.count * attr.size <= sizeof(buf));
			perform(&x.e, &o, x.at);
			o.count++;
			CT_EQ(ct, start(&x.e, &o, x.at, NULL), -FI_EMSGSIZE);
		}
	ct_take_back(&x.e, &x.r);
}

/* ---- the calls ------------------------------------------------------------------------------- */

/*
 * Segments here for operands, comparands and results, cut differently; and there, with
 * fi_compare_atomicmsg and fi_fetch_atomicmsg.
 */
static void vectors(struct ct *ct)
{
	uint64_t buf[8] = { 11, 12, 13, 14, 15, 16, 17, 18 }, compare[8], old[9] = { 0 };
	struct fi_ioc operands[] = { { buf, 3 }, { buf + 3, 5 } }, results[] = { { old, 1 }, { old + 2, 7 } };
	struct fi_ioc compares[] = { { compare, 6 }, { compare + 6, 2 } };
	struct ct_rig x;

	ct_rig_open(&x, ct, &atomics, LEN, ALL);
	if (x.dom.info->tx_attr->iov_limit < 2)
		ct_unsupported(ct, "iov_limit %zu", x.dom.info->tx_attr->iov_limit);
	if (!ct->rank) {
		struct fi_rma_ioc there[] = { { x.at.addr + 64, 4, x.at.key }, { x.at.addr, 4, x.at.key } };
		struct fi_msg_atomic m = { .msg_iov = operands,
					   .iov_count = 2,
					   .addr = x.e.addr[1],
					   .rma_iov = there,
					   .rma_iov_count = 2,
					   .datatype = FI_UINT64,
					   .op = FI_CSWAP,
					   .context = CTX(3) };

		CT_POST(&x.e, fi_atomicv(x.e.ep, operands, NULL, 2, x.e.addr[1], x.at.addr, x.at.key,
					 FI_UINT64, FI_SUM, CTX(1)));
		ct_done(&x.e, CTX(1));
		CT_POST(&x.e, fi_fetch_atomicv(x.e.ep, operands, NULL, 2, results, NULL, 2, x.e.addr[1],
					       x.at.addr, x.at.key, FI_UINT64, FI_SUM, CTX(2)));
		ct_done(&x.e, CTX(2));
		CT_TRUE(ct, old[0] == 11 && old[1] == 0);
		CT_TRUE(ct, !memcmp(old + 2, buf + 1, 7 * sizeof(old[0])));
		/* the first four are 0 there; of the others, two */
		memset(compare, 0, sizeof(compare));
		compare[4] = 22;
		compare[6] = 26;
		if (x.dom.info->tx_attr->rma_iov_limit >= 2) {
			CT_POST(&x.e, fi_compare_atomicmsg(x.e.ep, &m, compares, NULL, 2, results, NULL, 2,
							   FI_COMPLETION));
			ct_done(&x.e, CTX(3));
			CT_TRUE(ct, old[5] == 22 && old[6] == 24 && old[7] == 26 && old[8] == 28);
			m.op = FI_ATOMIC_READ;
			m.context = CTX(4);
			CT_POST(&x.e, fi_fetch_atomicmsg(x.e.ep, &m, results, NULL, 2, FI_COMPLETION));
			ct_done(&x.e, CTX(4));
			CT_TRUE(ct, old[0] == 11 && old[4] == 14 && old[5] == 15 && old[6] == 24 &&
					    old[7] == 17 && old[8] == 28);
		}
	}
	ct_sync(ct, &x.e);
	if (ct->rank == 1) {
		const uint64_t *w = (uint64_t *)x.r.mem;

		if (x.dom.info->tx_attr->rma_iov_limit >= 2)
			CT_TRUE(ct, w[0] == 15 && w[1] == 24 && w[2] == 17 && w[3] == 28 && w[8] == 11 &&
					    w[11] == 14);
		CT_TRUE(ct, w[4] == 30 && w[7] == 36);
	}
	ct_take_back(&x.e, &x.r);
}

/* Adds *one to the first number of the other end's; `at` holds what the message points to. */
struct one_sum {
	struct fi_ioc ioc;
	struct fi_rma_ioc there;
};

static struct fi_msg_atomic sum_one(const struct ct_rig *x, uint64_t *one, struct one_sum *at, void *ctx)
{
	at->ioc = (struct fi_ioc){ one, 1 };
	at->there = (struct fi_rma_ioc){ x->at.addr, 1, x->at.key };
	return (struct fi_msg_atomic){ .msg_iov = &at->ioc,
				       .iov_count = 1,
				       .addr = x->e.addr[1],
				       .rma_iov = &at->there,
				       .rma_iov_count = 1,
				       .datatype = FI_UINT64,
				       .op = FI_SUM,
				       .context = ctx };
}

/* The buffer is ours again at once, and success says nothing. */
static void inject(struct ct *ct)
{
	struct ct_rig x;
	uint64_t one = 1;

	ct_rig_open(&x, ct, &atomics, LEN, ALL);
	if (!ct->rank) {
		struct one_sum one_more;
		struct fi_msg_atomic m = sum_one(&x, &one, &one_more, CTX(5));

		for (int i = 0; i < 100; i++) {
			one = 1;
			CT_POST(&x.e, fi_inject_atomic(x.e.ep, &one, 1, x.e.addr[1], x.at.addr, x.at.key,
						       FI_UINT64, FI_SUM));
			one = 1000;
		}
		one = 1;
		CT_POST(&x.e, fi_atomicmsg(x.e.ep, &m, FI_INJECT | FI_COMPLETION));
		one = 1000;
		ct_done(&x.e, CTX(5));
		while (fetch(&x.e, x.at) != 101)
			ct_pause();
		ct_quiet(&x.e, 5, "injected operations");
	}
	ct_take_back(&x.e, &x.r);
}

/* Without FI_COMPLETION nothing is told; counters see all. */
static void completions(struct ct *ct)
{
	struct ct_want want = atomics;
	struct ct_rig x;
	uint64_t one = 1;

	want.tx_bind = FI_SELECTIVE_COMPLETION;
	ct_rig_open(&x, ct, &want, LEN, ALL);
	if (!ct->rank) {
		struct one_sum one_more;
		struct fi_msg_atomic m = sum_one(&x, &one, &one_more, CTX(6));

		CT_POST(&x.e, fi_atomic(x.e.ep, &one, 1, NULL, x.e.addr[1], x.at.addr, x.at.key, FI_UINT64,
					FI_SUM, CTX(1)));
		CT_POST(&x.e, fi_atomicmsg(x.e.ep, &m, 0));
		ct_quiet(&x.e, 30, "operations without FI_COMPLETION");
		CT_POST(&x.e, fi_atomicmsg(x.e.ep, &m, FI_COMPLETION | FI_DELIVERY_COMPLETE));
		ct_done(&x.e, CTX(6));
		/* errors always tell */
		one_more.there.key += 1;
		CT_POST(&x.e, fi_atomicmsg(x.e.ep, &m, 0));
		struct ct_comp c;

		ct_of(&x.e, CTX(6), &c);
		CT_TRUE(ct, c.err > 0);
	}
	ct_sync(ct, &x.e);
	if (ct->rank == 1)
		CT_EQ(ct, *(uint64_t *)x.r.mem, 3);
	ct_take_back(&x.e, &x.r);
}

/* ---- order and atomicity --------------------------------------------------------------------- */

#define DEPTH 64

/* With data order promised, each finds what the one before has left, without waiting for it. */
static void order(struct ct *ct)
{
	struct ct_want want = atomics;
	uint64_t values[DEPTH], seen[DEPTH];
	struct ct_region r;
	struct ct_dom dom;
	struct ct_place at;
	struct ct_ep e;

	want.msg_order = WRITE_ORDER;
	ct_start(ct, &dom, &e, &want);
	if (dom.info->ep_attr->max_order_raw_size < 8 || dom.info->ep_attr->max_order_waw_size < 8)
		ct_unsupported(ct, "no order of 8 bytes of data");
	ct_offer(&e, &r, LEN, ALL, &at);
	for (uint64_t i = 0; !ct->rank && i < DEPTH; i++) {
		values[i] = 100 + i;
		CT_POST(&e, start(&e, &(struct op){ FI_UINT64, FI_ATOMIC_WRITE, 1, &values[i], NULL, NULL },
				  at, CTX(1)));
		CT_POST(&e, start(&e, &(struct op){ FI_UINT64, FI_ATOMIC_READ, 1, NULL, NULL, &seen[i] }, at,
				  CTX(2)));
	}
	for (uint64_t i = 0; !ct->rank && i < DEPTH; i++) {
		ct_done(&e, CTX(1));
		ct_done(&e, CTX(2));
	}
	for (uint64_t i = 0; !ct->rank && i < DEPTH; i++)
		CT_EQ(ct, seen[i], values[i]);
	ct_take_back(&e, &r);
}

#define ADDS 1000

/*
 * Two ranks add to a word of the third, which changes another half of it by its
 * own atomic instructions.
 */
static void shared_word(struct ct *ct)
{
	struct ct_rig x;
	uint64_t one = 1, last = 0;

	ct_rig_open(&x, ct, &atomics, LEN, ALL);
	for (int i = 0; i < ADDS; i++) {
		uint64_t old;

		if (ct->rank == 1) {
			atomic_fetch_add((_Atomic uint64_t *)(void *)x.r.mem, UINT64_C(1) << 32);
			ct_progress(&x.e);
			continue;
		}
		perform(&x.e, &(struct op){ FI_UINT64, FI_SUM, 1, &one, NULL, &old }, x.at);
		CT_TRUE(ct, !i || (uint32_t)old > (uint32_t)last);
		last = old;
	}
	ct_sync(ct, &x.e);
	if (ct->rank == 1)
		CT_EQ(ct, *(uint64_t *)x.r.mem, ((uint64_t)ADDS << 32) + 2 * ADDS);
	ct_take_back(&x.e, &x.r);
}

/* A fenced operation waits until a message before it is matched. */
static void fence(struct ct *ct)
{
	struct ct_want want = atomics;
	uint64_t one = 1, tag = 9;
	struct ct_rig x;
	char text[8] = "fence";

	want.caps |= FI_FENCE;
	want.tx_op_flags = FI_MATCH_COMPLETE;
	ct_rig_open(&x, ct, &want, LEN, ALL);
	if (!ct->rank) {
		struct one_sum one_more;
		struct fi_msg_atomic m = sum_one(&x, &one, &one_more, CTX(2));

		CT_POST(&x.e, fi_tsend(x.e.ep, text, sizeof(text), NULL, x.e.addr[1], tag, CTX(1)));
		CT_POST(&x.e, fi_atomicmsg(x.e.ep, &m, FI_FENCE | FI_COMPLETION));
		ct_quiet(&x.e, 30, "a fenced operation");
		ct_sync(ct, &x.e);
		ct_done(&x.e, CTX(1));
		ct_done(&x.e, CTX(2));
	} else {
		ct_sync(ct, &x.e);
		CT_EQ(ct, *(uint64_t *)x.r.mem, 0);
		ct_trecv(&x.e, text, sizeof(text), tag, 0, CTX(1));
		ct_done(&x.e, CTX(1));
	}
	ct_sync(ct, &x.e);
	if (ct->rank)
		CT_EQ(ct, *(uint64_t *)x.r.mem, 1);
	ct_take_back(&x.e, &x.r);
}

/* ---- counting -------------------------------------------------------------------------------- */

/*
 * fi_endpoint(3): FI_WRITE counts base operations, FI_READ those that fetch;
 * FI_REMOTE_… the same at the target.
 */
static void counters(struct ct *ct)
{
	struct ct_want want = { .caps = FI_MSG | FI_TAGGED | FI_ATOMIC | FI_RMA_EVENT };
	struct ct_rig x;

	ct_rig_open_counted(&x, ct, &want, LEN, ALL);
	for (uint64_t i = 0; !ct->rank && i < 5; i++) {
		store(&x.e, x.at, i);
		store(&x.e, x.at, i);
		CT_EQ(ct, fetch(&x.e, x.at), i);
	}
	ct_reaches(&x.e, x.read, 5);
	ct_reaches(&x.e, x.write, 10);
	ct_sync(ct, &x.e);
	if (ct->rank)
		ct_region_close(&x.e, &x.r);
	ct_sync(ct, &x.e);
	ct_ep_close(&x.e);
	CT_OK(ct, fi_close(&x.read->fid));
	CT_OK(ct, fi_close(&x.write->fid));
	ct_close(&x.dom);
}

/* ---- what is refused ------------------------------------------------------------------------- */

static void must_fail(struct ct_ep *e, const struct op *o, struct ct_place at)
{
	struct ct_comp c;

	CT_POST(e, start(e, o, at, CTX(4)));
	ct_of(e, CTX(4), &c);
	CT_TRUE(e->ct, c.err > 0);
}

/* By the target: nothing is changed, the error completes here, and both endpoints go on. */
static void violations(struct ct *ct)
{
	uint64_t one = 1, old = 77;
	const struct op add = { FI_UINT64, FI_SUM, 1, &one, NULL, NULL };
	const struct op get = { FI_UINT64, FI_SUM, 1, &one, NULL, &old };
	struct ct_region r, only;
	struct ct_place at, there;
	struct ct_dom dom;
	struct ct_ep e;

	ct_start(ct, &dom, &e, &atomics);
	ct_offer(&e, &r, LEN, ALL, &at);
	for (int i = 0; i < 2; i++) { /* what may only be read, or written */
		if (ct->rank) {
			ct_region_open(&e, &only, LEN, i ? FI_REMOTE_WRITE : FI_REMOTE_READ, 8);
			ct_put(ct, 0, &only.at, sizeof(only.at));
		} else {
			ct_get(ct, &e, 1, &there, sizeof(there));
			must_fail(&e, &get, there);
			if (i)
				perform(&e, &add, there);
			else
				must_fail(&e, &add, there);
		}
		ct_sync(ct, &e);
		if (ct->rank) {
			CT_EQ(ct, *(uint64_t *)only.mem, i);
			ct_region_close(&e, &only);
		}
		ct_sync(ct, &e);
	}
	if (!ct->rank) {
		must_fail(&e, &add, there); /* of a region that is closed */
		must_fail(&e, &add, (struct ct_place){ at.addr, at.key + 12345 });
		must_fail(&e, &add, (struct ct_place){ at.addr + LEN, at.key });
		must_fail(&e, &add, (struct ct_place){ at.addr + LEN - 7, at.key });
		must_fail(&e, &get, (struct ct_place){ at.addr - 8, at.key });
		CT_EQ(ct, old, 77);
		CT_EQ(ct, fetch(&e, at), 0);
	}
	ct_sync(ct, &e);
	if (ct->rank)
		CT_TRUE(ct, ct_untouched(r.mem, LEN, 0));
	ct_ping(&e, !ct->rank);
	ct_take_back(&e, &r);
}

static void bad_arguments(struct ct *ct)
{
	uint64_t one = 1, old;
	struct fi_ioc ioc[2] = { { &one, 1 }, { &one, 1 } };
	struct fi_rma_ioc there = { 0, 1, 7 };
	struct fi_msg_atomic m = { .msg_iov = ioc,
				   .iov_count = 1,
				   .rma_iov = &there,
				   .rma_iov_count = 1,
				   .datatype = FI_UINT64,
				   .op = FI_SUM };
	struct fi_atomic_attr attr;
	struct ct_dom dom;
	struct ct_ep e;
	size_t n;

	ct_start(ct, &dom, &e, &atomics);
	m.addr = e.addr[!ct->rank];
#define WRITE(buf, count, type, op) fi_atomic(e.ep, buf, count, NULL, m.addr, 0, 7, type, op, NULL)
	CT_EQ(ct, WRITE(&one, 1, FI_UINT64, FI_ATOMIC_READ), -FI_EOPNOTSUPP);
	CT_EQ(ct, WRITE(&one, 1, FI_UINT64, FI_CSWAP), -FI_EOPNOTSUPP);
	CT_EQ(ct, WRITE(&one, 1, FI_DOUBLE, FI_BOR), -FI_EOPNOTSUPP);
	CT_EQ(ct, WRITE(&one, 1, (enum fi_datatype)99, FI_SUM), -FI_EOPNOTSUPP);
	CT_EQ(ct, WRITE(&one, 1, FI_UINT64, (enum fi_op)99), -FI_EOPNOTSUPP);
	CT_EQ(ct, fi_fetch_atomic(e.ep, &one, 1, NULL, &old, NULL, m.addr, 0, 7, FI_UINT64, FI_CSWAP, NULL),
	      -FI_EOPNOTSUPP);
	CT_EQ(ct,
	      fi_compare_atomic(e.ep, &one, 1, NULL, &one, NULL, &old, NULL, m.addr, 0, 7, FI_UINT64, FI_SUM,
				NULL),
	      -FI_EOPNOTSUPP);
	CT_REFUSED(ct, WRITE(&one, 0, FI_UINT64, FI_SUM));
	CT_REFUSED(ct, WRITE(NULL, 1, FI_UINT64, FI_SUM));
	CT_EQ(ct, WRITE(&one, SIZE_MAX / 8, FI_UINT64, FI_SUM), -FI_EMSGSIZE);
	CT_REFUSED(ct,
		   fi_fetch_atomic(e.ep, &one, 1, NULL, NULL, NULL, m.addr, 0, 7, FI_UINT64, FI_SUM, NULL));
	CT_REFUSED(ct, fi_atomicmsg(e.ep, NULL, 0));
	CT_REFUSED(ct, fi_atomicmsg(e.ep, &m, FI_TAGGED));
	CT_REFUSED(ct, fi_atomicmsg(e.ep, &m, 1ULL << 45));
	m.iov_count = 2; /* more operands than the target has elements */
	CT_REFUSED(ct, fi_atomicmsg(e.ep, &m, 0));
	m.iov_count = dom.info->tx_attr->iov_limit + 1;
	CT_REFUSED(ct, fi_atomicmsg(e.ep, &m, 0));
	m.iov_count = 1;
	m.rma_iov = NULL;
	CT_REFUSED(ct, fi_atomicmsg(e.ep, &m, 0));
	CT_EQ(ct, fi_query_atomic(dom.domain, FI_UINT64, FI_SUM, &attr, FI_TAGGED), -FI_EOPNOTSUPP);
	CT_REFUSED(ct, fi_query_atomic(dom.domain, FI_UINT64, FI_SUM, &attr,
				       FI_FETCH_ATOMIC | FI_COMPARE_ATOMIC));
	CT_EQ(ct, fi_atomicvalid(e.ep, (enum fi_datatype)99, FI_SUM, &n), -FI_EOPNOTSUPP);
	CT_EQ(ct, fi_atomicvalid(e.ep, FI_UINT64, FI_MSWAP, &n), -FI_EOPNOTSUPP);
	ct_quiet(&e, 5, "what was refused");
	ct_ping(&e, !ct->rank);
	ct_finish(&e);
}

/* arg: 0 no FI_ATOMIC, 1 only reading, 2 only writing, 3 not enabled. */
static void not_asked_for(struct ct *ct)
{
	static const uint64_t caps[] = { FI_MSG | FI_TAGGED,
					 FI_MSG | FI_TAGGED | FI_ATOMIC | FI_READ | FI_SEND | FI_RECV,
					 FI_MSG | FI_TAGGED | FI_ATOMIC | FI_WRITE | FI_SEND | FI_RECV,
					 FI_MSG | FI_TAGGED | FI_ATOMIC };
	struct ct_want want = { .caps = caps[ct->cs->arg], .disabled = true };
	uint64_t one = 1, old;
	fi_addr_t self;
	struct ct_dom dom;
	struct ct_ep e;

	ct_open(ct, &dom, &want);
	ct_ep_open(&dom, &e);
	if (ct->cs->arg == 3)
		CT_REFUSED(ct, fi_atomic(e.ep, &one, 1, NULL, 0, 0, 7, FI_UINT64, FI_SUM, NULL));
	ct_ep_enable(&e);
	self = ct_insert(&e, e.name);
	if (ct->cs->arg < 2)
		CT_EQ(ct, fi_atomic(e.ep, &one, 1, NULL, self, 0, 7, FI_UINT64, FI_SUM, NULL),
		      -FI_EOPNOTSUPP);
	if (ct->cs->arg % 2 == 0)
		CT_EQ(ct,
		      fi_fetch_atomic(e.ep, &one, 1, NULL, &old, NULL, self, 0, 7, FI_UINT64, FI_ATOMIC_READ,
				      NULL),
		      -FI_EOPNOTSUPP);
	ct_ep_close(&e);
	ct_close(&dom);
}

/* An endpoint may change memory of its own. */
static void own_memory(struct ct *ct)
{
	struct ct_region r;
	struct ct_dom dom;
	struct ct_ep e;

	ct_open(ct, &dom, &atomics);
	ct_ep_open(&dom, &e);
	e.addr[1] = ct_insert(&e, e.name);
	ct_region_open(&e, &r, LEN, ALL, 3);
	store(&e, r.at, 99);
	CT_EQ(ct, fetch(&e, r.at), 99);
	CT_EQ(ct, *(uint64_t *)r.mem, 99);
	ct_region_close(&e, &r);
	ct_ep_close(&e);
	ct_close(&dom);
}

const struct ct_case ct_atomic[] = {
	{ "ATOMIC", "atomic-every-base-operation", CT_TWO(operations) },
	{ "ATOMIC", "atomic-every-fetch-and-compare-operation", CT_TWO(operations), .arg = 1 },
	{ "ATOMIC", "atomic-greatest-counts", CT_TWO(counts) },
	{ "ATOMIC", "atomic-segments-on-both-sides", CT_TWO(vectors) },
	{ "ATOMIC", "atomic-inject", CT_TWO(inject) },
	{ "ATOMIC", "atomic-selective-completion", CT_TWO(completions) },
	{ "ATOMIC", "atomic-order-of-data", CT_TWO(order) },
	{ "ATOMIC", "atomic-a-word-of-three", { shared_word, shared_word, shared_word } },
	{ "M14", "atomic-behind-a-fence", CT_TWO(fence) },
	{ "ATOMIC", "atomic-counters-of-both-sides", CT_TWO(counters) },
	{ "ATOMIC", "atomic-what-the-target-refuses", CT_TWO(violations) },
	{ "ATOMIC", "atomic-bad-arguments", CT_TWO(bad_arguments) },
	{ "ATOMIC", "atomic-without-the-capability", { not_asked_for } },
	{ "ATOMIC", "atomic-only-reading", { not_asked_for }, .arg = 1 },
	{ "ATOMIC", "atomic-only-writing", { not_asked_for }, .arg = 2 },
	{ "ATOMIC", "atomic-before-enabling", { not_asked_for }, .arg = 3 },
	{ "ATOMIC", "atomic-own-memory", { own_memory } },
	{ 0 },
};
