/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * One-sided operations: a process that copies, or is copied to, has ended, or
 * is another program by now.
 */
#include "base/test_page.h"
#include "transport/shm/copy.h"
#include "transport/shm_direct.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

static void a_dead_process_ends_the_link(void **state)
{
	uint8_t near[64] = { 0 }, far[64] = { 1 };
	struct duo d;

	direct_scene(&d);
	vm_seam.error = ESRCH;
	assert_int_equal(direct_one(&d, near, far, 64, true), -ENOTCONN);
	duo_turns(&d, 10);
	assert_true(d.end[0]->was_down);
	assert_int_equal(d.end[0]->err, -ECONNRESET);
	duo_close(&d);
}

static int pidfd_of_a_dead_one(void)
{
	pid_t pid = fork();
	int fd;

	if (pid == 0)
		_exit(0);
	fd = (int)syscall(SYS_pidfd_open, pid, 0);
	assert_true(fd >= 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	return fd;
}

/* A process that has just become another program, and stays it until it is killed. */
static pid_t another_program(void)
{
	int execs[2];
	char byte;
	pid_t pid;

	assert_int_equal(pipe2(execs, O_CLOEXEC), 0);
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		execlp("sleep", "sleep", "1000", NULL);
		_exit(1);
	}
	close(execs[1]);
	assert_int_equal(read(execs[0], &byte, 1), 0); /* it is one by now */
	close(execs[0]);
	return pid;
}

/*
 * Nothing is written into a program that the other process has become: no call is made that could.
 * Whether its page never had a witness, or one that the kernel has marked.
 */
static void another_program_is_not_written_to(void **state)
{
	enum {
		LONG = (256 << 10) + 8 /* its last bytes may go apart */
	};
	static const size_t lens[] = { 64, LONG };
	static const uint32_t words[] = { 0, 4711 | FUTEX_OWNER_DIED };
	static uint8_t near[LONG], far[LONG];
	struct duo d;

	for (size_t i = 0; i < 4; i++) {
		struct hd_witness *witness;
		uint32_t word;
		pid_t pid;

		direct_scene(&d);
		witness = &hd_node_page(d.node[1])->witness;
		assert_int_equal(direct_one(&d, near, far, 64, true), 64);
		pid = another_program();
		d.link[0]->peer.pid = pid;
		word = atomic_load(&witness->word);
		atomic_store(&witness->word, words[i / 2]);
		vm_seam.calls = 0;
		assert_int_equal(direct_one(&d, near, far, lens[i % 2], true), -ENOTCONN);
		assert_int_equal(vm_seam.calls, 0);
		kill(pid, SIGKILL);
		assert_int_equal(waitpid(pid, NULL, 0), pid);
		atomic_store(&witness->word, word);
		duo_close(&d);
	}
}

static void the_dead_are_not_waited_for(void **state)
{
	struct duo d;
	int fd = pidfd_of_a_dead_one(), own;

	direct_scene(&d);
	atomic_store(&d.link[0]->own->direct_word, hd_shm_direct_word(MR_ROW, MR_STATE));
	assert_int_equal(hd_shm_settle(&d.port[1]->base, MR_ROW), -EAGAIN);
	own = d.link[1]->peer.pidfd.fd;
	d.link[1]->peer.pidfd.fd = fd;
	assert_int_equal(hd_shm_settle(&d.port[1]->base, MR_ROW), 0);
	d.link[1]->peer.pidfd.fd = own;
	atomic_store(&d.link[0]->own->direct_word, 0);
	close(fd);
	duo_close(&d);
}

/*
 * In the middle of a copy from or to the region, where nothing has been told of
 * the process but its number.
 */
static void in_the_middle_without_a_pidfd(struct duo *d)
{
	direct_scene(d);
	atomic_store(&d->link[0]->own->direct_word, hd_shm_direct_word(MR_ROW, MR_STATE));
	hd_watch_remove(d->node[1], &d->link[1]->peer.pidfd);
	close(d->link[1]->peer.pidfd.fd);
	d->link[1]->peer.pidfd.fd = -1;
	d->link[1]->peer.probed = false;
	assert_int_equal(hd_shm_settle(&d->port[1]->base, MR_ROW), -EAGAIN);
}

static void who_was_in_the_middle_has_died(struct duo *d)
{
	assert_int_equal(hd_shm_settle(&d->port[1]->base, MR_ROW), 0);
	d->link[1]->peer.pid = getpid();
	atomic_store(&d->link[0]->own->direct_word, 0);
	duo_close(d);
}

static void the_dead_are_known_without_a_pidfd(void **state)
{
	struct duo d;
	siginfo_t info;
	pid_t pid = fork();

	if (pid == 0)
		_exit(0);
	assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
	in_the_middle_without_a_pidfd(&d);
	d.link[1]->peer.pid = pid; /* its parent has not asked for it yet */
	who_was_in_the_middle_has_died(&d);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	in_the_middle_without_a_pidfd(&d);
	d.link[1]->peer.pid = pid;
	who_was_in_the_middle_has_died(&d);
	in_the_middle_without_a_pidfd(&d);
	d.link[1]->peer.born = hd_shm_born(getpid());
	assert_int_not_equal(d.link[1]->peer.born, 0);
	assert_int_equal(hd_shm_settle(&d.port[1]->base, MR_ROW), -EAGAIN);
	d.link[1]->peer.born++; /* the number has been given to another one */
	who_was_in_the_middle_has_died(&d);
}

/* What another program was in the middle of, it is not any more. */
static void another_program_is_not_waited_for(void **state)
{
	pid_t pid = another_program();
	struct duo d;

	in_the_middle_without_a_pidfd(&d);
	d.link[1]->peer.probed = true;
	assert_int_equal(hd_shm_settle(&d.port[1]->base, MR_ROW), -EAGAIN);
	d.link[1]->peer.pid = pid;
	who_was_in_the_middle_has_died(&d);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* The owner closes the link in the middle of a copy, and only then the region. */
static void a_closed_link_does_not_hide_who_copies(void **state)
{
	uint8_t near[64] = { 0 }, far[64] = { 1 };
	struct duo d;

	direct_scene(&d);
	atomic_store(&d.link[0]->own->direct_word, hd_shm_direct_word(MR_ROW, MR_STATE));
	rig_end_close(d.end[1], -ECONNABORTED);
	rig_poll(d.node[1]);
	assert_true(d.end[1]->closed);
	assert_int_equal(hd_shm_settle(&d.port[1]->base, MR_ROW), -EAGAIN);
	assert_int_equal(hd_shm_settle(&d.port[1]->base, MR_ROW + 1), 0);
	/* and whoever begins now is turned away, though the region stands */
	assert_int_equal(direct_one(&d, near, far, 64, true), -ENOTCONN);
	assert_int_equal(vm_seam.calls, 0);
	assert_int_equal(hd_shm_settle(&d.port[1]->base, MR_ROW), 0);
	assert_true(LIST_EMPTY(&d.port[1]->late));
	duo_turns(&d, 10);
	duo_close(&d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_dead_process_ends_the_link),
		cmocka_unit_test(another_program_is_not_written_to),
		cmocka_unit_test(the_dead_are_not_waited_for),
		cmocka_unit_test(the_dead_are_known_without_a_pidfd),
		cmocka_unit_test(another_program_is_not_waited_for),
		cmocka_unit_test(a_closed_link_does_not_hide_who_copies),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
