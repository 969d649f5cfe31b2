/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* The life of links, deliveries, and the sinks of packets that come piece by piece. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "transport/rig.h"

/* ---- ends of this process, by serial ---- */

#define BOOK_ROWS 4096

static struct {
	pthread_mutex_t lock;
	uint32_t next;			/* lock */
	struct rig_end *row[BOOK_ROWS]; /* lock */
} book = { .lock = PTHREAD_MUTEX_INITIALIZER };

static void book_enter(struct rig_end *end)
{
	pthread_mutex_lock(&book.lock);
	end->serial = (uint64_t)getpid() << 32 | ++book.next;
	book.row[end->serial % BOOK_ROWS] = end;
	pthread_mutex_unlock(&book.lock);
}

static struct rig_end *book_find(uint64_t serial)
{
	struct rig_end *end;

	pthread_mutex_lock(&book.lock);
	end = book.row[serial % BOOK_ROWS];
	pthread_mutex_unlock(&book.lock);
	return serial >> 32 == (uint64_t)getpid() ? end : NULL;
}

/* ---- life ---- */

void hd_link_init(struct hd_link *link, struct hd_port *port, const struct hd_link_ops *ops)
{
	struct hd_node *node = port->node;

	link->ops = ops;
	link->port = port;
	link->node = node;
	link->row = &node->page->links[node->rows++ % HD_PAGE_LINKS];
}

/* The first word that a transport says about a link brings its end into being. */
static struct rig_end *end_of(struct hd_link *link)
{
	struct hd_node *node = link->node;
	struct rig_end *end = link->stream;

	if (end)
		return end;
	end = calloc(1, sizeof(*end));
	if (!end)
		abort();
	book_enter(end);
	end->random = rig_mix(end->serial);
	end->node = node;
	end->link = link;
	TAILQ_INIT(&end->put_list);
	TAILQ_INIT(&end->offer_list);
	TAILQ_INIT(&end->get_list);
	TAILQ_INIT(&end->fin_list);
	link->stream = end;
	TAILQ_INSERT_TAIL(&node->ends, end, entry);
	TAILQ_INSERT_TAIL(&node->links, link, entry);
	node->opened++;
	return end;
}

static void check_limits(struct hd_link *link)
{
	if (link->send_max < sizeof(struct hd_hello))
		rig_complain(link->node, "send_max %u is too small for a HELLO", link->send_max);
	if (link->eager_max > link->send_max)
		rig_complain(link->node, "eager_max %u over send_max %u", link->eager_max, link->send_max);
}

void hd_link_up(struct hd_link *link)
{
	struct rig_end *end = end_of(link);

	if (end->up || link->down)
		rig_complain(link->node, "a link came up twice, or after it was down");
	check_limits(link);
	end->up = true;
}

void hd_link_accepted(struct hd_link *link, struct hd_listener *l)
{
	struct rig_end *end = end_of(link);

	if (end->up || link->down)
		rig_complain(link->node, "a link was accepted twice, or after it was down");
	if (!l == link->port->transport->addressed)
		rig_complain(link->node, "accepted %s a listener", l ? "with" : "without");
	check_limits(link);
	end->up = true;
	end->accepted = true;
	end->listener = l;
}

void hd_link_down(struct hd_link *link, int err, const char *why)
{
	struct rig_end *end = end_of(link);

	if (link->down)
		return;
	if (err >= 0)
		rig_complain(link->node, "a link went down with %d, which is no negative errno", err);
	link->down = true;
	link->down_err = err;
	end->was_down = true;
	end->err = err;
	TAILQ_REMOVE(&link->node->links, link, entry);
	TAILQ_INSERT_TAIL(&link->node->fallen, link, entry);
}

int rig_connect(struct hd_port *port, const void *where, size_t len, struct rig_end **out)
{
	struct hd_link *link = NULL;
	int rc = port->transport->connect(port, where, len, NULL, &link);

	if (rc)
		return rc;
	*out = end_of(link);
	return 0;
}

void rig_end_close(struct rig_end *end, int err)
{
	if (end->link)
		hd_link_down(end->link, err, NULL);
}

/* ---- deliveries ---- */

static int refuse(struct hd_link *link, const char *why)
{
	rig_complain(link->node, "%s", why);
	hd_link_down(link, -EPROTO, why);
	return -EPROTO;
}

/* May anything be delivered on this link now? */
static const char *bad_time(struct hd_link *link)
{
	struct rig_end *end = link->stream;

	if (!end || !end->up)
		return "a packet on a link that is not up";
	if (link->down)
		return "a packet on a link that is down";
	if (link->node->in_send)
		return "a packet from inside send";
	if (end->stream)
		return "a packet between begin and end of another";
	return NULL;
}

static int take(struct rig_end *end, const struct hd_pkt *pkt, const void *payload, size_t have, size_t len)
{
	struct hd_link *link = end->link;
	int rc;

	if (pkt->kind == HD_PKT_HELLO && !end->greeted) {
		end->greeted = true;
		end->other = book_find(pkt->imm);
	} else if (!end->greeted) {
		return refuse(link, "the first packet is not the one that was sent first");
	}
	rc = rig_receive(end, pkt, payload, have, len);
	if (rc)
		hd_link_down(link, rc, "content");
	return rc;
}

int hd_deliver(struct hd_link *link, const struct hd_pkt *pkt, const void *payload, size_t len)
{
	const char *bad = bad_time(link);

	if (bad)
		return refuse(link, bad);
	return take(link->stream, pkt, payload, len, len);
}

struct rig_stream {
	struct hd_pkt pkt;
	size_t len, have;
	unsigned char buf[];
};

/*
 * The buffer may be smaller than the packet, down to nothing; packets that the rig
 * itself needs are taken whole.
 */
static size_t buffer_for(struct rig_end *end, const struct hd_pkt *pkt, size_t len)
{
	if (!end->plan.truncates || pkt->kind != HD_PKT_EAGER)
		return len;
	switch (rig_draw(&end->random) % 4) {
	case 0:
		return 0;
	case 1:
		return rig_between(&end->random, 0, len);
	default:
		return len;
	}
}

int hd_deliver_begin(struct hd_link *link, const struct hd_pkt *pkt, size_t len)
{
	const char *bad = bad_time(link);
	struct rig_end *end = link->stream;
	struct rig_stream *s;
	size_t have;

	if (bad)
		return refuse(link, bad);
	have = buffer_for(end, pkt, len);
	s = malloc(sizeof(*s) + have);
	if (!s)
		abort();
	s->pkt = *pkt;
	s->len = len;
	s->have = have;
	end->stream = s;
	memset(&link->sink, 0, sizeof(link->sink));
	link->sink.count = rig_segments(&end->random, s->buf, have, link->sink.iov, HD_IOV_MAX);
	link->sink.room = have;
	link->sink.discard = len - have;
	return 0;
}

int hd_deliver_end(struct hd_link *link)
{
	struct rig_end *end = link->stream;
	struct rig_stream *s = end ? end->stream : NULL;
	int rc;

	if (!s || link->down)
		return refuse(link, "the end of a packet that was not begun, or on a link that is down");
	if (link->sink.room || link->sink.discard)
		return refuse(link, "the end of a packet before its last byte");
	end->stream = NULL;
	rc = take(end, &s->pkt, s->buf, s->have, s->len);
	free(s);
	return rc;
}

/* ---- sinks ---- */

/*
 * Copying into them is the engine's own sink.c: bytes beyond the end of a packet make
 * hd_deliver_end refuse it.
 */

int hd_sink_iov(const struct hd_sink *sink, struct iovec *iov, int max)
{
	static _Thread_local char waste[16 << 10];
	uint64_t discard = sink->discard;
	int n = 0;

	for (int i = sink->cur; i < sink->count && n < max; i++)
		if (sink->iov[i].iov_len)
			iov[n++] = sink->iov[i];
	while (discard && n < max) {
		size_t part = discard < sizeof(waste) ? discard : sizeof(waste);

		iov[n++] = (struct iovec){ waste, part };
		discard -= part;
	}
	return n;
}
