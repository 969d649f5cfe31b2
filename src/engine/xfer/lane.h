/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * In-order lanes: what begins one behind the other goes on side by side, and is finished in the
 * order in which it began. Who has one embeds a place in each of its things:
 *
 *	first ────────────── last
 *	  A   b(done)  B(done)  a	capital: the first of its order. `B` is finished when it is
 *					done, `b` when `A` has left
 *
 * A lane has one order, or several, as its owner's `same` says; the others of a lane do not hold a
 * place up. How many may be in it at a time, and what a failure means, is its owner's. Completions
 * use it (send_lane.h), and what comes in beside each other for a queue pair (qp/beside.c).
 *
 * All is called with the node's lock, takes no memory, and calls nobody but `same`.
 */
#ifndef HD_ENGINE_LANE_H
#define HD_ENGINE_LANE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

struct hd_lane_place {
	TAILQ_ENTRY(hd_lane_place) entry; /* hd_lane.places */
	uint32_t seq;			  /* by which places stand */
	bool done;			  /* it is finished in its turn */
};

struct hd_lane {
	TAILQ_HEAD(hd_lane_places, hd_lane_place) places;
	uint32_t next;	/* the number of the next to join */
	uint32_t count; /* of places */
	/* are these two of one order? NULL: all are. Two that are remain so */
	bool (*same)(const struct hd_lane_place *a, const struct hd_lane_place *b);
};

#define HD_LANE_FOREACH(place, lane) TAILQ_FOREACH(place, &(lane)->places, entry)

static inline void hd_lane_init(struct hd_lane *lane,
				bool (*same)(const struct hd_lane_place *a, const struct hd_lane_place *b))
{
	TAILQ_INIT(&lane->places);
	lane->next = lane->count = 0;
	lane->same = same;
}

/* hd_lane_join: it begins now, behind all that have begun. */
static inline void hd_lane_join(struct hd_lane *lane, struct hd_lane_place *place)
{
	place->seq = lane->next++;
	place->done = false;
	lane->count++;
	TAILQ_INSERT_TAIL(&lane->places, place, entry);
}

/*
 * hd_lane_is_first: nothing of its order is before it. hd_lane_is_open: one like `place`, which is
 * not in the lane, would be the first of its order.
 */
bool hd_lane_is_first(const struct hd_lane *lane, const struct hd_lane_place *place);
bool hd_lane_is_open(const struct hd_lane *lane, const struct hd_lane_place *place);

/*
 * hd_lane_done: it is done. True: and it is its turn; false: somebody gets it when
 * it is, from hd_lane_leave.
 */
static inline bool hd_lane_done(struct hd_lane *lane, struct hd_lane_place *place)
{
	place->done = true;
	return hd_lane_is_first(lane, place);
}

/*
 * hd_lane_leave: it is finished, or given up. Returns the one whose turn it is now
 * and that is done, or NULL.
 */
struct hd_lane_place *hd_lane_leave(struct hd_lane *lane, struct hd_lane_place *place);

/* hd_lane_ready: of a lane with one order, the one whose turn it is and that is done, or NULL. */
static inline struct hd_lane_place *hd_lane_ready(const struct hd_lane *lane)
{
	struct hd_lane_place *first = TAILQ_FIRST(&lane->places);

	return first && first->done ? first : NULL;
}

/*
 * hd_lane_check (check.c): assert in builds with assertions that places stand by their numbers and
 * are as many as counted; and where all are seen to at once, that none is done whose turn it is.
 */
/* a longer list is not walked through: it would take as long for every packet */
#define HD_CHECKED 64u
#ifdef NDEBUG
static inline void hd_lane_check(const struct hd_lane *lane, bool at_once)
{
}
#else
void hd_lane_check(const struct hd_lane *lane, bool at_once);
#endif

#endif
