/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * What a HELLO says of other ways to its node: adverts, {transport's number, length, bytes}
 * repeated. Where one can be followed on this host the kernel also tells which process has written
 * it, and that process is watched: its sockets do not tell of its death while somebody else has
 * them open, such as a child that was made without the handlers of fork.
 */
#include "base/clock.h"
#include "base/config.h"
#include "engine/link/link.h"

#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

/* What the process wrote last may still be between its socket and ours when it is dead. */
#define LAST_WORDS_NS (50 * HD_NS_PER_MS)

/* ---- adverts --------------------------------------------------------------------------------- */

static bool may_carry(const struct hd_node *node, const struct hd_port *port)
{
	return hd_links(node)->transport_choice != HD_USE_TCP || port->transport->addressed;
}

/* hd_adverts_write: what our own HELLO says; returns its length. */
uint16_t hd_adverts_write(struct hd_node *node, uint8_t *out)
{
	size_t at = 0;

	for (int i = 0; i < hd_core(node)->port_count; i++) {
		struct hd_port *port = hd_core(node)->ports[i];
		size_t n;

		if (port->transport->addressed || !may_carry(node, port) || at + 2 >= HD_HELLO_ADVERT)
			continue;
		n = port->transport->advertise(
			port, out + at + 2, HD_HELLO_ADVERT - at - 2 < 255 ? HD_HELLO_ADVERT - at - 2 : 255);
		if (!n)
			continue;
		out[at] = port->transport->number;
		out[at + 1] = (uint8_t)n;
		at += 2 + n;
	}
	return (uint16_t)at;
}

/*
 * The first of our transports that the other end advertises, with its advert; of those that
 * may carry data, or of all.
 */
static struct hd_port *advert_find(struct hd_node *node, const struct hd_hello *h, bool all,
				   struct hd_advert *out)
{
	size_t at = 0;

	while (at + 2 <= h->advert_len && at + 2 + h->advert[at + 1] <= h->advert_len) {
		for (int i = 0; i < hd_core(node)->port_count; i++) {
			struct hd_port *port = hd_core(node)->ports[i];

			if (port->transport->addressed || port->transport->number != h->advert[at] ||
			    !(all || may_carry(node, port)))
				continue;
			*out = (struct hd_advert){ h->advert + at + 2, h->advert[at + 1] };
			return port;
		}
		at += 2u + h->advert[at + 1];
	}
	return NULL;
}

struct hd_port *hd_advert_find(struct hd_node *node, const struct hd_hello *h, struct hd_advert *out)
{
	return advert_find(node, h, false, out);
}

/* ---- the process behind a peer --------------------------------------------------------------- */

struct hd_process {
	struct hd_peer *peer;
	struct hd_watch watch; /* of a pidfd; -1: it is known to be dead */
	struct hd_timer timer;
};

static void unwatch(struct hd_process *p)
{
	if (p->watch.fd < 0)
		return;
	hd_watch_remove(p->peer->node, &p->watch);
	close(p->watch.fd);
	p->watch.fd = -1;
}

static void advert_link_orphan(struct hd_link *link)
{
	if (link && !link->down && link->ops->orphan)
		link->ops->orphan(link);
}

/* Its last words have arrived: what is in our sockets is all that will ever be. */
static void has_ended(struct hd_timer *timer)
{
	struct hd_peer *peer = hd_container(timer, struct hd_process, timer)->peer;

	hd_process_forget(peer);
	peer->ended = true;
	advert_link_orphan(peer->shaking);
	advert_link_orphan(peer->link);
}

static void dies(struct hd_process *p)
{
	unwatch(p);
	p->timer.fn = has_ended;
	hd_timer_set(p->peer->node, &p->timer, LAST_WORDS_NS);
}

static void pidfd_tells(struct hd_watch *watch, uint32_t events)
{
	dies(hd_container(watch, struct hd_process, watch));
}

void hd_process_watch(struct hd_peer *peer, const struct hd_hello *h)
{
	struct hd_advert advert;
	struct hd_port *port = advert_find(peer->node, h, true, &advert);
	struct hd_process *p;
	int fd;

	if (!peer->is_local || peer->process || !port || !port->transport->process)
		return;
	fd = port->transport->process(port, advert.at, advert.len);
	if (fd < 0 && fd != -ESRCH)
		return;
	p = calloc(1, sizeof(*p));
	if (!p) {
		if (fd >= 0)
			close(fd);
		return;
	}
	p->peer = peer;
	p->watch = (struct hd_watch){ .fd = fd < 0 ? -1 : fd, .events = EPOLLIN, .fn = pidfd_tells };
	peer->process = p;
	if (fd < 0)
		dies(p);
	else if (hd_watch_add(peer->node, &p->watch) < 0)
		hd_process_forget(peer);
}

void hd_process_forget(struct hd_peer *peer)
{
	struct hd_process *p = peer->process;

	if (!p)
		return;
	peer->process = NULL;
	unwatch(p);
	hd_timer_stop(peer->node, &p->timer);
	free(p);
}
