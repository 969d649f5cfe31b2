/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* rdma_cm by itself: ids without queue pairs, caller and called in one process. */
#include "base/lock.h"
#include "front/verbs/cm/cm.h"

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

#define PATIENCE_MS 20000

struct rig {
	struct rdma_event_channel *ca, *cb; /* caller's, called's */
	struct rdma_cm_id *a, *listener;
	struct sockaddr_storage at;
	enum rdma_port_space ps;
};

/* The next event of a channel, which has this type; the descriptor tells of it. */
static struct rdma_cm_event *next(struct rdma_event_channel *ch, enum rdma_cm_event_type type)
{
	struct pollfd p = { .fd = ch->fd, .events = POLLIN };
	struct rdma_cm_event *e;

	assert_int_equal(poll(&p, 1, PATIENCE_MS), 1);
	assert_int_equal(rdma_get_cm_event(ch, &e), 0);
	if (e->event != type)
		print_error("%s (%d) instead of %s\n", rdma_event_str(e->event), e->status,
			    rdma_event_str(type));
	assert_int_equal(e->event, type);
	return e;
}

static void expect(struct rdma_event_channel *ch, enum rdma_cm_event_type type, struct rdma_cm_id *id,
		   int status)
{
	struct rdma_cm_event *e = next(ch, type);

	assert_ptr_equal(e->id, id);
	assert_int_equal(e->status, status);
	assert_int_equal(rdma_ack_cm_event(e), 0);
}

static bool quiet(struct rdma_event_channel *ch, int ms)
{
	struct pollfd p = { .fd = ch->fd, .events = POLLIN };

	return poll(&p, 1, ms) == 0;
}

static struct sockaddr *name(struct rig *r)
{
	return (struct sockaddr *)&r->at;
}

static void address(struct rig *r, const char *text)
{
	memset(&r->at, 0, sizeof(r->at));
	if (strchr(text, ':')) {
		r->at.ss_family = AF_INET6;
		inet_pton(AF_INET6, text, &((struct sockaddr_in6 *)&r->at)->sin6_addr);
	} else {
		r->at.ss_family = AF_INET;
		inet_pton(AF_INET, text, &((struct sockaddr_in *)&r->at)->sin_addr);
	}
}

/* At the address that r->at says. */
static void listen_here(struct rig *r)
{
	assert_int_equal(rdma_create_id(r->cb, &r->listener, r, r->ps), 0);
	assert_int_equal(rdma_bind_addr(r->listener, name(r)), 0);
	assert_int_equal(rdma_listen(r->listener, 8), 0);
}

static void listen_at(struct rig *r, const char *text)
{
	address(r, text);
	listen_here(r);
	hv_sockaddr_set_port(name(r), ntohs(rdma_get_src_port(r->listener)));
}

static void rig_open(struct rig *r, enum rdma_port_space ps)
{
	memset(r, 0, sizeof(*r));
	r->ps = ps;
	r->ca = rdma_create_event_channel();
	r->cb = rdma_create_event_channel();
	assert_true(r->ca && r->cb);
	listen_at(r, "127.0.0.1");
}

static struct rdma_cm_id *caller(struct rig *r)
{
	struct rdma_cm_id *id;

	assert_int_equal(rdma_create_id(r->ca, &id, &r->a, r->ps), 0);
	assert_int_equal(rdma_resolve_addr(id, NULL, name(r), 1000), 0);
	expect(r->ca, RDMA_CM_EVENT_ADDR_RESOLVED, id, 0);
	assert_int_equal(rdma_resolve_route(id, 1000), 0);
	expect(r->ca, RDMA_CM_EVENT_ROUTE_RESOLVED, id, 0);
	return id;
}

static void rig_close(struct rig *r)
{
	if (r->a)
		assert_int_equal(rdma_destroy_id(r->a), 0);
	if (r->listener)
		assert_int_equal(rdma_destroy_id(r->listener), 0);
	rdma_destroy_event_channel(r->ca);
	rdma_destroy_event_channel(r->cb);
}

static void call(struct rig *r, const char *data)
{
	struct rdma_conn_param p = { .private_data = data,
				     .private_data_len = (uint8_t)strlen(data),
				     .responder_resources = 3,
				     .initiator_depth = 0,
				     .retry_count = 5,
				     .rnr_retry_count = 6,
				     .qp_num = 0x1234 };

	assert_int_equal(rdma_connect(r->a, &p), 0);
}

static struct rdma_cm_id *asked(struct rig *r)
{
	struct rdma_cm_event *e = next(r->cb, RDMA_CM_EVENT_CONNECT_REQUEST);
	struct rdma_cm_id *id = e->id;

	assert_ptr_equal(e->listen_id, r->listener);
	assert_ptr_equal(id->context, r);
	assert_int_equal(rdma_ack_cm_event(e), 0);
	return id;
}

/* Somebody calls with this private data; the called end's id. */
static struct rdma_cm_id *asked_anew(struct rig *r, const char *data)
{
	r->a = caller(r);
	call(r, data);
	return asked(r);
}

static void answer(struct rdma_cm_id *id, const char *data)
{
	struct rdma_conn_param p = { .private_data = data,
				     .private_data_len = (uint8_t)strlen(data),
				     .rnr_retry_count = 4,
				     .qp_num = 0x99 };

	assert_int_equal(rdma_accept(id, &p), 0);
}

/* A connection; the called end. */
static struct rdma_cm_id *join(struct rig *r)
{
	struct rdma_cm_id *b;

	b = asked_anew(r, "");
	answer(b, "");
	expect(r->ca, RDMA_CM_EVENT_CONNECT_RESPONSE, r->a, 0);
	assert_int_equal(rdma_establish(r->a), 0);
	expect(r->cb, RDMA_CM_EVENT_ESTABLISHED, b, 0);
	return b;
}

/* ---- coming about ---------------------------------------------------------------------------------------------------------- */

static void what_is_said_arrives(void **state)
{
	struct rdma_cm_event *e;
	struct rdma_cm_id *b;
	struct rig r;

	rig_open(&r, RDMA_PS_TCP);
	r.a = caller(&r);
	assert_non_null(r.a->verbs);
	assert_int_equal(r.a->port_num, 1);
	assert_int_equal(r.a->route.num_paths, 1);
	assert_int_equal(rdma_get_dst_port(r.a), htons(hv_sockaddr_port(name(&r))));
	call(&r, "hello there");
	e = next(r.cb, RDMA_CM_EVENT_CONNECT_REQUEST);
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
	answer(b, "and there");
	e = next(r.ca, RDMA_CM_EVENT_CONNECT_RESPONSE);
	assert_string_equal(e->param.conn.private_data, "and there");
	assert_int_equal(e->param.conn.private_data_len, 196);
	assert_int_equal(e->param.conn.qp_num, 0x99);
	assert_int_equal(e->param.conn.rnr_retry_count, 4);
	assert_int_equal(rdma_ack_cm_event(e), 0);
	assert_true(quiet(r.cb, 50)); /* not before the caller says so */
	assert_int_equal(rdma_establish(r.a), 0);
	expect(r.cb, RDMA_CM_EVENT_ESTABLISHED, b, 0);
	assert_true(quiet(r.ca, 50));
	assert_int_equal(rdma_notify(b, IBV_EVENT_COMM_EST), -1);
	assert_int_equal(errno, EISCONN);
	assert_int_equal(rdma_disconnect(b), 0);
	expect(r.cb, RDMA_CM_EVENT_DISCONNECTED, b, 0);
	expect(r.ca, RDMA_CM_EVENT_DISCONNECTED, r.a, 0);
	assert_int_equal(rdma_disconnect(r.a), 0);
	assert_true(quiet(r.ca, 20));
	assert_int_equal(rdma_disconnect(r.a), -1);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(rdma_destroy_id(b), 0);
	rig_close(&r);
}

static void either_may_leave(void **state)
{
	struct rdma_cm_id *b;
	struct rig r;

	for (int i = 0; i < 3; i++) {
		rig_open(&r, RDMA_PS_TCP);
		b = join(&r);
		if (i == 0) { /* without a word */
			assert_int_equal(rdma_destroy_id(r.a), 0);
			r.a = NULL;
			expect(r.cb, RDMA_CM_EVENT_DISCONNECTED, b, 0);
			assert_int_equal(rdma_destroy_id(b), 0);
		} else if (i == 1) {
			assert_int_equal(rdma_destroy_id(b), 0);
			expect(r.ca, RDMA_CM_EVENT_DISCONNECTED, r.a, 0);
		} else { /* both at once */
			assert_int_equal(rdma_disconnect(r.a), 0);
			assert_int_equal(rdma_disconnect(b), 0);
			expect(r.ca, RDMA_CM_EVENT_DISCONNECTED, r.a, 0);
			expect(r.cb, RDMA_CM_EVENT_DISCONNECTED, b, 0);
			assert_true(quiet(r.ca, 20));
			assert_true(quiet(r.cb, 20));
			assert_int_equal(rdma_destroy_id(b), 0);
		}
		rig_close(&r);
	}
}

static void families(void **state)
{
	static const char *const at[] = { "::1", "0.0.0.0", "::" };
	struct rdma_cm_id *b;
	struct rig r;

	for (int i = 0; i < 3; i++) {
		rig_open(&r, RDMA_PS_TCP);
		rdma_destroy_id(r.listener);
		listen_at(&r, at[i]);
		assert_true(i == 0 || !r.listener->verbs);
		if (i > 0) {
			uint16_t port = hv_sockaddr_port(name(&r));

			address(&r, i == 1 ? "127.0.0.1" : "::1");
			hv_sockaddr_set_port(name(&r), port);
		}
		b = join(&r);
		assert_int_equal(rdma_get_peer_addr(b)->sa_family, r.at.ss_family);
		assert_int_equal(rdma_destroy_id(b), 0);
		rig_close(&r);
	}
}

/* Only callers of IPv6 come to a listener with RDMA_OPTION_ID_AFONLY. */
static void one_family_only(void **state)
{
	struct rdma_cm_id *b;
	struct rig r;
	uint16_t port;

	rig_open(&r, RDMA_PS_TCP);
	rdma_destroy_id(r.listener);
	address(&r, "::");
	assert_int_equal(rdma_create_id(r.cb, &r.listener, &r, RDMA_PS_TCP), 0);
	assert_int_equal(rdma_set_option(r.listener, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, &(int){ 1 },
					 sizeof(int)),
			 0);
	assert_int_equal(rdma_bind_addr(r.listener, name(&r)), 0);
	assert_int_equal(rdma_listen(r.listener, 0), 0);
	port = ntohs(rdma_get_src_port(r.listener));
	address(&r, "127.0.0.1");
	hv_sockaddr_set_port(name(&r), port);
	r.a = caller(&r);
	call(&r, "");
	while (quiet(r.ca, 10)) /* whoever reads finds nothing, and so rejects */ {
		struct rdma_cm_event *e;

		fcntl(r.cb->fd, F_SETFL, O_NONBLOCK);
		assert_int_equal(rdma_get_cm_event(r.cb, &e), -1);
		assert_int_equal(errno, EAGAIN);
	}
	expect(r.ca, RDMA_CM_EVENT_REJECTED, r.a, HV_REJ_NOBODY);
	rdma_destroy_id(r.a);
	address(&r, "::1");
	hv_sockaddr_set_port(name(&r), port);
	b = join(&r);
	rdma_destroy_id(b);
	rig_close(&r);
}

/* A port may be listened at for all addresses of each family, as iSER targets do; callers come to the right one. */
static void a_port_in_each_family(void **state)
{
	struct rdma_cm_id *b, *first;
	struct rig r;
	uint16_t port;

	rig_open(&r, RDMA_PS_TCP);
	rdma_destroy_id(r.listener);
	listen_at(&r, "0.0.0.0");
	first = r.listener;
	port = ntohs(rdma_get_src_port(first));
	address(&r, "127.0.0.1");
	hv_sockaddr_set_port(name(&r), port);
	rdma_destroy_id(join(&r));
	rdma_destroy_id(r.a);
	address(&r, "::");
	hv_sockaddr_set_port(name(&r), port);
	assert_int_equal(rdma_create_id(r.cb, &r.listener, &r, RDMA_PS_TCP), 0);
	assert_int_equal(rdma_bind_addr(r.listener, name(&r)), -1);
	assert_int_equal(errno, EADDRINUSE);
	assert_int_equal(rdma_set_option(r.listener, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, &(int){ 1 },
					 sizeof(int)),
			 0);
	assert_int_equal(rdma_bind_addr(r.listener, name(&r)), 0);
	assert_int_equal(rdma_listen(r.listener, 0), 0);
	address(&r, "::1");
	hv_sockaddr_set_port(name(&r), port);
	b = join(&r);
	assert_int_equal(rdma_destroy_id(b), 0);
	rdma_destroy_id(first);
	rig_close(&r);
}

/* ---- saying no ---------------------------------------------------------------------------------------------------------------- */

static void rejections(void **state)
{
	struct rdma_cm_event *e;
	struct rdma_cm_id *b;
	struct rig r;

	rig_open(&r, RDMA_PS_TCP);
	b = asked_anew(&r, "");
	assert_int_equal(rdma_reject(b, "because", 8), 0);
	e = next(r.ca, RDMA_CM_EVENT_REJECTED);
	assert_int_equal(e->status, HV_REJ_CONSUMER);
	assert_string_equal(e->param.conn.private_data, "because");
	assert_int_equal(e->param.conn.private_data_len, 148);
	rdma_ack_cm_event(e);
	assert_int_equal(rdma_accept(b, NULL), -1);
	assert_int_equal(errno, EINVAL);
	rdma_destroy_id(b);
	rdma_destroy_id(r.a);
	/* nobody listens there */
	hv_sockaddr_set_port(name(&r), (uint16_t)(hv_sockaddr_port(name(&r)) + 1));
	r.a = caller(&r);
	call(&r, "");
	expect(r.ca, RDMA_CM_EVENT_REJECTED, r.a, HV_REJ_NOBODY);
	rdma_destroy_id(r.a);
	hv_sockaddr_set_port(name(&r), (uint16_t)(hv_sockaddr_port(name(&r)) - 1));
	/* destroyed without an answer */
	r.a = caller(&r);
	call(&r, "");
	rdma_destroy_id(asked(&r));
	expect(r.ca, RDMA_CM_EVENT_REJECTED, r.a, HV_REJ_CONSUMER);
	rdma_destroy_id(r.a);
	/* the caller does not like the answer */
	b = asked_anew(&r, "");
	answer(b, "");
	expect(r.ca, RDMA_CM_EVENT_CONNECT_RESPONSE, r.a, 0);
	assert_int_equal(rdma_reject(r.a, NULL, 0), 0);
	expect(r.cb, RDMA_CM_EVENT_REJECTED, b, HV_REJ_CONSUMER);
	rdma_destroy_id(b);
	rig_close(&r);
}

/* A caller that goes away before it is answered: accepting says so. */
static void the_caller_has_gone(void **state)
{
	struct rdma_cm_id *b;
	struct rig r;

	rig_open(&r, RDMA_PS_TCP);
	b = asked_anew(&r, "");
	rdma_destroy_id(r.a);
	r.a = NULL;
	usleep(50000);
	assert_int_equal(rdma_accept(b, NULL), -1);
	assert_int_equal(errno, ECONNABORTED);
	rdma_destroy_id(b);
	rig_close(&r);
}

/* The same before anybody has read of it: what the descriptor has announced is there. */
static void the_caller_has_gone_unread(void **state)
{
	struct rdma_cm_event *e;
	struct rdma_cm_id *b;
	struct pollfd p;
	struct rig r;

	rig_open(&r, RDMA_PS_TCP);
	r.a = caller(&r);
	call(&r, "");
	p = (struct pollfd){ .fd = r.cb->fd, .events = POLLIN };
	assert_int_equal(poll(&p, 1, PATIENCE_MS), 1);
	rdma_destroy_id(r.a);
	r.a = NULL;
	usleep(50000);
	assert_int_equal(poll(&p, 1, 0), 1);
	assert_int_equal(rdma_get_cm_event(r.cb, &e), 0);
	assert_int_equal(e->event, RDMA_CM_EVENT_CONNECT_REQUEST);
	b = e->id;
	assert_int_equal(rdma_ack_cm_event(e), 0);
	assert_true(quiet(r.cb, 0));
	assert_int_equal(rdma_accept(b, NULL), -1);
	assert_int_equal(errno, ECONNABORTED);
	assert_int_equal(rdma_destroy_id(b), 0);
	rig_close(&r);
}

/* The listener goes, and takes with it what nobody has read; what has been read can be answered, and the port be had again. */
static void the_listener_goes(void **state)
{
	struct rdma_cm_id *b, *second;
	struct rig r;
	uint16_t port;

	rig_open(&r, RDMA_PS_TCP);
	port = hv_sockaddr_port(name(&r));
	b = asked_anew(&r, "");
	second = r.a;
	r.a = caller(&r);
	call(&r, "");
	assert_false(quiet(r.cb, PATIENCE_MS));
	rdma_destroy_id(r.listener);
	expect(r.ca, RDMA_CM_EVENT_REJECTED, r.a, HV_REJ_CONSUMER);
	rdma_destroy_id(r.a);
	address(&r, "127.0.0.1");
	hv_sockaddr_set_port(name(&r), port);
	listen_here(&r);
	answer(b, "");
	expect(r.ca, RDMA_CM_EVENT_CONNECT_RESPONSE, second, 0);
	rdma_destroy_id(b);
	expect(r.ca, RDMA_CM_EVENT_UNREACHABLE, second, -ECONNRESET);
	rdma_destroy_id(second);
	b = join(&r);
	rdma_destroy_id(b);
	rig_close(&r);
}

/* ---- datagrams --------------------------------------------------------------------------------------------------------------- */

static void datagram_services(void **state)
{
	struct rdma_cm_event *e;
	struct rdma_cm_id *b;
	struct rig r;

	rig_open(&r, RDMA_PS_UDP);
	r.a = caller(&r);
	call(&r, "where");
	e = next(r.cb, RDMA_CM_EVENT_CONNECT_REQUEST);
	b = e->id;
	assert_string_equal(e->param.ud.private_data, "where");
	assert_int_equal(e->param.ud.private_data_len, 180);
	rdma_ack_cm_event(e);
	answer(b, "here");
	e = next(r.ca, RDMA_CM_EVENT_ESTABLISHED);
	assert_string_equal(e->param.ud.private_data, "here");
	assert_int_equal(e->param.ud.private_data_len, 136);
	assert_int_equal(e->param.ud.qp_num, 0x99);
	assert_int_equal(e->param.ud.qkey, RDMA_UDP_QKEY);
	assert_int_equal(e->param.ud.ah_attr.is_global, 1);
	assert_int_equal(e->param.ud.ah_attr.grh.dgid.raw[12], 127);
	rdma_ack_cm_event(e);
	assert_true(quiet(r.cb, 20));
	rdma_destroy_id(b);
	rdma_destroy_id(r.a);
	b = asked_anew(&r, "");
	assert_int_equal(rdma_reject(b, NULL, 0), 0);
	expect(r.ca, RDMA_CM_EVENT_UNREACHABLE, r.a, HV_SIDR_REJECT);
	rdma_destroy_id(b);
	rdma_destroy_id(r.a);
	rdma_destroy_id(r.listener);
	r.listener = NULL;
	r.a = caller(&r);
	call(&r, "");
	expect(r.ca, RDMA_CM_EVENT_UNREACHABLE, r.a, HV_SIDR_UNSUPPORTED);
	rig_close(&r);
}

/* ---- synchronous ids ------------------------------------------------------------------------------------------------------------ */

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

/* ---- channels ---------------------------------------------------------------------------------------------------------------------- */

static void ids_migrate(void **state)
{
	struct rdma_event_channel *other = rdma_create_event_channel();
	struct rdma_cm_id *b;
	struct rig r;

	rig_open(&r, RDMA_PS_TCP);
	r.a = caller(&r);
	call(&r, "");
	assert_false(quiet(r.cb, PATIENCE_MS));
	assert_int_equal(rdma_migrate_id(r.listener, other), 0);
	assert_true(quiet(r.cb, 0));
	rdma_destroy_event_channel(r.cb);
	r.cb = other;
	b = asked(&r);
	assert_ptr_equal(b->channel, other);
	other = rdma_create_event_channel();
	assert_int_equal(rdma_migrate_id(r.a, other), 0);
	answer(b, "");
	expect(other, RDMA_CM_EVENT_CONNECT_RESPONSE, r.a, 0);
	assert_int_equal(rdma_migrate_id(r.a, NULL), 0); /* it waits from now on */
	rdma_destroy_event_channel(other);
	assert_int_equal(rdma_establish(r.a), 0);
	expect(r.cb, RDMA_CM_EVENT_ESTABLISHED, b, 0);
	assert_int_equal(rdma_disconnect(r.a), 0);
	assert_int_equal(r.a->event->event, RDMA_CM_EVENT_DISCONNECTED);
	rdma_destroy_id(b);
	rig_close(&r);
}

static void *destroy(void *arg)
{
	rdma_destroy_id(arg);
	return NULL;
}

/* rdma_destroy_id waits until events have been acknowledged. */
static void events_hold_their_id(void **state)
{
	struct rdma_cm_event *e;
	struct rdma_cm_id *b;
	struct rig r;
	pthread_t t;

	rig_open(&r, RDMA_PS_TCP);
	b = join(&r);
	assert_int_equal(rdma_disconnect(b), 0);
	e = next(r.cb, RDMA_CM_EVENT_DISCONNECTED);
	assert_int_equal(pthread_create(&t, NULL, destroy, b), 0);
	usleep(50000);
	assert_int_equal(pthread_tryjoin_np(t, NULL), EBUSY);
	assert_ptr_equal(e->id, b);
	assert_int_equal(rdma_ack_cm_event(e), 0);
	assert_int_equal(pthread_join(t, NULL), 0);
	rig_close(&r);
}

static ssize_t take_event(const struct hd_event *e, void *arg)
{
	struct hv_cm_event *ev = arg;

	ev->raw = *e;
	ev->raw.data = NULL;
	ev->len = e->len;
	memcpy(ev->data, e->data, e->len);
	ev->owner = e->owner;
	atomic_fetch_add(&ev->owner->unacked, 1);
	return 0;
}

/* Has the id no endpoint any more, and is the name that it listens at free? */
static bool has_left(struct hv_id *own)
{
	struct rdma_cm_id *other;
	bool left;

	hd_lock_take(&hv_cm_lock);
	left = !own->ep;
	hd_lock_give(&hv_cm_lock);
	if (!left || !own->listener)
		return left;
	assert_int_equal(rdma_create_id(own->pub.channel, &other, NULL, RDMA_PS_TCP), 0);
	left = !rdma_bind_addr(other, rdma_get_local_addr(&own->pub));
	assert_int_equal(rdma_destroy_id(other), 0);
	return left;
}

/* A thread has got this event of the engine's, and before it knows what that means, another destroys the id. */
static void read_while_it_goes(struct rdma_event_channel *ch, struct rdma_cm_id *id, struct hv_cm_event *ev,
			       pthread_t *thread)
{
	struct pollfd p = { .fd = ch->fd, .events = POLLIN };
	struct hv_id *own = hv_id_of(id);

	assert_int_equal(poll(&p, 1, PATIENCE_MS), 1);
	assert_int_equal(hd_evq_read(hv_cm_channel_of(ch)->evq, 0, take_event, ev), 0);
	assert_ptr_equal(ev->owner, own);
	assert_int_equal(pthread_create(thread, NULL, destroy, id), 0);
	while (!has_left(own))
		usleep(100);
}

/* It is asked all the same, and the caller hears of its end. */
static void a_listener_goes_while_its_request_is_read(void **state)
{
	struct hv_cm_event ev = { .len = 0 };
	pthread_t thread;
	struct rig r;

	rig_open(&r, RDMA_PS_TCP);
	r.a = caller(&r);
	call(&r, "");
	read_while_it_goes(r.cb, r.listener, &ev, &thread);
	assert_true(hv_cm_event_make(&ev));
	assert_int_equal(ev.pub.event, RDMA_CM_EVENT_CONNECT_REQUEST);
	assert_ptr_equal(ev.pub.listen_id, r.listener);
	assert_int_equal(rdma_destroy_id(ev.pub.id), 0);
	hv_id_unpin(ev.owner);
	assert_int_equal(pthread_join(thread, NULL), 0);
	r.listener = NULL;
	expect(r.ca, RDMA_CM_EVENT_REJECTED, r.a, HV_REJ_CONSUMER);
	rig_close(&r);
}

/* What it was told by then, it still is; here that it makes no sense. */
static void a_caller_goes_while_its_answer_is_read(void **state)
{
	struct rdma_conn_param p = { .qp_num = 1 };
	struct hv_cm_event ev = { .len = 0 };
	struct rdma_cm_id *id;
	pthread_t thread;
	struct rig r;

	rig_open(&r, RDMA_PS_TCP);
	r.a = caller(&r);
	call(&r, "");
	id = asked(&r);
	assert_int_equal(rdma_accept(id, &p), 0);
	read_while_it_goes(r.ca, r.a, &ev, &thread);
	ev.len = 1;
	assert_true(hv_cm_event_make(&ev));
	assert_int_equal(ev.pub.event, RDMA_CM_EVENT_CONNECT_ERROR);
	hv_id_unpin(ev.owner);
	assert_int_equal(pthread_join(thread, NULL), 0);
	r.a = NULL;
	assert_int_equal(rdma_destroy_id(id), 0);
	rig_close(&r);
}

/* An answer that is refused leaves no figures behind. */
static void who_was_refused_may_accept_what_was_asked(void **state)
{
	struct rdma_conn_param too_much = { .qp_num = 1, .responder_resources = UINT8_MAX - 1 };
	struct rdma_cm_id *id;
	struct rig r;

	rig_open(&r, RDMA_PS_TCP);
	r.a = caller(&r);
	call(&r, "");
	id = asked(&r);
	errno = 0;
	assert_int_equal(rdma_accept(id, &too_much), -1);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(rdma_accept(id, NULL), 0);
	assert_int_equal(rdma_destroy_id(id), 0);
	rig_close(&r);
}

static void channels_can_be_set_not_to_block(void **state)
{
	struct rdma_event_channel *ch = rdma_create_event_channel();
	struct rdma_cm_event *e;

	assert_int_equal(fcntl(ch->fd, F_GETFL) & O_NONBLOCK, 0);
	assert_int_equal(fcntl(ch->fd, F_SETFL, fcntl(ch->fd, F_GETFL) | O_NONBLOCK), 0);
	assert_int_equal(rdma_get_cm_event(ch, &e), -1);
	assert_int_equal(errno, EAGAIN);
	rdma_destroy_event_channel(ch);
}

/* ---- bad input --------------------------------------------------------------------------------------------------------------------- */

#define FAILS(code, ...) \
	do { \
		errno = 0; \
		assert_int_equal(__VA_ARGS__, -1); \
		assert_int_equal(errno, code); \
	} while (0)

static void bad_input(void **state)
{
	struct sockaddr_in nowhere = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(0x08080808) };
	struct rdma_conn_param p = { .private_data = "", .private_data_len = 57 };
	struct rdma_cm_id *id, *again;
	struct rig r;

	rig_open(&r, RDMA_PS_TCP);
	FAILS(EINVAL, rdma_create_id(r.ca, &id, NULL, 77));
	FAILS(EINVAL, rdma_bind_addr(r.listener, name(&r)));
	assert_int_equal(rdma_create_id(r.ca, &id, NULL, RDMA_PS_TCP), 0);
	FAILS(EADDRINUSE, rdma_bind_addr(id, name(&r)));
	FAILS(EADDRNOTAVAIL, rdma_bind_addr(id, (struct sockaddr *)&nowhere));
	FAILS(EAFNOSUPPORT, rdma_bind_addr(id, &(struct sockaddr){ .sa_family = AF_UNIX }));
	FAILS(EINVAL, rdma_resolve_route(id, 100));
	FAILS(EINVAL, rdma_connect(id, NULL));
	FAILS(EINVAL, rdma_accept(id, NULL));
	FAILS(EINVAL, rdma_reject(id, NULL, 0));
	FAILS(EINVAL, rdma_disconnect(id));
	FAILS(EINVAL, rdma_establish(id));
	FAILS(EINVAL, rdma_get_request(r.listener, &again));
	FAILS(EINVAL, rdma_notify(id, IBV_EVENT_QP_FATAL));
	FAILS(EINVAL, rdma_init_qp_attr(id, &(struct ibv_qp_attr){ 0 }, &(int){ 0 }));
	FAILS(ENOSYS, rdma_set_option(id, RDMA_OPTION_ID, 99, &(int){ 1 }, sizeof(int)));
	FAILS(EINVAL, rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &(int){ 1 }, sizeof(int)));
	FAILS(EINVAL, rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &(uint8_t){ 32 }, 1));
	assert_int_equal(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &(uint8_t){ 20 }, 1),
			 0);
	assert_int_equal(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &(uint8_t){ 20 }, 1), 0);
	rdma_destroy_id(id);
	r.a = caller(&r);
	FAILS(EINVAL, rdma_connect(r.a, &p));
	p = (struct rdma_conn_param){ .private_data = NULL, .private_data_len = 3 };
	FAILS(EINVAL, rdma_connect(r.a, &p));
	p = (struct rdma_conn_param){ .responder_resources = 254 };
	FAILS(EINVAL, rdma_connect(r.a, &p));
	call(&r, "");
	rdma_destroy_id(asked(&r));
	expect(r.ca, RDMA_CM_EVENT_REJECTED, r.a, HV_REJ_CONSUMER);
	assert_string_equal(rdma_event_str(RDMA_CM_EVENT_TIMEWAIT_EXIT), "RDMA_CM_EVENT_TIMEWAIT_EXIT");
	assert_string_equal(rdma_event_str(77), "UNKNOWN EVENT");
	rig_close(&r);
}

#ifndef __SANITIZE_ADDRESS__ /* it cannot unwind a thread that is cancelled */
static void *read_events(void *arg)
{
	struct rdma_cm_event *event;

	rdma_get_cm_event(arg, &event);
	fail(); /* not even with an error: read(2) would not come back either */
	return NULL;
}

/* A thread that waits for events of a channel, or begins to when that is destroyed, waits for ever. */
static void a_channel_is_destroyed_under_a_reader(void **state)
{
	for (int i = 0; i < 2; i++) {
		struct rdma_event_channel *channel = rdma_create_event_channel();
		pthread_t thread;
		void *end;

		assert_non_null(channel);
		if (i)
			rdma_destroy_event_channel(channel);
		assert_int_equal(pthread_create(&thread, NULL, read_events, channel), 0);
		usleep(30000);
		if (!i)
			rdma_destroy_event_channel(channel);
		usleep(30000);
		assert_int_equal(pthread_cancel(thread), 0);
		assert_int_equal(pthread_join(thread, &end), 0);
		assert_ptr_equal(end, PTHREAD_CANCELED);
	}
}
#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_said_arrives),
		cmocka_unit_test(either_may_leave),
		cmocka_unit_test(families),
		cmocka_unit_test(one_family_only),
		cmocka_unit_test(a_port_in_each_family),
		cmocka_unit_test(rejections),
		cmocka_unit_test(the_caller_has_gone),
		cmocka_unit_test(the_caller_has_gone_unread),
		cmocka_unit_test(the_listener_goes),
		cmocka_unit_test(datagram_services),
		cmocka_unit_test(calls_that_wait),
		cmocka_unit_test(ids_migrate),
		cmocka_unit_test(events_hold_their_id),
		cmocka_unit_test(a_listener_goes_while_its_request_is_read),
		cmocka_unit_test(a_caller_goes_while_its_answer_is_read),
		cmocka_unit_test(who_was_refused_may_accept_what_was_asked),
		cmocka_unit_test(channels_can_be_set_not_to_block),
		cmocka_unit_test(bad_input),
#ifndef __SANITIZE_ADDRESS__
		cmocka_unit_test(a_channel_is_destroyed_under_a_reader),
#endif
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
