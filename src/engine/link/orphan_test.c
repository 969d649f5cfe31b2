/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * A process dies while somebody else has its sockets: a child that was made without the handlers of
 * fork, and lives on. No hang-up tells of that death, so on one host the kernel is asked for the
 * process; the greeting's time-out is a minute here.
 */
#include "engine/test/test_pair.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define MESSAGES 500  /* less than the first window */
#define SLACK_MS 2500 /* far from the time-out, and enough on a busy machine */

enum how_far {
	CALLS,	 /* the victim says its HELLO, and nothing after it */
	ANSWERS, /* it is called, says its HELLO, and nothing after it */
	SENDS	 /* it has sent all its messages */
};

struct scene {
	struct side s;
	pid_t victim, child;
	int to, from;
};

/* ---- the victim: a process of its own, which has not opened anything of ours yet ------------- */

static bool has_gone(struct side *s, enum how_far far)
{
	struct hd_link *link = TAILQ_FIRST(&hd_links(s->node)->links);
	static uint64_t sent;

	switch (far) {
	case CALLS:
		return link && link->shake.up;
	case ANSWERS:
		return hd_links_inspect(s->node).peers > 0;
	default:
		sent += sent < MESSAGES &&
			!hd_send(s->ep, s->to, &sent, 8, 1, 0, NULL, TAGGED(HD_SEND_INJECT));
		return sent == MESSAGES && !hd_ep_inspect(s->ep).outstanding;
	}
}

static void must(bool right)
{
	if (!right)
		_exit(1);
}

static void victim(enum how_far far, int from, int to)
{
	struct sockaddr_storage name;
	struct side s;
	pid_t child;

	alarm(120);
	side_open(&s);
	must(!hd_ep_name(s.ep, AF_UNSPEC, &name) && write(to, &name, sizeof(name)) == sizeof(name));
	must(read(from, &name, sizeof(name)) == sizeof(name));
	must(!hd_dest_get(s.node, (void *)&name, &s.to));
	if (far == CALLS)
		must(!hd_send(s.ep, s.to, "message", 8, 1, 0, NULL, TAGGED(HD_SEND_INJECT)));
	while (!has_gone(&s, far))
		hd_node_poll(s.node);
	for (int i = 0; far == SENDS && i < 100; i++)
		hd_node_poll(s.node);
	child = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
	alarm(120);
	if (child)
		must(child > 0 && write(to, &child, sizeof(child)) == sizeof(child));
	for (;;)
		pause();
}

/* ---- the test's side ------------------------------------------------------------------------- */

static void scene_open(struct scene *sc, const char *ours, const char *theirs, enum how_far far)
{
	struct sockaddr_storage name;
	int up[2], down[2];

	setenv("HEDDLE_CONNECT_TIMEOUT", "60000", 1);
	setenv("HEDDLE_TRANSPORT", theirs, 1);
	assert_int_equal(pipe(up) | pipe(down), 0);
	sc->victim = fork();
	assert_true(sc->victim >= 0);
	if (!sc->victim)
		victim(far, down[0], up[1]);
	close(down[0]);
	close(up[1]);
	sc->to = down[1];
	sc->from = up[0];
	setenv("HEDDLE_TRANSPORT", ours, 1);
	side_open(&sc->s);
	assert_int_equal(read(sc->from, &name, sizeof(name)), sizeof(name));
	assert_int_equal(hd_dest_get(sc->s.node, (void *)&name, &sc->s.to), 0);
	assert_int_equal(hd_ep_name(sc->s.ep, AF_UNSPEC, &name), 0);
	assert_int_equal(write(sc->to, &name, sizeof(name)), sizeof(name));
}

static void meet_child(struct scene *sc)
{
	assert_int_equal(read(sc->from, &sc->child, sizeof(sc->child)), sizeof(sc->child));
}

static void kill_victim(struct scene *sc)
{
	kill(sc->victim, SIGKILL);
	assert_int_equal(waitpid(sc->victim, NULL, 0), sc->victim);
}

static void scene_close(struct scene *sc)
{
	kill(sc->child, SIGKILL);
	close(sc->from);
	close(sc->to);
	side_close(&sc->s);
	unsetenv("HEDDLE_TRANSPORT");
	unsetenv("HEDDLE_CONNECT_TIMEOUT");
}

static void send_one(struct scene *sc)
{
	assert_int_equal(hd_send(sc->s.ep, sc->s.to, "message", 8, 1, 0, NULL, TAGGED(HD_SEND_COMPLETE)), 0);
}

/* Soon after the victim is dead so many completions are there and the peer is forgotten. */
static void expect_end(struct scene *sc, uint32_t completions)
{
	uint64_t end = hd_now_ns() + SLACK_MS * HD_NS_PER_MS;

	while (hd_links_inspect(sc->s.node).peers || sc->s.cq->r.tail - sc->s.cq->r.head < completions) {
		hd_node_poll(sc->s.node);
		assert_true(hd_now_ns() < end);
	}
	assert_int_equal(hd_links_inspect(sc->s.node).pending, 0);
}

/*
 * It has made a peer here, and may have let destinations of ours wait for the end of its greeting.
 */
static void a_caller_dies_behind_its_greeting(void **state)
{
	static const char *const ways[][2] = { { "shm", "shm" }, { "auto", "auto" }, { "tcp", "auto" } };

	for (int i = 0; i < 3; i++) {
		struct scene sc;

		scene_open(&sc, ways[i][0], ways[i][1], CALLS);
		meet_child(&sc);
		while (!hd_links_inspect(sc.s.node).peers)
			hd_node_poll(sc.s.node);
		for (int turn = 0; turn < 1000; turn++)
			hd_node_poll(sc.s.node);
		assert_int_equal(hd_links_inspect(sc.s.node).peers, 1);
		kill_victim(&sc);
		expect_end(&sc, 0);
		scene_close(&sc);
	}
}

/* Killed while it is joined, or before that is begun. */
static void who_is_called_dies_behind_its_greeting(void **state)
{
	for (int i = 0; i < 4; i++) {
		struct scene sc;

		scene_open(&sc, i % 2 ? "auto" : "shm", "auto", ANSWERS);
		send_one(&sc);
		while (!TAILQ_FIRST(&hd_links(sc.s.node)->links)->shake.up)
			hd_node_poll(sc.s.node);
		meet_child(&sc);
		if (i < 2)
			kill_victim(&sc);
		for (int turn = 0; turn < 1000; turn++)
			hd_node_poll(sc.s.node);
		if (i >= 2)
			kill_victim(&sc);
		expect_end(&sc, 1);
		assert_int_equal(hd_cq_peek(sc.s.cq)->err, HD_S_REFUSED);
		hd_cq_pop(sc.s.cq);
		scene_close(&sc);
	}
}

/* A connection that stands: what was sent arrives first. */
static void what_has_been_sent_arrives(void **state)
{
	struct scene sc;

	scene_open(&sc, "tcp", "auto", SENDS);
	while (!hd_links_inspect(sc.s.node).peers ||
	       hd_peer_inspect(hd_links(sc.s.node)->peers).state != HD_PEER_LIVE)
		hd_node_poll(sc.s.node);
	meet_child(&sc);
	kill_victim(&sc);
	expect_end(&sc, 0);
	for (uint64_t got = 0; got < MESSAGES; got++) {
		uint64_t in = 0;

		side_post(&sc.s, &in, sizeof(in), 1, 0, NULL, NULL);
		assert_non_null(hd_cq_peek(sc.s.cq));
		assert_int_equal(hd_cq_peek(sc.s.cq)->err, 0);
		assert_int_equal(in, got);
		hd_cq_pop(sc.s.cq);
	}
	scene_close(&sc);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_caller_dies_behind_its_greeting),
		cmocka_unit_test(who_is_called_dies_behind_its_greeting),
		cmocka_unit_test(what_has_been_sent_arrives),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
