/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* A node with a CQ that tells of its completions by a channel; for tests with cmocka. */
#ifndef HD_TEST_TOLD_H
#define HD_TEST_TOLD_H

#include "engine/event/event.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

struct told {
	struct hd_node *node;
	struct hd_channel *channel;
	struct hd_cq *cq;
	struct hd_channel_item item;
	uint32_t taken;
	int overruns; /* for who counts them */
};

/*
 * told_open: *t, which is zero, gets them. Where attr.item is &t->item the CQ tells the channel
 * from the beginning. told_close ends them.
 */
static inline void told_open(struct told *t, const struct hd_node_attr *node, struct hd_cq_attr attr)
{
	t->item.taken = &t->taken;
	t->item.owner = t;
	assert_int_equal(hd_node_open(node, &t->node), 0);
	assert_int_equal(hd_channel_open(t->node, &t->channel), 0);
	if (attr.item)
		attr.channel = t->channel;
	hd_node_lock(t->node);
	assert_int_equal(hd_cq_open(t->node, &attr, &t->cq), 0);
	hd_node_unlock(t->node);
}

static inline int told_close(struct told *t)
{
	hd_node_lock(t->node);
	hd_cq_close(t->cq);
	hd_node_unlock(t->node);
	hd_channel_close(t->channel);
	return hd_node_close(t->node);
}

#endif
