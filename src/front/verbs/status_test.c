/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "front/verbs/status.h"

#include <errno.h>

static void errors_of_what_was_sent(void **state)
{
	static const struct {
		int err;
		enum ibv_wc_status status;
	} all[] = {
		{ 0, IBV_WC_SUCCESS },
		{ HD_S_CANCELLED, IBV_WC_WR_FLUSH_ERR },
		{ HD_S_ACCESS, IBV_WC_REM_ACCESS_ERR },
		{ HD_S_RANGE, IBV_WC_REM_ACCESS_ERR },
		{ HD_S_LENGTH, IBV_WC_REM_INV_REQ_ERR },
		{ HD_S_INVALID, IBV_WC_REM_INV_REQ_ERR },
		{ HD_S_RNR, IBV_WC_RNR_RETRY_EXC_ERR },
		{ HD_S_TIMEOUT, IBV_WC_RETRY_EXC_ERR },
		{ HD_S_LOST, IBV_WC_RETRY_EXC_ERR },
		{ HD_S_REFUSED, IBV_WC_RETRY_EXC_ERR },
		{ HD_S_OPERATIONAL, IBV_WC_REM_OP_ERR },
		{ HD_S_PROTOCOL, IBV_WC_REM_OP_ERR },
		{ HD_S_PROTECTION, IBV_WC_LOC_PROT_ERR },
		{ HD_S_LOCAL_LENGTH, IBV_WC_LOC_LEN_ERR },
		{ HD_S_PROTECTION, IBV_WC_LOC_PROT_ERR },
	};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		assert_int_equal(hv_wc_status(HD_C_SEND | HD_C_MSG, all[i].err), all[i].status);
	assert_int_equal(hv_wc_status(HD_C_LOCAL, HD_S_ACCESS), IBV_WC_MW_BIND_ERR);
	assert_int_equal(hv_wc_status(HD_C_LOCAL, HD_S_CANCELLED), IBV_WC_WR_FLUSH_ERR);
}

static void errors_of_receives(void **state)
{
	assert_int_equal(hv_wc_status(HD_C_RECV, 0), IBV_WC_SUCCESS);
	assert_int_equal(hv_wc_status(HD_C_RECV, HD_S_LENGTH), IBV_WC_LOC_LEN_ERR);
	assert_int_equal(hv_wc_status(HD_C_RECV, HD_S_PROTECTION), IBV_WC_LOC_PROT_ERR);
	assert_int_equal(hv_wc_status(HD_C_RECV, HD_S_PROTECTION), IBV_WC_LOC_PROT_ERR);
	assert_int_equal(hv_wc_status(HD_C_RECV, HD_S_CANCELLED), IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(hv_wc_status(HD_C_RECV, HD_S_LOST), IBV_WC_WR_FLUSH_ERR);
}

static void opcodes(void **state)
{
	static const enum ibv_wc_opcode all[] = { IBV_WC_SEND,	    IBV_WC_RDMA_WRITE, IBV_WC_RDMA_READ,
						  IBV_WC_COMP_SWAP, IBV_WC_FETCH_ADD,  IBV_WC_BIND_MW,
						  IBV_WC_LOCAL_INV };

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		uint64_t word = hv_word(UINT32_MAX - 3, (uint8_t)all[i]);

		assert_int_equal(hv_wc_opcode(HD_C_SEND | HD_C_MSG, word), all[i]);
		assert_int_equal(hv_word_ahead(word, UINT32_MAX - 3), 0);
		assert_int_equal(hv_word_ahead(word, UINT32_MAX - 4), 1);
		assert_int_equal(hv_word_ahead(word, 5), -9);
		assert_int_equal(hv_word_ahead(word | UINT64_C(7) << 32, UINT32_MAX - (1 << 20)),
				 (1 << 20) - 3);
	}
	assert_int_equal(hv_wc_opcode(HD_C_RECV | HD_C_MSG | HD_C_IMM, 0), IBV_WC_RECV);
	assert_int_equal(hv_wc_opcode(HD_C_RECV | HD_C_RMA | HD_C_REMOTE | HD_C_WRITE | HD_C_IMM, 8),
			 IBV_WC_RECV_RDMA_WITH_IMM);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(errors_of_what_was_sent),
		cmocka_unit_test(errors_of_receives),
		cmocka_unit_test(opcodes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
