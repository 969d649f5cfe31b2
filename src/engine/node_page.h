/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * The page that a node shows to its peers on the host and to `heddle info`: a memfd named "heddle-node", sealed against
 * shrinking, growing and writing by others (F_SEAL_FUTURE_WRITE after the owner has mapped it). Readers treat it as hostile.
 */
#ifndef HD_ENGINE_NODE_PAGE_H
#define HD_ENGINE_NODE_PAGE_H

#include "engine/wire.h"

#include <stdatomic.h>

#define HD_PAGE_MAGIC 0x65676170u /* "page" */
#define HD_PAGE_VERSION 1
#define HD_PAGE_LINKS 512
#define HD_PAGE_NAME "heddle-node"

enum hd_page_direct {	  /* can this side copy straight from and to the other process? */
	HD_DIRECT_NA = 0, /* the transport has no such thing */
	HD_DIRECT_YES,
	HD_DIRECT_OFF,	   /* HEDDLE_DIRECT_COPY=no */
	HD_DIRECT_REFUSED, /* the kernel refused: errno in direct_errno */
};

/* One live link. `state` is stored last with release and 0 means free, so a reader sees whole rows or none. */
struct hd_page_link {
	_Atomic uint32_t state; /* 0 free, 1 live */
	int32_t peer_pid;	/* 0 when it is on another host */
	char transport[8];
	uint8_t direct_out; /* enum hd_page_direct: we to them */
	uint8_t direct_in;  /* enum hd_page_direct: they to us */
	uint16_t direct_out_errno;
	uint16_t direct_in_errno;
	uint16_t peer_port;
	uint8_t peer_addr[16]; /* address that the peer was reached at, IPv4 as mapped IPv6 */
	struct hd_node_id peer;
};
static_assert(sizeof(struct hd_page_link) == 56, "a row of the link table is 56 bytes");

struct hd_node_page {
	uint32_t magic;
	uint16_t version;
	uint16_t size_kib; /* of the whole page file */
	int32_t pid;
	uint32_t link_rows; /* HD_PAGE_LINKS */
	struct hd_node_id id;
	uint64_t incarnation;
	char front[16];	  /* "libfabric", "verbs", … */
	char program[32]; /* /proc/self/comm */
	uint64_t reserved[5];
	/*
	 * Odd while somebody of this node sleeps or is about to, and must be woken through the eventfd; counts up. Stored by the
	 * owner under its node's lock; read by senders after they have published a message. The order between the two is made
	 * by the sleeper: MEMBARRIER_CMD_GLOBAL_EXPEDITED after its store (see docs/locking.md).
	 */
	_Alignas(64) _Atomic uint32_t sleep_epoch;
	/* A word for peers to try a direct copy on: they read `probe_word`'s value from our memory at `probe_addr`. */
	_Alignas(64) uint64_t probe_addr;
	uint64_t probe_value;
	struct hd_page_link links[HD_PAGE_LINKS];
};

#endif
