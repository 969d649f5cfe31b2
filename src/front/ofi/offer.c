/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* The table of offers, and the row that an info belongs to. */
#include "front/ofi/offer.h"
#include "front/ofi/auth.h"

#include <string.h>

/* Reliable, to anybody. Which capability belongs to which direction is said in fi_endpoint(3). */
#define RDM_TX_CAPS \
	(FI_NAMED_RX_CTX | FI_MSG | FI_TAGGED | FI_SEND | FI_FENCE | FI_TRIGGER | FI_RMA | FI_ATOMIC | \
	 FI_READ | FI_WRITE | FI_MULTICAST)
#define RDM_RX_CAPS \
	(FI_MSG | FI_TAGGED | FI_RECV | FI_DIRECTED_RECV | FI_MULTI_RECV | FI_SOURCE | FI_TRIGGER | \
	 FI_VARIABLE_MSG | FI_RMA | FI_ATOMIC | FI_REMOTE_READ | FI_REMOTE_WRITE | FI_RMA_EVENT | \
	 FI_SOURCE_ERR)
#define RDM_CAPS (RDM_TX_CAPS | RDM_RX_CAPS | HD_FI_DOMAIN_CAPS | FI_AV_USER_ID)

/* The same, to one that it is connected to: there is nobody else that a message could come from. */
#define MSG_TX_CAPS (RDM_TX_CAPS & ~(FI_NAMED_RX_CTX | FI_MULTICAST))
#define MSG_RX_CAPS (RDM_RX_CAPS & ~(FI_DIRECTED_RECV | FI_SOURCE | FI_SOURCE_ERR))
#define MSG_CAPS (MSG_TX_CAPS | MSG_RX_CAPS | HD_FI_DOMAIN_CAPS)

/*
 * Unreliable: nothing answers, so a send is over when it has left, and levels
 * beyond that do not exist.
 */
#define DGRAM_TX_CAPS (FI_NAMED_RX_CTX | FI_MSG | FI_TAGGED | FI_SEND | FI_TRIGGER | FI_MULTICAST)
#define DGRAM_RX_CAPS \
	(RDM_RX_CAPS & \
	 ~(FI_VARIABLE_MSG | FI_RMA | FI_ATOMIC | FI_REMOTE_READ | FI_REMOTE_WRITE | FI_RMA_EVENT))
#define DGRAM_CAPS (DGRAM_TX_CAPS | DGRAM_RX_CAPS | HD_FI_DOMAIN_CAPS | FI_AV_USER_ID)
#define DGRAM_TX_OP_FLAGS (FI_COMPLETION | FI_INJECT | FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE)

#define TX_OP_FLAGS (FI_COMPLETION | FI_INJECT | HD_FI_LEVELS)
#define RX_OP_FLAGS (FI_COMPLETION | FI_MULTI_RECV | HD_FI_LEVELS)

/*
 * As sent, and messages never before the data of earlier writes. What follows a message, and
 * messages behind a read, are on request.
 */
#define RMA_ORDER \
	(FI_ORDER_SAW | FI_ORDER_RAR | FI_ORDER_RAW | FI_ORDER_WAR | FI_ORDER_WAW | FI_ORDER_RMA_RAR | \
	 FI_ORDER_RMA_RAW | FI_ORDER_RMA_WAR | FI_ORDER_RMA_WAW | FI_ORDER_ATOMIC_RAR | \
	 FI_ORDER_ATOMIC_RAW | FI_ORDER_ATOMIC_WAR | FI_ORDER_ATOMIC_WAW)
#define ORDER(CAPS) (FI_ORDER_SAS | ((CAPS)&FI_RMA ? RMA_ORDER : 0))
#define ORDERED(TYPE) ((TYPE) == FI_EP_DGRAM ? 0 : HD_RMA_ORDERED)

#define TX_ATTR(CAPS) \
	{ \
		.caps = (CAPS), .msg_order = ORDER(CAPS), .comp_order = FI_ORDER_NONE, \
		.inject_size = HD_MAX_INJECT, .size = HD_FI_DEFAULT_SIZE, .iov_limit = HD_MAX_IOV, \
		.rma_iov_limit = (CAPS)&FI_RMA ? HD_RMA_SEGS : 0, \
	}

#define RX_ATTR(CAPS) \
	{ \
		.caps = (CAPS), .msg_order = ORDER(CAPS), .comp_order = FI_ORDER_NONE, \
		.size = HD_FI_DEFAULT_SIZE, .iov_limit = HD_MAX_IOV, \
	}

#define EP_ATTR(TYPE, MAX, ...) \
	{ \
		.type = (TYPE), .protocol = HD_FI_PROTO, .protocol_version = HD_WIRE_VERSION, \
		.max_msg_size = (MAX), .mem_tag_format = HD_FI_TAG_FORMAT, .tx_ctx_cnt = 1, .rx_ctx_cnt = 1, \
		.max_order_raw_size = ORDERED(TYPE), .max_order_war_size = ORDERED(TYPE), \
		.max_order_waw_size = ORDERED(TYPE), __VA_ARGS__ \
	}

/* One buffer that takes many messages has room for one prefix. */
#define PREFIXED(CAPS) ((CAPS) & ~(FI_MULTI_RECV | FI_VARIABLE_MSG))

/* What 2.0 took away, and what it brought where senders are named. */
#define SERIES_2(CAPS) ((CAPS) & ~FI_VARIABLE_MSG)
#define EXACT (FI_TAGGED_DIRECTED_RECV | FI_EXACT_DIRECTED_RECV)

const struct hd_fi_offer hd_fi_offers[] = {
	{ .series = 1,
	  .caps = RDM_CAPS | FI_COLLECTIVE,
	  .tx = TX_ATTR(RDM_TX_CAPS | FI_COLLECTIVE),
	  .rx = RX_ATTR(RDM_RX_CAPS | FI_COLLECTIVE),
	  .ep = EP_ATTR(FI_EP_RDM, HD_MAX_MSG),
	  .tx_op_flags = TX_OP_FLAGS | FI_MULTICAST,
	  .rx_op_flags = RX_OP_FLAGS },
	{ .series = 1,
	  .mode = FI_BUFFERED_RECV,
	  .caps = RDM_CAPS & ~(FI_MULTI_RECV | FI_MULTICAST),
	  .tx = TX_ATTR(RDM_TX_CAPS & ~FI_MULTICAST),
	  .rx = RX_ATTR(RDM_RX_CAPS & ~FI_MULTI_RECV),
	  .ep = EP_ATTR(FI_EP_RDM, HD_MAX_MSG),
	  .tx_op_flags = TX_OP_FLAGS,
	  .rx_op_flags = RX_OP_FLAGS & ~FI_MULTI_RECV },
	{ .series = 1,
	  .mode = FI_MSG_PREFIX,
	  .caps = PREFIXED(RDM_CAPS),
	  .tx = TX_ATTR(RDM_TX_CAPS),
	  .rx = RX_ATTR(PREFIXED(RDM_RX_CAPS)),
	  .ep = EP_ATTR(FI_EP_RDM, HD_MAX_MSG, .msg_prefix_size = HD_FI_PREFIX),
	  .tx_op_flags = TX_OP_FLAGS,
	  .rx_op_flags = PREFIXED(RX_OP_FLAGS) },
	{ .series = 1,
	  .caps = MSG_CAPS,
	  .tx = TX_ATTR(MSG_TX_CAPS),
	  .rx = RX_ATTR(MSG_RX_CAPS),
	  .ep = EP_ATTR(FI_EP_MSG, HD_MAX_MSG),
	  .tx_op_flags = TX_OP_FLAGS,
	  .rx_op_flags = RX_OP_FLAGS },
	{ .series = 1,
	  .mode = FI_BUFFERED_RECV,
	  .caps = MSG_CAPS & ~FI_MULTI_RECV,
	  .tx = TX_ATTR(MSG_TX_CAPS),
	  .rx = RX_ATTR(MSG_RX_CAPS & ~FI_MULTI_RECV),
	  .ep = EP_ATTR(FI_EP_MSG, HD_MAX_MSG),
	  .tx_op_flags = TX_OP_FLAGS,
	  .rx_op_flags = RX_OP_FLAGS & ~FI_MULTI_RECV },
	{ .series = 1,
	  .mode = FI_MSG_PREFIX,
	  .caps = PREFIXED(MSG_CAPS),
	  .tx = TX_ATTR(MSG_TX_CAPS),
	  .rx = RX_ATTR(PREFIXED(MSG_RX_CAPS)),
	  .ep = EP_ATTR(FI_EP_MSG, HD_MAX_MSG, .msg_prefix_size = HD_FI_PREFIX),
	  .tx_op_flags = TX_OP_FLAGS,
	  .rx_op_flags = PREFIXED(RX_OP_FLAGS) },
	{ .series = 1,
	  .caps = DGRAM_CAPS,
	  .tx = TX_ATTR(DGRAM_TX_CAPS),
	  .rx = RX_ATTR(DGRAM_RX_CAPS),
	  .ep = EP_ATTR(FI_EP_DGRAM, HD_MAX_DGRAM),
	  .tx_op_flags = DGRAM_TX_OP_FLAGS | FI_MULTICAST,
	  .rx_op_flags = RX_OP_FLAGS },
	{ .series = 1,
	  .mode = FI_MSG_PREFIX,
	  .caps = PREFIXED(DGRAM_CAPS),
	  .tx = TX_ATTR(DGRAM_TX_CAPS),
	  .rx = RX_ATTR(PREFIXED(DGRAM_RX_CAPS)),
	  .ep = EP_ATTR(FI_EP_DGRAM, HD_MAX_DGRAM, .msg_prefix_size = HD_FI_PREFIX),
	  .tx_op_flags = DGRAM_TX_OP_FLAGS,
	  .rx_op_flags = PREFIXED(RX_OP_FLAGS) },
	{ .series = 2,
	  .caps = SERIES_2(RDM_CAPS) | EXACT | FI_COLLECTIVE,
	  .tx = TX_ATTR(RDM_TX_CAPS | FI_COLLECTIVE),
	  .rx = RX_ATTR(SERIES_2(RDM_RX_CAPS) | EXACT | FI_COLLECTIVE),
	  .ep = EP_ATTR(FI_EP_RDM, HD_MAX_MSG),
	  .tx_op_flags = TX_OP_FLAGS | FI_MULTICAST,
	  .rx_op_flags = RX_OP_FLAGS },
	{ .series = 2,
	  .mode = FI_MSG_PREFIX,
	  .caps = (SERIES_2(RDM_CAPS) | EXACT) & ~FI_MULTI_RECV,
	  .tx = TX_ATTR(RDM_TX_CAPS),
	  .rx = RX_ATTR((SERIES_2(RDM_RX_CAPS) | EXACT) & ~FI_MULTI_RECV),
	  .ep = EP_ATTR(FI_EP_RDM, HD_MAX_MSG, .msg_prefix_size = HD_FI_PREFIX),
	  .tx_op_flags = TX_OP_FLAGS,
	  .rx_op_flags = PREFIXED(RX_OP_FLAGS) },
	{ .series = 2,
	  .caps = SERIES_2(MSG_CAPS),
	  .tx = TX_ATTR(MSG_TX_CAPS),
	  .rx = RX_ATTR(SERIES_2(MSG_RX_CAPS)),
	  .ep = EP_ATTR(FI_EP_MSG, HD_MAX_MSG),
	  .tx_op_flags = TX_OP_FLAGS,
	  .rx_op_flags = RX_OP_FLAGS },
	{ .series = 2,
	  .mode = FI_MSG_PREFIX,
	  .caps = SERIES_2(MSG_CAPS) & ~FI_MULTI_RECV,
	  .tx = TX_ATTR(MSG_TX_CAPS),
	  .rx = RX_ATTR(SERIES_2(MSG_RX_CAPS) & ~FI_MULTI_RECV),
	  .ep = EP_ATTR(FI_EP_MSG, HD_MAX_MSG, .msg_prefix_size = HD_FI_PREFIX),
	  .tx_op_flags = TX_OP_FLAGS,
	  .rx_op_flags = PREFIXED(RX_OP_FLAGS) },
	{ .series = 2,
	  .caps = SERIES_2(DGRAM_CAPS) | EXACT,
	  .tx = TX_ATTR(DGRAM_TX_CAPS),
	  .rx = RX_ATTR(SERIES_2(DGRAM_RX_CAPS) | EXACT),
	  .ep = EP_ATTR(FI_EP_DGRAM, HD_MAX_DGRAM),
	  .tx_op_flags = DGRAM_TX_OP_FLAGS | FI_MULTICAST,
	  .rx_op_flags = RX_OP_FLAGS },
	{ .series = 2,
	  .mode = FI_MSG_PREFIX,
	  .caps = (SERIES_2(DGRAM_CAPS) | EXACT) & ~FI_MULTI_RECV,
	  .tx = TX_ATTR(DGRAM_TX_CAPS),
	  .rx = RX_ATTR((SERIES_2(DGRAM_RX_CAPS) | EXACT) & ~FI_MULTI_RECV),
	  .ep = EP_ATTR(FI_EP_DGRAM, HD_MAX_DGRAM, .msg_prefix_size = HD_FI_PREFIX),
	  .tx_op_flags = DGRAM_TX_OP_FLAGS,
	  .rx_op_flags = PREFIXED(RX_OP_FLAGS) },
};
const size_t hd_fi_offer_count = sizeof(hd_fi_offers) / sizeof(hd_fi_offers[0]);

const struct fi_domain_attr hd_fi_offered_domain = {
	.threading = FI_THREAD_SAFE,
	.control_progress = FI_PROGRESS_MANUAL,
	.data_progress = FI_PROGRESS_MANUAL,
	.resource_mgmt = FI_RM_ENABLED,
	.av_type = FI_AV_UNSPEC,
	.mr_key_size = HD_FI_MR_KEY_SIZE,
	.cq_data_size = HD_FI_CQ_DATA_SIZE,
	.cq_cnt = HD_FI_MAX_OBJECTS,
	.ep_cnt = HD_FI_MAX_OBJECTS,
	.tx_ctx_cnt = HD_FI_MAX_OBJECTS,
	.rx_ctx_cnt = HD_FI_MAX_OBJECTS,
	.max_ep_tx_ctx = HD_FI_MAX_CTX,
	.max_ep_rx_ctx = HD_FI_MAX_CTX,
	.max_ep_stx_ctx = HD_FI_MAX_OBJECTS,
	.max_ep_srx_ctx = HD_FI_MAX_OBJECTS,
	.cntr_cnt = HD_FI_MAX_OBJECTS,
	.mr_iov_limit = HD_MAX_IOV,
	.mr_cnt = HD_FI_MAX_OBJECTS,
	.caps = HD_FI_DOMAIN_CAPS,
	.max_err_data = HD_FI_ERR_DATA,
};

const struct hd_fi_domain_tail hd_fi_offered_tail = {
	.max_ep_auth_key = HD_FI_AUTH_KEYS,
	.max_cntr_value = UINT64_MAX,
	.max_err_cntr_value = UINT64_MAX,
};

void hd_fi_offer_domain(struct fi_domain_attr *attr)
{
	struct hd_fi_domain_tail *tail = hd_fi_domain_tail(attr);
	const uint32_t core = hd_fi_core();

	memcpy(attr, &hd_fi_offered_domain, HD_FI_DOMAIN_TAIL);
	tail->tclass = hd_fi_offered_tail.tclass;
	if (FI_VERSION_GE(core, FI_VERSION(1, 20)))
		tail->max_ep_auth_key = hd_fi_offered_tail.max_ep_auth_key;
	if (FI_VERSION_GE(core, FI_VERSION(2, 0)))
		tail->max_group_id = hd_fi_offered_tail.max_group_id;
	if (FI_VERSION_GE(core, FI_VERSION(2, 5))) {
		tail->max_cntr_value = hd_fi_offered_tail.max_cntr_value;
		tail->max_err_cntr_value = hd_fi_offered_tail.max_err_cntr_value;
	}
}

/* Capabilities, and the modifiers that they mean when none of those is named. */
static const struct {
	uint64_t caps, modifiers;
} modified[] = {
	{ FI_MSG | FI_TAGGED, FI_SEND | FI_RECV },
	{ FI_RMA | FI_ATOMIC, FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE },
};

uint64_t hd_fi_modifiers(uint64_t caps)
{
	uint64_t implied = 0;

	for (size_t i = 0; i < sizeof(modified) / sizeof(modified[0]); i++)
		if (caps & modified[i].caps && !(caps & modified[i].modifiers))
			implied |= modified[i].modifiers;
	return implied;
}

static enum fi_ep_type type_of(const struct fi_info *info)
{
	if (!info->ep_attr || info->ep_attr->type == FI_EP_UNSPEC)
		return hd_fi_offers[0].ep.type;
	return info->ep_attr->type;
}

const struct hd_fi_offer *hd_fi_offer_plain(uint32_t version)
{
	size_t i = 0;

	while (hd_fi_offers[i].series != hd_fi_series(version))
		i++;
	return &hd_fi_offers[i];
}

const struct hd_fi_offer *hd_fi_offer_of(uint32_t version, const struct fi_info *info)
{
	const unsigned series = hd_fi_series(version);
	enum fi_ep_type type = type_of(info);
	uint64_t known = 0;

	for (size_t i = 0; i < hd_fi_offer_count; i++)
		if (hd_fi_offers[i].series == series && hd_fi_offers[i].ep.type == type)
			known |= hd_fi_offers[i].mode;
	for (size_t i = 0; i < hd_fi_offer_count; i++) {
		const struct hd_fi_offer *offer = &hd_fi_offers[i];

		if (offer->series == series && offer->ep.type == type && offer->mode == (info->mode & known))
			return hd_fi_offer_check(offer, version, info) ? NULL : offer;
	}
	return NULL;
}
