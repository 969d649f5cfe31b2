/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * A node, whole: private to node, for who makes it and takes it apart. Everybody else sees what his
 * room and those below it keep: core/state.h.
 */
#ifndef HD_ENGINE_NODE_H
#define HD_ENGINE_NODE_H

#include "engine/cm/cm.h"

#include <assert.h>
#include <stddef.h>

struct hd_node {
	struct hd_conns conns;
};

/* What hd_core and its like rely on: each begins with the one below. */
#define HD_BEGINS(state, member) \
	static_assert(offsetof(struct state, member) == 0, #state " begins with something else")
HD_BEGINS(hd_node, conns);
HD_BEGINS(hd_conns, below);
HD_BEGINS(hd_eps, below);
HD_BEGINS(hd_qps, below);
HD_BEGINS(hd_xfers, below);
HD_BEGINS(hd_rqs, below);
HD_BEGINS(hd_regions, below);
HD_BEGINS(hd_links, below);
HD_BEGINS(hd_names, below);
HD_BEGINS(hd_events, below);

#endif
