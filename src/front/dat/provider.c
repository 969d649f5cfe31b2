/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* What libdat2 finds when it has loaded us by a line of dat.conf: the provider, entered into its registry. */
#include "front/dat/dat_front.h"

DAT_PROVIDER hu_provider = {
	.device_name = "heddle",
#define HU_CALL(type, name) .name##_func = hu_##name,
#include "front/dat/calls.def"
#undef HU_CALL
};

HU_PUBLIC __typeof__(*(DAT_PROVIDER_INIT_FUNC)0) dat_provider_init;
HU_PUBLIC __typeof__(*(DAT_PROVIDER_FINI_FUNC)0) dat_provider_fini;

/* The name is that of the line, whatever it is called there. A refusal is libdat2's to report (DAT_DBG_TYPE). */
void dat_provider_init(const DAT_PROVIDER_INFO *info, const char *instance_data)
{
	(void)dat_registry_add_provider(&hu_provider, info);
}

void dat_provider_fini(const DAT_PROVIDER_INFO *info)
{
	(void)dat_registry_remove_provider(&hu_provider, info);
}
