/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
#include "tool/spelling.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "tool/tool.h"

#define NAME_MAX_LEN 40 /* longer ones are no setting's */
#define SLIPS 2		/* letters that may be wrong */

static unsigned least(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

/* How many letters must be added, left out or changed to make one of the other. `b` is at most NAME_MAX_LEN long. */
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
			row[j + 1] = least(change, least(diagonal, row[j]) + 1);
		}
	}
	return row[len];
}

enum hd_setting hd_setting_like(const char *name)
{
	enum hd_setting best = HD_SET_COUNT;
	unsigned slips = SLIPS + 1;

	if (!strncasecmp(name, "HEDDLE_", 7))
		name += 7;
	if (strlen(name) > NAME_MAX_LEN || hd_setting_find(name) != HD_SET_COUNT)
		return HD_SET_COUNT;
	for (unsigned i = 0; i < HD_SET_COUNT; i++) {
		unsigned d = distance(name, hd_setting_at(i)->name);

		/* short words are like each other by chance */
		if (d < slips && 2 * d < strlen(hd_setting_at(i)->name)) {
			slips = d;
			best = (enum hd_setting)i;
		}
	}
	return best;
}

void hd_warn_of_spelling(void)
{
	for (char **variable = environ; variable && *variable; variable++) {
		size_t front = strncmp(*variable, "FI_", 3) ? 0 : 3, len = strcspn(*variable, "=");
		char name[NAME_MAX_LEN];

		if (strncmp(*variable + front, "HEDDLE_", 7) || len - front >= sizeof(name))
			continue;
		snprintf(name, sizeof(name), "%.*s", (int)(len - front), *variable + front);
		enum hd_setting id = hd_setting_like(name);
		if (id != HD_SET_COUNT)
			hd_complain("warning: %.*s is no setting: is it %.*s%s?", (int)len, *variable,
				    (int)front, "FI_", hd_setting_at(id)->env);
	}
}
