/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Connections: services, requests and the two ends of one (conn.h), and questions that fronts ask
 * each other (ask.h). dispatch calls it with what has come, node when a peer has ended. With the
 * node's lock; nothing blocks. Upcalls: none but the front's, hd_service.wants and
 * hd_service.screen.
 */
#ifndef HD_ENGINE_CM_H
#define HD_ENGINE_CM_H

#include "engine/cm/ask.h"
#include "engine/cm/conn.h"
#include "engine/cm/state.h"

#endif
