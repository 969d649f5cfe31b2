/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
#include <errno.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "sample.h"

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void sort(struct hd_samples *s)
{
	qsort(s->v, (size_t)s->n, sizeof(s->v[0]), compare);
}

void hd_samples_add(struct hd_samples *s, double value)
{
	if (s->n < HD_SAMPLES_MAX)
		s->v[s->n++] = value;
}

double hd_samples_low(struct hd_samples *s)
{
	sort(s);
	return s->v[0];
}

double hd_samples_high(struct hd_samples *s)
{
	sort(s);
	return s->v[s->n - 1];
}

double hd_samples_median(struct hd_samples *s)
{
	sort(s);
	return (s->v[(s->n - 1) / 2] + s->v[s->n / 2]) / 2;
}

void hd_pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET((size_t)cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		hd_give_up("cannot run on CPU %d: %s", cpu, strerror(errno));
}

void hd_give_up(const char *fmt, ...)
{
	va_list ap;

	fflush(stdout);
	fprintf(stderr, "%s: ", program_invocation_short_name);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	exit(1);
}

long hd_parse_long(const char *text, long low, long high, const char *what)
{
	char *end;
	long v;

	errno = 0;
	v = strtol(text, &end, 10);
	if (errno || end == text || *end || v < low || v > high)
		hd_give_up("%s: '%s' is not a number from %ld to %ld", what, text, low, high);
	return v;
}

int hd_parse_sizes(char *text, long low, long high, size_t *out, int most)
{
	int n = 0;

	for (char *word = strtok(text, ","); word && n < most; word = strtok(NULL, ","))
		out[n++] = (size_t)hd_parse_long(word, low, high, "size");
	return n;
}

void hd_parse_pair(const char *text, int out[2])
{
	char rest;

	if (sscanf(text, "%d,%d%c", &out[0], &out[1], &rest) != 2 || out[0] < 0 || out[1] < 0)
		hd_give_up("'%s' is not a pair of CPUs such as 0,1", text);
}

double hd_resident_kib(void)
{
	FILE *f = fopen("/proc/self/smaps_rollup", "re");
	char line[256];
	double kib = -1;

	if (!f)
		hd_give_up("no /proc/self/smaps_rollup");
	while (kib < 0 && fgets(line, sizeof(line), f))
		if (sscanf(line, "Rss: %lf kB", &kib) != 1)
			kib = -1;
	fclose(f);
	if (kib < 0)
		hd_give_up("/proc/self/smaps_rollup says nothing of Rss");
	return kib;
}
