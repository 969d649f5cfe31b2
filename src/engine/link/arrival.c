/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Answers to what has come. */
#include "base/advice.h"
#include "engine/link/link.h"

#include <errno.h>
#include <stdio.h>

int hd_link_broken(struct hd_link *link, const char *why)
{
	hd_link_down(link, -EPROTO, why);
	return -EPROTO;
}

int hd_link_without_memory(struct hd_link *link, const char *what)
{
	char why[160];

	snprintf(why, sizeof(why), "no memory for %s%s", what, hd_advice(ENOMEM));
	return hd_link_broken(link, why);
}

/*
 * Answers of a queue pair's run of messages name the endpoint that sent, in
 * the life in which it did.
 */
void hd_answer(struct hd_peer *peer, const struct hd_pkt *to, uint8_t kind, enum hd_status status)
{
	struct hd_pkt pkt = { .kind = kind, .op = to->op, .imm = (uint64_t)status };

	if (to->kind == HD_PKT_EAGER && to->flags & HD_PKT_F_SSN) {
		pkt.flags = HD_PKT_F_SSN;
		pkt.dst = to->src;
		pkt.gen = hd_remote_gen(peer, to->src);
	}
	hd_peer_send(peer, &pkt, NULL, 0);
}

void hd_answer_op(struct hd_peer *peer, uint8_t kind, uint32_t op, enum hd_status status)
{
	struct hd_pkt pkt = { .kind = kind, .op = op, .imm = (uint64_t)status };

	hd_peer_send(peer, &pkt, NULL, 0);
}

void hd_arrival_refuse(const struct hd_arrival *a, enum hd_status status)
{
	const struct hd_pkt pkt = { .kind = HD_PKT_FIN, .op = a->pkt->op, .imm = (uint64_t)status };

	hd_peer_answer(a->peer, &pkt, NULL, 0, a->units);
}
