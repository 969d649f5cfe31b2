/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* heddle key: a key for HEDDLE_KEY_FILE. */
#include "base/advice.h"
#include "base/key_file.h"
#include "tool/tool.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>

static void key_print_help(void)
{
	puts("Usage: heddle key FILE\n"
	     "\n"
	     "Makes a new random key in FILE, which must not be there yet and which only you can open. Copy it to\n"
	     "each host and user whose programs shall talk to each other, in a safe way, and set HEDDLE_KEY_FILE to\n"
	     "where it is: what goes over TCP is sealed with it, and who has it not is turned away.\n"
	     "\n"
	     "  -h, --help   print this text");
}

static const struct option key_options[] = {
	{ "help", no_argument, NULL, 'h' },
	{ 0 },
};

static const char *key_advice(int rc)
{
	switch (rc) {
	case -ENOENT:
	case -ENOTDIR:
		return ": make its folder first";
	case -EACCES:
		return ": choose a folder that you may write in";
	case -ENAMETOOLONG:
		return ": choose a shorter name";
	default:
		return hd_advice(-rc);
	}
}

static int run_key(int argc, char **argv)
{
	int option = getopt_long(argc, argv, "+:h", key_options, NULL), rc;

	if (option == 'h') {
		key_print_help();
		return 0;
	}
	if (option != -1)
		return hd_option_error(option, "key", argv);
	if (argc - optind != 1) {
		hd_complain(optind == argc ? "say in which file the key shall be" : "one file is enough");
		return hd_usage_error("key");
	}
	rc = hd_key_file_make(argv[optind]);
	if (rc == -EEXIST)
		hd_complain(
			"%s is there already: a key is not written over; remove it first if nobody needs it",
			argv[optind]);
	else if (rc < 0)
		hd_complain("cannot make %s: %s%s", argv[optind], strerror(-rc), key_advice(rc));
	return rc < 0 ? HD_EXIT_OWN_FAILURE : 0;
}

const struct hd_command hd_command_key = {
	.name = "key",
	.summary = "make a key that seals what goes over TCP",
	.run = run_key,
};
