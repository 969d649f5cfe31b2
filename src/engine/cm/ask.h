/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Questions of fronts between the engine's files; engine.h has what fronts see. */
#ifndef HD_ENGINE_ASK_H
#define HD_ENGINE_ASK_H

#include "engine/link/link.h"

/*
 * hd_asks_open: the endpoint, which has a number, opens: what it is asked is answered by this, or
 * refused where it is NULL: 0 or -ENOMEM. hd_asks_close: it closes: who waits is refused; nothing
 * where it answers nothing. hd_asks_orphan: this peer is gone, and waits for no answer.
 */
int hd_asks_open(struct hd_ep *ep, int (*asked)(void *owner, const struct hd_question *q));
void hd_asks_close(struct hd_ep *ep);
void hd_asks_orphan(const struct hd_peer *peer);

/* hd_asked: ASK has come. hd_ask_told: TOLD. The same as hd_deliver. */
int hd_asked(struct hd_link *link, const struct hd_pkt *pkt, const void *payload, size_t len);
int hd_ask_told(struct hd_link *link, const struct hd_pkt *pkt, const void *payload, size_t len);

#endif
