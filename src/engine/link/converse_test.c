/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Valid conversations in which something has been changed: whatever it is, the node lives on, and
 * nothing is left of them.
 */
#include "base/log.h"
#include "engine/test/test_hostile.h"
#include "engine/test/test_wire.h"

#include "transport/tcp/frame.h"

#include <stdlib.h>
#include <string.h>

struct fuzz {
	struct side s;
	struct wire *w;
	uint64_t random;
	int changed; /* step that something is changed in */
	int step;
	uint32_t cts_op; /* operation that the node asks frames for; 0: none */
	unsigned asked, received;
	unsigned char in[4][9000];
};

static uint64_t draw(struct fuzz *f)
{
	f->random ^= f->random << 13;
	f->random ^= f->random >> 7;
	f->random ^= f->random << 17;
	return f->random;
}

/* A few bits, a byte, or a word of interest. */
static void change(struct fuzz *f, unsigned char *at, size_t len)
{
	static const uint32_t words[] = { 0,	  1,	   2,	       0x7f,	   0xff,
					  0xffff, 0x10000, 0x7fffffff, 0x80000000, 0xffffffff };
	size_t place = draw(f) % len;

	if (draw(f) % 2)
		at[place] ^= (unsigned char)(1u << draw(f) % 8);
	else if (draw(f) % 2 || len < 4)
		at[place] = (unsigned char)draw(f);
	else
		memcpy(at + (place + 4 > len ? len - 4 : place), &words[draw(f) % 10], 4);
}

/*
 * Whatever the node says is heard, as far as it is there; true: something was, or it has hung up.
 */
static bool hear(struct fuzz *f)
{
	struct hd_tcp_frame frame;
	bool heard = false;
	ssize_t n;

	for (int i = 0; i < 6; i++)
		hd_node_poll(f->s.node);
	while ((n = recv(f->w->fd, &frame, sizeof(frame), MSG_PEEK)) == sizeof(frame)) {
		heard = true;
		if (!wire_hear(f->w))
			break;
		if (f->w->pkt.kind == HD_PKT_CTS) {
			f->asked++;
			f->cts_op = (uint32_t)f->w->pkt.imm;
		}
		if (f->w->pkt.kind == HD_PKT_HELLO)
			f->w->answer = f->w->pkt;
	}
	return heard || n >= 0;
}

/* The right thing to say now would be answered: give the node the time for it. */
static void hear_answer(struct fuzz *f)
{
	uint64_t end = hd_now_ns() + HD_NS_PER_MS;

	while (!hear(f) && hd_now_ns() < end)
		;
}

/* A frame, whole or in pieces, once or twice, as it is or changed. */
static void say(struct fuzz *f, struct hd_pkt pkt, const void *payload, uint32_t len)
{
	struct hd_tcp_frame frame = { .len = len, .seq = ++f->w->seq, .ack = f->w->ack, .pkt = pkt };
	unsigned char bytes[sizeof(frame) + 9000 + HD_TCP_CHECK];
	size_t size = sizeof(frame) + len + hd_tcp_check_of(len), cut;

	memset(bytes, 0, sizeof(bytes));
	memcpy(bytes, &frame, sizeof(frame));
	if (len)
		memcpy(bytes + sizeof(frame), payload, len);
	if (f->step++ == f->changed) {
		switch (draw(f) % 8) {
		case 0: /* only the packet's header, so that the frame is right */
		case 1:
		case 2:
			change(f, bytes + offsetof(struct hd_tcp_frame, pkt), sizeof(struct hd_pkt));
			break;
		case 3:
			change(f, bytes, sizeof(frame));
			break;
		case 4:
			change(f, bytes, size);
			break;
		case 5:
			return; /* left out */
		case 6:		/* said twice, numbered right */
			wire_raw(f->w, bytes, size);
			frame.seq = ++f->w->seq;
			memcpy(bytes, &frame, sizeof(frame));
			break;
		default:
			if (len)
				change(f, bytes + sizeof(frame), len);
			break;
		}
	}
	cut = draw(f) % 3 ? size : draw(f) % size;
	wire_raw(f->w, bytes, cut);
	wire_raw(f->w, bytes + cut, size - cut);
	hear(f);
}

static void converse(struct fuzz *f)
{
	static const unsigned char zero[9000];
	struct hd_pkt pkt = { .kind = HD_PKT_HELLO };
	struct hd_announce own[3] = { { .gen = 1, .port = 4000 }, { .index = 5, .gen = 2, .port = 4001 } };
	uint64_t len = 9000;
	struct hd_hello h;

	wire_hello(f->w, &h);
	say(f, pkt, &h, sizeof(h));
	hear_answer(f);
	say(f, (struct hd_pkt){ .kind = HD_PKT_USE }, NULL, 0);
	say(f, (struct hd_pkt){ .kind = HD_PKT_ANNOUNCE }, own, sizeof(own));
	for (int i = 0; i < 4; i++) {
		pkt = wire_eager(f->w, (uint64_t)i % 2, i % 2 ? HD_PKT_F_ACK : HD_PKT_F_IMM);
		pkt.src = i % 2 ? 5 : 0;
		say(f, pkt, zero, i * 2500u);
	}
	pkt.kind = HD_PKT_RTS;
	pkt.tag = 2;
	say(f, pkt, &len, sizeof(len));
	hear_answer(f);
	pkt = (struct hd_pkt){ .kind = HD_PKT_DATA, .op = f->cts_op };
	for (pkt.tag = 0; f->cts_op && pkt.tag < len; pkt.tag += 3000)
		say(f, pkt, zero, 3000);
	say(f, (struct hd_pkt){ .kind = HD_PKT_GONE, .src = 5, .gen = 2 }, NULL, 0);
}

static void conversation(struct fuzz *f, uint64_t seed)
{
	f->random = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
	f->changed = (int)(draw(f) % 14);
	f->step = 0;
	f->cts_op = 0;
	wire_dial(f->w, &f->s);
	for (int i = 0; i < 3; i++)
		side_post(&f->s, f->in[i], sizeof(f->in[i]), (uint64_t)i, 0, NULL, f->in[i]);
	converse(f);
	if (draw(f) % 4 == 0)
		hd_ep_close(f->s.ep);
	else
		f->s.to = (void *)f; /* the endpoint stays */
	wire_hang_up(f->w);
	until_alone(&f->s);
}

/* Nothing of the conversation is left. */
static void is_clean(struct fuzz *f)
{
	for (; hd_cq_peek(f->s.cq); hd_cq_pop(f->s.cq))
		f->received += hd_cq_peek(f->s.cq)->err == 0;
	for (int i = 0; i < 3; i++)
		hd_cancel(f->s.ep, f->in[i]);
	for (int i = 0; i < 2; i++)
		while (hd_rq_inspect(f->s.ep->rq).waiting[i]) {
			struct iovec iov = { f->in[3], sizeof(f->in[3]) };

			assert_int_equal(hd_recv(f->s.ep, &(struct hd_recv_args){ .iov = &iov,
										  .count = 1,
										  .flags = (uint32_t)i,
										  .ignore = UINT64_MAX }),
					 0);
		}
	while (hd_cq_peek(f->s.cq))
		hd_cq_pop(f->s.cq);
	assert_int_equal(hd_links_inspect(f->s.node).units, 0);
	assert_int_equal(hd_links_inspect(f->s.node).pending, 0);
	for (uint32_t i = 0; i < hd_links(f->s.node)->dest_count; i++)
		assert_null(hd_links(f->s.node)->dests[i]);
}

static void changed_conversations_do_no_harm(void **state)
{
	struct hd_ep_attr attr = { .type = HD_EP_RDM, .policy = HD_EP_DIRECTED };
	struct fuzz *f = calloc(1, sizeof(*f));
	uint64_t end = hd_now_ns() + 2500 * HD_NS_PER_MS, seed;

	f->w = malloc(sizeof(*f->w));
	listen_to_the_log(true);
	side_open(&f->s);
	attr.tx_cq = attr.rx_cq = f->s.cq;
	for (seed = 1; seed <= 3000 && (seed <= 100 || hd_now_ns() < end); seed++) {
		conversation(f, seed);
		if (!f->s.to) { /* it has closed its endpoint in between */
			while (hd_cq_peek(f->s.cq))
				hd_cq_pop(f->s.cq);
			assert_int_equal(hd_ep_open(f->s.node, &attr, &f->s.ep), 0);
		}
		f->s.to = NULL;
		is_clean(f);
	}
	assert_true(f->asked > seed / 3 && f->received > seed); /* most of what is said is right */
	serves(&f->s);
	listen_to_the_log(false);
	side_close(&f->s);
	free(f->w);
	free(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(changed_conversations_do_no_harm),
	};

	setenv("HEDDLE_TRANSPORT", "tcp", 1); /* what is said over the socket counts */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
