/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
#include "engine/test/test_qp.h"

#include <stdlib.h>
#include <string.h>

void qp_open(struct side *s, uint32_t policy, const struct hd_ep_attr *attr)
{
	struct hd_ep_attr a = attr ? *attr : (struct hd_ep_attr){ .tx_size = 64 };

	hd_node_lock(s->node);
	a.type = policy & HD_EP_PAIRED ? HD_EP_RDM : HD_EP_DGRAM;
	a.policy = policy;
	a.tx_cq = a.rx_cq = s->cq;
	if (s->ep)
		hd_ep_close(s->ep);
	assert_int_equal(hd_ep_open(s->node, &a, &s->ep), 0);
	hd_node_unlock(s->node);
}

struct hd_qp_attr qp_attr(void)
{
	return (struct hd_qp_attr){ .rnr_timer_us = 100, .rnr_retry = 7 };
}

void qp_ready(struct side *s, struct side *other, const struct hd_qp_attr *attr)
{
	struct hd_qp_attr a = attr ? *attr : qp_attr();
	struct sockaddr_storage name;

	assert_int_equal(hd_ep_name(other->ep, AF_UNSPEC, &name), 0);
	a.to = (void *)&name;
	hd_node_lock(s->node);
	assert_int_equal(hd_ep_pair(s->ep, &a), 0);
	hd_node_unlock(s->node);
}

void qps_new(struct pair *p, const char *transport, uint32_t policy)
{
	pair_open(p, transport);
	qp_open(&p->a, policy | ALL_RIGHTS, NULL);
	qp_open(&p->b, policy | ALL_RIGHTS, NULL);
}

void qps_ready(struct pair *p)
{
	qp_ready(&p->a, &p->b, NULL);
	qp_ready(&p->b, &p->a, NULL);
}

void qps_open(struct pair *p, const char *transport, uint32_t policy)
{
	qps_new(p, transport, policy);
	qps_ready(p);
}

void qp_recv(struct side *s, void *buf, size_t len, void *ctx)
{
	const struct iovec iov = { buf, len };

	hd_node_lock(s->node);
	assert_int_equal(hd_recv(s->ep,
				 &(struct hd_recv_args){
					 .iov = &iov, .count = 1, .flags = HD_RECV_COMPLETE, .ctx = ctx }),
			 0);
	hd_node_unlock(s->node);
}

void qp_send_as(struct side *s, const void *buf, size_t len, void *ctx, uint32_t flags)
{
	hd_node_lock(s->node);
	assert_int_equal(hd_send(s->ep, *hd_ep_to(s->ep), buf, len, 5, 0x1234, ctx, flags), 0);
	hd_node_unlock(s->node);
}

void qp_send(struct side *s, const void *buf, size_t len, void *ctx)
{
	qp_send_as(s, buf, len, ctx, HD_SEND_COMPLETE);
}

void qp_rma(struct side *s, enum hd_rma_op op, void *buf, size_t len, uint64_t key, const void *at, void *ctx,
	    uint32_t flags)
{
	const struct iovec iov = { buf, len };
	const struct hd_rma_seg seg = { .addr = (uintptr_t)at, .len = len, .key = key };
	const struct hd_rma_args args = { .op = op,
					  .iov = &iov,
					  .count = 1,
					  .seg_count = 1,
					  .segs = &seg,
					  .imm = 99,
					  .tag = 6,
					  .ctx = ctx,
					  .flags = HD_SEND_COMPLETE | flags };

	hd_node_lock(s->node);
	assert_int_equal(hd_rma(s->ep, *hd_ep_to(s->ep), &args), 0);
	hd_node_unlock(s->node);
}

struct hd_mr *qp_region(struct side *s, void *at, size_t len, uint32_t pd)
{
	const struct iovec iov = { at, len };
	const struct hd_mr_attr attr = { .iov = &iov,
					 .count = 1,
					 .access = HD_ACCESS_REMOTE_READ | HD_ACCESS_REMOTE_WRITE |
						   HD_ACCESS_REMOTE_ATOMIC | HD_ACCESS_REMOTE_FETCH,
					 .flags = HD_MR_VIRTUAL,
					 .pd = pd };
	struct hd_mr *mr;

	hd_node_lock(s->node);
	assert_int_equal(hd_mr_open(s->node, &attr, &mr), 0);
	hd_node_unlock(s->node);
	return mr;
}

struct hd_cqe qp_expect(struct pair *p, struct side *s, void *ctx, int err)
{
	struct hd_cqe e = pair_next(p, s);

	assert_ptr_equal(e.ctx, ctx);
	assert_int_equal(e.err, err);
	assert_int_equal(e.ep, hd_ep_index(s->ep));
	return e;
}

void qp_silence(struct pair *p, struct side *s, int ms)
{
	pair_settle(p, ms);
	assert_null(hd_cq_peek(s->cq));
}
