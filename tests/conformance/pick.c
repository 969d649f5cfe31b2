/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Which cases run, and the report. */
#include "case.h"

#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

void ct_pick(struct ct_picks *p, const char *name)
{
	if (p->n == CT_PICKS) {
		fprintf(stderr, "%s: more than %d selections\n", ct_program, CT_PICKS);
		exit(2);
	}
	p->name[p->n++] = name;
}

static bool picked(const struct ct_picks *p, const struct ct_case *cs)
{
	char full[128];
	int i;

	snprintf(full, sizeof(full), "%s %s", cs->row, cs->name);
	for (i = 0; i < p->n; i++)
		if (!strcasecmp(p->name[i], cs->row) || !strcasecmp(p->name[i], cs->name) ||
		    !strcasecmp(p->name[i], full))
			return true;
	return false;
}

enum ct_speed ct_speed_of(const char *word)
{
	if (!strcasecmp(word, "quick"))
		return CT_QUICK;
	if (!strcasecmp(word, "slow"))
		return CT_SLOW;
	fprintf(stderr, "%s: cases are quick or slow, not %s\n", ct_program, word);
	exit(2);
}

static bool has_speed(const struct ct_case *cs, enum ct_speed speed)
{
	return speed == CT_ANY || cs->slow == (speed == CT_SLOW);
}

void ct_list_all(enum ct_speed speed)
{
	const struct ct_case *const *l, *cs;

	for (l = ct_lists; *l; l++)
		for (cs = *l; cs->row; cs++)
			if (has_speed(cs, speed))
				printf("%s %s\n", cs->row, cs->name);
	exit(0);
}

static int run_one(const struct ct_all *all, const struct ct_conf *conf, const struct ct_case *cs)
{
	static const char *const words[] = {
		[CT_PASS] = "pass", [CT_FAIL] = "fail", [CT_UNSUPPORTED] = "unsupported"
	};
	struct ct_verdict v;

	ct_run(cs, conf, &v);
	if (all->strict && v.kind == CT_UNSUPPORTED)
		v.kind = CT_FAIL;
	printf("%s %s %s%s%s\n", cs->row, cs->name, words[v.kind], v.text[0] ? "  " : "", v.text);
	fflush(stdout);
	return v.kind;
}

static bool is_wanted(const struct ct_all *all, const struct ct_conf *conf, const struct ct_case *cs)
{
	if ((all->only->n && !picked(all->only, cs)) || picked(all->leave_out, cs) ||
	    !has_speed(cs, all->speed))
		return false;
	return !all->not_for || !all->not_for(conf, cs);
}

static void run_those(const struct ct_all *all, const struct ct_conf *conf, bool set, int count[3])
{
	const struct ct_case *const *l, *cs;

	for (l = ct_lists; *l; l++)
		for (cs = *l; cs->row; cs++)
			if ((cs->setting != NULL) == set && is_wanted(all, conf, cs))
				count[run_one(all, conf, cs) - CT_PASS]++;
}

int ct_run_all(const struct ct_all *all, const struct ct_conf *conf)
{
	int count[3] = { 0 };

	run_those(all, conf, true, count);
	if (all->warm)
		all->warm(conf);
	run_those(all, conf, false, count);
	printf("%d passed, %d failed, %d unsupported\n", count[0], count[1], count[2]);
	if (!(count[0] + count[1] + count[2])) {
		fprintf(stderr, "%s: no such case\n", ct_program);
		return 2;
	}
	return count[1] ? 1 : 0;
}
