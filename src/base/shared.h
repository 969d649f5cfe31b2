/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * A memfd that the processes of one user on one host have in common, by a name, without any of
 * them having to run. It lives as long as somebody has it open; nothing is left in a file
 * system, whatever happens.
 *
 *	/proc/net/unix          an abstract socket name for each that has it: kind, user, digest of
 *	                        the name, pid, descriptor, a random number
 *	/proc/PID/fd/FD         the way to the memfd through any of them; the kernel lets the same
 *	                        user in
 *
 * Anybody can make such names, and root is let in everywhere. So what a name leads to counts only
 * if it is a memfd, made by this user, and sealed. Since names end with a random number nobody can
 * keep others from making theirs. One of those who open a file at the same time has its turn, which
 * is told by names of the same sort; any thread.
 */
#ifndef HEDDLE_BASE_SHARED_H
#define HEDDLE_BASE_SHARED_H

#include <stdbool.h>
#include <sys/stat.h>

struct hd_shared_attr {
	const char *kind; /* of file: up to 15 letters and '-' */
	const char *name; /* which one; any text */
	bool read_only;	  /* it is opened for reading */
	bool must_exist, must_not_exist;
	int seals; /* F_SEAL_…, that it has to have */
	/*
	 * is_it: is that the right one? It is of this user, and has the seals. make: a new one,
	 * sealed, or a negative errno.
	 */
	bool (*is_it)(void *arg, int fd, const struct stat *st);
	int (*make)(void *arg);
	void *arg;
};

struct hd_shared {
	int fd;	     /* the memfd */
	int name_fd; /* the socket that has the name */
};
#define HD_SHARED_NONE ((struct hd_shared){ -1, -1 })

/*
 * hd_shared_open: find the file of this name or make it. 0; -EEXIST, -ENOENT: it exists or does
 * not, and must not or must; -EBUSY: another process has been about it for seconds; -EACCES: our
 * user namespace has no number for this user (base/realm.h); -EOPNOTSUPP: the kernel gives no files
 * in memory here; errors of the system. Blocks for a moment.
 * hd_shared_close: also of one that is not open.
 */
int hd_shared_open(const struct hd_shared_attr *attr, struct hd_shared *out);
void hd_shared_close(struct hd_shared *s);

#endif
