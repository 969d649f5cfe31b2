/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* For tests of waiting: when somebody has gone to sleep. */
#ifndef HD_TEST_ASLEEP_H
#define HD_TEST_ASLEEP_H

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

/* a thread that has not been switched to for so long sleeps, and is not merely held up */
#define ASLEEP_MS 5
/* who has not slept by then looks again and again, as some providers do */
#define ASLEEP_MOST_MS 200

/*
 * How often that thread, of this process or another, has given up its processor; -1: it does not
 * sleep now; -2: it is gone.
 */
static inline long asleep_switches(pid_t tid)
{
	char path[64], line[128], state = 0;
	long switches = -1;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)tid);
	f = fopen(path, "r");
	if (!f)
		return -2;
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "State: %c", &state) == 1 && state != 'S')
			break;
		if (sscanf(line, "voluntary_ctxt_switches: %ld", &switches) == 1)
			break;
	}
	fclose(f);
	return switches;
}

/*
 * let_sleep returns when that thread has slept for a moment on end; false: it has not in
 * ASLEEP_MOST_MS, or is gone.
 */
static inline bool let_sleep(pid_t tid)
{
	long was = -1;

	for (int ms = 0, since = 0; ms < ASLEEP_MOST_MS; ms++) {
		long now = asleep_switches(tid);

		if (now == -2)
			return false;
		if (now < 0 || now != was)
			since = ms;
		else if (ms - since >= ASLEEP_MS)
			return true;
		was = now;
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
	}
	return false;
}

/*
 * let_others_sleep: likewise, all other threads of this process: those that it has
 * started, and the engine's.
 */
static inline void let_others_sleep(void)
{
	DIR *tasks = opendir("/proc/self/task");
	const struct dirent *task;

	while (tasks && (task = readdir(tasks))) {
		int tid = atoi(task->d_name);

		if (tid > 0 && tid != gettid())
			let_sleep(tid);
	}
	if (tasks)
		closedir(tasks);
}

#endif
