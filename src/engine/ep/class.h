/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * What kinds of endpoints do in their own way when they come and go. The rooms that they belong to
 * lie below ep or above it, so the node, which knows all, has the table (node/ep_classes.c), and an
 * endpoint its row from the beginning. Nothing that is sent goes through it, and of what arrives
 * only datagrams of groups: messages go to rdm or qp by hd_ep.watch (dispatch.c), and a kind that
 * wants them otherwise posts receives with HD_RECV_WORK from a room above rdm, or adds a bit of
 * enum hd_watch_bit. hd_ep_open chooses by hd_ep_attr.type and .policy (ep_class_of in ep.c), so a
 * new kind takes a bit of enum hd_ep_policy. What it keeps of an endpoint is a pointer in struct
 * hd_ep, NULL where there is none. hd_ep_rebind drops what is posted, and tells the class nothing:
 * one that posts receives of its own needs an upcall there. What a class has is in name/ep_table.h
 * (struct hd_ep_class), as the node's page asks it as well.
 */
#ifndef HD_ENGINE_EP_CLASS_H
#define HD_ENGINE_EP_CLASS_H

#include "engine/link/link.h"

enum hd_ep_classes {
	HD_EP_CLASS_UNCONNECTED,	/* messages and datagrams; services */
	HD_EP_CLASS_CONNECTED,		/* HD_EP_MSG */
	HD_EP_CLASS_NUMBERED,		/* HD_EP_NUMBERED: queue pairs */
	HD_EP_CLASS_CONNECTED_NUMBERED, /* both: a connection that has a number, and questions */
	HD_EP_CLASSES
};

/*
 * group.c: for cast. hd_group_take: of those who receive messages. hd_group_hold: of queue pairs.
 */
void hd_group_take(struct hd_group *group, const struct hd_arrived *what);
void hd_group_hold(struct hd_group *group, const struct hd_arrived *what);

/*
 * group.c: in a forked child, memberships are the parent's. Another thread may have been
 * in the middle of anything.
 */
void hd_groups_forked(struct hd_node *node);

#endif
