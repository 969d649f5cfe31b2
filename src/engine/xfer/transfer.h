/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Transfers: bytes that travel between memory of ours and of a peer in more than one packet.
 * frames.c has what leaves, intake.c what comes in, transfer.c how they end.
 *
 *	what leaves
 *		OFFERED ──► FRAMES ──► SENT ──► (done)		the peer says FIN when it has all
 *		   ▲           │  └──► ENDING ──► (done)	over, the link still reads a frame
 *		   └───────────┘				a part was asked for, and the rest
 *								may be
 *	what comes in
 *		GET ──► HERE ──► (done)				the link copies by itself
 *		   ├──► INTAKE ──► HERE ──► (done)		the peer sends frames
 *		   ├──► CLOSING ─► HERE ──► (done)		given up while the peer's process
 *		   │						was stopped in a copy
 *		   └──► STOPPED ─► HERE ──► (done)		it will be given up in a moment,
 *								and nobody has been told
 *
 * It is embedded in what it is for, its owner, which says what becomes of it by a table. A transfer
 * asks nothing about its owner: what it has to know stands in its members from the beginning.
 *
 * All is called with the node's lock, and blocks nowhere. Transfers end with a status
 * (api/status.h), results of functions are negative errnos.
 */
#ifndef HD_ENGINE_TRANSFER_H
#define HD_ENGINE_TRANSFER_H

#include "base/iov.h"
#include "engine/link/link.h"
#include "engine/rq/rq.h"
#include "engine/xfer/lane.h"
#include "engine/xfer/state.h"

enum hd_transfer_state {
	HD_TRANSFER_IDLE,    /* nothing of it moves: what it is, its owner knows */
	HD_TRANSFER_OFFERED, /* announced: waits for CTS or FIN */
	HD_TRANSFER_FRAMES,  /* CTS has come: in peer->framing */
	HD_TRANSFER_SENT,    /* all frames are the link's, waits for FIN */
	HD_TRANSFER_ENDING,  /* it has ended with status, and the link still reads a frame */
	HD_TRANSFER_GET,     /* the link fetches it */
	HD_TRANSFER_INTAKE,  /* frames come in */
	/* it has failed with status, and the link must not give its memory back yet */
	HD_TRANSFER_CLOSING,
	/*
	 * the link fetches no more of it, since its endpoint is about to end it: hd_transfers_stop
	 */
	HD_TRANSFER_STOPPED,
	/* it is here, or has failed with status; it may have to wait for those before it */
	HD_TRANSFER_HERE,
};

struct hd_transfer;

/*
 * Upcalls. They may end other transfers, complete, post and queue; done and dropped
 * are the last that is done with the transfer, which they free. done and dropped are
 * set, the others may be NULL.
 *
 * done: it has ended. The peer has been told what is the transfer's own to say.
 * dropped: it was given up by its owner's like (hd_transfer_drop): nobody is told of it.
 * turn: it is here, or has failed with *status: may it end now, with *status as it is then? False:
 * hd_transfer_end later. answered: the peer has said how it ended; done follows, now or later.
 * idle_answered: FIN or ACK (kind) has come, while it is HD_TRANSFER_IDLE. 0; negative: it has no
 * right to. refusal: no call, but the status that its peer is told where memory of ours that it
 * fills or reads is gone; HD_S_OK: HD_S_CANCELLED.
 */
struct hd_transfer_owner {
	void (*done)(struct hd_transfer *t, enum hd_status status);
	void (*dropped)(struct hd_transfer *t);
	bool (*turn)(struct hd_transfer *t, enum hd_status *status);
	void (*answered)(struct hd_transfer *t);
	int (*idle_answered)(struct hd_transfer *t, uint8_t kind, enum hd_status status);
	enum hd_status refusal;
};

struct hd_transfer {
	/* first. In its peer's list in every state but HD_TRANSFER_IDLE */
	struct hd_pending pending;
	const struct hd_transfer_owner *owner;
	struct hd_ep *ep;
	enum hd_transfer_state state;
	uint32_t remote;		/* the other end's number for it */
	uint64_t len;			/* bytes that there are */
	uint64_t want;			/* of these, bytes that travel */
	uint64_t at;			/* of these, bytes that have left in frames, or come in */
	const struct iovec *iov;	/* where they are from, or go; the owner's */
	struct hd_mr **regions;		/* of these segments, each may be NULL; the owner's */
	TAILQ_ENTRY(hd_transfer) entry; /* peer->framing */
	int count;			/* segments */
	/* that it had when it began to hold their regions; 0: none */
	int region_count;
	int puts; /* frames that the link still reads */
	/* how it ends, where known before: HD_TRANSFER_ENDING, _CLOSING, _HERE */
	enum hd_status status;
	/* by its owner, before it begins */
	/* comes in: a READ of ours has asked for it, and the peer knows it by our number */
	bool reads;
	bool unanswered; /* leaves: it ends with its last frame */
	/* leaves: its frames do so behind those of its endpoint with a lower seq */
	bool in_order;
	bool ascends; /* comes in: the first bytes are to be there first */
	/* as it goes on */
	bool offered; /* the link has an offer */
	bool part;    /* what was asked for is a part: there may be another CTS */
	union {
		struct { /* leaves */
			struct hd_put put;
			struct hd_offer offer;
			uint32_t seq; /* in_order */
		};
		struct { /* comes in */
			struct hd_get get;
			struct hd_lane_place place; /* its owner's, where it ends in order */
		};
	};
	/*
	 * ep->transfers: as `pending`, and of an operation that is HD_OP_QUEUED for a destination
	 */
	TAILQ_ENTRY(hd_transfer)
	of_ep;
};

extern const struct hd_pending_ops hd_transfer_pending;

static inline struct hd_transfer *hd_transfer_of(struct hd_pending *pending)
{
	return hd_container(pending, struct hd_transfer, pending);
}

/*
 * What its owner says of it, before it begins where nothing else is said. hd_transfer_set_bytes:
 * these segments, which stay the owner's, have or take the bytes that there are.
 * hd_transfer_set_far: the other end's number for it, and how many of them travel;
 * hd_transfer_want_all: all, from the first on.
 * hd_transfer_set_unanswered, hd_transfer_set_status: see its members. hd_transfer_offer: the link
 * makes it fetchable, as hd_link_ops.offer;
 * hd_transfer_set_offered: and the other end is told so. hd_transfer_set_region: of one of
 * its segments, at any time.
 */
static inline void hd_transfer_set_bytes(struct hd_transfer *t, const struct iovec *iov, int count,
					 uint64_t len)
{
	t->len = len;
	t->iov = iov;
	t->count = count;
}
static inline void hd_transfer_set_far(struct hd_transfer *t, uint32_t remote, uint64_t want)
{
	t->remote = remote;
	t->want = want;
}
static inline void hd_transfer_want_all(struct hd_transfer *t)
{
	t->want = t->len;
	t->at = 0;
}
static inline void hd_transfer_set_unanswered(struct hd_transfer *t)
{
	t->unanswered = true;
}
static inline void hd_transfer_set_status(struct hd_transfer *t, enum hd_status status)
{
	t->status = status;
}
static inline size_t hd_transfer_offer(struct hd_transfer *t, struct hd_link *link, void *blob)
{
	t->offer = (struct hd_offer){ .iov = t->iov, .count = t->count, .len = t->len };
	return link->ops->offer(link, &t->offer, blob);
}
static inline void hd_transfer_set_offered(struct hd_transfer *t, bool offered)
{
	t->offered = offered;
}
static inline void hd_transfer_set_region(struct hd_transfer *t, int i, struct hd_mr *mr)
{
	t->regions[i] = mr;
}

/* hd_transfer_at: the one that has this place in its owner's lane. */
static inline struct hd_transfer *hd_transfer_at(struct hd_lane_place *place)
{
	return hd_container(place, struct hd_transfer, place);
}

/* hd_transfer_by_id: the one that a peer names, or NULL. */
static inline struct hd_transfer *hd_transfer_by_id(const struct hd_node *node, uint32_t id)
{
	struct hd_pending *pending = hd_pending_find(node, id, &hd_transfer_pending);

	return pending ? hd_transfer_of(pending) : NULL;
}

/* HD_TRANSFERS_FOREACH: what waits for a peer and is a transfer, by age. */
static inline struct hd_transfer *hd_transfer_among(struct hd_pending *pending)
{
	while (pending && pending->ops != &hd_transfer_pending)
		pending = TAILQ_NEXT(pending, under);
	return pending ? hd_transfer_of(pending) : NULL;
}
static inline struct hd_transfer *hd_transfers_first(const struct hd_peer *peer)
{
	return hd_transfer_among(TAILQ_FIRST(&peer->pending));
}
static inline struct hd_transfer *hd_transfers_next(const struct hd_transfer *t)
{
	return hd_transfer_among(TAILQ_NEXT(&t->pending, under));
}
#define HD_TRANSFERS_FOREACH(t, peer) for (t = hd_transfers_first(peer); t; t = hd_transfers_next(t))

/*
 * hd_transfer_join: it is under way at this peer, and so among those of its endpoint.
 * hd_transfer_leave: not any more.
 */
static inline void hd_transfer_join(struct hd_transfer *t, struct hd_peer *peer)
{
	hd_pending_join(&t->pending, peer);
	TAILQ_INSERT_TAIL(&t->ep->transfers, t, of_ep);
}
static inline void hd_transfer_leave(struct hd_transfer *t)
{
	hd_pending_leave(&t->pending);
	TAILQ_REMOVE(&t->ep->transfers, t, of_ep);
}

/* HD_EP_TRANSFERS_FOREACH: those of an endpoint by age, while `next` is not ended by what ends. */
#define HD_EP_TRANSFERS_FOREACH(t, following, ep) \
	for (t = TAILQ_FIRST(&(ep)->transfers); t && (following = TAILQ_NEXT(t, of_ep), true); t = following)

/* ---- transfer.c ---- */

/*
 * hd_transfer_init: a transfer of this owner's, which has a number, but no segments, and is
 * HD_TRANSFER_IDLE. 0; negative: there was no memory for it, and nothing is to be undone.
 * hd_transfer_fini: its number and its regions are given back; it is in no list. hd_transfer_begin:
 * it is under way at this peer, in this state.
 */
int hd_transfer_init(struct hd_transfer *t, struct hd_ep *ep, const struct hd_transfer_owner *owner);
void hd_transfer_fini(struct hd_transfer *t);
void hd_transfer_begin(struct hd_transfer *t, struct hd_peer *peer, enum hd_transfer_state state);

/* hd_transfer_comes_in: it fills memory of ours. */
static inline bool hd_transfer_comes_in(const struct hd_transfer *t)
{
	return t->state >= HD_TRANSFER_GET;
}

/*
 * hd_transfer_end: no more of it moves, and it ends like this as soon as its owner lets
 * it; nobody else is told.
 * hd_transfer_cancel: it ends in error, and a peer that waits for more is
 * told that no more will come.
 * hd_transfer_drop: the same, but its owner completes nothing. hd_transfer_forget: no more of it
 * moves, and neither the peer nor its owner, who frees it, is told.
 * hd_transfer_fail: as hd_transfer_cancel, because memory is gone: ours (HD_S_PROTECTION),
 * or the peer's. Each may be called in any state; one that is HD_TRANSFER_IDLE is its
 * owner's business at once.
 * hd_transfer_quit: as hd_transfer_end, for one whose memory goes when it returns: it waits for who
 * is in the middle of a copy there, where the others leave that to the link, and end it later
 * (HD_TRANSFER_CLOSING). So do hd_transfer_drop and hd_transfer_forget.
 */
void hd_transfer_end(struct hd_transfer *t, enum hd_status status);
void hd_transfer_quit(struct hd_transfer *t, enum hd_status status);
void hd_transfer_cancel(struct hd_transfer *t, enum hd_status status);
void hd_transfer_fail(struct hd_transfer *t, enum hd_status status);
void hd_transfer_drop(struct hd_transfer *t);
void hd_transfer_forget(struct hd_transfer *t);

/*
 * hd_transfers_stop: for who is about to end those of this endpoint, with memory that goes then:
 * the link fetches no more of any. It changes nothing else, and nobody is told: in what order they
 * end is his business. True: some wait until another process is out of a copy: ask again. False:
 * ending them waits for nobody, as long as he keeps the lock.
 */
bool hd_transfers_stop(struct hd_ep *ep);

/*
 * hd_transfer_answered: ACK or FIN has come for one. Negative: not one that could be answered now.
 */
int hd_transfer_answered(struct hd_link *link, const struct hd_pkt *pkt);

/*
 * Regions by local keys; what becomes of them when a region goes is in qp/local.c.
 * hd_transfer_hold: the segments are of these regions, which stay where they stand.
 * hd_transfer_release: it needs them no longer. hd_transfer_uses: is this one of them?
 */
void hd_transfer_hold(struct hd_transfer *t, struct hd_mr **regions);
void hd_transfer_release_now(struct hd_transfer *t);
bool hd_transfer_uses(const struct hd_transfer *t, const struct hd_mr *mr);
static inline void hd_transfer_release(struct hd_transfer *t)
{
	if (hd_unlikely(t->region_count != 0))
		hd_transfer_release_now(t);
}

/*
 * hd_transfer_check, hd_xfer_check (check.c): assert in builds with assertions that
 * its members agree; and of all that is under way with this peer, that each is in the
 * lists that its state names.
 */
#ifdef NDEBUG
static inline void hd_transfer_check(const struct hd_transfer *t)
{
}
static inline void hd_xfer_check(const struct hd_peer *peer)
{
}
#else
void hd_transfer_check(const struct hd_transfer *t);
void hd_xfer_check(const struct hd_peer *peer);
#endif

/* ---- frames.c ---- */

#define HD_PUTS_MAX 8 /* frames of one transfer that the link may have at a time */

/*
 * hd_frames_begin: its `want` bytes leave in frames, to this peer, who has asked for them.
 * hd_frames_push: let those that send frames to this peer take turns, a frame each, until the link
 * is full; how many frames were sent. Some stay in the list for as long as the link is full or
 * reads their frame. hd_frames_leave: it is in the list no longer.
 */
void hd_frames_begin(struct hd_transfer *t, struct hd_peer *peer);
int hd_frames_push(struct hd_peer *peer);
void hd_frames_leave(struct hd_transfer *t);

/*
 * hd_send_cts: the other end asks for `tag` bytes in frames. Negative: it had no right to. What has
 * been given up meanwhile is answered with FIN, so that nobody waits for it.
 */
int hd_send_cts(struct hd_link *link, const struct hd_pkt *pkt);

/* ---- intake.c ---- */

/*
 * hd_intake_begin: get its `want` bytes from this peer, by the peer's offer (offer_len 0:
 * there is none) or in frames.
 */
void hd_intake_begin(struct hd_transfer *t, struct hd_peer *peer, const void *offer, size_t offer_len);

/*
 * hd_intake_find: the transfer that a DATA packet of len bytes is for. 0 and *out, which is NULL
 * when that has been given up meanwhile; negative: this peer has no business there.
 * hd_intake_arrived: len more bytes are in place.
 */
int hd_intake_find(struct hd_link *link, const struct hd_pkt *pkt, size_t len, struct hd_transfer **out);
void hd_intake_arrived(struct hd_transfer *t, size_t len);

/*
 * hd_intake_stop: neither the link nor a stream writes into its segments any more, and it is
 * HD_TRANSFER_HERE. False, but not with `wait`: the other process has been stopped in the middle of
 * that; it is HD_TRANSFER_CLOSING, and ends with its status when that is over.
 * hd_intake_pause: what the link fetches is HD_TRANSFER_STOPPED, and of one that is
 * HD_TRANSFER_CLOSING only the answer counts. False: the other process has been
 * stopped in the middle of that.
 */
bool hd_intake_stop(struct hd_transfer *t, bool wait);
bool hd_intake_pause(struct hd_transfer *t);

/*
 * hd_intake_sinks: others, a link or a sink, can write into its segments in the
 * order in which they come.
 */
static inline bool hd_intake_sinks(const struct hd_transfer *t)
{
	return t->count <= HD_IOV_MAX && !t->ascends;
}

#endif
