/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * The life of a link: it is made, lives, ends by the other side's doing or by ours, and is freed.
 */
#include "transport/shm/copy.h"

#include "base/aligned.h"
#include "base/config.h"

#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

struct hd_shm_link *hd_shm_link_make(struct hd_shm_port *port)
{
	struct hd_shm_link *l;

	if (hd_shm_poll_reserve(port) < 0)
		return NULL;
	l = hd_aligned_alloc(_Alignof(struct hd_shm_link), sizeof(*l));
	if (!l)
		return NULL;
	memset(l, 0, sizeof(*l));
	l->base.port = &port->base;
	l->peer.poke_forces = hd_shm_poke_forces();
	l->sock.fd = l->peer.pidfd.fd = l->peer.wake = l->setup.mem_fd = l->peer.poke_fd = -1;
	TAILQ_INIT(&l->copying.gets);
	TAILQ_INIT(&l->copying.row);
	l->portion = HD_SHM_PORTION;
	TAILQ_INIT(&l->copying.helps);
	hd_idmap_init(&l->copying.offers);
	LIST_INSERT_HEAD(&port->all, l, entry);
	port->links++;
	return l;
}

static const _Atomic uint32_t awake; /* nobody to be woken */

void hd_shm_link_ready(struct hd_shm_link *l)
{
	int in = !l->side;

	l->own = &l->mem->side[l->side];
	l->other = &l->mem->side[in];
	l->tx = (struct hd_shm_tx){
		.slot = l->mem->slot[l->side],
		.bulk = l->mem->bulk[l->side],
		.reader = l->other,
		.limit = HD_SHM_SLOTS,
	};
	l->rx = (struct hd_shm_rx){
		.slot = l->mem->slot[in],
		.bulk = l->mem->bulk[in],
		.own = l->own,
	};
	l->accept = l->mem->accept[l->side];
	l->accepted = l->mem->accept[in];
	l->copying.ours = l->mem->copy[l->side];
	l->copying.theirs = l->mem->copy[in];
	l->copying.offered = l->mem->offer[l->side];
	l->copying.offers_there = l->mem->offer[in];
	l->peer_sleep = l->peer.page ? &l->peer.page->sleep_seq : &awake;
}

void hd_shm_link_live(struct hd_shm_link *l)
{
	uint64_t eager = hd_config_size(HD_SET_EAGER_SHM);

	l->state = HD_SHM_LIVE;
	l->peer_sleep = &l->peer.page->sleep_seq;
	if (l->fenced)
		l->base.ops = &hd_shm_port_of(l)->link_ops[1];
	l->base.is_local = true;
	l->base.page = l->peer.page;
	l->base.send_max = HD_FRAME_MAX;
	l->base.eager_max = eager < HD_FRAME_MAX ? (uint32_t)eager : HD_FRAME_MAX;
	hd_shm_may_look(l);
	hd_shm_poll_add(l);
	hd_shm_link_show(l); /* first: the log names its process by what is shown */
	if (l->side == 0)
		hd_link_up(&l->base);
	else
		hd_link_accepted(&l->base, NULL);
}

/* ---- the two descriptors that tell the end ---- */

int hd_shm_watch_begin(struct hd_node *node, struct hd_watch *watch, int fd,
		       void (*fn)(struct hd_watch *, uint32_t))
{
	int err;

	*watch = (struct hd_watch){ .fd = fd, .events = EPOLLIN, .fn = fn };
	err = hd_watch_add(node, watch);
	if (err)
		watch->fd = -1;
	return err;
}

void hd_shm_watch_end(struct hd_node *node, struct hd_watch *watch)
{
	if (watch->fd >= 0 && watch->events)
		hd_watch_remove(node, watch);
	watch->events = 0;
}

/*
 * shutdown() reaches the other side even where a forked child of ours keeps the descriptor. The
 * pidfd still has its use.
 */
void hd_shm_hang_up(struct hd_shm_link *l)
{
	struct hd_node *node = l->base.port->node;

	hd_shm_watch_end(node, &l->peer.pidfd);
	if (l->sock.fd < 0)
		return;
	shutdown(l->sock.fd, SHUT_RDWR);
	hd_shm_watch_end(node, &l->sock);
	close(l->sock.fd);
	l->sock.fd = -1;
}

/* ---- the end ---- */

void hd_shm_link_end(struct hd_shm_link *l, int err, const char *why)
{
	if (l->base.down || l->state == HD_SHM_ENDING)
		return;
	l->state = HD_SHM_ENDING;
	hd_shm_may_look(l);
	l->ending.err = err;
	l->ending.why = why;
	l->ending.drain = 2 * HD_SHM_SLOTS;
	l->attention = true;
	hd_shm_hang_up(l);
	hd_shm_heat(l);
	/* no descriptor tells whoever sleeps of what is left to deliver */
	hd_node_stir(l->base.node);
}

void hd_shm_link_fail(struct hd_shm_link *l, int err, const char *why)
{
	hd_shm_copy_stop(l);
	hd_shm_hang_up(l);
	hd_link_down(&l->base, err, why);
}

void hd_shm_link_met(struct hd_shm_link *l)
{
	if (l->unmet)
		TAILQ_REMOVE(&hd_shm_port_of(l)->unmet, l, unmet_entry);
	l->unmet = false;
}

void hd_shm_link_missed(struct hd_shm_link *l)
{
	const struct hd_node_id id = l->setup.join_id;
	struct hd_node *node = l->base.port->node;

	hd_shm_link_free(l);
	hd_link_missed(node, &id);
}

void hd_shm_link_free(struct hd_shm_link *l)
{
	struct hd_shm_port *port = hd_shm_port_of(l);

	hd_shm_link_met(l);
	hd_shm_poll_drop(l);
	hd_timer_stop(port->base.node, &l->setup.timer);
	hd_shm_hang_up(l);
	hd_shm_fd_close(l->peer.pidfd.fd);
	hd_shm_fd_close(l->peer.wake);
	hd_shm_fd_close(l->setup.mem_fd);
	hd_shm_fd_close(l->peer.poke_fd);
	if (l->mem)
		hd_shm_mem_unmap(l->mem);
	if (l->peer.page)
		hd_shm_page_unmap(l->peer.page);
	free(l->copying.help);
	hd_idmap_fini(&l->copying.offers);
	LIST_REMOVE(l, entry);
	free(l);
	port->links--;
}
