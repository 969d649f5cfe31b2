/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* What all of the engine's interface names: its objects and its limits. */
#ifndef HD_ENGINE_API_TYPES_H
#define HD_ENGINE_API_TYPES_H

#include "engine/api/status.h"
#include "engine/wire.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <sys/uio.h>

struct hd_node;
struct hd_ep;
struct hd_rq;
struct hd_txq;
struct hd_cq;
struct hd_cntr;
struct hd_dest;
struct hd_mr;
struct hd_evq;
struct hd_service;
struct hd_request;
struct hd_wset;
struct hd_channel;
struct hd_group;

#define HD_MAX_IOV 16	   /* segments of a send or receive */
#define HD_MAX_INJECT 4096 /* bytes that HD_SEND_INJECT takes */
#define HD_MAX_MSG (UINT64_C(1) << 40)
#define HD_MAX_VARIABLE INT64_MAX /* bytes of a message between HD_EP_VARIABLE endpoints */
#define HD_MAX_DGRAM (16u << 10)  /* bytes that HD_EP_DROP endpoints send */

#endif
