/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Doors where something does not go on: somebody is silent, dies, or comes late, or
 * there are no descriptors.
 */
#include "base/clock.h"
#include "base/config.h"
#include "base/log.h"
#include "transport/shm_duo.h"
#include "transport/shm_record.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

/* ---- at the join socket ---- */

/* It begins well, but then goes on with something else, or with nothing. */
static void who_does_not_go_on_is_sent_away(void **state)
{
	struct duo d;

	duo_nodes(&d);
	for (int how = 0; how < 3; how++) {
		struct record r = record_good(&d.advert, HD_SHM_JOIN),
			      next = record_good(&d.advert, HD_SHM_READY);
		int sock = join_request(&d.advert);

		record_send(sock, &r);
		assert_int_equal(join_answer(&d, sock), 1);
		if (how == 0)
			record_send(sock, &r);
		if (how == 1) {
			next.hello.nonce[0]++;
			record_send(sock, &next);
		}
		if (how == 2)
			shutdown(sock, SHUT_WR);
		record_close(&r);
		assert_int_equal(join_answer(&d, sock), 0);
		assert_int_equal(d.port[1]->pending_join_count, 0);
		close(sock);
	}
	duo_join(&d);
	duo_close(&d);
}

#define CROWD 60 /* more than are let in at the same time */

static void a_silent_crowd_keeps_nobody_out_for_long(void **state)
{
	int sock[CROWD];
	uint64_t begin;
	struct duo d;

	setenv("HEDDLE_CONNECT_TIMEOUT", "300", 1);
	hd_config_load();
	duo_nodes(&d);
	for (int i = 0; i < CROWD; i++)
		sock[i] = join_request(&d.advert);
	begin = hd_now_ns();
	duo_turns(&d, 20);
	assert_in_range(d.port[1]->pending_join_count, 1, CROWD - 1);
	for (int i = 0; i < CROWD; i++)
		assert_int_equal(join_answer(&d, sock[i]), 0);
	assert_in_range((hd_now_ns() - begin) / HD_NS_PER_MS, 200, 30000);
	for (int i = 0; i < CROWD; i++)
		close(sock[i]);
	duo_join(&d);
	duo_close(&d);
	unsetenv("HEDDLE_CONNECT_TIMEOUT");
	hd_config_load();
}

/* ---- at a join socket that is not what it should be ---- */

static bool ends_with(struct duo *d, struct rig_end *end, int err, uint64_t least_ms, uint64_t most_ms)
{
	uint64_t begin = hd_now_ns(), ms;

	while (!end->closed && hd_now_ns() - begin < 60 * HD_NS_PER_S) {
		duo_turns(d, 10);
		usleep(1000);
	}
	ms = (hd_now_ns() - begin) / HD_NS_PER_MS;
	return end->closed && end->err == err && ms + 1 >= least_ms && ms <= most_ms;
}

static void a_join_that_is_not_taken_ends_the_link_in_time(void **state)
{
	struct hd_shm_advert advert;
	struct rig_end *end, *first;
	struct duo d;
	int door;

	setenv("HEDDLE_CONNECT_TIMEOUT", "200", 1);
	hd_config_load();
	duo_nodes(&d);
	door = join_false(&advert, 0);
	assert_int_equal(rig_connect(&d.port[0]->base, &advert, sizeof(advert), &first),
			 0); /* fills the queue */
	assert_int_equal(rig_connect(&d.port[0]->base, &advert, sizeof(advert), &end), 0);
	assert_true(ends_with(&d, end, -ETIMEDOUT, 200, 30000));
	assert_true(ends_with(&d, first, -ETIMEDOUT, 0, 30000));
	close(door);
	assert_int_equal(rig_connect(&d.port[0]->base, &advert, sizeof(advert), &end), -ECONNREFUSED);
	duo_close(&d);
	unsetenv("HEDDLE_CONNECT_TIMEOUT");
	hd_config_load();
}

/*
 * A process that stands still once it has asked to join with this socket, or stands at this join
 * socket; the test has the socket as well.
 */
static pid_t process_with(int sock, const struct hd_shm_advert *asks)
{
	struct sockaddr_un sa;
	socklen_t len;
	int status;
	pid_t pid = fork();

	if (!pid) {
		if (asks) {
			close(join_socket(asks, &sa, &len));
			if (connect(sock, (struct sockaddr *)&sa, len))
				_exit(1);
		} else if (listen(sock, 5)) {
			_exit(1);
		}
		raise(SIGSTOP);
		_exit(1);
	}
	assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
	assert_true(WIFSTOPPED(status));
	return pid;
}

static void kill_it(pid_t pid)
{
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void who_dies_while_joining_is_not_waited_for(void **state)
{
	uint64_t end;
	struct duo d;

	duo_nodes(&d);
	for (int reaped = 0; reaped < 2; reaped++) {
		int sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
		pid_t pid = process_with(sock, &d.advert);

		if (reaped)
			kill_it(pid);
		duo_turns(&d, 20);
		assert_int_equal(d.port[1]->pending_join_count, !reaped);
		if (!reaped)
			kill_it(pid);
		end = hd_now_ns() + 3 * HD_NS_PER_S;
		while (d.port[1]->pending_join_count && hd_now_ns() < end)
			duo_turns(&d, 10);
		assert_int_equal(d.port[1]->pending_join_count, 0);
		close(sock);
	}
	duo_join(&d);
	duo_close(&d);
}

static void a_join_socket_whose_process_dies_is_not_waited_for(void **state)
{
	struct hd_shm_advert advert;
	struct rig_end *end;
	struct duo d;
	int door;
	pid_t pid;

	duo_nodes(&d);
	door = join_false(&advert, 5);
	pid = process_with(door, NULL);
	assert_int_equal(rig_connect(&d.port[0]->base, &advert, sizeof(advert), &end), 0);
	duo_turns(&d, 20);
	assert_false(end->closed);
	kill_it(pid);
	assert_true(ends_with(&d, end, -ESRCH, 0, 30000));
	assert_int_equal(rig_connect(&d.port[0]->base, &advert, sizeof(advert), &end), -ESRCH);
	close(door);
	duo_close(&d);
}

/* The queue is full for a while: the link comes about all the same. */
static void a_join_that_is_taken_late_is_waited_for(void **state)
{
	struct hd_shm_advert advert;
	struct rig_end *end, *first;
	struct duo d;
	int door, sock;

	duo_nodes(&d);
	door = join_false(&advert, 0);
	assert_int_equal(rig_connect(&d.port[0]->base, &advert, sizeof(advert), &first), 0);
	assert_int_equal(rig_connect(&d.port[0]->base, &advert, sizeof(advert), &end), 0);
	duo_turns(&d, 10);
	assert_int_equal(hd_shm_link_of(end->link)->state, HD_SHM_REQUESTING);
	close(accept(door, NULL, NULL));
	for (int i = 0; i < 500 && hd_shm_link_of(end->link)->state == HD_SHM_REQUESTING; i++) {
		duo_turns(&d, 10);
		usleep(1000);
	}
	sock = accept(door, NULL, NULL);
	assert_int_equal(join_answer(&d, sock), 1);
	assert_int_equal(first->err, -ECONNRESET);
	close(sock);
	close(door);
	assert_true(ends_with(&d, end, -ECONNRESET, 0, 30000));
	duo_close(&d);
}

/* Let `more` descriptors be opened, or as many as at first. */
static void limit_descriptors(int more)
{
	static struct rlimit first;
	struct rlimit now;

	if (!first.rlim_cur)
		getrlimit(RLIMIT_NOFILE, &first);
	now = first;
	if (more >= 0)
		for (now.rlim_cur = 0; fcntl((int)now.rlim_cur, F_GETFD) >= 0 || more-- > 0;)
			now.rlim_cur++;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &now), 0);
}

static bool note_lost(void *arg, enum hd_log_level level, const char *room, const char *message)
{
	*(int *)arg += level == HD_LOG_WARN && strstr(message, "descriptors were lost") &&
		       strstr(message, "raise the limit of open files");
	return true;
}

/*
 * With each number of descriptors that is too small no link comes about, nothing stays open,
 * and later it works. That descriptors were lost is said at the end that lacks them,
 * whatever the other one says.
 */
static void a_lack_of_descriptors_is_survived(void **state)
{
	struct duo d;
	int before, failed = 0, said = 0;

	duo_nodes(&d);
	hd_log_set_sink(note_lost, &said);
	hd_log_raise(HD_LOG_WARN);
	before = open_descriptors();
	for (int more = 0; more < 12; more++) {
		struct rig_end *end;
		int rc;

		limit_descriptors(more);
		rc = rig_connect(&d.port[0]->base, &d.advert, sizeof(d.advert), &end);
		for (int i = 0; !rc && i < 50 && !end->was_down && !end->greeted; i++) {
			duo_turns(&d, 10);
			usleep(1000);
		}
		limit_descriptors(-1);
		if (rc)
			assert_int_equal(rc, -EMFILE);
		failed += rc || !end->greeted;
		if (!rc)
			rig_end_close(end, -ECONNABORTED);
		for (int i = 0; i < 200 && open_descriptors() != before; i++) {
			duo_turns(&d, 10);
			usleep(1000);
		}
		assert_int_equal(open_descriptors(), before);
	}
	assert_in_range(failed, 2, 11);
	assert_int_not_equal(said, 0);
	hd_log_set_sink(NULL, NULL);
	duo_join(&d);
	duo_close(&d);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_does_not_go_on_is_sent_away),
		cmocka_unit_test(a_silent_crowd_keeps_nobody_out_for_long),
		cmocka_unit_test(a_join_that_is_not_taken_ends_the_link_in_time),
		cmocka_unit_test(who_dies_while_joining_is_not_waited_for),
		cmocka_unit_test(a_join_socket_whose_process_dies_is_not_waited_for),
		cmocka_unit_test(a_join_that_is_taken_late_is_waited_for),
		cmocka_unit_test(a_lack_of_descriptors_is_survived),
	};

	setenv("HEDDLE_LOG", "error", 0);
	return cmocka_run_group_tests_name("shm_door", tests, NULL, NULL);
}
