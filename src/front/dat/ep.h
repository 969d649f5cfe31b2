/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Endpoints, between the files about them: ep.c makes and frees them, ep_attr.c knows their
 * attributes, ep_modify.c changes them. What the others call is in dat_front.h.
 */
#ifndef HEDDLE_FRONT_DAT_EP_H
#define HEDDLE_FRONT_DAT_EP_H

#include "front/dat/dat_front.h"

/*
 * hu_ep_attr_default: for who gives none. hu_ep_attr_fill: what the program has
 * left at 0, and cannot mean.
 */
DAT_EP_ATTR hu_ep_attr_default(void);
void hu_ep_attr_fill(DAT_EP_ATTR *a);

/*
 * hu_ep_attr_is_right: may an endpoint be so? hu_ep_attr_grant: the lengths that it has then,
 * whatever less was asked for.
 */
bool hu_ep_attr_is_right(const DAT_EP_ATTR *a);
void hu_ep_attr_grant(DAT_EP_ATTR *a);

/*
 * hu_ep_check_handles: may an endpoint of this IA have those of *p? DAT_SUCCESS, or
 * DAT_INVALID_HANDLE with what is wrong.
 */
DAT_RETURN hu_ep_check_handles(const struct hu_ia *ia, const DAT_EP_PARAM *p);

/*
 * hu_ep_begin: the endpoint of a call that says by a mask what of *param it is about, with its IA's
 * lock; known: bits that it may say. NULL, without the lock: *rc says why not.
 */
struct hu_ep *hu_ep_begin(DAT_EP_HANDLE handle, DAT_EP_PARAM_MASK mask, DAT_EP_PARAM_MASK known,
			  const DAT_EP_PARAM *param, DAT_RETURN *rc);

/*
 * hu_ep_hold: its zone, its EVDs and its shared queue have one user more. hu_ep_let_go:
 * one less. With the lock.
 */
void hu_ep_hold(struct hu_ep *ep);
void hu_ep_let_go(struct hu_ep *ep);

#endif
