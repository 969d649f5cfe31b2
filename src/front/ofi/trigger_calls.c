/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Calls without flags of an endpoint, or an alias of one, whose op_flags have FI_TRIGGER: each is
 * the call with flags, and its context is the program's struct fi_triggered_context. Those that
 * inject have no context, and stay as they are.
 */
#include "front/ofi/offer.h"
#include "front/ofi/trigger.h"

static uint64_t tx_flags(struct fid_ep *fid)
{
	return ((struct hd_fi_ep *)fid)->bound.tx.op_flags;
}

static uint64_t rx_flags(struct fid_ep *fid)
{
	return ((struct hd_fi_ep *)fid)->bound.rx.op_flags & (FI_TRIGGER | FI_COMPLETION | FI_MULTI_RECV);
}

#define OURS (&(const struct iovec){ (void *)(uintptr_t)buf, len })

/* ---- fi_msg ---------------------------------------------------------------------------------- */

static ssize_t when_sendv(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count,
			  fi_addr_t dest, void *context)
{
	const struct fi_msg m = { .msg_iov = iov, .iov_count = count, .addr = dest, .context = context };

	return fi_sendmsg(ep, &m, tx_flags(ep));
}

static ssize_t when_send(struct fid_ep *ep, const void *buf, size_t len, void *desc, fi_addr_t dest,
			 void *context)
{
	return when_sendv(ep, OURS, NULL, 1, dest, context);
}

static ssize_t when_senddata(struct fid_ep *ep, const void *buf, size_t len, void *desc, uint64_t data,
			     fi_addr_t dest, void *context)
{
	const struct fi_msg m = {
		.msg_iov = OURS, .iov_count = 1, .addr = dest, .context = context, .data = data
	};

	return fi_sendmsg(ep, &m, tx_flags(ep) | FI_REMOTE_CQ_DATA);
}

static ssize_t when_recvv(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count,
			  fi_addr_t src, void *context)
{
	const struct fi_msg m = { .msg_iov = iov, .iov_count = count, .addr = src, .context = context };

	return fi_recvmsg(ep, &m, rx_flags(ep));
}

static ssize_t when_recv(struct fid_ep *ep, void *buf, size_t len, void *desc, fi_addr_t src, void *context)
{
	return when_recvv(ep, OURS, NULL, 1, src, context);
}

/* ---- fi_tagged ------------------------------------------------------------------------------- */

static ssize_t when_tsendv(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count,
			   fi_addr_t dest, uint64_t tag, void *context)
{
	const struct fi_msg_tagged m = {
		.msg_iov = iov, .iov_count = count, .addr = dest, .tag = tag, .context = context
	};

	return fi_tsendmsg(ep, &m, tx_flags(ep) & ~FI_MULTICAST);
}

static ssize_t when_tsend(struct fid_ep *ep, const void *buf, size_t len, void *desc, fi_addr_t dest,
			  uint64_t tag, void *context)
{
	return when_tsendv(ep, OURS, NULL, 1, dest, tag, context);
}

static ssize_t when_tsenddata(struct fid_ep *ep, const void *buf, size_t len, void *desc, uint64_t data,
			      fi_addr_t dest, uint64_t tag, void *context)
{
	const struct fi_msg_tagged m = {
		.msg_iov = OURS, .iov_count = 1, .addr = dest, .tag = tag, .context = context, .data = data
	};

	return fi_tsendmsg(ep, &m, (tx_flags(ep) & ~FI_MULTICAST) | FI_REMOTE_CQ_DATA);
}

static ssize_t when_trecvv(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count,
			   fi_addr_t src, uint64_t tag, uint64_t ignore, void *context)
{
	const struct fi_msg_tagged m = { .msg_iov = iov,
					 .iov_count = count,
					 .addr = src,
					 .tag = tag,
					 .ignore = ignore,
					 .context = context };

	return fi_trecvmsg(ep, &m, rx_flags(ep) & ~FI_MULTI_RECV);
}

static ssize_t when_trecv(struct fid_ep *ep, void *buf, size_t len, void *desc, fi_addr_t src, uint64_t tag,
			  uint64_t ignore, void *context)
{
	return when_trecvv(ep, OURS, NULL, 1, src, tag, ignore, context);
}

/* ---- fi_rma ---------------------------------------------------------------------------------- */

static ssize_t trigger_calls_one_sided(struct fid_ep *ep, const struct fi_msg_rma *m, uint64_t addr,
				       uint64_t key, bool reads, uint64_t flags)
{
	const struct fi_rma_iov there = { .addr = addr,
					  .len = hd_fi_iov_total(m->msg_iov, m->msg_iov ? m->iov_count : 0),
					  .key = key };
	struct fi_msg_rma msg = *m;

	msg.rma_iov = &there;
	msg.rma_iov_count = 1;
	flags |= tx_flags(ep) & ~FI_MULTICAST;
	return reads ? fi_readmsg(ep, &msg, flags & ~FI_INJECT) : fi_writemsg(ep, &msg, flags);
}

static ssize_t when_readv(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count,
			  fi_addr_t src, uint64_t addr, uint64_t key, void *context)
{
	const struct fi_msg_rma m = { .msg_iov = iov, .iov_count = count, .addr = src, .context = context };

	return trigger_calls_one_sided(ep, &m, addr, key, true, 0);
}

static ssize_t when_read(struct fid_ep *ep, void *buf, size_t len, void *desc, fi_addr_t src, uint64_t addr,
			 uint64_t key, void *context)
{
	return when_readv(ep, OURS, NULL, 1, src, addr, key, context);
}

static ssize_t when_writev(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count,
			   fi_addr_t dest, uint64_t addr, uint64_t key, void *context)
{
	const struct fi_msg_rma m = { .msg_iov = iov, .iov_count = count, .addr = dest, .context = context };

	return trigger_calls_one_sided(ep, &m, addr, key, false, 0);
}

static ssize_t when_write(struct fid_ep *ep, const void *buf, size_t len, void *desc, fi_addr_t dest,
			  uint64_t addr, uint64_t key, void *context)
{
	return when_writev(ep, OURS, NULL, 1, dest, addr, key, context);
}

static ssize_t when_writedata(struct fid_ep *ep, const void *buf, size_t len, void *desc, uint64_t data,
			      fi_addr_t dest, uint64_t addr, uint64_t key, void *context)
{
	const struct fi_msg_rma m = {
		.msg_iov = OURS, .iov_count = 1, .addr = dest, .context = context, .data = data
	};

	return trigger_calls_one_sided(ep, &m, addr, key, false, FI_REMOTE_CQ_DATA);
}

/* ---- the tables ------------------------------------------------------------------------------ */

static void put_sends(struct hd_fi_own_ops *own)
{
	own->msg.send = when_send;
	own->msg.sendv = when_sendv;
	own->msg.senddata = when_senddata;
	own->tagged.send = when_tsend;
	own->tagged.sendv = when_tsendv;
	own->tagged.senddata = when_tsenddata;
	own->rma.read = when_read;
	own->rma.readv = when_readv;
	own->rma.write = when_write;
	own->rma.writev = when_writev;
	own->rma.writedata = when_writedata;
}

static void put_receives(struct hd_fi_own_ops *own)
{
	own->msg.recv = when_recv;
	own->msg.recvv = when_recvv;
	own->tagged.recv = when_trecv;
	own->tagged.recvv = when_trecvv;
}

void hd_fi_trigger_tables(struct hd_fi_ep *ep)
{
	if (ep->bound.tx.op_flags & FI_TRIGGER)
		put_sends(&ep->own);
	if (ep->bound.rx.op_flags & FI_TRIGGER)
		put_receives(&ep->own);
}

bool hd_fi_op_flags_can_be(const struct hd_fi_offer *offer, bool sends, uint64_t flags)
{
	const uint64_t when = offer->caps & FI_TRIGGER;

	return !(flags & ~((sends ? offer->tx_op_flags : offer->rx_op_flags) | when));
}
