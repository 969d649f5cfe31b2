/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * The kernel's structures of attributes and paths in those of the library, and back: for programs
 * that talk to the kernel themselves.
 */
#include "front/verbs/entry.h"

#include <infiniband/sa.h>
#include <rdma/ib_user_sa.h>
#include <rdma/ib_user_verbs.h>
#include <string.h>

void ibv_copy_ah_attr_from_kern(struct ibv_ah_attr *dst, struct ib_uverbs_ah_attr *src);
void ibv_copy_qp_attr_from_kern(struct ibv_qp_attr *dst, struct ib_uverbs_qp_attr *src);
void ibv_copy_path_rec_from_kern(struct ibv_sa_path_rec *dst, struct ib_user_path_rec *src);
void ibv_copy_path_rec_to_kern(struct ib_user_path_rec *dst, struct ibv_sa_path_rec *src);

#define TAKE(member) dst->member = src->member

HV_PUBLIC void ibv_copy_ah_attr_from_kern(struct ibv_ah_attr *dst, struct ib_uverbs_ah_attr *src)
{
	memcpy(dst->grh.dgid.raw, src->grh.dgid, sizeof(dst->grh.dgid));
	TAKE(grh.flow_label);
	TAKE(grh.sgid_index);
	TAKE(grh.hop_limit);
	TAKE(grh.traffic_class);
	TAKE(dlid);
	TAKE(sl);
	TAKE(src_path_bits);
	TAKE(static_rate);
	TAKE(is_global);
	TAKE(port_num);
}

HV_PUBLIC void ibv_copy_qp_attr_from_kern(struct ibv_qp_attr *dst, struct ib_uverbs_qp_attr *src)
{
	dst->cur_qp_state = (enum ibv_qp_state)src->cur_qp_state;
	dst->path_mtu = (enum ibv_mtu)src->path_mtu;
	dst->path_mig_state = (enum ibv_mig_state)src->path_mig_state;
	TAKE(qkey);
	TAKE(rq_psn);
	TAKE(sq_psn);
	TAKE(dest_qp_num);
	TAKE(qp_access_flags);
	dst->cap = (struct ibv_qp_cap){ src->max_send_wr, src->max_recv_wr, src->max_send_sge,
					src->max_recv_sge, src->max_inline_data };
	ibv_copy_ah_attr_from_kern(&dst->ah_attr, &src->ah_attr);
	ibv_copy_ah_attr_from_kern(&dst->alt_ah_attr, &src->alt_ah_attr);
	TAKE(pkey_index);
	TAKE(alt_pkey_index);
	TAKE(en_sqd_async_notify);
	TAKE(sq_draining);
	TAKE(max_rd_atomic);
	TAKE(max_dest_rd_atomic);
	TAKE(min_rnr_timer);
	TAKE(port_num);
	TAKE(timeout);
	TAKE(retry_cnt);
	TAKE(rnr_retry);
	TAKE(alt_port_num);
	TAKE(alt_timeout);
}

/* What both structures of a path call by the same name; their GIDs differ in type. */
#define TAKE_PATH() \
	do { \
		memcpy(&dst->dgid, &src->dgid, sizeof(dst->dgid)); \
		memcpy(&dst->sgid, &src->sgid, sizeof(dst->sgid)); \
		TAKE(dlid); \
		TAKE(slid); \
		TAKE(flow_label); \
		TAKE(hop_limit); \
		TAKE(traffic_class); \
		TAKE(numb_path); \
		TAKE(pkey); \
		TAKE(sl); \
		TAKE(mtu_selector); \
		TAKE(rate_selector); \
		TAKE(rate); \
		TAKE(packet_life_time_selector); \
		TAKE(packet_life_time); \
		TAKE(preference); \
	} while (0)

HV_PUBLIC void ibv_copy_path_rec_from_kern(struct ibv_sa_path_rec *dst, struct ib_user_path_rec *src)
{
	TAKE_PATH();
	dst->raw_traffic = (int)src->raw_traffic;
	dst->reversible = (int)src->reversible;
	dst->mtu = (uint8_t)src->mtu;
}

HV_PUBLIC void ibv_copy_path_rec_to_kern(struct ib_user_path_rec *dst, struct ibv_sa_path_rec *src)
{
	memset(dst, 0, sizeof(*dst));
	TAKE_PATH();
	dst->raw_traffic = (uint32_t)src->raw_traffic;
	dst->reversible = (uint32_t)src->reversible;
	dst->mtu = src->mtu;
}
