/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Connections that a key seals, as far as they are TCP's: seal.c. Private to this folder;
 * what seals is base/seal.h.
 */
#ifndef HD_TCP_SEAL_H
#define HD_TCP_SEAL_H

#include "base/seal.h"

struct hd_tcp_port;
struct hd_tcp_link;

/*
 * hd_seal_open: if there is a key file, have the port's connections sealed; as hd_sealer_open.
 * hd_seal_close: with the port.
 */
int hd_seal_open(struct hd_tcp_port *port);
void hd_seal_close(struct hd_tcp_port *port);

/*
 * hd_seal_begin: the socket is connected: hd_link_up or hd_link_accepted follow when both ends have
 * proved themselves. Negative errno: no memory.
 */
int hd_seal_begin(struct hd_tcp_link *l, bool calls);

/*
 * hd_seal_shake: the socket of a link in HD_TCP_SHAKING has something to tell. The
 * link may be down afterwards.
 */
void hd_seal_shake(struct hd_tcp_link *l);

#endif
