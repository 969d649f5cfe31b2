/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Operations that were accepted and could not start: in hd_dest.waiting until the destination is
 * bound, then in hd_peer.queue. All functions are link's observers, see link/observers.h.
 */
#ifndef HD_ENGINE_BACKLOG_H
#define HD_ENGINE_BACKLOG_H

#include "engine/link/link.h"

/*
 * hd_backlog_push: start as many as the peer takes. hd_backlog_bound: the peer has them now.
 * hd_backlog_ended, hd_backlog_unreached: they complete in error, those behind fences too.
 */
int hd_backlog_push(struct hd_peer *peer);
void hd_backlog_bound(struct hd_dest *dest);
void hd_backlog_ended(struct hd_peer *peer, enum hd_status status);
void hd_backlog_unreached(struct hd_dest *dest, enum hd_status status);

#endif
