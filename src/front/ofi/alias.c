/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * fi_ep_alias(3): a second handle for an endpoint, which differs in its default flags alone. It is
 * a copy of what the data calls need; everything else is done with the endpoint itself, which
 * cannot be closed before its aliases.
 */
#include "front/ofi/ctx.h"
#include "front/ofi/trigger.h"

#include <stdlib.h>

/* Everything but the flags is as the endpoint has it now. */
static void sync_one(struct hd_fi_ep *alias, const struct hd_fi_ep *ep)
{
	const struct hd_fi_ep own = *alias;

	*alias = *ep;
	alias->bound.tx.op_flags = own.bound.tx.op_flags;
	alias->bound.rx.op_flags = own.bound.rx.op_flags;
	alias->parent = own.parent;
	alias->sibling = own.sibling;
	alias->object = own.object;
	alias->named = NULL; /* it is the endpoint's */
	LIST_INIT(&alias->aliases);
	LIST_INIT(&alias->regions);
	alias->triggered = own.triggered;
	atomic_init(&alias->sharing.users, 0);
	if (!ep->ep)
		return;
	hd_fi_ep_settle(alias);
	hd_fi_ep_tables(alias);
}

void hd_fi_aliases_sync(struct hd_fi_ep *ep)
{
	struct hd_fi_ep *alias;

	LIST_FOREACH(alias, &ep->aliases, sibling)
		sync_one(alias, ep);
}

static bool flags_apply(struct hd_fi_bound *bound, const struct hd_fi_offer *offer, uint64_t flags)
{
	uint64_t ops = flags & ~(FI_TRANSMIT | FI_RECV);

	switch (flags & (FI_TRANSMIT | FI_RECV)) {
	case FI_TRANSMIT:
		bound->tx.op_flags = ops;
		return hd_fi_op_flags_can_be(offer, true, ops);
	case FI_RECV:
		bound->rx.op_flags = ops;
		return hd_fi_op_flags_can_be(offer, false, ops);
	default:
		return false;
	}
}

int hd_fi_ep_alias(struct hd_fi_ep *ep, const struct fi_alias *arg)
{
	struct hd_fi_ep *alias, *parent = ep->parent ? ep->parent : ep;

	if (!arg || !arg->fid)
		return hd_fi_no(FI_EINVAL, "fi_ep_alias without room for the alias");
	alias = calloc(1, sizeof(*alias));
	if (!alias)
		return hd_fi_no(FI_ENOMEM);
	alias->parent = parent;
	alias->bound.tx.op_flags = ep->bound.tx.op_flags;
	alias->bound.rx.op_flags = ep->bound.rx.op_flags;
	if (!flags_apply(&alias->bound, ep->offer, arg->flags)) {
		free(alias);
		return hd_fi_no(FI_EINVAL,
				"fi_ep_alias wants FI_TRANSMIT or FI_RECV, and flags that calls take");
	}
	hd_fi_lock(ep->domain);
	sync_one(alias, parent);
	LIST_INSERT_HEAD(&parent->aliases, alias, sibling);
	hd_fi_unlock(ep->domain);
	atomic_fetch_add(&parent->sharing.users, 1);
	hd_fi_domain_add(ep->domain, &alias->object, &alias->fid.fid);
	*arg->fid = &alias->fid.fid;
	return 0;
}

int hd_fi_alias_close(struct hd_fi_ep *alias)
{
	struct hd_fi_domain *domain = alias->domain;

	bool busy;

	hd_fi_lock(domain);
	busy = !LIST_EMPTY(&alias->triggered);
	if (!busy)
		LIST_REMOVE(alias, sibling);
	hd_fi_unlock(domain);
	if (busy)
		return hd_fi_no(FI_EBUSY, "fi_close of an alias with operations that wait for a counter");
	atomic_fetch_sub(&alias->parent->sharing.users, 1);
	alias->magic = 0;
	hd_fi_domain_drop(domain, &alias->object);
	free(alias);
	return 0;
}
