/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* The one place of the engine that names concrete transports. */
#include "engine/node/transports.h"

extern const struct hd_transport hd_tcp_transport, hd_shm_transport, hd_loop_transport;

const struct hd_transport *const hd_transports[] = { &hd_tcp_transport, &hd_shm_transport, &hd_loop_transport,
						     NULL };

extern const struct hd_caster hd_udp_caster;

const struct hd_caster *const hd_caster = &hd_udp_caster;
