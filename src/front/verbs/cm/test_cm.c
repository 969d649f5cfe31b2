/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
#include "front/verbs/cm/test_cm.h"

#include "base/lock.h"
#include "front/verbs/cm/cm.h"

#include <setjmp.h>
#include <stdarg.h>

#include <arpa/inet.h>
#include <cmocka.h>
#include <poll.h>
#include <string.h>

struct rdma_cm_event *cm_next(struct rdma_event_channel *ch, enum rdma_cm_event_type type)
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

void cm_expect(struct rdma_event_channel *ch, enum rdma_cm_event_type type, struct rdma_cm_id *id, int status)
{
	struct rdma_cm_event *e = cm_next(ch, type);

	assert_ptr_equal(e->id, id);
	assert_int_equal(e->status, status);
	assert_int_equal(rdma_ack_cm_event(e), 0);
}

bool cm_quiet(struct rdma_event_channel *ch, int ms)
{
	struct pollfd p = { .fd = ch->fd, .events = POLLIN };

	return poll(&p, 1, ms) == 0;
}

struct sockaddr *cm_name(struct rig *r)
{
	return (struct sockaddr *)&r->at;
}

void cm_address(struct rig *r, const char *text)
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

void cm_listen_here(struct rig *r)
{
	assert_int_equal(rdma_create_id(r->cb, &r->listener, r, r->ps), 0);
	assert_int_equal(rdma_bind_addr(r->listener, cm_name(r)), 0);
	assert_int_equal(rdma_listen(r->listener, 8), 0);
}

void cm_listen_at(struct rig *r, const char *text)
{
	cm_address(r, text);
	cm_listen_here(r);
	hv_sockaddr_set_port(cm_name(r), ntohs(rdma_get_src_port(r->listener)));
}

void cm_open(struct rig *r, enum rdma_port_space ps)
{
	memset(r, 0, sizeof(*r));
	r->ps = ps;
	r->ca = rdma_create_event_channel();
	r->cb = rdma_create_event_channel();
	assert_true(r->ca && r->cb);
	cm_listen_at(r, "127.0.0.1");
}

struct rdma_cm_id *cm_caller(struct rig *r)
{
	struct rdma_cm_id *id;

	assert_int_equal(rdma_create_id(r->ca, &id, &r->a, r->ps), 0);
	assert_int_equal(rdma_resolve_addr(id, NULL, cm_name(r), 1000), 0);
	cm_expect(r->ca, RDMA_CM_EVENT_ADDR_RESOLVED, id, 0);
	assert_int_equal(rdma_resolve_route(id, 1000), 0);
	cm_expect(r->ca, RDMA_CM_EVENT_ROUTE_RESOLVED, id, 0);
	return id;
}

void cm_close(struct rig *r)
{
	if (r->a)
		assert_int_equal(rdma_destroy_id(r->a), 0);
	if (r->listener)
		assert_int_equal(rdma_destroy_id(r->listener), 0);
	rdma_destroy_event_channel(r->ca);
	rdma_destroy_event_channel(r->cb);
}

void cm_call(struct rig *r, const char *data)
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

struct rdma_cm_id *cm_asked(struct rig *r)
{
	struct rdma_cm_event *e = cm_next(r->cb, RDMA_CM_EVENT_CONNECT_REQUEST);
	struct rdma_cm_id *id = e->id;

	assert_ptr_equal(e->listen_id, r->listener);
	assert_ptr_equal(id->context, r);
	assert_int_equal(rdma_ack_cm_event(e), 0);
	return id;
}

struct rdma_cm_id *cm_asked_anew(struct rig *r, const char *data)
{
	r->a = cm_caller(r);
	cm_call(r, data);
	return cm_asked(r);
}

void cm_answer(struct rdma_cm_id *id, const char *data)
{
	struct rdma_conn_param p = { .private_data = data,
				     .private_data_len = (uint8_t)strlen(data),
				     .rnr_retry_count = 4,
				     .qp_num = 0x99 };

	assert_int_equal(rdma_accept(id, &p), 0);
}

struct rdma_cm_id *cm_join(struct rig *r)
{
	struct rdma_cm_id *b;

	b = cm_asked_anew(r, "");
	cm_answer(b, "");
	cm_expect(r->ca, RDMA_CM_EVENT_CONNECT_RESPONSE, r->a, 0);
	assert_int_equal(rdma_establish(r->a), 0);
	cm_expect(r->cb, RDMA_CM_EVENT_ESTABLISHED, b, 0);
	return b;
}
