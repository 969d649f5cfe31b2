/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * FAULT: last words. What a completion has said of a send arrives, though the process is
 * gone at once and its peer has not looked since: ibv_poll_cq(3), a card has sent by then,
 * or the other end has it.
 */
#include "vt.h"

#include <stdlib.h>
#include <unistd.h>

#define WORDS 40
#define ROOM 4096u /* for each; the head of a datagram is in it */
#define AWAY_MS 30 /* for how long the other end does not look */
#define AT_ONCE 0x100

static uint32_t len_of(int word)
{
	static const uint32_t lens[] = { 8, 600, 64, 0 };

	return lens[(size_t)word % CT_COUNT(lens)];
}

static void __attribute__((noreturn)) speaker(struct ct_ep *e)
{
	ct_doomed(e->ct);
	for (int i = 0; i < WORDS; i++) {
		ct_fill(e->buf + (size_t)i * ROOM, ROOM, (uint64_t)i);
		vt_send(e, (size_t)i * ROOM, len_of(i), 100 + (uint64_t)i);
	}
	for (int i = 0; i < WORDS; i++)
		vt_next(e, 100 + (uint64_t)i, IBV_WC_SUCCESS);
	if (e->ct->cs->arg & AT_ONCE)
		_exit(0);
	exit(0);
}

static void listener(struct ct_ep *e)
{
	size_t head = e->want.type == IBV_QPT_UD ? 40 : 0;
	struct ibv_wc wc;

	usleep(AWAY_MS * 1000);
	for (int i = 0; i < WORDS; i++) {
		vt_done(e, 200 + (uint64_t)i, &wc);
		CT_EQ(e->ct, wc.byte_len, head + len_of(i));
		ct_verify(e->ct, e->buf + (size_t)i * ROOM + head, len_of(i), (uint64_t)i, "last words");
	}
}

static void last_words(struct ct *ct)
{
	const struct vt_want want = { .type = (enum ibv_qp_type)(ct->cs->arg & 0xff) };
	struct ct_ep e;

	vt_start(ct, &e, &want);
	for (int i = 0; ct->rank && i < WORDS; i++)
		vt_recv(&e, (size_t)i * ROOM, ROOM, 200 + (uint64_t)i);
	ct_sync(ct, &e);
	if (!ct->rank)
		speaker(&e);
	listener(&e);
	vt_close(&e);
}

const struct ct_case vt_words[] = {
	{ "FAULT", "last words RC", CT_TWO(last_words), .arg = IBV_QPT_RC },
	{ "FAULT", "last words UC", CT_TWO(last_words), .arg = IBV_QPT_UC },
	{ "FAULT", "last words UD", CT_TWO(last_words), .arg = IBV_QPT_UD },
	{ "FAULT", "last words at once RC", CT_TWO(last_words), .arg = IBV_QPT_RC | AT_ONCE },
	{ "FAULT", "last words at once UC", CT_TWO(last_words), .arg = IBV_QPT_UC | AT_ONCE },
	{ "FAULT", "last words at once UD", CT_TWO(last_words), .arg = IBV_QPT_UD | AT_ONCE },
	{ NULL },
};
