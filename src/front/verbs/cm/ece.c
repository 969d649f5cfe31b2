/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Enhanced connection establishment: rdma_set_local_ece(3), rdma_get_remote_ece(3). What the ends
 * say to each other travels in the word of requests and answers, untouched: our devices have no
 * such options, and the queue pairs are the program's.
 */
#include "front/verbs/cm/cm.h"

#include <errno.h>

HV_PUBLIC int rdma_set_local_ece(struct rdma_cm_id *pub, struct ibv_ece *ece)
{
	if (!pub || pub->qp || !ece || !ece->vendor_id || ece->comp_mask)
		return hv_cm_ret(-EINVAL);
	hv_id_of(pub)->own_ece = *ece;
	return 0;
}

HV_PUBLIC int rdma_get_remote_ece(struct rdma_cm_id *pub, struct ibv_ece *ece)
{
	if (!pub || pub->qp || !ece)
		return hv_cm_ret(-EINVAL);
	*ece = hv_id_of(pub)->other_ece;
	return 0;
}

uint64_t hv_ece_word(const struct ibv_ece *ece)
{
	return (uint64_t)ece->vendor_id << 32 | ece->options;
}

struct ibv_ece hv_ece_of(uint64_t word)
{
	return (struct ibv_ece){ .vendor_id = (uint32_t)(word >> 32), .options = (uint32_t)word };
}
