/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Datagram rsockets: a UD queue pair, and a service of rdma_cm's datagram port space by which
 * others find it. Whoever sends to an address asks its service once for the queue pair and keeps
 * the answer; whoever receives learns who sent it from the datagram itself, which begins with the
 * names by which its sender knows both ends. (The names by which the engine knows a host are others
 * than those that programs use.)
 */
#ifndef HEDDLE_FRONT_VERBS_RS_DGRAM_H
#define HEDDLE_FRONT_VERBS_RS_DGRAM_H

#include "front/verbs/qp.h"
#include "front/verbs/rs/rs.h"

#include <sys/queue.h>

struct rs_dgram_head {
	__be16 port, zero;	  /* the sender's */
	uint8_t from[16], to[16]; /* IPv4 as mapped IPv6 */
};
#define RS_DGRAM_HEAD sizeof(struct rs_dgram_head)
#define RS_DGRAM_MOST (HV_MAX_DATAGRAM - RS_DGRAM_HEAD) /* bytes of one */
#define RS_DGRAM_BLOCK (HV_GRH + HV_MAX_DATAGRAM)
#define RS_DGRAM_DESTS 4096 /* that are remembered */

struct rs_dest {
	TAILQ_ENTRY(rs_dest) entry;
	struct sockaddr_storage addr;
	struct rdma_cm_id *id; /* while its service is asked; else NULL */
	struct ibv_ah *ah;     /* NULL: not known yet */
	uint32_t qpn, qkey;
	uint8_t own[16]; /* what it knows us by */
	bool nobody;	 /* was found: the next datagram for it is dropped, and it is forgotten */
};

struct rs_dgram {
	TAILQ_HEAD(rs_dest_list, rs_dest) dests; /* those used last are first */
	uint32_t dest_count, asking;
	struct sockaddr_storage peer; /* rconnect; family 0: nobody */
	/* its service is that of one with the same name that came later: when; or 0 */
	uint64_t handed;
};

/* With the rsocket's lock, all of these. */

/*
 * rs_dest_find: who has this address; a new one is asked for, by this channel. NULL with errno.
 * rs_dest_from: the sender of this datagram; NULL: it is none of ours.
 */
struct rs_dest *rs_dest_find(struct rs_dgram *dgram, struct rdma_event_channel *ch,
			     const struct sockaddr *addr);
struct rs_dest *rs_dest_from(struct rs *rs, const struct ibv_wc *wc, char *block);
void rs_dest_forget(struct rs_dgram *dgram, struct rs_dest *dest);
void rs_dests_drop(struct rs_dgram *dgram);

/*
 * rs_dest_is_same: the same name, however it is written. rs_dest_is_peer: whom rconnect has named.
 */
bool rs_dest_is_same(const struct sockaddr_storage *a, const struct sockaddr *b);
bool rs_dest_is_peer(const struct rs_dgram *dgram, const struct rs_dest *dest);

/* rs_dgram_block_at: this block, of those in or out. rs_dgram_post_receive: into it. 0, -errno. */
static inline char *rs_dgram_block_at(char *mem, uint32_t block)
{
	return mem + (size_t)block * RS_DGRAM_BLOCK;
}
int rs_dgram_post_receive(struct rs *rs, uint32_t block);

/* rs_dgram_events: takes in events of its ids. */
void rs_dgram_events(struct rs *rs);

#endif
