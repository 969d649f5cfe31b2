/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * What the devices are and can: ibv_query_device(3), ibv_query_device_ex(3), ibv_query_port(3),
 * ibv_query_rt_values_ex(3).
 */
#include "base/clock.h"
#include "front/verbs/addr.h"
#include "front/verbs/entry.h"
#include "front/verbs/newer.h"
#include "front/verbs/ops.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define VENDOR 0x4844	  /* nobody's: clients have quirks for vendors that they know */
#define CLOCK_KHZ 1000000 /* completion timestamps are nanoseconds */

/*
 * Values of the fields of struct ibv_port_attr that the header has no names for: see the InfiniBand
 * specification, PortInfo.
 */
enum {
	WIDTH_4X = 2,
	SPEED_EDR = 32,
	PHYS_DISABLED = 3,
	PHYS_LINK_UP = 5,
	SUBNET_TIMEOUT = 18,
	ACK_DELAY = 15,
};

static void fill_limits(struct ibv_device_attr *a)
{
	a->max_mr_size = UINT64_MAX;
	a->page_size_cap = 0xfffffffffffff000;
	a->max_qp = HV_MAX_QP;
	a->max_qp_wr = HV_MAX_WR;
	a->max_sge = HV_MAX_SGE;
	a->max_sge_rd = HV_MAX_SGE;
	a->max_cq = HV_MAX_CQ;
	a->max_cqe = HV_MAX_CQE;
	a->max_mr = HV_MAX_OBJECTS;
	a->max_mw = HV_MAX_OBJECTS;
	a->max_pd = HV_MAX_PD;
	a->max_qp_rd_atom = HV_MAX_RD_ATOMIC;
	a->max_qp_init_rd_atom = HV_MAX_RD_ATOMIC;
	a->max_res_rd_atom = HV_MAX_RD_ATOMIC * HV_MAX_QP;
	a->max_ah = HV_MAX_AH;
	a->max_srq = HV_MAX_SRQ;
	a->max_srq_wr = HV_MAX_SRQ_WR;
	a->max_srq_sge = HV_MAX_SGE;
	a->max_pkeys = 1;
	a->max_mcast_grp = HV_MAX_ATTACHED;
	a->max_mcast_qp_attach = HV_MAX_ATTACHED;
	a->max_total_mcast_qp_attach = HV_MAX_ATTACHED;
}

static __be64 guid_of(const struct hv_device *device)
{
	struct hv_port port;

	return hv_port_load(device, &port) < 0 ? 0 : port.guid;
}

__be64 hv_ibv_get_device_guid(struct ibv_device *device)
{
	return guid_of(hv_device_of(device));
}

int hv_ibv_query_device(struct ibv_context *context, struct ibv_device_attr *a)
{
	const struct hv_context *ctx = hv_context_of(context);

	memset(a, 0, sizeof(*a));
	snprintf(a->fw_ver, sizeof(a->fw_ver), "%s", HD_VERSION);
	a->node_guid = a->sys_image_guid = ctx->port.guid;
	a->vendor_id = VENDOR;
	a->vendor_part_id = 1 + ctx->device->index;
	a->hw_ver = 1;
	a->device_cap_flags = IBV_DEVICE_CURR_QP_STATE_MOD | IBV_DEVICE_SYS_IMAGE_GUID |
			      IBV_DEVICE_RC_RNR_NAK_GEN | IBV_DEVICE_SRQ_RESIZE | IBV_DEVICE_MEM_WINDOW |
			      IBV_DEVICE_MEM_WINDOW_TYPE_2B | IBV_DEVICE_MEM_MGT_EXTENSIONS | IBV_DEVICE_XRC |
			      IBV_DEVICE_AUTO_PATH_MIG;
	a->atomic_cap = IBV_ATOMIC_HCA;
	a->local_ca_ack_delay = ACK_DELAY;
	a->phys_port_cnt = 1;
	fill_limits(a);
	return 0;
}

static void fill_odp(struct ibv_odp_caps *odp)
{
	uint32_t all = IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV | IBV_ODP_SUPPORT_SRQ_RECV;

	odp->general_caps = IBV_ODP_SUPPORT; /* no page is ever touched before its time */
	odp->per_transport_caps.rc_odp_caps = all | IBV_ODP_SUPPORT_WRITE | IBV_ODP_SUPPORT_READ |
					      IBV_ODP_SUPPORT_ATOMIC | HV_ODP_ATOMIC_WRITE | HV_ODP_FLUSH;
	odp->per_transport_caps.uc_odp_caps = all | IBV_ODP_SUPPORT_WRITE;
	odp->per_transport_caps.ud_odp_caps = all;
}

int hv_query_device_ex(struct ibv_context *context, const struct ibv_query_device_ex_input *input,
		       struct ibv_device_attr_ex *attr, size_t size)
{
	struct ibv_device_attr_ex a = { 0 };

	if (input && input->comp_mask)
		return EINVAL;
	if (size < offsetof(struct ibv_device_attr_ex, comp_mask))
		return EINVAL;
	hv_ibv_query_device(context, &a.orig_attr);
	fill_odp(&a.odp_caps);
	a.xrc_odp_caps = a.odp_caps.per_transport_caps.rc_odp_caps &
			 ~(uint32_t)(HV_ODP_ATOMIC_WRITE | HV_ODP_FLUSH);
	a.completion_timestamp_mask = UINT64_MAX;
	a.hca_core_clock = CLOCK_KHZ;
	a.device_cap_flags_ex = a.orig_attr.device_cap_flags | HV_DEVICE_FLUSH_GLOBAL;
	a.phys_port_cnt_ex = 1;
	a.max_dm_size = HV_MAX_DM;
	a.cq_mod_caps = (struct ibv_cq_moderation_caps){ UINT16_MAX, UINT16_MAX };
	memset(attr, 0, size);
	memcpy(attr, &a, size < sizeof(a) ? size : sizeof(a));
	return 0;
}

int hv_query_rt_values(struct ibv_context *context, struct ibv_values_ex *values)
{
	values->comp_mask &= IBV_VALUES_MASK_RAW_CLOCK; /* what is not known is not marked */
	/* cycles of hca_core_clock, where drivers have them: programs look at tv_nsec alone */
	if (values->comp_mask)
		values->raw_clock = (struct timespec){ .tv_nsec = (long)hd_now_ns() };
	return 0;
}

/* ---- the port -------------------------------------------------------------------------------- */

unsigned hv_port_cap_flags(const struct hv_device *device)
{
	return IBV_PORT_CM_SUP |
	       (device->index == HV_ETHERNET ? IBV_PORT_IP_BASED_GIDS : IBV_PORT_SYS_IMAGE_GUID_SUP);
}

static void fill_port(const struct hv_context *ctx, struct ibv_port_attr *a)
{
	const struct hv_port *port = &ctx->port;
	bool ethernet = ctx->device->index == HV_ETHERNET;

	memset(a, 0, sizeof(*a));
	a->state = port->state;
	a->max_mtu = a->active_mtu = HV_MTU;
	a->gid_tbl_len = port->gid_count;
	a->port_cap_flags = hv_port_cap_flags(ctx->device);
	a->max_msg_sz = HV_MAX_MSG;
	a->pkey_tbl_len = 1;
	a->lid = port->lid;
	/* there is no subnet manager: what is not zero says that none is waited for */
	a->sm_lid = port->lid;
	a->max_vl_num = 1;
	a->subnet_timeout = SUBNET_TIMEOUT;
	a->active_width = WIDTH_4X;
	a->active_speed = SPEED_EDR;
	a->phys_state = port->state == IBV_PORT_ACTIVE ? PHYS_LINK_UP : PHYS_DISABLED;
	a->link_layer = ethernet ? IBV_LINK_LAYER_ETHERNET : IBV_LINK_LAYER_INFINIBAND;
	a->flags = ethernet ? IBV_QPF_GRH_REQUIRED : 0;
}

static int query_port(struct ibv_context *context, unsigned port, void *attr, size_t size)
{
	struct ibv_port_attr a;

	if (port != 1)
		return EINVAL;
	fill_port(hv_context_of(context), &a);
	memset(attr, 0, size);
	memcpy(attr, &a, size < sizeof(a) ? size : sizeof(a));
	return 0;
}

int hv_query_port(struct ibv_context *context, uint8_t port, struct ibv_port_attr *attr, size_t size)
{
	return query_port(context, port, attr, size);
}

int hv_ibv_query_port(struct ibv_context *context, uint8_t port, struct _compat_ibv_port_attr *attr)
{
	return query_port(context, port, attr, offsetof(struct ibv_port_attr, port_cap_flags2));
}

/* ---- its tables ------------------------------------------------------------------------------ */

/* NULL with errno. */
static const struct hv_gid *gid_at(struct ibv_context *context, uint32_t port, int64_t index)
{
	const struct hv_context *ctx = hv_context_of(context);

	if (port != 1 || index < 0 || index >= ctx->port.gid_count)
		return hv_fail(EINVAL);
	return &ctx->port.gids[index];
}

int hv_ibv_query_gid(struct ibv_context *context, uint8_t port, int index, union ibv_gid *gid)
{
	const struct hv_gid *at = gid_at(context, port, index);

	if (!at)
		return -1;
	*gid = at->gid;
	return 0;
}

/*
 * Of a version that is private to rdma-core, whose tools use it: 0 for InfiniBand
 * and RoCE v1, 1 for RoCE v2.
 */
int hv_ibv_query_gid_type(struct ibv_context *context, uint8_t port, unsigned int index, int *type)
{
	const struct hv_gid *at = gid_at(context, port, index);

	if (!at)
		return -1;
	*type = at->type == IBV_GID_TYPE_ROCE_V2;
	return 0;
}

static void fill_entry(const struct hv_gid *gid, uint32_t index, void *entry, size_t size)
{
	struct ibv_gid_entry e = {
		.gid = gid->gid,
		.gid_index = index,
		.port_num = 1,
		.gid_type = gid->type,
		.ndev_ifindex = gid->ifindex,
	};

	memset(entry, 0, size);
	memcpy(entry, &e, size < sizeof(e) ? size : sizeof(e));
}

int hv__ibv_query_gid_ex(struct ibv_context *context, uint32_t port, uint32_t index,
			 struct ibv_gid_entry *entry, uint32_t flags, size_t size)
{
	const struct hv_gid *at = gid_at(context, port, index);

	if (flags)
		return EOPNOTSUPP;
	if (!at)
		return EINVAL;
	fill_entry(at, index, entry, size);
	return 0;
}

ssize_t hv__ibv_query_gid_table(struct ibv_context *context, struct ibv_gid_entry *entries, size_t max,
				uint32_t flags, size_t size)
{
	const struct hv_port *port = &hv_context_of(context)->port;

	if (flags)
		return -EOPNOTSUPP;
	if (max < (size_t)port->gid_count)
		return -EINVAL;
	for (int i = 0; i < port->gid_count; i++)
		fill_entry(&port->gids[i], (uint32_t)i, (char *)entries + (size_t)i * size, size);
	return port->gid_count;
}

int hv_ibv_query_pkey(struct ibv_context *context, uint8_t port, int index, __be16 *pkey)
{
	if (port != 1 || index != 0) {
		errno = EINVAL;
		return -1;
	}
	*pkey = HV_PKEY;
	return 0;
}

int hv_ibv_get_pkey_index(struct ibv_context *context, uint8_t port, __be16 pkey)
{
	if (port == 1 && pkey == HV_PKEY)
		return 0;
	errno = EINVAL;
	return -1;
}
