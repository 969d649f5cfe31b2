/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* What the cases of heddle-e2e have in common, and the table of them. */
#include "e2e.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

extern const struct ct_case e2e_kill[], e2e_refuse[], e2e_flood[], e2e_outside[];

const char ct_program[] = "heddle-e2e";
const bool ct_loads_once = false; /* e2e_set */

const struct ct_case *const ct_lists[] = { e2e_kill, e2e_refuse, e2e_flood, e2e_outside, NULL };

void e2e_set(struct ct *ct, const char *name, const char *value)
{
	if (setenv(name, value, 1))
		ct_fail(ct, "cannot set %s", name);
}

bool e2e_forced(const char *transport)
{
	const char *now = getenv("HEDDLE_TRANSPORT");

	return now && !strcmp(now, transport);
}

int e2e_port(int n)
{
	return ct_port((unsigned)n);
}

void e2e_ports(struct ct *ct, int n, int count)
{
	char range[32];

	snprintf(range, sizeof(range), "%d-%d", e2e_port(n), e2e_port(n + count - 1));
	e2e_set(ct, "HEDDLE_PORTS", range);
}

static void heddle_info(struct ct *ct, struct ct_ep *e, char *text, size_t room)
{
	const char *program = getenv("HEDDLE"), *path = getenv("FI_PROVIDER_PATH");
	char command[512];
	size_t n = 0, got;
	FILE *f;

	/* The search path may have several folders; Heddle's is the last. */
	if (path && strrchr(path, ':'))
		path = strrchr(path, ':') + 1;
	if (program)
		snprintf(command, sizeof(command), "'%s' info --json", program);
	else
		snprintf(command, sizeof(command), "'%s/heddle' info --json", path ? path : ".");
	/*
	 * Whoever is asked answers by its own progress, so none is needed from
	 * here; keep the links moving.
	 */
	ct_progress(e);
	f = popen(command, "r");
	if (!f)
		ct_fail(ct, "cannot run %s", command);
	while (n < room - 1 && (got = fread(text + n, 1, room - 1 - n, f)) > 0)
		n += got;
	text[n] = 0;
	if (pclose(f))
		ct_fail(ct, "%s failed", command);
}

/*
 * Cuts the node of this process out of the text: what is between its number and the next one. The
 * process may have the node of a verbs device as well, before or behind it.
 */
static char *own_node(char *text)
{
	char what[32], *at = text, *end, kept;

	snprintf(what, sizeof(what), "\"pid\": %d,", getpid());
	while ((at = strstr(at, what))) {
		end = strstr(at + 1, "\"pid\":");
		kept = end ? *end : 0;
		if (end)
			*end = 0;
		if (strstr(at, "\"interface\": \"libfabric\""))
			return at;
		if (!end)
			break;
		*end = kept;
		at = end;
	}
	return NULL;
}

void e2e_link(struct ct *ct, struct ct_ep *e, char *text, size_t room)
{
	static char all[1 << 20];
	double end = ct_deadline(ct);
	char *node, *link, *second;

	for (;;) {
		heddle_info(ct, e, all, sizeof(all));
		node = own_node(all);
		link = node ? strstr(node, "\"transport\"") : NULL;
		if (link)
			break;
		ct_late(ct, end, "heddle info to show the link");
		ct_idle(e, 50);
	}
	second = strstr(link + 1, "\"transport\"");
	if (second)
		ct_fail(ct, "there are two links: %s", link);
	snprintf(text, room, "%s", link);
}

void e2e_over(struct ct *ct, struct ct_ep *e, const char *transport)
{
	char text[4096], what[64];

	e2e_link(ct, e, text, sizeof(text));
	snprintf(what, sizeof(what), "\"transport\": \"%s\"", transport);
	if (!strstr(text, what))
		ct_fail(ct, "the link is not over %s: %s", transport, text);
}

void e2e_exchange(struct ct *ct, struct ct_ep *e, int rank, size_t len, uint64_t seed)
{
	char *out = ct_alloc(ct, len), *in = ct_alloc(ct, len);

	ct_fill(out, len, 2 * seed + (ct->rank < rank));
	ct_trecv(e, in, len, seed, 0, CTX(0xe1));
	ct_tsend(e, rank, out, len, seed, CTX(0xe2));
	CT_EQ(ct, ct_done(e, CTX(0xe1)), len);
	ct_verify(ct, in, len, 2 * seed + (ct->rank > rank), "exchange");
	ct_done(e, CTX(0xe2));
	free(in);
	free(out);
}

size_t e2e_rss(struct ct *ct)
{
	char line[256];
	size_t kb = 0;
	FILE *f = fopen("/proc/self/status", "r");

	if (!f)
		ct_fail(ct, "cannot read /proc/self/status");
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "VmRSS: %zu kB", &kb) == 1)
			break;
	fclose(f);
	CT_TRUE(ct, kb > 0);
	return kb << 10;
}

int e2e_fds(struct ct *ct)
{
	DIR *d = opendir("/proc/self/fd");
	int n = 0;

	if (!d)
		ct_fail(ct, "cannot read /proc/self/fd");
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

int e2e_shm_files(struct ct *ct)
{
	DIR *d = opendir("/dev/shm");
	struct dirent *entry;
	int n = 0;

	if (!d)
		ct_fail(ct, "cannot read /dev/shm");
	/*
	 * Other programs of this machine may use it as well: only names that speak of Heddle count.
	 */
	while ((entry = readdir(d)))
		n += strcasestr(entry->d_name, "heddle") != NULL || strncmp(entry->d_name, "hd", 2) == 0;
	closedir(d);
	return n;
}
