/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * What the cases of verbs-conformance may use beside the harness. They are written to the
 * manual pages, for any device.
 */
#ifndef VT_H
#define VT_H

#include "../case.h"

#include <infiniband/verbs.h>

#define VT_SIZE (1u << 20) /* bytes of the registered buffer, unless asked for */
#define VT_QKEY 0x11111111
#define VT_ACCESS \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)

/* A call answers this errno. */
#define VT_ERR(ct, call, want) CT_EQ(ct, call, want)
/* A call that answers a pointer fails with this errno. */
#define VT_NULL(ct, call, want) \
	do { \
		errno = 0; \
		CT_TRUE(ct, (call) == NULL); \
		CT_EQ(ct, errno, want); \
	} while (0)
#define VT_OK(ct, call) CT_EQ(ct, call, 0)

struct vt_want {	       /* what a case asks for; zero means the usual */
	enum ibv_qp_type type; /* 0: RC */
	int sig_none;	       /* sq_sig_all 0: else 1 */
	uint32_t send_wr, recv_wr, sge, inline_data, cqe;
	bool srq, split;	/* an SRQ; a CQ for each direction */
	bool channel;		/* the CQ has a completion channel */
	size_t size;		/* of the buffer */
	int access;		/* of the region; 0: VT_ACCESS */
	unsigned int qp_access; /* of the queue pair; 0: all, -1u: none */
	uint8_t rnr_retry;	/* 0: 7; 1 to 6; 8: 0 */
	uint64_t send_ops;	/* ibv_create_qp_ex */
};

/* What the other rank has to know. */
struct vt_name {
	uint32_t qpn, rkey;
	uint16_t lid;
	union ibv_gid gid;
	uint64_t addr;
};

struct ct_ep {
	struct ct *ct;
	struct vt_want want;
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq, *rcq; /* the same one unless want.split */
	struct ibv_srq *srq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	struct ibv_ah *ah; /* UD: of the other rank */
	char *buf;
	struct vt_name me, peer[CT_PROCS];
	struct ibv_wc *stash;
	size_t head, tail, room;
};

/* ---- objects (vt.c) ---- */

/* vt_context opens the device that the program was told. */
struct ibv_context *vt_context(struct ct *ct);
/*
 * vt_open makes everything up to a queue pair in RESET; vt_close destroys it,
 * and each call must succeed.
 */
void vt_open(struct ct *ct, struct ct_ep *e, const struct vt_want *want);
void vt_close(struct ct_ep *e);
/* vt_tells_read_only: does this kernel tell what may be read alone? Those before 6.11 do not. */
bool vt_tells_read_only(void);
/* vt_child is fork(2), of a program with a context of its own, with any sanitizer (child.c). */
pid_t vt_child(struct ct_ep *e);
/* vt_qp makes a further queue pair like e's. */
struct ibv_qp *vt_qp(struct ct_ep *e);

/* vt_av is where this rank is; vt_init, vt_rtr, vt_rts: the usual attributes, and their mask. */
struct ibv_ah_attr vt_av(const struct ct_ep *e, const struct vt_name *to);
int vt_init(const struct ct_ep *e, struct ibv_qp_attr *attr);
int vt_rtr(const struct ct_ep *e, const struct vt_name *to, struct ibv_qp_attr *attr);
int vt_rts(const struct ct_ep *e, struct ibv_qp_attr *attr);
void vt_connect(struct ct_ep *e, struct ibv_qp *qp, const struct vt_name *to);
/*
 * vt_exchange tells all ranks of e's queue pair, and learns of theirs. vt_start: vt_open,
 * vt_exchange, connected to the other of two ranks.
 */
void vt_exchange(struct ct_ep *e);
void vt_start(struct ct *ct, struct ct_ep *e, const struct vt_want *want);
/* vt_finish meets the other ranks and closes. */
void vt_finish(struct ct_ep *e);
enum ibv_qp_state vt_state(struct ct_ep *e, struct ibv_qp *qp);
void vt_to(struct ct_ep *e, struct ibv_qp *qp, enum ibv_qp_state state);

/* ---- work ---- */

/* vt_sge is a piece of e's buffer. */
struct ibv_sge vt_sge(const struct ct_ep *e, size_t at, uint32_t len);
/*
 * vt_wr is a work request with this segment, for the other rank of two: UD fields or remote address
 * (the same place) filled in.
 */
struct ibv_send_wr vt_wr(struct ct_ep *e, enum ibv_wr_opcode op, struct ibv_sge *sge, uint64_t id);
/* Both must be accepted. */
void vt_post(struct ct_ep *e, struct ibv_send_wr *wr);
void vt_recv(struct ct_ep *e, size_t at, uint32_t len, uint64_t id);
void vt_send(struct ct_ep *e, size_t at, uint32_t len, uint64_t id);

/*
 * vt_any waits for a completion, vt_of for that of this request, in whatever order; *wc may be
 * NULL. vt_done: it is a success.
 */
void vt_any(struct ct_ep *e, struct ibv_wc *wc);
void vt_of(struct ct_ep *e, uint64_t id, struct ibv_wc *wc);
void vt_done(struct ct_ep *e, uint64_t id, struct ibv_wc *wc);
/*
 * vt_status: the completion of this request has this status. vt_next: so has the next one,
 * and it is of this request.
 */
void vt_status(struct ct_ep *e, uint64_t id, enum ibv_wc_status status);
void vt_next(struct ct_ep *e, uint64_t id, enum ibv_wc_status status);
/* vt_quiet fails if a completion comes within so many milliseconds. */
void vt_quiet(struct ct_ep *e, int ms, const char *what);
/*
 * vt_async: the next asynchronous event, if one comes within so many milliseconds, but for
 * IBV_EVENT_COMM_EST: that comes or not as the other end's first message is here before a queue
 * pair goes on to RTS or after (row_life.c has the cases). vt_event waits for one, which must be
 * this one, and acknowledges it.
 */
bool vt_async(struct ct_ep *e, int ms, struct ibv_async_event *event);
void vt_event(struct ct_ep *e, enum ibv_event_type type, const void *object);
/*
 * vt_met waits for IBV_EVENT_COMM_EST of this queue pair, which must be the next
 * event, and acknowledges it.
 */
void vt_met(struct ct *ct, struct ibv_context *context, const struct ibv_qp *qp);

#endif
