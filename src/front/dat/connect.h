/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* What the two sides of a connection have in common. */
#ifndef HEDDLE_FRONT_DAT_CONNECT_H
#define HEDDLE_FRONT_DAT_CONNECT_H

#include "front/dat/dat_front.h"

#define HU_SPACE 0x44415431u /* connection qualifiers, among the engine's name spaces of services */
#define HU_WORD_REJECT UINT64_C(0x64617472656a) /* hd_cm_data.word of dat_cr_reject */
/* of dat_cr_handoff: hu_head.qualifier says where to */
#define HU_WORD_HANDOFF UINT64_C(0x64617468616e)
/* of a parting: the connection has broken there, for what either end did */
#define HU_WORD_BROKEN UINT64_C(0x64617462726b)

struct hu_call {
	const struct sockaddr *to;
	DAT_CONN_QUAL qualifier;
	DAT_TIMEOUT timeout;
	const void *priv;
	DAT_COUNT priv_len;
};

/*
 * hu_head_put: what this endpoint says of itself, and private data behind it, to HD_CM_DATA bytes;
 * the length. hu_head_get: false: it is none.
 */
size_t hu_head_put(const struct hu_ep *ep, const void *priv, DAT_COUNT len, void *to);
bool hu_head_get(const void *from, size_t len, struct hu_head *head);

/*
 * hu_pair: to this endpoint of that host. hu_line_open: what carries a connection of `ep`; the
 * owner is that one, or a handshake of it. hu_dial: ask through it for the endpoint. 0, -errno.
 * With the lock.
 */
int hu_pair(struct hu_ep *ep, const struct sockaddr_storage *host, uint32_t number);
int hu_line_open(struct hu_object *owner, const struct hu_ep *ep, struct hd_ep **out);
int hu_dial(struct hd_ep *line, const struct hu_ep *ep, const struct hu_call *call);

/* hu_line_tell: the program, of the connection, with the private data. */
void hu_line_tell(struct hu_ep *ep, DAT_EVENT_NUMBER number);

/*
 * hu_dial_error: what its refusal is to the program. hu_address_copy: an address of either family.
 */
DAT_RETURN hu_dial_error(int rc);
void hu_address_copy(struct sockaddr_storage *to, const struct sockaddr *from);

/*
 * hu_sp_make: a service point of this type, of which the rest is like *like; hu_sp_drop is its end.
 * With the lock. hu_sp_takes_requests: is this an EVD for them? hu_sp_free: the call of that name,
 * of a handle of this type.
 */
DAT_RETURN hu_sp_make(struct hu_ia *ia, DAT_HANDLE_TYPE type, const struct hu_sp *like, struct hu_sp **out);
bool hu_sp_takes_requests(const struct hu_ia *ia, DAT_EVD_HANDLE evd);
DAT_RETURN hu_sp_free(DAT_HANDLE handle, DAT_HANDLE_TYPE type, DAT_RETURN_SUBTYPE sub);

/* hu_requested: somebody asks a service point for a connection. */
void hu_requested(struct hu_sp *sp, const struct hd_event *event);

#endif
