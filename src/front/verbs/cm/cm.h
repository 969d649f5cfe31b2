/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * rdma_cm(7). An id is a connection of the engine's that carries no messages, a service, or neither
 * yet; what a queue pair needs to know of its other end travels in front of the private data.
 *
 *	rdma_event_channel ── hd_evq, whose descriptor is the channel's
 *	rdma_cm_id ─┬─ hd_ep: rdma_connect, rdma_accept
 *	            ├─ hd_service: rdma_bind_addr, rdma_listen
 *	            └─ hd_request: of an id that came with RDMA_CM_EVENT_CONNECT_REQUEST
 *
 * Port spaces are the engine's name spaces of services, rdma_cm ports its service numbers.
 *
 * Engine events become rdma_cm events when the program reads them (cm/event.c), which is also when
 * queue pairs are moved, in the thread that reads. Nothing is queued or timed here.
 *
 * All ids live in one context of heddle1, but for those with native addresses of heddle0, which
 * have another; they are opened when they are first needed and never closed. Locks: hv_cm_lock
 * protects ids, and is taken before a node's; it is held in no call that waits.
 *
 * The files, lowest first: each calls those above it in this list alone (ci/rooms).
 *
 *	lock.c     the lock of ids, and how functions answer
 *	name.c     addresses
 *	head.c     what the ends say in front of the private data,
 *	ece.c      and of enhanced connection establishment
 *	device.c   the device
 *	channel.c  event channels
 *	qp.c       queue pairs
 *	group.c    multicast groups that have been joined
 *	id.c       ids
 *	request.c  a request becomes one
 *	event.c    what the engine's events mean
 *	read.c     reading them, and synchronous calls
 *	addr.c     addresses and routes are resolved
 *	option.c   options
 *	connect.c  the calling side
 *	listen.c   the called side
 *	mcast.c    joining groups
 *	ep.c       all of it in one call
 *	info.c     names of hosts
 *	newer.c    what younger releases of librdmacm have
 *	entry.c    what the linker finds
 */
#ifndef HEDDLE_FRONT_VERBS_CM_H
#define HEDDLE_FRONT_VERBS_CM_H

#include "base/sockaddr.h"
#include "front/verbs/cm/names.h"
#include "front/verbs/entry.h"

#include <infiniband/ib.h>
#include <netinet/in.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>

/* ---- channels and events --------------------------------------------------------------------- */

/*
 * Events of librdmacm's younger releases, of which the header that this is
 * built with may know nothing.
 */
enum {
	HV_EVENT_ADDRINFO_RESOLVED = RDMA_CM_EVENT_TIMEWAIT_EXIT + 1,
	HV_EVENT_ADDRINFO_ERROR,
	HV_EVENT_USER,
};

struct hv_cm_channel {
	struct rdma_event_channel pub;
	struct hd_evq *evq;
	atomic_int users; /* ids, threads that wait for events, and the program */
	/* rdma_destroy_event_channel; under the lock of cm/channel.c, as what follows */
	bool closed;
	STAILQ_ENTRY(hv_cm_channel) entry;
};

static inline struct hv_cm_channel *hv_cm_channel_of(struct rdma_event_channel *channel)
{
	return hv_container(channel, struct hv_cm_channel, pub);
}

struct hv_id;

struct hv_cm_event {
	struct rdma_cm_event pub;
	struct hv_id *owner; /* whose hv_id.unacked it is counted in */
	struct hd_event raw; /* without data */
	size_t len;
	uint8_t data[HD_CM_DATA];
};

/*
 * hv_cm_channel_get: one user more, for a thread that is about to wait; false: it has been
 * destroyed. hv_cm_channel_put: one less; the last one frees it. hv_cm_post: an event of the
 * front's own, for an id: of rdma_cm_event_type or HV_EVENT_*. 0, or -ENOMEM.
 */
bool hv_cm_channel_get(struct hv_cm_channel *channel);
void hv_cm_channel_put(struct hv_cm_channel *channel);
int hv_cm_post(struct hv_id *id, int type, int status, void *ctx);

/*
 * hv_cm_event_make (event.c): what an engine's event means to the program, filled in; false:
 * nothing, it is to be dropped. No lock is held.
 */
bool hv_cm_event_make(struct hv_cm_event *ev);

/* Flags of rdma_addrinfo that are younger than the header, too: RAI_SA and RAI_DNS. */
enum {
	HV_RAI_SA = 0x10,
	HV_RAI_DNS = 0x20,
};

/* ---- what one end tells the other ------------------------------------------------------------ */

/* At the head of the private data of requests and answers; cm/head.c says how. */
struct hv_head {
	uint8_t qp_type;
	uint8_t responder_resources, initiator_depth, retry_count, rnr_retry_count, flow_control, srq;
	uint32_t qp_num, psn, qkey;
	uint16_t src_port;
	bool native;		  /* src and dst are GIDs that the caller has named (AF_IB) */
	uint8_t src[16], dst[16]; /* IPv4 as mapped IPv6 */
};
#define HV_HEAD 60 /* bytes that it takes */

/*
 * hv_head_put: writes it and the private data to `to`, of HD_CM_DATA bytes; returns the length.
 * hv_head_get: false: it is none.
 */
size_t hv_head_put(const struct hv_head *head, const void *priv, size_t len, uint8_t *to);
bool hv_head_get(struct hv_head *head, const uint8_t *from, size_t len);

/*
 * hd_cm_data.word of rejections, and of answers of datagram services; of a connection's requests
 * and answers it holds the ECE.
 */
#define HV_WORD UINT64_C(0x72646d61636d0000)
#define HV_WORD_FOUND (HV_WORD | 0x8000) /* not a rejection at all: here is the queue pair */

/*
 * Reasons, as InfiniBand numbers them: what programs see as the status of RDMA_CM_EVENT_REJECTED
 * and, for datagrams, UNREACHABLE.
 */
#define HV_REJ_NOBODY 8	   /* invalid service id */
#define HV_REJ_CONSUMER 28 /* the program said so */
#define HV_REJ_VENDOR 35   /* it does not like the vendor's options */
#define HV_SIDR_UNSUPPORTED 1
#define HV_SIDR_REJECT 2

/* ---- ids ------------------------------------------------------------------------------------- */

enum hv_id_state {
	HV_ID_IDLE,
	HV_ID_BOUND,	  /* rdma_bind_addr: it has a port */
	HV_ID_ADDRESSED,  /* rdma_resolve_addr */
	HV_ID_ROUTED,	  /* rdma_resolve_route */
	HV_ID_CONNECTING, /* rdma_connect */
	HV_ID_ANSWERED,	  /* CONNECT_RESPONSE: rdma_establish */
	HV_ID_REQUESTED,  /* CONNECT_REQUEST: rdma_accept or rdma_reject */
	HV_ID_ACCEPTED,	  /* rdma_accept; the other end has not said that it is ready */
	HV_ID_CONNECTED,  /* of datagram services: resolved */
	HV_ID_DISCONNECTED,
	HV_ID_LISTENING,
};

/*
 * A service, which stands as long as a request that the program has read waits for an answer,
 * even without its listener.
 */
struct hv_listener {
	struct hv_context *ctx;
	struct hd_service *service;
	int users; /* the listening id, and requests */
};

struct hv_group { /* one that an id has joined */
	struct hv_group *next;
	union ibv_gid gid;
	void *context;
	bool sends_only;
	struct ibv_qp *attached;
};

struct hv_id {
	struct rdma_cm_id pub;
	struct hv_context *ctx; /* NULL: bound to no device */
	struct hv_cm_channel *channel;
	/* changed under hv_cm_lock by what other threads may meet */
	_Atomic(enum hv_id_state) state;
	bool sync;
	/* it came with RDMA_CM_EVENT_CONNECT_REQUEST; listener is whose request it was */
	bool is_request;
	struct hd_ep *ep;
	struct hv_listener *listener;
	struct hd_request *request;   /* not answered yet */
	struct sockaddr_storage from; /* of a request: where its link comes from */
	struct hv_head own, other;
	struct ibv_ece own_ece, other_ece; /* vendor_id 0: none */
	struct ibv_qp_init_attr
		*wanted; /* rdma_create_ep of a listener: of the queue pairs of its connections */
	bool own_send_cq, own_recv_cq; /* made by rdma_create_qp, with their channels */
	bool parted; /* RDMA_CM_EVENT_DISCONNECTED has been read, which is not of a rejection */
	bool left;   /* rdma_disconnect has been called */
	bool reuse, af_only;
	uint8_t tos, ack_timeout;
	bool has_ack_timeout;
	atomic_uint unacked;	 /* events that the program has read and not given back */
	struct hv_group *groups; /* joined */
	/* rdma_resolve_addrinfo, until rdma_query_addrinfo; under hv_cm_lock, like info */
	bool resolving;
	struct rdma_addrinfo *info; /* what it has found */
	/* ai_connect of rdma_create_ep: goes in front of the private data of rdma_connect */
	void *first_data;
	size_t first_len;
};

static inline struct hv_id *hv_id_of(struct rdma_cm_id *id)
{
	return hv_container(id, struct hv_id, pub);
}

extern struct hd_lock hv_cm_lock;

/* hv_cm_ret: from negative errnos (or 0) to what rdma_cm functions return. */
int hv_cm_ret(int rc);

/*
 * hv_id_type: what its connections are to the CM, whatever queue pairs the program gives them:
 * those of RDMA_PS_TCP are RC.
 */
static inline enum ibv_qp_type hv_id_type(const struct hv_id *id)
{
	return id->pub.ps == RDMA_PS_TCP ? IBV_QPT_RC : id->pub.qp_type;
}

/* hv_id_make: as rdma_create_id. channel NULL: synchronous. NULL with errno. */
struct hv_id *hv_id_make(struct hv_cm_channel *channel, void *context, enum rdma_port_space ps,
			 enum ibv_qp_type type);

/*
 * hv_id_wait: a synchronous id waits for what it has begun: 0, or -1 with the errno of the event.
 * Others: 0 at once, and they are not looked at: whoever reads their events may have destroyed them
 * by now. sync: id->sync, read before it began.
 */
int hv_id_wait(struct hv_id *id, bool sync);

/* hv_id_release: an event that a synchronous id still refers to is acknowledged. */
void hv_id_release(struct hv_id *id);

/*
 * hv_id_unpin: one event of the id less that is not acknowledged. hv_event_adopt: this one counts
 * for another id from now on.
 */
void hv_id_unpin(struct hv_id *id);
void hv_event_adopt(struct rdma_cm_event *event, struct hv_id *id);

/* hv_id_wait_acked: until the program has acknowledged all events that it has read of this id. */
void hv_id_wait_acked(struct hv_id *id);

/* hv_id_is_datagram: its queue pairs are UD. */
static inline bool hv_id_is_datagram(const struct hv_id *id)
{
	return id->pub.qp_type == IBV_QPT_UD;
}

/*
 * hv_id_only_family: AF_INET or AF_INET6 when only callers of that family are its; else 0. The
 * address of the id is set.
 */
int hv_id_only_family(const struct hv_id *id);

/*
 * hv_id_take_port: have the service's name that its address asks for, or any that is free when it
 * has no port. 0, -EADDRINUSE, …
 */
int hv_id_take_port(struct hv_id *id);

/*
 * hv_id_turn_away: a listening id takes nobody in any more; whom the program has
 * not read of is rejected.
 */
void hv_id_turn_away(struct hv_id *id);

/* hv_listener_put: one user less. With hv_cm_lock. */
void hv_listener_put(struct hv_listener *listener);

/* ---- the device, cm/device.c ----------------------------------------------------------------- */

/*
 * hv_cm_context: the context that ids live in, opened with the first call; NULL with errno.
 * hv_cm_context_of: that of a device, for ids with native addresses of heddle0.
 */
struct hv_context *hv_cm_context(void);
struct hv_context *hv_cm_context_of(enum hv_device_index index);

/*
 * hv_cm_is_dead: the context is a parent's, and no other has been opened since the fork:
 * nothing happens here any more.
 */
bool hv_cm_is_dead(void);

/*
 * hv_id_bind: the id belongs to the device from here on, with this address of it; 0, -ENODEV when
 * none of its GIDs is that.
 */
int hv_id_bind(struct hv_id *id, const struct sockaddr *addr);

/* hv_gid_index: of the GID with this address; negative: there is none. */
int hv_gid_index(const struct hv_context *ctx, const struct sockaddr *addr);

/* hv_cm_av: the address vector to this address of another, from the id's own. */
void hv_cm_av(const struct hv_id *id, const struct sockaddr *to, struct ibv_ah_attr *out);
/* hv_cm_path_make: the route of an id that has both addresses. 0, or -ENOMEM. */
int hv_cm_path_make(struct hv_id *id);

/* ---- queue pairs, cm/qp.c -------------------------------------------------------------------- */

/*
 * hv_cm_qp_connect: RTR and RTS by what is known of the other end. 0, or a negative errno.
 * hv_cm_qp_fail: to the error state, where its connection has ended, which one for datagrams does
 * not have. hv_cm_qp_give_up: to the error state, whatever it is.
 */
int hv_cm_qp_connect(struct hv_id *id);
void hv_cm_qp_fail(struct hv_id *id);
void hv_cm_qp_give_up(struct hv_id *id);

uint32_t hv_cm_psn(void); /* a random packet sequence number */

/* hv_cm_depth: how many reads and atomic operations a queue pair of the id's device takes on. */
uint8_t hv_cm_depth(const struct hv_id *id);

/*
 * hv_cm_depths: limits of the device for what is asked of it; RDMA_MAX_RESP_RES and
 * RDMA_MAX_INIT_DEPTH become these. false: too much.
 */
bool hv_cm_depths(const struct hv_id *id, uint8_t *responder, uint8_t *initiator);

/*
 * How often it is tried again: as often as 3 bits can say at most, which for messages without a
 * receive is for ever. The kernel takes what is above for that.
 */
#define HV_CM_TRIES 7
static inline uint8_t hv_cm_tries(uint8_t asked)
{
	return asked < HV_CM_TRIES ? asked : HV_CM_TRIES;
}

/* ---- addresses ------------------------------------------------------------------------------- */

/*
 * cm/name.c. hv_sockaddr_map: the GID of a native address, IPv4 as mapped IPv6;
 * hv_sockaddr_unmap: an IP address.
 */
size_t hv_sockaddr_size(const struct sockaddr *addr); /* as hd_sockaddr_size, and of a native one */
uint16_t hv_sockaddr_port(const struct sockaddr *addr);
void hv_sockaddr_set_port(struct sockaddr *addr, uint16_t port);
bool hv_sockaddr_is_any(const struct sockaddr *addr);
void hv_sockaddr_map(const struct sockaddr *addr, uint8_t out[16]);
void hv_sockaddr_unmap(const uint8_t addr[16], uint16_t port, struct sockaddr *out);

/*
 * hv_sockaddr_native: AF_IB, from its parts. hv_sockaddr_set_space: a native address without a port
 * space has this one. hv_sockaddr_fits: is it of this space? hv_sockaddr_is_infiniband: a native
 * address of some heddle0. hv_sockaddr_ip: where sockets find what an address names: 0, -EINVAL: a
 * GID that holds no address.
 */
void hv_sockaddr_native(const uint8_t gid[16], enum rdma_port_space ps, uint16_t port, struct sockaddr *out);
void hv_sockaddr_set_space(struct sockaddr *addr, enum rdma_port_space ps);
bool hv_sockaddr_fits(const struct sockaddr *addr, enum rdma_port_space ps);
bool hv_sockaddr_is_infiniband(const struct sockaddr *addr);
int hv_sockaddr_ip(const struct sockaddr *addr, struct sockaddr_storage *out);

/* ---- what both sides of a connection use, cm/connect.c --------------------------------------- */

/* hv_cm_data_fits: has it (NULL: it has none) private data, of at most so many bytes? */
bool hv_cm_data_fits(const struct rdma_conn_param *param, size_t most);

/*
 * hv_cm_ep_open, hv_cm_ep_close: the endpoint that carries the connection, id->ep. 0, -EIO in a
 * forked child, as hd_ep_open.
 */
int hv_cm_ep_open(struct hv_id *id);
void hv_cm_ep_close(struct hv_id *id);

/*
 * hv_cm_turn_down_answer: the caller rejects what it was answered, with this
 * private data; as rdma_reject.
 */
int hv_cm_turn_down_answer(struct hv_id *id, const struct hd_cm_data *data);

/*
 * hv_id_set_path: RDMA_OPTION_IB_PATH, cm/addr.c: the route is this, and
 * RDMA_CM_EVENT_ROUTE_RESOLVED follows. 0, or a negative errno.
 */
int hv_id_set_path(struct hv_id *id, const void *data, size_t len);

/* hv_ece_word, hv_ece_of: ECE as it travels, cm/ece.c. */
uint64_t hv_ece_word(const struct ibv_ece *ece);
struct ibv_ece hv_ece_of(uint64_t word);

/* ---- groups, cm/group.c ---------------------------------------------------------------------- */

/*
 * hv_group_joined: the program reads of it; fills the event. False: it has left. hv_group_leave:
 * the group of this GID, NULL: any. False: there is none.
 */
bool hv_group_joined(struct hv_cm_event *ev);
bool hv_group_leave(struct hv_id *id, const union ibv_gid *gid);
void hv_id_leave_groups(struct hv_id *id);

/* ---- requests, cm/request.c ------------------------------------------------------------------ */

/* hv_id_requested: the event gets an id for the request. False: it is turned away. */
bool hv_id_requested(struct hv_cm_event *ev, struct hv_id *listener);

/* hv_request_is_wanted: does a queue pair of the listener's fit what asks? */
bool hv_request_is_wanted(const struct hv_id *listener, const struct hv_head *head);

/*
 * hv_request_foresee: what the answer will say unless it is told otherwise: what was asked for, as
 * far as it goes. Programs move a queue pair of their own to RTS by it before they accept.
 */
void hv_request_foresee(struct hv_id *id);

#endif
