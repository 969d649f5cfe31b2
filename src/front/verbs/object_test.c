/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Objects without a queue pair: local keys, domains, null regions, asynchronous events; words and
 * rates beside the real library's.
 */
#include "front/verbs/entry.h"
#include "front/verbs/ops.h"
#include "skip.h"

#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

struct scene {
	struct ibv_context *context;
	struct hv_context *ctx;
	struct ibv_pd *pd;
	char buf[4096];
};

static int setup(void **state)
{
	static struct scene s;

	*state = &s;
	s.context = hv_ibv_open_device(&hv_devices[HV_INFINIBAND].pub);
	assert_non_null(s.context);
	s.ctx = hv_context_of(s.context);
	s.pd = hv_ibv_alloc_pd(s.context);
	assert_non_null(s.pd);
	return 0;
}

static int teardown(void **state)
{
	struct scene *s = *state;

	assert_int_equal(hv_ibv_dealloc_pd(s->pd), 0);
	assert_int_equal(s->ctx->objects, 0);
	return hv_ibv_close_device(s->context);
}

/* What a queue pair of this domain would make of one segment. */
static int look(struct scene *s, struct ibv_pd *pd, struct ibv_sge sge, bool write, struct iovec *iov)
{
	struct hd_mr *region;
	uint64_t total = 0;
	int rc;

	hd_node_lock(s->ctx->node);
	rc = hv_sge(s->ctx, hv_pd_of(pd), &sge, 1, write, iov, &region, &total);
	hd_node_unlock(s->ctx->node);
	if (!rc)
		assert_int_equal(total, sge.length);
	return rc;
}

static void local_keys_are_checked(void **state)
{
	struct scene *s = *state;
	struct ibv_mr *mr = hv_ibv_reg_mr(s->pd, s->buf, 100, 0);
	uint64_t at = (uintptr_t)s->buf;
	struct iovec iov;

	assert_non_null(mr);
	assert_int_equal(look(s, s->pd, (struct ibv_sge){ at + 10, 90, mr->lkey }, false, &iov), 0);
	assert_ptr_equal(iov.iov_base, s->buf + 10);
	assert_int_equal(iov.iov_len, 90);
	assert_int_equal(look(s, s->pd, (struct ibv_sge){ at + 10, 91, mr->lkey }, false, &iov), -EACCES);
	assert_int_equal(look(s, s->pd, (struct ibv_sge){ at - 1, 2, mr->lkey }, false, &iov), -EACCES);
	assert_int_equal(look(s, s->pd, (struct ibv_sge){ at, 8, mr->lkey }, true, &iov), -EACCES);
	assert_int_equal(look(s, s->pd, (struct ibv_sge){ at, 8, mr->lkey ^ 256 }, false, &iov), -EACCES);
	assert_int_equal(look(s, s->pd, (struct ibv_sge){ at, 0, 0 }, false, &iov), 0);
	at = mr->lkey;
	assert_int_equal(hv_ibv_dereg_mr(mr), 0);
	assert_int_equal(look(s, s->pd, (struct ibv_sge){ (uintptr_t)s->buf, 8, (uint32_t)at }, false, &iov),
			 -EACCES);
}

static void keys_belong_to_a_domain(void **state)
{
	struct scene *s = *state;
	struct ibv_pd *other = hv_ibv_alloc_pd(s->context);
	struct ibv_mr *mr = hv_ibv_reg_mr(other, s->buf, 100, IBV_ACCESS_LOCAL_WRITE);
	struct ibv_sge sge = { (uintptr_t)s->buf, 8, mr->lkey };
	struct iovec iov;

	assert_int_equal(look(s, s->pd, sge, true, &iov), -EACCES);
	assert_int_equal(look(s, other, sge, true, &iov), 0);
	assert_int_equal(hv_ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_PD, s->pd, NULL, 0, 0), 0);
	sge.lkey = mr->lkey;
	assert_int_equal(look(s, s->pd, sge, true, &iov), 0);
	assert_int_equal(hv_ibv_dealloc_pd(other), 0);
	assert_int_equal(hv_ibv_dereg_mr(mr), 0);
}

static void parents_share_their_zone(void **state)
{
	struct scene *s = *state;
	struct ibv_td *td = hv_alloc_td(s->context, &(struct ibv_td_init_attr){ 0 });
	struct ibv_parent_domain_init_attr attr = { .pd = s->pd, .td = td };
	struct ibv_pd *parent = hv_alloc_parent_domain(s->context, &attr);
	struct ibv_mr *mr = hv_ibv_reg_mr(s->pd, s->buf, 100, 0);
	struct iovec iov;

	assert_non_null(parent);
	assert_int_equal(look(s, parent, (struct ibv_sge){ (uintptr_t)s->buf, 8, mr->lkey }, false, &iov), 0);
	assert_int_equal(hv_ibv_dealloc_pd(s->pd), EBUSY);
	assert_int_equal(hv_dealloc_td(td), EBUSY);
	assert_int_equal(hv_ibv_dereg_mr(mr), 0);
	assert_int_equal(hv_ibv_dealloc_pd(s->pd), EBUSY);
	assert_int_equal(hv_ibv_dealloc_pd(parent), 0);
	assert_int_equal(hv_dealloc_td(td), 0);
	attr.pd = NULL;
	assert_null(hv_alloc_parent_domain(s->context, &attr));
	assert_int_equal(errno, EINVAL);
}

static void addresses_may_be_the_programs_own(void **state)
{
	struct scene *s = *state;
	struct ibv_mr *mr = hv_ibv_reg_mr_iova(s->pd, s->buf, 100, 5000, 0);
	struct iovec iov;

	assert_int_equal(look(s, s->pd, (struct ibv_sge){ 5090, 10, mr->lkey }, false, &iov), 0);
	assert_ptr_equal(iov.iov_base, s->buf + 90);
	assert_int_equal(look(s, s->pd, (struct ibv_sge){ 5090, 11, mr->lkey }, false, &iov), -EACCES);
	assert_int_equal(look(s, s->pd, (struct ibv_sge){ (uintptr_t)s->buf, 8, mr->lkey }, false, &iov),
			 -EACCES);
	assert_int_equal(hv_ibv_dereg_mr(mr), 0);
	mr = hv_ibv_reg_mr(s->pd, s->buf, 100, IBV_ACCESS_ZERO_BASED);
	assert_int_equal(look(s, s->pd, (struct ibv_sge){ 1, 99, mr->lkey }, false, &iov), 0);
	assert_ptr_equal(iov.iov_base, s->buf + 1);
	assert_int_equal(hv_ibv_dereg_mr(mr), 0);
}

static void null_regions_take_anything(void **state)
{
	struct scene *s = *state;
	struct ibv_mr *mr = hv_alloc_null_mr(s->pd);
	struct iovec iov;

	skip_unless(mr != NULL, "let it have more address space: `ulimit -v unlimited`");
	assert_int_equal(look(s, s->pd, (struct ibv_sge){ 12345, 4096, mr->lkey }, false, &iov), 0);
	for (size_t i = 0; i < iov.iov_len; i++)
		assert_int_equal(((char *)iov.iov_base)[i], 0);
	assert_int_equal(look(s, s->pd, (struct ibv_sge){ 0, UINT32_MAX, mr->lkey }, true, &iov), 0);
	memset(iov.iov_base, 1, 4096);
	assert_int_equal(look(s, s->pd, (struct ibv_sge){ 12345, 4096, mr->lkey }, false, &iov), 0);
	assert_int_equal(*(char *)iov.iov_base, 0);
	assert_int_equal(hv_ibv_dereg_mr(mr), 0);
}

/* Nothing of a region is touched by registering it. */
static void pages_are_not_touched(void **state)
{
	struct scene *s = *state;
	size_t len = 64 << 20;
	char *mem = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	unsigned char *there = calloc(1, len / 4096);
	struct ibv_mr *mr = hv_ibv_reg_mr(s->pd, mem, len, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);

	assert_non_null(mr);
	assert_int_equal(mincore(mem, len, there), 0);
	for (size_t i = 0; i < len / 4096; i++)
		assert_int_equal(there[i] & 1, 0);
	assert_int_equal(hv_ibv_dereg_mr(mr), 0);
	munmap(mem, len);
	free(there);
}

static void events_wait_to_be_acked(void **state)
{
	struct scene *s = *state;
	struct ibv_cq *cq = hv_ibv_create_cq(s->context, 1, NULL, NULL, 0);
	struct hv_cq *own = hv_cq_of(cq);
	struct ibv_async_event event = { .element.cq = cq, .event_type = IBV_EVENT_CQ_ERR };
	struct ibv_async_event port = { .element.port_num = 1, .event_type = IBV_EVENT_PORT_ACTIVE }, got;
	struct pollfd p = { .fd = s->context->async_fd, .events = POLLIN };

	hd_node_lock(s->ctx->node);
	hv_event_post(s->ctx, &event, &own->target);
	hv_event_post(s->ctx, &port, NULL);
	hv_event_post(s->ctx, &event, &own->target);
	hd_node_unlock(s->ctx->node);
	assert_int_equal(poll(&p, 1, 0), 1);
	assert_int_equal(hv_ibv_get_async_event(s->context, &got), 0);
	assert_ptr_equal(got.element.cq, cq);
	ibv_ack_async_event(&got);
	assert_int_equal(cq->async_events_completed, 1);
	assert_int_equal(hv_ibv_destroy_cq(cq), 0); /* the other is forgotten */
	assert_int_equal(hv_ibv_get_async_event(s->context, &got), 0);
	assert_int_equal(got.event_type, IBV_EVENT_PORT_ACTIVE);
	ibv_ack_async_event(&got);
	assert_int_equal(poll(&p, 1, 0), 0);
}

static void lists_may_be_freed_before_use(void **state)
{
	int count = 0;
	struct ibv_device **list = ibv_get_device_list(&count), *device;

	assert_true(count >= 2);
	assert_null(list[count]);
	device = list[1];
	ibv_free_device_list(list);
	assert_string_equal(hv_ibv_get_device_name(device), "heddle1");
	assert_int_equal(hv_ibv_get_device_index(device), -1);
	assert_int_not_equal(hv_ibv_get_device_guid(device), 0);
}

/* The real library's, where it is installed: the numbers are the same. */
static void rates_are_those_of_the_real_library(void **state)
{
	__typeof__(&ibv_rate_to_mbps) mbps = hv_real_find("libibverbs.so.1", "ibv_rate_to_mbps");
	__typeof__(&ibv_rate_to_mult) mult = hv_real_find("libibverbs.so.1", "ibv_rate_to_mult");

	skip_unless(mbps && mult, "install libibverbs1");
	for (int i = -2; i < 40; i++) {
		assert_int_equal(ibv_rate_to_mbps((enum ibv_rate)i), mbps((enum ibv_rate)i));
		assert_int_equal(ibv_rate_to_mult((enum ibv_rate)i), mult((enum ibv_rate)i));
		if (ibv_rate_to_mbps((enum ibv_rate)i) > 0)
			assert_int_equal(mbps_to_ibv_rate(ibv_rate_to_mbps((enum ibv_rate)i)), i);
		if (ibv_rate_to_mult((enum ibv_rate)i) > 0)
			assert_int_equal(mult_to_ibv_rate(ibv_rate_to_mult((enum ibv_rate)i)), i);
	}
	assert_int_equal(mult_to_ibv_rate(7), IBV_RATE_MAX);
	assert_int_equal(mbps_to_ibv_rate(7), IBV_RATE_MAX);
}

static void every_number_has_a_word(void **state)
{
	for (int i = IBV_WC_SUCCESS; i <= IBV_WC_TM_RNDV_INCOMPLETE; i++)
		assert_string_not_equal(ibv_wc_status_str((enum ibv_wc_status)i), "unknown");
	for (int i = IBV_WR_RDMA_WRITE; i <= IBV_WR_DRIVER1; i++)
		assert_string_not_equal(ibv_wr_opcode_str((enum ibv_wr_opcode)i), "unknown");
	assert_string_equal(ibv_wr_opcode_str(IBV_WR_ATOMIC_WRITE), "atomic-write");
	assert_string_equal(ibv_wr_opcode_str((enum ibv_wr_opcode)1000), "unknown");
	for (int i = IBV_EVENT_CQ_ERR; i <= IBV_EVENT_WQ_FATAL; i++)
		assert_string_not_equal(ibv_event_type_str((enum ibv_event_type)i), "unknown");
	for (int i = IBV_NODE_CA; i <= IBV_NODE_UNSPECIFIED; i++)
		assert_string_not_equal(ibv_node_type_str((enum ibv_node_type)i), "unknown");
	for (int i = IBV_PORT_NOP; i <= IBV_PORT_ACTIVE_DEFER; i++)
		assert_string_not_equal(ibv_port_state_str((enum ibv_port_state)i), "unknown");
	assert_string_equal(ibv_wc_status_str((enum ibv_wc_status)1000), "unknown");
	assert_string_equal(ibv_port_state_str((enum ibv_port_state) - 1), "unknown");
}

/* What was changed is not what was given out; whole again, it goes. */
#define CHANGED(object, call) \
	do { \
		(object)->handle ^= 0x40; \
		assert_int_equal(call, ENOENT); \
		(object)->handle ^= 0x40; \
	} while (0)

static void changed_handles_are_found(void **state)
{
	struct scene *s = *state;
	struct ibv_srq_init_attr srq_init = { NULL, { 1, 1, 0 } };
	struct ibv_cq *cq = hv_ibv_create_cq(s->context, 4, NULL, NULL, 0);
	struct ibv_mr *mr = hv_ibv_reg_mr(s->pd, s->buf, 100, 0);
	struct ibv_mw *mw = hv_alloc_mw(s->pd, IBV_MW_TYPE_1);
	struct ibv_srq *srq = hv_ibv_create_srq(s->pd, &srq_init);
	struct ibv_qp_init_attr init = { NULL, cq, cq, NULL, { 1, 1, 1, 1, 0 }, IBV_QPT_RC, 1 };
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };
	struct ibv_qp *qp = hv_ibv_create_qp(s->pd, &init);

	CHANGED(qp, hv_ibv_modify_qp(qp, &attr, IBV_QP_STATE));
	CHANGED(qp, hv_ibv_query_qp(qp, &attr, IBV_QP_STATE, &init));
	CHANGED(qp, hv_ibv_destroy_qp(qp));
	CHANGED(cq, (hv_ibv_create_qp(s->pd, &init), errno));
	CHANGED(s->pd, (hv_ibv_create_qp(s->pd, &init), errno));
	CHANGED(s->pd, (hv_ibv_reg_mr(s->pd, s->buf, 100, 0), errno));
	CHANGED(s->pd, (hv_alloc_mw(s->pd, IBV_MW_TYPE_1), errno));
	CHANGED(s->pd, (hv_ibv_create_srq(s->pd, &srq_init), errno));
	CHANGED(s->pd, hv_ibv_dealloc_pd(s->pd));
	CHANGED(cq, hv_ibv_resize_cq(cq, 8));
	CHANGED(cq, hv_req_notify_cq(cq, 0));
	CHANGED(cq, hv_ibv_destroy_cq(cq));
	CHANGED(srq, hv_ibv_query_srq(srq, &srq_init.attr));
	CHANGED(srq, hv_ibv_destroy_srq(srq));
	CHANGED(mr, hv_ibv_dereg_mr(mr));
	CHANGED(mw, hv_dealloc_mw(mw));
	assert_int_equal(hv_ibv_destroy_qp(qp), 0);
	assert_int_equal(hv_ibv_destroy_cq(cq), 0);
	assert_int_equal(hv_ibv_destroy_srq(srq), 0);
	assert_int_equal(hv_ibv_dereg_mr(mr), 0);
	assert_int_equal(hv_dealloc_mw(mw), 0);
	/* and once more, each */
	assert_int_equal(hv_ibv_destroy_qp(qp), EINVAL);
	assert_int_equal(hv_ibv_destroy_cq(cq), EINVAL);
	assert_int_equal(hv_ibv_destroy_srq(srq), EINVAL);
	assert_int_equal(hv_ibv_dereg_mr(mr), EINVAL);
	assert_int_equal(hv_dealloc_mw(mw), EINVAL);
	assert_true(hv_owns(qp->context) && qp->context->ops.post_send);
}

/* One that says it is another context's is none of that one's. */
static void contexts_are_compared(void **state)
{
	struct scene *s = *state;
	struct ibv_context *other = hv_ibv_open_device(&hv_devices[HV_ETHERNET].pub);

	s->pd->context = other;
	assert_int_equal(hv_ibv_dealloc_pd(s->pd), ENOENT);
	s->pd->context = s->context;
	assert_int_equal(hv_ibv_close_device(other), 0);
}

/* As many as ibv_query_device(3) says, and no more. */
static void limits_are_kept(void **state)
{
	struct scene *s = *state;
	struct ibv_device_attr attr;
	struct ibv_pd **pds;
	int n = 0;

	assert_int_equal(hv_ibv_query_device(s->context, &attr), 0);
	pds = calloc((size_t)attr.max_pd, sizeof(struct ibv_pd *));
	while (n < attr.max_pd && (pds[n] = hv_ibv_alloc_pd(s->context)))
		n++;
	assert_int_equal(n, attr.max_pd - 1); /* and the one of the scene */
	assert_int_equal(errno, ENOMEM);
	while (n > 0)
		assert_int_equal(hv_ibv_dealloc_pd(pds[--n]), 0);
	free(pds);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		CASE(local_keys_are_checked),
		CASE(keys_belong_to_a_domain),
		CASE(parents_share_their_zone),
		CASE(addresses_may_be_the_programs_own),
		CASE(null_regions_take_anything),
		CASE(pages_are_not_touched),
		CASE(events_wait_to_be_acked),
		CASE(changed_handles_are_found),
		CASE(contexts_are_compared),
		CASE(limits_are_kept),
		cmocka_unit_test(lists_may_be_freed_before_use),
		cmocka_unit_test(rates_are_those_of_the_real_library),
		cmocka_unit_test(every_number_has_a_word),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
