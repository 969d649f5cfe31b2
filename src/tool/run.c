/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
#include "tool/tool.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/advice.h"
#include "base/config.h"
#include "base/spelling.h"
#include "tool/fronts.h"
#include "tool/program.h"

static void run_print_help(void)
{
	puts("Usage: heddle run [OPTION...] [--] PROGRAM [ARGUMENT...]\n"
	     "\n"
	     "Runs PROGRAM so that it finds Heddle. It takes the place of heddle: its process id, its\n"
	     "signals and its exit status are the program's.\n"
	     "\n"
	     "  -t, --transport=KIND   auto, shm or tcp (HEDDLE_TRANSPORT)\n"
	     "  -a, --addr=LIST        interfaces or addresses to listen on (HEDDLE_ADDR)\n"
	     "  -l, --log=LEVEL        error, warn, info or debug (HEDDLE_LOG)\n"
	     "  -s, --set=NAME=VALUE   any setting of 'heddle info'; may be given more than once\n"
	     "      --drop-in          also for programs that load libibverbs.so.1 themselves (LD_LIBRARY_PATH)\n"
	     "      --any-provider     let the program choose its libfabric provider, do not set FI_PROVIDER\n"
	     "  -v, --verbose          print every environment variable that is set\n"
	     "  -h, --help             print this text\n"
	     "\n"
	     "Exit status: the program's; 127 when there is no such program, 126 when it cannot be run,\n"
	     "125 when heddle itself fails.");
}

enum {
	OPTION_ANY_PROVIDER = 256,
	OPTION_DROP_IN,
};

static const struct option options[] = {
	{ "transport", required_argument, NULL, 't' },
	{ "addr", required_argument, NULL, 'a' },
	{ "log", required_argument, NULL, 'l' },
	{ "set", required_argument, NULL, 's' },
	{ "drop-in", no_argument, NULL, OPTION_DROP_IN },
	{ "any-provider", no_argument, NULL, OPTION_ANY_PROVIDER },
	{ "verbose", no_argument, NULL, 'v' },
	{ "help", no_argument, NULL, 'h' },
	{ 0 },
};

struct run_options {
	struct hd_front_choice choice;
	const char *settings[HD_SET_COUNT]; /* NULL: not given */
};

static int take_setting(struct run_options *run, enum hd_setting id, const char *value)
{
	char help[160];

	if (hd_setting_valid(id, value)) {
		run->settings[id] = value;
		return 0;
	}
	hd_setting_help(id, help, sizeof(help));
	hd_complain("%s cannot be \"%s\": it takes %s", hd_setting_at(id)->env, value, help);
	return HD_EXIT_OWN_FAILURE;
}

static int take_named_setting(struct run_options *run, char *text)
{
	char *equals = strchr(text, '=');

	if (!equals) {
		hd_complain(
			"--set takes NAME=VALUE such as EAGER_SHM=64K, not \"%s\"; 'heddle info' lists all settings",
			text);
		return HD_EXIT_OWN_FAILURE;
	}
	*equals = '\0';
	enum hd_setting id = hd_setting_find(text);
	if (id == HD_SET_COUNT) {
		id = hd_setting_like(text);
		hd_complain(id == HD_SET_COUNT ? "there is no setting %s: 'heddle info' lists all"
					       : "there is no setting %s: is it %s?",
			    text, id == HD_SET_COUNT ? "" : hd_setting_at(id)->env);
		return HD_EXIT_OWN_FAILURE;
	}
	return take_setting(run, id, equals + 1);
}

/* Returns 0 to go on, an exit status, or -1 when the help was asked for. */
static int take_option(struct run_options *run, int option, char **argv)
{
	switch (option) {
	case 't':
		return take_setting(run, HD_SET_TRANSPORT, optarg);
	case 'a':
		return take_setting(run, HD_SET_ADDR, optarg);
	case 'l':
		return take_setting(run, HD_SET_LOG, optarg);
	case 's':
		return take_named_setting(run, optarg);
	case OPTION_DROP_IN:
		run->choice.drop_in = true;
		return 0;
	case OPTION_ANY_PROVIDER:
		run->choice.any_provider = true;
		return 0;
	case 'v':
		hd_be_verbose(true);
		return 0;
	case 'h':
		run_print_help();
		return -1;
	default:
		return hd_option_error(option, "run", argv);
	}
}

static int set_up_front(const struct hd_front *front, const struct run_options *run)
{
	char folder[2 * PATH_MAX + 64];

	if (hd_front_find(front, folder, sizeof(folder))) {
		if (front->optional)
			return 0;
		hd_complain(
			"cannot find %s for %s programs; looked in %s: install Heddle whole, or use the heddle beside its libraries",
			front->file, front->name, folder);
		return -ENOENT;
	}
	return front->set_up(folder, &run->choice);
}

static int set_up(const struct run_options *run)
{
	for (unsigned i = 0; i < HD_SET_COUNT; i++)
		if (run->settings[i] && hd_put_env(hd_setting_at(i)->env, run->settings[i]))
			return -ENOMEM;
	for (size_t i = 0; hd_front_at(i); i++) {
		int rc = set_up_front(hd_front_at(i), run);

		if (rc)
			return rc;
	}
	return 0;
}

static void warn_of_obstacle(const char *path)
{
	const char *obstacle = hd_program_obstacle(hd_program_kind(path));

	if (obstacle)
		hd_complain("warning: %s %s; programs that it starts may", path, obstacle);
	else if (hd_program_lack(path))
		hd_complain("warning: %s %s", path, hd_program_lack(path));
}

static const char *run_advice(const char *path, int rc)
{
	struct stat st;

	if (rc == -EISDIR)
		return ": name a program in it";
	if (rc == -EACCES && !stat(path, &st) && !(st.st_mode & 0111))
		return ": chmod +x makes it a program";
	switch (rc) {
	case -EACCES:
		return ": this user may not: see the permissions of it and its folders, and how that is mounted";
	case -E2BIG:
		return ": pass fewer or shorter arguments and variables";
	case -ETXTBSY:
		return ": somebody writes to it: run it when that is done";
	default:
		return hd_advice(-rc);
	}
}

static int exec_program(char **argv)
{
	char path[PATH_MAX];
	int rc = hd_program_find(argv[0], path, sizeof(path));

	if (rc == -ENOENT) {
		hd_complain(strchr(argv[0], '/')
				    ? "%s: there is no such program"
				    : "%s: there is no such program in PATH: install it, or give its path",
			    argv[0]);
		return HD_EXIT_NOT_FOUND;
	}
	if (!rc) {
		warn_of_obstacle(path);
		execvp(argv[0], argv);
		rc = -errno;
	}
	if (rc == -ENOENT)
		hd_complain(
			"%s: the interpreter that it names is missing: see its first line, or 'readelf -l' of it",
			path);
	else
		hd_complain("%s: cannot run it: %s%s", path, strerror(-rc), run_advice(path, rc));
	return HD_EXIT_CANNOT_RUN;
}

static int run_run(int argc, char **argv)
{
	struct run_options run_options = { 0 };
	int option;

	while ((option = getopt_long(argc, argv, "+:t:a:l:s:vh", options, NULL)) != -1) {
		int rc = take_option(&run_options, option, argv);

		if (rc)
			return rc < 0 ? 0 : rc;
	}
	if (optind == argc) {
		hd_complain("run: which program?");
		return hd_usage_error("run");
	}
	if (set_up(&run_options))
		return HD_EXIT_OWN_FAILURE;
	return exec_program(argv + optind);
}

const struct hd_command hd_command_run = {
	.name = "run",
	.summary = "run a program so that it finds Heddle",
	.run = run_run,
};
