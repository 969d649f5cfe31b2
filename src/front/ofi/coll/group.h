/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Groups that an endpoint has joined, and what is under way in one. Everything here
 * is under the node's lock.
 */
#ifndef HEDDLE_FRONT_OFI_COLL_GROUP_H
#define HEDDLE_FRONT_OFI_COLL_GROUP_H

#include "front/ofi/coll/coll.h"
#include "front/ofi/coll/plan.h"

#define HD_FI_GROUP_BIT (UINT64_C(1) << 41) /* of its fi_addr_t */
#define HD_FI_GROUPS 1024		    /* of one endpoint */
/* of one group: a greeting has 21 bits for each of three numbers */
#define HD_FI_MEMBERS_MAX (1u << 20)

/*
 * Slots of the endpoint's name, beyond those of receive contexts: where those who join are greeted,
 * and the first of a group.
 */
enum hd_fi_coll_slot {
	HD_FI_SLOT_GREETING = HD_FI_MAX_CTX,
	HD_FI_SLOT_GROUPS,
};

/* What an endpoint with FI_COLLECTIVE has. */
struct hd_fi_coll {
	struct hd_ep *greeting;
	struct hd_fi_group *group[HD_FI_GROUPS]; /* by slot; NULL: none */
	/* to be tried first: a slot rests before it is another group's */
	uint32_t next;
	uint32_t under_way;		 /* operations */
	LIST_HEAD(, hd_fi_hello) hellos; /* join.c */
};

/* The way to another member, made when something is first said to it. */
struct hd_fi_tie {
	struct hd_follow follow;
	struct hd_fi_group *group;
	uint32_t rank;
	/* its endpoint in the group is closed: nothing more comes from there */
	bool gone;
	struct hd_dest *to;   /* that endpoint */
	struct hd_dest *from; /* whom messages of the group come from */
};

struct hd_fi_member {
	fi_addr_t addr;
	union hd_fi_addr name; /* copied: it may be removed from the AV */
	uint64_t key;	       /* authorization key; 0: none */
	uint32_t slot;	       /* of its endpoint in the group; 0: not known */
	struct hd_fi_tie *tie; /* NULL: none yet */
};

struct hd_fi_group {
	struct fid_mc fid;
	struct hd_fi_ep *ep;   /* who has joined */
	struct hd_ep *own;     /* NULL: it has failed */
	enum hd_status status; /* why, or is about to */
	bool joined;
	uint32_t slot, rank, count;
	uint32_t unmet;	     /* neighbours whose greeting has not come */
	uint32_t *slots;     /* of all, while they are exchanged */
	uint64_t operations; /* that have begun: the tag of the next one */
	struct hd_deferred end;
	TAILQ_HEAD(, hd_fi_run) runs;
	struct hd_fi_object object;
	struct hd_fi_member member[];
};

/* One message of an operation. */
struct hd_fi_flight {
	struct hd_work work;
	struct hd_fi_run *run;
	uint32_t rank;
	bool receives, under_way;
	size_t len;
};

/* An operation under way: run.c. */
struct hd_fi_run {
	TAILQ_ENTRY(hd_fi_run) entry;
	struct hd_fi_group *group;
	struct hd_deferred go;
	struct hd_fi_plan plan;
	size_t at;	    /* the next step */
	size_t outstanding; /* flights */
	bool waits;
	uint64_t tag;
	char *space[HD_FI_SPACES];
	uint32_t op, type; /* enum hd_atomic_op, enum hd_atomic_type, of reductions */
	size_t size;	   /* of an element */
	void *context;	   /* the program's */
	bool reports;
	/*
	 * it is over; it is in no list any more and freed afterwards. May post events and
	 * completions, and begin another run
	 */
	void (*ended)(struct hd_fi_run *run, enum hd_status status);
	struct hd_fi_flight flight[]; /* one for each step */
};

/* hd_fi_group_at: the group that this address means to the endpoint, or NULL. */
struct hd_fi_group *hd_fi_group_at(const struct hd_fi_ep *ep, fi_addr_t addr);

/*
 * hd_fi_group_make: a group of these members, all NULL but their addresses; its endpoint
 * is open. 0 or the errno of fi_join. hd_fi_group_free: what is under way has been
 * cancelled (hd_fi_group_end).
 */
int hd_fi_group_make(struct hd_fi_ep *ep, const fi_addr_t *addrs, size_t count, struct hd_fi_group **out);
void hd_fi_group_free(struct hd_fi_group *group);

/* hd_fi_group_tie: the way to a member whose slot is known; NULL: no memory. */
struct hd_fi_tie *hd_fi_group_tie(struct hd_fi_group *group, uint32_t rank);

/*
 * hd_fi_group_fail: it cannot go on, for this reason; also out of the middle of the engine.
 * hd_fi_group_end: at once: its endpoint closes, and all that is under way ends so.
 * hd_fi_group_hold: hd_fi_group_end follows, and nobody else ends it while the lock is given away
 * before that.
 * hd_fi_group_broken: has it failed, or is it about to?
 */
void hd_fi_group_fail(struct hd_fi_group *group, enum hd_status status);
void hd_fi_group_hold(struct hd_fi_group *group);
void hd_fi_group_end(struct hd_fi_group *group, enum hd_status status);
static inline bool hd_fi_group_broken(const struct hd_fi_group *group)
{
	return !group->own || group->status;
}

/* hd_fi_run_end takes an operation out of its group, tells of its end, and frees it. */
void hd_fi_run_end(struct hd_fi_run *run, enum hd_status status);

/*
 * hd_fi_coll_dest: a member's endpoint at this slot of its name, 0: the one that the program
 * knows. 0 or a negative errno.
 */
int hd_fi_coll_dest(const struct hd_fi_group *group, uint32_t rank, uint32_t slot, struct hd_dest **out);

/*
 * hd_fi_coll_open: an endpoint at this slot of the name of another. 0 or a negative errno.
 * hd_fi_coll_send_flags: of all that is sent from there.
 */
int hd_fi_coll_open(const struct hd_fi_ep *ep, uint32_t slot, struct hd_evq *evq, void *owner,
		    struct hd_ep **out);
static inline uint32_t hd_fi_coll_send_flags(const struct hd_fi_calls *call)
{
	return HD_SEND_TAGGED | HD_SEND_WORK | (call->gate & HD_SEND_KEYED);
}

#endif
