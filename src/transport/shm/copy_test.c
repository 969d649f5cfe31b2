/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * The cooperative copy, above all what happens when one side may not copy, from the beginning or in the
 * middle.
 */
#include "base/config.h"
#include "transport/forbid.h"
#include "transport/shm/copy.h"
#include "transport/shm_duo.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define BIG (3u << 20)
#define LAST_CHUNK ((hd_shm_chunks(BIG) - 1) * hd_shm_chunk(BIG))

/* One message on its way from node 0 to node 1. */
struct message {
	struct hd_pull pull; /* first */
	struct hd_offer offer;
	uint8_t blob[HD_OFFER_MAX];
	size_t blob_len;
	struct iovec from[HD_IOV_MAX], to[HD_IOV_MAX];
	uint8_t *sent, *received;
	size_t len;
	int done, err;
};

static void message_done(struct hd_pull *pull, int err)
{
	struct message *m = (struct message *)pull;

	m->done++;
	m->err = err;
}

/* Segments of unequal length, the second of them empty. */
static int cut(uint8_t *at, size_t len, int count, struct iovec *iov)
{
	for (int i = 0; i < count; i++) {
		size_t n = i == count - 1 ? len : i == 1 ? 0 : len / 3;

		iov[i] = (struct iovec){ at, n };
		at += n;
		len -= n;
	}
	return count;
}

/* Offer len bytes in so many segments at each end. */
static void message_make(struct message *m, struct duo *d, size_t len, int segs_from, int segs_to)
{
	memset(m, 0, sizeof(*m));
	m->len = len;
	m->sent = malloc(len);
	m->received = malloc(len);
	assert_true(m->sent && m->received);
	rig_fill(m->sent, 0, len, 77);
	memset(m->received, 0, len);
	m->offer = (struct hd_offer){ .iov = m->from,
				      .count = cut(m->sent, len, segs_from, m->from),
				      .len = len };
	m->blob_len = d->link[0]->base.ops->offer(&d->link[0]->base, &m->offer, m->blob);
	m->pull.iov = m->to;
	m->pull.count = cut(m->received, len, segs_to, m->to);
	m->pull.len = len;
	m->pull.offer = m->blob;
	m->pull.offer_len = m->blob_len;
	m->pull.done = message_done;
}

static int message_pull(struct message *m, struct duo *d)
{
	return d->link[1]->base.ops->pull(&d->link[1]->base, &m->pull);
}

static void message_free(struct message *m, struct duo *d)
{
	if (m->blob_len && d->end[0]->link)
		d->link[0]->base.ops->unoffer(&d->link[0]->base, &m->offer);
	free(m->sent);
	free(m->received);
}

static bool message_arrives(struct message *m, struct duo *d)
{
	if (!m->blob_len || message_pull(m, d))
		return false;
	for (int i = 0; i < 1000 && !m->done; i++)
		duo_turns(d, 1);
	return m->done == 1 && m->err == 0 && memcmp(m->sent, m->received, m->len) == 0;
}

static bool transfer(struct duo *d, size_t len, int segs_from, int segs_to)
{
	struct message m;
	bool arrived;

	message_make(&m, d, len, segs_from, segs_to);
	arrived = message_arrives(&m, d);
	message_free(&m, d);
	return arrived;
}

static void refuse(struct hd_shm_link *link, int error)
{
	atomic_store(&link->own->direct, HD_SHM_DIRECT_REFUSED | (uint32_t)error << 8);
}

static const size_t sizes[] = { 1, 100, 4096, 65535, 65536, 65537, 131072, 300001, 1 << 20, BIG, BIG + 1 };
#define SIZES (sizeof(sizes) / sizeof(sizes[0]))

/* ---- both sides may copy ---- */

static void every_length_in_any_number_of_segments(void **state)
{
	static const int segments[] = { 1, 2, 5, 6, HD_IOV_MAX };
	struct duo d;

	duo_open(&d);
	for (unsigned i = 0; i < SIZES; i++)
		for (unsigned from = 0; from < 5; from++)
			for (unsigned to = 0; to < 5; to++)
				assert_true(transfer(&d, sizes[i], segments[from], segments[to]));
	duo_close(&d);
}

/* Where the next packet waits already, and the message is not too long for that. */
static void one_end_copies_where_many_come(void **state)
{
	static const size_t lens[] = { HD_SHM_CHUNK_ONE + 1, 48u << 10, HD_SHM_SINGLE, HD_SHM_SINGLE + 1 };
	struct duo d;

	duo_open(&d);
	for (int i = 0; i < 4; i++)
		for (int waits = 0; waits < 2; waits++) {
			struct message m;

			message_make(&m, &d, lens[i], 2, 3);
			d.end[0]->plan = (struct rig_plan){
				.packets = (uint32_t)waits, .most = 8, .least = 8, .how = RIG_SEND
			};
			rig_poll(d.node[0]);
			assert_int_equal(message_pull(&m, &d), 0);
			assert_int_equal(m.done, waits && i < 3);
			while (!m.done)
				duo_turns(&d, 1);
			assert_int_equal(m.err, 0);
			assert_memory_equal(m.sent, m.received, lens[i]);
			duo_turns(&d, 2);
			message_free(&m, &d);
		}
	duo_close(&d);
}

/* ---- a row of requests ---- */

enum {
	ROW = 7
};

/* Node 1 has so many messages to fetch, of so many segments at its end, and sees that the next request waits already. */
static void row_make(struct message m[ROW], struct duo *d, size_t len, int segs)
{
	d->end[0]->plan = (struct rig_plan){ .packets = 1, .how = RIG_RTS, .message_most = 100 };
	rig_poll(d->node[0]);
	for (int i = 0; i < ROW; i++) {
		message_make(&m[i], d, len, 1, segs);
		assert_int_equal(message_pull(&m[i], d), 0);
		assert_int_equal(m[i].done, 0);
	}
	assert_false(TAILQ_EMPTY(&d->link[1]->row));
	assert_true(TAILQ_EMPTY(&d->link[1]->pulls));
}

static void row_free(struct message m[ROW], struct duo *d)
{
	duo_turns(d, 4);
	for (int i = 0; i < ROW; i++)
		message_free(&m[i], d);
}

static void requests_in_a_row_are_fetched_together(void **state)
{
	static const struct {
		size_t len;
		int segs, calls;
	} how[] = { { 8192, 1, 1 }, { HD_SHM_SINGLE, 1, 2 }, { 30000, HD_IOV_MAX, 4 } };
	struct message m[ROW];
	struct duo d;

	duo_open(&d);
	for (unsigned k = 0; k < 3; k++) {
		row_make(m, &d, how[k].len, how[k].segs);
		for (int i = 0; i < how[k].calls; i++) {
			assert_false(m[ROW - 1].done);
			rig_poll(d.node[1]);
		}
		for (int i = 0; i < ROW; i++) {
			assert_int_equal(m[i].done, 1);
			assert_int_equal(m[i].err, 0);
			assert_memory_equal(m[i].sent, m[i].received, how[k].len);
		}
		row_free(m, &d);
		assert_true(TAILQ_EMPTY(&d.link[1]->row));
		assert_int_equal(d.link[1]->row_bytes, 0);
		assert_int_equal(d.link[1]->portion, HD_SHM_PORTION);
	}
	duo_close(&d);
}

/* What is wrong with one of them is its own affair: its memory is not there, it is withdrawn, it is given up. */
static void others_of_a_row_arrive(void **state)
{
	enum {
		HOLE,
		WITHDRAWN,
		GIVEN_UP,
		KINDS
	};
	uint8_t *hole = mmap(NULL, 40000, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct message m[ROW];
	struct duo d;

	duo_open(&d);
	for (int kind = 0; kind < KINDS; kind++)
		for (int which = 0; which < ROW; which++) {
			row_make(m, &d, 40000, 1);
			if (kind == HOLE)
				m[which].to[0].iov_base = hole;
			else if (kind == WITHDRAWN)
				d.link[0]->base.ops->unoffer(&d.link[0]->base, &m[which].offer);
			else
				d.link[1]->base.ops->unpull(&d.link[1]->base, &m[which].pull);
			m[which].blob_len = kind == WITHDRAWN ? 0 : m[which].blob_len;
			duo_turns(&d, 20);
			for (int i = 0; i < ROW; i++) {
				assert_int_equal(m[i].done, i != which || kind != GIVEN_UP);
				assert_int_equal(m[i].err != 0, i == which && kind != GIVEN_UP);
				assert_true(i == which || !memcmp(m[i].sent, m[i].received, 40000));
			}
			for (int i = 0; kind == GIVEN_UP && i < 40000; i++)
				assert_int_equal(m[which].received[i], 0);
			row_free(m, &d);
		}
	duo_close(&d);
	munmap(hole, 40000);
}

/* A link that ends takes its row with it. */
static void a_row_goes_with_its_link(void **state)
{
	struct message m[ROW];
	struct duo d;

	duo_open(&d);
	row_make(m, &d, 40000, 1);
	hd_shm_link_fail(d.link[1], -ECONNRESET, "a test");
	duo_turns(&d, 4);
	for (int i = 0; i < ROW; i++) {
		assert_int_equal(m[i].done, 0);
		m[i].blob_len = 0;
		message_free(&m[i], &d);
	}
	duo_close(&d);
}

/* But what had been sent behind it is delivered before, although it was kept waiting for the row. */
static void what_waits_behind_a_row_is_delivered_at_the_end(void **state)
{
	struct message m[ROW];
	struct duo d;

	duo_open(&d);
	row_make(m, &d, HD_SHM_SINGLE, 1);
	assert_int_equal(d.link[1]->portion, 0);
	d.end[0]->plan = (struct rig_plan){ .packets = 3, .how = RIG_SEND, .most = 8, .may_fail = true };
	rig_poll(d.node[0]);
	hd_shm_link_end(d.link[1], -ECONNRESET, "a test");
	for (int i = 0; i < 10; i++)
		rig_poll(d.node[1]);
	assert_true(d.end[1]->was_down);
	assert_int_equal(d.end[1]->rx, d.end[0]->tx);
	duo_turns(&d, 4);
	for (int i = 0; i < ROW; i++) {
		m[i].blob_len = 0;
		message_free(&m[i], &d);
	}
	duo_close(&d);
}

static void both_ends_copy(void **state)
{
	struct message m;
	struct duo d;

	duo_open(&d);
	message_make(&m, &d, BIG, 1, 1);
	assert_int_equal(message_pull(&m, &d), 0);
	rig_poll(d.node[0]); /* HELP comes, and the last chunk is written */
	assert_false(TAILQ_EMPTY(&d.link[0]->helps));
	assert_int_equal(TAILQ_FIRST(&d.link[0]->helps)->helped, 1);
	assert_true(rig_same(m.received + LAST_CHUNK, LAST_CHUNK, BIG - LAST_CHUNK, 77));
	assert_false(rig_same(m.received, 0, hd_shm_chunk(BIG), 77));
	rig_poll(d.node[1]); /* and the first one is read */
	assert_true(rig_same(m.received, 0, hd_shm_chunk(BIG), 77));
	while (!m.done)
		duo_turns(&d, 1);
	assert_int_equal(m.err, 0);
	assert_memory_equal(m.sent, m.received, BIG);
	message_free(&m, &d);
	duo_close(&d);
}

/* Its own half of all messages comes before the other half of the first. */
static void each_end_begins_with_its_own_half(void **state)
{
	const uint32_t chunks = (uint32_t)hd_shm_chunks(BIG);
	struct hd_shm_help *h;
	struct message m[2];
	struct duo d;

	duo_open(&d);
	for (int i = 0; i < 2; i++) {
		message_make(&m[i], &d, BIG, 1, 1);
		assert_int_equal(message_pull(&m[i], &d), 0);
	}
	for (uint32_t i = 0; i < chunks; i++)
		rig_poll(d.node[0]);
	h = TAILQ_FIRST(&d.link[0]->helps);
	assert_int_equal(h->helped, chunks / 2);
	assert_int_equal(TAILQ_NEXT(h, entry)->helped, chunks / 2);
	rig_poll(d.node[0]); /* but then it does what is left */
	assert_int_equal(h->helped, chunks / 2 + 1);
	while (!m[0].done || !m[1].done)
		rig_poll(d.node[1]);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(m[i].err, 0);
		assert_memory_equal(m[i].sent, m[i].received, BIG);
		message_free(&m[i], &d);
	}
	duo_close(&d);
}

/* Both may write the claim: a helper that counts it down has the receiver copy everything, and nothing beyond. */
static void a_claim_that_goes_back_does_no_harm(void **state)
{
	struct message m;
	struct duo d;

	duo_open(&d);
	message_make(&m, &d, BIG, 1, 1);
	assert_int_equal(message_pull(&m, &d), 0);
	for (uint64_t i = 0; i < hd_shm_chunks(BIG) && !m.done; i++) {
		atomic_store(&hd_shm_copies(d.link[1], true)[0].claim,
			     hd_shm_tagged(d.link[1]->copy_gen[0], 0));
		rig_poll(d.node[1]);
	}
	assert_true(m.done);
	assert_int_equal(m.err, 0);
	assert_memory_equal(m.sent, m.received, BIG);
	message_free(&m, &d);
	duo_close(&d);
}

static void either_end_can_do_it_all(void **state)
{
	struct message m;
	struct duo d;

	duo_open(&d);
	for (int alone = 0; alone < 2; alone++) {
		int last = 0;

		message_make(&m, &d, BIG, 2, 3);
		assert_int_equal(message_pull(&m, &d), 0);
		for (; last < 200 && !m.done; last++)
			rig_poll(d.node[last < 100 ? alone : 1]);
		assert_int_equal(m.done, 1);
		assert_memory_equal(m.sent, m.received, BIG);
		duo_turns(&d, 5);
		message_free(&m, &d);
	}
	duo_close(&d);
}

static void more_messages_than_copies(void **state)
{
	enum {
		MESSAGES = 3 * HD_SHM_COPIES
	};
	static struct message m[MESSAGES];
	struct duo d;

	duo_open(&d);
	for (int i = 0; i < MESSAGES; i++) {
		message_make(&m[i], &d, 200000, 1 + i % 7, 1 + i % 3);
		assert_int_equal(message_pull(&m[i], &d), 0);
	}
	duo_turns(&d, MESSAGES * 6);
	for (int i = 0; i < MESSAGES; i++) {
		assert_int_equal(m[i].done, 1);
		assert_int_equal(m[i].err, 0);
		assert_memory_equal(m[i].sent, m[i].received, m[i].len);
		message_free(&m[i], &d);
	}
	assert_int_equal(d.link[1]->copy_used, 0);
	duo_close(&d);
}

static void offers_are_bounded_and_come_back(void **state)
{
	static struct message m[HD_SHM_OFFERS + 10];
	int made = 0;
	struct duo d;

	duo_open(&d);
	for (int round = 0; round < 3; round++) {
		for (made = 0; made < (int)HD_SHM_OFFERS + 10; made++) {
			message_make(&m[made], &d, 8, 1, 1);
			if (!m[made].blob_len)
				break;
		}
		assert_in_range(made, HD_SHM_OFFERS / 2, HD_SHM_OFFERS);
		assert_true(message_arrives(&m[made - 1], &d));
		for (int i = 0; i <= made; i++)
			message_free(&m[i], &d);
	}
	assert_true(transfer(&d, BIG, 1, 1));
	duo_close(&d);
}

/* One thread sleeps with the node, another posts the receive that begins to fetch: the sleeper has to copy. */
static void a_sleeper_is_stirred_to_copy(void **state)
{
	struct message m;
	struct duo d;
	uint64_t n;

	duo_open(&d);
	duo_turns(&d, 20);
	message_make(&m, &d, BIG, 1, 1);
	for (int i = 0; i < 3 && rig_arm(d.node[1]); i++)
		rig_disarm(d.node[1]);
	assert_int_equal(read(d.node[1]->wake_fd, &n, sizeof(n)), -1);
	assert_int_equal(message_pull(&m, &d), 0);
	assert_int_equal(read(d.node[1]->wake_fd, &n, sizeof(n)), sizeof(n));
	rig_disarm(d.node[1]);
	for (int i = 0; i < 200 && !m.done; i++)
		duo_turns(&d, 1);
	assert_memory_equal(m.sent, m.received, BIG);
	message_free(&m, &d);
	duo_close(&d);
}

/* ---- one side may not ---- */

static void what_one_side_may_not_the_other_does(void **state)
{
	for (int who = 0; who < 2; who++) {
		struct duo d;

		duo_open(&d);
		refuse(d.link[who], EPERM);
		for (unsigned i = 0; i < SIZES; i++)
			assert_true(transfer(&d, sizes[i], 2, 2));
		duo_close(&d);
	}
}

static void many_segments_need_a_sender_that_may(void **state)
{
	struct duo d;

	duo_open(&d);
	refuse(d.link[0], EPERM);
	assert_true(transfer(&d, BIG, 5, 1));
	assert_false(transfer(&d, BIG, 6, 1));
	duo_close(&d);
}

static void nothing_is_offered_when_neither_may(void **state)
{
	struct message m;
	struct duo d;

	duo_open(&d);
	refuse(d.link[0], EPERM);
	refuse(d.link[1], EPERM);
	message_make(&m, &d, BIG, 1, 1);
	assert_int_equal(m.blob_len, 0);
	message_free(&m, &d);
	duo_close(&d);
}

static void switched_off_by_one_is_off_for_both(void **state)
{
	for (int who = 0; who < 2; who++) {
		struct message m;
		struct duo d;

		duo_open(&d);
		atomic_store(&d.link[who]->own->direct, HD_SHM_DIRECT_OFF);
		message_make(&m, &d, BIG, 1, 1);
		assert_int_equal(m.blob_len, 0);
		message_free(&m, &d);
		for (int i = 0; i < 2; i++) {
			hd_shm_link_show(d.link[i]);
			assert_int_equal(d.link[i]->base.row->direct_out, HD_DIRECT_OFF);
			assert_int_equal(d.link[i]->base.row->direct_in, HD_DIRECT_OFF);
		}
		duo_close(&d);
	}
}

static void the_setting_switches_off(void **state)
{
	struct message m;
	struct duo d;

	setenv("HEDDLE_DIRECT_COPY", "no", 1);
	hd_config_load();
	duo_open(&d);
	message_make(&m, &d, BIG, 1, 1);
	assert_int_equal(m.blob_len, 0);
	assert_int_equal(d.link[0]->base.row->direct_out, HD_DIRECT_OFF);
	message_free(&m, &d);
	duo_close(&d);
	unsetenv("HEDDLE_DIRECT_COPY");
	hd_config_load();
}

static void the_row_tells_what_works(void **state)
{
	struct duo d;

	duo_open(&d);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(d.link[i]->base.row->direct_out, HD_DIRECT_YES);
		assert_int_equal(d.link[i]->base.row->direct_in, HD_DIRECT_YES);
		assert_int_equal(d.link[i]->base.row->peer_pid, getpid());
	}
	duo_close(&d);
}

/* ---- the kernel changes its mind: each of these runs in a child, for a filter stays ---- */

static void forbid_or_skip(int call, int error)
{
	if (!forbid(call, error))
		_exit(99);
}

/* The result of the child's story as exit status: 0 good, 99 this kernel has no seccomp filters. */
static void in_a_child(bool (*story)(struct duo *d))
{
	int status;
	pid_t pid = fork();

	assert_int_not_equal(pid, -1);
	if (pid == 0) {
		struct duo d;

		duo_open(&d);
		if (!story(&d))
			_exit(1);
		if (d.node[0]->complaint[0] || d.node[1]->complaint[0])
			_exit(2);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 99)
		skip();
	assert_int_equal(WEXITSTATUS(status), 0);
}

static bool in_the_middle(struct duo *d, int call, int other_call)
{
	struct message m;
	bool fine;

	message_make(&m, d, BIG, 3, 2);
	if (message_pull(&m, d))
		return false;
	duo_turns(d, 2);
	forbid_or_skip(call, EPERM);
	if (other_call)
		forbid_or_skip(other_call, ENOSYS);
	for (int i = 0; i < 100 && !m.done; i++)
		duo_turns(d, 1);
	if (other_call)
		fine = m.done == 1 && m.err < 0;
	else
		fine = m.done == 1 && !m.err && memcmp(m.sent, m.received, BIG) == 0;
	message_free(&m, d);
	return fine;
}

static bool reading_story(struct duo *d)
{
	return in_the_middle(d, SYS_process_vm_readv, 0) &&
	       d->link[1]->base.row->direct_out == HD_DIRECT_REFUSED && transfer(d, 100, 1, 1) &&
	       transfer(d, BIG, 2, 2);
}

static bool writing_story(struct duo *d)
{
	return in_the_middle(d, SYS_process_vm_writev, 0) &&
	       d->link[0]->base.row->direct_out == HD_DIRECT_REFUSED && transfer(d, 100, 1, 1) &&
	       transfer(d, BIG, 2, 2);
}

static bool neither_story(struct duo *d)
{
	return in_the_middle(d, SYS_process_vm_readv, SYS_process_vm_writev) && !transfer(d, BIG, 1, 1) &&
	       !d->end[0]->was_down && !d->end[1]->was_down;
}

static void reading_forbidden_in_the_middle(void **state)
{
	in_a_child(reading_story);
}

static void writing_forbidden_in_the_middle(void **state)
{
	in_a_child(writing_story);
}

static void both_forbidden_in_the_middle(void **state)
{
	in_a_child(neither_story);
}

static void forbidden_from_the_start(void **state)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		struct duo d;

		forbid_or_skip(SYS_process_vm_readv, EPERM);
		duo_open(&d);
		_exit(d.link[0]->base.row->direct_out == HD_DIRECT_REFUSED &&
				      d.link[0]->base.row->direct_out_errno == EPERM &&
				      !transfer(&d, BIG, 1, 1)
			      ? 0
			      : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 99)
		skip();
	assert_int_equal(status, 0);
}

/* Memory that the kernel cannot reach for others fails this message, and no other. */
static void unreachable_memory_fails_its_message_alone(void **state)
{
	struct message m;
	struct duo d;

	duo_open(&d);
	for (unsigned i = 0; i < SIZES; i++) {
		uint8_t *hole = mmap(NULL, sizes[i], PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		message_make(&m, &d, sizes[i], 1, 1);
		d.link[0]->base.ops->unoffer(&d.link[0]->base, &m.offer);
		m.from[0].iov_base = hole;
		m.offer.iov = m.from;
		m.blob_len = d.link[0]->base.ops->offer(&d.link[0]->base, &m.offer, m.blob);
		assert_int_not_equal(m.blob_len, 0);
		if (message_pull(&m, &d) == 0)
			duo_turns(&d, 50);
		assert_true(!m.done || m.err < 0);
		message_free(&m, &d);
		munmap(hole, sizes[i]);
		assert_true(transfer(&d, sizes[i], 1, 1));
	}
	duo_close(&d);
}

/* ---- giving up ---- */

/* Withdraw the offer after some turns, or before it is pulled, and use the memory for something else. */
static void withdraw_after(struct duo *d, size_t len, int turns)
{
	struct message m;
	bool refused = false;

	message_make(&m, d, len, 1, 1);
	if (turns)
		assert_int_equal(message_pull(&m, d), 0);
	duo_turns(d, turns / 2);
	d->link[0]->base.ops->unoffer(&d->link[0]->base, &m.offer);
	m.blob_len = 0;
	memset(m.sent, 0, m.len);
	if (!turns)
		refused = message_pull(&m, d) != 0;
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

static void nobody_writes_after_unpull(void **state)
{
	struct duo d;

	duo_open(&d);
	for (int turns = 0; turns < 12; turns++) {
		struct message m;

		message_make(&m, &d, BIG, 1, 1);
		assert_int_equal(message_pull(&m, &d), 0);
		duo_turns(&d, turns / 2);
		if (turns % 2)
			rig_poll(d.node[0]);
		d.link[1]->base.ops->unpull(&d.link[1]->base, &m.pull);
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

	usleep(300000);
	atomic_store(&h->done, true);
	atomic_store(&h->copy->helped, h->helped);
	return NULL;
}

/* It has taken a chunk, and is kept waiting for a processor. */
static void a_helper_that_was_put_aside_is_waited_for(void **state)
{
	struct late_helper h = { 0 };
	struct message m;
	pthread_t thread;
	struct duo d;

	duo_open(&d);
	message_make(&m, &d, BIG, 1, 1);
	assert_int_equal(message_pull(&m, &d), 0);
	h.copy = &hd_shm_copies(d.link[1], true)[0];
	assert_true(hd_shm_take_chunk(&h.copy->claim, d.link[1]->copy_gen[0], hd_shm_chunks(BIG)));
	h.helped = hd_shm_tagged(d.link[1]->copy_gen[0], 1);
	assert_int_equal(pthread_create(&thread, NULL, helps_late, &h), 0);
	d.link[1]->base.ops->unpull(&d.link[1]->base, &m.pull);
	assert_true(atomic_load(&h.done));
	assert_int_equal(pthread_join(thread, NULL), 0);
	duo_turns(&d, 5);
	message_free(&m, &d);
	assert_true(transfer(&d, BIG, 1, 1));
	duo_close(&d);
}

/* ---- lies ---- */

static void blob_is_refused(size_t len, size_t at, uint64_t value, size_t size)
{
	struct message m;
	struct duo d;

	duo_open(&d);
	message_make(&m, &d, 70000, 2, 1);
	memcpy(m.blob + at, &value, size);
	m.pull.offer_len = len ? len : m.blob_len;
	assert_int_equal(message_pull(&m, &d), -EPROTO);
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
	help_is_refused((struct hd_pkt){ .tag = 70000, .kind = HD_SHM_PKT_MARK + 1 }, seg, 16);
}

/*
 * A helper that claims too much, or too little, or gives back what is not there, spoils its own message at
 * most.
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
		assert_int_equal(message_pull(&m, &d), 0);
		copy = &d.link[1]->mem->copy[d.link[1]->side][0];
		value = (uint64_t)d.link[1]->copy_gen[0] << 32 | lies[i / 3];
		atomic_store(i % 3 == 0 ? &copy->claim : i % 3 == 1 ? &copy->helped : &copy->returned, value);
		duo_turns(&d, 40);
		if (!m.done)
			d.link[1]->base.ops->unpull(&d.link[1]->base, &m.pull);
		message_free(&m, &d);
		assert_true(transfer(&d, BIG, 1, 1));
		duo_close(&d);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_length_in_any_number_of_segments),
		cmocka_unit_test(one_end_copies_where_many_come),
		cmocka_unit_test(requests_in_a_row_are_fetched_together),
		cmocka_unit_test(others_of_a_row_arrive),
		cmocka_unit_test(a_row_goes_with_its_link),
		cmocka_unit_test(what_waits_behind_a_row_is_delivered_at_the_end),
		cmocka_unit_test(both_ends_copy),
		cmocka_unit_test(each_end_begins_with_its_own_half),
		cmocka_unit_test(a_claim_that_goes_back_does_no_harm),
		cmocka_unit_test(either_end_can_do_it_all),
		cmocka_unit_test(more_messages_than_copies),
		cmocka_unit_test(offers_are_bounded_and_come_back),
		cmocka_unit_test(a_sleeper_is_stirred_to_copy),
		cmocka_unit_test(what_one_side_may_not_the_other_does),
		cmocka_unit_test(many_segments_need_a_sender_that_may),
		cmocka_unit_test(nothing_is_offered_when_neither_may),
		cmocka_unit_test(switched_off_by_one_is_off_for_both),
		cmocka_unit_test(the_setting_switches_off),
		cmocka_unit_test(the_row_tells_what_works),
		cmocka_unit_test(reading_forbidden_in_the_middle),
		cmocka_unit_test(writing_forbidden_in_the_middle),
		cmocka_unit_test(both_forbidden_in_the_middle),
		cmocka_unit_test(forbidden_from_the_start),
		cmocka_unit_test(unreachable_memory_fails_its_message_alone),
		cmocka_unit_test(a_withdrawn_offer_is_not_delivered),
		cmocka_unit_test(nobody_writes_after_unpull),
		cmocka_unit_test(a_helper_that_was_put_aside_is_waited_for),
		cmocka_unit_test(impossible_offers_end_the_link),
		cmocka_unit_test(impossible_requests_for_help_end_the_link),
		cmocka_unit_test(a_lying_helper_does_no_harm),
	};

	return cmocka_run_group_tests_name("shm_copy", tests, NULL, NULL);
}
