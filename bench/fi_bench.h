/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* The tests of hd-bench. Each has a client half, which times and prints, and a server half, which
 * answers one command. The client sends a command, the server says when it is ready, and only
 * then does the clock start. */
#ifndef HD_BENCH_FI_BENCH_H
#define HD_BENCH_FI_BENCH_H

#include "fi_side.h"
#include "sample.h"

#define HD_SIZES_MAX 64
#define HD_IDLE_MAX 250

enum hd_op {
	HD_OP_VERIFY,
	HD_OP_LAT,
	HD_OP_STREAM,
	HD_OP_MATCH,
	HD_OP_WAKE,
	HD_OP_SLEEP,
	HD_OP_QUIT
};

/* One command to the server. Fields that an operation does not use are zero. */
struct hd_cmd {
	enum hd_op op;
	size_t size;	 /* bytes of a message */
	uint64_t count;	 /* messages, or seconds for HD_OP_SLEEP */
	uint64_t batch;	 /* HD_OP_MATCH: receives, or waiting messages, at once */
	uint32_t window; /* HD_OP_STREAM: messages in flight */
	uint32_t ack;	 /* HD_OP_STREAM: messages between acknowledgements */
	bool waiting;	 /* HD_OP_MATCH: messages come first, then the receives */
	int order;	 /* HD_OP_MATCH: enum hd_order */
};

/* What the server measured, for the tests where it is the one to measure. */
struct hd_answer {
	double value;
	uint64_t switches;
};

struct hd_bench {
	struct hd_side side;
	struct hd_side_opts open;
	int ctl;     /* the control channel to the other process */
	int cpus[2]; /* of the client and of the server */
	size_t sizes[HD_SIZES_MAX];
	int nsizes;
	bool lat, bw, rate, wake;
	long reps, window, ack, rep_ms, timeout;
	long nidle, match, wakes, sleep_s;
	const char *what; /* the test that is running, for messages */
};

/* hd_bench_parse - fill *b from the command line. Prints the usage and exits where it
 * is wrong or asks for help. */
void hd_bench_parse(struct hd_bench *b, int argc, char **argv);

/* hd_bench_order - tell the server to run `cmd` and wait until it is ready. Client only. */
void hd_bench_order(struct hd_bench *b, const struct hd_cmd *cmd);

/* hd_bench_ready - answer hd_bench_order. Server only. */
void hd_bench_ready(struct hd_bench *b);

/* hd_bench_ask, hd_bench_tell - move a measured value from the server to the client. */
void hd_bench_ask(struct hd_bench *b, struct hd_answer *a);
void hd_bench_tell(struct hd_bench *b, const struct hd_answer *a);

/* hd_bench_begin - print the words that start every line of result: test, provider, and mode. */
void hd_bench_begin(const struct hd_bench *b, const char *test);

/* hd_bench_calibrate - find how often to repeat so that one repetition takes b->rep_ms. `run`
 * performs n rounds and returns nanoseconds; it serves as warm-up as well. */
uint64_t hd_bench_calibrate(struct hd_bench *b, const struct hd_cmd *cmd,
			    double (*run)(struct hd_bench *b, const struct hd_cmd *cmd));

/*
 * The halves of the tests. The client's print lines of result on stdout; all give up on an error.
 */
void hd_verify_client(struct hd_bench *b, size_t size);
void hd_verify_server(struct hd_bench *b, const struct hd_cmd *cmd);
void hd_lat_client(struct hd_bench *b, size_t size);
void hd_lat_server(struct hd_bench *b, const struct hd_cmd *cmd);
void hd_stream_client(struct hd_bench *b, const char *test, size_t size);
void hd_stream_server(struct hd_bench *b, const struct hd_cmd *cmd);
void hd_match_client(struct hd_bench *b);
void hd_match_server(struct hd_bench *b, const struct hd_cmd *cmd);
void hd_wake_client(struct hd_bench *b);
void hd_wake_server(struct hd_bench *b, const struct hd_cmd *cmd);
void hd_sleep_client(struct hd_bench *b);
void hd_sleep_server(struct hd_bench *b, const struct hd_cmd *cmd);

/* hd_idle_start - fork b->nidle processes that will connect with the server; fds[i] is the server's
 * control channel to one of them. Called before any process touches libfabric. */
void hd_idle_start(struct hd_bench *b, int *fds, pid_t *pids);

/* hd_idle_meet - let each idle process exchange a message with this server and go to sleep. */
void hd_idle_meet(struct hd_bench *b, const int *fds);

#endif
