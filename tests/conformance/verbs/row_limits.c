/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * The largest of everything that ibv_query_device(3) and ibv_query_port(3)
 * promise, and the smallest.
 */
#include "vt.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

/* Queues of every largest size can be had, and one more cannot. */
static void largest(struct ct *ct)
{
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC };
	struct ibv_srq_init_attr srq = { 0 };
	struct ibv_device_attr dev;
	struct ibv_srq *queue;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ct_ep e;

	vt_open(ct, &e, NULL);
	VT_OK(ct, ibv_query_device(e.context, &dev));
	cq = ibv_create_cq(e.context, dev.max_cqe, NULL, NULL, 0);
	CT_TRUE(ct, cq && cq->cqe >= dev.max_cqe);
	init.send_cq = init.recv_cq = cq;
	init.cap = (struct ibv_qp_cap){ (uint32_t)dev.max_qp_wr, (uint32_t)dev.max_qp_wr,
					(uint32_t)dev.max_sge, (uint32_t)dev.max_sge, 0 };
	qp = ibv_create_qp(e.pd, &init);
	CT_TRUE(ct, qp && init.cap.max_send_wr >= (uint32_t)dev.max_qp_wr &&
			    init.cap.max_recv_wr >= (uint32_t)dev.max_qp_wr &&
			    init.cap.max_send_sge >= (uint32_t)dev.max_sge &&
			    init.cap.max_recv_sge >= (uint32_t)dev.max_sge);
	VT_OK(ct, ibv_destroy_qp(qp));
	VT_OK(ct, ibv_destroy_cq(cq));
	srq.attr = (struct ibv_srq_attr){ (uint32_t)dev.max_srq_wr, (uint32_t)dev.max_srq_sge, 0 };
	queue = ibv_create_srq(e.pd, &srq);
	CT_TRUE(ct, queue && srq.attr.max_wr >= (uint32_t)dev.max_srq_wr &&
			    srq.attr.max_sge >= (uint32_t)dev.max_srq_sge);
	VT_OK(ct, ibv_destroy_srq(queue));
	srq.attr = (struct ibv_srq_attr){ (uint32_t)dev.max_srq_wr + 1, 1, 0 };
	VT_NULL(ct, ibv_create_srq(e.pd, &srq), EINVAL);
	srq.attr = (struct ibv_srq_attr){ 1, (uint32_t)dev.max_srq_sge + 1, 0 };
	VT_NULL(ct, ibv_create_srq(e.pd, &srq), EINVAL);
	vt_close(&e);
}

/*
 * As many segments as there may be, of odd lengths, one of them empty and with no key: by
 * messages, writes and reads.
 */
static void segments(struct ct *ct)
{
	struct ibv_sge from[256], to[256];
	struct vt_want want = { 0 };
	struct ibv_device_attr dev;
	struct ibv_recv_wr rwr = { .wr_id = 9, .sg_list = to }, *bad;
	struct ibv_send_wr wr;
	size_t len = 0;
	struct ct_ep e;
	int n;

	e.context = vt_context(ct);
	VT_OK(ct, ibv_query_device(e.context, &dev));
	VT_OK(ct, ibv_close_device(e.context));
	n = dev.max_sge < 256 ? dev.max_sge : 256;
	want.sge = (uint32_t)n;
	vt_start(ct, &e, &want);
	for (int i = 0; i < n; i++) {
		from[i] = vt_sge(&e, len, (uint32_t)(i * 37 % 500 + 1));
		to[n - 1 - i] = vt_sge(&e, 0, from[i].length);
		if (i == n / 2)
			from[i] = (struct ibv_sge){ 1, 0, 0xdead };
		len += from[i].length;
	}
	for (size_t i = 0, at = 500000; i < (size_t)n; at += to[i++].length)
		to[i].addr = (uintptr_t)e.buf + at;
	ct_fill(e.buf, len, (uint64_t)ct->rank + 1);
	rwr.num_sge = n;
	VT_OK(ct, ibv_post_recv(e.qp, &rwr, &bad));
	ct_sync(ct, &e);
	wr = vt_wr(&e, IBV_WR_SEND, from, 1);
	wr.num_sge = n;
	vt_post(&e, &wr);
	vt_done(&e, 1, NULL);
	vt_done(&e, 9, NULL);
	ct_verify(ct, e.buf + 500000, len, (uint64_t)!ct->rank + 1, "message of segments");
	ct_sync(ct, &e);
	wr.opcode = IBV_WR_RDMA_WRITE;
	wr.wr.rdma.remote_addr = e.peer[!ct->rank].addr + 700000;
	wr.wr.rdma.rkey = e.peer[!ct->rank].rkey;
	vt_post(&e, &wr);
	vt_done(&e, 1, NULL);
	ct_sync(ct, &e);
	ct_verify(ct, e.buf + 700000, len, (uint64_t)!ct->rank + 1, "written from segments");
	wr.opcode = IBV_WR_RDMA_READ; /* one's own, from where it has been written to */
	memset(e.buf, 0, len);
	vt_post(&e, &wr);
	vt_done(&e, 1, NULL);
	ct_verify(ct, e.buf, len, (uint64_t)ct->rank + 1, "read into segments");
	vt_finish(&e);
}

/* Longer than any message may be: told by the completion, of memory that is not even touched. */
static void too_long(struct ct *ct)
{
	static const enum ibv_wr_opcode ops[] = { IBV_WR_SEND, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ };
	struct ibv_port_attr port;
	struct ct_ep e;

	vt_open(ct, &e, NULL);
	e.peer[!ct->rank] = e.me;
	VT_OK(ct, ibv_query_port(e.context, 1, &port));
	for (size_t i = 0; i < CT_COUNT(ops); i++) {
		size_t len = (size_t)port.max_msg_sz / 2 + 4096;
		void *big = mmap(NULL, len, PROT_READ | PROT_WRITE,
				 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		struct ibv_mr *mr;
		struct ibv_sge sge[2];
		struct ibv_send_wr wr;

		CT_TRUE(ct, big != MAP_FAILED);
		mr = ibv_reg_mr(e.pd, big, len, IBV_ACCESS_LOCAL_WRITE);
		CT_TRUE(ct, mr);
		sge[0] = sge[1] = (struct ibv_sge){ (uintptr_t)big, port.max_msg_sz / 2, mr->lkey };
		sge[1].length++;
		vt_connect(&e, e.qp, &e.me);
		wr = vt_wr(&e, ops[i], NULL, 1);
		wr.sg_list = sge;
		wr.num_sge = 2;
		vt_post(&e, &wr);
		vt_next(&e, 1, IBV_WC_LOC_LEN_ERR);
		CT_EQ(ct, vt_state(&e, e.qp), IBV_QPS_ERR);
		vt_to(&e, e.qp, IBV_QPS_RESET);
		VT_OK(ct, ibv_dereg_mr(mr));
		munmap(big, len);
	}
	vt_close(&e);
}

/* Of nothing: no key is looked at, here or there, and what needs a receive still takes one. */
static void empty(struct ct *ct)
{
	static const enum ibv_wr_opcode ops[] = { IBV_WR_SEND, IBV_WR_SEND_WITH_IMM, IBV_WR_RDMA_WRITE,
						  IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_RDMA_READ };
	struct ibv_recv_wr rwr = { 0 }, *bad;
	struct ct_ep e;

	vt_start(ct, &e, NULL);
	for (uint64_t i = 0; ct->rank && i < 6; i++) {
		rwr.wr_id = i;
		VT_OK(ct, ibv_post_recv(e.qp, &rwr, &bad));
	}
	ct_sync(ct, &e);
	for (int how = 0; how < 2; how++) {
		for (size_t i = 0; !ct->rank && i < CT_COUNT(ops); i++) {
			struct ibv_sge sge = { 3, 0, 0xdead };
			struct ibv_send_wr wr = vt_wr(&e, ops[i], how ? &sge : NULL, i);

			wr.wr.rdma.remote_addr = 5;
			wr.wr.rdma.rkey = 0xdead;
			vt_post(&e, &wr);
			vt_next(&e, i, IBV_WC_SUCCESS);
		}
		for (uint64_t i = 0; ct->rank && i < 3; i++) {
			struct ibv_wc wc;

			vt_any(&e, &wc);
			CT_EQ(ct, wc.wr_id, (uint64_t)how * 3 + i);
			CT_EQ(ct, wc.status, IBV_WC_SUCCESS);
			CT_EQ(ct, wc.byte_len, 0);
			CT_EQ(ct, wc.wc_flags, i ? IBV_WC_WITH_IMM : 0);
			CT_EQ(ct, wc.opcode, i == 2 ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV);
		}
	}
	vt_finish(&e);
}

/*
 * A datagram of the whole MTU arrives; into a buffer that has room for its header and no
 * more comes one of nothing.
 */
static void datagrams(struct ct *ct)
{
	const struct vt_want want = { .type = IBV_QPT_UD };
	struct ibv_wc wc;
	struct ct_ep e;

	vt_start(ct, &e, &want);
	if (ct->rank) {
		vt_recv(&e, 0, 40, 1);
		vt_recv(&e, 8192, 4096 + 40, 2);
		ct_sync(ct, &e);
		vt_done(&e, 1, &wc);
		CT_EQ(ct, wc.byte_len, 40);
		vt_done(&e, 2, &wc);
		CT_EQ(ct, wc.byte_len, 4096 + 40);
		ct_verify(ct, e.buf + 8192 + 40, 4096, 4, "the largest datagram");
	} else {
		struct ibv_send_wr wr = vt_wr(&e, IBV_WR_SEND, NULL, 1);

		ct_fill(e.buf, 4096, 4);
		ct_sync(ct, &e);
		vt_post(&e, &wr);
		vt_next(&e, 1, IBV_WC_SUCCESS);
		vt_send(&e, 0, 4096, 2);
		vt_next(&e, 2, IBV_WC_SUCCESS);
	}
	vt_finish(&e);
}

/* Real-time values: what was asked for and is known is marked. */
static void values(struct ct *ct)
{
	struct ibv_context *c = vt_context(ct);
	struct ibv_values_ex now = { .comp_mask = IBV_VALUES_MASK_RAW_CLOCK | 1u << 20 };

	VT_OK(ct, ibv_query_rt_values_ex(c, &now));
	CT_EQ(ct, now.comp_mask, IBV_VALUES_MASK_RAW_CLOCK);
	CT_TRUE(ct, now.raw_clock.tv_nsec);
	now.comp_mask = 0;
	VT_OK(ct, ibv_query_rt_values_ex(c, &now));
	CT_EQ(ct, now.comp_mask, 0);
	VT_OK(ct, ibv_close_device(c));
}

/* What programs print, and others look for in their logs. */
static void words(struct ct *ct)
{
	static const struct {
		enum ibv_wc_status status;
		const char *word;
	} all[] = { { IBV_WC_SUCCESS, "success" },
		    { IBV_WC_WR_FLUSH_ERR, "Work Request Flushed Error" },
		    { IBV_WC_MW_BIND_ERR, "memory management operation error" },
		    { IBV_WC_RETRY_EXC_ERR, "transport retry counter exceeded" },
		    { IBV_WC_REM_ABORT_ERR, "aborted error" },
		    { IBV_WC_TM_ERR, "TM error" },
		    { IBV_WC_TM_RNDV_INCOMPLETE, "TM software rendezvous" } };

	for (size_t i = 0; i < CT_COUNT(all); i++)
		if (strcmp(ibv_wc_status_str(all[i].status), all[i].word))
			ct_fail(ct, "%d is \"%s\"", (int)all[i].status, ibv_wc_status_str(all[i].status));
	CT_TRUE(ct, !strcmp(ibv_event_type_str(IBV_EVENT_WQ_FATAL), "WQ fatal"));
	CT_TRUE(ct, !strcmp(ibv_event_type_str((enum ibv_event_type)(IBV_EVENT_WQ_FATAL + 1)),
			    "Device link speed change")); /* of the newest headers */
}

/*
 * A port says whether address handles have to have a GRH, and means it: ibv_query_port(3),
 * ibv_create_ah(3), ibv_modify_qp(3).
 */
static void grh(struct ct *ct)
{
	struct ibv_ah_attr av = { .dlid = 1, .port_num = 1 };
	struct ibv_qp_attr attr = { 0 };
	struct ibv_port_attr port;
	struct ibv_ah *ah;
	struct ct_ep e;
	int mask;
	bool must;

	vt_open(ct, &e, NULL);
	VT_OK(ct, ibv_query_port(e.context, 1, &port));
	must = port.flags & IBV_QPF_GRH_REQUIRED;
	CT_TRUE(ct, must || port.link_layer != IBV_LINK_LAYER_ETHERNET);
	ah = ibv_create_ah(e.pd, &av);
	CT_EQ(ct, !ah, must);
	if (ah)
		VT_OK(ct, ibv_destroy_ah(ah));
	mask = vt_init(&e, &attr);
	VT_OK(ct, ibv_modify_qp(e.qp, &attr, mask));
	mask = vt_rtr(&e, &e.me, &attr);
	attr.ah_attr = av;
	VT_ERR(ct, ibv_modify_qp(e.qp, &attr, mask), must ? EINVAL : 0);
	vt_close(&e);
}

const struct ct_case vt_limits[] = { { "QP", "largest", { largest } },
				     { "V1", "segments", { segments, segments } },
				     { "V7", "longer-than-any", { too_long } },
				     { "V4", "empty", { empty, empty } },
				     { "V3", "largest-datagram", { datagrams, datagrams } },
				     { "V10", "clock", { values } },
				     { "V10", "words", { words } },
				     { "V10", "grh", { grh } },
				     { NULL } };
