/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Which links are polled. Those with recent traffic are hot, and are polled in every turn. The
 * others are cold: one or two of them are looked at in a turn, through an array that says where the
 * next slot of each will appear, so that a hundred idle peers cost what one costs.
 */
#include "transport/shm/shm.h"

#include <stdlib.h>

static void hot_put(struct hd_shm_port *port, struct hd_shm_link *l)
{
	l->hot = true;
	l->idle = 0;
	l->place = port->hot_count;
	port->hot[port->hot_count++] = l;
}

static void hot_take(struct hd_shm_port *port, struct hd_shm_link *l)
{
	struct hd_shm_link *last = port->hot[--port->hot_count];

	port->hot[l->place] = last;
	last->place = l->place;
	l->hot = false;
}

static void cold_put(struct hd_shm_port *port, struct hd_shm_link *l)
{
	l->place = port->cold_count;
	port->cold[port->cold_count++] = (struct hd_shm_cold){
		.seq = &l->rx.slot[l->rx.tail & (HD_SHM_SLOTS - 1)].seq,
		.want = l->rx.tail + 1,
		.link = l,
	};
}

static void cold_take(struct hd_shm_port *port, struct hd_shm_link *l)
{
	struct hd_shm_cold last = port->cold[--port->cold_count];

	port->cold[l->place] = last;
	last.link->place = l->place;
}

void hd_shm_heat(struct hd_shm_link *l)
{
	struct hd_shm_port *port = hd_shm_port_of(l);

	if (!l->counted || l->hot)
		return;
	cold_take(port, l);
	hot_put(port, l);
}

void hd_shm_cool(struct hd_shm_link *l)
{
	struct hd_shm_port *port = hd_shm_port_of(l);

	hot_take(port, l);
	cold_put(port, l);
}

void hd_shm_poll_add(struct hd_shm_link *l)
{
	struct hd_shm_port *port = hd_shm_port_of(l);

	l->counted = true;
	hot_put(port, l);
	if (port->live++ == 0)
		hd_port_active(&port->base, true);
}

void hd_shm_poll_drop(struct hd_shm_link *l)
{
	struct hd_shm_port *port = hd_shm_port_of(l);

	if (!l->counted)
		return;
	if (l->hot)
		hot_take(port, l);
	else
		cold_take(port, l);
	l->counted = false;
	if (--port->live == 0)
		hd_port_active(&port->base, false);
}

/* Room in both arrays for one more, so that a link can move between them at any time. */
int hd_shm_poll_reserve(struct hd_shm_port *port)
{
	uint32_t room = port->room ? 2 * port->room : 8;
	void *hot, *cold;

	if (port->links < port->room)
		return 0;
	hot = realloc(port->hot, room * sizeof(*port->hot));
	if (!hot)
		return -ENOMEM;
	port->hot = hot;
	cold = realloc(port->cold, room * sizeof(*port->cold));
	if (!cold)
		return -ENOMEM;
	port->cold = cold;
	port->room = room;
	return 0;
}
