/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/log.h"

struct capture {
	unsigned lines;
	enum hd_log_level level;
	char room[32], message[HD_LOG_MAX];
	bool refuse;
};

static bool capture_line(void *arg, enum hd_log_level level, const char *room, const char *message)
{
	struct capture *c = arg;

	c->lines++;
	c->level = level;
	snprintf(c->room, sizeof(c->room), "%s", room);
	snprintf(c->message, sizeof(c->message), "%s", message);
	return !c->refuse;
}

/* Runs fn with standard error in a file and returns what was written. */
static char *stderr_of(void (*fn)(void))
{
	static char text[4096];
	int saved = dup(STDERR_FILENO);
	FILE *file = tmpfile();

	assert_non_null(file);
	dup2(fileno(file), STDERR_FILENO);
	fn();
	dup2(saved, STDERR_FILENO);
	close(saved);
	rewind(file);
	text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
	fclose(file);
	return text;
}

static int reset(void **state)
{
	hd_log_set_sink(NULL, NULL);
	hd_log_raise(HD_LOG_ERROR);
	hd_log_set_level(HD_LOG_WARN);
	return 0;
}

static void say_two_levels(void)
{
	hd_warn("link to %s lost", "10.0.0.1");
	hd_info("not wanted");
}

static void line_has_pid_level_room_and_message(void **state)
{
	char want[128];

	snprintf(want, sizeof(want), "heddle[%d] warn base: link to 10.0.0.1 lost\n", (int)getpid());
	assert_string_equal(stderr_of(say_two_levels), want);
}

static int evaluated;

static int evaluate(void)
{
	return ++evaluated;
}

static void arguments_are_evaluated_only_when_the_level_is_on(void **state)
{
	struct capture c = { 0 };

	hd_log_set_sink(capture_line, &c);
	evaluated = 0;
	hd_debug("%d", evaluate());
	assert_int_equal(evaluated, 0);
	hd_log_set_level(HD_LOG_DEBUG);
	hd_debug("%d", evaluate());
	assert_int_equal(evaluated, 1);
	assert_int_equal(c.lines, 1);
}

static void sink_gets_level_room_and_message(void **state)
{
	struct capture c = { 0 };

	hd_log_set_sink(capture_line, &c);
	hd_error("disk %d%%", 7);
	assert_int_equal(c.level, HD_LOG_ERROR);
	assert_string_equal(c.room, "base");
	assert_string_equal(c.message, "disk 7%");
	assert_string_equal(stderr_of(say_two_levels), "");
}

static void line_that_the_sink_refuses_goes_to_stderr(void **state)
{
	struct capture c = { .refuse = true };

	hd_log_set_sink(capture_line, &c);
	hd_log_raise(HD_LOG_DEBUG);
	char *text = stderr_of(say_two_levels);
	assert_int_equal(c.lines, 2);
	assert_non_null(strstr(text, "lost"));
	assert_null(strstr(text, "not wanted"));
}

static void control_characters_cannot_forge_a_line(void **state)
{
	struct capture c = { 0 };

	hd_log_set_sink(capture_line, &c);
	hd_warn("peer says %s", "x\nheddle[1] error base: \033[2Jforged\n");
	assert_string_equal(c.message, "peer says x?heddle[1] error base: ?[2Jforged");
}

static void long_message_is_cut(void **state)
{
	struct capture c = { 0 };
	char text[3 * HD_LOG_MAX];

	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	hd_log_set_sink(capture_line, &c);
	hd_warn("%s", text);
	assert_int_equal(strlen(c.message), HD_LOG_MAX - 1);
}

static void errno_survives_a_message(void **state)
{
	struct capture c = { 0 };

	hd_log_set_sink(capture_line, &c);
	errno = ENOBUFS;
	hd_warn("%s", strerror(errno));
	assert_int_equal(errno, ENOBUFS);
	assert_string_equal(c.message, strerror(ENOBUFS));
}

static void say_often(unsigned times)
{
	for (unsigned i = 0; i < times; i++)
		HD_LOG_EVERY_MS(80, HD_LOG_WARN, "flood");
}

static void limiter_counts_what_it_leaves_out(void **state)
{
	struct capture c = { 0 };

	hd_log_set_sink(capture_line, &c);
	say_often(50);
	assert_int_equal(c.lines, 1);
	/* the limiter counts time */
	nanosleep(&(struct timespec){ .tv_nsec = 85 * 1000000 }, NULL);
	say_often(1);
	assert_int_equal(c.lines, 3);
	assert_string_equal(c.message, "flood");
}

/* Where a second ends in between there are two times as many. */
static void events_are_limited(void **state)
{
	struct capture c = { 0 };

	hd_log_set_level(HD_LOG_DEBUG);
	hd_log_set_sink(capture_line, &c);
	for (int i = 0; i < 4 * HD_LOG_EVENTS; i++)
		hd_event("one of many");
	assert_in_range(c.lines, HD_LOG_EVENTS, 3 * HD_LOG_EVENTS);
	assert_int_equal(c.level, HD_LOG_DEBUG);
	hd_log_set_level(HD_LOG_WARN);
}

static bool count_line(void *arg, enum hd_log_level level, const char *room, const char *message)
{
	atomic_fetch_add((_Atomic unsigned *)arg, strcmp(message, "from a thread") == 0);
	return true;
}

static void *log_hundred(void *arg)
{
	for (int i = 0; i < 100; i++)
		hd_warn("from a %s", "thread");
	return NULL;
}

static void threads_lose_no_lines(void **state)
{
	_Atomic unsigned lines = 0;
	pthread_t threads[4];

	hd_log_set_sink(count_line, &lines);
	for (int i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, log_hundred, NULL), 0);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(lines, 400);
}

static _Atomic bool stop_logging;

static void *log_until_stopped(void *arg)
{
	while (!atomic_load(&stop_logging))
		hd_warn("from a %s", "thread");
	return NULL;
}

/* A lock held by another thread at the moment of the fork would be held in the child for ever. */
static void child_forked_beside_a_logging_thread_can_log(void **state)
{
	_Atomic unsigned lines = 0;
	pthread_t thread;

	hd_log_set_sink(count_line, &lines);
	atomic_store(&stop_logging, false);
	assert_int_equal(pthread_create(&thread, NULL, log_until_stopped, NULL), 0);
	for (int i = 0; i < 100; i++) {
		pid_t child = fork();
		int status;

		if (!child) {
			alarm(10);
			hd_warn("the node is dead");
			_exit(0);
		}
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_int_equal(status, 0);
	}
	atomic_store(&stop_logging, true);
	pthread_join(thread, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(line_has_pid_level_room_and_message, reset),
		cmocka_unit_test_setup(arguments_are_evaluated_only_when_the_level_is_on, reset),
		cmocka_unit_test_setup(sink_gets_level_room_and_message, reset),
		cmocka_unit_test_setup(line_that_the_sink_refuses_goes_to_stderr, reset),
		cmocka_unit_test_setup(control_characters_cannot_forge_a_line, reset),
		cmocka_unit_test_setup(long_message_is_cut, reset),
		cmocka_unit_test_setup(errno_survives_a_message, reset),
		cmocka_unit_test_setup(events_are_limited, reset),
		cmocka_unit_test_setup(limiter_counts_what_it_leaves_out, reset),
		cmocka_unit_test_setup(threads_lose_no_lines, reset),
		cmocka_unit_test_setup(child_forked_beside_a_logging_thread_can_log, reset),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
