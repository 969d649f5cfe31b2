/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
#include "front/verbs/opcode.h"

/* Memory windows of type 2 and segmentation are not there; their opcodes are refused like numbers that are none. */
const struct hv_opcode hv_opcodes[HV_OPCODES] = {
	[IBV_WR_SEND] = { HV_RC | HV_UC | HV_UD, HV_OP_SEND, true, false, 0, IBV_QP_EX_WITH_SEND },
	[IBV_WR_SEND_WITH_IMM] = { HV_RC | HV_UC | HV_UD, HV_OP_SEND, true, false, HD_SEND_IMM,
				   IBV_QP_EX_WITH_SEND_WITH_IMM },
	[IBV_WR_RDMA_WRITE] = { HV_RC | HV_UC, HV_OP_WRITE, true, false, 0, IBV_QP_EX_WITH_RDMA_WRITE },
	[IBV_WR_RDMA_WRITE_WITH_IMM] = { HV_RC | HV_UC, HV_OP_WRITE, true, false, HD_SEND_IMM,
					 IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM },
	[IBV_WR_RDMA_READ] = { HV_RC, HV_OP_READ, false, true, 0, IBV_QP_EX_WITH_RDMA_READ },
	[IBV_WR_ATOMIC_CMP_AND_SWP] = { HV_RC, HV_OP_ATOMIC, false, true, 0,
					IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP },
	[IBV_WR_ATOMIC_FETCH_AND_ADD] = { HV_RC, HV_OP_ATOMIC, false, true, 0,
					  IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD },
};
