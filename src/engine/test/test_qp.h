/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* What the tests of queue pairs share: each side of a pair gets endpoints with numbers. */
#ifndef HD_ENGINE_TEST_QP_H
#define HD_ENGINE_TEST_QP_H

#include "engine/test/test_pair.h"

#define RC (HD_EP_NUMBERED | HD_EP_PAIRED | HD_EP_STRICT)
#define UC (RC | HD_EP_DROP)
#define ALL_RIGHTS (HD_EP_REMOTE_READ | HD_EP_REMOTE_WRITE | HD_EP_REMOTE_ATOMIC)

/*
 * qp_open: s->ep is a queue pair with this policy from now on. attr: further attributes, or NULL.
 */
void qp_open(struct side *s, uint32_t policy, const struct hd_ep_attr *attr);

/* qp_attr: patience without end on both accounts, 100 us for each retry. */
struct hd_qp_attr qp_attr(void);

/*
 * qps_new: each side has one with this policy and all rights, over this transport. qp_ready: s
 * talks with other; attr NULL: qp_attr().
 * qps_ready: both sides are ready for each other. qps_open: all of that.
 */
void qps_new(struct pair *p, const char *transport, uint32_t policy);
void qps_ready(struct pair *p);
void qp_ready(struct side *s, struct side *other, const struct hd_qp_attr *attr);
void qps_open(struct pair *p, const char *transport, uint32_t policy);

/* qp_recv: post a receive. qp_send: a send that completes; both have ctx. */
void qp_recv(struct side *s, void *buf, size_t len, void *ctx);
void qp_send(struct side *s, const void *buf, size_t len, void *ctx);
void qp_send_as(struct side *s, const void *buf, size_t len, void *ctx, uint32_t flags);

/* qp_write: an RDMA write, to be answered with a completion; also read. */
void qp_rma(struct side *s, enum hd_rma_op op, void *buf, size_t len, uint64_t key, const void *at, void *ctx,
	    uint32_t flags);

/* qp_region: memory of s that the other end may do anything to. */
struct hd_mr *qp_region(struct side *s, void *at, size_t len, uint32_t pd);

/*
 * qp_expect: the next completion of s has this context, and this errno. qp_silence:
 * there is none, for a while.
 */
struct hd_cqe qp_expect(struct pair *p, struct side *s, void *ctx, int err);
void qp_silence(struct pair *p, struct side *s, int ms);

#endif
