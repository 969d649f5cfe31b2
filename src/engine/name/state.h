/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* What name keeps of a node: see core/state.h. */
#ifndef HD_ENGINE_NAME_STATE_H
#define HD_ENGINE_NAME_STATE_H

#include "base/indices.h"
#include "engine/event/event.h"

struct hd_key;
struct hd_rest;

/* An address with its prefix: of an interface of this host, or of a subnet that may come. */
struct hd_allow_rule {
	uint8_t addr[16];
	uint8_t bits;
	uint32_t scope; /* of an address of a link: its interface; 0: any */
};

struct hd_names {
	struct hd_events below; /* first */
	struct hd_ep **eps;	/* by index */
	uint32_t ep_count;	/* slots of eps */
	struct hd_indices ep_indices;
	uint32_t *ep_gens;
	/* ports that are bound */
	LIST_HEAD(, hd_bound_port) bound_ports;
	/* those of them that are shared, and have a slot to give */
	LIST_HEAD(, hd_bound_port) roomy;
	/* bound_port.c: slots that were given back last, a ring; NULL: none was */
	struct hd_rest *rests;
	uint32_t rest_next, rest_count;
	int listening; /* sockets, of all bound ports */
	/* authorization keys that receives here name: key.c */
	struct hd_key *keys;
	uint32_t key_count;
	/* addresses: addr.c */
	struct sockaddr_storage addrs[HD_HELLO_ADDRS];
	int addr_count;
	struct hd_allow_rule *allow;
	int allow_count;
	struct hd_allow_rule *own; /* addresses of this host, and how long their prefixes are */
	int own_count;
	/* the page: page.c */
	int page_fd;
	bool rows_used[HD_PAGE_LINKS];
	bool mr_rows[HD_PAGE_MRS];     /* rows of regions in use, or not yet settled */
	struct hd_page_link spare_row; /* for links beyond the table */
	uint64_t probe_word;
};

/* hd_names: of this node. */
static inline struct hd_names *hd_names(const struct hd_node *node)
{
	return (struct hd_names *)node;
}

#endif
