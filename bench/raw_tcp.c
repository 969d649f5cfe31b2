/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* raw-tcp: what a bare TCP socket gives on loopback, both ends spinning: the floor under any
 * transport over TCP. Prints the same lines as hd-bench: half round trip per size, and a one-way
 * stream of sends of each size. */
#include <errno.h>
#include <getopt.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "ctl.h"
#include "sample.h"

#define MAX_SIZE (16u << 20)

struct cmd {
	bool stream; /* else ping-pong */
	uint32_t size;
	uint64_t count; /* 0 ends the server */
};

static char *buffer;

static void put(int fd, size_t len)
{
	for (size_t done = 0; done < len;) {
		ssize_t n = send(fd, buffer + done, len - done, MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n < 0 && errno != EAGAIN && errno != EINTR)
			hd_give_up("send: %s", strerror(errno));
		done += n > 0 ? (size_t)n : 0;
	}
}

static void get(int fd, size_t len)
{
	for (size_t done = 0; done < len;) {
		ssize_t n = recv(fd, buffer + done, len - done, MSG_DONTWAIT);

		if (!n || (n < 0 && errno != EAGAIN && errno != EINTR))
			hd_give_up("recv: %s", n ? strerror(errno) : "end of file");
		done += n > 0 ? (size_t)n : 0;
	}
}

/* One repetition as the client sees it; returns nanoseconds. */
static double run(int fd, int ctl, const struct cmd *c)
{
	uint64_t start;
	char ready;

	hd_ctl_put(ctl, c, sizeof(*c));
	hd_ctl_get(ctl, &ready, 1, NULL, NULL);
	start = hd_now_ns();
	for (uint64_t i = 0; i < c->count; i++) {
		put(fd, c->size);
		if (!c->stream)
			get(fd, c->size);
	}
	if (c->stream)
		get(fd, 1); /* the server has it all */
	return (double)(hd_now_ns() - start);
}

static void serve(int fd, int ctl)
{
	struct cmd c;

	for (;;) {
		hd_ctl_get(ctl, &c, sizeof(c), NULL, NULL);
		hd_ctl_put(ctl, "", 1);
		if (!c.count)
			return;
		for (uint64_t i = 0; i < c.count; i++) {
			get(fd, c.size);
			if (!c.stream)
				put(fd, c.size);
		}
		if (c.stream)
			put(fd, 1);
	}
}

static void measure(int fd, int ctl, struct cmd c, long reps, long rep_ms)
{
	struct hd_samples lat = { .n = 0 }, rate = { .n = 0 };
	double t, want = (double)rep_ms * 1e6;

	for (c.count = 4; (t = run(fd, ctl, &c)) <= want / 8;)
		c.count *= 4;
	c.count = (uint64_t)((double)c.count * want / t) + 4;
	for (long i = 0; i < reps; i++) {
		t = run(fd, ctl, &c);
		hd_samples_add(&lat, t / 2e3 / (double)c.count);
		hd_samples_add(&rate, (double)c.count * (double)c.size / t);
	}
	printf("test=%s provider=raw-tcp mode=stream size=%u iters=%llu ", c.stream ? "bw" : "lat", c.size,
	       (unsigned long long)c.count);
	if (c.stream)
		printf("best_gb_s=%.6f median_gb_s=%.6f\n", hd_samples_high(&rate), hd_samples_median(&rate));
	else
		printf("best_us=%.4f median_us=%.4f\n", hd_samples_low(&lat), hd_samples_median(&lat));
}

struct opts {
	const char *lat, *bw; /* lists of sizes */
	int cpus[2];
	long reps, rep_ms;
};

static void client(int fd, int ctl, const struct opts *o)
{
	for (int stream = 0; stream < 2; stream++) {
		char *copy = strdup(stream ? o->bw : o->lat), *save = NULL;

		if (!copy)
			hd_give_up("no memory");
		for (char *w = strtok_r(copy, ",", &save); w; w = strtok_r(NULL, ",", &save)) {
			struct cmd c = { .stream = stream };

			c.size = (uint32_t)hd_parse_long(w, 1, MAX_SIZE, "size");
			measure(fd, ctl, c, o->reps, o->rep_ms);
		}
		free(copy);
	}
	hd_ctl_put(ctl, &(struct cmd){ .count = 0 }, sizeof(struct cmd));
}

static const char usage_text[] =
	"usage: raw-tcp [-l SIZES] [-b SIZES] [-r REPETITIONS] [-T MS] [-c CPU,CPU]\n"
	"half round trip of the sizes of -l (default 8), stream of those of -b "
	"(default 1048576)\n";

static void parse(struct opts *o, int argc, char **argv)
{
	int opt;

	while ((opt = getopt(argc, argv, "l:b:r:T:c:")) != -1) {
		switch (opt) {
		case 'l':
			o->lat = optarg;
			break;
		case 'b':
			o->bw = optarg;
			break;
		case 'r':
			o->reps = hd_parse_long(optarg, 1, 1000, "repetitions");
			break;
		case 'T':
			o->rep_ms = hd_parse_long(optarg, 1, 60000, "time");
			break;
		case 'c':
			hd_parse_pair(optarg, o->cpus);
			break;
		default:
			fputs(usage_text, stderr);
			exit(2);
		}
	}
}

int main(int argc, char **argv)
{
	struct opts o = { .lat = "8", .bw = "1048576", .cpus = { 0, 1 }, .reps = 5, .rep_ms = 50 };
	int fd[2], ctl[2];
	pid_t server;

	parse(&o, argc, argv);
	buffer = calloc(1, MAX_SIZE);
	if (!buffer)
		hd_give_up("no memory");
	hd_ctl_tcp_pair(fd);
	hd_ctl_pair(ctl);
	server = hd_ctl_fork();
	hd_pin(o.cpus[server ? 0 : 1]);
	close(fd[server ? 1 : 0]);
	close(ctl[server ? 1 : 0]);
	memset(buffer, server ? 1 : 2, MAX_SIZE);
	if (!server) {
		serve(fd[1], ctl[1]);
		return 0;
	}
	client(fd[0], ctl[0], &o);
	hd_ctl_reap(server, "server");
	return 0;
}
