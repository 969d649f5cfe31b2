/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* What event keeps of a node: see core/state.h. Private to the rooms: others read no_cq alone. */
#ifndef HD_ENGINE_EVENT_STATE_H
#define HD_ENGINE_EVENT_STATE_H

#include "engine/core/core.h"

struct hd_events {
	struct hd_core below;	   /* first */
	TAILQ_HEAD(, hd_cntr) due; /* counters that have reached a trigger's threshold */
	bool firing;		   /* triggers are being fired: what they make due waits its turn */
	struct hd_cq *no_cq;	   /* stands for the queue of an endpoint that has none */
	int cqs, cntrs;
	int answered; /* connections that wait for their callers: hd_events_answered */
};

/* hd_events: of this node. */
static inline struct hd_events *hd_events(const struct hd_node *node)
{
	return (struct hd_events *)node;
}

#endif
