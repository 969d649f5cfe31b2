/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* See proc.h, and proc(5). */
#include "base/proc.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define STATE 3 /* fields of a line of /proc/PID/stat */
#define BEGAN 22

bool hd_proc_stat(pid_t pid, char *state, uint64_t *born)
{
	char path[32], text[1024], *at;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	f = fopen(path, "re");
	if (!f)
		return false;
	text[fread(text, 1, sizeof(text) - 1, f)] = '\0';
	fclose(f);
	at = strrchr(text, ')'); /* its name, the second field, may have any character */
	if (!at || at[1] != ' ' || !at[2])
		return false;
	*state = at[2];
	at++;
	for (int field = STATE; field < BEGAN && at; field++)
		at = strchr(at + 1, ' ');
	if (!at)
		return false;
	*born = strtoull(at, NULL, 10);
	return true;
}

bool hd_proc_has(pid_t pid, uint64_t inode)
{
	char path[64], socket[40], to[64];
	bool has = false;
	struct dirent *e;
	DIR *dir;

	snprintf(socket, sizeof(socket), "socket:[%" PRIu64 "]", inode);
	if (pid == getpid()) /* which /proc may know by another number */
		snprintf(path, sizeof(path), "/proc/self/fd");
	else
		snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	dir = opendir(path);
	while (dir && !has && (e = readdir(dir))) {
		ssize_t n = readlinkat(dirfd(dir), e->d_name, to, sizeof(to) - 1);

		to[n > 0 ? n : 0] = '\0';
		has = !strcmp(to, socket);
	}
	if (dir)
		closedir(dir);
	return has;
}

pid_t hd_proc_of_socket(uint64_t inode)
{
	uint64_t born, first = UINT64_MAX;
	DIR *dir = opendir("/proc");
	pid_t pid, found = 0;
	struct dirent *e;
	struct stat st;
	char state;

	while (dir && (e = readdir(dir))) {
		pid = (pid_t)atoi(e->d_name);
		if (pid <= 0 || fstatat(dirfd(dir), e->d_name, &st, 0) < 0 || st.st_uid != geteuid() ||
		    !hd_proc_has(pid, inode) || !hd_proc_stat(pid, &state, &born) || born >= first)
			continue;
		found = pid;
		first = born;
	}
	if (dir)
		closedir(dir);
	return found;
}

pid_t hd_proc_of(const struct hd_holder *h)
{
	return h->pid > 0 ? h->pid : h->socket ? hd_proc_of_socket(h->socket) : 0;
}
