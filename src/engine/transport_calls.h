/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * What the engine provides to a transport, which includes engine/transport.h for it: there stand
 * the rules, of threads too, and the structures.
 */
#ifndef HD_ENGINE_TRANSPORT_CALLS_H
#define HD_ENGINE_TRANSPORT_CALLS_H

#ifndef HD_ENGINE_TRANSPORT_H
#error "include engine/transport.h"
#endif

/*
 * hd_link_init: fill the shared part of a link that a transport has just allocated; everything
 * else in it must be zero.
 */
void hd_link_init(struct hd_link *link, struct hd_port *port, const struct hd_link_ops *ops);

/* hd_link_up: the link that connect() began works. The engine sends HELLO over it. */
void hd_link_up(struct hd_link *link);

/*
 * hd_link_accepted: somebody called; l is the listener that was hit, NULL for
 * transports that are joined.
 */
void hd_link_accepted(struct hd_link *link, struct hd_listener *l);

/*
 * hd_link_missed: somebody of this node, of whom `joining` may have told and does no longer, has
 * gone before his HELLO was delivered.
 */
void hd_link_missed(struct hd_node *node, const struct hd_node_id *id);

/*
 * hd_link_idle: nothing has come over a link with ops->silence for a while, or the node is about to
 * sleep. Called as often as one likes.
 */
void hd_link_idle(struct hd_link *link);

/*
 * hd_link_down: the link is broken: err a negative errno, why a few words for the log or
 * NULL. See «Life of a link».
 */
void hd_link_down(struct hd_link *link, int err, const char *why);

/*
 * hd_deliver: a whole packet. pkt is private memory; payload may be shared memory and is read once.
 * 0, or negative: link down.
 */
int hd_deliver(struct hd_link *link, const struct hd_pkt *pkt, const void *payload, size_t len);

/*
 * hd_deliver_ahead: headers of packets that are there, in private memory, the next one first, at
 * most HD_AHEAD_MAX: what they will need is brought near, side by side, while hd_deliver would wait
 * for it one after the other. Changes nothing, and believes nothing. Of use where link->is_deep,
 * and not else.
 */
#define HD_AHEAD_MAX 32
void hd_deliver_ahead(struct hd_link *link, const struct hd_pkt *pkts, int count);

/*
 * hd_deliver_begin: the header of a packet whose payload of len bytes comes in pieces; link->sink
 * then says where they go. Exactly len bytes follow through the sink (room + discard == len after
 * begin), then hd_deliver_end. 0, or negative: link down.
 */
int hd_deliver_begin(struct hd_link *link, const struct hd_pkt *pkt, size_t len);
int hd_deliver_end(struct hd_link *link);

/*
 * hd_sink_copy: the next n bytes are at `from`. hd_sink_iov: where the next bytes may be read to
 * directly, at most max segments and the bytes up to the packet's end (a scratch area stands for
 * bytes to be thrown away); returns the segments, 0 at the end.
 * hd_sink_advance: n bytes have been put there. hd_sink_gone: memory that hd_sink_iov named is not
 * there: the rest is thrown away, and the packet ends in error. hd_sink_void: the other end could
 * not read what it sends: likewise, and its bytes are as if they had never come.
 */
void hd_sink_copy(struct hd_sink *sink, const void *from, size_t n);
void hd_sink_gone(struct hd_sink *sink);
void hd_sink_void(struct hd_sink *sink);
int hd_sink_iov(const struct hd_sink *sink, struct iovec *iov, int max);
void hd_sink_advance(struct hd_sink *sink, size_t n);
static inline uint64_t hd_sink_left(const struct hd_sink *sink)
{
	return sink->room + sink->discard;
}

/*
 * hd_port_active: on adds, off takes away one reason to poll this port in every turn of progress.
 */
void hd_port_active(struct hd_port *port, bool on);

/*
 * hd_node_stir: something waits from now on that only the next poll pushes on. Whoever
 * caused it may not poll, since somebody else sleeps and does: that one is woken. Does
 * nothing while nobody sleeps.
 */
void hd_node_stir(struct hd_node *node);

/*
 * hd_node_gathers: by how many the links have become more, or fewer, that have taken packets which
 * are in no other's hands yet: neither the kernel's nor, in shared memory, the other end's. While
 * there are any, say() is called before a program reads completions.
 */
void hd_node_gathers(struct hd_node *node, int links);

/*
 * hd_watch: a descriptor in the node's one epoll set, level-triggered. fn runs from progress (now
 * and then while the node is busy, at once when it wakes). A watch may be removed from within any
 * fn. events and fn may be set before add; hd_watch_events changes events later.
 */
struct hd_watch {
	int fd;
	uint32_t events; /* EPOLLIN … */
	void (*fn)(struct hd_watch *watch, uint32_t events);
};
int hd_watch_add(struct hd_node *node, struct hd_watch *watch);
int hd_watch_events(struct hd_node *node, struct hd_watch *watch, uint32_t events);
void hd_watch_remove(struct hd_node *node, struct hd_watch *watch);

/*
 * hd_timer: fn runs once from progress, `ns` nanoseconds from now or a little later;
 * coarse. set again moves it.
 */
void hd_timer_set(struct hd_node *node, struct hd_timer *timer, uint64_t ns);
void hd_timer_stop(struct hd_node *node, struct hd_timer *timer);

/* The node, as far as transports need it. Descriptors stay the node's. */
const struct hd_node_id *hd_node_id(const struct hd_node *node);
struct hd_node_page *hd_node_page(struct hd_node *node); /* our own page, writable */
/* its memfd, sealed; -1: the kernel gives none */
int hd_node_page_fd(struct hd_node *node);
/* eventfd: one write wakes the node when its sleep_seq is odd */
int hd_node_wake_fd(struct hd_node *node);

/*
 * hd_node_knows: false: no link or connect in progress refers to this node id (used to
 * throw strangers out early).
 */
bool hd_node_knows(struct hd_node *node, const struct hd_node_id *id);

/* hd_allowed: may this remote address come here (HEDDLE_ALLOW)? Logs one line when not. */
bool hd_allowed(struct hd_node *node, const struct sockaddr *from);

#endif
