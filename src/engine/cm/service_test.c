/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Services by hash: how they are found, and who has a name. */
#include "engine/cm/test_space.h"
#include "engine/test/test_rig.h"

#include <sys/wait.h>
#include <unistd.h>

static uint32_t space; /* own_space */

static uint16_t port_of(const struct rig *r)
{
	return ntohs(((const struct sockaddr_in *)&r->name)->sin_port);
}

static void ports_follow_from_the_name(void **state)
{
	uint16_t seen[HD_SPACE_TRIES];
	int shared = 0;

	hd_config_load();
	for (uint64_t number = 0; number < 3000; number++)
		for (unsigned i = 0; i < HD_SPACE_TRIES; i++) {
			seen[i] = hd_space_port(space, number, i);
			assert_in_range(seen[i], 20000, 29999);
			for (unsigned k = 0; k < i; k++)
				assert_int_not_equal(seen[i], seen[k]);
			shared += i == 0 && seen[0] == hd_space_port(space + 1, number, 0);
		}
	assert_in_range(shared, 0, 30); /* spaces differ */
	assert_int_equal(hd_space_port(space, 1, HD_SPACE_TRIES), 0);
	setenv("HEDDLE_CM_PORTS", "40000-40002", 1);
	hd_config_load();
	for (unsigned i = 0; i < 3; i++)
		assert_in_range(hd_space_port(space, 7471, i), 40000, 40002);
	assert_int_equal(hd_space_port(space, 7471, 3), 0);
	unsetenv("HEDDLE_CM_PORTS");
	hd_config_load();
}

static void a_service_is_found_by_its_name(void **state)
{
	EACH_TRANSPORT(transport)
	{
		struct rig r;

		rig_open_at(&r, transport, space, 7471);
		assert_int_equal(port_of(&r), hd_space_port(space, 7471, 0));
		((struct sockaddr_in *)&r.name)->sin_port = htons(7471); /* means nothing */
		join(&r);
		passes(&r, &r.a, &r.b, 1000);
		rig_close(&r);
	}
}

/*
 * Others may have the first ports: those who accept and say nothing, those who say something else,
 * and services of other names.
 */
static void taken_ports_are_passed_by(void **state)
{
	struct hd_service *other;
	struct rig r;
	int fds[3];

	setenv("HEDDLE_CONNECT_TIMEOUT", "300", 1);
	hd_config_load();
	for (unsigned i = 0; i < 2; i++)
		fds[i] = squat(hd_space_port(space, 7472, i * 2));
	assert_true(fds[0] >= 0 && fds[1] >= 0);
	rig_open_at(&r, "tcp", space, 7472);
	assert_int_equal(port_of(&r), hd_space_port(space, 7472, 1));
	join(&r);
	end_close_ep(&r.a);
	end_close_ep(&r.b);
	hd_service_close(r.service);
	fds[2] = squat(hd_space_port(space, 7472, 1));
	service_open(&r);
	close(fds[2]);
	/* now a service of another name comes to stand before ours */
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons(hd_space_port(space, 7472, 1)) };
	assert_int_equal(hd_service_open(r.server, &(struct hd_service_attr){ .bind = (void *)&at }, &other),
			 0);
	assert_int_equal(port_of(&r), hd_space_port(space, 7472, 3));
	end_open_ep(&r.a, r.ea);
	end_open_ep(&r.b, r.eb);
	for (int i = 0; i < 2; i++)
		close(fds[i]);
	join(&r);
	hd_service_close(other);
	rig_close(&r);
	unsetenv("HEDDLE_CONNECT_TIMEOUT");
	hd_config_load();
}

/*
 * A node that listens at the first port of this name, and breaks its links when it has been asked
 * and has not heard it yet.
 */
struct stranger {
	struct hd_node *node;
	struct hd_service *service;
};

static void stranger_open(struct stranger *s, uint64_t number)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons(hd_space_port(space, number, 0)) };

	assert_int_equal(hd_node_open(&(struct hd_node_attr){ .front = "test" }, &s->node), 0);
	assert_int_equal(
		hd_service_open(s->node, &(struct hd_service_attr){ .bind = (void *)&at }, &s->service), 0);
}

static void stranger_close(struct stranger *s)
{
	hd_service_close(s->service);
	assert_int_equal(hd_node_close(s->node), 0);
}

static void stranger_is_asked(struct stranger *s, struct rig *r)
{
	for (int i = 0; i < 1000000 && r->a.ep->conn->state != HD_CONN_ASKED; i++) {
		hd_node_poll(s->node);
		hd_node_poll(r->a.node);
	}
	assert_int_equal(r->a.ep->conn->state, HD_CONN_ASKED);
}

static struct hd_peer *peer_of(struct hd_node *node)
{
	struct hd_link *link;

	TAILQ_FOREACH(link, &hd_links(node)->links, entry)
		if (link->peer)
			return link->peer;
	return NULL;
}

static void stranger_dies(struct stranger *s, struct rig *r)
{
	struct hd_link *link;

	call(r, NULL);
	stranger_is_asked(s, r);
	TAILQ_FOREACH(link, &hd_links(s->node)->links, entry)
		hd_link_down(link, -ECONNRESET, "dies");
	for (int i = 0; i < 1000000 && r->a.ep->conn->state == HD_CONN_ASKED; i++) {
		hd_node_poll(s->node);
		hd_node_poll(r->a.node);
	}
}

/* Whoever dies while he is asked need not have been the service. */
static void a_stranger_dies_before_he_answers(void **state)
{
	EACH_TRANSPORT(transport)
	{
		struct stranger s;
		struct rig r;

		setenv("HEDDLE_TRANSPORT", transport, 1);
		hd_config_load();
		stranger_open(&s, 7484);
		rig_open_at(&r, transport, space, 7484);
		assert_int_equal(port_of(&r), hd_space_port(space, 7484, 1));
		stranger_dies(&s, &r);
		assert_int_equal(hd_ep_accept(r.b.ep, called(&r), NULL), 0);
		both_up(&r);
		rig_close(&r);
		stranger_close(&s);
	}
}

/* If it is nowhere else, it was the service, and that is told. */
static void the_service_dies_before_it_answers(void **state)
{
	struct stranger s;
	struct rig r;
	struct got g;

	rig_open_at(&r, "tcp", space, 7486);
	r.number = 7485;
	stranger_open(&s, 7485);
	stranger_dies(&s, &r);
	stranger_close(&s);
	g = next(&r, r.ea);
	assert_int_equal(g.code, HD_EV_UP);
	assert_int_equal(g.err, ECONNRESET);
	rig_close(&r);
}

/* The next event, while the stranger is polled too. */
static struct got next_beside(struct rig *r, struct stranger *s, struct hd_evq *evq)
{
	uint64_t until = hd_now_ns() + PATIENCE;
	struct got g;

	while (!poll_event(evq, &g)) {
		hd_node_poll(s->node);
		turn(r);
		assert_true(hd_now_ns() < until);
	}
	return g;
}

/*
 * A node that may only be spoken to over TCP stands at the first port: the service is at the
 * next. When that closes nobody has the name; and when it is the stranger that has it, that is
 * why it cannot be reached.
 */
static void a_stranger_of_another_transport(void **state)
{
	struct stranger s;
	struct rig r;
	int claim;

	setenv("HEDDLE_TRANSPORT", "tcp", 1);
	stranger_open(&s, 7487);
	rig_open_at(&r, "shm", space, 7487);
	assert_int_equal(port_of(&r), hd_space_port(space, 7487, 1));
	call(&r, NULL);
	assert_int_equal(hd_ep_accept(r.b.ep, next_beside(&r, &s, r.eb).request, NULL), 0);
	both_up(&r);
	end_close_ep(&r.a);
	end_open_ep(&r.a, r.ea);
	hd_service_close(r.service);
	r.service = NULL;
	call(&r, NULL);
	assert_int_equal(next_beside(&r, &s, r.ea).err, ECONNREFUSED);
	assert_int_equal(hd_space_claim(s.node, &(struct hd_service_attr){ .space = space, .number = 7487 },
					&claim),
			 0);
	end_close_ep(&r.a);
	end_open_ep(&r.a, r.ea);
	call(&r, NULL);
	assert_int_equal(next_beside(&r, &s, r.ea).err, EHOSTUNREACH);
	close(claim);
	rig_close(&r);
	stranger_close(&s);
}

/*
 * What answers an earlier question of the same call, and comes when the next has been
 * asked there, answers nothing.
 */
static void an_answer_to_an_earlier_question(void **state)
{
	EACH_TRANSPORT(transport)
	{
		struct hd_pkt pkt = { .kind = HD_PKT_REJECT, .imm = ENOENT };
		struct hd_request *request;
		struct stranger s;
		struct rig r;

		setenv("HEDDLE_TRANSPORT", transport, 1);
		hd_config_load();
		stranger_open(&s, 7488);
		rig_open_at(&r, transport, space, 7488);
		call(&r, NULL);
		stranger_is_asked(&s, &r);
		pkt.op = r.a.ep->conn->number;
		request = next_beside(&r, &s, r.eb).request;
		assert_non_null(request);
		pkt.dst = r.a.ep->index;
		pkt.gen = r.a.ep->gen;
		hd_peer_send(peer_of(r.server), &pkt, NULL, 0);
		none(&r, r.ea);
		assert_int_equal(r.a.ep->conn->state, HD_CONN_ASKED);
		assert_int_equal(hd_ep_accept(r.b.ep, request, NULL), 0);
		both_up(&r);
		rig_close(&r);
		stranger_close(&s);
	}
}

/*
 * At ports of its own: whoever else is asked and ends meanwhile may have been the
 * service, and is told of.
 */
static void nobody_has_that_name(void **state)
{
	struct rig r;
	struct got g;

	setenv("HEDDLE_CM_PORTS", "19000-19999", 1);
	hd_config_load();
	rig_open_at(&r, "tcp", space, 7473);
	r.number = 7474;
	call(&r, NULL);
	g = next(&r, r.ea);
	assert_int_equal(g.code, HD_EV_UP);
	assert_int_equal(g.err, ECONNREFUSED);
	none(&r, r.eb);
	rig_close(&r);
	unsetenv("HEDDLE_CM_PORTS");
	hd_config_load();
}

/* A program between two listeners: its caller looks once more. */
static void somebody_comes_late(void **state)
{
	EACH_TRANSPORT(transport)
	{
		struct rig r;

		rig_open_at(&r, transport, space, 7478);
		hd_service_close(r.service);
		call(&r, NULL);
		for (int i = 0; i < 50; i++) {
			hd_node_poll(r.a.node);
			usleep(1000);
		}
		none(&r, r.ea);
		service_open(&r);
		assert_int_equal(next(&r, r.eb).code, HD_EV_REQUEST);
		rig_close(&r);
	}
}

/*
 * A listener is closed and opened again: who had called the old one finds the new one soon. (Any of
 * some tries: others want the processor.)
 */
static void a_port_is_listened_on_again(void **state)
{
	EACH_TRANSPORT(transport)
	{
		uint64_t least = UINT64_MAX;
		struct rig r;

		rig_open_at(&r, transport, space, 7484);
		call(&r, NULL);
		hd_request_reject(called(&r), NULL);
		assert_int_equal(next(&r, r.ea).err, ECONNREFUSED);
		for (int i = 0; i < 8; i++) {
			uint64_t since;

			end_close_ep(&r.a);
			end_open_ep(&r.a, r.ea);
			hd_service_close(r.service);
			service_open(&r);
			since = hd_now_ns();
			call(&r, NULL);
			hd_request_reject(called(&r), NULL);
			least = hd_now_ns() - since < least ? hd_now_ns() - since : least;
			assert_int_equal(next(&r, r.ea).err, ECONNREFUSED);
		}
		assert_in_range(least, 0, 100 * HD_NS_PER_MS);
		rig_close(&r);
	}
}

/* A name is taken once: at one address, at another, and at all of them. */
static void names_are_taken_once(void **state)
{
	const struct sockaddr_in one = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct hd_service_attr attr = { .space = space, .number = 7475 };
	struct hd_service *s, *t;
	struct hd_node *node;

	assert_int_equal(hd_node_open(&(struct hd_node_attr){ .front = "test" }, &node), 0);
	assert_int_equal(hd_service_open(node, &attr, &s), 0);
	assert_int_equal(hd_service_open(node, &attr, &t), -EADDRINUSE);
	attr.bind = (const struct sockaddr *)&one;
	assert_int_equal(hd_service_open(node, &attr, &t), -EADDRINUSE);
	attr.space++;
	assert_int_equal(hd_service_open(node, &attr, &t), 0);
	hd_service_close(t);
	attr.space--;
	hd_service_close(s);
	assert_int_equal(hd_service_open(node, &attr, &s), 0);
	attr.bind = NULL;
	assert_int_equal(hd_service_open(node, &attr, &t), -EADDRINUSE);
	hd_service_close(s);
	assert_int_equal(hd_service_open(node, &attr, &s), 0);
	hd_service_close(s);
	assert_int_equal(hd_node_close(node), 0);
}

/*
 * One service at all IPv4 addresses and one at all of IPv6 may have the same name; a third may not,
 * nor one at a single address.
 */
static void a_name_in_each_family(void **state)
{
	const struct sockaddr_in one = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct hd_service_attr attr = { .space = space, .number = 7477, .family = AF_INET };
	struct hd_service *s[2], *t;
	struct hd_node *node;

	assert_int_equal(hd_node_open(&(struct hd_node_attr){ .front = "test" }, &node), 0);
	assert_int_equal(hd_service_open(node, &attr, &s[0]), 0);
	attr.family = AF_INET6;
	assert_int_equal(hd_service_open(node, &attr, &s[1]), 0);
	for (int i = 0; i < 2; i++) {
		for (int k = 0; k < 3; k++) {
			attr.family = (int[]){ AF_INET, AF_INET6, 0 }[k];
			if (i == 0 || attr.family != AF_INET6)
				assert_int_equal(hd_service_open(node, &attr, &t), -EADDRINUSE);
		}
		attr.bind = (const struct sockaddr *)&one;
		assert_int_equal(hd_service_open(node, &attr, &t), -EADDRINUSE);
		attr.bind = NULL;
		hd_service_close(s[1 - i]);
	}
	attr.family = 0;
	assert_int_equal(hd_service_open(node, &attr, &s[0]), 0);
	attr.family = AF_INET6;
	assert_int_equal(hd_service_open(node, &attr, &t), -EADDRINUSE);
	hd_service_close(s[0]);
	assert_int_equal(hd_service_open(node, &attr, &s[1]), 0);
	attr.bind = (const struct sockaddr *)&one;
	assert_int_equal(hd_service_open(node, &attr, &t), 0);
	hd_service_close(t);
	hd_service_close(s[1]);
	assert_int_equal(hd_node_close(node), 0);
}

/* A forked child does not keep the name when its parent lets go of it. */
static void a_child_has_no_name(void **state)
{
	const struct hd_service_attr attr = { .space = space, .number = 7476 };
	struct hd_service *s;
	struct hd_node *node;
	int gate[2], there[2], status;
	pid_t pid;
	char c;

	assert_int_equal(pipe(gate), 0);
	assert_int_equal(pipe(there), 0);
	assert_int_equal(hd_node_open(&(struct hd_node_attr){ .front = "test" }, &node), 0);
	assert_int_equal(hd_service_open(node, &attr, &s), 0);
	pid = fork();
	if (!pid) {
		close(gate[1]);
		if (write(there[1], "", 1) < 0)
			_exit(2);
		_exit(read(gate[0], &c, 1) == 0 ? 0 : 1);
	}
	assert_int_equal(read(there[0], &c, 1), 1);
	hd_service_close(s);
	assert_int_equal(hd_service_open(node, &attr, &s), 0);
	hd_service_close(s);
	close(gate[1]);
	close(gate[0]);
	close(there[0]);
	close(there[1]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(hd_node_close(node), 0);
}

/*
 * What could not be had leaves no descriptor, nor the number of one that is somebody else's by now.
 */
static void a_claim_that_fails_has_nothing(void **state)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	const struct hd_service_attr attr = { .space = space, .number = 7490, .bind = (void *)&at };
	int before, claim = 0;
	struct rig r;

	rig_open_at(&r, "tcp", space, 7490); /* at all addresses */
	before = test_fds();
	assert_int_equal(hd_space_claim(r.server, &attr, &claim), -EADDRINUSE);
	assert_int_equal(claim, -1);
	assert_int_equal(test_fds(), before);
	rig_close(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ports_follow_from_the_name),
		cmocka_unit_test(a_service_is_found_by_its_name),
		cmocka_unit_test(taken_ports_are_passed_by),
		cmocka_unit_test(a_stranger_dies_before_he_answers),
		cmocka_unit_test(the_service_dies_before_it_answers),
		cmocka_unit_test(a_stranger_of_another_transport),
		cmocka_unit_test(an_answer_to_an_earlier_question),
		cmocka_unit_test(nobody_has_that_name),
		cmocka_unit_test(somebody_comes_late),
		cmocka_unit_test(a_port_is_listened_on_again),
		cmocka_unit_test(names_are_taken_once),
		cmocka_unit_test(a_name_in_each_family),
		cmocka_unit_test(a_claim_that_fails_has_nothing),
		cmocka_unit_test(a_child_has_no_name),
	};

	hd_config_load();
	space = own_space();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
