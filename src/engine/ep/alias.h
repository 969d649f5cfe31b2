/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* What an endpoint has with several authorization keys: private to ep. */
#ifndef HD_ENGINE_ALIAS_H
#define HD_ENGINE_ALIAS_H

#include "engine/ep/ep.h"

/*
 * hd_aliases_open: the further ones that `attr` asks for: 0, or negative, and those that there are
 * go with the endpoint. hd_aliases_close: they close.
 */
int hd_aliases_open(struct hd_ep *ep, const struct hd_ep_attr *attr);
void hd_aliases_close(struct hd_ep *ep);

#endif
