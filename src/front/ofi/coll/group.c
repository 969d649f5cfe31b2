/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Groups: their endpoints and members. */
#include "front/ofi/coll/group.h"

#include "front/ofi/auth.h"

#include <stdlib.h>

/* ---- endpoints and destinations -------------------------------------------------------------- */

int hd_fi_coll_open(const struct hd_fi_ep *ep, uint32_t slot, struct hd_evq *evq, void *owner,
		    struct hd_ep **out)
{
	struct hd_ep_attr attr = { .type = HD_EP_RDM,
				   .policy = HD_EP_DIRECTED,
				   .beside = ep->ep,
				   .slot = slot,
				   .evq = evq,
				   .owner = owner };

	hd_fi_auth_attr(&ep->auth, &attr);
	return hd_ep_open(ep->node, &attr, out);
}

int hd_fi_coll_dest(const struct hd_fi_group *group, uint32_t rank, uint32_t slot, struct hd_dest **out)
{
	const struct hd_fi_member *member = &group->member[rank];
	union hd_fi_addr name = member->name;

	if (slot)
		hd_name_set_slot(&name.sa, slot);
	return hd_dest_get_keyed(group->ep->node, &name.sa, member->key, out);
}

/* ---- ties ------------------------------------------------------------------------------------ */

/* Is there something that it has not got from that member, or will have to send to it? */
static bool needs(const struct hd_fi_run *run, uint32_t rank)
{
	for (size_t i = 0; i < run->at && i < run->plan.count; i++)
		if (run->flight[i].under_way && run->flight[i].receives && run->flight[i].rank == rank)
			return true;
	for (size_t i = run->at; i < run->plan.count; i++)
		if (run->plan.step[i].kind == HD_FI_STEP_SEND && run->plan.step[i].rank == rank)
			return true;
	return false;
}

/*
 * Who is through with all operations may close its group while others are not: it has sent
 * them all that they wait for.
 */
static void tie_told(struct hd_follow *follow, int err)
{
	struct hd_fi_tie *tie = (struct hd_fi_tie *)((char *)follow - offsetof(struct hd_fi_tie, follow));
	const struct hd_fi_run *run;

	if (!err)
		return;
	tie->gone = true;
	TAILQ_FOREACH(run, &tie->group->runs, entry)
		if (needs(run, tie->rank))
			hd_fi_group_fail(tie->group, hd_status_of(err));
}

static int tie_bind(struct hd_fi_tie *tie)
{
	const struct hd_fi_group *group = tie->group;
	int rc = hd_fi_coll_dest(group, tie->rank, group->member[tie->rank].slot, &tie->to);

	if (rc)
		return rc;
	rc = hd_fi_coll_dest(group, tie->rank, 0, &tie->from);
	if (rc)
		hd_dest_put(tie->to);
	return rc;
}

struct hd_fi_tie *hd_fi_group_tie(struct hd_fi_group *group, uint32_t rank)
{
	struct hd_fi_tie *tie = group->member[rank].tie;

	if (tie)
		return tie;
	tie = calloc(1, sizeof(*tie));
	if (!tie)
		return NULL;
	tie->group = group;
	tie->rank = rank;
	if (tie_bind(tie)) {
		free(tie);
		return NULL;
	}
	tie->follow.fn = tie_told;
	hd_dest_follow(tie->to, &tie->follow);
	group->member[rank].tie = tie;
	return tie;
}

static void ties_free(struct hd_fi_group *group)
{
	for (uint32_t i = 0; i < group->count; i++) {
		struct hd_fi_tie *tie = group->member[i].tie;

		if (!tie)
			continue;
		hd_dest_unfollow(tie->to, &tie->follow);
		hd_dest_put(tie->to);
		hd_dest_put(tie->from);
		free(tie);
		group->member[i].tie = NULL;
	}
}

/* ---- ends ------------------------------------------------------------------------------------ */

void hd_fi_run_end(struct hd_fi_run *run, enum hd_status status)
{
	TAILQ_REMOVE(&run->group->runs, run, entry);
	hd_deferred_drop(run->group->ep->node, &run->go);
	run->ended(run, status);
	hd_fi_plan_free(&run->plan);
	free(run->space[HD_FI_TMP]);
	free(run);
}

void hd_fi_group_hold(struct hd_fi_group *group)
{
	hd_deferred_drop(group->ep->node, &group->end);
	group->status = HD_S_CANCELLED;
}

void hd_fi_group_end(struct hd_fi_group *group, enum hd_status status)
{
	struct hd_fi_run *run;

	hd_fi_group_hold(group);
	group->status = status;
	if (group->own)
		hd_ep_close(group->own);
	group->own = NULL;
	ties_free(group);
	while ((run = TAILQ_FIRST(&group->runs)))
		hd_fi_run_end(run, status);
}

static void group_end_now(struct hd_deferred *deferred)
{
	struct hd_fi_group *group =
		(struct hd_fi_group *)((char *)deferred - offsetof(struct hd_fi_group, end));

	hd_fi_group_end(group, group->status);
}

void hd_fi_group_fail(struct hd_fi_group *group, enum hd_status status)
{
	if (hd_fi_group_broken(group))
		return;
	group->status = status;
	hd_deferred_post(group->ep->node, &group->end);
}

/* ---- life ------------------------------------------------------------------------------------ */

struct hd_fi_group *hd_fi_group_at(const struct hd_fi_ep *ep, fi_addr_t addr)
{
	const uint64_t slot = addr ^ HD_FI_GROUP_BIT;

	return ep->coll && slot < HD_FI_GROUPS ? ep->coll->group[slot] : NULL;
}

static int members_fill(struct hd_fi_group *group, const fi_addr_t *addrs)
{
	const struct hd_fi_ep *ep = group->ep;
	bool found = false;

	for (uint32_t i = 0; i < group->count; i++) {
		const uint32_t index = hd_fi_av_index(ep->av, addrs[i]);
		const struct hd_fi_av_entry *entry;

		if (index == HD_FI_NO_INDEX)
			return hd_fi_no(FI_EINVAL,
					"fi_join with a set of what is in the address vector no longer");
		entry = &ep->av->entry[index];
		if (hd_name_slot(&entry->addr.sa))
			return hd_fi_no(FI_EINVAL, "fi_join with an endpoint that has not FI_COLLECTIVE");
		group->member[i].addr = addrs[i];
		group->member[i].name = entry->addr;
		group->member[i].key = entry->key ? hd_fi_auth_digest(entry->key) : ep->av->key;
		if (!found && hd_ep_is_named(ep->ep, &entry->addr.sa)) {
			group->rank = i;
			found = true;
		}
	}
	return found ? 0 : hd_fi_no(FI_EINVAL, "fi_join with a set that has not the endpoint itself");
}

/* A slot that nobody has; the endpoint takes it. */
static int group_open(struct hd_fi_group *group)
{
	struct hd_fi_coll *coll = group->ep->coll;
	int rc;

	for (uint32_t tries = 0; tries < HD_FI_GROUPS; tries++) {
		const uint32_t at = coll->next++ % HD_FI_GROUPS;

		if (coll->group[at])
			continue;
		rc = hd_fi_coll_open(group->ep, HD_FI_SLOT_GROUPS + at, NULL, group, &group->own);
		if (rc)
			return hd_fi_ret(rc, "fi_join");
		coll->group[at] = group;
		group->slot = HD_FI_SLOT_GROUPS + at;
		group->fid.fi_addr = HD_FI_GROUP_BIT | at;
		return 0;
	}
	return hd_fi_no(FI_ENOSPC, "fi_join of more groups than an endpoint can join");
}

int hd_fi_group_make(struct hd_fi_ep *ep, const fi_addr_t *addrs, size_t count, struct hd_fi_group **out)
{
	struct hd_fi_group *group = calloc(1, sizeof(*group) + count * sizeof(*group->member));
	int rc;

	if (!group)
		return hd_fi_no(FI_ENOMEM);
	group->ep = ep;
	group->count = (uint32_t)count;
	group->end.fn = group_end_now;
	TAILQ_INIT(&group->runs);
	rc = members_fill(group, addrs);
	if (!rc)
		rc = group_open(group);
	if (rc) {
		free(group);
		return rc;
	}
	group->member[group->rank].slot = group->slot;
	*out = group;
	return 0;
}

void hd_fi_group_free(struct hd_fi_group *group)
{
	group->ep->coll->group[group->slot - HD_FI_SLOT_GROUPS] = NULL;
	free(group->slots);
	free(group);
}
