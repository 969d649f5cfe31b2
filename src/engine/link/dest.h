/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Destinations between the engine's files. */
#ifndef HD_ENGINE_DEST_H
#define HD_ENGINE_DEST_H

#include "engine/link/state.h"
#include "engine/name/name.h"

/* A name that leads to a destination; one destination may have several. */
struct hd_name {
	struct hd_name_key key;
	struct hd_dest *dest;
	LIST_ENTRY(hd_name) entry; /* dest->names */
	UT_hash_handle hh;	   /* hd_links.names */
};

#define HD_DEST_FORMER 4

enum hd_dest_state {
	HD_DEST_IDLE,	    /* not reached yet, or no longer */
	HD_DEST_CONNECTING, /* a link is being made for it, or the peer it leads to is */
	HD_DEST_BOUND,	    /* peer, remote, gen are valid */
};

struct hd_dest {
	struct hd_peer *peer; /* hd_links.nowhere unless bound */
	uint32_t remote;      /* endpoint index there */
	uint16_t gen;
	uint32_t id;
	enum hd_dest_state state;
	/* those bound to the same endpoint, in a ring; by itself when there is no other */
	struct hd_dest *alike, *alike_before;
	struct hd_node *node;
	/* where to connect to; AF_UNSPEC for a source without a name */
	struct sockaddr_storage addr;
	uint32_t refs; /* of fronts and of operations */
	bool awaits;   /* in peer->awaiting */
	/* the peer has announced it, and it is counted in that one's budget */
	bool kept;
	int tries;
	bool tried;		   /* HD_SEND_TRY has had it called since it was bound last */
	struct hd_op_list waiting; /* operations for it that have not been begun: HD_OP_QUEUED */
	struct hd_op_list fenced;  /* xfer's: those of any endpoint that wait behind a fence */
	LIST_HEAD(, hd_name) names;
	uint32_t name_count;
	uint8_t former_count;
	/* numbers of destinations that it has taken the place of, the oldest first */
	uint32_t former[HD_DEST_FORMER];
	/* of the peer that it leads to, or will: its `dests`, or `awaiting` */
	LIST_ENTRY(hd_dest) entry;
	/* while bound: what has come from it and waits, and holds the peer's credit */
	struct hd_ring messages;
	struct hd_link *link; /* while connecting: the link made for it */
	struct hd_timer retry;
	struct hd_timer overdue; /* dgram.c: datagrams have waited for it long enough; */
	bool is_overdue;	 /* others do not begin to until it is bound */
	LIST_HEAD(, hd_follow) followers;
	uint64_t key; /* authorization key of the endpoint there; 0: it has none */
};

/*
 * All that follows is called with the node's lock, and blocks nowhere; int results are 0 or a
 * negative errno where nothing else is said.
 */

/*
 * hd_dest_bind: the destination is endpoint `remote` of generation gen at a live peer. What waited
 * for it starts. Its link, if one was being made, is the caller's to close.
 */
void hd_dest_bind(struct hd_dest *dest, struct hd_peer *peer, uint32_t remote, uint16_t gen);

/* hd_dest_unbind: its peer or its endpoint is gone. It can be connected anew. */
void hd_dest_unbind(struct hd_dest *dest);

/*
 * hd_dest_fail: it could not be reached: what waits for it completes in error (a negative errno).
 * hd_dest_follower: somebody follows it from now on. Who comes while it is being called means whom
 * the name leads to then, perhaps another than was called: he is not told that the call has failed,
 * but it is called again for him.
 */
void hd_dest_follower(struct hd_dest *dest, struct hd_follow *follow);
void hd_dest_fail(struct hd_dest *dest, int err);

/* hd_dest_text: where it is, for lines of the log. */
struct hd_dest_text {
	char text[112];
};
struct hd_dest_text hd_dest_text(const struct hd_dest *dest);

/*
 * hd_dest_connect: start to make a link for an idle destination. hd_dest_bind or hd_dest_fail
 * follows. hd_dest_call: the latter also where it cannot be begun.
 */
int hd_dest_connect(struct hd_dest *dest);
void hd_dest_call(struct hd_dest *dest);

/*
 * hd_dest_again: what was tried came to nothing through no fault of the other end;
 * try again a little later.
 */
void hd_dest_again(struct hd_dest *dest, int err);

/*
 * hd_dest_source_id: what messages from this destination carry as their source; differs from its id
 * when it has another name too.
 */
uint32_t hd_dest_source_id(const struct hd_dest *dest);

/*
 * hd_dest_by_id: the destination that has this number, its hd_dest_id or a former one of those that
 * it has taken the place of; not referenced (who keeps it calls hd_dest_ref); NULL: there is none.
 * hd_dest_unref: one user less; with the last it is freed, unless it is bound or being
 * reached. hd_dest_ref_instead: one less of hd_links.nobody, which stays, and one more of
 * this one, which is returned.
 */
static inline struct hd_dest *hd_dest_by_id(const struct hd_node *node, uint32_t id)
{
	return id && id <= hd_links(node)->dest_count ? hd_links(node)->dests[id - 1] : NULL;
}
static inline void hd_dest_ref(struct hd_dest *dest)
{
	dest->refs++;
}
static inline struct hd_dest *hd_dest_ref_instead(struct hd_dest *nobody, struct hd_dest *dest)
{
	nobody->refs--;
	dest->refs++;
	return dest;
}
void hd_dest_unref(struct hd_dest *dest);

/* hd_dest_mark_tried, hd_dest_mark_overdue: from now on, until it is bound: see its members. */
static inline void hd_dest_mark_tried(struct hd_dest *dest)
{
	dest->tried = true;
}
static inline void hd_dest_mark_overdue(struct hd_dest *dest)
{
	dest->is_overdue = true;
}

/*
 * hd_dest_stand_in: make of this memory a destination without a name, which nothing can be sent to.
 */
void hd_dest_stand_in(struct hd_dest *dest, struct hd_node *node);

/*
 * hd_dest_at: the destination that stands for this endpoint of a live peer, referenced; NULL
 * without memory, or out of range.
 */
struct hd_dest *hd_dest_at(struct hd_peer *peer, uint32_t remote, uint16_t gen);

/* hd_dest_gone: the peer has closed that endpoint. */
void hd_dest_gone(struct hd_peer *peer, uint32_t index, uint16_t gen);

/* hd_dest_same: two destinations may be names of one endpoint. */
static inline bool hd_dest_same(const struct hd_dest *a, const struct hd_dest *b)
{
	return a == b || (a->state == HD_DEST_BOUND && b->state == HD_DEST_BOUND && a->peer == b->peer &&
			  a->remote == b->remote);
}

/*
 * hd_dest_announced: the peer tells under which names its endpoints can be called. Negative: out of
 * range, or more than may be kept for it.
 */
#define HD_DEST_UNITS 40u /* of its budget, for each */
int hd_dest_announced(struct hd_peer *peer, const struct hd_announce *list, size_t count);

/* hd_dests_close: the node closes; whatever fronts have not given back goes too. */
void hd_dests_close(struct hd_node *node);

/*
 * For those who bind destinations and name them. hd_dest_make: one without a name or a user; NULL
 * without memory. hd_dest_release: free one that nobody refers to: no front, no operation, no peer.
 * hd_dest_yield: free such a one, which has no names any more; its number leads to heir from now
 * on, as those do that it has had before: of more than HD_DEST_FORMER the oldest are nobody's.
 */
struct hd_dest *hd_dest_make(struct hd_node *node);
void hd_dest_release(struct hd_dest *dest);
void hd_dest_yield(struct hd_dest *dest, struct hd_dest *heir);

/*
 * hd_name_find: NULL: nothing is called so. hd_name_add: -ENOMEM. hd_names_drop: all but
 * `keep` (NULL: all of them).
 */
/*
 * hd_dest_claimed: a new destination of this name, which nobody is believed to have: somebody may
 * say that he has it, and is called. announced.c.
 */
void hd_dest_claimed(struct hd_dest *dest, const struct hd_name_key *key);
struct hd_name *hd_name_find(struct hd_node *node, const struct hd_name_key *key);
int hd_name_add(struct hd_dest *dest, const struct hd_name_key *key);
void hd_names_drop(struct hd_dest *dest, const struct hd_name_key *keep);

/*
 * hd_dest_check (check.c): asserts in builds with assertions that names and numbers of one that has
 * any are counted, and that its state is so.
 */
#ifdef NDEBUG
static inline void hd_dest_check(const struct hd_dest *dest)
{
}
#else
void hd_dest_check(const struct hd_dest *dest);
#endif

#endif
