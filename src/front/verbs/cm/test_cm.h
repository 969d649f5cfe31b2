/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* What the tests of rdma_cm share: a listener and those who call it, in one process. */
#ifndef HD_TEST_CM_H
#define HD_TEST_CM_H

#include "base/lock.h"
#include "front/verbs/cm/cm.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define PATIENCE_MS 20000

struct rig {
	struct rdma_event_channel *ca, *cb; /* caller's, called's */
	struct rdma_cm_id *a, *listener;
	struct sockaddr_storage at;
	enum rdma_port_space ps;
};

/*
 * cm_open: r->listener listens on a port of this space. cm_listen_here: at the address that
 * r->at says; cm_listen_at: at this one. cm_name: r->at, where the listener is; cm_address: it
 * is this one, with that port.
 *
 * cm_caller: an id that has resolved its address and route. cm_call: r->a calls with this private
 * data. cm_asked: the called end's id;
 * cm_asked_anew: somebody calls first. cm_answer: it accepts. cm_join: a connection, all
 * of that; the called end.
 *
 * cm_next: the next event of a channel, which has this type, and the descriptor tells of it.
 * cm_expect: it is of this id, and acknowledged.
 * cm_quiet: none comes.
 */
struct rdma_cm_event *cm_next(struct rdma_event_channel *ch, enum rdma_cm_event_type type);
void cm_expect(struct rdma_event_channel *ch, enum rdma_cm_event_type type, struct rdma_cm_id *id,
	       int status);
bool cm_quiet(struct rdma_event_channel *ch, int ms);
struct sockaddr *cm_name(struct rig *r);
void cm_address(struct rig *r, const char *text);
void cm_listen_here(struct rig *r);
void cm_listen_at(struct rig *r, const char *text);
void cm_open(struct rig *r, enum rdma_port_space ps);
struct rdma_cm_id *cm_caller(struct rig *r);
void cm_close(struct rig *r);
void cm_call(struct rig *r, const char *data);
struct rdma_cm_id *cm_asked(struct rig *r);
struct rdma_cm_id *cm_asked_anew(struct rig *r, const char *data);
void cm_answer(struct rdma_cm_id *id, const char *data);
struct rdma_cm_id *cm_join(struct rig *r);

#endif
