/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Queue pairs, shared receive queues and completion queues of ids: rdma_create_qp(3),
 * rdma_create_srq(3), rdma_init_qp_attr(3).
 */
#include "front/verbs/qp.h"
#include "base/lock.h"
#include "base/random.h"
#include "front/verbs/cm/cm.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

/* 4.096 us << 17, half a second: one more than the packet lifetime of the path */
#define ACK_TIMEOUT 17

/* ---- attributes, rdma_init_qp_attr(3) -------------------------------------------------------- */

uint32_t hv_cm_psn(void)
{
	uint32_t psn;
	bool drawn = !hd_random(&psn, sizeof(psn));

	return drawn ? psn & 0xffffff : 0; /* one is as good as another */
}

static int attr_init(const struct hv_id *id, struct ibv_qp_attr *attr)
{
	int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;

	attr->pkey_index = 0;
	attr->port_num = 1;
	if (hv_id_is_datagram(id)) {
		attr->qkey = RDMA_UDP_QKEY;
		return mask | IBV_QP_QKEY;
	}
	/* where a device can flush, the kernel's CM gives both rights */
	attr->qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC |
				HV_ACCESS_FLUSH_GLOBAL | HV_ACCESS_FLUSH_PERSISTENT;
	return mask | IBV_QP_ACCESS_FLAGS;
}

/* Where the other end can be reached: what called us, as its link shows it; what we have called. */
static const struct sockaddr *other_end(const struct hv_id *id)
{
	return id->from.ss_family ? (const struct sockaddr *)&id->from : &id->pub.route.addr.dst_addr;
}

/*
 * Who only sends says nothing of what it does for others, who only receives nothing of tries, and
 * UC neither: as with the kernel's CM.
 */
static bool responds(enum ibv_qp_type type)
{
	return type == IBV_QPT_RC || type == IBV_QPT_XRC_RECV;
}

static bool asks(enum ibv_qp_type type)
{
	return type == IBV_QPT_RC || type == IBV_QPT_XRC_SEND;
}

static int attr_rtr(const struct hv_id *id, struct ibv_qp_attr *attr)
{
	struct ibv_port_attr port = { .active_mtu = IBV_MTU_4096 };

	if (hv_id_is_datagram(id))
		return IBV_QP_STATE;
	hv_ibv_query_port(&id->ctx->pub.context, 1, (struct _compat_ibv_port_attr *)&port);
	hv_cm_av(id, other_end(id), &attr->ah_attr);
	attr->path_mtu = port.active_mtu;
	attr->dest_qp_num = id->other.qp_num;
	attr->rq_psn = id->other.psn;
	attr->max_dest_rd_atomic = id->own.responder_resources;
	attr->min_rnr_timer = 0;
	return IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
	       (responds(hv_id_type(id)) ? IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER : 0);
}

static uint8_t qp_least(uint8_t a, uint8_t b)
{
	return a < b ? a : b;
}

static int attr_rts(const struct hv_id *id, struct ibv_qp_attr *attr)
{
	const int tries = IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
	enum ibv_qp_type type = hv_id_type(id);

	attr->sq_psn = hv_id_is_datagram(id) ? 0 : id->own.psn;
	if (hv_id_is_datagram(id))
		return IBV_QP_STATE | IBV_QP_SQ_PSN;
	attr->timeout = id->has_ack_timeout ? id->ack_timeout : ACK_TIMEOUT;
	attr->retry_cnt = id->own.retry_count;
	attr->rnr_retry = id->other.rnr_retry_count;
	attr->max_rd_atomic = qp_least(id->own.initiator_depth, id->other.responder_resources);
	return IBV_QP_STATE | IBV_QP_SQ_PSN | (type != IBV_QPT_UC ? IBV_QP_TIMEOUT : 0) |
	       (asks(type) ? tries : 0);
}

/* The mask, or 0 where the id does not know that yet. */
static int attr_fill(const struct hv_id *id, struct ibv_qp_attr *attr)
{
	bool knows = hv_id_is_datagram(id) || id->other.qp_type;

	switch (attr->qp_state) {
	case IBV_QPS_INIT:
		return attr_init(id, attr);
	case IBV_QPS_RTR:
		return knows ? attr_rtr(id, attr) : 0;
	case IBV_QPS_RTS:
		return knows ? attr_rts(id, attr) : 0;
	default:
		return 0;
	}
}

HV_PUBLIC int rdma_init_qp_attr(struct rdma_cm_id *pub, struct ibv_qp_attr *qp_attr, int *qp_attr_mask)
{
	struct hv_id *id = hv_id_of(pub);
	int mask;

	if (!pub || !qp_attr || !qp_attr_mask || !id->ctx)
		return hv_cm_ret(-EINVAL);
	mask = attr_fill(id, qp_attr);
	if (!mask)
		return hv_cm_ret(-EINVAL);
	*qp_attr_mask = mask;
	return 0;
}

/* ---- moving the id's queue pair -------------------------------------------------------------- */

static int qp_move(struct hv_id *id, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = { .qp_state = state };
	int mask = attr_fill(id, &attr);

	return mask ? -hv_ibv_modify_qp(id->pub.qp, &attr, mask) : -EINVAL;
}

int hv_cm_qp_connect(struct hv_id *id)
{
	int rc = qp_move(id, IBV_QPS_RTR);

	return rc ? rc : qp_move(id, IBV_QPS_RTS);
}

void hv_cm_qp_give_up(struct hv_id *id)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };

	if (id->pub.qp)
		hv_ibv_modify_qp(id->pub.qp, &attr, IBV_QP_STATE);
}

void hv_cm_qp_fail(struct hv_id *id)
{
	if (!hv_id_is_datagram(id))
		hv_cm_qp_give_up(id);
}

static int make_ready(struct hv_id *id)
{
	int rc = qp_move(id, IBV_QPS_INIT);

	if (rc || !hv_id_is_datagram(id))
		return rc;
	return hv_cm_qp_connect(id);
}

/* ---- depths ---------------------------------------------------------------------------------- */

uint8_t hv_cm_depth(const struct hv_id *id)
{
	struct ibv_device_attr attr;

	if (hv_ibv_query_device(&id->ctx->pub.context, &attr))
		return 0;
	return attr.max_qp_rd_atom < RDMA_MAX_RESP_RES ? (uint8_t)attr.max_qp_rd_atom : RDMA_MAX_RESP_RES - 1;
}

bool hv_cm_depths(const struct hv_id *id, uint8_t *responder, uint8_t *initiator)
{
	uint8_t most = hv_cm_depth(id);

	if (*responder == RDMA_MAX_RESP_RES)
		*responder = most;
	if (*initiator == RDMA_MAX_INIT_DEPTH)
		*initiator = most;
	return hv_id_is_datagram(id) || (*responder <= most && *initiator <= most);
}

/* ---- completion queues ----------------------------------------------------------------------- */

static int qp_cq_make(struct hv_id *id, uint32_t entries, struct ibv_comp_channel **channel,
		      struct ibv_cq **cq)
{
	*channel = ibv_create_comp_channel(id->pub.verbs);
	if (!*channel)
		return -errno;
	*cq = hv_ibv_create_cq(id->pub.verbs, entries ? (int)entries : 1, id, *channel, 0);
	return *cq ? 0 : -errno;
}

static void cq_drop(struct ibv_comp_channel **channel, struct ibv_cq **cq)
{
	if (*cq)
		hv_ibv_destroy_cq(*cq);
	if (*channel)
		ibv_destroy_comp_channel(*channel);
	*cq = NULL;
	*channel = NULL;
}

static void send_cq_drop(struct hv_id *id)
{
	if (id->own_send_cq)
		cq_drop(&id->pub.send_cq_channel, &id->pub.send_cq);
	id->own_send_cq = false;
	id->pub.send_cq = NULL;
	id->pub.send_cq_channel = NULL;
}

static void recv_cq_drop(struct hv_id *id)
{
	if (id->own_recv_cq)
		cq_drop(&id->pub.recv_cq_channel, &id->pub.recv_cq);
	id->own_recv_cq = false;
	id->pub.recv_cq = NULL;
	id->pub.recv_cq_channel = NULL;
}

/*
 * The domain of ids that name none: one for all of them. NULL with errno. With
 * hv_cm_lock taken in here.
 */
static struct ibv_xrcd *xrcd_of(const struct hv_id *id)
{
	static struct ibv_xrcd *all;
	struct ibv_xrcd_init_attr attr = { .comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
					   .fd = -1,
					   .oflags = O_CREAT };
	struct ibv_xrcd *xrcd;

	hd_lock_take(&hv_cm_lock);
	if (!all || all->context != id->pub.verbs)
		all = ibv_open_xrcd(id->pub.verbs, &attr);
	xrcd = all;
	hd_lock_give(&hv_cm_lock);
	return xrcd;
}

/*
 * The queues of *attr, or queues of the id's own where it names none. XRC receives from queues
 * of shared receive queues.
 */
static int cqs_fill(struct hv_id *id, struct ibv_qp_init_attr_ex *attr)
{
	int rc = 0;

	if (attr->qp_type == IBV_QPT_XRC_RECV)
		return 0;
	if (!attr->send_cq) {
		id->own_send_cq = true;
		rc = qp_cq_make(id, attr->cap.max_send_wr, &id->pub.send_cq_channel, &id->pub.send_cq);
	} else {
		id->pub.send_cq = attr->send_cq;
		id->pub.send_cq_channel = attr->send_cq->channel;
	}
	attr->send_cq = id->pub.send_cq;
	if (attr->qp_type == IBV_QPT_XRC_SEND)
		return rc;
	if (!rc && !attr->recv_cq) {
		id->own_recv_cq = true;
		rc = qp_cq_make(id, attr->cap.max_recv_wr, &id->pub.recv_cq_channel, &id->pub.recv_cq);
	} else if (!rc) {
		id->pub.recv_cq = attr->recv_cq;
		id->pub.recv_cq_channel = attr->recv_cq->channel;
	}
	attr->recv_cq = id->pub.recv_cq;
	return rc;
}

/* ---- queue pairs ----------------------------------------------------------------------------- */

static int qp_make(struct hv_id *id, struct ibv_qp_init_attr_ex *attr)
{
	int rc = cqs_fill(id, attr);

	if (rc)
		return rc;
	if (!attr->srq)
		attr->srq = id->pub.srq;
	id->pub.qp = ibv_create_qp_ex(id->pub.verbs, attr);
	if (!id->pub.qp)
		return errno ? -errno : -EINVAL;
	rc = make_ready(id);
	if (rc)
		hv_ibv_destroy_qp(id->pub.qp);
	return rc;
}

HV_PUBLIC int rdma_create_qp_ex(struct rdma_cm_id *pub, struct ibv_qp_init_attr_ex *attr)
{
	struct hv_id *id = hv_id_of(pub);
	struct ibv_pd *before;
	int rc;

	if (!pub || !attr || !id->ctx || pub->qp)
		return hv_cm_ret(-EINVAL);
	before = pub->pd;
	if (!(attr->comp_mask & IBV_QP_INIT_ATTR_PD) || !attr->pd) {
		attr->comp_mask |= IBV_QP_INIT_ATTR_PD;
		attr->pd = pub->pd;
	}
	if (attr->pd->context != pub->verbs)
		return hv_cm_ret(-EINVAL);
	pub->pd = attr->pd;
	if (attr->qp_type == IBV_QPT_XRC_RECV &&
	    (!(attr->comp_mask & IBV_QP_INIT_ATTR_XRCD) || !attr->xrcd)) {
		attr->comp_mask |= IBV_QP_INIT_ATTR_XRCD;
		attr->xrcd = xrcd_of(id);
	}
	rc = qp_make(id, attr);
	if (rc) {
		pub->qp = NULL;
		pub->pd = before;
		send_cq_drop(id);
		recv_cq_drop(id);
	}
	return hv_cm_ret(rc);
}

HV_PUBLIC int rdma_create_qp(struct rdma_cm_id *pub, struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	struct ibv_qp_init_attr_ex ex = { 0 };

	if (!attr)
		return hv_cm_ret(-EINVAL);
	/* it begins like the shorter one */
	memcpy(&ex, attr, offsetof(struct ibv_qp_init_attr_ex, comp_mask));
	ex.comp_mask = IBV_QP_INIT_ATTR_PD;
	ex.pd = pd;
	if (rdma_create_qp_ex(pub, &ex))
		return -1;
	memcpy(attr, &ex, offsetof(struct ibv_qp_init_attr_ex, comp_mask));
	return 0;
}

/* Then the completion queue of what the id receives is the shared receive queue's. */
static bool has_xrc_queue(const struct hv_id *id)
{
	return id->pub.srq && hv_srq_of(id->pub.srq)->xrcd;
}

HV_PUBLIC void rdma_destroy_qp(struct rdma_cm_id *pub)
{
	struct hv_id *id = hv_id_of(pub);

	if (pub->qp)
		hv_ibv_destroy_qp(pub->qp);
	pub->qp = NULL;
	send_cq_drop(id);
	if (!has_xrc_queue(id))
		recv_cq_drop(id);
}

/* ---- shared receive queues, rdma_create_srq(3) ----------------------------------------------- */

/* What an XRC queue needs, of the id's own where *attr names none. 0, or -1 with errno. */
static int xrc_fill(struct hv_id *id, struct ibv_srq_init_attr_ex *attr)
{
	int rc = 0;

	if (!(attr->comp_mask & IBV_SRQ_INIT_ATTR_XRCD) || !attr->xrcd)
		attr->xrcd = xrcd_of(id);
	if (!attr->xrcd)
		return -1;
	if (!(attr->comp_mask & IBV_SRQ_INIT_ATTR_CQ) || !attr->cq) {
		id->own_recv_cq = true;
		rc = qp_cq_make(id, attr->attr.max_wr, &id->pub.recv_cq_channel, &id->pub.recv_cq);
		attr->cq = id->pub.recv_cq;
	} else {
		id->pub.recv_cq = attr->cq;
		id->pub.recv_cq_channel = attr->cq->channel;
	}
	attr->comp_mask |= IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;
	if (rc)
		recv_cq_drop(id);
	return hv_cm_ret(rc);
}

HV_PUBLIC int rdma_create_srq_ex(struct rdma_cm_id *pub, struct ibv_srq_init_attr_ex *attr)
{
	struct hv_id *id = hv_id_of(pub);
	bool xrc;

	if (!pub || !attr || !id->ctx || pub->srq)
		return hv_cm_ret(-EINVAL);
	if (!(attr->comp_mask & IBV_SRQ_INIT_ATTR_PD) || !attr->pd) {
		attr->comp_mask |= IBV_SRQ_INIT_ATTR_PD;
		attr->pd = pub->pd;
	}
	if (attr->pd->context != pub->verbs)
		return hv_cm_ret(-EINVAL);
	xrc = attr->comp_mask & IBV_SRQ_INIT_ATTR_TYPE && attr->srq_type == IBV_SRQT_XRC;
	if (xrc && xrc_fill(id, attr))
		return -1;
	pub->srq = ibv_create_srq_ex(pub->verbs, attr);
	if (!pub->srq) {
		int err = errno;

		if (xrc)
			recv_cq_drop(id);
		return hv_cm_ret(-err);
	}
	return 0;
}

HV_PUBLIC int rdma_create_srq(struct rdma_cm_id *pub, struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
	struct ibv_srq_init_attr_ex ex = { 0 };

	if (!attr)
		return hv_cm_ret(-EINVAL);
	memcpy(&ex, attr, offsetof(struct ibv_srq_init_attr_ex, comp_mask)); /* as above */
	ex.comp_mask = IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_TYPE;
	ex.srq_type = pub && pub->qp_type == IBV_QPT_XRC_RECV ? IBV_SRQT_XRC : IBV_SRQT_BASIC;
	ex.pd = pd;
	if (rdma_create_srq_ex(pub, &ex))
		return -1;
	memcpy(attr, &ex, offsetof(struct ibv_srq_init_attr_ex, comp_mask));
	return 0;
}

HV_PUBLIC void rdma_destroy_srq(struct rdma_cm_id *pub)
{
	bool xrc = has_xrc_queue(hv_id_of(pub));

	if (pub->srq)
		hv_ibv_destroy_srq(pub->srq);
	pub->srq = NULL;
	if (xrc)
		recv_cq_drop(hv_id_of(pub));
}
