/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* See stream.h. */
#include "engine/xfer/stream.h"
#include "engine/xfer/transfer.h"

#include <errno.h>
#include <stdlib.h>

/* ---- where the next bytes go ----------------------------------------------------------------- */

void hd_sink_iovs(struct hd_sink *sink, const struct iovec *iov, int count, uint64_t offset, uint64_t len)
{
	sink->count = hd_iov_slice(iov, count, offset, len, sink->iov);
	sink->cur = 0;
	sink->room = hd_iov_len(sink->iov, sink->count);
	sink->discard = len - sink->room;
	sink->status = HD_S_OK;
}

int hd_sink_iov(const struct hd_sink *sink, struct iovec *iov, int max)
{
	const struct hd_node *node = hd_container(sink, struct hd_link, sink)->node;
	int n = 0;

	for (int i = sink->cur; i < sink->count && n < max; i++)
		iov[n++] = sink->iov[i];
	if (!sink->room && sink->discard && n < max) {
		size_t part = sink->discard < HD_WASTE ? sink->discard : HD_WASTE;

		iov[n++] = (struct iovec){ hd_xfers(node)->waste, part };
	}
	return n;
}

/* ---- what nobody takes, and data ------------------------------------------------------------- */

static int drop_end(struct hd_link *link, struct hd_stream *s)
{
	if (hd_unlikely(link->sink.status)) {
		hd_credit_uncharge(link->peer, s->units);
		return 0;
	}
	if (s->pkt.kind == HD_PKT_EAGER && s->pkt.flags & (HD_PKT_F_ACK | HD_PKT_F_DELIVERED))
		hd_answer(link->peer, &s->pkt, HD_PKT_FIN, HD_S_REFUSED);
	hd_peer_free_units(link->peer, s->units);
	return 0;
}

static const struct hd_stream_kind drops = { .end = drop_end };

int hd_stream_drop(struct hd_link *link, struct hd_stream *s)
{
	s->kind = &drops;
	hd_sink_iovs(&link->sink, NULL, 0, 0, s->len);
	return 0;
}

static int data_end(struct hd_link *link, struct hd_stream *s)
{
	if (hd_unlikely(link->sink.status))
		hd_transfer_fail(s->transfer, link->sink.status);
	else
		hd_intake_arrived(s->transfer, s->len);
	return 0;
}

static const struct hd_stream_kind into_transfer = { .end = data_end };

int hd_stream_data(struct hd_link *link, struct hd_stream *s, struct hd_transfer *t)
{
	s->kind = &into_transfer;
	s->to = s->transfer = t;
	hd_stream_for(s, t->ep);
	hd_sink_iovs(&link->sink, t->iov, t->count, s->pkt.tag, s->len);
	return 0;
}

/* ---- all of them ----------------------------------------------------------------------------- */

struct hd_stream *hd_stream_begin(struct hd_link *link, const struct hd_pkt *pkt, size_t len)
{
	struct hd_stream *s = link->stream;

	if (!s && !(s = link->stream = calloc(1, sizeof(*s))))
		return NULL;
	s->link = link;
	s->kind = NULL;
	s->to = NULL;
	s->pkt = *pkt;
	s->len = len;
	s->units = 0;
	return s;
}

void hd_stream_for(struct hd_stream *s, struct hd_ep *ep)
{
	s->ep = ep;
	LIST_INSERT_HEAD(&ep->streams, s, of_ep);
}

static void leave_ep(struct hd_stream *s)
{
	if (!s->ep)
		return;
	LIST_REMOVE(s, of_ep);
	s->ep = NULL;
}

int hd_stream_end(struct hd_link *link)
{
	struct hd_stream *s = link->stream;
	const struct hd_stream_kind *kind = s->kind;

	s->kind = NULL;
	leave_ep(s);
	return kind->end(link, s);
}

void hd_stream_broken(struct hd_link *link, enum hd_status status)
{
	struct hd_stream *s = link->stream;

	if (!s)
		return;
	leave_ep(s);
	if (s->kind && s->kind->broken)
		s->kind->broken(link, s, status);
	free(s);
	link->stream = NULL;
}

static void stream_forget(struct hd_stream *s)
{
	struct hd_sink *sink = &s->link->sink;

	leave_ep(s);
	if (s->kind->forget)
		s->kind->forget(s->link, s);
	s->kind = &drops;
	s->to = NULL;
	sink->discard += sink->room;
	sink->room = 0;
	sink->count = 0;
}

void hd_stream_forget(struct hd_link *link, const void *to)
{
	struct hd_stream *s = link->stream;

	if (s && s->kind && s->to == to)
		stream_forget(s);
}

void hd_streams_forget(struct hd_ep *ep)
{
	struct hd_stream *s;

	while ((s = LIST_FIRST(&ep->streams)))
		stream_forget(s);
}
