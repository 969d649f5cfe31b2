/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Queue pairs, shared receive queues and address handles. A queue pair is an endpoint of the
 * engine, open from ibv_create_qp(3) on, since its number is the endpoint's; it is paired with its
 * other end, or made ready for datagrams, on the way to RTR. Nothing is queued here.
 */
#ifndef HEDDLE_FRONT_VERBS_QP_H
#define HEDDLE_FRONT_VERBS_QP_H

#include "front/verbs/newer.h"

#define HV_MAX_INLINE 1024   /* bytes of inline data: at most HD_MAX_INJECT */
#define HV_MAX_DATAGRAM 4096 /* bytes of a UD message: the MTU */
#define HV_GRH 40	     /* bytes in front of what a UD queue pair receives */
#define HV_QPN_MAX 0xffffffu
#define HV_QPN_GROUP 0xffffffu /* remote_qpn of what is sent to a group */

struct hv_mcast; /* mcast.c */
struct hv_xrcd;	 /* xrc.h */
struct hv_build; /* wr.c: work requests between ibv_wr_start and ibv_wr_complete */

struct hv_srq {
	struct ibv_srq pub;
	struct hv_context *ctx;
	struct hv_pd *pd;
	struct hd_rq *rq;
	struct hd_ep *poster; /* nameless: posts what others receive */
	uint32_t max_wr, max_sge;
	int users; /* queue pairs: under the lock */
	struct hv_event_target target;
	/* XRC; else NULL */
	struct hv_xrcd *xrcd;
	struct hv_cq *cq;
	struct hv_srq *next; /* hv_context.xrc_srqs */
};

static inline struct hv_srq *hv_srq_of(struct ibv_srq *srq)
{
	return hv_container(srq, struct hv_srq, pub);
}

struct hv_qp {
	union {
		struct ibv_qp_ex pub; /* begins as struct ibv_qp does */
		struct hv_newer_qp newer;
	};
	/* every post */
	struct hv_context *ctx;
	struct hd_ep *ep;
	struct hd_dest **to;	       /* RC, UC: where it sends */
	struct hd_mr *const **regions; /* hd_ep_regions */
	struct hv_pd *pd;
	const enum hd_qp_state *state; /* hd_ep_state; of a handle: always RESET */
	/* HD_SEND_COMPLETE: everything that it sends completes; or 0 */
	uint32_t signalled;
	uint8_t transport; /* enum hv_transport */
	/*
	 * numbers of the newest request posted, and of the newest whose completion has been polled
	 */
	uint32_t posted, polled;
	uint32_t names; /* XRC: the bits of the number of a shared receive queue; else 0 */
	struct ibv_qp_cap cap;
	/* the rest */
	struct hv_srq *srq;
	bool drain_event; /* SQD: tell when what was under way has ended */
	bool migrated;	  /* to its second path, since this was cleared */
	struct ibv_qp_attr attr;
	struct ibv_qp_init_attr init;
	uint32_t index;		 /* hd_ep_index */
	int groups;		 /* multicast groups that it is attached to */
	bool deaf_to_own;	 /* IBV_QP_CREATE_BLOCK_SELF_MCAST_LB */
	struct hv_mcast *mcasts; /* those, and those that it has sent to: mcast.c */
	struct hv_event_target target;
	struct hv_build *build;
	/* XRC_RECV: see xrc.h */
	struct hv_qp *real, *handles, *next;
	struct hv_xrcd *xrcd;		/* of a handle */
	struct hv_far *far;		/* of a handle: it is in another context */
	struct hv_domain *domain;	/* of the real one; else NULL */
	LIST_HEAD(, hv_sharer) sharers; /* who has it in other contexts */
};

enum hv_transport { /* bits: struct hv_opcode.transports */
	HV_RC = 1,
	HV_UC = 2,
	HV_UD = 4,
	HV_XRC = 8,	  /* XRC_SEND */
	HV_XRC_RECV = 16, /* sends nothing */
};

static inline struct hv_qp *hv_qp_of(struct ibv_qp *qp)
{
	return hv_container(qp, struct hv_qp, pub.qp_base);
}

/* hv_qp_real: whose state and attributes they are, where there may be several handles of one. */
static inline struct hv_qp *hv_qp_real(struct hv_qp *qp)
{
	return qp->real ? qp->real : qp;
}

/*
 * hv_qp_enter: from now on its completions are found by its endpoint's index; 0 or -ENOMEM.
 * hv_qp_gone: one that no handle is left of goes, with its memory. hv_qp_modify: ibv_modify_qp of a
 * real one: 0 or a positive errno. hv_rnr_timer_us: of ibv_qp_attr.min_rnr_timer. With the lock.
 */
int hv_qp_enter(struct hv_qp *qp);
void hv_qp_gone(struct hv_qp *qp);
int hv_qp_modify(struct hv_qp *qp, const struct ibv_qp_attr *attr, int mask);
uint32_t hv_rnr_timer_us(uint8_t code);

/* hv_qp_psns: sq_psn and rq_psn as cards tell them, of the next packets. With the lock. */
void hv_qp_psns(const struct hv_qp *qp, struct ibv_qp_attr *attr);

/* hv_qp_migrate: what was the second path is the first, and there is no second one. */
void hv_qp_migrate(struct ibv_qp_attr *attr);

/* hv_qp_look: its state now, which is the engine's. With the lock. */
enum ibv_qp_state hv_qp_look(const struct hv_qp *qp);

/*
 * hv_qp_show: a call has set these, or told them. ibv_qp.state is what the program has set, or
 * asked for last: programs compare it with what they did, and one that fell meanwhile takes
 * requests as before, and flushes them.
 */
static inline void hv_qp_show(struct ibv_qp *pub, const struct ibv_qp_attr *attr, int mask)
{
	if (mask & IBV_QP_STATE)
		pub->state = attr->qp_state;
}

/*
 * hv_qp_left: how many requests its send queue takes: a place is free again when a completion of
 * it, or of a later one, has been polled.
 */
static inline uint32_t hv_qp_left(const struct hv_qp *qp)
{
	return qp->cap.max_send_wr - (qp->posted - qp->polled);
}

/* hv_qp_drop_completions: what it has completed, and nobody has polled, is gone. With the lock. */
void hv_qp_drop_completions(struct hv_qp *qp);

/*
 * hv_qp_at: the queue pair whose endpoint has this index, or NULL when it is gone. With the lock.
 */
struct hv_qps {
	uint32_t size;
	struct hv_qp *at[];
};
static inline struct hv_qp *hv_qp_at(const struct hv_context *ctx, uint32_t index)
{
	const struct hv_qps *qps = ctx->qps;

	return hv_likely(qps && index < qps->size) ? qps->at[index] : NULL;
}

/* ---- address handles, ibv_create_ah(3) ------------------------------------------------------- */

struct hv_ah_dest;

struct hv_ah {
	struct ibv_ah pub;
	struct hv_context *ctx;
	struct hv_pd *pd; /* hv_pd_real of its domain */
	struct ibv_ah_attr attr;
	struct hd_pkt_grh grh; /* hv_datagram_grh */
	/* destinations by queue pair number, as they are used; under the lock */
	uint32_t last_qpn;
	struct hd_dest *last;
	struct hv_ah_dest *dests;
};

static inline struct hv_ah *hv_ah_of(struct ibv_ah *ah)
{
	return hv_container(ah, struct hv_ah, pub);
}

/* hv_ah_dest: where queue pair qpn behind this handle is. 0, -EINVAL, -ENOMEM. With the lock. */
int hv_ah_find(struct hv_ah *ah, uint32_t qpn, struct hd_dest **out);
static inline int hv_ah_dest(struct hv_ah *ah, uint32_t qpn, struct hd_dest **out)
{
	if (hv_unlikely(!ah->last || ah->last_qpn != qpn))
		return hv_ah_find(ah, qpn, out);
	*out = ah->last;
	return 0;
}

/*
 * hv_grh_write: the 40 bytes in front of a datagram: the header, or what RoCE v2 has instead
 * where addresses are of IPv4: then it says true. `at` need not be aligned.
 * ibv_init_ah_from_wc(3) reads them.
 */
bool hv_grh_write(const struct hv_context *ctx, const struct ibv_grh *grh, void *at);

/*
 * hv_grh_fill: both addresses of a header in front of what was sent to this port alone, where
 * they are not the first ones.
 */
void hv_grh_fill(const struct hv_context *ctx, const struct hd_sender *from, struct ibv_grh *grh);

/*
 * hd_cqe.tag of a datagram that was received, as hd_ep_attr.head_fill makes it: the number of its
 * sender; the service level; whether there is a GRH in front; the sender's LID from bit 32 on. RoCE
 * has no service levels: as RoCE v2 cards have it, theirs tells that it came by UDP, and the kind
 * of the header in front, for which programs look there.
 */
#define HV_FROM_SL 24
#define HV_SL_ROCE_IPV6 UINT64_C(9)
#define HV_SL_ROCE_IPV4 UINT64_C(10)
#define HV_FROM_GRH (UINT64_C(1) << 31)
#define HV_FROM_LID 32

/*
 * What the header of a datagram says beside addresses is its sender's affair, and travels with it:
 * hd_sender.grh. hv_datagram_grh: that of this address vector; ipv6 is of a RoCE port alone.
 * hv_datagram_mark: which of the other end's GIDs was addressed, hv_gid_mark; 0: not said.
 */
struct hd_pkt_grh hv_datagram_grh(const struct hv_context *ctx, const struct ibv_ah_attr *attr);
static inline uint32_t hv_datagram_mark(const struct hd_pkt_grh *grh)
{
	return (uint32_t)grh->mark_high << 8 | grh->mark_low;
}

/* hv_ah_attr_check: 0 or a positive errno: could something be sent there from this context? */
int hv_ah_attr_check(const struct hv_context *ctx, const struct ibv_ah_attr *attr);

/* ---- groups ---------------------------------------------------------------------------------- */

/*
 * hv_mcast_find: what to send by, to the group of this address handle. 0, -EINVAL: it
 * leads to none, -ENOMEM, … . hv_mcast_gid: of hd_sender.group. hv_mcasts_leave: the queue
 * pair goes. With the lock.
 */
int hv_mcast_find(struct hv_qp *qp, const struct hv_ah *ah, struct hd_group **out);
const union ibv_gid *hv_mcast_gid(const struct hv_mcast *m);
void hv_mcasts_leave(struct hv_qp *qp);

/* ---- posting --------------------------------------------------------------------------------- */

/*
 * hv_post_send_one: one work request, with the lock: 0, or a positive errno and nothing has been
 * posted. hv_send_check: would it be refused whatever else is the case? hv_send_foresee: or by what
 * only posting it would find out? 0 or a positive errno.
 */
int hv_post_send_one(struct hv_qp *qp, const struct ibv_send_wr *wr);
int hv_send_check(const struct hv_qp *qp, const struct ibv_send_wr *wr);
int hv_send_foresee(struct hv_qp *qp, const struct ibv_send_wr *wr);

/* wr.c: the builders of struct ibv_qp_ex. 0, ENOMEM. */
int hv_build_open(struct hv_qp *qp, uint64_t send_ops);
void hv_build_close(struct hv_qp *qp);

#endif
