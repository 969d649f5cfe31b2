/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Connections and services, of either side: steps of engine_fuzz. */
#include "fuzz/engine_fuzz.h"

#include <errno.h>
#include <netinet/in.h>

static void conn_make(int i)
{
	const struct hd_ep_attr attr = { .type = HD_EP_MSG,
					 .tx_size = 16,
					 .tx_cq = f.cq,
					 .rx_cq = f.cq,
					 .evq = f.evq,
					 .owner = &f.conn[i] };

	MUST(!hd_ep_open(f.node, &attr, &f.conn[i]));
	f.conn_gen[i]++;
}

/* A handle belongs to whoever has read it: the last one stays, those before are rejected. */
static ssize_t event_take(const struct hd_event *e, void *arg)
{
	for (size_t i = 0; i < e->len; i++)
		f.sum += ((const unsigned char *)e->data)[i];
	*(struct hd_request **)arg = e->request;
	return 0;
}

static void request_take(struct hd_request *request)
{
	if (f.request)
		hd_request_reject(f.request, NULL);
	f.request = request;
}

static void events_drain(void)
{
	struct hd_request *request = NULL;
	ssize_t rc;

	/* a queue that is overrun has an error to be read for ever */
	for (int i = 0; i < 300 && (rc = hd_evq_read(f.evq, 0, event_take, &request)) != -EAGAIN; i++) {
		if (rc == -EIO)
			MUST(hd_evq_read(f.evq, HD_EVQ_ERROR, event_take, &request) == 0);
		if (request)
			request_take(request);
		request = NULL;
	}
}

/* A request, mostly of the right form. */
static void say_connect(unsigned how)
{
	struct hd_connect body = { .type = HD_EP_MSG, .from = { .index = how & 3, .gen = 1, .port = 20000 } };
	struct hd_pkt pkt = { .kind = HD_PKT_CONNECT,
			      .dst = EPS,
			      .gen = how & 0x80 ? (uint16_t)input_below(&f.in, 4) : 1,
			      .src = how & 3,
			      .op = how };
	unsigned place = input_below(&f.in, LINKS);

	while (place < LINKS - 1 && !may_speak(f.link[place]))
		place++;
	if (!may_speak(f.link[place]))
		return;
	f.asker = place;
	f.asker_src = pkt.src;
	deliver(f.link[place], &pkt, &body, offsetof(struct hd_connect, data) + (how & 0x3c));
}

/* READY of the one that asked last, mostly with the right token. */
static void say_ready(int i, unsigned how)
{
	struct fake_link *l = f.link[how & 0x80 ? input_below(&f.in, LINKS) : f.asker];
	struct hd_pkt pkt = { .kind = HD_PKT_READY,
			      .dst = EPS + 1 + (unsigned)i,
			      .gen = f.conn_gen[i],
			      .src = f.asker_src,
			      .tag = f.token ^ !(how & 0x1c),
			      .imm = 1 };

	if (may_speak(l))
		deliver(l, &pkt, NULL, 0);
}

void step_connection(void)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	unsigned how = input_byte(&f.in);
	int i = how & 1;

	switch (how >> 1 & 7) {
	case 0:
		to.sin_port = htons((uint16_t)(20000 + input_below(&f.in, 8)));
		hd_ep_connect(f.conn[i], &(struct hd_connect_args){ .to = (struct sockaddr *)&to,
								    .data = { "hi", 2, 3 } });
		break;
	case 1:
	case 2:
		if (f.request && hd_ep_accept(f.conn[i], f.request, NULL) != -EISCONN)
			f.request = NULL;
		say_ready(i, input_byte(&f.in));
		break;
	case 3:
		request_take(NULL);
		break;
	case 4:
		hd_ep_disconnect(f.conn[i], NULL);
		break;
	case 5:
		hd_ep_close(f.conn[i]);
		conn_make(i);
		break;
	default:
		say_connect(input_byte(&f.in));
	}
	events_drain();
}

void connections_begin(void)
{
	struct hd_listen_args args = { .owner = &f.service, .backlog = 3 };

	MUST(!hd_evq_open(256, &f.evq));
	args.evq = f.evq;
	MUST(!hd_service_open(f.node, &(struct hd_service_attr){ 0 }, &f.service));
	MUST(!hd_service_listen(f.service, &args));
	for (int i = 0; i < CONNS; i++)
		conn_make(i);
}

void connections_end(void)
{
	for (int i = 0; i < CONNS; i++)
		hd_ep_close(f.conn[i]);
	hd_service_close(f.service);
	f.request = NULL;
	MUST(!hd_evq_close(f.evq));
}
