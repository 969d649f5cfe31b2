/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Receiving where messages are handed over in our memory: «Buffered Receives» and «Variable Length
 * Messages» of fi_msg(3) and fi_tagged(3). These calls stand in the tables of such endpoints
 * instead of those of msg.c and tagged.c.
 */
#include "front/ofi/buffered.h"
#include "front/ofi/ctx.h"
#include "front/ofi/newer.h"

#include <string.h>

/* The engine writes handles, programs read struct fi_recv_context. */
static_assert(sizeof(struct hd_handed) == sizeof(struct fi_recv_context) &&
		      offsetof(struct hd_handed, owner) == offsetof(struct fi_recv_context, ep) &&
		      offsetof(struct hd_handed, ctx) == offsetof(struct fi_recv_context, context),
	      "a handle is a struct fi_recv_context");

#define DEFAULT_LIMIT (16u << 10)
#define DEFAULT_MIN 256u

#define TAKE_FLAGS (FI_CLAIM | FI_DISCARD)
#define RECV_FLAGS (FI_COMPLETION | FI_MORE | FI_TRANSMIT_COMPLETE | TAKE_FLAGS | FI_AUTH_KEY)

static const struct iovec nothing;

/* ---- claiming and discarding ----------------------------------------------------------------- */

/* A claim has segments; a discard looks at none. */
struct taking {
	const struct iovec *iov;
	size_t count;
	struct fi_recv_context *context;
	uint64_t flags;
	bool tagged;
};

/* Caller holds the node's lock. */
static int take_locked(struct hd_fi_ep *ep, const struct taking *t)
{
	struct hd_handed *handed = (struct hd_handed *)t->context;
	struct hd_recv_args args = { .iov = t->count ? t->iov : &nothing,
				     .count = t->count ? (int)t->count : 1,
				     .flags = (t->tagged ? HD_RECV_TAGGED : 0) |
					      hd_fi_recv_completes(&ep->call, t->flags) };

	return t->flags & FI_DISCARD ? hd_handed_discard(ep->ep, handed)
				     : hd_handed_recv(ep->ep, handed, &args);
}

static ssize_t buffered_take(struct hd_fi_ep *ep, const struct taking *t)
{
	size_t room = t->count;
	int rc = 0;

	if (!t->context || (t->flags & FI_AUTH_KEY && !hd_fi_ep_by_key(ep)))
		return hd_fi_no(
			FI_EINVAL,
			"FI_CLAIM without the message's context, or FI_AUTH_KEY at an endpoint without keys");
	if (!(t->flags & FI_DISCARD))
		rc = hd_fi_check_room(t->iov, &room, ep->attr.rx_iov);
	if (!rc && !(t->flags & FI_DISCARD) && room < t->count)
		rc = hd_fi_no(FI_EINVAL, "a message of known length taken to NULL");
	if (rc)
		return rc;
	hd_fi_lock(ep->domain);
	rc = take_locked(ep, t);
	hd_fi_unlock(ep->domain);
	return hd_fi_ret(rc);
}

/* ---- fi_msg ---------------------------------------------------------------------------------- */

/*
 * Messages come without being asked for: there is nothing that a posted
 * buffer could be matched with.
 */
static ssize_t buffered_msg_recv(struct fid_ep *fid, void *buf, size_t len, void *desc, fi_addr_t src,
				 void *context)
{
	return hd_fi_no(
		FI_EOPNOTSUPP,
		"the endpoint buffers its receives: messages come by themselves, and are taken by fi_recvmsg");
}

static ssize_t buffered_msg_recvv(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t count,
				  fi_addr_t src, void *context)
{
	return hd_fi_no(
		FI_EOPNOTSUPP,
		"the endpoint buffers its receives: messages come by themselves, and are taken by fi_recvmsg");
}

static ssize_t buffered_msg_recvmsg(struct fid_ep *fid, const struct fi_msg *msg, uint64_t flags)
{
	struct hd_fi_ep *ep = (struct hd_fi_ep *)fid;
	struct taking t;

	if (!msg || flags & ~RECV_FLAGS)
		return hd_fi_no(FI_EINVAL,
				"fi_recvmsg without a message, or with flags that it does not take");
	if (!(flags & TAKE_FLAGS))
		return hd_fi_no(FI_EOPNOTSUPP,
				"the endpoint buffers its receives: fi_recvmsg takes FI_CLAIM or FI_DISCARD");
	t = (struct taking){
		.iov = msg->msg_iov, .count = msg->iov_count, .context = msg->context, .flags = flags
	};
	return buffered_take(ep, &t);
}

/* ---- fi_tagged ------------------------------------------------------------------------------- */

static ssize_t post_tag(struct fid_ep *fid, struct hd_fi_recv r)
{
	struct hd_fi_ep *ep = (struct hd_fi_ep *)fid;

	r.iov = &nothing;
	r.count = 1;
	r.flags = HD_RECV_TAGGED | HD_RECV_BUFFERED;
	return hd_fi_post_recv(ep, r, ep->domain->locked);
}

static ssize_t buffered_tagged_recv(struct fid_ep *fid, void *buf, size_t len, void *desc, fi_addr_t src,
				    uint64_t tag, uint64_t ignore, void *context)
{
	return post_tag(fid,
			(struct hd_fi_recv){ .src = src, .tag = tag, .ignore = ignore, .context = context });
}

static ssize_t buffered_tagged_recvv(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t count,
				     fi_addr_t src, uint64_t tag, uint64_t ignore, void *context)
{
	return buffered_tagged_recv(fid, NULL, 0, NULL, src, tag, ignore, context);
}

/*
 * FI_CLAIM is for a message handed over, or for one that FI_PEEK has claimed:
 * the context tells which.
 */
static bool is_handed(struct hd_fi_ep *ep, const void *context)
{
	bool yes;

	hd_fi_lock(ep->domain);
	yes = hd_handed_is(ep->ep, context);
	hd_fi_unlock(ep->domain);
	return yes;
}

static ssize_t buffered_tagged_recvmsg(struct fid_ep *fid, const struct fi_msg_tagged *msg, uint64_t flags)
{
	struct hd_fi_ep *ep = (struct hd_fi_ep *)fid;
	struct taking t;

	if (!msg || flags & ~(RECV_FLAGS | FI_PEEK))
		return hd_fi_no(FI_EINVAL,
				"fi_trecvmsg without a message, or with flags that it does not take");
	if (!(flags & (TAKE_FLAGS | FI_PEEK)))
		return post_tag(fid, (struct hd_fi_recv){ .src = msg->addr,
							  .tag = msg->tag,
							  .ignore = msg->ignore,
							  .context = msg->context,
							  .by_key = flags & FI_AUTH_KEY });
	if (flags & FI_PEEK || (flags & FI_CLAIM && !is_handed(ep, msg->context)))
		return hd_fi_tagged_look(ep, msg, flags);
	t = (struct taking){ .iov = msg->msg_iov,
			     .count = msg->iov_count,
			     .context = msg->context,
			     .flags = flags,
			     .tagged = true };
	return buffered_take(ep, &t);
}

/* ---- the endpoint ---------------------------------------------------------------------------- */

void hd_fi_buffered_init(struct hd_fi_ep *ep, bool on)
{
	ep->call.buffered = on;
	ep->attr.buffered_limit = DEFAULT_LIMIT;
	ep->attr.buffered_min = DEFAULT_MIN;
}

void hd_fi_buffered_msg(struct fi_ops_msg *table)
{
	table->recv = buffered_msg_recv;
	table->recvv = buffered_msg_recvv;
	table->recvmsg = buffered_msg_recvmsg;
}

void hd_fi_buffered_tagged(struct fi_ops_tagged *table)
{
	table->recv = buffered_tagged_recv;
	table->recvv = buffered_tagged_recvv;
	table->recvmsg = buffered_tagged_recvmsg;
}

uint32_t *hd_fi_buffered_option(struct hd_fi_ep *ep, int optname)
{
	if (!ep->call.buffered)
		return NULL;
	if (optname == FI_OPT_BUFFERED_LIMIT)
		return &ep->attr.buffered_limit;
	return optname == FI_OPT_BUFFERED_MIN ? &ep->attr.buffered_min : NULL;
}

int hd_fi_buffered_set(struct hd_fi_ep *ep, uint32_t *option, const void *optval, size_t optlen)
{
	size_t value;

	if (!optval || optlen != sizeof(value))
		return hd_fi_no(FI_EINVAL, "fi_setopt of a buffered endpoint's limit, which is a size_t");
	if (ep->sharing.rq ? ep->sharing.sharers : ep->ep != NULL)
		return hd_fi_no(FI_EOPBADSTATE, "fi_setopt of a buffered endpoint's limit after fi_enable");
	memcpy(&value, optval, sizeof(value));
	if (value == SIZE_MAX)
		value = HD_BUFFERED_MAX;
	if (value > HD_BUFFERED_MAX)
		return hd_fi_no(FI_EMSGSIZE, "fi_setopt of a buffered endpoint's limit beyond the largest");
	*option = (uint32_t)value;
	return ep->sharing.rq ? hd_fi_srx_limits(ep) : 0;
}
