/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * What the two files about one end of a connection share: conn.c has its states, call.c what the
 * caller does in them. With the node's lock; nothing blocks.
 */
#ifndef HD_ENGINE_CALL_H
#define HD_ENGINE_CALL_H

#include "engine/cm/conn.h"

/* ---- conn.c ---- */

/*
 * hd_conn_enter: the state is this one from now on. hd_conn_wait: and it is left in time, else the
 * connection fails with ETIMEDOUT.
 */
void hd_conn_enter(struct hd_conn *c, enum hd_conn_state state);
void hd_conn_wait(struct hd_conn *c, enum hd_conn_state state);

/*
 * hd_conn_post: an event for the program, whose err is a positive errno or 0;
 * priv, or NULL, is copied.
 */
void hd_conn_post(struct hd_conn *c, uint32_t code, int err, const struct hd_private *priv);

/*
 * hd_conn_fail: the connection did not come about, for this positive errno: it is
 * over, and HD_EV_UP says so.
 */
void hd_conn_fail(struct hd_conn *c, int err, const struct hd_private *priv);

/*
 * hd_conn_go: make a way to this name, of whom has this key; the state says what for,
 * and may change before this returns. 0, or negative: it cannot be begun.
 * hd_conn_unfollow: no longer this way.
 */
int hd_conn_go(struct hd_conn *c, const struct sockaddr *name, uint64_t key);
void hd_conn_unfollow(struct hd_conn *c);

/* hd_conn_named: that of the endpoint that the packet is for, or NULL. */
struct hd_conn *hd_conn_named(struct hd_link *link, const struct hd_pkt *pkt);

/* ---- decline.c ---- */

/*
 * hd_call_withdrawn: the caller goes, from whatever state: if it has been accepted, or may have
 * been, who did that is told, or will be when it is known. hd_call_decline: ACCEPT has come for a
 * call that nobody waits for any more; body is read.
 */
void hd_call_withdrawn(struct hd_conn *c);
void hd_call_decline(struct hd_link *link, const struct hd_pkt *accept, const struct hd_accept *body);

/* ---- call.c ---- */

/* hd_call_acceptor_name: where who has accepted is called, by a service that was called at `at`. */
void hd_call_acceptor_name(const struct sockaddr_storage *at, const struct hd_announce *ep,
			   struct sockaddr_storage *name);

/*
 * hd_call_ask: CALLING, and the service's node can be reached. hd_call_arrive: REACHING, and so can
 * the node of who has accepted.
 */
void hd_call_ask(struct hd_conn *c);
void hd_call_arrive(struct hd_conn *c);

/*
 * hd_call_next: call the next port at which a service by hash may be, after one has failed with
 * *err, a negative errno. False: there is none, or it would be no use, and *err says why.
 * hd_call_turned_away: there is no such service here, or no longer: the next, or the end.
 * hd_call_lost: who has been asked is gone (err as above), and need not have been the service: the
 * same.
 */
bool hd_call_next(struct hd_conn *c, int *err);
void hd_call_turned_away(struct hd_conn *c, const struct hd_private *priv);
void hd_call_lost(struct hd_conn *c, int err);

#endif
