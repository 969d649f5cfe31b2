/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * ibv_post_send(3): a loop around the engine's sends. What the program has done wrong is refused at
 * once; what hardware would only find out when the request's turn comes (keys of local memory,
 * lengths) completes in error in its turn.
 */
#include "front/verbs/mw.h"
#include "front/verbs/opcode.h"
#include "front/verbs/ops.h"
#include "front/verbs/qp_state.h"
#include "front/verbs/status.h"

#include <errno.h>

/* ---- one work request ------------------------------------------------------------------------ */

/* One that is being posted. */
struct sending {
	struct hv_qp *qp;
	const struct ibv_send_wr *wr;
	const struct hv_opcode *op;
	uint32_t flags;		/* enum hd_send_flag */
	uint64_t word;		/* comes back with its completion: hv_word */
	struct hd_dest *dest;	/* NULL: UD, to a group, or to where nobody can be */
	struct hd_group *group; /* then: which; or NULL */
	int count;
	uint64_t total;
	struct iovec iov[HV_MAX_SGE];
	struct hd_mr *regions[HV_MAX_SGE];
};

static int to_errno(int rc)
{
	if (hv_likely(!rc))
		return 0;
	return rc == -EAGAIN ? ENOMEM : rc == -ENOTRECOVERABLE ? EIO : -rc;
}

static bool takes_flags(const struct hv_qp *qp, const struct ibv_send_wr *wr, const struct hv_opcode *op)
{
	return (op->inlines || !(wr->send_flags & IBV_SEND_INLINE)) &&
	       (qp->transport & (HV_RC | HV_XRC) || !(wr->send_flags & IBV_SEND_FENCE));
}

/*
 * One-sided operations that UD has not: cards take them, and programs that were made for those
 * wait for the completion.
 */
static bool is_told_late(const struct hv_qp *qp, const struct hv_opcode *op)
{
	return qp->transport == HV_UD && op->transports && op->kind >= HV_OP_WRITE &&
	       op->kind <= HV_OP_ATOMIC_WRITE;
}

/* 0, or a positive errno for what is refused whatever else is the case. */
static inline __attribute__((always_inline)) int
post_send_check(const struct hv_qp *qp, const struct ibv_send_wr *wr, const struct hv_opcode *op)
{
	if (hv_unlikely(!hv_qp_state_sends(*qp->state)))
		return EINVAL;
	if (hv_unlikely(!(op->transports & qp->transport)) && !is_told_late(qp, op))
		return EINVAL;
	if (hv_unlikely(wr->num_sge < 0 || (uint32_t)wr->num_sge > qp->cap.max_send_sge))
		return EINVAL;
	if (wr->send_flags & (IBV_SEND_INLINE | IBV_SEND_FENCE) && hv_unlikely(!takes_flags(qp, wr, op)))
		return EINVAL;
	if (hv_unlikely(hv_qp_left(qp) == 0))
		return ENOMEM;
	if (hv_unlikely(op->kind == HV_OP_BIND))
		return hv_bind_is_right(qp, wr->bind_mw.mw, &wr->bind_mw.bind_info) ? 0 : EINVAL;
	if (hv_likely(!(qp->transport & (HV_UD | HV_XRC))))
		return 0;
	if (qp->transport == HV_XRC) /* what is for nobody need name no queue */
		return wr->qp_type.xrc.remote_srqn > HV_QPN_MAX && op->kind != HV_OP_INVALIDATE ? EINVAL : 0;
	if (hv_unlikely(op->kind != HV_OP_SEND)) /* what lies there is no address handle */
		return 0;
	return !wr->wr.ud.ah || wr->wr.ud.ah->context != &qp->ctx->pub.context ? EINVAL : 0;
}

static inline const struct hv_opcode *opcode_of(const struct ibv_send_wr *wr)
{
	return &hv_opcodes[hv_likely(wr->opcode < HV_OPCODES) ? wr->opcode : IBV_WR_DRIVER1];
}

/*
 * Of what has no local segments, what is for other calls: ibv_bind_mw is for windows of type 1, and
 * a flush is for ibv_wr_flush.
 */
static bool is_elsewhere(const struct ibv_send_wr *wr, const struct hv_opcode *op, bool built)
{
	return op->kind == HV_OP_BIND ? wr->bind_mw.mw->type != IBV_MW_TYPE_2
				      : op->kind == HV_OP_FLUSH && !built;
}

/* built: by the calls of ibv_wr_post(3). */
static inline __attribute__((always_inline)) int
check_posted(const struct hv_qp *qp, const struct ibv_send_wr *wr, const struct hv_opcode *op, bool built)
{
	int rc = post_send_check(qp, wr, op);

	return hv_unlikely(op->kind >= HV_OP_FLUSH) && !rc && is_elsewhere(wr, op, built) ? EINVAL : rc;
}

int hv_send_check(const struct hv_qp *qp, const struct ibv_send_wr *wr)
{
	return check_posted(qp, wr, opcode_of(wr), true);
}

static uint32_t inline_room(const struct hv_qp *qp, const struct hv_opcode *op)
{
	return hv_unlikely(op->kind == HV_OP_ATOMIC_WRITE) ? HV_MAX_INLINE : qp->cap.max_inline_data;
}

/* Inline data is taken over while the call lasts, and has no keys. */
static int inline_iov(struct sending *s)
{
	s->total = 0;
	for (int i = 0; i < s->wr->num_sge; i++) {
		const struct ibv_sge *sge = &s->wr->sg_list[i];

		s->iov[i] = (struct iovec){ (void *)(uintptr_t)sge->addr, sge->length };
		s->total += sge->length;
	}
	s->count = s->wr->num_sge;
	s->flags |= HD_SEND_INJECT;
	return s->total > inline_room(s->qp, s->op) ? EINVAL : 0;
}

/* It is wrong in a way that its completion will tell. */
static int fail_in_turn(const struct sending *s, int err)
{
	struct hv_qp *qp = s->qp;
	struct hd_failed_args args = { .ctx = (void *)(uintptr_t)s->wr->wr_id,
				       .status = err,
				       .tag = s->word,
				       .flags = s->flags & HD_SEND_FENCE };

	return to_errno(hd_send_failed(qp->ep, qp->to ? *qp->to : NULL, &args));
}

/* XRC: the queue that it is for, where the engine wants that. */
static uint64_t named(const struct sending *s)
{
	return (uint64_t)(s->wr->qp_type.xrc.remote_srqn & s->qp->names) << 32;
}

static int send_to_group(const struct sending *s, const struct hd_pkt_qp *head)
{
	const struct hd_group_args args = { .iov = s->iov,
					    .count = s->count,
					    .imm = head->imm,
					    .qkey = head->qkey,
					    .grh = head->grh,
					    .tag = s->word,
					    .ctx = (void *)(uintptr_t)s->wr->wr_id,
					    .flags = s->flags };

	return hd_group_send(s->group, &args);
}

static inline int send_datagram(const struct sending *s)
{
	const struct ibv_send_wr *wr = s->wr;
	struct hv_qp *qp = s->qp;
	uint32_t qkey = wr->wr.ud.remote_qkey;
	/*
	 * InfiniBand specification, 10.2.5: one with its highest bit set stands
	 * for the queue pair's own
	 */
	const struct hd_pkt_qp head = { .grh = hv_ah_of(wr->wr.ud.ah)->grh,
					.imm = s->flags & HD_SEND_IMM ? wr->imm_data : 0,
					.qkey = qkey >> 31 ? qp->attr.qkey : qkey };

	if (hv_unlikely(!s->dest))
		return s->group ? send_to_group(s, &head)
				: hd_ud_lost(qp->ep, s->word, (void *)(uintptr_t)wr->wr_id, s->flags);
	return hd_ud_send(qp->ep, s->dest, s->iov, s->count, head, s->word, (void *)(uintptr_t)wr->wr_id,
			  s->flags);
}

static int send_message(const struct sending *s)
{
	const struct ibv_send_wr *wr = s->wr;
	struct hv_qp *qp = s->qp;

	if (!qp->to)
		return send_datagram(s);
	/* or invalidate_rkey, which is the same place */
	return hd_qp_send(qp->ep, s->iov, s->count, s->word,
			  (s->flags & HD_SEND_IMM ? wr->imm_data : 0) | named(s),
			  (void *)(uintptr_t)wr->wr_id, s->flags);
}

static inline int send_rma(const struct sending *s)
{
	const struct ibv_send_wr *wr = s->wr;
	const struct hd_rma_seg seg = { wr->wr.rdma.remote_addr, s->total, wr->wr.rdma.rkey };
	const struct hd_rma_args args = { .op = s->op->kind == HV_OP_READ ? HD_RMA_READ : HD_RMA_WRITE,
					  .iov = s->iov,
					  .count = s->count,
					  /* of nothing, the key does not count */
					  .seg_count = s->total != 0,
					  .segs = &seg,
					  .imm = (s->flags & HD_SEND_IMM ? wr->imm_data : 0) | named(s),
					  .tag = s->word,
					  .ctx = (void *)(uintptr_t)wr->wr_id,
					  .flags = s->flags };

	return hd_rma(s->qp->ep, s->dest, &args);
}

static int send_atomic(struct sending *s)
{
	const struct ibv_send_wr *wr = s->wr;
	bool swaps = wr->opcode == IBV_WR_ATOMIC_CMP_AND_SWP;
	uint64_t operand = swaps ? wr->wr.atomic.swap : wr->wr.atomic.compare_add;
	uint64_t comparand = wr->wr.atomic.compare_add;
	const struct iovec ours = { &operand, 8 }, compare = { &comparand, 8 };
	const struct hd_rma_seg seg = { wr->wr.atomic.remote_addr, 8, wr->wr.atomic.rkey };
	const struct hd_atomic_args args = { .how = swaps ? HD_ATOMIC_COMPARE : HD_ATOMIC_FETCH,
					     .op = swaps ? HD_ATOMIC_CSWAP : HD_ATOMIC_SUM,
					     .type = HD_ATOMIC_U64,
					     .iov = &ours,
					     .compare_iov = &compare,
					     .result_iov = s->iov,
					     .count = 1,
					     .compare_count = swaps,
					     .result_count = s->count,
					     .seg_count = 1,
					     .segs = &seg,
					     .tag = s->word,
					     .imm = named(s),
					     .ctx = (void *)(uintptr_t)wr->wr_id,
					     .flags = s->flags };

	return hd_atomic(s->qp->ep, s->dest, &args);
}

/* The target need not allow other atomic operations for it. */
static int send_atomic_write(const struct sending *s)
{
	const struct ibv_send_wr *wr = s->wr;
	const struct hd_rma_seg seg = { wr->wr.rdma.remote_addr, 8, wr->wr.rdma.rkey };
	const struct hd_atomic_args args = { .how = HD_ATOMIC_BASE,
					     .op = HD_ATOMIC_WRITE,
					     .type = HD_ATOMIC_U64,
					     .iov = s->iov,
					     .count = s->count,
					     .seg_count = 1,
					     .segs = &seg,
					     .tag = s->word,
					     .ctx = (void *)(uintptr_t)wr->wr_id,
					     .flags = s->flags };
	int rc = hd_atomic(s->qp->ep, s->dest, &args);

	return rc == -EFAULT ? fail_in_turn(s, HD_S_PROTECTION) : to_errno(rc);
}

/* It lies where wr_flush (wr.c) has put it. InfiniBand has no longer ones. */
#define FLUSH_MAX (UINT64_C(1) << 31)
static int send_flush(const struct sending *s)
{
	const struct ibv_send_wr *wr = s->wr;
	const struct hd_rma_seg seg = { wr->wr.atomic.remote_addr, wr->wr.atomic.compare_add,
					wr->wr.atomic.rkey };
	const struct hd_rma_args args = { .op = HD_RMA_FLUSH,
					  .seg_count = 1,
					  .segs = &seg,
					  .imm = wr->wr.atomic.swap,
					  .tag = s->word,
					  .ctx = (void *)(uintptr_t)wr->wr_id,
					  .flags = s->flags };

	if (seg.len > FLUSH_MAX)
		return fail_in_turn(s, HD_S_LOCAL_LENGTH);
	return to_errno(hd_flush(s->qp->ep, s->dest, &args));
}

static int change_window(const struct sending *s)
{
	const struct ibv_send_wr *wr = s->wr;
	struct hd_bind_args args = { .key = s->op->kind == HV_OP_BIND ? wr->bind_mw.rkey
								      : wr->invalidate_rkey,
				     .tag = s->word,
				     .ctx = (void *)(uintptr_t)wr->wr_id,
				     .flags = s->flags };

	if (s->op->kind == HV_OP_BIND)
		return hv_bind_post(s->qp, wr->bind_mw.mw, &wr->bind_mw.bind_info, &args);
	return hd_window_invalidate(s->qp->ep, &args);
}

/* How much it may be. 0, or what its completion will say. */
static inline int length_error(const struct sending *s)
{
	if (s->op->kind >= HV_OP_ATOMIC && s->op->kind <= HV_OP_ATOMIC_WRITE)
		return s->total != 8 ? HD_S_LOCAL_LENGTH : 0;
	if (s->total <= HV_MAX_DATAGRAM)
		return 0;
	return s->qp->transport == HV_UD || s->total > HV_MAX_MSG ? HD_S_LOCAL_LENGTH : 0;
}

static inline __attribute__((always_inline)) int post_send_start(struct sending *s)
{
	int err = length_error(s);

	if (hv_unlikely(err))
		return fail_in_turn(s, err);
	switch (s->op->kind) {
	case HV_OP_SEND:
		return to_errno(send_message(s));
	case HV_OP_ATOMIC:
		return to_errno(send_atomic(s));
	case HV_OP_ATOMIC_WRITE:
		return send_atomic_write(s);
	case HV_OP_FLUSH:
		return send_flush(s);
	case HV_OP_BIND:
	case HV_OP_INVALIDATE:
		return to_errno(change_window(s));
	default:
		return to_errno(send_rma(s));
	}
}

/*
 * UD: where it goes: *dest, or, where that is NULL, *group, or, where that is NULL as well,
 * nowhere. 0 or a positive errno.
 */
static inline int find_way(struct hv_qp *qp, const struct ibv_send_wr *wr, struct hd_dest **dest,
			   struct hd_group **group)
{
	struct hv_ah *ah = hv_ah_of(wr->wr.ud.ah);
	uint32_t number = wr->wr.ud.remote_qpn & HV_QPN_MAX; /* it has 24 bits */
	int rc = hv_ah_dest(ah, number, dest);

	if (hv_likely(!rc))
		return 0;
	*dest = NULL;
	*group = NULL;
	if (number == HV_QPN_GROUP)
		rc = hv_mcast_find(qp, ah, group);
	return rc == -EINVAL ? 0 : -rc;
}

/*
 * UD: true: it is a datagram, and knows where it goes; else *rc is what has become of
 * it: 0, or a positive errno.
 */
static inline bool post_send_aim(struct sending *s, int *rc)
{
	const struct hv_ah *ah = hv_ah_of(s->wr->wr.ud.ah);
	struct hv_qp *qp = s->qp;
	int err = 0;

	if (hv_unlikely(*qp->state >= HD_QP_SQE))
		err = HD_S_CANCELLED;
	else if (hv_unlikely(s->op->kind != HV_OP_SEND || ah->pd != hv_pd_real(qp->pd)))
		err = HD_S_LOCAL_OPERATION;
	if (hv_unlikely(err)) {
		*rc = fail_in_turn(s, err);
		return false;
	}
	*rc = find_way(qp, s->wr, &s->dest, &s->group);
	return hv_likely(!*rc);
}

int hv_send_foresee(struct hv_qp *qp, const struct ibv_send_wr *wr)
{
	struct hd_group *group;
	struct hd_dest *dest;
	uint64_t len = 0;

	for (int i = 0; wr->send_flags & IBV_SEND_INLINE && i < wr->num_sge; i++)
		len += wr->sg_list[i].length;
	if (len > inline_room(qp, opcode_of(wr)))
		return EINVAL;
	if (qp->to || opcode_of(wr)->kind != HV_OP_SEND || hv_ah_of(wr->wr.ud.ah)->pd != hv_pd_real(qp->pd))
		return 0;
	return find_way(qp, wr, &dest, &group);
}

/*
 * It has been checked. Part of hv_post_send, for what the engine asks of the kernel makes each
 * return from there an expensive one.
 */
static inline __attribute__((always_inline)) int
post_send_post_one(struct hv_qp *qp, const struct ibv_send_wr *wr, const struct hv_opcode *op)
{
	struct sending s;
	int rc = 0;

	s.qp = qp;
	s.wr = wr;
	s.op = op;
	s.flags = op->flags | qp->signalled | (wr->send_flags & IBV_SEND_SIGNALED ? HD_SEND_COMPLETE : 0) |
		  (wr->send_flags & IBV_SEND_SOLICITED ? HD_SEND_SOLICITED : 0) |
		  (wr->send_flags & IBV_SEND_FENCE ? HD_SEND_FENCE : 0);
	s.word = hv_word(qp->posted + 1, op->wc);
	*qp->regions = NULL;
	if (hv_likely(qp->to))
		s.dest = *qp->to;
	else if (hv_unlikely(!post_send_aim(&s, &rc)))
		return rc;
	if (wr->send_flags & IBV_SEND_INLINE) {
		rc = inline_iov(&s);
	} else if (hv_unlikely(op->kind >= HV_OP_FLUSH)) {
		s.total = 0;
	} else {
		s.count = wr->num_sge;
		if (hv_unlikely(hv_sge(qp->ctx, qp->pd, wr->sg_list, s.count, op->fills, s.iov, s.regions,
				       &s.total)))
			return fail_in_turn(&s, HD_S_PROTECTION);
		if (s.total)
			*qp->regions = s.regions;
	}
	return rc ? rc : post_send_start(&s);
}

/* ---- the usual one --------------------------------------------------------------------------- */

/*
 * A message of a connected queue pair that has one segment, which is inline or of a region that was
 * used just now. What is above finds out step by step is known of it at once.
 */
static inline __attribute__((always_inline)) bool
is_usual(const struct hv_qp *qp, const struct ibv_send_wr *wr, const struct hv_opcode *op)
{
	return op->kind == HV_OP_SEND && op->transports & qp->transport & (HV_RC | HV_UC) &&
	       hv_qp_state_sends(*qp->state) && wr->num_sge == 1 && qp->cap.max_send_sge &&
	       !(wr->send_flags & IBV_SEND_FENCE) && hv_qp_left(qp) != 0;
}

/* False: it is not, or not right. *rc as post_send_post_one answers it. */
static inline __attribute__((always_inline)) bool
post_send_usual(struct hv_qp *qp, const struct ibv_send_wr *wr, const struct hv_opcode *op, int *rc)
{
	const struct ibv_sge *sge = wr->sg_list;
	uint32_t flags = op->flags | qp->signalled |
			 (wr->send_flags & IBV_SEND_SIGNALED ? HD_SEND_COMPLETE : 0) |
			 (wr->send_flags & IBV_SEND_SOLICITED ? HD_SEND_SOLICITED : 0);
	struct hd_mr *region = NULL;
	const struct hv_mr *mr;
	struct iovec iov;

	if (wr->send_flags & IBV_SEND_INLINE) {
		if (hv_unlikely(sge->length > qp->cap.max_inline_data))
			return false;
		iov = (struct iovec){ (void *)(uintptr_t)sge->addr, sge->length };
		flags |= HD_SEND_INJECT;
	} else {
		mr = hv_mr_near(qp->ctx, sge);
		if (hv_unlikely(!mr || sge->length > HV_MAX_MSG ||
				!hv_mr_locate(mr, qp->pd, sge, false, &iov, &region)))
			return false;
	}
	*qp->regions = region ? &region : NULL;
	*rc = to_errno(hd_qp_send(qp->ep, &iov, 1, hv_word(qp->posted + 1, op->wc),
				  op->flags & HD_SEND_IMM ? wr->imm_data : 0, (void *)(uintptr_t)wr->wr_id,
				  flags));
	return true;
}

/* One that is rare, or comes from a place where nobody counts. */
static __attribute__((noinline)) int post_apart(struct hv_qp *qp, const struct ibv_send_wr *wr)
{
	return post_send_post_one(qp, wr, &hv_opcodes[wr->opcode]);
}

int hv_post_send_one(struct hv_qp *qp, const struct ibv_send_wr *wr)
{
	int rc = hv_send_check(qp, wr);

	if (hv_likely(!rc))
		rc = post_apart(qp, wr);
	qp->posted += !rc;
	return rc;
}

int hv_post_bind_one(struct hv_qp *qp, const struct ibv_send_wr *wr)
{
	int rc = post_send_check(qp, wr, &hv_opcodes[wr->opcode]);

	if (!rc)
		rc = post_apart(qp, wr);
	qp->posted += !rc;
	return rc;
}

/* ---- the call -------------------------------------------------------------------------------- */

int hv_post_send(struct ibv_qp *pub, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr)
{
	struct hv_qp *qp = hv_qp_of(pub);
	int rc = 0;

	if (hv_unlikely(!hv_enter(qp->ctx))) {
		*bad_wr = wr;
		return hv_tell(EIO);
	}
	for (; wr; wr = wr->next) {
		const struct hv_opcode *op = opcode_of(wr);

		if (hv_unlikely(!is_usual(qp, wr, op) || !post_send_usual(qp, wr, op, &rc))) {
			rc = check_posted(qp, wr, op, false);
			if (hv_likely(!rc))
				rc = post_send_post_one(qp, wr, op);
		}
		if (hv_unlikely(rc)) {
			*bad_wr = wr;
			errno = rc;
			break;
		}
		qp->posted++;
	}
	hv_leave(qp->ctx);
	return rc;
}
