/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * What the cases of rdma_cm share. Rank 0 has the service, the others call it; cases whose
 * argument is 6 do so over IPv6.
 */
#ifndef CMT_H
#define CMT_H

#include "../case.h"

#include <errno.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <string.h>

/* A call of rdma_cm answers -1 with this errno; one answers 0. */
#define CMT_ERR(ct, call, want) \
	do { \
		errno = 0; \
		CT_EQ(ct, call, -1); \
		CT_EQ(ct, errno, want); \
	} while (0)
#define CMT_OK(ct, call) \
	do { \
		if ((call) != 0) \
			ct_fail(ct, "%s:%d: %s: %s", __FILE_NAME__, __LINE__, #call, strerror(errno)); \
	} while (0)

/* Status of RDMA_CM_EVENT_REJECTED: reasons of InfiniBand's. */
#define CMT_NOBODY 8
#define CMT_CONSUMER 28
#define CMT_VENDOR 35
/* Status of RDMA_CM_EVENT_UNREACHABLE of datagram services. */
#define CMT_SIDR_NOBODY 1
#define CMT_SIDR_REJECT 2

struct cmt {
	struct ct *ct;
	int family;
	enum rdma_port_space ps; /* TCP, unless the case sets it before it goes on */
	struct rdma_event_channel *ch;
	struct rdma_cm_id *listener, *id;
	struct sockaddr_storage at; /* where the service is */
};

static inline struct sockaddr *cmt_at(struct cmt *c)
{
	return (struct sockaddr *)&c->at;
}

/*
 * cmt_network: all ranks are in a network of their own from here on, which goes with them: lo,
 * and what these commands of a shell make. Unsupported where that cannot be. Before anything
 * of the library is called.
 */
void cmt_network(struct ct *ct, const char *commands);

/* ---- ends ---- */

/* cmt_open makes a channel; cmt_close destroys the ids, their queue pairs and the channel. */
void cmt_open(struct ct *ct, struct cmt *c);
void cmt_close(struct cmt *c);
/*
 * cmt_here: the loopback address of a family with this port, cmt_any: the wildcard; cmt_port: of an
 * address, host byte order.
 */
void cmt_here(int family, uint16_t port, struct sockaddr_storage *out);
void cmt_any(int family, uint16_t port, struct sockaddr_storage *out);
uint16_t cmt_port(const struct sockaddr_storage *at);
void cmt_set_port(struct sockaddr_storage *at, uint16_t port);
/* cmt_id makes an id on c's channel. */
struct rdma_cm_id *cmt_id(struct cmt *c);

/*
 * cmt_listen: a listener at a port of its own, which the other ranks learn by cmt_find. cmt_serve:
 * both, and cmt_find, by rank.
 */
void cmt_listen(struct cmt *c, int backlog);
void cmt_find(struct cmt *c);
void cmt_serve(struct ct *ct, struct cmt *c);

/* ---- events ---- */

/*
 * cmt_event: the next event, which must be of this type, and is to be acknowledged. cmt_expect: of
 * this id, with this status; is.
 */
struct rdma_cm_event *cmt_event(struct cmt *c, enum rdma_cm_event_type type);
void cmt_expect(struct cmt *c, enum rdma_cm_event_type type, struct rdma_cm_id *id, int status);
/* cmt_read: whatever comes next. cmt_quiet fails if an event comes within so many milliseconds. */
struct rdma_cm_event *cmt_read(struct cmt *c);
void cmt_quiet(struct cmt *c, int ms);

/* ---- connections ---- */

/* cmt_resolve: an id with address and route; cmt_asked: the id that comes with the next request. */
struct rdma_cm_id *cmt_resolve(struct cmt *c);
struct rdma_cm_id *cmt_asked(struct cmt *c);
/*
 * cmt_param: usual parameters, with private data of this length that ct_fill makes of its seed
 * in buf; cmt_said compares.
 */
struct rdma_conn_param cmt_param(void *buf, uint8_t len, uint64_t seed);
void cmt_said(struct cmt *c, const void *data, size_t shown, size_t len, size_t room, uint64_t seed);
/*
 * cmt_qp gives the id a queue pair with queues of its own. cmt_join: c->id is connected to the
 * other of two ranks', with queue pairs.
 */
void cmt_qp(struct cmt *c, struct rdma_cm_id *id);
void cmt_join(struct cmt *c);
/* cmt_pass: a message each way between the two ends of c->id. */
void cmt_pass(struct cmt *c);
enum ibv_qp_state cmt_state(struct cmt *c, struct rdma_cm_id *id);

#endif
