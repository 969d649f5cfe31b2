/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Options of ids: rdma_set_option(3). */
#include "front/verbs/cm/cm.h"

#include <errno.h>
#include <string.h>

#define LONGEST_ACK_TIMEOUT 31 /* 5 bits of the queue pair's attribute */

static int set_flag(bool *flag, const void *optval, size_t optlen)
{
	int value;

	if (optlen != sizeof(value))
		return -EINVAL;
	memcpy(&value, optval, sizeof(value));
	*flag = value != 0;
	return 0;
}

/* Who listens shares his port no more than he did, as the kernel has it. */
static int set_reuse(struct hv_id *id, const void *optval, size_t optlen)
{
	bool reuse;
	int rc = set_flag(&reuse, optval, optlen);

	if (rc || (reuse && id->state != HV_ID_LISTENING) || id->state == HV_ID_IDLE) {
		id->reuse = rc ? id->reuse : reuse;
		return rc;
	}
	return -EINVAL;
}

static int set_id_option(struct hv_id *id, int optname, const void *optval, size_t optlen)
{
	const uint8_t *byte = optval;

	switch (optname) {
	case RDMA_OPTION_ID_TOS:
		if (optlen != sizeof(*byte))
			return -EINVAL;
		id->tos = *byte;
		return 0;
	case RDMA_OPTION_ID_REUSEADDR:
		return set_reuse(id, optval, optlen);
	case RDMA_OPTION_ID_AFONLY:
		if (id->state != HV_ID_IDLE)
			return -EINVAL;
		return set_flag(&id->af_only, optval, optlen);
	case RDMA_OPTION_ID_ACK_TIMEOUT:
		if (optlen != sizeof(*byte) || *byte > LONGEST_ACK_TIMEOUT || hv_id_is_datagram(id))
			return -EINVAL;
		id->ack_timeout = *byte;
		id->has_ack_timeout = true;
		return 0;
	default:
		return -ENOSYS;
	}
}

HV_PUBLIC int rdma_set_option(struct rdma_cm_id *pub, int level, int optname, void *optval, size_t optlen)
{
	struct hv_id *id = hv_id_of(pub);

	if (!pub || !optval)
		return hv_cm_ret(-EINVAL);
	if (level == RDMA_OPTION_ID)
		return hv_cm_ret(set_id_option(id, optname, optval, optlen));
	if (level == RDMA_OPTION_IB && optname == RDMA_OPTION_IB_PATH)
		return hv_cm_ret(hv_id_set_path(id, optval, optlen));
	return hv_cm_ret(-ENOSYS);
}
