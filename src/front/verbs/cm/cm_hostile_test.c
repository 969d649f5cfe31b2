/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * rdma_cm and an end that speaks the engine's language, but says what it likes: requests and
 * answers with anything in them.
 */
#include "front/verbs/cm/cm.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ROUNDS 150
#define CALLS 60 /* one in five that is refused looks elsewhere, and 200 ms later once more */
#define PATIENCE_MS 20000

/* ---- chance ---------------------------------------------------------------------------------- */

static uint64_t state;

static unsigned chance(unsigned below)
{
	state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (unsigned)(state >> 33) % below;
}

/* ---- the end that is hostile ----------------------------------------------------------------- */

struct rig {
	enum rdma_port_space ps;
	struct hd_node *node;
	struct hd_evq *evq;
	struct hd_ep *ep;
	struct hd_service *service;
	struct rdma_event_channel *ch;
	struct rdma_cm_id *id; /* of the program: a listener, or what calls */
	unsigned seen;	       /* private data that the program has read */
};

static struct sockaddr_in here(uint16_t port)
{
	return (struct sockaddr_in){ .sin_family = AF_INET,
				     .sin_port = htobe16(port),
				     .sin_addr.s_addr = htobe32(INADDR_LOOPBACK) };
}

/*
 * What an honest end would say, and then a few bytes of it changed, and perhaps cut
 * off or a word of its own.
 */
static struct hd_cm_data words(const struct rig *r, uint8_t body[HD_CM_DATA])
{
	struct hv_head head = { .qp_type = r->ps == RDMA_PS_UDP ? IBV_QPT_UD : IBV_QPT_RC,
				.responder_resources = 1,
				.initiator_depth = 1,
				.qp_num = 0x8001 << 8,
				.qkey = 1,
				.src_port = 4000,
				.native = chance(8) == 0 };
	struct hd_cm_data data = { .data = body,
				   .word = chance(4) ? HV_WORD_FOUND : HV_WORD | chance(1u << 16) };
	struct sockaddr_in at = here(0);

	hv_sockaddr_map((struct sockaddr *)&at, head.src);
	hv_sockaddr_map((struct sockaddr *)&at, head.dst);
	memset(body, 'p', HD_CM_DATA);
	data.len = hv_head_put(&head, NULL, 0, body) + chance(HD_CM_DATA - HV_HEAD);
	for (unsigned n = chance(6); n; n--)
		body[chance(chance(2) ? 28 : HV_HEAD)] = (uint8_t)chance(256);
	if (chance(6) == 0)
		data.len = chance(HV_HEAD + 1);
	if (chance(8) == 0)
		data.word = (uint64_t)chance(1u << 31) << 32 | chance(1u << 31);
	return data;
}

static void node_open(struct rig *r)
{
	const struct hd_node_attr attr = { .front = "test", .locked = true, .serve = true };

	assert_int_equal(hd_node_open(&attr, &r->node), 0);
	assert_int_equal(hd_evq_open(64, &r->evq), 0);
	assert_true(hd_evq_event_fd(r->evq) >= 0);
}

static void ep_open(struct rig *r)
{
	const struct hd_ep_attr attr = {
		.type = HD_EP_MSG, .policy = HD_EP_NUMBERED, .evq = r->evq, .owner = r
	};

	hd_node_lock(r->node);
	assert_int_equal(hd_ep_open(r->node, &attr, &r->ep), 0);
	hd_node_unlock(r->node);
}

static void ep_close(struct rig *r)
{
	if (!r->ep)
		return;
	hd_node_lock(r->node);
	hd_ep_close(r->ep);
	hd_node_unlock(r->node);
	hd_evq_forget(r->evq, r);
	r->ep = NULL;
}

static ssize_t copy(const struct hd_event *e, void *arg)
{
	struct hd_event *out = arg;

	*out = *e;
	out->data = NULL;
	return 0;
}

/* What has happened here; false: nothing. */
static bool event_of(struct rig *r, struct hd_event *e)
{
	ssize_t rc = hd_evq_read(r->evq, 0, copy, e);

	if (rc == -EIO)
		rc = hd_evq_read(r->evq, HD_EVQ_ERROR, copy, e);
	return rc == 0;
}

/* ---- the program ----------------------------------------------------------------------------- */

static void look_at(struct rig *r, const struct rdma_cm_event *e)
{
	bool datagram = r->ps == RDMA_PS_UDP;
	const uint8_t *data = datagram ? e->param.ud.private_data : e->param.conn.private_data;
	size_t len = datagram ? e->param.ud.private_data_len : e->param.conn.private_data_len;

	assert_true(len <= 196 && (data || !len));
	for (size_t i = 0; i < len; i++)
		r->seen += data[i];
	r->seen += rdma_get_peer_addr(e->id)->sa_family + rdma_get_dst_port(e->id);
	r->seen += (unsigned)strlen(rdma_event_str(e->event));
}

static void with_queue_pair(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr attr = { .cap = { 1, 1, 1, 1, 0 }, .qp_type = id->qp_type };

	assert_int_equal(rdma_create_qp(id, NULL, &attr), 0);
}

static void id_close(struct rdma_cm_id *id)
{
	if (id->qp)
		rdma_destroy_qp(id);
	assert_int_equal(rdma_destroy_id(id), 0);
}

/* Somebody asks: yes, no, or never mind. Those that are accepted may fail. */
static struct rdma_cm_id *decide(struct rdma_cm_id *id)
{
	struct ibv_qp_attr attr = { .qp_state = (enum ibv_qp_state)chance(IBV_QPS_ERR + 1) };
	int mask;

	rdma_init_qp_attr(id, &attr, &mask);
	switch (chance(4)) {
	case 0:
		rdma_reject(id, "no", 2);
		break;
	case 1:
		break;
	case 2:
		with_queue_pair(id);
		/* fallthrough */
	default:
		if (!rdma_accept(id, NULL))
			return id;
	}
	id_close(id);
	return NULL;
}

/* The program's next event, as long as the other end has something to say. NULL: there is none. */
static struct rdma_cm_event *next(struct rig *r, int ms)
{
	struct pollfd p = { .fd = r->ch->fd, .events = POLLIN };
	struct rdma_cm_event *e;

	if (poll(&p, 1, ms) != 1 || rdma_get_cm_event(r->ch, &e))
		return NULL;
	look_at(r, e);
	return e;
}

/* ---- callers --------------------------------------------------------------------------------- */

static void call(struct rig *r, uint16_t port)
{
	struct sockaddr_in to = here(0);
	uint8_t body[HD_CM_DATA];
	const struct hd_connect_args args = { .to = (struct sockaddr *)&to,
					      .space = r->ps,
					      .number = port,
					      .confirms = chance(2),
					      .data = words(r, body) };

	hd_node_lock(r->node);
	assert_int_equal(hd_ep_connect(r->ep, &args), 0);
	hd_node_unlock(r->node);
}

/* The caller has been answered, in whatever way: it stays, confirms, or goes. */
static bool is_answered(struct rig *r)
{
	struct hd_event e;

	if (!event_of(r, &e))
		return false;
	if (e.code == HD_EV_ANSWER && chance(3)) {
		hd_node_lock(r->node);
		hd_ep_confirm(r->ep);
		hd_node_unlock(r->node);
	}
	return true;
}

static void one_call(struct rig *r, uint16_t port)
{
	struct rdma_cm_id *taken = NULL;
	struct rdma_cm_event *e;
	bool answered = false;

	ep_open(r);
	call(r, port);
	for (int ms = 0; !answered && ms < PATIENCE_MS; ms++) {
		e = next(r, 1);
		if (e && e->event == RDMA_CM_EVENT_CONNECT_REQUEST) {
			struct rdma_cm_id *id = e->id;

			assert_ptr_equal(e->listen_id, r->id);
			assert_int_equal(rdma_ack_cm_event(e), 0);
			taken = decide(id);
		} else if (e) {
			assert_int_equal(rdma_ack_cm_event(e), 0);
		}
		answered = is_answered(r);
	}
	assert_true(answered);
	ep_close(r);
	if (taken && chance(2) && (e = next(r, 100)))
		assert_int_equal(rdma_ack_cm_event(e), 0);
	if (taken)
		id_close(taken);
}

static void callers(enum rdma_port_space ps)
{
	struct rig r = { .ps = ps };
	struct sockaddr_in at = here(0);
	uint16_t port;

	node_open(&r);
	r.ch = rdma_create_event_channel();
	assert_non_null(r.ch);
	assert_int_equal(rdma_create_id(r.ch, &r.id, NULL, ps), 0);
	assert_int_equal(rdma_bind_addr(r.id, (struct sockaddr *)&at), 0);
	assert_int_equal(rdma_listen(r.id, 8), 0);
	port = be16toh(rdma_get_src_port(r.id));
	for (int i = 0; i < CALLS; i++)
		one_call(&r, port);
	id_close(r.id);
	rdma_destroy_event_channel(r.ch);
	assert_int_equal(hd_evq_close(r.evq), 0);
	assert_int_equal(hd_node_close(r.node), 0);
}

/* ---- services -------------------------------------------------------------------------------- */

static void service_open(struct rig *r, uint16_t port)
{
	struct sockaddr_in at = here(0);
	const struct hd_listen_args listen = { .evq = r->evq, .owner = &r->service, .backlog = 8 };
	const struct hd_service_attr attr = { .bind = (struct sockaddr *)&at,
					      .space = r->ps,
					      .number = port };

	hd_node_lock(r->node);
	assert_int_equal(hd_service_open(r->node, &attr, &r->service), 0);
	assert_int_equal(hd_service_listen(r->service, &listen), 0);
	hd_node_unlock(r->node);
}

static void answer(struct rig *r, struct hd_request *request)
{
	uint8_t body[HD_CM_DATA];
	const struct hd_cm_data data = words(r, body);

	if (r->ps == RDMA_PS_TCP && chance(3)) {
		ep_open(r);
		if (hd_ep_accept(r->ep, request, &data) == 0 || !chance(2))
			return;
	}
	hd_node_lock(r->node);
	hd_request_reject(request, &data);
	hd_node_unlock(r->node);
}

static struct rdma_cm_id *caller(struct rig *r, uint16_t port)
{
	struct sockaddr_in to = here(port);
	struct rdma_cm_event *e;
	struct rdma_cm_id *id;

	assert_int_equal(rdma_create_id(r->ch, &id, NULL, r->ps), 0);
	assert_int_equal(rdma_resolve_addr(id, NULL, (struct sockaddr *)&to, 1000), 0);
	assert_int_equal(rdma_get_cm_event(r->ch, &e) || rdma_ack_cm_event(e), 0);
	assert_int_equal(rdma_resolve_route(id, 1000), 0);
	assert_int_equal(rdma_get_cm_event(r->ch, &e) || rdma_ack_cm_event(e), 0);
	if (chance(2))
		with_queue_pair(id);
	assert_int_equal(rdma_connect(id, NULL), 0);
	return id;
}

static void one_answer(struct rig *r, uint16_t port)
{
	struct rdma_cm_id *id = caller(r, port);
	struct rdma_cm_event *e = NULL;
	struct hd_event asked;

	for (int ms = 0; !e && ms < PATIENCE_MS; ms++) {
		if (event_of(r, &asked) && asked.code == HD_EV_REQUEST)
			answer(r, asked.request);
		e = next(r, 1);
	}
	assert_non_null(e);
	assert_ptr_equal(e->id, id);
	assert_true(e->event == RDMA_CM_EVENT_ESTABLISHED || e->event == RDMA_CM_EVENT_CONNECT_RESPONSE ||
		    e->event == RDMA_CM_EVENT_CONNECT_ERROR || e->event == RDMA_CM_EVENT_REJECTED ||
		    e->event == RDMA_CM_EVENT_UNREACHABLE);
	if (e->event == RDMA_CM_EVENT_CONNECT_RESPONSE && chance(2))
		rdma_establish(id);
	assert_int_equal(rdma_ack_cm_event(e), 0);
	if (chance(2))
		rdma_disconnect(id);
	id_close(id);
	ep_close(r);
}

static void services(enum rdma_port_space ps)
{
	struct rig r = { .ps = ps };
	uint16_t port = (uint16_t)(20000 + getpid() % 10000);

	node_open(&r);
	service_open(&r, port);
	r.ch = rdma_create_event_channel();
	assert_non_null(r.ch);
	for (int i = 0; i < ROUNDS; i++)
		one_answer(&r, port);
	rdma_destroy_event_channel(r.ch);
	hd_node_lock(r.node);
	hd_service_close(r.service);
	hd_node_unlock(r.node);
	assert_int_equal(hd_evq_close(r.evq), 0);
	assert_int_equal(hd_node_close(r.node), 0);
}

static void any_request(void **unused)
{
	callers(RDMA_PS_TCP);
}

static void any_lookup(void **unused)
{
	callers(RDMA_PS_UDP);
}

static void any_answer(void **unused)
{
	services(RDMA_PS_TCP);
}

static void any_found(void **unused)
{
	services(RDMA_PS_UDP);
}

int main(void)
{
	const char *seed = getenv("HD_TEST_SEED");
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(any_request),
		cmocka_unit_test(any_lookup),
		cmocka_unit_test(any_answer),
		cmocka_unit_test(any_found),
	};

	state = seed ? strtoull(seed, NULL, 0) : (uint64_t)getpid();
	/* not to stdout, whose first line is the test protocol's version */
	fprintf(stderr, "# HD_TEST_SEED=%llu\n", (unsigned long long)state);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
