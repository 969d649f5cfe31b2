/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * What this provider offers: a table with one row for each type of endpoint, and one more for each
 * mode bit that such an endpoint may be opened with. fi_getinfo(3) answers with the rows that hints
 * leave, in the table's order; an info that comes back is held against its own row.
 */
#ifndef HEDDLE_FRONT_OFI_OFFER_H
#define HEDDLE_FRONT_OFI_OFFER_H

#include "front/ofi/ofi.h"

/*
 * hd_fi_offer: one row. caps has every capability of the kind; those of HD_FI_SECONDARY are given
 * whether asked for or not. tx and rx name in their caps what belongs to their direction.
 */
struct hd_fi_offer {
	/* of the interface, hd_fi_series: 1 or 2. With 2.0 bits got other meanings */
	unsigned series;
	/* set in the info, and so active; a row without comes first and is the plain one */
	uint64_t mode;
	uint64_t caps;
	struct fi_tx_attr tx;
	struct fi_rx_attr rx;
	struct fi_ep_attr ep;
	uint64_t tx_op_flags, rx_op_flags; /* accepted as defaults of an endpoint */
};

/* hd_fi_offers: the table; hd_fi_offer_count rows. */
extern const struct hd_fi_offer hd_fi_offers[];
extern const size_t hd_fi_offer_count;

/*
 * Orders that are kept for whoever asks for them, and cost nobody else: one-sided operations behind
 * messages, messages behind reads.
 */
#define HD_FI_ORDERS_ON_REQUEST (FI_ORDER_RAS | FI_ORDER_WAS | FI_ORDER_SAR)

/* hd_fi_orders_all: is the order of memory promised for more bytes than is offered? */
static inline bool hd_fi_orders_all(const struct fi_ep_attr *ep)
{
	return ep && (ep->max_order_raw_size > HD_RMA_ORDERED || ep->max_order_war_size > HD_RMA_ORDERED ||
		      ep->max_order_waw_size > HD_RMA_ORDERED);
}

/* hd_fi_offer_plain: the first row for programs with this version of the interface. */
const struct hd_fi_offer *hd_fi_offer_plain(uint32_t version);

static inline unsigned hd_fi_series(uint32_t version)
{
	return FI_MAJOR(version) < 2 ? 1 : 2;
}

/* hd_fi_rx_modes: mode bits that receiving depends on. */
static inline uint64_t hd_fi_rx_modes(uint32_t version)
{
	return FI_MSG_PREFIX | (hd_fi_series(version) == 1 ? FI_BUFFERED_RECV : 0);
}

/* hd_fi_variable: do capabilities of this row ask for messages of any length? */
static inline bool hd_fi_variable(const struct hd_fi_offer *offer, uint64_t caps)
{
	return offer->series == 1 && caps & FI_VARIABLE_MSG;
}

/*
 * hd_fi_directed: for which receives do they ask that a source can be named?
 * FI_EXACT_DIRECTED_RECV alone is for all.
 */
static inline uint8_t hd_fi_directed(const struct hd_fi_offer *offer, uint64_t caps)
{
	const uint8_t both = HD_FI_DIRECTED_MSG | HD_FI_DIRECTED_TAGGED;
	const uint8_t exact = caps & FI_EXACT_DIRECTED_RECV ? HD_FI_DIRECTED_EXACT : 0;

	if (offer->series == 1)
		return caps & FI_DIRECTED_RECV ? both : 0;
	if (caps & FI_DIRECTED_RECV)
		return both | exact;
	if (caps & FI_TAGGED_DIRECTED_RECV)
		return HD_FI_DIRECTED_TAGGED | exact;
	return exact ? both | exact : 0;
}

/*
 * hd_fi_offered_domain: what domains are, whatever their endpoints; hd_fi_offered_tail: the end of
 * it, with tclass. hd_fi_offer_domain writes them, as far as the library's structure goes.
 */
extern const struct fi_domain_attr hd_fi_offered_domain;
extern const struct hd_fi_domain_tail hd_fi_offered_tail;
void hd_fi_offer_domain(struct fi_domain_attr *attr);

/*
 * hd_fi_modifiers returns the modifiers (FI_SEND, FI_READ …) that stand for capabilities which are
 * asked for without any: all that the manual page lists for them.
 */
uint64_t hd_fi_modifiers(uint64_t caps);

/*
 * hd_fi_offer_check compares hints, or an info that the program hands back, with one row. NULL
 * members ask for nothing. 0 or -FI_ENODATA, the reason logged at level info. hd_fi_offer_apply
 * then narrows or names in *info, made from that row, what the hints chose. Any thread.
 */
int hd_fi_offer_check(const struct hd_fi_offer *offer, uint32_t version, const struct fi_info *hints);
void hd_fi_offer_apply(const struct hd_fi_offer *offer, uint32_t version, const struct fi_info *hints,
		       struct fi_info *info);

/*
 * hd_fi_offer_of finds the row that an info handed back belongs to, by type (FI_EP_UNSPEC and
 * no ep_attr: the first) and by the mode bits that the type knows; NULL when there is none,
 * or the info asks for more.
 */
const struct hd_fi_offer *hd_fi_offer_of(uint32_t version, const struct fi_info *info);

#endif
