/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* The command line of hd-bench. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "fi_bench.h"

#define MIN_DEPTH 1024
#define MAX_SIZE (64u << 20)

static const struct hd_bench defaults = {
	.open = { .tagged = true },
	.cpus = { 0, 1 },
	.reps = 5,
	.window = 64,
	.rep_ms = 50,
	.timeout = 30,
	.wakes = 200,
	.what = "start",
};

static const char usage_text[] =
	"usage: hd-bench -p PROVIDER [options]\n"
	"Measure a libfabric provider between two processes of this host, each pinned to one CPU.\n"
	"\n"
	"  -p, --provider NAME   provider, for example shm, \"tcp;ofi_rxm\" or heddle\n"
	"  -a, --address ADDR    local address to bind to (providers that use IP addresses)\n"
	"  -t, --test LIST       of lat, bw, rate, wake (default lat,bw,rate unless another test is asked for)\n"
	"  -s, --sizes LIST      bytes, such as 8,4k,1m; LOW-HIGH means all powers of two between (default 1-16m)\n"
	"  -r, --repeat N        repetitions; best and median are printed (default 5)\n"
	"  -T, --time MS         length of one repetition (default 50)\n"
	"  -w, --window N        messages in flight for bw and rate, 1 to 64 (default 64)\n"
	"      --ack N           messages between acknowledgements (default half the window; the window itself is OSU's)\n"
	"      --untagged        fi_send and fi_recv instead of fi_tsend and fi_trecv\n"
	"      --inject          fi_tinject or fi_inject where the size allows\n"
	"      --idle N          connect N more processes, which then sleep\n"
	"      --match N         match N posted receives and N waiting messages in the worst orders, against one\n"
	"      --rx-size N       receive queue size to ask the provider for (default: its own)\n"
	"      --wake[=N]        wake a server asleep in fi_cq_sread N times (default 200)\n"
	"      --sleep SECONDS   CPU time of a server asleep in fi_cq_sread\n"
	"      --cpus A,B        CPUs of the client and the server (default 0,1)\n"
	"      --timeout SECONDS give up when one measurement takes longer (default 30)\n"
	"  -h, --help            this text\n";

static size_t parse_size(const char *text)
{
	char *end;
	unsigned long long v;

	errno = 0;
	v = strtoull(text, &end, 10);
	if (end != text && (*end == 'k' || *end == 'm'))
		v <<= *end++ == 'k' ? 10 : 20;
	if (errno || end == text || *end || !v || v > MAX_SIZE)
		hd_give_up("'%s' is not a message size from 1 to 64m", text);
	return (size_t)v;
}

static void add_size(struct hd_bench *b, size_t size)
{
	if (b->nsizes == HD_SIZES_MAX)
		hd_give_up("more than %d sizes", HD_SIZES_MAX);
	b->sizes[b->nsizes++] = size;
}

static void parse_sizes(struct hd_bench *b, const char *list)
{
	char *copy = strdup(list), *save = NULL;

	if (!copy)
		hd_give_up("no memory");
	for (char *w = strtok_r(copy, ",", &save); w; w = strtok_r(NULL, ",", &save)) {
		char *dash = strchr(w, '-');

		if (dash)
			*dash = 0;
		for (size_t n = parse_size(w), high = dash ? parse_size(dash + 1) : n; n <= high; n *= 2)
			add_size(b, n);
	}
	free(copy);
}

static void parse_tests(struct hd_bench *b, const char *list)
{
	char *copy = strdup(list), *save = NULL;

	if (!copy)
		hd_give_up("no memory");
	for (char *w = strtok_r(copy, ",", &save); w; w = strtok_r(NULL, ",", &save)) {
		if (!strcmp(w, "lat"))
			b->lat = true;
		else if (!strcmp(w, "bw"))
			b->bw = true;
		else if (!strcmp(w, "rate"))
			b->rate = true;
		else if (!strcmp(w, "wake"))
			b->wake = true;
		else
			hd_give_up("'%s' is not a test: lat, bw, rate, wake", w);
	}
	free(copy);
}

enum {
	OPT_ACK = 256,
	OPT_UNTAGGED,
	OPT_INJECT,
	OPT_IDLE,
	OPT_MATCH,
	OPT_RX_SIZE,
	OPT_WAKE,
	OPT_SLEEP,
	OPT_CPUS,
	OPT_TIMEOUT
};

static const struct option long_options[] = {
	{ "provider", required_argument, NULL, 'p' },
	{ "address", required_argument, NULL, 'a' },
	{ "test", required_argument, NULL, 't' },
	{ "sizes", required_argument, NULL, 's' },
	{ "repeat", required_argument, NULL, 'r' },
	{ "time", required_argument, NULL, 'T' },
	{ "window", required_argument, NULL, 'w' },
	{ "ack", required_argument, NULL, OPT_ACK },
	{ "untagged", no_argument, NULL, OPT_UNTAGGED },
	{ "inject", no_argument, NULL, OPT_INJECT },
	{ "idle", required_argument, NULL, OPT_IDLE },
	{ "match", required_argument, NULL, OPT_MATCH },
	{ "rx-size", required_argument, NULL, OPT_RX_SIZE },
	{ "wake", optional_argument, NULL, OPT_WAKE },
	{ "sleep", required_argument, NULL, OPT_SLEEP },
	{ "cpus", required_argument, NULL, OPT_CPUS },
	{ "timeout", required_argument, NULL, OPT_TIMEOUT },
	{ "help", no_argument, NULL, 'h' },
	{ 0 },
};

static void parse_option(struct hd_bench *b, int opt)
{
	switch (opt) {
	case 'p':
		b->open.prov = optarg;
		break;
	case 'a':
		b->open.addr = optarg;
		break;
	case 't':
		parse_tests(b, optarg);
		break;
	case 's':
		parse_sizes(b, optarg);
		break;
	case 'r':
		b->reps = hd_parse_long(optarg, 1, 1000, "repetitions");
		break;
	case 'T':
		b->rep_ms = hd_parse_long(optarg, 1, 60000, "time");
		break;
	case 'w':
		b->window = hd_parse_long(optarg, 1, HD_SIDE_TX, "window");
		break;
	case OPT_ACK:
		b->ack = hd_parse_long(optarg, 1, HD_SIDE_TX, "ack");
		break;
	case OPT_UNTAGGED:
		b->open.tagged = false;
		break;
	case OPT_INJECT:
		b->open.inject = true;
		break;
	case OPT_IDLE:
		b->nidle = hd_parse_long(optarg, 0, HD_IDLE_MAX, "idle");
		break;
	case OPT_MATCH:
		b->match = hd_parse_long(optarg, 2, 100000000, "match");
		break;
	case OPT_RX_SIZE:
		b->open.rx_attr = (size_t)hd_parse_long(optarg, 1, 100000000, "rx-size");
		break;
	case OPT_WAKE:
		b->wake = true;
		b->wakes = optarg ? hd_parse_long(optarg, 1, HD_SAMPLES_MAX, "wake") : b->wakes;
		break;
	case OPT_SLEEP:
		b->sleep_s = hd_parse_long(optarg, 1, 3600, "sleep");
		break;
	case OPT_CPUS:
		hd_parse_pair(optarg, b->cpus);
		break;
	case OPT_TIMEOUT:
		b->timeout = hd_parse_long(optarg, 1, 3600, "timeout");
		break;
	case 'h':
		fputs(usage_text, stdout);
		exit(0);
	default:
		fputs(usage_text, stderr);
		exit(2);
	}
}

void hd_bench_parse(struct hd_bench *b, int argc, char **argv)
{
	size_t top = 4096;
	int opt;

	*b = defaults;
	while ((opt = getopt_long(argc, argv, "p:a:t:s:r:T:w:h", long_options, NULL)) != -1)
		parse_option(b, opt);
	if (optind != argc || !b->open.prov) {
		fputs(usage_text, stderr);
		exit(2);
	}
	if (!b->open.tagged && b->match)
		hd_give_up("the match test needs tags");
	if (!b->lat && !b->bw && !b->rate && !b->match && !b->wake && !b->sleep_s)
		b->lat = b->bw = b->rate = true;
	if (!b->nsizes)
		parse_sizes(b, "1-16m");
	for (int i = 0; i < b->nsizes && (b->lat || b->bw); i++)
		top = b->sizes[i] > top ? b->sizes[i] : top;
	b->open.rx_depth = (b->match > MIN_DEPTH ? (size_t)b->match : MIN_DEPTH) + 1;
	b->open.buf_size = b->open.rx_depth * 8 > top ? b->open.rx_depth * 8 : top;
}
