/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* The runner: processes, verdicts, watchdog. */
#include "case.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define SECONDS 60 /* a case's watchdog, unless it names another */
#define GRACE 0.3  /* seconds that the other ranks get to tell theirs after a bad verdict */

struct run {
	const struct ct_case *cs;
	const struct ct_conf *conf;
	int procs;
	int chan[CT_PROCS][CT_PROCS];
	int pipe[CT_PROCS][2];
	pid_t pid[CT_PROCS];
	pid_t group;
	struct ct_verdict said[CT_PROCS];
	bool ended[CT_PROCS];
	/* ranks in the order in which they spoke: the first failure is the cause */
	int order[CT_PROCS];
	int spoke;
	double end;
};

static __attribute__((format(printf, 3, 0))) void verdict(struct ct *ct, int kind, const char *fmt,
							  va_list ap)
{
	struct ct_verdict v = { .kind = kind };
	int n = snprintf(v.text, sizeof(v.text), "rank %d: ", ct->rank);

	vsnprintf(v.text + n, sizeof(v.text) - (size_t)n, fmt, ap);
	if (write(ct->verdict_fd, &v, sizeof(v)) != sizeof(v))
		_exit(3);
	_exit(2);
}

/* For a program that is run by hand; all that it starts has the same ports. */
static void draw_ports(void)
{
	char first[12];

	snprintf(first, sizeof(first), "%u", 20000 + (unsigned)getpid() % 120 * 100);
	setenv("HD_TEST_PORTS", first, 0);
}

uint16_t ct_port(unsigned n)
{
	return (uint16_t)(strtoul(getenv("HD_TEST_PORTS"), NULL, 10) + n);
}

void ct_fail(struct ct *ct, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	verdict(ct, CT_FAIL, fmt, ap);
	va_end(ap);
	_exit(3);
}

void ct_unsupported(struct ct *ct, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	verdict(ct, CT_UNSUPPORTED, fmt, ap);
	va_end(ap);
	_exit(3);
}

void ct_faults(struct ct *ct)
{
	struct sigaction now;

#if !defined(__x86_64__)
	ct_unsupported(ct, "run on x86-64: nobody looks out for faults on this processor");
#endif
	if (sigaction(SIGSEGV, NULL, &now) || (!(now.sa_flags & SA_SIGINFO) && now.sa_handler != SIG_DFL))
		ct_unsupported(ct, "run without a debugger or preload that handles faults itself");
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	ct_unsupported(ct, "build without a sanitizer, which handles faults itself");
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
	ct_unsupported(ct, "build without a sanitizer, which handles faults itself");
#endif
#endif
}

void ct_doomed(struct ct *ct)
{
	struct ct_verdict v = { .kind = CT_DOOMED };

	if (write(ct->verdict_fd, &v, sizeof(v)) != sizeof(v))
		_exit(3);
}

/* Into another network namespace; what libraries start of their own goes there too. */
static void enter(struct ct *ct, const char *space)
{
	char path[256];
	int fd;

	snprintf(path, sizeof(path), "/run/netns/%s", space);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || setns(fd, CLONE_NEWNET))
		ct_fail(ct, "network namespace %s: %s", space, strerror(errno));
	close(fd);
}

static void in_child(struct run *r, int rank)
{
	struct ct ct = { .cs = r->cs, .conf = r->conf, .rank = rank, .procs = r->procs, .rng = r->conf->seed };
	static const int deadly[] = { SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT };
	struct ct_verdict v = { .kind = CT_PASS };
	int i, j;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	/*
	 * libpsm2, which Debian's libfabric links, catches these to write files;
	 * a crash is to be a crash.
	 */
	for (i = 0; i < (int)CT_COUNT(deadly); i++)
		signal(deadly[i], SIG_DFL);
	for (i = 0; i < r->procs; i++) {
		close(r->pipe[i][0]);
		if (i != rank)
			close(r->pipe[i][1]);
		for (j = 0; j < r->procs; j++)
			if (i != rank && i != j)
				close(r->chan[i][j]);
		ct.chan[i] = i == rank ? -1 : r->chan[rank][i];
	}
	ct.verdict_fd = r->pipe[rank][1];
	ct.pid[rank] = getpid();
	for (i = 0; i < r->procs; i++)
		if (i != rank)
			ct_put(&ct, i, &ct.pid[rank], sizeof(pid_t));
	for (i = 0; i < r->procs; i++)
		if (i != rank)
			ct_get(&ct, NULL, i, &ct.pid[i], sizeof(pid_t));
	if (r->conf->space[rank])
		enter(&ct, r->conf->space[rank]);
	if (r->cs->setting)
		putenv((char *)r->cs->setting);
	r->cs->role[rank](&ct);
	if (write(ct.verdict_fd, &v, sizeof(v)) != sizeof(v))
		_exit(3);
	/* Not _exit: leak checkers report at exit, and their exit status counts. */
	exit(0);
}

static void open_channels(struct run *r)
{
	int i, j, sv[2];

	for (i = 0; i < r->procs; i++) {
		r->chan[i][i] = -1;
		if (pipe(r->pipe[i]))
			goto fail;
		for (j = i + 1; j < r->procs; j++) {
			if (socketpair(AF_UNIX, SOCK_STREAM, 0, sv))
				goto fail;
			r->chan[i][j] = sv[0];
			r->chan[j][i] = sv[1];
		}
	}
	return;
fail:
	perror("no channel between the ranks");
	exit(2);
}

static void start(struct run *r)
{
	int i, j;

	open_channels(r);
	fflush(NULL);
	for (i = 0; i < r->procs; i++) {
		r->pid[i] = fork();
		if (r->pid[i] < 0) {
			perror("fork");
			exit(2);
		}
		if (!r->group)
			r->group = r->pid[i] ? r->pid[i] : getpid();
		/* Both sides set it: whoever comes first. */
		setpgid(r->pid[i], r->group);
		if (!r->pid[i])
			in_child(r, i);
	}
	for (i = 0; i < r->procs; i++) {
		close(r->pipe[i][1]);
		for (j = 0; j < r->procs; j++)
			if (i != j)
				close(r->chan[i][j]);
	}
}

/* A verdict of 0 bytes is that of a process that died on the way. */
static void listen_to(struct run *r, int rank)
{
	struct ct_verdict v;
	ssize_t n = read(r->pipe[rank][0], &v, sizeof(v));

	if (n < 0 && errno == EINTR)
		return;
	if (n == (ssize_t)sizeof(v))
		r->said[rank] = v;
	r->ended[rank] = true;
	r->order[r->spoke++] = rank;
}

static bool is_good(int kind)
{
	return kind == CT_PASS || kind == CT_DOOMED;
}

static void collect(struct run *r)
{
	for (;;) {
		struct pollfd pfd[CT_PROCS];
		double left = r->end - ct_now();
		int i, open = 0;

		for (i = 0; i < r->procs; i++) {
			pfd[i] = (struct pollfd){ .fd = r->ended[i] ? -1 : r->pipe[i][0], .events = POLLIN };
			open += !r->ended[i];
		}
		if (!open || left <= 0)
			return;
		if (poll(pfd, (nfds_t)r->procs, (int)(left * 1e3) + 1) <= 0)
			continue;
		for (i = 0; i < r->procs; i++) {
			if (!pfd[i].revents)
				continue;
			listen_to(r, i);
			if (!is_good(r->said[i].kind) && r->end > ct_now() + GRACE)
				r->end = ct_now() + GRACE;
		}
	}
}

static void reap(struct run *r, int rank, bool all_passed)
{
	struct ct_verdict *v = &r->said[rank];
	int st = 0;

	while (waitpid(r->pid[rank], &st, 0) < 0 && errno == EINTR)
		;
	if (v->kind == CT_NONE && r->ended[rank]) {
		v->kind = CT_FAIL;
		if (WIFSIGNALED(st))
			snprintf(v->text, sizeof(v->text), "rank %d died of signal %d (%s)", rank,
				 WTERMSIG(st), strsignal(WTERMSIG(st)));
		else
			snprintf(v->text, sizeof(v->text), "rank %d ended with status %d and said nothing",
				 rank, WEXITSTATUS(st));
	} else if (all_passed && v->kind == CT_PASS && st) {
		v->kind = CT_FAIL;
		snprintf(v->text, sizeof(v->text), "rank %d passed, then ended with %s %d", rank,
			 WIFEXITED(st) ? "status" : "signal", WIFEXITED(st) ? WEXITSTATUS(st) : WTERMSIG(st));
	}
}

/*
 * Processes that passed get the rest of the time to exit in; then
 * everything in the group is killed.
 */
static void end_all(struct run *r, bool all_passed)
{
	double end = ct_now() + 10 * CT_BUSY * r->conf->scale;
	siginfo_t si;
	int i;

	for (i = 0; all_passed && i < r->procs; i++) {
		while (r->said[i].kind == CT_PASS) {
			si.si_pid = 0;
			if (waitid(P_PID, (id_t)r->pid[i], &si, WEXITED | WNOHANG | WNOWAIT) || si.si_pid)
				break;
			if (ct_now() > end) {
				r->said[i].kind = CT_FAIL;
				snprintf(r->said[i].text, sizeof(r->said[i].text),
					 "rank %d passed, but never ended", i);
				break;
			}
			usleep(500);
		}
	}
	kill(-r->group, SIGKILL);
	for (i = 0; i < r->procs; i++) {
		reap(r, i, all_passed);
		close(r->pipe[i][0]);
	}
}

static bool judge_by(struct run *r, int kind, struct ct_verdict *out)
{
	int i;

	for (i = 0; i < r->spoke; i++) {
		if (r->said[r->order[i]].kind == kind) {
			*out = r->said[r->order[i]];
			return true;
		}
	}
	return false;
}

static void judge(struct run *r, bool timed_out, struct ct_verdict *out)
{
	if (judge_by(r, CT_FAIL, out) || judge_by(r, CT_UNSUPPORTED, out))
		return;
	if (judge_by(r, CT_LOST, out)) {
		out->kind = CT_FAIL;
		return;
	}
	out->kind = CT_PASS;
	out->text[0] = 0;
	if (timed_out) {
		out->kind = CT_FAIL;
		snprintf(out->text, sizeof(out->text), "hangs: killed by the watchdog");
	}
}

void ct_run(const struct ct_case *cs, const struct ct_conf *conf, struct ct_verdict *out)
{
	struct run r = { .cs = cs, .conf = conf };
	bool timed_out = false, all_passed = true;
	int i;

	while (r.procs < CT_PROCS && cs->role[r.procs])
		r.procs++;
	draw_ports();
	r.end = ct_now() + (cs->seconds ? cs->seconds : SECONDS) * CT_BUSY * conf->scale;
	start(&r);
	collect(&r);
	for (i = 0; i < r.procs; i++) {
		timed_out |= !r.ended[i];
		all_passed &= is_good(r.said[i].kind);
	}
	end_all(&r, all_passed);
	judge(&r, timed_out, out);
}
