/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* What ep keeps of a node: see core/state.h. */
#ifndef HD_ENGINE_EP_STATE_H
#define HD_ENGINE_EP_STATE_H

#include "engine/qp/qp.h"

struct hd_ep_class;

struct hd_eps {
	struct hd_qps below;		      /* first */
	const struct hd_ep_class *ep_classes; /* class.h */
	LIST_HEAD(, hd_group) groups;
	const struct hd_caster *caster; /* what carries them */
	int ep_users;
};

/* hd_eps: of this node. */
static inline struct hd_eps *hd_eps(const struct hd_node *node)
{
	return (struct hd_eps *)node;
}

/* hd_eps_used: so many users more, or fewer, keep the node from closing. */
static inline void hd_eps_used(struct hd_node *node, int by)
{
	hd_eps(node)->ep_users += by;
}

#endif
