/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * What the cases of rsockets share. Rank 0 listens, rank 1 calls; cases whose
 * argument is 6 do so over IPv6.
 */
#ifndef RST_H
#define RST_H

#include "cmt.h"

#include <rdma/rsocket.h>

#define RST_PATIENCE (CT_BUSY * 20000) /* milliseconds for what must come */

struct rst {
	struct ct *ct;
	int family, type;
	int listener, s; /* -1: none */
	struct sockaddr_storage at;
};

/*
 * rst_open: a listener that both know, at a port that it got; nobody has called. rst_pair: and an
 * rsocket that is connected.
 */
void rst_open(struct ct *ct, struct rst *r);
void rst_pair(struct ct *ct, struct rst *r);
void rst_close(struct rst *r);

/*
 * rst_size: of r->at. rst_call: an rsocket that calls the listener, connected unless it
 * is said to be nonblocking.
 */
socklen_t rst_size(const struct rst *r);
int rst_call(struct rst *r, bool nonblocking);

/* rst_await: rpoll says these, all of them, within RST_PATIENCE; returns what it says. */
short rst_await(struct rst *r, int s, short events);

/*
 * rst_send, rst_receive: so many bytes of the pattern `seed`, in calls of at most `piece` bytes.
 * rst_quiet: nothing to be read comes in 20 ms.
 */
void rst_send(struct rst *r, size_t len, uint64_t seed, size_t piece);
void rst_receive(struct rst *r, size_t len, uint64_t seed, size_t piece);
void rst_quiet(struct rst *r, int s);
void rst_nonblocking(struct rst *r, int s, bool on);

/*
 * rst_option: this option {level, name} is an int of this value. rst_tcp_state: TCP_INFO tells this
 * state, and nothing that cannot be.
 */
void rst_option(struct ct *ct, int s, const int *option, int want);
void rst_tcp_state(struct ct *ct, int s, int state);

#endif
