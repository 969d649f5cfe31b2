/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * ibv_modify_qp(3): masks by qp_state.c, values here; nothing is changed unless all of it is right.
 */
#include "base/clock.h"
#include "front/verbs/entry.h"
#include "front/verbs/newer.h"
#include "front/verbs/qp.h"
#include "front/verbs/qp_state.h"
#include "front/verbs/xrc/xrc.h"

#include <errno.h>

#define REMOTE_ACCESS (IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)
#define ACCESS_KNOWN \
	(REMOTE_ACCESS | IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND | IBV_ACCESS_ZERO_BASED | \
	 IBV_ACCESS_ON_DEMAND | IBV_ACCESS_HUGETLB | IBV_ACCESS_OPTIONAL_RANGE | HV_ACCESS_FLUSH_GLOBAL | \
	 HV_ACCESS_FLUSH_PERSISTENT)

/* ---- values ---------------------------------------------------------------------------------- */

static bool is_unicast(const struct hv_context *ctx, const struct ibv_ah_attr *attr, uint32_t qpn)
{
	struct sockaddr_storage to;

	return hv_ah_attr_check(ctx, attr) == 0 && hv_addr_of_peer(ctx, attr, qpn, &to) == 0;
}

/* Those that are numbers in a range. */
static bool numbers_are_right(const struct ibv_qp_attr *a, int mask)
{
	const struct {
		int bit;
		uint32_t value, least, most;
	} all[] = {
		{ IBV_QP_PORT, a->port_num, 1, 1 },
		{ IBV_QP_PKEY_INDEX, a->pkey_index, 0, 0 },
		{ IBV_QP_PATH_MTU, a->path_mtu, IBV_MTU_256, IBV_MTU_4096 },
		{ IBV_QP_TIMEOUT, a->timeout, 0, 31 },
		{ IBV_QP_RETRY_CNT, a->retry_cnt, 0, 7 },
		{ IBV_QP_RNR_RETRY, a->rnr_retry, 0, 7 },
		{ IBV_QP_MIN_RNR_TIMER, a->min_rnr_timer, 0, 31 },
		{ IBV_QP_MAX_QP_RD_ATOMIC, a->max_rd_atomic, 0, HV_MAX_RD_ATOMIC },
		{ IBV_QP_MAX_DEST_RD_ATOMIC, a->max_dest_rd_atomic, 0, HV_MAX_RD_ATOMIC },
		{ IBV_QP_DEST_QPN, a->dest_qp_num, 0, HV_QPN_MAX },
		{ IBV_QP_PATH_MIG_STATE, a->path_mig_state, IBV_MIG_MIGRATED, IBV_MIG_ARMED },
		{ IBV_QP_ALT_PATH, a->alt_port_num, 1, 1 },
		{ IBV_QP_ALT_PATH, a->alt_pkey_index, 0, 0 },
		{ IBV_QP_ALT_PATH, a->alt_timeout, 0, 31 },
	};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (mask & all[i].bit && (all[i].value < all[i].least || all[i].value > all[i].most))
			return false;
	return true;
}

static bool values_are_right(const struct hv_qp *qp, const struct ibv_qp_attr *a, int mask)
{
	uint32_t to = mask & IBV_QP_DEST_QPN ? a->dest_qp_num : qp->attr.dest_qp_num;

	if (mask & IBV_QP_ALT_PATH && !is_unicast(qp->ctx, &a->alt_ah_attr, to))
		return false;
	if (mask & IBV_QP_PATH_MIG_STATE && a->path_mig_state != IBV_MIG_MIGRATED &&
	    !(mask & IBV_QP_ALT_PATH) && !qp->attr.alt_port_num)
		return false;
	if (mask & IBV_QP_ACCESS_FLAGS && a->qp_access_flags & ~(unsigned)ACCESS_KNOWN)
		return false;
	if (mask & IBV_QP_AV && !is_unicast(qp->ctx, &a->ah_attr, to))
		return false;
	return numbers_are_right(a, mask);
}

/* ---- what the engine is told ----------------------------------------------------------------- */

uint32_t hv_rnr_timer_us(uint8_t code)
{
	/* in units of 10 µs; InfiniBand specification, table 45 */
	static const uint32_t units[32] = { 65536, 1,	 2,    3,     4,     6,	    8,	   12,
					    16,	   24,	 32,   48,    64,    96,    128,   192,
					    256,   384,	 512,  768,   1024,  1536,  2048,  3072,
					    4096,  6144, 8192, 12288, 16384, 24576, 32768, 49152 };

	return units[code & 31] * 10;
}

/* What the numbers say: all tries together, in ms, rounded up. */
static uint64_t nominal_ms(uint8_t timeout, uint8_t retries)
{
	return ((UINT64_C(4096) << timeout) * (retries + 1u) + HD_NS_PER_MS - 1) / HD_NS_PER_MS;
}

/*
 * How long the other end may not be ready: all tries together. The engine rounds it down to a power
 * of two (hd_patience_set), so it is between one and a quarter and two and a half times what the
 * numbers say; holdoff_ms() may come on top. Hardware may take four times as long as the number
 * says, and answers without its program; here the other process may have to get a CPU first, which
 * on a busy machine takes longer than any wire.
 */
#define TIMEOUT_LEAST_MS 2048
static uint32_t timeout_ms(uint8_t timeout, uint8_t retries)
{
	uint64_t ms = nominal_ms(timeout, retries) * 5 / 2;

	if (!timeout)
		return 0;
	if (ms < TIMEOUT_LEAST_MS)
		return TIMEOUT_LEAST_MS;
	return ms > INT32_MAX ? INT32_MAX : (uint32_t)ms;
}

/*
 * For how long the other end may have gone before that is told: as a card needs to find out, and
 * enough for a program to end.
 */
#define HOLDOFF_LEAST_MS 1000
static uint32_t holdoff_ms(uint8_t timeout, uint8_t retries)
{
	uint64_t ms = nominal_ms(timeout, retries);

	if (!timeout)
		return HD_HOLDOFF_EVER;
	return ms < HOLDOFF_LEAST_MS ? HOLDOFF_LEAST_MS : (uint32_t)ms; /* at most 20 hours */
}

/*
 * What peers may do. Who has no resources for reads and atomic operations carries none out, as
 * with cards; UC has neither.
 */
static uint32_t access_policy(const struct ibv_qp_attr *a)
{
	unsigned int access = a->qp_access_flags;

	if (!a->max_dest_rd_atomic)
		access &= IBV_ACCESS_REMOTE_WRITE;
	return (access & IBV_ACCESS_REMOTE_READ ? HD_EP_REMOTE_READ : 0) |
	       (access & IBV_ACCESS_REMOTE_WRITE ? HD_EP_REMOTE_WRITE : 0) |
	       (access & IBV_ACCESS_REMOTE_ATOMIC ? HD_EP_REMOTE_ATOMIC : 0) |
	       (access & HV_ACCESS_FLUSH_GLOBAL ? HD_EP_REMOTE_FLUSH : 0);
}

static struct hd_qp_attr pair_attr(const struct ibv_qp_attr *a)
{
	return (struct hd_qp_attr){ .rnr_timer_us = hv_rnr_timer_us(a->min_rnr_timer),
				    .rnr_retry = a->rnr_retry,
				    .timeout_ms = timeout_ms(a->timeout, a->retry_cnt),
				    .holdoff_ms = holdoff_ms(a->timeout, a->retry_cnt),
				    .rq_psn = a->rq_psn };
}

/* To RTR: ready for whoever is at the other end. 0 or a positive errno. */
static int pair(struct hv_qp *qp, const struct ibv_qp_attr *a)
{
	struct hd_qp_attr attr = pair_attr(a);
	struct sockaddr_storage to;

	attr.only_receives = true;
	if (qp->transport != HV_UD) {
		if (hv_addr_of_peer(qp->ctx, &a->ah_attr, a->dest_qp_num, &to) < 0)
			return EINVAL;
		attr.to = (struct sockaddr *)&to;
	}
	return -hd_ep_pair(qp->ep, &attr);
}

/* The second path, and what is to become of it. 0 or a positive errno. */
static int set_path(struct hv_qp *qp, const struct ibv_qp_attr *a, int mask)
{
	static const enum hd_path paths[] = {
		[IBV_MIG_MIGRATED] = HD_PATH_MIGRATED, [IBV_MIG_REARM] = HD_PATH_REARM, [IBV_MIG_ARMED] = HD_PATH_ARMED
	};
	struct sockaddr_storage to;
	int rc = 0;

	if (mask & IBV_QP_ALT_PATH)
		rc = hv_addr_of_peer(qp->ctx, &a->alt_ah_attr, a->dest_qp_num, &to);
	if (!rc && mask & IBV_QP_ALT_PATH)
		rc = hd_ep_path_load(qp->ep, (struct sockaddr *)&to);
	if (!rc && mask & IBV_QP_PATH_MIG_STATE)
		rc = hd_ep_path_set(qp->ep, paths[a->path_mig_state]);
	return -rc;
}

/*
 * From where it is to another state that sends, or to INIT. The engine's states are those of the
 * table in qp_state.c, which has been asked.
 */
static int qp_modify_step(struct hv_qp *qp, const struct ibv_qp_attr *a, int mask, enum ibv_qp_state to)
{
	enum ibv_qp_state from = hv_qp_look(qp);

	if (from == to)
		return 0;
	if (from == IBV_QPS_RESET)
		return -hd_ep_init(qp->ep);
	if (from == IBV_QPS_RTR)
		return -hd_ep_start(qp->ep);
	if (from == IBV_QPS_SQE)
		return -hd_ep_go_on(qp->ep);
	if (from == IBV_QPS_SQD)
		return -hd_ep_pause(qp->ep, false);
	qp->drain_event = mask & IBV_QP_EN_SQD_ASYNC_NOTIFY && a->en_sqd_async_notify;
	return -hd_ep_pause(qp->ep, true); /* which may tell at once that it has drained */
}

/*
 * Carry it out: `to` is where it goes, `a` what it has then. 0 or a positive errno,
 * and nothing has changed.
 */
static int qp_modify_carry_out(struct hv_qp *qp, const struct ibv_qp_attr *a, int mask, enum ibv_qp_state to)
{
	struct hd_qp_attr attr = pair_attr(a);

	if ((to == IBV_QPS_RESET || to == IBV_QPS_ERR) && !qp->domain)
		hv_ep_settle(qp->ctx, qp->ep);
	if (to == IBV_QPS_RESET) {
		if (qp->domain)
			hv_lend_forget(qp);
		else
			/* what has arrived came to the life that ends */
			hd_node_poll(qp->ctx->node);
		hd_ep_reset(qp->ep);
		hv_qp_drop_completions(qp);
		return 0;
	}
	if (mask & (IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE) && to != IBV_QPS_RTR && to != IBV_QPS_ERR &&
	    set_path(qp, a, mask))
		return EINVAL;
	if (mask & (IBV_QP_ACCESS_FLAGS | IBV_QP_MAX_DEST_RD_ATOMIC))
		hd_ep_allow(qp->ep, access_policy(a));
	if (mask & IBV_QP_QKEY)
		hd_ep_set_qkey(qp->ep, a->qkey);
	if (to == IBV_QPS_ERR)
		hd_ep_fail(qp->ep);
	else if (to == IBV_QPS_RTR)
		return pair(qp, a) || set_path(qp, a, mask) ? EINVAL : 0;
	else if (to >= IBV_QPS_RTS && mask & ~(IBV_QP_STATE | IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS))
		hd_ep_pair_tune(qp->ep, &attr);
	if (mask & IBV_QP_SQ_PSN)
		hd_ep_set_psn(qp->ep, a->sq_psn);
	return to == IBV_QPS_ERR ? 0 : qp_modify_step(qp, a, mask, to);
}

/* ---- the call -------------------------------------------------------------------------------- */

static void qp_modify_merge(struct ibv_qp_attr *all, const struct ibv_qp_attr *a, int mask)
{
#define TAKE(bit, member) \
	if (mask & (bit)) \
	all->member = a->member
	TAKE(IBV_QP_ACCESS_FLAGS, qp_access_flags);
	TAKE(IBV_QP_PKEY_INDEX, pkey_index);
	TAKE(IBV_QP_PORT, port_num);
	TAKE(IBV_QP_QKEY, qkey);
	TAKE(IBV_QP_AV, ah_attr);
	TAKE(IBV_QP_PATH_MTU, path_mtu);
	TAKE(IBV_QP_TIMEOUT, timeout);
	TAKE(IBV_QP_RETRY_CNT, retry_cnt);
	TAKE(IBV_QP_RNR_RETRY, rnr_retry);
	TAKE(IBV_QP_RQ_PSN, rq_psn);
	TAKE(IBV_QP_MAX_QP_RD_ATOMIC, max_rd_atomic);
	TAKE(IBV_QP_MIN_RNR_TIMER, min_rnr_timer);
	TAKE(IBV_QP_SQ_PSN, sq_psn);
	TAKE(IBV_QP_MAX_DEST_RD_ATOMIC, max_dest_rd_atomic);
	TAKE(IBV_QP_PATH_MIG_STATE, path_mig_state);
	TAKE(IBV_QP_DEST_QPN, dest_qp_num);
	TAKE(IBV_QP_EN_SQD_ASYNC_NOTIFY, en_sqd_async_notify);
	TAKE(IBV_QP_ALT_PATH, alt_ah_attr);
	TAKE(IBV_QP_ALT_PATH, alt_pkey_index);
	TAKE(IBV_QP_ALT_PATH, alt_port_num);
	TAKE(IBV_QP_ALT_PATH, alt_timeout);
#undef TAKE
}

/*
 * What programs give both kinds of XRC although it is for one of them, which
 * verbs has always overlooked.
 */
static int without_the_others(enum ibv_qp_type type, int mask)
{
	if (type == IBV_QPT_XRC_SEND)
		return mask & ~(IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
	if (type == IBV_QPT_XRC_RECV)
		return mask & ~(IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY);
	return mask;
}

/* With the lock. 0 or a positive errno. */
static int qp_modify_modify(struct hv_qp *qp, const struct ibv_qp_attr *a, int mask)
{
	enum ibv_qp_state now = hv_qp_look(qp), to = mask & IBV_QP_STATE ? a->qp_state : now;
	struct ibv_qp_attr all = qp->attr;
	int rc;

	if (!mask)
		return 0;
	if (mask & IBV_QP_CUR_STATE && a->cur_qp_state != now)
		return EINVAL;
	if (!hv_qp_state_step(qp->pub.qp_base.qp_type, now, to, mask) || !values_are_right(qp, a, mask))
		return EINVAL;
	qp_modify_merge(&all, a, mask);
	qp->migrated = false;
	rc = qp_modify_carry_out(qp, &all, mask, to);
	if (rc)
		return rc;
	if (qp->migrated)
		hv_qp_migrate(&all);
	qp->attr = to == IBV_QPS_RESET ? (struct ibv_qp_attr){ 0 } : all;
	return 0;
}

int hv_qp_modify(struct hv_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
	return qp_modify_modify(qp, attr, without_the_others(qp->pub.qp_base.qp_type, mask));
}

int hv_ibv_modify_qp(struct ibv_qp *pub, struct ibv_qp_attr *attr, int mask)
{
	struct hv_qp *qp = hv_qp_real(hv_qp_of(pub));
	int rc = HV_CHECK(pub);

	if (rc)
		return rc;
	if (qp->far)
		return hv_far_modify(qp, attr, mask);
	if (!hv_enter(qp->ctx))
		return EIO;
	rc = hv_qp_modify(qp, attr, mask);
	if (!rc)
		hv_qp_show(pub, attr, mask);
	hv_leave(qp->ctx);
	return rc;
}
