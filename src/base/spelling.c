/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
#include "base/spelling.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/log.h"

#define NAME_MAX_LEN 40 /* longer ones are no setting's */
#define SLIPS 2		/* letters that may be wrong */

static unsigned spelling_least(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

/*
 * How many letters must be added, left out or changed to make one of the other. `b` is
 * at most NAME_MAX_LEN long.
 */
static unsigned distance(const char *a, const char *b)
{
	unsigned row[NAME_MAX_LEN + 1], len = (unsigned)strlen(b);

	for (unsigned j = 0; j <= len; j++)
		row[j] = j;
	for (unsigned i = 0; a[i]; i++) {
		unsigned diagonal = row[0];

		row[0] = i + 1;
		for (unsigned j = 0; j < len; j++) {
			unsigned change = diagonal + (toupper((unsigned char)a[i]) != b[j]);

			diagonal = row[j + 1];
			row[j + 1] = spelling_least(change, spelling_least(diagonal, row[j]) + 1);
		}
	}
	return row[len];
}

/* LOG_LEVEL and LOG, EAGER and EAGER_SHM: words that begin the other. */
static bool begins(const char *name, const char *setting)
{
	size_t a = strlen(name), b = strlen(setting), len = a < b ? a : b;

	return len > SLIPS && !strncasecmp(name, setting, len);
}

/*
 * The setting with the fewest slips, and how many; NAME_MAX_LEN and more for one that is
 * too long to be compared.
 */
static enum hd_setting nearest(const char *name, unsigned *slips)
{
	enum hd_setting best = HD_SET_COUNT;

	*slips = UINT32_MAX;
	for (unsigned i = 0; i < HD_SET_COUNT; i++) {
		unsigned d = distance(name, hd_setting_at(i)->name);

		if (begins(name, hd_setting_at(i)->name))
			d = spelling_least(d, SLIPS);
		else if (2 * d >= strlen(hd_setting_at(i)->name))
			/* short words are like each other by chance */
			d += NAME_MAX_LEN;
		if (d < *slips) {
			*slips = d;
			best = (enum hd_setting)i;
		}
	}
	return best;
}

enum hd_setting hd_setting_like(const char *name)
{
	enum hd_setting best;
	unsigned slips;

	if (!strncasecmp(name, "HEDDLE_", 7))
		name += 7;
	if (strlen(name) > NAME_MAX_LEN || hd_setting_find(name) != HD_SET_COUNT)
		return HD_SET_COUNT;
	best = nearest(name, &slips);
	return slips <= SLIPS ? best : HD_SET_COUNT;
}

static size_t prefix_len(const char *variable)
{
	return strncmp(variable, "FI_", 3) ? 0 : 3;
}

/* The name, from HEDDLE_ on, and cut to what can be a setting's and one letter more. */
static void name_in(const char *variable, char name[NAME_MAX_LEN + 8])
{
	variable += prefix_len(variable);
	snprintf(name, NAME_MAX_LEN + 8, "%.*s", (int)strcspn(variable, "="), variable);
}

bool hd_variable_unknown(const char *variable)
{
	char name[NAME_MAX_LEN + 8];

	name_in(variable, name);
	const struct hd_setting_info *info = hd_setting_at(hd_setting_find(name));
	return !strncmp(name, "HEDDLE_", 7) && (!info || strcmp(info->env, name) != 0);
}

static void warn_of_variable(const char *variable)
{
	size_t front = prefix_len(variable), len = strcspn(variable, "=");
	char name[NAME_MAX_LEN + 8];
	unsigned slips;

	name_in(variable, name);
	const char *best = hd_setting_at(nearest(name + 7, &slips))->env;
	if (slips <= SLIPS)
		hd_warn("%.*s is no setting: is it %.*s%s?", (int)len, variable, (int)front, "FI_", best);
	else
		hd_warn("%.*s is no setting: the nearest is %s; 'heddle info' lists all", (int)len, variable,
			best);
}

void hd_spelling_check(void)
{
	for (char **variable = environ; variable && *variable; variable++)
		if (hd_variable_unknown(*variable))
			warn_of_variable(*variable);
}
