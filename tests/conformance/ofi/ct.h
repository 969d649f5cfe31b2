/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* What the cases of ofi-conformance may use beside the harness. */
#ifndef CT_H
#define CT_H

#include "../case.h"

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>

#include "older.h"

#define CT_NAME 256 /* bytes of an endpoint's name */
#define CT_API FI_VERSION(1, 17)
#define CT_MR_NONE (-1)

/*
 * Whether libfabric may be loaded once for all cases: not where cases set Heddle's
 * variables for single processes.
 */
extern const bool ct_loads_once;

#define CT_OK(ct, call) \
	do { \
		long long ct_rc = (long long)(call); \
		if (ct_rc) \
			ct_fail(ct, "%s:%d: %s: %lld (%s)", __FILE_NAME__, __LINE__, #call, ct_rc, \
				fi_strerror((int)(ct_rc < 0 ? -ct_rc : ct_rc))); \
	} while (0)
/* Any refusal will do where the page names no errno, but not -FI_EAGAIN, which means "later". */
#define CT_REFUSED(ct, call) \
	do { \
		long long ct_rc = (long long)(call); \
		if (ct_rc >= 0 || ct_rc == -FI_EAGAIN) \
			ct_fail(ct, "%s:%d: not refused: %s gives %lld", __FILE_NAME__, __LINE__, #call, \
				ct_rc); \
	} while (0)
/* Calls again while the provider says -FI_EAGAIN, reading the endpoint's queues in between. */
#define CT_POST(e, call) \
	do { \
		ssize_t ct_rc; \
		double ct_end = ct_deadline((e)->ct); \
		while ((ct_rc = (call)) == -FI_EAGAIN) { \
			ct_late((e)->ct, ct_end, #call " to be accepted"); \
			if (!ct_progress(e)) \
				ct_pause(); \
		} \
		if (ct_rc) \
			ct_fail((e)->ct, "%s:%d: %s: %zd (%s)", __FILE_NAME__, __LINE__, #call, ct_rc, \
				fi_strerror((int)-ct_rc)); \
	} while (0)

/* ---- fabric objects (fab.c) ---- */

struct ct_want {	      /* what a case asks for; zero means the usual */
	uint64_t caps;	      /* 0: FI_MSG, and FI_TAGGED where the provider has it */
	enum fi_ep_type type; /* 0: the one that the program was told */
	int mr_mode;	      /* of the hints; 0: the usual, CT_MR_NONE: no bit */
	uint64_t mode;	      /* the info must have these bits, or the case is unsupported */
	uint64_t tx_op_flags, rx_op_flags;
	uint64_t tx_bind, rx_bind; /* added to FI_TRANSMIT and FI_RECV when the CQs are bound */
	uint64_t msg_order;
	size_t max_order; /* bytes for which writes and reads keep the order of data */
	uint64_t tx_comp_order, rx_comp_order;
	enum fi_resource_mgmt rm; /* 0: FI_RM_ENABLED */
	enum fi_cq_format format; /* 0: FI_CQ_FORMAT_TAGGED */
	enum fi_wait_obj wait;
	struct fid_wait *wait_set; /* with FI_WAIT_SET */
	enum fi_cq_wait_cond cond;
	enum fi_av_type av_type;
	uint64_t av_flags;
	enum fi_progress progress;
	enum fi_threading threading; /* 0: the one that the program was told */
	size_t cq_size;
	size_t rx_size;			 /* receives at once; 0: as many as the provider says */
	bool split;			 /* a CQ for each direction */
	bool disabled;			 /* do not enable the endpoint */
	bool late;			 /* ct_rig_open_counted binds after fi_enable */
	bool counters;			 /* bind a counter for sends and one for receives */
	const char *domain_key, *ep_key; /* authorization keys; NULL: none */
	bool av_keys;			 /* FI_AV_AUTH_KEY */
};

struct ct_dom {
	struct ct *ct;
	struct ct_want want;
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
};

struct ct_comp { /* one completion, good or bad, of whatever CQ format */
	void *ctx;
	uint64_t flags;
	size_t len;
	void *buf;
	uint64_t data;
	uint64_t tag;
	fi_addr_t src;
	size_t olen;
	int err; /* 0 when successful */
	bool tx; /* read from the transmit CQ of an endpoint with two */
};

struct ct_ep {
	struct ct *ct;
	struct ct_dom *dom;
	struct fid_av *av;
	struct fid_cq *txcq, *rxcq; /* the same one unless want.split */
	struct fid_cntr *txcntr, *rxcntr;
	struct fid_ep *ep;
	struct fid_eq *eq;	  /* FI_EP_MSG: of its connection */
	struct fid_pep *pep;	  /* FI_EP_MSG, rank 0: where it was called */
	char peer[CT_NAME];	  /* FI_EP_MSG: whom to call */
	fi_addr_t addr[CT_PROCS]; /* the endpoints of the other ranks, after ct_join */
	char name[CT_NAME];
	size_t namelen;
	struct ct_comp *stash; /* completions read and not yet asked for: [head, tail) */
	size_t head, tail, cap;
};

/* ct_node: the source address of this rank, or NULL. */
const char *ct_node(const struct ct *ct);
/* ct_hints gives the hints of a case, to be freed with fi_freeinfo. */
struct fi_info *ct_hints(struct ct *ct, const struct ct_want *want);
/* ct_getinfo asks the provider; its errno is returned, with NULL in *info. */
int ct_getinfo(struct ct *ct, struct fi_info *hints, struct fi_info **info);
/* ct_open opens fabric and domain; a refusal at fi_getinfo makes the case unsupported. */
void ct_open(struct ct *ct, struct ct_dom *dom, const struct ct_want *want);
void ct_close(struct ct_dom *dom);
/* ct_ep_open opens an endpoint with CQ and AV, and enables it. */
void ct_ep_open(struct ct_dom *dom, struct ct_ep *ep);
void ct_ep_enable(struct ct_ep *ep);
void ct_ep_close(struct ct_ep *ep);
/* ct_insert adds a name that was got from a peer, as one address. */
fi_addr_t ct_insert(struct ct_ep *ep, const char *name);
/* ct_join exchanges names with all ranks and inserts them into the endpoint's AV. */
void ct_join(struct ct_ep *ep);
/* ct_start opens domain and endpoint and joins: what most cases begin with. */
void ct_start(struct ct *ct, struct ct_dom *dom, struct ct_ep *ep, const struct ct_want *want);
/*
 * ct_start_up is ct_start, and the ranks have talked: before a connection is up -FI_EAGAIN may
 * be the answer to anything.
 */
void ct_start_up(struct ct *ct, struct ct_dom *dom, struct ct_ep *ep, const struct ct_want *want);
/* ct_finish meets the other ranks and closes both; every fi_close must succeed. */
void ct_finish(struct ct_ep *ep);
/*
 * ct_finish_quiet is ct_finish of endpoints that have refused calls: they still work,
 * and nothing comes of those.
 */
void ct_finish_quiet(struct ct_ep *ep);

/* ---- completions (comp.c) ---- */

/* ct_read_cq reads at most one entry of a CQ, an error entry included, into *c. */
bool ct_read_cq(struct ct_ep *e, struct fid_cq *cq, struct ct_comp *c);
/* ct_poll takes the oldest completion, if there is one. */
bool ct_poll(struct ct_ep *e, struct ct_comp *c);
/*
 * ct_any waits for a completion; ct_of waits for the one with this context and leaves the others.
 */
void ct_any(struct ct_ep *e, struct ct_comp *c);
void ct_of(struct ct_ep *e, void *ctx, struct ct_comp *c);
/* ct_done is ct_of, and the completion must be a success; returns the length. */
size_t ct_done(struct ct_ep *e, void *ctx);
/* ct_quiet fails if a completion comes within so many milliseconds. */
void ct_quiet(struct ct_ep *e, int ms, const char *what);
/* ct_idle makes progress for so many milliseconds and keeps what comes. */
void ct_idle(struct ct_ep *e, int ms);

void ct_send(struct ct_ep *e, int rank, const void *buf, size_t len, void *ctx);
void ct_tsend(struct ct_ep *e, int rank, const void *buf, size_t len, uint64_t tag, void *ctx);
void ct_recv(struct ct_ep *e, void *buf, size_t len, void *ctx);
void ct_trecv(struct ct_ep *e, void *buf, size_t len, uint64_t tag, uint64_t ignore, void *ctx);

/* ---- calls with flags (one.c) ---- */

struct ct_one { /* one message in one segment */
	void *buf;
	size_t len;
	void *ctx;
	uint64_t flags;
	bool tagged;
	uint64_t tag, ignore, data;
	int to;		       /* of a send: the rank */
	const fi_addr_t *from; /* of a receive; NULL: any */
};

/* ct_send_one is fi_sendmsg or fi_tsendmsg, ct_recv_one fi_recvmsg or fi_trecvmsg; their answer. */
ssize_t ct_send_one(struct ct_ep *e, const struct ct_one *o);
ssize_t ct_recv_one(struct ct_ep *e, const struct ct_one *o);
/* ct_recv_kind posts a receive, tagged (CT_TAG) or not. */
#define CT_TAG 6
void ct_recv_kind(struct ct_ep *e, bool tagged, void *buf, size_t len, void *ctx);
/* ct_inject_room: a buffer for inject_size bytes and `more`; *max is inject_size. */
char *ct_inject_room(struct ct_ep *e, size_t more, size_t *max);

/*
 * ct_ping shows that the endpoint still works: a tagged message there and back, with data checked.
 */
void ct_ping(struct ct_ep *e, int rank);

#endif
