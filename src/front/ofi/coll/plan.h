/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Schedules: what one member of a group does for an operation. They know neither addresses nor
 * messages, so that a test carries out those of all members in one loop.
 *
 * Members wait only for those whose rank differs from theirs by a power of two (in a circle), with
 * whom each has talked when it joined, or for one to whom they have just sent: of these, a member
 * learns that they are gone.
 */
#ifndef HEDDLE_FRONT_OFI_COLL_PLAN_H
#define HEDDLE_FRONT_OFI_COLL_PLAN_H

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum hd_fi_step_kind {
	HD_FI_STEP_SEND,   /* from, len, to the member `rank`; goes on beside what follows */
	HD_FI_STEP_RECV,   /* to, len, from it; likewise */
	HD_FI_STEP_WAIT,   /* until all that was begun is over */
	HD_FI_STEP_COPY,   /* len bytes from, to: not of one place */
	HD_FI_STEP_REDUCE, /* the same, into what is there */
};

enum hd_fi_space {
	HD_FI_BUF,    /* the program's operand; of a broadcast also its result */
	HD_FI_RESULT, /* the program's */
	HD_FI_TMP,    /* memory of our own, plan.tmp bytes */
	HD_FI_SPACES
};

struct hd_fi_place {
	enum hd_fi_space space;
	size_t at; /* bytes */
};

struct hd_fi_step {
	enum hd_fi_step_kind kind;
	uint32_t rank;
	size_t len;
	struct hd_fi_place from, to;
};

struct hd_fi_plan {
	struct hd_fi_step *step;
	size_t count, room;
	size_t tmp;
	/*
	 * sends are over when they have met their receive: nobody runs ahead of
	 * those who take no part yet
	 */
	bool acked;
	bool failed; /* no memory */
};

/*
 * What is to be done: count elements of size bytes, of all of it, or where the
 * operation has slices, of one.
 */
struct hd_fi_plan_args {
	enum fi_collective_op coll;
	uint32_t members, rank, root;
	size_t count, size;
};

/*
 * hd_fi_plan_make: 0 or -FI_ENOMEM. hd_fi_plan_make_join: what those do who have greeted
 * each other (coll is not looked at): they come to know that their neighbours are there,
 * and gather what each has.
 */
int hd_fi_plan_make(struct hd_fi_plan *plan, const struct hd_fi_plan_args *args);
int hd_fi_plan_make_join(struct hd_fi_plan *plan, const struct hd_fi_plan_args *args);
void hd_fi_plan_free(struct hd_fi_plan *plan);

#endif
