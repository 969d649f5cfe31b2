/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Connections by rdma_cm(7): how they come about, are refused, and end; and services for datagrams.
 */
#include "base/lock.h"
#include "front/verbs/cm/cm.h"
#include "front/verbs/cm/test_cm.h"

#include <setjmp.h>
#include <stdarg.h>

#include <arpa/inet.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ---- coming about ---------------------------------------------------------------------------- */

static void what_is_said_arrives(void **state)
{
	struct rdma_cm_event *e;
	struct rdma_cm_id *b;
	struct rig r;

	cm_open(&r, RDMA_PS_TCP);
	r.a = cm_caller(&r);
	assert_non_null(r.a->verbs);
	assert_int_equal(r.a->port_num, 1);
	assert_int_equal(r.a->route.num_paths, 1);
	assert_int_equal(rdma_get_dst_port(r.a), htons(hv_sockaddr_port(cm_name(&r))));
	cm_call(&r, "hello there");
	e = cm_next(r.cb, RDMA_CM_EVENT_CONNECT_REQUEST);
	b = e->id;
	assert_string_equal(e->param.conn.private_data, "hello there");
	assert_int_equal(e->param.conn.private_data_len, 56);
	assert_int_equal(((const char *)e->param.conn.private_data)[55], 0);
	assert_int_equal(e->param.conn.initiator_depth, 3);
	assert_int_equal(e->param.conn.responder_resources, 0);
	assert_int_equal(e->param.conn.retry_count, 5);
	assert_int_equal(e->param.conn.rnr_retry_count, 6);
	assert_int_equal(e->param.conn.qp_num, 0x1234);
	assert_int_equal(rdma_ack_cm_event(e), 0);
	assert_memory_equal(rdma_get_peer_addr(b), rdma_get_local_addr(r.a), sizeof(struct sockaddr_in));
	assert_memory_equal(rdma_get_local_addr(b), rdma_get_peer_addr(r.a), sizeof(struct sockaddr_in));
	cm_answer(b, "and there");
	e = cm_next(r.ca, RDMA_CM_EVENT_CONNECT_RESPONSE);
	assert_string_equal(e->param.conn.private_data, "and there");
	assert_int_equal(e->param.conn.private_data_len, 196);
	assert_int_equal(e->param.conn.qp_num, 0x99);
	assert_int_equal(e->param.conn.rnr_retry_count, 4);
	assert_int_equal(rdma_ack_cm_event(e), 0);
	assert_true(cm_quiet(r.cb, 50)); /* not before the caller says so */
	assert_int_equal(rdma_establish(r.a), 0);
	cm_expect(r.cb, RDMA_CM_EVENT_ESTABLISHED, b, 0);
	assert_true(cm_quiet(r.ca, 50));
	assert_int_equal(rdma_notify(b, IBV_EVENT_COMM_EST), -1);
	assert_int_equal(errno, EISCONN);
	assert_int_equal(rdma_disconnect(b), 0);
	cm_expect(r.cb, RDMA_CM_EVENT_DISCONNECTED, b, 0);
	cm_expect(r.ca, RDMA_CM_EVENT_DISCONNECTED, r.a, 0);
	assert_int_equal(rdma_disconnect(r.a), 0);
	assert_true(cm_quiet(r.ca, 20));
	assert_int_equal(rdma_disconnect(r.a), 0);
	assert_int_equal(rdma_destroy_id(b), 0);
	cm_close(&r);
}

static void either_may_leave(void **state)
{
	struct rdma_cm_id *b;
	struct rig r;

	for (int i = 0; i < 3; i++) {
		cm_open(&r, RDMA_PS_TCP);
		b = cm_join(&r);
		if (i == 0) { /* without a word */
			assert_int_equal(rdma_destroy_id(r.a), 0);
			r.a = NULL;
			cm_expect(r.cb, RDMA_CM_EVENT_DISCONNECTED, b, 0);
			assert_int_equal(rdma_destroy_id(b), 0);
		} else if (i == 1) {
			assert_int_equal(rdma_destroy_id(b), 0);
			cm_expect(r.ca, RDMA_CM_EVENT_DISCONNECTED, r.a, 0);
		} else { /* both at once */
			assert_int_equal(rdma_disconnect(r.a), 0);
			assert_int_equal(rdma_disconnect(b), 0);
			cm_expect(r.ca, RDMA_CM_EVENT_DISCONNECTED, r.a, 0);
			cm_expect(r.cb, RDMA_CM_EVENT_DISCONNECTED, b, 0);
			assert_true(cm_quiet(r.ca, 20));
			assert_true(cm_quiet(r.cb, 20));
			assert_int_equal(rdma_destroy_id(b), 0);
		}
		cm_close(&r);
	}
}

static void families(void **state)
{
	static const char *const at[] = { "::1", "0.0.0.0", "::" };
	struct rdma_cm_id *b;
	struct rig r;

	for (int i = 0; i < 3; i++) {
		cm_open(&r, RDMA_PS_TCP);
		rdma_destroy_id(r.listener);
		cm_listen_at(&r, at[i]);
		assert_true(i == 0 || !r.listener->verbs);
		if (i > 0) {
			uint16_t port = hv_sockaddr_port(cm_name(&r));

			cm_address(&r, i == 1 ? "127.0.0.1" : "::1");
			hv_sockaddr_set_port(cm_name(&r), port);
		}
		b = cm_join(&r);
		assert_int_equal(rdma_get_peer_addr(b)->sa_family, r.at.ss_family);
		assert_int_equal(rdma_destroy_id(b), 0);
		cm_close(&r);
	}
}

/* Only callers of IPv6 come to a listener with RDMA_OPTION_ID_AFONLY. */
static void one_family_only(void **state)
{
	struct rdma_cm_id *b;
	struct rig r;
	uint16_t port;

	cm_open(&r, RDMA_PS_TCP);
	rdma_destroy_id(r.listener);
	cm_address(&r, "::");
	assert_int_equal(rdma_create_id(r.cb, &r.listener, &r, RDMA_PS_TCP), 0);
	assert_int_equal(rdma_set_option(r.listener, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, &(int){ 1 },
					 sizeof(int)),
			 0);
	assert_int_equal(rdma_bind_addr(r.listener, cm_name(&r)), 0);
	assert_int_equal(rdma_listen(r.listener, 0), 0);
	port = ntohs(rdma_get_src_port(r.listener));
	cm_address(&r, "127.0.0.1");
	hv_sockaddr_set_port(cm_name(&r), port);
	r.a = cm_caller(&r);
	cm_call(&r, "");
	while (cm_quiet(r.ca, 10)) /* whoever reads finds nothing, and so rejects */ {
		struct rdma_cm_event *e;

		fcntl(r.cb->fd, F_SETFL, O_NONBLOCK);
		assert_int_equal(rdma_get_cm_event(r.cb, &e), -1);
		assert_int_equal(errno, EAGAIN);
	}
	cm_expect(r.ca, RDMA_CM_EVENT_REJECTED, r.a, HV_REJ_NOBODY);
	rdma_destroy_id(r.a);
	cm_address(&r, "::1");
	hv_sockaddr_set_port(cm_name(&r), port);
	b = cm_join(&r);
	rdma_destroy_id(b);
	cm_close(&r);
}

/*
 * A port may be listened at for all addresses of each family, as iSER targets do;
 * callers come to the right one.
 */
static void a_port_in_each_family(void **state)
{
	struct rdma_cm_id *b, *first;
	struct rig r;
	uint16_t port;

	cm_open(&r, RDMA_PS_TCP);
	rdma_destroy_id(r.listener);
	cm_listen_at(&r, "0.0.0.0");
	first = r.listener;
	port = ntohs(rdma_get_src_port(first));
	cm_address(&r, "127.0.0.1");
	hv_sockaddr_set_port(cm_name(&r), port);
	rdma_destroy_id(cm_join(&r));
	rdma_destroy_id(r.a);
	cm_address(&r, "::");
	hv_sockaddr_set_port(cm_name(&r), port);
	assert_int_equal(rdma_create_id(r.cb, &r.listener, &r, RDMA_PS_TCP), 0);
	assert_int_equal(rdma_bind_addr(r.listener, cm_name(&r)), -1);
	assert_int_equal(errno, EADDRINUSE);
	assert_int_equal(rdma_set_option(r.listener, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, &(int){ 1 },
					 sizeof(int)),
			 0);
	assert_int_equal(rdma_bind_addr(r.listener, cm_name(&r)), 0);
	assert_int_equal(rdma_listen(r.listener, 0), 0);
	cm_address(&r, "::1");
	hv_sockaddr_set_port(cm_name(&r), port);
	b = cm_join(&r);
	assert_int_equal(rdma_destroy_id(b), 0);
	rdma_destroy_id(first);
	cm_close(&r);
}

/* ---- saying no ------------------------------------------------------------------------------- */

static void rejections(void **state)
{
	struct rdma_cm_event *e;
	struct rdma_cm_id *b;
	struct rig r;

	cm_open(&r, RDMA_PS_TCP);
	b = cm_asked_anew(&r, "");
	assert_int_equal(rdma_reject(b, "because", 8), 0);
	e = cm_next(r.ca, RDMA_CM_EVENT_REJECTED);
	assert_int_equal(e->status, HV_REJ_CONSUMER);
	assert_string_equal(e->param.conn.private_data, "because");
	assert_int_equal(e->param.conn.private_data_len, 148);
	rdma_ack_cm_event(e);
	assert_int_equal(rdma_accept(b, NULL), -1);
	assert_int_equal(errno, EINVAL);
	rdma_destroy_id(b);
	rdma_destroy_id(r.a);
	/* nobody listens there */
	hv_sockaddr_set_port(cm_name(&r), (uint16_t)(hv_sockaddr_port(cm_name(&r)) + 1));
	r.a = cm_caller(&r);
	cm_call(&r, "");
	cm_expect(r.ca, RDMA_CM_EVENT_REJECTED, r.a, HV_REJ_NOBODY);
	rdma_destroy_id(r.a);
	hv_sockaddr_set_port(cm_name(&r), (uint16_t)(hv_sockaddr_port(cm_name(&r)) - 1));
	/* destroyed without an answer */
	r.a = cm_caller(&r);
	cm_call(&r, "");
	rdma_destroy_id(cm_asked(&r));
	cm_expect(r.ca, RDMA_CM_EVENT_REJECTED, r.a, HV_REJ_CONSUMER);
	rdma_destroy_id(r.a);
	/* the caller does not like the answer */
	b = cm_asked_anew(&r, "");
	cm_answer(b, "");
	cm_expect(r.ca, RDMA_CM_EVENT_CONNECT_RESPONSE, r.a, 0);
	assert_int_equal(rdma_reject(r.a, NULL, 0), 0);
	cm_expect(r.cb, RDMA_CM_EVENT_REJECTED, b, HV_REJ_CONSUMER);
	rdma_destroy_id(b);
	cm_close(&r);
}

/*
 * What is more than three bits hold is the most of them; who names nothing gets the most of all,
 * and no flow control, as librdmacm has it.
 */
static void tries(void **state)
{
	struct rdma_conn_param many = { .retry_count = 9, .rnr_retry_count = 255, .flow_control = 1 };
	struct rdma_cm_id *b;
	struct rig r;

	cm_open(&r, RDMA_PS_TCP);
	for (int named = 0; named < 2; named++) {
		struct rdma_cm_event *e;

		r.a = cm_caller(&r);
		assert_int_equal(rdma_connect(r.a, named ? &many : NULL), 0);
		e = cm_next(r.cb, RDMA_CM_EVENT_CONNECT_REQUEST);
		assert_int_equal(e->param.conn.retry_count, 7);
		assert_int_equal(e->param.conn.rnr_retry_count, 7);
		assert_int_equal(e->param.conn.flow_control, named);
		b = e->id;
		assert_int_equal(rdma_ack_cm_event(e), 0);
		many.qp_num = 7;
		assert_int_equal(rdma_accept(b, named ? &many : NULL), 0);
		e = cm_next(r.ca, RDMA_CM_EVENT_CONNECT_RESPONSE);
		assert_int_equal(e->param.conn.rnr_retry_count, 7);
		assert_int_equal(e->param.conn.flow_control, named);
		assert_int_equal(rdma_ack_cm_event(e), 0);
		assert_int_equal(rdma_destroy_id(r.a), 0);
		rdma_destroy_id(b);
	}
	r.a = NULL;
	cm_close(&r);
}

/*
 * A caller that goes away before it is answered: accepting says so, once that has come, which is
 * before what the same process says next.
 */
static void the_caller_has_gone(void **state)
{
	struct rdma_cm_id *b, *next;
	struct rig r;

	cm_open(&r, RDMA_PS_TCP);
	b = cm_asked_anew(&r, "");
	rdma_destroy_id(r.a);
	next = cm_asked_anew(&r, "");
	assert_int_equal(rdma_accept(b, NULL), -1);
	assert_int_equal(errno, ECONNABORTED);
	rdma_destroy_id(b);
	rdma_destroy_id(next);
	cm_close(&r);
}

/* The same before anybody has read of it: what the descriptor has announced is there. */
static void the_caller_has_gone_unread(void **state)
{
	struct rdma_cm_event *e;
	struct rdma_cm_id *b;
	struct pollfd p;
	struct rig r;

	cm_open(&r, RDMA_PS_TCP);
	r.a = cm_caller(&r);
	cm_call(&r, "");
	p = (struct pollfd){ .fd = r.cb->fd, .events = POLLIN };
	assert_int_equal(poll(&p, 1, PATIENCE_MS), 1);
	rdma_destroy_id(r.a);
	r.a = NULL;
	usleep(50000); /* nothing tells that it has come but what would be read */
	assert_int_equal(poll(&p, 1, 0), 1);
	assert_int_equal(rdma_get_cm_event(r.cb, &e), 0);
	assert_int_equal(e->event, RDMA_CM_EVENT_CONNECT_REQUEST);
	b = e->id;
	assert_int_equal(rdma_ack_cm_event(e), 0);
	assert_true(cm_quiet(r.cb, 0));
	assert_int_equal(rdma_accept(b, NULL), -1);
	assert_int_equal(errno, ECONNABORTED);
	assert_int_equal(rdma_destroy_id(b), 0);
	cm_close(&r);
}

/*
 * The listener goes, and takes with it what nobody has read; what has been read can be answered,
 * and the port be had again.
 */
static void the_listener_goes(void **state)
{
	struct rdma_cm_id *b, *second;
	struct rig r;
	uint16_t port;

	cm_open(&r, RDMA_PS_TCP);
	port = hv_sockaddr_port(cm_name(&r));
	b = cm_asked_anew(&r, "");
	second = r.a;
	r.a = cm_caller(&r);
	cm_call(&r, "");
	assert_false(cm_quiet(r.cb, PATIENCE_MS));
	rdma_destroy_id(r.listener);
	cm_expect(r.ca, RDMA_CM_EVENT_REJECTED, r.a, HV_REJ_CONSUMER);
	rdma_destroy_id(r.a);
	cm_address(&r, "127.0.0.1");
	hv_sockaddr_set_port(cm_name(&r), port);
	cm_listen_here(&r);
	cm_answer(b, "");
	cm_expect(r.ca, RDMA_CM_EVENT_CONNECT_RESPONSE, second, 0);
	rdma_destroy_id(b);
	cm_expect(r.ca, RDMA_CM_EVENT_UNREACHABLE, second, -ECONNRESET);
	rdma_destroy_id(second);
	b = cm_join(&r);
	rdma_destroy_id(b);
	cm_close(&r);
}

/* ---- datagrams ------------------------------------------------------------------------------- */

static void datagram_services(void **state)
{
	struct rdma_cm_event *e;
	struct rdma_cm_id *b;
	struct rig r;

	cm_open(&r, RDMA_PS_UDP);
	r.a = cm_caller(&r);
	cm_call(&r, "where");
	e = cm_next(r.cb, RDMA_CM_EVENT_CONNECT_REQUEST);
	b = e->id;
	assert_string_equal(e->param.ud.private_data, "where");
	assert_int_equal(e->param.ud.private_data_len, 180);
	rdma_ack_cm_event(e);
	cm_answer(b, "here");
	e = cm_next(r.ca, RDMA_CM_EVENT_ESTABLISHED);
	assert_string_equal(e->param.ud.private_data, "here");
	assert_int_equal(e->param.ud.private_data_len, 136);
	assert_int_equal(e->param.ud.qp_num, 0x99);
	assert_int_equal(e->param.ud.qkey, RDMA_UDP_QKEY);
	assert_int_equal(e->param.ud.ah_attr.is_global, 1);
	assert_int_equal(e->param.ud.ah_attr.grh.dgid.raw[12], 127);
	rdma_ack_cm_event(e);
	assert_true(cm_quiet(r.cb, 20));
	rdma_destroy_id(b);
	rdma_destroy_id(r.a);
	b = cm_asked_anew(&r, "");
	assert_int_equal(rdma_reject(b, NULL, 0), 0);
	cm_expect(r.ca, RDMA_CM_EVENT_UNREACHABLE, r.a, HV_SIDR_REJECT);
	rdma_destroy_id(b);
	rdma_destroy_id(r.a);
	rdma_destroy_id(r.listener);
	r.listener = NULL;
	r.a = cm_caller(&r);
	cm_call(&r, "");
	cm_expect(r.ca, RDMA_CM_EVENT_UNREACHABLE, r.a, HV_SIDR_UNSUPPORTED);
	cm_close(&r);
}

/* ---- synchronous ids ------------------------------------------------------------------------- */

static void *serve(void *arg)
{
	struct rdma_cm_id *listener = arg, *id;
	char *said = NULL;

	if (rdma_get_request(listener, &id))
		return "no request";
	if (strcmp(id->event->param.conn.private_data, "sync"))
		said = "other data";
	if (rdma_accept(id, NULL) || id->event->event != RDMA_CM_EVENT_ESTABLISHED)
		said = "not accepted";
	else if (rdma_disconnect(id))
		said = "not disconnected";
	rdma_destroy_ep(id);
	return said;
}

static void calls_that_wait(void **state)
{
	struct rdma_addrinfo hints = { .ai_flags = RAI_PASSIVE, .ai_port_space = RDMA_PS_TCP }, *res;
	struct rdma_conn_param p = { .private_data = "sync", .private_data_len = 5 };
	struct rdma_cm_id *listener, *id;
	char port[8];
	pthread_t t;
	void *said;

	assert_int_equal(rdma_getaddrinfo("127.0.0.1", "0", &hints, &res), 0);
	assert_int_equal(rdma_create_ep(&listener, res, NULL, NULL), 0);
	rdma_freeaddrinfo(res);
	assert_int_equal(rdma_listen(listener, 0), 0);
	snprintf(port, sizeof(port), "%u", ntohs(rdma_get_src_port(listener)));
	assert_int_equal(pthread_create(&t, NULL, serve, listener), 0);
	hints.ai_flags = 0;
	assert_int_equal(rdma_getaddrinfo("127.0.0.1", port, &hints, &res), 0);
	assert_int_equal(rdma_create_ep(&id, res, NULL, NULL), 0);
	assert_int_equal(rdma_connect(id, &p), 0);
	assert_int_equal(id->event->event, RDMA_CM_EVENT_CONNECT_RESPONSE);
	assert_int_equal(rdma_establish(id), 0);
	assert_int_equal(pthread_join(t, &said), 0);
	assert_ptr_equal(said, NULL);
	assert_int_equal(rdma_disconnect(id), 0);
	assert_int_equal(id->event->event, RDMA_CM_EVENT_DISCONNECTED);
	rdma_destroy_ep(id);
	rdma_destroy_ep(listener);
	assert_int_equal(rdma_create_ep(&id, res, NULL, NULL), 0);
	assert_int_equal(rdma_connect(id, &p), -1);
	assert_int_equal(errno, ECONNREFUSED);
	rdma_destroy_ep(id);
	rdma_freeaddrinfo(res);
}

/* ---- channels -------------------------------------------------------------------------------- */

/* An answer that is refused leaves no figures behind. */
static void who_was_refused_may_accept_what_was_asked(void **state)
{
	struct rdma_conn_param too_much = { .qp_num = 1, .responder_resources = UINT8_MAX - 1 };
	struct rdma_cm_id *id;
	struct rig r;

	cm_open(&r, RDMA_PS_TCP);
	r.a = cm_caller(&r);
	cm_call(&r, "");
	id = cm_asked(&r);
	errno = 0;
	assert_int_equal(rdma_accept(id, &too_much), -1);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(rdma_accept(id, NULL), 0);
	assert_int_equal(rdma_destroy_id(id), 0);
	cm_close(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_said_arrives),
		cmocka_unit_test(either_may_leave),
		cmocka_unit_test(families),
		cmocka_unit_test(one_family_only),
		cmocka_unit_test(a_port_in_each_family),
		cmocka_unit_test(rejections),
		cmocka_unit_test(tries),
		cmocka_unit_test(the_caller_has_gone),
		cmocka_unit_test(the_caller_has_gone_unread),
		cmocka_unit_test(the_listener_goes),
		cmocka_unit_test(datagram_services),
		cmocka_unit_test(calls_that_wait),
		cmocka_unit_test(who_was_refused_may_accept_what_was_asked),
#ifndef __SANITIZE_ADDRESS__
#endif
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
