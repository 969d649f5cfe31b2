/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
#ifndef HEDDLE_TOOL_NODES_H
#define HEDDLE_TOOL_NODES_H

#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

#include "engine/engine.h"

/* The nodes of running programs, read from the pages of engine/node_page.h that they hold open. */

struct hd_seen_link {
	pid_t peer_pid; /* as the node sees it; 0 when the peer is on another host */
	char peer[64];	/* address and port */
	char transport[9];
	/* "yes", "no", or "-" where the transport has no such thing */
	const char *direct_out, *direct_in;
	char out_reason[64], in_reason[64]; /* why not; empty when they do */
};

/* What an endpoint or a peer of the node is doing: of engine/api/view.h. */
struct hd_seen_ep {
	char number[16];
	const char *kind, *state;
	unsigned receives, sends, waiting, unread;
	enum hd_view_cause cause;
	char waits_for[HD_VIEW_TEXT]; /* empty: nothing waits */
	char answers[33];	      /* the node whose answer that is; empty: another thing */
};

struct hd_seen_peer {
	char id[33];
	const char *state;
	unsigned long long credit, held;
	char waits_for[HD_VIEW_TEXT];
};

enum hd_seen_progress {
	HD_PROGRESS_UNKNOWN,
	HD_PROGRESS_MADE,
	HD_PROGRESS_NONE
};

struct hd_seen_node {
	STAILQ_ENTRY(hd_seen_node) entry;
	pid_t pid;
	bool stopped; /* by a signal or a debugger */
	enum hd_seen_progress progress;
	uint64_t at;	  /* where the node is in its process; 0: it cannot be read */
	uint32_t turns;	  /* of progress that it had made when it was seen */
	unsigned threads; /* that slept for all of it */
	char program[33], front[17];
	char id[33]; /* in hexadecimal */
	unsigned link_count;
	struct hd_seen_link *links;
	char unseen[200]; /* why there is nothing of what follows; empty: there is */
	unsigned ep_count, peer_count;
	struct hd_seen_ep *eps;
	struct hd_seen_peer *peers;
};

STAILQ_HEAD(hd_seen_nodes, hd_seen_node);

/*
 * hd_nodes_scan appends every node of a process whose descriptors this user may read, in order of
 * their process ids. -errno when there is no /proc or no memory. The pages are treated as hostile:
 * what does not look like one is left out. hd_nodes_free frees what was found.
 */
int hd_nodes_scan(struct hd_seen_nodes *nodes);
void hd_nodes_free(struct hd_seen_nodes *nodes);

struct hd_node_page;
/*
 * hd_inside_read (inside.c): fills in what the endpoints and peers of a node do, whose page has
 * been read; from the memory of its process, which goes on as if nobody looked. Where that cannot
 * be, `unseen` says why. hd_inside_free frees it.
 */
void hd_inside_read(struct hd_seen_node *node, const struct hd_node_page *page);
void hd_inside_free(struct hd_seen_node *node);

/*
 * hd_progress_watch (progress.c): finds out which of these nodes make progress, of those where
 * something waits, or for which something does: a program that has called nothing for half a second
 * makes none. So it may take so long.
 */
void hd_progress_watch(struct hd_seen_nodes *nodes);
/* hd_inside_progress (inside.c): a node that can be read. false: it cannot be any more. */
bool hd_inside_progress(struct hd_seen_node *node, struct hd_view_progress *out);
/* hd_node_id_text: an id in hexadecimal. hd_node_by_id: the node that has this one, or NULL. */
void hd_node_id_text(const struct hd_node_id *id, char *text, size_t size);
struct hd_seen_node *hd_node_by_id(const struct hd_seen_nodes *nodes, const char *id);

#endif
