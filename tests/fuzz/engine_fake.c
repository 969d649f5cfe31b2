/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * The transports of engine_fuzz: one that is called, one that is joined, and one for groups; none
 * moves anything by itself.
 */
#include "fuzz/engine_fuzz.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>

static void read_all(const struct iovec *iov, int count)
{
	for (int i = 0; i < count; i++)
		for (size_t k = 0; k < iov[i].iov_len; k += 61)
			f.sum += ((unsigned char *)iov[i].iov_base)[k];
	if (count && iov[count - 1].iov_len)
		f.sum += ((unsigned char *)iov[count - 1].iov_base)[iov[count - 1].iov_len - 1];
}

static void remember(struct fake_link *l, const struct hd_pkt *pkt, const struct iovec *iov, int count)
{
	struct said *s = &f.recent[f.recents++ % RECENT];

	*s = (struct said){ .pkt = *pkt, .link = l };
	if (count && iov[0].iov_len >= 8)
		memcpy(&s->first, iov[0].iov_base, 8);
	if (pkt->kind == HD_PKT_ACCEPT)
		f.token = ((const struct hd_accept *)iov[0].iov_base)->token;
}

static int fake_sendv(struct hd_link *link, const struct hd_pkt *pkt, const struct iovec *iov, int count,
		      size_t len)
{
	struct fake_link *l = (struct fake_link *)link;

	if (link->down)
		return -ENOTCONN;
	MUST(l->up);
	MUST(len <= link->send_max);
	if (l->again)
		return -EAGAIN;
	read_all(iov, count);
	remember(l, pkt, iov, count);
	return 0;
}

static int fake_send(struct hd_link *link, const struct hd_pkt *pkt, const void *buf, size_t len)
{
	struct iovec iov = { (void *)buf, len };

	return fake_sendv(link, pkt, &iov, 1, len);
}

static int fake_put(struct hd_link *link, const struct hd_pkt *pkt, const struct iovec *iov, int count,
		    size_t len, struct hd_put *put)
{
	struct fake_link *l = (struct fake_link *)link;

	MUST(len <= HD_FRAME_MAX);
	if (link->down)
		return -ENOTCONN;
	if (l->again)
		return -EAGAIN;
	read_all(iov, count);
	remember(l, pkt, iov, count);
	if (!l->puts_stay)
		return 1;
	TAILQ_INSERT_TAIL(&l->puts, put, entry);
	return 0;
}

static int fake_unput(struct hd_link *link, struct hd_put *put)
{
	struct fake_link *l = (struct fake_link *)link;

	TAILQ_REMOVE(&l->puts, put, entry);
	return 0;
}

static void fake_grant(struct hd_link *link, uint32_t limit)
{
}

static uint32_t fake_granted(struct hd_link *link)
{
	return 100000;
}

static size_t fake_offer(struct hd_link *link, struct hd_offer *o, void *blob)
{
	struct fake_link *l = (struct fake_link *)link;

	if (link->down || l->offers_nothing)
		return 0;
	read_all(o->iov, o->count);
	memset(blob, 1, 8);
	l->offers++;
	return 8;
}

static void fake_unoffer(struct hd_link *link, struct hd_offer *o)
{
	struct fake_link *l = (struct fake_link *)link;

	MUST(l->offers-- > 0);
}

static int fake_get(struct hd_link *link, struct hd_get *get)
{
	struct fake_link *l = (struct fake_link *)link;

	if (link->down)
		return -ENOTCONN;
	MUST(get->len);
	read_all(&(struct iovec){ (void *)get->offer, get->offer_len }, 1);
	if (l->again)
		return -EPERM;
	TAILQ_INSERT_TAIL(&l->gets, get, entry);
	return 0;
}

static int fake_unget(struct hd_link *link, struct hd_get *get, bool wait)
{
	TAILQ_REMOVE(&((struct fake_link *)link)->gets, get, entry);
	return 0;
}

static void fake_close_link(struct hd_link *link)
{
	struct fake_link *l = (struct fake_link *)link;

	MUST(link->down);
	MUST(l->offers == 0 && TAILQ_EMPTY(&l->gets));
	for (int i = 0; i < LINKS; i++)
		if (f.link[i] == l)
			f.link[i] = NULL;
	for (int i = 0; i < RECENT; i++)
		if (f.recent[i].link == l)
			f.recent[i].link = NULL;
	f.links--;
	free(l);
}

static const struct hd_link_ops fake_ops = {
	.send = fake_send,
	.sendv = fake_sendv,
	.put = fake_put,
	.unput = fake_unput,
	.grant = fake_grant,
	.granted = fake_granted,
	.offer = fake_offer,
	.unoffer = fake_unoffer,
	.get = fake_get,
	.unget = fake_unget,
	HD_LINK_NO_DIRECT,
	.close = fake_close_link,
};

struct fake_link *link_make(struct hd_port *port)
{
	struct fake_link *l;
	int i = 0;

	while (i < LINKS && f.link[i])
		i++;
	if (i == LINKS || !(l = calloc(1, sizeof(*l))))
		return NULL;
	TAILQ_INIT(&l->puts);
	TAILQ_INIT(&l->gets);
	hd_link_init(&l->base, port, &fake_ops);
	l->base.send_max = SEND_MAX;
	l->base.eager_max = 4096;
	l->base.is_local = true;
	f.link[i] = l;
	f.links++;
	return l;
}

void link_up(struct fake_link *l)
{
	if (l->up || l->base.down)
		return;
	l->up = true;
	hd_link_up(&l->base);
}

static int fake_connect(struct hd_port *port, const void *where, size_t len, const struct hd_node_id *whose,
			struct hd_link **out)
{
	struct fake_link *l = link_make(port);

	if (!l)
		return -EMFILE;
	if (port == f.port[0])
		memcpy(&l->base.where, where, sizeof(struct sockaddr_in));
	*out = &l->base;
	if (input_byte(&f.in) & 1)
		link_up(l);
	return 0;
}

static int port_make(struct hd_node *node, struct hd_port **out, int which,
		     const struct hd_transport *transport)
{
	struct hd_port *port = calloc(1, sizeof(*port));

	if (!port)
		return -ENOMEM;
	port->node = node;
	port->transport = transport;
	f.port[which] = port;
	*out = port;
	return 0;
}

static void fake_close(struct hd_port *port)
{
	free(port);
}

static int fake_poll(struct hd_port *port)
{
	return 0;
}

static void fake_disarm(struct hd_port *port)
{
}

static int fake_listen(struct hd_port *port, struct hd_listener *l)
{
	struct sockaddr_in *in = (struct sockaddr_in *)&l->addr;

	for (unsigned i = 0; i < sizeof(f.listener) / sizeof(f.listener[0]); i++) {
		if (f.listener[i])
			continue;
		f.listener[i] = l;
		if (!in->sin_port) /* at the same place in IPv6 */
			in->sin_port = htons(f.next_port++);
		return 0;
	}
	return -EMFILE;
}

static void fake_unlisten(struct hd_port *port, struct hd_listener *l)
{
	for (unsigned i = 0; i < sizeof(f.listener) / sizeof(f.listener[0]); i++)
		if (f.listener[i] == l)
			f.listener[i] = NULL;
}

static size_t far_advertise(struct hd_port *port, void *advert, size_t room)
{
	return 0;
}

static size_t near_advertise(struct hd_port *port, void *advert, size_t room)
{
	memset(advert, 7, 16);
	return 16;
}

static int far_open(struct hd_node *node, struct hd_port **out);
static int near_open(struct hd_node *node, struct hd_port **out);

static const struct hd_transport far_transport = {
	.name = "far",
	.number = HD_TNUM_TCP,
	.addressed = true,
	.open = far_open,
	.close = fake_close,
	.poll = fake_poll,
	.arm = fake_poll,
	.disarm = fake_disarm,
	.listen = fake_listen,
	.unlisten = fake_unlisten,
	.advertise = far_advertise,
	.connect = fake_connect,
};

static const struct hd_transport near_transport = {
	.name = "near",
	.number = HD_TNUM_SHM,
	.open = near_open,
	.close = fake_close,
	.poll = fake_poll,
	.arm = fake_poll,
	.disarm = fake_disarm,
	.listen = fake_listen,
	.unlisten = fake_unlisten,
	.advertise = near_advertise,
	.connect = fake_connect,
};

static int far_open(struct hd_node *node, struct hd_port **out)
{
	return port_make(node, out, 0, &far_transport);
}

static int near_open(struct hd_node *node, struct hd_port **out)
{
	return port_make(node, out, 1, &near_transport);
}

/* In place of the table of engine/node/transports.c. */
extern const struct hd_transport *const hd_transports[];
const struct hd_transport *const hd_transports[] = { &far_transport, &near_transport, NULL };

/* ---- groups ---------------------------------------------------------------------------------- */

static int fake_join(struct hd_node *node, const struct hd_cast_want *want, struct hd_cast **out);

static int fake_cast(struct hd_cast *cast, const struct hd_cast_head *head, const struct iovec *iov,
		     int count)
{
	size_t len = 0;

	for (int i = 0; i < count; i++)
		len += iov[i].iov_len;
	MUST(len <= HD_CAST_MAX);
	read_all(iov, count);
	return 0;
}

static void fake_leave(struct hd_cast *cast)
{
	for (int i = 0; i < GROUPS; i++)
		if (f.cast[i] == cast)
			f.cast[i] = NULL;
	free(cast);
}

static void fake_forked(struct hd_cast *cast)
{
}

static const struct hd_caster fake_caster = {
	.name = "groups",
	.join = fake_join,
	.cast = fake_cast,
	.leave = fake_leave,
	.forked = fake_forked,
};

static int fake_join(struct hd_node *node, const struct hd_cast_want *want, struct hd_cast **out)
{
	struct hd_cast *cast;
	int i = 0;

	MUST(want->from_count > 0);
	while (i < GROUPS && f.cast[i])
		i++;
	if (i == GROUPS)
		return -EMFILE;
	cast = calloc(1, sizeof(*cast));
	if (!cast)
		return -ENOMEM;
	*cast = (struct hd_cast){ .caster = &fake_caster, .node = node };
	*out = f.cast[i] = cast;
	return 0;
}

extern const struct hd_caster *const hd_caster;
const struct hd_caster *const hd_caster = &fake_caster;
