/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Hints against offer, attribute by attribute, as fi_getinfo(3), fi_domain(3) and fi_endpoint(3)
 * say: a value that is not zero must be supported, a size or count at least reached. What is
 * refused is logged, so that FI_LOG_LEVEL=info tells why a program does not get this provider.
 */
#include "base/log.h"
#include "front/ofi/auth.h"

#include <string.h>

static int hints_refuse(const char *what, uint64_t wanted)
{
	hd_info("hints ask for what is not offered: %s 0x%llx: `fi_info -p heddle -v` shows what is", what,
		(unsigned long long)wanted);
	return -FI_ENODATA;
}

/* One number that must not exceed what is offered, or one set of bits that must lie within it. */
struct limit {
	const char *name;
	uint64_t wanted, offered;
};

static int check_numbers(const struct limit *limits, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (limits[i].wanted > limits[i].offered)
			return hints_refuse(limits[i].name, limits[i].wanted);
	return 0;
}

static int check_bits(const struct limit *limits, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (limits[i].wanted & ~limits[i].offered)
			return hints_refuse(limits[i].name, limits[i].wanted & ~limits[i].offered);
	return 0;
}

#define CHECK_NUMBERS(...) \
	check_numbers((const struct limit[]){ __VA_ARGS__ }, \
		      sizeof((const struct limit[]){ __VA_ARGS__ }) / sizeof(struct limit))
#define CHECK_BITS(...) \
	check_bits((const struct limit[]){ __VA_ARGS__ }, \
		   sizeof((const struct limit[]){ __VA_ARGS__ }) / sizeof(struct limit))

#define ATOMIC_ORDERS (FI_ORDER_ATOMIC_RAR | FI_ORDER_ATOMIC_RAW | FI_ORDER_ATOMIC_WAR | FI_ORDER_ATOMIC_WAW)
#define ALL_ORDERS \
	(FI_ORDER_STRICT | FI_ORDER_RMA_RAR | FI_ORDER_RMA_RAW | FI_ORDER_RMA_WAR | FI_ORDER_RMA_WAW | \
	 ATOMIC_ORDERS)

/* An order that names operations which the program cannot start holds by itself. */
static uint64_t orders(const struct hd_fi_offer *offer, const struct fi_info *hints, uint64_t promised)
{
	uint64_t caps = hints->caps ? hints->caps : offer->caps;

	if (!(caps & (FI_RMA | FI_ATOMIC)))
		return ALL_ORDERS;
	promised |= HD_FI_ORDERS_ON_REQUEST;
	return caps & FI_ATOMIC ? promised : promised | ATOMIC_ORDERS;
}

/*
 * The order of data is that of messages: what others write by themselves, or send to a group, is
 * not part of it, so who asks for it goes without those.
 */
static uint64_t received_orders(const struct hd_fi_offer *offer, const struct fi_info *hints)
{
	uint64_t caps = hints->caps ? hints->caps : offer->caps;

	return FI_ORDER_STRICT | (caps & (FI_RMA | FI_ATOMIC | FI_MULTICAST) ? 0 : FI_ORDER_DATA);
}

/* The bits that a context can be asked for: those of the info, where that names any. */
static uint64_t context_caps(const struct hd_fi_offer *offer, const struct fi_info *hints)
{
	return hints->caps ? hints->caps | HD_FI_SECONDARY | HD_FI_MODIFIERS : offer->caps;
}

/*
 * A class says how traffic should be treated beside other traffic: where all is treated alike,
 * every one that the page names is kept.
 */
static int check_tclass(uint32_t tclass)
{
	const bool is_dscp = (tclass & ~UINT32_C(0xff)) == FI_TC_DSCP;

	if (tclass == FI_TC_UNSPEC || is_dscp ||
	    (tclass >= FI_TC_BEST_EFFORT && tclass <= FI_TC_NETWORK_CTRL))
		return 0;
	return hints_refuse("traffic class", tclass);
}

static int check_tx(const struct hd_fi_offer *offer, const struct fi_info *hints)
{
	const struct fi_tx_attr *best = &offer->tx;
	const struct fi_tx_attr *tx = hints->tx_attr;
	int rc;

	if (!tx)
		return 0;
	rc = CHECK_BITS({ "transmit capabilities", tx->caps, context_caps(offer, hints) },
			{ "transmit op_flags", tx->op_flags, offer->tx_op_flags },
			{ "transmit order", tx->msg_order, orders(offer, hints, best->msg_order) },
			{ "transmit completion order", tx->comp_order, FI_ORDER_STRICT });
	if (!rc)
		rc = CHECK_NUMBERS({ "inject_size", tx->inject_size, best->inject_size },
				   { "transmit size", tx->size, HD_FI_MAX_TX_SIZE },
				   { "transmit iov_limit", tx->iov_limit, best->iov_limit },
				   { "rma_iov_limit", tx->rma_iov_limit, best->rma_iov_limit });
	return rc ? rc : check_tclass(tx->tclass);
}

static int check_rx(const struct hd_fi_offer *offer, const struct fi_info *hints)
{
	const struct fi_rx_attr *best = &offer->rx;
	const struct fi_rx_attr *rx = hints->rx_attr;
	int rc;

	if (!rx)
		return 0;
	rc = CHECK_BITS({ "receive capabilities", rx->caps, context_caps(offer, hints) },
			{ "receive op_flags", rx->op_flags, offer->rx_op_flags },
			{ "receive order", rx->msg_order, orders(offer, hints, best->msg_order) },
			{ "receive completion order", rx->comp_order, received_orders(offer, hints) });
	if (rc)
		return rc;
	return CHECK_NUMBERS({ "receive size", rx->size, HD_FI_MAX_RX_SIZE },
			     { "receive iov_limit", rx->iov_limit, best->iov_limit });
}

static bool many_contexts(size_t count)
{
	return count != FI_SHARED_CONTEXT && count > 1;
}

/*
 * fi_endpoint opens one context each way or a shared one, fi_scalable_ep many,
 * none of which is shared.
 */
static bool many_beside_shared(size_t many, size_t shared)
{
	return shared == FI_SHARED_CONTEXT && many_contexts(many);
}

/*
 * The order of data is kept for any size: for whoever asks, and where nothing is read or
 * written it holds by itself.
 */
static int check_ep(const struct fi_ep_attr *best, const struct fi_ep_attr *ep)
{
	const size_t contexts = best->type == FI_EP_MSG ? 1 : HD_FI_MAX_CTX;

	if (!ep)
		return 0;
	if (ep->type != FI_EP_UNSPEC && ep->type != best->type)
		return hints_refuse("endpoint type", ep->type);
	if (ep->protocol != FI_PROTO_UNSPEC && ep->protocol != best->protocol)
		return hints_refuse("protocol", ep->protocol);
	if (many_beside_shared(ep->tx_ctx_cnt, ep->rx_ctx_cnt))
		return hints_refuse("tx_ctx_cnt beside a shared receive context", ep->tx_ctx_cnt);
	if (many_beside_shared(ep->rx_ctx_cnt, ep->tx_ctx_cnt))
		return hints_refuse("rx_ctx_cnt beside a shared transmit context", ep->rx_ctx_cnt);
	return CHECK_NUMBERS({ "protocol_version", ep->protocol_version, best->protocol_version },
			     { "max_msg_size", ep->max_msg_size, best->max_msg_size },
			     /* FI_SHARED_CONTEXT is -1 */
			     { "tx_ctx_cnt", ep->tx_ctx_cnt + 1, contexts + 1 },
			     { "rx_ctx_cnt", ep->rx_ctx_cnt + 1, contexts + 1 });
}

/*
 * FI_MR_BASIC and FI_MR_SCALABLE stand alone; all other bits say what the program is willing to do.
 */
static int check_mr_mode(int mode)
{
	if (mode & FI_MR_BASIC && mode != FI_MR_BASIC)
		return hints_refuse("mr_mode", (uint64_t)mode);
	if (mode & FI_MR_SCALABLE && mode != FI_MR_SCALABLE)
		return hints_refuse("mr_mode", (uint64_t)mode);
	return 0;
}

static int check_domain_modes(uint32_t version, const struct fi_domain_attr *domain)
{
	const uint64_t progress = FI_VERSION_GE(version, FI_VERSION(1, 21)) ? HD_FI_PROGRESS_UNIFIED
									    : FI_PROGRESS_MANUAL;

	return CHECK_NUMBERS({ "threading", domain->threading, FI_THREAD_ENDPOINT },
			     { "control_progress", domain->control_progress, progress },
			     { "data_progress", domain->data_progress, progress },
			     { "resource_mgmt", domain->resource_mgmt, FI_RM_ENABLED },
			     { "av_type", domain->av_type, FI_AV_TABLE });
}

/*
 * Counts of queues, endpoints and contexts, and the size of keys, tell programs what there is: more
 * than that is answered with it.
 */
static int check_domain_sizes(const struct fi_domain_attr *domain)
{
	const struct fi_domain_attr *best = &hd_fi_offered_domain;

	return CHECK_NUMBERS({ "cq_data_size", domain->cq_data_size, best->cq_data_size },
			     { "cntr_cnt", domain->cntr_cnt, best->cntr_cnt },
			     { "mr_iov_limit", domain->mr_iov_limit, best->mr_iov_limit });
}

/* Counters have all values there are, so what is asked of them (2.5) is kept. */
static int check_domain_tail(uint32_t version, const struct hd_fi_domain_tail *tail)
{
	const uint32_t both = FI_VERSION_LT(version, hd_fi_core()) ? version : hd_fi_core();

	if (FI_VERSION_GE(both, FI_VERSION(1, 20)) &&
	    tail->max_ep_auth_key > hd_fi_offered_tail.max_ep_auth_key)
		return hints_refuse("max_ep_auth_key", tail->max_ep_auth_key);
	if (FI_VERSION_GE(both, FI_VERSION(2, 0)) && tail->max_group_id > hd_fi_offered_tail.max_group_id)
		return hints_refuse("max_group_id", tail->max_group_id);
	return 0;
}

/* Members that came after the first release are not there in a program built for an older one. */
static int check_domain_newer(uint32_t version, const struct fi_domain_attr *domain)
{
	if (FI_VERSION_LT(version, FI_VERSION(1, 5)))
		return 0;
	if (domain->caps & ~(hd_fi_offered_domain.caps | FI_AV_USER_ID))
		return hints_refuse("domain capabilities",
				    domain->caps & ~(hd_fi_offered_domain.caps | FI_AV_USER_ID));
	if (domain->max_err_data > hd_fi_offered_domain.max_err_data)
		return hints_refuse("max_err_data", domain->max_err_data);
	if (FI_VERSION_GE(version, FI_VERSION(1, 9)) && check_tclass(domain->tclass))
		return -FI_ENODATA;
	return check_domain_tail(version, hd_fi_domain_tail_of(domain));
}

static int check_domain(uint32_t version, const struct fi_domain_attr *domain)
{
	int rc;

	if (!domain)
		return 0;
	if (domain->name && strcmp(domain->name, HD_FI_DOMAIN_NAME)) {
		hd_info("hints ask for domain %s: ask for " HD_FI_DOMAIN_NAME ", or for none", domain->name);
		return -FI_ENODATA;
	}
	rc = check_domain_modes(version, domain);
	if (!rc)
		rc = check_domain_sizes(domain);
	if (!rc)
		rc = check_mr_mode(domain->mr_mode);
	return rc ? rc : check_domain_newer(version, domain);
}

static int check_fabric(const struct fi_fabric_attr *fabric)
{
	if (!fabric)
		return 0;
	if (fabric->name && strcmp(fabric->name, HD_FI_FABRIC_NAME)) {
		hd_info("hints ask for fabric %s: ask for " HD_FI_FABRIC_NAME ", or for none", fabric->name);
		return -FI_ENODATA;
	}
	return CHECK_NUMBERS({ "provider version", fabric->prov_version, HD_FI_PROV_VER });
}

/*
 * Capabilities that mean something beside others only, and those that exclude
 * each other; fi_getinfo(3).
 */
static int check_paired(const struct hd_fi_offer *offer, uint64_t caps)
{
	const bool variable = hd_fi_variable(offer, caps);

	if (caps & FI_MULTICAST && !(caps & FI_MSG))
		return hints_refuse("groups without messages", FI_MULTICAST);
	if (caps & FI_SOURCE_ERR && !(caps & FI_SOURCE))
		return hints_refuse("addresses of strangers without those of others", FI_SOURCE_ERR);
	if (variable && !(caps & (FI_MSG | FI_TAGGED)))
		return hints_refuse("messages of any length without messages", FI_VARIABLE_MSG);
	if (variable && caps & FI_MULTI_RECV)
		return hints_refuse("a posted buffer where nothing is posted", FI_MULTI_RECV);
	return 0;
}

int hd_fi_offer_check(const struct hd_fi_offer *offer, uint32_t version, const struct fi_info *hints)
{
	int rc;

	if (!hints)
		return 0;
	if (hints->caps & ~offer->caps)
		return hints_refuse("capabilities", hints->caps & ~offer->caps);
	if (check_paired(offer, hints->caps))
		return -FI_ENODATA;
	if (hints->caps & FI_COLLECTIVE && hints->ep_attr &&
	    (many_contexts(hints->ep_attr->tx_ctx_cnt) || many_contexts(hints->ep_attr->rx_ctx_cnt)))
		return hints_refuse("groups of scalable endpoints", FI_COLLECTIVE);
	if (hd_fi_family(hints->addr_format) < 0)
		return hints_refuse("address format", hints->addr_format);
	rc = check_fabric(hints->fabric_attr);
	if (!rc)
		rc = hd_fi_auth_check(offer, version, hints);
	if (!rc)
		rc = check_domain(version, hints->domain_attr);
	if (!rc)
		rc = check_ep(&offer->ep, hints->ep_attr);
	if (!rc)
		rc = check_tx(offer, hints);
	return rc ? rc : check_rx(offer, hints);
}

/* ---- applying -------------------------------------------------------------------------------- */

#define TX_MODIFIERS (FI_SEND | FI_READ | FI_WRITE)
#define RX_MODIFIERS (FI_RECV | FI_REMOTE_READ | FI_REMOTE_WRITE)

/*
 * Primary capabilities as asked for; no modifier means all that there are; what is secondary and
 * costs nothing is always there.
 */
static uint64_t chosen_caps(const struct hd_fi_offer *offer, uint64_t wanted)
{
	if (!wanted)
		return offer->caps & ~HD_FI_ON_REQUEST;
	wanted |= hd_fi_modifiers(wanted);
	wanted |= wanted & FI_RECV ? HD_FI_SECONDARY : HD_FI_DOMAIN_CAPS;
	if (hd_fi_variable(offer, wanted))
		wanted &= ~FI_MULTI_RECV;
	return wanted & offer->caps;
}

/*
 * A direction that is not asked for has no capabilities at all. FI_NAMED_RX_CTX and
 * FI_DIRECTED_RECV by themselves ask for neither.
 */
static bool has_direction(uint64_t caps, uint64_t modifiers)
{
	return caps & modifiers || !(caps & HD_FI_MODIFIERS);
}

static uint64_t tx_caps(const struct hd_fi_offer *offer, uint64_t caps, uint64_t own)
{
	if (!has_direction(caps, TX_MODIFIERS))
		return 0;
	return caps & offer->tx.caps & (own ? own | TX_MODIFIERS : ~UINT64_C(0));
}

static uint64_t rx_caps(const struct hd_fi_offer *offer, uint64_t caps, uint64_t own)
{
	if (!has_direction(caps, RX_MODIFIERS))
		return 0;
	return caps & offer->rx.caps & (own ? own | RX_MODIFIERS | HD_FI_SECONDARY : ~UINT64_C(0));
}

static void apply_contexts(const struct hd_fi_offer *offer, const struct fi_info *hints, struct fi_info *info)
{
	const struct fi_tx_attr *tx = hints->tx_attr;
	const struct fi_rx_attr *rx = hints->rx_attr;

	info->tx_attr->caps = tx_caps(offer, info->caps, tx ? tx->caps : 0);
	info->rx_attr->caps = rx_caps(offer, info->caps, rx ? rx->caps : 0);
	if (tx) {
		info->tx_attr->op_flags = tx->op_flags;
		info->tx_attr->msg_order |= tx->msg_order;
		info->tx_attr->comp_order = tx->comp_order ? FI_ORDER_STRICT : FI_ORDER_NONE;
		info->tx_attr->tclass = tx->tclass;
		if (tx->size)
			info->tx_attr->size = tx->size;
	}
	if (rx) {
		info->rx_attr->op_flags = rx->op_flags;
		info->rx_attr->msg_order |= rx->msg_order;
		info->rx_attr->comp_order = rx->comp_order & FI_ORDER_DATA;
		if (rx->comp_order)
			info->rx_attr->comp_order |= FI_ORDER_STRICT;
		if (rx->size)
			info->rx_attr->size = rx->size;
	}
}

/*
 * Nothing of it is needed, so every bit is cleared, as fi_mr(3) has it. The two old names stand for
 * themselves: up to 1.4 there were two kinds of registration and no third.
 */
static int chosen_mr_mode(uint32_t version, int wanted)
{
	if (wanted == FI_MR_BASIC || wanted == FI_MR_SCALABLE)
		return wanted;
	return FI_VERSION_LT(version, FI_VERSION(1, 5)) ? FI_MR_SCALABLE : 0;
}

static void apply_domain(uint32_t version, const struct fi_domain_attr *hints, struct fi_domain_attr *attr)
{
	if (hints->threading != FI_THREAD_UNSPEC)
		attr->threading = hints->threading;
	if (hints->control_progress != FI_PROGRESS_UNSPEC)
		attr->control_progress = hints->control_progress;
	if (hints->data_progress != FI_PROGRESS_UNSPEC)
		attr->data_progress = hints->data_progress;
	if (hints->resource_mgmt != FI_RM_UNSPEC)
		attr->resource_mgmt = hints->resource_mgmt;
	if (hints->av_type != FI_AV_UNSPEC)
		attr->av_type = hints->av_type;
	attr->mr_mode = chosen_mr_mode(version, hints->mr_mode);
	if (FI_VERSION_GE(version, FI_VERSION(1, 9)))
		attr->tclass = hints->tclass;
	if (FI_VERSION_GE(version, FI_VERSION(1, 5)))
		attr->caps |= hints->caps & FI_AV_USER_ID;
	attr->domain = hints->domain;
}

/* More than the offer is kept for whoever asks. */
static void apply_order_size(size_t wanted, size_t *size)
{
	if (wanted > *size)
		*size = wanted;
}

/*
 * Tags have 64 bits, and masks may have any of them: whatever fields a program
 * divides them into are there.
 */
static void apply_ep(const struct fi_ep_attr *hints, struct fi_ep_attr *ep)
{
	if (hints->tx_ctx_cnt)
		ep->tx_ctx_cnt = hints->tx_ctx_cnt;
	if (hints->rx_ctx_cnt)
		ep->rx_ctx_cnt = hints->rx_ctx_cnt;
	if (hints->mem_tag_format)
		ep->mem_tag_format = hints->mem_tag_format;
	apply_order_size(hints->max_order_raw_size, &ep->max_order_raw_size);
	apply_order_size(hints->max_order_war_size, &ep->max_order_war_size);
	apply_order_size(hints->max_order_waw_size, &ep->max_order_waw_size);
}

void hd_fi_offer_apply(const struct hd_fi_offer *offer, uint32_t version, const struct fi_info *hints,
		       struct fi_info *info)
{
	info->domain_attr->mr_mode = chosen_mr_mode(version, FI_MR_UNSPEC);
	if (!hints) {
		info->caps &= ~HD_FI_ON_REQUEST;
		info->tx_attr->caps &= ~HD_FI_ON_REQUEST;
		info->rx_attr->caps &= ~HD_FI_ON_REQUEST;
		return;
	}
	info->caps = chosen_caps(offer, hints->caps);
	info->domain_attr->caps |= info->caps & FI_AV_USER_ID;
	info->handle = hints->handle;
	apply_contexts(offer, hints, info);
	if (hints->ep_attr)
		apply_ep(hints->ep_attr, info->ep_attr);
	if (hints->domain_attr)
		apply_domain(version, hints->domain_attr, info->domain_attr);
	if (hints->fabric_attr)
		info->fabric_attr->fabric = hints->fabric_attr->fabric;
}
