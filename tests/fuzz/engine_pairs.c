/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Queue pairs of every kind, windows, named queues and groups, as fronts use
 * them: steps of engine_fuzz.
 */
#include "engine/name/name.h"
#include "fuzz/engine_fuzz.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>

#define HEAD 40
#define DOMAIN 7
#define RIGHTS (HD_EP_REMOTE_READ | HD_EP_REMOTE_WRITE | HD_EP_REMOTE_ATOMIC | HD_EP_REMOTE_FLUSH)

enum kind {
	RC,
	RC_SHARED, /* with a shared receive queue */
	UC,
	UD,
	NAMES,	    /* XRC_SEND */
	NAMES_RECV, /* XRC_RECV */
};

#define PAIRED (HD_EP_NUMBERED | HD_EP_PAIRED | HD_EP_STRICT | RIGHTS)
static const uint32_t policies[PAIRS] = {
	[RC] = PAIRED,
	[RC_SHARED] = PAIRED,
	[UC] = PAIRED | HD_EP_DROP,
	[UD] = HD_EP_NUMBERED | HD_EP_DROP,
	[NAMES] = PAIRED | HD_EP_XRC,
	[NAMES_RECV] = PAIRED | HD_EP_XRC,
};

/* ---- life ------------------------------------------------------------------------------------ */

static void told(void *owner, uint32_t code, int err)
{
	f.sum += code + (unsigned)err;
}

static uint64_t write_head(void *owner, const struct hd_sender *from, void *at)
{
	memset(at, 0x77, HEAD);
	f.sum += from->number + (from->addr ? from->addr->sa_family : 0);
	return from->number;
}

static void pair_make(int i)
{
	const struct hd_ep_attr attr = {
		.type = i == UD ? HD_EP_DGRAM : HD_EP_RDM,
		.policy = policies[i],
		.tx_size = 8,
		.tx_cq = f.pair_cq,
		.rx_cq = i == NAMES || i == NAMES_RECV ? NULL : f.pair_cq,
		.rq = i == RC_SHARED ? f.shared : NULL,
		.domain = i == NAMES_RECV ? DOMAIN : 0,
		.head = i == UD ? HEAD : 0,
		.head_fill = write_head,
		.tell = told,
		.owner = &f.pair[i],
	};

	MUST(!hd_ep_open(f.node, &attr, &f.pair[i]));
}

/* What was its alone is the program's again, and nothing may touch it. */
static void buffers_back(int i)
{
	for (int k = 0; k < BUFFERS; k++)
		if (f.buffer[k] && f.buffer[k]->pair == i)
			buffer_free(f.buffer[k]);
}

static void pair_close(int i)
{
	uint32_t index = hd_ep_index(f.pair[i]);

	drain();
	groups_leave(f.pair[i]);
	hd_ep_close(f.pair[i]);
	hd_cq_drop(f.pair_cq, index);
	buffers_back(i);
	f.pair[i] = NULL;
}

static void pair_reset(int i)
{
	drain();
	hd_ep_reset(f.pair[i]);
	hd_cq_drop(f.pair_cq, hd_ep_index(f.pair[i]));
	buffers_back(i);
}

static void queues_begin(void)
{
	const struct hd_ep_attr poster = { .type = HD_EP_RDM, .policy = HD_EP_NAMELESS, .rq = f.shared };
	struct hd_ep_attr named = { .type = HD_EP_RDM,
				    .policy = HD_EP_NUMBERED | HD_EP_XRC_QUEUE,
				    .rx_cq = f.pair_cq,
				    .domain = DOMAIN };

	MUST(!hd_ep_open(f.node, &poster, &f.poster));
	MUST(!hd_rq_open(f.node, false, &f.named_rq));
	named.rq = f.named_rq;
	MUST(!hd_ep_open(f.node, &named, &f.named));
}

void pairs_begin(void)
{
	struct iovec iov = { calloc(1, REGION_LEN), REGION_LEN };
	const struct hd_mr_attr attr = { .iov = &iov,
					 .count = 1,
					 .access = HD_ACCESS_LOCAL_READ | HD_ACCESS_LOCAL_WRITE |
						   HD_ACCESS_REMOTE_READ | HD_ACCESS_REMOTE_WRITE |
						   HD_ACCESS_BIND,
					 .key_bytes = 4 };

	MUST(!hd_cq_open(f.node, &(struct hd_cq_attr){ .size = 128, .overruns = true }, &f.pair_cq));
	MUST(!hd_rq_open(f.node, false, &f.shared));
	for (int i = 0; i < PAIRS; i++)
		pair_make(i);
	queues_begin();
	MUST(iov.iov_base);
	f.bindable.at = iov.iov_base;
	MUST(!hd_mr_open(f.node, &attr, &f.bindable.mr));
	for (int i = 0; i < 2; i++)
		MUST(!hd_window_open(f.node, 0, i, &f.window[i]));
}

void pairs_end(void)
{
	groups_leave(NULL);
	for (int i = 0; i < PAIRS; i++)
		pair_close(i);
	hd_ep_close(f.named);
	hd_rq_close(f.named_rq);
	hd_ep_close(f.poster);
	hd_rq_close(f.shared);
	for (int i = 0; i < 2; i++)
		MUST(!hd_mr_close(f.window[i]));
	MUST(!hd_mr_close(f.bindable.mr));
	free(f.bindable.at);
	drain();
	MUST(!hd_cq_close(f.pair_cq));
}

/* ---- states ---------------------------------------------------------------------------------- */

void pairs_ready(void)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	const struct hd_qp_attr attr = { .to = (struct sockaddr *)&to, .rnr_retry = 7 };

	for (int i = 0; i < PAIRS; i++) {
		hd_name_set_number((struct sockaddr *)&to, (20000u + (unsigned)i % 3) << 8);
		hd_ep_pair(f.pair[i], i == UD ? &(struct hd_qp_attr){ 0 } : &attr);
	}
}

static void get_ready(int i)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	unsigned how = input_byte(&f.in);
	const struct hd_qp_attr attr = { .to = i == UD ? NULL : (struct sockaddr *)&to,
					 .rnr_retry = how & 7,
					 .rnr_timer_us = how & 8 ? 1 : 100000,
					 .timeout_ms = how & 16 ? 1 : 0 };

	hd_name_set_number((struct sockaddr *)&to, (20000 + input_below(&f.in, 8)) << 8 | (how & 32 ? 1 : 0));
	hd_ep_pair(f.pair[i], &attr);
}

void step_pair_state(void)
{
	int i = (int)input_below(&f.in, PAIRS);
	unsigned how = input_byte(&f.in);
	struct hd_ep *ep = f.pair[i];

	switch (how % 16) {
	case 0:
		hd_ep_fail(ep);
		break;
	case 1:
		pair_reset(i);
		break;
	case 2:
		hd_ep_pause(ep, true);
		break;
	case 3:
	case 4:
		hd_ep_pause(ep, false);
		break;
	case 5:
		hd_ep_drain(ep);
		break;
	case 6:
		hd_ep_go_on(ep);
		break;
	case 7:
		hd_ep_allow(ep, how & 0x80 ? RIGHTS : how & 0x40 ? HD_EP_REMOTE_READ : 0);
		break;
	case 8:
		hd_ep_set_qkey(ep, input_below(&f.in, 3));
		break;
	case 9:
		pair_close(i);
		pair_make(i);
		break;
	case 10:
		hd_ep_pair_tune(ep, &(struct hd_qp_attr){ .rnr_retry = how >> 5, .rnr_timer_us = how });
		break;
	default:
		get_ready(i);
	}
	f.sum += hd_ep_tx_left(f.pair[i]);
}

/* ---- posting --------------------------------------------------------------------------------- */

void step_pair_recv(void)
{
	static const int receivers[] = { RC, UC, UD, RC, UD };
	unsigned which = input_below(&f.in, 8);
	struct hd_ep *ep = which < 5 ? f.pair[receivers[which]] : which == 5 ? f.named : f.poster;
	struct hd_recv_args args = { .flags = HD_RECV_COMPLETE };
	struct buffer *b = buffer_make(pick_len(SEND_MAX));

	if (!b)
		return;
	if (which < 5)
		b->pair = receivers[which];
	args.iov = b->iov;
	args.count = b->count;
	args.ctx = b;
	if (!(input_byte(&f.in) & 0x1f)) { /* its memory was wrong */
		args.flags |= HD_RECV_FAULT;
		b->iov[0].iov_len = 0;
		args.count = 1;
	}
	if (hd_recv(ep, &args))
		buffer_free(b);
}

static uint32_t pick_flags(void)
{
	return (input_byte(&f.in) & (HD_SEND_IMM | HD_SEND_SOLICITED | HD_SEND_FENCE | HD_SEND_INJECT)) |
	       HD_SEND_COMPLETE;
}

/* Immediate data, or the key of a window. */
static uint32_t pick_word(void)
{
	return input_byte(&f.in) & 1 ? (uint32_t)hd_mr_key(f.window[1]) : 5;
}

/* The same, and above it the number of a queue. */
static uint64_t pick_imm(int i)
{
	uint64_t upper = 0;

	if (i == NAMES || i == NAMES_RECV)
		upper = input_byte(&f.in) & 7 ? hd_ep_number(f.named) : input_take(&f.in, 3);
	return upper << 32 | pick_word();
}

static struct hd_pkt_qp pick_head(void)
{
	struct hd_pkt_qp head = { .qkey = (uint32_t)input_below(&f.in, 3) };

	head.imm = pick_word();
	return head;
}

static int post_send(int i, struct hd_dest *dest, struct buffer *b, uint32_t flags)
{
	if (i != UD && i < NAMES && !(input_byte(&f.in) & 0x0f))
		flags |= HD_SEND_TAKE_BACK | HD_SEND_IMM;
	if (i == UD)
		return hd_ud_send(f.pair[i], dest, b->iov, b->count, pick_head(), 3, b,
				  flags & ~(uint32_t)HD_SEND_FENCE);
	return hd_sendv(f.pair[i], dest, b->iov, b->count, 3, pick_imm(i), b, flags);
}

static int post_rma(int i, struct hd_dest *dest, struct buffer *b, uint32_t flags, unsigned how)
{
	struct hd_rma_seg seg = { .key = 1 + input_below(&f.in, REGIONS + 1), .addr = input_byte(&f.in) };
	size_t len = hd_iov_len(b->iov, b->count);

	seg.len = len;
	if (how & 2)
		flags &= ~(uint32_t)(HD_SEND_INJECT | HD_SEND_IMM);
	return hd_rma(f.pair[i], dest,
		      &(struct hd_rma_args){ .op = how & 2 ? HD_RMA_READ : HD_RMA_WRITE,
					     .iov = b->iov,
					     .count = b->count,
					     .segs = &seg,
					     .seg_count = len != 0,
					     .imm = pick_imm(i),
					     .tag = 4,
					     .ctx = b,
					     .flags = flags });
}

static int post_atomic(int i, struct hd_dest *dest, struct buffer *b, uint32_t flags, unsigned how)
{
	const uint64_t operand = 5, comparand = 0;
	const struct iovec ours = { (void *)&operand, 8 }, compare = { (void *)&comparand, 8 };
	const struct hd_rma_seg seg = { input_byte(&f.in), 8, 1 + input_below(&f.in, REGIONS + 1) };

	return hd_atomic(f.pair[i], dest,
			 &(struct hd_atomic_args){ .how = how & 1 ? HD_ATOMIC_COMPARE : HD_ATOMIC_FETCH,
						   .op = how & 1 ? HD_ATOMIC_CSWAP : HD_ATOMIC_SUM,
						   .type = HD_ATOMIC_U64,
						   .iov = &ours,
						   .compare_iov = &compare,
						   .result_iov = b->iov,
						   .count = 1,
						   .compare_count = how & 1,
						   .result_count = b->count,
						   .seg_count = 1,
						   .segs = &seg,
						   .imm = pick_imm(i),
						   .tag = 5,
						   .ctx = b,
						   .flags = flags & HD_SEND_FENCE ? flags
										  : HD_SEND_COMPLETE });
}

static int post_flush(int i, struct hd_dest *dest, struct buffer *b, unsigned how)
{
	const struct hd_rma_seg seg = { input_byte(&f.in), input_byte(&f.in),
					1 + input_below(&f.in, REGIONS + 1) };

	return hd_flush(f.pair[i], dest,
			&(struct hd_rma_args){ .op = HD_RMA_FLUSH,
					       .segs = &seg,
					       .seg_count = 1,
					       .imm = (how & 3) | (how & 4 ? HD_FLUSH_REGION : 0),
					       .tag = 8,
					       .ctx = b,
					       .flags = HD_SEND_COMPLETE | (how & 8 ? HD_SEND_FENCE : 0) });
}

static int post_window(int i, struct buffer *b, unsigned how)
{
	struct hd_mr *window = f.window[how & 1];
	struct hd_bind_args args = { .key = hd_mr_key(window),
				     .region = how & 8 ? NULL : f.bindable.mr,
				     .addr = input_byte(&f.in),
				     .len = input_byte(&f.in),
				     .access = HD_ACCESS_REMOTE_WRITE |
					       (how & 16 ? HD_ACCESS_REMOTE_READ : 0),
				     .from_zero = how & 32,
				     .tag = 6,
				     .ctx = b,
				     .flags = HD_SEND_COMPLETE | (how & 64 ? HD_SEND_FENCE : 0) };

	if (how & 2)
		args.key = (args.key & ~UINT64_C(0xff)) | ((args.key + 1) & 0xff);
	return how & 4 ? hd_window_invalidate(f.pair[i], &args) : hd_window_bind(f.pair[i], &args);
}

/* Reads and atomic operations of reliable ones; what a front refuses is refused here. */
static int post_some(int i, struct hd_dest *dest, struct buffer *b, unsigned how)
{
	uint32_t flags = pick_flags();
	size_t len = hd_iov_len(b->iov, b->count);

	if (len > HD_MAX_INJECT)
		flags &= ~(uint32_t)HD_SEND_INJECT;
	if (i == UC)
		flags &= ~(uint32_t)HD_SEND_FENCE;
	switch (i == UD ? 0 : how % 8) {
	case 0:
	case 1:
		return post_send(i, dest, b, flags);
	case 2:
		return i < UC && how & 8 ? post_flush(i, dest, b, how >> 4) : post_send(i, dest, b, flags);
	case 3:
		return len == 8 && i != UC ? post_atomic(i, dest, b, flags, how >> 3) : -EINVAL;
	case 4:
		return i < NAMES ? post_window(i, b, how >> 3) : -EINVAL;
	case 5:
		return hd_send_failed(
			f.pair[i], dest,
			&(struct hd_failed_args){
				.status = EFAULT, .tag = 7, .ctx = b, .flags = flags & HD_SEND_FENCE });
	default:
		return i == UC && how & 16 ? -EINVAL : post_rma(i, dest, b, flags, how >> 3);
	}
}

void step_pair_post(void)
{
	int i = (int)input_below(&f.in, NAMES_RECV);
	struct hd_dest *dest = i == UD ? f.dest[input_below(&f.in, DESTS)] : *hd_ep_to(f.pair[i]);
	unsigned how = input_byte(&f.in);
	struct buffer *b;

	if (!dest || !(b = buffer_make(how % 8 == 3 ? 8 : pick_len(i == UD ? 4096 : SEND_MAX))))
		return;
	b->pair = i;
	if (post_some(i, dest, b, how))
		buffer_free(b);
}

/* ---- the peer -------------------------------------------------------------------------------- */

static size_t pair_body(struct hd_pkt *pkt, unsigned how)
{
	uint64_t len = pick_len(SEND_MAX);

	switch (pkt->kind) {
	case HD_PKT_RTS:
		memcpy(f.bytes, &len, 8);
		return how & 0x40 ? 16 : 8;
	case HD_PKT_READ:
	case HD_PKT_FLUSH:
	case HD_PKT_WRITE:
		pkt->tag |= len % 300;
		return wanted_body((how & ~1u) | (pkt->kind == HD_PKT_WRITE), len % 300);
	case HD_PKT_ATOMIC:
		return wanted_atomic_body();
	default:
		return len;
	}
}

/*
 * A request for a queue pair, mostly of the right form and from the one that it may be paired with.
 */
void step_pair_wanted(void)
{
	static const uint8_t kinds[] = { HD_PKT_EAGER, HD_PKT_FLUSH, HD_PKT_RTS,    HD_PKT_RTS,
					 HD_PKT_WRITE, HD_PKT_READ,  HD_PKT_ATOMIC, HD_PKT_PUT };
	unsigned which = input_below(&f.in, PAIRS + 1), how = input_byte(&f.in);
	const struct hd_ep *ep = which < PAIRS ? f.pair[which] : f.named;
	struct fake_link *l = pick_link();
	struct hd_pkt pkt = {
		.kind = kinds[how % 8], .gen = ep->gen, .dst = ep->index, .src = input_below(&f.in, 3)
	};
	uint64_t upper = which == UD ? input_below(&f.in, 3) : how >> 3;

	if (!may_speak(l))
		return;
	pkt.op = input_byte(&f.in);
	pkt.flags = input_byte(&f.in) & (HD_PKT_F_IMM | HD_PKT_F_ACK | HD_PKT_F_SOLICITED | HD_PKT_F_SSN);
	if (!(input_byte(&f.in) & 0x1f))
		pkt.flags = input_byte(&f.in);
	if (which >= NAMES) {
		pkt.flags |= HD_PKT_F_QUEUE;
		pkt.qp.queue = hd_ep_number(f.named);
	} else if (!(how & 0xc0) && pkt.flags & HD_PKT_F_IMM) {
		pkt.flags |= HD_PKT_F_INVALIDATE;
	}
	pkt.imm = upper << 32 | (how & 0x80 ? hd_mr_key(f.window[1]) : input_byte(&f.in));
	deliver_some(l, &pkt, pair_body(&pkt, how), how & 0x20);
}

/* What answers a run of a queue pair's messages. */
void step_pair_answer(void)
{
	struct said *s = &f.recent[input_below(&f.in, RECENT)];
	unsigned how = input_byte(&f.in);
	struct hd_pkt pkt = { .kind = how & 3 ? HD_PKT_ACK : HD_PKT_FIN,
			      .flags = HD_PKT_F_SSN,
			      .dst = s->pkt.src,
			      .op = s->pkt.op + (how & 4 ? 0 : (how >> 5) - 2),
			      .imm = how & 3 ? 0 : how >> 2 };

	if (may_speak(s->link))
		deliver(s->link, &pkt, NULL, 0);
}

/* ---- groups ---------------------------------------------------------------------------------- */

void groups_leave(const struct hd_ep *ep)
{
	for (int i = 0; i < GROUPS; i++) {
		if (!f.member[i].group || (ep && f.member[i].ep != ep))
			continue;
		hd_group_leave(f.member[i].group);
		f.member[i].group = NULL;
	}
}

static void group_join(struct member *m, unsigned how)
{
	struct sockaddr_in to = { .sin_family = AF_INET,
				  .sin_port = htons(4000),
				  .sin_addr.s_addr = htonl(how & 1 ? 0xefc00001u : 0x7f000001u) };
	struct sockaddr_in from = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	const struct hd_group_attr attr = { .addr = (struct sockaddr *)&to,
					    .how = how & 2 ? HD_GROUP_SEND : HD_GROUP_SEND | HD_GROUP_RECV,
					    .from = (struct sockaddr *)&from,
					    .word = how & 4 ? 1 : 0,
					    .not_own = how & 8,
					    .owner = m };

	m->ep = how & 16 ? f.pair[UD] : f.ep[0];
	if (hd_group_join(m->ep, &attr, &m->group))
		m->group = NULL;
}

static void group_send(const struct member *m)
{
	const struct iovec iov = { f.bytes, pick_len(4096) };
	const struct hd_pkt_qp head = pick_head();

	hd_group_send(m->group, &(struct hd_group_args){ .iov = &iov,
							 .count = 1,
							 .imm = head.imm,
							 .qkey = head.qkey,
							 .tag = 8,
							 .flags = pick_flags() & ~(uint32_t)HD_SEND_FENCE });
}

static void group_arrival(struct hd_cast *cast, unsigned how)
{
	struct sockaddr_in from = { .sin_family = how & 1 ? AF_INET : AF_INET6 };
	struct hd_cast_head head = { .magic = HD_WIRE_MAGIC, .version = HD_WIRE_VERSION };
	size_t len = pick_len(20000);
	unsigned char *payload;

	head.node.word[0] = how & 2 ? UINT64_MAX : 2;
	if (how & 4)
		head.node = *hd_node_id(f.node);
	head.more = how & 0x80 ? input_byte(&f.in) : 0;
	head.key = how & 8 ? input_byte(&f.in) : 0;
	head.pkt.kind = input_byte(&f.in) & 0x0f ? HD_PKT_EAGER : input_byte(&f.in);
	head.pkt.flags = input_byte(&f.in) & (how & 16 ? HD_PKT_F_IMM : 0xff);
	head.pkt.dst = (uint32_t)input_take(&f.in, 3);
	head.pkt.src = input_below(&f.in, 4);
	head.pkt.tag = input_below(&f.in, 2);
	head.pkt.imm = (uint64_t)input_below(&f.in, 2) << 32 | 1;
	payload = malloc(len ? len : 1);
	MUST(payload);
	memset(payload, 1, len);
	hd_cast_arrived(cast, &(struct hd_arrived){ &head, (struct sockaddr *)&from, payload, len });
	free(payload);
}

void step_group(void)
{
	int i = (int)input_below(&f.in, GROUPS);
	unsigned how = input_byte(&f.in);
	struct member *m = &f.member[i];

	if (f.cast[i] && how & 0x40)
		group_arrival(f.cast[i], input_byte(&f.in));
	else if (!m->group)
		group_join(m, how);
	else if (how & 0x20)
		group_send(m);
	else if (!(how & 0x18))
		groups_leave(m->ep);
}
