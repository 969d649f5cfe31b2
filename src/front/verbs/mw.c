/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Memory windows: ibv_alloc_mw(3), ibv_bind_mw(3). Type 1, and type 2B: those are bound to a queue
 * pair. Binding and invalidating are work requests, which the engine carries out in their turn;
 * what is wrong with them it finds out then.
 */
#include "front/verbs/mw.h"
#include "front/verbs/newer.h"
#include "front/verbs/ops.h"

#include <errno.h>
#include <stdlib.h>

/* Local writing is the region's affair: programs say it here too, and cards take no notice. */
#define WINDOW_ACCESS \
	(IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC | \
	 IBV_ACCESS_ZERO_BASED | IBV_ACCESS_LOCAL_WRITE | HV_ACCESS_FLUSH_GLOBAL)

struct hv_mw {
	struct ibv_mw pub;
	struct hd_mr *window;
};

static struct hv_mw *mw_of(struct ibv_mw *mw)
{
	return hv_container(mw, struct hv_mw, pub);
}

struct ibv_mw *hv_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type)
{
	struct hv_context *ctx = hv_context_of(pd->context);
	struct hv_mw *mw;
	int rc;

	if (type != IBV_MW_TYPE_1 && type != IBV_MW_TYPE_2)
		return hv_fail(EINVAL);
	rc = HV_CHECK(pd);
	if (rc)
		return hv_fail(rc);
	mw = hv_object_new(ctx, HV_KIND_MW, sizeof(*mw));
	if (!mw)
		return NULL;
	rc = -EIO;
	mw->pub = (struct ibv_mw){ .context = pd->context, .pd = pd, .type = type };
	if (hv_enter(ctx)) {
		rc = hd_window_open(ctx->node, hv_pd_real(hv_pd_of(pd))->number, type == IBV_MW_TYPE_2,
				    &mw->window);
		if (!rc) {
			hd_window_own(mw->window, mw);
			mw->pub.rkey = (uint32_t)hd_mr_key(mw->window);
			mw->pub.handle = ++ctx->next_handle;
			hv_object_show(mw, mw->pub.handle);
			hv_pd_of(pd)->users++;
			ctx->objects++;
		}
		hv_leave(ctx);
	}
	if (!rc)
		return &mw->pub;
	hv_object_free(ctx, mw);
	return hv_fail(rc);
}

int hv_dealloc_mw(struct ibv_mw *pub)
{
	struct hv_context *ctx = hv_context_of(pub->context);
	struct hv_mw *mw = mw_of(pub);
	int rc = HV_CHECK(pub);

	if (rc)
		return rc;
	if (!hv_enter(ctx))
		return EIO;
	rc = -hv_region_close(ctx, mw->window);
	if (!rc) {
		hv_pd_of(pub->pd)->users--;
		ctx->objects--;
	}
	hv_leave(ctx);
	if (!rc)
		hv_object_free(ctx, mw);
	return rc;
}

bool hv_bind_is_right(const struct hv_qp *qp, const struct ibv_mw *mw, const struct ibv_mw_bind_info *info)
{
	const struct ibv_context *context = &qp->ctx->pub.context;

	return mw && mw->context == context && (!info->mr || info->mr->context == context) &&
	       !(info->mw_access_flags & ~(unsigned)WINDOW_ACCESS);
}

/*
 * The request names the window; of the key it wants, the low 8 bits are the program's to choose.
 * What the window is called from now on stands in it at once, for those that read it there; who
 * keeps account by himself comes to the same.
 */
int hv_bind_post(struct hv_qp *qp, struct ibv_mw *pub, const struct ibv_mw_bind_info *info,
		 struct hd_bind_args *args)
{
	uint32_t key = ((uint32_t)hd_mr_key(mw_of(pub)->window) & ~0xffu) | ((uint32_t)args->key & 0xff);
	int rc;

	args->key = key;
	args->region = info->mr ? hv_mr_of(info->mr)->mr : NULL;
	args->addr = info->addr;
	args->len = info->length;
	args->access = hv_engine_access(info->mw_access_flags);
	args->from_zero = info->mw_access_flags & IBV_ACCESS_ZERO_BASED;
	rc = hd_window_bind(qp->ep, args);
	if (!rc)
		pub->rkey = key;
	return rc;
}

int hv_bind_mw(struct ibv_qp *pub, struct ibv_mw *mw, struct ibv_mw_bind *bind)
{
	struct hv_qp *qp = hv_qp_of(pub);
	const struct ibv_send_wr wr = { .wr_id = bind->wr_id,
					.opcode = IBV_WR_BIND_MW,
					.send_flags = bind->send_flags,
					.bind_mw = { mw, ibv_inc_rkey(mw->rkey), bind->bind_info } };
	int rc;

	if (mw->type != IBV_MW_TYPE_1 || !qp->pd || hv_pd_real(hv_pd_of(mw->pd)) != hv_pd_real(qp->pd))
		return EINVAL;
	if (!hv_enter(qp->ctx))
		return EIO;
	rc = hv_post_bind_one(qp, &wr);
	hv_leave(qp->ctx);
	return rc;
}
