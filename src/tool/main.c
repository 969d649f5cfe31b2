/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
#include "tool/tool.h"

#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const struct hd_command *const commands[] = {
	&hd_command_run,
	&hd_command_info,
	&hd_command_key,
};

void hd_complain(const char *fmt, ...)
{
	va_list ap;

	fputs("heddle: ", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
}

int hd_usage_error(const char *command)
{
	fprintf(stderr, "Try 'heddle%s%s --help'.\n", *command ? " " : "", command);
	return HD_EXIT_OWN_FAILURE;
}

int hd_option_error(int result, const char *command, char **argv)
{
	const char *word = argv[optind - 1];

	if (result == ':')
		hd_complain("option %s needs a value", word);
	else if (optopt && word[1] != '-')
		hd_complain("unknown option -%c", optopt);
	else
		hd_complain("unknown or ambiguous option, or a value where none belongs: %s", word);
	return hd_usage_error(command);
}

static void main_print_help(void)
{
	puts("Usage: heddle COMMAND [OPTION...] [ARGUMENT...]\n"
	     "       heddle --help | --version | help [COMMAND]\n"
	     "\n"
	     "Runs programs written for fast fabrics over shared memory and TCP.\n"
	     "\n"
	     "Commands:");
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		printf("  %-6s  %s\n", commands[i]->name, commands[i]->summary);
	puts("\n"
	     "'heddle COMMAND --help' says more; so do heddle(1), and heddle(7) for the settings.");
}

static int run_command(const char *name, int argc, char **argv);

/* heddle help [COMMAND]: as --help, which may stand before a command or behind it. */
static int help(int argc, char **argv)
{
	char option[] = "--help", *asked[] = { argv[1], option, NULL };

	if (argc > 1)
		return run_command(asked[0], 2, asked);
	main_print_help();
	return 0;
}

static int run_command(const char *name, int argc, char **argv)
{
	if (!strcmp(name, "help"))
		return help(argc, argv);
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		if (!strcmp(name, commands[i]->name)) {
			optind = 0; /* the command reads options of its own, from the start */
			return commands[i]->run(argc, argv);
		}
	}
	hd_complain("there is no command '%s'; there are 'run', 'info' and 'key'", name);
	return hd_usage_error("");
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, 'V' },
		{ 0 },
	};
	int option = getopt_long(argc, argv, "+:hV", options, NULL);

	if (option == 'h') {
		main_print_help();
		return 0;
	}
	if (option == 'V') {
		puts("heddle " HD_VERSION);
		return 0;
	}
	if (option != -1)
		return hd_option_error(option, "", argv);
	if (optind == argc) {
		hd_complain("a command is missing");
		return hd_usage_error("");
	}
	return run_command(argv[optind], argc - optind, argv + optind);
}
