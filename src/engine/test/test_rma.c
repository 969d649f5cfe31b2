/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
#include "engine/test/test_rma.h"

#include "engine/link/link.h"
#include "engine/test/test_pair.h"

#include "engine/mr/mr.h"

#include <errno.h>
#include <stdlib.h>

struct hd_mr *rma_region(struct side *s, uint64_t key, void *at, size_t len, uint32_t access)
{
	return side_region(s, key, at, len, access, 0);
}

void rma_open(struct pair *p, const char *transport)
{
	pair_open(p, transport);
	p->a.ep->policy |= HD_EP_REMOTE_READ | HD_EP_REMOTE_WRITE;
	p->b.ep->policy |= HD_EP_REMOTE_READ | HD_EP_REMOTE_WRITE;
}

int rma_post(struct pair *p, const struct hd_rma_args *args)
{
	uint64_t end = hd_now_ns() + PATIENCE;
	int rc;

	while ((rc = hd_rma(p->a.ep, p->a.to, args)) == -EAGAIN) {
		hd_node_poll(p->a.node);
		hd_node_poll(p->b.node);
		assert_true(hd_now_ns() < end);
	}
	return rc;
}

void rma_go(struct pair *p, enum hd_rma_op op, void *buf, size_t len, uint64_t addr, uint32_t flags)
{
	const struct hd_rma_seg seg = { addr, len, KEY };
	const struct iovec iov = { buf, len };

	assert_int_equal(rma_post(p, &(struct hd_rma_args){ .op = op,
							    .iov = &iov,
							    .count = 1,
							    .segs = &seg,
							    .seg_count = 1,
							    .imm = 0x1234567890abcdef,
							    .ctx = buf,
							    .flags = flags }),
			 0);
}

void rma_expect(struct pair *p, enum hd_rma_op op, void *ctx, int err)
{
	struct hd_cqe e = pair_next(p, &p->a);

	assert_int_equal(e.err, err);
	assert_ptr_equal(e.ctx, ctx);
	assert_int_equal(e.flags, HD_C_RMA | (op == HD_RMA_READ ? HD_C_READ : HD_C_WRITE));
}

int rma_by_packets(void **state)
{
	return setenv("HEDDLE_DIRECT_COPY", "no", 1);
}

int rma_by_either(void **state)
{
	return unsetenv("HEDDLE_DIRECT_COPY");
}
