/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Any transport, with bad luck. For tests only: it is linked into them and not into the libraries,
 * and a test that uses it is linked with -Wl,--wrap=hd_link_init, which is how it comes to know of
 * the links that the wrapped transport makes.
 */
#ifndef HD_FAULT_FAULT_H
#define HD_FAULT_FAULT_H

#include "engine/transport.h"

struct hd_fault_plan {
	uint64_t seed;
	/* turns of progress for which a packet is held back, at most; the order is kept */
	unsigned hold_most;
	/* of the calls that send: answered -EAGAIN although there is room */
	unsigned again_percent;
	/* packets on a new link that are sent without that: it always has room for a greeting */
	unsigned spare;
	unsigned refuse_percent; /* of the gets: answered -EPERM */
	uint64_t break_after;	 /* packets sent on a link, after which it breaks; 0: never */
};

/*
 * hd_fault_wrap returns a transport that does what `inner` does, with these faults; of its own is
 * what it adds at the sender. NULL when memory is out. It keeps its ports apart, so nodes with
 * threads of their own may share it. hd_fault_unwrap frees it when all its ports are closed.
 */
const struct hd_transport *hd_fault_wrap(const struct hd_transport *inner, const struct hd_fault_plan *plan);
void hd_fault_unwrap(const struct hd_transport *wrapped);

#endif
