/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * fi_join(3) with FI_COLLECTIVE. Each member opens an endpoint for the group and tells its
 * neighbours the slot of that by a greeting, from one endpoint for greetings to the other.
 * Neighbours are those whose ranks differ by a power of two. Who has been greeted by all of his
 * gathers, over the endpoints of the group, the slots of all others.
 *
 * Members may have their addresses in different order, and no number is known to all of them. So a
 * greeting is matched by its source, and by how many members there are and the ranks of both: those
 * who are members of two groups of one size, with the same ranks, have to join these in the same
 * order.
 */
#include "base/advice.h"
#include "base/log.h"
#include "front/ofi/coll/av_set.h"
#include "front/ofi/coll/run.h"
#include "front/ofi/stubs.h"

#include <stdlib.h>

#define GREETING UINT32_C(0x48446a31) /* "HDj1" */

/*
 * One greeting each way. It outlives its group: the other's is taken all the same, and not by a
 * group that is joined later.
 */
struct hd_fi_hello {
	LIST_ENTRY(hd_fi_hello) entry;
	struct hd_fi_ep *ep;
	struct hd_fi_group *group; /* NULL: it is gone */
	uint32_t rank;		   /* of the other */
	struct hd_work sent, got;
	struct hd_deferred go;
	struct hd_follow follow;
	struct hd_dest *to, *from;
	uint64_t tag_out, tag_in;
	uint32_t out[2], in[2];
	bool posted, said, sending, receiving; /* has been, is under way */
};

/* ---- the end of joining ---------------------------------------------------------------------- */

static void join_ended(struct hd_fi_run *run, enum hd_status status)
{
	struct hd_fi_group *group = run->group;
	const struct fi_eq_entry done = { .fid = &group->fid.fid, .context = group->fid.fid.context };
	struct hd_fi_eq *eq = group->ep->bound.eq;
	int rc;

	if (!status)
		for (uint32_t i = 0; i < group->count; i++)
			group->member[i].slot = group->slots[i];
	group->joined = !status;
	free(group->slots);
	group->slots = NULL;
	rc = status ? hd_fi_eq_fail(eq, &group->fid.fid, done.context, 0,
				    hd_fi_errno(hd_status_errno(status)))
		    : hd_fi_eq_post(eq, FI_JOIN_COMPLETE, &done, sizeof(done));
	if (rc)
		hd_warn("no event tells that a group has been joined: %s%s", fi_strerror(-rc),
			rc == -FI_EOVERRUN ? ": read the event queue in time" : hd_advice(-rc));
}

/* Nobody is to hear of it. */
static void join_forgotten(struct hd_fi_run *run, enum hd_status status)
{
}

/* The run that stands for the join from its beginning; it is carried out when all have greeted. */
static struct hd_fi_run *join_run(struct hd_fi_group *group)
{
	const struct hd_fi_plan_args args = {
		.members = group->count, .rank = group->rank, .count = 1, .size = sizeof(*group->slots)
	};
	struct hd_fi_plan plan;
	struct hd_fi_run *run;

	group->slots = calloc(group->count, sizeof(*group->slots));
	if (!group->slots || hd_fi_plan_make_join(&plan, &args))
		return NULL;
	run = hd_fi_run_make(group, &plan, args.size);
	if (!run)
		return NULL;
	run->space[HD_FI_BUF] = (char *)&group->slot;
	run->space[HD_FI_RESULT] = (char *)group->slots;
	run->ended = join_ended;
	return run;
}

/* ---- greetings ------------------------------------------------------------------------------- */

static void hello_forget(struct hd_fi_hello *hello)
{
	if (hello->group)
		hd_dest_unfollow(hello->to, &hello->follow);
	hello->group = NULL;
}

static void hello_free(struct hd_fi_hello *hello)
{
	hello_forget(hello);
	hd_deferred_drop(hello->ep->node, &hello->go);
	if (hello->to)
		hd_dest_put(hello->to);
	if (hello->from)
		hd_dest_put(hello->from);
	LIST_REMOVE(hello, entry);
	free(hello);
}

static void hello_fail(const struct hd_fi_hello *hello, enum hd_status status)
{
	if (hello->group)
		hd_fi_group_fail(hello->group, status);
}

/* The neighbour is not there, or no longer. */
static void hello_told(struct hd_follow *follow, int err)
{
	if (err)
		hello_fail((struct hd_fi_hello *)((char *)follow - offsetof(struct hd_fi_hello, follow)),
			   hd_status_of(err));
}

static void hello_sent(struct hd_work *work, const struct hd_cqe *e)
{
	struct hd_fi_hello *hello = (struct hd_fi_hello *)((char *)work - offsetof(struct hd_fi_hello, sent));

	hello->sending = false;
	if (e->err)
		hello_fail(hello, e->err);
	hd_deferred_post(hello->ep->node, &hello->go);
}

static void hello_got(struct hd_work *work, const struct hd_cqe *e)
{
	struct hd_fi_hello *hello = (struct hd_fi_hello *)((char *)work - offsetof(struct hd_fi_hello, got));

	hello->receiving = false;
	if (e->err)
		hello_fail(hello, e->err);
	else if (e->len != sizeof(hello->in) || hello->in[0] != GREETING ||
		 hello->in[1] - HD_FI_SLOT_GROUPS >= HD_FI_GROUPS)
		hello_fail(hello, HD_S_PROTOCOL);
	hd_deferred_post(hello->ep->node, &hello->go);
}

static int hello_say(struct hd_fi_hello *hello)
{
	struct hd_fi_coll *coll = hello->ep->coll;
	int rc;

	if (hello->said)
		return 0;
	hello->sending = true;
	rc = hd_send(coll->greeting, hello->to, hello->out, sizeof(hello->out), hello->tag_out, 0,
		     &hello->sent, hd_fi_coll_send_flags(&hello->ep->call));
	hello->said = !rc;
	if (rc)
		hello->sending = false;
	return rc;
}

static int hello_listen(struct hd_fi_hello *hello)
{
	const struct iovec iov = { hello->in, sizeof(hello->in) };
	const struct hd_recv_args args = { .iov = &iov,
					   .count = 1,
					   .flags = HD_RECV_TAGGED | HD_RECV_WORK,
					   .tag = hello->tag_in,
					   .src = hello->from,
					   .ctx = &hello->got };
	int rc;

	if (hello->posted)
		return 0;
	hello->receiving = true;
	rc = hd_recv(hello->ep->coll->greeting, &args);
	hello->posted = !rc;
	if (rc)
		hello->receiving = false;
	return rc;
}

/* Both have greeted each other. */
static void hello_over(struct hd_fi_hello *hello)
{
	struct hd_fi_group *group = hello->group;
	const uint32_t rank = hello->rank, slot = hello->in[1];

	hello_free(hello);
	if (!group || hd_fi_group_broken(group))
		return;
	group->member[rank].slot = slot;
	if (!--group->unmet)
		hd_deferred_post(group->ep->node, &TAILQ_FIRST(&group->runs)->go);
}

static void hello_go(struct hd_deferred *deferred)
{
	struct hd_fi_hello *hello =
		(struct hd_fi_hello *)((char *)deferred - offsetof(struct hd_fi_hello, go));
	int rc = hello_listen(hello);

	if (!rc)
		rc = hello_say(hello);
	if (rc == -EAGAIN || rc == -ENOMEM) {
		hd_deferred_post(hello->ep->node, &hello->go);
	} else if (rc) {
		hello_fail(hello, hd_status_of(rc));
		hello->said = true;
	}
	if (hello->posted && hello->said && !hello->sending && !hello->receiving)
		hello_over(hello);
}

static uint64_t hello_tag(const struct hd_fi_group *group, uint32_t from, uint32_t to)
{
	return (uint64_t)group->count << 42 | (uint64_t)from << 21 | to;
}

static int hello_begin(struct hd_fi_group *group, uint32_t rank)
{
	struct hd_fi_hello *hello = calloc(1, sizeof(*hello));
	int rc;

	if (!hello)
		return hd_fi_no(FI_ENOMEM);
	hello->ep = group->ep;
	hello->rank = rank;
	hello->sent.done = hello_sent;
	hello->got.done = hello_got;
	hello->go.fn = hello_go;
	hello->follow.fn = hello_told;
	hello->out[0] = GREETING;
	hello->out[1] = group->slot;
	hello->tag_out = hello_tag(group, group->rank, rank);
	hello->tag_in = hello_tag(group, rank, group->rank);
	LIST_INSERT_HEAD(&group->ep->coll->hellos, hello, entry);
	rc = hd_fi_coll_dest(group, rank, HD_FI_SLOT_GREETING, &hello->to);
	if (!rc)
		rc = hd_fi_coll_dest(group, rank, 0, &hello->from);
	if (rc) {
		hello_free(hello);
		return hd_fi_ret(rc, "fi_join");
	}
	hello->group = group;
	hd_dest_follow(hello->to, &hello->follow);
	hd_deferred_post(group->ep->node, &hello->go);
	group->unmet++;
	return 0;
}

/* A rank may be a neighbour both ways round, and is greeted once. */
static int greet_all(struct hd_fi_group *group)
{
	const uint32_t n = group->count, me = group->rank;
	int rc = 0;

	for (uint32_t by = 1; by < n && !rc; by <<= 1) {
		const uint32_t ranks[] = { (uint32_t)(((uint64_t)me + by) % n), (me + n - by) % n };

		for (int i = 0; i < 2 && !rc; i++) {
			if (group->slots[ranks[i]])
				continue;
			group->slots[ranks[i]] = 1;
			rc = hello_begin(group, ranks[i]);
		}
	}
	return rc;
}

static void hellos_forget(const struct hd_fi_group *group)
{
	struct hd_fi_hello *hello;

	LIST_FOREACH(hello, &group->ep->coll->hellos, entry)
		if (hello->group == group)
			hello_forget(hello);
}

/* ---- joining and leaving --------------------------------------------------------------------- */

/*
 * Whoever waits for an operation is told that it has been cancelled; who waits for the join has
 * closed what he waits for.
 */
static int group_close(struct fid *fid)
{
	struct hd_fi_group *group = (struct hd_fi_group *)fid;
	struct hd_fi_ep *ep = group->ep;

	hd_fi_domain_drop(ep->domain, &group->object);
	hd_fi_lock(ep->domain);
	hellos_forget(group);
	if (!group->joined && !TAILQ_EMPTY(&group->runs))
		TAILQ_FIRST(&group->runs)->ended = join_forgotten;
	hd_fi_group_hold(group);
	if (group->own)
		hd_ep_settle(group->own);
	hd_fi_group_end(group, HD_S_CANCELLED);
	hd_fi_group_free(group);
	hd_fi_unlock(ep->domain);
	atomic_fetch_sub(&ep->sharing.users, 1);
	return 0;
}

static struct fi_ops group_fid_ops = HD_FI_FID_OPS(group_close, hd_fi_no_bind, hd_fi_no_control);

static int join_begin(struct hd_fi_group *group)
{
	struct hd_fi_run *run = join_run(group);
	int rc;

	if (!run)
		return hd_fi_no(FI_ENOMEM);
	TAILQ_INSERT_TAIL(&group->runs, run, entry);
	group->operations++;
	rc = greet_all(group);
	if (!rc && !group->unmet)
		hd_deferred_post(group->ep->node, &run->go);
	return rc;
}

/* It did not come to anything: as if it had not been. */
static void join_undo(struct hd_fi_group *group)
{
	struct hd_fi_run *run = TAILQ_FIRST(&group->runs);

	hellos_forget(group);
	if (run)
		run->ended = join_forgotten;
	hd_fi_group_end(group, HD_S_CANCELLED);
	hd_fi_group_free(group);
}

/* Caller holds the node's lock. */
static int join_with_lock(struct hd_fi_ep *ep, const struct fi_collective_addr *addr, void *context,
			  struct hd_fi_group **out)
{
	const struct hd_fi_av_set *set = hd_fi_as(hd_fi_av_set, HD_FI_AV_SET, FI_CLASS_AV_SET, addr->set);
	int rc;

	if (!set || set->av != hd_fi_av_whole(ep->av) || set->members.count > HD_FI_MEMBERS_MAX)
		return hd_fi_no(
			FI_EINVAL,
			"fi_join_collective without a set of the endpoint's address vector, or with more members than there can be");
	if (addr->coll_addr != FI_ADDR_NOTAVAIL && !hd_fi_av_set_at(set->av, addr->coll_addr) &&
	    !hd_fi_group_at(ep, addr->coll_addr))
		return hd_fi_no(FI_EINVAL, "fi_join_collective with an address of neither a set nor a group");
	rc = hd_fi_group_make(ep, set->members.at, set->members.count, out);
	if (rc)
		return rc;
	(*out)->fid.fid = (struct fid){ .fclass = FI_CLASS_MC, .context = context, .ops = &group_fid_ops };
	rc = join_begin(*out);
	if (rc)
		join_undo(*out);
	return rc;
}

static int join_check(const struct hd_fi_ep *ep, const void *addr, uint64_t flags, struct fid_mc **out)
{
	const uint64_t both = flags & (FI_SEND | FI_RECV);

	if (!ep->collective || ep->sep)
		return hd_fi_no(FI_ENOSYS, "fi_join_collective without FI_COLLECTIVE");
	if (flags & ~(FI_COLLECTIVE | FI_SEND | FI_RECV) || (both && both != (FI_SEND | FI_RECV)))
		return hd_fi_no(
			FI_EBADFLAGS,
			"fi_join_collective with flags that it does not take: every member sends and receives");
	if (!addr || !out)
		return hd_fi_no(FI_EINVAL, "fi_join_collective without an address, or room for the group");
	if (!ep->ep)
		return hd_fi_no(FI_EOPBADSTATE, "fi_join_collective before fi_enable");
	return ep->bound.eq ? 0
			    : hd_fi_no(FI_ENOEQ, "fi_join_collective of an endpoint without an event queue");
}

int hd_fi_coll_join(struct hd_fi_ep *ep, const struct fi_collective_addr *addr, uint64_t flags,
		    struct fid_mc **out, void *context)
{
	struct hd_fi_group *group;
	int rc = join_check(ep, addr, flags, out);

	if (rc)
		return rc;
	hd_fi_lock(ep->domain);
	rc = join_with_lock(ep, addr, context, &group);
	if (!rc) { /* before another thread can read its event, and close it */
		hd_fi_domain_add(ep->domain, &group->object, &group->fid.fid);
		atomic_fetch_add(&ep->sharing.users, 1);
		*out = &group->fid;
	}
	hd_fi_unlock(ep->domain);
	return rc;
}

/* ---- the endpoint ---------------------------------------------------------------------------- */

int hd_fi_coll_enable(struct hd_fi_ep *ep)
{
	struct hd_fi_coll *coll = calloc(1, sizeof(*coll));
	int rc;

	if (!coll)
		return hd_fi_no(FI_ENOMEM);
	LIST_INIT(&coll->hellos);
	rc = hd_fi_coll_open(ep, HD_FI_SLOT_GREETING, hd_fi_eq_evq(ep->bound.eq), coll, &coll->greeting);
	if (rc) {
		free(coll);
		return hd_fi_ret(rc, "fi_enable with FI_COLLECTIVE");
	}
	ep->coll = coll;
	return 0;
}

void hd_fi_coll_close(struct hd_fi_ep *ep)
{
	struct hd_fi_coll *coll = ep->coll;
	struct hd_fi_hello *hello;

	if (!coll)
		return;
	hd_ep_close(coll->greeting);
	while ((hello = LIST_FIRST(&coll->hellos)))
		hello_free(hello);
	ep->coll = NULL;
	free(coll);
}
