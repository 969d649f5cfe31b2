/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
#ifndef HEDDLE_TOOL_HOST_H
#define HEDDLE_TOOL_HOST_H

#include <net/if.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>

/* What this host and its settings allow, as the next program that opens a node would find it. */

enum {
	HD_HOST_TRANSPORTS = 2,
	HD_HOST_ADDRESSES = 16,
};

struct hd_host_address {
	char text[INET6_ADDRSTRLEN];
	char interface[IF_NAMESIZE];
};

struct hd_host_transport {
	const char *name;
	bool used;	/* HEDDLE_TRANSPORT allows it */
	char note[200]; /* what it can do here */
};

struct hd_host {
	int error; /* errno when no node can be opened here: then there are no addresses */
	unsigned address_count;
	/* that endpoints listen on, best first */
	struct hd_host_address addresses[HD_HOST_ADDRESSES];
	struct hd_host_transport transports[HD_HOST_TRANSPORTS];
};

/*
 * hd_host_read fills *host; the settings must have been loaded. It opens a node for the time of the
 * call, so that what is shown is what programs get.
 */
void hd_host_read(struct hd_host *host);

/* hd_host_unread: why another process's memory could not be read, with this errno; what to do. */
void hd_host_unread(int error, char *text, size_t size);

#endif
