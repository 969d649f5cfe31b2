/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Functions that are younger than the header which this front is built with: newer.h. Buffers are
 * ordinary memory, never a dma-buf.
 */
#include "front/verbs/newer.h"

#include "base/lock.h"
#include "base/table.h"
#include "front/verbs/entry.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/*
 * HV_NEWER_CALL: what is not ours is the business of the real library's function of this name,
 * called with these arguments; `none` is answered where it has none.
 */
#define HV_NEWER_CALL(symbol, function, none, ...) \
	do { \
		__typeof__(&(function)) real = (__typeof__(real))hv_real_find("libibverbs.so.1", symbol); \
\
		if (real) \
			return real(__VA_ARGS__); \
		errno = ENOSYS; \
		return none; \
	} while (0)
#define HV_NEWER_REAL(name, none, ...) HV_NEWER_CALL("ibv_" #name, hv_newer_##name, none, __VA_ARGS__)

/* ---- buffers --------------------------------------------------------------------------------- */

struct hv_buf {
	struct hv_buf *self; /* the key: who made a buffer cannot be seen from it */
	void *addr;
	size_t size;
	struct ibv_pd *pd;
	UT_hash_handle hh;
};

HD_LOCK_DEFINE(bufs_lock);
static struct hv_buf *bufs; /* all of ours; under the lock */

static bool buf_is_ours(struct hv_buf *buf)
{
	struct hv_buf *found;

	hd_lock_take(&bufs_lock);
	HASH_FIND_PTR(bufs, &buf, found);
	hd_lock_give(&bufs_lock);
	return found;
}

static struct hv_buf *buf_make(struct ibv_pd *pd, size_t size)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct hv_buf *buf = malloc(sizeof(*buf));

	if (!buf)
		return NULL;
	*buf = (struct hv_buf){ .self = buf, .size = (size + page - 1) & ~(page - 1), .pd = pd };
	buf->addr = mmap(NULL, buf->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (buf->addr == MAP_FAILED) {
		free(buf);
		return NULL;
	}
	return buf;
}

static void buf_end(struct hv_buf *buf)
{
	munmap(buf->addr, buf->size);
	free(buf);
}

void *hv_newer_alloc_buf(struct ibv_pd *pd, size_t size, struct hv_buf **out)
{
	struct hv_buf *buf;
	bool known;

	if (!hv_owns(pd->context))
		HV_NEWER_REAL(alloc_buf, NULL, pd, size, out);
	if (!size || size > SIZE_MAX / 2)
		return hv_fail(EINVAL);
	buf = buf_make(pd, size);
	if (!buf)
		return hv_fail(ENOMEM);
	hd_lock_take(&bufs_lock);
	HASH_ADD_PTR(bufs, self, buf);
	known = hd_is_in_table(&buf->hh);
	hd_lock_give(&bufs_lock);
	if (!known) {
		buf_end(buf);
		return hv_fail(ENOMEM);
	}
	*out = buf;
	return buf->addr;
}

static void buf_free_real(struct hv_buf *buf)
{
	HV_NEWER_REAL(free_buf, , buf);
}

void hv_newer_free_buf(struct hv_buf *buf)
{
	if (!buf_is_ours(buf)) {
		buf_free_real(buf);
		return;
	}
	hd_lock_take(&bufs_lock);
	HASH_DEL(bufs, buf);
	hd_lock_give(&bufs_lock);
	buf_end(buf);
}

int hv_newer_export_buf_dmabuf_fd(struct hv_buf *buf)
{
	if (!buf_is_ours(buf))
		HV_NEWER_REAL(export_buf_dmabuf_fd, -1, buf);
	errno = ENODATA;
	return -1;
}

/* ---- regions --------------------------------------------------------------------------------- */

/* Is this range in the buffer, and may this domain register it? */
static bool buf_has(const struct hv_buf *buf, const struct ibv_pd *pd, const void *addr, size_t length)
{
	uintptr_t at = (uintptr_t)addr, begin = (uintptr_t)buf->addr;

	return buf->pd == pd && at >= begin && at - begin <= buf->size && length <= buf->size - (at - begin);
}

struct ibv_mr *hv_newer_reg_mr_ex(struct ibv_pd *pd, const struct hv_mr_init_attr *attr)
{
	uint64_t has = attr->comp_mask, iova = has & HV_MR_IOVA ? attr->iova : (uintptr_t)attr->addr;
	const uint64_t file = HV_MR_FD | HV_MR_FD_OFFSET;

	if (!hv_owns(pd->context))
		HV_NEWER_REAL(reg_mr_ex, NULL, pd, attr);
	/* DMA handles among them */
	if (has & ~(uint64_t)(HV_MR_IOVA | HV_MR_ADDR | file | HV_MR_BUF))
		return hv_fail(EOPNOTSUPP);
	if (has & HV_MR_ADDR ? has & file : !(has & HV_MR_FD) || has & HV_MR_BUF)
		return hv_fail(EINVAL);
	if (has & HV_MR_BUF && (!buf_is_ours(attr->buf) || !buf_has(attr->buf, pd, attr->addr, attr->length)))
		return hv_fail(EINVAL);
	if (has & HV_MR_FD)
		return hv_ibv_reg_dmabuf_mr(pd, has & HV_MR_FD_OFFSET ? attr->fd_offset : 0, attr->length,
					    has & HV_MR_IOVA ? attr->iova : 0, attr->fd, attr->access);
	return hv_ibv_reg_mr_iova2(pd, attr->addr, attr->length, iova, (unsigned)attr->access);
}

struct ibv_mr *hv_newer_reg_buf_mr(struct ibv_pd *pd, struct hv_buf *buf, void *addr, size_t length,
				   int access)
{
	struct hv_mr_init_attr attr = { .length = length,
					.access = access,
					.comp_mask = HV_MR_ADDR | HV_MR_BUF,
					.addr = addr,
					.buf = buf };

	if (!hv_owns(pd->context))
		HV_NEWER_REAL(reg_buf_mr, NULL, pd, buf, addr, length, access);
	return hv_newer_reg_mr_ex(pd, &attr);
}

/* ---- ports ----------------------------------------------------------------------------------- */

int hv_newer_query_port_speed(struct ibv_context *context, uint32_t port, uint64_t *speed)
{
	if (!hv_owns(context))
		HV_NEWER_REAL(query_port_speed, ENOSYS, context, port, speed);
	if (port != 1)
		return hv_tell(EINVAL);
	*speed = HV_PORT_SPEED;
	return 0;
}

/* ---- what no device of ours has -------------------------------------------------------------- */

struct hv_dmah *hv_newer_alloc_dmah(struct ibv_context *context, void *attr)
{
	if (!hv_owns(context))
		HV_NEWER_REAL(alloc_dmah, NULL, context, attr);
	return hv_fail(EOPNOTSUPP);
}

int hv_newer_dealloc_dmah(struct hv_dmah *dmah)
{
	HV_NEWER_REAL(dealloc_dmah, ENOSYS, dmah);
}

int hv_newer_dm_export_dmabuf_fd(struct ibv_dm *dm)
{
	if (!hv_owns(dm->context))
		HV_NEWER_REAL(dm_export_dmabuf_fd, -1, dm);
	errno = EOPNOTSUPP;
	return -1;
}

int hv_newer_query_comp_cntr_caps(struct ibv_context *context, void *caps, size_t size)
{
	if (!hv_owns(context))
		HV_NEWER_CALL("_ibv_query_comp_cntr_caps", hv_newer_query_comp_cntr_caps, ENOSYS, context,
			      caps, size);
	return hv_tell(EOPNOTSUPP);
}

struct hv_cntr *hv_newer_create_comp_cntr(struct ibv_context *context, void *attr)
{
	if (!hv_owns(context))
		HV_NEWER_REAL(create_comp_cntr, NULL, context, attr);
	return hv_fail(EOPNOTSUPP);
}

int hv_newer_qp_attach_comp_cntr(struct ibv_qp *qp, struct hv_cntr *cntr, void *attr)
{
	if (!hv_owns(qp->context))
		HV_NEWER_REAL(qp_attach_comp_cntr, ENOSYS, qp, cntr, attr);
	return hv_tell(EOPNOTSUPP);
}

int hv_newer_destroy_comp_cntr(struct hv_cntr *cntr)
{
	HV_NEWER_REAL(destroy_comp_cntr, ENOSYS, cntr);
}

#define CNTR_VALUE(name, type) \
	int hv_newer_##name(struct hv_cntr *cntr, type value) \
	{ \
		HV_NEWER_REAL(name, ENOSYS, cntr, value); \
	}
CNTR_VALUE(set_comp_cntr, uint64_t)
CNTR_VALUE(set_err_comp_cntr, uint64_t)
CNTR_VALUE(inc_comp_cntr, uint64_t)
CNTR_VALUE(inc_err_comp_cntr, uint64_t)
CNTR_VALUE(read_comp_cntr, uint64_t *)
CNTR_VALUE(read_err_comp_cntr, uint64_t *)
#undef CNTR_VALUE
