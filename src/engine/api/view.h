/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
#ifndef HD_ENGINE_API_VIEW_H
#define HD_ENGINE_API_VIEW_H

#include "engine/api/types.h"

/*
 * What a node of another process is doing, and what it waits for, read out of its memory while it
 * runs or hangs: nothing of it is stopped or asked, and its own way is not longer for it. Each
 * number is of some moment, and two numbers are perhaps of two.
 *
 * hd_view_layout: what a node says of the build that it is of: it can be read by a
 * program that says the same.
 * hd_view_node: calls `ep` for each endpoint and `peer` for each peer of the node whose page says
 * `node`. The memory is taken for hostile: a node that does not fit is left where it stops fitting.
 * hd_view_progress: how often it has made progress, modulo 2^32, and whether somebody sleeps there
 * whom its peers wake.
 * 0; -EIO: the memory cannot be read. Any thread, no lock.
 */
struct hd_view_reader {
	bool (*read)(void *arg, uint64_t addr, void *to, size_t len); /* all of it, or false */
	void *arg;
};

#define HD_VIEW_TEXT 128

enum hd_view_cause {
	HD_VIEW_ELSE, /* nothing, or something that others have no part in */
	HD_VIEW_NO_RECEIVE,
	HD_VIEW_UNREAD, /* the completion queue of its receives is full */
};

struct hd_view_ep {
	uint32_t number; /* of a queue pair: hd_ep_number; else its index */
	bool is_qp;
	const char *kind, *state;
	uint32_t receives; /* posted */
	uint32_t sends;	   /* of which the program has not been told that they are over */
	uint32_t waiting;  /* messages that have come, and wait for a receive */
	uint32_t unread;   /* completions in its queues */
	enum hd_view_cause cause;
	struct hd_node_id answers;    /* whose answer waits_for speaks of; zero: of none */
	char waits_for[HD_VIEW_TEXT]; /* why the first thing that waits does; empty: nothing does */
};

struct hd_view_peer {
	struct hd_node_id id;
	const char *state;
	uint64_t credit;	      /* bytes that may be sent to it now */
	uint64_t held;		      /* bytes of it that wait here for receives */
	bool sends_wait;	      /* something is queued for it */
	char waits_for[HD_VIEW_TEXT]; /* likewise */
};

struct hd_view_calls {
	void (*ep)(void *arg, const struct hd_view_ep *ep);
	void (*peer)(void *arg, const struct hd_view_peer *peer);
	void *arg;
};

struct hd_view_progress {
	uint32_t turns;
	bool sleeps;
	uint32_t threads; /* of its program, that sleep for all of it */
};

uint64_t hd_view_layout(void);
int hd_view_progress(const struct hd_view_reader *reader, uint64_t node, struct hd_view_progress *out);
int hd_view_node(const struct hd_view_reader *reader, uint64_t node, const struct hd_view_calls *calls);

#endif
