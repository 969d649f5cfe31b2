/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* The table of all cases, in the order in which they run. */
#include "ct.h"

extern const struct ct_case ct_calls[], ct_bounds[], ct_match_cases[], ct_flags[], ct_multi[], ct_level[];
extern const struct ct_case ct_flow[], ct_bad[], ct_peek[], ct_av[], ct_cq[], ct_cntr[], ct_info[], ct_life[];
extern const struct ct_case ct_mr[], ct_atomic[];
extern const struct ct_case ct_fault[], ct_soak[], ct_fence[], ct_dgram[], ct_prefix[], ct_mcast[],
	ct_buffered[], ct_variable[];

extern const struct ct_case ct_order[], ct_misuse[], ct_share[], ct_poll_sets[], ct_wait[], ct_trigger[],
	ct_work[], ct_rma[], ct_rma_refused[], ct_rma_order[];

extern const struct ct_case ct_conn[], ct_parting[], ct_answer[], ct_mixed[], ct_events[];

extern const struct ct_case ct_auth[], ct_keyed_cases[], ct_keyed_share[];

extern const struct ct_case ct_inject[], ct_told[], ct_data[], ct_more[], ct_directed[], ct_refused[],
	ct_cancel[];

extern const struct ct_case ct_collect[], ct_desc[], ct_format[];

extern const struct ct_case ct_words[], ct_coll[], ct_coll_life[];

extern const struct ct_case ct_srx[], ct_alias[], ct_sep[], ct_sav[];

const char ct_program[] = "ofi-conformance";
const bool ct_loads_once = true;

const struct ct_case *const ct_lists[] = {
	ct_calls,	ct_bounds, ct_match_cases, ct_flags,   ct_multi,    ct_level,	ct_flow,
	ct_bad,		ct_peek,   ct_av,	   ct_cq,      ct_cntr,	    ct_info,	ct_life,
	ct_fault,	ct_soak,   ct_fence,	   ct_dgram,   ct_prefix,   ct_mcast,	ct_buffered,
	ct_poll_sets,	ct_wait,   ct_trigger,	   ct_work,    ct_variable, ct_rma,	ct_rma_refused,
	ct_mr,		ct_atomic, ct_conn,	   ct_parting, ct_mixed,    ct_events,	ct_srx,
	ct_alias,	ct_sep,	   ct_sav,	   ct_order,   ct_misuse,   ct_share,	ct_auth,
	ct_inject,	ct_told,   ct_data,	   ct_more,    ct_directed, ct_refused, ct_keyed_cases,
	ct_keyed_share, ct_cancel, ct_collect,	   ct_desc,    ct_format,   ct_words,	ct_answer,
	ct_rma_order,	ct_coll,   ct_coll_life,   NULL
};
