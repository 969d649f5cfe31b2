/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * V10: what programs do before they have a queue pair: devices, protection domains, regions,
 * completion queues, channels.
 */
#include "vt.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- devices --------------------------------------------------------------------------------- */

static void device(struct ct *ct)
{
	struct ibv_context *c = vt_context(ct);
	struct ibv_device_attr a;
	struct ibv_device_attr_ex x;

	VT_OK(ct, ibv_query_device(c, &a));
	CT_EQ(ct, a.phys_port_cnt, 1);
	CT_EQ(ct, a.node_guid, ibv_get_device_guid(c->device));
	CT_TRUE(ct, a.node_guid != 0 && a.sys_image_guid != 0 && a.vendor_id != 0);
	CT_TRUE(ct, a.max_qp > 0 && a.max_qp_wr > 0 && a.max_sge > 0 && a.max_cq > 0 && a.max_cqe > 0);
	CT_TRUE(ct, a.max_mr > 0 && a.max_pd > 0 && a.max_ah > 0 && a.max_srq > 0 && a.max_mr_size > 0);
	CT_TRUE(ct, a.max_qp_rd_atom > 0 && a.max_qp_init_rd_atom > 0 && a.max_pkeys > 0);
	CT_EQ(ct, a.atomic_cap, IBV_ATOMIC_HCA);
	VT_OK(ct, ibv_query_device_ex(c, NULL, &x));
	CT_EQ(ct, memcmp(&a, &x.orig_attr, sizeof(a)), 0);
	CT_TRUE(ct, c->num_comp_vectors >= 1);
	VT_OK(ct, ibv_close_device(c));
}

static void port(struct ct *ct)
{
	struct ibv_context *c = vt_context(ct);
	struct ibv_gid_entry entries[64];
	struct ibv_port_attr a;
	union ibv_gid gid;
	uint16_t pkey;

	VT_OK(ct, ibv_query_port(c, 1, &a));
	CT_EQ(ct, a.state, IBV_PORT_ACTIVE);
	CT_TRUE(ct, a.max_mtu >= IBV_MTU_256 && a.active_mtu <= a.max_mtu && a.max_msg_sz >= 1u << 20);
	CT_TRUE(ct, a.link_layer == IBV_LINK_LAYER_ETHERNET ? a.lid == 0 : a.lid >= 1 && a.lid < 0xc000);
	CT_TRUE(ct, a.gid_tbl_len > 0 && a.pkey_tbl_len > 0 && a.active_width && a.active_speed);
	VT_ERR(ct, ibv_query_port(c, 2, &a), EINVAL);
	VT_ERR(ct, ibv_query_port(c, 0, &a), EINVAL);
	VT_OK(ct, ibv_query_gid(c, 1, 0, &gid));
	CT_EQ(ct, ibv_query_gid(c, 1, a.gid_tbl_len, &gid), -1);
	CT_EQ(ct, ibv_query_gid(c, 2, 0, &gid), -1);
	CT_TRUE(ct, ibv_query_gid_table(c, entries, 64, 0) >= 1);
	VT_OK(ct, ibv_query_gid(c, 1, (int)entries[0].gid_index, &gid));
	CT_EQ(ct, memcmp(&gid, &entries[0].gid, sizeof(gid)), 0);
	VT_OK(ct, ibv_query_pkey(c, 1, 0, &pkey));
	CT_EQ(ct, pkey, 0xffff);
	CT_EQ(ct, ibv_query_pkey(c, 1, a.pkey_tbl_len, &pkey), -1);
	CT_EQ(ct, ibv_get_pkey_index(c, 1, htons(0xffff)), 0);
	CT_EQ(ct, ibv_get_pkey_index(c, 1, htons(0x1234)), -1);
	VT_OK(ct, ibv_close_device(c));
}

/* ---- regions --------------------------------------------------------------------------------- */

static void regions(struct ct *ct)
{
	struct ibv_context *c = vt_context(ct);
	struct ibv_pd *pd = ibv_alloc_pd(c);
	char *buf = malloc(1 << 20);
	struct ibv_mr *mr;
	uint32_t old;

	mr = ibv_reg_mr(pd, buf, 1 << 20, VT_ACCESS);
	CT_TRUE(ct, mr && mr->lkey && mr->rkey && mr->addr == buf && mr->length == 1 << 20 && mr->pd == pd);
	VT_ERR(ct, ibv_dealloc_pd(pd), EBUSY);
	old = mr->rkey;
	VT_OK(ct, ibv_dereg_mr(mr));
	for (int i = 0; i < 50; i++) { /* a key does not come back at once */
		mr = ibv_reg_mr(pd, buf, 4096, VT_ACCESS);
		CT_TRUE(ct, mr && mr->rkey != old);
		VT_OK(ct, ibv_dereg_mr(mr));
	}
	VT_NULL(ct, ibv_reg_mr(pd, buf, 64, IBV_ACCESS_REMOTE_WRITE), EINVAL);
	VT_NULL(ct, ibv_reg_mr(pd, buf, 64, IBV_ACCESS_REMOTE_ATOMIC), EINVAL);
	VT_NULL(ct, ibv_reg_mr(pd, buf, SIZE_MAX, VT_ACCESS), EINVAL);
	VT_NULL(ct, ibv_reg_mr(pd, buf, 64, 1 << 19), EINVAL);
	VT_NULL(ct, ibv_reg_mr(pd, (void *)64, 64, VT_ACCESS), EFAULT);
	mr = ibv_reg_mr(pd, buf, 64, VT_ACCESS | IBV_ACCESS_RELAXED_ORDERING);
	CT_TRUE(ct, mr != NULL);
	old = mr->rkey;
	VT_OK(ct, ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, buf + 64, 128, 0));
	CT_TRUE(ct, mr->addr == buf + 64 && mr->length == 128 && mr->rkey == old);
	CT_TRUE(ct, ibv_rereg_mr(mr, 0, NULL, NULL, 0, 0) < 0);
	CT_TRUE(ct, ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, IBV_ACCESS_REMOTE_WRITE) < 0);
	CT_TRUE(ct, mr->addr == buf + 64 && mr->length == 128);
	VT_OK(ct, ibv_dereg_mr(mr));
	VT_OK(ct, ibv_dealloc_pd(pd));
	VT_OK(ct, ibv_close_device(c));
	free(buf);
}

/* Memory that may be read is no more than that, where the kernel tells. */
static void read_only_memory(struct ct *ct)
{
	static const char fixed[64] = "in a mapping that nobody may write to";
	struct ibv_context *c = vt_context(ct);
	struct ibv_pd *pd = ibv_alloc_pd(c);
	struct ibv_mr *mr;

	mr = ibv_reg_mr(pd, (void *)fixed, sizeof(fixed), IBV_ACCESS_REMOTE_READ);
	CT_TRUE(ct, mr != NULL);
	VT_OK(ct, ibv_dereg_mr(mr));
	if (vt_tells_read_only())
		VT_NULL(ct, ibv_reg_mr(pd, (void *)fixed, sizeof(fixed), VT_ACCESS), EFAULT);
	VT_OK(ct, ibv_dealloc_pd(pd));
	VT_OK(ct, ibv_close_device(c));
}

/*
 * e's queue pair and another of this process are connected to each other, so that the one that is
 * offended is not the one that asks.
 */
static struct ibv_qp *couple(struct ct_ep *e, const struct vt_want *want)
{
	struct vt_name name;
	struct ibv_qp *other;

	vt_open(e->ct, e, want);
	other = vt_qp(e);
	name = e->me;
	name.qpn = other->qp_num;
	vt_connect(e, e->qp, &name);
	vt_connect(e, other, &e->me);
	e->peer[!e->ct->rank] = name;
	return other;
}

/* A region in a domain of its own is neither read here nor written from there. */
static void foreign(struct ct *ct)
{
	const struct vt_want want = { 0 };
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	struct ibv_qp *other;
	struct ct_ep e;

	e.ct = ct;
	other = couple(&e, &want);
	pd = ibv_alloc_pd(e.context);
	mr = ibv_reg_mr(pd, e.buf, 4096, VT_ACCESS);
	CT_TRUE(ct, mr != NULL);
	sge = vt_sge(&e, 0, 8);
	wr = vt_wr(&e, IBV_WR_RDMA_WRITE, &sge, 1);
	wr.wr.rdma.rkey = mr->rkey;
	vt_post(&e, &wr);
	vt_status(&e, 1, IBV_WC_REM_ACCESS_ERR);
	VT_OK(ct, ibv_destroy_qp(other));
	VT_OK(ct, ibv_dereg_mr(mr));
	VT_OK(ct, ibv_dealloc_pd(pd));
	vt_close(&e);
}

/* Addresses of a region may be the program's own: both ends of a write give them. */
static void iova(struct ct *ct)
{
	const uint64_t first = 0x700000000000;
	const struct vt_want want = { 0 };
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct ibv_mr *mr;
	struct ibv_qp *other;
	struct ct_ep e;

	e.ct = ct;
	other = couple(&e, &want);
	mr = ibv_reg_mr_iova(e.pd, e.buf, 8192, first, VT_ACCESS);
	CT_TRUE(ct, mr != NULL);
	memset(e.buf, 0x5a, 4096);
	memset(e.buf + 4096, 0, 4096);
	sge = (struct ibv_sge){ .addr = first + 16, .length = 100, .lkey = mr->lkey };
	wr = vt_wr(&e, IBV_WR_RDMA_WRITE, &sge, 1);
	wr.wr.rdma.rkey = mr->rkey;
	wr.wr.rdma.remote_addr = first + 5000;
	vt_post(&e, &wr);
	vt_done(&e, 1, NULL);
	CT_EQ(ct, memcmp(e.buf, e.buf + 5000, 100), 0);
	CT_EQ(ct, e.buf[5100], 0);
	wr.wr.rdma.remote_addr = first + 8192 - 99; /* one byte beyond */
	vt_post(&e, &wr);
	vt_status(&e, 1, IBV_WC_REM_ACCESS_ERR);
	VT_OK(ct, ibv_destroy_qp(other));
	VT_OK(ct, ibv_dereg_mr(mr));
	vt_close(&e);
}

/* ---- completion queues ----------------------------------------------------------------------- */

static void queues(struct ct *ct)
{
	struct ibv_context *c = vt_context(ct);
	struct ibv_comp_channel *ch = ibv_create_comp_channel(c);
	struct ibv_device_attr a;
	struct ibv_wc wc;
	struct ibv_cq *cq;

	VT_OK(ct, ibv_query_device(c, &a));
	VT_NULL(ct, ibv_create_cq(c, 0, NULL, NULL, 0), EINVAL);
	VT_NULL(ct, ibv_create_cq(c, -1, NULL, NULL, 0), EINVAL);
	VT_NULL(ct, ibv_create_cq(c, a.max_cqe + 1, NULL, NULL, 0), EINVAL);
	VT_NULL(ct, ibv_create_cq(c, 1, NULL, NULL, c->num_comp_vectors), EINVAL);
	VT_NULL(ct, ibv_create_cq(c, 1, NULL, NULL, -1), EINVAL);
	cq = ibv_create_cq(c, 10, &a, ch, 0);
	CT_TRUE(ct, cq && cq->cqe >= 10 && cq->cq_context == &a && cq->channel == ch && cq->context == c);
	CT_EQ(ct, ibv_poll_cq(cq, 1, &wc), 0);
	VT_ERR(ct, ibv_destroy_comp_channel(ch), EBUSY);
	VT_OK(ct, ibv_resize_cq(cq, 1000));
	CT_TRUE(ct, cq->cqe >= 1000);
	VT_ERR(ct, ibv_resize_cq(cq, 0), EINVAL);
	VT_ERR(ct, ibv_resize_cq(cq, a.max_cqe + 1), EINVAL);
	VT_OK(ct, ibv_destroy_cq(cq));
	VT_OK(ct, ibv_destroy_comp_channel(ch));
	VT_OK(ct, ibv_close_device(c));
}

static void self_open(struct ct *ct, struct ct_ep *e, const struct vt_want *want)
{
	vt_open(ct, e, want);
	vt_connect(e, e->qp, &e->me);
	e->peer[!ct->rank] = e->me;
}

/* No more may be taken away than is left; and what is there stays in order. */
static void resize(struct ct *ct)
{
	const struct vt_want want = { .recv_wr = 300, .cqe = 1000, .send_wr = 300 };
	struct ct_ep e;

	self_open(ct, &e, &want);
	for (uint64_t i = 0; i < 200; i++)
		vt_recv(&e, 0, 64, 1000 + i);
	vt_to(&e, e.qp, IBV_QPS_ERR);
	VT_ERR(ct, ibv_resize_cq(e.cq, 10), EINVAL);
	VT_OK(ct, ibv_resize_cq(e.cq, 2000));
	for (uint64_t i = 0; i < 200; i++)
		vt_next(&e, 1000 + i, IBV_WC_WR_FLUSH_ERR);
	vt_close(&e);
}

static void expect_cq_event(struct ct_ep *e)
{
	struct ibv_cq *cq;
	void *context;

	VT_OK(e->ct, ibv_get_cq_event(e->channel, &cq, &context));
	CT_TRUE(e->ct, cq == e->cq);
	ibv_ack_cq_events(cq, 1);
}

static void unreadable(struct ct_ep *e, int ms)
{
	struct pollfd p = { .fd = e->channel->fd, .events = POLLIN };

	CT_EQ(e->ct, poll(&p, 1, ms), 0);
}

/* One event for each request, for what comes after it; the descriptor says so, sleeping or not. */
static void notify(struct ct *ct)
{
	const struct vt_want want = { .channel = true };
	struct pollfd p = { .events = POLLIN };
	struct ibv_cq *cq;
	void *context;
	struct ct_ep e;

	self_open(ct, &e, &want);
	p.fd = e.channel->fd;
	CT_TRUE(ct, fcntl(p.fd, F_SETFL, O_NONBLOCK) == 0);
	CT_EQ(ct, ibv_get_cq_event(e.channel, &cq, &context), -1);
	CT_EQ(ct, errno, EAGAIN);
	vt_recv(&e, 0, 64, 1);
	vt_send(&e, 4096, 8, 2); /* nobody has asked */
	vt_done(&e, 1, NULL);
	vt_done(&e, 2, NULL);
	unreadable(&e, 5);
	VT_OK(ct, ibv_req_notify_cq(e.cq, 0));
	unreadable(&e, 5);
	vt_recv(&e, 0, 64, 3);
	vt_send(&e, 4096, 8, 4);
	CT_EQ(ct, poll(&p, 1, 10000), 1);
	expect_cq_event(&e);
	vt_done(&e, 3, NULL);
	vt_done(&e, 4, NULL);
	unreadable(&e, 5); /* one event, whatever has completed */
	CT_TRUE(ct, fcntl(p.fd, F_SETFL, 0) == 0);
	VT_OK(ct, ibv_req_notify_cq(e.cq, 0));
	vt_recv(&e, 0, 64, 5);
	vt_send(&e, 4096, 8, 6);
	expect_cq_event(&e); /* blocking */
	vt_done(&e, 5, NULL);
	vt_done(&e, 6, NULL);
	vt_close(&e);
}

/* Solicited only: of the messages received the one that asks for it, and errors. */
static void solicited(struct ct *ct)
{
	const struct vt_want want = { .channel = true };
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct ct_ep e;

	self_open(ct, &e, &want);
	VT_OK(ct, ibv_req_notify_cq(e.cq, 1));
	vt_recv(&e, 0, 64, 1);
	vt_recv(&e, 0, 64, 2);
	vt_send(&e, 4096, 8, 3);
	vt_done(&e, 1, NULL);
	vt_done(&e, 3, NULL);
	unreadable(&e, 20);
	sge = vt_sge(&e, 4096, 8);
	wr = vt_wr(&e, IBV_WR_SEND, &sge, 4);
	wr.send_flags |= IBV_SEND_SOLICITED;
	vt_post(&e, &wr);
	expect_cq_event(&e);
	vt_done(&e, 2, NULL);
	vt_done(&e, 4, NULL);
	VT_OK(ct, ibv_req_notify_cq(e.cq, 1));
	vt_recv(&e, 0, 64, 5);
	vt_to(&e, e.qp, IBV_QPS_ERR);
	expect_cq_event(&e);
	vt_status(&e, 5, IBV_WC_WR_FLUSH_ERR);
	vt_close(&e);
}

/* A program that sleeps in poll(2), not in the library, is told of what another process sends. */
static void asleep(struct ct *ct)
{
	const struct vt_want want = { .channel = true };
	struct ct_ep e;

	vt_start(ct, &e, &want);
	for (uint64_t i = 0; i < 20; i++) {
		if (ct->rank) {
			struct pollfd p = { .fd = e.channel->fd, .events = POLLIN };
			struct ibv_wc wc;

			vt_recv(&e, 0, 64, i);
			VT_OK(ct, ibv_req_notify_cq(e.cq, 0));
			CT_EQ(ct, ibv_poll_cq(e.cq, 1, &wc), 0);
			ct_sync(ct, &e);
			CT_EQ(ct, poll(&p, 1, 10000), 1);
			expect_cq_event(&e);
			vt_done(&e, i, NULL);
		} else {
			ct_sync(ct, &e);
			vt_send(&e, 0, 8, i);
			vt_done(&e, i, NULL);
		}
	}
	vt_finish(&e);
}

/* More completes than there is room for: an event, and what cannot be read is an error. */
static void overrun(struct ct *ct)
{
	const struct vt_want want = { .recv_wr = 1000, .cqe = (uint32_t)ct->cs->arg };
	struct ibv_async_event event;
	struct ibv_wc wc;
	struct ct_ep e;
	int n, got = 0;

	self_open(ct, &e, &want);
	for (uint64_t i = 0; i < 900; i++)
		vt_recv(&e, 0, 64, i);
	CT_TRUE(ct, e.cq->cqe < 900);
	vt_to(&e, e.qp, IBV_QPS_ERR);
	VT_OK(ct, ibv_get_async_event(e.context, &event));
	CT_EQ(ct, event.event_type, IBV_EVENT_CQ_ERR);
	CT_TRUE(ct, event.element.cq == e.cq);
	ibv_ack_async_event(&event);
	while ((n = ibv_poll_cq(e.cq, 1, &wc)) > 0)
		CT_EQ(ct, wc.wr_id, got++);
	CT_TRUE(ct, n < 0 && got >= (int)ct->cs->arg && got < 900);
	vt_close(&e);
}

/* It is as large as it was asked to be, and does not become smaller than what is in it. */
static void resized(struct ct *ct)
{
	const struct vt_want want = { .recv_wr = 20, .cqe = 3 };
	struct ibv_wc wc[8];
	struct ct_ep e;

	self_open(ct, &e, &want);
	CT_TRUE(ct, e.cq->cqe >= 3 && e.cq->cqe < 16);
	VT_OK(ct, ibv_resize_cq(e.cq, 1));
	CT_TRUE(ct, e.cq->cqe >= 1);
	VT_OK(ct, ibv_resize_cq(e.cq, 7));
	CT_TRUE(ct, e.cq->cqe >= 7);
	for (uint64_t i = 0; i < 7; i++)
		vt_recv(&e, 0, 64, i);
	vt_to(&e, e.qp, IBV_QPS_ERR);
	VT_ERR(ct, ibv_resize_cq(e.cq, 1), EINVAL);
	VT_ERR(ct, ibv_resize_cq(e.cq, 3), EINVAL);
	CT_EQ(ct, ibv_poll_cq(e.cq, 8, wc), 7);
	VT_OK(ct, ibv_resize_cq(e.cq, 1));
	vt_close(&e);
}

/* ---- fork ------------------------------------------------------------------------------------ */

/*
 * Whatever the child tries, it is an error, and nothing hangs. Answers 0
 * when all is as it should be.
 */
static int child(struct ct_ep *e)
{
	struct ibv_wc wc;
	int bad = 0;

	bad |= ibv_poll_cq(e->cq, 1, &wc) >= 0;
	bad |= ibv_req_notify_cq(e->cq, 0) == 0;
	bad |= ibv_alloc_pd(e->context) != NULL;
	bad |= ibv_reg_mr(e->pd, e->buf, 64, 0) != NULL;
	bad |= ibv_create_cq(e->context, 1, NULL, NULL, 0) != NULL;
	bad |= ibv_create_comp_channel(e->context) != NULL;
	bad |= ibv_dereg_mr(e->mr) == 0;
	bad |= ibv_close_device(e->context) != -1;
	return bad;
}

static void forked(struct ct *ct)
{
	const struct vt_want want = { .channel = true };
	struct ct_ep e;
	int status;
	pid_t pid;

	VT_OK(ct, ibv_fork_init());
	self_open(ct, &e, &want);
	pid = fork();
	if (pid == 0)
		_exit(child(&e));
	CT_TRUE(ct, pid > 0 && waitpid(pid, &status, 0) == pid);
	CT_EQ(ct, status, 0);
	vt_recv(&e, 0, 64, 1);
	vt_send(&e, 4096, 8, 2);
	vt_done(&e, 1, NULL);
	vt_done(&e, 2, NULL);
	vt_close(&e);
}

const struct ct_case vt_objects[] = { { "V10", "device", { device } },
				      { "V10", "port", { port } },
				      { "V10", "fork", { forked } },
				      { "V7", "regions", { regions } },
				      { "V7", "read-only-memory", { read_only_memory } },
				      { "V7", "foreign", { foreign } },
				      { "V7", "iova", { iova } },
				      { "V5", "cq", { queues } },
				      { "V5", "cq-resize", { resize } },
				      { "V5", "notify", { notify } },
				      { "V5", "solicited-only", { solicited } },
				      { "V5", "asleep", { asleep, asleep } },
				      { "V5", "overrun", { overrun }, .arg = 16 },
				      { "V5", "overrun-small", { overrun }, .arg = 1 },
				      { "V5", "resized", { resized } },
				      { NULL } };
