/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * vt_child. Apart from the rows: the front's own header takes away macros through which programs
 * call, as ibv_query_port's.
 */
#include "vt.h"

#include <unistd.h>

#ifdef __SANITIZE_ADDRESS__
#include "front/verbs/verbs_front.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

static bool is_asleep(const char *thread)
{
	char path[300], state = 'R';
	FILE *stat;

	snprintf(path, sizeof(path), "/proc/self/task/%s/stat", thread);
	stat = fopen(path, "re");
	if (!stat)
		return true; /* it has ended */
	(void)!fscanf(stat, "%*d (%*[^)]) %c", &state);
	fclose(stat);
	return state == 'S';
}

static bool others_sleep(void)
{
	DIR *dir = opendir("/proc/self/task");
	struct dirent *e;
	bool all = true;

	while (dir && (e = readdir(dir)))
		if (e->d_name[0] != '.' && atoi(e->d_name) != gettid())
			all &= is_asleep(e->d_name);
	if (dir)
		closedir(dir);
	return all;
}
#endif

/*
 * The address sanitizer's allocator has locks that nobody sees to at a fork: a child hangs in
 * malloc when another thread held one, as each does while it begins. There the node's thread is
 * kept out of it for that moment, and whatever thread runs is waited for; elsewhere they may be
 * anywhere.
 */
pid_t vt_child(struct ct_ep *e)
{
#ifdef __SANITIZE_ADDRESS__
	struct hd_node *node = hv_context_of(e->context)->node;
	pid_t pid;

	hd_node_lock(node);
	while (!others_sleep())
		usleep(100);
	pid = fork();
	if (pid) /* the child's is a new one */
		hd_node_unlock(node);
	return pid;
#else
	(void)e;
	return fork();
#endif
}
