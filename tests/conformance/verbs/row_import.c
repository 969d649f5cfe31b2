/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * IMPORT: ibv_import_device(3), ibv_import_pd(3), ibv_import_mr(3), ibv_import_dm(3), by a
 * descriptor and handles of the same process, and of another one (rank 0), which hands the
 * descriptor over by SCM_RIGHTS.
 */
#include "vt.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static struct ibv_context *imported(struct ct *ct, struct ibv_context *of)
{
	int fd = dup(of->cmd_fd);
	struct ibv_context *context;

	CT_TRUE(ct, fd >= 0);
	errno = 0;
	context = ibv_import_device(fd);
	if (!context && errno == EOPNOTSUPP)
		ct_unsupported(ct, "the device cannot be imported");
	CT_TRUE(ct, context);
	return context;
}

/* Either of the two may destroy the object; the other takes its import back. */
static void domains(struct ct *ct)
{
	struct ibv_context *own = vt_context(ct), *other = imported(ct, own);
	struct ibv_pd *pd = ibv_alloc_pd(own), *again;
	struct ibv_mr *mr;
	char memory[64];

	CT_TRUE(ct, pd);
	VT_NULL(ct, ibv_import_pd(other, pd->handle + 1000), ENOENT);
	again = ibv_import_pd(other, pd->handle);
	CT_TRUE(ct, again && again->handle == pd->handle);
	mr = ibv_reg_mr(again, memory, sizeof(memory), IBV_ACCESS_LOCAL_WRITE);
	CT_TRUE(ct, mr);
	VT_NULL(ct, ibv_import_pd(other, mr->handle), ENOENT);
	VT_ERR(ct, ibv_dealloc_pd(pd), EBUSY);
	VT_OK(ct, ibv_dereg_mr(mr));
	ibv_unimport_pd(again);
	again = ibv_import_pd(other, pd->handle);
	CT_TRUE(ct, again);
	VT_OK(ct, ibv_dealloc_pd(again));
	VT_NULL(ct, ibv_import_pd(other, pd->handle), ENOENT);
	ibv_unimport_pd(pd);
	VT_OK(ct, ibv_close_device(own));
	pd = ibv_alloc_pd(other); /* which stays until it is closed, too */
	CT_TRUE(ct, pd);
	VT_OK(ct, ibv_dealloc_pd(pd));
	VT_OK(ct, ibv_close_device(other));
}

/* What is sent with the key of an imported region is its memory. */
static void regions(struct ct *ct)
{
	struct ibv_context *other;
	struct ibv_mr *mr;
	struct ibv_pd *pd;
	struct ct_ep e;

	vt_start(ct, &e, NULL);
	other = imported(ct, e.context);
	pd = ibv_import_pd(other, e.pd->handle);
	mr = pd ? ibv_import_mr(pd, e.mr->handle) : NULL;
	CT_TRUE(ct, mr && mr->lkey == e.mr->lkey && mr->rkey == e.mr->rkey);
	VT_NULL(ct, ibv_import_mr(pd, pd->handle), ENOENT);
	if (ct->rank) {
		struct ibv_sge sge = { (uintptr_t)e.buf, 64, mr->lkey };
		struct ibv_recv_wr wr = { .wr_id = 1, .sg_list = &sge, .num_sge = 1 }, *bad;

		VT_OK(ct, ibv_post_recv(e.qp, &wr, &bad));
	}
	ct_fill(e.buf, 64, (uint64_t)ct->rank); /* before a message may come */
	ct_sync(ct, &e);
	if (!ct->rank)
		vt_send(&e, 0, 64, 2);
	vt_next(&e, ct->rank ? 1 : 2, IBV_WC_SUCCESS);
	ct_verify(ct, e.buf, 64, 0, "message");
	ibv_unimport_mr(mr);
	ibv_unimport_pd(pd);
	VT_OK(ct, ibv_close_device(other));
	vt_finish(&e);
}

static void device_memory(struct ct *ct)
{
	struct ibv_context *own = vt_context(ct), *other = imported(ct, own);
	struct ibv_alloc_dm_attr attr = { .length = 64 };
	struct ibv_dm *dm = ibv_alloc_dm(own, &attr), *again;
	char in[64], out[64];

	if (!dm && errno == EOPNOTSUPP)
		ct_unsupported(ct, "the device has no memory");
	CT_TRUE(ct, dm);
	again = ibv_import_dm(other, dm->handle);
	CT_TRUE(ct, again);
	ct_fill(out, sizeof(out), 7);
	VT_OK(ct, ibv_memcpy_to_dm(dm, 0, out, sizeof(out)));
	VT_OK(ct, ibv_memcpy_from_dm(in, again, 0, sizeof(in)));
	ct_verify(ct, in, sizeof(in), 7, "device memory");
	VT_OK(ct, ibv_free_dm(again));
	VT_NULL(ct, ibv_import_dm(other, dm->handle), ENOENT);
	ibv_unimport_dm(dm);
	VT_OK(ct, ibv_close_device(other));
	VT_OK(ct, ibv_close_device(own));
}

/* ---- another process ------------------------------------------------------------------------- */

#define SHARED 65536u /* bytes of memory that both map */
#define WRITTEN 4096u /* there: what each of the importer's operations has put */
#define RECEIVED 8192u
#define COUNTED 16384u

/* What rank 0 tells, beside the descriptor. */
struct told {
	uint32_t pd, mr, hidden, dm, key;
	uint64_t addr;
};

static socklen_t place(struct sockaddr_un *at)
{
	int n;

	*at = (struct sockaddr_un){ .sun_family = AF_UNIX };
	n = snprintf(at->sun_path + 1, sizeof(at->sun_path) - 1, "conformance/import/%d", (int)getppid());
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
}

static void hand_over(struct ct *ct, int fd, struct told *told)
{
	char room[CMSG_SPACE(sizeof(int))] = { 0 };
	struct iovec iov = { told, sizeof(*told) };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof(room)
	};
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
	int door = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0), s;
	struct sockaddr_un at;
	socklen_t len = place(&at);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	CT_EQ(ct, bind(door, (struct sockaddr *)&at, len), 0);
	CT_EQ(ct, listen(door, 1), 0);
	ct_sync(ct, NULL);
	s = accept(door, NULL, NULL);
	CT_EQ(ct, sendmsg(s, &msg, 0), (ssize_t)sizeof(*told));
	close(s);
	close(door);
}

static int take_over(struct ct *ct, struct told *told)
{
	char room[CMSG_SPACE(sizeof(int))];
	struct iovec iov = { told, sizeof(*told) };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof(room)
	};
	int s = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0), fd;
	struct sockaddr_un at;
	socklen_t len = place(&at);

	ct_sync(ct, NULL);
	CT_EQ(ct, connect(s, (struct sockaddr *)&at, len), 0);
	CT_EQ(ct, recvmsg(s, &msg, MSG_CMSG_CLOEXEC), (ssize_t)sizeof(*told));
	CT_TRUE(ct, CMSG_FIRSTHDR(&msg));
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&msg)), sizeof(fd));
	close(s);
	return fd;
}

static char *shared_memory(struct ct *ct)
{
	int fd = memfd_create("import", MFD_CLOEXEC);
	char *at;

	CT_EQ(ct, ftruncate(fd, SHARED), 0);
	at = mmap(NULL, SHARED, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	/* the descriptor stays open: by it the other one gets the memory */
	CT_TRUE(ct, at != MAP_FAILED);
	return at;
}

static void exporter(struct ct *ct)
{
	struct ibv_alloc_dm_attr attr = { .length = 64 };
	char *memory = shared_memory(ct), copy[64];
	struct ibv_dm *dm;
	struct ibv_mr *mr;
	struct told told;
	struct ct_ep e;

	vt_open(ct, &e, NULL);
	ct_fill(memory, 64, 5);
	mr = ibv_reg_mr(e.pd, memory, SHARED, VT_ACCESS);
	dm = ibv_alloc_dm(e.context, &attr);
	CT_TRUE(ct, mr && dm);
	ct_fill(copy, sizeof(copy), 6);
	VT_OK(ct, ibv_memcpy_to_dm(dm, 0, copy, sizeof(copy)));
	told = (struct told){
		e.pd->handle, mr->handle, e.mr->handle, dm->handle, mr->rkey, (uintptr_t)memory
	};
	hand_over(ct, e.context->cmd_fd, &told);
	ct_sync(ct, NULL); /* it has all of it */
	if (ct->cs->arg) {
		ct_doomed(ct);
		raise(SIGKILL);
	}
	ct_sync(ct, NULL); /* it has used it */
	ct_verify(ct, memory + WRITTEN, 64, 5, "written by the other process");
	ct_verify(ct, memory + RECEIVED, 64, 5, "received by the other process");
	CT_EQ(ct, *(uint64_t *)(void *)(memory + COUNTED), 7);
	VT_OK(ct, ibv_memcpy_from_dm(copy, dm, 0, sizeof(copy)));
	ct_verify(ct, copy, sizeof(copy), 8, "device memory");
	VT_OK(ct, ibv_dereg_mr(mr));
	ct_sync(ct, NULL);
	ct_sync(ct, NULL);
	VT_OK(ct, ibv_free_dm(dm));
	vt_close(&e);
	munmap(memory, SHARED);
}

static void connect_to(struct ct_ep *own, struct ibv_qp *qp, const struct ibv_qp *to)
{
	own->me.qpn = to->qp_num;
	vt_connect(own, qp, &own->me);
}

/*
 * Two queue pairs of the imported domain, which talk to each other, and memory
 * of our own in that domain.
 */
static void own_open(struct ct *ct, struct ct_ep *own, struct ibv_pd *pd, struct ibv_qp **other)
{
	struct ct_ep like;

	vt_open(ct, &like, NULL);
	*own = (struct ct_ep){ .ct = ct, .context = pd->context, .pd = pd, .me = like.me };
	vt_close(&like);
	own->cq = own->rcq = ibv_create_cq(own->context, 64, NULL, NULL, 0);
	own->buf = calloc(1, 4096);
	own->mr = ibv_reg_mr(pd, own->buf, 4096, VT_ACCESS);
	CT_TRUE(ct, own->cq && own->mr);
	own->qp = vt_qp(own);
	*other = vt_qp(own);
	own->peer[!ct->rank] = own->me;
	connect_to(own, *other, own->qp);
	connect_to(own, own->qp, *other);
}

static void operate(struct ct_ep *own, enum ibv_wr_opcode op, struct ibv_sge *sge, uint64_t to, uint32_t rkey,
		    enum ibv_wc_status status)
{
	struct ibv_send_wr wr = vt_wr(own, op, sge, op);

	if (op == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = to;
		wr.wr.atomic.rkey = rkey;
		wr.wr.atomic.compare_add = 7;
	} else if (op != IBV_WR_SEND) {
		wr.wr.rdma.remote_addr = to;
		wr.wr.rdma.rkey = rkey;
	}
	vt_post(own, &wr);
	if (op != IBV_WR_SEND)
		vt_next(own, op, status);
}

static void use(struct ct_ep *own, struct ibv_qp *other, const struct ibv_mr *mr, const struct told *told)
{
	struct ibv_sge from = { told->addr, 64, mr->lkey }, to = { told->addr + RECEIVED, 64, mr->lkey };
	struct ibv_sge result = { (uintptr_t)own->buf, 8, own->mr->lkey };
	struct ibv_recv_wr recv = { .wr_id = 99, .sg_list = &to, .num_sge = 1 }, *bad;

	operate(own, IBV_WR_RDMA_WRITE, &from, told->addr + WRITTEN, mr->rkey, IBV_WC_SUCCESS);
	operate(own, IBV_WR_ATOMIC_FETCH_AND_ADD, &result, told->addr + COUNTED, mr->rkey, IBV_WC_SUCCESS);
	VT_OK(own->ct, ibv_post_recv(other, &recv, &bad));
	operate(own, IBV_WR_SEND, &from, 0, 0, IBV_WC_SUCCESS);
	vt_done(own, 99, NULL);
	vt_done(own, IBV_WR_SEND, NULL);
}

/* The other one has deregistered the region: neither key leads there any more. */
static void revoked(struct ct_ep *own, const struct ibv_mr *mr, const struct told *told)
{
	struct ibv_sge ours = { (uintptr_t)own->buf, 64, own->mr->lkey }, sge = { told->addr, 64, mr->lkey };
	struct ibv_qp *first = own->qp;

	operate(own, IBV_WR_RDMA_WRITE, &ours, told->addr + WRITTEN, told->key, IBV_WC_REM_ACCESS_ERR);
	own->qp = vt_qp(own);
	connect_to(own, own->qp, own->qp);
	operate(own, IBV_WR_RDMA_WRITE, &sge, (uintptr_t)own->buf, own->mr->rkey, IBV_WC_LOC_PROT_ERR);
	VT_OK(own->ct, ibv_destroy_qp(own->qp));
	own->qp = first;
}

/* What has been imported twice and is destroyed is left to be taken back once. */
static void taken_back(struct ct *ct, struct ibv_pd *pd, struct ibv_mr *mr, struct ibv_dm *dm)
{
	CT_TRUE(ct, ibv_import_mr(pd, mr->handle) == mr);
	CT_TRUE(ct, ibv_import_dm(pd->context, dm->handle) == dm);
	CT_TRUE(ct, ibv_import_pd(pd->context, pd->handle) == pd);
	VT_OK(ct, ibv_dereg_mr(mr));
	VT_OK(ct, ibv_free_dm(dm));
	VT_OK(ct, ibv_dealloc_pd(pd));
}

/* The other one has died, or will at once: nothing more can be imported then. */
static void until_gone(struct ct *ct, struct ibv_context *context, const struct told *told)
{
	double end = ct_deadline(ct);
	struct ibv_pd *pd;

	while ((pd = ibv_import_pd(context, told->pd))) {
		ibv_unimport_pd(pd);
		usleep(1000);
		ct_late(ct, end, "the other process's death");
	}
	CT_TRUE(ct, errno);
}

static void importer(struct ct *ct)
{
	struct told told;
	struct ibv_context *context = ibv_import_device(take_over(ct, &told));
	struct ibv_qp *other;
	struct ibv_dm *dm;
	struct ibv_mr *mr;
	struct ibv_pd *pd;
	struct ct_ep own;
	char copy[64];

	CT_TRUE(ct, context);
	VT_NULL(ct, ibv_import_pd(context, told.pd + 1000), ENOENT);
	pd = ibv_import_pd(context, told.pd);
	CT_TRUE(ct, pd && pd->handle == told.pd && pd->context == context);
	VT_NULL(ct, ibv_import_mr(pd, told.mr + 1000), ENOENT);
	VT_NULL(ct, ibv_import_mr(pd, told.hidden), EOPNOTSUPP); /* private memory */
	mr = ibv_import_mr(pd, told.mr);
	CT_TRUE(ct, mr && mr->lkey == told.key && mr->rkey == told.key && mr->handle == told.mr);
	CT_TRUE(ct, mr->pd == pd && !mr->addr && mr->length == SHARED);
	CT_TRUE(ct, ibv_import_mr(pd, told.mr) == mr); /* once more */
	ibv_unimport_mr(mr);
	dm = ibv_import_dm(context, told.dm);
	CT_TRUE(ct, dm && dm->handle == told.dm);
	VT_OK(ct, ibv_memcpy_from_dm(copy, dm, 0, sizeof(copy)));
	ct_verify(ct, copy, sizeof(copy), 6, "device memory");
	ct_fill(copy, sizeof(copy), 8);
	VT_OK(ct, ibv_memcpy_to_dm(dm, 0, copy, sizeof(copy)));
	own_open(ct, &own, pd, &other);
	ct_sync(ct, NULL);
	use(&own, other, mr, &told); /* whether the other one lives or has died */
	if (!ct->cs->arg) {
		ct_sync(ct, NULL);
		ct_sync(ct, NULL); /* it has deregistered the region */
		revoked(&own, mr, &told);
	}
	VT_OK(ct, ibv_destroy_qp(own.qp));
	VT_OK(ct, ibv_destroy_qp(other));
	VT_OK(ct, ibv_destroy_cq(own.cq));
	VT_OK(ct, ibv_dereg_mr(own.mr));
	if (!ct->cs->arg)
		taken_back(ct, pd, mr, dm);
	ibv_unimport_mr(mr);
	ibv_unimport_dm(dm);
	ibv_unimport_pd(pd);
	if (ct->cs->arg)
		until_gone(ct, context, &told);
	VT_OK(ct, ibv_close_device(context));
	free(own.buf);
	free(own.stash);
	if (!ct->cs->arg)
		ct_sync(ct, NULL);
}

/* A forked child has its parent's descriptor. */
static void inherited(struct ct *ct)
{
	struct ct_ep e;
	int status;
	pid_t pid;

	vt_open(ct, &e, NULL);
	pid = vt_child(&e);
	if (!pid) {
		struct ibv_context *context;
		struct ibv_pd *pd;

		alarm(CT_BUSY * 30);
		context = ibv_import_device(dup(e.context->cmd_fd));
		pd = context ? ibv_import_pd(context, e.pd->handle) : NULL;
		_exit(!pd || pd->context == e.context || ibv_dealloc_pd(pd) || ibv_close_device(context));
	}
	CT_TRUE(ct, pid > 0 && waitpid(pid, &status, 0) == pid);
	CT_EQ(ct, status, 0);
	vt_close(&e);
}

/* What is no context's descriptor. */
static void strangers(struct ct *ct)
{
	struct ibv_context *own = vt_context(ct);
	int fd = open("/dev/null", O_RDWR);

	CT_TRUE(ct, fd >= 0);
	CT_TRUE(ct, !ibv_import_device(fd) && errno);
	CT_TRUE(ct, !ibv_import_device(-1) && errno);
	CT_TRUE(ct, !ibv_import_device(999) && errno);
	VT_OK(ct, ibv_close_device(own));
}

/* What is there to be imported comes and goes; whoever has asked before finds what is new. */
static void later(struct ct *ct)
{
	struct ibv_context *context = vt_context(ct);
	struct told told = { 0 };
	struct ibv_pd *pd;

	if (ct->rank) {
		VT_OK(ct, ibv_close_device(context));
		context = ibv_import_device(take_over(ct, &told));
		CT_TRUE(ct, context);
	} else {
		pd = ibv_alloc_pd(context);
		CT_TRUE(ct, pd);
		told.pd = pd->handle;
		hand_over(ct, context->cmd_fd, &told);
	}
	for (int i = 0; i < 3; i++) {
		if (ct->rank) {
			pd = ibv_import_pd(context, told.pd);
			CT_TRUE(ct, pd);
			ibv_unimport_pd(pd);
		}
		ct_sync(ct, NULL);
		if (ct->rank) {
			ct_get(ct, NULL, 0, &told.pd, sizeof(told.pd));
			continue;
		}
		VT_OK(ct, ibv_dealloc_pd(pd));
		pd = ibv_alloc_pd(context);
		CT_TRUE(ct, pd);
		ct_put(ct, 1, &pd->handle, sizeof(pd->handle));
	}
	ct_sync(ct, NULL);
	if (!ct->rank)
		VT_OK(ct, ibv_dealloc_pd(pd));
	VT_OK(ct, ibv_close_device(context));
}

const struct ct_case vt_import[] = { { "IMPORT", "domains", { domains } },
				     { "IMPORT", "regions", { regions, regions } },
				     { "IMPORT", "device-memory", { device_memory } },
				     { "IMPORT", "another-process", { exporter, importer } },
				     { "IMPORT", "another-process-dies", { exporter, importer }, .arg = 1 },
				     { "IMPORT", "another-process-later", { later, later } },
				     { "IMPORT", "inherited", { inherited } },
				     { "IMPORT", "strangers", { strangers } },
				     { NULL } };
