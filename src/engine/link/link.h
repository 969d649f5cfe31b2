/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Peers and the links to them, for the rooms above. */
#ifndef HD_ENGINE_LINK_H
#define HD_ENGINE_LINK_H

#include "engine/link/arrival.h"
#include "engine/link/credit.h"
#include "engine/link/dest.h"
#include "engine/link/observers.h"
#include "engine/link/peer.h"
#include "engine/link/pending.h"
#include "engine/link/state.h"

#endif
