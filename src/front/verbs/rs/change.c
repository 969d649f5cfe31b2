/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Something has happened to an rsocket: who sleeps for it is rung for, by rs.fd (see wait.c).
 */
#include "front/verbs/rs/rs.h"

#include <sys/eventfd.h>

/* All who sleep now are to get up: rs.fd is readable from now on, if it is not already. */
static void ring(struct rs *rs)
{
	rs->wait.to_wake = rs->wait.sleepers;
	rs->wait.rings++;
	rs->wait.ring_again = false;
}

void rs_changed(struct rs *rs)
{
	rs->wait.changes++;
	rs->wait.ring_again = rs->wait.to_wake;
	if (!rs->wait.sleepers || rs->wait.to_wake)
		return;
	ring(rs);
	(void)eventfd_write(rs->fd, 1);
}

void rs_get_up(struct rs *rs, uint32_t heard)
{
	eventfd_t n;

	rs->wait.sleepers--;
	if (heard == rs->wait.rings || --rs->wait.to_wake)
		return;
	if (rs->wait.ring_again && rs->wait.sleepers)
		ring(rs);
	else
		(void)eventfd_read(rs->fd, &n);
}
