/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * The transport between processes of one host: its table, and its port, whose links it
 * polls (hot.c says which).
 */
#include "transport/shm/shm.h"

#include <stdlib.h>
#include <unistd.h>

#define COLD_LOOKS 2	/* cold links looked at in one turn */
#define COOL_POLLS 4096 /* a link is cold after so many polls in a row that found nothing */

/* ---- what is polled ---- */

static void look_at_cold(struct hd_shm_port *port)
{
	for (int i = 0; i < COLD_LOOKS && port->cold_count; i++) {
		struct hd_shm_cold *c;

		if (++port->cold_next >= port->cold_count)
			port->cold_next = 0;
		c = &port->cold[port->cold_next];
		if (hd_unlikely(atomic_load_explicit(c->seq, memory_order_relaxed) == c->want))
			hd_shm_heat(c->link);
	}
}

static int shm_port_poll(struct hd_port *base)
{
	struct hd_shm_port *port = (struct hd_shm_port *)base;
	int n = 0;

	/* A delivery may make links hot, and thereby move the array. */
	for (uint32_t i = 0; i < port->hot_count; i++) {
		struct hd_shm_link *l = port->hot[i];
		int got = hd_shm_link_poll(l);

		n += got;
		if (hd_likely(got))
			l->idle = 0;
		else if (hd_unlikely(++l->idle > COOL_POLLS && !l->attention))
			hd_shm_cool(l);
	}
	if (port->cold_count)
		look_at_cold(port);
	return n;
}

static int shm_port_arm(struct hd_port *base)
{
	struct hd_shm_port *port = (struct hd_shm_port *)base;

	if (!port->live)
		return 0;
	if (!port->barrier)
		atomic_thread_fence(memory_order_seq_cst); /* every sender fences too */
	else if (!hd_shm_barrier())
		return 1; /* it has worked before: better not to sleep than to miss a message */
	for (uint32_t i = 0; i < port->hot_count; i++)
		if (hd_shm_link_arm(port->hot[i]))
			return 1;
	for (uint32_t i = 0; i < port->cold_count; i++)
		if (hd_shm_link_arm(port->cold[i].link))
			return 1;
	return 0;
}

static void shm_port_disarm(struct hd_port *port)
{
}

/* ---- links and ports come and go ---- */

static int shm_port_open(struct hd_node *node, struct hd_port **out)
{
	struct hd_shm_port *port;

	if (hd_node_page_fd(node) < 0) /* links want a file in memory, too */
		return -EOPNOTSUPP;
	port = calloc(1, sizeof(*port));
	if (!port)
		return -ENOMEM;
	port->base.transport = &hd_shm_transport;
	port->base.node = node;
	port->link_ops = hd_shm_link_ops;
	port->join_watch.fd = -1;
	TAILQ_INIT(&port->pending_joins);
	TAILQ_INIT(&port->unmet);
	LIST_INIT(&port->late);
	port->barrier = hd_shm_barrier_init();
	hd_shm_copy_init();
	*out = &port->base;
	return 0;
}

static void shm_port_close(struct hd_port *base)
{
	struct hd_shm_port *port = (struct hd_shm_port *)base;

	hd_shm_join_close(port);
	hd_shm_late_free(port);
	free(port->hot);
	free(port->cold);
	free(port);
}

/* A child that kept the sockets open would hide the parent's death from the other ends. */
static void shm_port_forked(struct hd_port *base)
{
	struct hd_shm_port *port = (struct hd_shm_port *)base;
	struct hd_shm_link *l;

	LIST_FOREACH(l, &port->all, entry) {
		hd_shm_fd_close(l->sock.fd);
		hd_shm_fd_close(l->peer.pidfd.fd);
		hd_shm_fd_close(l->peer.wake);
		hd_shm_fd_close(l->setup.mem_fd);
		hd_shm_fd_close(l->peer.poke_fd);
	}
	hd_shm_fd_close(port->join_watch.fd);
	hd_shm_map_forked();
}

/* ---- the table ---- */

static bool is_of(const struct hd_shm_setup *setup, const struct hd_node_id *id)
{
	return !memcmp(&setup->join_id, id, sizeof(*id));
}

/*
 * A link that has become somebody's is passed by once, so all looks together cost as much as there
 * are links, and those that wait.
 */
static bool port_joining(struct hd_port *base, const struct hd_node_id *id)
{
	struct hd_shm_port *port = (struct hd_shm_port *)base;
	struct hd_shm_link *l, *next;

	TAILQ_FOREACH(l, &port->pending_joins, pending_join)
		if (l->state == HD_SHM_WAITING && is_of(&l->setup, id))
			return true;
	for (l = TAILQ_FIRST(&port->unmet); l; l = next) {
		next = TAILQ_NEXT(l, unmet_entry);
		if (l->base.down || l->base.peer)
			hd_shm_link_met(l);
		else if (is_of(&l->setup, id))
			return true;
	}
	return false;
}

static int port_listen(struct hd_port *port, struct hd_listener *l)
{
	return -EOPNOTSUPP;
}

static void port_unlisten(struct hd_port *port, struct hd_listener *l)
{
}

static size_t shm_port_advertise(struct hd_port *base, void *advert, size_t room)
{
	struct hd_shm_port *port = (struct hd_shm_port *)base;

	if (room < sizeof(port->advert) || hd_shm_join_open(port) < 0)
		return 0;
	memcpy(advert, &port->advert, sizeof(port->advert));
	return sizeof(port->advert);
}

static int advert_take(const void *from, size_t len, struct hd_shm_advert *advert)
{
	if (len != sizeof(*advert))
		return -EPROTO;
	memcpy(advert, from, sizeof(*advert));
	return advert->magic == HD_SHM_MAGIC && advert->version == HD_SHM_VERSION ? 0 : -EPROTO;
}

static int port_process(struct hd_port *base, const void *at, size_t len)
{
	struct hd_shm_advert advert;
	int err = advert_take(at, len, &advert);

	return err ? err : hd_shm_join_process(&advert);
}

static int port_connect(struct hd_port *base, const void *where, size_t len, const struct hd_node_id *whose,
			struct hd_link **out)
{
	struct hd_shm_advert advert;
	struct hd_shm_link *l;
	int err = advert_take(where, len, &advert);

	if (err)
		return err;
	err = hd_shm_join((struct hd_shm_port *)base, &advert, whose, &l);
	if (!err)
		*out = &l->base;
	return err;
}

const struct hd_transport hd_shm_transport = {
	.name = "shm",
	.number = HD_TNUM_SHM,
	.open = shm_port_open,
	.close = shm_port_close,
	.forked = shm_port_forked,
	.poll = shm_port_poll,
	.arm = shm_port_arm,
	.disarm = shm_port_disarm,
	.listen = port_listen,
	.unlisten = port_unlisten,
	.advertise = shm_port_advertise,
	.connect = port_connect,
	.process = port_process,
	.joining = port_joining,
	.settle = hd_shm_settle,
};
