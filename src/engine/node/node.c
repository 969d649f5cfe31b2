/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Nodes: what a front opens. Also what a fork does to us. */
#include "base/clock.h"
#include "base/config.h"
#include "base/log.h"
#include "engine/cm/conn.h"
#include "engine/core/core.h"
#include "engine/link/peer.h"
#include "engine/name/key.h"
#include "engine/name/name.h"
#include "engine/node/ep_classes.h"
#include "engine/node/observers.h"
#include "engine/node/transports.h"
#include "engine/node/turn.h"
#include "engine/rdm/message.h"
#include "engine/rdm/seat.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- all of them: fork, exit --------------------------------------------------------------------------------------------------------------------------- */

static LIST_HEAD(, hd_node) nodes = LIST_HEAD_INITIALIZER(nodes);
static pthread_mutex_t nodes_lock = PTHREAD_MUTEX_INITIALIZER; /* protects the list; taken after no other */

static void node_fork_child(void)
{
	struct hd_node *node;

	LIST_FOREACH(node, &nodes, all) {
		struct hd_peer *peer, *next;

		node->dead = true;
		node->thread_runs = false;
		node->active_count = 0;
		node->slow_due = UINT64_MAX;
		LIST_INIT(&node->publishing);
		TAILQ_INIT(&node->pushing);
		TAILQ_INIT(&node->fallen);
		TAILQ_INIT(&node->due);
		TAILQ_INIT(&node->chore_list);
		TAILQ_INIT(&node->awaiting);
		node->awaiting_count = 0;
		node->work = 0;
		hd_links_forked(node);
		HASH_ITER(hh, node->peers, peer, next)
			hd_peer_stall(peer, HD_STALL_DOWN);
		for (uint32_t i = 0; i < node->ep_count;
		     i++) /* a full queue closes the short way of receives */
			if (node->eps[i])
				node->eps[i]->rx_cq->r.overflowed = true;
		if (node->locked) /* whoever held it is not here */
			hd_biased_init(&node->lock);
		for (int i = 0; i < node->port_count; i++)
			if (node->ports[i]->transport->forked)
				node->ports[i]->transport->forked(node->ports[i]);
		hd_groups_forked(node);
		hd_listeners_forked(node);
		if (node->attr.on_fork)
			node->attr.on_fork(node->attr.arg);
	}
	pthread_mutex_init(&nodes_lock, NULL);
}

static void node_fork_prepare(void)
{
	pthread_mutex_lock(&nodes_lock);
}

static void fork_parent(void)
{
	pthread_mutex_unlock(&nodes_lock);
}

static void node_fork_watch(void)
{
	pthread_atfork(node_fork_prepare, fork_parent, node_fork_child);
}

#define LAST_WORDS_MS 1000
#define LAST_WORDS_LOOK_US 500
#define IN_USE_LOOKS \
	100 /* whoever has the lock may be a call that a signal's handler, which exits, has interrupted */

static bool last_words_wait(struct hd_node *node, bool only_look)
{
	bool wait = false;

	for (int i = 0; i < node->port_count; i++)
		if (node->ports[i]->transport->last)
			wait |= node->ports[i]->transport->last(node->ports[i], only_look);
	return wait;
}

/* Somebody else is in the middle of it; where there is no lock, he has polled since, and so goes on. */
static bool node_is_in_use(struct hd_node *node, uint64_t epoch)
{
	return node->locked ? hd_biased_is_taken(&node->lock) : hd_node_epoch(node) != epoch;
}

/* What has been said, and its sends reported to be good for, goes into the kernel's hands. */
static void last_words_say(struct hd_node *node)
{
	const uint64_t due = hd_deadline_ns(LAST_WORDS_MS), epoch = hd_node_epoch(node);
	bool wait = node->locked || last_words_wait(node, true);
	int in_use = 0;

	while (wait && hd_now_ns() < due && in_use < IN_USE_LOOKS) {
		if (node_is_in_use(node, epoch)) {
			in_use++;
		} else {
			hd_node_lock(node);
			wait = last_words_wait(node, false);
			hd_node_unlock(node);
		}
		if (wait)
			usleep(LAST_WORDS_LOOK_US);
	}
}

/*
 * What a program leaves open ends with the process; but a thread of ours must not outlive what it needs: destructors of libraries come next.
 * What is still to be written out is. A list that is being changed is left alone.
 */
static void __attribute__((destructor)) process_ends(void)
{
	struct hd_node *node;

	if (pthread_mutex_trylock(&nodes_lock))
		return;
	LIST_FOREACH(node, &nodes, all) {
		hd_auto_leave(node);
		if (!node->dead && !node->closing)
			last_words_say(node);
	}
	pthread_mutex_unlock(&nodes_lock);
}

/* ---- opening ---------------------------------------------------------------------------------------------------------------------------- */

static uint32_t units_of(uint64_t bytes)
{
	uint64_t units = bytes / HD_UNIT;

	return units > INT32_MAX ? INT32_MAX : (uint32_t)units;
}

static int ports_open(struct hd_node *node)
{
	for (int i = 0; hd_transports[i] && node->port_count < HD_MAX_PORTS; i++) {
		int rc = hd_transports[i]->open(node, &node->ports[node->port_count]);

		if (rc < 0 && hd_transports[i]->addressed) {
			hd_error("transport %s cannot be opened: %s", hd_transports[i]->name, strerror(-rc));
			return rc;
		}
		if (rc < 0)
			hd_warn("transport %s cannot be opened: %s; going without it", hd_transports[i]->name,
				strerror(-rc));
		else
			node->port_count++;
	}
	return 0;
}

static void lists_init(struct hd_node *node)
{
	LIST_INIT(&node->publishing);
	TAILQ_INIT(&node->pushing);
	TAILQ_INIT(&node->fallen);
	TAILQ_INIT(&node->due);
	TAILQ_INIT(&node->chore_list);
	TAILQ_INIT(&node->awaiting);
	TAILQ_INIT(&node->links);
	LIST_INIT(&node->timers);
	LIST_INIT(&node->rq_list);
	LIST_INIT(&node->limited);
	LIST_INIT(&node->marked);
	LIST_INIT(&node->places);
	LIST_INIT(&node->roomy);
	LIST_INIT(&node->services);
	hd_pool_init(&node->ops, sizeof(struct hd_op), 64);
	hd_pool_init(&node->recvs, sizeof(struct hd_recv), 256);
	hd_pool_init(&node->iovs, (sizeof(struct iovec) + sizeof(struct hd_mr *)) * HD_IOV_MAX, 64);
	hd_seats_init(node);
	hd_bytes_init(&node->bytes);
	hd_idmap_init(&node->op_ids);
	hd_biased_init(&node->lock);
	hd_auto_init(node);
}

/* Stand-ins, so that the data path tests no pointers: a peer for destinations without one, a CQ for endpoints without one. */
static int stand_ins_make(struct hd_node *node)
{
	int rc = hd_cq_open(node, &(struct hd_cq_attr){ .size = 1 }, &node->no_cq);

	if (rc)
		return rc;
	node->cqs--;
	node->no_cq->none = true;
	node->no_cq->r.head = 0;
	node->no_cq->r.tail =
		node->no_cq->r.mask + 1; /* full: everything goes to hd_cq_overflow, which swallows it */
	node->nowhere = calloc(1, sizeof(*node->nowhere));
	if (!node->nowhere)
		return -ENOMEM;
	node->nowhere->node = node;
	node->nowhere->state = HD_PEER_DEAD;
	hd_peer_stall(node->nowhere, HD_STALL_DOWN);
	node->nobody = calloc(1, sizeof(*node->nobody));
	node->waste = malloc(HD_WASTE);
	if (!node->nobody || !node->waste)
		return -ENOMEM;
	hd_dest_stand_in(node->nobody, node);
	node->mr_leaves = hd_mr_move;
	node->ep_classes = hd_ep_classes;
	return 0;
}

static void node_free(struct hd_node *node)
{
	for (int i = node->port_count - 1; i >= 0 && !node->dead; i--)
		node->ports[i]->transport->close(node->ports[i]);
	hd_dests_close(node);
	hd_keys_close(node);
	if (node->no_cq) {
		node->cqs++;
		hd_cq_close(node->no_cq);
	}
	free(node->waste);
	free(node->nobody);
	free(node->nowhere);
	free(node->eps);
	hd_indices_fini(&node->ep_indices);
	free(node->ep_gens);
	hd_idmap_fini(&node->op_ids);
	hd_bytes_fini(&node->bytes);
	hd_pool_fini(&node->seats);
	hd_pool_fini(&node->iovs);
	hd_pool_fini(&node->recvs);
	hd_pool_fini(&node->ops);
	hd_progress_fini(node);
	hd_page_close(node);
	hd_addr_fini(node);
	if (!node->dead) /* there its sleeper is the parent's */
		pthread_cond_destroy(&node->thread_wake);
	pthread_mutex_destroy(&node->thread_lock);
	hd_biased_fini(&node->lock);
	free(node);
}

static int node_fill(struct hd_node *node)
{
	int rc = hd_page_open(node);

	node->transport_choice = hd_config_choice(HD_SET_TRANSPORT);
	node->window_max = units_of(hd_config_size(HD_SET_UNEXPECTED_MAX));
	node->window_peer_max = units_of(hd_config_size(HD_SET_UNEXPECTED_PEER));
	if (node->window_peer_max > node->window_max)
		node->window_peer_max = node->window_max;
	if (!rc)
		rc = hd_progress_init(node);
	if (!rc)
		rc = hd_addr_init(node);
	if (!rc)
		rc = stand_ins_make(node);
	if (!rc)
		rc = ports_open(node);
	return rc;
}

int hd_node_open(const struct hd_node_attr *attr, struct hd_node **out)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct hd_node *node = calloc(1, sizeof(*node));
	int rc;

	if (!node)
		return -ENOMEM;
	hd_config_load();
	node->attr = *attr;
	node->observers = &hd_link_observers;
	node->caster = hd_caster;
	node->turn_ops = &hd_turn_ops;
	node->page_fd = node->epoll_fd = node->wake_fd = node->timer_watch.fd = -1;
	lists_init(node);
	rc = node_fill(node); /* nobody else knows the node: no lock is taken */
	node->locked = attr->locked || attr->auto_progress || attr->serve;
	if (!rc && attr->auto_progress)
		rc = hd_auto_start(node);
	if (rc) {
		if (rc == -EMFILE)
			HD_LOG_EVERY_MS(
				1000, HD_LOG_ERROR,
				"no descriptors left to open a node: raise the limit with `ulimit -n`");
		node_free(node);
		return rc;
	}
	pthread_once(&once, node_fork_watch);
	pthread_mutex_lock(&nodes_lock);
	LIST_INSERT_HEAD(&nodes, node, all);
	pthread_mutex_unlock(&nodes_lock);
	*out = node;
	return 0;
}

int hd_node_close(struct hd_node *node)
{
	struct hd_peer *peer, *next;
	struct hd_link *link;

	hd_node_lock(node);
	if (node->ep_users || node->rqs || node->cqs || node->cntrs || node->mrs) {
		hd_node_unlock(node);
		return -EBUSY;
	}
	node->closing = true;
	hd_node_unlock(node);
	while (atomic_load(&node->pins)) /* for a turn of progress, at most */
		sched_yield();
	hd_auto_stop(node);
	pthread_mutex_lock(&nodes_lock);
	LIST_REMOVE(node, all);
	pthread_mutex_unlock(&nodes_lock);
	hd_node_lock(node);
	TAILQ_FOREACH(link, &node->links, entry)
		hd_link_down(link, -ESHUTDOWN, NULL);
	hd_places_close(node);
	hd_links_reap(node);
	HASH_ITER(hh, node->peers, peer, next)
		hd_peer_drop(peer, -ESHUTDOWN);
	hd_crosswork_run(node);
	hd_node_unlock(node);
	node->locked = false;
	node_free(node);
	return 0;
}
