/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Endpoints for datagrams (DAT_IB_SERVICE_TYPE_UD), their handshakes and address
 * handles: dat_ib_extensions.h.
 */
#ifndef HEDDLE_FRONT_DAT_UD_H
#define HEDDLE_FRONT_DAT_UD_H

#include "front/dat/connect.h"
#include "front/dat/post.h"

#include <dat2/dat_ib_extensions.h>

/* Handles of ours that dat.h has no types for. */
#define HU_TYPE_HANDSHAKE ((DAT_HANDLE_TYPE)(DAT_HANDLE_TYPE_EXTENSION_BASE + 16))
#define HU_TYPE_AH ((DAT_HANDLE_TYPE)(DAT_HANDLE_TYPE_EXTENSION_BASE + 17))

/*
 * An endpoint for datagrams is connected to nobody. dat_ep_connect and dat_cr_accept make each side
 * a handshake, by which they learn one another's number, and an address handle each; as many as the
 * program likes, at the same time too.
 */
struct hu_handshake {
	struct hu_object o;
	struct hu_ep *ep;
	struct hd_ep *line; /* NULL: over */
	struct hd_deferred deferred;
	uint32_t todo; /* enum hu_todo */
	bool called;   /* by the other end */
	bool rejected; /* and not merely in vain */
	struct sockaddr_storage remote;
	struct hu_head other;
	char priv[HU_MAX_PRIVATE];
	LIST_ENTRY(hu_handshake) entry;
};

/*
 * hu_ud_attr: what is different about the engine's endpoint. hu_ud_open: it is open: from now on
 * it receives. 0, -ENOMEM.
 */
void hu_ud_attr(struct hd_ep_attr *attr);
int hu_ud_open(struct hd_ep *ep);

/*
 * hu_ud_drop: the handshakes and address handles of an endpoint go. hu_ud_is_known: it
 * has some. With the lock.
 */
void hu_ud_drop(struct hu_ep *ep);
bool hu_ud_is_known(const struct hu_ep *ep);

/* hu_ud_ask: dat_ep_connect. hu_ud_happened: hd_evq_open_told's. With the lock. */
DAT_RETURN hu_ud_ask(struct hu_ep *ep, const struct hu_call *call);
void hu_ud_happened(struct hu_handshake *h, const struct hd_event *event);

/*
 * hu_ud_prepare: the handshake of dat_cr_accept. hu_ud_undo: hd_ep_accept
 * has failed. With the lock.
 */
DAT_RETURN hu_ud_prepare(struct hu_cr *cr, struct hu_ep *ep, struct hu_handshake **out);
DAT_RETURN hu_ud_undo(struct hu_handshake *h, int rc);

/* hu_ud_extend: make it this event of the extension; what is to be filled in. */
DAT_IB_EXTENSION_EVENT_DATA *hu_ud_extend(DAT_EVENT *event, DAT_IB_EVENT_NUMBER number, DAT_IB_EXT_TYPE type);

/* dat_ib_post_send_ud, dat_ib_ud_cm_free, dat_ib_ud_ah_free. */
DAT_RETURN hu_ud_send(DAT_EP_HANDLE handle, const struct hu_request *r, const DAT_IB_ADDR_HANDLE *to);
DAT_RETURN hu_ud_cm_free(DAT_EP_HANDLE handle, void *cm);
DAT_RETURN hu_ud_ah_free(DAT_EP_HANDLE handle, const DAT_IB_ADDR_HANDLE *ah);

#endif
