/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Last words. A node that sends and closes at once must not lose what it sent, among it the answers
 * to requests that have been carried out. While the other end keeps talking, the kernel throws away
 * what it has not delivered when the socket is closed: it sends a reset for what has not been read,
 * and for what comes in afterwards. So a socket with something left to deliver stays open, and what
 * comes in is read and forgotten, until all is delivered, nobody listens any more, or a second has
 * passed. So it is with a process that ends while its node is open, as far as there is something
 * that the other end has not got.
 */
#include "base/clock.h"
#include "transport/tcp/tcp.h"

#include <errno.h>
#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define DRAIN_STEP (1u << 20)
#define DRAIN_MAX 16	 /* steps */
#define PART_MS 1000	 /* how long the other end may take to make room */
#define PART_LOOK_US 500 /* between two looks at the sockets */

/*
 * Puts that were not written belong to the engine again, so neither they nor what comes behind them
 * can be sent. But those that it has taken back are copies of our own.
 */
static void drop_puts(struct hd_tcp_tx *tx)
{
	unsigned i = tx->put_sent;
	size_t at;

	while (i != tx->put_next && !tx->put[i % HD_TCP_PUTS].put)
		i++;
	if (i == tx->put_next)
		return;
	at = (size_t)(tx->put[i % HD_TCP_PUTS].at - tx->base);
	/*
	 * when its header is out already, the other end sees a broken frame:
	 * there is nothing else to say
	 */
	tx->tail = at > tx->head + HD_TCP_HEAD ? at - HD_TCP_HEAD : tx->head;
	tx->put_next = i;
}

/* Read what has come. false: nothing comes any more, and nobody hears us. */
static bool part_drain(struct hd_tcp_link *l)
{
	ssize_t r = DRAIN_STEP;

	for (int i = 0; i < DRAIN_MAX && r == DRAIN_STEP; i++) {
		r = recv(l->watch.fd, NULL, DRAIN_STEP, MSG_TRUNC | MSG_DONTWAIT);
		l->spoken_to |= r > 0;
	}
	return r > 0 || (r < 0 && (errno == EAGAIN || errno == EINTR));
}

/*
 * Is something on its way that a reset would throw away? What has left once arrives, unless the
 * other end was short of memory.
 */
static bool undelivered(const struct hd_tcp_link *l)
{
	int n = 0;

	return ioctl(l->watch.fd, l->spoken_to ? SIOCOUTQ : SIOCOUTQNSD, &n) == 0 && n > 0;
}

/* Is there more to be done? */
static bool part_step(struct hd_tcp_link *l)
{
	l->tx.full = false;
	hd_tcp_tx_flush(l);
	if (l->tx.err)
		return false;
	if (!hd_tcp_tx_pending(&l->tx))
		shutdown(l->watch.fd, SHUT_WR);
	return part_drain(l) && (hd_tcp_tx_pending(&l->tx) || undelivered(l));
}

bool hd_tcp_part(struct hd_tcp_link *l)
{
	if ((l->state != HD_TCP_UP && l->state != HD_TCP_LAST) || l->tx.err)
		return false;
	drop_puts(&l->tx);
	l->spoken_to = l->rx.in_payload;
	return part_step(l) && l->link.down_err == -ESHUTDOWN;
}

static void round_of(struct hd_tcp_port *p, bool last)
{
	struct hd_tcp_link *l, *next;

	for (l = TAILQ_FIRST(&p->parting); l; l = next) {
		next = TAILQ_NEXT(l, entry);
		if (part_step(l) && !last)
			continue;
		TAILQ_REMOVE(&p->parting, l, entry);
		hd_tcp_link_free(l);
	}
}

/* Something waits here, or in the socket for the other end to make room. */
static bool has_more(const struct hd_tcp_link *l)
{
	int n = 0;

	return hd_tcp_tx_pending(&l->tx) || (ioctl(l->watch.fd, SIOCOUTQNSD, &n) == 0 && n > 0);
}

/*
 * Once something has been forgotten, other threads that still use the node shall not take what
 * comes behind it for the next frame.
 */
static bool last_step(struct hd_tcp_link *l)
{
	bool heard;

	l->tx.full = false;
	hd_tcp_tx_flush(l);
	if (l->tx.err || !has_more(l))
		return false;
	heard = part_drain(l);
	if (l->spoken_to) {
		l->state = HD_TCP_LAST;
		hd_tcp_link_quiet(l);
	}
	return heard;
}

bool hd_tcp_last(struct hd_port *port, bool only_look)
{
	struct hd_tcp_link *l;
	bool more = false;

	TAILQ_FOREACH(l, &tcp_port(port)->links, entry) {
		if ((l->state != HD_TCP_UP && l->state != HD_TCP_LAST) || l->link.down || l->tx.err ||
		    !has_more(l))
			continue;
		more |= only_look || last_step(l);
	}
	return more;
}

void hd_tcp_part_all(struct hd_tcp_port *p)
{
	const uint64_t due = hd_deadline_ns(PART_MS);

	while (!TAILQ_EMPTY(&p->parting)) {
		hd_pause_us(PART_LOOK_US);
		round_of(p, hd_now_ns() >= due);
	}
}
