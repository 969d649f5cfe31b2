/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Requests of endpoints, the base's and the extensions'. */
#ifndef HEDDLE_FRONT_DAT_POST_H
#define HEDDLE_FRONT_DAT_POST_H

#include "front/dat/dat_front.h"

#define HU_REQUEST_FLAGS \
	((unsigned)DAT_COMPLETION_SUPPRESS_FLAG | (unsigned)DAT_COMPLETION_SOLICITED_WAIT_FLAG | \
	 (unsigned)DAT_COMPLETION_UNSIGNALLED_FLAG | (unsigned)DAT_COMPLETION_BARRIER_FENCE_FLAG)

#define HU_QKEY 0x48756474u /* datagrams of other fronts do not reach these endpoints */

/* What all requests of one call have in common. */
struct hu_request_kind {
	int operation; /* DAT_DTOS or DAT_IB_DTOS: what their completions say */
	int flags_arg; /* which argument of the call the flags are */
	/* of such requests; what they carry is the next one's, if `counts_data` */
	DAT_EP_COUNTERS counter;
	bool counts_data;
	bool with_imm;
};

struct hu_request {
	const struct hu_request_kind *kind;
	const DAT_LMR_TRIPLET *iov;
	DAT_COUNT count;
	DAT_DTO_COOKIE cookie;
	DAT_COMPLETION_FLAGS flags;
	const DAT_RMR_TRIPLET *remote;
	uint32_t imm;
	bool takes_back; /* a send: imm is the context of a region of the other end */
};

/*
 * hu_sends: what dat_ep_post_send posts, and another call with the same arguments.
 * hu_request: post it. hu_request_check: may the endpoint post it, with the lock;
 * hu_request_check_flags: of that, what is not its state.
 * hu_reach: a read or write that may be posted, with the lock. hu_send: a message to somebody, with
 * the lock. hu_request_flags, hu_request_tag: what the engine is told.
 * hu_posted: the answer to one that the engine has answered like this; if it was posted, it
 * and its bytes are counted.
 * hu_receive: post a receive to an endpoint, or through the poster of a
 * shared queue; with the lock.
 */
extern const struct hu_request_kind hu_sends;
DAT_RETURN hu_request(DAT_EP_HANDLE ep, const struct hu_request *r);
DAT_RETURN hu_reach(struct hu_ep *ep, const struct hu_request *r);
DAT_RETURN hu_request_check(const struct hu_ep *ep, const struct hu_request *r);
DAT_RETURN hu_request_check_flags(const struct hu_ep *ep, const struct hu_request *r);
DAT_RETURN hu_send(struct hu_ep *ep, const struct hu_request *r, struct hd_dest *to);
uint32_t hu_request_flags(const struct hu_request *r);
uint64_t hu_request_tag(const struct hu_request *r);
DAT_RETURN hu_posted(struct hu_ep *ep, const struct hu_request *r, uint64_t bytes, int rc);
DAT_RETURN hu_receive(struct hd_ep *to, const struct hu_iov *v, DAT_DTO_COOKIE cookie, bool quiet);

#endif
