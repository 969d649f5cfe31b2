/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Functions that are about no object: fork, sysfs, drivers, contexts of other processes. The real
 * library has its say where it is there.
 *
 * fork: ours needs no preparation. A child's objects answer with errors (hv_enter), and
 * the parent's memory is moved by the processor, which sees pages that are copied on
 * write as the program does.
 */
#include "front/verbs/entry.h"
#include "front/verbs/real.h"
#include "front/verbs/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

HV_PUBLIC int ibv_fork_init(void)
{
	return HV_REAL(ibv_fork_init) ? HV_REAL(ibv_fork_init)() : 0;
}

HV_PUBLIC enum ibv_fork_status ibv_is_fork_initialized(void)
{
	return HV_REAL(ibv_is_fork_initialized) ? HV_REAL(ibv_is_fork_initialized)() : IBV_FORK_UNNEEDED;
}

HV_PUBLIC int ibv_dontfork_range(void *base, size_t size)
{
	return HV_REAL(ibv_dontfork_range) ? HV_REAL(ibv_dontfork_range)(base, size) : 0;
}

HV_PUBLIC int ibv_dofork_range(void *base, size_t size)
{
	return HV_REAL(ibv_dofork_range) ? HV_REAL(ibv_dofork_range)(base, size) : 0;
}

HV_PUBLIC void ibv_register_driver(const char *name, void *init)
{
	if (HV_REAL(ibv_register_driver))
		HV_REAL(ibv_register_driver)(name, init);
}

/* ---- sysfs ----------------------------------------------------------------------------------- */

HV_PUBLIC const char *ibv_get_sysfs_path(void)
{
	const char *path = getuid() == geteuid() ? getenv("SYSFS_PATH") : NULL;

	hv_real_notice(__builtin_return_address(0)); /* the first thing that both libraries ask */
	return path && *path ? path : "/sys";
}

/* The length read, without the newline at its end; -1 with errno. */
HV_PUBLIC int ibv_read_sysfs_file(const char *dir, const char *file, char *buf, size_t size)
{
	char path[1024];
	ssize_t len;
	int fd;

	if (snprintf(path, sizeof(path), "%s/%s", dir, file) >= (int)sizeof(path)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	len = hv_file_read(path, buf, size);
	if (len == -ENOENT) { /* none of those that we stand for */
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			return -1;
		len = read(fd, buf, size);
		close(fd);
	}
	if (len < 0)
		return -1;
	if (len > 0 && buf[len - 1] == '\n')
		buf[--len] = '\0';
	else if ((size_t)len < size)
		buf[len] = '\0';
	else
		return -1; /* cut off */
	return (int)len;
}
