/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
#include "engine/test/test_direct.h"

#include "engine/core/core.h"
#include "engine/mr/mr.h"
#include "engine/name/name.h"
#include "engine/test/test_pair.h"
#include "engine/xfer/xfer.h"
#include "transport/vm_seam.h"

struct hd_mr *direct_region(struct side *s, uint64_t key, void *at, size_t len, uint32_t flags)
{
	return side_region(s, key, at, len, ALL, flags);
}

void direct_permit(struct side *s, uint32_t policy)
{
	s->ep->policy |= HD_EP_REMOTE_READ | HD_EP_REMOTE_WRITE | policy;
	hd_ep_show(s->ep);
}

/* The word by which the other process finds out whether it is still there. */
static const void *looked_at(const struct side *s)
{
	return (const void *)(uintptr_t)hd_node_page(s->node)->probe_addr;
}

void direct_open(struct pair *p, uint32_t policy)
{
	unsigned char byte;

	vm_seam = (struct vm_seam){ 0 };
	pair_open(p, "shm");
	direct_permit(&p->a, policy);
	direct_permit(&p->b, policy);
	side_post(&p->b, &byte, 1, 1, 0, NULL, NULL);
	pair_push(p, &p->a, "x", 1, 1, 0);
	assert_int_equal(pair_next(p, &p->b).err, 0);
	pair_settle(p, 2);
	pair_rest(p);
	/* the link has probed; it looks there before long writes */
	vm_seam = (struct vm_seam){ .look = { looked_at(&p->a), looked_at(&p->b) } };
}

void direct_close(struct pair *p)
{
	vm_seam = (struct vm_seam){ 0 };
	pair_close(p);
}

int direct_post(struct pair *p, enum hd_rma_op op, void *buf, size_t len, uint64_t addr, uint32_t flags)
{
	const struct hd_rma_seg seg = { addr, len, KEY };
	const struct iovec iov = { buf, len };

	return hd_rma(p->a.ep, p->a.to,
		      &(struct hd_rma_args){ .op = op,
					     .iov = &iov,
					     .count = 1,
					     .segs = &seg,
					     .seg_count = 1,
					     .imm = 4711,
					     .ctx = buf,
					     .flags = flags });
}

struct hd_cqe direct_alone(struct pair *p)
{
	uint64_t end = hd_now_ns() + PATIENCE;
	const struct hd_cqe *e;
	struct hd_cqe copy;

	while (!(e = hd_cq_peek(p->a.cq))) {
		hd_node_poll(p->a.node);
		assert_true(hd_now_ns() < end);
	}
	copy = *e;
	hd_cq_pop(p->a.cq);
	return copy;
}

void direct_turns(struct side *s, int n)
{
	for (int i = 0; i < n; i++)
		hd_node_poll(s->node);
}

bool direct_nothing_done(struct pair *p)
{
	direct_turns(&p->a, 50);
	return !hd_cq_peek(p->a.cq);
}

void direct_refused(struct pair *p, uint64_t addr, size_t len, int err)
{
	static unsigned char mine[300];

	vm_seam.calls = 0;
	assert_int_equal(direct_post(p, HD_RMA_WRITE, mine, len, addr, DONE), 0);
	assert_true(direct_nothing_done(p));
	assert_int_equal(pair_next(p, &p->a).err, err);
	assert_int_equal(vm_seam.calls, 0);
}
