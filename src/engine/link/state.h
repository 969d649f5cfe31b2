/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* What link keeps of a node: see core/state.h. */
#ifndef HD_ENGINE_LINK_STATE_H
#define HD_ENGINE_LINK_STATE_H

#include "base/idmap.h"
#include "base/log.h"
#include "base/ring.h"
#include "base/siphash.h"
#include "base/table.h"
#include "engine/name/name.h"

struct hd_budget;
struct hd_link_observers;
struct hd_name;
struct hd_peer;
struct hd_share;

/*
 * Ids of destinations, less 1, in two queues, so that each is given out as late as may be: dest.c.
 */
struct hd_dest_ids {
	uint32_t *next; /* by id - 1: the one behind it */
	struct hd_dest_id_queue {
		uint32_t first, last, count;
	} free, gone; /* of those that are gone, waiting messages may still come */
};

/* What has been asked of the kernel for somebody, and not been paid for by the time since. */
struct hd_asking {
	uint64_t ns, at;
};

struct hd_links {
	struct hd_names below;	      /* first */
	struct hd_idmap op_ids;	      /* struct hd_pending by its id */
	TAILQ_HEAD(, hd_link) fallen; /* links that are down and wait for close() */
	struct hd_timer settles;      /* some of these cannot be yet */
	const struct hd_link_observers *observers;
	struct hd_peer *nowhere; /* stands for the peer of an unresolved destination */
	struct hd_dest *nobody;	 /* stands for the other end of an endpoint that is not connected */
	struct hd_peer *self;
	struct hd_peer *peers; /* by their ids */
	uint64_t peer_serial;  /* that of the last */
	TAILQ_HEAD(, hd_link) links;
	int link_count;
	bool leaving;		  /* hd_peers_leave: links that end now are not counted */
	uint64_t strangers_since; /* those who called and became nobody, in this second */
	unsigned strangers;
	struct hd_log_gate strangers_log;
	unsigned transport_choice;
	struct hd_dest **dests; /* by id - 1 */
	uint32_t dest_count;
	struct hd_dest_ids ids; /* those that nobody has */
	uint64_t secret[2];	/* of the tables that others fill */
	struct hd_name *names;	/* by their keys */
	/*
	 * granted to all peers together, held by messages of those that are gone, and of what
	 * others have us keep beside
	 */
	uint32_t window_units;
	uint32_t window_max, window_peer_max;
	struct hd_of_peer_list *keyed; /* of all peers: of_peer.c */
	struct hd_budget *budgets;     /* by whose they are */
	uint32_t others_units;	       /* of window_units: in budgets that are not ours */
	uint32_t others_files;	       /* descriptors of the links of those peers */
	/* the most that a budget which is gone has left so: the next begins with it */
	struct hd_asking asked;
	TAILQ_HEAD(, hd_share) gone;
};

/* hd_links: of this node. */
static inline struct hd_links *hd_links(const struct hd_node *node)
{
	return (struct hd_links *)node;
}

/* hd_links_hash: where a key is in a table that others fill. */
static inline unsigned hd_links_hash(const struct hd_node *node, const void *key, size_t len)
{
	return (unsigned)hd_siphash(hd_links(node)->secret, key, len);
}

#endif
