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

void ct_list_all(void)
{
	const struct ct_case *const *l, *cs;

	for (l = ct_lists; *l; l++)
		for (cs = *l; cs->row; cs++)
			printf("%s %s\n", cs->row, cs->name);
	exit(0);
}

static void run_or_not(const struct ct_all *all, const struct ct_conf *conf, const struct ct_case *cs,
		       struct ct_verdict *v)
{
	const char *why = all->not_for ? all->not_for(conf, cs) : NULL;

	if (!why) {
		ct_run(cs, conf, v);
		return;
	}
	v->kind = CT_UNSUPPORTED;
	snprintf(v->text, sizeof(v->text), "not for this type of endpoint: %s", why);
}

static int run_one(const struct ct_all *all, const struct ct_conf *conf, const struct ct_case *cs)
{
	static const char *const words[] = {
		[CT_PASS] = "pass", [CT_FAIL] = "fail", [CT_UNSUPPORTED] = "unsupported"
	};
	struct ct_verdict v;

	run_or_not(all, conf, cs, &v);
	if (all->strict && v.kind == CT_UNSUPPORTED)
		v.kind = CT_FAIL;
	printf("%s %s %s%s%s\n", cs->row, cs->name, words[v.kind], v.text[0] ? "  " : "", v.text);
	fflush(stdout);
	return v.kind;
}

static void run_those(const struct ct_all *all, const struct ct_conf *conf, bool set, int count[3])
{
	const struct ct_case *const *l, *cs;

	for (l = ct_lists; *l; l++)
		for (cs = *l; cs->row; cs++)
			if ((cs->setting != NULL) == set && (!all->only->n || picked(all->only, cs)) &&
			    !picked(all->leave_out, cs))
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
