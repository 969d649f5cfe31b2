/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * What tests of connections share: a caller in one node, a service in a second, the endpoint
 * that accepts in a third.
 */
#ifndef HD_ENGINE_TEST_RIG_H
#define HD_ENGINE_TEST_RIG_H

#include "engine/cm/cm.h"
#include "engine/test/test_pair.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

struct end {
	struct hd_node *node;
	struct hd_cq *cq;
	struct hd_ep *ep;
};

struct rig {
	struct end a, b; /* caller, acceptor */
	struct hd_evq *ea, *eb;
	struct hd_node *server;
	struct hd_service *service;
	struct sockaddr_storage name; /* of the service */
	uint32_t space;		      /* its name, unless it is a TCP port */
	uint64_t number;
	bool confirms; /* the caller does */
};

/* What came out of an event queue. */
struct got {
	uint32_t code;
	int err;
	void *owner;
	uint64_t word;
	struct hd_request *request;
	size_t len;
	char data[HD_CM_DATA + 1];
};

static inline void end_open_ep(struct end *e, struct hd_evq *evq)
{
	const struct hd_ep_attr attr = {
		.type = HD_EP_MSG, .tx_cq = e->cq, .rx_cq = e->cq, .min_multi_recv = 64, .evq = evq, .owner = e
	};

	assert_int_equal(hd_ep_open(e->node, &attr, &e->ep), 0);
}

static inline void end_open(struct end *e, struct hd_evq *evq)
{
	assert_int_equal(hd_node_open(&(struct hd_node_attr){ .front = "test" }, &e->node), 0);
	assert_int_equal(hd_cq_open(e->node, &(struct hd_cq_attr){ .size = 64 }, &e->cq), 0);
	end_open_ep(e, evq);
}

static inline void end_close_ep(struct end *e)
{
	if (e->ep)
		hd_ep_close(e->ep);
	e->ep = NULL;
}

static inline void end_close(struct end *e)
{
	end_close_ep(e);
	assert_int_equal(hd_cq_close(e->cq), 0);
	assert_int_equal(hd_node_close(e->node), 0);
}

static inline void service_open(struct rig *r)
{
	const struct hd_listen_args args = { .evq = r->eb, .owner = r, .backlog = 8 };

	const struct hd_service_attr attr = { .space = r->space, .number = r->number };

	assert_int_equal(hd_service_open(r->server, &attr, &r->service), 0);
	assert_int_equal(hd_service_listen(r->service, &args), 0);
	assert_int_equal(hd_service_name(r->service, AF_INET, &r->name), 0);
}

/* rig_open_at: the service has this name. */
static inline void rig_open_at(struct rig *r, const char *transport, uint32_t space, uint64_t number)
{
	memset(r, 0, sizeof(*r));
	r->space = space;
	r->number = number;
	setenv("HEDDLE_TRANSPORT", transport, 1);
	assert_int_equal(hd_evq_open(64, &r->ea), 0);
	assert_int_equal(hd_evq_open(64, &r->eb), 0);
	end_open(&r->a, r->ea);
	end_open(&r->b, r->eb);
	assert_int_equal(hd_node_open(&(struct hd_node_attr){ .front = "test" }, &r->server), 0);
	service_open(r);
}

static inline void rig_open(struct rig *r, const char *transport)
{
	rig_open_at(r, transport, 0, 0);
}

static inline void rig_close(struct rig *r)
{
	end_close(&r->a);
	end_close(&r->b);
	if (r->service)
		hd_service_close(r->service);
	assert_int_equal(hd_node_close(r->server), 0);
	assert_int_equal(hd_evq_close(r->ea), 0);
	assert_int_equal(hd_evq_close(r->eb), 0);
	unsetenv("HEDDLE_TRANSPORT");
}

static inline void turn(struct rig *r)
{
	hd_node_poll(r->a.node);
	hd_node_poll(r->b.node);
	hd_node_poll(r->server);
}

static inline void settle(struct rig *r, int ms)
{
	for (struct settling s = settling(ms); settling_on(&s);)
		turn(r);
}

static inline ssize_t take(const struct hd_event *e, void *arg)
{
	struct got *g = arg;

	*g = (struct got){ e->code, e->err, e->owner, e->word, e->request, e->len, { 0 } };
	assert_in_range(e->len, 0, HD_CM_DATA);
	memcpy(g->data, e->data, e->len);
	return 0;
}

static inline bool poll_event(struct hd_evq *evq, struct got *g)
{
	ssize_t rc = hd_evq_read(evq, 0, take, g);

	if (rc == -EIO)
		rc = hd_evq_read(evq, HD_EVQ_ERROR, take, g);
	return rc == 0;
}

static inline struct got next(struct rig *r, struct hd_evq *evq)
{
	uint64_t until = hd_now_ns() + PATIENCE;
	struct got g;

	while (!poll_event(evq, &g)) {
		turn(r);
		assert_true(hd_now_ns() < until);
	}
	return g;
}

static inline void none(struct rig *r, struct hd_evq *evq)
{
	struct got g;

	settle(r, 20);
	assert_false(poll_event(evq, &g));
}

static inline struct hd_cqe completion(struct rig *r, struct end *e)
{
	uint64_t until = hd_now_ns() + PATIENCE;
	const struct hd_cqe *c;
	struct hd_cqe copy;

	while (!(c = hd_cq_peek(e->cq))) {
		turn(r);
		assert_true(hd_now_ns() < until);
	}
	copy = *c;
	hd_cq_pop(e->cq);
	return copy;
}

static inline void call(struct rig *r, const char *data)
{
	const struct hd_connect_args args = { .to = (void *)&r->name,
					      .space = r->space,
					      .number = r->number,
					      .confirms = r->confirms,
					      .data = { data, data ? strlen(data) : 0, 77 } };

	assert_int_equal(hd_ep_connect(r->a.ep, &args), 0);
}

static inline struct hd_request *called(struct rig *r)
{
	struct got g = next(r, r->eb);

	assert_int_equal(g.code, HD_EV_REQUEST);
	assert_int_equal(g.err, 0);
	assert_ptr_equal(g.owner, r);
	assert_non_null(g.request);
	return g.request;
}

static inline void both_up(struct rig *r)
{
	assert_int_equal(next(r, r->ea).code, HD_EV_UP);
	assert_int_equal(next(r, r->eb).code, HD_EV_UP);
}

static inline void join(struct rig *r)
{
	call(r, NULL);
	assert_int_equal(hd_ep_accept(r->b.ep, called(r), NULL), 0);
	both_up(r);
}

static inline int post(struct end *e, void *buf, size_t len)
{
	const struct iovec iov = { buf, len };

	return hd_recv(e->ep, &(struct hd_recv_args){
				      .iov = &iov, .count = 1, .flags = HD_RECV_COMPLETE, .ctx = buf });
}

static inline int say(struct end *e, const void *buf, size_t len)
{
	return hd_send(e->ep, *hd_ep_to(e->ep), buf, len, 0, 0, (void *)buf, HD_SEND_COMPLETE);
}

static inline void passes(struct rig *r, struct end *from, struct end *to, size_t len)
{
	unsigned char *out = malloc(len + 1), *in = calloc(1, len + 1);
	struct hd_cqe c;

	test_fill(out, len, (unsigned)len);
	assert_int_equal(post(to, in, len), 0);
	assert_int_equal(say(from, out, len), 0);
	c = completion(r, to);
	assert_ptr_equal(c.ctx, in);
	assert_int_equal(c.err, 0);
	assert_int_equal(c.len, len);
	test_check(in, len, (unsigned)len);
	assert_int_equal(completion(r, from).err, 0);
	free(out);
	free(in);
}

#endif
