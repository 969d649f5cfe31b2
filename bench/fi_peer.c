/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Peers that are there and do nothing. */
#include "fi_peer.h"

#include "ctl.h"

#define HELLO_SIZE 8

void hd_peer_main(const struct hd_side_opts *o, int fd)
{
	struct hd_side_name own, server;
	struct hd_side s;
	char done = 0;

	hd_side_open(&s, o);
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

void hd_peer_meet(struct hd_side *s, int fd)
{
	struct hd_side_name own, name;
	uint64_t target = s->rx_done + 1;
	fi_addr_t addr;
	char done;

	hd_side_name(s, &own);
	hd_ctl_get(fd, &name, sizeof(name), hd_side_turn, s);
	addr = hd_side_insert(s, &name);
	hd_side_recv(s, HELLO_SIZE, HD_TAG_HELLO, 0);
	hd_ctl_put(fd, &own, sizeof(own));
	while (s->rx_done < target)
		hd_side_reap(s);
	hd_side_send(s, addr, HELLO_SIZE, HD_TAG_HELLO);
	hd_ctl_get(fd, &done, 1, hd_side_turn, s);
}
