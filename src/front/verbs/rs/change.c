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
	rs->to_wake = rs->sleepers;
	rs->rings++;
	rs->ring_again = false;
}

void rs_changed(struct rs *rs)
{
	rs->changes++;
	rs->ring_again = rs->to_wake;
	if (!rs->sleepers || rs->to_wake)
		return;
	ring(rs);
	(void)eventfd_write(rs->fd, 1);
}

void rs_get_up(struct rs *rs, uint32_t heard)
{
	eventfd_t n;

	rs->sleepers--;
	if (heard == rs->rings || --rs->to_wake)
		return;
	if (rs->ring_again && rs->sleepers)
		ring(rs);
	else
		(void)eventfd_read(rs->fd, &n);
}
