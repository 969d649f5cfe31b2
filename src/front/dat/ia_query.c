/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* dat_ia_query: what an IA and the provider are like. No zero where the front can do something. */
#include "front/dat/dat_front.h"

#include <dat2/dat_ib_extensions.h>
#include <stdio.h>
#include <string.h>

#define EXTENSION_VERSION DAT_IB_EXTENSION_VERSION

#define TEXT(macro) TEXT_OF(macro)
#define TEXT_OF(text) #text
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/*
 * Which extensions there are, and what providers over verbs say beside, which programs go by.
 * They look in either place.
 */
static DAT_NAMED_ATTR extensions[] = {
	{ "DAT_IB_PROVIDER_NAME", "heddle" },
	{ "DAT_IB_DEVICE_NAME", "heddle" },
	{ "DAT_IB_CONNECTIVITY_MODE", "DIRECT" },
	{ "DAT_IB_RDMA_READ", "TRUE" },
	{ "DAT_IB_PORT_STATUS", "ACTIVE" },
	{ "DAT_IB_PORT_NUMBER", "1" },
	{ "DAT_EXTENSION_INTERFACE", "TRUE" },
	{ DAT_IB_ATTR_FETCH_AND_ADD, "TRUE" },
	{ DAT_IB_ATTR_CMP_AND_SWAP, "TRUE" },
	{ DAT_IB_ATTR_IMMED_DATA, "TRUE" },
	{ DAT_IB_ATTR_UD, "TRUE" },
	{ DAT_IB_ATTR_COUNTERS, "TRUE" },
	{ "DAT_IB_TRANSPORT_MTU", TEXT(HU_MAX_DATAGRAM) }, /* what a datagram holds */
};

/* Whatever the mask asks for: the rest of the structure is the program's to look past. */
static void fill_ia(struct hu_ia *ia, DAT_IA_ATTR *a)
{
	*a = (DAT_IA_ATTR){
		.vendor_name = "Heddle",
		.hardware_version_major = 1,
		.firmware_version_major = 1,
		.ia_address_ptr = (DAT_IA_ADDRESS_PTR)&ia->addr,
		.max_eps = HU_MAX_EPS,
		.max_dto_per_ep = HU_MAX_DTOS,
		.max_rdma_read_per_ep_in = HU_MAX_READS,
		.max_rdma_read_per_ep_out = HU_MAX_READS,
		.max_evds = HU_MAX_OBJECTS,
		.max_evd_qlen = HU_MAX_EVENTS,
		.max_iov_segments_per_dto = HU_MAX_IOV,
		.max_lmrs = HU_MAX_OBJECTS,
		.max_lmr_block_size = UINT32_MAX,
		.max_lmr_virtual_address = UINT64_MAX,
		.max_pzs = HU_MAX_OBJECTS,
		.max_message_size = HU_MAX_MESSAGE,
		.max_rdma_size = HU_MAX_MESSAGE,
		.max_rmrs = HU_MAX_OBJECTS,
		.max_rmr_target_address = UINT64_MAX,
		.max_srqs = HU_MAX_OBJECTS,
		.max_ep_per_srq = HU_MAX_EPS,
		.max_recv_per_srq = HU_MAX_SRQ_DTOS,
		.max_iov_segments_per_rdma_read = HU_MAX_IOV,
		.max_iov_segments_per_rdma_write = HU_MAX_IOV,
		.max_rdma_read_in = HU_MAX_OBJECTS,
		.max_rdma_read_out = HU_MAX_OBJECTS,
		.max_rdma_read_per_ep_in_guaranteed = DAT_TRUE,
		.max_rdma_read_per_ep_out_guaranteed = DAT_TRUE,
		.zb_supported = DAT_TRUE,
		.extension_supported = DAT_EXTENSION_IB,
		.extension_version = EXTENSION_VERSION,
		.num_vendor_attr = COUNT(extensions),
		.vendor_attr = extensions,
	};
	memcpy(a->adapter_name, ia->name, sizeof(a->adapter_name));
}

static void fill_provider(const struct hu_ia *ia, DAT_PROVIDER_ATTR *a)
{
	DAT_PROVIDER_ATTR all = {
		.provider_name = "heddle",
		.provider_version_major = 1,
		.dapl_version_major = DAT_VERSION_MAJOR,
		.dapl_version_minor = DAT_VERSION_MINOR,
		.lmr_mem_types_supported =
			(DAT_MEM_TYPE)(DAT_MEM_TYPE_VIRTUAL | DAT_MEM_TYPE_LMR | DAT_MEM_TYPE_SHARED_VIRTUAL),
		/* it is read before the call returns */
		.iov_ownership_on_return = DAT_IOV_CONSUMER,
		.dat_qos_supported = DAT_QOS_BEST_EFFORT,
		.completion_flags_supported = (DAT_COMPLETION_FLAGS)0x1f,
		.is_thread_safe = ia->thread_safe ? DAT_TRUE : DAT_FALSE,
		.max_private_data_size = HU_MAX_PRIVATE,
		.supports_multipath = DAT_FALSE,
		.ep_creator = DAT_PSP_CREATES_EP_IFASKED,
		.pz_support = DAT_PZ_UNIQUE,
		.optimal_buffer_alignment = DAT_OPTIMAL_ALIGNMENT,
		.srq_supported = DAT_TRUE,
		/*
		 * providers have put these bits four apart, and side by side: low, soft high, hard
		 * high; both counts; both again
		 */
		.srq_watermarks_supported = 0x111 | 7,
		.srq_ep_pz_difference_supported = DAT_FALSE,
		.srq_info_supported = 0x11 | 3,
		.ep_recv_info_supported = 0x11 | 3,
		.lmr_sync_req = DAT_FALSE,
		.dto_async_return_guaranteed = DAT_TRUE,
		.rdma_write_for_rdma_read_req = DAT_FALSE,
		.rdma_read_lmr_rmr_context_exposure = DAT_FALSE,
		.rmr_scope_supported = DAT_RMR_SCOPE_ANY,
		.is_signal_safe = DAT_FALSE,
		.ha_supported = DAT_FALSE,
		.ha_loadbalancing = DAT_HA_LB_NONE,
		.num_provider_specific_attr = COUNT(extensions),
		.provider_specific_attr = extensions,
	};

	/* all kinds of events may come to one EVD */
	for (int i = 0; i < 6; i++)
		for (int j = 0; j < 6; j++)
			memcpy((void *)&all.evd_stream_merging_supported[i][j], &(DAT_BOOLEAN){ DAT_TRUE },
			       sizeof(DAT_BOOLEAN));
	memcpy(a, &all, sizeof(all)); /* a member is const */
}

DAT_RETURN hu_ia_query(DAT_IA_HANDLE handle, DAT_EVD_HANDLE *async, DAT_IA_ATTR_MASK ia_mask,
		       DAT_IA_ATTR *ia_attr, DAT_PROVIDER_ATTR_MASK provider_mask,
		       DAT_PROVIDER_ATTR *provider_attr)
{
	struct hu_ia *ia = handle;

	if (!hu_is(ia, DAT_HANDLE_TYPE_IA))
		return hu_error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
	if (ia_mask & ~DAT_IA_FIELD_ALL)
		return hu_error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	if (ia_mask && !ia_attr)
		return hu_error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG4);
	if (provider_mask & ~DAT_PROVIDER_FIELD_ALL)
		return hu_error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG5);
	if (provider_mask && !provider_attr)
		return hu_error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG6);
	if (async)
		*async = ia->async ? (DAT_EVD_HANDLE)ia->async : DAT_EVD_OUT_OF_SCOPE;
	if (ia_mask)
		fill_ia(ia, ia_attr);
	if (provider_mask)
		fill_provider(ia, provider_attr);
	return DAT_SUCCESS;
}
