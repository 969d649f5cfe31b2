/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
#ifndef HEDDLE_TOOL_HOST_H
#define HEDDLE_TOOL_HOST_H

#include <stdbool.h>

/* What this host and its settings allow, as the next program that opens a node would find it. */

enum {
	HD_HOST_TRANSPORTS = 2,
};

struct hd_host_transport {
	const char *name;
	bool used;	/* HEDDLE_TRANSPORT allows it */
	char note[160]; /* what it can do here */
};

struct hd_host {
	struct hd_host_transport transports[HD_HOST_TRANSPORTS];
};

/* hd_host_read fills *host; the settings must have been loaded. Opens nothing that outlives the call. */
void hd_host_read(struct hd_host *host);

#endif
