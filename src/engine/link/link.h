/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Other nodes: peers and their links, the greeting, credit both ways, what waits for answers,
 * destinations, and how arrivals are answered. The rooms above post to peers and never to a link;
 * transports come in by engine/transport.h.
 *
 *	peer.h		another node: how it comes and ends, what is queued for it
 *	credit.h	what may be sent, and what comes back
 *	budget.h	what others may have us keep
 *	pending.h	what waits for an answer
 *	of_peer.h	what is kept of a peer, by what he calls it
 *	dest.h		whom something is sent to
 *	arrival.h	what has come
 *	observers.h	the upcalls: who above is told of what happens here, and what they may do
 *			then
 *
 * With the node's lock; nothing blocks.
 */
#ifndef HD_ENGINE_LINK_H
#define HD_ENGINE_LINK_H

#include "engine/link/arrival.h"
#include "engine/link/budget.h"
#include "engine/link/credit.h"
#include "engine/link/dest.h"
#include "engine/link/observers.h"
#include "engine/link/of_peer.h"
#include "engine/link/peer.h"
#include "engine/link/pending.h"
#include "engine/link/state.h"

#endif
