/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * The engine between a hostile peer and an arbitrary program. The input is a list of steps: packets with fields that are sometimes
 * right, whole or in pieces; calls of the program; decisions of the transport, which is a fake one. Whatever happens, the engine must
 * keep the contract of transport.h, touch no memory that is not its own, and close without a rest.
 */
#include "fuzz/engine_fuzz.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>

struct fuzz f;

/* ---- the program's buffers ------------------------------------------------------------------------------------------------------- */

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

	while ((e = hd_cq_peek(cq)) && !(e->err == EOVERFLOW && !e->ctx)) {
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

/* ---- steps ---------------------------------------------------------------------------------------------------------------------------- */

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

static struct hd_pkt pick_pkt(void)
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

/* The next piece of what the engine has asked for, for this operation of its; in pieces as well, now and then. */
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
		pkt.flags = how & 8 ? HD_PKT_F_MERGED : HD_PKT_F_REFUSED;
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

static void announce(struct fake_link *l, const struct hd_announce *a, size_t count)
{
	struct hd_pkt pkt = { .kind = HD_PKT_ANNOUNCE };

	if (may_speak(l))
		hd_deliver(&l->base, &pkt, a, count * sizeof(*a));
}

/* A peer that has greeted and said what endpoints it has: those that queue pairs are made ready for. */
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
	struct hd_pull *pull;
	struct hd_put *put;

	if (!l || l->base.down)
		return;
	put = TAILQ_FIRST(&l->puts);
	if (put) {
		TAILQ_REMOVE(&l->puts, put, entry);
		put->done(put);
	}
	pull = TAILQ_FIRST(&l->pulls);
	if (pull && !l->base.down) {
		TAILQ_REMOVE(&l->pulls, pull, entry);
		for (int i = 0; i < pull->count; i++)
			memset(pull->iov[i].iov_base, 9, pull->iov[i].iov_len);
		pull->done(pull, input_byte(&f.in) & 3 ? 0 : -EPERM);
	}
}

static struct hd_ep *pick_ep(void)
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

/* ---- connections ---------------------------------------------------------------------------------------------------------- */

static void conn_make(int i)
{
	const struct hd_ep_attr attr = { .type = HD_EP_MSG,
					 .tx_size = 16,
					 .tx_cq = f.cq,
					 .rx_cq = f.cq,
					 .evq = f.evq,
					 .owner = &f.conn[i] };

	MUST(!hd_ep_open(f.node, &attr, &f.conn[i]));
	f.conn_gen[i]++;
}

/* A handle belongs to whoever has read it: the last one stays, those before are rejected. */
static ssize_t event_take(const struct hd_event *e, void *arg)
{
	for (size_t i = 0; i < e->len; i++)
		f.sum += ((const unsigned char *)e->data)[i];
	*(struct hd_request **)arg = e->request;
	return 0;
}

static void request_take(struct hd_request *request)
{
	if (f.request)
		hd_request_reject(f.request, NULL);
	f.request = request;
}

static void events_drain(void)
{
	struct hd_request *request = NULL;
	ssize_t rc;

	/* a queue that is overrun has an error to be read for ever */
	for (int i = 0; i < 300 && (rc = hd_evq_read(f.evq, 0, event_take, &request)) != -EAGAIN; i++) {
		if (rc == -EIO)
			MUST(hd_evq_read(f.evq, HD_EVQ_ERROR, event_take, &request) == 0);
		if (request)
			request_take(request);
		request = NULL;
	}
}

bool may_speak(const struct fake_link *l)
{
	return l && l->up && !l->open && !l->base.down;
}

/* A request, mostly of the right form. */
static void say_connect(unsigned how)
{
	struct hd_connect body = { .type = HD_EP_MSG, .from = { .index = how & 3, .gen = 1, .port = 20000 } };
	struct hd_pkt pkt = { .kind = HD_PKT_CONNECT,
			      .dst = EPS,
			      .gen = how & 0x80 ? (uint16_t)input_below(&f.in, 4) : 1,
			      .src = how & 3,
			      .op = how };
	unsigned place = input_below(&f.in, LINKS);

	while (place < LINKS - 1 && !may_speak(f.link[place]))
		place++;
	if (!may_speak(f.link[place]))
		return;
	f.asker = place;
	f.asker_src = pkt.src;
	deliver(f.link[place], &pkt, &body, offsetof(struct hd_connect, data) + (how & 0x3c));
}

/* READY of the one that asked last, mostly with the right token. */
static void say_ready(int i, unsigned how)
{
	struct fake_link *l = f.link[how & 0x80 ? input_below(&f.in, LINKS) : f.asker];
	struct hd_pkt pkt = { .kind = HD_PKT_READY,
			      .dst = EPS + 1 + (unsigned)i,
			      .gen = f.conn_gen[i],
			      .src = f.asker_src,
			      .tag = f.token ^ !(how & 0x1c),
			      .imm = 1 };

	if (may_speak(l))
		deliver(l, &pkt, NULL, 0);
}

static void step_connection(void)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	unsigned how = input_byte(&f.in);
	int i = how & 1;

	switch (how >> 1 & 7) {
	case 0:
		to.sin_port = htons((uint16_t)(20000 + input_below(&f.in, 8)));
		hd_ep_connect(f.conn[i], &(struct hd_connect_args){ .to = (struct sockaddr *)&to,
								    .data = { "hi", 2, 3 } });
		break;
	case 1:
	case 2:
		if (f.request && hd_ep_accept(f.conn[i], f.request, NULL) != -EISCONN)
			f.request = NULL;
		say_ready(i, input_byte(&f.in));
		break;
	case 3:
		request_take(NULL);
		break;
	case 4:
		hd_ep_disconnect(f.conn[i]);
		break;
	case 5:
		hd_ep_close(f.conn[i]);
		conn_make(i);
		break;
	default:
		say_connect(input_byte(&f.in));
	}
	events_drain();
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

/* ---- one-sided steps -------------------------------------------------------------------------------------------------------- */

static void region_close(struct region *r)
{
	if (!r->mr)
		return;
	MUST(!hd_mr_close(r->mr));
	free(r->at);
	r->mr = NULL;
}

static void region_open(unsigned place, unsigned how)
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

static void step_region(void)
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
static void step_wanted(void)
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

static void step_wanted_put(void)
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

static void step_wanted_atomic(void)
{
	struct fake_link *l = pick_link();
	struct hd_pkt pkt = pick_pkt();

	if (!may_speak(l))
		return;
	pkt.kind = HD_PKT_ATOMIC;
	deliver(l, &pkt, f.bytes, wanted_atomic_body());
}

/* The program wants something of the peer's. */
static void step_want(void)
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

static void step_want_atomic(void)
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

/* ---- a run ------------------------------------------------------------------------------------------------------------------------------ */

static void connections_begin(void)
{
	struct hd_listen_args args = { .owner = &f.service, .backlog = 3 };

	MUST(!hd_evq_open(256, &f.evq));
	args.evq = f.evq;
	MUST(!hd_service_open(f.node, &(struct hd_service_attr){ 0 }, &f.service));
	MUST(!hd_service_listen(f.service, &args));
	for (int i = 0; i < CONNS; i++)
		conn_make(i);
}

static void connections_end(void)
{
	for (int i = 0; i < CONNS; i++)
		hd_ep_close(f.conn[i]);
	hd_service_close(f.service);
	f.request = NULL;
	MUST(!hd_evq_close(f.evq));
}

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
