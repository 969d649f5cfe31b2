/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
#ifndef HEDDLE_TOOL_TOOL_H
#define HEDDLE_TOOL_TOOL_H

/*
 * What the files of the heddle command share. It is one thread, and may print and exit as it likes.
 */

/* Exit statuses of our own, as env(1) and timeout(1) have them. */
enum {
	HD_EXIT_OWN_FAILURE = 125, /* heddle itself failed, or was called wrongly */
	HD_EXIT_CANNOT_RUN = 126,  /* the program was found, but cannot be run */
	HD_EXIT_NOT_FOUND = 127,   /* there is no such program */
};

/* A subcommand: argv[0] is its name; run returns the exit status. */
struct hd_command {
	const char *name;
	const char *summary; /* for heddle --help */
	int (*run)(int argc, char **argv);
};

extern const struct hd_command hd_command_info;
extern const struct hd_command hd_command_key;
extern const struct hd_command hd_command_run;

/* hd_complain prints one line to standard error, "heddle: " in front. */
void hd_complain(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* hd_usage_error says where help is to be had, and returns HD_EXIT_OWN_FAILURE. */
int hd_usage_error(const char *command);

/*
 * hd_option_error complains of what getopt_long returned ':' or '?' for, and returns
 * hd_usage_error's answer; the option string must begin with ':' (after '+').
 */
int hd_option_error(int result, const char *command, char **argv);

#endif
