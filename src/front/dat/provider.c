/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * What libdat2 finds when it has loaded us by a line of dat.conf: a provider,
 * entered into its registry.
 *
 * Thread safety is part of a provider's name there: a program finds the line that says what the
 * program was built to ask for, and dat_ia_close(3) looks the provider up by what it says of
 * itself. So there are two tables, which differ in that answer alone: all of this front may be
 * called by any thread.
 */
#include "front/dat/dat_front.h"

#include <stdio.h>

static __typeof__(*(DAT_IA_OPEN_FUNC)0) open_unsafe, open_safe;

static DAT_PROVIDER providers[2] = {
	[DAT_FALSE] = {
		.device_name = "heddle",
#define HU_CALL(type, name) .name##_func = hu_##name,
#include "front/dat/calls.def"
		.ia_open_func = open_unsafe,
	},
	[DAT_TRUE] = {
		.device_name = "heddle",
#include "front/dat/calls.def"
#undef HU_CALL
		.ia_open_func = open_safe,
	},
};

static DAT_RETURN open_unsafe(const DAT_NAME_PTR name, DAT_COUNT qlen, DAT_EVD_HANDLE *async,
			      DAT_IA_HANDLE *out)
{
	return hu_ia_open_by(&providers[DAT_FALSE], false, name, qlen, async, out);
}

static DAT_RETURN open_safe(const DAT_NAME_PTR name, DAT_COUNT qlen, DAT_EVD_HANDLE *async,
			    DAT_IA_HANDLE *out)
{
	return hu_ia_open_by(&providers[DAT_TRUE], true, name, qlen, async, out);
}

HU_PUBLIC __typeof__(*(DAT_PROVIDER_INIT_FUNC)0) dat_provider_init;
HU_PUBLIC __typeof__(*(DAT_PROVIDER_FINI_FUNC)0) dat_provider_fini;

/*
 * The name is that of the line, whatever it is called there, and libdat2 looks for it
 * again in dat_ia_close: of two lines with our library, in the last. A refusal is
 * libdat2's to report (DAT_DBG_TYPE).
 */
void dat_provider_init(const DAT_PROVIDER_INFO *info, const char *instance_data)
{
	static char names[2][DAT_NAME_MAX_LENGTH];
	bool safe = info->is_thread_safe == DAT_TRUE;

	hu_found_by_name = &providers[DAT_FALSE];
	(void)snprintf(names[safe], sizeof(names[safe]), "%s", info->ia_name);
	providers[safe].device_name = names[safe];
	(void)dat_registry_add_provider(&providers[safe], info);
}

void dat_provider_fini(const DAT_PROVIDER_INFO *info)
{
	(void)dat_registry_remove_provider(&providers[info->is_thread_safe == DAT_TRUE], info);
}
