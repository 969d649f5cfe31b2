/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Row CM: ids and channels: ports and port spaces, addresses, options, states, migration,
 * threads, descriptors, signals.
 */
#include "cmt.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

/* ---- ports ----------------------------------------------------------------------------------- */

static struct rdma_cm_id *bound(struct cmt *c)
{
	struct rdma_cm_id *id = cmt_id(c);

	CMT_OK(c->ct, rdma_bind_addr(id, cmt_at(c)));
	return id;
}

static void set_flag(struct cmt *c, struct rdma_cm_id *id, int option)
{
	CMT_OK(c->ct, rdma_set_option(id, RDMA_OPTION_ID, option, &(int){ 1 }, sizeof(int)));
}

/*
 * Each port space has ports of its own; a port is taken once, and free again
 * when its id is destroyed.
 */
static void ports(struct ct *ct)
{
	static const enum rdma_port_space spaces[] = { RDMA_PS_TCP, RDMA_PS_UDP, RDMA_PS_IB, RDMA_PS_IPOIB };
	struct rdma_cm_id *id[4], *second;
	struct cmt c;

	cmt_open(ct, &c);
	cmt_here(c.family, 0, &c.at);
	for (int i = 0; i < 4; i++) {
		c.ps = spaces[i];
		id[i] = bound(&c);
		CT_EQ(ct, id[i]->ps, spaces[i]);
		CT_EQ(ct, id[i]->qp_type, i & 1 ? IBV_QPT_UD : IBV_QPT_RC);
		CT_TRUE(ct, rdma_get_src_port(id[i]));
		CT_EQ(ct, rdma_get_dst_port(id[i]), 0);
		if (i)
			CT_EQ(ct, ntohs(rdma_get_src_port(id[i])), cmt_port(&c.at));
		cmt_set_port(&c.at, ntohs(rdma_get_src_port(id[i])));
		second = cmt_id(&c);
		CMT_ERR(ct, rdma_bind_addr(second, cmt_at(&c)), EADDRINUSE);
		CMT_OK(ct, rdma_listen(id[i], 0));
		CMT_ERR(ct, rdma_bind_addr(second, cmt_at(&c)), EADDRINUSE);
		CMT_OK(ct, rdma_destroy_id(id[i]));
		CMT_OK(ct, rdma_bind_addr(second, cmt_at(&c)));
		id[i] = second;
	}
	for (int i = 0; i < 4; i++)
		CMT_OK(ct, rdma_destroy_id(id[i]));
	cmt_close(&c);
}

/*
 * Listening at once, without rdma_bind_addr, has a port; both spaces are called at the same port,
 * and answer for themselves.
 */
static void two_spaces(struct ct *ct)
{
	struct rdma_cm_id *id;
	struct cmt c, d;

	cmt_serve(ct, &c);
	cmt_open(ct, &d);
	d.ps = RDMA_PS_IB;
	if (!ct->rank) {
		d.at = c.at;
		d.listener = bound(&d);
		CMT_OK(ct, rdma_listen(d.listener, 0));
		ct_put(ct, 1, &d.at, sizeof(d.at));
	} else {
		cmt_find(&d);
	}
	CT_EQ(ct, cmt_port(&c.at), cmt_port(&d.at));
	cmt_join(&d);
	cmt_join(&c);
	ct_sync(ct, NULL);
	id = cmt_id(&c);
	CMT_OK(ct, rdma_listen(id, 0));
	CT_TRUE(ct, rdma_get_src_port(id));
	CMT_OK(ct, rdma_destroy_id(id));
	cmt_close(&c);
	cmt_close(&d);
}

/* Two that may share their address both have it; one of them listens. */
static void reuse(struct ct *ct)
{
	struct rdma_cm_id *id[2];
	struct cmt c;

	cmt_open(ct, &c);
	cmt_here(AF_INET, 0, &c.at);
	id[0] = bound(&c); /* of this, only the port is wanted */
	cmt_set_port(&c.at, ntohs(rdma_get_src_port(id[0])));
	CMT_OK(ct, rdma_destroy_id(id[0]));
	for (int i = 0; i < 2; i++) {
		id[i] = cmt_id(&c);
		set_flag(&c, id[i], RDMA_OPTION_ID_REUSEADDR);
		CMT_OK(ct, rdma_bind_addr(id[i], cmt_at(&c)));
	}
	CMT_OK(ct, rdma_listen(id[0], 0));
	CMT_ERR(ct,
		rdma_set_option(id[0], RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &(int){ 1 }, sizeof(int)),
		EINVAL); /* too late, as the kernel has it */
	CMT_ERR(ct, rdma_listen(id[1], 0), EADDRINUSE);
	CMT_OK(ct, rdma_destroy_id(id[0]));
	CMT_OK(ct, rdma_listen(id[1], 0));
	CMT_OK(ct, rdma_destroy_id(id[1]));
	cmt_close(&c);
}

/* ---- families -------------------------------------------------------------------------------- */

/*
 * A listener at a wildcard belongs to no device, and is called at every address of its family;
 * that of IPv6 also over IPv4.
 */
static void wildcards(struct ct *ct)
{
	bool only = ct->cs->arg == 66;
	uint16_t port;
	struct cmt c;

	cmt_open(ct, &c);
	c.family = ct->cs->arg == 4 ? AF_INET : AF_INET6;
	if (!ct->rank) {
		cmt_any(c.family, 0, &c.at);
		c.listener = cmt_id(&c);
		if (only)
			set_flag(&c, c.listener, RDMA_OPTION_ID_AFONLY);
		CMT_OK(ct, rdma_bind_addr(c.listener, cmt_at(&c)));
		CT_TRUE(ct, !c.listener->verbs);
		CMT_OK(ct, rdma_listen(c.listener, 0));
		port = ntohs(rdma_get_src_port(c.listener));
		ct_put(ct, 1, &port, sizeof(port));
	} else {
		ct_get(ct, NULL, 0, &port, sizeof(port));
	}
	cmt_here(c.family, port, &c.at);
	cmt_join(&c);
	CT_EQ(ct, rdma_get_peer_addr(c.id)->sa_family, c.family);
	ct_sync(ct, NULL);
	rdma_destroy_qp(c.id);
	CMT_OK(ct, rdma_destroy_id(c.id));
	c.id = NULL;
	if (!ct->rank) {
		struct pollfd p = { .fd = c.ch->fd, .events = POLLIN };
		struct rdma_cm_event *e;

		while (poll(&p, 1, 0)) /* what there is of the one that went */
			CMT_OK(ct, rdma_get_cm_event(c.ch, &e) || rdma_ack_cm_event(e));
	}
	ct_sync(ct, NULL);
	cmt_here(AF_INET, port, &c.at);
	if (!only) {
		cmt_join(&c);
		CT_EQ(ct, rdma_get_peer_addr(c.id)->sa_family, AF_INET);
	} else if (ct->rank) {
		c.id = cmt_resolve(&c);
		CMT_OK(ct, rdma_connect(c.id, NULL));
		cmt_expect(&c, RDMA_CM_EVENT_REJECTED, c.id, CMT_NOBODY);
	} else {
		struct rdma_cm_event *e;

		/* whoever reads finds nothing, for as long as the call and its refusal may take */
		fcntl(c.ch->fd, F_SETFL, O_NONBLOCK);
		for (double end = ct_now() + 1; ct_now() < end; usleep(1000))
			CMT_ERR(ct, rdma_get_cm_event(c.ch, &e), EAGAIN);
	}
	ct_sync(ct, NULL);
	cmt_close(&c);
}

static void addresses(struct ct *ct)
{
	struct sockaddr_storage other;
	struct sockaddr_in nowhere = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(0xc0000201) };
	/* of this host, but no interface's, and so no device's */
	struct sockaddr_in deviceless = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(0x7f654321) };
	struct cmt c;

	cmt_open(ct, &c);
	c.id = cmt_id(&c);
	CMT_ERR(ct, rdma_bind_addr(c.id, (struct sockaddr *)&nowhere), EADDRNOTAVAIL);
	CMT_ERR(ct, rdma_bind_addr(c.id, (struct sockaddr *)&deviceless), ENODEV);
	CMT_ERR(ct, rdma_bind_addr(c.id, &(struct sockaddr){ .sa_family = AF_UNIX }), EINVAL);
	CMT_ERR(ct, rdma_resolve_addr(c.id, NULL, &(struct sockaddr){ .sa_family = AF_UNIX }, 1000), EINVAL);
	CMT_ERR(ct, rdma_bind_addr(c.id, NULL), EINVAL);
	cmt_here(AF_INET6, 4000, &other);
	cmt_here(AF_INET, 4000, &c.at);
	CMT_ERR(ct, rdma_resolve_addr(c.id, (struct sockaddr *)&other, cmt_at(&c), 1000), EINVAL);
	CMT_ERR(ct, rdma_resolve_addr(c.id, (struct sockaddr *)&nowhere, cmt_at(&c), 1000), EADDRNOTAVAIL);
	CMT_ERR(ct, rdma_resolve_addr(c.id, (struct sockaddr *)&deviceless, cmt_at(&c), 1000), ENODEV);
	CMT_ERR(ct, rdma_resolve_addr(c.id, NULL, NULL, 1000), EINVAL);
	/* from an address of its own, which it may have got before */
	cmt_here(AF_INET, 0, &other);
	CMT_OK(ct, rdma_bind_addr(c.id, (struct sockaddr *)&other));
	CT_TRUE(ct, c.id->verbs);
	CMT_ERR(ct, rdma_bind_addr(c.id, (struct sockaddr *)&other), EINVAL);
	cmt_set_port(&other, ntohs(rdma_get_src_port(c.id)));
	CMT_OK(ct, rdma_resolve_addr(c.id, NULL, cmt_at(&c), 1000));
	cmt_expect(&c, RDMA_CM_EVENT_ADDR_RESOLVED, c.id, 0);
	CT_TRUE(ct, !memcmp(rdma_get_local_addr(c.id), &other, sizeof(struct sockaddr_in)));
	CT_TRUE(ct, !memcmp(rdma_get_peer_addr(c.id), &c.at, sizeof(struct sockaddr_in)));
	cmt_close(&c);
}

/* ---- states and bad input -------------------------------------------------------------------- */

static void wrong_states(struct ct *ct)
{
	struct ibv_qp_init_attr attr = { .cap = { 4, 4, 1, 1, 0 }, .qp_type = IBV_QPT_RC };
	struct rdma_cm_id *id, *got;
	struct ibv_qp_attr qa = { .qp_state = IBV_QPS_INIT };
	int mask;
	struct cmt c;

	cmt_open(ct, &c);
	cmt_here(AF_INET, 4000, &c.at);
	CMT_ERR(ct, rdma_create_id(c.ch, &id, NULL, (enum rdma_port_space)77), EINVAL);
	c.id = cmt_id(&c);
	CMT_ERR(ct, rdma_resolve_route(c.id, 100), EINVAL);
	CMT_ERR(ct, rdma_connect(c.id, NULL), EINVAL);
	CMT_ERR(ct, rdma_accept(c.id, NULL), EINVAL);
	CMT_ERR(ct, rdma_reject(c.id, NULL, 0), EINVAL);
	CMT_ERR(ct, rdma_disconnect(c.id), EINVAL);
	CMT_ERR(ct, rdma_establish(c.id), EINVAL);
	CMT_ERR(ct, rdma_get_request(c.id, &got), EINVAL);
	CMT_ERR(ct, rdma_notify(c.id, IBV_EVENT_COMM_EST), EINVAL);
	CMT_ERR(ct, rdma_notify(c.id, IBV_EVENT_PATH_MIG), EINVAL);
	CMT_ERR(ct, rdma_create_qp(c.id, NULL, &attr), EINVAL);
	CMT_ERR(ct, rdma_init_qp_attr(c.id, &qa, &mask), EINVAL);
	CMT_OK(ct, rdma_resolve_addr(c.id, NULL, cmt_at(&c), 100));
	CMT_ERR(ct, rdma_resolve_addr(c.id, NULL, cmt_at(&c), 100), EINVAL);
	cmt_expect(&c, RDMA_CM_EVENT_ADDR_RESOLVED, c.id, 0);
	CMT_ERR(ct, rdma_bind_addr(c.id, cmt_at(&c)), EINVAL);
	CMT_ERR(ct, rdma_listen(c.id, 0), EINVAL);
	CMT_ERR(ct, rdma_connect(c.id, NULL), EINVAL);
	attr.qp_type = IBV_QPT_UD;
	CMT_ERR(ct, rdma_create_qp(c.id, NULL, &attr), EINVAL);
	cmt_qp(&c, c.id);
	attr.qp_type = IBV_QPT_RC;
	CMT_ERR(ct, rdma_create_qp(c.id, NULL, &attr), EINVAL);
	CMT_OK(ct, rdma_init_qp_attr(c.id, &qa, &mask));
	CT_TRUE(ct, mask & IBV_QP_PORT && mask & IBV_QP_ACCESS_FLAGS && qa.port_num == 1);
	qa.qp_state = IBV_QPS_RTR; /* whose other end is not known */
	CMT_ERR(ct, rdma_init_qp_attr(c.id, &qa, &mask), EINVAL);
	CMT_OK(ct, rdma_resolve_route(c.id, 100));
	CMT_ERR(ct, rdma_resolve_route(c.id, 100), EINVAL);
	cmt_expect(&c, RDMA_CM_EVENT_ROUTE_RESOLVED, c.id, 0);
	CMT_ERR(ct, rdma_migrate_id(NULL, c.ch), EINVAL);
	CMT_ERR(ct, rdma_get_cm_event(NULL, NULL), EINVAL);
	cmt_close(&c);
}

static int option(struct rdma_cm_id *id, int name, void *value, size_t len)
{
	return rdma_set_option(id, RDMA_OPTION_ID, name, value, len);
}

static void options(struct ct *ct)
{
	struct ibv_qp_init_attr init;
	struct ibv_path_data path = { .path.tclass = 12 };
	struct ibv_qp_attr attr;
	uint8_t byte = 40;
	int one = 1;
	struct cmt c;

	cmt_serve(ct, &c);
	if (!ct->rank) {
		cmt_join(&c);
		ct_sync(ct, NULL);
		cmt_close(&c);
		return;
	}
	c.id = cmt_id(&c);
	CMT_ERR(ct, option(c.id, 99, &one, sizeof(one)), ENOSYS);
	CMT_ERR(ct, rdma_set_option(c.id, 99, 0, &one, sizeof(one)), ENOSYS);
	CMT_ERR(ct, option(c.id, RDMA_OPTION_ID_TOS, &one, sizeof(one)), EINVAL);
	CMT_ERR(ct, option(c.id, RDMA_OPTION_ID_TOS, NULL, 1), EINVAL);
	CMT_ERR(ct, option(c.id, RDMA_OPTION_ID_REUSEADDR, &byte, 1), EINVAL);
	CMT_ERR(ct, option(c.id, RDMA_OPTION_ID_AFONLY, &byte, 1), EINVAL);
	CMT_ERR(ct, option(c.id, RDMA_OPTION_ID_ACK_TIMEOUT, &one, sizeof(one)), EINVAL);
	CMT_ERR(ct, option(c.id, RDMA_OPTION_ID_ACK_TIMEOUT, &byte, 1), EINVAL); /* 5 bits */
	CMT_ERR(ct, rdma_set_option(c.id, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, &path, sizeof(path)), EINVAL);
	CMT_OK(ct, option(c.id, RDMA_OPTION_ID_TOS, &byte, 1));
	byte = 20;
	CMT_OK(ct, option(c.id, RDMA_OPTION_ID_ACK_TIMEOUT, &byte, 1));
	CMT_OK(ct, rdma_resolve_addr(c.id, NULL, cmt_at(&c), 1000));
	cmt_expect(&c, RDMA_CM_EVENT_ADDR_RESOLVED, c.id, 0);
	CMT_ERR(ct, option(c.id, RDMA_OPTION_ID_AFONLY, &one, sizeof(one)), EINVAL);
	CMT_OK(ct, rdma_resolve_route(c.id, 1000));
	cmt_expect(&c, RDMA_CM_EVENT_ROUTE_RESOLVED, c.id, 0);
	cmt_qp(&c, c.id);
	CMT_OK(ct, rdma_connect(c.id, NULL));
	cmt_expect(&c, RDMA_CM_EVENT_ESTABLISHED, c.id, 0);
	CT_EQ(ct, ibv_query_qp(c.id->qp, &attr, IBV_QP_TIMEOUT | IBV_QP_AV, &init), 0);
	CT_EQ(ct, attr.timeout, 20);
	CT_EQ(ct, attr.ah_attr.grh.traffic_class, 40);
	ct_sync(ct, NULL);
	cmt_close(&c);
}

/* A path that the program brings along is the route. */
static void a_path(struct ct *ct)
{
	struct ibv_path_data path = { .flags = IBV_PATH_FLAG_PRIMARY, .path.tclass = 12 };
	struct cmt c;

	cmt_serve(ct, &c);
	if (ct->rank) {
		c.id = cmt_id(&c);
		CMT_OK(ct, rdma_resolve_addr(c.id, NULL, cmt_at(&c), 1000));
		cmt_expect(&c, RDMA_CM_EVENT_ADDR_RESOLVED, c.id, 0);
		CMT_ERR(ct, rdma_set_option(c.id, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, &path, 5), EINVAL);
		CMT_OK(ct, rdma_set_option(c.id, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, &path, sizeof(path)));
		cmt_expect(&c, RDMA_CM_EVENT_ROUTE_RESOLVED, c.id, 0);
		CT_EQ(ct, c.id->route.num_paths, 1);
		CT_EQ(ct, c.id->route.path_rec->traffic_class, 12);
		CMT_OK(ct, rdma_connect(c.id, NULL));
		cmt_expect(&c, RDMA_CM_EVENT_CONNECT_RESPONSE, c.id, 0);
	} else {
		c.id = cmt_asked(&c);
		CMT_OK(ct, rdma_accept(c.id, NULL));
	}
	ct_sync(ct, NULL);
	cmt_close(&c);
}

/* ---- channels -------------------------------------------------------------------------------- */

/*
 * Events go where the id has gone, those that nobody has read among them; a channel that
 * is left can be destroyed.
 */
static void migration(struct ct *ct)
{
	struct rdma_event_channel *second = rdma_create_event_channel();
	struct rdma_cm_event *e;
	struct cmt c;

	cmt_serve(ct, &c);
	CT_TRUE(ct, second);
	if (!ct->rank) {
		while (poll(&(struct pollfd){ .fd = c.ch->fd, .events = POLLIN }, 1, 1000) != 1)
			;
		CMT_OK(ct, rdma_migrate_id(c.listener, second));
		cmt_quiet(&c, 0);
		rdma_destroy_event_channel(c.ch);
		c.ch = second;
		c.id = cmt_asked(&c);
		CT_TRUE(ct, c.id->channel == second);
		CMT_OK(ct, rdma_accept(c.id, NULL));
		cmt_expect(&c, RDMA_CM_EVENT_ESTABLISHED, c.id, 0);
		CMT_OK(ct, rdma_disconnect(c.id));
		cmt_expect(&c, RDMA_CM_EVENT_DISCONNECTED, c.id, 0);
		ct_sync(ct, NULL);
		cmt_close(&c);
		return;
	}
	c.id = cmt_resolve(&c);
	CMT_OK(ct, rdma_connect(c.id, NULL));
	CMT_OK(ct, rdma_migrate_id(c.id, second));
	rdma_destroy_event_channel(c.ch);
	c.ch = second;
	cmt_expect(&c, RDMA_CM_EVENT_CONNECT_RESPONSE, c.id, 0);
	CMT_OK(ct, rdma_migrate_id(c.id, NULL)); /* its calls wait from now on */
	CT_TRUE(ct, c.id->channel && c.id->channel != second);
	CMT_OK(ct, rdma_establish(c.id));
	CMT_OK(ct, rdma_get_cm_event(c.id->channel, &e));
	CT_EQ(ct, e->event, RDMA_CM_EVENT_DISCONNECTED);
	CMT_OK(ct, rdma_ack_cm_event(e));
	ct_sync(ct, NULL);
	cmt_close(&c);
}

/*
 * Set not to block, a channel says EAGAIN; its descriptor polls readable as
 * long as there is an event.
 */
static void non_blocking(struct ct *ct)
{
	struct pollfd p = { .events = POLLIN };
	struct rdma_cm_event *e;
	struct cmt c;

	cmt_open(ct, &c);
	cmt_here(AF_INET, 4000, &c.at);
	p.fd = c.ch->fd;
	CT_EQ(ct, fcntl(c.ch->fd, F_GETFL) & O_NONBLOCK, 0);
	CT_EQ(ct, fcntl(c.ch->fd, F_SETFL, fcntl(c.ch->fd, F_GETFL) | O_NONBLOCK), 0);
	CMT_ERR(ct, rdma_get_cm_event(c.ch, &e), EAGAIN);
	CT_EQ(ct, poll(&p, 1, 0), 0);
	c.id = cmt_id(&c);
	CMT_OK(ct, rdma_resolve_addr(c.id, NULL, cmt_at(&c), 1000));
	CT_EQ(ct, poll(&p, 1, 10000), 1);
	CT_EQ(ct, poll(&p, 1, 0), 1);
	CMT_OK(ct, rdma_get_cm_event(c.ch, &e));
	CT_EQ(ct, poll(&p, 1, 0), 0);
	CMT_OK(ct, rdma_ack_cm_event(e));
	CMT_ERR(ct, rdma_get_cm_event(c.ch, &e), EAGAIN);
	cmt_close(&c);
}

static void on_signal(int sig)
{
}

/* A signal interrupts, unless its handler is to restart calls. */
static void signals(struct ct *ct)
{
	struct sigaction sa = { .sa_handler = on_signal };
	struct rdma_cm_event *e;
	struct cmt c;

	cmt_open(ct, &c);
	sigaction(SIGALRM, &sa, NULL);
	ualarm(20000, 20000);
	CMT_ERR(ct, rdma_get_cm_event(c.ch, &e), EINTR);
	sa.sa_flags = SA_RESTART;
	sigaction(SIGALRM, &sa, NULL);
	cmt_here(AF_INET, 4000, &c.at);
	c.id = cmt_id(&c);
	CMT_OK(ct, rdma_resolve_addr(c.id, NULL, cmt_at(&c), 1000));
	CMT_OK(ct, rdma_get_cm_event(c.ch, &e));
	CMT_OK(ct, rdma_ack_cm_event(e));
	ualarm(0, 0);
	cmt_close(&c);
}

/* which ends the program when the stack of a cancelled thread is unwound */
#ifndef __SANITIZE_ADDRESS__
static void *read_for_ever(void *arg)
{
	struct rdma_event_channel *ch = arg;
	struct rdma_cm_event *e;

	while (!rdma_get_cm_event(ch, &e))
		rdma_ack_cm_event(e);
	return NULL;
}

/*
 * A thread that waits for events can be cancelled, as some programs do with theirs before they end.
 */
static void cancellation(struct ct *ct)
{
	pthread_t thread;
	void *result;
	struct cmt c;

	cmt_open(ct, &c);
	CT_EQ(ct, pthread_create(&thread, NULL, read_for_ever, c.ch), 0);
	ct_let_others_sleep();
	CT_EQ(ct, pthread_cancel(thread), 0);
	CT_EQ(ct, pthread_join(thread, &result), 0);
	CT_TRUE(ct, result == PTHREAD_CANCELED);
	cmt_here(AF_INET, 4000, &c.at);
	c.id = cmt_resolve(&c);
	cmt_close(&c);
}
#endif

/* ---- threads --------------------------------------------------------------------------------- */

enum {
	THREADS = 4,
	ROUNDS = 25
};

struct caller {
	struct cmt *c;
	pthread_t thread;
	const char *wrong; /* NULL: all went well */
};

/* Connect and leave, with ids of this thread's on a channel of its own. */
static void *call_often(void *arg)
{
	struct caller *me = arg;
	struct rdma_cm_id *id;

	for (int i = 0; i < ROUNDS && !me->wrong; i++) {
		if (rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP)) {
			me->wrong = "rdma_create_id";
			break;
		}
		if (rdma_resolve_addr(id, NULL, cmt_at(me->c), 2000) || rdma_resolve_route(id, 2000))
			me->wrong = "resolving";
		else if (rdma_connect(id, NULL) || rdma_establish(id))
			me->wrong = "connecting";
		else if (rdma_disconnect(id))
			me->wrong = "rdma_disconnect";
		if (rdma_destroy_id(id))
			me->wrong = "rdma_destroy_id";
	}
	return NULL;
}

/* Several threads read one channel; each accepts what it reads of, and destroys what has left. */
static void *serve_often(void *arg)
{
	struct caller *me = arg;
	static atomic_int over;
	struct pollfd p = { .fd = me->c->ch->fd, .events = POLLIN };
	struct rdma_cm_event *e;

	while (over < THREADS * ROUNDS && !me->wrong) {
		struct rdma_cm_id *id;
		enum rdma_cm_event_type type;

		if (poll(&p, 1, 50) != 1 || rdma_get_cm_event(me->c->ch, &e))
			continue;
		id = e->id;
		type = e->event;
		if (type == RDMA_CM_EVENT_CONNECT_REQUEST && rdma_accept(id, NULL))
			me->wrong = "rdma_accept";
		rdma_ack_cm_event(e);
		if (type == RDMA_CM_EVENT_DISCONNECTED) {
			rdma_disconnect(id);
			rdma_destroy_id(id);
			over++;
		}
	}
	return NULL;
}

static void threads(struct ct *ct)
{
	struct caller all[THREADS];
	struct cmt c;

	cmt_serve(ct, &c);
	fcntl(c.ch->fd, F_SETFL, O_NONBLOCK);
	for (int i = 0; i < THREADS; i++) {
		all[i] = (struct caller){ .c = &c };
		CT_EQ(ct, pthread_create(&all[i].thread, NULL, ct->rank ? call_often : serve_often, &all[i]),
		      0);
	}
	for (int i = 0; i < THREADS; i++)
		CT_EQ(ct, pthread_join(all[i].thread, NULL), 0);
	for (int i = 0; i < THREADS; i++)
		if (all[i].wrong)
			ct_fail(ct, "thread %d: %s", i, all[i].wrong);
	ct_sync(ct, NULL);
	cmt_close(&c);
}

const struct ct_case vt_cm_ids[] = {
	{ "CM", "ports", { ports }, .arg = 4 },
	{ "CM", "ports-ipv6", { ports }, .arg = 6 },
	{ "CM", "port-spaces", CT_TWO(two_spaces) },
	{ "CM", "reuse-address", { reuse } },
	{ "CM", "wildcard", CT_TWO(wildcards), .arg = 4 },
	{ "CM", "wildcard-of-both-families", CT_TWO(wildcards), .arg = 6 },
	{ "CM", "wildcard-of-one-family", CT_TWO(wildcards), .arg = 66, .slow = true },
	{ "CM", "addresses", { addresses } },
	{ "CM", "wrong-states", { wrong_states } },
	{ "CM", "options", CT_TWO(options) },
	{ "CM", "path-option", CT_TWO(a_path) },
	{ "CM", "migrate", CT_TWO(migration) },
	{ "CM", "non-blocking", { non_blocking } },
	{ "CM", "signals", { signals } },
#ifndef __SANITIZE_ADDRESS__
	{ "CM", "cancellation", { cancellation } },
#endif
	{ "CM", "threads", CT_TWO(threads) },
	{ 0 },
};
