/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* The transport between processes of one host. */
#include "engine/transport.h"

#include <errno.h>
#include <stdlib.h>

extern const struct hd_transport hd_shm_transport;

static int port_open(struct hd_node *node, struct hd_port **out)
{
	struct hd_port *port = calloc(1, sizeof(*port));

	if (!port)
		return -ENOMEM;
	port->transport = &hd_shm_transport;
	port->node = node;
	*out = port;
	return 0;
}

static void port_close(struct hd_port *port)
{
	free(port);
}

static int port_poll(struct hd_port *port)
{
	return 0;
}

static void port_disarm(struct hd_port *port)
{
}

static int port_listen(struct hd_port *port, struct hd_listener *l)
{
	return -EOPNOTSUPP;
}

static void port_unlisten(struct hd_port *port, struct hd_listener *l)
{
}

static size_t port_advertise(struct hd_port *port, void *advert, size_t room)
{
	return 0;
}

static int port_connect(struct hd_port *port, const void *where, size_t len, struct hd_link **out)
{
	return -EOPNOTSUPP;
}

const struct hd_transport hd_shm_transport = {
	.name = "shm",
	.number = HD_TNUM_SHM,
	.open = port_open,
	.close = port_close,
	.poll = port_poll,
	.arm = port_poll,
	.disarm = port_disarm,
	.listen = port_listen,
	.unlisten = port_unlisten,
	.advertise = port_advertise,
	.connect = port_connect,
};
