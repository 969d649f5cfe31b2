/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Attributes of endpoints: what they are when nobody says, which are right, and what is granted. */
#include "front/dat/ep.h"

#define DEFAULT_DTOS 256
#define DEFAULT_IOV 4

DAT_EP_ATTR hu_ep_attr_default(void)
{
	return (DAT_EP_ATTR){
		.service_type = DAT_SERVICE_TYPE_RC,
		.max_message_size = HU_MAX_MESSAGE,
		.max_rdma_size = HU_MAX_MESSAGE,
		.qos = DAT_QOS_BEST_EFFORT,
		.max_recv_dtos = DEFAULT_DTOS,
		.max_request_dtos = DEFAULT_DTOS,
		.max_recv_iov = DEFAULT_IOV,
		.max_request_iov = DEFAULT_IOV,
		.max_rdma_read_in = HU_MAX_READS,
		.max_rdma_read_out = HU_MAX_READS,
		.srq_soft_hw = DAT_HW_DEFAULT,
		.max_rdma_read_iov = DEFAULT_IOV,
		.max_rdma_write_iov = DEFAULT_IOV,
	};
}

/*
 * What is asked for is the least that an endpoint must take, and messages are as long here as they
 * may be anywhere. Programs leave at 0 what they have no wish for; where that would forbid an
 * operation, it is the default.
 */
void hu_ep_attr_fill(DAT_EP_ATTR *a)
{
	DAT_COUNT *counts[] = { &a->max_recv_iov, &a->max_request_iov, &a->max_rdma_read_iov,
				&a->max_rdma_write_iov };

	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
		if (!*counts[i])
			*counts[i] = DEFAULT_IOV;
	if (!a->srq_soft_hw) /* dat_ep_set_watermark alone means 0 */
		a->srq_soft_hw = DAT_HW_DEFAULT;
}

static bool is_ud(const DAT_EP_ATTR *a)
{
	return a->service_type == (DAT_SERVICE_TYPE)DAT_IB_SERVICE_TYPE_UD;
}

bool hu_ep_is_ud(const struct hu_ep *ep)
{
	return is_ud(&ep->attr);
}

void hu_ep_attr_grant(DAT_EP_ATTR *a)
{
	a->max_message_size = is_ud(a) ? HU_MAX_DATAGRAM : HU_MAX_MESSAGE;
	a->max_rdma_size = is_ud(a) ? 0 : HU_MAX_MESSAGE;
}

static bool is_count(DAT_COUNT n, DAT_COUNT most)
{
	return n >= 0 && n <= most;
}

static bool flags_are_right(const DAT_EP_ATTR *a)
{
	const unsigned receives = DAT_COMPLETION_SOLICITED_WAIT_FLAG | DAT_COMPLETION_UNSIGNALLED_FLAG |
				  DAT_COMPLETION_EVD_THRESHOLD_FLAG;
	const unsigned requests = DAT_COMPLETION_SUPPRESS_FLAG | DAT_COMPLETION_UNSIGNALLED_FLAG |
				  DAT_COMPLETION_SOLICITED_WAIT_FLAG | DAT_COMPLETION_BARRIER_FENCE_FLAG |
				  DAT_COMPLETION_EVD_THRESHOLD_FLAG;

	/* who controls waiters by a threshold does so by nothing else: dat.h */
	if (a->recv_completion_flags & DAT_COMPLETION_EVD_THRESHOLD_FLAG &&
	    a->recv_completion_flags & DAT_COMPLETION_UNSIGNALLED_FLAG)
		return false;
	return !((unsigned)a->recv_completion_flags & ~receives) &&
	       !((unsigned)a->request_completion_flags & ~requests);
}

bool hu_ep_attr_is_right(const DAT_EP_ATTR *a)
{
	return (a->service_type == DAT_SERVICE_TYPE_RC || is_ud(a)) && a->qos == DAT_QOS_BEST_EFFORT &&
	       a->max_message_size <= (is_ud(a) ? HU_MAX_DATAGRAM : HU_MAX_MESSAGE) &&
	       a->max_rdma_size <= HU_MAX_MESSAGE && flags_are_right(a) &&
	       is_count(a->max_recv_dtos, HU_MAX_DTOS) && is_count(a->max_request_dtos, HU_MAX_DTOS) &&
	       is_count(a->max_recv_iov, HU_MAX_IOV) && is_count(a->max_request_iov, HU_MAX_IOV) &&
	       is_count(a->max_rdma_read_in, HU_MAX_READS) && is_count(a->max_rdma_read_out, HU_MAX_READS) &&
	       is_count(a->max_rdma_read_iov, HU_MAX_IOV) && is_count(a->max_rdma_write_iov, HU_MAX_IOV) &&
	       a->srq_soft_hw >= DAT_WATERMARK_INFINITE;
}
