/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* How verbs' addresses hold those of the host; see hv_addr_resolve for the use of it. No locks, any thread. */
#ifndef HEDDLE_FRONT_VERBS_ADDR_H
#define HEDDLE_FRONT_VERBS_ADDR_H

#include "front/verbs/verbs_front.h"

/* hv_guid_of_ip: the GUID of a device at this IPv4 address, host byte order; stable for as long as the address is. */
__be64 hv_guid_of_ip(enum hv_device_index index, uint32_t ip);

/* hv_gid_of_guid: the link-local GID of a port. hv_gid_of_address: that of a RoCE port: IPv4 as mapped IPv6, IPv6 as it is. */
void hv_gid_of_guid(__be64 guid, union ibv_gid *out);
void hv_gid_of_address(const struct sockaddr *addr, union ibv_gid *out);

#endif
