/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * The wrapper puts a table of its own before each link's: the table lies in the record that the
 * wrapper keeps about the link, so that the one leads to the other. Ports stay the inner
 * transport's; a list tells which of them are ours.
 */
#include "transport/fault/fault.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define HELD_PACKETS 256
#define HELD_BYTES (1u << 20)

struct wrapped {
	struct hd_transport table; /* first */
	const struct hd_transport *inner;
	struct hd_fault_plan plan;
	uint64_t ports; /* opened so far: each draws its own luck */
};

struct fault_port {
	struct hd_port *port;
	struct wrapped *of;
	uint64_t random;
	LIST_HEAD(, fault_link) links;
	LIST_ENTRY(fault_port) entry;
};

struct held {
	STAILQ_ENTRY(held) entry;
	struct hd_pkt pkt;
	unsigned turns;
	size_t len;
	unsigned char payload[];
};

struct fault_link {
	struct hd_link_ops ops; /* first: what link->ops points to */
	const struct hd_link_ops *inner;
	struct hd_link *link;
	struct fault_port *fp;
	uint64_t sent;
	bool refused; /* the last call was, although there was room */
	unsigned held;
	size_t held_bytes;
	STAILQ_HEAD(, held) queue;
	LIST_ENTRY(fault_link) entry;
};

static struct {
	pthread_mutex_t lock;
	LIST_HEAD(, fault_port) ports; /* lock */
} all = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* The linker's names for the engine's function, and for what is called in its place. */
void __real_hd_link_init(struct hd_link *link, struct hd_port *port, const struct hd_link_ops *ops);
void __wrap_hd_link_init(struct hd_link *link, struct hd_port *port, const struct hd_link_ops *ops);

static struct fault_port *fault_port_of(const struct hd_port *port)
{
	struct fault_port *fp;

	pthread_mutex_lock(&all.lock);
	LIST_FOREACH(fp, &all.ports, entry)
		if (fp->port == port)
			break;
	pthread_mutex_unlock(&all.lock);
	return fp;
}

static struct fault_link *link_of(const struct hd_link *link)
{
	return (struct fault_link *)link->ops;
}

/* splitmix64, as everywhere in the tests. */
static uint64_t fault_draw(struct fault_port *fp)
{
	uint64_t x = fp->random += UINT64_C(0x9e3779b97f4a7c15);

	x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
	return x ^ (x >> 31);
}

static bool bad_luck(struct fault_port *fp, unsigned percent)
{
	return percent && fault_draw(fp) % 100 < percent;
}

/* ---- sending ---- */

/* What is wrong with this call: 0, -EAGAIN or -ENOTCONN. */
static int trouble(struct fault_link *fl)
{
	const struct hd_fault_plan *plan = &fl->fp->of->plan;

	if (fl->link->down)
		return -ENOTCONN;
	fl->refused = fl->sent >= plan->spare && bad_luck(fl->fp, plan->again_percent);
	if (fl->refused)
		return -EAGAIN;
	if (!plan->break_after || fl->sent < plan->break_after)
		return 0;
	hd_link_down(fl->link, -ECONNRESET, "this link was made to break");
	return -ENOTCONN;
}

static unsigned turns_to_wait(struct fault_link *fl)
{
	unsigned most = fl->fp->of->plan.hold_most;

	return most ? (unsigned)(fault_draw(fl->fp) % (most + 1)) : 0;
}

static int fault_hold(struct fault_link *fl, const struct hd_pkt *pkt, const struct iovec *iov, int count,
		      size_t len, unsigned turns)
{
	struct held *h;

	if (fl->held == HELD_PACKETS || (fl->held && fl->held_bytes + len > HELD_BYTES))
		return -EAGAIN;
	h = malloc(sizeof(*h) + len);
	if (!h)
		return -EAGAIN;
	h->pkt = *pkt;
	h->turns = turns;
	h->len = len;
	if (hd_iov_drain(iov, count, h->payload, len)) {
		free(h);
		return -EFAULT; /* as the transport would say; nothing has been held */
	}
	if (!fl->held++) {
		hd_port_active(fl->fp->port, true);
		/* whoever sleeps there has a packet to send from now on */
		hd_node_stir(fl->link->node);
	}
	fl->held_bytes += len;
	STAILQ_INSERT_TAIL(&fl->queue, h, entry);
	return 0;
}

static void held_drop_first(struct fault_link *fl)
{
	struct held *h = STAILQ_FIRST(&fl->queue);

	STAILQ_REMOVE_HEAD(&fl->queue, entry);
	fl->held_bytes -= h->len;
	if (!--fl->held)
		hd_port_active(fl->fp->port, false);
	free(h);
}

static int count_sent(struct fault_link *fl, int rc)
{
	fl->sent += rc >= 0;
	return rc;
}

static int fault_sendv(struct hd_link *link, const struct hd_pkt *pkt, const struct iovec *iov, int count,
		       size_t len)
{
	struct fault_link *fl = link_of(link);
	int rc = trouble(fl);
	unsigned turns;

	if (rc)
		return rc;
	turns = turns_to_wait(fl);
	if (fl->held || turns)
		return count_sent(fl, fault_hold(fl, pkt, iov, count, len, turns));
	return count_sent(fl, fl->inner->sendv(link, pkt, iov, count, len));
}

static int fault_send(struct hd_link *link, const struct hd_pkt *pkt, const void *buf, size_t len)
{
	struct iovec iov = { (void *)buf, len };
	struct fault_link *fl = link_of(link);
	int rc = trouble(fl);
	unsigned turns;

	if (rc)
		return rc;
	turns = turns_to_wait(fl);
	if (fl->held || turns)
		return count_sent(fl, fault_hold(fl, pkt, &iov, 1, len, turns));
	return count_sent(fl, fl->inner->send(link, pkt, buf, len));
}

/* May be longer than what send takes later, so it is not held; it waits until nothing else is. */
static int fault_put(struct hd_link *link, const struct hd_pkt *pkt, const struct iovec *iov, int count,
		     size_t len, struct hd_put *put)
{
	struct fault_link *fl = link_of(link);
	int rc = trouble(fl);

	if (rc)
		return rc;
	if (fl->held)
		return -EAGAIN;
	return count_sent(fl, fl->inner->put(link, pkt, iov, count, len, put));
}

static int fault_get(struct hd_link *link, struct hd_get *get)
{
	struct fault_link *fl = link_of(link);

	return bad_luck(fl->fp, fl->fp->of->plan.refuse_percent) ? -EPERM : fl->inner->get(link, get);
}

/* What is held back has not been sent as far as the inner link knows. */
static int fault_fence(struct hd_link *link, uint32_t *token)
{
	struct fault_link *fl = link_of(link);

	return fl->held ? -EAGAIN : fl->inner->fence(link, token);
}

/* ---- turns ---- */

static int fault_release(struct fault_link *fl)
{
	struct held *h = STAILQ_FIRST(&fl->queue);
	int n = 0;

	if (h->turns) {
		h->turns--;
		return 0;
	}
	while (h && !h->turns && !fl->link->down && !fl->inner->send(fl->link, &h->pkt, h->payload, h->len)) {
		held_drop_first(fl);
		h = STAILQ_FIRST(&fl->queue);
		n++;
	}
	return n;
}

static int fault_poll(struct hd_port *port)
{
	struct fault_port *fp = fault_port_of(port);
	struct fault_link *fl;
	int n = fp->of->inner->poll(port);

	LIST_FOREACH(fl, &fp->links, entry)
		if (fl->held && !fl->link->down)
			n += fault_release(fl);
	return n;
}

static int fault_arm(struct hd_port *port)
{
	struct fault_port *fp = fault_port_of(port);
	struct fault_link *fl;
	int there = fp->of->inner->arm(port);

	LIST_FOREACH(fl, &fp->links, entry)
		if ((fl->held || fl->refused) && !fl->link->down)
			/* the inner transport knows of nothing that somebody waits for */
			there = 1;
	return there;
}

/* ---- life ---- */

static void fault_close_link(struct hd_link *link)
{
	struct fault_link *fl = link_of(link);

	while (fl->held)
		held_drop_first(fl);
	LIST_REMOVE(fl, entry);
	fl->inner->close(link);
	free(fl);
}

void __wrap_hd_link_init(struct hd_link *link, struct hd_port *port, const struct hd_link_ops *ops)
{
	struct fault_port *fp = fault_port_of(port);
	struct fault_link *fl;

	if (!fp) {
		__real_hd_link_init(link, port, ops);
		return;
	}
	fl = calloc(1, sizeof(*fl));
	if (!fl)
		abort(); /* there is no way to say so, and this is a test */
	fl->ops = *ops;
	fl->ops.send = fault_send;
	fl->ops.sendv = fault_sendv;
	fl->ops.put = fault_put;
	fl->ops.get = fault_get;
	fl->ops.fence = fault_fence;
	fl->ops.close = fault_close_link;
	fl->inner = ops;
	fl->link = link;
	fl->fp = fp;
	STAILQ_INIT(&fl->queue);
	LIST_INSERT_HEAD(&fp->links, fl, entry);
	__real_hd_link_init(link, port, &fl->ops);
}

static int port_wrap(struct hd_port *port, struct wrapped *w)
{
	struct fault_port *fp = calloc(1, sizeof(*fp));

	if (!fp)
		return -ENOMEM;
	fp->port = port;
	fp->of = w;
	LIST_INIT(&fp->links);
	port->transport = &w->table;
	pthread_mutex_lock(&all.lock);
	fp->random = w->plan.seed + (w->ports++ << 32);
	LIST_INSERT_HEAD(&all.ports, fp, entry);
	pthread_mutex_unlock(&all.lock);
	return 0;
}

static void fault_close(struct hd_port *port)
{
	struct fault_port *fp = fault_port_of(port);
	const struct hd_transport *inner = fp->of->inner;

	pthread_mutex_lock(&all.lock);
	LIST_REMOVE(fp, entry);
	pthread_mutex_unlock(&all.lock);
	free(fp);
	inner->close(port);
}

/*
 * open() is told nothing but the node, so it cannot know which of several wrapped transports is
 * meant: each has a function of its own, and there is room for as many as a test can want.
 */
static struct wrapped *place[4];

static int open_at(int i, struct hd_node *node, struct hd_port **out)
{
	int rc = place[i]->inner->open(node, out);

	if (rc)
		return rc;
	rc = port_wrap(*out, place[i]);
	if (rc)
		place[i]->inner->close(*out);
	return rc;
}

static int open_0(struct hd_node *node, struct hd_port **out)
{
	return open_at(0, node, out);
}

static int open_1(struct hd_node *node, struct hd_port **out)
{
	return open_at(1, node, out);
}

static int open_2(struct hd_node *node, struct hd_port **out)
{
	return open_at(2, node, out);
}

static int open_3(struct hd_node *node, struct hd_port **out)
{
	return open_at(3, node, out);
}

const struct hd_transport *hd_fault_wrap(const struct hd_transport *inner, const struct hd_fault_plan *plan)
{
	static int (*const opens[])(struct hd_node *, struct hd_port **) = { open_0, open_1, open_2, open_3 };
	struct wrapped *w = calloc(1, sizeof(*w));
	int i = 0;

	while (i < 4 && place[i])
		i++;
	if (!w || i == 4) {
		free(w);
		return NULL;
	}
	w->table = *inner;
	w->table.open = opens[i];
	w->table.close = fault_close;
	w->table.poll = fault_poll;
	w->table.arm = fault_arm;
	w->inner = inner;
	w->plan = *plan;
	place[i] = w;
	return &w->table;
}

void hd_fault_unwrap(const struct hd_transport *wrapped)
{
	for (int i = 0; i < 4; i++) {
		if ((const struct hd_transport *)place[i] != wrapped)
			continue;
		free(place[i]);
		place[i] = NULL;
	}
}
