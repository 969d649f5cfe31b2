/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * hd-paths: carry out one named operation again and again, for callgrind(1) to count its
 * instructions; bench/instructions drives it. Time hardly matters to what is counted, so a busy
 * machine does not either. What a processor takes for an instruction is another matter, which
 * bench/run measures.
 *
 * Only the interfaces of programs are used: what is counted is the front, the engine and the
 * transport together, and the program runs with any build, before and after a change.
 */
#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <valgrind/callgrind.h>

#include "paths.h"
#include "sample.h"

#define WARM_UP 1000 /* batches */
#define BATCHES 100  /* of one count */
#define COUNTS 10
#define PAUSE_US 200

/*
 * Threads of the libraries see whether the program still polls, by the clock. Under callgrind that
 * looks as if it had gone: they wait so many times longer here. Both functions are called in place
 * of the C library's, by the libraries too.
 */
#define SLOWER 100

int poll(struct pollfd *fds, nfds_t count, int ms)
{
	int64_t ns = (int64_t)ms * 1000000 * SLOWER;
	struct timespec t = { .tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000 };

	return (int)syscall(SYS_ppoll, fds, count, ms < 0 ? NULL : &t, NULL, 0);
}

int pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex, const struct timespec *end)
{
	int (*real)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);
	uint64_t now = hd_now_ns(), then = (uint64_t)end->tv_sec * 1000000000 + (uint64_t)end->tv_nsec;
	struct timespec later;

	then = now + (then > now ? then - now : 0) * SLOWER;
	later = (struct timespec){ .tv_sec = (time_t)(then / 1000000000),
				   .tv_nsec = (long)(then % 1000000000) };
	*(void **)&real = dlsym(RTLD_NEXT, "pthread_cond_timedwait");
	return real ? real(cond, mutex, &later) : ENOSYS;
}

void paths_pause(void)
{
	CALLGRIND_TOGGLE_COLLECT;
	usleep(PAUSE_US);
	CALLGRIND_TOGGLE_COLLECT;
}

static const struct path *find(const char *name)
{
	const struct path *const all[] = { fi_paths, verbs_paths };

	for (int i = 0; i < 2; i++)
		for (const struct path *p = all[i]; p->name; p++)
			if (!strcmp(p->name, name))
				return p;
	hd_give_up("no such path: %s", name);
}

static void list(void)
{
	for (const struct path *p = fi_paths; p->name; p++)
		printf("%s\n", p->name);
	for (const struct path *p = verbs_paths; p->name; p++)
		printf("%s\n", p->name);
}

static void run(const struct path *p, int count)
{
	for (int i = 0; i < count; i++)
		p->batch();
}

int main(int argc, char **argv)
{
	const struct path *p;

	if (argc != 2) {
		list();
		return 0;
	}
	p = find(argv[1]);
	p->open();
	run(p, WARM_UP);
	for (int i = 0; i < COUNTS; i++) {
		CALLGRIND_START_INSTRUMENTATION;
		run(p, BATCHES);
		CALLGRIND_STOP_INSTRUMENTATION;
		CALLGRIND_DUMP_STATS_AT("path");
	}
	printf("path=%s operations=%d\n", p->name, BATCHES * BATCH);
	return 0;
}
