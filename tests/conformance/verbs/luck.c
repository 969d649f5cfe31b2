/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * In place of the engine's table of transports, for a conformance program that Heddle is linked
 * into: the same ones with bad luck, as the environment has it: HD_LUCK="hold=3 again=10 refuse=20
 * break=500", src/transport/fault/fault.h. Nothing set: no bad luck.
 */
#include "transport/fault/fault.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern const struct hd_transport hd_tcp_transport, hd_shm_transport, hd_loop_transport;
extern const struct hd_caster hd_udp_caster;

/* As the engine knows them, but to be filled in. */
extern const struct hd_transport *hd_transports[];
extern const struct hd_caster *const hd_caster;

const struct hd_transport *hd_transports[4];
const struct hd_caster *const hd_caster = &hd_udp_caster;

static unsigned word(const char *plan, const char *name)
{
	const char *at = strstr(plan, name);

	return at ? (unsigned)strtoul(at + strlen(name), NULL, 10) : 0;
}

/* Before main, as whoever asks for the table does so at any time after that. */
static void __attribute__((constructor)) wrap(void)
{
	static const struct hd_transport *const plain[] = { &hd_tcp_transport, &hd_shm_transport,
							    &hd_loop_transport };
	const char *env = getenv("HD_LUCK");
	const struct hd_fault_plan plan = {
		.seed = 1,
		.hold_most = word(env ? env : "", "hold="),
		.again_percent = word(env ? env : "", "again="),
		.spare = 4,
		.refuse_percent = word(env ? env : "", "refuse="),
		.break_after = word(env ? env : "", "break="),
	};

	for (int i = 0; i < 3; i++) {
		hd_transports[i] = env ? hd_fault_wrap(plain[i], &plan) : plain[i];
		if (!hd_transports[i]) {
			fprintf(stderr, "cannot wrap a transport\n");
			exit(2);
		}
	}
}
