/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * For tests: a node of the rig against a bare socket. The bare socket speaks properly by
 * echoing: what the rig sends tells its own number and content, so the same bytes are as
 * right in the other direction.
 */
#ifndef HD_TCP_SCENE_H
#define HD_TCP_SCENE_H

#include "transport/rig.h"
#include "transport/tcp/tcp.h"

#include <netinet/in.h>

#define HELLO_FRAME (HD_TCP_HEAD + sizeof(struct hd_hello))

struct scene {
	struct hd_node *node;
	struct hd_port *port;
	struct hd_listener listener;
	struct rig_end *end; /* the node's end of the newest connection */
	int fd;		     /* the bare socket, blocking; -1 */
};

/*
 * scene_open makes a node that listens at this address, such as "127.0.0.1".
 * scene_close fails on complaints.
 */
void scene_open(struct scene *s, const char *at);
void scene_close(struct scene *s);

/* scene_turns makes turns until cond(s) holds, with a deadline of five seconds. */
void scene_turns(struct scene *s, bool (*cond)(struct scene *s));

/*
 * scene_dial connects the bare socket, in place of the one before, and waits until
 * the node has taken it in.
 */
void scene_dial(struct scene *s);

/* scene_greet dials and receives the node's HELLO frame. */
void scene_greet(struct scene *s, uint8_t hello[HELLO_FRAME]);

/* scene_say writes to the bare socket, all of it; the node makes turns while it is full. */
void scene_say(struct scene *s, const void *buf, size_t n);

/* scene_hear reads exactly n bytes from the bare socket, with turns of the node. */
void scene_hear(struct scene *s, void *buf, size_t n);

/* scene_gone, a condition: the link of s->end is down and closed. */
bool scene_gone(struct scene *s);

/* scene_address makes an address; port in network order. scene_port takes it out. */
struct sockaddr_storage scene_address(const char *text, in_port_t port);
in_port_t scene_port(const struct sockaddr_storage *addr);

/* scene_socket makes a bare TCP socket for this family, closed on exec. */
int scene_socket(int family);

#endif
