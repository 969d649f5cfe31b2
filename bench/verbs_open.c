/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
#include <errno.h>
#include <string.h>

#include "sample.h"
#include "verbs_open.h"

void *must(const char *what, void *object)
{
	if (!object)
		hd_give_up("%s: %s", what, strerror(errno));
	return object;
}

void must_be_0(const char *what, int rc)
{
	if (rc)
		hd_give_up("%s: %s", what, strerror(rc < 0 ? errno : rc));
}

struct ibv_context *device_open(const char *wanted)
{
	struct ibv_device **list = must("ibv_get_device_list", ibv_get_device_list(NULL));
	struct ibv_context *context = NULL;

	for (int i = 0; list[i] && !context; i++)
		if (!strcmp(ibv_get_device_name(list[i]), wanted))
			context = ibv_open_device(list[i]);
	ibv_free_device_list(list);
	if (!context)
		hd_give_up("there is no device %s, or it cannot be opened", wanted);
	return context;
}

void rc_connect(struct ibv_qp *qp, uint32_t number, uint16_t lid)
{
	struct ibv_qp_attr init = { .qp_state = IBV_QPS_INIT,
				    .port_num = 1,
				    .qp_access_flags = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE };
	struct ibv_qp_attr rtr = { .qp_state = IBV_QPS_RTR,
				   .path_mtu = IBV_MTU_4096,
				   .dest_qp_num = number,
				   .max_dest_rd_atomic = 1,
				   .min_rnr_timer = 12,
				   .ah_attr = { .dlid = lid, .port_num = 1 } };
	struct ibv_qp_attr rts = {
		.qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 7, .rnr_retry = 7, .max_rd_atomic = 1
	};

	must_be_0("to INIT",
		  ibv_modify_qp(qp, &init,
				IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS));
	must_be_0("to RTR",
		  ibv_modify_qp(qp, &rtr,
				IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
					IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER));
	must_be_0("to RTS",
		  ibv_modify_qp(qp, &rts,
				IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
					IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC));
}
