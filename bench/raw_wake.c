/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* raw-wake: what it takes to wake a process that sleeps in poll(2) on an eventfd, and to hear from
 * it. The structure is that of hd-bench --wake: pause, start the clock, wake, spin until the answer
 * is there, stop the clock. The answer is one store into shared memory. */
#include <errno.h>
#include <getopt.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "ctl.h"
#include "sample.h"

#define PAUSE_NS 2000000

static void sleeper(int fd, _Atomic uint64_t *answer, long n)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	uint64_t value;

	for (long i = 1; i <= n; i++) {
		while (poll(&p, 1, -1) < 0)
			if (errno != EINTR)
				hd_give_up("poll: %s", strerror(errno));
		if (read(fd, &value, sizeof(value)) != sizeof(value))
			hd_give_up("read: %s", strerror(errno));
		atomic_store_explicit(answer, (uint64_t)i, memory_order_release);
	}
}

static void waker(int fd, _Atomic uint64_t *answer, long n)
{
	struct timespec pause = { 0, PAUSE_NS };
	struct hd_samples us = { .n = 0 };
	uint64_t one = 1, start;

	for (long i = 1; i <= n; i++) {
		nanosleep(&pause, NULL);
		start = hd_now_ns();
		if (write(fd, &one, sizeof(one)) != sizeof(one))
			hd_give_up("write: %s", strerror(errno));
		while (atomic_load_explicit(answer, memory_order_acquire) != (uint64_t)i)
			hd_cpu_relax();
		hd_samples_add(&us, (double)(hd_now_ns() - start) / 1e3);
	}
	printf("test=wake provider=raw-wake mode=eventfd iters=%ld best_us=%.3f median_us=%.3f\n", n,
	       hd_samples_low(&us), hd_samples_median(&us));
}

int main(int argc, char **argv)
{
	_Atomic uint64_t *answer;
	int opt, fd, cpus[2] = { 0, 1 };
	long n = 200;
	pid_t child;

	while ((opt = getopt(argc, argv, "n:c:")) != -1) {
		switch (opt) {
		case 'n':
			n = hd_parse_long(optarg, 1, HD_SAMPLES_MAX, "wakes");
			break;
		case 'c':
			hd_parse_pair(optarg, cpus);
			break;
		default:
			fprintf(stderr, "usage: raw-wake [-n WAKES] [-c CPU,CPU]\n");
			return 2;
		}
	}
	fd = eventfd(0, EFD_CLOEXEC);
	answer = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (fd < 0 || answer == MAP_FAILED)
		hd_give_up("eventfd or mmap: %s", strerror(errno));
	child = hd_ctl_fork();
	hd_pin(cpus[child ? 0 : 1]);
	if (!child) {
		sleeper(fd, answer, n);
		return 0;
	}
	alarm(60); /* a lost wake must not hang the run */
	waker(fd, answer, n);
	hd_ctl_reap(child, "sleeping");
	return 0;
}
