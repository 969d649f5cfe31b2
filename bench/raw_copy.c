/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * raw-copy: process_vm_writev(2) and process_vm_readv(2) and nothing else. What a call costs that
 * writes 8 bytes to a process which sleeps, or spins on them as programs do that wait for a write;
 * the two in a ping-pong; and how much a row of calls reads, or writes.
 *
 * The memory is aligned to pages and twice as large as what is copied, like that of perftest's
 * programs: how the kernel backs it with pages decides much of what a long copy costs.
 */
#include <getopt.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "ctl.h"
#include "sample.h"

#define SIZES_MAX 16
#define WORD 8 /* bytes of a short write */

struct raw {
	int ctl, cpus[2];
	pid_t other;
	long reps, rep_ms;
	size_t sizes[SIZES_MAX];
	int nsizes;
	/* of the size that is measured: where it is here, and in the other process */
	char *ours, *theirs;
};

enum word {
	WORD_SLEEP,
	WORD_SPIN,
	WORD_PINGPONG,
	WORD_MEMORY,
	WORD_END
};

struct order {
	enum word word;
	uint64_t n; /* the number to spin for; rounds; bytes */
};

/* ---- copying --------------------------------------------------------------------------------- */

static _Atomic uint64_t *flag_at(char *at)
{
	return (_Atomic uint64_t *)(void *)at;
}

static void copy(const struct raw *r, bool out, char *here, char *there, size_t len)
{
	struct iovec near = { here, len }, far = { there, len };
	ssize_t n = out ? process_vm_writev(r->other, &near, 1, &far, 1, 0)
			: process_vm_readv(r->other, &near, 1, &far, 1, 0);

	if (n != (ssize_t)len)
		hd_give_up("the kernel does not let one process copy from and to another here");
}

/* The second half of the memory is where numbers are written from. */
static void put_number(const struct raw *r, uint64_t number)
{
	char *from = r->ours + 4096;

	memcpy(from, &number, sizeof(number));
	copy(r, true, from, r->theirs, WORD);
}

static void await_number(const struct raw *r, uint64_t number)
{
	while (atomic_load_explicit(flag_at(r->ours), memory_order_acquire) != number)
		;
}

static void pingpong(const struct raw *r, uint64_t n, bool first)
{
	for (uint64_t i = 1; i <= n; i++) {
		if (first)
			put_number(r, i);
		await_number(r, i);
		if (!first)
			put_number(r, i);
	}
}

/* ---- the two processes ----------------------------------------------------------------------- */

static void memory_get(struct raw *r, size_t size)
{
	void *at;

	free(r->ours);
	if (posix_memalign(&at, 4096, 2 * size))
		hd_give_up("no memory");
	memset(at, 0, 2 * size);
	r->ours = at;
	hd_ctl_put(r->ctl, &r->ours, sizeof(r->ours));
	hd_ctl_get(r->ctl, &r->theirs, sizeof(r->theirs), NULL, NULL);
}

static void serve(struct raw *r)
{
	struct order o = { .word = WORD_SLEEP };
	char ready = 1;

	hd_pin(r->cpus[1]);
	while (o.word != WORD_END) {
		hd_ctl_get(r->ctl, &o, sizeof(o), NULL, NULL);
		if (o.word == WORD_MEMORY)
			memory_get(r, o.n);
		else if (r->ours)
			memset(r->ours, 0, WORD);
		hd_ctl_put(r->ctl, &ready, 1);
		if (o.word == WORD_SPIN)
			await_number(r, o.n);
		else if (o.word == WORD_PINGPONG)
			pingpong(r, o.n, false);
	}
}

static void say(struct raw *r, enum word word, uint64_t n)
{
	struct order o = { word, n };
	char ready;

	hd_ctl_put(r->ctl, &o, sizeof(o));
	if (word == WORD_MEMORY)
		memory_get(r, n);
	memset(r->ours, 0, WORD);
	hd_ctl_get(r->ctl, &ready, 1, NULL, NULL);
	usleep(2000); /* until it sleeps, or spins */
}

/* Nanoseconds of n calls. */
static double calls(const struct raw *r, bool out, size_t size, uint64_t n)
{
	uint64_t start = hd_now_ns();

	for (uint64_t i = 0; i < n; i++)
		copy(r, out, r->ours, r->theirs, size);
	return (double)(hd_now_ns() - start);
}

static uint64_t calibrate(const struct raw *r, bool out, size_t size)
{
	uint64_t n = 16;
	double ns;

	while ((ns = calls(r, out, size, n)) < (double)r->rep_ms * 1e6 / 8)
		n *= 4;
	return (uint64_t)((double)n * (double)r->rep_ms * 1e6 / ns) + 1;
}

static struct hd_samples repeat(const struct raw *r, bool out, size_t size)
{
	struct hd_samples ns = { .n = 0 };
	uint64_t n = calibrate(r, out, size);

	for (long i = 0; i < r->reps; i++)
		hd_samples_add(&ns, calls(r, out, size, n) / (double)n);
	return ns;
}

static void short_writes(struct raw *r)
{
	const uint64_t end = UINT64_MAX, rounds = (uint64_t)r->rep_ms * 1000;
	struct hd_samples ns;
	uint64_t start;

	say(r, WORD_SLEEP, 0);
	ns = repeat(r, true, WORD);
	printf("test=write target=asleep size=8 median_us=%.4f\n", hd_samples_median(&ns) / 1e3);
	say(r, WORD_SPIN, end);
	ns = repeat(r, true, WORD);
	printf("test=write target=spinning size=8 median_us=%.4f\n", hd_samples_median(&ns) / 1e3);
	put_number(r, end);
	ns.n = 0;
	for (long i = 0; i < r->reps; i++) {
		say(r, WORD_PINGPONG, rounds);
		start = hd_now_ns();
		pingpong(r, rounds, true);
		hd_samples_add(&ns, (double)(hd_now_ns() - start) / 2 / (double)rounds);
	}
	printf("test=pingpong size=8 median_us=%.4f\n", hd_samples_median(&ns) / 1e3);
}

static void bandwidth(struct raw *r, bool out, size_t size)
{
	struct hd_samples ns;

	say(r, WORD_MEMORY, size);
	ns = repeat(r, out, size);
	printf("test=%s size=%zu median_gb_s=%.3f\n", out ? "write" : "read", size,
	       (double)size / hd_samples_median(&ns));
}

static void measure(struct raw *r)
{
	hd_pin(r->cpus[0]);
	say(r, WORD_MEMORY, 4096);
	short_writes(r);
	for (int i = 0; i < r->nsizes; i++) {
		bandwidth(r, false, r->sizes[i]);
		bandwidth(r, true, r->sizes[i]);
	}
	say(r, WORD_END, 0);
}

static void parse(struct raw *r, int argc, char **argv)
{
	int opt;

	*r = (struct raw){ .cpus = { 0, 1 }, .reps = 3, .rep_ms = 40 };
	while ((opt = getopt(argc, argv, "c:r:T:s:")) != -1)
		switch (opt) {
		case 'c':
			hd_parse_pair(optarg, r->cpus);
			break;
		case 'r':
			r->reps = hd_parse_long(optarg, 1, HD_SAMPLES_MAX, "repetitions");
			break;
		case 'T':
			r->rep_ms = hd_parse_long(optarg, 1, 60000, "milliseconds");
			break;
		case 's':
			r->nsizes = hd_parse_sizes(optarg, WORD, 1 << 26, r->sizes, SIZES_MAX);
			break;
		default:
			hd_give_up(
				"usage: raw-copy [-c CPU,CPU] [-r REPETITIONS] [-T MILLISECONDS] [-s SIZES]");
		}
}

int main(int argc, char **argv)
{
	static struct raw r;
	pid_t child;
	int fd[2];

	parse(&r, argc, argv);
	hd_ctl_pair(fd);
	r.other = getpid();
	child = hd_ctl_fork();
	r.ctl = fd[child == 0];
	close(fd[child != 0]);
	if (!child) {
		serve(&r);
		return 0;
	}
	r.other = child;
	measure(&r);
	hd_ctl_reap(child, "target");
	return 0;
}
