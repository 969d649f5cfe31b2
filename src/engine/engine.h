/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * The engine as the fronts see it. A front translates arguments, checks them against its manual
 * pages, and calls; it has no queue, timer or loop of its own.
 *
 * Threads: a node is opened with or without a lock. Unless a function says otherwise its caller
 * holds the node's lock (hd_node_lock, which does nothing for a node without one; such a node
 * belongs to one thread at a time).
 *
 * Errors: negative errno is fatal and forwarded; positive is a documented result. Nothing blocks
 * but hd_cq_wait, hd_cntr_wait, hd_wset_wait, hd_node_sleep.
 *
 * Ownership: every object belongs to the front that opened it, and is closed by it, users before
 * used: closing something in use answers -EBUSY and frees nothing.
 */
#ifndef HD_ENGINE_ENGINE_H
#define HD_ENGINE_ENGINE_H

#include "engine/api/completion.h"
#include "engine/api/connection.h"
#include "engine/api/endpoint.h"
#include "engine/api/node.h"
#include "engine/api/qp.h"
#include "engine/api/receive.h"
#include "engine/api/region.h"
#include "engine/api/rma.h"
#include "engine/api/send.h"
#include "engine/api/view.h"

#endif
