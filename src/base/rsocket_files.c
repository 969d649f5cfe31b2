/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
#include "base/rsocket_files.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"

static const struct hd_rsocket_file_info files[] = {
#define HD_RSOCKET_FILE(name_, file_, unit_, least_, most_, fallback_, meaning_) \
	[HD_RSOCKET_##name_] = { \
		.file = file_, \
		.unit = unit_, \
		.least = least_, \
		.most = most_, \
		.fallback = fallback_, \
		.meaning = meaning_, \
	},
#include "base/rsocket_files.def"
#undef HD_RSOCKET_FILE
};

const struct hd_rsocket_file_info *hd_rsocket_file_at(unsigned i)
{
	return i < HD_RSOCKET_FILES ? &files[i] : NULL;
}

void hd_rsocket_file_help(enum hd_rsocket_file id, char *text, size_t size)
{
	const struct hd_rsocket_file_info *info = &files[id];

	snprintf(text, size, "%s from %d to %d", info->unit, info->least, info->most);
}

/* One line, without its end; false: there is no such file. */
static bool first_line(const char *path, char *line, int size)
{
	FILE *file = fopen(path, "re");

	if (!file)
		return false;
	if (!fgets(line, size, file))
		line[0] = '\0';
	line[strcspn(line, "\n")] = '\0';
	fclose(file);
	return true;
}

int hd_rsocket_file_read(enum hd_rsocket_file id, bool *found)
{
	const struct hd_rsocket_file_info *info = &files[id];
	char path[64], line[64], help[96], *end;

	snprintf(path, sizeof(path), HD_RSOCKET_FOLDER "%s", info->file);
	*found = first_line(path, line, sizeof(line));
	if (!*found)
		return info->fallback;
	const long value = strtol(line, &end, 10);

	if (end != line && (!*end || isspace((unsigned char)*end)) && value >= info->least)
		return value > info->most ? info->most : (int)value;
	*found = false;
	hd_rsocket_file_help(id, help, sizeof(help));
	hd_warn("%s: \"%s\" is not understood: it takes %s; going on as without the file", path, line, help);
	return info->fallback;
}
