/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * What names what: the table of endpoints and an endpoint itself (ep_table.h), bound
 * ports (bound_port.h), authorization keys (key.h), and here addresses, who may come, and
 * the page that a node shows.
 *
 * Called by the rooms above as endpoints open and close, and by link, to look up whom a packet is
 * for. With the node's lock, but for what only handles an address; nothing blocks. int results are
 * 0 or a negative errno where nothing else is said. Upcalls: hd_ep.is_shown_to is asked, and
 * changes nothing; hd_bound_port.gone, by link: a port goes; it may take links down.
 */
#ifndef HD_ENGINE_NAME_H
#define HD_ENGINE_NAME_H

#include "engine/event/event.h"
#include "engine/name/bound_port.h"
#include "engine/name/ep_table.h"
#include "engine/name/key.h"
#include "engine/name/state.h"

struct hd_name_key {
	uint8_t addr[16]; /* IPv4 as mapped IPv6 */
	uint32_t port;
	uint32_t scope;
	uint64_t key; /* authorization key of whom it leads to; 0: none */
};

/* page.c */
int hd_page_open(struct hd_node *node);
void hd_page_close(struct hd_node *node);
struct hd_page_link *hd_page_row_get(struct hd_node *node);
void hd_page_row_put(struct hd_node *node, struct hd_page_link *row);

/* hd_page_row_live: the row says of its link that it is one of a peer, or of nobody any more. */
static inline void hd_page_row_live(struct hd_page_link *row, bool live)
{
	/* release: whoever sees the row live sees it whole */
	atomic_store_explicit(&row->state, live, memory_order_release);
}
void hd_page_ep_show(struct hd_node *node, uint32_t index, const struct hd_page_ep *what);
int hd_page_mr_take(struct hd_node *node, uint64_t key);
void hd_page_mr_put(struct hd_node *node, int place);
void hd_page_mr_show(struct hd_node *node, int place, const struct hd_page_mr *what);
void hd_page_mr_hide(struct hd_node *node, int place);

/* addr.c: addresses of this host, names, HEDDLE_ADDR and HEDDLE_ALLOW */
int hd_addr_init(struct hd_node *node);
void hd_addr_fini(struct hd_node *node);
bool hd_addr_key(const struct sockaddr *sa, struct hd_name_key *key);
void hd_addr_map(const struct sockaddr *sa, uint8_t out[16]);
void hd_addr_unmap(const uint8_t addr[16], uint16_t port, struct sockaddr_storage *out);
void hd_addr_of_key(const struct hd_name_key *key,
		    struct sockaddr_storage *out); /* with port and scope; no slot */
/* "10.0.0.1 port 4000" */
const char *hd_addr_text(const struct sockaddr *sa, char *text, size_t size);
bool hd_addr_is_zero(const uint8_t addr[16]);
void hd_addr_set_port(struct sockaddr_storage *sa, uint16_t port);
bool hd_addr_is_loopback(const uint8_t addr[16]);
bool hd_addr_is_local(const struct hd_node *node, const struct hd_name_key *key);

/*
 * ep_page.c. hd_ep_show: show peers this endpoint as it is; again whenever something changes that
 * is looked at there. hd_ep_hide: no longer. hd_ep_class.is_shown_to is asked of endpoints that
 * only one other end may reach.
 */
void hd_ep_show(const struct hd_ep *ep);
void hd_ep_hide(const struct hd_ep *ep);

#endif
