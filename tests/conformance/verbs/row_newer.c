/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * NEWER: functions that libibverbs and librdmacm got after release 44, called as a program calls
 * them that was built with younger headers; this one was not, so it looks them up, and has their
 * types here. A library that lacks one leaves its cases out.
 */
#include "cmt.h"
#include "vt.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

#define FIND(ct, function, name) \
	do { \
		*(void **)&(function) = dlsym(RTLD_DEFAULT, name); \
		if (!(function)) \
			ct_unsupported(ct, "the library has no " name); \
	} while (0)

/* ---- regions and buffers --------------------------------------------------------------------- */

enum {
	HAS_IOVA = 1,
	HAS_ADDR = 2,
	HAS_FD = 4,
	HAS_DMAH = 16,
	HAS_BUF = 32,
};

struct attr {
	size_t length;
	int access;
	uint64_t comp_mask, iova;
	void *addr;
	int fd;
	uint64_t fd_offset;
	void *dmah, *buf;
};

static struct ibv_mr *(*reg_mr_ex)(struct ibv_pd *pd, struct attr *attr);
static void *(*alloc_buf)(struct ibv_pd *pd, size_t size, void **buf);
static void (*free_buf)(void *buf);
static struct ibv_mr *(*reg_buf_mr)(struct ibv_pd *pd, void *buf, void *addr, size_t length, int access);
static int (*export_buf)(void *buf);

static void regions_find(struct ct *ct)
{
	FIND(ct, reg_mr_ex, "ibv_reg_mr_ex");
	FIND(ct, alloc_buf, "ibv_alloc_buf");
	FIND(ct, free_buf, "ibv_free_buf");
	FIND(ct, reg_buf_mr, "ibv_reg_buf_mr");
	FIND(ct, export_buf, "ibv_export_buf_dmabuf_fd");
}

/*
 * A region with an address of its own for peers, and one without: messages and writes
 * come to where they should.
 */
static void region(struct ct *ct)
{
	struct attr attr = { .length = 4096, .access = VT_ACCESS, .comp_mask = HAS_ADDR };
	struct ct_ep e;
	struct ibv_mr *mr;

	regions_find(ct);
	vt_start(ct, &e, NULL);
	attr.addr = e.buf + 4096;
	mr = reg_mr_ex(e.pd, &attr);
	CT_TRUE(ct, mr && mr->addr == attr.addr && mr->length == 4096 && mr->pd == e.pd &&
			    mr->context == e.context && mr->lkey);
	if (ct->rank == 0) {
		struct ibv_sge sge = { .addr = (uintptr_t)mr->addr, .length = 4096, .lkey = mr->lkey };
		struct ibv_send_wr wr = vt_wr(&e, IBV_WR_SEND, &sge, 1);

		ct_fill(mr->addr, 4096, 5);
		vt_post(&e, &wr);
		vt_done(&e, 1, NULL);
	} else {
		vt_recv(&e, 0, 4096, 2);
		vt_done(&e, 2, NULL);
		ct_verify(ct, e.buf, 4096, 5, "what has come");
	}
	VT_OK(ct, ibv_dereg_mr(mr));
	vt_finish(&e);
}

/* Peers write to it by the address that it was given. */
static void iova(struct ct *ct)
{
	struct attr attr = {
		.length = 4096, .access = VT_ACCESS, .comp_mask = HAS_ADDR | HAS_IOVA, .iova = 0x4000
	};
	struct ibv_mr *mr = NULL;
	struct ct_ep e;

	regions_find(ct);
	vt_open(ct, &e, NULL);
	attr.addr = e.buf + 4096;
	mr = reg_mr_ex(e.pd, &attr);
	CT_TRUE(ct, mr != NULL);
	e.me.rkey = mr->rkey;
	e.me.addr = 0x4000;
	vt_exchange(&e);
	vt_connect(&e, e.qp, &e.peer[!ct->rank]);
	if (ct->rank == 0) {
		struct ibv_sge sge = vt_sge(&e, 0, 64);
		struct ibv_send_wr wr = vt_wr(&e, IBV_WR_RDMA_WRITE, &sge, 1);

		wr.wr.rdma.remote_addr = 0x4000 + 8;
		wr.wr.rdma.rkey = e.peer[1].rkey;
		ct_fill(e.buf, 64, 9);
		vt_post(&e, &wr);
		vt_done(&e, 1, NULL);
	}
	ct_sync(ct, &e);
	if (ct->rank == 1)
		ct_verify(ct, e.buf + 4096 + 8, 64, 9, "what has come");
	VT_OK(ct, ibv_dereg_mr(mr));
	vt_finish(&e);
}

static void region_refused(struct ct *ct)
{
	struct attr attr = { .length = 4096, .access = IBV_ACCESS_LOCAL_WRITE };
	struct ct_ep e;

	regions_find(ct);
	vt_open(ct, &e, NULL);
	attr.addr = e.buf;
	/* one of address and descriptor has to be there */
	VT_NULL(ct, reg_mr_ex(e.pd, &attr), EINVAL);
	attr.comp_mask = HAS_ADDR | HAS_FD;
	VT_NULL(ct, reg_mr_ex(e.pd, &attr), EINVAL); /* and not both */
	attr.comp_mask = HAS_ADDR | HAS_DMAH;
	VT_NULL(ct, reg_mr_ex(e.pd, &attr), EOPNOTSUPP);
	attr.comp_mask = HAS_ADDR | 1u << 20;
	VT_NULL(ct, reg_mr_ex(e.pd, &attr), EOPNOTSUPP);
	attr.comp_mask = HAS_ADDR;
	attr.access = IBV_ACCESS_REMOTE_WRITE;
	VT_NULL(ct, reg_mr_ex(e.pd, &attr), EINVAL);
	vt_close(&e);
}

static void buffer(struct ct *ct)
{
	struct attr attr = { .length = 100,
			     .access = IBV_ACCESS_LOCAL_WRITE,
			     .comp_mask = HAS_ADDR | HAS_BUF };
	struct ibv_pd *other;
	struct ibv_mr *mr;
	void *buf = NULL;
	struct ct_ep e;
	char *at;

	regions_find(ct);
	vt_open(ct, &e, NULL);
	at = alloc_buf(e.pd, 10000, &buf);
	CT_TRUE(ct, at && buf && (uintptr_t)at % (uintptr_t)sysconf(_SC_PAGESIZE) == 0);
	memset(at, 1, 10000);
	mr = reg_buf_mr(e.pd, buf, at + 100, 9900, VT_ACCESS);
	CT_TRUE(ct, mr && mr->addr == at + 100 && mr->length == 9900);
	VT_OK(ct, ibv_dereg_mr(mr));
	attr.addr = at;
	attr.buf = buf;
	mr = reg_mr_ex(e.pd, &attr);
	CT_TRUE(ct, mr != NULL);
	VT_OK(ct, ibv_dereg_mr(mr));
	VT_NULL(ct, reg_buf_mr(e.pd, buf, at - 1, 10, VT_ACCESS), EINVAL);
	VT_NULL(ct, reg_buf_mr(e.pd, buf, at, 1 << 20, VT_ACCESS), EINVAL);
	other = ibv_alloc_pd(e.context);
	VT_NULL(ct, reg_buf_mr(other, buf, at, 10, VT_ACCESS), EINVAL);
	VT_OK(ct, ibv_dealloc_pd(other));
	errno = 0;
	CT_EQ(ct, export_buf(buf), -1);
	CT_EQ(ct, errno, ENODATA);
	free_buf(buf);
	vt_close(&e);
}

/*
 * IBV_PARENT_DOMAIN_INIT_ATTR_ALLOW_CC_UNPROTECTED_ALLOC: a device that reaches all memory needs
 * no other memory for that.
 */
static void confidential(struct ct *ct)
{
	struct ibv_parent_domain_init_attr init = { .comp_mask = 1 << 2 };
	struct ibv_pd *parent;
	struct ibv_mr *mr;
	void *buf = NULL;
	struct ct_ep e;
	char *at;

	regions_find(ct);
	vt_open(ct, &e, NULL);
	init.pd = e.pd;
	parent = ibv_alloc_parent_domain(e.context, &init);
	CT_TRUE(ct, parent);
	at = alloc_buf(parent, 4096, &buf);
	CT_TRUE(ct, at && buf);
	VT_NULL(ct, reg_buf_mr(e.pd, buf, at, 10, VT_ACCESS), EINVAL);
	mr = reg_buf_mr(parent, buf, at, 4096, VT_ACCESS);
	CT_TRUE(ct, mr);
	VT_OK(ct, ibv_dereg_mr(mr));
	free_buf(buf);
	VT_OK(ct, ibv_dealloc_pd(parent));
	init.comp_mask = 1 << 3;
	VT_NULL(ct, ibv_alloc_parent_domain(e.context, &init), EINVAL);
	vt_close(&e);
}

/* ---- devices --------------------------------------------------------------------------------- */

static void port_speed(struct ct *ct)
{
	int (*query)(struct ibv_context * context, uint32_t port, uint64_t * speed);
	struct ibv_context *c = vt_context(ct);
	uint64_t speed = 0;

	FIND(ct, query, "ibv_query_port_speed");
	VT_OK(ct, query(c, 1, &speed));
	CT_EQ(ct, speed, 1000);
	VT_ERR(ct, query(c, 2, &speed), EINVAL);
	VT_OK(ct, ibv_close_device(c));
}

/* What the device has not got is said so, as by a driver that has not got it. */
static void has_not(struct ct *ct)
{
	void *(*alloc_dmah)(struct ibv_context * context, void *attr);
	int (*caps)(struct ibv_context * context, void *caps, size_t size);
	void *(*create_cntr)(struct ibv_context * context, void *attr);
	struct ibv_context *c = vt_context(ct);
	uint64_t room[16] = { 0 };

	FIND(ct, alloc_dmah, "ibv_alloc_dmah");
	FIND(ct, caps, "_ibv_query_comp_cntr_caps");
	FIND(ct, create_cntr, "ibv_create_comp_cntr");
	VT_NULL(ct, alloc_dmah(c, room), EOPNOTSUPP);
	VT_ERR(ct, caps(c, room, sizeof(room)), EOPNOTSUPP);
	VT_NULL(ct, create_cntr(c, room), EOPNOTSUPP);
	VT_OK(ct, ibv_close_device(c));
}

/* Drivers take each right to flush for a queue pair, but for a region only those that they have. */
static void flush_right(struct ct *ct)
{
	struct ct_ep e;
	struct ibv_qp_attr attr;
	int mask;

	vt_open(ct, &e, NULL);
	mask = vt_init(&e, &attr);
	attr.qp_access_flags |= 1 << 8 | 1 << 9;
	VT_OK(ct, ibv_modify_qp(e.qp, &attr, mask));
	VT_NULL(ct, ibv_reg_mr_iova2(e.pd, e.buf, 64, 0, 1 << 9), EOPNOTSUPP);
	vt_close(&e);
}

/* ---- rdma_cm --------------------------------------------------------------------------------- */

#define RESOLVED 16 /* RDMA_CM_EVENT_ADDRINFO_RESOLVED and the two after it */
#define UNRESOLVED 17
#define USER 18

static int (*resolve)(struct rdma_cm_id *id, const char *node, const char *service,
		      const struct rdma_addrinfo *hints);
static int (*query_info)(struct rdma_cm_id *id, struct rdma_addrinfo **info);

static void addrinfo(struct ct *ct)
{
	struct rdma_addrinfo want = { .ai_flags = 0x20, .ai_port_space = RDMA_PS_TCP },
			     *res = NULL; /* RAI_DNS */
	struct sockaddr_storage at;
	struct cmt c;

	FIND(ct, resolve, "rdma_resolve_addrinfo");
	FIND(ct, query_info, "rdma_query_addrinfo");
	cmt_open(ct, &c);
	c.id = cmt_id(&c);
	cmt_here(AF_INET, 4000, &at);
	CMT_ERR(ct, query_info(c.id, &res), ENOENT);
	CMT_OK(ct, resolve(c.id, "127.0.0.1", "4000", &want));
	CMT_ERR(ct, resolve(c.id, "127.0.0.1", "4001", &want), EBUSY); /* until it is fetched */
	cmt_expect(&c, (enum rdma_cm_event_type)RESOLVED, c.id, 0);
	CMT_OK(ct, query_info(c.id, &res));
	CT_TRUE(ct, res && res->ai_dst_len == sizeof(struct sockaddr_in) &&
			    !memcmp(res->ai_dst_addr, &at, sizeof(struct sockaddr_in)));
	rdma_freeaddrinfo(res);
	CMT_ERR(ct, query_info(c.id, &res), ENOENT);
	CMT_OK(ct, resolve(c.id, "127.0.0.1", "4001", NULL)); /* nobody fetches it */
	cmt_expect(&c, (enum rdma_cm_event_type)RESOLVED, c.id, 0);
	cmt_close(&c);
	CT_EQ(ct, rdma_getaddrinfo("127.0.0.1", "4000", &want, &res), 0);
	rdma_freeaddrinfo(res);
	want.ai_flags = 0x10; /* RAI_SA */
	CMT_ERR(ct, rdma_getaddrinfo(NULL, "4000", &want, &res), EOPNOTSUPP);
}

static void no_addrinfo(struct ct *ct)
{
	struct rdma_addrinfo want = { .ai_flags = RAI_NUMERICHOST, .ai_port_space = RDMA_PS_TCP },
			     *res = NULL;
	struct rdma_cm_event *e;
	struct cmt c;

	FIND(ct, resolve, "rdma_resolve_addrinfo");
	FIND(ct, query_info, "rdma_query_addrinfo");
	cmt_open(ct, &c);
	c.id = cmt_id(&c);
	for (int i = 0; i < 2; i++) { /* and once more after a failure */
		CMT_OK(ct, resolve(c.id, "not a number", "4000", &want));
		e = cmt_event(&c, (enum rdma_cm_event_type)UNRESOLVED);
		CT_TRUE(ct, e->id == c.id && e->status < 0);
		CMT_OK(ct, rdma_ack_cm_event(e));
		CMT_ERR(ct, query_info(c.id, &res), ENOENT);
	}
	want.ai_flags = 0x10; /* RAI_SA: nobody to be asked */
	CMT_ERR(ct, resolve(c.id, NULL, "4000", &want), ENOTSUP);
	CMT_ERR(ct, resolve(c.id, NULL, NULL, NULL), EINVAL);
	cmt_quiet(&c, 0);
	cmt_close(&c);
}

static void user_event(struct ct *ct)
{
	int (*say)(struct rdma_cm_id * id, enum rdma_cm_event_type event, int status, uint64_t arg);
	const uint64_t arg = 0x1234567890abcdef;
	struct rdma_cm_event *e;
	struct cmt c;

	FIND(ct, say, "rdma_write_cm_event");
	cmt_open(ct, &c);
	c.id = cmt_id(&c);
	CMT_ERR(ct, say(c.id, RDMA_CM_EVENT_ESTABLISHED, 0, arg), EINVAL);
	cmt_quiet(&c, 0);
	CMT_OK(ct, say(c.id, (enum rdma_cm_event_type)USER, -7, arg));
	e = cmt_event(&c, (enum rdma_cm_event_type)USER);
	CT_TRUE(ct, e->id == c.id && e->status == -7 && !memcmp(&e->param, &arg, sizeof(arg)));
	CT_TRUE(ct, !strcmp(rdma_event_str(e->event), "RDMA_CM_EVENT_USER"));
	CMT_OK(ct, rdma_ack_cm_event(e));
	cmt_close(&c);
}

const struct ct_case vt_newer[] = { { "NEWER", "region", CT_TWO(region) },
				    { "NEWER", "iova", CT_TWO(iova) },
				    { "NEWER", "region-refused", { region_refused } },
				    { "NEWER", "buffer", { buffer } },
				    { "NEWER", "confidential", { confidential } },
				    { "NEWER", "port-speed", { port_speed } },
				    { "NEWER", "has-not", { has_not } },
				    { "NEWER", "flush-right", { flush_right } },
				    { "NEWER", "addrinfo", { addrinfo } },
				    { "NEWER", "no-addrinfo", { no_addrinfo } },
				    { "NEWER", "user-event", { user_event } },
				    { 0 } };
