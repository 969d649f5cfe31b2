/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* raw-line: what one cache line takes between two CPUs, there and back, halved; the best of short
 * runs. Where the CPUs share a cache it is some 60 to 90 ns, where they do not 200 and more, and a
 * hypervisor moves them between the two. */
#include <getopt.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "ctl.h"
#include "sample.h"

#define TRIPS 2000L
#define RUNS 5

struct lines {
	_Alignas(128) _Atomic long there;
	_Alignas(128) _Atomic long back;
};

static void answer(struct lines *l)
{
	for (long i = 1; i <= TRIPS * RUNS; i++) {
		while (atomic_load_explicit(&l->there, memory_order_acquire) != i)
			hd_cpu_relax();
		atomic_store_explicit(&l->back, i, memory_order_release);
	}
}

static double ask(struct lines *l, long from)
{
	uint64_t start = hd_now_ns();

	for (long i = from + 1; i <= from + TRIPS; i++) {
		atomic_store_explicit(&l->there, i, memory_order_release);
		while (atomic_load_explicit(&l->back, memory_order_acquire) != i)
			hd_cpu_relax();
	}
	return (double)(hd_now_ns() - start) / (2.0 * TRIPS);
}

int main(int argc, char **argv)
{
	struct hd_samples ns = { .n = 0 };
	int opt, cpus[2] = { 0, 1 };
	struct lines *l;
	pid_t child;

	while ((opt = getopt(argc, argv, "c:")) != -1) {
		if (opt != 'c') {
			fprintf(stderr, "usage: raw-line [-c CPU,CPU]\n");
			return 2;
		}
		hd_parse_pair(optarg, cpus);
	}
	l = mmap(NULL, sizeof(*l), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (l == MAP_FAILED)
		hd_give_up("no memory to share");
	child = hd_ctl_fork();
	hd_pin(cpus[child ? 0 : 1]);
	if (!child) {
		answer(l);
		return 0;
	}
	alarm(20);
	for (int run = 0; run < RUNS; run++)
		hd_samples_add(&ns, ask(l, run * TRIPS));
	hd_ctl_reap(child, "answering");
	printf("test=line provider=raw-line mode=line iters=%ld best_ns=%.1f median_ns=%.1f\n", TRIPS * RUNS,
	       hd_samples_low(&ns), hd_samples_median(&ns));
	return 0;
}
