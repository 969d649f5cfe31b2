/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* The kinds of endpoints that there are, by enum hd_ep_classes: private to node. */
#ifndef HD_ENGINE_EP_CLASSES_H
#define HD_ENGINE_EP_CLASSES_H

#include "engine/ep/ep.h"

extern const struct hd_ep_class hd_ep_classes[HD_EP_CLASSES];

#endif
