/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * without CALL[,CALL…] ERROR PROGRAM ARGUMENT…: runs a program to which the kernel refuses these
 * system calls, with EPERM or ENOSYS, as a container's filter does; also in what it runs itself.
 * `netlink` stands for sockets of that family. A call that this host's kernel, or its libseccomp,
 * does not know is left out. Exit status 77: there are no filters here.
 */
#include <errno.h>
#include <seccomp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define NO_FILTERS 77

static int refuse(scmp_filter_ctx filter, char *calls, uint32_t error)
{
	char *rest = NULL;
	int rc = 0;

	for (char *call = strtok_r(calls, ",", &rest); call && !rc; call = strtok_r(NULL, ",", &rest)) {
		int number = seccomp_syscall_resolve_name(call);

		if (!strcmp(call, "netlink"))
			rc = seccomp_rule_add(filter, SCMP_ACT_ERRNO(error), SCMP_SYS(socket), 1,
					      SCMP_A0(SCMP_CMP_EQ, AF_NETLINK));
		else if (number != __NR_SCMP_ERROR)
			rc = seccomp_rule_add(filter, SCMP_ACT_ERRNO(error), number, 0);
	}
	return rc;
}

int main(int argc, char **argv)
{
	scmp_filter_ctx filter;

	if (argc < 4 || (strcmp(argv[2], "EPERM") && strcmp(argv[2], "ENOSYS"))) {
		fputs("usage: without CALL[,CALL...] EPERM|ENOSYS PROGRAM [ARGUMENT...]\n", stderr);
		return 2;
	}
	filter = seccomp_init(SCMP_ACT_ALLOW);
	if (!filter || refuse(filter, argv[1], strcmp(argv[2], "EPERM") ? ENOSYS : EPERM) ||
	    seccomp_load(filter))
		return NO_FILTERS;
	seccomp_release(filter);
	execvp(argv[3], argv + 3);
	fprintf(stderr, "without: %s: %s\n", argv[3], strerror(errno));
	return 127;
}
