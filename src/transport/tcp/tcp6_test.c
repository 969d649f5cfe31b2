/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
#include "transport/suite.h"
#include "transport/tcp/tcp.h"

#include <netinet/in.h>
#include <stdio.h>
#include <unistd.h>

static bool has_ipv6(void)
{
	const struct sockaddr_in6 in6 = { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	int fd = socket(AF_INET6, SOCK_STREAM, 0);
	bool yes = fd >= 0 && !bind(fd, (const struct sockaddr *)&in6, sizeof(in6));

	if (fd >= 0)
		close(fd);
	return yes;
}

int main(void)
{
	static const struct suite suite = { .transport = &hd_tcp_transport,
					    .address = "::1",
					    .outlives_fork = true };

	if (has_ipv6())
		return suite_run(&suite);
	puts("1..0 # SKIP give the loopback ::1: `sysctl net.ipv6.conf.lo.disable_ipv6=0`");
	return 0;
}
