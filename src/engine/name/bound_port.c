/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Places: where the endpoints of a node are called, and what they are called. */
#include "engine/name/bound_port.h"
#include "engine/core/core.h"
#include "engine/name/name.h"

#include "base/config.h"
#include "base/files.h"
#include "base/log.h"
#include "base/sockaddr.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#define SLOT_MAX 65535
#define NUMBERED_MAX 254 /* slots of a port that make numbers of 24 bits, and never all ones */
#define RESTS 2048u	 /* slots that rest: so many others are given out before one is again */

/* ---- socket addresses ------------------------------------------------------------------------ */

static struct hd_port *addressed_port(struct hd_node *node)
{
	for (int i = 0; i < hd_core(node)->port_count; i++)
		if (hd_core(node)->ports[i]->transport->addressed)
			return hd_core(node)->ports[i];
	return NULL;
}

static uint16_t get_port(const struct sockaddr *sa)
{
	return ntohs(sa->sa_family == AF_INET ? ((const struct sockaddr_in *)sa)->sin_port
					      : ((const struct sockaddr_in6 *)sa)->sin6_port);
}

/* ---- listening ------------------------------------------------------------------------------- */

/* The address that is asked for; AF_UNSPEC when any will do. */
static void place_wanted(const struct sockaddr *bind, struct sockaddr_storage *out)
{
	memset(out, 0, sizeof(*out));
	if (!bind || hd_sockaddr_is_any(bind))
		return;
	out->ss_family = bind->sa_family; /* an unknown one is refused by whoever listens */
	memcpy(out, bind, hd_sockaddr_size(bind));
	hd_name_set_slot((struct sockaddr *)out, 0);
}

/* Where the bound port shall listen, ports aside; returns the number of addresses. */
static int addresses(struct hd_node *node, const struct sockaddr *bind, struct sockaddr_storage *out)
{
	memset(out, 0, sizeof(*out) * HD_HELLO_ADDRS);
	place_wanted(bind, out);
	if (out->ss_family != AF_UNSPEC)
		return 1;
	if (*hd_config_str(HD_SET_ADDR)) {
		memcpy(out, hd_names(node)->addrs, sizeof(*out) * hd_names(node)->addr_count);
		return hd_names(node)->addr_count;
	}
	out->ss_family = AF_INET6; /* both families at once */
	return 1;
}

static void unlisten(struct hd_bound_port *bound)
{
	struct hd_port *port = addressed_port(bound->node);

	for (int i = 0; i < bound->listener_count && !hd_core(bound->node)->gate.dead; i++)
		port->transport->unlisten(port, &bound->listeners[i]);
	hd_names(bound->node)->listening -= bound->listener_count;
	bound->listener_count = 0;
}

/* Listen on this TCP port (0: any that is free) at all addresses. */
static int bound_port_listen_at(struct hd_bound_port *bound, const struct sockaddr_storage *at, int count,
				uint16_t tcp_port)
{
	struct hd_port *port = addressed_port(bound->node);

	for (int i = 0; i < count; i++) {
		struct hd_listener *l = &bound->listeners[i];
		int rc;

		*l = (struct hd_listener){ .addr = at[i], .bound_port = bound };
		hd_addr_set_port(&l->addr, tcp_port);
		rc = port->transport->listen(port, l);
		if (rc == -EAFNOSUPPORT && at[i].ss_family == AF_INET6 &&
		    hd_sockaddr_is_any((const void *)&at[i])) {
			memset(&l->addr, 0, sizeof(l->addr)); /* a host without IPv6 */
			l->addr.ss_family = AF_INET;
			hd_addr_set_port(&l->addr, tcp_port);
			rc = port->transport->listen(port, l);
		}
		if (rc < 0) {
			unlisten(bound);
			return rc;
		}
		bound->listener_count++;
		hd_names(bound->node)->listening++;
		tcp_port = get_port((const struct sockaddr *)&l->addr);
	}
	bound->port = tcp_port;
	return 0;
}

static void no_port_free(struct hd_range range)
{
	if (range.first)
		HD_LOG_EVERY_MS(
			1000, HD_LOG_ERROR,
			"no TCP port free in %u-%u: widen HEDDLE_PORTS, or end the program that has them, as `ss -tlnp` shows",
			range.first, range.last);
	else
		HD_LOG_EVERY_MS(
			1000, HD_LOG_ERROR,
			"the kernel has no TCP port free: set HEDDLE_PORTS, or widen sysctl net.ipv4.ip_local_port_range");
}

static int listen_somewhere(struct hd_bound_port *bound, const struct sockaddr *bind)
{
	struct hd_range range = hd_config_range(HD_SET_PORTS);
	struct sockaddr_storage at[HD_HELLO_ADDRS];
	int count = addresses(bound->node, bind, at), rc = -EADDRINUSE;
	bool wished = bind && get_port(bind);

	bound->listeners = calloc(count, sizeof(*bound->listeners));
	if (!bound->listeners)
		return -ENOMEM;
	if (wished)
		range.first = range.last = get_port(bind);
	for (uint32_t p = range.first; p <= range.last && rc == -EADDRINUSE; p++)
		rc = bound_port_listen_at(bound, at, count, (uint16_t)p);
	for (int tries = 0; !range.first && rc == -EADDRINUSE && tries < 16;
	     tries++) /* free at one address, taken at another */
		rc = bound_port_listen_at(bound, at, count, 0);
	if (rc == -EADDRINUSE && !wished)
		no_port_free(range);
	return rc;
}

/* ---- life ------------------------------------------------------------------------------------ */

/* A crowded one: it is in hd_names.roomy, then. */
static bool has_room(const struct hd_bound_port *bound)
{
	return bound->given < bound->crowded || bound->idle_count;
}

static void bound_port_free(struct hd_bound_port *bound)
{
	if (bound->gone)
		bound->gone(bound);
	unlisten(bound);
	LIST_REMOVE(bound, entry);
	if (has_room(bound))
		LIST_REMOVE(bound, room);
	free(bound->listeners);
	free(bound->slots);
	free(bound->idle);
	free(bound);
}

static int bound_port_open(struct hd_node *node, const struct sockaddr *bind, struct hd_bound_port **out)
{
	struct hd_bound_port *bound = calloc(1, sizeof(*bound));
	int rc;

	if (!bound)
		return -ENOMEM;
	bound->node = node;
	place_wanted(bind, &bound->bind);
	bound->at_addr = bound->bind.ss_family != AF_UNSPEC;
	LIST_INSERT_HEAD(&hd_names(node)->bound_ports, bound, entry);
	rc = listen_somewhere(bound, bind);
	if (rc) {
		bound_port_free(bound);
		return rc;
	}
	bound->name = bound->at_addr ? bound->listeners[0].addr : hd_names(node)->addrs[0];
	hd_addr_set_port(&bound->name, bound->port);
	*out = bound;
	return 0;
}

static void complain(struct hd_node *node, int rc)
{
	if (rc == -EMFILE)
		HD_LOG_EVERY_MS(
			1000, HD_LOG_ERROR,
			"no descriptors left to listen with: %d endpoints listen, and the limit is %llu open files of the process "
			"(RLIMIT_NOFILE): raise it with `ulimit -n`",
			hd_names(node)->listening, (unsigned long long)hd_files_max());
}

/* ---- bound ports that many share ------------------------------------------------------------- */

struct hd_rest {
	struct hd_bound_port *bound_port;
	uint16_t slot;
};

static void idle_add(struct hd_bound_port *bound, uint16_t slot)
{
	if (!has_room(bound))
		LIST_INSERT_HEAD(&hd_names(bound->node)->roomy, bound, room);
	bound->idle[bound->idle_count++] = slot;
}

/* The slot that has rested longest may be given out again. False: none rests. */
static bool rest_over(struct hd_node *node)
{
	struct hd_rest *r;
	struct hd_bound_port *bound;

	if (!hd_names(node)->rest_count)
		return false;
	r = &hd_names(node)->rests[(hd_names(node)->rest_next - hd_names(node)->rest_count--) % RESTS];
	bound = r->bound_port;
	bound->resting--;
	if (!bound->users && !bound->resting) {
		bound_port_free(bound);
		return true;
	}
	idle_add(bound, r->slot);
	return true;
}

/* Where there is no memory for that it may be given out at once. */
static void rest_begin(struct hd_bound_port *bound, uint16_t slot)
{
	struct hd_node *node = bound->node;

	if (!hd_names(node)->rests)
		hd_names(node)->rests = malloc(RESTS * sizeof(*hd_names(node)->rests));
	if (!hd_names(node)->rests) {
		idle_add(bound, slot);
		return;
	}
	bound->resting++; /* which keeps it */
	if (hd_names(node)->rest_count == RESTS)
		rest_over(node);
	hd_names(node)->rests[hd_names(node)->rest_next++ % RESTS] = (struct hd_rest){ bound, slot };
	hd_names(node)->rest_count++;
}

static struct hd_bound_port *roomy_find(struct hd_node *node, const struct sockaddr_storage *at,
					uint32_t slots)
{
	struct hd_bound_port *p;

	LIST_FOREACH(p, &hd_names(node)->roomy, room)
		if (p->crowded == slots && !memcmp(&p->bind, at, sizeof(*at)))
			return p;
	return NULL;
}

static int crowd_open(struct hd_node *node, const struct sockaddr *bind, uint32_t slots,
		      struct hd_bound_port **out)
{
	int rc = bound_port_open(node, bind, out);

	if (rc)
		return rc;
	(*out)->idle = malloc(slots * sizeof(*(*out)->idle));
	if (!(*out)->idle) {
		bound_port_free(*out);
		return -ENOMEM;
	}
	(*out)->crowded = slots;
	LIST_INSERT_HEAD(&hd_names(node)->roomy, *out, room);
	return 0;
}

/*
 * The bound port that endpoints share which are to listen where `bind` says; made when there is no
 * slot that nobody has had, or that has rested. slots: how many it gives. What cannot be made is
 * found among those that rest still.
 */
static int crowd_find(struct hd_node *node, const struct sockaddr *bind, uint32_t slots,
		      struct hd_bound_port **out)
{
	struct sockaddr_storage at;
	int rc;

	place_wanted(bind, &at);
	*out = roomy_find(node, &at, slots);
	if (*out)
		return 0;
	rc = crowd_open(node, bind, slots, out);
	if (!rc)
		return 0;
	while (rest_over(node)) {
		*out = roomy_find(node, &at, slots);
		if (*out)
			return 0;
	}
	*out = NULL;
	return rc;
}

/* A slot but 0. */
static int crowd_join(struct hd_bound_port *bound, struct hd_ep *ep)
{
	bool is_new = bound->given < bound->crowded;
	uint32_t slot = is_new ? bound->given + 1 : bound->idle[bound->idle_count - 1];
	int rc = hd_bound_join(bound, slot, ep);

	if (rc)
		return rc;
	if (is_new)
		bound->given++;
	else
		bound->idle_count--;
	if (!has_room(bound))
		LIST_REMOVE(bound, room);
	return 0;
}

/* ---- finding one ----------------------------------------------------------------------------- */

int hd_bound_find(struct hd_ep *ep, const struct sockaddr *bind)
{
	bool numbered = ep->policy & HD_EP_NUMBERED;
	bool fixed = !numbered && ((bind && get_port(bind)) || ep->policy & HD_EP_OWN_PORT);
	struct hd_node *node = ep->node;
	struct hd_bound_port *bound = NULL;
	int rc = -EMFILE;

	if (fixed || (!numbered && (uint64_t)hd_names(node)->listening < hd_files_max() / 4))
		rc = bound_port_open(node, bind, &bound);
	if (rc == -EMFILE && !fixed) {
		rc = crowd_find(node, bind, numbered ? NUMBERED_MAX : SLOT_MAX, &bound);
		if (!rc)
			rc = crowd_join(bound, ep);
	} else if (!rc) {
		rc = hd_bound_join(bound, 0, ep);
	}
	if (rc && bound && !bound->users && !bound->resting)
		bound_port_free(bound);
	else if (bound)
		hd_bound_port_check(bound);
	complain(node, rc);
	return rc;
}

int hd_bound_hold(struct hd_node *node, const struct sockaddr *bind, struct hd_bound_port **out)
{
	int rc;

	hd_assert_locked(node);
	if (hd_core(node)->gate.dead)
		return -ENOTRECOVERABLE;
	rc = bound_port_open(node, bind, out);
	complain(node, rc);
	if (!rc)
		(*out)->users++;
	return rc;
}

void hd_bound_drop(struct hd_bound_port *held)
{
	hd_assert_locked(held->node);
	if (!--held->users)
		bound_port_free(held);
}

/* ---- slots ----------------------------------------------------------------------------------- */

static int slots_grow(struct hd_bound_port *bound, uint32_t slot)
{
	uint32_t n = bound->slot_count ? bound->slot_count : 1;
	struct hd_ep **more;

	if (slot < bound->slot_count)
		return 0;
	while (n <= slot)
		n *= 2;
	more = realloc(bound->slots, n * sizeof(*more));
	if (!more)
		return -ENOMEM;
	memset(more + bound->slot_count, 0, (n - bound->slot_count) * sizeof(*more));
	bound->slots = more;
	bound->slot_count = n;
	return 0;
}

int hd_bound_join(struct hd_bound_port *bound, uint32_t slot, struct hd_ep *ep)
{
	if (slot > SLOT_MAX)
		return -ERANGE;
	if (hd_bound_ep(bound, slot))
		return -EADDRINUSE;
	if (slots_grow(bound, slot) < 0)
		return -ENOMEM;
	bound->slots[slot] = ep;
	bound->users++;
	ep->bound_port = bound;
	ep->slot = (uint16_t)slot;
	return 0;
}

void hd_bound_share(struct hd_ep *ep, const struct hd_ep *with)
{
	ep->bound_port = with->bound_port;
	ep->slot = with->slot;
	if (ep->bound_port) /* else it has no name either */
		ep->bound_port->users++;
}

void hd_bound_leave(struct hd_ep *ep)
{
	struct hd_bound_port *bound = ep->bound_port;
	bool is_owner;

	if (!bound)
		return;
	ep->bound_port = NULL;
	is_owner = bound->slots[ep->slot] == ep;
	if (is_owner)
		bound->slots[ep->slot] = NULL;
	bound->users--;
	if (is_owner && bound->crowded && ep->slot)
		rest_begin(bound, ep->slot);
	else if (!bound->users && !bound->resting)
		bound_port_free(bound);
}

void hd_bound_ports_close(struct hd_node *node)
{
	struct hd_bound_port *bound;

	while ((bound = LIST_FIRST(&hd_names(node)->bound_ports)))
		bound_port_free(bound);
	free(hd_names(node)->rests);
	hd_names(node)->rests = NULL;
	hd_names(node)->rest_count = 0;
}

struct hd_ep *hd_bound_ep(const struct hd_bound_port *bound, uint32_t slot)
{
	return slot < bound->slot_count ? bound->slots[slot] : NULL;
}

int hd_bound_name(const struct hd_bound_port *bound, uint32_t slot, int family, struct sockaddr_storage *out)
{
	const struct hd_node *node = bound->node;
	bool found = family == AF_UNSPEC || bound->name.ss_family == family;

	*out = bound->name;
	for (int i = 0; i < hd_names(node)->addr_count && !bound->at_addr && !found; i++) {
		found = hd_names(node)->addrs[i].ss_family == family;
		*out = hd_names(node)->addrs[i];
		hd_addr_set_port(out, bound->port);
	}
	hd_name_set_slot((struct sockaddr *)out, slot);
	return found ? 0 : -EAFNOSUPPORT;
}

bool hd_bound_is_named(const struct hd_bound_port *bound, uint32_t slot, const struct sockaddr *name)
{
	struct hd_name_key key, at;

	if (!hd_addr_key(name, &key) || key.port != (bound->port | slot << 16))
		return false;
	for (int i = 0; i < bound->listener_count; i++) {
		const struct sockaddr *addr = (const struct sockaddr *)&bound->listeners[i].addr;

		if (hd_sockaddr_is_any(addr) ? hd_addr_is_local(bound->node, &key)
					     : hd_addr_key(addr, &at) && at.scope == key.scope &&
						       !memcmp(at.addr, key.addr, sizeof(at.addr)))
			return true;
	}
	return false;
}
