/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* ofi-conformance: options, the selection of cases, and the report. */
#include "connect.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

static const char usage[] =
	" -p PROVIDER [options]\n"
	"Runs cases on a libfabric provider's endpoints, each in processes of its own, and prints a\n"
	"line for each: ROW name pass|fail|unsupported  reason\n"
	"  -p PROVIDER  name for fi_getinfo, e.g. tcp;ofi_rxm\n"
	"  -e TYPE      of endpoints: rdm (the default), msg or dgram\n"
	"  -t ROW       only this row (M2), case (\"M2 boundaries\" or boundaries); may be repeated\n"
	"  -x ROW       leave these out: they count as not run; may be repeated\n"
	"  -k KIND    quick or slow: only those cases; 'make check' leaves out the slow ones\n"
	"  -n NODE      source address (default 127.0.0.1 where names are IP addresses); of the ranks in turn, when repeated\n"
	"  -N SPACE     network namespace, of ip-netns(8); of the ranks in turn, when repeated\n"
	"  -P PROGRESS  manual or auto data progress for cases that do not ask themselves\n"
	"  -H THREADS   safe, domain or completion threading\n"
	"  -T FACTOR    multiply every deadline\n"
	"  -s SEED      seed of the random cases\n"
	"  -S           strict: an unsupported case counts as failed\n"
	"  -l           list the cases\n"
	"Exit status: 0 all passed or unsupported, 1 a case failed, 2 nothing could be run.\n";

static void __attribute__((noreturn)) usage_error(void)
{
	fprintf(stderr, "usage: %s%s", ct_program, usage);
	exit(2);
}

/*
 * Is the provider there at all? Asked in a process of its own, as libfabric must
 * not start in the runner.
 */
static void probe(struct ct *ct)
{
	static const struct ct_want usual;
	struct fi_info *info, *hints = ct_hints(ct, &usual);
	int rc = ct_getinfo(ct, hints, &info);

	if (rc)
		ct_unsupported(ct, "fi_getinfo gives %d (%s)", rc, fi_strerror(-rc));
	if (ct_node(ct) && info->addr_format != FI_SOCKADDR_IN && info->addr_format != FI_SOCKADDR_IN6)
		ct_unsupported(ct, "its names are not IP addresses");
	fi_freeinfo(info);
	fi_freeinfo(hints);
}

/*
 * Loopback addresses where the provider takes IP addresses, else its own choice; tagged
 * messages where it has them.
 */
static void find_node(struct ct_conf *conf)
{
	static const struct ct_case cs = { .row = "probe", .name = "probe", .role = { probe } };
	static const uint64_t caps[] = { FI_MSG | FI_TAGGED, FI_MSG };
	const bool given = conf->node[0];
	size_t i, k, n = given ? 1 : 2;
	struct ct_verdict v;

	for (k = 0; k < CT_COUNT(caps); k++) {
		for (i = 0; i < n; i++) {
			conf->caps = caps[k];
			for (int r = 0; r < CT_PROCS && !given; r++)
				conf->node[r] = i ? NULL : "127.0.0.1";
			ct_run(&cs, conf, &v);
			if (v.kind == CT_PASS)
				return;
		}
	}
	fprintf(stderr, "%s: provider %s has no such endpoint with messages here: %s\n", ct_program,
		conf->provider, v.text);
	exit(2);
}

static enum fi_ep_type type_of(const char *s)
{
	if (!strcmp(s, "rdm"))
		return FI_EP_RDM;
	if (!strcmp(s, "msg"))
		return FI_EP_MSG;
	if (!strcmp(s, "dgram"))
		return FI_EP_DGRAM;
	usage_error();
}

static enum fi_progress progress_of(const char *s)
{
	if (!strcmp(s, "manual"))
		return FI_PROGRESS_MANUAL;
	if (!strcmp(s, "auto"))
		return FI_PROGRESS_AUTO;
	usage_error();
}

static enum fi_threading threading_of(const char *s)
{
	if (!strcmp(s, "safe"))
		return FI_THREAD_SAFE;
	if (!strcmp(s, "domain"))
		return FI_THREAD_DOMAIN;
	if (!strcmp(s, "completion"))
		return FI_THREAD_COMPLETION;
	usage_error();
}

/* One more of what the ranks have in turn. */
static void add_turn(const char **list, const char *what)
{
	int n = 0;

	while (n < CT_PROCS && list[n])
		n++;
	if (n == CT_PROCS)
		usage_error();
	list[n] = what;
}

static void fill_turns(const char **list)
{
	int n = 0;

	while (n < CT_PROCS && list[n])
		n++;
	for (int i = n; n && i < CT_PROCS; i++)
		list[i] = list[i % n];
}

static void parse(int argc, char **argv, struct ct_conf *conf, struct ct_picks *only, struct ct_picks * not,
		  struct ct_all *all)
{
	int c;

	while ((c = getopt(argc, argv, "p:e:t:x:k:n:N:P:H:T:s:Slh")) != -1) {
		switch (c) {
		case 'p':
			conf->provider = optarg;
			break;
		case 'e':
			conf->type = type_of(optarg);
			break;
		case 't':
			ct_pick(only, optarg);
			break;
		case 'x':
			ct_pick(not, optarg);
			break;
		case 'k':
			all->speed = ct_speed_of(optarg);
			break;
		case 'n':
			add_turn(conf->node, optarg);
			break;
		case 'N':
			add_turn(conf->space, optarg);
			break;
		case 'P':
			conf->progress = progress_of(optarg);
			break;
		case 'H':
			conf->threading = threading_of(optarg);
			break;
		case 'T':
			conf->scale = strtod(optarg, NULL);
			break;
		case 's':
			conf->seed = strtoull(optarg, NULL, 0);
			break;
		case 'S':
			all->strict = true;
			break;
		case 'l':
			ct_list_all(all->speed);
		case 'h':
			printf("usage: %s%s", ct_program, usage);
			exit(0);
		default:
			usage_error();
		}
	}
	fill_turns(conf->node);
	fill_turns(conf->space);
	if (!conf->provider || optind != argc || conf->scale <= 0)
		usage_error();
}

static bool not_for(const struct ct_conf *conf, const struct ct_case *cs)
{
	/* tagged cases, where there are no tagged messages */
	if (cs->row[0] == 'T' && isdigit((unsigned char)cs->row[1]) && !(conf->caps & FI_TAGGED))
		return true;
	return ct_not_for((enum fi_ep_type)conf->type, cs) != NULL;
}

/*
 * libfabric looks for its providers, and reads the kernel's symbols twice for what one of them
 * may want: most of a short case's time. Not where the cases are in other namespaces, whose
 * interfaces it has to see.
 */
static void load_providers(const struct ct_conf *conf)
{
	struct fi_info *hints, *none;

	if (conf->space[0])
		return;
	hints = fi_allocinfo();
	if (!hints)
		return;
	hints->fabric_attr->prov_name = strdup("no such provider");
	if (!fi_getinfo(CT_API, NULL, NULL, 0, hints, &none))
		fi_freeinfo(none);
	fi_freeinfo(hints);
}

int main(int argc, char **argv)
{
	struct ct_conf conf = { .type = FI_EP_RDM, .scale = 1, .seed = 20260101 };
	struct ct_picks only = { .n = 0 }, not = { .n = 0 };
	struct ct_all all = { .only = &only,
			      .leave_out = &not,
			      .not_for = not_for,
			      .warm = ct_loads_once ? load_providers : NULL };

	parse(argc, argv, &conf, &only, &not, &all);
	find_node(&conf);
	return ct_run_all(&all, &conf);
}
