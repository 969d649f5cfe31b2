/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* The two ends of a connection, opened step by step. Rank 0 listens, rank 1 calls. */
#ifndef CT_ENDS_H
#define CT_ENDS_H

#include "connect.h"

struct end {
	struct ct *ct;
	struct ct_dom dom;
	struct fid_eq *eq;
	struct fid_pep *pep;
	struct ct_ep e; /* only ep and CQs */
	char name[CT_NAME];
	size_t namelen;
};

/*
 * end_open_dom: a domain and its events, and who listens. end_open_ep: an endpoint with its queue;
 * info NULL: the domain's.
 */
void end_open_dom(struct ct *ct, struct end *d);
void end_close_dom(struct end *d);
void end_open_ep(struct end *d, struct fi_info *info, struct ct_ep *e);
void end_close_ep(struct ct_ep *e);

/*
 * end_request: the next that somebody asks for. end_join: both ranks have an endpoint that is
 * connected; end_finish: it closes. end_call: rank 1 calls.
 */
struct fi_info *end_request(struct end *d);
void end_join(struct ct *ct, struct end *d);
void end_finish(struct end *d);
void end_call(struct end *d);

/*
 * end_no_event: none comes, for so many ms. end_cancelled: the completion of this context says so.
 */
void end_no_event(struct end *d, int ms);
void end_cancelled(struct ct_ep *e, void *ctx);

#endif
