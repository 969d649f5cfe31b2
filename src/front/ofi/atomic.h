/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* The calls of fi_atomic(3) in steps, for whoever makes them later than the program did. */
#ifndef HEDDLE_FRONT_OFI_ATOMIC_H
#define HEDDLE_FRONT_OFI_ATOMIC_H

#include "front/ofi/ep.h"

/* One operation as the calls give it. */
struct hd_fi_atomic {
	enum hd_atomic_how how;
	uint32_t op, type;
	const struct fi_ioc *ioc, *comparev, *resultv;
	size_t count, compare_count, result_count;
	const struct fi_rma_ioc *remote;
	size_t remote_count;
	fi_addr_t dest;
	void *context;
	uint32_t flags; /* enum hd_send_flag */
	bool usual;	/* of a call without flags */
};

/* Its lists for the engine. */
struct hd_fi_atomic_lists {
	struct iovec iov[HD_MAX_IOV], compare[HD_MAX_IOV], result[HD_MAX_IOV];
	struct hd_rma_seg seg[HD_RMA_SEGS];
};

/*
 * hd_fi_atomic_msg takes over what a call with flags gives, but for how, and the lists of results
 * and of what is compared. hd_fi_atomic_take checks the call and makes its lists; hd_fi_atomic_post
 * then looks at the counts and at no list of c. 0 or the errno of the page. Caller holds the node's
 * lock for the last.
 */
int hd_fi_atomic_msg(const struct hd_fi_ep *ep, const struct fi_msg_atomic *msg, uint64_t flags,
		     struct hd_fi_atomic *c);
int hd_fi_atomic_take(const struct hd_fi_ep *ep, const struct hd_fi_atomic *c, struct hd_fi_atomic_lists *l);
ssize_t hd_fi_atomic_post(struct hd_fi_ep *ep, const struct hd_fi_atomic *c,
			  const struct hd_fi_atomic_lists *l);

#endif
