/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * What two processes of one host share: the memory of a link and the records that set it up.
 * Nothing else is in this file; docs/shm-layout.md tells it in prose. Sizes are fixed by
 * HD_SHM_VERSION, places are offsets, and no pointer is ever followed that was read from here. Side
 * 0 is the one that joined, side 1 the one that was joined.
 *
 *	0x00000 +--------------------------------------------------+
 *	        | magic, version, size                             |
 *	0x00040 | side 0: how far it has read, credit it grants    |  written by side 0 alone
 *	        | side 0: may it copy directly, is it out of room  |
 *	        | side 0: what it reaches for at this moment       |
 *	0x00100 | side 1: the same                                 |  written by side 1 alone
 *	0x01000 +--------------------------------------------------+
 *	        | copy[0]: 32 messages that side 0 fetches         |
 *	        | copy[1]: 32 messages that side 1 fetches         |
 *	0x03000 +--------------------------------------------------+
 *	        | offer[0]: which offers of side 0 stand           |  written by side 0 alone
 *	        | offer[1]: which offers of side 1 stand           |  written by side 1 alone
 *	0x0b000 +--------------------------------------------------+
 *	        | accept[0]: what queue pairs of side 0 accepted   |  written by side 0 alone
 *	        | accept[1]: what queue pairs of side 1 accepted   |  written by side 1 alone
 *	0x1b000 +--------------------------------------------------+
 *	        | slot[0]: 1024 packets from side 0 to side 1      |  written by side 0 alone
 *	        | slot[1]: 1024 packets from side 1 to side 0      |  written by side 1 alone
 *	0x3b000 +--------------------------------------------------+
 *	        | bulk[0]: payloads from side 0 to side 1          |  written by side 0 alone
 *	        | bulk[1]: payloads from side 1 to side 0          |  written by side 1 alone
 *	0xbb000 +--------------------------------------------------+
 */
#ifndef HD_SHM_LAYOUT_H
#define HD_SHM_LAYOUT_H

#include "engine/wire.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HD_SHM_MAGIC 0x6d687368u /* "hshm" */
#define HD_SHM_VERSION 7

/* A cache line. Whatever one side alone writes has lines of its own. */
#define HD_SHM_LINE 64u
#define HD_SHM_SLOTS 1024u	 /* packets of a direction; a power of two */
#define HD_SHM_BULK (256u << 10) /* payload bytes of a direction; a power of two */
#define HD_SHM_INLINE 24u	 /* payload bytes that travel in the slot itself */
#define HD_SHM_COPIES 32u	 /* messages that one side fetches at the same time with help */
#define HD_SHM_SEGS 16u		 /* segments of the buffer of one of them, at most */

/*
 * One packet, or one piece of a packet: a cache line. `seq` is the slot's position in the stream
 * plus one, stored last with release. It differs from lap to lap, so that the reader needs no
 * index, and nothing is ever cleared.
 *
 *	 0        4        8                                  40                       64
 *	+--------+--------+----------------------------------+------------------------+
 *	| seq    | len    | struct hd_pkt                    | payload of ≤ 24 bytes  |
 *	+--------+--------+----------------------------------+------------------------+
 *
 * A longer payload lies in the bulk ring, in pieces (hd_shm_piece) of which each has a slot of its
 * own. The slot of the first carries the header and the length of all, that of the others
 * HD_SHM_MORE and the bytes that are still to come, its own included. Where a piece lies is not
 * said: pieces follow each other, each begins on a cache line, and one that would cross the end of
 * the ring begins at its start.
 */
struct hd_shm_slot {
	_Alignas(64) _Atomic uint32_t seq;
	uint32_t len;
	struct hd_pkt pkt;
	uint8_t data[HD_SHM_INLINE];
};
static_assert(sizeof(struct hd_shm_slot) == HD_SHM_LINE, "a slot is one cache line");
static_assert(offsetof(struct hd_shm_slot, data) == 40, "the payload follows the header");

#define HD_SHM_MORE 0x80000000u /* in len: this slot continues the packet of the one before, */
#define HD_SHM_VOID \
	0x40000000u /* and the sender could not read all of it: nothing shall come of the packet */

enum hd_shm_direct { /* low byte of `direct`; the errno that refused it is in the bits above */
	HD_SHM_DIRECT_UNKNOWN = 0,
	HD_SHM_DIRECT_YES,
	HD_SHM_DIRECT_OFF,
	HD_SHM_DIRECT_REFUSED,
};

/* What one side says about itself. */
struct hd_shm_side {
	/*
	 * Written now and then while traffic flows: slots that it has read (low 32 bits) and bulk
	 * bytes (high 32 bits), both of which wrap; and hd_link_ops.grant.
	 */
	_Alignas(64) _Atomic uint64_t read;
	_Atomic uint32_t grant;
	/* Written when something changes. */
	_Alignas(64) _Atomic uint32_t direct; /* can this side reach the other's memory? */
	/* 1: it has found the ring full, and sleeps or may go to sleep over it */
	_Atomic uint32_t starved;
	/* 1: it has given up the link, and what it offered is no longer there */
	_Atomic uint32_t closed;
	/*
	 * One-sided operations. What this side copies at this moment from or to a region of the
	 * other (hd_shm_direct_word; 0: nothing), the token of the last FENCE that it has taken in,
	 * and whether it has stopped to look what the other side copies: then the other side must
	 * not.
	 */
	_Alignas(64) _Atomic uint64_t direct_word;
	_Atomic uint32_t passed;
	_Atomic uint32_t shut;
};
static_assert(sizeof(struct hd_shm_side) == 3 * HD_SHM_LINE, "a side is three cache lines");

/*
 * hd_shm_direct_word: the announcement that the region in this row of the table, in
 * this state, is acted on.
 */
static inline uint64_t hd_shm_direct_word(uint32_t row, uint32_t state)
{
	return (uint64_t)state << 32 | (row + 1);
}

/*
 * hd_shm_direct_is_of: does it name this row? In whatever state: a row is not used for another
 * region before nobody does.
 */
static inline bool hd_shm_direct_is_of(uint64_t word, uint32_t row)
{
	return (uint32_t)word == row + 1;
}

/*
 * A message that both ends copy at once. The side that fetches it opens `claim` and asks for help
 * with a packet HD_SHM_PKT_HELP. Then both take chunks (hd_shm_chunk) from `claim` by
 * compare-and-exchange and copy them, the one that fetches the first ones and the helper the last
 * ones. All three words carry the generation of the copy in their high 32 bits, so that whoever is
 * late finds out.
 */
struct hd_shm_copy {
	_Alignas(64) _Atomic uint64_t claim; /* chunks that have been taken; both sides */
	/* chunks that the helper has finished; the helper alone */
	_Alignas(64) _Atomic uint64_t helped;
	/* the helper gives up: its unfinished chunk plus 1, or HD_SHM_NO_CHUNK */
	_Atomic uint64_t returned;
};
static_assert(sizeof(struct hd_shm_copy) == 2 * HD_SHM_LINE, "a copy is two cache lines");

#define HD_SHM_NO_CHUNK 0xffffffffu

/*
 * hd_shm_chunk: bytes of each chunk but the last of a message of len bytes that is fetched. Both
 * ends compute it. An even number of chunks of the same size, as few as their bound allows: each
 * costs a system call that pins pages, and the two ends are equally fast. A short message is not
 * worth the request for help.
 */
#define HD_SHM_CHUNK_ONE (24u << 10)  /* bytes up to which a message is one chunk */
#define HD_SHM_SINGLE (64u << 10)     /* and up to which one end copies it where many come */
#define HD_SHM_CHUNK_MAX (256u << 10) /* of a chunk: what one turn of progress copies */
/* longer ones go in frames: numbers of chunks have 32 bits */
#define HD_SHM_GET_MAX (UINT64_C(1) << 48)
static inline uint32_t hd_shm_chunk(uint64_t len)
{
	uint64_t count = 2 * ((len + 2 * HD_SHM_CHUNK_MAX - 1) / (2 * HD_SHM_CHUNK_MAX));

	if (len <= HD_SHM_CHUNK_ONE)
		return HD_SHM_CHUNK_ONE;
	return (uint32_t)(((len + count - 1) / count + 4095) & ~UINT64_C(4095));
}

static inline uint64_t hd_shm_chunks(uint64_t len)
{
	return (len + hd_shm_chunk(len) - 1) / hd_shm_chunk(len);
}

/*
 * Memory is fetched from a process that may withdraw the offer at any time and use the memory for
 * something else. It then clears the offer's word first: whoever finds the offer's number there
 * after copying has copied what was offered.
 */
#define HD_SHM_OFFERS 4096u
static inline uint32_t hd_shm_offer_index(uint32_t number)
{
	return number & (HD_SHM_OFFERS - 1);
}

struct hd_shm_seg {
	uint64_t addr, len;
};

/*
 * Packets of the transport's own. HELP: op the offer's number, dst the copy's index, src its
 * generation, tag the bytes to be fetched; payload: struct hd_shm_seg[], the buffer that they go
 * to. FENCE: op a token, to be stored in `passed`: everything before it has been taken in.
 */
enum hd_shm_pkt_kind {
	HD_SHM_PKT_HELP = HD_PKT_TRANSPORT,
	HD_SHM_PKT_FENCE,
};

struct hd_shm_mem {
	uint32_t magic;
	uint32_t version;
	uint64_t size;
	struct hd_shm_side side[2];
	_Alignas(4096) struct hd_shm_copy copy[2][HD_SHM_COPIES];
	_Alignas(4096) _Atomic uint32_t offer[2][HD_SHM_OFFERS];
	_Alignas(4096) _Atomic uint64_t accept[2][HD_ACK_ROWS];
	_Alignas(4096) struct hd_shm_slot slot[2][HD_SHM_SLOTS];
	_Alignas(4096) uint8_t bulk[2][HD_SHM_BULK];
};
static_assert(offsetof(struct hd_shm_mem, side) == 0x40, "layout");
static_assert(offsetof(struct hd_shm_mem, copy) == 0x1000, "layout");
static_assert(offsetof(struct hd_shm_mem, offer) == 0x3000, "layout");
static_assert(offsetof(struct hd_shm_mem, accept) == 0xb000, "layout");
static_assert(offsetof(struct hd_shm_mem, slot) == 0x1b000, "layout");
static_assert(offsetof(struct hd_shm_mem, bulk) == 0x3b000, "layout");
static_assert(sizeof(struct hd_shm_mem) == 0xbb000, "layout");

/*
 * hd_shm_piece: length of the piece that begins `at` bytes into a payload of `total` bytes. The
 * sender publishes piece by piece, so that the reader copies one while the next is being written.
 * Both ends compute it. Smaller pieces are slower: the reader's prefetcher runs into the lines that
 * the sender is writing.
 */
#define HD_SHM_PIECE 8192u
static inline uint32_t hd_shm_piece(uint32_t total, uint32_t at)
{
	return total - at < HD_SHM_PIECE ? total - at : HD_SHM_PIECE;
}

/* hd_shm_lines: n rounded up to whole cache lines. */
static inline uint32_t hd_shm_lines(uint32_t n)
{
	return (n + HD_SHM_LINE - 1) & ~(HD_SHM_LINE - 1);
}

/* hd_shm_place: where a piece of n bytes begins that follows on bulk position pos. */
static inline uint32_t hd_shm_place(uint32_t pos, uint32_t n)
{
	uint32_t end = HD_SHM_BULK - (pos & (HD_SHM_BULK - 1));

	return n > end ? pos + end : pos;
}

/* ---- setting up ---- */

/*
 * What a node tells to those that may join it: it listens on the abstract UNIX address
 * "heddle.<join_name in hexadecimal>".
 */
struct hd_shm_advert {
	uint32_t magic;
	uint32_t version;
	uint8_t join_name[16];
	uint8_t nonce[16]; /* whoever shows it has been told by the node itself */
};
static_assert(sizeof(struct hd_shm_advert) == 40, "an advert is 40 bytes");

/*
 * Descriptors: JOIN carries node page, eventfd and link memory, WELCOME node page and eventfd;
 * either a pidfd of the sender after those, if there is one.
 */
enum hd_shm_hello_step {
	HD_SHM_JOIN = 1, /* side 0 to side 1 */
	HD_SHM_WELCOME,	 /* side 1 to side 0 */
	HD_SHM_READY,	 /* side 0 to side 1: packets may flow */
};

enum hd_shm_hello_flag {
	/*
	 * membarrier(2) works here: our sleepers make the order, and we are
	 * registered for those of others
	 */
	HD_SHM_F_BARRIER = 1 << 0,
	HD_SHM_F_PIDFD = 1 << 1, /* the last descriptor is a pidfd */
};

/* One record on the UNIX socket. */
struct hd_shm_hello {
	uint32_t magic;
	uint16_t version;
	uint8_t step;
	uint8_t flags;
	uint8_t nonce[16];	/* of the advert that was followed */
	struct hd_node_id id;	/* who says it */
	struct hd_node_id whom; /* JOIN: who is expected here; zero: whoever it is */
};
static_assert(sizeof(struct hd_shm_hello) == 56, "a hello is 56 bytes");

#define HD_SHM_HELLO_FDS 4 /* descriptors of one record, at most */

#endif
