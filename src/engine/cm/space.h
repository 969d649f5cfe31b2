/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Name spaces of services other than TCP ports: which ports a service may be found at, and who has
 * its name on this host. The ports follow from space and number alone, so that a caller on any host
 * knows them: docs/wire.md.
 */
#ifndef HD_ENGINE_SPACE_H
#define HD_ENGINE_SPACE_H

#include "engine/engine.h"

#define HD_SPACE_TRIES 16

/*
 * hd_space_port: the i-th TCP port for this service, all of them different; 0 from HD_SPACE_TRIES
 * on, or when HEDDLE_CM_PORTS has fewer.
 */
uint16_t hd_space_port(uint32_t space, uint64_t number, unsigned i);

/*
 * hd_space_claim: take the name of a service at this address (NULL, or a wildcard: at all) on this
 * host and network namespace, until the descriptor in *claim is closed; -1 there where the system
 * has no such names. -EADDRINUSE: somebody has it, in this process or another; -EMFILE. With the
 * node's lock.
 */
int hd_space_claim(const struct hd_node *node, const struct hd_service_attr *attr, int *claim);

/*
 * hd_space_is_taken: has anybody on this host and network namespace this service, at this address
 * of the host's or at all?
 */
bool hd_space_is_taken(const struct hd_service_attr *attr);

#endif
