/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Multicast groups: fi_join(3), and what an endpoint's own calls need of it. */
#ifndef HEDDLE_FRONT_OFI_MC_H
#define HEDDLE_FRONT_OFI_MC_H

#include "front/ofi/ep.h"

/* hd_fi_join is fi_join(3). */
int hd_fi_join(struct fid_ep *fid, const void *addr, uint64_t flags, struct fid_mc **out, void *context);

/* hd_fi_mc_send is fi_sendmsg with FI_MULTICAST, fi_msg(3). */
ssize_t hd_fi_mc_send(struct hd_fi_ep *ep, const struct fi_msg *msg, uint64_t flags);

/*
 * The same in two steps: hd_fi_mc_take checks a call and fills in s->flags, whose tag and data the
 * caller does; hd_fi_mc_start says it, and has completed it where s->flags ask for that. Caller
 * holds the node's lock for the second. -FI_EINVAL: s->dest is no group that it may speak in.
 */
int hd_fi_mc_take(const struct hd_fi_ep *ep, const struct iovec *iov, size_t count, uint64_t flags,
		  struct hd_fi_send *s);
int hd_fi_mc_start(struct hd_fi_ep *ep, const struct iovec *iov, size_t count, const struct hd_fi_send *s);

/*
 * hd_fi_mc_msg: FI_MULTICAST is one of the endpoint's op_flags: its calls
 * without flags go to groups.
 */
void hd_fi_mc_msg(struct fi_ops_msg *table);

#endif
