/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * The common suite where the kernel grants nothing that can be done without: senders fence,
 * nothing is copied directly.
 */
#include "forbid.h"
#include "transport/shm/shm.h"
#include "transport/suite.h"

#include <errno.h>
#include <stdio.h>
#include <sys/syscall.h>

int main(void)
{
	static const struct suite suite = { .transport = &hd_shm_transport, .outlives_fork = true };
	static const struct {
		int call, error;
	} calls[] = {
		{ SYS_membarrier, ENOSYS },
		{ SYS_pidfd_open, ENOSYS },
		{ SYS_process_vm_readv, EPERM },
		{ SYS_process_vm_writev, EPERM },
	};

	for (unsigned i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		if (!forbid(calls[i].call, calls[i].error)) {
			puts("1..0 # SKIP " FORBID_NEEDS);
			return 0;
		}
	return suite_run(&suite);
}
