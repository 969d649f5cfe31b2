/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* What data calls share beyond the shortest paths: segments and flags. */
#include "front/ofi/ep.h"
#include "front/ofi/offer.h"

#define SEND_FLAGS (FI_REMOTE_CQ_DATA | FI_MORE | FI_FENCE) /* beside those that may be op_flags */

int hd_fi_check_iov(const struct iovec *iov, size_t count, size_t limit)
{
	if (count > limit || (count && !iov))
		return hd_fi_no(FI_EINVAL, "more segments than iov_limit, or no list of them");
	for (size_t i = 0; i < count; i++)
		if (!iov[i].iov_base && iov[i].iov_len)
			return hd_fi_no(FI_EINVAL, "a segment of bytes at NULL");
	return 0;
}

uint64_t hd_fi_iov_total(const struct iovec *iov, size_t count)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < count; i++)
		if (__builtin_add_overflow(sum, iov[i].iov_len, &sum))
			return UINT64_MAX;
	return sum;
}

int hd_fi_check_room(const struct iovec *iov, size_t *count, size_t limit)
{
	size_t room = 0;

	if (*count > limit || (*count && !iov) || (*count > 1 && hd_fi_iov_total(iov, *count) == UINT64_MAX))
		return hd_fi_no(
			FI_EINVAL,
			"a receive of more segments than iov_limit, or of more bytes than can be counted");
	while (room < *count && (iov[room].iov_base || !iov[room].iov_len))
		room++;
	*count = room;
	return 0;
}

#define INJECT_TURNS 8 /* at most */

/*
 * Until there is nothing more to do: over TCP the first packet after such a turn leaves at once,
 * and the program may never come back for others.
 */
ssize_t hd_fi_inject_again(struct hd_fi_ep *ep)
{
	hd_node_lock(ep->node);
	for (int i = 0; i < INJECT_TURNS && hd_node_poll(ep->node); i++)
		;
	hd_node_unlock(ep->node);
	return -FI_EAGAIN;
}

int hd_fi_check_sendv(const struct hd_fi_ep_attr *attr, const struct iovec *iov, size_t count, uint64_t max)
{
	int rc = hd_fi_check_iov(iov, count, attr->tx_iov);

	if (rc)
		return rc;
	return hd_fi_iov_total(iov, count) > max
		       ? hd_fi_no(
				 FI_EMSGSIZE,
				 "a message longer than max_msg_size, or than inject_size where it is injected")
		       : 0;
}

ssize_t hd_fi_start_sendv(struct hd_fi_ep *ep, const struct iovec *iov, size_t count,
			  const struct hd_fi_send *s)
{
	struct hd_dest *dest = hd_fi_ep_dest(ep, s->dest);

	if (!dest)
		return hd_fi_no(FI_EINVAL, "a send to an address that is not in the address vector");
	if (count > 1)
		return hd_sendv(ep->ep, dest, iov, (int)count, s->tag, s->data, s->context, s->flags);
	return hd_send(ep->ep, dest, count ? iov->iov_base : NULL, count ? iov->iov_len : 0, s->tag, s->data,
		       s->context, s->flags);
}

ssize_t hd_fi_post_far(struct hd_fi_ep *ep, const struct hd_fi_send *s)
{
	const struct iovec iov = { (void *)s->buf, s->len };

	return hd_fi_start_sendv(ep, &iov, 1, s);
}

ssize_t hd_fi_post_sendv(struct hd_fi_ep *ep, const struct iovec *iov, size_t count,
			 const struct hd_fi_send *s, uint64_t max)
{
	ssize_t rc = hd_fi_check_sendv(&ep->attr, iov, count, max);

	if (rc)
		return rc;
	hd_fi_lock(ep->domain);
	rc = hd_fi_start_sendv(ep, iov, count, s);
	hd_fi_unlock(ep->domain);
	return rc;
}

/* Flags of a call replace the endpoint's op_flags, but for what binding the CQ has decided. */
int hd_fi_send_flags(const struct hd_fi_ep *ep, uint64_t flags, uint32_t *out)
{
	if (flags & ~(SEND_FLAGS | (ep->offer->tx_op_flags & ~FI_MULTICAST)) ||
	    (flags & FI_FENCE && !(ep->call.gate & HD_SEND_GATED)))
		return hd_fi_no(
			FI_EINVAL,
			"a send with flags that it does not take, or FI_FENCE without the capability");
	*out = (flags & FI_REMOTE_CQ_DATA ? HD_SEND_IMM : 0) | (flags & FI_INJECT ? HD_SEND_INJECT : 0) |
	       (flags & FI_FENCE ? HD_SEND_FENCE : 0) | ep->call.gate |
	       (hd_fi_level(flags) & ep->call.levels) |
	       (ep->call.tx_always || (flags & FI_COMPLETION && ep->bound.tx.cq) ? HD_SEND_COMPLETE : 0);
	return 0;
}

int hd_fi_check_recvv(const struct hd_fi_ep_attr *attr, struct hd_fi_recv *r)
{
	static const struct iovec nothing;
	bool one = r->count == 1;
	int rc = hd_fi_check_room(r->iov, &r->count, attr->rx_iov);

	if (rc)
		return rc;
	if (r->flags & HD_RECV_MULTI && (!one || !r->count))
		return hd_fi_no(FI_EINVAL, "FI_MULTI_RECV takes one segment");
	if (!r->count) {
		r->iov = &nothing;
		r->count = 1;
	}
	return 0;
}

ssize_t hd_fi_post_recvv(struct hd_fi_ep *ep, const struct hd_fi_recv *r)
{
	struct hd_fi_recv checked = *r;
	int rc = hd_fi_check_recvv(&ep->attr, &checked);

	return rc ? rc : hd_fi_post_recv(ep, checked, ep->domain->locked);
}
