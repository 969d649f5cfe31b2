/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
#include "vt.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

/* ---- objects --------------------------------------------------------------------------------- */

struct ibv_context *vt_context(struct ct *ct)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context = NULL;

	for (int i = 0; list && list[i] && !context; i++)
		if (!strcmp(ibv_get_device_name(list[i]), ct->conf->provider))
			context = ibv_open_device(list[i]);
	if (!context)
		ct_fail(ct, "cannot open %s", ct->conf->provider);
	ibv_free_device_list(list);
	return context;
}

bool vt_tells_read_only(void)
{
	struct utsname kernel;
	int major, minor;

	if (uname(&kernel) < 0 || sscanf(kernel.release, "%d.%d", &major, &minor) != 2)
		return false;
	return major > 6 || (major == 6 && minor >= 11);
}

static struct ibv_cq *cq_open(struct ct_ep *e)
{
	struct ibv_cq *cq =
		ibv_create_cq(e->context, e->want.cqe ? (int)e->want.cqe : 1024, e, e->channel, 0);

	CT_TRUE(e->ct, cq);
	return cq;
}

struct ibv_qp *vt_qp(struct ct_ep *e)
{
	const struct vt_want *w = &e->want;
	struct ibv_qp_init_attr_ex attr = {
		.qp_context = e,
		.send_cq = e->cq,
		.recv_cq = e->rcq,
		.srq = e->srq,
		.cap = { w->send_wr ? w->send_wr : 128, w->recv_wr ? w->recv_wr : 128, w->sge ? w->sge : 4,
			 w->sge ? w->sge : 4, w->inline_data ? w->inline_data : 64 },
		.qp_type = w->type ? w->type : IBV_QPT_RC,
		.sq_sig_all = !w->sig_none,
		.comp_mask = IBV_QP_INIT_ATTR_PD | (w->send_ops ? IBV_QP_INIT_ATTR_SEND_OPS_FLAGS : 0),
		.pd = e->pd,
		.send_ops_flags = w->send_ops
	};
	struct ibv_qp *qp = ibv_create_qp_ex(e->context, &attr);

	if (!qp)
		ct_fail(e->ct, "ibv_create_qp_ex: %s", strerror(errno));
	return qp;
}

static void name_fill(struct ct_ep *e)
{
	struct ibv_port_attr port;

	VT_OK(e->ct, ibv_query_port(e->context, 1, &port));
	CT_EQ(e->ct, port.state, IBV_PORT_ACTIVE);
	VT_OK(e->ct, ibv_query_gid(e->context, 1, 0, &e->me.gid));
	e->me.lid = port.link_layer == IBV_LINK_LAYER_ETHERNET ? 0 : port.lid;
	e->me.qpn = e->qp->qp_num;
	e->me.rkey = e->mr->rkey;
	e->me.addr = (uintptr_t)e->buf;
}

void vt_open(struct ct *ct, struct ct_ep *e, const struct vt_want *want)
{
	*e = (struct ct_ep){ .ct = ct };
	if (want)
		e->want = *want;
	if (!e->want.size)
		e->want.size = VT_SIZE;
	e->context = vt_context(ct);
	e->pd = ibv_alloc_pd(e->context);
	CT_TRUE(ct, e->pd);
	if (e->want.channel) {
		e->channel = ibv_create_comp_channel(e->context);
		CT_TRUE(ct, e->channel);
	}
	e->cq = cq_open(e);
	e->rcq = e->want.split ? cq_open(e) : e->cq;
	if (e->want.srq) {
		struct ibv_srq_init_attr attr = { e, { e->want.recv_wr ? e->want.recv_wr : 128, 4, 0 } };

		e->srq = ibv_create_srq(e->pd, &attr);
		CT_TRUE(ct, e->srq);
	}
	e->buf = aligned_alloc(4096, e->want.size);
	CT_TRUE(ct, e->buf);
	memset(e->buf, 0, e->want.size);
	e->mr = ibv_reg_mr(e->pd, e->buf, e->want.size, e->want.access ? e->want.access : VT_ACCESS);
	CT_TRUE(ct, e->mr);
	e->qp = vt_qp(e);
	name_fill(e);
}

void vt_close(struct ct_ep *e)
{
	struct ct *ct = e->ct;

	if (e->ah)
		VT_OK(ct, ibv_destroy_ah(e->ah));
	if (e->qp)
		VT_OK(ct, ibv_destroy_qp(e->qp));
	if (e->srq)
		VT_OK(ct, ibv_destroy_srq(e->srq));
	VT_OK(ct, ibv_dereg_mr(e->mr));
	if (e->rcq != e->cq)
		VT_OK(ct, ibv_destroy_cq(e->rcq));
	VT_OK(ct, ibv_destroy_cq(e->cq));
	if (e->channel)
		VT_OK(ct, ibv_destroy_comp_channel(e->channel));
	VT_OK(ct, ibv_dealloc_pd(e->pd));
	VT_OK(ct, ibv_close_device(e->context));
	free(e->buf);
	free(e->stash);
}

/* ---- states ---------------------------------------------------------------------------------- */

static enum ibv_qp_type type_of(const struct ct_ep *e)
{
	return e->want.type ? e->want.type : IBV_QPT_RC;
}

struct ibv_ah_attr vt_av(const struct ct_ep *e, const struct vt_name *to)
{
	struct ibv_ah_attr av = { .dlid = to->lid, .port_num = 1 };

	if (!to->lid) {
		av.is_global = 1;
		av.grh.dgid = to->gid;
		av.grh.hop_limit = 1;
	}
	return av;
}

int vt_init(const struct ct_ep *e, struct ibv_qp_attr *attr)
{
	unsigned int access = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;

	if (e->want.qp_access)
		access = e->want.qp_access == -1u ? 0 : e->want.qp_access;
	attr->qp_state = IBV_QPS_INIT;
	attr->port_num = 1;
	attr->pkey_index = 0;
	attr->qkey = VT_QKEY;
	attr->qp_access_flags = access;
	return IBV_QP_STATE | IBV_QP_PORT | IBV_QP_PKEY_INDEX |
	       (type_of(e) == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS);
}

int vt_rtr(const struct ct_ep *e, const struct vt_name *to, struct ibv_qp_attr *attr)
{
	attr->qp_state = IBV_QPS_RTR;
	attr->path_mtu = IBV_MTU_1024;
	attr->dest_qp_num = to->qpn;
	attr->rq_psn = 1;
	attr->max_dest_rd_atomic = 4;
	attr->min_rnr_timer = 12; /* 0.64 ms */
	attr->ah_attr = vt_av(e, to);
	if (type_of(e) == IBV_QPT_UD)
		return IBV_QP_STATE;
	return IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
	       (type_of(e) == IBV_QPT_RC ? IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER : 0);
}

int vt_rts(const struct ct_ep *e, struct ibv_qp_attr *attr)
{
	attr->qp_state = IBV_QPS_RTS;
	attr->sq_psn = 1;
	attr->max_rd_atomic = 4;
	attr->retry_cnt = 7;
	attr->rnr_retry = !e->want.rnr_retry ? 7 : e->want.rnr_retry == 8 ? 0 : e->want.rnr_retry;
	attr->timeout = 14;
	return IBV_QP_STATE | IBV_QP_SQ_PSN |
	       (type_of(e) == IBV_QPT_RC
			? IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_TIMEOUT
			: 0);
}

void vt_connect(struct ct_ep *e, struct ibv_qp *qp, const struct vt_name *to)
{
	struct ibv_qp_attr attr = { 0 };
	int mask = vt_init(e, &attr);

	VT_OK(e->ct, ibv_modify_qp(qp, &attr, mask));
	mask = vt_rtr(e, to, &attr);
	VT_OK(e->ct, ibv_modify_qp(qp, &attr, mask));
	mask = vt_rts(e, &attr);
	VT_OK(e->ct, ibv_modify_qp(qp, &attr, mask));
}

void vt_exchange(struct ct_ep *e)
{
	struct ct *ct = e->ct;

	for (int r = 0; r < ct->procs; r++)
		if (r != ct->rank)
			ct_put(ct, r, &e->me, sizeof(e->me));
	for (int r = 0; r < ct->procs; r++)
		if (r != ct->rank)
			ct_get(ct, NULL, r, &e->peer[r], sizeof(e->peer[r]));
}

void vt_start(struct ct *ct, struct ct_ep *e, const struct vt_want *want)
{
	const struct vt_name *to;

	vt_open(ct, e, want);
	vt_exchange(e);
	to = &e->peer[!ct->rank];
	vt_connect(e, e->qp, to);
	if (type_of(e) == IBV_QPT_UD) {
		struct ibv_ah_attr av = vt_av(e, to);

		e->ah = ibv_create_ah(e->pd, &av);
		CT_TRUE(ct, e->ah);
	}
	ct_sync(ct, NULL);
}

void vt_finish(struct ct_ep *e)
{
	ct_sync(e->ct, e);
	vt_close(e);
}

enum ibv_qp_state vt_state(struct ct_ep *e, struct ibv_qp *qp)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	VT_OK(e->ct, ibv_query_qp(qp, &attr, IBV_QP_STATE, &init));
	return attr.qp_state;
}

void vt_to(struct ct_ep *e, struct ibv_qp *qp, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = { .qp_state = state };

	VT_OK(e->ct, ibv_modify_qp(qp, &attr, IBV_QP_STATE));
}

/* ---- work ------------------------------------------------------------------------------------ */

struct ibv_sge vt_sge(const struct ct_ep *e, size_t at, uint32_t len)
{
	return (struct ibv_sge){ (uintptr_t)e->buf + at, len, e->mr->lkey };
}

struct ibv_send_wr vt_wr(struct ct_ep *e, enum ibv_wr_opcode op, struct ibv_sge *sge, uint64_t id)
{
	const struct vt_name *to = &e->peer[!e->ct->rank];
	struct ibv_send_wr wr = { .wr_id = id, .sg_list = sge, .num_sge = sge ? 1 : 0, .opcode = op };

	if (type_of(e) == IBV_QPT_UD) {
		wr.wr.ud.ah = e->ah;
		wr.wr.ud.remote_qpn = to->qpn;
		wr.wr.ud.remote_qkey = VT_QKEY;
	} else if (op == IBV_WR_ATOMIC_CMP_AND_SWP || op == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = to->addr + (sge ? sge->addr - e->me.addr : 0);
		wr.wr.atomic.rkey = to->rkey;
	} else {
		wr.wr.rdma.remote_addr = to->addr + (sge ? sge->addr - e->me.addr : 0);
		wr.wr.rdma.rkey = to->rkey;
	}
	return wr;
}

void vt_post(struct ct_ep *e, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad = NULL;

	VT_OK(e->ct, ibv_post_send(e->qp, wr, &bad));
}

void vt_recv(struct ct_ep *e, size_t at, uint32_t len, uint64_t id)
{
	struct ibv_sge sge = vt_sge(e, at, len);
	struct ibv_recv_wr wr = { .wr_id = id, .sg_list = &sge, .num_sge = 1 }, *bad = NULL;

	VT_OK(e->ct, e->srq ? ibv_post_srq_recv(e->srq, &wr, &bad) : ibv_post_recv(e->qp, &wr, &bad));
}

void vt_send(struct ct_ep *e, size_t at, uint32_t len, uint64_t id)
{
	struct ibv_sge sge = vt_sge(e, at, len);
	struct ibv_send_wr wr = vt_wr(e, IBV_WR_SEND, &sge, id);

	vt_post(e, &wr);
}

/* ---- completions ----------------------------------------------------------------------------- */

static bool stash_from(struct ct_ep *e, struct ibv_cq *cq)
{
	struct ibv_wc wc[16];
	int n = ibv_poll_cq(cq, 16, wc);

	if (n < 0)
		ct_fail(e->ct, "ibv_poll_cq: %d", n);
	for (int i = 0; i < n; i++) {
		if (e->tail == e->room) {
			e->room = e->room ? e->room * 2 : 64;
			e->stash = realloc(e->stash, e->room * sizeof(*e->stash));
			CT_TRUE(e->ct, e->stash);
		}
		e->stash[e->tail++] = wc[i];
	}
	return n > 0;
}

bool ct_progress(struct ct_ep *e)
{
	bool any = stash_from(e, e->cq);

	if (e->rcq != e->cq)
		any |= stash_from(e, e->rcq);
	return any;
}

static bool take(struct ct_ep *e, const uint64_t *id, struct ibv_wc *wc)
{
	for (size_t i = e->head; i < e->tail; i++) {
		if (id && e->stash[i].wr_id != *id)
			continue;
		if (wc)
			*wc = e->stash[i];
		memmove(&e->stash[i], &e->stash[i + 1], (e->tail - i - 1) * sizeof(*wc));
		e->tail--;
		return true;
	}
	return false;
}

static void await(struct ct_ep *e, const uint64_t *id, struct ibv_wc *wc)
{
	double end = ct_deadline(e->ct);

	while (!take(e, id, wc)) {
		ct_late(e->ct, end, "a completion");
		if (!ct_progress(e))
			ct_pause();
	}
}

void vt_any(struct ct_ep *e, struct ibv_wc *wc)
{
	await(e, NULL, wc);
}

void vt_of(struct ct_ep *e, uint64_t id, struct ibv_wc *wc)
{
	await(e, &id, wc);
}

static void is(struct ct_ep *e, const struct ibv_wc *wc, enum ibv_wc_status status)
{
	if (wc->status != status)
		ct_fail(e->ct, "request %llu: %s (%#x), not %s", (unsigned long long)wc->wr_id,
			ibv_wc_status_str(wc->status), wc->vendor_err, ibv_wc_status_str(status));
}

void vt_status(struct ct_ep *e, uint64_t id, enum ibv_wc_status status)
{
	struct ibv_wc wc;

	vt_of(e, id, &wc);
	is(e, &wc, status);
}

void vt_next(struct ct_ep *e, uint64_t id, enum ibv_wc_status status)
{
	struct ibv_wc wc;

	vt_any(e, &wc);
	CT_EQ(e->ct, wc.wr_id, id);
	is(e, &wc, status);
}

void vt_done(struct ct_ep *e, uint64_t id, struct ibv_wc *out)
{
	struct ibv_wc wc;

	vt_of(e, id, &wc);
	is(e, &wc, IBV_WC_SUCCESS);
	if (out)
		*out = wc;
}

void vt_quiet(struct ct_ep *e, int ms, const char *what)
{
	double end = ct_now() + ms * 1e-3;

	do {
		ct_progress(e);
		if (e->tail > e->head)
			ct_fail(e->ct, "%s: request %llu completed (%s)", what,
				(unsigned long long)e->stash[e->head].wr_id,
				ibv_wc_status_str(e->stash[e->head].status));
		ct_pause();
	} while (ct_now() < end);
}

bool vt_async(struct ct_ep *e, int ms, struct ibv_async_event *event)
{
	struct pollfd fd = { e->context->async_fd, POLLIN, 0 };

	while (poll(&fd, 1, ms) == 1) {
		VT_OK(e->ct, ibv_get_async_event(e->context, event));
		if (event->event_type != IBV_EVENT_COMM_EST)
			return true;
		ibv_ack_async_event(event);
	}
	return false;
}

void vt_event(struct ct_ep *e, enum ibv_event_type type, const void *object)
{
	struct ibv_async_event event;
	double end = ct_deadline(e->ct);

	while (!vt_async(e, 10, &event)) /* the program makes no progress: nobody has to */
		ct_late(e->ct, end, ibv_event_type_str(type));
	CT_EQ(e->ct, event.event_type, type);
	CT_TRUE(e->ct, event.element.qp == object);
	ibv_ack_async_event(&event);
}

void vt_met(struct ct *ct, struct ibv_context *context, const struct ibv_qp *qp)
{
	struct pollfd fd = { context->async_fd, POLLIN, 0 };
	struct ibv_async_event event;
	double end = ct_deadline(ct);

	while (poll(&fd, 1, 10) != 1)
		ct_late(ct, end, "IBV_EVENT_COMM_EST");
	VT_OK(ct, ibv_get_async_event(context, &event));
	CT_EQ(ct, event.event_type, IBV_EVENT_COMM_EST);
	CT_TRUE(ct, event.element.qp == qp);
	ibv_ack_async_event(&event);
}
