/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * What holds of bound ports whenever nothing of them is being changed, counted anew
 * in builds with assertions.
 */
#include "engine/name/name.h"

#include <assert.h>

#ifndef NDEBUG

#define CHECKED 256u /* more slots than that, or bound ports, are not counted */

/*
 * Of a crowded one each slot that has ever been given out is somebody's, rests,
 * or may be given out again.
 */
static void slots_check(const struct hd_bound_port *bound)
{
	uint32_t used = 0;

	assert(bound->given <= bound->crowded);
	if (bound->slot_count > CHECKED)
		return;
	for (uint32_t i = 0; i < bound->slot_count; i++) {
		const struct hd_ep *ep = bound->slots[i];

		if (!ep)
			continue;
		assert(ep->bound_port == bound && ep->slot == i && (i || !bound->crowded));
		used++;
	}
	assert(used <= bound->users);
	assert(!bound->crowded || bound->given == used + bound->resting + bound->idle_count);
	for (uint32_t i = 0; i < bound->idle_count; i++)
		assert(bound->idle[i] && bound->idle[i] <= bound->given &&
		       !hd_bound_ep(bound, bound->idle[i]));
}

void hd_bound_port_check(const struct hd_bound_port *bound)
{
	assert(bound->users || bound->resting);
	assert(bound->listener_count > 0);
	assert(bound->crowded || (!bound->resting && !bound->idle_count));
	slots_check(bound);
}

void hd_names_check(const struct hd_node *node)
{
	const struct hd_names *names = hd_names(node);
	const struct hd_bound_port *bound;
	uint32_t n = 0, resting = 0, roomy = 0;
	int listening = 0;

	LIST_FOREACH(bound, &names->bound_ports, entry) {
		if (n++ == CHECKED)
			return;
		hd_bound_port_check(bound);
		resting += bound->resting;
		listening += bound->listener_count;
		roomy += bound->given < bound->crowded || bound->idle_count;
	}
	LIST_FOREACH(bound, &names->roomy, room)
		roomy--;
	assert(!roomy && resting == names->rest_count && listening == names->listening);
}

#endif
