/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* V5: send flags of ibv_post_send(3). */
#include "vt.h"

#include <errno.h>
#include <poll.h>
#include <string.h>

/* sq_sig_all 0: only what asks for it completes; the order is that of posting. */
static void signalled(struct ct *ct)
{
	const struct vt_want want = { .sig_none = 1, .type = (enum ibv_qp_type)ct->cs->arg };
	struct ct_ep e;

	vt_start(ct, &e, &want);
	if (ct->rank)
		for (uint64_t i = 0; i < 100; i++)
			vt_recv(&e, 0, 64, i);
	ct_sync(ct, &e);
	for (uint64_t i = 0; i < 100; i++) {
		struct ibv_sge sge = vt_sge(&e, 0, 8);
		struct ibv_send_wr wr = vt_wr(&e, IBV_WR_SEND, &sge, i);

		if (ct->rank) {
			vt_next(&e, i, IBV_WC_SUCCESS);
			continue;
		}
		wr.send_flags = i % 10 == 9 ? IBV_SEND_SIGNALED : 0;
		vt_post(&e, &wr);
		if (i % 10 == 9)
			vt_next(&e, i, IBV_WC_SUCCESS);
	}
	ct_sync(ct, &e);
	vt_quiet(&e, 5, "unsignalled");
	vt_finish(&e);
}

/* Errors complete, whether asked for or not. */
static void unsignalled_error(struct ct *ct)
{
	const struct vt_want want = { .sig_none = 1 };
	struct ct_ep e;

	vt_start(ct, &e, &want);
	if (!ct->rank) {
		struct ibv_sge sge = vt_sge(&e, 0, 8);
		struct ibv_send_wr wr = vt_wr(&e, IBV_WR_RDMA_WRITE, &sge, 5);

		wr.wr.rdma.rkey ^= 0x5a5a;
		vt_post(&e, &wr);
		vt_next(&e, 5, IBV_WC_REM_ACCESS_ERR);
	}
	vt_finish(&e);
}

/* Inline data is taken over at once, needs no key, and is bounded. */
static void inline_data(struct ct *ct)
{
	static const enum ibv_wr_opcode ops[] = { IBV_WR_SEND, IBV_WR_RDMA_WRITE };
	const struct vt_want want = { .inline_data = 200, .type = (enum ibv_qp_type)ct->cs->arg };
	bool connected = want.type != IBV_QPT_UD;
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct ct_ep e;

	vt_start(ct, &e, &want);
	VT_OK(ct, ibv_query_qp(e.qp, &attr, IBV_QP_CAP, &init));
	for (int i = 0; i < 1 + connected; i++) {
		if (ct->rank) {
			if (!i)
				vt_recv(&e, 4096, 1024, 1);
			ct_sync(ct, &e);
			if (!i)
				vt_done(&e, 1, NULL);
			ct_sync(ct, &e);
			ct_verify(ct, e.buf + 4096 * !i + (connected ? 0 : 40), 200, 3, "inline");
		} else {
			char own[200];
			struct ibv_sge sge[2] = { { (uintptr_t)own, 150, 0xbad },
						  { (uintptr_t)own + 150, 50, 0 } };
			struct ibv_send_wr wr = vt_wr(&e, ops[i], NULL, 2), *bad;

			wr.wr.rdma.remote_addr = connected ? e.peer[1].addr : wr.wr.rdma.remote_addr;
			wr.sg_list = sge;
			wr.num_sge = 2;
			wr.send_flags = IBV_SEND_INLINE;
			ct_fill(own, sizeof(own), 3);
			ct_sync(ct, &e);
			VT_OK(ct, ibv_post_send(e.qp, &wr, &bad));
			memset(own, 0, sizeof(own));
			vt_done(&e, 2, NULL);
			ct_sync(ct, &e);
			/* with the first segment, too long */
			sge[1].length = attr.cap.max_inline_data;
			VT_ERR(ct, ibv_post_send(e.qp, &wr, &bad), EINVAL);
		}
	}
	if (!ct->rank && want.type == IBV_QPT_RC) {
		struct ibv_sge sge = vt_sge(&e, 0, 8);
		struct ibv_send_wr wr = vt_wr(&e, IBV_WR_RDMA_READ, &sge, 2), *bad;

		wr.send_flags = IBV_SEND_INLINE; /* for sends and writes alone */
		VT_ERR(ct, ibv_post_send(e.qp, &wr, &bad), EINVAL);
	}
	vt_finish(&e);
}

/* A fenced send carries what the read before it has brought. */
static void fence(struct ct *ct)
{
	const size_t len = 300000;
	struct ct_ep e;

	vt_start(ct, &e, NULL);
	if (ct->rank) {
		ct_fill(e.buf, len, 1);
		vt_recv(&e, 1u << 19, (uint32_t)len, 9);
		ct_sync(ct, NULL);
		vt_done(&e, 9, NULL);
		ct_verify(ct, e.buf + (1u << 19), len, 1, "fenced");
	} else {
		struct ibv_sge sge = vt_sge(&e, 0, (uint32_t)len);
		struct ibv_send_wr read = vt_wr(&e, IBV_WR_RDMA_READ, &sge, 1);
		struct ibv_send_wr send = vt_wr(&e, IBV_WR_SEND, &sge, 2);

		read.next = &send;
		send.send_flags = IBV_SEND_FENCE;
		ct_sync(ct, NULL);
		vt_post(&e, &read);
		vt_next(&e, 1, IBV_WC_SUCCESS);
		vt_next(&e, 2, IBV_WC_SUCCESS);
	}
	vt_finish(&e);
}

static void fence_refused(struct ct *ct)
{
	const struct vt_want want = { .type = IBV_QPT_UC };
	struct ibv_send_wr wr, *bad;
	struct ct_ep e;

	vt_start(ct, &e, &want);
	wr = vt_wr(&e, IBV_WR_SEND, NULL, 1);
	wr.send_flags = IBV_SEND_FENCE; /* valid for RC alone */
	VT_ERR(ct, ibv_post_send(e.qp, &wr, &bad), EINVAL);
	vt_finish(&e);
}

static bool readable(const struct ct_ep *e, int ms)
{
	struct pollfd fd = { e->channel->fd, POLLIN, 0 };

	return poll(&fd, 1, ms) == 1;
}

static void take_event(struct ct_ep *e)
{
	struct ibv_cq *cq;
	void *context;

	VT_OK(e->ct, ibv_get_cq_event(e->channel, &cq, &context));
	CT_TRUE(e->ct, cq == e->cq && context == e);
	ibv_ack_cq_events(cq, 1);
}

/*
 * Who has asked for solicited completions only hears of those: sends and writes with
 * immediate data that say so.
 */
static void solicited(struct ct *ct)
{
	const struct vt_want want = { .channel = true };
	struct ct_ep e;

	vt_start(ct, &e, &want);
	for (int i = 0; i < 2; i++) {
		if (ct->rank) {
			vt_recv(&e, 0, 64, 1);
			vt_recv(&e, 0, 64, 2);
			VT_OK(ct, ibv_req_notify_cq(e.cq, 1));
			ct_sync(ct, NULL);
			ct_sync(ct, NULL); /* the plain one has been accepted */
			CT_TRUE(ct, !readable(&e, 20));
			ct_sync(ct, NULL);
			CT_TRUE(ct, readable(&e, 10000));
			take_event(&e);
			vt_done(&e, 1, NULL);
			vt_done(&e, 2, NULL);
		} else {
			struct ibv_sge sge = vt_sge(&e, 0, 8);
			struct ibv_send_wr wr =
				vt_wr(&e, i ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_SEND, &sge, 3);

			ct_sync(ct, NULL);
			vt_post(&e, &wr);
			vt_done(&e, 3, NULL);
			ct_sync(ct, NULL);
			ct_sync(ct, NULL);
			wr.send_flags = IBV_SEND_SOLICITED;
			vt_post(&e, &wr);
			vt_done(&e, 3, NULL);
		}
		ct_sync(ct, NULL);
	}
	vt_finish(&e);
}

const struct ct_case vt_flags[] = { { "V5", "signalled-rc", { signalled, signalled }, .arg = IBV_QPT_RC },
				    { "V5", "signalled-uc", { signalled, signalled }, .arg = IBV_QPT_UC },
				    { "V5", "signalled-ud", { signalled, signalled }, .arg = IBV_QPT_UD },
				    { "V5", "unsignalled-error", { unsignalled_error, unsignalled_error } },
				    { "V5", "inline-rc", { inline_data, inline_data }, .arg = IBV_QPT_RC },
				    { "V5", "inline-uc", { inline_data, inline_data }, .arg = IBV_QPT_UC },
				    { "V5", "inline-ud", { inline_data, inline_data }, .arg = IBV_QPT_UD },
				    { "V5", "fence", { fence, fence } },
				    { "V5", "fence-refused", { fence_refused, fence_refused } },
				    { "V5", "solicited", { solicited, solicited } },
				    { NULL } };
