/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Something has happened to an rsocket: who sleeps for it is rung for, by rs.fd (see wait.c). Sets
 * have a bell of the same kind.
 */
#include "front/verbs/rs/rs.h"

#include <sys/eventfd.h>

/* All who sleep now are to get up: the descriptor is readable from now on, if it is not already. */
static void ring(struct rs_waiting *wait)
{
	wait->to_wake = wait->sleepers;
	wait->rings++;
	wait->ring_again = false;
}

void rs_bell_changed(struct rs_waiting *wait, int fd)
{
	wait->changes++;
	wait->ring_again = wait->to_wake;
	if (!wait->sleepers || wait->to_wake)
		return;
	ring(wait);
	(void)eventfd_write(fd, 1);
}

void rs_bell_up(struct rs_waiting *wait, int fd, uint32_t heard)
{
	eventfd_t n;

	wait->sleepers--;
	if (heard == wait->rings || --wait->to_wake)
		return;
	if (wait->ring_again && wait->sleepers)
		ring(wait);
	else
		(void)eventfd_read(fd, &n);
}

void rs_changed(struct rs *rs)
{
	rs_bell_changed(&rs->wait, rs->fd);
}

void rs_get_up(struct rs *rs, uint32_t heard)
{
	rs_bell_up(&rs->wait, rs->fd, heard);
}
