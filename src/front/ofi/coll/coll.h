/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Collective operations: fi_av_set(3), fi_collective(3). Calls go to what is below alone;
 * the files, lowest first:
 *
 *	set.c	  ordered sets of addresses
 *	av_set.c  fi_av_set(3), which are such sets of one AV
 *	plan.c	  schedules: what one member of a group does, step by step
 *	group.c	  groups: the endpoint behind one, its members, and how it ends
 *	run.c	  carrying out a schedule
 *	join.c	  fi_join(3) with FI_COLLECTIVE
 *	calls.c	  the operations themselves, and fi_query_collective(3)
 *
 * An endpoint with FI_COLLECTIVE has others of the engine beside it, at slots of its name: one from
 * fi_enable on, where those who join greet each other, and one for each group that it has joined.
 * So nothing of a group ever meets a receive of the program's, is counted as one of its messages,
 * or waits in its queue; and a group ends by closing its endpoint, which cancels what is under way
 * and tells the others.
 *
 * A group fails as a whole: whoever waits for somebody who is gone closes the endpoint of the group
 * too, and so those who wait for him learn of it.
 */
#ifndef HEDDLE_FRONT_OFI_COLL_COLL_H
#define HEDDLE_FRONT_OFI_COLL_COLL_H

#include "front/ofi/ep.h"

/* hd_fi_av_set_open is fi_av_set(3). */
int hd_fi_av_set_open(struct fid_av *av, struct fi_av_set_attr *attr, struct fid_av_set **out, void *context);

/*
 * hd_fi_coll_enable: the endpoint, which is enabled in the engine, may join groups from now on. 0
 * or the errno of fi_enable.
 * hd_fi_coll_close: it is being closed, and is in no group. Caller holds the node's lock for both.
 */
int hd_fi_coll_enable(struct hd_fi_ep *ep);
void hd_fi_coll_close(struct hd_fi_ep *ep);

/* hd_fi_coll_join is fi_join(3) with FI_COLLECTIVE: addr is a struct fi_collective_addr. */
int hd_fi_coll_join(struct hd_fi_ep *ep, const struct fi_collective_addr *addr, uint64_t flags,
		    struct fid_mc **out, void *context);

extern struct fi_ops_collective hd_fi_collective_ops;
int hd_fi_query_collective(struct fid_domain *domain, enum fi_collective_op coll,
			   struct fi_collective_attr *attr, uint64_t flags);

#endif
