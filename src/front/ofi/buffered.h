/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Endpoints with FI_BUFFERED_RECV or FI_VARIABLE_MSG; fi_msg(3), fi_tagged(3), fi_endpoint(3). */
#ifndef HEDDLE_FRONT_OFI_BUFFERED_H
#define HEDDLE_FRONT_OFI_BUFFERED_H

#include "front/ofi/ep.h"

/*
 * hd_fi_buffered_init sets what an endpoint that has just been made buffers:
 * nothing where on is false.
 */
void hd_fi_buffered_init(struct hd_fi_ep *ep, bool on);

/*
 * hd_fi_buffered_msg, hd_fi_buffered_tagged replace the receiving calls of
 * an endpoint that buffers.
 */
void hd_fi_buffered_msg(struct fi_ops_msg *table);
void hd_fi_buffered_tagged(struct fi_ops_tagged *table);

/*
 * hd_fi_buffered_option finds what FI_OPT_BUFFERED_LIMIT or FI_OPT_BUFFERED_MIN name: NULL for
 * another option, or where nothing is buffered. hd_fi_buffered_set sets it, as fi_setopt(3) has it:
 * SIZE_MAX is the most that there is. -FI_EINVAL, -FI_EMSGSIZE beyond that, -FI_EOPBADSTATE once
 * the endpoint is enabled.
 */
uint32_t *hd_fi_buffered_option(struct hd_fi_ep *ep, int optname);
int hd_fi_buffered_set(struct hd_fi_ep *ep, uint32_t *option, const void *optval, size_t optlen);

/* hd_fi_tagged_look is fi_trecvmsg with FI_PEEK, or FI_CLAIM after it (tagged.c). */
ssize_t hd_fi_tagged_look(struct hd_fi_ep *ep, const struct fi_msg_tagged *msg, uint64_t flags);

#endif
