/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * TCP framing. The input is a list of steps of a peer: frames that are right, in whatever pieces
 * they come, and such that are not; noise; the end in the middle of something. What was right must
 * arrive in order and whole, whatever follows it; what was wrong must end the connection, and leave
 * nothing behind. The node and its transport are real, the peer is a bare socket.
 */
#include "base/clock.h"
#include "engine/link/link.h"
#include "fuzz/fuzz.h"
#include "transport/tcp/frame.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <unistd.h>

#define LONGEST 65536u /* what goes in one packet, by default */
#define MESSAGES 64
#define PATIENCE (20 * HD_NS_PER_S)

static struct {
	struct hd_node *node;
	struct hd_cq *cq;
	unsigned char out[sizeof(struct hd_tcp_frame) + LONGEST + HD_TCP_CHECK];
	uint64_t ids;
} lasting;

/* Of one input. */
static struct {
	struct input in;
	struct hd_ep *ep;
	int fd;		   /* the peer's end */
	uint32_t seq, ack; /* of the last frame said, and heard */
	uint32_t grant;	   /* what the node may spend in all */
	uint16_t gen;	   /* of the endpoint, as the answer to our HELLO says */
	uint32_t dst;
	uint32_t credit;    /* units that we may still spend */
	bool wrong;	    /* something was said that must end the connection */
	bool broken;	    /* a receive of what was cut off has failed */
	bool over;	    /* the node has hung up */
	uint32_t said;	    /* right messages; their number is their tag */
	uint32_t posted;    /* receives */
	uint32_t received;  /* completions */
	uint32_t piece;	    /* of what is being said: bytes at a time, 0: all at once */
	uint32_t heard_len; /* of what the node says: the rest of a payload */
	unsigned heard_have;
	union {
		struct hd_tcp_frame frame;
		unsigned char bytes[sizeof(struct hd_tcp_frame)];
	} heard;
	uint32_t len[MESSAGES];
	unsigned char *buf[MESSAGES];
} f;

static unsigned char pattern(uint32_t message, uint32_t at)
{
	return (unsigned char)(message * 37 + at * 13 + (at >> 8));
}

/* ---- what the node says ---------------------------------------------------------------------- */

/* The beginning of the answer to HELLO says whom we reached. */
static void heard_frame(void)
{
	const struct hd_tcp_frame *frame = &f.heard.frame;

	MUST(frame->seq == f.ack + 1);
	f.ack = frame->seq;
	f.heard_len = frame->len + hd_tcp_check_of(frame->len);
	f.heard_have = 0;
	if (frame->pkt.kind == HD_PKT_HELLO && !(frame->pkt.flags & HD_HELLO_F_REFUSED)) {
		f.gen = (uint16_t)frame->pkt.op;
		f.dst = (uint32_t)frame->pkt.imm;
	}
}

static void hear(void)
{
	unsigned char bytes[4096];
	ssize_t n;

	while (!f.over) {
		if (f.heard_len)
			n = recv(f.fd, bytes, f.heard_len < sizeof(bytes) ? f.heard_len : sizeof(bytes), 0);
		else
			n = recv(f.fd, f.heard.bytes + f.heard_have, sizeof(f.heard) - f.heard_have, 0);
		if (n < 0 && errno == EAGAIN)
			return;
		f.over = n <= 0;
		if (f.over)
			return;
		if (f.heard_len)
			f.heard_len -= (uint32_t)n;
		else if ((f.heard_have += (unsigned)n) == sizeof(f.heard))
			heard_frame();
	}
}

static void take(const struct hd_cqe *e)
{
	uint32_t i = f.received;

	if (e->err) { /* the one that was cut off, and nothing after it */
		MUST(f.wrong && !f.broken && i == f.said);
		f.broken = true;
		return;
	}
	f.received++;
	MUST(!f.broken && e->tag == i && i < f.said); /* in order, and nothing that was not said */
	MUST(e->len == f.len[i]);
	for (uint32_t at = 0; at < f.len[i]; at++)
		MUST(f.buf[i][at] == pattern(i, at));
}

static void turn(void)
{
	const struct hd_cqe *e;

	hd_node_poll(lasting.node);
	for (; (e = hd_cq_peek(lasting.cq)); hd_cq_pop(lasting.cq))
		take(e);
	hear();
}

/* ---- what the peer says ---------------------------------------------------------------------- */

static void say_bytes(const unsigned char *at, size_t len)
{
	while (len && !f.over) {
		size_t part = f.piece && f.piece < len ? f.piece : len;
		ssize_t n = send(f.fd, at, part, MSG_NOSIGNAL);

		if (n < 0 && errno != EAGAIN)
			f.over = true;
		if (n > 0) {
			at += n;
			len -= (size_t)n;
		}
		if (n < 0 || f.piece)
			turn();
	}
}

/* A frame, with the payload that already stands behind its place in lasting.out. */
static void frame_say(const struct hd_tcp_frame *frame, uint32_t payload)
{
	memcpy(lasting.out, frame, sizeof(*frame));
	memset(lasting.out + sizeof(*frame) + payload, 0, hd_tcp_check_of(payload));
	say_bytes(lasting.out, sizeof(*frame) + payload + hd_tcp_check_of(payload));
}

static struct hd_tcp_frame frame_make(uint8_t kind, uint32_t len)
{
	return (struct hd_tcp_frame){
		.len = len, .seq = ++f.seq, .ack = f.ack, .grant = f.grant, .pkt = { .kind = kind }
	};
}

static uint32_t pick_len(void)
{
	static const uint32_t usual[] = { 0, 1, 7, 48, 4000, 16383, 16384, 16385, 30000, LONGEST };
	unsigned how = input_byte(&f.in);

	return how < 100 ? how : how < 200 ? usual[how % 10] : (uint32_t)input_take(&f.in, 2);
}

static struct hd_tcp_frame message_make(uint32_t len)
{
	struct hd_tcp_frame frame = frame_make(HD_PKT_EAGER, len);

	frame.pkt.flags = HD_PKT_F_TAGGED;
	frame.pkt.gen = f.gen;
	frame.pkt.dst = f.dst;
	frame.pkt.tag = f.said;
	for (uint32_t at = 0; at < len; at++)
		lasting.out[sizeof(frame) + at] = pattern(f.said, at);
	return frame;
}

static bool may_say(uint32_t len)
{
	return f.said < MESSAGES && hd_units(len) <= f.credit;
}

static void post(void)
{
	struct iovec iov;

	if (f.posted == MESSAGES)
		return;
	iov = (struct iovec){ f.buf[f.posted] = malloc(LONGEST), LONGEST };
	MUST(iov.iov_base &&
	     !hd_recv(f.ep, &(struct hd_recv_args){ .iov = &iov,
						    .count = 1,
						    .flags = HD_RECV_TAGGED | HD_RECV_COMPLETE,
						    .tag = f.posted }));
	f.posted++;
}

static void step_message(void)
{
	uint32_t len = pick_len();
	struct hd_tcp_frame frame;

	if (!may_say(len))
		return;
	frame = message_make(len);
	f.len[f.said] = len;
	f.credit -= hd_units(len);
	f.said += !f.wrong; /* after a wrong one nothing counts */
	frame_say(&frame, len);
}

/* Many small ones, and one system call. */
static void step_burst(void)
{
	static unsigned char all[16 * (sizeof(struct hd_tcp_frame) + 100)];
	unsigned count = 1 + input_below(&f.in, 16);
	size_t at = 0;

	for (unsigned i = 0; i < count; i++) {
		uint32_t len = input_below(&f.in, 100);
		struct hd_tcp_frame frame;

		if (!may_say(len))
			break;
		frame = message_make(len);
		memcpy(all + at, &frame, sizeof(frame));
		memcpy(all + at + sizeof(frame), lasting.out + sizeof(frame), len);
		at += sizeof(frame) + len;
		f.len[f.said] = len;
		f.credit -= hd_units(len);
		f.said += !f.wrong;
	}
	say_bytes(all, at);
}

static void step_grant(void)
{
	struct hd_tcp_frame frame;

	f.grant += input_byte(&f.in);
	frame = frame_make(HD_TCP_PKT_GRANT, 0);
	frame_say(&frame, 0);
}

/* One word of the header is not what it must be. */
static void step_wrong(void)
{
	struct hd_tcp_frame frame = frame_make(HD_TCP_PKT_GRANT, 0);
	uint32_t by = 1 + (uint32_t)input_take(&f.in, 3);

	switch (input_below(&f.in, 6)) {
	case 0:
		frame.seq += by;
		break;
	case 1:
		frame.len = HD_TCP_LEN_MAX + by;
		break;
	case 2:
		frame.ack += 1000000 + by; /* so many were never said */
		break;
	case 3:
		frame.grant -= by; /* taken back */
		break;
	case 4:
		frame.len = by; /* that kind has no payload */
		break;
	default:
		frame.pkt.kind = HD_TCP_PKT_GRANT + 1 + by % 15;
	}
	f.wrong = true;
	frame_say(&frame, 0);
}

static void step_noise(void)
{
	unsigned char bytes[200];
	size_t n = 1 + input_below(&f.in, sizeof(bytes));

	for (size_t i = 0; i < n; i++)
		/* no header: its sequence number is far away */
		bytes[i] = input_byte(&f.in) | 0x80;
	f.wrong = f.wrong || n >= sizeof(struct hd_tcp_frame);
	say_bytes(bytes, n);
	if (n < sizeof(struct hd_tcp_frame)) { /* the rest of that header */
		memset(bytes, 0xff, sizeof(bytes));
		f.wrong = true;
		say_bytes(bytes, sizeof(struct hd_tcp_frame));
	}
}

/* The end of the stream: within a header or a payload, or between two frames. */
static void step_cut(void)
{
	uint32_t len = pick_len(), part;
	struct hd_tcp_frame frame = message_make(len);

	memcpy(lasting.out, &frame, sizeof(frame));
	part = (uint32_t)input_take(&f.in, 2) % (uint32_t)(sizeof(frame) + len);
	say_bytes(lasting.out, part);
	turn();
	shutdown(f.fd, SHUT_WR);
	f.wrong = true;
}

static void step_pieces(void)
{
	static const uint32_t usual[] = { 0, 1, 13, 47, 48, 49, 100, 4096, 20000 };

	f.piece = usual[input_below(&f.in, 9)];
}

static void (*const steps[])(void) = { step_message, step_message, step_message, step_burst, step_burst,
				       step_grant,   step_pieces,  post,	 post,	     post,
				       turn,	     step_wrong,   step_noise,	 step_cut,   step_pieces,
				       step_message, step_message, turn,	 step_burst, post };

/* ---- a run ----------------------------------------------------------------------------------- */

static void dial(void)
{
	struct sockaddr_storage name;
	const int one = 1;

	MUST(!hd_ep_name(f.ep, AF_INET, &name));
	f.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	MUST(f.fd >= 0 && !connect(f.fd, (void *)&name, sizeof(struct sockaddr_in)));
	MUST(!setsockopt(f.fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)));
	MUST(!fcntl(f.fd, F_SETFL, O_NONBLOCK));
}

static void greet(void)
{
	struct hd_hello hello = {
		.magic = HD_WIRE_MAGIC, .version = HD_WIRE_VERSION, .incarnation = 1, .window = 4096
	};
	uint64_t end = hd_now_ns() + PATIENCE, id = ++lasting.ids;
	struct hd_tcp_frame frame = frame_make(HD_PKT_HELLO, sizeof(hello));

	memcpy(&hello.id, &id, sizeof(id));
	memcpy(lasting.out + sizeof(frame), &hello, sizeof(hello));
	frame_say(&frame, sizeof(hello));
	while (!f.gen && !f.over && hd_now_ns() < end)
		turn();
	MUST(f.gen && !f.over);
	frame = frame_make(HD_PKT_USE, 0);
	frame_say(&frame, 0);
	f.credit = 4096 - 64; /* what a node grants at first is 256 KiB */
}

static void begin(void)
{
	MUST(!hd_ep_open(lasting.node,
			 &(struct hd_ep_attr){ .type = HD_EP_RDM, .tx_cq = lasting.cq, .rx_cq = lasting.cq },
			 &f.ep));
	dial();
	f.piece = 0;
	greet();
}

static void end(void)
{
	uint64_t end = hd_now_ns() + PATIENCE;

	while (f.wrong && !f.over) {
		MUST(hd_now_ns() < end);
		turn();
	}
	while (f.posted < f.said)
		post();
	while (f.received < f.said && !f.wrong) {
		MUST(hd_now_ns() < end && !f.over);
		turn();
	}
	close(f.fd);
	while (!TAILQ_EMPTY(&hd_links(lasting.node)->links)) {
		MUST(hd_now_ns() < end);
		hd_node_poll(lasting.node);
	}
	while (hd_cq_peek(lasting.cq)) { /* whole messages that came before what was wrong */
		take(hd_cq_peek(lasting.cq));
		hd_cq_pop(lasting.cq);
	}
	hd_ep_close(f.ep);
	MUST(!hd_links(lasting.node)->peers && !hd_links(lasting.node)->op_ids.count);
	for (int i = 0; i < MESSAGES; i++)
		free(f.buf[i]);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	static const struct hd_node_attr attr = { .front = "fuzz" };

	setenv("HEDDLE_LOG", "error", 0);
	setenv("HEDDLE_TRANSPORT", "tcp", 1);
	setenv("HEDDLE_ADDR", "127.0.0.1", 1);
	MUST(!hd_node_open(&attr, &lasting.node));
	MUST(!hd_cq_open(lasting.node, &(struct hd_cq_attr){ .size = 256 }, &lasting.cq));
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	memset(&f, 0, sizeof(f));
	f.in = (struct input){ data, size };
	begin();
	while (f.in.left && !f.over)
		steps[input_byte(&f.in) % (sizeof(steps) / sizeof(steps[0]))]();
	end();
	return 0;
}
