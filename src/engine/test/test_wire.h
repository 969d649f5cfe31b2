/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * A peer without an engine: a TCP socket on which the tests say word for word what they like
 * (transport/tcp/frame.h and wire.h tell the words). It lives in the thread of the node that it
 * talks to, so whatever waits makes that node's progress.
 */
#ifndef HD_ENGINE_TEST_WIRE_H
#define HD_ENGINE_TEST_WIRE_H

#include "engine/test/test_pair.h"

#define WIRE_PAYLOAD 65536

struct wire {
	struct hd_node *node; /* whose progress is made */
	int fd;
	uint32_t seq;	/* of the last frame sent */
	uint32_t ack;	/* of the last frame received */
	uint32_t grant; /* credit given to the node */
	struct hd_node_id id;
	struct hd_hello theirs;
	struct hd_pkt answer; /* header of their HELLO */
	struct hd_pkt pkt;    /* of the last frame read, with its payload */
	uint32_t len;
	unsigned char payload[WIRE_PAYLOAD];
};

/*
 * wire_dial: call the endpoint of s; nothing is said yet. The node id is drawn.
 * wire_hang_up: close the socket.
 */
void wire_dial(struct wire *w, struct side *s);
void wire_hang_up(struct wire *w);

/* wire_hello: what a well-behaved node says first, to be changed at will. */
void wire_hello(const struct wire *w, struct hd_hello *h);

/*
 * wire_say: a frame. wire_head: only its beginning, for a payload of len bytes; wire_check: its
 * end, behind that. wire_raw: bytes.
 */
void wire_say(struct wire *w, const struct hd_pkt *pkt, const void *payload, uint32_t len);
void wire_head(struct wire *w, const struct hd_pkt *pkt, uint32_t len);
void wire_check(struct wire *w, uint32_t len);
void wire_raw(struct wire *w, const void *bytes, size_t len);

/*
 * wire_hear: the next frame from the node, into w; frames that carry only credit are passed
 * over. False: it has hung up.
 */
bool wire_hear(struct wire *w);

/* wire_hear_kind: the next frame of this kind; others are passed over. */
void wire_hear_kind(struct wire *w, uint8_t kind);

/* wire_greet: call, and finish the greeting over this socket: from then on messages may be sent. */
void wire_greet(struct wire *w, struct side *s);

/* wire_eager: header of an eager message to the endpoint that was called. */
struct hd_pkt wire_eager(const struct wire *w, uint64_t tag, uint8_t flags);

/*
 * wire_settle: progress until all that was said must have been heard. wire_gone: progress
 * until the node has hung up.
 */
void wire_settle(struct wire *w);
void wire_gone(struct wire *w);

#endif
