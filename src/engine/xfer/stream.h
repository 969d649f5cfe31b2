/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * What comes over a link in pieces: one packet at a time, through the link's sink (transport.h).
 * Who takes the packet says where its bytes go and what is done when all are there, by a table of
 * its own: messages in rdm, packets that are gathered first in dispatch, data of transfers here.
 * All with the node's lock; nothing blocks.
 */
#ifndef HD_ENGINE_STREAM_H
#define HD_ENGINE_STREAM_H

#include "engine/link/link.h"
#include "engine/rq/rq.h"

#define HD_STREAM_GATHER \
	HD_ATOMIC_PAYLOAD /* bytes of a packet that is gathered without memory for it alone */

struct hd_stream;
struct hd_transfer;

/*
 * end: all bytes are there, and the stream is free for the next packet. 0, or negative: the link is
 * down. The others may be NULL. broken: the link went down in the middle. forget: what the bytes go
 * to is about to vanish; the rest of them is thrown away.
 */
struct hd_stream_kind {
	int (*end)(struct hd_link *link, struct hd_stream *s);
	void (*broken)(struct hd_link *link, struct hd_stream *s, enum hd_status status);
	void (*forget)(struct hd_link *link, struct hd_stream *s);
};

struct hd_stream {
	const struct hd_stream_kind *kind; /* NULL: nothing is coming in */
	/* whom it is for, hd_stream_for; NULL: nobody, or it is not known yet */
	struct hd_ep *ep;
	LIST_ENTRY(hd_stream) of_ep; /* hd_ep.streams */
	struct hd_link *link;	     /* over which it comes */
	const void *to;		     /* the transfer or message that the bytes go to, or NULL */
	struct hd_pkt pkt;
	size_t len;
	uint32_t units; /* credit to give back at the end */
	union {
		struct hd_transfer *transfer;
		struct hd_msg *msg;
		/* a posted receive, taken out of its queue, or (recv NULL) a part of taken.whole */
		struct {
			struct hd_recv *recv;
			struct hd_taken taken;
			struct hd_received received;
		} posted;
		struct {
			unsigned char *large; /* where `bytes` is too short: from hd_rqs.bytes */
			unsigned char bytes[HD_STREAM_GATHER];
		} whole;
	};
};

/* What who begins it says of it: see its members. */
static inline void hd_stream_set_kind(struct hd_stream *s, const struct hd_stream_kind *kind)
{
	s->kind = kind;
}
static inline void hd_stream_set_to(struct hd_stream *s, const void *to)
{
	s->to = to;
}
static inline void hd_stream_set_units(struct hd_stream *s, uint32_t units)
{
	s->units = units;
}

/*
 * hd_stream_begin: a packet of len bytes comes in, which nobody has taken yet. NULL without memory.
 */
struct hd_stream *hd_stream_begin(struct hd_link *link, const struct hd_pkt *pkt, size_t len);

/* hd_stream_for: it is for this endpoint, until it has ended or is forgotten. */
void hd_stream_for(struct hd_stream *s, struct hd_ep *ep);

/*
 * hd_stream_drop: nobody takes it: its bytes are thrown away, its sender is answered at the end.
 * hd_stream_data: DATA, for a transfer.
 */
int hd_stream_drop(struct hd_link *link, struct hd_stream *s);
int hd_stream_data(struct hd_link *link, struct hd_stream *s, struct hd_transfer *t);

/* hd_stream_end: all of it is here. */
int hd_stream_end(struct hd_link *link);

/* hd_stream_broken: the link went down. Frees the stream. */
void hd_stream_broken(struct hd_link *link, enum hd_status status);

/*
 * hd_stream_forget: if what comes over the link goes to this transfer or message, the rest is
 * thrown away. hd_streams_forget: of all that is for the endpoint.
 */
void hd_stream_forget(struct hd_link *link, const void *to);
void hd_streams_forget(struct hd_ep *ep);

/*
 * hd_sink_iovs: let the next `len` bytes go to the segments from offset on, and what they have no
 * room for be thrown away.
 */
void hd_sink_iovs(struct hd_sink *sink, const struct iovec *iov, int count, uint64_t offset, uint64_t len);

#endif
