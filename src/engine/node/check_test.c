/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * What checks itself in builds with assertions: each of these notices when
 * what it looks at is wrong.
 */
#include "engine/event/event.h"
#include "engine/link/link.h"
#include "engine/mr/mr.h"
#include "engine/node/turn.h"
#include "engine/node_page.h"
#include "engine/rq/rq.h"
#include "engine/test/test_noticed.h"
#include "engine/xfer/xfer.h"

#define BIG (1 << 20)

/*
 * Two that have met: at b one message waits and one receive is posted, and a has a region and a
 * completion that is not read. Of a's messages in order a long one is under way, a short one has
 * ended and waits for it, and two are behind a fence.
 */
struct scene {
	struct pair p;
	struct hd_mr *mr;
	char in[16], out[16], *big;
};

static void push_ordered(struct scene *s, const void *buf, size_t len, uint64_t tag, uint32_t flags)
{
	pair_push(&s->p, &s->p.a, buf, len, tag, flags | HD_SEND_GATED | HD_SEND_ORDERED | HD_SEND_COMPLETE);
}

static void scene_order(struct scene *s)
{
	s->p.a.ep->policy |= HD_EP_FENCE;
	s->big = calloc(1, BIG);
	push_ordered(s, s->big, BIG, 11, 0);
	push_ordered(s, s->out, sizeof(s->out), 12, 0);
	push_ordered(s, s->out, sizeof(s->out), 13, HD_SEND_FENCE);
	push_ordered(s, s->out, sizeof(s->out), 14, 0);
	pair_settle(&s->p, 1);
}

static void scene_open(struct scene *s, const char *transport)
{
	struct hd_cqe e = { 0 };

	pair_open(&s->p, transport);
	side_post(&s->p.b, s->in, sizeof(s->in), 1, 0, NULL, s->in);
	pair_push(&s->p, &s->p.a, s->out, sizeof(s->out), 1, 0);
	assert_int_equal(pair_next(&s->p, &s->p.b).err, 0);
	pair_push(&s->p, &s->p.a, s->out, sizeof(s->out), 2, 0);
	side_post(&s->p.b, s->in, sizeof(s->in), 3, 0, NULL, s->in);
	while (!s->p.b.ep->rq->match[1].waiting)
		pair_settle(&s->p, 1);
	s->mr = side_region(&s->p.a, 77, s->out, sizeof(s->out), HD_ACCESS_REMOTE_READ, 0);
	scene_order(s);
	hd_cq_post(s->p.a.cq, &e);
}

static void scene_close(struct scene *s)
{
	assert_int_equal(hd_mr_close(s->mr), 0);
	pair_close(&s->p);
	free(s->big);
}

/* ---- what may go wrong ----------------------------------------------------------------------- */

static void credit_is_lost(struct scene *s)
{
	hd_links(s->p.b.node)->peers->credit.freed += hd_links(s->p.b.node)->peers->credit.window + 1;
}

static void short_way_is_open(struct scene *s)
{
	s->p.a.to->peer->stalled |= HD_STALL_QUEUED;
}

static void send_fence_is_forgotten(struct scene *s)
{
	s->p.a.to->peer->send_fences++;
}

static void nobody_pushes(struct scene *s)
{
	static struct hd_ctl c;

	TAILQ_INSERT_TAIL(&s->p.a.to->peer->ctl, &c, entry);
	s->p.a.to->peer->ctl_bytes = sizeof(c);
	hd_peer_stall(s->p.a.to->peer, HD_STALL_ANSWERS);
}

static void bytes_are_miscounted(struct scene *s)
{
	s->p.a.to->peer->ctl_bytes++;
}

static void answer_of_another(struct scene *s)
{
	static struct hd_pending pending;

	hd_pending_join(&pending, s->p.a.to->peer);
	pending.peer = NULL;
}

static void owes_too_much(struct scene *s)
{
	static struct hd_overflow o;
	struct hd_peer *peer = hd_links(s->p.b.node)->peers;

	o.peer = peer;
	o.units = peer->credit.rx_spent - peer->credit.freed + 1;
	LIST_INSERT_HEAD(&peer->owing, &o, owing);
}

static void bound_to_another(struct scene *s)
{
	s->p.a.to->state = HD_DEST_IDLE;
}

static void store_is_miscounted(struct scene *s)
{
	hd_credit_release(s->p.a.node, 1);
}

static void posted_is_miscounted(struct scene *s)
{
	s->p.b.ep->rq->match[1].posted++;
}

static void waiting_is_miscounted(struct scene *s)
{
	s->p.b.ep->rq->match[1].waiting--;
}

static void class_is_asleep(struct scene *s)
{
	s->p.b.ep->rq->match[1].active_count--;
}

static void match_has_not_met(struct scene *s)
{
	static struct hd_recv r;

	hd_match_post(&s->p.b.ep->rq->match[1], &r.m, 2, 0, HD_MATCH_ANY);
}

static void message_is_another_queues(struct scene *s)
{
	hd_container(hd_match_first_waiting(&s->p.b.ep->rq->match[1]), struct hd_msg, w)->ep = s->p.a.ep;
}

static void early_is_lost(struct scene *s)
{
	hd_container(hd_match_first_waiting(&s->p.b.ep->rq->match[1]), struct hd_msg, w)->early = true;
}

static void limit_is_in_no_list(struct scene *s)
{
	static struct hd_rq *self;

	s->p.b.ep->rq->limit.least = 1;
	s->p.b.ep->rq->limited.le_prev = &self;
}

static void waiter_is_anothers(struct scene *s)
{
	static struct hd_rq_waiter w;

	hd_rq_wait(s->p.b.ep->rq, &w);
	w.rq = s->p.a.ep->rq;
}

static void ring_is_too_full(struct scene *s)
{
	s->p.a.cq->r.tail += s->p.a.cq->r.mask + 1;
}

static void list_before_the_ring_is_full(struct scene *s)
{
	static struct hd_overflow o;

	STAILQ_INSERT_TAIL(&s->p.a.cq->overflow, &o, entry);
	s->p.a.cq->r.overflowed = true;
}

static void overflow_is_forgotten(struct scene *s)
{
	s->p.a.cq->r.overflowed = true;
}

static void told_of_what_is_to_come(struct scene *s)
{
	s->p.a.cq->told = s->p.a.cq->r.tail + 1;
}

static void wakes_more_than_sleep(struct scene *s)
{
	s->p.a.cq->w.to_wake = 1;
}

static void key_is_another(struct scene *s)
{
	s->mr->key++;
}

static void row_is_free(struct scene *s)
{
	s->mr->row = HD_PAGE_MRS;
}

static void disabled_is_held(struct scene *s)
{
	static struct hd_mr_hold hold;

	s->mr->enabled = false;
	LIST_INSERT_HEAD(&s->mr->holds, &hold, entry);
}

static struct hd_lane *send_lane(struct scene *s)
{
	return &s->p.a.ep->order->lane;
}

static void seat_is_miscounted(struct scene *s)
{
	send_lane(s)->count++;
}

static void seats_change_places(struct scene *s)
{
	TAILQ_FIRST(&send_lane(s)->places)->seq += 2;
}

static void first_is_not_told_of(struct scene *s)
{
	TAILQ_FIRST(&send_lane(s)->places)->done = true;
}

static void ended_is_under_way(struct scene *s)
{
	TAILQ_NEXT(TAILQ_FIRST(&send_lane(s)->places), entry)->done = false;
}

static void seat_is_without_operation(struct scene *s)
{
	s->p.a.ep->tx->ops = send_lane(s)->count - 1;
}

static struct hd_op *fenced(struct scene *s)
{
	return TAILQ_FIRST(&s->p.a.ep->order->fenced);
}

static void fence_waits_for_one_more(struct scene *s)
{
	fenced(s)->fence_count++;
}

static void fence_waits_for_nothing(struct scene *s)
{
	fenced(s)->fence_count = 0;
}

static void waits_without_a_fence(struct scene *s)
{
	fenced(s)->flags &= ~(uint32_t)HD_SEND_FENCE;
}

static void second_counts_as_well(struct scene *s)
{
	TAILQ_NEXT(fenced(s), entry)->fence_count = 1;
}

static void fenced_is_in_no_state(struct scene *s)
{
	fenced(s)->state = HD_OP_QUEUED;
}

/* The long message. */
static struct hd_op *under_way(struct scene *s)
{
	return hd_op_of(hd_transfers_first(s->p.a.to->peer));
}

static void has_not_passed_its_fence(struct scene *s)
{
	under_way(s)->flags |= HD_SEND_GATED;
}

static void operation_is_no_transfer(struct scene *s)
{
	under_way(s)->state = HD_OP_ACK;
}

static void copy_is_not_what_leaves(struct scene *s)
{
	under_way(s)->copy = s->out;
}

static void queued_is_another_peers(struct scene *s)
{
	static struct hd_dest elsewhere;
	struct hd_op *op = fenced(s);

	TAILQ_REMOVE(&s->p.a.ep->order->fenced, op, entry);
	TAILQ_REMOVE(&s->p.a.ep->order->fenced, fenced(s), entry);
	op->state = HD_OP_QUEUED;
	op->fence_count = 0;
	hd_op_enqueue(s->p.a.to->peer, op);
	elsewhere = *op->dest;
	elsewhere.peer = hd_links(s->p.a.node)->nowhere;
	op->dest = &elsewhere;
}

/* Destinations, budgets, bound ports. */

static void destination_has_another_name(struct scene *s)
{
	s->p.a.to->name_count++;
}

static void name_is_anothers(struct scene *s)
{
	static struct hd_dest other;

	LIST_FIRST(&s->p.a.to->names)->dest = &other;
}

static void number_is_anothers(struct scene *s)
{
	s->p.a.to->id++;
}

static void bound_waits_for_a_link(struct scene *s)
{
	s->p.a.to->link = s->p.a.to->peer->link;
}

static void one_is_reached_in_no_way(struct scene *s)
{
	struct hd_dest *d = hd_dest_make(s->p.a.node);

	d->refs = 1;
	d->state = HD_DEST_CONNECTING;
}

static void nobody_has_it(struct scene *s)
{
	hd_dest_make(s->p.a.node);
}

static void unbound_is_kept(struct scene *s)
{
	struct hd_dest *d = hd_dest_make(s->p.a.node);

	d->refs = 1;
	d->kept = true;
}

static void ring_is_broken(struct scene *s)
{
	static struct hd_dest other;

	s->p.a.to->alike = &other;
}

static void peer_has_more_destinations(struct scene *s)
{
	s->p.a.to->peer->dest_count++;
}

static void number_is_lost(struct scene *s)
{
	hd_links(s->p.a.node)->ids.free.count--;
}

static struct hd_budget *ours(struct scene *s)
{
	return s->p.a.to->peer->share->budget;
}

static void ours_is_counted(struct scene *s)
{
	ours(s)->units = 1;
}

/* The first window of its peer, and a unit that another has. */
static void others_sum_is_wrong(struct scene *s)
{
	ours(s)->is_ours = false;
	ours(s)->units = hd_credit_window(s->p.a.to->peer);
	hd_links(s->p.a.node)->others_units = ours(s)->units + 1;
}

static void others_windows_are_more(struct scene *s)
{
	ours(s)->is_ours = false;
	ours(s)->units = hd_links(s->p.a.node)->others_units = hd_credit_window(s->p.a.to->peer) - 1;
}

static void descriptors_are_miscounted(struct scene *s)
{
	hd_links(s->p.a.node)->others_files++;
}

static void budget_without_a_share(struct scene *s)
{
	ours(s)->shares = 0;
}

static void ours_gives_way(struct scene *s)
{
	struct hd_share *share = s->p.a.to->peer->share;

	share->may_go = true;
	TAILQ_INSERT_TAIL(&ours(s)->gone, share, entry);
}

static void slot_is_anothers(struct scene *s)
{
	s->p.a.ep->slot++;
}

static void port_without_a_user(struct scene *s)
{
	s->p.a.ep->bound_port->users = 0;
}

static void sockets_are_miscounted(struct scene *s)
{
	hd_names(s->p.a.node)->listening++;
}

static void rests_are_miscounted(struct scene *s)
{
	hd_names(s->p.a.node)->rest_count++;
}

/* ---- do they notice? ------------------------------------------------------------------------- */

static void (*const wrong[])(struct scene *s) = {
	credit_is_lost,
	short_way_is_open,
	send_fence_is_forgotten,
	nobody_pushes,
	bytes_are_miscounted,
	answer_of_another,
	owes_too_much,
	bound_to_another,
	store_is_miscounted,
	posted_is_miscounted,
	waiting_is_miscounted,
	class_is_asleep,
	match_has_not_met,
	message_is_another_queues,
	early_is_lost,
	limit_is_in_no_list,
	waiter_is_anothers,
	ring_is_too_full,
	list_before_the_ring_is_full,
	overflow_is_forgotten,
	told_of_what_is_to_come,
	wakes_more_than_sleep,
	key_is_another,
	row_is_free,
	disabled_is_held,
	seat_is_miscounted,
	seats_change_places,
	first_is_not_told_of,
	ended_is_under_way,
	seat_is_without_operation,
	fence_waits_for_one_more,
	fence_waits_for_nothing,
	waits_without_a_fence,
	second_counts_as_well,
	fenced_is_in_no_state,
	has_not_passed_its_fence,
	operation_is_no_transfer,
	copy_is_not_what_leaves,
	queued_is_another_peers,
	destination_has_another_name,
	name_is_anothers,
	number_is_anothers,
	bound_waits_for_a_link,
	one_is_reached_in_no_way,
	nobody_has_it,
	unbound_is_kept,
	ring_is_broken,
	peer_has_more_destinations,
	number_is_lost,
	ours_is_counted,
	others_sum_is_wrong,
	others_windows_are_more,
	descriptors_are_miscounted,
	budget_without_a_share,
	ours_gives_way,
	slot_is_anothers,
	port_without_a_user,
	sockets_are_miscounted,
	rests_are_miscounted,
};

NOTICED_SCENE(wrong)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_is_noticed),
	};

	return cmocka_run_group_tests_name("check", tests, NULL, NULL);
}
