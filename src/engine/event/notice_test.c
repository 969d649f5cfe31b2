/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Who is told of completions where the front says of which, deferred work, and event
 * queues that keep nothing.
 */
#include "asleep.h"
#include "base/clock.h"
#include "engine/test/test_told.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

/* Completions with tag 1 are told to nobody. */
static bool tells(void *arg, const struct hd_cqe *e)
{
	return e->tag != 1;
}

static int setup(void **state)
{
	static struct told s;

	s = (struct told){ 0 };
	*state = &s;
	told_open(&s, &(struct hd_node_attr){ .front = "test", .locked = true },
		  (struct hd_cq_attr){ .size = 64, .waitable = true, .tells = tells, .arg = &s });
	return 0;
}

static int teardown(void **state)
{
	return told_close(*state);
}

static void complete_of(struct told *s, uint32_t ep, uint64_t tag)
{
	hd_node_lock(s->node);
	hd_cq_post(s->cq, &(struct hd_cqe){ .flags = HD_C_SEND, .tag = tag, .ep = ep });
	hd_node_unlock(s->node);
}

static void complete(struct told *s, uint64_t tag)
{
	complete_of(s, 0, tag);
}

static void drop(struct told *s, uint32_t ep)
{
	hd_node_lock(s->node);
	hd_cq_drop(s->cq, ep);
	hd_node_unlock(s->node);
}

static void drain(struct told *s)
{
	hd_node_lock(s->node);
	while (hd_cq_peek(s->cq))
		hd_cq_pop(s->cq);
	hd_node_unlock(s->node);
}

/* ---- waiting --------------------------------------------------------------------------------- */

static void what_is_there_is_not_waited_for(void **state)
{
	struct told *s = *state;

	complete(s, 1);
	assert_int_equal(hd_cq_wait_told(s->cq, 1, 0), 0); /* quiet or not */
	assert_int_equal(hd_cq_wait_told(s->cq, 2, 1), -EAGAIN);
	drain(s);
	assert_int_equal(hd_cq_wait_told(s->cq, 1, 1), -EAGAIN);
}

/* Posts what it is told to, each when the waiter sleeps. */
struct poster {
	struct told *s;
	uint64_t tags[3];
	int count;
};

static void *post_later(void *arg)
{
	const struct poster *p = arg;

	for (int i = 0; i < p->count; i++) {
		let_sleep(getpid());
		complete(p->s, p->tags[i]);
	}
	return NULL;
}

/* How many entries there are when the wait for `wanted` is over. */
static uint32_t wait_while(struct told *s, uint64_t wanted, const struct poster *p)
{
	pthread_t thread;
	uint32_t n;

	assert_int_equal(pthread_create(&thread, NULL, post_later, (void *)p), 0);
	assert_int_equal(hd_cq_wait_told(s->cq, wanted, -1), 0);
	hd_node_lock(s->node);
	n = hd_cq_count(s->cq);
	hd_node_unlock(s->node);
	pthread_join(thread, NULL);
	drain(s);
	return n;
}

static void a_quiet_one_wakes_nobody(void **state)
{
	struct told *s = *state;

	assert_in_range(wait_while(s, 1, &(struct poster){ s, { 1, 1, 0 }, 3 }), 3, 3);
	assert_in_range(wait_while(s, 1, &(struct poster){ s, { 0 }, 1 }), 1, 1);
}

static void a_threshold_counts_all(void **state)
{
	struct told *s = *state;

	assert_in_range(wait_while(s, 3, &(struct poster){ s, { 1, 1, 0 }, 3 }), 3, 3);
	assert_in_range(wait_while(s, 2, &(struct poster){ s, { 0, 1 }, 2 }), 2,
			2); /* one of them may be quiet */
}

/* ---- channels -------------------------------------------------------------------------------- */

static bool takes(struct told *s)
{
	struct hd_channel_item *item;

	return hd_channel_take(s->channel, &item) == 0 && item->owner == s;
}

static void ask(struct told *s, struct hd_channel *channel)
{
	hd_node_lock(s->node);
	hd_cq_set_channel(s->cq, channel, &s->item);
	hd_cq_notify(s->cq, false);
	hd_node_unlock(s->node);
}

static void a_channel_hears_of_the_next_that_is_told(void **state)
{
	struct told *s = *state;

	ask(s, s->channel);
	complete(s, 1);
	assert_false(takes(s));
	complete(s, 2);
	assert_true(takes(s));
	complete(s, 2);
	assert_false(takes(s)); /* once for each time that somebody asks */
}

static void another_channel_takes_its_place(void **state)
{
	struct told *s = *state;
	struct hd_channel *other;
	struct hd_channel_item *item;

	assert_int_equal(hd_channel_open(s->node, &other), 0);
	ask(s, s->channel);
	ask(s, other);
	complete(s, 0);
	assert_false(takes(s));
	assert_int_equal(hd_channel_take(other, &item), 0);
	ask(s, NULL); /* nobody to tell: nothing happens */
	complete(s, 0);
	assert_false(takes(s));
	hd_channel_close(other);
}

static void ask_unread(struct told *s, bool solicited)
{
	hd_node_lock(s->node);
	hd_cq_set_channel(s->cq, s->channel, &s->item);
	hd_cq_notify_unread(s->cq, solicited);
	hd_node_unlock(s->node);
}

/* What came when nobody had asked, and is not read; but of one thing a program is told once. */
static void what_came_between_is_told_of(void **state)
{
	struct told *s = *state;

	complete(s, 0);
	ask_unread(s, true);
	assert_false(takes(s)); /* it is not such a one */
	ask_unread(s, false);
	assert_true(takes(s));
	ask_unread(s, false);
	assert_false(takes(s)); /* it was that */
	complete(s, 0);
	assert_true(takes(s));
	complete(s, 1);
	ask_unread(s, false);
	assert_false(takes(s)); /* nobody is told of such */
	complete(s, 0);
	assert_true(takes(s));
	complete(s, 0);
	complete(s, 1);
	drain(s);
	ask_unread(s, false);
	assert_false(takes(s)); /* it has been read */
	complete(s, 0);
	assert_true(takes(s));
	complete(s, 0);
	complete(s, 1);
	ask_unread(s, false);
	assert_true(takes(s));
	assert_false(takes(s));
}

/*
 * Completions that go unread with their endpoint change nothing about which of the
 * others have been told of.
 */
static void what_is_dropped_is_forgotten(void **state)
{
	struct told *s = *state;

	ask(s, s->channel);
	complete_of(s, 1, 0);
	assert_true(takes(s));
	complete_of(s, 1, 0);
	drop(s, 1);
	complete(s, 0);
	ask_unread(s, false);
	assert_true(takes(s)); /* it is new, in the place of one that was not */
	drain(s);
	complete_of(s, 1, 0);
	complete_of(s, 1, 0);
	complete(s, 0);
	ask_unread(s, false);
	assert_true(takes(s));
	drop(s, 1);
	ask_unread(s, false);
	assert_false(takes(s));
}

/* A ring that is full does not keep a channel from hearing. */
static void what_overflows_is_told_of(void **state)
{
	struct told *s = *state;

	for (int i = 0; i < 100; i++)
		complete(s, 0);
	ask(s, s->channel);
	complete(s, 0);
	assert_true(takes(s));
	hd_node_lock(s->node);
	assert_int_equal(hd_cq_count(s->cq), 101);
	hd_node_unlock(s->node);
}

static void waiting_for_a_channel_ends(void **state)
{
	struct told *s = *state;
	uint64_t before = hd_now_ns();

	assert_int_equal(hd_channel_wait(s->channel, 30, NULL), -ETIMEDOUT);
	assert_true(hd_now_ns() - before >= 30 * HD_NS_PER_MS);
	hd_channel_post(s->channel, &s->item);
	assert_int_equal(hd_channel_wait(s->channel, 0, NULL), 0);
	assert_true(takes(s));
}

/* ---- deferred work --------------------------------------------------------------------------- */

struct deferreds {
	struct hd_deferred a, b;
	struct hd_node *node;
	char order[8];
	size_t count;
};

static void note_a(struct hd_deferred *deferred)
{
	struct deferreds *c = hd_container(deferred, struct deferreds, a);

	c->order[c->count++] = 'a';
}

/* It has itself done once more, and that is for the next turn. */
static void note_b(struct hd_deferred *deferred)
{
	struct deferreds *c = hd_container(deferred, struct deferreds, b);

	c->order[c->count++] = 'b';
	if (c->count < 4)
		hd_deferred_post(c->node, deferred);
}

static void deferred_work_has_its_turn(void **state)
{
	struct told *s = *state;
	struct deferreds c = { .a.fn = note_a, .b.fn = note_b, .node = s->node };

	hd_node_lock(s->node);
	hd_deferred_post(s->node, &c.a);
	hd_deferred_post(s->node, &c.b);
	hd_deferred_post(s->node, &c.a); /* once is enough */
	assert_string_equal(c.order, "");
	hd_node_poll(s->node);
	assert_string_equal(c.order, "ab");
	hd_deferred_post(s->node, &c.a);
	hd_deferred_drop(s->node, &c.a);
	hd_node_poll(s->node);
	hd_node_poll(s->node);
	hd_node_poll(s->node);
	assert_string_equal(c.order, "abbb");
	hd_node_unlock(s->node);
}

/* ---- cross-thread work ----------------------------------------------------------------------- */

struct crossworks {
	struct hd_crosswork a, b;
	struct told *s;
	struct hd_cqe done;
	char order[8];
	size_t count;
};

static void run_a(struct hd_crosswork *crosswork)
{
	struct crossworks *e = hd_container(crosswork, struct crossworks, a);

	hd_assert_locked(e->s->node);
	e->order[e->count++] = 'a';
}

static void run_b(struct hd_crosswork *crosswork)
{
	struct crossworks *e = hd_container(crosswork, struct crossworks, b);

	e->order[e->count++] = 'b';
	hd_cq_post(e->s->cq, &e->done);
}

static void *send_crossworks(void *arg)
{
	struct crossworks *e = arg;

	let_sleep(getpid());
	hd_crosswork_send(e->s->node, &e->a);
	hd_crosswork_send(e->s->node, &e->b);
	return NULL;
}

/* Whoever sleeps in the node does them, in their order. */
static void cross_thread_work_wakes_the_node(void **state)
{
	struct crossworks e = { .a.fn = run_a, .b.fn = run_b, .s = *state, .done.flags = HD_C_SEND };
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, send_crossworks, &e), 0);
	assert_int_equal(hd_cq_wait(e.s->cq, 1, -1), 0);
	pthread_join(thread, NULL);
	assert_string_equal(e.order, "ab");
}

static void cross_thread_work_is_done_before_a_node_closes(void **state)
{
	const struct hd_node_attr attr = { .front = "test", .locked = true };
	struct told other = { 0 };
	struct crossworks e = { .a.fn = run_a, .s = &other };

	assert_int_equal(hd_node_open(&attr, &other.node), 0);
	hd_crosswork_send(other.node, &e.a);
	assert_string_equal(e.order, "");
	assert_int_equal(hd_node_close(other.node), 0);
	assert_string_equal(e.order, "a");
}

/* ---- event queues that keep nothing ---------------------------------------------------------- */

static void told(void *arg, const struct hd_event *event)
{
	memcpy(arg, event->data, event->len);
}

static ssize_t never(const struct hd_event *event, void *arg)
{
	fail();
	return 0;
}

static void events_are_told_as_they_happen(void **state)
{
	const struct hd_event event = { .code = HD_EV_FRONT, .data = "seen", .len = 5 };
	struct hd_evq *evq;
	char data[8] = "";

	assert_int_equal(hd_evq_open_told(told, data, &evq), 0);
	assert_int_equal(hd_evq_post(evq, &event), 0);
	assert_string_equal(data, "seen");
	assert_int_equal(hd_evq_read(evq, 0, never, NULL), -EAGAIN);
	assert_int_equal(hd_evq_close(evq), 0);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(what_is_there_is_not_waited_for),
		CASE(a_quiet_one_wakes_nobody),
		CASE(a_threshold_counts_all),
		CASE(a_channel_hears_of_the_next_that_is_told),
		CASE(another_channel_takes_its_place),
		CASE(what_came_between_is_told_of),
		CASE(what_is_dropped_is_forgotten),
		CASE(what_overflows_is_told_of),
		CASE(waiting_for_a_channel_ends),
		CASE(deferred_work_has_its_turn),
		CASE(events_are_told_as_they_happen),
		CASE(cross_thread_work_wakes_the_node),
		CASE(cross_thread_work_is_done_before_a_node_closes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
