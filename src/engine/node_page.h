/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * The page that a node shows to its peers on the host and to `heddle info`: a memfd named
 * "heddle-node", sealed against shrinking, growing and writing by others (F_SEAL_FUTURE_WRITE after
 * the owner has mapped it). Readers treat it as hostile.
 */
#ifndef HD_ENGINE_NODE_PAGE_H
#define HD_ENGINE_NODE_PAGE_H

#include "base/witness.h"
#include "engine/wire.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#define HD_PAGE_MAGIC 0x65676170u /* "page" */
#define HD_PAGE_VERSION 6
#define HD_PAGE_LINKS 512
#define HD_PAGE_NAME "heddle-node"

enum hd_page_direct {	  /* can this side copy straight from and to the other process? */
	HD_DIRECT_NA = 0, /* the transport has no such thing */
	HD_DIRECT_YES,
	HD_DIRECT_OFF,	   /* HEDDLE_DIRECT_COPY=no */
	HD_DIRECT_REFUSED, /* the kernel refused: errno in direct_errno */
};

/*
 * One live link. `state` is stored last with release and 0 means free, so a reader
 * sees whole rows or none.
 */
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
	/*
	 * For who may read the process's memory (engine/api/view.h): where the node is,
	 * and which build it is of.
	 */
	uint64_t node_addr, node_layout;
	/*
	 * Not 0: this program handles faults, and may open memory that is protected. The owner's,
	 * relaxed: read when a copy from or to it has failed.
	 */
	_Atomic uint32_t handles_faults;
	uint32_t reserved[5];
	/*
	 * Odd while somebody of this node sleeps or is about to, and must be woken through the
	 * eventfd; counts up. Stored by the owner under its node's lock; read by senders after they
	 * have published a message. The order between the two is made by the sleeper:
	 * MEMBARRIER_CMD_GLOBAL_EXPEDITED after its store (see docs/locking.md).
	 */
	_Alignas(64) _Atomic uint32_t sleep_seq;
	/*
	 * Not 0: who sleeps is also to be woken for messages that have been accepted,
	 * hd_link_ops.accept. Stored as that is, before it.
	 */
	_Atomic uint32_t sleep_heeds;
	/*
	 * A word for peers to try a direct copy on: they read `probe_word`'s value from
	 * our memory at `probe_addr`.
	 */
	_Alignas(64) uint64_t probe_addr;
	uint64_t probe_value;
	/*
	 * Whether the process is still there, and the program that it was. The owner's; that of a
	 * page that nobody bears witness in is 0.
	 */
	struct hd_witness witness;
	struct hd_page_link links[HD_PAGE_LINKS];
};

/* ---- what peers may do by themselves: docs/shm-layout.md, «One-sided operations» ------------- */

#define HD_PAGE_EPS 1024 /* endpoints with a row: those with the lowest indexes */
#define HD_PAGE_MRS 4096 /* rows of regions; a power of two */
/* rows, beginning at its key's, in one of which a region stands, if it stands anywhere */
#define HD_PAGE_WINDOW 16
#define HD_PAGE_SEGS 5 /* address ranges of a region in the table */
#define HD_PAGE_TABLES 0x8000

/*
 * An endpoint: state is 0 when there is none, else its generation in the upper half and flags in
 * the lower. A peer may act on a region for an endpoint only while this word is what it has seen.
 */
enum hd_page_ep_flag {
	HD_PAGE_EP_LIVE = 1 << 0,
	HD_PAGE_EP_READ = 1 << 1,  /* peers may read for it without a word to us */
	HD_PAGE_EP_WRITE = 1 << 2, /* peers may write for it without a word to us */
};
#define HD_PAGE_LOSSY (1u << 31)
struct hd_page_ep {
	_Atomic uint32_t state;
	/* protection id: regions of another are not reached through this endpoint */
	uint32_t protection;
	/* a connected endpoint: of this node's endpoint `from` alone; else all zero */
	struct hd_node_id node;
	/* with HD_PAGE_LOSSY: a queue pair that is not reliable, for one of its kind alone */
	uint32_t from;
	uint32_t epoch; /* a queue pair: of that one, see epoch.c; else 0 */
};
static_assert(sizeof(struct hd_page_ep) == 32, "a row of the table of endpoints is 32 bytes");

/* hd_page_ep_same: is in this row what is in that one, but for the state? */
static inline bool hd_page_ep_same(const struct hd_page_ep *a, const struct hd_page_ep *b)
{
	return a->protection == b->protection && a->node.word[0] == b->node.word[0] &&
	       a->node.word[1] == b->node.word[1] && a->from == b->from && a->epoch == b->epoch;
}

struct hd_page_seg {
	uint64_t addr, len;
};

/*
 * A region. `state` counts up and is odd while the row is valid. The owner stores it last when it
 * fills a row, and first when it takes the region back; then nobody touches the memory any more
 * once the announcements are gone. A row that is not here is no news: peers ask by packet what they
 * do not find, so that every refusal is the owner's own.
 */
struct hd_page_mr {
	_Atomic uint32_t state;
	uint32_t access; /* bits of enum hd_page_access */
	uint64_t key;
	uint32_t protection; /* as hd_page_ep.protection */
	/* index of the only endpoint that it may be reached through, plus 1; 0: any */
	uint32_t ep;
	uint32_t count; /* segments, 1 to HD_PAGE_SEGS */
	uint32_t zero;
	uint64_t base; /* without HD_PAGE_MR_VIRTUAL: what remote addresses call its first byte */
	uint32_t reserved[2];
	struct hd_page_seg seg[HD_PAGE_SEGS];
};
static_assert(sizeof(struct hd_page_mr) == 128, "a row of the table of regions is two cache lines");

enum hd_page_access {
	HD_PAGE_MR_READ = 1 << 0,
	HD_PAGE_MR_WRITE = 1 << 1,
	/*
	 * remote addresses are those of the segments; else they count bytes from the first one
	 * on, beginning with `base`
	 */
	HD_PAGE_MR_VIRTUAL = 1 << 2,
};

struct hd_page_tables {
	/*
	 * Counts turns of progress, every eighth of them: who sees it move knows that
	 * the node's program polls.
	 */
	_Alignas(64) _Atomic uint32_t turns;
	/* the owner's: regions that are shown, or have been hidden and may still be acted on */
	uint32_t mr_count;
	_Alignas(64) struct hd_page_ep eps[HD_PAGE_EPS];
	_Alignas(4096) struct hd_page_mr mrs[HD_PAGE_MRS];
};

/* The whole file. Sparse: what has never been written takes no memory. */
struct hd_page_file {
	struct hd_node_page page;
	uint8_t gap[HD_PAGE_TABLES - sizeof(struct hd_node_page)];
	struct hd_page_tables tables;
};
static_assert(offsetof(struct hd_page_file, tables) == HD_PAGE_TABLES,
	      "the tables begin at a place of their own");
static_assert(offsetof(struct hd_page_tables, mrs) == 0x9000, "layout");

static inline struct hd_page_tables *hd_page_tables(struct hd_node_page *page)
{
	return &((struct hd_page_file *)(void *)page)->tables;
}

/*
 * hd_page_mr_home: the first row of a key's window; rows are counted modulo HD_PAGE_MRS. Keys may
 * be small numbers or random.
 */
static inline uint32_t hd_page_mr_home(uint64_t key)
{
	return (uint32_t)((key * UINT64_C(0x9e3779b97f4a7c15)) >> 32) & (HD_PAGE_MRS - 1);
}

#endif
