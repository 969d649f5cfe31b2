/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Messages that are given up while they are copied, and offers and helpers that lie. */
#include "base/config.h"
#include "forbid.h"
#include "transport/shm/get.h"
#include "transport/shm_duo.h"
#include "transport/shm_message.h"

#include <errno.h>
#include <pthread.h>
#include <sys/wait.h>

/* ---- giving up ---- */

/*
 * Withdraw the offer after some turns, or before it is fetched, and use the
 * memory for something else.
 */
static void withdraw_after(struct duo *d, size_t len, int turns)
{
	struct message m;
	bool refused = false;

	message_make(&m, d, len, 1, 1);
	if (turns)
		assert_int_equal(message_get(&m, d), 0);
	duo_turns(d, turns / 2);
	d->link[0]->base.ops->unoffer(&d->link[0]->base, &m.offer);
	m.blob_len = 0;
	memset(m.sent, 0, m.len);
	if (!turns)
		refused = message_get(&m, d) != 0;
	if (!refused && !m.done)
		duo_turns(d, 20);
	assert_int_equal(m.done, !refused);
	assert_true(refused || m.err || rig_same(m.received, 0, m.len, 77));
	assert_true(turns || refused || m.err);
	message_free(&m, d);
}

static void a_withdrawn_offer_is_not_delivered(void **state)
{
	struct duo d;

	duo_open(&d);
	for (unsigned i = 0; i < SIZES; i++)
		for (int turns = 0; turns < 6; turns++)
			withdraw_after(&d, sizes[i], turns);
	duo_close(&d);
}

static void nobody_writes_after_unget(void **state)
{
	struct duo d;

	duo_open(&d);
	for (int turns = 0; turns < 12; turns++) {
		struct message m;

		message_make(&m, &d, BIG, 1, 1);
		assert_int_equal(message_get(&m, &d), 0);
		duo_turns(&d, turns / 2);
		if (turns % 2)
			rig_poll(d.node[0]);
		d.link[1]->base.ops->unget(&d.link[1]->base, &m.get, true);
		memset(m.received, 0xab, BIG);
		duo_turns(&d, 20);
		for (size_t k = 0; k < BIG; k += 4096)
			assert_int_equal(m.received[k], 0xab);
		assert_int_equal(m.done, 0);
		message_free(&m, &d);
	}
	assert_true(transfer(&d, BIG, 1, 1));
	duo_close(&d);
}

struct late_helper {
	struct hd_shm_copy *copy;
	uint64_t helped;
	atomic_bool done;
};

static void *helps_late(void *arg)
{
	struct late_helper *h = arg;

	usleep(50000); /* so long it is put aside, and less than anybody waits */
	atomic_store(&h->done, true);
	atomic_store(&h->copy->helped, h->helped);
	return NULL;
}

/* A message of which the helper has taken a chunk, and does not write it yet. */
static void taken_by_one_who_stops(struct duo *d, struct message *m, struct late_helper *h)
{
	duo_open(d);
	message_make(m, d, BIG, 1, 1);
	assert_int_equal(message_get(m, d), 0);
	h->copy = &d->link[1]->copying.ours[0];
	assert_true(hd_shm_take_chunk(&h->copy->claim, d->link[1]->copying.gen[0], hd_shm_chunks(BIG)));
	h->helped = hd_shm_tagged(d->link[1]->copying.gen[0], 1);
}

static int unget(struct duo *d, struct message *m, bool wait)
{
	return d->link[1]->base.ops->unget(&d->link[1]->base, &m->get, wait);
}

/* It has taken a chunk, and is kept waiting for a processor. */
static void a_helper_that_was_put_aside_is_waited_for(void **state)
{
	struct late_helper h = { 0 };
	struct message m;
	pthread_t thread;
	struct duo d;

	taken_by_one_who_stops(&d, &m, &h);
	assert_int_equal(pthread_create(&thread, NULL, helps_late, &h), 0);
	assert_int_equal(unget(&d, &m, true), 0);
	assert_true(atomic_load(&h.done));
	assert_int_equal(pthread_join(thread, NULL), 0);
	duo_turns(&d, 5);
	message_free(&m, &d);
	assert_true(transfer(&d, BIG, 1, 1));
	duo_close(&d);
}

/*
 * Or it was stopped there, for longer than anybody waits: the memory stays the link's,
 * and other messages move.
 */
static void a_helper_that_was_stopped_keeps_the_memory(void **state)
{
	struct late_helper h = { 0 };
	struct message m;
	struct duo d;

	taken_by_one_who_stops(&d, &m, &h);
	for (int i = 0; i < 3; i++)
		assert_int_equal(unget(&d, &m, false), -EINPROGRESS);
	for (int i = 0; i < 1000; i++)
		rig_poll(d.node[1]);
	assert_int_equal(m.done, 0);
	atomic_store(&h.copy->helped, h.helped); /* it goes on */
	rig_poll(d.node[1]);
	assert_int_equal(m.done, 1);
	assert_int_equal(m.err, -ECANCELED);
	duo_turns(&d, 5);
	message_free(&m, &d);
	assert_true(transfer(&d, BIG, 1, 1));
	duo_close(&d);
}

/* What the link has found to have failed by itself, likewise. */
static void a_message_that_fails_waits_for_its_helper(void **state)
{
	struct late_helper h = { 0 };
	struct message m;
	struct duo d;

	taken_by_one_who_stops(&d, &m, &h);
	d.link[0]->base.ops->unoffer(&d.link[0]->base, &m.offer);
	m.blob_len = 0;
	hd_shm_fetch_of(&m.get)->seg[0].addr = 64; /* the memory is not there any more */
	atomic_store(&h.copy->returned,
		     0); /* which unoffer has written, and one who has been stopped would not */
	for (int i = 0; i < 1000; i++)
		rig_poll(d.node[1]);
	assert_int_equal(m.done, 0);
	atomic_store(&h.copy->returned, hd_shm_tagged(d.link[1]->copying.gen[0], 1));
	rig_poll(d.node[1]);
	assert_int_equal(m.done, 1);
	assert_int_equal(m.err, -ECANCELED);
	message_free(&m, &d);
	duo_close(&d);
}

/*
 * The link breaks, and is not taken apart, nor anything that is under way over it, before
 * the helper is out of it.
 */
static void a_broken_link_waits_for_a_stopped_helper(void **state)
{
	const struct hd_link_ops *ops;
	struct late_helper h = { 0 };
	struct message m;
	struct duo d;

	taken_by_one_who_stops(&d, &m, &h);
	ops = d.link[1]->base.ops;
	hd_shm_link_fail(d.link[1], -EPROTO, "a test");
	assert_false(ops->settled(&d.link[1]->base));
	assert_int_equal(unget(&d, &m, false), -EINPROGRESS);
	assert_false(ops->settled(&d.link[1]->base));
	atomic_store(&h.copy->helped, h.helped);
	assert_true(ops->settled(&d.link[1]->base));
	assert_int_equal(unget(&d, &m, false), 0);
	assert_int_equal(m.done, 0);
	duo_turns(&d, 10);
	m.blob_len = 0;
	message_free(&m, &d);
	duo_close(&d);
}

static pid_t a_dead_process(void)
{
	pid_t pid = fork();

	if (pid == 0)
		_exit(0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	return pid;
}

/* A dead helper is out of it, whatever it had said, and whether or not there is a pidfd. */
static void a_dead_helper_is_not_waited_for(void **state)
{
	for (int has_pidfd = 0; has_pidfd < 2; has_pidfd++) {
		struct late_helper h = { 0 };
		struct message m;
		struct duo d;
		int own, dead[2];

		taken_by_one_who_stops(&d, &m, &h);
		assert_int_equal(unget(&d, &m, false), -EINPROGRESS);
		assert_int_equal(pipe(dead), 0);
		own = d.link[1]->peer.pidfd.fd;
		if (has_pidfd) {
			close(dead[1]);
			/* readable, as the pidfd of a dead process is */
			d.link[1]->peer.pidfd.fd = dead[0];
		} else {
			close(dead[1]);
			d.link[1]->peer.pidfd.fd = -1;
			d.link[1]->peer.pid = a_dead_process();
		}
		assert_int_equal(unget(&d, &m, false), 0);
		d.link[1]->peer.pidfd.fd = own;
		d.link[1]->peer.pid = getpid();
		close(dead[0]);
		atomic_store(&h.copy->helped, h.helped);
		duo_turns(&d, 5);
		message_free(&m, &d);
		duo_close(&d);
	}
}

/* ---- lies ---- */

static void blob_is_refused(size_t len, size_t at, uint64_t value, size_t size)
{
	struct message m;
	struct duo d;

	duo_open(&d);
	message_make(&m, &d, 70000, 2, 1);
	memcpy(m.blob + at, &value, size);
	m.get.offer_len = len ? len : m.blob_len;
	assert_int_equal(message_get(&m, &d), -EPROTO);
	assert_true(d.end[1]->was_down);
	assert_int_equal(d.end[1]->err, -EPROTO);
	assert_false(d.node[0]->complaint[0]);
	message_free(&m, &d);
	duo_turns(&d, 10);
	assert_true(d.end[0]->closed && d.end[1]->closed);
	duo_close(&d);
}

static void impossible_offers_end_the_link(void **state)
{
	blob_is_refused(7, 0, 0, 0);		/* shorter than its beginning */
	blob_is_refused(8 + 16, 0, 0, 0);	/* fewer segments than it says */
	blob_is_refused(HD_OFFER_MAX, 0, 0, 0); /* more */
	blob_is_refused(0, 4, 6, 4);		/* more segments than there is room for */
	blob_is_refused(0, 4, UINT32_MAX, 4);
	blob_is_refused(0, 16, 5, 8);	       /* segments shorter than the message */
	blob_is_refused(0, 16, UINT64_MAX, 8); /* or longer than memory, all together */
}

/* Node 1 asks for help that nobody would ask for. */
static void help_is_refused(struct hd_pkt pkt, struct hd_shm_seg *seg, size_t len)
{
	struct message m;
	struct duo d;

	duo_open(&d);
	message_make(&m, &d, 70000, 1, 1);
	pkt.kind = pkt.kind ? pkt.kind : HD_SHM_PKT_HELP;
	memcpy(&pkt.op, m.blob, sizeof(pkt.op));
	assert_int_equal(hd_shm_link_send(d.link[1], &pkt, seg, len), 0);
	duo_turns(&d, 1);
	assert_true(d.end[0]->was_down);
	assert_int_equal(d.end[0]->err, -EPROTO);
	duo_turns(&d, 10);
	assert_true(d.end[0]->closed && d.end[1]->closed);
	m.blob_len = 0;
	message_free(&m, &d);
	duo_close(&d);
}

static void impossible_requests_for_help_end_the_link(void **state)
{
	struct hd_shm_seg seg[HD_SHM_SEGS + 1] = { { 4096, 70000 }, { 0, UINT64_MAX } };

	help_is_refused((struct hd_pkt){ .dst = HD_SHM_COPIES, .tag = 70000 }, seg, 16);
	help_is_refused((struct hd_pkt){ .dst = UINT32_MAX, .tag = 70000 }, seg, 16);
	help_is_refused((struct hd_pkt){ .tag = 0 }, seg, 16);
	help_is_refused((struct hd_pkt){ .tag = 70001 }, seg, 16);
	help_is_refused((struct hd_pkt){ .tag = UINT64_MAX }, seg, 16);
	help_is_refused((struct hd_pkt){ .tag = 70000 }, seg, 15);
	help_is_refused((struct hd_pkt){ .tag = 70000 }, seg, 0);
	help_is_refused((struct hd_pkt){ .tag = 70000 }, seg, 32);
	help_is_refused((struct hd_pkt){ .tag = 70000 }, seg, sizeof(seg));
	help_is_refused((struct hd_pkt){ .tag = 70000, .kind = HD_SHM_PKT_FENCE + 1 }, seg, 16);
}

/*
 * A helper that claims too much, or too little, or gives back what is not there, spoils
 * its own message at most.
 */
static void a_lying_helper_does_no_harm(void **state)
{
	static const uint64_t lies[] = { 1, 2, 5, 1000, UINT32_MAX - 1, UINT32_MAX };

	for (unsigned i = 0; i < 3 * 6; i++) {
		struct message m;
		struct duo d;
		struct hd_shm_copy *copy;
		uint64_t value;

		duo_open(&d);
		message_make(&m, &d, BIG, 1, 1);
		assert_int_equal(message_get(&m, &d), 0);
		copy = &d.link[1]->mem->copy[d.link[1]->side][0];
		value = (uint64_t)d.link[1]->copying.gen[0] << 32 | lies[i / 3];
		atomic_store(i % 3 == 0 ? &copy->claim : i % 3 == 1 ? &copy->helped : &copy->returned, value);
		duo_turns(&d, 40);
		if (!m.done && unget(&d, &m, false)) {
			/* it makes turns, so it is not in the middle of a copy */
			atomic_fetch_add(&hd_page_tables(d.node[0]->page)->turns, 16);
			rig_poll(d.node[1]);
			assert_int_equal(m.done, 1);
		}
		message_free(&m, &d);
		assert_true(transfer(&d, BIG, 1, 1));
		duo_close(&d);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_withdrawn_offer_is_not_delivered),
		cmocka_unit_test(nobody_writes_after_unget),
		cmocka_unit_test(a_helper_that_was_put_aside_is_waited_for),
		cmocka_unit_test(a_helper_that_was_stopped_keeps_the_memory),
		cmocka_unit_test(a_message_that_fails_waits_for_its_helper),
		cmocka_unit_test(a_broken_link_waits_for_a_stopped_helper),
		cmocka_unit_test(a_dead_helper_is_not_waited_for),
		cmocka_unit_test(impossible_offers_end_the_link),
		cmocka_unit_test(impossible_requests_for_help_end_the_link),
		cmocka_unit_test(a_lying_helper_does_no_harm),
	};

	return cmocka_run_group_tests_name("shm_withdrawn", tests, NULL, NULL);
}
