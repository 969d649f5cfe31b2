/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * No attack: a thousand processes of this host, of one user, talk with one that may have 4096
 * descriptors, all at the same time. What bounds strangers lets them in. `thousand NAME-FD LEAVE-FD
 * UID` is one of them: a node that reads from NAME-FD whom to call, and is there until LEAVE-FD
 * ends.
 */
#include "attack/attack.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define THOUSAND 1000
#define FILES 4096

/* ---- one of them ----------------------------------------------------------------------------- */

static void until_leave(int fd)
{
	struct pollfd leave = { .fd = fd, .events = POLLIN };

	while (poll(&leave, 1, -1) <= 0)
		;
}

/* It is one of very many on few processors. */
static void turn(struct side *s)
{
	const struct timespec a_while = { .tv_nsec = 20 * HD_NS_PER_MS };

	hd_node_poll(s->node);
	nanosleep(&a_while, NULL);
}

/* 0: it got in, and has stayed to the end. */
static int visit(int name_fd, int leave_fd)
{
	const uint64_t word = (uint64_t)getpid();
	struct sockaddr_storage name;
	struct side s;
	int rc;

	if (read(name_fd, &name, sizeof(name)) != sizeof(name))
		return 2;
	side_open(&s);
	assert_int_equal(hd_dest_get(s.node, (struct sockaddr *)&name, &s.to), 0);
	while ((rc = hd_send(s.ep, s.to, &word, sizeof(word), 1, 0, NULL,
			     TAGGED(HD_SEND_COMPLETE | HD_SEND_DELIVERED))) == -EAGAIN)
		turn(&s);
	while (!rc && !hd_cq_peek(s.cq))
		turn(&s);
	if (!rc && hd_cq_peek(s.cq)->err)
		rc = 3;
	if (!rc)
		until_leave(leave_fd);
	side_close(&s);
	return rc ? 1 : 0;
}

/* ---- whom they call -------------------------------------------------------------------------- */

struct scene {
	struct side a;
	struct rlimit files;
	int name[2], leave[2];
	pid_t pid[THOUSAND];
	uint64_t said[THOUSAND];
	int most_files;
};

static int setup(void **state)
{
	static struct scene s;
	struct rlimit few;

	memset(&s, 0, sizeof(s));
	getrlimit(RLIMIT_NOFILE, &s.files);
	few = s.files;
	few.rlim_cur = FILES;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	assert_int_equal(pipe2(s.name, O_CLOEXEC), 0);
	assert_int_equal(pipe2(s.leave, O_CLOEXEC), 0);
	side_open(&s.a);
	*state = &s;
	return 0;
}

static int teardown(void **state)
{
	struct scene *s = *state;

	for (int i = 0; i < 2; i++) {
		close(s->name[i]);
		close(s->leave[i]);
	}
	side_close(&s->a);
	while (wait(NULL) > 0)
		;
	setrlimit(RLIMIT_NOFILE, &s->files);
	return 0;
}

static void begin(struct scene *s, int i, unsigned uid)
{
	char name_fd[] = "3", leave_fd[] = "4", whose[16];
	char *argv[] = { "thousand", name_fd, leave_fd, whose, NULL };
	posix_spawn_file_actions_t files;
	extern char **environ;

	snprintf(whose, sizeof(whose), "%u", uid);
	posix_spawn_file_actions_init(&files);
	posix_spawn_file_actions_adddup2(&files, s->leave[0],
					 1000); /* neither is in the other's place then */
	posix_spawn_file_actions_adddup2(&files, s->name[0], 3);
	posix_spawn_file_actions_adddup2(&files, 1000, 4);
	posix_spawn_file_actions_addclose(&files, 1000);
	assert_int_equal(posix_spawn(&s->pid[i], "/proc/self/exe", &files, NULL, argv, environ), 0);
	posix_spawn_file_actions_destroy(&files);
}

/* None of them ends before it is told to. */
static void nobody_has_gone(struct scene *s)
{
	int status = 0;
	pid_t pid = waitpid(-1, &status, WNOHANG);

	if (pid > 0)
		fail_msg("process %d has ended: %d, exit status %d", (int)pid, status, WEXITSTATUS(status));
}

static int heard(struct scene *s)
{
	int n = 0;

	hd_node_poll(s->a.node);
	for (; hd_cq_peek(s->a.cq); n++) {
		assert_int_equal(hd_cq_peek(s->a.cq)->err, 0);
		hd_cq_pop(s->a.cq);
	}
	return n;
}

static void all_come(struct scene *s, unsigned uid)
{
	struct sockaddr_storage name;
	int come = 0, files, looks = 0;

	assert_int_equal(hd_ep_name(s->a.ep, AF_INET, &name), 0);
	for (int i = 0; i < THOUSAND; i++) {
		side_post(&s->a, &s->said[i], sizeof(s->said[i]), 1, 0, NULL, &s->said[i]);
		assert_int_equal(write(s->name[1], &name, sizeof(name)), sizeof(name));
		begin(s, i, uid);
		come += heard(s);
	}
	while (come < THOUSAND) {
		come += heard(s);
		if (++looks % 1000)
			continue;
		nobody_has_gone(s);
		files = test_fds();
		s->most_files = files > s->most_files ? files : s->most_files;
	}
	assert_int_equal(HASH_COUNT(hd_links(s->a.node)->peers), THOUSAND);
	print_message("descriptors: %d at most, %d in the end\n", s->most_files, test_fds());
}

static void all_go(struct scene *s)
{
	close(s->leave[1]);
	s->leave[1] = -1;
	for (int i = 0; i < THOUSAND; i++) {
		int status = -1;

		while (waitpid(s->pid[i], &status, WNOHANG) == 0)
			hd_node_poll(s->a.node);
		assert_int_equal(status, 0);
	}
	until_alone(&s->a);
	assert_int_equal(hd_links(s->a.node)->window_units, 0);
	assert_int_equal(hd_links(s->a.node)->others_files, 0);
}

static void of_our_user(void **state)
{
	all_come(*state, 0);
	all_go(*state);
}

static void of_another_user(void **state)
{
	attack_needs_root();
	all_come(*state, STRANGER);
	all_go(*state);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(of_our_user, setup, teardown),
		cmocka_unit_test_setup_teardown(of_another_user, setup, teardown),
	};

	setenv("HEDDLE_CONNECT_TIMEOUT", "300000", 1); /* there are few processors for so many */
	if (argc < 4)
		return cmocka_run_group_tests_name("thousand", tests, NULL, NULL);
	if (atoi(argv[3]) && setuid((uid_t)atoi(argv[3])) < 0)
		return 4;
	return visit(atoi(argv[1]), atoi(argv[2]));
}
