/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
#ifndef HD_LOOP_H
#define HD_LOOP_H

#include "engine/transport.h"

extern const struct hd_transport hd_loop_transport;

#endif
