/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* stuck-cm: a program of rdma_cm that calls another, which listens and never accepts; see two.h. */
#include "two.h"

#include <arpa/inet.h>
#include <errno.h>
#include <rdma/rdma_cma.h>
#include <string.h>

static void must(int rc, const char *what)
{
	if (!rc)
		return;
	fprintf(stderr, "stuck-cm: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void expect(struct rdma_event_channel *channel, enum rdma_cm_event_type type)
{
	struct rdma_cm_event *e;

	must(rdma_get_cm_event(channel, &e), "rdma_get_cm_event");
	if (e->event != type) {
		fprintf(stderr, "stuck-cm: %s, not %s\n", rdma_event_str(e->event), rdma_event_str(type));
		exit(1);
	}
	rdma_ack_cm_event(e);
}

static struct sockaddr_in at_home(uint64_t port)
{
	return (struct sockaddr_in){ .sin_family = AF_INET,
				     .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
				     .sin_port = htons((uint16_t)port) };
}

/* The program hears where, and then that its call has come. */
static void listens(const struct two *t, struct rdma_event_channel *channel, struct rdma_cm_id *id)
{
	struct sockaddr_in at = at_home(0);

	must(rdma_bind_addr(id, (struct sockaddr *)&at), "rdma_bind_addr");
	must(rdma_listen(id, 4), "rdma_listen");
	two_tell(t, ntohs(rdma_get_src_port(id)));
	expect(channel, RDMA_CM_EVENT_CONNECT_REQUEST);
	two_tell(t, 0);
}

static void calls(const struct two *t, struct rdma_event_channel *channel, struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr qp = { .cap = { 4, 4, 1, 1, 0 }, .qp_type = IBV_QPT_RC };
	struct rdma_conn_param param = { .retry_count = 7, .rnr_retry_count = 7 };
	struct sockaddr_in at = at_home(two_hear(t));

	must(rdma_resolve_addr(id, NULL, (struct sockaddr *)&at, 2000), "rdma_resolve_addr");
	expect(channel, RDMA_CM_EVENT_ADDR_RESOLVED);
	must(rdma_resolve_route(id, 2000), "rdma_resolve_route");
	expect(channel, RDMA_CM_EVENT_ROUTE_RESOLVED);
	must(rdma_create_qp(id, NULL, &qp), "rdma_create_qp");
	must(rdma_connect(id, &param), "rdma_connect");
	two_hear(t);
}

int main(void)
{
	const struct two t = two_begin();
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *id;

	must(!channel, "rdma_create_event_channel");
	must(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP), "rdma_create_id");
	if (t.is_child)
		listens(&t, channel, id);
	else
		calls(&t, channel, id);
	two_hang(&t);
	return 0;
}
