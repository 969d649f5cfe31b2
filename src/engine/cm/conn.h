/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Connections between the engine's files: conn.c the two ends, call.c what the caller does,
 * cm.c services and requests.
 */
#ifndef HD_ENGINE_CONN_H
#define HD_ENGINE_CONN_H

#include "engine/cm/state.h"
#include "engine/link/link.h"

#include <string.h>

enum hd_conn_state {
	HD_CONN_IDLE,	  /* not connected yet */
	HD_CONN_CALLING,  /* caller: a way to the service is being made */
	HD_CONN_ASKED,	  /* caller: CONNECT is sent */
	HD_CONN_REACHING, /* caller: accepted; a way to the endpoint that did is being made */
	HD_CONN_AGREED,	  /* caller: there; the program is asked to confirm */
	HD_CONN_ANSWERED, /* acceptor: ACCEPT is sent, READY has not come */
	HD_CONN_UP,
	HD_CONN_OVER,
	HD_CONN_STATES,
};

/* hd_conn_state_name: also of a state that another process says. */
const char *hd_conn_state_name(enum hd_conn_state state);

/* Private data on its way. */
struct hd_private {
	uint64_t word;
	size_t len;
	uint8_t data[HD_CM_PRIVATE];
};

/*
 * hd_private_take: what came as the payload of a packet, with zeros behind it. False: it
 * is longer than any may be.
 */
static inline bool hd_private_take(struct hd_private *p, uint64_t word, const void *payload, size_t len)
{
	*p = (struct hd_private){ .word = word, .len = len };
	if (len > sizeof(p->data))
		return false;
	if (len) /* else there may be no payload at all */
		memcpy(p->data, payload, len);
	return true;
}

struct hd_conn {
	struct hd_ep *ep;
	enum hd_conn_state state;
	/* whom the way of this state leads to, referenced and followed; NULL: there is none */
	struct hd_dest *dest;
	struct hd_follow follow; /* of dest */
	/*
	 * caller: HD_CONN_ASKED: its peer owes the answer, whoever has the service's port by then
	 */
	struct hd_pending asked;
	struct hd_timer timer; /* all but the states at the ends are left within a time */
	uint64_t due;	       /* caller: when all of it must be over; 0: no such time */
	struct hd_patience patience;
	uint32_t number;      /* caller: of the last question */
	uint32_t asked_index; /* and the endpoint that it was for, of `asked.peer` */
	uint16_t asked_gen;
	uint64_t space_number; /* caller: of the service */
	uint32_t space;
	unsigned next;	/* caller, space not 0: hd_space_port to be tried next */
	bool timed_out; /* a port has not answered */
	bool shut;	/* a node of this host has, which HEDDLE_TRANSPORT keeps us from */
	/* HD_CONN_ASKED: the service closes, and its program answers all the same */
	bool kept;
	/*
	 * whom we asked we knew before, and did not call: it may have gone,
	 * and another have its port
	 */
	bool known;
	/* how often all its ports have been called, or the acceptor's name looked up, once more */
	unsigned again;
	bool misled; /* that name has led to another so far */
	bool heard;  /* it is a service, or the caller, that has said no */
	/*
	 * caller: how one whom it had asked has gone before it answered (a
	 * negative errno); 0: none has
	 */
	int lost;
	bool confirms;		/* caller: the program says when READY goes */
	bool presumed;		/* acceptor: HD_EV_UP has come before READY */
	uint64_t token;		/* of the acceptor */
	struct hd_node_id node; /* of the other end */
	uint64_t realm;		/* acceptor: whose that is */
	/* the other end, from HD_CONN_REACHING or HD_CONN_ANSWERED on: index and generation */
	struct hd_announce other;
	/* acceptor: HD_CONN_ANSWERED: `other` of `node`: answered.c */
	struct hd_caller *caller;
	LIST_ENTRY(hd_conn) by_caller; /* of that */
	/* caller: what is to be handed on, to the service or, from ACCEPT on, to the program */
	struct hd_private priv;
	uint32_t carries; /* hd_ep_carries; 0: nothing is known */
	struct {
		/* of the queue pair whose completions are read before HD_EV_DOWN; 0: of none */
		uint32_t number;
		/* that one's, where it was known when the connection ended */
		uint32_t index;
		uint32_t tx_mark, rx_mark; /* hd_cq_mark */
		unsigned looks;
		uint16_t gen;
		bool held; /* HD_EV_DOWN is */
		uint64_t word;
	} last;
	struct sockaddr_storage at; /* by what name this end knows the other: hd_ep_peer_name */
};

/* A service is an endpoint that is called, and takes no messages. */
struct hd_service {
	struct hd_ep *ep;		/* NULL: it is shut, and has only requests */
	struct sockaddr_storage was[2]; /* its names, then, one of each family */
	struct hd_node *node;
	struct hd_evq *evq;
	void *owner;
	uint32_t space;
	uint64_t number;
	int claim; /* hd_space_claim; -1: none */
	uint32_t backlog, pending;
	bool (*wants)(const void *owner, const void *data, size_t len); /* hd_listen_args */
	uint64_t (*screen)(void *owner, const struct hd_cm_data *data); /* struct hd_listen_args */
	bool keeps;							/* the same */
	LIST_HEAD(, hd_request) requests;
	LIST_ENTRY(hd_service) entry; /* hd_conns.services */
};

struct hd_request {
	LIST_ENTRY(hd_request) entry;
	struct hd_service *service;
	struct hd_peer *peer; /* of the caller; NULL once it is gone */
	/* in whose budget it is counted: a share of that, which may outlive the peer */
	struct hd_share *share;
	struct hd_of_peer of_peer, of_call; /* HD_OF_PEER_ASKED and HD_OF_PEER_CALL, while `peer` */
	struct hd_evq_entry *unread;	    /* its event, with the lock of service->evq */
	struct hd_node_id node;
	uint64_t realm; /* of the caller: base/realm.h */
	struct hd_announce from;
	uint32_t op;
	struct sockaddr_storage name; /* of the caller */
};

/* ---- answered.c ---- */

/*
 * hd_conn_await: this connection waits for its caller, `other` of `node`; 0 or -ENOMEM.
 * hd_conn_unawait: no longer, if it has.
 *
 * hd_conns_orphan: this caller's node is gone, or (when gone is not NULL) its endpoint is: who
 * has accepted and waits for him waits no longer. Those who are connected follow a
 * destination, and learn by that.
 */
int hd_conn_await(struct hd_conn *c);
void hd_conn_unawait(struct hd_conn *c);
void hd_conns_orphan(struct hd_peer *peer, const struct hd_announce *gone);

/* ---- conn.c and call.c ---- */

/*
 * hd_conn_open: the endpoint (HD_EP_MSG) can be connected: 0 or -ENOMEM. hd_conn_close: it closes,
 * and tells everybody so (GONE): nothing completes, no event is posted; once more does nothing.
 */
int hd_conn_open(struct hd_ep *ep);
bool hd_conn_is_shown_to(const struct hd_ep *ep,
			 struct hd_page_ep *what); /* of its class: for the other end alone */
void hd_conn_close(struct hd_ep *ep);

/*
 * A packet of the other end's has come, as hd_deliver. hd_conn_accepted: ACCEPT, from the service's
 * node. hd_conn_rejected: REJECT, from there. hd_conn_ready: READY, the caller is there; whoever is
 * not expected is told that nobody is here for him.
 * hd_conn_left: LEAVE, from the other end or from one that asked a service.
 */
int hd_conn_accepted(struct hd_link *link, const struct hd_pkt *pkt, const void *payload, size_t len);
int hd_conn_rejected(struct hd_link *link, const struct hd_pkt *pkt, const void *payload, size_t len);
int hd_conn_ready(struct hd_link *link, const struct hd_pkt *pkt, const void *payload, size_t len);
int hd_conn_left(struct hd_link *link, const struct hd_pkt *pkt, const void *payload, size_t len);

/*
 * hd_declines_end (decline.c): the node closes: whoever was to be told that a caller of
 * ours does not come is not.
 */
void hd_declines_end(struct hd_node *node);

/*
 * hd_callers_ended: the peer is gone, and with it who has called from there: hd_requests_orphan,
 * hd_conns_orphan. Link's observer.
 */
void hd_callers_ended(struct hd_peer *peer, enum hd_status status);

/*
 * hd_conn_expect: the endpoint answers this request: READY may come, and *answer is what the caller
 * is told, but for the private data. 0; -EINVAL: not that kind of endpoint; -EISCONN; -EACCES:
 * another authorization key; -EIO: no random number; -ENOMEM. hd_conn_unexpect: the answer could
 * not be given.
 */
int hd_conn_expect(struct hd_ep *ep, const struct hd_request *request, struct hd_accept *answer);
void hd_conn_unexpect(struct hd_ep *ep);

/* ---- last.c ---- */

/*
 * hd_conn_down: it was up and is over: HD_EV_DOWN with this word, at once, or when what
 * hd_ep_down_after names has been read. hd_conn_last_tell: now, if that has not been posted.
 */
void hd_conn_down(struct hd_conn *c, uint64_t word);
void hd_conn_last_tell(struct hd_conn *c);

/* ---- cm.c ---- */

/*
 * hd_conn_called: CONNECT has come, as hd_deliver: a request, if there is such a
 * service; else it is refused.
 */
int hd_conn_called(struct hd_link *link, const struct hd_pkt *pkt, const void *payload, size_t len);

/*
 * Requests that wait for an answer need none any more. hd_requests_gone: this endpoint of the
 * peer's is gone. hd_requests_orphan: all of the peer's are. hd_request_withdrawn: this endpoint of
 * it gives up its request with number op.
 */
void hd_requests_gone(struct hd_peer *peer, uint32_t index, uint16_t gen);
void hd_requests_orphan(struct hd_peer *peer);
void hd_request_withdrawn(struct hd_peer *peer, uint32_t index, uint32_t op);

/* hd_cm_copy: as much of private data as there is room for. */
static inline size_t hd_cm_copy(void *to, const struct hd_cm_data *from)
{
	size_t len = from && from->data ? from->len : 0;

	if (len > HD_CM_PRIVATE)
		len = HD_CM_PRIVATE;
	if (len)
		memcpy(to, from->data, len);
	return len;
}

/* hd_listeners_forked: in a child: the names of services are the parent's. */
void hd_listeners_forked(struct hd_node *node);

/*
 * check.c, in builds with assertions. hd_service_check: its requests are counted, and found by whom
 * they are of. hd_conn_check: it has what its state says. hd_conns_check: all services of a node.
 */
#ifdef NDEBUG
static inline void hd_service_check(const struct hd_service *service)
{
}
static inline void hd_conn_check(const struct hd_conn *c)
{
}
static inline void hd_conns_check(const struct hd_node *node)
{
}
#else
void hd_service_check(const struct hd_service *service);
void hd_conn_check(const struct hd_conn *c);
void hd_conns_check(const struct hd_node *node);
#endif

#endif
