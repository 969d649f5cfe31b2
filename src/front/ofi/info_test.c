/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "front/ofi/offer.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

static int getinfo(const struct fi_info *hints, struct fi_info **out)
{
	return hd_fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, out);
}

static void without_hints_all_that_is_free_is_told(void **state)
{
	struct fi_info *info;

	assert_int_equal(getinfo(NULL, &info), 0);
	assert_true(info->caps == (hd_fi_offers[0].caps & ~HD_FI_ON_REQUEST));
	assert_int_equal(info->mode, 0);
	assert_int_equal(info->domain_attr->mr_mode, 0);
	assert_int_equal(info->ep_attr->type, FI_EP_RDM);
	assert_int_equal(info->addr_format, FI_SOCKADDR_IN);
	assert_int_equal(info->src_addrlen, sizeof(struct sockaddr_in));
	assert_null(info->dest_addr);
	assert_null(info->fabric_attr->prov_name); /* the library fills it in */
	assert_string_equal(info->fabric_attr->name, "heddle");
	assert_string_equal(info->domain_attr->name, "heddle0");
	assert_true(info->tx_attr->inject_size > 0 && info->ep_attr->max_msg_size > 0);
	fi_freeinfo(info);
}

/* Endpoints of every type are offered; the first is the default. */
static void types_are_chosen_by_hints(void **state)
{
	static const enum fi_ep_type types[] = { FI_EP_RDM, FI_EP_MSG, FI_EP_DGRAM };
	struct fi_info *hints = fi_allocinfo(), *info, *i;
	size_t n = 0;

	assert_int_equal(getinfo(NULL, &info), 0);
	for (i = info; i; i = i->next)
		if (!i->mode)
			assert_int_equal(i->ep_attr->type, types[n++]);
	assert_int_equal(n, 3);
	fi_freeinfo(info);
	for (size_t k = 0; k < n; k++) {
		hints->ep_attr->type = types[k];
		assert_int_equal(getinfo(hints, &info), 0);
		for (i = info; i; i = i->next)
			assert_int_equal(i->ep_attr->type, types[k]);
		fi_freeinfo(info);
	}
	hints->ep_attr->type = FI_EP_UNSPEC;
	hints->ep_attr->max_msg_size = HD_MAX_DGRAM + 1; /* each offer is looked at by itself */
	assert_int_equal(getinfo(hints, &info), 0);
	for (i = info; i; i = i->next)
		assert_int_not_equal(i->ep_attr->type, FI_EP_DGRAM);
	fi_freeinfo(info);
	fi_freeinfo(hints);
}

/* What is handed out must be accepted when it is handed back. */
static void an_answer_is_a_valid_hint(void **state)
{
	struct fi_info *info, *again;

	assert_int_equal(getinfo(NULL, &info), 0);
	assert_int_equal(getinfo(info, &again), 0);
	assert_true(again->caps == info->caps);
	assert_true(again->tx_attr->caps == info->tx_attr->caps &&
		    again->rx_attr->caps == info->rx_attr->caps);
	fi_freeinfo(again);
	fi_freeinfo(info);
}

struct refusal {
	const char *what;
	void (*set)(struct fi_info *hints);
};

#define REFUSE(name, statement) \
	static void name(struct fi_info *h) \
	{ \
		statement; \
	}

REFUSE(hmem, h->caps = FI_MSG | FI_HMEM)
REFUSE(dgram_rma, (h->ep_attr->type = FI_EP_DGRAM, h->caps = FI_RMA))
REFUSE(dgram_atomics, (h->ep_attr->type = FI_EP_DGRAM, h->caps = FI_ATOMIC))
REFUSE(unknown_cap, h->caps = FI_MSG | UINT64_C(1) << 60)
REFUSE(msg_user_id, (h->ep_attr->type = FI_EP_MSG, h->caps = FI_MSG | FI_AV_USER_ID))
REFUSE(variable_multi_recv, h->caps = FI_MSG | FI_VARIABLE_MSG | FI_MULTI_RECV)
REFUSE(lone_multicast, h->caps = FI_MULTICAST)
REFUSE(tagged_multicast, h->caps = FI_TAGGED | FI_MULTICAST)
REFUSE(lone_variable, h->caps = FI_RMA | FI_VARIABLE_MSG)
REFUSE(msg_source, (h->ep_attr->type = FI_EP_MSG, h->caps = FI_MSG | FI_SOURCE))
REFUSE(lone_source_err, h->caps = FI_MSG | FI_SOURCE_ERR)
REFUSE(dgram_long, (h->ep_attr->type = FI_EP_DGRAM, h->ep_attr->max_msg_size = HD_MAX_DGRAM + 1))
REFUSE(dgram_delivery, (h->ep_attr->type = FI_EP_DGRAM, h->tx_attr->op_flags = FI_DELIVERY_COMPLETE))
REFUSE(dgram_fence, (h->ep_attr->type = FI_EP_DGRAM, h->caps = FI_MSG | FI_FENCE))
REFUSE(protocol, h->ep_attr->protocol = FI_PROTO_RXM)
REFUSE(protocol_version, h->ep_attr->protocol_version = 1000)
REFUSE(max_msg, h->ep_attr->max_msg_size = SIZE_MAX)
REFUSE(many_rx, h->ep_attr->rx_ctx_cnt = HD_FI_MAX_CTX + 1)
REFUSE(many_tx, h->ep_attr->tx_ctx_cnt = HD_FI_MAX_CTX + 1)
REFUSE(shared_rx_many_tx, (h->ep_attr->rx_ctx_cnt = FI_SHARED_CONTEXT, h->ep_attr->tx_ctx_cnt = 2))
REFUSE(shared_tx_many_rx, (h->ep_attr->tx_ctx_cnt = FI_SHARED_CONTEXT, h->ep_attr->rx_ctx_cnt = 2))
REFUSE(ep_key, h->ep_attr->auth_key_size = 8)
REFUSE(inject, h->tx_attr->inject_size = HD_MAX_INJECT + 1)
REFUSE(tx_iov, h->tx_attr->iov_limit = HD_MAX_IOV + 1)
REFUSE(tx_rma_iov, h->tx_attr->rma_iov_limit = HD_RMA_SEGS + 1)
REFUSE(tx_size, h->tx_attr->size = SIZE_MAX)
REFUSE(tx_comp_order, h->tx_attr->comp_order = FI_ORDER_DATA)
REFUSE(tx_msg_order, h->tx_attr->msg_order = UINT64_C(1) << 50)
REFUSE(tx_op_flags, h->tx_attr->op_flags = FI_COMMIT_COMPLETE)
REFUSE(tx_fence, h->tx_attr->op_flags = FI_FENCE)
REFUSE(tx_caps, (h->caps = FI_MSG, h->tx_attr->caps = FI_TAGGED))
REFUSE(tclass, h->tx_attr->tclass = FI_TC_NETWORK_CTRL + 1)
REFUSE(domain_tclass, h->domain_attr->tclass = 0x400)
REFUSE(rx_iov, h->rx_attr->iov_limit = HD_MAX_IOV + 1)
REFUSE(rx_size, h->rx_attr->size = SIZE_MAX)
REFUSE(rx_comp_order, (h->caps = FI_MSG | FI_RMA, h->rx_attr->comp_order = FI_ORDER_DATA))
REFUSE(rx_op_flags, h->rx_attr->op_flags = FI_INJECT)
REFUSE(rx_caps, (h->caps = FI_MSG, h->rx_attr->caps = FI_RMA))
REFUSE(mixed_basic, h->domain_attr->mr_mode = FI_MR_BASIC | FI_MR_LOCAL)
REFUSE(cq_data, h->domain_attr->cq_data_size = 16)
REFUSE(domain_key, h->domain_attr->auth_key_size = 8)
REFUSE(domain_caps, h->domain_attr->caps = FI_DIRECTED_RECV)
REFUSE(domain_name, h->domain_attr->name = strdup("eth0"))
REFUSE(fabric_name, h->fabric_attr->name = strdup("10.0.0.0/8"))
REFUSE(newer_provider, h->fabric_attr->prov_version = FI_VERSION(99, 0))
REFUSE(ib_addresses, h->addr_format = FI_SOCKADDR_IB)

static void what_is_not_there_is_refused(void **state)
{
	static const struct refusal all[] = {
#define R(name) { #name, name }
		R(hmem),
		R(dgram_rma),
		R(dgram_atomics),
		R(unknown_cap),
		R(msg_user_id),
		R(variable_multi_recv),
		R(msg_source),
		R(lone_source_err),
		R(dgram_long),
		R(dgram_delivery),
		R(dgram_fence),
		R(protocol),
		R(protocol_version),
		R(max_msg),
		R(many_rx),
		R(many_tx),
		R(shared_rx_many_tx),
		R(shared_tx_many_rx),
		R(ep_key),
		R(inject),
		R(tx_iov),
		R(tx_rma_iov),
		R(tx_size),
		R(tx_comp_order),
		R(tx_msg_order),
		R(tx_op_flags),
		R(tx_fence),
		R(tx_caps),
		R(tclass),
		R(rx_iov),
		R(rx_size),
		R(rx_comp_order),
		R(rx_op_flags),
		R(rx_caps),
		R(mixed_basic),
		R(cq_data),
		R(domain_key),
		R(domain_caps),
		R(domain_name),
		R(fabric_name),
		R(newer_provider),
		R(ib_addresses),
		R(domain_tclass),
		R(lone_multicast),
		R(tagged_multicast),
		R(lone_variable),
	};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		struct fi_info *hints = fi_allocinfo(), *info = (struct fi_info *)hints;
		int rc;

		all[i].set(hints);
		rc = getinfo(hints, &info);
		if (rc != -FI_ENODATA || info)
			fail_msg("%s: not refused: %d", all[i].what, rc);
		fi_freeinfo(hints);
	}
}

static struct fi_info *ask(const struct fi_info *hints)
{
	struct fi_info *info;

	assert_int_equal(getinfo(hints, &info), 0);
	return info;
}

static void capabilities_are_those_asked_for(void **state)
{
	struct fi_info *hints = fi_allocinfo(), *info;

	hints->caps = FI_TAGGED;
	info = ask(hints);
	assert_true(info->caps == (FI_TAGGED | FI_SEND | FI_RECV | HD_FI_SECONDARY));
	assert_true(info->tx_attr->caps == (FI_TAGGED | FI_SEND));
	assert_true(info->rx_attr->caps == (FI_TAGGED | FI_RECV | FI_MULTI_RECV | FI_SOURCE));
	fi_freeinfo(info);

	hints->caps = FI_MSG | FI_SEND;
	info = ask(hints);
	assert_false(info->caps & (FI_RECV | FI_TAGGED | FI_DIRECTED_RECV));
	assert_true(info->rx_attr->caps == 0);
	fi_freeinfo(info);

	hints->caps = FI_MSG | FI_TAGGED;
	hints->tx_attr->caps = FI_TAGGED;
	info = ask(hints);
	assert_true(info->tx_attr->caps == (FI_TAGGED | FI_SEND));
	assert_true((info->rx_attr->caps & (FI_MSG | FI_TAGGED)) == (FI_MSG | FI_TAGGED));
	fi_freeinfo(info);
	hints->tx_attr->caps = 0;

	hints->caps = FI_RMA;
	hints->tx_attr->msg_order = FI_ORDER_WAW | FI_ORDER_RAW | FI_ORDER_ATOMIC_WAW;
	info = ask(hints);
	assert_true(info->tx_attr->caps == (FI_RMA | FI_READ | FI_WRITE));
	assert_true(info->rx_attr->caps == (FI_RMA | FI_REMOTE_READ | FI_REMOTE_WRITE));
	assert_true(info->tx_attr->rma_iov_limit >= 8);
	assert_int_equal(info->ep_attr->max_order_waw_size, HD_RMA_ORDERED);
	fi_freeinfo(info);

	hints->caps = FI_MSG | FI_RMA | FI_RMA_EVENT | FI_SEND | FI_RECV | FI_REMOTE_WRITE;
	info = ask(hints);
	assert_true(info->tx_attr->caps == (FI_MSG | FI_RMA | FI_SEND));
	assert_true((info->rx_attr->caps & (FI_RMA | FI_RMA_EVENT | FI_REMOTE_READ | FI_REMOTE_WRITE)) ==
		    (FI_RMA | FI_RMA_EVENT | FI_REMOTE_WRITE));
	fi_freeinfo(info);
	fi_freeinfo(hints);
}

/* What costs something is promised to whoever asks. */
/* A capability of the domain too, for whoever asks for it. */
static void user_ids_on_request(void **state)
{
	struct fi_info *hints = fi_allocinfo(), *info = ask(hints);

	assert_false((info->caps | info->domain_attr->caps) & FI_AV_USER_ID);
	fi_freeinfo(info);
	hints->caps = FI_MSG | FI_AV_USER_ID;
	info = ask(hints);
	assert_true(info->caps & FI_AV_USER_ID && info->domain_attr->caps & FI_AV_USER_ID);
	assert_false((info->tx_attr->caps | info->rx_attr->caps) & FI_AV_USER_ID);
	fi_freeinfo(info);
	hints->caps = FI_MSG;
	hints->domain_attr->caps = FI_AV_USER_ID;
	info = ask(hints);
	assert_true(info->domain_attr->caps == (HD_FI_DOMAIN_CAPS | FI_AV_USER_ID));
	fi_freeinfo(info);
	fi_freeinfo(hints);
}

static void orders_on_request(void **state)
{
	const uint64_t all = FI_ORDER_STRICT | FI_ORDER_RMA_WAW | FI_ORDER_ATOMIC_RAW;
	struct fi_info *hints = fi_allocinfo(), *info;

	hints->caps = FI_MSG | FI_RMA | FI_ATOMIC;
	info = ask(hints);
	assert_false(info->tx_attr->msg_order & HD_FI_ORDERS_ON_REQUEST);
	assert_int_equal(info->ep_attr->max_order_raw_size, HD_RMA_ORDERED);
	fi_freeinfo(info);
	hints->tx_attr->msg_order = hints->rx_attr->msg_order = all;
	hints->ep_attr->max_order_raw_size = SIZE_MAX;
	hints->ep_attr->max_order_war_size = 16;
	info = ask(hints);
	assert_true((info->tx_attr->msg_order & all) == all && (info->rx_attr->msg_order & all) == all);
	assert_true(info->ep_attr->max_order_raw_size == SIZE_MAX);
	assert_int_equal(info->ep_attr->max_order_war_size, HD_RMA_ORDERED);
	fi_freeinfo(info);
	fi_freeinfo(hints);
}

/* What tells of a domain is no demand, and an order of what there is not holds. */
static void counts_are_answered(void **state)
{
	struct fi_info *hints = fi_allocinfo(), *info;
	struct fi_domain_attr *domain = hints->domain_attr;

	hints->ep_attr->type = FI_EP_DGRAM;
	hints->ep_attr->max_order_raw_size = 8;
	domain->mr_key_size = domain->cq_cnt = domain->ep_cnt = domain->tx_ctx_cnt = domain->rx_ctx_cnt =
		SIZE_MAX;
	domain->max_ep_tx_ctx = domain->max_ep_rx_ctx = domain->max_ep_stx_ctx = domain->max_ep_srx_ctx =
		SIZE_MAX;
	info = ask(hints);
	assert_int_equal(info->domain_attr->mr_key_size, HD_FI_MR_KEY_SIZE);
	assert_int_equal(info->domain_attr->max_ep_rx_ctx, HD_FI_MAX_CTX);
	assert_int_equal(info->domain_attr->ep_cnt, HD_FI_MAX_OBJECTS);
	assert_int_equal(info->ep_attr->max_order_raw_size, 8);
	fi_freeinfo(info);
	fi_freeinfo(hints);
}

/* fi_endpoint(3) says which capabilities contexts of each direction can have. */
static void contexts_carry_what_is_theirs(void **state)
{
	const uint64_t tx = FI_MSG | FI_RMA | FI_TAGGED | FI_ATOMIC | FI_READ | FI_WRITE | FI_SEND |
			    FI_TRIGGER | FI_FENCE | FI_MULTICAST | FI_NAMED_RX_CTX | FI_COLLECTIVE;
	const uint64_t rx = FI_MSG | FI_RMA | FI_TAGGED | FI_ATOMIC | FI_REMOTE_READ | FI_REMOTE_WRITE |
			    FI_RECV | FI_TRIGGER | FI_DIRECTED_RECV | FI_VARIABLE_MSG | FI_MULTI_RECV |
			    FI_SOURCE | FI_RMA_EVENT | FI_SOURCE_ERR | FI_TAGGED_DIRECTED_RECV |
			    FI_EXACT_DIRECTED_RECV | FI_COLLECTIVE;
	struct fi_info *hints = fi_allocinfo(), *info;

	for (size_t i = 0; i < hd_fi_offer_count; i++)
		assert_true(!(hd_fi_offers[i].tx.caps & ~tx) && !(hd_fi_offers[i].rx.caps & ~rx));
	hints->caps = FI_NAMED_RX_CTX;
	info = ask(hints);
	assert_true(info->tx_attr->caps == FI_NAMED_RX_CTX && info->rx_attr->caps == 0);
	fi_freeinfo(info);
	hints->caps = FI_DIRECTED_RECV;
	info = ask(hints);
	assert_true(info->tx_attr->caps == 0 && info->rx_attr->caps == FI_DIRECTED_RECV);
	fi_freeinfo(info);
	hints->caps = FI_MSG | FI_MULTICAST;
	hints->rx_attr->caps = FI_MSG | FI_MULTICAST;
	info = ask(hints);
	assert_true(info->caps & FI_MULTICAST && info->tx_attr->caps & FI_MULTICAST);
	assert_false(info->rx_attr->caps & FI_MULTICAST);
	fi_freeinfo(info);
	fi_freeinfo(hints);
}

static void modes_are_cleared(void **state)
{
	struct fi_info *hints = fi_allocinfo(), *info;

	hints->mode = FI_CONTEXT | FI_CONTEXT2 | FI_MSG_PREFIX | FI_LOCAL_MR | FI_RX_CQ_DATA | FI_ASYNC_IOV;
	hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY |
				      FI_MR_HMEM;
	info = ask(hints);
	assert_true(info->mode == 0);
	assert_int_equal(info->domain_attr->mr_mode, 0);
	assert_int_equal(info->ep_attr->msg_prefix_size, 0);
	fi_freeinfo(info);
	hints->domain_attr->mr_mode = FI_MR_BASIC;
	info = ask(hints);
	assert_int_equal(info->domain_attr->mr_mode, FI_MR_BASIC);
	fi_freeinfo(info);

	hints->domain_attr->mr_mode = FI_MR_UNSPEC;
	assert_int_equal(hd_fi_getinfo(FI_VERSION(1, 4), NULL, NULL, 0, hints, &info), 0);
	assert_int_equal(info->domain_attr->mr_mode, FI_MR_SCALABLE);
	fi_freeinfo(info);
	fi_freeinfo(hints);
}

static void models_are_returned_as_asked(void **state)
{
	struct fi_info *hints = fi_allocinfo(), *info;

	for (int threading = FI_THREAD_SAFE; threading <= FI_THREAD_ENDPOINT; threading++) {
		hints->domain_attr->threading = (enum fi_threading)threading;
		hints->domain_attr->data_progress = FI_PROGRESS_AUTO;
		hints->domain_attr->control_progress = FI_PROGRESS_MANUAL;
		hints->domain_attr->av_type = FI_AV_MAP;
		hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
		hints->domain_attr->cq_data_size = 4;
		info = ask(hints);
		assert_int_equal(info->domain_attr->threading, threading);
		assert_int_equal(info->domain_attr->data_progress, FI_PROGRESS_AUTO);
		assert_int_equal(info->domain_attr->control_progress, FI_PROGRESS_MANUAL);
		assert_int_equal(info->domain_attr->av_type, FI_AV_MAP);
		assert_int_equal(info->domain_attr->resource_mgmt, FI_RM_ENABLED);
		/* what there is, fi_domain(3) */
		assert_int_equal(info->domain_attr->cq_data_size, 8);
		fi_freeinfo(info);
	}
	fi_freeinfo(hints);
}

/* fi_endpoint(3): every label, and every code point. */
static void traffic_classes_are_granted(void **state)
{
	struct fi_info *hints = fi_allocinfo(), *info;
	uint32_t classes[6 + 256];

	for (uint32_t i = 0; i < 6; i++)
		classes[i] = FI_TC_BEST_EFFORT + i;
	for (uint32_t i = 0; i < 256; i++)
		classes[6 + i] = fi_tc_dscp_set((uint8_t)i);
	for (size_t i = 0; i < sizeof(classes) / sizeof(classes[0]); i++) {
		hints->tx_attr->tclass = classes[i];
		hints->domain_attr->tclass = classes[i];
		info = ask(hints);
		assert_int_equal(info->tx_attr->tclass, classes[i]);
		assert_int_equal(info->domain_attr->tclass, classes[i]);
		fi_freeinfo(info);
	}
	fi_freeinfo(hints);
}

static void attributes_reach_what_was_asked(void **state)
{
	struct fi_info *hints = fi_allocinfo(), *info;

	hints->tx_attr->inject_size = 64;
	hints->tx_attr->size = 128;
	hints->tx_attr->op_flags = FI_DELIVERY_COMPLETE;
	hints->tx_attr->msg_order = FI_ORDER_SAS | FI_ORDER_SAW;
	hints->rx_attr->size = 1 << 20;
	hints->rx_attr->op_flags = FI_MULTI_RECV;
	hints->ep_attr->max_msg_size = 1 << 20;
	info = ask(hints);
	assert_true(info->tx_attr->inject_size >= 64 && info->tx_attr->size >= 128);
	assert_true(info->tx_attr->op_flags == FI_DELIVERY_COMPLETE);
	assert_true((info->tx_attr->msg_order & (FI_ORDER_SAS | FI_ORDER_SAW)) ==
		    (FI_ORDER_SAS | FI_ORDER_SAW));
	assert_true(info->rx_attr->size >= 1 << 20);
	assert_true(info->rx_attr->op_flags == FI_MULTI_RECV);
	assert_true(info->ep_attr->max_msg_size >= 1 << 20);
	fi_freeinfo(info);
	fi_freeinfo(hints);
}

static void flags_and_versions(void **state)
{
	struct fi_info *info;

	assert_int_equal(hd_fi_getinfo(FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION + 1), NULL, NULL, 0,
				       NULL, &info),
			 -FI_ENODATA);
	assert_int_equal(hd_fi_getinfo(FI_VERSION(1, 17), NULL, NULL, UINT64_C(1) << 59, NULL, &info),
			 -FI_ENODATA);
	assert_int_equal(hd_fi_getinfo(FI_VERSION(1, 17), NULL, NULL, FI_MORE, NULL, &info), -FI_EBADFLAGS);
	assert_int_equal(hd_fi_getinfo(FI_VERSION(1, 17), NULL, NULL, FI_SOURCE, NULL, &info), -FI_EINVAL);
	assert_null(info);
	assert_int_equal(hd_fi_getinfo(FI_VERSION(1, 17), NULL, NULL, FI_PROV_ATTR_ONLY, NULL, &info), 0);
	assert_non_null(info->fabric_attr);
	assert_null(info->next);
	assert_true(info->caps == 0);
	fi_freeinfo(info);
	assert_int_equal(hd_fi_getinfo(FI_VERSION(1, 0), NULL, NULL, 0, NULL, &info), 0);
	fi_freeinfo(info);
}

static void check_addr(const void *addr, size_t len, const char *expected)
{
	char text[80];

	assert_non_null(addr);
	hd_fi_addr_text(addr, text, sizeof(text));
	assert_string_equal(text, expected);
	assert_int_equal(len, hd_sockaddr_size(addr));
}

static void node_and_service(void **state)
{
	const uint32_t v = FI_VERSION(1, 17);
	struct fi_info *info;

	assert_int_equal(hd_fi_getinfo(v, "127.0.0.1", "4711", FI_SOURCE | FI_NUMERICHOST, NULL, &info), 0);
	check_addr(info->src_addr, info->src_addrlen, "fi_sockaddr_in://127.0.0.1:4711");
	assert_null(info->dest_addr);
	fi_freeinfo(info);
	assert_int_equal(hd_fi_getinfo(v, NULL, "4711", FI_SOURCE, NULL, &info), 0);
	check_addr(info->src_addr, info->src_addrlen, "fi_sockaddr_in://0.0.0.0:4711");
	fi_freeinfo(info);
	assert_int_equal(hd_fi_getinfo(v, "192.0.2.7", "4711", FI_NUMERICHOST, NULL, &info), 0);
	check_addr(info->dest_addr, info->dest_addrlen, "fi_sockaddr_in://192.0.2.7:4711");
	check_addr(info->src_addr, info->src_addrlen, "fi_sockaddr_in://0.0.0.0:0");
	fi_freeinfo(info);
	assert_int_equal(hd_fi_getinfo(v, "192.0.2.7", "4711", FI_SOURCE, NULL, &info), -FI_ENODATA);
	assert_int_equal(hd_fi_getinfo(v, "not an address", NULL, FI_NUMERICHOST, NULL, &info), -FI_ENODATA);
}

static void addresses_in_hints(void **state)
{
	const uint32_t v = FI_VERSION(1, 17);
	struct sockaddr_in src = { .sin_family = AF_INET },
			   dest = { .sin_family = AF_INET, .sin_port = htons(7) };
	struct fi_info *hints = fi_allocinfo(), *info;

	inet_pton(AF_INET, "127.0.0.1", &src.sin_addr);
	inet_pton(AF_INET, "192.0.2.9", &dest.sin_addr);
	hints->src_addr = memcpy(malloc(sizeof(src)), &src, sizeof(src));
	hints->src_addrlen = sizeof(src);
	hints->dest_addr = memcpy(malloc(sizeof(dest)), &dest, sizeof(dest));
	hints->dest_addrlen = sizeof(dest);
	info = ask(hints);
	check_addr(info->src_addr, info->src_addrlen, "fi_sockaddr_in://127.0.0.1:0");
	check_addr(info->dest_addr, info->dest_addrlen, "fi_sockaddr_in://192.0.2.9:7");
	fi_freeinfo(info);

	/* node and service come before hints of the same meaning */
	assert_int_equal(hd_fi_getinfo(v, "192.0.2.7", "1", FI_NUMERICHOST, hints, &info), 0);
	check_addr(info->dest_addr, info->dest_addrlen, "fi_sockaddr_in://192.0.2.7:1");
	check_addr(info->src_addr, info->src_addrlen, "fi_sockaddr_in://127.0.0.1:0");
	fi_freeinfo(info);
	assert_int_equal(hd_fi_getinfo(v, "127.0.0.1", "2", FI_SOURCE, hints, &info), 0);
	check_addr(info->src_addr, info->src_addrlen, "fi_sockaddr_in://127.0.0.1:2");
	check_addr(info->dest_addr, info->dest_addrlen, "fi_sockaddr_in://192.0.2.9:7");
	fi_freeinfo(info);

	hints->addr_format = FI_SOCKADDR_IN6;
	assert_int_equal(getinfo(hints, &info), -FI_ENODATA);
	hints->addr_format = FI_SOCKADDR;
	info = ask(hints);
	assert_int_equal(info->addr_format, FI_SOCKADDR);
	fi_freeinfo(info);
	hints->dest_addrlen = 3;
	assert_int_equal(getinfo(hints, &info), -FI_ENODATA);
	fi_freeinfo(hints);
}

static void opened_objects_are_named(void **state)
{
	struct fi_fabric_attr attr = { .name = (char *)(uintptr_t)HD_FI_FABRIC_NAME };
	struct fi_info *hints = fi_allocinfo(), *info;
	struct fid_fabric *first, *second;
	struct fid stranger = { .fclass = FI_CLASS_DOMAIN };

	info = ask(NULL);
	assert_null(info->fabric_attr->fabric);
	fi_freeinfo(info);
	assert_int_equal(hd_fi_fabric_open(&attr, &first, NULL), 0);
	assert_int_equal(hd_fi_fabric_open(&attr, &second, NULL), 0);
	info = ask(NULL);
	assert_ptr_equal(info->fabric_attr->fabric, first);
	fi_freeinfo(info);
	hints->fabric_attr->fabric = second;
	info = ask(hints);
	assert_ptr_equal(info->fabric_attr->fabric, second);
	fi_freeinfo(info);
	hints->fabric_attr->fabric = (struct fid_fabric *)&stranger;
	assert_int_equal(getinfo(hints, &info), -FI_ENODATA);
	assert_int_equal(fi_close(&first->fid), 0);
	assert_int_equal(fi_close(&second->fid), 0);
	fi_freeinfo(hints);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_hints_all_that_is_free_is_told),
		cmocka_unit_test(types_are_chosen_by_hints),
		cmocka_unit_test(an_answer_is_a_valid_hint),
		cmocka_unit_test(what_is_not_there_is_refused),
		cmocka_unit_test(capabilities_are_those_asked_for),
		cmocka_unit_test(user_ids_on_request),
		cmocka_unit_test(orders_on_request),
		cmocka_unit_test(counts_are_answered),
		cmocka_unit_test(contexts_carry_what_is_theirs),
		cmocka_unit_test(modes_are_cleared),
		cmocka_unit_test(models_are_returned_as_asked),
		cmocka_unit_test(traffic_classes_are_granted),
		cmocka_unit_test(attributes_reach_what_was_asked),
		cmocka_unit_test(flags_and_versions),
		cmocka_unit_test(node_and_service),
		cmocka_unit_test(addresses_in_hints),
		cmocka_unit_test(opened_objects_are_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
