/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * fi_join(3) and sends with FI_MULTICAST. A group's fi_addr_t has a bit that no index into an AV
 * reaches, so that it is refused wherever the flag is missing.
 */
#include "front/ofi/mc.h"

#include "front/ofi/coll/coll.h"
#include "front/ofi/stubs.h"

#include <stdlib.h>

#define GROUP_BIT (UINT64_C(1) << 40)
#define GROUPS_MAX 1024 /* of one endpoint */

struct hd_fi_mc {
	struct fid_mc fid;
	struct hd_fi_ep *ep;
	struct hd_group *group;
	unsigned how;
	uint32_t slot; /* of ep->groups.all */
	struct hd_fi_object object;
};

/* ---- sending --------------------------------------------------------------------------------- */

/* Caller holds the node's lock. */
static struct hd_fi_mc *mc_at(const struct hd_fi_groups *groups, fi_addr_t addr)
{
	uint64_t slot = addr ^ GROUP_BIT;
	struct hd_fi_mc *mc = slot < groups->count ? groups->all[slot] : NULL;

	return mc && mc->how & HD_GROUP_SEND ? mc : NULL;
}

static uint64_t longest(const struct hd_fi_calls *call, uint32_t flags)
{
	uint64_t max = hd_fi_send_max(call, HD_FI_OF_MSG, flags);

	return max < HD_MAX_DGRAM ? max : HD_MAX_DGRAM;
}

/* Nobody tells what has become of what was said. */
static bool may_cast(const struct hd_fi_bound *bound, uint64_t flags)
{
	return bound->tx.caps & FI_MULTICAST && !(flags & (FI_DELIVERY_COMPLETE | FI_MATCH_COMPLETE));
}

int hd_fi_mc_take(const struct hd_fi_ep *ep, const struct iovec *iov, size_t count, uint64_t flags,
		  struct hd_fi_send *s)
{
	int rc =
		may_cast(&ep->bound, flags)
			? hd_fi_send_flags(ep, flags & ~FI_MULTICAST, &s->flags)
			: hd_fi_no(
				  FI_EINVAL,
				  "a multicast without the capability, or with a completion that no multicast has");

	return rc ? rc : hd_fi_check_sendv(&ep->attr, iov, count, longest(&ep->call, s->flags));
}

int hd_fi_mc_start(struct hd_fi_ep *ep, const struct iovec *iov, size_t count, const struct hd_fi_send *s)
{
	const struct hd_group_args args = {
		.iov = iov, .count = (int)count, .imm = s->data, .ctx = s->context, .flags = s->flags
	};
	const struct hd_fi_mc *mc = mc_at(&hd_fi_ep_whole(ep)->groups, s->dest);

	return mc ? hd_group_send(mc->group, &args)
		  : hd_fi_no(FI_EINVAL, "a multicast to a group that the endpoint has not joined");
}

static ssize_t cast(struct hd_fi_ep *ep, const struct iovec *iov, size_t count, const struct hd_fi_send *s)
{
	int rc;

	hd_fi_lock(ep->domain);
	rc = hd_fi_mc_start(ep, iov, count, s);
	hd_fi_unlock(ep->domain);
	return rc;
}

ssize_t hd_fi_mc_send(struct hd_fi_ep *ep, const struct fi_msg *msg, uint64_t flags)
{
	struct hd_fi_send s = { .dest = msg->addr, .data = msg->data, .context = msg->context };
	int rc = hd_fi_mc_take(ep, msg->msg_iov, msg->iov_count, flags, &s);

	return rc ? rc : cast(ep, msg->msg_iov, msg->iov_count, &s);
}

/* ---- sending, where op_flags say so ---------------------------------------------------------- */

static ssize_t cast_sendv(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t count,
			  fi_addr_t dest, void *context)
{
	struct hd_fi_ep *ep = (struct hd_fi_ep *)fid;
	struct hd_fi_send s = { .dest = dest, .context = context };
	int rc = hd_fi_mc_take(ep, iov, count, ep->bound.tx.op_flags, &s);

	return rc ? rc : cast(ep, iov, count, &s);
}

static ssize_t cast_send(struct fid_ep *fid, const void *buf, size_t len, void *desc, fi_addr_t dest,
			 void *context)
{
	const struct iovec iov = { (void *)(uintptr_t)buf, len };

	return cast_sendv(fid, &iov, NULL, 1, dest, context);
}

static ssize_t cast_senddata(struct fid_ep *fid, const void *buf, size_t len, void *desc, uint64_t data,
			     fi_addr_t dest, void *context)
{
	const struct iovec iov = { (void *)(uintptr_t)buf, len };
	struct hd_fi_ep *ep = (struct hd_fi_ep *)fid;
	struct hd_fi_send s = { .dest = dest, .data = data, .context = context };
	int rc = hd_fi_mc_take(ep, &iov, 1, ep->bound.tx.op_flags | FI_REMOTE_CQ_DATA, &s);

	return rc ? rc : cast(ep, &iov, 1, &s);
}

/* Without a word of its success, whatever the CQ is bound with. */
static ssize_t mc_inject(struct fid_ep *fid, const struct iovec *iov, struct hd_fi_send s, uint64_t flags)
{
	struct hd_fi_ep *ep = (struct hd_fi_ep *)fid;
	int rc = hd_fi_mc_take(ep, iov, 1, (ep->bound.tx.op_flags & ~HD_FI_LEVELS) | FI_INJECT | flags, &s);

	s.flags &= ~(uint32_t)HD_SEND_COMPLETE;
	return rc ? rc : cast(ep, iov, 1, &s);
}

static ssize_t cast_inject(struct fid_ep *fid, const void *buf, size_t len, fi_addr_t dest)
{
	return mc_inject(fid, &(struct iovec){ (void *)(uintptr_t)buf, len },
			 (struct hd_fi_send){ .dest = dest }, 0);
}

static ssize_t cast_injectdata(struct fid_ep *fid, const void *buf, size_t len, uint64_t data, fi_addr_t dest)
{
	return mc_inject(fid, &(struct iovec){ (void *)(uintptr_t)buf, len },
			 (struct hd_fi_send){ .dest = dest, .data = data }, FI_REMOTE_CQ_DATA);
}

void hd_fi_mc_msg(struct fi_ops_msg *table)
{
	table->send = cast_send;
	table->sendv = cast_sendv;
	table->inject = cast_inject;
	table->senddata = cast_senddata;
	table->injectdata = cast_injectdata;
}

/* ---- joining and leaving --------------------------------------------------------------------- */

static int mc_close(struct fid *fid)
{
	struct hd_fi_mc *mc = (struct hd_fi_mc *)fid;
	struct hd_fi_ep *ep = mc->ep;

	hd_fi_lock(ep->domain);
	hd_group_leave(mc->group);
	ep->groups.all[mc->slot] = NULL;
	hd_fi_unlock(ep->domain);
	hd_fi_domain_drop(ep->domain, &mc->object);
	atomic_fetch_sub(&ep->sharing.users, 1);
	free(mc);
	return 0;
}

static struct fi_ops mc_fid_ops = HD_FI_FID_OPS(mc_close, hd_fi_no_bind, hd_fi_no_control);

/*
 * What the endpoint may do with groups, or of that what the flags say. 0: nothing of what is asked.
 */
static unsigned how_of(const struct hd_fi_ep *ep, uint64_t flags)
{
	unsigned can = (ep->bound.tx.caps & FI_MULTICAST && ep->bound.tx.caps & FI_SEND ? HD_GROUP_SEND : 0) |
		       (ep->groups.may && ep->bound.rx.caps & FI_RECV ? HD_GROUP_RECV : 0);
	unsigned wanted = (flags & FI_SEND ? HD_GROUP_SEND : 0) | (flags & FI_RECV ? HD_GROUP_RECV : 0);

	return wanted & ~can ? 0 : wanted ? wanted : can;
}

static int check_join(const struct hd_fi_ep *ep, const void *addr, uint64_t flags, struct fid_mc **out)
{
	if (!ep->groups.may)
		return hd_fi_no(FI_ENOSYS, "fi_join without FI_MULTICAST");
	if (flags & ~(FI_SEND | FI_RECV))
		return hd_fi_no(FI_EBADFLAGS, "fi_join with flags other than FI_SEND and FI_RECV");
	if (!addr || !out)
		return hd_fi_no(FI_EINVAL, "fi_join without an address, or room for the group");
	if (!ep->ep)
		return hd_fi_no(FI_EOPBADSTATE, "fi_join before fi_enable");
	if (!ep->bound.eq)
		return hd_fi_no(FI_ENOEQ, "fi_join of an endpoint without an event queue");
	return how_of(ep, flags) ? 0
				 : hd_fi_no(FI_EINVAL, "fi_join for a direction that the endpoint has not");
}

/* A free slot of groups->all, or -FI_ENOMEM. Caller holds the node's lock. */
static int mc_slot_take(struct hd_fi_groups *groups)
{
	struct hd_fi_mc **more;
	uint32_t i;

	for (i = 0; i < groups->count; i++)
		if (!groups->all[i])
			return (int)i;
	more = i < GROUPS_MAX ? reallocarray(groups->all, i + 1, sizeof(struct hd_fi_mc *)) : NULL;
	if (!more)
		return hd_fi_no(FI_ENOMEM, "no memory, or fi_join of more groups than an endpoint can join");
	groups->all = more;
	groups->all[groups->count++] = NULL;
	return (int)i;
}

static int join_locked(struct hd_fi_mc *mc, const union hd_fi_addr *addr)
{
	const struct hd_group_attr attr = { .addr = &addr->sa, .how = mc->how };
	struct hd_fi_ep *ep = mc->ep;
	int slot = mc_slot_take(&ep->groups), rc;

	if (slot < 0)
		return slot;
	rc = hd_group_join(ep->ep, &attr, &mc->group);
	if (rc)
		return hd_fi_ret(rc, "fi_join");
	mc->slot = (uint32_t)slot;
	mc->fid.fi_addr = GROUP_BIT | (uint32_t)slot;
	ep->groups.all[slot] = mc;
	return 0;
}

/* The address is as long as its family says, which is all that fi_join tells. */
static int mc_take_address(const struct hd_fi_ep *ep, const void *addr, union hd_fi_addr *out)
{
	size_t size = hd_sockaddr_size(addr);

	return size ? hd_fi_addr_copy(addr, size, hd_fi_family(ep->domain->addr_format), out)
		    : hd_fi_no(FI_EINVAL, "fi_join of an address that is neither IPv4 nor IPv6");
}

/*
 * Whoever reads the event may use the group at once, perhaps by the pointer that the caller has
 * given, so that is set before.
 */
static int join_tell(struct hd_fi_mc *mc, struct fid_mc **out)
{
	const struct fi_eq_entry done = { .fid = &mc->fid.fid, .context = mc->fid.fid.context };
	struct fid_mc *before = *out;
	int rc;

	*out = &mc->fid;
	rc = hd_fi_eq_post(mc->ep->bound.eq, FI_JOIN_COMPLETE, &done, sizeof(done));
	if (!rc)
		return 0;
	*out = before;
	mc_close(&mc->fid.fid);
	return rc;
}

int hd_fi_join(struct fid_ep *fid, const void *addr, uint64_t flags, struct fid_mc **out, void *context)
{
	struct hd_fi_ep *ep = hd_fi_ep_whole((struct hd_fi_ep *)fid);
	union hd_fi_addr group;
	struct hd_fi_mc *mc;
	int rc;

	if (flags & FI_COLLECTIVE)
		return hd_fi_coll_join(ep, addr, flags, out, context);
	rc = check_join(ep, addr, flags, out);
	if (!rc)
		rc = mc_take_address(ep, addr, &group);
	if (rc)
		return rc;
	mc = calloc(1, sizeof(*mc));
	if (!mc)
		return hd_fi_no(FI_ENOMEM);
	mc->ep = ep;
	mc->how = how_of(ep, flags);
	mc->fid.fid = (struct fid){ .fclass = FI_CLASS_MC, .context = context, .ops = &mc_fid_ops };
	hd_fi_lock(ep->domain);
	rc = join_locked(mc, &group);
	hd_fi_unlock(ep->domain);
	if (rc) {
		free(mc);
		return rc;
	}
	atomic_fetch_add(&ep->sharing.users, 1);
	hd_fi_domain_add(ep->domain, &mc->object, &mc->fid.fid);
	return join_tell(mc, out);
}
