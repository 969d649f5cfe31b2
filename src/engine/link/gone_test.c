/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * A peer's endpoint is gone, and another one has its index: what is said of the one does nothing to
 * the other, in whichever order it is heard. What comes by the link has an order, but who calls a
 * name is answered by a connection of its own, which may be before that or behind.
 */
#include "base/log.h"
#include "engine/test/test_wire.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define INDEX 3
#define PORT 4000 /* of the first endpoint of that index; that of the next is another */

struct scene {
	struct side s;
	struct wire w;
	struct hd_peer *peer;
	struct hd_dest *first; /* the endpoint of generation 1, by its name */
};

static void announce(struct scene *sc, uint16_t gen, uint16_t port)
{
	const struct hd_announce a = {
		.index = INDEX, .gen = gen, .port = port, .addr = { [10] = 0xff, 0xff, 127, 0, 0, 1 }
	};

	wire_say(&sc->w, &(struct hd_pkt){ .kind = HD_PKT_ANNOUNCE }, &a, sizeof(a));
	wire_settle(&sc->w);
}

static void close_it(struct scene *sc, uint16_t gen)
{
	wire_say(&sc->w, &(struct hd_pkt){ .kind = HD_PKT_GONE, .src = INDEX, .gen = gen }, NULL, 0);
	wire_settle(&sc->w);
}

static struct hd_dest *by_name(struct scene *sc, uint16_t port)
{
	const struct sockaddr_in name = { .sin_family = AF_INET,
					  .sin_port = htons(port),
					  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct hd_dest *dest;

	assert_int_equal(hd_dest_get(sc->s.node, (void *)&name, &dest), 0);
	return dest;
}

static struct scene *scene_open(void)
{
	struct scene *sc = calloc(1, sizeof(*sc));

	side_open(&sc->s);
	wire_greet(&sc->w, &sc->s);
	announce(sc, 1, PORT);
	sc->first = by_name(sc, PORT);
	assert_int_equal(sc->first->state, HD_DEST_BOUND);
	assert_int_equal(sc->first->gen, 1);
	sc->peer = sc->first->peer;
	return sc;
}

static void scene_close(struct scene *sc)
{
	wire_hang_up(&sc->w);
	side_close(&sc->s);
	free(sc);
}

/*
 * A call to the second endpoint's name has been answered, before anything of
 * it has come by the link.
 */
static struct hd_dest *called(struct scene *sc, uint16_t gen)
{
	struct hd_dest *dest = by_name(sc, PORT + gen);

	hd_dest_bind(dest, sc->peer, INDEX, gen);
	return dest;
}

/* ---- that it is gone is heard late ----------------------------------------------------------- */

static void the_next_stays(void **state)
{
	struct scene *sc = scene_open();
	struct hd_dest *second = called(sc, 2);

	assert_int_equal(second->gen, 2);
	close_it(sc, 1);
	assert_int_equal(sc->first->state, HD_DEST_IDLE);
	assert_int_equal(second->state, HD_DEST_BOUND);
	assert_int_equal(hd_remote_source(sc->peer, INDEX), hd_dest_id(second));
	announce(sc, 2, PORT + 2);
	assert_int_equal(second->state, HD_DEST_BOUND);
	close_it(sc, 2);
	assert_int_equal(second->state, HD_DEST_IDLE);
	assert_int_equal(hd_remote_source(sc->peer, INDEX), 0);
	hd_dest_put(second);
	hd_dest_put(sc->first);
	scene_close(sc);
}

/* Nobody here holds the one before: its name does not become one of the next. */
static void the_next_has_its_own_names(void **state)
{
	struct scene *sc = scene_open();
	struct hd_dest *second, *again;

	hd_dest_put(sc->first);
	second = called(sc, 2);
	close_it(sc, 1);
	assert_int_equal(second->state, HD_DEST_BOUND);
	again = by_name(sc, PORT);
	assert_ptr_not_equal(again, second);
	assert_int_equal(again->state, HD_DEST_IDLE);
	hd_dest_put(again);
	hd_dest_put(second);
	scene_close(sc);
}

/*
 * It has begun anew, twice, and this says so; what a call has told of it meanwhile goes on with it.
 */
static void who_begins_anew_takes_all_along(void **state)
{
	struct scene *sc = scene_open();
	struct hd_dest *second = called(sc, 2);

	announce(sc, 3, PORT);
	assert_int_equal(sc->first->gen, 3);
	assert_int_equal(second->gen, 3);
	close_it(sc, 2); /* of an endpoint that it never had */
	assert_int_equal(sc->first->state, HD_DEST_BOUND);
	close_it(sc, 3);
	assert_int_equal(sc->first->state, HD_DEST_IDLE);
	assert_int_equal(second->state, HD_DEST_IDLE);
	hd_dest_put(second);
	hd_dest_put(sc->first);
	scene_close(sc);
}

/* ---- the end of a link ----------------------------------------------------------------------- */

static char first_line[160]; /* of a node's last ones */

static bool line_look(void *arg, enum hd_log_level level, const char *room, const char *message)
{
	if (strstr(message, " ends: "))
		snprintf(first_line, sizeof(first_line), "%s", message);
	return true;
}

/* The peer hangs up when it has closed its endpoint of this generation, or not. */
static void hangs_up(int closed, const char *counted)
{
	struct scene *sc = scene_open();

	hd_log_set_sink(line_look, NULL);
	hd_log_raise(HD_LOG_INFO);
	if (closed >= 0)
		close_it(sc, (uint16_t)closed);
	wire_hang_up(&sc->w);
	for (struct settling s = settling(10); settling_on(&s);)
		hd_node_poll(sc->s.node);
	hd_dest_put(sc->first);
	side_close(&sc->s);
	hd_log_raise(HD_LOG_ERROR);
	hd_log_set_sink(NULL, NULL);
	free(sc);
	assert_non_null(strstr(first_line, counted));
}

static void who_has_closed_all_breaks_nothing(void **state)
{
	hangs_up(1, " 0 broke, 0 left open");
}

static void who_hangs_up_before_that_breaks_the_link(void **state)
{
	hangs_up(-1, " 1 broke, 0 left open");
}

static void whose_program_ends_leaves_it_open(void **state)
{
	hangs_up(0, " 0 broke, 1 left open");
}

/* ---- the answer is heard late ---------------------------------------------------------------- */

static int listens(uint16_t *port)
{
	struct sockaddr_in name = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(name);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (void *)&name, len), 0);
	assert_int_equal(listen(fd, 8), 0);
	assert_int_equal(getsockname(fd, (void *)&name, &len), 0);
	*port = ntohs(name.sin_port);
	return fd;
}

/* Answer the node's call by saying that this generation listens. */
static void answer(struct scene *sc, int fd, uint16_t gen)
{
	const struct hd_pkt pkt = {
		.kind = HD_PKT_HELLO, .flags = HD_HELLO_F_MERGED, .imm = INDEX, .op = gen
	};
	struct wire w = { .node = sc->s.node, .id = sc->w.id, .fd = -1 };
	uint64_t end = hd_now_ns() + PATIENCE;
	struct hd_hello h;

	while (w.fd < 0) {
		w.fd = accept(fd, NULL, NULL);
		hd_node_poll(w.node);
		assert_true(hd_now_ns() < end);
	}
	assert_int_equal(fcntl(w.fd, F_SETFL, O_NONBLOCK), 0);
	wire_hear_kind(&w, HD_PKT_HELLO);
	wire_hello(&w, &h);
	h.window = 0;
	wire_say(&w, &pkt, &h, sizeof(h));
	wire_gone(&w);
}

static void who_has_gone_is_not_bound(void **state)
{
	struct scene *sc = scene_open();
	struct hd_dest *dest;
	uint16_t port;
	int fd = listens(&port);

	dest = by_name(sc, port);
	hd_dest_call(dest);
	close_it(sc, 1);
	answer(sc, fd, 1);
	assert_int_equal(dest->state, HD_DEST_CONNECTING);
	answer(sc, fd, 2); /* it is called again */
	assert_int_equal(dest->state, HD_DEST_BOUND);
	assert_int_equal(dest->gen, 2);
	hd_dest_put(dest);
	hd_dest_put(sc->first);
	close(fd);
	scene_close(sc);
}

/* What was announced meanwhile is newer: the endpoint is the same one, and has begun anew. */
static void who_has_begun_anew_is_bound(void **state)
{
	struct scene *sc = scene_open();
	struct hd_dest *dest;
	uint16_t port;
	int fd = listens(&port);

	dest = by_name(sc, port);
	hd_dest_call(dest);
	announce(sc, 2, PORT);
	answer(sc, fd, 1);
	assert_int_equal(dest->state, HD_DEST_BOUND);
	assert_int_equal(dest->gen, 2);
	hd_dest_put(dest);
	hd_dest_put(sc->first);
	close(fd);
	scene_close(sc);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_next_stays),
		cmocka_unit_test(the_next_has_its_own_names),
		cmocka_unit_test(who_begins_anew_takes_all_along),
		cmocka_unit_test(who_has_gone_is_not_bound),
		cmocka_unit_test(who_has_begun_anew_is_bound),
		cmocka_unit_test(who_has_closed_all_breaks_nothing),
		cmocka_unit_test(who_hangs_up_before_that_breaks_the_link),
		cmocka_unit_test(whose_program_ends_leaves_it_open),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
