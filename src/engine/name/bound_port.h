/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * A bound port: one TCP port that a node listens on, and the endpoints that are called there. Each
 * has a slot of it; a name is (address, port, slot).
 *
 *	port  ── listeners (one for each address of HEDDLE_ADDR, or one for all)
 *	      └─ slots ── 0: the endpoint that a plain socket address means
 *	                  1, 2, …: receive contexts behind that name, or endpoints for which the
 *	                  node has no descriptor to spare
 *
 * A slot is written into the part of a socket address that the kernel does not look at
 * (hd_name_set_slot in engine/api/endpoint.h). Everything is under the node's lock.
 */
#ifndef HD_ENGINE_BOUND_PORT_H
#define HD_ENGINE_BOUND_PORT_H

#include "engine/engine.h"
#include "engine/transport.h"

#include <sys/queue.h>

struct hd_bound_port {
	LIST_ENTRY(hd_bound_port) entry; /* hd_names.bound_ports */
	struct hd_node *node;
	struct hd_listener *listeners;
	int listener_count;
	uint16_t port;
	bool at_addr; /* it listens at one address only */
	/*
	 * not 0: endpoints that have nothing to do with each other share it, so many at
	 * most; slot 0 is nobody's
	 */
	uint32_t crowded;
	struct sockaddr_storage bind; /* what was asked for, AF_UNSPEC when nothing was */
	struct sockaddr_storage name; /* the best one; slot 0 */
	/*
	 * it goes: whoever has accepted calls here forgets it. link, by the first call; may take
	 * links down, and nothing of the bound port. NULL: nobody
	 */
	void (*gone)(const struct hd_bound_port *bound);
	uint32_t users; /* slots in use, and who holds it */
	uint32_t slot_count;
	struct hd_ep **slots;
	/* crowded: */
	LIST_ENTRY(hd_bound_port) room; /* hd_names.roomy */
	uint32_t given;			/* the first slots have all been given out at some time */
	uint32_t resting;		/* slots in hd_names.rests */
	/* slots that have rested, for which there is room as for all */
	uint16_t *idle;
	uint32_t idle_count;
};

/*
 * hd_bound_find: give an endpoint a bound port of its own or, when listening sockets hold a quarter
 * of the descriptors that the process may have (or none are left), a slot of a crowded one. bind:
 * as in struct hd_ep_attr; a port in it is the endpoint's alone. -EADDRINUSE, -EADDRNOTAVAIL,
 * -EMFILE, -ENOMEM, with a line in the log. HD_EP_NUMBERED: always a slot below 255 of a crowded
 * one.
 * hd_bound_join: give it this slot of a bound port. -EADDRINUSE: taken; -ERANGE; -ENOMEM.
 * hd_bound_leave: the slot is free; the bound port ends with its last one. One of a crowded bound
 * port rests before it is given to somebody else: what is still said to who had it, and about him,
 * shall not be taken to be about another. hd_bound_ports_close: the node closes, and its endpoints
 * have.
 */
int hd_bound_find(struct hd_ep *ep, const struct sockaddr *bind);
int hd_bound_join(struct hd_bound_port *bound, uint32_t slot, struct hd_ep *ep);
void hd_bound_leave(struct hd_ep *ep);
void hd_bound_ports_close(struct hd_node *node);

/*
 * hd_bound_share: an endpoint that stands for another one in part has that
 * one's name, slot and all.
 */
void hd_bound_share(struct hd_ep *ep, const struct hd_ep *with);

/* hd_bound_ep: who has this slot, which may be any number; NULL: nobody. */
struct hd_ep *hd_bound_ep(const struct hd_bound_port *bound, uint32_t slot);

/* hd_bound_is_named: is this a name of it, for this slot? */
bool hd_bound_is_named(const struct hd_bound_port *bound, uint32_t slot, const struct sockaddr *name);

/*
 * hd_bound_port_check (check.c): asserts in builds with assertions that its slots, and
 * those that rest or have rested, are counted. hd_names_check: the same of all of a node,
 * and that the node counts them.
 */
#ifdef NDEBUG
static inline void hd_bound_port_check(const struct hd_bound_port *bound)
{
}
static inline void hd_names_check(const struct hd_node *node)
{
}
#else
void hd_bound_port_check(const struct hd_bound_port *bound);
void hd_names_check(const struct hd_node *node);
#endif

#endif
