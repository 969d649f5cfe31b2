/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * V1, V7: how long a place in a send queue is taken; what becomes of an unreliable one
 * when a request is wrong.
 */
#include "vt.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static struct ibv_send_wr send_wr(struct ct_ep *e, struct ibv_sge *sge, uint64_t id, bool signalled)
{
	struct ibv_send_wr wr = vt_wr(e, IBV_WR_SEND, sge, id);

	wr.send_flags = signalled ? IBV_SEND_SIGNALED : 0;
	return wr;
}

/*
 * A place is free when a completion of its request, or of a later one, has
 * been polled, and not before.
 */
static void places(struct ct *ct)
{
	const struct vt_want want = { .type = ct->cs->arg, .send_wr = 8, .sig_none = 1 };
	struct ibv_qp_init_attr init;
	struct ibv_send_wr wr, *bad = NULL;
	struct ibv_qp_attr attr;
	struct ibv_sge sge;
	struct ct_ep e;
	uint32_t room;

	vt_start(ct, &e, &want);
	VT_OK(ct, ibv_query_qp(e.qp, &attr, IBV_QP_CAP, &init));
	room = attr.cap.max_send_wr;
	CT_TRUE(ct, room >= 8 && room <= 64);
	sge = vt_sge(&e, 0, 8);
	for (int round = 0; round < 3; round++) {
		for (uint32_t i = 0; ct->rank && i < room; i++)
			vt_recv(&e, 0, 64, i);
		ct_sync(ct, &e);
		for (uint32_t i = 0; !ct->rank && i < room; i++) {
			wr = send_wr(&e, &sge, i, i == room / 2);
			vt_post(&e, &wr);
		}
		for (uint32_t i = 0; ct->rank && i < room; i++)
			vt_done(&e, i, NULL);
		ct_sync(ct, NULL); /* all of them have arrived; nothing has been polled */
		if (!ct->rank) {
			wr = send_wr(&e, &sge, 99, true);
			VT_ERR(ct, ibv_post_send(e.qp, &wr, &bad), ENOMEM);
			CT_TRUE(ct, bad == &wr);
			vt_done(&e, room / 2, NULL);
			ct_sync(ct, &e);
			for (uint32_t i = 0; i <= room / 2; i++) {
				wr = send_wr(&e, &sge, 200 + i, i == room / 2);
				vt_post(&e, &wr);
			}
			VT_ERR(ct, ibv_post_send(e.qp, &wr, &bad), ENOMEM);
			vt_done(&e, 200 + room / 2, NULL);
		} else {
			for (uint32_t i = 0; i <= room / 2; i++)
				vt_recv(&e, 0, 64, 200 + i);
			ct_sync(ct, &e);
			for (uint32_t i = 0; i <= room / 2; i++)
				vt_done(&e, 200 + i, NULL);
		}
		ct_sync(ct, &e);
	}
	vt_finish(&e);
}

/* The send side stops, the receiving side goes on. */
static void halt(struct ct_ep *e)
{
	struct ibv_sge sge = vt_sge(e, 0, 8);
	struct ibv_send_wr first = send_wr(e, &sge, 1, true), wrong, last = send_wr(e, &sge, 3, false);
	struct ibv_sge bad = sge;

	bad.lkey ^= 0x1234567;
	wrong = send_wr(e, &bad, 2, false);
	first.next = &wrong;
	wrong.next = &last;
	vt_post(e, &first);
	vt_next(e, 1, IBV_WC_SUCCESS);
	vt_next(e, 2, IBV_WC_LOC_PROT_ERR);
	vt_next(e, 3, IBV_WC_WR_FLUSH_ERR);
	CT_EQ(e->ct, vt_state(e, e->qp), IBV_QPS_SQE);
	vt_post(e, &last);
	vt_next(e, 3, IBV_WC_WR_FLUSH_ERR);
}

static void halted(struct ct *ct)
{
	const struct vt_want want = { .type = ct->cs->arg, .sig_none = 1 };
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTS };
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct ct_ep e;

	vt_start(ct, &e, &want);
	sge = vt_sge(&e, 0, 8);
	for (int round = 0; round < 3; round++) {
		vt_recv(&e, 4096, 64, 10);
		vt_recv(&e, 4096, 64, 11);
		ct_sync(ct, &e);
		wr = send_wr(&e, &sge, 5, true);
		if (ct->rank) {
			vt_done(&e, 10, NULL);
			ct_sync(ct, &e);
			vt_post(&e, &wr);
			vt_done(&e, 5, NULL);
			vt_done(&e, 11, NULL);
			vt_recv(&e, 4096, 64, 12);
			vt_post(&e, &wr);
			vt_done(&e, 5, NULL);
			ct_sync(ct, &e);
			vt_done(&e, 12, NULL);
			continue;
		}
		halt(&e);
		ct_sync(ct, &e);       /* what the other sends comes behind the ends of these */
		vt_done(&e, 10, NULL); /* in SQE */
		VT_OK(ct, ibv_modify_qp(e.qp, &attr, IBV_QP_STATE));
		CT_EQ(ct, vt_state(&e, e.qp), IBV_QPS_RTS);
		vt_post(&e, &wr);
		vt_done(&e, 5, NULL);
		vt_done(&e, 11, NULL);
		ct_sync(ct, &e);
		vt_post(&e, &wr);
		vt_done(&e, 5, NULL);
	}
	if (!ct->rank) { /* the ways out */
		halt(&e);
		vt_to(&e, e.qp, IBV_QPS_ERR);
		wr = send_wr(&e, &sge, 6, false);
		vt_post(&e, &wr);
		vt_next(&e, 6, IBV_WC_WR_FLUSH_ERR);
		vt_to(&e, e.qp, IBV_QPS_RESET);
		CT_EQ(ct, vt_state(&e, e.qp), IBV_QPS_RESET);
	}
	vt_finish(&e);
}

/* ---- moderation ------------------------------------------------------------------------------ */

static void event(struct ct_ep *e)
{
	struct ibv_cq *cq;
	void *context;

	VT_OK(e->ct, ibv_get_cq_event(e->channel, &cq, &context));
	CT_TRUE(e->ct, cq == e->cq);
	ibv_ack_cq_events(cq, 1);
}

/*
 * Events come when enough has completed, or time is up. (When they do not come is a matter of
 * time, and not tested here.)
 */
static void moderated(struct ct *ct)
{
	const struct vt_want want = { .channel = true };
	struct ibv_modify_cq_attr attr = { .attr_mask = IBV_CQ_ATTR_MODERATE };
	struct ibv_device_attr_ex caps;
	struct ct_ep e;
	int rc;

	vt_start(ct, &e, &want);
	VT_OK(ct, ibv_query_device_ex(e.context, NULL, &caps));
	attr.moderate = (struct ibv_moderate_cq){ 4, UINT16_MAX };
	rc = ibv_modify_cq(e.cq, &attr);
	if (!caps.cq_mod_caps.max_cq_count) {
		CT_EQ(ct, rc, EOPNOTSUPP);
		ct_unsupported(ct, "no CQ moderation");
	}
	CT_EQ(ct, rc, 0);
	for (int round = 0; round < 5; round++) {
		int sends = round < 3 ? 4 : 1;

		if (round == 3) { /* alone it is told of when time is up, or, in the end, at once */
			attr.moderate.cq_period = 1000;
			VT_OK(ct, ibv_modify_cq(e.cq, &attr));
		} else if (round == 4) {
			attr.moderate = (struct ibv_moderate_cq){ 0, 0 };
			VT_OK(ct, ibv_modify_cq(e.cq, &attr));
		}
		VT_OK(ct, ibv_req_notify_cq(e.cq, 0));
		for (int i = 0; ct->rank && i < sends; i++)
			vt_recv(&e, 0, 64, (uint64_t)i);
		ct_sync(ct, NULL);
		for (int i = 0; !ct->rank && i < sends; i++)
			vt_send(&e, 0, 8, (uint64_t)i);
		event(&e);
		for (int i = 0; i < sends; i++)
			vt_done(&e, (uint64_t)i, NULL);
		ct_sync(ct, NULL);
	}
	attr.attr_mask = 1u << 20;
	VT_ERR(ct, ibv_modify_cq(e.cq, &attr), EINVAL);
	vt_finish(&e);
}

/* ---- threads that are cancelled -------------------------------------------------------------- */

/* which takes what a cancelled thread had on its stack for still in use there */
#ifndef __SANITIZE_ADDRESS__

struct victim {
	struct ct_ep *e;
	int done; /* it came so far */
};

/*
 * Calls that post and poll are no points of cancellation: all of this happens
 * though it has been cancelled.
 */
static void *cancelled(void *arg)
{
	struct victim *v = arg;
	int old;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old);
	pthread_cancel(pthread_self());
	pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &old);
	for (int i = 0; i < 200; i++) {
		struct ibv_sge sge = vt_sge(v->e, 0, i % 2 ? 8 : 100000);
		struct ibv_sge to = vt_sge(v->e, 200000, 100000);
		struct ibv_send_wr wr = vt_wr(v->e, IBV_WR_RDMA_WRITE, &sge, 1), *bad;
		struct ibv_recv_wr recv = { .wr_id = 7, .sg_list = &to, .num_sge = 1 }, *bad_recv;
		struct ibv_wc wc;
		int n;

		if ((i < 10 && ibv_post_recv(v->e->qp, &recv, &bad_recv)) ||
		    ibv_post_send(v->e->qp, &wr, &bad))
			return NULL;
		while (!(n = ibv_poll_cq(v->e->cq, 1, &wc)))
			;
		if (n < 0 || wc.status || ibv_req_notify_cq(v->e->cq, 0))
			return NULL;
	}
	v->done = 1;
	pthread_testcancel();
	v->done = 2; /* never */
	return NULL;
}

static void cancel(struct ct *ct)
{
	struct ct_ep e;

	vt_start(ct, &e, NULL);
	if (!ct->rank) {
		struct victim v = { &e, 0 };
		pthread_t thread;
		void *ret;

		CT_EQ(ct, pthread_create(&thread, NULL, cancelled, &v), 0);
		CT_EQ(ct, pthread_join(thread, &ret), 0);
		CT_EQ(ct, v.done, 1);
		CT_TRUE(ct, ret == PTHREAD_CANCELED);
		for (int i = 0; i < 10; i++) { /* no lock has been left behind */
			struct ibv_sge sge = vt_sge(&e, 0, 8);
			struct ibv_send_wr wr = vt_wr(&e, IBV_WR_RDMA_WRITE, &sge, 3);

			vt_post(&e, &wr);
			vt_done(&e, 3, NULL);
		}
	}
	vt_finish(&e);
}

#endif

/* ---- a device that is closed with all that is in it ------------------------------------------ */

static void left(struct ct *ct)
{
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct ct_ep e;

	vt_start(ct, &e, NULL);
	if (ct->rank) {
		memset(e.buf, 0x55, VT_SIZE);
		vt_recv(&e, 0, 64, 1);
		ct_sync(ct, &e);
		VT_OK(ct, ibv_close_device(e.context));
		ct_sync(ct, NULL);
		ct_sync(ct, NULL);
		CT_TRUE(ct, ct_untouched(e.buf, VT_SIZE, 0x55));
		return;
	}
	ct_sync(ct, &e);
	ct_sync(ct, NULL);
	sge = vt_sge(&e, 0, ct->cs->arg ? 100000 : 8);
	wr = vt_wr(&e, ct->cs->arg ? IBV_WR_RDMA_WRITE : IBV_WR_SEND, &sge, 2);
	vt_post(&e, &wr);
	vt_next(&e, 2, IBV_WC_RETRY_EXC_ERR);
	ct_sync(ct, NULL);
	vt_close(&e);
}

/* ---- device memory --------------------------------------------------------------------------- */

static void device_memory(struct ct *ct)
{
	struct ibv_alloc_dm_attr attr = { .length = 4096 };
	struct ibv_device_attr_ex caps;
	struct ibv_dm *dm;
	struct ibv_mr *mr;
	char back[64];
	struct ct_ep e;
	uint32_t rkey;

	vt_start(ct, &e, NULL);
	VT_OK(ct, ibv_query_device_ex(e.context, NULL, &caps));
	if (!caps.max_dm_size) {
		VT_NULL(ct, ibv_alloc_dm(e.context, &attr), EOPNOTSUPP);
		ct_unsupported(ct, "no device memory");
	}
	attr.length = caps.max_dm_size + 1;
	CT_TRUE(ct, !ibv_alloc_dm(e.context, &attr));
	attr.length = 4096;
	dm = ibv_alloc_dm(e.context, &attr);
	CT_TRUE(ct, dm && dm->context == e.context);
	ct_fill(e.buf, 64, 5);
	VT_OK(ct, ibv_memcpy_to_dm(dm, 128, e.buf, 64));
	VT_OK(ct, ibv_memcpy_from_dm(back, dm, 128, 64));
	ct_verify(ct, back, 64, 5, "copied back");
	CT_TRUE(ct, ibv_memcpy_to_dm(dm, 4096 - 60, e.buf, 64) != 0);
	errno = 0;
	VT_ERR(ct, ibv_memcpy_to_dm(dm, 1, e.buf, 64), EINVAL);
	CT_EQ(ct, errno, EINVAL);
	errno = 0;
	VT_ERR(ct, ibv_memcpy_from_dm(back, dm, 4096, 64), EFAULT);
	CT_EQ(ct, errno, EFAULT);
	VT_ERR(ct, ibv_memcpy_to_dm(dm, 4, e.buf, 62), EINVAL);
	VT_ERR(ct, ibv_memcpy_from_dm(back, dm, 2, 64), EINVAL);
	mr = ibv_reg_dm_mr(e.pd, dm, 4096, 0, VT_ACCESS | IBV_ACCESS_ZERO_BASED); /* of no bytes */
	CT_TRUE(ct, mr && !mr->length);
	VT_OK(ct, ibv_dereg_mr(mr));
	CT_TRUE(ct, ibv_memcpy_from_dm(back, dm, UINT64_MAX - 3, 64) != 0);
	VT_NULL(ct, ibv_reg_dm_mr(e.pd, dm, 4000, 100, VT_ACCESS | IBV_ACCESS_ZERO_BASED), EINVAL);
	VT_NULL(ct, ibv_reg_dm_mr(e.pd, dm, 0, 100, VT_ACCESS), EINVAL);
	mr = ibv_reg_dm_mr(e.pd, dm, 1024, 1024, VT_ACCESS | IBV_ACCESS_ZERO_BASED);
	CT_TRUE(ct, mr && mr->length == 1024);
	VT_ERR(ct, ibv_free_dm(dm), EBUSY);
	ct_put(ct, !ct->rank, &mr->rkey, sizeof(mr->rkey));
	ct_get(ct, &e, !ct->rank, &rkey, sizeof(rkey));
	if (!ct->rank) {
		struct ibv_sge sge = vt_sge(&e, 0, 64);
		struct ibv_send_wr wr = vt_wr(&e, IBV_WR_RDMA_WRITE, &sge, 1);

		wr.wr.rdma.remote_addr = 100;
		wr.wr.rdma.rkey = rkey;
		vt_post(&e, &wr);
		vt_done(&e, 1, NULL);
		sge = (struct ibv_sge){ 512, 64, mr->lkey }; /* and ours is a local segment */
		wr.opcode = IBV_WR_RDMA_READ;
		vt_post(&e, &wr);
		vt_done(&e, 1, NULL);
		VT_OK(ct, ibv_memcpy_from_dm(back, dm, 1024 + 512, 64));
		ct_verify(ct, back, 64, 5, "read into it");
	}
	ct_sync(ct, &e);
	if (ct->rank) {
		VT_OK(ct, ibv_memcpy_from_dm(back, dm, 1024 + 100, 64));
		ct_verify(ct, back, 64, 5, "written into it");
	}
	VT_OK(ct, ibv_dereg_mr(mr));
	VT_OK(ct, ibv_free_dm(dm));
	vt_finish(&e);
}

/* What a child of fork(2) does with device memory; the number of the first thing that is wrong. */
static int device_memory_child(struct ct_ep *e, struct ibv_dm *parents)
{
	struct ibv_device_attr_ex caps;
	struct ibv_alloc_dm_attr attr = { .length = 4096, .log_align_req = 16 };
	struct ibv_dm *dm = ibv_alloc_dm(e->context, &attr);
	char back[64];

	ct_fill(e->buf, 64, 7);
	if (!dm || dm->context != e->context)
		return 1;
	if (ibv_memcpy_to_dm(dm, 128, e->buf, 64) || ibv_memcpy_from_dm(back, dm, 128, 64) ||
	    memcmp(back, e->buf, 64))
		return 2;
	if (ibv_memcpy_to_dm(dm, 4096, e->buf, 4) != EFAULT)
		return 3;
	if (ibv_reg_dm_mr(e->pd, dm, 0, 64, VT_ACCESS | IBV_ACCESS_ZERO_BASED))
		return 4;
	if (ibv_free_dm(dm))
		return 5;
	attr.length = (size_t)-1;
	if (ibv_alloc_dm(e->context, &attr))
		return 6;
	if (ibv_memcpy_to_dm(parents, 0, e->buf, 64))
		return 7;
	if (ibv_query_device_ex(e->context, NULL, &caps) || !caps.max_dm_size)
		return 8;
	return ibv_free_dm(parents) ? 0 : 9;
}

/*
 * Over a card a child allocates with the context that its parent opened, and copies to
 * what its parent allocated.
 */
static void device_memory_fork(struct ct *ct)
{
	struct ibv_alloc_dm_attr attr = { .length = 4096 };
	struct ibv_device_attr_ex caps;
	struct ibv_dm *dm;
	struct ct_ep e;
	char back[64];
	int status;
	pid_t pid;

	vt_open(ct, &e, NULL);
	VT_OK(ct, ibv_query_device_ex(e.context, NULL, &caps));
	if (!caps.max_dm_size)
		ct_unsupported(ct, "no device memory");
	VT_OK(ct, ibv_fork_init());
	dm = ibv_alloc_dm(e.context, &attr);
	CT_TRUE(ct, dm);
	pid = vt_child(&e);
	if (pid == 0)
		_exit(device_memory_child(&e, dm));
	CT_TRUE(ct, pid > 0 && waitpid(pid, &status, 0) == pid);
	CT_EQ(ct, status, 0);
	VT_OK(ct, ibv_memcpy_from_dm(back, dm, 0, 64));
	ct_verify(ct, back, 64, 7, "what the child copied there");
	VT_OK(ct, ibv_free_dm(dm));
	vt_close(&e);
}

/* ---- second paths, and what is not there ----------------------------------------------------- */

/* A second path is kept and told, whether or not the device migrates by itself. */
static void alternate(struct ct *ct)
{
	static const enum ibv_qp_type connected[] = { IBV_QPT_RC, IBV_QPT_UC };

	for (size_t i = 0; i < CT_COUNT(connected); i++) {
		const struct vt_want want = { .type = connected[i] };
		struct ibv_qp_init_attr init;
		struct ibv_qp_attr attr = { 0 }, got;
		struct ct_ep e;
		int mask;

		vt_open(ct, &e, &want);
		mask = vt_init(&e, &attr);
		VT_OK(ct, ibv_modify_qp(e.qp, &attr, mask));
		mask = vt_rtr(&e, &e.me, &attr) | IBV_QP_ALT_PATH;
		attr.alt_ah_attr = attr.ah_attr;
		attr.alt_ah_attr.sl = 3;
		attr.alt_timeout = 17;
		attr.alt_port_num = 2; /* there is one port */
		VT_ERR(ct, ibv_modify_qp(e.qp, &attr, mask), EINVAL);
		attr.alt_port_num = 1;
		attr.alt_timeout = 32;
		VT_ERR(ct, ibv_modify_qp(e.qp, &attr, mask), EINVAL);
		attr.alt_timeout = 17;
		VT_OK(ct, ibv_modify_qp(e.qp, &attr, mask));
		mask = vt_rts(&e, &attr) | IBV_QP_PATH_MIG_STATE;
		attr.path_mig_state = IBV_MIG_ARMED + 1;
		VT_ERR(ct, ibv_modify_qp(e.qp, &attr, mask), EINVAL);
		attr.path_mig_state = IBV_MIG_REARM;
		VT_OK(ct, ibv_modify_qp(e.qp, &attr, mask));
		VT_OK(ct, ibv_query_qp(e.qp, &got, IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE, &init));
		CT_EQ(ct, got.alt_ah_attr.sl, 3);
		CT_EQ(ct, got.alt_timeout, 17);
		CT_EQ(ct, got.alt_port_num, 1);
		CT_TRUE(ct, got.path_mig_state == IBV_MIG_REARM || got.path_mig_state == IBV_MIG_ARMED);
		vt_recv(&e, 4096, 64, 2); /* first: what finds none is dropped by UC */
		vt_send(&e, 0, 8, 1);	  /* to itself, and so it goes on */
		vt_done(&e, 2, NULL);
		vt_to(&e, e.qp, IBV_QPS_RESET);
		attr = (struct ibv_qp_attr){ 0 };
		mask = vt_init(&e, &attr);
		VT_OK(ct, ibv_modify_qp(e.qp, &attr, mask));
		mask = vt_rtr(&e, &e.me, &attr);
		VT_OK(ct, ibv_modify_qp(e.qp, &attr, mask));
		mask = vt_rts(&e, &attr) | IBV_QP_PATH_MIG_STATE;
		attr.path_mig_state = IBV_MIG_REARM; /* without a second path */
		VT_ERR(ct, ibv_modify_qp(e.qp, &attr, mask), EINVAL);
		vt_close(&e);
	}
}

/* What a device does not have says so, and so do its attributes. */
static void answers(struct ct *ct)
{
	struct ibv_qp_rate_limit_attr rate = { .rate_limit = 1000 };
	struct ibv_device_attr_ex attr;
	struct ibv_ece ece = { 0 };
	struct ct_ep e;
	int rc;

	vt_open(ct, &e, NULL);
	VT_OK(ct, ibv_query_device_ex(e.context, NULL, &attr));
	rc = ibv_modify_qp_rate_limit(e.qp, &rate);
	CT_TRUE(ct, attr.packet_pacing_caps.qp_rate_limit_max ? rc == 0 || rc == EINVAL : rc == EOPNOTSUPP);
	rc = ibv_query_ece(e.qp, &ece);
	CT_TRUE(ct, rc == 0 || rc == EOPNOTSUPP);
	CT_TRUE(ct, rc == 0 || !ece.vendor_id);
	ece = (struct ibv_ece){ 0 };
	VT_ERR(ct, ibv_set_ece(e.qp, &ece), EOPNOTSUPP); /* of no vendor */
	rc = ibv_query_qp_data_in_order(e.qp, IBV_WR_RDMA_WRITE, 0);
	CT_TRUE(ct, rc == 0 || rc == 1);
	if (!attr.rss_caps.supported_qpts) {
		struct ibv_wq_init_attr wq = { .wq_type = IBV_WQT_RQ, .max_wr = 1, .max_sge = 1 };
		struct ibv_rwq_ind_table_init_attr table = { 0 };

		CT_EQ(ct, attr.max_wq_type_rq, 0);
		CT_EQ(ct, attr.rss_caps.max_rwq_indirection_tables, 0);
		wq.pd = e.pd;
		wq.cq = e.cq;
		VT_NULL(ct, ibv_create_wq(e.context, &wq), EOPNOTSUPP);
		VT_NULL(ct, ibv_create_rwq_ind_table(e.context, &table), EOPNOTSUPP);
	}
	if (!attr.raw_packet_caps) {
		struct ibv_flow_attr flow = { .type = IBV_FLOW_ATTR_NORMAL, .size = sizeof(flow), .port = 1 };

		VT_NULL(ct, ibv_create_flow(e.qp, &flow), EOPNOTSUPP);
	}
	vt_close(&e);
}

const struct ct_case vt_queues[] = { { "V1", "places-rc", { places, places }, .arg = IBV_QPT_RC },
				     { "V1", "places-uc", { places, places }, .arg = IBV_QPT_UC },
				     { "V1", "places-ud", { places, places }, .arg = IBV_QPT_UD },
				     { "V7", "sqe-uc", { halted, halted }, .arg = IBV_QPT_UC },
				     { "V7", "sqe-ud", { halted, halted }, .arg = IBV_QPT_UD },
#ifndef __SANITIZE_ADDRESS__
				     { "V1", "cancelled", { cancel, cancel } },
#endif
				     { "CQ", "moderated", { moderated, moderated } },
				     { "V10", "closed-with-a-receive", { left, left }, .slow = true },
				     { "V10", "closed-with-a-region", { left, left }, .arg = 1, .slow = true },
				     { "V10", "device-memory", { device_memory, device_memory } },
				     { "V10", "device-memory-fork", { device_memory_fork } },
				     { "QP", "alternate-path", { alternate } },
				     { "QP", "answers", { answers } },
				     { NULL } };
