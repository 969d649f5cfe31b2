/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Requests that name a queue of another node, which is of the same domain: see qp/xrc/proxy.c. Part
 * of a queue pair (hd_qp.xrc_proxy) that has hd_ep_attr.stray, else NULL.
 */
#ifndef HD_ENGINE_PROXY_H
#define HD_ENGINE_PROXY_H

#include "engine/link/link.h"

struct hd_qp;
struct hd_arrival;
struct hd_proxied;
struct hd_xrc_proxy;

#define HD_XRC_PROXY_MAX (UINT64_C(1) << 30) /* bytes of one request */

/*
 * hd_xrc_proxy_open: with the pair: 0 or -ENOMEM. hd_xrc_proxy_clear: it has failed, is reset, or
 * closes: nothing that has come goes any further.
 * hd_xrc_proxy_close: the pair closes; it may be one that others' requests leave by.
 */
int hd_xrc_proxy_open(struct hd_qp *p, void (*stray)(void *owner, uint32_t number));
void hd_xrc_proxy_clear(struct hd_qp *p);
void hd_xrc_proxy_close(struct hd_qp *p);

/*
 * hd_xrc_proxy_way: may a request for the queue with this number be carried on now? 0; -EAGAIN: the
 * pair is looked at again when it may; -EINVAL: there is no such queue. hd_xrc_proxy_is_busy: one
 * is on its way, and what comes behind it waits.
 */
int hd_xrc_proxy_way(struct hd_qp *p, uint32_t number);
bool hd_xrc_proxy_is_busy(const struct hd_qp *p);

/*
 * hd_xrc_proxy_take: the request goes where hd_xrc_proxy_way has found that it may.
 * hd_xrc_proxy_run: a turn of progress is over.
 */
void hd_xrc_proxy_take(struct hd_qp *p, const struct hd_arrival *r);
void hd_xrc_proxy_run(struct hd_qp *p);

#endif
