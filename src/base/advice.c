/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
#include "base/advice.h"

#include <errno.h>

const char *hd_advice(int error)
{
	switch (error) {
	case EMFILE:
		return ": raise the limit of open files (ulimit -n, LimitNOFILE)";
	case ENFILE:
		return ": raise sysctl fs.file-max";
	case ENOMEM:
		return ": give this process more memory (ulimit -v, the limit of its container)";
	case EPERM:
	case ENOSYS:
		return ": let the filter of system calls (seccomp) of its container or service allow that";
	case ENOSPC:
		return ": make room there";
	default:
		return "";
	}
}
