/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Requests that name a queue of another node, which is of the same domain: see relay.c. Part of a queue pair (hd_pair.relay) that has
 * hd_ep_attr.stray, else NULL.
 */
#ifndef HD_ENGINE_RELAY_H
#define HD_ENGINE_RELAY_H

#include "engine/internal.h"

struct hd_pair;
struct hd_arrival;
struct hd_carried;
struct hd_relay;

#define HD_RELAY_MAX (UINT64_C(1) << 30) /* bytes of one request */

/*
 * hd_relay_open: with the pair: 0 or -ENOMEM. hd_relay_clear: it has failed, is reset, or closes: nothing that has come goes any further.
 * hd_relay_close: the pair closes; it may be one that others' requests leave by.
 */
int hd_relay_open(struct hd_pair *p, void (*stray)(void *owner, uint32_t number));
void hd_relay_clear(struct hd_pair *p);
void hd_relay_close(struct hd_pair *p);

/*
 * hd_relay_way: may a request for the queue with this number be carried on now? 0; -EAGAIN: the pair is looked at again when it may; -EINVAL:
 * there is no such queue. hd_relay_is_busy: one is on its way, and what comes behind it waits.
 */
int hd_relay_way(struct hd_pair *p, uint32_t number);
bool hd_relay_is_busy(const struct hd_pair *p);

/* hd_relay_take: the request goes where hd_relay_way has found that it may. hd_relay_run: a turn of progress is over. */
void hd_relay_take(struct hd_pair *p, const struct hd_arrival *r);
void hd_relay_run(struct hd_pair *p);

/* hd_relay_forget: this peer is gone. */
void hd_relay_forget(struct hd_pair *p, const struct hd_peer *peer);

#endif
