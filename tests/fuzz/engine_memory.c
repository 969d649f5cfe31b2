/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Regions, one-sided operations and atomics, of either side: steps of engine_fuzz. */
#include "fuzz/engine_fuzz.h"

#include <stdlib.h>

void region_close(struct region *r)
{
	if (!r->mr)
		return;
	MUST(!hd_mr_close(r->mr));
	free(r->at);
	r->mr = NULL;
}

void region_open(unsigned place, unsigned how)
{
	struct region *r = &f.region[place];
	struct iovec iov[3];
	const struct hd_mr_attr attr = { .iov = iov,
					 .count = how & 1 ? 3 : 1,
					 .access = how >> 2,
					 .flags = HD_MR_KEY | (how & 2 ? HD_MR_VIRTUAL : 0),
					 .key = place + 1 };

	r->at = calloc(1, REGION_LEN);
	MUST(r->at != NULL);
	iov[0] = (struct iovec){ r->at, attr.count == 1 ? REGION_LEN : 100 };
	iov[1] = (struct iovec){ r->at + 100, 20 };
	iov[2] = (struct iovec){ r->at + REGION_LEN - 450, 450 };
	MUST(!hd_mr_open(f.node, &attr, &r->mr));
}

void step_region(void)
{
	unsigned place = input_below(&f.in, REGIONS), how = input_byte(&f.in);
	struct region *r = &f.region[place];

	if (!r->mr)
		region_open(place, how);
	else if (how & 1)
		region_close(r);
	else if (how & 2)
		hd_mr_disable(r->mr);
	else
		hd_mr_enable(r->mr);
}

/* Segments that are often right, of so many bytes together. */
int pick_segs(struct hd_rma_seg *seg, uint64_t bytes, uint64_t unit)
{
	int count = (int)input_below(&f.in, 4);

	if (bytes && !count)
		count = 1;
	for (int i = 0; i < count; i++) {
		unsigned place = input_below(&f.in, REGIONS + 1);

		seg[i] = (struct hd_rma_seg){ .key = place + 1,
					      .len = i < count - 1 ? bytes / 2 / unit * unit : bytes };
		bytes -= seg[i].len;
		seg[i].addr = input_byte(&f.in) * 2;
		if (place < REGIONS && f.region[place].mr && input_byte(&f.in) & 1)
			seg[i].addr += (uintptr_t)f.region[place].at;
	}
	return count;
}

/* What a READ or a WRITE says: the length of it. */
size_t wanted_body(unsigned how, uint64_t bytes)
{
	struct hd_rma head = { 0 };
	unsigned char *to = f.bytes;
	struct hd_rma_seg seg[4];

	head.count = (uint8_t)pick_segs(seg, bytes, 1);
	if (how & 1 && how & 2)
		head.offer_len = 8;
	memcpy(to, &head, sizeof(head));
	memcpy(to + sizeof(head), seg, head.count * sizeof(seg[0]));
	to += sizeof(head) + head.count * sizeof(seg[0]);
	to += head.offer_len;
	if (how & 1 && (how & 6) == 4)
		to += bytes;
	if ((how & 0xf0) == 0xf0)
		to++;
	return (size_t)(to - f.bytes);
}

/* The peer wants something of our memory. */
void step_wanted(void)
{
	struct fake_link *l = pick_link();
	struct hd_pkt pkt = pick_pkt();
	uint64_t bytes = input_below(&f.in, 300);
	unsigned how = input_byte(&f.in);

	if (!may_speak(l))
		return;
	pkt.kind = how & 1 ? HD_PKT_WRITE : HD_PKT_READ;
	pkt.tag = bytes;
	deliver_some(l, &pkt, wanted_body(how, bytes), how & 8);
}

void step_wanted_put(void)
{
	struct fake_link *l = pick_link();
	struct hd_pkt pkt = pick_pkt();
	uint64_t bytes = input_below(&f.in, 300);
	struct hd_rma_seg seg[4];

	if (!l || !l->up || l->open || l->base.down)
		return;
	pkt.kind = HD_PKT_PUT;
	if (pick_segs(seg, bytes, 1)) {
		pkt.tag = seg[0].addr;
		pkt.imm = seg[0].key;
	}
	deliver_some(l, &pkt, bytes, input_byte(&f.in) & 1);
}

/* What an ATOMIC says: the length of it. */
size_t wanted_atomic_body(void)
{
	struct hd_atomic head = { .how = (uint8_t)input_below(&f.in, HD_ATOMIC_HOWS),
				  .op = (uint8_t)input_below(&f.in, HD_ATOMIC_OPS + 1),
				  .type = (uint8_t)input_below(&f.in, HD_ATOMIC_TYPES + 1),
				  .count = input_below(&f.in, 12) };
	size_t size = hd_atomic_size(head.type) ? hd_atomic_size(head.type) : 1, len;
	struct hd_rma_seg seg[4];

	head.segs = (uint8_t)pick_segs(seg, head.count * size, size);
	memcpy(f.bytes, &head, sizeof(head));
	memcpy(f.bytes + sizeof(head), seg, head.segs * sizeof(seg[0]));
	len = sizeof(head) + head.segs * sizeof(seg[0]) +
	      (head.op != HD_ATOMIC_READ ? head.count * size : 0) +
	      (head.how == HD_ATOMIC_COMPARE ? head.count * size : 0);
	return input_byte(&f.in) & 0x0f ? len : len + 1;
}

void step_wanted_atomic(void)
{
	struct fake_link *l = pick_link();
	struct hd_pkt pkt = pick_pkt();

	if (!may_speak(l))
		return;
	pkt.kind = HD_PKT_ATOMIC;
	deliver(l, &pkt, f.bytes, wanted_atomic_body());
}

/* The program wants something of the peer's. */
void step_want(void)
{
	struct hd_dest *dest = f.dest[input_below(&f.in, DESTS)];
	unsigned how = input_byte(&f.in);
	struct hd_rma_seg seg[4];
	struct buffer *b;
	uint64_t bytes = pick_len(SEND_MAX);

	if (!dest || !(b = buffer_make(bytes)))
		return;
	if (hd_rma(pick_ep(), dest,
		   &(struct hd_rma_args){ .op = how & 1 ? HD_RMA_READ : HD_RMA_WRITE,
					  .iov = b->iov,
					  .count = b->count,
					  .segs = seg,
					  .seg_count = pick_segs(seg, bytes, 1),
					  .ctx = b,
					  .flags = HD_SEND_COMPLETE }))
		buffer_free(b);
}

void step_want_atomic(void)
{
	struct hd_dest *dest = f.dest[input_below(&f.in, DESTS)];
	uint32_t how = input_below(&f.in, HD_ATOMIC_HOWS), op = input_below(&f.in, HD_ATOMIC_OPS);
	uint32_t type = input_below(&f.in, HD_ATOMIC_TYPES);
	uint64_t bytes = (1 + input_below(&f.in, 60)) * hd_atomic_size(type);
	const struct iovec iov = { f.bytes, bytes };
	struct hd_rma_seg seg[4];
	struct buffer *b;

	if (!dest || !hd_atomic_can(how, op, type) || !(b = buffer_make(bytes)))
		return;
	if (hd_atomic(pick_ep(), dest,
		      &(struct hd_atomic_args){ .how = how,
						.op = op,
						.type = type,
						.iov = &iov,
						.count = op != HD_ATOMIC_READ,
						.compare_iov = &iov,
						.compare_count = how == HD_ATOMIC_COMPARE,
						.result_iov = b->iov,
						.result_count = how == HD_ATOMIC_BASE ? 0 : b->count,
						.segs = seg,
						.seg_count = pick_segs(seg, bytes, 1),
						.ctx = b,
						.flags = HD_SEND_COMPLETE }))
		buffer_free(b);
}
