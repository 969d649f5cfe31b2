/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Last words: what a send was reported good for arrives, though its sender is gone before the other
 * end has so much as looked. It looks as seldom as the greeting allows, so that all the rest is
 * still to be taken in when nobody is there any more.
 *
 * The speaker of the second half is this program, executed anew with the arguments "speaker", how
 * it ends, the type, and the port.
 */
#include "engine/test/test_pair.h"

#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define WORDS 40
#define PACES 5 /* how long the listener is away between two looks, from not at all */

static const enum hd_ep_type types[] = { HD_EP_RDM, HD_EP_DGRAM };

/* ---- the listener ---------------------------------------------------------------------------- */

static void listen_for(struct side *s, char in[WORDS][8])
{
	for (int i = 0; i < WORDS; i++)
		assert_int_equal(hd_recv(s->ep, &(struct hd_recv_args){ .iov = &(struct iovec){ in[i], 8 },
									.count = 1,
									.flags = HD_RECV_COMPLETE,
									.ctx = in[i] }),
				 0);
}

static void heard_all(struct side *s, char in[WORDS][8])
{
	uint64_t end = hd_now_ns() + PATIENCE;

	for (int i = 0; i < WORDS; i++) {
		const struct hd_cqe *e;

		while (!(e = hd_cq_peek(s->cq))) {
			hd_node_poll(s->node);
			assert_true(hd_now_ns() < end);
		}
		assert_int_equal(e->err, 0);
		assert_ptr_equal(e->ctx, in[i]);
		hd_cq_pop(s->cq);
		assert_int_equal(in[i][0], i);
	}
}

/* ---- in one process -------------------------------------------------------------------------- */

/* Speak, and count what is known to have gone. Returns how many words are left to say. */
static int speak(struct side *s, int *said)
{
	char word[8] = { 0 };
	int done = 0;

	for (;; ++*said) {
		word[0] = (char)*said;
		if (*said == WORDS ||
		    hd_send(s->ep, s->to, word, sizeof(word), 0, 0, NULL, HD_SEND_COMPLETE | HD_SEND_INJECT))
			break;
	}
	for (const struct hd_cqe *e; (e = hd_cq_peek(s->cq)); done++) {
		assert_int_equal(e->err, 0);
		hd_cq_pop(s->cq);
	}
	return done;
}

static void sender_closes(const char *transport, enum hd_ep_type type, int pace)
{
	uint64_t end = hd_now_ns() + PATIENCE;
	char in[WORDS][8];
	int said = 0, done = 0;
	struct pair p;

	pair_open(&p, transport);
	side_endpoint(&p.a, type);
	hd_dest_put(p.a.to);
	side_endpoint(&p.b, type);
	side_names(&p.a, &p.b);
	listen_for(&p.b, in);
	while (done < WORDS) {
		for (int i = 0; i < 64 && done < WORDS; i++) {
			done += speak(&p.a, &said);
			hd_node_poll(p.a.node);
		}
		if (done < WORDS)
			hd_node_poll(p.b.node);
		usleep((unsigned)pace * 30);
		assert_true(hd_now_ns() < end);
	}
	side_close(&p.a);
	heard_all(&p.b, in);
	side_close(&p.b);
	unsetenv("HEDDLE_TRANSPORT");
}

static void words_of_a_node_that_closes_arrive(void **state)
{
	EACH_TRANSPORT(t)
	for (int type = 0; type < 2; type++)
		for (int pace = 0; pace < PACES; pace++)
			sender_closes(t, types[type], pace);
}

/* ---- in two ---------------------------------------------------------------------------------- */

/* All that has been said is sent, by a node that may have a lock. */
static void speak_all(struct side *s)
{
	int said = 0, done = 0;

	hd_node_lock(s->node);
	while (done < WORDS) {
		done += speak(s, &said);
		if (done < WORDS)
			hd_node_poll(s->node);
	}
	hd_node_unlock(s->node);
}

static int speaker(const char *how, const char *type, const char *port)
{
	const struct hd_node_attr attr = { .front = "test", .locked = !strcmp(how, "exits locked") };
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port)) };
	struct side s;
	int rc;

	alarm(60);
	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	side_open_with(&s, &attr);
	hd_node_lock(s.node);
	side_endpoint(&s, types[atoi(type)]);
	rc = hd_dest_get(s.node, (struct sockaddr *)&at, &s.to);
	hd_node_unlock(s.node);
	if (rc < 0)
		abort();
	speak_all(&s);
	if (!strcmp(how, "closes"))
		side_close(&s);
	if (!strcmp(how, "is killed"))
		raise(SIGKILL);
	exit(0);
}

static pid_t spawn(struct side *listener, const char *how, int type)
{
	struct sockaddr_storage name;
	char port[8], number[2] = { (char)('0' + type), 0 };
	pid_t pid;

	assert_int_equal(hd_ep_name(listener->ep, AF_UNSPEC, &name), 0);
	snprintf(port, sizeof(port), "%u", ntohs(((struct sockaddr_in *)&name)->sin_port));
	pid = fork();
	if (!pid) {
		execl("/proc/self/exe", "last_words_test", "speaker", how, number, port, NULL);
		_exit(127);
	}
	return pid;
}

static char first_line[160]; /* of the listener's last ones */

static bool line_look(void *arg, enum hd_log_level level, const char *room, const char *message)
{
	if (strstr(message, " ends: "))
		snprintf(first_line, sizeof(first_line), "%s", message);
	return true;
}

/* It closes when it has seen that the speaker is gone: what does it say of that link? */
static void counted(struct side *s, const char *want)
{
	uint64_t end = hd_now_ns() + PATIENCE;

	while (hd_links_inspect(s->node).peers) {
		hd_node_poll(s->node);
		assert_true(hd_now_ns() < end);
	}
	hd_log_set_sink(line_look, NULL);
	hd_log_raise(HD_LOG_INFO);
	side_close(s);
	hd_log_raise(HD_LOG_ERROR);
	hd_log_set_sink(NULL, NULL);
	assert_non_null(strstr(first_line, want));
}

static void process_ends(const char *transport, const char *how, int type, const char *want)
{
	char in[WORDS][8];
	int status = 1;
	struct side s;
	pid_t pid;

	setenv("HEDDLE_TRANSPORT", transport, 1);
	side_open(&s);
	side_endpoint(&s, types[type]);
	listen_for(&s, in);
	pid = spawn(&s, how, type);
	while (waitpid(pid, &status, WNOHANG) != pid) {
		for (int i = 0; i < 8; i++) /* one look at its descriptors */
			hd_node_poll(s.node);
		/*
		 * it is away: no wait, but that much is left to be taken in
		 * when the speaker has ended
		 */
		usleep(3000);
	}
	assert_int_equal(WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status),
			 strcmp(how, "is killed") ? 0 : -SIGKILL);
	if (!status)
		heard_all(&s, in);
	counted(&s, want);
	unsetenv("HEDDLE_TRANSPORT");
}

static void words_of_a_process_that_ends_arrive(void **state)
{
	EACH_TRANSPORT(t)
	for (int type = 0; type < 2; type++) {
		process_ends(t, "closes", type, " 0 broke, 0 left open");
		process_ends(t, "exits locked", type, " 0 broke, 1 left open");
		process_ends(t, "exits", type, " 1 broke, 0 left open");
		process_ends(t, "is killed", type, " 1 broke, 0 left open");
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(words_of_a_node_that_closes_arrive),
		cmocka_unit_test(words_of_a_process_that_ends_arrive),
	};

	if (argc == 5 && !strcmp(argv[1], "speaker"))
		return speaker(argv[2], argv[3], argv[4]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
