/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * The engine between a hostile peer and an arbitrary program. The input is a list of steps: packets
 * with fields that are sometimes right, whole or in pieces; calls of the program; decisions of the
 * transport, which is a fake one. Whatever happens, the engine must keep the contract of
 * transport.h, touch no memory that is not its own, and close without a rest.
 */
#include "fuzz/engine_fuzz.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>

struct fuzz f;

/* ---- the program's buffers ------------------------------------------------------------------- */

struct buffer *buffer_make(size_t len)
{
	struct buffer *b;
	int i = 0;

	while (i < BUFFERS && f.buffer[i])
		i++;
	if (i == BUFFERS || !(b = calloc(1, sizeof(*b))))
		return NULL;
	b->place = i;
	b->pair = -1;
	b->count = 1 + (int)input_below(&f.in, 3);
	for (int k = 0; k < b->count; k++) {
		size_t part = k == b->count - 1 ? len : len / 2;

		b->iov[k] = (struct iovec){ malloc(part ? part : 1), part };
		memset(b->iov[k].iov_base, k, part);
		len -= part;
	}
	f.buffer[i] = b;
	return b;
}

void buffer_free(struct buffer *b)
{
	f.buffer[b->place] = NULL;
	for (int k = 0; k < b->count; k++)
		free(b->iov[k].iov_base);
	free(b);
}

/* One that has been overrun gives an error for ever. */
static void drain_cq(struct hd_cq *cq)
{
	const struct hd_cqe *e;

	while ((e = hd_cq_peek(cq)) && !(e->err == HD_S_OVERRUN && !e->ctx)) {
		struct buffer *b = e->ctx;

		if (b && (!b->multi || e->flags & HD_C_MULTI_RECV))
			buffer_free(b);
		hd_cq_pop(cq);
	}
}

void drain(void)
{
	drain_cq(f.cq);
	drain_cq(f.pair_cq);
}

/* ---- steps ----------------------------------------------------------------------------------- */

struct fake_link *pick_link(void)
{
	struct fake_link *l = f.link[input_below(&f.in, LINKS)];

	for (int i = 0; !l && i < LINKS; i++)
		l = f.link[i];
	return l;
}

size_t pick_len(size_t limit)
{
	static const size_t usual[] = { 0, 1, 8, 112, 500, 504, 4096, 4097, SEND_MAX };
	unsigned how = input_byte(&f.in);
	size_t len = how < 128 ? how : how < 200 ? usual[how % 9] : (size_t)input_take(&f.in, 2);

	return len < limit ? len : limit;
}

static const struct hd_pkt *pick_recent(void)
{
	return &f.recent[input_below(&f.in, RECENT)].pkt;
}

struct hd_pkt pick_pkt(void)
{
	struct hd_pkt pkt = {
		.kind = (uint8_t)input_below(&f.in, HD_PKT_KINDS + 1),
		.flags = input_byte(&f.in),
		.gen = 1,
		.dst = input_below(&f.in, EPS + CONNS + 2 + PAIRS + 2),
		.src = input_below(&f.in, 3),
		.tag = input_below(&f.in, 4),
		.imm = input_below(&f.in, 4),
	};
	unsigned how = input_byte(&f.in);

	if (!(how & 0x07))
		pkt.gen = (uint16_t)input_take(&f.in, 2);
	else
		pkt.gen = (uint16_t)(how >> 6);
	if (how & 0x08)
		pkt.op = how & 0x10 ? pick_recent()->op : (uint32_t)pick_recent()->imm;
	else
		pkt.op = input_below(&f.in, 8) | (how & 0x10 ? 1u << 22 : 0);
	if (how & 0x20)
		pkt.imm = pick_recent()->op;
	if (!(input_byte(&f.in) & 0x1f)) {
		pkt.tag = input_take(&f.in, 8);
		pkt.imm = input_take(&f.in, 8);
	}
	return pkt;
}

/* The payload lies in memory of exactly its size. */
void deliver(struct fake_link *l, const struct hd_pkt *pkt, const void *from, size_t len)
{
	unsigned char *payload = calloc(1, len ? len : 1);

	if (len)
		memcpy(payload, from, len);
	hd_deliver(&l->base, pkt, payload, len);
	free(payload);
}

void deliver_some(struct fake_link *l, const struct hd_pkt *pkt, size_t len, bool whole)
{
	if (whole)
		deliver(l, pkt, f.bytes, len);
	else if (!hd_deliver_begin(&l->base, pkt, len))
		l->open = true;
}

static void step_packet(void)
{
	struct fake_link *l = pick_link();
	struct hd_pkt pkt = pick_pkt();
	size_t len = pick_len(SEND_MAX);
	uint64_t first = input_take(&f.in, 2);

	if (!l || !l->up || l->open || l->base.down)
		return;
	memcpy(f.bytes, &first, 8); /* RTS: length of the message */
	deliver(l, &pkt, f.bytes, len);
}

/*
 * The next piece of what the engine has asked for, for this operation of its; in
 * pieces as well, now and then.
 */
static void answer_data(struct said *s, uint32_t op)
{
	uint64_t left = s->pkt.tag - s->at;
	size_t len = pick_len(left < SEND_MAX ? left : SEND_MAX);
	struct hd_pkt pkt = { .kind = HD_PKT_DATA, .op = op, .tag = s->at };

	if (!left)
		return;
	if (!len)
		len = left < SEND_MAX ? left : SEND_MAX;
	s->at += len;
	if (input_byte(&f.in) & 1)
		deliver(s->link, &pkt, f.bytes, len);
	else if (!hd_deliver_begin(&s->link->base, &pkt, len))
		s->link->open = true;
}

/* The old values, where the request asks for them. */
static void answer_atomic(const struct said *s)
{
	struct hd_pkt pkt = { .kind = HD_PKT_RESULT, .op = s->pkt.op };
	struct hd_atomic head;
	size_t len;

	memcpy(&head, &s->first, sizeof(head));
	len = head.how == HD_ATOMIC_BASE ? 0 : head.count * hd_atomic_size(head.type);
	if (input_byte(&f.in) & 1)
		deliver(s->link, &pkt, f.bytes, len);
	else if (!hd_deliver_begin(&s->link->base, &pkt, len))
		s->link->open = true;
}

/* A peer that does what it should. */
static void step_answer(void)
{
	struct said *s = &f.recent[input_below(&f.in, RECENT)];
	struct hd_pkt pkt = { .op = s->pkt.op };
	unsigned how = input_byte(&f.in);

	if (!s->link || s->link->open || s->link->base.down)
		return;
	switch (s->pkt.kind) {
	case HD_PKT_EAGER:
		pkt.kind = HD_PKT_ACK;
		break;
	case HD_PKT_RTS:
		pkt.kind = how & 1 ? HD_PKT_CTS : HD_PKT_FIN;
		pkt.imm = how & 1 ? 5 : (how & 6) == 6 ? how >> 3 : 0;
		pkt.tag = how & 8 ? s->first : s->first / 2;
		break;
	case HD_PKT_DATA:
		pkt.kind = HD_PKT_FIN;
		pkt.op = pick_recent()->op;
		break;
	case HD_PKT_CTS:
		answer_data(s, (uint32_t)s->pkt.imm);
		return;
	case HD_PKT_READ:
		if (how & 7) {
			answer_data(s, s->pkt.op);
			return;
		}
		pkt.kind = HD_PKT_FIN;
		pkt.imm = how >> 3;
		break;
	case HD_PKT_WRITE:
		pkt.kind = how & 1 ? HD_PKT_CTS : HD_PKT_FIN;
		pkt.imm = how & 1 ? 5 : (how & 6) == 6 ? how >> 3 : 0;
		pkt.tag = s->pkt.tag;
		break;
	case HD_PKT_PUT:
	case HD_PKT_FLUSH:
		pkt.kind = how & 8 ? HD_PKT_ACK : HD_PKT_FIN;
		pkt.imm = (how & 6) == 6 ? how >> 3 : 0;
		break;
	case HD_PKT_ATOMIC:
		if (how & 7) {
			answer_atomic(s);
			return;
		}
		pkt.kind = HD_PKT_FIN;
		pkt.imm = how >> 3;
		break;
	default:
		return;
	}
	deliver(s->link, &pkt, NULL, 0);
}

static void step_begin(void)
{
	struct fake_link *l = pick_link();
	struct hd_pkt pkt = pick_pkt();
	size_t len = pick_len(SEND_MAX);

	if (!l || !l->up || l->open || l->base.down)
		return;
	if (input_byte(&f.in) & 1)
		pkt.kind = HD_PKT_EAGER;
	if (hd_deliver_begin(&l->base, &pkt, len))
		return;
	MUST(hd_sink_left(&l->base.sink) == len);
	l->open = true;
}

static void step_continue(void)
{
	struct fake_link *l = pick_link();
	struct iovec iov[HD_IOV_MAX];
	uint64_t left;
	size_t n;

	if (!l || !l->open || l->base.down)
		return;
	left = hd_sink_left(&l->base.sink);
	n = pick_len(left < SEND_MAX ? left : SEND_MAX);
	if (!left) {
		l->open = false;
		hd_deliver_end(&l->base);
	} else if (n & 1) {
		hd_sink_copy(&l->base.sink, f.bytes, n);
	} else {
		int count = hd_sink_iov(&l->base.sink, iov, 1 + (int)input_below(&f.in, HD_IOV_MAX));

		MUST(count > 0);
		memset(iov[0].iov_base, 3, iov[0].iov_len);
		hd_sink_advance(&l->base.sink, iov[0].iov_len);
	}
}

static void say_hello(struct fake_link *l)
{
	struct hd_hello h = {
		.magic = HD_WIRE_MAGIC, .version = HD_WIRE_VERSION, .window = 5000, .incarnation = 1
	};
	struct hd_pkt pkt = { .kind = HD_PKT_HELLO };
	unsigned how = input_byte(&f.in);

	if (!l || !l->up || l->open || l->base.down)
		return;
	h.id.word[0] = how & 1 ? UINT64_MAX : how & 2; /* larger than ours, or smaller */
	h.id.word[1] = how & 2;
	if ((how & 0x1c) == 0x1c)
		h.id = *hd_node_id(f.node);
	pkt.op = how & 0x20 ? 1 : 0;
	pkt.imm = how >> 6;
	how = input_byte(&f.in);
	if ((how & 7) == 7)
		pkt.flags = how & 8 ? HD_HELLO_F_MERGED : HD_HELLO_F_REFUSED;
	if (how & 0x10) {
		h.advert_len = 18;
		h.advert[0] = HD_TNUM_SHM;
		h.advert[1] = how & 0x20 ? 16 : input_byte(&f.in);
	}
	if ((how & 0xc0) == 0xc0) {
		h.window = (uint32_t)input_take(&f.in, 4);
		h.addr_count = input_byte(&f.in);
	}
	hd_deliver(&l->base, &pkt, &h, sizeof(h));
}

static void step_hello(void)
{
	say_hello(pick_link());
}

static void say_use(struct fake_link *l)
{
	struct hd_pkt pkt = { .kind = HD_PKT_USE };

	if (l && l->up && !l->open && !l->base.down)
		hd_deliver(&l->base, &pkt, NULL, 0);
}

static void step_use(void)
{
	say_use(pick_link());
}

/* Somebody calls, or joins. */
static struct fake_link *be_called(bool joins)
{
	struct hd_listener *listener = f.listener[input_below(&f.in, EPS * 4)];
	struct fake_link *l;

	for (int i = 0; !listener && i < EPS * 4; i++)
		listener = f.listener[i];
	l = link_make(f.port[joins]);
	if (!l)
		return NULL;
	l->up = true;
	hd_link_accepted(&l->base, joins ? NULL : listener);
	return l;
}

static void step_called(void)
{
	be_called(input_below(&f.in, 4) == 0);
}

/* A whole greeting, as far as it is accepted. */
static void step_meet(void)
{
	struct fake_link *l = be_called(false);

	if (!l)
		return;
	say_hello(l);
	say_use(l);
}

bool may_speak(const struct fake_link *l)
{
	return l && l->up && !l->open && !l->base.down;
}

static void announce(struct fake_link *l, const struct hd_announce *a, size_t count)
{
	struct hd_pkt pkt = { .kind = HD_PKT_ANNOUNCE };

	if (may_speak(l))
		hd_deliver(&l->base, &pkt, a, count * sizeof(*a));
}

/*
 * A peer that has greeted and said what endpoints it has: those that queue
 * pairs are made ready for.
 */
static void step_settle(void)
{
	struct fake_link *l = be_called(false);
	struct hd_hello h = {
		.magic = HD_WIRE_MAGIC, .version = HD_WIRE_VERSION, .window = 5000, .incarnation = 1
	};
	struct hd_pkt pkt = { .kind = HD_PKT_HELLO };
	struct hd_announce a[3] = { 0 };

	if (!l)
		return;
	h.id.word[0] = UINT64_MAX;
	hd_deliver(&l->base, &pkt, &h, sizeof(h));
	say_use(l);
	for (unsigned i = 0; i < 3; i++)
		a[i] = (struct hd_announce){ .index = i, .gen = 1, .port = (uint16_t)(20000 + i) };
	announce(l, a, 3);
	pairs_ready();
}

static void step_link(void)
{
	struct fake_link *l = pick_link();
	unsigned how = input_byte(&f.in);

	if (!l)
		return;
	l->again = how & 1;
	l->offers_nothing = how & 2;
	l->puts_stay = how & 4;
	if (!(how & 8))
		link_up(l);
	if (how >= 0xf0)
		hd_link_down(&l->base, -ECONNRESET, NULL);
}

static void step_finish(void)
{
	struct fake_link *l = pick_link();
	struct hd_get *get;
	struct hd_put *put;

	if (!l || l->base.down)
		return;
	put = TAILQ_FIRST(&l->puts);
	if (put) {
		TAILQ_REMOVE(&l->puts, put, entry);
		put->done(put);
	}
	get = TAILQ_FIRST(&l->gets);
	if (get && !l->base.down) {
		TAILQ_REMOVE(&l->gets, get, entry);
		for (int i = 0; i < get->count; i++)
			memset(get->iov[i].iov_base, 9, get->iov[i].iov_len);
		get->done(get, input_byte(&f.in) & 3 ? 0 : -EPERM);
	}
}

struct hd_ep *pick_ep(void)
{
	return f.ep[input_below(&f.in, EPS)];
}

static void step_recv(void)
{
	struct hd_ep *ep = pick_ep();
	unsigned how = input_byte(&f.in);
	struct hd_recv_args args = { .flags = how & HD_RECV_TAGGED, .tag = input_below(&f.in, 4) };
	struct buffer *b = buffer_make(pick_len(SEND_MAX));

	if (!b)
		return;
	args.iov = b->iov;
	args.count = b->count;
	args.ctx = b;
	if (how & 2)
		args.ignore = how & 4 ? UINT64_MAX : how >> 4;
	if (how & 8)
		args.src = f.dest[input_below(&f.in, DESTS)];
	if (!args.flags && b->count == 1 && how & 0x10)
		args.flags = HD_RECV_MULTI;
	args.flags |= HD_RECV_COMPLETE;
	b->multi = args.flags & HD_RECV_MULTI;
	if (hd_recv(ep, &args))
		buffer_free(b);
}

static void step_send(void)
{
	unsigned whom = input_below(&f.in, DESTS + CONNS);
	struct hd_ep *ep = whom < DESTS ? pick_ep() : f.conn[whom - DESTS];
	struct hd_dest *dest = whom < DESTS ? f.dest[whom] : *hd_ep_to(ep);
	uint32_t flags = input_byte(&f.in) &
			 (HD_SEND_TAGGED | HD_SEND_IMM | HD_SEND_ACKED | HD_SEND_DELIVERED | HD_SEND_INJECT);
	size_t len = pick_len(flags & HD_SEND_INJECT ? HD_MAX_INJECT : SEND_MAX);
	struct buffer *b;
	int rc;

	if (!dest || !(b = buffer_make(len)))
		return;
	if (flags & HD_SEND_INJECT) {
		hd_sendv(ep, dest, b->iov, b->count, 1, 2, NULL, flags);
		buffer_free(b);
		return;
	}
	rc = hd_sendv(ep, dest, b->iov, b->count, input_below(&f.in, 4), 2, b, flags | HD_SEND_COMPLETE);
	if (rc)
		buffer_free(b);
}

static void step_peek(void)
{
	unsigned how = input_byte(&f.in);
	struct hd_recv_args args = { .flags = how & HD_RECV_TAGGED, .tag = input_below(&f.in, 4) };
	struct hd_claim **claim = &f.claim[input_below(&f.in, CLAIMS)];
	struct hd_ep *ep = f.ep[0]; /* claims belong to an endpoint */
	struct buffer *b;

	args.ignore = how & 2 ? UINT64_MAX : 0;
	if (*claim && how & 4) {
		hd_claim_discard(ep, *claim, NULL);
		*claim = NULL;
	} else if (*claim) {
		b = buffer_make(pick_len(SEND_MAX));
		if (!b)
			return;
		args.iov = b->iov;
		args.count = b->count;
		args.ctx = b;
		args.flags |= HD_RECV_COMPLETE;
		if (hd_claim_recv(ep, *claim, &args) < 0)
			buffer_free(b);
		else
			*claim = NULL;
	} else {
		hd_peek(ep, &args, how & 8 ? HD_PEEK_CLAIM : how & 16 ? HD_PEEK_DISCARD : 0, claim);
	}
}

static void step_cancel(void)
{
	struct buffer *b = f.buffer[input_below(&f.in, BUFFERS)];

	if (b)
		hd_cancel(pick_ep(), b);
}

static void ep_make(int i)
{
	const struct hd_ep_attr attr = {
		.type = HD_EP_RDM,
		.policy = (i ? HD_EP_DIRECTED : 0) | HD_EP_REMOTE_READ | HD_EP_REMOTE_WRITE,
		.tx_size = 16,
		.tx_cq = f.cq,
		.rx_cq = f.cq,
		.min_multi_recv = 64,
	};

	MUST(!hd_ep_open(f.node, &attr, &f.ep[i]));
}

/* Claims are the program's; it gives them back before it closes their endpoint. */
static void claims_drop(void)
{
	for (int i = 0; i < CLAIMS; i++) {
		if (f.claim[i])
			hd_claim_discard(f.ep[0], f.claim[i], NULL);
		f.claim[i] = NULL;
	}
}

static void step_reopen(void)
{
	int i = (int)input_below(&f.in, EPS);

	if (input_byte(&f.in) & 3)
		return;
	if (i == 0)
		claims_drop();
	groups_leave(f.ep[i]);
	hd_ep_close(f.ep[i]);
	ep_make(i);
}

static void step_dest(void)
{
	struct hd_dest **dest = &f.dest[input_below(&f.in, DESTS)];
	struct sockaddr_in name = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };

	if (*dest)
		hd_dest_put(*dest);
	*dest = NULL;
	name.sin_port = htons((uint16_t)(20000 + input_below(&f.in, 8)));
	if (input_byte(&f.in) & 7)
		MUST(!hd_dest_get(f.node, (struct sockaddr *)&name, dest));
}

static void step_announce(void)
{
	struct fake_link *l = pick_link();
	struct hd_announce a[3] = { 0 };

	for (int i = 0; i < 3; i++) {
		a[i].index = input_below(&f.in, 4);
		a[i].gen = (uint16_t)input_below(&f.in, 3);
		a[i].port = (uint16_t)(20000 + input_below(&f.in, 8));
		a[i].slot = i == 2 ? input_below(&f.in, 2) : 0;
	}
	announce(l, a, 3);
}

static void step_turn(void)
{
	hd_node_poll(f.node);
	drain();
}

static void (*const steps[])(void) = {
	step_packet,	    step_packet,	step_packet,	  step_begin,	    step_continue,
	step_continue,	    step_hello,		step_use,	  step_called,	    step_link,
	step_finish,	    step_recv,		step_recv,	  step_send,	    step_send,
	step_peek,	    step_cancel,	step_reopen,	  step_dest,	    step_turn,
	step_turn,	    step_announce,	step_finish,	  step_continue,    step_meet,
	step_answer,	    step_answer,	step_answer,	  step_send,	    step_recv,
	step_recv,	    step_packet,	step_region,	  step_region,	    step_wanted,
	step_wanted_atomic, step_wanted_atomic, step_want,	  step_want_atomic, step_want_atomic,
	step_wanted,	    step_connection,	step_connection,  step_wanted_put,  step_pair_state,
	step_pair_state,    step_pair_recv,	step_pair_recv,	  step_pair_post,   step_pair_post,
	step_pair_wanted,   step_pair_wanted,	step_pair_wanted, step_pair_answer, step_pair_answer,
	step_group,	    step_announce,	step_settle,
};

#define STEPS (sizeof(steps) / sizeof(steps[0]))

/* ---- a run ----------------------------------------------------------------------------------- */

static void begin(void)
{
	struct sockaddr_in name = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	const struct hd_node_attr attr = { .front = "fuzz" };

	f.next_port = 20000;
	MUST(!hd_node_open(&attr, &f.node));
	MUST(!hd_cq_open(f.node, &(struct hd_cq_attr){ .size = 16 }, &f.cq));
	for (int i = 0; i < EPS; i++)
		ep_make(i);
	connections_begin();
	pairs_begin();
	for (int i = 0; i < 2; i++) {
		name.sin_port = htons((uint16_t)(20006 + i));
		MUST(!hd_dest_get(f.node, (struct sockaddr *)&name, &f.dest[i]));
		region_open((unsigned)i, 0xfc | (unsigned)i);
	}
}

static void end(void)
{
	claims_drop();
	drain();
	pairs_end();
	connections_end();
	for (int i = 0; i < EPS; i++)
		hd_ep_close(f.ep[i]);
	for (int i = 0; i < DESTS; i++)
		if (f.dest[i])
			hd_dest_put(f.dest[i]);
	drain_cq(f.cq);
	for (int i = 0; i < REGIONS; i++)
		region_close(&f.region[i]);
	MUST(!hd_cq_close(f.cq));
	MUST(!hd_node_close(f.node));
	MUST(f.links == 0);
	for (int i = 0; i < BUFFERS; i++)
		if (f.buffer[i])
			buffer_free(f.buffer[i]);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	setenv("HEDDLE_LOG", "error", 0);
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	memset(&f, 0, sizeof(f));
	f.in = (struct input){ data, size };
	begin();
	if (input_byte(&f.in) & 1)
		step_settle();
	while (f.in.left)
		steps[input_byte(&f.in) % STEPS]();
	end();
	return 0;
}
