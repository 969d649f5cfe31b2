/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* hd-bench: two processes, any libfabric provider with reliable datagram endpoints, one line of
 * key=value words per result. It forks its second process before it touches libfabric. The
 * options are in fi_options.c.
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ctl.h"
#include "fi_bench.h"

static struct hd_bench bench;

/* ---- stuck or dead partner ----------------------------------------------------------------------
 */

static void on_alarm(int sig)
{
	static const char text[] = "hd-bench: gave up, no end within the time limit: ";

	(void)sig;
	if (write(2, text, sizeof(text) - 1) < 0 || write(2, bench.what, strlen(bench.what)) < 0 ||
	    write(2, "\n", 1) < 0)
		_exit(4);
	_exit(3);
}

static void on_child(int sig)
{
	static const char text[] = "hd-bench: a process of this benchmark failed\n";
	siginfo_t info = { .si_pid = 0 };

	(void)sig;
	if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) || !info.si_pid)
		return;
	if (info.si_code == CLD_EXITED && info.si_status == 0)
		return; /* an orderly end */
	if (write(2, text, sizeof(text) - 1) < 0)
		_exit(4);
	_exit(1);
}

/* ---- commands -----------------------------------------------------------------------------------
 */

static void serve(struct hd_bench *b)
{
	struct hd_cmd cmd;

	for (;;) {
		alarm(0);
		hd_ctl_get(b->ctl, &cmd, sizeof(cmd), hd_side_turn, &b->side);
		alarm((unsigned int)(b->timeout + b->sleep_s));
		switch (cmd.op) {
		case HD_OP_VERIFY:
			hd_verify_server(b, &cmd);
			break;
		case HD_OP_LAT:
			hd_lat_server(b, &cmd);
			break;
		case HD_OP_STREAM:
			hd_stream_server(b, &cmd);
			break;
		case HD_OP_MATCH:
			hd_match_server(b, &cmd);
			break;
		case HD_OP_WAKE:
			hd_wake_server(b, &cmd);
			break;
		case HD_OP_SLEEP:
			hd_sleep_server(b, &cmd);
			break;
		case HD_OP_QUIT:
			hd_bench_ready(b);
			return;
		}
	}
}

static void run_sizes(struct hd_bench *b)
{
	for (int i = 0; i < b->nsizes && b->lat; i++) {
		b->what = "latency";
		hd_verify_client(b, b->sizes[i]);
		hd_lat_client(b, b->sizes[i]);
	}
	if (b->rate) {
		b->what = "message rate";
		hd_verify_client(b, 8);
		hd_stream_client(b, "rate", 8);
	}
	for (int i = 0; i < b->nsizes && b->bw; i++) {
		b->what = "bandwidth";
		hd_verify_client(b, b->sizes[i]);
		hd_stream_client(b, "bw", b->sizes[i]);
	}
}

static void command(struct hd_bench *b)
{
	struct hd_cmd quit = { .op = HD_OP_QUIT };

	b->what = "first message";
	hd_verify_client(b, 8);
	run_sizes(b);
	b->what = "match";
	if (b->match)
		hd_match_client(b);
	b->what = "wake";
	if (b->wake)
		hd_wake_client(b);
	b->what = "sleep";
	if (b->sleep_s)
		hd_sleep_client(b);
	b->what = "end";
	hd_bench_order(b, &quit);
}

static void meet(struct hd_bench *b)
{
	struct hd_side_name own, other;

	hd_side_name(&b->side, &own);
	hd_ctl_put(b->ctl, &own, sizeof(own));
	hd_ctl_get(b->ctl, &other, sizeof(other), NULL, NULL);
	b->side.peer = hd_side_insert(&b->side, &other);
}

/* ---- the processes ------------------------------------------------------------------------------
 */

static void server_main(struct hd_bench *b, int *idle)
{
	signal(SIGCHLD, SIG_DFL);
	hd_pin(b->cpus[1]);
	alarm((unsigned int)b->timeout);
	b->open.blocking = b->wake || b->sleep_s;
	hd_side_open(&b->side, &b->open);
	meet(b);
	hd_idle_meet(b, idle);
	serve(b);
	for (long i = 0; i < b->nidle; i++) {
		hd_ctl_put(idle[i], "", 1);
		close(idle[i]);
	}
	hd_side_close(&b->side);
	exit(0);
}

static void client_main(struct hd_bench *b, pid_t server, const pid_t *idle)
{
	hd_pin(b->cpus[0]);
	alarm((unsigned int)b->timeout);
	hd_side_open(&b->side, &b->open);
	meet(b);
	command(b);
	signal(SIGCHLD, SIG_DFL);
	hd_side_close(&b->side);
	hd_ctl_reap(server, "server");
	for (long i = 0; i < b->nidle; i++)
		hd_ctl_reap(idle[i], "idle");
}

static void run(struct hd_bench *b)
{
	int pair[2], fds[HD_IDLE_MAX];
	pid_t idle[HD_IDLE_MAX], server;

	signal(SIGALRM, on_alarm);
	signal(SIGCHLD, on_child);
	hd_idle_start(b, fds, idle);
	hd_ctl_pair(pair);
	server = hd_ctl_fork();
	b->ctl = server ? pair[0] : pair[1];
	close(server ? pair[1] : pair[0]);
	if (!server)
		server_main(b, fds);
	for (long i = 0; i < b->nidle; i++)
		close(fds[i]);
	client_main(b, server, idle);
}

int main(int argc, char **argv)
{
	hd_bench_parse(&bench, argc, argv);
	run(&bench);
	return 0;
}
