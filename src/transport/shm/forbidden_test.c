/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Copies that one end may not make, or neither; from the start, or from some moment on. */
#include "base/config.h"
#include "forbid.h"
#include "skip.h"
#include "transport/shm/copy.h"
#include "transport/shm_duo.h"
#include "transport/shm_message.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>

static void refuse(struct hd_shm_link *link, int error)
{
	atomic_store(&link->own->direct, HD_SHM_DIRECT_REFUSED | (uint32_t)error << 8);
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
	skip_unless(WEXITSTATUS(status) != 99, FORBID_NEEDS);
	assert_int_equal(WEXITSTATUS(status), 0);
}

static bool in_the_middle(struct duo *d, int call, int other_call)
{
	struct message m;
	bool fine;

	message_make(&m, d, BIG, 3, 2);
	if (message_get(&m, d))
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
	skip_unless(!WIFEXITED(status) || WEXITSTATUS(status) != 99, FORBID_NEEDS);
	assert_int_equal(status, 0);
}

/* A message from a hole, which the kernel reads for nobody. */
static uint8_t *hole_message(struct duo *d, struct message *m, size_t len)
{
	uint8_t *hole = mmap(NULL, len, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	message_make(m, d, len, 1, 1);
	d->link[0]->base.ops->unoffer(&d->link[0]->base, &m->offer);
	m->from[0].iov_base = hole;
	m->offer.iov = m->from;
	m->blob_len = d->link[0]->base.ops->offer(&d->link[0]->base, &m->offer, m->blob);
	assert_int_not_equal(m->blob_len, 0);
	return hole;
}

/* It has been told that it fails, and no other message has. */
static void hole_fails(struct duo *d, struct message *m, uint8_t *hole)
{
	size_t len = m->len;

	assert_int_equal(m->done, 1);
	assert_true(m->err < 0);
	message_free(m, d);
	munmap(hole, len);
	assert_true(transfer(d, len, 1, 1));
}

/* Of each size one, while the receiver looks as it does before it sleeps, or does not. */
static void holes_fail(bool looks)
{
	struct message m;
	uint8_t *hole;
	struct duo d;

	duo_open(&d);
	for (unsigned i = 0; i < SIZES; i++) {
		hole = hole_message(&d, &m, sizes[i]);
		assert_int_equal(message_get(&m, &d), 0);
		for (int turns = 0; turns < 50; turns++) {
			rig_poll(d.node[0]);
			if (looks) {
				rig_arm(d.node[1]);
				rig_disarm(d.node[1]);
			}
			rig_poll(d.node[1]);
		}
		hole_fails(&d, &m, hole);
	}
	duo_close(&d);
}

static void unreachable_memory_fails_its_message_alone(void **state)
{
	holes_fail(false);
}

/* Likewise where the receiver goes to sleep when the sender cannot copy either. */
static void a_sleeper_hears_that_nobody_can_copy(void **state)
{
	holes_fail(true);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
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
		cmocka_unit_test(a_sleeper_hears_that_nobody_can_copy),
	};

	return cmocka_run_group_tests_name("shm_forbidden", tests, NULL, NULL);
}
