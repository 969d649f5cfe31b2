/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * e2e-peer: one end of a conversation over libfabric, for scripts that put the two ends
 * into unusual circumstances.
 *
 *	e2e-peer serve [options]            prints "address IP PORT", takes messages until a client
 *	                                    says goodbye
 *	e2e-peer call IP PORT [options]     sends COUNT messages of SIZE bytes, waits for the
 *	                                    answer, prints "done"
 *
 * The content of each message depends on its number, and is checked; the answer carries how many
 * came and were right. Prints lines of "key value" and exits with 0 when all was well, 1 when
 * something was wrong, 3 when the other end could not be reached or was lost (after "error TEXT").
 */
#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <netinet/in.h>
#include <seccomp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>

enum {
	TAG_DATA = 1,
	TAG_GOODBYE = 2,
	TAG_ANSWER = 3,
	TAG_NAME = 4
};

struct options {
	bool serve;
	const char *ip;
	int port;
	uint64_t count;
	size_t size;
	int delay_ms;	 /* serve: make progress, but post nothing for so long */
	bool forbid;	 /* refuse process_vm_readv and writev from the start */
	bool forbid_mid; /* … when half of the messages have gone */
	bool alarms;	 /* a signal every millisecond */
	bool hold;	 /* call: after the answer, wait for standard input to end */
	bool both;	 /* serve: send as much back at the same time */
};

struct peer {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_cq *cq;
	struct fid_av *av;
	struct fid_ep *ep;
	fi_addr_t to;
	uint64_t refused;	 /* -FI_EAGAIN answers of sends */
	uint64_t sent, received; /* completions */
};

static _Noreturn __attribute__((format(printf, 2, 3))) void die(int status, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	printf("error ");
	vprintf(fmt, args);
	printf("\n");
	va_end(args);
	fflush(stdout);
	_exit(status);
}

static void need(int rc, const char *what)
{
	if (rc)
		die(3, "%s: %s", what, fi_strerror(-rc));
}

/* ---- circumstances --------------------------------------------------------------------------- */

static void forbid_direct_copies(void)
{
	scmp_filter_ctx f = seccomp_init(SCMP_ACT_ALLOW);

	if (!f || seccomp_rule_add(f, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(process_vm_readv), 0) ||
	    seccomp_rule_add(f, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(process_vm_writev), 0) || seccomp_load(f))
		die(1, "seccomp filter cannot be loaded");
	seccomp_release(f);
}

static void on_alarm(int sig)
{
	(void)sig;
}

static void start_alarms(void)
{
	struct sigaction sa = { .sa_handler = on_alarm }; /* no SA_RESTART: calls are interrupted */
	struct itimerval every = { { 0, 1000 }, { 0, 1000 } };

	sigaction(SIGALRM, &sa, NULL);
	setitimer(ITIMER_REAL, &every, NULL);
}

static uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * UINT64_C(1000) + t.tv_nsec / 1000000;
}

/* ---- libfabric ------------------------------------------------------------------------------- */

static void peer_open(struct peer *p)
{
	struct fi_info *hints = fi_allocinfo();
	struct fi_cq_attr cq = { .format = FI_CQ_FORMAT_TAGGED, .wait_obj = FI_WAIT_UNSPEC, .size = 4096 };
	struct fi_av_attr av = { .type = FI_AV_UNSPEC };

	memset(p, 0, sizeof(*p));
	hints->ep_attr->type = FI_EP_RDM;
	hints->caps = FI_TAGGED;
	hints->mode = FI_CONTEXT | FI_CONTEXT2;
	hints->addr_format = FI_SOCKADDR_IN;
	hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_ALLOCATED | FI_MR_VIRT_ADDR | FI_MR_PROV_KEY;
	hints->domain_attr->threading = FI_THREAD_DOMAIN;
	need(fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &p->info), "fi_getinfo");
	fi_freeinfo(hints);
	need(fi_fabric(p->info->fabric_attr, &p->fabric, NULL), "fi_fabric");
	need(fi_domain(p->fabric, p->info, &p->domain, NULL), "fi_domain");
	need(fi_cq_open(p->domain, &cq, &p->cq, NULL), "fi_cq_open");
	need(fi_av_open(p->domain, &av, &p->av, NULL), "fi_av_open");
	need(fi_endpoint(p->domain, p->info, &p->ep, NULL), "fi_endpoint");
	need(fi_ep_bind(p->ep, &p->cq->fid, FI_TRANSMIT | FI_RECV), "fi_ep_bind");
	need(fi_ep_bind(p->ep, &p->av->fid, 0), "fi_ep_bind");
	need(fi_enable(p->ep), "fi_enable");
}

static void peer_close(struct peer *p)
{
	need(fi_close(&p->ep->fid), "fi_close");
	need(fi_close(&p->cq->fid), "fi_close");
	need(fi_close(&p->av->fid), "fi_close");
	need(fi_close(&p->domain->fid), "fi_close");
	need(fi_close(&p->fabric->fid), "fi_close");
	fi_freeinfo(p->info);
}

/* Take one completion if there is one; an error ends the program. */
static bool progress(struct peer *p)
{
	struct fi_cq_tagged_entry e;
	ssize_t n = fi_cq_read(p->cq, &e, 1);

	if (n == 1) {
		p->sent += !!(e.flags & FI_SEND);
		p->received += !!(e.flags & FI_RECV);
		return true;
	}
	if (n == -FI_EAVAIL) {
		struct fi_cq_err_entry err = { 0 };

		fi_cq_readerr(p->cq, &err, 0);
		die(3, "%s", fi_strerror(err.err));
	}
	if (n != -FI_EAGAIN)
		die(1, "fi_cq_read: %s", fi_strerror((int)-n));
	return false;
}

static void push(struct peer *p, const void *buf, size_t len, uint64_t tag, struct fi_context2 *ctx)
{
	for (;;) {
		ssize_t rc = fi_tsend(p->ep, buf, len, NULL, p->to, tag, ctx);

		if (!rc)
			return;
		if (rc != -FI_EAGAIN)
			die(3, "fi_tsend: %s", fi_strerror((int)-rc));
		p->refused++;
		progress(p);
	}
}

static void post(struct peer *p, void *buf, size_t len, uint64_t tag, struct fi_context2 *ctx)
{
	ssize_t rc;

	while ((rc = fi_trecv(p->ep, buf, len, NULL, FI_ADDR_UNSPEC, tag, 0, ctx)) == -FI_EAGAIN)
		progress(p);
	if (rc)
		die(1, "fi_trecv: %s", fi_strerror((int)-rc));
}

static void wait_received(struct peer *p, uint64_t until)
{
	while (p->received < until)
		if (!progress(p))
			usleep(0);
}

/* ---- content --------------------------------------------------------------------------------- */

static uint8_t byte_of(uint64_t number, size_t at)
{
	return (uint8_t)(number * 131 + at * 7 + (at >> 9));
}

static void fill(uint8_t *buf, size_t size, uint64_t number)
{
	for (size_t i = 0; i < size; i++)
		buf[i] = byte_of(number, i);
}

static bool right(const uint8_t *buf, size_t size, uint64_t number)
{
	for (size_t i = 0; i < size; i++)
		if (buf[i] != byte_of(number, i))
			return false;
	return true;
}

/* ---- the two ends ---------------------------------------------------------------------------- */

struct order { /* what the caller tells first */
	uint64_t count, size;
	struct sockaddr_in name;
};

static void insert(struct peer *p, const struct sockaddr_in *name)
{
	if (fi_av_insert(p->av, name, 1, &p->to, 0, NULL) != 1)
		die(1, "fi_av_insert refuses the address");
}

static void report(const struct peer *p)
{
	struct rusage ru;

	getrusage(RUSAGE_SELF, &ru);
	printf("refused %llu\nrss_kib %ld\n", (unsigned long long)p->refused, ru.ru_maxrss);
}

static volatile sig_atomic_t enough;

static void on_enough(int sig)
{
	enough = sig;
}

/* SIGUSR1 ends it. */
static void idle(struct peer *p, int ms)
{
	for (uint64_t end = now_ms() + ms; now_ms() < end && !enough;)
		if (!progress(p))
			usleep(100);
}

static uint64_t take_all(struct peer *p, const struct order *o, bool forbid_mid)
{
	uint8_t *buf = calloc(1, o->size + 1);
	struct fi_context2 ctx;
	uint64_t good = 0;

	for (uint64_t i = 0; i < o->count; i++) {
		uint64_t before = p->received;

		if (forbid_mid && i == o->count / 2)
			forbid_direct_copies();
		memset(buf, 0, o->size);
		post(p, buf, o->size, TAG_DATA, &ctx);
		wait_received(p, before + 1);
		good += right(buf, o->size, i);
	}
	free(buf);
	return good;
}

static void send_all(struct peer *p, const struct order *o, bool forbid_mid)
{
	uint8_t *buf = calloc(16, o->size + 1);
	struct fi_context2 ctx[16];

	for (uint64_t i = 0; i < o->count; i++) {
		uint8_t *at = buf + (i % 16) * o->size;

		if (forbid_mid && i == o->count / 2)
			forbid_direct_copies();
		while (p->sent + 16 <= i)
			progress(p);
		fill(at, o->size, i);
		push(p, at, o->size, TAG_DATA, &ctx[i % 16]);
	}
	while (p->sent < o->count)
		progress(p);
	free(buf);
}

static int serve(struct peer *p, const struct options *opt)
{
	struct order order = { 0 };
	struct sockaddr_in name;
	struct fi_context2 ctx;
	size_t len = sizeof(name);
	char text[INET_ADDRSTRLEN];
	uint64_t answer;

	need(fi_getname(&p->ep->fid, &name, &len), "fi_getname");
	post(p, &order, sizeof(order), TAG_NAME, &ctx);
	printf("address %s %d\n", inet_ntop(AF_INET, &name.sin_addr, text, sizeof(text)),
	       ntohs(name.sin_port));
	fflush(stdout);
	wait_received(p, 1);
	insert(p, &order.name);
	idle(p, opt->delay_ms);
	if (opt->both) /* fill the caller's memory while it fills ours */
		for (uint64_t i = 0; i < order.count; i++)
			push(p, &i, sizeof(i), TAG_GOODBYE, &ctx);
	answer = take_all(p, &order, opt->forbid_mid);
	push(p, &answer, sizeof(answer), TAG_ANSWER, &ctx);
	idle(p, 50);
	printf("right %llu of %llu\n", (unsigned long long)answer, (unsigned long long)order.count);
	report(p);
	return answer == order.count ? 0 : 1;
}

static int call(struct peer *p, const struct options *opt)
{
	struct order order = { .count = opt->count, .size = opt->size };
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons((uint16_t)opt->port) };
	struct fi_context2 ctx[2];
	size_t len = sizeof(order.name);
	uint64_t answer = 0, before;

	if (inet_pton(AF_INET, opt->ip, &to.sin_addr) != 1)
		die(1, "%s is no IPv4 address", opt->ip);
	need(fi_getname(&p->ep->fid, &order.name, &len), "fi_getname");
	insert(p, &to);
	push(p, &order, sizeof(order), TAG_NAME, &ctx[0]);
	while (!p->sent)
		progress(p);
	p->sent = 0;
	send_all(p, &order, opt->forbid_mid);
	before = p->received;
	if (opt->both)
		for (uint64_t i = 0, n; i < order.count; i++) {
			post(p, &n, sizeof(n), TAG_GOODBYE, &ctx[1]);
			wait_received(p, ++before);
			if (n != i)
				die(1, "message %llu is %llu", (unsigned long long)i, (unsigned long long)n);
		}
	post(p, &answer, sizeof(answer), TAG_ANSWER, &ctx[0]);
	wait_received(p, before + 1);
	printf("answer %llu of %llu\n", (unsigned long long)answer, (unsigned long long)order.count);
	report(p);
	printf("done\n");
	fflush(stdout);
	while (opt->hold && getchar() != EOF)
		;
	return answer == order.count ? 0 : 1;
}

static const struct option long_options[] = {
	{ "count", required_argument, NULL, 'n' },
	{ "size", required_argument, NULL, 's' },
	{ "delay", required_argument, NULL, 'd' },
	{ "forbid", no_argument, NULL, 'f' },
	{ "forbid-mid", no_argument, NULL, 'm' },
	{ "alarms", no_argument, NULL, 'a' },
	{ "hold", no_argument, NULL, 'h' },
	{ "both", no_argument, NULL, 'b' },
	{ 0 },
};

static void parse(int argc, char **argv, struct options *o)
{
	int c;

	*o = (struct options){ .count = 100, .size = 64 };
	while ((c = getopt_long(argc, argv, "n:s:d:fmahb", long_options, NULL)) != -1) {
		switch (c) {
		case 'n':
			o->count = strtoull(optarg, NULL, 0);
			break;
		case 's':
			o->size = strtoull(optarg, NULL, 0);
			break;
		case 'd':
			o->delay_ms = atoi(optarg);
			break;
		case 'f':
			o->forbid = true;
			break;
		case 'm':
			o->forbid_mid = true;
			break;
		case 'a':
			o->alarms = true;
			break;
		case 'h':
			o->hold = true;
			break;
		case 'b':
			o->both = true;
			break;
		default:
			exit(2);
		}
	}
	argv += optind;
	argc -= optind;
	o->serve = argc == 1 && !strcmp(argv[0], "serve");
	if (!o->serve && (argc != 3 || strcmp(argv[0], "call"))) {
		fprintf(stderr, "usage: e2e-peer [options] serve | call IP PORT\n");
		exit(2);
	}
	if (!o->serve) {
		o->ip = argv[1];
		o->port = atoi(argv[2]);
	}
}

int main(int argc, char **argv)
{
	struct options opt;
	struct peer p;
	int rc;

	parse(argc, argv, &opt);
	signal(SIGPIPE, SIG_DFL); /* must never surface */
	signal(SIGUSR1, on_enough);
	if (opt.forbid)
		forbid_direct_copies();
	if (opt.alarms)
		start_alarms();
	peer_open(&p);
	rc = opt.serve ? serve(&p, &opt) : call(&p, &opt);
	peer_close(&p);
	return rc;
}
