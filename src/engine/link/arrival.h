/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * What has come from a peer: made once, by the dispatcher, which has looked up the endpoint and
 * charged the peer, and handed down as it is.
 *
 * Whoever gets an arrival carries it out or refuses it, and so has its credit from then on: it goes
 * back when that is done, with hd_peer_free_units, hd_peer_answer or hd_arrival_refuse, once.
 * payload is read once: it may lie in memory that the other end can write to; that of an RTS is a
 * copy, and what begins that of a WRITE has been read (`list`): who keeps it takes that
 * (hd_rma_payload). All with the node's lock; nothing blocks.
 */
#ifndef HD_ENGINE_ARRIVAL_H
#define HD_ENGINE_ARRIVAL_H

#include "engine/link/peer.h"

struct hd_rma_list;

struct hd_arrival {
	struct hd_peer *peer;
	struct hd_ep *ep; /* whom it is for; NULL: nobody who takes it */
	const struct hd_pkt *pkt;
	const void *payload;
	size_t len;
	const struct hd_rma_list *list; /* what begins the payload of a WRITE; NULL: not read */
	uint32_t units;			/* of the peer's credit */
	/* hd_dest_id of the endpoint that sent it; 0: it has no name here */
	uint32_t src;
};

/*
 * hd_link_broken: the other end does not keep to the protocol: its link goes down.
 * hd_link_without_memory: we cannot, for want of memory for what is named. Both return -EPROTO.
 */
int hd_link_broken(struct hd_link *link, const char *why);
int hd_link_without_memory(struct hd_link *link, const char *what);

/*
 * hd_answer: say kind and status to whoever sent pkt and waits for an answer. hd_answer_op: to the
 * peer's operation with this number. hd_arrival_refuse: a request is answered with this status, and
 * its credit goes back with the answer.
 */
void hd_answer(struct hd_peer *peer, const struct hd_pkt *pkt, uint8_t kind, enum hd_status status);
void hd_answer_op(struct hd_peer *peer, uint8_t kind, uint32_t op, enum hd_status status);
void hd_arrival_refuse(const struct hd_arrival *a, enum hd_status status);

#endif
