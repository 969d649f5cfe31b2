/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * The life of an endpoint, fi_endpoint(3). Until fi_enable it exists only here; the engine's
 * endpoint is opened then, with all that was bound and set.
 */
#include "front/ofi/cm.h"
#include "front/ofi/ctx.h"

#include "base/advice.h"
#include "base/log.h"
#include "front/ofi/auth.h"
#include "front/ofi/buffered.h"
#include "front/ofi/coll/coll.h"
#include "front/ofi/mc.h"
#include "front/ofi/stubs.h"
#include "front/ofi/trigger.h"

#include <assert.h>
#include <stdlib.h>

struct hd_fi_ep *hd_fi_ep_as(const void *handle)
{
	static const size_t classes[] = { FI_CLASS_EP, FI_CLASS_TX_CTX, FI_CLASS_RX_CTX, FI_CLASS_SRX_CTX };
	struct hd_fi_ep *ep = NULL;

	for (size_t i = 0; i < sizeof(classes) / sizeof(classes[0]) && !ep; i++)
		ep = hd_fi_as(hd_fi_ep, HD_FI_EP, classes[i], handle);
	return ep;
}

/* ---- what data calls need -------------------------------------------------------------------- */

static bool completes(const struct hd_fi_dir *dir, uint64_t flags)
{
	return dir->cq && (!dir->selective || flags & FI_COMPLETION);
}

/* A shared receive context leaves it to whoever takes the buffer, unless it is asked for. */
static void settle_receiver(struct hd_fi_ep *ep)
{
	bool shared = ep->fid.fid.fclass == FI_CLASS_SRX_CTX;

	ep->call.rx_base = (shared ? HD_RECV_SHARED : 0) | ep->attr.rx_order;
	ep->call.rx_asks = shared || ep->bound.rx.cq;
	ep->call.rx_always = completes(&ep->bound.rx, 0);
	ep->call.peek_copies = shared ? ep->sharing.sharers && !ep->sharing.peek_plain
				      : ep->bound.rx.cq && ep->bound.rx.cq->format >= FI_CQ_FORMAT_DATA;
}

void hd_fi_ep_settle(struct hd_fi_ep *ep)
{
	uint64_t tx = ep->bound.tx.op_flags, rx = ep->bound.rx.op_flags;

	/*
	 * a datagram has been transmitted when its send returns, and is never
	 * known to have been delivered
	 */
	ep->call.levels = ep->offer->ep.type == FI_EP_DGRAM ? 0 : HD_SEND_DELIVERED | HD_SEND_ACKED;
	ep->call.tx_always = completes(&ep->bound.tx, 0);
	settle_receiver(ep);
	ep->call.gate = (ep->bound.tx.caps & FI_FENCE ? HD_SEND_GATED : 0) |
			(ep->attr.tx_strict ? HD_SEND_ORDERED : 0) |
			(ep->domain->av_keys ? HD_SEND_KEYED : 0);
	ep->call.send_flags = ep->call.gate | (completes(&ep->bound.tx, tx) ? HD_SEND_COMPLETE : 0) |
			      (tx & FI_INJECT ? HD_SEND_INJECT : 0) | (hd_fi_level(tx) & ep->call.levels);
	ep->call.inject_flags = ep->call.gate | HD_SEND_INJECT |
				(ep->domain->automatic || ep->offer->ep.type != FI_EP_RDM ? 0 : HD_SEND_TRY);
	ep->call.read_flags = ep->call.send_flags & ~(uint32_t)HD_SEND_INJECT;
	for (int of = 0; of < HD_FI_LIMITS; of++)
		ep->call.max[of].send = hd_fi_send_max(&ep->call, (enum hd_fi_limit)of, ep->call.send_flags);
	ep->call.trecv_flags = HD_RECV_TAGGED | hd_fi_recv_completes(&ep->call, rx);
	ep->call.recv_flags = hd_fi_recv_completes(&ep->call, rx) | (rx & FI_MULTI_RECV ? HD_RECV_MULTI : 0);
	ep->call.directed = hd_fi_directed(ep->offer, ep->bound.rx.caps);
}

/* struct fi_ops_msg and struct fi_ops_tagged have members of the same names. */
#define TAKE_RECEIVES(table, from) \
	do { \
		(table)->recv = (from)->recv; \
		(table)->recvv = (from)->recvv; \
		(table)->recvmsg = (from)->recvmsg; \
	} while (0)
#define TAKE_SENDS(table, from) \
	do { \
		(table)->send = (from)->send; \
		(table)->sendv = (from)->sendv; \
		(table)->sendmsg = (from)->sendmsg; \
		(table)->inject = (from)->inject; \
		(table)->senddata = (from)->senddata; \
		(table)->injectdata = (from)->injectdata; \
	} while (0)

static void msg_table(struct hd_fi_ep *ep, bool sends, bool receives)
{
	struct fi_ops_msg *t = &ep->own.msg;

	*t = ep->attr.prefix ? hd_fi_prefix_msg_ops : hd_fi_msg_ops[ep->domain->locked];
	if (ep->bound.tx.op_flags & FI_MULTICAST)
		hd_fi_mc_msg(t);
	if (!receives)
		TAKE_RECEIVES(t, &hd_fi_no_msg_ops);
	if (!sends)
		TAKE_SENDS(t, &hd_fi_no_msg_ops);
}

static void tagged_table(struct hd_fi_ep *ep, bool sends, bool receives)
{
	struct fi_ops_tagged *t = &ep->own.tagged;

	*t = ep->attr.prefix ? hd_fi_prefix_tagged_ops : hd_fi_tagged_ops[ep->domain->locked];
	if (!receives)
		TAKE_RECEIVES(t, &hd_fi_no_tagged_ops);
	if (!sends)
		TAKE_SENDS(t, &hd_fi_no_tagged_ops);
}

static void rma_table(struct hd_fi_ep *ep, bool reads, bool writes)
{
	struct fi_ops_rma *t = &ep->own.rma;

	*t = hd_fi_rma_ops[ep->domain->locked];
	if (!reads) {
		t->read = hd_fi_no_rma_ops.read;
		t->readv = hd_fi_no_rma_ops.readv;
		t->readmsg = hd_fi_no_rma_ops.readmsg;
	}
	if (!writes) {
		t->write = hd_fi_no_rma_ops.write;
		t->writev = hd_fi_no_rma_ops.writev;
		t->writemsg = hd_fi_no_rma_ops.writemsg;
		t->inject = hd_fi_no_rma_ops.inject;
		t->writedata = hd_fi_no_rma_ops.writedata;
		t->injectdata = hd_fi_no_rma_ops.injectdata;
	}
}

static bool can(const struct hd_fi_dir *dir, uint64_t caps)
{
	return (dir->caps & caps) == caps;
}

/*
 * Is there something to tell of what it receives? A shared receive context
 * leaves that to its endpoints.
 */
static bool receives(const struct hd_fi_ep *ep)
{
	return ep->bound.rx.cq || (ep->bound.cntrs[HD_FI_CNTR_RECV] && !ep->call.buffered) ||
	       !can(&ep->bound.rx, FI_RECV) || ep->sharing.rq;
}

void hd_fi_ep_tables(struct hd_fi_ep *ep)
{
	/* buffers are posted to a shared receive context, not to those who share it */
	msg_table(ep, can(&ep->bound.tx, FI_MSG | FI_SEND),
		  can(&ep->bound.rx, FI_MSG | FI_RECV) && !ep->sharing.srx);
	tagged_table(ep, can(&ep->bound.tx, FI_TAGGED | FI_SEND),
		     can(&ep->bound.rx, FI_TAGGED | FI_RECV) && !ep->sharing.srx);
	if (ep->call.buffered && can(&ep->bound.rx, FI_MSG | FI_RECV) && !ep->sharing.srx)
		hd_fi_buffered_msg(&ep->own.msg);
	if (ep->call.buffered && can(&ep->bound.rx, FI_TAGGED | FI_RECV) && !ep->sharing.srx)
		hd_fi_buffered_tagged(&ep->own.tagged);
	if (!receives(ep)) {
		TAKE_RECEIVES(&ep->own.msg, &hd_fi_queueless_msg_ops);
		TAKE_RECEIVES(&ep->own.tagged, &hd_fi_queueless_tagged_ops);
	}
	rma_table(ep, can(&ep->bound.tx, FI_RMA | FI_READ), can(&ep->bound.tx, FI_RMA | FI_WRITE));
	hd_fi_trigger_tables(ep);
	ep->fid.msg = &ep->own.msg;
	ep->fid.tagged = &ep->own.tagged;
	ep->fid.rma = &ep->own.rma;
}

void hd_fi_ep_share_lock(struct fid *fid)
{
	struct hd_fi_ep *ep = hd_fi_ep_as(fid);

	if (ep && ep->ep)
		hd_fi_ep_tables(ep);
}

/* ---- enabling -------------------------------------------------------------------------------- */

static struct hd_cntr *cntr_of(const struct hd_fi_bound *bound, enum hd_fi_cntr_kind kind)
{
	return bound->cntrs[kind] ? bound->cntrs[kind]->cntr : NULL;
}

/*
 * Whoever only sends, or only writes, binds nothing for receives and posts none: those calls are
 * refused then, the endpoint is not.
 */
static bool may_be_deaf(const struct hd_fi_ep *ep)
{
	return ep->bound.tx.caps && !ep->call.buffered && !ep->sharing.srx;
}

int hd_fi_ep_check_bound(const struct hd_fi_ep *ep)
{
	if (hd_fi_ep_connects(ep) && !ep->bound.eq)
		return hd_fi_no(FI_ENOEQ, "fi_enable, connected endpoints need an event queue");
	if (!hd_fi_ep_connects(ep) && !ep->av)
		return hd_fi_no(FI_ENOAV, "fi_enable without an address vector");
	if (ep->bound.tx.caps & (FI_SEND | FI_READ | FI_WRITE) && !ep->bound.tx.cq &&
	    !ep->bound.cntrs[HD_FI_CNTR_SEND] && !ep->bound.cntrs[HD_FI_CNTR_READ] &&
	    !ep->bound.cntrs[HD_FI_CNTR_WRITE])
		return hd_fi_no(FI_ENOCQ, "fi_enable without a completion queue or a counter for transmits");
	return receives(ep) || may_be_deaf(ep)
		       ? 0
		       : hd_fi_no(FI_ENOCQ, "fi_enable without a completion queue or a counter for receives");
}

/* Caller holds the node's lock. */
static int open_locked(struct hd_fi_ep *ep, const struct hd_ep_attr *attr)
{
	struct hd_ep *made;
	int rc = hd_ep_open(ep->node, attr, &made);

	if (rc)
		return hd_fi_ret(rc, "fi_enable");
	if (hd_fi_ep_connects(ep)) {
		/* whoever reads the event queue, and its bell's thread, come to this node */
		assert(ep->domain->locked);
		ep->connected->other.dest = hd_ep_to(made);
		ep->connected->other.size = ep->connected->other.direct = 1;
		ep->av = &ep->connected->other;
	}
	rc = hd_fi_auth_readers(ep->domain, made, &ep->auth,
				(struct hd_fi_reader){ .av = ep->av,
						       .prefix = ep->attr.prefix,
						       .source_err = ep->bound.rx.caps & FI_SOURCE_ERR });
	if (rc) {
		hd_ep_close(made);
		return rc;
	}
	ep->ep = made;
	rc = ep->collective ? hd_fi_coll_enable(ep) : 0;
	if (rc) {
		hd_fi_auth_readers(ep->domain, made, NULL, (struct hd_fi_reader){ 0 });
		hd_ep_close(made);
		ep->ep = NULL;
		return rc;
	}
	hd_fi_name_free(&ep->named); /* it is the endpoint's from here on */
	hd_fi_ep_settle(ep);
	hd_fi_ep_tables(ep);
	hd_fi_ep_shared(ep);
	hd_fi_aliases_sync(ep);
	return 0;
}

static uint32_t ep_policy_of(const struct hd_fi_ep *ep)
{
	bool directed = hd_fi_directed(ep->offer, ep->bound.rx.caps);

	return (directed ? HD_EP_DIRECTED : 0) | (directed && ep->domain->av_keys ? HD_EP_BY_KEY : 0) |
	       (ep->bound.tx.caps & FI_FENCE ? HD_EP_FENCE : 0) | (ep->call.buffered ? HD_EP_BUFFERED : 0) |
	       (hd_fi_variable(ep->offer, ep->bound.rx.caps) ? HD_EP_VARIABLE : 0) |
	       (ep->attr.tx_order & FI_ORDER_SAW && ep->bound.tx.caps & FI_WRITE ? HD_EP_SAW : 0) |
	       (ep->attr.tx_order & FI_ORDER_SAR && ep->bound.tx.caps & FI_READ ? HD_EP_SAR : 0) |
	       (ep->attr.tx_order & (FI_ORDER_WAS | FI_ORDER_RAS) ? HD_EP_WAS : 0) |
	       (ep->collective ? HD_EP_OWN_PORT : 0) | (ep->attr.rma_whole ? HD_EP_RMA_WHOLE : 0) |
	       (ep->attr.tx_strict ? HD_EP_TX_ORDERED : 0) |
	       (ep->bound.rx.caps & FI_REMOTE_READ ? HD_EP_REMOTE_READ : 0) |
	       (ep->bound.rx.caps & FI_REMOTE_WRITE ? HD_EP_REMOTE_WRITE : 0);
}

static enum hd_ep_type engine_type(const struct hd_fi_offer *offer)
{
	switch (offer->ep.type) {
	case FI_EP_DGRAM:
		return HD_EP_DGRAM;
	case FI_EP_MSG:
		return HD_EP_MSG;
	default:
		return HD_EP_RDM;
	}
}

bool hd_fi_ep_connects(const struct hd_fi_ep *ep)
{
	return ep->offer->ep.type == FI_EP_MSG;
}

void hd_fi_ep_attr_of(const struct hd_fi_ep *ep, struct hd_ep_attr *attr)
{
	*attr = (struct hd_ep_attr){ .type = engine_type(ep->offer),
				     .policy = ep_policy_of(ep),
				     .tx_size = ep->attr.tx_size,
				     .tx_cq = ep->bound.tx.cq ? ep->bound.tx.cq->cq : NULL,
				     .rx_cq = ep->bound.rx.cq ? ep->bound.rx.cq->cq : NULL,
				     .buffered = { (void *)&ep->fid, ep->attr.buffered_limit,
						   ep->attr.buffered_min },
				     .bind = ep->attr.has_addr ? &ep->attr.addr.sa : NULL,
				     .held = ep->named,
				     .min_multi_recv = ep->attr.min_multi_recv,
				     .evq = hd_fi_ep_connects(ep) ? hd_fi_eq_evq(ep->bound.eq) : NULL,
				     .owner = (void *)ep };
	attr->cntrs.send = cntr_of(&ep->bound, HD_FI_CNTR_SEND);
	attr->cntrs.recv = cntr_of(&ep->bound, HD_FI_CNTR_RECV);
	attr->cntrs.read = cntr_of(&ep->bound, HD_FI_CNTR_READ);
	attr->cntrs.write = cntr_of(&ep->bound, HD_FI_CNTR_WRITE);
	attr->cntrs.remote_read = cntr_of(&ep->bound, HD_FI_CNTR_REMOTE_READ);
	attr->cntrs.remote_write = cntr_of(&ep->bound, HD_FI_CNTR_REMOTE_WRITE);
}

void hd_fi_ep_recount(struct hd_fi_ep *ep)
{
	struct hd_ep_attr attr;

	hd_fi_ep_attr_of(ep, &attr);
	hd_fi_lock(ep->domain);
	hd_ep_add_cntrs(ep->ep, &attr.cntrs);
	hd_fi_ep_tables(ep);
	hd_fi_aliases_sync(ep);
	hd_fi_unlock(ep->domain);
}

/* What a user can do about it. */
static const char *address_advice(const struct hd_fi_ep_attr *attr, int rc)
{
	switch (rc) {
	case -FI_EADDRINUSE:
		if (!attr->has_addr || !attr->addr.in.sin_port)
			/*
			 * of HEDDLE_PORTS, and the engine has said so; the port of IPv6
			 * stands at the same place
			 */
			return "";
		return ": another program has that port, as `ss -tlnp` shows; ask for port 0, which is any that is free";
	case -FI_EADDRNOTAVAIL:
		return ": this host has no such address that is up, see `ip address`";
	case -FI_EACCES:
		return ": ports below 1024 are for root: choose others, and see HEDDLE_PORTS";
	default:
		return hd_advice(-rc);
	}
}

static int ep_enable(struct hd_fi_ep *ep)
{
	struct hd_ep_attr attr;
	int rc;

	hd_fi_ep_default_eq(ep);
	rc = hd_fi_ep_check_bound(ep);
	if (rc || ep->ep)
		return rc;
	hd_fi_ep_attr_of(ep, &attr);
	hd_fi_lock(ep->domain);
	rc = hd_fi_auth_enable(ep->domain, &ep->auth, &ep->av, &attr);
	if (!rc)
		rc = hd_fi_ep_share(ep, &attr);
	if (!rc)
		rc = open_locked(ep, &attr);
	if (rc)
		hd_fi_auth_disable(&ep->auth);
	hd_fi_unlock(ep->domain);
	if (rc) {
		char text[80] = "any address";

		if (ep->attr.has_addr)
			hd_fi_addr_text(&ep->attr.addr, text, sizeof(text));
		hd_warn("cannot enable an endpoint at %s: %s%s", text, fi_strerror(-rc),
			address_advice(&ep->attr, rc));
	}
	return rc;
}

/* Whatever kind of endpoint this is. */
static int enable(struct hd_fi_ep *ep)
{
	if (ep->parent)
		return enable(ep->parent);
	if (ep->fid.fid.fclass == FI_CLASS_SRX_CTX)
		return 0; /* it is from the start */
	return ep->sep ? hd_fi_ctx_enable(ep) : ep_enable(ep);
}

/* ---- control --------------------------------------------------------------------------------- */

/* FI_TRANSMIT or FI_RECV, not both, says which direction is meant. */
static struct hd_fi_dir *dir_of(struct hd_fi_bound *bound, uint64_t flags)
{
	switch (flags & (FI_TRANSMIT | FI_RECV)) {
	case FI_TRANSMIT:
		return &bound->tx;
	case FI_RECV:
		return &bound->rx;
	default:
		return NULL;
	}
}

static int get_op_flags(struct hd_fi_bound *bound, uint64_t *flags)
{
	const struct hd_fi_dir *dir = flags ? dir_of(bound, *flags) : NULL;

	if (!dir)
		return hd_fi_no(FI_EINVAL, "FI_GETOPSFLAG wants either FI_TRANSMIT or FI_RECV");
	*flags = dir->op_flags;
	return 0;
}

static int set_op_flags(struct hd_fi_ep *ep, const uint64_t *flags)
{
	struct hd_fi_dir *dir = flags ? dir_of(&ep->bound, *flags) : NULL;
	uint64_t wanted;

	if (!dir)
		return hd_fi_no(FI_EINVAL, "FI_SETOPSFLAG wants either FI_TRANSMIT or FI_RECV");
	wanted = *flags & ~(FI_TRANSMIT | FI_RECV);
	if (!hd_fi_op_flags_can_be(ep->offer, dir == &ep->bound.tx, wanted))
		return hd_fi_no(FI_EBADFLAGS, "FI_SETOPSFLAG with flags that calls do not take");
	hd_fi_lock(ep->domain);
	dir->op_flags = wanted;
	hd_fi_ep_settle(ep);
	if (ep->ep)
		hd_fi_ep_tables(ep);
	hd_fi_unlock(ep->domain);
	return 0;
}

static int ep_control(struct fid *fid, int command, void *arg)
{
	struct hd_fi_ep *ep = (struct hd_fi_ep *)fid;

	switch (command) {
	case FI_ENABLE:
		return enable(ep);
	case FI_ALIAS:
		return hd_fi_ep_alias(ep, arg);
	case FI_GETOPSFLAG:
		return get_op_flags(&ep->bound, arg);
	case FI_SETOPSFLAG:
		return set_op_flags(ep, arg);
	default:
		return hd_fi_no(FI_ENOSYS, "fi_control with a command that endpoints have not");
	}
}

/* ---- opening and closing --------------------------------------------------------------------- */

static int ep_close(struct fid *fid)
{
	struct hd_fi_ep *ep = (struct hd_fi_ep *)fid;
	struct hd_fi_domain *domain = ep->domain;

	if (atomic_load(&ep->sharing.users))
		return hd_fi_no(
			FI_EBUSY,
			"fi_close of an endpoint that others use: aliases, regions, triggered operations");
	if (ep->parent)
		return hd_fi_alias_close(ep);
	if (ep->sep)
		return hd_fi_ctx_close(ep);
	if (fid->fclass == FI_CLASS_SRX_CTX)
		return hd_fi_srx_close(ep);
	hd_fi_ep_leave_srx(ep);
	if (hd_fi_ep_request(ep))
		hd_fi_unanswered(ep, true);
	if (ep->ep) {
		hd_fi_lock(domain);
		hd_ep_send_off(ep->ep);
		hd_fi_coll_close(ep);
		hd_ep_settle(ep->ep);
		hd_fi_auth_readers(domain, ep->ep, NULL, (struct hd_fi_reader){ 0 });
		hd_ep_close(ep->ep);
		hd_fi_auth_disable(&ep->auth);
		hd_fi_triggered_drop(ep);
		hd_fi_unlock(domain);
	}
	if (ep->named) {
		hd_fi_lock(domain);
		hd_fi_name_free(&ep->named);
		hd_fi_unlock(domain);
	}
	hd_fi_ep_leave_stx(&ep->sharing);
	hd_fi_mr_drop_ep(ep);
	hd_fi_ep_unbind(ep);
	ep->magic = 0;
	hd_fi_domain_drop(domain, &ep->object);
	free(ep->groups.all);
	free(ep->connected);
	free(ep);
	return 0;
}

static struct fi_ops ep_fid_ops = HD_FI_FID_OPS(ep_close, hd_fi_ep_bind, ep_control);

/*
 * Capabilities of one direction: its own where it names any, else the info's. The info alone says
 * by its modifiers which directions there are. An endpoint that sends and names the target's side
 * of one-sided operations alone may start them too: libfabric's other providers let programs, which
 * do.
 */
static uint64_t dir_caps(uint64_t info_caps, uint64_t own, uint64_t possible)
{
	uint64_t directions = (info_caps & HD_FI_MODIFIERS) | hd_fi_modifiers(info_caps);

	if (directions & FI_SEND && info_caps & (FI_RMA | FI_ATOMIC) && !(directions & (FI_READ | FI_WRITE)))
		directions |= FI_READ | FI_WRITE;
	return ((own ? own & ~HD_FI_MODIFIERS : info_caps) | directions) & possible;
}

static void take_limits(struct hd_fi_ep *ep, const struct fi_info *info)
{
	const uint64_t asked = info->ep_attr ? info->ep_attr->max_msg_size : 0;
	uint64_t max = asked ? asked : ep->offer->ep.max_msg_size;

	if (hd_fi_variable(ep->offer, info->caps & ep->offer->caps))
		max = HD_MAX_VARIABLE;
	ep->attr.most.inject = info->tx_attr ? info->tx_attr->inject_size : ep->offer->tx.inject_size;
	for (int of = 0; of < HD_FI_LIMITS; of++) {
		ep->call.longest[of] = of == HD_FI_OF_ATOMIC && max > HD_ATOMIC_BYTES ? HD_ATOMIC_BYTES : max;
		ep->attr.most.longest[of] = ep->call.longest[of];
		ep->call.max[of].inject = ep->attr.most.inject;
	}
}

void hd_fi_ep_take_info(struct hd_fi_ep *ep, const struct fi_info *info)
{
	const struct fi_tx_attr *tx = info->tx_attr;
	const struct fi_rx_attr *rx = info->rx_attr;

	ep->bound.tx.caps = dir_caps(info->caps, tx ? tx->caps : 0, ep->offer->tx.caps);
	ep->bound.rx.caps = dir_caps(info->caps, rx ? rx->caps : 0, ep->offer->rx.caps);
	ep->bound.tx.op_flags = tx ? tx->op_flags : 0;
	ep->bound.rx.op_flags = rx ? rx->op_flags : 0;
	ep->attr.prefix = ep->offer->ep.msg_prefix_size;
	ep->attr.tx_size = tx ? (uint32_t)tx->size : 0;
	ep->attr.rx_size = rx && rx->size ? rx->size : ep->offer->rx.size;
	ep->attr.tx_order = tx ? tx->msg_order : ep->offer->tx.msg_order;
	ep->attr.tx_strict = tx && tx->comp_order;
	ep->attr.rma_whole = hd_fi_orders_all(info->ep_attr);
	ep->attr.rx_order = (rx && rx->comp_order ? HD_RECV_ORDERED : 0) |
			    (rx && rx->comp_order & FI_ORDER_DATA ? HD_RECV_ASCENDING : 0);
	ep->attr.rma_iov = tx && tx->rma_iov_limit ? (uint32_t)tx->rma_iov_limit
						   : (uint32_t)ep->offer->tx.rma_iov_limit;
	ep->attr.tx_iov = tx && tx->iov_limit ? (uint32_t)tx->iov_limit : HD_MAX_IOV;
	ep->attr.rx_iov = rx && rx->iov_limit ? (uint32_t)rx->iov_limit : HD_MAX_IOV;
	take_limits(ep, info);
	ep->groups.may = info->caps & ep->offer->caps & FI_MULTICAST;
	ep->collective = info->caps & ep->offer->caps & FI_COLLECTIVE && ep->fid.fid.fclass == FI_CLASS_EP;
	if (ep->collective)
		ep->fid.collective = &hd_fi_collective_ops;
	hd_fi_buffered_init(ep, ep->offer->mode & FI_BUFFERED_RECV ||
					hd_fi_variable(ep->offer, ep->bound.rx.caps));
}

/*
 * A wildcard without a port says nothing; a specific address or a port is where we are to listen.
 */
static int ep_take_address(struct hd_fi_ep *ep, const struct fi_info *info)
{
	if (!info->src_addr || !info->src_addrlen)
		return 0;
	if (hd_fi_addr_copy(info->src_addr, info->src_addrlen, hd_fi_family(ep->domain->addr_format),
			    &ep->attr.addr))
		return hd_fi_no(FI_EINVAL, "fi_endpoint with a source address that is none");
	if (hd_fi_ep_request(ep)) /* the port is the passive endpoint's */
		ep->attr.addr.in.sin_port = 0;
	ep->attr.has_addr = !hd_fi_addr_is_any(&ep->attr.addr);
	return 0;
}

/*
 * What the info says of its kind: connected endpoints report to event queues,
 * which any thread may read.
 */
static int take_kind(struct hd_fi_ep *ep, const struct fi_info *info)
{
	int rc;

	/* who waits for a group reads the event queue alone, which any thread may */
	if (ep->collective)
		hd_fi_domain_share(ep->domain);
	if (!hd_fi_ep_connects(ep))
		return ep_take_address(ep, info);
	ep->connected = calloc(1, sizeof(*ep->connected));
	if (!ep->connected)
		return hd_fi_no(FI_ENOMEM);
	ep->call.addr_mask = 0;
	ep->fid.cm = &hd_fi_conn_cm_ops;
	rc = info->handle ? hd_fi_handle_take(ep, info->handle) : 0;
	if (!rc && !ep->attr.has_addr)
		rc = ep_take_address(ep, info);
	if (!rc)
		hd_fi_domain_share(ep->domain);
	return rc;
}

void hd_fi_ep_init(struct hd_fi_ep *ep, struct hd_fi_domain *domain, const struct hd_fi_offer *offer,
		   size_t fclass, void *context)
{
	ep->domain = domain;
	ep->node = domain->node;
	ep->offer = offer;
	ep->attr.min_multi_recv = HD_FI_MIN_MULTI_RECV;
	ep->call.addr_mask = UINT64_MAX;
	ep->fid = (struct fid_ep){ .fid = { .fclass = fclass, .context = context, .ops = &ep_fid_ops },
				   .ops = &hd_fi_ep_ops,
				   .cm = fclass == FI_CLASS_EP ? &hd_fi_cm_ops : &hd_fi_ctx_cm_ops,
				   .msg = &hd_fi_idle_msg_ops,
				   .rma = &hd_fi_idle_rma_ops,
				   .tagged = &hd_fi_idle_tagged_ops,
				   .atomic = &hd_fi_atomic_ops,
				   .collective = &hd_fi_no_collective_ops };
	ep->magic = HD_FI_EP;
}

/* Several contexts need a scalable endpoint; a shared one is bound later. */
static bool ep_take_counts(struct hd_fi_sharing *sharing, const struct fi_ep_attr *attr)
{
	sharing->wants_stx = attr->tx_ctx_cnt == FI_SHARED_CONTEXT;
	sharing->wants_srx = attr->rx_ctx_cnt == FI_SHARED_CONTEXT;
	return (sharing->wants_stx || attr->tx_ctx_cnt <= 1) && (sharing->wants_srx || attr->rx_ctx_cnt <= 1);
}

int hd_fi_ep_open(struct fid_domain *domain_fid, struct fi_info *info, struct fid_ep **out, void *context)
{
	struct hd_fi_domain *domain = hd_fi_as(hd_fi_domain, HD_FI_DOMAIN, FI_CLASS_DOMAIN, domain_fid);
	const struct hd_fi_offer *offer;
	struct hd_fi_ep *ep;
	int rc;

	if (!domain || !info || !out || !info->ep_attr || info->ep_attr->type == FI_EP_UNSPEC)
		return hd_fi_no(FI_EINVAL,
				"fi_endpoint without a domain, or an info without a type of endpoint");
	offer = hd_fi_offer_of(domain->fabric->fid.api_version, info);
	if (!offer)
		return hd_fi_no(FI_EINVAL, "fi_endpoint with an info that fi_getinfo has not given");
	ep = calloc(1, sizeof(*ep));
	if (!ep)
		return hd_fi_no(FI_ENOMEM);
	hd_fi_ep_init(ep, domain, offer, FI_CLASS_EP, context);
	hd_fi_ep_take_info(ep, info);
	rc = ep_take_counts(&ep->sharing, info->ep_attr)
		     ? hd_fi_auth_ep(domain, info, &ep->auth.own)
		     : hd_fi_no(FI_EINVAL, "fi_endpoint with more contexts than fi_getinfo has said");
	if (!rc)
		rc = take_kind(ep, info);
	if (rc) {
		if (hd_fi_ep_request(ep))
			hd_fi_unanswered(ep, false);
		free(ep->connected);
		free(ep);
		return rc;
	}
	hd_fi_domain_add(domain, &ep->object, &ep->fid.fid);
	*out = &ep->fid;
	return 0;
}
