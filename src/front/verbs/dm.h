/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Device memory: dm.c. */
#ifndef HEDDLE_FRONT_VERBS_DM_H
#define HEDDLE_FRONT_VERBS_DM_H

#include "front/verbs/verbs_front.h"

struct hv_dm {
	struct ibv_dm pub;
	char *memory;
	size_t length;
	int users; /* regions: under the lock */
	struct hv_import import;
};

#endif
