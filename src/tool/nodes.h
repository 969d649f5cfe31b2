/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
#ifndef HEDDLE_TOOL_NODES_H
#define HEDDLE_TOOL_NODES_H

#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

/* The nodes of running programs, read from the pages of engine/node_page.h that they hold open. */

struct hd_seen_link {
	pid_t peer_pid; /* as the node sees it; 0 when the peer is on another host */
	char peer[64];	/* address and port */
	char transport[9];
	const char *direct_out, *direct_in; /* "yes", "no", or "-" where the transport has no such thing */
	char out_reason[64], in_reason[64]; /* why not; empty when they do */
};

struct hd_seen_node {
	STAILQ_ENTRY(hd_seen_node) entry;
	pid_t pid;
	char program[33], front[17];
	char id[33]; /* in hexadecimal */
	unsigned link_count;
	struct hd_seen_link *links;
};

STAILQ_HEAD(hd_seen_nodes, hd_seen_node);

/*
 * hd_nodes_scan appends every node of a process whose descriptors this user may read, in order of their
 * process ids. -errno when there is no /proc or no memory. The pages are treated as hostile: what does
 * not look like one is left out. hd_nodes_free frees what was found.
 */
int hd_nodes_scan(struct hd_seen_nodes *nodes);
void hd_nodes_free(struct hd_seen_nodes *nodes);

#endif
