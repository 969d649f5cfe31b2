/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Calls on an endpoint that move no data: options and fi_cancel of fi_endpoint(3). */
#include "base/minus.h"
#include "front/ofi/buffered.h"
#include "front/ofi/cm.h"
#include "front/ofi/ctx.h"
#include "front/ofi/newer.h"
#include "front/ofi/stubs.h"
#include "front/ofi/trigger.h"

#include <string.h>

/*
 * -FI_ENOENT when nothing that is posted has this context: then it has
 * completed, or was never here.
 */
static ssize_t ep_cancel(fid_t fid, void *context)
{
	struct hd_fi_ep *ep = (struct hd_fi_ep *)fid;
	int rc;

	if (!ep->ep)
		return hd_fi_no(FI_EOPBADSTATE, "fi_cancel before fi_enable");
	hd_fi_lock(ep->domain);
	rc = hd_cancel(ep->ep, context);
	if (rc == -ENOENT)
		rc = hd_fi_trigger_cancel(ep, context);
	hd_fi_unlock(ep->domain);
	return hd_fi_ret(rc, "fi_cancel of what is not posted, or has begun");
}

static int put_size(size_t value, void *optval, size_t *optlen)
{
	size_t room = *optlen;

	*optlen = sizeof(value);
	if (room < sizeof(value))
		return -FI_ETOOSMALL;
	memcpy(optval, &value, sizeof(value));
	return 0;
}

/*
 * FI_OPT_MAX_MSG_SIZE and its like: where that limit stands, NULL: it is none of them; and
 * the most that it may be.
 */
struct limit {
	uint64_t *at, most;
};

static struct limit limit_of(struct hd_fi_ep *ep, int optname)
{
	/* any number may have been asked for */
	unsigned max = (unsigned)optname - HD_FI_OPT_MAX, inject = (unsigned)optname - HD_FI_OPT_INJECT;

	if (max < HD_FI_LIMITS)
		return (struct limit){ &ep->call.longest[max], ep->attr.most.longest[max] };
	if (inject < HD_FI_LIMITS)
		return (struct limit){ &ep->call.max[inject].inject, ep->attr.most.inject };
	return (struct limit){ 0 };
}

static bool can_limit(const struct hd_fi_bound *bound, int optname)
{
	switch ((optname - HD_FI_OPT_MAX) % HD_FI_LIMITS) {
	case HD_FI_OF_MSG:
		return bound->tx.caps & FI_MSG;
	case HD_FI_OF_TAGGED:
		return bound->tx.caps & FI_TAGGED;
	case HD_FI_OF_RMA:
		return bound->tx.caps & FI_RMA;
	default:
		return bound->tx.caps & FI_ATOMIC;
	}
}

/* It becomes less, or more again, but never more than the info has. */
static int set_limit(struct hd_fi_ep *ep, struct limit limit, const void *optval, size_t optlen)
{
	size_t value;

	if (!optval || optlen != sizeof(value))
		return hd_fi_no(FI_EINVAL, "fi_setopt of a longest message, which is a size_t");
	memcpy(&value, optval, sizeof(value));
	if (value > limit.most)
		return hd_fi_no(FI_EINVAL, "fi_setopt of a longest message that is longer than it may be");
	hd_fi_lock(ep->domain);
	*limit.at = value;
	if (ep->ep)
		hd_fi_ep_settle(ep);
	hd_fi_aliases_sync(ep);
	hd_fi_unlock(ep->domain);
	return 0;
}

static int set_shared_memory(const struct hd_fi_ep *ep, const void *optval, size_t optlen)
{
	bool permitted;

	if (!optval || optlen != sizeof(permitted))
		return hd_fi_no(FI_EINVAL, "fi_setopt of FI_OPT_SHARED_MEMORY_PERMITTED, which is a bool");
	memcpy(&permitted, optval, sizeof(permitted));
	return permitted
		       ? 0
		       : hd_fi_no(
				 FI_EOPNOTSUPP,
				 "fi_setopt that forbids shared memory: HEDDLE_TRANSPORT=tcp does, for the process");
}

static int ep_getopt(fid_t fid, int level, int optname, void *optval, size_t *optlen)
{
	struct hd_fi_ep *ep = hd_fi_ep_whole((struct hd_fi_ep *)fid);
	const uint32_t *buffered = hd_fi_buffered_option(ep, optname);
	const uint64_t *limit = limit_of(ep, optname).at;
	const size_t cm_data = hd_fi_ep_connects(ep) ? HD_CM_DATA : 0;

	if (level != FI_OPT_ENDPOINT)
		return hd_fi_no(FI_ENOPROTOOPT, "fi_getopt with a level other than FI_OPT_ENDPOINT");
	if (optname == FI_OPT_XPU_TRIGGER)
		return hd_fi_no(FI_EOPNOTSUPP, "FI_OPT_XPU_TRIGGER: operations are not started by devices");
	if (!buffered && !limit && optname != FI_OPT_MIN_MULTI_RECV && optname != FI_OPT_CM_DATA_SIZE)
		return hd_fi_no(FI_ENOPROTOOPT, "fi_getopt of an option that there is not");
	if (!optval || !optlen)
		return hd_fi_no(FI_EINVAL, "fi_getopt without room for the option");
	if (buffered)
		return put_size(*buffered, optval, optlen);
	if (limit)
		return put_size(can_limit(&ep->bound, optname) ? *limit : 0, optval, optlen);
	return put_size(optname == FI_OPT_CM_DATA_SIZE ? cm_data : ep->attr.min_multi_recv, optval, optlen);
}

static int set_min_multi_recv(struct hd_fi_ep *ep, const void *optval, size_t optlen)
{
	size_t value;

	if (!optval || optlen != sizeof(value))
		return hd_fi_no(FI_EINVAL, "fi_setopt of FI_OPT_MIN_MULTI_RECV, which is a size_t");
	memcpy(&value, optval, sizeof(value));
	hd_fi_lock(ep->domain);
	ep->attr.min_multi_recv = value;
	if (ep->ep)
		hd_ep_set_min_multi_recv(ep->ep, value);
	hd_fi_unlock(ep->domain);
	return 0;
}

static int ep_setopt(fid_t fid, int level, int optname, const void *optval, size_t optlen)
{
	struct hd_fi_ep *ep = hd_fi_ep_whole((struct hd_fi_ep *)fid);
	uint32_t *buffered = hd_fi_buffered_option(ep, optname);
	struct limit limit = limit_of(ep, optname);

	if (level != FI_OPT_ENDPOINT)
		return hd_fi_no(FI_ENOPROTOOPT, "fi_setopt with a level other than FI_OPT_ENDPOINT");
	if (buffered)
		return hd_fi_buffered_set(ep, buffered, optval, optlen);
	if (limit.at)
		return set_limit(ep, limit, optval, optlen);
	switch (optname) {
	case FI_OPT_MIN_MULTI_RECV:
		return set_min_multi_recv(ep, optval, optlen);
	case FI_OPT_CM_DATA_SIZE:
		return hd_fi_no(FI_ENOPROTOOPT, "fi_setopt of FI_OPT_CM_DATA_SIZE, which can only be read");
	case HD_FI_OPT_CUDA:
		return hd_fi_no(FI_EINVAL, "fi_setopt of FI_OPT_CUDA_API_PERMITTED: there is no CUDA here");
	case HD_FI_OPT_SHARED_MEMORY:
		return set_shared_memory(ep, optval, optlen);
	case FI_OPT_FI_HMEM_P2P:
		return hd_fi_no(FI_EOPNOTSUPP,
				"fi_setopt of FI_OPT_FI_HMEM_P2P: there is no memory but the host's");
	default:
		return hd_fi_no(FI_ENOPROTOOPT, "fi_setopt of an option that there is not");
	}
}

/* Receives are not bounded by rx_attr.size: beyond it nothing is promised, so nothing is left. */
static ssize_t ep_rx_size_left(struct fid_ep *fid)
{
	struct hd_fi_ep *ep = (struct hd_fi_ep *)fid;
	size_t posted;

	if (!ep->ep)
		return hd_fi_no(FI_EOPBADSTATE, "fi_rx_size_left before fi_enable");
	hd_fi_lock(ep->domain);
	posted = hd_ep_posted(ep->ep);
	hd_fi_unlock(ep->domain);
	return (ssize_t)hd_minus(ep->attr.rx_size, posted);
}

static ssize_t ep_tx_size_left(struct fid_ep *fid)
{
	struct hd_fi_ep *ep = (struct hd_fi_ep *)fid;
	ssize_t left;

	if (!ep->ep)
		return hd_fi_no(FI_EOPBADSTATE, "fi_tx_size_left before fi_enable");
	hd_fi_lock(ep->domain);
	left = hd_ep_tx_left(ep->ep);
	hd_fi_unlock(ep->domain);
	return left;
}

struct fi_ops_ep hd_fi_ep_ops = {
	.size = sizeof(struct fi_ops_ep),
	.cancel = ep_cancel,
	.getopt = ep_getopt,
	.setopt = ep_setopt,
	.tx_ctx = hd_fi_no_tx_ctx,
	.rx_ctx = hd_fi_no_rx_ctx,
	.rx_size_left = ep_rx_size_left,
	.tx_size_left = ep_tx_size_left,
};
