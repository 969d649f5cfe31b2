/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* See lane.h. */
#include "engine/xfer/lane.h"

/* Is anything of the order of `place` among this one and those before it? */
static bool lane_has(const struct hd_lane *lane, const struct hd_lane_place *at,
		     const struct hd_lane_place *place)
{
	while (at && lane->same && !lane->same(at, place))
		at = TAILQ_PREV(at, hd_lane_places, entry);
	return at;
}

bool hd_lane_is_first(const struct hd_lane *lane, const struct hd_lane_place *place)
{
	return !lane_has(lane, TAILQ_PREV(place, hd_lane_places, entry), place);
}

bool hd_lane_is_open(const struct hd_lane *lane, const struct hd_lane_place *place)
{
	return !lane_has(lane, TAILQ_LAST(&lane->places, hd_lane_places), place);
}

/* The next one of the order of `place`, or NULL. */
static struct hd_lane_place *lane_after(const struct hd_lane *lane, const struct hd_lane_place *place)
{
	struct hd_lane_place *next = TAILQ_NEXT(place, entry);

	while (next && lane->same && !lane->same(next, place))
		next = TAILQ_NEXT(next, entry);
	return next;
}

struct hd_lane_place *hd_lane_leave(struct hd_lane *lane, struct hd_lane_place *place)
{
	struct hd_lane_place *next = lane_after(lane, place);

	if (next && (!next->done || !hd_lane_is_first(lane, place)))
		next = NULL;
	TAILQ_REMOVE(&lane->places, place, entry);
	lane->count--;
	return next;
}
