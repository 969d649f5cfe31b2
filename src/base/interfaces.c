/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
#include "base/interfaces.h"
#include "base/socket.h"

#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define INTERFACES 128 /* addresses that are told of, at most */

struct interface {
	struct ifaddrs entry; /* ifa_data says that it is one of these */
	struct sockaddr_in addr, mask;
	char name[IFNAMSIZ];
};
static char by_netdevice;

/* NULL: it is of no use, or there is no memory. */
static struct interface *interface_ask(int fd, const struct ifreq *told)
{
	struct interface *one = calloc(1, sizeof(*one));
	struct ifreq ask = *told;

	if (!one)
		return NULL;
	memcpy(&one->addr, &told->ifr_addr, sizeof(one->addr));
	memcpy(one->name, told->ifr_name, sizeof(one->name) - 1);
	one->entry.ifa_name = one->name;
	one->entry.ifa_addr = (struct sockaddr *)&one->addr;
	one->entry.ifa_netmask = (struct sockaddr *)&one->mask;
	one->entry.ifa_data = &by_netdevice;
	if (ioctl(fd, SIOCGIFNETMASK, &ask) < 0)
		goto none;
	memcpy(&one->mask, &ask.ifr_netmask, sizeof(one->mask));
	ask = *told;
	if (ioctl(fd, SIOCGIFFLAGS, &ask) < 0)
		goto none;
	one->entry.ifa_flags = (unsigned short)ask.ifr_flags;
	return one;
none:
	free(one);
	return NULL;
}

static struct ifaddrs *interfaces_ask(int fd)
{
	struct ifreq told[INTERFACES];
	struct ifconf conf = { .ifc_len = sizeof(told), .ifc_req = told };
	struct ifaddrs *all = NULL, **end = &all;

	if (ioctl(fd, SIOCGIFCONF, &conf) < 0)
		return NULL;
	for (size_t i = 0; i < (size_t)conf.ifc_len / sizeof(told[0]); i++) {
		struct interface *one = interface_ask(fd, &told[i]);

		if (!one)
			continue;
		*end = &one->entry;
		end = &one->entry.ifa_next;
	}
	return all;
}

int hd_interfaces(struct ifaddrs **all)
{
	int err, fd;

	if (!getifaddrs(all))
		return 0;
	err = errno;
	fd = hd_socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	*all = fd < 0 ? NULL : interfaces_ask(fd);
	if (fd >= 0)
		close(fd);
	errno = err;
	return *all ? 0 : -1;
}

void hd_interfaces_free(struct ifaddrs *all)
{
	struct ifaddrs *next;

	if (!all || all->ifa_data != &by_netdevice) {
		if (all)
			freeifaddrs(all);
		return;
	}
	for (; all; all = next) {
		next = all->ifa_next;
		free(all);
	}
}
