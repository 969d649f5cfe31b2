/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
#ifndef HD_BASE_INTERFACES_H
#define HD_BASE_INTERFACES_H

#include <ifaddrs.h>

/*
 * hd_interfaces: as getifaddrs(3): 0, or -1 with errno, and *all is the caller's until
 * hd_interfaces_free. Where netlink sockets are refused, as by filters that leave a program
 * AF_UNIX, AF_INET and AF_INET6 alone, it has the addresses of IPv4 only, which netdevice(7) tells
 * without.
 */
int hd_interfaces(struct ifaddrs **all);
void hd_interfaces_free(struct ifaddrs *all);

#endif
