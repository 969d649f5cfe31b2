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

#endif
