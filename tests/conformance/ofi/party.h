/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Members of collective groups: each process has some of them, so that there
 * may be more than processes.
 */
#ifndef PARTY_H
#define PARTY_H

#include "ct.h"

#include <rdma/fi_collective.h>

#define PARTY_MAX 8 /* members */
#define PARTY_GROUPS 8

struct seat { /* a member that is in this process */
	struct fid_ep *ep;
	struct fid_mc *mc[PARTY_GROUPS];
	int member;
};

struct party {
	struct ct *ct;
	struct ct_dom dom;
	/* its AV and CQs are those of all seats; its endpoint is the first of them */
	struct ct_ep e;
	struct fid_eq *eq;
	struct fid_cntr *cntr; /* of what is written, where it is asked for */
	fi_addr_t key;	       /* of its AV, where want.av_keys is set */
	int members, seats;
	struct seat seat[PARTY_MAX];
	fi_addr_t addr[PARTY_MAX]; /* by member; their order in the AV is another in each process */
	struct fid_av_set *set[PARTY_GROUPS];
};

/*
 * party_open: so many members, dealt to the processes like cards. Without caps they have messages
 * beside FI_COLLECTIVE. party_close closes all; groups have been left. party_shut: without meeting
 * the others, of whom one is dead.
 */
void party_open(struct ct *ct, struct party *p, int members, const struct ct_want *want);
void party_close(struct party *p);
void party_shut(struct party *p);

/*
 * party_join: the members of this list, those of this process, join group `g`; -1 ends the
 * list, NULL: all. party_leave.
 */
void party_join(struct party *p, int g, const int *list);
void party_leave(struct party *p, int g);
/* The two halves of party_join: the calls, and waiting for as many events. */
void party_call(struct party *p, int g, const int *list);
void party_wait_joined(struct party *p, int events);
/*
 * party_event: one event of the queue, an error entry as well (*err, else 0); false: there is none.
 */
bool party_event(struct party *p, uint32_t *code, struct fi_eq_err_entry *err);

/* party_rank: of a member in a list, or -1. */
int party_rank(const struct party *p, const int *list, int member);
int party_count(const struct party *p, const int *list);

#endif
