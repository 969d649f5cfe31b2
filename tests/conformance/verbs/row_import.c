/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* IMPORT: ibv_import_device(3), ibv_import_pd(3), ibv_import_mr(3), ibv_import_dm(3), by a descriptor and handles of the same process. */
#include "vt.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
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
	ct_sync(ct, &e);
	ct_fill(e.buf, 64, (uint64_t)ct->rank);
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

const struct ct_case vt_import[] = { { "IMPORT", "domains", { domains } },
				     { "IMPORT", "regions", { regions, regions } },
				     { "IMPORT", "device-memory", { device_memory } },
				     { "IMPORT", "strangers", { strangers } },
				     { NULL } };
