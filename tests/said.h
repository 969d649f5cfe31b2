/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* For tests of what is said to the user: the log's lines, as they come. */
#ifndef HD_TEST_SAID_H
#define HD_TEST_SAID_H

#include "base/log.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static char said_lines[16384]; /* what has no room is not kept */

static inline bool said_keep(void *arg, enum hd_log_level level, const char *room, const char *message)
{
	size_t used = strlen(said_lines);

	snprintf(said_lines + used, sizeof(said_lines) - used, "%s\n", message);
	return true;
}

/* said_begin: from here on lines are kept, up to the level info, and not printed; said_end: no longer. */
static inline void said_begin(void)
{
	said_lines[0] = '\0';
	hd_log_set_sink(said_keep, NULL);
	hd_log_raise(HD_LOG_INFO);
}

static inline void said_end(void)
{
	hd_log_set_sink(NULL, NULL);
}

/* said: has a line that was kept these words, and behind them those? */
static inline bool said(const char *what, const char *next)
{
	const char *line = strstr(said_lines, what), *end = line ? strchr(line, '\n') : NULL;

	for (; line; line = strstr(end, what), end = line ? strchr(line, '\n') : NULL) {
		const char *words = strstr(line, next);

		if (words && words < end)
			return true;
	}
	return false;
}

#endif
