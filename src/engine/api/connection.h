/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Connections, and the queues of what happens to them. Rules that hold for all calls: engine.h. */
#ifndef HD_ENGINE_API_CONNECTION_H
#define HD_ENGINE_API_CONNECTION_H

#include "engine/api/types.h"

/* ---- event queues ---------------------------------------------------------------------------- */

enum hd_event_code {
	/* of a service: somebody asks for a connection: `request`, with its private data */
	HD_EV_REQUEST,
	/* of an endpoint: it is connected; at the caller with the acceptor's private data */
	HD_EV_UP,
	/*
	 * of an endpoint: the other end has left, with its front's `word`, or
	 * is no more: HD_WORD_LOST
	 */
	HD_EV_DOWN,
	/*
	 * of an endpoint that confirms: accepted, with the acceptor's private data;
	 * hd_ep_confirm or hd_ep_disconnect
	 */
	HD_EV_ANSWER,
	/*
	 * of an endpoint with HD_EP_STRICT: it failed for what the other end did to it; err is
	 * a status: HD_S_ACCESS, …
	 */
	HD_EV_EP_FAILED,
	/* of a pair: its other end, or another epoch of that, has been heard for the first time */
	HD_EV_EP_ESTABLISHED,
	/*
	 * of an endpoint that hd_ep_pause stopped: what was under way has
	 * ended; or hd_ep_drain: all has
	 */
	HD_EV_EP_DRAINED,
	/*
	 * of a pair: its second path is its first now: asked for here or at the other end, or
	 * because the first was lost
	 */
	HD_EV_EP_MIGRATED,
	/* of a pair: the other end has migrated, and here there is no second path that is armed */
	HD_EV_EP_UNMIGRATED,
	/*
	 * of a pair that has failed by itself, for what either end did:
	 * everything posted has completed
	 */
	HD_EV_EP_OVER,
	HD_EV_ALARM, /* of an endpoint: the time of hd_ep_alarm has come */
	/* of an endpoint that failed and shares its receive queue: it takes no further receive */
	HD_EV_RQ_LAST,
	HD_EV_FRONT = 256, /* codes from here on are the fronts' own */
};

/*
 * One event. An error entry has err above 0; code then says what failed: HD_EV_UP, a connection
 * that was asked for (ECONNREFUSED: nobody listens there, when prov_err is ENOENT, or a rejection
 * with its private data; ETIMEDOUT; …).
 */
struct hd_event {
	uint32_t code;
	int err;      /* 0, or a positive errno */
	int prov_err; /* what it was in the engine's own terms; 0: the same */
	void *owner;  /* of the endpoint or service, or what the front gave */
	void *ctx;
	/* the other end's front's word (struct hd_cm_data), or a front's own */
	uint64_t word;
	struct hd_request *request;   /* HD_EV_REQUEST */
	struct hd_evq_entry **unread; /* of a request: says where this waits, until it is read */
	const void *data;	      /* private data, or a front's own bytes; copied */
	size_t len;
};

/*
 * hd_evq_open: a queue of events, for at most `size` of them. It belongs to no node and has a lock
 * of its own (a leaf): every function here may be called by any thread, with a node's lock held or
 * not, but where it says otherwise.
 * hd_evq_close: drops what is in it. -EBUSY while endpoints, services, or hd_evq_use hold it.
 * hd_evq_use: a front's own objects hold it, or no longer do (by -1). hd_evq_is_used: would
 * hd_evq_close be refused?
 */
int hd_evq_open(size_t size, struct hd_evq **out);
int hd_evq_close(struct hd_evq *evq);
void hd_evq_use(struct hd_evq *evq, int by);
bool hd_evq_is_used(struct hd_evq *evq);

/*
 * hd_evq_open_told: one that keeps nothing: tell() gets each event as it happens, with the lock of
 * the node where it happens, out of the middle of the engine: it may write completions, but post
 * nothing else (see hd_deferred_post); event->data is gone afterwards.
 */
int hd_evq_open_told(void (*tell)(void *arg, const struct hd_event *event), void *arg, struct hd_evq **out);

/*
 * hd_evq_post: append an event. -EOVERFLOW: it was full, now or before: it is overrun for good, and
 * ends with an error entry of that errno, over which no further event is taken. -ENOMEM.
 * hd_evq_forget: drop the events of this owner; the front frees the owner.
 * hd_evq_forget_ctx: those with this ctx.
 */
int hd_evq_post(struct hd_evq *evq, const struct hd_event *event);
void hd_evq_forget(struct hd_evq *evq, const void *owner);
void hd_evq_forget_ctx(struct hd_evq *evq, const void *ctx);

/*
 * hd_evq_read: give the oldest event to take(), which runs under the evq's lock and must not call
 * back. take's answer is returned; the event is then gone, if that is not negative and HD_EVQ_PEEK
 * is not set; one that is refused stays, and its descriptor tells of it anew. -EAGAIN: there is
 * none. -EIO: the oldest is an error entry, and HD_EVQ_ERROR is not set; with HD_EVQ_ERROR the
 * oldest error entry is read, and its data stays valid until the next read. Makes progress in the
 * nodes whose objects are bound to the evq when there is nothing; the caller holds no node's lock.
 */
enum hd_evq_how {
	HD_EVQ_PEEK = 1 << 0,
	HD_EVQ_ERROR = 1 << 1
};
typedef ssize_t (*hd_event_fn)(const struct hd_event *event, void *arg);
ssize_t hd_evq_read(struct hd_evq *evq, unsigned how, hd_event_fn take, void *arg);

/* hd_evq_has: is there an event to be read? Makes no progress. */
bool hd_evq_has(struct hd_evq *evq);

/*
 * hd_evq_wait: sleep until there is an event, or timeout_ms (negative: none) has passed: 0,
 * -EAGAIN; -EINTR: a signal handler ran that is not to restart calls, or, with any_signal, any one.
 * Makes progress in those nodes, really sleeps; no node's lock is held. A point of cancellation.
 * hd_evq_fd, hd_evq_arm: as hd_cq_fd and hd_cq_arm, without any lock.
 */
int hd_evq_wait(struct hd_evq *evq, int timeout_ms, bool any_signal);
int hd_evq_fd(struct hd_evq *evq);
int hd_evq_arm(struct hd_evq *evq);

/*
 * hd_evq_event_fd: a descriptor that is readable exactly while the queue has an event, for programs
 * that poll it without arming: nodes whose objects are bound from now on make progress by
 * themselves, if they are opened with `serve`. Never to be read; O_NONBLOCK is the program's to
 * set. An event that there is no memory for is lost from now on, and nothing else.
 * hd_ep_set_evq, hd_service_set_evq: events of this endpoint or service, those that nobody has read
 * among them, go to another queue. The node's lock is held; -ENOMEM, and nothing has changed.
 * hd_evq_move: the same for what a front has posted under this owner.
 */
int hd_evq_event_fd(struct hd_evq *evq);
void hd_evq_move(struct hd_evq *from, struct hd_evq *to, const void *owner);
int hd_ep_set_evq(struct hd_ep *ep, struct hd_evq *evq);
int hd_service_set_evq(struct hd_service *service, struct hd_evq *evq);

/* ---- connections ----------------------------------------------------------------------------- */

/*
 * Two HD_EP_MSG endpoints get connected like this:
 *
 *	caller                                       called
 *	                                             hd_service_open, hd_service_listen
 *	hd_ep_connect   ─── CONNECT ─────────────►   HD_EV_REQUEST
 *	                                             hd_request_reject, or hd_ep_accept by any
 *	                                             endpoint of any node of the process
 *	                ◄── ACCEPT, or REJECT ────   (HD_EV_UP with err at the caller)
 *	HD_EV_UP        ─── READY ───────────────►   HD_EV_UP
 *
 * and part by hd_ep_disconnect or hd_ep_close at either end: HD_EV_DOWN at the other; or by the
 * death of either. An endpoint is connected once in its life. Receives may be posted from
 * hd_ep_open on. When it is no longer connected, receives that are posted and sends that are under
 * way complete with HD_S_CANCELLED (HD_S_LOST and the like when a link broke), later sends and
 * receives are refused with -ENOTCONN; what had come whole stays to be received.
 */
#define HD_CM_DATA 256 /* bytes of private data; more is cut off */

struct hd_cm_data {
	const void *data; /* private data; copied */
	size_t len;
	uint64_t word; /* a word of the front's own, such as limits */
};

/*
 * A service is called by a name of its own within a name space: TCP ports have space 0, and number
 * 0 means the port it listens on. In other spaces (rdma_cm port spaces, connection qualifiers) it
 * listens at one of 16 TCP ports that space and number choose, so that callers on other hosts find
 * it; a port in bind means nothing then. Such a name is taken once on a host, at each address; two
 * services at all addresses of one family each have it both, and tell by `wants` whose a caller is.
 */
struct hd_service_attr {
	const struct sockaddr *bind; /* as in struct hd_ep_attr */
	uint32_t space;
	uint64_t number;
	/* space not 0, at all addresses: AF_INET or AF_INET6 when those of one family are meant */
	int family;
};

struct hd_listen_args {
	struct hd_evq *evq; /* where requests go; bound until hd_service_close */
	void *owner;	    /* hd_event.owner of them */
	uint32_t backlog;   /* requests that may wait for an answer */
	/*
	 * Is a request with this private data for it? False: its caller looks further. With
	 * the lock; NULL: all are.
	 */
	bool (*wants)(const void *owner, const void *data, size_t len);
	/*
	 * Looks at a request before it becomes an event, with the node's lock: 0, or the word that
	 * it is rejected with. NULL: nobody does.
	 */
	uint64_t (*screen)(void *owner, const struct hd_cm_data *data);
	/* a request whose caller goes before it is read stays, as one that has been read does */
	bool keeps;
};

/*
 * hd_service_open: a place where connections can be asked for: it has its name from here on, but
 * turns callers away until hd_service_listen: 0, -EISCONN: it listens already, -ENOMEM.
 * hd_service_open: -EADDRINUSE, and as hd_ep_open. hd_service_close: rejects those that wait; their
 * handles are void.
 * hd_service_shut: nobody is taken in any more, requests that the program has not read of are
 * rejected, and the name, the port and the event queue are free; requests that it has read stay,
 * and their number is returned: they may be answered until hd_service_close, though nobody reads an
 * event queue of the node any more, so an answer wants a hd_node_poll after it. hd_service_listen:
 * -ESHUTDOWN from here on.
 */
int hd_service_open(struct hd_node *node, const struct hd_service_attr *attr, struct hd_service **out);
int hd_service_listen(struct hd_service *service, const struct hd_listen_args *args);
void hd_service_set_backlog(struct hd_service *service, uint32_t backlog);
int hd_service_name(const struct hd_service *service, int family, struct sockaddr_storage *out);
uint32_t hd_service_shut(struct hd_service *service);
void hd_service_close(struct hd_service *service);

/*
 * A request is its service's, and stands until it is accepted or rejected, or its service is
 * closed; also when its caller has gone.
 * hd_request_from: the name of the endpoint that asks. hd_request_reject: say no, with private
 * data; the request is void.
 */
void hd_request_from(const struct hd_request *request, struct sockaddr_storage *out);
void hd_request_reject(struct hd_request *request, const struct hd_cm_data *data);

/*
 * hd_ep_accept: this endpoint takes the connection; HD_EV_UP follows, or HD_EV_UP with err. Called
 * WITHOUT any node's lock: it takes that of the endpoint's node and that of the service's, one
 * after the other, and the service's node makes a turn of progress. The request is void after 0 and
 * after -ECONNABORTED: its caller has gone. -EISCONN: the endpoint is or was connected already.
 */
int hd_ep_accept(struct hd_ep *ep, struct hd_request *request, const struct hd_cm_data *data);

/*
 * hd_ep_connect: ask for a connection to the service at this address. 0: HD_EV_UP follows;
 * -EISCONN, -EINVAL, -ENOMEM.
 */
struct hd_connect_args {
	const struct sockaddr *to;
	/* 0: TCP ports, and the port in `to` is the number; else that port means nothing */
	uint32_t space;
	uint64_t number;
	uint32_t timeout_ms; /* in all; 0: each step as long as HEDDLE_ANSWER_TIMEOUT says */
	/* HD_EV_ANSWER comes instead of HD_EV_UP, and the acceptor waits for hd_ep_confirm */
	bool confirms;
	struct hd_cm_data data;
};
int hd_ep_connect(struct hd_ep *ep, const struct hd_connect_args *args);

/*
 * hd_ep_confirm: after HD_EV_ANSWER: connected from here on, without another event. -ENOTCONN:
 * not asked to, or no longer.
 */
int hd_ep_confirm(struct hd_ep *ep);

/*
 * hd_ep_presume: this endpoint has accepted, and its program has heard of the other end by other
 * means: HD_EV_UP comes now and not when the caller confirms, which may take as long as it likes,
 * and what goes wrong from here on is HD_EV_DOWN. -EISCONN: it is up, or presumed to be; -ENOTCONN:
 * it has not accepted.
 */
int hd_ep_presume(struct hd_ep *ep);

/*
 * hd_ep_disconnect: leave. Everything posted has completed when it returns. -ENOTCONN. The other
 * end's HD_EV_DOWN has this word of the front's own; without one (why is NULL) it has 0, where it
 * has left, and HD_WORD_LOST, where it has died, or the way to it. After HD_EV_ANSWER that is a
 * rejection: HD_EV_UP there, with the word and the private data.
 */
#define HD_WORD_LOST UINT64_MAX
int hd_ep_disconnect(struct hd_ep *ep, const struct hd_cm_data *why);

/* hd_ep_is_over: its connection has ended, or came to nothing. */
bool hd_ep_is_over(const struct hd_ep *ep);

/*
 * hd_ep_down_after: HD_EV_DOWN of this connection comes when the program has read what the queue
 * pair with this hd_ep_number, of the same node, had completed by then; or some 50 ms later, or
 * when the program leaves itself. 0: it does not wait, as at first.
 */
void hd_ep_down_after(struct hd_ep *ep, uint32_t number);

/*
 * hd_ep_carries: this connection is that of the queue pair with this hd_ep_number, of the same
 * node; for hd_view_node alone. hd_ep_down_after says so as well.
 */
void hd_ep_carries(struct hd_ep *ep, uint32_t number);

/*
 * hd_ep_alarm: HD_EV_ALARM follows this long after a connection is over, unless the endpoint is
 * closed before. -ENOTCONN: it is not over.
 */
int hd_ep_alarm(struct hd_ep *ep, uint32_t ms);

/* hd_ep_peer_name: the name of the other end. -ENOTCONN. */
int hd_ep_peer_name(const struct hd_ep *ep, struct sockaddr_storage *out);

/*
 * hd_ep_to: where sends and one-sided operations of a HD_EP_MSG or HD_EP_PAIRED endpoint go: a
 * place that always holds a destination, valid as long as the endpoint. While it is not connected
 * that is one which refuses with -ENOTCONN.
 */
struct hd_dest **hd_ep_to(struct hd_ep *ep);

/* hd_qp_send: as hd_sendv to that place, by a shorter way, of an endpoint with HD_EP_PAIRED. */
int hd_qp_send(struct hd_ep *ep, const struct iovec *iov, int count, uint64_t tag, uint64_t imm, void *ctx,
	       uint32_t flags);

#endif
