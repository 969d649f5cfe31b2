/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
#ifndef HEDDLE_TOOL_SPELLING_H
#define HEDDLE_TOOL_SPELLING_H

#include "base/config.h"

/* Settings whose names are nearly right: as environment variables nobody else would notice them. */

/*
 * hd_setting_like returns the setting whose name becomes `name`, with or without HEDDLE_ in front and in any case of
 * letters, by one or two letters more, less or changed; HD_SET_COUNT when there is none, or `name` is a setting.
 */
enum hd_setting hd_setting_like(const char *name);

/* hd_warn_of_spelling complains of each variable of the environment that is such a name, with HEDDLE_ or FI_HEDDLE_ in front. */
void hd_warn_of_spelling(void);

#endif
