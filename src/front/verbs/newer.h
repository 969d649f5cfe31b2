/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * What libibverbs got after release 44, whose header is the oldest that this front is built with:
 * types and functions that programs know which were built with younger headers. They call them with
 * objects of ours, and a real library of theirs would take those for its own.
 *
 * The types have names of ours here, since a header may declare them as well or may not. So have
 * the functions, and HV_NEWER gives each the name that the linker knows it by.
 */
#ifndef HEDDLE_FRONT_VERBS_NEWER_H
#define HEDDLE_FRONT_VERBS_NEWER_H

#include "front/verbs/verbs_front.h"

struct hv_buf;	/* struct ibv_buf */
struct hv_dmah; /* struct ibv_dmah, which is never ours */
struct hv_cntr; /* struct ibv_comp_cntr: likewise */

/*
 * ibv_wr_flush(3): IBV_WR_FLUSH, IBV_WC_FLUSH, IBV_QP_EX_WITH_FLUSH, IBV_ODP_SUPPORT_FLUSH, the bit
 * for IBV_FLUSH_GLOBAL of device_cap_flags_ex, and the rights. IBV_FLUSH_PERSISTENT is not offered:
 * nothing tells what memory would keep it.
 */
#define HV_WR_FLUSH ((enum ibv_wr_opcode)14)
#define HV_WC_FLUSH 8
#define HV_QP_EX_WITH_FLUSH (1 << 11)
#define HV_FLUSH_MR 1 /* a selectivity level: IBV_FLUSH_MR; the other is IBV_FLUSH_RANGE, 0 */
#define HV_ODP_FLUSH (1 << 6)
#define HV_DEVICE_FLUSH_GLOBAL (UINT64_C(1) << 38)
#define HV_ACCESS_FLUSH_GLOBAL (1 << 8)
#define HV_ACCESS_FLUSH_PERSISTENT (1 << 9)

/* struct ibv_qp_ex as far as it goes on behind what the oldest header has of it. */
struct hv_newer_qp {
	char older[offsetof(struct ibv_qp_ex, wr_atomic_write) + sizeof(void (*)(void))];
	void (*wr_flush)(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t addr, size_t len, uint8_t type,
			 uint8_t level);
};

/*
 * IBV_PARENT_DOMAIN_INIT_ATTR_ALLOW_CC_UNPROTECTED_ALLOC: memory of ibv_alloc_buf may be such as
 * devices reach that see no protected one. Without IBV_DEVICE_CC_DMA_BOUNCE plain memory will do.
 */
#define HV_PARENT_UNPROTECTED (1 << 2)

/* IBV_EVENT_DEVICE_SPEED_CHANGE, which no device here has */
#define HV_EVENT_SPEED_CHANGE (IBV_EVENT_WQ_FATAL + 1)

/* IBV_ODP_SUPPORT_ATOMIC_WRITE */
#define HV_ODP_ATOMIC_WRITE (1 << 7)

enum {
	HV_MR_IOVA = 1 << 0,
	HV_MR_ADDR = 1 << 1,
	HV_MR_FD = 1 << 2,
	HV_MR_FD_OFFSET = 1 << 3,
	HV_MR_DMAH = 1 << 4,
	HV_MR_BUF = 1 << 5,
};

struct hv_mr_init_attr { /* struct ibv_mr_init_attr */
	size_t length;
	int access;
	/* HV_MR_*: which of those below count; buf is there only if its bit is */
	uint64_t comp_mask;
	uint64_t iova;
	void *addr;
	int fd;
	uint64_t fd_offset;
	struct hv_dmah *dmah;
	struct hv_buf *buf;
};

#define HV_NEWER(ret, name, params) HV_PUBLIC ret hv_newer_##name params __asm__("ibv_" #name)

/* ibv_reg_mr(3) */
HV_NEWER(struct ibv_mr *, reg_mr_ex, (struct ibv_pd * pd, const struct hv_mr_init_attr *attr));

/* ibv_alloc_buf(3) */
HV_NEWER(void *, alloc_buf, (struct ibv_pd * pd, size_t size, struct hv_buf **buf));
HV_NEWER(void, free_buf, (struct hv_buf * buf));
HV_NEWER(struct ibv_mr *, reg_buf_mr,
	 (struct ibv_pd * pd, struct hv_buf *buf, void *addr, size_t length, int access));
HV_NEWER(int, export_buf_dmabuf_fd, (struct hv_buf * buf));

/*
 * ibv_query_port_speed(3); ibv_alloc_dmah(3), ibv_dm_export_dmabuf_fd(3), and
 * ibv_create_comp_cntr(3): no device of ours has any
 */
HV_NEWER(int, query_port_speed, (struct ibv_context * context, uint32_t port, uint64_t *speed));
HV_NEWER(struct hv_dmah *, alloc_dmah, (struct ibv_context * context, void *attr));
HV_NEWER(int, dealloc_dmah, (struct hv_dmah * dmah));
HV_NEWER(int, dm_export_dmabuf_fd, (struct ibv_dm * dm));
HV_PUBLIC int hv_newer_query_comp_cntr_caps(struct ibv_context *context, void *caps,
					    size_t size) __asm__("_ibv_query_comp_cntr_caps");
HV_NEWER(struct hv_cntr *, create_comp_cntr, (struct ibv_context * context, void *attr));
HV_NEWER(int, qp_attach_comp_cntr, (struct ibv_qp * qp, struct hv_cntr *cntr, void *attr));
HV_NEWER(int, destroy_comp_cntr, (struct hv_cntr * cntr));
HV_NEWER(int, set_comp_cntr, (struct hv_cntr * cntr, uint64_t value));
HV_NEWER(int, set_err_comp_cntr, (struct hv_cntr * cntr, uint64_t value));
HV_NEWER(int, inc_comp_cntr, (struct hv_cntr * cntr, uint64_t amount));
HV_NEWER(int, inc_err_comp_cntr, (struct hv_cntr * cntr, uint64_t amount));
HV_NEWER(int, read_comp_cntr, (struct hv_cntr * cntr, uint64_t *value));
HV_NEWER(int, read_err_comp_cntr, (struct hv_cntr * cntr, uint64_t *value));

#endif
