/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
#include "front/verbs/opcode.h"
#include "front/verbs/newer.h"

#define CONNECTED (HV_RC | HV_UC | HV_XRC)
#define RELIABLE (HV_RC | HV_XRC)

/* Segmentation and the like are not there; their opcodes are refused as numbers that are none. */
const struct hv_opcode hv_opcodes[HV_OPCODES] = {
	[IBV_WR_SEND] = { CONNECTED | HV_UD, HV_OP_SEND, true, false, IBV_WC_SEND, 0, IBV_QP_EX_WITH_SEND },
	[IBV_WR_SEND_WITH_IMM] = { CONNECTED | HV_UD, HV_OP_SEND, true, false, IBV_WC_SEND, HD_SEND_IMM,
				   IBV_QP_EX_WITH_SEND_WITH_IMM },
	[IBV_WR_SEND_WITH_INV] = { CONNECTED, HV_OP_SEND, true, false, IBV_WC_SEND,
				   HD_SEND_IMM | HD_SEND_TAKE_BACK, IBV_QP_EX_WITH_SEND_WITH_INV },
	[IBV_WR_RDMA_WRITE] = { CONNECTED, HV_OP_WRITE, true, false, IBV_WC_RDMA_WRITE, 0,
				IBV_QP_EX_WITH_RDMA_WRITE },
	[IBV_WR_RDMA_WRITE_WITH_IMM] = { CONNECTED, HV_OP_WRITE, true, false, IBV_WC_RDMA_WRITE, HD_SEND_IMM,
					 IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM },
	[IBV_WR_RDMA_READ] = { RELIABLE, HV_OP_READ, false, true, IBV_WC_RDMA_READ, 0,
			       IBV_QP_EX_WITH_RDMA_READ },
	[IBV_WR_ATOMIC_CMP_AND_SWP] = { RELIABLE, HV_OP_ATOMIC, false, true, IBV_WC_COMP_SWAP, 0,
					IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP },
	[IBV_WR_ATOMIC_FETCH_AND_ADD] = { RELIABLE, HV_OP_ATOMIC, false, true, IBV_WC_FETCH_ADD, 0,
					  IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD },
	/*
	 * its 8 bytes go with the request, whatever room for inline data there is; of XRC Linux'
	 * drivers have it no more than we do
	 */
	[IBV_WR_ATOMIC_WRITE] = { HV_RC, HV_OP_ATOMIC_WRITE, true, false, IBV_WC_ATOMIC_WRITE, 0,
				  IBV_QP_EX_WITH_ATOMIC_WRITE },
	[HV_WR_FLUSH] = { HV_RC, HV_OP_FLUSH, false, false, HV_WC_FLUSH, 0, HV_QP_EX_WITH_FLUSH },
	[IBV_WR_BIND_MW] = { CONNECTED, HV_OP_BIND, false, false, IBV_WC_BIND_MW, 0, IBV_QP_EX_WITH_BIND_MW },
	[IBV_WR_LOCAL_INV] = { CONNECTED, HV_OP_INVALIDATE, false, false, IBV_WC_LOCAL_INV, 0,
			       IBV_QP_EX_WITH_LOCAL_INV },
};
