/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Who is told what, and in which order: the tables of upcalls that a node gives to its lower rooms.
 */
#ifndef HD_ENGINE_NODE_OBSERVERS_H
#define HD_ENGINE_NODE_OBSERVERS_H

#include "engine/link/link.h"

extern const struct hd_link_observers hd_link_observers;

#endif
