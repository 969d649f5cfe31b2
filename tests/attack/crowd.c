/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Another user, or another host, comes as many nodes, each with a valid greeting, and leaves things
 * behind: processes of our user get in all the same, and his next too.
 */
#include "attack/attack.h"
#include "engine/cm/conn.h"

#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#define STORE "4M"
#define WINDOWS 16 /* first ones that the store has room for */
#define CROWD 200
#define OTHER_STRANGER 54322

struct scene {
	struct side a;
	struct wire *w; /* CROWD */
	int came;
};

static int scene_open(void **state, const char *patience_ms)
{
	static struct scene s;

	setenv("HEDDLE_UNEXPECTED_MAX", STORE, 1);
	setenv("HEDDLE_ANSWER_TIMEOUT", patience_ms, 1);
	s = (struct scene){ .w = calloc(CROWD, sizeof(struct wire)) };
	for (int i = 0; i < CROWD; i++)
		s.w[i].fd = -1;
	side_open(&s.a);
	*state = &s;
	return 0;
}

static int setup(void **state)
{
	return scene_open(state, "3600000");
}

static int setup_impatient(void **state)
{
	return scene_open(state, "1");
}

/* The strangers are on other hosts: tests skip where there can be none. */
static int setup_hosts(void **state)
{
	attack_hosts_open();
	return setup(state);
}

static int teardown(void **state)
{
	struct scene *s = *state;

	for (int i = 0; i < CROWD; i++)
		wire_hang_up(&s->w[i]);
	side_close(&s->a);
	free(s->w);
	unsetenv("HEDDLE_UNEXPECTED_MAX");
	unsetenv("HEDDLE_ANSWER_TIMEOUT");
	return 0;
}

static int teardown_hosts(void **state)
{
	teardown(state);
	attack_hosts_close();
	return 0;
}

/* This user comes as one more node; false: he is refused. */
static bool comes(struct scene *s, struct wire *w, unsigned uid)
{
	attack_greet(w, &s->a, uid, NULL);
	if (w->answer.flags & HD_HELLO_F_REFUSED) {
		wire_gone(w);
		return false;
	}
	wire_hear_kind(w, HD_PKT_ANNOUNCE);
	return true;
}

/* How many get in until one is refused. */
static int come_all(struct scene *s, unsigned uid)
{
	int n = 0;

	while (s->came < CROWD && comes(s, &s->w[s->came], uid)) {
		s->came++;
		n++;
	}
	return n;
}

static struct hd_peer *peer_of(struct scene *s, const struct wire *w)
{
	struct hd_peer *p, *next;

	HASH_ITER(hh, hd_links(s->a.node)->peers, p, next)
		if (!memcmp(&p->id, &w->id, sizeof(w->id)))
			return p;
	return NULL;
}

/* Messages of 4000 bytes, for as long as there is credit; nobody receives them. */
static int fill(struct scene *s, struct wire *w)
{
	static const char bytes[4000];
	const struct hd_pkt pkt = wire_eager(w, 1000, 0);
	struct hd_peer *peer = peer_of(s, w);
	int n = 0;

	for (; hd_peer_can(peer, hd_units(sizeof(bytes))); n++) {
		size_t count = hd_rq_inspect(s->a.ep->rq).waiting[1] + 1;

		wire_say(w, &pkt, bytes, sizeof(bytes));
		while (hd_rq_inspect(s->a.ep->rq).waiting[1] < count)
			hd_node_poll(s->a.node);
	}
	return n;
}

static void all_is_given_back(struct scene *s)
{
	const struct hd_links *links = hd_links(s->a.node);

	for (int i = 0; i < CROWD; i++)
		wire_hang_up(&s->w[i]);
	until_alone(&s->a);
	hd_rq_drop_waiting(s->a.ep->rq, s->a.ep);
	assert_int_equal(links->window_units, 0);
	assert_int_equal(links->others_units, 0);
	assert_int_equal(links->others_files, 0);
	assert_null(links->budgets);
	assert_true(TAILQ_EMPTY(&links->gone));
}

/* One user has half of the store, two have three quarters, and who is of our user gets in. */
static void many_nodes(void **state)
{
	struct scene *s = *state;

	attack_needs_root();
	assert_int_equal(come_all(s, STRANGER), WINDOWS / 2);
	serves(&s->a);
	assert_int_equal(come_all(s, OTHER_STRANGER), WINDOWS / 4);
	serves(&s->a);
	wire_hang_up(&s->w[0]);
	while (peer_of(s, &s->w[0]))
		hd_node_poll(s->a.node);
	assert_true(comes(s, &s->w[0], STRANGER));
	all_is_given_back(s);
}

/* One node is let leave so much that nobody else would get in: the next of his user does. */
static void one_that_fills(void **state)
{
	struct scene *s = *state;

	attack_needs_root();
	assert_true(comes(s, &s->w[s->came++], STRANGER));
	assert_true(fill(s, &s->w[0]) > 0);
	assert_in_range(hd_peer_inspect(peer_of(s, &s->w[0])).window, hd_credit_first_window(s->a.node),
			hd_links(s->a.node)->window_max / 4);
	assert_int_equal(come_all(s, STRANGER), WINDOWS / 4);
	serves(&s->a);
	all_is_given_back(s);
}

/* A node comes, leaves its window full, and goes. False: it is refused. */
static bool leaves(struct scene *s, struct wire *w, unsigned uid)
{
	if (!comes(s, w, uid))
		return false;
	fill(s, w);
	wire_hang_up(w);
	until_alone(&s->a);
	return true;
}

/* Again and again, each when what the last one has left has been there for long enough. */
static void leaves_often(struct scene *s, struct wire *w)
{
	uint64_t end = hd_now_ns() + PATIENCE;

	for (int i = 0; i < 3 * WINDOWS; i++)
		while (!leaves(s, w, STRANGER))
			assert_true(hd_now_ns() < end);
}

static void left_for_others(void **state)
{
	struct scene *s = *state;
	int left;

	attack_needs_root();
	for (left = 0; left < WINDOWS && leaves(s, s->w, STRANGER); left++)
		;
	assert_in_range(left, 1, WINDOWS / 2);
	serves(&s->a);
	assert_true(comes(s, s->w, OTHER_STRANGER));
	all_is_given_back(s);
}

/* What they have left gives way to the next one after a time; what our own have left stays. */
static void left_for_long(void **state)
{
	struct scene *s = *state;
	size_t ours;

	attack_needs_root();
	assert_true(comes(s, s->w, 0));
	ours = (size_t)fill(s, s->w);
	wire_hang_up(s->w);
	until_alone(&s->a);
	leaves_often(s, s->w);
	assert_in_range(hd_links(s->a.node)->others_units, 1, hd_links(s->a.node)->window_max / 2);
	assert_true(hd_rq_inspect(s->a.ep->rq).waiting[1] > ours);
	for (size_t i = 0; i < ours; i++) {
		char in[4000];

		side_post(&s->a, in, sizeof(in), 1000, 0, NULL, in);
		assert_int_equal(hd_cq_peek(s->a.cq)->err, 0);
		hd_cq_pop(s->a.cq);
	}
	assert_int_equal(hd_links(s->a.node)->window_units, hd_links(s->a.node)->others_units);
	all_is_given_back(s);
}

/* What the program has looked at and claimed is its own. */
static void left_and_claimed(void **state)
{
	struct scene *s = *state;
	char in[4000];
	struct hd_recv_args args = { .ctx = in, .flags = HD_RECV_TAGGED | HD_RECV_COMPLETE, .tag = 1000 };
	struct hd_claim *claim;
	struct iovec iov = { in, sizeof(in) };

	attack_needs_root();
	assert_true(leaves(s, s->w, STRANGER));
	assert_int_equal(hd_peek(s->a.ep, &args, HD_PEEK_CLAIM, &claim), 0);
	assert_non_null(claim);
	hd_cq_pop(s->a.cq);
	leaves_often(s, s->w);
	args.iov = &iov;
	args.count = 1;
	assert_int_equal(hd_claim_recv(s->a.ep, claim, &args), 0);
	assert_int_equal(hd_cq_peek(s->a.cq)->err, 0);
	assert_int_equal(hd_cq_peek(s->a.cq)->len, sizeof(in));
	hd_cq_pop(s->a.cq);
	all_is_given_back(s);
}

#define FILES 400

static void descriptors(void **state)
{
	struct scene *s = *state;
	struct rlimit was, few;

	attack_needs_root();
	hd_links(s->a.node)->window_max = INT32_MAX;
	getrlimit(RLIMIT_NOFILE, &was);
	few = was;
	few.rlim_cur = FILES;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	assert_int_equal(come_all(s, STRANGER), FILES / 2 / 2);
	serves(&s->a);
	all_is_given_back(s);
	setrlimit(RLIMIT_NOFILE, &was);
}

/*
 * Endpoints without end: the node that announces them is cut off, and what was
 * kept of them is given back.
 */
static void endpoints(void **state)
{
	struct scene *s = *state;
	struct sockaddr_storage name = { 0 };

	attack_needs_root();
	assert_true(comes(s, s->w, STRANGER));
	((struct sockaddr_in *)&name)->sin_family = AF_INET;
	((struct sockaddr_in *)&name)->sin_port = htons(2000);
	((struct sockaddr_in *)&name)->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	for (uint32_t i = 0; i < 1000 && peer_of(s, s->w); i++) {
		attack_announce(s->w, i, &name);
		if (i % 100 == 99)
			wire_settle(s->w);
	}
	assert_null(peer_of(s, s->w));
	serves(&s->a);
	all_is_given_back(s);
}

/* One who makes us answer and takes nothing in: requests for a connection cost no credit. */
static void answers(void **state)
{
	struct scene *s = *state;
	struct {
		struct hd_tcp_frame frame;
		unsigned char body[offsetof(struct hd_connect, data)];
	} said[400];
	uint32_t most = 0;
	struct hd_peer *peer;

	attack_needs_root();
	assert_int_equal(hd_tcp_check_of(sizeof(said[0].body)), 0);
	memset(said, 0, sizeof(said));
	assert_true(comes(s, s->w, STRANGER));
	while ((peer = peer_of(s, s->w))) {
		most = peer->ctl_bytes > most ? peer->ctl_bytes : most;
		for (size_t i = 0; i < sizeof(said) / sizeof(said[0]); i++) {
			said[i].frame = (struct hd_tcp_frame){ .len = sizeof(said[i].body),
							       .seq = ++s->w->seq,
							       .ack = s->w->ack,
							       .pkt = wire_eager(s->w, 0, 0) };
			said[i].frame.pkt.kind = HD_PKT_CONNECT;
			said[i].frame.pkt.flags = 0;
		}
		wire_raw(s->w, said, sizeof(said));
	}
	assert_in_range(most, 1, (4 << 20) / 4);
	serves(&s->a);
	all_is_given_back(s);
}

static ssize_t request_of(const struct hd_event *event, void *arg)
{
	*(struct hd_request **)arg = event->request;
	return 0;
}

/*
 * One endpoint of this node asks a service for connections until it is refused, or has done so
 * `most` times; how often it was not.
 */
static uint32_t ask_all(struct scene *s, struct wire *w, const struct hd_service *service, uint32_t most)
{
	struct hd_connect body = { .type = HD_EP_MSG, .from = { .index = 7, .gen = 1 } };
	struct hd_pkt pkt = {
		.kind = HD_PKT_CONNECT, .dst = service->ep->index, .gen = service->ep->gen, .src = 7
	};
	uint32_t before = service->pending;

	while (service->pending - before < most) {
		uint32_t pending = service->pending;

		pkt.op++;
		wire_say(w, &pkt, &body, offsetof(struct hd_connect, data));
		wire_settle(w);
		if (service->pending == pending)
			break;
	}
	return service->pending - before;
}

/*
 * Requests for connections that the program does not answer, of a backlog without end; one that it
 * has read stays when its caller goes.
 */
static void requests(void **state)
{
	const struct sockaddr_in any = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct scene *s = *state;
	struct hd_service *service;
	struct hd_request *r;
	struct hd_evq *evq;

	attack_needs_root();
	assert_int_equal(hd_evq_open(1 << 20, &evq), 0);
	assert_int_equal(hd_service_open(s->a.node, &(struct hd_service_attr){ .bind = (const void *)&any },
					 &service),
			 0);
	assert_int_equal(
		hd_service_listen(service, &(struct hd_listen_args){ .evq = evq, .backlog = 1 << 20 }), 0);
	assert_true(comes(s, &s->w[s->came++], STRANGER));
	assert_in_range(ask_all(s, &s->w[0], service, 4000), 100, 2000);
	assert_int_equal(come_all(s, STRANGER), WINDOWS / 4);
	assert_true(comes(s, &s->w[CROWD - 1], 0));
	assert_int_equal(ask_all(s, &s->w[CROWD - 1], service, 100), 100);
	serves(&s->a);
	assert_int_equal(hd_evq_read(evq, 0, request_of, &r), 0);
	for (int i = 0; i < CROWD; i++)
		wire_hang_up(&s->w[i]);
	until_alone(&s->a);
	assert_int_equal(service->pending, 1);
	assert_true(hd_links(s->a.node)->others_units > 0);
	hd_request_reject(r, NULL);
	all_is_given_back(s);
	hd_service_close(service);
	assert_int_equal(hd_evq_close(evq), 0);
}

/*
 * Completions that nobody has read, of writes with immediate data, as many as there is credit for.
 */
static void write_out(struct scene *s, struct wire *w)
{
	struct {
		struct hd_rma head;
		struct hd_rma_seg seg;
		uint64_t word;
	} body = { .head = { .count = 1 }, .seg = { .len = 8, .key = 77 } };
	struct hd_peer *peer = peer_of(s, w);
	struct hd_pkt pkt = wire_eager(w, 0, 0);

	pkt.kind = HD_PKT_WRITE;
	pkt.flags = HD_PKT_F_IMM;
	while (hd_peer_can(peer, hd_units(sizeof(body)))) {
		wire_say(w, &pkt, &body, sizeof(body));
		wire_hear_kind(w, HD_PKT_FIN);
		assert_int_equal(w->pkt.imm, 0);
	}
}

static void completions(void **state)
{
	struct scene *s = *state;
	uint64_t word;
	struct hd_mr *mr;
	int rounds = 0;

	attack_needs_root();
	mr = side_region(&s->a, 77, &word, sizeof(word), HD_ACCESS_REMOTE_WRITE, 0);
	s->a.ep->policy |= HD_EP_REMOTE_WRITE;
	for (; rounds < WINDOWS && comes(s, s->w, STRANGER); rounds++) {
		write_out(s, s->w);
		wire_hang_up(s->w);
		until_alone(&s->a);
	}
	assert_in_range(rounds, 1, WINDOWS - 1);
	while (hd_cq_peek(s->a.cq))
		hd_cq_pop(s->a.cq);
	assert_true(comes(s, s->w, STRANGER));
	serves(&s->a);
	all_is_given_back(s);
	hd_mr_close(mr);
}

/* Each host has a budget, whoever its users say that they are; and ours is our own. */
static void hosts(void **state)
{
	struct scene *s = *state;

	attack_needs_hosts();
	attack_from(0);
	assert_int_equal(come_all(s, 0) + come_all(s, STRANGER), WINDOWS / 2);
	serves(&s->a);
	attack_from(1);
	assert_int_equal(come_all(s, STRANGER) + come_all(s, 0), WINDOWS / 4);
	serves(&s->a);
	wire_hang_up(&s->w[0]);
	while (peer_of(s, &s->w[0]))
		hd_node_poll(s->a.node);
	attack_from(0);
	assert_true(comes(s, &s->w[0], 0));
	assert_false(comes(s, &s->w[CROWD - 1], 0));
	all_is_given_back(s);
}

/* A host leaves so much that its next is refused; another one is not. */
static void left_by_a_host(void **state)
{
	struct scene *s = *state;
	int left = 0;

	attack_needs_hosts();
	attack_from(0);
	while (left < WINDOWS && leaves(s, s->w, 0))
		left++;
	assert_in_range(left, 1, WINDOWS / 2);
	serves(&s->a);
	attack_from(1);
	assert_true(comes(s, s->w, 0));
	all_is_given_back(s);
}

/* Who is refused again and again does not fill the log. */
static void refusals(void **state)
{
	struct scene *s = *state;
	unsigned lines;

	attack_needs_root();
	come_all(s, STRANGER);
	listen_to_the_log(true);
	for (int i = 0; i < CROWD; i++)
		assert_false(comes(s, &s->w[CROWD - 1], STRANGER));
	lines = log_lines;
	listen_to_the_log(false);
	assert_in_range(lines, 0, CROWD / 10);
	all_is_given_back(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(many_nodes, setup, teardown),
		cmocka_unit_test_setup_teardown(one_that_fills, setup, teardown),
		cmocka_unit_test_setup_teardown(left_for_others, setup, teardown),
		cmocka_unit_test_setup_teardown(left_for_long, setup_impatient, teardown),
		cmocka_unit_test_setup_teardown(left_and_claimed, setup_impatient, teardown),
		cmocka_unit_test_setup_teardown(descriptors, setup, teardown),
		cmocka_unit_test_setup_teardown(endpoints, setup, teardown),
		cmocka_unit_test_setup_teardown(answers, setup, teardown),
		cmocka_unit_test_setup_teardown(requests, setup, teardown),
		cmocka_unit_test_setup_teardown(completions, setup, teardown),
		cmocka_unit_test_setup_teardown(refusals, setup, teardown),
		cmocka_unit_test_setup_teardown(hosts, setup_hosts, teardown_hosts),
		cmocka_unit_test_setup_teardown(left_by_a_host, setup_hosts, teardown_hosts),
	};

	return cmocka_run_group_tests_name("crowd", tests, NULL, NULL);
}
