/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* verbs-conformance: options. */
#include "vt.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

const char ct_program[] = "verbs-conformance";

extern const struct ct_case vt_states[], vt_life[], vt_lists[], vt_opcodes[], vt_flags[], vt_errors[],
	vt_rnr[], vt_psn[], vt_keys[], vt_ud[], vt_srq[], vt_builders[], vt_objects[], vt_fault[], vt_words[],
	vt_fork[], vt_soak[], vt_bad[], vt_mcast[], vt_windows[], vt_windows_wrong[], vt_queues[], vt_xrc[],
	vt_xrc_shared[], vt_import[], vt_path[], vt_domains[], vt_whole[], vt_limits[], vt_notices[],
	vt_gone[], vt_owner[], vt_newer[], vt_flush[];
extern const struct ct_case vt_cm_connect[], vt_cm_own[], vt_cm_part[], vt_cm_ids[], vt_cm_sync[], vt_cm_ud[],
	vt_cm_many[], vt_cm_native[], vt_cm_types[], vt_rsocket[], vt_rs_wait[], vt_rs_options[],
	vt_rs_calls[], vt_rs_epoll[], vt_rs_listen[], vt_rdgram[], vt_cm_edges[], vt_cm_mcast[], vt_cm_link[];

const struct ct_case *const ct_lists[] = {
	vt_states,  vt_life,	   vt_lists,	  vt_opcodes,  vt_flags,    vt_errors,	   vt_psn,
	vt_keys,    vt_rnr,	   vt_ud,	  vt_srq,      vt_builders, vt_objects,	   vt_fault,
	vt_words,   vt_fork,	   vt_soak,	  vt_bad,      vt_mcast,    vt_windows,	   vt_windows_wrong,
	vt_queues,  vt_cm_connect, vt_cm_own,	  vt_cm_part,  vt_cm_ids,   vt_cm_sync,	   vt_cm_ud,
	vt_cm_many, vt_cm_native,  vt_xrc,	  vt_cm_types, vt_domains,  vt_whole,	   vt_limits,
	vt_notices, vt_gone,	   vt_cm_edges,	  vt_cm_link,  vt_cm_mcast, vt_xrc_shared, vt_import,
	vt_rsocket, vt_rs_wait,	   vt_rs_options, vt_rs_calls, vt_rs_epoll, vt_rs_listen,  vt_rdgram,
	vt_path,    vt_owner,	   vt_newer,	  vt_flush,    NULL
};

static void __attribute__((noreturn)) usage(void)
{
	fprintf(stderr,
		"usage: %s -d DEVICE [options]\n"
		"Runs cases on a device of libibverbs, each in processes of its own, and prints a line for each:\n"
		"ROW name pass|fail|unsupported  reason\n"
		"  -t ROW     only this row, case, or both; may be repeated\n"
		"  -x ROW     leave these out; may be repeated\n"
		"  -k KIND    quick or slow: only those cases; 'make check' leaves out the slow ones\n"
		"  -T FACTOR  multiply every deadline\n"
		"  -s SEED    seed of the random cases\n"
		"  -l         list the cases\n",
		ct_program);
	exit(2);
}

int main(int argc, char **argv)
{
	struct ct_conf conf = { .scale = 1, .seed = 20260101 };
	struct ct_picks only = { .n = 0 }, leave_out = { .n = 0 };
	struct ct_all all = { .only = &only, .leave_out = &leave_out };
	int c;

	while ((c = getopt(argc, argv, "d:t:x:k:T:s:l")) != -1) {
		switch (c) {
		case 'd':
			conf.provider = optarg;
			break;
		case 't':
			ct_pick(&only, optarg);
			break;
		case 'x':
			ct_pick(&leave_out, optarg);
			break;
		case 'k':
			all.speed = ct_speed_of(optarg);
			break;
		case 'T':
			conf.scale = strtod(optarg, NULL);
			break;
		case 's':
			conf.seed = strtoull(optarg, NULL, 0);
			break;
		case 'l':
			ct_list_all(all.speed);
		default:
			usage();
		}
	}
	if (!conf.provider || optind != argc || conf.scale <= 0)
		usage();
	return ct_run_all(&all, &conf);
}
