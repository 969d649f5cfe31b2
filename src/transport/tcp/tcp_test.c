/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
#include "transport/suite.h"
#include "transport/tcp/tcp.h"

int main(void)
{
	static const struct suite suite = { .transport = &hd_tcp_transport,
					    .address = "127.0.0.1",
					    .outlives_fork = true };

	return suite_run(&suite);
}
