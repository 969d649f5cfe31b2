/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * A node that talks to itself. A link is both ends at once: what is sent on it waits in private
 * memory and is delivered on it in poll, never from inside send.
 */
#include "transport/loop/loop.h"

#include "base/copy.h"
#include "base/iov.h"
#include "base/proc.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define QUEUE_MAX 1024	     /* packets that wait */
#define BYTES_MAX (4u << 20) /* their payload */
#define SEND_MAX (128u << 10)
#define EAGER_MAX (16u << 10)
#define PORTION 32 /* packets, or offers, of one poll */

struct packet {
	STAILQ_ENTRY(packet) entry;
	struct hd_pkt pkt;
	size_t len;
	unsigned char payload[];
};

struct loop_link {
	struct hd_link link;
	STAILQ_HEAD(, packet) queue;
	TAILQ_HEAD(, hd_get) gets;
	unsigned count;
	uint32_t sent; /* packets that have ever been put into the queue */
	size_t bytes;
	uint32_t granted;
	bool polled; /* counted in hd_port_active */
	LIST_ENTRY(loop_link) entry;
};

struct loop_port {
	struct hd_port port;
	LIST_HEAD(, loop_link) links;
};

static struct loop_link *of(struct hd_link *link)
{
	return (struct loop_link *)link;
}

static void rouse(struct loop_link *l)
{
	if (l->polled)
		return;
	l->polled = true;
	hd_port_active(l->link.port, true);
	hd_node_stir(l->link.node);
}

/* ---- sending --------------------------------------------------------------------------------- */

static int loop_sendv(struct hd_link *link, const struct hd_pkt *pkt, const struct iovec *iov, int count,
		      size_t len)
{
	struct loop_link *l = of(link);
	struct packet *p;

	if (link->down)
		return -ENOTCONN;
	if (l->count == QUEUE_MAX || (l->bytes && l->bytes + len > BYTES_MAX))
		return -EAGAIN;
	p = malloc(sizeof(*p) + len);
	if (!p)
		return -EAGAIN;
	p->pkt = *pkt;
	p->len = len;
	if (hd_iov_drain(iov, count, p->payload, len)) {
		free(p);
		return -EFAULT;
	}
	STAILQ_INSERT_TAIL(&l->queue, p, entry);
	l->count++;
	l->sent++;
	l->bytes += len;
	rouse(l);
	return 0;
}

static int loop_send(struct hd_link *link, const struct hd_pkt *pkt, const void *buf, size_t len)
{
	struct iovec iov = { (void *)buf, len };

	return loop_sendv(link, pkt, &iov, 1, len);
}

static int loop_put(struct hd_link *link, const struct hd_pkt *pkt, const struct iovec *iov, int count,
		    size_t len, struct hd_put *put)
{
	int rc = loop_sendv(link, pkt, iov, count, len);

	return rc < 0 ? rc : 1;
}

static int loop_unput(struct hd_link *link, struct hd_put *put)
{
	return 0; /* a put is copied at once */
}

static void loop_grant(struct hd_link *link, uint32_t limit)
{
	of(link)->granted = limit;
	hd_node_stir(link->node); /* the other end that may have waited for it is ourselves */
}

static uint32_t loop_granted(struct hd_link *link)
{
	return of(link)->granted;
}

/* ---- copies within the program's memory, which may be gone (base/guard.h) -------------------- */

/* As memmove(3), since the program may name the same bytes on both sides: 0 or -EFAULT. */
static int loop_move(char *to, const char *from, size_t n)
{
	char between[4096];
	bool backwards = (uintptr_t)to > (uintptr_t)from;

	if ((backwards ? (uintptr_t)to - (uintptr_t)from : (uintptr_t)from - (uintptr_t)to) >= n)
		return hd_copy(to, from, n);
	for (size_t left = n, part; left; left -= part) {
		size_t at;

		part = left < sizeof(between) ? left : sizeof(between);
		at = backwards ? left - part : n - left;
		if (hd_copy(between, from + at, part) || hd_copy(to + at, between, part))
			return -EFAULT;
	}
	return 0;
}

/* ---- fetching: one after the other ----------------------------------------------------------- */

/*
 * The offer is the address of the struct hd_offer: it comes back from ourselves,
 * and lives until unoffer.
 */
static size_t loop_offer(struct hd_link *link, struct hd_offer *o, void *blob)
{
	memcpy(blob, &o, sizeof(o));
	return sizeof(o);
}

static void loop_unoffer(struct hd_link *link, struct hd_offer *o)
{
	struct hd_get *p;

	TAILQ_FOREACH(p, &of(link)->gets, entry)
		if (p->priv[0] == (uint64_t)(uintptr_t)o)
			p->priv[0] = 0; /* fetched from no more */
}

static int loop_get(struct hd_link *link, struct hd_get *get)
{
	struct hd_offer *o;

	if (get->offer_len != sizeof(o))
		return -EPROTO;
	memcpy(&o, get->offer, sizeof(o));
	get->priv[0] = (uint64_t)(uintptr_t)o;
	TAILQ_INSERT_TAIL(&of(link)->gets, get, entry);
	rouse(of(link));
	return 0;
}

static int loop_unget(struct hd_link *link, struct hd_get *get, bool wait)
{
	TAILQ_REMOVE(&of(link)->gets, get, entry);
	return 0;
}

static int loop_holder(struct hd_link *link, struct hd_holder *out)
{
	*out = (struct hd_holder){ .pid = getpid() };
	return 0;
}

static int loop_copy(const struct hd_get *get, const struct hd_offer *o)
{
	size_t left = get->len, in_at = 0, out_at = 0;
	int in = 0, out = 0;

	while (left && in < o->count && out < get->count) {
		size_t n = left;

		if (n > o->iov[in].iov_len - in_at)
			n = o->iov[in].iov_len - in_at;
		if (n > get->iov[out].iov_len - out_at)
			n = get->iov[out].iov_len - out_at;
		if (n && loop_move((char *)get->iov[out].iov_base + out_at,
				   (const char *)o->iov[in].iov_base + in_at, n))
			return -EFAULT; /* frames tell whose it is */
		in_at += n;
		out_at += n;
		left -= n;
		if (in_at == o->iov[in].iov_len) {
			in++;
			in_at = 0;
		}
		if (out_at == get->iov[out].iov_len) {
			out++;
			out_at = 0;
		}
	}
	return 0;
}

static int gets_run(struct loop_link *l)
{
	struct hd_get *p;
	int n = 0;

	while (n < PORTION && (p = TAILQ_FIRST(&l->gets))) {
		struct hd_offer *o = (struct hd_offer *)(uintptr_t)p->priv[0];

		TAILQ_REMOVE(&l->gets, p, entry);
		p->done(p, o ? loop_copy(p, o) : -ECANCELED);
		n++;
	}
	return n;
}

/* ---- reaching our own regions ---------------------------------------------------------------- */

/* Between our segments, from byte `at` on, and n bytes at `far`. 0 or -EFAULT. */
static int loop_direct_part(const struct hd_direct *r, uint64_t at, uint64_t n)
{
	char *far = (char *)(uintptr_t)r->far + at;

	for (const struct iovec *v = r->near; n; v++) {
		uint64_t part;
		char *near;

		if (at >= v->iov_len) {
			at -= v->iov_len;
			continue;
		}
		part = v->iov_len - at < n ? v->iov_len - at : n;
		near = (char *)v->iov_base + at;
		if (loop_move(r->out ? far : near, r->out ? near : far, part))
			return -EFAULT;
		far += part;
		n -= part;
		at = 0;
	}
	return 0;
}

/* Whose memory is not there? What is only read can be read once more. */
static int64_t loop_blame(const struct hd_direct *r)
{
	if (!r->out)
		return hd_guard_readable((const void *)(uintptr_t)r->far, r->len) ? -EFAULT : -EREMOTEIO;
	for (int i = 0; i < r->count; i++)
		if (!hd_guard_readable(r->near[i].iov_base, r->near[i].iov_len))
			return -EFAULT;
	return -EREMOTEIO;
}

static int64_t loop_direct(struct hd_link *link, const struct hd_direct *r)
{
	uint64_t tail = r->out && r->last && r->len > 8 ? 8 : 0;

	if (link->down)
		return -ENOTCONN;
	if (!hd_direct_stands(link->page,
			      r)) /* for good: whoever closes a region has the lock that we have */
		return -ESTALE;
	if (loop_direct_part(r, 0, r->len - tail))
		return loop_blame(r);
	atomic_thread_fence(memory_order_release);
	return loop_direct_part(r, r->len - tail, tail) ? loop_blame(r) : (int64_t)r->len;
}

static int loop_fence(struct hd_link *link, uint32_t *token)
{
	*token = of(link)->sent;
	return 0;
}

static bool loop_passed(struct hd_link *link, uint32_t token)
{
	return (int32_t)(of(link)->sent - (uint32_t)of(link)->count - token) >= 0;
}

static bool loop_polls(struct hd_link *link)
{
	return false; /* we do, but a copy is done at once */
}

/* ---- receiving ------------------------------------------------------------------------------- */

static int loop_link_poll(struct loop_link *l)
{
	struct packet *p;
	int n = 0;

	while (n < PORTION && !l->link.down && (p = STAILQ_FIRST(&l->queue))) {
		STAILQ_REMOVE_HEAD(&l->queue, entry);
		l->count--;
		l->bytes -= p->len;
		hd_deliver(&l->link, &p->pkt, p->payload, p->len);
		free(p);
		n++;
	}
	n += l->link.down ? 0 : gets_run(l);
	if (l->link.down || (STAILQ_EMPTY(&l->queue) && TAILQ_EMPTY(&l->gets))) {
		l->polled = false;
		hd_port_active(l->link.port, false);
	}
	return n;
}

static int loop_poll(struct hd_port *port)
{
	struct loop_link *l;
	int n = 0;

	LIST_FOREACH(l, &((struct loop_port *)port)->links, entry)
		if (l->polled)
			n += loop_link_poll(l);
	return n;
}

/* ---- life ------------------------------------------------------------------------------------ */

static void loop_close_link(struct hd_link *link)
{
	struct loop_link *l = of(link);
	struct packet *p;

	if (l->polled)
		hd_port_active(link->port, false);
	while ((p = STAILQ_FIRST(&l->queue))) {
		STAILQ_REMOVE_HEAD(&l->queue, entry);
		free(p);
	}
	LIST_REMOVE(l, entry);
	free(l);
}

static const struct hd_link_ops loop_link_ops = {
	.send = loop_send,
	.sendv = loop_sendv,
	.put = loop_put,
	.unput = loop_unput,
	.grant = loop_grant,
	.granted = loop_granted,
	.offer = loop_offer,
	.unoffer = loop_unoffer,
	.get = loop_get,
	.unget = loop_unget,
	.holder = loop_holder,
	.direct = loop_direct,
	.fence = loop_fence,
	.passed = loop_passed,
	.polls = loop_polls,
	.close = loop_close_link,
};

static int loop_connect(struct hd_port *port, const void *where, size_t len, const struct hd_node_id *whose,
			struct hd_link **out)
{
	struct loop_link *l = calloc(1, sizeof(*l));

	if (!l)
		return -ENOMEM;
	STAILQ_INIT(&l->queue);
	TAILQ_INIT(&l->gets);
	hd_link_init(&l->link, port, &loop_link_ops);
	l->link.send_max = SEND_MAX;
	l->link.eager_max = EAGER_MAX;
	l->link.is_local = true;
	l->link.page = hd_node_page(port->node);
	LIST_INSERT_HEAD(&((struct loop_port *)port)->links, l, entry);
	*out = &l->link;
	hd_link_up(&l->link);
	return 0;
}

static int loop_open(struct hd_node *node, struct hd_port **out)
{
	struct loop_port *p = calloc(1, sizeof(*p));

	if (!p)
		return -ENOMEM;
	LIST_INIT(&p->links);
	p->port.node = node;
	p->port.transport = &hd_loop_transport;
	*out = &p->port;
	return 0;
}

static void loop_close(struct hd_port *port)
{
	free(port);
}

static int loop_arm(struct hd_port *port)
{
	return port->active > 0; /* something waits for the next turn */
}

static void loop_disarm(struct hd_port *port)
{
}

static size_t loop_advertise(struct hd_port *port, void *advert, size_t room)
{
	return 0; /* nobody else can join */
}

static int loop_listen(struct hd_port *port, struct hd_listener *l)
{
	return -EOPNOTSUPP;
}

static void loop_unlisten(struct hd_port *port, struct hd_listener *l)
{
}

const struct hd_transport hd_loop_transport = {
	.name = "loop",
	.number = HD_TNUM_LOOP,
	.open = loop_open,
	.close = loop_close,
	.poll = loop_poll,
	.arm = loop_arm,
	.disarm = loop_disarm,
	.listen = loop_listen,
	.unlisten = loop_unlisten,
	.advertise = loop_advertise,
	.connect = loop_connect,
};
