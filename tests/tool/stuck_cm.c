/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * stuck-cm WAY: a program of rdma_cm that calls another, which listens and never accepts
 * (unanswered), or of rsockets that writes until there is no room, as the other does not read
 * (unread); see two.h.
 */
#include "two.h"

#include <arpa/inet.h>
#include <errno.h>
#include <rdma/rdma_cma.h>
#include <rdma/rsocket.h>
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

static void unanswered(const struct two *t)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *id;

	must(!channel, "rdma_create_event_channel");
	must(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP), "rdma_create_id");
	if (t->is_child)
		listens(t, channel, id);
	else
		calls(t, channel, id);
}

/* ---- rsockets -------------------------------------------------------------------------------- */

static void takes_and_does_not_read(const struct two *t, int socket)
{
	struct sockaddr_in at = at_home(0);
	socklen_t len = sizeof(at);

	must(rbind(socket, (struct sockaddr *)&at, len), "rbind");
	must(rlisten(socket, 1), "rlisten");
	must(rgetsockname(socket, (struct sockaddr *)&at, &len), "rgetsockname");
	two_tell(t, ntohs(at.sin_port));
	must(raccept(socket, NULL, NULL) < 0 ? -1 : 0, "raccept");
}

static void writes(const struct two *t, int socket)
{
	static const char some[4096];
	struct sockaddr_in at = at_home(two_hear(t));

	must(rconnect(socket, (struct sockaddr *)&at, sizeof(at)), "rconnect");
	while (rsend(socket, some, sizeof(some), MSG_DONTWAIT) > 0)
		continue;
	must(errno == EAGAIN || errno == EWOULDBLOCK ? 0 : -1, "rsend");
	/* until all that has been sent is there: what waits then is the program */
	while (rpoll(&(struct pollfd){ .fd = socket, .events = POLLOUT }, 1, 500) > 0)
		while (rsend(socket, some, sizeof(some), MSG_DONTWAIT) > 0)
			continue;
}

static void unread(const struct two *t)
{
	int socket = rsocket(AF_INET, SOCK_STREAM, 0);

	must(socket < 0 ? -1 : 0, "rsocket");
	if (t->is_child)
		takes_and_does_not_read(t, socket);
	else
		writes(t, socket);
}

int main(int argc, char **argv)
{
	const struct two t = two_begin();

	if (argc > 1 && !strcmp(argv[1], "unread"))
		unread(&t);
	else
		unanswered(&t);
	two_hang(&t);
	return 0;
}
