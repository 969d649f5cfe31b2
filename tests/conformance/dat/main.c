/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* dat-conformance: options. */
#include "../case.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

const char ct_program[] = "dat-conformance";

extern const struct ct_case dt_srq[], dt_flags[], dt_errors[], dt_posting[], dt_connect[], dt_life[],
	dt_events[], dt_memory[], dt_fault[], dt_many[], dt_marks[], dt_counters[], dt_common[], dt_async[],
	dt_handle[], dt_states[], dt_param[], dt_notify[], dt_ext[], dt_reach[], dt_object[], dt_requests[],
	dt_wishes[];

const struct ct_case *const ct_lists[] = { dt_srq,    dt_flags,	   dt_errors, dt_posting, dt_connect,
					   dt_life,   dt_events,   dt_memory, dt_fault,	  dt_many,
					   dt_marks,  dt_counters, dt_common, dt_async,	  dt_handle,
					   dt_states, dt_param,	   dt_notify, dt_ext,	  dt_reach,
					   dt_object, dt_requests, dt_wishes, NULL };

int main(int argc, char **argv)
{
	struct ct_conf conf = { .provider = "heddle", .scale = 1, .seed = 20260101 };
	struct ct_picks only = { .n = 0 }, leave_out = { .n = 0 };
	struct ct_all all = { .only = &only, .leave_out = &leave_out };
	int c;

	while ((c = getopt(argc, argv, "D:t:x:k:T:l")) != -1) {
		if (c == 'D')
			conf.provider = optarg;
		else if (c == 't' || c == 'x')
			ct_pick(c == 't' ? &only : &leave_out, optarg);
		else if (c == 'k')
			all.speed = ct_speed_of(optarg);
		else if (c == 'T')
			conf.scale = strtod(optarg, NULL);
		else if (c == 'l')
			ct_list_all(all.speed);
		else
			conf.scale = 0; /* see below */
	}
	if (optind == argc && conf.scale > 0)
		return ct_run_all(&all, &conf);
	fprintf(stderr,
		"usage: %s [-D NAME] [-t ROW] [-x ROW] [-k quick|slow] [-T FACTOR] [-l]\n"
		"Runs cases on the interface adapter that dat.conf calls so, each in processes of its own:\n"
		"  -D NAME    of the adapter (heddle)\n"
		"  -t ROW     only this row, case, or both; may be repeated\n"
		"  -x ROW     leave these out; may be repeated\n"
		"  -k KIND    quick or slow: only those cases; 'make check' leaves out the slow ones\n"
		"  -T FACTOR  multiply every deadline\n"
		"  -l         list the cases\n",
		ct_program);
	return 2;
}
