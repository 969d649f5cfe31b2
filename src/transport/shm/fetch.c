/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * What is under way in the cooperative copy (see copy.c): messages that we fetch, how each is
 * brought to its end though a helper may be in the middle of it, and messages that we help with.
 */
#include "transport/shm/get.h"

#include "base/clock.h"
#include "base/log.h"

#include <sched.h>
#include <time.h>

/* looks for a chunk that the helper is writing, before the wait is somebody's who has time */
#define SETTLE_YIELDS 100
#define KEPT_NS (500 * HD_NS_PER_MS) /* after which the log says who keeps us waiting */

/* ---- the copy that we share with the helper ---- */

/*
 * Shut the copy: no chunk is taken any more. `after`: what is to be done when
 * the helper is out of it.
 */
void hd_shm_fetch_shut(struct hd_shm_link *l, struct hd_get *p, enum hd_shm_fetch_after after)
{
	struct hd_shm_fetch *pp = hd_shm_fetch_of(p);
	bool is_shut = pp->after != HD_SHM_AFTER_OPEN;
	uint64_t claim;
	uint32_t taken;

	pp->after = (uint8_t)after;
	if (is_shut || pp->copy == HD_SHM_NO_COPY)
		return;
	claim = atomic_exchange_explicit(&hd_shm_fetch_copy(&l->copying, pp)->claim,
					 hd_shm_tagged(l->copying.gen[pp->copy], UINT32_MAX),
					 memory_order_acquire);
	taken = (uint32_t)claim;
	pp->taken = taken <= hd_shm_chunks(p->len) && taken >= pp->ours ? taken - pp->ours
									: 0; /* else a lie */
	pp->turns = hd_shm_turns(&l->peer);
}

void hd_shm_fetch_complain(struct hd_shm_copying *c, pid_t helper)
{
	uint64_t now = hd_now_ns();

	if (!c->kept_since)
		c->kept_since = now;
	else if (now - c->kept_since > KEPT_NS)
		HD_LOG_EVERY_MS(
			10000, HD_LOG_WARN,
			"process %d has been stopped in the middle of a copy to this process: the memory is kept until it goes on or is dead: kill -CONT it, or end it",
			(int)helper);
}

/* Between two looks, for those who have to wait here. */
static void copy_stand_by(int looks)
{
	if (looks < SETTLE_YIELDS)
		sched_yield();
	else
		hd_pause_us(1000);
}

/* ---- its end ---- */

void hd_shm_row_leave(struct hd_shm_link *l, struct hd_get *p)
{
	TAILQ_REMOVE(&l->copying.row, p, entry);
	l->copying.row_bytes -= p->len;
	l->portion = HD_SHM_PORTION;
}

int hd_shm_unget(struct hd_link *link, struct hd_get *p, bool wait)
{
	struct hd_shm_link *l = hd_shm_link_of(link);

	if (!(hd_shm_fetch_of(p)->flags & HD_SHM_FETCH_LISTED))
		return 0;
	hd_shm_fetch_shut(l, p, HD_SHM_AFTER_WITHDRAWN);
	for (int looks = 0; !hd_shm_fetch_leave(l, hd_shm_fetch_of(p)); looks++) {
		if (!wait && looks == SETTLE_YIELDS)
			return -EINPROGRESS;
		copy_stand_by(looks);
	}
	hd_shm_fetch_end(l, p);
	return 0;
}

/* Nobody is told. Those whose copy a helper is in the middle of stay. */
static void gets_stop(struct hd_shm_link *l)
{
	struct hd_get *p, *next;

	while ((p = TAILQ_FIRST(&l->copying.row)))
		hd_shm_fetch_end(l, p);
	for (p = TAILQ_FIRST(&l->copying.gets); p; p = next) {
		next = TAILQ_NEXT(p, entry);
		hd_shm_fetch_shut(l, p, HD_SHM_AFTER_WITHDRAWN);
		if (hd_shm_fetch_leave(l, hd_shm_fetch_of(p)))
			hd_shm_fetch_end(l, p);
	}
}

bool hd_shm_settled(struct hd_link *link)
{
	struct hd_shm_link *l = hd_shm_link_of(link);

	gets_stop(l);
	return TAILQ_EMPTY(&l->copying.gets);
}

static void gets_end(struct hd_shm_link *l)
{
	for (int looks = 0; !hd_shm_settled(&l->base); looks++)
		copy_stand_by(looks);
}

static void help_stop(struct hd_shm_copying *c)
{
	struct hd_shm_help *h;

	while ((h = TAILQ_FIRST(&c->helps)))
		hd_shm_help_end(c, h);
}

void hd_shm_copy_stop(struct hd_shm_link *l)
{
	gets_stop(l);
	help_stop(&l->copying);
}

void hd_shm_copy_end(struct hd_shm_link *l)
{
	help_stop(&l->copying);
	gets_end(l);
}
