/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * The suite over TCP with packets that are late and calls that are refused: what the suite
 * promises must hold all the same.
 */
#include "transport/fault/fault.h"
#include "transport/suite.h"

extern const struct hd_transport hd_tcp_transport; /* a transport includes no other */

int main(void)
{
	static const struct hd_fault_plan plan = { .seed = 1, .hold_most = 3, .again_percent = 10 };
	struct suite suite = { .transport = hd_fault_wrap(&hd_tcp_transport, &plan),
			       .address = "127.0.0.1",
			       .outlives_fork = true };
	int failed = suite_run(&suite);

	hd_fault_unwrap(suite.transport);
	return failed;
}
