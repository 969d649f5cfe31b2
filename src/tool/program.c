/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
#include "tool/program.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

static int try_path(const char *path)
{
	struct stat st;

	if (stat(path, &st))
		return -errno;
	if (S_ISDIR(st.st_mode))
		return -EISDIR;
	return access(path, X_OK) ? -errno : 0;
}

int hd_program_find(const char *name, char *path, size_t size)
{
	const char *folders = getenv("PATH");
	int found = -ENOENT;

	if (!*name)
		return -ENOENT;
	if (strchr(name, '/')) {
		snprintf(path, size, "%s", name);
		return try_path(path);
	}
	for (folders = folders ? folders : "/bin:/usr/bin";; folders++) {
		int len = (int)strcspn(folders, ":");

		if (snprintf(path, size, "%.*s%s%s", len, folders, len ? "/" : "", name) < (int)size) {
			int rc = try_path(path);

			if (!rc)
				return 0;
			if (rc == -EACCES)
				found = rc;
		}
		folders += len;
		if (!*folders)
			break;
	}
	snprintf(path, size, "%s", name);
	return found;
}

static bool read_at(int fd, void *to, size_t size, uint64_t offset)
{
	return offset <= INT64_MAX && pread(fd, to, size, (off_t)offset) == (ssize_t)size;
}

static bool has_segment(int fd, const ElfW(Ehdr) * elf, uint32_t type)
{
	for (unsigned i = 0; i < elf->e_phnum; i++) {
		ElfW(Phdr) segment;

		if (!read_at(fd, &segment, sizeof(segment), elf->e_phoff + (uint64_t)i * elf->e_phentsize))
			return false;
		if (segment.p_type == type)
			return true;
	}
	return false;
}

/* The word size and machine of this very program. */
static bool same_machine(const ElfW(Ehdr) * elf)
{
	ElfW(Ehdr) own;
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return true;
	bool same = !read_at(fd, &own, sizeof(own), 0) ||
		    (own.e_ident[EI_CLASS] == elf->e_ident[EI_CLASS] && own.e_machine == elf->e_machine);
	close(fd);
	return same;
}

static enum hd_program_kind kind_of_elf(int fd)
{
	ElfW(Ehdr) elf;

	if (!read_at(fd, &elf, sizeof(elf), 0) || memcmp(elf.e_ident, ELFMAG, SELFMAG))
		return HD_PROGRAM_FITS;
	if (!same_machine(&elf))
		return HD_PROGRAM_FOREIGN;
	return has_segment(fd, &elf, PT_INTERP) ? HD_PROGRAM_FITS : HD_PROGRAM_STATIC;
}

/*
 * ld.so(8), secure-execution mode; root running root's set-uid program gains nothing,
 * so keeps its environment.
 */
static bool is_privileged(int fd)
{
	struct stat st;

	if (fstat(fd, &st))
		return false;
	if ((st.st_mode & S_ISUID) && st.st_uid != getuid())
		return true;
	if ((st.st_mode & S_ISGID) && (st.st_mode & S_IXGRP) && st.st_gid != getgid())
		return true;
	return getuid() != 0 && fgetxattr(fd, "security.capability", NULL, 0) > 0;
}

enum hd_program_kind hd_program_kind(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return HD_PROGRAM_FITS;
	enum hd_program_kind kind = is_privileged(fd) ? HD_PROGRAM_PRIVILEGED : kind_of_elf(fd);
	close(fd);
	return kind;
}

/* Of infiniband-diags, opensm, srptools and ibacm; and iproute2's. */
static const char *const by_datagrams[] = {
	"check_lft_balance",
	"dump_fts",
	"dump_lfts",
	"dump_mfts",
	"ib_acme",
	"ibacm",
	"ibaddr",
	"ibccconfig",
	"ibccquery",
	"ibdiagnet",
	"ibfindnodesusing",
	"ibhosts",
	"ibidsverify",
	"iblinkinfo",
	"ibnetdiscover",
	"ibnodes",
	"ibping",
	"ibportstate",
	"ibqueryerrors",
	"ibroute",
	"ibrouters",
	"ibsrpdm",
	"ibswitches",
	"ibsysstat",
	"ibtracert",
	"opensm",
	"osmtest",
	"perfquery",
	"saquery",
	"sminfo",
	"smpdump",
	"smpquery",
	"srp_daemon",
	"vendstat",
};

const char *hd_program_lack(const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;

	if (!strcmp(name, "rdma"))
		return "asks the kernel about devices (by netlink), which has none of Heddle's; see 'heddle info' and ibv_devinfo";
	for (size_t i = 0; i < sizeof(by_datagrams) / sizeof(by_datagrams[0]); i++)
		if (!strcmp(name, by_datagrams[i]))
			return "sends management datagrams, which Heddle's devices have not; see ibstat and ibv_devinfo";
	return NULL;
}

const char *hd_program_obstacle(enum hd_program_kind kind)
{
	switch (kind) {
	case HD_PROGRAM_STATIC:
		return "is statically linked, so it cannot load Heddle: link it with the shared libraries";
	case HD_PROGRAM_PRIVILEGED:
		return "runs with more rights than yours (set-uid, set-gid or file capabilities), so the system keeps it "
		       "from loading Heddle: run a copy without these rights";
	case HD_PROGRAM_FOREIGN:
		return "is built for another kind of machine, so it cannot load Heddle: build it for this one";
	case HD_PROGRAM_FITS:
		break;
	}
	return NULL;
}
