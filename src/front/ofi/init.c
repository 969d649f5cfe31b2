/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * The door: fi_prov_ini, which the library calls when it has loaded us, and what is
 * set up once per process.
 */
#include "base/config.h"
#include "base/log.h"
#include "front/ofi/ofi.h"

#include <ctype.h>

static const enum fi_log_level fi_level[] = {
	[HD_LOG_ERROR] = FI_LOG_WARN,
	[HD_LOG_WARN] = FI_LOG_WARN,
	[HD_LOG_INFO] = FI_LOG_INFO,
	[HD_LOG_DEBUG] = FI_LOG_DEBUG,
};

/* A line goes to libfabric's log where that wants it (FI_LOG_LEVEL), else where HEDDLE_LOG says. */
static bool to_fi_log(void *arg, enum hd_log_level level, const char *room, const char *message)
{
	if (!fi_log_enabled(&hd_fi_provider, fi_level[level], FI_LOG_CORE))
		return false;
	fi_log(&hd_fi_provider, fi_level[level], FI_LOG_CORE, room, 0, "%s\n", message);
	return true;
}

static void route_log(void)
{
	for (enum hd_log_level level = HD_LOG_DEBUG; level > HD_LOG_WARN; level--)
		if (fi_log_enabled(&hd_fi_provider, fi_level[level], FI_LOG_CORE)) {
			hd_log_raise(level);
			break;
		}
	hd_log_set_sink(to_fi_log, NULL);
}

/*
 * The library lists these with `fi_info -e`. The values are read by base/config, which knows
 * both spellings of a name.
 */
static void define_params(void)
{
	for (unsigned i = 0;; i++) {
		const struct hd_setting_info *info = hd_setting_at(i);
		char name[64], takes[160];
		size_t n = 0;

		if (!info)
			break;
		for (; info->name[n] && n < sizeof(name) - 1; n++)
			name[n] = (char)tolower((unsigned char)info->name[n]);
		name[n] = '\0';
		hd_setting_help(i, takes, sizeof(takes));
		fi_param_define(&hd_fi_provider, name, FI_PARAM_STRING, "%s Takes %s; default: %s.",
				info->meaning, takes, *info->fallback ? info->fallback : "(empty)");
	}
}

/* The library unloads us after this; nothing of ours may be called any more. */
static void cleanup(void)
{
	hd_log_set_sink(NULL, NULL);
}

struct fi_provider hd_fi_provider = {
	.version = HD_FI_PROV_VER,
	.fi_version = HD_FI_OLDEST,
	.name = HD_FI_PROV_NAME,
	.getinfo = hd_fi_getinfo,
	.fabric = hd_fi_fabric_open,
	.cleanup = cleanup,
};

FI_EXT_INI;
FI_EXT_INI
{
	hd_config_load();
	hd_fi_provider.fi_version = hd_fi_api(); /* the library asks for no more than that */
	route_log();
	define_params();
	return &hd_fi_provider;
}
