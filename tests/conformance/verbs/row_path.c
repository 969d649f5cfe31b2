/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * PATH: second paths, IBV_QP_ALT_PATH and IBV_QP_PATH_MIG_STATE of
 * ibv_modify_qp(3), and their events.
 */
#include "vt.h"

#include <errno.h>

#define SL 3 /* of the second path, which is else as the first: any device has that */

static void start(struct ct *ct, struct ct_ep *e, const struct vt_want *want)
{
	struct ibv_context *context = vt_context(ct);
	struct ibv_device_attr attr;

	VT_OK(ct, ibv_query_device(context, &attr));
	VT_OK(ct, ibv_close_device(context));
	if (!(attr.device_cap_flags & IBV_DEVICE_AUTO_PATH_MIG))
		ct_unsupported(ct, "the device has no second paths");
	vt_start(ct, e, want);
}

static int set_state(struct ct_ep *e, enum ibv_mig_state state)
{
	struct ibv_qp_attr attr = { .path_mig_state = state };

	return ibv_modify_qp(e->qp, &attr, IBV_QP_PATH_MIG_STATE);
}

static void load(struct ct_ep *e)
{
	struct ibv_qp_attr attr = { .alt_ah_attr = vt_av(e, &e->peer[!e->ct->rank]),
				    .alt_port_num = 1,
				    .alt_timeout = 17 };

	attr.alt_ah_attr.sl = SL;
	VT_OK(e->ct, ibv_modify_qp(e->qp, &attr, IBV_QP_ALT_PATH));
}

static struct ibv_qp_attr asked(struct ct_ep *e)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	VT_OK(e->ct, ibv_query_qp(e->qp, &attr, IBV_QP_AV | IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE, &init));
	return attr;
}

static void until(struct ct_ep *e, enum ibv_mig_state state)
{
	double end = ct_deadline(e->ct);

	while (asked(e).path_mig_state != state) {
		ct_late(e->ct, end, "a state of the path");
		ct_progress(e);
	}
}

/* Either way, with whatever waits for a receive. */
static void talk(struct ct_ep *e)
{
	vt_recv(e, 4096, 64, 1);
	vt_send(e, 0, 64, 2);
	vt_done(e, 2, NULL);
}

/*
 * Armed when both are rearmed; either end migrates both, and what was the
 * second path is the first then.
 */
static void asked_for(struct ct *ct)
{
	const struct vt_want want = { .type = (enum ibv_qp_type)ct->cs->arg };
	struct ct_ep e;

	start(ct, &e, &want);
	VT_ERR(ct, set_state(&e, IBV_MIG_REARM), EINVAL);
	for (int round = 0; round < 2; round++) {
		load(&e);
		CT_EQ(ct, asked(&e).alt_ah_attr.sl, SL);
		CT_EQ(ct, asked(&e).path_mig_state, IBV_MIG_MIGRATED);
		VT_OK(ct, set_state(&e, IBV_MIG_REARM));
		until(&e, IBV_MIG_ARMED);
		talk(&e);
		ct_sync(ct, &e);
		if (ct->rank == round)
			VT_OK(ct, set_state(&e, IBV_MIG_MIGRATED));
		vt_event(&e, IBV_EVENT_PATH_MIG, e.qp);
		CT_EQ(ct, asked(&e).path_mig_state, IBV_MIG_MIGRATED);
		CT_EQ(ct, asked(&e).ah_attr.sl, SL);
		CT_EQ(ct, asked(&e).alt_port_num, 0);
		ct_sync(ct, &e);
		talk(&e);
		/* a further path is to be given first */
		VT_ERR(ct, set_state(&e, IBV_MIG_REARM), EINVAL);
		ct_sync(ct, &e);
	}
	vt_finish(&e);
}

/* The other end migrates to a path that there is none of here. */
static void refused(struct ct *ct)
{
	struct ct_ep e;

	start(ct, &e, NULL);
	if (ct->rank) {
		vt_event(&e, IBV_EVENT_PATH_MIG_ERR, e.qp);
		CT_EQ(ct, asked(&e).ah_attr.sl, 0);
	} else {
		load(&e);
		VT_OK(ct, set_state(&e, IBV_MIG_ARMED));
		VT_OK(ct, set_state(&e, IBV_MIG_MIGRATED));
		vt_event(&e, IBV_EVENT_PATH_MIG, e.qp);
	}
	ct_sync(ct, &e);
	talk(&e);
	vt_finish(&e);
}

const struct ct_case vt_path[] = { { "PATH", "migrate", { asked_for, asked_for }, .arg = IBV_QPT_RC },
				   { "PATH", "migrate-uc", { asked_for, asked_for }, .arg = IBV_QPT_UC },
				   { "PATH", "refused", { refused, refused } },
				   { NULL } };
