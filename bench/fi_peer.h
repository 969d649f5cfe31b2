/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Processes that say hello to a server and then sleep. fd: their control socket, see ctl.h. */
#ifndef HD_FI_PEER_H
#define HD_FI_PEER_H

#include "fi_side.h"

/*
 * hd_peer_main - what such a process does: opens its side at once, says hello when the server calls
 * it, and sleeps in read(2) until told to end.
 */
void hd_peer_main(const struct hd_side_opts *o, int fd);

/*
 * hd_peer_meet - the server calls one of them, answers its hello, and waits
 * until it has the answer.
 */
void hd_peer_meet(struct hd_side *s, int fd);

#endif
