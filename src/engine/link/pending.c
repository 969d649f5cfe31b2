/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* What waits for answers of peers, by number. */
#include "engine/link/link.h"

void hd_pendings_ended(struct hd_peer *peer, enum hd_status status)
{
	struct hd_pending *pending;

	while ((pending = TAILQ_FIRST(&peer->pending)))
		pending->ops->lost(pending, status);
}
