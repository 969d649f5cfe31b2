/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "front/verbs/qp_state.h"

/* The minimum lists of ibv_modify_qp(3), written down as they stand there. */
static const struct {
	enum ibv_qp_type type;
	enum ibv_qp_state from, to;
	int mask;
} page[] = {
	{ IBV_QPT_UD, IBV_QPS_RESET, IBV_QPS_INIT,
	  IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY },
	{ IBV_QPT_UD, IBV_QPS_INIT, IBV_QPS_RTR, IBV_QP_STATE },
	{ IBV_QPT_UD, IBV_QPS_RTR, IBV_QPS_RTS, IBV_QP_STATE | IBV_QP_SQ_PSN },
	{ IBV_QPT_UC, IBV_QPS_RESET, IBV_QPS_INIT,
	  IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS },
	{ IBV_QPT_UC, IBV_QPS_INIT, IBV_QPS_RTR,
	  IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN },
	{ IBV_QPT_UC, IBV_QPS_RTR, IBV_QPS_RTS, IBV_QP_STATE | IBV_QP_SQ_PSN },
	{ IBV_QPT_RC, IBV_QPS_RESET, IBV_QPS_INIT,
	  IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS },
	{ IBV_QPT_RC, IBV_QPS_INIT, IBV_QPS_RTR,
	  IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
		  IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER },
	{ IBV_QPT_RC, IBV_QPS_RTR, IBV_QPS_RTS,
	  IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
		  IBV_QP_TIMEOUT },
	/* XRC is not on the page: as the kernel has it */
	{ IBV_QPT_XRC_SEND, IBV_QPS_INIT, IBV_QPS_RTR,
	  IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN },
	{ IBV_QPT_XRC_SEND, IBV_QPS_RTR, IBV_QPS_RTS,
	  IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
		  IBV_QP_TIMEOUT },
	{ IBV_QPT_XRC_RECV, IBV_QPS_INIT, IBV_QPS_RTR,
	  IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
		  IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER },
	{ IBV_QPT_XRC_RECV, IBV_QPS_RTR, IBV_QPS_RTS, IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT },
};
#define ROWS (sizeof(page) / sizeof(page[0]))

/*
 * Each list is enough, and without any one of it (but the state itself, which the
 * caller takes apart) it is not.
 */
static void required_attributes_are_required(void **state)
{
	for (size_t i = 0; i < ROWS; i++) {
		assert_true(hv_qp_state_step(page[i].type, page[i].from, page[i].to, page[i].mask));
		for (int bit = 1; bit <= IBV_QP_DEST_QPN; bit <<= 1)
			if (page[i].mask & bit && bit != IBV_QP_STATE)
				assert_false(hv_qp_state_step(page[i].type, page[i].from, page[i].to,
							      page[i].mask & ~bit));
	}
}

static void attributes_of_other_transports_are_refused(void **state)
{
	static const struct {
		enum ibv_qp_type type;
		int bit;
	} bad[] = {
		{ IBV_QPT_UD, IBV_QP_AV },	 { IBV_QPT_UD, IBV_QP_ACCESS_FLAGS },
		{ IBV_QPT_UD, IBV_QP_PATH_MTU }, { IBV_QPT_UD, IBV_QP_RETRY_CNT },
		{ IBV_QPT_UC, IBV_QP_QKEY },	 { IBV_QPT_UC, IBV_QP_MIN_RNR_TIMER },
		{ IBV_QPT_UC, IBV_QP_TIMEOUT },	 { IBV_QPT_UC, IBV_QP_MAX_DEST_RD_ATOMIC },
		{ IBV_QPT_RC, IBV_QP_QKEY },	 { IBV_QPT_RC, IBV_QP_CAP },
		{ IBV_QPT_UD, IBV_QP_CAP },	 { IBV_QPT_RC, IBV_QP_RATE_LIMIT },
	};

	for (size_t i = 0; i < ROWS; i++)
		for (size_t j = 0; j < sizeof(bad) / sizeof(bad[0]); j++)
			if (page[i].type == bad[j].type)
				assert_false(hv_qp_state_step(page[i].type, page[i].from, page[i].to,
							      page[i].mask | bad[j].bit));
}

/*
 * From everywhere to RESET, and to ERR but from RESET, as Linux' drivers have it; otherwise along
 * the page's arrows alone.
 */
static void states_follow_the_arrows(void **state)
{
	static const bool arrow[IBV_QPS_UNKNOWN][IBV_QPS_UNKNOWN] = {
		[IBV_QPS_INIT] = { [IBV_QPS_INIT] = true },
		[IBV_QPS_RTS] = { [IBV_QPS_RTS] = true, [IBV_QPS_SQD] = true },
		[IBV_QPS_SQD] = { [IBV_QPS_RTS] = true, [IBV_QPS_SQD] = true },
		[IBV_QPS_SQE] = { [IBV_QPS_RTS] = true },
	};

	for (enum ibv_qp_state from = IBV_QPS_RESET; from < IBV_QPS_UNKNOWN; from++)
		for (enum ibv_qp_state to = IBV_QPS_RESET; to <= IBV_QPS_UNKNOWN; to++) {
			bool expected = to == IBV_QPS_RESET || (to == IBV_QPS_ERR && from != IBV_QPS_RESET) ||
					(to != IBV_QPS_UNKNOWN && arrow[from][to]);

			assert_int_equal(hv_qp_state_step(IBV_QPT_UC, from, to, IBV_QP_STATE), expected);
		}
	assert_false(hv_qp_state_step(IBV_QPT_RC, IBV_QPS_SQE, IBV_QPS_RTS, IBV_QP_STATE));
	assert_false(hv_qp_state_step(IBV_QPT_RC, IBV_QPS_UNKNOWN, IBV_QPS_ERR, IBV_QP_STATE));
}

static void what_may_change_on_the_way(void **state)
{
	const enum ibv_qp_state rts = IBV_QPS_RTS, sqd = IBV_QPS_SQD;

	assert_true(hv_qp_state_step(IBV_QPT_RC, rts, rts, IBV_QP_MIN_RNR_TIMER | IBV_QP_ACCESS_FLAGS));
	assert_true(hv_qp_state_step(IBV_QPT_RC, rts, rts, IBV_QP_CUR_STATE | IBV_QP_STATE));
	assert_false(hv_qp_state_step(IBV_QPT_RC, rts, rts, IBV_QP_TIMEOUT));
	assert_true(hv_qp_state_step(IBV_QPT_RC, sqd, sqd, IBV_QP_TIMEOUT | IBV_QP_AV));
	assert_true(hv_qp_state_step(IBV_QPT_RC, rts, sqd, IBV_QP_EN_SQD_ASYNC_NOTIFY));
	assert_true(hv_qp_state_step(IBV_QPT_UD, rts, rts, IBV_QP_QKEY));
	assert_false(hv_qp_state_step(IBV_QPT_UD, sqd, sqd, IBV_QP_AV));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(required_attributes_are_required),
		cmocka_unit_test(attributes_of_other_transports_are_refused),
		cmocka_unit_test(states_follow_the_arrows),
		cmocka_unit_test(what_may_change_on_the_way),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
