/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
#ifndef HEDDLE_BASE_SPELLING_H
#define HEDDLE_BASE_SPELLING_H

#include "base/config.h"

/*
 * Settings whose names are not quite right: as environment variables nobody else would notice them.
 */

/*
 * hd_setting_like returns the setting whose name becomes `name`, with or without HEDDLE_ in front
 * and in any case of letters, by one or two letters more, less or changed, or that is a part of it,
 * or of which it is one; HD_SET_COUNT when there is none, or `name` is a setting.
 */
enum hd_setting hd_setting_like(const char *name);

/* hd_variable_unknown: has this NAME=VALUE HEDDLE_ or FI_HEDDLE_ in front, and is no setting? */
bool hd_variable_unknown(const char *variable);

/*
 * hd_spelling_check warns of each variable of the environment that has HEDDLE_ or
 * FI_HEDDLE_ in front and is no setting, and names the one that is nearest. Not while the
 * environment is being changed.
 */
void hd_spelling_check(void);

#endif
