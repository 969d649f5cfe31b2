/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Which transports there are: the table that a node opens, best last, and what carries its groups.
 */
#ifndef HD_ENGINE_TRANSPORTS_H
#define HD_ENGINE_TRANSPORTS_H

#include "engine/transport.h"

extern const struct hd_caster *const hd_caster;
extern const struct hd_transport *const hd_transports[]; /* NULL behind the last */

#endif
