/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* What cm keeps of a node: see core/state.h. */
#ifndef HD_ENGINE_CM_STATE_H
#define HD_ENGINE_CM_STATE_H

#include "engine/ep/ep.h"

/* A call that was taken back before it was answered: whom it asked, and where. */
#define HD_WITHDRAWN 32
struct hd_withdrawn {
	struct hd_node_id node;
	uint32_t number; /* 0: none */
	uint64_t key;	 /* authorization key of the endpoint that called */
	struct sockaddr_storage at;
};

struct hd_conns {
	struct hd_eps below; /* first */
	LIST_HEAD(, hd_service) services;
	struct hd_callers *callers; /* whom connections wait for: answered.c */
	/* number of the last question, of whatever call */
	uint32_t requests;
	struct hd_withdrawn withdrawn[HD_WITHDRAWN]; /* the last ones; decline.c, as what follows */
	uint32_t next_withdrawn;
	LIST_HEAD(, hd_decline) declines;
	LIST_HEAD(, hd_asks) asks; /* of all endpoints that answer questions: ask.c */
};

/* hd_conns: of this node. */
static inline struct hd_conns *hd_conns(const struct hd_node *node)
{
	return (struct hd_conns *)node;
}

#endif
