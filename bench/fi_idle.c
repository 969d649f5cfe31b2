/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Idle peers: processes that connect with the server, exchange one message with it, and then sleep in
 * read(2), so that the two busy processes keep the two cores. */
#include <unistd.h>

#include "ctl.h"
#include "fi_bench.h"

#define HELLO_SIZE 8

/* Open first, in parallel with the others; then sleep until the server calls this one, so that only one idle
 * process at a time spins for its answer. */
static void idle_main(struct hd_bench *b, int fd)
{
	struct hd_side_opts o = b->open;
	struct hd_side_name own, server;
	struct hd_side s;
	char done = 0;

	o.buf_size = 4096;
	o.rx_depth = 2;
	o.blocking = false;
	hd_side_open(&s, &o);
	hd_side_name(&s, &own);
	hd_ctl_put(fd, &own, sizeof(own));
	hd_ctl_get(fd, &server, sizeof(server), NULL, NULL);
	s.peer = hd_side_insert(&s, &server);
	hd_side_recv(&s, HELLO_SIZE, HD_TAG_HELLO, 0);
	hd_side_send(&s, s.peer, HELLO_SIZE, HD_TAG_HELLO);
	while (s.rx_done < 1 || !hd_side_idle(&s))
		hd_side_reap(&s);
	hd_ctl_put(fd, &done, 1);
	hd_ctl_get(fd, &done, 1, NULL, NULL);
	hd_side_close(&s);
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
	struct hd_side_name own, name;
	uint64_t target = s->rx_done;
	fi_addr_t addr;
	char done;

	hd_side_name(s, &own);
	for (long i = 0; i < b->nidle; i++) {
		hd_ctl_get(fds[i], &name, sizeof(name), NULL, NULL);
		addr = hd_side_insert(s, &name);
		hd_side_recv(s, HELLO_SIZE, HD_TAG_HELLO, 0);
		hd_ctl_put(fds[i], &own, sizeof(own));
		target++;
		while (s->rx_done < target)
			hd_side_reap(s);
		hd_side_send(s, addr, HELLO_SIZE, HD_TAG_HELLO);
		hd_ctl_get(fds[i], &done, 1, hd_side_turn, s);
	}
	while (!hd_side_idle(s))
		hd_side_reap(s);
}
