/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Idle peers: processes that connect with the server, exchange one message with it, and then sleep
 * in read(2), so that the two busy processes keep the two cores. */
#include <unistd.h>

#include "ctl.h"
#include "fi_bench.h"
#include "fi_peer.h"

/* Open first, in parallel with the others; then sleep until the server calls this one, so that only
 * one idle process at a time spins for its answer. */
static void idle_main(struct hd_bench *b, int fd)
{
	struct hd_side_opts o = b->open;

	o.buf_size = 4096;
	o.rx_depth = 2;
	o.blocking = false;
	hd_peer_main(&o, fd);
}

void hd_idle_start(struct hd_bench *b, int *fds, pid_t *pids)
{
	for (long i = 0; i < b->nidle; i++) {
		int pair[2];

		hd_ctl_pair(pair);
		pids[i] = hd_ctl_fork();
		if (!pids[i]) {
			close(pair[0]);
			idle_main(b, pair[1]);
			exit(0);
		}
		close(pair[1]);
		fds[i] = pair[0];
	}
}

void hd_idle_meet(struct hd_bench *b, const int *fds)
{
	struct hd_side *s = &b->side;

	for (long i = 0; i < b->nidle; i++)
		hd_peer_meet(s, fds[i]);
	while (!hd_side_idle(s))
		hd_side_reap(s);
}
